/* Convolutions and pooling of the `make train` network, batch 64. */
#include "cli/bench/bench_case.h"

#include <math.h>

enum { BATCH = 64 };

/* The two stages: side and channels of what comes in, filters of the convolution. */
static const struct {
    int64_t side, in, out;
} stages[] = {{28, 1, 32}, {13, 32, 64}};

static ls_tensor *conv(bench_case *b)
{
    return ls_conv2d(b->c, b->in[0], b->in[1], b->in[2], NULL);
}

static ls_tensor *pool(bench_case *b)
{
    const ls_pool_options options = {sizeof options, {2, 2}, {0, 0}, LS_VALID, true};

    return ls_max_pool2d(b->c, b->in[0], &options);
}

static ls_status run_conv(void *self, ls_error *err)
{
    (void)conv(self);
    return ls_context_finish(((bench_case *)self)->c, err);
}

static ls_status run_pool(void *self, ls_error *err)
{
    (void)pool(self);
    return ls_context_finish(((bench_case *)self)->c, err);
}

/* Forward and backward; in[3] is the gradient that arrives. */
static void conv_gradients(bench_case *b, ls_tensor **grads)
{
    ls_tape *tape = ls_tape_open(b->c, NULL);
    // The first layer's input needs no gradient.
    const size_t from = b->k == 1 ? 1 : 0;
    ls_tensor *y;

    for (size_t i = from; i < 3; i++) {
        ls_tape_watch(b->c, tape, b->in[i]);
    }
    y = conv(b);
    ls_gradients(b->c, tape, &y, &b->in[3], 1, &b->in[from], 3 - from, grads + from);
}

static ls_status run_conv_gradients(void *self, ls_error *err)
{
    ls_tensor *grads[3] = {NULL, NULL, NULL};

    conv_gradients(self, grads);
    return ls_context_finish(((bench_case *)self)->c, err);
}

static ls_tensor *pool_gradient(bench_case *b)
{
    ls_tape *tape = ls_tape_open(b->c, NULL);
    ls_tensor *y, *grad = NULL;

    ls_tape_watch(b->c, tape, b->in[0]);
    y = pool(b);
    ls_gradients(b->c, tape, &y, &b->in[3], 1, &b->in[0], 1, &grad);
    return grad;
}

static ls_status run_pool_gradient(void *self, ls_error *err)
{
    (void)pool_gradient(self);
    return ls_context_finish(((bench_case *)self)->c, err);
}

/* Output (r, col, f) of image `image`; b->m, n, k: side, filters, channels. */
static double plain_conv(const bench_case *b, int64_t image, int64_t r, int64_t col,
                         int64_t f)
{
    const float *x = ls_tensor_data(b->in[0]), *w = ls_tensor_data(b->in[1]);
    double sum = ((const float *)ls_tensor_data(b->in[2]))[f];

    for (int64_t i = 0; i < 9; i++) {
        const int64_t y = r + i / 3, z = col + i % 3;

        for (int64_t ch = 0; ch < b->k; ch++) {
            sum += (double)x[((image * b->m + y) * b->m + z) * b->k + ch] *
                   w[(i * b->k + ch) * b->n + f];
        }
    }
    return sum;
}

static bool verify_conv(bench_case *b, ls_error *err)
{
    const ls_tensor *t = conv(b);
    const float *y = t != NULL ? ls_tensor_data(t) : NULL;
    const int64_t side = b->m - 2, count = BATCH * side * side * b->n;
    bool same = y != NULL;

    // A stride that is prime to the sizes visits images, edges and filters alike.
    for (int64_t i = 0; i < count && same; i += 997) {
        const int64_t f = i % b->n, p = i / b->n;
        const double want =
            plain_conv(b, p / (side * side), p / side % side, p % side, f);

        same = fabs(want - y[i]) <= 1e-6 * 9 * (double)b->k + 1e-5;
    }
    return ls_context_finish(b->c, err) == LS_OK && same;
}

/* The gradient of the bias is the sum of what arrives, over images and places. */
static bool verify_conv_gradients(bench_case *b, ls_error *err)
{
    ls_tensor *grads[3] = {NULL, NULL, NULL};
    const float *dy = ls_tensor_data(b->in[3]), *db = NULL;
    const int64_t places = ls_tensor_count(b->in[3]) / b->n;
    bool same = verify_conv(b, err);

    conv_gradients(b, grads);
    db = grads[2] != NULL ? ls_tensor_data(grads[2]) : NULL;
    for (int64_t f = 0; f < b->n && same; f++) {
        double sum = 0;

        for (int64_t p = 0; p < places; p++) {
            sum += dy[p * b->n + f];
        }
        same = db != NULL && fabs(sum - db[f]) <= 1e-4 * sqrt((double)places);
    }
    return ls_context_finish(b->c, err) == LS_OK && same;
}

