/*
 * A group of threads. Each rank has a slot that it alone writes to: a ring of entries,
 * one a call, which says what the rank wants and where its buffers are. A collective
 * begins when every rank's entry of the same sequence number is there; whoever looks then
 * compares them, and does as many of its tasks as the others leave.
 *
 * A rank that waits spins for a while, then sleeps on the bell of its slot, having said
 * what would wake it. Whoever makes such a thing true looks whether anybody sleeps: one
 * of the two sees the other, because both do so in a sequentially consistent order.
 */
#ifndef LSI_LOCAL_H
#define LSI_LOCAL_H
#include "collective/call.h"

enum {
    LSI_QUEUE_LENGTH = 16, /* calls that a rank may be ahead of the slowest */
    LSI_NEAR = 24,         /* bytes that share a cache line with the fingerprint */
    LSI_LOCAL_MOST = 1024  /* ranks */
};

/* What a sleeping rank waits for. */
enum {
    LSI_WANTS_ARRIVAL = 1, /* the last rank of a collective */
    LSI_WANTS_TASKS = 2,   /* the last task of a phase */
    LSI_WANTS_ROOM = 4,    /* in the rings of the others */
    LSI_WANTS_P2P = 8,
    LSI_WANTS_ALL = 15
};

typedef struct lsi_entry {
    _Alignas(64) atomic_uint posted; /* sequence + 1: it is complete */
    lsi_fingerprint print;
    unsigned char near[LSI_NEAR];
    _Alignas(64) lsi_call one; /* the call, or what stands for several */
    const lsi_call *calls;     /* `one`, or an array */
    lsi_call *owned;           /* that array, freed when the entry is used again */
    _Alignas(64) unsigned char far[LSI_INLINE_MOST];
} lsi_entry;

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): it keeps cache lines apart
typedef struct lsi_slot {
    _Alignas(64) atomic_uint finished; /* calls that this rank is through with */
    atomic_int last_kind;              /* of the last call, for those who wait for it */
    _Atomic(const char *) last_file;
    atomic_int last_line;

    _Alignas(64) lsi_word bell;
    atomic_uint wants; /* nothing: awake */

    _Alignas(64) atomic_bool busy; /* touches buffers of others just now */
    atomic_bool gone;              /* its handle was released */

    struct {
        _Alignas(64) _Atomic uint64_t next; /* step << 32 | the next task of its share */
    } claims[LSI_QUEUE_LENGTH];
    lsi_entry queue[LSI_QUEUE_LENGTH];
} lsi_slot;

enum { LSI_P2P_QUEUES = 32 };

/* Sends or receives between one rank and some others, the oldest first. */
typedef struct lsi_p2p_queue {
    ls_comm_work *first, *last;
} lsi_p2p_queue;

/*
 * Sends to one rank, and its receives, that have not found their other half: a queue for
 * each sender's rank, counted round, so that a search sees few that do not match.
 */
typedef struct lsi_p2p_inbox {
    lsi_mutex lock;
    bool used; /* something has waited here since it was cleared */
    lsi_p2p_queue sends[LSI_P2P_QUEUES], receives[LSI_P2P_QUEUES];
} lsi_p2p_inbox;

typedef struct lsi_local_comm lsi_local_comm;

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): it keeps cache lines apart
typedef struct lsi_local_group {
    atomic_int refs; /* handles */
    int size;
    uint32_t id;
    int64_t timeout_ms;
    int spin_us; /* as in the options, for groups that are split off */
    int64_t spin_ns;
    bool crowded; /* more ranks than cores: give the core away instead of spinning */
    lsi_failure failure;
    lsi_slot *slots;
    lsi_p2p_inbox *inboxes;
    lsi_local_comm **handles; /* NULL: released */
    struct lsi_local_group
        *orphans; /* groups whose split failed, guarded by failure.lock */
    struct lsi_local_group *sibling;
    struct {
        _Alignas(64) _Atomic uint64_t done; /* tasks of all phases so far */
    } stages[LSI_QUEUE_LENGTH];
    _Alignas(64) atomic_uint sleepers;
} lsi_local_group;

struct lsi_local_comm {
    ls_comm base;
    lsi_local_group *group;
    uint32_t next;              /* sequence number of the next collective */
    uint32_t room;              /* every rank has finished this many, at least */
    ls_comm_work *first, *last; /* collectives that have not ended, in order */
    ls_comm_work *unposted;     /* the first of them that found no room */
    uint64_t moves;             /* how often anything moved */
    lsi_collective coll;        /* of the first */
    const lsi_call **calls;     /* what the job refers to */
    atomic_bool taken;          /* somebody has this handle */
};

extern const lsi_backend lsi_backend_local;

ls_status lsi_local_create(int ranks, const ls_comm_local_options *opts, uint32_t id,
                           ls_comm **out, lsi_local_group **group, ls_error *err);

/* Leaves a group whose split failed to `parent`: handles that nobody took end with it. */
void lsi_local_adopt(lsi_local_group *parent, lsi_local_group *orphan);

/* Wakes the sleepers that want any of `what`. */
void lsi_local_wake(lsi_local_group *group, unsigned what);

/* Moves the collectives of this rank on as far as they go without waiting. */
void lsi_local_progress(lsi_local_comm *c);

/* Entries of the backend: see lsi_backend. */
ls_status lsi_local_post(ls_comm *comm, ls_comm_work *work, ls_error *err);
bool lsi_local_test(ls_comm *comm, ls_comm_work *work);

/* Blocks until `work` has ended. */
void lsi_local_wait(ls_comm *comm, ls_comm_work *work);

void lsi_p2p_post(lsi_local_comm *c, ls_comm_work *work);
bool lsi_p2p_test(lsi_local_comm *c, ls_comm_work *work);

/* Ends what waits in the box, whose group is reset; no rank is inside a call. */
void lsi_p2p_clear(lsi_p2p_inbox *box, const ls_error *why);

/* Takes a send or receive back after a failure, which `why` is. */
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
    return &group->slots[rank].queue[sequence % LSI_QUEUE_LENGTH];
}
#endif
