/*
 * Replicas: which strategy and replica a thread is in, the threads that run replicas, and
 * how replicas synchronize.
 */
#ifndef LSI_REPLICA_H
#define LSI_REPLICA_H
#include "collective/collective.h"
#include "grad/grad.h"
#include "os/thread.h"
#include "replica/strategy.h"
#include "value/value.h"

/* One ls_strategy_run(): see run.c. */
struct lsi_run;

/* What a replica's context carries (ls_context.replica). */
typedef struct lsi_replica {
    ls_strategy *strategy;
    struct lsi_run *run; /* NULL: outside of a run */
    int index;           /* index among its local peers */
    int id;              /* index in the sync group */
    ls_comm *local;      /* of the local peers; NULL: outside of a run */
    unsigned met;        /* how many meetings and collective calls it made in this run */
    unsigned agreements; /* how many of lsi_agree() */
} lsi_replica;

static inline lsi_replica *lsi_replica_of(const ls_context *c)
{
    return c == NULL ? NULL : c->replica;
}

/* ---- modes (mode.c) ---- */

/*
 * The mode of a thread: one entry of its stack. Stored on the stack of the function that
 * pushes it.
 */
typedef struct lsi_mode {
    struct lsi_mode *outer;
    ls_strategy *strategy;
    bool cross;          /* else inside the replica of `context` */
    ls_context *context; /* the replica's, or the merge function's; NULL: none */
    struct lsi_run *run; /* a merge function's run; NULL: none */
    struct lsi_scope *scopes;
} lsi_mode;

void lsi_mode_push(lsi_mode *m); /* the caller has filled in the other fields */
void lsi_mode_pop(lsi_mode *m);  /* closes the scopes that were left open inside */

/* The innermost mode; NULL: default mode. */
const lsi_mode *lsi_mode_now(void);

/* The component that an update function works on; -1: this is no update. */
int lsi_update_id(void);
int lsi_update_id_set(int id); /* returns the former one, to be restored */

/* True between ls_sync_on_read_enter() and _exit(). */
bool lsi_sync_on_read(void);

/*
 * LS_OK in default mode and in the cross-replica context of `s`; else
 * LS_FAILED_PRECONDITION (kind runtime) that says what to do instead: `hint` for replica
 * functions, NULL: merge_call.
 */
ls_status lsi_require_cross(const ls_strategy *s, const char *what, const char *hint,
                            ls_error *err);

/* Fails with: the current strategy is not `s`. */
ls_status lsi_wrong_strategy(const ls_strategy *s, const char *what, ls_error *err);

/* Enters the scope of `s` for a call; pairs with lsi_scope_leave(). */
ls_status lsi_scope_visit(ls_strategy *s, lsi_mode *m, bool *pushed, ls_error *err);
void lsi_scope_leave(lsi_mode *m, bool pushed);

/* ---- scopes (scope.c) ---- */

/* The name with the name scopes of this thread in front: yours to lsi_free(). */
char *lsi_scoped_name(const char *name);

/* The device of the innermost device scope; NULL: none. */
ls_device *lsi_scope_device(void);

/*
 * The object of the innermost colocation scope; NULL: none. It is a variable, which this
 * layer knows by its table only.
 */
ls_status lsi_scope_open_object(void *object, const lsi_object_ops *ops, ls_error *err);
ls_status lsi_scope_close_object(ls_error *err);
void *lsi_scope_object(void);

/* True if the default strategy's scope is open below another strategy's. */
bool lsi_scope_mixed(void);

/*
 * The innermost creator, or NULL: ls_variable_create() calls it first. A creator scope
 * that was opened before the strategy's scope is outside of the strategy: the strategy
 * calls those creators for each copy that it makes of a variable.
 */
struct lsi_scope *lsi_scope_creator(void);
struct lsi_scope *lsi_scope_creator_outside(void);
ls_creator_fn lsi_creator_fn(const struct lsi_scope *s, void **user);
struct lsi_scope *lsi_creator_outer(const struct lsi_scope *s); /* on the same side */