static double plain_pool(const bench_case *b, int64_t image, int64_t r, int64_t col,
                         int64_t ch)
{
    const float *x = ls_tensor_data(b->in[0]);
    double best = 0;

    for (int64_t i = 0; i < 4; i++) {
        const int64_t y = 2 * r + i / 2, z = 2 * col + i % 2;

        best = fmax(best, x[((image * b->m + y) * b->m + z) * b->k + ch]);
    }
    return best;
}

static bool verify_pool(bench_case *b, ls_error *err)
{
    const ls_tensor *t = pool(b);
    const float *y = t != NULL ? ls_tensor_data(t) : NULL;
    const int64_t side = b->m / 2, count = BATCH * side * side * b->k;
    bool same = y != NULL;

    for (int64_t i = 0; i < count && same; i += 997) {
        const int64_t ch = i % b->k, p = i / b->k;

        same = plain_pool(b, p / (side * side), p / side % side, p % side, ch) == y[i];
    }
    return ls_context_finish(b->c, err) == LS_OK && same;
}

/* Every gradient that arrives at a positive maximum goes to one place. */
static bool verify_pool_gradient(bench_case *b, ls_error *err)
{
    const ls_tensor *y = pool(b), *g = pool_gradient(b);
    const float *py = y != NULL ? ls_tensor_data(y) : NULL;
    const float *pg = g != NULL ? ls_tensor_data(g) : NULL;
    const float *dy = ls_tensor_data(b->in[3]);
    double want = 0, got = 0;
    bool same = py != NULL && pg != NULL;

    for (int64_t i = 0; same && i < ls_tensor_count(y); i++) {
        want += py[i] > 0 ? dy[i] : 0;
    }
    for (int64_t i = 0; same && i < ls_tensor_count(g); i++) {
        got += pg[i];
    }
    same = same && fabs(want - got) < 1e-6;
    return ls_context_finish(b->c, err) == LS_OK && same;
}

static void fill_conv(bench_case *out, size_t stage, ls_status *st, ls_error *err)
{
    const int64_t side = stages[stage].side;

    out->m = side;
    out->n = stages[stage].out;
    out->k = stages[stage].in;
    out->in[0] = bench_random(out->c, LS_SHAPE(BATCH, side, side, out->k), st, err);
    out->in[1] = bench_random(out->c, LS_SHAPE(3, 3, out->k, out->n), st, err);
    out->in[2] = bench_random(out->c, LS_SHAPE(out->n), st, err);
    out->in[3] =
        bench_random(out->c, LS_SHAPE(BATCH, side - 2, side - 2, out->n), st, err);
    out->flops = 2.0 * BATCH * 9 * (double)((side - 2) * (side - 2) * out->k * out->n);
}

static void fill_pool(bench_case *out, size_t stage, ls_status *st, ls_error *err)
{
    const int64_t side = stages[stage].side - 2;

    out->m = side;
    out->k = stages[stage].out;
    out->in[0] = bench_random(out->c, LS_SHAPE(BATCH, side, side, out->k), st, err);
    out->in[3] =
        bench_random(out->c, LS_SHAPE(BATCH, side / 2, side / 2, out->k), st, err);
}

bool bench_image_case(size_t i, ls_context *c, bench_case *out, ls_status *st,
                      ls_error *err)
{
    static const bench_case cases[] = {
        {.name = "conv1", .run = run_conv, .verify = verify_conv},
        {.name = "conv1 and gradients",
         .run = run_conv_gradients,
         .verify = verify_conv_gradients},
        {.name = "conv2", .run = run_conv, .verify = verify_conv},
        {.name = "conv2 and gradients",
         .run = run_conv_gradients,
         .verify = verify_conv_gradients},
        {.name = "pool1", .run = run_pool, .verify = verify_pool},
        {.name = "pool1 and gradient",
         .run = run_pool_gradient,
         .verify = verify_pool_gradient},
        {.name = "pool2", .run = run_pool, .verify = verify_pool},
        {.name = "pool2 and gradient",
         .run = run_pool_gradient,
         .verify = verify_pool_gradient},
    };
    const size_t stage = i / 2 % 2;

    if (i >= sizeof cases / sizeof *cases) {
        return false;
    }
    *out = cases[i];
    out->c = c;
    out->calls = 1;
    if (i < 4) {
        fill_conv(out, stage, st, err);
        out->flops *= i % 2 == 0 ? 1 : stage == 0 ? 2 : 3;
    } else {
        fill_pool(out, stage, st, err);
    }
    return true;
}
