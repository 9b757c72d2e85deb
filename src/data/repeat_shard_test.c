/* repeat without elements; shard, required shards, and LS_SHARD_HINT. */
#include "data/data_test.h"

LST_TEST(an_endless_repeat_of_nothing_ends)
{
    LST_CHECK(lst_gives(ls_dataset_repeat(lst_range(0), -1), ""));
    LST_CHECK(lst_gives(ls_dataset_repeat(lst_range(0), 3), ""));
    LST_CHECK(lst_gives(ls_dataset_repeat(lst_range(3), 0), ""));
    LST_CHECK(lst_gives(ls_dataset_take(lst_endless(), 7), "0 1 2 3 4 0 1"));
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

LST_MAIN(LST_CASE(an_endless_repeat_of_nothing_ends),
         LST_CASE(D43_a_shard_that_demands_inputs_fails_where_it_got_one),
         LST_CASE(D65_a_hint_cannot_be_iterated))
