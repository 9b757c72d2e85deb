/* Tests of feeds and prefetching: it changes the timing only, not the elements. */
#include "input_test.h"

/* A source that counts how many elements were requested. */
struct tap {
    atomic_int asked;
    int64_t end;  /* number of elements */
    int64_t fail; /* the element that fails; -1: none */
};

struct tap_state {
    struct tap *tap;
    int64_t next;
};

static ls_status tap_open(void *user, void **state, ls_error *err)
{
    struct tap_state *s = lsi_alloc(1, sizeof *s);

    if (s == NULL) {
        return lsi_fail_memory(err, "a tap", sizeof *s);
    }
    s->tap = user;
    *state = s;
    return LS_OK;
}

/* A clock that the test sets, and the time by it that an element takes. */
static _Atomic int64_t clock_ns, making_ns;

static int64_t test_time(void)
{
    return atomic_load(&clock_ns);
}

static ls_status tap_next(void *state, ls_value **out, ls_error *err)
{
    struct tap_state *s = state;
    const int64_t x = s->next++;
    ls_tensor *t = NULL;
    ls_status st;

    atomic_fetch_add(&clock_ns, atomic_load(&making_ns));
    atomic_fetch_add(&s->tap->asked, 1);
    if (x == s->tap->fail) {
        return lsi_fail(err, LS_UNAVAILABLE, -1, "element %lld is bad", (long long)x);
    }
    if (x >= s->tap->end) {
        return LS_OUT_OF_RANGE;
    }
    st = ls_tensor_create(NULL, LS_I64, LS_SCALAR, &x, &t, err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static void tap_close(void *state)
{
    lsi_free(state);
}

static ls_dataset *tapped(struct tap *tap)
{
    const ls_source source = {sizeof source, tap_open, tap_next, tap_close, tap};
    ls_spec *spec = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_spec_tensor(LS_I64, 0, NULL, &spec, &err));
    ls_dataset *d = ls_dataset_source(&source, spec);
    ls_spec_release(spec);
    return d;
}

static lsi_feed *feed_of(ls_dataset *d, size_t ahead)
{
    const lsi_feed_options o = {.dataset = d, .ahead = ahead};
    lsi_feed *f = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(lsi_feed_open(&o, &f, &err));
    return f;
}

/* The next element as a number, or minus the status. */
static int64_t take_number(lsi_feed *f)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL;
    const ls_status st = lsi_feed_take(f, &v, &err);

    if (st != LS_OK) {
        LST_CHECK(err.code == st);
        return -(int64_t)st;
    }
    const int64_t x = *(const int64_t *)ls_tensor_data(ls_value_as_tensor(v));
    ls_value_release(v);
    return x;
}

/* Waits until *x >= least; the harness ends a test that waits for ever. */
static void wait_for(atomic_int *x, int least)
{
    while (atomic_load(x) < least) {
        lsi_yield();
    }
}

LST_TEST(elements_come_in_order_however_far_it_reads_ahead)
{
    for (size_t ahead = 0; ahead < 12; ahead++) {
        struct tap tap = {0, 500, -1};
        ls_dataset *d = tapped(&tap);
        lsi_feed *f = feed_of(d, ahead);

        for (int64_t i = 0; i < 500; i++) {
            LST_CHECK(take_number(f) == i);
        }
        for (int i = 0; i < 3; i++) {
            LST_CHECK(take_number(f) == -LS_OUT_OF_RANGE);
        }
        LST_CHECK(atomic_load(&tap.asked) == 501); // the end is requested once
        lsi_feed_close(f);
        ls_dataset_release(d);
    }
}

LST_TEST(without_prefetching_nothing_is_read_before_it_is_requested)
{
    struct tap tap = {0, 10, -1};
    ls_dataset *d = tapped(&tap);
    lsi_feed *f = feed_of(d, 0);

    for (int i = 0; i < 5; i++) {
        LST_CHECK(atomic_load(&tap.asked) == i);
        LST_CHECK(take_number(f) == i);
    }
    lsi_feed_close(f);
    ls_dataset_release(d);
}

