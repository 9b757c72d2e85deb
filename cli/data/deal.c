/*
 * Distributes samples by the library: the pipeline has the same shape, but its records are
 * numbers. The workers are taken one after the other: each has a pipeline that depends on
 * the numbers of workers and replicas only, and no cluster is needed.
 */
#include "cli/data/input_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    ls_auto_shard policy;
} policies[] = {{"AUTO", LS_SHARD_AUTO},
                {"FILE", LS_SHARD_FILE},
                {"DATA", LS_SHARD_DATA},
                {"OFF", LS_SHARD_OFF},
                {"HINT", LS_SHARD_BY_HINT}};
enum { POLICIES = sizeof policies / sizeof *policies };

/* Samples that one plan goes through when it repeats: about a minute. */
#define COUNTED_MOST ((int64_t)1 << 30)

const char *plan_policy_name(ls_auto_shard policy)
{
    for (size_t i = 0; i < POLICIES; i++) {
        if (policies[i].policy == policy) {
            return policies[i].name;
        }
    }
    return "?";
}

bool plan_policy_from_name(const char *name, ls_auto_shard *out)
{
    for (size_t i = 0; i < POLICIES; i++) {
        if (strcmp(policies[i].name, name) == 0) {
            *out = policies[i].policy;
            return true;
        }
    }
    return false;
}

bool plan_is_counted(const plan *p)
{
    return p->repeat >= 0 &&
           (p->repeat <= 1 || p->records == 0 || p->repeat <= COUNTED_MOST / p->records);
}

/* ---- the pipeline ---- */

static const char *reader_of(const plan *p)
{
    return p->format == DATA_TFRECORD ? "tfrecord"
           : p->format == DATA_TEXT   ? "textline"
                                      : "csv";
}

/* The records of a file, as numbers. */
static ls_dataset *records_of(ls_value *element, void *user)
{
    const plan *p = user;
    const ls_string name = data_string(element);

    for (size_t i = 0; i < p->nfiles; i++) {
        if (strlen(p->files[i].name) == name.len &&
            memcmp(p->files[i].name, name.ptr, name.len) == 0) {
            const int64_t begin = (int64_t)i << PLAN_FILE_SHIFT;

            return ls_dataset_range(begin, begin + p->files[i].records, 1);
        }
    }
    return NULL;
}

static ls_dataset *names_of(const plan *p)
{
    ls_string *names = calloc(p->nfiles, sizeof *names);
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_dataset *d = NULL;

    for (size_t i = 0; names != NULL && i < p->nfiles; i++) {
        names[i] = (ls_string){p->files[i].name, strlen(p->files[i].name)};
    }
    if (names != NULL &&
        ls_tensor_create(NULL, LS_STRING, LS_SHAPE((int64_t)p->nfiles), names, &t,
                         NULL) == LS_OK &&
        ls_value_tensor(t, &v, NULL) == LS_OK) {
        d = ls_dataset_slices(v);
    }
    ls_value_release(v);
    ls_tensor_release(t);
    free(names);
    return d;
}

ls_dataset *plan_pipeline(plan *p)
{
    ls_interleave_options read = LS_INTERLEAVE_OPTIONS_INIT;
    ls_data_options options = LS_DATA_OPTIONS_INIT;
    ls_spec *number = NULL;
    ls_dataset *d = NULL;

    if (ls_spec_tensor(LS_I64, 0, NULL, &number, NULL) != LS_OK) {
        return NULL;
    }
    d = names_of(p);
    if (p->asked == LS_SHARD_BY_HINT) {
        d = ls_dataset_shard(d, LS_SHARD_HINT, 0);
    }
    read.spec = number;
    read.reader = reader_of(p);
    d = ls_dataset_flat_map(d, records_of, p, &read);
    ls_spec_release(number);
    if (p->shuffle > 0) {
        d = ls_dataset_shuffle(d, p->shuffle, p->seed);
    }
    if (p->repeat != 1) {
        // No records stay none when repeated; steps that are not counted have no end.
        d = ls_dataset_repeat(d, plan_is_counted(p) && p->records > 0 ? p->repeat : -1);
    }
    if (p->batch > 0) {
        d = ls_dataset_batch(d, p->batch);
    }
    options.auto_shard = p->asked;
    return ls_dataset_with_options(d, &options);
}

/* ---- the policy ---- */

static const char *one_worker(const plan *p)
{
    return p->replicas > 1
               ? "there is one worker, which reads everything; each batch is "
                 "cut into one part per replica"
               : "there is one worker with one replica, which reads everything";
}

