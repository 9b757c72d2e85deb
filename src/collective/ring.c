/*
 * The ring of the specification: the buffer is cut into chunks; chunk c begins at
 * position c, is added to by one rank after the other, and is complete one position
 * before where it began; then it goes round once more. Each rank talks to its two
 * neighbours only, and every link carries the same. The order of the additions is c,
 * c + 1, ... and so differs from chunk to chunk: it runs only when it is named. What
 * travels has the dtype of the buffers, so 16-bit floats are rounded at every hop.
 *
 * Subdivisions cut each chunk further; each goes its own way round, which is a
 * permutation of the ranks.
 */
#include "collective/call.h"

#define CHUNK_BYTES ((size_t)4 << 20)
enum { ALIGN_BYTES = 64 };

int lsi_ring_subdivisions(size_t bytes, int ranks, int per_task, int max_per_device)
{
    const int each = max_per_device == 0 ? 2 : max_per_device;
    int s = 1;

    if (max_per_device < 0) {
        return 1;
    }
    while (s < each * per_task && bytes / ((size_t)ranks * (size_t)s) > CHUNK_BYTES) {
        s++;
    }
    return s;
}

void lsi_ring_offsets(int subdivisions, int per_task, int *offsets)
{
    const int stride = LSI_MAX(1, per_task / subdivisions);

    for (int k = 0; k < subdivisions; k++) {
        offsets[k] = k % 2 == 0 ? k * stride : -k * stride;
    }
}

/* Who stands at position i of the ring of `offset`. */
static int at_position(int per_task, int offset, int i)
{
    const int task = i / per_task, local = i % per_task;
    const int turned = (local + (offset < 0 ? -offset : offset)) % per_task;

    return task * per_task + (offset < 0 ? per_task - 1 - turned : turned);
}

void lsi_ring_permutation(int tasks, int per_task, int offset, int *order)
{
    for (int i = 0; i < tasks * per_task; i++) {
        order[i] = at_position(per_task, offset, i);
    }
}

static int subdivisions_of(const lsi_job *job)
{
    const lsi_call *call = job->mine;
    const size_t bytes = lsi_job_total(call, job->ranks) * lsi_call_size(call);

    return call->subdivisions > 0
               ? call->subdivisions
               : lsi_ring_subdivisions(bytes, job->ranks, job->ranks, 0);
}

/* One subdivision of one chunk: its elements and its way. */
struct chunk {
    size_t begin, end;
    int start;  // position
    int offset; // of its ring
};

static struct chunk chunk_of(const lsi_job *job, size_t task)
{
    const size_t total = lsi_job_total(job->mine, job->ranks);
    const int s = subdivisions_of(job), k = (int)(task % (size_t)s);
    const size_t pieces = (size_t)job->ranks * (size_t)s;
    const size_t grain = ALIGN_BYTES / lsi_call_size(job->mine);
    const size_t even = total / pieces + (total % pieces != 0);
    const size_t size = (even + grain - 1) / grain * grain;
    const int stride = LSI_MAX(1, job->ranks / s);
    struct chunk c = {.start = (int)(task / (size_t)s),
                      .offset = k % 2 == 0 ? k * stride : -k * stride};

    c.begin = LSI_MIN(task * size, total);
    c.end = LSI_MIN(c.begin + size, total);
    return c;
}

static int rank_at(const lsi_job *job, const struct chunk *c, int position)
{
    return at_position(job->ranks, c->offset, position % job->ranks);
}

/* Partial sums travel where the result will be; without such a place, in own memory. */
static void *carried_at(const lsi_job *job, int r, size_t at)
{
    const lsi_call *call = job->calls[r];

    return call->kind == LSI_CALL_ALL_REDUCE
               ? lsi_job_place(job, r, at)
               : (void *)((char *)call->partial + at * lsi_call_size(call));
}

size_t lsi_ring_partial(const lsi_call *call, int ranks)
{
    return call->kind == LSI_CALL_ALL_REDUCE ? 0 : lsi_job_total(call, ranks);
}

static int phases(const lsi_job *job)
{
    const int hops = job->ranks - 1;

    return job->mine->kind == LSI_CALL_ALL_REDUCE ? 2 * hops : hops + 1;
}

static size_t tasks_of(const lsi_job *job, int phase)
{
    (void)phase;
    return lsi_job_total(job->mine, job->ranks) == 0
               ? 0
               : (size_t)job->ranks * (size_t)subdivisions_of(job);
}

/* One hop of the first round: the neighbour's sum and what this rank gives. */
static void add_hop(lsi_job *job, const struct chunk *c, int hop, size_t at, size_t len)
{
    const int from = rank_at(job, c, c->start + hop);
    const int to = rank_at(job, c, c->start + hop + 1);
    const lsi_sum sum = lsi_job_sum(job, hop + 2 == job->ranks);

    job->from[0] = lsi_job_source(job, to, at);
    job->from[1] = hop == 0 ? lsi_job_source(job, from, at) : carried_at(job, from, at);
    job->to[0] = carried_at(job, to, at);
    lsi_sum_run(&sum, job->from, NULL, 2, job->to, false, 1, len);
}

/* One hop of the second round, or the way out to those who get the result. */
static void pass_on(lsi_job *job, const struct chunk *c, int hop, size_t at, size_t len)
{
    const size_t bytes = len * lsi_call_size(job->mine);
    const int last = c->start + job->ranks - 1;
    int places;

    if (job->mine->kind == LSI_CALL_ALL_REDUCE) {
        memcpy(lsi_job_place(job, rank_at(job, c, last + hop + 1), at),
               lsi_job_place(job, rank_at(job, c, last + hop), at), bytes);
        return;
    }
    places = lsi_job_places(job, at);
    for (int i = 0; i < places; i++) {
        memcpy(job->to[i], carried_at(job, rank_at(job, c, last), at), bytes);
    }
}

static void run(lsi_job *job, int phase, size_t task, size_t tasks)
{
    const struct chunk c = chunk_of(job, task);
    const int hops = job->ranks - 1;

    (void)tasks;
    for (size_t at = c.begin; at < c.end;) {
        const size_t len = lsi_job_span(job, at, c.end);

        if (phase < hops) {
            add_hop(job, &c, phase, at, len);
        } else {
            pass_on(job, &c, phase - hops, at, len);
        }
        at += len;
    }
}

const lsi_plan lsi_plan_ring = {phases, tasks_of, run};
