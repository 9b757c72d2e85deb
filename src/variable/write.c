/*
 * Assigning to variables. A plain one is written. A mirrored one is written on all of its
 * copies: outside of replicas with the one value given; in a replica each copy by its own
 * replica, with what the aggregation makes of everybody's values. An ON_READ one is
 * written by each replica alone.
 */
#include "variable/variable.h"

static const char *const names[] = {"assign", "assign_add", "assign_sub"};

/* What is written: a tensor of the step, or any leaf. */
struct source {
    ls_tensor *tensor; /* NULL: `value` */
    const ls_value *value;
};

static ls_tensor *fail(ls_context *c, ls_status code, ls_kind kind, const char *what,
                       const ls_variable *v, const char *why)
{
    ls_error e = LS_ERROR_INIT;

    (void)lsi_fail_kind(&e, code, kind, "%s: '%s' %s", what, v->name, why);
    return lsi_context_error(c, &e);
}

/* Whole numbers that `dtype` holds: [low, high]. */
static bool holds(ls_dtype dtype, int64_t i)
{
    switch (dtype) {
    case LS_I8:
        return i >= INT8_MIN && i <= INT8_MAX;
    case LS_I16:
        return i >= INT16_MIN && i <= INT16_MAX;
    case LS_I32:
        return i >= INT32_MIN && i <= INT32_MAX;
    case LS_U8:
        return i >= 0 && i <= UINT8_MAX;
    case LS_U16:
        return i >= 0 && i <= UINT16_MAX;
    case LS_U32:
        return i >= 0 && i <= UINT32_MAX;
    case LS_U64:
        return i >= 0;
    default:
        return true;
    }
}

static ls_tensor *integer_like(ls_context *c, const ls_variable *v, const char *what,
                               int64_t i)
{
    ls_error e = LS_ERROR_INIT;

    if (!holds(v->dtype, i)) {
        (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                            "%s: '%s' is %s, which cannot hold %lld", what, v->name,
                            ls_dtype_name(v->dtype), (long long)i);
        return lsi_context_error(c, &e);
    }
    if (v->dtype == LS_I64 || v->dtype == LS_U64) { // these keep all of their digits
        return (ls_constant)(c, v->dtype, LS_SCALAR, &i);
    }
    return lsi_scalar(c, v->dtype, (double)i);
}

ls_tensor *lsi_literal_like(ls_context *c, const ls_variable *v, const char *what,
                            const ls_value *literal)
{
    ls_error e = LS_ERROR_INIT;
    double x = 0;
    int64_t i = 0;
    bool truth = false;

    if (ls_value_as_bool(literal, &truth) && v->dtype != LS_STRING) {
        return lsi_scalar(c, v->dtype, truth);
    }
    if (ls_value_as_int(literal, &i) && lsi_dtype_is_number(v->dtype)) {
        return integer_like(c, v, what, i);
    }
    if (ls_value_as_float(literal, &x) && lsi_dtype_is_float(v->dtype)) {
        return lsi_scalar(c, v->dtype, x);
    }
    if (literal->kind == LS_VALUE_STRING && v->dtype == LS_STRING) {
        return (ls_constant)(c, LS_STRING, LS_SCALAR, &literal->leaf.string);
    }
    (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                        "%s: '%s' is %s and takes no %s; convert it first", what, v->name,
                        ls_dtype_name(v->dtype), ls_value_kind_name(literal->kind));
    return lsi_context_error(c, &e);
}

/* True in a replica of the variable's strategy, where its own copy is what it reads. */
static bool in_replica_of(const ls_variable *v)
{
    const lsi_mode *now = lsi_mode_now();

    return now != NULL && !now->cross && now->strategy == v->strategy;
}

/* The source as one tensor for a variable; `index` chooses of a distributed value. */
static ls_tensor *tensor_of(ls_context *c, const ls_variable *v, ls_assign_op op,
                            const struct source *s, size_t index)
{
    const ls_value *value = s->value;

    if (s->tensor != NULL) {
        return s->tensor;
    }
    if (value == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "assign: the value is NULL");
    }
    if (lsi_value_is_distributed(value)) {
        value = value->child[index < value->size ? index : 0];
    }
    if (lsi_value_is_literal(value)) {
        return lsi_literal_like(c, v, names[op], value);
    }
    if (value->kind == LS_VALUE_VARIABLE) {
        ls_variable *other = ls_value_as_variable(value);

        if (other->kind == LSI_MIRRORED_VARIABLE ||
            (other->kind == LSI_SYNC_ON_READ && in_replica_of(other))) {
            other = other->component[index < (size_t)other->components ? index : 0];
            return lsi_variable_peek(c, other);
        }
        return lsi_variable_aggregate(c, other);
    }
    if (value->kind != LS_VALUE_TENSOR) {
        return fail(c, LS_INVALID_ARGUMENT, LS_KIND_TYPE, "assign", v,
                    "takes a tensor, a number, a distributed value or a variable");
    }
    return lsi_context_alias(c, value->leaf.tensor);
}

