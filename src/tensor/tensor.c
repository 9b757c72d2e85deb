/* Tensors and their buffers: making, sharing, reading and releasing them. */
#include "tensor/tensor.h"

#include <math.h>

enum { HEADER = 64 }; // the struct of a buffer and its elements are one block
_Static_assert(sizeof(lsi_buffer) <= HEADER, "a buffer's header fits");

lsi_buffer *lsi_buffer_new(ls_device *dev, size_t bytes)
{
    size_t total;
    lsi_buffer *buf;

    if (!lsi_add_size(bytes, HEADER, &total)) {
        return NULL;
    }
    buf = lsi_device_alloc(dev, total);
    if (buf == NULL) {
        return NULL;
    }
    atomic_init(&buf->refs, 1);
    buf->device = dev;
    buf->data = (char *)buf + HEADER;
    buf->bytes = bytes;
    buf->done = NULL;
    buf->user = NULL;
    buf->pooled = true;
    return buf;
}

lsi_buffer *lsi_buffer_retain(lsi_buffer *buf)
{
    atomic_fetch_add(&buf->refs, 1);
    return buf;
}

void lsi_buffer_release(lsi_buffer *buf)
{
    if (buf == NULL || atomic_fetch_sub(&buf->refs, 1) != 1) {
        return;
    }
    if (buf->pooled) {
        lsi_device_free(buf->device, buf);
        return;
    }
    if (buf->done != NULL) {
        buf->done(buf->user);
    }
    lsi_free(buf);
}

static void set_shape(ls_tensor *t, ls_dtype dtype, const ls_shape *shape, int64_t count)
{
    t->dtype = (uint8_t)dtype;
    t->ndim = (uint8_t)shape->ndim;
    t->count = count;
    for (int i = 0; i < shape->ndim; i++) {
        t->dims[i] = shape->dims[i];
    }
}

/* Everything but shape and memory, for a struct whose bytes are undefined. */
static void set_plain(ls_tensor *t, ls_device *dev)
{
    t->tapes = 0;
    t->device = dev;
    t->buffer = NULL;
    t->values = NULL;
    t->indices = NULL;
}

bool lsi_tensor_init(ls_tensor *t, ls_device *dev, ls_dtype dtype, const ls_shape *shape)
{
    int64_t count;
    size_t bytes;

    set_plain(t, dev);
    if (!lsi_shape_bytes(shape, dtype, &count, &bytes)) {
        return false;
    }
    if (bytes <= dev->inline_bytes) {
        t->data = t->small;
    } else {
        t->buffer = lsi_buffer_new(dev, bytes);
        if (t->buffer == NULL) {
            return false;
        }
        t->data = t->buffer->data;
    }
    set_shape(t, dtype, shape, count);
    return true;
}

bool lsi_tensor_locate(const ls_tensor *t, lsi_memory_location *out)
{
    // The device of a view may be another one than that of its memory.
    return t->buffer != NULL && t->buffer->pooled && t->dtype != LS_STRING &&
           lsi_device_locate(t->buffer->device, t->data, ls_tensor_bytes(t), out);
}

void lsi_tensor_clear(ls_tensor *t)
{
    if (t->buffer != NULL) {
        lsi_buffer_release(t->buffer);
        t->buffer = NULL;
    }
    if (t->values != NULL) {
        ls_tensor_release(t->values);
        ls_tensor_release(t->indices);
        t->values = NULL;
        t->indices = NULL;
    }
    if (t->origin != NULL) {
        ls_tensor_release(t->origin);
        t->origin = NULL;
    }
}

static ls_tensor *new_struct(void)
{
    ls_tensor *t = lsi_alloc_aligned(sizeof *t, _Alignof(ls_tensor));

    if (t != NULL) {
        atomic_init(&t->refs, 1);
        t->listed = false;
        t->recycled = false;
        t->mark = 0;
        t->next = NULL;
        t->owner = NULL;
        t->origin = NULL;
        set_plain(t, NULL);
    }
    return t;
}

ls_tensor *lsi_tensor_new(ls_device *dev, ls_dtype dtype, const ls_shape *shape)
{
    ls_tensor *t = new_struct();

    if (t != NULL && !lsi_tensor_init(t, dev, dtype, shape)) {
        lsi_free(t);
        return NULL;
    }
    return t;
}

