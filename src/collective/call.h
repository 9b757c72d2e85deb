/*
 * A call of a communicator, the first of three parts (backend.h has the second, local/
 * the third): what one rank asks for, checked and with its defaults filled in; the header
 * that ranks compare; the choice of an algorithm. All of it can be told to another
 * process: numbers, hashes and bytes. The pointers of a call are this rank's own memory.
 */
#ifndef LSI_CALL_H
#define LSI_CALL_H
#include "collective/collective.h"
#include "reduce/reduction.h"

typedef enum lsi_call_kind {
    LSI_CALL_ALL_REDUCE,
    LSI_CALL_REDUCE,
    LSI_CALL_BROADCAST,
    LSI_CALL_ALL_GATHER,
    LSI_CALL_REDUCE_SCATTER,
    LSI_CALL_ALL_TO_ALL,
    LSI_CALL_BARRIER,
    LSI_CALL_MEET,    /* gathers a few bytes; `to` NULL: this rank does not want them */
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

/* One operation of one rank. */
typedef struct lsi_call {
    lsi_call_kind kind;
    ls_reduce op;
    ls_dtype dtype;
    int peer;     /* the root, or the other side of send and recv; -1 */
    size_t size;  /* bytes of an element */
    size_t count; /* as the caller counts; of all pieces */
    lsi_algorithm algorithm;
    int subdivisions;
    int ids;         /* of the pieces: replicas behind each rank; 0 or 1: one */
    int partials;    /* with several ids: partial sums of a rank, the most on any */
    const char *tag; /* names the purpose; else NULL */
    uint64_t detail; /* a number that must be the same on every rank */
    uint64_t print;  /* in a batch: the detail of its header, compared by others */
    lsi_comm_site site;

    /* This rank's memory. */
    const void *from;
    void *to;
    const size_t *counts; /* all_gather: of each rank; NULL: `count` each */
    size_t *own_counts;   /* the same, if the call keeps a copy; else NULL */
    size_t piece_count;   /* all_reduce of several */
    const lsi_comm_piece *pieces;
    size_t inlined; /* lsi_inline_size() of it */
    void *partial;  /* where it keeps partial sums, lsi_wide_size() each; NULL */
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

/* ---- what ranks compare ---- */

/* The header: the 32 bytes that open every collective. */
typedef struct lsi_fingerprint {
    uint16_t group, generation; /* the lower half of each number */
    uint32_t sequence;
    uint16_t what; /* kind, and the reduction's op in the upper half */
    uint16_t dtype;
    uint32_t site; /* hash of file:line; may differ between ranks */
    uint64_t count;
    uint64_t detail; /* hash of root, algorithm, counts, pieces, ids, tag, detail */
} lsi_fingerprint;
_Static_assert(sizeof(lsi_fingerprint) == 32, "a fingerprint is wire format");

lsi_fingerprint lsi_fingerprint_of(const lsi_call *call, int ranks);
bool lsi_fingerprint_equal(const lsi_fingerprint *a, const lsi_fingerprint *b);

/*
 * What a rank tells of its call when two headers do not agree, and while others wait for
 * it: the texts that the header has hashes of, and the numbers they are read with.
 */
typedef struct lsi_call_report {
    uint16_t kind, op, dtype, algorithm;
    int32_t peer, ids, subdivisions, line;
    uint64_t count, detail;
    char tag[64];  /* "": none */
    char file[96]; /* "": unknown */
} lsi_call_report;

void lsi_call_describe(const lsi_call *call, lsi_call_report *report);

/* Fails with the difference between rank 0's call and rank r's; equal on all ranks. */
ls_status lsi_mismatch(ls_error *err, const lsi_call_report *first, int r,
                       const lsi_call_report *other);

/*
 * The failure of a rank that declines, as bytes that can travel (decline.c): returns how
 * many of LSI_REASON_MOST. Reading checks them; `from` is the rank they come from.
 */
enum { LSI_REASON_MOST = 640 };
size_t lsi_reason_write(const ls_error *why, unsigned char *bytes);
void lsi_reason_read(const unsigned char *bytes, size_t size, int from, ls_error *why);

/* ---- data in the call itself (inline_data.c) ---- */

enum { LSI_INLINE_MOST = 1024 }; /* bytes per rank that are sent in the call itself */

/* Sends and completes an inlined call for rank r: payload[q] is what rank q sent. */
void lsi_inline_send(const lsi_call *call, int ranks, int r, unsigned char *payload);
void lsi_inline_finish(const lsi_call *call, int ranks, int r,
                       const unsigned char *const *payload, const void **room);
size_t lsi_inline_size(const lsi_call *call, int ranks); /* a multiple of 8 */

/* ---- algorithms (algorithm.c) ---- */

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

/* Bytes that one task of a plan handles: worth claiming, and they balance the ranks. */
enum { LSI_TASK_BYTES = 256 << 10 };

/* Levels of the tree over `ranks` ranks: the logarithm to base 2, rounded up. */
int lsi_tree_levels(int ranks);

/*
 * The broadcast tree of spec (broadcast_tree.c): parent (-1: none) and children of rank
 * `r`, how far a rank is from the source, and the longest way.
 */
int lsi_tree_parent(int size, int source, int r);
int lsi_tree_children(int size, int source, int r, int *children, int room);
int lsi_tree_depth_of(int size, int source, int r);
int lsi_tree_depth(int size, int source);

/* Chooses the algorithm and fills in what must agree between ranks. */
ls_status lsi_call_prepare(lsi_call *call, int ranks, const lsi_comm_agreed *agreed,
                           const ls_comm_options *opts, ls_error *err);

/* Copies the options; fields that an older caller does not know get their defaults. */
ls_status lsi_comm_options_copy(const ls_comm_options *from, ls_comm_options *to,
                                ls_error *err);
#endif
