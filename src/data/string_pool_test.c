/* A pool of strings: contents, memory, owners, threads, and failing allocations. */
#include "data/string_pool.h"
#include "ls_test.h"
#include "os/thread.h"

enum { MOST = 5000 };

static lsi_string_pool *new_pool(void)
{
    lsi_string_pool *s = NULL;

    LST_OK(lsi_string_pool_create(ls_runtime_device(NULL, 0), &s, NULL));
    return s;
}

/* Allocates a string of `len` bytes that depend on `mark`. */
static bool put(lsi_string_pool *s, size_t len, int mark, ls_string *out)
{
    char *bytes = malloc(len + 1), *slot = NULL;
    bool ok;

    memset(bytes, mark, len + 1);
    *out = (ls_string){bytes, len};
    ok = lsi_string_pool_alloc(s, out, 1, &slot);
    if (ok) {
        lsi_string_pool_copy(s, slot, out);
    }
    free(bytes);
    return ok;
}

static bool is(const ls_string *s, size_t len, int mark)
{
    bool same = s->len == len;

    for (size_t i = 0; i < len && same; i++) {
        same = s->ptr[i] == (char)mark;
    }
    return same;
}

LST_TEST(strings_of_all_lengths_stay_what_they_were)
{
    static const size_t lengths[] = {0,    1,    64,    65,     513,    1000,   4096,
                                     9999, 1000, 70000, 262144, 262145, 3 << 20};
    const size_t n = LSI_COUNT_OF(lengths);
    lsi_string_pool *s = new_pool();
    ls_string strings[2 * LSI_COUNT_OF(lengths)];

    for (size_t i = 0; i < 2 * n; i++) {
        LST_CHECK(put(s, lengths[i % n], 'a' + (int)i, &strings[i]));
        LST_CHECK((uintptr_t)strings[i].ptr % 64 == 0);
    }
    for (size_t i = 0; i < 2 * n; i++) {
        LST_CHECK(is(&strings[i], lengths[i % n], 'a' + (int)i));
    }
    lsi_string_pool_free_strings(s, strings, 2 * n);
    lsi_string_pool_release(s);
}

LST_TEST(memory_is_what_is_held_and_a_quarter_more)
{
    static ls_string held[MOST];
    lsi_string_pool *s = new_pool();
    uint64_t state = 3;

    for (int i = 0; i < MOST; i++) {
        LST_CHECK(put(s, 1024, i, &held[i]));
    }
    const size_t full = lsi_string_pool_bytes(s);
    LST_CHECK(full <= (size_t)MOST * 1024 * 3 / 2);
    for (int i = 0; i < 4 * MOST; i++) { // replaces a random one
        ls_string *h = &held[lst_random(&state) % MOST];

        lsi_string_pool_free_strings(s, h, 1);
        LST_CHECK(put(s, 1024, i, h));
    }
    LST_CHECK(lsi_string_pool_bytes(s) == full);
    for (int i = 0; i < 40 * MOST; i++) { // now with longer strings
        ls_string *h = &held[lst_random(&state) % MOST];

        lsi_string_pool_free_strings(s, h, 1);
        LST_CHECK(put(s, 2000, i, h));
    }
    LST_CHECK(lsi_string_pool_bytes(s) <=
              2 * full * 5 / 4); // the chunks of short strings were freed
    lsi_string_pool_free_strings(s, held, MOST);
    LST_CHECK(lsi_string_pool_bytes(s) <= (size_t)4 << 20);
    lsi_string_pool_release(s);
}

LST_TEST(an_owner_keeps_its_strings_after_the_pool_is_released)
{
    lsi_string_pool *s = new_pool();
    ls_string strings[3];

    for (int i = 0; i < 3; i++) {
        LST_CHECK(put(s, 100, 'x' + i, &strings[i]));
    }
    lsi_buffer *loan = lsi_string_pool_owner(s, strings, 3);
    LST_CHECK(loan != NULL);
    lsi_string_pool_release(s);
    for (int i = 0; i < 3; i++) {
        LST_CHECK(is(&strings[i], 100, 'x' + i));
    }
    lsi_buffer_release(loan);
}

struct borrower {
    lsi_buffer *loan;
    ls_string strings[64];
};

/* Reads the strings of an owner and releases it. */
static void read_and_return(void *arg)
{
    struct borrower *b = arg;

    for (int i = 0; i < 64; i++) {
        LST_CHECK(is(&b->strings[i], 3000, i));
    }
    lsi_buffer_release(b->loan);
}

LST_TEST(owners_are_read_and_released_by_other_threads)
{
    lsi_string_pool *s = new_pool();
    struct borrower b[8];
    lsi_thread threads[8];

    for (int round = 0; round < 5; round++) {
        for (int k = 0; k < 8; k++) {
            for (int i = 0; i < 64; i++) {
                LST_CHECK(put(s, 3000, i, &b[k].strings[i]));
            }
            lsi_string_pool_fence();
            b[k].loan = lsi_string_pool_owner(s, b[k].strings, 64);
            LST_OK(lsi_thread_start(&threads[k], read_and_return, &b[k], NULL, "reader"));
        }
        for (int k = 0; k < 8; k++) {
            lsi_thread_join(&threads[k]);
        }
    }
    lsi_string_pool_release(s);
}

static ls_status use(ls_error *err)
{
    lsi_string_pool *s = NULL;
    ls_status st = lsi_string_pool_create(ls_runtime_device(NULL, 0), &s, err);
    lsi_buffer *loan = NULL;
    ls_string strings[300];
    size_t n = 0;

    while (st == LS_OK && n < LSI_COUNT_OF(strings)) {
        if (put(s, n % 2 == 0 ? 1000 : 300000 + n, (int)n, &strings[n])) {
            n++;
        } else {
            st = lsi_fail_memory(err, "a string", n);
        }
    }
    if (st == LS_OK) {
        loan = lsi_string_pool_owner(s, strings, n);
        st = loan != NULL ? LS_OK : lsi_fail_memory(err, "a loan", n);
    }
    if (loan == NULL && n > 0) {
        lsi_string_pool_free_strings(s, strings, n);
    }
    lsi_buffer_release(loan);
    lsi_string_pool_release(s);
    return st;
}

LST_TEST(every_allocation_of_a_pool_may_fail)
{
    lst_every_allocation(use);
}

LST_TEST(slots_that_were_taken_can_be_given_back)
{
    lsi_string_pool *s = new_pool();
    const ls_string strings[4] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}};
    char *slots[4], *again[4];

    LST_CHECK(lsi_string_pool_alloc(s, strings, 4, slots));
    lsi_string_pool_free(s, slots + 1, 3);
    LST_CHECK(lsi_string_pool_alloc(s, strings, 3, again));
    for (int i = 0; i < 3; i++) {
        LST_CHECK(again[i] == slots[3 - i]); // the last one freed is used first
    }
    lsi_string_pool_release(s);
}

LST_MAIN(LST_CASE(strings_of_all_lengths_stay_what_they_were),
         LST_CASE(memory_is_what_is_held_and_a_quarter_more),
         LST_CASE(an_owner_keeps_its_strings_after_the_pool_is_released),
         LST_CASE(owners_are_read_and_released_by_other_threads),
         LST_CASE(every_allocation_of_a_pool_may_fail),
         LST_CASE(slots_that_were_taken_can_be_given_back))
