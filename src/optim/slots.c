/*
 * The slots of an optimizer: found by variable, created when a variable is new, and named
 * as in Keras: the optimizer, then the variable and the slot, "adam/dense_kernel_momentum".
 * They begin with a constant, so they are equal on all workers and never sent.
 */
#include "optim/optim.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

ls_status lsi_slot_like(void *user, ls_variable *of, const char *name, double initial,
                        ls_variable **out, ls_error *err)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    ls_tensor *start = NULL;
    ls_status st = ls_tensor_create(of->device, of->dtype, of->shape, NULL, &start, err);

    (void)user;
    opts.name = name;
    opts.not_trainable = true;
    for (int64_t i = 0; st == LS_OK && initial != 0 && i < start->count; i++) {
        // safe: no other reference exists yet
        lsi_put_float(start->data, of->dtype, i, initial);
    }
    if (of->components > 0) {
        opts.synchronization = LS_SYNC_ON_WRITE;
    }
    if (st == LS_OK) {
        st = of->ops->create_like(of, start, &opts, out, err);
    }
    ls_tensor_release(start);
    return st;
}

/* The position of a variable in the index, or the free position where it belongs. */
static size_t index_of(const ls_optimizer *o, const ls_variable *v)
{
    const uint64_t hash = (uint64_t)(uintptr_t)v * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & (o->index_room - 1);

    while (o->index[at] != 0 && o->slots[o->index[at] - 1].of != v) {
        at = (at + 1) & (o->index_room - 1);
    }
    return at;
}

const lsi_slots *lsi_optimizer_find(const ls_optimizer *o, const ls_variable *v,
                                    size_t *cursor)
{
    size_t at;

    if (cursor != NULL && *cursor < o->nslots && o->slots[*cursor].of == v) {
        return &o->slots[(*cursor)++]; // found at once, if in the order of the last step
    }
    if (o->index_room == 0) {
        return NULL;
    }
    at = o->index[index_of(o, v)];
    if (at == 0) {
        return NULL;
    }
    if (cursor != NULL) {
        *cursor = at;
    }
    return &o->slots[at - 1];
}

/* Puts all entries of the list into the index. */
static void fill_index(ls_optimizer *o)
{
    memset(o->index, 0, o->index_room * sizeof *o->index);
    for (size_t i = 0; i < o->nslots; i++) {
        o->index[index_of(o, o->slots[i].of)] = (uint32_t)(i + 1);
    }
}

/* Makes room for one more, in the list and in the index; false: out of memory. */
static bool make_room(ls_optimizer *o)
{
    const size_t room = o->slots_room == 0 ? 16 : 2 * o->slots_room;
    lsi_slots *grown;
    uint32_t *index;

    if (o->nslots < o->slots_room) {
        return true;
    }
    if (room > UINT32_MAX / 4) {
        return false;
    }
    index = lsi_alloc(2 * room, sizeof *index);
    grown = index == NULL ? NULL : lsi_realloc(o->slots, o->nslots, room, sizeof *grown);
    if (grown == NULL) {
        lsi_free(index);
        return false;
    }
    o->slots = grown;
    o->slots_room = room;
    lsi_free(o->index);
    o->index = index;
    o->index_room = 2 * room;
    fill_index(o);
    return true;
}

/* Keras' name for slot `slot` of `v`: yours to lsi_free(); NULL: out of memory. */
static char *slot_name(const ls_optimizer *o, const ls_variable *v, const char *slot)
{
    const size_t room = strlen(o->name) + strlen(v->name) + strlen(slot) + 3;
    const size_t first = strlen(o->name) + 1;
    char *name = lsi_alloc(room, 1);

    if (name == NULL) {
        return NULL;
    }
    (void)snprintf(name, room, "%s/%s_%s", o->name, v->name, slot);
    for (size_t i = 0; name[i] != '\0'; i++) {
        if (i < first && strcmp(o->name, "SGD") != 0) { // the only one in capitals
            name[i] = (char)tolower((unsigned char)name[i]);
        } else if (i >= first && name[i] == '/') {
            name[i] = '_';
        }
    }
    return name;
}

static void release_slots(lsi_slots *s)
{
    for (int k = 0; k < LSI_MAX_SLOTS; k++) {
        ls_variable_release(s->slot[k]);
        s->slot[k] = NULL;
    }
    ls_variable_release(s->of);
    s->of = NULL;
}

