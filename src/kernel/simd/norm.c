/*
 * Layer and batch normalisation of [rows, n]. What is summed over rows (the moments of a
 * batch, the gradients of gamma and beta) is summed in blocks of rows whose number
 * depends on the shape alone, and the blocks in a binary tree: the bits do not depend on
 * the number of threads.
 */
#include "kernel/simd/math.h"

enum { MAX_BLOCKS = 256, BLOCK = 8192, LEAST_ROWS = 8 };

struct norm {
    /* Rows alone, or rows whose sums over the batch are added to `sums`. */
    void (*each)(const struct norm *s, int64_t begin, int64_t end);
    void (*add)(const struct norm *s, int64_t begin, int64_t end, float *sums);
    const float *x, *g, *gamma, *beta, *mean, *rstd;
    float *y, *mean_out, *rstd_out;
    int64_t rows, n;
    float epsilon;
    float *partial; /* blocks times `width` floats */
    int64_t width;  /* of the sums: a multiple of n */
    int64_t blocks;
};

static void run_part(void *arg, int part, int parts)
{
    const struct norm *s = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(s->rows, 1, part, parts, &begin, &end);
    s->each(s, begin, end);
}

/* Runs s->each over all rows, which do not depend on each other. */
static void run_rows(const ls_op_call *k, struct norm *s)
{
    lsi_spread(k, lsi_parts(k, s->rows * (s->n / 2 + 16)), run_part, s);
}

static void run_blocks(void *arg, int part, int parts)
{
    const struct norm *s = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(s->blocks, 1, part, parts, &begin, &end);
    for (int64_t b = begin; b < end; b++) {
        float *sums = s->partial + b * s->width;
        int64_t row = 0, row_end = 0;

        memset(sums, 0, (size_t)s->width * sizeof(float));
        lsi_team_share(s->rows, 1, (int)b, (int)s->blocks, &row, &row_end);
        s->add(s, row, row_end, sums);
    }
}

/*
 * Runs s->add over all rows; the `width` floats it adds to end up in s->partial, which is
 * the caller's to free. False: out of memory.
 */
static bool run_sums(const ls_op_call *k, struct norm *s, int64_t width)
{
    const int64_t most = LSI_MIN(MAX_BLOCKS, s->rows / LEAST_ROWS);

    s->width = width;
    s->blocks = LSI_MAX(1, LSI_MIN(most, s->rows * s->n / BLOCK));
    s->partial = lsi_device_alloc(k->device, (size_t)(s->blocks * width) * sizeof(float));
    if (s->partial == NULL) {
        return false;
    }
    lsi_spread(k, lsi_parts(k, s->rows * (s->n / 2 + 16)), run_blocks, s);
    for (int64_t gap = 1; gap < s->blocks; gap *= 2) {
        for (int64_t b = 0; b + gap < s->blocks; b += 2 * gap) {
            float *to = s->partial + b * width;
            const float *from = to + gap * width;

            for (int64_t i = 0; i < width; i++) {
                to[i] += from[i];
            }
        }
    }
    return true;
}

static ls_status no_memory(ls_op_call *k)
{
    return ls_op_fail(k, LS_RESOURCE_EXHAUSTED, "no memory for the sums of channels");
}

/* The last axis: what a layer norm normalises over, the channels of a batch norm. */
static bool lay_out(const ls_op_call *k, const ls_tensor *x, struct norm *s)
{
    s->n = x->ndim > 0 ? x->dims[x->ndim - 1] : 0;
    if (s->n == 0 || x->count == 0 || !lsi_all_f32(k)) {
        return false;
    }
    s->rows = x->count / s->n;
    return true;
}

/* Loads of vectors that may be the last of a row. */
LSI_INLINE vf load_lanes(const float *p, int64_t n)
{
    return n >= VW ? vload(p) : vtail(p, n);
}

LSI_INLINE void store_lanes(float *p, vf v, int64_t n)
{
    if (n >= VW) {
        vstore(p, v);
    } else {
        vtail_store(p, v, n);
    }
}

/* The sum of (x - mean)^2, in four independent chains of additions. */
LSI_INLINE float squares_row(const float *x, int64_t n, float mean)
{
    const int64_t w = VW;
    vf total[4] = {vzero(), vzero(), vzero(), vzero()};
    int64_t i = 0;

    for (; i + 4 * w <= n; i += 4 * w) {
        for (int j = 0; j < 4; j++) {
            const vf d = vload(x + i + j * w) - mean;

            total[j] += d * d;
        }
    }
    for (; i < n; i += VW) {
        const vf d = load_lanes(x + i, n - i) - mean;

        total[0] += n - i >= VW ? d * d : vfirst(d * d, n - i, 0.0F);
    }
    return vfold(LSI_JOIN_SUM, (total[0] + total[1]) + (total[2] + total[3]));
}

