/* cache in memory and in a file: passes, damage, saving. */
#include "data/file/file_cases.h"

static lst_folder at;

static ls_dataset *shuffled(int64_t n)
{
    return ls_dataset_shuffle(lst_range(n), n, 42);
}

LST_TEST(D75_what_was_cached_is_replayed_and_the_input_left_alone)
{
    ls_dataset *d = ls_dataset_cache(shuffled(6), NULL);
    ls_dataset *plain = shuffled(6);
    lst_text one = {{0}, 0}, two = {{0}, 0};

    LST_CHECK(ls_dataset_cardinality(d) == 6);
    lst_put_events(&one, plain, 60);
    LST_CHECK(lst_epoch(d, one.s));
    LST_CHECK(lst_epoch(d, one.s));
    LST_CHECK(lst_gives(d, one.s));
    lst_put_events(&two, plain, 60);
    LST_CHECK(strcmp(one.s, two.s) != 0); // without the cache the order differs
    ls_dataset_release(plain);
}

LST_TEST(a_pass_given_up_fills_no_cache)
{
    ls_dataset *d = ls_dataset_cache(shuffled(6), NULL);
    ls_dataset *plain = shuffled(6);
    ls_iterator *it = NULL;
    lst_text t = {{0}, 0}, second = {{0}, 0};

    LST_OK(ls_dataset_iterate(d, &it, NULL));
    lst_put_rest(&t, it, 6); // all of them, but not the end
    ls_iterator_release(it);
    lst_put_events(&second, plain, 60);
    second = (lst_text){{0}, 0};
    lst_put_events(&second, plain, 60);
    LST_CHECK(lst_gives(d, second.s)); // the second pass of the shuffle
    ls_dataset_release(plain);
}

LST_TEST(a_clone_has_a_cache_of_its_own)
{
    ls_dataset *d = ls_dataset_cache(shuffled(5), NULL), *copy = NULL;
    lst_text one = {{0}, 0};

    lst_put_events(&one, d, 60);
    copy = lsi_dataset_clone(d);
    ls_dataset_release(d);
    LST_CHECK(lst_gives(copy, one.s)); // from the beginning
}

/* ---- files ---- */

static bool exists(const char *name)
{
    lsi_names names = {NULL, 0};
    bool found = false;

    LST_OK(lsi_folder_list(at.path, &names, NULL));
    for (size_t i = 0; i < names.count; i++) {
        found = found || strcmp(names.names[i], name) == 0;
    }
    lsi_names_release(&names);
    return found;
}

LST_TEST(a_file_is_filled_by_the_first_pass_and_outlives_the_dataset)
{
    ls_dataset *d = NULL;
    lst_text one = {{0}, 0};

    lst_enter(&at);
    d = ls_dataset_cache(ls_dataset_enumerate(shuffled(6), 0), lst_path(&at, "c"));
    LST_CHECK(strcmp(lsi_dataset_cache_file(d), lst_path(&at, "c")) == 0);
    lst_put_events(&one, d, 60);
    LST_CHECK(one.n > 0 && strchr(one.s, '!') == NULL);
    LST_CHECK(exists("c") && !exists("c.lockfile"));
    LST_CHECK(lst_gives(d, one.s));
    // another input, which is not read
    d = ls_dataset_enumerate(ls_dataset_range(100, 106, 1), 0);
    LST_CHECK(lst_gives(ls_dataset_cache(d, lst_path(&at, "c")), one.s));
    lst_leave(&at);
}

LST_TEST(elements_of_any_length_come_back_from_a_file)
{
    ls_dataset *d = NULL;

    lst_enter(&at);
    d = ls_dataset_concatenate(ls_dataset_batch(lst_range(100), 33),
                               ls_dataset_batch(lst_range(40000), 20000));
    d = ls_dataset_unbatch(ls_dataset_cache(d, lst_path(&at, "long")));
    for (int pass = 0; pass < 2; pass++) {
        ls_iterator *it = NULL;
        ls_value *v = NULL;
        int64_t n = 0;

        LST_OK(ls_dataset_iterate(d, &it, NULL));
        while (ls_iterator_next(it, &v, NULL) == LS_OK) {
            LST_CHECK(*(const int64_t *)ls_tensor_data(ls_value_as_tensor(v)) ==
                      (n < 100 ? n : n - 100));
            n++;
            ls_value_release(v);
        }
        LST_CHECK(n == 40100);
        ls_iterator_release(it);
    }
    ls_dataset_release(d);
    d = ls_dataset_cache(lst_range(0), lst_path(&at, "empty"));
    LST_CHECK(lst_epoch(d, "") && exists("empty"));
    LST_CHECK(lst_gives(d, ""));
    lst_leave(&at);
}

