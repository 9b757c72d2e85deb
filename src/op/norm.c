/*
 * Normalisation: the rows layer_norm, batch_norm, their gradients, and
 * batch_norm_inference. A layer norm's moments belong to a row (all axes but the last),
 * a batch norm's to a channel (the last axis); everything else is the same for both.
 */
#include "op/op.h"

#include "kernel/ref/ref.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool is_batch(const ls_op *op)
{
    return op == &lsi_op_batch_norm || op == &lsi_op_batch_norm_grad;
}

/* Input `i` has the dtype of input `like` and one value per channel. */
static ls_status check_channels(ls_op_call *k, size_t like, size_t i, const char *what)
{
    const ls_tensor *x = k->in[like], *t = k->in[i];

    if (t->dtype != x->dtype || t->ndim != 1 || t->dims[0] != x->dims[x->ndim - 1]) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s %s does not match %s: it needs one %s for each of the "
                          "%" PRId64 " channels (the last axis)",
                          what, lsi_text_of(t).s, lsi_text_of(x).s,
                          ls_dtype_name((ls_dtype)x->dtype), x->dims[x->ndim - 1]);
    }
    return LS_OK;
}

static ls_status check_image(ls_op_call *k, const ls_tensor *x, int axes)
{
    if (x->dtype != LS_F32 && x->dtype != LS_F64) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "works in float32 and float64, got %s; convert with ls_cast()",
                          lsi_text_of(x).s);
    }
    if (x->ndim < axes) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "%s has too few axes, %d are needed; reshape", lsi_text_of(x).s,
                          axes);
    }
    return LS_OK;
}

static ls_status check_epsilon(ls_op_call *k)
{
    const lsi_scalars_attrs *at = k->attrs;

    if (!(at->a >= 0) || isinf(at->a)) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT,
                          "epsilon is %g; it must be 0 or a small positive number",
                          at->a);
    }
    return LS_OK;
}

/* The shape of the moments: all axes but the last, or the last. */
static ls_shape moments_shape(const ls_tensor *x, bool batch)
{
    ls_shape s = lsi_shape(x);

    if (batch) {
        return LS_SHAPE(x->dims[x->ndim - 1]);
    }
    s.ndim--;
    return s;
}

static ls_status norm_shape(ls_op_call *k)
{
    const bool batch = is_batch(k->op);
    const ls_tensor *x = k->in[0];
    ls_shape s;
    ls_status st = check_image(k, x, batch ? 2 : 1);

    if (st == LS_OK) {
        st = check_channels(k, 0, 1, "gamma");
    }
    if (st == LS_OK) {
        st = check_channels(k, 0, 2, "beta");
    }
    if (st == LS_OK) {
        st = check_epsilon(k);
    }
    if (st != LS_OK) {
        return st;
    }
    s = lsi_shape(x);
    st = ls_op_set_output(k, 0, (ls_dtype)x->dtype, &s);
    s = moments_shape(x, batch);
    for (int i = 1; i < k->op->outputs && st == LS_OK; i++) {
        st = ls_op_set_output(k, i, (ls_dtype)x->dtype, &s);
    }
    return st;
}

/* Inputs g, x, gamma, mean, rstd. */
static ls_status norm_grad_shape(ls_op_call *k)
{
    const bool batch = is_batch(k->op);
    const ls_tensor *x = k->in[1];
    const ls_shape s = lsi_shape(x), g = lsi_shape(k->in[0]), gamma = lsi_shape(k->in[2]);
    ls_status st = check_image(k, x, batch ? 2 : 1);
    ls_shape moments;

    if (st == LS_OK) {
        st = check_channels(k, 1, 2, "gamma");
    }
    if (st != LS_OK) {
        return st;
    }
    moments = moments_shape(x, batch);
    for (size_t i = 0; i < 5; i++) {
        const ls_shape si = lsi_shape(k->in[i]);

        if (k->in[i]->dtype != x->dtype || (i > 2 && !ls_shape_equal(&si, &moments)) ||
            !ls_shape_equal(&g, &s)) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT, "input %zu, %s, does not match %s",
                              i, lsi_text_of(k->in[i]).s, lsi_text_of(x).s);
        }
    }
    st = ls_op_set_output(k, 0, (ls_dtype)x->dtype, &s);
    for (int i = 1; i < 3 && st == LS_OK; i++) {
        st = ls_op_set_output(k, i, (ls_dtype)x->dtype, &gamma);
    }
    return st;
}

/* The axes normalised together, for gradients written with operations. */
struct axes {
    int list[LS_MAX_DIMS];
    size_t n;
    double count; /* elements */
    bool batch;
};

static struct axes axes_of(const ls_tensor *x, bool batch)
{
    struct axes a = {{-1}, 1, (double)x->dims[x->ndim - 1], batch};

    if (batch) {
        a.n = (size_t)x->ndim - 1;
        a.count = 1;
        for (int i = 0; i + 1 < x->ndim; i++) {
            a.list[i] = i;
            a.count *= (double)x->dims[i];
        }
    }
    return a;
}

