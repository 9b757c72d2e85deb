/* Tests of cross-device operations called on handles. */
#include "cross_replica/cross_replica_test.h"

LST_TEST(s94_a_result_is_mirrored_on_several_devices_and_plain_on_one)
{
    for (size_t k = 0; k < LST_MAKER_COUNT; k++) {
        ls_cross_device *x = lst_make_cross_device(LST_MAKERS[k]);
        ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(0, 1));
        ls_value *cpu = lst_name("CPU:0");
        ls_value *other = lst_name("/device:CPU:3");
        ls_value *mean = lst_reduce_value(x, LS_MEAN, p, p);
        ls_value *plain_mean = lst_reduce_value(x, LS_MEAN, p, cpu);
        ls_value *sum = lst_reduce_value(x, LS_SUM, p, p);
        ls_value *plain_sum = lst_reduce_value(x, LS_SUM, p, other);

        LST_CHECK(lst_is_mirrored(mean, 2, LS_F32, LS_SCALAR, LST_NUMBERS(0.5)));
        LST_CHECK(lst_is(plain_mean, LS_F32, LS_SCALAR, LST_NUMBERS(0.5)));
        LST_CHECK(lst_is_mirrored(sum, 2, LS_F32, LS_SCALAR, LST_NUMBERS(1)));
        LST_CHECK(lst_is(plain_sum, LS_F32, LS_SCALAR, LST_NUMBERS(1)));
        LST_CHECK(ls_tensor_device(ls_value_as_tensor(plain_sum)) == lst_device(3));
        ls_value_release(mean);
        ls_value_release(plain_mean);
        ls_value_release(sum);
        ls_value_release(plain_sum);
        ls_value_release(other);
        ls_value_release(cpu);
        ls_value_release(p);
        ls_cross_device_release(x);
    }
}

LST_TEST(s94_a_broadcast_is_on_every_device_of_the_destination)
{
    ls_cross_device *x = lst_make_cross_device(lst_make_one_device);
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 3, LST_NUMBERS(0, 1, 2));
    ls_value *one = lst_plain(LS_F32, LS_SCALAR, LST_NUMBERS(1));
    ls_value *number = NULL;
    ls_value *out = NULL;

    LST_OK(ls_cross_device_broadcast(x, one, p, &out, NULL));
    LST_CHECK(lst_is_mirrored(out, 3, LS_F32, LS_SCALAR, LST_NUMBERS(1)));
    ls_value_release(out);
    LST_OK(ls_cross_device_broadcast(x, one, one, &out, NULL));
    LST_CHECK(lst_is(out, LS_F32, LS_SCALAR, LST_NUMBERS(1)));
    ls_value_release(out);
    LST_OK(ls_value_int(7, &number, NULL));
    LST_OK(ls_cross_device_broadcast(x, number, p, &out, NULL));
    LST_CHECK(lst_is_mirrored(out, 3, LS_I32, LS_SCALAR, LST_NUMBERS(7)));
    ls_value_release(out);
    ls_value_release(number);
    ls_value_release(one);
    ls_value_release(p);
    ls_cross_device_release(x);
}

/* Reducing to `destination` fails with a ValueError whose message contains `word`. */
static void refuses(ls_value *p, ls_value *destination, const char *word)
{
    ls_cross_device *x = lst_make_cross_device(lst_make_one_device);
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    LST_FAILS(ls_cross_device_reduce(x, LS_SUM, p, destination, NULL, &out, &err),
              LS_INVALID_ARGUMENT, err, word);
    LST_CHECK(err.kind == LS_KIND_VALUE && out == NULL);
    LST_FAILS(ls_cross_device_broadcast(x, ls_value_child(p, 0), destination, &out, &err),
              LS_INVALID_ARGUMENT, err, word);
    LST_CHECK(err.kind == LS_KIND_VALUE && out == NULL);
    ls_value_release(destination);
    ls_cross_device_release(x);
}

