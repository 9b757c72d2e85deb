/* `lockstep bench op`: single operations. */
#include "cli/bench/bench_case.h"

#include "bench/fma_peak.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef bool (*family_fn)(size_t i, ls_context *c, bench_case *out, ls_status *st,
                          ls_error *err);
static const family_fn families[] = {bench_matmul_case, bench_image_case,
                                     bench_call_case};

typedef struct op_result {
    const bench_case *op;
    int threads;
    const char *isa;
    double peak;
    bench_stats us, gflops, of_peak, dnnl, of_dnnl;
} op_result;

/* The operations of one runtime. */
struct session {
    const bench_options *o;
    ls_device *device;
    ls_context *c;
    bench_child *child;
    bool compared; /* it was looked for */
    int matched;
};

ls_tensor *bench_random(ls_context *c, ls_shape shape, ls_status *st, ls_error *err)
{
    const int64_t count = ls_shape_count(&shape);
    uint32_t state = 2463534242U;
    ls_tensor *t = NULL;
    float *p;

    if (*st != LS_OK) {
        return NULL;
    }
    p = malloc((size_t)count * sizeof *p);
    if (p == NULL) {
        *st = LS_RESOURCE_EXHAUSTED;
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        p[i] = (float)(state >> 8) / 8388608.0F - 1.0F;
    }
    *st = ls_tensor_create(ls_context_device(c), LS_F32, shape, p, &t, err);
    free(p);
    return t;
}

void bench_case_release(bench_case *self)
{
    for (size_t i = 0; i < sizeof self->in / sizeof self->in[0]; i++) {
        ls_tensor_release(self->in[i]);
    }
}

static int measure_case(const bench_options *o, bench_case *op, bench_child *child,
                        op_result *r)
{
    const double seconds = o->seconds > 0 ? o->seconds : 0.1;
    const char *field = o->cpu_time ? "cpu_gflops" : "gflops";
    double us[BENCH_WINDOWS], gflops[BENCH_WINDOWS], share[BENCH_WINDOWS],
        peak[BENCH_WINDOWS], dnnl[BENCH_WINDOWS], ratio[BENCH_WINDOWS];
    ls_error err = LS_ERROR_INIT;
    char line[96];

    snprintf(line, sizeof line, "%s %g", op->dnnl, seconds);
    for (int w = 0; w < BENCH_WINDOWS; w++) {
        double each = 0;
        long calls = 0;

        peak[w] = bench_fma_peak_best(r->threads, r->isa, BENCH_BURSTS);
        if (bench_window(o, op->run, op, seconds, &each, &calls, &err) != LS_OK) {
            return bench_failed(op->name, &err);
        }
        us[w] = each * 1e6 / op->calls;
        gflops[w] = op->flops / each * 1e-9;
        share[w] = gflops[w] / peak[w];
        dnnl[w] = op->dnnl[0] != '\0' ? bench_child_ask(child, line, field) : NAN;
        ratio[w] = gflops[w] / dnnl[w];
    }
    r->us = bench_stats_of(us, BENCH_WINDOWS);
    r->gflops = bench_stats_of(gflops, BENCH_WINDOWS);
    r->of_peak = bench_stats_of(share, BENCH_WINDOWS);
    r->peak = bench_stats_of(peak, BENCH_WINDOWS).p50;
    r->dnnl = bench_stats_of(dnnl, BENCH_WINDOWS);
    r->of_dnnl = bench_stats_of(ratio, BENCH_WINDOWS);
    return CLI_OK;
}

static int print_row_json(const op_result *r)
{
    json_t *row = json_pack("{ss, ss, si, ss, so, sf}", "bench", "op", "name",
                            r->op->name, "threads", r->threads, "isa", r->isa, "us",
                            bench_stats_json(r->us), "peak_gflops", r->peak);

    if (row != NULL && r->op->flops > 0) {
        json_object_set_new(row, "gflops", bench_stats_json(r->gflops));
        json_object_set_new(row, "of_peak", bench_stats_json(r->of_peak));
    }
    if (row != NULL && !isnan(r->dnnl.p50)) {
        json_object_set_new(row, "onednn_gflops", bench_stats_json(r->dnnl));
        json_object_set_new(row, "of_onednn", bench_stats_json(r->of_dnnl));
    }
    if (row != NULL && r->op->goal_ns > 0) {
        json_object_set_new(row, "goal_us", json_real(r->op->goal_ns * 1e-3));
    }
    return bench_print_json(row);
}

