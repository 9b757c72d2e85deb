/*
 * lockstep/tensor.h - a tensor: a dtype, a shape and elements in row-major order.
 *
 * Tensors that operations return belong to their context and live until its step ends;
 * ls_tensor_retain() keeps one longer, until ls_tensor_release(). Tensors that arrive
 * through an `out` parameter are the caller's to release. The elements of a tensor never
 * change; what changes is a variable (lockstep/variable.h).
 *
 * Some gradients are sparse: only a few rows of a table were used. Such a tensor has the
 * shape of the table but stores these rows alone (ls_tensor_slices()); operations
 * without sparse code get it as the equivalent dense tensor.
 *
 * Threads: any, for reading and for retain/release.
 */
#ifndef LS_TENSOR_H
#define LS_TENSOR_H

#include "lockstep/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_tensor ls_tensor;
typedef struct ls_device ls_device;
typedef struct ls_runtime ls_runtime;

/* constant, TensorFlow's name, TensorFlow's number, bytes of an element. */
#define LS_DTYPE_MAP(X)                                                                  \
    X(F32, "float32", 1, 4)                                                              \
    X(F64, "float64", 2, 8)                                                              \
    X(I32, "int32", 3, 4)                                                                \
    X(U8, "uint8", 4, 1)                                                                 \
    X(I16, "int16", 5, 2)                                                                \
    X(I8, "int8", 6, 1)                                                                  \
    X(STRING, "string", 7, 16)                                                           \
    X(I64, "int64", 9, 8)                                                                \
    X(BOOL, "bool", 10, 1)                                                               \
    X(BF16, "bfloat16", 14, 2)                                                           \
    X(U16, "uint16", 17, 2)                                                              \
    X(F16, "float16", 19, 2)                                                             \
    X(U32, "uint32", 22, 4)                                                              \
    X(U64, "uint64", 23, 8)

typedef enum ls_dtype {
#define LS_DTYPE_ENUM(name, text, number, size) LS_##name = number,
    LS_DTYPE_MAP(LS_DTYPE_ENUM)
#undef LS_DTYPE_ENUM
} ls_dtype;

/* An element of an LS_STRING tensor: bytes owned by the tensor; may contain NULs. */
typedef struct ls_string {
    const char *ptr;
    size_t len;
} ls_string;

/* "float32"; "?" for a number that is no dtype. */
LS_API const char *ls_dtype_name(ls_dtype dtype);

/* Bytes of an element; 0 for a number that is no dtype. */
LS_API size_t ls_dtype_size(ls_dtype dtype);

/* Finds a dtype by its name: "float32", "bfloat16". False: no such name. */
LS_API bool ls_dtype_from_name(const char *name, ls_dtype *out);

enum { LS_MAX_DIMS = 8 };

/* Sizes of up to LS_MAX_DIMS axes, outermost first; ndim 0 is a scalar. */
typedef struct ls_shape {
    int ndim;
    int64_t dims[LS_MAX_DIMS];
} ls_shape;

/* A shape of `ndim` sizes. More than LS_MAX_DIMS: a shape that every call rejects. */
LS_API ls_shape ls_shape_of(size_t ndim, const int64_t *dims);

/*
 * LS_SHAPE(2, 3) is a 2 x 3 matrix, LS_SCALAR a scalar. In a static initialiser:
 * static const ls_shape image = LS_SHAPE_INIT(28, 28).
 */
/* clang-format off */
#define LS_SHAPE_NTH(a, b, c, d, e, f, g, h, n, ...) n
#define LS_SHAPE_INIT(...) {LS_SHAPE_NTH(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0), {__VA_ARGS__}}
#ifdef __cplusplus
#define LS_SHAPE(...) (ls_shape LS_SHAPE_INIT(__VA_ARGS__))
#else
#define LS_SHAPE(...)                                                                    \
    ls_shape_of(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                \
                (const int64_t[]){__VA_ARGS__})
#endif
#define LS_SCALAR ls_shape_of(0, NULL)
/* clang-format on */

