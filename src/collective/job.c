/* How a reduction's elements are cut into tasks and found in the ranks' memory. */
#include "collective/call.h"
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

    if (lsi_call_reduces(call)) {
        return reductions[call->algorithm];
    }
    return call->kind == LSI_CALL_BROADCAST && call->algorithm == LSI_ALGORITHM_TREE
               ? &lsi_plan_tree_broadcast
               : &lsi_plan_move;
}

size_t lsi_plan_partial(const lsi_call *call, int ranks, int r)
{
    if (!lsi_call_reduces(call)) {
        return 0;
    }
    switch (call->algorithm) {
    case LSI_ALGORITHM_TREE:
        return lsi_tree_partial(call, ranks, r);
    case LSI_ALGORITHM_HIERARCHICAL:
        return lsi_hierarchical_partial(call, ranks, r);
    case LSI_ALGORITHM_RING:
        return lsi_ring_partial(call, ranks);
    case LSI_ALGORITHM_INLINE:
    case LSI_ALGORITHM_DIRECT:
        break;
    }
    return 0;
}

size_t lsi_job_total(const lsi_call *call, int ranks)
{
    return call->kind == LSI_CALL_REDUCE_SCATTER ? call->count * (size_t)ranks
                                                 : call->count;
}

size_t lsi_job_tasks(const lsi_job *job, size_t total)
{
    const size_t bytes = total * lsi_call_size(job->mine), ranks = (size_t)job->ranks;
    const size_t each = bytes / ranks / LSI_TASK_BYTES;

    return bytes == 0 ? 0 : ranks * LSI_MAX(each, 1);
}

void lsi_job_share(const lsi_job *job, size_t total, size_t task, size_t tasks,
                   size_t *begin, size_t *end)
{
    const size_t size = lsi_call_size(job->mine);
    const size_t units = total / (LINE / size) + (total % (LINE / size) != 0);

    // Like lsi_team_share(), for more tasks than a team has members.
    *begin = LSI_MIN(units / tasks * task + LSI_MIN(task, units % tasks), units);
    *end = LSI_MIN(*begin + units / tasks + (task < units % tasks ? 1 : 0), units);
    *begin = LSI_MIN(*begin * (LINE / size), total);
    *end = LSI_MIN(*end * (LINE / size), total);
}

size_t lsi_job_span(lsi_job *job, size_t at, size_t end)
{
    const lsi_call *call = job->mine;

    if (call->kind == LSI_CALL_REDUCE_SCATTER) {
        return LSI_MIN(end, (at / call->count + 1) * call->count) - at;
    }
    if (call->piece_count == 0) {
        return end - at;
    }
    if (at < job->piece_at || job->piece >= call->piece_count) {
        job->piece = 0;
        job->piece_at = 0;
    }
    while (at - job->piece_at >= call->pieces[job->piece].count) {
        job->piece_at += call->pieces[job->piece].count;
        job->piece++;
    }
    return LSI_MIN(end, job->piece_at + call->pieces[job->piece].count) - at;
}

const void *lsi_job_source(const lsi_job *job, int r, size_t at)
{
    const lsi_call *call = job->calls[r];
    const size_t size = lsi_call_size(call);

    return call->piece_count > 0
               ? (const char *)call->pieces[job->piece].from + (at - job->piece_at) * size
               : (const char *)call->from + at * size;
}

void *lsi_job_place(const lsi_job *job, int r, size_t at)
{
    const lsi_call *call = job->calls[r];
    const size_t size = lsi_call_size(call);

    if (call->piece_count > 0) {
        return (char *)call->pieces[job->piece].to + (at - job->piece_at) * size;
    }
    if (call->kind == LSI_CALL_REDUCE_SCATTER) {
        at -= (size_t)r * call->count;
    }
    return (char *)call->to + at * size;
}

bool lsi_job_takes(const lsi_job *job, int r, size_t at)
{
    const lsi_call *call = job->mine;

    switch (call->kind) {
    case LSI_CALL_REDUCE:
        return r == call->peer;
    case LSI_CALL_REDUCE_SCATTER:
        return at / call->count == (size_t)r;
    default:
        return true;
    }
}

void lsi_job_sources(lsi_job *job, size_t at)
{
    for (int r = 0; r < job->ranks; r++) {
        job->from[r] = lsi_job_source(job, r, at);
    }
}

int lsi_job_places(lsi_job *job, size_t at)
{
    int n = 0;

    for (int r = 0; r < job->ranks; r++) {
        if (lsi_job_takes(job, r, at)) {
            job->to[n++] = lsi_job_place(job, r, at);
        }
    }
    return n;
}

lsi_sum lsi_job_sum(const lsi_job *job, bool divide)
{
    const lsi_call *call = job->mine;

    return (lsi_sum){call->op == LS_MEAN ? LS_SUM : call->op, call->dtype,
                     divide && call->op == LS_MEAN ? job->ranks : 1};
}
