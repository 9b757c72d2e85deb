/*
 * The memory of a step, all of it taken before the replicas agree: by local replica 0 the
 * new buffers of variables and the sums, by each replica what it works with.
 */
#include "optim/step.h"

#include "reduce/reduction.h"

#include <string.h>

/* ---- what is planned for each variable ---- */

/* True if all copies of `v` share their memory. */
static bool is_shared(const ls_variable *v)
{
    for (int k = 1; k < v->components; k++) {
        if (v->component[k]->buffer != v->component[0]->buffer) {
            return false;
        }
    }
    return true;
}

/* True if one update serves all copies of the variable and of its slots. */
static bool is_common(const ls_optimizer *o, const ls_variable *v, const lsi_slots *slots)
{
    if ((!v->ops->kept_equal && v->components > 1) || !is_shared(v)) {
        return false;
    }
    for (size_t k = 0; k < lsi_optimizer_slot_count(o); k++) {
        if (!is_shared(slots->slot[k])) {
            return false;
        }
    }
    return true;
}

/*
 * True if the gradient of the item is summed before it is applied. Otherwise the
 * gradients of the local peers are added block by block while they are applied.
 */
static bool needs_sum(const lsi_part *p, const lsi_item *item, const ls_tensor *g)
{
    if (lsi_is_sparse(g)) {
        return !item->rows; // it becomes dense
    }
    return p->workers > 1 || (p->peers > 1 && (p->plan->norms || !item->common));
}

static bool clips_by_norm(const ls_optimizer *o)
{
    return lsi_limit_of(o, o->shared.clipnorm) > 0 ||
           lsi_limit_of(o, o->shared.global_clipnorm) > 0;
}

/* True if a sparse gradient of all replicas is applied row by row. */
static bool goes_by_rows(const lsi_part *p, const ls_tensor *g)
{
    return lsi_is_sparse(g) &&
           (p->o->shared.keras3 ||
            (p->o->shared.clipvalue == 0 && !clips_by_norm(p->o))) &&
           lsi_optimizer_by_rows(p->o, g);
}

/* Sets the items; returns how many writes are needed beside lsi_item.one. */
static size_t plan_items(const lsi_part *p)
{
    lsi_step_plan *plan = p->plan;
    size_t cursor = 0, writes = 0;

    for (size_t i = 0; i < p->n; i++) {
        const ls_variable *v = p->vars[i];
        const int copies = lsi_copies_of(v);
        const ls_tensor *g = p->mine->sums[i];
        lsi_item *item = &plan->items[i];

        if (g == NULL) {
            continue;
        }
        item->slots = lsi_optimizer_find(p->o, v, &cursor);
        item->common = is_common(p->o, v, item->slots);
        item->rows = goes_by_rows(p, g);
        item->copies = item->common ? 1 : copies;
        if (needs_sum(p, item, g)) {
            plan->sums = true;
            plan->whole |= p->peers > 1 && (plan->norms || !item->common);
        }
        plan->lone |= copies < p->peers;
        writes += item->copies > 1 ? (size_t)item->copies : 0;
    }
    return writes;
}

/* ---- memory that local replica 0 takes for all ---- */

void lsi_step_plan_clear(lsi_step_plan *plan)
{
    for (size_t i = 0; i < plan->n && (plan->sums || !plan->taken); i++) {
        lsi_item *item = &plan->items[i];

        for (int k = 0; !plan->taken && item->writes != NULL && k < item->copies; k++) {
            lsi_writes_discard(plan->optimizer, plan->vars[i],
                               item->common ? LSI_ALL_COPIES : k, &item->writes[k]);
        }
        lsi_buffer_release(item->sum);
        lsi_buffer_release(item->squares);
        lsi_buffer_release(item->partial);
        item->sum = item->squares = item->partial = NULL;
    }
}

static void release_plan(void *plan)
{
    lsi_step_plan_clear(plan);
}

/* The plan with its lists; NULL: the context has failed. */
static lsi_step_plan *make_plan(lsi_part *p)
{
    const bool alone = p->workers == 1;
    const size_t each = sizeof(lsi_item) + (alone ? 0 : sizeof(lsi_comm_piece));
    const size_t numbers = p->o->nslots + (alone ? 0 : (size_t)p->workers);
    size_t bytes, rest;
    lsi_step_plan *plan = NULL;

    if (!lsi_mul_size(p->n, each, &bytes) ||
        !lsi_mul_size(numbers, sizeof(int64_t), &rest) ||
        !lsi_add_size(bytes, rest, &bytes) ||
        !lsi_add_size(bytes, sizeof *plan, &bytes)) {
        (void)ls_context_fail(p->c, LS_INVALID_ARGUMENT, "%s: %zu variables are too many",
                              p->o->name, p->n);
        return NULL;
    }
    plan = lsi_step_room(p, bytes);
    if (plan == NULL || (p->peers > 1 && !lsi_context_keep(p->c, plan, release_plan))) {
        return NULL;
    }
    plan->optimizer = p->o;
    plan->n = p->n;
    plan->vars = p->mine->vars;
    plan->items = (lsi_item *)(void *)(plan + 1);
    plan->first = (size_t *)(void *)(plan->items + p->n);
    if (!alone) {
        plan->pieces = (lsi_comm_piece *)(void *)(plan->first + p->o->nslots);
        plan->states = (int64_t *)(void *)(plan->pieces + p->n);
    }
    plan->norms = clips_by_norm(p->o);
    lsi_optimizer_prepare(p->o, &plan->turn);
    return plan;
}

