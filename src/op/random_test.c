/* Random numbers: TensorFlow's values, ranges, distributions, arguments. */
#include "ls_row_check.h"

#include "base/philox.h"

/* A context whose device has `threads` threads and whose stream starts at its begin. */
static ls_context *open_seeded(uint64_t seed, int threads, ls_runtime **rt)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_context *c = NULL;

    opts.threads = threads;
    opts.seed = seed;
    opts.seeded = true;
    if (ls_runtime_create(&opts, rt, NULL) != LS_OK ||
        ls_context_open(ls_runtime_device(*rt, 0), NULL, &c, NULL) != LS_OK) {
        abort();
    }
    return c;
}

LST_TEST(philox_gives_the_words_its_authors_publish)
{
    static const struct {
        lsi_words counter;
        uint64_t key;
        uint32_t want[4];
    } known[] = {
        {{{0, 0, 0, 0}}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         0xffffffffffffffff,
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         0x299f31d0a4093822,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (size_t i = 0; i < LSI_COUNT_OF(known); i++) {
        const lsi_words got = lsi_philox(known[i].counter, known[i].key);

        LST_CHECK(memcmp(got.w, known[i].want, sizeof got.w) == 0);
    }
}

typedef ls_tensor *(*generator)(ls_context *c, ls_dtype dtype, ls_shape shape, double a,
                                double b);
static const generator generators[] = {ls_random_uniform, ls_random_normal,
                                       ls_random_truncated_normal};

LST_TEST(the_bits_do_not_depend_on_the_number_of_threads)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    enum { N = 40001 };
    ls_runtime *rt1;
    ls_runtime *rt2;
    ls_context *one = open_seeded(7, 1, &rt1);
    ls_context *two = open_seeded(7, 2, &rt2);

    for (size_t g = 0; g < LSI_COUNT_OF(generators); g++) {
        for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
            ls_tensor *a = generators[g](one, dtypes[d], LS_SHAPE(N), 0, 1);
            ls_tensor *b = generators[g](two, dtypes[d], LS_SHAPE(N), 0, 1);

            LST_CHECK(memcmp(a->data, b->data, ls_tensor_bytes(a)) == 0);
        }
    }
    {
        ls_tensor *a = ls_random_uniform(one, LS_I32, LS_SHAPE(N), -5, 1000);
        ls_tensor *b = ls_random_uniform(two, LS_I32, LS_SHAPE(N), -5, 1000);
        ls_tensor *x = ls_dropout(one, lsi_ones_like(one, ls_cast(one, a, LS_F32)), 0.3);
        ls_tensor *y = ls_dropout(two, lsi_ones_like(two, ls_cast(two, b, LS_F32)), 0.3);

        LST_CHECK(memcmp(a->data, b->data, ls_tensor_bytes(a)) == 0);
        LST_CHECK(memcmp(x->data, y->data, ls_tensor_bytes(x)) == 0);
    }
    lst_close(one, rt1);
    lst_close(two, rt2);
}

LST_TEST(a_seed_and_a_position_tell_the_numbers)
{
    ls_runtime *rt1;
    ls_runtime *rt2;
    ls_runtime *rt3;
    ls_context *a = open_seeded(1, 1, &rt1);
    ls_context *b = open_seeded(1, 1, &rt2);
    ls_context *other = open_seeded(2, 1, &rt3);
    ls_tensor *first = ls_random_uniform(a, LS_F32, LS_SHAPE(8), 0, 1);
    ls_tensor *second = ls_random_uniform(a, LS_F32, LS_SHAPE(8), 0, 1);
    ls_tensor *both = ls_random_uniform(b, LS_F32, LS_SHAPE(16), 0, 1);
    ls_tensor *odd = NULL;

    // 8 numbers are 2 blocks: two calls give what one call for both gives.
    LST_CHECK(memcmp(first->data, both->data, 32) == 0);
    LST_CHECK(memcmp(second->data, (const char *)both->data + 32, 32) == 0);
    odd = ls_random_uniform(other, LS_F32, LS_SHAPE(8), 0, 1);
    LST_CHECK(memcmp(first->data, odd->data, 32) != 0);
    lst_close(a, rt1);
    lst_close(b, rt2);
    lst_close(other, rt3);
}

