/*
 * softmax(q k' scale) v without the matrix of scores: a block of queries is multiplied
 * with one block of keys after the other, and the maximum and the sum of each row are
 * updated. Blocks that a causal mask hides are skipped.
 */
#include "kernel/simd/attention.h"

enum { QUERY_BLOCK = 8 * GEMM_MR };

struct team_work {
    lsi_queue queue; /* of blocks of queries, `run` of them at a time */
    int64_t run;
    float *scratch;
    int64_t rows; /* queries at a time */
    int64_t scratch_each;
    lsi_attention a;
};

/* A member's scratch. */
struct space {
    float *keys, *values; /* in panels, of one head */
    float *scores;
    float *largest, *sum; /* of each row so far */
    float *rest;
    float *copy; /* of values, see pack_rows() */
    bool wild;   /* a hidden value of this head may not be finite */
};

static lsi_gemm score_product(const lsi_attention *a)
{
    return (lsi_gemm){
        .m = 1,
        .n = KEY_BLOCK,
        .k = a->d,
        .a = {.ld = a->q.row},
        .b = {.ld = a->k.row, .transposed = true},
        .ldc = SCORE_LD,
    };
}

static lsi_gemm value_product(const lsi_attention *a)
{
    return (lsi_gemm){
        .m = 1,
        .n = a->d,
        .k = KEY_BLOCK,
        .a = {.ld = SCORE_LD},
        .b = {.ld = a->v.row},
        .ldc = a->out.row,
    };
}

/* Lays out the scratch at `base`; with NULL it only counts. Returns the floats. */
static int64_t lay_out(const struct team_work *j, float *base, struct space *w)
{
    const lsi_attention *a = &j->a;
    const lsi_gemm s = score_product(a), v = value_product(a);
    const int64_t keys = (a->keys + KEY_BLOCK - 1) / KEY_BLOCK * KEY_BLOCK;
    const int64_t sizes[] = {
        aligned_floats(LSI_SIMD(gemm_packed)(a->d, keys)),
        aligned_floats(LSI_SIMD(gemm_packed)(keys, a->d)),
        j->rows * SCORE_LD,
        aligned_floats(j->rows),
        aligned_floats(j->rows),
        LSI_MAX(LSI_SIMD(gemm_scratch)(&s, j->rows, KEY_BLOCK),
                LSI_SIMD(gemm_scratch)(&v, j->rows, a->d)),
        a->causal ? aligned_floats(KEY_BLOCK * a->d) : 0,
    };
    float **const parts[] = {&w->keys, &w->values, &w->scores, &w->largest,
                             &w->sum,  &w->rest,   &w->copy};
    int64_t floats = 0;

    for (size_t i = 0; i < LSI_COUNT_OF(sizes); i++) {
        *parts[i] = base != NULL ? base + floats : NULL;
        floats += sizes[i];
    }
    return aligned_floats(floats);
}

static void pack_head(const lsi_attention *a, int64_t head, struct space *w)
{
    const lsi_matrix k = {head_row(&a->k, head, 0), a->k.row, true, NULL};

    LSI_SIMD(gemm_pack)(&k, a->d, a->keys, 0, a->keys, w->keys);
    w->wild = a->causal && !are_finite(&a->v, head, a->keys, a->d);
    for (int64_t key = 0; key < a->keys; key += KEY_BLOCK) {
        pack_rows(&a->v, head, key, LSI_MIN(KEY_BLOCK, a->keys - key), a->d,
                  w->wild ? w->copy : NULL,
                  w->values + key * LSI_SIMD(gemm_packed)(1, a->d));
    }
}

/* row[i] *= scale; the largest of them and `largest`. */
static float scale_row(float *row, int64_t n, float scale, float largest)
{
    vf best = vsplat(largest);
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        const vf v = vload(row + i) * scale;

        vstore(row + i, v);
        best = vmax(v, best);
    }
    if (i < n) {
        const vf v = vload_n(row + i, n - i) * scale;

        vstore_n(row + i, v, n - i);
        best = vmax(vfirst(v, n - i, largest), best);
    }
    return vmaximum(best);
}

/* row[i] = exp(row[i] - largest) for `n`, zero up to `width`; the sum. */
static float exp_row(float *row, int64_t n, int64_t width, float largest)
{
    vf sum = vzero();
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        const vf v = vexp_negative(vload(row + i) - largest);

        vstore(row + i, v);
        sum += v;
    }
    if (i < n) {
        const vf v = vexp_negative(vload_n(row + i, n - i) - largest);

        vstore_n(row + i, v, n - i);
        sum += vfirst(v, n - i, 0.0F);
    }
    memset(row + n, 0, (size_t)(width - n) * sizeof(float));
    return vsum(sum);
}

static void scale_floats(float *x, int64_t n, float by)
{
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        vstore(x + i, vload(x + i) * by);
    }
    if (i < n) {
        vstore_n(x + i, vload_n(x + i, n - i) * by, n - i);
    }
}

