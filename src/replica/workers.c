/*
 * The step over workers: what local replicas have combined is combined over the workers
 * of the strategy, by the communicator that it holds.
 */
#define LS_NO_PLACES
#include "replica/run.h"

int lsi_workers(const ls_strategy *s)
{
    return s->workers == NULL ? 1 : ls_comm_size(s->workers);
}

bool lsi_workers_all_failed(const ls_context *c)
{
    const lsi_replica *r = lsi_replica_of(c);

    return r != NULL && r->run != NULL && atomic_load(&r->run->agreed);
}

ls_status lsi_workers_note(const ls_strategy *s, ls_status st)
{
    const bool agreed = st != LS_OK && !lsi_comm_broken(s->workers);

    for (const lsi_mode *m = lsi_mode_now(); m != NULL; m = m->outer) {
        const lsi_replica *r = lsi_replica_of(m->context);
        struct lsi_run *run = m->run != NULL ? m->run : r != NULL ? r->run : NULL;

        if (m->strategy == s && run != NULL) {
            atomic_store(&run->agreed, agreed);
        }
    }
    return st;
}

ls_status lsi_workers_decline(ls_strategy *s, const lsi_workers_call *call,
                              const ls_error *why, ls_error *err)
{
    return lsi_workers_note(s, lsi_comm_decline(s->workers, why, call->site, err));
}

ls_status lsi_workers_reduce(ls_strategy *s, const lsi_workers_sum *sum, ls_status st,
                             const ls_error *why, ls_error *err)
{
    const ls_comm_options opts = lsi_call_options(s, sum->call.opts);
    const lsi_comm_reduction reduction = {.op = sum->op,
                                          .dtype = sum->dtype,
                                          .pieces = sum->pieces,
                                          .n = sum->n,
                                          .ids = sum->ids,
                                          .tag = sum->call.what,
                                          .detail = sum->call.detail};

    LSI_ASSERT(s->workers != NULL);
    if (st != LS_OK) {
        return lsi_workers_decline(s, &sum->call, why, err);
    }
    st = lsi_comm_all_reduce_pieces(s->workers, &reduction, &opts, sum->call.site, err);
    return lsi_workers_note(s, st);
}

ls_status lsi_workers_broadcast(ls_strategy *s, const lsi_workers_call *call, void *data,
                                size_t bytes, ls_status st, const ls_error *why,
                                ls_error *err)
{
    const ls_comm_options opts = lsi_call_options(s, call->opts);

    if (st != LS_OK) {
        return lsi_workers_decline(s, call, why, err);
    }
    ls_comm_at(call->site.file, call->site.line);
    st = ls_comm_broadcast(s->workers, 0, data, bytes, LS_U8, &opts, err);
    return lsi_workers_note(s, st);
}

ls_status lsi_workers_share(ls_strategy *s, const lsi_workers_call *call,
                            const int64_t *mine, size_t count, int64_t *all, ls_status st,
                            const ls_error *why, ls_error *err)
{
    if (st != LS_OK) {
        return lsi_workers_decline(s, call, why, err);
    }
    st = lsi_comm_share(s->workers, call->what, mine, count, all, call->site, err);
    return lsi_workers_note(s, st);
}
