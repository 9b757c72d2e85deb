/* Tests of how batches are cut for replicas, with the numbers of the spec's cases. */
#include "input_test.h"

static ls_dataset *d1(void)
{
    return ls_dataset_batch(in_range(10), 4);
}

static ls_dataset *d2(void)
{
    return ls_dataset_batch(in_range(8), 4);
}

static ls_dataset *d3(void)
{
    return ls_dataset_batch(in_range(10), 5);
}

static ls_dataset *d4(void)
{
    return ls_dataset_batch(in_floats((const float[]){5, 6, 7, 8}, 4), 2);
}

LST_TEST(d1_to_d4_the_examples_of_the_guide)
{
    IN_CHECK(d1, LS_SHARD_AUTO, 1, 2, "[0 1],[2 3] | [4 5],[6 7] | [8],[9] | end");
    IN_CHECK(d2, LS_SHARD_AUTO, 1, 3, "[0 1],[2 3],[] | [4 5],[6 7],[] | end");
    IN_CHECK(d3, LS_SHARD_AUTO, 1, 3, "[0 1],[2 3],[4] | [5 6],[7 8],[9] | end");
    IN_CHECK(d4, LS_SHARD_AUTO, 1, 2, "[5],[6] | [7],[8] | end");
}

static ls_value *twice(ls_context *c, ls_value *x, void *user)
{
    (void)user;
    return ls_value_of(c, ls_mul(c, ls_value_as_tensor(x), ls_constant_f32(c, 2.0F)));
}

