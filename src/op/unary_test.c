/* Operations on one operand: values, gradients, dtypes, arguments. */
#include "ls_row_check.h"

/* `t` has the dtype and, exactly, the numbers of `want`. */
static bool is_exactly(ls_context *c, ls_tensor *t, ls_dtype dtype, ls_shape shape,
                       const double *want)
{
    return t != NULL && (ls_dtype)t->dtype == dtype &&
           lst_holds(ls_cast(c, t, LS_F64), shape, want, 0);
}

static ls_tensor *i32(ls_context *c, ls_shape shape, const int32_t *data)
{
    return ls_constant(c, LS_I32, shape, data);
}

typedef ls_tensor *(*front_door)(ls_context *c, ls_tensor *x);

static ls_tensor *leaky_relu(ls_context *c, ls_tensor *x)
{
    return ls_leaky_relu(c, x, 0.25F);
}

static ls_tensor *gelu(ls_context *c, ls_tensor *x)
{
    return ls_gelu(c, x, false);
}

static ls_tensor *gelu_tanh(ls_context *c, ls_tensor *x)
{
    return ls_gelu(c, x, true);
}

static ls_tensor *clip(ls_context *c, ls_tensor *x)
{
    return ls_clip(c, x, -0.5, 1.25);
}

/* Each operation at -2, -0.5, 0, 0.75 and 3, to 15 digits; NaN where it is undefined. */
static const struct known {
    front_door op;
    double want[5];
} knowns[] = {
    {ls_neg, {2, 0.5, 0, -0.75, -3}},
    {ls_abs, {2, 0.5, 0, 0.75, 3}},
    {ls_sign, {-1, -1, 0, 1, 1}},
    {ls_exp,
     {0.135335283236613, 0.606530659712633, 1, 2.11700001661267, 20.0855369231877}},
    {ls_log, {NAN, NAN, -INFINITY, -0.287682072451781, 1.09861228866811}},
    {ls_log1p, {NAN, -0.693147180559945, 0, 0.559615787935423, 1.38629436111989}},
    {ls_sqrt, {NAN, NAN, 0, 0.866025403784439, 1.73205080756888}},
    {ls_rsqrt, {NAN, NAN, INFINITY, 1.15470053837925, 0.577350269189626}},
    {ls_square, {4, 0.25, 0, 0.5625, 9}},
    {ls_reciprocal, {-0.5, -2, INFINITY, 1.33333333333333, 0.333333333333333}},
    {ls_erf,
     {-0.995322265018953, -0.520499877813047, 0, 0.711155633653515, 0.999977909503001}},
    {ls_relu, {0, 0, 0, 0.75, 3}},
    {leaky_relu, {-0.5, -0.125, 0, 0.75, 3}},
    {ls_elu, {-0.864664716763387, -0.393469340287367, 0, 0.75, 3}},
    {ls_sigmoid,
     {0.119202922022118, 0.377540668798145, 0.5, 0.679178699175393, 0.952574126822433}},
    {ls_tanh,
     {-0.964027580075817, -0.46211715726001, 0, 0.635148952387287, 0.99505475368673}},
    {ls_softplus,
     {0.126928011042972, 0.474076984180107, 0.693147180559945, 1.1368710061149,
      3.04858735157374}},
    {gelu,
     {-0.0455002638963584, -0.154268769362993, 0, 0.580029485717349, 2.99595030590511}},
    {gelu_tanh,
     {-0.0454023059122249, -0.154285990174856, 0, 0.57996055516562, 2.99636260791823}},
    {ls_silu,
     {-0.238405844044235, -0.188770334399073, 0, 0.509384024381545, 2.8577223804673}},
    {clip, {-0.5, -0.5, 0, 0.75, 1.25}},
};