/* Mean and variance of a tensor's elements. */
static void moments(const ls_tensor *t, double *mean, double *variance)
{
    double sum = 0;
    double squares = 0;

    for (int64_t i = 0; i < t->count; i++) {
        sum += lst_at(t, i);
    }
    *mean = sum / (double)t->count;
    for (int64_t i = 0; i < t->count; i++) {
        squares += (lst_at(t, i) - *mean) * (lst_at(t, i) - *mean);
    }
    *variance = squares / (double)t->count;
}

/* Tolerances are 5 standard errors of 40000 numbers; the seeds are fixed. */
LST_TEST(distributions_have_their_moments_and_bounds)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    enum { N = 40000 };

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        ls_runtime *rt;
        ls_context *c = open_seeded(11, 1, &rt);
        ls_tensor *u = ls_random_uniform(c, dtypes[d], LS_SHAPE(N), -1, 3);
        ls_tensor *n = ls_random_normal(c, dtypes[d], LS_SHAPE(N), 1, 2);
        ls_tensor *t = ls_random_truncated_normal(c, dtypes[d], LS_SHAPE(N), 1, 2);
        double mean = 0;
        double variance = 0;
        int64_t far = 0;

        moments(u, &mean, &variance);
        LST_CHECK(lst_near(mean, 1, 0, 0.05) && lst_near(variance, 16.0 / 12, 0, 0.05));
        moments(n, &mean, &variance);
        LST_CHECK(lst_near(mean, 1, 0, 0.05) && lst_near(variance, 4, 0, 0.15));
        moments(t, &mean, &variance);
        LST_CHECK(lst_near(mean, 1, 0, 0.05));
        LST_CHECK(lst_near(variance, 4 * 0.7737413, 0, 0.15)); // a normal cut at 2
        for (int64_t i = 0; i < N; i++) {
            LST_CHECK(lst_at(u, i) >= -1 && lst_at(u, i) < 3);
            LST_CHECK(fabs(lst_at(t, i) - 1) <= 4 + 0.01); // rounded to the dtype
            far += fabs(lst_at(n, i) - 1) > 4;
        }
        LST_CHECK(lst_near((double)far / N, 0.0455, 0, 0.006)); // beyond 2 stddev
        lst_close(c, rt);
    }
}

LST_TEST(the_upper_bound_is_not_reached_even_by_rounding)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    static const double bounds[][2] = {{0, 1}, {100, 101}, {-1, 0}, {-3, -2}, {0.1, 0.3}};

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        for (size_t b = 0; b < LSI_COUNT_OF(bounds); b++) {
            ls_runtime *rt;
            ls_context *c = open_seeded(3, 1, &rt);
            ls_tensor *lo = ls_cast(c, lsi_scalar(c, LS_F64, bounds[b][0]), dtypes[d]);
            ls_tensor *hi = ls_cast(c, lsi_scalar(c, LS_F64, bounds[b][1]), dtypes[d]);
            ls_tensor *u = ls_random_uniform(c, dtypes[d], LS_SHAPE(4000), bounds[b][0],
                                             bounds[b][1]);
            int64_t outside = 0;

            for (int64_t i = 0; u != NULL && i < u->count; i++) {
                outside +=
                    !(lst_at(u, i) >= lst_at(lo, 0) && lst_at(u, i) < lst_at(hi, 0));
            }
            LST_CHECK(u != NULL && outside == 0);
            lst_close(c, rt);
        }
    }
}

LST_TEST(integers_cover_their_range_and_nothing_else)
{
    static const struct {
        ls_dtype dtype;
        double lo, hi;
    } ranges[] = {{LS_I8, -128, 128},
                  {LS_U8, 0, 256},
                  {LS_I32, -3, 4},
                  {LS_I64, -1, 1},
                  {LS_U16, 5, 6}};
    enum { N = 20000 };

    for (size_t i = 0; i < LSI_COUNT_OF(ranges); i++) {
        ls_runtime *rt;
        ls_context *c = open_seeded(5, 1, &rt);
        ls_tensor *t = ls_random_uniform(c, ranges[i].dtype, LS_SHAPE(N), ranges[i].lo,
                                         ranges[i].hi);
        const double least = lst_at(ls_cast(c, ls_min(c, t, NULL, 0, false), LS_F64), 0);
        const double most = lst_at(ls_cast(c, ls_max(c, t, NULL, 0, false), LS_F64), 0);

        LST_CHECK(least == ranges[i].lo && most == ranges[i].hi - 1);
        lst_close(c, rt);
    }
}

