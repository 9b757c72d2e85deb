/*
 * A run: one call of ls_strategy_run(). A crew: the threads that run replicas 1 .. n-1 of
 * a strategy; replica 0 runs on the caller's thread, and so do merge functions. A merge
 * function may run replicas again: the replicas that wait for it take part in that inner
 * run meanwhile, on a level of their own, with contexts and a communicator of their own.
 */
#ifndef LSI_RUN_H
#define LSI_RUN_H
#include "replica/replica.h"

/* A variable that replica 0 created in this run. */
typedef struct lsi_created {
    char *name; /* canonical */
    lsi_object object;
    bool *given; /* one per replica: true once it has received the object */
} lsi_created;

struct lsi_run {
    ls_strategy *strategy;
    struct lsi_crew *crew;
    struct lsi_level *level;
    int n;

    /* The arguments of ls_strategy_run(). */
    ls_replica_fn fn;
    ls_value *args;
    void *user;
    bool sequential;

    /* The outcome, one per replica. */
    ls_value **results;
    ls_error *errors;
    lsi_word left;      /* replicas that have not finished */
    atomic_bool agreed; /* the last call of all workers failed on all of them alike */

    /* Merging: replica 0 increments `events`; the others then read `inner`. */
    lsi_word events;
    struct lsi_run *inner; /* not NULL: take part in this run first */
    void **shown;          /* the merge arguments, one per replica */
    ls_value *merged;
    ls_error merge_error;

    /* Sequential runs: the replica whose turn it is; the replicas that have finished. */
    lsi_word turn;
    atomic_bool *finished;

    /* Variables created in this run. */
    lsi_mutex created_lock;
    lsi_cond created_more;
    lsi_created *created;
    size_t ncreated, created_room;
    unsigned first_met; /* how many meetings replica 0 has made; UINT_MAX: it has ended */
};

/* The state of a replica in a merge_call: whether replica 0 may use its arguments. */
enum { LSI_MERGE_OUT, LSI_MERGE_IN, LSI_MERGE_CLAIMED };

/* What the other replicas read of one replica; a cache line each, as only it writes. */
typedef struct lsi_visible_state {
    _Alignas(64) atomic_int depth; /* meetings it has open to read memory */
    atomic_int merge;
    struct lsi_shown *unused; /* private to the replica: structs for its next meetings */
} lsi_visible_state;

/*
 * Structs for meetings of `n` replicas, so that those that are not nested deeper than
 * usual take no memory and cannot fail for want of it. False: out of memory.
 */
bool lsi_visible_state_fill(lsi_visible_state *visible, int n);
void lsi_visible_state_clear(lsi_visible_state *visible); /* frees the unused structs */

/* The state of the runs at one nesting depth, reused from run to run. */
typedef struct lsi_level {
    struct lsi_run run;
    ls_comm **comm;
    ls_context **context;
    ls_context *cross; /* for merge functions */
    lsi_replica *replica;
    lsi_visible_state *visible; /* one per replica */
    ls_error *ended; /* one per replica: why those fail that wait for it after its end */

    /* Agreements: see agreement.c. */
    lsi_word verdict;
    ls_error *aside; /* one per replica: the failure it keeps aside; code LS_OK: none */
    ls_error why;    /* of the last agreement that was not reached */
    atomic_int arrived; /* replicas that have come to the barrier */
    lsi_word passed;    /* counts barriers */
} lsi_level;

enum { LSI_MAX_LEVELS = 16 };

struct lsi_crew {
    ls_strategy *strategy; /* borrowed: it owns the crew */
    int n;
    int64_t spin_ns;
    lsi_mutex running;  /* held during a run that is not inside another */
    lsi_mutex aborting; /* serializes an abort with the start of a run */
    lsi_thread *threads;
    int started; /* threads started so far */
    lsi_word go; /* counts runs; the threads wait for it to change */
    atomic_bool stop;
    struct lsi_run *run; /* the run that `go` starts */
    _Atomic(lsi_level *) levels[LSI_MAX_LEVELS];

    /*
     * Random states: one per replica, then that of merge functions. Inner runs continue
     * the same streams.
     */
    ls_random_state *random;
};

/* Starts missing threads and returns the level for a run inside of `depth` others. */
ls_status lsi_crew_ready(struct lsi_crew *crew, int depth, lsi_level **out,
                         ls_error *err);

/* Runs replica `k` on this thread and marks it finished. */
void lsi_run_replica(struct lsi_run *run, int k);

/*
 * Meets the other replicas, also if the step has failed. Does not wait for this replica's
 * turn afterwards: the caller does.
 */
bool lsi_run_meet(ls_context *c, const char *what, uint64_t detail, void *mine,
                  void **all);

/* This replica is about to wait: in a sequential run the turn passes to the next one. */
void lsi_run_pause(lsi_replica *r);

/*
 * A call of this replica failed, and with it its step: breaks the group of the local
 * peers, so that those that wait in it are released now. In a sequential run this replica
 * waits for its turn next; without the release both would wait for each other.
 */
void lsi_run_fail(ls_context *c, const ls_error *why);

/*
 * Notes in the runs of `s` that this thread is in whether all workers know the outcome of
 * a call that returned `st`: a failure that left their group whole is that of all of
 * them, so the group need not break when the run ends with it. Returns `st`.
 */
ls_status lsi_workers_note(const ls_strategy *s, ls_status st);

/* Where the program calls the operation that runs now. */
lsi_comm_site lsi_site_of(const ls_context *c);

/* Turns of a sequential run; do nothing in other runs. */
void lsi_turn_wait(struct lsi_run *run, int k);
void lsi_turn_pass(struct lsi_run *run, int k);
bool lsi_turn_is(struct lsi_run *run, int k); /* it is this replica's turn */

/*
 * Replica 0 is about to wait for the others (`met` times now), or has ended (UINT_MAX):
 * it creates no variable meanwhile, so replicas that wait for one that it has not created
 * fail.
 */
void lsi_created_pause(struct lsi_run *run, unsigned met);
void lsi_created_forget(struct lsi_run *run);
#endif
