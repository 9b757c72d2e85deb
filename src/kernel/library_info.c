/* lockstep/info.h: build, compiler, machine, modules and operations. */
#include "device/topology.h"
#include "kernel/kernel.h"
#include "lockstep/info.h"

#ifdef LSI_HAVE_DNNL_LOADER
#include "kernel/dnnl/dnnl.h"
#endif

#include <string.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *ls_info_build(void)
{
    return LS_BUILD_TYPE[0] != '\0' ? LS_BUILD_TYPE : "unoptimised";
}

const char *ls_info_compiler(void)
{
#if defined(__clang__)
    return "clang " TEXT(__clang_major__) "." TEXT(__clang_minor__) "." TEXT(
        __clang_patchlevel__);
#elif defined(__GNUC__)
    return "gcc " TEXT(__GNUC__) "." TEXT(__GNUC_MINOR__) "." TEXT(__GNUC_PATCHLEVEL__);
#else
    return "unknown";
#endif
}

ls_status ls_info_machine(ls_machine *out, ls_error *err)
{
    struct lsi_topology t;
    ls_machine full = LS_MACHINE_INIT;
    ls_status st;

    if (out == NULL || out->struct_size < sizeof full.struct_size) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "no struct to fill: start from LS_MACHINE_INIT");
    }
    st = lsi_topology_describe(&t, err);
    if (st != LS_OK) {
        return st;
    }
    full.struct_size = out->struct_size;
    full.cores = t.cores;
    full.threads_per_core = t.threads_per_core;
    full.numa_nodes = t.numa_nodes;
    full.l1_bytes = t.l1_bytes;
    full.l2_bytes = t.l2_bytes;
    full.l3_bytes = t.l3_bytes;
    memcpy(full.model, t.model, sizeof full.model);
    full.model[sizeof full.model - 1] = '\0';
    memcpy(out, &full, LSI_MIN(out->struct_size, sizeof full));
    return LS_OK;
}

const char *ls_info_cpu_isa(void)
{
    return lsi_isa_name(lsi_isa_best());
}

const char *ls_info_device_isa(const ls_device *device)
{
    return device == NULL ? "?" : lsi_isa_name(device->isa);
}

/* Whether the module could be opened: it has a kernel for matmul. */
static bool dnnl_found(const ls_device *device)
{
#ifdef LSI_HAVE_DNNL_LOADER
    return device != NULL && lsi_dnnl_kernel(device, LSI_OP_matmul) != NULL;
#else
    (void)device;
    return false;
#endif
}

size_t ls_info_modules(ls_device *device, ls_module *out, size_t room)
{
    if (device == NULL) {
        device = ls_runtime_device(NULL, 0);
    }
    if (room > 0 && out != NULL) {
        out[0].name = "oneDNN";
        out[0].purpose = "faster convolutions and products on some CPUs";
        out[0].remedy = "install libdnnl-dev (Debian) or oneDNN 2.6 or newer, then build "
                        "and install Lockstep again";
        out[0].found = dnnl_found(device);
        out[0].used = out[0].found && device->dnnl && device->isa != LSI_ISA_REF;
    }
    return 1;
}

const char *ls_info_operation(size_t i)
{
    static const char *const names[] = {
#define X(name) #name,
#include "kernel/ops.def"
#undef X
    };

    return i < LSI_COUNT_OF(names) ? names[i] : NULL;
}
