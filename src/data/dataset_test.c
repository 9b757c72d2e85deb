/* The graph of datasets: failures while it is built, options, clones, kinds. */
#include "data/data_test.h"

LST_TEST(D92_what_does_not_go_together_is_an_invalid_argument)
{
    ls_dataset *d = NULL;
    ls_error err = LS_ERROR_INIT;

    d = lst_slices(lst_pair(LST_INTS(1, 2, 3), LST_INTS(4, 5)));
    LST_FAILS(ls_dataset_status(d, &err), LS_INVALID_ARGUMENT, err, "3 and 2");
    ls_dataset_release(d);
    LST_CHECK(lst_code(ls_dataset_shard(lst_range(5), 0, 0)) == LS_INVALID_ARGUMENT);
    d = ls_dataset_shard(lst_range(5), 5, 7);
    LST_FAILS(ls_dataset_status(d, &err), LS_INVALID_ARGUMENT, err, "index 7 of 5");
    ls_dataset_release(d);
    LST_CHECK(lst_code(ls_dataset_range(0, 5, 0)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_batch(lst_range(5), 0)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_unbatch(lst_range(5))) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_concatenate(lst_range(5),
                                              lst_zip(lst_range(1), lst_range(2)))) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_slices(NULL)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_zip(NULL, 0)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_gives(ls_dataset_take(lst_range(3), -1), "0 1 2"));
    LST_CHECK(lst_gives(ls_dataset_skip(lst_range(3), -1), ""));
}

static ls_dataset *cycle(int64_t inputs, int64_t block, int parallel)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;

    o.cycle = inputs;
    o.block = block;
    o.parallel = parallel;
    return ls_dataset_interleave(lst_range(5), (ls_dataset_fn)NULL, NULL, &o);
}

/* The exceptions were observed with TensorFlow 2.21. */
LST_TEST(a_bad_argument_is_the_exception_that_it_is_in_tensorflow)
{
    static const char *const op = "InvalidArgumentError", *const value = "ValueError";
    const int64_t bad[] = {0, -5};
    ls_read_options files = LS_READ_OPTIONS_INIT;
    ls_tensor *vector = NULL, *number = NULL;

    for (size_t i = 0; i < LSI_COUNT_OF(bad); i++) {
        const int64_t n = bad[i];

        LST_CHECK(lst_raises(ls_dataset_batch(lst_range(5), n), op));
        LST_CHECK(
            lst_raises(ls_dataset_batch_exact(lst_range(5), n), n < 0 ? value : op));
        LST_CHECK(lst_raises(
            ls_dataset_padded_batch(lst_range(5), n, NULL, NULL, 0, false), op));
        LST_CHECK(lst_raises(ls_dataset_window(lst_range(5), n, 1, 1, false), op));
        LST_CHECK(lst_raises(ls_dataset_window(lst_range(5), 2, n, 1, false), op));
        LST_CHECK(lst_raises(ls_dataset_window(lst_range(5), 2, 1, n, false), op));
        LST_CHECK(lst_raises(ls_dataset_shuffle(lst_range(5), n, 1), op));
        LST_CHECK(lst_raises(ls_dataset_shard(lst_range(5), n, 0), op));
    }
    LST_CHECK(lst_raises(ls_dataset_shuffle(lst_range(5), -1, 1), op));
    LST_CHECK(lst_raises(ls_dataset_shard(lst_range(5), 3, 3), op));
    LST_CHECK(lst_raises(ls_dataset_shard(lst_range(5), 3, -1), op));
    LST_CHECK(lst_raises(ls_dataset_range(0, 5, 0), op));
    LST_CHECK(lst_raises(ls_dataset_prefetch(lst_range(5), -5), op));
    LST_CHECK(lst_raises(ls_dataset_prefetch(lst_range(5), -2), op));
    LST_CHECK(lst_raises(cycle(-5, 1, 0), op));
    LST_CHECK(lst_raises(cycle(2, -1, 0), op));
    LST_CHECK(lst_raises(cycle(2, 1, -5), op));
    LST_CHECK(lst_raises(cycle(2, 1, 4), op));
    LST_CHECK(lst_raises(ls_dataset_zip(NULL, 0), op));
    files.parallel = -2;
    LST_CHECK(
        lst_raises(ls_dataset_tfrecord_files((const char *[]){"a"}, 1, &files), op));
    LST_CHECK(lst_raises(
        ls_dataset_list_files((const char *[]){"/nowhere/*"}, 1, true, NULL), op));
    LST_CHECK(lst_raises(ls_dataset_unbatch(lst_range(5)), value));
    LST_CHECK(lst_raises(ls_dataset_rebatch(lst_range(5), (const int64_t[]){2}, 1, false),
                         value));
    LST_CHECK(lst_raises(ls_dataset_sample(NULL, 0, NULL, NULL, false), value));
    LST_CHECK(lst_raises(ls_dataset_choose(NULL, 0, lst_range(5), false), value));
    LST_CHECK(lst_raises(
        ls_dataset_concatenate(lst_range(5), lst_zip(lst_range(1), lst_range(2))),
        "TypeError"));
    LST_OK(ls_tensor_create(NULL, LS_I64, LS_SHAPE(2), NULL, &vector, NULL));
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SCALAR, NULL, &number, NULL));
    LST_CHECK(lst_raises(
        ls_dataset_padded_batch(lst_range(5), 2, NULL, &vector, 1, false), value));
    LST_CHECK(lst_raises(
        ls_dataset_padded_batch(lst_range(5), 2, NULL, &number, 1, false), "TypeError"));
    ls_tensor_release(vector);
    ls_tensor_release(number);
    LST_CHECK(lst_gives(ls_dataset_take(lst_range(3), -5), "0 1 2"));
    LST_CHECK(lst_gives(ls_dataset_skip(lst_range(3), -5), ""));
}

