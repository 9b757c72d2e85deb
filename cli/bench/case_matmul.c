/* Matrix products at the shapes of docs/performance.md. */
#include "cli/bench/bench_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name;
    int64_t m, n, k;
} shapes[] = {
    {"matmul 128x128x128", 128, 128, 128},
    {"matmul 256x256x256", 256, 256, 256},
    {"matmul 512x512x512", 512, 512, 512},
    {"matmul 1024x1024x1024", 1024, 1024, 1024},
    {"matmul 2048x2048x2048", 2048, 2048, 2048},
    {"matmul 128x512x784", 128, 512, 784},
    {"matmul 64x512x784", 64, 512, 784},
    {"matmul 128x512x512", 128, 512, 512},
    {"matmul 128x10x512", 128, 10, 512},
};

static ls_status run_matmul(void *self, ls_error *err)
{
    bench_case *b = self;

    (void)ls_matmul(b->c, b->in[0], b->in[1]);
    return ls_context_finish(b->c, err);
}

/* Row `i` of the product, in double precision. */
static bool row_agrees(const bench_case *b, const float *y, int64_t i, double *row)
{
    const float *a = ls_tensor_data(b->in[0]), *w = ls_tensor_data(b->in[1]);
    // Sums of k products below 1, each rounded once: far above what rounding can do.
    const double allowed = 1e-6 * (double)b->k + 1e-5;

    for (int64_t j = 0; j < b->n; j++) {
        row[j] = 0;
    }
    for (int64_t p = 0; p < b->k; p++) {
        const double v = a[i * b->k + p];

        for (int64_t j = 0; j < b->n; j++) {
            row[j] += v * w[p * b->n + j];
        }
    }
    for (int64_t j = 0; j < b->n; j++) {
        if (!(fabs(row[j] - y[i * b->n + j]) <= allowed)) {
            return false;
        }
    }
    return true;
}

/* Up to 64 rows spread over the result: all of it when it is small. */
static bool verify_matmul(bench_case *b, ls_error *err)
{
    ls_tensor *t = ls_matmul(b->c, b->in[0], b->in[1]);
    const float *y = t != NULL ? ls_tensor_data(t) : NULL;
    double *row = malloc((size_t)b->n * sizeof *row);
    const int64_t stride = b->m / 64 > 0 ? b->m / 64 : 1;
    bool same = y != NULL && row != NULL;

    for (int64_t i = 0; i < b->m && same; i += stride) {
        same = row_agrees(b, y, i, row);
    }
    free(row);
    return ls_context_finish(b->c, err) == LS_OK && same;
}

bool bench_matmul_case(size_t i, ls_context *c, bench_case *out, ls_status *st,
                       ls_error *err)
{
    if (i >= sizeof shapes / sizeof *shapes) {
        return false;
    }
    *out = (bench_case){.name = shapes[i].name,
                        .c = c,
                        .calls = 1,
                        .m = shapes[i].m,
                        .n = shapes[i].n,
                        .k = shapes[i].k,
                        .run = run_matmul,
                        .verify = verify_matmul};
    out->flops = 2.0 * (double)out->m * (double)out->n * (double)out->k;
    snprintf(out->dnnl, sizeof out->dnnl, "%lld %lld %lld", (long long)out->m,
             (long long)out->n, (long long)out->k);
    out->in[0] = bench_random(c, LS_SHAPE(out->m, out->k), st, err);
    out->in[1] = bench_random(c, LS_SHAPE(out->k, out->n), st, err);
    return true;
}
