/*
 * One training step of the Fashion-MNIST network (Conv 32, pool, Conv 64, pool, Dense 64,
 * Dense 10, Adam) in bare oneDNN calls and no framework: the limit for `make train`.
 * Images are nhwc; 2 x 2 max pooling is plain C, its gradient fused with that of the relu
 * before it, because oneDNN's is several times slower.
 *
 *     dnnl_step [BATCH]                 measures for a second, prints one JSON line
 *     dnnl_step [BATCH] --serve         reads "SECONDS" lines, answers each with a line
 *
 * Threads by OMP_NUM_THREADS.
 */
#include "bench/bench_clock.h"
#include "bench/dnnl_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#define EACH_ISA __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define EACH_ISA
#endif
#ifdef _OPENMP
#define PARALLEL_FOR _Pragma("omp parallel for schedule(static)")
#else
#define PARALLEL_FOR
#endif

enum { MAX_CALLS = 40, PARAMS = 8 };

/* A primitive, or one of the functions below. */
typedef struct step_call {
    kit_call call;
    void (*own)(const struct step_call *c);
    const float *in;
    float *out;
    uint8_t *where; /* which of the four was the largest; 4: it was not above zero */
    int images, height, width, channels;
} step_call;

typedef struct param {
    float *w, *m, *v;
    const float *g;
    size_t n;
} param;

static struct {
    step_call calls[MAX_CALLS];
    int ncalls, loss_at;
    param params[PARAMS];
    int nparams;
    int batch;
    float *logits, *dlogits;
} net;

static step_call *add_call(kit_call call)
{
    step_call *c = &net.calls[net.ncalls++];

    kit_check(net.ncalls > MAX_CALLS ? dnnl_invalid_arguments : dnnl_success, "calls");
    memset(c, 0, sizeof *c);
    c->call = call;
    return c;
}

/* Aligned as oneDNN's own memory is: a vector that crosses a cache line costs twice. */
static void *zeroed_memory(size_t count, size_t size)
{
    const size_t bytes = (count * size + 63) / 64 * 64;
    void *p = aligned_alloc(64, bytes);

    kit_check(p == NULL ? dnnl_out_of_memory : dnnl_success, "aligned_alloc");
    return p != NULL ? memset(p, 0, bytes) : NULL;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity): one loop, one vector
EACH_ISA static void pool_image(const float *restrict x, float *restrict y,
                                uint8_t *restrict at, int height, int width, int channels)
{
    for (int i = 0; i < height / 2; i++) {
        for (int j = 0; j < width / 2; j++) {
            const float *a = x + ((size_t)(2 * i) * (size_t)width + (size_t)(2 * j)) *
                                     (size_t)channels;
            const float *b = a + channels, *c = a + (size_t)width * (size_t)channels;
            const float *d = c + channels;

            for (int k = 0; k < channels; k++) {
                float m = a[k];
                uint8_t q = 0;

                q = b[k] > m ? 1 : q;
                m = b[k] > m ? b[k] : m;
                q = c[k] > m ? 2 : q;
                m = c[k] > m ? c[k] : m;
                q = d[k] > m ? 3 : q;
                m = d[k] > m ? d[k] : m;
                y[k] = m;
                at[k] = m > 0 ? q : 4;
            }
            y += channels;
            at += channels;
        }
    }
}

EACH_ISA static void unpool_image(float *restrict g, const float *restrict dy,
                                  const uint8_t *restrict at, int height, int width,
                                  int channels)
{
    const size_t row = (size_t)width * (size_t)channels;

    if (height % 2 != 0) {
        memset(g + (size_t)(height - 1) * row, 0, row * sizeof *g);
    }
    for (int i = 0; width % 2 != 0 && i < height; i++) {
        memset(g + (size_t)(i + 1) * row - channels, 0, (size_t)channels * sizeof *g);
    }
    for (int i = 0; i < height / 2; i++) {
        for (int j = 0; j < width / 2; j++) {
            float *a = g + (size_t)(2 * i) * row + (size_t)(2 * j) * (size_t)channels;
            float *b = a + channels, *c = a + row, *d = c + channels;

            for (int k = 0; k < channels; k++) {
                const float v = dy[k];

                a[k] = at[k] == 0 ? v : 0;
                b[k] = at[k] == 1 ? v : 0;
                c[k] = at[k] == 2 ? v : 0;
                d[k] = at[k] == 3 ? v : 0;
            }
            dy += channels;
            at += channels;
        }
    }
}

