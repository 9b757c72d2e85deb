/*
 * Adam as Keras has it: m += (g - m)(1 - beta1); v += (g g - v)(1 - beta2);
 * w -= m alpha / (sqrt(v) + epsilon), alpha = lr sqrt(1 - beta2^t) / (1 - beta1^t): the
 * epsilon is outside the root and not corrected. amsgrad: the largest v so far.
 */
#include "optim/optim.h"

#include <math.h>

static void prepare_adam(const ls_optimizer *o, lsi_optimizer_turn *turn)
{
    const float power1 = powf((float)o->beta1, (float)turn->t);
    const float power2 = powf((float)o->beta2, (float)turn->t);
    const double t = (double)turn->t;

    turn->alpha32 = (float)turn->rate * sqrtf(1.0f - power2) / (1.0f - power1);
    turn->alpha = turn->rate * sqrt(1 - pow(o->beta2, t)) / (1 - pow(o->beta1, t));
}

static void update_one(const lsi_step *s, size_t i)
{
    const ls_optimizer *o = s->optimizer;
    const double g = lsi_get_float(s->g, s->dtype, (int64_t)i),
                 w = lsi_get_float(s->w, s->dtype, (int64_t)i);
    double m = lsi_get_float(s->slot[0], s->dtype, (int64_t)i),
           v = lsi_get_float(s->slot[1], s->dtype, (int64_t)i);
    double root = 0;

    m += (g - m) * (1 - o->beta1);
    v += (lsi_square_at(s, i) - v) * (1 - o->beta2);
    lsi_put_float(s->slot[0], s->dtype, (int64_t)i, m);
    lsi_put_float(s->slot[1], s->dtype, (int64_t)i, v);
    root = v;
    if (s->slot[2] != NULL) {
        root = lsi_larger(lsi_get_float(s->slot[2], s->dtype, (int64_t)i), v);
        lsi_put_float(s->slot[2], s->dtype, (int64_t)i, root);
    }
    lsi_put_float(s->w_out, s->dtype, (int64_t)i,
                  w - m * s->turn->alpha / (sqrt(root) + o->epsilon));
}

/* float32 with separate squares: rounded as Keras does, unlike the loop in double. */
static void update_f32(const lsi_step *s)
{
    const ls_optimizer *o = s->optimizer;
    const float c1 = (float)(1.0 - o->beta1), c2 = (float)(1.0 - o->beta2);
    const float *w = s->w, *g = s->g, *squares = s->squares;
    float *to = s->w_out, *m = s->slot[0], *v = s->slot[1], *hat = s->slot[2];

    for (size_t i = 0; i < s->n; i++) {
        float root;

        m[i] += (g[i] - m[i]) * c1;
        v[i] += (squares[i] - v[i]) * c2;
        root = v[i];
        if (hat != NULL) {
            root = hat[i] = (float)lsi_larger((double)hat[i], (double)v[i]);
        }
        to[i] = w[i] - m[i] * s->turn->alpha32 / (sqrtf(root) + (float)o->epsilon);
    }
}

static void update(const lsi_step *s)
{
    const ls_optimizer *o = s->optimizer;

    if (lsi_vectors(s)) {
        s->update->adam(s->w_out, s->w, s->slot[0], s->slot[1], s->slot[2], s->g, s->n,
                        s->turn->alpha32, o->beta1, o->beta2, (float)o->epsilon);
        return;
    }
    if (s->dtype == LS_F32) {
        update_f32(s);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        update_one(s, i);
    }
}

static const lsi_optim_ops plain = {
    {"momentum", "velocity"}, true, false, prepare_adam, update};
static const lsi_optim_ops amsgrad = {
    {"momentum", "velocity", "velocity_hat"}, true, false, prepare_adam, update};

ls_status lsi_adam_new(const char *name, const char *init, const ls_adam_options *opts,
                       ls_optimizer **out, ls_error *err)
{
    ls_optimizer *o = NULL;
    ls_status st =
        lsi_optimizer_options(name, init, opts->struct_size >= sizeof *opts, out, err);

    if (st == LS_OK && !(lsi_within(opts->beta1, 0, 1) && opts->beta1 < 1 &&
                         lsi_within(opts->beta2, 0, 1) && opts->beta2 < 1 &&
                         lsi_within(opts->epsilon, 0, HUGE_VAL))) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "%s: beta1 %g and beta2 %g must be in [0, 1), epsilon %g 0 or "
                           "more",
                           name, opts->beta1, opts->beta2, opts->epsilon);
    }
    if (st == LS_OK) {
        st = lsi_optimizer_new(name, opts->amsgrad ? &amsgrad : &plain,
                               opts->learning_rate, &opts->shared, &o, err);
    }
    if (st == LS_OK) {
        o->beta1 = opts->beta1;
        o->beta2 = opts->beta2;
        o->epsilon = opts->epsilon;
        *out = o;
    }
    return st;
}

ls_status ls_adam_create(const ls_adam_options *opts, ls_optimizer **out, ls_error *err)
{
    static const ls_adam_options defaults = LS_ADAM_OPTIONS_INIT;

    return lsi_adam_new("Adam", "LS_ADAM_OPTIONS_INIT", opts == NULL ? &defaults : opts,
                        out, err);
}