LST_TEST(a_failure_while_building_waits_for_the_iterator)
{
    ls_dataset *d = ls_dataset_batch(
        lst_zip(ls_dataset_take(ls_dataset_range(0, 1, 0), 3), lst_range(2)), 2);
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(ls_dataset_spec(d) == NULL);
    LST_FAILS(ls_dataset_iterate(d, &it, &err), LS_INVALID_ARGUMENT, err,
              "range: step must not be 0");
    ls_dataset_release(d);
    LST_FAILS(ls_dataset_iterate(NULL, &it, &err), LS_RESOURCE_EXHAUSTED, err, "dataset");
}

LST_TEST(options_travel_down_and_a_default_never_overrides)
{
    ls_data_options a = LS_DATA_OPTIONS_INIT, b = LS_DATA_OPTIONS_INIT;
    ls_dataset *d = NULL;

    a.auto_shard = LS_SHARD_DATA;
    a.external_state = LS_STATE_IGNORE;
    b.threads = 3;
    d = ls_dataset_batch(ls_dataset_with_options(lst_range(4), &a), 2);
    d = ls_dataset_with_options(d, &b);
    LST_CHECK(d->options.auto_shard == LS_SHARD_DATA);
    LST_CHECK(d->options.external_state == LS_STATE_IGNORE);
    LST_CHECK(d->options.threads == 3);
    b.auto_shard = LS_SHARD_OFF;
    d = ls_dataset_with_options(d, &b);
    LST_CHECK(d->options.auto_shard == LS_SHARD_OFF);
    LST_CHECK(lst_gives(d, "[0 1] [2 3]"));
    b.auto_shard = (ls_auto_shard)9;
    LST_CHECK(lst_code(ls_dataset_with_options(lst_range(1), &b)) == LS_INVALID_ARGUMENT);
}

LST_TEST(a_clone_has_its_own_state_and_shares_what_was_shared)
{
    ls_dataset *s = ls_dataset_shuffle(lst_range(4), 4, 42);
    ls_dataset *d = lst_zip(ls_dataset_retain(s), s), *copy = NULL;
    lst_text first = {{0}, 0};

    lst_put_events(&first, d, 60);
    copy = lsi_dataset_clone(d);
    LST_CHECK(copy->inputs[0] == copy->inputs[1] && copy->inputs[0] != d->inputs[0]);
    LST_CHECK(lst_gives(copy, first.s)); // from the first epoch again
    ls_dataset_release(d);
}

LST_TEST(batches_know_their_size_and_others_none)
{
    ls_dataset *d = ls_dataset_batch(lst_range(9), 4);

    LST_CHECK(lsi_dataset_batch_size(d) == 4);
    d = ls_dataset_take(d, 3);
    LST_CHECK(lsi_dataset_batch_size(d) == -1);
    LST_CHECK(strcmp(ls_dataset_kind(d), "take") == 0);
    ls_dataset_release(d);
}

LST_MAIN(LST_CASE(D92_what_does_not_go_together_is_an_invalid_argument),
         LST_CASE(a_bad_argument_is_the_exception_that_it_is_in_tensorflow),
         LST_CASE(a_failure_while_building_waits_for_the_iterator),
         LST_CASE(options_travel_down_and_a_default_never_overrides),
         LST_CASE(a_clone_has_its_own_state_and_shares_what_was_shared),
         LST_CASE(batches_know_their_size_and_others_none))
