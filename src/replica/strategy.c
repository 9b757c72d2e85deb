/* Strategy handles: creation, reference counts, and the queries of a program. */
#include "replica/replica.h"

#include <string.h>

static const lsi_strategy_ops default_ops = {
    .name = "DefaultStrategy",
    .is_default = true,
    .traits = {.should_checkpoint = true,
               .should_save_summary = true,
               .should_init = true},
};

/* Never changes and is never released, so one object serves the whole process. */
static ls_strategy default_strategy = {
    .refs = 1,
    .ops = &default_ops,
    .replicas = 1,
    .communication = LS_COMMUNICATION_OPTIONS_INIT,
};

ls_strategy *ls_default_strategy(void)
{
    return &default_strategy;
}

ls_strategy *ls_strategy_retain(ls_strategy *s)
{
    if (s != NULL && s != &default_strategy) {
        atomic_fetch_add(&s->refs, 1);
    }
    return s;
}

void ls_strategy_release(ls_strategy *s)
{
    if (s == NULL || s == &default_strategy || atomic_fetch_sub(&s->refs, 1) != 1) {
        return;
    }
    lsi_crew_release(s->crew);
    ls_cross_device_release(s->cross_device);
    ls_comm_release(s->workers);
    ls_runtime_release(s->runtime);
    lsi_free((void *)s->devices);
    lsi_free(s);
}

ls_status lsi_strategy_check(const char *what, const ls_strategy_options *opts,
                             ls_strategy **out, ls_error *err)
{
    if (out == NULL || (opts != NULL && opts->struct_size < sizeof *opts)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "%s: %s", what,
                             out == NULL
                                 ? "out is NULL"
                                 : "start the options from LS_STRATEGY_OPTIONS_INIT");
    }
    if (opts != NULL && opts->communication != NULL) {
        return ls_communication_check(opts->communication, err);
    }
    return LS_OK;
}

ls_status lsi_strategy_create(const lsi_strategy_ops *ops, ls_device **devices, int n,
                              ls_comm *workers, const ls_strategy_options *opts,
                              ls_strategy **out, ls_error *err)
{
    ls_strategy *s = lsi_alloc(1, sizeof *s);
    ls_status st;

    if (s == NULL) {
        lsi_free(devices);
        return lsi_fail_memory(err, "a strategy", sizeof *s);
    }
    atomic_init(&s->refs, 1);
    s->ops = ops;
    s->runtime = ls_runtime_retain(devices[0]->runtime);
    s->local = n;
    s->replicas = workers == NULL ? n : n * ls_comm_size(workers);
    s->first = workers == NULL ? 0 : n * ls_comm_rank(workers);
    s->workers = ls_comm_retain(workers);
    s->devices = devices;
    s->parameter_device = devices[0];
    s->communication = (ls_communication_options)LS_COMMUNICATION_OPTIONS_INIT;
    if (opts != NULL) {
        if (opts->communication != NULL) {
            ls_communication_merge(&s->communication, opts->communication);
        }
        s->cross_device = ls_cross_device_retain(opts->cross_device);
        s->sequential = opts->sequential;
        s->spin_us = opts->spin_us;
    }
    st = lsi_crew_create(s, &s->crew, err);
    if (st != LS_OK) {
        ls_strategy_release(s);
        return st;
    }
    *out = s;
    return LS_OK;
}

const char *ls_strategy_name(const ls_strategy *s)
{
    return s != NULL ? s->ops->name : NULL;
}

int ls_strategy_replicas(const ls_strategy *s)
{
    return s != NULL ? s->replicas : 0;
}

size_t ls_strategy_worker_devices(const ls_strategy *s)
{
    return s != NULL ? (size_t)s->local : 0;
}

ls_device *ls_strategy_worker_device(const ls_strategy *s, size_t i)
{
    return i < ls_strategy_worker_devices(s) ? s->devices[i] : NULL;
}

size_t ls_strategy_parameter_devices(const ls_strategy *s)
{
    return s != NULL && s->ops->one_parameter_device ? 1 : ls_strategy_worker_devices(s);
}

ls_device *ls_strategy_parameter_device(const ls_strategy *s, size_t i)
{
    if (s != NULL && s->ops->one_parameter_device) {
        return i == 0 ? s->parameter_device : NULL;
    }
    return ls_strategy_worker_device(s, i);
}

void ls_strategy_traits_of(const ls_strategy *s, ls_strategy_traits *out)
{
    ls_strategy_traits traits = {0};

    if (out == NULL) {
        return;
    }
    if (s != NULL) {
        traits = s->ops->traits;
    }
    traits.struct_size = out->struct_size;
    memcpy(out, &traits, LSI_MIN(out->struct_size, sizeof *out));
}

ls_status ls_strategy_update_config(const ls_strategy *s, ls_session_config *config,
                                    ls_error *err)
{
    if (s == NULL || config == NULL || config->struct_size < sizeof *config) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "update_config: %s",
                             s == NULL ? "the strategy is NULL"
                                       : "start it from LS_SESSION_CONFIG_INIT");
    }
    if (!s->ops->is_default) { // sessions of one process share nothing
        config->isolate_session_state = true;
        config->collective_leader = "";
        config->device_filters = 0;
    }
    return LS_OK;
}

ls_status ls_strategy_copy(ls_strategy *s, ls_strategy **out, ls_error *err)
{
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    ls_device **devices;
    ls_status st;

    if (s == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "copy: an argument is NULL");
    }
    if (s->ops->is_default) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "copy: there is one default strategy only");
    }
    devices = lsi_alloc((size_t)s->local, sizeof(ls_device *));
    if (devices == NULL) {
        return lsi_fail_memory(err, "a strategy", sizeof *s);
    }
    memcpy(devices, s->devices, (size_t)s->local * sizeof(ls_device *));
    opts.communication = &s->communication;
    opts.cross_device = s->cross_device;
    opts.sequential = s->sequential;
    opts.spin_us = s->spin_us;
    st = lsi_strategy_create(s->ops, devices, s->local, s->workers, &opts, out, err);
    if (st == LS_OK) {
        (*out)->parameter_device = s->parameter_device;
    }
    return st;
}
