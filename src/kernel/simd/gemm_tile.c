/* The innermost loops of the matrix product: a tile of the result in registers. */
#include "kernel/simd/gemm.h"

/* A tile at the right edge: fewer columns than its vectors have. */
static __attribute__((noinline)) void finish_edge(const float *from, int mr,
                                                  const lsi_finish *f)
{
    for (int64_t i = 0; i < mr; i++) {
        for (int64_t j = 0; j < f->cols; j++) {
            float *c = f->c + i * f->ldc + j;
            float v = from[i * GEMM_NR + j];

            v = f->add ? v + *c : v;
            v = f->bias != NULL ? v + f->bias[j] : v;
            *c = f->relu && v < 0.0f ? 0.0f : v;
        }
    }
}

/* mr and nv are constants where these are inlined: the accumulators are registers. */
LSI_INLINE void store_edge(const int mr, const int nv, vf acc[][2], const lsi_finish *f)
{
    float edge[GEMM_MR * GEMM_NR] = {0};

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

LSI_INLINE void tile(const int mr, const int nv, const float *a, const int64_t *rows,
                     const lsi_piece *pieces, int64_t count, int64_t step, const float *b,
                     int64_t bs, const lsi_finish *f)
{
    const float *row[GEMM_MR];
    vf acc[GEMM_MR][2];

    LSI_UNROLL
    for (int i = 0; i < mr; i++) {
        row[i] = a + rows[i];
        __builtin_prefetch(f->c + i * f->ldc, 1);
        LSI_UNROLL
        for (int j = 0; j < nv; j++) {
            acc[i][j] = vzero();
        }
    }
    for (int64_t s = 0; s < count; s++) {
        int64_t at = pieces[s].at;

        LSI_UNROLL_4
        for (int64_t left = pieces[s].n; left > 0; left--) {
            vf bv[2];

            LSI_UNROLL
            for (int64_t j = 0; j < nv; j++) {
                bv[j] = vkeep(vload(b + j * VW));
            }
            LSI_UNROLL
            for (int i = 0; i < mr; i++) {
                const vf av = vsplat(row[i][at]);

                LSI_UNROLL
                for (int j = 0; j < nv; j++) {
                    acc[i][j] += av * bv[j];
                }
            }
            at += step;
            b += bs;
        }
    }
    if (f->cols == (int64_t)nv * VW) {
        store_whole(mr, nv, acc, f);
    } else {
        store_edge(mr, nv, acc, f);
    }
}

#define TILE(mr, nv)                                                                     \
    static void tile_##mr##_##nv(const float *a, const int64_t *rows,                    \
                                 const lsi_piece *pieces, int64_t count, int64_t step,   \
                                 const float *b, int64_t bs, const lsi_finish *f)        \
    {                                                                                    \
        tile(mr, nv, a, rows, pieces, count, step, b, bs, f);                            \
    }
#define TILES(mr) TILE(mr, 1) TILE(mr, 2)
/* clang-format off */
TILES(1) TILES(2) TILES(3) TILES(4)
#if GEMM_MR > 4
TILES(5) TILES(6)
#endif
#if GEMM_MR > 6
TILES(7) TILES(8)
#endif
#if GEMM_MR > 8
TILES(9) TILES(10) TILES(11) TILES(12)
#endif

const lsi_tile LSI_SIMD(gemm_tiles)[2][GEMM_MR + 1] = {
    {NULL, tile_1_1, tile_2_1, tile_3_1, tile_4_1,
#if GEMM_MR > 4
     tile_5_1, tile_6_1,
#endif
#if GEMM_MR > 6
     tile_7_1, tile_8_1,
#endif
#if GEMM_MR > 8
     tile_9_1, tile_10_1, tile_11_1, tile_12_1,
#endif
    },
    {NULL, tile_1_2, tile_2_2, tile_3_2, tile_4_2,
#if GEMM_MR > 4
     tile_5_2, tile_6_2,
#endif
#if GEMM_MR > 6
     tile_7_2, tile_8_2,
#endif
#if GEMM_MR > 8
     tile_9_2, tile_10_2, tile_11_2, tile_12_2,
#endif
    },
};
/* clang-format on */
