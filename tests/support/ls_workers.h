/*
 * Several workers in one process: each is a thread with a runtime of its own, one logical
 * CPU per replica, one rank of a communicator, and a MultiWorkerMirroredStrategy over it.
 *
 *     static ls_status work(const lst_worker *w, void *arg, ls_error *err)
 *     {
 *         return ls_strategy_run(w->strategy, step, NULL, arg, NULL, err);
 *     }
 *     lst_workers_run(2, 3, work, &model); // 2 workers of 3 replicas each
 *
 * Replica k of worker w has the id w * replicas + k in the sync group; its device is
 * "/job:worker/replica:0/task:w/device:CPU:k".
 */
#ifndef LS_WORKERS_H
#define LS_WORKERS_H
#include "ls_test.h"

#include "lockstep/lockstep.h"
#include "lockstep/strategy.h"

enum { LST_MOST_WORKERS = 16 };

/* One worker, on its own thread. All pointers are borrowed. */
typedef struct lst_worker {
    int index, workers; /* which one this is; how many there are */
    int replicas;       /* of each worker */
    ls_runtime *runtime;
    ls_comm
        *comm; /* its rank among the workers: the strategy's own, also with one worker */
    ls_strategy *strategy;
} lst_worker;

/*
 * What a worker does, on its thread. It releases what it retains of `w` before it returns.
 * A failure ends the worker: others that wait for it, now or later, fail with LS_ABORTED
 * and a message that names it.
 */
typedef ls_status (*lst_worker_fn)(const lst_worker *w, void *arg, ls_error *err);

/* Zero means "choose". */
typedef struct lst_workers {
    int workers, replicas;
    const ls_runtime_options *runtime; /* NULL: one thread per device; its logical_cpus is
                                          not used */
    int64_t timeout_ms;                /* of a call between workers, and of collective
                                          calls in replicas; 0: two minutes */
    bool sequential;                   /* the replicas of a worker run in turn */
    bool stay; /* a worker that has ended well stays in the group until all have ended */
} lst_workers;

/*
 * Runs `fn` on every worker and joins all threads. errors[i], of `how->workers` entries
 * (NULL: not wanted), is what worker i returned. Returns the first failure that is not
 * the consequence of another worker's, which is also copied to *err.
 */
ls_status lst_workers_try(const lst_workers *how, lst_worker_fn fn, void *arg,
                          ls_error *errors, ls_error *err);

/* The same; every failure of a worker counts as a failed check. */
void lst_workers_run(int workers, int replicas, lst_worker_fn fn, void *arg);
#endif
