/* `lockstep bench collective`: all-reduces of many sizes beside what the memory gives. */
#include "cli/bench/bench.h"

#include "bench/bench_clock.h"
#include "bench/spin.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PINGS = 2000, SMALL = 4096, COPY_MOST = 64 << 20 };

static const struct size {
    const char *name;
    size_t bytes;
} sizes[] = {
    {"4 B", 4},
    {"1 KiB", (size_t)1 << 10},
    {"64 KiB", (size_t)64 << 10},
    {"1 MiB", (size_t)1 << 20},
    {"4 MiB", (size_t)4 << 20},
    {"16 MiB", (size_t)16 << 20},
    {"64 MiB", (size_t)64 << 20},
    {"256 MiB", (size_t)256 << 20},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* The two ways to wait, each with a group of its own. */
enum { SPIN, PARK, POLICIES };
static const char *const policies[] = {"spin", "park"};

/* What the ranks of one run share; rank 0 writes it between two meetings. */
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): it keeps cache lines apart
struct run {
    const bench_options *o;
    int ranks;
    bench_barrier barrier;
    bench_flag flags[2];
    ls_comm **comms[POLICIES];
    float **buf, **copy;
    size_t bytes;
    long calls;
};

struct rank {
    struct run *run;
    int index;
    pthread_t thread;
    ls_error err;
};

typedef struct collective_result {
    const struct size *size;
    int ranks;
    bench_stats us[POLICIES], gbs[POLICIES], memory, of_memory[POLICIES], rtt_us,
        trips[POLICIES];
} collective_result;

/* Bytes that cross a link of an ideal ring, the usual measure: 2 (n-1) / n. */
static double bus_bytes(const struct run *run)
{
    return run->ranks < 2 ? (double)run->bytes
                          : (double)run->bytes * 2 * (run->ranks - 1) / run->ranks;
}

static bool wanted(const struct run *run, const struct size *size)
{
    return bench_wanted(run->o, size->name);
}

static ls_status reduce(struct rank *me, int policy)
{
    struct run *run = me->run;

    return ls_comm_all_reduce(run->comms[policy][me->index], LS_SUM, run->buf[me->index],
                              run->bytes / sizeof(float), LS_F32, NULL, &me->err);
}

/* Small whole numbers: exact in any order. */
static bool verify_sum(struct rank *me, int policy)
{
    struct run *run = me->run;
    const size_t n = run->bytes / sizeof(float);
    const int sum = run->ranks * (run->ranks + 1) / 2;
    float *x = run->buf[me->index];

    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(me->index + 1 + (int)(i % 5));
    }
    bench_meet(&run->barrier);
    if (reduce(me, policy) != LS_OK) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (x[i] != (float)(sum + run->ranks * (int)(i % 5))) {
            me->err.code = LS_INTERNAL;
            snprintf(me->err.message, sizeof me->err.message,
                     "%s: element %zu of rank %d is %g", policies[policy], i, me->index,
                     (double)x[i]);
            return false;
        }
    }
    bench_meet(&run->barrier);
    memset(x, 0, run->bytes);
    return true;
}

/*
 * Seconds of one call, `calls` of them. Every rank writes its whole buffer before, as a
 * backward pass would, and that is not counted. The smallest are called one after the
 * other: the clock would take longer than they do.
 */
static double time_calls(struct rank *me, int policy, long calls)
{
    struct run *run = me->run;
    double spent = 0, start;

    if (run->bytes <= SMALL) {
        bench_meet(&run->barrier);
        start = bench_now();
        for (long i = 0; i < calls; i++) {
            if (reduce(me, policy) != LS_OK) {
                return NAN;
            }
        }
        return (bench_now() - start) / (double)calls;
    }
    for (long i = 0; i < calls; i++) {
        memset(run->buf[me->index], 0, run->bytes);
        bench_meet(&run->barrier);
        start = bench_now();
        if (reduce(me, policy) != LS_OK) {
            return NAN;
        }
        spent += bench_now() - start;
        bench_meet(&run->barrier);
    }
    return spent / (double)calls;
}

