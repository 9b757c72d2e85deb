/*
 * A step of an optimizer in replicas. Gradients are summed over the replicas, never
 * averaged.
 *
 * While the copies of a variable share one buffer, the replicas compute one new buffer
 * together: each sums, clips and updates its share of the elements in one pass. Clipping
 * by norm needs the whole sum first, which the replicas compute together as well.
 *
 * Otherwise (sparse gradients, copies in separate buffers) the gradients are summed first
 * and every replica updates its own copy with the same numbers, so that equal copies stay
 * equal bit by bit.
 *
 * Replica 0 alone changes the optimizer, while the others wait.
 */
#include "base/hash.h"
#include "optim/optim.h"
#include "reduce/reduction.h"

#include <math.h>
#include <string.h>

/*
 * What one replica shows to the others. It lives until the run ends: they may read it
 * after this replica has failed. The lists from `rest` on are private to the replica.
 */
struct shown {
    const ls_optimizer *optimizer;
    uint64_t hash; /* of the variables and of the kinds of the gradients */
    size_t n;
    ls_variable **vars;
    ls_tensor **grads; /* retained */
    bool held;         /* `grads` are retained still */

    /*
     * Set by replica 0 for all, valid after the second meeting. `fresh`: the new buffers,
     * which all replicas fill together; NULL: each updates its own copy. `sums`: buffers
     * for gradients whose norm is needed; `norms`: the squares of those norms.
     */
    lsi_optimizer_turn turn;
    lsi_buffer **fresh;
    lsi_buffer **sums;
    double *norms;
    bool has_norms;

    ls_tensor **rest;    /* gradients of the variables without `fresh` */
    ls_tensor **scratch; /* room for 2 n tensors */
    lsi_buffer **mine;
    const void **from; /* two per replica */
};

static const struct shown *shown_by(const lsi_meeting *m, int r)
{
    return lsi_meeting_peer(m, r);
}

/* The kind of a gradient. 0: missing, 1: dense, 2: sparse. */
static unsigned kind_of(const ls_tensor *g)
{
    return g == NULL ? 0 : g->values == NULL ? 1 : 2;
}

static uint64_t hash_of(const struct shown *s)
{
    uint64_t hash = LSI_HASH_INIT ^ s->n;

    for (size_t i = 0; i < s->n; i++) {
        hash = lsi_hash_word(hash, (uint64_t)(uintptr_t)s->vars[i]);
        hash = lsi_hash_word(hash, kind_of(s->grads[i]));
    }
    return hash;
}

/* Gradients are retained until no replica reads them, also if the step fails. */
static void release_gradients(struct shown *s)
{
    for (size_t i = 0; s->held && i < s->n; i++) {
        ls_tensor_release(s->grads[i]);
    }
    s->held = false;
}

static void release_shown(void *object)
{
    struct shown *s = object;

    release_gradients(s);
    for (size_t i = 0; i < s->n; i++) {
        lsi_buffer_release(s->fresh[i]);
        lsi_buffer_release(s->sums[i]);
    }
}

/* Fills in what this replica shows; NULL: the context has failed. */
static struct shown *show_gradients(ls_context *c, const ls_optimizer *o,
                                    ls_tensor *const *grads, ls_variable *const *vars,
                                    size_t n)
{
    enum { LISTS = 9 }; // lists of n pointers or doubles
    const size_t fixed =
        sizeof(struct shown) + 2 * (size_t)lsi_local_peers(c) * sizeof(void *);
    size_t bytes;
    struct shown *s = NULL;

    if (!lsi_mul_size(n, LISTS * sizeof(void *), &bytes) ||
        !lsi_add_size(bytes, fixed, &bytes)) {
        return (struct shown *)(void *)ls_context_fail(
            c, LS_INVALID_ARGUMENT, "%s: %zu variables are too many", o->name, n);
    }
    s = lsi_meeting_room(c, bytes);
    if (s == NULL) {
        return NULL;
    }
    s->optimizer = o;
    s->n = n;
    s->vars = (ls_variable **)(void *)(s + 1);
    s->grads = (ls_tensor **)(void *)(s->vars + n);
    s->fresh = (lsi_buffer **)(void *)(s->grads + n);
    s->sums = s->fresh + n;
    s->mine = s->sums + n;
    s->rest = (ls_tensor **)(void *)(s->mine + n);
    s->scratch = s->rest + n;
    s->norms = (double *)(void *)(s->scratch + 2 * n);
    s->from = (const void **)(void *)(s->norms + n);
    s->held = true;
    for (size_t i = 0; i < n; i++) {
        s->vars[i] = vars[i];
        s->grads[i] = ls_tensor_retain(grads[i]);
    }
    s->hash = hash_of(s);
    return lsi_context_keep(c, s, release_shown) ? s : NULL;
}

