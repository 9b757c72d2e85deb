/* Tests of auto-sharding: the pipeline that one of several workers gets. */
#include "input_test.h"

static ls_dataset *prefetched(void)
{
    return ls_dataset_prefetch(in_range(4), 1);
}

static ls_dataset *five(void)
{
    return in_range(5);
}

static ls_dataset *none(void)
{
    return in_range(0);
}

static ls_dataset *four(void)
{
    return in_range(4);
}

LST_TEST(d42_the_shard_goes_before_prefetches)
{
    ls_dataset *d = ls_dataset_auto_shard(prefetched(), 2, 0, LS_SHARD_AUTO);

    LST_CHECK(strcmp(ls_dataset_kind(d), "prefetch") == 0);
    LST_CHECK(d->ninputs == 1 && strcmp(ls_dataset_kind(d->inputs[0]), "shard") == 0);
    IN_PLAIN(d, "0 2 end");
}

LST_TEST(d43_a_shard_needs_an_element_for_every_worker)
{
    ls_dataset *d = in_range(1024), *odd;
    ls_error err = LS_ERROR_INIT;
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    int64_t n = 0;

    IN_SHARD(five, LS_SHARD_AUTO, 10, 0, "INVALID_ARGUMENT");
    IN_SHARD(none, LS_SHARD_AUTO, 10, 0, "end");
    odd = ls_dataset_auto_shard(d, 2, 0, LS_SHARD_AUTO);
    LST_OK(ls_dataset_iterate(odd, &it, &err));
    while (ls_iterator_next(it, &v, &err) == LS_OK) {
        const int64_t x = *(const int64_t *)ls_tensor_data(ls_value_as_tensor(v));

        LST_CHECK(x == 2 * n);
        n++;
        ls_value_release(v);
        v = NULL;
    }
    LST_CHECK(n == 512);
    ls_iterator_release(it);
    ls_dataset_release(odd);
}

LST_TEST(d45_off_lets_every_worker_read_everything)
{
    IN_SHARD(four, LS_SHARD_OFF, 2, 0, "0 1 2 3 end");
    IN_SHARD(four, LS_SHARD_OFF, 2, 1, "0 1 2 3 end");
    IN_SHARD(four, LS_SHARD_AUTO, 2, 0, "0 2 end");
    IN_SHARD(four, LS_SHARD_AUTO, 2, 1, "1 3 end");
}

static ls_dataset *much(void)
{
    return in_range(1024);
}

static ls_dataset *ten_by_four(void)
{
    return ls_dataset_batch(in_range(10), 4);
}

LST_TEST(d51_files_are_demanded_where_there_are_none)
{
    IN_SHARD(much, LS_SHARD_FILE, 10, 0, "NOT_FOUND");
    IN_SHARD(four, LS_SHARD_FILE, 1, 0, "0 1 2 3 end");
    IN_CHECK(ten_by_four, LS_SHARD_FILE, 1, 2,
             "[0 1],[2 3] | [4 5],[6 7] | [8 9],[] | end");
}

static ls_dataset *hinted(void)
{
    return ls_dataset_shard(in_range(100), LS_SHARD_HINT, 0);
}

static ls_dataset *not_hinted(void)
{
    return ls_dataset_shard(in_range(4), 1, 0);
}

static ls_dataset *d66(void)
{
    return ls_dataset_batch(ls_dataset_shard(in_range(16), LS_SHARD_HINT, 0), 8);
}

LST_TEST(d65_d66_a_hint_says_where_to_shard)
{
    IN_SHARD(hinted, LS_SHARD_BY_HINT, 10, 0, "0 10 20 30 40 50 60 70 80 90 end");
    IN_SHARD(not_hinted, LS_SHARD_BY_HINT, 10, 0, "0 1 2 3 end");
    IN_SHARD(hinted, LS_SHARD_BY_HINT, 101, 0, "INVALID_ARGUMENT");
    IN_PLAIN(hinted(), "FAILED_PRECONDITION");
    IN_CHECK(d66, LS_SHARD_BY_HINT, 2, 2, "[0 2],[4 6] | [8 10],[12 14] | end",
             "[1 3],[5 7] | [9 11],[13 15] | end");
}

LST_TEST(d67_parts_that_are_none_are_refused)
{
    IN_SHARD(four, LS_SHARD_AUTO, 2, 2, "INVALID_ARGUMENT");
    IN_SHARD(four, LS_SHARD_AUTO, 0, 0, "INVALID_ARGUMENT");
    IN_SHARD(four, LS_SHARD_OFF, 2, -1, "INVALID_ARGUMENT");
    IN_SHARD(four, (ls_auto_shard)7, 2, 1, "INVALID_ARGUMENT");
}

LST_TEST(a_refused_shard_leaves_the_dataset_alone)
{
    ls_dataset *d = in_range(3);
    ls_error err = LS_ERROR_INIT;
    ls_dataset *bad = ls_dataset_auto_shard(ls_dataset_retain(d), 2, 2, LS_SHARD_AUTO);

    LST_FAILS(ls_dataset_status(bad, &err), LS_INVALID_ARGUMENT, err, "2 of 2");
    ls_dataset_release(bad);
    IN_PLAIN(d, "0 1 2 end");
}

