/*
 * The direct algorithm: every rank can read all buffers, so a task adds its slice of
 * every rank's buffer, in the tree's order, and writes the sum to every receiving rank.
 * Each byte is read once and written once, without intermediate copies, in one phase.
 */
#include "collective/local/plan.h"

static int direct_phases(const lsi_collective *coll)
{
    (void)coll;
    return 1;
}

static size_t direct_tasks(const lsi_collective *coll, int phase)
{
    (void)phase;
    return lsi_collective_tasks(coll, lsi_collective_total(coll->mine, coll->ranks));
}

static void run_direct(lsi_collective *coll, int phase, size_t task, size_t tasks)
{
    const lsi_reduction sum = lsi_collective_reduction(coll, true);
    size_t at, end;

    (void)phase;
    lsi_collective_share(coll, lsi_collective_total(coll->mine, coll->ranks), task, tasks,
                         &at, &end);
    while (at < end) {
        const size_t len = lsi_collective_span(coll, at, end);
        int targets;

        lsi_collective_sources(coll, at);
        targets = lsi_collective_targets(coll, at);
        lsi_reduction_run(&sum, coll->from, NULL, coll->ranks, coll->to, false, targets,
                          len);
        at += len;
    }
}

const lsi_plan lsi_plan_direct = {direct_phases, direct_tasks, run_direct};
