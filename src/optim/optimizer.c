#include "optim/optim.h"

#include <math.h>

ls_status lsi_optimizer_new(const lsi_optim_ops *ops, double learning_rate,
                            ls_optimizer **out, ls_error *err)
{
    ls_optimizer *o;

    if (!(learning_rate >= 0) || isinf(learning_rate)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: the learning rate %g is not a number of 0 or more",
                             ops->name, learning_rate);
    }
    o = lsi_alloc(1, sizeof *o);
    if (o == NULL) {
        return lsi_fail_memory(err, ops->name, sizeof *o);
    }
    atomic_init(&o->refs, 1);
    o->ops = ops;
    o->learning_rate = learning_rate;
    *out = o;
    return LS_OK;
}

ls_optimizer *ls_optimizer_retain(ls_optimizer *o)
{
    if (o != NULL) {
        atomic_fetch_add(&o->refs, 1);
    }
    return o;
}

static void release_slots(lsi_slots *s)
{
    for (int i = 0; i < LSI_MAX_SLOTS; i++) {
        ls_variable_release(s->slot[i]);
    }
    ls_variable_release(s->of);
}

void ls_optimizer_release(ls_optimizer *o)
{
    if (o == NULL || atomic_fetch_sub(&o->refs, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < o->nslots; i++) {
        release_slots(&o->slots[i]);
    }
    lsi_free(o->slots);
    lsi_free(o->grads);
    lsi_free(o);
}

double lsi_get(ls_dtype dtype, const void *p, size_t i)
{
    switch (dtype) {
    case LS_F32:
        return (double)((const float *)p)[i];
    case LS_F16:
        return (double)lsi_f16_to_f32(((const uint16_t *)p)[i]);
    case LS_BF16:
        return (double)lsi_bf16_to_f32(((const uint16_t *)p)[i]);
    default:
        return ((const double *)p)[i];
    }
}

void lsi_put(ls_dtype dtype, void *p, size_t i, double value)
{
    switch (dtype) {
    case LS_F32:
        ((float *)p)[i] = (float)value;
        break;
    case LS_F16:
        ((uint16_t *)p)[i] = lsi_f32_to_f16((float)value);
        break;
    case LS_BF16:
        ((uint16_t *)p)[i] = lsi_f32_to_bf16((float)value);
        break;
    default:
        ((double *)p)[i] = value;
        break;
    }
}

static size_t slot_count(const lsi_optim_ops *ops)
{
    size_t n = 0;

    while (n < LSI_MAX_SLOTS && ops->slots[n] != NULL) {
        n++;
    }
    return n;
}

/* Zeros of the variable's shape and dtype, on its device. */
static ls_status create_slot(const ls_variable *v, const char *name, ls_variable **out,
                             ls_error *err)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    ls_tensor *zeros = NULL;
    ls_status st = ls_tensor_create(v->device, v->dtype, v->shape, NULL, &zeros, err);

    if (st == LS_OK) {
        opts.name = name;
        opts.not_trainable = true;
        st = ls_variable_create(zeros, &opts, out, err);
    }
    ls_tensor_release(zeros);
    return st;
}

static ls_status add_slots(ls_optimizer *o, ls_variable *v, lsi_slots **out,
                           ls_error *err)
{
    lsi_slots fresh = {0};
    ls_status st = LS_OK;

    if (o->nslots == o->slots_room) {
        const size_t room = o->slots_room == 0 ? 16 : 2 * o->slots_room;
        lsi_slots *grown = lsi_realloc(o->slots, o->nslots, room, sizeof *grown);

        if (grown == NULL) {
            return lsi_fail_memory(err, o->ops->name, room * sizeof *grown);
        }
        o->slots = grown;
        o->slots_room = room;
    }
    for (size_t i = 0; i < slot_count(o->ops) && st == LS_OK; i++) {
        st = create_slot(v, o->ops->slots[i], &fresh.slot[i], err);
    }
    if (st != LS_OK) {
        release_slots(&fresh);
        return st;
    }
    fresh.of = ls_variable_retain(v);
    o->slots[o->nslots] = fresh;
    *out = &o->slots[o->nslots++];
    return LS_OK;
}

/* `hint` is where the variable stood last time: the list is usually the same. */
static lsi_slots *find_slots(const ls_optimizer *o, const ls_variable *v, size_t hint)
{
    if (hint < o->nslots && o->slots[hint].of == v) {
        return &o->slots[hint];
    }
    for (size_t i = 0; i < o->nslots; i++) {
        if (o->slots[i].of == v) {
            return &o->slots[i];
        }
    }
    return NULL;
}

static void run_part(void *arg, int part, int parts)
{
    const lsi_step *whole = arg;
    lsi_step s = *whole;
    const size_t size = ls_dtype_size(s.dtype);
    int64_t begin, end;

    lsi_team_share((int64_t)s.n, 64, part, parts, &begin, &end);
    if (begin >= end) {
        return;
    }
    s.n = (size_t)(end - begin);
    s.w = (const char *)s.w + (size_t)begin * size;
    s.w_out = (char *)s.w_out + (size_t)begin * size;
    s.g = (const char *)s.g + (size_t)begin * size;
    for (int i = 0; i < LSI_MAX_SLOTS; i++) {
        if (s.slot[i] != NULL) {
            s.slot[i] = (char *)s.slot[i] + (size_t)begin * size;
        }
    }
    s.optimizer->ops->update(&s);
}

