/* shuffle: the order and the seeds of TensorFlow, passes, and clones. */
#include "data/data_test.h"

static ls_dataset *with_pair(uint64_t a, uint64_t b, int64_t buffer, bool same)
{
    return lsi_dataset_shuffle_pair(lst_range(10), buffer, (lsi_seeds){a, b}, same);
}

LST_TEST(D83_a_shuffle_draws_as_the_kernel_of_tensorflow)
{
    ls_dataset *d = with_pair(1, 2, 3, true);

    LST_CHECK(lst_epoch(d, "2 3 0 5 6 4 7 8 9 1"));
    LST_CHECK(lst_gives(d, "2 3 0 5 6 4 7 8 9 1"));
    LST_CHECK(lst_gives(with_pair(1, 2, 10, true), "9 0 8 6 1 3 7 2 4 5"));
    d = with_pair(1, 2, 10, false);
    LST_CHECK(lst_epoch(d, "2 6 1 3 9 5 0 8 7 4"));
    LST_CHECK(lst_gives(d, "1 6 0 5 2 7 4 3 9 8"));
    d = with_pair(1, 2, 2, false);
    LST_CHECK(lst_epoch(d, "0 2 1 3 5 6 4 7 8 9"));
    LST_CHECK(lst_gives(d, "1 0 2 3 4 5 6 7 9 8"));
    LST_CHECK(lst_gives(with_pair(2, 2, 10, false), "3 0 8 1 5 4 7 2 6 9"));
}

LST_TEST(D84_a_seed_alone_goes_with_tensorflows_own)
{
    ls_dataset *d = ls_dataset_shuffle(lst_range(10), 10, 42);

    LST_CHECK(lst_epoch(d, "5 9 6 4 7 1 2 8 3 0"));
    LST_CHECK(lst_gives(d, "3 7 6 5 8 4 0 1 9 2"));
    d = ls_dataset_shuffle(ls_dataset_repeat(lst_range(10), 3), 5, 42);
    LST_CHECK(lst_gives(
        ls_dataset_batch(d, 7),
        "[0 2 3 6 7 9 4] [5 0 1 1 8 6 5] [4 8 7 1 2 3 0] [5 4 2 7 8 9 9] [3 6]"));
}

LST_TEST(D85_a_global_seed_is_the_first_of_the_pair)
{
    const int64_t seed = 42;
    ls_dataset *d = NULL;

    ls_dataset_set_seed(&seed);
    d = ls_dataset_shuffle(ls_dataset_repeat(lst_range(10), 3), 3, 42);
    LST_CHECK(lst_gives(
        ls_dataset_batch(d, 7),
        "[1 3 0 4 2 5 6] [8 7 1 0 3 2 5] [4 6 9 8 9 7 0] [3 1 4 5 2 8 7] [6 9]"));
    d = ls_dataset_shuffle(ls_dataset_repeat(lst_range(10), 2), 4, 42);
    LST_CHECK(lst_gives(ls_dataset_batch(d, 7),
                        "[3 0 1 6 2 5 7] [8 4 1 9 4 2 3] [7 5 0 8 9 6]"));
    ls_dataset_set_seed(NULL);
}

LST_TEST(D86_passes_of_a_repeat_are_shuffled_apart)
{
    ls_dataset *d = ls_dataset_shuffle(lst_range(6), 6, 42);
    const int64_t seed = 42;

    LST_CHECK(lst_gives(ls_dataset_repeat(d, 2), "3 2 1 4 5 0 3 5 2 4 0 1"));
    d = ls_dataset_shuffle_with(lst_range(6), 6, &seed, true);
    LST_CHECK(lst_gives(ls_dataset_repeat(d, 2), "2 5 3 4 1 0 2 5 3 4 1 0"));
    LST_CHECK(lst_code(ls_dataset_shuffle(lst_range(6), 0, 1)) == LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_shuffle(lst_range(6), -1, 1)) == LS_INVALID_ARGUMENT);
}

LST_TEST(seeds_are_reduced_and_two_zeros_are_no_seed)
{
    const int64_t zero = 0, minus = -1, large = 2147483647;
    lsi_seeds s;

    ls_dataset_set_seed(&zero);
    s = lsi_seeds_of(&large); // both are 0 then
    LST_CHECK(s.a == 0 && s.b == 2147483647);
    s = lsi_seeds_of(&minus);
    LST_CHECK(s.a == 0 && s.b == 2147483646);
    ls_dataset_set_seed(NULL);
    s = lsi_seeds_of(&minus);
    LST_CHECK(s.a == 87654321 && s.b == 2147483646);
}

