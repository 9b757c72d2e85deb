/* Cases of operations on shapes. */
#include "op_cases.h"

/* p: the number of sizes, the sizes. */
static ls_shape shape_of(const op_case *k)
{
    return ls_shape_of((size_t)k->p[0], &k->p[1]);
}

static void reshape_(ls_context *c, const op_entry *e, const op_case *k,
                     ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_reshape(c, in[0], shape_of(k));
}

static void broadcast_to_(ls_context *c, const op_entry *e, const op_case *k,
                          ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_broadcast_to(c, in[0], shape_of(k));
}

/* p: 1 and the permutation, or 0: all axes reversed. */
static void transpose_(ls_context *c, const op_entry *e, const op_case *k,
                       ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const int perm[] = {(int)k->p[1], (int)k->p[2], (int)k->p[3], (int)k->p[4]};

    (void)e;
    (void)n;
    out[0] = ls_transpose(c, in[0], k->p[0] == 0 ? NULL : perm);
}

/* p: the number of axes (0: all of size 1), the axes. */
static void squeeze_(ls_context *c, const op_entry *e, const op_case *k,
                     ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const int axes[] = {(int)k->p[1], (int)k->p[2]};

    (void)e;
    (void)n;
    out[0] = ls_squeeze(c, in[0], k->p[0] == 0 ? NULL : axes, (size_t)k->p[0]);
}

static void expand_dims_(ls_context *c, const op_entry *e, const op_case *k,
                         ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_expand_dims(c, in[0], (int)k->p[0]);
}

static void tile_(ls_context *c, const op_entry *e, const op_case *k,
                  ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_tile(c, in[0], k->p);
}

static void pad_(ls_context *c, const op_entry *e, const op_case *k, ls_tensor *const *in,
                 size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_pad(c, in[0], k->p, k->f[0]);
}

/* p: begins in 0..4, sizes from 5 on. */
static void slice_(ls_context *c, const op_entry *e, const op_case *k,
                   ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    (void)n;
    out[0] = ls_slice(c, in[0], k->p, k->p + 5);
}

/* p: the axis. */
static void concat_(ls_context *c, const op_entry *e, const op_case *k,
                    ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    out[0] = ls_concat(c, in, n, (int)k->p[0]);
}

static void stack_(ls_context *c, const op_entry *e, const op_case *k,
                   ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    out[0] = ls_stack(c, in, n, (int)k->p[0]);
}

static void identity_(ls_context *c, const op_entry *e, const op_case *k,
                      ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)k;
    (void)n;
    out[0] =
        e->op == LSI_OP_identity ? ls_identity(c, in[0]) : ls_stop_gradient(c, in[0]);
}