static void run_max_pool(const step_call *c)
{
    const size_t big = (size_t)c->height * (size_t)c->width * (size_t)c->channels;
    const size_t small =
        (size_t)(c->height / 2) * (size_t)(c->width / 2) * (size_t)c->channels;

    PARALLEL_FOR
    for (int i = 0; i < c->images; i++) {
        pool_image(c->in + (size_t)i * big, c->out + (size_t)i * small,
                   c->where + (size_t)i * small, c->height, c->width, c->channels);
    }
}

static void run_max_unpool(const step_call *c)
{
    const size_t big = (size_t)c->height * (size_t)c->width * (size_t)c->channels;
    const size_t small =
        (size_t)(c->height / 2) * (size_t)(c->width / 2) * (size_t)c->channels;

    PARALLEL_FOR
    for (int i = 0; i < c->images; i++) {
        unpool_image(c->out + (size_t)i * big, c->in + (size_t)i * small,
                     c->where + (size_t)i * small, c->height, c->width, c->channels);
    }
}

EACH_ISA static void adam(float *restrict w, float *restrict m, float *restrict v,
                          const float *restrict g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        m[i] += 0.1F * (g[i] - m[i]);
        v[i] += 0.001F * (g[i] * g[i] - v[i]);
        w[i] -= 1e-4F * m[i] / (sqrtf(v[i]) + 1e-7F);
    }
}

/* The gradient of the mean softmax cross-entropy with labels 0, 1, ... 9, 0, 1 ... */
static void loss_gradient(void)
{
    for (int r = 0; r < net.batch; r++) {
        const float *a = net.logits + (size_t)r * 10;
        float *d = net.dlogits + (size_t)r * 10;
        float max = a[0], sum = 0;

        for (int k = 1; k < 10; k++) {
            max = a[k] > max ? a[k] : max;
        }
        for (int k = 0; k < 10; k++) {
            d[k] = expf(a[k] - max);
            sum += d[k];
        }
        for (int k = 0; k < 10; k++) {
            d[k] = (d[k] / sum - (k == r % 10 ? 1.0F : 0.0F)) / (float)net.batch;
        }
    }
}

static dnnl_memory_t reordered(dnnl_memory_t from, kit_desc want)
{
    dnnl_memory_t to;
    kit_call call;

    if (kit_same(kit_of(from), want)) {
        return from;
    }
    to = kit_memory(want);
    call = kit_call_of(kit_reorder(kit_of(from), want));
    kit_arg(&call, DNNL_ARG_FROM, from);
    kit_arg(&call, DNNL_ARG_TO, to);
    add_call(call);
    return to;
}

static void add_update(dnnl_memory_t w, dnnl_memory_t g)
{
    param *p = &net.params[net.nparams++];

    p->n = dnnl_memory_desc_get_size(kit_of(w)) / sizeof(float);
    p->w = kit_data(w);
    p->g = kit_data(g);
    p->m = zeroed_memory(p->n, sizeof(float));
    p->v = zeroed_memory(p->n, sizeof(float));
}

/* A 3 x 3 convolution without padding; `size` is the side of its input. */
typedef struct conv {
    dnnl_primitive_desc_t forward;
    dnnl_memory_t x, w, bias, y;
    kit_desc dx, dw, db, dy; /* as the network keeps them; dw in any layout */
} conv;

static conv add_convolution(dnnl_memory_t x, int size, int in, int out)
{
    const int64_t xd[] = {net.batch, in, size, size}, wd[] = {out, in, 3, 3},
                  bd[] = {out};
    const int64_t yd[] = {net.batch, out, size - 2, size - 2};
    conv c = {.x = x};
    kit_call call;

    c.dx = kit_plain(4, xd, dnnl_nhwc);
    c.dy = kit_plain(4, yd, dnnl_nhwc);
    c.dw = kit_plain(4, wd, dnnl_format_tag_any);
    c.db = kit_plain(1, bd, dnnl_a);
    c.forward = kit_conv_forward(c.dx, c.dw, c.db, c.dy, true);
    c.w = kit_memory(kit_plain(4, wd, dnnl_hwio));
    c.bias = kit_memory(c.db);
    c.y = kit_memory(c.dy);
    call = kit_call_of(c.forward);
    kit_arg(&call, DNNL_ARG_SRC, x);
    kit_arg(&call, DNNL_ARG_WEIGHTS,
            reordered(c.w, kit_wants(c.forward, dnnl_query_weights_md)));
    kit_arg(&call, DNNL_ARG_BIAS, c.bias);
    kit_arg(&call, DNNL_ARG_DST, c.y);
    add_call(call);
    return c;
}