LST_TEST(s94_a_value_without_a_device_is_no_destination)
{
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(0, 1));
    ls_value *names[2] = {lst_name("CPU:0"), lst_name("CPU:1")};
    ls_value *v = NULL;

    LST_OK(ls_value_list(names, 2, &v, NULL));
    refuses(p, v, "list");
    LST_OK(ls_value_tuple(names, 2, &v, NULL));
    refuses(p, v, "tuple");
    refuses(p, lst_name(""), "empty");
    refuses(p, NULL, "none");
    LST_OK(ls_value_float(1.0, &v, NULL));
    refuses(p, v, "float");
    ls_value_release(names[0]);
    ls_value_release(names[1]);
    ls_value_release(p);
}

LST_TEST(a_literal_component_is_on_no_device)
{
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(0, 1));
    ls_value *literals[2] = {NULL, NULL};

    LST_OK(ls_value_int(1, &literals[0], NULL));
    LST_OK(ls_value_int(2, &literals[1], NULL));
    refuses(p, lst_distributed(LS_VALUE_PER_REPLICA, literals, 2), "literal");
    ls_value_release(p);
}

LST_TEST(a_device_that_is_not_there_is_named)
{
    ls_cross_device *x = lst_make_cross_device(lst_make_one_device);
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(0, 1));
    ls_value *far = lst_name("CPU:99");
    ls_error err = LS_ERROR_INIT;
    char text[200];

    LST_FAILS(ls_cross_device_reduce(x, LS_SUM, p, far, NULL, NULL, &err), LS_NOT_FOUND,
              err, "CPU:99");
    ls_value_release(far);
    memset(text, 'x', sizeof text);
    LST_OK(ls_value_string((ls_string){text, sizeof text}, &far, NULL));
    LST_FAILS(ls_cross_device_reduce(x, LS_SUM, p, far, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "200 bytes");
    ls_value_release(far);
    ls_value_release(p);
    ls_cross_device_release(x);
}

