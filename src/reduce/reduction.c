/*
 * Reductions over the buffers of all ranks, in the tree's order; names of reductions; the
 * choice of the element loops for this CPU.
 */
#include "reduce/reduction.h"

#include "reduce/reduction_loops.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <strings.h>

enum {
    BLOCK_BYTES = 4096, // of a partial sum: those of one tree stay in the cache
    DEEPEST = 32        // levels: enough for any number of ranks
};

extern const lsi_reduction_loops lsi_reduction_loops_baseline, lsi_reduction_loops_avx2,
    lsi_reduction_loops_avx512;

/* Chosen at the first use; the instruction set does not change after that. */
static _Atomic(const lsi_reduction_loops *) best;

static const lsi_reduction_loops *find_best(void)
{
    const char *cap = lsi_env("LS_ISA");
    lsi_isa isa = lsi_isa_best(), most;

    if (cap != NULL && lsi_isa_from_name(cap, &most) && most < isa) {
        isa = most;
    }
#if defined(__x86_64__)
    if (isa == LSI_ISA_AVX512) {
        return &lsi_reduction_loops_avx512;
    }
    if (isa == LSI_ISA_AVX2) {
        return &lsi_reduction_loops_avx2;
    }
#endif
    return &lsi_reduction_loops_baseline;
}

const lsi_reduction_loops *lsi_reduction_loops_best(void)
{
    const lsi_reduction_loops *adds = atomic_load_explicit(&best, memory_order_acquire);

    if (adds == NULL) {
        adds = find_best();
        atomic_store(&best, adds);
    }
    return adds;
}

static const char *const names[] = {"SUM", "MEAN", "MIN", "MAX", "PROD"};

const char *ls_reduce_name(ls_reduce op)
{
    return op >= LS_SUM && op <= LS_PROD ? names[op] : "?";
}

ls_status ls_reduce_from_name(const char *name, ls_reduce *out, ls_error *err)
{
    for (size_t i = 0; name != NULL && out != NULL && i < LSI_COUNT_OF(names); i++) {
        if (strcasecmp(name, names[i]) == 0) {
            *out = (ls_reduce)i;
            return LS_OK;
        }
    }
    return lsi_fail_kind(
        err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
        "there is no reduction \"%.40s\"; the reductions are SUM, MEAN, MIN, "
        "MAX and PROD",
        name != NULL ? name : "(null)");
}

ls_status lsi_reduce_check(ls_reduce op, ls_dtype dtype, ls_error *err)
{
    if (op < LS_SUM || op > LS_PROD) {
        return lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
            "%d is not a reduction; it must be LS_SUM, LS_MEAN, LS_MIN, LS_MAX "
            "or LS_PROD",
            (int)op);
    }
    if (!lsi_dtype_is_number(dtype)) {
        return lsi_fail(
            err, LS_INVALID_ARGUMENT, -1,
            "a reduction of %s: floats and integers can be reduced; convert it first",
            ls_dtype_name(dtype));
    }
    return LS_OK;
}

static bool is_half(ls_dtype dtype)
{
    return dtype == LS_F16 || dtype == LS_BF16;
}

size_t lsi_wide_size(ls_dtype dtype)
{
    return is_half(dtype) ? sizeof(float) : ls_dtype_size(dtype);
}

static enum lsi_add_type type_of(ls_dtype dtype)
{
    switch (dtype) {
    case LS_F64:
        return LSI_ADD_F64;
    case LS_I8:
        return LSI_ADD_I8;
    case LS_I16:
        return LSI_ADD_I16;
    case LS_I32:
        return LSI_ADD_I32;
    case LS_I64:
        return LSI_ADD_I64;
    case LS_U8:
        return LSI_ADD_U8;
    case LS_U16:
        return LSI_ADD_U16;
    case LS_U32:
        return LSI_ADD_U32;
    case LS_U64:
        return LSI_ADD_U64;
    case LS_F32:
    case LS_F16:
    case LS_BF16:
    case LS_BOOL:
    case LS_STRING:
        break;
    }
    return LSI_ADD_F32;
}

