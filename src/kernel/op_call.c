/*
 * One call of an operation as its shape rule and its kernel see it (lockstep/ext/op.h):
 * inputs, attributes, outputs, and how a rule or a kernel fails.
 */
#include "kernel/kernel.h"

#include <stdarg.h>
#include <stdio.h>

size_t ls_op_input_count(const ls_op_call *k)
{
    return k->nin;
}

const ls_tensor *ls_op_input(const ls_op_call *k, size_t i)
{
    return i < k->nin ? k->in[i] : NULL;
}

const void *ls_op_attrs(const ls_op_call *k)
{
    return k->attrs;
}

ls_status ls_op_set_output(ls_op_call *k, int i, ls_dtype dtype, const ls_shape *shape)
{
    if (i < 0 || i >= k->op->outputs) {
        return ls_op_fail(k, LS_INTERNAL, "there is no output %d", i);
    }
    k->spec[i].dtype = dtype;
    k->spec[i].shape.ndim = shape->ndim;
    for (int d = 0; d < shape->ndim && d < LS_MAX_DIMS; d++) {
        k->spec[i].shape.dims[d] = shape->dims[d];
    }
    return LS_OK;
}

ls_status ls_op_fail(ls_op_call *k, ls_status code, const char *fmt, ...)
{
    if (k->err != NULL) {
        size_t at;
        va_list args;

        k->err->code = code;
        at = (size_t)snprintf(k->err->message, sizeof k->err->message,
                              "%s: ", k->op->name);
        if (at < sizeof k->err->message) {
            va_start(args, fmt);
            (void)vsnprintf(k->err->message + at, sizeof k->err->message - at, fmt, args);
            va_end(args);
        }
    }
    return code;
}

void *ls_op_output(ls_op_call *k, int i)
{
    return k->out[i]->data;
}
