/* Cases of elementwise operations on one operand, and of their one-pass gradients. */
#include "op_cases.h"

#include <math.h>

#define APPLY(name)                                                                      \
    static void name##_(ls_context *c, const op_entry *e, const op_case *k,              \
                        ls_tensor *const *in, size_t n, ls_tensor **out)                 \
    {                                                                                    \
        (void)e;                                                                         \
        (void)k;                                                                         \
        (void)n;                                                                         \
        out[0] = ls_##name(c, in[0]);                                                    \
    }
APPLY(neg)
APPLY(abs)
APPLY(sign)
APPLY(exp)
APPLY(log)
APPLY(log1p)
APPLY(sqrt)
APPLY(rsqrt)
APPLY(square)
APPLY(reciprocal)
APPLY(erf)
APPLY(relu)
APPLY(elu)
APPLY(sigmoid)
APPLY(tanh)
APPLY(softplus)
APPLY(silu)
APPLY(logical_not)

static void leaky_relu_(ls_context *c, const op_entry *e, const op_case *k,
                        ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_leaky_relu(c, in[0], (float)k->f[0]);
}

static void gelu_(ls_context *c, const op_entry *e, const op_case *k,
                  ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_gelu(c, in[0], k->p[0] != 0);
}

static void clip_(ls_context *c, const op_entry *e, const op_case *k,
                  ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_clip(c, in[0], k->f[0], k->f[1]);
}

static void cast_(ls_context *c, const op_entry *e, const op_case *k,
                  ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_cast(c, in[0], (ls_dtype)k->p[0]);
}

/* Rows (g, x) with the slope as their attribute. */
static void slope_grad(ls_context *c, const op_entry *e, const op_case *k,
                       ls_tensor *const *in, size_t n, ls_tensor **out)
{
    lsi_scalars_attrs at;

    memset(&at, 0, sizeof at);
    at.a = k->f[0];
    ls_op_apply(c, lsi_op_table[e->op], in, n, &at, sizeof at, out);
}

static void gelu_grad_(ls_context *c, const op_entry *e, const op_case *k,
                       ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const lsi_axis_attrs at = {(int)k->p[0]};

    ls_op_apply(c, lsi_op_table[e->op], in, n, &at, sizeof at, out);
}

/* clang-format off */

/*
 * Every floating dtype, all shapes, and special values: infinities, NaN, zeros, extremes.
 */
#define FLOATS(range)                                                                    \
    {SHAPE("f32[2,3]" range, "f32[2,3]")}, {SHAPE("f64[0,4]" range, "f64[0,4]")},        \
    {SHAPE("f16[]" range, "f16[]")}, {SHAPE("bf16[5]" range, "bf16[5]")},                \
    {COMPARE("f[n,m]" range)}, {COMPARE("f[]" range)}, {COMPARE("f[3,70001]" range)},    \
    {COMPARE("f64[n]" range)}, {COMPARE("f16[n]" range)}, {COMPARE("bf16[n]" range)},    \
    {COMPARE("f[72]{!}")}, {GRADIENT("f[3,5]" range)},                                   \
    {BAD("null", "NULL")}, {BAD("bool[2]", "bool")}, {BAD("string[2]", "string")}
#define ONLY_FLOATS(range) FLOATS(range), {BAD("i32[2]", "int32")}
#define NUMBERS FLOATS(""), {SHAPE("i32[3]", "i32[3]")}, {SHAPE("u8[3]", "u8[3]")},      \
    {COMPARE("i32[n]{-9,9}")}, {COMPARE("i64[n]{-9,9}")}, {COMPARE("i8[n]{-9,9}")},      \
    {COMPARE("i16[n]{-9,9}")}

/* Inputs (g, y) or (g, x), of one shape. */
#define PAIRS(range)                                                                     \
    {SHAPE("f32[2,3] f32[2,3]" range, "f32[2,3]")},                                      \
    {SHAPE("f64[0] f64[0]" range, "f64[0]")},                                            \
    {COMPARE("f[n,m] f[n,m]" range)}, {COMPARE("f[2,70001] f[2,70001]" range)},          \
    {COMPARE("f64[n] f64[n]" range)}, {GRADIENT("f[3,5] f[3,5]" range)},                 \
    {BAD("f32[2] f32[3]", "alike")}, {BAD("f32[2] f64[2]", "alike")},                    \
    {BAD("null f32[2]", "NULL")}, {BAD("f32[2]", "inputs")}

