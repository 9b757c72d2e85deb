/* The memory pool: reuse, alignment, and what is given back to the system. */
#include "device/pool.h"

#include "os/memory.h"
#include "os/thread.h"

#include "ls_test.h"

LST_TEST(blocks_come_back_in_the_order_last_in_first_out)
{
    lsi_pool *pool = lsi_pool_create(NULL);
    void *a = lsi_pool_alloc(pool, 1000, NULL), *b = lsi_pool_alloc(pool, 1000, NULL);
    lsi_pool_stats before, after;

    LST_CHECK(a != NULL && b != NULL && a != b);
    (void)lsi_pool_free(pool, a);
    (void)lsi_pool_free(pool, b);
    lsi_pool_stats_get(pool, &before);
    for (int step = 0; step < 5; step++) { // a steady step: the same addresses again
        LST_CHECK(lsi_pool_alloc(pool, 1000, NULL) == b);
        LST_CHECK(lsi_pool_alloc(pool, 1000, NULL) == a);
        (void)lsi_pool_free(pool, a);
        (void)lsi_pool_free(pool, b);
    }
    lsi_pool_stats_get(pool, &after);
    LST_CHECK(before.system_allocs == 2 && after.system_allocs == 2);
    LST_CHECK(before.bytes_held == after.bytes_held && after.blocks_used == 0);
    lsi_pool_release(pool);
}

LST_TEST(a_block_of_any_size_is_aligned_large_enough_and_wastes_at_most_a_quarter)
{
    lsi_pool *pool = lsi_pool_create(NULL);
    uint64_t seed = 1;

    for (int i = 0; i < 4000; i++) {
        const size_t bytes = (size_t)(lst_random(&seed) >> (lst_random(&seed) % 24 + 40));
        const size_t rounded = lsi_pool_rounded(bytes);

        LST_CHECK(rounded >= bytes && rounded >= 64 && rounded % 64 == 0);
        LST_CHECK(bytes <= 512 || rounded - bytes <= bytes / 4);
        LST_CHECK(lsi_pool_rounded(rounded) == rounded);
        LST_CHECK(lsi_pool_rounded(rounded + 1) > rounded);
        if (i % 20 == 0) {
            unsigned char *p = lsi_pool_alloc(pool, bytes, NULL);

            LST_CHECK(p != NULL && (uintptr_t)p % LSI_POOL_ALIGN == 0);
            memset(p, 0xa5, bytes);
            (void)lsi_pool_free(pool, p);
        }
    }
    lsi_pool_release(pool);
}

LST_TEST(a_block_that_is_too_large_is_not_given)
{
    lsi_pool *pool = lsi_pool_create(NULL);

    LST_CHECK(lsi_pool_alloc(pool, SIZE_MAX, NULL) == NULL);
    LST_CHECK(lsi_pool_alloc(pool, SIZE_MAX - 64, NULL) == NULL);
    LST_CHECK(lsi_pool_alloc(pool, SIZE_MAX / 2, NULL) == NULL);
    LST_CHECK(lsi_pool_rounded(SIZE_MAX) == 0);
    lsi_pool_release(pool);
}

LST_TEST(first_and_last_block_in_use_are_told)
{
    lsi_pool *pool = lsi_pool_create(NULL);
    bool first = false;
    void *a = lsi_pool_alloc(pool, 0, &first), *b;

    LST_CHECK(a != NULL && first);
    b = lsi_pool_alloc(pool, 3 << 20, &first);
    LST_CHECK(b != NULL && !first);
    LST_CHECK(!lsi_pool_free(pool, a));
    LST_CHECK(lsi_pool_free(pool, b));
    lsi_pool_release(pool);
}

