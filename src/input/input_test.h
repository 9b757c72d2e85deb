/*
 * Helpers for tests of distributed input. A case says how the dataset is built, how many
 * workers and replicas there are, and what each worker reads, as text: steps are
 * separated by " | ", the parts of replicas by ",", followed by "end" or the code of an
 * error. Workers are threads with a strategy over all of them.
 */
#ifndef INPUT_TEST_H
#define INPUT_TEST_H
#define LS_NO_PLACES
#include "input/input.h"
#include "ls_workers.h"

#include "lockstep/lockstep.h"

#include <stdarg.h>

enum { IN_TEXT = 4096, IN_WORKERS = 8, IN_STEPS = 40 };

/* ---- values as text ---- */

typedef struct in_text {
    char text[IN_TEXT];
    size_t size;
} in_text;

static inline void in_put(in_text *t, const char *fmt, ...) LS_PRINTF(2, 3);
static inline void in_put(in_text *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    const int n = vsnprintf(t->text + t->size, sizeof t->text - t->size, fmt, args);
    va_end(args);
    t->size = LSI_MIN(t->size + (size_t)LSI_MAX(n, 0), sizeof t->text - 1);
}

static inline void in_put_item(in_text *t, const ls_tensor *x, int64_t i)
{
    const void *data = ls_tensor_data(x);

    switch (ls_tensor_dtype(x)) {
    case LS_I64:
        in_put(t, "%lld", (long long)((const int64_t *)data)[i]);
        break;
    case LS_F32:
        in_put(t, "%g", (double)((const float *)data)[i]);
        break;
    case LS_STRING:
        in_put(t, "%.*s", (int)((const ls_string *)data)[i].len,
               ((const ls_string *)data)[i].ptr);
        break;
    default:
        in_put(t, "?");
    }
}

/* Rows in brackets; an empty tensor shows its other dims: "[]" or "[0x3]". */
static inline void in_put_rows(in_text *t, const ls_tensor *x, int axis, int64_t first)
{
    int64_t inner = 1;

    if (axis == ls_tensor_ndim(x)) {
        in_put_item(t, x, first);
        return;
    }
    for (int a = axis + 1; a < ls_tensor_ndim(x); a++) {
        inner *= ls_tensor_dim(x, a);
    }
    in_put(t, "[");
    if (ls_tensor_count(x) == 0 && ls_tensor_ndim(x) > 1) {
        for (int a = 0; a < ls_tensor_ndim(x); a++) {
            in_put(t, a > 0 ? "x%lld" : "%lld", (long long)ls_tensor_dim(x, a));
        }
    }
    for (int64_t i = 0; ls_tensor_count(x) > 0 && i < ls_tensor_dim(x, axis); i++) {
        in_put(t, i > 0 && axis == ls_tensor_ndim(x) - 1 ? " " : "%s", "");
        in_put_rows(t, x, axis + 1, first + i * inner);
    }
    in_put(t, "]");
}

static inline void in_put_value(in_text *t, const ls_value *v)
{
    const ls_tensor *x = ls_value_as_tensor(v);
    int64_t number;

    if (x != NULL) {
        in_put_rows(t, x, 0, 0);
    } else if (ls_value_as_int(v, &number)) {
        in_put(t, "%lld", (long long)number);
    } else {
        in_put(t, "(");
        for (size_t i = 0; i < ls_value_size(v); i++) {
            in_put(t, i > 0 ? "," : "%s", "");
            in_put_value(t, ls_value_child(v, i));
        }
        in_put(t, ")");
    }
}

/* The parts of a step: the value of each replica. */
static inline void in_put_step(in_text *t, ls_value *v, int replicas)
{
    ls_error err = LS_ERROR_INIT;

    for (int r = 0; r < replicas; r++) {
        ls_value *part = NULL;

        LST_OK(ls_value_select(v, (size_t)r, &part, &err));
        in_put(t, r > 0 ? "," : "%s", "");
        in_put_value(t, part);
        ls_value_release(part);
    }
    in_put(t, " | ");
}

