/*
 * The local backend: a group of threads. Each rank has a slot that only it writes to: a
 * queue of entries, one per call, which holds the call and the addresses of its buffers.
 * A collective begins when every rank has posted its entry with the same sequence number;
 * each rank that polls after that compares the entries and runs tasks until none is left.
 *
 * A waiting rank spins for a while, then stores in its slot what it waits for and sleeps
 * on the slot's bell. A rank that makes such a condition true checks for sleepers. Both
 * use sequentially consistent order, so at least one of the two sees the other.
 */
#ifndef LSI_LOCAL_H
#define LSI_LOCAL_H
#include "collective/call.h"

enum {
    LSI_CALLS_AHEAD = 16, /* calls that a rank may be ahead of the slowest */
    LSI_NEAR = 24,        /* bytes that share a cache line with the fingerprint */
    LSI_LOCAL_MOST = 1024 /* ranks */
};

/* What a sleeping rank waits for. */
enum {
    LSI_WANTS_ARRIVAL = 1, /* the last rank of a collective */
    LSI_WANTS_TASKS = 2,   /* the last task of a phase */
    LSI_WANTS_ROOM = 4,    /* a free entry: a slow rank still uses the oldest */
    LSI_WANTS_P2P = 8,
    LSI_WANTS_ALL = 15
};

typedef struct lsi_entry {
    _Alignas(64) atomic_uint posted; /* sequence + 1 once the entry is complete */
    lsi_fingerprint print;
    unsigned char near[LSI_NEAR];
    _Alignas(64) lsi_call one; /* the call, or a summary of a batch */
    const lsi_call *calls;     /* `one`, or an array */
    lsi_call *owned;           /* that array, freed when the entry is reused */
    _Alignas(64) unsigned char far[LSI_INLINE_MOST];
} lsi_entry;

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): it keeps cache lines apart
typedef struct lsi_slot {
    _Alignas(64) atomic_uint finished; /* calls that this rank has finished */
    atomic_int last_kind; /* of the last call, for messages of waiting ranks */
    _Atomic(const char *) last_file;
    atomic_int last_line;

    _Alignas(64) lsi_word bell;
    atomic_uint wants; /* LSI_WANTS_...; 0: awake */

    _Alignas(64) atomic_bool busy; /* reads or writes buffers of other ranks now */
    atomic_bool gone;              /* its handle was released */
    atomic_uint left;              /* generation + 1: it has ended its part of that */
    const ls_error *why;           /* what ranks that wait for it fail with then */

    struct {
        _Alignas(64) _Atomic uint64_t next; /* step << 32 | the next task of its share */
    } claims[LSI_CALLS_AHEAD];
    lsi_entry queue[LSI_CALLS_AHEAD];
} lsi_slot;

enum { LSI_P2P_QUEUES = 32 };

/* Sends or receives that are not matched yet, the oldest first. */
typedef struct lsi_p2p_queue {
    ls_comm_work *first, *last;
} lsi_p2p_queue;

/*
 * Sends to one rank, and its receives, that are not matched yet. The queue is chosen by
 * the sender's rank modulo their number, so that a search sees few that do not match.
 */
typedef struct lsi_p2p_inbox {
    lsi_mutex lock;
    size_t waiting; /* in all queues */
    lsi_p2p_queue sends[LSI_P2P_QUEUES], receives[LSI_P2P_QUEUES];
} lsi_p2p_inbox;

typedef struct lsi_local_comm lsi_local_comm;

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): it keeps cache lines apart
typedef struct lsi_local_group {
    atomic_int refs; /* handles */
    int size;
    uint32_t id;
    unsigned generation; /* changes only while no rank is inside a call */
    lsi_comm_agreed agreed;
    int64_t timeout_ms;
    int spin_us; /* as in the options, for groups that are split off */
    int64_t spin_ns;
    bool crowded; /* more ranks than cores: yield the core instead of spinning */
    lsi_failure failure;
    lsi_slot *slots;
    lsi_p2p_inbox *inboxes;
    lsi_local_comm **handles; /* NULL: released */
    struct lsi_local_group
        *orphans; /* groups whose split failed, guarded by failure.lock */
    struct lsi_local_group *sibling;
    struct {
        _Alignas(64) _Atomic uint64_t done; /* tasks of all phases so far */
    } stages[LSI_CALLS_AHEAD];
    _Alignas(64) atomic_uint sleepers;
} lsi_local_group;

struct lsi_local_comm {
    ls_comm base;
    lsi_local_group *group;
    uint32_t next;              /* sequence number of the next collective */
    uint32_t room;              /* every rank has finished this many, at least */
    ls_comm_work *first, *last; /* collectives that have not ended, in order */
    ls_comm_work *unposted;     /* the first of them that has no entry yet */
    uint64_t moves;             /* counts every step of progress */
    lsi_collective coll;        /* of the first */
    const lsi_call **calls;     /* what `coll` refers to */
    atomic_bool taken;          /* a rank owns this handle */
};

extern const lsi_backend lsi_backend_local;

ls_status lsi_local_create(int ranks, const ls_comm_local_options *opts, uint32_t id,
                           const lsi_comm_agreed *agreed, ls_comm **out,
                           lsi_local_group **group, ls_error *err);

/* Hands a group whose split failed to `parent`: handles not taken end with `parent`. */
void lsi_local_adopt(lsi_local_group *parent, lsi_local_group *orphan);

/* Wakes the sleeping ranks that wait for any of `what`. */
void lsi_local_wake(lsi_local_group *group, unsigned what);

/* Advances the collectives of this rank as far as possible without waiting. */
void lsi_local_progress(lsi_local_comm *c);

/* Entries of the backend: see lsi_backend. */
ls_status lsi_local_post(ls_comm *comm, ls_comm_work *work, ls_error *err);
bool lsi_local_test(ls_comm *comm, ls_comm_work *work);

/* Blocks until `work` has ended. */
void lsi_local_wait(ls_comm *comm, ls_comm_work *work);

void lsi_p2p_post(lsi_local_comm *c, ls_comm_work *work);
bool lsi_p2p_test(lsi_local_comm *c, ls_comm_work *work);

/* Ends all works in the inbox of a group that is renewed; no rank is inside a call. */
void lsi_p2p_clear(lsi_p2p_inbox *inbox, const ls_error *why);

/* Removes a send or receive after the failure `why`, and ends it. */
void lsi_p2p_withdraw(lsi_local_comm *c, ls_comm_work *work, const ls_error *why);

ls_status lsi_local_split(ls_comm *comm, int colour, int key, lsi_comm_site site,
                          ls_comm **out, ls_error *err);

static inline bool lsi_work_is_p2p(const ls_comm_work *work)
{
    return work->calls[0].kind == LSI_CALL_SEND || work->calls[0].kind == LSI_CALL_RECV;
}

static inline lsi_local_comm *lsi_local_of(ls_comm *comm)
{
    return (lsi_local_comm *)(void *)comm;
}

static inline lsi_entry *lsi_entry_of(lsi_local_group *group, int rank, uint32_t sequence)
{
    return &group->slots[rank].queue[sequence % LSI_CALLS_AHEAD];
}

/* True if `rank` has posted its call of that number. */
static inline bool lsi_local_has_come(lsi_local_group *group, int rank, uint32_t sequence)
{
    return atomic_load(&lsi_entry_of(group, rank, sequence)->posted) == sequence + 1;
}
#endif
