/* How a product, or a batch of them, is cut among the members of a team. */
#include "kernel/simd/gemm.h"

/* Multiplications and additions per nanosecond, to estimate the work. */
enum { FLOPS_PER_NS = 6 * VW };

enum { PIECES = 4 }; /* for each member, at most */

/* The share of a member's work that it costs if all is one piece: others wait for it. */
#define LATE 0.03

struct team_work {
    lsi_queue queue; /* of pieces */
    const lsi_gemm *g;
    int64_t batch;
    void (*at)(const void *ctx, int64_t i, lsi_gemm *g);
    const void *ctx;
    float *scratch;
    int64_t scratch_each;
    int by_batch, by_rows, by_cols; /* pieces in each direction */
};

/*
 * What a strip of A costs beside its tiles, in tiles, and a panel of B: measured. A strip
 * that is used where it lies costs least, unless its rows fall onto each other in the
 * cache; one cut out of a transposed matrix costs most, but for one that is left in it:
 * there, every tile takes half as long again.
 */
static double strip_cost(const lsi_gemm *g, int64_t strips, int64_t panels)
{
    if (LSI_SIMD(gemm_copies)(g, strips * GEMM_MR, panels * GEMM_NR)) {
        return g->a.transposed ? 2.5 : 0.6;
    }
    if (g->a.transposed) {
        return 0.5 * (double)panels;
    }
    return g->a.ld % GEMM_ALIAS == 0 ? 0.5 : 0.1;
}

#define PANEL_COST 2.0

/*
 * What a cut into `rows` x `cols` pieces costs, in tiles that the last member done has
 * computed. Every piece reads its part of both matrices again, and takes some time to be
 * taken. Few pieces leave the others waiting for a member that is late.
 */
static double cut_cost(const lsi_gemm *g, int parts, int rows, int cols)
{
    const int64_t row_units = (g->m + GEMM_MR - 1) / GEMM_MR;
    const int64_t col_units = (g->n + GEMM_NR - 1) / GEMM_NR;
    const int64_t high = (row_units + rows - 1) / rows;
    const int64_t wide = (col_units + cols - 1) / cols;
    const double r = (double)high, c = (double)wide;
    const int pieces = rows * cols, rounds = (pieces + parts - 1) / parts;
    const double piece =
        r * c + PANEL_COST * c + strip_cost(g, high, wide) * r + 160.0 / (double)g->k;

    return rounds * piece * (1.0 + LATE * parts / pieces);
}

/*
 * Rows or columns? Batches are cut between their products, others where it is cheapest;
 * no piece may be left with nothing.
 */
static void cut_product(struct team_work *j, int parts)
{
    const int64_t row_units = (j->g->m + GEMM_MR - 1) / GEMM_MR;
    const int64_t col_units = (j->g->n + GEMM_NR - 1) / GEMM_NR;
    double best = 0;

    j->by_batch = 1;
    j->by_rows = 1;
    j->by_cols = 1;
    if (parts == 1) {
        return;
    }
    if (j->batch >= 4 * (int64_t)parts || j->batch == parts) {
        j->by_batch = (int)LSI_MIN(j->batch, (int64_t)PIECES * parts);
        return;
    }
    for (int pieces = parts; pieces <= PIECES * parts; pieces *= 2) {
        for (int rows = 1; rows <= LSI_MIN(pieces, row_units); rows++) {
            const int cols = (int)LSI_MIN(pieces / rows, col_units);
            const double cost = cut_cost(j->g, parts, rows, cols);

            if (best == 0 || cost < best) {
                best = cost;
                j->by_rows = rows;
                j->by_cols = cols;
            }
        }
    }
}

static void run_piece(const struct team_work *j, int64_t piece, float *scratch)
{
    const int col = (int)(piece % j->by_cols),
              row = (int)(piece / j->by_cols % j->by_rows);
    const int in_batch = (int)(piece / ((int64_t)j->by_cols * j->by_rows));
    int64_t i0 = 0, i1 = 0, m0 = 0, m1 = 0, n0 = 0, n1 = 0;

    lsi_team_share(j->batch, 1, in_batch, j->by_batch, &i0, &i1);
    lsi_team_share(j->g->m, GEMM_MR, row, j->by_rows, &m0, &m1);
    lsi_team_share(j->g->n, GEMM_NR, col, j->by_cols, &n0, &n1);
    for (int64_t i = i0; i < i1; i++) {
        lsi_gemm g = *j->g;

        if (j->at != NULL) {
            j->at(j->ctx, i, &g);
        }
        LSI_SIMD(gemm_block)(&g, m0, m1, n0, n1, scratch);
    }
}

static void run_part(void *arg, int part, int parts)
{
    struct team_work *j = arg;

    (void)parts;
    for (int64_t i = lsi_queue_take(&j->queue, part); i >= 0;
         i = lsi_queue_take(&j->queue, part)) {
        run_piece(j, i, j->scratch + part * j->scratch_each);
    }
}

ls_status LSI_SIMD(gemm_run)(ls_op_call *k, const lsi_gemm *g, int64_t batch,
                             void (*at)(const void *ctx, int64_t i, lsi_gemm *g),
                             const void *ctx)
{
    struct team_work j = {.g = g, .batch = batch, .at = at, .ctx = ctx};
    const double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k * (double)batch;
    int parts = lsi_parts(k, (int64_t)(flops / FLOPS_PER_NS));
    int64_t rows = 0, cols = 0, zero = 0, pieces = 0;
    size_t bytes = 0;

    cut_product(&j, parts);
    pieces = (int64_t)j.by_batch * j.by_rows * j.by_cols;
    parts = (int)LSI_MIN(parts, pieces);
    lsi_queue_init(&j.queue, pieces, parts);
    // The first piece is as large as any.
    lsi_team_share(g->m, GEMM_MR, 0, j.by_rows, &zero, &rows);
    lsi_team_share(g->n, GEMM_NR, 0, j.by_cols, &zero, &cols);
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
