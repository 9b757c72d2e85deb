/*
 * Losses under a strategy: average_loss and scale_regularization_loss. Gradients are
 * summed over replicas, so a replica's loss is the sum of its examples divided by the
 * global batch: then the sum is the mean over all.
 */
#include "model/model.h"

#include <string.h>

/* Fails the step with the exception that TensorFlow raises. */
static ls_tensor *fail_loss(ls_context *c, ls_status code, ls_kind kind, const char *what,
                            const char *why)
{
    ls_error e = LS_ERROR_INIT;

    (void)lsi_fail_kind(&e, code, kind, "%s: %s", what, why);
    return lsi_context_error(c, &e);
}

/*
 * True outside of cross-replica context, where a replica's part of the batch is known;
 * else fails.
 */
static bool in_replica(ls_context *c, const char *what)
{
    if (!ls_has_strategy() || !ls_in_cross_replica_context()) {
        return true;
    }
    (void)fail_loss(
        c, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME, what,
        "in a cross-replica context there is no batch of a replica; call it in the "
        "function given to ls_strategy_run(), or give the global batch");
    return false;
}

ls_tensor *lsi_fit_weights(ls_context *c, ls_tensor *values, ls_tensor *weights)
{
    const int last = -1;

    if (lsi_failed(c) || values == NULL || weights == NULL) {
        return NULL;
    }
    if (weights->dtype != values->dtype) {
        weights = ls_cast(c, weights, (ls_dtype)values->dtype);
    }
    if (weights == NULL || weights->ndim == 0) {
        return weights;
    }
    if (weights->ndim == values->ndim + 1) {
        return ls_squeeze(c, weights, &last, 1);
    }
    return weights->ndim + 1 == values->ndim ? ls_expand_dims(c, weights, last) : weights;
}

/* x / batch, and 0 with a gradient of 0 if the batch is 0. */
static ls_tensor *divide_no_nan(ls_context *c, ls_tensor *x, int64_t batch)
{
    const uint8_t no = 0;

    if (lsi_failed(c)) {
        return NULL;
    }
    if (batch == 0) {
        return ls_where(c, (ls_constant)(c, LS_BOOL, LS_SCALAR, &no), x,
                        lsi_scalar(c, (ls_dtype)x->dtype, 0.0));
    }
    return ls_div(c, x, lsi_scalar(c, (ls_dtype)x->dtype, (double)batch));
}

/* Losses times weights; integer losses are multiplied as float32 and truncated again. */
static ls_tensor *weigh_losses(ls_context *c, ls_tensor *losses, ls_tensor *weights)
{
    const ls_dtype dtype = (ls_dtype)losses->dtype;

    if (lsi_dtype_is_float(dtype)) {
        return ls_mul(c, losses, lsi_fit_weights(c, losses, weights));
    }
    losses = ls_cast(c, losses, LS_F32);
    return ls_cast(c, ls_mul(c, losses, lsi_fit_weights(c, losses, weights)), dtype);
}

/* The sum in the dtype of the division: narrow integers as float32, others as float64. */
static ls_tensor *total_of(ls_context *c, ls_tensor *losses)
{
    ls_tensor *sum = (ls_sum)(c, losses, NULL, 0, false);

    if (sum == NULL || lsi_dtype_is_float((ls_dtype)sum->dtype)) {
        return sum;
    }
    return ls_cast(c, sum, ls_dtype_size((ls_dtype)sum->dtype) < 4 ? LS_F32 : LS_F64);
}

ls_tensor *(ls_average_loss)(ls_context *c, ls_tensor *losses, ls_tensor *weights,
                             int64_t global_batch)
{
    static const char what[] = "average_loss";

    if (lsi_failed(c) || losses == NULL) {
        return NULL;
    }
    if (!lsi_dtype_is_number((ls_dtype)losses->dtype)) {
        return fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_OP, what,
                         "the losses are not numbers; see ls_cast()");
    }
    if (losses->ndim == 0) {
        return fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, what,
                         "the loss is a scalar; it must have one value per example");
    }
    if (weights != NULL) {
        losses = weigh_losses(c, losses, weights);
    }
    if (lsi_failed(c)) {
        return NULL;
    }
    if (global_batch == LS_BATCH_OF_REPLICAS) {
        if (!in_replica(c, what)) {
            return NULL;
        }
        const int replicas = ls_strategy_replicas(ls_current_strategy());

        // Rows without elements may be too many to multiply; their sum is 0 in any case.
        global_batch = losses->dims[0] > INT64_MAX / replicas
                           ? INT64_MAX
                           : losses->dims[0] * replicas;
    } else if (global_batch < 0) {
        return fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_OP, what,
                         "the global batch is negative");
    }
    return divide_no_nan(c, total_of(c, losses), global_batch);
}

/* The batch as a number; false: the step has failed. */
static bool read_batch(ls_context *c, ls_value *v, int64_t *out)
{
    static const char what[] = "average_loss";
    const ls_tensor *t = ls_value_as_tensor(v);

    if (v == NULL || ls_value_kind_of(v) == LS_VALUE_NONE) {
        *out = LS_BATCH_OF_REPLICAS;
        return true;
    }
    if (ls_value_as_int(v, out)) {
        // An explicit number is never taken for "not given": it is negative like others.
        *out = *out == LS_BATCH_OF_REPLICAS ? -1 : *out;
        return true;
    }
    if (t != NULL && t->ndim != 0) {
        (void)fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, what,
                        "the global batch is a tensor with axes; it must be a scalar");
        return false;
    }
    if (t == NULL || !lsi_dtype_is_int((ls_dtype)t->dtype)) {
        (void)fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_TYPE, what,
                        "the global batch is not an integer");
        return false;
    }
    ls_tensor *wide = ls_cast(c, (ls_tensor *)ls_value_as_tensor(v), LS_I64);
    if (wide == NULL) {
        return false;
    }
    memcpy(out, wide->data, sizeof *out);
    *out = *out == LS_BATCH_OF_REPLICAS ? -1 : *out;
    return true;
}

ls_tensor *(ls_average_loss_value)(ls_context *c, ls_tensor *losses, ls_tensor *weights,
                                   ls_value *global_batch)
{
    int64_t batch;

    if (lsi_failed(c) || !read_batch(c, global_batch, &batch)) {
        return NULL;
    }
    return (ls_average_loss)(c, losses, weights, batch);
}

ls_tensor *(ls_scale_regularization_loss)(ls_context *c, ls_tensor *loss)
{
    if (lsi_failed(c) || loss == NULL || !in_replica(c, "scale_regularization_loss")) {
        return NULL;
    }
    const int replicas = ls_strategy_replicas(ls_current_strategy());
    ls_tensor *sum = (ls_sum)(c, loss, NULL, 0, false);
    return sum == NULL ? NULL
                       : ls_div(c, sum, lsi_scalar(c, (ls_dtype)sum->dtype, replicas));
}
