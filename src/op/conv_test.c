/* Convolutions: values, gradients, padding, arguments. */
#include "ls_row_check.h"

#include "lockstep/tape.h"

static ls_tensor *random_of(ls_context *c, ls_shape shape)
{
    uint64_t seed = 5 + (uint64_t)shape.dims[0] * 16 + (uint64_t)shape.dims[3];

    return lst_random_f64(c, shape, -1, 1, &seed);
}

struct conv_case {
    int64_t h, w, c, kh, kw, o;
    ls_conv_options opts;
};

#define CASE(h, w, c, kh, kw, o, ...)                                                    \
    {                                                                                    \
        h, w, c, kh, kw, o,                                                              \
        {                                                                                \
            sizeof(ls_conv_options), __VA_ARGS__                                         \
        }                                                                                \
    }

static const struct conv_case geometries[] = {
    CASE(5, 6, 3, 3, 3, 4, {1, 1}, {1, 1}, LS_VALID, LS_LINEAR),
    CASE(5, 6, 3, 3, 3, 4, {1, 1}, {1, 1}, LS_SAME, LS_LINEAR),
    CASE(7, 6, 2, 3, 2, 3, {2, 3}, {1, 1}, LS_SAME, LS_TANH),
    CASE(7, 6, 2, 3, 2, 3, {2, 3}, {1, 1}, LS_VALID, LS_SIGMOID),
    CASE(7, 8, 2, 2, 3, 2, {1, 1}, {3, 2}, LS_SAME, LS_LINEAR),
    CASE(7, 8, 2, 2, 3, 2, {2, 1}, {3, 2}, LS_VALID, LS_RELU),
    CASE(3, 3, 1, 1, 1, 1, {3, 3}, {1, 1}, LS_SAME,
         LS_LINEAR), // stride beyond the filter
    CASE(1, 1, 1, 3, 3, 2, {1, 1}, {1, 1}, LS_SAME, LS_LINEAR),
    CASE(4, 4, 2, 4, 4, 2, {0, 0}, {0, 0}, LS_VALID, LS_LINEAR),
};

/* Padding before an axis by TensorFlow's words: out = ceil(in / stride), the rest after.
 */
static int64_t before(int64_t in, int64_t k, int stride, int dilation)
{
    const int64_t out = (int64_t)ceil((double)in / stride);
    const int64_t total = (out - 1) * stride + (k - 1) * dilation + 1 - in;

    return total > 0 ? total / 2 : 0;
}

static double activate(ls_activation a, double v)
{
    return a == LS_RELU      ? fmax(v, 0)
           : a == LS_SIGMOID ? 1 / (1 + exp(-v))
           : a == LS_TANH    ? tanh(v)
                             : v;
}

/*
 * The answer another way: every pixel is thrown into every window it meets. `y` is the
 * result to compare; depthwise filters have `m` results a channel.
 */
static void compare_result(const ls_tensor *x, const ls_tensor *w, const ls_tensor *b,
                           const ls_tensor *y, const ls_conv_options *o, bool depthwise)
{
    const int64_t *xd = x->dims, *wd = w->dims, *yd = y->dims;
    const int sy = LSI_MAX(o->stride[0], 1), sx = LSI_MAX(o->stride[1], 1);
    const int dy = LSI_MAX(o->dilation[0], 1), dx = LSI_MAX(o->dilation[1], 1);
    const bool same = o->padding == LS_SAME;
    const int64_t ph = same ? before(xd[1], wd[0], sy, dy) : 0;
    const int64_t pw = same ? before(xd[2], wd[1], sx, dx) : 0;
    double *want = lsi_alloc((size_t)y->count, sizeof *want);

    for (int64_t e = 0; e < x->count * wd[0] * wd[1] * wd[3]; e++) {
        const int64_t q = e % wd[3], kx = e / wd[3] % wd[1],
                      ky = e / (wd[3] * wd[1]) % wd[0];
        const int64_t p = e / (wd[3] * wd[1] * wd[0]); // pixel and channel
        const int64_t ch = p % xd[3], ix = p / xd[3] % xd[2];
        const int64_t iy = p / (xd[3] * xd[2]) % xd[1], n = p / (xd[3] * xd[2] * xd[1]);
        const int64_t ty = iy + ph - ky * dy;
        const int64_t tx = ix + pw - kx * dx;
        const int64_t out = depthwise ? ch * wd[3] + q : q;

        if (ty >= 0 && tx >= 0 && ty % sy == 0 && tx % sx == 0 && ty / sy < yd[1] &&
            tx / sx < yd[2]) {
            want[((n * yd[1] + ty / sy) * yd[2] + tx / sx) * yd[3] + out] +=
                lst_at(x, p) * lst_at(w, ((ky * wd[1] + kx) * wd[2] + ch) * wd[3] + q);
        }
    }
    for (int64_t e = 0; e < y->count; e++) {
        const double v = want[e] + (b != NULL ? lst_at(b, e % yd[3]) : 0);

        LST_CHECK(lst_near(lst_at(y, e), activate(o->activation, v), 1e-12, 1e-12));
    }
    lsi_free(want);
}