/* The n-th epoch of a shuffle below `between`, as text. */
static void epoch(ls_dataset *d, int n, lst_text *out)
{
    for (int i = 0; i < n; i++) {
        *out = (lst_text){{0}, 0};
        lst_put_events(out, d, 60);
    }
    ls_dataset_release(d);
}

static ls_dataset *seeded(void)
{
    return ls_dataset_shuffle(lst_range(6), 6, 42);
}

LST_TEST(a_finite_repeat_makes_one_more_iterator_unless_it_stands_on_the_shuffle)
{
    lst_text third = {{0}, 0}, fourth = {{0}, 0}, got = {{0}, 0};

    epoch(seeded(), 3, &third);
    epoch(seeded(), 4, &fourth);
    epoch(ls_dataset_repeat(seeded(), 2), 2, &got); // the second begins with the third
    LST_CHECK(strncmp(got.s, third.s, third.n) == 0);
    epoch(ls_dataset_repeat(ls_dataset_take(seeded(), 6), 2), 2, &got);
    LST_CHECK(strncmp(got.s, fourth.s, fourth.n) == 0);
    epoch(ls_dataset_repeat(ls_dataset_take(seeded(), 6), 1), 3, &got);
    LST_CHECK(strcmp(got.s, third.s) == 0);
}

LST_TEST(the_whole_input_can_be_the_buffer)
{
    lst_text want = {{0}, 0};

    ls_dataset *d = ls_dataset_shuffle(lst_range(50), 50, 7);

    lst_put_events(&want, d, 60);
    ls_dataset_release(d);
    LST_CHECK(lst_gives(ls_dataset_shuffle(lst_range(50), LS_UNKNOWN_SIZE, 7), want.s));
    LST_CHECK(lst_code(ls_dataset_shuffle(ls_dataset_repeat(lst_range(2), -1),
                                          LS_UNKNOWN_SIZE, 7)) == LS_INVALID_ARGUMENT);
}

LST_TEST(without_any_seed_two_datasets_differ_and_a_clone_does_not)
{
    lst_text a = {{0}, 0}, b = {{0}, 0}, c = {{0}, 0};
    ls_dataset *one = ls_dataset_shuffle_with(lst_range(20), 20, NULL, false);
    ls_dataset *two = ls_dataset_shuffle_with(lst_range(20), 20, NULL, false);
    ls_dataset *copy = lsi_dataset_clone(one);

    lst_put_events(&a, one, 60);
    lst_put_events(&b, two, 60);
    lst_put_events(&c, copy, 60);
    LST_CHECK(strcmp(a.s, b.s) != 0);
    LST_CHECK(strcmp(a.s, c.s) == 0);
    ls_dataset_release(one);
    ls_dataset_release(two);
    ls_dataset_release(copy);
}

LST_TEST(skipping_draws_is_drawing_them)
{
    for (uint64_t n = 0; n < 20; n++) {
        for (uint64_t m = 0; m < 12; m++) {
            lsi_draws a, b;

            lsi_draws_init(&a, (lsi_seeds){5, 6});
            b = a;
            for (uint64_t i = 0; i < n + m; i++) {
                (void)lsi_draws_next(&a);
            }
            lsi_draws_skip(&b, n);
            lsi_draws_skip(&b, m);
            LST_CHECK(a.draws == b.draws);
            LST_CHECK(lsi_draws_next(&a) == lsi_draws_next(&b));
        }
    }
}

LST_MAIN(
    LST_CASE(D83_a_shuffle_draws_as_the_kernel_of_tensorflow),
    LST_CASE(D84_a_seed_alone_goes_with_tensorflows_own),
    LST_CASE(D85_a_global_seed_is_the_first_of_the_pair),
    LST_CASE(D86_passes_of_a_repeat_are_shuffled_apart),
    LST_CASE(seeds_are_reduced_and_two_zeros_are_no_seed),
    LST_CASE(a_finite_repeat_makes_one_more_iterator_unless_it_stands_on_the_shuffle),
    LST_CASE(the_whole_input_can_be_the_buffer),
    LST_CASE(without_any_seed_two_datasets_differ_and_a_clone_does_not),
    LST_CASE(skipping_draws_is_drawing_them))
