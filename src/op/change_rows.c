/*
 * Rows of a value that change, as the scatter functions of variables change them, and
 * what such writes require. These rows have no gradient: tapes do not see writes.
 */
#include "op/op.h"

#include <stdio.h>

#include "kernel/ref/ref.h"

/* Messages of both rows begin with the name that the program knows. */
#define SCATTER_ROW(op, min, max, shape_, kernel_)                                       \
    const ls_op lsi_op_##op = {sizeof(ls_op), "scatter", min,     max, 1,                \
                               LSI_OP_##op,   shape_,    kernel_, NULL}

static bool scatter_supports(ls_dtype dtype)
{
    return dtype == LS_F32 || dtype == LS_F64 || dtype == LS_I32 || dtype == LS_I64;
}

static ls_status check_scatter_op(ls_op_call *k)
{
    const int op = (int)((const lsi_rows_attrs *)k->attrs)->op;

    if (op < LS_SCATTER_UPDATE || op > LS_SCATTER_MAX) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "%d is no operation", op);
    }
    return LS_OK;
}

static ls_status change_rows_shape(ls_op_call *k)
{
    const ls_tensor *value = k->in[0], *indices = k->in[1], *updates = k->in[2];
    const ls_shape shape = lsi_shape(value);
    ls_status st = check_scatter_op(k);

    if (st == LS_OK) {
        st = lsi_check_index_dtype(k, indices);
    }
    if (st != LS_OK) {
        return st;
    }
    if (!scatter_supports((ls_dtype)value->dtype)) {
        return ls_op_fail(k, LS_UNIMPLEMENTED,
                          "not for %s; float32, float64, int32 and int64 have it",
                          ls_dtype_name((ls_dtype)value->dtype));
    }
    if (updates->dtype != value->dtype || !lsi_updates_fit(indices, updates, &shape)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s with indices %s needs updates of the indices' shape and "
                          "then the value's without its first axis, got %s",
                          lsi_text_of(value).s, lsi_text_of(indices).s,
                          lsi_text_of(updates).s);
    }
    return lsi_shape_same(k);
}

static ls_status row_indices_shape(ls_op_call *k)
{
    const ls_shape shape = lsi_shape(k->in[0]);
    ls_status st = check_scatter_op(k);

    if (st == LS_OK) {
        st = lsi_check_index_dtype(k, k->in[0]);
    }
    return st == LS_OK ? ls_op_set_output(k, 0, LS_I64, &shape) : st;
}

SCATTER_ROW(change_rows, 3, 3, change_rows_shape, lsi_ref_change_rows);
SCATTER_ROW(row_indices, 2, 2, row_indices_shape, lsi_ref_row_indices);

bool lsi_change_rows(ls_context *c, ls_scatter_op op, ls_tensor *value,
                     ls_tensor *indices, ls_tensor *updates, ls_tensor *out)
{
    ls_tensor *in[3] = {value, indices, updates};
    lsi_rows_attrs attrs;

    if (lsi_failed(c)) {
        return false;
    }
    memset(&attrs, 0, sizeof attrs);
    attrs.op = op;
    if (value->count == 0) { // nothing to write: but an index may be out of range
        return lsi_row_indices(c, op, indices, updates,
                               value->ndim > 0 ? value->dims[0] : 0) != NULL;
    }
    return lsi_op_into(c, &lsi_op_change_rows, in, 3, &attrs, out);
}

ls_tensor *lsi_row_indices(ls_context *c, ls_scatter_op op, ls_tensor *indices,
                           ls_tensor *updates, int64_t rows)
{
    lsi_rows_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.op = op;
    attrs.rows = rows;
    return lsi_op2(c, &lsi_op_row_indices, indices, updates, &attrs, sizeof attrs);
}

static ls_status require_shape(ls_op_call *k)
{
    if (k->in[0]->dtype == LS_STRING) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "strings are not numbers: %s",
                          lsi_text_of(k->in[0]).s);
    }
    return lsi_shape_same(k);
}

static void require_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                             ls_tensor **gin)
{
    (void)c;
    (void)n;
    gin[0] = gout[0];
}

LSI_ROW(require, 1, 1, 1, require_shape, lsi_ref_require, require_gradient);

ls_tensor *lsi_require(ls_context *c, ls_tensor *t, lsi_condition condition,
                       const ls_error *otherwise)
{
    lsi_require_attrs attrs;

    if (lsi_failed(c)) {
        return NULL;
    }
    memset(&attrs, 0, sizeof attrs);
    attrs.condition = condition;
    t = lsi_op1(c, &lsi_op_require, t, &attrs, sizeof attrs);
    if (t == NULL && c->error.code == LS_INVALID_ARGUMENT) { // not out of memory
        c->error.code = otherwise->code;
        c->error.kind = otherwise->kind;
        (void)snprintf(c->error.message, sizeof c->error.message, "%s",
                       otherwise->message);
    }
    return t;
}