LST_TEST(every_operation_has_its_known_values_in_every_floating_dtype)
{
    static const double at[] = {-2, -0.5, 0, 0.75, 3};
    static const struct {
        ls_dtype dtype;
        double tol;
    } dtypes[] = {{LS_F64, 2e-14}, {LS_F32, 1.2e-7}, {LS_F16, 1e-3}, {LS_BF16, 8e-3}};

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        for (size_t i = 0; i < LSI_COUNT_OF(knowns); i++) {
            ls_runtime *rt;
            ls_context *c = lst_open(&rt);
            ls_tensor *x =
                ls_cast(c, ls_constant(c, LS_F64, LS_SHAPE(5), at), dtypes[d].dtype);
            ls_tensor *y = knowns[i].op(c, x);

            LST_CHECK(y != NULL && (ls_dtype)y->dtype == dtypes[d].dtype);
            if (!lst_holds(y, LS_SHAPE(5), knowns[i].want, dtypes[d].tol)) {
                (void)fprintf(stderr, "operation %zu in %s\n", i,
                              ls_dtype_name(dtypes[d].dtype));
                LST_CHECK(false);
            }
            lst_close(c, rt);
        }
    }
}

LST_TEST(operations_keep_the_shape_of_scalars_and_of_empty_tensors)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    for (size_t i = 0; i < LSI_COUNT_OF(knowns); i++) {
        const ls_shape scalar = LS_SCALAR;
        ls_tensor *one = knowns[i].op(c, ls_constant_f32(c, 0.75F));
        ls_tensor *none = knowns[i].op(c, ZEROS(c, LS_SHAPE(3, 0, 2)));

        LST_CHECK(lst_holds(one, scalar, &knowns[i].want[3], 1.2e-7));
        LST_CHECK(lst_holds(none, LS_SHAPE(3, 0, 2), NULL, 0));
    }
    lst_close(c, rt);
}

LST_TEST(a_nan_stays_a_nan_through_every_operation)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(1), NAN);

    for (size_t i = 0; i < LSI_COUNT_OF(knowns); i++) {
        LST_CHECK(isnan(lst_at(knowns[i].op(c, x), 0)));
    }
    lst_close(c, rt);
}

LST_TEST(large_operands_saturate_instead_of_becoming_nan)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(4), -INFINITY, -500, 500, INFINITY);
    const ls_shape s = LS_SHAPE(4);

    LST_CHECK(lst_holds(ls_sigmoid(c, x), s, D(0, 0, 1, 1), 0));
    LST_CHECK(lst_holds(ls_softplus(c, x), s, D(0, 0, 500, INFINITY), 0));
    LST_CHECK(lst_holds(ls_tanh(c, x), s, D(-1, -1, 1, 1), 0));
    LST_CHECK(lst_holds(ls_exp(c, x), s, D(0, 0, INFINITY, INFINITY), 0));
    LST_CHECK(lst_holds(ls_elu(c, x), s, D(-1, -1, 500, INFINITY), 0));
    LST_CHECK(lst_holds(ls_relu(c, x), s, D(0, 0, 500, INFINITY), 0));
    LST_CHECK(lst_holds(ls_sign(c, x), s, D(-1, -1, 1, 1), 0));
    lst_close(c, rt);
}

LST_TEST(small_negative_tails_of_gelu_do_not_cancel)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = ls_constant(c, LS_F64, LS_SHAPE(1), D(-10));

    // x/2 erfc(10/sqrt 2); 1 + erf() would give 0
    LST_CHECK(lst_near(lst_at(ls_gelu(c, x, false), 0), -7.61985302416059e-23, 1e-12, 0));
    lst_close(c, rt);
}

LST_TEST(integers_are_negated_squared_and_cut_like_in_two_s_complement)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(4);
    ls_tensor *x = i32(c, s, (const int32_t[]){-3, 0, 7, INT32_MIN});
    ls_tensor *b = ls_constant(c, LS_U8, LS_SHAPE(3), (const uint8_t[]){0, 20, 255});
    ls_tensor *u = ls_constant(c, LS_U64, LS_SHAPE(1), (const uint64_t[]){UINT64_MAX});

    LST_CHECK(is_exactly(c, ls_neg(c, x), LS_I32, s, D(3, 0, -7, -2147483648.0)));
    LST_CHECK(is_exactly(c, ls_abs(c, x), LS_I32, s, D(3, 0, 7, -2147483648.0)));
    LST_CHECK(is_exactly(c, ls_sign(c, x), LS_I32, s, D(-1, 0, 1, -1)));
    LST_CHECK(is_exactly(c, ls_square(c, x), LS_I32, s, D(9, 0, 49, 0)));
    LST_CHECK(is_exactly(c, ls_relu(c, x), LS_I32, s, D(0, 0, 7, 0)));
    LST_CHECK(is_exactly(c, ls_neg(c, b), LS_U8, LS_SHAPE(3), D(0, 236, 1)));
    LST_CHECK(is_exactly(c, ls_square(c, b), LS_U8, LS_SHAPE(3), D(0, 144, 1)));
    LST_CHECK(is_exactly(c, ls_relu(c, u), LS_U64, LS_SHAPE(1), D(0x1p64)));
    LST_CHECK(is_exactly(c, ls_sign(c, u), LS_U64, LS_SHAPE(1), D(1)));
    LST_CHECK(is_exactly(c, ls_abs(c, u), LS_U64, LS_SHAPE(1), D(0x1p64)));
    lst_close(c, rt);
}

