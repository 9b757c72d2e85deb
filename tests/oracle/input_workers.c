/* Workers as threads of one process, each with devices and a strategy of its own. */
#include "input_machine.h"

#include "strategy/multi_worker.h"

#include <pthread.h>
#include <string.h>

/* A worker that waits for one that has failed must not wait endlessly. */
enum { COMM_TIMEOUT_MS = 10000 };

/* The stage that makes a worker's strategy, or sets w->error. */
static void open_worker(input_worker *w)
{
    ls_runtime_options machine = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    const ls_input_context ic = {w->workers, w->index, w->workers * w->replicas};
    ls_error err = LS_ERROR_INIT;
    ls_status st;

    machine.logical_cpus = w->replicas;
    machine.threads = 1;
    st = ls_runtime_create(&machine, &w->rt, &err);
    if (st == LS_OK) {
        opts.runtime = w->rt;
        opts.spin_us = -1;
        st = w->comm == NULL ? ls_mirrored_create(NULL, &opts, &w->s, &err)
                             : lsi_multi_worker_create(w->comm, NULL, &opts, &w->s, &err);
    }
    if (st != LS_OK) {
        w->error = input_encode_error(&err);
    }
    input_builder_open(&w->b, w->r->folder, w->s, &ic);
}

/* The replicas of worker `i`: a total that does not divide gives the first ones more. */
static int replicas_of(const input_run *r, int workers, int replicas, int i)
{
    const int total = (int)input_option(r->kase, "total_replicas", 0);

    return total == 0 ? replicas : total / workers + (i < total % workers ? 1 : 0);
}

bool input_group_open(input_group *g, const input_run *r, const json_t *topology,
                      json_t **error)
{
    const int workers = (int)input_option(topology, "workers", 1);
    const int replicas = (int)input_option(topology, "replicas", 1);
    ls_comm_local_options local = LS_COMM_LOCAL_OPTIONS_INIT;
    ls_comm *comms[INPUT_MOST_WORKERS] = {NULL};
    ls_error err = LS_ERROR_INIT;
    ls_status st = LS_OK;

    memset(g, 0, sizeof *g);
    if (r->k->workers != NULL) {
        *r->k->workers = workers;
    }
    local.timeout_ms = COMM_TIMEOUT_MS;
    local.spin_us = -1;
    if (workers < 1 || workers > INPUT_MOST_WORKERS) {
        st = input_fail(&err, LS_UNKNOWN, "%d workers", workers);
    } else if (workers > 1) {
        st = ls_comm_local(workers, &local, comms, &err);
    }
    for (int i = 0; st == LS_OK && i < workers; i++) {
        g->w[i] = (input_worker){.r = r,
                                 .index = i,
                                 .workers = workers,
                                 .replicas = replicas_of(r, workers, replicas, i),
                                 .comm = comms[i]};
        g->n = i + 1;
    }
    if (st != LS_OK) {
        *error = input_encode_error(&err);
        return false;
    }
    input_group_each(g, open_worker);
    *error = input_group_error(g);
    if (*error != NULL) {
        input_group_close(g);
    }
    return *error == NULL;
}

/*
 * Iterators and datasets are released before the functions they call, and the runtime
 * last.
 */
void input_group_close(input_group *g)
{
    for (int i = 0; i < g->n; i++) {
        input_worker *w = &g->w[i];

        ls_dist_iterator_release(w->it);
        ls_dist_dataset_release(w->dist);
        ls_value_release(w->state);
        json_decref(w->error);
        json_decref(w->events);
        input_builder_close(&w->b);
        ls_comm_release(w->comm);
        ls_strategy_release(w->s);
        ls_runtime_release(w->rt);
    }
    g->n = 0;
}

/* The argument of a stage's thread. */
struct errand {
    input_worker *w;
    input_stage stage;
};

static void *run_errand(void *arg)
{
    const struct errand *e = arg;

    e->stage(e->w);
    return NULL;
}

void input_group_each(input_group *g, input_stage stage)
{
    struct errand errands[INPUT_MOST_WORKERS];
    pthread_t threads[INPUT_MOST_WORKERS];
    bool started[INPUT_MOST_WORKERS] = {false};

    for (int i = 0; i < g->n; i++) {
        errands[i] = (struct errand){&g->w[i], stage};
        started[i] =
            g->n > 1 && pthread_create(&threads[i], NULL, run_errand, &errands[i]) == 0;
    }
    for (int i = 0; i < g->n; i++) {
        if (started[i]) {
            (void)pthread_join(threads[i], NULL);
        } else {
            stage(&g->w[i]); // alone; or late, so that the others time out
        }
    }
}