LST_TEST(d4_a_step_can_be_reduced_and_run)
{
    in_machine m = in_machine_of(2);
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_value *v = NULL, *sum = NULL, *run = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = d4();
    in_text t = {{0}, 0};

    LST_OK(ls_strategy_distribute(m.s, d, NULL, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    LST_OK(ls_dist_iterator_next(it, &v, &err));
    LST_CHECK(ls_value_kind_of(v) == LS_VALUE_PER_REPLICA);
    for (size_t r = 0; r < 2; r++) { // values are on the replica's device
        LST_CHECK(ls_tensor_device(ls_value_as_tensor(ls_value_child(v, r))) ==
                  ls_strategy_worker_device(m.s, r));
    }
    LST_OK(ls_strategy_reduce(m.s, LS_SUM, v, 0, &sum, &err));
    in_put_value(&t, sum);
    LST_OK(ls_strategy_run(m.s, twice, v, NULL, &run, &err));
    in_put(&t, " ");
    in_put_step(&t, run, 2);
    LST_CHECK(strcmp(t.text, "11 [10],[12] | ") == 0);
    ls_value_release(v);
    ls_value_release(sum);
    ls_value_release(run);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
    in_machine_end(&m);
}

static ls_dataset *ten(void)
{
    return ls_dataset_batch(in_range(10), 4);
}

static ls_dataset *d16(void)
{
    return ls_dataset_batch(in_range(4), 2);
}

static ls_dataset *d18(void)
{
    return ls_dataset_batch(in_range(9), 9);
}

static ls_dataset *d19(void)
{
    return ls_dataset_batch(in_range(9), 4);
}

LST_TEST(d15_to_d19_more_replicas_than_rows)
{
    IN_CHECK(ten, LS_SHARD_OFF, 1, 2, "[0 1],[2 3] | [4 5],[6 7] | [8 9],[] | end");
    IN_CHECK(d16, LS_SHARD_AUTO, 1, 4, "[0],[1],[],[] | [2],[3],[],[] | end");
    IN_CHECK(d2, LS_SHARD_OFF, 1, 5, "[0],[1],[2],[3],[] | [4],[5],[6],[7],[] | end");
    IN_CHECK(d18, LS_SHARD_AUTO, 1, 4, "[0 1 2],[3 4 5],[6 7 8],[] | end");
    IN_CHECK(d18, LS_SHARD_OFF, 1, 4, "[0 1 2],[3 4],[5 6],[7 8] | end");
    IN_CHECK(d19, LS_SHARD_AUTO, 1, 2, "[0 1],[2 3] | [4 5],[6 7] | [8],[] | end");
}

static ls_dataset *d20(void)
{
    return in_identity(ls_dataset_batch(in_range(12), 8));
}

static ls_dataset *d21(void)
{
    return ls_dataset_batch(in_range(12), 8);
}

static ls_dataset *d22(void)
{
    return in_identity(ls_dataset_batch_exact(in_range(20), 8));
}

LST_TEST(d20_to_d22_a_map_hides_the_batch_size_unless_it_is_static)
{
    const char *each = "[0 1 2 3] | [4 5 6 7] | [8 9] | [10 11] | end";
    const char *whole = "[0 1 2 3] | [4 5 6 7] | [8 9 10 11] | end";
    const char *fixed = "[0 1 2 3] | [4 5 6 7] | [8 9 10 11] | [12 13 14 15] | end";

    IN_CHECK(d20, LS_SHARD_OFF, 2, 1, each, each);
    IN_CHECK(d21, LS_SHARD_OFF, 2, 1, whole, whole);
    IN_CHECK(d22, LS_SHARD_OFF, 2, 1, fixed, fixed);
}

static void sizes_are(int64_t batch, int workers, int replicas, int worker,
                      const int64_t *want)
{
    int64_t sizes[16] = {0};
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_batch_sizes(batch, workers, replicas, worker, sizes, &err));
    LST_CHECK(memcmp(sizes, want, (size_t)(workers * replicas) * sizeof sizes[0]) == 0);
}
#define SIZES(batch, workers, replicas, worker, ...)                                     \
    sizes_are(batch, workers, replicas, worker, (const int64_t[]){__VA_ARGS__})

static ls_dataset *ten_by_five(void)
{
    return ls_dataset_batch(in_range(10), 5);
}

/* The sizes are 2 1 1 1 for worker 0 of 2 x 2, 1 1 2 1 for worker 1; 2 1 1 for 3 x 1. */
LST_TEST(workers_that_read_everything_cut_it_by_sizes_of_their_own)
{
    IN_CHECK(ten_by_five, LS_SHARD_OFF, 2, 2,
             "[0 1],[2] | [3],[4] | [5 6],[7] | [8],[9] | end",
             "[0],[1] | [2 3],[4] | [5],[6] | [7 8],[9] | end");
    IN_CHECK(ten, LS_SHARD_OFF, 3, 1,
             "[0 1] | [2] | [3] | [4 5] | [6] | [7] | [8 9] | [] | end",
             "[0] | [1] | [2 3] | [4] | [5] | [6 7] | [8] | [9] | end",
             "[0] | [1 2] | [3] | [4] | [5 6] | [7] | [8] | [9] | end");
}

LST_TEST(d23_d24_sizes_are_rotated_by_worker)
{
    SIZES(7, 2, 2, 0, 2, 2, 2, 1);
    SIZES(7, 2, 2, 1, 2, 1, 2, 2);
    SIZES(4, 3, 1, 0, 2, 1, 1);
    SIZES(4, 3, 1, 1, 1, 1, 2);
    SIZES(4, 3, 1, 2, 1, 2, 1);
    SIZES(10, 2, 2, 0, 3, 3, 2, 2);
    SIZES(10, 2, 2, 1, 2, 2, 3, 3);
    SIZES(4, 2, 5, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0);
    SIZES(4, 2, 5, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0);
    SIZES(4, 5, 1, 4, 0, 1, 1, 1, 1);
}

LST_TEST(sizes_add_up_at_every_step_and_differ_by_one_at_most)
{
    for (int64_t g = 0; g < 40; g++) {
        for (int n = 1; n <= 12; n++) {
            const int workers = n % 3 == 0 ? 3 : 1, replicas = n / workers;
            int64_t sizes[3][12], step[12] = {0};
            ls_error err = LS_ERROR_INIT;

            for (int w = 0; w < workers; w++) {
                int64_t sum = 0;

                LST_OK(ls_batch_sizes(g, workers, replicas, w, sizes[w], &err));
                for (int i = 0; i < n; i++) {
                    sum += sizes[w][i];
                    step[i / replicas] += sizes[w][i];
                    LST_CHECK(sizes[w][i] == g / n || sizes[w][i] == g / n + 1);
                }
                LST_CHECK(sum == g);
            }
            for (int k = 0; k < workers; k++) {
                LST_CHECK(step[k] == g);
            }
        }
    }
}

LST_TEST(sizes_that_make_no_sense_are_refused)
{
    int64_t sizes[4];
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(ls_batch_sizes(-4, 2, 2, 0, sizes, &err), LS_INVALID_ARGUMENT, err, "-4");
    LST_FAILS(ls_batch_sizes(4, 2, 2, 2, sizes, &err), LS_INVALID_ARGUMENT, err,
              "worker 2 of 2");
    LST_FAILS(ls_batch_sizes(4, 0, 2, 0, sizes, &err), LS_INVALID_ARGUMENT, err, "of 0");
    LST_FAILS(ls_batch_sizes(4, 2, 2, 1, NULL, &err), LS_INVALID_ARGUMENT, err, "NULL");
}

static ls_dataset *rebatched(int64_t n, const int64_t *sizes, size_t nsizes, bool drop)
{
    return ls_dataset_rebatch(ls_dataset_batch(in_range(n), 4), sizes, nsizes, drop);
}

LST_TEST(d25_d26_rebatching_by_a_list_of_sizes)
{
    IN_PLAIN(rebatched(8, (const int64_t[]){1, 1, 1, 1, 0}, 5, false),
             "[0] [1] [2] [3] [] [4] [5] [6] [7] [] end");
    IN_PLAIN(rebatched(8, (const int64_t[]){0, 1}, 2, false),
             "[] [0] [] [1] [] [2] [] [3] [] [4] [] [5] [] [6] [] [7] [] end");
    IN_PLAIN(rebatched(5, (const int64_t[]){2, 2}, 2, false), "[0 1] [2 3] [4] end");
    IN_PLAIN(rebatched(5, (const int64_t[]){2, 2}, 2, true), "[0 1] [2 3] end");
    IN_PLAIN(rebatched(12, (const int64_t[]){6}, 1, false),
             "[0 1 2 3 4 5] [6 7 8 9 10 11] end");
}

static ls_dataset *d27(void)
{
    ls_dataset *two[] = {ls_dataset_batch_exact(in_range(8), 4),
                         ls_dataset_batch_exact(in_range(16), 8)};

    return ls_dataset_zip(two, 2);
}

static ls_dataset *d28(void)
{
    return ls_dataset_batch(ls_dataset_batch(in_range(16), 2), 4);
}

static ls_dataset *d29(void)
{
    return ls_dataset_repeat(ls_dataset_batch(in_range(6), 4), 2);
}

static ls_dataset *d30(void)
{
    return ls_dataset_concatenate(ls_dataset_batch(in_range(8), 4),
                                  ls_dataset_batch(ls_dataset_range(8, 12, 1), 2));
}

LST_TEST(d27_to_d30_structures_and_batches_of_several_sizes)
{
    IN_CHECK(d27, LS_SHARD_AUTO, 1, 2,
             "([0 1],[0 1 2 3]),([2 3],[4 5 6 7]) | "
             "([4 5],[8 9 10 11]),([6 7],[12 13 14 15]) | end");
    IN_CHECK(d27, LS_SHARD_OFF, 1, 2, // no common size: each component is cut separately
             "([0 1],[0 1 2 3]),([2 3],[4 5 6 7]) | "
             "([4 5],[8 9 10 11]),([6 7],[12 13 14 15]) | end");
    IN_CHECK(d28, LS_SHARD_AUTO, 1, 2,
             "[[0 1][2 3]],[[4 5][6 7]] | [[8 9][10 11]],[[12 13][14 15]] | end");
    IN_CHECK(d29, LS_SHARD_AUTO, 1, 2,
             "[0 1],[2 3] | [4],[5] | [0 1],[2 3] | [4],[5] | end");
    IN_CHECK(d29, LS_SHARD_OFF, 1, 2, "[0 1],[2 3] | [4 5],[0 1] | [2 3],[4 5] | end");
    IN_CHECK(d30, LS_SHARD_OFF, 1, 2,
             "[0 1],[2 3] | [4 5],[6 7] | [8],[9] | [10],[11] | end");
}

static ls_dataset *three_floats(void)
{
    return ls_dataset_batch(in_floats((const float[]){5, 6, 7}, 3), 4);
}

static ls_dataset *one_float(void)
{
    return ls_dataset_batch(in_floats((const float[]){5}, 1), 2);
}

static ls_dataset *ones_exact(void)
{
    return ls_dataset_batch_exact(in_floats((const float[]){5, 6}, 2), 1);
}

LST_TEST(d31_short_batches)
{
    IN_CHECK(three_floats, LS_SHARD_AUTO, 1, 2, "[5 6],[7] | end");
    IN_CHECK(one_float, LS_SHARD_AUTO, 1, 2, "[5],[] | end");
    IN_CHECK(ones_exact, LS_SHARD_AUTO, 1, 2, "[5],[] | [6],[] | end");
}

static ls_dataset *single_rows(void)
{
    return in_range(10);
}

LST_TEST(d32_what_cannot_be_cut_is_refused)
{
    in_machine m = in_machine_of(2);
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *plain = single_rows();

    LST_FAILS(ls_strategy_distribute(m.s, plain, NULL, &dd, &err), LS_INVALID_ARGUMENT,
              err, "ls_dataset_batch() with the global batch size");
    LST_CHECK(dd == NULL);
    ls_dataset_release(plain);
    in_machine_end(&m);
    // with one replica on each of two workers, too
    IN_CHECK(single_rows, LS_SHARD_AUTO, 2, 1, "INVALID_ARGUMENT", "INVALID_ARGUMENT");
    IN_CHECK(single_rows, LS_SHARD_OFF, 1, 1,
             "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | end");
}

static ls_dataset *nothing(void)
{
    return ls_dataset_batch(in_range(0), 4);
}

LST_TEST(d33_no_data_is_no_error)
{
    IN_CHECK(nothing, LS_SHARD_AUTO, 1, 2, "end");
    IN_CHECK(nothing, LS_SHARD_AUTO, 2, 1, "end", "end");
}

LST_TEST(d10_numpy_arrays_are_rows_and_not_batches)
{
    in_machine m = in_machine_of(2), one = in_machine_of(1);
    const float ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    in_text text = {{0}, 0};
    bool wrapped = true;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(10), ones, &t, &err));
    LST_OK(ls_value_tensor(t, &v, &err));
    ls_dataset *d = ls_strategy_numpy_dataset(one.s, v);
    LST_OK(ls_strategy_distribute(one.s, d, NULL, &dd, &err));
    LST_CHECK(ls_spec_ndim(ls_dist_spec(dd, &wrapped)) == 0 && !wrapped);
    LST_CHECK(ls_dist_cardinality(dd) == 10);
    LST_OK(ls_dist_iterate(dd, &it, &err));
    in_drain(&text, it, 1, IN_STEPS);
    LST_CHECK(strcmp(text.text, "1 | 1 | 1 | 1 | 1 | 1 | 1 | 1 | 1 | 1 | end") == 0);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    dd = NULL;
    LST_FAILS(ls_strategy_distribute(m.s, d, NULL, &dd, &err), LS_INVALID_ARGUMENT, err,
              "batch");
    ls_dataset_release(d);
    ls_value_release(v);
    ls_tensor_release(t);
    in_machine_end(&m);
    in_machine_end(&one);
}

