/*
 * Average pooling over windows of an image [n,h,w,c], a vector of channels at a time, and
 * its gradient. Positions outside the image do not count.
 */
#include "kernel/simd/pool2d.h"

static float share_of(const struct window *w)
{
    return 1.0F / (float)((w->bottom - w->top) * (w->right - w->left));
}

/* The mean of `rest` channels from `x` on, 0: of a vector of them; x: the first pixel. */
LSI_INLINE vf mean_of(const struct pool *p, const struct window *w, const float *x,
                      int64_t rest)
{
    vf sum = vzero();

    for (int64_t row = w->top; row < w->bottom; row++, x += p->w * p->c) {
        for (int64_t col = 0; col < w->right - w->left; col++) {
            sum += rest > 0 ? vload_n(x + col * p->c, rest) : vload(x + col * p->c);
        }
    }
    return sum * share_of(w);
}

static void mean_part(void *arg, int part, int parts)
{
    const struct pool *p = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(p->n * p->oh, 1, part, parts, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        const float *image = p->from + row / p->oh * p->h * p->w * p->c;

        for (int64_t ox = 0; ox < p->ow; ox++) {
            const struct window w = window_of(p, row % p->oh, ox);
            const float *x = image + (w.top * p->w + w.left) * p->c;
            float *to = p->to + (row * p->ow + ox) * p->c;
            int64_t i = 0;

            for (; i + VW <= p->c; i += VW) {
                vstore(to + i, mean_of(p, &w, x + i, 0));
            }
            if (i < p->c) {
                vstore_n(to + i, mean_of(p, &w, x + i, p->c - i), p->c - i);
            }
        }
    }
}

ls_status LSI_SIMD(avg_pool2d)(ls_op_call *k)
{
    struct pool p = pool_of(k->attrs, k->in[0]->dims, k->out[0]->dims);

    if (!lsi_all_f32(k)) {
        return LS_UNIMPLEMENTED;
    }
    p.from = k->in[0]->data;
    p.to = k->out[0]->data;
    lsi_team_run(k->team, lsi_parts(k, k->in[0]->count / 2), mean_part, &p);
    return LS_OK;
}

/* Adds what a window gives to each of its pixels. */
static void give_shares(const struct pool *p, const struct window *w, const float *g,
                        float *image)
{
    const float share = share_of(w);

    for (int64_t y = w->top; y < w->bottom; y++) {
        for (int64_t x = w->left; x < w->right; x++) {
            float *to = image + (y * p->w + x) * p->c;
            int64_t i = 0;

            for (; i + VW <= p->c; i += VW) {
                vstore(to + i, vload(to + i) + vload(g + i) * share);
            }
            for (; i < p->c; i++) {
                to[i] += g[i] * share;
            }
        }
    }
}

/* Where windows overlap, shares are always added in the same order. */
static void mean_grad_part(void *arg, int part, int parts)
{
    const struct pool *p = arg;
    const int64_t size = p->h * p->w * p->c;
    int64_t begin = 0, end = 0;

    lsi_team_share(p->n, 1, part, parts, &begin, &end);
    for (int64_t n = begin; n < end; n++) {
        float *image = p->to + n * size;

        memset(image, 0, (size_t)size * sizeof(float));
        for (int64_t at = 0; at < p->oh * p->ow; at++) {
            const struct window w = window_of(p, at / p->ow, at % p->ow);

            give_shares(p, &w, p->from + (n * p->oh * p->ow + at) * p->c, image);
        }
    }
}

ls_status LSI_SIMD(avg_pool2d_grad)(ls_op_call *k)
{
    struct pool p = pool_of(k->attrs, k->out[0]->dims, k->in[0]->dims);

    if (!lsi_all_f32(k)) {
        return LS_UNIMPLEMENTED;
    }
    p.from = k->in[0]->data;
    p.to = k->out[0]->data;
    lsi_team_run(k->team, lsi_parts(k, k->out[0]->count / 2), mean_grad_part, &p);
    return LS_OK;
}
