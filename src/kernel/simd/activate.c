/* Activations that cost more than a comparison, over a piece of a result in the cache. */
#include "kernel/simd/gemm.h"
#include "kernel/simd/math.h"

LSI_INLINE vf activated(ls_activation f, vf v)
{
    switch (f) {
    case LS_RELU:
        return vmax(vzero(), v);
    case LS_SIGMOID:
        return vsigmoid(v);
    case LS_TANH:
        return vtanh(v);
    case LS_GELU:
        return vgelu(v);
    case LS_GELU_TANH:
        return vgelu_tanh(v);
    case LS_SILU:
        return v * vsigmoid(v);
    default:
        return v;
    }
}

LSI_INLINE void activate_rows(ls_activation f, float *c, int64_t ld, int64_t rows,
                              int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j += VW) {
            float *at = c + i * ld + j;
            const int64_t n = LSI_MIN(cols - j, VW);

            vstore_n(at, activated(f, vload_n(at, n)), n);
        }
    }
}

void LSI_SIMD(activate)(ls_activation f, float *c, int64_t ld, int64_t rows, int64_t cols)
{
    switch (f) {
    case LS_RELU:
        activate_rows(LS_RELU, c, ld, rows, cols);
        break;
    case LS_SIGMOID:
        activate_rows(LS_SIGMOID, c, ld, rows, cols);
        break;
    case LS_TANH:
        activate_rows(LS_TANH, c, ld, rows, cols);
        break;
    case LS_GELU:
        activate_rows(LS_GELU, c, ld, rows, cols);
        break;
    case LS_GELU_TANH:
        activate_rows(LS_GELU_TANH, c, ld, rows, cols);
        break;
    case LS_SILU:
        activate_rows(LS_SILU, c, ld, rows, cols);
        break;
    default:
        break;
    }
}
