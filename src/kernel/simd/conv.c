/*
 * Convolutions as products of matrices. A row of the left matrix is the patch of the
 * image under one window; it is read where it lies, through tables of the places of
 * windows and of taps. Only an image with a padded edge is copied.
 *
 *     forward        patches [pixels, kh*kw*c] x filter [kh*kw*c, o]
 *     filter grad    patches' [kh*kw*c, pixels] x gradient [pixels, o]
 *     input grad     gradient [pixels, o] x filter' [o, kh*kw*c], rows added into the
 * image
 */
#include "kernel/simd/conv.h"

/* Floats of the block of patch gradients that waits to be added into an image. */
enum { PATCH_FLOATS = 49152 };

/* As in gemm_run.c: multiplications and additions of a nanosecond. */
enum { FLOPS_PER_NS = 6 * VW };

LSI_INLINE void add_floats(float *to, const float *from, int64_t n)
{
    int64_t i = 0;

    for (; i + VW <= n; i += VW) {
        vstore(to + i, vload(to + i) + vload(from + i));
    }
    if (i < n) {
        vstore_n(to + i, vload_n(to + i, n - i) + vload_n(from + i, n - i), n - i);
    }
}

/* A window: the image it lies on and where, possibly outside, its corner is. */
struct window {
    int64_t image, y, x;
};

LSI_INLINE struct window window_at(const lsi_conv *v, int64_t pixel)
{
    const int64_t row = pixel / v->ow;

    return (struct window){
        .image = row / v->oh,
        .y = row % v->oh * v->stride[0] - v->pad[0],
        .x = pixel % v->ow * v->stride[1] - v->pad[1],
    };
}

LSI_INLINE void next_window(const lsi_conv *v, struct window *at)
{
    at->x += v->stride[1];
    if (at->x >= v->ow * v->stride[1] - v->pad[1]) {
        at->x = -v->pad[1];
        at->y += v->stride[0];
        if (at->y >= v->oh * v->stride[0] - v->pad[0]) {
            at->y = -v->pad[0];
            at->image++;
        }
    }
}

/* An element of a patch: its tap and its channel. */
struct element {
    int64_t ky, kx, c;
};

LSI_INLINE struct element element_at(const lsi_conv *v, int64_t i)
{
    return (struct element){i / (v->kw * v->c), i / v->c % v->kw, i % v->c};
}

/* Elements of a patch that lie one after the other in the image, too. */
struct run {
    int64_t n;
    int64_t at; /* in the image; -1: outside */
};

/*
 * The longest run from *e on, of at most `left` elements; moves *e behind it. There are
 * no divisions here: this is called for every row of every patch.
 */
LSI_INLINE struct run next_run(const lsi_conv *v, const struct window *w, bool rows,
                               int64_t left, struct element *e)
{
    const int64_t y = w->y + e->ky * v->dilation[0];
    const int64_t x = w->x + e->kx * v->dilation[1];
    const bool outside = y < 0 || y >= v->h || x < 0 || x >= v->w;
    const int64_t n = rows ? (v->kw - e->kx) * v->c - e->c : v->c - e->c;
    const struct run r = {
        .n = LSI_MIN(n, left),
        .at = outside ? -1 : ((w->image * v->h + y) * v->w + x) * v->c + e->c,
    };

    e->c = 0;
    e->kx = rows ? v->kw : e->kx + 1;
    if (e->kx == v->kw) {
        e->kx = 0;
        e->ky++;
    }
    return r;
}

/* True if whole rows of the window are contiguous: undilated, and inside the image. */
LSI_INLINE bool has_whole_rows(const lsi_conv *v, const struct window *w)
{
    return v->dilation[1] == 1 && w->x >= 0 && w->x + v->kw <= v->w;
}

/* The patches of a 1 x 1 filter are the pixels themselves. */
static bool is_pointwise(const lsi_conv *v)
{
    return v->kh == 1 && v->kw == 1 && v->stride[0] == 1 && v->stride[1] == 1 &&
           conv_is_inside(v);
}

/* Images with their padding, and the tables to walk over them. One allocation. */
struct patches {
    lsi_conv v; /* of the padded images: h, w, x are theirs, and pad is 0 */
    const lsi_conv *plain;
    float *padded;
    int64_t *windows; /* place of each window */
    int64_t *taps;    /* place of each element of a patch */
    lsi_strided_run *pieces;
    void *memory;
};