static void layer_norm_rows(const struct norm *s, int64_t begin, int64_t end)
{
    const int64_t n = s->n;

    for (int64_t row = begin; row < end; row++) {
        const float *x = s->x + row * n;
        float *y = s->y + row * n;
        const float mean = join_row(LSI_JOIN_SUM, x, n) / (float)n;
        const float variance = squares_row(x, n, mean) / (float)n;
        const float rstd = 1.0F / sqrtf(variance + s->epsilon);

        s->mean_out[row] = mean;
        s->rstd_out[row] = rstd;
        for (int64_t i = 0; i < n; i += VW) {
            const vf h = (load_lanes(x + i, n - i) - mean) * rstd;

            store_lanes(y + i,
                        h * load_lanes(s->gamma + i, n - i) +
                            load_lanes(s->beta + i, n - i),
                        n - i);
        }
    }
}

ls_status LSI_SIMD(layer_norm)(ls_op_call *k)
{
    const lsi_scalars_attrs *attrs = k->attrs;
    struct norm s = {.each = layer_norm_rows,
                     .x = lsi_in_f32(k, 0),
                     .gamma = lsi_in_f32(k, 1),
                     .beta = lsi_in_f32(k, 2),
                     .y = lsi_out_f32(k, 0),
                     .mean_out = lsi_out_f32(k, 1),
                     .rstd_out = lsi_out_f32(k, 2),
                     .epsilon = (float)attrs->a};

    if (!lay_out(k, k->in[0], &s)) {
        return LS_UNIMPLEMENTED;
    }
    run_rows(k, &s);
    return LS_OK;
}

/*
 * dx = rstd (u - mean(u) - h mean(u h)) with u = g gamma and h = (x - mean) rstd; to the
 * sums are added g h (dgamma) and g (dbeta).
 */
static void layer_norm_grad_rows(const struct norm *s, int64_t begin, int64_t end,
                                 float *sums)
{
    const int64_t n = s->n;

    for (int64_t row = begin; row < end; row++) {
        const float *x = s->x + row * n, *g = s->g + row * n;
        const float mean = s->mean[row], rstd = s->rstd[row];
        float *dx = s->y + row * n;
        vf sum = vzero(), dot = vzero();
        float mean_u = 0, mean_uh = 0;

        for (int64_t i = 0; i < n; i += VW) {
            const vf u = load_lanes(g + i, n - i) * load_lanes(s->gamma + i, n - i);

            sum += u;
            dot += u * ((load_lanes(x + i, n - i) - mean) * rstd);
        }
        mean_u = vfold(LSI_JOIN_SUM, sum) / (float)n;
        mean_uh = vfold(LSI_JOIN_SUM, dot) / (float)n;
        for (int64_t i = 0; i < n; i += VW) {
            const int64_t rest = n - i;
            const vf vg = load_lanes(g + i, rest),
                     h = (load_lanes(x + i, rest) - mean) * rstd;
            const vf u = vg * load_lanes(s->gamma + i, rest);

            store_lanes(dx + i, (u - mean_u - h * mean_uh) * rstd, rest);
            store_lanes(sums + i, load_lanes(sums + i, rest) + vg * h, rest);
            store_lanes(sums + n + i, load_lanes(sums + n + i, rest) + vg, rest);
        }
    }
}

ls_status LSI_SIMD(layer_norm_grad)(ls_op_call *k)
{
    struct norm s = {.add = layer_norm_grad_rows,
                     .g = lsi_in_f32(k, 0),
                     .x = lsi_in_f32(k, 1),
                     .gamma = lsi_in_f32(k, 2),
                     .mean = lsi_in_f32(k, 3),
                     .rstd = lsi_in_f32(k, 4),
                     .y = lsi_out_f32(k, 0)};

    if (!lay_out(k, k->in[1], &s)) {
        return LS_UNIMPLEMENTED;
    }
    if (!run_sums(k, &s, 2 * s.n)) {
        return no_memory(k);
    }
    memcpy(k->out[1]->data, s.partial, (size_t)s.n * sizeof(float));
    memcpy(k->out[2]->data, s.partial + s.n, (size_t)s.n * sizeof(float));
    lsi_device_free(k->device, s.partial);
    return LS_OK;
}

