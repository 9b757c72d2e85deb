/* What the strategies share: how they are put together, and what is asked of them. */
#ifndef LSI_STRATEGY_H
#define LSI_STRATEGY_H
#include "variable/variable.h"

/*
 * Devices by name, separated by commas; NULL or "": all of the runtime, or the first
 * `count` if that is not 0. The list is the caller's to lsi_free().
 */
ls_status lsi_devices_parse(ls_runtime *rt, const char *names, int count,
                            ls_device ***out, int *n, ls_error *err);

/* A strategy with one replica on each device; takes `devices` over, also on failure. */
ls_status lsi_strategy_create(const lsi_strategy_ops *ops, ls_device **devices, int n,
                              const ls_strategy_options *opts, ls_strategy **out,
                              ls_error *err);

/* NULL, or options that can be used; and their runtime. */
ls_status lsi_strategy_check(const char *what, const ls_strategy_options *opts,
                             ls_strategy **out, ls_error *err);

/* The function of an update, for one component; results are retained. */
typedef struct lsi_update {
    ls_update_fn fn;
    ls_replica_fn plain; /* update_non_slot: without a variable */
    ls_value *args;
    void *user;
    bool group;
} lsi_update;

ls_status lsi_update_all(ls_strategy *s, ls_variable *v, const lsi_update *u,
                         ls_value **out, ls_error *err);
#endif
