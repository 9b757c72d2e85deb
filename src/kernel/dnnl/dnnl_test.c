/* The module against the reference, on the same operations. */
#include "kernel/dnnl/dnnl.h"
#include "lockstep/op.h"
#include "lockstep/tape.h"
#include "ls_test.h"

#include <stdio.h>

static ls_runtime *runtime(bool dnnl, int threads)
{
    ls_runtime_options o = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_error err = LS_ERROR_INIT;

    o.threads = threads;
    LST_OK(ls_runtime_create(&o, &rt, &err));
    ls_runtime_device(rt, 0)->isa = dnnl ? LSI_ISA_BASELINE : LSI_ISA_REF;
    ls_runtime_device(rt, 0)->dnnl = dnnl;
    return rt;
}

static ls_tensor *noise(ls_context *c, ls_shape shape, uint64_t seed)
{
    ls_tensor *t = ls_constant(c, LS_F32, shape, NULL);

    for (int64_t i = 0; i < ls_tensor_count(t); i++) {
        ((float *)t->data)[i] = lst_random_f32(&seed, -1, 1);
    }
    return t;
}

/* True if the process has the module's file mapped. */
static bool is_loaded(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    bool found = false;

    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        found = found || strstr(line, "lockstep_dnnl") != NULL;
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return found;
}

/* The first of the tests: later ones have it loaded. */
LST_TEST(the_module_is_loaded_by_the_first_product)
{
    ls_runtime *rt = runtime(true, 1);
    ls_context *c = NULL;
    ls_tensor *x;

    LST_OK(ls_context_open(ls_runtime_device(rt, 0), NULL, &c, NULL));
    x = noise(c, LS_SHAPE(4, 4), 1);
    x = ls_relu(c, ls_sum(c, ls_add(c, x, x), NULL, 0, true));
    LST_CHECK(x != NULL && !is_loaded());
    x = noise(c, LS_SHAPE(4, 4), 1);
    LST_CHECK(ls_matmul(c, x, x) != NULL);
    LST_CHECK(is_loaded() ==
              (lsi_dnnl_kernel(ls_runtime_device(rt, 0), LSI_OP_matmul) != NULL));
    LST_OK(ls_context_finish(c, NULL));
    ls_context_close(c);
    ls_runtime_release(rt);
}

typedef ls_tensor *(*program)(ls_context *c, int i);

static ls_tensor *products(ls_context *c, int i)
{
    static const int64_t mnk[][3] = {{1, 1, 1},      {7, 5, 3},      {64, 10, 512},
                                     {130, 70, 257}, {256, 128, 64}, {33, 300, 100}};
    const int64_t *s = mnk[i % 6];
    const bool ta = i & 1, tb = i & 2;

    return ls_matmul_t(c, noise(c, ta ? LS_SHAPE(s[2], s[0]) : LS_SHAPE(s[0], s[2]), 1),
                       noise(c, tb ? LS_SHAPE(s[1], s[2]) : LS_SHAPE(s[2], s[1]), 2), ta,
                       tb);
}

static ls_tensor *batches(ls_context *c, int i)
{
    return ls_matmul_t(c, noise(c, LS_SHAPE(3 + i, 2, 17, 40), 1),
                       noise(c, LS_SHAPE(3 + i, 2, 23, 40), 2), false, true);
}

static ls_tensor *layers(ls_context *c, int i)
{
    ls_tensor *bias = i & 1 ? noise(c, LS_SHAPE(33), 3) : NULL;

    return ls_dense(c, noise(c, LS_SHAPE(50 + i, 70), 1), noise(c, LS_SHAPE(70, 33), 2),
                    bias, i & 2 ? LS_RELU : LS_LINEAR);
}

static ls_conv_options options(int i)
{
    ls_conv_options o = LS_CONV_OPTIONS_INIT;

    o.stride[0] = 1 + i % 2;
    o.stride[1] = 1 + i % 3;
    o.dilation[1] = i % 5 == 4 ? 2 : 1;
    o.padding = i % 2 == 0 ? LS_SAME : LS_VALID;
    return o;
}

static ls_tensor *convolutions(ls_context *c, int i)
{
    ls_conv_options o = options(i);

    o.activation = i % 4 == 3 ? LS_RELU : LS_LINEAR;
    return ls_conv2d(c, noise(c, LS_SHAPE(5, 15, 14, 1 + 3 * (i % 4)), 1),
                     noise(c, LS_SHAPE(3, 3, 1 + 3 * (i % 4), 20), 2),
                     i % 3 == 0 ? noise(c, LS_SHAPE(20), 3) : NULL, &o);
}

static ls_tensor *gradients(ls_context *c, int i, bool data)
{
    ls_conv_options o = options(i);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *x = noise(c, LS_SHAPE(5, 15, 14, 6), 1),
              *w = noise(c, LS_SHAPE(3, 3, 6, 20), 2);
    ls_tensor *y;

    ls_tape_watch(c, tape, data ? x : w);
    y = ls_conv2d(c, x, w, NULL, &o);
    y = ls_mul(c, y, noise(c, ls_tensor_shape(y), 4));
    return ls_gradient(c, tape, y, data ? x : w);
}

static ls_tensor *data_gradients(ls_context *c, int i)
{
    return gradients(c, i, true);
}

static ls_tensor *filter_gradients(ls_context *c, int i)
{
    return gradients(c, i, false);
}

/* Sums of up to 900 products of numbers below 1: 1e-4 is 50 times the rounding. */
static void compare(program p)
{
    for (int threads = 1; threads <= 2; threads++) {
        ls_runtime *rts[2] = {runtime(true, threads), runtime(false, 1)};
        ls_context *c[2] = {NULL, NULL};
        ls_error err = LS_ERROR_INIT;

        for (int r = 0; r < 2; r++) {
            LST_OK(ls_context_open(ls_runtime_device(rts[r], 0), NULL, &c[r], &err));
        }
        for (int i = 0; i < 12; i++) {
            ls_tensor *got = p(c[0], i), *want = p(c[1], i);

            LST_CHECK(got != NULL && want != NULL && got->count == want->count);
            for (int64_t k = 0; got != NULL && want != NULL && k < got->count; k++) {
                LST_CHECK(lst_near((double)((float *)got->data)[k],
                                   (double)((float *)want->data)[k], 1e-4, 1e-4));
            }
            LST_OK(ls_context_finish(c[0], &err));
            LST_OK(ls_context_finish(c[1], &err));
        }
        for (int r = 0; r < 2; r++) {
            ls_context_close(c[r]);
            ls_runtime_release(rts[r]);
        }
    }
}

LST_TEST(the_module_is_found)
{
    LST_CHECK(lsi_dnnl_kernel(NULL, LSI_OP_matmul) != NULL);
    LST_CHECK(lsi_dnnl_kernel(NULL, LSI_OP_exp) == NULL);
}

LST_TEST(products_agree_with_the_reference)
{
    compare(products);
    compare(batches);
    compare(layers);
}

LST_TEST(convolutions_agree_with_the_reference)
{
    compare(convolutions);
    compare(data_gradients);
    compare(filter_gradients);
}

LST_MAIN(LST_CASE(the_module_is_loaded_by_the_first_product),
         LST_CASE(the_module_is_found), LST_CASE(products_agree_with_the_reference),
         LST_CASE(convolutions_agree_with_the_reference))
