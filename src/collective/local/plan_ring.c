/*
 * The ring of the specification: the buffer is cut into chunks; chunk c begins at
 * position c, is added to by one rank after the other, and is complete one position
 * before where it began; then it goes round once more. Each rank exchanges data with its
 * two neighbours only, and every link carries the same amount. The order of the additions
 * is c, c + 1, ... and so differs from chunk to chunk: it runs only when it is asked for
 * by name. Partial sums have the dtype of the buffers, so 16-bit floats are rounded at
 * every hop.
 *
 * Subdivisions cut each chunk further; each has its own order of the ranks, a
 * permutation.
 */
#include "collective/local/plan.h"

enum { ALIGN_BYTES = 64 };

static int subdivisions_of(const lsi_collective *coll)
{
    const lsi_call *call = coll->mine;
    const size_t bytes = lsi_collective_total(call, coll->ranks) * lsi_call_size(call);

    return call->subdivisions > 0
               ? call->subdivisions
               : lsi_ring_subdivisions(bytes, coll->ranks, coll->ranks, 0);
}

/* One subdivision of one chunk: its elements and its ring. */
struct chunk {
    size_t begin, end;
    int start;  // position
    int offset; // of its ring
};

static struct chunk chunk_of(const lsi_collective *coll, size_t task)
{
    const size_t total = lsi_collective_total(coll->mine, coll->ranks);
    const int s = subdivisions_of(coll), k = (int)(task % (size_t)s);
    const size_t pieces = (size_t)coll->ranks * (size_t)s;
    const size_t grain = ALIGN_BYTES / lsi_call_size(coll->mine);
    const size_t even = total / pieces + (total % pieces != 0);
    const size_t size = (even + grain - 1) / grain * grain;
    const int stride = LSI_MAX(1, coll->ranks / s);
    struct chunk c = {.start = (int)(task / (size_t)s),
                      .offset = k % 2 == 0 ? k * stride : -k * stride};

    c.begin = LSI_MIN(task * size, total);
    c.end = LSI_MIN(c.begin + size, total);
    return c;
}

static int rank_at(const lsi_collective *coll, const struct chunk *c, int position)
{
    return lsi_ring_position(coll->ranks, c->offset, position % coll->ranks);
}

/* Partial sums of all_reduce are kept in the result buffer, others in `partial`. */
static void *carried_at(const lsi_collective *coll, int r, size_t at)
{
    const lsi_call *call = coll->calls[r];

    return call->kind == LSI_CALL_ALL_REDUCE
               ? lsi_collective_target(coll, r, at)
               : (void *)((char *)call->partial + at * lsi_call_size(call));
}

size_t lsi_ring_partial(const lsi_call *call, int ranks)
{
    return call->kind == LSI_CALL_ALL_REDUCE ? 0 : lsi_collective_total(call, ranks);
}

static int ring_phases(const lsi_collective *coll)
{
    const int hops = coll->ranks - 1;

    return coll->mine->kind == LSI_CALL_ALL_REDUCE ? 2 * hops : hops + 1;
}

static size_t ring_tasks(const lsi_collective *coll, int phase)
{
    (void)phase;
    return lsi_collective_total(coll->mine, coll->ranks) == 0
               ? 0
               : (size_t)coll->ranks * (size_t)subdivisions_of(coll);
}

/* One hop of the first round: adds this rank's elements to the neighbour's sum. */
static void add_hop(lsi_collective *coll, const struct chunk *c, int hop, size_t at,
                    size_t len)
{
    const int from = rank_at(coll, c, c->start + hop);
    const int to = rank_at(coll, c, c->start + hop + 1);
    const lsi_reduction sum = lsi_collective_reduction(coll, hop + 2 == coll->ranks);

    coll->from[0] = lsi_collective_source(coll, to, at);
    coll->from[1] =
        hop == 0 ? lsi_collective_source(coll, from, at) : carried_at(coll, from, at);
    coll->to[0] = carried_at(coll, to, at);
    lsi_reduction_run(&sum, coll->from, NULL, 2, coll->to, false, 1, len);
}

/* One hop of the second round, or the copy to the ranks that get the result. */
static void pass_on(lsi_collective *coll, const struct chunk *c, int hop, size_t at,
                    size_t len)
{
    const size_t bytes = len * lsi_call_size(coll->mine);
    const int last = c->start + coll->ranks - 1;
    int targets;

    if (coll->mine->kind == LSI_CALL_ALL_REDUCE) {
        memcpy(lsi_collective_target(coll, rank_at(coll, c, last + hop + 1), at),
               lsi_collective_target(coll, rank_at(coll, c, last + hop), at), bytes);
        return;
    }
    targets = lsi_collective_targets(coll, at);
    for (int i = 0; i < targets; i++) {
        memcpy(coll->to[i], carried_at(coll, rank_at(coll, c, last), at), bytes);
    }
}

static void run_ring(lsi_collective *coll, int phase, size_t task, size_t tasks)
{
    const struct chunk c = chunk_of(coll, task);
    const int hops = coll->ranks - 1;

    (void)tasks;
    for (size_t at = c.begin; at < c.end;) {
        const size_t len = lsi_collective_span(coll, at, c.end);

        if (phase < hops) {
            add_hop(coll, &c, phase, at, len);
        } else {
            pass_on(coll, &c, phase - hops, at, len);
        }
        at += len;
    }
}

const lsi_plan lsi_plan_ring = {ring_phases, ring_tasks, run_ring};