/* ---- meetings (meeting.c) ---- */

/*
 * A meeting: every replica of a run shows the others a pointer.
 *
 *     lsi_meeting m;
 *
 *     if (lsi_meeting_open(c, "all_gather", axis, mine, LSI_UNTIL_CLOSE, &m)) {
 *         ... lsi_meeting_peer(&m, r) is what replica r shows, 0 <= r < m.n ...
 *     }
 *     lsi_meeting_close(&m);
 *
 * All replicas make the same calls in the same order, with the same `what` and `detail`.
 * open() fails the context and returns false if not all of them call it, or if the step
 * has failed already; a failure breaks the communicator, so that no replica waits for
 * this one. close() follows every open(), allocates nothing and cannot fail. Between the
 * two, replicas may meet again.
 *
 * What a replica shows stays valid
 *   LSI_UNTIL_CLOSE     until its close() returns; it may be on the stack. close()
 *                       waits until all replicas have closed. If the run is broken (a
 *                       replica has ended, an abort, a deadline), it waits for those
 *                       that still read.
 *   LSI_UNTIL_RUN_ENDS  as long as the run: it is from lsi_meeting_room() and kept by
 *                       lsi_meeting_keep(). close() does not wait.
 */
typedef enum lsi_lifetime { LSI_UNTIL_CLOSE, LSI_UNTIL_RUN_ENDS } lsi_lifetime;

typedef struct lsi_meeting {
    ls_context *context;
    const char *what;
    int n; /* replicas that meet */
    lsi_lifetime lifetime;
    void *mine;
    struct lsi_shown *shown; /* NULL: this is the only replica */
    int depth;               /* meetings this replica has open, this one included */
    bool met;
} lsi_meeting;

bool lsi_meeting_open(ls_context *c, const char *what, uint64_t detail, void *mine,
                      lsi_lifetime lifetime, lsi_meeting *m);
void *lsi_meeting_peer(const lsi_meeting *m, int r);
void lsi_meeting_close(lsi_meeting *m);

/* Waits until all replicas have called it; no memory is shown. False: as open(). */
bool lsi_meeting_wait(ls_context *c, const char *what, uint64_t detail);

/* ---- agreements (agreement.c) ---- */

/*
 * A step that is taken on all local peers or on none. While it is prepared a failure is
 * data: the replica keeps it aside and goes on to meet the others, so that their group
 * stays whole.
 *
 *     lsi_aside_clear(c);
 *     ... what may fail, and meetings; lsi_aside_keep(c) after each part ...
 *     if (lsi_agree(c, "apply_gradients", decide, arg)) {
 *         ... what cannot fail, on every local peer; lsi_barrier(c) between parts ...
 *     }
 *
 * After lsi_agree() was true neither an abort nor a deadline is looked at until the step
 * is done.
 */

/* Forgets what was kept aside. */
void lsi_aside_clear(ls_context *c);

/*
 * Moves a failure of the context aside; the first one stays. True: this replica has
 * failed since lsi_aside_clear(). Outside of runs, and if the group of the local peers is
 * broken, the failure stays in the context, which meets no more.
 */
bool lsi_aside_keep(ls_context *c);

/*
 * All local peers meet; then local replica 0 calls decide(), with the failure of the
 * lowest peer that keeps one aside (NULL: none does; otherwise it must fail). True on all
 * peers if it returns LS_OK; false on all, with *err in every context, if not. False on
 * all as well if they do not all meet, with that failure. decide() may call what the
 * workers do together.
 */
typedef ls_status (*lsi_decide_fn)(void *arg, const ls_error *failed, ls_error *err);
bool lsi_agree(ls_context *c, const char *what, lsi_decide_fn decide, void *arg);

/*
 * Waits until all local peers have called it: cannot fail. Used only after lsi_agree()
 * was true, where every peer comes.
 */
void lsi_barrier(ls_context *c);