void lsi_tensor_init_view(ls_tensor *v, const ls_tensor *t, ls_dtype dtype,
                          const ls_shape *shape, size_t offset)
{
    set_plain(v, t->device);
    set_shape(v, dtype, shape, ls_shape_count(shape));
    if (t->buffer == NULL) { // small tensors are copied, that is as cheap
        memcpy(v->small, (const char *)t->data + offset,
               (size_t)v->count * ls_dtype_size(dtype));
        v->data = v->small;
        return;
    }
    v->buffer = lsi_buffer_retain(t->buffer);
    v->data = (char *)t->data + offset;
}

ls_tensor *lsi_tensor_view(ls_tensor *t, ls_dtype dtype, const ls_shape *shape,
                           size_t offset)
{
    ls_tensor *v = new_struct();

    if (v != NULL) {
        lsi_tensor_init_view(v, t, dtype, shape, offset);
    }
    return v;
}

void lsi_tensor_init_over(ls_tensor *t, lsi_buffer *buf, ls_dtype dtype,
                          const ls_shape *shape)
{
    set_plain(t, buf->device);
    set_shape(t, dtype, shape, ls_shape_count(shape));
    t->buffer = lsi_buffer_retain(buf);
    t->data = buf->data;
}

ls_tensor *lsi_tensor_over(lsi_buffer *buf, ls_dtype dtype, const ls_shape *shape)
{
    ls_tensor *t = new_struct();

    if (t != NULL) {
        lsi_tensor_init_over(t, buf, dtype, shape);
    }
    return t;
}

void lsi_tensor_init_sparse(ls_tensor *t, const ls_shape *shape, ls_tensor *values,
                            ls_tensor *indices)
{
    set_plain(t, values->device);
    set_shape(t, (ls_dtype)values->dtype, shape, ls_shape_count(shape));
    t->data = NULL;
    t->values = ls_tensor_retain(values);
    t->indices = ls_tensor_retain(indices);
}

void lsi_tensor_init_alias(ls_tensor *alias, ls_tensor *t)
{
    const ls_shape shape = ls_tensor_shape(t);

    if (t->values != NULL) {
        lsi_tensor_init_sparse(alias, &shape, t->values, t->indices);
    } else {
        lsi_tensor_init_view(alias, t, (ls_dtype)t->dtype, &shape, 0);
    }
    alias->origin = ls_tensor_retain(t);
}

ls_tensor *lsi_tensor_sparse(const ls_shape *shape, ls_tensor *values, ls_tensor *indices)
{
    ls_tensor *t = new_struct();

    if (t != NULL) {
        lsi_tensor_init_sparse(t, shape, values, indices);
    }
    return t;
}

/*
 * The rows and the indices match and lie inside of the dense shape. Indices are read here,
 * once, because there is no step yet in which an operation could refuse them.
 */
static ls_status check_slices(const ls_tensor *values, const ls_tensor *indices,
                              const ls_shape *dense, ls_error *err)
{
    char rows[128], whole[128];
    const ls_shape vs = ls_tensor_shape(values);
    bool fits = values->ndim == dense->ndim && values->ndim >= 1 && indices->ndim == 1 &&
                values->dims[0] == indices->dims[0];

    if ((indices->dtype != LS_I32 && indices->dtype != LS_I64) ||
        values->values != NULL || indices->values != NULL || values->dtype == LS_STRING) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "slices: rows are dense numbers and indices are int32 or "
                             "int64, not %s and %s",
                             ls_dtype_name((ls_dtype)values->dtype),
                             ls_dtype_name((ls_dtype)indices->dtype));
    }
    for (int a = 1; fits && a < values->ndim; a++) {
        fits = values->dims[a] == dense->dims[a];
    }
    if (!fits) {
        return lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
            "slices: rows %s with %lld indices do not match the dense shape %s",
            ls_shape_text(&vs, rows, sizeof rows), (long long)indices->count,
            ls_shape_text(dense, whole, sizeof whole));
    }
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t at = lsi_index_at(indices, i);

        if (at < 0 || at >= dense->dims[0]) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                 "slices: index %lld is outside of %lld rows",
                                 (long long)at, (long long)dense->dims[0]);
        }
    }
    return LS_OK;
}

