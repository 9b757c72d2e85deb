/* Limits of datasets: sizes up to INT64_MAX, and the depth of graphs. */
#include "data/data_test.h"

/* ---- sizes that must not overflow ---- */

LST_TEST(a_shard_of_any_number_of_shards_gives_its_own_element_alone)
{
    const int64_t shards[] = {100, INT64_C(1) << 62, INT64_MAX};

    for (size_t i = 0; i < LSI_COUNT_OF(shards); i++) {
        LST_CHECK(lst_gives(ls_dataset_shard(lst_range(10), shards[i], 5), "5"));
        LST_CHECK(lst_gives(ls_dataset_shard(lst_range(10), shards[i], 0), "0"));
        LST_CHECK(
            lst_gives(ls_dataset_shard(lst_range(10), shards[i], shards[i] - 1), ""));
    }
    LST_CHECK(lst_gives(lsi_dataset_shard_required(lst_range(3), INT64_MAX, 1),
                        "!INVALID_ARGUMENT"));
}

static ls_dataset *letters(void)
{
    const ls_string names[] = {{"a", 1}, {"b", 1}, {"c", 1}};
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_OK(ls_tensor_create(NULL, LS_STRING, LS_SHAPE(3), names, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return ls_dataset_take(lst_slices(v), 3); // not a source in memory: held as strings
}

LST_TEST(a_shuffle_may_hold_more_than_there_is)
{
    for (int strings = 0; strings < 2; strings++) {
        ls_dataset *d = strings ? letters() : lst_range(3);
        lst_text t = {{0}, 0};

        d = ls_dataset_shuffle(d, INT64_MAX, 7);
        lst_put_events(&t, d, 60);
        LST_CHECK(t.n == strlen("a b c") && strchr(t.s, '!') == NULL);
        d = ls_dataset_batch(d, INT64_MAX);
        t = (lst_text){{0}, 0};
        lst_put_events(&t, d, 60);
        LST_CHECK(t.n == strlen("[a b c]") && strchr(t.s, '!') == NULL);
        ls_dataset_release(d);
    }
}

static ls_dataset *twice(ls_value *element, void *user)
{
    (void)user;
    return ls_dataset_repeat(ls_dataset_tensors(element), 2);
}

LST_TEST(sizes_as_large_as_can_be_counted_mean_all_there_is)
{
    const int64_t most = INT64_MAX, sizes[] = {1, most};
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;

    LST_CHECK(lst_gives(ls_dataset_batch(lst_range(3), most), "[0 1 2]"));
    LST_CHECK(
        lst_gives(ls_dataset_rebatch(ls_dataset_batch(lst_range(5), 3), sizes, 2, false),
                  "[0] [1 2 3 4]"));
    LST_CHECK(
        lst_gives(ls_dataset_window(lst_range(3), most, most, 1, false), "<0 1 2>"));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(3), 1, most, most, false), "<0>"));
    LST_CHECK(lst_gives(ls_dataset_skip(lst_range(3), most), ""));
    LST_CHECK(
        lst_gives(ls_dataset_take(ls_dataset_repeat(lst_range(2), most), 3), "0 1 0"));
    LST_CHECK(lst_gives(ls_dataset_prefetch(lst_range(3), most), "0 1 2"));
    LST_CHECK(lst_gives(ls_dataset_padded_batch(lst_range(3), most, NULL, NULL, 0, false),
                        "[0 1 2]"));
    LST_CHECK(lst_gives(lsi_dataset_legacy_rebatch(
                            ls_dataset_take(ls_dataset_batch(lst_range(2), 2), 1), 3),
                        "[0] [1] []"));
    for (int parallel = 0; parallel < 2; parallel++) {
        o.cycle = most;
        o.block = most;
        o.parallel = parallel;
        LST_CHECK(lst_gives(ls_dataset_interleave(lst_range(3), twice, NULL, &o),
                            "0 0 1 1 2 2"));
    }
    LST_CHECK(lst_gives(ls_dataset_range(most - 2, most, 2), "9223372036854775805"));
    LST_CHECK(lst_gives(ls_dataset_range(INT64_MIN, most, most),
                        "-9223372036854775808 -1 9223372036854775806"));
}

/* ---- depth ---- */

