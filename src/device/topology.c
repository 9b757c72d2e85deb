/* The topology of the machine, by hwloc: the only file that includes it. */
#include "device/topology.h"

#include <hwloc.h>
#include <stdio.h>

static ls_status load_topology(hwloc_topology_t *out, ls_error *err)
{
    if (hwloc_topology_init(out) != 0) {
        return lsi_fail_memory(err, "the description of the machine", 0);
    }
    if (hwloc_topology_load(*out) != 0) {
        hwloc_topology_destroy(*out);
        return lsi_fail(err, LS_UNAVAILABLE, -1,
                        "the description of the machine cannot be read by hwloc");
    }
    return LS_OK;
}

/* The data cache of this level above the first processor. */
static size_t cache_bytes(hwloc_topology_t topo, hwloc_obj_type_t type)
{
    const hwloc_obj_t obj = hwloc_get_obj_by_type(topo, type, 0);

    return obj != NULL && obj->attr != NULL ? (size_t)obj->attr->cache.size : 0;
}

ls_status lsi_topology_describe(struct lsi_topology *out, ls_error *err)
{
    hwloc_topology_t topo;
    const ls_status st = load_topology(&topo, err);

    if (st != LS_OK) {
        return st;
    }
    memset(out, 0, sizeof *out);
    const hwloc_obj_t package = hwloc_get_obj_by_type(topo, HWLOC_OBJ_PACKAGE, 0);
    const hwloc_obj_t core = hwloc_get_obj_by_type(topo, HWLOC_OBJ_CORE, 0);
    const char *model =
        package != NULL ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;

    out->cores = hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_CORE);
    if (out->cores < 1) { // a system that reports processors only
        out->cores = LSI_MAX(1, hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_PU));
    }
    out->threads_per_core =
        core != NULL ? LSI_MAX(1, hwloc_bitmap_weight(core->cpuset)) : 1;
    out->numa_nodes = LSI_MAX(1, hwloc_get_nbobjs_by_type(topo, HWLOC_OBJ_NUMANODE));
    out->l1_bytes = cache_bytes(topo, HWLOC_OBJ_L1CACHE);
    out->l2_bytes = cache_bytes(topo, HWLOC_OBJ_L2CACHE);
    out->l3_bytes = cache_bytes(topo, HWLOC_OBJ_L3CACHE);
    (void)snprintf(out->model, sizeof out->model, "%s", model != NULL ? model : "");
    hwloc_topology_destroy(topo);
    return LS_OK;
}

ls_status lsi_topology_order(int *processors, int room, int *count, ls_error *err)
{
    hwloc_bitmap_t mine = NULL;
    hwloc_topology_t topo;
    hwloc_obj_t pu = NULL;
    ls_status st = load_topology(&topo, err);

    if (st != LS_OK) {
        return st;
    }
    mine = hwloc_bitmap_alloc();
    if (mine == NULL) {
        st = lsi_fail_memory(err, "the set of this process's cores", 0);
        goto out;
    }
    if (hwloc_get_cpubind(topo, mine, HWLOC_CPUBIND_THREAD) != 0) {
        hwloc_bitmap_fill(mine); // not known on every system: take all that exist
    }
    *count = 0;
    while ((pu = hwloc_get_next_obj_by_type(topo, HWLOC_OBJ_PU, pu)) != NULL) {
        if (*count < room && hwloc_bitmap_isset(mine, pu->os_index) != 0) {
            processors[(*count)++] = (int)pu->os_index;
        }
    }
out:
    hwloc_bitmap_free(mine);
    hwloc_topology_destroy(topo);
    return st;
}