LST_TEST(clip_takes_integers_between_whole_or_infinite_bounds)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(3);
    ls_tensor *x = i32(c, s, (const int32_t[]){-9, 2, 9});
    ls_tensor *u = ls_constant(c, LS_U8, s, (const uint8_t[]){0, 2, 255});

    LST_CHECK(is_exactly(c, ls_clip(c, x, -3, 5), LS_I32, s, D(-3, 2, 5)));
    LST_CHECK(is_exactly(c, ls_clip(c, x, -INFINITY, 5), LS_I32, s, D(-9, 2, 5)));
    LST_CHECK(is_exactly(c, ls_clip(c, u, -3, 1000), LS_U8, s, D(0, 2, 255)));
    LST_CHECK(ls_clip(c, x, 0.5, 5) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "whole");
    LST_CHECK(ls_clip(c, ZEROS(c, s), NAN, 5) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "clip: the bounds");
    lst_close(c, rt);
}

LST_TEST(casts_go_toward_zero_and_stop_at_the_ends_of_integers)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(6);
    ls_tensor *x = F32(c, s, -1e30F, -2.9F, -0.5F, 2.9F, 1e30F, NAN);

    LST_CHECK(is_exactly(c, ls_cast(c, x, LS_I8), LS_I8, s, D(-128, -2, 0, 2, 127, 0)));
    LST_CHECK(is_exactly(c, ls_cast(c, x, LS_U8), LS_U8, s, D(0, 0, 0, 2, 255, 0)));
    LST_CHECK(is_exactly(c, ls_cast(c, x, LS_I32), LS_I32, s,
                         D(-2147483648.0, -2, 0, 2, 2147483647.0, 0)));
    LST_CHECK(
        is_exactly(c, ls_cast(c, x, LS_I64), LS_I64, s, D(-0x1p63, -2, 0, 2, 0x1p63, 0)));
    LST_CHECK(is_exactly(c, ls_cast(c, x, LS_U64), LS_U64, s, D(0, 0, 0, 2, 0x1p64, 0)));
    LST_CHECK(is_exactly(c, ls_cast(c, x, LS_BOOL), LS_BOOL, s, D(1, 1, 1, 1, 1, 1)));
    lst_close(c, rt);
}

LST_TEST(casts_between_integers_wrap_and_to_floats_round_once)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(3);
    ls_tensor *x = i32(c, s, (const int32_t[]){-1, 300, 0});
    // Just above halfway between two floats: double would round it down to halfway first.
    ls_tensor *big = ls_constant(c, LS_I64, LS_SHAPE(1),
                                 (const int64_t[]){(1LL << 60) + (1LL << 36) + 1});

    LST_CHECK(is_exactly(c, ls_cast(c, x, LS_U8), LS_U8, s, D(255, 44, 0)));
    LST_CHECK(is_exactly(c, ls_cast(c, x, LS_U64), LS_U64, s, D(0x1p64, 300, 0)));
    LST_CHECK(is_exactly(c, ls_cast(c, x, LS_I16), LS_I16, s, D(-1, 300, 0)));
    LST_CHECK(is_exactly(c, ls_cast(c, x, LS_BOOL), LS_BOOL, s, D(1, 1, 0)));
    LST_CHECK(is_exactly(c, ls_cast(c, x, LS_F16), LS_F16, s, D(-1, 300, 0)));
    LST_CHECK(lst_at(ls_cast(c, big, LS_F32), 0) == 0x1p60 + 0x1p37);
    lst_close(c, rt);
}

