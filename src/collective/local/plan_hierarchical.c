/*
 * The hierarchical algorithm, on two levels: ranks that share a node are added first, by
 * slices as in direct; then the nodes' sums; then the other ranks of a node copy the
 * result from its first. One buffer per node is sent between nodes. Nodes have a power of
 * two of ranks, so that the additions are those of the tree, in its order.
 */
#include "collective/local/plan.h"

/*
 * Ranks of a node: the largest power of two that gives every NUMA node its ranks; with
 * one NUMA node about the square root of the ranks, so that both levels have work.
 */
static int node_size(int ranks, int nodes)
{
    int size = 2;

    while (nodes > 1 ? size * 2 * nodes <= ranks : size * size < ranks) {
        size *= 2;
    }
    return size;
}

static int node_size_of(const lsi_collective *coll)
{
    return node_size(coll->ranks, coll->nodes);
}

static int node_count_of(const lsi_collective *coll)
{
    const int size = node_size_of(coll);

    return (coll->ranks + size - 1) / size;
}

size_t lsi_hierarchical_partial(const lsi_call *call, int ranks, int nodes, int r)
{
    return r % node_size(ranks, nodes) == 0 && lsi_call_keeps_partials(call)
               ? lsi_collective_total(call, ranks)
               : 0;
}

static int hierarchical_phases(const lsi_collective *coll)
{
    return coll->mine->kind == LSI_CALL_ALL_REDUCE ? 3 : 2;
}

static size_t shares_of(const lsi_collective *coll, size_t total, int transfers)
{
    const size_t bytes = total * lsi_call_size(coll->mine);
    const size_t least =
        ((size_t)coll->ranks + (size_t)transfers - 1) / (size_t)transfers;

    return LSI_MAX(bytes / LSI_TASK_BYTES, least);
}

/* Node sums, one result, one copy for every rank that is not its node's first. */
static int transfers_of(const lsi_collective *coll, int phase)
{
    const int nodes = node_count_of(coll);

    return phase == 0 ? nodes : phase == 1 ? 1 : coll->ranks - nodes;
}

static size_t hierarchical_tasks(const lsi_collective *coll, int phase)
{
    const size_t total = lsi_collective_total(coll->mine, coll->ranks);
    const int transfers = transfers_of(coll, phase);

    return total == 0 || transfers == 0
               ? 0
               : (size_t)transfers * shares_of(coll, total, transfers);
}

static void add_node(lsi_collective *coll, int node, size_t at, size_t len)
{
    const lsi_reduction sum = lsi_collective_reduction(coll, false);
    const int first = node * node_size_of(coll);
    const int members = LSI_MIN(node_size_of(coll), coll->ranks - first);

    for (int i = 0; i < members; i++) {
        coll->from[i] = lsi_collective_source(coll, first + i, at);
    }
    coll->to[0] = lsi_collective_partial(coll, first, at);
    lsi_reduction_run(&sum, coll->from, NULL, members, coll->to,
                      lsi_call_keeps_partials(coll->mine), 1, len);
}

static void add_nodes(lsi_collective *coll, size_t at, size_t len)
{
    const lsi_reduction sum = lsi_collective_reduction(coll, true);
    const int nodes = node_count_of(coll), size = node_size_of(coll);
    int targets = nodes;

    for (int i = 0; i < nodes; i++) {
        coll->from[i] = lsi_collective_partial(coll, i * size, at);
        coll->wide[i] = lsi_call_keeps_partials(coll->mine);
    }
    if (coll->mine->kind == LSI_CALL_ALL_REDUCE) {
        for (int i = 0; i < nodes; i++) {
            coll->to[i] = lsi_collective_target(coll, i * size, at);
        }
    } else {
        targets = lsi_collective_targets(coll, at);
    }
    lsi_reduction_run(&sum, coll->from, coll->wide, nodes, coll->to, false, targets, len);
}

/* The index-th rank copies the result from the first of its node. */
static void copy_down(lsi_collective *coll, int index, size_t at, size_t len)
{
    const int size = node_size_of(coll);
    const int node = index / (size - 1), r = node * size + 1 + index % (size - 1);

    memcpy(lsi_collective_target(coll, r, at),
           lsi_collective_target(coll, node * size, at), len * lsi_call_size(coll->mine));
}

static void run_hierarchical(lsi_collective *coll, int phase, size_t task, size_t tasks)
{
    const size_t total = lsi_collective_total(coll->mine, coll->ranks);
    const size_t shares = tasks / (size_t)transfers_of(coll, phase);
    const int index = (int)(task / shares);
    size_t at, end;

    lsi_collective_share(coll, total, task % shares, shares, &at, &end);
    while (at < end) {
        const size_t len = lsi_collective_span(coll, at, end);

        if (phase == 0) {
            add_node(coll, index, at, len);
        } else if (phase == 1) {
            add_nodes(coll, at, len);
        } else {
            copy_down(coll, index, at, len);
        }
        at += len;
    }
}

const lsi_plan lsi_plan_hierarchical = {hierarchical_phases, hierarchical_tasks,
                                        run_hierarchical};
