/*
 * shard: every n-th element, beginning with the i-th. The shards that distributing a
 * dataset inserts require at least n elements: after its first element such a shard reads
 * on until element n, to make sure that every worker gets one.
 */
#include "data/data.h"

#include <string.h>

struct shard {
    ls_dataset base;
    int64_t shards, index;
    bool required;
};

struct shard_iterator {
    lsi_unary_iterator unary;
    int64_t at; // elements read from the input
};

/* Passes over `n` elements; if it fails, none of them is counted, as in TensorFlow. */
static ls_status pass_elements(struct shard_iterator *s, int64_t n, ls_error *err)
{
    int64_t skipped = 0;
    ls_status st = LS_OK;

    if (n > 0) {
        st = lsi_iterator_skip(s->unary.input, n, &skipped, err);
        s->at += st == LS_OK || st == LS_OUT_OF_RANGE ? skipped : 0;
    }
    return st;
}

/* How many elements come before the next one of this shard. All intermediate results lie
 * between -shards and shards: no overflow. */
static int64_t count_ahead(const struct shard *node, int64_t at)
{
    const int64_t off = node->index - at % node->shards;

    return off < 0 ? off + node->shards : off;
}

static ls_status demand_inputs(struct shard_iterator *s, const struct shard *node,
                               ls_error *err)
{
    const int64_t seen = s->at;
    const ls_status st = pass_elements(s, node->shards - s->at, err);

    if (st != LS_OUT_OF_RANGE) {
        return st;
    }
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                         "sharding by files: the dataset has only %lld file(s), not "
                         "enough for %lld workers; use more files, or shard the data: "
                         "auto_shard LS_SHARD_DATA or LS_SHARD_OFF",
                         (long long)seen, (long long)node->shards);
}

static ls_status next_shard(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct shard_iterator *s = (struct shard_iterator *)it;
    const struct shard *node = (const struct shard *)it->dataset;
    ls_value *element = NULL;
    ls_status st = pass_elements(s, count_ahead(node, s->at), err);

    if (st == LS_OK) {
        st = lsi_iterator_next(s->unary.input, &element, err);
    }
    if (st != LS_OK) {
        return st;
    }
    s->at++;
    if (node->required && s->at < node->shards) {
        st = demand_inputs(s, node, err);
    }
    if (st == LS_OK) {
        *out = element;
    } else {
        ls_value_release(element);
    }
    return st;
}

static ls_status save_shard(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct shard_iterator *s = (struct shard_iterator *)it;

    lsi_state_write_u64(w, (uint64_t)s->at);
    return lsi_iterator_save(s->unary.input, w, err);
}

static ls_status restore_shard(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct shard_iterator *s = (struct shard_iterator *)it;
    uint64_t at = 0;
    const ls_status st = lsi_state_read_count(r, INT64_MAX / 2, &at, err);

    if (st != LS_OK) {
        return st;
    }
    s->at = (int64_t)at;
    return lsi_iterator_restore(s->unary.input, r, err);
}

static ls_status iterate_shard(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                               ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_shard,
                                         .save = save_shard,
                                         .restore = restore_shard,
                                         .close = lsi_unary_iterator_close};

    if (lsi_dataset_is_hint(d)) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "shard: LS_SHARD_HINT stands for numbers that distributing the "
                        "dataset with the policy LS_SHARD_BY_HINT fills in; it cannot be "
                        "iterated before");
    }
    return lsi_unary_iterator_new(&ops, sizeof(struct shard_iterator), d, how, out, err);
}

static ls_dataset *build_shard(ls_dataset *d, int64_t shards, int64_t index,
                               bool required);

static ls_dataset *rebuild_shard(const ls_dataset *d, ls_dataset *const *inputs)
{
    const struct shard *node = (const struct shard *)d;

    return build_shard(ls_dataset_retain(inputs[0]), node->shards, node->index,
                       node->required);
}

static const lsi_dataset_ops ops = {
    .kind = "shard", .iterate = iterate_shard, .rebuild = rebuild_shard};

bool lsi_dataset_is_hint(const ls_dataset *d)
{
    return !lsi_dataset_bad(d) && d->ops == &ops &&
           ((const struct shard *)d)->shards == LS_SHARD_HINT;
}

static ls_dataset *build_shard(ls_dataset *d, int64_t shards, int64_t index,
                               bool required)
{
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct shard), &d, 1);
    struct shard *node = (struct shard *)made;
    int64_t n = LS_UNKNOWN_SIZE;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (shards != LS_SHARD_HINT && (shards <= 0 || index < 0 || index >= shards)) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                "shard: index %lld of %lld shards; there must be at "
                                "least one shard, and the index must be 0 or more and "
                                "less than their number",
                                (long long)index, (long long)shards);
    }
    node->shards = shards;
    node->index = index;
    node->required = required;
    lsi_dataset_mix_parameter(made, (uint64_t)shards);
    lsi_dataset_mix_parameter(made, (uint64_t)index);
    if (shards != LS_SHARD_HINT) {
        made->share = 31 * made->share + (uint64_t)index; // index 0: as without a shard
        n = d->cardinality < 0
                ? d->cardinality
                : d->cardinality / shards + (index < d->cardinality % shards);
    }
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec), n, NULL);
}

ls_dataset *ls_dataset_shard(ls_dataset *d, int64_t shards, int64_t index)
{
    return build_shard(d, shards, index, false);
}

ls_dataset *lsi_dataset_shard_required(ls_dataset *d, int64_t shards, int64_t index)
{
    return build_shard(d, shards, index, true);
}
