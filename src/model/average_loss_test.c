/* Tests of losses under a strategy. */
#include "model/model.h"

#include "ls_test.h"

static ls_tensor *vector(ls_context *c, int64_t n, const float *numbers)
{
    return ls_constant(c, LS_F32, LS_SHAPE(n), numbers);
}

#define NUMBERS(...) ((const float[]){__VA_ARGS__})

/* The step has failed with that code and kind; clears the context for the next one. */
static void failed(ls_context *c, ls_status code, ls_kind kind, const char *word)
{
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(ls_context_finish(c, &err), code, err, word);
    LST_CHECK(err.kind == kind);
}

static ls_strategy *two_replicas(void)
{
    ls_runtime_options ropts = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    ls_strategy *s = NULL;

    ropts.logical_cpus = 2;
    ropts.threads = 1;
    LST_OK(ls_runtime_create(&ropts, &opts.runtime, NULL));
    LST_OK(ls_mirrored_create(NULL, &opts, &s, NULL));
    ls_runtime_release(opts.runtime); // the strategy keeps its own reference
    return s;
}

LST_TEST(s112_the_global_batch_divides_the_sum)
{
    ls_context *c = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    ls_tensor *x = vector(c, 5, NUMBERS(1, 2, 3, 4, 5));
    LST_CHECK(ls_item(c, ls_average_loss(c, x, NULL, 10)) == 1.5);
    LST_CHECK(ls_item(c, ls_average_loss(c, x, NULL, 0)) == 0.0);
    LST_CHECK(ls_item(c, ls_average_loss(c, x, NULL, LS_BATCH_OF_REPLICAS)) == 3.0);
    LST_OK(ls_context_finish(c, NULL));
    LST_CHECK(ls_average_loss(c, vector(c, 1, NUMBERS(1)), NULL, -1) == NULL);
    failed(c, LS_INVALID_ARGUMENT, LS_KIND_OP, "negative");
    LST_CHECK(ls_average_loss(c, ls_constant_f32(c, 1), NULL, 10) == NULL);
    failed(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "scalar");
    LST_CHECK(ls_average_loss(c, ls_constant(c, LS_BOOL, LS_SHAPE(2), NULL), NULL, 10) ==
              NULL);
    failed(c, LS_INVALID_ARGUMENT, LS_KIND_OP, "not numbers");
    ls_context_close(c);
}

LST_TEST(s112_the_batch_may_be_a_value)
{
    static const int32_t ten = 10;
    ls_context *c = NULL;
    ls_value *v = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    ls_tensor *x = vector(c, 5, NUMBERS(1, 2, 3, 4, 5));
    (void)ls_tensor_retain(x);
    LST_OK(ls_value_int(10, &v, NULL));
    LST_CHECK(ls_item(c, ls_average_loss_value(c, x, NULL, v)) == 1.5);
    LST_CHECK(ls_item(c, ls_average_loss_value(c, x, NULL, NULL)) == 3.0);
    ls_value_release(v);
    ls_tensor *t = ls_constant(c, LS_I32, LS_SCALAR, &ten);
    LST_OK(ls_value_tensor(t, &v, NULL));
    LST_CHECK(ls_item(c, ls_average_loss_value(c, x, NULL, v)) == 1.5);
    ls_value_release(v);
    t = ls_constant(c, LS_I32, LS_SHAPE(1), &ten);
    LST_OK(ls_value_tensor(t, &v, NULL));
    LST_CHECK(ls_average_loss_value(c, x, NULL, v) == NULL);
    ls_value_release(v);
    failed(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "scalar");
    LST_OK(ls_value_float(10.0, &v, NULL));
    LST_CHECK(ls_average_loss_value(c, x, NULL, v) == NULL);
    ls_value_release(v);
    failed(c, LS_INVALID_ARGUMENT, LS_KIND_TYPE, "not an integer");
    LST_OK(ls_value_tensor(x, &v, NULL));
    LST_CHECK(ls_average_loss_value(c, x, NULL, v) == NULL);
    ls_value_release(v);
    failed(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "scalar");
    // an explicit value is rejected as any negative number
    LST_OK(ls_value_int(INT64_MIN, &v, NULL));
    LST_CHECK(ls_average_loss_value(c, x, NULL, v) == NULL);
    ls_value_release(v);
    failed(c, LS_INVALID_ARGUMENT, LS_KIND_OP, "negative");
    ls_tensor_release(x);
    ls_context_close(c);
}

