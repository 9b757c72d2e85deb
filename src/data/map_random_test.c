/* Random operations in user functions: the same numbers for the same element, whatever
 * the threads, the other elements and the number of calls. */
#include "data/data_test.h"

#include "lockstep/lockstep.h"

enum { N = 60, MOST = 400 };

/* element + a number below 1, as float64. */
static ls_value *noise(ls_context *c, ls_value *element, void *user)
{
    ls_tensor *x = ls_cast(c, ls_value_as_tensor(element), LS_F64);

    (void)user;
    (void)ls_random_uniform(c, LS_F32, LS_SHAPE(3), 0, 1); // more than one draw per call
    return ls_value_of(c, ls_add(c, x, ls_random_uniform(c, LS_F64, LS_SCALAR, 0, 1)));
}

static ls_value *coin(ls_context *c, ls_value *element, void *user)
{
    (void)element;
    (void)user;
    return ls_value_of(c, ls_less(c, ls_random_uniform(c, LS_F64, LS_SCALAR, 0, 1),
                                  ls_constant_f64(c, 0.5)));
}

static ls_dataset *noisy(ls_dataset *d, int parallel, bool unordered)
{
    ls_map_options opts = LS_MAP_OPTIONS_INIT;

    opts.parallel = parallel;
    opts.unordered = unordered;
    return ls_dataset_map(d, noise, NULL, &opts);
}

static double number_of(const ls_value *v)
{
    const ls_tensor *t = ls_value_as_tensor(v);

    return t == NULL                      ? NAN
           : ls_tensor_dtype(t) == LS_F64 ? *(const double *)ls_tensor_data(t)
                                          : (double)*(const int64_t *)ls_tensor_data(t);
}

static size_t take_all(ls_iterator *it, size_t most, double *out)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL;
    size_t n = 0;

    while (n < most && ls_iterator_next(it, &v, &err) == LS_OK) {
        out[n++] = number_of(v);
        ls_value_release(v);
    }
    return n;
}

/* The numbers of one pass; the dataset is kept. */
static size_t pass(ls_dataset *d, double *out)
{
    ls_error err = LS_ERROR_INIT;
    ls_iterator *it = NULL;
    size_t n = 0;

    LST_OK(ls_dataset_iterate(d, &it, &err));
    n = take_all(it, MOST, out);
    ls_iterator_release(it);
    return n;
}

