/*
 * Calls that only copy (gathers, exchanges, broadcast from the root): a task copies a
 * part of one rank's buffer to another's. The tasks of a receiving rank are in its own
 * share, so that it fills its own cache.
 */
#include "collective/local/plan.h"

/* Elements that `from` gives to `to`, and where they lie. */
struct lane {
    const char *source;
    char *target;
    size_t bytes;
};

static struct lane lane_of(const lsi_collective *coll, int from, int to)
{
    const lsi_call *give = coll->calls[from], *take = coll->calls[to];
    const size_t bytes = take->count * lsi_call_size(take);
    size_t skipped = 0;

    switch (coll->mine->kind) {
    case LSI_CALL_BROADCAST:
        return (struct lane){give->from, take->to,
                             from == coll->mine->peer && from != to ? bytes : 0};
    case LSI_CALL_ALL_TO_ALL:
        return (struct lane){(const char *)give->from + (size_t)to * bytes,
                             (char *)take->to + (size_t)from * bytes, bytes};
    case LSI_CALL_ALL_GATHER:
        if (take->counts == NULL) {
            return (struct lane){give->from, (char *)take->to + (size_t)from * bytes,
                                 bytes};
        }
        for (int r = 0; r < from; r++) {
            skipped += take->counts[r];
        }
        return (struct lane){give->from, (char *)take->to + skipped * lsi_call_size(take),
                             take->counts[from] * lsi_call_size(take)};
    default:
        return (struct lane){NULL, NULL, 0};
    }
}

static int copy_phases(const lsi_collective *coll)
{
    (void)coll;
    return 1;
}

/* Pieces that every lane is cut into: the longest decides. */
static size_t pieces_of(const lsi_collective *coll)
{
    return LSI_MAX(lsi_call_bytes(coll->mine, coll->ranks) / LSI_TASK_BYTES, 1);
}

/* Ranks that a rank gets elements from. */
static size_t sources_of(const lsi_collective *coll)
{
    return coll->mine->kind == LSI_CALL_BROADCAST ? 1 : (size_t)coll->ranks;
}

static size_t copy_tasks(const lsi_collective *coll, int phase)
{
    const size_t lanes = (size_t)coll->ranks * sources_of(coll);

    (void)phase;
    return lsi_call_bytes(coll->mine, coll->ranks) == 0 ? 0 : lanes * pieces_of(coll);
}

static void run_copy(lsi_collective *coll, int phase, size_t task, size_t tasks)
{
    const size_t n = (size_t)coll->ranks, sources = sources_of(coll);
    const size_t pieces = tasks / n / sources;
    const int to = (int)(task / pieces / sources);
    // Each rank begins with itself and goes round, so that they read different sources.
    const int from = coll->mine->kind == LSI_CALL_BROADCAST
                         ? coll->mine->peer
                         : (int)((task / pieces % n + (size_t)to) % n);
    const struct lane lane = lane_of(coll, from, to);
    const size_t piece = task % pieces, each = lane.bytes / pieces / 64 * 64;
    const size_t begin = piece * each;
    const size_t bytes = piece + 1 < pieces ? each : lane.bytes - begin;

    (void)phase;
    // In an all_gather in place, the own part is there already.
    if (bytes > 0 && lane.target != lane.source) {
        memcpy(lane.target + begin, lane.source + begin, bytes);
    }
}

const lsi_plan lsi_plan_copy = {copy_phases, copy_tasks, run_copy};