static void explain_asked(plan *p)
{
    const char *why = "";

    switch (p->asked) {
    case LS_SHARD_FILE:
        why = "every worker reads its own files, dealt out in turn";
        break;
    case LS_SHARD_DATA:
        why = "every worker reads everything and keeps its part of each batch";
        break;
    case LS_SHARD_OFF:
        why = "every worker reads and keeps everything: each record is used by all of "
              "them";
        break;
    default:
        why = "the pipeline says itself where it is dealt out, here at the names of the "
              "files: every worker reads its own";
    }
    snprintf(p->reason, sizeof p->reason, "as asked for: %s",
             p->workers == 1 ? one_worker(p) : why);
    p->used = p->asked;
}

ls_status plan_choose(plan *p, ls_error *err)
{
    ls_dataset *d = NULL;
    ls_status st;

    if (p->asked != LS_SHARD_AUTO) {
        explain_asked(p);
        return LS_OK;
    }
    d = ls_dataset_auto_shard(plan_pipeline(p), p->workers, 0, LS_SHARD_FILE);
    st = d != NULL ? ls_dataset_status(d, err) : data_no_memory(err);
    ls_dataset_release(d);
    p->used = st == LS_NOT_FOUND ? LS_SHARD_DATA : LS_SHARD_FILE;
    if (st == LS_OK) {
        snprintf(p->reason, sizeof p->reason, "chosen by AUTO: %s",
                 p->workers == 1
                     ? one_worker(p)
                     : "files of this kind can be dealt out whole, so every worker reads "
                       "its own files");
    } else if (st == LS_NOT_FOUND) {
        snprintf(p->reason, sizeof p->reason, "chosen by AUTO: %s%s, so %s",
                 p->format == DATA_CSV ? "CSV files are not dealt out whole"
                                       : "files cannot be dealt out whole: ",
                 p->format == DATA_CSV ? "" : err->message,
                 p->workers == 1 ? "the batches are cut into one part per replica"
                                 : "every worker reads everything and keeps its part of "
                                   "each batch");
        st = LS_OK;
    }
    return st;
}

/* ---- dealing ---- */

static void see_sample(plan_share *s, int64_t sample)
{
    plan *p = s->plan;
    const int64_t file = sample >> PLAN_FILE_SHIFT;
    const int64_t place = sample - (file << PLAN_FILE_SHIFT);
    uint8_t *seen = &p->seen[p->first[file] + place];

    s->rows++;
    s->of_file[file]++;
    if (*seen < UINT8_MAX) {
        ++*seen;
    }
}

/* What one replica gets in the step that is under way. */
static ls_status see_part(plan_share *s, int replica, const ls_value *part, ls_error *err)
{
    const ls_tensor *t = ls_value_as_tensor(part);
    const int64_t *samples = t != NULL ? ls_tensor_data(t) : NULL;
    const int64_t n = t != NULL ? ls_tensor_count(t) : 0;
    const int64_t slot = s->steps * s->plan->replicas + replica;

    if (t == NULL || (samples == NULL && n > 0)) {
        return lsi_fail(err, LS_INTERNAL, -1, "a part of a batch is no tensor");
    }
    s->empty += n == 0;
    for (int64_t i = 0; i < n; i++) {
        see_sample(s, samples[i]);
    }
    if (s->steps < s->plan->shown) {
        s->samples[slot] = calloc((size_t)n + 1, sizeof **s->samples);
        if (s->samples[slot] == NULL) {
            return data_no_memory(err);
        }
        for (int64_t i = 0; i < n; i++) {
            s->samples[slot][i] = samples[i];
        }
        s->count[slot] = n;
    }
    return LS_OK;
}

static ls_status see_step(plan_share *s, const ls_value *step, ls_error *err)
{
    const bool wrapped = ls_value_kind_of(step) == LS_VALUE_PER_REPLICA;
    ls_status st = LS_OK;

    for (int r = 0; st == LS_OK && r < s->plan->replicas; r++) {
        st = see_part(s, r, wrapped ? ls_value_child(step, (size_t)r) : step, err);
    }
    s->steps++;
    return st;
}

static ls_status take_steps(plan_share *s, ls_dist_iterator *it, ls_error *err)
{
    const bool counted = plan_is_counted(s->plan);
    ls_status st = LS_OK;

    while (st == LS_OK && (counted || s->steps < s->plan->shown)) {
        ls_value *step = NULL;

        st = ls_dist_iterator_next(it, &step, err);
        if (st == LS_OK) {
            st = see_step(s, step, err);
            ls_value_release(step);
        }
    }
    return st == LS_OUT_OF_RANGE ? LS_OK : st;
}

/* The pipeline of batches `d` cut into parts for the replicas of worker `w`. */
static ls_dataset *cut_batches(const plan *p, int w, ls_dataset *d)
{
    const size_t n = (size_t)p->workers * (size_t)p->replicas;
    int64_t *sizes = calloc(n, sizeof *sizes);
    ls_error err = LS_ERROR_INIT;

    if (sizes == NULL) {
        (void)data_no_memory(&err);
    }
    if (sizes == NULL ||
        ls_batch_sizes(p->batch, p->workers, p->replicas, w, sizes, &err) != LS_OK) {
        free(sizes);
        ls_dataset_release(d);
        return ls_dataset_failed_with(&err);
    }
    d = ls_dataset_rebatch(d, sizes, n, false);
    free(sizes);
    return d;
}

