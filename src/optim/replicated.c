/*
 * A step of an optimizer in replicas. Gradients are summed over the replicas, never
 * averaged. Copies of a variable that are still one and the same memory stay so: the
 * replicas fill its new elements together, each its share, summing gradients and updating
 * in one pass. Where that is not possible (sparse gradients, clipping, copies that went
 * different ways) the sums are made first and every replica updates its own copy, with
 * the same numbers, so that equal copies stay equal bit by bit. Replica 0 alone changes
 * the optimizer, while the others wait.
 */
#include "optim/optim.h"

#include <string.h>

/* Which gradients there are, as a number that must be the same on all replicas. */
static uint64_t pattern(ls_tensor *const *grads, size_t n)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < n; i++) {
        const unsigned kind = grads[i] == NULL ? 0 : grads[i]->values == NULL ? 1 : 2;

        hash = (hash ^ kind) * UINT64_C(1099511628211);
    }
    return hash;
}

/* What the replicas show each other: all[r] is the gradients of replica r. */
struct meeting {
    void *few[LSI_MAX_SHARED];
    void **all;
    int peers;
};

static bool open_meeting(ls_context *c, const ls_optimizer *o, struct meeting *m)
{
    m->peers = lsi_replica_peers(c);
    m->all =
        m->peers <= LSI_MAX_SHARED ? m->few : lsi_alloc((size_t)m->peers, sizeof(void *));
    if (m->all == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for %s", o->name);
    }
    return m->all != NULL;
}

static void close_meeting(struct meeting *m)
{
    if (m->all != m->few) {
        lsi_free(m->all);
    }
}

/* Waits for everybody without looking at what they show. */
static bool wait_for_all(ls_context *c, const struct meeting *m, uint64_t why)
{
    struct meeting other = {.peers = m->peers};
    bool ok;

    other.all = m->peers <= LSI_MAX_SHARED ? other.few
                                           : lsi_alloc((size_t)m->peers, sizeof(void *));
    if (other.all == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a meeting");
        return false;
    }
    ok = lsi_meet(c, "apply_gradients", why, NULL, other.all);
    close_meeting(&other);
    return ok;
}

/* ---- what replica 0 decides ---- */

/* All copies are one buffer; `alone`: and nobody else holds it. */
static bool is_shared(const ls_variable *v, bool alone)
{
    if (v->kind != LSI_MIRRORED_VARIABLE) {
        return false;
    }
    for (int k = 1; k < v->components; k++) {
        if (v->component[k]->buffer != v->component[0]->buffer) {
            return false;
        }
    }
    return !alone || atomic_load(&v->component[0]->buffer->refs) == v->components;
}

static bool clips(const ls_optimizer *o)
{
    return o->shared.clipvalue != 0 || o->shared.clipnorm != 0 ||
           o->shared.global_clipnorm != 0;
}

static bool can_share(const ls_optimizer *o, const ls_variable *v, const lsi_slots *slots,
                      const struct meeting *m, size_t i)
{
    if (m->peers > LSI_MAX_SHARED || clips(o) || !is_shared(v, false)) {
        return false;
    }
    for (size_t k = 0; k < lsi_optimizer_slot_count(o); k++) {
        if (!is_shared(slots->slot[k], true)) {
            return false;
        }
    }
    for (int r = 0; r < m->peers; r++) {
        ls_tensor *const *grads = m->all[r];

        if (grads[i] == NULL || grads[i]->values != NULL) {
            return false;
        }
    }
    return true;
}

static ls_status make_room(ls_optimizer *o, size_t n, ls_error *err)
{
    lsi_buffer **grown;

    if (n <= o->fresh_room) {
        return LS_OK;
    }
    grown = lsi_realloc(o->fresh, o->fresh_room, n, sizeof(lsi_buffer *));
    if (grown == NULL) {
        return lsi_fail_memory(err, o->name, n * sizeof(lsi_buffer *));
    }
    o->fresh = grown;
    o->fresh_room = n;
    return LS_OK;
}

/* Slots, the numbers of the step, and memory for what is updated together. */
static ls_status plan(ls_optimizer *o, const struct meeting *m, ls_variable *const *vars,
                      size_t n, ls_error *err)
{
    ls_tensor *const *grads = m->all[0];
    size_t cursor = 0;
    ls_status st = lsi_optimizer_make_slots(o, grads, vars, n, err);

    if (st == LS_OK) {
        st = make_room(o, n, err);
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        const ls_variable *v = vars[i];

        o->fresh[i] = NULL;
        if (grads[i] != NULL &&
            can_share(o, v, lsi_optimizer_find(o, v, &cursor), m, i)) {
            const size_t bytes = (size_t)v->count * ls_dtype_size(v->dtype);

            o->fresh[i] = lsi_buffer_new(v->device, bytes);
            st = o->fresh[i] == NULL ? lsi_fail_memory(err, v->name, bytes) : LS_OK;
        }
        for (size_t k = 0; st != LS_OK && k < i; k++) {
            lsi_buffer_release(o->fresh[k]);
            o->fresh[k] = NULL;
        }
    }
    if (st == LS_OK) {
        lsi_optimizer_prepare(o, &o->turn);
        lsi_optimizer_advance(o);
    }
    return st;
}

/* ---- updating together ---- */

