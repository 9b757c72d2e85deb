/*
 * Names of the algorithms and the choice among them: the cheapest by a small model of
 * time, among those that add in the tree's order. An option or LS_COMM_ALGORITHM
 * overrides.
 */
#include "collective/call.h"
#include "device/topology.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

static const char *const names[] = {
    [LSI_ALGORITHM_INLINE] = "direct", [LSI_ALGORITHM_DIRECT] = "direct",
    [LSI_ALGORITHM_TREE] = "tree",     [LSI_ALGORITHM_HIERARCHICAL] = "hierarchical",
    [LSI_ALGORITHM_RING] = "ring",
};

const char *lsi_algorithm_name(lsi_algorithm algorithm)
{
    return names[algorithm];
}

bool lsi_algorithm_from_name(const char *name, lsi_algorithm *out)
{
    for (size_t i = LSI_ALGORITHM_DIRECT; i < LSI_COUNT_OF(names); i++) {
        if (strcasecmp(name, names[i]) == 0) {
            *out = (lsi_algorithm)i;
            return true;
        }
    }
    return false;
}

/* Read once: the machine does not change. */
static int nodes = 1;
static lsi_once nodes_once = LSI_ONCE_INIT;

static void find_nodes(void)
{
    struct lsi_topology topology;

    if (lsi_topology_describe(&topology, NULL) == LS_OK && topology.numa_nodes > 1) {
        nodes = topology.numa_nodes;
    }
}

int lsi_comm_nodes(void)
{
    lsi_once_run(&nodes_once, find_nodes);
    return nodes;
}

/*
 * Times in nanoseconds. A phase ends with a round trip of all ranks; a byte from another
 * NUMA node's memory costs more than one from the own. The choice depends on the ratios
 * of these numbers, not on their values on one machine.
 */
#define PHASE_NS 150.0
#define BYTE_NS 0.03
#define FAR_BYTE_NS 0.10

/* Every rank reads its slice of all buffers and writes it to all. */
static double direct_ns(size_t bytes, int ranks, int spread)
{
    const double far = spread > 1 ? 1.0 - 1.0 / spread : 0.0;

    return PHASE_NS + 2.0 * (double)bytes * ((1 - far) * BYTE_NS + far * FAR_BYTE_NS) *
                          ((double)ranks / ranks);
}

/* Half of the ranks idle at the first level, all but two at the last; and back. */
static double tree_ns(size_t bytes, int ranks, int spread)
{
    return lsi_tree_levels(ranks) * 2 *
           (PHASE_NS + (double)bytes * (spread > 1 ? FAR_BYTE_NS : BYTE_NS) * 1.5);
}

/* As direct inside a node; one buffer per node is sent between nodes. */
static double hierarchical_ns(size_t bytes, int ranks, int spread)
{
    const double far = spread > 1 ? 1.0 - 1.0 / spread : 0.0;
    const double crossing = (double)spread / ranks;

    return 3 * PHASE_NS + 3.0 * (double)bytes * BYTE_NS +
           2.0 * (double)bytes * far * FAR_BYTE_NS * crossing;
}

lsi_algorithm lsi_algorithm_choose(lsi_call_kind kind, size_t bytes, int ranks,
                                   int spread)
{
    double direct, tree, hierarchical;

    if (bytes <= LSI_INLINE_MOST) {
        return LSI_ALGORITHM_INLINE;
    }
    if (ranks < 2) {
        return LSI_ALGORITHM_DIRECT; // one rank: a copy
    }
    if (kind == LSI_CALL_BROADCAST) {
        // Many readers of one buffer slow each other down: pass it on instead.
        return ranks > 3 ? LSI_ALGORITHM_TREE : LSI_ALGORITHM_DIRECT;
    }
    if (kind != LSI_CALL_ALL_REDUCE && kind != LSI_CALL_REDUCE &&
        kind != LSI_CALL_REDUCE_SCATTER) {
        return LSI_ALGORITHM_DIRECT;
    }
    direct = direct_ns(bytes, ranks, spread);
    tree = tree_ns(bytes, ranks, spread);
    hierarchical =
        ranks > 2 && spread > 1 ? hierarchical_ns(bytes, ranks, spread) : direct + 1;
    if (direct <= tree && direct <= hierarchical) {
        return LSI_ALGORITHM_DIRECT;
    }
    return tree < hierarchical ? LSI_ALGORITHM_TREE : LSI_ALGORITHM_HIERARCHICAL;
}