/* Fails with the first difference between replica 0 and replica r. */
static void fail_difference(ls_context *c, const struct shown *a, int r,
                            const struct shown *b)
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

static bool gradients_agree(ls_context *c, const lsi_meeting *m)
{
    const struct shown *first = shown_by(m, 0);

    for (int r = 1; r < m->n; r++) {
        const struct shown *other = shown_by(m, r);

        if (other->optimizer != first->optimizer || other->n != first->n ||
            other->hash != first->hash) {
            fail_difference(c, first, r, other);
            return false;
        }
    }
    return true;
}

/* ---- planning, by replica 0 ---- */

/* True if all copies share one buffer; `alone`: and have the only references to it. */
static bool is_shared(const ls_variable *v, bool alone)
{
    if (!v->ops->kept_equal) {
        return false;
    }
    for (int k = 1; k < v->components; k++) {
        if (v->component[k]->buffer != v->component[0]->buffer) {
            return false;
        }
    }
    return !alone || atomic_load(&v->component[0]->buffer->refs) == v->components;
}

static bool can_share(const ls_optimizer *o, const ls_variable *v, const lsi_slots *slots,
                      const ls_tensor *g)
{
    if (g->values != NULL || !is_shared(v, false)) {
        return false;
    }
    for (size_t k = 0; k < lsi_optimizer_slot_count(o); k++) {
        if (!is_shared(slots->slot[k], true)) {
            return false;
        }
    }
    return true;
}

/* The limit for the sum; under keras3 each replica has clipped its own gradients. */
static double limit_of(const ls_optimizer *o, double asked)
{
    return o->shared.keras3 ? 0 : asked;
}

/* With a global norm, all gradients must be summed in shared buffers, or none. */
static bool may_share(const ls_optimizer *o, const struct shown *mine)
{
    size_t cursor = 0;

    if (limit_of(o, o->shared.global_clipnorm) == 0) {
        return true;
    }
    for (size_t i = 0; i < mine->n; i++) {
        const ls_variable *v = mine->vars[i];

        if (mine->grads[i] != NULL &&
            !can_share(o, v, lsi_optimizer_find(o, v, &cursor), mine->grads[i])) {
            return false;
        }
    }
    return true;
}

/* Allocates the buffers of the variables that are updated together. */
static ls_status plan_shares(ls_optimizer *o, struct shown *mine, ls_error *err)
{
    const bool norms =
        limit_of(o, o->shared.clipnorm) > 0 || limit_of(o, o->shared.global_clipnorm) > 0;
    size_t cursor = 0;

    for (size_t i = 0; i < mine->n; i++) {
        const ls_variable *v = mine->vars[i];
        const size_t bytes = (size_t)v->count * ls_dtype_size(v->dtype);

        if (mine->grads[i] == NULL ||
            !can_share(o, v, lsi_optimizer_find(o, v, &cursor), mine->grads[i])) {
            continue;
        }
        mine->fresh[i] = lsi_buffer_new(v->device, bytes);
        mine->sums[i] = norms ? lsi_buffer_new(v->device, bytes) : NULL;
        mine->has_norms |= norms;
        if (mine->fresh[i] == NULL || (norms && mine->sums[i] == NULL)) {
            return lsi_fail_memory(err, v->name, bytes);
        }
    }
    return LS_OK;
}

/*
 * Creates slots, computes the numbers of the step and plans which variables are updated
 * together.
 */
static ls_status plan_update(ls_optimizer *o, struct shown *mine, ls_error *err)
{
    ls_status st = lsi_optimizer_build(o, mine->grads, mine->vars, mine->n, err);

    if (st == LS_OK && may_share(o, mine)) {
        st = plan_shares(o, mine, err);
    }
    if (st == LS_OK) {
        lsi_optimizer_prepare(o, &mine->turn);
    }
    return st;
}

/* ---- updating together ---- */

/* Sets from[r] to replica r's gradient for variable i, `offset` bytes in. */
static void point_at_gradients(const lsi_meeting *m, size_t i, size_t offset,
                               const void **from)
{
    for (int r = 0; r < m->n; r++) {
        from[r] = (const char *)shown_by(m, r)->grads[i]->data + offset;
    }
}

/* Sums this replica's share of the gradients whose norm is needed. */
static void sum_shares(const lsi_meeting *m, int index, struct shown *mine)
{
    const struct shown *first = shown_by(m, 0);

    for (size_t i = 0; i < mine->n; i++) {
        const ls_variable *v = mine->vars[i];
        int64_t begin = 0, end = 0;

        if (first->sums[i] != NULL) {
            lsi_team_share(v->count, 64, index, m->n, &begin, &end);
        }
        if (begin < end) {
            const size_t offset = (size_t)begin * ls_dtype_size(v->dtype);

            point_at_gradients(m, i, offset, mine->from);
            lsi_reduce_tree(LS_SUM, mine->from, m->n,
                            (char *)first->sums[i]->data + offset, (size_t)(end - begin),
                            v->dtype);
        }
    }
}

