/*
 * lockstep/cluster.h - the tasks of a cluster and the role of one of them.
 *
 * Threads: any.
 */
#ifndef LS_CLUSTER_H
#define LS_CLUSTER_H

#include "lockstep/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A task group of a cluster, which TensorFlow calls a job. */
typedef struct ls_job {
    const char *name; /* "chief", "worker", "ps" or "evaluator" */
    int tasks;        /* how many tasks it has */
} ls_job;

/* The role of a task in a cluster that trains synchronously. */
typedef struct ls_cluster_role {
    size_t struct_size;
    int workers;       /* number that train together: chief and workers, or evaluators */
    int id_in_cluster; /* 0 .. workers-1 */
    bool is_chief;
    char leader[64]; /* "/job:worker/replica:0/task:0"; "": none */
} ls_cluster_role;

/* clang-format off */
#define LS_CLUSTER_ROLE_INIT {sizeof(ls_cluster_role), 0, 0, false, ""}
/* clang-format on */

/*
 * The role of task `index` (negative: not given) of task group `type` (NULL: not given)
 * in the cluster of the `n` task groups at `jobs`, which is borrowed. `out` starts from
 * LS_CLUSTER_ROLE_INIT. LS_INVALID_ARGUMENT (kind value): a group with none of the four
 * names, two chiefs, no such task, or `type` or `index` is needed and not given.
 */
LS_API LS_MUST_USE ls_status ls_cluster_role_of(const ls_job *jobs, size_t n,
                                                const char *type, int index,
                                                ls_cluster_role *out, ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_CLUSTER_H */