LST_TEST(a_cast_to_every_dtype_and_back_keeps_small_whole_numbers)
{
    static const ls_dtype all[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I8,  LS_I16,
                                   LS_I32, LS_I64, LS_U8,  LS_U16,  LS_U32, LS_U64};
    enum { N = 600 }; // more than a block
    double want[N];
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    for (int i = 0; i < N; i++) {
        want[i] = i % 128;
    }
    for (size_t a = 0; a < LSI_COUNT_OF(all); a++) {
        for (size_t b = 0; b < LSI_COUNT_OF(all); b++) {
            ls_tensor *x = ls_constant(c, LS_F64, LS_SHAPE(N), want);
            ls_tensor *y = ls_cast(c, ls_cast(c, x, all[a]), all[b]);

            LST_CHECK(is_exactly(c, y, all[b], LS_SHAPE(N), want));
        }
    }
    lst_close(c, rt);
}

LST_TEST(a_cast_to_the_same_dtype_is_a_view)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = ZEROS(c, LS_SHAPE(100));

    LST_CHECK(ls_cast(c, x, LS_F32)->data == x->data);
    lst_close(c, rt);
}

LST_TEST(logical_not_takes_bools_only)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = ls_constant(c, LS_BOOL, LS_SHAPE(2), (const uint8_t[]){0, 1});

    LST_CHECK(is_exactly(c, ls_logical_not(c, x), LS_BOOL, LS_SHAPE(2), D(1, 0)));
    LST_CHECK(ls_logical_not(c, ZEROS(c, LS_SHAPE(2))) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "logical_not: needs bool, got float32 (2,)");
    lst_close(c, rt);
}

