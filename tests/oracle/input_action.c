/* The actions of the suite `input` on one machine, and the table of all actions. */
#include "input_machine.h"

#include <stdio.h>
#include <string.h>

/* ---- a pipeline and its iterators ---- */

/* A dataset of the case's pipeline with all that belongs to it. */
typedef struct scene {
    input_builder b;
    ls_dataset *d;
} scene;

/* False: *answer is the failure. */
static bool open_scene(scene *s, const input_run *r, json_t **answer)
{
    ls_error err = LS_ERROR_INIT;

    input_builder_open(&s->b, r->folder, ls_default_strategy(), NULL);
    s->d = input_build(&s->b, json_object_get(r->kase, "pipeline"), r->kase);
    if (s->d != NULL && ls_dataset_status(s->d, &err) == LS_OK) {
        return true;
    }
    *answer = input_encode_error(s->d == NULL ? &s->b.err : &err);
    return false;
}

/* Whether or not it was opened. */
static void close_scene(scene *s)
{
    ls_dataset_release(s->d);
    input_builder_close(&s->b);
}

static json_t *describe_dataset(const ls_dataset *d)
{
    const ls_spec *spec = ls_dataset_spec(d);

    return json_pack("{s:I, s:o?}", "cardinality", (json_int_t)ls_dataset_cardinality(d),
                     "spec", spec == NULL ? NULL : input_encode_spec(spec));
}

static json_t *drain_dataset(ls_dataset *d, const input_limits *limits)
{
    ls_error err = LS_ERROR_INIT;
    ls_iterator *it = NULL;
    json_t *events = ls_dataset_iterate(d, &it, &err) == LS_OK
                         ? input_drain(input_next_plain, it, limits)
                         : json_pack("[o]", input_encode_error(&err));

    ls_iterator_release(it);
    return events;
}

static json_t *drain_epochs(ls_dataset *d, const json_t *kase)
{
    const input_limits limits = input_limits_of(kase);
    const int64_t epochs = input_option(kase, "epochs", 1);
    json_t *answer = describe_dataset(d), *all = json_array();

    for (int64_t i = 0; i < epochs; i++) {
        (void)json_array_append_new(all, drain_dataset(d, &limits));
    }
    (void)json_object_set_new(answer, "epochs", all);
    return answer;
}

static json_t *act_iterate(const input_run *r)
{
    json_t *answer = NULL;
    scene s;

    if (open_scene(&s, r, &answer)) {
        answer = drain_epochs(s.d, r->kase);
    }
    close_scene(&s);
    return answer;
}

static json_t *act_auto_shard(const input_run *r)
{
    ls_error err = LS_ERROR_INIT;
    json_t *answer = NULL;
    scene s;

    if (open_scene(&s, r, &answer)) {
        s.d = ls_dataset_auto_shard(s.d, input_option(r->kase, "shards", 1),
                                    input_option(r->kase, "index", 0),
                                    input_policy(r->kase));
        answer = ls_dataset_status(s.d, &err) == LS_OK ? drain_epochs(s.d, r->kase)
                                                       : input_encode_error(&err);
    }
    close_scene(&s);
    return answer;
}

static json_t *act_spec(const input_run *r)
{
    json_t *answer = NULL;
    scene s;

    if (json_object_get(r->kase, "topology") != NULL) {
        return input_act_distribute(r);
    }
    if (open_scene(&s, r, &answer)) {
        answer = describe_dataset(s.d);
    }
    close_scene(&s);
    return answer;
}

/* ---- saving ---- */

/* The results of `take` calls, and the position after them; NULL: *err says why. */
static json_t *take_and_save(const scene *s, int64_t take, ls_value **state,
                             ls_error *err)
{
    const input_limits limits = {take, 0, 0};
    ls_iterator *it = NULL;
    ls_status st = ls_dataset_iterate(s->d, &it, err);
    json_t *events = NULL;

    if (st == LS_OK) {
        events = input_drain(input_next_plain, it, &limits);
        st = ls_iterator_save(it, state, err);
    }
    ls_iterator_release(it);
    if (st == LS_OK && json_array_size(events) == (size_t)take + 1) {
        (void)json_array_remove(events, (size_t)take); // the "more" of the limit
    }
    if (st != LS_OK) {
        json_decref(events);
        return NULL;
    }
    return events;
}

