/* unique: the first of equal elements. */
#include "data/data_test.h"

static ls_dataset *strings(void)
{
    static const ls_string s[] = {{"b", 1}, {"", 0}, {"b", 1}, {"bb", 2}, {"", 0}};
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_OK(ls_tensor_create(NULL, LS_STRING, LS_SHAPE(5), s, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return lst_slices(v);
}

LST_TEST(unique_gives_the_first_of_equal_elements)
{
    ls_dataset *d = ls_dataset_concatenate(lst_range(500), lst_range(503));

    LST_CHECK(lst_gives(ls_dataset_unique(lst_slices(LST_INTS(3, 1, 3, 2, 1, 3, 0))),
                        "3 1 2 0"));
    LST_CHECK(
        lst_gives(ls_dataset_skip(ls_dataset_unique(d), 498), "498 499 500 501 502"));
    LST_CHECK(lst_gives(ls_dataset_unique(strings()), "b  bb"));
    d = ls_dataset_concatenate(ls_dataset_batch(lst_range(3), 2),
                               ls_dataset_batch(lst_range(2), 2));
    LST_CHECK(lst_gives(ls_dataset_unique(d), "[0 1] [2]"));
}

LST_TEST(unique_takes_one_component_of_integers_or_strings)
{
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_CHECK(lst_code(ls_dataset_unique(ls_dataset_enumerate(lst_range(2), 0))) ==
              LS_INVALID_ARGUMENT);
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), NULL, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    LST_CHECK(lst_code(ls_dataset_unique(lst_slices(v))) == LS_INVALID_ARGUMENT);
}

static ls_dataset *saved_unique(void)
{
    return ls_dataset_unique(
        ls_dataset_shuffle(ls_dataset_repeat(lst_range(7), 3), 9, 3));
}

LST_TEST(unique_continues_where_it_was_saved)
{
    LST_SAVES(saved_unique);
}

LST_MAIN(LST_CASE(unique_gives_the_first_of_equal_elements),
         LST_CASE(unique_takes_one_component_of_integers_or_strings),
         LST_CASE(unique_continues_where_it_was_saved))