static void pad_part(void *arg, int part, int parts)
{
    const struct patches *p = arg;
    const lsi_conv *from = p->plain, *to = &p->v;
    // Columns of the padded image that show the image; it starts inside if pad is below
    // 0.
    const int64_t left = LSI_MAX(from->pad[1], 0);
    const int64_t width = LSI_MIN(from->w + from->pad[1], to->w) - left;
    int64_t begin = 0, end = 0;

    lsi_team_share(from->n * to->h, 1, part, parts, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        const int64_t y = row % to->h - from->pad[0], image = row / to->h;
        float *line = p->padded + row * to->w * to->c;

        memset(line, 0, (size_t)(to->w * to->c) * sizeof(float));
        if (y >= 0 && y < from->h && width > 0) {
            memcpy(line + left * from->c,
                   from->x +
                       ((image * from->h + y) * from->w + left - from->pad[1]) * from->c,
                   (size_t)(width * from->c) * sizeof(float));
        }
    }
}

/* Allocates for `windows` + `taps` places and `pieces`, and pads the images. */
static ls_status open_patches(ls_op_call *k, const lsi_conv *v, int64_t windows,
                              int64_t taps, int64_t pieces, struct patches *p)
{
    size_t floats = 0, bytes = 0;

    p->plain = v;
    p->v = *v;
    if (!conv_is_inside(v)) {
        p->v.h = (v->oh - 1) * v->stride[0] + (v->kh - 1) * v->dilation[0] + 1;
        p->v.w = (v->ow - 1) * v->stride[1] + (v->kw - 1) * v->dilation[1] + 1;
        p->v.pad[0] = 0;
        p->v.pad[1] = 0;
        floats = (size_t)(v->n * p->v.h * p->v.w * v->c);
    }
    bytes = (size_t)(windows + taps) * sizeof(int64_t) +
            (size_t)pieces * sizeof(lsi_strided_run) + floats * sizeof(float);
    p->memory = lsi_device_alloc(k->device, bytes);
    if (p->memory == NULL) {
        return lsi_fail_memory(k->err, "convolution", bytes);
    }
    p->pieces = p->memory;
    p->windows = (int64_t *)(p->pieces + pieces);
    p->taps = p->windows + windows;
    if (floats > 0) {
        p->padded = (float *)(p->taps + taps);
        p->v.x = p->padded;
        lsi_team_run(k->team, lsi_parts(k, (int64_t)floats / 2), pad_part, p);
    }
    return LS_OK;
}

static void list_windows(const struct patches *p)
{
    const lsi_conv *v = &p->v;
    int64_t *to = p->windows;

    for (int64_t row = 0; row < v->n * v->oh; row++) {
        int64_t at = (row / v->oh * v->h + row % v->oh * v->stride[0]) * v->w * v->c;

        for (int64_t x = 0; x < v->ow; x++) {
            *to++ = at;
            at += v->stride[1] * v->c;
        }
    }
}

static void list_taps(const struct patches *p)
{
    const lsi_conv *v = &p->v;
    int64_t *to = p->taps;

    for (int64_t tap = 0; tap < v->kh * v->kw; tap++) {
        const int64_t y = tap / v->kw * v->dilation[0], x = tap % v->kw * v->dilation[1];

        for (int64_t c = 0; c < v->c; c++) {
            *to++ = (y * v->w + x) * v->c + c;
        }
    }
}

/* How many pieces a patch has: rows of the window, or taps if it is dilated. */
static int64_t patch_pieces(const lsi_conv *v)
{
    return v->dilation[1] == 1 ? v->kh : v->kh * v->kw;
}

static void list_patch_pieces(const struct patches *p)
{
    const lsi_conv *v = &p->v;
    const int64_t count = patch_pieces(v), in_row = count / v->kh;

    for (int64_t i = 0; i < count; i++) {
        const int64_t y = i / in_row * v->dilation[0], x = i % in_row * v->dilation[1];

        p->pieces[i] = (lsi_strided_run){(y * v->w + x) * v->c, v->kw * v->c / in_row};
    }
}

/*
 * A convolution without the taps that lie beside the image under every window: a filter
 * dilated far has them, and images padded for their sake would have no bound. What is
 * left reaches over three times the image at most.
 */
struct trimmed {
    lsi_conv v;
    int64_t first[2]; /* row and column of the filter that its own begins with */
    float *filter;    /* its own */
};