static inline void in_put_end(in_text *t, ls_status st)
{
    in_put(t, "%s", st == LS_OUT_OF_RANGE ? "end" : ls_status_name(st));
}

/* All steps, and the status that ended them; "..." after many. */
static inline void in_drain(in_text *t, ls_dist_iterator *it, int replicas, int most)
{
    ls_status st = LS_OK;

    for (int i = 0; i < most && st == LS_OK; i++) {
        ls_error err = LS_ERROR_INIT;
        ls_value *v = NULL;

        st = ls_dist_iterator_next(it, &v, &err);
        if (st == LS_OK) {
            in_put_step(t, v, replicas);
        }
        ls_value_release(v);
    }
    if (st == LS_OK) {
        in_put(t, "...");
    } else {
        in_put_end(t, st);
    }
}

static inline void in_same(const char *have, const char *want, lst_place at)
{
    if (strcmp(have, want) != 0) {
        (void)fprintf(stderr, "have: %.4000s\nwant: %.4000s\n", have, want);
    }
    lst_check(strcmp(have, want) == 0, at, want);
}

/* ---- strategies and workers ---- */

typedef struct in_machine {
    ls_runtime *rt;
    ls_strategy *s;
} in_machine;

static inline in_machine in_machine_of(int replicas)
{
    ls_runtime_options ro = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    in_machine m = {NULL, NULL};

    ro.logical_cpus = replicas;
    ro.threads = 1;
    LST_OK(ls_runtime_create(&ro, &m.rt, &err));
    so.runtime = m.rt;
    LST_OK(ls_mirrored_create(NULL, &so, &m.s, &err));
    return m;
}

static inline void in_machine_end(in_machine *m)
{
    ls_strategy_release(m->s);
    ls_runtime_release(m->rt);
}

/* What a worker's function gets, on its thread. */
typedef struct in_worker {
    int workers, worker, replicas;
    ls_comm *comm; /* NULL: this is the only worker */
    ls_strategy *s;
    ls_distribute_options opts;
    const void *arg;
    in_text text;
    void (*fn)(struct in_worker *me);
} in_worker;

static inline ls_status in_enter(const lst_worker *w, void *arg, ls_error *err)
{
    in_worker *me = (in_worker *)arg + w->index;

    (void)err;
    me->comm = w->comm;
    me->s = w->strategy;
    me->fn(me);
    return LS_OK;
}

/*
 * Runs `fn` on every worker, with MirroredStrategy if there is one worker only;
 * ws[w].text is what each one wrote.
 */
static inline void in_run(int workers, int replicas, void (*fn)(in_worker *me),
                          const void *arg, in_worker *ws)
{
    for (int w = 0; w < workers; w++) {
        ws[w] = (in_worker){.workers = workers,
                            .worker = w,
                            .replicas = replicas,
                            .opts = LS_DISTRIBUTE_OPTIONS_INIT,
                            .arg = arg,
                            .fn = fn};
    }
    if (workers == 1) {
        in_machine m = in_machine_of(replicas);

        ws[0].s = m.s;
        fn(&ws[0]);
        in_machine_end(&m);
    } else {
        lst_workers_run(workers, replicas, in_enter, ws);
    }
}

/* ---- datasets ---- */

typedef ls_dataset *(*in_build)(void);

static inline ls_dataset *in_policy(ls_dataset *d, ls_auto_shard policy)
{
    ls_data_options o = LS_DATA_OPTIONS_INIT;

    o.auto_shard = policy;
    return policy == LS_SHARD_AUTO ? d : ls_dataset_with_options(d, &o);
}

static inline ls_dataset *in_floats(const float *x, size_t n)
{
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE((int64_t)n), x, &t, &err));
    LST_OK(ls_value_tensor(t, &v, &err));
    ls_dataset *d = ls_dataset_slices(v);
    ls_value_release(v);
    ls_tensor_release(t);
    return d;
}

