/* Cases of operations that take rows by index, and of random numbers. */
#include "op_cases.h"

#include <math.h>

static void gather_(ls_context *c, const op_entry *e, const op_case *k,
                    ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    out[0] = ls_gather(c, in[0], n > 1 ? in[1] : NULL, (int)k->p[0]);
}

/* p: the number of sizes, the sizes; 0: the rows of the updates, five of them. */
static void scatter_(ls_context *c, const op_entry *e, const op_case *k,
                     ls_tensor *const *in, size_t n, ls_tensor **out)
{
    ls_shape s = ls_shape_of((size_t)k->p[0], &k->p[1]);

    (void)e;
    (void)n;
    if (k->p[0] == 0) {
        s = ls_tensor_shape(in[1]);
        s.dims[0] = 5;
    }
    out[0] = ls_scatter(c, in[0], in[1], s);
}

/* p: depth, dtype. */
static void one_hot_(ls_context *c, const op_entry *e, const op_case *k,
                     ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_one_hot(c, in[0], k->p[0], (ls_dtype)k->p[1]);
}

/* p: operation, rows. */
static void rows_(ls_context *c, const op_entry *e, const op_case *k,
                  ls_tensor *const *in, size_t n, ls_tensor **out)
{
    lsi_rows_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.op = (ls_scatter_op)k->p[0];
    attrs.rows = k->p[1];
    ls_op_apply(c, lsi_op_table[e->op], in, n, &attrs, sizeof attrs, out);
}

/* p: condition. */
static void require_(ls_context *c, const op_entry *e, const op_case *k,
                     ls_tensor *const *in, size_t n, ls_tensor **out)
{
    lsi_require_attrs attrs;

    memset(&attrs, 0, sizeof attrs);
    attrs.condition = (lsi_condition)k->p[0];
    ls_op_apply(c, lsi_op_table[e->op], in, n, &attrs, sizeof attrs, out);
}

/* f: rate. By the row with a position of its own where two runs must draw alike. */
static void dropout_(ls_context *c, const op_entry *e, const op_case *k,
                     ls_tensor *const *in, size_t n, ls_tensor **out)
{
    static const uint64_t at[LSI_RANDOM_STATE_WORDS] = {5, 0, 17};
    ls_tensor *both[2] = {in[0], NULL};
    lsi_random_attrs attrs;

    (void)n;
    if (k->kind != OP_GRADIENT) {
        out[0] = ls_dropout(c, in[0], k->f[0]);
        return;
    }
    memset(&attrs, 0, sizeof attrs);
    attrs.a = k->f[0];
    attrs.words = 1;
    both[1] = ls_constant(c, LS_U64, LS_SHAPE(LSI_RANDOM_STATE_WORDS), at);
    ls_op_apply(c, lsi_op_table[e->op], both, 2, &attrs, sizeof attrs, out);
}

/* p: dtype, the number of sizes, the sizes; f: lo hi, or mean and deviation. */
static void random_(ls_context *c, const op_entry *e, const op_case *k,
                    ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const ls_dtype dtype = (ls_dtype)k->p[0];
    const ls_shape s = ls_shape_of((size_t)k->p[1], &k->p[2]);

    (void)in;
    (void)n;
    if (e->op == LSI_OP_random_uniform) {
        out[0] = ls_random_uniform(c, dtype, s, k->f[0], k->f[1]);
    } else if (e->op == LSI_OP_random_normal) {
        out[0] = ls_random_normal(c, dtype, s, k->f[0], k->f[1]);
    } else {
        out[0] = ls_random_truncated_normal(c, dtype, s, k->f[0], k->f[1]);
    }
}

/* clang-format off */
#define RANDOM                                                                           \
    {SHAPE("", "f32[2,3]"), .p = {LS_F32, 2, 2, 3}, .f = {0, 1}},                        \
    {SHAPE("", "f64[]"), .p = {LS_F64, 0}, .f = {0, 1}},                                 \
    {SHAPE("", "f32[0]"), .p = {LS_F32, 1, 0}, .f = {0, 1}},                             \
    {COMPARE(""), .p = {LS_F32, 1, 1}, .f = {0, 1}},                                     \
    {COMPARE(""), .p = {LS_F32, 2, 3, 7}, .f = {-1, 2}},                                 \
    {COMPARE(""), .p = {LS_F32, 2, 300, 257}, .f = {0, 1}},                              \
    {COMPARE(""), .p = {LS_F64, 1, 33}, .f = {0, 1}},                                    \
    {BAD("", "random"), .p = {LS_BOOL, 1, 3}, .f = {0, 1}},                              \
    {BAD("", "random"), .p = {LS_F32, 1, -3}, .f = {0, 1}},                              \
    {BAD("", "random"), .p = {LS_F32, 1, 3}, .f = {NAN, 1}},                             \
    {BAD("", "random"), .p = {99, 1, 3}, .f = {0, 1}},                                   \
    {BAD("", "random"), .p = {LS_F32, 9, 1, 1, 1, 1, 1, 1, 1, 1}, .f = {0, 1}}

