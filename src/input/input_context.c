/* ls_input_context: the batch size per replica. */
#include "base/base.h"
#include "lockstep/input.h"

ls_status ls_input_context_batch(const ls_input_context *ic, int64_t global_batch,
                                 int64_t *out, ls_error *err)
{
    if (ic == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "input context: %s is NULL", ic == NULL ? "it" : "out");
    }
    if (ic->replicas < 1 || global_batch < 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "input context: a batch of %lld for %d replicas",
                             (long long)global_batch, ic->replicas);
    }
    if (global_batch % ic->replicas != 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "input context: a global batch of %lld does not divide "
                             "evenly among %d replicas",
                             (long long)global_batch, ic->replicas);
    }
    *out = global_batch / ic->replicas;
    return LS_OK;
}
