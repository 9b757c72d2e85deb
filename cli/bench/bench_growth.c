/*
 * `lockstep bench growth`: how cost grows. One dimension at a time is doubled, the result
 * checked, and a line laid through the logarithms: its slope is the exponent. Bytes are
 * counted by an allocator, so that their exponents are the same from run to run.
 */
#include "cli/bench/growth.h"

#include "bench/bench_clock.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIZES = 5,     /* the first, doubled four times */
    SIZES_FEW = 3, /* the fewest that say something */
    FAMILIES = 4,
};

/* Seconds and bytes above which larger sizes are left out. */
static const double too_long = 3.0, too_much = 1e9;

/* ---- bytes ---- */

/* Before each piece of memory. */
struct prefix {
    size_t size, gap;
};

static _Atomic int64_t live, peak, asked;

static void *count_alloc(size_t size, size_t align, void *user)
{
    const size_t gap = align > sizeof(struct prefix) ? align : sizeof(struct prefix);
    int64_t now, most;
    void *start = NULL;
    char *p;

    (void)user;
    if (size > SIZE_MAX - gap || posix_memalign(&start, gap, gap + size) != 0) {
        return NULL;
    }
    p = (char *)start + gap;
    ((struct prefix *)(void *)p)[-1] = (struct prefix){size, gap};
    atomic_fetch_add(&asked, (int64_t)size);
    now = atomic_fetch_add(&live, (int64_t)size) + (int64_t)size;
    most = atomic_load(&peak);
    while (most < now && !atomic_compare_exchange_weak(&peak, &most, now)) {
    }
    return p;
}

static void count_free(void *ptr, void *user)
{
    (void)user;
    if (ptr != NULL) {
        const struct prefix before = ((struct prefix *)ptr)[-1];

        atomic_fetch_sub(&live, (int64_t)before.size);
        free((char *)ptr - before.gap);
    }
}

/* ---- what cases use ---- */

void growth_begin(growth_run *r)
{
    r->base = atomic_load(&live);
    atomic_store(&peak, r->base);
    r->asked_before = atomic_load(&asked);
    r->measuring = true;
    r->start = bench_now();
}

void growth_end(growth_run *r)
{
    r->seconds = bench_now() - r->start;
    r->held = atomic_load(&peak) - r->base;
    r->asked = atomic_load(&asked) - r->asked_before;
    r->measuring = false;
}

void growth_check(growth_run *r, bool right, const char *what)
{
    if (r->st == LS_OK && !right) {
        r->st = r->err.code = LS_INTERNAL;
        snprintf(r->err.message, sizeof r->err.message, "of size %lld: %s",
                 (long long)r->n, what);
    }
}

void *growth_room(growth_run *r, size_t count, size_t size)
{
    void *p = r->st == LS_OK ? calloc(count > 0 ? count : 1, size) : NULL;

    if (r->st == LS_OK && p == NULL) {
        r->st = LS_RESOURCE_EXHAUSTED;
    }
    return p;
}

void growth_runtime(growth_run *r, int devices)
{
    ls_runtime_options options = LS_RUNTIME_OPTIONS_INIT;

    options.logical_cpus = devices;
    options.threads = 1;
    GROWTH_TRY(r, ls_runtime_create(&options, &r->rt, &r->err));
    GROWTH_TRY(r, ls_context_open(ls_runtime_device(r->rt, 0), NULL, &r->c, &r->err));
}

void growth_replicas(growth_run *r, int replicas)
{
    ls_strategy_options options = LS_STRATEGY_OPTIONS_INIT;

    growth_runtime(r, replicas);
    options.runtime = r->rt;
    GROWTH_TRY(r, ls_mirrored_create(NULL, &options, &r->strategy, &r->err));
}

void growth_finish(growth_run *r)
{
    if (r->c != NULL) {
        GROWTH_TRY(r, ls_context_finish(r->c, &r->err));
    }
}