LST_TEST(it_prefetches_up_to_its_limit_and_no_further)
{
    struct tap tap = {0, 100, -1};
    ls_dataset *d = tapped(&tap);
    lsi_feed *f = feed_of(d, 4);

    LST_CHECK(take_number(f) == 0);
    wait_for(&tap.asked, 5);
    for (int i = 1; i < 50; i++) {
        LST_CHECK(take_number(f) == i);
        LST_CHECK(atomic_load(&tap.asked) <= i + 5);
    }
    lsi_feed_close(f);
    ls_dataset_release(d);
}

LST_TEST(elements_that_cost_less_than_a_thread_are_not_prefetched)
{
    struct tap tap = {0, 100, -1};
    ls_dataset *d = tapped(&tap);
    const lsi_feed_options o = {.dataset = d, .ahead = 4, .cheap_ns = INT64_MAX};
    lsi_feed *f = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(lsi_feed_open(&o, &f, &err));
    for (int i = 0; i < 50; i++) {
        LST_CHECK(take_number(f) == i);
        LST_CHECK(atomic_load(&tap.asked) == i + 1);
    }
    lsi_feed_close(f);
    ls_dataset_release(d);
}

/*
 * Takes 50 elements that take 50 us each to make, `gap` ns between two calls: how many
 * more were made than taken.
 */
static int made_ahead(int64_t gap, int least)
{
    struct tap tap = {0, 100, -1};
    ls_dataset *d = tapped(&tap);
    const lsi_feed_options o = {
        .dataset = d, .ahead = 4, .cheap_ns = 10000, .now_ns = test_time};
    lsi_feed *f = NULL;
    ls_error err = LS_ERROR_INIT;
    int ahead;

    atomic_store(&making_ns, 50000);
    LST_OK(lsi_feed_open(&o, &f, &err));
    for (int i = 0; i < 50; i++) {
        LST_CHECK(take_number(f) == i);
        atomic_fetch_add(&clock_ns, gap);
    }
    wait_for(&tap.asked, 50 + least);
    for (int i = 0; i < 2000 && least == 0; i++) { // time for a mistake
        lsi_yield();
    }
    ahead = atomic_load(&tap.asked) - 50;
    lsi_feed_close(f);
    ls_dataset_release(d);
    atomic_store(&making_ns, 0);
    return ahead;
}

LST_TEST(a_reader_without_pauses_gets_no_prefetch)
{
    LST_CHECK(made_ahead(0, 0) == 0);
    LST_CHECK(made_ahead(9000, 0) == 0);
    LST_CHECK(made_ahead(20000, 1) > 0);
}

