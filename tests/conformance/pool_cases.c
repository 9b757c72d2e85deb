/*
 * Cases of image pooling. p: window, strides, padding, relu; gradients: rows, columns of
 * the image.
 */
#include "op_cases.h"

static lsi_pool_attrs pool_attrs(const op_case *k, const int64_t *image)
{
    lsi_pool_attrs at;

    memset(&at, 0, sizeof at);
    for (int a = 0; a < 2; a++) {
        at.size[a] = (int)k->p[a];
        at.stride[a] = (int)(k->p[2 + a] == 0 ? k->p[a] : k->p[2 + a]);
        if (at.size[a] > 0 && at.stride[a] > 0) {
            at.pad[a] =
                lsi_windows(image[1 + a], at.size[a], at.stride[a], (ls_padding)k->p[4])
                    .pad;
        }
    }
    at.padding = (ls_padding)k->p[4];
    at.relu = k->p[5] != 0;
    memcpy(at.image, image, sizeof at.image);
    return at;
}

static ls_pool_options pool_options(const op_case *k)
{
    ls_pool_options o = LS_POOL_OPTIONS_INIT;

    for (int a = 0; a < 2; a++) {
        o.size[a] = (int)k->p[a];
        o.stride[a] = (int)k->p[2 + a];
    }
    o.padding = (ls_padding)k->p[4];
    o.relu = k->p[5] != 0;
    return o;
}

/* By the row where there is an image, so that the positions are compared, too. */
static void max_pool2d_(ls_context *c, const op_entry *e, const op_case *k,
                        ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const ls_pool_options o = pool_options(k);

    if (k->kind != OP_COMPARE && k->kind != OP_SHAPE) {
        out[0] = ls_max_pool2d(c, in[0], &o);
        return;
    }
    const lsi_pool_attrs at = pool_attrs(k, in[0]->dims);
    ls_op_apply(c, lsi_op_table[e->op], in, n, &at, sizeof at, out);
}

static void avg_pool2d_(ls_context *c, const op_entry *e, const op_case *k,
                        ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const ls_pool_options o = pool_options(k);

    (void)e;
    (void)n;
    out[0] = ls_avg_pool2d(c, in[0], &o);
}

/* Inputs x, g: pools x first, as a step does, and sends g back. */
static void max_pool2d_grad_(ls_context *c, const op_entry *e, const op_case *k,
                             ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const lsi_pool_attrs at = pool_attrs(k, in[0]->dims);
    ls_tensor *y[LSI_MAX_OUTPUTS] = {NULL};

    (void)n;
    ls_op_apply(c, &lsi_op_max_pool2d, in, 1, &at, sizeof at, y);
    ls_op_apply(c, lsi_op_table[e->op], (ls_tensor *[]){in[1], y[1]}, 2, &at, sizeof at,
                out);
}

/*
 * Inputs x, h: pools x first, then takes the elements of h at the positions of x's
 * maxima.
 */
static void max_pool2d_grad_grad_(ls_context *c, const op_entry *e, const op_case *k,
                                  ls_tensor *const *in, size_t n, ls_tensor **out)
{
    max_pool2d_grad_(c, e, k, in, n, out);
}

static void avg_pool2d_grad_(ls_context *c, const op_entry *e, const op_case *k,
                             ls_tensor *const *in, size_t n, ls_tensor **out)
{
    const int64_t image[4] = {in[0]->dims[0], k->p[6], k->p[7], in[0]->dims[3]};
    const lsi_pool_attrs at = pool_attrs(k, image);

    ls_op_apply(c, lsi_op_table[e->op], in, n, &at, sizeof at, out);
}

