/*
 * The gradient of attention. Weights are computed again from the scores and the saved
 * logsumexp, block by block. A head is summed by one member, queries in order.
 *
 *     w = exp(q k' scale - lse)     dv = w' g
 *     s = w (g v' - sum(g out)) scale
 *     dq = s k                      dk = s' q
 */
#include "kernel/simd/attention.h"

enum { QUERY_BLOCK = VW == 4 ? 64 : 96 };

struct team_work {
    lsi_attention a;
    float *scratch;
    int64_t rows; /* queries at a time */
    int64_t scratch_each;
    lsi_queue heads;
};

/* A member's scratch. */
struct space {
    float *keys, *values;      /* transposed, in panels, of one head */
    float *key_rows;           /* keys as they are, in panels, a block after the other */
    float *queries, *gradient; /* of the present queries, in panels */
    float *weights, *scores;
    float *dots; /* sum(g out) of each query */
    float *rest;
    float *copy;    /* of rows, see pack_rows() */
    bool wild_keys; /* a hidden key of this head may not be finite */
    bool wild;      /* nor that, nor one of the present queries and gradients */
};

/* The five products, as wide as they get. */
struct products {
    lsi_gemm weights; /* q k' */
    lsi_gemm scores;  /* g v' */
    lsi_gemm dv;      /* w' g */
    lsi_gemm dk;      /* s' q */
    lsi_gemm dq;      /* s k */
};

static struct products products_of(const lsi_attention *a, int64_t rows)
{
    return (struct products){
        .weights = {.m = rows,
                    .n = KEY_BLOCK,
                    .k = a->d,
                    .a = {.ld = a->q.row},
                    .ldc = SCORE_LD},
        .scores = {.m = rows,
                   .n = KEY_BLOCK,
                   .k = a->d,
                   .a = {.ld = a->g.row},
                   .ldc = SCORE_LD},
        .dv = {.m = KEY_BLOCK,
               .n = a->d,
               .k = rows,
               .a = {.ld = SCORE_LD, .transposed = true},
               .ldc = a->dv.row,
               .accumulate = true},
        .dk = {.m = KEY_BLOCK,
               .n = a->d,
               .k = rows,
               .a = {.ld = SCORE_LD, .transposed = true},
               .ldc = a->dk.row,
               .accumulate = true},
        .dq = {.m = rows,
               .n = a->d,
               .k = KEY_BLOCK,
               .a = {.ld = SCORE_LD},
               .ldc = a->dq.row},
    };
}

static int64_t product_scratch(const lsi_attention *a, int64_t rows)
{
    const struct products p = products_of(a, rows);
    const lsi_gemm *all[] = {&p.weights, &p.scores, &p.dv, &p.dk, &p.dq};
    int64_t most = 0;

    for (size_t i = 0; i < LSI_COUNT_OF(all); i++) {
        most = LSI_MAX(most, LSI_SIMD(gemm_scratch)(all[i], all[i]->m, all[i]->n));
    }
    return most;
}

/* Lays out the scratch at `base`; with NULL it only counts. Returns the floats. */
static int64_t lay_out(const struct team_work *j, float *base, struct space *w)
{
    const lsi_attention *a = &j->a;
    const int64_t keys = (a->keys + KEY_BLOCK - 1) / KEY_BLOCK * KEY_BLOCK;
    const int64_t sizes[] = {
        aligned_floats(LSI_SIMD(gemm_packed)(a->d, keys)),
        aligned_floats(LSI_SIMD(gemm_packed)(a->d, keys)),
        aligned_floats(LSI_SIMD(gemm_packed)(keys, a->d)),
        aligned_floats(LSI_SIMD(gemm_packed)(j->rows, a->d)),
        aligned_floats(LSI_SIMD(gemm_packed)(j->rows, a->d)),
        j->rows * SCORE_LD,
        j->rows * SCORE_LD,
        aligned_floats(j->rows),
        product_scratch(a, j->rows),
        a->causal ? aligned_floats(LSI_MAX(KEY_BLOCK, j->rows) * a->d) : 0,
    };
    float **const parts[] = {
        &w->keys,    &w->values, &w->key_rows, &w->queries, &w->gradient,
        &w->weights, &w->scores, &w->dots,     &w->rest,    &w->copy,
    };
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
    const lsi_matrix v = {head_row(&a->v, head, 0), a->v.row, true, NULL};

    LSI_SIMD(gemm_pack)(&k, a->d, a->keys, 0, a->keys, w->keys);
    LSI_SIMD(gemm_pack)(&v, a->d, a->keys, 0, a->keys, w->values);
    w->wild_keys = a->causal && !are_finite(&a->k, head, a->keys, a->d);
    for (int64_t key = 0; key < a->keys; key += KEY_BLOCK) {
        pack_rows(&a->k, head, key, LSI_MIN(KEY_BLOCK, a->keys - key), a->d,
                  w->wild_keys ? w->copy : NULL,
                  w->key_rows + key * LSI_SIMD(gemm_packed)(1, a->d));
    }
}

