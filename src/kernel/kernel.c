/* Which kernel runs: the chain oneDNN, simd, the row's own. */
#include "kernel/kernel.h"
#include "kernel/update_loops.h"

#ifdef LSI_HAVE_DNNL_LOADER
#include "kernel/dnnl/dnnl.h"
#endif

/* Starting a team costs about a microsecond, waking a sleeping member some more. */
enum { WORTH_SHARING_NS = 20000, WORTH_A_MEMBER_NS = 10000 };

/* The simd table of `isa`; NULL: none, the rows' own kernels do everything. */
static const lsi_kernel *simd_table(lsi_isa isa)
{
    switch (isa) {
    case LSI_ISA_BASELINE:
        return lsi_simd_baseline;
#if defined(__x86_64__)
    case LSI_ISA_AVX2:
        return lsi_simd_avx2;
    case LSI_ISA_AVX512:
        return lsi_simd_avx512;
#endif
    default:
        return NULL;
    }
}

/* oneDNN's kernel for the call; NULL: none, or this build or device does not use it. */
static lsi_kernel dnnl_kernel(const ls_op_call *k)
{
#ifdef LSI_HAVE_DNNL_LOADER
    if (k->device->dnnl) {
        return lsi_dnnl_kernel(k->device, (lsi_op_id)k->op->builtin);
    }
#else
    (void)k;
#endif
    return NULL;
}

LSI_HOT ls_status lsi_kernel_run(ls_op_call *k)
{
    const int id = k->op->builtin;

    if (id > LSI_OP_NONE && id < LSI_OP_COUNT && k->device->isa != LSI_ISA_REF) {
        const lsi_kernel *table = simd_table(k->device->isa);
        const lsi_kernel chain[] = {dnnl_kernel(k), table != NULL ? table[id] : NULL};

        for (size_t i = 0; i < LSI_COUNT_OF(chain); i++) {
            const ls_status st = chain[i] != NULL ? chain[i](k) : LS_UNIMPLEMENTED;

            if (st != LS_UNIMPLEMENTED) {
                return st;
            }
        }
    }
    return k->op->kernel(k);
}

int lsi_parts(const ls_op_call *k, int64_t work)
{
    int size = 1;

    if (work < WORTH_SHARING_NS || k->team == NULL) {
        return 1;
    }
    size = lsi_team_size(k->team);
    return (int)LSI_MIN((int64_t)size, work / WORTH_A_MEMBER_NS);
}

const lsi_update_table *lsi_update_for(const ls_device *dev)
{
    switch (dev->isa) {
    case LSI_ISA_BASELINE:
        return &lsi_update_baseline;
#if defined(__x86_64__)
    case LSI_ISA_AVX2:
        return &lsi_update_avx2;
    case LSI_ISA_AVX512:
        return &lsi_update_avx512;
#endif
    default:
        return &lsi_update_ref;
    }
}