static enum lsi_add_op row_of(ls_reduce op)
{
    switch (op) {
    case LS_MIN:
        return LSI_ADD_MIN;
    case LS_MAX:
        return LSI_ADD_MAX;
    case LS_PROD:
        return LSI_ADD_PROD;
    case LS_SUM:
    case LS_MEAN:
        break;
    }
    return LSI_ADD_SUM;
}

/* One block of elements while its tree is added. */
struct tree {
    const lsi_reduction_loops *adds;
    const lsi_reduction *sum;
    enum lsi_add_op row;
    enum lsi_add_type type;
    size_t wide, narrow; // bytes of an element
    bool half;
    size_t count;
    int depth;                  // partial sums that wait for their right neighbour
    const void *parts[DEEPEST]; // the oldest first
    int leaves[DEEPEST];        // how many sources each holds
    unsigned char (*room)[BLOCK_BYTES]; // where part i is made
};

/* The partial sum of one source: itself, or its float32. */
static const void *widen_part(struct tree *t, const void *from, bool wide, size_t at)
{
    void *room = t->room[t->depth];

    if (wide || !t->half) {
        return (const char *)from + at * t->wide;
    }
    if (t->sum->dtype == LS_F16) {
        t->adds->from_f16(room, (const uint16_t *)from + at, t->count);
    } else {
        t->adds->from_bf16(room, (const uint16_t *)from + at, t->count);
    }
    return room;
}

/* Adds the last part to the one before it, into `to` or (NULL) that one's room. */
static void join_last(struct tree *t, void *to)
{
    const int left = t->depth - 2;
    void *target = to != NULL ? to : t->room[left];

    t->adds->pair[t->row][t->type](target, t->parts[left], t->parts[left + 1], t->count);
    t->parts[left] = target;
    t->leaves[left] += t->leaves[left + 1];
    t->depth--;
}

/* Rounds 16-bit floats; anything else is copied unless it is there already. */
static void store_part(const struct tree *t, const void *part, void *to, bool wide)
{
    if (wide || !t->half) {
        if (to != part) {
            memcpy(to, part, t->count * t->wide);
        }
    } else if (t->sum->dtype == LS_F16) {
        t->adds->to_f16(to, part, t->count);
    } else {
        t->adds->to_bf16(to, part, t->count);
    }
}

/* Divides the only part that is left; a source is copied first. */
static void divide_part(struct tree *t, void *to)
{
    void *target = to != NULL ? to : t->room[0];

    if (t->parts[0] != target) {
        memcpy(target, t->parts[0], t->count * t->wide);
        t->parts[0] = target;
    }
    t->adds->divide[t->type](target, t->sum->by, t->count);
}

/*
 * Sources come in the order of ranks. Two neighbours that hold equally many are joined at
 * once, as carries are in a binary number; what is left at the end is joined from the
 * right. That is the tree: level l adds rank r + 2^l into r. `to` as join_last().
 */
static inline void push_part(struct tree *t, const void *part, int leaves, void *to)
{
    t->parts[t->depth] = part;
    t->leaves[t->depth] = leaves;
    t->depth++;
    while (t->depth > 1 && t->leaves[t->depth - 2] == t->leaves[t->depth - 1]) {
        join_last(t, t->depth == 2 ? to : NULL);
    }
}

/* Joins what is left, divides, and writes the targets. */
static inline void finish_block(struct tree *t, size_t at, void *const *to, bool wide_to,
                                int m, void *direct)
{
    const size_t step = wide_to ? t->wide : t->narrow;
    void *first = (char *)to[0] + at * step;

    while (t->depth > 1) {
        join_last(t, t->depth == 2 ? direct : NULL);
    }
    LSI_ASSERT(t->parts[0] != NULL);
    if (t->sum->by != 1) {
        divide_part(t, direct);
    }
    store_part(t, t->parts[0], first, wide_to);
    for (int i = 1; i < m; i++) {
        memcpy((char *)to[i] + at * step, first, t->count * step);
    }
}