static ls_value *same(ls_context *c, ls_value *element, void *user)
{
    (void)c;
    (void)user;
    return element;
}

enum { KINDS = 19 };

/* Adds an operator over `d`; `which` is its kind. */
static ls_dataset *above(ls_dataset *d, int which)
{
    ls_map_options parallel = LS_MAP_OPTIONS_INIT;
    ls_value *v = NULL;

    parallel.parallel = 2;
    switch (which) {
    case 0:
        return ls_dataset_take(d, 100);
    case 1:
        return ls_dataset_ignore_errors(d);
    case 2:
        return ls_dataset_shuffle(d, 2, 1);
    case 3:
        return ls_dataset_prefetch(d, 1);
    case 4:
        return ls_dataset_map(d, same, NULL, NULL);
    case 5:
        return ls_dataset_map(d, same, NULL, &parallel);
    case 6:
        return ls_dataset_concatenate(d, lst_range(1));
    case 7:
        return ls_dataset_unbatch(ls_dataset_batch(d, 1));
    case 8:
        return ls_dataset_repeat(d, 1);
    case 9:
        return ls_dataset_cache(d, NULL);
    case 10:
        return ls_dataset_filter(d, same, NULL);
    case 11:
        return ls_dataset_zip(&d, 1);
    case 12:
        return ls_dataset_window(d, 1, 1, 1, false);
    case 13:
        return ls_dataset_unbatch(
            ls_dataset_rebatch(ls_dataset_batch(d, 1), (const int64_t[]){1}, 1, false));
    case 14:
        return ls_dataset_flat_map(d, twice, NULL, NULL);
    case 15:
        return ls_dataset_sample((ls_dataset *[]){d, lst_range(1)}, 2, NULL, NULL, false);
    case 16:
        return ls_dataset_unbatch(ls_dataset_padded_batch(d, 1, NULL, NULL, 0, false));
    case 17:
        LST_OK(ls_value_dataset(d, &v, NULL));
        ls_dataset_release(d);
        d = ls_dataset_tensors(v);
        ls_value_release(v);
        return d;
    default:
        return ls_dataset_unique(ls_dataset_skip(ls_dataset_shard(d, 1, 0), 0));
    }
}

/* Uses a dataset: reads an element, saves and restores the position, reads to its end. */
static ls_status use(ls_dataset *d, ls_error *err)
{
    ls_iterator *it = NULL;
    ls_value *v = NULL, *state = NULL;
    ls_status st = ls_dataset_iterate(d, &it, err);

    if (st == LS_OK) {
        st = ls_iterator_next(it, &v, err);
    }
    if (st == LS_OK) {
        st = ls_iterator_save(it, &state, err);
    }
    if (st == LS_OK) {
        st = ls_iterator_restore(it, state, err);
    }
    ls_value_release(state);
    ls_value_release(v);
    ls_iterator_release(it);
    return st;
}

/* A shuffle holds strings in another way, and reads many at a time. */
static ls_dataset *bottom(int which, bool strings)
{
    return which == 2 && strings ? letters() : lst_range(3);
}

static void use_on_a_thread(void *arg)
{
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = ls_dataset_batch(ls_dataset_retain(arg), 2);
    const ls_status st = use(d, &err);

    LST_CHECK(st == LS_OK || st == LS_INVALID_ARGUMENT); // no crash
    ls_dataset_release(d);
}

/*
 * With the thread sanitizer a thread can hold at most 64 locks, and nested prefetches
 * hold one each; other builds test the full depth.
 */
#if defined(__SANITIZE_THREAD__)
enum { DEEP = 50, DEEP_ELEMENT = 50 };
#else
enum { DEEP = LS_DATASET_MAX_DEPTH, DEEP_ELEMENT = 2000 };
#endif

LST_TEST(operators_may_be_nested_as_deep_as_the_header_says)
{
    for (int i = 0; i < 2 * KINDS; i++) {
        const int which = i / 2;
        ls_dataset *d = above(bottom(which, i % 2 > 0), which);
        ls_error err = LS_ERROR_INIT;
        lsi_thread t;

        while (d->depth + 5 < DEEP && ls_dataset_status(d, NULL) == LS_OK) {
            d = above(d, which);
        }
        LST_OK(ls_dataset_status(d, &err));
        (void)!use(d, &err); // an element that is too deep for a value is a failure
        LST_OK(lsi_thread_start(&t, use_on_a_thread, d, &err, "deep"));
        lsi_thread_join(&t);
        ls_dataset_release(lsi_dataset_clone(d));
        ls_dataset_release(d);
    }
}

