/*
 * Clipping. With keras3 each replica clips its own gradients before the sum, by operations:
 * each row of a sparse one counts separately, its elements are clamped, and its square
 * enters the norm; Keras keeps the gradient sparse, except with global_clipnorm. By
 * default the sums over all replicas are clipped while they are applied, and what is
 * needed for that, norms and factors, is computed here without memory of its own.
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
static double squared_norm(ls_context *c, ls_tensor *g)
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
    const double factor = lsi_norm_factor(sqrt(squared_norm(c, g)), limit);

    return lsi_failed(c) || factor == 1 ? g : scale_gradient(c, g, factor);
}

static void clip_global(ls_context *c, ls_tensor **grads, size_t n, double limit)
{
    double sum = 0, factor;

    for (size_t i = 0; i < n && !lsi_failed(c); i++) {
        sum += grads[i] == NULL ? 0 : squared_norm(c, grads[i]);
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

/* ---- norms without memory of their own ---- */

static bool is_half(ls_dtype dtype)
{
    return dtype == LS_F16 || dtype == LS_BF16;
}

size_t lsi_norm_bytes(ls_dtype dtype, int64_t count)
{
    const size_t bytes =
        (size_t)count * (is_half(dtype) ? 2 * sizeof(float) : ls_dtype_size(dtype));

    return LSI_MAX(bytes, 1);
}

/* A list of numbers at `data`. */
static ls_tensor list_at(ls_dtype dtype, void *data, int64_t count)
{
    return (ls_tensor){.dtype = (uint8_t)dtype,
                       .ndim = 1,
                       .count = count,
                       .data = data,
                       .dims = {count}};
}

/* Runs the kernel of a row: of those used here none takes memory, so none fails. */
static void run_row(const ls_op *op, ls_device *device, ls_tensor *in, const void *attrs,
                    ls_tensor *out)
{
    ls_error e = LS_ERROR_INIT;
    ls_op_call k = {.op = op,
                    .nin = 1,
                    .in = &in,
                    .attrs = attrs,
                    .device = device,
                    .team = device->team,
                    .err = &e,
                    .out = {out}};

    if (out->count > 0) {
        const ls_status st = lsi_kernel_run(&k);

        LSI_ASSERT(st == LS_OK);
        (void)st;
    }
}

double lsi_norm_squared(ls_device *device, ls_dtype dtype, const void *elements,
                        int64_t count, void *room)
{
    static const lsi_reduce_attrs all = {.mask = 1};
    static const lsi_dtype_attrs to_f32 = {.dtype = LS_F32};
    const bool half = is_half(dtype);
    const ls_dtype wide = half ? LS_F32 : dtype;
    double result = 0;
    ls_tensor x = list_at(dtype, (void *)(uintptr_t)elements, count); // only read
    ls_tensor widened = list_at(wide, room, count);
    ls_tensor squares = list_at(wide, (float *)room + (half ? count : 0), count);
    ls_tensor sum = list_at(wide, &result, 1);

    if (half) {
        run_row(&lsi_op_cast, device, &x, &to_f32, &widened);
    }
    run_row(&lsi_op_square, device, half ? &widened : &x, NULL, &squares);
    run_row(&lsi_op_sum, device, &squares, &all, &sum);
    return lsi_element(&sum, 0);
}
