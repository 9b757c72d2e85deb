/* Statements that run operations: every row of the operation table, by the catalogue. */
#include "random_machine.h"

#include <ctype.h>

static const int64_t SIZES[] = {1, 2, 3, 3, 3, 4, 4, 5, 7, 8};

static void draw_sizes(uint64_t seed, sig_sizes *sizes)
{
    for (int i = 0; i < 128; i++) {
        const uint64_t r = lst_random(&seed);

        sizes->of[i] = SIZES[r % LSI_COUNT_OF(SIZES)];
        if (islower(i) && (r >> 32) % 40 == 0) {
            sizes->of[i] = 0;
        }
    }
}

/* Binds the letters of the first input's axes to the sizes of `t`, if they fit. */
static bool bind_sizes(const char *in, const ls_tensor *t, sig_sizes *sizes)
{
    const ls_shape shape = ls_tensor_shape(t);
    sig_sizes bound = *sizes;
    bool given[128] = {false};
    const char *at = strchr(in, '[');
    int axis = 0;

    for (at = at == NULL ? "]" : at + 1; *at != ']' && *at != '\0'; axis++) {
        const unsigned char letter = (unsigned char)*at;
        char *end = NULL;

        if (axis == shape.ndim) {
            return false;
        }
        if (!isalpha(letter)) {
            if (strtoll(at, &end, 10) != shape.dims[axis] || end == at) {
                return false;
            }
            at = end;
        } else {
            if ((isupper(letter) && shape.dims[axis] == 0) ||
                (given[letter] && bound.of[letter] != shape.dims[axis])) {
                return false;
            }
            given[letter] = true;
            bound.of[letter] = shape.dims[axis];
            at++;
        }
        at += *at == ',';
    }
    if (axis == shape.ndim) {
        *sizes = bound;
    }
    return axis == shape.ndim;
}

/*
 * Operations whose result changes at most about as much as their inputs do, times the
 * other inputs and the number of elements: a difference of the inputs stays bounded.
 */
static bool is_tame(lsi_op_id op)
{
    static const unsigned char tame[] = {LSI_OP_neg,
                                         LSI_OP_abs,
                                         LSI_OP_square,
                                         LSI_OP_erf,
                                         LSI_OP_relu,
                                         LSI_OP_leaky_relu,
                                         LSI_OP_elu,
                                         LSI_OP_sigmoid,
                                         LSI_OP_tanh,
                                         LSI_OP_softplus,
                                         LSI_OP_gelu,
                                         LSI_OP_silu,
                                         LSI_OP_clip,
                                         LSI_OP_add,
                                         LSI_OP_sub,
                                         LSI_OP_mul,
                                         LSI_OP_maximum,
                                         LSI_OP_minimum,
                                         LSI_OP_where,
                                         LSI_OP_sum,
                                         LSI_OP_mean,
                                         LSI_OP_max,
                                         LSI_OP_min,
                                         LSI_OP_logsumexp,
                                         LSI_OP_matmul,
                                         LSI_OP_dense,
                                         LSI_OP_conv2d,
                                         LSI_OP_depthwise_conv2d,
                                         LSI_OP_avg_pool2d,
                                         LSI_OP_max_pool2d,
                                         LSI_OP_reshape,
                                         LSI_OP_transpose,
                                         LSI_OP_squeeze,
                                         LSI_OP_expand_dims,
                                         LSI_OP_broadcast_to,
                                         LSI_OP_tile,
                                         LSI_OP_pad,
                                         LSI_OP_slice,
                                         LSI_OP_concat,
                                         LSI_OP_stack,
                                         LSI_OP_stop_gradient,
                                         LSI_OP_identity,
                                         LSI_OP_softmax,
                                         LSI_OP_log_softmax,
                                         LSI_OP_mean_squared_error,
                                         LSI_OP_sigmoid_cross_entropy};

    return memchr(tame, (int)op, sizeof tame) != NULL;
}

/*
 * Operations whose gradient is not continuous: a small difference of inputs may give
 * another one.
 */
