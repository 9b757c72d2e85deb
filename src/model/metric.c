/*
 * Metrics. The state of a metric is ON_READ variables that are summed when read: replicas
 * add to their own copies, and a reader outside of replicas gets the total.
 */
#include "model/model.h"

#include "lockstep/metric.h"

enum { TOTAL, COUNT, STATES };

struct ls_metric {
    atomic_int refs;
    char *name;
    ls_variable *state[STATES];
};

static ls_status create_state(ls_metric *m, ls_error *err)
{
    static const char *const names[STATES] = {"total", "count"};
    ls_tensor *zero = NULL;
    ls_status st = ls_tensor_create(NULL, LS_F32, LS_SCALAR, NULL, &zero, err);

    for (int i = 0; st == LS_OK && i < STATES; i++) {
        ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;

        opts.name = names[i];
        opts.not_trainable = true;
        opts.synchronization = LS_SYNC_ON_READ;
        opts.aggregation = LS_AGGREGATE_SUM;
        st = ls_variable_create(zero, &opts, &m->state[i], err);
    }
    ls_tensor_release(zero);
    return st;
}

ls_status ls_metric_mean_create(const char *name, ls_metric **out, ls_error *err)
{
    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "metric: out is NULL");
    }
    ls_metric *m = lsi_alloc(1, sizeof *m);
    if (m == NULL) {
        return lsi_fail_memory(err, "a metric", sizeof *m);
    }
    atomic_init(&m->refs, 1);
    m->name = lsi_strdup(name != NULL ? name : "mean");
    const ls_status st = m->name == NULL ? lsi_fail_memory(err, "a metric's name", 0)
                                         : create_state(m, err);
    if (st != LS_OK) {
        ls_metric_release(m);
        return st;
    }
    *out = m;
    return LS_OK;
}

ls_metric *ls_metric_retain(ls_metric *m)
{
    if (m != NULL) {
        (void)atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    }
    return m;
}

void ls_metric_release(ls_metric *m)
{
    if (m == NULL || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (int i = 0; i < STATES; i++) {
        ls_variable_release(m->state[i]);
    }
    lsi_free(m->name);
    lsi_free(m);
}

const char *ls_metric_name(const ls_metric *m)
{
    return m != NULL ? m->name : NULL;
}

ls_variable *ls_metric_variable(const ls_metric *m, size_t i)
{
    return m != NULL && i < STATES ? m->state[i] : NULL;
}

static bool is_usable(ls_context *c, const ls_metric *m)
{
    if (m == NULL) {
        (void)(ls_context_fail)(c, LS_INVALID_ARGUMENT, "the metric is NULL");
    }
    return !lsi_failed(c);
}

/* The mean over the axes from `first` on; the tensor itself if there are no such axes. */
static ls_tensor *mean_from(ls_context *c, ls_tensor *t, int first)
{
    int axes[LS_MAX_DIMS];
    size_t n = 0;

    for (int i = first; t != NULL && i < t->ndim; i++) {
        axes[n++] = i;
    }
    return n == 0 ? t : (ls_mean)(c, t, axes, n, false);
}

/*
 * As in Keras: axes that only the values have are averaged first, so a weight applies to
 * a whole batch or to a whole row of it.
 */
static bool weigh_values(ls_context *c, ls_tensor **values, ls_tensor **weights)
{
    const int last = -1;

    if ((*weights)->dtype != LS_F32) {
        *weights = ls_cast(c, *weights, LS_F32);
    }
    if (*weights != NULL && (*weights)->ndim == (*values)->ndim + 1) {
        *weights = ls_squeeze(c, *weights, &last, 1);
    }
    if (*weights != NULL) {
        *values = mean_from(c, *values, (*weights)->ndim);
    }
    if (lsi_failed(c)) {
        return false;
    }
    *weights = ls_broadcast_to(c, *weights, ls_tensor_shape(*values));
    *values = ls_mul(c, *values, *weights);
    *weights = mean_from(c, *weights, 1);
    return !lsi_failed(c);
}

void(ls_metric_add)(ls_context *c, ls_metric *m, ls_tensor *values, ls_tensor *weights)
{
    ls_tensor *count;

    if (!is_usable(c, m) || values == NULL || values->count == 0) {
        return; // an empty tensor has no mean, whatever its weight
    }
    if (values->dtype != LS_F32) {
        values = ls_cast(c, values, LS_F32);
    }
    if (values == NULL || (weights != NULL && !weigh_values(c, &values, &weights))) {
        return;
    }
    count = weights != NULL
                ? (ls_sum)(c, weights, NULL, 0, false)
                : lsi_scalar(c, LS_F32, values->ndim > 0 ? (double)values->dims[0] : 1);
    values = mean_from(c, values, 1);
    (void)ls_assign_add(c, m->state[TOTAL], (ls_sum)(c, values, NULL, 0, false));
    (void)ls_assign_add(c, m->state[COUNT], count);
}

ls_tensor *(ls_metric_result)(ls_context *c, ls_metric *m)
{
    if (!is_usable(c, m)) {
        return NULL;
    }
    ls_tensor *total = ls_read(c, m->state[TOTAL]);
    ls_tensor *count = ls_read(c, m->state[COUNT]);
    ls_tensor *none = ls_equal(c, count, lsi_scalar(c, LS_F32, 0.0));
    ls_tensor *divisor = ls_where(c, none, lsi_scalar(c, LS_F32, 1.0), count);
    return ls_where(c, none, lsi_scalar(c, LS_F32, 0.0), ls_div(c, total, divisor));
}

ls_status ls_metric_reset(ls_metric *m, ls_error *err)
{
    ls_tensor *zero = NULL;

    if (m == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "reset: the metric is NULL");
    }
    ls_status st = ls_tensor_create(ls_variable_device(m->state[TOTAL]), LS_F32,
                                    LS_SCALAR, NULL, &zero, err);
    for (int i = 0; st == LS_OK && i < STATES; i++) {
        st = ls_variable_set(m->state[i], zero, err);
    }
    ls_tensor_release(zero);
    return st;
}
