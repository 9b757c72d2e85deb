/*
 * Pooling over windows of an image [n,h,w,c]. A maximum is remembered as its position
 * in the window, row by row, positions outside the image counted though never chosen.
 * Gradients gather: each pixel sums, in double, over the windows it lies in.
 */
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

enum { NO_MAXIMUM = 255 }; /* relu: nothing above 0 in the window */

struct geometry {
    const lsi_pool_attrs *at;
    int64_t h, w, c; /* image */
    int64_t oh, ow;  /* result */
};

static struct geometry geometry_of(const lsi_pool_attrs *at, const int64_t *image,
                                   const int64_t *result)
{
    return (struct geometry){at, image[1], image[2], image[3], result[1], result[2]};
}

/* Indices first <= i < end. */
struct span {
    int64_t first, end;
};

/* The rows (axis 0) or columns (axis 1) of the image in window `o`. */
LSI_INLINE struct span inside(const struct geometry *g, int axis, int64_t o)
{
    const int64_t begin = o * g->at->stride[axis] - g->at->pad[axis];
    const int64_t size = axis == 0 ? g->h : g->w;

    return (struct span){LSI_MAX(begin, 0), LSI_MIN(begin + g->at->size[axis], size)};
}

/* The windows that row or column `i` of the image lies in. */
LSI_INLINE struct span windows(const struct geometry *g, int axis, int64_t i)
{
    const int64_t stride = g->at->stride[axis], end = i + g->at->pad[axis];
    const int64_t begin = end - g->at->size[axis] + 1;
    const int64_t count = axis == 0 ? g->oh : g->ow;

    return (struct span){begin <= 0 ? 0 : (begin + stride - 1) / stride,
                         LSI_MIN(end / stride + 1, count)};
}

LSI_INLINE int64_t pixel_index(const struct geometry *g, int64_t n, int64_t y, int64_t x)
{
    return ((n * g->h + y) * g->w + x) * g->c;
}

LSI_INLINE int64_t window_index(const struct geometry *g, int64_t n, int64_t y, int64_t x)
{
    return ((n * g->oh + y) * g->ow + x) * g->c;
}

/* An element's image, row, column and channel. */
struct place {
    int64_t n, y, x, c;
};

LSI_INLINE struct place place_of(int64_t e, int64_t h, int64_t w, int64_t c)
{
    return (struct place){e / (h * w * c), e / (w * c) % h, e / c % w, e % c};
}

/* The first maximum of the window at `p`; sets *position. */
LSI_INLINE double window_max(const struct geometry *g, const void *x, struct place p,
                             ls_dtype d, uint8_t *position)
{
    const struct span rows = inside(g, 0, p.y), cols = inside(g, 1, p.x);
    const int64_t y0 = p.y * g->at->stride[0] - g->at->pad[0];
    const int64_t x0 = p.x * g->at->stride[1] - g->at->pad[1];
    int64_t by = rows.first, bx = cols.first;
    double best = lsi_get_float(x, d, pixel_index(g, p.n, by, bx) + p.c);

    for (int64_t iy = rows.first; iy < rows.end; iy++) {
        for (int64_t ix = cols.first; ix < cols.end; ix++) {
            const double v = lsi_get_float(x, d, pixel_index(g, p.n, iy, ix) + p.c);

            if (v > best) {
                best = v;
                by = iy;
                bx = ix;
            }
        }
    }
    *position = (uint8_t)((by - y0) * g->at->size[1] + (bx - x0));
    return best;
}

LSI_INLINE ls_status max_pool(ls_op_call *k, ls_dtype d)
{
    const struct geometry g = geometry_of(k->attrs, k->in[0]->dims, k->out[0]->dims);
    uint8_t *index = k->out[1]->data;

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        double best =
            window_max(&g, k->in[0]->data, place_of(e, g.oh, g.ow, g.c), d, &index[e]);

        if (g.at->relu && !(best > 0)) {
            best = isnan(best) ? best : 0;
            index[e] = NO_MAXIMUM;
        }
        lsi_put_float(k->out[0]->data, d, e, best);
    }
    return LS_OK;
}

ls_status lsi_ref_max_pool2d(ls_op_call *k)
{
    return LSI_EACH_FLOAT(max_pool, k);
}

