/* Sources, the operators that count, cut and join, specs and cardinalities. */
#include "data/data_test.h"

static int64_t size_of(ls_dataset *d)
{
    const int64_t n = ls_dataset_cardinality(d);

    ls_dataset_release(d);
    return n;
}

static ls_dataset *for_ever(void)
{
    return ls_dataset_repeat(lst_range(5), -1);
}

/* A dataset whose size nobody knows. */
static ls_dataset *unknown(int64_t n)
{
    return ls_dataset_unbatch(ls_dataset_batch(lst_range(n), 2));
}

static ls_dataset *zip(ls_dataset *a, ls_dataset *b)
{
    return ls_dataset_zip((ls_dataset *[]){a, b}, 2);
}

LST_TEST(D88_cardinality_follows_from_that_of_the_inputs)
{
    LST_CHECK(size_of(ls_dataset_batch(lst_range(5), 2)) == 3);
    LST_CHECK(size_of(ls_dataset_batch_exact(lst_range(5), 2)) == 2);
    LST_CHECK(size_of(ls_dataset_repeat(lst_range(1), -1)) == LS_INFINITE);
    LST_CHECK(size_of(ls_dataset_repeat(lst_range(0), -1)) == 0);
    LST_CHECK(size_of(ls_dataset_repeat(lst_range(3), 4)) == 12);
    LST_CHECK(size_of(ls_dataset_repeat(for_ever(), 0)) == 0);
    LST_CHECK(size_of(ls_dataset_take(for_ever(), 2)) == 2);
    LST_CHECK(size_of(ls_dataset_take(unknown(5), 2)) == LS_UNKNOWN_SIZE);
    LST_CHECK(size_of(ls_dataset_range(10, 5, -2)) == 3);
    LST_CHECK(size_of(ls_dataset_range(INT64_MIN, INT64_MAX, 1)) == INT64_MAX);
    LST_CHECK(size_of(ls_dataset_shard(lst_range(5), 8, 7)) == 0);
    LST_CHECK(size_of(ls_dataset_shard(lst_range(5), 2, 0)) == 3);
    LST_CHECK(size_of(ls_dataset_skip(lst_range(5), 8)) == 0);
    LST_CHECK(size_of(ls_dataset_skip(lst_range(5), -1)) == 0);
    LST_CHECK(size_of(zip(lst_range(5), ls_dataset_repeat(lst_range(3), -1))) == 5);
    LST_CHECK(size_of(zip(lst_range(5), unknown(5))) == LS_UNKNOWN_SIZE);
    LST_CHECK(size_of(zip(for_ever(), for_ever())) == LS_INFINITE);
    LST_CHECK(size_of(ls_dataset_concatenate(lst_range(5), for_ever())) == LS_INFINITE);
    LST_CHECK(size_of(ls_dataset_concatenate(for_ever(), unknown(5))) == LS_INFINITE);
    LST_CHECK(size_of(ls_dataset_concatenate(lst_range(5), lst_range(2))) == 7);
    LST_CHECK(size_of(ls_dataset_unbatch(ls_dataset_batch_exact(lst_range(7), 2))) == 6);
    LST_CHECK(size_of(ls_dataset_enumerate(lst_range(4), 7)) == 4);
    LST_CHECK(size_of(ls_dataset_assert_cardinality(unknown(5), 5)) == 5);
}

LST_TEST(a_range_counts_up_and_down)
{
    LST_CHECK(lst_gives(ls_dataset_range(2, 10, 3), "2 5 8"));
    LST_CHECK(lst_gives(ls_dataset_range(10, 5, -2), "10 8 6"));
    LST_CHECK(lst_gives(ls_dataset_range(5, 2, 1), ""));
    LST_CHECK(
        lst_gives(ls_dataset_range(INT64_MAX - 1, INT64_MAX, 5), "9223372036854775806"));
    LST_CHECK(lst_gives(ls_dataset_batch(lst_range(130), 129),
                        "[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 "
                        "24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 "
                        "45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 "
                        "66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 "
                        "87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 "
                        "106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 "
                        "122 123 124 125 126 127 128] [129]"));
}

