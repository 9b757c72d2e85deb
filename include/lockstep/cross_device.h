/*
 * lockstep/cross_device.h - cross-device operations: they combine values across the
 * devices of one process.
 *
 * A destination says where a result goes: a variable (its devices; it is never written),
 * a distributed value (its devices), a tensor (its device) or a string (a device's name).
 * With several devices the result is a Mirrored value, with one a plain tensor.
 * Arguments are borrowed; results are the caller's to release.
 *
 * Threads: any.
 */
#ifndef LS_CROSS_DEVICE_H
#define LS_CROSS_DEVICE_H

#include "lockstep/replica.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_cross_device ls_cross_device;

/*
 * ReductionToOneDevice: copies to `device` (NULL: the destination's first), adds in
 * replica order, copies out.
 */
LS_API LS_MUST_USE ls_status ls_reduction_to_one_device_create(ls_device *device,
                                                               ls_cross_device **out,
                                                               ls_error *err);

/* HierarchicalCopyAllReduce. Negative `num_packs`: LS_INVALID_ARGUMENT; 0: no packing. */
LS_API LS_MUST_USE ls_status ls_hierarchical_copy_create(int num_packs,
                                                         ls_cross_device **out,
                                                         ls_error *err);

/* NcclAllReduce: another implementation is used; ls_cross_device_text() says which. */
LS_API LS_MUST_USE ls_status ls_nccl_all_reduce_create(int num_packs,
                                                       ls_cross_device **out,
                                                       ls_error *err);
LS_API ls_cross_device *ls_cross_device_retain(ls_cross_device *x);
LS_API void ls_cross_device_release(ls_cross_device *x); /* NULL is allowed */

/* TensorFlow's name of the class; and a sentence on what it does in this library. */
LS_API const char *ls_cross_device_name(const ls_cross_device *x);
LS_API const char *ls_cross_device_text(const ls_cross_device *x);

/* LS_SUM or LS_MEAN of the components of `value`, placed as `destination` says. */
LS_API LS_MUST_USE ls_status ls_cross_device_reduce(ls_cross_device *x, ls_reduce op,
                                                    ls_value *value,
                                                    ls_value *destination,
                                                    const ls_communication_options *opts,
                                                    ls_value **out, ls_error *err);

/* The same for `n` values, packed together where possible: outs[i] is for values[i]. */
LS_API LS_MUST_USE ls_status ls_cross_device_batch_reduce(
    ls_cross_device *x, ls_reduce op, ls_value *const *values,
    ls_value *const *destinations, size_t n, const ls_communication_options *opts,
    ls_value **outs, ls_error *err);

/* A copy of `value`, placed as `destination` says. */
LS_API LS_MUST_USE ls_status ls_cross_device_broadcast(ls_cross_device *x,
                                                       ls_value *value,
                                                       ls_value *destination,
                                                       ls_value **out, ls_error *err);

/* The sizes of the `num_packs` packs that `total` elements are cut into. */
LS_API LS_MUST_USE ls_status ls_pack_sizes(size_t total, int num_packs, size_t *sizes,
                                           ls_error *err);

/*
 * Assigns values of these sizes to packs of about bytes_per_pack, the last value first:
 * group[i] is the pack of value i, and pack 0 is sent first. *packs: their number.
 */
LS_API LS_MUST_USE ls_status ls_group_by_size(const size_t *bytes, size_t n,
                                              int64_t bytes_per_pack, size_t *group,
                                              size_t *packs, ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_CROSS_DEVICE_H */
