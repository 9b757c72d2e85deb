/* Operators: arithmetic, shapes, slices and gradients. */
#include "strategy_machine.h"

#include <stdlib.h>

/* Both operands, a literal in the dtype of the other one. */
static bool operands(const scene *s, json_t *e, ls_tensor *out[2])
{
    ls_value *v[2];
    bool literals[2];

    for (int i = 0; i < 2; i++) {
        v[i] = machine_eval(s, json_array_get(e, (size_t)i + 1));
        if (v[i] == NULL) {
            return false;
        }
        literals[i] = machine_is_literal(v[i]);
    }
    for (int i = 0; i < 2; i++) {
        out[i] = literals[i] && !literals[1 - i] ? NULL : machine_tensor(s, v[i]);
        if (out[i] == NULL && !literals[i]) {
            return false;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (out[i] == NULL && out[1 - i] != NULL) {
            out[i] = machine_literal(s, v[i], ls_tensor_dtype(out[1 - i]));
        }
    }
    return out[0] != NULL && out[1] != NULL;
}

static ls_value *apply_two(const scene *s, json_t *e,
                           ls_tensor *(*op)(ls_context *c, ls_tensor *a, ls_tensor *b))
{
    ls_tensor *t[2];

    return operands(s, e, t) ? machine_of_tensor(s, op(LS_HERE(s->c), t[0], t[1])) : NULL;
}

static ls_value *op_add(const scene *s, json_t *e)
{
    return apply_two(s, e, ls_add);
}

static ls_value *op_sub(const scene *s, json_t *e)
{
    return apply_two(s, e, ls_sub);
}

static ls_value *op_mul(const scene *s, json_t *e)
{
    return apply_two(s, e, ls_mul);
}

static ls_value *op_divide(const scene *s, json_t *e)
{
    return apply_two(s, e, ls_div);
}

static ls_value *op_matmul(const scene *s, json_t *e)
{
    return apply_two(s, e, ls_matmul);
}

static ls_value *op_neg(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));

    return t == NULL ? NULL : machine_of_tensor(s, ls_neg(s->c, t));
}

static ls_value *op_square(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));

    return t == NULL ? NULL : machine_of_tensor(s, ls_square(s->c, t));
}

/* ---- reductions: no axis, one, or a list ---- */
struct axes {
    int at[LS_MAX_DIMS];
    size_t n;
    bool given;
};

static bool read_axes(const scene *s, const json_t *j, struct axes *out)
{
    const size_t n = json_array_size(j);

    *out = (struct axes){.given = json_is_integer(j) || json_is_array(j)};
    if (json_is_integer(j)) {
        out->at[out->n++] = (int)json_integer_value(j);
        return true;
    }
    if (n > LS_MAX_DIMS) {
        (void)machine_wrong(s, "%zu axes are too many", n);
        return false;
    }
    for (; out->n < n; out->n++) {
        out->at[out->n] = (int)json_integer_value(json_array_get(j, out->n));
    }
    return true;
}

static ls_value *op_sum(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));
    struct axes a;

    if (t == NULL || !read_axes(s, json_array_get(e, 2), &a)) {
        return NULL;
    }
    return machine_of_tensor(s, ls_sum(s->c, t, a.given ? a.at : NULL, a.n, false));
}

static ls_value *op_mean(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));
    struct axes a;

    if (t == NULL || !read_axes(s, json_array_get(e, 2), &a)) {
        return NULL;
    }
    return machine_of_tensor(s, ls_mean(s->c, t, a.given ? a.at : NULL, a.n, false));
}

static ls_value *op_reshape(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));
    ls_shape shape;

    if (t == NULL || !machine_shape(s, json_array_get(e, 2), &shape)) {
        return NULL;
    }
    return machine_of_tensor(s, ls_reshape(s->c, t, shape));
}

static ls_value *op_cast(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));
    const char *name = json_string_value(json_array_get(e, 2));
    ls_dtype dtype;

    if (t == NULL) {
        return NULL;
    }
    if (name == NULL || !ls_dtype_from_name(name, &dtype)) {
        return machine_wrong(s, "no dtype is called so");
    }
    return machine_of_tensor(s, ls_cast(s->c, t, dtype));
}

static ls_value *op_take(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));
    ls_tensor *at = t == NULL ? NULL : machine_eval_tensor(s, json_array_get(e, 2));

    return at == NULL ? NULL : machine_of_tensor(s, ls_gather(s->c, t, at, 0));
}

static ls_value *op_add_n(const scene *s, json_t *e)
{
    const ls_value *v = machine_eval(s, json_array_get(e, 1));
    ls_tensor *total = NULL;

    if (v == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < ls_value_size(v); i++) {
        ls_tensor *t = machine_tensor(s, ls_value_child(v, i));

        total = total == NULL ? t : ls_add(s->c, total, t);
        if (total == NULL) {
            return NULL;
        }
    }
    return total == NULL ? machine_wrong(s, "nothing to add")
                         : machine_of_tensor(s, total);
}

static ls_value *op_tensor(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));

    return t == NULL ? NULL : machine_of_tensor(s, ls_identity(s->c, t));
}