ls_variable *growth_variable(growth_run *r, ls_shape shape)
{
    ls_tensor *zeros = NULL;
    ls_variable *v = NULL;

    GROWTH_TRY(r, ls_tensor_create(ls_runtime_device(r->rt, 0), LS_F32, shape, NULL,
                                   &zeros, &r->err));
    if (r->st == LS_OK && r->strategy != NULL) {
        r->st = ls_scope_enter(r->strategy, &r->err);
    }
    GROWTH_TRY(r, ls_variable_create(zeros, NULL, &v, &r->err));
    if (r->strategy != NULL) {
        ls_scope_exit(r->strategy);
    }
    ls_tensor_release(zeros);
    return v;
}

void growth_folder(growth_run *r)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment
    const char *where = getenv("TMPDIR");

    if (r->st != LS_OK) {
        return;
    }
    snprintf(r->folder, sizeof r->folder, "%s/lockstep-growth-XXXXXX",
             where != NULL && where[0] != '\0' && strlen(where) < 200 ? where : "/tmp");
    if (mkdtemp(r->folder) == NULL) {
        r->st = LS_UNKNOWN;
        snprintf(r->err.message, sizeof r->err.message, "%s cannot be made", r->folder);
        r->folder[0] = '\0';
    }
}

FILE *growth_file(growth_run *r, int64_t index, char *path, size_t size)
{
    FILE *f = NULL;

    if (r->st == LS_OK) {
        snprintf(path, size, "%s/%lld", r->folder, (long long)index);
        f = fopen(path, "wb");
        growth_check(r, f != NULL, "a file cannot be written");
    }
    return f;
}

static void release_run(growth_run *r)
{
    ls_context_close(r->c);
    ls_strategy_release(r->strategy);
    ls_runtime_release(r->rt);
    if (r->folder[0] != '\0') {
        char path[300];

        for (int64_t i = 0; i <= r->n; i++) {
            snprintf(path, sizeof path, "%s/%lld", r->folder, (long long)i);
            if (unlink(path) != 0) {
                break; // they are numbered without a gap
            }
        }
        (void)rmdir(r->folder);
    }
}

/* ---- the driver ---- */

/* A case at all its sizes. */
struct growth {
    const growth_case *what;
    bool small;
    int sizes;
    int64_t n[SIZES];
    double seconds[SIZES], held[SIZES], asked[SIZES];
};

struct verdict {
    double time, held, asked; /* exponents */
    int64_t each;
    bool bad;
};

/* What a process of its own has found out. */
struct answer {
    ls_status st;
    char message[sizeof((ls_error *)0)->message];
    double seconds;
    int64_t held, asked;
};

/* In a process that has used nothing of the library yet. */
static void run_here(const growth_case *what, int64_t n, struct answer *a)
{
    growth_run r = {.n = n, .err = LS_ERROR_INIT};

    GROWTH_TRY(&r, ls_allocator_set(count_alloc, count_free, NULL, &r.err));
    (void)ls_runtime_device(NULL, 0); // the default runtime is there before it begins
    what->run(&r);
    release_run(&r);
    growth_check(&r, !r.measuring && r.seconds > 0, "it was not measured to its end");
    *a = (struct answer){
        .st = r.st, .seconds = r.seconds, .held = r.held, .asked = r.asked};
    snprintf(a->message, sizeof a->message, "%s",
             r.err.message[0] != '\0' ? r.err.message : ls_status_meaning(r.st));
}

/*
 * Every run is a process of its own: memory that one leaves behind, in a pool or a cache,
 * would be counted as nothing by the next. The parent uses nothing of the library.
 */