static ls_value *pair(ls_value *a, ls_value *b)
{
    ls_value *v = NULL;

    LST_OK(ls_value_tuple((ls_value *[]){a, b}, 2, &v, NULL));
    ls_value_release(a);
    ls_value_release(b);
    return v;
}

static ls_value *strings(size_t n, const char *const *s)
{
    ls_string items[8];
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    for (size_t i = 0; i < n; i++) {
        items[i] = (ls_string){s[i], strlen(s[i])};
    }
    LST_OK(ls_tensor_create(NULL, LS_STRING, LS_SHAPE((int64_t)n), n > 0 ? items : NULL,
                            &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return v;
}
#define STRINGS(...)                                                                     \
    strings(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                      \
            (const char *[]){__VA_ARGS__})

LST_TEST(D92_what_does_not_go_together_is_an_invalid_argument)
{
    ls_dataset *d = NULL;
    ls_error err = LS_ERROR_INIT;

    d = lst_slices(pair(LST_INTS(1, 2, 3), LST_INTS(4, 5)));
    LST_FAILS(ls_dataset_status(d, &err), LS_INVALID_ARGUMENT, err, "3 and 2");
    ls_dataset_release(d);
    LST_CHECK(lst_code(ls_dataset_shard(lst_range(5), 0, 0)) == LS_INVALID_ARGUMENT);
    d = ls_dataset_shard(lst_range(5), 5, 7);
    LST_FAILS(ls_dataset_status(d, &err), LS_INVALID_ARGUMENT, err, "index 7 of 5");
    ls_dataset_release(d);
    LST_CHECK(lst_code(ls_dataset_range(0, 5, 0)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_batch(lst_range(5), 0)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_unbatch(lst_range(5))) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_concatenate(
                  lst_range(5), zip(lst_range(1), lst_range(2)))) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_slices(NULL)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_zip(NULL, 0)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_gives(ls_dataset_take(lst_range(3), -1), "0 1 2"));
    LST_CHECK(lst_gives(ls_dataset_skip(lst_range(3), -1), ""));
}

/* Whether a dataset fails as TensorFlow's builder does: with this exception. */
static bool raises(ls_dataset *d, const char *python)
{
    ls_error err = LS_ERROR_INIT;
    const bool same = ls_dataset_status(d, &err) == LS_INVALID_ARGUMENT &&
                      strcmp(ls_error_python(&err), python) == 0;

    if (!same) {
        (void)fprintf(stderr, "  gave   %s: %s\n", ls_error_python(&err), err.message);
    }
    ls_dataset_release(d);
    return same;
}

static ls_dataset *cycle(int64_t inputs, int64_t block, int parallel)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;

    o.cycle = inputs;
    o.block = block;
    o.parallel = parallel;
    return ls_dataset_interleave(lst_range(5), (ls_dataset_fn)NULL, NULL, &o);
}