/* Cuts one axis; at least one tap stays. Returns whether there was anything to cut. */
static bool trim_axis(int64_t size, int64_t windows, int64_t stride, int64_t dilation,
                      int64_t *pad, int64_t *taps, int64_t *first)
{
    const int64_t reach = (windows - 1) * stride, all = *taps;
    const int64_t before = LSI_MAX(*pad - reach, 0);
    const int64_t last = LSI_MIN((size - 1 + *pad) / dilation, all - 1);

    *first = LSI_MIN((before + dilation - 1) / dilation, all - 1);
    *taps = LSI_MAX(last - *first + 1, 1);
    *pad -= *first * dilation;
    return *taps < all;
}

static bool trim_filter(const lsi_conv *v, struct trimmed *t)
{
    lsi_conv *to = &t->v;
    bool rows = false, columns = false;

    if (conv_is_inside(v)) {
        return false;
    }
    *to = *v;
    rows = trim_axis(v->h, v->oh, v->stride[0], v->dilation[0], &to->pad[0], &to->kh,
                     &t->first[0]);
    columns = trim_axis(v->w, v->ow, v->stride[1], v->dilation[1], &to->pad[1], &to->kw,
                        &t->first[1]);
    return rows || columns;
}

/* The taps that are left, from a whole filter or into one. */
static void copy_taps(const lsi_conv *v, const struct trimmed *t, float *whole, bool into)
{
    const int64_t size = t->v.c * t->v.o;

    for (int64_t tap = 0; tap < t->v.kh * t->v.kw; tap++) {
        const int64_t y = t->first[0] + tap / t->v.kw, x = t->first[1] + tap % t->v.kw;
        float *of = whole + (y * v->kw + x) * size, *own = t->filter + tap * size;

        memcpy(into ? of : own, into ? own : of, (size_t)size * sizeof(float));
    }
}

static ls_status open_filter(ls_op_call *k, struct trimmed *t)
{
    const size_t bytes = (size_t)(t->v.kh * t->v.kw * t->v.c * t->v.o) * sizeof(float);

    t->filter = lsi_device_alloc(k->device, bytes);
    return t->filter != NULL ? LS_OK : lsi_fail_memory(k->err, "convolution", bytes);
}

static ls_status forward_all(ls_op_call *k, const lsi_conv *v, lsi_gemm *g)
{
    struct patches p = {0};
    lsi_walk walk = {.step = 1};
    ls_status st = LS_OK;

    if (is_pointwise(v)) {
        g->a = (lsi_matrix){.data = v->x, .ld = v->c};
        return LSI_SIMD(gemm_run)(k, g, 1, NULL, NULL);
    }
    st = open_patches(k, v, g->m, 0, patch_pieces(v), &p);
    if (st != LS_OK || p.memory == NULL) {
        return st;
    }
    list_windows(&p);
    list_patch_pieces(&p);
    walk.rows = p.windows;
    walk.pieces = p.pieces;
    g->a = (lsi_matrix){.data = p.v.x, .walk = &walk};
    st = LSI_SIMD(gemm_run)(k, g, 1, NULL, NULL);
    lsi_device_free(k->device, p.memory);
    return st;
}

static ls_status conv_forward(ls_op_call *k, const lsi_conv *v, lsi_gemm *g)
{
    struct trimmed t = {0};
    ls_status st = LS_OK;

    if (!trim_filter(v, &t)) {
        return forward_all(k, v, g);
    }
    st = open_filter(k, &t);
    if (st == LS_OK) {
        copy_taps(v, &t, k->in[1]->data, false);
        g->k = t.v.kh * t.v.kw * t.v.c;
        g->b.data = t.filter;
        st = forward_all(k, &t.v, g);
        lsi_device_free(k->device, t.filter);
    }
    return st;
}

ls_status LSI_SIMD(conv2d)(ls_op_call *k)
{
    const lsi_conv_attrs *at = k->attrs;

    if (!lsi_all_f32(k) || k->in[1]->count == 0) {
        return LS_UNIMPLEMENTED;
    }
    lsi_conv v = conv_of(at, k->in[0]->dims, k->in[1]->dims, k->out[0]->dims);

    if (k->out[0]->count == 0) {
        return LS_OK;
    }
    v.x = k->in[0]->data;
    lsi_gemm g = {
        .m = v.n * v.oh * v.ow,
        .n = v.o,
        .k = v.kh * v.kw * v.c,
        .b = {.data = k->in[1]->data, .ld = v.o},
        .c = k->out[0]->data,
        .ldc = v.o,
        .bias = k->nin > 2 ? lsi_in_f32(k, 2) : NULL,
        .activation = at->activation,
    };

    return conv_forward(k, &v, &g);
}

