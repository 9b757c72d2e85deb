/*
 * The actions that distribute a pipeline over workers and read all of it, all workers in
 * step.
 */
#include "input_machine.h"

#include <string.h>

/* The properties that are known without iterating. */
static json_t *describe_distributed(const input_group *g)
{
    const int64_t first = ls_dist_cardinality(g->w[0].dist);
    json_t *each = json_array();
    bool wrapped = false, same = true;
    const ls_spec *spec = ls_dist_spec(g->w[0].dist, &wrapped);
    json_t *answer =
        json_pack("{s:o?, s:b}", "spec", spec == NULL ? NULL : input_encode_spec(spec),
                  "wrapped", (int)wrapped);

    for (int i = 0; i < g->n; i++) {
        const int64_t own = ls_dist_cardinality(g->w[i].dist);

        same = same && own == first;
        (void)json_array_append_new(each, json_integer(own));
    }
    (void)json_object_set_new(answer, "cardinality",
                              same ? json_integer(first) : json_incref(each));
    json_decref(each);
    return answer;
}

/* The lists of all workers, moved out of them. */
static json_t *take_events(input_group *g)
{
    json_t *all = json_array();

    for (int i = 0; i < g->n; i++) {
        (void)json_array_append_new(all, g->w[i].events);
        g->w[i].events = NULL;
    }
    return all;
}

static void drain_epoch(input_worker *w)
{
    const input_limits limits = input_limits_of(w->r->kase);
    ls_error err = LS_ERROR_INIT;

    if (ls_dist_iterate(w->dist, &w->it, &err) != LS_OK) {
        w->events = json_pack("[o]", input_encode_error(&err));
        return;
    }
    w->events = input_drain(input_next_step, w, &limits);
}

static void drop_iterators(input_group *g)
{
    for (int i = 0; i < g->n; i++) {
        ls_dist_iterator_release(g->w[i].it);
        g->w[i].it = NULL;
    }
}

static json_t *drain_epochs(input_group *g, const json_t *kase)
{
    const int64_t epochs = input_option(kase, "epochs", 1);
    json_t *all = json_array();

    for (int64_t i = 0; i < epochs; i++) {
        input_group_each(g, drain_epoch);
        drop_iterators(g);
        (void)json_array_append_new(all, take_events(g));
    }
    return all;
}

json_t *input_act_distribute(const input_run *r)
{
    const char *action = json_string_value(json_object_get(r->kase, "action"));
    input_group g;
    json_t *answer = NULL;

    if (!input_group_open(&g, r, json_object_get(r->kase, "topology"), &answer)) {
        return answer;
    }
    input_group_each(&g, input_distribute);
    answer = input_group_error(&g);
    if (answer == NULL) {
        answer = describe_distributed(&g);
        if (strcmp(action, "spec") != 0) {
            (void)json_object_set_new(answer, "epochs", drain_epochs(&g, r->kase));
        }
    }
    input_group_close(&g);
    return answer;
}

/* ---- checkpoints ---- */

static void take_and_save(input_worker *w)
{
    const input_limits limits = {input_option(w->r->kase, "take", 0), 0, 0};
    ls_error err = LS_ERROR_INIT;
    ls_status st = ls_dist_iterate(w->dist, &w->it, &err);

    if (st == LS_OK) {
        w->events = input_drain(input_next_step, w, &limits);
        st = ls_dist_iterator_save(w->it, &w->state, &err);
    }
    if (st != LS_OK) {
        w->error = input_encode_error(&err);
    }
}

static void restore_and_drain(input_worker *w)
{
    const input_limits limits = input_limits_of(w->r->kase);
    ls_error err = LS_ERROR_INIT;
    ls_status st = ls_dist_iterate(w->dist, &w->it, &err);

    if (st == LS_OK) {
        st = ls_dist_iterator_restore(w->it, w->state, &err);
    }
    if (st != LS_OK) {
        w->error = input_encode_error(&err);
        return;
    }
    w->events = input_drain(input_next_step, w, &limits);
}

/* Without the "more" that the limit put there. */
static void trim_events(input_group *g)
{
    for (int i = 0; i < g->n; i++) {
        json_t *events = g->w[i].events;
        const size_t n = json_array_size(events);
        const char *last = json_string_value(json_array_get(events, n - 1));

        if (last != NULL && strcmp(last, "more") == 0) {
            (void)json_array_remove(events, n - 1);
        }
    }
}

/* Builds everything again and continues from the saved states. */
static json_t *go_on(const input_run *r, const input_group *first, json_t *before)
{
    const json_t *topology = json_object_get(r->kase, "restore_topology");
    input_group g;
    json_t *answer = NULL;

    if (!input_group_open(
            &g, r, topology == NULL ? json_object_get(r->kase, "topology") : topology,
            &answer)) {
        json_decref(before);
        return answer;
    }
    input_group_each(&g, input_distribute);
    answer = input_group_error(&g);
    for (int i = 0; i < g.n; i++) {
        // A worker that did not exist before gets the state of another one.
        g.w[i].state = ls_value_retain(first->w[i % first->n].state);
    }
    if (answer == NULL) {
        input_group_each(&g, restore_and_drain);
        answer = input_group_error(&g);
    }
    if (answer == NULL) {
        answer = json_pack("{s:O, s:o}", "before", before, "after", take_events(&g));
    }
    input_group_close(&g);
    json_decref(before);
    return answer;
}

json_t *input_act_checkpoint_distributed(const input_run *r)
{
    input_group g;
    json_t *answer = NULL;

    if (!input_group_open(&g, r, json_object_get(r->kase, "topology"), &answer)) {
        return answer;
    }
    input_group_each(&g, input_distribute);
    answer = input_group_error(&g);
    if (answer == NULL) {
        input_group_each(&g, take_and_save);
        answer = input_group_error(&g);
    }
    if (answer == NULL) {
        trim_events(&g);
        answer = go_on(r, &g, take_events(&g));
    }
    input_group_close(&g);
    return answer;
}
