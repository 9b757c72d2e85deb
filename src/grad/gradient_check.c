/* Compares gradients of the tape with central differences. */
#include "grad/gradient_check.h"

#include <math.h>

enum { MOST = 16 }; /* inputs, and outputs */

struct work {
    ls_context *c;
    lsi_check_fn fn;
    void *user;
    size_t nin, nout;
    double step;
};

/* Between 0.5 and 1.5 in size, of either sign, and no two neighbours alike. */
static double weight_of(size_t output, int64_t element)
{
    const double turns =
        0.61803398874989484 * (double)(element + 1) + 0.29 * (double)output;
    const double part = turns - floor(turns);

    return element % 2 == 0 ? 0.5 + part : -0.5 - part;
}

static bool counts(const ls_tensor *t)
{
    return t != NULL && lsi_dtype_is_float((ls_dtype)t->dtype);
}

/* sum of weight * output, for the inputs as they are. */
static ls_status evaluate(const struct work *w, ls_tensor *const *in, double *sum,
                          ls_error *err)
{
    ls_tensor *out[MOST] = {NULL};

    *sum = 0;
    w->fn(w->c, in, w->nin, out, w->nout, w->user);
    for (size_t o = 0; o < w->nout && !lsi_failed(w->c); o++) {
        ls_tensor *t = lsi_dense(w->c, out[o]);

        for (int64_t e = 0; counts(t) && e < t->count; e++) {
            *sum += weight_of(o, e) * lsi_element(t, e);
        }
    }
    return ls_context_finish(w->c, err);
}

/* The difference quotient for one element. */
static ls_status quotient(const struct work *w, ls_tensor *const *in, size_t i, int64_t e,
                          double *out, ls_error *err)
{
    const size_t bytes = (size_t)in[i]->count * sizeof(double);
    double *values = lsi_alloc_aligned(bytes, 16);
    double f[2] = {0, 0};
    ls_status st = LS_OK;

    if (values == NULL) {
        return lsi_fail_memory(err, "a difference quotient", bytes);
    }
    for (int side = 0; side < 2 && st == LS_OK; side++) {
        ls_tensor *moved[MOST];
        ls_tensor *t = NULL;

        memcpy(values, in[i]->data, bytes);
        values[e] += side == 0 ? -w->step : w->step;
        st = ls_tensor_create(w->c->device, LS_F64, ls_tensor_shape(in[i]), values, &t,
                              err);
        if (st == LS_OK) {
            memcpy(moved, in, w->nin * sizeof(ls_tensor *));
            moved[i] = t;
            st = evaluate(w, moved, &f[side], err);
        }
        ls_tensor_release(t);
    }
    lsi_free(values);
    *out = (f[1] - f[0]) / (2 * w->step);
    return st;
}

/* The tape's gradients, dense and retained; NULL where there is none. */
static ls_status by_tape(const struct work *w, ls_tensor *const *in, ls_tensor **grads,
                         ls_error *err)
{
    const ls_tape_options opts = {sizeof opts, false, true};
    ls_tape *tape = (ls_tape_open)(w->c, &opts);
    ls_tensor *out[MOST] = {NULL}, *targets[MOST], *weights[MOST], *found[MOST] = {NULL};
    size_t n = 0;

    for (size_t i = 0; i < w->nin; i++) {
        if (counts(in[i])) {
            (ls_tape_watch)(w->c, tape, in[i]);
        }
    }
    w->fn(w->c, in, w->nin, out, w->nout, w->user);
    for (size_t o = 0; o < w->nout && !lsi_failed(w->c); o++) {
        if (!counts(out[o])) {
            continue;
        }
        targets[n] = out[o];
        weights[n] =
            (ls_constant)(w->c, (ls_dtype)out[o]->dtype, ls_tensor_shape(out[o]), NULL);
        for (int64_t e = 0; weights[n] != NULL && e < out[o]->count; e++) {
            if (out[o]->dtype == LS_F64) {
                ((double *)weights[n]->data)[e] = weight_of(o, e);
            } else if (out[o]->dtype == LS_F32) {
                ((float *)weights[n]->data)[e] = (float)weight_of(o, e);
            }
        }
        n++;
    }
    (ls_gradients)(w->c, tape, targets, weights, n, in, w->nin, found);
    for (size_t i = 0; i < w->nin; i++) {
        grads[i] = lsi_failed(w->c) ? NULL : ls_tensor_retain(lsi_dense(w->c, found[i]));
    }
    return ls_context_finish(w->c, err);
}

static void compare_element(lsi_check *found, size_t i, int64_t e, double tape,
                            double numeric)
{
    double off = fabs(tape - numeric) / (1 + fabs(numeric));

    off = isnan(off) ? INFINITY : off;
    found->compared++;
    if (found->compared == 1 || off > found->worst) {
        *found = (lsi_check){found->compared, off, i, e, tape, numeric};
    }
}

ls_status lsi_check_gradient(ls_device *dev, lsi_check_fn fn, void *user,
                             ls_tensor *const *in, size_t nin, size_t nout, double step,
                             lsi_check *found, ls_error *err)
{
    struct work w = {NULL, fn, user, nin, nout, step};
    ls_tensor *grads[MOST] = {NULL};
    ls_status st;

    if (nin > MOST || nout > MOST) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "gradient check: at most %d inputs and outputs", MOST);
    }
    *found = (lsi_check){0};
    st = ls_context_open(dev, NULL, &w.c, err);
    if (st == LS_OK) {
        st = by_tape(&w, in, grads, err);
    }
    for (size_t i = 0; i < nin && st == LS_OK; i++) {
        for (int64_t e = 0; in[i]->dtype == LS_F64 && e < in[i]->count; e++) {
            double numeric = 0;

            st = quotient(&w, in, i, e, &numeric, err);
            if (st != LS_OK) {
                break;
            }
            compare_element(found, i, e, grads[i] != NULL ? lsi_element(grads[i], e) : 0,
                            numeric);
        }
    }
    for (size_t i = 0; i < nin; i++) {
        ls_tensor_release(grads[i]);
    }
    ls_context_close(w.c);
    return st;
}