/* The same, of a dataset that is not used again. */
static size_t read_all(ls_dataset *d, double *out)
{
    const size_t n = pass(d, out);

    ls_dataset_release(d);
    return n;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* At how many indices a and b have the same fraction. */
static int alike(const double *a, const double *b, size_t n)
{
    int same = 0;

    for (size_t i = 0; i < n; i++) {
        same += a[i] - floor(a[i]) == b[i] - floor(b[i]);
    }
    return same;
}

LST_TEST(a_map_draws_the_same_whatever_runs_in_parallel_or_ahead)
{
    static const int parallel[] = {0, 1, 3, 8, LS_AUTOTUNE};
    double want[MOST], got[MOST];

    LST_CHECK(read_all(noisy(lst_range(N), 0, false), want) == N);
    LST_CHECK(alike(want, want + 1, N - 1) == 0); // different for every element
    for (int run = 0; run < 20; run++) {
        for (size_t i = 0; i < LSI_COUNT_OF(parallel); i++) {
            ls_dataset *d = noisy(lst_range(N), parallel[i], false);

            d = run % 2 == 0 ? ls_dataset_prefetch(d, 7) : d;
            LST_CHECK(read_all(d, got) == N);
            LST_CHECK(memcmp(want, got, N * sizeof *got) == 0);
        }
        LST_CHECK(read_all(noisy(lst_range(N), 4, true), got) == N);
        qsort(got, N, sizeof *got, ascending); // the order may differ, the numbers not
        LST_CHECK(memcmp(want, got, N * sizeof *got) == 0);
    }
}

LST_TEST(prefetch_beside_training_changes_neither)
{
    double fed[MOST], first_fed[MOST];
    float drawn[N], first_drawn[N];

    for (int run = 0; run < 20; run++) {
        ls_dataset *d = ls_dataset_prefetch(noisy(lst_range(N), 3, false), 8);
        ls_error err = LS_ERROR_INIT;
        ls_iterator *it = NULL;
        ls_context *c = NULL;

        LST_OK(ls_dataset_iterate(d, &it, &err));
        LST_OK(ls_context_open(NULL, NULL, &c, &err));
        for (int i = 0; i < N; i++) {
            ls_tensor *x = NULL;

            LST_CHECK(take_all(it, 1, &fed[i]) == 1);
            x = ls_random_normal(c, LS_F32, LS_SHAPE(64), 0, 1);
            drawn[i] =
                (float)ls_item(c, ls_sum(c, ls_dropout(c, x, 0.5), NULL, 0, false));
            LST_OK(ls_context_finish(c, &err));
        }
        if (run == 0) {
            memcpy(first_fed, fed, sizeof first_fed);
            memcpy(first_drawn, drawn, sizeof first_drawn);
        }
        LST_CHECK(memcmp(first_fed, fed, N * sizeof *fed) == 0);
        LST_CHECK(memcmp(first_drawn, drawn, sizeof drawn) == 0);
        ls_context_close(c);
        ls_iterator_release(it);
        ls_dataset_release(d);
    }
}

LST_TEST(every_pass_draws_others_and_a_dataset_built_again_the_same)
{
    double a[MOST], b[MOST], again[MOST];
    ls_dataset *d = noisy(lst_range(N), 2, false);

    LST_CHECK(pass(d, a) == N && pass(d, b) == N);
    LST_CHECK(alike(a, b, N) == 0);
    ls_dataset_release(d);
    d = noisy(lst_range(N), 0, false);
    LST_CHECK(pass(d, again) == N && memcmp(a, again, N * sizeof *a) == 0);
    LST_CHECK(pass(d, again) == N && memcmp(b, again, N * sizeof *b) == 0);
    ls_dataset_release(d);
    LST_CHECK(read_all(ls_dataset_repeat(noisy(lst_range(N), 0, false), 3), a) == 3 * N);
    LST_CHECK(alike(a, a + N, N) == 0 && alike(a, a + 2 * N, N) == 0);
    LST_CHECK(alike(a + N, a + 2 * N, N) == 0);
}

static ls_value *toss(ls_context *c, ls_value *element, void *user)
{
    (void)element;
    (void)user;
    return ls_value_of(c, ls_random_uniform(c, LS_F64, LS_SCALAR, 0, 1));
}

/* Subtracts its draw from that of the function before it: 0 if they are equal. */
static ls_value *toss_less(ls_context *c, ls_value *element, void *user)
{
    (void)user;
    return ls_value_of(c, ls_sub(c, ls_random_uniform(c, LS_F64, LS_SCALAR, 0, 1),
                                 ls_value_as_tensor(element)));
}

/* The same of two branches. */
static ls_value *join(ls_context *c, ls_value *element, void *user)
{
    ls_tensor *a = ls_value_at(c, element, 0), *b = ls_value_at(c, element, 1);

    (void)user;
    return ls_value_of(c, ls_sub(c, a, b));
}

LST_TEST(functions_of_one_pipeline_draw_different_numbers)
{
    ls_dataset *m = noisy(lst_range(N), 0, false);
    ls_dataset *both[2] = {m, ls_dataset_retain(m)};
    double a[MOST];
    size_t n = read_all(ls_dataset_map(ls_dataset_zip(both, 2), join, NULL, NULL), a);

    LST_CHECK(n == N);
    for (size_t i = 0; i < n; i++) {
        LST_CHECK(a[i] != 0); // one node in two branches
    }
    n = read_all(ls_dataset_map(ls_dataset_map(lst_range(N), toss, NULL, NULL), toss_less,
                                NULL, NULL),
                 a);
    LST_CHECK(n == N);
    for (size_t i = 0; i < n; i++) {
        LST_CHECK(a[i] != 0); // one after the other
    }
    n = read_all(ls_dataset_concatenate(noisy(lst_range(N), 0, false),
                                        noisy(lst_range(N), 0, false)),
                 a);
    LST_CHECK(n == 2 * N && alike(a, a + N, N) == 0);
}

LST_TEST(shards_draw_different_numbers)
{
    double a[MOST], b[MOST];

    LST_CHECK(read_all(noisy(ls_dataset_shard(lst_range(N), 2, 0), 0, false), a) ==
              N / 2);
    LST_CHECK(read_all(noisy(ls_dataset_shard(lst_range(N), 2, 1), 0, false), b) ==
              N / 2);
    LST_CHECK(alike(a, b, N / 2) == 0);
}

static ls_dataset *inner(ls_value *element, void *user)
{
    const int *parallel = user;

    (void)element;
    return noisy(lst_range(10), *parallel, false);
}

LST_TEST(maps_inside_of_an_interleave_draw_by_their_own_element)
{
    double want[MOST], got[MOST];
    int serial = 0, threads = 3;
    ls_interleave_options one = LS_INTERLEAVE_OPTIONS_INIT;

    one.cycle = 3;
    LST_CHECK(read_all(ls_dataset_interleave(lst_range(8), inner, &serial, &one), want) ==
              80);
    for (int run = 0; run < 20; run++) {
        ls_interleave_options opts = LS_INTERLEAVE_OPTIONS_INIT;
        ls_dataset *d = NULL;

        opts.cycle = 3;
        opts.parallel = run % 2 == 0 ? LS_AUTOTUNE : 2;
        d = ls_dataset_interleave(lst_range(8), inner, &threads, &opts);
        LST_CHECK(read_all(ls_dataset_prefetch(d, 5), got) == 80);
        LST_CHECK(memcmp(want, got, 80 * sizeof *got) == 0);
    }
    qsort(want, 80, sizeof *want, ascending); // 8 datasets of 0 .. 9, all different
    LST_CHECK(alike(want, want + 1, 79) == 0);
}

LST_TEST(a_filter_tosses_the_same_coins)
{
    double want[MOST], got[MOST];
    const size_t n = read_all(ls_dataset_filter(lst_range(N), coin, NULL), want);

    LST_CHECK(n > N / 4 && n < 3 * N / 4);
    for (int run = 0; run < 3; run++) {
        LST_CHECK(
            read_all(ls_dataset_prefetch(ls_dataset_filter(lst_range(N), coin, NULL), 4),
                     got) == n);
        LST_CHECK(memcmp(want, got, n * sizeof *got) == 0);
    }
}

LST_TEST(the_global_seed_tells_the_numbers)
{
    const int64_t one = 1, two = 2;
    double none[MOST], a[MOST], b[MOST], again[MOST];

    LST_CHECK(read_all(noisy(lst_range(N), 0, false), none) == N);
    ls_dataset_set_seed(&one);
    LST_CHECK(read_all(noisy(lst_range(N), 0, false), a) == N);
    LST_CHECK(read_all(noisy(lst_range(N), 2, false), again) == N);
    ls_dataset_set_seed(&two);
    LST_CHECK(read_all(noisy(lst_range(N), 0, false), b) == N);
    ls_dataset_set_seed(NULL);
    LST_CHECK(memcmp(a, again, N * sizeof *a) == 0);
    LST_CHECK(alike(a, b, N) == 0 && alike(a, none, N) == 0);
}

/* ---- positions ---- */

/* Two passes of an interleave of maps: every part of a lineage occurs. */
static ls_dataset *deep(int *parallel)
{
    ls_interleave_options opts = LS_INTERLEAVE_OPTIONS_INIT;
    ls_dataset *d = NULL;

    opts.parallel = *parallel;
    opts.cycle = 3;
    d = ls_dataset_interleave(lst_range(4), inner, parallel, &opts);
    d = noisy(ls_dataset_filter(d, coin, NULL), *parallel, false);
    d = ls_dataset_concatenate(d, noisy(lst_range(10), *parallel, false));
    return ls_dataset_prefetch(ls_dataset_repeat(d, -1), 3);
}

/* Saved after `at` elements of the second pass over the dataset, restored elsewhere. */
static void check_position(int parallel, size_t at)
{
    double want[MOST], got[MOST], next[MOST], next_got[MOST];
    ls_dataset *d = deep(&parallel), *other = deep(&parallel);
    ls_iterator *it = NULL, *fresh = NULL, *skipped = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_value *state = NULL;

    LST_OK(ls_dataset_iterate(d, &skipped, &err));
    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_CHECK(take_all(it, at, want) == at);
    LST_OK(ls_iterator_save(it, &state, &err));
    LST_CHECK(take_all(it, 100, want) == 100);
    ls_iterator_release(it);
    LST_OK(ls_dataset_iterate(d, &it, &err)); // the pass after it
    LST_CHECK(take_all(it, 30, next) == 30);
    LST_OK(ls_dataset_iterate(other, &fresh, &err));
    LST_OK(ls_iterator_restore(fresh, state, &err));
    LST_CHECK(take_all(fresh, 100, got) == 100);
    LST_CHECK(memcmp(want, got, 100 * sizeof *got) == 0);
    ls_iterator_release(fresh);
    LST_OK(ls_dataset_iterate(other, &fresh, &err));
    LST_CHECK(take_all(fresh, 30, next_got) == 30);
    LST_CHECK(memcmp(next, next_got, 30 * sizeof *next) == 0);
    ls_value_release(state);
    ls_iterator_release(it);
    ls_iterator_release(fresh);
    ls_iterator_release(skipped);
    ls_dataset_release(d);
    ls_dataset_release(other);
}

LST_TEST(a_restored_position_draws_the_same_numbers)
{
    static const size_t places[] = {0, 1, 5, 17, 33, 64, 90};

    for (size_t i = 0; i < LSI_COUNT_OF(places); i++) {
        check_position(0, places[i]);
        check_position(3, places[i]);
    }
}

LST_MAIN(LST_CASE(a_map_draws_the_same_whatever_runs_in_parallel_or_ahead),
         LST_CASE(prefetch_beside_training_changes_neither),
         LST_CASE(every_pass_draws_others_and_a_dataset_built_again_the_same),
         LST_CASE(functions_of_one_pipeline_draw_different_numbers),
         LST_CASE(shards_draw_different_numbers),
         LST_CASE(maps_inside_of_an_interleave_draw_by_their_own_element),
         LST_CASE(a_filter_tosses_the_same_coins),
         LST_CASE(the_global_seed_tells_the_numbers),
         LST_CASE(a_restored_position_draws_the_same_numbers))
