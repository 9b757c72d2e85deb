/* matmul and dense: products of matrices, batches of them, rows of them. */
#include "kernel/simd/gemm.h"

/* How the batch axes of the result lie in the operands: a size 1 repeats. */
struct batch {
    int ndim;
    int64_t dims[LS_MAX_DIMS], a_step[LS_MAX_DIMS], b_step[LS_MAX_DIMS];
    int64_t c_step;
    const float *a, *b;
    float *c;
};

/* Steps of `t` for each batch axis of the result; the number of its own matrices. */
static int64_t batch_steps(const ls_tensor *t, const ls_tensor *y, int64_t *steps)
{
    int64_t step = t->dims[t->ndim - 1] * t->dims[t->ndim - 2], count = 1;

    for (int i = y->ndim - 3; i >= 0; i--) {
        const int own = i - (y->ndim - t->ndim);
        const int64_t size = own >= 0 ? t->dims[own] : 1;

        steps[i] = size == 1 ? 0 : step;
        step *= size;
        count *= size;
    }
    return count;
}

static void choose_matrices(const void *ctx, int64_t i, lsi_gemm *g)
{
    const struct batch *s = ctx;

    g->a.data = s->a;
    g->b.data = s->b;
    g->c = s->c + i * s->c_step;
    for (int d = s->ndim - 1; d >= 0; d--) {
        const int64_t at = i % s->dims[d];

        g->a.data += at * s->a_step[d];
        g->b.data += at * s->b_step[d];
        i /= s->dims[d];
    }
}

/*
 * One matrix on the right for the whole batch: the rows of all matrices on the left are
 * the rows of one tall one.
 */
static ls_status multiply_tall(ls_op_call *k, lsi_gemm *g, int64_t batch)
{
    g->m *= batch;
    return LSI_SIMD(gemm_run)(k, g, 1, NULL, NULL);
}

static ls_status fill_zero(ls_op_call *k)
{
    memset(k->out[0]->data, 0, (size_t)k->out[0]->count * sizeof(float));
    return LS_OK;
}

ls_status LSI_SIMD(matmul)(ls_op_call *k)
{
    const lsi_matmul_attrs *at = k->attrs;
    const ls_tensor *a = k->in[0], *b = k->in[1];
    ls_tensor *y = k->out[0];

    if (!lsi_all_f32(k)) {
        return LS_UNIMPLEMENTED;
    }
    lsi_gemm g = {
        .m = y->dims[y->ndim - 2],
        .n = y->dims[y->ndim - 1],
        .k = a->dims[a->ndim - (at->ta ? 2 : 1)],
        .a = {.data = a->data, .ld = a->dims[a->ndim - 1], .transposed = at->ta},
        .b = {.data = b->data, .ld = b->dims[b->ndim - 1], .transposed = at->tb},
        .c = y->data,
        .ldc = y->dims[y->ndim - 1],
    };
    struct batch s = {
        .ndim = y->ndim - 2,
        .c_step = g.m * g.n,
        .a = a->data,
        .b = b->data,
        .c = y->data,
    };

    if (y->count == 0) {
        return LS_OK;
    }
    if (g.k == 0) {
        return fill_zero(k);
    }
    const int64_t batch = y->count / (g.m * g.n);

    memcpy(s.dims, y->dims, (size_t)s.ndim * sizeof(s.dims[0]));
    const int64_t own_a = batch_steps(a, y, s.a_step);
    const int64_t own_b = batch_steps(b, y, s.b_step);

    if (own_b == 1 && own_a == batch && !at->ta) {
        return multiply_tall(k, &g, batch);
    }
    return LSI_SIMD(gemm_run)(k, &g, batch, choose_matrices, &s);
}

ls_status LSI_SIMD(dense)(ls_op_call *k)
{
    const lsi_matmul_attrs *at = k->attrs;
    const ls_tensor *w = k->in[1];
    const ls_tensor *y = k->out[0];

    if (!lsi_all_f32(k) || w->dims[0] == 0) {
        return LS_UNIMPLEMENTED;
    }
    if (y->count == 0) {
        return LS_OK;
    }
    const lsi_gemm g = {
        .m = y->count / w->dims[1],
        .n = w->dims[1],
        .k = w->dims[0],
        .a = {.data = k->in[0]->data, .ld = w->dims[0]},
        .b = {.data = w->data, .ld = w->dims[1]},
        .c = y->data,
        .ldc = w->dims[1],
        .bias = k->nin > 2 ? lsi_in_f32(k, 2) : NULL,
        .activation = at->activation,
    };

    return LSI_SIMD(gemm_run)(k, &g, 1, NULL, NULL);
}
