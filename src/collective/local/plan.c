/* The plan of a call; how its elements are cut into tasks and found in ranks' memory. */
#include "collective/local/plan.h"
#include "os/team.h"

enum { LINE = 64 };

const lsi_plan *lsi_plan_of(const lsi_call *call)
{
    static const lsi_plan *const reductions[] = {
        [LSI_ALGORITHM_INLINE] = &lsi_plan_direct,
        [LSI_ALGORITHM_DIRECT] = &lsi_plan_direct,
        [LSI_ALGORITHM_TREE] = &lsi_plan_tree,
        [LSI_ALGORITHM_HIERARCHICAL] = &lsi_plan_hierarchical,
        [LSI_ALGORITHM_RING] = &lsi_plan_ring,
    };

    if (lsi_call_has_ids(call)) {
        return &lsi_plan_partials;
    }
    if (lsi_call_reduces(call)) {
        return reductions[call->algorithm];
    }
    return call->kind == LSI_CALL_BROADCAST && call->algorithm == LSI_ALGORITHM_TREE
               ? &lsi_plan_tree_broadcast
               : &lsi_plan_copy;
}

size_t lsi_plan_partial(const lsi_call *call, int ranks, int nodes, int r)
{
    if (!lsi_call_reduces(call)) {
        return 0;
    }
    switch (call->algorithm) {
    case LSI_ALGORITHM_TREE:
        return lsi_tree_partial(call, ranks, r);
    case LSI_ALGORITHM_HIERARCHICAL:
        return lsi_hierarchical_partial(call, ranks, nodes, r);
    case LSI_ALGORITHM_RING:
        return lsi_ring_partial(call, ranks);
    case LSI_ALGORITHM_INLINE:
    case LSI_ALGORITHM_DIRECT:
        break;
    }
    return 0;
}

bool lsi_call_keeps_partials(const lsi_call *call)
{
    return call->kind != LSI_CALL_ALL_REDUCE || call->dtype == LS_F16 ||
           call->dtype == LS_BF16;
}

size_t lsi_collective_total(const lsi_call *call, int ranks)
{
    return call->kind == LSI_CALL_REDUCE_SCATTER ? call->count * (size_t)ranks
                                                 : call->count;
}

size_t lsi_collective_tasks(const lsi_collective *coll, size_t total)
{
    const size_t bytes = total * lsi_call_size(coll->mine), ranks = (size_t)coll->ranks;
    const size_t each = bytes / ranks / LSI_TASK_BYTES;

    return bytes == 0 ? 0 : ranks * LSI_MAX(each, 1);
}

void lsi_collective_share(const lsi_collective *coll, size_t total, size_t task,
                          size_t tasks, size_t *begin, size_t *end)
{
    const size_t size = lsi_call_size(coll->mine);
    const size_t units = total / (LINE / size) + (total % (LINE / size) != 0);

    // Like lsi_team_share(), for more tasks than a team has members.
    *begin = LSI_MIN(units / tasks * task + LSI_MIN(task, units % tasks), units);
    *end = LSI_MIN(*begin + units / tasks + (task < units % tasks ? 1 : 0), units);
    *begin = LSI_MIN(*begin * (LINE / size), total);
    *end = LSI_MIN(*end * (LINE / size), total);
}

size_t lsi_collective_span(lsi_collective *coll, size_t at, size_t end)
{
    const lsi_call *call = coll->mine;

    if (call->kind == LSI_CALL_REDUCE_SCATTER) {
        return LSI_MIN(end, (at / call->count + 1) * call->count) - at;
    }
    if (call->piece_count == 0) {
        return end - at;
    }
    if (at < coll->piece_at || coll->piece >= call->piece_count) {
        coll->piece = 0;
        coll->piece_at = 0;
    }
    while (at - coll->piece_at >= call->pieces[coll->piece].count) {
        coll->piece_at += call->pieces[coll->piece].count;
        coll->piece++;
    }
    return LSI_MIN(end, coll->piece_at + call->pieces[coll->piece].count) - at;
}

const void *lsi_collective_source(const lsi_collective *coll, int r, size_t at)
{
    const lsi_call *call = coll->calls[r];
    const size_t size = lsi_call_size(call);

    return call->piece_count > 0 ? (const char *)call->pieces[coll->piece].from +
                                       (at - coll->piece_at) * size
                                 : (const char *)call->from + at * size;
}

void *lsi_collective_target(const lsi_collective *coll, int r, size_t at)
{
    const lsi_call *call = coll->calls[r];
    const size_t size = lsi_call_size(call);

    if (call->piece_count > 0) {
        return (char *)call->pieces[coll->piece].to + (at - coll->piece_at) * size;
    }
    if (call->kind == LSI_CALL_REDUCE_SCATTER) {
        at -= (size_t)r * call->count;
    }
    return (char *)call->to + at * size;
}

void *lsi_collective_partial(const lsi_collective *coll, int r, size_t at)
{
    const lsi_call *call = coll->calls[r];

    return lsi_call_keeps_partials(call)
               ? (char *)call->partial + at * lsi_wide_size(call->dtype)
               : lsi_collective_target(coll, r, at);
}

bool lsi_collective_takes(const lsi_collective *coll, int r, size_t at)
{
    const lsi_call *call = coll->mine;

    switch (call->kind) {
    case LSI_CALL_REDUCE:
        return r == call->peer;
    case LSI_CALL_REDUCE_SCATTER:
        return at / call->count == (size_t)r;
    default:
        return true;
    }
}

void lsi_collective_sources(lsi_collective *coll, size_t at)
{
    for (int r = 0; r < coll->ranks; r++) {
        coll->from[r] = lsi_collective_source(coll, r, at);
    }
}

int lsi_collective_targets(lsi_collective *coll, size_t at)
{
    int n = 0;

    for (int r = 0; r < coll->ranks; r++) {
        if (lsi_collective_takes(coll, r, at)) {
            coll->to[n++] = lsi_collective_target(coll, r, at);
        }
    }
    return n;
}

lsi_reduction lsi_collective_reduction(const lsi_collective *coll, bool divide)
{
    const lsi_call *call = coll->mine;

    return (lsi_reduction){call->op == LS_MEAN ? LS_SUM : call->op, call->dtype,
                           divide && call->op == LS_MEAN ? coll->ranks : 1};
}