/* TensorFlow 2.21's answers, asked one by one. */
LST_TEST(a_bad_argument_is_the_exception_that_it_is_in_tensorflow)
{
    static const char *const op = "InvalidArgumentError", *const value = "ValueError";
    const int64_t bad[] = {0, -5};
    ls_read_options files = LS_READ_OPTIONS_INIT;
    ls_tensor *vector = NULL, *number = NULL;

    for (size_t i = 0; i < LSI_COUNT_OF(bad); i++) {
        const int64_t n = bad[i];

        LST_CHECK(raises(ls_dataset_batch(lst_range(5), n), op));
        LST_CHECK(raises(ls_dataset_batch_exact(lst_range(5), n), n < 0 ? value : op));
        LST_CHECK(
            raises(ls_dataset_padded_batch(lst_range(5), n, NULL, NULL, 0, false), op));
        LST_CHECK(raises(ls_dataset_window(lst_range(5), n, 1, 1, false), op));
        LST_CHECK(raises(ls_dataset_window(lst_range(5), 2, n, 1, false), op));
        LST_CHECK(raises(ls_dataset_window(lst_range(5), 2, 1, n, false), op));
        LST_CHECK(raises(ls_dataset_shuffle(lst_range(5), n, 1), op));
        LST_CHECK(raises(ls_dataset_shard(lst_range(5), n, 0), op));
    }
    LST_CHECK(raises(ls_dataset_shuffle(lst_range(5), -1, 1), op));
    LST_CHECK(raises(ls_dataset_shard(lst_range(5), 3, 3), op));
    LST_CHECK(raises(ls_dataset_shard(lst_range(5), 3, -1), op));
    LST_CHECK(raises(ls_dataset_range(0, 5, 0), op));
    LST_CHECK(raises(ls_dataset_prefetch(lst_range(5), -5), op));
    LST_CHECK(raises(ls_dataset_prefetch(lst_range(5), -2), op));
    LST_CHECK(raises(cycle(-5, 1, 0), op));
    LST_CHECK(raises(cycle(2, -1, 0), op));
    LST_CHECK(raises(cycle(2, 1, -5), op));
    LST_CHECK(raises(cycle(2, 1, 4), op));
    LST_CHECK(raises(ls_dataset_zip(NULL, 0), op));
    files.parallel = -2;
    LST_CHECK(raises(ls_dataset_tfrecord_files((const char *[]){"a"}, 1, &files), op));
    LST_CHECK(
        raises(ls_dataset_list_files((const char *[]){"/nowhere/*"}, 1, true, NULL), op));
    LST_CHECK(raises(ls_dataset_unbatch(lst_range(5)), value));
    LST_CHECK(
        raises(ls_dataset_rebatch(lst_range(5), (const int64_t[]){2}, 1, false), value));
    LST_CHECK(raises(ls_dataset_sample(NULL, 0, NULL, NULL, false), value));
    LST_CHECK(raises(ls_dataset_choose(NULL, 0, lst_range(5), false), value));
    LST_CHECK(
        raises(ls_dataset_concatenate(lst_range(5), zip(lst_range(1), lst_range(2))),
               "TypeError"));
    LST_OK(ls_tensor_create(NULL, LS_I64, LS_SHAPE(2), NULL, &vector, NULL));
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SCALAR, NULL, &number, NULL));
    LST_CHECK(
        raises(ls_dataset_padded_batch(lst_range(5), 2, NULL, &vector, 1, false), value));
    LST_CHECK(raises(ls_dataset_padded_batch(lst_range(5), 2, NULL, &number, 1, false),
                     "TypeError"));
    ls_tensor_release(vector);
    ls_tensor_release(number);
    LST_CHECK(lst_gives(ls_dataset_take(lst_range(3), -5), "0 1 2"));
    LST_CHECK(lst_gives(ls_dataset_skip(lst_range(3), -5), ""));
}

LST_TEST(a_batch_that_must_be_full_leaves_the_rest_out)
{
    LST_CHECK(lst_gives(ls_dataset_batch_exact(lst_range(5), 2), "[0 1] [2 3]"));
    LST_CHECK(lst_gives(ls_dataset_batch(lst_range(5), 2), "[0 1] [2 3] [4]"));
    LST_CHECK(lst_gives(ls_dataset_batch_exact(lst_range(1), 2), ""));
}

LST_TEST(D92_a_concatenation_knows_the_sizes_that_both_have)
{
    ls_dataset *a = ls_dataset_batch_exact(lst_range(4), 2);
    ls_dataset *d = ls_dataset_concatenate(a, ls_dataset_batch_exact(lst_range(6), 3));

    LST_CHECK(lst_spec_is(d, "int64 (None,)"));
    LST_CHECK(lst_gives(d, "[0 1] [2 3] [0 1 2] [3 4 5]"));
}

/* Batches of the sizes 2, 2 and 3, one after the other. */
static ls_dataset *uneven(void)
{
    return ls_dataset_concatenate(
        ls_dataset_batch(lst_range(4), 2),
        ls_dataset_concatenate(ls_dataset_batch(lst_range(3), 3),
                               ls_dataset_batch(lst_range(4), 2)));
}

