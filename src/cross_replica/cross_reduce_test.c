/* Tests of the algorithms that combine values of several devices, and of packs. */
#include "cross_replica/cross_replica_test.h"

LST_TEST(s98_values_are_grouped_from_the_end_of_the_list)
{
    // S98 lists the sizes in the order of packing: 128, 32, 800, 4.
    static const size_t bytes[] = {4, 800, 32, 128};
    size_t group[4];
    size_t packs = 0;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_group_by_size(bytes, 4, 200, group, &packs, &err));
    LST_CHECK(packs == 2);
    LST_CHECK(group[3] == 0 && group[2] == 0 && group[1] == 0 && group[0] == 1);
    LST_OK(ls_group_by_size(bytes, 4, 0, group, &packs, &err));
    LST_CHECK(packs == 1 && group[0] == 0 && group[3] == 0);
    LST_OK(ls_group_by_size(NULL, 0, 200, NULL, &packs, &err));
    LST_CHECK(packs == 0);
    LST_FAILS(ls_group_by_size(bytes, 4, -1, group, &packs, &err), LS_INVALID_ARGUMENT,
              err, "-1");
    LST_CHECK(err.kind == LS_KIND_VALUE);
    LST_FAILS(ls_group_by_size(NULL, 4, 0, group, &packs, &err), LS_INVALID_ARGUMENT, err,
              "NULL");
}

LST_TEST(s99_the_last_pack_takes_the_rest)
{
    size_t sizes[3] = {0, 0, 0};
    ls_cross_device *x = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_pack_sizes(10, 3, sizes, &err));
    LST_CHECK(sizes[0] == 3 && sizes[1] == 3 && sizes[2] == 4);
    LST_OK(ls_pack_sizes(2, 3, sizes, &err));
    LST_CHECK(sizes[0] == 0 && sizes[1] == 0 && sizes[2] == 2);
    LST_OK(ls_pack_sizes(10, 0, NULL, &err));
    LST_FAILS(ls_pack_sizes(10, -1, sizes, &err), LS_INVALID_ARGUMENT, err, "-1");
    LST_CHECK(err.kind == LS_KIND_VALUE);
    LST_FAILS(ls_hierarchical_copy_create(-1, &x, &err), LS_INVALID_ARGUMENT, err, "-1");
    LST_CHECK(err.kind == LS_KIND_VALUE);
    LST_FAILS(ls_nccl_all_reduce_create(-1, &x, &err), LS_INVALID_ARGUMENT, err, "-1");
    LST_CHECK(x == NULL);
}

/* A batch of values of several sizes and dtypes, the i-th filled with i + replica. */
enum { BATCH = 6 };
static const int64_t batch_counts[BATCH] = {7, 0, 1, 13, 4, 3};
static const ls_dtype batch_dtypes[BATCH] = {LS_F32, LS_F32, LS_I32,
                                             LS_F32, LS_F64, LS_I32};

static ls_value *batch_value(size_t i, size_t devices)
{
    double numbers[LST_DEVICES * 16];
    size_t n = 0;

    for (size_t d = 0; d < devices; d++) {
        for (int64_t k = 0; k < batch_counts[i]; k++) {
            numbers[n++] = (double)(i + d) + (double)k;
        }
    }
    return lst_per_replica(batch_dtypes[i], LS_SHAPE(batch_counts[i]), devices, numbers);
}

static void check_batch(ls_value *const *outs, size_t devices, bool mirrored)
{
    for (size_t i = 0; i < BATCH; i++) {
        double want[16];
        const ls_shape shape = LS_SHAPE(batch_counts[i]);

        for (int64_t k = 0; k < batch_counts[i]; k++) {
            want[k] = (double)devices * ((double)i + (double)k) +
                      (double)(devices * (devices - 1)) / 2;
        }
        LST_CHECK(mirrored
                      ? lst_is_mirrored(outs[i], devices, batch_dtypes[i], shape, want)
                      : lst_is(outs[i], batch_dtypes[i], shape, want));
    }
}

/* The sums of the batch, to the devices it is on and to one device. */
static void reduce_batch(ls_cross_device *x, size_t devices, int64_t bytes_per_pack)
{
    ls_communication_options opts = LS_COMMUNICATION_OPTIONS_INIT;
    ls_value *values[BATCH];
    ls_value *names[BATCH];
    ls_value *outs[BATCH];
    ls_value *cpu = lst_name("CPU:0");

    opts.bytes_per_pack = bytes_per_pack;
    for (size_t i = 0; i < BATCH; i++) {
        values[i] = batch_value(i, devices);
        names[i] = cpu;
    }
    LST_OK(ls_cross_device_batch_reduce(x, LS_SUM, values, values, BATCH, &opts, outs,
                                        NULL));
    check_batch(outs, devices, true);
    for (size_t i = 0; i < BATCH; i++) {
        ls_value_release(outs[i]);
    }
    LST_OK(
        ls_cross_device_batch_reduce(x, LS_SUM, values, names, BATCH, &opts, outs, NULL));
    check_batch(outs, devices, false);
    for (size_t i = 0; i < BATCH; i++) {
        ls_value_release(outs[i]);
        ls_value_release(values[i]);
    }
    ls_value_release(cpu);
}

