/*
 * RMSprop as Keras has it: v = rho v + (1 - rho) g g; d = lr g / sqrt(v + epsilon), the
 * epsilon inside the root; w -= d, or with momentum m = mu m + d, w -= m. Centered: with
 * a = rho a + (1 - rho) g the root is that of the variance, v - a a + epsilon.
 *
 * v >= a a holds but for rounding; where rounding makes it negative it counts as 0 here,
 * while Keras takes the root of a negative number: a gradient that stays the same for
 * some dozens of steps gives NaN there.
 */
#include "optim/optim.h"

#include <math.h>

/* float32 with separate squares: rounded as Keras does, unlike the loop in double. */
static void update_f32(const lsi_step *s, float *m, float *a)
{
    const ls_optimizer *o = s->optimizer;
    const float keep = (float)o->rho, take = (float)(1.0 - o->rho);
    const float *w = s->w, *g = s->g, *squares = s->squares;
    float *to = s->w_out, *v = s->slot[0];

    for (size_t i = 0; i < s->n; i++) {
        float d;

        v[i] = keep * v[i] + take * squares[i];
        d = v[i];
        if (a != NULL) {
            a[i] = keep * a[i] + take * g[i];
            d = (float)lsi_larger((double)(v[i] - a[i] * a[i]), 0);
        }
        d = (float)s->turn->rate * g[i] / sqrtf(d + (float)o->epsilon);
        if (m != NULL) {
            d = m[i] = (float)o->momentum * m[i] + d;
        }
        to[i] = w[i] - d;
    }
}

static void update(const lsi_step *s, void *m, void *a)
{
    const ls_optimizer *o = s->optimizer;

    if (lsi_vectors(s)) {
        s->update->rmsprop(s->w_out, s->w, s->slot[0], m, a, s->g, s->n,
                           (float)s->turn->rate, o->rho, (float)o->momentum,
                           (float)o->epsilon);
        return;
    }
    if (s->dtype == LS_F32) {
        update_f32(s, m, a);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        const double g = lsi_get_float(s->g, s->dtype, (int64_t)i),
                     w = lsi_get_float(s->w, s->dtype, (int64_t)i);
        const double v = o->rho * lsi_get_float(s->slot[0], s->dtype, (int64_t)i) +
                         (1 - o->rho) * lsi_square_at(s, i);
        double d = v;

        lsi_put_float(s->slot[0], s->dtype, (int64_t)i, v);
        if (a != NULL) {
            const double mean =
                o->rho * lsi_get_float(a, s->dtype, (int64_t)i) + (1 - o->rho) * g;

            lsi_put_float(a, s->dtype, (int64_t)i, mean);
            d = lsi_larger(v - mean * mean, 0);
        }
        d = s->turn->rate * g / sqrt(d + o->epsilon);
        if (m != NULL) {
            d += o->momentum * lsi_get_float(m, s->dtype, (int64_t)i);
            lsi_put_float(m, s->dtype, (int64_t)i, d);
        }
        lsi_put_float(s->w_out, s->dtype, (int64_t)i, w - d);
    }
}

static void update_plain(const lsi_step *s)
{
    update(s, NULL, NULL);
}

static void update_momentum(const lsi_step *s)
{
    update(s, s->slot[1], NULL);
}

static void update_centered(const lsi_step *s)
{
    update(s, NULL, s->slot[1]);
}

static void update_both(const lsi_step *s)
{
    update(s, s->slot[1], s->slot[2]);
}

/* The formula by options: bit 0 momentum, bit 1 centered. */
static const lsi_optim_ops variants[] = {
    {{"velocity"}, true, false, NULL, update_plain},
    {{"velocity", "momentum"}, true, false, NULL, update_momentum},
    {{"velocity", "average_gradient"}, true, false, NULL, update_centered},
    {{"velocity", "momentum", "average_gradient"}, true, false, NULL, update_both},
};

static ls_status check_rmsprop(const ls_rmsprop_options *opts, ls_error *err)
{
    if (lsi_within(opts->rho, 0, 1) && lsi_within(opts->momentum, 0, 1) &&
        lsi_within(opts->epsilon, 0, HUGE_VAL)) {
        return LS_OK;
    }
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                         "RMSprop: rho %g and momentum %g must be in [0, 1], epsilon %g "
                         "0 or more",
                         opts->rho, opts->momentum, opts->epsilon);
}

ls_status ls_rmsprop_create(const ls_rmsprop_options *opts, ls_optimizer **out,
                            ls_error *err)
{
    static const ls_rmsprop_options defaults = LS_RMSPROP_OPTIONS_INIT;
    ls_optimizer *o = NULL;
    ls_status st;

    if (opts == NULL) {
        opts = &defaults;
    }
    st = lsi_optimizer_options("RMSprop", "LS_RMSPROP_OPTIONS_INIT",
                               opts->struct_size >= sizeof *opts, out, err);
    if (st == LS_OK) {
        st = check_rmsprop(opts, err);
    }
    if (st == LS_OK) {
        const int variant = (opts->momentum > 0 ? 1 : 0) + (opts->centered ? 2 : 0);

        st = lsi_optimizer_new("RMSprop", &variants[variant], opts->learning_rate,
                               &opts->shared, &o, err);
    }
    if (st == LS_OK) {
        o->rho = opts->rho;
        o->momentum = opts->momentum;
        o->epsilon = opts->epsilon;
        *out = o;
    }
    return st;
}
