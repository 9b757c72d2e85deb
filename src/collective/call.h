/*
 * What the files of this folder share: a call as it is handed to a backend, the work that
 * carries it, the communicator, the table of a backend, and the plan of an algorithm.
 */
#ifndef LSI_CALL_H
#define LSI_CALL_H
#include "collective/collective.h"
#include "os/clock.h"
#include "os/thread.h"
#include "reduce/reduction.h"

typedef enum lsi_call_kind {
    LSI_CALL_ALL_REDUCE,
    LSI_CALL_REDUCE,
    LSI_CALL_BROADCAST,
    LSI_CALL_ALL_GATHER,
    LSI_CALL_REDUCE_SCATTER,
    LSI_CALL_ALL_TO_ALL,
    LSI_CALL_BARRIER,
    LSI_CALL_MEET,
    LSI_CALL_BATCH,   /* several calls handed over together */
    LSI_CALL_DECLINE, /* a failure in place of any collective */
    LSI_CALL_SEND,
    LSI_CALL_RECV
} lsi_call_kind;

/* "all_reduce", as in the name of the public function. */
const char *lsi_call_name(lsi_call_kind kind);

typedef enum lsi_algorithm {
    LSI_ALGORITHM_INLINE, /* direct, the data in the call itself: chosen, never named */
    LSI_ALGORITHM_DIRECT,
    LSI_ALGORITHM_TREE,
    LSI_ALGORITHM_HIERARCHICAL,
    LSI_ALGORITHM_RING
} lsi_algorithm;

const char *lsi_algorithm_name(lsi_algorithm algorithm);

/* False: no such name. */
bool lsi_algorithm_from_name(const char *name, lsi_algorithm *out);

/*
 * What the ranks agreed on when they met. Algorithms are chosen from these numbers, never
 * from what one host sees: every rank makes the same choice.
 */
typedef struct lsi_comm_agreed {
    int hosts;          /* that the ranks run on */
    int ranks_per_host; /* the most on any */
    int nodes;          /* NUMA nodes of a host that its ranks are spread over */
    int cores;          /* that the ranks of a host may use together */
} lsi_comm_agreed;

/* For a group of `ranks` threads of this process. */
lsi_comm_agreed lsi_comm_agreed_here(int ranks);

/* For a part of a group with these numbers, of `ranks` threads of one process. */
lsi_comm_agreed lsi_comm_agreed_part(const lsi_comm_agreed *whole, int ranks);

/*
 * The cheapest algorithm for `bytes` per rank. For a reduction it always adds in the
 * tree's order.
 */
lsi_algorithm lsi_algorithm_choose(lsi_call_kind kind, size_t bytes, int ranks,
                                   const lsi_comm_agreed *agreed);

enum { LSI_INLINE_MOST = 1024 }; /* bytes per rank that are sent in the call itself */

/* One operation of one rank, checked and with its defaults filled in. */
typedef struct lsi_call {
    lsi_call_kind kind;
    ls_reduce op;
    ls_dtype dtype;
    int peer;     /* the root, or the other side of send and recv; -1 */
    size_t size;  /* bytes of an element */
    size_t count; /* as the caller counts; of all pieces */
    const void *from;
    void *to;
    const size_t *counts; /* all_gather: of each rank; NULL: `count` each */
    size_t *own_counts;   /* the same, if the call keeps a copy; else NULL */
    size_t piece_count;   /* all_reduce of several */
    const lsi_comm_piece *pieces;
    int ids;      /* of the pieces: replicas behind each rank; 0 or 1: one */
    int partials; /* with several ids: partial sums of a rank, the most on any */
    lsi_algorithm algorithm;
    int subdivisions;
    size_t inlined;  /* lsi_inline_size() of it */
    const char *tag; /* names the purpose of a meeting; else NULL */
    uint64_t detail; /* a number that must be the same on every rank */
    uint64_t print;  /* in a batch: its fingerprint's detail, compared by others */
    void *partial;   /* where this rank keeps partial sums, lsi_wide_size() each; NULL */
    lsi_comm_site site;
} lsi_call;

/* Its tag, or lsi_call_name(). */
const char *lsi_call_title(const lsi_call *call);

/* Bytes that a rank sends: the largest number over all ranks. */
size_t lsi_call_bytes(const lsi_call *call, int ranks);

static inline bool lsi_call_reduces(const lsi_call *call)
{
    return call->kind == LSI_CALL_ALL_REDUCE || call->kind == LSI_CALL_REDUCE ||
           call->kind == LSI_CALL_REDUCE_SCATTER;
}

static inline size_t lsi_call_size(const lsi_call *call)
{
    return call->size;
}

/* The 32 bytes that open every collective. */
typedef struct lsi_fingerprint {
    uint16_t group, generation; /* the lower half of each number */
    uint32_t sequence;
    uint16_t what; /* kind, and the reduction's op in the upper half */
    uint16_t dtype;
    uint32_t site; /* hash of file:line; may differ between ranks */
    uint64_t count;
    uint64_t detail; /* root, algorithm, counts, tag */
} lsi_fingerprint;
_Static_assert(sizeof(lsi_fingerprint) == 32, "a fingerprint is wire format");

lsi_fingerprint lsi_fingerprint_of(const lsi_call *call, int ranks);
bool lsi_fingerprint_equal(const lsi_fingerprint *a, const lsi_fingerprint *b);

