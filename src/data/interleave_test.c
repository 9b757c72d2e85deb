/* flat_map and interleave: TensorFlow's order, failures, parallel reading, saving. */
#include "data/data_test.h"

static int64_t int_of(const ls_value *v)
{
    return *(const int64_t *)ls_tensor_data(ls_value_as_tensor(v));
}

/* x, x times. */
static ls_dataset *repeated(ls_value *x, void *user)
{
    (void)user;
    return ls_dataset_repeat(ls_dataset_tensors(x), int_of(x));
}

/* 10x, 10x + 1, ... for x elements. */
static ls_dataset *counted(ls_value *x, void *user)
{
    const int64_t n = int_of(x);

    (void)user;
    return ls_dataset_range(10 * n, 10 * n + n, 1);
}

static ls_dataset *fails_at_2(ls_value *x, void *user)
{
    return int_of(x) == 2 ? ls_dataset_range(0, 1, 0) : counted(x, user);
}

/* Fails with the codes that `user` lists for the elements. */
static ls_dataset *refused(ls_value *x, void *user)
{
    const ls_status *codes = user;
    const int64_t n = int_of(x);

    return ls_dataset_failed(codes[n], "no shard %lld", (long long)n);
}

static ls_dataset *none(ls_value *x, void *user)
{
    (void)x;
    (void)user;
    return NULL;
}

/* Pairs for 3, numbers for others. */
static ls_dataset *mixed(ls_value *x, void *user)
{
    return int_of(x) == 3 ? ls_dataset_enumerate(counted(x, user), 0) : counted(x, user);
}

/* The inner dataset fails in the middle: batches of unequal shapes. */
static ls_dataset *broken_inside(ls_value *x, void *user)
{
    ls_dataset *d = ls_dataset_batch(counted(x, user), 2);

    d = ls_dataset_batch(ls_dataset_concatenate(d, ls_dataset_batch(counted(x, user), 1)),
                         2);
    return d;
}

static ls_dataset *themselves(ls_value *x, void *user)
{
    (void)user;
    return ls_dataset_retain(ls_value_as_dataset(x));
}

static ls_dataset *interleave_of(ls_dataset *d, ls_dataset_fn fn, int64_t cycle,
                                 int64_t block, int parallel)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;

    o.cycle = cycle;
    o.block = block;
    o.parallel = parallel;
    return ls_dataset_interleave(d, fn, NULL, &o);
}

static ls_dataset *four_five_six(void)
{
    return lst_slices(LST_INTS(4, 5, 6, 4, 5, 6));
}

LST_TEST(D87_slots_are_visited_in_turn_and_filled_when_the_cursor_comes_back)
{
    for (int parallel = 0; parallel <= 2; parallel++) {
        LST_CHECK(
            lst_gives(interleave_of(four_five_six(), repeated, 2, 1, parallel),
                      "4 5 4 5 4 5 4 5 5 6 6 4 6 4 6 4 6 4 6 5 6 5 6 5 6 5 6 5 6 6"));
        LST_CHECK(
            lst_gives(interleave_of(four_five_six(), repeated, 2, 3, parallel),
                      "4 4 4 5 5 5 4 5 5 6 6 6 4 4 4 6 6 6 4 5 5 5 6 6 6 5 5 6 6 6"));
        LST_CHECK(lst_gives(interleave_of(lst_slices(LST_INTS(4, 0, 6, 4, 0, 6)),
                                          repeated, 2, 1, parallel),
                            "4 4 6 4 6 4 6 6 4 6 4 6 4 4 6 6 6 6 6 6"));
    }
}

LST_TEST(a_cycle_may_be_longer_than_the_input)
{
    LST_CHECK(lst_gives(interleave_of(lst_range(4), counted, 1000000000, 1, 0),
                        "10 20 30 21 31 32"));
    LST_CHECK(
        lst_gives(interleave_of(lst_range(4), counted, 7, 2, 7), "10 20 21 30 31 32"));
}

LST_TEST(flat_map_is_one_dataset_after_the_other)
{
    LST_CHECK(lst_gives(ls_dataset_flat_map(lst_range(4), counted, NULL, NULL),
                        "10 20 21 30 31 32"));
    LST_CHECK(lst_gives(ls_dataset_flat_map(lst_range(0), counted, NULL, NULL), ""));
    LST_CHECK(
        lst_gives(ls_dataset_flat_map(ls_dataset_window(lst_range(5), 2, 1, 2, true),
                                      themselves, NULL, NULL),
                  "0 2 1 3 2 4"));
}

