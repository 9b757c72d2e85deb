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
#endif