/* One block of scores becomes weights; what was summed before is brought to scale. */
static void soften(const struct team_work *j, const struct space *w, int64_t i0,
                   int64_t rows, int64_t key, int64_t width, float *out)
{
    for (int64_t r = 0; r < rows; r++) {
        float *row = w->scores + r * SCORE_LD;
        const int64_t n = visible(&j->a, i0 + r, key, width);
        const float before = w->largest[r];
        const float now = scale_row(row, n, j->a.scale, before);

        w->largest[r] = now;
        if (now > before && key > 0) {
            const float shrink = expf(before - now);

            w->sum[r] *= shrink;
            scale_floats(out + r * j->a.out.row, j->a.d, shrink);
        }
        w->sum[r] += exp_row(row, n, width, now);
    }
}

/* Adds the values that are not finite, for the queries that see them. */
static void add_wild_values(const struct team_work *j, const struct space *w,
                            int64_t head, int64_t i0, int64_t rows, int64_t key,
                            int64_t width)
{
    const lsi_attention *a = &j->a;

    for (int64_t r = 0; r < rows; r++) {
        const int64_t n = visible(a, i0 + r, key, width);

        for (int64_t i = 0; i < n; i++) {
            add_wild(head_row(&a->out, head, i0 + r), w->scores[r * SCORE_LD + i],
                     head_row(&a->v, head, key + i), a->d);
        }
    }
}

/* Queries i0 .. i0+rows-1 of a head whose keys and values are packed. */
static void attend(const struct team_work *j, const struct space *w, int64_t head,
                   int64_t i0, int64_t rows)
{
    const lsi_attention *a = &j->a;
    const int64_t end = a->causal ? LSI_MIN(i0 + rows, a->keys) : a->keys;
    float *out = head_row(&a->out, head, i0), *lse = a->lse->data;
    lsi_gemm s = score_product(a), v = value_product(a);

    for (int64_t r = 0; r < rows; r++) {
        w->largest[r] = -INFINITY;
        w->sum[r] = 0.0F;
    }
    s.a.data = head_row(&a->q, head, i0);
    s.c = w->scores;
    v.a.data = w->scores;
    v.c = out;
    s.m = rows;
    v.m = rows;
    for (int64_t key = 0; key < end; key += KEY_BLOCK) {
        const int64_t block = LSI_MIN(KEY_BLOCK, a->keys - key);
        const int64_t width = LSI_MIN(KEY_BLOCK, end - key);

        s.n = width;
        s.panels = w->keys + key * a->d;
        LSI_SIMD(gemm_block)(&s, 0, rows, 0, width, w->rest);
        soften(j, w, i0, rows, key, width, out);
        v.k = width;
        v.depth = block;
        v.panels = w->values + key * LSI_SIMD(gemm_packed)(1, a->d);
        v.accumulate = key > 0;
        LSI_SIMD(gemm_block)(&v, 0, rows, 0, a->d, w->rest);
        if (w->wild) {
            add_wild_values(j, w, head, i0, rows, key, width);
        }
    }
    for (int64_t r = 0; r < rows; r++) {
        scale_floats(out + r * a->out.row, a->d, 1.0F / w->sum[r]);
        lse[head * a->n + i0 + r] = w->largest[r] + logf(w->sum[r]);
    }
}

static void attend_part(void *arg, int part, int parts)
{
    struct team_work *j = arg;
    const int64_t blocks = (j->a.n + j->rows - 1) / j->rows;
    int64_t packed = -1;
    struct space w = {0};

    (void)parts;
    lay_out(j, j->scratch + part * j->scratch_each, &w);
    for (int64_t q = lsi_queue_take(&j->queue, part); q >= 0;
         q = lsi_queue_take(&j->queue, part)) {
        for (int64_t i = q * j->run; i < (q + 1) * j->run; i++) {
            const int64_t head = i / blocks, i0 = i % blocks * j->rows;

            if (head != packed) {
                pack_head(&j->a, head, &w);
                packed = head;
            }
            attend(j, &w, head, i0, LSI_MIN(j->rows, j->a.n - i0));
        }
    }
}

ls_status LSI_SIMD(attention)(ls_op_call *k)
{
    struct team_work j = {.a = lsi_attention_of(k, false)};
    struct space unused = {0};
    size_t bytes = 0;
    int64_t blocks = 0, pieces = 0;
    int parts = 1;

    if (!lsi_all_f32(k) || k->out[0]->count == 0 || j.a.keys == 0) {
        return LS_UNIMPLEMENTED;
    }
    j.rows = query_block(j.a.n, QUERY_BLOCK);
    blocks = (j.a.n + j.rows - 1) / j.rows;
    parts = lsi_parts(k, k->out[0]->count * j.a.keys / VW / 2);
    // Whole heads, each packed once, if there are enough of them.
    j.run = j.a.heads >= 4 * (int64_t)parts ? blocks : 1;
    pieces = j.a.heads * blocks / j.run;
    parts = (int)LSI_MIN(parts, pieces);
    lsi_queue_init(&j.queue, pieces, parts);
    j.scratch_each = lay_out(&j, NULL, &unused);
    bytes = (size_t)(j.scratch_each * parts) * sizeof(float);
    j.scratch = lsi_device_alloc(k->device, bytes);
    if (j.scratch == NULL) {
        return lsi_fail_memory(k->err, "attention", bytes);
    }
    lsi_team_run(k->team, parts, attend_part, &j);
    lsi_device_free(k->device, j.scratch);
    return LS_OK;
}
