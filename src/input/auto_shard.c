/*
 * Auto-sharding: the part of the input that one of several workers reads. FILE lets every
 * worker read different files: a shard is inserted before each reader, behind its file
 * names. DATA lets every worker read everything and keep each n-th part. AUTO tries FILE
 * first. The policy also decides how batches are cut: DATA cuts each batch evenly
 * (TensorFlow's older rule), the others keep the sizes that add up to the global batch.
 *
 * FILE first finds the nodes to change and changes nothing; only then the graph is
 * rewritten, so an attempt that fails has no effect.
 */
#include "input/input.h"

#include <string.h>

static const char *const sources[] = {"tensors", "slices",     "range",
                                      "source",  "list_files", NULL};
static const char *const several[] = {"zip", "concatenate", NULL};
static const char *const functions[] = {"flat_map", "interleave", "parallel_interleave",
                                        NULL};
static const char *const readers[] = {"tfrecord", "textline", "fixed", NULL};
static const char *const rows[] = {"tensors", "slices", "list_files", NULL};
static const char *const trailing[] = {"prefetch", "options", NULL};

/* Operators that the search for readers passes through. */
static const char *const transparent[] = {
    "batch",   "parallel_batch", "padded_batch", "cache",         "filter",
    "map",     "parallel_map",   "options",      "parse_example", "prefetch",
    "rebatch", "legacy_rebatch", "repeat",       "shard",         "shuffle",
    "skip",    "take",           "unbatch",      "window",        NULL};

/* The changes to make to the graph. */
struct edits {
    const lsi_sharding *how;
    const ls_dataset **shard;  /* nodes whose input 0 gets a shard */
    const ls_dataset **remove; /* nodes to remove */
    size_t nshard, nremove, room;
    ls_error *err;
};

static bool listed(const ls_dataset *const *list, size_t n, const ls_dataset *d)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i] == d) {
            return true;
        }
    }
    return false;
}

/*
 * The number of nodes on all paths, a shared node counted once per path: an upper bound
 * for the lists.
 */
static size_t count_nodes(const ls_dataset *d)
{
    size_t n = 1;

    for (int i = 0; i < d->ninputs; i++) {
        n += count_nodes(d->inputs[i]);
    }
    return n;
}

static ls_status shard_input_of(struct edits *e, const ls_dataset *d)
{
    if (!listed(e->shard, e->nshard, d)) {
        e->shard[e->nshard++] = d;
    }
    return LS_OK;
}

static ls_status no_files(struct edits *e, const ls_dataset *d)
{
    return lsi_fail(e->err, LS_NOT_FOUND, -1,
                    "auto-shard: no files to shard: the pipeline begins with \"%s\", "
                    "which does not read files by a dataset of names; use the policy "
                    "DATA or OFF",
                    d->ops->kind);
}

