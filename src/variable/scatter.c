/* Scatter operations: changing some rows of a variable. */
#include "variable/variable.h"

static bool known_op(ls_scatter_op op)
{
    return (int)op >= LS_SCATTER_UPDATE && op <= LS_SCATTER_MAX;
}

/*
 * Changes one row of elements T; sums are computed in U. Integers wrap around as in
 * TensorFlow, so they are added as unsigned numbers; dividing by -1 is negating, which
 * wraps too.
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
        break; // rejected by the public function
    }
}

static bool scatter_supports(ls_dtype d)
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
static bool shapes_fit(const ls_variable *v, const ls_tensor *indices,
                       const ls_tensor *updates)
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

static ls_tensor *check_rows(ls_context *c, const ls_variable *v, ls_scatter_op op,
                             const ls_tensor *indices, const ls_tensor *updates)
{
    char shape[128];

    if (!known_op(op)) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "scatter: %d is no operation",
                               (int)op);
    }
    if (!scatter_supports(v->dtype)) {
        return ls_context_fail(c, LS_UNIMPLEMENTED,
                               "scatter: not for %s; float32, float64, int32 and int64 "
                               "variables have it",
                               ls_dtype_name(v->dtype));
    }
    if ((indices->dtype != LS_I32 && indices->dtype != LS_I64) || v->shape.ndim < 1 ||
        !shapes_fit(v, indices, updates)) {
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

void lsi_scatter_check(ls_context *c, const ls_variable *v, ls_scatter_op op,
                       const ls_tensor *indices, const ls_tensor *updates)
{
    (void)check_rows(c, v, op, indices, updates);
}

ls_tensor *lsi_scatter_plain(ls_context *c, ls_variable *v, ls_scatter_op op,
                             ls_tensor *indices, ls_tensor *updates, bool read)
{
    ls_error e = LS_ERROR_INIT;
    size_t size, row_bytes;
    int64_t width;
    lsi_write w;

    (void)check_rows(c, v, op, indices, updates);
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

ls_tensor *lsi_scatter_refused(ls_context *c, const ls_variable *v, const char *why)
{
    ls_error e = LS_ERROR_INIT;

    (void)lsi_fail_kind(&e, LS_UNIMPLEMENTED, LS_KIND_RUNTIME, "scatter: '%s' %s",
                        v->name, why);
    return lsi_context_error(c, &e);
}

static ls_tensor *scatter_rows(ls_context *c, ls_variable *v, ls_scatter_op op,
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
    c->recording = 0; // an assignment is not recorded by tapes
    indices = lsi_dense(c, indices);
    updates = lsi_dense(c, updates);
    t = lsi_failed(c) ? NULL : v->ops->scatter(c, v, op, indices, updates, read);
    c->recording = recording;
    return t;
}

ls_tensor *(ls_variable_scatter)(ls_context *c, ls_variable *v, ls_scatter_op op,
                                 ls_tensor *indices, ls_tensor *updates)
{
    return scatter_rows(c, v, op, indices, updates, true);
}

void(ls_variable_scatter_in_place)(ls_context *c, ls_variable *v, ls_scatter_op op,
                                   ls_tensor *indices, ls_tensor *updates)
{
    (void)scatter_rows(c, v, op, indices, updates, false);
}