LST_TEST(a_lock_or_an_unfinished_file_is_not_overwritten)
{
    ls_dataset *d = NULL;
    ls_iterator *it = NULL, *other = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    lst_text t = {{0}, 0};

    lst_enter(&at);
    d = ls_dataset_cache(lst_range(3), lst_path(&at, "c"));
    LST_OK(ls_dataset_iterate(d, &it, NULL));
    LST_OK(ls_dataset_iterate(d, &other, NULL));
    LST_CHECK(lst_put_next(&t, it));
    LST_CHECK(exists("c.lockfile"));
    LST_FAILS(ls_iterator_next(other, &v, &err), LS_ALREADY_EXISTS, err, "c.lockfile");
    ls_iterator_release(it); // before its end: both files are removed
    LST_CHECK(!exists("c") && !exists("c.lockfile"));
    lst_put_rest(&t, other, 60);
    LST_CHECK(lst_same(&t, "0 0 1 2"));
    ls_iterator_release(other);
    ls_dataset_release(d);
    (void)lst_file(&at, "stale", "SLcache1 half", 13);
    d = ls_dataset_cache(lst_range(3), lst_path(&at, "stale"));
    LST_OK(ls_dataset_iterate(d, &it, NULL));
    LST_FAILS(ls_iterator_next(it, &v, &err), LS_ALREADY_EXISTS, err, "stale");
    ls_iterator_release(it);
    ls_dataset_release(d);
    LST_CHECK(exists("stale") && !exists("stale.lockfile"));
    lst_leave(&at);
}

