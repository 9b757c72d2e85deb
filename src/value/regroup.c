/*
 * Regroup merges the values of all replicas into one structure; select takes the value of
 * one replica out of it again.
 */
#include "value/value.h"

#include <stdio.h>
#include <string.h>

/* What is being merged, and the path from the top to this item: "[1]['c']". */
struct regroup {
    ls_value_kind wrap;
    bool always_wrap;
    size_t replicas;
    char place[160];
    ls_error *err;
};

static ls_status disagree(const struct regroup *r, size_t replica, const ls_value *first,
                          const ls_value *other, const char *how)
{
    return lsi_fail_kind(
        r->err, LS_INVALID_ARGUMENT, LS_KIND_ASSERT,
        "regroup: %s: replica 0 gave a %s of %zu, replica %zu a %s of %zu, at the "
        "result%s; every replica must return the same structure",
        how, ls_value_kind_name(first->kind), first->size, replica,
        ls_value_kind_name(other->kind), other->size, r->place);
}

/* True if both have the same names: in any order for dicts, in order for named tuples. */
static bool same_names(const ls_value *a, const ls_value *b)
{
    if (a->keys == NULL) {
        return true;
    }
    if (a->keys->type != NULL && strcmp(a->keys->type, b->keys->type) != 0) {
        return false;
    }
    for (size_t turn = 0; turn < a->size; turn++) {
        const size_t i = lsi_value_turn(a, turn), j = lsi_value_turn(b, turn);

        if (strcmp(a->keys->name[i], b->keys->name[j]) != 0) {
            return false;
        }
    }
    return true;
}

/* Checks that the structures at this path match. */
static ls_status check_structures(const struct regroup *r, ls_value *const *values)
{
    const ls_value *first = values[0];

    for (size_t k = 1; k < r->replicas; k++) {
        const ls_value *other = values[k];
        const bool leaves = ls_value_is_leaf(first) && ls_value_is_leaf(other);

        if (leaves) {
            continue; // any two leaves match
        }
        if (first->kind != other->kind) {
            return disagree(r, k, first, other, "kinds differ");
        }
        if (first->size != other->size) {
            return disagree(r, k, first, other, "sizes differ");
        }
        if (!same_names(first, other)) {
            return disagree(r, k, first, other, "names differ");
        }
    }
    return LS_OK;
}

/* The variable whose copies the replicas gave; NULL: they are something else. */
static void *common_container(const struct regroup *r, ls_value *const *values)
{
    const lsi_object *first = &values[0]->leaf.object;
    void *container = NULL;

    for (size_t k = 0; k < r->replicas; k++) {
        if (values[k]->kind != LS_VALUE_VARIABLE) {
            return NULL;
        }
        container = first->ops->container(first->self);
        if (values[k]->leaf.object.ops->container(values[k]->leaf.object.self) !=
            container) {
            return NULL;
        }
    }
    return container == first->self ? NULL : container;
}

static ls_status merge_leaves(const struct regroup *r, ls_value *const *values,
                              ls_value **out)
{
    void *container = common_container(r, values);
    bool same = true;

    if (container != NULL) {
        return lsi_value_object(LS_VALUE_VARIABLE, container, values[0]->leaf.object.ops,
                                out, r->err);
    }
    for (size_t k = 1; same && k < r->replicas; k++) {
        same = ls_value_same(values[0], values[k]);
    }
    if (same && (!r->always_wrap || values[0]->kind == LS_VALUE_VARIABLE)) {
        *out = ls_value_retain(values[0]);
        return LS_OK;
    }
    return lsi_value_over(r->wrap, values, r->replicas, out, r->err);
}

static void step_into(struct regroup *r, size_t length, const ls_value *v, size_t i)
{
    if (v->keys != NULL) {
        (void)snprintf(r->place + length, sizeof r->place - length, "['%s']",
                       v->keys->name[i]);
    } else {
        (void)snprintf(r->place + length, sizeof r->place - length, "[%zu]", i);
    }
}

static ls_status merge_values(struct regroup *r, ls_value *const *values, ls_value **out);

