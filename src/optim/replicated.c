/*
 * A step of an optimizer in replicas: gradients are summed over the replicas (never
 * averaged), then every replica updates its own copy of each variable with the same
 * numbers, so that the copies stay equal bit by bit. Replica 0 alone changes the
 * optimizer, before the sums bring everybody together.
 */
#include "optim/optim.h"

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

/* What replica 0 shows: why the step cannot be taken, or that it can. */
static bool agree(ls_context *c, ls_optimizer *o, ls_tensor *const *grads,
                  ls_variable *const *vars, size_t n)
{
    enum { FEW = 64 };
    const int peers = lsi_replica_peers(c);
    void *few[FEW];
    void **all = peers <= FEW ? few : lsi_alloc((size_t)peers, sizeof(void *));
    ls_error e = LS_ERROR_INIT;
    bool ok = false;

    if (all == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for %s", o->name);
        return false;
    }
    if (lsi_replica_of(c)->index == 0) {
        if (lsi_optimizer_make_slots(o, grads, vars, n, &e) == LS_OK) {
            lsi_optimizer_prepare(o, &o->turns[o->iterations & 1]);
            lsi_optimizer_advance(o);
        } else {
            (void)lsi_context_error(c, &e);
        }
    }
    ok = lsi_meet(c, "apply_gradients", pattern(grads, n), NULL, all);
    if (all != few) {
        lsi_free(all);
    }
    return ok;
}

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

static bool sum_gradients(ls_context *c, ls_tensor **grads, size_t n)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    ls_tensor **list = lsi_device_alloc(c->device, (2 * n + 1) * sizeof(ls_tensor *));
    bool ok = list != NULL;

    if (!ok) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for %zu gradients",
                              n);
        return false;
    }
    for (size_t d = 0; d < LSI_COUNT_OF(dtypes) && ok; d++) {
        ok = sum_dtype(c, grads, n, dtypes[d], list, list + n);
    }
    for (size_t i = 0; i < n && ok; i++) {
        if (grads[i] != NULL && grads[i]->values != NULL) {
            grads[i] = (ls_all_reduce)(c, LS_SUM, grads[i]);
            ok = grads[i] != NULL;
        }
    }
    lsi_device_free(c->device, list);
    return ok;
}

/* Central storage has one copy: replica 0 updates it while the others wait. */
static bool one_copy(ls_variable *const *vars, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (vars[i]->kind == LSI_AGGREGATING || vars[i]->kind == LSI_PLAIN) {
            return true;
        }
    }
    return false;
}

static void wait_for_first(ls_context *c, const ls_optimizer *o)
{
    enum { FEW = 64 };
    const int peers = lsi_replica_peers(c);
    void *few[FEW];
    void **all = peers <= FEW ? few : lsi_alloc((size_t)peers, sizeof(void *));

    if (all == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for %s", o->name);
        return;
    }
    (void)lsi_meet(c, "apply_gradients", 1, NULL, all);
    if (all != few) {
        lsi_free(all);
    }
}

void lsi_optimizer_apply_replicated(ls_context *c, ls_optimizer *o, ls_tensor **grads,
                                    ls_variable *const *vars, size_t n)
{
    const int index = lsi_replica_of(c)->index;
    const uint16_t recording = c->recording;
    const bool once = one_copy(vars, n);
    ls_error e = LS_ERROR_INIT;
    lsi_optimizer_turn turn;

    if (o->shared.keras3) {
        lsi_clip(c, o, grads, n);
    }
    if (lsi_failed(c) || !agree(c, o, grads, vars, n)) {
        return;
    }
    turn = o->turns[(o->iterations - 1) & 1]; // replica 0 writes the other one next
    c->recording = 0;
    if (sum_gradients(c, grads, n) && !o->shared.keras3) {
        lsi_clip(c, o, grads, n);
    }
    if (!lsi_failed(c) && (!once || index == 0) &&
        lsi_optimizer_update_copies(c, o, &turn, grads, vars, n, index, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
    }
    c->recording = recording;
    if (once && !lsi_failed(c)) {
        wait_for_first(c, o);
    }
}