const char *ls_comm_choice(int ranks, size_t bytes, char *why, size_t size)
{
    const char *named = lsi_comm_algorithm_setting();
    const int spread = lsi_comm_nodes();
    lsi_algorithm chosen;
    const char *reason = "";

    if (named != NULL) {
        if (why != NULL && size > 0) {
            (void)snprintf(why, size, "%s: set by LS_COMM_ALGORITHM", named);
        }
        return named;
    }
    chosen = lsi_algorithm_choose(LSI_CALL_ALL_REDUCE, bytes, LSI_MAX(ranks, 1), spread);
    switch (chosen) {
    case LSI_ALGORITHM_INLINE:
        reason = "small enough to be sent in the call itself; every rank adds all";
        break;
    case LSI_ALGORITHM_DIRECT:
        reason = "every rank sees all buffers and adds its slice of them, without a copy";
        break;
    case LSI_ALGORITHM_TREE:
        reason = "pairs are added level by level";
        break;
    case LSI_ALGORITHM_HIERARCHICAL:
        reason = "ranks of a NUMA node are added first, so that one buffer per node "
                 "is sent between nodes";
        break;
    case LSI_ALGORITHM_RING:
        break; // never chosen: it adds in another order
    }
    if (why != NULL && size > 0) {
        (void)snprintf(why, size, "%s: %zu bytes over %d ranks on %d NUMA node%s: %s",
                       names[chosen], bytes, ranks, spread, spread == 1 ? "" : "s",
                       reason);
    }
    return names[chosen];
}

ls_status lsi_call_prepare(const ls_comm *comm, lsi_call *call,
                           const ls_comm_options *opts, ls_error *err)
{
    const char *named =
        opts->algorithm != NULL ? opts->algorithm : lsi_comm_algorithm_setting();
    const bool moves = !lsi_call_reduces(call) && call->kind != LSI_CALL_BROADCAST;
    lsi_algorithm algorithm = LSI_ALGORITHM_DIRECT;

    if (named != NULL && !lsi_algorithm_from_name(named, &algorithm)) {
        return lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
            "%s: there is no algorithm \"%.40s\"; the algorithms are direct, tree, "
            "hierarchical and ring",
            lsi_call_name(call->kind), named);
    }
    call->subdivisions = opts->subdivisions;
    call->inlined = lsi_inline_size(call, comm->size);
    if (named != NULL && !moves) {
        call->algorithm = comm->size > 1 ? algorithm : LSI_ALGORITHM_DIRECT;
        return LS_OK;
    }
    call->algorithm = call->inlined <= LSI_INLINE_MOST
                          ? LSI_ALGORITHM_INLINE
                          : lsi_algorithm_choose(call->kind, call->inlined, comm->size,
                                                 lsi_comm_nodes());
    return LS_OK;
}

/* Settings, read once. */
static lsi_once settings_once = LSI_ONCE_INIT;
static const char *algorithm_setting = NULL;
static int64_t timeout_setting = (int64_t)10 * 60 * 1000;

static void read_settings(void)
{
    const char *algorithm = lsi_env("LS_COMM_ALGORITHM");
    const char *timeout = lsi_env("LS_COMM_TIMEOUT_MS");
    lsi_algorithm known;
    char *end = NULL;

    if (algorithm != NULL && lsi_algorithm_from_name(algorithm, &known)) {
        algorithm_setting = names[known];
    } else if (algorithm != NULL && strcasecmp(algorithm, "auto") != 0) {
        lsi_log(LS_LOG_WARNING,
                "LS_COMM_ALGORITHM=%.40s is ignored: it must be auto, direct, tree, "
                "hierarchical or ring",
                algorithm);
    }
    if (timeout != NULL) {
        long long ms;

        errno = 0;
        ms = strtoll(timeout, &end, 10);
        if (errno != 0 || *end != '\0' || ms == 0) {
            lsi_log(LS_LOG_WARNING,
                    "LS_COMM_TIMEOUT_MS=%.40s is ignored: it must be milliseconds, or -1 "
                    "for no timeout",
                    timeout);
        } else {
            timeout_setting = ms;
        }
    }
}

const char *lsi_comm_algorithm_setting(void)
{
    lsi_once_run(&settings_once, read_settings);
    return algorithm_setting;
}

int64_t lsi_comm_timeout_setting(void)
{
    lsi_once_run(&settings_once, read_settings);
    return timeout_setting;
}
