/*
 * The sums of a step: rows of sparse gradients are gathered; dense ones are added in the
 * tree over the ids of the sync group, by the local peers together, each its share of the
 * elements, then over the workers.
 */
#include "optim/step.h"

#include "base/hash.h"
#include "reduce/reduction.h"

#include <string.h>

void lsi_step_share(const lsi_part *p, size_t i, int64_t *begin, int64_t *end)
{
    const ls_variable *v = p->vars[i];
    int64_t width;

    if (!p->plan->items[i].rows || v->count == 0) {
        lsi_team_share(v->count, 64, p->index, p->peers, begin, end);
        return;
    }
    width = v->count / v->shape.dims[0];
    lsi_team_share(v->shape.dims[0], 1, p->index, p->peers, begin, end);
    *begin *= width;
    *end *= width;
}

/* ---- over all replicas: rows ---- */

void lsi_step_sum_sparse(lsi_part *p, size_t first, size_t n)
{
    ls_context *c = p->c;

    if (!p->sparse || lsi_sync_replicas(c) == 1) {
        return;
    }
    // A replica that has failed still takes part: the others wait for it.
    for (size_t i = first; i < first + n && p->going && !lsi_failed(c); i++) {
        if (lsi_is_sparse(p->mine->grads[i])) {
            p->mine->sums[i] = (ls_all_reduce)(c, LS_SUM, p->mine->grads[i]);
            p->told = lsi_failed(c) && p->workers > 1 && lsi_workers_all_failed(c);
            if (p->told) { // comes before a failure of this replica alone
                lsi_aside_clear(c);
                p->going = false;
            }
            (void)lsi_aside_keep(c);
        }
    }
    p->going = p->going && !lsi_failed(c);
}

/* ---- over the workers: dense gradients ---- */

/* Points p->from at the gradients of the local peers for variable i, `at` bytes in. */
static void point_at_gradients(const lsi_part *p, size_t i, size_t at)
{
    for (int r = 0; r < p->peers; r++) {
        p->from[r] = (const char *)lsi_offer_of(p, r)->grads[i]->data + at;
    }
}

/*
 * All local peers have what they need so far; they see the memory that replica 0 took.
 */
static bool all_ready(lsi_part *p)
{
    const bool ready = !lsi_aside_keep(p->c);
    lsi_meeting m;
    bool all = lsi_meeting_open(p->c, "apply_gradients", 1, ready ? p : NULL,
                                LSI_UNTIL_RUN_ENDS, &m);

    for (int r = 0; r < m.n && all; r++) {
        all = lsi_meeting_peer(&m, r) != NULL;
    }
    lsi_meeting_close(&m);
    return all;
}

/* Adds this replica's share of the elements of variable i into the partial sums. */
static void add_partials(const lsi_part *p, size_t i)
{
    const lsi_item *item = &p->plan->items[i];
    const ls_variable *v = p->vars[i];
    const lsi_reduction sum = lsi_reduction_of(LS_SUM, v->dtype, p->peers);
    const size_t wide = lsi_wide_size(v->dtype);
    const int id = p->strategy->first;
    lsi_partial_sum parts[LSI_PARTIALS_MOST];
    const int n = lsi_partials_of(id, id + p->peers, parts);
    int64_t begin, end;

    lsi_step_share(p, i, &begin, &end);
    for (int k = 0; k < n; k++) {
        parts[k].data = (char *)item->partial->data +
                        ((size_t)k * (size_t)v->count + (size_t)begin) * wide;
    }
    if (begin < end) {
        point_at_gradients(p, i, (size_t)begin * ls_dtype_size(v->dtype));
        lsi_partials_add(&sum, p->from, parts, n, (size_t)(end - begin));
    }
}

void lsi_step_add_partials(lsi_part *p, size_t first, size_t n)
{
    if (p->workers == 1 || !p->going) {
        return;
    }
    p->going = all_ready(p);
    if (!p->going) {
        return;
    }
    p->plan = lsi_offer_of(p, 0)->plan;
    for (size_t i = first; i < first + n; i++) {
        if (p->plan->items[i].partial != NULL) {
            add_partials(p, i);
        }
    }
}

/* What all workers must pass alike. */
static uint64_t hash_for_workers(const lsi_part *p)
{
    uint64_t hash = lsi_hash(LSI_HASH_INIT, p->o->name, strlen(p->o->name));

    for (size_t i = 0; i < p->n; i++) {
        const ls_variable *v = p->vars[i];
        const ls_tensor *g = p->mine->grads[i];

        hash = lsi_hash_word(hash, (uint64_t)v->dtype);
        hash = lsi_hash_word(hash, g == NULL ? 0 : lsi_is_sparse(g) ? 2 : 1);
        for (int d = 0; d < v->shape.ndim; d++) {
            hash = lsi_hash_word(hash, (uint64_t)v->shape.dims[d]);
        }
    }
    return hash;
}

