/*
 * The plan of partial sums: every rank gives the partial sums of its ids, and a task
 * merges its slice of those of all ranks, block by block in the cache, and writes the
 * result to every rank. One phase; what a rank gives does not change.
 */
#include "collective/local/plan.h"

static int partials_phases(const lsi_collective *coll)
{
    (void)coll;
    return 1;
}

static size_t partials_tasks(const lsi_collective *coll, int phase)
{
    (void)phase;
    return lsi_collective_tasks(coll, coll->mine->count);
}

/* Element `at` of the first partial sum of rank r, in the piece found last. */
static const void *partials_at(const lsi_collective *coll, int r, size_t at)
{
    const lsi_call *call = coll->calls[r];

    return (const char *)call->pieces[coll->piece].from +
           (at - coll->piece_at) * lsi_wide_size(call->dtype);
}

static void run_partials(lsi_collective *coll, int phase, size_t task, size_t tasks)
{
    const lsi_call *call = coll->mine;
    const lsi_reduction sum = lsi_call_partials_reduction(call, coll->ranks);
    size_t at, end;

    (void)phase;
    lsi_collective_share(coll, call->count, task, tasks, &at, &end);
    while (at < end) {
        const size_t len = lsi_collective_span(coll, at, end);
        const int targets = lsi_collective_targets(coll, at);

        for (int r = 0; r < coll->ranks; r++) {
            coll->from[r] = partials_at(coll, r, at);
        }
        lsi_partials_reduce(&sum, coll->from, coll->ranks, call->ids,
                            call->pieces[coll->piece].count, coll->to, targets, len);
        at += len;
    }
}

const lsi_plan lsi_plan_partials = {partials_phases, partials_tasks, run_partials};
