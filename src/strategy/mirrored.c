/* MirroredStrategy: a copy of every variable on each device, one replica per device. */
#include "strategy/mirrored.h"
#include "strategy/device_list.h"
#include "variable/variable.h"

#include <stdio.h>
#include <string.h>

static ls_status check_variable(const ls_tensor *value, const ls_variable_options *opts,
                                ls_error *err)
{
    const ls_status st = lsi_check_aggregation(opts, err);

    if (st != LS_OK) {
        return st;
    }
    if (opts->synchronization == LS_SYNC_NONE ||
        (unsigned)opts->synchronization > LS_SYNC_ON_READ) {
        return lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
            "variable '%s': the synchronization %s is not for a mirrored "
            "strategy; use AUTO, ON_WRITE or ON_READ",
            opts->name, ls_synchronization_name(opts->synchronization));
    }
    if (opts->aggregation == LS_AGGREGATE_MEAN &&
        !lsi_dtype_is_float((ls_dtype)value->dtype)) {
        return lsi_fail_kind(
            err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
            "variable '%s': the aggregation MEAN is for floating dtypes, "
            "not for %s",
            opts->name, ls_dtype_name((ls_dtype)value->dtype));
    }
    return LS_OK;
}

/* The devices of the colocated variable's copies; NULL: there is none, or no memory. */
static ls_device **colocated_devices(int *n)
{
    const ls_variable *v = lsi_variable_colocated();
    ls_device **devices;

    if (v == NULL) {
        return NULL;
    }
    *n = (int)ls_variable_components(v);
    devices = lsi_alloc((size_t)*n, sizeof(ls_device *));
    for (int i = 0; devices != NULL && i < *n; i++) {
        devices[i] = ls_variable_component(v, (size_t)i)->device;
    }
    return devices;
}

ls_status lsi_mirrored_create_variable(ls_strategy *s, const ls_tensor *value,
                                       const ls_variable_options *opts, ls_variable **out,
                                       ls_error *err)
{
    const bool on_read = opts->synchronization == LS_SYNC_ON_READ;
    ls_variable_options settled = *opts;
    ls_device **devices = NULL;
    int n = 0;
    ls_status st = check_variable(value, opts, err);

    if (st != LS_OK) {
        return st;
    }
    if (!on_read) {
        settled.synchronization = LS_SYNC_ON_WRITE;
    }
    devices = colocated_devices(&n);
    st = lsi_variable_create_on(
        on_read ? &lsi_sync_on_read_variable : &lsi_mirrored_variable, s,
        devices != NULL ? devices : s->devices, devices != NULL ? n : s->local, value,
        &settled, out, err);
    lsi_free(devices);
    return st;
}

static const lsi_strategy_ops ops = {
    .name = "MirroredStrategy",
    .per_replica = true,
    .copies_variables = true,
    .create_variable = lsi_mirrored_create_variable,
    .traits = {.should_checkpoint = true,
               .should_save_summary = true,
               .should_init = true},
};

static void log_devices(ls_device *const *devices, int n)
{
    char text[400] = "";
    size_t at = 0;

    for (int i = 0; i < n && at + 1 < sizeof text; i++) {
        const int w = snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? ", " : "",
                               devices[i]->name);

        at += w > 0 ? (size_t)w : 0;
    }
    lsi_log(LS_LOG_INFO, "MirroredStrategy on (%s)", text);
    if (lsi_env("TF_CONFIG") != NULL) {
        lsi_log(LS_LOG_INFO, "MirroredStrategy: TF_CONFIG is set and ignored: this "
                             "strategy runs in one process");
    }
}

ls_status ls_mirrored_create(const char *devices, const ls_strategy_options *opts,
                             ls_strategy **out, ls_error *err)
{
    ls_device **list = NULL;
    int n = 0;
    ls_status st = lsi_strategy_check("mirrored", opts, out, err);

    if (st == LS_OK) {
        st = lsi_devices_parse(opts != NULL ? opts->runtime : NULL, devices, 0, &list, &n,
                               err);
    }
    if (st != LS_OK) {
        return st;
    }
    log_devices(list, n);
    return lsi_strategy_create(&ops, list, n, NULL, opts, out, err);
}
