/* Cases of reductions. p: keepdims, the number of axes (0: all), the axes. */
#include "op_cases.h"

#define APPLY(name)                                                                      \
    static void name##_(ls_context *c, const op_entry *e, const op_case *k,              \
                        ls_tensor *const *in, size_t n, ls_tensor **out)                 \
    {                                                                                    \
        const int axes[] = {(int)k->p[2], (int)k->p[3], (int)k->p[4]};                   \
                                                                                         \
        (void)e;                                                                         \
        (void)n;                                                                         \
        out[0] = ls_##name(c, in[0], k->p[1] == 0 ? NULL : axes, (size_t)k->p[1],        \
                           k->p[0] != 0);                                                \
    }
APPLY(sum)
APPLY(mean)
APPLY(prod)
APPLY(max)
APPLY(min)
APPLY(any)
APPLY(all)
APPLY(logsumexp)

static void argmax_(ls_context *c, const op_entry *e, const op_case *k,
                    ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_argmax(c, in[0], (int)k->p[0]);
}

static void argmin_(ls_context *c, const op_entry *e, const op_case *k,
                    ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_argmin(c, in[0], (int)k->p[0]);
}

/* clang-format off */

#define SHAPES(t)                                                                        \
    {SHAPE(t "[2,3,4]", t "[]")}, {SHAPE(t "[2,3,4]", t "[1,1,1]"), .p = {1}},           \
    {SHAPE(t "[2,3,4]", t "[2,4]"), .p = {0, 1, 1}},                                     \
    {SHAPE(t "[2,3,4]", t "[2,1,4]"), .p = {1, 1, -2}},                                  \
    {SHAPE(t "[2,3,4]", t "[3]"), .p = {0, 2, 0, -1}}, {SHAPE(t "[]", t "[]")},          \
    {SHAPE(t "[0,3]", t "[0]"), .p = {0, 1, 1}}

/*
 * Small letters (sizes that may be 0) only where a reduction of no elements is defined.
 */
#define COMPARISONS(t, n, m, k)                                                          \
    {COMPARE(t "[" n "]")}, {COMPARE(t "[" n "," m "]"), .p = {0, 1, 0}},                \
    {COMPARE(t "[" n "," m "]"), .p = {0, 1, 1}},                                        \
    {COMPARE(t "[" n "," m "," k "]"), .p = {1, 1, 1}},                                  \
    {COMPARE(t "[" n "," m "," k "]"), .p = {0, 2, 0, 2}},                               \
    {COMPARE(t "[" n "," m "," k "]"), .p = {0, 2, 0, 1}},                               \
    {COMPARE(t "[" n "," m "," k "]"), .p = {0, 2, -1, -2}}

#define LARGE(t, r)                                                                      \
    {COMPARE(t "[300,257]" r)}, {COMPARE(t "[300,257]" r), .p = {0, 1, 0}},              \
    {COMPARE(t "[300,257]" r), .p = {0, 1, 1}},                                          \
    {COMPARE(t "[9,11,7,65]" r), .p = {0, 3, 0, 1, 2}},                                  \
    {COMPARE(t "[30,17,130]" r), .p = {1, 1, 1}}

#define WRONG                                                                            \
    {BAD("f32[2,3]", "axis"), .p = {0, 1, 2}},                                           \
    {BAD("f32[2,3]", "axis"), .p = {0, 1, -3}},                                          \
    {BAD("f32[2,3]", "axis"), .p = {0, 2, 1, -1}}, {BAD("null", "NULL")},                \
    {BAD("string[2]", "string")}

#define GRADIENTS(r)                                                                     \
    {GRADIENT("f[2,3]" r)}, {GRADIENT("f[2,3]" r), .p = {0, 1, 0}},                      \
    {GRADIENT("f[2,3]" r), .p = {1, 1, 1}}, {GRADIENT("f[2,3,2]" r), .p = {0, 2, 0, 2}}

