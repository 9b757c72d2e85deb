/*
 * The interface between the library and its oneDNN module. The module uses no symbol of
 * the library: it gets the functions it needs, and returns its kernels.
 */
#ifndef LSI_DNNL_MODULE_H
#define LSI_DNNL_MODULE_H
#include "kernel/kernel.h"

enum { LSI_DNNL_MODULE_VERSION = 1 };

typedef struct lsi_dnnl_host {
    int version;
    int (*team_size)(const lsi_team *team);
    void (*team_run)(lsi_team *team, int parts, lsi_team_fn fn, void *arg);
    void (*team_share)(int64_t n, int64_t grain, int part, int parts, int64_t *begin,
                       int64_t *end);
} lsi_dnnl_host;

/*
 * The module's one symbol, "lsi_dnnl_module": kernels by operation number, NULL where it
 * has none; NULL altogether if the versions differ or oneDNN does not start.
 * `host` outlives the module.
 */
typedef const lsi_kernel *(*lsi_dnnl_module_fn)(const lsi_dnnl_host *host);
#endif