ls_status ls_tensor_create_slices(ls_tensor *values, ls_tensor *indices,
                                  ls_shape dense_shape, ls_tensor **out, ls_error *err)
{
    ls_status st;
    size_t bytes;
    int64_t count;

    if (values == NULL || indices == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "slices: an argument is NULL");
    }
    if (!lsi_shape_bytes(&dense_shape, (ls_dtype)values->dtype, &count, &bytes)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "slices: the dense shape is not a valid shape");
    }
    st = check_slices(values, indices, &dense_shape, err);
    if (st == LS_OK) {
        ls_tensor *t = lsi_tensor_sparse(&dense_shape, values, indices);

        if (t == NULL) {
            return lsi_fail_memory(err, "a sparse tensor", sizeof *t);
        }
        *out = t;
    }
    return st;
}

ls_tensor *ls_tensor_retain(ls_tensor *t)
{
    if (t != NULL) {
        atomic_fetch_add(&t->refs, 1);
    }
    return t;
}

void ls_tensor_release(ls_tensor *t)
{
    if (t != NULL && atomic_fetch_sub(&t->refs, 1) == 1) {
        lsi_tensor_clear(t);
        lsi_free(t);
    }
}

/* The device a NULL stands for. */
static ls_status default_device(ls_device **device, ls_error *err)
{
    if (*device == NULL) {
        ls_runtime *rt = lsi_runtime_default();

        *device = rt != NULL ? ls_runtime_device(rt, 0) : NULL;
        if (*device == NULL) {
            return lsi_fail_memory(err, "the default runtime", sizeof(ls_device));
        }
    }
    return LS_OK;
}

static ls_status check_shape(const char *what, ls_dtype dtype, const ls_shape *shape,
                             size_t *bytes, ls_error *err)
{
    int64_t count;
    char text[128];

    if (ls_dtype_size(dtype) == 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "%s: %d is not a dtype", what, (int)dtype);
    }
    if (!lsi_shape_bytes(shape, dtype, &count, bytes)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "%s: the shape %s of %s is not possible: sizes are 0 or "
                             "more, at most %d of them, and their product must fit",
                             what, ls_shape_text(shape, text, sizeof text),
                             ls_dtype_name(dtype), LS_MAX_DIMS);
    }
    return LS_OK;
}

/* One block holds the elements and, behind them, the bytes they point at. */
static ls_status create_strings(ls_device *device, const ls_shape *shape,
                                const ls_string *from, ls_tensor **out, ls_error *err)
{
    const size_t n = (size_t)ls_shape_count(shape);
    size_t total = n * sizeof(ls_string);
    lsi_buffer *buf;
    ls_string *to;
    char *at;

    for (size_t i = 0; from != NULL && i < n; i++) {
        if (from[i].ptr == NULL && from[i].len > 0) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                            "tensor: string %zu has %zu bytes at NULL", i, from[i].len);
        }
        if (!lsi_add_size(total, from[i].len, &total)) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                            "tensor: the strings have too many bytes");
        }
    }
    buf = lsi_buffer_new(device, total);
    if (buf == NULL) {
        return lsi_fail_memory(err, "a tensor of strings", total);
    }
    to = buf->data;
    at = (char *)(to + n);
    for (size_t i = 0; i < n; i++) {
        const size_t len = from != NULL ? from[i].len : 0;

        if (len > 0) {
            memcpy(at, from[i].ptr, len);
        }
        to[i] = (ls_string){at, len};
        at += len;
    }
    *out = lsi_tensor_over(buf, LS_STRING, shape);
    lsi_buffer_release(buf);
    return *out != NULL ? LS_OK : lsi_fail_memory(err, "a tensor", sizeof(ls_tensor));
}

ls_status ls_tensor_create(ls_device *device, ls_dtype dtype, ls_shape shape,
                           const void *data, ls_tensor **out, ls_error *err)
{
    ls_tensor *t;
    size_t bytes;
    ls_status st;

    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "tensor: out is NULL");
    }
    st = check_shape("tensor", dtype, &shape, &bytes, err);
    if (st == LS_OK) {
        st = default_device(&device, err);
    }
    if (st != LS_OK) {
        return st;
    }
    if (dtype == LS_STRING) {
        t = NULL;
        st = create_strings(device, &shape, data, &t, err);
        if (st == LS_OK) {
            *out = t;
        }
        return st;
    }
    t = lsi_tensor_new(device, dtype, &shape);
    if (t == NULL) {
        return lsi_fail_memory(err, "a tensor", bytes);
    }
    if (data != NULL && bytes > 0) {
        lsi_device_copy(device, t->data, data, bytes);
    } else {
        memset(t->data, 0, bytes);
    }
    *out = t;
    return LS_OK;
}

