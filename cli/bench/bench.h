/*
 * How `lockstep bench` measures: many short windows, each beside the peak of the cores
 * and the program that is compared with, so that every figure is a ratio taken in one
 * run. The median of those ratios is what counts; other load on the machine moves the
 * smallest and the largest.
 */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli/cli.h"

#include <jansson.h>
#include <lockstep/lockstep.h>

enum { BENCH_WINDOWS = 9, BENCH_BURSTS = 3 };

typedef struct bench_options {
    bool json;
    const char *filter; /* NULL: everything; else a part of the name */
    int threads;        /* 0: one, and all cores */
    double seconds;     /* of a window; 0: the default of the benchmark */
    bool cpu_time;      /* of one thread, by its CPU time */
    int replicas;       /* step: beside one replica; 0: no strategy */
    int ranks;          /* collective: of a group; 0: two */
    bool local;         /* collective: threads of this process */
    bool small;         /* growth: sizes and judgements of a test */
    double most;        /* growth: the largest exponent of all lines; 0: their own */
} bench_options;

int bench_op(const bench_options *o);
int bench_step(const bench_options *o);
int bench_replicas(const bench_options *o);
int bench_collective(const bench_options *o);
int bench_input(const bench_options *o);
int bench_growth(const bench_options *o);

/* Whether `name` is asked for. */
bool bench_wanted(const bench_options *o, const char *name);

/*
 * Calls run(o, device) on CPU:0 of a fresh runtime for each number of threads asked for:
 * the one of the options, else one and as many as there are cores. Returns the first
 * status that is not CLI_OK.
 */
int bench_each_thread_count(const bench_options *o,
                            int (*run)(const bench_options *o, ls_device *device));

/* Prints on stderr what failed, with file and line; returns CLI_FAILED. */
int bench_failed(const char *what, const ls_error *err);

typedef struct bench_stats {
    double min, p50, max;
} bench_stats;

/* Sorts `v`; all NAN if there is none. */
bench_stats bench_stats_of(double *v, size_t n);

/* {"min": ..., "p50": ..., "max": ...} */
json_t *bench_stats_json(bench_stats s);

/* Prints `row` as one line and releases it. */
int bench_print_json(json_t *row);

/* Runs fn(arg) for about `seconds` by the clock asked for; *each receives the seconds of
 * one call, *calls how many there were. */
ls_status bench_window(const bench_options *o, ls_status (*fn)(void *arg, ls_error *err),
                       void *arg, double seconds, double *each, long *calls,
                       ls_error *err);

/*
 * A program beside this one (or in libexec/lockstep) that answers each line of its input
 * with a line of JSON; OMP_NUM_THREADS sets its number of threads.
 */
typedef struct bench_child bench_child;

/* NULL: it was not built, or does not start. */
bench_child *bench_child_start(const char *program, int threads);
void bench_child_stop(bench_child *child); /* NULL is allowed */

/* The number `field` of the answer to `line`; NAN: no answer. NULL child: NAN. */
double bench_child_ask(bench_child *child, const char *line, const char *field);
#endif