json_t *input_group_error(const input_group *g)
{
    for (int i = 0; i < g->n; i++) {
        if (g->w[i].error != NULL) {
            return json_incref(g->w[i].error);
        }
    }
    return NULL;
}

/* ---- distributing ---- */

ls_distribute_options input_distribute_options(const input_worker *w)
{
    const json_t *given = json_object_get(w->r->kase, "options");
    const char *replication = json_string_value(json_object_get(given, "replication"));
    ls_distribute_options opts = LS_DISTRIBUTE_OPTIONS_INIT;

    if (replication != NULL && strcmp(replication, "PER_REPLICA") == 0) {
        opts.replication = LS_PER_REPLICA_INPUT;
    }
    opts.keep_on_host = !input_flag(given, "fetch_to_device", true);
    opts.place_on_device = input_flag(given, "place_on_device", false);
    return opts;
}

ls_dataset *input_make_dataset(const ls_input_context *ic, void *worker)
{
    input_worker *w = worker;
    json_t *each = json_object_get(w->r->kase, "pipelines");
    json_t *pipeline = each == NULL ? json_object_get(w->r->kase, "pipeline")
                                    : json_array_get(each, (size_t)w->index);

    w->b.ic = *ic;
    return input_build(&w->b, pipeline, w->r->kase);
}

static ls_status distribute_plain(input_worker *w, ls_error *err)
{
    const ls_distribute_options opts = input_distribute_options(w);
    const ls_input_context none = {
        1, 0, 1}; // a dataset that is distributed has no input context
    ls_dataset *d = input_make_dataset(&none, w);
    const ls_status st =
        d == NULL ? LS_UNKNOWN : ls_strategy_distribute(w->s, d, &opts, &w->dist, err);

    ls_dataset_release(d);
    return st;
}

void input_distribute(input_worker *w)
{
    const char *action = json_string_value(json_object_get(w->r->kase, "action"));
    const json_t *reshard = json_object_get(w->r->kase, "reshard");
    const ls_distribute_options opts = input_distribute_options(w);
    ls_error err = LS_ERROR_INIT;
    ls_status st = strcmp(action, "from_function") == 0
                       ? ls_strategy_distribute_from_function(w->s, input_make_dataset, w,
                                                              &opts, &w->dist, &err)
                       : distribute_plain(w, &err);

    if (st == LS_OK && reshard != NULL) {
        st = ls_dist_auto_shard(
            w->dist, (int)json_integer_value(json_array_get(reshard, 0)),
            (int)json_integer_value(json_array_get(reshard, 1)), &err);
    }
    if (st != LS_OK) {
        w->error = input_encode_error(w->b.err.code == LS_OK ? &err : &w->b.err);
    }
}

/* ---- steps ---- */

static ls_status encode_step(const input_worker *w, ls_value *v, json_t **event,
                             ls_error *err)
{
    json_t *step = json_array();

    for (int i = 0; i < w->replicas; i++) {
        ls_value *part = NULL;
        json_t *element = NULL;
        ls_status st = ls_value_select(v, (size_t)i, &part, err);

        if (st == LS_OK) {
            st = input_encode(part, &element, err);
        }
        ls_value_release(part);
        if (st != LS_OK) {
            json_decref(step);
            return st;
        }
        (void)json_array_append_new(step, element);
    }
    *event = step;
    return LS_OK;
}

ls_status input_next_step(void *worker, json_t **event, ls_error *err)
{
    const input_worker *w = worker;
    const bool optional = json_object_get(w->r->kase, "get") != NULL;
    ls_value *v = NULL;
    bool has = true;
    ls_status st = optional ? ls_dist_iterator_next_optional(w->it, &has, &v, err)
                            : ls_dist_iterator_next(w->it, &v, err);

    if (st == LS_OK) {
        st = has ? encode_step(w, v, event, err) : LS_OUT_OF_RANGE;
    } else if (optional && st == LS_OUT_OF_RANGE) {
        st = LS_UNKNOWN; // the end is no failure of the optional form
    }
    ls_value_release(v);
    return st;
}