LST_TEST(d80_a_list_of_arrays_is_stacked)
{
    in_machine one = in_machine_of(1);
    const float a[2] = {1, 2}, xs[8] = {0};
    const int64_t ys[4] = {0, 1, 2, 3};
    const char *keys[] = {"x", "y"};
    ls_tensor *ta = NULL, *tx = NULL, *ty = NULL;
    ls_value *va = NULL, *list = NULL, *vx = NULL, *vy = NULL, *dict = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), a, &ta, &err));
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(4, 2), xs, &tx, &err));
    LST_OK(ls_tensor_create(NULL, LS_I64, LS_SHAPE(4), ys, &ty, &err));
    LST_OK(ls_value_tensor(ta, &va, &err));
    LST_OK(ls_value_tensor(tx, &vx, &err));
    LST_OK(ls_value_tensor(ty, &vy, &err));
    LST_OK(ls_value_list((ls_value *[]){va, va, va}, 3, &list, &err));
    LST_OK(ls_value_dict(keys, (ls_value *[]){vx, vy}, 2, &dict, &err));
    IN_PLAIN(ls_strategy_numpy_dataset(one.s, list), "[1 2] [1 2] [1 2] end");
    IN_PLAIN(ls_strategy_numpy_dataset(one.s, dict),
             "([0 0],0) ([0 0],1) ([0 0],2) ([0 0],3) end");
    IN_PLAIN(ls_strategy_numpy_dataset(one.s, NULL), "INVALID_ARGUMENT");
    ls_value_release(va);
    ls_value_release(vx);
    ls_value_release(vy);
    ls_value_release(list);
    ls_value_release(dict);
    ls_tensor_release(ta);
    ls_tensor_release(tx);
    ls_tensor_release(ty);
    in_machine_end(&one);
}