static void compare(const ls_tensor *x, const ls_tensor *w, const ls_tensor *b,
                    const ls_tensor *y, const ls_conv_options *o, bool depthwise)
{
    LST_CHECK(y != NULL);
    if (y != NULL) {
        compare_result(x, w, b, y, o, depthwise);
    }
}

LST_TEST(every_pixel_reaches_the_windows_it_lies_in)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    for (size_t i = 0; i < LSI_COUNT_OF(geometries); i++) {
        const struct conv_case *t = &geometries[i];
        ls_tensor *x = random_of(c, LS_SHAPE(2, t->h, t->w, t->c));
        ls_tensor *w = random_of(c, LS_SHAPE(t->kh, t->kw, t->c, t->o));
        ls_tensor *b = lst_random_f64(c, LS_SHAPE(t->o), -1, 1, &(uint64_t){7});
        ls_tensor *db = lst_random_f64(c, LS_SHAPE(t->o * t->c), -1, 1, &(uint64_t){8});

        compare(x, w, NULL, ls_conv2d(c, x, w, NULL, &t->opts), &t->opts, false);
        compare(x, w, b, ls_conv2d(c, x, w, b, &t->opts), &t->opts, false);
        compare(x, w, NULL, ls_depthwise_conv2d(c, x, w, NULL, &t->opts), &t->opts, true);
        compare(x, w, db, ls_depthwise_conv2d(c, x, w, db, &t->opts), &t->opts, true);
    }
    lst_close(c, rt);
}

LST_TEST(same_padding_puts_the_smaller_half_before)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_conv_options o = LS_CONV_OPTIONS_INIT;
    ls_tensor *x = F32(c, LS_SHAPE(1, 3, 3, 1), 1, 2, 3, 4, 5, 6, 7, 8, 9);
    ls_tensor *w = F32(c, LS_SHAPE(2, 2, 1, 1), 1, 1, 1, 1);

    LST_CHECK(lst_holds(ls_conv2d(c, x, w, NULL, NULL), LS_SHAPE(1, 2, 2, 1),
                        D(12, 16, 24, 28), 0));
    o.padding = LS_SAME;
    LST_CHECK(lst_holds(ls_conv2d(c, x, w, NULL, &o), LS_SHAPE(1, 3, 3, 1),
                        D(12, 16, 9, 24, 28, 15, 15, 17, 9), 0));
    o.stride[0] = 2;
    o.stride[1] = 2;
    LST_CHECK(lst_holds(ls_conv2d(c, x, w, NULL, &o), LS_SHAPE(1, 2, 2, 1),
                        D(12, 9, 15, 9), 0));
    lst_close(c, rt);
}