LST_TEST(large_free_blocks_are_given_back_when_memory_runs_out)
{
    lsi_pool *pool = lsi_pool_create(NULL);
    lsi_pool_stats stats;
    void *p = lsi_pool_alloc(pool, 4 << 20, NULL);

    (void)lsi_pool_free(pool, p);
    (void)lsi_alloc_fail_at(1);
    p = lsi_pool_alloc(pool, 16 << 20, NULL); // the failure is met by giving 4 MiB back
    (void)lsi_alloc_fail_at(0);
    LST_CHECK(p != NULL);
    lsi_pool_stats_get(pool, &stats);
    LST_CHECK(stats.bytes_held == lsi_pool_rounded(16 << 20) + 64);
    (void)lsi_alloc_fail_at(1);
    LST_CHECK(lsi_pool_alloc(pool, 32 << 20, NULL) == NULL); // nothing is free
    (void)lsi_alloc_fail_at(0);
    lsi_pool_release(pool);
}

/* A step that takes `blocks` blocks of `bytes` at once. */
static void take_step(lsi_pool *pool, size_t bytes, int blocks)
{
    void *p[8] = {NULL};

    for (int i = 0; i < blocks; i++) {
        p[i] = lsi_pool_alloc(pool, bytes, NULL);
        LST_CHECK(p[i] != NULL);
    }
    for (int i = 0; i < blocks; i++) {
        (void)lsi_pool_free(pool, p[i]);
    }
    lsi_pool_step(pool);
}

LST_TEST(idle_sizes_go_where_half_as_much_again_is_held_as_was_in_use)
{
    const size_t most = 8 << 20; // and then a block of 1 MiB, 1.25 MiB ... a step
    lsi_pool *pool = lsi_pool_create(NULL);
    lsi_pool_stats stats;

    (void)lsi_pool_free(pool, lsi_pool_alloc(pool, most, NULL));
    for (size_t i = 0; i < 12; i++) {
        lsi_pool_step(pool);
        (void)lsi_pool_free(pool, lsi_pool_alloc(pool, (4 + i) << 18, NULL));
        lsi_pool_stats_get(pool, &stats);
        LST_CHECK(stats.bytes_held <= most + most / 2 + 4096); // and their headers
    }
    lsi_pool_release(pool);
}

/* Twice: what the last two steps took stays, whatever the sizes. */
LST_TEST(steps_of_varying_size_hold_twice_what_one_needs)
{
    lsi_pool *pool = lsi_pool_create(NULL);
    const size_t most = 8 * lsi_pool_rounded(12 << 20);
    lsi_pool_stats stats;
    uint64_t seed = 3;

    take_step(pool, 12 << 20, 8);
    for (int i = 0; i < 60; i++) {
        take_step(pool, (size_t)((2 << 20) + lst_random(&seed) % (10 << 20)), 8);
        lsi_pool_stats_get(pool, &stats);
        LST_CHECK(stats.bytes_held <= 2 * most + (1 << 20));
    }
    lsi_pool_release(pool);
}

LST_TEST(a_step_that_repeats_itself_keeps_what_it_uses_in_turn)
{
    lsi_pool *pool = lsi_pool_create(NULL);
    lsi_pool_stats before, after;

    // More than twice what is in use at once, but all of it in every step.
    for (int i = 0; i < 300; i++) {
        for (size_t mib = 2; mib <= 32; mib *= 2) {
            void *p = lsi_pool_alloc(pool, mib << 20, NULL);

            (void)lsi_pool_free(pool, p);
        }
        lsi_pool_step(pool);
        lsi_pool_stats_get(pool, i == 0 ? &before : &after);
    }
    LST_CHECK(before.system_allocs == 5 && after.system_allocs == 5);
    LST_CHECK(after.bytes_held == before.bytes_held);
    lsi_pool_release(pool);
}

LST_TEST(what_steps_need_no_more_is_given_back)
{
    lsi_pool *pool = lsi_pool_create(NULL);
    lsi_pool_stats stats;

    take_step(pool, 4 << 20, 8); // once so many
    for (int i = 0; i < 200; i++) {
        take_step(pool, 4 << 20, 1);
    }
    lsi_pool_stats_get(pool, &stats);
    LST_CHECK(stats.bytes_held == lsi_pool_rounded(4 << 20) + 64);
    LST_CHECK(stats.system_allocs == 8);
    lsi_pool_release(pool);
}

