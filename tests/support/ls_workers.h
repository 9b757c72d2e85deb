/*
 * Workers of a test: threads of one process, each with a runtime, a rank of a local group,
 * and a strategy over all of them.
 */
#ifndef LS_WORKERS_H
#define LS_WORKERS_H
#include "ls_test.h"

#include "strategy/multi_worker.h"

/*
 * The runtime and the strategy of the worker that is this rank of `comm`, with `replicas`
 * devices; the caller releases both. Waits until all ranks have called it.
 */
static inline void lst_worker_open(ls_comm *comm, int replicas, ls_runtime **rt,
                                   ls_strategy **s)
{
    ls_runtime_options ro = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;

    ro.logical_cpus = replicas;
    ro.threads = 1;
    LST_OK(ls_runtime_create(&ro, rt, &err));
    so.runtime = *rt;
    LST_OK(lsi_multi_worker_create(comm, NULL, &so, s, &err));
}
#endif