LST_TEST(a_wrong_dtype_is_named_with_the_remedy)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_string text = {"a", 1};

    LST_CHECK(ls_exp(c, ls_constant(c, LS_I32, LS_SHAPE(2), NULL)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "exp: needs a floating dtype, got int32 (2,)");
    LST_CHECK(ls_neg(c, ls_constant(c, LS_BOOL, LS_SHAPE(2), NULL)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "ls_cast()");
    LST_CHECK(ls_cast(c, ls_constant(c, LS_STRING, LS_SHAPE(1), &text), LS_F32) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "string (1,) cannot become float32");
    LST_CHECK(ls_cast(c, ZEROS(c, LS_SHAPE(1)), (ls_dtype)77) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "77 is no dtype");
    LST_CHECK(lsi_op2(c, &lsi_op_relu_grad, ZEROS(c, LS_SHAPE(2)), ZEROS(c, LS_SHAPE(3)),
                      NULL, 0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "must be alike");
    LST_CHECK(ls_tanh(c, NULL) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "tanh: input 0 is NULL");
    lst_close(c, rt);
}

LST_TEST(gradients_agree_with_differences)
{
    for (size_t i = 0; i < LSI_COUNT_OF(knowns); i++) {
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        uint64_t seed = 3;
        ls_tensor *x = NULL;
        lst_call call;
        const bool positive = knowns[i].op == ls_log || knowns[i].op == ls_sqrt ||
                              knowns[i].op == ls_rsqrt || knowns[i].op == ls_log1p;

        x = lst_random_f64(c, LS_SHAPE(4, 5), positive ? 0.1 : -3, 3, &seed);
        lst_watch(c, x, &call);
        (void)knowns[i].op(c, x);
        lst_check_row(c, &call, 1);
        lst_close(c, rt);
    }
}

LST_TEST(gradients_of_gradients_agree_with_differences)
{
    static const ls_op *const rows[] = {&lsi_op_relu_grad, &lsi_op_leaky_relu_grad,
                                        &lsi_op_elu_grad,  &lsi_op_sigmoid_grad,
                                        &lsi_op_tanh_grad, &lsi_op_gelu_grad,
                                        &lsi_op_silu_grad};
    const lsi_scalars_attrs slope = {0.25, 0};

    for (size_t i = 0; i < LSI_COUNT_OF(rows); i++) {
        for (int approximate = 0; approximate < 2; approximate++) {
            ls_runtime *rt;
            ls_context *c = lst_open(&rt);
            uint64_t seed = 4;
            const bool of_y = rows[i] == &lsi_op_sigmoid_grad;
            ls_tensor *g = lst_random_f64(c, LS_SHAPE(3, 7), -2, 2, &seed);
            ls_tensor *v = lst_random_f64(c, LS_SHAPE(3, 7), of_y ? 0 : -1, 1, &seed);
            const lsi_axis_attrs flag = {approximate};
            lst_call call;

            lst_watch(c, g, &call);
            if (rows[i] == &lsi_op_leaky_relu_grad) {
                (void)lsi_op2(c, rows[i], g, v, &slope, sizeof slope);
            } else {
                (void)lsi_op2(c, rows[i], g, v, &flag, sizeof flag);
            }
            lst_check_row(c, &call, 1);
            lst_close(c, rt);
        }
    }
}

LST_TEST(the_gradients_at_the_kinks_are_tensorflow_s)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *ones = F32(c, LS_SHAPE(3), 1, 1, 1);
    ls_tensor *x = F32(c, LS_SHAPE(3), -1, 0, 2);
    const lsi_scalars_attrs bounds = {-1, 2};
    ls_tensor *y = NULL;
    ls_tensor *gin[1] = {NULL};
    ls_op_node n;

    LST_CHECK(lst_holds(lsi_op2(c, &lsi_op_relu_grad, ones, ls_relu(c, x), NULL, 0),
                        LS_SHAPE(3), D(0, 0, 1), 0));
    memset(&n, 0, sizeof n);
    y = ls_clip(c, x, -1, 2);
    n.in = &x;
    n.out = &y;
    n.nin = 1;
    n.nout = 1;
    n.needs = 1;
    n.attrs = (void *)(uintptr_t)&bounds;
    lsi_op_clip.gradient(c, &n, &ones, gin);
    LST_CHECK(lst_holds(gin[0], LS_SHAPE(3), D(1, 1, 1), 0)); // on a bound it passes
    lst_close(c, rt);
}

LST_TEST(casts_pass_gradients_between_floats_only)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2), 1, 2);
    ls_tensor *y = ls_cast(c, x, LS_F16);
    ls_tensor *g = ls_cast(c, x, LS_F16);
    ls_tensor *gin[1] = {NULL};
    ls_op_node n;

    memset(&n, 0, sizeof n);
    n.in = &x;
    n.out = &y;
    n.nin = 1;
    n.nout = 1;
    n.needs = 1;
    lsi_op_cast.gradient(c, &n, &g, gin);
    LST_CHECK(is_exactly(c, gin[0], LS_F32, LS_SHAPE(2), D(1, 2)));
    gin[0] = NULL;
    y = ls_cast(c, x, LS_I32);
    lsi_op_cast.gradient(c, &n, &g, gin);
    LST_CHECK(gin[0] == NULL);
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(every_operation_has_its_known_values_in_every_floating_dtype),
         LST_CASE(operations_keep_the_shape_of_scalars_and_of_empty_tensors),
         LST_CASE(a_nan_stays_a_nan_through_every_operation),
         LST_CASE(large_operands_saturate_instead_of_becoming_nan),
         LST_CASE(small_negative_tails_of_gelu_do_not_cancel),
         LST_CASE(integers_are_negated_squared_and_cut_like_in_two_s_complement),
         LST_CASE(clip_takes_integers_between_whole_or_infinite_bounds),
         LST_CASE(casts_go_toward_zero_and_stop_at_the_ends_of_integers),
         LST_CASE(casts_between_integers_wrap_and_to_floats_round_once),
         LST_CASE(a_cast_to_every_dtype_and_back_keeps_small_whole_numbers),
         LST_CASE(a_cast_to_the_same_dtype_is_a_view),
         LST_CASE(logical_not_takes_bools_only),
         LST_CASE(a_wrong_dtype_is_named_with_the_remedy),
         LST_CASE(gradients_agree_with_differences),
         LST_CASE(gradients_of_gradients_agree_with_differences),
         LST_CASE(the_gradients_at_the_kinks_are_tensorflow_s),
         LST_CASE(casts_pass_gradients_between_floats_only))
