/*
 * Splits a local group: ranks exchange colours, the lowest rank of each creates its
 * group.
 */
#include "collective/local/local.h"

struct colour_key {
    int colour, key;
};

/* Whether rank a comes before rank b in a group of one colour. */
static bool comes_before(const struct colour_key *keys, int a, int b)
{
    return keys[a].key != keys[b].key ? keys[a].key < keys[b].key : a < b;
}

/* The new group of rank `mine`: its size, its creating rank, and the new rank in it. */
static void count_members(const struct colour_key *keys, int ranks, int mine, int *size,
                          int *maker, int *rank)
{
    *size = 0;
    *maker = -1;
    *rank = 0;
    for (int r = 0; r < ranks; r++) {
        if (keys[r].colour == keys[mine].colour) {
            (*size)++;
            *maker = *maker < 0 ? r : *maker;
            *rank += comes_before(keys, r, mine) ? 1 : 0;
        }
    }
}

static ls_status gather_keys(ls_comm *comm, const struct colour_key *mine,
                             struct colour_key *all, lsi_comm_site site, ls_error *err)
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
    const ls_status st = lsi_call_prepare(&call, comm->size, &comm->agreed, &init, err);

    return st == LS_OK ? lsi_comm_run(comm, &call, 0, err) : st;
}

/* Creates the groups and exchanges them; a rank that creates none gives NULL. */
static ls_status share_groups(lsi_local_comm *c, const struct colour_key *keys,
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

    count_members(keys, g->size, rank, &size, &maker, &mine);
    if (keys[rank].colour >= 0 && maker == rank) {
        const lsi_comm_agreed agreed = lsi_comm_agreed_part(&g->agreed, size);

        o.timeout_ms = g->timeout_ms;
        o.spin_us = g->spin_us;
        // The id must be the same on every rank: fingerprints contain it.
        (void)lsi_local_create(size, &o, g->id * 31 + (uint32_t)keys[rank].colour + 1,
                               &agreed, NULL, &made, &why);
    }
    st = lsi_local_meet(&c->base, "ls_comm_split", 0, made, all, NULL, site, &why);
    if (st != LS_OK) {
        (void)lsi_fail_again(err, &why);
        if (made != NULL) { // another rank may have taken its handle already
            made->handles[0]->base.backend->fail(&made->handles[0]->base, &why);
            lsi_local_adopt(c->group, made);
        }
        return st;
    }
    if (keys[rank].colour < 0) {
        *out = NULL;
        return LS_OK;
    }
    made = all[maker];
    if (made == NULL) {
        st = lsi_fail(err, LS_RESOURCE_EXHAUSTED, maker,
                      "ls_comm_split: rank %d had no memory for the group of colour %d",
                      maker, keys[rank].colour);
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
    const struct colour_key mine = {colour < 0 ? -1 : colour, key};
    const size_t n = (size_t)comm->size;
    struct colour_key *keys = lsi_alloc(n, sizeof *keys);
    void **all = (void **)lsi_alloc(n, sizeof *all);
    ls_error why = LS_ERROR_INIT;
    ls_status st = LS_OK;

    if (keys == NULL || all == NULL) {
        st = lsi_fail_memory(&why, "the colours of a group", n * sizeof *keys);
        comm->backend->fail(comm, &why);
        (void)lsi_fail_again(err, &why);
        goto out;
    }
    st = gather_keys(comm, &mine, keys, site, err);
    if (st == LS_OK) {
        st = share_groups(c, keys, site, all, out, err);
    }
out:
    lsi_free(keys);
    lsi_free((void *)all);
    return st;
}
