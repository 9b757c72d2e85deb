/* Changing some rows of a variable. */
#include "variable/variable.h"

static bool known_op(ls_scatter_op op)
{
    return (int)op >= LS_SCATTER_UPDATE && op <= LS_SCATTER_MAX;
}

/*
 * One row of elements T; sums are computed in U. Integers wrap around as in TensorFlow,
 * so they are added as unsigned numbers; dividing by -1 is negating, which wraps too.
 */
/* clang-format off */
#define DEFINE_ROW(name, T, U, DIVIDE)                                                   \
    static void name(ls_scatter_op op, T *a, const T *b, int64_t width)                  \
    {                                                                                    \
        for (int64_t i = 0; i < width; i++) {                                            \
            switch (op) {                                                                \
            case LS_SCATTER_UPDATE: a[i] = b[i]; break;                                  \
            case LS_SCATTER_ADD: a[i] = (T)((U)a[i] + (U)b[i]); break;                   \
            case LS_SCATTER_SUB: a[i] = (T)((U)a[i] - (U)b[i]); break;                   \
            case LS_SCATTER_MUL: a[i] = (T)((U)a[i] * (U)b[i]); break;                   \
            case LS_SCATTER_DIV: a[i] = DIVIDE(T, U, a[i], b[i]); break;                 \
            case LS_SCATTER_MIN: a[i] = b[i] < a[i] ? b[i] : a[i]; break;                \
            case LS_SCATTER_MAX: a[i] = b[i] > a[i] ? b[i] : a[i]; break;                \
            }                                                                            \
        }                                                                                \
    }
#define DIVIDE_FLOAT(T, U, x, y) ((x) / (y))
#define DIVIDE_INT(T, U, x, y) ((y) == -1 ? (T)(0 - (U)(x)) : (T)((x) / (y)))
/* clang-format on */
DEFINE_ROW(row_f32, float, float, DIVIDE_FLOAT)
DEFINE_ROW(row_f64, double, double, DIVIDE_FLOAT)
DEFINE_ROW(row_i32, int32_t, uint32_t, DIVIDE_INT)
DEFINE_ROW(row_i64, int64_t, uint64_t, DIVIDE_INT)

static void change_row(ls_dtype dtype, ls_scatter_op op, void *to, int64_t row,
                       int64_t width, const void *from)
{
    switch (dtype) {
    case LS_F32:
        row_f32(op, (float *)to + row * width, from, width);
        break;
    case LS_F64:
        row_f64(op, (double *)to + row * width, from, width);
        break;
    case LS_I32:
        row_i32(op, (int32_t *)to + row * width, from, width);
        break;
    case LS_I64:
        row_i64(op, (int64_t *)to + row * width, from, width);
        break;
    default:
        break; // refused by the front door
    }
}

static bool supported(ls_dtype d)
{
    return d == LS_F32 || d == LS_F64 || d == LS_I32 || d == LS_I64;
}

static bool divides_by_zero(const ls_tensor *updates)
{
    for (int64_t i = 0; i < updates->count; i++) {
        if (lsi_element(updates, i) == 0) {
            return true;
        }
    }
    return false;
}

/* updates are [indices..., rest of the variable's shape]. */
static bool fits(const ls_variable *v, const ls_tensor *indices, const ls_tensor *updates)
{
    if (updates->dtype != v->dtype ||
        updates->ndim != indices->ndim + v->shape.ndim - 1) {
        return false;
    }
    for (int i = 0; i < updates->ndim; i++) {
        const int64_t want =
            i < indices->ndim ? indices->dims[i] : v->shape.dims[i - indices->ndim + 1];
        if (updates->dims[i] != want) {
            return false;
        }
    }
    return true;
}

static ls_tensor *check(ls_context *c, const ls_variable *v, ls_scatter_op op,
                        const ls_tensor *indices, const ls_tensor *updates)
{
    char shape[128];

    if (!known_op(op)) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "scatter: %d is no operation",
                               (int)op);
    }
    if (!supported(v->dtype)) {
        return ls_context_fail(c, LS_UNIMPLEMENTED,
                               "scatter: not for %s; float32, float64, int32 and int64 "
                               "variables have it",
                               ls_dtype_name(v->dtype));
    }
    if ((indices->dtype != LS_I32 && indices->dtype != LS_I64) || v->shape.ndim < 1 ||
        !fits(v, indices, updates)) {
        return ls_context_fail(
            c, LS_INVALID_ARGUMENT,
            "scatter: '%s' is %s %s; indices %s need updates of the indices' shape and "
            "then the variable's without its first axis, got %s",
            v->name, ls_dtype_name(v->dtype),
            ls_shape_text(&v->shape, shape, sizeof shape), lsi_text_of(indices).s,
            lsi_text_of(updates).s);
    }
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t row = lsi_index_at(indices, i);

        if (row < 0 || row >= v->shape.dims[0]) {
            return ls_context_fail(c, LS_INVALID_ARGUMENT,
                                   "scatter: index %lld at %lld is outside [0, %lld)",
                                   (long long)row, (long long)i,
                                   (long long)v->shape.dims[0]);
        }
    }
    if (op == LS_SCATTER_DIV && lsi_dtype_is_int(v->dtype) && divides_by_zero(updates)) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "scatter: division by zero");
    }
    return NULL;
}

