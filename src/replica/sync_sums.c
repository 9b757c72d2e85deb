/*
 * Sums of dense tensors over the sync group. With one worker the communicator of the
 * local peers adds. With several, the local peers first make the partial sums of their
 * ids together, each a share of the elements; the first of them sums over the workers,
 * and all copy its result.
 */
#include "base/hash.h"
#include "reduce/reduction.h"
#include "replica/run.h"

enum { FEW = 64, ALIGN = 64 };

/* The tensors of one call: `n` of one dtype, and where their sums go. */
struct summands {
    ls_reduce op;
    ls_tensor *const *ts;
    ls_tensor *const *outs;
    size_t n;
    char *partials; /* of local replica 0: the partial sums of all tensors */
};

static bool reduce_locally(ls_context *c, const struct summands *t,
                           const ls_communication_options *opts)
{
    lsi_replica *r = lsi_replica_of(c);
    lsi_comm_piece few[FEW];
    lsi_comm_piece *pieces = t->n <= FEW ? few : lsi_alloc(t->n, sizeof *pieces);
    const ls_comm_options how = lsi_call_options(r->strategy, opts);
    ls_error e = LS_ERROR_INIT;
    ls_status st;

    if (pieces == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for all_reduce");
        return false;
    }
    for (size_t i = 0; i < t->n; i++) {
        pieces[i] =
            (lsi_comm_piece){t->ts[i]->data, t->outs[i]->data, (size_t)t->ts[i]->count};
    }
    lsi_run_pause(r);
    st = lsi_comm_all_reduce_pieces(
        r->local,
        &(lsi_comm_reduction){
            .op = t->op, .dtype = (ls_dtype)t->ts[0]->dtype, .pieces = pieces, .n = t->n},
        &how, lsi_site_of(c), &e);
    if (st != LS_OK) {
        lsi_run_fail(c, &e);
    }
    lsi_turn_wait(r->run, r->index);
    if (pieces != few) {
        lsi_free(pieces);
    }
    return st == LS_OK;
}

