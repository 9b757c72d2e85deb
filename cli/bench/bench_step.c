/* `lockstep bench step`: whole training steps. */
#include "cli/bench/bench.h"

#include "bench/bench_clock.h"
#include "bench/fma_peak.h"
#include "bench/models.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* How often the library asked the system for memory. */
static atomic_long allocations;

static void *count_alloc(size_t size, size_t align, void *user)
{
    void *p = NULL;

    (void)user;
    atomic_fetch_add(&allocations, 1);
    return posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size) == 0
               ? p
               : NULL;
}

static void count_release(void *ptr, void *user)
{
    (void)user;
    free(ptr);
}

static long page_faults(void)
{
    struct rusage u;

    return getrusage(RUSAGE_SELF, &u) == 0 ? u.ru_minflt : 0;
}

typedef struct step_result {
    const bench_spec *spec;
    int threads;
    const char *isa;
    bench_stats ms, cpu_ms, of_peak, peak, dnnl_ms, of_dnnl;
    long steps, allocations, faults; /* in the windows */
} step_result;

static ls_status run_step(void *arg, ls_error *err)
{
    return bench_model_step(arg, NULL, err);
}

/* The first steps make the pools and caches; training must lower the loss. */
static int warm_up(bench_model *model, const char *name)
{
    ls_error err = LS_ERROR_INIT;
    double first = 0, last = 0;

    for (int i = 0; i < 10; i++) {
        if (bench_model_step(model, i == 0 ? &first : &last, &err) != LS_OK) {
            return bench_failed(name, &err);
        }
    }
    if (!isfinite(last) || last >= first) {
        fprintf(stderr, "lockstep bench: %s: the loss went from %g to %g in ten steps\n",
                name, first, last);
        return CLI_FAILED;
    }
    return CLI_OK;
}

static int measure_step(const bench_options *o, bench_model *model, bench_child *child,
                        step_result *r)
{
    const double seconds = o->seconds > 0 ? o->seconds : 0.4;
    double ms[BENCH_WINDOWS], cpu[BENCH_WINDOWS], share[BENCH_WINDOWS],
        peak[BENCH_WINDOWS], dnnl[BENCH_WINDOWS], ratio[BENCH_WINDOWS];
    ls_error err = LS_ERROR_INIT;
    char line[32];

    snprintf(line, sizeof line, "%g", seconds);
    for (int w = 0; w < BENCH_WINDOWS; w++) {
        double each = 0, used;
        long allocs, faults, steps = 0;

        peak[w] = bench_fma_peak_best(r->threads, r->isa, BENCH_BURSTS);
        // One step alone: what the burst left cold or mapped is not the step's.
        if (bench_model_step(model, NULL, &err) != LS_OK) {
            return bench_failed(r->spec->name, &err);
        }
        allocs = atomic_load(&allocations);
        faults = page_faults();
        used = bench_cpu_now();
        if (bench_window(o, run_step, model, seconds, &each, &steps, &err) != LS_OK) {
            return bench_failed(r->spec->name, &err);
        }
        used = bench_cpu_now() - used;
        r->faults += page_faults() - faults;
        r->allocations += atomic_load(&allocations) - allocs;
        r->steps += steps;
        ms[w] = each * 1e3;
        cpu[w] = used * 1e3 / (double)steps;
        share[w] = r->spec->flops / each * 1e-9 / peak[w];
        dnnl[w] = bench_child_ask(child, line, o->cpu_time ? "cpu_ms" : "ms");
        ratio[w] = dnnl[w] / ms[w];
    }
    r->ms = bench_stats_of(ms, BENCH_WINDOWS);
    r->cpu_ms = bench_stats_of(cpu, BENCH_WINDOWS);
    r->of_peak = bench_stats_of(share, BENCH_WINDOWS);
    r->peak = bench_stats_of(peak, BENCH_WINDOWS);
    r->dnnl_ms = bench_stats_of(dnnl, BENCH_WINDOWS);
    r->of_dnnl = bench_stats_of(ratio, BENCH_WINDOWS);
    return CLI_OK;
}

static double samples_per_second(const step_result *r)
{
    return r->spec->batch * r->spec->items / r->ms.p50 * 1e3;
}