/* Computes the norm of every m->n-th sum: the replicas divide them in turn. */
static void compute_norms(ls_context *c, const lsi_meeting *m, int index,
                          const struct shown *mine)
{
    const struct shown *first = shown_by(m, 0);
    int turn = 0;

    for (size_t i = 0; i < mine->n && !lsi_failed(c); i++) {
        if (first->sums[i] != NULL && turn++ % m->n == index) {
            ls_tensor *t = lsi_context_struct(c);

            if (t == NULL) {
                (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED,
                                      "out of memory for a norm");
                return;
            }
            lsi_tensor_init_over(t, first->sums[i], mine->vars[i]->dtype,
                                 &mine->vars[i]->shape);
            first->norms[i] = lsi_squared_norm(c, t);
        }
    }
}

/* The factor for the sums of all variables; 1: no scaling. */
static double global_factor(const ls_optimizer *o, const struct shown *first)
{
    const double limit = limit_of(o, o->shared.global_clipnorm);
    double sum = 0;

    for (size_t i = 0; i < first->n && limit > 0; i++) {
        sum += first->sums[i] != NULL ? first->norms[i] : 0;
    }
    return limit > 0 ? lsi_global_factor(sqrt(sum), limit) : 1;
}

static void update_share(const ls_optimizer *o, const lsi_meeting *m, int index,
                         const struct shown *mine, const lsi_slots *slots, size_t i,
                         double factor)
{
    const struct shown *first = shown_by(m, 0);
    const ls_variable *v = mine->vars[i], *own = v->component[index];
    lsi_step whole = {.dtype = v->dtype, .optimizer = o, .turn = &first->turn};
    lsi_sources from = {mine->from, mine->from + m->n, m->n,
                        limit_of(o, o->shared.clipvalue), factor};
    int64_t begin, end;

    whole.n = (size_t)v->count;
    whole.w = own->buffer->data;
    whole.w_out = first->fresh[i]->data;
    whole.update = lsi_update_for(own->device);
    for (size_t k = 0; k < lsi_optimizer_slot_count(o); k++) {
        whole.slot[k] = slots->slot[k]->component[index]->buffer->data;
    }
    point_at_gradients(m, i, 0, mine->from);
    if (first->sums[i] != NULL) {
        mine->from[0] = first->sums[i]->data;
        from.n = 1;
        if (o->shared.clipnorm > 0) {
            from.factor = lsi_norm_factor(sqrt(first->norms[i]), o->shared.clipnorm);
        }
    }
    whole.g = mine->from[0];
    lsi_team_share(v->count, 64, index, m->n, &begin, &end);
    lsi_optimizer_update_share(&whole, &from, begin, end);
}

/*
 * Updates this replica's share of the new buffers and retains them. False: the context
 * has failed.
 */
static bool update_together(ls_context *c, const ls_optimizer *o, const lsi_meeting *m,
                            int index, struct shown *mine)
{
    const struct shown *first = shown_by(m, 0);
    size_t cursor = 0;
    double factor;

    if (first->has_norms) {
        sum_shares(m, index, mine);
        if (!lsi_meeting_wait(c, "apply_gradients", 3)) {
            return false;
        }
        compute_norms(c, m, index, mine);
        if (lsi_failed(c) || !lsi_meeting_wait(c, "apply_gradients", 4)) {
            return false;
        }
    }
    factor = global_factor(o, first);
    for (size_t i = 0; i < mine->n; i++) {
        if (first->fresh[i] != NULL) {
            mine->mine[i] = lsi_buffer_retain(first->fresh[i]);
            update_share(o, m, index, mine, lsi_optimizer_find(o, mine->vars[i], &cursor),
                         i, factor);
        }
    }
    return true;
}

/* `whole`: all replicas have updated their shares; else the variables stay unchanged. */
static void commit_update(struct shown *mine, int index, bool whole)
{
    for (size_t i = 0; i < mine->n; i++) {
        if (mine->mine[i] != NULL && whole) {
            lsi_buffer_release(mine->vars[i]->component[index]->buffer);
            mine->vars[i]->component[index]->buffer = mine->mine[i];
        } else {
            lsi_buffer_release(mine->mine[i]);
        }
        if (whole) { // the references of replica 0; other replicas have none
            lsi_buffer_release(mine->fresh[i]);
            lsi_buffer_release(mine->sums[i]);
            mine->fresh[i] = NULL;
            mine->sums[i] = NULL;
        }
    }
}

