/* The geometry that the convolution kernels share. */
#ifndef LSI_SIMD_CONV_H
#define LSI_SIMD_CONV_H
#include "kernel/simd/gemm.h"

/* Images [n,h,w,c], filters [kh,kw,c,o], results [n,oh,ow,o]. */
typedef struct lsi_conv {
    int64_t n, h, w, c, kh, kw, o, oh, ow;
    int64_t stride[2], dilation[2], pad[2]; /* pad: before, rows and columns */
    const float *x;
} lsi_conv;

LSI_INLINE lsi_conv conv_of(const lsi_conv_attrs *at, const int64_t *x, const int64_t *w,
                            const int64_t *y)
{
    return (lsi_conv){
        .n = x[0],
        .h = x[1],
        .w = x[2],
        .c = x[3],
        .kh = w[0],
        .kw = w[1],
        .o = w[3],
        .oh = y[1],
        .ow = y[2],
        .stride = {at->stride[0], at->stride[1]},
        .dilation = {at->dilation[0], at->dilation[1]},
        .pad = {at->pad[0], at->pad[1]},
    };
}

/* No window reaches over the edge of the image. */
LSI_INLINE bool conv_is_inside(const lsi_conv *v)
{
    return v->pad[0] == 0 && v->pad[1] == 0 &&
           (v->oh - 1) * v->stride[0] + (v->kh - 1) * v->dilation[0] < v->h &&
           (v->ow - 1) * v->stride[1] + (v->kw - 1) * v->dilation[1] < v->w;
}
#endif