LST_TEST(only_sums_and_means_are_combined)
{
    ls_cross_device *x = lst_make_cross_device(lst_make_one_device);
    ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 2, LST_NUMBERS(0, 1));
    ls_communication_options bad = LS_COMMUNICATION_OPTIONS_INIT;
    ls_value *structure = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(ls_cross_device_reduce(x, LS_MAX, p, p, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "MAX");
    LST_CHECK(err.kind == LS_KIND_VALUE);
    bad.bytes_per_pack = -1;
    LST_FAILS(ls_cross_device_reduce(x, LS_SUM, p, p, &bad, NULL, &err),
              LS_INVALID_ARGUMENT, err, "bytes_per_pack");
    LST_OK(ls_value_tuple(&p, 1, &structure, NULL));
    LST_FAILS(ls_cross_device_reduce(x, LS_SUM, structure, p, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "leaf by leaf");
    LST_FAILS(ls_cross_device_reduce(NULL, LS_SUM, p, p, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "NULL");
    LST_FAILS(ls_cross_device_reduce(x, LS_SUM, NULL, p, NULL, NULL, &err),
              LS_INVALID_ARGUMENT, err, "NULL");
    LST_OK(ls_cross_device_reduce(x, LS_SUM, p, p, NULL, NULL, &err)); // without out
    ls_value_release(structure);
    ls_value_release(p);
    ls_cross_device_release(x);
}

LST_TEST(shapes_that_disagree_are_named_with_their_replicas)
{
    ls_value *leaves[2] = {
        lst_leaf(lst_tensor(lst_device(0), LS_F32, LS_SHAPE(3), LST_NUMBERS(1, 2, 3))),
        lst_leaf(lst_tensor(lst_device(1), LS_F32, LS_SHAPE(2), LST_NUMBERS(4, 5)))};
    ls_value *p = lst_distributed(LS_VALUE_PER_REPLICA, leaves, 2);

    for (size_t k = 0; k < LST_MAKER_COUNT; k++) {
        ls_cross_device *x = lst_make_cross_device(LST_MAKERS[k]);
        ls_error err = LS_ERROR_INIT;

        LST_FAILS(ls_cross_device_reduce(x, LS_SUM, p, p, NULL, NULL, &err),
                  LS_INVALID_ARGUMENT, err, "replica 0 has float32 (3,)");
        LST_CHECK(strstr(err.message, "replica 1 has float32 (2,)") != NULL);
        LST_CHECK(err.kind == LS_KIND_OP);
        ls_cross_device_release(x);
    }
    ls_value_release(p);
}

LST_TEST(one_device_adds_in_the_order_of_replicas_and_the_others_in_the_tree)
{
    // In float32 1e8 + 1 is 1e8: in order ((1e8 + 1) - 1e8) + 1 is 1, and in the tree
    // (1e8 + 1) + (-1e8 + 1) is 0.
    static const double want[] = {1, 0, 0};

    for (size_t k = 0; k < LST_MAKER_COUNT; k++) {
        ls_cross_device *x = lst_make_cross_device(LST_MAKERS[k]);
        ls_value *p = lst_per_replica(LS_F32, LS_SCALAR, 4, LST_NUMBERS(1e8, 1, -1e8, 1));
        ls_value *sum = lst_reduce_value(x, LS_SUM, p, p);

        LST_CHECK(lst_is_mirrored(sum, 4, LS_F32, LS_SCALAR, &want[k]));
        ls_value_release(sum);
        ls_value_release(p);
        ls_cross_device_release(x);
    }
}

LST_TEST(a_mean_divides_truly_whatever_the_dtype)
{
    static const struct {
        ls_dtype from, to;
    } cases[] = {{LS_F32, LS_F32}, {LS_F64, LS_F64}, {LS_I32, LS_F64},
                 {LS_I64, LS_F64}, {LS_I16, LS_F32}, {LS_I8, LS_F32}};

    for (size_t k = 0; k < LST_MAKER_COUNT; k++) {
        for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
            ls_cross_device *x = lst_make_cross_device(LST_MAKERS[k]);
            ls_value *p =
                lst_per_replica(cases[i].from, LS_SHAPE(2), 2, LST_NUMBERS(1, -5, 2, 2));
            ls_value *mean = lst_reduce_value(x, LS_MEAN, p, p);
            ls_value *sum = lst_reduce_value(x, LS_SUM, p, p);

            LST_CHECK(lst_is_mirrored(mean, 2, cases[i].to, LS_SHAPE(2),
                                      LST_NUMBERS(1.5, -1.5)));
            LST_CHECK(
                lst_is_mirrored(sum, 2, cases[i].from, LS_SHAPE(2), LST_NUMBERS(3, -3)));
            ls_value_release(mean);
            ls_value_release(sum);
            ls_value_release(p);
            ls_cross_device_release(x);
        }
    }
}

LST_TEST(one_component_where_it_shall_go_is_the_result)
{
    ls_cross_device *x = lst_make_cross_device(lst_make_one_device);
    ls_value *t = lst_plain(LS_I64, LS_SHAPE(2), LST_NUMBERS(3, 4));
    ls_value *cpu0 = lst_name("CPU:0");
    ls_value *cpu1 = lst_name("CPU:1");
    ls_value *here = lst_reduce_value(x, LS_MEAN, t, cpu0);
    ls_value *there = lst_reduce_value(x, LS_MEAN, t, cpu1);

    LST_CHECK(lst_is(here, LS_I64, LS_SHAPE(2), LST_NUMBERS(3, 4)));
    LST_CHECK(lst_is(there, LS_F64, LS_SHAPE(2), LST_NUMBERS(3, 4))); // divided by 1
    ls_value_release(here);
    ls_value_release(there);
    ls_value_release(cpu0);
    ls_value_release(cpu1);
    ls_value_release(t);
    ls_cross_device_release(x);
}

LST_TEST(a_reduction_to_a_given_device_still_ends_at_the_destination)
{
    static const double ones[3 * 20] = {1, [20] = 2, [40] = 3};
    static const double total[20] = {6};
    ls_cross_device *x = NULL;
    ls_value *p = lst_per_replica(LS_F32, LS_SHAPE(20), 3, ones);
    uint64_t before = 0;
    uint64_t after = 0;
    size_t bytes = 0;

    LST_OK(ls_reduction_to_one_device_create(lst_device(5), &x, NULL));
    lsi_device_pool_stats(lst_device(5), &before, &bytes);
    ls_value *sum = lst_reduce_value(x, LS_SUM, p, p);
    lsi_device_pool_stats(lst_device(5), &after, &bytes);
    LST_CHECK(lst_is_mirrored(sum, 3, LS_F32, LS_SHAPE(20), total));
    LST_CHECK(after > before); // nothing else in this test used that device
    ls_value_release(sum);
    ls_value_release(p);
    ls_cross_device_release(x);
}

/* ---- sparse ---- */

/* True if `v` is sparse with these rows, in this order. */
static bool is_sparse(const ls_value *v, int64_t n, int64_t width, const double *rows,
                      const double *indices)
{
    const ls_tensor *t = ls_value_as_tensor(v);
    const ls_tensor *values = NULL;
    const ls_tensor *where = NULL;

    if (!ls_tensor_slices(t, &values, &where) || values->count != n * width ||
        where->count != n) {
        return false;
    }
    bool is = ls_tensor_dim(t, 0) == 5;
    for (int64_t i = 0; is && i < n * width; i++) {
        is = lsi_element(values, i) == rows[i] &&
             (i >= n || lsi_element(where, i) == indices[i]);
    }
    return is;
}

LST_TEST(s95_sparse_tensors_are_joined_in_the_order_of_replicas)
{
    ls_value *leaves[2] = {
        lst_sparse(lst_device(0), LS_SHAPE(5, 2), 1, LST_NUMBERS(1, 2), LST_NUMBERS(1)),
        lst_sparse(lst_device(1), LS_SHAPE(5, 2), 2, LST_NUMBERS(3, 4, 5, 6),
                   LST_NUMBERS(1, 3))};
    ls_value *p = lst_distributed(LS_VALUE_PER_REPLICA, leaves, 2);
    ls_value *cpu = lst_name("CPU:0");

    for (size_t k = 0; k < LST_MAKER_COUNT; k++) {
        ls_cross_device *x = lst_make_cross_device(LST_MAKERS[k]);
        ls_value *sum = lst_reduce_value(x, LS_SUM, p, cpu);
        ls_value *mean = lst_reduce_value(x, LS_MEAN, p, cpu);
        ls_value *both = lst_reduce_value(x, LS_SUM, p, p);
        float dense[10];

        LST_CHECK(
            is_sparse(sum, 3, 2, LST_NUMBERS(1, 2, 3, 4, 5, 6), LST_NUMBERS(1, 1, 3)));
        LST_CHECK(is_sparse(mean, 3, 2, LST_NUMBERS(0.5, 1, 1.5, 2, 2.5, 3),
                            LST_NUMBERS(1, 1, 3)));
        LST_OK(ls_tensor_read(ls_value_as_tensor(sum), dense, sizeof dense, NULL));
        LST_CHECK(dense[2] == 4 && dense[3] == 6 && dense[6] == 5 && dense[7] == 6);
        LST_CHECK(dense[0] == 0 && dense[4] == 0 && dense[8] == 0);
        LST_OK(ls_tensor_read(ls_value_as_tensor(mean), dense, sizeof dense, NULL));
        LST_CHECK(dense[2] == 2 && dense[3] == 3 && dense[6] == 2.5F && dense[7] == 3);
        LST_CHECK(ls_value_kind_of(both) == LS_VALUE_MIRRORED);
        for (size_t i = 0; i < 2; i++) {
            const ls_value *leaf = ls_value_child(both, i);

            LST_CHECK(is_sparse(leaf, 3, 2, LST_NUMBERS(1, 2, 3, 4, 5, 6),
                                LST_NUMBERS(1, 1, 3)));
            LST_CHECK(ls_tensor_device(ls_value_as_tensor(leaf)) == lst_device(i));
        }
        ls_value_release(sum);
        ls_value_release(mean);
        ls_value_release(both);
        ls_cross_device_release(x);
    }
    ls_value_release(cpu);
    ls_value_release(p);
}

LST_TEST(s97_sparse_tensors_of_different_lengths_keep_every_row)
{
    ls_cross_device *x = lst_make_cross_device(lst_make_nccl);
    ls_value *leaves[2] = {
        lst_sparse(lst_device(0), LS_SHAPE(5, 1), 1, LST_NUMBERS(1), LST_NUMBERS(0)),
        lst_sparse(lst_device(1), LS_SHAPE(5, 1), 3, LST_NUMBERS(2, 3, 4),
                   LST_NUMBERS(0, 1, 2))};
    ls_value *p = lst_distributed(LS_VALUE_PER_REPLICA, leaves, 2);
    ls_value *sum = lst_reduce_value(x, LS_SUM, p, p);

    LST_CHECK(is_sparse(ls_value_child(sum, 1), 4, 1, LST_NUMBERS(1, 2, 3, 4),
                        LST_NUMBERS(0, 0, 1, 2)));
    ls_value_release(sum);
    ls_value_release(p);
    ls_cross_device_release(x);
}

LST_TEST(a_sparse_tensor_beside_a_dense_one_counts_as_dense)
{
    ls_cross_device *x = lst_make_cross_device(lst_make_one_device);
    ls_value *leaves[2] = {lst_sparse(lst_device(0), LS_SHAPE(2, 2), 2,
                                      LST_NUMBERS(1, 2, 3, 4), LST_NUMBERS(1, 1)),
                           lst_leaf(lst_tensor(lst_device(1), LS_F32, LS_SHAPE(2, 2),
                                               LST_NUMBERS(10, 20, 30, 40)))};
    ls_value *p = lst_distributed(LS_VALUE_PER_REPLICA, leaves, 2);
    ls_value *sum = lst_reduce_value(x, LS_SUM, p, p);

    LST_CHECK(
        lst_is_mirrored(sum, 2, LS_F32, LS_SHAPE(2, 2), LST_NUMBERS(10, 20, 34, 46)));
    ls_value_release(sum);
    ls_value_release(p);
    ls_cross_device_release(x);
}

/* ---- handles ---- */

LST_TEST(objects_say_what_they_are_and_what_they_became)
{
    static const char *const names[] = {"ReductionToOneDevice",
                                        "HierarchicalCopyAllReduce", "NcclAllReduce"};
    static const char *const words[] = {"order of replicas", "halves", "no NCCL here"};

    for (size_t k = 0; k < LST_MAKER_COUNT; k++) {
        ls_cross_device *x = lst_make_cross_device(LST_MAKERS[k]);

        LST_CHECK(ls_cross_device_retain(x) == x);
        ls_cross_device_release(x);
        LST_CHECK(strcmp(ls_cross_device_name(x), names[k]) == 0);
        LST_CHECK(strstr(ls_cross_device_text(x), words[k]) != NULL);
        ls_cross_device_release(x);
    }
    LST_CHECK(ls_cross_device_retain(NULL) == NULL);
    ls_cross_device_release(NULL);
    LST_CHECK(strcmp(ls_cross_device_name(NULL), "?") == 0);
    LST_CHECK(strcmp(ls_cross_device_text(NULL), "?") == 0);
    LST_CHECK(ls_reduction_to_one_device_create(NULL, NULL, NULL) == LS_INVALID_ARGUMENT);
}

LST_MAIN(LST_CASE(s94_a_result_is_mirrored_on_several_devices_and_plain_on_one),
         LST_CASE(s94_a_broadcast_is_on_every_device_of_the_destination),
         LST_CASE(s94_a_value_without_a_device_is_no_destination),
         LST_CASE(a_literal_component_is_on_no_device),
         LST_CASE(a_device_that_is_not_there_is_named),
         LST_CASE(only_sums_and_means_are_combined),
         LST_CASE(shapes_that_disagree_are_named_with_their_replicas),
         LST_CASE(one_device_adds_in_the_order_of_replicas_and_the_others_in_the_tree),
         LST_CASE(a_mean_divides_truly_whatever_the_dtype),
         LST_CASE(one_component_where_it_shall_go_is_the_result),
         LST_CASE(a_reduction_to_a_given_device_still_ends_at_the_destination),
         LST_CASE(s95_sparse_tensors_are_joined_in_the_order_of_replicas),
         LST_CASE(s97_sparse_tensors_of_different_lengths_keep_every_row),
         LST_CASE(a_sparse_tensor_beside_a_dense_one_counts_as_dense),
         LST_CASE(objects_say_what_they_are_and_what_they_became))
