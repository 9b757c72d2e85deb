/* Bad arguments: each call fails with an error, none crashes. */
#include "lockstep/ext/op.h"
#include "lockstep/lockstep.h"
#include "ls_test.h"

#include <limits.h>

static ls_context *c;
static ls_error err;

static void open_step(void)
{
    err = (ls_error)LS_ERROR_INIT;
    LST_OK(ls_context_open(NULL, NULL, &c, &err));
}

static void close_step(void)
{
    LST_OK(ls_context_finish(c, &err));
    ls_context_close(c);
    c = NULL;
}

/* The step has failed with `code` at `line`; its message begins with `name`. */
static void refused(ls_status code, int line, const char *name)
{
    ls_error e = LS_ERROR_INIT;
    const ls_status st = ls_context_finish(c, &e);

    if (st != code || e.line != line || !lst_same_file(e.file, __FILE__) ||
        strncmp(e.message, name, strlen(name)) != 0) {
        atomic_fetch_add(&lst_failures, 1);
        (void)fprintf(stderr, "%s:%d: %s: got %s \"%s\" at line %d\n", __FILE__, line,
                      name, ls_status_name(st), e.message, e.line);
    }
}

/* The same for a result, which must be NULL. */
static void refused_result(const ls_tensor *result, int line, const char *name)
{
    LST_CHECK(result == NULL);
    refused(LS_INVALID_ARGUMENT, line, name);
}

/* The call, on one line, fails with INVALID_ARGUMENT and names itself. */
#define REFUSED(name, call) refused_result((call), __LINE__, name)
#define REFUSED_VOID(name, call) refused_result(((call), NULL), __LINE__, name)

/* A call that reports by `err` failed with INVALID_ARGUMENT; the message has the word. */
static void wrong(int line, ls_status st, const char *word)
{
    if (st != LS_INVALID_ARGUMENT || strstr(err.message, word) == NULL) {
        atomic_fetch_add(&lst_failures, 1);
        (void)fprintf(stderr, "%s:%d: got %s \"%s\"\n", __FILE__, line,
                      ls_status_name(st), err.message);
    }
    err = (ls_error)LS_ERROR_INIT;
}
#define WRONG(call, word) wrong(__LINE__, (call), word)

/* A tensor of the present step. */
static ls_tensor *ones(int64_t rows, int64_t columns)
{
    static const float data[64] = {1, 1, 1, 1, 1, 1, 1, 1};

    return ls_constant(c, LS_F32, LS_SHAPE(rows, columns), data);
}

LST_TEST(null_outputs_and_inputs_of_creating_calls_are_refused)
{
    const float data[2] = {1, 2};
    ls_tensor *t = NULL;
    ls_variable *v = NULL;
    ls_device *dev = NULL;

    err = (ls_error)LS_ERROR_INIT;
    WRONG(ls_runtime_create(NULL, NULL, &err), "NULL");
    WRONG(ls_context_open(NULL, NULL, NULL, &err), "NULL");
    WRONG(ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), data, NULL, &err), "NULL");
    WRONG(ls_tensor_wrap(NULL, LS_F32, LS_SHAPE(2), NULL, NULL, NULL, &t, &err), "NULL");
    WRONG(ls_tensor_wrap(NULL, LS_F32, LS_SHAPE(2), data, NULL, NULL, NULL, &err),
          "NULL");
    WRONG(ls_variable_create(NULL, NULL, &v, &err), "NULL");
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), data, &t, &err));
    WRONG(ls_variable_create(t, NULL, NULL, &err), "NULL");
    WRONG(ls_tensor_read(t, NULL, 8, &err), "");
    WRONG(ls_sgd_create(NULL, NULL, &err), "NULL");
    WRONG(ls_adam_create(NULL, NULL, &err), "NULL");
    WRONG(ls_runtime_find_device(NULL, NULL, &dev, &err), "");
    WRONG(ls_runtime_find_device(NULL, "CPU:0", NULL, &err), "NULL");
    WRONG(ls_context_finish(NULL, &err), "NULL");
    WRONG(ls_variable_value(NULL, &t, &err), "NULL");
    WRONG(ls_variable_set(NULL, t, &err), "NULL");
    LST_CHECK(ls_runtime_create(NULL, NULL, NULL) ==
              LS_INVALID_ARGUMENT); // no error asked
    ls_tensor_release(t);
}

