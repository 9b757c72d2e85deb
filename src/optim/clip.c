/*
 * Gradients made smaller before they are applied, and sparse ones made dense. By default
 * both begin with adding up the repeated rows of a sparse gradient. With keras3 each row
 * counts on its own: its elements are clamped, and its square enters the norm; Keras then
 * keeps the gradient sparse, but for global_clipnorm.
 */
#include "optim/optim.h"

#include <math.h>

/* The rows if there are any, and the tensor itself otherwise. */
static ls_tensor *elements(ls_tensor *g)
{
    return g->values != NULL ? g->values : g;
}

/* The gradient with other elements: `e` in the place of elements(g). */
static ls_tensor *with(ls_context *c, ls_tensor *g, ls_tensor *e)
{
    const ls_shape shape = ls_tensor_shape(g);

    return g->values == NULL || e == NULL ? e
                                          : lsi_context_sparse(c, &shape, e, g->indices);
}

/* The sum of the squares; of halves in float32, where it does not overflow at once. */
double lsi_squared_norm(ls_context *c, ls_tensor *g)
{
    ls_tensor *e = elements(g);

    if (e->dtype == LS_F16 || e->dtype == LS_BF16) {
        e = (ls_cast)(c, e, LS_F32);
    }
    return (ls_item)(c, (ls_sum)(c, (ls_square)(c, e), NULL, 0, false));
}

static ls_tensor *scale(ls_context *c, ls_tensor *g, double factor)
{
    ls_tensor *e = elements(g);

    return with(c, g, (ls_mul)(c, e, lsi_scalar(c, (ls_dtype)e->dtype, factor)));
}

/* A norm that is NaN is not within the limit, and the gradient becomes NaN visibly. */
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

    return lsi_failed(c) || factor == 1 ? g : scale(c, g, factor);
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
            grads[i] = scale(c, grads[i], factor);
        }
    }
}

static void clip(ls_context *c, const ls_optimizer_shared *s, ls_tensor **grads, size_t n)
{
    for (size_t i = 0; i < n && !lsi_failed(c); i++) {
        if (grads[i] != NULL && !s->keras3) {
            grads[i] = lsi_dense(c, grads[i]);
        }
        if (grads[i] == NULL) {
            continue;
        }
        if (s->clipvalue > 0) {
            ls_tensor *e = elements(grads[i]);

            grads[i] = with(c, grads[i], (ls_clip)(c, e, -s->clipvalue, s->clipvalue));
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
    clip(c, s, grads, n);
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
        ls_tensor *each = with(c, g, (ls_square)(c, g->values));

        *squares = each == NULL ? NULL : lsi_dense(c, each);
    }
    c->recording = recording;
    return lsi_failed(c) ? NULL : dense;
}
