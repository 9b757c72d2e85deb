/*
 * A step of an optimizer, from the gradients to the new values, on one replica, on
 * several local peers and over several workers. Gradients are summed over all replicas,
 * never averaged.
 *
 * While all copies of a variable share their memory, the local peers compute the new
 * values together, each its share of the elements; with one worker and dense gradients
 * they sum, clip and update in one pass. Otherwise each peer updates its own copy with
 * the same numbers, so that equal copies stay equal bit by bit.
 *
 * A failure changes nothing on any replica: docs/decisions/0011.
 */
#include "optim/step.h"

#include "base/hash.h"

#include <math.h>
#include <string.h>

/* ---- gradients ---- */

/* Zeroed memory of this part alone; NULL: the context has failed. */
static void *take_block(lsi_part *p, size_t bytes)
{
    size_t i = 0;

    while (p->blocks[i] != NULL) {
        i++;
        LSI_ASSERT(i < LSI_COUNT_OF(p->blocks));
    }
    p->blocks[i] = lsi_device_alloc(p->c->device, LSI_MAX(bytes, 1));
    if (p->blocks[i] == NULL) {
        return ls_context_fail(p->c, LS_RESOURCE_EXHAUSTED,
                               "out of memory for a step of %s", p->o->name);
    }
    memset(p->blocks[i], 0, bytes);
    return p->blocks[i];
}

void *lsi_step_room(lsi_part *p, size_t bytes)
{
    return p->peers > 1 ? lsi_meeting_room(p->c, bytes) : take_block(p, bytes);
}

static void release_gradients(lsi_offer *offer)
{
    for (size_t i = 0; offer->held && i < offer->n; i++) {
        ls_tensor_release(offer->grads[i]);
    }
    offer->held = false;
}

static void release_offer(void *offer)
{
    release_gradients(offer);
}

static lsi_offer *make_offer(lsi_part *p)
{
    enum { LISTS = 3 };
    const size_t members = (size_t)lsi_team_size(p->c->device->team);
    const size_t fixed =
        sizeof(lsi_offer) + (members + 1) * (size_t)p->peers * sizeof(void *);
    size_t bytes;
    lsi_offer *offer = NULL;

    if (!lsi_mul_size(p->n, LISTS * sizeof(void *), &bytes) ||
        !lsi_add_size(bytes, fixed, &bytes)) {
        (void)ls_context_fail(p->c, LS_INVALID_ARGUMENT, "%s: %zu variables are too many",
                              p->o->name, p->n);
        return NULL;
    }
    offer = lsi_step_room(p, bytes);
    if (offer == NULL ||
        (p->peers > 1 && !lsi_context_keep(p->c, offer, release_offer))) {
        return NULL;
    }
    offer->optimizer = p->o;
    offer->n = p->n;
    offer->vars = (ls_variable **)(void *)(offer + 1);
    offer->grads = (ls_tensor **)(void *)(offer->vars + p->n);
    offer->sums = offer->grads + p->n;
    p->from = (const void **)(void *)(offer->sums + p->n);
    for (size_t i = 0; i < p->n; i++) {
        offer->vars[i] = p->vars[i];
    }
    return offer;
}

static void open_part(lsi_part *p, ls_context *c, ls_optimizer *o,
                      ls_variable *const *vars, size_t n)
{
    const lsi_replica *r = lsi_replica_of(c);

    *p = (lsi_part){.c = c,
                    .o = o,
                    .peers = lsi_local_peers(c),
                    .workers = 1,
                    .n = n,
                    .vars = vars,
                    .recording = c->recording};
    if (r != NULL && r->run != NULL) {
        p->index = r->index;
        p->strategy = r->strategy;
        p->workers = lsi_workers(r->strategy);
    }
    if (p->workers > 1 && p->index == 0) {
        lsi_workers_forget(c);
    }
    lsi_aside_clear(c);
    p->mine = make_offer(p);
}

/* Computes the gradients, or takes those that are given; checks them. */
static void take_gradients(lsi_part *p, const lsi_gradients *from)
{
    ls_tensor **grads;

    if (p->mine == NULL) {
        return;
    }
    grads = p->mine->grads;
    if (!from->given) {
        (ls_variable_gradients)(p->c, from->tape, from->loss, p->vars, p->n, grads);
    } else if (p->n > 0) {
        memcpy(grads, from->grads, p->n * sizeof(ls_tensor *));
    }
    p->c->recording = 0;
    if (!lsi_failed(p->c) && lsi_optimizer_check(p->c, p->o, grads, p->vars, p->n) &&
        p->o->shared.keras3) {
        lsi_clip(p->c, p->o, grads, p->n);
    }
}

/* The kind of a gradient. 0: missing, 1: dense, 2: sparse. */
static unsigned kind_of(const ls_tensor *g)
{
    return g == NULL ? 0 : lsi_is_sparse(g) ? 2 : 1;
}

