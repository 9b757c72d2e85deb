/*
 * What every replica of the sync group gives, shown to all of them: local peers show each
 * other their tensors, and the first of them exchanges all of theirs with other workers.
 */
#include "replica/run.h"

#include <string.h>

/* A list of `n` tensors; NULL: the context has failed. */
static ls_tensor **make_list(ls_context *c, size_t n, const char *what)
{
    ls_tensor **list = (ls_tensor **)lsi_alloc(n, sizeof(ls_tensor *));

    if (list == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for %s", what);
    }
    return list;
}

/* Sets g->t to the tensors of the local peers, which are the sync group. */
static bool list_peers(ls_context *c, const char *what, lsi_gathering *g)
{
    g->t = g->few;
    if ((size_t)g->n > LSI_COUNT_OF(g->few)) {
        g->t = g->made = make_list(c, (size_t)g->n, what);
    }
    for (int k = 0; g->t != NULL && k < g->n; k++) {
        g->t[k] = lsi_meeting_peer(&g->local, k);
    }
    return g->t != NULL;
}

/*
 * Gathers those of all workers, on the thread of local replica 0, or sets g->why. The
 * group of the local peers stays whole, unless that of the workers does not.
 */
static void gather_workers(ls_context *c, const char *what, uint64_t detail,
                           lsi_gathering *g)
{
    ls_strategy *s = lsi_replica_of(c)->strategy;
    const lsi_workers_call call = {what, detail, NULL, lsi_site_of(c)};
    const size_t local = (size_t)g->local.n;
    ls_tensor **mine = (ls_tensor **)lsi_alloc(local, sizeof(ls_tensor *));
    ls_error e = LS_ERROR_INIT;

    g->why = (ls_error)LS_ERROR_INIT;
    g->made = (ls_tensor **)lsi_alloc((size_t)g->n, sizeof(ls_tensor *));
    if (mine == NULL || g->made == NULL) {
        (void)lsi_fail_memory(&e, what, (size_t)g->n * sizeof(ls_tensor *));
        (void)lsi_workers_decline(s, &call, &e, &g->why);
    } else {
        for (size_t k = 0; k < local; k++) {
            mine[k] = lsi_meeting_peer(&g->local, (int)k);
        }
        g->retained = lsi_workers_gather(s, &call, mine, local, c->device, g->made, LS_OK,
                                         NULL, &g->why) == LS_OK;
    }
    if (lsi_comm_broken(s->workers)) {
        lsi_run_fail(c, &g->why);
    }
    lsi_free((void *)mine);
}

bool lsi_gathering_open(ls_context *c, const char *what, uint64_t detail, ls_tensor *t,
                        lsi_gathering *g)
{
    const lsi_gathering *first;

    *g = (lsi_gathering){.n = lsi_sync_replicas(c)};
    if (!lsi_meeting_open(c, what, detail, t, LSI_UNTIL_CLOSE, &g->local)) {
        return false;
    }
    if (g->n == g->local.n) {
        return list_peers(c, what, g);
    }
    if (lsi_replica_of(c)->index == 0) {
        gather_workers(c, what, detail, g);
    }
    if (!lsi_meeting_open(c, what, detail, g, LSI_UNTIL_CLOSE, &g->all)) {
        return false;
    }
    first = lsi_meeting_peer(&g->all, 0);
    if (first->why.code != LS_OK) {
        (void)lsi_context_error(c, &first->why);
        return false;
    }
    g->t = first->made;
    return true;
}

void lsi_gathering_close(lsi_gathering *g)
{
    if (g->all.context != NULL) {
        lsi_meeting_close(&g->all);
    }
    lsi_meeting_close(&g->local);
    for (int i = 0; g->retained && i < g->n; i++) {
        ls_tensor_release(g->made[i]);
    }
    lsi_free((void *)g->made);
    g->made = NULL;
    g->t = NULL;
}

/* ---- values that all local peers have alike ---- */

static ls_tensor *sum_alike(ls_context *c, ls_reduce op, ls_tensor *t)
{
    ls_strategy *s = lsi_replica_of(c)->strategy;
    const ls_shape shape = ls_tensor_shape(t);
    ls_tensor *out = lsi_context_tensor(c, (ls_dtype)t->dtype, &shape);
    const lsi_comm_piece piece = {t->data, out == NULL ? NULL : out->data,
                                  (size_t)t->count};
    const lsi_workers_sum sum = {.call = {"all_reduce", 0, NULL, lsi_site_of(c)},
                                 .op = op,
                                 .dtype = (ls_dtype)t->dtype,
                                 .ids = 1,
                                 .pieces = &piece,
                                 .n = 1};
    ls_error e = LS_ERROR_INIT;

    if (out != NULL && lsi_workers_reduce(s, &sum, LS_OK, NULL, &e) != LS_OK) {
        lsi_run_fail(c, &e);
    }
    return lsi_failed(c) ? NULL : out;
}

ls_tensor *lsi_reduce_alike(ls_context *c, ls_reduce op, ls_tensor *t)
{
    ls_tensor *out = NULL;
    lsi_meeting m;

    if (lsi_workers(lsi_replica_of(c)->strategy) == 1) {
        return t;
    }
    if (lsi_replica_of(c)->index == 0) {
        out = sum_alike(c, op, t);
    }
    if (lsi_meeting_open(c, "all_reduce", 3, out, LSI_UNTIL_CLOSE, &m) &&
        lsi_replica_of(c)->index != 0) {
        const ls_tensor *first = lsi_meeting_peer(&m, 0);
        const ls_shape shape = ls_tensor_shape(first);

        out = lsi_context_tensor(c, (ls_dtype)first->dtype, &shape);
        if (out != NULL && first->count > 0) {
            memcpy(out->data, first->data, ls_tensor_bytes(first));
        }
    }
    lsi_meeting_close(&m);
    return lsi_failed(c) ? NULL : out;
}