LST_TEST(the_last_context_gives_back_unless_others_come_after_it)
{
    lsi_pool *pool = lsi_pool_create(NULL);
    lsi_pool_stats stats;

    lsi_pool_enter(pool);
    lsi_pool_enter(pool);
    take_step(pool, 4 << 20, 2);
    lsi_pool_leave(pool);
    lsi_pool_stats_get(pool, &stats);
    LST_CHECK(stats.bytes_held > (8 << 20)); // one is still there
    lsi_pool_leave(pool);
    lsi_pool_stats_get(pool, &stats);
    LST_CHECK(stats.bytes_held == 0);
    for (int i = 0; i < 3; i++) { // a context for every step: only the first one pays
        lsi_pool_enter(pool);
        take_step(pool, 4 << 20, 2);
        lsi_pool_leave(pool);
    }
    lsi_pool_stats_get(pool, &stats);
    LST_CHECK(stats.bytes_held > (8 << 20) && stats.system_allocs == 4);
    lsi_pool_release(pool);
}

LST_TEST(forgotten_bytes_are_whole_pages_and_nothing_beside_them)
{
    enum { BYTES = 1 << 20, EDGE = 100 };
    unsigned char *p = lsi_alloc_aligned(BYTES, 4096);
    int zeros = 0;

    memset(p, 0xa5, BYTES);
    lsi_memory_forget(p + EDGE, BYTES - 2 * EDGE);
    for (int i = 0; i < BYTES; i++) {
        zeros += p[i] == 0;
    }
    for (int i = 0; i < EDGE; i++) {
        LST_CHECK(p[i] == 0xa5 && p[BYTES - 1 - i] == 0xa5);
    }
#ifdef __linux__
    LST_CHECK(zeros > BYTES / 2); // given back: they read as new memory
#endif
    lsi_free(p);
}

static void churn(void *arg)
{
    unsigned char *mine[16] = {NULL};
    uint64_t seed = (uint64_t)(uintptr_t)&mine;
    const unsigned char tag = (unsigned char)(seed >> 8);

    for (int i = 0; i < 20000; i++) {
        const size_t k = lst_random(&seed) % LSI_COUNT_OF(mine);

        if (mine[k] != NULL) {
            LST_CHECK(mine[k][0] == tag && mine[k][99] == tag); // nobody else had it
            (void)lsi_pool_free(arg, mine[k]);
            mine[k] = NULL;
        } else {
            mine[k] = lsi_pool_alloc(arg, 100 + k, NULL);
            memset(mine[k], tag, 100);
        }
    }
    for (size_t k = 0; k < LSI_COUNT_OF(mine); k++) {
        if (mine[k] != NULL) {
            (void)lsi_pool_free(arg, mine[k]);
        }
    }
}

LST_TEST(threads_that_share_a_pool_never_get_the_same_block)
{
    ls_error err = LS_ERROR_INIT;
    lsi_pool *pool = lsi_pool_create(NULL);
    lsi_pool_stats stats;
    lsi_thread other;

    LST_OK(lsi_thread_start(&other, churn, pool, &err, "churn"));
    churn(pool);
    lsi_thread_join(&other);
    lsi_pool_stats_get(pool, &stats);
    LST_CHECK(stats.blocks_used == 0 && stats.system_allocs <= 32);
    lsi_pool_release(pool);
}

LST_MAIN(
    LST_CASE(blocks_come_back_in_the_order_last_in_first_out),
    LST_CASE(a_block_of_any_size_is_aligned_large_enough_and_wastes_at_most_a_quarter),
    LST_CASE(a_block_that_is_too_large_is_not_given),
    LST_CASE(first_and_last_block_in_use_are_told),
    LST_CASE(large_free_blocks_are_given_back_when_memory_runs_out),
    LST_CASE(idle_sizes_go_where_half_as_much_again_is_held_as_was_in_use),
    LST_CASE(steps_of_varying_size_hold_twice_what_one_needs),
    LST_CASE(a_step_that_repeats_itself_keeps_what_it_uses_in_turn),
    LST_CASE(what_steps_need_no_more_is_given_back),
    LST_CASE(the_last_context_gives_back_unless_others_come_after_it),
    LST_CASE(forgotten_bytes_are_whole_pages_and_nothing_beside_them),
    LST_CASE(threads_that_share_a_pool_never_get_the_same_block))
