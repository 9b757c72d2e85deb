/*
 * Names of the algorithms and the choice among them: the cheapest by a small model of
 * time, among those that add in the tree's order. An option or LS_COMM_ALGORITHM
 * overrides.
 */
#include "collective/call.h"
#include "device/topology.h"
#include "os/thread.h"

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
static int host_nodes = 1;
static lsi_once nodes_once = LSI_ONCE_INIT;

static void find_nodes(void)
{
    struct lsi_topology topology;

    if (lsi_topology_describe(&topology, NULL) == LS_OK && topology.numa_nodes > 1) {
        host_nodes = topology.numa_nodes;
    }
}

lsi_comm_agreed lsi_comm_agreed_here(int ranks)
{
    lsi_comm_agreed agreed = {.hosts = 1, .ranks_per_host = ranks};

    if (ranks > 1) { // the topology takes milliseconds; one rank has nothing to choose
        lsi_once_run(&nodes_once, find_nodes);
    }
    agreed.nodes = ranks > 1 ? LSI_MIN(host_nodes, ranks) : 1;
    agreed.cores = LSI_MAX(LSI_MIN(lsi_affinity_get(NULL, 0), lsi_cpu_quota()), 1);
    return agreed;
}

lsi_comm_agreed lsi_comm_agreed_part(const lsi_comm_agreed *whole, int ranks)
{
    lsi_comm_agreed part = *whole;

    part.hosts = 1;
    part.ranks_per_host = ranks;
    part.nodes = LSI_MIN(whole->nodes, ranks);
    return part;
}

/*
 * The model of time, in nanoseconds: what the ranks read and write together, divided by
 * the cores that move bytes at the same time, and the waits between phases. The choice
 * depends on the ratios of these numbers, not on their values on one machine.
 */
#define PHASE_NS 150.0   /* a phase ends when every rank has seen the others finish */
#define SWITCH_NS 2000.0 /* a core goes from a rank that waits to the next one */
#define BYTE_NS 0.03     /* a core reads or writes a byte of its node's memory */
#define FAR_BYTE_NS 0.10 /* the same for another node's memory */
#define NODE_STREAMS 8   /* cores that use up the bandwidth of a node's memory */

/* What the terms of the model depend on. */
struct load {
    double bytes;   /* of each rank's buffer */
    double ranks;   /* each gives a buffer */
    double targets; /* ranks that get an element of the result: all, or one */
    double nodes;
    double far; /* the share of all memory that is on another node */
    const lsi_comm_agreed *agreed;
};

/*
 * The waits of `phases` phases. With more ranks than cores a phase ends only after every
 * core has given each of its ranks a turn.
 */
static double waits_ns(const struct load *l, int phases)
{
    const int turns = ((int)l->ranks + l->agreed->cores - 1) / l->agreed->cores;

    return phases * (PHASE_NS + (turns - 1) * SWITCH_NS);
}

/*
 * Moving `near` and `far` bytes, of all ranks together, in `tasks` tasks. They run at the
 * same time on as many cores as there are ranks, cores and tasks, up to the number whose
 * traffic the memory of all nodes can serve: the traffic grows with the ranks, the
 * bandwidth does not.
 */
static double moves_ns(const struct load *l, double near, double far, double tasks)
{
    const double cores = LSI_MIN(l->ranks, (double)l->agreed->cores);
    const double served = LSI_MIN(cores, l->nodes * NODE_STREAMS);

    return (near * BYTE_NS + far * FAR_BYTE_NS) / LSI_MIN(served, tasks);
}

/*
 * Every element is read from all ranks and written to its targets, in one phase, by any
 * rank: the share of far bytes is that of far memory.
 */
static double direct_ns(const struct load *l)
{
    const double traffic = (l->ranks + l->targets) * l->bytes;

    return waits_ns(l, 1) +
           moves_ns(l, traffic * (1 - l->far), traffic * l->far, l->ranks);
}

/*
 * ranks - 1 pairs are added (two reads, one write); then, if all get the result, as many
 * copies (one read, one write). Ranks are numbered along the nodes: nodes - 1 pairs and
 * copies have one far read each. A level has as many tasks as it has pairs, but large
 * buffers are cut: `tasks` is at least the mean number of pairs of a level.
 */
static double tree_ns(const struct load *l)
{
    const int levels = lsi_tree_levels((int)l->ranks);
    const double down = l->targets > 1 ? 1 : 0;
    const double traffic = (l->ranks - 1) * (3 + 2 * down) * l->bytes;
    const double far = (l->nodes - 1) * (1 + down) * l->bytes;
    const double tasks =
        LSI_MAX((l->ranks - 1) / levels, 1) * LSI_MAX(l->bytes / LSI_TASK_BYTES, 1);

    return waits_ns(l, levels * (l->targets > 1 ? 2 : 1)) +
           moves_ns(l, traffic - far, far, tasks);
}

/*
 * First every node reads its ranks' buffers and writes one sum; then the sums are read
 * and written as in direct, one per node; then, if all get the result, the other ranks of
 * each node copy it from its first (one read, one write). Only the second phase has far
 * bytes.
 */
