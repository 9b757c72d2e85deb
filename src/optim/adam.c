/*
 * Adam as Keras has it: m += (g - m)(1 - beta1); v += (g g - v)(1 - beta2);
 * w -= m alpha / (sqrt(v) + epsilon), alpha = lr sqrt(1 - beta2^t) / (1 - beta1^t): the
 * epsilon is outside the root and not corrected. amsgrad: the largest v so far.
 */
#include "optim/optim.h"

#include <math.h>

static float prepare(const ls_optimizer *o, int64_t t)
{
    const float power1 = powf((float)o->beta1, (float)t);
    const float power2 = powf((float)o->beta2, (float)t);

    return (float)o->learning_rate * sqrtf(1.0f - power2) / (1.0f - power1);
}

static void update_one(const lsi_step *s, size_t i, bool amsgrad)
{
    const ls_optimizer *o = s->optimizer;
    const double g = lsi_get(s->dtype, s->g, i), w = lsi_get(s->dtype, s->w, i);
    double m = lsi_get(s->dtype, s->slot[0], i), v = lsi_get(s->dtype, s->slot[1], i);
    double root = 0;

    m += (g - m) * (1 - o->beta1);
    v += (g * g - v) * (1 - o->beta2);
    lsi_put(s->dtype, s->slot[0], i, m);
    lsi_put(s->dtype, s->slot[1], i, v);
    root = v;
    if (amsgrad) {
        root = fmax(lsi_get(s->dtype, s->slot[2], i), v);
        lsi_put(s->dtype, s->slot[2], i, root);
    }
    lsi_put(s->dtype, s->w_out, i, w - m * (double)s->alpha / (sqrt(root) + o->epsilon));
}

static void update_plain(const lsi_step *s)
{
    const ls_optimizer *o = s->optimizer;

    if (s->dtype == LS_F32) {
        s->update->adam(s->w_out, s->w, s->slot[0], s->slot[1], s->g, s->n, s->alpha,
                        o->beta1, o->beta2, (float)o->epsilon);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        update_one(s, i, false);
    }
}

static void update_amsgrad(const lsi_step *s)
{
    for (size_t i = 0; i < s->n; i++) {
        update_one(s, i, true);
    }
}

static const lsi_optim_ops plain = {
    "Adam", {"momentum", "velocity"}, prepare, update_plain};
static const lsi_optim_ops amsgrad = {
    "Adam", {"momentum", "velocity", "velocity_hat"}, prepare, update_amsgrad};

ls_status ls_adam_create(const ls_adam_options *opts, ls_optimizer **out, ls_error *err)
{
    static const ls_adam_options defaults = LS_ADAM_OPTIONS_INIT;
    ls_optimizer *o = NULL;
    ls_status st;

    if (opts == NULL) {
        opts = &defaults;
    }
    if (out == NULL || opts->struct_size < sizeof *opts) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "Adam: %s",
                        out == NULL ? "out is NULL"
                                    : "start the options from LS_ADAM_OPTIONS_INIT");
    }
    if (!(opts->beta1 >= 0 && opts->beta1 < 1 && opts->beta2 >= 0 && opts->beta2 < 1 &&
          opts->epsilon >= 0)) {
        return lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
            "Adam: beta1 %g and beta2 %g must be in [0, 1), epsilon %g 0 "
            "or more",
            opts->beta1, opts->beta2, opts->epsilon);
    }
    st = lsi_optimizer_new(opts->amsgrad ? &amsgrad : &plain, opts->learning_rate, &o,
                           err);
    if (st == LS_OK) {
        o->beta1 = opts->beta1;
        o->beta2 = opts->beta2;
        o->epsilon = opts->epsilon;
        o->amsgrad = opts->amsgrad;
        *out = o;
    }
    return st;
}
