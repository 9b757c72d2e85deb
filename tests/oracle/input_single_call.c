/*
 * The actions that test one function: batch sizes, input contexts, values per worker,
 * misuse of iterators, optionals, and compat.v1's iterators.
 */
#include "input_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes ---- */

json_t *input_act_batch_sizes(const input_run *r)
{
    const json_t *topology = json_object_get(r->kase, "topology");
    const int workers = (int)input_option(topology, "workers", 1);
    const int replicas = (int)input_option(topology, "replicas", 1);
    const size_t n = (size_t)workers * (size_t)replicas;
    int64_t *sizes = calloc(n, sizeof *sizes);
    json_t *all = json_array(), *answer = NULL;
    ls_error err = LS_ERROR_INIT;

    for (int w = 0; sizes != NULL && answer == NULL && w < workers; w++) {
        json_t *list = json_array();

        if (ls_batch_sizes(input_option(r->kase, "global_batch", 0), workers, replicas, w,
                           sizes, &err) != LS_OK) {
            answer = input_encode_error(&err);
        }
        for (size_t i = 0; i < n; i++) {
            (void)json_array_append_new(list, json_integer(sizes[i]));
        }
        (void)json_array_append_new(all, list);
    }
    free(sizes);
    if (answer == NULL) {
        return json_pack("{s:o}", "sizes", all);
    }
    json_decref(all);
    return answer;
}

json_t *input_act_per_replica_batch_size(const input_run *r)
{
    const ls_input_context ic = {1, 0, (int)input_option(r->kase, "total_replicas", 1)};
    ls_error err = LS_ERROR_INIT;
    int64_t size = 0;

    return ls_input_context_batch(&ic, input_option(r->kase, "global_batch", 0), &size,
                                  &err) == LS_OK
               ? json_pack("{s:I}", "batch_size", (json_int_t)size)
               : input_encode_error(&err);
}

/* ---- all workers ---- */

static int add_events(json_t *all, json_t *events)
{
    return json_array_append(all, events);
}

/* Runs a stage on every worker; returns the events of all under `key`, or an error. */
static json_t *ask_workers(const input_run *r, void (*stage)(input_worker *w),
                           const char *key, int (*add)(json_t *all, json_t *events))
{
    json_t *answer = NULL, *all;
    input_group g;

    if (!input_group_open(&g, r, json_object_get(r->kase, "topology"), &answer)) {
        return answer;
    }
    input_group_each(&g, stage);
    answer = input_group_error(&g);
    if (answer == NULL) {
        all = json_array();
        for (int i = 0; i < g.n; i++) {
            (void)add(all, g.w[i].events);
        }
        answer = json_pack("{s:o}", key, all);
    }
    input_group_close(&g);
    return answer;
}

/* ---- contexts ---- */

static ls_dataset *note_context(const ls_input_context *ic, void *worker)
{
    input_worker *w = worker;

    (void)json_array_append_new(
        w->events, json_pack("[i,i,i]", ic->pipelines, ic->pipeline_id, ic->replicas));
    return ls_dataset_range(0, 1, 1);
}

static void ask_context(input_worker *w)
{
    const ls_distribute_options opts = input_distribute_options(w);
    ls_error err = LS_ERROR_INIT;

    w->events = json_array();
    if (ls_strategy_distribute_from_function(w->s, note_context, w, &opts, &w->dist,
                                             &err) != LS_OK) {
        w->error = input_encode_error(&err);
    }
}

json_t *input_act_context(const input_run *r)
{
    return ask_workers(r, ask_context, "contexts", json_array_extend);
}

/* ---- values ---- */

struct maker {
    const json_t *function;
    json_t *ids;
};

static ls_status make_value(const ls_value_context *vc, void *user, ls_value **out,
                            ls_error *err)
{
    const struct maker *m = user;
    const json_t *table = json_array_get(m->function, 1);
    const float x =
        table == NULL
            ? (float)vc->replicas
            : (float)json_number_value(json_array_get(table, (size_t)vc->replica_id));
    ls_tensor *t = NULL;
    ls_status st = ls_tensor_create(vc->device, LS_F32, LS_SCALAR, &x, &t, err);

    (void)json_array_append_new(m->ids, json_integer(vc->replica_id));
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static ls_value *double_value(ls_context *c, ls_value *args, void *user)
{
    ls_tensor *x = ls_value_to_tensor(c, args);

    (void)user;
    return ls_value_of(c, ls_add(c, x, x));
}

/* A value's numbers on the local replicas. */
static json_t *local_numbers(ls_strategy *s, ls_value *v, ls_error *err)
{
    ls_value *each = NULL;
    json_t *numbers;

    if (ls_strategy_local_results(s, v, &each, err) != LS_OK) {
        return NULL;
    }
    numbers = json_array();
    for (size_t i = 0; i < ls_value_size(each); i++) {
        const float *x = ls_tensor_data(ls_value_as_tensor(ls_value_child(each, i)));

        (void)json_array_append_new(numbers, json_real(x == NULL ? 0 : (double)*x));
    }
    ls_value_release(each);
    return numbers;
}

/* A worker's part of the answer, or its error. */
static void ask_values(input_worker *w)
{
    struct maker m = {json_object_get(w->r->kase, "function"), json_array()};
    ls_error err = LS_ERROR_INIT;
    ls_value *made = NULL, *v = NULL;
    json_t *numbers = NULL;
    bool wrapped;
    ls_status st = ls_strategy_values(w->s, make_value, &m, &made, &err);

    wrapped = ls_value_kind_of(made) == LS_VALUE_PER_REPLICA;
    if (st == LS_OK && input_flag(w->r->kase, "double", false)) {
        st = ls_strategy_run(w->s, double_value, made, NULL, &v, &err);
    } else {
        v = ls_value_retain(made);
    }
    if (st == LS_OK) {
        numbers = local_numbers(w->s, v, &err);
    }
    ls_value_release(v);
    ls_value_release(made);
    if (numbers == NULL) {
        w->error = input_encode_error(&err);
    } else {
        w->events = json_pack("{s:O, s:o, s:b}", "ids", m.ids, "values", numbers,
                              "wrapped", (int)wrapped);
    }
    json_decref(m.ids);
}

json_t *input_act_values(const input_run *r)
{
    return ask_workers(r, ask_values, "workers", add_events);
}

/* ---- iterators inside replica functions, and optionals ---- */

static ls_value *next_in_replica(ls_context *c, ls_value *args, void *user)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL;

    (void)args;
    if (ls_dist_iterator_next(user, &v, &err) != LS_OK) {
        (void)ls_context_fail_with(c, &err);
        return NULL;
    }
    return ls_value_adopt(c, v);
}