static void weights_gradient(const conv *c, dnnl_memory_t dy)
{
    dnnl_primitive_desc_t pd = kit_conv_weights(c->dx, c->dw, c->db, c->dy, c->forward);
    dnnl_memory_t dw = kit_memory(kit_wants(pd, dnnl_query_diff_weights_md));
    dnnl_memory_t db = kit_memory(c->db);
    kit_call call = kit_call_of(pd);

    kit_arg(&call, DNNL_ARG_SRC, c->x);
    kit_arg(&call, DNNL_ARG_DIFF_DST, dy);
    kit_arg(&call, DNNL_ARG_DIFF_WEIGHTS, dw);
    kit_arg(&call, DNNL_ARG_DIFF_BIAS, db);
    add_call(call);
    add_update(c->w, reordered(dw, kit_of(c->w)));
    add_update(c->bias, db);
}

static dnnl_memory_t data_gradient(const conv *c, dnnl_memory_t dy)
{
    dnnl_primitive_desc_t pd = kit_conv_data(c->dx, c->dw, c->dy, c->forward);
    dnnl_memory_t dx = kit_memory(c->dx);
    dnnl_memory_t w = reordered(c->w, kit_wants(pd, dnnl_query_weights_md));
    kit_call call = kit_call_of(pd);

    kit_arg(&call, DNNL_ARG_WEIGHTS, w);
    kit_arg(&call, DNNL_ARG_DIFF_DST, dy);
    kit_arg(&call, DNNL_ARG_DIFF_SRC, dx);
    add_call(call);
    return dx;
}

/* `size` is the side of the pooled image. Returns the index of the call in the list. */
static int add_max_pool(dnnl_memory_t x, int size, int channels, float **y)
{
    const size_t n =
        (size_t)net.batch * (size_t)(size / 2) * (size_t)(size / 2) * (size_t)channels;
    step_call *c = add_call((kit_call){0});

    c->own = run_max_pool;
    c->in = kit_data(x);
    *y = c->out = zeroed_memory(n, sizeof(float));
    c->where = zeroed_memory(n, 1);
    c->images = net.batch;
    c->height = c->width = size;
    c->channels = channels;
    return (int)(c - net.calls);
}

static dnnl_memory_t add_max_unpool(int forward, const float *dy, kit_desc desc)
{
    dnnl_memory_t dx = kit_memory(desc);
    step_call *c = add_call((kit_call){0});

    *c = net.calls[forward];
    c->own = run_max_unpool;
    c->in = dy;
    c->out = kit_data(dx);
    return dx;
}

static dnnl_memory_t matrix_of(int64_t rows, int64_t cols)
{
    const int64_t d[] = {rows, cols};

    return kit_memory(kit_plain(2, d, dnnl_ab));
}

/* `m`, which has `rows` x `cols`, as its transpose, without a copy. */
static dnnl_memory_t transposed(dnnl_memory_t m, int64_t rows, int64_t cols)
{
    const int64_t d[] = {cols, rows};

    return kit_view(kit_plain(2, d, dnnl_ba), kit_data(m));
}

static void add_product(dnnl_memory_t a, dnnl_memory_t b, dnnl_memory_t bias,
                        dnnl_memory_t c, bool relu)
{
    kit_call call = kit_call_of(kit_matmul(
        kit_of(a), kit_of(b), bias == NULL ? NULL : kit_of(bias), kit_of(c), relu));

    kit_arg(&call, DNNL_ARG_SRC, a);
    kit_arg(&call, DNNL_ARG_WEIGHTS, b);
    if (bias != NULL) {
        kit_arg(&call, DNNL_ARG_BIAS, bias);
    }
    kit_arg(&call, DNNL_ARG_DST, c);
    add_call(call);
}

