/* The assignment functions, checks of their arguments, and literals as tensors. */
#include "variable/variable.h"

const char *const lsi_assign_names[] = {"assign", "assign_add", "assign_sub"};

ls_tensor *lsi_assign_refused(ls_context *c, ls_status code, ls_kind kind, const char *op,
                              const ls_variable *v, const char *why)
{
    ls_error e = LS_ERROR_INIT;

    (void)lsi_fail_kind(&e, code, kind, "%s: '%s' %s", op, v->name, why);
    return lsi_context_error(c, &e);
}

/* The range of integers that `dtype` can hold: [low, high]. */
static bool holds(ls_dtype dtype, int64_t i)
{
    switch (dtype) {
    case LS_I8:
        return i >= INT8_MIN && i <= INT8_MAX;
    case LS_I16:
        return i >= INT16_MIN && i <= INT16_MAX;
    case LS_I32:
        return i >= INT32_MIN && i <= INT32_MAX;
    case LS_U8:
        return i >= 0 && i <= UINT8_MAX;
    case LS_U16:
        return i >= 0 && i <= UINT16_MAX;
    case LS_U32:
        return i >= 0 && i <= UINT32_MAX;
    case LS_U64:
        return i >= 0;
    default:
        return true;
    }
}

static ls_tensor *integer_like(ls_context *c, const ls_variable *v, const char *what,
                               int64_t i)
{
    ls_error e = LS_ERROR_INIT;

    if (!holds(v->dtype, i)) {
        (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                            "%s: '%s' is %s, which cannot hold %lld", what, v->name,
                            ls_dtype_name(v->dtype), (long long)i);
        return lsi_context_error(c, &e);
    }
    if (v->dtype == LS_I64 || v->dtype == LS_U64) { // hold all digits of a literal
        return (ls_constant)(c, v->dtype, LS_SCALAR, &i);
    }
    return lsi_scalar(c, v->dtype, (double)i);
}

ls_tensor *lsi_literal_like(ls_context *c, const ls_variable *v, const char *what,
                            const ls_value *literal)
{
    ls_error e = LS_ERROR_INIT;
    double x = 0;
    int64_t i = 0;
    bool truth = false;

    if (ls_value_as_bool(literal, &truth) && v->dtype != LS_STRING) {
        return lsi_scalar(c, v->dtype, truth);
    }
    if (ls_value_as_int(literal, &i) && lsi_dtype_is_number(v->dtype)) {
        return integer_like(c, v, what, i);
    }
    if (ls_value_as_float(literal, &x) && lsi_dtype_is_float(v->dtype)) {
        return lsi_scalar(c, v->dtype, x);
    }
    if (literal->kind == LS_VALUE_STRING && v->dtype == LS_STRING) {
        return (ls_constant)(c, LS_STRING, LS_SCALAR, &literal->leaf.string);
    }
    (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                        "%s: '%s' is %s and takes no %s; convert it first", what, v->name,
                        ls_dtype_name(v->dtype), ls_value_kind_name(literal->kind));
    return lsi_context_error(c, &e);
}

ls_tensor *lsi_source_tensor(ls_context *c, const ls_variable *v, ls_assign_op op,
                             const lsi_source *s, size_t index)
{
    const ls_value *value = s->value;

    if (s->tensor != NULL) {
        return s->tensor;
    }
    if (value == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "assign: the value is NULL");
    }
    if (lsi_value_is_distributed(value)) {
        value = value->child[index < value->size ? index : 0];
    }
    if (lsi_value_is_literal(value)) {
        return lsi_literal_like(c, v, lsi_assign_names[op], value);
    }
    if (value->kind == LS_VALUE_VARIABLE) {
        ls_variable *other = ls_value_as_variable(value);

        if (other->ops->per_replica &&
            (other->ops->kept_equal || lsi_in_replica_of(other))) {
            other = other->component[index < (size_t)other->components ? index : 0];
            return lsi_variable_peek(c, other);
        }
        return other->ops->value(c, other);
    }
    if (value->kind != LS_VALUE_TENSOR) {
        return lsi_assign_refused(
            c, LS_INVALID_ARGUMENT, LS_KIND_TYPE, "assign", v,
            "takes a tensor, a number, a distributed value or a variable");
    }
    return lsi_context_alias(c, value->leaf.tensor);
}

bool lsi_source_is_per_replica(const lsi_source *s)
{
    return s->tensor == NULL && s->value != NULL &&
           s->value->kind == LS_VALUE_PER_REPLICA;
}