LST_TEST(all_of_64_bits_are_drawn)
{
    ls_runtime *rt;
    ls_context *c = open_seeded(5, 1, &rt);
    ls_tensor *u = ls_random_uniform(c, LS_U64, LS_SHAPE(64), 0, 0x1p64);
    ls_tensor *s = ls_random_uniform(c, LS_I64, LS_SHAPE(64), -0x1p63, 0x1p63);
    uint64_t any[2] = {0, 0};
    uint64_t all[2] = {UINT64_MAX, UINT64_MAX};

    for (int i = 0; i < 64; i++) {
        any[0] |= ((const uint64_t *)u->data)[i];
        all[0] &= ((const uint64_t *)u->data)[i];
        any[1] |= ((const uint64_t *)s->data)[i];
        all[1] &= ((const uint64_t *)s->data)[i];
    }
    LST_CHECK(any[0] == UINT64_MAX && all[0] == 0);
    LST_CHECK(any[1] == UINT64_MAX && all[1] == 0);
    lst_close(c, rt);
}

LST_TEST(dropout_drops_a_share_and_scales_the_rest)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    enum { N = 40000 };

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        ls_runtime *rt;
        ls_context *c = open_seeded(9, 1, &rt);
        ls_tensor *x = ls_random_uniform(c, dtypes[d], LS_SHAPE(N), 1, 2);
        ls_tensor *y = ls_dropout(c, x, 0.75);
        int64_t kept = 0;
        int64_t wrong = 0;

        for (int64_t i = 0; i < N; i++) {
            kept += lst_at(y, i) != 0;
            wrong += lst_at(y, i) != 0 && lst_at(y, i) != 4 * lst_at(x, i);
        }
        LST_CHECK(wrong == 0);
        LST_CHECK(lst_near((double)kept / N, 0.25, 0, 0.011)); // 5 standard errors
        lst_close(c, rt);
    }
}

LST_TEST(dropout_keeps_all_at_rate_zero_and_drops_nans)
{
    ls_runtime *rt;
    ls_context *c = open_seeded(9, 1, &rt);
    ls_tensor *x = ls_random_uniform(c, LS_F32, LS_SHAPE(100), 1, 2);
    ls_tensor *bad = lsi_fill(c, LS_F32, &(ls_shape){1, {1000}}, (double)NAN);
    ls_tensor *y = ls_dropout(c, bad, 0.5);
    int64_t zeros = 0;

    LST_CHECK(ls_dropout(c, x, 0)->data == x->data);
    for (int64_t i = 0; i < y->count; i++) {
        zeros += lst_at(y, i) == 0;
    }
    LST_CHECK(zeros > 400 && zeros < 600);
    LST_CHECK(lst_holds(ls_dropout(c, ZEROS(c, LS_SHAPE(0)), 0.5), LS_SHAPE(0), NULL, 0));
    lst_close(c, rt);
}

LST_TEST(the_gradient_of_dropout_goes_through_what_was_kept)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    uint64_t seed = 41;
    ls_tensor *x = lst_random_f64(c, LS_SHAPE(5, 5), -1, 1, &seed);
    lst_call call;

    lst_watch(c, x, &call);
    (void)ls_dropout(c, x, 0.4);
    lst_check_row(c, &call, 1);
    lst_close(c, rt);
}

LST_TEST(where_the_numbers_begin_is_an_input_of_the_operation)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_random_state begin = {0};
    lsi_random_attrs attrs;
    ls_tensor *state, *want, *got, *x[2] = {ZEROS(c, LS_SHAPE(9)), NULL};
    ls_tensor *out[LSI_MAX_OUTPUTS];

    ls_context_random_state(c, &begin);
    want = ls_random_uniform(c, LS_F32, LS_SHAPE(9), 0, 1);
    memset(&attrs, 0, sizeof attrs);
    attrs.shape = LS_SHAPE(9);
    attrs.dtype = LS_F32;
    attrs.b = 1;
    attrs.words = 1;
    state = ls_constant(c, LS_U64, LS_SHAPE(3),
                        (const uint64_t[]){begin.seed, begin.stream, begin.position});
    got = ls_op_apply1(c, &lsi_op_random_uniform, &state, 1, &attrs, sizeof attrs);
    LST_CHECK(memcmp(got->data, want->data, ls_tensor_bytes(want)) == 0);
    state = ls_constant(c, LS_U64, LS_SHAPE(3),
                        (const uint64_t[]){begin.seed, begin.stream, 1});
    got = ls_op_apply1(c, &lsi_op_random_uniform, &state, 1, &attrs, sizeof attrs);
    LST_CHECK(memcmp(got->data, (const char *)want->data + 16, 20) == 0); // a block on
    state = ls_constant(c, LS_I64, LS_SHAPE(3), NULL);
    (void)ls_op_apply1(c, &lsi_op_random_uniform, &state, 1, &attrs, sizeof attrs);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "random_uniform: seed, stream and position");
    attrs.a = 0.5;
    x[0] = ZEROS(c, LS_SHAPE(9));
    x[1] = ls_constant(c, LS_U64, LS_SHAPE(2), NULL);
    ls_op_apply(c, &lsi_op_dropout, x, 2, &attrs, sizeof attrs, out);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "uint64 (3,), got uint64 (2,)");
    lst_close(c, rt);
}

