/*
 * Convolutions over [n,h,w,c] images. A depthwise one is a grouped one with a group for
 * each channel: its filter [kh,kw,c,m] lies in memory as [kh,kw,1,c*m], so that one set
 * of loops serves both. Each result is summed by itself, in double, in a fixed order.
 */
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

struct geometry {
    const lsi_conv_attrs *at;
    int64_t n, h, w, c; /* image */
    int64_t kh, kw;     /* filter */
    int64_t oh, ow, o;  /* result; o: channels */
    int64_t group_c;    /* image channels of a group */
    int64_t group_o;    /* result channels of a group */
};

static struct geometry geometry_of(const lsi_conv_attrs *at, const int64_t *x,
                                   const int64_t *w, const int64_t *y, bool depthwise)
{
    struct geometry g = {at,   x[0], x[1], x[2], x[3], w[0],
                         w[1], y[1], y[2], y[3], x[3], y[3]};

    if (depthwise) {
        g.group_c = 1;
        g.group_o = w[3];
    }
    return g;
}

/* Row (axis 0) or column (axis 1) of the image under tap `t` of window `o`. */
LSI_INLINE int64_t under(const struct geometry *g, int axis, int64_t o, int64_t t)
{
    return o * g->at->stride[axis] - g->at->pad[axis] + t * g->at->dilation[axis];
}

/* The window whose tap `t` lies on row or column `i` of the image; negative: none. */
LSI_INLINE int64_t window_over(const struct geometry *g, int axis, int64_t i, int64_t t)
{
    const int64_t at = i + g->at->pad[axis] - t * g->at->dilation[axis];

    return at < 0 || at % g->at->stride[axis] != 0 ? -1 : at / g->at->stride[axis];
}

LSI_INLINE int64_t image_index(const struct geometry *g, int64_t n, int64_t y, int64_t x)
{
    return ((n * g->h + y) * g->w + x) * g->c;
}

LSI_INLINE int64_t result_index(const struct geometry *g, int64_t n, int64_t y, int64_t x)
{
    return ((n * g->oh + y) * g->ow + x) * g->o;
}

/* One element of the result: image `n`, window (oy, ox), channel `o`. */
LSI_INLINE double window_sum(const struct geometry *g, const void *x, const void *w,
                             int64_t n, int64_t oy, int64_t ox, int64_t o, ls_dtype d)
{
    const int64_t first = o / g->group_o * g->group_c;
    double sum = 0;

    for (int64_t tap = 0; tap < g->kh * g->kw; tap++) {
        const int64_t iy = under(g, 0, oy, tap / g->kw),
                      ix = under(g, 1, ox, tap % g->kw);

        if (iy < 0 || iy >= g->h || ix < 0 || ix >= g->w) {
            continue;
        }
        for (int64_t i = 0; i < g->group_c; i++) {
            sum += lsi_get_float(x, d, image_index(g, n, iy, ix) + first + i) *
                   lsi_get_float(w, d, (tap * g->group_c + i) * g->o + o);
        }
    }
    return sum;
}

LSI_INLINE ls_status conv_forward(ls_op_call *k, bool depthwise, ls_dtype d)
{
    const lsi_conv_attrs *at = k->attrs;
    const void *bias = k->nin > 2 ? k->in[2]->data : NULL;
    const struct geometry g =
        geometry_of(at, k->in[0]->dims, k->in[1]->dims, k->out[0]->dims, depthwise);

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        const int64_t o = e % g.o, ox = e / g.o % g.ow, oy = e / (g.o * g.ow) % g.oh;
        const int64_t n = e / (g.o * g.ow * g.oh);
        double sum = window_sum(&g, k->in[0]->data, k->in[1]->data, n, oy, ox, o, d);

        if (bias != NULL) {
            sum += lsi_get_float(bias, d, o);
        }
        lsi_put_float(k->out[0]->data, d, e, lsi_ref_activation(at->activation, sum));
    }
    return LS_OK;
}