static ls_status run_once(const growth_case *what, int64_t n, struct answer *a,
                          ls_error *err)
{
    int ends[2] = {-1, -1}, status = 0;
    pid_t child = -1;
    ssize_t got = 0;

    fflush(stdout);
    if (pipe(ends) == 0) {
        child = fork();
    }
    if (child == 0) {
        run_here(what, n, a);
        _exit(write(ends[1], a, sizeof *a) == (ssize_t)sizeof *a ? 0 : 1);
    }
    if (child > 0) {
        (void)close(ends[1]);
        got = read(ends[0], a, sizeof *a);
        (void)close(ends[0]);
        (void)waitpid(child, &status, 0);
    }
    if (got != (ssize_t)sizeof *a) {
        err->code = LS_INTERNAL;
        snprintf(err->message, sizeof err->message,
                 child < 0             ? "the system gives no process"
                 : WIFSIGNALED(status) ? "of size %lld: ended by signal %d"
                                       : "of size %lld: ended with status %d",
                 (long long)n,
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return err->code;
    }
    if (a->st != LS_OK) {
        err->code = a->st;
        snprintf(err->message, sizeof err->message, "%s", a->message);
    }
    return a->st;
}

/* The best of a few where seconds count: other load makes them longer, never shorter. */
static ls_status run_size(struct growth *g, int i, ls_error *err)
{
    const int times = g->small ? 1 : 3;
    struct answer a = {0};

    for (int k = 0; k < times; k++) {
        const ls_status st = run_once(g->what, g->n[i], &a, err);

        if (st != LS_OK) {
            return st;
        }
        g->seconds[i] = k == 0 ? a.seconds : fmin(g->seconds[i], a.seconds);
        g->held[i] = (double)a.held;
        g->asked[i] = (double)a.asked;
        if (a.seconds > too_long) {
            break;
        }
    }
    return LS_OK;
}

/* The slope of log(y) over log(n). Less than `least` counts as `least`. */
static double exponent(const struct growth *g, const double *y, double least)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;

    for (int i = 0; i < g->sizes; i++) {
        const double a = log2((double)g->n[i]), b = log2(fmax(y[i], least));

        sx += a;
        sy += b;
        sxx += a * a;
        sxy += a * b;
    }
    return (g->sizes * sxy - sx * sy) / (g->sizes * sxx - sx * sx);
}

static struct verdict judge_growth(const struct growth *g)
{
    const growth_case *w = g->what;
    const int last = g->sizes - 1;
    struct verdict v = {exponent(g, g->seconds, 1e-6), exponent(g, g->held, 1024),
                        exponent(g, g->asked, 1024), 0, false};

    v.each = (int64_t)((g->held[last] - g->held[0]) / (double)(g->n[last] - g->n[0]));
    v.bad = (w->held > 0 && v.held > w->held) || (w->asked > 0 && v.asked > w->asked) ||
            (w->each > 0 && v.each > w->each) ||
            (!g->small && w->time > 0 && v.time > w->time);
    return v;
}

static int print_json(const struct growth *g, const struct verdict *v)
{
    const growth_case *w = g->what;
    const int last = g->sizes - 1;

    return bench_print_json(json_pack(
        "{ss, ss, ss, sb, sI, sI, sf, sf, sf, sf, sf, sf, sI, s{sf, sf, sf, sI}, sb}",
        "bench", "growth", "name", w->name, "doubled", w->doubled, "small", (int)g->small,
        "from", (json_int_t)g->n[0], "to", (json_int_t)g->n[last], "ms",
        g->seconds[last] * 1e3, "held_bytes", g->held[last], "asked_bytes",
        g->asked[last], "time", v->time, "held", v->held, "asked", v->asked, "each",
        (json_int_t)v->each, "limits", "time", w->time, "held", w->held, "asked",
        w->asked, "each", (json_int_t)w->each, "too_fast", (int)v->bad));
}

static const char *limit_text(char *buf, size_t size, double value, double limit)
{
    if (limit > 0) {
        snprintf(buf, size, "%.2f/%.2f", value, limit);
    } else {
        snprintf(buf, size, "%.2f", value);
    }
    return buf;
}

static void print_head(bool small)
{
    printf("\nexponents of growth / the largest allowed: 1 is linear, 2 quadratic%s\n",
           small ? "; time is not judged" : "");
    printf("%-26s %-24s %9s %10s %10s %11s %11s %11s\n", "what", "doubled", "up to", "ms",
           "KiB held", "time", "held", "asked for");
}

