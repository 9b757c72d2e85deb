/* zip and concatenate: specs, order, and saving at every element. */
#include "data/data_test.h"

LST_TEST(D92_a_concatenation_knows_the_sizes_that_both_have)
{
    ls_dataset *a = ls_dataset_batch_exact(lst_range(4), 2);
    ls_dataset *d = ls_dataset_concatenate(a, ls_dataset_batch_exact(lst_range(6), 3));

    LST_CHECK(lst_spec_is(d, "int64 (None,)"));
    LST_CHECK(lst_gives(d, "[0 1] [2 3] [0 1 2] [3 4 5]"));
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
    LST_CHECK(lst_gives(ls_dataset_batch(lst_zip(d, ls_dataset_range(5, 7, 1)), 2),
                        "({x:[0 1],y:[0 1]},[5 6])"));
    LST_SAVES(named);
    LST_CHECK(lst_raises(
        ls_dataset_zip_dict(twice, (ls_dataset *[]){lst_range(1), lst_range(1)}, 2),
        "ValueError"));
    LST_CHECK(lst_raises(ls_dataset_zip_dict(NULL, (ls_dataset *[]){lst_range(1)}, 1),
                         "InvalidArgumentError"));
    d = named();
    LST_CHECK(lst_gives(lsi_dataset_clone(d), "{y:0,x:0} {y:1,x:1}"));
    ls_dataset_release(d);
}

LST_MAIN(LST_CASE(D92_a_concatenation_knows_the_sizes_that_both_have),
         LST_CASE(chains_of_chains_give_one_after_the_other_and_can_be_saved_anywhere),
         LST_CASE(a_zip_of_a_dict_gives_dicts_and_stands_in_tuples))