LST_TEST(D92_a_batch_of_unequal_elements_fails_and_the_next_one_goes_on)
{
    ls_dataset *d = ls_dataset_batch(uneven(), 2);
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(lst_gives(d, "[[0 1] [2 3]] !INVALID_ARGUMENT [[2 3]]"));
    d = ls_dataset_skip(ls_dataset_batch(uneven(), 2), 1);
    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_FAILS(ls_iterator_next(it, &v, &err), LS_INVALID_ARGUMENT, err,
              "component 0 is int64 (3,) in the first element and int64 (2,)");
    ls_iterator_release(it);
    ls_dataset_release(d);
}

LST_TEST(strings_of_a_batch_outlive_the_elements_they_came_from)
{
    ls_dataset *d = lst_slices(pair(STRINGS("a", "", "ccc"), LST_INTS(1, 2, 3)));
    ls_dataset *shuffled = ls_dataset_shuffle(ls_dataset_retain(d), 3, 1);

    LST_CHECK(lst_spec_is(d, "(string (), int64 ())"));
    LST_CHECK(lst_gives(ls_dataset_batch(d, 2), "([a ],[1 2]) ([ccc],[3])"));
    LST_CHECK(
        lst_gives(ls_dataset_batch(ls_dataset_unbatch(ls_dataset_batch(shuffled, 2)), 3),
                  "([ ccc a],[2 3 1])"));
}

LST_TEST(a_list_given_to_a_source_is_one_tensor)
{
    ls_value *list = NULL, *a = LST_INTS(1, 2), *b = LST_INTS(3, 4);

    LST_OK(ls_value_list((ls_value *[]){a, b}, 2, &list, NULL));
    LST_CHECK(lst_gives(ls_dataset_slices(list), "[1 2] [3 4]"));
    LST_CHECK(lst_gives(ls_dataset_tensors(list), "[[1 2] [3 4]]"));
    ls_value_release(list);
    ls_value_release(a);
    ls_value_release(b);
}

LST_TEST(dicts_go_through_batch_unbatch_and_zip_by_sorted_keys)
{
    ls_value *items[] = {LST_INTS(1, 2, 3), LST_INTS(4, 5, 6)}, *dict = NULL;
    ls_dataset *d = NULL;

    LST_OK(ls_value_dict((const char *[]){"b", "a"}, items, 2, &dict, NULL));
    ls_value_release(items[0]);
    ls_value_release(items[1]);
    d = lst_slices(dict);
    LST_CHECK(lst_spec_is(d, "{'a': int64 (), 'b': int64 ()}"));
    d = ls_dataset_enumerate(ls_dataset_unbatch(ls_dataset_batch(d, 2)), 10);
    LST_CHECK(lst_gives(ls_dataset_batch(d, 2),
                        "([10 11],{a:[4 5],b:[1 2]}) ([12],{a:[6],b:[3]})"));
}

static ls_dataset *fours(int64_t n)
{
    return ls_dataset_batch(lst_range(n), 4);
}

static ls_dataset *rebatch(ls_dataset *d, size_t n, const int64_t *sizes, bool exact)
{
    return ls_dataset_rebatch(d, sizes, n, exact);
}
#define REBATCH(d, exact, ...)                                                           \
    rebatch(d, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                 \
            (const int64_t[]){__VA_ARGS__}, exact)

