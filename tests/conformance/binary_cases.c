/* Cases of elementwise operations on two operands, and of where. */
#include "op_cases.h"

OP_APPLY_TWO(add)
OP_APPLY_TWO(sub)
OP_APPLY_TWO(mul)
OP_APPLY_TWO(div)
OP_APPLY_TWO(floordiv)
OP_APPLY_TWO(mod)
OP_APPLY_TWO(pow)
OP_APPLY_TWO(maximum)
OP_APPLY_TWO(minimum)
OP_APPLY_TWO(equal)
OP_APPLY_TWO(not_equal)
OP_APPLY_TWO(less)
OP_APPLY_TWO(less_equal)
OP_APPLY_TWO(greater)
OP_APPLY_TWO(greater_equal)
OP_APPLY_TWO(logical_and)
OP_APPLY_TWO(logical_or)

static void where_(ls_context *c, const op_entry *e, const op_case *k,
                   ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)k;
    out[0] = n < 3 ? ls_where(c, in[0], in[1], NULL) : ls_where(c, in[0], in[1], in[2]);
}

/* clang-format off */

#define SHAPES(r, result)                                                                \
    {SHAPE("f32[2,3] f32[2,3]" r, result "[2,3]")},                                      \
    {SHAPE("f32[2,1] f32[3]" r, result "[2,3]")},                                        \
    {SHAPE("f32[] f32[4,1,2]" r, result "[4,1,2]")},                                     \
    {SHAPE("f32[1] f32[0]" r, result "[0]")},                                            \
    {SHAPE("f32[0,3] f32[1,1]" r, result "[0,3]")}

#define COMPARISONS(l, r)                                                                \
    {COMPARE("f[n,m]" l " f[n,m]" r)}, {COMPARE("f[n,m]" l " f[m]" r)},                  \
    {COMPARE("f[n,1]" l " f[m]" r)}, {COMPARE("f[n]" l " f[]" r)},                       \
    {COMPARE("f[]" l " f[n,m]" r)}, {COMPARE("f[1,n,1]" l " f[k,1,m]" r)},               \
    {COMPARE("f[n,m]" l " f[n,1]" r)}, {COMPARE("f[70001]" l " f[70001]" r)},            \
    {COMPARE("f[301,257]" l " f[257]" r)}, {COMPARE("f[301,257]" l " f[301,1]" r)},      \
    {COMPARE("f[2,3,1,5]" l " f[3,4,1]" r)}, {COMPARE("f64[n,m]" l " f64[m]" r)},        \
    {COMPARE("i32[n]{1,9} i32[n]{1,5}")}, {COMPARE("i64[n,m]{1,9} i64[m]{1,5}")}

#define WRONG(wanted)                                                                    \
    {BAD("f32[2,3] f32[2]", "broadcast")}, {BAD("f32[2] f64[2]", "dtypes")},             \
    {BAD("null f32[2]", "NULL")}, {BAD("f32[2] null", "NULL")},                          \
    {BAD("string[2] string[2]", wanted)}

#define GRADIENTS(l, r)                                                                  \
    {GRADIENT("f[2,3]" l " f[2,3]" r)}, {GRADIENT("f[2,3]" l " f[3]" r)},                \
    {GRADIENT("f[2,1]" l " f[3]" r)}, {GRADIENT("f[]" l " f[2,2]" r)}

#define ARITHMETIC(l, r)                                                                 \
    SHAPES(r, "f32"), COMPARISONS(l, r), WRONG("numbers"), GRADIENTS(l, r)
#define SPECIAL {COMPARE("f[72]{!} f[72]")}, {COMPARE("f[72] f[72]{!}")},                \
    {COMPARE("f[24,1]{!} f[24]{!}")}
#define COMPARING(wanted)                                                                \
    CASES(SHAPES("", "bool"), COMPARISONS("", ""), SPECIAL, WRONG(wanted))
#define LOGICAL CASES({SHAPE("bool[2,1] bool[3]", "bool[2,3]")},                         \
    {COMPARE("bool[n,m] bool[m]")}, {COMPARE("bool[70001] bool[70001]")},                \
    {BAD("f32[2] f32[2]", "bool")}, {BAD("bool[2] bool[3]", "broadcast")})

