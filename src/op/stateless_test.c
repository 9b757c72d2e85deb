/* Random numbers by a seed of their own: TensorFlow 2.21's answers. */
#include "ls_row_check.h"

static const int64_t seed[2] = {1, 2};
static const int64_t far_seed[2] = {-7, ((int64_t)1 << 40) + 3};

LST_TEST(uniform_numbers_are_those_of_tensorflow)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    LST_CHECK(lst_holds(ls_stateless_random_uniform(c, LS_F32, LS_SHAPE(6), seed, 0, 1),
                        LS_SHAPE(6),
                        D(0x1.b028bp-1, 0x1.894f1p-3, 0x1.fe10f8p-1, 0x1.48793p-3,
                          0x1.168498p-2, 0x1.4c7714p-1),
                        0));
    LST_CHECK(lst_holds(
        ls_stateless_random_uniform(c, LS_F32, LS_SHAPE(6), far_seed, -1.5, 3.25),
        LS_SHAPE(6),
        D(0x1.6e7704p+1, 0x1.9b916cp+0, 0x1.21aea2p+1, 0x1.4554p-4, 0x1.6a26p-6,
          0x1.0d7678p-1),
        0));
    LST_CHECK(lst_holds(
        ls_stateless_random_uniform(c, LS_F64, LS_SHAPE(5), seed, 0, 1), LS_SHAPE(5),
        D(0x1.81458cf3129e2p-1, 0x1.f087c2c290f26p-1, 0x1.6849f8a98ee28p-3,
          0x1.b60b64610ae7cp-1, 0x1.07956bf15b35ep-1),
        0));
    LST_CHECK(lst_holds(
        ls_stateless_random_uniform(c, LS_F64, LS_SHAPE(5), far_seed, -1.5, 3.25),
        LS_SHAPE(5),
        D(0x1.3b8422a6e45a8p-3, 0x1.aea2ae6a2aap-4, 0x1.2d44de7a35d9ep+0,
          0x1.0f7adedc0f1b4p-2, 0x1.a9ce16d1bf4p-10),
        0));
    LST_CHECK(lst_holds(
        ls_stateless_random_uniform(c, LS_F16, LS_SHAPE(6), seed, -1, 3), LS_SHAPE(6),
        D(0x1.2cp+0, -0x1.ep-5, -0x1.84p-1, 0x1.498p+1, -0x1.b4p-2, 0x1.8ap-1), 0));
    LST_CHECK(lst_holds(
        ls_stateless_random_uniform(c, LS_BF16, LS_SHAPE(6), seed, -1, 3), LS_SHAPE(6),
        D(0x1.8p-2, 0x1.44p+1, 0x1.ep-1, -0x1.ap-2, -0x1.ap-2, 0x1.28p+0), 0));
    lst_close(c, rt);
}

static bool holds(const ls_tensor *t, int64_t n, const double *want)
{
    bool same = t != NULL && t->count == n;

    for (int64_t i = 0; same && i < n; i++) {
        same = lsi_element(t, i) == want[i];
    }
    return same;
}

LST_TEST(integers_are_those_of_tensorflow)
{
    static const int64_t wide[5] = {
        INT64_C(7464880146280614444), INT64_C(1591045637757961278),
        INT64_C(-1057468755545501549), INT64_C(2524363516007002203),
        INT64_C(6884554327646026923)};
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *all = NULL;

    LST_CHECK(holds(ls_stateless_random_uniform(c, LS_I32, LS_SHAPE(6), seed, -5, 1000),
                    6, D(710, 819, 829, 169, 137, 95)));
    LST_CHECK(
        holds(ls_stateless_random_uniform(c, LS_I64, LS_SHAPE(5), seed, -5, 1e12), 5,
              D(146243290039, 637750006048, 318077103687, 515994380383, 327611604148)));
    LST_CHECK(
        holds(ls_stateless_random_uniform(c, LS_U32, LS_SHAPE(6), seed, 0, 0x1p32), 6,
              D(1105988140, 1738052849, 3959391294, 370444179, 10670227, 4048756165)));
    all = ls_stateless_random_uniform(c, LS_I64, LS_SHAPE(5), seed, -0x1p63, 0x1p63);
    for (int i = 0; all != NULL && i < 5; i++) { // TensorFlow's begin at 0 and wrap
        LST_CHECK((((const uint64_t *)all->data)[i] ^ UINT64_C(1) << 63) ==
                  (uint64_t)wide[i]);
    }
    LST_CHECK(all != NULL);
    lst_close(c, rt);
}

