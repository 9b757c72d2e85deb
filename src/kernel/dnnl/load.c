/* Finds and opens the oneDNN module, once. */
// NOLINTNEXTLINE(bugprone-reserved-identifier): how dladdr() is asked for
#define _GNU_SOURCE
#include "kernel/dnnl/dnnl.h"
#include "kernel/dnnl/module.h"
#include "os/thread.h"

#include <dlfcn.h>
#include <stdio.h>

static const lsi_dnnl_host host = {LSI_DNNL_MODULE_VERSION, lsi_team_size, lsi_team_run,
                                   lsi_team_share};

static _Atomic(const lsi_kernel *) kernels; // set once, by load_module()
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const lsi_kernel *open_at(const char *folder)
{
    char path[1024];
    void *module;
    lsi_dnnl_module_fn start;
    void *symbol;

    (void)snprintf(path, sizeof path, "%s/lockstep_dnnl.so", folder);
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc and macOS keep one text a thread
        lsi_log(LS_LOG_DEBUG, "module: %s", dlerror());
        return NULL;
    }
    symbol = dlsym(module, "lsi_dnnl_module");
    memcpy(&start, &symbol, sizeof start); // ISO C has no cast for this
    if (start == NULL || start(&host) == NULL) {
        lsi_log(LS_LOG_WARNING, "module: %s is of another version of the library", path);
        (void)dlclose(module);
        return NULL;
    }
    lsi_log(LS_LOG_INFO, "module: %s", path);
    return start(&host);
}

/* LS_MODULE_PATH, then beside the library, then where it was to be installed. */
static void load_module(void)
{
    const char *const asked = lsi_env("LS_MODULE_PATH");
    const lsi_kernel *found = NULL;
    Dl_info self;

    if (asked != NULL) {
        found = open_at(asked);
    } else {
        if (dladdr((const void *)&host, &self) != 0 && self.dli_fname != NULL) {
            const char *const slash = strrchr(self.dli_fname, '/');
            char folder[1024];

            if (slash != NULL) {
                (void)snprintf(folder, sizeof folder, "%.*s/lockstep",
                               (int)(slash - self.dli_fname), self.dli_fname);
                found = open_at(folder);
            }
        }
        if (found == NULL) {
            found = open_at(LS_MODULE_PATH);
        }
    }
    atomic_store(&kernels, found);
}

/* What the module has: nothing else is worth loading it for. */
static bool is_offered(lsi_op_id id)
{
    return id == LSI_OP_matmul || id == LSI_OP_dense || id == LSI_OP_conv2d ||
           id == LSI_OP_conv2d_input_grad || id == LSI_OP_conv2d_filter_grad;
}

lsi_kernel lsi_dnnl_kernel(const ls_device *device, lsi_op_id id)
{
    const lsi_kernel *table;

    (void)device;
    if (!is_offered(id)) {
        return NULL;
    }
    (void)pthread_once(&once, load_module);
    table = atomic_load_explicit(&kernels, memory_order_acquire);
    return table != NULL ? table[id] : NULL;
}
