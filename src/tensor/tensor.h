/* The struct of a tensor. Elements are dense and row-major; views share a buffer. */
#ifndef LSI_TENSOR_H
#define LSI_TENSOR_H
#include "base/base.h"
#include "device/device.h"
#include "lockstep/tensor.h"

/* Refcounted memory that tensors, views and variables share. */
typedef struct lsi_buffer {
    atomic_int refs;
    ls_device *device;
    void *data;
    size_t bytes;
    void (*done)(void *user); /* wrapped memory: called at the end; NULL: none */
    void *user;
    bool pooled;
} lsi_buffer;

struct ls_tensor {
    atomic_int refs;
    uint8_t dtype;
    uint8_t ndim;
    uint16_t tapes; /* which tapes of the context recorded it; a bit each (src/grad) */
    uint32_t
        node; /* the record that made it, with `output`: valid while `tapes` is set */
    uint8_t output;
    bool listed;   /* a context holds one of the references */
    bool recycled; /* the struct is reused by its context */
    uint8_t mark;  /* src/grad, while a gradient is computed; else 0 */
    int64_t count;
    void *data;
    ls_device *device;
    lsi_buffer *buffer; /* NULL: `small` holds the elements */
    ls_tensor *values;  /* not NULL: sparse, these rows ... */
    ls_tensor *indices; /* ... belong to these indices; data is NULL */
    ls_tensor *next;    /* the context's list */
    const void *owner;  /* the context whose step made it; NULL: none, or it has ended */
    ls_tensor *origin;  /* retained: what this is an alias of; NULL: none */
    ls_tensor *alias;   /* the context's list of aliases */
    int64_t dims[LS_MAX_DIMS];
    _Alignas(
        16) unsigned char small[LSI_INLINE_BYTES]; /* as malloc aligns, which is fast */
};

/*
 * The device of a tensor may be NULL: then its memory is the process's and keeps no
 * runtime alive. Only descriptions hold such tensors (the sources of a dataset, before it
 * is opened in a runtime); users are given lsi_tensor_placed() of them.
 */

/* Prepares a raw struct; false: out of memory or overflow, and nothing is held. */
bool lsi_tensor_init(ls_tensor *t, ls_device *dev, ls_dtype dtype, const ls_shape *shape);

/* Releases what a tensor holds, not the struct itself. */
void lsi_tensor_clear(ls_tensor *t);

/* A tensor with room for its elements, uninitialised. NULL: out of memory or overflow. */
ls_tensor *lsi_tensor_new(ls_device *dev, ls_dtype dtype, const ls_shape *shape);

/* ls_tensor_create() and ls_tensor_wrap() with NULL for no device. */
ls_status lsi_tensor_create(ls_device *device, ls_dtype dtype, ls_shape shape,
                            const void *data, ls_tensor **out, ls_error *err);
ls_status lsi_tensor_wrap(ls_device *device, ls_dtype dtype, ls_shape shape,
                          const void *data, void (*done)(void *user), void *user,
                          ls_tensor **out, ls_error *err);

/*
 * `t` as a tensor of `device`, the caller's to release: itself if it is one or `device` is
 * NULL; else a view of the same memory, as all devices of a process read it; a copy where
 * the elements of the device have to be its own. A sparse tensor stays as it is. NULL:
 * out of memory.
 */
ls_tensor *lsi_tensor_placed(ls_tensor *t, ls_device *device);

/* True if that needs a copy. */
bool lsi_tensor_must_copy(const ls_tensor *t, const ls_device *device);

/* A tensor of another shape over `t`'s memory from byte `offset` on. NULL: memory. */
ls_tensor *lsi_tensor_view(ls_tensor *t, ls_dtype dtype, const ls_shape *shape,
                           size_t offset);

/* The same for a raw struct. */
void lsi_tensor_init_view(ls_tensor *v, const ls_tensor *t, ls_dtype dtype,
                          const ls_shape *shape, size_t offset);
void lsi_tensor_init_over(ls_tensor *t, lsi_buffer *buf, ls_dtype dtype,
                          const ls_shape *shape);

/* A tensor over `buf`, which gains a reference. */
ls_tensor *lsi_tensor_over(lsi_buffer *buf, ls_dtype dtype, const ls_shape *shape);

/* A sparse tensor of `shape`; retains both parts. The second is for a raw struct. */
ls_tensor *lsi_tensor_sparse(const ls_shape *shape, ls_tensor *values,
                             ls_tensor *indices);
void lsi_tensor_init_sparse(ls_tensor *t, const ls_shape *shape, ls_tensor *values,
                            ls_tensor *indices);

/* Makes a raw struct an alias of `t`, which it retains; and the tensor of an alias. */
void lsi_tensor_init_alias(ls_tensor *alias, ls_tensor *t);
static inline ls_tensor *lsi_tensor_origin(ls_tensor *t)
{
    return t->origin != NULL ? t->origin : t;
}

/* The elements as numpy's repr prints them: "array([1., 2.], dtype=float32)", "1.0". */
size_t lsi_tensor_array_text(const ls_tensor *t, char *buf, size_t size);

/* Adds the rows of a sparse tensor to the dense elements at `to`. */
void lsi_slices_add(const ls_tensor *t, void *to);

/* Element i of an int32 or int64 tensor. */
static inline int64_t lsi_index_at(const ls_tensor *indices, int64_t i)
{
    return indices->dtype == LS_I32 ? ((const int32_t *)indices->data)[i]
                                    : ((const int64_t *)indices->data)[i];
}

/* Element i of a tensor of numbers or bools, as a double; NaN for strings. */
double lsi_element(const ls_tensor *t, int64_t i);

/*
 * Where other processes find the elements; false: nowhere, they are memory of this process
 * (wrapped, or of a device without segments), or strings, or the tensor is sparse.
 */
bool lsi_tensor_locate(const ls_tensor *t, lsi_memory_location *out);

lsi_buffer *lsi_buffer_new(ls_device *dev, size_t bytes); /* dev NULL: of the process */
lsi_buffer *lsi_buffer_retain(lsi_buffer *buf);
void lsi_buffer_release(lsi_buffer *buf);

/* Bytes of `shape` elements of `dtype`, checked; false: not valid or too large. */
bool lsi_shape_bytes(const ls_shape *shape, ls_dtype dtype, int64_t *count,
                     size_t *bytes);

/* The axis as 0..ndim-1; false: outside. */
bool lsi_axis(int axis, int ndim, int *out);

bool lsi_dtype_is_float(ls_dtype d);
bool lsi_dtype_is_int(ls_dtype d);    /* signed or not */
bool lsi_dtype_is_number(ls_dtype d); /* float or int; not bool, not string */

/* Half precision to float and back, round to nearest even. */
float lsi_f16_to_f32(uint16_t h);
uint16_t lsi_f32_to_f16(float f);
float lsi_bf16_to_f32(uint16_t h);
uint16_t lsi_f32_to_bf16(float f);
#endif