static ls_status filter_grad_all(ls_op_call *k, const lsi_conv *v, lsi_gemm *g)
{
    struct patches p = {0};
    lsi_walk walk = {.step = v->stride[1] * v->c};
    ls_status st = LS_OK;

    if (is_pointwise(v)) {
        g->a = (lsi_matrix){.data = v->x, .ld = v->c, .transposed = true};
        return LSI_SIMD(gemm_run)(k, g, 1, NULL, NULL);
    }
    st = open_patches(k, v, 0, g->m, v->n * v->oh, &p);
    if (st != LS_OK || p.memory == NULL) {
        return st;
    }
    list_taps(&p);
    for (int64_t row = 0; row < v->n * v->oh; row++) {
        const int64_t y = row / v->oh * p.v.h + row % v->oh * v->stride[0];

        p.pieces[row] = (lsi_strided_run){y * p.v.w * v->c, v->ow};
    }
    walk.rows = p.taps;
    walk.pieces = p.pieces;
    g->a = (lsi_matrix){.data = p.v.x, .walk = &walk};
    st = LSI_SIMD(gemm_run)(k, g, 1, NULL, NULL);
    lsi_device_free(k->device, p.memory);
    return st;
}

/* Weights that no window has on its image have the gradient 0. */
static ls_status filter_grad(ls_op_call *k, const lsi_conv *v, lsi_gemm *g)
{
    struct trimmed t = {0};
    ls_status st = LS_OK;

    if (!trim_filter(v, &t)) {
        return filter_grad_all(k, v, g);
    }
    st = open_filter(k, &t);
    if (st == LS_OK) {
        g->m = t.v.kh * t.v.kw * t.v.c;
        g->c = t.filter;
        st = filter_grad_all(k, &t.v, g);
        memset(k->out[0]->data, 0, (size_t)k->out[0]->count * sizeof(float));
        copy_taps(v, &t, k->out[0]->data, true);
        lsi_device_free(k->device, t.filter);
    }
    return st;
}

ls_status LSI_SIMD(conv2d_filter_grad)(ls_op_call *k)
{
    if (!lsi_all_f32(k) || k->in[0]->count == 0 || k->in[1]->count == 0) {
        return LS_UNIMPLEMENTED;
    }
    lsi_conv v = conv_of(k->attrs, k->in[0]->dims, k->out[0]->dims, k->in[1]->dims);

    if (k->out[0]->count == 0) {
        return LS_OK;
    }
    v.x = k->in[0]->data;
    lsi_gemm g = {
        .m = v.kh * v.kw * v.c,
        .n = v.o,
        .k = v.n * v.oh * v.ow,
        .b = {.data = k->in[1]->data, .ld = v.o},
        .c = k->out[0]->data,
        .ldc = v.o,
    };

    return filter_grad(k, &v, &g);
}

/* The input gradient: images are shared out, each is summed by one member. */
struct scatter {
    lsi_conv v;
    lsi_gemm g; /* of one block of windows */
    const float *gy;
    float *dx, *panels, *scratch;
    int64_t block; /* windows at a time */
    int64_t scratch_each;
    lsi_queue shares; /* of the images */
};

static void pack_part(void *arg, int part, int parts)
{
    const struct scatter *s = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(s->g.n, GEMM_NR, part, parts, &begin, &end);
    LSI_SIMD(gemm_pack)(&s->g.b, s->g.k, s->g.n, begin, end, s->panels);
}

/* Adds the gradients of the patches of `rows` windows, from window `pixel` on. */
static void add_patches(const lsi_conv *v, int64_t pixel, int64_t rows, const float *from,
                        float *dx)
{
    const int64_t cols = v->kh * v->kw * v->c;
    struct window w = window_at(v, pixel);

    for (int64_t i = 0; i < rows; i++) {
        const bool whole = has_whole_rows(v, &w);
        struct element e = {0};

        for (int64_t done = 0; done < cols;) {
            const struct run r = next_run(v, &w, whole, cols - done, &e);

            if (r.at >= 0) {
                add_floats(dx + r.at, from + done, r.n);
            }
            done += r.n;
        }
        from += cols;
        next_window(v, &w);
    }
}

