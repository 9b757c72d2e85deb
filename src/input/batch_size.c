/* The global batch size of a dataset: from its spec, or by walking up the pipeline. */
#include "input/input.h"

/* Operators that do not change the size of a batch. */
static const char *const transparent[] = {
    "cache", "filter",  "options", "parse_example", "prefetch",           "repeat",
    "shard", "shuffle", "skip",    "take",          "assert_cardinality", NULL};

static const char *const batches[] = {"batch", "parallel_batch", "padded_batch", NULL};
static const char *const several[] = {"zip", "concatenate", NULL};

static int64_t find_batch_size(const ls_dataset *d)
{
    while (lsi_dataset_among(d, transparent)) {
        d = d->inputs[0];
    }
    if (lsi_dataset_among(d, batches)) {
        return lsi_dataset_batch_size(d);
    }
    if (!lsi_dataset_among(d, several)) {
        return -1;
    }
    const int64_t first = find_batch_size(d->inputs[0]);
    for (int i = 1; i < d->ninputs; i++) {
        if (find_batch_size(d->inputs[i]) != first) {
            return -1;
        }
    }
    return first;
}

/* The dim 0 that all components have; -1: they differ; -2: some are unknown. */
static int64_t common_rows(const ls_spec *s)
{
    int64_t rows = -2;

    for (size_t i = 0; i < lsi_spec_leaves(s); i++) {
        const ls_spec *leaf = lsi_spec_leaf(s, i);
        const int64_t here = leaf->ndim > 0 ? leaf->dims[0] : -1;

        if (here < 0) {
            return -2;
        }
        rows = rows == -2 || rows == here ? here : -1;
    }
    return rows;
}

ls_status lsi_batch_size(const ls_dataset *d, int64_t *out, ls_error *err)
{
    for (size_t i = 0; i < lsi_spec_leaves(d->spec); i++) {
        const ls_spec *leaf = lsi_spec_leaf(d->spec, i);

        if (leaf->kind == LS_SPEC_DATASET || leaf->ndim == 0) {
            return lsi_fail_kind(
                err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                "distribute: component %zu of the elements is %s, and "
                "only batches can be cut into parts for replicas; call "
                "ls_dataset_batch() with the global batch size first",
                i, leaf->kind == LS_SPEC_DATASET ? "a dataset" : "a scalar");
        }
    }
    const int64_t rows = common_rows(d->spec);
    *out = rows == -2 ? find_batch_size(d) : rows;
    return LS_OK;
}