bool lsi_assign_all(ls_context *c, ls_variable *v, ls_assign_op op, const lsi_source *s)
{
    for (int i = 0; i < v->components && !lsi_failed(c); i++) {
        (void)lsi_variable_put(c, v->component[i], op,
                               lsi_source_tensor(c, v, op, s, (size_t)i));
    }
    return !lsi_failed(c);
}

void lsi_restore_all(ls_context *c, ls_variable *v, const lsi_source *s)
{
    (void)lsi_assign_all(c, v, LS_ASSIGN, s);
}

ls_tensor *lsi_assign_no_aggregation(ls_context *c, const ls_variable *v, ls_assign_op op)
{
    return lsi_assign_refused(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, lsi_assign_names[op],
                              v,
                              "has no aggregation: set how the writes of replicas are "
                              "combined (SUM, MEAN, ONLY_FIRST_REPLICA)");
}

/* ---- the functions ---- */

static ls_tensor *assign_source(ls_context *c, ls_variable *v, ls_assign_op op,
                                const lsi_source *s, bool no_read)
{
    const lsi_mode *now = lsi_mode_now();
    ls_error e = LS_ERROR_INIT;
    ls_variable *here;

    if (c == NULL || lsi_context_aborted(c)) {
        return NULL;
    }
    if (v == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: the variable is NULL",
                               lsi_assign_names[op]);
    }
    here = v->ops->here(v, lsi_assign_names[op], &e);
    if (e.code != LS_OK) {
        return lsi_context_error(c, &e);
    }
    if (here == v || lsi_update_id() >= 0) { // plain, or a component
        const int id = lsi_update_id();

        return lsi_variable_put(c, here, op,
                                lsi_source_tensor(c, v, op, s, id > 0 ? (size_t)id : 0));
    }
    if (lsi_in_replica_of(v)) {
        return v->ops->assign_in_replica(now->context, v, here, op, s);
    }
    return v->ops->assign(c, v, op, s) && !no_read ? v->ops->value(c, v) : NULL;
}

ls_tensor *(ls_assign)(ls_context *c, ls_variable *v, ls_tensor *value)
{
    const lsi_source s = {.tensor = value};

    return assign_source(c, v, LS_ASSIGN, &s, false);
}

ls_tensor *(ls_assign_add)(ls_context *c, ls_variable *v, ls_tensor *delta)
{
    const lsi_source s = {.tensor = delta};

    return assign_source(c, v, LS_ASSIGN_ADD, &s, false);
}

ls_tensor *(ls_assign_sub)(ls_context *c, ls_variable *v, ls_tensor *delta)
{
    const lsi_source s = {.tensor = delta};

    return assign_source(c, v, LS_ASSIGN_SUB, &s, false);
}

ls_tensor *(ls_variable_assign)(ls_context *c, ls_variable *v, ls_assign_op op,
                                ls_value *value, bool no_read)
{
    const lsi_source s = {.value = value};

    if (lsi_failed(c)) {
        return NULL;
    }
    if ((unsigned)op > LS_ASSIGN_SUB || value == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "assign: %s",
                               value == NULL ? "the value is NULL" : "no such operation");
    }
    return assign_source(c, v, op, &s, no_read);
}

/* ---- outside of any step ---- */

static ls_status write_whole(ls_variable *v, const ls_tensor *value, bool restore,
                             ls_error *err)
{
    ls_context *c = NULL;
    ls_tensor *t = (ls_tensor *)value; // NOLINT: tensors never change
    const lsi_source s = {.tensor = t};
    ls_status st = ls_context_open(v->device, NULL, &c, err);

    if (st != LS_OK) {
        return st;
    }
    if (restore) {
        v->ops->restore(c, v, &s);
    } else {
        (void)assign_source(c, v, LS_ASSIGN, &s, true);
    }
    st = ls_context_finish(c, err);
    ls_context_close(c);
    return st;
}

ls_status ls_variable_set(ls_variable *v, const ls_tensor *value, ls_error *err)
{
    if (v == NULL || value == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "set: %s is NULL",
                        v == NULL ? "the variable" : "the value");
    }
    return write_whole(v, value, false, err);
}

ls_status ls_variable_restore(ls_variable *v, const ls_tensor *value, ls_error *err)
{
    if (v == NULL || value == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "restore: %s is NULL",
                        v == NULL ? "the variable" : "the value");
    }
    return write_whole(v, value, true, err);
}