/*
 * Changes rows of a plain variable; returns its new value if it is to be `read`: a view
 * of it, which keeps the next scatter from changing it in place.
 */
static ls_tensor *scatter_plain(ls_context *c, ls_variable *v, ls_scatter_op op,
                                ls_tensor *indices, ls_tensor *updates, bool read)
{
    ls_error e = LS_ERROR_INIT;
    size_t size, row_bytes;
    int64_t width;
    lsi_write w;

    (void)check(c, v, op, indices, updates);
    if (lsi_failed(c)) {
        return NULL;
    }
    if (lsi_variable_write(v, &w, &e) != LS_OK) {
        return lsi_context_error(c, &e);
    }
    size = (size_t)v->count * ls_dtype_size(v->dtype);
    if (w.fresh != NULL && size > 0) {
        memcpy(w.to, w.from, size);
    }
    width = v->shape.dims[0] > 0 ? v->count / v->shape.dims[0] : 0;
    row_bytes = (size_t)width * ls_dtype_size(v->dtype);
    for (int64_t i = 0; i < indices->count; i++) {
        change_row(v->dtype, op, w.to, lsi_index_at(indices, i), width,
                   (const char *)updates->data + (size_t)i * row_bytes);
    }
    lsi_variable_commit(v, &w);
    return read ? lsi_variable_peek(c, v) : NULL;
}

/* ---- distributed variables ---- */

static bool refuse(ls_context *c, const ls_variable *v, const char *why)
{
    ls_error e = LS_ERROR_INIT;

    (void)lsi_fail_kind(&e, LS_UNIMPLEMENTED, LS_KIND_RUNTIME, "scatter: '%s' %s",
                        v->name, why);
    (void)lsi_context_error(c, &e);
    return false;
}

/* Which combinations there are at all. */
static bool allowed(ls_context *c, const ls_variable *v, ls_scatter_op op)
{
    const bool sums = op == LS_SCATTER_ADD || op == LS_SCATTER_SUB ||
                      op == LS_SCATTER_MUL || op == LS_SCATTER_DIV;

    if (v->kind == LSI_SYNC_ON_READ) {
        return refuse(c, v, "is ON_READ: rows of it cannot be changed");
    }
    if (v->kind == LSI_MIRRORED_VARIABLE && !sums &&
        (v->aggregation == LS_AGGREGATE_SUM || v->aggregation == LS_AGGREGATE_MEAN)) {
        return refuse(c, v,
                      "is aggregated by SUM or MEAN, which min, max and update are "
                      "not defined for");
    }
    return true;
}

/* What a replica shows to the others. */
struct rows {
    const ls_variable *variable;
    ls_scatter_op op;
    ls_tensor *indices;
    ls_tensor *updates;
};

/* All change the same variable in the same way. */
static bool agree(ls_context *c, const lsi_offers *o)
{
    const struct rows *first = o->all[0];

    for (int r = 1; r < o->n; r++) {
        const struct rows *other = o->all[r];

        if (other->variable != first->variable || other->op != first->op) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                                  "scatter: replica 0 changes '%s' by operation %d, "
                                  "replica %d '%s' by %d; every replica makes the same "
                                  "calls in the same order",
                                  first->variable->name, (int)first->op, r,
                                  other->variable->name, (int)other->op);
            return false;
        }
    }
    return true;
}

/* The rows of all replicas after each other, whatever the shapes of their indices. */
static bool join_rows(ls_context *c, const ls_variable *v, const lsi_offers *o,
                      ls_tensor **indices, ls_tensor **updates)
{
    ls_shape shape = v->shape, list = LS_SHAPE(0);
    int64_t *to;
    char *at;

    for (int r = 0; r < o->n; r++) {
        list.dims[0] += ((const struct rows *)o->all[r])->indices->count;
    }
    shape.dims[0] = list.dims[0];
    *indices = lsi_context_tensor(c, LS_I64, &list);
    *updates = lsi_context_tensor(c, v->dtype, &shape);
    if (lsi_failed(c)) {
        return false;
    }
    to = (*indices)->data;
    at = (*updates)->data;
    for (int r = 0; r < o->n; r++) {
        const struct rows *theirs = o->all[r];
        const size_t bytes = (size_t)theirs->updates->count * ls_dtype_size(v->dtype);

        for (int64_t i = 0; i < theirs->indices->count; i++) {
            *to++ = lsi_index_at(theirs->indices, i);
        }
        if (bytes > 0) {
            memcpy(at, theirs->updates->data, bytes);
            at += bytes;
        }
    }
    return true;
}