/* Reads a cache of 0, 1, 2, ...: how many elements came before another status. */
static int64_t read_numbers(ls_status *st, ls_error *err)
{
    ls_dataset *d = ls_dataset_cache(lst_range(3), lst_path(&at, "c"));
    ls_iterator *it = NULL;
    int64_t n = 0;

    *st = ls_dataset_iterate(d, &it, err);
    while (*st == LS_OK) {
        ls_value *v = NULL;

        *st = ls_iterator_next(it, &v, err);
        if (*st == LS_OK) {
            const int64_t *x = ls_tensor_data(ls_value_as_tensor(v));

            LST_CHECK(*x == n);
            n++;
        }
        ls_value_release(v);
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
    return n;
}

LST_TEST(a_flipped_bit_anywhere_in_a_file_is_told_with_its_place)
{
    char *bytes = NULL;
    size_t n = 0;
    ls_status st = LS_OK;

    lst_enter(&at);
    LST_CHECK(lst_gives(ls_dataset_cache(lst_range(3), lst_path(&at, "c")), "0 1 2"));
    LST_OK(lsi_file_read(lst_path(&at, "c"), 1 << 20, (void **)&bytes, &n, NULL));
    for (size_t i = 0; i < 8 * n; i++) {
        const char bit = (char)(1 << i % 8);
        ls_error err = LS_ERROR_INIT;

        bytes[i / 8] ^= bit;
        (void)lst_file(&at, "c", bytes, n);
        bytes[i / 8] ^= bit;
        (void)read_numbers(&st, &err);
        if (i < 64 || (i >= 8 * (n - 24) && (i < 8 * (n - 16) || i >= 8 * (n - 8)))) {
            LST_CHECK(st == LS_ALREADY_EXISTS); // the marks at the beginning and the end
        } else {
            LST_CHECK(st == LS_DATA_LOSS && strstr(err.message, "/c is damaged at byte"));
        }
    }
    lsi_free(bytes);
    lst_leave(&at);
}

LST_TEST(an_element_that_is_missing_in_a_file_is_told)
{
    char *bytes = NULL;
    size_t n = 0, each = 0;
    ls_status st = LS_OK;

    lst_enter(&at);
    LST_CHECK(lst_gives(ls_dataset_cache(lst_range(3), lst_path(&at, "c")), "0 1 2"));
    LST_OK(lsi_file_read(lst_path(&at, "c"), 1 << 20, (void **)&bytes, &n, NULL));
    each = (n - 8 - 24) / 3;
    for (size_t gone = 0; gone < 3; gone++) {
        ls_error err = LS_ERROR_INIT;
        char *cut = lsi_alloc(n, 1);
        const size_t from = 8 + gone * each;

        memcpy(cut, bytes, from);
        memcpy(cut + from, bytes + from + each, n - from - each);
        (void)lst_file(&at, "c", cut, n - each);
        LST_CHECK(read_numbers(&st, &err) == (int64_t)gone);
        LST_FAILS(st, LS_DATA_LOSS, err, "element");
        lsi_free(cut);
    }
    lsi_free(bytes);
    lst_leave(&at);
}

LST_TEST(a_file_of_an_earlier_version_is_not_read_without_checksums)
{
    char old[32] = "SLcache1";
    ls_error err = LS_ERROR_INIT;
    ls_status st = LS_OK;

    memset(old + 8, 0xFF, 8);
    memcpy(old + 24, "SLcache1", 8);
    lst_enter(&at);
    (void)lst_file(&at, "c", old, sizeof old);
    LST_CHECK(read_numbers(&st, &err) == 0);
    LST_FAILS(st, LS_ALREADY_EXISTS, err, "earlier version");
    lst_leave(&at);
}

/* ---- saving ---- */

static ls_dataset *saved_memory(void)
{
    return ls_dataset_repeat(ls_dataset_cache(shuffled(5), NULL), 3);
}

LST_TEST(a_cache_in_memory_continues_where_it_was_saved_with_its_contents)
{
    LST_SAVES(saved_memory);
}

static ls_dataset *in_file(void)
{
    return ls_dataset_repeat(ls_dataset_cache(shuffled(5), lst_path(&at, "c")), 2);
}

LST_TEST(a_cache_in_a_file_continues_where_it_was_saved)
{
    for (int k = 0; k <= 11; k++) {
        ls_dataset *a = NULL, *b = NULL;
        ls_iterator *one = NULL, *two = NULL;
        lst_text whole = {{0}, 0}, parts = {{0}, 0};
        ls_value *state = NULL;

        lst_enter(&at);
        a = in_file();
        lst_put_events(&whole, a, 60);
        ls_dataset_release(a);
        LST_OK(lsi_file_remove(lst_path(&at, "c"), NULL));
        a = in_file();
        b = in_file();
        LST_OK(ls_dataset_iterate(a, &one, NULL));
        for (int i = 0; i < k; i++) {
            (void)lst_put_next(&parts, one);
        }
        LST_OK(ls_iterator_save(one, &state, NULL));
        ls_iterator_release(one); // as if the process had ended
        LST_OK(ls_dataset_iterate(b, &two, NULL));
        LST_OK(ls_iterator_restore(two, state, NULL));
        lst_put_rest(&parts, two, 60);
        LST_CHECK(lst_same(&parts, whole.s));
        LST_CHECK(exists("c") && !exists("c.lockfile"));
        ls_value_release(state);
        ls_iterator_release(two);
        ls_dataset_release(a);
        ls_dataset_release(b);
        lst_leave(&at);
    }
}

static ls_status walk(ls_error *err)
{
    return lst_read(ls_dataset_cache(lst_range(2), NULL), INT_MAX, err);
}

LST_TEST(no_allocation_that_fails_in_a_cache_leaks)
{
    lst_every_allocation(walk);
}

LST_MAIN(LST_CASE(D75_what_was_cached_is_replayed_and_the_input_left_alone),
         LST_CASE(a_pass_given_up_fills_no_cache),
         LST_CASE(a_clone_has_a_cache_of_its_own),
         LST_CASE(a_file_is_filled_by_the_first_pass_and_outlives_the_dataset),
         LST_CASE(elements_of_any_length_come_back_from_a_file),
         LST_CASE(a_lock_or_an_unfinished_file_is_not_overwritten),
         LST_CASE(a_flipped_bit_anywhere_in_a_file_is_told_with_its_place),
         LST_CASE(an_element_that_is_missing_in_a_file_is_told),
         LST_CASE(a_file_of_an_earlier_version_is_not_read_without_checksums),
         LST_CASE(a_cache_in_memory_continues_where_it_was_saved_with_its_contents),
         LST_CASE(a_cache_in_a_file_continues_where_it_was_saved),
         LST_CASE(no_allocation_that_fails_in_a_cache_leaks))