/* Blocks of windows run on over the ends of images: no tile is left half empty. */
static void scatter_images(const struct scatter *s, int64_t begin, int64_t end,
                           float *own)
{
    const lsi_conv *v = &s->v;
    const int64_t windows = v->oh * v->ow, image = v->h * v->w * v->c;
    float *patches = own + s->scratch_each - s->block * s->g.n;
    int64_t cleared = begin;

    for (int64_t p = begin * windows; p < end * windows; p += s->block) {
        lsi_gemm g = s->g;

        g.m = LSI_MIN(s->block, end * windows - p);
        g.a.data = s->gy + p * v->o;
        g.c = patches;
        LSI_SIMD(gemm_block)(&g, 0, g.m, 0, g.n, own);
        for (; cleared * windows < p + g.m; cleared++) {
            memset(s->dx + cleared * image, 0, (size_t)image * sizeof(float));
        }
        add_patches(v, p, g.m, patches, s->dx);
    }
}

static void scatter_part(void *arg, int part, int parts)
{
    struct scatter *s = arg;
    int64_t begin = 0, end = 0;

    (void)parts;
    for (int64_t i = lsi_queue_take(&s->shares, part); i >= 0;
         i = lsi_queue_take(&s->shares, part)) {
        lsi_team_share(s->v.n, 1, (int)i, (int)s->shares.count, &begin, &end);
        scatter_images(s, begin, end, s->scratch + (int64_t)part * s->scratch_each);
    }
}

static ls_status scatter_run(ls_op_call *k, struct scatter *s)
{
    const double flops = 2.0 * (double)s->v.n * (double)(s->v.oh * s->v.ow) *
                         (double)s->g.n * (double)s->g.k;
    const int wanted = lsi_parts(k, (int64_t)(flops / FLOPS_PER_NS));
    const int parts = (int)LSI_MIN(wanted, s->v.n);
    const int64_t panels = (LSI_SIMD(gemm_packed)(s->g.k, s->g.n) + 31) / 32 * 32;
    size_t bytes = 0;

    s->g.m = s->block;
    lsi_queue_init(&s->shares, parts == 1 ? 1 : LSI_MIN(4 * (int64_t)parts, s->v.n),
                   parts);
    s->scratch_each =
        (LSI_SIMD(gemm_scratch)(&s->g, s->block, s->g.n) + s->block * s->g.n + 63) / 32 *
        32;
    bytes = (size_t)(panels + parts * s->scratch_each) * sizeof(float);
    s->panels = lsi_device_alloc(k->device, bytes);
    if (s->panels == NULL) {
        return lsi_fail_memory(k->err, "gradient of a convolution", bytes);
    }
    s->scratch = s->panels + panels;
    s->g.panels = s->panels;
    lsi_team_run(k->team, wanted, pack_part, s);
    lsi_team_run(k->team, parts, scatter_part, s);
    lsi_device_free(k->device, s->panels);
    return LS_OK;
}

ls_status LSI_SIMD(conv2d_input_grad)(ls_op_call *k)
{
    const lsi_conv v = conv_of(k->attrs, k->out[0]->dims, k->in[1]->dims, k->in[0]->dims);
    const int64_t taps = v.kh * v.kw * v.c;

    if (!lsi_all_f32(k) || k->in[0]->count == 0 || k->in[1]->count == 0) {
        return LS_UNIMPLEMENTED;
    }
    lsi_gemm g = {
        .m = v.n * v.oh * v.ow,
        .n = taps,
        .k = v.o,
        .a = {.data = k->in[0]->data, .ld = v.o},
        .b = {.data = k->in[1]->data, .ld = v.o, .transposed = true},
        .c = k->out[0]->data,
        .ldc = taps,
    };

    if (is_pointwise(&v)) {
        return LSI_SIMD(gemm_run)(k, &g, 1, NULL, NULL);
    }
    const int64_t most = LSI_MAX(PATCH_FLOATS / taps / GEMM_MR, 1) * GEMM_MR;
    struct scatter s = {
        .v = v,
        .g = g,
        .gy = k->in[0]->data,
        .dx = k->out[0]->data,
        .block = LSI_MIN(most, g.m),
    };

    return scatter_run(k, &s);
}