LST_TEST(the_default_strategy_returns_the_dataset_itself)
{
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = in_range(3); // elements are not batches, which does not matter here
    in_text t = {{0}, 0};
    bool wrapped = true;

    LST_OK(ls_strategy_distribute(ls_default_strategy(), d, NULL, &dd, &err));
    LST_CHECK(ls_spec_equal(ls_dist_spec(dd, &wrapped), ls_dataset_spec(d)) && !wrapped);
    LST_OK(ls_dist_iterate(dd, &it, &err));
    in_drain(&t, it, 1, IN_STEPS);
    LST_CHECK(strcmp(t.text, "0 | 1 | 2 | end") == 0);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
}

LST_MAIN(LST_CASE(d1_to_d4_the_examples_of_the_guide),
         LST_CASE(d4_a_step_can_be_reduced_and_run),
         LST_CASE(d15_to_d19_more_replicas_than_rows),
         LST_CASE(d20_to_d22_a_map_hides_the_batch_size_unless_it_is_static),
         LST_CASE(workers_that_read_everything_cut_it_by_sizes_of_their_own),
         LST_CASE(d23_d24_sizes_are_rotated_by_worker),
         LST_CASE(sizes_add_up_at_every_step_and_differ_by_one_at_most),
         LST_CASE(sizes_that_make_no_sense_are_refused),
         LST_CASE(d25_d26_rebatching_by_a_list_of_sizes),
         LST_CASE(d27_to_d30_structures_and_batches_of_several_sizes),
         LST_CASE(d31_short_batches), LST_CASE(d32_what_cannot_be_cut_is_refused),
         LST_CASE(d33_no_data_is_no_error),
         LST_CASE(d10_numpy_arrays_are_rows_and_not_batches),
         LST_CASE(d80_a_list_of_arrays_is_stacked),
         LST_CASE(the_default_strategy_returns_the_dataset_itself))
