/* Numbers as large as can be counted, and graphs as deep as they may be. */
#include "data/data_test.h"

/* ---- lengths that must not wrap ---- */

LST_TEST(a_shard_of_any_number_of_shards_gives_its_own_element_alone)
{
    const int64_t shards[] = {100, INT64_C(1) << 62, INT64_MAX};

    for (size_t i = 0; i < LSI_COUNT_OF(shards); i++) {
        LST_CHECK(lst_gives(ls_dataset_shard(lst_range(10), shards[i], 5), "5"));
        LST_CHECK(lst_gives(ls_dataset_shard(lst_range(10), shards[i], 0), "0"));
        LST_CHECK(lst_gives(ls_dataset_shard(lst_range(10), shards[i], shards[i] - 1), ""));
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
    return ls_dataset_take(lst_slices(v), 3); // not in memory any more: held as strings
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
    LST_CHECK(lst_gives(
        ls_dataset_rebatch(ls_dataset_batch(lst_range(5), 3), sizes, 2, false),
        "[0] [1 2 3 4]"));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(3), most, most, 1, false), "<0 1 2>"));
    LST_CHECK(lst_gives(ls_dataset_window(lst_range(3), 1, most, most, false), "<0>"));
    LST_CHECK(lst_gives(ls_dataset_skip(lst_range(3), most), ""));
    LST_CHECK(lst_gives(ls_dataset_take(ls_dataset_repeat(lst_range(2), most), 3),
                        "0 1 0"));
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

LST_MAIN(LST_CASE(a_shard_of_any_number_of_shards_gives_its_own_element_alone),
         LST_CASE(a_shuffle_may_hold_more_than_there_is),
         LST_CASE(sizes_as_large_as_can_be_counted_mean_all_there_is))
