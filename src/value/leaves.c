/* Walking over the leaves of a structure: map, flatten, pack. */
#include "value/value.h"

/* Where `fn` returns every leaf unchanged, the old structure is kept. */
static ls_status map_leaves(ls_value *v, ls_value_fn fn, void *user, ls_value **out,
                            ls_error *err)
{
    if (ls_value_is_leaf(v)) {
        return fn(v, user, out, err);
    }
    ls_value **made = lsi_alloc(LSI_MAX(v->size, 1), sizeof(ls_value *));
    if (made == NULL) {
        return lsi_fail_memory(err, "mapping a structure", v->size * sizeof(ls_value *));
    }
    ls_status st = LS_OK;
    bool changed = false;
    for (size_t turn = 0; st == LS_OK && turn < v->size; turn++) {
        const size_t i = lsi_value_turn(v, turn);

        st = map_leaves(v->child[i], fn, user, &made[i], err);
        changed = changed || made[i] != v->child[i];
    }
    if (st == LS_OK && changed) {
        st = lsi_value_like(v, made, out, err);
    } else if (st == LS_OK) {
        *out = ls_value_retain(v);
    }
    lsi_value_release_all(made, v->size);
    return st;
}

static ls_status refuse_null(const char *what, bool refused, ls_error *err)
{
    return refused ? lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                   "%s: an argument is NULL", what)
                   : LS_OK;
}

ls_status ls_value_map(ls_value *v, ls_value_fn fn, void *user, ls_value **out,
                       ls_error *err)
{
    const ls_status st = refuse_null("map", v == NULL || fn == NULL || out == NULL, err);
    ls_value *made = NULL;

    if (st != LS_OK) {
        return st;
    }
    const ls_status mapped = map_leaves(v, fn, user, &made, err);
    if (mapped == LS_OK) {
        *out = made;
    }
    return mapped;
}

static size_t count_leaves(const ls_value *v)
{
    size_t n = 0;

    if (ls_value_is_leaf(v)) {
        return 1;
    }
    for (size_t i = 0; i < v->size; i++) {
        n += count_leaves(v->child[i]);
    }
    return n;
}

/* Appends the leaves of `v`, borrowed, and returns where the next one goes. */
static ls_value **collect(ls_value *v, ls_value **to)
{
    if (ls_value_is_leaf(v)) {
        *to = v;
        return to + 1;
    }
    for (size_t turn = 0; turn < v->size; turn++) {
        to = collect(v->child[lsi_value_turn(v, turn)], to);
    }
    return to;
}

ls_status ls_value_flatten(ls_value *v, ls_value **out, ls_error *err)
{
    ls_status st = refuse_null("flatten", v == NULL || out == NULL, err);

    if (st != LS_OK) {
        return st;
    }
    const size_t n = count_leaves(v);
    ls_value **leaves = lsi_alloc(LSI_MAX(n, 1), sizeof(ls_value *));
    if (leaves == NULL) {
        return lsi_fail_memory(err, "flattening a structure", n * sizeof(ls_value *));
    }
    (void)collect(v, leaves);
    st = ls_value_list(leaves, n, out, err);
    lsi_free(leaves);
    return st;
}

/* The leaves of a pack, one per call. */
struct supply {
    const ls_value *leaves;
    size_t next;
};

static ls_status take_leaf(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    struct supply *s = user;

    (void)leaf;
    (void)err;
    *out = ls_value_retain(s->leaves->child[s->next++]);
    return LS_OK;
}

ls_status ls_value_pack(ls_value *like, ls_value *leaves, ls_value **out, ls_error *err)
{
    const ls_status st =
        refuse_null("pack", like == NULL || leaves == NULL || out == NULL, err);

    if (st != LS_OK) {
        return st;
    }
    if (leaves->kind != LS_VALUE_LIST && leaves->kind != LS_VALUE_TUPLE) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "pack: the leaves are a %s; they must be a list or a tuple",
                             ls_value_kind_name(leaves->kind));
    }
    const size_t n = count_leaves(like);
    if (n != leaves->size) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "pack: the structure has %zu leaves, %zu were given", n,
                             leaves->size);
    }
    struct supply supply = {leaves, 0};
    return ls_value_map(like, take_leaf, &supply, out, err);
}
