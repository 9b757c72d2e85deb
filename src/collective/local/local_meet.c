/*
 * Meetings: the ranks of a local group show each other a pointer each, as bytes that are
 * gathered. Only threads of one process can do that.
 */
#include "collective/local/local.h"

ls_status lsi_local_meet(ls_comm *comm, const char *tag, uint64_t detail, void *mine,
                         void **all, const ls_comm_options *opts, lsi_comm_site site,
                         ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_MEET,
                     .dtype = LS_U8,
                     .size = 1,
                     .count = sizeof mine,
                     .peer = -1,
                     .from = (const void *)&mine,
                     .to = (void *)all,
                     .tag = tag,
                     .detail = detail,
                     .site = site};

    if (comm->backend != &lsi_backend_local) {
        return lsi_fail(err, LS_UNIMPLEMENTED, -1,
                        "%s: ranks of a %s group cannot show each other pointers; only "
                        "threads of one process can",
                        tag, comm->backend->name);
    }
    return lsi_comm_call(comm, &call, opts, NULL, err);
}
