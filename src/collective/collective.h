/*
 * What the layers above use of communicators: reductions from one buffer to another,
 * groups that can be used again after a failure, and the arithmetic of packs.
 */
#ifndef LSI_COLLECTIVE_H
#define LSI_COLLECTIVE_H
#include "device/device.h"
#include "lockstep/comm.h"

/* Where the program makes a call. `file` may be NULL. */
typedef struct lsi_comm_site {
    const char *file;
    int line;
} lsi_comm_site;

/*
 * Reduces from `from` to `to`, which may be the same; when the call returns, the result
 * is complete on every rank and no rank reads `from` any more.
 */
ls_status lsi_comm_all_reduce(ls_comm *comm, ls_reduce op, const void *from, void *to,
                              size_t count, ls_dtype dtype, const ls_comm_options *opts,
                              lsi_comm_site site, ls_error *err);

/* One of several buffers that are reduced together: `count` elements. */
typedef struct lsi_comm_piece {
    const void *from;
    void *to;
    size_t count;
} lsi_comm_piece;

/*
 * Several pieces of one dtype that are reduced in one call. Every rank gives the same
 * number of pieces, the same counts, ids, tag and detail; otherwise the call fails with
 * the mismatch.
 *
 * With several ids behind each rank, rank r holds the ids [r * ids, (r + 1) * ids) of the
 * tree. Then `from` of a piece holds the partial sums of lsi_partials_of() that range,
 * one after the other, `count` elements of lsi_wide_size() each, and `to` gets the
 * finished result, with elements of the dtype's own size; `to` may be `from` unless the
 * two sizes differ. LS_MEAN divides by the number of all ids. An algorithm named in the
 * options does not apply.
 */
typedef struct lsi_comm_reduction {
    ls_reduce op;
    ls_dtype dtype;
    const lsi_comm_piece *pieces;
    size_t n;
    int ids;         /* replicas behind each rank; 0: one, the rank itself */
    const char *tag; /* names the call in messages; NULL: "all_reduce" */
    uint64_t detail; /* a number that must be equal on all ranks */
} lsi_comm_reduction;
ls_status lsi_comm_all_reduce_pieces(ls_comm *comm, const lsi_comm_reduction *reduction,
                                     const ls_comm_options *opts, lsi_comm_site site,
                                     ls_error *err);

/*
 * This rank takes part in the group's next collective (one call, or all collectives of a
 * batch) with the failure `why` in place of data: that is how a failure travels with a
 * collective. The collective ends on every rank with that failure: its code, kind,
 * message and site (`site` if it has none), and the declining rank unless `why` names a
 * rank. No data is read or written, and the group stays whole: the next call works. If
 * several ranks decline, the error of the lowest is everybody's. Matches any collective.
 *
 * Blocks like the collective; returns the failure. Forgets the calls of a batch that is
 * open; ls_comm_group_end() is not called then. Sends and receives are not declined.
 */
ls_status lsi_comm_decline(ls_comm *comm, const ls_error *why, lsi_comm_site site,
                           ls_error *err);

/*
 * Waits for the other ranks and exchanges one pointer with each: all[r] is what rank r
 * gave as `mine`, valid until this rank's next call on `comm`. `tag` names the purpose;
 * it and `detail` must be equal on all ranks, otherwise the call fails with the mismatch.
 */
ls_status lsi_comm_meet(ls_comm *comm, const char *tag, uint64_t detail, void *mine,
                        void **all, const ls_comm_options *opts, lsi_comm_site site,
                        ls_error *err);

/*
 * Every rank gives `count` numbers and gets those of all ranks (int64_t), in the order of
 * the ranks. `tag` names the call in messages and must be the same on all ranks. `all`
 * NULL: this rank had no memory for them, and declines with that.
 */
ls_status lsi_comm_share(ls_comm *comm, const char *tag, const int64_t *mine,
                         size_t count, void *all, lsi_comm_site site, ls_error *err);

/* Returns the site noted by ls_comm_at() and clears it. */
lsi_comm_site lsi_comm_take_site(void);

/*
 * This rank takes no further part: every rank that waits for it, now or later, fails with
 * `why` (its code, kind, message). The first such failure is the group's. Any thread of
 * the group; never blocks.
 */
void lsi_comm_break(ls_comm *comm, const ls_error *why);

/*
 * Generations of a group whose ranks are in one process: what its ranks do together, from
 * one lsi_comm_renew() to the next, such as one run of a strategy.
 *
 * lsi_comm_leave(): this rank has ended its part of the generation, and makes no call
 * before the next. If no rank needs it any more, nothing happens. A rank that waits for
 * it, now or later in this generation, fails with *why and so breaks the generation.
 * `why` is borrowed until the next lsi_comm_renew(); its rank may be -1: this one.
 *
 * lsi_comm_renew() begins the next generation of the whole group, by any one handle. No
 * rank may be inside a call. If all went well it only counts; else it makes the group
 * usable again: it forgets the failure and ends the calls that are left. A concurrent
 * lsi_comm_break() is either forgotten or breaks the new generation.
 */
void lsi_comm_leave(ls_comm *comm, const ls_error *why);
void lsi_comm_renew(ls_comm *comm);

/* True if the group is broken. Any thread. */
bool lsi_comm_broken(const ls_comm *comm);

/* LS_OK, or the failure that broke the group. Any thread but one that resets it. */
ls_status lsi_comm_failure(ls_comm *comm, ls_error *err);

/*
 * Packs. num_packs pieces of `total` elements: the first n-1 of total / n, the last takes
 * the rest (sizes has room for `packs`).
 */
void lsi_pack_split(size_t total, int packs, size_t *sizes);

/*
 * Greedy packs by bytes, in reverse list order: pack[i] is the pack of value i, 0 is the
 * first that is sent; a new one starts when the present one holds more than `limit`
 * bytes; 0: one pack. Returns how many there are.
 */
size_t lsi_pack_by_bytes(const size_t *bytes, size_t n, size_t limit, size_t *pack);

/* The broadcast tree of spec (tree.c): parent (-1: none) and children of rank `r`. */
int lsi_tree_parent(int size, int source, int r);
int lsi_tree_children(int size, int source, int r, int *children, int room);

/* Settings, read once: LS_COMM_ALGORITHM (NULL: choose), LS_COMM_TIMEOUT_MS. */
const char *lsi_comm_algorithm_setting(void);
int64_t lsi_comm_timeout_setting(void);
#endif
