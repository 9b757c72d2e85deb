/* Several workers in one process: their threads, runtimes, communicator, strategies. */
#include "ls_workers.h"

#include "device/device.h"
#include "os/thread.h"
#include "strategy/multi_worker.h"

enum { TIMEOUT_MS = 120000 };

/* The argument of a worker's thread. */
struct seat {
    const lst_workers *how;
    lst_worker_fn fn;
    void *arg;
    lst_worker worker; /* `comm` is released when the worker ends */
    ls_comm *kept;     /* another reference to it; NULL: the worker does not stay */
    ls_error err;
    atomic_int *order; /* how many workers have failed */
    int failed;        /* the number of this failure, from 1 on; 0: none */
    lsi_thread thread;
};

static ls_status open_worker(struct seat *s, ls_error *err)
{
    ls_runtime_options machine = LS_RUNTIME_OPTIONS_INIT;
    ls_communication_options communication = LS_COMMUNICATION_OPTIONS_INIT;
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    const lsi_runtime_setup task = {.job = "worker", .task = s->worker.index};
    ls_status st;

    machine.threads = 1;
    if (s->how->runtime != NULL) {
        machine = *s->how->runtime;
    }
    machine.logical_cpus = s->worker.replicas;
    st = lsi_runtime_create_with(&machine, &task, &s->worker.runtime, err);
    if (st != LS_OK) {
        return st;
    }
    communication.timeout_seconds =
        (double)(s->how->timeout_ms > 0 ? s->how->timeout_ms : TIMEOUT_MS) / 1000;
    opts.runtime = s->worker.runtime;
    opts.communication = &communication;
    opts.sequential = s->how->sequential;
    opts.spin_us = -1; // there are more replicas than cores
    return lsi_multi_worker_create(s->worker.comm, NULL, &opts, &s->worker.strategy, err);
}

/* The other workers must not wait for one that has failed. */
static void leave_group(struct seat *s)
{
    ls_error why = LS_ERROR_INIT;

    s->failed = atomic_fetch_add(s->order, 1) + 1;
    (void)lsi_fail(&why, LS_ABORTED, s->worker.index, "worker %d has failed: %.300s",
                   s->worker.index, s->err.message);
    if (s->worker.workers > 1) {
        lsi_comm_break(s->worker.comm, &why);
    }
}

static void run_worker(void *arg)
{
    struct seat *s = arg;
    ls_status st = open_worker(s, &s->err);

    if (st == LS_OK) {
        st = s->fn(&s->worker, s->arg, &s->err);
    }
    if (st != LS_OK) {
        s->err.code = st;
        leave_group(s);
    } else {
        s->err = (ls_error)LS_ERROR_INIT;
    }
    ls_strategy_release(s->worker.strategy);
    ls_comm_release(s->worker.comm);
    ls_runtime_release(s->worker.runtime);
}

/* The failure that came first. */
static const struct seat *first_failure(const struct seat *seats, int n)
{
    const struct seat *first = NULL;

    for (int i = 0; i < n; i++) {
        if (seats[i].failed != 0 && (first == NULL || seats[i].failed < first->failed)) {
            first = &seats[i];
        }
    }
    return first;
}

/* Starts all workers and joins them. */
static void start_and_join(struct seat *seats, int n)
{
    bool started[LST_MOST_WORKERS] = {false};

    for (int i = 0; i < n; i++) {
        started[i] = lsi_thread_start(&seats[i].thread, run_worker, &seats[i],
                                      &seats[i].err, "worker-%d", i) == LS_OK;
        if (!started[i]) {
            leave_group(&seats[i]);
            ls_comm_release(seats[i].worker.comm);
        }
    }
    for (int i = 0; i < n; i++) {
        if (started[i]) {
            lsi_thread_join(&seats[i].thread);
        }
    }
    for (int i = 0; i < n; i++) {
        ls_comm_release(seats[i].kept);
    }
}

ls_status lst_workers_try(const lst_workers *how, lst_worker_fn fn, void *arg,
                          ls_error *errors, ls_error *err)
{
    ls_comm_local_options local = LS_COMM_LOCAL_OPTIONS_INIT;
    ls_comm *comms[LST_MOST_WORKERS] = {NULL};
    struct seat seats[LST_MOST_WORKERS];
    const struct seat *first;
    atomic_int order;
    ls_status st;

    if (how->workers < 1 || how->workers > LST_MOST_WORKERS) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "1 to %d workers, got %d",
                        LST_MOST_WORKERS, how->workers);
    }
    local.timeout_ms = how->timeout_ms > 0 ? how->timeout_ms : TIMEOUT_MS;
    local.spin_us = -1;
    st = ls_comm_local(how->workers, &local, comms, err);
    if (st != LS_OK) {
        return st;
    }
    atomic_init(&order, 0);
    for (int i = 0; i < how->workers; i++) {
        seats[i] = (struct seat){.how = how,
                                 .fn = fn,
                                 .arg = arg,
                                 .worker = {.index = i,
                                            .workers = how->workers,
                                            .replicas = how->replicas,
                                            .comm = comms[i]},
                                 .kept = how->stay ? ls_comm_retain(comms[i]) : NULL,
                                 .err = LS_ERROR_INIT,
                                 .order = &order};
    }
    start_and_join(seats, how->workers);
    for (int i = 0; errors != NULL && i < how->workers; i++) {
        errors[i] = seats[i].err;
    }
    first = first_failure(seats, how->workers);
    return first == NULL ? LS_OK : lsi_fail_again(err, &first->err);
}

void lst_workers_run(int workers, int replicas, lst_worker_fn fn, void *arg)
{
    const lst_workers how = {.workers = workers, .replicas = replicas};
    ls_error errors[LST_MOST_WORKERS], err = LS_ERROR_INIT;
    const ls_status st = lst_workers_try(&how, fn, arg, errors, &err);

    LST_CHECK(st == LS_OK);
    if (st != LS_OK) {
        (void)fprintf(stderr, "%d workers of %d replicas: %s: %s\n", workers, replicas,
                      ls_status_name(st), err.message);
    }
}