/* The last rows of 90 and of 45: some numbers were refused before them. */
LST_TEST(normal_numbers_are_near_those_of_tensorflow)
{
    const double ulps = 4 * 0x1p-23;
    const double fine = 4 * 0x1p-52;
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    LST_CHECK(lst_holds(ls_stateless_random_normal(c, LS_F32, LS_SHAPE(6), seed, 0, 1),
                        LS_SHAPE(6),
                        D(0x1.16959ap-1, 0x1.a8b702p-3, 0x1.2d51c8p-4, 0x1.7c645p-5,
                          -0x1.4d34fep+0, -0x1.e85fe2p-1),
                        ulps));
    LST_CHECK(lst_holds(
        ls_stateless_random_normal(c, LS_F32, LS_SHAPE(6), seed, 1.5, 2.25), LS_SHAPE(6),
        D(0x1.5cb428p+1, 0x1.f77378p+0, 0x1.aa5f8p+0, 0x1.9abf0ep+0, -0x1.6db73cp+0,
          -0x1.4ad7cp-1),
        ulps));
    LST_CHECK(lst_holds(
        ls_stateless_random_normal(c, LS_F64, LS_SHAPE(5), seed, 0, 1), LS_SHAPE(5),
        D(-0x1.23745fceed393p-3, 0x1.7b30df7adce2ep-1, -0x1.7813821086c87p+0,
          0x1.25d2c6f1a9e3ap+0, -0x1.719a6fdd9e259p-1),
        fine));
    LST_CHECK(lst_holds(
        ls_stateless_random_normal(c, LS_F16, LS_SHAPE(6), seed, 0, 1), LS_SHAPE(6),
        D(0x1.168p-1, 0x1.a8cp-3, 0x1.2d4p-4, 0x1.7c8p-5, -0x1.4d4p+0, -0x1.e84p-1), 0));
    LST_CHECK(lst_holds(
        ls_stateless_random_truncated_normal(c, LS_F32, LS_SHAPE(6), seed, 1.5, 2.25),
        LS_SHAPE(6),
        D(0x1.5cb428p+1, 0x1.f77378p+0, 0x1.aa5f8p+0, 0x1.9abf0ep+0, 0x1.e0e2f8p+0,
          -0x1.254a24p+1),
        ulps));
    LST_CHECK(lst_holds(
        ls_slice(
            c, ls_stateless_random_truncated_normal(c, LS_F32, LS_SHAPE(90), seed, 0, 1),
            (int64_t[]){80}, (int64_t[]){10}),
        LS_SHAPE(10),
        D(-0x1.d4bfb2p-4, -0x1.4920a6p-4, -0x1.032318p-1, 0x1.57a112p-2, 0x1.3d11b6p-5,
          -0x1.91739cp-7, 0x1.708cc6p-1, 0x1.2b0f52p+0, 0x1.01f3d2p-1, -0x1.35b354p-1),
        ulps));
    LST_CHECK(lst_holds(
        ls_slice(
            c, ls_stateless_random_truncated_normal(c, LS_F64, LS_SHAPE(45), seed, 0, 1),
            (int64_t[]){36}, (int64_t[]){9}),
        LS_SHAPE(9),
        D(-0x1.54551b8646ef6p-2, 0x1.3c81e8f066ffdp-3, 0x1.eef9ebdb80a4fp-3,
          0x1.25e933434a846p+0, 0x1.b3106e8a4b3fbp-5, -0x1.9f11118d07897p-3,
          0x1.8473b7135a2d9p-2, 0x1.23a0db014886dp-4, 0x1.d9a06fc3bb688p+0),
        fine));
    lst_close(c, rt);
}

LST_TEST(dropout_keeps_what_tensorflow_keeps)
{
    const double k = 0x1.6db6dcp+0;
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *ones = lsi_fill(c, LS_F32, &(ls_shape){1, {12}}, 1);

    LST_CHECK(lst_holds(ls_stateless_dropout(c, ones, 0.3, seed), LS_SHAPE(12),
                        D(k, 0, k, 0, 0, k, 0, 0, k, 0, 0, 0), 0));
    lst_close(c, rt);
}

/* tf.random.Generator.from_key_counter(123, [5, 7], "philox"). */
LST_TEST(a_state_stands_for_a_key_and_a_counter_of_tensorflow)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_context_set_random_state(c, &(ls_random_state){123, 7, 5}, &err));
    LST_CHECK(lst_holds(ls_random_uniform(c, LS_F32, LS_SHAPE(6), 0, 1), LS_SHAPE(6),
                        D(0x1.af4d0cp-1, 0x1.e0372p-2, 0x1.d011bp-2, 0x1.6a116p-2,
                          0x1.6dd65p-1, 0x1.73464cp-1),
                        0));
    lst_close(c, rt);
}

LST_TEST(a_seed_of_its_own_leaves_the_context_alone_and_is_needed)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = lsi_fill(c, LS_F32, &(ls_shape){1, {12}}, 1);
    ls_random_state before = {0}, after = {0};

    (void)ls_random_uniform(c, LS_F32, LS_SHAPE(5), 0, 1);
    ls_context_random_state(c, &before);
    (void)ls_stateless_random_uniform(c, LS_F32, LS_SHAPE(5), seed, 0, 1);
    (void)ls_stateless_dropout(c, x, 0.5, seed);
    ls_context_random_state(c, &after);
    LST_CHECK(before.position == 2 && memcmp(&before, &after, sizeof after) == 0);
    LST_CHECK(ls_stateless_random_normal(c, LS_F32, LS_SHAPE(5), NULL, 0, 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "stateless_random_normal: the seed is NULL");
    LST_CHECK(ls_stateless_dropout(c, NULL, 0.5, NULL) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "stateless_dropout: the seed is NULL");
    LST_CHECK(ls_stateless_random_uniform(c, LS_BOOL, LS_SHAPE(5), seed, 0, 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "gives numbers, not bool");
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(uniform_numbers_are_those_of_tensorflow),
         LST_CASE(integers_are_those_of_tensorflow),
         LST_CASE(normal_numbers_are_near_those_of_tensorflow),
         LST_CASE(dropout_keeps_what_tensorflow_keeps),
         LST_CASE(a_state_stands_for_a_key_and_a_counter_of_tensorflow),
         LST_CASE(a_seed_of_its_own_leaves_the_context_alone_and_is_needed))