static inline ls_dataset *in_range(int64_t n)
{
    return ls_dataset_range(0, n, 1);
}

static inline ls_value *in_same_value(ls_context *c, ls_value *element, void *user)
{
    (void)c;
    (void)user;
    return element;
}

/* A map that declares `dtype` and a shape. */
static inline ls_dataset *in_map(ls_dataset *d, ls_map_fn fn, void *user, ls_dtype dtype,
                                 int ndim, const int64_t *dims)
{
    ls_map_options o = LS_MAP_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_spec_tensor(dtype, ndim, dims, &o.spec, &err));
    d = ls_dataset_map(d, fn, user, &o);
    ls_spec_release(o.spec);
    return d;
}

static inline ls_dataset *in_identity(ls_dataset *d)
{
    ls_map_options o = LS_MAP_OPTIONS_INIT;

    o.spec = ls_dataset_spec(d);
    return ls_dataset_map(d, in_same_value, NULL, &o);
}

/* ---- checking ---- */

typedef struct in_case {
    in_build build;
    ls_auto_shard policy;
    int ahead; /* per_replica_buffer */
} in_case;

static inline void in_distribute(in_worker *me)
{
    const in_case *c = me->arg;
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = in_policy(c->build(), c->policy);

    me->opts.per_replica_buffer = c->ahead;
    ls_status st = ls_strategy_distribute(me->s, d, &me->opts, &dd, &err);
    ls_dataset_release(d);
    if (st == LS_OK) {
        dd->cheap_ns = 0; // prefetch however cheap an element is
        st = ls_dist_iterate(dd, &it, &err);
    }
    if (st == LS_OK) {
        in_drain(&me->text, it, me->replicas, IN_STEPS);
    } else {
        in_put_end(&me->text, st);
    }
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
}

/* The steps of all workers over a dataset, with and without prefetching. */
static inline void in_check(in_build build, ls_auto_shard policy, int workers,
                            int replicas, const char *const *want, lst_place at)
{
    for (int ahead = -1; ahead <= 1; ahead++) {
        const in_case c = {build, policy, ahead};
        static in_worker ws[IN_WORKERS];

        in_run(workers, replicas, in_distribute, &c, ws);
        for (int w = 0; w < workers; w++) {
            in_same(ws[w].text.text, want[w], at);
        }
    }
}
#define IN_CHECK(build, policy, workers, replicas, ...)                                  \
    in_check(build, policy, workers, replicas, (const char *const[]){__VA_ARGS__},       \
             LST_HERE)

/* The elements of a dataset that is not distributed. */
static inline void in_drain_plain(in_text *t, ls_dataset *d)
{
    ls_error err = LS_ERROR_INIT;
    ls_iterator *it = NULL;
    ls_status st = ls_dataset_iterate(d, &it, &err);

    for (int i = 0; i < 200 && st == LS_OK; i++) {
        ls_value *v = NULL;

        st = ls_iterator_next(it, &v, &err);
        if (st == LS_OK) {
            in_put_value(t, v);
            in_put(t, " ");
        }
        ls_value_release(v);
    }
    in_put_end(t, st);
    ls_iterator_release(it);
}

/* Takes ownership of `d`. */
static inline void in_plain(ls_dataset *d, const char *want, lst_place at)
{
    static in_text t;

    t.size = 0;
    in_drain_plain(&t, d);
    in_same(t.text, want, at);
    ls_dataset_release(d);
}
#define IN_PLAIN(d, want) in_plain(d, want, LST_HERE)

/* The pipeline of worker `index` of `shards`. */
#define IN_SHARD(build, policy, shards, index, want)                                     \
    in_plain(ls_dataset_auto_shard((build)(), shards, index, policy), want, LST_HERE)
#endif