static int print_row(const struct growth *g, const struct verdict *v)
{
    const growth_case *w = g->what;
    const int last = g->sizes - 1;
    char time[32], held[32], asks[32];

    printf("%-26s %-24s %9lld %10.2f %10.0f %11s %11s %11s%s\n", w->name, w->doubled,
           (long long)g->n[last], g->seconds[last] * 1e3, g->held[last] / 1024,
           limit_text(time, sizeof time, v->time, g->small ? 0 : w->time),
           limit_text(held, sizeof held, v->held, w->held),
           limit_text(asks, sizeof asks, v->asked, w->asked), v->bad ? "  TOO FAST" : "");
    fflush(stdout);
    return CLI_OK;
}

/* Prints on stderr why a line grows too fast. */
static void complain_of_growth(const struct growth *g, const struct verdict *v)
{
    const growth_case *w = g->what;

    fprintf(stderr, "lockstep bench growth: %s grows too fast with the %s:", w->name,
            w->doubled);
    if (!g->small && w->time > 0 && v->time > w->time) {
        fprintf(stderr, " time by %.2f, not %.2f;", v->time, w->time);
    }
    if (w->held > 0 && v->held > w->held) {
        fprintf(stderr, " bytes held by %.2f, not %.2f;", v->held, w->held);
    }
    if (w->asked > 0 && v->asked > w->asked) {
        fprintf(stderr, " bytes asked for by %.2f, not %.2f;", v->asked, w->asked);
    }
    if (w->each > 0 && v->each > w->each) {
        fprintf(stderr, " %lld bytes for each, not %lld;", (long long)v->each,
                (long long)w->each);
    }
    fprintf(stderr, " up to %lld\n", (long long)g->n[g->sizes - 1]);
}

/* The same by another limit, where there is one. */
static growth_case with_limit(const growth_case *what, double most)
{
    growth_case w = *what;

    if (most > 0) {
        w.time = w.time > 0 ? most : 0;
        w.held = w.held > 0 ? most : 0;
        w.asked = w.asked > 0 ? most : 0;
    }
    return w;
}

static int measure_growth(const bench_options *o, const growth_case *what, bool *bad)
{
    const growth_case stricter = with_limit(what, o->most);
    struct growth g = {.what = &stricter, .small = o->small};
    ls_error err = LS_ERROR_INIT;
    struct answer first = {0};
    struct verdict v;
    int status;

    // A result that is wrong is not measured; those that are are checked as well.
    if (run_once(what, what->small, &first, &err) != LS_OK) {
        return bench_failed(what->name, &err);
    }
    for (int i = 0; i < SIZES; i++) {
        g.n[i] = (g.small ? what->small : what->full) << i;
        if (run_size(&g, i, &err) != LS_OK) {
            return bench_failed(what->name, &err);
        }
        g.sizes = i + 1;
        if (g.sizes >= SIZES_FEW && (g.seconds[i] > too_long || g.held[i] > too_much)) {
            break;
        }
    }
    v = judge_growth(&g);
    status = o->json ? print_json(&g, &v) : print_row(&g, &v);
    if (v.bad) {
        fflush(stdout);
        complain_of_growth(&g, &v);
        *bad = true;
    }
    return status;
}

int bench_growth(const bench_options *o)
{
    const growth_case *const families[FAMILIES] = {growth_of_tapes, growth_of_updates,
                                                   growth_of_replicas, growth_of_input};
    int status = CLI_OK, matched = 0;
    bool bad = false;

    for (size_t f = 0; f < FAMILIES; f++) {
        for (const growth_case *w = families[f]; status == CLI_OK && w->name; w++) {
            if (!bench_wanted(o, w->name)) {
                continue;
            }
            if (matched++ == 0 && !o->json) {
                print_head(o->small);
            }
            status = measure_growth(o, w, &bad);
        }
    }
    if (matched == 0) {
        fprintf(stderr, "lockstep bench growth: no line has '%s' in its name; there are",
                o->filter);
        for (size_t f = 0; f < FAMILIES; f++) {
            for (const growth_case *w = families[f]; w->name; w++) {
                fprintf(stderr, "%s %s", f > 0 || w > families[f] ? "," : "", w->name);
            }
        }
        fprintf(stderr, "\n");
        return CLI_USAGE;
    }
    return status == CLI_OK && bad ? CLI_FAILED : status;
}
