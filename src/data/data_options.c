/* with_options: a node that adds options and passes elements on; merging options. */
#include "data/data.h"

#include <string.h>

struct options {
    ls_dataset base;
    ls_data_options own;
};

void lsi_data_options_merge(ls_data_options *into, const ls_data_options *more)
{
    const ls_data_options no_options = LS_DATA_OPTIONS_INIT;

    if (more->auto_shard != no_options.auto_shard) {
        into->auto_shard = more->auto_shard;
    }
    if (more->external_state != no_options.external_state) {
        into->external_state = more->external_state;
    }
    if (more->unordered != no_options.unordered) {
        into->unordered = more->unordered;
    }
    if (more->threads != no_options.threads) {
        into->threads = more->threads;
    }
}

/* The node has an iterator of its own, because saving reads the last node's options. */
static ls_status next_input(lsi_iterator *it, ls_value **out, ls_error *err)
{
    return lsi_iterator_next(((lsi_unary_iterator *)it)->input, out, err);
}

static ls_status fill_input(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                            int64_t *got, ls_error *err)
{
    return lsi_iterator_fill(((lsi_unary_iterator *)it)->input, rows, want, got, err);
}

static ls_status iterate_options(ls_dataset *d, const lsi_opening *how,
                                 lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_input,
                                         .fill = fill_input,
                                         .skip = lsi_unary_iterator_skip,
                                         .save = lsi_unary_iterator_save,
                                         .restore = lsi_unary_iterator_restore,
                                         .close = lsi_unary_iterator_close};

    return lsi_unary_iterator_new(&ops, sizeof(lsi_unary_iterator), d, how, out, err);
}

static ls_dataset *rebuild_options(const ls_dataset *d, ls_dataset *const *inputs)
{
    return ls_dataset_with_options(ls_dataset_retain(inputs[0]),
                                   &((const struct options *)d)->own);
}

static bool options_valid(const ls_data_options *o)
{
    return o->auto_shard >= LS_SHARD_OFF && o->auto_shard <= LS_SHARD_BY_HINT &&
           (unsigned)o->external_state <= LS_STATE_FAIL && o->threads >= 0;
}

ls_dataset *ls_dataset_with_options(ls_dataset *d, const ls_data_options *opts)
{
    static const lsi_dataset_ops ops = {
        .kind = "options", .iterate = iterate_options, .rebuild = rebuild_options};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct options), &d, 1);
    struct options *node = (struct options *)made;

    if (lsi_dataset_bad(made)) {
        return made;
    }
    node->own = (ls_data_options)LS_DATA_OPTIONS_INIT;
    if (opts != NULL) {
        memcpy(&node->own, opts, LSI_MIN(opts->struct_size, sizeof node->own));
        node->own.struct_size = sizeof node->own;
    }
    if (!options_valid(&node->own)) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "options: auto_shard %d, external_state %d or threads %d "
                                "is not a valid value",
                                (int)node->own.auto_shard, (int)node->own.external_state,
                                node->own.threads);
    }
    lsi_data_options_merge(&made->options, &node->own);
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec), d->cardinality, NULL);
}
