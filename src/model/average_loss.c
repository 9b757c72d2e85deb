/*
 * Losses under a strategy: average_loss and scale_regularization_loss. Gradients are
 * summed over replicas, so a replica's loss is the sum of its examples divided by the
 * global batch: then the sum is the mean over all.
 */
#include "model/model.h"

#include <string.h>

static const char loss_name[] = "average_loss";

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

/* The same by a scalar of int64 that was computed. */
static ls_tensor *divide_by_tensor(ls_context *c, ls_tensor *x, ls_tensor *batch)
{
    ls_tensor *zero, *divisor;

    if (lsi_failed(c)) {
        return NULL;
    }
    zero = ls_equal(c, batch, lsi_scalar(c, LS_I64, 0));
    batch = ls_where(c, zero, lsi_scalar(c, LS_I64, 1), batch);
    divisor = ls_cast(c, ls_cast(c, batch, LS_F64), (ls_dtype)x->dtype);
    return ls_where(c, zero, lsi_scalar(c, (ls_dtype)x->dtype, 0.0),
                    ls_div(c, x, divisor));
}

/* Losses times their weights, checked; NULL: the step has failed, or there are none. */
static ls_tensor *fit_losses(ls_context *c, ls_tensor *losses, ls_tensor *weights)
{
    if (lsi_failed(c) || losses == NULL) {
        return NULL;
    }
    if (!lsi_dtype_is_number((ls_dtype)losses->dtype)) {
        return fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_OP, loss_name,
                         "the losses are not numbers; see ls_cast()");
    }
    if (losses->ndim == 0) {
        return fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, loss_name,
                         "the loss is a scalar; it must have one value per example");
    }
    if (weights != NULL) {
        losses = weigh_losses(c, losses, weights);
    }
    return lsi_failed(c) ? NULL : losses;
}

ls_tensor *(ls_average_loss)(ls_context *c, ls_tensor *losses, ls_tensor *weights,
                             int64_t global_batch)
{
    losses = fit_losses(c, losses, weights);
    if (losses == NULL) {
        return NULL;
    }
    if (global_batch == LS_BATCH_OF_REPLICAS) {
        if (!in_replica(c, loss_name)) {
            return NULL;
        }
        const int replicas = ls_strategy_replicas(ls_current_strategy());

        // Rows without elements may be too many to multiply; their sum is 0 in any case.
        global_batch = losses->dims[0] > INT64_MAX / replicas
                           ? INT64_MAX
                           : losses->dims[0] * replicas;
    } else if (global_batch < 0) {
        return fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_OP, loss_name,
                         "the global batch is negative");
    }
    return divide_no_nan(c, total_of(c, losses), global_batch);
}

/* The mean over a batch whose size is a tensor: an operation divides, and decides. */
static ls_tensor *average_over(ls_context *c, ls_tensor *losses, ls_tensor *weights,
                               ls_tensor *batch)
{
    ls_error negative = LS_ERROR_INIT;
    ls_tensor *total;

    if (batch->ndim != 0) {
        return fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_VALUE, loss_name,
                         "the global batch is a tensor with axes; it must be a scalar");
    }
    if (!lsi_dtype_is_int((ls_dtype)batch->dtype)) {
        return fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_TYPE, loss_name,
                         "the global batch is not an integer");
    }
    total = total_of(c, fit_losses(c, losses, weights));
    (void)lsi_fail_kind(&negative, LS_INVALID_ARGUMENT, LS_KIND_OP,
                        "%s: the global batch is negative", loss_name);
    batch = lsi_require(c, ls_cast(c, batch, LS_I64), LSI_NONE_NEGATIVE, &negative);
    return total == NULL ? NULL : divide_by_tensor(c, total, batch);
}

ls_tensor *(ls_average_loss_value)(ls_context *c, ls_tensor *losses, ls_tensor *weights,
                                   ls_value *global_batch)
{
    ls_tensor *t = (ls_tensor *)ls_value_as_tensor(global_batch); // NOLINT: not written
    int64_t batch = LS_BATCH_OF_REPLICAS;

    if (lsi_failed(c)) {
        return NULL;
    }
    if (t != NULL) {
        return average_over(c, losses, weights, t);
    }
    if (ls_value_as_int(global_batch, &batch)) {
        // An explicit number is never taken for "not given": it is negative like others.
        batch = batch == LS_BATCH_OF_REPLICAS ? -1 : batch;
    } else if (global_batch != NULL && ls_value_kind_of(global_batch) != LS_VALUE_NONE) {
        return fail_loss(c, LS_INVALID_ARGUMENT, LS_KIND_TYPE, loss_name,
                         "the global batch is not an integer");
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
