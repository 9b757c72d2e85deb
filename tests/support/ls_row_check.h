/*
 * For the tests of operation rows: a context that runs the reference kernels, random
 * tensors, and a row's gradient against central differences without a tape in between.
 */
#ifndef LS_ROW_CHECK_H
#define LS_ROW_CHECK_H
#include "ls_test.h"

#include "op/op.h"

/* clang-format off */
#define F32(c, shape, ...) (ls_constant)(c, LS_F32, shape, (const float[]){__VA_ARGS__})
#define ZEROS(c, shape) (ls_constant)(c, LS_F32, shape, NULL)
#define D(...) ((const double[]){__VA_ARGS__})
/* clang-format on */

/* A context on a device of its own, with the reference kernels only. */
static inline ls_context *lst_open(ls_runtime **rt)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_context *c = NULL;
    ls_device *dev;

    opts.threads = 1;
    if (ls_runtime_create(&opts, rt, NULL) != LS_OK) {
        abort();
    }
    dev = ls_runtime_device(*rt, 0);
    dev->isa = LSI_ISA_REF;
    dev->dnnl = false;
    if (ls_context_open(dev, NULL, &c, NULL) != LS_OK) {
        abort();
    }
    return c;
}

/* Ends the step, which must not have failed, and closes the context. */
static inline void lst_close(ls_context *c, ls_runtime *rt)
{
    ls_error err = LS_ERROR_INIT;
    const ls_status st = ls_context_finish(c, &err);

    if (st != LS_OK) {
        (void)fprintf(stderr, "the step failed: %s\n", err.message);
    }
    LST_CHECK(st == LS_OK);
    ls_context_close(c);
    ls_runtime_release(rt);
}

/* Checks that the step has failed with `code` and a message with `word`, and ends it. */
#define LST_STEP_FAILS(c, code, word)                                                    \
    do {                                                                                 \
        ls_error lst_e_ = LS_ERROR_INIT;                                                 \
        LST_FAILS(ls_context_finish(c, &lst_e_), code, lst_e_, word);                    \
    } while (0)

/* Element `i` of a floating tensor; NaN: there is none. */
static inline double lst_at(const ls_tensor *t, int64_t i)
{
    if (t == NULL || i < 0 || i >= t->count) {
        return NAN;
    }
    switch ((ls_dtype)t->dtype) {
    case LS_F64:
        return ((const double *)t->data)[i];
    case LS_F16:
        return (double)lsi_f16_to_f32(((const uint16_t *)t->data)[i]);
    case LS_BF16:
        return (double)lsi_bf16_to_f32(((const uint16_t *)t->data)[i]);
    default:
        return (double)((const float *)t->data)[i];
    }
}

/* True if `t` has the shape and, to `tol`, the elements of `want`. */
static inline bool lst_holds(const ls_tensor *t, ls_shape shape, const double *want,
                             double tol)
{
    bool same = t != NULL;

    if (same) {
        const ls_shape s = ls_tensor_shape(t);

        same = ls_shape_equal(&s, &shape);
    }
    for (int64_t i = 0; same && i < t->count; i++) {
        same = lst_near(lst_at(t, i), want[i], tol, tol);
    }
    return same;
}

/* A float64 tensor of numbers in [lo, hi). */
static inline ls_tensor *lst_random_f64(ls_context *c, ls_shape shape, double lo,
                                        double hi, uint64_t *seed)
{
    ls_tensor *t = (ls_constant)(c, LS_F64, shape, NULL);

    for (int64_t i = 0; t != NULL && i < t->count; i++) {
        const double share = (double)(lst_random(seed) >> 11) / 9007199254740992.0;

        ((double *)t->data)[i] = lo + (hi - lo) * share;
    }
    return t;
}

/* A call as ls_op_apply() made it, found by the recorder's hook. */
typedef struct lst_call {
    const ls_op *op;
    ls_tensor *in[8];
    size_t nin;
    size_t attrs_size;
    uint64_t attrs[64];
} lst_call;

static inline void lst_record(ls_context *c, const ls_op_call *k, size_t attrs_size)
{
    lst_call *call = c->recorder.self;

    if (lsi_call_tapes(c, k) == 0) {
        return;
    }
    LSI_ASSERT(k->nin <= LSI_COUNT_OF(call->in) && attrs_size <= sizeof call->attrs);
    call->op = k->op;
    call->nin = k->nin;
    memcpy(call->in, k->in, k->nin * sizeof(ls_tensor *));
    call->attrs_size = attrs_size;
    if (attrs_size > 0) {
        memcpy(call->attrs, k->attrs, attrs_size);
    }
}

static inline void lst_nowhere(ls_context *c, const char *file, int line)
{
    (void)c;
    (void)file;
    (void)line;
}