static float dot(const float *x, const float *y, int64_t n)
{
    vf sum = vzero();
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        sum += vload(x + i) * vload(y + i);
    }
    if (i < n) {
        sum += vload_n(x + i, n - i) * vload_n(y + i, n - i);
    }
    return vsum(sum);
}

/* Scores of a row become weights, and products with values gradients of the scores. */
static void soften_row(float *w, float *s, int64_t n, int64_t width, float scale,
                       float lse, float dots)
{
    for (int64_t i = 0; i < n; i += VW) {
        const int64_t some = LSI_MIN(n - i, VW);
        const vf weight = vexp_negative(vload_n(w + i, some) * scale - lse);
        const vf score = weight * (vload_n(s + i, some) - dots) * scale;

        vstore_n(w + i, weight, some);
        vstore_n(s + i, score, some);
    }
    memset(w + n, 0, (size_t)(width - n) * sizeof(float));
    memset(s + n, 0, (size_t)(width - n) * sizeof(float));
}

/* Adds the rows that are not finite, for the pairs that see each other. */
static void add_wild_rows(const struct team_work *j, const struct space *w, int64_t head,
                          int64_t i0, int64_t rows, int64_t key, int64_t width)
{
    const lsi_attention *a = &j->a;

    for (int64_t r = 0; r < rows; r++) {
        const int64_t n = visible(a, i0 + r, key, width);
        const float *weights = w->weights + r * SCORE_LD;
        const float *scores = w->scores + r * SCORE_LD;

        for (int64_t i = 0; i < n; i++) {
            add_wild(head_row(&a->dv, head, key + i), weights[i],
                     head_row(&a->g, head, i0 + r), a->d);
            add_wild(head_row(&a->dk, head, key + i), scores[i],
                     head_row(&a->q, head, i0 + r), a->d);
            add_wild(head_row(&a->dq, head, i0 + r), scores[i],
                     head_row(&a->k, head, key + i), a->d);
        }
    }
}

/* What queries i0 .. give to keys key .. key+width-1, and get from them. */
static void meet(const struct team_work *j, const struct space *w, int64_t head,
                 int64_t i0, int64_t rows, int64_t key, int64_t width)
{
    const lsi_attention *a = &j->a;
    const float *lse = (const float *)a->lse->data + head * a->n + i0;
    struct products p = products_of(a, rows);

    p.weights.n = width;
    p.weights.a.data = head_row(&a->q, head, i0);
    p.weights.panels = w->keys + key * a->d;
    p.weights.c = w->weights;
    LSI_SIMD(gemm_block)(&p.weights, 0, rows, 0, width, w->rest);
    p.scores.n = width;
    p.scores.a.data = head_row(&a->g, head, i0);
    p.scores.panels = w->values + key * a->d;
    p.scores.c = w->scores;
    LSI_SIMD(gemm_block)(&p.scores, 0, rows, 0, width, w->rest);
    for (int64_t r = 0; r < rows; r++) {
        soften_row(w->weights + r * SCORE_LD, w->scores + r * SCORE_LD,
                   visible(a, i0 + r, key, width), width, a->scale, lse[r], w->dots[r]);
    }
    p.dv.m = width;
    p.dv.a.data = w->weights;
    p.dv.panels = w->gradient;
    p.dv.c = head_row(&a->dv, head, key);
    LSI_SIMD(gemm_block)(&p.dv, 0, width, 0, a->d, w->rest);
    p.dk.m = width;
    p.dk.a.data = w->scores;
    p.dk.panels = w->queries;
    p.dk.c = head_row(&a->dk, head, key);
    LSI_SIMD(gemm_block)(&p.dk, 0, width, 0, a->d, w->rest);
    p.dq.k = width;
    p.dq.depth = LSI_MIN(KEY_BLOCK, a->keys - key);
    p.dq.a.data = w->scores;
    p.dq.panels = w->key_rows + key * LSI_SIMD(gemm_packed)(1, a->d);
    p.dq.c = head_row(&a->dq, head, i0);
    p.dq.accumulate = key > 0;
    LSI_SIMD(gemm_block)(&p.dq, 0, rows, 0, a->d, w->rest);
    if (w->wild) {
        add_wild_rows(j, w, head, i0, rows, key, width);
    }
}