static uint64_t hash_of(const lsi_offer *offer)
{
    uint64_t hash = LSI_HASH_INIT ^ offer->n;

    for (size_t i = 0; i < offer->n; i++) {
        hash = lsi_hash_word(hash, (uint64_t)(uintptr_t)offer->vars[i]);
        hash = lsi_hash_word(hash, kind_of(offer->grads[i]));
    }
    return hash;
}

/* Gradients are retained until no replica reads them, also if the step fails. */
static void hold_gradients(lsi_offer *offer)
{
    offer->hash = hash_of(offer);
    for (size_t i = 0; i < offer->n; i++) {
        (void)ls_tensor_retain(offer->grads[i]);
    }
    offer->held = true;
}

static bool same_offer(const lsi_offer *a, const lsi_offer *b)
{
    return a->optimizer == b->optimizer && a->n == b->n && a->hash == b->hash;
}

/* Fails with the first difference between replica 0 and local replica r. */
static void fail_difference(ls_context *c, const lsi_offer *a, int r, const lsi_offer *b)
{
    static const char *const kinds[] = {"no gradient", "a gradient", "a sparse gradient"};
    char mine[64], theirs[64];
    size_t i = 0;

    if (a->optimizer != b->optimizer || a->n != b->n) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                              "apply_gradients: replica 0 passes %zu variables to %s, "
                              "replica %d %zu to %s%s; every replica must make the same "
                              "call",
                              a->n, a->optimizer->name, r, b->n, b->optimizer->name,
                              a->optimizer != b->optimizer ? ", another optimizer" : "");
        return;
    }
    while (i + 1 < a->n && a->vars[i] == b->vars[i] &&
           kind_of(a->grads[i]) == kind_of(b->grads[i])) {
        i++;
    }
    (void)ls_context_fail(
        c, LS_INVALID_ARGUMENT,
        "%s: at %zu replica 0 passes '%s' %s with %s, replica %d '%s' %s "
        "with %s; every replica must pass the same variables in the same "
        "order",
        a->optimizer->name, i, a->vars[i]->name,
        ls_shape_text(&a->vars[i]->shape, mine, sizeof mine), kinds[kind_of(a->grads[i])],
        r, b->vars[i]->name, ls_shape_text(&b->vars[i]->shape, theirs, sizeof theirs),
        kinds[kind_of(b->grads[i])]);
}

/*
 * Shows the gradients to the local peers, or that there are none because this replica has
 * failed. p->going: all peers have shown some, for the same variables.
 */
static void show_gradients(lsi_part *p)
{
    const bool failed = lsi_aside_keep(p->c);

    if (!failed && p->peers > 1) {
        hold_gradients(p->mine);
    }
    p->going = lsi_meeting_open(p->c, "apply_gradients", 0, failed ? NULL : p->mine,
                                LSI_UNTIL_RUN_ENDS, &p->m);
    for (int r = 0; r < p->m.n && p->going; r++) {
        p->going = lsi_offer_of(p, r) != NULL;
    }
    for (int r = 1; r < p->m.n && p->going; r++) {
        if (!same_offer(lsi_offer_of(p, 0), lsi_offer_of(p, r))) {
            p->going = false;
            if (p->index == 0) { // its failure is that of all
                fail_difference(p->c, lsi_offer_of(p, 0), r, lsi_offer_of(p, r));
            }
        }
    }
    for (size_t i = 0; i < p->n && p->going; i++) {
        p->mine->sums[i] = p->mine->grads[i];
        p->sparse |= lsi_is_sparse(p->mine->grads[i]);
    }
    (void)lsi_aside_keep(p->c);
}

static LSI_COLD void build_slots(const lsi_part *p)
{
    ls_error e = LS_ERROR_INIT;

    if (lsi_optimizer_build(p->o, p->mine->grads, p->vars, p->n, &e) != LS_OK) {
        (void)lsi_context_error(p->c, &e);
    }
}

/* Local replica 0 makes the slots that are missing, before anything is sent. */
static void make_slots(lsi_part *p)
{
    if (p->index == 0 && p->going &&
        !lsi_optimizer_built(p->o, p->mine->grads, p->vars, p->n)) {
        build_slots(p);
    }
    (void)lsi_aside_keep(p->c);
}

/* ---- the update ---- */

/* The factor for all sums; 1: none. */
static double global_factor(const lsi_part *p)
{
    const double limit = lsi_limit_of(p->o, p->o->shared.global_clipnorm);
    double sum = 0;

    for (size_t i = 0; i < p->n && limit > 0; i++) {
        sum += p->plan->items[i].slots != NULL ? p->plan->items[i].norm : 0;
    }
    return limit > 0 ? lsi_global_factor(sqrt(sum), limit) : 1;
}

static double factor_of(const lsi_part *p, const lsi_item *item, double global)
{
    const double limit = lsi_limit_of(p->o, p->o->shared.clipnorm);

    return limit > 0 ? lsi_norm_factor(sqrt(item->norm), limit) : global;
}