static bool is_kinked(lsi_op_id op)
{
    static const unsigned char kinked[] = {LSI_OP_abs,
                                           LSI_OP_relu,
                                           LSI_OP_leaky_relu,
                                           LSI_OP_elu,
                                           LSI_OP_clip,
                                           LSI_OP_maximum,
                                           LSI_OP_minimum,
                                           LSI_OP_max,
                                           LSI_OP_min,
                                           LSI_OP_max_pool2d,
                                           LSI_OP_dense,
                                           LSI_OP_conv2d,
                                           LSI_OP_depthwise_conv2d};

    return memchr(kinked, (int)op, sizeof kinked) != NULL;
}

struct operands {
    ls_tensor *in[SIG_MOST];
    double error[SIG_MOST];
    size_t n;
};

/* The bound on the difference of the result, from those of the operands. */
static double result_error(const op_entry *e, const struct operands *o,
                           const ls_tensor *out)
{
    const double units[] = {[EXACT] = 0, [ELEMENT] = 16, [SUM] = 64, [CANCEL] = 64};
    double product = 1, incoming = 0;
    int64_t most = 1;

    for (size_t i = 0; i < o->n; i++) {
        if (o->in[i] == NULL) {
            continue;
        }
        product *= LSI_MAX(1.0, largest_of(o->in[i]));
        most = LSI_MAX(most, o->in[i]->count);
        incoming += o->error[i];
    }
    if (!isfinite(product) || !isfinite(incoming)) {
        return INFINITY;
    }
    // Sums of n terms in another order differ by about sqrt(n) roundings of a term.
    const double terms = e->tolerance >= SUM ? LSI_MAX(1.0, sqrt((double)most) / 8) : 1;
    const double own = units[e->tolerance] * op_epsilon(ls_tensor_dtype(out)) *
                       LSI_MAX(product * terms, largest_of(out));
    if (incoming == 0) {
        return own;
    }
    return is_tame(e->op) ? own + 2 * incoming * product * (double)most : INFINITY;
}

