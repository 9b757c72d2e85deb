/* What attention and its gradient share. */
#ifndef LSI_SIMD_ATTENTION_H
#define LSI_SIMD_ATTENTION_H
#include "kernel/simd/gemm.h"
#include "kernel/simd/math.h"

/* Scores are computed for at most this many keys at a time. */
enum { KEY_BLOCK = 256, SCORE_LD = KEY_BLOCK + 16 };

/* q [heads,n,d], k [heads,keys,d], v [heads,keys,dv]; "heads" are all leading axes. */
typedef struct lsi_attention {
    int64_t heads, n, keys, d, dv;
    float scale;
    bool causal;
    const float *q, *k, *v;
} lsi_attention;

LSI_INLINE lsi_attention attention_of(const ls_op_call *k)
{
    const lsi_attention_attrs *at = k->attrs;
    const ls_tensor *q = k->in[0], *keys = k->in[1], *v = k->in[2];

    return (lsi_attention){
        .n = q->dims[q->ndim - 2],
        .d = q->dims[q->ndim - 1],
        .keys = keys->dims[keys->ndim - 2],
        .dv = v->dims[v->ndim - 1],
        .scale = at->scale,
        .causal = at->causal,
        .q = q->data,
        .k = keys->data,
        .v = v->data,
    };
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
