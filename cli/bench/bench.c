/* `lockstep bench`: its options, and how all benchmarks measure. */
#include "cli/bench/bench.h"

#include "bench/bench_clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bench_wanted(const bench_options *o, const char *name)
{
    return o->filter == NULL || strstr(name, o->filter) != NULL;
}

int bench_failed(const char *what, const ls_error *err)
{
    fprintf(stderr, "lockstep bench: %s: %s", what,
            err->message[0] != '\0' ? err->message : ls_status_meaning(err->code));
    if (err->file[0] != '\0') {
        fprintf(stderr, " (%s:%d)", err->file, err->line);
    }
    fprintf(stderr, "\n");
    return CLI_FAILED;
}

static int on_threads(const bench_options *o, int threads,
                      int (*run)(const bench_options *o, ls_device *device))
{
    ls_runtime_options options = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;
    int status;

    options.logical_cpus = 1;
    options.threads = threads;
    if (ls_runtime_create(&options, &rt, &err) != LS_OK) {
        return bench_failed("runtime", &err);
    }
    status = run(o, ls_runtime_device(rt, 0));
    ls_runtime_release(rt);
    return status;
}

int bench_each_thread_count(const bench_options *o,
                            int (*run)(const bench_options *o, ls_device *device))
{
    ls_machine machine = LS_MACHINE_INIT;
    ls_error err = LS_ERROR_INIT;
    int status;

    if (o->cpu_time) {
        return on_threads(o, 1, run);
    }
    if (o->threads > 0) {
        return on_threads(o, o->threads, run);
    }
    if (ls_info_machine(&machine, &err) != LS_OK) {
        return bench_failed("machine", &err);
    }
    status = on_threads(o, 1, run);
    if (status == CLI_OK && machine.cores > 1) {
        status = on_threads(o, machine.cores, run);
    }
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

bench_stats bench_stats_of(double *v, size_t n)
{
    bench_stats s = {NAN, NAN, NAN};

    if (n == 0 || isnan(v[0])) {
        return s;
    }
    qsort(v, n, sizeof *v, compare_doubles);
    s.min = v[0];
    s.p50 = n % 2 != 0 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    s.max = v[n - 1];
    return s;
}

json_t *bench_stats_json(bench_stats s)
{
    return json_pack("{sf, sf, sf}", "min", s.min, "p50", s.p50, "max", s.max);
}

int bench_print_json(json_t *row)
{
    const int status = cli_print_json("lockstep bench", row, JSON_REAL_PRECISION(6));

    // Where stdout is closed, measuring ends.
    return fflush(stdout) == 0 ? status : CLI_FAILED;
}

ls_status bench_window(const bench_options *o, ls_status (*fn)(void *arg, ls_error *err),
                       void *arg, double seconds, double *each, long *calls,
                       ls_error *err)
{
    double (*now)(void) = o->cpu_time ? bench_cpu_now : bench_now;
    const double start = now();
    double spent = 0;
    long runs = 0;

    do {
        const ls_status st = fn(arg, err);

        if (st != LS_OK) {
            return st;
        }
        runs++;
        spent = now() - start;
    } while (spent < seconds);
    *each = spent / (double)runs;
    *calls = runs;
    return LS_OK;
}

static const char op_text[] =
    "Measures operations in short windows, in turn with a program that calls oneDNN\n"
    "directly and with the fused multiply-add peak of the cores in use. Results are\n"
    "checked against a plain product before they are timed. Figures are medians.\n";

static const char step_text[] =
    "Measures training steps of five networks (mlp, cnn, gpt, tiny, train) in short\n"
    "windows, in turn with the fused multiply-add peak of the cores in use; `train`,\n"
    "the network of `make train`, also in turn with the same step in bare oneDNN calls.\n"
    "Counts what a steady step takes from the system: it should be nothing. With\n"
    "--replicas, the same batch on N replicas in turn with one replica on one core.\n";

static const char collective_text[] =
    "Measures all-reduces between threads of one process, from 4 bytes to 256 MiB, in\n"
    "short windows, in turn with a plain copy by as many threads and with the round "
    "trip\n"
    "of two threads that spin. Sums are checked before they are timed. Both ways to "
    "wait\n"
    "are measured: spinning first, and parking at once. Figures are medians.\n";

static int run_op_or_step(int argc, char **argv, bool op)
{
    bench_options o = {0};
    const cli_option options[] = {
        {"--json", NULL, CLI_FLAG, &o.json, "print one JSON object per line"},
        {"--filter", "NAME", CLI_TEXT, &o.filter, "only those with NAME in their name"},
        {"--threads", "N", CLI_COUNT, &o.threads, "threads (default: 1, then all cores)"},
        {"--seconds", "S", CLI_SECONDS, &o.seconds, "length of a window, of nine each"},
        {"--cpu-time", NULL, CLI_FLAG, &o.cpu_time,
         "count CPU time of one thread: for cores that others use, too"},
        {"--replicas", "N", CLI_COUNT, &o.replicas,
         "N replicas of one thread, beside one replica"},
    };
    const size_t all = sizeof options / sizeof *options;
    const cli_usage usage = {op ? "lockstep bench op" : "lockstep bench step",
                             op ? op_text : step_text, options, op ? all - 1 : all, NULL};
    int status = CLI_OK;

    if (!cli_parse(&usage, argc, argv, &status)) {
        return status;
    }
    if (o.cpu_time && o.threads > 1) {
        fprintf(stderr, "%s: '--cpu-time' is for one thread: those that wait spin\n",
                usage.command);
        return CLI_USAGE;
    }
    if (o.replicas > 0) {
        return bench_replicas(&o);
    }
    return op ? bench_op(&o) : bench_step(&o);
}

static int run_op(int argc, char **argv)
{
    return run_op_or_step(argc, argv, true);
}

static int run_step(int argc, char **argv)
{
    return run_op_or_step(argc, argv, false);
}

static int run_collective(int argc, char **argv)
{
    bench_options o = {0};
    const cli_option options[] = {
        {"--json", NULL, CLI_FLAG, &o.json, "print one JSON object per line"},
        {"--filter", "NAME", CLI_TEXT, &o.filter, "only sizes with NAME in their name"},
        {"--local", NULL, CLI_FLAG, &o.local,
         "between threads of this process (default)"},
        {"--ranks", "N", CLI_COUNT, &o.ranks, "threads that take part (default: 2)"},
        {"--seconds", "S", CLI_SECONDS, &o.seconds, "length of a window, of nine each"},
    };
    const cli_usage usage = {"lockstep bench collective", collective_text, options,
                             sizeof options / sizeof *options, NULL};
    int status = CLI_OK;

    return cli_parse(&usage, argc, argv, &status) ? bench_collective(&o) : status;
}

static const char input_text[] =
    "Makes files in a temporary folder (TMPDIR says where), reads them back and "
    "compares\n"
    "every byte, then measures in short windows, in turn with the bare minimum: "
    "TFRecord\n"
    "with both checksums beside read(), GZIP beside zlib's inflate, parsing Examples of\n"
    "11 features, shuffle and distribution beside the pipeline without them, a step of\n"
    "tiny data, the memory that ten epochs leave behind, and the share of a step of\n"
    "`make train` on two replicas that waits for its batch. Figures are medians.\n";

static int run_input(int argc, char **argv)
{
    bench_options o = {0};
    const cli_option options[] = {
        {"--json", NULL, CLI_FLAG, &o.json, "print one JSON object per line"},
        {"--filter", "NAME", CLI_TEXT, &o.filter, "only those with NAME in their name"},
        {"--seconds", "S", CLI_SECONDS, &o.seconds, "length of a window, of nine each"},
    };
    const cli_usage usage = {"lockstep bench input", input_text, options,
                             sizeof options / sizeof *options, NULL};
    int status = CLI_OK;

    return cli_parse(&usage, argc, argv, &status) ? bench_input(&o) : status;
}

static const char growth_text[] =
    "Doubles one dimension at a time (uses of a weight, variables, replicas, the length\n"
    "of a line), checks the results, and shows how time and memory grow: an exponent of\n"
    "1 is linear, 2 quadratic. Bytes are counted: those held at most, and all that were\n"
    "asked for. A line above its limit is named on stderr, and the exit status is 1.\n";

static int run_growth(int argc, char **argv)
{
    bench_options o = {0};
    const cli_option options[] = {
        {"--json", NULL, CLI_FLAG, &o.json, "print one JSON object per line"},
        {"--filter", "NAME", CLI_TEXT, &o.filter, "only those with NAME in their name"},
        {"--small", NULL, CLI_FLAG, &o.small,
         "smaller sizes, and only bytes are judged: the same in every run"},
        {"--most", "E", CLI_NUMBER, &o.most,
         "the largest exponent of every line (default: its own)"},
    };
    const cli_usage usage = {"lockstep bench growth", growth_text, options,
                             sizeof options / sizeof *options, NULL};
    int status = CLI_OK;

    return cli_parse(&usage, argc, argv, &status) ? bench_growth(&o) : status;
}

int cli_bench(int argc, char **argv)
{
    static const cli_command kinds[] = {
        {"op", "products, convolutions and pooling, the cost of a call", run_op},
        {"step", "whole training steps", run_step},
        {"collective", "sums over ranks, beside what the memory gives", run_collective},
        {"input", "reading, parsing and distributing datasets", run_input},
        {"growth", "whether cost grows no faster than it must", run_growth},
    };

    return cli_run_task("lockstep bench", "benchmark", kinds,
                        sizeof kinds / sizeof *kinds, argc, argv);
}
