/* Adagrad: a += g g, a starts above 0; w -= lr g / sqrt(a + epsilon). */
#include "optim/optim.h"

#include <math.h>

/* float32 with separate squares: rounded as Keras does, unlike the loop in double. */
static void update_f32(const lsi_step *s)
{
    const float rate = (float)s->turn->rate, epsilon = (float)s->optimizer->epsilon;
    const float *w = s->w, *g = s->g, *squares = s->squares;
    float *to = s->w_out, *a = s->slot[0];

    for (size_t i = 0; i < s->n; i++) {
        a[i] += squares[i];
        to[i] = w[i] - rate * g[i] / sqrtf(a[i] + epsilon);
    }
}

static void update(const lsi_step *s)
{
    const ls_optimizer *o = s->optimizer;

    if (lsi_vectors(s)) {
        s->update->adagrad(s->w_out, s->w, s->slot[0], s->g, s->n, (float)s->turn->rate,
                           (float)o->epsilon);
        return;
    }
    if (s->dtype == LS_F32) {
        update_f32(s);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        const double a =
            lsi_get_float(s->slot[0], s->dtype, (int64_t)i) + lsi_square_at(s, i);
        const double g = lsi_get_float(s->g, s->dtype, (int64_t)i),
                     w = lsi_get_float(s->w, s->dtype, (int64_t)i);

        lsi_put_float(s->slot[0], s->dtype, (int64_t)i, a);
        lsi_put_float(s->w_out, s->dtype, (int64_t)i,
                      w - s->turn->rate * g / sqrt(a + o->epsilon));
    }
}

static const lsi_optim_ops ops = {{"accumulator"}, true, true, NULL, update};

static ls_status check_adagrad(const ls_adagrad_options *opts, ls_error *err)
{
    if (lsi_within(opts->initial_accumulator_value, 0, HUGE_VAL) &&
        lsi_within(opts->epsilon, 0, HUGE_VAL)) {
        return LS_OK;
    }
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                         "Adagrad: the initial accumulator value %g and epsilon %g must "
                         "be numbers of 0 or more",
                         opts->initial_accumulator_value, opts->epsilon);
}

ls_status ls_adagrad_create(const ls_adagrad_options *opts, ls_optimizer **out,
                            ls_error *err)
{
    static const ls_adagrad_options defaults = LS_ADAGRAD_OPTIONS_INIT;
    ls_optimizer *o = NULL;
    ls_status st;

    if (opts == NULL) {
        opts = &defaults;
    }
    st = lsi_optimizer_options("Adagrad", "LS_ADAGRAD_OPTIONS_INIT",
                               opts->struct_size >= sizeof *opts, out, err);
    if (st == LS_OK) {
        st = check_adagrad(opts, err);
    }
    if (st == LS_OK) {
        st = lsi_optimizer_new("Adagrad", &ops, opts->learning_rate, &opts->shared, &o,
                               err);
    }
    if (st == LS_OK) {
        o->initial = opts->initial_accumulator_value;
        o->epsilon = opts->epsilon;
        *out = o;
    }
    return st;
}
