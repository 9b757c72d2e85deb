/*
 * One suite for every communicator: a backend gives a factory, the suite says what must
 * be true of its groups. Ranks are threads of the test.
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

/* What a rank's thread is given. */
typedef struct lst_rank {
    const lst_comm_factory *factory;
    ls_comm *comm;
    int rank, size;
    void *arg;     /* the same for all */
    bool released; /* the function has released `comm` */
} lst_rank;

typedef void (*lst_rank_fn)(lst_rank *me);

/* Runs fn on a fresh group, a thread a rank, and releases the group. */
void lst_run_ranks(const lst_comm_factory *f, int size, int64_t timeout_ms,
                   lst_rank_fn fn, void *arg);

/* The same for every size that the factory has. */
void lst_run_sizes(const lst_comm_factory *f, lst_rank_fn fn, void *arg);

/* The parts of the suite. */
void lst_comm_reductions(const lst_comm_factory *f);
void lst_comm_moves(const lst_comm_factory *f);
void lst_comm_works(const lst_comm_factory *f);
void lst_comm_faults(const lst_comm_factory *f);

/* Who is late is named, once. Takes two seconds; of at least two ranks. */
void lst_comm_lateness(const lst_comm_factory *f);
#endif