LST_TEST(mistakes_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(2);

    LST_CHECK(ls_dropout(c, ZEROS(c, s), 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "dropout: the rate 1 must lie in [0, 1)");
    LST_CHECK(ls_dropout(c, ZEROS(c, s), -0.5) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "dropout: the rate -0.5");
    LST_CHECK(ls_dropout(c, ZEROS(c, s), NAN) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "dropout: the rate");
    LST_CHECK(ls_dropout(c, ls_constant(c, LS_I32, s, NULL), 0.5) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "dropout: needs a floating dtype");
    LST_CHECK(ls_dropout(c, NULL, 0.5) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "dropout: input 0 is NULL");
    LST_CHECK(ls_random_uniform(c, LS_F32, s, 2, 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "random_uniform: [2, 1) is not a range");
    LST_CHECK(ls_random_uniform(c, LS_F32, s, 0, INFINITY) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "finite");
    LST_CHECK(ls_random_uniform(c, LS_U8, s, 0, 257) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "[0, 257) is not a range of uint8");
    LST_CHECK(ls_random_uniform(c, LS_I32, s, 0.5, 2) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "whole");
    LST_CHECK(ls_random_uniform(c, LS_I32, s, 2, 2) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "below the second");
    LST_CHECK(ls_random_uniform(c, LS_BOOL, s, 0, 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "random_uniform: gives numbers, not bool");
    LST_CHECK(ls_random_normal(c, LS_I32, s, 0, 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "random_normal: gives floating dtypes");
    LST_CHECK(ls_random_truncated_normal(c, LS_F32, s, 0, -1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "stddev -1");
    LST_CHECK(ls_random_normal(c, LS_F32, LS_SHAPE(2, -1), 0, 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "random_normal: (2, -1) is no shape");
    lst_close(c, rt);
}

LST_TEST(equal_bounds_and_zero_deviations_give_the_number)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    LST_CHECK(lst_holds(ls_random_uniform(c, LS_F32, LS_SHAPE(3), 2, 2), LS_SHAPE(3),
                        D(2, 2, 2), 0));
    LST_CHECK(lst_holds(ls_random_normal(c, LS_F64, LS_SHAPE(3), 2, 0), LS_SHAPE(3),
                        D(2, 2, 2), 0));
    LST_CHECK(
        lst_holds(ls_random_normal(c, LS_F32, LS_SHAPE(0), 2, 1), LS_SHAPE(0), NULL, 0));
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(philox_gives_the_words_its_authors_publish),
         LST_CASE(the_bits_do_not_depend_on_the_number_of_threads),
         LST_CASE(a_seed_and_a_position_tell_the_numbers),
         LST_CASE(distributions_have_their_moments_and_bounds),
         LST_CASE(the_upper_bound_is_not_reached_even_by_rounding),
         LST_CASE(integers_cover_their_range_and_nothing_else),
         LST_CASE(all_of_64_bits_are_drawn),
         LST_CASE(dropout_drops_a_share_and_scales_the_rest),
         LST_CASE(dropout_keeps_all_at_rate_zero_and_drops_nans),
         LST_CASE(the_gradient_of_dropout_goes_through_what_was_kept),
         LST_CASE(where_the_numbers_begin_is_an_input_of_the_operation),
         LST_CASE(mistakes_are_named),
         LST_CASE(equal_bounds_and_zero_deviations_give_the_number))
