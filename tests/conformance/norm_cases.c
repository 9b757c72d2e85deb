/* Cases of softmax, normalisation and losses. f: epsilon. */
#include "op_cases.h"

OP_APPLY_TWO(sigmoid_cross_entropy)
OP_APPLY_TWO(mean_squared_error)

static void softmax_(ls_context *c, const op_entry *e, const op_case *k,
                     ls_tensor *const *in, size_t n, ls_tensor **out)
{
    (void)k;
    (void)n;
    out[0] = e->op == LSI_OP_softmax ? ls_softmax(c, in[0]) : ls_log_softmax(c, in[0]);
}

/* Inputs g, x: the row's own second input is the softmax of x. */
static void softmax_grad_(ls_context *c, const op_entry *e, const op_case *k,
                          ls_tensor *const *in, size_t n, ls_tensor **out)
{
    ls_tensor *y[2] = {in[0], in[1]};

    if (k->kind != OP_BAD) {
        y[1] = e->op == LSI_OP_softmax_grad ? ls_softmax(c, in[1])
                                            : ls_log_softmax(c, in[1]);
    }
    ls_op_apply(c, lsi_op_table[e->op], y, n, NULL, 0, out);
}

static lsi_scalars_attrs epsilon_of(const op_case *k)
{
    lsi_scalars_attrs at;

    memset(&at, 0, sizeof at);
    at.a = k->f[0] == 0 ? 1e-3 : k->f[0];
    return at;
}

/* By the row, so that the moments are compared, too. */
static void norm_(ls_context *c, const op_entry *e, const op_case *k,
                  ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const lsi_scalars_attrs at = epsilon_of(k);

    ls_op_apply(c, lsi_op_table[e->op], in, n, &at, sizeof at, out);
}

/* Inputs g, x, gamma: the moments are computed first, as in a step. */
static void norm_grad_(ls_context *c, const op_entry *e, const op_case *k,
                       ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const lsi_scalars_attrs at = epsilon_of(k);
    const bool batch = e->op == LSI_OP_batch_norm_grad;
    ls_tensor *y[LSI_MAX_OUTPUTS] = {NULL};

    if (n == 5) {
        ls_op_apply(c, lsi_op_table[e->op], in, n, NULL, 0, out);
        return;
    }
    ls_op_apply(c, batch ? &lsi_op_batch_norm : &lsi_op_layer_norm,
                (ls_tensor *[]){in[1], in[2], in[2]}, 3, &at, sizeof at, y);
    ls_op_apply(c, lsi_op_table[e->op],
                (ls_tensor *[]){in[0], in[1], in[2], y[1], y[batch ? 3 : 2]}, 5, NULL, 0,
                out);
}

/* The losses over classes, by the row: the probabilities are compared, too. */
static void cross_entropy_(ls_context *c, const op_entry *e, const op_case *k,
                           ls_tensor *const *in, size_t n, ls_tensor **out)
{
    ls_tensor *given[2] = {in[0], n > 1 ? in[1] : NULL};

    if (e->op == LSI_OP_softmax_cross_entropy && k->kind != OP_BAD &&
        k->kind != OP_SHAPE) {
        given[1] = ls_softmax(c, in[1]); // a distribution: its gradient needs one
    }
    ls_op_apply(c, lsi_op_table[e->op], given, 2, NULL, 0, out);
}

/* Inputs g, logits, labels; the row takes the probabilities. */
static void cross_entropy_grad_(ls_context *c, const op_entry *e, const op_case *k,
                                ls_tensor *const *in, size_t n, ls_tensor **out)
{
    ls_tensor *given[3] = {in[0], in[1], n > 2 ? in[2] : NULL};

    if (k->kind != OP_BAD) {
        given[1] = ls_softmax(c, in[1]);
    }
    ls_op_apply(c, lsi_op_table[e->op], given, 3, NULL, 0, out);
}

/* clang-format off */
#define LAST_AXIS                                                                        \
    {SHAPE("f32[2,3]", "f32[2,3]")}, {SHAPE("f64[4]", "f64[4]")},                        \
    {SHAPE("f32[0,3]", "f32[0,3]")}, {COMPARE("f[n,m]{-9,9}")},                          \
    {COMPARE("f[n]{-90,90}")},                                                           \
    {COMPARE("f[k,n,m]")}, {COMPARE("f[130,257]")}, {COMPARE("f[3000,10]")},             \
    {COMPARE("f[2,9000]")}, {COMPARE("f64[n,m]")}, {GRADIENT("f[2,4]")},                 \
    {GRADIENT("f[2,2,3]")}, {BAD("f32[]", "axis")}, {BAD("i32[2]", "int32")},            \
    {BAD("null", "NULL")}