/* Four rows at a time, so that the sums are read and written a quarter as often. */
static void sum_rows(const struct norm *s, int64_t begin, int64_t end, float *sums)
{
    const int64_t n = s->n;
    int64_t row = begin;

    for (; row + 4 <= end; row += 4) {
        const float *x = s->x + row * n;

        for (int64_t i = 0; i < n; i += VW) {
            const int64_t rest = n - i;
            const vf a = load_lanes(x + i, rest), b = load_lanes(x + n + i, rest);
            const vf c = load_lanes(x + 2 * n + i, rest),
                     d = load_lanes(x + 3 * n + i, rest);

            store_lanes(sums + i, load_lanes(sums + i, rest) + ((a + b) + (c + d)), rest);
        }
    }
    for (; row < end; row++) {
        const float *x = s->x + row * n;

        for (int64_t i = 0; i < n; i++) {
            sums[i] += x[i];
        }
    }
}

/* The same for the squared distances from the mean. */
static void square_rows(const struct norm *s, int64_t begin, int64_t end, float *sums)
{
    const int64_t n = s->n;
    int64_t row = begin;

    for (; row + 4 <= end; row += 4) {
        const float *x = s->x + row * n;

        for (int64_t i = 0; i < n; i += VW) {
            const int64_t rest = n - i;
            const vf m = load_lanes(s->mean + i, rest);
            const vf a = load_lanes(x + i, rest) - m, b = load_lanes(x + n + i, rest) - m;
            const vf c = load_lanes(x + 2 * n + i, rest) - m;
            const vf d = load_lanes(x + 3 * n + i, rest) - m;

            store_lanes(sums + i,
                        load_lanes(sums + i, rest) + ((a * a + b * b) + (c * c + d * d)),
                        rest);
        }
    }
    for (; row < end; row++) {
        const float *x = s->x + row * n;

        for (int64_t i = 0; i < n; i++) {
            sums[i] += (x[i] - s->mean[i]) * (x[i] - s->mean[i]);
        }
    }
}

/* y = (x - mean) gamma + beta per channel: `gamma` already holds gamma / sqrt(var + eps).
 */
static void affine_rows(const struct norm *s, int64_t begin, int64_t end)
{
    const int64_t n = s->n;

    for (int64_t row = begin; row < end; row++) {
        const float *x = s->x + row * n;
        float *y = s->y + row * n;

        for (int64_t i = 0; i < n; i += VW) {
            const int64_t rest = n - i;
            const vf d = load_lanes(x + i, rest) - load_lanes(s->mean + i, rest);

            store_lanes(
                y + i, d * load_lanes(s->gamma + i, rest) + load_lanes(s->beta + i, rest),
                rest);
        }
    }
}

/* The mean per channel of what `add` sums, to `out`; false: out of memory. */
static bool mean_of(const ls_op_call *k, struct norm *s, float *out,
                    void (*add)(const struct norm *, int64_t, int64_t, float *))
{
    s->add = add;
    if (!run_sums(k, s, s->n)) {
        return false;
    }
    for (int64_t c = 0; c < s->n; c++) {
        out[c] = s->partial[c] / (float)s->rows;
    }
    lsi_device_free(k->device, s->partial);
    return true;
}

/* y from gamma, beta and the moments of each channel; `rstd` may be NULL. */
static bool normalise(const ls_op_call *k, struct norm *s, const float *gamma,
                      const float *variance, float *rstd)
{
    float *scale = lsi_device_alloc(k->device, (size_t)s->n * sizeof(float));

    if (scale == NULL) {
        return false;
    }
    for (int64_t c = 0; c < s->n; c++) {
        const float r = 1.0F / sqrtf(variance[c] + s->epsilon);

        scale[c] = gamma[c] * r;
        if (rstd != NULL) {
            rstd[c] = r;
        }
    }
    s->gamma = scale;
    s->each = affine_rows;
    run_rows(k, s);
    lsi_device_free(k->device, scale);
    return true;
}

ls_status LSI_SIMD(batch_norm)(ls_op_call *k)
{
    const lsi_scalars_attrs *attrs = k->attrs;
    float *mean = lsi_out_f32(k, 1), *variance = lsi_out_f32(k, 2);
    struct norm s = {.x = lsi_in_f32(k, 0),
                     .beta = lsi_in_f32(k, 2),
                     .mean = mean,
                     .y = lsi_out_f32(k, 0),
                     .epsilon = (float)attrs->a};

    if (!lay_out(k, k->in[0], &s)) {
        return LS_UNIMPLEMENTED;
    }
    if (!mean_of(k, &s, mean, sum_rows) || !mean_of(k, &s, variance, square_rows) ||
        !normalise(k, &s, lsi_in_f32(k, 1), variance, lsi_out_f32(k, 3))) {
        return no_memory(k);
    }
    return LS_OK;
}