/* The pipeline of one worker, as ls_strategy_distribute() makes it there. */
static ls_dataset *worker_pipeline(const ls_input_context *ic, void *user)
{
    const plan_share *s = user;
    const plan *p = s->plan;
    ls_auto_shard_options how = LS_AUTO_SHARD_OPTIONS_INIT;
    ls_dataset *d = plan_pipeline(s->plan);

    (void)ic; // of a strategy with one worker
    how.shards = p->workers;
    how.index = s->worker;
    how.policy = p->asked;
    how.replicas = (int64_t)p->workers * p->replicas;
    if (how.replicas > 1) {
        d = cut_batches(p, s->worker, d);
    }
    return ls_dataset_auto_shard_with(d, &how);
}

static ls_status deal_to_worker(ls_strategy *strategy, plan_share *s, ls_error *err)
{
    ls_distribute_options how = LS_DISTRIBUTE_OPTIONS_INIT;
    ls_dist_dataset *dist = NULL;
    ls_dist_iterator *it = NULL;
    ls_status st;

    how.keep_on_host = true;
    st = ls_strategy_distribute_from_function(strategy, worker_pipeline, s, &how, &dist,
                                              err);
    if (st == LS_OK) {
        st = ls_dist_iterate(dist, &it, err);
    }
    if (st == LS_OK) {
        st = take_steps(s, it, err);
    }
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dist);
    return st;
}

/* Workers that run out of data get empty parts until all have none. */
static void end_together(plan *p)
{
    int64_t most = 0;

    for (int w = 0; w < p->workers; w++) {
        most = p->shares[w].steps > most ? p->shares[w].steps : most;
    }
    for (int w = 0; w < p->workers; w++) {
        plan_share *s = &p->shares[w];

        s->empty += (most - s->steps) * p->replicas;
        s->steps = most;
    }
}

static bool prepare_shares(plan *p)
{
    const size_t slots = (size_t)(p->shown * p->replicas) + 1;
    int64_t at = 0;

    p->shares = calloc((size_t)p->workers, sizeof *p->shares);
    p->seen = calloc((size_t)p->records + 1, sizeof *p->seen);
    p->first = calloc(p->nfiles, sizeof *p->first);
    if (p->shares == NULL || p->seen == NULL || p->first == NULL) {
        return false;
    }
    for (size_t i = 0; i < p->nfiles; i++) {
        p->first[i] = at;
        at += p->files[i].records;
    }
    for (int w = 0; w < p->workers; w++) {
        plan_share *s = &p->shares[w];

        *s = (plan_share){.plan = p, .worker = w};
        s->of_file = calloc(p->nfiles, sizeof *s->of_file);
        s->samples = (int64_t **)calloc(slots, sizeof *s->samples);
        s->count = calloc(slots, sizeof *s->count);
        if (s->of_file == NULL || s->samples == NULL || s->count == NULL) {
            return false;
        }
    }
    return true;
}

ls_status plan_deal(plan *p, ls_error *err)
{
    ls_runtime_options machine = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options options = LS_STRATEGY_OPTIONS_INIT;
    ls_strategy *strategy = NULL;
    ls_status st;

    if (p->batch == 0 && p->workers * p->replicas > 1) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "single records cannot be cut into parts for %d replicas",
                        p->workers * p->replicas);
    }
    if (!prepare_shares(p)) {
        return data_no_memory(err);
    }
    machine.logical_cpus = p->replicas;
    machine.threads = 1;
    st = ls_runtime_create(&machine, &p->runtime, err);
    if (st == LS_OK) {
        options.runtime = p->runtime;
        st = ls_mirrored_create(NULL, &options, &strategy, err);
    }
    for (int w = 0; st == LS_OK && w < p->workers; w++) {
        st = deal_to_worker(strategy, &p->shares[w], err);
    }
    ls_strategy_release(strategy);
    if (st == LS_OK && plan_is_counted(p)) {
        end_together(p);
    }
    return st;
}

void plan_free(plan *p)
{
    for (int w = 0; p->shares != NULL && w < p->workers; w++) {
        plan_share *s = &p->shares[w];

        for (int64_t i = 0; s->samples != NULL && i < p->shown * p->replicas; i++) {
            free(s->samples[i]);
        }
        free((void *)s->samples);
        free(s->count);
        free(s->of_file);
    }
    for (size_t i = 0; i < p->nfiles; i++) {
        free(p->files[i].name);
    }
    free(p->files);
    free(p->shares);
    free(p->seen);
    free(p->first);
    ls_runtime_release(p->runtime);
}
