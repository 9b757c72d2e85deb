/* What max and average pooling share: a call, and its windows over an image [n,h,w,c]. */
#ifndef LSI_SIMD_POOL2D_H
#define LSI_SIMD_POOL2D_H
#include "kernel/simd/simd.h"

struct pool {
    const lsi_pool_attrs *at;
    int64_t n, h, w, c, oh, ow;
    const float *from; /* image; gradient of the result */
    float *to;         /* result; gradient of the image */
    uint8_t *index;    /* of maxima: which position in its window each was */
};

LSI_INLINE struct pool pool_of(const lsi_pool_attrs *at, const int64_t *image,
                               const int64_t *result)
{
    return (struct pool){
        .at = at,
        .n = image[0],
        .h = image[1],
        .w = image[2],
        .c = image[3],
        .oh = result[1],
        .ow = result[2],
    };
}

/* The part of a window that lies inside the image, and where its corner would be. */
struct window {
    int64_t y0, x0;      /* corner */
    int64_t top, bottom; /* rows */
    int64_t left, right; /* columns */
};

LSI_INLINE struct window window_of(const struct pool *p, int64_t oy, int64_t ox)
{
    const int64_t y0 = oy * p->at->stride[0] - p->at->pad[0];
    const int64_t x0 = ox * p->at->stride[1] - p->at->pad[1];

    return (struct window){
        .y0 = y0,
        .x0 = x0,
        .top = LSI_MAX(y0, 0),
        .bottom = LSI_MIN(y0 + p->at->size[0], p->h),
        .left = LSI_MAX(x0, 0),
        .right = LSI_MIN(x0 + p->at->size[1], p->w),
    };
}
#endif
