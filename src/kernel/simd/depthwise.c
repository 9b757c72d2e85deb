/*
 * Depthwise convolutions over [n,h,w,c] images with one result per channel: channels stay
 * apart, so a vector of them is computed like one.
 *
 * A result is a sum over the taps of its window; so is a pixel's gradient, over the taps
 * that lie on it. Both are one loop over a list of taps. A weight's gradient is a sum
 * over all windows, row by row: long sums of floats are better in parts.
 */
#include "kernel/simd/conv.h"

enum { WIDE = 4, BLOCK = WIDE * VW }; /* vectors at a time: independent sums */

struct tap {
    int64_t from;   /* where its pixel lies in the source's image */
    int64_t weight; /* where its weight lies in the filter */
};

struct team_work {
    lsi_conv v;
    ls_activation activation;
    const float *filter, *bias, *g;
    float *to;
    struct tap *taps; /* kh * kw for each member */
};

static struct team_work job_of(const ls_op_call *k, const ls_tensor *x,
                               const ls_tensor *w, const ls_tensor *y)
{
    const lsi_conv_attrs *at = k->attrs;

    return (struct team_work){
        .v = conv_of(at, x->dims, w->dims, y->dims),
        .activation = at->activation,
        .to = k->out[0]->data,
    };
}

/* Row (axis 0) or column (axis 1) of the image under tap `t` of window `o`. */
LSI_INLINE int64_t under(const lsi_conv *v, int axis, int64_t o, int64_t t)
{
    return o * v->stride[axis] - v->pad[axis] + t * v->dilation[axis];
}

/* The window whose tap `t` lies on row or column `i` of the image; negative: none. */
LSI_INLINE int64_t over(const lsi_conv *v, int axis, int64_t i, int64_t t)
{
    const int64_t at = i + v->pad[axis] - t * v->dilation[axis];

    return at < 0 || at % v->stride[axis] != 0 ? -1 : at / v->stride[axis];
}

/* Where a tap leads: under() or over(). */
typedef int64_t (*tap_fn)(const lsi_conv *v, int axis, int64_t at, int64_t t);

/* Taps of destination (y, x) that lie inside the source of h x w; returns how many. */
LSI_INLINE int64_t find_taps(const lsi_conv *v, tap_fn lead, int64_t y, int64_t x,
                             int64_t h, int64_t w, struct tap *taps)
{
    int64_t count = 0;

    for (int64_t ky = 0; ky < v->kh; ky++) {
        const int64_t sy = lead(v, 0, y, ky);

        for (int64_t kx = 0; sy >= 0 && sy < h && kx < v->kw; kx++) {
            const int64_t sx = lead(v, 1, x, kx);

            if (sx >= 0 && sx < w) {
                taps[count++] =
                    (struct tap){(sy * w + sx) * v->c, (ky * v->kw + kx) * v->c};
            }
        }
    }
    return count;
}

/* A vector of channels, or the `rest` of them that do not fill one; 0: they do. */
LSI_INLINE vf load_channels(const float *p, int64_t rest)
{
    return rest > 0 ? vload_n(p, rest) : vload(p);
}

LSI_INLINE void store_channels(float *p, vf v, int64_t rest)
{
    if (rest > 0) {
        vstore_n(p, v, rest);
    } else {
        vstore(p, v);
    }
}

/* `nv` vectors of channels from channel i on; from: the source's image. */
LSI_INLINE void sum_taps(const struct team_work *j, const struct tap *taps, int64_t count,
                         const float *from, int64_t i, const int nv, int64_t rest,
                         float *to)
{
    vf sum[WIDE];

    LSI_UNROLL
    for (int64_t v = 0; v < nv; v++) {
        sum[v] = j->bias != NULL ? load_channels(j->bias + i + v * VW, rest) : vzero();
    }
    for (int64_t t = 0; t < count; t++) {
        const float *x = from + taps[t].from + i, *w = j->filter + taps[t].weight + i;

        LSI_UNROLL
        for (int64_t v = 0; v < nv; v++) {
            sum[v] += load_channels(x + v * VW, rest) * load_channels(w + v * VW, rest);
        }
    }
    LSI_UNROLL
    for (int64_t v = 0; v < nv; v++) {
        store_channels(to + i + v * VW, sum[v], rest);
    }
}

