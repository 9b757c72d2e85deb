/* Values by replica for one of several workers. */
#include "base/base.h"

#include "lockstep/distribute.h"

struct shifted {
    ls_value_maker fn;
    void *user;
    int first, replicas;
};

/* The ids of this worker's replicas among those of all workers. */
static ls_status shift(const ls_value_context *vc, void *user, ls_value **out,
                       ls_error *err)
{
    const struct shifted *s = user;
    const ls_value_context whole = {s->first + vc->replica_id, s->replicas, vc->device};

    return s->fn(&whole, s->user, out, err);
}

ls_status ls_strategy_values_of(ls_strategy *s, const ls_distribute_options *opts,
                                ls_value_maker fn, void *user, ls_value **out,
                                ls_error *err)
{
    struct shifted job = {fn, user, 0, 1};
    const int workers = opts != NULL && opts->workers > 0 ? opts->workers : 1;
    int local;

    if (s == NULL || fn == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "values: an argument is NULL");
    }
    if (opts != NULL && (opts->struct_size < sizeof *opts || opts->worker < 0 ||
                         opts->worker >= workers)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "values: worker %d of %d; start the options from "
                             "LS_DISTRIBUTE_OPTIONS_INIT",
                             opts->worker, workers);
    }
    local = ls_strategy_replicas(s);
    job.replicas = workers * local;
    job.first = (opts != NULL ? opts->worker : 0) * local;
    return ls_strategy_values(s, shift, &job, out, err);
}