/* Number of elements; -1 if the shape is not valid or the product overflows. */
LS_API int64_t ls_shape_count(const ls_shape *shape);

LS_API bool ls_shape_equal(const ls_shape *a, const ls_shape *b);

/* Writes "(2, 3)", "(4,)" or "()" as TensorFlow does, cut to `size`; returns `buf`. */
LS_API char *ls_shape_text(const ls_shape *shape, char *buf, size_t size);

/*
 * Makes a tensor with a copy of `data` (row-major; NULL: zeros) in the memory of
 * `device` (NULL: the default runtime's CPU:0). For LS_STRING `data` is an array of
 * ls_string whose bytes are copied as well.
 */
LS_API LS_MUST_USE ls_status ls_tensor_create(ls_device *device, ls_dtype dtype,
                                              ls_shape shape, const void *data,
                                              ls_tensor **out, ls_error *err);

/*
 * Makes a tensor over the caller's memory, without a copy. `done(user)` is called once,
 * on the thread of the last release, when nothing refers to the memory any more. `done`
 * NULL: the memory outlives everything that refers to it. On failure `done` is not
 * called.
 */
LS_API LS_MUST_USE ls_status ls_tensor_wrap(ls_device *device, ls_dtype dtype,
                                            ls_shape shape, const void *data,
                                            void (*done)(void *user), void *user,
                                            ls_tensor **out, ls_error *err);

/* Adds a reference and returns `t`. NULL is allowed. Any thread. */
LS_API ls_tensor *ls_tensor_retain(ls_tensor *t);

/* Drops a reference. NULL is allowed. Any thread. */
LS_API void ls_tensor_release(ls_tensor *t);

LS_API ls_dtype ls_tensor_dtype(const ls_tensor *t);
LS_API int ls_tensor_ndim(const ls_tensor *t);
LS_API int64_t ls_tensor_dim(const ls_tensor *t, int axis); /* axis may be negative */
LS_API ls_shape ls_tensor_shape(const ls_tensor *t);
LS_API int64_t ls_tensor_count(const ls_tensor *t);
LS_API size_t ls_tensor_bytes(const ls_tensor *t);
LS_API ls_device *ls_tensor_device(const ls_tensor *t); /* borrowed */

/* The elements, borrowed; NULL if they are not in host memory or `t` is sparse. */
LS_API const void *ls_tensor_data(const ls_tensor *t);

/*
 * Copies the elements to `to`, from any device; a sparse tensor is made dense. `bytes`
 * must be ls_tensor_bytes(). Blocks until the copy is done.
 */
LS_API LS_MUST_USE ls_status ls_tensor_read(const ls_tensor *t, void *to, size_t bytes,
                                            ls_error *err);

/*
 * Makes a sparse tensor of `dense_shape`: values[i] is the row indices[i] (int32 or
 * int64, one axis). Both parts are retained. LS_INVALID_ARGUMENT: the shapes do not
 * match, or an index is out of range.
 */
LS_API LS_MUST_USE ls_status ls_tensor_create_slices(ls_tensor *values,
                                                     ls_tensor *indices,
                                                     ls_shape dense_shape,
                                                     ls_tensor **out, ls_error *err);

/*
 * True if `t` is sparse. `values` and `indices` (either may be NULL) are then set to the
 * stored parts, borrowed: values[i] belongs to row indices[i]; an index may occur more
 * than once, and its rows are added.
 */
LS_API bool ls_tensor_slices(const ls_tensor *t, const ls_tensor **values,
                             const ls_tensor **indices);

/*
 * Prints like TensorFlow: "tf.Tensor([1. 2.], shape=(2,), dtype=float32)". Writes at
 * most `size` bytes with the closing NUL and returns the length the whole text has.
 */
LS_API size_t ls_tensor_text(const ls_tensor *t, char *buf, size_t size);

/* The same as Python's repr(): "<tf.Tensor: shape=(), dtype=float32, numpy=1.0>". */
LS_API size_t ls_tensor_repr(const ls_tensor *t, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif /* LS_TENSOR_H */