/* Moments, or what has their shape, ready to broadcast against x. */
static ls_tensor *spread(ls_context *c, const struct axes *a, ls_tensor *moments)
{
    return a->batch ? moments : ls_expand_dims(c, moments, -1);
}

/* The sum over what is normalised together: has the shape of the moments. */
static ls_tensor *gather(ls_context *c, const struct axes *a, ls_tensor *x)
{
    return ls_sum(c, x, a->list, a->n, false);
}

static ls_tensor *average(ls_context *c, const struct axes *a, ls_tensor *x)
{
    return ls_mean(c, x, a->list, a->n, true);
}

static ls_tensor *times(ls_context *c, ls_tensor *x, double factor)
{
    return x == NULL ? NULL : ls_mul(c, x, lsi_scalar(c, (ls_dtype)x->dtype, factor));
}

/* What reaches x through the moments themselves; NULL gradients: none did. */
static ls_tensor *through_moments(ls_context *c, const ls_op_node *n, ls_tensor *gmean,
                                  ls_tensor *gvariance, ls_tensor *grstd)
{
    ls_tensor *x = n->in[0], *mean = n->out[1], *rstd = n->out[n->nout - 1];
    const struct axes a = axes_of(x, is_batch(n->op));
    ls_tensor *dx = NULL, *slope = NULL;

    if (gmean != NULL) {
        dx =
            ls_broadcast_to(c, spread(c, &a, times(c, gmean, 1 / a.count)), lsi_shape(x));
    }
    if (gvariance != NULL) {
        slope = times(c, gvariance, 2 / a.count);
    }
    if (grstd != NULL) {
        ls_tensor *cube = ls_mul(c, ls_square(c, rstd), rstd);

        slope = lsi_add_present(c, slope, times(c, ls_mul(c, grstd, cube), -1 / a.count));
    }
    if (slope != NULL) {
        ls_tensor *centred = ls_sub(c, x, spread(c, &a, mean));

        dx = lsi_add_present(c, dx, ls_mul(c, centred, spread(c, &a, slope)));
    }
    return dx;
}

static void norm_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                          ls_tensor **gin)
{
    const bool batch = is_batch(n->op);

    if (gout[0] != NULL) {
        ls_tensor *in[5] = {gout[0], n->in[0], n->in[1], n->out[1], n->out[n->nout - 1]};

        ls_op_apply(c, batch ? &lsi_op_batch_norm_grad : &lsi_op_layer_norm_grad, in, 5,
                    NULL, 0, gin);
    }
    if (ls_op_needs(n, 0)) {
        gin[0] = lsi_add_present(
            c, gin[0],
            through_moments(c, n, gout[1], batch ? gout[2] : NULL, gout[n->nout - 1]));
    }
}

/*
 * The second derivative. With h = (x - mean) rstd and u = g gamma the row computes
 * dx = rstd (u - avg(u) - h avg(u h)), dgamma = sum(g h) and dbeta = sum(g), where the
 * moments count as inputs of their own: what reaches them goes on to x by the gradient
 * of the norm itself. P, Q and R are what reached the three.
 */
static void norm_grad_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                               ls_tensor **gin)
{
    ls_tensor *g = n->in[0], *gamma = n->in[2], *P = gout[0], *Q = gout[1], *R = gout[2];
    const struct axes a = axes_of(n->in[1], is_batch(n->op));
    ls_tensor *centred = ls_sub(c, n->in[1], spread(c, &a, n->in[3]));
    ls_tensor *rstd = spread(c, &a, n->in[4]);
    ls_tensor *h = ls_mul(c, centred, rstd), *to_h = NULL;

    if (P != NULL) {
        ls_tensor *u = ls_mul(c, g, gamma), *ph = average(c, &a, ls_mul(c, P, h));
        ls_tensor *uh = average(c, &a, ls_mul(c, u, h));
        ls_tensor *to_u =
            ls_mul(c, rstd, ls_sub(c, ls_sub(c, P, average(c, &a, P)), ls_mul(c, h, ph)));
        ls_tensor *row = ls_sub(c, ls_sub(c, u, average(c, &a, u)), ls_mul(c, h, uh));

        gin[0] = ls_mul(c, gamma, to_u);
        gin[2] = lsi_sum_to(c, ls_mul(c, g, to_u), gamma);
        gin[4] = gather(c, &a, ls_mul(c, P, row));
        to_h = ls_neg(c, ls_mul(c, rstd, ls_add(c, ls_mul(c, P, uh), ls_mul(c, u, ph))));
    }
    if (Q != NULL) {
        gin[0] = lsi_add_present(c, gin[0], ls_mul(c, h, Q));
        to_h = lsi_add_present(c, to_h, ls_mul(c, g, Q));
    }
    if (R != NULL) {
        gin[0] = lsi_add_present(c, gin[0], ls_broadcast_to(c, R, lsi_shape(g)));
    }
    if (to_h != NULL) {
        gin[1] = ls_mul(c, to_h, rstd);
        gin[3] = ls_neg(c, gather(c, &a, gin[1]));
        gin[4] = lsi_add_present(c, gin[4], gather(c, &a, ls_mul(c, to_h, centred)));
    }
}