static ls_status update_one(ls_optimizer *o, float alpha, ls_variable *v,
                            const ls_tensor *g, size_t hint, ls_error *err)
{
    enum { WORTH_SHARING = 1 << 16 };
    lsi_write writes[LSI_MAX_SLOTS + 1] = {{0}};
    lsi_step s = {.n = (size_t)v->count, .dtype = v->dtype, .optimizer = o};
    lsi_slots *slots = find_slots(o, v, hint);
    lsi_team *team = v->device->team;
    ls_status st = LS_OK;
    size_t open = 0;

    if (slots == NULL) {
        st = add_slots(o, v, &slots, err);
    }
    for (size_t i = 0; i < slot_count(o->ops) && st == LS_OK; i++) {
        lsi_write *w = &writes[1 + i];

        st = lsi_variable_write(slots->slot[i], w, err);
        if (st == LS_OK && w->fresh != NULL) { // a slot somebody reads: it is kept whole
            memcpy(w->to, w->from, s.n * ls_dtype_size(s.dtype));
        }
        if (st == LS_OK) {
            s.slot[i] = w->to;
            open++;
        }
    }
    if (st == LS_OK) {
        st = lsi_variable_write(v, &writes[0], err);
    }
    if (st == LS_OK && s.n > 0) {
        s.w = writes[0].from;
        s.w_out = writes[0].to;
        s.g = g->data;
        s.alpha = alpha;
        s.update = lsi_update_for(v->device);
        lsi_team_run(team, s.n >= WORTH_SHARING ? lsi_team_size(team) : 1, run_part, &s);
    }
    if (st == LS_OK) {
        lsi_variable_commit(v, &writes[0]);
    }
    for (size_t i = 0; i < open; i++) {
        lsi_variable_commit(slots->slot[i], &writes[1 + i]);
    }
    return st;
}

static ls_tensor *check(ls_context *c, const ls_optimizer *o, ls_tensor *const *grads,
                        ls_variable *const *vars, size_t n)
{
    size_t given = 0;
    char shape[128];

    for (size_t i = 0; i < n; i++) {
        if (vars[i] == NULL) {
            return ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: variable %zu is NULL",
                                   o->ops->name, i);
        }
        if (grads[i] == NULL) {
            continue;
        }
        given++;
        if (!lsi_dtype_is_float(vars[i]->dtype) ||
            grads[i]->dtype != (uint8_t)vars[i]->dtype ||
            grads[i]->count != vars[i]->count) {
            return ls_context_fail(
                c, LS_INVALID_ARGUMENT, "%s: the variable '%s' is %s %s, its gradient %s",
                o->ops->name, vars[i]->name, ls_dtype_name(vars[i]->dtype),
                ls_shape_text(&vars[i]->shape, shape, sizeof shape),
                lsi_text_of(grads[i]).s);
        }
    }
    if (given == 0) {
        return ls_context_fail(
            c, LS_INVALID_ARGUMENT,
            "%s: no variable has a gradient: is the loss computed from "
            "them while the tape is open?",
            o->ops->name);
    }
    return NULL;
}

void(ls_optimizer_apply)(ls_context *c, ls_optimizer *o, ls_tensor *const *grads,
                         ls_variable *const *vars, size_t n)
{
    float alpha;

    if (lsi_failed(c)) {
        return;
    }
    if (o == NULL || (n > 0 && (grads == NULL || vars == NULL))) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "optimizer: %s is NULL",
                              o == NULL       ? "it"
                              : grads == NULL ? "the list of gradients"
                                              : "the list of variables");
        return;
    }
    (void)check(c, o, grads, vars, n);
    if (lsi_failed(c)) {
        return;
    }
    alpha = o->ops->prepare(o, o->iterations + 1);
    for (size_t i = 0; i < n && !lsi_failed(c); i++) {
        ls_error e = LS_ERROR_INIT;
        const ls_tensor *g = lsi_dense(c, grads[i]);

        if (g != NULL && update_one(o, alpha, vars[i], g, i, &e) != LS_OK) {
            (void)lsi_context_error(c, &e);
        }
    }
    o->iterations++;
}

void(ls_optimizer_minimize)(ls_context *c, ls_optimizer *o, ls_tape *tape,
                            ls_tensor *loss, ls_variable *const *vars, size_t n)
{
    if (lsi_failed(c)) {
        return;
    }
    if (o == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "optimizer: it is NULL");
        return;
    }
    if (n > o->grads_room) {
        ls_tensor **grown = lsi_alloc(n, sizeof(ls_tensor *));

        if (grown == NULL) {
            (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED,
                                  "out of memory for %zu gradients", n);
            return;
        }
        lsi_free(o->grads);
        o->grads = grown;
        o->grads_room = n;
    }
    (ls_variable_gradients)(c, tape, loss, vars, n, o->grads);
    (ls_optimizer_apply)(c, o, o->grads, vars, n);
}

double ls_optimizer_learning_rate(const ls_optimizer *o)
{
    return o->learning_rate;
}

void ls_optimizer_set_learning_rate(ls_optimizer *o, double rate)
{
    o->learning_rate = rate;
}

int64_t ls_optimizer_iterations(const ls_optimizer *o)
{
    return o->iterations;
}

const char *ls_optimizer_name(const ls_optimizer *o)
{
    return o->ops->name;
}

ls_variable *ls_optimizer_slot(const ls_optimizer *o, const ls_variable *v,
                               const char *name)
{
    const lsi_slots *s = find_slots(o, v, 0);

    for (size_t i = 0; s != NULL && name != NULL && i < slot_count(o->ops); i++) {
        if (strcmp(o->ops->slots[i], name) == 0) {
            return s->slot[i];
        }
    }
    return NULL;
}
