/*
 * MultiWorkerMirroredStrategy: a copy of every variable on each device of every worker.
 * Replica k of worker w, with d devices each, has the id w d + k in the sync group.
 */
#include "strategy/multi_worker.h"
#include "strategy/device_list.h"
#include "strategy/mirrored.h"

static const lsi_strategy_ops chief = {
    .name = "MultiWorkerMirroredStrategy",
    .per_replica = true,
    .copies_variables = true,
    .create_variable = lsi_mirrored_create_variable,
    .traits = {.should_checkpoint = true,
               .should_save_summary = true,
               .between_graph = true,
               .should_init = true,
               .multi_worker = true},
};

/* Of the other workers: the chief alone saves and summarizes. */
static const lsi_strategy_ops other = {
    .name = "MultiWorkerMirroredStrategy",
    .per_replica = true,
    .copies_variables = true,
    .create_variable = lsi_mirrored_create_variable,
    .traits = {.between_graph = true, .should_init = true, .multi_worker = true},
};

/* Checks that all workers have as many devices; the outcome is the same on all. */
static ls_status compare_counts(ls_comm *workers, int n, ls_error *err)
{
    const int64_t mine = n;
    const int size = ls_comm_size(workers);
    int64_t *all = lsi_alloc((size_t)size, sizeof *all);
    long long total = 0;
    ls_status st;

    if (all == NULL) {
        ls_error why = LS_ERROR_INIT;

        (void)lsi_fail_memory(&why, "a strategy", (size_t)size * sizeof *all);
        lsi_comm_break(workers, &why);
        return lsi_fail_again(err, &why);
    }
    st =
        lsi_comm_share(workers, "multi_worker", &mine, 1, all, lsi_comm_take_site(), err);
    for (int w = 0; w < size && st == LS_OK; w++) {
        total += all[w];
    }
    for (int w = 1; w < size && st == LS_OK; w++) {
        if (all[w] != all[0]) {
            st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                               "multi_worker: worker 0 has %lld devices, worker %d has "
                               "%lld, %lld on %d workers; all workers need the same "
                               "number",
                               (long long)all[0], w, (long long)all[w], total, size);
        }
    }
    lsi_free(all);
    return st;
}

ls_status lsi_multi_worker_create(ls_comm *workers, const char *devices,
                                  const ls_strategy_options *opts, ls_strategy **out,
                                  ls_error *err)
{
    ls_device **list = NULL;
    int n = 0;
    ls_status st = lsi_strategy_check("multi_worker", opts, out, err);

    if (st == LS_OK && workers == NULL) {
        st = lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                      "multi_worker: there is no communicator (it is NULL)");
    }
    if (st == LS_OK) {
        st = lsi_devices_parse(opts != NULL ? opts->runtime : NULL, devices, 0, &list, &n,
                               err);
    }
    if (st == LS_OK) {
        st = compare_counts(workers, n, err);
    }
    if (st != LS_OK) {
        lsi_free(list);
        return st;
    }
    return lsi_strategy_create(ls_comm_rank(workers) == 0 ? &chief : &other, list, n,
                               ls_comm_size(workers) > 1 ? workers : NULL, opts, out,
                               err);
}
