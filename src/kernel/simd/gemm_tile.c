/* The innermost loops of the matrix product: a tile of the result in registers. */
#include "kernel/simd/gemm.h"

enum { AHEAD = 32 }; /* rows of the right matrix that are fetched before they are due */
enum { FOUR_ROWS = 4 * GEMM_NR, FOUR_COLUMNS = 4 * GEMM_MR }; /* of a panel, a strip */

/* A tile at the right edge: fewer columns than its vectors have. */
static __attribute__((noinline)) void finish_edge(const float *from, int mr,
                                                  const lsi_finish *f)
{
    for (int64_t i = 0; i < mr; i++) {
        for (int64_t j = 0; j < f->cols; j += VW) {
            const int64_t n = LSI_MIN(f->cols - j, VW);
            float *c = f->c + i * f->ldc + j;
            vf v = vload(from + i * GEMM_NR + j);

            v = f->add ? v + vload_n(c, n) : v;
            v = f->bias != NULL ? v + vload_n(f->bias + j, n) : v;
            vstore_n(c, f->relu ? vmax(vzero(), v) : v, n);
        }
    }
}

/* mr and nv are constants where these are inlined: the accumulators are registers. */
LSI_INLINE void store_edge(const int mr, const int nv, vf acc[][2], const lsi_finish *f)
{
    float edge[GEMM_MR * GEMM_NR];

    LSI_UNROLL
    for (int64_t i = 0; i < mr; i++) {
        LSI_UNROLL
        for (int64_t j = 0; j < nv; j++) {
            vstore(edge + i * GEMM_NR + j * VW, acc[i][j]);
        }
    }
    finish_edge(edge, mr, f);
}

LSI_INLINE void add_result(const int mr, const int nv, vf acc[][2], const lsi_finish *f)
{
    LSI_UNROLL
    for (int64_t i = 0; i < mr; i++) {
        LSI_UNROLL
        for (int64_t j = 0; j < nv; j++) {
            acc[i][j] += vload(f->c + i * f->ldc + j * VW);
        }
    }
}

LSI_INLINE void add_bias(const int mr, const int nv, vf acc[][2], const float *bias)
{
    LSI_UNROLL
    for (int64_t j = 0; j < nv; j++) {
        const vf b = vload(bias + j * VW);

        LSI_UNROLL
        for (int64_t i = 0; i < mr; i++) {
            acc[i][j] += b;
        }
    }
}

/* A NaN stays. */
LSI_INLINE void clip(const int mr, const int nv, vf acc[][2])
{
    LSI_UNROLL
    for (int64_t i = 0; i < mr; i++) {
        LSI_UNROLL
        for (int64_t j = 0; j < nv; j++) {
            acc[i][j] = vmax(vzero(), acc[i][j]);
        }
    }
}

LSI_INLINE void store_whole(const int mr, const int nv, vf acc[][2], const lsi_finish *f)
{
    float *c = f->c;
    const int64_t ldc = f->ldc;

    if (f->add) {
        add_result(mr, nv, acc, f);
    }
    if (f->bias != NULL) {
        add_bias(mr, nv, acc, f->bias);
    }
    if (f->relu) {
        clip(mr, nv, acc);
    }
    LSI_UNROLL
    for (int64_t i = 0; i < mr; i++) {
        LSI_UNROLL
        for (int64_t j = 0; j < nv; j++) {
            vstore(c + i * ldc + j * VW, acc[i][j]);
        }
    }
}

/*
 * sum + a * b, rounded once, and always into the register the sum is in: left to itself
 * the compiler moves sums about in unrolled loops.
 */
LSI_INLINE vf add_product(vf sum, vf a, vf b)
{
#if defined(__FMA__)
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
#else
    return sum + a * b;
#endif
}

/* A row of the right matrix in registers. */
LSI_INLINE void take_row(const int nv, vf bv[2], const float *b)
{
    LSI_UNROLL
    for (int64_t j = 0; j < nv; j++) {
        bv[j] = vkeep(vload(b + j * VW));
    }
}

/* One k: column `at` of the left matrix times that row. */
LSI_INLINE void multiply(const int mr, const int nv, vf acc[][2], const float *const *row,
                         int64_t at, const vf bv[2])
{
    LSI_UNROLL
    for (int i = 0; i < mr; i++) {
        const vf av = vsplat(row[i][at]);

        LSI_UNROLL
        for (int j = 0; j < nv; j++) {
            acc[i][j] = add_product(acc[i][j], av, bv[j]);
        }
    }
}