LST_TEST(halves_and_composed_activations_are_done_too)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_conv_options o = LS_CONV_OPTIONS_INIT;
    ls_tensor *x = F32(c, LS_SHAPE(1, 1, 2, 1), 1.5f, -2),
              *w = F32(c, LS_SHAPE(1, 1, 1, 1), 2);
    ls_tensor *h =
        ls_conv2d(c, ls_cast(c, x, LS_BF16), ls_cast(c, w, LS_BF16), NULL, NULL);

    LST_CHECK(h != NULL && h->dtype == LS_BF16 && lst_at(h, 0) == 3 &&
              lst_at(h, 1) == -4);
    o.activation = LS_SILU;
    LST_CHECK(lst_holds(ls_conv2d(c, x, w, NULL, &o), LS_SHAPE(1, 1, 2, 1),
                        D(3 / (1 + exp(-3)), -4 / (1 + exp(4))), 1e-6));
    o.activation = LS_GELU;
    LST_CHECK(lst_holds(ls_depthwise_conv2d(c, x, w, NULL, &o), LS_SHAPE(1, 1, 2, 1),
                        D(1.5 * erfc(-3 / sqrt(2)), -2 * erfc(4 / sqrt(2))), 1e-6));
    lst_close(c, rt);
}

LST_TEST(an_empty_batch_gives_an_empty_result_and_zero_gradients)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = ZEROS(c, LS_SHAPE(0, 4, 4, 2)), *w = ZEROS(c, LS_SHAPE(2, 2, 2, 1));
    ls_tensor *y = ls_conv2d(c, x, w, NULL, NULL);
    lsi_conv_attrs at = {{1, 1}, {1, 1}, LS_VALID, LS_LINEAR, {0, 0}, {2, 2, 2, 1}};

    LST_CHECK(lst_holds(y, LS_SHAPE(0, 3, 3, 1), NULL, 0));
    LST_CHECK(lst_holds(lsi_op2(c, &lsi_op_conv2d_filter_grad, x, y, &at, sizeof at),
                        LS_SHAPE(2, 2, 2, 1), D(0, 0, 0, 0, 0, 0, 0, 0), 0));
    // An image one row short of the filter gives nothing, as in TensorFlow.
    LST_CHECK(lst_holds(ls_conv2d(c, ZEROS(c, LS_SHAPE(1, 1, 4, 2)), w, NULL, NULL),
                        LS_SHAPE(1, 0, 3, 1), NULL, 0));
    // No channels: sums of nothing.
    LST_CHECK(lst_holds(ls_conv2d(c, ZEROS(c, LS_SHAPE(1, 1, 1, 0)),
                                  ZEROS(c, LS_SHAPE(1, 1, 0, 2)), NULL, NULL),
                        LS_SHAPE(1, 1, 1, 2), D(0, 0), 0));
    lst_close(c, rt);
}

/* The row that `call` notes, and the two gradient rows of its family. */
static void check_family(ls_context *c, const lst_call *call, const ls_op *input,
                         const ls_op *filter)
{
    ls_tensor *x = call->in[0], *w = call->in[1];
    ls_tensor *y;
    lsi_conv_attrs at;
    lst_call grad;

    LST_CHECK(call->nin == 3);
    lst_check_row(c, call, 1);
    y = ls_op_apply1(c, call->op, call->in, 2, call->attrs, call->attrs_size);
    memcpy(&at, call->attrs, sizeof at);
    memcpy(at.image, x->dims, sizeof at.image);
    lst_watch(c, y, &grad);
    (void)lsi_op2(c, input, y, w, &at, sizeof at);
    lst_check_row(c, &grad, 1);
    memcpy(at.image, w->dims, sizeof at.image);
    lst_watch(c, y, &grad);
    (void)lsi_op2(c, filter, x, y, &at, sizeof at);
    lst_check_row(c, &grad, 1);
}