/*
 * Zeroed memory that lives until the run ends; and retains a tensor until then. NULL,
 * false: the context has failed.
 */
void *lsi_meeting_room(ls_context *c, size_t bytes);
bool lsi_meeting_keep(ls_context *c, ls_tensor *t);

/*
 * True if this thread is inside the replica of `c`; else fails the context as
 * ls_merge_call() documents.
 */
bool lsi_require_replica(ls_context *c, const char *what);

/*
 * The local peers of the replica of `c`: the replicas of this process, threads that may
 * show each other memory; 1 if there are no others.
 */
int lsi_local_peers(const ls_context *c);

/*
 * The sync group of the replica of `c`: the replicas of all workers, which sums go over;
 * 1 if there are no others.
 */
int lsi_sync_replicas(const ls_context *c);

/* Sum or mean of `n` dense tensors of one dtype over the sync group, into outs[i]. */
bool lsi_all_reduce_tensors(ls_context *c, ls_reduce op, ls_tensor *const *ts, size_t n,
                            const ls_communication_options *opts, ls_tensor **outs);

/* A tensor of the step, its elements not set; NULL: the step has failed. */
ls_tensor *lsi_context_tensor(ls_context *c, ls_dtype dtype, const ls_shape *shape);

/* ---- gathering (gathering.c) ---- */

/*
 * What every replica of the sync group gives: a tensor, dense or sparse, whatever its
 * shape. Those of local peers are theirs, those of other workers copies.
 *
 *     if (lsi_gathering_open(c, "all_gather", axis, t, &g)) {
 *         ... g.t[id], 0 <= id < g.n ...
 *     }
 *     lsi_gathering_close(&g);
 *
 * A meeting otherwise (LSI_UNTIL_CLOSE): close() follows every open(), and what it holds
 * is valid until then.
 */
typedef struct lsi_gathering {
    int n; /* replicas of the sync group */
    ls_tensor **t;
    lsi_meeting local, all; /* `all`: local replica 0 shows its own gathering */
    ls_tensor **made;       /* the list, if this replica allocated it */
    bool retained;          /* its tensors are this replica's to release */
    ls_error why;           /* of local replica 0: why there is none */
    ls_tensor *few[16];
} lsi_gathering;

bool lsi_gathering_open(ls_context *c, const char *what, uint64_t detail, ls_tensor *t,
                        lsi_gathering *g);
void lsi_gathering_close(lsi_gathering *g);

/*
 * Sum or mean over the workers of what all local peers have alike: it counts once for
 * each worker. Dense. NULL: the context has failed.
 */
ls_tensor *lsi_reduce_alike(ls_context *c, ls_reduce op, ls_tensor *t);

/* ---- the step over workers (workers.c, workers_sums.c, workers_gather.c) ---- */

/*
 * What follows is called by one thread per worker: that of the first local replica, in a
 * run and in its merge functions, or the program's own outside of runs. All workers make
 * the same calls in the same order.
 *
 * `st` and `why` are the outcome of what the worker did before: if it is a failure, the
 * worker takes part with that in place of data, the call fails with it on all workers,
 * and their group stays whole. Death, mismatch, a deadline and an abort break it, and so
 * does a run that fails with what other workers do not know.
 */

/* The number of workers of `s`; 1: there are no others, and no step over workers. */
int lsi_workers(const ls_strategy *s);

/* What a call of all workers says of itself. */
typedef struct lsi_workers_call {
    const char *what; /* its name in messages: the same on all workers */
    uint64_t detail;  /* what else must be equal on all workers, such as an axis */
    const ls_communication_options *opts; /* NULL: those of the strategy */
    lsi_comm_site site;
} lsi_workers_call;

/*
 * A sum over the ids of all workers. Each worker holds `ids` of them: [rank * ids,
 * (rank + 1) * ids). With one id, from[] holds its elements; with more, the partial sums
 * of lsi_partials_of() that range, one after the other, `count` elements of
 * lsi_wide_size() each. to[] gets the result, of the dtype's own size.
 */