/*
 * Returns x, hidden from the compiler: it would keep differences of pointers and compute
 * addresses from them, with several more instructions per turn. The tile needs few: a
 * core whose sibling thread is busy issues half as many instructions as alone.
 */
LSI_INLINE int64_t opaque(int64_t x)
{
    __asm__("" : "+r"(x));
    return x;
}

/* Elements that follow each other, b in panels: four turns at constant offsets. */
LSI_INLINE const float *run_piece(const int mr, const int nv, vf acc[][2],
                                  const float *const *row, lsi_strided_run piece,
                                  const float *b)
{
    int64_t at = piece.at, left = piece.n;
    vf bv[2];

    for (; left >= 4; left -= 4) {
        LSI_UNROLL
        for (int64_t u = 0; u < 4; u++) {
            take_row(nv, bv, b + u * GEMM_NR);
            multiply(mr, nv, acc, row, at + u, bv);
        }
        b += FOUR_ROWS;
        at = opaque(at + 4);
    }
    for (; left > 0; left--) {
        take_row(nv, bv, b);
        multiply(mr, nv, acc, row, at, bv);
        b += GEMM_NR;
        at = opaque(at + 1);
    }
    return b;
}

/* Elements `step` apart, rows of the right matrix `bs`. */
LSI_INLINE const float *step_piece(const int mr, const int nv, vf acc[][2],
                                   const float *const *row, lsi_strided_run piece,
                                   int64_t step, const float *b, int64_t bs)
{
    int64_t at = piece.at, left = piece.n;
    vf bv[2];

    for (; left >= 4; left -= 4) {
        LSI_UNROLL
        for (int64_t u = 0; u < 4; u++) {
            take_row(nv, bv, b);
            multiply(mr, nv, acc, row, at, bv);
            b += bs;
            at = opaque(at + step);
        }
    }
    for (; left > 0; left--) {
        take_row(nv, bv, b);
        multiply(mr, nv, acc, row, at, bv);
        b += bs;
        at = opaque(at + step);
    }
    return b;
}

/*
 * The first tile of a panel packs it: loads that come from afar wait beside
 * multiplications instead of alone. Nothing is fetched from beyond the end: what lies
 * there may be what another member is just writing.
 */
LSI_INLINE void pack_piece(const int mr, const int nv, vf acc[][2],
                           const float *const *row, lsi_strided_run piece, int64_t step,
                           const float *b, int64_t bs, float *panel)
{
    int64_t at = piece.at;
    vf bv[2];

    for (int64_t left = piece.n; left > 0; left--) {
        take_row(nv, bv, b);
        __builtin_prefetch(left > AHEAD ? b + AHEAD * bs : b, 0, 2);
        LSI_UNROLL
        for (int64_t j = 0; j < nv; j++) {
            vstore(panel + j * VW, bv[j]);
        }
        multiply(mr, nv, acc, row, at, bv);
        b += bs;
        panel += GEMM_NR;
        at = opaque(at + step);
    }
}

/* A strip, b in panels: one address for all rows. */
LSI_INLINE void run_strip(const int mr, const int nv, vf acc[][2], const float *a,
                          int64_t left, const float *b)
{
    const float *row[GEMM_MR];
    vf bv[2];

    for (; left >= 4; left -= 4) {
        LSI_UNROLL
        for (int i = 0; i < mr; i++) {
            row[i] = a + i;
        }
        LSI_UNROLL
        for (int64_t u = 0; u < 4; u++) {
            take_row(nv, bv, b + u * GEMM_NR);
            multiply(mr, nv, acc, row, u * GEMM_MR, bv);
        }
        a += FOUR_COLUMNS;
        b += FOUR_ROWS;
    }
    for (; left > 0; left--) {
        LSI_UNROLL
        for (int i = 0; i < mr; i++) {
            row[i] = a + i;
        }
        take_row(nv, bv, b);
        multiply(mr, nv, acc, row, 0, bv);
        a += GEMM_MR;
        b += GEMM_NR;
    }
}

