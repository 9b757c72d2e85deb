/*
 * lockstep/input.h - the input context: the argument of a function that makes a worker's
 * dataset (ls_strategy_distribute_from_function() in lockstep/distribute.h).
 *
 * Threads: any.
 */
#ifndef LS_INPUT_H
#define LS_INPUT_H

#include "lockstep/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* InputContext. */
typedef struct ls_input_context {
    int pipelines;   /* input pipelines of the job, one per worker */
    int pipeline_id; /* 0 .. pipelines-1: which of them this is */
    int replicas;    /* replicas in sync, of all workers */
} ls_input_context;

/*
 * The size of the part of a global batch that one replica gets. LS_INVALID_ARGUMENT (kind
 * value): the batch does not divide evenly.
 */
LS_API LS_MUST_USE ls_status ls_input_context_batch(const ls_input_context *ic,
                                                    int64_t global_batch, int64_t *out,
                                                    ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_INPUT_H */