const op_entry op_entries_index[] = {
    {LSI_OP_gather, gather_, EXACT, CASES(
        {SHAPE("f32[4,3] i32[2]{0,4}", "f32[2,3]")},
        {SHAPE("f32[4,3] i64[2,5]{0,4}", "f32[2,5,3]")},
        {SHAPE("f32[4,3] i32[]{0,3}", "f32[4]"), .p = {-1}},
        {SHAPE("f32[4,3] i32[0]", "f32[0,3]")},
        {COMPARE("f[N,m] i32[k]{0,N}")}, {COMPARE("f[n,M] i64[k,2]{0,M}"), .p = {1}},
        {COMPARE("i32[N] i64[k]{0,N}")}, {COMPARE("f[100,257] i32[300]{0,100}")},
        {GRADIENT("f[4,3] i32[5]{0,4}")}, {GRADIENT("f[4,3] i64[2,2]{0,3}"), .p = {1}},
        {BAD("f32[4,3] i32[2]{4,6}", "4")}, {BAD("f32[4,3] i32[2]{-3,-1}", "-")},
        {BAD("f32[4,3] f32[2]", "int32")}, {BAD("f32[4,3] i32[2]", "axis"), .p = {2}},
        {BAD("f32[] i32[2]", "axis")}, {BAD("f32[4,3] null", "NULL")})},
    {LSI_OP_scatter, scatter_, SUM, CASES(
        {SHAPE("i32[2]{0,4} f32[2,3]", "f32[4,3]"), .p = {2, 4, 3}},
        {SHAPE("i64[2,2]{0,4} i32[2,2]", "i32[4]"), .p = {1, 4}},
        {SHAPE("i32[0] f32[0,3]", "f32[4,3]"), .p = {2, 4, 3}},
        {COMPARE("i32[k]{0,5} f[k,m]")}, {COMPARE("i64[k]{0,5} i32[k]")},
        {COMPARE("i32[300]{0,100} f[300,257]"), .p = {2, 100, 257}},
        {GRADIENT("i32[4]{0,3} f[4,2]"), .p = {2, 3, 2}},
        {BAD("i32[2]{4,6} f32[2,3]", "4"), .p = {2, 4, 3}},
        {BAD("i32[2] f32[3,3]", "updates"), .p = {2, 4, 3}},
        {BAD("f32[2] f32[2,3]", "int32"), .p = {2, 4, 3}},
        {BAD("i32[2] f32[2,3]", "scatter"), .p = {2, -4, 3}},
        {BAD("i32[2] bool[2]", "bool"), .p = {1, 4}})},
    {LSI_OP_change_rows, rows_, EXACT, NO_GRADIENT, CASES(
        {SHAPE("f32[4,3] i32[2]{0,4} f32[2,3]", "f32[4,3]")},
        {SHAPE("i64[4] i64[2,2]{0,4} i64[2,2]", "i64[4]"), .p = {LS_SCATTER_MAX}},
        {SHAPE("f32[0,3] i32[0] f32[0,3]", "f32[0,3]")},
        {COMPARE("f[N,m] i32[k]{0,N} f[k,m]"), .p = {LS_SCATTER_ADD}},
        {COMPARE("i32[N] i64[k]{0,N} i32[k]{1,9}"), .p = {LS_SCATTER_DIV}},
        {BAD("f32[4,3] i32[2]{4,6} f32[2,3]", "outside [0, 4)")},
        {BAD("i32[4] i32[1]{0,4} i32[1]{0,1}", "division"), .p = {LS_SCATTER_DIV}},
        {BAD("f32[4,3] i32[2] f32[3,3]", "updates")},
        {BAD("f32[4,3] i32[2] f64[2,3]", "updates")},
        {BAD("f32[] i32[2] f32[2]", "updates")},
        {BAD("f32[4] f32[2] f32[2]", "int32")},
        {BAD("f16[4] i32[2] f16[2]", "float16"), .code = LS_UNIMPLEMENTED},
        {BAD("f32[4] i32[2]{0,4} f32[2]", "no operation"), .p = {7}})},
    {LSI_OP_row_indices, rows_, EXACT, NO_GRADIENT, CASES(
        {SHAPE("i32[2,2]{0,4} f32[2,2,3]", "i64[2,2]"), .p = {LS_SCATTER_ADD, 4}},
        {SHAPE("i32[0] f32[0,3]", "i64[0]"), .p = {LS_SCATTER_ADD, 4}},
        {COMPARE("i32[n]{0,9} f[n]"), .p = {LS_SCATTER_SUB, 9}},
        {COMPARE("i64[n]{0,9} f[n]"), .p = {LS_SCATTER_SUB, 9}},
        {BAD("i32[2]{4,6} f32[2]", "outside [0, 4)"), .p = {LS_SCATTER_ADD, 4}},
        {BAD("i32[2]{0,4} i32[2]{0,1}", "division"), .p = {LS_SCATTER_DIV, 4}},
        {BAD("f32[2] f32[2]", "int32"), .p = {LS_SCATTER_ADD, 4}},
        {BAD("i32[2]{0,4} f32[2]", "no operation"), .p = {-1, 4}})},
    {LSI_OP_require, require_, EXACT, CASES(
        {SHAPE("f32[2,3]{0,2}", "f32[2,3]"), .p = {LSI_NONE_NEGATIVE}},
        {SHAPE("i64[]{0,2}", "i64[]"), .p = {LSI_NONE_NEGATIVE}},
        {SHAPE("i64[2]{0,1}", "i64[2]"), .p = {LSI_ALL_ZERO}},
        {COMPARE("f[n,m]{0,2}"), .p = {LSI_NONE_NEGATIVE}},
        {COMPARE("bool[n]"), .p = {LSI_NONE_NEGATIVE}},
        {GRADIENT("f[4]{1,2}"), .p = {LSI_NONE_NEGATIVE}},
        {BAD("f32[3]{-2,-1}", "negative"), .p = {LSI_NONE_NEGATIVE}},
        {BAD("f32[3]{1,2}", "not zero"), .p = {LSI_ALL_ZERO}},
        {BAD("null", "NULL"), .p = {LSI_ALL_ZERO}})},
    {LSI_OP_one_hot, one_hot_, EXACT, NO_GRADIENT, CASES(
        {SHAPE("i32[2]", "f32[2,4]"), .p = {4, LS_F32}},
        {SHAPE("i64[2,3]", "bool[2,3,0]"), .p = {0, LS_BOOL}},
        {COMPARE("i32[n]{-1,6}"), .p = {5, LS_F32}},
        {COMPARE("i64[n,m]{0,9}"), .p = {9, LS_I32}},
        {COMPARE("i64[3000]{0,10}"), .p = {10, LS_F32}},
        {BAD("f32[2]", "int32"), .p = {4, LS_F32}},
        {BAD("i32[2]", "depth"), .p = {-1, LS_F32}},
        {BAD("i32[2]", "one_hot"), .p = {4, 99}},
        {BAD("i32[2]", "string"), .p = {4, LS_STRING}})},
    {LSI_OP_dropout, dropout_, EXACT, CASES(
        {SHAPE("f32[2,3]", "f32[2,3]"), .f = {0.5}},
        {SHAPE("f32[0]", "f32[0]"), .f = {0.5}},
        {COMPARE("f[n,m]"), .f = {0.5}}, {COMPARE("f[70001]"), .f = {0.2}},
        {COMPARE("f[n]"), .f = {0}},
        {GRADIENT("f[4,5]"), .f = {0.5}}, {GRADIENT("f[4]"), .f = {0}},
        {BAD("f32[2]", "rate"), .f = {1}}, {BAD("f32[2]", "rate"), .f = {-0.1}},
        {BAD("f32[2]", "rate"), .f = {NAN}}, {BAD("i32[2]", "int32"), .f = {0.5}},
        {BAD("null", "NULL"), .f = {0.5}})},
    {LSI_OP_random_uniform, random_, EXACT, NO_GRADIENT, CASES(RANDOM,
        {BAD("", "random"), .p = {LS_F32, 1, 3}, .f = {1, 0}})},
    {LSI_OP_random_normal, random_, ELEMENT, NO_GRADIENT, CASES(RANDOM,
        {BAD("", "random"), .p = {LS_F32, 1, 3}, .f = {0, -1}})},
    {LSI_OP_random_truncated_normal, random_, ELEMENT, NO_GRADIENT, CASES(RANDOM,
        {BAD("", "random"), .p = {LS_F32, 1, 3}, .f = {0, -1}})},
};
/* clang-format on */
const size_t op_count_index = LSI_COUNT_OF(op_entries_index);
