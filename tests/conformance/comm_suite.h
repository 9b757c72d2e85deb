/*
 * The conformance suite of communicators: a backend provides a factory, and the suite
 * checks its groups. Ranks are threads of the test.
 */
#ifndef LST_COMM_SUITE_H
#define LST_COMM_SUITE_H
#include "lockstep/comm.h"
#include "ls_test.h"

enum { LST_MOST_RANKS = 9 };

typedef struct lst_comm_factory {
    const char *name;
    int most; /* ranks that a group may have; at least 1 */

    /* Fills out[0 .. ranks-1]; timeout_ms as in the options of a group. */
    ls_status (*make)(int ranks, int64_t timeout_ms, ls_comm **out, ls_error *err);
} lst_comm_factory;

/* The argument of a rank's thread. */
typedef struct lst_rank {
    const lst_comm_factory *factory;
    ls_comm *comm;
    int rank, size;
    void *arg;     /* the same for all */
    bool released; /* the function has released `comm` */
} lst_rank;

typedef void (*lst_rank_fn)(lst_rank *me);

/* Runs `fn` on a group, one thread per rank; true for each that has released its handle. */
void lst_run_group(const lst_comm_factory *f, ls_comm *const *comms, int size,
                   lst_rank_fn fn, void *arg, bool *released);

/* Runs `fn` on a new group, one thread per rank, and releases the group. */
void lst_run_ranks(const lst_comm_factory *f, int size, int64_t timeout_ms,
                   lst_rank_fn fn, void *arg);

/* The same for every group size up to the factory's largest. */
void lst_run_sizes(const lst_comm_factory *f, lst_rank_fn fn, void *arg);

/* The parts of the suite. */
void lst_comm_reductions(const lst_comm_factory *f);
void lst_comm_data_movement(const lst_comm_factory *f);
void lst_comm_nonblocking(const lst_comm_factory *f);
void lst_comm_faults(const lst_comm_factory *f);
void lst_comm_declining(const lst_comm_factory *f);
void lst_comm_ids(const lst_comm_factory *f);
void lst_comm_generations(const lst_comm_factory *f);

/* Late ranks are named in the log, once. Takes two seconds; needs at least two ranks. */
void lst_comm_lateness(const lst_comm_factory *f);
#endif
