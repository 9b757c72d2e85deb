/* Cases of matrix products, convolutions and attention. */
#include "op_cases.h"

#include <math.h>

/* p: transpose a, transpose b. */
static void matmul_(ls_context *c, const op_entry *e, const op_case *k,
                    ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    out[0] = ls_matmul_t(c, in[0], n > 1 ? in[1] : NULL, k->p[0] != 0, k->p[1] != 0);
}

/* p: the activation. */
static void dense_(ls_context *c, const op_entry *e, const op_case *k,
                   ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)e;
    out[0] = ls_dense(c, in[0], in[1], n > 2 ? in[2] : NULL, (ls_activation)k->p[0]);
}

/* p: strides, dilations (0: 1), padding, activation. */
static ls_conv_options conv_options(const op_case *k)
{
    ls_conv_options o = LS_CONV_OPTIONS_INIT;

    for (int a = 0; a < 2; a++) {
        o.stride[a] = (int)k->p[a];
        o.dilation[a] = (int)k->p[2 + a];
    }
    o.padding = (ls_padding)k->p[4];
    o.activation = (ls_activation)k->p[5];
    return o;
}

static void conv2d_(ls_context *c, const op_entry *e, const op_case *k,
                    ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const ls_conv_options o = conv_options(k);

    if (e->op == LSI_OP_conv2d) {
        out[0] = ls_conv2d(c, in[0], in[1], n > 2 ? in[2] : NULL, &o);
    } else {
        out[0] = ls_depthwise_conv2d(c, in[0], in[1], n > 2 ? in[2] : NULL, &o);
    }
}

static lsi_conv_attrs conv_attrs(const op_case *k, const int64_t *image,
                                 const int64_t *filter)
{
    const ls_conv_options o = conv_options(k);
    lsi_conv_attrs at;

    memset(&at, 0, sizeof at);
    at.padding = o.padding;
    for (int a = 0; a < 2; a++) {
        at.stride[a] = o.stride[a] == 0 ? 1 : o.stride[a];
        at.dilation[a] = o.dilation[a] == 0 ? 1 : o.dilation[a];
        at.pad[a] = lsi_windows(image[1 + a], (filter[a] - 1) * at.dilation[a] + 1,
                                at.stride[a], at.padding)
                        .pad;
    }
    return at;
}

/* Inputs g, w; p[6], p[7]: rows and columns of the image. */
static void conv_input_grad(ls_context *c, const op_entry *e, const op_case *k,
                            ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const int64_t image[4] = {in[0]->dims[0], k->p[6], k->p[7], in[1]->dims[2]};
    lsi_conv_attrs at = conv_attrs(k, image, in[1]->dims);

    memcpy(at.image, image, sizeof image);
    ls_op_apply(c, lsi_op_table[e->op], in, n, &at, sizeof at, out);
}

/* Inputs x, g; p[6], p[7]: rows and columns of the filter, p[8]: its last axis. */
static void conv_filter_grad(ls_context *c, const op_entry *e, const op_case *k,
                             ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const int64_t filter[4] = {k->p[6], k->p[7], in[0]->dims[3], k->p[8]};
    lsi_conv_attrs at = conv_attrs(k, in[0]->dims, filter);

    memcpy(at.image, filter, sizeof filter);
    ls_op_apply(c, lsi_op_table[e->op], in, n, &at, sizeof at, out);
}

/* p: causal, heads of self_attention; f: scale. */
static lsi_attention_attrs attention_attrs(const op_case *k)
{
    lsi_attention_attrs at;

    memset(&at, 0, sizeof at);
    at.causal = k->p[0] != 0;
    at.heads = (int)k->p[1];
    at.scale = k->f[0] == 0 ? 0.5f : (float)k->f[0];
    return at;
}

/* By the row, so that the sums are compared, too. */
static void attention_(ls_context *c, const op_entry *e, const op_case *k,
                       ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const lsi_attention_attrs at = attention_attrs(k);

    ls_op_apply(c, lsi_op_table[e->op], in, n, &at, sizeof at, out);
}

/*
 * Inputs q, k, v, g, or qkv, g: the result and its sums are computed first, as in a step.
 * A bad case is passed to the row unchanged.
 */
