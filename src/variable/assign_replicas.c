/*
 * Assignments that all replicas make together: the values of the replicas are combined
 * into one by the variable's aggregation.
 */
#include "variable/variable.h"

typedef enum offer_kind { OFFER_TENSOR, OFFER_LITERAL, OFFER_MIRRORED } offer_kind;

/* What a replica shows to the others. */
struct offer {
    offer_kind kind;
    const ls_variable *variable;
    ls_tensor *tensor; /* not an alias: one object if all replicas pass it */
    const ls_value *literal;
};

/* Checks that all replicas write the same variable. */
static bool write_the_same(ls_context *c, ls_assign_op op, const lsi_meeting *m)
{
    const struct offer *first = lsi_meeting_peer(m, 0);

    for (int r = 1; r < m->n; r++) {
        const struct offer *other = lsi_meeting_peer(m, r);

        if (first->variable != other->variable) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                                  "%s: replica 0 writes '%s', replica %d '%s'; every "
                                  "replica must make the same calls in the same order",
                                  lsi_assign_names[op], first->variable->name, r,
                                  other->variable->name);
            return false;
        }
    }
    return true;
}

static bool same_everywhere(const lsi_meeting *m)
{
    const struct offer *first = lsi_meeting_peer(m, 0);

    for (int r = 1; r < m->n; r++) {
        const struct offer *other = lsi_meeting_peer(m, r);

        if (first->kind != other->kind) {
            return false;
        }
        if (first->kind == OFFER_LITERAL
                ? !ls_value_same(first->literal, other->literal)
                : first->kind == OFFER_TENSOR && first->tensor != other->tensor) {
            return false;
        }
    }
    return true;
}

static ls_tensor *reduce_alike(ls_context *c, ls_reduce op, ls_tensor *t)
{
    const uint16_t recording = c->recording;

    c->recording = 0;
    t = lsi_reduce_alike(c, op, lsi_dense(c, t));
    c->recording = recording;
    return t;
}

/*
 * All local peers pass the same value. With several workers it is one value of each of
 * them; with one it is used without a reduction, and a sum is an error.
 */
static ls_tensor *use_same(ls_context *c, const ls_variable *v, ls_assign_op op,
                           ls_tensor *t, bool mirrored)
{
    const bool sums = v->aggregation == LS_AGGREGATE_SUM;
    ls_error e = LS_ERROR_INIT;

    if (t == NULL || v->aggregation == LS_AGGREGATE_ONLY_FIRST_REPLICA ||
        (mirrored && !sums)) {
        return t;
    }
    if (mirrored) {
        return lsi_assign_refused(
            c, LS_INVALID_ARGUMENT, LS_KIND_ASSERT, lsi_assign_names[op], v,
            "sums the values of replicas; a Mirrored value is one value already");
    }
    if (lsi_sync_replicas(c) > lsi_local_peers(c)) {
        return reduce_alike(c, sums ? LS_SUM : LS_MEAN, t);
    }
    if (!sums) {
        return t;
    }
    (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                        "%s: '%s' sums the values of replicas, and all of them write the "
                        "same value; write a different one on each, or use MEAN",
                        lsi_assign_names[op], v->name);
    if (t->values != NULL) {
        return lsi_context_error(c, &e);
    }
    // Zeros are their own sum. The copies go on to share the memory of `t`.
    return lsi_require(c, t, LSI_ALL_ZERO, &e) != NULL ? t : NULL;
}

static ls_tensor *reduce_written(ls_context *c, const ls_variable *v, ls_tensor *t)
{
    const uint16_t recording = c->recording;
    const ls_reduce op = v->aggregation == LS_AGGREGATE_MEAN ? LS_MEAN : LS_SUM;

    c->recording = 0;
    t = (ls_all_reduce)(c, op, t);
    c->recording = recording;
    return t;
}

static void release_literal(void *v)
{
    ls_value_release(v);
}

/* What this replica writes, kept until the run ends; NULL: the context has failed. */
static struct offer *make_offer(ls_context *c, const ls_variable *v, const lsi_source *s,
                                ls_tensor *t)
{
    struct offer *mine = t == NULL ? NULL : lsi_meeting_room(c, sizeof *mine);
    const bool whole = s->tensor == NULL && s->value != NULL;

    if (mine == NULL) {
        return NULL;
    }
    mine->variable = v;
    mine->kind = OFFER_TENSOR;
    if (whole && lsi_value_is_literal(s->value)) {
        ls_value *literal = ls_value_retain((ls_value *)s->value); // NOLINT: retained

        mine->kind = OFFER_LITERAL;
        mine->literal = literal;
        return lsi_context_keep(c, literal, release_literal) ? mine : NULL;
    }
    if (whole && s->value->kind == LS_VALUE_MIRRORED) {
        mine->kind = OFFER_MIRRORED;
    }
    mine->tensor = lsi_tensor_origin(t);
    return lsi_meeting_keep(c, mine->tensor) ? mine : NULL;
}

/* Combines the values of all replicas; `mine` is that of this replica. */
static ls_tensor *combine_offers(ls_context *c, ls_variable *v, ls_assign_op op,
                                 const lsi_meeting *m, ls_tensor *mine)
{
    const struct offer *first = lsi_meeting_peer(m, 0);

    if (same_everywhere(m)) {
        return use_same(c, v, op, mine, first->kind == OFFER_MIRRORED);
    }
    if (v->aggregation != LS_AGGREGATE_ONLY_FIRST_REPLICA) {
        return reduce_written(c, v, mine);
    }
    return first->kind == OFFER_LITERAL
               ? lsi_literal_like(c, v, lsi_assign_names[op], first->literal)
               : lsi_context_alias(c, first->tensor);
}

ls_tensor *lsi_assign_aggregate(ls_context *c, ls_variable *v, ls_assign_op op,
                                const lsi_source *s)
{
    ls_tensor *t = lsi_source_tensor(c, v, op, s, (size_t)lsi_replica_of(c)->index);
    struct offer *mine = NULL;
    lsi_meeting m;

    // A single component gets the mean cast to its dtype, which would hide a wrong dtype.
    if (v->ops->per_replica || lsi_variable_takes(c, v, op, t)) {
        mine = make_offer(c, v, s, t);
    }
    if (mine == NULL) {
        return NULL;
    }
    if (lsi_meeting_open(c, lsi_assign_names[op], (uint64_t)v->aggregation, mine,
                         LSI_UNTIL_RUN_ENDS, &m) &&
        write_the_same(c, op, &m)) {
        t = combine_offers(c, v, op, &m, t);
    }
    lsi_meeting_close(&m);
    return lsi_failed(c) ? NULL : t;
}
