/*
 * Rows of a value that change: the scatter functions of variables. All indices and
 * divisors are checked before the first row changes, so a call that fails changes nothing
 * even where the result's memory is the value's.
 */
#include "kernel/ref/ref.h"

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
        break; // rejected by the shape rule
    }
}

static bool has_zero(const ls_tensor *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        if (lsi_element(t, i) == 0) {
            return true;
        }
    }
    return false;
}

/* Every index is one of `rows` rows, and no integer is divided by zero. */
static ls_status check_rows(ls_op_call *k, ls_scatter_op op, const ls_tensor *indices,
                            const ls_tensor *updates, int64_t rows)
{
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t row = lsi_index_at(indices, i);

        if (row < 0 || row >= rows) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "index %lld at %lld is outside [0, %lld)", (long long)row,
                              (long long)i, (long long)rows);
        }
    }
    if (op == LS_SCATTER_DIV && lsi_dtype_is_int((ls_dtype)updates->dtype) &&
        has_zero(updates)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "division by zero");
    }
    return LS_OK;
}

ls_status lsi_ref_change_rows(ls_op_call *k)
{
    const lsi_rows_attrs *attrs = k->attrs;
    const ls_tensor *value = k->in[0], *indices = k->in[1], *updates = k->in[2];
    const int64_t width = value->count / value->dims[0];
    const size_t size = ls_dtype_size((ls_dtype)value->dtype);
    const ls_status st = check_rows(k, attrs->op, indices, updates, value->dims[0]);
    void *to = k->out[0]->data;

    if (st != LS_OK) {
        return st;
    }
    if (to != value->data) {
        memcpy(to, value->data, (size_t)value->count * size);
    }
    for (int64_t i = 0; i < indices->count; i++) {
        change_row((ls_dtype)value->dtype, attrs->op, to, lsi_index_at(indices, i), width,
                   (const char *)updates->data + (size_t)(i * width) * size);
    }
    return LS_OK;
}

ls_status lsi_ref_row_indices(ls_op_call *k)
{
    const lsi_rows_attrs *attrs = k->attrs;
    int64_t *to = k->out[0]->data;
    const ls_status st = check_rows(k, attrs->op, k->in[0], k->in[1], attrs->rows);

    for (int64_t i = 0; st == LS_OK && i < k->in[0]->count; i++) {
        to[i] = lsi_index_at(k->in[0], i);
    }
    return st;
}

ls_status lsi_ref_require(ls_op_call *k)
{
    const lsi_condition condition = ((const lsi_require_attrs *)k->attrs)->condition;
    const ls_tensor *x = k->in[0];

    for (int64_t i = 0; i < x->count; i++) {
        const double v = lsi_element(x, i);

        if (condition == LSI_ALL_ZERO ? v != 0 : v < 0) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT, "element %lld is %g, %s",
                              (long long)i, v,
                              condition == LSI_ALL_ZERO ? "not zero" : "negative");
        }
    }
    memcpy(k->out[0]->data, x->data,
           (size_t)x->count * ls_dtype_size((ls_dtype)x->dtype));
    return LS_OK;
}
