/*
 * Backends, the second part of collectives: a communicator, the work that carries calls,
 * and the table of functions that moves them. comm.c stands before every backend.
 */
#ifndef LSI_BACKEND_H
#define LSI_BACKEND_H
#include "collective/call.h"
#include "os/clock.h"
#include "os/thread.h"

/*
 * A call, or a batch of calls, from its post to its end: what every backend needs. A
 * backend's own struct begins with it (lsi_backend.work_size).
 */
struct ls_comm_work {
    ls_comm *comm;
    lsi_call *calls; /* the caller's, `one`, or an array */
    size_t call_count;
    bool batch;      /* `one` describes the batch, `calls` are its calls */
    bool owns_calls; /* `calls` is freed when the work ends */
    bool ended;
    ls_status status;   /* once it has ended */
    int64_t timeout_ms; /* 0: the communicator's own */
    lsi_comm_site site;
    lsi_call one;
    struct ls_comm_work *before, *after; /* started, not waited for; or (after) spare */
    struct ls_comm_work *chain;          /* of the same batch */
    ls_error why;                        /* if status is not LS_OK */
};

/*
 * A backend. comm.c has checked the arguments, filled in the defaults and refused calls
 * on a broken communicator.
 */
typedef struct lsi_backend {
    const char *name;
    size_t work_size; /* of its struct for a work, which begins with ls_comm_work */

    /*
     * Accepts the work's calls. Never blocks; on failure nothing was sent. Sets the
     * fields of its own struct; those of ls_comm_work are set.
     */
    ls_status (*post)(ls_comm *comm, ls_comm_work *work, ls_error *err);

    /* Advances all works of this rank as far as possible without waiting. */
    void (*progress)(ls_comm *comm);

    /* Advances works without blocking; true if `work` has ended: its status is set. */
    bool (*test)(ls_comm *comm, ls_comm_work *work);

    /* Blocks until `work` has ended. */
    void (*wait)(ls_comm *comm, ls_comm_work *work);

    /* The first failure is the group's. Any thread, never blocks. */
    void (*fail)(ls_comm *comm, const ls_error *why);

    /* True if the group is broken; *why receives the failure. Any thread. */
    bool (*broken)(ls_comm *comm, ls_error *why);

    /*
     * Generations: see collective.h. Optional: both NULL, the group has only one. renew()
     * ends all works that are left.
     */
    void (*leave)(ls_comm *comm, const ls_error *why);
    void (*renew)(ls_comm *comm);

    ls_status (*split)(ls_comm *comm, int colour, int key, lsi_comm_site site,
                       ls_comm **out, ls_error *err);
    void (*destroy)(ls_comm *comm);
} lsi_backend;

struct ls_comm {
    atomic_int refs;
    const lsi_backend *backend;
    int rank, size;
    lsi_comm_agreed agreed; /* equal on all ranks */
    int64_t timeout_ms;     /* negative: none */
    bool batching;          /* between group_begin and group_end */
    lsi_call *noted;        /* the calls of the batch so far */
    size_t noted_count, noted_room;
    ls_comm_work *blocking; /* for the call that blocks: a rank makes one at a time */
    ls_comm_work *works;    /* started, not waited for */
    ls_comm_work *spare;    /* free, to be used again */
};

/* Deadline of a wait that begins now. */
lsi_deadline lsi_comm_deadline(const ls_comm *comm, const ls_comm_work *work);

/* The call that describes a work: its only one, or that of the batch. */
static inline const lsi_call *lsi_work_call(const ls_comm_work *work)
{
    return work->batch ? &work->one : &work->calls[0];
}

/* Ends `work`; `why` NULL: it succeeded. Frees what its calls own. */
void lsi_work_end(ls_comm_work *work, const ls_error *why);

/* Forgets the calls of a batch that is open, if any, and ends it. */
void lsi_comm_forget_batch(ls_comm *comm);

/* Posts a call and waits for it. */
ls_status lsi_comm_run(ls_comm *comm, lsi_call *call, int64_t timeout_ms, ls_error *err);

/*
 * Runs a call whose arguments were checked: at once, at the end of the batch, or (out is
 * not NULL) as a started work.
 */
ls_status lsi_comm_call(ls_comm *comm, lsi_call *call, const ls_comm_options *opts,
                        ls_comm_work **out, ls_error *err);

/* ---- the failure that broke a group: the first one (group_failure.c) ---- */

typedef struct lsi_failure {
    atomic_bool set;
    lsi_mutex lock; /* guards `why` until it is set */
    ls_error why;
} lsi_failure;
void lsi_failure_init(lsi_failure *f);
void lsi_failure_destroy(lsi_failure *f);
void lsi_failure_forget(lsi_failure *f); /* no thread may be about to read it */
void lsi_failure_set(lsi_failure *f, const ls_error *why, int rank);
bool lsi_failure_get(lsi_failure *f, ls_error *why); /* false: there is none */
#endif
