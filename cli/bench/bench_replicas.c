/*
 * `lockstep bench step --replicas N`: the same global batch on one replica with one core
 * and on N replicas with one core each, in turn. Efficiency is the throughput of N over N
 * times that of one.
 */
#include "cli/bench/bench.h"

#include "bench/fma_peak.h"
#include "bench/models.h"

#include <math.h>
#include <stdio.h>

/* A runtime of `n` logical devices with one thread each, and the strategy over them. */
struct side {
    ls_runtime *rt;
    ls_strategy *strategy;
    bench_model *model;
};

static ls_status open_side(struct side *s, int n, ls_error *err)
{
    ls_runtime_options devices = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options options = LS_STRATEGY_OPTIONS_INIT;
    ls_status st;

    devices.logical_cpus = n;
    devices.threads = 1;
    st = ls_runtime_create(&devices, &s->rt, err);
    if (st == LS_OK) {
        options.runtime = s->rt;
        st = ls_mirrored_create(NULL, &options, &s->strategy, err);
    }
    return st;
}

static void close_side(struct side *s)
{
    bench_model_release(s->model);
    ls_strategy_release(s->strategy);
    ls_runtime_release(s->rt);
}

/* ---- the fixed cost ---- */

static ls_value *empty(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    (void)user;
    return ls_value_of(c, ls_all_reduce(c, LS_SUM, ls_constant_f32(c, 1)));
}

static ls_status run_empty(void *arg, ls_error *err)
{
    const struct side *s = arg;

    return ls_strategy_run(s->strategy, empty, NULL, NULL, NULL, err);
}

static int fixed_cost(const bench_options *o, struct side *many)
{
    const double seconds = o->seconds > 0 ? o->seconds : 0.1;
    double us[BENCH_WINDOWS];
    ls_error err = LS_ERROR_INIT;

    for (int w = 0; w < BENCH_WINDOWS; w++) {
        double each = 0;
        long calls = 0;

        if (bench_window(o, run_empty, many, seconds, &each, &calls, &err) != LS_OK) {
            return bench_failed("empty step", &err);
        }
        us[w] = each * 1e6;
    }
    const bench_stats s = bench_stats_of(us, BENCH_WINDOWS);
    if (o->json) {
        return bench_print_json(
            json_pack("{ss, ss, si, so}", "bench", "step", "name", "empty", "replicas",
                      ls_strategy_replicas(many->strategy), "us", bench_stats_json(s)));
    }
    printf("%-7s %10.3f us per step with one scalar summed (min %.3f, max %.3f)\n",
           "empty", s.p50, s.min, s.max);
    return CLI_OK;
}

/* ---- models ---- */

static ls_status run_step(void *arg, ls_error *err)
{
    return bench_model_step(arg, NULL, err);
}

/* Both sides take the same steps: their losses must agree before anything is timed. */
static int compare_sides(const char *name, struct side *one, struct side *many)
{
    ls_error err = LS_ERROR_INIT;

    for (int i = 0; i < 5; i++) {
        double a = 0, b = 0;

        if (bench_model_step(one->model, &a, &err) != LS_OK ||
            bench_model_step(many->model, &b, &err) != LS_OK) {
            return bench_failed(name, &err);
        }
        if (!isfinite(a) || fabs(a - b) > 1e-4 * fabs(a)) {
            fprintf(stderr,
                    "lockstep bench: %s: one replica has the loss %g, several %g\n", name,
                    a, b);
            return CLI_FAILED;
        }
    }
    return CLI_OK;
}

static int measure_sides(const bench_options *o, const bench_spec *spec, struct side *one,
                         struct side *many)
{
    const double seconds = o->seconds > 0 ? o->seconds : 0.4;
    const int n = ls_strategy_replicas(many->strategy);
    const char *isa = ls_info_device_isa(ls_strategy_worker_device(many->strategy, 0));
    double ms1[BENCH_WINDOWS], msn[BENCH_WINDOWS], ratio[BENCH_WINDOWS],
        peak[BENCH_WINDOWS];
    ls_error err = LS_ERROR_INIT;