typedef struct lsi_workers_sum {
    lsi_workers_call call;
    ls_reduce op;
    ls_dtype dtype;
    int ids;
    const lsi_comm_piece *pieces;
    size_t n;
} lsi_workers_sum;
ls_status lsi_workers_reduce(ls_strategy *s, const lsi_workers_sum *sum, ls_status st,
                             const ls_error *why, ls_error *err);

/* How many partial sums this worker holds, if it has `ids` ids. */
int lsi_workers_partials(const ls_strategy *s, int ids);

/* `ids` buffers of `count` elements, by id, and the buffer of their sum. */
typedef struct lsi_workers_value {
    const void *const *from;
    void *to;
    size_t count;
} lsi_workers_value;

/*
 * The same from the values of the ids: makes the partial sums, in memory of `device`.
 * sum->pieces and sum->n are not used.
 */
ls_status lsi_workers_sum_values(ls_strategy *s, const lsi_workers_sum *sum,
                                 const lsi_workers_value *values, size_t n,
                                 ls_device *device, ls_status st, const ls_error *why,
                                 ls_error *err);

/*
 * The tensors of all workers: `n` of each, those of worker w at all[w * n], in the order
 * of the workers. This worker's own are retained, the others are created on `device`;
 * dense or sparse, not of strings. The caller releases all of them.
 */
ls_status lsi_workers_gather(ls_strategy *s, const lsi_workers_call *call,
                             ls_tensor *const *mine, size_t n, ls_device *device,
                             ls_tensor **all, ls_status st, const ls_error *why,
                             ls_error *err);

/* Makes `bytes` at `data` on every worker those of the chief, rank 0. */
ls_status lsi_workers_broadcast(ls_strategy *s, const lsi_workers_call *call, void *data,
                                size_t bytes, ls_status st, const ls_error *why,
                                ls_error *err);

/* The `count` numbers of each worker, in the order of the workers. */
ls_status lsi_workers_share(ls_strategy *s, const lsi_workers_call *call,
                            const int64_t *mine, size_t count, int64_t *all, ls_status st,
                            const ls_error *why, ls_error *err);

/*
 * Whether the last call of all workers in the run of `c` failed on all of them alike:
 * then none of them makes the next call of a step that ends with that failure. The first
 * forgets the outcome of earlier calls; by the thread that makes the calls.
 */
void lsi_workers_forget(const ls_context *c);
bool lsi_workers_agreed(const ls_context *c);

/* Takes part in the next call of the workers with the failure `why`; returns it. */
ls_status lsi_workers_decline(ls_strategy *s, const lsi_workers_call *call,
                              const ls_error *why, ls_error *err);

/* ---- objects created inside of replicas (create_once.c) ---- */

/*
 * Replica 0 creates an object (a variable) by `create`; the other replicas get the same
 * object when they ask for the same canonical name, in the same order. The caller
 * releases the result.
 */
typedef ls_status (*lsi_object_fn)(void *arg, void **out, ls_error *err);
ls_status lsi_create_once(ls_context *c, const char *name, lsi_object_fn create,
                          void *arg, const lsi_object_ops *ops, void **out,
                          ls_error *err);

/* ---- random numbers (replica_random.c) ---- */

/*
 * The random state of the caller of an update function: the merge function's or, outside
 * of runs, the thread's; NULL: out of memory.
 */
ls_random_state *lsi_callers_random(void);

/* ---- values in a step (step_value.c) ---- */

/* Item `i` of a structure, a leaf being its own item 0; NULL: the context has failed. */
ls_value *lsi_value_item(ls_context *c, ls_value *v, size_t i);

/* ---- crews (crew.c) ---- */
ls_status lsi_crew_create(ls_strategy *s, struct lsi_crew **out, ls_error *err);
void lsi_crew_release(struct lsi_crew *crew); /* joins the threads; NULL is allowed */
#endif