/* The bound for gradients of tapes that record this operation. */
static void note_growth(place *at, const op_entry *e, const struct operands *o,
                        double error)
{
    double incoming = 0;

    for (size_t i = 0; i < o->n; i++) {
        incoming += o->error[i];
    }
    for (size_t i = 0; i < at->ntapes; i++) {
        if (!is_tame(e->op) || (incoming != 0 && is_kinked(e->op)) || !isfinite(error)) {
            at->tapes[i].growth = INFINITY;
        } else {
            for (size_t j = 0; j < o->n; j++) {
                at->tapes[i].growth *=
                    o->in[j] == NULL ? 1 : LSI_MAX(1.0, largest_of(o->in[j]));
            }
        }
    }
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static ls_tensor *drawn(place *at, const sig_input *in, uint64_t *random)
{
    return ls_adopt(at->c, sig_tensor(at->c->device, in, random));
}

/* One operand: from the pool as `use` says, or a new one. */
static void take_operand(place *at, const statement *s, const sig_input *in, int64_t use,
                         uint64_t *random, struct operands *o)
{
    // The functions that call rows with attributes check shapes themselves.
    const bool row = ends_with(lsi_op_table[s->op]->name, "_grad");
    const bool real = op_epsilon(in->dtype) != 0;
    held h = {NULL, 0, false};

    if (in->null) {
        o->error[o->n] = 0;
        o->in[o->n++] = NULL;
        return;
    }
    if (use > 0 && real) {
        h = like_at(at, use, in->dtype, &in->shape, 0);
    } else if (use < 0 && !row && s->how.kind != OP_BAD) {
        h = like_at(at, use, in->dtype, &in->shape, 0);
        if (h.error != 0 && op_epsilon(ls_tensor_dtype(h.t)) == 0) {
            h.t = NULL; // an index that two kernels may compute differently
        }
    }
    if (h.t == NULL) {
        h = (held){drawn(at, in, random), 0, false};
    }
    o->error[o->n] = h.error;
    o->in[o->n++] = h.t;
}

/* How many of the inputs may be taken from the pool. */
static const char *const USES[] = {"u0", "u1", "u2", "u3"};

static void run_op(place *at, const statement *s)
{
    const op_entry *e = op_find(s->op);
    uint64_t random = (uint64_t)number(s, "seed") * 1000 + is_odd(at, s);
    const int64_t bind = number(s, "bind");
    struct operands o = {{NULL}, {0}, 0};
    ls_tensor *out[LSI_MAX_OUTPUTS] = {NULL};
    ls_dtype real = dtype_of(number(s, "real") % 4);
    sig_input spec[SIG_MOST];
    sig_sizes sizes;
    int n;

    if (e == NULL || lsi_failed(at->c)) {
        return;
    }
    draw_sizes(random, &sizes);
    if (bind > 0 && tensor_at(at, bind) != NULL) {
        const ls_tensor *t = tensor_at(at, bind)->t;

        if (bind_sizes(s->in, t, &sizes) && op_epsilon(ls_tensor_dtype(t)) != 0) {
            real = ls_tensor_dtype(t);
        }
    }
    n = sig_parse(s->in, &sizes, real, spec);
    random += (uint64_t)(at->differ * at->id) * 1000003 + 1;
    for (int i = 0; i < n; i++) {
        const int64_t use = i < (int)LSI_COUNT_OF(USES) ? number(s, USES[i]) : 0;

        take_operand(at, s, &spec[i], use, &random, &o);
    }
    if (n < 0 || lsi_failed(at->c)) {
        return;
    }
    e->apply(LS_HERE(at->c), e, &s->how, o.in, o.n, out);
    if (ls_context_status(at->c, NULL) != LS_OK) {
        return;
    }
    for (int i = 0; i < (e->outputs == 0 ? 1 : e->outputs); i++) {
        if (out[i] != NULL) {
            const double error = result_error(e, &o, out[i]);

            note_growth(at, e, &o, error);
            keep(at, out[i], error);
        }
    }
}

static void run_constant(place *at, const statement *s)
{
    ls_shape shape = shape_of(s);

    shape.dims[0] += is_odd(at, s);
    keep(at, fresh(at, dtype_of(number(s, "dtype")), &shape, number(s, "seed")), 0);
}

/* Parts of a tensor; the sizes of the first and of the rest. */
static void run_split(place *at, const statement *s)
{
    const held h = float_at(at, number(s, "t"), number(s, "seed"));
    const int axis = (int)number(s, "axis");
    const int64_t all =
        h.t == NULL || axis >= ls_tensor_ndim(h.t) ? 0 : ls_tensor_dim(h.t, axis);
    const int64_t sizes[] = {all / 2, all - all / 2};
    ls_tensor *out[2] = {NULL};

    ls_split(at->c, h.t, sizes, 2, axis, out);
    for (size_t i = 0; i < 2 && ls_context_status(at->c, NULL) == LS_OK; i++) {
        keep(at, out[i], h.error);
    }
}

/* After a random state is restored, the same numbers must follow. */
static void run_redraw(place *at, const statement *s)
{
    const ls_shape shape = LS_SHAPE(3, 5);
    ls_random_state state;
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t[2];

    (void)s;
    ls_context_random_state(at->c, &state);
    t[0] = ls_random_uniform(at->c, LS_F32, shape, 0, 1);
    if (ls_context_set_random_state(at->c, &state, &err) != LS_OK) {
        complain(at->m, "statement %d: %s", at->at + 1, err.message);
    }
    t[1] = ls_random_uniform(at->c, LS_F32, shape, 0, 1);
    if (t[0] != NULL && t[1] != NULL &&
        memcmp(t[0]->data, t[1]->data, ls_tensor_bytes(t[0])) != 0) {
        complain(at->m, "statement %d: other numbers from the same position", at->at + 1);
    }
    keep(at, t[1], 0);
}

static void run_finish(place *at, const statement *s)
{
    ls_error err = LS_ERROR_INIT;

    (void)s;
    if (at->host) {
        ended(at, ls_context_finish(at->c, &err), &err);
        at->ntensors = at->ntapes = 0;
    }
}

const verb verbs_op[] = {
    {"op", "real bind seed u0 u1 u2 u3 odd", run_op, IN_STEP, {60, 25, 3, 25}},
    {"constant", "dtype rank d0 d1 d2 seed odd", run_constant, IN_STEP, {4, 4, 1, 4}},
    {"split", "t axis:2 seed", run_split, IN_STEP, {1, 1, 0, 1}},
    {"redraw", "", run_redraw, IN_STEP, {1, 1, 0, 1}},
    {"finish", "", run_finish, IN_HOST, {3, 2, 0, 2}},
};
const size_t count_op = LSI_COUNT_OF(verbs_op);
