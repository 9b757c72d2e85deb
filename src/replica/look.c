/*
 * Looking at memory of the other replicas: nobody leaves while others look.
 *
 * A replica counts its open looks in the level, before it comes to the meeting and until
 * it is done. So whoever was met is counted, and a replica whose meetings fail, because
 * the run is broken, knows from the counts for whom it has to stay.
 */
#include "replica/frame.h"

static atomic_int *count_of(const lsi_replica *r, int index)
{
    return &r->frame->level->looking[index].depth;
}

/*
 * Waits until nobody has a look open that is as deep as the one this replica closes. Only
 * in a broken run, where nobody waits for anybody but here; and whoever waits here waits
 * for deeper looks than its own, so no two wait for each other. The turn of a sequential
 * run is passed on: the one that looks may be waiting for it.
 */
static void wait_for_lookers(const lsi_replica *r, int depth)
{
    struct lsi_frame *f = r->frame;

    for (int k = 0; k < f->n; k++) {
        while (k != r->index && atomic_load(count_of(r, k)) >= depth) {
            if (lsi_turn_is(f, r->index)) {
                lsi_turn_pass(f, r->index);
            }
            lsi_yield();
        }
    }
}

static void close_look(lsi_look *look)
{
    const lsi_replica *r = lsi_replica_of(look->context);

    atomic_store(count_of(r, r->index), look->depth - 1);
}

/* A meeting failed: others may have met all the same, and look at what was shown. */
static void stay(const lsi_look *look)
{
    const lsi_replica *r = lsi_replica_of(look->context);

    if (lsi_comm_broken(r->comm)) {
        wait_for_lookers(r, look->depth);
    }
}

bool lsi_show(ls_context *c, const char *what, uint64_t detail, void *mine,
              lsi_look *look)
{
    const lsi_replica *r = lsi_replica_of(c);

    look->context = c;
    look->what = what;
    look->n = lsi_replica_peers(c);
    look->all = look->few;
    look->depth = 0;
    look->met = false;
    if (lsi_context_aborted(c)) {
        return false;
    }
    if (look->n == 1) {
        look->all[0] = mine;
        return true;
    }
    if (look->n > LSI_LOOK_FEW) {
        look->all = lsi_alloc((size_t)look->n, sizeof(void *));
    }
    if (look->all == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for %s", what);
        return false;
    }
    look->depth = atomic_load_explicit(count_of(r, r->index), memory_order_relaxed) + 1;
    atomic_store(count_of(r, r->index), look->depth);
    look->met = lsi_come(c, what, detail, mine, look->all);
    if (!look->met) {
        close_look(look);
        stay(look);
    }
    lsi_turn_wait(r->frame, r->index);
    return look->met;
}

void lsi_leave(lsi_look *look)
{
    if (look->met) {
        const lsi_replica *r = lsi_replica_of(look->context);

        close_look(look);
        if (!lsi_come(look->context, look->what, UINT64_MAX, NULL, NULL)) {
            stay(look);
        }
        lsi_turn_wait(r->frame, r->index);
    }
    if (look->all != look->few) {
        lsi_free(look->all);
    }
    look->all = NULL;
    look->met = false;
}