LSI_INLINE void sum_up(const lsi_tile_kind kind, const int mr, const int nv, vf acc[][2],
                       const float *const *row, const lsi_operands *o)
{
    const float *b = o->b;

    if (kind == LSI_TILE_STRIP) {
        run_strip(mr, nv, acc, o->a, o->pieces->n, b);
        return;
    }
    if (kind == LSI_TILE_PACK) {
        float *panel = o->panel;

        for (int64_t s = 0; s < o->count; s++) {
            pack_piece(mr, nv, acc, row, o->pieces[s], o->step, b, o->bs, panel);
            b += o->pieces[s].n * o->bs;
            panel += o->pieces[s].n * GEMM_NR;
        }
        return;
    }
    for (int64_t s = 0; s < o->count; s++) {
        b = kind == LSI_TILE_RUN
                ? run_piece(mr, nv, acc, row, o->pieces[s], b)
                : step_piece(mr, nv, acc, row, o->pieces[s], o->step, b, o->bs);
    }
}

LSI_INLINE void tile(const lsi_tile_kind kind, const int mr, const int nv,
                     const lsi_operands *o, const lsi_finish *f)
{
    const float *row[GEMM_MR];
    vf acc[GEMM_MR][2];

    LSI_UNROLL
    for (int i = 0; i < mr; i++) {
        row[i] = kind == LSI_TILE_STRIP ? NULL : o->a + o->rows[i];
        __builtin_prefetch(f->c + i * f->ldc, 1);
        LSI_UNROLL
        for (int j = 0; j < nv; j++) {
            acc[i][j] = vzero();
        }
    }
    sum_up(kind, mr, nv, acc, row, o);
    if (f->cols == (int64_t)nv * VW) {
        store_whole(mr, nv, acc, f);
    } else {
        store_edge(mr, nv, acc, f);
    }
}

#define TILE(kind, mr, nv)                                                               \
    static void tile_##kind##_##mr##_##nv(const lsi_operands *o, const lsi_finish *f)    \
    {                                                                                    \
        tile(LSI_TILE_##kind, mr, nv, o, f);                                             \
    }
#define KINDS(mr, nv)                                                                    \
    TILE(STEP, mr, nv) TILE(RUN, mr, nv) TILE(STRIP, mr, nv) TILE(PACK, mr, nv)
#define TILES(mr) KINDS(mr, 1) KINDS(mr, 2)
/* clang-format off */
TILES(1) TILES(2) TILES(3) TILES(4)
#if GEMM_MR == 4
#define HEIGHTS(kind, nv) {NULL, HEIGHT_4(kind, nv)}
#elif GEMM_MR == 6
TILES(5) TILES(6)
#define HEIGHTS(kind, nv) {NULL, HEIGHT_4(kind, nv), HEIGHT_6(kind, nv)}
#elif GEMM_MR == 8
TILES(5) TILES(6) TILES(7) TILES(8)
#define HEIGHTS(kind, nv) {NULL, HEIGHT_4(kind, nv), HEIGHT_6(kind, nv), HEIGHT_8(kind, nv)}
#else
TILES(5) TILES(6) TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12)
#define HEIGHTS(kind, nv) \
    {NULL, HEIGHT_4(kind, nv), HEIGHT_6(kind, nv), HEIGHT_8(kind, nv), HEIGHT_12(kind, nv)}
#endif
#define HEIGHT_4(k, nv) tile_##k##_1_##nv, tile_##k##_2_##nv, tile_##k##_3_##nv, tile_##k##_4_##nv
#define HEIGHT_6(k, nv) tile_##k##_5_##nv, tile_##k##_6_##nv
#define HEIGHT_8(k, nv) tile_##k##_7_##nv, tile_##k##_8_##nv
#define HEIGHT_12(k, nv) tile_##k##_9_##nv, tile_##k##_10_##nv, tile_##k##_11_##nv, tile_##k##_12_##nv

const lsi_tile LSI_SIMD(gemm_tiles)[LSI_TILE_KINDS][2][GEMM_MR + 1] = {
    [LSI_TILE_STEP] = {HEIGHTS(STEP, 1), HEIGHTS(STEP, 2)},
    [LSI_TILE_RUN] = {HEIGHTS(RUN, 1), HEIGHTS(RUN, 2)},
    [LSI_TILE_STRIP] = {HEIGHTS(STRIP, 1), HEIGHTS(STRIP, 2)},
    [LSI_TILE_PACK] = {HEIGHTS(PACK, 1), HEIGHTS(PACK, 2)},
};
/* clang-format on */