/* Updates the elements [begin, end) of one copy, or of all that share their memory. */
static void update_range(const lsi_part *p, size_t i, int copy, const lsi_writes *w,
                         double factor, int64_t begin, int64_t end)
{
    const lsi_item *item = &p->plan->items[i];
    const ls_variable *v = p->vars[i], *own = ls_variable_component(v, (size_t)copy);
    const size_t slots = lsi_optimizer_slot_count(p->o);
    lsi_step whole = {.dtype = v->dtype, .optimizer = p->o, .turn = &p->plan->turn};
    lsi_sources from = {p->from, 1, lsi_limit_of(p->o, p->o->shared.clipvalue), factor};

    lsi_writes_keep(p->o, w, ls_dtype_size(v->dtype), item->rows, begin, end);
    whole.n = (size_t)v->count;
    whole.w = item->rows ? w->component.to : w->component.from;
    whole.w_out = w->component.to;
    whole.update = lsi_update_for(own->device);
    for (size_t k = 0; k < slots; k++) {
        whole.slot[k] = w->slot[k].to;
    }
    if (item->rows) {
        lsi_optimizer_update_rows(&whole, p->mine->sums[i], p->scratch, begin, end);
        return;
    }
    whole.squares = item->squares != NULL ? item->squares->data : NULL;
    p->from[0] = item->sum != NULL ? item->sum->data : NULL;
    if (item->sum == NULL) {
        from.n = p->peers;
        for (int r = 0; r < p->peers; r++) {
            p->from[r] = lsi_offer_of(p, r)->grads[i]->data;
        }
    }
    lsi_optimizer_update_share(&whole, &from, begin, end, p->c->device->team,
                               p->from + p->peers);
}

static void update_item(const lsi_part *p, size_t i, double global)
{
    const lsi_item *item = &p->plan->items[i];
    const double factor = factor_of(p, item, global);
    int64_t begin = 0, end = p->vars[i]->count;

    if (item->common) {
        const int copies = lsi_copies_of(p->vars[i]);

        lsi_step_share(p, i, &begin, &end);
        update_range(p, i, p->index % copies, &item->writes[0], factor, begin, end);
        return;
    }
    for (int k = p->index; k < item->copies; k += p->peers) {
        update_range(p, i, k, &item->writes[k], factor, begin, end);
    }
}

/* Updates this replica's share of the variables [first, first + n). */
static void update_variables(const lsi_part *p, size_t first, size_t n)
{
    const double global = global_factor(p);

    for (size_t i = first; i < first + n; i++) {
        const lsi_item *item = &p->plan->items[i];

        if (item->again) { // goes on with what all peers have written
            lsi_barrier(p->c);
        }
        if (item->slots != NULL) {
            update_item(p, i, global);
        }
    }
}

/* ---- the end ---- */

/* The new values become those of the variables: each replica writes its own copies. */
static void commit_update(lsi_part *p)
{
    if (p->index == 0) { // before the barrier: others may read it right after
        lsi_optimizer_advance(p->o);
    }
    lsi_barrier(p->c);
    for (size_t i = 0; i < p->n; i++) {
        const lsi_item *item = &p->plan->items[i];
        const int copies = lsi_copies_of(p->vars[i]);

        for (int k = p->index; k < copies && item->slots != NULL; k += p->peers) {
            lsi_writes_commit(p->o, p->vars[i], item->slots, k,
                              &item->writes[item->common ? 0 : k]);
        }
    }
    release_gradients(p->mine);
    if (p->plan->lone) { // replicas without a copy read what another has written
        lsi_barrier(p->c);
    }
}

static void close_part(lsi_part *p, bool taken)
{
    lsi_step_plan *plan = p->index == 0 && p->mine != NULL ? p->mine->plan : NULL;

    if (plan != NULL && (taken || p->peers == 1)) { // else when the run ends
        plan->taken = taken;
        lsi_step_plan_clear(plan);
    }
    lsi_meeting_close(&p->m);
    for (size_t i = 0; i < LSI_COUNT_OF(p->blocks); i++) {
        if (p->blocks[i] != NULL) {
            lsi_device_free(p->c->device, p->blocks[i]);
        }
    }
    if (p->scratch != NULL) {
        lsi_device_free(p->c->device, p->scratch);
    }
    p->c->recording = p->recording;
}

void lsi_optimizer_step(ls_context *c, ls_optimizer *o, const lsi_gradients *from,
                        ls_variable *const *vars, size_t n)
{
    lsi_part p;
    bool taken;

    open_part(&p, c, o, vars, n);
    take_gradients(&p, from);
    show_gradients(&p);
    make_slots(&p);
    lsi_step_sum_sparse(&p, 0, n);
    lsi_step_take_memory(&p);
    lsi_step_add_partials(&p, 0, n);
    taken = lsi_agree(c, "apply_gradients", lsi_step_decide, &p);
    if (taken) {
        p.plan = lsi_offer_of(&p, 0)->plan;
        lsi_step_finish_sums(&p, 0, n);
        lsi_step_measure(&p);
        update_variables(&p, 0, n);
        commit_update(&p);
    }
    close_part(&p, taken);
}
