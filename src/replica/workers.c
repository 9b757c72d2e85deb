/*
 * The step over workers: what local replicas have combined is combined over the workers
 * of the strategy, by the communicator that it holds.
 */
#include "reduce/reduction.h"
#include "replica/replica.h"

int lsi_workers(const ls_strategy *s)
{
    return s->workers == NULL ? 1 : ls_comm_size(s->workers);
}

size_t lsi_workers_partial_bytes(const ls_strategy *s, const lsi_workers_sum *sum,
                                 size_t count)
{
    const int w = s->workers == NULL ? 0 : ls_comm_rank(s->workers);

    return (size_t)lsi_partials_count(w * sum->ids, (w + 1) * sum->ids) * count *
           lsi_wide_size(sum->dtype);
}

ls_status lsi_workers_reduce(ls_strategy *s, const lsi_workers_sum *sum, ls_error *err)
{
    const ls_comm_options opts = lsi_call_options(s, sum->opts);
    const lsi_comm_reduction reduction = {.op = sum->op,
                                          .dtype = sum->dtype,
                                          .pieces = sum->pieces,
                                          .n = sum->n,
                                          .ids = sum->ids,
                                          .tag = sum->what,
                                          .detail = sum->detail};

    LSI_ASSERT(s->workers != NULL);
    return lsi_comm_all_reduce_pieces(s->workers, &reduction, &opts, sum->site, err);
}
