/*
 * Creating a variable on several workers: all must create the same one, and it begins
 * with the value of the chief.
 */
#include "base/hash.h"
#include "variable/variable.h"

#include <string.h>

/* What must be equal on all workers. */
enum {
    NAME, /* a hash */
    SYNCHRONIZATION,
    AGGREGATION,
    TRAINABLE,
    DTYPE,
    DIMS,
    FIRST_DIM,
    NUMBERS = FIRST_DIM + LS_MAX_DIMS
};

static void describe(const ls_tensor *value, const ls_variable_options *opts,
                     int64_t *numbers)
{
    const char *name = opts->name;

    memset(numbers, 0, NUMBERS * sizeof *numbers);
    numbers[NAME] = (int64_t)lsi_hash(LSI_HASH_INIT, name, strlen(name));
    numbers[SYNCHRONIZATION] = (int64_t)opts->synchronization;
    numbers[AGGREGATION] = (int64_t)opts->aggregation;
    numbers[TRAINABLE] = opts->trainable ? 1 : opts->not_trainable ? -1 : 0;
    numbers[DTYPE] = value->dtype;
    numbers[DIMS] = value->ndim;
    for (int i = 0; i < value->ndim; i++) {
        numbers[FIRST_DIM + i] = value->dims[i];
    }
}

/* The name of the first thing that differs; NULL: nothing does. */
static const char *difference(const int64_t *a, const int64_t *b)
{
    static const char *const names[] = {"name",      "synchronization", "aggregation",
                                        "trainable", "dtype",           "shape"};

    for (int i = 0; i < NUMBERS; i++) {
        if (a[i] != b[i]) {
            return names[LSI_MIN(i, DIMS)];
        }
    }
    return NULL;
}

/* Compares with the chief's variable; the outcome is the same on all workers. */
static ls_status compare_all(const ls_variable_options *opts, const int64_t *all,
                             int workers, int rank, ls_error *err)
{
    for (int w = 1; w < workers; w++) {
        const char *what = difference(all, all + (size_t)w * NUMBERS);

        if (what != NULL) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "variable: worker %d creates a variable of another %s "
                                 "than worker 0 (here, on worker %d, it is '%s'): every "
                                 "worker must create the same variables in the same "
                                 "order",
                                 w, what, rank, opts->name);
        }
    }
    return LS_OK;
}

ls_status lsi_chief_value(ls_strategy *s, const ls_variable_options *opts,
                          const ls_tensor *value, ls_tensor **out, ls_error *err)
{
    const lsi_workers_call call = {"variable", 0, NULL, lsi_comm_take_site()};
    const int workers = lsi_workers(s), rank = ls_comm_rank(s->workers);
    int64_t mine[NUMBERS];
    int64_t *all = lsi_alloc((size_t)workers, sizeof mine);
    ls_tensor *copy = NULL;
    ls_error why = LS_ERROR_INIT;
    ls_status st = LS_OK;

    if (value->dtype == LS_STRING) {
        st = lsi_fail_kind(&why, LS_UNIMPLEMENTED, LS_KIND_RUNTIME,
                           "variable '%s': strings are not sent to other workers",
                           opts->name);
    } else if (all == NULL) {
        st = lsi_fail_memory(&why, opts->name, sizeof mine);
    }
    describe(value, opts, mine);
    st = lsi_workers_share(s, &call, mine, NUMBERS, all, st, &why, err);
    if (st == LS_OK) {
        st = compare_all(opts, all, workers, rank, err);
    }
    lsi_free(all);
    if (st != LS_OK) {
        return st;
    }
    st = ls_tensor_create(value->device, (ls_dtype)value->dtype, ls_tensor_shape(value),
                          value->data, &copy, &why);
    st = lsi_workers_broadcast(s, &call, copy == NULL ? NULL : copy->data,
                               ls_tensor_bytes(value), st, &why, err);
    if (st == LS_OK) {
        *out = copy;
    } else {
        ls_tensor_release(copy);
    }
    return st;
}
