/* Operations that rearrange elements: each kernel describes a copy for copy.c. */
#include "kernel/ref/copy.h"
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

static lsi_copy start_copy(const ls_op_call *k, const ls_tensor *x)
{
    lsi_copy copy;

    memset(&copy, 0, sizeof copy);
    copy.size = ls_dtype_size((ls_dtype)x->dtype);
    copy.from = x->data;
    copy.to = k->out[0]->data;
    return copy;
}

static const void *element(const void *data, int64_t offset, size_t size)
{
    return (const char *)data + (size_t)offset * size;
}

ls_status lsi_ref_transpose(ls_op_call *k)
{
    const lsi_shape_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    lsi_copy copy = start_copy(k, x);
    int64_t in[LS_MAX_DIMS];
    int64_t out[LS_MAX_DIMS];

    lsi_strides(x, in);
    lsi_strides(k->out[0], out);
    for (int i = 0; i < x->ndim; i++) {
        const int64_t axis = attrs->begin[i];

        lsi_copy_axis(&copy, x->dims[axis], in[axis], out[i]);
    }
    lsi_copy_run(k, &copy);
    return LS_OK;
}

ls_status lsi_ref_broadcast_to(ls_op_call *k)
{
    const ls_tensor *x = k->in[0];
    const ls_tensor *y = k->out[0];
    lsi_copy copy = start_copy(k, x);
    int64_t in[LS_MAX_DIMS];
    int64_t out[LS_MAX_DIMS];

    lsi_strides(x, in);
    lsi_strides(y, out);
    for (int i = 0; i < y->ndim; i++) {
        const int own = i - (y->ndim - x->ndim);
        const bool repeats = own < 0 || x->dims[own] == 1;

        lsi_copy_axis(&copy, y->dims[i], repeats ? 0 : in[own], out[i]);
    }
    lsi_copy_run(k, &copy);
    return LS_OK;
}

ls_status lsi_ref_tile(ls_op_call *k)
{
    const lsi_shape_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    lsi_copy copy = start_copy(k, x);
    int64_t in[LS_MAX_DIMS];
    int64_t out[LS_MAX_DIMS];

    lsi_strides(x, in);
    lsi_strides(k->out[0], out);
    for (int i = 0; i < x->ndim; i++) {
        lsi_copy_axis(&copy, attrs->begin[i], 0, out[i] * x->dims[i]);
        lsi_copy_axis(&copy, x->dims[i], in[i], out[i]);
    }
    lsi_copy_run(k, &copy);
    return LS_OK;
}

ls_status lsi_ref_pad(ls_op_call *k)
{
    const lsi_shape_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    ls_tensor *y = k->out[0];
    lsi_copy copy = start_copy(k, x);
    int64_t in[LS_MAX_DIMS];
    int64_t out[LS_MAX_DIMS];
    int64_t offset = 0;

    lsi_strides(x, in);
    lsi_strides(y, out);
    for (int i = 0; i < x->ndim; i++) {
        offset += attrs->begin[i] * out[i];
        lsi_copy_axis(&copy, x->dims[i], in[i], out[i]);
    }
    copy.to = (char *)y->data + (size_t)offset * copy.size;
    lsi_ref_fill((ls_dtype)y->dtype, y->data, y->count, attrs->value);
    lsi_copy_run(k, &copy);
    return LS_OK;
}

ls_status lsi_ref_slice(ls_op_call *k)
{
    const lsi_shape_attrs *attrs = k->attrs;
    const ls_tensor *x = k->in[0];
    lsi_copy copy = start_copy(k, x);
    int64_t in[LS_MAX_DIMS];
    int64_t out[LS_MAX_DIMS];
    int64_t offset = 0;

    lsi_strides(x, in);
    lsi_strides(k->out[0], out);
    for (int i = 0; i < x->ndim; i++) {
        offset += attrs->begin[i] * in[i];
        lsi_copy_axis(&copy, k->out[0]->dims[i], in[i], out[i]);
    }
    copy.from = element(x->data, offset, copy.size);
    lsi_copy_run(k, &copy);
    return LS_OK;
}

/* Each input is `depth` slices of `inner` elements wide in every one of the outer rows.
 */
static ls_status join_inputs(ls_op_call *k, int axis, bool stack)
{
    const ls_tensor *y = k->out[0];
    int64_t outer = 1;
    int64_t inner = 1;
    int64_t at = 0;

    for (int i = 0; i < y->ndim; i++) {
        outer *= i < axis ? y->dims[i] : 1;
        inner *= i > axis ? y->dims[i] : 1;
    }
    for (size_t i = 0; i < k->nin; i++) {
        const ls_tensor *x = k->in[i];
        const int64_t width = (stack ? 1 : x->dims[axis]) * inner;
        lsi_copy copy = start_copy(k, x);

        copy.to = (char *)y->data + (size_t)at * copy.size;
        lsi_copy_axis(&copy, outer, width, y->dims[axis] * inner);
        lsi_copy_axis(&copy, width, 1, 1);
        lsi_copy_run(k, &copy);
        at += width;
    }
    return LS_OK;
}

ls_status lsi_ref_concat(ls_op_call *k)
{
    return join_inputs(k, ((const lsi_axis_attrs *)k->attrs)->axis, false);
}

ls_status lsi_ref_stack(ls_op_call *k)
{
    return join_inputs(k, ((const lsi_axis_attrs *)k->attrs)->axis, true);
}