LST_TEST(releasing_null_does_nothing)
{
    ls_tensor_release(NULL);
    ls_runtime_release(NULL);
    ls_context_close(NULL);
    ls_variable_release(NULL);
    ls_optimizer_release(NULL);
    ls_value_release(NULL);
    LST_CHECK(ls_tensor_retain(NULL) == NULL && ls_runtime_retain(NULL) == NULL);
    LST_CHECK(ls_variable_retain(NULL) == NULL && ls_optimizer_retain(NULL) == NULL);
}

LST_TEST(shapes_that_are_negative_huge_or_overflowing_are_refused)
{
    const ls_shape bad[] = {
        LS_SHAPE(-1),
        LS_SHAPE(2, -3),
        LS_SHAPE(INT64_MIN),
        LS_SHAPE(INT64_MAX),
        LS_SHAPE(INT64_MAX, INT64_MAX),
        LS_SHAPE(INT64_C(1) << 32, INT64_C(1) << 32),
        LS_SHAPE(INT64_C(1) << 31, INT64_C(1) << 31, 4),
        LS_SHAPE(0, INT64_C(1) << 62, -1),
        LS_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1),
        {-1, {0}},
        {99, {1}},
        {INT_MAX, {1}},
        {INT_MIN, {1}},
    };

    for (size_t i = 0; i < LSI_COUNT_OF(bad); i++) {
        ls_tensor *t = NULL;
        float data = 0;

        err = (ls_error)LS_ERROR_INIT;
        WRONG(ls_tensor_create(NULL, LS_F32, bad[i], NULL, &t, &err), "shape");
        WRONG(ls_tensor_wrap(NULL, LS_F32, bad[i], &data, NULL, NULL, &t, &err), "shape");
        LST_CHECK(t == NULL);
        open_step();
        LST_CHECK(ls_constant(c, LS_F32, bad[i], NULL) == NULL);
        WRONG(ls_context_finish(c, &err), "shape");
        REFUSED("reshape", ls_reshape(c, ones(2, 3), bad[i].ndim == 1 ? bad[1] : bad[i]));
        REFUSED("broadcast_to", ls_broadcast_to(c, ones(1, 1), bad[i]));
        REFUSED("random_uniform", ls_random_uniform(c, LS_F32, bad[i], 0, 1));
        REFUSED("random_normal", ls_random_normal(c, LS_F32, bad[i], 0, 1));
        REFUSED("scatter", ls_scatter(c, ls_constant_i64(c, 0), ones(1, 1), bad[i]));
        close_step();
    }
}

LST_TEST(more_memory_than_there_is_is_refused)
{
    ls_tensor *t = NULL;

    err = (ls_error)LS_ERROR_INIT;
    LST_CHECK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(INT64_C(1) << 50), NULL, &t,
                               &err) == LS_RESOURCE_EXHAUSTED);
    open_step();
    ls_tensor *x = ones(1, 1);
    (void)ls_broadcast_to(c, x, LS_SHAPE(INT64_C(1) << 30, INT64_C(1) << 20));
    refused(LS_RESOURCE_EXHAUSTED, __LINE__ - 1, "");
    x = ones(1, 1);
    REFUSED("tile", ls_tile(c, x, (const int64_t[]){INT64_MAX, INT64_MAX}));
    x = ones(2, 2);
    REFUSED("pad", ls_pad(c, x, (const int64_t[]){INT64_MAX, INT64_MAX, 0, 0}, 0));
    close_step();
}

LST_TEST(dtypes_that_do_not_exist_are_refused)
{
    static const int numbers[] = {0, -1, 8, 13, 24, 99, 255, 256, INT_MAX, INT_MIN};

    for (size_t i = 0; i < LSI_COUNT_OF(numbers); i++) {
        const ls_dtype d = (ls_dtype)numbers[i];
        ls_tensor *t = NULL;
        float data = 0;

        err = (ls_error)LS_ERROR_INIT;
        LST_CHECK(ls_dtype_size(d) == 0 && strcmp(ls_dtype_name(d), "?") == 0);
        WRONG(ls_tensor_create(NULL, d, LS_SHAPE(1), NULL, &t, &err), "dtype");
        WRONG(ls_tensor_wrap(NULL, d, LS_SHAPE(1), &data, NULL, NULL, &t, &err), "dtype");
        open_step();
        REFUSED("cast", ls_cast(c, ones(1, 1), d));
        REFUSED("one_hot", ls_one_hot(c, ls_constant_i64(c, 1), 3, d));
        REFUSED("random_uniform", ls_random_uniform(c, d, LS_SHAPE(2), 0, 1));
        REFUSED("random_normal", ls_random_normal(c, d, LS_SHAPE(2), 0, 1));
        REFUSED("tensor", ls_constant(c, d, LS_SHAPE(2), NULL));
        close_step();
    }
}