LST_TEST(a_batch_has_the_same_sums_however_it_is_packed)
{
    for (size_t devices = 2; devices <= LST_DEVICES; devices++) {
        for (int packs = 0; packs < 9; packs += 2) {
            ls_cross_device *x = NULL;

            LST_OK(ls_hierarchical_copy_create(packs, &x, NULL));
            reduce_batch(x, devices, 0);
            ls_cross_device_release(x);
            LST_OK(ls_nccl_all_reduce_create(packs, &x, NULL));
            reduce_batch(x, devices, 16);
            ls_cross_device_release(x);
        }
        ls_cross_device *x = lst_make_cross_device(lst_make_one_device);
        reduce_batch(x, devices, 0);
        ls_cross_device_release(x);
    }
}

LST_TEST(pairs_that_go_to_different_devices_arrive_there)
{
    ls_cross_device *x = lst_make_cross_device(lst_make_nccl);
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(1, 2));
    ls_value *const values[2] = {p, p};
    ls_value *const destinations[2] = {lst_name("CPU:4"), lst_name("CPU:5")};
    ls_value *outs[2];

    LST_OK(ls_cross_device_batch_reduce(x, LS_SUM, values, destinations, 2, NULL, outs,
                                        NULL));
    for (size_t i = 0; i < 2; i++) {
        LST_CHECK(lst_is(outs[i], LS_F32, LS_SCALAR, LST_NUMBERS(3)));
        LST_CHECK(ls_tensor_device(ls_value_as_tensor(outs[i])) == lst_device(4 + i));
        ls_value_release(outs[i]);
        ls_value_release(destinations[i]);
    }
    ls_value_release(p);
    ls_cross_device_release(x);
}

LST_TEST(pairs_with_different_destinations_keep_their_order)
{
    ls_cross_device *x = lst_make_cross_device(lst_make_nccl);
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(1, 2));
    ls_value *q = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(10, 20));
    ls_value *cpu = lst_name("CPU:1");
    ls_value *const values[3] = {p, q, p};
    ls_value *const destinations[3] = {p, cpu, q};
    ls_value *outs[3];

    LST_OK(ls_cross_device_batch_reduce(x, LS_SUM, values, destinations, 3, NULL, outs,
                                        NULL));
    LST_CHECK(lst_is_mirrored(outs[0], 2, LS_F32, LS_SCALAR, LST_NUMBERS(3)));
    LST_CHECK(lst_is(outs[1], LS_F32, LS_SCALAR, LST_NUMBERS(30)));
    LST_CHECK(lst_is_mirrored(outs[2], 2, LS_F32, LS_SCALAR, LST_NUMBERS(3)));
    LST_OK(ls_cross_device_batch_reduce(x, LS_SUM, NULL, NULL, 0, NULL, NULL, NULL));
    LST_CHECK(ls_cross_device_batch_reduce(x, LS_SUM, values, NULL, 3, NULL, outs,
                                           NULL) == LS_INVALID_ARGUMENT);
    for (size_t i = 0; i < 3; i++) {
        ls_value_release(outs[i]);
    }
    ls_value_release(cpu);
    ls_value_release(p);
    ls_value_release(q);
    ls_cross_device_release(x);
}

/* ---- hierarchical copy ---- */

LST_TEST(s101_hierarchical_copy_copies_the_total_to_every_device)
{
    static const double numbers[LST_DEVICES] = {0, 1, 2, 3, 4, 5, 6, 7};
    ls_cross_device *x = lst_make_cross_device(lst_make_hierarchical);
    size_t a = 0;
    size_t b = 0;

    for (size_t n = 2; n <= LST_DEVICES; n++) { // odd n: added on one device
        const double total = (double)(n * (n - 1)) / 2;
        const double mean = total / (double)n;
        ls_value *p = lst_per_replica(LS_F64, LS_SCALAR, n, numbers);
        ls_value *sum = lst_reduce_value(x, LS_SUM, p, p);
        ls_value *average = lst_reduce_value(x, LS_MEAN, p, p);

        LST_CHECK(lst_is_mirrored(sum, n, LS_F64, LS_SCALAR, &total));
        LST_CHECK(lst_is_mirrored(average, n, LS_F64, LS_SCALAR, &mean));
        ls_value_release(sum);
        ls_value_release(average);
        ls_value_release(p);
    }
    lsi_hierarchical_mains(5, 8, &a, &b);
    LST_CHECK(a == 5 && b == 1);
    lsi_hierarchical_mains(10, 8, &a, &b);
    LST_CHECK(a == 2 && b == 6);
    ls_cross_device_release(x);
}

