/*
 * Two floors: ranks that share a node are added first, each by slices as in direct; then
 * the nodes' sums; then each node takes the result from its first rank. One buffer a node
 * crosses between nodes. Nodes are cut at powers of two, so that the additions are those
 * of the tree, in its order.
 */
#include "collective/call.h"

/*
 * Ranks of a node: the power of two below the ranks that a NUMA node would get; on one
 * node as many as there are nodes then, so that both floors have something to do.
 */
static int node_size(int ranks)
{
    const int nodes = lsi_comm_nodes();
    int size = 2;

    while (nodes > 1 ? size * 2 * nodes <= ranks : size * size < ranks) {
        size *= 2;
    }
    return size;
}

static int node_count(int ranks)
{
    const int size = node_size(ranks);

    return (ranks + size - 1) / size;
}

static bool keeps_partials(const lsi_call *call)
{
    return call->kind != LSI_CALL_ALL_REDUCE || call->dtype == LS_F16 ||
           call->dtype == LS_BF16;
}

size_t lsi_hierarchical_partial(const lsi_call *call, int ranks, int r)
{
    return r % node_size(ranks) == 0 && keeps_partials(call) ? lsi_job_total(call, ranks)
                                                             : 0;
}

static int phases(const lsi_job *job)
{
    return job->mine->kind == LSI_CALL_ALL_REDUCE ? 3 : 2;
}

static size_t shares_of(const lsi_job *job, size_t total, int transfers)
{
    const size_t bytes = total * lsi_call_size(job->mine);
    const size_t least = ((size_t)job->ranks + (size_t)transfers - 1) / (size_t)transfers;

    return LSI_MAX(bytes / LSI_TASK_BYTES, least);
}

/* Node sums, one result, one copy for every rank that is not its node's first. */
static int transfers_of(const lsi_job *job, int phase)
{
    const int nodes = node_count(job->ranks);

    return phase == 0 ? nodes : phase == 1 ? 1 : job->ranks - nodes;
}

static size_t tasks_of(const lsi_job *job, int phase)
{
    const size_t total = lsi_job_total(job->mine, job->ranks);
    const int transfers = transfers_of(job, phase);

    return total == 0 || transfers == 0
               ? 0
               : (size_t)transfers * shares_of(job, total, transfers);
}

static void *partial_at(const lsi_job *job, int r, size_t at)
{
    const lsi_call *call = job->calls[r];

    return keeps_partials(call) ? (char *)call->partial + at * lsi_wide_size(call->dtype)
                                : lsi_job_place(job, r, at);
}

static void add_node(lsi_job *job, int node, size_t at, size_t len)
{
    const lsi_sum sum = lsi_job_sum(job, false);
    const int first = node * node_size(job->ranks);
    const int members = LSI_MIN(node_size(job->ranks), job->ranks - first);

    for (int i = 0; i < members; i++) {
        job->from[i] = lsi_job_source(job, first + i, at);
    }
    job->to[0] = partial_at(job, first, at);
    lsi_sum_run(&sum, job->from, NULL, members, job->to, keeps_partials(job->mine), 1,
                len);
}

static void add_nodes(lsi_job *job, size_t at, size_t len)
{
    const lsi_sum sum = lsi_job_sum(job, true);
    const int nodes = node_count(job->ranks), size = node_size(job->ranks);
    int places = nodes;

    for (int i = 0; i < nodes; i++) {
        job->from[i] = partial_at(job, i * size, at);
        job->wide[i] = keeps_partials(job->mine);
    }
    if (job->mine->kind == LSI_CALL_ALL_REDUCE) {
        for (int i = 0; i < nodes; i++) {
            job->to[i] = lsi_job_place(job, i * size, at);
        }
    } else {
        places = lsi_job_places(job, at);
    }
    lsi_sum_run(&sum, job->from, job->wide, nodes, job->to, false, places, len);
}

/* The index-th rank takes the result from the first of its node. */
static void copy_down(lsi_job *job, int index, size_t at, size_t len)
{
    const int size = node_size(job->ranks);
    const int node = index / (size - 1), r = node * size + 1 + index % (size - 1);

    memcpy(lsi_job_place(job, r, at), lsi_job_place(job, node * size, at),
           len * lsi_call_size(job->mine));
}

static void run(lsi_job *job, int phase, size_t task, size_t tasks)
{
    const size_t total = lsi_job_total(job->mine, job->ranks);
    const size_t shares = tasks / (size_t)transfers_of(job, phase);
    const int index = (int)(task / shares);
    size_t at, end;

    lsi_job_share(job, total, task % shares, shares, &at, &end);
    while (at < end) {
        const size_t len = lsi_job_span(job, at, end);

        if (phase == 0) {
            add_node(job, index, at, len);
        } else if (phase == 1) {
            add_nodes(job, at, len);
        } else {
            copy_down(job, index, at, len);
        }
        at += len;
    }
}

const lsi_plan lsi_plan_hierarchical = {phases, tasks_of, run};
