/* prefetch: reading ahead, the threads it shares, saving, failing allocations. */
#include "data/data_test.h"
#include "lockstep/replica.h"

static ls_value *fail_at_two(ls_context *c, ls_value *x, void *user)
{
    (void)user;
    if (*(const int64_t *)ls_tensor_data(ls_value_as_tensor(x)) == 2) {
        (void)(ls_context_fail)(c, LS_UNAVAILABLE, "two");
        return NULL;
    }
    return x;
}

/* Counts calls, and wakes the thread that waits for a number of them. */
struct gauge {
    lsi_mutex lock;
    lsi_cond more;
    int calls;
};

static ls_value *count(ls_context *c, ls_value *x, void *user)
{
    struct gauge *g = user;

    (void)c;
    lsi_mutex_lock(&g->lock);
    g->calls++;
    lsi_cond_broadcast(&g->more);
    lsi_mutex_unlock(&g->lock);
    return x;
}

static bool wait_for(struct gauge *g, int calls)
{
    const lsi_deadline late = lsi_deadline_in_ms(20000);
    bool reached = false;

    lsi_mutex_lock(&g->lock);
    while (g->calls < calls && lsi_cond_wait(&g->more, &g->lock, late)) {
    }
    reached = g->calls >= calls;
    lsi_mutex_unlock(&g->lock);
    return reached;
}

static ls_dataset *failing(void)
{
    return ls_dataset_map(lst_range(5), fail_at_two, NULL, NULL);
}

LST_TEST(a_prefetch_changes_nothing_but_the_time)
{
    static const int64_t buffers[] = {0, 1, 2, 3, 1000000000000, LS_AUTOTUNE};

    for (size_t i = 0; i < LSI_COUNT_OF(buffers); i++) {
        ls_dataset *d = ls_dataset_prefetch(failing(), buffers[i]);

        LST_CHECK(ls_dataset_cardinality(d) == 5);
        LST_CHECK(lst_gives(d, "0 1 !UNAVAILABLE 3 4"));
    }
    LST_CHECK(lst_code(ls_dataset_prefetch(lst_range(2), -2)) == LS_INVALID_ARGUMENT);
}

LST_TEST(a_producer_reads_ahead_as_far_as_the_buffer_goes)
{
    struct gauge g = {.calls = 0};
    ls_dataset *d = NULL;
    ls_iterator *it = NULL;
    lst_text t = {{0}, 0};

    lsi_mutex_init(&g.lock);
    lsi_cond_init(&g.more);
    d = ls_dataset_prefetch(ls_dataset_map(lst_range(50), count, &g, NULL), 4);
    LST_OK(ls_dataset_iterate(d, &it, NULL));
    LST_CHECK(g.calls == 0); // nothing is read before the first call
    LST_CHECK(lst_put_next(&t, it));
    LST_CHECK(wait_for(&g, 5)); // one consumed and four ahead
    lsi_sleep_ns(20000000);     // time for a producer that wrongly goes on
    ls_iterator_release(it);
    LST_CHECK(g.calls == 5);
    ls_dataset_release(d);
    lsi_cond_destroy(&g.more);
    lsi_mutex_destroy(&g.lock);
}

LST_TEST(many_pipelines_share_few_threads)
{
    enum { MANY = 24 };
    ls_dataset *d[MANY] = {NULL};
    ls_iterator *it[MANY] = {NULL};
    lst_text *t = lsi_alloc(MANY, sizeof *t);

    LST_CHECK(t != NULL);
    for (int i = 0; i < MANY; i++) {
        d[i] = ls_dataset_prefetch(
            ls_dataset_batch(ls_dataset_prefetch(lst_range(12), 2), 3), 2);
        LST_OK(ls_dataset_iterate(d[i], &it[i], NULL));
    }
    for (int k = 0; k < 5; k++) {
        for (int i = 0; i < MANY; i++) {
            (void)lst_put_next(&t[i], it[i]);
        }
    }
    for (int i = 0; i < MANY; i++) {
        LST_CHECK(lst_same(&t[i], "[0 1 2] [3 4 5] [6 7 8] [9 10 11]"));
        ls_iterator_release(it[i]);
        ls_dataset_release(d[i]);
    }
    lsi_free(t);
}

static ls_dataset *buffered(void)
{
    return ls_dataset_prefetch(
        ls_dataset_repeat(ls_dataset_shuffle(lst_range(6), 3, 9), 2), 4);
}

static ls_dataset *with_failures(void)
{
    return ls_dataset_prefetch(failing(), 3);
}

static ls_dataset *direct(void)
{
    return ls_dataset_prefetch(lst_range(4), 0);
}

