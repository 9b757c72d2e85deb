/* MirroredStrategy: a copy of every variable on each device, one replica a device. */
#include "strategy/strategy.h"

#include <stdio.h>
#include <string.h>

static const lsi_strategy_ops ops = {
    .kind = LSI_MIRRORED,
    .name = "MirroredStrategy",
    .create_variable = lsi_create_mirrored,
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
    return lsi_strategy_create(&ops, list, n, opts, out, err);
}