LSI_ROW(layer_norm, 3, 3, 3, norm_shape, lsi_ref_layer_norm, norm_gradient);
LSI_ROW(layer_norm_grad, 5, 5, 3, norm_grad_shape, lsi_ref_layer_norm_grad,
        norm_grad_gradient);
LSI_ROW(batch_norm, 3, 3, 4, norm_shape, lsi_ref_batch_norm, norm_gradient);
LSI_ROW(batch_norm_grad, 5, 5, 3, norm_grad_shape, lsi_ref_batch_norm_grad,
        norm_grad_gradient);

static ls_status inference_shape(ls_op_call *k)
{
    static const char *const names[] = {"", "gamma", "beta", "mean", "variance"};
    ls_status st = check_image(k, k->in[0], 1);

    for (size_t i = 1; i < 5 && st == LS_OK; i++) {
        st = check_channels(k, 0, i, names[i]);
    }
    if (st == LS_OK) {
        st = check_epsilon(k);
    }
    return st == LS_OK ? lsi_shape_same(k) : st;
}

/* Of (x - mean) rstd gamma + beta with rstd = (variance + epsilon)^-1/2. */
static void inference_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                               ls_tensor **gin)
{
    const lsi_scalars_attrs *at = n->attrs;
    ls_tensor *x = n->in[0], *gamma = n->in[1], *mean = n->in[3], *g = gout[0];
    ls_tensor *rstd =
        ls_rsqrt(c, ls_add(c, n->in[4], lsi_scalar(c, (ls_dtype)x->dtype, at->a)));
    ls_tensor *scale = ls_mul(c, gamma, rstd);
    const bool moving = ls_op_needs(n, 1) || ls_op_needs(n, 4);
    ls_tensor *dot =
        moving ? lsi_sum_to(c, ls_mul(c, g, ls_sub(c, x, mean)), gamma) : NULL;

    if (ls_op_needs(n, 0)) {
        gin[0] = ls_mul(c, g, scale);
    }
    if (ls_op_needs(n, 1)) {
        gin[1] = ls_mul(c, dot, rstd);
    }
    if (ls_op_needs(n, 2) || ls_op_needs(n, 3)) {
        gin[2] = lsi_sum_to(c, g, gamma);
        gin[3] = ls_neg(c, ls_mul(c, gin[2], scale));
    }
    if (ls_op_needs(n, 4)) {
        gin[4] = times(c, ls_mul(c, ls_mul(c, dot, scale), ls_square(c, rstd)), -0.5);
    }
}

LSI_ROW(batch_norm_inference, 5, 5, 1, inference_shape, lsi_ref_batch_norm_inference,
        inference_gradient);

static lsi_scalars_attrs epsilon_attrs(double epsilon)
{
    lsi_scalars_attrs at;

    memset(&at, 0, sizeof at);
    at.a = epsilon;
    return at;
}

ls_tensor *(ls_layer_norm)(ls_context *c, ls_tensor *x, ls_tensor *gamma, ls_tensor *beta,
                           double epsilon)
{
    const lsi_scalars_attrs at = epsilon_attrs(epsilon);

    return lsi_op3(c, &lsi_op_layer_norm, x, gamma, beta, &at, sizeof at);
}

ls_tensor *(ls_batch_norm)(ls_context *c, ls_tensor *x, ls_tensor *gamma, ls_tensor *beta,
                           double epsilon, ls_tensor **mean, ls_tensor **variance)
{
    const lsi_scalars_attrs at = epsilon_attrs(epsilon);
    ls_tensor *in[3] = {x, gamma, beta}, *outs[LSI_MAX_OUTPUTS];

    ls_op_apply(c, &lsi_op_batch_norm, in, 3, &at, sizeof at, outs);
    if (mean != NULL) {
        *mean = outs[1];
    }
    if (variance != NULL) {
        *variance = outs[2];
    }
    return outs[0];
}

ls_tensor *(ls_batch_norm_inference)(ls_context *c, ls_tensor *x, ls_tensor *gamma,
                                     ls_tensor *beta, ls_tensor *mean,
                                     ls_tensor *variance, double epsilon)
{
    const lsi_scalars_attrs at = epsilon_attrs(epsilon);
    ls_tensor *in[5] = {x, gamma, beta, mean, variance};

    return ls_op_apply1(c, &lsi_op_batch_norm_inference, in, 5, &at, sizeof at);
}

ls_tensor *(ls_moving_average)(ls_context *c, ls_tensor *moving, ls_tensor *moment,
                               ls_tensor *x, double momentum)
{
    if (lsi_failed(c)) {
        return NULL;
    }
    if (moving == NULL || moment == NULL || x == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "moving_average: %s is NULL",
                               moving == NULL   ? "moving"
                               : moment == NULL ? "moment"
                                                : "x");
    }
    if (!(momentum >= 0 && momentum <= 1)) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT,
                               "moving_average: the momentum %g must lie in [0, 1]",
                               momentum);
    }
    moving = ls_stop_gradient(c, moving);
    if (x->count == 0) {
        return moving;
    }
    return ls_add(c, times(c, moving, momentum),
                  times(c, ls_stop_gradient(c, moment), 1 - momentum));
}