/*
 * Payload in bytes per second of all ranks copying at once. Longer copies than COPY_MOST go
 * past the caches, which a sum that is written where it was read cannot.
 */
static double time_copies(struct rank *me, long calls)
{
    struct run *run = me->run;
    const size_t bytes = run->bytes < COPY_MOST ? run->bytes : COPY_MOST;
    double start;

    memcpy(run->copy[me->index], run->buf[me->index], bytes);
    bench_meet(&run->barrier);
    start = bench_now();
    for (long i = 0; i < calls; i++) {
        memcpy(run->copy[me->index], run->buf[me->index], bytes);
        atomic_signal_fence(memory_order_seq_cst); // the compiler must not leave one out
    }
    bench_meet(&run->barrier);
    return (double)run->ranks * (double)bytes * (double)calls / (bench_now() - start);
}

static double time_round_trip(struct rank *me)
{
    struct run *run = me->run;
    double start;

    if (run->ranks < 2) {
        return NAN;
    }
    bench_meet(&run->barrier);
    if (me->index > 1 || atomic_load(&run->barrier.broken)) {
        return NAN;
    }
    bench_ping(run->flags, me->index, PINGS / 10);
    start = bench_now();
    bench_ping(run->flags, me->index, PINGS);
    return (bench_now() - start) / PINGS;
}

/* How many calls fill a window; the same on every rank. */
static void choose_calls(struct rank *me, int policy)
{
    struct run *run = me->run;
    const double seconds = run->o->seconds > 0 ? run->o->seconds : 0.05;
    const double each = time_calls(me, policy, 3);

    bench_meet(&run->barrier);
    if (me->index == 0) {
        const double calls = seconds / (each > 1e-7 ? each : 1e-7);

        run->calls = calls < 2 ? 2 : calls > 100000 ? 100000 : (long)calls;
    }
    bench_meet(&run->barrier);
}

/* Whether any rank has failed; `here`: this one has, and the others do not wait for it. */
static bool any_rank_failed(struct rank *me, bool here)
{
    if (here) {
        atomic_store(&me->run->barrier.broken, true);
        for (int p = 0; p < POLICIES; p++) {
            ls_comm_abort(me->run->comms[p][me->index]);
        }
    }
    return atomic_load(&me->run->barrier.broken);
}

static int print_json(const collective_result *r)
{
    int status = CLI_OK;

    for (int p = 0; p < POLICIES && status == CLI_OK; p++) {
        json_t *row = json_pack(
            "{ss, ss, si, sI, ss, so, so, so, so}", "bench", "collective", "name",
            r->size->name, "ranks", r->ranks, "bytes", (json_int_t)r->size->bytes, "wait",
            policies[p], "us", bench_stats_json(r->us[p]), "gbs",
            bench_stats_json(r->gbs[p]), "memcpy_gbs", bench_stats_json(r->memory),
            "of_memcpy", bench_stats_json(r->of_memory[p]));

        if (row != NULL && !isnan(r->rtt_us.p50)) {
            json_object_set_new(row, "round_trip_us", bench_stats_json(r->rtt_us));
            json_object_set_new(row, "round_trips", bench_stats_json(r->trips[p]));
        }
        status = bench_print_json(row);
    }
    return status;
}

static void print_head(const struct run *run)
{
    char why[160];

    printf("\nall-reduce of float32 sums, in place, %d thread%s\n", run->ranks,
           run->ranks == 1 ? "" : "s");
    (void)ls_comm_choice(run->ranks, sizes[SIZES - 1].bytes, why, sizeof why);
    printf("%s\n", why);
    printf("%-10s %11s %11s %9s %9s %7s %9s %11s\n", "bytes", "us p50", "min", "GB/s",
           "memcpy", "of it", "trips", "parked us");
}