static ls_value *two_ints(int64_t a, int64_t b)
{
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_OK(
        ls_tensor_create(NULL, LS_I64, LS_SHAPE(2), (const int64_t[]){a, b}, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return v;
}

/* A value with other references is not changed. */
LST_TEST(an_element_goes_to_the_device_of_its_replica_unless_shared_then_a_copy_does)
{
    ls_runtime_options options = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_value *pair = NULL, *out = NULL, *items[2] = {two_ints(1, 2), two_ints(3, 4)};
    ls_error err = LS_ERROR_INIT;

    options.logical_cpus = 2;
    LST_OK(ls_runtime_create(&options, &rt, &err));
    ls_device *device = ls_runtime_device(rt, 1);
    ls_device *before = ls_tensor_device(ls_value_as_tensor(items[0]));
    LST_OK(ls_value_tuple(items, 2, &pair, &err));
    // the pair holds the only reference to it; the test holds the first one, too
    ls_value_release(items[1]);
    const void *shared = ls_tensor_data(ls_value_as_tensor(items[0]));
    LST_OK(lsi_value_move(pair, device, &out, &err));
    for (size_t i = 0; i < 2; i++) {
        const ls_tensor *t = ls_value_as_tensor(ls_value_child(out, i));

        LST_CHECK(ls_tensor_device(t) == device);
        LST_CHECK(((const int64_t *)ls_tensor_data(t))[0] == (i == 0 ? 1 : 3));
    }
    LST_CHECK(ls_tensor_device(ls_value_as_tensor(items[0])) == before);
    LST_CHECK(ls_tensor_data(ls_value_as_tensor(items[0])) == shared);
    ls_value_release(items[0]);
    ls_value_release(out);

    items[0] = two_ints(5, 6); // no other references: changed in place
    LST_OK(lsi_value_move(items[0], device, &out, &err));
    LST_CHECK(out == items[0]);
    LST_CHECK(ls_tensor_device(ls_value_as_tensor(out)) == device);
    ls_value_release(out);
    ls_runtime_release(rt);
}

LST_TEST(a_failure_comes_in_its_place_and_the_rest_after_it)
{
    for (size_t ahead = 0; ahead < 6; ahead++) {
        struct tap tap = {0, 6, 3};
        ls_dataset *d = tapped(&tap);
        lsi_feed *f = feed_of(d, ahead);
        static const int64_t want[] = {0, 1, 2, -LS_UNAVAILABLE, 4, 5, -LS_OUT_OF_RANGE};

        for (size_t i = 0; i < LSI_COUNT_OF(want); i++) {
            LST_CHECK(take_number(f) == want[i]);
        }
        lsi_feed_close(f);
        ls_dataset_release(d);
    }
}

LST_TEST(a_feed_may_be_closed_at_any_time)
{
    for (int takes = 0; takes < 20; takes++) {
        struct tap tap = {0, 12, 9};
        ls_dataset *d = tapped(&tap);
        lsi_feed *f = feed_of(d, 3);

        for (int i = 0; i < takes; i++) {
            (void)take_number(f);
        }
        lsi_feed_close(f);
        ls_dataset_release(d);
    }
}

/* The queue, a failure and the end are part of the state. */
static ls_dataset *ten(void)
{
    return in_range(10);
}

LST_TEST(a_position_holds_what_was_read_ahead)
{
    for (int takes = 0; takes <= 11; takes++) {
        ls_dataset *d = ten(), *same = ten();
        lsi_feed *f = feed_of(d, 4), *g = feed_of(same, (size_t)(takes % 3));
        lsi_state_writer w = {0};
        ls_error err = LS_ERROR_INIT;

        for (int i = 0; i < takes; i++) {
            (void)take_number(f);
        }
        LST_OK(lsi_feed_save(f, &w, &err));
        lsi_state_reader r = {w.bytes, w.size, 0, NULL};
        (void)take_number(g); // a position that the restore replaces
        LST_OK(lsi_feed_restore(g, &r, &err));
        for (int64_t i = takes; i < 10; i++) {
            LST_CHECK(take_number(f) == i && take_number(g) == i);
        }
        LST_CHECK(take_number(f) == -LS_OUT_OF_RANGE &&
                  take_number(g) == -LS_OUT_OF_RANGE);
        lsi_state_writer_clear(&w);
        lsi_feed_close(f);
        lsi_feed_close(g);
        ls_dataset_release(d);
        ls_dataset_release(same);
    }
}

/* Saves the state once `ready` elements are in the queue. */
static void save_with(lsi_feed *f, uint64_t ready, lsi_state_writer *w)
{
    ls_error err = LS_ERROR_INIT;
    uint64_t dealt = 0, count = 0;

    do {
        lsi_state_writer_clear(w);
        lsi_yield();
        LST_OK(lsi_feed_save(f, w, &err));
        lsi_state_reader r = {w->bytes, w->size, 0, NULL};
        LST_OK(lsi_state_read_u64(&r, &dealt, &err));
        LST_OK(lsi_state_read_u64(&r, &count, &err));
    } while (count < ready);
    LST_CHECK(count == ready);
}

LST_TEST(a_restore_drops_the_queue)
{
    ls_dataset *d = ten(), *same = ten();
    lsi_feed *f = feed_of(d, 4), *g = feed_of(same, 0);
    lsi_state_writer w = {0};
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(take_number(f) == 0);
    save_with(f, 4, &w);
    for (int turn = 0; turn < 3; turn++) { // four elements in the queue each time
        lsi_state_reader r = {w.bytes, w.size, 0, NULL};

        LST_OK(lsi_feed_restore(g, &r, &err));
        LST_CHECK(take_number(g) == 1);
    }
    for (int64_t i = 2; i < 10; i++) {
        LST_CHECK(take_number(g) == i);
    }
    LST_CHECK(take_number(g) == -LS_OUT_OF_RANGE);
    lsi_state_writer_clear(&w);
    lsi_feed_close(f);
    lsi_feed_close(g);
    ls_dataset_release(d);
    ls_dataset_release(same);
}

static ls_status end_at_two(void *state, ls_value **out, ls_error *err)
{
    struct tap *tap = state;
    struct tap_state s = {tap, atomic_load(&tap->asked)};

    return tap_next(&s, out, err);
}

LST_TEST(a_callable_is_not_asked_after_the_end)
{
    struct tap tap = {0, 2, -1};
    const lsi_feed_options o = {.callable = end_at_two, .user = &tap, .ahead = 7};
    lsi_feed *f = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(lsi_feed_open(&o, &f, &err));
    LST_CHECK(take_number(f) == 0 && atomic_load(&tap.asked) == 1); // never prefetched
    LST_CHECK(take_number(f) == 1 && atomic_load(&tap.asked) == 2);
    for (int i = 0; i < 4; i++) {
        LST_CHECK(take_number(f) == -LS_OUT_OF_RANGE);
    }
    LST_CHECK(atomic_load(&tap.asked) == 3);
    lsi_feed_close(f);
}

LST_TEST(after_a_failed_restore_there_is_no_data_until_one_succeeds)
{
    ls_dataset *d = ten();
    lsi_feed *f = feed_of(d, 4);
    lsi_state_writer w = {0};
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(take_number(f) == 0);
    LST_OK(lsi_feed_save(f, &w, &err));
    for (size_t cut = 0; cut < w.size; cut += 3) {
        lsi_state_reader part = {w.bytes, cut, 0, NULL};
        const ls_status st = lsi_feed_restore(f, &part, &err);

        LST_CHECK(st != LS_OK && err.code == st);
        LST_CHECK(take_number(f) == -(int64_t)st && take_number(f) == -(int64_t)st);
    }
    lsi_state_reader r = {w.bytes, w.size, 0, NULL};
    LST_OK(lsi_feed_restore(f, &r, &err));
    LST_CHECK(take_number(f) == 1);
    lsi_state_writer_clear(&w);
    lsi_feed_close(f);
    ls_dataset_release(d);
}

static in_machine shared_machine; // created before allocations begin to fail

static ls_status use_once(ls_error *err)
{
    ls_distribute_options o = LS_DISTRIBUTE_OPTIONS_INIT;
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_value *v = NULL, *state = NULL;
    ls_dataset *d = ls_dataset_batch(in_range(5), 3);
    ls_status st;

    // no thread, so that the n-th allocation is always the same
    o.per_replica_buffer = -1;
    st = ls_strategy_distribute(shared_machine.s, d, &o, &dd, err);
    st = st == LS_OK ? ls_dist_iterate(dd, &it, err) : st;
    for (int i = 0; i < 2; i++) {
        st = st == LS_OK ? ls_dist_iterator_next(it, &v, err) : st;
        ls_value_release(v);
        v = NULL;
        st = st == LS_OK ? ls_dist_iterator_save(it, &state, err) : st;
        st = st == LS_OK ? ls_dist_iterator_restore(it, state, err) : st;
        ls_value_release(state);
        state = NULL;
    }
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
    return st;
}

LST_TEST(every_allocation_of_a_distributed_iterator_may_fail)
{
    shared_machine = in_machine_of(2);
    lst_every_allocation(use_once);
    in_machine_end(&shared_machine);
}

LST_MAIN(
    LST_CASE(elements_come_in_order_however_far_it_reads_ahead),
    LST_CASE(without_prefetching_nothing_is_read_before_it_is_requested),
    LST_CASE(it_prefetches_up_to_its_limit_and_no_further),
    LST_CASE(elements_that_cost_less_than_a_thread_are_not_prefetched),
    LST_CASE(a_reader_without_pauses_gets_no_prefetch),
    LST_CASE(an_element_goes_to_the_device_of_its_replica_unless_shared_then_a_copy_does),
    LST_CASE(a_failure_comes_in_its_place_and_the_rest_after_it),
    LST_CASE(a_feed_may_be_closed_at_any_time),
    LST_CASE(a_position_holds_what_was_read_ahead), LST_CASE(a_restore_drops_the_queue),
    LST_CASE(a_callable_is_not_asked_after_the_end),
    LST_CASE(after_a_failed_restore_there_is_no_data_until_one_succeeds),
    LST_CASE(every_allocation_of_a_distributed_iterator_may_fail))