static bool opens_files(const ls_dataset *d)
{
    const char *reader = lsi_dataset_reader(d);

    for (size_t i = 0; reader != NULL && readers[i] != NULL; i++) {
        if (strcmp(reader, readers[i]) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * From function operator `d`, follows input 0 through the transparent operators to
 * another function operator whose input is tensors in memory; returns the node right
 * behind that operator, or NULL. TensorFlow shards there: it expects rows that are
 * datasets of files, and does not check it.
 */
static const ls_dataset *behind_rows(const ls_dataset *d)
{
    const ls_dataset *up = d->inputs[0];

    while (lsi_dataset_among(up, transparent)) {
        d = up;
        up = d->inputs[0];
    }
    const char *reader = lsi_dataset_reader(up);
    if (!lsi_dataset_among(up, functions) || !lsi_dataset_among(up->inputs[0], rows) ||
        (reader != NULL && strcmp(reader, "csv") == 0)) { // one operator in TensorFlow
        return NULL;
    }
    return d;
}

/* Finds the nodes to shard, on every path to a source. */
static ls_status find_readers(struct edits *e, const ls_dataset *d)
{
    if (lsi_dataset_is(d, "assert_cardinality")) {
        if (!listed(e->remove, e->nremove, d)) {
            e->remove[e->nremove++] = d;
        }
        return find_readers(e, d->inputs[0]);
    }
    if (lsi_dataset_among(d, sources) || d->ninputs == 0) {
        return no_files(e, d);
    }
    if (lsi_dataset_among(d, several)) {
        ls_status st = LS_OK;

        for (int i = 0; i < d->ninputs && st == LS_OK; i++) {
            st = find_readers(e, d->inputs[i]);
        }
        return st;
    }
    const bool function = lsi_dataset_among(d, functions);
    const ls_dataset *after_rows = function ? behind_rows(d) : NULL;
    if (after_rows != NULL) {
        return shard_input_of(e, after_rows);
    }
    if (!function && !lsi_dataset_among(d, transparent)) {
        return lsi_dataset_among(d, readers) ? shard_input_of(e, d) : no_files(e, d);
    }
    return opens_files(d) ? shard_input_of(e, d) : find_readers(e, d->inputs[0]);
}

/* Removes shuffles; *user becomes the one nearest to the source. */
static ls_status unshuffle(void *user, ls_dataset *node, ls_dataset *const *inputs,
                           ls_dataset **out, ls_error *err)
{
    ls_dataset **first = user;

    (void)err;
    if (lsi_dataset_is(node, "shuffle")) {
        *first = *first == NULL ? node : *first; // inputs are visited first
        *out = ls_dataset_retain(inputs[0]);
    }
    return LS_OK;
}

ls_status lsi_fail_too_few(int64_t files, int64_t shards, ls_error *err)
{
    return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                    "auto-shard: %lld files for %lld workers, and every worker needs at "
                    "least one; use the policy DATA or OFF, or more files",
                    (long long)files, (long long)shards);
}

/* Detects too few files, if their number is known: the same result on all workers. */
static void check_count(const lsi_sharding *how, const ls_dataset *names)
{
    if (names->cardinality > 0 && names->cardinality < how->shards) {
        *how->too_few = names->cardinality;
    }
}

/* The file names of one worker: sharded in a fixed order, then shuffled. */
static ls_status shard_names(const lsi_sharding *how, ls_dataset *names, ls_dataset **out,
                             ls_error *err)
{
    ls_dataset *plain = NULL, *shuffle = NULL;
    ls_status st = lsi_graph_rewrite(names, unshuffle, &shuffle, &plain, err);

    if (st != LS_OK) {
        return st;
    }
    check_count(how, names);
    st = lsi_graph_made(lsi_dataset_shard_required(plain, how->shards, how->index),
                        &plain, err);
    if (st == LS_OK && shuffle != NULL) {
        return lsi_graph_over(shuffle, plain, out, err);
    }
    if (st == LS_OK) {
        *out = plain;
    }
    return st;
}

static ls_status apply_edits(void *user, ls_dataset *node, ls_dataset *const *inputs,
                             ls_dataset **out, ls_error *err)
{
    const struct edits *e = user;
    ls_dataset *names = NULL;
    ls_status st;

    if (listed(e->remove, e->nremove, node)) {
        if (e->how->index == 0) {
            lsi_log(LS_LOG_WARNING,
                    "auto-shard: assert_cardinality(%lld) is removed: it would count "
                    "the elements of one worker",
                    (long long)node->cardinality);
        }
        *out = ls_dataset_retain(inputs[0]);
        return LS_OK;
    }
    if (!listed(e->shard, e->nshard, node)) {
        return LS_OK;
    }
    st = shard_names(e->how, inputs[0], &names, err);
    return st == LS_OK ? lsi_graph_over(node, names, out, err) : st;
}

static ls_status shard_by_files(ls_dataset *d, const lsi_sharding *how, ls_dataset **out,
                                ls_error *err)
{
    const size_t room = count_nodes(d);
    const ls_dataset **lists = lsi_alloc(room, 2 * sizeof(ls_dataset *));
    struct edits e = {how, lists, NULL, 0, 0, room, err};
    ls_status st;

    if (lists == NULL) {
        return lsi_fail_memory(err, "auto-shard", room * 2 * sizeof(ls_dataset *));
    }
    e.remove = lists + room;
    st = find_readers(&e, d);
    if (st == LS_OK) {
        st = lsi_graph_rewrite(d, apply_edits, &e, out, err);
    }
    lsi_free((void *)lists);
    return st;
}

/* Inserts a shard before trailing prefetches and options; makes a rebatch cut evenly. */
static ls_status shard_by_data(ls_dataset *d, const lsi_sharding *how, ls_dataset **out,
                               ls_error *err)
{
    ls_dataset *x = NULL;
    ls_status st;

    if (lsi_dataset_among(d, trailing)) {
        st = shard_by_data(d->inputs[0], how, &x, err);
        return st == LS_OK ? lsi_graph_over(d, x, out, err) : st;
    }
    x = ls_dataset_retain(d);
    if (lsi_dataset_is(d, "rebatch")) {
        ls_dataset_release(x);
        x = lsi_dataset_legacy_rebatch(ls_dataset_retain(d->inputs[0]), how->replicas);
    }
    return lsi_graph_made(lsi_dataset_shard_required(x, how->shards, how->index), out,
                          err);
}

static ls_status fill_hint(void *user, ls_dataset *node, ls_dataset *const *inputs,
                           ls_dataset **out, ls_error *err)
{
    const lsi_sharding *how = user;

    if (!lsi_dataset_is_hint(node)) {
        return LS_OK;
    }
    return lsi_graph_made(
        lsi_dataset_shard_required(ls_dataset_retain(inputs[0]), how->shards, how->index),
        out, err);
}

static ls_status shard_automatically(ls_dataset *d, const lsi_sharding *how,
                                     ls_dataset **out, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    const ls_status st = shard_by_files(d, how, out, &why);

    if (st == LS_OK) {
        return LS_OK;
    }
    if (st != LS_NOT_FOUND) {
        return lsi_fail_again(err, &why);
    }
    if (how->shards > 1 && how->index == 0) {
        lsi_log(LS_LOG_WARNING, "%s; every worker reads everything and keeps its part",
                why.message);
    }
    return shard_by_data(d, how, out, err);
}

ls_status lsi_auto_shard(ls_dataset *d, const lsi_sharding *how, ls_dataset **out,
                         ls_error *err)
{
    lsi_sharding hints = *how;

    if (how->shards < 1 || how->index < 0 || how->index >= how->shards ||
        how->replicas < 0) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "auto-shard: part %lld of %lld for %lld replicas",
                        (long long)how->index, (long long)how->shards,
                        (long long)how->replicas);
    }
    switch (how->policy) {
    case LS_SHARD_OFF:
        *out = ls_dataset_retain(d);
        return LS_OK;
    case LS_SHARD_FILE:
        if (how->shards == 1) {
            *out = ls_dataset_retain(d);
            return LS_OK;
        }
        return shard_by_files(d, how, out, err);
    case LS_SHARD_DATA:
        return shard_by_data(d, how, out, err);
    case LS_SHARD_BY_HINT:
        return lsi_graph_rewrite(d, fill_hint, &hints, out, err);
    case LS_SHARD_AUTO:
        return shard_automatically(d, how, out, err);
    }
    return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "auto-shard: %d is not a policy",
                    (int)how->policy);
}