static int print_row(const collective_result *r)
{
    char trips[16] = "-";

    if (r->size->bytes <= SMALL && !isnan(r->trips[SPIN].p50)) {
        snprintf(trips, sizeof trips, "%.2f", r->trips[SPIN].p50);
    }
    printf("%-10s %11.3f %11.3f %9.2f %9.2f %7.2f %9s %11.3f\n", r->size->name,
           r->us[SPIN].p50, r->us[SPIN].min, r->gbs[SPIN].p50, r->memory.p50,
           r->of_memory[SPIN].p50, trips, r->us[PARK].p50);
    fflush(stdout);
    return CLI_OK;
}

/* One size: every window measures the memory, the round trip and both ways to wait. */
static int measure_size(struct rank *me, const struct size *size)
{
    struct run *run = me->run;
    collective_result r = {.size = size, .ranks = run->ranks};
    double us[POLICIES][BENCH_WINDOWS], gbs[POLICIES][BENCH_WINDOWS],
        share[POLICIES][BENCH_WINDOWS], trips[POLICIES][BENCH_WINDOWS],
        memory[BENCH_WINDOWS], rtt[BENCH_WINDOWS];
    long calls[POLICIES];

    for (int p = 0; p < POLICIES; p++) {
        if (any_rank_failed(me, !verify_sum(me, p))) {
            return CLI_FAILED;
        }
        choose_calls(me, p);
        calls[p] = run->calls;
    }
    for (int w = 0; w < BENCH_WINDOWS; w++) {
        memory[w] = time_copies(me, calls[SPIN]) * 1e-9;
        rtt[w] = time_round_trip(me) * 1e6;
        for (int p = 0; p < POLICIES; p++) {
            const double each = time_calls(me, p, calls[p]);

            if (any_rank_failed(me, isnan(each))) {
                return CLI_FAILED;
            }
            us[p][w] = each * 1e6;
            gbs[p][w] = bus_bytes(run) / each * 1e-9;
            share[p][w] = gbs[p][w] / memory[w];
            trips[p][w] = us[p][w] / rtt[w];
        }
    }
    if (me->index != 0) {
        return CLI_OK;
    }
    for (int p = 0; p < POLICIES; p++) {
        r.us[p] = bench_stats_of(us[p], BENCH_WINDOWS);
        r.gbs[p] = bench_stats_of(gbs[p], BENCH_WINDOWS);
        r.of_memory[p] = bench_stats_of(share[p], BENCH_WINDOWS);
        r.trips[p] = bench_stats_of(trips[p], BENCH_WINDOWS);
    }
    r.memory = bench_stats_of(memory, BENCH_WINDOWS);
    r.rtt_us = bench_stats_of(rtt, BENCH_WINDOWS);
    return run->o->json ? print_json(&r) : print_row(&r);
}

static void *run_rank(void *arg)
{
    struct rank *me = arg;
    struct run *run = me->run;

    for (int i = 0; i < SIZES; i++) {
        if (!wanted(run, &sizes[i])) {
            continue;
        }
        bench_meet(&run->barrier);
        if (me->index == 0) {
            run->bytes = sizes[i].bytes;
        }
        bench_meet(&run->barrier);
        if (measure_size(me, &sizes[i]) != CLI_OK) {
            break;
        }
    }
    return NULL;
}

/* The longest size that is asked for; 0: none is. */
static size_t longest(const struct run *run)
{
    size_t bytes = 0;

    for (int i = 0; i < SIZES; i++) {
        if (wanted(run, &sizes[i])) {
            bytes = sizes[i].bytes;
        }
    }
    return bytes;
}