static void update_share(const ls_optimizer *o, const struct meeting *m, int index,
                         ls_variable *v, const lsi_slots *slots, lsi_buffer *fresh,
                         size_t i)
{
    const void *grads[LSI_MAX_SHARED];
    const ls_variable *own = v->component[index];
    lsi_step whole = {.dtype = v->dtype, .optimizer = o, .turn = &o->turn};
    int64_t begin, end;

    whole.n = (size_t)v->count;
    whole.w = own->buffer->data;
    whole.w_out = fresh->data;
    whole.update = lsi_update_for(own->device);
    for (size_t k = 0; k < lsi_optimizer_slot_count(o); k++) {
        whole.slot[k] = slots->slot[k]->component[index]->buffer->data;
    }
    for (int r = 0; r < m->peers; r++) {
        ls_tensor *const *theirs = m->all[r];

        grads[r] = theirs[i]->data;
    }
    whole.g = grads[0];
    lsi_team_share(v->count, 64, index, m->peers, &begin, &end);
    lsi_optimizer_update_share(&whole, grads, m->peers, begin, end);
}

/* Fills this replica's share and takes a reference to what all fill, into `mine`. */
static void update_together(const ls_optimizer *o, const struct meeting *m, int index,
                            ls_variable *const *vars, size_t n, lsi_buffer **mine)
{
    size_t cursor = 0;

    for (size_t i = 0; i < n; i++) {
        mine[i] = NULL;
        if (o->fresh[i] != NULL) {
            mine[i] = index == 0 ? o->fresh[i] : lsi_buffer_retain(o->fresh[i]);
            update_share(o, m, index, vars[i], lsi_optimizer_find(o, vars[i], &cursor),
                         mine[i], i);
        }
    }
}

static void commit(ls_variable *const *vars, size_t n, int index, lsi_buffer **mine,
                   bool whole)
{
    for (size_t i = 0; i < n; i++) {
        if (mine[i] != NULL && whole) {
            lsi_buffer_release(vars[i]->component[index]->buffer);
            vars[i]->component[index]->buffer = mine[i];
        } else {
            lsi_buffer_release(mine[i]);
        }
    }
}

/* ---- each its own copy ---- */

/* The dense gradients of one dtype in one sum; tensors to add in `in`, sums to `out`. */
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

/* `list` has room for 2 n tensors. */
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

/* A variable with one copy for all is updated by replica 0. */
static bool one_copy(const ls_variable *v)
{
    return v->kind == LSI_AGGREGATING || v->kind == LSI_PLAIN;
}

/* What is left in `rest` is summed, clipped and applied to this replica's copies. */
static void update_apart(ls_context *c, ls_optimizer *o, ls_tensor **rest,
                         ls_variable *const *vars, size_t n, int index, ls_tensor **list)
{
    ls_error e = LS_ERROR_INIT;

    if (sum_gradients(c, rest, n, list) && !o->shared.keras3) {
        lsi_clip(c, o, rest, n);
    }
    for (size_t i = 0; i < n && index != 0; i++) {
        if (one_copy(vars[i])) {
            rest[i] = NULL;
        }
    }
    if (!lsi_failed(c) &&
        lsi_optimizer_update_copies(c, o, &o->turn, rest, vars, n, index, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
    }
}

/* Pointers that live until the run ends: others look at them whatever happens here. */
struct lists {
    ls_tensor **shown;   /* the gradients, as the others see them */
    ls_tensor **rest;    /* those that are not applied together */
    ls_tensor **scratch; /* 2 n */
    lsi_buffer **mine;
};

static bool make_lists(ls_context *c, ls_tensor *const *grads, size_t n, struct lists *l)
{
    const int64_t bytes = (int64_t)((5 * n + 1) * sizeof(void *));
    const ls_shape shape = LS_SHAPE(bytes);
    ls_tensor *block = lsi_context_tensor(c, LS_U8, &shape);

    if (block == NULL) {
        return false;
    }
    l->shown = block->data;
    l->rest = l->shown + n;
    l->scratch = l->rest + n;
    l->mine = (lsi_buffer **)(void *)(l->scratch + 2 * n);
    memcpy(l->shown, grads, n * sizeof(ls_tensor *));
    return true;
}

/* Everybody has come. */
static void apply(ls_context *c, ls_optimizer *o, const struct meeting *m,
                  const struct lists *l, ls_variable *const *vars, size_t n)
{
    const int index = lsi_replica_of(c)->index;
    ls_error e = LS_ERROR_INIT;
    size_t left = 0;

    if (index == 0 && plan(o, m, vars, n, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
        return; // whoever waits is told by the end of this replica
    }
    if (!wait_for_all(c, m, 1)) {
        return;
    }
    update_together(o, m, index, vars, n, l->mine);
    for (size_t i = 0; i < n; i++) {
        l->rest[i] = o->fresh[i] != NULL ? NULL : l->shown[i];
        left += l->rest[i] != NULL;
    }
    if (left > 0) {
        update_apart(c, o, l->rest, vars, n, index, l->scratch);
    }
    commit(vars, n, index, l->mine, !lsi_failed(c) && wait_for_all(c, m, 2));
}

void lsi_optimizer_apply_replicated(ls_context *c, ls_optimizer *o, ls_tensor **grads,
                                    ls_variable *const *vars, size_t n)
{
    const uint16_t recording = c->recording;
    struct meeting m;
    struct lists l;

    if (o->shared.keras3) {
        lsi_clip(c, o, grads, n);
    }
    if (lsi_failed(c) || !make_lists(c, grads, n, &l) || !open_meeting(c, o, &m)) {
        return;
    }
    if (lsi_meet(c, "apply_gradients", pattern(grads, n), l.shown, m.all)) {
        c->recording = 0;
        apply(c, o, &m, &l, vars, n);
        c->recording = recording;
    }
    close_meeting(&m);
}