LST_TEST(D104_what_was_produced_and_not_consumed_is_saved)
{
    struct gauge g = {.calls = 0};
    ls_dataset *d[2] = {NULL, NULL};
    ls_iterator *it[2] = {NULL, NULL};
    ls_value *state = NULL;
    lst_text first = {{0}, 0};

    lsi_mutex_init(&g.lock);
    lsi_cond_init(&g.more);
    for (int i = 0; i < 2; i++) {
        d[i] = ls_dataset_prefetch(ls_dataset_map(lst_range(10), count, &g, NULL), 4);
        LST_OK(ls_dataset_iterate(d[i], &it[i], NULL));
    }
    LST_CHECK(lst_put_next(&first, it[0]));
    LST_CHECK(wait_for(&g, 5)); // full: the producer is submitted again at half
    for (int i = 0; i < 2; i++) {
        LST_CHECK(lst_put_next(&first, it[0]));
    }
    LST_CHECK(wait_for(&g, 7)); // three consumed and four ahead: the producer is idle
    LST_OK(ls_iterator_save(it[0], &state, NULL));
    LST_OK(ls_iterator_restore(it[1], state, NULL));
    for (int i = 0; i < 2; i++) {
        lst_text rest = {{0}, 0};

        lst_put_rest(&rest, it[i], 60);
        LST_CHECK(lst_same(&rest, "3 4 5 6 7 8 9"));
        ls_iterator_release(it[i]);
        ls_dataset_release(d[i]);
    }
    ls_value_release(state);
    lsi_cond_destroy(&g.more);
    lsi_mutex_destroy(&g.lock);
}

LST_TEST(a_position_saved_while_the_producer_runs_is_exact)
{
    ls_dataset *d = ls_dataset_prefetch(lst_range(300), 8);
    ls_iterator *from = NULL, *to = NULL;
    lst_text one = {{0}, 0}, other = {{0}, 0};

    LST_OK(ls_dataset_iterate(d, &from, NULL));
    LST_OK(ls_dataset_iterate(d, &to, NULL));
    for (int i = 0; i < 299; i++) {
        ls_value *state = NULL;

        LST_CHECK(lst_put_next(&one, from));
        LST_OK(ls_iterator_save(from, &state, NULL));
        LST_OK(ls_iterator_restore(to, state, NULL));
        LST_CHECK(lst_put_next(&other, to));
        ls_value_release(state);
    }
    LST_CHECK(lst_put_next(&one, from) && !lst_put_next(&one, from));
    LST_CHECK(strcmp(one.s + 2, other.s) == 0); // the other one is one element ahead
    ls_iterator_release(from);
    ls_iterator_release(to);
    ls_dataset_release(d);
}

LST_TEST(prefetches_continue_where_they_were_saved)
{
    LST_SAVES(buffered);
    LST_SAVES(with_failures);
    LST_SAVES(direct);
}

LST_TEST(a_state_may_be_restored_where_the_buffer_is_smaller)
{
    ls_dataset *wide = ls_dataset_prefetch(lst_range(30), 20);
    ls_dataset *narrow = ls_dataset_prefetch(lst_range(30), 1);
    ls_iterator *from = NULL, *to = NULL;
    lst_text t = {{0}, 0};
    ls_value *state = NULL;

    LST_OK(ls_dataset_iterate(wide, &from, NULL));
    LST_OK(ls_dataset_iterate(narrow, &to, NULL));
    LST_CHECK(lst_put_next(&t, from));
    LST_OK(ls_iterator_save(from, &state, NULL));
    LST_OK(ls_iterator_restore(to, state, NULL));
    t.n = 0;
    lst_put_rest(&t, to, 5);
    LST_CHECK(lst_same(&t, "1 2 3 4 5 ..."));
    ls_value_release(state);
    ls_iterator_release(from);
    ls_iterator_release(to);
    ls_dataset_release(wide);
    ls_dataset_release(narrow);
}

static ls_status walk(ls_error *err)
{
    return lst_read(ls_dataset_prefetch(lst_range(4), 2), 4, err);
}

LST_TEST(no_allocation_that_fails_in_a_prefetch_leaks_or_hangs)
{
    lst_every_allocation(walk);
}

LST_MAIN(LST_CASE(a_prefetch_changes_nothing_but_the_time),
         LST_CASE(a_producer_reads_ahead_as_far_as_the_buffer_goes),
         LST_CASE(many_pipelines_share_few_threads),
         LST_CASE(D104_what_was_produced_and_not_consumed_is_saved),
         LST_CASE(a_position_saved_while_the_producer_runs_is_exact),
         LST_CASE(prefetches_continue_where_they_were_saved),
         LST_CASE(a_state_may_be_restored_where_the_buffer_is_smaller),
         LST_CASE(no_allocation_that_fails_in_a_prefetch_leaks_or_hangs))