static double hierarchical_ns(const struct load *l)
{
    const double down = l->targets > 1 ? 2 * (l->ranks - l->nodes) : 0;
    const double inside = (l->ranks + l->nodes + down) * l->bytes;
    const double between = (l->nodes + LSI_MIN(l->targets, l->nodes)) * l->bytes;

    return waits_ns(l, l->targets > 1 ? 3 : 2) +
           moves_ns(l, inside + between * (1 - l->far), between * l->far, l->ranks);
}

/*
 * A broadcast copies the source's buffer ranks - 1 times (one read, one write). Directly
 * all ranks read the memory of one node, which serves NODE_STREAMS cores.
 */
static double direct_broadcast_ns(const struct load *l)
{
    const double copies = (l->ranks - 1) * l->bytes;
    const double tasks = (l->ranks - 1) * LSI_MAX(l->bytes / LSI_TASK_BYTES, 1);

    return waits_ns(l, 1) + moves_ns(l, copies * (2 - l->far), copies * l->far,
                                     LSI_MIN(tasks, (double)NODE_STREAMS));
}

/*
 * Along the tree every rank reads its parent's copy, which is as far as the source: the
 * reads are spread over the memory of all nodes, at the cost of a phase per level.
 */
static double tree_broadcast_ns(const struct load *l)
{
    const int levels = lsi_tree_depth((int)l->ranks, 0);
    const double copies = (l->ranks - 1) * l->bytes;
    const double tasks = (l->ranks - 1) / levels * LSI_MAX(l->bytes / LSI_TASK_BYTES, 1);

    return waits_ns(l, levels) +
           moves_ns(l, copies * (2 - l->far), copies * l->far, tasks);
}

lsi_algorithm lsi_algorithm_choose(lsi_call_kind kind, size_t bytes, int ranks,
                                   const lsi_comm_agreed *agreed)
{
    const double nodes = agreed->nodes;
    const struct load load = {.bytes = (double)bytes,
                              .ranks = ranks,
                              .targets = kind == LSI_CALL_ALL_REDUCE ? ranks : 1,
                              .nodes = nodes,
                              .far = 1 - 1 / nodes,
                              .agreed = agreed};
    double direct, tree, hierarchical;

    if (bytes <= LSI_INLINE_MOST) {
        return LSI_ALGORITHM_INLINE;
    }
    if (ranks < 2) {
        return LSI_ALGORITHM_DIRECT; // one rank: a copy
    }
    if (kind == LSI_CALL_BROADCAST) {
        return direct_broadcast_ns(&load) <= tree_broadcast_ns(&load)
                   ? LSI_ALGORITHM_DIRECT
                   : LSI_ALGORITHM_TREE;
    }
    if (kind != LSI_CALL_ALL_REDUCE && kind != LSI_CALL_REDUCE &&
        kind != LSI_CALL_REDUCE_SCATTER) {
        return LSI_ALGORITHM_DIRECT;
    }
    direct = direct_ns(&load);
    tree = tree_ns(&load);
    // Nodes with one rank each, or one node, have nothing to add first.
    hierarchical =
        nodes > 1 && ranks >= 2 * nodes ? hierarchical_ns(&load) : direct + tree;
    if (direct <= tree && direct <= hierarchical) {
        return LSI_ALGORITHM_DIRECT;
    }
    return tree < hierarchical ? LSI_ALGORITHM_TREE : LSI_ALGORITHM_HIERARCHICAL;
}

const char *ls_comm_choice(int ranks, size_t bytes, char *why, size_t size)
{
    const char *named = lsi_comm_algorithm_setting();
    const lsi_comm_agreed agreed = lsi_comm_agreed_here(LSI_MAX(ranks, 1));
    lsi_algorithm chosen;
    const char *reason = "";

    if (named != NULL) {
        if (why != NULL && size > 0) {
            (void)snprintf(why, size, "%s: set by LS_COMM_ALGORITHM", named);
        }
        return named;
    }
    chosen = lsi_algorithm_choose(LSI_CALL_ALL_REDUCE, bytes, LSI_MAX(ranks, 1), &agreed);
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
                       names[chosen], bytes, ranks, agreed.nodes,
                       agreed.nodes == 1 ? "" : "s", reason);
    }
    return names[chosen];
}

ls_status lsi_call_prepare(lsi_call *call, int ranks, const lsi_comm_agreed *agreed,
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
    call->inlined = lsi_inline_size(call, ranks);
    if (lsi_call_has_ids(call)) { // one way to merge partial sums, whatever is named
        call->subdivisions = 0;
        call->algorithm = call->inlined <= LSI_INLINE_MOST ? LSI_ALGORITHM_INLINE
                                                           : LSI_ALGORITHM_DIRECT;
        return LS_OK;
    }
    if (named != NULL && !moves) {
        call->algorithm = ranks > 1 ? algorithm : LSI_ALGORITHM_DIRECT;
        return LS_OK;
    }
    call->algorithm =
        call->inlined <= LSI_INLINE_MOST
            ? LSI_ALGORITHM_INLINE
            : lsi_algorithm_choose(call->kind, call->inlined, ranks, agreed);
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