static bool is_per_replica(const struct source *s)
{
    return s->tensor == NULL && s->value != NULL &&
           s->value->kind == LS_VALUE_PER_REPLICA;
}

/* ---- outside of replicas ---- */

/* Every copy gets the value, or its own component of a distributed one. */
static bool put_all(ls_context *c, ls_variable *v, ls_assign_op op,
                    const struct source *s)
{
    for (int i = 0; i < v->components && !lsi_failed(c); i++) {
        (void)lsi_variable_put(c, v->component[i], op, tensor_of(c, v, op, s, (size_t)i));
    }
    return !lsi_failed(c);
}

/* x / N, truncated for integers: what each copy of a sum gets. */
static ls_tensor *share(ls_context *c, const ls_variable *v, ls_tensor *t)
{
    const uint16_t recording = c->recording;

    c->recording = 0;
    t = (ls_cast)(c, (ls_div)(c, t, lsi_scalar(c, v->dtype, v->components)), v->dtype);
    c->recording = recording;
    return t;
}

static bool put_on_read(ls_context *c, ls_variable *v, ls_assign_op op,
                        const struct source *s)
{
    struct source part = *s;

    if (is_per_replica(s)) {
        (void)fail(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, names[op], v,
                   "is ON_READ and cannot be given a PerReplica value outside of "
                   "replicas; use ls_strategy_update()");
        return false;
    }
    if (v->aggregation == LS_AGGREGATE_SUM) {
        if (op != LS_ASSIGN) {
            (void)fail(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, names[op], v,
                       "is a sum over replicas: outside of them it can be assigned, not "
                       "added to");
            return false;
        }
        if (!lsi_dtype_is_number(v->dtype)) {
            (void)fail(c, LS_INVALID_ARGUMENT, LS_KIND_TYPE, names[op], v,
                       "is a sum over replicas of a dtype that cannot be divided among "
                       "them; assign inside of replicas");
            return false;
        }
        part = (struct source){.tensor = share(c, v, tensor_of(c, v, op, s, 0))};
    }
    return !lsi_failed(c) && put_all(c, v, op, &part);
}

static bool put_cross(ls_context *c, ls_variable *v, ls_assign_op op,
                      const struct source *s)
{
    if (v->kind == LSI_SYNC_ON_READ) {
        return put_on_read(c, v, op, s);
    }
    if (is_per_replica(s) && v->aggregation != LS_AGGREGATE_NONE &&
        v->kind == LSI_MIRRORED_VARIABLE) {
        (void)fail(
            c, LS_INVALID_ARGUMENT, LS_KIND_TYPE, names[op], v,
            "is kept equal on all replicas and cannot be given a PerReplica value; "
            "reduce it first");
        return false;
    }
    return put_all(c, v, op, s);
}

/* ---- in a replica: what everybody writes becomes one value ---- */

typedef enum offer_kind { OFFER_TENSOR, OFFER_LITERAL, OFFER_MIRRORED } offer_kind;

/* What a replica shows to the others. */
struct offer {
    offer_kind kind;
    const ls_variable *variable;
    ls_tensor *tensor; /* the one it stands for: the same on all: one object */
    const ls_value *literal;
};

/* All replicas write the same variable. */
static bool agree(ls_context *c, ls_assign_op op, const lsi_offers *o)
{
    const struct offer *first = o->all[0];

    for (int r = 1; r < o->n; r++) {
        const struct offer *other = o->all[r];

        if (first->variable != other->variable) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                                  "%s: replica 0 writes '%s', replica %d '%s'; every "
                                  "replica makes the same calls in the same order",
                                  names[op], first->variable->name, r,
                                  other->variable->name);
            return false;
        }
    }
    return true;
}

