/* Shapes: counting elements and bytes, comparing, printing. */
#include "tensor/tensor.h"

#include <stdio.h>

ls_shape ls_shape_of(size_t ndim, const int64_t *dims)
{
    ls_shape s = {0};

    if (ndim > LS_MAX_DIMS || (ndim > 0 && dims == NULL)) {
        s.ndim = -1; // refused by every call
        return s;
    }
    s.ndim = (int)ndim;
    for (size_t i = 0; i < ndim; i++) {
        s.dims[i] = dims[i];
    }
    return s;
}

int64_t ls_shape_count(const ls_shape *shape)
{
    int64_t n = 1;
    bool empty = false;

    if (shape == NULL || shape->ndim < 0 || shape->ndim > LS_MAX_DIMS) {
        return -1;
    }
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->dims[i] < 0) {
            return -1;
        }
        if (shape->dims[i] == 0) {
            empty = true; // the product of the others must still be a number
        } else if (__builtin_mul_overflow(n, shape->dims[i], &n)) {
            return -1;
        }
    }
    return empty ? 0 : n;
}

bool ls_shape_equal(const ls_shape *a, const ls_shape *b)
{
    if (a == NULL || b == NULL || a->ndim != b->ndim) {
        return a == b;
    }
    for (int i = 0; i < a->ndim; i++) {
        if (a->dims[i] != b->dims[i]) {
            return false;
        }
    }
    return true;
}

char *ls_shape_text(const ls_shape *shape, char *buf, size_t size)
{
    size_t at = 0;

    if (size == 0) {
        return buf;
    }
    if (shape == NULL) {
        (void)snprintf(buf, size, "None");
        return buf;
    }
    if (shape->ndim < 0 || shape->ndim > LS_MAX_DIMS) {
        (void)snprintf(buf, size, "(more than %d axes)", LS_MAX_DIMS);
        return buf;
    }
    at += (size_t)snprintf(buf, size, "(");
    for (int i = 0; i < shape->ndim && at < size; i++) {
        at += (size_t)snprintf(buf + at, size - at, "%s%lld", i > 0 ? ", " : "",
                               (long long)shape->dims[i]);
    }
    if (at < size) {
        (void)snprintf(buf + at, size - at, "%s)", shape->ndim == 1 ? "," : "");
    }
    return buf;
}

bool lsi_shape_bytes(const ls_shape *shape, ls_dtype dtype, int64_t *count, size_t *bytes)
{
    const int64_t n = ls_shape_count(shape);
    const size_t size = ls_dtype_size(dtype);

    if (n < 0 || size == 0 || !lsi_mul_size((size_t)n, size, bytes) ||
        *bytes > (size_t)INT64_MAX / 2) {
        return false;
    }
    *count = n;
    return true;
}

bool lsi_axis(int axis, int ndim, int *out)
{
    if (axis < -ndim || axis >= ndim) {
        return false;
    }
    *out = axis < 0 ? axis + ndim : axis;
    return true;
}