/* ---- separate copies ---- */

/* Sums the dense gradients of one dtype in one call; `in` and `out` are scratch lists. */
static bool sum_dtype(ls_context *c, ls_tensor **grads, size_t n, ls_dtype dtype,
                      ls_tensor **in, ls_tensor **out)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        if (grads[i] != NULL && grads[i]->values == NULL &&
            grads[i]->dtype == (uint8_t)dtype) {
            const ls_shape shape = ls_tensor_shape(grads[i]);

            in[count] = grads[i];
            out[count] = lsi_context_tensor(c, dtype, &shape);
            if (out[count] == NULL) {
                return false;
            }
            count++;
        }
    }
    if (count == 0) {
        return true;
    }
    if (!lsi_all_reduce_tensors(c, LS_SUM, in, count, NULL, out)) {
        return false;
    }
    for (size_t i = 0, k = 0; i < n && k < count; i++) {
        if (grads[i] == in[k]) {
            grads[i] = out[k++];
        }
    }
    return true;
}

/* Replaces the gradients by their sums over replicas; `list`: scratch, 2 n tensors. */
static bool sum_gradients(ls_context *c, ls_tensor **grads, size_t n, ls_tensor **list)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    bool ok = true;

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes) && ok; d++) {
        ok = sum_dtype(c, grads, n, dtypes[d], list, list + n);
    }
    for (size_t i = 0; i < n && ok; i++) {
        if (grads[i] != NULL && grads[i]->values != NULL) {
            grads[i] = (ls_all_reduce)(c, LS_SUM, grads[i]);
            ok = grads[i] != NULL;
        }
    }
    return ok;
}

/* True if the variable has one copy for all replicas, which replica 0 updates. */
static bool one_copy(const ls_variable *v)
{
    return !v->ops->per_replica;
}

/* Sums and clips the gradients in `rest` and applies them to this replica's copies. */
static void update_apart(ls_context *c, ls_optimizer *o, const lsi_optimizer_turn *turn,
                         struct shown *mine, int index)
{
    ls_error e = LS_ERROR_INIT;

    if (sum_gradients(c, mine->rest, mine->n, mine->scratch) && !o->shared.keras3) {
        lsi_clip(c, o, mine->rest, mine->n);
    }
    for (size_t i = 0; i < mine->n && index != 0; i++) {
        if (one_copy(mine->vars[i])) {
            mine->rest[i] = NULL;
        }
    }
    if (!lsi_failed(c) && lsi_optimizer_update_copies(c, o, turn, mine->rest, mine->vars,
                                                      mine->n, index, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
    }
}

/* The step, after all replicas have shown equal variables and kinds of gradients. */
static void apply_together(ls_context *c, ls_optimizer *o, const lsi_meeting *m,
                           struct shown *mine)
{
    const int index = lsi_replica_of(c)->index;
    const struct shown *first = shown_by(m, 0);
    ls_error e = LS_ERROR_INIT;
    size_t left = 0;
    bool whole;

    if (index == 0 && plan_update(o, mine, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
        return; // when this replica ends, those that wait fail with its error
    }
    if (!lsi_meeting_wait(c, "apply_gradients", 1) ||
        !update_together(c, o, m, index, mine)) {
        return;
    }
    for (size_t i = 0; i < mine->n; i++) {
        mine->rest[i] = first->fresh[i] != NULL ? NULL : mine->grads[i];
        left += mine->rest[i] != NULL;
    }
    if (left > 0) {
        update_apart(c, o, &first->turn, mine, index);
    }
    // Before the meeting: other replicas may read the count right after it.
    if (index == 0 && !lsi_failed(c)) {
        lsi_optimizer_advance(o);
    }
    whole = !lsi_failed(c);
    if (whole && !lsi_meeting_wait(c, "apply_gradients", 2)) {
        whole = false;
        o->iterations -= index == 0;
    }
    commit_update(mine, index, whole);
    if (whole) {
        release_gradients(mine);
    }
}

void lsi_optimizer_apply_replicated(ls_context *c, ls_optimizer *o, ls_tensor **grads,
                                    ls_variable *const *vars, size_t n)
{
    const uint16_t recording = c->recording;
    struct shown *mine;
    lsi_meeting m;

    if (o->shared.keras3) {
        lsi_clip(c, o, grads, n);
    }
    mine = lsi_failed(c) ? NULL : show_gradients(c, o, grads, vars, n);
    if (mine == NULL) {
        return;
    }
    if (lsi_meeting_open(c, "apply_gradients", 0, mine, LSI_UNTIL_RUN_ENDS, &m) &&
        gradients_agree(c, &m)) {
        c->recording = 0;
        apply_together(c, o, &m, mine);
        c->recording = recording;
    }
    lsi_meeting_close(&m);
}
