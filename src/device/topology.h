/* Cores, caches and NUMA nodes of the machine. Every call takes milliseconds. */
#ifndef LSI_TOPOLOGY_H
#define LSI_TOPOLOGY_H
#include "base/base.h"

struct lsi_topology {
    int cores;            /* that this process may use */
    int threads_per_core; /* of the first one */
    int numa_nodes;
    size_t l1_bytes, l2_bytes, l3_bytes; /* data caches a core sees; 0: unknown */
    char model[96];                      /* of the CPU; "" if unknown */
};

ls_status lsi_topology_describe(struct lsi_topology *out, ls_error *err);

/*
 * The processors this process may use, neighbours (same core, cache, node) side by side:
 * writes at most `room` numbers as lsi_affinity_set() takes them to `*count`.
 */
ls_status lsi_topology_order(int *processors, int room, int *count, ls_error *err);
#endif