static void attention_grad_(ls_context *c, const op_entry *e, const op_case *k,
                            ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const bool self = e->op == LSI_OP_self_attention_grad;
    const lsi_attention_attrs at = attention_attrs(k);
    ls_tensor *y[LSI_MAX_OUTPUTS] = {NULL}, *all[6] = {NULL};
    const size_t operands = self ? 1 : 3;

    if (k->kind == OP_BAD) {
        ls_op_apply(c, lsi_op_table[e->op], in, n, &at, sizeof at, out);
        return;
    }
    ls_op_apply(c, self ? &lsi_op_self_attention : &lsi_op_attention, in, operands, &at,
                sizeof at, y);
    memcpy(all, in, operands * sizeof(*all));
    all[operands] = y[0];
    all[operands + 1] = y[1];
    all[operands + 2] = in[operands];
    ls_op_apply(c, lsi_op_table[e->op], all, operands + 3, &at, sizeof at, out);
}

/* clang-format off */
#define CONV(s, d, pad, act) .p = {s, s, d, d, pad, act}

const op_entry op_entries_product[] = {
    {LSI_OP_matmul, matmul_, SUM, CASES(
        {SHAPE("f32[2,3] f32[3,4]", "f32[2,4]")},
        {SHAPE("f32[3,2] f32[3,4]", "f32[2,4]"), .p = {1, 0}},
        {SHAPE("f32[2,3] f32[4,3]", "f32[2,4]"), .p = {0, 1}},
        {SHAPE("f32[5,1,2,3] f32[6,3,4]", "f32[5,6,2,4]")},
        {SHAPE("i32[2,3] i32[3,4]", "i32[2,4]")},
        {SHAPE("f32[2,0] f32[0,3]", "f32[2,3]")},
        {COMPARE("f[n,k] f[k,m]")}, {COMPARE("f[k,n] f[k,m]"), .p = {1, 0}},
        {COMPARE("f[n,k] f[m,k]"), .p = {0, 1}}, {COMPARE("f[k,n] f[m,k]"), .p = {1, 1}},
        {COMPARE("f[b,n,k] f[b,k,m]")}, {COMPARE("f[b,n,k] f[k,m]")},
        {COMPARE("f[n,k] f[b,k,m]")}, {COMPARE("f[b,1,n,k] f[c,k,m]")},
        {COMPARE("f[b,k,n] f[b,m,k]"), .p = {1, 1}}, {COMPARE("i32[n,k] i32[k,m]")},
        {COMPARE("f64[n,k] f64[k,m]")}, {COMPARE("f[129,65] f[65,257]")},
        {COMPARE("f[257,300] f[131,300]"), .p = {0, 1}},
        {COMPARE("f[300,130] f[300,67]"), .p = {1, 0}}, {COMPARE("f[1,300] f[300,500]")},
        {COMPARE("f[500,300] f[300,1]")}, {COMPARE("f[7,33,65] f[7,65,40]")},
        {COMPARE("bf16[5,7] bf16[7,3]")},
        {GRADIENT("f[2,3] f[3,4]")}, {GRADIENT("f[3,2] f[3,4]"), .p = {1, 0}},
        {GRADIENT("f[2,3] f[4,3]"), .p = {0, 1}},
        {GRADIENT("f[3,2] f[4,3]"), .p = {1, 1}},
        {GRADIENT("f[2,2,3] f[3,2]")}, {GRADIENT("f[2,3] f[2,3,2]")},
        {GRADIENT("f[2,1,2,3] f[2,3,2]")}, {GRADIENT("f[2,3,2] f[2,3]"), .p = {1, 1}},
        {BAD("f32[2,3] f32[4,5]", "inner")}, {BAD("f32[3] f32[3,4]", "axes")},
        {BAD("f32[2,3] f64[3,4]", "dtypes")}, {BAD("bool[2,3] bool[3,4]", "bool")},
        {BAD("f32[2,2,3] f32[3,3,4]", "broadcast")}, {BAD("null f32[3,4]", "NULL")})},
    {LSI_OP_dense, dense_, SUM, CASES(
        {SHAPE("f32[2,3] f32[3,4] f32[4]", "f32[2,4]")},
        {SHAPE("f32[5,2,3] f32[3,4]", "f32[5,2,4]"), .p = {LS_RELU}},
        {SHAPE("f32[3] f32[3,4]", "f32[4]")},
        {SHAPE("f32[0,3] f32[3,4] f32[4]", "f32[0,4]")},
        {COMPARE("f[n,k] f[k,m] f[m]")}, {COMPARE("f[n,k] f[k,m] f[m]"), .p = {LS_RELU}},
        {COMPARE("f[n,k] f[k,m]{-0.2,0.2}"), .p = {LS_TANH}},
        {COMPARE("f[b,n,k] f[k,m]{-0.2,0.2} f[m]"), .p = {LS_SIGMOID}},
        {COMPARE("f[n,k] f[k,m] f[m]"), .p = {LS_GELU}},
        {COMPARE("f[n,k] f[k,m] f[m]"), .p = {LS_GELU_TANH}},
        {COMPARE("f[n,k] f[k,m] f[m]"), .p = {LS_SILU}},
        {COMPARE("f[129,67] f[67,257] f[257]"), .p = {LS_RELU}},
        {COMPARE("f[64,300] f[300,10] f[10]")}, {COMPARE("f64[n,k] f64[k,m] f64[m]")},
        {GRADIENT("f[2,3] f[3,4] f[4]")},
        {GRADIENT("f[2,3] f[3,4] f[4]"), .p = {LS_RELU}},
        {GRADIENT("f[2,2,3] f[3,2] f[2]"), .p = {LS_TANH}},
        {GRADIENT("f[2,3] f[3,4] f[4]"), .p = {LS_SIGMOID}},
        {GRADIENT("f[2,3] f[3,4] f[4]"), .p = {LS_GELU}},
        {GRADIENT("f[3] f[3,4]"), .p = {LS_SILU}},
        {BAD("f32[2,3] f32[4,5]", "inner")}, {BAD("f32[2,3] f32[3,4] f32[3]", "bias")},
        {BAD("f32[2,3] f32[3]", "matrix")}, {BAD("i32[2,3] i32[3,4]", "int32")},
        {BAD("f32[2,3] f32[3,4] f64[4]", "bias")})},
    {LSI_OP_conv2d, conv2d_, SUM, CASES(
        {SHAPE("f32[2,8,9,3] f32[3,3,3,5] f32[5]", "f32[2,6,7,5]")},
        {SHAPE("f32[2,8,9,3] f32[3,3,3,5]", "f32[2,4,5,5]"), CONV(2, 1, LS_SAME, 0)},
        {SHAPE("f32[2,8,9,3] f32[3,3,3,5]", "f32[2,4,5,5]"), CONV(1, 2, LS_VALID, 0)},
        {SHAPE("f32[0,8,9,3] f32[3,3,3,5]", "f32[0,6,7,5]")},
        {COMPARE("f[n,7,9,C] f[3,3,C,M] f[M]")},
        {COMPARE("f[n,7,9,C] f[3,2,C,M] f[M]"), CONV(1, 1, LS_SAME, LS_RELU)},
        {COMPARE("f[n,7,9,C] f[3,3,C,M]"), CONV(2, 1, LS_SAME, 0)},
        {COMPARE("f[n,9,9,C] f[3,3,C,M]"), CONV(1, 2, LS_VALID, 0)},
        {COMPARE("f[n,5,6,C] f[1,1,C,M]{-0.2,0.2} f[M]"), CONV(1, 1, LS_VALID, LS_TANH)},
        {COMPARE("f[n,5,6,C] f[5,6,C,M]{-0.1,0.1} f[M]"),
         CONV(1, 1, LS_VALID, LS_SIGMOID)},
        {COMPARE("f[n,5,6,C] f[3,3,C,M] f[M]"), CONV(1, 1, LS_SAME, LS_GELU)},
        {COMPARE("f[2,28,28,1] f[3,3,1,32] f[32]"), CONV(1, 1, LS_VALID, LS_RELU)},
        {COMPARE("f[2,13,13,32] f[3,3,32,64] f[64]"), CONV(1, 1, LS_VALID, LS_RELU)},
        {COMPARE("f[3,17,15,19] f[5,3,19,23]"), CONV(2, 1, LS_SAME, 0)},
        {COMPARE("f64[2,6,5,3] f64[3,3,3,4]")},
        {COMPARE("f[n,7,9,C] f[3,3,C,4] f[4]"), CONV(1, 5, LS_SAME, LS_RELU)},
        {COMPARE("f[n,7,4,C] f[5,5,C,4]"), CONV(1, 4, LS_SAME, 0)},
        {COMPARE("f[n,7,9,C] f[5,4,C,4]"), CONV(2, 4, LS_SAME, 0)},
        {COMPARE("f[n,7,9,C] f[3,3,C,4] f[4]"), CONV(1, 10000, LS_SAME, 0)},
        {COMPARE("f[n,7,9,C] f[2,5,C,4] f[4]"), CONV(3, 10000, LS_SAME, 0)},
        {GRADIENT("f[1,4,5,2] f[3,3,2,2] f[2]")},
        {GRADIENT("f[2,4,3,2] f[3,2,2,2] f[2]"), CONV(1, 1, LS_SAME, LS_RELU)},
        {GRADIENT("f[1,5,5,1] f[3,3,1,2]"), CONV(2, 1, LS_SAME, LS_TANH)},
        {GRADIENT("f[1,6,5,2] f[2,2,2,1] f[1]"), CONV(1, 2, LS_VALID, LS_GELU)},
        {BAD("f32[2,8,9,3] f32[3,3,4,5]", "channels")},
        {BAD("f32[8,9,3] f32[3,3,3,5]", "image")},
        {BAD("f32[2,8,9,3] f32[3,3,3,5] f32[4]", "bias")},
        {BAD("f32[2,1,1,3] f32[3,3,3,5]", "filter")},
        {SHAPE("f32[2,2,2,3] f32[3,3,3,5]", "f32[2,0,0,5]")},
        {BAD("f32[2,8,9,3] f32[3,3,3,5]", "strides"), CONV(-1, 1, 0, 0)},
        {BAD("f32[2,8,9,3] f32[3,3,3,5]", "padding"), CONV(1, 1, 7, 0)},
        {BAD("i32[2,8,9,3] i32[3,3,3,5]", "int32")})},
    {LSI_OP_conv2d_input_grad, conv_input_grad, SUM, CASES(
        {SHAPE("f32[2,6,7,5] f32[3,3,3,5]", "f32[2,8,9,3]"),
         .p = {1, 1, 1, 1, 0, 0, 8, 9}},
        {COMPARE("f[n,5,7,M] f[3,3,C,M]"), .p = {1, 1, 1, 1, 0, 0, 7, 9}},
        {COMPARE("f[n,7,9,M] f[3,2,C,M]"), .p = {1, 1, 1, 1, LS_SAME, 0, 7, 9}},
        {COMPARE("f[n,4,5,M] f[3,3,C,M]"), .p = {2, 2, 1, 1, LS_SAME, 0, 7, 9}},
        {COMPARE("f[n,5,5,M] f[3,3,C,M]"), .p = {1, 1, 2, 2, 0, 0, 9, 9}},
        {COMPARE("f[n,7,9,M] f[5,4,C,M]"), .p = {1, 1, 4, 4, LS_SAME, 0, 7, 9}},
        {COMPARE("f[n,7,9,M] f[3,3,C,M]"), .p = {1, 1, 10000, 10000, LS_SAME, 0, 7, 9}},
        {COMPARE("f[2,11,11,64] f[3,3,32,64]"), .p = {1, 1, 1, 1, 0, 0, 13, 13}},
        {GRADIENT("f[1,2,3,2] f[3,3,2,2]"), .p = {1, 1, 1, 1, 0, 0, 4, 5}},
        {GRADIENT("f[1,3,3,2] f[3,3,1,2]"), .p = {2, 2, 1, 1, LS_SAME, 0, 5, 5}},
        {BAD("f32[2,6,6,5] f32[3,3,3,5]", "gradient"), .p = {1, 1, 1, 1, 0, 0, 8, 9}})},
    {LSI_OP_conv2d_filter_grad, conv_filter_grad, SUM, CASES(
        {SHAPE("f32[2,8,9,3] f32[2,6,7,5]", "f32[3,3,3,5]"),
         .p = {1, 1, 1, 1, 0, 0, 3, 3, 5}},
        {SHAPE("f32[0,8,9,3] f32[0,6,7,5]", "f32[3,3,3,5]"),
         .p = {1, 1, 1, 1, 0, 0, 3, 3, 5}},
        {COMPARE("f[n,7,9,C] f[n,5,7,4]"), .p = {1, 1, 1, 1, 0, 0, 3, 3, 4}},
        {COMPARE("f[n,7,9,C] f[n,7,9,5]"), .p = {1, 1, 1, 1, LS_SAME, 0, 3, 2, 5}},
        {COMPARE("f[n,7,9,C] f[n,4,5,17]"), .p = {2, 2, 1, 1, LS_SAME, 0, 3, 3, 17}},
        {COMPARE("f[n,9,9,C] f[n,5,5,3]"), .p = {1, 1, 2, 2, 0, 0, 3, 3, 3}},
        {COMPARE("f[n,7,9,C] f[n,7,9,5]"), .p = {1, 1, 5, 5, LS_SAME, 0, 3, 3, 5}},
        {COMPARE("f[n,7,4,C] f[n,7,4,5]"), .p = {1, 1, 4, 4, LS_SAME, 0, 5, 5, 5}},
        {COMPARE("f[n,7,9,C] f[n,4,5,5]"), .p = {2, 2, 4, 4, LS_SAME, 0, 5, 4, 5}},
        {COMPARE("f[n,7,9,C] f[n,7,9,5]"),
         .p = {1, 1, 10000, 10000, LS_SAME, 0, 3, 3, 5}},
        {COMPARE("f[n,7,9,C] f[n,3,3,5]"),
         .p = {3, 3, 10000, 10000, LS_SAME, 0, 2, 5, 5}},
        {COMPARE("f[2,28,28,1] f[2,26,26,32]"), .p = {1, 1, 1, 1, 0, 0, 3, 3, 32}},
        {COMPARE("f[2,13,13,32] f[2,11,11,64]"), .p = {1, 1, 1, 1, 0, 0, 3, 3, 64}},
        {GRADIENT("f[1,4,5,2] f[1,2,3,2]"), .p = {1, 1, 1, 1, 0, 0, 3, 3, 2}},
        {GRADIENT("f[1,5,5,1] f[1,3,3,2]"), .p = {2, 2, 1, 1, LS_SAME, 0, 3, 3, 2}},
        {BAD("f32[2,8,9,3] f32[2,6,6,5]", "gradient"),
         .p = {1, 1, 1, 1, 0, 0, 3, 3, 5}})},
    {LSI_OP_depthwise_conv2d, conv2d_, SUM, CASES(
        {SHAPE("f32[2,8,9,3] f32[3,3,3,2] f32[6]", "f32[2,6,7,6]")},
        {COMPARE("f[n,7,9,C] f[3,3,C,1]")},
        {COMPARE("f[n,7,9,C] f[3,2,C,2]"), CONV(1, 1, LS_SAME, LS_RELU)},
        {COMPARE("f[n,7,9,C] f[3,3,C,3]"), CONV(2, 1, LS_SAME, 0)},
        {COMPARE("f[n,9,9,C] f[3,3,C,1]"), CONV(1, 2, LS_VALID, 0)},
        {COMPARE("f[3,28,27,33] f[3,3,33,1] f[33]"), CONV(1, 1, LS_SAME, LS_RELU)},
        {COMPARE("f[2,9,11,70] f[3,5,70,1] f[70]"), CONV(2, 1, LS_SAME, LS_SIGMOID)},
        {COMPARE("f[1,3,3,8] f[5,5,8,1]"), CONV(3, 2, LS_SAME, 0)},
        {GRADIENT("f[1,4,5,2] f[3,3,2,2] f[4]")},
        {GRADIENT("f[1,4,4,2] f[3,3,2,1]"), CONV(2, 1, LS_SAME, LS_TANH)},
        {BAD("f32[2,8,9,3] f32[3,3,4,1]", "channels")},
        {BAD("f32[2,8,9,3] f32[3,3,3,2] f32[3]", "bias")})},
    {LSI_OP_depthwise_conv2d_input_grad, conv_input_grad, SUM, CASES(
        {SHAPE("f32[2,6,7,6] f32[3,3,3,2]", "f32[2,8,9,3]"),
         .p = {1, 1, 1, 1, 0, 0, 8, 9}},
        {COMPARE("f[n,5,7,C] f[3,3,C,1]"), .p = {1, 1, 1, 1, 0, 0, 7, 9}},
        {COMPARE("f[n,4,5,6] f[3,3,3,2]"), .p = {2, 2, 1, 1, LS_SAME, 0, 7, 9}},
        {COMPARE("f[3,28,27,33] f[3,3,33,1]"), .p = {1, 1, 1, 1, LS_SAME, 0, 28, 27}},
        {COMPARE("f[2,5,6,70] f[3,5,70,1]"), .p = {2, 2, 1, 1, LS_SAME, 0, 9, 11}},
        {COMPARE("f[2,5,5,9] f[3,3,9,1]"), .p = {1, 1, 2, 2, 0, 0, 9, 9}},
        {GRADIENT("f[1,2,3,4] f[3,3,2,2]"), .p = {1, 1, 1, 1, 0, 0, 4, 5}},
        {BAD("f32[2,6,7,5] f32[3,3,3,2]", "gradient"), .p = {1, 1, 1, 1, 0, 0, 8, 9}})},
    {LSI_OP_depthwise_conv2d_filter_grad, conv_filter_grad, SUM, CASES(
        {SHAPE("f32[2,8,9,3] f32[2,6,7,6]", "f32[3,3,3,2]"),
         .p = {1, 1, 1, 1, 0, 0, 3, 3, 2}},
        {COMPARE("f[n,7,9,C] f[n,5,7,C]"), .p = {1, 1, 1, 1, 0, 0, 3, 3, 1}},
        {COMPARE("f[n,7,9,3] f[n,4,5,6]"), .p = {2, 2, 1, 1, LS_SAME, 0, 3, 3, 2}},
        {COMPARE("f[3,28,27,33] f[3,28,27,33]"), .p = {1, 1, 1, 1, LS_SAME, 0, 3, 3, 1}},
        {COMPARE("f[2,9,11,70] f[2,5,6,70]"), .p = {2, 2, 1, 1, LS_SAME, 0, 3, 5, 1}},
        {COMPARE("f[2,9,9,9] f[2,5,5,9]"), .p = {1, 1, 2, 2, 0, 0, 3, 3, 1}},
        {GRADIENT("f[1,4,5,2] f[1,2,3,4]"), .p = {1, 1, 1, 1, 0, 0, 3, 3, 2}},
        {BAD("f32[2,8,9,3] f32[2,6,7,5]", "gradient"),
         .p = {1, 1, 1, 1, 0, 0, 3, 3, 2}})},
    {LSI_OP_attention, attention_, SUM, .outputs = 2, CASES(
        {SHAPE("f32[2,3,4] f32[2,5,4] f32[2,5,4]", "f32[2,3,4] f32[2,3]")},
        {SHAPE("f32[3,4] f32[3,4] f32[3,4]", "f32[3,4] f32[3]"), .p = {1}},
        {SHAPE("f32[0,3,4] f32[0,3,4] f32[0,3,4]", "f32[0,3,4] f32[0,3]")},
        {COMPARE("f[b,n,D] f[b,M,D] f[b,M,D]")},
        {COMPARE("f[b,n,D] f[b,n,D] f[b,n,D]"), .p = {1}},
        {COMPARE("f[2,3,n,16] f[2,3,n,16] f[2,3,n,16]"), .p = {1}},
        {COMPARE("f[4,70,33] f[4,70,33] f[4,70,33]"), .p = {1}},
        {COMPARE("f[4,70,64] f[4,129,64] f[4,129,64]")},
        {COMPARE("f64[2,5,8] f64[2,5,8] f64[2,5,8]"), .p = {1}},
        {GRADIENT("f[2,3,4] f[2,5,4] f[2,5,4]")},
        {GRADIENT("f[2,4,3] f[2,4,3] f[2,4,3]"), .p = {1}},
        {BAD("f32[2,3,4] f32[2,5,3] f32[2,5,3]", "queries")},
        {BAD("f32[2,3,4] f32[2,5,4] f32[2,5,4]", "causal"), .p = {1}},
        {BAD("f32[2,3,4] f64[2,5,4] f32[2,5,4]", "dtypes")},
        {BAD("i32[2,3,4] i32[2,5,4] i32[2,5,4]", "int32")},
        {BAD("f32[4] f32[4] f32[4]", "queries")})},
    {LSI_OP_attention_grad, attention_grad_, SUM, NO_GRADIENT, .outputs = 3, CASES(
        {SHAPE("f32[2,3,4] f32[2,5,4] f32[2,5,4] f32[2,3,4]",
         "f32[2,3,4] f32[2,5,4] f32[2,5,4]")},
        {COMPARE("f[b,n,D] f[b,M,D] f[b,M,D] f[b,n,D]")},
        {COMPARE("f[b,n,D] f[b,n,D] f[b,n,D] f[b,n,D]"), .p = {1}},
        {COMPARE("f[4,70,33] f[4,70,33] f[4,70,33] f[4,70,33]"), .p = {1}},
        {COMPARE("f[4,70,64] f[4,129,64] f[4,129,64] f[4,70,64]")},
        {BAD("f32[2,3,4] f32[2,5,4] f32[2,5,4] f32[2,3,3] f32[2,3] f32[2,3,4]",
         "do not match")})},
    {LSI_OP_self_attention, attention_, SUM, .outputs = 2, CASES(
        {SHAPE("f32[2,3,24]", "f32[2,3,8] f32[2,4,3]"), .p = {0, 4}},
        {SHAPE("f32[5,3]", "f32[5,1] f32[1,5]"), .p = {1, 1}},
        {SHAPE("f32[0,3,12]", "f32[0,3,4] f32[0,2,3]"), .p = {1, 2}},
        {SHAPE("f32[2,0,12]", "f32[2,0,4] f32[2,2,0]"), .p = {0, 2}},
        {SHAPE("f32[2,3,0]", "f32[2,3,0] f32[2,2,3]"), .p = {0, 2}},
        {COMPARE("f[b,n,15]"), .p = {0, 1}},
        {COMPARE("f[b,n,24]"), .p = {1, 2}},
        {COMPARE("f[2,3,n,96]"), .p = {1, 2}},
        {COMPARE("f[2,70,198]"), .p = {1, 2}},
        {COMPARE("f[2,300,99]"), .p = {0, 3}},
        {COMPARE("f64[2,5,48]"), .p = {1, 2}},
        {GRADIENT("f[2,3,12]"), .p = {0, 2}},
        {GRADIENT("f[4,18]"), .p = {1, 3}},
        {BAD("f32[2,3,10]", "3 * 2 * d"), .p = {0, 2}},
        {BAD("f32[2,3,9]", "0 heads"), .p = {0, 0}},
        {BAD("f32[2,3,9]", "-1 heads"), .p = {0, -1}},
        {BAD("f32[12]", "[..., n,"), .p = {0, 2}},
        {BAD("f32[2,12]", "finite"), .p = {0, 2}, .f = {NAN}},
        {BAD("i32[2,12]", "int32"), .p = {0, 2}})},
    {LSI_OP_self_attention_grad, attention_grad_, SUM, NO_GRADIENT, CASES(
        {SHAPE("f32[2,3,24] f32[2,3,8]", "f32[2,3,24]"), .p = {0, 4}},
        {SHAPE("f32[2,0,24] f32[2,0,8]", "f32[2,0,24]"), .p = {1, 4}},
        {COMPARE("f[b,n,15] f[b,n,5]"), .p = {0, 1}},
        {COMPARE("f[b,n,24] f[b,n,8]"), .p = {1, 2}},
        {COMPARE("f[2,70,198] f[2,70,66]"), .p = {1, 2}},
        {COMPARE("f[2,300,99] f[2,300,33]"), .p = {0, 3}},
        {BAD("f32[2,12] f32[2,4] f32[2,2] f32[2,3]", "do not match"), .p = {0, 2}},
        {BAD("f32[2,12] f32[2,4] f32[2,3] f32[2,4]", "do not match"), .p = {0, 2}},
        {BAD("f32[2,12] f32[2,4] f32[2,2] f64[2,4]", "do not match"), .p = {0, 2}},
        {BAD("f32[2,10] f32[2,4] f32[2,2] f32[2,4]", "3 * 2 * d"), .p = {0, 2}})},
};
/* clang-format on */
const size_t op_count_product = LSI_COUNT_OF(op_entries_product);