/* Fails with what the memory for variable i cannot hold. */
static LSI_COLD bool fail_memory(const lsi_part *p, size_t i)
{
    const ls_variable *v = p->vars[i];
    ls_error e = LS_ERROR_INIT;

    (void)lsi_fail_memory(&e, v->name, (size_t)v->count * ls_dtype_size(v->dtype));
    (void)lsi_context_error(p->c, &e);
    return false;
}

/*
 * Opens the copies of item i. A variable that comes a second time goes on with what the
 * first time has written.
 */
static bool open_item(const lsi_part *p, size_t i)
{
    lsi_item *item = &p->plan->items[i];
    size_t *first = &p->plan->first[item->slots - p->o->slots];

    item->again = *first != 0;
    for (int k = 0; k < item->copies; k++) {
        if (item->again) {
            lsi_writes_again(&p->plan->items[*first - 1].writes[k], &item->writes[k]);
        } else if (lsi_writes_open(p->o, p->vars[i], item->slots,
                                   item->common ? LSI_ALL_COPIES : k, &item->writes[k],
                                   NULL) != LS_OK) {
            return fail_memory(p, i);
        }
    }
    *first = item->again ? *first : i + 1;
    return true;
}

static bool take_buffer(ls_device *device, size_t bytes, lsi_buffer **out)
{
    *out = lsi_buffer_new(device, bytes);
    return *out != NULL;
}

/* Takes the buffers for the sum of item i, as far as it needs them. */
static bool take_sums(const lsi_part *p, size_t i)
{
    const ls_variable *v = p->vars[i];
    const ls_tensor *g = p->mine->sums[i];
    const size_t bytes = (size_t)v->count * ls_dtype_size(v->dtype);
    lsi_item *item = &p->plan->items[i];
    size_t wide;
    bool ok;

    if (!needs_sum(p, item, g)) {
        return true;
    }
    ok = take_buffer(v->device, bytes, &item->sum);
    if (ok && lsi_is_sparse(g) && p->o->shared.keras3 && p->o->ops->squares) {
        ok = take_buffer(v->device, bytes, &item->squares);
    }
    if (ok && !lsi_is_sparse(g) && p->workers > 1 && p->peers > 1) {
        wide = (size_t)v->count * lsi_wide_size(v->dtype);
        ok = take_buffer(v->device,
                         wide * (size_t)lsi_workers_partials(p->strategy, p->peers),
                         &item->partial);
    }
    return ok || fail_memory(p, i);
}

/* Opens the variables and takes the sums; `more`: writes beside lsi_item.one. */
static void take_items(const lsi_part *p, lsi_writes *more)
{
    bool ok = true;

    for (size_t i = 0; i < p->n && ok; i++) {
        lsi_item *item = &p->plan->items[i];

        if (item->slots != NULL) {
            item->writes = item->copies > 1 ? more : &item->one;
            more += item->copies > 1 ? item->copies : 0;
            ok = open_item(p, i) && take_sums(p, i);
        }
    }
}

static void plan_step(lsi_part *p)
{
    lsi_writes *more = NULL;
    size_t count;

    p->plan = make_plan(p);
    if (p->plan == NULL) {
        return;
    }
    p->mine->plan = p->plan;
    count = plan_items(p);
    if (count > 0) {
        more = lsi_step_room(p, count * sizeof *more);
    }
    if (count == 0 || more != NULL) {
        take_items(p, more);
    }
}

/* ---- memory of each replica ---- */

/* The bytes that this replica works with, for one variable at a time. */
static size_t work_bytes(const lsi_part *p)
{
    const bool norms = clips_by_norm(p->o);
    size_t most = 0;
    int turn = 0;

    for (size_t i = 0; i < p->n && (norms || p->sparse); i++) {
        const ls_variable *v = p->vars[i];
        const ls_tensor *g = p->mine->sums[i];
        size_t bytes = 0;

        if (g != NULL && goes_by_rows(p, g)) {
            bytes = lsi_optimizer_rows_bytes(p->o, g);
        } else if (g != NULL && norms && lsi_step_measures(p, &turn)) {
            bytes = lsi_norm_bytes(v->dtype, v->count);
        }
        most = LSI_MAX(most, bytes);
    }
    return most;
}

static void take_own(lsi_part *p)
{
    const size_t bytes = work_bytes(p);

    if (bytes > 0) {
        p->scratch = lsi_device_alloc(p->c->device, bytes);
        if (p->scratch == NULL) {
            (void)ls_context_fail(p->c, LS_RESOURCE_EXHAUSTED,
                                  "out of memory for a step of %s", p->o->name);
        }
    }
}

void lsi_step_take_memory(lsi_part *p)
{
    if (!p->going || lsi_aside_keep(p->c)) {
        return;
    }
    take_own(p);
    if (p->index == 0 && !lsi_failed(p->c)) {
        plan_step(p);
    }
    (void)lsi_aside_keep(p->c);
}