LST_TEST(options_with_a_wrong_size_are_refused)
{
    static const size_t sizes[] = {0, 1, 7};

    for (size_t i = 0; i < LSI_COUNT_OF(sizes); i++) {
        ls_runtime_options rt = LS_RUNTIME_OPTIONS_INIT;
        ls_variable_options var = LS_VARIABLE_OPTIONS_INIT;
        ls_sgd_options sgd = LS_SGD_OPTIONS_INIT;
        ls_adam_options adam = LS_ADAM_OPTIONS_INIT;
        ls_conv_options conv = LS_CONV_OPTIONS_INIT;
        ls_pool_options pool = LS_POOL_OPTIONS_INIT;
        ls_runtime *runtime = NULL;
        ls_variable *v = NULL;
        ls_optimizer *o = NULL;
        ls_tensor *t = NULL;

        rt.struct_size = var.struct_size = sgd.struct_size = adam.struct_size = sizes[i];
        conv.struct_size = pool.struct_size = sizes[i];
        err = (ls_error)LS_ERROR_INIT;
        LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), NULL, &t, &err));
        WRONG(ls_runtime_create(&rt, &runtime, &err), "INIT");
        WRONG(ls_variable_create(t, &var, &v, &err), "INIT");
        WRONG(ls_sgd_create(&sgd, &o, &err), "INIT");
        WRONG(ls_adam_create(&adam, &o, &err), "INIT");
        ls_tensor_release(t);
        open_step();
        ls_tensor *x = ls_constant(c, LS_F32, LS_SHAPE(1, 4, 4, 1), NULL);
        ls_tensor *w = ls_constant(c, LS_F32, LS_SHAPE(2, 2, 1, 1), NULL);
        REFUSED("conv2d", ls_conv2d(c, x, w, NULL, &conv));
        x = ls_constant(c, LS_F32, LS_SHAPE(1, 4, 4, 1), NULL);
        REFUSED("max_pool2d", ls_max_pool2d(c, x, &pool));
        x = ls_constant(c, LS_F32, LS_SHAPE(1, 4, 4, 1), NULL);
        REFUSED("avg_pool2d", ls_avg_pool2d(c, x, &pool));
        close_step();
    }
}

LST_TEST(an_error_struct_of_another_size_is_not_overrun)
{
    struct {
        ls_error e;
        unsigned char guard[64];
    } small;

    memset(&small, 0x5a, sizeof small);
    small.e.struct_size = offsetof(ls_error, message) + 16; // an older, shorter one
    WRONG(ls_runtime_create(NULL, NULL, &small.e), "");
    LST_CHECK(small.e.code == LS_INVALID_ARGUMENT);
    LST_CHECK(((unsigned char *)&small.e)[small.e.struct_size] == 0x5a);
    memset(&small, 0x5a, sizeof small);
    small.e.struct_size = 0;
    WRONG(ls_runtime_create(NULL, NULL, &small.e), "");
    LST_CHECK(((unsigned char *)&small.e)[sizeof(size_t)] == 0x5a);
}

LST_TEST(numbers_that_make_no_sense_are_refused)
{
    static const double bad[] = {NAN, -1, INFINITY, -INFINITY};
    ls_runtime_options rt = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *runtime = NULL;
    ls_optimizer *o = NULL;

    err = (ls_error)LS_ERROR_INIT;
    for (size_t i = 0; i < LSI_COUNT_OF(bad); i++) {
        ls_sgd_options sgd = LS_SGD_OPTIONS_INIT;
        ls_adam_options adam = LS_ADAM_OPTIONS_INIT;

        sgd.learning_rate = bad[i];
        WRONG(ls_sgd_create(&sgd, &o, &err), "");
        sgd.learning_rate = 0.1;
        sgd.momentum = bad[i];
        WRONG(ls_sgd_create(&sgd, &o, &err), "");
        adam.beta1 = bad[i];
        WRONG(ls_adam_create(&adam, &o, &err), "");
    }
    rt.logical_cpus = -1;
    WRONG(ls_runtime_create(&rt, &runtime, &err), "");
    rt.logical_cpus = 1;
    rt.threads = -1;
    WRONG(ls_runtime_create(&rt, &runtime, &err), "");
    rt.threads = 1;
    rt.isa = "sse9";
    WRONG(ls_runtime_create(&rt, &runtime, &err), "sse9");
}

