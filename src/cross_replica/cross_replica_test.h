/* Helpers for the tests of this folder: values of a few numbers on logical CPUs. */
#ifndef LST_COMBINE_TEST_H
#define LST_COMBINE_TEST_H
#include "cross_replica/cross_replica.h"

#include "op/op.h"

#include "ls_test.h"

enum { LST_DEVICES = 8 };

/* A runtime with eight devices, created at first use; it lives as long as the test. */
static inline ls_runtime *lst_runtime(void)
{
    static ls_runtime *rt;
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;

    if (rt == NULL) {
        opts.logical_cpus = LST_DEVICES;
        opts.threads = 1;
        LST_OK(ls_runtime_create(&opts, &rt, NULL));
    }
    return rt;
}

static inline ls_device *lst_device(size_t i)
{
    return ls_runtime_device(lst_runtime(), (int)i);
}

/* A tensor of `dtype` with these numbers; the caller releases it. */
static inline ls_tensor *lst_tensor(ls_device *device, ls_dtype dtype, ls_shape shape,
                                    const double *numbers)
{
    unsigned char bytes[64 * sizeof(double)];
    const size_t n = (size_t)ls_shape_count(&shape);
    ls_tensor *t = NULL;

    for (size_t i = 0; i < n; i++) {
        switch (dtype) {
        case LS_F32:
            ((float *)(void *)bytes)[i] = (float)numbers[i];
            break;
        case LS_F64:
            ((double *)(void *)bytes)[i] = numbers[i];
            break;
        case LS_I32:
            ((int32_t *)(void *)bytes)[i] = (int32_t)numbers[i];
            break;
        case LS_I64:
            ((int64_t *)(void *)bytes)[i] = (int64_t)numbers[i];
            break;
        case LS_F16:
            ((uint16_t *)(void *)bytes)[i] = lsi_f32_to_f16((float)numbers[i]);
            break;
        case LS_I16:
            ((int16_t *)(void *)bytes)[i] = (int16_t)numbers[i];
            break;
        default:
            ((int8_t *)bytes)[i] = (int8_t)numbers[i];
            break;
        }
    }
    LST_OK(ls_tensor_create(device, dtype, shape, bytes, &t, NULL));
    return t;
}

/* The tensor as a value; takes ownership of the tensor. */
static inline ls_value *lst_leaf(ls_tensor *t)
{
    ls_value *v = NULL;

    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return v;
}

static inline ls_value *lst_plain(ls_dtype dtype, ls_shape shape, const double *numbers)
{
    return lst_leaf(lst_tensor(lst_device(0), dtype, shape, numbers));
}

/* The leaves as PerReplica or Mirrored; takes ownership of them. */
static inline ls_value *lst_distributed(ls_value_kind kind, ls_value **leaves, size_t n)
{
    ls_value *v = NULL;

    LST_OK(lsi_value_over(kind, leaves, n, &v, NULL));
    for (size_t i = 0; i < n; i++) {
        ls_value_release(leaves[i]);
    }
    return v;
}

/* PerReplica of n tensors of one shape, the i-th on device i; `x` has all numbers. */
static inline ls_value *lst_per_replica(ls_dtype dtype, ls_shape shape, size_t n,
                                        const double *numbers)
{
    ls_value *leaves[LST_DEVICES];

    for (size_t i = 0; i < n; i++) {
        const size_t skip = i * (size_t)ls_shape_count(&shape);

        leaves[i] = lst_leaf(lst_tensor(lst_device(i), dtype, shape, numbers + skip));
    }
    return lst_distributed(LS_VALUE_PER_REPLICA, leaves, n);
}

static inline ls_value *lst_name(const char *name)
{
    ls_value *v = NULL;

    LST_OK(ls_value_string((ls_string){name, strlen(name)}, &v, NULL));
    return v;
}

/* True if `v` is a plain tensor of this dtype and shape with exactly these numbers. */
static inline bool lst_is(const ls_value *v, ls_dtype dtype, ls_shape shape,
                          const double *numbers)
{
    const ls_tensor *t = ls_value_as_tensor(v);

    if (t == NULL || t->dtype != dtype || t->data == NULL) {
        return false;
    }
    const ls_shape have = ls_tensor_shape(t);
    bool is = ls_shape_equal(&have, &shape);
    for (int64_t i = 0; is && i < t->count; i++) {
        const double want = dtype == LS_F32 ? (double)(float)numbers[i] : numbers[i];

        is = lsi_element(t, i) == want;
    }
    return is;
}

/* True if it is Mirrored on the first n devices, with these numbers on each. */
static inline bool lst_is_mirrored(const ls_value *v, size_t n, ls_dtype dtype,
                                   ls_shape shape, const double *numbers)
{
    bool is = ls_value_kind_of(v) == LS_VALUE_MIRRORED && ls_value_size(v) == n;

    for (size_t i = 0; is && i < n; i++) {
        const ls_value *leaf = ls_value_child(v, i);

        is = lst_is(leaf, dtype, shape, numbers) &&
             ls_tensor_device(ls_value_as_tensor(leaf)) == lst_device(i);
    }
    return is;
}

/* A sparse tensor of n rows of `width` numbers; the caller releases it. */
static inline ls_value *lst_sparse(ls_device *device, ls_shape shape, int64_t n,
                                   const double *rows, const double *indices)
{
    ls_tensor *values = lst_tensor(device, LS_F32, LS_SHAPE(n, shape.dims[1]), rows);
    ls_tensor *where = lst_tensor(device, LS_I32, LS_SHAPE(n), indices);
    ls_tensor *t = lsi_tensor_sparse(&shape, values, where);

    ls_tensor_release(values);
    ls_tensor_release(where);
    return lst_leaf(t);
}

/* ---- cross-device operations ---- */

typedef ls_status (*lst_maker)(ls_cross_device **out, ls_error *err);

static inline ls_status lst_make_one_device(ls_cross_device **out, ls_error *err)
{
    return ls_reduction_to_one_device_create(NULL, out, err);
}

static inline ls_status lst_make_hierarchical(ls_cross_device **out, ls_error *err)
{
    return ls_hierarchical_copy_create(1, out, err);
}

static inline ls_status lst_make_nccl(ls_cross_device **out, ls_error *err)
{
    return ls_nccl_all_reduce_create(1, out, err);
}

/* The three cross-device operations that a program can create. */
#define LST_MAKERS                                                                       \
    ((const lst_maker[]){lst_make_one_device, lst_make_hierarchical, lst_make_nccl})
enum { LST_MAKER_COUNT = 3 };

static inline ls_cross_device *lst_make_cross_device(lst_maker m)
{
    ls_cross_device *x = NULL;

    LST_OK(m(&x, NULL));
    return x;
}

/* Reduces; must succeed. */
static inline ls_value *lst_reduce_value(ls_cross_device *x, ls_reduce op,
                                         ls_value *value, ls_value *to)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    LST_OK(ls_cross_device_reduce(x, op, value, to, NULL, &out, &err));
    return out;
}

#define LST_NUMBERS(...) ((const double[]){__VA_ARGS__})
#endif
