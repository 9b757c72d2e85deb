/*
 * lockstep/cluster.h - who takes part: jobs, tasks and the role of one of them.
 * Threads: any.
 */
#ifndef LS_CLUSTER_H
#define LS_CLUSTER_H

#include "lockstep/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A job of a cluster: its name ("chief", "worker", "ps", "evaluator") and its tasks. */
typedef struct ls_job {
    const char *name;
    int tasks;
} ls_job;

/* What a task is in a cluster that trains synchronously. */
typedef struct ls_cluster_role {
    size_t struct_size;
    int workers;       /* that train together: chief and workers, or the evaluators */
    int id_in_cluster; /* 0 .. workers-1 */
    bool is_chief;
    char leader[64]; /* "/job:worker/replica:0/task:0"; "": none */
} ls_cluster_role;

/* clang-format off */
#define LS_CLUSTER_ROLE_INIT {sizeof(ls_cluster_role), 0, 0, false, ""}
/* clang-format on */

/*
 * The role of task `index` (negative: not given) of job `type` (NULL: not given).
 * LS_INVALID_ARGUMENT (kind value): a job that is none of the four, two chiefs, no such
 * task, or a part of the question is missing.
 */
LS_API LS_MUST_USE ls_status ls_cluster_role_of(const ls_job *jobs, size_t n,
                                                const char *type, int index,
                                                ls_cluster_role *out, ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_CLUSTER_H */