/* Bytes of the partial sums of one tensor, `parts` of them. */
static size_t partial_bytes(const ls_tensor *t, int parts)
{
    const size_t bytes =
        (size_t)parts * (size_t)t->count * lsi_wide_size((ls_dtype)t->dtype);

    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* What all local peers must have alike. */
static uint64_t hash_of(const struct summands *t)
{
    uint64_t hash = lsi_hash_word(LSI_HASH_INIT, (uint64_t)t->op);

    hash = lsi_hash_word(hash, t->ts[0]->dtype);
    for (size_t i = 0; i < t->n; i++) {
        hash = lsi_hash_word(hash, (uint64_t)t->ts[i]->count);
    }
    return hash;
}

/* Sums over the workers, on the thread of local replica 0; `from` NULL: one id each. */
static bool sum_over_workers(ls_context *c, const struct summands *t, const char *from,
                             const ls_communication_options *opts)
{
    const lsi_replica *r = lsi_replica_of(c);
    const int ids = r->strategy->local, parts = lsi_workers_partials(r->strategy, ids);
    lsi_comm_piece few[FEW];
    lsi_comm_piece *pieces = t->n <= FEW ? few : lsi_alloc(t->n, sizeof *pieces);
    lsi_workers_sum sum = {.call = {"all_reduce", 0, opts, lsi_site_of(c)},
                           .op = t->op,
                           .dtype = (ls_dtype)t->ts[0]->dtype,
                           .ids = ids,
                           .n = t->n};
    ls_error e = LS_ERROR_INIT;
    ls_status st;

    if (pieces == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for all_reduce");
        return false;
    }
    for (size_t i = 0; i < t->n; i++) {
        pieces[i] = (lsi_comm_piece){from != NULL ? from : t->ts[i]->data,
                                     t->outs[i]->data, (size_t)t->ts[i]->count};
        from += from != NULL ? partial_bytes(t->ts[i], parts) : 0;
    }
    sum.pieces = pieces;
    st = lsi_workers_reduce(r->strategy, &sum, LS_OK, NULL, &e);
    if (st != LS_OK) {
        lsi_run_fail(c, &e);
    }
    if (pieces != few) {
        lsi_free(pieces);
    }
    return st == LS_OK;
}

static const struct summands *summands_of(const lsi_meeting *m, int r)
{
    return lsi_meeting_peer(m, r);
}

/* Adds this replica's share of the elements of tensor `i` into its partial sums at `to`. */
static void add_share(const lsi_meeting *m, const lsi_replica *r, size_t i, char *to,
                      const void **from)
{
    const struct summands *mine = summands_of(m, r->index);
    const ls_tensor *t = mine->ts[i];
    const ls_dtype dtype = (ls_dtype)t->dtype;
    const lsi_reduction sum = lsi_reduction_of(mine->op, dtype, r->strategy->replicas);
    lsi_partial_sum parts[LSI_PARTIALS_MOST];
    const int first = r->strategy->first;
    const int n = lsi_partials_of(first, first + m->n, parts);
    int64_t begin, end;

    lsi_team_share(t->count, 64, r->index, m->n, &begin, &end);
    if (begin == end) {
        return;
    }
    for (int k = 0; k < m->n; k++) {
        from[k] = (const char *)summands_of(m, k)->ts[i]->data +
                  (size_t)begin * ls_dtype_size(dtype);
    }
    for (int p = 0; p < n; p++) {
        parts[p].data =
            to + ((size_t)p * (size_t)t->count + (size_t)begin) * lsi_wide_size(dtype);
    }
    lsi_partials_add(&sum, from, parts, n, (size_t)(end - begin));
}

static bool add_shares(ls_context *c, const lsi_meeting *m)
{
    const lsi_replica *r = lsi_replica_of(c);
    const struct summands *mine = summands_of(m, r->index);
    const int parts = lsi_workers_partials(r->strategy, m->n);
    char *to = summands_of(m, 0)->partials;
    const void *few[FEW];
    const void **from =
        m->n <= FEW ? few : (const void **)lsi_alloc((size_t)m->n, sizeof(void *));

    if (from == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for all_reduce");
        return false;
    }
    for (size_t i = 0; i < mine->n; i++) {
        add_share(m, r, i, to, from);
        to += partial_bytes(mine->ts[i], parts);
    }
    if (from != few) {
        lsi_free((void *)from);
    }
    return true;
}

static void copy_results(const lsi_meeting *m, int index)
{
    const struct summands *first = summands_of(m, 0), *mine = summands_of(m, index);

    for (size_t i = 0; i < mine->n && index != 0; i++) {
        const size_t bytes = ls_tensor_bytes(mine->outs[i]);

        if (bytes > 0) {
            memcpy(mine->outs[i]->data, first->outs[i]->data, bytes);
        }
    }
}

/* The sum of several local peers and of other workers. */
static bool reduce_in_stages(ls_context *c, struct summands *t,
                             const ls_communication_options *opts)
{
    const lsi_replica *r = lsi_replica_of(c);
    const int parts = lsi_workers_partials(r->strategy, r->strategy->local);
    size_t bytes = 0;
    lsi_meeting m;
    bool ok = true;

    for (size_t i = 0; i < t->n; i++) {
        bytes += partial_bytes(t->ts[i], parts);
    }
    if (r->index == 0) {
        t->partials = lsi_device_alloc(c->device, LSI_MAX(bytes, 1));
        if (t->partials == NULL) {
            (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED,
                                  "out of memory for all_reduce (%zu bytes)", bytes);
        }
    }
    ok = lsi_meeting_open(c, "all_reduce", hash_of(t), t, LSI_UNTIL_CLOSE, &m) &&
         add_shares(c, &m) && lsi_meeting_wait(c, "all_reduce", 1);
    if (ok && r->index == 0) {
        ok = sum_over_workers(c, t, t->partials, opts);
    }
    ok = ok && lsi_meeting_wait(c, "all_reduce", 2);
    if (ok) {
        copy_results(&m, r->index);
    }
    lsi_meeting_close(&m);
    if (r->index == 0) {
        lsi_device_free(c->device, t->partials);
    }
    return ok && !lsi_failed(c);
}

bool lsi_all_reduce_tensors(ls_context *c, ls_reduce op, ls_tensor *const *ts, size_t n,
                            const ls_communication_options *opts, ls_tensor **outs)
{
    struct summands t = {.op = op, .ts = ts, .outs = outs, .n = n};

    if (lsi_workers(lsi_replica_of(c)->strategy) == 1) {
        return reduce_locally(c, &t, opts);
    }
    return lsi_local_peers(c) > 1 ? reduce_in_stages(c, &t, opts)
                                  : sum_over_workers(c, &t, NULL, opts);
}
