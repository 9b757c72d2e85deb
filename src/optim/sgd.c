/* SGD: w -= lr g; with momentum m = mu m - lr g, w += m (nesterov: w += mu m - lr g). */
#include "optim/optim.h"

static float prepare(const ls_optimizer *o, int64_t t)
{
    (void)t;
    return (float)o->learning_rate;
}

static void update_plain(const lsi_step *s)
{
    if (s->dtype == LS_F32) {
        s->update->sgd(s->w_out, s->w, s->g, s->n, s->alpha);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        lsi_put(s->dtype, s->w_out, i,
                lsi_get(s->dtype, s->w, i) -
                    s->optimizer->learning_rate * lsi_get(s->dtype, s->g, i));
    }
}

static void update_momentum(const lsi_step *s)
{
    const ls_optimizer *o = s->optimizer;

    if (s->dtype == LS_F32) {
        s->update->momentum(s->w_out, s->w, s->slot[0], s->g, s->n, s->alpha,
                            (float)o->momentum, o->nesterov);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        const double g = o->learning_rate * lsi_get(s->dtype, s->g, i);
        const double m = o->momentum * lsi_get(s->dtype, s->slot[0], i) - g;
        const double w = lsi_get(s->dtype, s->w, i);

        lsi_put(s->dtype, s->slot[0], i, m);
        lsi_put(s->dtype, s->w_out, i, w + (o->nesterov ? o->momentum * m - g : m));
    }
}

static const lsi_optim_ops plain = {"SGD", {NULL}, prepare, update_plain};
static const lsi_optim_ops momentum = {"SGD", {"momentum"}, prepare, update_momentum};

ls_status ls_sgd_create(const ls_sgd_options *opts, ls_optimizer **out, ls_error *err)
{
    static const ls_sgd_options defaults = LS_SGD_OPTIONS_INIT;
    ls_optimizer *o = NULL;
    ls_status st;

    if (opts == NULL) {
        opts = &defaults;
    }
    if (out == NULL || opts->struct_size < sizeof *opts) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "SGD: %s",
                        out == NULL ? "out is NULL"
                                    : "start the options from LS_SGD_OPTIONS_INIT");
    }
    if (!(opts->momentum >= 0 && opts->momentum <= 1)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "SGD: the momentum %g is outside [0, 1]", opts->momentum);
    }
    st = lsi_optimizer_new(opts->momentum > 0 ? &momentum : &plain, opts->learning_rate,
                           &o, err);
    if (st == LS_OK) {
        o->momentum = opts->momentum;
        o->nesterov = opts->nesterov;
        *out = o;
    }
    return st;
}
