/*
 * Distributes samples by the library: the pipeline has the same shape, but its records are
 * numbers, and the workers are threads of this process.
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
    _Atomic uint8_t *seen = &p->seen[p->first[file] + place];

    s->rows++;
    s->of_file[file]++;
    if (atomic_load(seen) < UINT8_MAX) {
        (void)atomic_fetch_add(seen, 1);
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

static ls_status take_steps(plan_share *s, ls_dist_iterator *it)
{
    const bool counted = plan_is_counted(s->plan);
    ls_status st = LS_OK;

    while (st == LS_OK && (counted || s->steps < s->plan->shown)) {
        ls_value *step = NULL;

        st = ls_dist_iterator_next(it, &step, &s->err);
        if (st == LS_OK) {
            st = see_step(s, step, &s->err);
            ls_value_release(step);
        }
    }
    return st == LS_OUT_OF_RANGE ? LS_OK : st;
}

static void deal_to_worker(void *arg)
{
    plan_share *s = arg;
    plan *p = s->plan;
    ls_strategy_options options = LS_STRATEGY_OPTIONS_INIT;
    ls_distribute_options how = LS_DISTRIBUTE_OPTIONS_INIT;
    ls_dataset *d = plan_pipeline(p);
    ls_strategy *strategy = NULL;
    ls_dist_dataset *dist = NULL;
    ls_dist_iterator *it = NULL;

    options.runtime = p->runtime;
    how.keep_on_host = true;
    how.workers = p->workers;
    how.worker = s->worker;
    how.comm = s->comm;
    s->st = d != NULL ? ls_mirrored_create(NULL, &options, &strategy, &s->err)
                      : data_no_memory(&s->err);
    if (s->st == LS_OK) {
        s->st = ls_strategy_distribute(strategy, d, &how, &dist, &s->err);
    }
    if (s->st == LS_OK) {
        s->st = ls_dist_iterate(dist, &it, &s->err);
    }
    if (s->st == LS_OK) {
        s->st = take_steps(s, it);
    }
    if (s->st != LS_OK && s->comm != NULL) {
        ls_comm_abort(s->comm); // the other workers do not wait for this one
    }
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dist);
    ls_strategy_release(strategy);
    ls_dataset_release(d);
}

static bool prepare_shares(plan *p)
{
    const size_t slots = (size_t)(p->shown * p->replicas) + 1;
    const ls_error init = LS_ERROR_INIT;
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

        *s = (plan_share){.plan = p, .worker = w, .err = init};
        s->of_file = calloc(p->nfiles, sizeof *s->of_file);
        s->samples = (int64_t **)calloc(slots, sizeof *s->samples);
        s->count = calloc(slots, sizeof *s->count);
        if (s->of_file == NULL || s->samples == NULL || s->count == NULL) {
            return false;
        }
    }
    return true;
}

static ls_status connect_workers(plan *p, ls_error *err)
{
    ls_comm **comms = NULL;
    ls_status st = LS_OK;

    if (p->workers == 1) {
        return LS_OK;
    }
    comms = (ls_comm **)calloc((size_t)p->workers, sizeof(void *));
    if (comms == NULL) {
        return data_no_memory(err);
    }
    st = ls_comm_local(p->workers, NULL, comms, err);
    for (int w = 0; st == LS_OK && w < p->workers; w++) {
        p->shares[w].comm = comms[w];
    }
    free((void *)comms);
    return st;
}

/* The failure that is the cause: the others are LS_ABORTED because of it. */
static ls_status first_failure(const plan *p, ls_error *err)
{
    const plan_share *first = NULL;

    for (int w = 0; w < p->workers; w++) {
        const plan_share *s = &p->shares[w];

        if (s->st != LS_OK &&
            (first == NULL || (first->st == LS_ABORTED && s->st != LS_ABORTED))) {
            first = s;
        }
    }
    if (first == NULL) {
        return LS_OK;
    }
    *err = first->err;
    return first->st;
}

ls_status plan_deal(plan *p, ls_error *err)
{
    ls_runtime_options options = LS_RUNTIME_OPTIONS_INIT;
    int started = 1;
    ls_status st;

    if (!prepare_shares(p)) {
        return data_no_memory(err);
    }
    options.logical_cpus = p->replicas;
    options.threads = 1;
    st = ls_runtime_create(&options, &p->runtime, err);
    if (st == LS_OK) {
        st = connect_workers(p, err);
    }
    if (st != LS_OK) {
        return st;
    }
    for (; started < p->workers; started++) {
        plan_share *s = &p->shares[started];

        st = lsi_thread_start(&s->thread, deal_to_worker, s, err, "worker-%d", started);
        if (st != LS_OK) {
            ls_comm_abort(p->shares[0].comm);
            break;
        }
    }
    if (st == LS_OK) {
        deal_to_worker(&p->shares[0]);
    }
    for (int w = 1; w < started; w++) {
        lsi_thread_join(&p->shares[w].thread);
    }
    return st == LS_OK ? first_failure(p, err) : st;
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
        ls_comm_release(s->comm);
    }
    for (size_t i = 0; i < p->nfiles; i++) {
        free(p->files[i].name);
    }
    free(p->files);
    free(p->shares);
    free((void *)p->seen);
    free(p->first);
    ls_runtime_release(p->runtime);
}
