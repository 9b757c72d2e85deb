/*
 * Max pooling over windows of an image [n,h,w,c], a vector of channels at a time, and its
 * gradient. Positions in the window are counted row by row, those outside the image too.
 */
#include "kernel/simd/pool2d.h"

enum { NO_MAXIMUM = 255 }; /* relu: nothing above 0 in the window */

typedef uint8_t vb __attribute__((vector_size(VW)));

LSI_INLINE int32_t position_in(const struct pool *p, const struct window *w, int64_t y,
                               int64_t x)
{
    return (int32_t)((y - w->y0) * p->at->size[1] + (x - w->x0));
}

LSI_INLINE void put_max(vf best, vi where, bool relu, float *to, uint8_t *index)
{
    if (relu) {
        // Not above 0: no gradient; and 0 unless it is a NaN, which stays.
        where = vselect_i(best > vzero(), where, vsplat_i(NO_MAXIMUM));
        best = vmax(vzero(), best);
    }
    const vb small = __builtin_convertvector(where, vb);

    vstore(to, best);
    memcpy(index, &small, sizeof(small));
}

/* One whole 2 x 2 window: `x` is its corner, `down` the way to the next row. */
LSI_INLINE void max_of_four(const float *x, int64_t c, int64_t down, bool relu, float *to,
                            uint8_t *index)
{
    for (int64_t i = 0; i + VW <= c; i += VW) {
        const vf q[4] = {vload(x + i), vload(x + i + c), vload(x + i + down),
                         vload(x + i + down + c)};
        vf best = q[0];
        vi where = vsplat_i(0);

        LSI_UNROLL
        for (int j = 1; j < 4; j++) {
            where = vselect_i(q[j] > best, vsplat_i(j), where);
            best = vmax(q[j], best);
        }
        put_max(best, where, relu, to + i, index + i);
    }
}

LSI_INLINE void max_of_any(const struct pool *p, const float *image,
                           const struct window *w, float *to, uint8_t *index)
{
    for (int64_t i = 0; i + VW <= p->c; i += VW) {
        vf best = vload(image + (w->top * p->w + w->left) * p->c + i);
        vi where = vsplat_i(position_in(p, w, w->top, w->left));

        for (int64_t y = w->top; y < w->bottom; y++) {
            for (int64_t x = w->left; x < w->right; x++) {
                const vf v = vload(image + (y * p->w + x) * p->c + i);

                where = vselect_i(v > best, vsplat_i(position_in(p, w, y, x)), where);
                best = vmax(v, best);
            }
        }
        put_max(best, where, p->at->relu, to + i, index + i);
    }
}

/* The channels that do not fill a vector. */
static void max_of_rest(const struct pool *p, const float *image, const struct window *w,
                        float *to, uint8_t *index)
{
    for (int64_t i = p->c / VW * VW; i < p->c; i++) {
        float best = image[(w->top * p->w + w->left) * p->c + i];
        int32_t where = position_in(p, w, w->top, w->left);

        for (int64_t y = w->top; y < w->bottom; y++) {
            for (int64_t x = w->left; x < w->right; x++) {
                const float v = image[(y * p->w + x) * p->c + i];

                where = v > best ? position_in(p, w, y, x) : where;
                best = v > best ? v : best;
            }
        }
        if (p->at->relu && !(best > 0.0f)) {
            best = best < 0.0f ? 0.0f : best;
            where = NO_MAXIMUM;
        }
        to[i] = best;
        index[i] = (uint8_t)where;
    }
}

static void pool_part(void *arg, int part, int parts)
{
    const struct pool *p = arg;
    const bool four = p->at->size[0] == 2 && p->at->size[1] == 2;
    int64_t begin = 0, end = 0;

    lsi_team_share(p->n * p->oh, 1, part, parts, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        const float *image = p->from + row / p->oh * p->h * p->w * p->c;

        for (int64_t ox = 0; ox < p->ow; ox++) {
            const struct window w = window_of(p, row % p->oh, ox);
            const int64_t at = (row * p->ow + ox) * p->c;
            const bool whole = w.bottom - w.top == 2 && w.right - w.left == 2;

            if (four && whole) {
                max_of_four(image + (w.top * p->w + w.left) * p->c, p->c, p->w * p->c,
                            p->at->relu, p->to + at, p->index + at);
            } else {
                max_of_any(p, image, &w, p->to + at, p->index + at);
            }
            if (p->c % VW != 0) {
                max_of_rest(p, image, &w, p->to + at, p->index + at);
            }
        }
    }
}

ls_status LSI_SIMD(max_pool2d)(ls_op_call *k)
{
    if (!lsi_all_f32(k)) {
        return LS_UNIMPLEMENTED;
    }
    struct pool p = pool_of(k->attrs, k->in[0]->dims, k->out[0]->dims);

    p.from = k->in[0]->data;
    p.to = k->out[0]->data;
    p.index = k->out[1]->data;
    lsi_team_run(k->team, lsi_parts(k, k->in[0]->count / 2), pool_part, &p);
    return LS_OK;
}