json_t *input_act_next_in_replica(const input_run *r)
{
    ls_run_options opts = LS_RUN_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    json_t *answer = NULL;
    input_group g;
    input_worker *w = &g.w[0];

    if (!input_group_open(&g, r, json_object_get(r->kase, "topology"), &answer)) {
        return answer;
    }
    opts.sequential = true; // the iterator is for one thread at a time
    input_distribute(w);
    answer = input_group_error(&g);
    if (answer == NULL) {
        answer = ls_dist_iterate(w->dist, &w->it, &err) == LS_OK &&
                         ls_strategy_run_with(w->s, next_in_replica, NULL, w->it, &opts,
                                              NULL, &err) == LS_OK
                     ? json_object()
                     : input_encode_error(&err);
    }
    input_group_close(&g);
    return answer;
}

/* The value of the first optional that has none. */
static ls_status ask_empty_optional(ls_dist_iterator *it, ls_error *err)
{
    ls_status st = LS_OK;
    bool has = true;

    while (st == LS_OK && has) {
        ls_optional *o = NULL;
        ls_value *v = NULL;

        st = ls_dist_iterator_next_as_optional(it, &o, err);
        if (st == LS_OK) {
            has = ls_optional_has_value(o);
            st = ls_optional_value(o, &v, err);
        }
        ls_value_release(v);
        ls_optional_release(o);
    }
    return st;
}

json_t *input_act_empty_optional(const input_run *r)
{
    ls_error err = LS_ERROR_INIT;
    json_t *answer = NULL;
    input_group g;
    input_worker *w = &g.w[0];

    if (!input_group_open(&g, r, json_object_get(r->kase, "topology"), &answer)) {
        return answer;
    }
    input_distribute(w);
    answer = input_group_error(&g);
    if (answer == NULL) {
        answer = ls_dist_iterate(w->dist, &w->it, &err) == LS_OK &&
                         ask_empty_optional(w->it, &err) == LS_OK
                     ? json_object()
                     : input_encode_error(&err);
    }
    input_group_close(&g);
    return answer;
}

/* ---- compat.v1 ---- */

static ls_status next_number(void *state, ls_value **out, ls_error *err)
{
    int64_t *last = state;
    ls_tensor *t = NULL;
    ls_status st;

    *last += 1;
    st = ls_tensor_create(NULL, LS_I64, LS_SCALAR, last, &t, err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static ls_status make_iterator(input_worker *w, int64_t *numbers, ls_error *err)
{
    const json_t *kase = w->r->kase;
    const char *kind = json_string_value(json_object_get(kase, "iterator"));
    const char *mode = json_string_value(json_object_get(kase, "replication"));
    const ls_input_context none = {1, 0, 1};
    ls_dataset *d;
    ls_status st;

    if (strcmp(kind, "callable") == 0) {
        return ls_strategy_make_input_fn_iterator(w->s, NULL, next_number, numbers,
                                                  LS_PER_WORKER, &w->it, err);
    }
    if (strcmp(kind, "dataset_fn") == 0) {
        return ls_strategy_make_input_fn_iterator(
            w->s, input_make_dataset, NULL, w,
            mode != NULL && strcmp(mode, "PER_REPLICA") == 0 ? LS_PER_REPLICA_INPUT
                                                             : LS_PER_WORKER,
            &w->it, err);
    }
    d = input_make_dataset(&none, w);
    st = ls_strategy_make_dataset_iterator(w->s, d, &w->it, err);
    ls_dataset_release(d);
    return st;
}

json_t *input_act_v1(const input_run *r)
{
    const input_limits limits = input_limits_of(r->kase);
    const int64_t epochs = input_option(r->kase, "epochs", 1);
    ls_error err = LS_ERROR_INIT;
    int64_t numbers = 0;
    json_t *answer = NULL, *all;
    input_group g;
    ls_status st;

    if (!input_group_open(&g, r, json_object_get(r->kase, "topology"), &answer)) {
        return answer;
    }
    all = json_array();
    st = make_iterator(&g.w[0], &numbers, &err);
    for (int64_t i = 0; st == LS_OK && i < epochs; i++) {
        st = ls_dist_iterator_initialize(g.w[0].it, &err);
        if (st == LS_OK) {
            (void)json_array_append_new(
                all, json_pack("[o]", input_drain(input_next_step, &g.w[0], &limits)));
        }
    }
    answer = st == LS_OK ? json_pack("{s:O}", "epochs", all) : input_encode_error(&err);
    json_decref(all);
    input_group_close(&g);
    return answer;
}