static void release_run(struct run *run)
{
    for (int r = 0; r < run->ranks; r++) {
        for (int p = 0; p < POLICIES; p++) {
            ls_comm_release(run->comms[p] != NULL ? run->comms[p][r] : NULL);
        }
        free(run->buf != NULL ? run->buf[r] : NULL);
        free(run->copy != NULL ? run->copy[r] : NULL);
    }
    for (int p = 0; p < POLICIES; p++) {
        free((void *)run->comms[p]);
    }
    free((void *)run->buf);
    free((void *)run->copy);
}

static ls_status make_run(struct run *run, size_t bytes, ls_error *err)
{
    const size_t n = (size_t)run->ranks;
    // Whole pages, so that ranks do not share a cache line at the ends.
    const size_t room = (bytes + 4095) / 4096 * 4096;

    run->buf = (float **)calloc(n, sizeof *run->buf);
    run->copy = (float **)calloc(n, sizeof *run->copy);
    for (int p = 0; p < POLICIES; p++) {
        ls_comm_local_options options = LS_COMM_LOCAL_OPTIONS_INIT;
        ls_status st;

        options.spin_us = p == PARK ? -1 : 0;
        run->comms[p] = (ls_comm **)calloc(n, sizeof(void *));
        if (run->comms[p] == NULL) {
            return LS_RESOURCE_EXHAUSTED;
        }
        st = ls_comm_local(run->ranks, &options, run->comms[p], err);
        if (st != LS_OK) {
            return st;
        }
    }
    for (size_t r = 0; r < n && run->buf != NULL && run->copy != NULL; r++) {
        run->buf[r] = aligned_alloc(4096, room);
        run->copy[r] = aligned_alloc(4096, room);
        if (run->buf[r] == NULL || run->copy[r] == NULL) {
            return LS_RESOURCE_EXHAUSTED;
        }
    }
    return run->buf != NULL && run->copy != NULL ? LS_OK : LS_RESOURCE_EXHAUSTED;
}

static int run_all(struct run *run, struct rank *ranks)
{
    const ls_error init = LS_ERROR_INIT;
    int started = 1;

    for (int r = 0; r < run->ranks; r++) {
        ranks[r] = (struct rank){.run = run, .index = r, .err = init};
    }
    for (; started < run->ranks; started++) {
        if (pthread_create(&ranks[started].thread, NULL, run_rank, &ranks[started]) !=
            0) {
            fprintf(stderr, "lockstep bench: the system gives no thread for rank %d\n",
                    started);
            return CLI_FAILED; // the process ends, and with it the threads that wait
        }
    }
    if (!run->o->json) {
        print_head(run);
    }
    (void)run_rank(&ranks[0]);
    for (int r = 1; r < run->ranks; r++) {
        (void)pthread_join(ranks[r].thread, NULL);
    }
    for (int r = 0; atomic_load(&run->barrier.broken) && r < run->ranks; r++) {
        if (ranks[r].err.code != LS_OK) {
            return bench_failed("all_reduce", &ranks[r].err);
        }
    }
    return CLI_OK;
}

int bench_collective(const bench_options *o)
{
    struct run run = {.o = o, .ranks = o->ranks > 0 ? o->ranks : 2};
    struct rank *ranks = calloc((size_t)run.ranks, sizeof *ranks);
    const size_t bytes = longest(&run);
    ls_error err = LS_ERROR_INIT;
    int status;

    if (bytes == 0) {
        fprintf(stderr,
                "lockstep bench collective: no size has '%s' in its name; there are 4 B, "
                "1 KiB ... 256 MiB\n",
                o->filter);
        free(ranks);
        return CLI_USAGE;
    }
    run.barrier.ranks = run.ranks;
    if (ranks == NULL || make_run(&run, bytes, &err) != LS_OK) {
        fprintf(stderr, "lockstep bench: %d ranks with twice %zu bytes each: %s\n",
                run.ranks, bytes, err.message[0] != '\0' ? err.message : "out of memory");
        status = CLI_FAILED;
    } else {
        status = run_all(&run, ranks);
    }
    release_run(&run);
    free(ranks);
    return status;
}
