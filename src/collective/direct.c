/*
 * Everybody sees all buffers: a task adds its slice of every rank's buffer, in the tree's
 * order, and writes the sum to every rank that gets it. Each byte is read once and
 * written once, nothing is staged, and one phase is enough.
 */
#include "collective/call.h"

static int phases(const lsi_job *job)
{
    (void)job;
    return 1;
}

static size_t tasks_of(const lsi_job *job, int phase)
{
    (void)phase;
    return lsi_job_tasks(job, lsi_job_total(job->mine, job->ranks));
}

static void run(lsi_job *job, int phase, size_t task, size_t tasks)
{
    const lsi_sum sum = lsi_job_sum(job, true);
    size_t at, end;

    (void)phase;
    lsi_job_share(job, lsi_job_total(job->mine, job->ranks), task, tasks, &at, &end);
    while (at < end) {
        const size_t len = lsi_job_span(job, at, end);
        int places;

        lsi_job_sources(job, at);
        places = lsi_job_places(job, at);
        lsi_sum_run(&sum, job->from, NULL, job->ranks, job->to, false, places, len);
        at += len;
    }
}

const lsi_plan lsi_plan_direct = {phases, tasks_of, run};
