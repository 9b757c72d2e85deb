/* Names of synchronizations and aggregations. */
#include "variable/variable.h"

#include <string.h>

static const char *const synchronizations[] = {"AUTO", "NONE", "ON_WRITE", "ON_READ"};
static const char *const aggregations[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};

const char *ls_synchronization_name(ls_synchronization s)
{
    return (size_t)s < LSI_COUNT_OF(synchronizations) ? synchronizations[s] : "?";
}

const char *ls_aggregation_name(ls_aggregation a)
{
    return (size_t)a < LSI_COUNT_OF(aggregations) ? aggregations[a] : "?";
}

ls_status ls_synchronization_from_name(const char *name, ls_synchronization *out,
                                       ls_error *err)
{
    for (size_t i = 0; name != NULL && i < LSI_COUNT_OF(synchronizations); i++) {
        if (strcmp(name, synchronizations[i]) == 0) {
            *out = (ls_synchronization)i;
            return LS_OK;
        }
    }
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                         "synchronization: '%s' is none of AUTO, NONE, ON_WRITE, ON_READ",
                         name == NULL ? "NULL" : name);
}

ls_status ls_aggregation_from_name(const char *name, ls_aggregation *out, ls_error *err)
{
    if (name != NULL && strcmp(name, "ONLY_FIRST_TOWER") == 0) { // the name in compat.v1
        *out = LS_AGGREGATE_ONLY_FIRST_REPLICA;
        return LS_OK;
    }
    for (size_t i = 0; name != NULL && i < LSI_COUNT_OF(aggregations); i++) {
        if (strcmp(name, aggregations[i]) == 0) {
            *out = (ls_aggregation)i;
            return LS_OK;
        }
    }
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                         "aggregation: '%s' is none of NONE, SUM, MEAN, "
                         "ONLY_FIRST_REPLICA",
                         name == NULL ? "NULL" : name);
}