/* The results of another iterator, set to the position; NULL: *err says why. */
static json_t *restore_and_drain(const scene *s, ls_value *state, const json_t *kase,
                                 ls_error *err)
{
    const input_limits limits = input_limits_of(kase);
    ls_iterator *it = NULL;
    ls_status st = ls_dataset_iterate(s->d, &it, err);
    json_t *events = NULL;

    if (st == LS_OK) {
        st = ls_iterator_restore(it, state, err);
    }
    if (st == LS_OK) {
        events = input_drain(input_next_plain, it, &limits);
    }
    ls_iterator_release(it);
    return events;
}

/*
 * Builds the pipeline again, as another process would, and continues from the position.
 */
static json_t *go_on(const input_run *r, ls_value *state, const json_t *before)
{
    const input_limits limits = input_limits_of(r->kase);
    ls_error err = LS_ERROR_INIT;
    json_t *answer = NULL, *after;
    scene s;

    if (open_scene(&s, r, &answer)) {
        after = restore_and_drain(&s, state, r->kase, &err);
        answer = after == NULL
                     ? input_encode_error(&err)
                     : json_pack("{s:O, s:o}", "before", before, "after", after);
        if (after != NULL && input_option(r->kase, "epochs", 1) > 1) {
            (void)json_object_set_new(answer, "next_epoch", drain_dataset(s.d, &limits));
        }
    }
    close_scene(&s);
    return answer;
}

static json_t *act_checkpoint(const input_run *r)
{
    ls_error err = LS_ERROR_INIT;
    json_t *answer = NULL, *before = NULL;
    ls_value *state = NULL;
    bool open;
    scene s;

    if (json_object_get(r->kase, "topology") != NULL) {
        return input_act_checkpoint_distributed(r);
    }
    open = open_scene(&s, r, &answer);
    if (open) {
        before = take_and_save(&s, input_option(r->kase, "take", 0), &state, &err);
    }
    close_scene(&s);
    if (open) {
        answer = before == NULL ? input_encode_error(&err) : go_on(r, state, before);
    }
    json_decref(before);
    ls_value_release(state);
    return answer;
}

static json_t *act_save(const input_run *r)
{
    ls_error err = LS_ERROR_INIT;
    json_t *answer = NULL, *before;
    ls_value *state = NULL;
    scene s;

    if (open_scene(&s, r, &answer)) {
        before = take_and_save(&s, 0, &state, &err);
        answer = before == NULL ? input_encode_error(&err) : json_object();
        json_decref(before);
    }
    ls_value_release(state);
    close_scene(&s);
    return answer;
}

/* ---- the table ---- */

static const struct {
    const char *name;
    input_action run;
} ACTIONS[] = {
    {"iterate", act_iterate},
    {"auto_shard", act_auto_shard},
    {"distribute", input_act_distribute},
    {"from_function", input_act_distribute},
    {"spec", act_spec},
    {"checkpoint", act_checkpoint},
    {"save", act_save},
    {"batch_sizes", input_act_batch_sizes},
    {"per_replica_batch_size", input_act_per_replica_batch_size},
    {"context", input_act_context},
    {"values", input_act_values},
    {"tfrecord_bytes", input_act_tfrecord_bytes},
    {"example_bytes", input_act_example_bytes},
    {"next_in_replica", input_act_next_in_replica},
    {"empty_optional", input_act_empty_optional},
    {"v1", input_act_v1},
};

json_t *input_act(const input_run *r)
{
    const char *name = json_string_value(json_object_get(r->kase, "action"));
    ls_error err = LS_ERROR_INIT;

    for (size_t i = 0; name != NULL && i < sizeof ACTIONS / sizeof ACTIONS[0]; i++) {
        if (strcmp(ACTIONS[i].name, name) == 0) {
            return ACTIONS[i].run(r);
        }
    }
    (void)input_fail(&err, LS_UNKNOWN, "the action %s is not known",
                     name == NULL ? "?" : name);
    return input_encode_error(&err);
}