static void sum_pixel(const struct team_work *j, const struct tap *taps, int64_t count,
                      const float *from, float *to)
{
    int64_t i = 0;

    for (; i + BLOCK <= j->v.c; i += BLOCK) {
        sum_taps(j, taps, count, from, i, WIDE, 0, to);
    }
    for (; i + VW <= j->v.c; i += VW) {
        sum_taps(j, taps, count, from, i, 1, 0, to);
    }
    if (i < j->v.c) {
        sum_taps(j, taps, count, from, i, 1, j->v.c - i, to);
    }
}

static void forward_part(void *arg, int part, int parts)
{
    const struct team_work *j = arg;
    struct tap *taps = j->taps + part * j->v.kh * j->v.kw;
    int64_t begin = 0, end = 0;

    lsi_team_share(j->v.n * j->v.oh, 1, part, parts, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        const float *image = j->v.x + row / j->v.oh * j->v.h * j->v.w * j->v.c;
        float *to = j->to + row * j->v.ow * j->v.c;

        for (int64_t x = 0; x < j->v.ow; x++) {
            const int64_t count =
                find_taps(&j->v, under, row % j->v.oh, x, j->v.h, j->v.w, taps);

            sum_pixel(j, taps, count, image, to + x * j->v.c);
        }
        LSI_SIMD(activate)(j->activation, to, j->v.ow * j->v.c, 1, j->v.ow * j->v.c);
    }
}

static void input_grad_part(void *arg, int part, int parts)
{
    const struct team_work *j = arg;
    struct tap *taps = j->taps + part * j->v.kh * j->v.kw;
    int64_t begin = 0, end = 0;

    lsi_team_share(j->v.n * j->v.h, 1, part, parts, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        const float *g = j->g + row / j->v.h * j->v.oh * j->v.ow * j->v.c;

        for (int64_t x = 0; x < j->v.w; x++) {
            const int64_t count =
                find_taps(&j->v, over, row % j->v.h, x, j->v.oh, j->v.ow, taps);

            sum_pixel(j, taps, count, g, j->to + (row * j->v.w + x) * j->v.c);
        }
    }
}

/* About how long the taps of `count` results take. */
static int64_t work_of(const struct team_work *j, int64_t count)
{
    return count / VW * j->v.kh * j->v.kw / 2;
}

/* Runs `part` over `rows` rows, with a list of taps for each member. */
static ls_status run_taps(ls_op_call *k, struct team_work *j, int64_t rows,
                          lsi_team_fn part)
{
    const int parts = (int)LSI_MIN(lsi_parts(k, work_of(j, k->out[0]->count)), rows);
    const size_t bytes = (size_t)(parts * j->v.kh * j->v.kw) * sizeof(struct tap);

    j->taps = lsi_device_alloc(k->device, bytes);
    if (j->taps == NULL) {
        return lsi_fail_memory(k->err, "depthwise convolution", bytes);
    }
    lsi_team_run(k->team, parts, part, j);
    lsi_device_free(k->device, j->taps);
    return LS_OK;
}

/* Whether there is one result per channel and work to do. `w`: filter or gradient. */
static bool is_plain(const ls_op_call *k, const ls_tensor *w)
{
    return lsi_all_f32(k) && w->dims[3] == 1 && w->count > 0 && k->in[0]->count > 0 &&
           k->in[1]->count > 0 && k->out[0]->count > 0;
}

ls_status LSI_SIMD(depthwise_conv2d)(ls_op_call *k)
{
    struct team_work j = job_of(k, k->in[0], k->in[1], k->out[0]);

    if (!is_plain(k, k->in[1])) {
        return LS_UNIMPLEMENTED;
    }
    j.v.x = k->in[0]->data;
    j.filter = k->in[1]->data;
    j.bias = k->nin > 2 ? k->in[2]->data : NULL;
    return run_taps(k, &j, j.v.n * j.v.oh, forward_part);
}

ls_status LSI_SIMD(depthwise_conv2d_input_grad)(ls_op_call *k)
{
    struct team_work j = job_of(k, k->out[0], k->in[1], k->in[0]);

    if (!is_plain(k, k->in[1])) {
        return LS_UNIMPLEMENTED;
    }
    j.g = k->in[0]->data;
    j.filter = k->in[1]->data;
    return run_taps(k, &j, j.v.n * j.v.h, input_grad_part);
}