LST_TEST(null_lists_and_tensors_of_operations_are_refused_with_the_place)
{
    ls_tensor *outs[2] = {NULL, NULL};

    open_step();
    REFUSED("add", ls_add(c, NULL, ones(1, 1)));
    REFUSED("add", ls_add(c, ones(1, 1), NULL));
    REFUSED("relu", ls_relu(c, NULL));
    REFUSED("where", ls_where(c, NULL, NULL, NULL));
    REFUSED("sum", ls_sum(c, NULL, NULL, 0, false));
    REFUSED("sum", ls_sum(c, ones(2, 2), (const int[]){0, 0}, 2, false));
    REFUSED("sum", ls_sum(c, ones(2, 2), (const int[]){INT_MIN}, 1, false));
    REFUSED("argmax", ls_argmax(c, NULL, 0));
    REFUSED("matmul", ls_matmul(c, NULL, NULL));
    REFUSED("dense", ls_dense(c, NULL, NULL, NULL, LS_RELU));
    REFUSED("dense", ls_dense(c, ones(2, 2), ones(2, 2), NULL, (ls_activation)99));
    REFUSED("conv2d", ls_conv2d(c, NULL, NULL, NULL, NULL));
    REFUSED("depthwise_conv2d", ls_depthwise_conv2d(c, NULL, NULL, NULL, NULL));
    REFUSED("attention", ls_attention(c, NULL, NULL, NULL, 0, false));
    REFUSED("attention", ls_attention(c, ones(2, 2), ones(2, 2), ones(2, 2), NAN, false));
    REFUSED("self_attention", ls_self_attention(c, NULL, 1, 0, false));
    REFUSED("self_attention", ls_self_attention(c, ones(2, 3), INT_MAX, 0, false));
    REFUSED("self_attention", ls_self_attention(c, ones(2, 3), INT_MIN, 0, false));
    REFUSED("self_attention", ls_self_attention(c, ones(2, 3), 1, NAN, false));
    REFUSED("max_pool2d", ls_max_pool2d(c, NULL, NULL));
    REFUSED("global_avg_pool2d", ls_global_avg_pool2d(c, NULL));
    REFUSED("global_max_pool2d", ls_global_max_pool2d(c, NULL));
    REFUSED("reshape", ls_reshape(c, NULL, LS_SHAPE(1)));
    REFUSED("transpose", ls_transpose(c, NULL, NULL));
    REFUSED("squeeze", ls_squeeze(c, NULL, NULL, 0));
    REFUSED("expand_dims", ls_expand_dims(c, NULL, 0));
    REFUSED("tile", ls_tile(c, ones(2, 2), NULL));
    REFUSED("pad", ls_pad(c, ones(2, 2), NULL, 0));
    REFUSED("slice", ls_slice(c, ones(2, 2), NULL, NULL));
    REFUSED("slice", ls_slice(c, ones(2, 2), (const int64_t[]){0, 0}, NULL));
    REFUSED("concat", ls_concat(c, NULL, 2, 0));
    REFUSED("concat", ls_concat(c, NULL, 0, 0));
    REFUSED("stack", ls_stack(c, NULL, 2, 0));
    REFUSED("gather", ls_gather(c, ones(2, 2), NULL, 0));
    REFUSED("scatter", ls_scatter(c, NULL, NULL, LS_SHAPE(1)));
    REFUSED("one_hot", ls_one_hot(c, NULL, 3, LS_F32));
    REFUSED("softmax", ls_softmax(c, NULL));
    REFUSED("layer_norm", ls_layer_norm(c, ones(2, 2), NULL, NULL, 1e-3));
    REFUSED("batch_norm", ls_batch_norm(c, NULL, NULL, NULL, 1e-3, NULL, NULL));
    REFUSED("dropout", ls_dropout(c, NULL, 0.5));
    REFUSED_VOID("split", ls_split(c, NULL, (const int64_t[]){1, 1}, 2, 0, outs));
    REFUSED_VOID("split", ls_split(c, ones(2, 2), NULL, 2, 0, outs));
    REFUSED_VOID("split", ls_split(c, ones(2, 2), (const int64_t[]){1, 1}, 2, 0, NULL));
    REFUSED("read", ls_read(c, NULL));
    REFUSED("assign", ls_assign(c, NULL, NULL));
    REFUSED("assign_add", ls_assign_add(c, NULL, NULL));
    REFUSED("scatter", ls_variable_scatter(c, NULL, LS_SCATTER_ADD, NULL, NULL));
    REFUSED_VOID("", ls_optimizer_apply(c, NULL, NULL, NULL, 1));
    REFUSED_VOID("", ls_optimizer_minimize(c, NULL, NULL, NULL, NULL, 1));
    close_step();
}