ls_dataset *ls_dataset_auto_shard_with(ls_dataset *d, const ls_auto_shard_options *opts)
{
    ls_auto_shard_options o = LS_AUTO_SHARD_OPTIONS_INIT;
    lsi_sharding how;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *out = NULL;
    int64_t few = 0;
    ls_status st = LS_OK;

    if (lsi_dataset_bad(d)) {
        return d;
    }
    if (opts != NULL && opts->struct_size < sizeof opts->struct_size) {
        st = lsi_fail_kind(&err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "auto-shard: start the options from "
                           "LS_AUTO_SHARD_OPTIONS_INIT");
    } else if (opts != NULL) {
        memcpy(&o, opts, LSI_MIN(opts->struct_size, sizeof o));
    }
    how = (lsi_sharding){o.shards != 0 ? o.shards : 1, o.index,
                         o.replicas != 0 ? o.replicas : 1, o.policy, &few};
    if (st == LS_OK) {
        st = lsi_auto_shard(d, &how, &out, &err);
    }
    if (st == LS_OK && few > 0) {
        ls_dataset_release(out);
        st = lsi_fail_too_few(few, how.shards, &err);
    }
    if (st != LS_OK) { // `d` may have other references: it is not changed
        out = lsi_dataset_failed(st, err.kind, "%s", err.message);
    }
    ls_dataset_release(d);
    return out;
}

ls_dataset *ls_dataset_auto_shard(ls_dataset *d, int64_t shards, int64_t index,
                                  ls_auto_shard policy)
{
    ls_auto_shard_options o = LS_AUTO_SHARD_OPTIONS_INIT;

    o.shards = shards != 0 ? shards : -1; // here 0 is an invalid number, not the default
    o.index = index;
    o.policy = policy;
    return ls_dataset_auto_shard_with(d, &o);
}