LST_TEST(gradients_of_convolutions_agree_with_differences_to_second_order)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    for (size_t i = 0; i < LSI_COUNT_OF(geometries); i++) {
        const struct conv_case *t = &geometries[i];
        ls_tensor *x = random_of(c, LS_SHAPE(1, t->h, t->w, t->c));
        ls_tensor *w = random_of(c, LS_SHAPE(t->kh, t->kw, t->c, t->o));
        ls_tensor *b = lst_random_f64(c, LS_SHAPE(t->o), -1, 1, &(uint64_t){7});
        ls_tensor *db = lst_random_f64(c, LS_SHAPE(t->o * t->c), -1, 1, &(uint64_t){8});
        lst_call call;

        lst_watch(c, x, &call);
        (void)ls_conv2d(c, x, w, b, &t->opts);
        check_family(c, &call, &lsi_op_conv2d_input_grad, &lsi_op_conv2d_filter_grad);
        lst_watch(c, x, &call);
        (void)ls_depthwise_conv2d(c, x, w, db, &t->opts);
        check_family(c, &call, &lsi_op_depthwise_conv2d_input_grad,
                     &lsi_op_depthwise_conv2d_filter_grad);
    }
    lst_close(c, rt);
}

LST_TEST(wrong_images_filters_and_options_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_conv_options o = LS_CONV_OPTIONS_INIT;
    lsi_conv_attrs at = {{1, 1}, {1, 1}, LS_VALID, LS_LINEAR, {0, 0}, {1, 5, 5, 1}};

#define IMAGE ZEROS(c, LS_SHAPE(1, 5, 5, 3))
#define FILTER ZEROS(c, LS_SHAPE(3, 3, 3, 2))
    (void)ls_conv2d(c, IMAGE, ZEROS(c, LS_SHAPE(3, 3, 4, 2)), NULL, NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "conv2d: image (1, 5, 5, 3) and filter (3, 3, 4, 2): the image has 3 "
                   "channels");
    (void)ls_depthwise_conv2d(c, IMAGE, ZEROS(c, LS_SHAPE(3, 3, 4, 2)), NULL, NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "depthwise_conv2d: image (1, 5, 5, 3)");
    (void)ls_conv2d(c, ZEROS(c, LS_SHAPE(5, 5, 3)), FILTER, NULL, NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "image (5, 5, 3) and filter");
    (void)ls_conv2d(c, ZEROS(c, LS_SHAPE(1, 1, 5, 3)), FILTER, NULL, NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "the filter reaches over 3 rows, the image has 1");
    (void)ls_conv2d(c, IMAGE, ZEROS(c, LS_SHAPE(3, 0, 3, 2)), NULL, NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "is empty or too large");
    (void)ls_conv2d(c, IMAGE, FILTER, ZEROS(c, LS_SHAPE(3)), NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "each of the 2 results");
    (void)ls_depthwise_conv2d(c, IMAGE, FILTER, ZEROS(c, LS_SHAPE(2)), NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "each of the 6 results");
    (void)ls_conv2d(c, IMAGE, (ls_constant)(c, LS_F64, LS_SHAPE(3, 3, 3, 2), NULL), NULL,
                    NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "the dtypes differ");
    (void)ls_conv2d(c, (ls_constant)(c, LS_I32, LS_SHAPE(1, 1, 1, 1), NULL),
                    (ls_constant)(c, LS_I32, LS_SHAPE(1, 1, 1, 1), NULL), NULL, NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "needs a floating dtype");
    o.stride[1] = -1;
    (void)ls_conv2d(c, IMAGE, FILTER, NULL, &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "strides (1, -1) and dilations (1, 1)");
    o = (ls_conv_options)LS_CONV_OPTIONS_INIT;
    o.dilation[0] = -2;
    (void)ls_conv2d(c, IMAGE, FILTER, NULL, &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "dilations (-2, 1)");
    o.dilation[0] = 2147483647;
    (void)ls_conv2d(c, IMAGE, FILTER, NULL, &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "too large");
    o = (ls_conv_options)LS_CONV_OPTIONS_INIT;
    o.padding = (ls_padding)9;
    (void)ls_conv2d(c, IMAGE, FILTER, NULL, &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "padding 9 does not exist");
    o = (ls_conv_options)LS_CONV_OPTIONS_INIT;
    o.activation = (ls_activation)9;
    (void)ls_conv2d(c, IMAGE, FILTER, NULL, &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "activation 9 does not exist");
    o = (ls_conv_options)LS_CONV_OPTIONS_INIT;
    o.struct_size = 0;
    (void)ls_conv2d(c, IMAGE, FILTER, NULL, &o);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "start them from LS_CONV_OPTIONS_INIT");
    (void)lsi_op2(c, &lsi_op_conv2d_input_grad, ZEROS(c, LS_SHAPE(1, 4, 3, 2)),
                  ZEROS(c, LS_SHAPE(3, 3, 1, 2)), &at, sizeof at);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "give (1, 3, 3, 2), but the gradient is float32 (1, 4, 3, 2)");
    lst_close(c, rt);
}

