/* How a product, or a batch of them, is cut among the members of a team. */
#include "kernel/simd/gemm.h"

/* Nanoseconds are counted at this many multiplications and additions each. */
enum { FLOPS_PER_NS = 6 * VW };

struct job {
    const lsi_gemm *g;
    int64_t batch;
    void (*at)(const void *ctx, int64_t i, lsi_gemm *g);
    const void *ctx;
    int by_batch, by_rows, by_cols; /* parts in each direction */
    float *scratch;
    int64_t scratch_each;
};

/*
 * Rows or columns? Each cut makes its neighbours pack the other matrix again, so the
 * squarest pieces are the cheapest; but none may be left with nothing.
 */
static void cut(struct job *j, int parts)
{
    const int64_t row_units = (j->g->m + GEMM_MR - 1) / GEMM_MR;
    const int64_t col_units = (j->g->n + GEMM_NR - 1) / GEMM_NR;
    double best = 0;

    j->by_batch = 1;
    j->by_rows = 1;
    j->by_cols = 1;
    if (j->batch >= 4 * (int64_t)parts || j->batch == parts) {
        j->by_batch = parts;
        return;
    }
    for (int rows = 1; rows <= parts; rows++) {
        const int cols = parts / rows;
        const int64_t r = (row_units + rows - 1) / rows,
                      c = (col_units + cols - 1) / cols;
        const double cost = (double)(r * c) * (1.0 + 0.3 / (double)r + 0.1 / (double)c);

        if (best == 0 || cost < best) {
            best = cost;
            j->by_rows = (int)LSI_MIN(rows, row_units);
            j->by_cols = (int)LSI_MIN(cols, col_units);
        }
    }
}

static void run_part(void *arg, int part, int parts)
{
    const struct job *j = arg;
    const int row = part / j->by_cols % j->by_rows, col = part % j->by_cols;
    int64_t i0 = 0, i1 = 0, m0 = 0, m1 = 0, n0 = 0, n1 = 0;

    (void)parts;
    lsi_team_share(j->batch, 1, part / (j->by_cols * j->by_rows), j->by_batch, &i0, &i1);
    lsi_team_share(j->g->m, GEMM_MR, row, j->by_rows, &m0, &m1);
    lsi_team_share(j->g->n, GEMM_NR, col, j->by_cols, &n0, &n1);
    if (m0 >= m1 || n0 >= n1) {
        return;
    }
    for (int64_t i = i0; i < i1; i++) {
        lsi_gemm g = *j->g;

        if (j->at != NULL) {
            j->at(j->ctx, i, &g);
        }
        LSI_SIMD(gemm_block)(&g, m0, m1, n0, n1, j->scratch + part * j->scratch_each);
    }
}

ls_status LSI_SIMD(gemm_run)(ls_op_call *k, const lsi_gemm *g, int64_t batch,
                             void (*at)(const void *ctx, int64_t i, lsi_gemm *g),
                             const void *ctx)
{
    struct job j = {.g = g, .batch = batch, .at = at, .ctx = ctx};
    const double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k * (double)batch;
    int64_t rows = 0, cols = 0, zero = 0;
    size_t bytes = 0;
    int parts = 1;

    cut(&j, lsi_parts(k, (int64_t)(flops / FLOPS_PER_NS)));
    parts = j.by_batch * j.by_rows * j.by_cols;
    lsi_team_share(g->m, GEMM_MR, 0, j.by_rows, &zero, &rows);
    lsi_team_share(g->n, GEMM_NR, 0, j.by_cols, &zero, &cols);
    for (int part = 1; part < LSI_MAX(j.by_rows, j.by_cols); part++) {
        int64_t begin = 0, end = 0;

        lsi_team_share(g->m, GEMM_MR, part % j.by_rows, j.by_rows, &begin, &end);
        rows = LSI_MAX(rows, end - begin);
        lsi_team_share(g->n, GEMM_NR, part % j.by_cols, j.by_cols, &begin, &end);
        cols = LSI_MAX(cols, end - begin);
    }
    j.scratch_each = (LSI_SIMD(gemm_scratch)(g, rows, cols) + 63) / 32 * 32;
    bytes = (size_t)(j.scratch_each * parts) * sizeof(float);
    j.scratch = lsi_device_alloc(k->device, bytes);
    if (j.scratch == NULL) {
        return lsi_fail_memory(k->err, "matrix product", bytes);
    }
    lsi_team_run(k->team, parts, run_part, &j);
    lsi_device_free(k->device, j.scratch);
    return LS_OK;
}