/* clang-format off */
const op_entry op_entries_pool[] = {
    {LSI_OP_max_pool2d, max_pool2d_, EXACT, .outputs = 2, CASES(
        {SHAPE("f32[2,8,9,3]", "f32[2,4,4,3] u8[2,4,4,3]"), .p = {2, 2}},
        {SHAPE("f32[2,8,9,3]", "f32[2,4,5,3] u8[2,4,5,3]"), .p = {2, 2, 0, 0, LS_SAME}},
        {SHAPE("f32[2,8,9,3]", "f32[2,6,7,3] u8[2,6,7,3]"), .p = {3, 3, 1, 1}},
        {SHAPE("f32[0,8,9,3]", "f32[0,4,4,3] u8[0,4,4,3]"), .p = {2, 2}},
        {COMPARE("f[n,6,7,c]"), .p = {2, 2}},
        {COMPARE("f[n,6,7,c]"), .p = {2, 2, 0, 0, 0, 1}},
        {COMPARE("f[n,7,5,c]"), .p = {3, 2, 2, 1, LS_SAME}},
        {COMPARE("f[n,7,5,c]"), .p = {3, 3, 1, 1, LS_SAME, 1}},
        {COMPARE("f[n,H,W,c]"), .p = {1, 1}},
        {COMPARE("f[n,H,W,c]"), .p = {2, 2, 2, 2, LS_SAME}},
        {COMPARE("f[5,26,26,32]"), .p = {2, 2, 0, 0, 0, 1}},
        {COMPARE("f[5,25,27,33]"), .p = {2, 2}},
        {COMPARE("f[n,6,7,c]{#-2,2}"), .p = {2, 2}},
        {COMPARE("f[n,6,7,c]{#-2,2}"), .p = {2, 2, 0, 0, 0, 1}},
        {COMPARE("f[n,7,5,c]{#-2,2}"), .p = {3, 3, 1, 1, LS_SAME}},
        {COMPARE("f64[2,6,6,3]"), .p = {2, 2}}, {COMPARE("f[1,4,18,1]{!}"), .p = {2, 2}},
        {GRADIENT("f[1,4,5,2]"), .p = {2, 2}},
        {GRADIENT("f[1,4,5,2]"), .p = {2, 2, 0, 0, 0, 1}},
        {GRADIENT("f[1,5,4,2]"), .p = {3, 3, 1, 1, LS_SAME}},
        {BAD("f32[8,9,3]", "image"), .p = {2, 2}},
        {BAD("f32[2,8,9,3]", "window"), .p = {0, 2}},
        {BAD("f32[2,8,9,3]", "window"), .p = {-2, 2}},
        {BAD("f32[2,1,1,3]", "smaller"), .p = {3, 3, 1, 1}},
        {BAD("i32[2,8,9,3]", "int32"), .p = {2, 2}},
        {BAD("f32[2,8,9,3]", "padding"), .p = {2, 2, 0, 0, 9}},
        {BAD("f32[1,40,40,1]", "window"), .p = {20, 20}, .code = LS_UNIMPLEMENTED})},
    {LSI_OP_max_pool2d_grad, max_pool2d_grad_, SUM, CASES(
        {SHAPE("f32[2,8,9,3] f32[2,4,4,3]", "f32[2,8,9,3]"), .p = {2, 2}},
        {COMPARE("f[n,6,7,c] f[n,3,3,c]"), .p = {2, 2}},
        {COMPARE("f[n,6,7,c] f[n,3,3,c]"), .p = {2, 2, 0, 0, 0, 1}},
        {COMPARE("f[n,7,5,c] f[n,4,5,c]"), .p = {3, 2, 2, 1, LS_SAME}},
        {COMPARE("f[n,7,5,c] f[n,7,5,c]"), .p = {3, 3, 1, 1, LS_SAME, 1}},
        {COMPARE("f[5,26,26,32] f[5,13,13,32]"), .p = {2, 2, 0, 0, 0, 1}},
        {GRADIENT("f[1,4,5,2] f[1,2,2,2]"), .p = {2, 2}},
        {GRADIENT("f[1,4,4,1] f[1,4,4,1]"), .p = {3, 3, 1, 1, LS_SAME}},
        {BAD("f32[2,8,9,3] f32[2,4,5,3]", "pooling"), .p = {2, 2}})},
    {LSI_OP_max_pool2d_grad_grad, max_pool2d_grad_grad_, EXACT, CASES(
        {SHAPE("f32[2,8,9,3] f32[2,8,9,3]", "f32[2,4,4,3]"), .p = {2, 2}},
        {COMPARE("f[n,6,7,c] f[n,6,7,c]"), .p = {2, 2}},
        {COMPARE("f[n,7,5,c] f[n,7,5,c]"), .p = {3, 3, 1, 1, LS_SAME, 1}},
        {COMPARE("f[5,26,26,32] f[5,26,26,32]"), .p = {2, 2}},
        {GRADIENT("f[1,4,5,2] f[1,4,5,2]"), .p = {2, 2}},
        {BAD("f32[2,8,9,3] f32[2,4,9,3]", "pooling"), .p = {2, 2}})},
    {LSI_OP_avg_pool2d, avg_pool2d_, SUM, CASES(
        {SHAPE("f32[2,8,9,3]", "f32[2,4,4,3]"), .p = {2, 2}},
        {SHAPE("f32[2,8,9,3]", "f32[2,4,5,3]"), .p = {2, 2, 0, 0, LS_SAME}},
        {COMPARE("f[n,6,7,c]"), .p = {2, 2}},
        {COMPARE("f[n,7,5,c]"), .p = {3, 2, 2, 1, LS_SAME}},
        {COMPARE("f[n,H,W,c]"), .p = {2, 2, 1, 1, LS_SAME}},
        {COMPARE("f[5,26,26,33]"), .p = {2, 2}},
        {COMPARE("f64[2,6,6,3]"), .p = {2, 2}},
        {GRADIENT("f[1,4,5,2]"), .p = {2, 2}},
        {GRADIENT("f[1,5,4,2]"), .p = {3, 3, 1, 1, LS_SAME}},
        {BAD("f32[8,9,3]", "image"), .p = {2, 2}},
        {BAD("f32[2,8,9,3]", "window"), .p = {0, 2}},
        {BAD("f32[2,8,9,3]", "relu"), .p = {2, 2, 0, 0, 0, 1}})},
    {LSI_OP_avg_pool2d_grad, avg_pool2d_grad_, SUM, CASES(
        {SHAPE("f32[2,4,4,3]", "f32[2,8,9,3]"), .p = {2, 2, 0, 0, 0, 0, 8, 9}},
        {COMPARE("f[n,3,3,c]"), .p = {2, 2, 0, 0, 0, 0, 6, 7}},
        {COMPARE("f[n,4,5,c]"), .p = {3, 2, 2, 1, LS_SAME, 0, 7, 5}},
        {COMPARE("f[5,13,13,33]"), .p = {2, 2, 0, 0, 0, 0, 26, 26}},
        {GRADIENT("f[1,2,2,2]"), .p = {2, 2, 0, 0, 0, 0, 4, 5}},
        {GRADIENT("f[1,5,4,2]"), .p = {3, 3, 1, 1, LS_SAME, 0, 5, 4}},
        {BAD("f32[2,4,5,3]", "pooling"), .p = {2, 2, 0, 0, 0, 0, 8, 9}})},
};
/* clang-format on */
const size_t op_count_pool = LSI_COUNT_OF(op_entries_pool);
