/*
 * Clipping of gradients, and sparse gradients made dense. By default both first add up
 * the repeated rows of a sparse gradient. With keras3 each row counts separately: its
 * elements are clamped, and its square enters the norm; Keras then keeps the gradient
 * sparse, except with global_clipnorm.
 */
#include "optim/optim.h"

#include <math.h>

/* The rows of a sparse gradient; a dense gradient itself. */
static ls_tensor *elements_of(ls_tensor *g)
{
    return g->values != NULL ? g->values : g;
}

/* The gradient with other elements: `e` replaces elements_of(g). */
static ls_tensor *with_elements(ls_context *c, ls_tensor *g, ls_tensor *e)
{
    const ls_shape shape = ls_tensor_shape(g);

    return g->values == NULL || e == NULL ? e
                                          : lsi_context_sparse(c, &shape, e, g->indices);
}

/* The sum of the squares; 16-bit types are summed in float32, to avoid overflow. */
double lsi_squared_norm(ls_context *c, ls_tensor *g)
{
    ls_tensor *e = elements_of(g);

    if (e->dtype == LS_F16 || e->dtype == LS_BF16) {
        e = (ls_cast)(c, e, LS_F32);
    }
    return (ls_item)(c, (ls_sum)(c, (ls_square)(c, e), NULL, 0, false));
}

static ls_tensor *scale_gradient(ls_context *c, ls_tensor *g, double factor)
{
    ls_tensor *e = elements_of(g);

    return with_elements(c, g, (ls_mul)(c, e, lsi_scalar(c, (ls_dtype)e->dtype, factor)));
}

/* A norm that is NaN is not within the limit, so the gradient becomes NaN. */
double lsi_norm_factor(double norm, double limit)
{
    return norm <= limit ? 1 : limit / norm;
}

/* As in Keras a norm that is infinite or NaN makes all of the gradients NaN. */
double lsi_global_factor(double norm, double limit)
{
    return norm <= limit ? 1 : isfinite(norm) ? limit / norm : (double)NAN;
}

static ls_tensor *clip_norm(ls_context *c, ls_tensor *g, double limit)
{
    const double factor = lsi_norm_factor(sqrt(lsi_squared_norm(c, g)), limit);

    return lsi_failed(c) || factor == 1 ? g : scale_gradient(c, g, factor);
}

static void clip_global(ls_context *c, ls_tensor **grads, size_t n, double limit)
{
    double sum = 0, factor;

    for (size_t i = 0; i < n && !lsi_failed(c); i++) {
        sum += grads[i] == NULL ? 0 : lsi_squared_norm(c, grads[i]);
    }
    factor = lsi_global_factor(sqrt(sum), limit);
    for (size_t i = 0; i < n && !lsi_failed(c); i++) {
        if (grads[i] != NULL) {
            grads[i] = lsi_dense(c, grads[i]);
        }
        if (grads[i] != NULL && factor != 1) {
            grads[i] = scale_gradient(c, grads[i], factor);
        }
    }
}

static void clip_gradients(ls_context *c, const ls_optimizer_shared *s, ls_tensor **grads,
                           size_t n)
{
    for (size_t i = 0; i < n && !lsi_failed(c); i++) {
        if (grads[i] != NULL && !s->keras3) {
            grads[i] = lsi_dense(c, grads[i]);
        }
        if (grads[i] == NULL) {
            continue;
        }
        if (s->clipvalue > 0) {
            ls_tensor *e = elements_of(grads[i]);

            grads[i] =
                with_elements(c, grads[i], (ls_clip)(c, e, -s->clipvalue, s->clipvalue));
        } else if (s->clipnorm > 0) {
            grads[i] = clip_norm(c, grads[i], s->clipnorm);
        }
    }
    if (s->global_clipnorm > 0) {
        clip_global(c, grads, n, s->global_clipnorm);
    }
}

void lsi_clip(ls_context *c, const ls_optimizer *o, ls_tensor **grads, size_t n)
{
    const ls_optimizer_shared *s = &o->shared;
    uint16_t recording;

    if (lsi_failed(c) ||
        (s->clipvalue == 0 && s->clipnorm == 0 && s->global_clipnorm == 0)) {
        return;
    }
    recording = c->recording;
    c->recording = 0;
    clip_gradients(c, s, grads, n);
    c->recording = recording;
}

const ls_tensor *lsi_gradient_dense(ls_context *c, const ls_optimizer *o, ls_tensor *g,
                                    const ls_tensor **squares)
{
    const uint16_t recording = c->recording;
    const ls_tensor *dense;

    *squares = NULL;
    c->recording = 0;
    dense = lsi_dense(c, g);
    if (dense != NULL && g->values != NULL && o->shared.keras3 && o->ops->squares) {
        ls_tensor *each = with_elements(c, g, (ls_square)(c, g->values));

        *squares = each == NULL ? NULL : lsi_dense(c, each);
    }
    c->recording = recording;
    return lsi_failed(c) ? NULL : dense;
}