static ls_value *op_slices(const scene *s, json_t *e)
{
    ls_tensor *values = machine_eval_tensor(s, json_array_get(e, 1));
    ls_tensor *at = values == NULL ? NULL : machine_eval_tensor(s, json_array_get(e, 2));
    json_t *dense = json_array_get(e, 3);
    ls_error err = LS_ERROR_INIT;
    ls_tensor *out = NULL;
    ls_shape shape;

    if (at == NULL) {
        return NULL;
    }
    if (json_is_array(dense)) {
        if (!machine_shape(s, dense, &shape)) {
            return NULL;
        }
    } else {
        // The library needs a dense shape: this one marks that the case gave none.
        shape = ls_tensor_shape(values);
        shape.dims[0] = MACHINE_NO_ROWS;
    }
    return machine_of_taken(s, ls_tensor_create_slices(values, at, shape, &out, &err),
                            &out, &err);
}

static ls_value *op_densify(const scene *s, json_t *e)
{
    ls_tensor *t = machine_eval_tensor(s, json_array_get(e, 1));
    void *bytes;
    ls_error err = LS_ERROR_INIT;
    ls_tensor *dense = NULL;

    if (t == NULL) {
        return NULL;
    }
    bytes = malloc(ls_tensor_bytes(t) + 1);
    if (bytes == NULL) {
        return machine_wrong(s, "out of memory");
    }
    if (ls_tensor_read(t, bytes, ls_tensor_bytes(t), &err) == LS_OK) {
        dense = ls_constant(s->c, ls_tensor_dtype(t), ls_tensor_shape(t), bytes);
    } else {
        (void)machine_fail(s, &err);
    }
    free(bytes);
    return machine_of_tensor(s, dense);
}

static ls_value *op_random_values(const scene *s, json_t *e)
{
    ls_shape shape;

    if (!machine_shape(s, json_array_get(e, 1), &shape)) {
        return NULL;
    }
    return machine_of_tensor(s, ls_random_uniform(s->c, LS_F32, shape, 0, 1));
}

/* ---- gradients ---- */

/* The arguments by kind: tensors and variables have separate calls. */
struct sources {
    ls_tensor *tensors[MACHINE_MAX_ITEMS], *tensor_grads[MACHINE_MAX_ITEMS];
    ls_variable *variables[MACHINE_MAX_ITEMS];
    ls_tensor *variable_grads[MACHINE_MAX_ITEMS];
    size_t ntensors, nvariables;
};

static bool watch(const scene *s, ls_tape *tape, items *args, struct sources *from)
{
    *from = (struct sources){.ntensors = 0};
    for (size_t i = 0; i < args->n; i++) {
        ls_variable *v = ls_value_as_variable(args->v[i]);

        if (v != NULL) {
            ls_tape_watch_variable(s->c, tape, v);
            from->variables[from->nvariables++] = v;
            continue;
        }
        // A tensor of this context: one from outside would be a new one at every use.
        ls_tensor *t = ls_identity(s->c, machine_tensor(s, args->v[i]));

        if (t == NULL) {
            return false;
        }
        ls_tape_watch(s->c, tape, t);
        from->tensors[from->ntensors++] = t;
        args->v[i] = machine_of_tensor(s, t);
        if (args->v[i] == NULL) {
            return false;
        }
    }
    return true;
}

static ls_value *op_gradient(const scene *s, json_t *e)
{
    const ls_tape_options opts = {sizeof opts, true, false};
    const thing *fn = machine_eval_thing(s, json_array_get(e, 1), THING_FUNCTION);
    struct sources from;
    items args;
    size_t tensor = 0, variable = 0;

    if (fn == NULL || !machine_eval_all(s, json_array_get(e, 2), 0, &args)) {
        return NULL;
    }
    ls_tape *tape = ls_tape_open(s->c, &opts);

    if (!watch(s, tape, &args, &from)) {
        return NULL;
    }
    ls_value *result = machine_call(s, fn, &args, NULL);
    ls_tensor *y = result == NULL ? NULL : machine_tensor(s, result);

    ls_tape_stop(s->c, tape);
    if (from.ntensors > 0) {
        ls_gradients(s->c, tape, &y, NULL, 1, from.tensors, from.ntensors,
                     from.tensor_grads);
    }
    if (from.nvariables > 0) {
        ls_variable_gradients(s->c, tape, y, from.variables, from.nvariables,
                              from.variable_grads);
    }
    ls_tape_close(s->c, tape);
    for (size_t i = 0; i < args.n; i++) {
        ls_tensor *g = ls_value_as_variable(args.v[i]) != NULL
                           ? from.variable_grads[variable++]
                           : from.tensor_grads[tensor++];

        args.v[i] = g == NULL ? machine_done(s) : machine_of_tensor(s, g);
        if (args.v[i] == NULL) {
            return NULL;
        }
    }
    return machine_tuple(s, &args);
}

const operation machine_tensors[] = {
    {"add", op_add, 2, 2},
    {"sub", op_sub, 2, 2},
    {"mul", op_mul, 2, 2},
    {"div", op_divide, 2, 2},
    {"matmul", op_matmul, 2, 2},
    {"neg", op_neg, 1, 1},
    {"square", op_square, 1, 1},
    {"sum", op_sum, 1, 2},
    {"mean", op_mean, 1, 2},
    {"reshape", op_reshape, 2, 2},
    {"cast", op_cast, 2, 2},
    {"take", op_take, 2, 2},
    {"add_n", op_add_n, 1, 1},
    {"tensor", op_tensor, 1, 1},
    {"slices", op_slices, 2, 3},
    {"densify", op_densify, 1, 1},
    {"random", op_random_values, 1, 1},
    {"gradient", op_gradient, 2, 2},
    {NULL, NULL, 0, 0},
};
