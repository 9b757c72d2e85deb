/*
 * The tree algorithm: at level l, rank r adds what rank r + 2^l has, for every r that is
 * a multiple of 2^(l+1). Then the sum goes down the broadcast tree of the specification.
 * Each rank reads from a few others only, but most are idle at every level: right where
 * links are slow, wrong where every rank can read all memory.
 */
#include "collective/local/plan.h"

/* How many ranks are `depth` steps away from the source; *at: the index-th of them. */
static int ranks_at(int size, int source, int depth, int index, int *at)
{
    int n = 0;

    for (int r = 0; r < size; r++) {
        if (lsi_tree_depth_of(size, source, r) == depth) {
            if (n == index) {
                *at = r;
            }
            n++;
        }
    }
    return n;
}

/* Shares that the elements of one transfer are cut into. */
static size_t shares_of(const lsi_collective *coll, size_t total)
{
    return LSI_MAX(total * lsi_call_size(coll->mine) / LSI_TASK_BYTES, 1);
}

/* Pairs of level l: rank index * 2^(l+1) and its neighbour. */
static int pairs_of(int ranks, int level)
{
    const int64_t reach = (int64_t)1 << level;

    return (int)((ranks - reach + 2 * reach - 1) / (2 * reach));
}

size_t lsi_tree_partial(const lsi_call *call, int ranks, int r)
{
    const bool inner = r % 2 == 0 && r + 1 < ranks && ranks > 2;

    return inner && lsi_call_keeps_partials(call) ? lsi_collective_total(call, ranks) : 0;
}

static int tree_phases(const lsi_collective *coll)
{
    const int down =
        coll->mine->kind == LSI_CALL_ALL_REDUCE ? lsi_tree_depth(coll->ranks, 0) : 0;

    return lsi_tree_levels(coll->ranks) + down;
}

static size_t tree_tasks(const lsi_collective *coll, int phase)
{
    const int levels = lsi_tree_levels(coll->ranks);
    const size_t total = lsi_collective_total(coll->mine, coll->ranks);
    int unused;
    const int transfers = phase < levels
                              ? pairs_of(coll->ranks, phase)
                              : ranks_at(coll->ranks, 0, phase - levels + 1, -1, &unused);

    return total == 0 ? 0 : (size_t)transfers * shares_of(coll, total);
}

/* What rank r holds before level l: its own buffer, or the sum of its subtree. */
static const void *held_at(const lsi_collective *coll, int r, int level, size_t at,
                           bool *wide)
{
    const bool added = level > 0 && r + 1 < coll->ranks;

    *wide = added && lsi_call_keeps_partials(coll->mine);
    return added ? lsi_collective_partial(coll, r, at)
                 : lsi_collective_source(coll, r, at);
}

static void add_pair(lsi_collective *coll, int level, int r, size_t at, size_t len)
{
    const bool last = level + 1 == lsi_tree_levels(coll->ranks);
    const lsi_reduction sum = lsi_collective_reduction(coll, last);
    int targets = 1;

    LSI_ASSERT(level >= 0);
    coll->from[0] = held_at(coll, r, level, at, &coll->wide[0]);
    coll->from[1] = held_at(coll, r + (1 << level), level, at, &coll->wide[1]);
    if (!last) {
        coll->to[0] = lsi_collective_partial(coll, r, at);
    } else if (coll->mine->kind == LSI_CALL_ALL_REDUCE) {
        coll->to[0] = lsi_collective_target(coll, 0, at);
    } else {
        targets = lsi_collective_targets(coll, at);
    }
    lsi_reduction_run(&sum, coll->from, coll->wide, 2, coll->to,
                      !last && lsi_call_keeps_partials(coll->mine), targets, len);
}

static void run_tree(lsi_collective *coll, int phase, size_t task, size_t tasks)
{
    const int levels = lsi_tree_levels(coll->ranks);
    const size_t total = lsi_collective_total(coll->mine, coll->ranks);
    const size_t shares = shares_of(coll, total);
    const int index = (int)(task / shares);
    size_t at, end;
    int r = 0;

    (void)tasks;
    if (phase >= levels) {
        (void)ranks_at(coll->ranks, 0, phase - levels + 1, index, &r);
    } else {
        r = index * (2 << phase);
    }
    lsi_collective_share(coll, total, task % shares, shares, &at, &end);
    while (at < end) {
        const size_t len = lsi_collective_span(coll, at, end);

        if (phase < levels) {
            add_pair(coll, phase, r, at, len);
        } else {
            memcpy(lsi_collective_target(coll, r, at),
                   lsi_collective_target(coll, lsi_tree_parent(coll->ranks, 0, r), at),
                   len * lsi_call_size(coll->mine));
        }
        at += len;
    }
}

const lsi_plan lsi_plan_tree = {tree_phases, tree_tasks, run_tree};

static int broadcast_phases(const lsi_collective *coll)
{
    return lsi_tree_depth(coll->ranks, coll->mine->peer);
}

static size_t broadcast_tasks(const lsi_collective *coll, int phase)
{
    int unused;
    const int transfers = ranks_at(coll->ranks, coll->mine->peer, phase + 1, -1, &unused);

    return coll->mine->count == 0
               ? 0
               : (size_t)transfers * shares_of(coll, coll->mine->count);
}

static void run_broadcast(lsi_collective *coll, int phase, size_t task, size_t tasks)
{
    const lsi_call *call = coll->mine;
    const size_t size = lsi_call_size(call), shares = shares_of(coll, call->count);
    size_t at, end;
    int r = 0;

    (void)tasks;
    (void)ranks_at(coll->ranks, call->peer, phase + 1, (int)(task / shares), &r);
    lsi_collective_share(coll, call->count, task % shares, shares, &at, &end);
    if (at < end) {
        const int parent = lsi_tree_parent(coll->ranks, call->peer, r);

        memcpy((char *)coll->calls[r]->to + at * size,
               (const char *)coll->calls[parent]->to + at * size, (end - at) * size);
    }
}

const lsi_plan lsi_plan_tree_broadcast = {broadcast_phases, broadcast_tasks,
                                          run_broadcast};