static int print_row_json(const step_result *r)
{
    json_t *row = json_pack(
        "{ss, ss, si, ss, si, so, so, sf, sI, sI, sI, sf}", "bench", "step", "name",
        r->spec->name, "threads", r->threads, "isa", r->isa, "batch", r->spec->batch,
        "ms", bench_stats_json(r->ms), "cpu_ms", bench_stats_json(r->cpu_ms),
        "samples_per_s", samples_per_second(r), "steps", (json_int_t)r->steps,
        "allocations", (json_int_t)r->allocations, "page_faults", (json_int_t)r->faults,
        "peak_gflops", r->peak.p50);

    if (row != NULL && r->spec->flops > 0) {
        json_object_set_new(row, "of_peak", bench_stats_json(r->of_peak));
    }
    if (row != NULL && !isnan(r->dnnl_ms.p50)) {
        json_object_set_new(row, "onednn_ms", bench_stats_json(r->dnnl_ms));
        json_object_set_new(row, "of_onednn", bench_stats_json(r->of_dnnl));
    }
    return bench_print_json(row);
}

static void print_head(ls_device *device)
{
    printf("\ntraining steps, %d thread%s, %s\n"
           "%-7s %10s %10s %10s %10s %11s %8s %8s %8s %8s\n",
           ls_device_threads(device), ls_device_threads(device) == 1 ? "" : "s",
           ls_info_device_isa(device), "model", "ms p50", "min", "max", "cpu ms",
           "samples/s", "of peak", "oneDNN", "allocs", "faults");
}

static int print_row(const step_result *r)
{
    char peak[16] = "-", dnnl[16] = "-";

    if (r->spec->flops > 0) {
        snprintf(peak, sizeof peak, "%.1f %%", 100 * r->of_peak.p50);
    }
    if (!isnan(r->of_dnnl.p50)) {
        snprintf(dnnl, sizeof dnnl, "%.2f x", r->of_dnnl.p50);
    }
    printf("%-7s %10.4f %10.4f %10.4f %10.4f %11.0f %8s %8s %8ld %8ld\n", r->spec->name,
           r->ms.p50, r->ms.min, r->ms.max, r->cpu_ms.p50, samples_per_second(r), peak,
           dnnl, r->allocations, r->faults);
    fflush(stdout);
    return CLI_OK;
}

static int run_model(const bench_options *o, ls_device *device, const bench_spec *spec)
{
    step_result r = {.spec = spec,
                     .threads = ls_device_threads(device),
                     .isa = ls_info_device_isa(device)};
    ls_error err = LS_ERROR_INIT;
    bench_model *model = NULL;
    bench_child *child = NULL;
    ls_status st = bench_model_create(device, spec->name, &model, &err);
    int status;

    if (st != LS_OK) {
        err.code = st;
        return bench_failed(spec->name, &err);
    }
    if (strcmp(spec->name, "train") == 0) {
        child = bench_child_start("dnnl_step", r.threads);
    }
    status = warm_up(model, spec->name);
    if (status == CLI_OK) {
        status = measure_step(o, model, child, &r);
    }
    if (status == CLI_OK) {
        status = o->json ? print_row_json(&r) : print_row(&r);
    }
    bench_child_stop(child);
    bench_model_release(model);
    return status;
}

static int run_all(const bench_options *o, ls_device *device)
{
    size_t n = 0;
    const bench_spec *specs = bench_specs(&n);

    if (!o->json) {
        print_head(device);
    }
    for (size_t i = 0; i < n; i++) {
        if (bench_wanted(o, specs[i].name)) {
            const int status = run_model(o, device, &specs[i]);

            if (status != CLI_OK) {
                return status;
            }
        }
    }
    return CLI_OK;
}

int bench_step(const bench_options *o)
{
    ls_error err = LS_ERROR_INIT;
    size_t n = 0, wanted = 0;
    const bench_spec *specs = bench_specs(&n);
    const char *names[16];

    for (size_t i = 0; i < n && i < 16; i++) {
        names[i] = specs[i].name;
        wanted += bench_wanted(o, specs[i].name) ? 1 : 0;
    }
    if (wanted == 0) {
        return cli_unknown("lockstep bench step", "model", o->filter, names, n);
    }
    if (ls_allocator_set(count_alloc, count_release, NULL, &err) != LS_OK) {
        return bench_failed("allocator", &err);
    }
    return bench_each_thread_count(o, run_all);
}
