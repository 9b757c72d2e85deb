/* The driver of the tests of several workers: who is who, and that no failure hangs. */
#include "ls_workers.h"

struct seen {
    atomic_int ids; /* bit i: the replica with the id i in the sync group has run */
    atomic_int workers;
};

static ls_value *note_replica(ls_context *c, ls_value *args, void *user)
{
    struct seen *seen = user;

    (void)args;
    (void)atomic_fetch_or(&seen->ids, 1 << ls_replica_id(c));
    LST_CHECK(ls_replica_count(c) == 6);
    return NULL;
}

static ls_status note_worker(const lst_worker *w, void *arg, ls_error *err)
{
    struct seen *seen = arg;
    char name[80];

    (void)snprintf(name, sizeof name, "/job:worker/replica:0/task:%d/device:CPU:%d",
                   w->index, w->replicas - 1);
    LST_CHECK(strcmp(ls_device_name(ls_runtime_device(w->runtime, w->replicas - 1)),
                     name) == 0);
    (void)atomic_fetch_or(&seen->workers, 1 << w->index);
    LST_CHECK(ls_comm_rank(w->comm) == w->index);
    LST_CHECK(ls_comm_size(w->comm) == w->workers);
    LST_CHECK(ls_runtime_device_count(w->runtime) == w->replicas);
    LST_CHECK((int)ls_strategy_worker_devices(w->strategy) == w->replicas);
    LST_CHECK(ls_strategy_replicas(w->strategy) == w->workers * w->replicas);
    return ls_strategy_run(w->strategy, note_replica, NULL, seen, NULL, err);
}

LST_TEST(six_replicas_have_the_ids_of_the_sync_group_however_they_are_divided)
{
    for (int workers = 1; workers <= 6; workers++) {
        struct seen seen = {0};

        if (6 % workers == 0) {
            lst_workers_run(workers, 6 / workers, note_worker, &seen);
            LST_CHECK(atomic_load(&seen.ids) == 0x3f);
            LST_CHECK(atomic_load(&seen.workers) == (1 << workers) - 1);
        }
    }
}

/* Worker 1 fails without meeting the others, which wait for it in a barrier. */
static ls_status fail_on_one(const lst_worker *w, void *arg, ls_error *err)
{
    (void)arg;
    if (w->index == 1) {
        return lsi_fail(err, LS_NOT_FOUND, -1, "no such thing");
    }
    return ls_comm_barrier(w->comm, NULL, err);
}

LST_TEST(a_worker_that_fails_releases_the_others)
{
    const lst_workers how = {.workers = 3, .replicas = 2};
    ls_error errors[3], err = LS_ERROR_INIT;

    LST_FAILS(lst_workers_try(&how, fail_on_one, NULL, errors, &err), LS_NOT_FOUND, err,
              "no such thing");
    LST_FAILS(errors[0].code, LS_ABORTED, errors[0], "worker 1 has failed: no such");
    LST_FAILS(errors[1].code, LS_NOT_FOUND, errors[1], "no such thing");
    LST_FAILS(errors[2].code, LS_ABORTED, errors[2], "worker 1 has failed: no such");
}

/* Worker 1 returns without meeting the others. */
static ls_status leave_on_one(const lst_worker *w, void *arg, ls_error *err)
{
    (void)arg;
    return w->index == 1 ? LS_OK : ls_comm_barrier(w->comm, NULL, err);
}

LST_TEST(a_worker_that_ends_early_releases_the_others)
{
    const lst_workers how = {.workers = 2, .replicas = 1};
    ls_error errors[2], err = LS_ERROR_INIT;

    LST_CHECK(lst_workers_try(&how, leave_on_one, NULL, errors, &err) == LS_UNAVAILABLE);
    LST_CHECK(errors[0].code == LS_UNAVAILABLE);
    LST_CHECK(errors[1].code == LS_OK);
}

/* All workers fail; the one that does it first is the one reported. */
static ls_status fail_in_turn(const lst_worker *w, void *arg, ls_error *err)
{
    const ls_status st = w->index == 2 ? LS_OK : ls_comm_barrier(w->comm, NULL, err);

    (void)arg;
    return st != LS_OK ? st : lsi_fail(err, LS_DATA_LOSS, -1, "worker %d", w->index);
}

LST_TEST(the_first_failure_is_returned)
{
    const lst_workers how = {.workers = 4, .replicas = 1};
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(lst_workers_try(&how, fail_in_turn, NULL, NULL, &err), LS_DATA_LOSS, err,
              "worker 2");
}

LST_MAIN(LST_CASE(six_replicas_have_the_ids_of_the_sync_group_however_they_are_divided),
         LST_CASE(a_worker_that_fails_releases_the_others),
         LST_CASE(a_worker_that_ends_early_releases_the_others),
         LST_CASE(the_first_failure_is_returned))