ls_status LSI_SIMD(batch_norm_inference)(ls_op_call *k)
{
    const lsi_scalars_attrs *attrs = k->attrs;
    struct norm s = {.x = lsi_in_f32(k, 0),
                     .beta = lsi_in_f32(k, 2),
                     .mean = lsi_in_f32(k, 3),
                     .y = lsi_out_f32(k, 0),
                     .epsilon = (float)attrs->a};

    if (!lay_out(k, k->in[0], &s)) {
        return LS_UNIMPLEMENTED;
    }
    return normalise(k, &s, lsi_in_f32(k, 1), lsi_in_f32(k, 4), NULL) ? LS_OK
                                                                      : no_memory(k);
}

/* g h (dgamma) and g (dbeta) of each channel. */
static void batch_norm_grad_sums(const struct norm *s, int64_t begin, int64_t end,
                                 float *sums)
{
    const int64_t n = s->n;

    for (int64_t row = begin; row < end; row++) {
        const float *x = s->x + row * n, *g = s->g + row * n;

        for (int64_t i = 0; i < n; i += VW) {
            const int64_t rest = n - i;
            const vf vg = load_lanes(g + i, rest);
            const vf h = (load_lanes(x + i, rest) - load_lanes(s->mean + i, rest)) *
                         load_lanes(s->rstd + i, rest);

            store_lanes(sums + i, load_lanes(sums + i, rest) + vg * h, rest);
            store_lanes(sums + n + i, load_lanes(sums + n + i, rest) + vg, rest);
        }
    }
}

/* dx = gamma g + beta (x - mean) + rstd: the three hold the factors of this call. */
static void batch_norm_grad_rows(const struct norm *s, int64_t begin, int64_t end)
{
    const int64_t n = s->n;

    for (int64_t row = begin; row < end; row++) {
        const float *x = s->x + row * n, *g = s->g + row * n;
        float *dx = s->y + row * n;

        for (int64_t i = 0; i < n; i += VW) {
            const int64_t rest = n - i;
            const vf d = load_lanes(x + i, rest) - load_lanes(s->mean + i, rest);

            store_lanes(dx + i,
                        load_lanes(g + i, rest) * load_lanes(s->gamma + i, rest) +
                            d * load_lanes(s->beta + i, rest) +
                            load_lanes(s->rstd + i, rest),
                        rest);
        }
    }
}

/*
 * dx = gamma rstd (g - dbeta / rows - h dgamma / rows): for each channel a factor for g,
 * one for x - mean, and a term.
 */
ls_status LSI_SIMD(batch_norm_grad)(ls_op_call *k)
{
    const float *gamma = lsi_in_f32(k, 2), *rstd = lsi_in_f32(k, 4);
    float *dgamma = lsi_out_f32(k, 1), *dbeta = lsi_out_f32(k, 2), *factors = NULL;
    struct norm s = {.add = batch_norm_grad_sums,
                     .g = lsi_in_f32(k, 0),
                     .x = lsi_in_f32(k, 1),
                     .mean = lsi_in_f32(k, 3),
                     .rstd = rstd,
                     .y = lsi_out_f32(k, 0)};

    if (!lay_out(k, k->in[1], &s)) {
        return LS_UNIMPLEMENTED;
    }
    factors = lsi_device_alloc(k->device, (size_t)s.n * 3 * sizeof(float));
    if (factors == NULL || !run_sums(k, &s, 2 * s.n)) {
        if (factors != NULL) {
            lsi_device_free(k->device, factors);
        }
        return no_memory(k);
    }
    for (int64_t c = 0; c < s.n; c++) {
        const float factor = gamma[c] * rstd[c];

        dgamma[c] = s.partial[c];
        dbeta[c] = s.partial[s.n + c];
        factors[c] = factor;
        factors[s.n + c] = -factor * rstd[c] * (dgamma[c] / (float)s.rows);
        factors[2 * s.n + c] = -factor * (dbeta[c] / (float)s.rows);
    }
    lsi_device_free(k->device, s.partial);
    s.each = batch_norm_grad_rows;
    s.gamma = factors;
    s.beta = factors + s.n;
    s.rstd = factors + 2 * s.n;
    run_rows(k, &s);
    lsi_device_free(k->device, factors);
    return LS_OK;
}
