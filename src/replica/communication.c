/*
 * ls_communication_options: names of their values, checks, and merging the options of a
 * call into those of the strategy.
 */
#include "replica/strategy.h"

#include <string.h>
#include <strings.h>

static const char *const names[] = {
    [LS_COMMUNICATION_AUTO] = "AUTO",
    [LS_COMMUNICATION_RING] = "RING",
    [LS_COMMUNICATION_NCCL] = "NCCL",
};

ls_status ls_communication_from_name(const char *name, ls_communication *out,
                                     ls_error *err)
{
    for (size_t i = 0; name != NULL && out != NULL && i < LSI_COUNT_OF(names); i++) {
        if (strcasecmp(name, names[i]) == 0) {
            *out = (ls_communication)i;
            return LS_OK;
        }
    }
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                         "communication: there is no implementation \"%.64s\"; it is "
                         "AUTO, RING or NCCL",
                         name == NULL ? "(NULL)" : name);
}

const char *ls_communication_name(ls_communication implementation)
{
    return (size_t)implementation < LSI_COUNT_OF(names) ? names[implementation] : "?";
}

ls_communication_options lsi_communication_of(const ls_communication_options *opts)
{
    ls_communication_options full = LS_COMMUNICATION_OPTIONS_INIT;

    if (opts != NULL && opts->struct_size >= sizeof opts->struct_size) {
        memcpy(&full, opts, LSI_MIN(opts->struct_size, sizeof full));
        full.struct_size = sizeof full;
    }
    return full;
}

ls_status ls_communication_check(const ls_communication_options *opts, ls_error *err)
{
    const ls_communication_options o = lsi_communication_of(opts);

    if (opts != NULL && opts->struct_size < sizeof opts->struct_size) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "communication: the options have size %zu: start them from "
                             "LS_COMMUNICATION_OPTIONS_INIT",
                             opts->struct_size);
    }
    if (o.bytes_per_pack < 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "communication: bytes_per_pack is %lld; 0 means one pack, "
                             "other packs have a size above it",
                             (long long)o.bytes_per_pack);
    }
    if ((size_t)o.implementation >= LSI_COUNT_OF(names)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "communication: %d is no implementation; it is AUTO, RING "
                             "or NCCL",
                             (int)o.implementation);
    }
    return LS_OK;
}

void ls_communication_merge(ls_communication_options *into,
                            const ls_communication_options *other)
{
    const ls_communication_options o = lsi_communication_of(other);

    if (into == NULL) {
        return;
    }
    ls_communication_options full = lsi_communication_of(into);
    if (o.bytes_per_pack != 0) {
        full.bytes_per_pack = o.bytes_per_pack;
    }
    if (o.timeout_seconds >= 0.0) {
        full.timeout_seconds = o.timeout_seconds;
    }
    if (o.implementation != LS_COMMUNICATION_AUTO) {
        full.implementation = o.implementation;
    }
    if (o.algorithm != NULL) {
        full.algorithm = o.algorithm;
    }
    // An older caller's struct is shorter: fields past its size are not written.
    const size_t size = into->struct_size;
    if (size >= sizeof size) {
        memcpy(into, &full, LSI_MIN(size, sizeof full));
        into->struct_size = size;
    }
}

ls_comm_options lsi_call_options(const ls_strategy *s,
                                 const ls_communication_options *call)
{
    ls_communication_options merged = s->communication;
    ls_comm_options opts = LS_COMM_OPTIONS_INIT;

    if (call != NULL) {
        ls_communication_merge(&merged, call);
    }
    if (merged.timeout_seconds > 0) {
        opts.timeout_ms = (int64_t)(merged.timeout_seconds * 1000);
    }
    opts.algorithm = merged.algorithm;
    return opts;
}
