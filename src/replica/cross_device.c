/* Handles of cross-device operations: the algorithm that combines values of devices. */
#include "replica/strategy.h"

static ls_status create_cross_device(lsi_cross_kind kind, int num_packs,
                                     ls_device *device, ls_cross_device **out,
                                     ls_error *err)
{
    if (num_packs < 0 || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "cross-device operations: num_packs is %d%s; 0 means that "
                             "nothing is packed",
                             num_packs, out == NULL ? " and out is NULL" : "");
    }
    ls_cross_device *x = lsi_alloc(1, sizeof *x);
    if (x == NULL) {
        return lsi_fail_memory(err, "cross-device operations", sizeof *x);
    }
    atomic_init(&x->refs, 1);
    x->kind = kind;
    x->num_packs = num_packs;
    x->device = device;
    x->runtime = device == NULL ? NULL : ls_runtime_retain(device->runtime);
    *out = x;
    return LS_OK;
}

ls_status ls_reduction_to_one_device_create(ls_device *device, ls_cross_device **out,
                                            ls_error *err)
{
    return create_cross_device(LSI_CROSS_ONE_DEVICE, 0, device, out, err);
}

ls_status ls_hierarchical_copy_create(int num_packs, ls_cross_device **out, ls_error *err)
{
    return create_cross_device(LSI_CROSS_HIERARCHICAL, num_packs, NULL, out, err);
}

ls_status ls_nccl_all_reduce_create(int num_packs, ls_cross_device **out, ls_error *err)
{
    return create_cross_device(LSI_CROSS_NCCL, num_packs, NULL, out, err);
}

ls_cross_device *ls_cross_device_retain(ls_cross_device *x)
{
    if (x != NULL) {
        (void)atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
    }
    return x;
}

void ls_cross_device_release(ls_cross_device *x)
{
    if (x == NULL || atomic_fetch_sub_explicit(&x->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    ls_runtime_release(x->runtime);
    lsi_free(x);
}

const char *ls_cross_device_name(const ls_cross_device *x)
{
    static const char *const names[] = {
        [LSI_CROSS_TREE] = "CollectiveAllReduce",
        [LSI_CROSS_ONE_DEVICE] = "ReductionToOneDevice",
        [LSI_CROSS_HIERARCHICAL] = "HierarchicalCopyAllReduce",
        [LSI_CROSS_NCCL] = "NcclAllReduce",
    };

    return x == NULL ? "?" : names[x->kind];
}

const char *ls_cross_device_text(const ls_cross_device *x)
{
    static const char *const texts[] = {
        [LSI_CROSS_TREE] = "adds in one binary tree over the replicas",
        [LSI_CROSS_ONE_DEVICE] =
            "copies everything to one device, adds in the order of replicas, copies out",
        [LSI_CROSS_HIERARCHICAL] =
            "adds the two halves of an even number of devices, then both; an odd number, "
            "and results that go elsewhere, are added on one device",
        [LSI_CROSS_NCCL] = "there is no NCCL here: adds in one binary tree over the "
                           "replicas, on the CPU, in num_packs packs per dtype",
    };

    return x == NULL ? "?" : texts[x->kind];
}