/* The step: convolutions and their gradients with filters spread by `dilation`. */
static void convolve(ls_context *c, int dilation)
{
    ls_conv_options o = LS_CONV_OPTIONS_INIT;
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *x = ZEROS(c, LS_SHAPE(1, 4, 4, 8)), *w = ZEROS(c, LS_SHAPE(3, 3, 8, 8));
    ls_tensor *d = ZEROS(c, LS_SHAPE(3, 3, 8, 1)), *of[3] = {x, w, d}, *to[3], *y;

    o.padding = LS_SAME;
    o.dilation[0] = o.dilation[1] = dilation;
    ls_tape_watch(c, tape, x);
    ls_tape_watch(c, tape, w);
    ls_tape_watch(c, tape, d);
    y = ls_depthwise_conv2d(c, ls_conv2d(c, x, w, NULL, &o), d, NULL, &o);
    ls_gradients(c, tape, &y, NULL, 1, of, 3, to);
}

LST_TEST(a_convolution_takes_no_memory_for_how_far_its_filter_is_spread)
{
    for (int isa = LSI_ISA_REF; isa <= (int)lsi_isa_best(); isa++) {
        for (int dnnl = 0; dnnl < 2; dnnl++) {
            ls_runtime *rt;
            ls_context *c = lst_open(&rt);
            size_t near = 0, far = 0;
            uint64_t allocs = 0;

            c->device->isa = (lsi_isa)isa;
            c->device->dnnl = dnnl != 0;
            convolve(c, 1);
            LST_CHECK(ls_context_finish(c, NULL) == LS_OK);
            lsi_device_pool_stats(c->device, &allocs, &near);
            convolve(c, 10000);
            lsi_device_pool_stats(c->device, &allocs, &far);
            LST_CHECK(far < 2 * near + 65536);
            lst_close(c, rt);
        }
    }
}

LST_TEST(a_convolution_without_memory_fails_and_leaks_nothing)
{
    int failed = 0;
    ls_status st = LS_RESOURCE_EXHAUSTED;

    for (int64_t n = 1; n < 200 && st == LS_RESOURCE_EXHAUSTED; n++) {
        ls_runtime *rt; // a new one each time: what it holds already is not asked for
        ls_context *c = lst_open(&rt);
        ls_error err = LS_ERROR_INIT;

        c->device->isa = lsi_isa_best(); // the vector kernels
        (void)lsi_alloc_fail_at(n);
        convolve(c, 3);
        (void)lsi_alloc_fail_at(0);
        st = ls_context_finish(c, &err);
        LST_CHECK(st == LS_OK || st == LS_RESOURCE_EXHAUSTED);
        failed += st != LS_OK;
        lst_close(c, rt);
    }
    LST_CHECK(st == LS_OK && failed >= 5); // results, lists of taps, filters cut
}

LST_MAIN(LST_CASE(every_pixel_reaches_the_windows_it_lies_in),
         LST_CASE(same_padding_puts_the_smaller_half_before),
         LST_CASE(halves_and_composed_activations_are_done_too),
         LST_CASE(an_empty_batch_gives_an_empty_result_and_zero_gradients),
         LST_CASE(gradients_of_convolutions_agree_with_differences_to_second_order),
         LST_CASE(wrong_images_filters_and_options_are_named),
         LST_CASE(a_convolution_takes_no_memory_for_how_far_its_filter_is_spread),
         LST_CASE(a_convolution_without_memory_fails_and_leaks_nothing))