LST_TEST(batches_and_skips_take_whole_visits)
{
    LST_CHECK(lst_gives(
        ls_dataset_batch(ls_dataset_flat_map(lst_range(5), counted, NULL, NULL), 4),
        "[10 20 21 30] [31 32 40 41] [42 43]"));
    LST_CHECK(lst_gives(
        ls_dataset_batch(interleave_of(four_five_six(), repeated, 2, 3, 0), 4),
        "[4 4 4 5] [5 5 4 5] [5 6 6 6] [4 4 4 6] [6 6 4 5] [5 5 6 6] [6 5 5 6] [6 6]"));
    LST_CHECK(
        lst_gives(ls_dataset_skip(interleave_of(four_five_six(), repeated, 2, 3, 0), 5),
                  "5 4 5 5 6 6 6 4 4 4 6 6 6 4 5 5 5 6 6 6 5 5 6 6 6"));
}

LST_TEST(what_cannot_be_opened_fails_once_and_the_next_goes_on)
{
    LST_CHECK(lst_gives(ls_dataset_flat_map(lst_range(4), fails_at_2, NULL, NULL),
                        "10 !INVALID_ARGUMENT 30 31 32"));
    LST_CHECK(lst_gives(interleave_of(lst_range(4), fails_at_2, 2, 1, 2),
                        "10 !INVALID_ARGUMENT 30 31 32"));
    LST_CHECK(lst_gives(ls_dataset_flat_map(lst_range(2), none, NULL, NULL),
                        "!RESOURCE_EXHAUSTED !RESOURCE_EXHAUSTED"));
    LST_CHECK(lst_gives(ls_dataset_flat_map(lst_range(5), mixed, NULL, NULL),
                        "10 20 21 !INVALID_ARGUMENT 40 41 42 43"));
}

LST_TEST(why_a_function_opens_nothing_is_told)
{
    ls_status codes[] = {LS_NOT_FOUND, LS_OUT_OF_RANGE, LS_OK, LS_UNAVAILABLE};
    ls_dataset *d = ls_dataset_flat_map(lst_range(4), refused, codes, NULL);
    ls_error err = LS_ERROR_INIT;
    ls_iterator *it = NULL;
    ls_value *v = NULL;

    LST_CHECK(lst_epoch(d, "!NOT_FOUND !INVALID_ARGUMENT !UNKNOWN !UNAVAILABLE"));
    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_FAILS(ls_iterator_next(it, &v, &err), LS_NOT_FOUND, err, "no shard 0");
    ls_iterator_release(it);
    ls_dataset_release(d);
    d = ls_dataset_failed(LS_ABORTED, "%s", "x");
    LST_CHECK(strcmp(ls_dataset_kind(d), "failed") == 0 && ls_dataset_spec(d) == NULL);
    LST_FAILS(ls_dataset_status(d, &err), LS_ABORTED, err, "x");
    LST_FAILS(ls_dataset_iterate(d, &it, &err), LS_ABORTED, err, "x");
    ls_dataset_release(d);
}

LST_TEST(a_failure_inside_stays_in_its_place)
{
    LST_CHECK(lst_gives(
        ls_dataset_flat_map(lst_slices(LST_INTS(2, 3)), broken_inside, NULL, NULL),
        "!INVALID_ARGUMENT [[21]] !INVALID_ARGUMENT [[30] [31]] [[32]]"));
    LST_CHECK(lst_gives(interleave_of(lst_slices(LST_INTS(2, 3)), broken_inside, 2, 1, 2),
                        "!INVALID_ARGUMENT [[21]] !INVALID_ARGUMENT [[30] [31]] [[32]]"));
}

LST_TEST(elements_are_described_by_the_function_or_by_the_options)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;
    ls_dataset *d = ls_dataset_flat_map(lst_range(4), counted, NULL, NULL);
    ls_spec *want = NULL;

    LST_OK(ls_spec_tensor(LS_I64, 0, NULL, &want, NULL));
    LST_CHECK(ls_spec_equal(ls_dataset_spec(d), want));
    LST_CHECK(ls_dataset_cardinality(d) == LS_UNKNOWN_SIZE);
    ls_dataset_release(d);
    LST_OK(ls_spec_tensor(LS_F32, 0, NULL, &o.spec, NULL));
    d = ls_dataset_flat_map(lst_range(3), counted, NULL, &o);
    LST_CHECK(ls_spec_equal(ls_dataset_spec(d), o.spec));
    LST_CHECK(lst_gives(d, "!INVALID_ARGUMENT !INVALID_ARGUMENT !INVALID_ARGUMENT"));
    // reading a shuffle would draw seeds, so the spec stays unknown
    d = ls_dataset_flat_map(ls_dataset_shuffle(lst_range(4), 4, 1), counted, NULL, NULL);
    LST_CHECK(lsi_spec_is_unknown(ls_dataset_spec(d)));
    ls_dataset_release(d);
    ls_spec_release(o.spec);
    ls_spec_release(want);
}