#define BOOLS                                                                            \
    CASES(SHAPES("bool"), COMPARISONS("bool", "n", "m", "k"), LARGE("bool", ""),         \
          {BAD("f32[2]", "bool")}, {BAD("bool[2,3]", "axis"), .p = {0, 1, 5}})

#define ARG                                                                              \
    CASES({SHAPE("f32[2,3]", "i64[3]")}, {SHAPE("f32[2,3]", "i64[2]"), .p = {-1}},       \
          {SHAPE("i32[4]", "i64[]")}, {COMPARE("f[N,m]")},                               \
          {COMPARE("f[n,M]"), .p = {1}},                                                 \
          {COMPARE("f[n,M,k]"), .p = {-2}}, {COMPARE("i32[N,m]")},                       \
          {COMPARE("i32[n,M]{0,3}"), .p = {1}}, {COMPARE("f[n,M]{#0,4}"), .p = {1}},     \
          {COMPARE("f[M,n]{#0,4}")}, {COMPARE("f[300,257]")},                            \
          {COMPARE("f[300,257]"), .p = {1}}, {BAD("f32[2,3]", "axis"), .p = {2}},        \
          {BAD("f32[2,0]", "empty"), .p = {1}}, {BAD("null", "NULL")})

const op_entry op_entries_reduce[] = {
    {LSI_OP_sum, sum_, SUM, CASES(SHAPES("f32"), SHAPES("i32"),
        COMPARISONS("f", "n", "m", "k"), COMPARISONS("i64", "n", "m", "k"), LARGE("f",
         ""),
        LARGE("f64", ""), GRADIENTS(""), WRONG)},
    {LSI_OP_mean, mean_, SUM, CASES(SHAPES("f32"), SHAPES("i32"),
        COMPARISONS("f", "N", "M", "K"), COMPARISONS("i32", "N", "M", "K"), LARGE("f",
         ""),
        GRADIENTS(""), WRONG)},
    {LSI_OP_prod, prod_, SUM, CASES(SHAPES("f32"), SHAPES("i32"),
        COMPARISONS("f", "n", "m", "k"), GRADIENTS(""),
        {COMPARE("f[300,257]{0.99,1.01}"),
         .p = {0, 1, 0}}, // each factor rounds once: short
        {COMPARE("f[300,257]{0.99,1.01}"), .p = {0, 1, 1}}, // products only
        GRADIENTS("{0.5,2}"), WRONG)},
    {LSI_OP_max, max_, EXACT, CASES(SHAPES("f32"), SHAPES("i32"),
        COMPARISONS("f", "N", "M", "K"), COMPARISONS("i32", "N", "M", "K"), LARGE("f",
         ""),
        {COMPARE("f[72]{!}")}, GRADIENTS(""), WRONG)},
    {LSI_OP_min, min_, EXACT, CASES(SHAPES("f32"), SHAPES("i32"),
        COMPARISONS("f", "N", "M", "K"), COMPARISONS("i32", "N", "M", "K"), LARGE("f",
         ""),
        {COMPARE("f[72]{!}")}, GRADIENTS(""), WRONG)},
    {LSI_OP_any, any_, EXACT, NO_GRADIENT, BOOLS},
    {LSI_OP_all, all_, EXACT, NO_GRADIENT, BOOLS},
    {LSI_OP_logsumexp, logsumexp_, SUM, CASES(SHAPES("f32"),
        COMPARISONS("f", "N", "M", "K"), LARGE("f", "{-20,20}"), GRADIENTS(""), WRONG,
        {BAD("i32[2]", "int32")})},
    {LSI_OP_argmax, argmax_, EXACT, NO_GRADIENT, ARG},
    {LSI_OP_argmin, argmin_, EXACT, NO_GRADIENT, ARG},
};
/* clang-format on */
const size_t op_count_reduce = LSI_COUNT_OF(op_entries_reduce);