static inline void lst_forget(ls_context *c)
{
    c->recording = 0;
}

/* Records the next operation on `x` in `call`. */
static inline void lst_watch(ls_context *c, ls_tensor *x, lst_call *call)
{
    memset(call, 0, sizeof *call);
    c->recorder = (lsi_recorder){lst_record, lst_nowhere, lst_forget, NULL, call};
    c->recording = 1;
    x->tapes = 1;
}

/* sum over the outputs of `mask` and their elements of output * weight */
static inline double lst_weighted(ls_context *c, const lst_call *call,
                                  ls_tensor *const *in, unsigned mask,
                                  ls_tensor *const *weights)
{
    ls_tensor *outs[LSI_MAX_OUTPUTS] = {NULL};
    double sum = 0;

    ls_op_apply(c, call->op, in, call->nin, call->attrs, call->attrs_size, outs);
    for (int o = 0; o < call->op->outputs; o++) {
        for (int64_t i = 0; (mask >> o & 1) != 0 && outs[o] && i < outs[o]->count; i++) {
            sum += lst_at(outs[o], i) * lst_at(weights[o], i);
        }
    }
    return sum;
}

/* The central difference at element `e` of input `i`. */
static inline double lst_difference(ls_context *c, const lst_call *call, size_t i,
                                    int64_t e, unsigned mask, ls_tensor *const *weights)
{
    const double step = 1e-5;
    double value[2] = {0, 0};

    for (int side = 0; side < 2; side++) {
        ls_tensor *in[8];
        ls_tensor *moved =
            (ls_constant)(c, LS_F64, ls_tensor_shape(call->in[i]), call->in[i]->data);

        memcpy(in, call->in, sizeof in);
        if (moved == NULL) {
            return NAN;
        }
        ((double *)moved->data)[e] += side == 0 ? step : -step;
        in[i] = moved;
        value[side] = lst_weighted(c, call, in, mask, weights);
    }
    return (value[0] - value[1]) / (2 * step);
}

/*
 * Checks the float64 gradient `g` of input `i` (NULL: zeros) against central differences.
 */
static inline void lst_compare(ls_context *c, const lst_call *call, size_t i,
                               const ls_tensor *g, unsigned mask,
                               ls_tensor *const *weights)
{
    const ls_shape want = ls_tensor_shape(call->in[i]);
    const ls_shape have = g != NULL ? ls_tensor_shape(g) : want;

    LST_CHECK(ls_shape_equal(&want, &have));
    for (int64_t e = 0; e < call->in[i]->count; e++) {
        const double numeric = lst_difference(c, call, i, e, mask, weights);
        const double exact = g != NULL ? lst_at(g, e) : 0;

        if (!lst_near(exact, numeric, 1e-6, 1e-7)) {
            (void)fprintf(stderr, "%s: input %zu, element %lld: %.9g, differences %.9g\n",
                          call->op->name, i, (long long)e, exact, numeric);
            LST_CHECK(false);
            return;
        }
    }
}

/*
 * Checks the gradient of the call recorded by lst_watch() for every float64 input, with
 * gradients for the outputs of `mask` (bit o: output o).
 */
static inline void lst_check_row(ls_context *c, const lst_call *call, unsigned mask)
{
    ls_tensor *outs[LSI_MAX_OUTPUTS] = {NULL}, *gout[LSI_MAX_OUTPUTS] = {NULL};
    ls_tensor *gin[8] = {NULL}, *in[8];
    uint64_t attrs[64];
    uint64_t seed = 99;
    ls_op_node n;

    c->recording = 0;
    LST_CHECK(call->op != NULL);
    if (call->op == NULL) {
        return;
    }
    memcpy(in, call->in, sizeof in);
    memcpy(attrs, call->attrs, sizeof attrs);
    ls_op_apply(c, call->op, in, call->nin, attrs, call->attrs_size, outs);
    for (int o = 0; o < call->op->outputs; o++) {
        if ((mask >> o & 1) != 0 && outs[o] != NULL) {
            gout[o] = lst_random_f64(c, ls_tensor_shape(outs[o]), -1, 1, &seed);
        }
    }
    memset(&n, 0, sizeof n);
    n.op = call->op;
    n.nout = (uint16_t)call->op->outputs;
    n.nin = (uint32_t)call->nin;
    n.in = in;
    n.out = outs;
    n.attrs = attrs;
    n.needs = (UINT64_C(1) << call->nin) - 1;
    call->op->gradient(c, &n, gout, gin);
    LST_CHECK(ls_context_status(c, NULL) == LS_OK);
    for (size_t i = 0; i < call->nin && ls_context_status(c, NULL) == LS_OK; i++) {
        if (in[i]->dtype == LS_F64) {
            lst_compare(c, call, i, gin[i], mask, gout);
        }
    }
}
#endif