static void run_block(struct tree *t, const void *const *from, const bool *wide_from,
                      int n, size_t at, void *const *to, bool wide_to, int m)
{
    // The last addition writes to the first target, if that has the type of the sums.
    void *direct = wide_to || !t->half ? (char *)to[0] + at * t->wide : NULL;

    t->depth = 0;
    for (int r = 0; r < n; r++) {
        push_part(t, widen_part(t, from[r], wide_from != NULL && wide_from[r], at), 1,
                  r == n - 1 ? direct : NULL);
    }
    finish_block(t, at, to, wide_to, m, direct);
}

/* Writes the sum to two targets at once; to others it is copied while in the cache. */
static void run_pass(const lsi_reduction_loops *adds, const lsi_reduction *sum,
                     const void *const *from, int n, void *const *to, int m, size_t count)
{
    const enum lsi_add_type type = type_of(sum->dtype);
    const size_t size = ls_dtype_size(sum->dtype);
    const size_t block = m > 2 ? (size_t)2 * BLOCK_BYTES / size : count;

    for (size_t at = 0; at < count; at += block) {
        const size_t len = LSI_MIN(block, count - at), bytes = at * size;
        const void *sources[LSI_ADD_MOST];

        for (int r = 0; r < n; r++) {
            sources[r] = (const char *)from[r] + bytes;
        }
        adds->sum[type](sources, n, sum->by, (char *)to[0] + bytes,
                        m > 1 ? (char *)to[1] + bytes : NULL, len);
        for (int i = 2; i < m; i++) {
            memcpy((char *)to[i] + bytes, (const char *)to[0] + bytes, len * size);
        }
    }
}

/* Levels of a tree over n ranks, and one for the source that is being widened. */
static int levels_of(int n)
{
    int levels = 2;

    while (n > 1) {
        n = n / 2 + n % 2;
        levels++;
    }
    return levels;
}

enum { FEW_LEVELS = 8, MANY_LEVELS = DEEPEST };

static void run_blocks(struct tree *t, const void *const *from, const bool *wide_from,
                       int n, void *const *to, bool wide_to, int m, size_t count)
{
    const size_t block = BLOCK_BYTES / t->wide;

    for (size_t at = 0; at < count; at += block) {
        t->count = LSI_MIN(block, count - at);
        run_block(t, from, wide_from, n, at, to, wide_to, m);
    }
}

/* Sets all but the parts, which are large. */
static inline void begin_tree(struct tree *t, const lsi_reduction_loops *adds,
                              const lsi_reduction *sum)
{
    t->adds = adds;
    t->sum = sum;
    t->row = row_of(sum->op);
    t->type = type_of(sum->dtype);
    t->wide = lsi_wide_size(sum->dtype);
    t->narrow = ls_dtype_size(sum->dtype);
    t->half = is_half(sum->dtype);
    t->parts[0] = NULL;
}

static void run_tree(const lsi_reduction_loops *adds, const lsi_reduction *sum,
                     const void *const *from, const bool *wide_from, int n,
                     void *const *to, bool wide_to, int m, size_t count)
{
    struct tree t;

    begin_tree(&t, adds, sum);
    if (levels_of(n) <= FEW_LEVELS) {
        _Alignas(64) unsigned char room[FEW_LEVELS][BLOCK_BYTES];

        t.room = room;
        run_blocks(&t, from, wide_from, n, to, wide_to, m, count);
    } else {
        _Alignas(64) unsigned char room[MANY_LEVELS][BLOCK_BYTES];

        t.room = room;
        run_blocks(&t, from, wide_from, n, to, wide_to, m, count);
    }
}