LST_TEST(D25_rebatch_takes_sizes_in_turn_and_zero_asks_for_nothing)
{
    LST_CHECK(lst_gives(REBATCH(fours(8), false, 1, 1, 1, 1, 0),
                        "[0] [1] [2] [3] [] [4] [5] [6] [7] []"));
    LST_CHECK(lst_gives(REBATCH(fours(8), false, 0, 1),
                        "[] [0] [] [1] [] [2] [] [3] [] [4] [] [5] [] [6] [] [7] []"));
    LST_CHECK(lst_code(REBATCH(fours(8), false, -1)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(REBATCH(lst_range(8), false, 2)) == LS_INVALID_ARGUMENT);
}

LST_TEST(D26_rebatch_gives_a_short_batch_at_the_end_unless_it_is_dropped)
{
    ls_dataset *d = ls_dataset_batch_exact(lst_range(12), 4);

    LST_CHECK(lst_gives(REBATCH(fours(5), false, 2, 2), "[0 1] [2 3] [4]"));
    LST_CHECK(lst_gives(REBATCH(fours(5), true, 2, 2), "[0 1] [2 3]"));
    LST_CHECK(lst_gives(REBATCH(fours(12), false, 6), "[0 1 2 3 4 5] [6 7 8 9 10 11]"));
    d = REBATCH(d, false, 2);
    LST_CHECK(lst_spec_is(d, "int64 (2,)"));
    d = REBATCH(d, false, 3);
    LST_CHECK(lst_spec_is(d, "int64 (None,)"));
    LST_CHECK(lst_gives(d, "[0 1 2] [3 4 5] [6 7 8] [9 10 11]"));
    LST_CHECK(lst_gives(REBATCH(ls_dataset_batch(uneven(), 1), false, 2),
                        "[[0 1] [2 3]] !FAILED_PRECONDITION [[2 3]]"));
}

LST_TEST(legacy_rebatch_cuts_every_batch_into_as_many_pieces)
{
    ls_dataset *d = lsi_dataset_legacy_rebatch(fours(6), 3);

    LST_CHECK(lst_spec_is(d, "int64 (None,)"));
    LST_CHECK(lst_gives(d, "[0 1] [2 3] [] [4] [5] []"));
    LST_CHECK(lst_gives(lsi_dataset_legacy_rebatch(ls_dataset_batch(lst_range(9), 9), 4),
                        "[0 1 2] [3 4 5] [6 7 8] []"));
    d = lsi_dataset_legacy_rebatch(ls_dataset_batch_exact(lst_range(4), 4), 2);
    LST_CHECK(lst_spec_is(d, "int64 (2,)"));
    LST_CHECK(lst_gives(d, "[0 1] [2 3]"));
    LST_CHECK(lst_code(lsi_dataset_legacy_rebatch(lst_range(3), 2)) ==
              LS_INVALID_ARGUMENT);
}

LST_TEST(D43_a_shard_that_demands_inputs_fails_where_it_got_one)
{
    ls_dataset *d = lsi_dataset_shard_required(lst_range(5), 10, 0);
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_FAILS(ls_iterator_next(it, &v, &err), LS_INVALID_ARGUMENT, err, "only 1 file");
    ls_iterator_release(it);
    ls_dataset_release(d);
    LST_CHECK(lst_gives(lsi_dataset_shard_required(lst_range(5), 10, 7), ""));
    LST_CHECK(lst_gives(lsi_dataset_shard_required(lst_range(0), 10, 0), ""));
    LST_CHECK(lst_gives(lsi_dataset_shard_required(lst_range(7), 3, 1), "1 4"));
    LST_CHECK(
        lst_gives(lsi_dataset_shard_required(lst_range(2), 3, 1), "!INVALID_ARGUMENT"));
    LST_CHECK(lst_gives(ls_dataset_shard(lst_range(7), 3, 0), "0 3 6"));
    LST_CHECK(lst_gives(ls_dataset_shard(lst_range(2), 5, 4), ""));
}

LST_TEST(D65_a_hint_cannot_be_iterated)
{
    ls_dataset *d = ls_dataset_shard(lst_range(5), LS_SHARD_HINT, 0);

    LST_CHECK(lsi_dataset_is_hint(d));
    LST_CHECK(ls_dataset_cardinality(d) == LS_UNKNOWN_SIZE);
    LST_CHECK(lst_gives(d, "!FAILED_PRECONDITION"));
}

/* ---- a source of the test's, which fails where it is told to ---- */

struct script {
    const char *events; // digits are elements, '!' a failure, 's' a wrong element
    int open;
};

struct reading {
    struct script *script;
    const char *at;
};

static ls_status open_script(void *user, void **state, ls_error *err)
{
    struct script *script = user;
    struct reading *r = lsi_alloc(1, sizeof *r);

    if (r == NULL) {
        return lsi_fail_memory(err, "a script", sizeof *r);
    }
    *r = (struct reading){script, script->events};
    script->open++;
    *state = r;
    return LS_OK;
}

static ls_status next_of_script(void *state, ls_value **out, ls_error *err)
{
    struct reading *r = state;
    const char c = *r->at;
    ls_tensor *t = NULL;
    ls_status st;

    if (c == '\0') {
        return LS_OUT_OF_RANGE;
    }
    r->at++;
    if (c == '!') {
        return lsi_fail(err, LS_DATA_LOSS, -1, "the script says so");
    }
    const int64_t x = c - '0';
    st = c == 's' ? ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), NULL, &t, err)
                  : ls_tensor_create(NULL, LS_I64, LS_SCALAR, &x, &t, err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static void close_script(void *state)
{
    ((struct reading *)state)->script->open--;
    lsi_free(state);
}

static ls_dataset *play(struct script *script)
{
    const ls_source source = {sizeof source, open_script, next_of_script, close_script,
                              script};
    ls_spec *spec = NULL;
    ls_dataset *d = NULL;

    LST_OK(ls_spec_tensor(LS_I64, 0, NULL, &spec, NULL));
    d = ls_dataset_source(&source, spec);
    ls_spec_release(spec);
    return d;
}

LST_TEST(a_source_of_the_users_is_checked_against_its_spec)
{
    struct script script = {"1s2", 0};
    ls_dataset *d = play(&script);
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(lst_epoch(d, "1 !INVALID_ARGUMENT 2"));
    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_OK(ls_iterator_next(it, &v, &err));
    ls_value_release(v);
    LST_FAILS(ls_iterator_next(it, &v, &err), LS_INVALID_ARGUMENT, err,
              "int64 () was declared, this one is float32 (2,)");
    ls_iterator_release(it);
    LST_CHECK(script.open == 0);
    LST_CHECK(lst_code(ls_dataset_source(NULL, NULL)) == LS_INVALID_ARGUMENT);
    ls_dataset_release(d);
}

LST_TEST(after_a_failure_every_operator_goes_on_with_the_next_element)
{
    struct script script = {"12!345", 0};

    LST_CHECK(lst_gives(ls_dataset_take(play(&script), 4), "1 2 !DATA_LOSS 3 4"));
    LST_CHECK(lst_gives(ls_dataset_skip(play(&script), 3), "!DATA_LOSS"));
    LST_CHECK(lst_gives(ls_dataset_shard(ls_dataset_batch(uneven(), 2), 3, 1),
                        "!INVALID_ARGUMENT [[2 3]]")); // a batch passed over may fail
    LST_CHECK(lst_gives(ls_dataset_repeat(play(&script), 2),
                        "1 2 !DATA_LOSS 3 4 5 1 2 !DATA_LOSS 3 4 5"));
    // what the failing batch had gathered is lost, as in TensorFlow
    LST_CHECK(lst_gives(ls_dataset_batch(play(&script), 3), "!DATA_LOSS [3 4 5]"));
    LST_CHECK(lst_gives(zip(lst_range(9), play(&script)),
                        "(0,1) (1,2) !DATA_LOSS (3,3) (4,4) (5,5)"));
    LST_CHECK(lst_gives(ls_dataset_ignore_errors(play(&script)), "1 2 3 4 5"));
    LST_CHECK(lst_gives(ls_dataset_shuffle(play(&script), 2, 1), "1 !DATA_LOSS 3 4 5 2"));
    LST_CHECK(lst_gives(ls_dataset_concatenate(play(&script), lst_range(2)),
                        "1 2 !DATA_LOSS 3 4 5 0 1"));
    LST_CHECK(script.open == 0);
}

/* Each pass has one digit less. */
static ls_status open_rest(void *user, void **state, ls_error *err)
{
    struct script *script = user;
    const ls_status st = open_script(user, state, err);

    if (st == LS_OK) {
        script->events += *script->events != '\0';
    }
    return st;
}

LST_TEST(an_endless_repeat_ends_with_the_first_pass_that_gives_nothing)
{
    struct script script = {"12", 0};
    const ls_source source = {sizeof source, open_rest, next_of_script, close_script,
                              &script};

    LST_CHECK(
        lst_gives(ls_dataset_repeat(ls_dataset_source(&source, NULL), -1), "1 2 2"));
    LST_CHECK(script.open == 0);
}

static ls_status always_fails(void *state, ls_value **out, ls_error *err)
{
    (void)state;
    (void)out;
    return lsi_fail(err, LS_NOT_FOUND, -1, "again and again");
}

LST_TEST(a_failure_that_comes_back_for_ever_is_not_ignored)
{
    const ls_source source = {sizeof source, NULL, always_fails, NULL, NULL};
    ls_dataset *d = ls_dataset_ignore_errors(ls_dataset_source(&source, NULL));
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_FAILS(ls_iterator_next(it, &v, &err), LS_NOT_FOUND, err, "again");
    ls_iterator_release(it);
    ls_dataset_release(d);
}

/* The first four answers. */
static bool begins(ls_dataset *d, const char *want)
{
    lst_text t = {{0}, 0};

    lst_put_events(&t, d, 4);
    ls_dataset_release(d);
    return lst_same(&t, want);
}

LST_TEST(a_promised_number_of_elements_is_checked_and_the_failure_stays)
{
    LST_CHECK(begins(ls_dataset_assert_cardinality(lst_range(2), 2), "0 1"));
    LST_CHECK(begins(ls_dataset_assert_cardinality(lst_range(2), 3),
                     "0 1 !FAILED_PRECONDITION !FAILED_PRECONDITION ..."));
    LST_CHECK(begins(ls_dataset_assert_cardinality(lst_range(2), LS_INFINITE),
                     "0 1 !FAILED_PRECONDITION !FAILED_PRECONDITION ..."));
    LST_CHECK(begins(ls_dataset_assert_cardinality(lst_range(3), 2),
                     "0 1 !FAILED_PRECONDITION !FAILED_PRECONDITION ..."));
}

LST_TEST(an_endless_repeat_of_nothing_ends)
{
    LST_CHECK(lst_gives(ls_dataset_repeat(lst_range(0), -1), ""));
    LST_CHECK(lst_gives(ls_dataset_repeat(lst_range(0), 3), ""));
    LST_CHECK(lst_gives(ls_dataset_repeat(lst_range(3), 0), ""));
    LST_CHECK(lst_gives(ls_dataset_take(for_ever(), 7), "0 1 2 3 4 0 1"));
}

LST_TEST(a_failure_while_building_waits_for_the_iterator)
{
    ls_dataset *d = ls_dataset_batch(
        zip(ls_dataset_take(ls_dataset_range(0, 1, 0), 3), lst_range(2)), 2);
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
    ls_dataset *d = zip(ls_dataset_retain(s), s), *copy = NULL;
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

static ls_dataset *chains(void)
{
    ls_dataset *left = lst_range(2), *right = lst_range(2);

    for (int i = 0; i < 3; i++) {
        left = ls_dataset_concatenate(left, ls_dataset_range(10 * i, 10 * i + i, 1));
        right = ls_dataset_concatenate(ls_dataset_range(20 * i, 20 * i + 1, 1), right);
    }
    return ls_dataset_concatenate(left, right);
}

LST_TEST(chains_of_chains_give_one_after_the_other_and_can_be_saved_anywhere)
{
    LST_CHECK(lst_gives(chains(), "0 1 10 20 21 40 20 0 0 1"));
    LST_SAVES(chains);
}

LST_TEST(a_sample_of_many_gives_every_element_once)
{
    enum { INPUTS = 37 };
    ls_dataset *ds[INPUTS], *d = NULL;
    double weights[INPUTS];
    ls_iterator *it = NULL;
    int64_t seen[INPUTS] = {0}, n = 0;
    ls_status st = LS_OK;

    for (int i = 0; i < INPUTS; i++) {
        ds[i] = ls_dataset_range(1000 * i, 1000 * i + i % 5, 1);
        weights[i] = i % 3 == 0 ? 1e-9 : 1.0 + i;
    }
    d = ls_dataset_sample(ds, INPUTS, weights, (const int64_t[]){7}, false);
    LST_OK(ls_dataset_iterate(d, &it, NULL));
    while (st == LS_OK) {
        ls_value *v = NULL;

        st = ls_iterator_next(it, &v, NULL);
        if (st == LS_OK) {
            const int64_t x = *(const int64_t *)ls_tensor_data(ls_value_as_tensor(v));

            LST_CHECK(x % 1000 == seen[x / 1000]++); // each input in its own order
            n++;
        }
        ls_value_release(v);
    }
    LST_CHECK(st == LS_OUT_OF_RANGE && n == 7 * 10 + 0 + 1);
    ls_iterator_release(it);
    ls_dataset_release(d);
}

static ls_dataset *named(void)
{
    const char *const keys[] = {"y", "x"};

    return ls_dataset_zip_dict(keys, (ls_dataset *[]){lst_range(3), lst_range(2)}, 2);
}

LST_TEST(a_zip_of_a_dict_gives_dicts_and_stands_in_tuples)
{
    const char *const twice[] = {"a", "a"};
    ls_dataset *d = named();

    LST_CHECK(ls_dataset_cardinality(d) == 2);
    LST_CHECK(lst_spec_is(d, "{'x': int64 (), 'y': int64 ()}"));
    LST_CHECK(lst_epoch(d, "{y:0,x:0} {y:1,x:1}"));
    LST_CHECK(lst_gives(ls_dataset_batch(zip(d, ls_dataset_range(5, 7, 1)), 2),
                        "({x:[0 1],y:[0 1]},[5 6])"));
    LST_SAVES(named);
    LST_CHECK(raises(
        ls_dataset_zip_dict(twice, (ls_dataset *[]){lst_range(1), lst_range(1)}, 2),
        "ValueError"));
    LST_CHECK(raises(ls_dataset_zip_dict(NULL, (ls_dataset *[]){lst_range(1)}, 1),
                     "InvalidArgumentError"));
    d = named();
    LST_CHECK(lst_gives(lsi_dataset_clone(d), "{y:0,x:0} {y:1,x:1}"));
    ls_dataset_release(d);
}

LST_MAIN(LST_CASE(a_zip_of_a_dict_gives_dicts_and_stands_in_tuples),
         LST_CASE(chains_of_chains_give_one_after_the_other_and_can_be_saved_anywhere),
         LST_CASE(a_sample_of_many_gives_every_element_once),
         LST_CASE(D88_cardinality_follows_from_that_of_the_inputs),
         LST_CASE(a_range_counts_up_and_down),
         LST_CASE(D92_what_does_not_go_together_is_an_invalid_argument),
         LST_CASE(a_bad_argument_is_the_exception_that_it_is_in_tensorflow),
         LST_CASE(a_batch_that_must_be_full_leaves_the_rest_out),
         LST_CASE(D92_a_concatenation_knows_the_sizes_that_both_have),
         LST_CASE(D92_a_batch_of_unequal_elements_fails_and_the_next_one_goes_on),
         LST_CASE(strings_of_a_batch_outlive_the_elements_they_came_from),
         LST_CASE(a_list_given_to_a_source_is_one_tensor),
         LST_CASE(dicts_go_through_batch_unbatch_and_zip_by_sorted_keys),
         LST_CASE(D25_rebatch_takes_sizes_in_turn_and_zero_asks_for_nothing),
         LST_CASE(D26_rebatch_gives_a_short_batch_at_the_end_unless_it_is_dropped),
         LST_CASE(legacy_rebatch_cuts_every_batch_into_as_many_pieces),
         LST_CASE(D43_a_shard_that_demands_inputs_fails_where_it_got_one),
         LST_CASE(D65_a_hint_cannot_be_iterated),
         LST_CASE(a_source_of_the_users_is_checked_against_its_spec),
         LST_CASE(after_a_failure_every_operator_goes_on_with_the_next_element),
         LST_CASE(an_endless_repeat_ends_with_the_first_pass_that_gives_nothing),
         LST_CASE(a_failure_that_comes_back_for_ever_is_not_ignored),
         LST_CASE(a_promised_number_of_elements_is_checked_and_the_failure_stays),
         LST_CASE(an_endless_repeat_of_nothing_ends),
         LST_CASE(a_failure_while_building_waits_for_the_iterator),
         LST_CASE(options_travel_down_and_a_default_never_overrides),
         LST_CASE(a_clone_has_its_own_state_and_shares_what_was_shared),
         LST_CASE(batches_know_their_size_and_others_none))