/* The windows of a row whose tap kx lies inside the image: *begin .. *end-1. */
static void windows_inside(const lsi_conv *v, int64_t kx, int64_t *begin, int64_t *end)
{
    *begin = 0;
    *end = v->ow;
    while (*begin < *end && under(v, 1, *begin, kx) < 0) {
        (*begin)++;
    }
    while (*begin < *end && under(v, 1, *end - 1, kx) >= v->w) {
        (*end)--;
    }
}

/* What `count` windows of a row give to `nv` vectors of weights. */
LSI_INLINE void add_row(const struct team_work *j, const float *x, const float *g,
                        int64_t count, const int nv, int64_t rest, vf sum[WIDE])
{
    const int64_t step = j->v.stride[1] * j->v.c;
    vf row[WIDE];

    LSI_UNROLL
    for (int64_t v = 0; v < nv; v++) {
        row[v] = vzero();
    }
    for (int64_t o = 0; o < count; o++, x += step, g += j->v.c) {
        LSI_UNROLL
        for (int64_t v = 0; v < nv; v++) {
            row[v] += load_channels(x + v * VW, rest) * load_channels(g + v * VW, rest);
        }
    }
    LSI_UNROLL
    for (int64_t v = 0; v < nv; v++) {
        sum[v] += row[v];
    }
}

/* What image `n` gives to tap (ky, kx) of `nv` vectors of channels, from channel i on. */
LSI_INLINE void add_image(const struct team_work *j, int64_t n, int64_t ky, int64_t kx,
                          int64_t i, const int nv, int64_t rest)
{
    float *to = j->to + (ky * j->v.kw + kx) * j->v.c + i;
    int64_t begin = 0, end = 0;
    vf sum[WIDE];

    LSI_UNROLL
    for (int64_t v = 0; v < nv; v++) {
        sum[v] = n > 0 ? load_channels(to + v * VW, rest) : vzero();
    }
    windows_inside(&j->v, kx, &begin, &end);
    for (int64_t oy = 0; oy < j->v.oh && begin < end; oy++) {
        const int64_t iy = under(&j->v, 0, oy, ky), ix = under(&j->v, 1, begin, kx);

        if (iy >= 0 && iy < j->v.h) {
            add_row(j, j->v.x + ((n * j->v.h + iy) * j->v.w + ix) * j->v.c + i,
                    j->g + ((n * j->v.oh + oy) * j->v.ow + begin) * j->v.c + i,
                    end - begin, nv, rest, sum);
        }
    }
    LSI_UNROLL
    for (int64_t v = 0; v < nv; v++) {
        store_channels(to + v * VW, sum[v], rest);
    }
}

/* All weights of these channels. An image is used by every tap while it is near. */
LSI_INLINE void add_images(const struct team_work *j, int64_t i, const int nv,
                           int64_t rest)
{
    for (int64_t n = 0; n < j->v.n; n++) {
        for (int64_t tap = 0; tap < j->v.kh * j->v.kw; tap++) {
            add_image(j, n, tap / j->v.kw, tap % j->v.kw, i, nv, rest);
        }
    }
}

/* Members share the channels: how many of them there are changes no sum. */
static void filter_grad_part(void *arg, int part, int parts)
{
    const struct team_work *j = arg;
    int64_t i = 0, end = 0;

    lsi_team_share(j->v.c, VW, part, parts, &i, &end);
    for (; i + BLOCK <= end; i += BLOCK) {
        add_images(j, i, WIDE, 0);
    }
    for (; i + VW <= end; i += VW) {
        add_images(j, i, 1, 0);
    }
    if (i < end) {
        add_images(j, i, 1, end - i);
    }
}

ls_status LSI_SIMD(depthwise_conv2d_filter_grad)(ls_op_call *k)
{
    struct team_work j = job_of(k, k->in[0], k->out[0], k->in[1]);
    int parts = 1;

    if (!is_plain(k, k->out[0])) {
        return LS_UNIMPLEMENTED;
    }
    j.v.x = k->in[0]->data;
    j.g = k->in[1]->data;
    parts = lsi_parts(k, work_of(&j, k->in[1]->count));
    lsi_team_run(k->team, (int)LSI_MIN(parts, (j.v.c + VW - 1) / VW), filter_grad_part,
                 &j);
    return LS_OK;
}