/* A batch that was computed divides as a number does, in the loss and in its gradient. */
LST_TEST(s112_a_tensor_divides_by_the_same_bits_as_a_number)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I32};
    static const int64_t batches[] = {0, 1, 3, 7, 100003};

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        for (size_t b = 0; b < LSI_COUNT_OF(batches); b++) {
            ls_context *c = NULL;
            ls_tape_options o = LS_TAPE_OPTIONS_INIT;
            ls_value *v = NULL;

            o.persistent = true;
            LST_OK(ls_context_open(NULL, NULL, &c, NULL));
            ls_tensor *x = ls_cast(c, vector(c, 3, NUMBERS(1.5, 2, 7)), dtypes[d]);
            ls_tape *tape = ls_tape_open(c, &o);
            if (dtypes[d] != LS_I32) {
                ls_tape_watch(c, tape, x);
            }
            LST_OK(ls_value_tensor(ls_constant_i64(c, batches[b]), &v, NULL));
            const ls_tensor *y = ls_average_loss_value(c, x, NULL, v);
            const ls_tensor *want = ls_average_loss(c, x, NULL, batches[b]);
            LST_CHECK(y != NULL && y->dtype == want->dtype &&
                      memcmp(y->data, want->data, ls_tensor_bytes(want)) == 0);
            const ls_tensor *dy = ls_gradient(c, tape, (ls_tensor *)y, x);
            const ls_tensor *dwant = ls_gradient(c, tape, (ls_tensor *)want, x);
            LST_CHECK((dy == NULL) == (dtypes[d] == LS_I32));
            LST_CHECK(dy == NULL ||
                      memcmp(dy->data, dwant->data, ls_tensor_bytes(dwant)) == 0);
            ls_value_release(v);
            LST_OK(ls_value_tensor(ls_constant_i64(c, -1), &v, NULL));
            LST_CHECK(ls_average_loss_value(c, x, NULL, v) == NULL);
            ls_value_release(v);
            failed(c, LS_INVALID_ARGUMENT, LS_KIND_OP,
                   "average_loss: the global batch is");
            ls_context_close(c);
        }
    }
}

LST_TEST(s113_weights_are_a_scalar_one_per_example_or_one_per_element)
{
    ls_context *c = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    ls_tensor *x = vector(c, 3, NUMBERS(2, 4, 6));
    ls_tensor *m = ls_constant(c, LS_F32, LS_SHAPE(2, 2), NUMBERS(2, .5F, 4, 1));
    ls_tensor *w = vector(c, 3, NUMBERS(.3F, .5F, .2F));
    ls_tensor *each = ls_constant(c, LS_F32, LS_SHAPE(2, 2), NUMBERS(.3F, .7F, .2F, .8F));
    ls_tensor *rows = vector(c, 2, NUMBERS(1, 10));
    ls_tensor *column = ls_constant(c, LS_F32, LS_SHAPE(3, 1), NUMBERS(1, 0, 2));
    const int64_t own = LS_BATCH_OF_REPLICAS;

    LST_CHECK(ls_item(c, ls_average_loss(c, x, ls_constant_f32(c, 2), own)) == 8.0);
    LST_CHECK(lst_near(ls_item(c, ls_average_loss(c, x, w, own)), 3.8 / 3, 1e-6, 0));
    LST_CHECK(lst_near(ls_item(c, ls_average_loss(c, m, each, own)), 1.275, 1e-6, 0));
    LST_CHECK(ls_item(c, ls_average_loss(c, m, rows, 1)) == 52.5);
    LST_CHECK(ls_item(c, ls_average_loss(c, x, column, 1)) == 14.0);
    LST_CHECK(ls_item(c, ls_average_loss(c, x, ls_constant_i64(c, 2), own)) == 8.0);
    ls_tensor *empty = ls_constant(c, LS_F32, LS_SHAPE(0), NULL);
    LST_CHECK(ls_item(c, ls_average_loss(c, empty, NULL, own)) == 0.0);
    LST_CHECK(ls_tensor_dtype(ls_average_loss(
                  c, ls_constant(c, LS_F64, LS_SHAPE(2), NULL), rows, own)) == LS_F64);
    LST_CHECK(ls_average_loss(c, x, rows, own) == NULL);
    failed(c, LS_INVALID_ARGUMENT, LS_KIND_OP, "(2,)");
    ls_context_close(c);
}

LST_TEST(losses_that_are_integers_are_averaged_as_tensorflow_does)
{
    static const ls_dtype wide[] = {LS_I32, LS_I64, LS_U32, LS_U64};
    static const ls_dtype narrow[] = {LS_I8, LS_I16, LS_U8, LS_U16};
    ls_context *c = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    for (size_t i = 0; i < 4; i++) {
        ls_tensor *x = ls_cast(c, vector(c, 3, NUMBERS(1, 2, 4)), wide[i]);
        ls_tensor *y = ls_cast(c, vector(c, 3, NUMBERS(1, 2, 4)), narrow[i]);
        ls_tensor *a = ls_average_loss(c, x, NULL, 6);

        LST_CHECK(ls_tensor_dtype(a) == LS_F64 && ls_item(c, a) == 7.0 / 6);
        LST_CHECK(ls_item(c, ls_average_loss(c, x, NULL, 0)) == 0);
        a = ls_average_loss(c, x, vector(c, 3, NUMBERS(1, .75F, 1)), 6);
        LST_CHECK(ls_item(c, a) == 1.0); // 1.5 is truncated to 1
        a = ls_average_loss(c, y, NULL, 6);
        LST_CHECK(ls_tensor_dtype(a) == LS_F32 && ls_item(c, a) == (double)(7.0F / 6.0F));
        a = ls_scale_regularization_loss(c, x);
        LST_CHECK(ls_tensor_dtype(a) == LS_F64 && ls_item(c, a) == 7);
        a = ls_scale_regularization_loss(c, y);
        LST_CHECK(ls_tensor_dtype(a) == LS_F32 && ls_item(c, a) == 7);
    }
    LST_OK(ls_context_finish(c, NULL));
    ls_context_close(c);
}