LST_TEST(hierarchical_copy_needs_the_values_on_the_devices_of_the_result)
{
    // The result shows the order: 1 is the sum in the order of replicas, 0 that of the
    // halves.
    static const double numbers[4] = {1e8, 1, -1e8, 1};
    ls_cross_device *x = lst_make_cross_device(lst_make_hierarchical);
    ls_value *there = lst_per_replica(LS_F32, LS_SCALAR, 4, numbers);
    ls_value *leaves[4];

    for (size_t i = 0; i < 4; i++) {
        leaves[i] =
            lst_leaf(lst_tensor(lst_device(3 - i), LS_F32, LS_SCALAR, &numbers[i]));
    }
    ls_value *elsewhere = lst_distributed(LS_VALUE_PER_REPLICA, leaves, 4);
    ls_value *halves = lst_reduce_value(x, LS_SUM, there, there);
    ls_value *in_order = lst_reduce_value(x, LS_SUM, elsewhere, there);
    LST_CHECK(lst_is_mirrored(halves, 4, LS_F32, LS_SCALAR, LST_NUMBERS(0)));
    LST_CHECK(lst_is_mirrored(in_order, 4, LS_F32, LS_SCALAR, LST_NUMBERS(1)));
    ls_value_release(halves);
    ls_value_release(in_order);
    ls_value_release(elsewhere);
    ls_value_release(there);
    ls_cross_device_release(x);
}

LST_TEST(every_tensor_of_a_hierarchy_may_be_the_one_that_sums)
{
    static const float numbers[6] = {1, 10, 100, 1000, 10000, 100000};

    for (size_t n = 2; n <= 6; n += 2) {
        float total = 0;
        const void *from[6];

        for (size_t d = 0; d < n; d++) {
            from[d] = &numbers[d];
            total += numbers[d];
        }
        for (size_t i = 0; i < 2 * n; i++) {
            float sums[6] = {0};
            void *to[6];

            for (size_t d = 0; d < n; d++) {
                to[d] = &sums[d];
            }
            lsi_hierarchical_sum(LS_SUM, from, to, n, i, 1, LS_F32);
            for (size_t d = 0; d < n; d++) {
                LST_CHECK(sums[d] == total);
            }
        }
    }
}

/* Created once: after that only the reduction may fail. */
static ls_value *everything[BATCH + 1];

static ls_status reduce_everything(ls_error *err)
{
    ls_value *outs[BATCH + 1] = {NULL};
    ls_status st = LS_OK;

    for (size_t k = 0; st == LS_OK && k < LST_MAKER_COUNT; k++) {
        ls_cross_device *x = NULL;

        st = LST_MAKERS[k](&x, err);
        if (st == LS_OK) {
            st = ls_cross_device_batch_reduce(x, LS_MEAN, everything, everything,
                                              BATCH + 1, NULL, outs, err);
        }
        LST_CHECK(st == LS_OK || outs[0] == NULL); // no result unless all succeed
        for (size_t i = 0; i <= BATCH; i++) {
            ls_value_release(outs[i]);
            outs[i] = NULL;
        }
        ls_cross_device_release(x);
    }
    return st;
}

LST_TEST(a_reduction_that_runs_out_of_memory_leaves_nothing_behind)
{
    ls_value *leaves[2] = {
        lst_sparse(lst_device(0), LS_SHAPE(5, 1), 1, LST_NUMBERS(1), LST_NUMBERS(0)),
        lst_sparse(lst_device(1), LS_SHAPE(5, 1), 1, LST_NUMBERS(2), LST_NUMBERS(3))};

    for (size_t i = 0; i < BATCH; i++) {
        everything[i] = batch_value(i, 2);
    }
    everything[BATCH] = lst_distributed(LS_VALUE_PER_REPLICA, leaves, 2);
    lst_every_allocation(reduce_everything);
    for (size_t i = 0; i <= BATCH; i++) {
        ls_value_release(everything[i]);
    }
}

LST_MAIN(LST_CASE(s98_values_are_grouped_from_the_end_of_the_list),
         LST_CASE(s99_the_last_pack_takes_the_rest),
         LST_CASE(a_batch_has_the_same_sums_however_it_is_packed),
         LST_CASE(pairs_that_go_to_different_devices_arrive_there),
         LST_CASE(hierarchical_copy_needs_the_values_on_the_devices_of_the_result),
         LST_CASE(pairs_with_different_destinations_keep_their_order),
         LST_CASE(s101_hierarchical_copy_copies_the_total_to_every_device),
         LST_CASE(every_tensor_of_a_hierarchy_may_be_the_one_that_sums),
         LST_CASE(a_reduction_that_runs_out_of_memory_leaves_nothing_behind))