LSI_HOT void lsi_reduction_run(const lsi_reduction *sum, const void *const *from,
                               const bool *wide_from, int n, void *const *to,
                               bool wide_to, int m, size_t count)
{
    const lsi_reduction_loops *adds = lsi_reduction_loops_best();

    LSI_ASSERT(n > 0 && m > 0);
    if (sum->op == LS_SUM && (sum->dtype == LS_F32 || sum->dtype == LS_F64) && n >= 2 &&
        n <= LSI_ADD_MOST) {
        run_pass(adds, sum, from, n, to, m, count);
    } else {
        run_tree(adds, sum, from, wide_from, n, to, wide_to, m, count);
    }
}

/*
 * Subtrees of several sizes are joined like single ids: each begins at a multiple of its
 * size, so the part before it is at least as large.
 */
static void run_partials_block(struct tree *t, const void *const *from, int holders,
                               int ids, size_t stride, size_t at, void *const *to, int m)
{
    void *direct = t->half ? NULL : (char *)to[0] + at * t->wide;
    lsi_partial_sum parts[LSI_PARTIALS_MOST];

    t->depth = 0;
    for (int h = 0; h < holders; h++) {
        const int n = lsi_partials_of(h * ids, (h + 1) * ids, parts);

        for (int i = 0; i < n; i++) {
            push_part(t, (const char *)from[h] + ((size_t)i * stride + at) * t->wide,
                      parts[i].ids, h == holders - 1 && i == n - 1 ? direct : NULL);
        }
    }
    finish_block(t, at, to, false, m, direct);
}

static void run_partials(struct tree *t, const void *const *from, int holders, int ids,
                         size_t stride, void *const *to, int m, size_t count)
{
    const size_t block = BLOCK_BYTES / t->wide;

    for (size_t at = 0; at < count; at += block) {
        t->count = LSI_MIN(block, count - at);
        run_partials_block(t, from, holders, ids, stride, at, to, m);
    }
}

void lsi_partials_reduce(const lsi_reduction *sum, const void *const *from, int holders,
                         int ids, size_t stride, void *const *to, int m, size_t count)
{
    struct tree t;

    begin_tree(&t, lsi_reduction_loops_best(), sum);
    LSI_ASSERT(holders > 0 && ids > 0 && m > 0);
    if ((ids & (ids - 1)) == 0 && !t.half) { // one subtree each, like single ids
        lsi_reduction_run(sum, from, NULL, holders, to, false, m, count);
    } else if (levels_of(holders * ids) <= FEW_LEVELS) {
        _Alignas(64) unsigned char room[FEW_LEVELS][BLOCK_BYTES];

        t.room = room;
        run_partials(&t, from, holders, ids, stride, to, m, count);
    } else {
        _Alignas(64) unsigned char room[MANY_LEVELS][BLOCK_BYTES];

        t.room = room;
        run_partials(&t, from, holders, ids, stride, to, m, count);
    }
}

void lsi_reduce_tree(ls_reduce op, const void *const *from, int n, void *to, size_t count,
                     ls_dtype dtype)
{
    const lsi_reduction sum = lsi_reduction_of(op, dtype, n);

    lsi_reduction_run(&sum, from, NULL, n, &to, false, 1, count);
}

lsi_reduction lsi_reduction_of(ls_reduce op, ls_dtype dtype, int ids)
{
    return (lsi_reduction){op == LS_MEAN ? LS_SUM : op, dtype, op == LS_MEAN ? ids : 1};
}

void lsi_reduction_join(const lsi_reduction *sum, void *left, const void *right,
                        size_t count)
{
    lsi_reduction_loops_best()->pair[row_of(sum->op)][type_of(sum->dtype)](left, left,
                                                                           right, count);
}

void lsi_reduction_divide(ls_dtype dtype, int by, void *data, size_t count)
{
    const lsi_reduction one = {LS_SUM, dtype, by};
    const void *from = data;

    if (by != 1 && count > 0) {
        lsi_reduction_run(&one, &from, NULL, 1, &data, false, 1, count);
    }
}
