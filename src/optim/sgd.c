/* SGD: w -= lr g; with momentum m = mu m - lr g, w += m (nesterov: w += mu m - lr g). */
#include "optim/optim.h"

static void update_plain(const lsi_step *s)
{
    if (lsi_vectors(s)) {
        s->update->sgd(s->w_out, s->w, s->g, s->n, (float)s->turn->rate);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        lsi_put_float(s->w_out, s->dtype, (int64_t)i,
                      lsi_get_float(s->w, s->dtype, (int64_t)i) -
                          s->turn->rate * lsi_get_float(s->g, s->dtype, (int64_t)i));
    }
}

static void update_momentum(const lsi_step *s)
{
    const ls_optimizer *o = s->optimizer;

    if (lsi_vectors(s)) {
        s->update->momentum(s->w_out, s->w, s->slot[0], s->g, s->n, (float)s->turn->rate,
                            (float)o->momentum, o->nesterov);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        const double g = s->turn->rate * lsi_get_float(s->g, s->dtype, (int64_t)i);
        const double m =
            o->momentum * lsi_get_float(s->slot[0], s->dtype, (int64_t)i) - g;
        const double w = lsi_get_float(s->w, s->dtype, (int64_t)i);

        lsi_put_float(s->slot[0], s->dtype, (int64_t)i, m);
        lsi_put_float(s->w_out, s->dtype, (int64_t)i,
                      w + (o->nesterov ? o->momentum * m - g : m));
    }
}

static const lsi_optim_ops plain = {{NULL}, false, true, NULL, update_plain};
static const lsi_optim_ops momentum = {{"momentum"}, false, false, NULL, update_momentum};

ls_status ls_sgd_create(const ls_sgd_options *opts, ls_optimizer **out, ls_error *err)
{
    static const ls_sgd_options defaults = LS_SGD_OPTIONS_INIT;
    ls_optimizer *o = NULL;
    ls_status st;

    if (opts == NULL) {
        opts = &defaults;
    }
    st = lsi_optimizer_options("SGD", "LS_SGD_OPTIONS_INIT",
                               opts->struct_size >= sizeof *opts, out, err);
    if (st == LS_OK && !lsi_within(opts->momentum, 0, 1)) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "SGD: the momentum %g is outside [0, 1]", opts->momentum);
    }
    if (st == LS_OK) {
        st = lsi_optimizer_new("SGD", opts->momentum > 0 ? &momentum : &plain,
                               opts->learning_rate, &opts->shared, &o, err);
    }
    if (st == LS_OK) {
        o->momentum = opts->momentum;
        o->nesterov = opts->nesterov;
        *out = o;
    }
    return st;
}