static ls_dataset *rebatched(void)
{
    return ls_dataset_rebatch(ls_dataset_batch(in_range(8), 4), (const int64_t[]){1}, 1,
                              false);
}

LST_TEST(sharding_data_undoes_a_rebatch_at_the_end)
{
    IN_SHARD(rebatched, LS_SHARD_DATA, 2, 0, "[0 1 2 3] end");
    IN_SHARD(rebatched, LS_SHARD_DATA, 2, 1, "[4 5 6 7] end");
}

/* A node that two branches share is rewritten once, and is still shared. */
static ls_dataset *shared(void)
{
    ls_dataset *d = ls_dataset_shard(in_range(6), LS_SHARD_HINT, 0);
    ls_dataset *two[] = {d, ls_dataset_retain(d)};

    return ls_dataset_zip(two, 2);
}

LST_TEST(what_branches_share_stays_shared)
{
    ls_dataset *d = ls_dataset_auto_shard(shared(), 2, 1, LS_SHARD_BY_HINT);

    LST_CHECK(d->ninputs == 2 && d->inputs[0] == d->inputs[1]);
    IN_PLAIN(d, "(1,1) (3,3) (5,5) end");
}

static atomic_int warnings;
static char warned[512];

static void note_warning(ls_log_level level, const char *line, void *user)
{
    (void)user;
    if (level == LS_LOG_WARNING) {
        atomic_fetch_add(&warnings, 1);
        (void)snprintf(warned, sizeof warned, "%s", line);
    }
}

static int warnings_of(ls_auto_shard policy, int64_t shards, int64_t index)
{
    atomic_store(&warnings, 0);
    ls_log_set(LS_LOG_WARNING, note_warning, NULL);
    ls_dataset_release(ls_dataset_auto_shard(in_range(8), shards, index, policy));
    ls_log_set(LS_LOG_WARNING, NULL, NULL);
    return atomic_load(&warnings);
}

LST_TEST(worker_0_alone_warns_that_files_cannot_be_shared_out)
{
    LST_CHECK(warnings_of(LS_SHARD_AUTO, 2, 0) == 1);
    LST_CHECK(strstr(warned, "range") != NULL && strstr(warned, "DATA") != NULL);
    LST_CHECK(warnings_of(LS_SHARD_AUTO, 2, 1) == 0);
    LST_CHECK(warnings_of(LS_SHARD_AUTO, 1, 0) == 0);
    LST_CHECK(warnings_of(LS_SHARD_DATA, 2, 0) == 0);
}

static ls_status shard_once(ls_error *err)
{
    ls_dataset *d = shared();

    if (ls_dataset_status(d, err) == LS_OK) {
        d = ls_dataset_auto_shard(d, 2, 1, LS_SHARD_BY_HINT);
    }
    if (ls_dataset_status(d, err) == LS_OK) {
        d = ls_dataset_auto_shard(d, 2, 1, LS_SHARD_AUTO);
    }
    const ls_status st = ls_dataset_status(d, err);
    ls_dataset_release(d);
    return st;
}

LST_TEST(every_allocation_of_a_rewrite_may_fail)
{
    lst_every_allocation(shard_once);
}

static void shards_rebatched(ls_auto_shard policy, int64_t replicas, const char *want)
{
    ls_auto_shard_options o = LS_AUTO_SHARD_OPTIONS_INIT;
    const int64_t sizes[] = {4, 4};
    ls_dataset *d =
        ls_dataset_rebatch(ls_dataset_batch(in_range(16), 8), sizes, 2, false);

    o.shards = 2;
    o.policy = policy;
    o.replicas = replicas;
    in_plain(ls_dataset_auto_shard_with(d, &o), want, LST_HERE);
}

LST_TEST(by_data_a_rebatch_cuts_for_the_given_number_of_replicas)
{
    static const ls_auto_shard policies[] = {LS_SHARD_DATA, LS_SHARD_AUTO};

    for (size_t i = 0; i < LSI_COUNT_OF(policies); i++) { // the sizes of TensorFlow 2.21
        shards_rebatched(policies[i], 1, "[0 1 2 3 4 5 6 7] end");
        shards_rebatched(policies[i], 2, "[0 1 2 3] [8 9 10 11] end");
        shards_rebatched(policies[i], 3, "[0 1 2] [6 7] [11 12 13] end");
        shards_rebatched(policies[i], 4, "[0 1] [4 5] [8 9] [12 13] end");
    }
}

LST_MAIN(LST_CASE(d42_the_shard_goes_before_prefetches),
         LST_CASE(d43_a_shard_needs_an_element_for_every_worker),
         LST_CASE(d45_off_lets_every_worker_read_everything),
         LST_CASE(d51_files_are_demanded_where_there_are_none),
         LST_CASE(d65_d66_a_hint_says_where_to_shard),
         LST_CASE(d67_parts_that_are_none_are_refused),
         LST_CASE(a_refused_shard_leaves_the_dataset_alone),
         LST_CASE(sharding_data_undoes_a_rebatch_at_the_end),
         LST_CASE(what_branches_share_stays_shared),
         LST_CASE(worker_0_alone_warns_that_files_cannot_be_shared_out),
         LST_CASE(every_allocation_of_a_rewrite_may_fail),
         LST_CASE(by_data_a_rebatch_cuts_for_the_given_number_of_replicas))
