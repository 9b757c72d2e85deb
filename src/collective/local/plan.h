/*
 * Plans, the third part of collectives: how the ranks of a local group, who can read each
 * other's memory, run a call together. Only this folder knows them.
 */
#ifndef LSI_PLAN_H
#define LSI_PLAN_H
#include "collective/call.h"

/*
 * One collective call of all ranks, as the plans see it when every rank has posted it. It
 * is cut into phases and these into tasks; any rank may run any task, the tasks of a
 * phase at the same time, a phase when the one before it is done.
 */
typedef struct lsi_collective {
    int ranks;
    int nodes; /* as the ranks agreed */
    const lsi_call *mine;
    const lsi_call *const *calls; /* of each rank */
    const void **from;            /* room for one pointer per rank, of this thread */
    void **to;
    bool *wide;
    size_t piece, piece_at; /* the piece found last, and its first element */
} lsi_collective;

typedef struct lsi_plan {
    int (*phases)(const lsi_collective *coll);
    size_t (*tasks)(const lsi_collective *coll, int phase);

    /* Runs task `task` of `tasks`. */
    void (*run)(lsi_collective *coll, int phase, size_t task, size_t tasks);
} lsi_plan;

extern const lsi_plan lsi_plan_direct, lsi_plan_tree, lsi_plan_hierarchical,
    lsi_plan_ring;                       /* reductions */
extern const lsi_plan lsi_plan_partials; /* of partial sums of several ids */
extern const lsi_plan lsi_plan_copy;     /* gathers, exchanges, broadcast from the root */
extern const lsi_plan lsi_plan_tree_broadcast;
const lsi_plan *lsi_plan_of(const lsi_call *call);

/* Elements that rank r must allocate for partial sums; 0: none. */
size_t lsi_plan_partial(const lsi_call *call, int ranks, int nodes, int r);
size_t lsi_tree_partial(const lsi_call *call, int ranks, int r);
size_t lsi_hierarchical_partial(const lsi_call *call, int ranks, int nodes, int r);
size_t lsi_ring_partial(const lsi_call *call, int ranks);

/* True if partial sums need memory of their own; false: the result buffer holds them. */
bool lsi_call_keeps_partials(const lsi_call *call);

/* All elements of a reduction: reduce_scatter has `ranks` times `count`. */
size_t lsi_collective_total(const lsi_call *call, int ranks);

/* How many tasks `total` elements are cut into: a multiple of the ranks. */
size_t lsi_collective_tasks(const lsi_collective *coll, size_t total);

/* The share [begin, end) of task `task` of `tasks`, cut at cache lines. */
void lsi_collective_share(const lsi_collective *coll, size_t total, size_t task,
                          size_t tasks, size_t *begin, size_t *end);

/*
 * Moves to element `at`; returns how many elements from there on are contiguous in every
 * rank's memory and have the same receiving ranks, at most up to `end`.
 */
size_t lsi_collective_span(lsi_collective *coll, size_t at, size_t end);

/* The address rank r reads from, and the one it gets the result at, for element `at`. */
const void *lsi_collective_source(const lsi_collective *coll, int r, size_t at);
void *lsi_collective_target(const lsi_collective *coll, int r, size_t at);

/*
 * The address of rank r's partial sum of element `at`, in the tree and hierarchical
 * plans.
 */
void *lsi_collective_partial(const lsi_collective *coll, int r, size_t at);

/* Whether rank r gets the elements of the span at `at`. */
bool lsi_collective_takes(const lsi_collective *coll, int r, size_t at);

/*
 * Fills coll->from with all sources, and coll->to with all targets: returns their number.
 */
void lsi_collective_sources(lsi_collective *coll, size_t at);
int lsi_collective_targets(lsi_collective *coll, size_t at);

/* The reduction to run; `divide`: it gives the result, not a partial sum. */
lsi_reduction lsi_collective_reduction(const lsi_collective *coll, bool divide);
#endif