LST_TEST(the_order_of_a_shuffle_does_not_depend_on_who_asks_for_a_spec)
{
    ls_dataset *plain = ls_dataset_shuffle(lst_range(4), 4, 42);
    ls_dataset *d = ls_dataset_flat_map(ls_dataset_shuffle(lst_range(4), 4, 42), repeated,
                                        NULL, NULL);
    lst_text t = {{0}, 0}, flat = {{0}, 0};

    lst_put_events(&t, plain, 9);
    lst_put_events(&flat, ls_dataset_retain(d), 60);
    ls_dataset_release(d);
    LST_CHECK(t.n == 7 && flat.n == 11);
    for (size_t i = 0, k = 0; i < t.n; i += 2) { // x occurs x times
        for (int n = t.s[i] - '0'; n > 0; n--, k += 2) {
            LST_CHECK(flat.s[k] == t.s[i]);
        }
    }
    ls_dataset_release(plain);
    ls_dataset_release(d);
}

LST_TEST(wrong_arguments_of_an_interleave_are_refused)
{
    LST_CHECK(lst_code(interleave_of(lst_range(2), NULL, 1, 1, 0)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(interleave_of(lst_range(2), counted, -2, 1, 0)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(interleave_of(lst_range(2), counted, 1, -1, 0)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(interleave_of(lst_range(2), counted, 2, 1, 3)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(interleave_of(lst_range(2), counted, 2, 1, -2)) ==
              LS_INVALID_ARGUMENT);
}

LST_TEST(a_parallel_interleave_of_an_endless_input_is_endless)
{
    ls_dataset *d = ls_dataset_repeat(lst_range(2), -1);

    d = interleave_of(d, counted, 2, 1, 2);
    LST_CHECK(ls_dataset_cardinality(d) == LS_INFINITE);
    LST_CHECK(strcmp(ls_dataset_kind(d), "parallel_interleave") == 0);
    LST_CHECK(lst_gives(ls_dataset_take(d, 3), "10 10 10"));
}

LST_TEST(a_reader_is_told)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;
    ls_dataset *d = NULL, *again = NULL;

    o.reader = "tfrecord";
    d = ls_dataset_interleave(lst_range(2), counted, NULL, &o);
    LST_CHECK(strcmp(lsi_dataset_reader(d), "tfrecord") == 0);
    again = lsi_dataset_clone(d);
    ls_dataset_release(d);
    LST_CHECK(strcmp(lsi_dataset_reader(again), "tfrecord") == 0);
    ls_dataset_release(again);
}

static ls_dataset *saved_flat(void)
{
    return ls_dataset_repeat(
        ls_dataset_flat_map(ls_dataset_shuffle(lst_range(4), 4, 3), counted, NULL, NULL),
        2);
}

static ls_dataset *saved_turns(void)
{
    return interleave_of(four_five_six(), counted, 2, 3, 0);
}

static ls_dataset *saved_parallel(void)
{
    return interleave_of(ls_dataset_shuffle(lst_range(6), 4, 3), counted, 3, 2, 3);
}

LST_TEST(interleaves_continue_where_they_were_saved)
{
    LST_SAVES(saved_flat);
    LST_SAVES(saved_turns);
    LST_SAVES(saved_parallel);
}

LST_MAIN(LST_CASE(D87_slots_are_visited_in_turn_and_filled_when_the_cursor_comes_back),
         LST_CASE(a_cycle_may_be_longer_than_the_input),
         LST_CASE(flat_map_is_one_dataset_after_the_other),
         LST_CASE(batches_and_skips_take_whole_visits),
         LST_CASE(what_cannot_be_opened_fails_once_and_the_next_goes_on),
         LST_CASE(why_a_function_opens_nothing_is_told),
         LST_CASE(a_failure_inside_stays_in_its_place),
         LST_CASE(elements_are_described_by_the_function_or_by_the_options),
         LST_CASE(the_order_of_a_shuffle_does_not_depend_on_who_asks_for_a_spec),
         LST_CASE(wrong_arguments_of_an_interleave_are_refused),
         LST_CASE(a_parallel_interleave_of_an_endless_input_is_endless),
         LST_CASE(a_reader_is_told), LST_CASE(interleaves_continue_where_they_were_saved))