/* The gradients of the windows whose maximum the pixel at `p` is. */
LSI_INLINE double chosen_sum(const struct geometry *g, const void *gy,
                             const uint8_t *index, struct place p, ls_dtype d)
{
    const struct span rows = windows(g, 0, p.y), cols = windows(g, 1, p.x);
    double sum = 0;

    for (int64_t oy = rows.first; oy < rows.end; oy++) {
        const int64_t ty = p.y + g->at->pad[0] - oy * g->at->stride[0];

        for (int64_t ox = cols.first; ox < cols.end; ox++) {
            const int64_t tx = p.x + g->at->pad[1] - ox * g->at->stride[1];
            const int64_t o = window_index(g, p.n, oy, ox) + p.c;

            if (index[o] == ty * g->at->size[1] + tx) {
                sum += lsi_get_float(gy, d, o);
            }
        }
    }
    return sum;
}

LSI_INLINE ls_status max_pool_grad(ls_op_call *k, ls_dtype d)
{
    const struct geometry g = geometry_of(k->attrs, k->out[0]->dims, k->in[0]->dims);

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        lsi_put_float(k->out[0]->data, d, e,
                      chosen_sum(&g, k->in[0]->data, k->in[1]->data,
                                 place_of(e, g.h, g.w, g.c), d));
    }
    return LS_OK;
}

ls_status lsi_ref_max_pool2d_grad(ls_op_call *k)
{
    return LSI_EACH_FLOAT(max_pool_grad, k);
}

LSI_INLINE ls_status max_pool_grad_grad(ls_op_call *k, ls_dtype d)
{
    const struct geometry g = geometry_of(k->attrs, k->in[0]->dims, k->out[0]->dims);
    const uint8_t *index = k->in[1]->data;

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        const struct place p = place_of(e, g.oh, g.ow, g.c);
        const int64_t y = p.y * g.at->stride[0] - g.at->pad[0] + index[e] / g.at->size[1];
        const int64_t x = p.x * g.at->stride[1] - g.at->pad[1] + index[e] % g.at->size[1];
        // The index may come from anywhere; one outside the image chose nothing.
        const bool chosen =
            index[e] != NO_MAXIMUM && y >= 0 && y < g.h && x >= 0 && x < g.w;

        lsi_put_float(
            k->out[0]->data, d, e,
            chosen ? lsi_get_float(k->in[0]->data, d, pixel_index(&g, p.n, y, x) + p.c)
                   : 0);
    }
    return LS_OK;
}

ls_status lsi_ref_max_pool2d_grad_grad(ls_op_call *k)
{
    return LSI_EACH_FLOAT(max_pool_grad_grad, k);
}

LSI_INLINE double window_mean(const struct geometry *g, const void *x, struct place p,
                              ls_dtype d)
{
    const struct span rows = inside(g, 0, p.y), cols = inside(g, 1, p.x);
    double sum = 0;

    for (int64_t iy = rows.first; iy < rows.end; iy++) {
        for (int64_t ix = cols.first; ix < cols.end; ix++) {
            sum += lsi_get_float(x, d, pixel_index(g, p.n, iy, ix) + p.c);
        }
    }
    return sum / (double)((rows.end - rows.first) * (cols.end - cols.first));
}

LSI_INLINE ls_status avg_pool(ls_op_call *k, ls_dtype d)
{
    const struct geometry g = geometry_of(k->attrs, k->in[0]->dims, k->out[0]->dims);

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        lsi_put_float(k->out[0]->data, d, e,
                      window_mean(&g, k->in[0]->data, place_of(e, g.oh, g.ow, g.c), d));
    }
    return LS_OK;
}

ls_status lsi_ref_avg_pool2d(ls_op_call *k)
{
    return LSI_EACH_FLOAT(avg_pool, k);
}

/* The shares of the pixel at `p` in the gradients of its windows. */
LSI_INLINE double share_sum(const struct geometry *g, const void *gy, struct place p,
                            ls_dtype d)
{
    const struct span rows = windows(g, 0, p.y), cols = windows(g, 1, p.x);
    double sum = 0;

    for (int64_t oy = rows.first; oy < rows.end; oy++) {
        const struct span wy = inside(g, 0, oy);

        for (int64_t ox = cols.first; ox < cols.end; ox++) {
            const struct span wx = inside(g, 1, ox);

            sum += lsi_get_float(gy, d, window_index(g, p.n, oy, ox) + p.c) /
                   (double)((wy.end - wy.first) * (wx.end - wx.first));
        }
    }
    return sum;
}

LSI_INLINE ls_status avg_pool_grad(ls_op_call *k, ls_dtype d)
{
    const struct geometry g = geometry_of(k->attrs, k->out[0]->dims, k->in[0]->dims);

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        lsi_put_float(k->out[0]->data, d, e,
                      share_sum(&g, k->in[0]->data, place_of(e, g.h, g.w, g.c), d));
    }
    return LS_OK;
}

ls_status lsi_ref_avg_pool2d_grad(ls_op_call *k)
{
    return LSI_EACH_FLOAT(avg_pool_grad, k);
}