static ls_status create_slots(const ls_optimizer *o, ls_variable *v, lsi_slots *fresh,
                              ls_error *err)
{
    const size_t n = lsi_optimizer_slot_count(o);
    ls_status st = LS_OK;

    for (size_t i = 0; i < n && st == LS_OK; i++) {
        char *name = slot_name(o, v, o->ops->slots[i]);

        st = name == NULL
                 ? lsi_fail_memory(err, "a name", strlen(v->name))
                 : o->make_slot(o->make_user, v, name, o->initial, &fresh->slot[i], err);
        lsi_free(name);
    }
    fresh->of = ls_variable_retain(v);
    if (st != LS_OK) {
        release_slots(fresh);
    }
    return st;
}

/* Appends the slots of `v`, which has none. */
static ls_status add_slots(ls_optimizer *o, ls_variable *v, ls_error *err)
{
    lsi_slots fresh = {0};
    ls_status st;

    if (!make_room(o)) {
        return lsi_fail_memory(err, o->name, 2 * o->slots_room * sizeof fresh);
    }
    st = create_slots(o, v, &fresh, err);
    if (st == LS_OK) {
        o->index[index_of(o, v)] = (uint32_t)(o->nslots + 1);
        o->slots[o->nslots++] = fresh;
    }
    return st;
}

bool lsi_optimizer_built(const ls_optimizer *o, ls_tensor *const *grads,
                         ls_variable *const *vars, size_t n)
{
    size_t cursor = 0;
    bool built = true;

    for (size_t i = 0; i < n && built; i++) {
        built = grads[i] == NULL || lsi_optimizer_find(o, vars[i], &cursor) != NULL;
    }
    return built;
}

ls_status lsi_optimizer_build(ls_optimizer *o, ls_tensor *const *grads,
                              ls_variable *const *vars, size_t n, ls_error *err)
{
    const size_t before = o->nslots;
    size_t cursor = 0;
    ls_status st = LS_OK;

    for (size_t i = 0; i < n && st == LS_OK; i++) {
        if ((grads == NULL || grads[i] != NULL) &&
            lsi_optimizer_find(o, vars[i], &cursor) == NULL) {
            st = add_slots(o, vars[i], err);
            cursor = o->nslots;
        }
    }
    if (st != LS_OK && o->nslots > before) {
        LSI_ASSERT(o->slots != NULL);
        while (o->nslots > before) {
            release_slots(&o->slots[--o->nslots]);
        }
        fill_index(o);
    }
    return st;
}

ls_status ls_optimizer_build(ls_optimizer *o, ls_variable *const *vars, size_t n,
                             ls_error *err)
{
    if (o == NULL || (n > 0 && vars == NULL)) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "optimizer: %s is NULL",
                        o == NULL ? "it" : "the list of variables");
    }
    if (ls_has_strategy() && !ls_in_cross_replica_context()) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "%s: slots are made outside of replica functions; there, "
                             "the first step makes them",
                             o->name);
    }
    for (size_t i = 0; i < n; i++) {
        if (vars[i] == NULL) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "%s: variable %zu is NULL",
                            o->name, i);
        }
        if (!lsi_dtype_is_float(vars[i]->dtype)) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                            "%s: the variable '%s' is %s, which no gradient fits",
                            o->name, vars[i]->name, ls_dtype_name(vars[i]->dtype));
        }
    }
    return lsi_optimizer_build(o, NULL, vars, n, err);
}

void lsi_optimizer_free_slots(ls_optimizer *o)
{
    for (size_t i = 0; i < o->nslots; i++) {
        release_slots(&o->slots[i]);
    }
    lsi_free(o->slots);
    lsi_free(o->index);
}

ls_variable *ls_optimizer_slot(const ls_optimizer *o, const ls_variable *v,
                               const char *name)
{
    const lsi_slots *s = o != NULL ? lsi_optimizer_find(o, v, NULL) : NULL;
    const size_t n = s != NULL ? lsi_optimizer_slot_count(o) : 0;

    for (size_t i = 0; name != NULL && i < n; i++) {
        if (strcmp(o->ops->slots[i], name) == 0) {
            return s->slot[i];
        }
    }
    return NULL;
}