const op_entry op_entries_binary[] = {
    {LSI_OP_add, add_, EXACT, CASES(ARITHMETIC("", ""), SPECIAL,
        {COMPARE("f16[n] f16[n]")}, {COMPARE("u8[n] u8[n]")})},
    {LSI_OP_sub, sub_, EXACT, CASES(ARITHMETIC("", ""), SPECIAL)},
    {LSI_OP_mul, mul_, EXACT, CASES(ARITHMETIC("", ""), SPECIAL,
        {COMPARE("bf16[n] bf16[n]")})},
    {LSI_OP_div, div_, EXACT, CASES(ARITHMETIC("", "{0.5,2}"), SPECIAL,
        {SHAPE("i32[2] i32[2]{1,5}", "f64[2]")}, {SHAPE("i8[2] i8[2]{1,5}", "f32[2]")})},
    {LSI_OP_floordiv, floordiv_, EXACT, NO_GRADIENT, CASES(SHAPES("{0.5,2}", "f32"),
        COMPARISONS("{-9,9}", "{0.5,2}"), WRONG("numbers"),
        {SHAPE("i32[2] i32[2]{1,5}", "i32[2]")}, {COMPARE("i32[n]{-9,9} i32[n]{1,4}")},
        {BAD("i32[2] i32[2]{0,1}", "0")})},
    {LSI_OP_mod, mod_, ELEMENT, CASES(ARITHMETIC("{-9,9}", "{0.5,2}"),
        {COMPARE("i32[n]{-9,9} i32[n]{1,4}")}, {COMPARE("i32[n]{-9,9} i32[n]{-4,-1}")},
        {BAD("i32[2] i32[2]{0,1}", "0")})},
    {LSI_OP_pow, pow_, ELEMENT, CASES(ARITHMETIC("{0.5,2}", "{-2,2}"),
        {COMPARE("i32[n]{-3,3} i32[n]{0,4}")},
        {BAD("i32[2] i32[2]{-3,-1}", "exponent")})},
    {LSI_OP_maximum, maximum_, EXACT, CASES(ARITHMETIC("", ""), SPECIAL)},
    {LSI_OP_minimum, minimum_, EXACT, CASES(ARITHMETIC("", ""), SPECIAL)},
    {LSI_OP_equal, equal_, EXACT, NO_GRADIENT, CASES(SHAPES("", "bool"),
        COMPARISONS("", ""), SPECIAL, {COMPARE("bool[n] bool[n]")},
        {BAD("f32[2,3] f32[2]", "broadcast")}, {BAD("f32[2] f64[2]", "dtypes")})},
    {LSI_OP_not_equal, not_equal_, EXACT, NO_GRADIENT, CASES(SHAPES("", "bool"),
        COMPARISONS("", ""), SPECIAL, {COMPARE("bool[n] bool[n]")},
        {BAD("f32[2,3] f32[2]", "broadcast")}, {BAD("f32[2] f64[2]", "dtypes")})},
    {LSI_OP_less, less_, EXACT, NO_GRADIENT, COMPARING("numbers")},
    {LSI_OP_less_equal, less_equal_, EXACT, NO_GRADIENT, COMPARING("numbers")},
    {LSI_OP_greater, greater_, EXACT, NO_GRADIENT, COMPARING("numbers")},
    {LSI_OP_greater_equal, greater_equal_, EXACT, NO_GRADIENT, COMPARING("numbers")},
    {LSI_OP_logical_and, logical_and_, EXACT, NO_GRADIENT, LOGICAL},
    {LSI_OP_logical_or, logical_or_, EXACT, NO_GRADIENT, LOGICAL},
    {LSI_OP_where, where_, EXACT, CASES(
        {SHAPE("bool[2,1] f32[3] f32[]", "f32[2,3]")},
        {SHAPE("bool[] i32[3] i32[2,3]", "i32[2,3]")},
        {COMPARE("bool[n,m] f[n,m] f[n,m]")}, {COMPARE("bool[n,1] f[m] f[]")},
        {COMPARE("bool[] f[n,m] f[m]")}, {COMPARE("bool[n] i64[n] i64[]")},
        {COMPARE("bool[70001] f[70001] f[70001]")}, {COMPARE("bool[301,257] f[257] f[]")},
        {GRADIENT("bool[2,3] f[2,3] f[2,3]")}, {GRADIENT("bool[2,1] f[3] f[]")},
        {BAD("f32[2] f32[2] f32[2]", "bool")}, {BAD("bool[2] f32[2] f64[2]", "dtypes")},
        {BAD("bool[2] f32[3] f32[3]", "broadcast")}, {BAD("bool[2] f32[2]", "NULL")})},
};
/* clang-format on */
const size_t op_count_binary = LSI_COUNT_OF(op_entries_binary);
