/*
 * Reductions over any axes. Neighbouring axes are merged, then one run of reduced axes
 * after the other is taken away, the innermost first: each pass turns [outer, n, inner]
 * into [outer, inner]. Long passes are cut into blocks whose number depends on the shape
 * alone and whose results are joined in a binary tree, so that the bits do not depend on
 * how many threads took part.
 */
#include "kernel/simd/math.h"

enum {
    MAX_BLOCKS = 64, /* of one row or one set of columns */
    BLOCK = 16384,   /* elements worth a block of their own */
    TILE = 1024,     /* columns taken at a time: their results stay in the L1 cache */
    FEW_ROWS = 64    /* so few that their blocks are shared, not they themselves */
};

struct reducer {
    float (*row)(const float *x, int64_t n);
    /* y[c] of x[r * stride + c] over r < n, for c < width <= TILE */
    void (*columns)(float *y, const float *x, int64_t n, int64_t stride, int64_t width);
    void (*merge)(float *y, const float *x, int64_t n); /* NULL: cannot be cut */
};

/* Eight rows at once: the running result is read and written an eighth as often. */
LSI_INLINE vf join_8(enum lsi_join how, const float *x, int64_t stride, int64_t n)
{
    vf v[8];

    for (int r = 0; r < 8; r++) {
        v[r] = n == VW ? vload(x + r * stride) : vtail(x + r * stride, n);
    }
    return vjoin(how, vjoin(how, vjoin(how, v[0], v[1]), vjoin(how, v[2], v[3])),
                 vjoin(how, vjoin(how, v[4], v[5]), vjoin(how, v[6], v[7])));
}

LSI_INLINE void join_columns(enum lsi_join how, float *y, const float *x, int64_t n,
                             int64_t stride, int64_t width)
{
    const int64_t whole = width / VW * VW, rest = width - whole;
    int64_t r = 0;

    for (int64_t c = 0; c < width; c++) {
        y[c] = join_start(how);
    }
    for (; r + 8 <= n; r += 8) {
        const float *at = x + r * stride;

        for (int64_t c = 0; c < whole; c += VW) {
            vstore(y + c, vjoin(how, vload(y + c), join_8(how, at + c, stride, VW)));
        }
        if (rest != 0) {
            const vf v = join_8(how, at + whole, stride, rest);

            vtail_store(y + whole, vjoin(how, vtail(y + whole, rest), v), rest);
        }
    }
    for (; r < n; r++) {
        const float *at = x + r * stride;

        for (int64_t c = 0; c < width; c++) {
            y[c] = join(how, y[c], at[c]);
        }
    }
}

#define REDUCER(name, how)                                                               \
    static float name##_row(const float *x, int64_t n)                                   \
    {                                                                                    \
        return join_row(how, x, n);                                                      \
    }                                                                                    \
    static void name##_columns(float *y, const float *x, int64_t n, int64_t stride,      \
                               int64_t width)                                            \
    {                                                                                    \
        join_columns(how, y, x, n, stride, width);                                       \
    }                                                                                    \
    static void name##_merge(float *y, const float *x, int64_t n)                        \
    {                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                \
            y[i] = join(how, y[i], x[i]);                                                \
        }                                                                                \
    }                                                                                    \
    static const struct reducer name##_reducer = {name##_row, name##_columns,            \
                                                  name##_merge};

REDUCER(sum, LSI_JOIN_SUM)
REDUCER(prod, LSI_JOIN_PROD)
REDUCER(max, LSI_JOIN_MAX)
REDUCER(min, LSI_JOIN_MIN)

/* The largest, or 0 if that is infinite: what exponents are taken relative to. */
LSI_INLINE float finite_or_0(float x)
{
    return isfinite(x) ? x : 0.0F;
}

static float logsumexp_row(const float *x, int64_t n)
{
    const float top = finite_or_0(max_row(x, n));
    struct long_sum total = {0};
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        long_add(&total, vexp(vload(x + i) - top));
    }
    if (i < n) {
        long_add(&total, vfirst(vexp(vtail(x + i, n - i) - top), n - i, 0.0F));
    }
    return logf(long_total(&total)) + top;
}

static void logsumexp_columns(float *y, const float *x, int64_t n, int64_t stride,
                              int64_t width)
{
    float top[TILE + VW] = {0}, total[TILE + VW] = {0};

    max_columns(top, x, n, stride, width);
    for (int64_t c = 0; c < width; c++) {
        top[c] = finite_or_0(top[c]);
    }
    for (int64_t r = 0; r < n; r++) {
        const float *at = x + r * stride;
        int64_t c = 0;

        for (; c + VW <= width; c += VW) {
            vstore(total + c, vload(total + c) + vexp(vload(at + c) - vload(top + c)));
        }
        if (c < width) {
            const vf v = vtail(at + c, width - c);

            vstore(total + c, vload(total + c) + vexp(v - vload(top + c)));
        }
    }
    for (int64_t c = 0; c < width; c++) {
        y[c] = logf(total[c]) + top[c];
    }
}