/* The pieces of one dtype: returns how many there are. */
static size_t list_pieces(const lsi_part *p, ls_dtype dtype)
{
    size_t count = 0;

    for (size_t i = 0; i < p->n; i++) {
        const lsi_item *item = &p->plan->items[i];
        const ls_tensor *g = p->mine->grads[i];

        if (item->slots != NULL && !lsi_is_sparse(g) && p->vars[i]->dtype == dtype) {
            p->plan->pieces[count++] =
                (lsi_comm_piece){item->partial != NULL ? item->partial->data : g->data,
                                 item->sum->data, (size_t)p->vars[i]->count};
        }
    }
    return count;
}

/*
 * The outcome of all workers travels with the sum: it is the last thing that can fail.
 * If nothing is summed here, the workers exchange a number in place of it.
 */
static ls_status sum_over_workers(const lsi_part *p, ls_error *err)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    const int64_t mine = 0;
    const lsi_workers_call call = {
        "apply_gradients", hash_for_workers(p), NULL, {p->c->file, p->c->line}};
    lsi_workers_sum sum = {
        .call = call, .op = LS_SUM, .ids = p->peers, .pieces = p->plan->pieces};
    bool summed = false;
    ls_status st = LS_OK;

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes) && st == LS_OK; d++) {
        sum.dtype = dtypes[d];
        sum.n = list_pieces(p, dtypes[d]);
        if (sum.n > 0) {
            st = lsi_workers_reduce(p->strategy, &sum, LS_OK, NULL, err);
            summed = true;
        }
    }
    return summed ? st
                  : lsi_workers_share(p->strategy, &call, &mine, 1, p->plan->states,
                                      LS_OK, NULL, err);
}

ls_status lsi_step_decide(void *part, const ls_error *failed, ls_error *err)
{
    const lsi_part *p = part;
    const lsi_workers_call call = {"apply_gradients", 0, NULL, {p->c->file, p->c->line}};

    if (p->workers > 1 && !p->told) {
        return failed != NULL ? lsi_workers_decline(p->strategy, &call, failed, err)
                              : sum_over_workers(p, err);
    }
    return failed != NULL ? lsi_fail_again(err, failed) : LS_OK;
}

/* ---- what is left, by the local peers together ---- */

/* The dense tensor that the rows of a sparse gradient stand for: this replica's share. */
static void spread_rows(const lsi_part *p, size_t i, int64_t begin, int64_t end)
{
    const lsi_item *item = &p->plan->items[i];
    const ls_tensor *g = p->mine->sums[i];

    lsi_optimizer_spread_rows(g, item->sum->data, begin, end, false);
    if (item->squares != NULL) {
        lsi_optimizer_spread_rows(g, item->squares->data, begin, end, true);
    }
}

static void finish_sum(const lsi_part *p, size_t i)
{
    const ls_variable *v = p->vars[i];
    int64_t begin, end;

    lsi_step_share(p, i, &begin, &end);
    if (begin == end) {
        return;
    }
    if (lsi_is_sparse(p->mine->sums[i])) {
        spread_rows(p, i, begin, end);
    } else if (p->workers == 1) {
        const size_t at = (size_t)begin * ls_dtype_size(v->dtype);

        point_at_gradients(p, i, at);
        lsi_reduce_tree(LS_SUM, p->from, p->peers,
                        (char *)p->plan->items[i].sum->data + at, (size_t)(end - begin),
                        v->dtype);
    }
}

void lsi_step_finish_sums(lsi_part *p, size_t first, size_t n)
{
    for (size_t i = first; i < first + n && p->plan->sums; i++) {
        if (p->plan->items[i].sum != NULL) {
            finish_sum(p, i);
        }
    }
    if (p->plan->whole) {
        lsi_barrier(p->c);
    }
}

void lsi_step_measure(lsi_part *p)
{
    int turn = 0;

    if (!p->plan->norms) {
        return;
    }
    for (size_t i = 0; i < p->n; i++) {
        lsi_item *item = &p->plan->items[i];

        if (item->slots != NULL && lsi_step_measures(p, &turn)) {
            const void *sum =
                item->sum != NULL ? item->sum->data : p->mine->sums[i]->data;

            item->norm = lsi_norm_squared(p->c->device, p->vars[i]->dtype, sum,
                                          p->vars[i]->count, p->scratch);
        }
    }
    lsi_barrier(p->c);
}