/* clang-format off */
const op_entry op_entries_layout[] = {
    {LSI_OP_reshape, reshape_, EXACT, CASES(
        {SHAPE("f32[2,3,4]", "f32[6,4]"), .p = {2, 6, 4}},
        {SHAPE("f32[2,3]", "f32[3,2]"), .p = {2, -1, 2}},
        {SHAPE("i64[1]", "i64[]"), .p = {0}},
        {SHAPE("f32[0,3]", "f32[3,0]"), .p = {2, 3, 0}},
        {COMPARE("f[n,m]"), .p = {1, -1}}, {COMPARE("f[300,257]"), .p = {1, -1}},
        {COMPARE("bool[n]"), .p = {2, -1, 1}}, {GRADIENT("f[2,3]"), .p = {2, 3, 2}},
        {BAD("f32[2,3]", "7"), .p = {1, 7}}, {BAD("f32[2,3]", "-1"), .p = {2, -1, -1}},
        {BAD("f32[2,3]", "-2"), .p = {2, -2, 3}}, {BAD("f32[2,3]", "4"), .p = {2, -1, 4}},
        {BAD("f32[2,3]", "axes"), .p = {9, 6, 1, 1, 1, 1, 1, 1, 1, 1}},
        {BAD("null", "NULL"), .p = {1, 1}})},
    {LSI_OP_transpose, transpose_, EXACT, CASES(
        {SHAPE("f32[2,3,4]", "f32[4,3,2]")},
        {SHAPE("f32[2,3,4]", "f32[3,2,4]"), .p = {1, 1, 0, 2}},
        {SHAPE("f32[0,3]", "f32[3,0]")}, {SHAPE("f32[]", "f32[]")},
        {COMPARE("f[n,m]")}, {COMPARE("f[n,m,k]")},
        {COMPARE("f[n,m,k]"), .p = {1, 0, 2, 1}},
        {COMPARE("f[b,n,h,8]"), .p = {1, 0, 2, 1, 3}}, {COMPARE("i8[n,m]")},
        {COMPARE("f64[n,m]")},
        {COMPARE("f[300,257]")}, {COMPARE("f[4,65,3,64]"), .p = {1, 0, 2, 1, 3}},
        {GRADIENT("f[2,3]")}, {GRADIENT("f[2,3,2]"), .p = {1, 1, 2, 0}},
        {BAD("f32[2,3]", "permutation"), .p = {1, 0, 0}},
        {BAD("f32[2,3]", "permutation"), .p = {1, 0, 2}},
        {BAD("null", "NULL")})},
    {LSI_OP_squeeze, squeeze_, EXACT, CASES(
        {SHAPE("f32[1,3,1]", "f32[3]")}, {SHAPE("f32[1,3,1]", "f32[1,3]"), .p = {1, -1}},
        {SHAPE("f32[1,1]", "f32[]"), .p = {2, 0, 1}}, {COMPARE("f[1,n,1]")},
        {GRADIENT("f[1,3,1]")},
        {BAD("f32[2,3]", "axis"), .p = {1, 5}}, {BAD("f32[2,3]", "1"), .p = {1, 0}},
        {BAD("null", "NULL")})},
    {LSI_OP_expand_dims, expand_dims_, EXACT, CASES(
        {SHAPE("f32[2,3]", "f32[1,2,3]")}, {SHAPE("f32[2,3]", "f32[2,3,1]"), .p = {-1}},
        {SHAPE("f32[]", "f32[1]")}, {COMPARE("f[n,m]"), .p = {1}},
        {GRADIENT("f[2,3]"), .p = {1}},
        {BAD("f32[2,3]", "axis"), .p = {3}}, {BAD("f32[2,3]", "axis"), .p = {-4}},
        {BAD("f32[1,1,1,1,1,1,1,1]", "axes")}, {BAD("null", "NULL")})},
    {LSI_OP_broadcast_to, broadcast_to_, EXACT, CASES(
        {SHAPE("f32[3]", "f32[2,3]"), .p = {2, 2, 3}},
        {SHAPE("f32[2,1]", "f32[4,2,3]"), .p = {3, 4, 2, 3}},
        {SHAPE("f32[]", "f32[0]"), .p = {1, 0}}, {COMPARE("f[1]"), .p = {2, 3, 5}},
        {COMPARE("f[3,1]"), .p = {3, 2, 3, 7}}, {COMPARE("i64[5]"), .p = {2, 4, 5}},
        {COMPARE("f[257]"), .p = {2, 300, 257}},
        {COMPARE("f[300,1]"), .p = {2, 300, 257}},
        {GRADIENT("f[3]"), .p = {2, 2, 3}}, {GRADIENT("f[2,1]"), .p = {3, 2, 2, 3}},
        {BAD("f32[3]", "broadcast"), .p = {2, 3, 2}},
        {BAD("f32[2,3]", "broadcast"), .p = {1, 3}},
        {BAD("f32[1]", "broadcast_to"), .p = {1, -3}},
        {BAD("null", "NULL"), .p = {1, 3}})},
    {LSI_OP_tile, tile_, EXACT, CASES(
        {SHAPE("f32[2,3]", "f32[4,9]"), .p = {2, 3}},
        {SHAPE("f32[2,3]", "f32[0,3]"), .p = {0, 1}},
        {COMPARE("f[n,m]"), .p = {2, 3}}, {COMPARE("i32[n]"), .p = {3}},
        {COMPARE("f[65,130]"), .p = {3, 4}},
        {GRADIENT("f[2,3]"), .p = {2, 3}}, {BAD("f32[2,3]", "axis"), .p = {-1, 1}},
        {BAD("null", "NULL")})},
    {LSI_OP_pad, pad_, EXACT, CASES(
        {SHAPE("f32[2,3]", "f32[5,3]"), .p = {1, 2, 0, 0}},
        {SHAPE("i32[0]", "i32[3]"), .p = {1, 2}},
        {COMPARE("f[n,m]"), .p = {1, 2, 0, 3}, .f = {0.5}},
        {COMPARE("i32[n]"), .p = {2, 0}},
        {COMPARE("f[100,257]"), .p = {3, 4, 5, 6}},
        {GRADIENT("f[2,3]"), .p = {1, 2, 0, 1}},
        {BAD("f32[2,3]", "axis"), .p = {-1, 0, 0, 0}}, {BAD("null", "NULL")})},
    {LSI_OP_slice, slice_, EXACT, CASES(
        {SHAPE("f32[4,5]", "f32[2,3]"), .p = {1, 2, 0, 0, 0, 2, 3}},
        {SHAPE("f32[4,5]", "f32[3,5]"), .p = {1, 0, 0, 0, 0, -1, -1}},
        {SHAPE("f32[4,5]", "f32[0,5]"), .p = {4, 0, 0, 0, 0, 0, 5}},
        {COMPARE("f[n,M]"), .p = {0, 0, 0, 0, 0, -1, 1}},
        {COMPARE("f[9,n,M]"), .p = {3, 0, 0, 0, 0, 4, -1, 1}},
        {COMPARE("f[300,257]"), .p = {7, 3, 0, 0, 0, 270, 250}},
        {COMPARE("i64[9]"), .p = {2, 0, 0, 0, 0, 5}},
        {GRADIENT("f[4,3]"), .p = {1, 1, 0, 0, 0, 2, 2}},
        {GRADIENT("f[4,3]"), .p = {1, 0, 0, 0, 0, -1, -1}},
        {BAD("f32[4,5]", "axis"), .p = {1, 2, 0, 0, 0, 4, 3}},
        {BAD("f32[4,5]", "axis"), .p = {-1, 0, 0, 0, 0, 1, 1}},
        {BAD("f32[4,5]", "axis"), .p = {0, 0, 0, 0, 0, -2, 1}}, {BAD("null", "NULL")})},
    {LSI_OP_concat, concat_, EXACT, CASES(
        {SHAPE("f32[2,3] f32[4,3]", "f32[6,3]")},
        {SHAPE("f32[2,3] f32[2,1] f32[2,0]", "f32[2,4]"), .p = {-1}},
        {COMPARE("f[n,m] f[k,m]")}, {COMPARE("f[n,m] f[n,k] f[n,3]"), .p = {1}},
        {COMPARE("i32[n] i32[m]")},
        {COMPARE("f[100,257] f[200,257]")}, {COMPARE("f[300,100] f[300,157]"), .p = {-1}},
        {GRADIENT("f[2,3] f[1,3]")}, {GRADIENT("f[2,3] f[2,1] f[2,2]"), .p = {1}},
        {BAD("f32[2,3] f32[2,4]", "axis")}, {BAD("f32[2,3] f64[2,3]", "dtype")},
        {BAD("f32[2,3] f32[2,3]", "axis"), .p = {2}}, {BAD("", "input")},
        {BAD("f32[2] null", "NULL")},
        {BAD("f32[] f32[]", "ax")})},
    {LSI_OP_stack, stack_, EXACT, CASES(
        {SHAPE("f32[2,3] f32[2,3]", "f32[2,2,3]")},
        {SHAPE("f32[2,3] f32[2,3]", "f32[2,3,2]"), .p = {-1}},
        {SHAPE("f32[] f32[] f32[]", "f32[3]")}, {COMPARE("f[n,m] f[n,m]")},
        {COMPARE("f[n,m] f[n,m] f[n,m]"), .p = {1}},
        {COMPARE("f[n,m] f[n,m]"), .p = {-1}},
        {COMPARE("f[300,129] f[300,129]"), .p = {1}},
        {GRADIENT("f[2,3] f[2,3]"), .p = {1}},
        {BAD("f32[2,3] f32[2,4]", "operand")}, {BAD("f32[2,3] f64[2,3]", "dtype")},
        {BAD("f32[2,3] f32[2,3]", "axis"), .p = {3}}, {BAD("", "input")},
        {BAD("f32[2] null", "NULL")})},
    {LSI_OP_stop_gradient, identity_, EXACT, NO_GRADIENT, CASES(
        {SHAPE("f32[2,3]", "f32[2,3]")}, {SHAPE("string[2]", "string[2]")},
        {COMPARE("f[n,m]")},
        {BAD("null", "NULL")})},
    {LSI_OP_identity, identity_, EXACT, CASES(
        {SHAPE("f32[2,3]", "f32[2,3]")}, {SHAPE("bool[0]", "bool[0]")},
        {COMPARE("f[n,m]")},
        {GRADIENT("f[2,3]")}, {BAD("null", "NULL")})},
};
/* clang-format on */
const size_t op_count_layout = LSI_COUNT_OF(op_entries_layout);