/* What all windows give back to channel `c` of pixel (y, x) of image `n`. */
LSI_INLINE double pixel_sum(const struct geometry *g, const void *gy, const void *w,
                            int64_t n, int64_t y, int64_t x, int64_t c, ls_dtype d)
{
    const int64_t first = c / g->group_c * g->group_o, i = c % g->group_c;
    double sum = 0;

    for (int64_t tap = 0; tap < g->kh * g->kw; tap++) {
        const int64_t oy = window_over(g, 0, y, tap / g->kw);
        const int64_t ox = window_over(g, 1, x, tap % g->kw);

        if (oy < 0 || oy >= g->oh || ox < 0 || ox >= g->ow) {
            continue;
        }
        for (int64_t o = first; o < first + g->group_o; o++) {
            sum += lsi_get_float(gy, d, result_index(g, n, oy, ox) + o) *
                   lsi_get_float(w, d, (tap * g->group_c + i) * g->o + o);
        }
    }
    return sum;
}

LSI_INLINE ls_status input_grad(ls_op_call *k, bool depthwise, ls_dtype d)
{
    const struct geometry g =
        geometry_of(k->attrs, k->out[0]->dims, k->in[1]->dims, k->in[0]->dims, depthwise);

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        const int64_t c = e % g.c, x = e / g.c % g.w, y = e / (g.c * g.w) % g.h;
        const int64_t n = e / (g.c * g.w * g.h);

        lsi_put_float(k->out[0]->data, d, e,
                      pixel_sum(&g, k->in[0]->data, k->in[1]->data, n, y, x, c, d));
    }
    return LS_OK;
}

/* What all windows give back to one weight: tap (ky, kx), image channel c, result o. */
LSI_INLINE double weight_sum(const struct geometry *g, const void *x, const void *gy,
                             int64_t ky, int64_t kx, int64_t c, int64_t o, ls_dtype d)
{
    double sum = 0;

    for (int64_t row = 0; row < g->n * g->oh; row++) {
        const int64_t n = row / g->oh, oy = row % g->oh, iy = under(g, 0, oy, ky);

        if (iy < 0 || iy >= g->h) {
            continue;
        }
        for (int64_t ox = 0; ox < g->ow; ox++) {
            const int64_t ix = under(g, 1, ox, kx);

            if (ix >= 0 && ix < g->w) {
                sum += lsi_get_float(x, d, image_index(g, n, iy, ix) + c) *
                       lsi_get_float(gy, d, result_index(g, n, oy, ox) + o);
            }
        }
    }
    return sum;
}

LSI_INLINE ls_status filter_grad(ls_op_call *k, bool depthwise, ls_dtype d)
{
    const struct geometry g =
        geometry_of(k->attrs, k->in[0]->dims, k->out[0]->dims, k->in[1]->dims, depthwise);

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        const int64_t o = e % g.o, i = e / g.o % g.group_c, tap = e / (g.o * g.group_c);
        const int64_t c = o / g.group_o * g.group_c + i;

        lsi_put_float(k->out[0]->data, d, e,
                      weight_sum(&g, k->in[0]->data, k->in[1]->data, tap / g.kw,
                                 tap % g.kw, c, o, d));
    }
    return LS_OK;
}

#define CONV_KERNEL(name, body, depthwise)                                               \
    LSI_INLINE ls_status name##_of(ls_op_call *k, ls_dtype d)                            \
    {                                                                                    \
        return body(k, depthwise, d);                                                    \
    }                                                                                    \
    ls_status lsi_ref_##name(ls_op_call *k)                                              \
    {                                                                                    \
        return LSI_EACH_FLOAT(name##_of, k);                                             \
    }

CONV_KERNEL(conv2d, conv_forward, false)
CONV_KERNEL(conv2d_input_grad, input_grad, false)
CONV_KERNEL(conv2d_filter_grad, filter_grad, false)
CONV_KERNEL(depthwise_conv2d, conv_forward, true)
CONV_KERNEL(depthwise_conv2d_input_grad, input_grad, true)
CONV_KERNEL(depthwise_conv2d_filter_grad, filter_grad, true)
