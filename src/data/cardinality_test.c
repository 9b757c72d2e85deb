/* The number of elements: computed from the inputs, or promised and checked. */
#include "data/data_test.h"

static int64_t size_of(ls_dataset *d)
{
    const int64_t n = ls_dataset_cardinality(d);

    ls_dataset_release(d);
    return n;
}

/* A dataset of n elements whose cardinality is unknown. */
static ls_dataset *unknown(int64_t n)
{
    return ls_dataset_unbatch(ls_dataset_batch(lst_range(n), 2));
}

LST_TEST(D88_cardinality_follows_from_that_of_the_inputs)
{
    LST_CHECK(size_of(ls_dataset_batch(lst_range(5), 2)) == 3);
    LST_CHECK(size_of(ls_dataset_batch_exact(lst_range(5), 2)) == 2);
    LST_CHECK(size_of(ls_dataset_repeat(lst_range(1), -1)) == LS_INFINITE);
    LST_CHECK(size_of(ls_dataset_repeat(lst_range(0), -1)) == 0);
    LST_CHECK(size_of(ls_dataset_repeat(lst_range(3), 4)) == 12);
    LST_CHECK(size_of(ls_dataset_repeat(lst_endless(), 0)) == 0);
    LST_CHECK(size_of(ls_dataset_take(lst_endless(), 2)) == 2);
    LST_CHECK(size_of(ls_dataset_take(unknown(5), 2)) == LS_UNKNOWN_SIZE);
    LST_CHECK(size_of(ls_dataset_range(10, 5, -2)) == 3);
    LST_CHECK(size_of(ls_dataset_range(INT64_MIN, INT64_MAX, 1)) == INT64_MAX);
    LST_CHECK(size_of(ls_dataset_shard(lst_range(5), 8, 7)) == 0);
    LST_CHECK(size_of(ls_dataset_shard(lst_range(5), 2, 0)) == 3);
    LST_CHECK(size_of(ls_dataset_skip(lst_range(5), 8)) == 0);
    LST_CHECK(size_of(ls_dataset_skip(lst_range(5), -1)) == 0);
    LST_CHECK(size_of(lst_zip(lst_range(5), ls_dataset_repeat(lst_range(3), -1))) == 5);
    LST_CHECK(size_of(lst_zip(lst_range(5), unknown(5))) == LS_UNKNOWN_SIZE);
    LST_CHECK(size_of(lst_zip(lst_endless(), lst_endless())) == LS_INFINITE);
    LST_CHECK(size_of(ls_dataset_concatenate(lst_range(5), lst_endless())) ==
              LS_INFINITE);
    LST_CHECK(size_of(ls_dataset_concatenate(lst_endless(), unknown(5))) == LS_INFINITE);
    LST_CHECK(size_of(ls_dataset_concatenate(lst_range(5), lst_range(2))) == 7);
    LST_CHECK(size_of(ls_dataset_unbatch(ls_dataset_batch_exact(lst_range(7), 2))) == 6);
    LST_CHECK(size_of(ls_dataset_enumerate(lst_range(4), 7)) == 4);
    LST_CHECK(size_of(ls_dataset_assert_cardinality(unknown(5), 5)) == 5);
}

/* Whether the first four calls return this. */
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

LST_MAIN(LST_CASE(D88_cardinality_follows_from_that_of_the_inputs),
         LST_CASE(a_promised_number_of_elements_is_checked_and_the_failure_stays))