    for (int w = 0; w < BENCH_WINDOWS; w++) {
        double a = 0, b = 0;
        long calls = 0;
        const double burst = bench_fma_peak_best(n, isa, BENCH_BURSTS);

        if (bench_window(o, run_step, one->model, seconds, &a, &calls, &err) != LS_OK ||
            bench_window(o, run_step, many->model, seconds, &b, &calls, &err) != LS_OK) {
            return bench_failed(spec->name, &err);
        }
        ms1[w] = a * 1e3;
        msn[w] = b * 1e3;
        ratio[w] = a / (n * b);
        peak[w] = spec->flops / b * 1e-9 / burst;
    }
    const bench_stats s1 = bench_stats_of(ms1, BENCH_WINDOWS),
                      sn = bench_stats_of(msn, BENCH_WINDOWS),
                      sr = bench_stats_of(ratio, BENCH_WINDOWS),
                      sp = bench_stats_of(peak, BENCH_WINDOWS);
    if (o->json) {
        json_t *row = json_pack("{ss, ss, si, si, so, so, so}", "bench", "step", "name",
                                spec->name, "replicas", n, "batch", spec->batch,
                                "one_replica_ms", bench_stats_json(s1), "ms",
                                bench_stats_json(sn), "efficiency", bench_stats_json(sr));

        if (row != NULL && spec->flops > 0) {
            json_object_set_new(row, "of_peak", bench_stats_json(sp));
        }
        return bench_print_json(row);
    }
    printf("%-7s %10.4f %10.4f %12.3f %8.3f %8.3f", spec->name, s1.p50, sn.p50, sr.p50,
           sr.min, sr.max);
    if (spec->flops > 0) {
        printf(" %8.1f %%", 100 * sp.p50);
    }
    printf("\n");
    fflush(stdout);
    return CLI_OK;
}

static int run_model(const bench_options *o, const bench_spec *spec, struct side *one,
                     struct side *many)
{
    ls_error err = LS_ERROR_INIT;
    int status;

    if (bench_model_create_on(one->strategy, spec->name, &one->model, &err) != LS_OK ||
        bench_model_create_on(many->strategy, spec->name, &many->model, &err) != LS_OK) {
        return bench_failed(spec->name, &err);
    }
    status = compare_sides(spec->name, one, many);
    if (status == CLI_OK) {
        status = measure_sides(o, spec, one, many);
    }
    bench_model_release(one->model);
    bench_model_release(many->model);
    one->model = many->model = NULL;
    return status;
}

int bench_replicas(const bench_options *o)
{
    struct side one = {NULL, NULL, NULL}, many = {NULL, NULL, NULL};
    ls_error err = LS_ERROR_INIT;
    size_t n = 0;
    const bench_spec *specs = bench_specs(&n);
    int status = CLI_OK;

    if (open_side(&one, 1, &err) != LS_OK ||
        open_side(&many, o->replicas, &err) != LS_OK) {
        status = bench_failed("strategy", &err);
    }
    if (status == CLI_OK && !o->json) {
        printf("\ntraining steps, %d replicas of one thread beside one replica\n"
               "%-7s %10s %10s %12s %8s %8s %10s\n",
               o->replicas, "model", "1 ms", "N ms", "efficiency", "min", "max",
               "of peak");
    }
    if (status == CLI_OK && bench_wanted(o, "empty")) {
        status = fixed_cost(o, &many);
    }
    for (size_t i = 0; i < n && status == CLI_OK; i++) {
        if (bench_wanted(o, specs[i].name) && specs[i].batch % o->replicas == 0) {
            status = run_model(o, &specs[i], &one, &many);
        }
    }
    close_side(&one);
    close_side(&many);
    return status;
}
