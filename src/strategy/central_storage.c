/* CentralStorageStrategy: one copy of every variable, used by several replicas. */
#include "strategy/device_list.h"
#include "variable/variable.h"

/* With one replica the variable is plain; several replicas write it one at a time. */
static ls_status create_variable(ls_strategy *s, const ls_tensor *value,
                                 const ls_variable_options *opts, ls_variable **out,
                                 ls_error *err)
{
    const ls_variable *beside = lsi_variable_colocated();
    ls_device *device = beside != NULL ? beside->device : s->parameter_device;
    ls_variable_options placed = *opts;
    ls_status st;

    if (s->local == 1) {
        placed.device = device;
        return lsi_create_plain(s, value, &placed, out, err);
    }
    st = lsi_check_aggregation(opts, err);
    return st == LS_OK ? lsi_variable_create_on(&lsi_aggregating_variable, s, &device, 1,
                                                value, opts, out, err)
                       : st;
}

static const lsi_strategy_ops ops = {
    .name = "CentralStorageStrategy",
    .per_replica = true,
    .one_parameter_device = true,
    .combines_on_one_device = true,
    .create_variable = create_variable,
    .traits = {.should_checkpoint = true,
               .should_save_summary = true,
               .between_graph = true,
               .should_init = true},
};

ls_status ls_central_storage_create(const char *devices, const char *parameter_device,
                                    const ls_strategy_options *opts, ls_strategy **out,
                                    ls_error *err)
{
    ls_runtime *rt = opts != NULL ? opts->runtime : NULL;
    ls_device **list = NULL, *parameters = NULL;
    int n = 0;
    ls_status st = lsi_strategy_check("central_storage", opts, out, err);

    if (st == LS_OK) {
        st = lsi_devices_parse(rt, devices, 1, &list, &n, err);
    }
    if (st != LS_OK) {
        return st;
    }
    parameters = n == 1 ? list[0] : ls_runtime_device(list[0]->runtime, 0);
    if (parameter_device != NULL) {
        st = ls_runtime_find_device(rt, parameter_device, &parameters, err);
    }
    if (st != LS_OK) {
        lsi_free(list);
        return st;
    }
    st = lsi_strategy_create(&ops, list, n, NULL, opts, out, err);
    if (st == LS_OK) {
        (*out)->parameter_device = parameters;
    }
    return st;
}
