/* Where a context stands in its random numbers: seed, stream and position. */
#include "ls_row_check.h"

#include "os/thread.h"

enum { N = 10 };

static ls_context *open_stream(ls_runtime *rt, uint64_t stream)
{
    ls_context_options opts = LS_CONTEXT_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_context *c = NULL;

    opts.stream = stream;
    LST_OK(ls_context_open(ls_runtime_device(rt, 0), &opts, &c, &err));
    return c;
}

static uint64_t position(const ls_context *c)
{
    ls_random_state s = {0};

    ls_context_random_state(c, &s);
    return s.position;
}

static void draw_some(ls_context *c, float *out)
{
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = ls_random_uniform(c, LS_F32, LS_SHAPE(N), 0, 1);

    LST_CHECK(t != NULL && ls_tensor_read(t, out, N * sizeof *out, &err) == LS_OK);
}

LST_TEST(a_state_that_was_kept_goes_on_exactly)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_context *other = open_stream(rt, 9);
    ls_error err = LS_ERROR_INIT;
    ls_random_state kept = {0};
    float want[N], got[N], again[N];

    draw_some(c, got);
    ls_context_random_state(c, &kept);
    draw_some(c, want);
    LST_CHECK(memcmp(got, want, sizeof got) != 0);
    draw_some(other, got);
    LST_OK(ls_context_set_random_state(other, &kept, &err));
    draw_some(other, got);
    LST_OK(ls_context_set_random_state(c, &kept, &err));
    LST_OK(ls_context_finish(c, &err)); // a step's end moves nothing
    draw_some(c, again);
    LST_CHECK(memcmp(got, want, sizeof got) == 0);
    LST_CHECK(memcmp(again, want, sizeof got) == 0);
    ls_context_close(other);
    lst_close(c, rt);
}

LST_TEST(contexts_draw_by_their_own_stream_whatever_others_draw)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_context *same = open_stream(rt, 0);
    ls_context *one = open_stream(rt, 1);
    ls_context *far = open_stream(rt, INT64_MAX);
    float a[N], b[N], d[N], e[N];

    draw_some(c, a);
    draw_some(one, d);
    draw_some(same, b);
    draw_some(far, e);
    LST_CHECK(memcmp(a, b, sizeof a) == 0);
    LST_CHECK(memcmp(a, d, sizeof a) != 0);
    LST_CHECK(memcmp(a, e, sizeof a) != 0 && memcmp(d, e, sizeof d) != 0);
    ls_context_close(same);
    ls_context_close(one);
    ls_context_close(far);
    lst_close(c, rt);
}

LST_TEST(positions_count_whole_blocks)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = ZEROS(c, LS_SHAPE(9));

    (void)ls_random_uniform(c, LS_F32, LS_SHAPE(5), 0, 1);
    LST_CHECK(position(c) == 2);
    (void)ls_random_normal(c, LS_F64, LS_SHAPE(5), 0, 1);
    LST_CHECK(position(c) == 2 + 3);
    (void)ls_random_uniform(c, LS_I32, LS_SHAPE(4), 0, 9);
    LST_CHECK(position(c) == 5 + 2);
    (void)ls_dropout(c, x, 0.5);
    LST_CHECK(position(c) == 7 + 3);
    (void)ls_dropout(c, x, 0); // draws nothing
    (void)ls_random_uniform(c, LS_F32, LS_SHAPE(0), 0, 1);
    LST_CHECK(position(c) == 10);
    (void)ls_random_truncated_normal(c, LS_F32, LS_SHAPE(4), 0, 1);
    LST_CHECK(position(c) == 10 + 4 * 64);
    (void)ls_random_truncated_normal(c, LS_F64, LS_SHAPE(2), 0, 1);
    LST_CHECK(position(c) == 266 + 2 * 64);
    lst_close(c, rt);
}

/* Two calls of a truncated normal give what one for both gives: stretches do not overlap.
 */
LST_TEST(truncated_numbers_go_on_where_they_ended)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_context *whole = open_stream(rt, 0);
    ls_tensor *first = ls_random_truncated_normal(c, LS_F32, LS_SHAPE(400), 0, 1);
    ls_tensor *second = ls_random_truncated_normal(c, LS_F32, LS_SHAPE(400), 0, 1);
    ls_tensor *both = ls_random_truncated_normal(whole, LS_F32, LS_SHAPE(800), 0, 1);

    LST_CHECK(memcmp(first->data, both->data, 1600) == 0);
    LST_CHECK(memcmp(second->data, (const char *)both->data + 1600, 1600) == 0);
    ls_context_close(whole);
    lst_close(c, rt);
}

LST_TEST(a_failed_operation_draws_nothing)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_error err = LS_ERROR_INIT;
    ls_tensor *x = NULL;

    (void)ls_random_uniform(c, LS_BOOL, LS_SHAPE(8), 0, 1);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "not bool");
    (void)ls_random_normal(c, LS_I32, LS_SHAPE(8), 0, 1);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "floating");
    (void)ls_random_uniform(c, LS_F32, LS_SHAPE(8, -1), 0, 1);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "no shape");
    (void)ls_random_uniform(c, LS_F32, LS_SHAPE(8), 2, 1);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "not a range");
    (void)ls_random_uniform(c, LS_F32, LS_SHAPE((int64_t)1 << 60), 0, 1);
    (void)!ls_context_finish(c, &err);
    LST_CHECK(err.code != LS_OK);
    (void)ls_dropout(c, ZEROS(c, LS_SHAPE(8)), 1.5);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "rate");
    (void)ls_dropout(c, ls_constant(c, LS_I32, LS_SHAPE(8), NULL), 0.5);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "floating");
    x = ZEROS(c, LS_SHAPE(8));
    (void)ls_context_fail(c, LS_UNKNOWN, "before"); // what follows does nothing
    (void)ls_random_uniform(c, LS_F32, LS_SHAPE(8), 0, 1);
    (void)ls_dropout(c, x, 0.5);
    LST_STEP_FAILS(c, LS_UNKNOWN, "before");
    LST_CHECK(position(c) == 0);
    lst_close(c, rt);
}

