/* Packing and blocking of the matrix product. */
#include "kernel/simd/gemm.h"

enum { MOST_ROWS = 1024 };           /* of a block, however flat it is */
enum { FEW_ROWS = 2 * GEMM_MR };     /* not worth packing B for */
enum { MANY_COLUMNS = 4 * GEMM_NR }; /* worth copying A for, if it lies badly */
enum { SOME_ROWS = 8 * GEMM_MR };    /* cut at a time: a set of the cache holds 8 lines */

/* How deep a block is: a panel of B fills half of a first-level cache of 32 KiB. */
#if VW == 16
enum { DEPTH = 384, BLOCK_FLOATS = 98304, PANEL_FLOATS = 1048576 };
#else
enum { DEPTH = 320, BLOCK_FLOATS = 65536, PANEL_FLOATS = 1048576 };
#endif

struct blocking {
    int64_t kc, mc, nc;
    bool copy;   /* blocks of A are copied before they are used */
    bool keep;   /* panels of B are kept for the next block of A */
    bool direct; /* whole panels of B are used where they lie: too few rows to pack for */
};

static int64_t round_up(int64_t x, int64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* Blocks of equal depth, so that the last one is not a sliver. */
static int64_t block_depth(int64_t k)
{
    const int64_t blocks = (k + DEPTH - 1) / DEPTH;

    return round_up((k + blocks - 1) / blocks, 8);
}

/* Rows of a block of A. */
static int64_t most_rows(int64_t kc)
{
    const int64_t fit = LSI_MIN(BLOCK_FLOATS / kc, MOST_ROWS);

    return LSI_MAX(fit / GEMM_MR, 1) * GEMM_MR;
}

static struct blocking choose_blocking(const lsi_gemm *g, int64_t rows, int64_t cols)
{
    struct blocking p = {.kc = block_depth(g->k)};
    const int64_t most = most_rows(p.kc);
    const int64_t blocks = (rows + most - 1) / most;

    p.mc = round_up((rows + blocks - 1) / blocks, GEMM_MR);
    p.direct = rows <= FEW_ROWS && !g->b.transposed;
    p.keep = blocks > 1 && g->panels == NULL;
    p.nc = round_up(cols, GEMM_NR);
    if (p.keep) {
        const int64_t wide = LSI_MAX(PANEL_FLOATS / p.kc / GEMM_NR, 1) * GEMM_NR;

        p.nc = LSI_MIN(p.nc, wide);
    }
    p.copy = g->a.walk == NULL && cols >= MANY_COLUMNS &&
             (g->a.ld % GEMM_ALIAS == 0 || g->a.transposed || blocks > 1);
    return p;
}

bool LSI_SIMD(gemm_copies)(const lsi_gemm *g, int64_t rows, int64_t cols)
{
    return choose_blocking(g, rows, cols).copy;
}

/* A block of A in strips; the vector that ends one may reach beyond it. */
static int64_t copied_floats(const struct blocking *p)
{
    return p->copy ? round_up(p->kc * p->mc + 8, 16) : 0;
}

/* Enough for fewer rows and columns, too, though those may be blocked differently. */
int64_t LSI_SIMD(gemm_scratch)(const lsi_gemm *g, int64_t rows, int64_t cols)
{
    struct blocking p = choose_blocking(g, rows, cols);
    int64_t floats = 0;

    p.mc = LSI_MIN(round_up(rows, GEMM_MR), most_rows(p.kc));
    p.copy = g->a.walk == NULL;
    floats = copied_floats(&p);
    if (g->panels == NULL) {
        floats += p.kc * (p.keep ? p.nc : GEMM_NR);
    }
    return floats;
}

/*
 * Square blocks turned in registers. Four lanes on the smallest machines, eight on
 * the others: sixteen would save nothing, the ports for shuffles are the limit.
 */
#if VW == 4
enum { TURN = 4 };
typedef vf tf;

LSI_INLINE void turn(tf r[TURN])
{
    const tf a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
    const tf b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    const tf c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
    const tf d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);

    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
#else
enum { TURN = 8 };
typedef float tf __attribute__((vector_size(32)));

LSI_INLINE void turn(tf r[TURN])
{
    tf s[TURN], t[TURN];

    LSI_UNROLL
    for (int i = 0; i < TURN; i += 2) {
        s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    LSI_UNROLL
    for (int i = 0; i < TURN; i += 4) {
        t[i] = __builtin_shufflevector(s[i], s[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        t[i + 1] = __builtin_shufflevector(s[i], s[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        t[i + 2] = __builtin_shufflevector(s[i + 1], s[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        t[i + 3] =
            __builtin_shufflevector(s[i + 1], s[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    LSI_UNROLL
    for (int i = 0; i < TURN / 2; i++) {
        r[i] = __builtin_shufflevector(t[i], t[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        r[i + 4] = __builtin_shufflevector(t[i], t[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#endif
typedef float tf_mem
    __attribute__((vector_size(TURN * sizeof(float)), aligned(4), may_alias));

/* to[p * GEMM_NR + j] = from[j * ld + p] for TURN columns j and `depth` p. */
static void turn_strip(const float *from, int64_t ld, int64_t depth, float *to)
{
    int64_t p = 0;

    for (; p + TURN <= depth; p += TURN) {
        tf r[TURN];

        LSI_UNROLL
        for (int j = 0; j < TURN; j++) {
            r[j] = *(const tf_mem *)(from + j * ld + p);
        }
        turn(r);
        LSI_UNROLL
        for (int j = 0; j < TURN; j++) {
            *(tf_mem *)(to + (p + j) * GEMM_NR) = r[j];
        }
    }
    for (; p < depth; p++) {
        for (int j = 0; j < TURN; j++) {
            to[p * GEMM_NR + j] = from[j * ld + p];
        }
    }
}

static void pack_turned(const float *from, int64_t ld, int64_t depth, int64_t cols,
                        float *to)
{
    int64_t j = 0;

    for (; j + TURN <= cols; j += TURN) {
        turn_strip(from + j * ld, ld, depth, to + j);
    }
    for (; j < GEMM_NR; j++) {
        for (int64_t p = 0; p < depth; p++) {
            to[p * GEMM_NR + j] = j < cols ? from[j * ld + p] : 0.0f;
        }
    }
}

/* One panel of B: `depth` rows from `row` on, `cols` columns from `col` on. */
static void pack_panel(const lsi_matrix *b, int64_t row, int64_t depth, int64_t col,
                       int64_t cols, float *to)
{
    if (b->transposed) {
        pack_turned(b->data + col * b->ld + row, b->ld, depth, cols, to);
        return;
    }
    const float *from = b->data + row * b->ld + col;

    if (cols == GEMM_NR) {
        for (int64_t p = 0; p < depth; p++) {
            const vf x = vload(from), y = vload(from + VW);

            vstore(to, x);
            vstore(to + VW, y);
            from += b->ld;
            to += GEMM_NR;
        }
        return;
    }
    for (int64_t p = 0; p < depth; p++) {
        vstore(to, vload_n(from, cols));
        vstore(to + VW, cols > VW ? vload_n(from + VW, cols - VW) : vzero());
        from += b->ld;
        to += GEMM_NR;
    }
}

int64_t LSI_SIMD(gemm_packed)(int64_t k, int64_t n)
{
    return k * round_up(n, GEMM_NR);
}

void LSI_SIMD(gemm_pack)(const lsi_matrix *b, int64_t k, int64_t n, int64_t n0,
                         int64_t n1, float *panels)
{
    for (int64_t j = n0; j < n1; j += GEMM_NR) {
        pack_panel(b, 0, k, j, LSI_MIN(n - j, GEMM_NR), panels + j * k);
    }
}

/* A block of A ready for the tiles: see lsi_tile. */
struct block {
    const float *a;
    const int64_t *rows; /* of the block's first row on; NULL: they are rs apart */
    int64_t rs;
    int64_t step;
    int64_t
        strip; /* what lies between strips of GEMM_MR rows; 0: they are rs apart, too */
    const lsi_strided_run *pieces;
    int64_t count;
};

/*
 * to[p * GEMM_MR + i] = row i at p, for `depth` p and up to TURN rows. Whole vectors are
 * written where what follows them is written later.
 */
LSI_INLINE void turn_rows(const float *const *row, const int n, int64_t depth,
                          bool spills, float *to)
{
    int64_t p = 0;

    for (; p + TURN <= depth; p += TURN) {
        tf r[TURN];

        LSI_UNROLL
        for (int i = 0; i < TURN; i++) {
            r[i] = (tf){0};
            if (i < n) {
                r[i] = *(const tf_mem *)(row[i] + p);
            }
        }
        turn(r);
        LSI_UNROLL
        for (int j = 0; j < TURN; j++) {
            if (spills) {
                *(tf_mem *)(to + (p + j) * GEMM_MR) = r[j];
            } else {
                memcpy(to + (p + j) * GEMM_MR, &r[j], (size_t)n * sizeof(float));
            }
        }
    }
    for (; p < depth; p++) {
        for (int i = 0; i < n; i++) {
            to[p * GEMM_MR + i] = row[i][p];
        }
    }
}

/* Strips of GEMM_MR rows. Rows that the last one lacks are the last row again. */
static void turn_strips(const float *from, int64_t ld, int64_t depth, int64_t rows,
                        float *to)
{
    for (int64_t i = 0; i < rows; i += GEMM_MR) {
        const float *row[GEMM_MR];

        for (int64_t r = 0; r < GEMM_MR; r++) {
            row[r] = from + LSI_MIN(i + r, rows - 1) * ld;
        }
        LSI_UNROLL
        for (int r = 0; r < GEMM_MR; r += TURN) {
            turn_rows(row + r, GEMM_MR - r < TURN ? GEMM_MR - r : TURN, depth,
                      r == 0 || GEMM_MR - r >= TURN, to + r);
        }
        to += depth * GEMM_MR;
    }
}

/*
 * The same from a matrix stored the other way round: what was a row of it is cut up. Some
 * strips at a time: they lie far apart, and more of them would fall onto each other in
 * the cache.
 */
static void cut_strips(const float *from, int64_t ld, int64_t depth, int64_t rows,
                       float *to)
{
    const int64_t whole = rows / GEMM_MR * GEMM_MR, strip = depth * GEMM_MR;

    for (int64_t i0 = 0; i0 < whole; i0 += SOME_ROWS) {
        const int64_t i1 = LSI_MIN(i0 + SOME_ROWS, whole);

        for (int64_t p = 0; p < depth; p++) {
            const float *row = from + p * ld;
            float *at = to + i0 * depth + p * GEMM_MR;

            for (int64_t i = i0; i < i1; i += 16) {
                __builtin_prefetch(row + 16 * ld + i);
            }
            for (int64_t i = i0; i < i1; i += GEMM_MR) {
                memcpy(at, row + i, GEMM_MR * sizeof(float));
                at += strip;
            }
        }
    }
    for (int64_t p = 0; p < depth; p++) {
        for (int64_t i = whole; i < rows; i++) {
            to[whole * depth + p * GEMM_MR + i - whole] = from[p * ld + i];
        }
    }
}

/* The k's of one block: a single run, or the runs of the walk. */
struct depth {
    int64_t p0, n; /* which k's */
    int64_t count;
    lsi_strided_run pieces[DEPTH + 8];
};

/* Where a block begins in a walk: a piece, and how much of it is done. */
struct cursor {
    int64_t piece, done;
};

static void take_depth(const lsi_gemm *g, int64_t p0, int64_t n, struct cursor *at,
                       struct depth *d)
{
    d->p0 = p0;
    d->n = n;
    d->count = 1;
    d->pieces[0] = (lsi_strided_run){0, n};
    if (g->a.walk == NULL) {
        return;
    }
    d->count = 0;
    while (n > 0) {
        const lsi_strided_run *from = &g->a.walk->pieces[at->piece];
        const int64_t some = LSI_MIN(from->n - at->done, n);

        d->pieces[d->count++] =
            (lsi_strided_run){from->at + at->done * g->a.walk->step, some};
        n -= some;
        at->done += some;
        if (at->done == from->n) {
            at->piece++;
            at->done = 0;
        }
    }
}

static struct block prepare_block(const lsi_gemm *g, const struct blocking *b, int64_t i0,
                                  int64_t rows, const struct depth *d, float *copy)
{
    const lsi_matrix *a = &g->a;
    const int64_t p0 = d->p0;
    struct block out = {.pieces = d->pieces, .count = d->count, .a = copy};

    if (a->walk != NULL) {
        out.a = a->data;
        out.rows = a->walk->rows + i0;
        out.step = a->walk->step;
    } else if (!b->copy && a->transposed) {
        out.a = a->data + p0 * a->ld + i0;
        out.rs = 1;
        out.step = a->ld;
    } else if (!b->copy) {
        out.a = a->data + i0 * a->ld + p0;
        out.rs = a->ld;
        out.step = 1;
    } else if (a->transposed) {
        cut_strips(a->data + p0 * a->ld + i0, a->ld, d->n, rows, copy);
        out.rs = 1;
        out.step = GEMM_MR;
        out.strip = d->n * GEMM_MR;
    } else {
        turn_strips(a->data + i0 * a->ld + p0, a->ld, d->n, rows, copy);
        out.rs = 1;
        out.step = GEMM_MR;
        out.strip = d->n * GEMM_MR;
    }
    return out;
}

/* What is packed next: prefetched while tiles are computed. */
struct ahead {
    const float *from;
    int64_t ld, rows, run; /* `rows` runs of `run` floats */
    int64_t row, done;     /* how far it is */
};

LSI_INLINE void fetch(struct ahead *h, int64_t lines)
{
    for (; lines > 0 && h->row < h->rows; lines--) {
        __builtin_prefetch(h->from + h->row * h->ld + h->done, 0, 2);
        h->done += 16;
        if (h->done >= h->run) {
            h->done = 0;
            h->row++;
        }
    }
}

/*
 * Rows of the next tile. Rather than a whole tile and a sliver, two of the same height;
 * strips have been cut already.
 */
LSI_INLINE int64_t tile_rows(int64_t left, bool strips)
{
    if (!strips && left > GEMM_MR && left < GEMM_MR + GEMM_MR / 2) {
        return (left + 1) / 2;
    }
    return LSI_MIN(left, GEMM_MR);
}

/* Columns of B for the tiles. */
struct panel {
    const float *b;
    int64_t bs;
    float *to; /* the first tile packs them to here; NULL: no need */
};

LSI_INLINE lsi_tile_kind tile_kind(const struct block *a, int64_t bs)
{
    if (bs != GEMM_NR) {
        return LSI_TILE_STEP;
    }
    if (a->strip > 0) {
        return LSI_TILE_STRIP;
    }
    return a->step == 1 ? LSI_TILE_RUN : LSI_TILE_STEP;
}

/* All rows of a block times one panel. */
static void run_panel(const struct block *a, int64_t rows, const struct panel *panel,
                      const lsi_finish *first, struct ahead *next)
{
    const bool wide = first->cols > VW;
    const int64_t lines = next->rows * ((next->run + 15) / 16);
    const int64_t each = lines / (rows / GEMM_MR + 1) + 1;
    const lsi_tile *tiles = LSI_SIMD(gemm_tiles)[tile_kind(a, GEMM_NR)][wide];
    int64_t apart[GEMM_MR], i = 0, mr = tile_rows(rows, a->strip > 0);
    lsi_finish f = *first;
    lsi_operands o = {.a = a->a,
                      .rows = a->rows != NULL ? a->rows : apart,
                      .pieces = a->pieces,
                      .count = a->count,
                      .step = a->step,
                      .b = panel->b,
                      .bs = panel->bs,
                      .panel = panel->to};

    for (int64_t r = 0; r < GEMM_MR; r++) {
        apart[r] = r * a->rs;
    }
    if (panel->to != NULL) {
        LSI_SIMD(gemm_tiles)[LSI_TILE_PACK][wide][mr](&o, &f);
        o.b = panel->to;
        o.bs = GEMM_NR;
        i = mr;
    } else if (o.bs != GEMM_NR) {
        tiles = LSI_SIMD(gemm_tiles)[LSI_TILE_STEP][wide];
    }
    f.c += i * f.ldc;
    o.a += a->strip > 0 ? i / GEMM_MR * a->strip : i * a->rs;
    o.rows += a->rows != NULL ? i : 0;
    for (; i < rows; i += mr) {
        mr = tile_rows(rows - i, a->strip > 0);
        fetch(next, each);
        tiles[mr](&o, &f);
        f.c += mr * f.ldc;
        o.a += a->strip > 0 ? a->strip : mr * a->rs;
        o.rows += a->rows != NULL ? mr : 0;
    }
}

/* The rows and columns of one block, from one depth to the next. */
struct step {
    int64_t i0, rows, j0, j1;
    const struct depth *depth;
    bool pack; /* the panels are not there yet */
    bool last; /* nothing is added afterwards */
};

/* The panel of columns j .., packed if it has to be. */
static struct panel find_panel(const lsi_gemm *g, const struct blocking *b,
                               const struct step *s, int64_t j, float *panels)
{
    const struct depth *d = s->depth;
    const int64_t cols = LSI_MIN(s->j1 - j, GEMM_NR);
    const float *here = g->b.data + d->p0 * g->b.ld + j;
    float *panel = panels + (b->keep ? (j - s->j0) * d->n : 0);

    if (g->panels != NULL) {
        const int64_t depth = LSI_MAX(g->depth, g->k);

        return (struct panel){g->panels + j * depth + d->p0 * GEMM_NR, GEMM_NR, NULL};
    }
    if (b->direct && cols == GEMM_NR) {
        return (struct panel){here, g->b.ld, NULL};
    }
    if (s->pack && !g->b.transposed && cols == GEMM_NR) {
        return (struct panel){here, g->b.ld, panel};
    }
    if (s->pack) {
        pack_panel(&g->b, d->p0, d->n, j, cols, panel);
    }
    return (struct panel){panel, GEMM_NR, NULL};
}

/* The panel after the one at j: runs of rows if it will be turned, else a line each. */
static struct ahead look_ahead(const lsi_gemm *g, const struct step *s, int64_t j)
{
    const lsi_matrix *m = &g->b;
    const int64_t next = j + GEMM_NR, p0 = s->depth->p0, depth = s->depth->n;

    if (!s->pack || g->panels != NULL || next >= s->j1) {
        return (struct ahead){0};
    }
    if (m->transposed) {
        return (struct ahead){.from = m->data + next * m->ld + p0,
                              .ld = m->ld,
                              .rows = LSI_MIN(s->j1 - next, GEMM_NR),
                              .run = depth};
    }
    return (struct ahead){.from = m->data + p0 * m->ld + next,
                          .ld = m->ld,
                          .rows = depth,
                          .run = LSI_MIN(s->j1 - next, GEMM_NR)};
}

static void run_step(const lsi_gemm *g, const struct blocking *b, const struct step *s,
                     float *copy, float *panels)
{
    const struct block a = prepare_block(g, b, s->i0, s->rows, s->depth, copy);
    const bool simple = g->activation == LS_LINEAR || g->activation == LS_RELU;

    for (int64_t j = s->j0; j < s->j1; j += GEMM_NR) {
        const lsi_finish f = {
            .c = g->c + s->i0 * g->ldc + j,
            .ldc = g->ldc,
            .bias = s->last && g->bias != NULL ? g->bias + j : NULL,
            .cols = LSI_MIN(s->j1 - j, GEMM_NR),
            .add = g->accumulate || s->depth->p0 > 0,
            .relu = s->last && g->activation == LS_RELU,
        };
        const struct panel panel = find_panel(g, b, s, j, panels);
        struct ahead next = look_ahead(g, s, j);

        run_panel(&a, s->rows, &panel, &f, &next);
        if (s->last && !simple) {
            LSI_SIMD(activate)(g->activation, f.c, f.ldc, s->rows, f.cols);
        }
    }
}

void LSI_SIMD(gemm_block)(const lsi_gemm *g, int64_t m0, int64_t m1, int64_t n0,
                          int64_t n1, float *scratch)
{
    const struct blocking b = choose_blocking(g, m1 - m0, n1 - n0);
    float *panels = scratch + copied_floats(&b);

    for (int64_t j = n0; j < n1; j += b.nc) {
        struct cursor at = {0, 0};

        for (int64_t p = 0; p < g->k; p += b.kc) {
            struct depth d;

            take_depth(g, p, LSI_MIN(g->k - p, b.kc), &at, &d);
            for (int64_t i = m0; i < m1; i += b.mc) {
                const struct step s = {
                    .i0 = i,
                    .rows = LSI_MIN(m1 - i, b.mc),
                    .j0 = j,
                    .j1 = LSI_MIN(n1, j + b.nc),
                    .depth = &d,
                    .pack = i == m0,
                    .last = p + b.kc >= g->k,
                };

                run_step(g, &b, &s, scratch, panels);
            }
        }
    }
}