/* What replicas write, one after the other; or replica 0's alone. */
static bool gather_rows(ls_context *c, const ls_variable *v, ls_scatter_op op,
                        ls_tensor **indices, ls_tensor **updates)
{
    struct rows *mine;
    const struct rows *first;
    lsi_offers o;

    (void)check(c, v, op, *indices, *updates); // each its own: the others trust it
    mine = lsi_failed(c) ? NULL : lsi_show_room(c, sizeof *mine);
    if (mine == NULL || !lsi_show_tensor(c, *indices) || !lsi_show_tensor(c, *updates)) {
        return false;
    }
    *mine = (struct rows){v, op, *indices, *updates};
    if (!lsi_offers_meet(c, "scatter", 0, mine, &o) || !agree(c, &o)) {
        return false;
    }
    if (v->aggregation == LS_AGGREGATE_ONLY_FIRST_REPLICA) {
        first = o.all[0];
        *indices = first->indices;
        *updates = first->updates;
        return true;
    }
    if (!join_rows(c, v, &o, indices, updates)) {
        return false;
    }
    if (v->aggregation == LS_AGGREGATE_MEAN) {
        *updates = (ls_div)(c, *updates, lsi_scalar(c, v->dtype, o.n));
    }
    return !lsi_failed(c);
}

static ls_tensor *scatter_all(ls_context *c, ls_variable *v, ls_scatter_op op,
                              ls_tensor *indices, ls_tensor *updates, bool read)
{
    for (int i = 0; i < v->components && !lsi_failed(c); i++) {
        (void)scatter_plain(c, v->component[i], op, indices, updates, false);
    }
    return lsi_failed(c) || !read ? NULL : lsi_variable_aggregate(c, v);
}

static ls_tensor *scatter_distributed(ls_context *c, ls_variable *v, ls_scatter_op op,
                                      ls_tensor *indices, ls_tensor *updates, bool read)
{
    const lsi_mode *now = lsi_mode_now();
    ls_error e = LS_ERROR_INIT;
    ls_variable *here = lsi_variable_here(v, "scatter", &e);

    if (e.code != LS_OK) {
        return lsi_context_error(c, &e);
    }
    if (!allowed(c, v, op)) {
        return NULL;
    }
    if (v->kind == LSI_AGGREGATING) { // straight to the one there is, by each in turn
        ls_tensor *t;

        lsi_mutex_lock(&v->lock);
        t = scatter_plain(c, here, op, indices, updates, read);
        lsi_mutex_unlock(&v->lock);
        return t;
    }
    if (here == NULL) {
        return scatter_all(c, v, op, indices, updates, read);
    }
    if (lsi_update_id() >= 0 || now == NULL || now->cross ||
        v->aggregation == LS_AGGREGATE_NONE) {
        return scatter_plain(c, here, op, indices, updates, read);
    }
    c = now->context; // whatever context the call was given: this is the replica
    if (lsi_replica_peers(c) > 1 && !gather_rows(c, v, op, &indices, &updates)) {
        return NULL;
    }
    return scatter_plain(c, here, op, indices, updates, read);
}

static ls_tensor *scatter(ls_context *c, ls_variable *v, ls_scatter_op op,
                          ls_tensor *indices, ls_tensor *updates, bool read)
{
    ls_tensor *t;
    uint16_t recording;

    if (c == NULL || lsi_context_aborted(c)) {
        return NULL;
    }
    if (v == NULL || indices == NULL || updates == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "scatter: an argument is NULL");
    }
    recording = c->recording;
    c->recording = 0; // an assignment is no part of a gradient
    indices = lsi_dense(c, indices);
    updates = lsi_dense(c, updates);
    t = lsi_failed(c)          ? NULL
        : v->kind == LSI_PLAIN ? scatter_plain(c, v, op, indices, updates, read)
                               : scatter_distributed(c, v, op, indices, updates, read);
    c->recording = recording;
    return t;
}

ls_tensor *(ls_variable_scatter)(ls_context *c, ls_variable *v, ls_scatter_op op,
                                 ls_tensor *indices, ls_tensor *updates)
{
    return scatter(c, v, op, indices, updates, true);
}

void(ls_variable_scatter_in_place)(ls_context *c, ls_variable *v, ls_scatter_op op,
                                   ls_tensor *indices, ls_tensor *updates)
{
    (void)scatter(c, v, op, indices, updates, false);
}
