/*
 * Matrix products by oneDNN's matmul, plain row-major float32, one JSON line each.
 *
 *     dnnl_gemm                  the shapes that docs/performance.md lists
 *     dnnl_gemm --serve          reads "M N K SECONDS" lines and answers each with a line
 *
 * Threads by OMP_NUM_THREADS. `lockstep bench op` serves itself from it in turn with
 * its own windows.
 */
#include "bench/bench_clock.h"
#include "bench/dnnl_kit.h"

#include <stdio.h>
#include <string.h>

static const long shapes[][3] = {
    {128, 128, 128},    {256, 256, 256},    {512, 512, 512},
    {1024, 1024, 1024}, {2048, 2048, 2048}, {128, 512, 784},
    {64, 512, 784},     {128, 512, 512},    {128, 10, 512},
};

/* The product of one shape; made once, as a framework that caches primitives does. */
typedef struct product {
    long m, n, k;
    kit_call call;
} product;

static product make_product(long m, long n, long k)
{
    const int64_t da[] = {m, k}, db[] = {k, n}, dc[] = {m, n};
    const kit_desc a = kit_plain(2, da, dnnl_ab), b = kit_plain(2, db, dnnl_ab),
                   c = kit_plain(2, dc, dnnl_ab);
    product p = {m, n, k, kit_call_of(kit_matmul(a, b, NULL, c, false))};

    kit_arg(&p.call, DNNL_ARG_SRC, kit_memory(a));
    kit_arg(&p.call, DNNL_ARG_WEIGHTS, kit_memory(b));
    kit_arg(&p.call, DNNL_ARG_DST, kit_memory(c));
    kit_run(&p.call);
    return p;
}

static void measure_product(const product *p, double seconds)
{
    const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    const double start = bench_now(), cpu = bench_cpu_now();
    double spent = 0;
    long runs = 0;

    do {
        kit_run(&p->call);
        runs++;
        spent = bench_now() - start;
    } while (spent < seconds);
    printf(
        "{\"m\": %ld, \"n\": %ld, \"k\": %ld, \"gflops\": %.2f, \"cpu_gflops\": %.2f}\n",
        p->m, p->n, p->k, flops * (double)runs / spent * 1e-9,
        flops * (double)runs / (bench_cpu_now() - cpu) * 1e-9);
    fflush(stdout);
}

static int serve_lines(void)
{
    product p = {0};
    char line[128];

    while (fgets(line, sizeof line, stdin) != NULL) {
        long m, n, k;
        double seconds;

        if (sscanf(line, "%ld %ld %ld %lf", &m, &n, &k, &seconds) != 4 || m < 1 ||
            n < 1 || k < 1) {
            fprintf(stderr, "dnnl_gemm: expected M N K SECONDS, got %s", line);
            return 2;
        }
        if (m != p.m || n != p.n || k != p.k) {
            p = make_product(m, n, k);
        }
        measure_product(&p, seconds);
    }
    return 0;
}

int main(int argc, char **argv)
{
    kit_open();
    if (argc > 1 && strcmp(argv[1], "--serve") == 0) {
        return serve_lines();
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        product p = make_product(shapes[i][0], shapes[i][1], shapes[i][2]);

        measure_product(&p, 0.3);
    }
    return 0;
}
