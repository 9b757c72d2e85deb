/* What attention and its gradient share. */
#ifndef LSI_SIMD_ATTENTION_H
#define LSI_SIMD_ATTENTION_H
#include "kernel/attention.h"
#include "kernel/simd/gemm.h"
#include "kernel/simd/math.h"

/* Scores are computed for at most this many keys at a time. */
enum { KEY_BLOCK = 256, SCORE_LD = KEY_BLOCK + 16 };

LSI_INLINE float *head_row(const lsi_heads *x, int64_t head, int64_t i)
{
    return (float *)x->data + lsi_head_at(x, head, i);
}

/* Queries at a time: `n` in equal parts of at most `most`, whole tiles. */
LSI_INLINE int64_t query_block(int64_t n, int64_t most)
{
    const int64_t blocks = (n + most - 1) / most;

    return ((n + blocks - 1) / blocks + GEMM_MR - 1) / GEMM_MR * GEMM_MR;
}

/* How many of the keys from `key` on, at most `width`, query i may see. */
LSI_INLINE int64_t visible(const lsi_attention *a, int64_t i, int64_t key, int64_t width)
{
    if (!a->causal) {
        return width;
    }
    return LSI_MAX(LSI_MIN(i + 1 - key, width), 0);
}

LSI_INLINE int64_t aligned_floats(int64_t n)
{
    return (n + 31) / 32 * 32;
}

/*
 * A causal mask gives hidden keys the weight 0, and 0 times infinity or NaN is NaN: rows
 * that hold such numbers must not enter a product as they are. Such numbers
 * are replaced by zeros, and add_wild() adds them for the rows that see them.
 */

/* -1 in the lanes that hold an infinity or NaN. */
LSI_INLINE vi vwild(vf v)
{
    const vi exponent = vsplat_i(0x7f800000);

    return ((vi)v & exponent) == exponent;
}

LSI_INLINE bool are_finite(const lsi_heads *x, int64_t head, int64_t rows, int64_t d)
{
    vi wild = {0};

    for (int64_t r = 0; r < rows; r++) {
        const float *row = head_row(x, head, r);

        for (int64_t i = 0; i < d; i += VW) {
            wild |= vwild(vload_n(row + i, LSI_MIN(d - i, VW)));
        }
    }
    for (int i = 0; i < VW; i++) {
        if (wild[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Packs rows i .. i+rows-1 of a head; `copy` (NULL if all are finite) takes `rows` x d
 * floats, those that are not finite made 0. */
LSI_INLINE void pack_rows(const lsi_heads *x, int64_t head, int64_t i, int64_t rows,
                          int64_t d, float *copy, float *panels)
{
    lsi_matrix m = {head_row(x, head, i), x->row, false, NULL};

    if (copy != NULL) {
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t t = 0; t < d; t += VW) {
                const int64_t some = LSI_MIN(d - t, VW);
                const vf v = vload_n(m.data + r * m.ld + t, some);

                vstore_n(copy + r * d + t, vselect(vwild(v), vzero(), v), some);
            }
        }
        m = (lsi_matrix){copy, d, false, NULL};
    }
    LSI_SIMD(gemm_pack)(&m, rows, d, 0, d, panels);
}

/* to += weight * row where row is not finite. */
LSI_INLINE void add_wild(float *to, float weight, const float *row, int64_t d)
{
    for (int64_t t = 0; t < d; t += VW) {
        const int64_t some = LSI_MIN(d - t, VW);
        const vf v = vload_n(row + t, some), sum = vload_n(to + t, some);

        vstore_n(to + t, vselect(vwild(v), sum + v * weight, sum), some);
    }
}
#endif