/* Merges the items of matching structures; the order of names is that of replica 0. */
static ls_status merge_items(struct regroup *r, ls_value *const *values, ls_value **out)
{
    const ls_value *first = values[0];
    const size_t length = strlen(r->place), n = first->size;
    ls_value **made = lsi_alloc(n + r->replicas, sizeof(ls_value *));
    ls_status st = LS_OK;

    if (made == NULL) {
        return lsi_fail_memory(r->err, "regrouping",
                               (n + r->replicas) * sizeof(ls_value *));
    }
    ls_value **items = made + n; // borrowed: one per replica
    for (size_t turn = 0; st == LS_OK && turn < n; turn++) {
        const size_t i = lsi_value_turn(first, turn);

        for (size_t k = 0; k < r->replicas; k++) {
            items[k] = values[k]->child[lsi_value_turn(values[k], turn)];
        }
        step_into(r, length, first, i);
        st = merge_values(r, items, &made[i]);
    }
    if (st == LS_OK) {
        st = lsi_value_like(first, made, out, r->err);
    }
    lsi_value_release_all(made, n);
    return st;
}

static ls_status merge_values(struct regroup *r, ls_value *const *values, ls_value **out)
{
    const ls_status st = check_structures(r, values);

    if (st != LS_OK) {
        return st;
    }
    return ls_value_is_leaf(values[0]) ? merge_leaves(r, values, out)
                                       : merge_items(r, values, out);
}

ls_status ls_value_regroup(ls_value *const *values, size_t n,
                           const ls_regroup_options *opts, ls_value **out, ls_error *err)
{
    struct regroup r = {LS_VALUE_PER_REPLICA, false, n, "", err};
    ls_value *made = NULL;

    if (values == NULL || n == 0 || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "regroup: needs the value of at least one replica, and a "
                             "place for the result");
    }
    for (size_t k = 0; k < n; k++) {
        if (values[k] == NULL) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "regroup: the value of replica %zu is NULL", k);
        }
    }
    if (opts != NULL && opts->wrap != LS_VALUE_NONE) {
        r.wrap = opts->wrap;
    }
    if (r.wrap != LS_VALUE_PER_REPLICA && r.wrap != LS_VALUE_MIRRORED) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "regroup: leaves are wrapped as PerReplica or Mirrored, not "
                             "as %s",
                             ls_value_kind_name(r.wrap));
    }
    r.always_wrap = opts != NULL && opts->always_wrap;
    const ls_status st = merge_values(&r, values, &made);
    if (st == LS_OK) {
        *out = made;
    }
    return st;
}

struct selection {
    size_t replica;
    bool mirrored; /* PerReplica leaves fail */
};

static ls_status select_leaf(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    const struct selection *s = user;

    if (!lsi_value_is_distributed(leaf)) {
        *out = ls_value_retain(leaf);
        return LS_OK;
    }
    if (s->mirrored && leaf->kind != LS_VALUE_MIRRORED) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "select_mirrored: a leaf is %s; only Mirrored values have "
                             "one value for all replicas",
                             ls_value_kind_name(leaf->kind));
    }
    if (s->replica >= leaf->size) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "select: replica %zu of a %s with %zu components",
                             s->replica, ls_value_kind_name(leaf->kind), leaf->size);
    }
    *out = ls_value_retain(leaf->child[s->replica]);
    return LS_OK;
}

ls_status ls_value_select(ls_value *v, size_t replica, ls_value **out, ls_error *err)
{
    struct selection s = {replica, false};

    return ls_value_map(v, select_leaf, &s, out, err);
}

ls_status ls_value_select_mirrored(ls_value *v, size_t replica, ls_value **out,
                                   ls_error *err)
{
    struct selection s = {replica, true};

    return ls_value_map(v, select_leaf, &s, out, err);
}

ls_status ls_value_local_results(ls_value *v, size_t replicas, ls_value **out,
                                 ls_error *err)
{
    if (v == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "local_results: an argument is NULL");
    }
    if (lsi_value_is_distributed(v)) {
        return ls_value_tuple(v->child, v->size, out, err);
    }
    if (ls_value_is_leaf(v)) {
        return ls_value_tuple(&v, 1, out, err);
    }
    ls_value **made = lsi_alloc(LSI_MAX(replicas, 1), sizeof(ls_value *));
    ls_status st = LS_OK;
    if (made == NULL) {
        return lsi_fail_memory(err, "local_results", replicas * sizeof(ls_value *));
    }
    for (size_t k = 0; st == LS_OK && k < replicas; k++) {
        st = ls_value_select(v, k, &made[k], err);
    }
    if (st == LS_OK) {
        st = ls_value_tuple(made, replicas, out, err);
    }
    lsi_value_release_all(made, replicas);
    return st;
}
