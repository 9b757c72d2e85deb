/* The role of a task in a cluster that trains in sync: chief, worker or evaluator. */
#include "base/base.h"
#include "lockstep/cluster.h"

#include <stdio.h>
#include <string.h>

static const char *const known_jobs[] = {"chief", "worker", "ps", "evaluator"};

static bool is_known(const char *name)
{
    for (size_t i = 0; i < LSI_COUNT_OF(known_jobs); i++) {
        if (strcmp(name, known_jobs[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* The number of tasks of a job; 0: there is no such job. */
static int tasks_of(const ls_job *jobs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (same_text(jobs[i].name, name)) {
            return jobs[i].tasks;
        }
    }
    return 0;
}

static ls_status check_jobs(const ls_job *jobs, size_t n, ls_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = jobs[i].name;

        if (name == NULL || !is_known(name)) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "cluster: job %zu is \"%.64s\"; jobs are chief, worker, "
                                 "ps and evaluator",
                                 i, name == NULL ? "(NULL)" : name);
        }
        if (jobs[i].tasks < 0 || (i > 0 && tasks_of(jobs, i, name) > 0)) {
            return lsi_fail_kind(
                err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "cluster: job %s %s", name,
                jobs[i].tasks < 0 ? "has a negative number of tasks" : "is listed twice");
        }
        if (jobs[i].tasks > 1 &&
            (same_text(name, "chief") || same_text(name, "evaluator"))) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "cluster: job %s has %d tasks; it has at most one", name,
                                 jobs[i].tasks);
        }
    }
    return LS_OK;
}

/* Fails unless the task exists and trains or evaluates. */
static ls_status check_task(const ls_job *jobs, size_t n, const char *type, int index,
                            ls_error *err)
{
    if (type == NULL || index < 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "cluster: the task's %s is missing; in a cluster both its "
                             "type and its index must be given",
                             type == NULL ? "type" : "index");
    }
    const bool evaluator = same_text(type, "evaluator");
    const int tasks = is_known(type) ? tasks_of(jobs, n, type) : 0;
    if (tasks == 0 && !evaluator) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "cluster: there is no job \"%.64s\" in the cluster", type);
    }
    if (index >= tasks && tasks > 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "cluster: there is no task %d of job %s, which has %d",
                             index, type, tasks);
    }
    if (same_text(type, "ps")) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "cluster: a ps task holds variables and is not one of the "
                             "tasks that train together");
    }
    return LS_OK;
}

ls_status ls_cluster_role_of(const ls_job *jobs, size_t n, const char *type, int index,
                             ls_cluster_role *out, ls_error *err)
{
    ls_cluster_role role = LS_CLUSTER_ROLE_INIT;

    if (out == NULL || out->struct_size < sizeof out->struct_size ||
        (jobs == NULL && n > 0)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "cluster: %s",
                             jobs == NULL && n > 0 ? "the jobs are NULL"
                                                   : "start the role from "
                                                     "LS_CLUSTER_ROLE_INIT");
    }
    ls_status st = check_jobs(jobs, n, err);
    int total = 0;
    for (size_t i = 0; st == LS_OK && i < n; i++) {
        total += jobs[i].tasks;
    }
    if (st == LS_OK && total > 0) {
        st = check_task(jobs, n, type, index, err);
    }
    if (st != LS_OK) {
        return st;
    }
    const int chiefs = tasks_of(jobs, n, "chief");
    const int workers = tasks_of(jobs, n, "worker");
    if (total == 0) { // no cluster: this process is alone
        role.workers = 1;
        role.is_chief = true;
    } else if (same_text(type, "evaluator")) {
        role.workers = LSI_MAX(tasks_of(jobs, n, "evaluator"), 1);
        role.id_in_cluster = index;
        role.is_chief = true;
    } else {
        const bool chief = same_text(type, "chief");

        role.workers = chiefs + workers;
        role.id_in_cluster = chief ? 0 : index + chiefs;
        role.is_chief = role.id_in_cluster == 0;
        (void)snprintf(role.leader, sizeof role.leader, "/job:%s/replica:0/task:0",
                       chiefs > 0 ? "chief" : "worker");
    }
    role.struct_size = out->struct_size;
    memcpy(out, &role, LSI_MIN(role.struct_size, sizeof role));
    return LS_OK;
}