ls_status ls_tensor_wrap(ls_device *device, ls_dtype dtype, ls_shape shape,
                         const void *data, void (*done)(void *user), void *user,
                         ls_tensor **out, ls_error *err)
{
    lsi_buffer *buf;
    ls_tensor *t;
    size_t bytes;
    ls_status st;

    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "wrap: out is NULL");
    }
    st = check_shape("wrap", dtype, &shape, &bytes, err);
    if (st == LS_OK && data == NULL && bytes > 0) {
        st = lsi_fail(err, LS_INVALID_ARGUMENT, -1, "wrap: data is NULL");
    }
    if (st == LS_OK) {
        st = default_device(&device, err);
    }
    if (st != LS_OK) {
        return st;
    }
    buf = lsi_alloc(1, sizeof *buf);
    if (buf == NULL) {
        return lsi_fail_memory(err, "a tensor", sizeof *buf);
    }
    atomic_init(&buf->refs, 1);
    buf->device = device;
    buf->data = (void *)(uintptr_t)data; // never written through: wrapped is read-only
    buf->bytes = bytes;
    t = lsi_tensor_over(buf, dtype, &shape);
    if (t != NULL) {
        buf->done = done; // only now: after a failure `done` is not called
        buf->user = user;
    }
    lsi_buffer_release(buf);
    if (t == NULL) {
        return lsi_fail_memory(err, "a tensor", sizeof *t);
    }
    *out = t;
    return LS_OK;
}

ls_dtype ls_tensor_dtype(const ls_tensor *t)
{
    return t != NULL ? (ls_dtype)t->dtype : (ls_dtype)0;
}

int ls_tensor_ndim(const ls_tensor *t)
{
    return t != NULL ? t->ndim : 0;
}

int64_t ls_tensor_dim(const ls_tensor *t, int axis)
{
    int a;

    return t != NULL && lsi_axis(axis, t->ndim, &a) ? t->dims[a] : -1;
}

ls_shape ls_tensor_shape(const ls_tensor *t)
{
    const int n = t != NULL ? t->ndim : 0;

    // Not by a loop: the sizes would be written one by one and read back in pairs, and
    // the CPU would wait for its own stores.
#define SIZE(i) ((i) < n ? t->dims[i] : 0)
    return (ls_shape){
        n, {SIZE(0), SIZE(1), SIZE(2), SIZE(3), SIZE(4), SIZE(5), SIZE(6), SIZE(7)}};
#undef SIZE
}
_Static_assert(LS_MAX_DIMS == 8, "ls_tensor_shape() names each size");

int64_t ls_tensor_count(const ls_tensor *t)
{
    return t != NULL ? t->count : 0;
}

size_t ls_tensor_bytes(const ls_tensor *t)
{
    return t != NULL ? (size_t)t->count * ls_dtype_size((ls_dtype)t->dtype) : 0;
}

ls_device *ls_tensor_device(const ls_tensor *t)
{
    return t != NULL ? t->device : NULL;
}

const void *ls_tensor_data(const ls_tensor *t)
{
    return t != NULL ? t->data : NULL;
}

bool ls_tensor_slices(const ls_tensor *t, const ls_tensor **values,
                      const ls_tensor **indices)
{
    if (t == NULL || t->values == NULL) {
        return false;
    }
    if (values != NULL) {
        *values = t->values;
    }
    if (indices != NULL) {
        *indices = t->indices;
    }
    return true;
}

