/* Groups of a group: everybody tells its colour, the first of each colour makes it. */
#include "collective/local.h"

struct bid {
    int colour, key;
};

/* Whether rank a comes before rank b in a group of one colour. */
static bool before(const struct bid *bids, int a, int b)
{
    return bids[a].key != bids[b].key ? bids[a].key < bids[b].key : a < b;
}

/* The group that `mine` belongs to: its size, its lowest rank, my rank in it. */
static void count_members(const struct bid *bids, int ranks, int mine, int *size,
                          int *maker, int *rank)
{
    *size = 0;
    *maker = -1;
    *rank = 0;
    for (int r = 0; r < ranks; r++) {
        if (bids[r].colour == bids[mine].colour) {
            (*size)++;
            *maker = *maker < 0 ? r : *maker;
            *rank += before(bids, r, mine) ? 1 : 0;
        }
    }
}

static ls_status meet(ls_comm *comm, void *mine, void **all, lsi_comm_site site,
                      ls_error *err)
{
    static const ls_comm_options init = LS_COMM_OPTIONS_INIT;
    lsi_call call = {.kind = LSI_CALL_MEET,
                     .dtype = LS_U8,
                     .size = 1,
                     .peer = -1,
                     .from = mine,
                     .to = (void *)all,
                     .tag = "ls_comm_split",
                     .site = site};
    const ls_status st = lsi_call_prepare(comm, &call, &init, err);

    return st == LS_OK ? lsi_comm_run(comm, &call, 0, err) : st;
}

static ls_status gather(ls_comm *comm, const struct bid *mine, struct bid *all,
                        lsi_comm_site site, ls_error *err)
{
    static const ls_comm_options init = LS_COMM_OPTIONS_INIT;
    lsi_call call = {.kind = LSI_CALL_ALL_GATHER,
                     .dtype = LS_I32,
                     .size = sizeof(int32_t),
                     .peer = -1,
                     .count = sizeof *mine / sizeof(int32_t),
                     .from = mine,
                     .to = all,
                     .site = site};
    const ls_status st = lsi_call_prepare(comm, &call, &init, err);

    return st == LS_OK ? lsi_comm_run(comm, &call, 0, err) : st;
}

/* Second half: the makers hand the groups round; one that has none hands NULL. */
static ls_status share_groups(lsi_local_comm *c, const struct bid *bids,
                              lsi_comm_site site, void **all, ls_comm **out,
                              ls_error *err)
{
    lsi_local_group *g = c->group;
    const int rank = c->base.rank;
    ls_comm_local_options o = LS_COMM_LOCAL_OPTIONS_INIT;
    ls_error why = LS_ERROR_INIT;
    lsi_local_group *made = NULL;
    int size, maker, mine;
    ls_status st;

    count_members(bids, g->size, rank, &size, &maker, &mine);
    if (bids[rank].colour >= 0 && maker == rank) {
        o.timeout_ms = g->timeout_ms;
        o.spin_us = g->spin_us;
        // The number is the same on every rank: it stands in the fingerprints.
        (void)lsi_local_create(size, &o, g->id * 31 + (uint32_t)bids[rank].colour + 1,
                               NULL, &made, &why);
    }
    st = meet(&c->base, made, all, site, err);
    if (st != LS_OK) {
        if (made != NULL) { // a rank that came last may have its handle all the same
            (void)lsi_failure_get(&c->group->failure, &why);
            made->handles[0]->base.backend->fail(&made->handles[0]->base, &why);
            lsi_local_adopt(c->group, made);
        }
        return st;
    }
    if (bids[rank].colour < 0) {
        *out = NULL;
        return LS_OK;
    }
    made = all[maker];
    if (made == NULL) {
        st = lsi_fail(err, LS_RESOURCE_EXHAUSTED, maker,
                      "ls_comm_split: rank %d had no memory for the group of colour %d",
                      maker, bids[rank].colour);
        (void)lsi_fail(&why, st, maker, "ls_comm_split: rank %d had no memory", maker);
        c->base.backend->fail(&c->base, &why);
        return st;
    }
    atomic_store(&made->handles[mine]->taken, true);
    *out = &made->handles[mine]->base;
    return LS_OK;
}

ls_status lsi_local_split(ls_comm *comm, int colour, int key, lsi_comm_site site,
                          ls_comm **out, ls_error *err)
{
    lsi_local_comm *c = lsi_local_of(comm);
    const struct bid mine = {colour < 0 ? -1 : colour, key};
    const size_t n = (size_t)comm->size;
    struct bid *bids = lsi_alloc(n, sizeof *bids);
    void **all = (void **)lsi_alloc(n, sizeof *all);
    ls_error why = LS_ERROR_INIT;
    ls_status st = LS_OK;

    if (bids == NULL || all == NULL) {
        st = lsi_fail_memory(&why, "the colours of a group", n * sizeof *bids);
        comm->backend->fail(comm, &why);
        (void)lsi_fail_again(err, &why);
        goto out;
    }
    st = gather(comm, &mine, bids, site, err);
    if (st == LS_OK) {
        st = share_groups(c, bids, site, all, out, err);
    }
out:
    lsi_free(bids);
    lsi_free((void *)all);
    return st;
}