const op_entry op_entries_unary[] = {
    {LSI_OP_neg, neg_, EXACT, CASES(NUMBERS)},
    {LSI_OP_abs, abs_, EXACT, CASES(NUMBERS)},
    {LSI_OP_sign, sign_, EXACT, CASES(NUMBERS)},
    {LSI_OP_exp, exp_, ELEMENT, CASES(ONLY_FLOATS("{-10,10}"))},
    {LSI_OP_log, log_, ELEMENT, CASES(ONLY_FLOATS("{0.1,9}"))},
    {LSI_OP_log1p, log1p_, ELEMENT, CASES(ONLY_FLOATS("{-0.9,3}"))},
    {LSI_OP_sqrt, sqrt_, ELEMENT, CASES(ONLY_FLOATS("{0.1,9}"))},
    {LSI_OP_rsqrt, rsqrt_, ELEMENT, CASES(ONLY_FLOATS("{0.1,9}"))},
    {LSI_OP_square, square_, EXACT, CASES(NUMBERS)},
    {LSI_OP_reciprocal, reciprocal_, ELEMENT, CASES(ONLY_FLOATS("{0.2,3}"))},
    {LSI_OP_erf, erf_, ELEMENT, CASES(ONLY_FLOATS("{-4,4}"))},
    {LSI_OP_relu, relu_, EXACT, CASES(NUMBERS)},
    {LSI_OP_leaky_relu, leaky_relu_, ELEMENT, CASES(
        {SHAPE("f32[2,3]", "f32[2,3]"), .f = {0.2}}, {COMPARE("f[n,m]"), .f = {0.2}},
        {COMPARE("f[70001]"), .f = {0.01}}, {COMPARE("f64[n]"), .f = {0.3}},
        {COMPARE("f[72]{!}"), .f = {0.2}}, {GRADIENT("f[3,5]"), .f = {0.2}},
        {BAD("null", "NULL")}, {BAD("i32[2]", "int32"), .f = {0.2}})},
    {LSI_OP_elu, elu_, ELEMENT, CASES(ONLY_FLOATS("{-4,4}"))},
    {LSI_OP_sigmoid, sigmoid_, ELEMENT, CASES(ONLY_FLOATS("{-8,8}"))},
    {LSI_OP_tanh, tanh_, ELEMENT, CASES(ONLY_FLOATS("{-4,4}"))},
    {LSI_OP_softplus, softplus_, ELEMENT, CASES(ONLY_FLOATS("{-8,8}"))},
    {LSI_OP_gelu, gelu_, ELEMENT, CASES(
        {SHAPE("f32[2,3]", "f32[2,3]")}, {COMPARE("f[n,m]{-5,5}")},
        {COMPARE("f[n,m]{-5,5}"), .p = {1}}, {COMPARE("f[70001]{-5,5}")},
        {COMPARE("f[70001]{-5,5}"), .p = {1}}, {COMPARE("f64[n]")},
        {COMPARE("f[72]{!}")}, {COMPARE("f[72]{!}"), .p = {1}},
        {GRADIENT("f[3,5]{-3,3}")}, {GRADIENT("f[3,5]{-3,3}"), .p = {1}},
        {BAD("null", "NULL")}, {BAD("i32[2]", "int32")})},
    {LSI_OP_silu, silu_, ELEMENT, CASES(ONLY_FLOATS("{-6,6}"))},
    {LSI_OP_clip, clip_, EXACT, CASES(
        {SHAPE("f32[2,3]", "f32[2,3]"), .f = {-1, 1}},
        {SHAPE("i32[3]", "i32[3]"), .f = {-1, 1}},
        {COMPARE("f[n,m]"), .f = {-1, 1.5}}, {COMPARE("f[70001]"), .f = {-1, 1}},
        {COMPARE("f64[n]"), .f = {-1, 1}}, {COMPARE("i32[n]{-9,9}"), .f = {-3, 4}},
        {COMPARE("f[72]{!}"), .f = {-1, 1}}, {GRADIENT("f[3,5]"), .f = {-1, 1}},
        {BAD("null", "NULL"), .f = {0, 1}}, {BAD("f32[2]", "bounds"), .f = {NAN, 1}},
        {BAD("i32[2]", "whole"), .f = {0.5, 1}}, {BAD("bool[2]", "bool"), .f = {0, 1}})},
    {LSI_OP_cast, cast_, EXACT, CASES(
        {SHAPE("f32[2,3]", "i64[2,3]"), .p = {LS_I64}},
        {SHAPE("i32[0]", "bool[0]"), .p = {LS_BOOL}},
        {SHAPE("f32[2]", "f32[2]"), .p = {LS_F32}},
        {COMPARE("f[n,m]{-90,90}"), .p = {LS_I32}}, {COMPARE("f[n]"), .p = {LS_BOOL}},
        {COMPARE("u8[70001]{0,255}"), .p = {LS_F32}}, {COMPARE("i32[n]"), .p = {LS_F32}},
        {COMPARE("f[n]{-90,90}"), .p = {LS_I8}}, {COMPARE("f[70001]"), .p = {LS_BF16}},
        {COMPARE("bf16[n]"), .p = {LS_F32}}, {COMPARE("f16[n]"), .p = {LS_F32}},
        {COMPARE("f[n]"), .p = {LS_F16}},
        {COMPARE("f[n]"), .p = {LS_F64}}, {COMPARE("bool[n]"), .p = {LS_F32}},
        {COMPARE("i64[n]"), .p = {LS_U16}}, {GRADIENT("f[3,5]"), .p = {LS_F64}},
        {BAD("null", "NULL"), .p = {LS_F32}}, {BAD("f32[2]", "dtype"), .p = {99}},
        {BAD("f32[2]", "string"), .p = {LS_STRING}},
        {BAD("string[2]", "float32"), .p = {LS_F32}})},
    {LSI_OP_logical_not, logical_not_, EXACT, NO_GRADIENT, CASES(
        {SHAPE("bool[2,3]", "bool[2,3]")}, {COMPARE("bool[n,m]")},
        {COMPARE("bool[70001]")},
        {BAD("f32[2]", "bool")}, {BAD("null", "NULL")})},
    {LSI_OP_relu_grad, op_by_row, EXACT, CASES(PAIRS("{0.1,2}"))},
    {LSI_OP_leaky_relu_grad, slope_grad, ELEMENT, CASES(
        {SHAPE("f32[2,3] f32[2,3]", "f32[2,3]"), .f = {0.2}},
        {COMPARE("f[n,m] f[n,m]"), .f = {0.2}},
        {COMPARE("f[70001] f[70001]"), .f = {0.2}},
        {GRADIENT("f[3,5] f[3,5]"), .f = {0.2}},
        {BAD("f32[2] f32[3]", "alike"), .f = {0.2}})},
    {LSI_OP_elu_grad, op_by_row, ELEMENT, CASES(PAIRS("{-0.9,2}"))},
    {LSI_OP_sigmoid_grad, op_by_row, ELEMENT, CASES(PAIRS("{0.05,0.95}"))},
    {LSI_OP_tanh_grad, op_by_row, ELEMENT, CASES(PAIRS("{-0.95,0.95}"))},
    {LSI_OP_gelu_grad, gelu_grad_, ELEMENT, CASES(
        {SHAPE("f32[2,3] f32[2,3]", "f32[2,3]")},
        {COMPARE("f[n,m] f[n,m]{-5,5}")}, {COMPARE("f[n,m] f[n,m]{-5,5}"), .p = {1}},
        {COMPARE("f[70001] f[70001]")}, {COMPARE("f[70001] f[70001]"), .p = {1}},
        {GRADIENT("f[3,5] f[3,5]")}, {GRADIENT("f[3,5] f[3,5]"), .p = {1}},
        {BAD("f32[2] f32[3]", "alike")})},
    {LSI_OP_silu_grad, op_by_row, ELEMENT, CASES(PAIRS("{-5,5}"))},
};
/* clang-format on */
const size_t op_count_unary = LSI_COUNT_OF(op_entries_unary);
