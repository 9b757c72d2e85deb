/* OneDeviceStrategy: everything on one device; values are not wrapped. */
#include "strategy/device_list.h"
#include "variable/variable.h"

static const lsi_strategy_ops ops = {
    .name = "OneDeviceStrategy",
    .traits = {.should_checkpoint = true,
               .should_save_summary = true,
               .should_init = true},
};

ls_status ls_one_device_create(const char *device, const ls_strategy_options *opts,
                               ls_strategy **out, ls_error *err)
{
    ls_device **devices = NULL;
    int n = 0;
    ls_status st = lsi_strategy_check("one_device", opts, out, err);

    if (st == LS_OK) {
        st = lsi_devices_parse(opts != NULL ? opts->runtime : NULL, device, 1, &devices,
                               &n, err);
    }
    if (st != LS_OK) {
        return st;
    }
    if (n != 1) {
        lsi_free(devices);
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "one_device: \"%s\" names %d devices", device, n);
    }
    return lsi_strategy_create(&ops, devices, n, NULL, opts, out, err);
}