static bool same_everywhere(const lsi_offers *o)
{
    const struct offer *first = o->all[0];

    for (int r = 1; r < o->n; r++) {
        const struct offer *other = o->all[r];

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

static bool all_zero(const ls_tensor *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        if (lsi_element(t, i) != 0) {
            return false;
        }
    }
    return true;
}

/* One value on all replicas: used as it is, but it cannot be summed. */
static ls_tensor *use_same(ls_context *c, const ls_variable *v, ls_assign_op op,
                           ls_tensor *t, bool mirrored)
{
    if (v->aggregation != LS_AGGREGATE_SUM || t == NULL) {
        return t;
    }
    if (mirrored) {
        return fail(c, LS_INVALID_ARGUMENT, LS_KIND_ASSERT, names[op], v,
                    "sums what replicas write; a Mirrored value is one value already");
    }
    if (t->values == NULL && all_zero(t)) {
        return t;
    }
    return fail(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, names[op], v,
                "sums what replicas write, and all of them write one and the same value; "
                "give each its own, or use MEAN");
}

static ls_tensor *reduce(ls_context *c, const ls_variable *v, ls_tensor *t)
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

/* What this replica writes, kept for the others; NULL: the context has failed. */
static struct offer *make_offer(ls_context *c, const ls_variable *v,
                                const struct source *s, ls_tensor *t)
{
    struct offer *mine = t == NULL ? NULL : lsi_show_room(c, sizeof *mine);
    const bool whole = s->tensor == NULL && s->value != NULL;

    if (mine == NULL) {
        return NULL;
    }
    mine->variable = v;
    mine->kind = OFFER_TENSOR;
    if (whole && lsi_value_is_literal(s->value)) {
        ls_value *literal = ls_value_retain((ls_value *)s->value); // NOLINT: kept only

        mine->kind = OFFER_LITERAL;
        mine->literal = literal;
        return lsi_context_keep(c, literal, release_literal) ? mine : NULL;
    }
    if (whole && s->value->kind == LS_VALUE_MIRRORED) {
        mine->kind = OFFER_MIRRORED;
    }
    mine->tensor = lsi_tensor_origin(t);
    return lsi_show_tensor(c, mine->tensor) ? mine : NULL;
}

/* Everybody's value as the aggregation has it; the same bits on every replica. */
static ls_tensor *aggregate(ls_context *c, ls_variable *v, ls_assign_op op,
                            const struct source *s)
{
    ls_tensor *t = tensor_of(c, v, op, s, (size_t)lsi_replica_of(c)->index);
    struct offer *mine = NULL;
    const struct offer *first;
    lsi_offers o;

    // Central storage narrows the mean of integers, and would so narrow anything.
    if (v->kind != LSI_AGGREGATING || lsi_variable_takes(c, v, op, t)) {
        mine = make_offer(c, v, s, t);
    }
    if (mine == NULL ||
        !lsi_offers_meet(c, names[op], (uint64_t)v->aggregation, mine, &o) ||
        !agree(c, op, &o)) {
        return NULL;
    }
    first = o.all[0];
    if (same_everywhere(&o)) {
        t = use_same(c, v, op, t, first->kind == OFFER_MIRRORED);
    } else if (v->aggregation != LS_AGGREGATE_ONLY_FIRST_REPLICA) {
        t = reduce(c, v, t);
    } else if (first->kind == OFFER_LITERAL) {
        t = lsi_literal_like(c, v, names[op], first->literal);
    } else {
        t = lsi_context_alias(c, first->tensor);
    }
    return lsi_failed(c) ? NULL : t;
}

/* Central storage: the one copy is written once, by replica 0, while the others wait. */
static ls_tensor *put_once(ls_context *c, ls_variable *v, ls_assign_op op, ls_tensor *t)
{
    ls_tensor *out = NULL;
    lsi_offers o;

    if (t->dtype != (uint8_t)v->dtype) { // the mean of integers is not one
        t = (ls_cast)(c, t, v->dtype);
    }
    if (lsi_replica_of(c)->index == 0) {
        lsi_mutex_lock(&v->lock);
        out = lsi_variable_put(c, v->component[0], op, t);
        lsi_mutex_unlock(&v->lock);
    }
    if (lsi_offers_meet(c, names[op], 0, out, &o)) {
        out = lsi_context_alias(c, o.all[0]); // one value: `run` gives it back unwrapped
        (void)lsi_offers_meet(c, names[op], 1, NULL, &o); // nobody writes it again yet
    }
    return lsi_failed(c) ? NULL : out;
}

static ls_tensor *put_in_replica(ls_context *c, ls_variable *v, ls_variable *here,
                                 ls_assign_op op, const struct source *s)
{
    const lsi_replica *r = lsi_replica_of(c);

    if (v->kind == LSI_SYNC_ON_READ) {
        return lsi_variable_put(c, here, op, tensor_of(c, v, op, s, (size_t)r->index));
    }
    if (v->aggregation == LS_AGGREGATE_NONE) {
        if (v->kind == LSI_AGGREGATING || v->strict) {
            return fail(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, names[op], v,
                        "has no aggregation: say what becomes of several replicas' "
                        "writes (SUM, MEAN, ONLY_FIRST_REPLICA)");
        }
        return lsi_variable_put(c, here, op, tensor_of(c, v, op, s, (size_t)r->index));
    }
    if (lsi_replica_peers(c) == 1) {
        return lsi_variable_put(c, here, op, tensor_of(c, v, op, s, 0));
    }
    if (v->kind == LSI_AGGREGATING) {
        ls_tensor *t = aggregate(c, v, op, s);

        return t != NULL ? put_once(c, v, op, t) : NULL;
    }
    return lsi_variable_put(c, here, op, aggregate(c, v, op, s));
}

/* ---- the front doors ---- */

static ls_tensor *put(ls_context *c, ls_variable *v, ls_assign_op op,
                      const struct source *s, bool no_read)
{
    const lsi_mode *now = lsi_mode_now();
    ls_error e = LS_ERROR_INIT;
    ls_variable *here;

    if (c == NULL || lsi_context_aborted(c)) {
        return NULL;
    }
    if (v == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: the variable is NULL",
                               names[op]);
    }
    here = lsi_variable_here(v, names[op], &e);
    if (e.code != LS_OK) {
        return lsi_context_error(c, &e);
    }
    if (v->kind == LSI_PLAIN || lsi_update_id() >= 0) {
        const int id = lsi_update_id();

        return lsi_variable_put(c, here, op,
                                tensor_of(c, v, op, s, id > 0 ? (size_t)id : 0));
    }
    if (in_replica_of(v)) {
        return put_in_replica(now->context == c ? c : now->context, v, here, op, s);
    }
    if (!put_cross(c, v, op, s) || no_read) {
        return NULL;
    }
    return lsi_variable_aggregate(c, v);
}