LST_TEST(without_a_context_operations_do_nothing)
{
    const ls_tensor *const results[] = {
        ls_add(NULL, NULL, NULL),    ls_constant_f32(NULL, 1),
        ls_read(NULL, NULL),         ls_random_normal(NULL, LS_F32, LS_SHAPE(1), 0, 1),
        ls_concat(NULL, NULL, 3, 0), ls_global_avg_pool2d(NULL, NULL),
        ls_adopt(NULL, NULL),        ls_context_fail(NULL, LS_UNKNOWN, "nothing"),
    };

    for (size_t i = 0; i < LSI_COUNT_OF(results); i++) {
        LST_CHECK(results[i] == NULL);
    }
    LST_CHECK(ls_tape_open(NULL, NULL) == NULL);
    LST_CHECK(isnan(ls_item(NULL, NULL)));
}

static ls_status no_outputs(ls_op_call *k)
{
    (void)k;
    return LS_OK; // says nothing about the output
}

static ls_status do_nothing(ls_op_call *k)
{
    (void)k;
    return LS_OK;
}

LST_TEST(rows_of_a_user_that_are_not_filled_in_are_refused)
{
    const ls_op empty = {0};
    const ls_op many = {sizeof many, "many", 0, 0, 9, 0, no_outputs, do_nothing, NULL};
    const ls_op silent = {sizeof silent, "silent",   0,   0, 1, 0,
                          no_outputs,    do_nothing, NULL};
    const ls_op *const rows[] = {NULL, &empty, &many, &silent};

    open_step();
    for (size_t i = 0; i < LSI_COUNT_OF(rows); i++) {
        LST_CHECK(ls_op_apply1(LS_HERE(c), rows[i], NULL, 0, NULL, 0) == NULL);
        LST_CHECK(ls_context_finish(c, &err) != LS_OK);
        LST_CHECK(err.message[0] != '\0');
    }
    LST_CHECK(ls_op_apply1(LS_HERE(c), &silent, NULL, 0, NULL, 0) == NULL);
    WRONG(ls_context_finish(c, &err), "silent: the shape rule has not set output 0");
    const ls_op one = {sizeof one, "one", 1, 1, 1, 0, no_outputs, do_nothing, NULL};
    LST_CHECK(ls_op_apply1(LS_HERE(c), &one, NULL, 1, NULL, 0) == NULL);
    WRONG(ls_context_finish(c, &err), "one");
    LST_CHECK(ls_op_apply1(LS_HERE(c), &one, NULL, 0, NULL, 0) == NULL);
    WRONG(ls_context_finish(c, &err), "one");
    close_step();
}

LST_MAIN(LST_CASE(null_outputs_and_inputs_of_creating_calls_are_refused),
         LST_CASE(releasing_null_does_nothing),
         LST_CASE(shapes_that_are_negative_huge_or_overflowing_are_refused),
         LST_CASE(more_memory_than_there_is_is_refused),
         LST_CASE(dtypes_that_do_not_exist_are_refused),
         LST_CASE(options_with_a_wrong_size_are_refused),
         LST_CASE(an_error_struct_of_another_size_is_not_overrun),
         LST_CASE(numbers_that_make_no_sense_are_refused),
         LST_CASE(null_lists_and_tensors_of_operations_are_refused_with_the_place),
         LST_CASE(without_a_context_operations_do_nothing),
         LST_CASE(rows_of_a_user_that_are_not_filled_in_are_refused))