LST_TEST(a_batch_of_nothing_has_a_gradient_of_nothing)
{
    ls_context *c = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    ls_tensor *x = vector(c, 2, NUMBERS(1, INFINITY));
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tape_watch(c, tape, x);
    ls_tensor *loss = ls_average_loss(c, x, NULL, 0);
    ls_tensor *g = ls_gradient(c, tape, loss, x);
    LST_CHECK(ls_item(c, loss) == 0.0);
    LST_CHECK(g != NULL && lsi_element(g, 0) == 0.0 && lsi_element(g, 1) == 0.0);
    LST_OK(ls_context_finish(c, NULL));
    ls_context_close(c);
}

static ls_value *replica_losses(ls_context *c, ls_value *args, void *user)
{
    ls_tensor *x = vector(c, 3, NUMBERS(2.5F, 6.2F, 5.0F));
    ls_tensor *both[2];

    (void)args;
    (void)user;
    both[0] = ls_average_loss(c, x, NULL, LS_BATCH_OF_REPLICAS);
    both[1] = ls_scale_regularization_loss(c, x);
    return ls_value_of_all(c, both, 2);
}

LST_TEST(s113_s114_the_shares_of_replicas_add_up_to_the_whole)
{
    ls_strategy *s = two_replicas();
    ls_value *out = NULL;
    ls_value *sums = NULL;

    LST_OK(ls_strategy_run(s, replica_losses, NULL, NULL, &out, NULL));
    LST_OK(ls_strategy_reduce(s, LS_SUM, out, LS_NO_AXIS, &sums, NULL));
    const ls_tensor *average = ls_value_as_tensor(ls_value_child(sums, 0));
    const ls_tensor *regular = ls_value_as_tensor(ls_value_child(sums, 1));
    const ls_value *each = ls_value_child(out, 1);
    LST_CHECK(lst_near(lsi_element(average, 0), 4.5666666, 1e-6, 0));
    LST_CHECK(lst_near(lsi_element(regular, 0), 13.7, 1e-6, 0));
    LST_CHECK(lst_near(lsi_element(ls_value_as_tensor(ls_value_child(each, 1)), 0), 6.85,
                       1e-6, 0));
    ls_value_release(out);
    ls_value_release(sums);
    ls_strategy_release(s);
}

LST_TEST(s112_s114_a_scope_has_no_batch_of_its_own)
{
    ls_strategy *s = two_replicas();
    ls_context *c = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    LST_CHECK(lst_near(ls_item(c, ls_scale_regularization_loss(
                                      c, vector(c, 3, NUMBERS(2.5F, 6.2F, 5.0F)))),
                       13.7, 1e-6, 0));
    LST_OK(ls_scope_enter(s, NULL));
    LST_CHECK(ls_average_loss(c, vector(c, 1, NUMBERS(1)), NULL, LS_BATCH_OF_REPLICAS) ==
              NULL);
    failed(c, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME, "cross-replica");
    LST_CHECK(ls_scale_regularization_loss(c, vector(c, 1, NUMBERS(1))) == NULL);
    failed(c, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME, "cross-replica");
    LST_CHECK(ls_item(c, ls_average_loss(c, vector(c, 1, NUMBERS(1)), NULL, 4)) == 0.25);
    LST_OK(ls_context_finish(c, NULL));
    ls_scope_exit(s);
    ls_context_close(c);
    ls_strategy_release(s);
}

LST_MAIN(LST_CASE(s112_the_global_batch_divides_the_sum),
         LST_CASE(s112_the_batch_may_be_a_value),
         LST_CASE(s112_a_tensor_divides_by_the_same_bits_as_a_number),
         LST_CASE(s113_weights_are_a_scalar_one_per_example_or_one_per_element),
         LST_CASE(losses_that_are_integers_are_averaged_as_tensorflow_does),
         LST_CASE(a_batch_of_nothing_has_a_gradient_of_nothing),
         LST_CASE(s113_s114_the_shares_of_replicas_add_up_to_the_whole),
         LST_CASE(s112_s114_a_scope_has_no_batch_of_its_own))