/*
 * Packs queries i0 .. and their gradients, and computes sum(g out) of each. A gradient
 * that is not finite shows in that sum, and a query in its logsumexp: all its scores are
 * infinite or NaN.
 */
static void pack_queries(const struct team_work *j, struct space *w, int64_t head,
                         int64_t i0, int64_t rows)
{
    const lsi_attention *a = &j->a;
    const float *lse = (const float *)a->lse->data + head * a->n + i0;
    bool finite = true;
    float *copy = NULL;

    for (int64_t r = 0; r < rows; r++) {
        w->dots[r] =
            dot(head_row(&a->g, head, i0 + r), head_row(&a->out, head, i0 + r), a->d);
        finite = finite && isfinite(w->dots[r]) && isfinite(lse[r]);
    }
    w->wild = w->wild_keys || (a->causal && !finite);
    copy = w->wild ? w->copy : NULL;
    pack_rows(&a->q, head, i0, rows, a->d, copy, w->queries);
    pack_rows(&a->g, head, i0, rows, a->d, copy, w->gradient);
}

static void run_head(const struct team_work *j, struct space *w, int64_t head)
{
    const lsi_attention *a = &j->a;

    pack_head(a, head, w);
    for (int64_t i = 0; i < a->keys; i++) {
        memset(head_row(&a->dk, head, i), 0, (size_t)a->d * sizeof(float));
        memset(head_row(&a->dv, head, i), 0, (size_t)a->d * sizeof(float));
    }
    for (int64_t i0 = 0; i0 < a->n; i0 += j->rows) {
        const int64_t rows = LSI_MIN(j->rows, a->n - i0);
        const int64_t end = a->causal ? LSI_MIN(i0 + rows, a->keys) : a->keys;

        pack_queries(j, w, head, i0, rows);
        for (int64_t key = 0; key < end; key += KEY_BLOCK) {
            meet(j, w, head, i0, rows, key, LSI_MIN(KEY_BLOCK, end - key));
        }
    }
}

static void run_part(void *arg, int part, int parts)
{
    struct team_work *j = arg;
    struct space w = {0};

    (void)parts;
    lay_out(j, j->scratch + part * j->scratch_each, &w);
    for (int64_t head = lsi_queue_take(&j->heads, part); head >= 0;
         head = lsi_queue_take(&j->heads, part)) {
        run_head(j, &w, head);
    }
}

ls_status LSI_SIMD(attention_grad)(ls_op_call *k)
{
    struct team_work j = {.a = lsi_attention_of(k, true)};
    struct space unused = {0};
    size_t bytes = 0;
    int parts = 1;

    if (!lsi_all_f32(k) || k->in[0]->count == 0 || j.a.keys == 0) {
        return LS_UNIMPLEMENTED;
    }
    j.rows = query_block(j.a.n, QUERY_BLOCK);
    parts =
        (int)LSI_MIN(lsi_parts(k, j.a.heads * j.a.n * j.a.d * j.a.keys / VW), j.a.heads);
    lsi_queue_init(&j.heads, j.a.heads, parts);
    j.scratch_each = lay_out(&j, NULL, &unused);
    bytes = (size_t)(j.scratch_each * parts) * sizeof(float);
    j.scratch = lsi_device_alloc(k->device, bytes);
    if (j.scratch == NULL) {
        return lsi_fail_memory(k->err, "gradient of attention", bytes);
    }
    lsi_team_run(k->team, parts, run_part, &j);
    lsi_device_free(k->device, j.scratch);
    return LS_OK;
}