static const struct reducer logsumexp_reducer = {logsumexp_row, logsumexp_columns, NULL};

struct pass {
    const struct reducer *how;
    const float *x;
    float *y, *partial;
    int64_t outer, n, inner;
    int64_t blocks; /* of the n; a matter of the shape alone */
    int64_t tiles;  /* of the inner axis */
};

/* Joins the blocks of one result, `width` floats each, in a binary tree; in place. */
static void join_blocks(const struct pass *p, float *partial, int64_t width)
{
    for (int64_t gap = 1; gap < p->blocks; gap *= 2) {
        for (int64_t b = 0; b + gap < p->blocks; b += 2 * gap) {
            p->how->merge(partial + b * width, partial + (b + gap) * width, width);
        }
    }
}

static void block_bounds(const struct pass *p, int64_t block, int64_t *begin,
                         int64_t *end)
{
    lsi_team_share(p->n, 8, (int)block, (int)p->blocks, begin, end);
}

static float reduce_block(const struct pass *p, int64_t row, int64_t block)
{
    int64_t begin = 0, end = 0;

    block_bounds(p, block, &begin, &end);
    return p->how->row(p->x + row * p->n + begin, end - begin);
}

static void run_rows(void *arg, int part, int parts)
{
    const struct pass *p = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(p->outer, 16, part, parts, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        float partial[MAX_BLOCKS];

        if (p->blocks == 1) {
            p->y[row] = p->how->row(p->x + row * p->n, p->n);
            continue;
        }
        for (int64_t b = 0; b < p->blocks; b++) {
            partial[b] = reduce_block(p, row, b);
        }
        join_blocks(p, partial, 1);
        p->y[row] = partial[0];
    }
}

static void run_row_blocks(void *arg, int part, int parts)
{
    const struct pass *p = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(p->outer * p->blocks, 1, part, parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        p->partial[i] = reduce_block(p, i / p->blocks, i % p->blocks);
    }
}

static void reduce_rows(const ls_op_call *k, struct pass *p)
{
    const int parts = lsi_parts(k, p->outer * (p->n / 8 + 4));
    float partial[FEW_ROWS * MAX_BLOCKS];

    if (p->how->merge != NULL) {
        p->blocks = LSI_MAX(1, LSI_MIN(MAX_BLOCKS, p->n / BLOCK));
    }
    if (p->outer >= FEW_ROWS || p->blocks == 1 || parts == 1) {
        lsi_spread(k, parts, run_rows, p);
        return;
    }
    p->partial = partial;
    lsi_spread(k, parts, run_row_blocks, p);
    for (int64_t row = 0; row < p->outer; row++) {
        join_blocks(p, partial + row * p->blocks, 1);
        p->y[row] = partial[row * p->blocks];
    }
}

static void run_columns(void *arg, int part, int parts)
{
    const struct pass *p = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(p->outer * p->blocks * p->tiles, 1, part, parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t result = i / p->tiles, block = result % p->blocks;
        const int64_t plane = result / p->blocks;
        int64_t row = 0, row_end = 0, column = 0, column_end = 0;

        block_bounds(p, block, &row, &row_end);
        lsi_team_share(p->inner, 16, (int)(i % p->tiles), (int)p->tiles, &column,
                       &column_end);
        if (column < column_end) {
            p->how->columns((p->partial != NULL ? p->partial : p->y) + result * p->inner +
                                column,
                            p->x + (plane * p->n + row) * p->inner + column,
                            row_end - row, p->inner, column_end - column);
        }
    }
}

static int64_t column_blocks(int64_t n, int64_t inner)
{
    const int64_t worth = LSI_MIN(n / 128, n * inner / BLOCK);
    const int64_t most = LSI_MIN(worth, MAX_BLOCKS);

    return LSI_MAX(most, 1);
}

static ls_status reduce_columns(ls_op_call *k, struct pass *p)
{
    const int parts = lsi_parts(k, p->outer * p->n * p->inner / 8);
    const size_t width = (size_t)p->inner;

    p->tiles = (p->inner + TILE - 17) / (TILE - 16); // shares may exceed by the grain
    p->blocks = p->how->merge != NULL ? column_blocks(p->n, p->inner) : 1;
    if (p->blocks == 1) {
        lsi_spread(k, parts, run_columns, p);
        return LS_OK;
    }
    p->partial = lsi_device_alloc(k->device, (size_t)(p->outer * p->blocks) * width * 4);
    if (p->partial == NULL) {
        return ls_op_fail(k, LS_RESOURCE_EXHAUSTED, "no memory for partial results");
    }
    lsi_spread(k, parts, run_columns, p);
    for (int64_t o = 0; o < p->outer; o++) {
        float *partial = p->partial + o * p->blocks * p->inner;

        join_blocks(p, partial, p->inner);
        memcpy(p->y + o * p->inner, partial, width * sizeof(float));
    }
    lsi_device_free(k->device, p->partial);
    return LS_OK;
}