LST_TEST(an_element_comes_through_two_thousand_operators)
{
    for (int which = 0; which < 7; which++) {
        ls_dataset *d = lst_range(3);
        ls_error err = LS_ERROR_INIT;

        for (int i = 0; i < DEEP_ELEMENT; i++) {
            d = above(d, which);
        }
        LST_OK(use(d, &err));
        LST_CHECK(err.message[0] == '\0');
        ls_dataset_release(d);
    }
}

LST_TEST(a_graph_that_is_too_deep_says_so_whatever_it_is_made_of)
{
    for (int which = 0; which < KINDS; which++) {
        const int more = which == 0 ? 100000 : 5000;
        ls_dataset *d = above(lst_range(3), which);
        ls_error err = LS_ERROR_INIT;

        for (int i = 0; i < more; i++) {
            if (which == 17 && ls_dataset_status(d, NULL) != LS_OK) {
                break; // a failed dataset cannot be an element
            }
            d = above(d, which);
        }
        LST_FAILS(ls_dataset_status(d, &err), LS_INVALID_ARGUMENT, err, "4096");
        LST_CHECK(ls_dataset_iterate(d, &(ls_iterator *){NULL}, &err) ==
                  LS_INVALID_ARGUMENT);
        ls_dataset_release(d);
    }
}

/* Makes a dataset whose function makes datasets, without end. */
static ls_dataset *inwards(ls_value *element, void *user)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;
    ls_spec *spec = NULL;
    ls_dataset *d = NULL;

    LST_OK(ls_spec_tensor(LS_I64, 0, NULL, &spec, NULL)); // else building calls it
    o.spec = spec;
    d = ls_dataset_flat_map(ls_dataset_tensors(element), inwards, user, &o);
    ls_spec_release(spec);
    return d;
}

LST_TEST(functions_that_make_datasets_inside_of_each_other_come_to_an_end)
{
    ls_value *v = LST_INTS(1);
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = NULL;

    d = inwards(v, NULL);
    ls_value_release(v);
    LST_FAILS(use(d, &err), LS_INVALID_ARGUMENT, err, "4096");
    ls_dataset_release(d);
}

LST_TEST(a_spec_that_is_nested_too_deep_says_so)
{
    for (int which = 0; which < 3; which++) {
        ls_spec *s = NULL;
        ls_error err = LS_ERROR_INIT;
        ls_status st = ls_spec_tensor(LS_F32, 0, NULL, &s, &err);
        char text[10];
        int depth = 1;

        for (; depth < 100000 && st == LS_OK; depth++) {
            ls_spec *outer = NULL;
            const char *key = "k";

            st = which == 0   ? ls_spec_tuple(&s, 1, &outer, &err)
                 : which == 1 ? ls_spec_dict(&key, &s, 1, &outer, &err)
                              : ls_spec_dataset(s, &outer, &err);
            if (st == LS_OK) {
                ls_spec_release(s);
                s = outer;
            }
        }
        LST_FAILS(st, LS_INVALID_ARGUMENT, err, "4096");
        LST_CHECK(depth == LS_DATASET_MAX_DEPTH + 1);
        LST_CHECK(ls_spec_text(s, text, sizeof text) > 4096);
        LST_CHECK(ls_spec_equal(s, s));
        ls_spec_release(s);
    }
}

LST_MAIN(LST_CASE(a_shard_of_any_number_of_shards_gives_its_own_element_alone),
         LST_CASE(a_shuffle_may_hold_more_than_there_is),
         LST_CASE(sizes_as_large_as_can_be_counted_mean_all_there_is),
         LST_CASE(operators_may_be_nested_as_deep_as_the_header_says),
         LST_CASE(an_element_comes_through_two_thousand_operators),
         LST_CASE(a_graph_that_is_too_deep_says_so_whatever_it_is_made_of),
         LST_CASE(functions_that_make_datasets_inside_of_each_other_come_to_an_end),
         LST_CASE(a_spec_that_is_nested_too_deep_says_so))