double lsi_element(const ls_tensor *t, int64_t i)
{
    const void *p = t->data;

    switch ((ls_dtype)t->dtype) {
    case LS_F32:
        return (double)((const float *)p)[i];
    case LS_F64:
        return ((const double *)p)[i];
    case LS_F16:
        return (double)lsi_f16_to_f32(((const uint16_t *)p)[i]);
    case LS_BF16:
        return (double)lsi_bf16_to_f32(((const uint16_t *)p)[i]);
    case LS_I8:
        return ((const int8_t *)p)[i];
    case LS_I16:
        return ((const int16_t *)p)[i];
    case LS_I32:
        return ((const int32_t *)p)[i];
    case LS_I64:
        return (double)((const int64_t *)p)[i];
    case LS_U8:
    case LS_BOOL:
        return ((const uint8_t *)p)[i];
    case LS_U16:
        return ((const uint16_t *)p)[i];
    case LS_U32:
        return ((const uint32_t *)p)[i];
    case LS_U64:
        return (double)((const uint64_t *)p)[i];
    case LS_STRING:
        break;
    }
    return (double)NAN;
}

/* Adds elements T; integers wrap around, so they are added as unsigned numbers. */
/* clang-format off */
#define DEFINE_ADD(name, T, U, SUM)                                                      \
    static void name(void *to, const void *from, int64_t n)                              \
    {                                                                                    \
        T *a = to;                                                                       \
        const T *b = from;                                                               \
        for (int64_t i = 0; i < n; i++) { a[i] = (T)SUM((U)a[i], (U)b[i]); }             \
    }
#define PLUS(a, b) ((a) + (b))
#define OR(a, b) ((a) | (b)) /* true if any of them is */
#define F16_PLUS(a, b) lsi_f32_to_f16(lsi_f16_to_f32(a) + lsi_f16_to_f32(b))
#define BF16_PLUS(a, b) lsi_f32_to_bf16(lsi_bf16_to_f32(a) + lsi_bf16_to_f32(b))
DEFINE_ADD(add_f32, float, float, PLUS)
DEFINE_ADD(add_f64, double, double, PLUS)
DEFINE_ADD(add_f16, uint16_t, uint16_t, F16_PLUS)
DEFINE_ADD(add_bf16, uint16_t, uint16_t, BF16_PLUS)
DEFINE_ADD(add_8, uint8_t, unsigned, PLUS)
DEFINE_ADD(add_16, uint16_t, unsigned, PLUS)
DEFINE_ADD(add_32, uint32_t, uint32_t, PLUS)
DEFINE_ADD(add_64, uint64_t, uint64_t, PLUS)
DEFINE_ADD(add_bool, uint8_t, unsigned, OR)
/* clang-format on */

void lsi_slices_add(const ls_tensor *t, void *to)
{
    static void (*const adds[])(void *to, const void *from, int64_t n) = {
        [LS_F32] = add_f32,   [LS_F64] = add_f64, [LS_F16] = add_f16,
        [LS_BF16] = add_bf16, [LS_I8] = add_8,    [LS_U8] = add_8,
        [LS_I16] = add_16,    [LS_U16] = add_16,  [LS_I32] = add_32,
        [LS_U32] = add_32,    [LS_I64] = add_64,  [LS_U64] = add_64,
        [LS_BOOL] = add_bool, // strings have no slices
    };
    const int64_t rows = t->indices->count;
    const int64_t width = rows > 0 ? t->values->count / rows : 0;
    const size_t bytes = (size_t)width * ls_dtype_size((ls_dtype)t->dtype);

    LSI_ASSERT(t->dtype < LSI_COUNT_OF(adds) && adds[t->dtype] != NULL);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = lsi_index_at(t->indices, r);

        adds[t->dtype]((char *)to + (size_t)at * bytes,
                       (const char *)t->values->data + (size_t)r * bytes, width);
    }
}

ls_status ls_tensor_read(const ls_tensor *t, void *to, size_t bytes, ls_error *err)
{
    if (t == NULL || (to == NULL && bytes > 0)) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "read: %s is NULL",
                        t == NULL ? "the tensor" : "the destination");
    }
    if (bytes != ls_tensor_bytes(t)) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "read: the tensor has %zu bytes, room was given for %zu",
                        ls_tensor_bytes(t), bytes);
    }
    if (bytes == 0) {
        return LS_OK;
    }
    if (t->values != NULL) {
        memset(to, 0, bytes);
        lsi_slices_add(t, to);
    } else {
        lsi_device_copy(t->device, to, t->data, bytes);
    }
    return LS_OK;
}