/* What one window gives to a pixel of its own: its gradient where `position` was chosen.
 */
LSI_INLINE void give_gradient(const struct pool *p, const float *g, const uint8_t *index,
                              int32_t position, bool add, float *to)
{
    int64_t i = 0;

    for (; i + VW <= p->c; i += VW) {
        vb small;

        memcpy(&small, index + i, sizeof(small));
        const vi chosen = __builtin_convertvector(small, vi) == vsplat_i(position);
        const vf v = (vf)((vi)vload(g + i) & chosen);

        vstore(to + i, add ? vload(to + i) + v : v);
    }
    for (; i < p->c; i++) {
        const float v = index[i] == position ? g[i] : 0.0f;

        to[i] = add ? to[i] + v : v;
    }
}

/* The same for all pixels of a whole 2 x 2 window at once: `to` is its corner. */
LSI_INLINE void give_to_four(const float *g, const uint8_t *index, int64_t c,
                             int64_t down, float *to)
{
    for (int64_t i = 0; i < c; i += VW) {
        const vi from = (vi)vload(g + i);
        vb small;

        memcpy(&small, index + i, sizeof(small));
        const vi chosen = __builtin_convertvector(small, vi);

        vstore(to + i, (vf)(from & (chosen == vsplat_i(0))));
        vstore(to + i + c, (vf)(from & (chosen == vsplat_i(1))));
        vstore(to + i + down, (vf)(from & (chosen == vsplat_i(2))));
        vstore(to + i + down + c, (vf)(from & (chosen == vsplat_i(3))));
    }
}

/* Zeros what no window of a tiling covers: rows at the bottom, columns at the right. */
static void clear_edge(const struct pool *p, float *image)
{
    const int64_t rows = LSI_MIN(p->oh * p->at->stride[0] - p->at->pad[0], p->h);
    const int64_t cols = LSI_MIN(p->ow * p->at->stride[1] - p->at->pad[1], p->w);

    for (int64_t y = 0; y < p->h; y++) {
        const int64_t x = y < rows ? cols : 0;

        memset(image + (y * p->w + x) * p->c, 0,
               (size_t)((p->w - x) * p->c) * sizeof(float));
    }
}

/* How the windows of a call lie. */
struct layout {
    bool apart; /* they do not overlap: they are written, not added */
    bool tiles; /* they lie side by side */
    bool four;  /* tiles of 2 x 2, and whole vectors of channels */
};

static struct layout layout_of(const struct pool *p)
{
    const int *size = p->at->size, *stride = p->at->stride;
    const bool tiles = stride[0] == size[0] && stride[1] == size[1];

    return (struct layout){
        .apart = stride[0] >= size[0] && stride[1] >= size[1],
        .tiles = tiles,
        .four = tiles && size[0] == 2 && size[1] == 2 && p->c % VW == 0,
    };
}

/* The windows of one row; g and index are those of its first window. */
LSI_INLINE void give_row(const struct pool *p, const struct layout *l, int64_t oy,
                         const float *g, const uint8_t *index, float *image)
{
    for (int64_t ox = 0; ox < p->ow; ox++, g += p->c, index += p->c) {
        const struct window w = window_of(p, oy, ox);

        if (l->four && w.bottom - w.top == 2 && w.right - w.left == 2) {
            give_to_four(g, index, p->c, p->w * p->c,
                         image + (w.top * p->w + w.left) * p->c);
            continue;
        }
        for (int64_t y = w.top; y < w.bottom; y++) {
            for (int64_t x = w.left; x < w.right; x++) {
                give_gradient(p, g, index, position_in(p, &w, y, x), !l->apart,
                              image + (y * p->w + x) * p->c);
            }
        }
    }
}

/* Sums, where windows overlap, are always added in the same order. */
static void pool_grad_part(void *arg, int part, int parts)
{
    const struct pool *p = arg;
    const struct layout l = layout_of(p);
    const int64_t size = p->h * p->w * p->c;
    int64_t begin = 0, end = 0;

    lsi_team_share(p->n, 1, part, parts, &begin, &end);
    for (int64_t n = begin; n < end; n++) {
        float *image = p->to + n * size;

        if (l.tiles) {
            clear_edge(p, image);
        } else {
            memset(image, 0, (size_t)size * sizeof(float));
        }
        for (int64_t oy = 0; oy < p->oh; oy++) {
            const int64_t from = (n * p->oh + oy) * p->ow * p->c;

            give_row(p, &l, oy, p->from + from, p->index + from, image);
        }
    }
}

ls_status LSI_SIMD(max_pool2d_grad)(ls_op_call *k)
{
    struct pool p = pool_of(k->attrs, k->out[0]->dims, k->in[0]->dims);

    if (k->in[0]->dtype != LS_F32) {
        return LS_UNIMPLEMENTED;
    }
    p.from = k->in[0]->data;
    p.to = k->out[0]->data;
    p.index = k->in[1]->data;
    lsi_team_run(k->team, lsi_parts(k, k->out[0]->count / 2), pool_grad_part, &p);
    return LS_OK;
}