/* The axes, outermost first, with neighbours of one kind merged. */
struct axes {
    int n;
    int64_t size[LS_MAX_DIMS];
    bool reduced[LS_MAX_DIMS];
};

static struct axes merge_axes(const ls_tensor *x, uint32_t mask)
{
    struct axes a = {0};

    for (int d = 0; d < x->ndim; d++) {
        const bool reduced = (mask >> d & 1U) != 0;

        if (x->dims[d] == 1) {
            continue;
        }
        if (a.n > 0 && a.reduced[a.n - 1] == reduced) {
            a.size[a.n - 1] *= x->dims[d];
        } else {
            a.size[a.n] = x->dims[d];
            a.reduced[a.n++] = reduced;
        }
    }
    return a;
}

/* Takes the innermost reduced run off `a`; false: there is none. */
static bool take_run(struct axes *a, struct pass *p)
{
    p->outer = p->inner = p->blocks = 1;
    p->partial = NULL;
    while (a->n > 0 && !a->reduced[a->n - 1]) {
        p->inner *= a->size[--a->n];
    }
    if (a->n == 0) {
        return false;
    }
    p->n = a->size[--a->n];
    for (int d = 0; d < a->n; d++) {
        p->outer *= a->size[d];
    }
    if (p->inner > 1) { // what is left of it is kept
        a->size[a->n] = p->inner;
        a->reduced[a->n++] = false;
    }
    return true;
}

static bool any_left(const struct axes *a)
{
    for (int d = 0; d < a->n; d++) {
        if (a->reduced[d]) {
            return true;
        }
    }
    return false;
}

static ls_status reduce(ls_op_call *k, const struct reducer *how)
{
    const lsi_reduce_attrs *attrs = k->attrs;
    struct axes a = merge_axes(k->in[0], attrs->mask);
    struct pass p = {.how = how, .x = lsi_in_f32(k, 0)};
    float *held = NULL; // what the pass before wrote
    ls_status st = LS_OK;

    if (!any_left(&a)) {
        memcpy(k->out[0]->data, p.x, (size_t)k->out[0]->count * sizeof(float));
        return LS_OK;
    }
    while (st == LS_OK && take_run(&a, &p)) {
        float *temporary = NULL;

        if (any_left(&a)) {
            temporary =
                lsi_device_alloc(k->device, (size_t)(p.outer * p.inner) * sizeof(float));
            if (temporary == NULL) {
                st = ls_op_fail(k, LS_RESOURCE_EXHAUSTED, "no memory between two axes");
                break;
            }
        }
        p.y = temporary != NULL ? temporary : lsi_out_f32(k, 0);
        if (p.inner == 1) {
            reduce_rows(k, &p);
        } else {
            st = reduce_columns(k, &p);
        }
        if (held != NULL) {
            lsi_device_free(k->device, held);
        }
        held = temporary;
        p.x = p.y;
    }
    if (held != NULL) {
        lsi_device_free(k->device, held);
    }
    return st;
}

/* Reductions of no element are left to the reference. */
static bool usable(const ls_op_call *k)
{
    return lsi_all_f32(k) && k->in[0]->count > 0;
}

ls_status LSI_SIMD(sum)(ls_op_call *k)
{
    return usable(k) ? reduce(k, &sum_reducer) : LS_UNIMPLEMENTED;
}

ls_status LSI_SIMD(prod)(ls_op_call *k)
{
    return usable(k) ? reduce(k, &prod_reducer) : LS_UNIMPLEMENTED;
}

ls_status LSI_SIMD(max)(ls_op_call *k)
{
    return usable(k) ? reduce(k, &max_reducer) : LS_UNIMPLEMENTED;
}

ls_status LSI_SIMD(min)(ls_op_call *k)
{
    return usable(k) ? reduce(k, &min_reducer) : LS_UNIMPLEMENTED;
}

ls_status LSI_SIMD(logsumexp)(ls_op_call *k)
{
    return usable(k) ? reduce(k, &logsumexp_reducer) : LS_UNIMPLEMENTED;
}

ls_status LSI_SIMD(mean)(ls_op_call *k)
{
    ls_status st = LS_UNIMPLEMENTED;

    if (usable(k)) {
        const int64_t n = k->in[0]->count / k->out[0]->count;
        float *y = lsi_out_f32(k, 0);

        st = reduce(k, &sum_reducer);
        for (int64_t i = 0; i < k->out[0]->count && st == LS_OK; i++) {
            y[i] /= (float)n;
        }
    }
    return st;
}