static void print_head(ls_device *device)
{
    printf("\noperations, %d thread%s, %s\n"
           "%-30s %10s %10s %10s %9s %8s %8s\n",
           ls_device_threads(device), ls_device_threads(device) == 1 ? "" : "s",
           ls_info_device_isa(device), "operation", "us p50", "min", "max", "GFLOP/s",
           "of peak", "oneDNN");
}

static int print_row(const op_result *r)
{
    char gflops[16] = "-", peak[16] = "-", dnnl[16] = "-";

    if (r->op->flops > 0) {
        snprintf(gflops, sizeof gflops, "%.1f", r->gflops.p50);
        snprintf(peak, sizeof peak, "%.1f %%", 100 * r->of_peak.p50);
    }
    if (!isnan(r->of_dnnl.p50)) {
        snprintf(dnnl, sizeof dnnl, "%.2f x", r->of_dnnl.p50);
    }
    printf("%-30s %10.3f %10.3f %10.3f %9s %8s %8s\n", r->op->name, r->us.p50, r->us.min,
           r->us.max, gflops, peak, dnnl);
    fflush(stdout);
    return CLI_OK;
}

static int run_case(const bench_options *o, ls_device *device, bench_child *child,
                    bench_case *op)
{
    op_result r = {.op = op,
                   .threads = ls_device_threads(device),
                   .isa = ls_info_device_isa(device)};
    ls_error err = LS_ERROR_INIT;
    int status;

    if (!op->verify(op, &err)) {
        if (err.code == LS_OK) {
            fprintf(stderr, "lockstep bench: %s: the result is wrong\n", op->name);
            return CLI_FAILED;
        }
        return bench_failed(op->name, &err);
    }
    status = measure_case(o, op, child, &r);
    if (status != CLI_OK) {
        return status;
    }
    return o->json ? print_row_json(&r) : print_row(&r);
}

/* The table opens with the first operation, the comparison with the first that has one.
 */
static void begin_case(struct session *s, const bench_case *op)
{
    if (op->dnnl[0] != '\0' && !s->compared) {
        s->compared = true;
        s->child = bench_child_start("dnnl_gemm", ls_device_threads(s->device));
        if (s->child == NULL) {
            fprintf(stderr,
                    "lockstep bench: no comparison: dnnl_gemm is not there; it is "
                    "built where oneDNN is installed (libdnnl-dev)\n");
        }
    }
    if (s->matched++ == 0 && !s->o->json) {
        print_head(s->device);
    }
}

static int run_family(struct session *s, family_fn family)
{
    int status = CLI_OK;
    bool more = true;

    for (size_t i = 0; more && status == CLI_OK; i++) {
        ls_error err = LS_ERROR_INIT;
        ls_status st = LS_OK;
        bench_case op = {0};

        more = family(i, s->c, &op, &st, &err);
        if (more && st != LS_OK) {
            err.code = st;
            status = bench_failed(op.name, &err);
        } else if (more && bench_wanted(s->o, op.name)) {
            begin_case(s, &op);
            status = run_case(s->o, s->device, s->child, &op);
        }
        bench_case_release(&op);
    }
    return status;
}

static int run_all(const bench_options *o, ls_device *device)
{
    struct session s = {o, device, NULL, NULL, false, 0};
    ls_error err = LS_ERROR_INIT;
    int status = CLI_OK;

    if (ls_context_open(device, NULL, &s.c, &err) != LS_OK) {
        return bench_failed("context", &err);
    }
    for (size_t i = 0; i < sizeof families / sizeof *families && status == CLI_OK; i++) {
        status = run_family(&s, families[i]);
    }
    if (status == CLI_OK && s.matched == 0) {
        fprintf(stderr,
                "lockstep bench op: no operation has '%s' in its name; there are matmul,"
                " conv, pool and add\n",
                o->filter);
        status = CLI_USAGE;
    }
    bench_child_stop(s.child);
    ls_context_close(s.c);
    return status;
}

int bench_op(const bench_options *o)
{
    return bench_each_thread_count(o, run_all);
}