ls_tensor *(ls_assign)(ls_context *c, ls_variable *v, ls_tensor *value)
{
    const struct source s = {.tensor = value};

    return put(c, v, LS_ASSIGN, &s, false);
}

ls_tensor *(ls_assign_add)(ls_context *c, ls_variable *v, ls_tensor *delta)
{
    const struct source s = {.tensor = delta};

    return put(c, v, LS_ASSIGN_ADD, &s, false);
}

ls_tensor *(ls_assign_sub)(ls_context *c, ls_variable *v, ls_tensor *delta)
{
    const struct source s = {.tensor = delta};

    return put(c, v, LS_ASSIGN_SUB, &s, false);
}

ls_tensor *(ls_variable_assign)(ls_context *c, ls_variable *v, ls_assign_op op,
                                ls_value *value, bool no_read)
{
    const struct source s = {.value = value};

    if (lsi_failed(c)) {
        return NULL;
    }
    if ((unsigned)op > LS_ASSIGN_SUB || value == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "assign: %s",
                               value == NULL ? "the value is NULL" : "no such operation");
    }
    return put(c, v, op, &s, no_read);
}

/* ---- outside of any step ---- */

static ls_status write_whole(ls_variable *v, const ls_tensor *value, bool restore,
                             ls_error *err)
{
    ls_context *c = NULL;
    ls_tensor *t = (ls_tensor *)value; // NOLINT: tensors never change
    const struct source s = {.tensor = t};
    ls_status st = ls_context_open(v->device, NULL, &c, err);

    if (st != LS_OK) {
        return st;
    }
    if (restore && v->kind == LSI_SYNC_ON_READ && v->aggregation == LS_AGGREGATE_SUM) {
        (void)put_on_read(c, v, LS_ASSIGN, &s);
    } else if (restore && v->kind != LSI_PLAIN) {
        (void)put_all(c, v, LS_ASSIGN, &s);
    } else {
        (void)put(c, v, LS_ASSIGN, &s, true);
    }
    st = ls_context_finish(c, err);
    ls_context_close(c);
    return st;
}

ls_status ls_variable_set(ls_variable *v, const ls_tensor *value, ls_error *err)
{
    if (v == NULL || value == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "set: %s is NULL",
                        v == NULL ? "the variable" : "the value");
    }
    return write_whole(v, value, false, err);
}

ls_status ls_variable_restore(ls_variable *v, const ls_tensor *value, ls_error *err)
{
    if (v == NULL || value == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "restore: %s is NULL",
                        v == NULL ? "the variable" : "the value");
    }
    return write_whole(v, value, true, err);
}