/* Every allocation of the first operation fails in turn; the context draws as if never.
 */
LST_TEST(an_operation_without_memory_draws_nothing)
{
    float want[N], got[N];
    int failures = 0;

    for (int64_t at = 1;; at++) {
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        ls_error err = LS_ERROR_INIT;
        ls_tensor *t = NULL;

        (void)lsi_alloc_fail_at(at);
        t = ls_random_uniform(c, LS_F32, LS_SHAPE(N), 0, 1);
        (void)lsi_alloc_fail_at(0);
        if (t != NULL) {
            LST_OK(ls_tensor_read(t, want, sizeof want, &err));
            LST_CHECK(position(c) == 3);
        } else {
            LST_FAILS(ls_context_finish(c, &err), LS_RESOURCE_EXHAUSTED, err, "");
            LST_CHECK(position(c) == 0);
            draw_some(c, got);
            failures++;
        }
        lst_close(c, rt);
        if (t != NULL) {
            break;
        }
    }
    LST_CHECK(failures >= 1 && memcmp(want, got, sizeof want) == 0);
}

LST_TEST(a_stream_ends_instead_of_beginning_again)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_error err = LS_ERROR_INIT;
    const ls_random_state last = {0, 0, UINT64_MAX - 2};

    LST_OK(ls_context_set_random_state(c, &last, &err));
    (void)ls_random_uniform(c, LS_F32, LS_SHAPE(12), 0, 1);
    LST_STEP_FAILS(c, LS_OUT_OF_RANGE, "random_uniform: the stream ends");
    LST_CHECK(position(c) == UINT64_MAX - 2);
    LST_CHECK(ls_random_uniform(c, LS_F32, LS_SHAPE(8), 0, 1) != NULL);
    LST_CHECK(position(c) == UINT64_MAX);
    lst_close(c, rt);
}

LST_TEST(mistakes_with_states_are_named)
{
    ls_context_options opts = LS_CONTEXT_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_random_state s = {1, 2, 3};
    ls_context *c = NULL;

    opts.stream = UINT64_C(1) << 63;
    LST_FAILS(ls_context_open(NULL, &opts, &c, &err), LS_INVALID_ARGUMENT, err,
              "below 2^63");
    LST_FAILS(ls_context_set_random_state(NULL, &s, &err), LS_INVALID_ARGUMENT, err,
              "the context is NULL");
    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    LST_FAILS(ls_context_set_random_state(c, NULL, &err), LS_INVALID_ARGUMENT, err,
              "the state is NULL");
    ls_context_random_state(NULL, &s);
    LST_CHECK(s.seed == 0 && s.stream == 0 && s.position == 0);
    ls_context_random_state(c, NULL);
    ls_context_close(c);
}

/* ---- contexts of several threads ---- */

enum { THREADS = 4, DRAWS = 50 };

struct drawer {
    ls_runtime *rt;
    uint64_t stream;
    uint64_t hash;
};

static void draw_on_thread(void *arg)
{
    struct drawer *d = arg;
    ls_context *c = open_stream(d->rt, d->stream);
    ls_error err = LS_ERROR_INIT;
    float got[N];

    d->hash = 0;
    for (int i = 0; i < DRAWS; i++) {
        draw_some(c, got);
        for (int k = 0; k < N; k++) {
            d->hash = d->hash * 31 + (uint64_t)((double)got[k] * 0x1p23);
        }
        LST_OK(ls_context_finish(c, &err));
    }
    ls_context_close(c);
}

LST_TEST(contexts_that_threads_open_draw_the_same_in_twenty_runs)
{
    uint64_t first[THREADS] = {0};

    for (int run = 0; run < 20; run++) {
        struct drawer drawers[THREADS];
        lsi_thread threads[THREADS];
        ls_error err = LS_ERROR_INIT;
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);

        for (int i = 0; i < THREADS; i++) {
            drawers[i] = (struct drawer){rt, (uint64_t)i, 0};
            LST_OK(lsi_thread_start(&threads[i], draw_on_thread, &drawers[i], &err,
                                    "drawer-%d", i));
        }
        for (int i = 0; i < THREADS; i++) {
            lsi_thread_join(&threads[i]);
            first[i] = run == 0 ? drawers[i].hash : first[i];
            LST_CHECK(drawers[i].hash == first[i]);
            LST_CHECK(i == 0 || first[i] != first[i - 1]);
        }
        lst_close(c, rt);
    }
}

LST_MAIN(LST_CASE(a_state_that_was_kept_goes_on_exactly),
         LST_CASE(contexts_draw_by_their_own_stream_whatever_others_draw),
         LST_CASE(positions_count_whole_blocks),
         LST_CASE(truncated_numbers_go_on_where_they_ended),
         LST_CASE(a_failed_operation_draws_nothing),
         LST_CASE(an_operation_without_memory_draws_nothing),
         LST_CASE(a_stream_ends_instead_of_beginning_again),
         LST_CASE(mistakes_with_states_are_named),
         LST_CASE(contexts_that_threads_open_draw_the_same_in_twenty_runs))