/* Fails with the difference between rank 0's call and rank r's; equal on all ranks. */
ls_status lsi_mismatch(ls_error *err, const lsi_call *first, int r,
                       const lsi_call *other);

/* A send or a receive until it is matched with its counterpart; point_to_point.c. */
typedef struct lsi_p2p_state {
    struct ls_comm_work *next; /* in the inbox */
    struct ls_comm_work *other;
    bool queued, taken;  /* guarded by the inbox's lock, as the two above */
    atomic_bool matched; /* `other` was found */
    atomic_bool done;    /* set by the rank that copied, as its last access */
    bool mismatch;       /* the two do not agree: see `why` of the work */
} lsi_p2p_state;

struct ls_comm_work {
    ls_comm *comm;
    lsi_call *calls; /* the caller's, `one`, or an array of its own */
    size_t call_count;
    lsi_call one;
    int64_t timeout_ms; /* 0: the communicator's own */
    lsi_comm_site site;
    struct ls_comm_work *before, *after; /* started, not waited for */
    struct ls_comm_work *chain;          /* of the same batch */
    bool ended;
    bool owns_calls; /* they are an array that was allocated */
    ls_status status;
    ls_error why; /* if status is not LS_OK */

    /* Used by the local backend only. */
    struct ls_comm_work *next; /* posted after this one, or free */
    bool posted;
    bool inlined;
    bool running; /* all ranks have posted the call */
    uint32_t sequence;
    int seen;          /* ranks known to have posted it */
    size_t at;         /* index of the call of the batch that runs */
    int phase;         /* of that call */
    uint32_t step;     /* phases before it, over all calls */
    uint64_t finished; /* tasks of those */
    lsi_p2p_state p2p;
};

/* The failure that broke a group: the first one. */
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

/*
 * A backend. comm.c has checked the arguments, filled in the defaults and refused calls
 * on a broken communicator.
 */
typedef struct lsi_backend {
    const char *name;

    /* Accepts the work's calls. Never blocks; on failure nothing was sent. */
    ls_status (*post)(ls_comm *comm, ls_comm_work *work, ls_error *err);

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
    ls_comm_work *works; /* started, not waited for */
    ls_comm_work *spare; /* free, to be used again */
};

/* Deadline of a wait that begins now. */
lsi_deadline lsi_comm_deadline(const ls_comm *comm, const ls_comm_work *work);

/*
 * Ends `work`; `why` NULL: it succeeded. Frees what its calls own, and an array of calls
 * that was not posted.
 */
void lsi_work_end(ls_comm_work *work, const ls_error *why);

/* Forgets the calls of a batch that is open, if any, and ends it. */
void lsi_comm_forget_batch(ls_comm *comm);

/* Posts a call and waits for it. */
ls_status lsi_comm_run(ls_comm *comm, lsi_call *call, int64_t timeout_ms, ls_error *err);

/* Chooses the algorithm and fills in what must agree between ranks. */
ls_status lsi_call_prepare(const ls_comm *comm, lsi_call *call,
                           const ls_comm_options *opts, ls_error *err);

/*
 * Runs a call whose arguments were checked: at once, at the end of the batch, or (out is
 * not NULL) as a started work.
 */
ls_status lsi_comm_call(ls_comm *comm, lsi_call *call, const ls_comm_options *opts,
                        ls_comm_work **out, ls_error *err);

/* Copies the options; fields that an older caller does not know get their defaults. */
ls_status lsi_comm_options_copy(const ls_comm_options *from, ls_comm_options *to,
                                ls_error *err);

/*
 * One collective call of all ranks, as the algorithms see it when every rank has posted
 * it. It is cut into phases and these into tasks; any rank may run any task, the tasks of
 * a phase at the same time, a phase when the one before it is done.
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

/* Levels of the tree over `ranks` ranks: the logarithm to base 2, rounded up. */
int lsi_tree_levels(int ranks);

/* All elements of a reduction: reduce_scatter has `ranks` times `count`. */
size_t lsi_collective_total(const lsi_call *call, int ranks);

/* Large enough to be worth claiming, small enough to balance the ranks. */
enum { LSI_TASK_BYTES = 256 << 10 };

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

/* True if a rank gives partial sums of several ids. */
static inline bool lsi_call_has_ids(const lsi_call *call)
{
    return call->ids > 1;
}

/* Partial sums that rank r gives, and the most of any of `ranks` ranks. */
int lsi_call_partials_of(const lsi_call *call, int r);
int lsi_call_partials_most(const lsi_call *call, int ranks);

/* The reduction of such a call: from the partial sums of all ranks to the result. */
lsi_reduction lsi_call_partials_reduction(const lsi_call *call, int ranks);

/*
 * The failure of a rank that declines, as bytes that can travel (decline.c): returns how
 * many of LSI_REASON_MOST. Reading checks them; `from` is the rank they come from.
 */
enum { LSI_REASON_MOST = 640 };
size_t lsi_reason_write(const ls_error *why, unsigned char *bytes);
void lsi_reason_read(const unsigned char *bytes, size_t size, int from, ls_error *why);

/* Sends and completes an inlined call for rank r: payload[q] is what rank q sent. */
void lsi_inline_send(const lsi_call *call, int ranks, int r, unsigned char *payload);
void lsi_inline_finish(const lsi_call *call, int ranks, int r,
                       const unsigned char *const *payload, const void **room);
size_t lsi_inline_size(const lsi_call *call, int ranks); /* a multiple of 8 */
#endif
