/* Sizes of the parts of a global batch: they differ by at most one row. */
#include "input/input.h"

ls_status ls_batch_sizes(int64_t global_batch, int workers, int replicas, int worker,
                         int64_t *sizes, ls_error *err)
{
    if (global_batch < 0 || workers < 1 || replicas < 1 || worker < 0 ||
        worker >= workers || sizes == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "batch sizes: a batch of %lld for worker %d of %d with %d "
                             "replicas each%s",
                             (long long)global_batch, worker, workers, replicas,
                             sizes == NULL ? "; sizes is NULL" : "");
    }
    // Rotated by worker: at each step the parts of all replicas add up to the batch.
    const int64_t n = (int64_t)workers * replicas, first = (int64_t)worker * replicas;
    for (int64_t i = 0; i < n; i++) {
        sizes[i] = global_batch / n + ((i + first) % n < global_batch % n ? 1 : 0);
    }
    return LS_OK;
}
