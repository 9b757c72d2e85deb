/* MultiWorkerMirroredStrategy over workers that have met already. */
#ifndef LSI_MULTI_WORKER_H
#define LSI_MULTI_WORKER_H
#include "replica/strategy.h"

/*
 * One replica per device of each worker. `workers` is retained; this process is its rank
 * there, and rank 0 is the chief. Every worker calls it, with the same number of devices:
 * `devices` as in ls_mirrored_create(). Blocks until all workers have called it.
 * LS_INVALID_ARGUMENT on all of them: the numbers differ.
 */
ls_status lsi_multi_worker_create(ls_comm *workers, const char *devices,
                                  const ls_strategy_options *opts, ls_strategy **out,
                                  ls_error *err);
#endif