static void build_step(int n)
{
    const int64_t xd[] = {n, 1, 28, 28}, fd[] = {n, 1600}, pd[] = {n, 32, 13, 13};
    float *p1, *p2;
    int pool1, pool2;
    conv c1, c2;
    dnnl_memory_t flat, w3, b3, h, w4, b4, y, dy, dw4, dh, dw3, df, g;
    kit_call relu;

    net.batch = n;
    c1 = add_convolution(kit_memory(kit_plain(4, xd, dnnl_nhwc)), 28, 1, 32);
    pool1 = add_max_pool(c1.y, 26, 32, &p1);
    c2 = add_convolution(kit_view(kit_plain(4, pd, dnnl_nhwc), p1), 13, 32, 64);
    pool2 = add_max_pool(c2.y, 11, 64, &p2);
    flat = kit_view(kit_plain(2, fd, dnnl_ab), p2);
    w3 = matrix_of(1600, 64), b3 = matrix_of(1, 64), h = matrix_of(n, 64);
    w4 = matrix_of(64, 10), b4 = matrix_of(1, 10), y = matrix_of(n, 10);
    add_product(flat, w3, b3, h, true);
    add_product(h, w4, b4, y, false);

    net.loss_at = net.ncalls;
    dy = matrix_of(n, 10), dw4 = matrix_of(64, 10), dh = matrix_of(n, 64);
    net.logits = kit_data(y);
    net.dlogits = kit_data(dy);
    add_product(transposed(h, n, 64), dy, NULL, dw4, false);
    add_product(dy, transposed(w4, 64, 10), NULL, dh, false);
    relu = kit_call_of(kit_relu_backward(kit_of(h)));
    kit_arg(&relu, DNNL_ARG_DST, h);
    kit_arg(&relu, DNNL_ARG_DIFF_DST, dh);
    kit_arg(&relu, DNNL_ARG_DIFF_SRC, dh);
    add_call(relu);
    dw3 = matrix_of(1600, 64), df = matrix_of(n, 1600);
    add_product(transposed(flat, n, 1600), dh, NULL, dw3, false);
    add_product(dh, transposed(w3, 1600, 64), NULL, df, false);
    g = add_max_unpool(pool2, kit_data(df), c2.dy);
    weights_gradient(&c2, g);
    g = data_gradient(&c2, g);
    g = add_max_unpool(pool1, kit_data(g), c1.dy);
    weights_gradient(&c1, g);
    add_update(w3, dw3);
    add_update(w4, dw4);
}

static void run_step(void)
{
    for (int i = 0; i < net.ncalls; i++) {
        const step_call *c = &net.calls[i];

        if (i == net.loss_at) {
            loss_gradient();
        }
        if (c->own != NULL) {
            c->own(c);
        } else {
            kit_run(&c->call);
        }
    }
    for (int i = 0; i < net.nparams; i++) {
        const param *p = &net.params[i];

        adam(p->w, p->m, p->v, p->g, p->n);
    }
}

static void measure_steps(double seconds)
{
    const double start = bench_now(), cpu = bench_cpu_now();
    double spent = 0;
    long runs = 0;

    do {
        run_step();
        runs++;
        spent = bench_now() - start;
    } while (spent < seconds);
    printf("{\"batch\": %d, \"ms\": %.4f, \"cpu_ms\": %.4f, \"samples_per_s\": %.1f}\n",
           net.batch, spent * 1e3 / (double)runs,
           (bench_cpu_now() - cpu) * 1e3 / (double)runs,
           net.batch * (double)runs / spent);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const int batch = argc > 1 && argv[1][0] != '-' ? atoi(argv[1]) : 64;
    const bool serve = argc > 1 && strcmp(argv[argc - 1], "--serve") == 0;
    char line[64];

    if (batch < 1) {
        fprintf(stderr, "usage: dnnl_step [BATCH] [--serve]\n");
        return 2;
    }
    kit_open();
    build_step(batch);
    for (int i = 0; i < 5; i++) {
        run_step();
    }
    if (!serve) {
        measure_steps(1.0);
        return 0;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        measure_steps(strtod(line, NULL));
    }
    return 0;
}