#define LAST_AXIS_GRAD                                                                   \
    {SHAPE("f32[2,3] f32[2,3]", "f32[2,3]")}, {COMPARE("f[n,m] f[n,m]")},                \
    {COMPARE("f[k,n,m] f[k,n,m]")}, {COMPARE("f[130,257] f[130,257]")},                  \
    {COMPARE("f[3000,10] f[3000,10]")}, {GRADIENT("f[2,4] f[2,4]")},                     \
    {BAD("f32[2,3] f32[2,2]", "shape")}, {BAD("f32[2] f64[2]", "dtype")}

const op_entry op_entries_norm[] = {
    {LSI_OP_softmax, softmax_, ELEMENT, CASES(LAST_AXIS)},
    {LSI_OP_log_softmax, softmax_, SUM, CASES(LAST_AXIS)},
    {LSI_OP_softmax_grad, softmax_grad_, SUM, CASES(LAST_AXIS_GRAD)},
    {LSI_OP_log_softmax_grad, softmax_grad_, SUM, CASES(LAST_AXIS_GRAD)},
    {LSI_OP_layer_norm, norm_, SUM, .outputs = 3, .differentiated = 3, CASES(
        {SHAPE("f32[2,5,3] f32[3] f32[3]", "f32[2,5,3] f32[2,5] f32[2,5]")},
        {SHAPE("f32[3] f32[3] f32[3]", "f32[3] f32[] f32[]")},
        {SHAPE("f32[0,3] f32[3] f32[3]", "f32[0,3] f32[0] f32[0]")},
        {COMPARE("f[n,M] f[M] f[M]")}, {COMPARE("f[k,n,M] f[M] f[M]")},
        {COMPARE("f[300,129] f[129] f[129]")}, {COMPARE("f[64,768] f[768] f[768]")},
        {COMPARE("f64[n,M] f64[M] f64[M]")},
        {GRADIENT("f[3,4] f[4] f[4]")}, {GRADIENT("f[2,2,3] f[3] f[3]")},
        {BAD("f32[2,3] f32[2] f32[3]", "gamma")}, {BAD("f32[2,3] f32[3] f32[2]", "beta")},
        {BAD("i32[2,3] i32[3] i32[3]", "int32")}, {BAD("f32[] f32[1] f32[1]", "axes")},
        {BAD("f32[2,3] f32[3] f32[3]", "epsilon"), .f = {-1}})},
    {LSI_OP_layer_norm_grad, norm_grad_, CANCEL, .outputs = 3, .differentiated = 3, CASES(
        {SHAPE("f32[2,3] f32[2,3] f32[3]", "f32[2,3] f32[3] f32[3]")},
        {COMPARE("f[n,M] f[n,M] f[M]"), .f = {0.5}},
        {COMPARE("f[k,n,M] f[k,n,M] f[M]"), .f = {0.5}},
        {COMPARE("f[300,129] f[300,129] f[129]")},
        {COMPARE("f[64,768] f[64,768] f[768]")},
        {GRADIENT("f[3,4] f[3,4] f[4]")},
        {BAD("f32[2,3] f32[2,3] f32[3] f32[3] f32[2]", "does not match")})},
    {LSI_OP_batch_norm, norm_, SUM, .outputs = 4, .differentiated = 4, CASES(
        {SHAPE("f32[2,5,3] f32[3] f32[3]", "f32[2,5,3] f32[3] f32[3] f32[3]")},
        {COMPARE("f[N,m] f[m] f[m]")}, {COMPARE("f[K,N,2,m] f[m] f[m]")},
        {COMPARE("f[300,129] f[129] f[129]")}, {COMPARE("f[8,14,14,32] f[32] f[32]")},
        {COMPARE("f64[N,m] f64[m] f64[m]")},
        {GRADIENT("f[4,3] f[3] f[3]")}, {GRADIENT("f[2,2,2,2] f[2] f[2]")},
        {BAD("f32[2,3] f32[2] f32[3]", "gamma")}, {BAD("f32[3] f32[3] f32[3]", "axes")},
        {BAD("f32[2,3] f32[3] f32[3]", "epsilon"), .f = {-1}})},
    {LSI_OP_batch_norm_grad, norm_grad_, CANCEL, .outputs = 3, .differentiated = 3, CASES(
        {SHAPE("f32[2,3] f32[2,3] f32[3]", "f32[2,3] f32[3] f32[3]")},
        {COMPARE("f[N,m] f[N,m] f[m]"), .f = {0.5}},
        {COMPARE("f[K,N,2,m] f[K,N,2,m] f[m]"), .f = {0.5}},
        {COMPARE("f[300,129] f[300,129] f[129]")},
        {COMPARE("f[8,14,14,32] f[8,14,14,32] f[32]")},
        {GRADIENT("f[4,3] f[4,3] f[3]")},
        {BAD("f32[2,3] f32[2,3] f32[3] f32[2] f32[3]", "does not match")})},
    {LSI_OP_batch_norm_inference, norm_, SUM, CASES(
        {SHAPE("f32[2,3] f32[3] f32[3] f32[3] f32[3]{0.5,2}", "f32[2,3]")},
        {SHAPE("f32[0,3] f32[3] f32[3] f32[3] f32[3]{0.5,2}", "f32[0,3]")},
        {COMPARE("f[n,m] f[m] f[m] f[m] f[m]{0.5,2}")},
        {COMPARE("f[8,14,14,33] f[33] f[33] f[33] f[33]{0.5,2}")},
        {GRADIENT("f[4,3] f[3] f[3] f[3] f[3]{0.5,2}")},
        {BAD("f32[2,3] f32[3] f32[3] f32[3] f32[2]", "variance")},
        {BAD("f32[2,3] f32[3] f32[3] f64[3] f32[3]", "mean")})},
    {LSI_OP_sparse_softmax_cross_entropy, cross_entropy_, SUM, .outputs = 2,
     .differentiated = 2, CASES(
        {SHAPE("f32[2,3] i32[2]{0,3}", "f32[2] f32[2,3]")},
        {SHAPE("f32[2,4,3] i64[2,4]{0,3}", "f32[2,4] f32[2,4,3]")},
        {SHAPE("f32[0,3] i64[0]", "f32[0] f32[0,3]")},
        {COMPARE("f[n,M] i32[n]{0,M}")}, {COMPARE("f[k,n,M]{-9,9} i64[k,n]{0,M}")},
        {COMPARE("f[3000,10] i64[3000]{0,10}")}, {COMPARE("f[40,1001] i32[40]{0,1001}")},
        {COMPARE("f64[n,M] i32[n]{0,M}")},
        {GRADIENT("f[3,4] i32[3]{0,4}")}, {GRADIENT("f[2,2,3] i64[2,2]{0,3}")},
        {BAD("f32[2,3] i32[3]", "labels")}, {BAD("f32[2,3] f32[2]", "labels")},
        {BAD("f32[2,3] i32[2]{3,5}", "label")}, {BAD("f32[2,3] i32[2]{-5,-1}", "label")},
        {BAD("f32[] i32[]", "axis")}, {BAD("f32[2,3] null", "NULL")})},
    {LSI_OP_softmax_cross_entropy, cross_entropy_, SUM, .outputs = 2, .differentiated = 2,
     CASES(
        {SHAPE("f32[2,3] f32[2,3]", "f32[2] f32[2,3]")},
        {COMPARE("f[n,M] f[n,M]")}, {COMPARE("f[k,n,M]{-9,9} f[k,n,M]")},
        {COMPARE("f[3000,10] f[3000,10]")}, {COMPARE("f[40,1001] f[40,1001]")},
        {GRADIENT("f[3,4] f[3,4]")},
        {BAD("f32[2,3] f32[2,2]", "labels")}, {BAD("f32[2,3] f64[2,3]", "labels")})},
    {LSI_OP_softmax_cross_entropy_grad, cross_entropy_grad_, SUM, CASES(
        {SHAPE("f32[2] f32[2,3] i32[2]{0,3}", "f32[2,3]")},
        {COMPARE("f[n] f[n,M] i32[n]{0,M}")},
        {COMPARE("f[3000] f[3000,10] i64[3000]{0,10}")},
        {GRADIENT("f[3] f[3,4] i32[3]{0,4}")},
        {BAD("f32[3] f32[2,3] i32[2]{0,3}", "gradient")},
        {BAD("f32[2] f32[2,3] i32[3]{0,3}", "labels")})},
    {LSI_OP_sigmoid_cross_entropy, sigmoid_cross_entropy_, ELEMENT, CASES(
        {SHAPE("f32[2,3] f32[2,3]", "f32[2,3]")}, {COMPARE("f[n,m]{-9,9} f[n,m]{0,1}")},
        {COMPARE("f[70001]{-9,9} f[70001]{0,1}")}, {GRADIENT("f[3,4] f[3,4]{0,1}")},
        {BAD("f32[2,3] f32[3]", "labels")}, {BAD("i32[2] i32[2]", "int32")},
        {BAD("f32[2] null", "NULL")})},
    {LSI_OP_mean_squared_error, mean_squared_error_, SUM, CASES(
        {SHAPE("f32[2,3] f32[2,3]", "f32[2]")}, {SHAPE("f32[4] f32[4]", "f32[]")},
        {COMPARE("f[n,M] f[n,M]")}, {COMPARE("f[k,n,M] f[k,n,M]")},
        {COMPARE("f[300,257] f[300,257]")}, {GRADIENT("f[3,4] f[3,4]")},
        {BAD("f32[2,3] f32[3]", "target")}, {BAD("f32[] f32[]", "axis")})},
};
/* clang-format on */
const size_t op_count_norm = LSI_COUNT_OF(op_entries_norm);
