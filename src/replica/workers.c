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

/* Bytes of the partial sums of worker `w` for `count` elements. */
static size_t partial_bytes(const lsi_workers_sum *sum, int w, size_t count)
{
    lsi_partial_sum parts[LSI_PARTIALS_MOST];

    return (size_t)lsi_partials_of(w * sum->ids, (w + 1) * sum->ids, parts) * count *
           lsi_wide_size(sum->dtype);
}

size_t lsi_workers_partial_bytes(const ls_strategy *s, const lsi_workers_sum *sum,
                                 size_t count)
{
    return partial_bytes(sum, s->workers == NULL ? 0 : ls_comm_rank(s->workers), count);
}

/* Adds up the partial sums of all workers, which lie in `data` one after the other. */
static void finish_piece(const lsi_workers_sum *sum, int workers, char *data, void *to,
                         size_t count)
{
    const size_t step = count * lsi_wide_size(sum->dtype);
    const lsi_reduction how =
        lsi_reduction_of(sum->op, sum->dtype, sum->ids * workers);
    lsi_partial_sum parts[2 * LSI_PARTIALS_MOST];
    int n = 0;

    for (int w = 0; w < workers; w++) {
        const int first = n;

        n += lsi_partials_of(w * sum->ids, (w + 1) * sum->ids, parts + n);
        for (int i = first; i < n; i++) {
            parts[i].data = data;
            data += step;
        }
        n = lsi_partials_merge(&how, parts, n, count);
    }
    lsi_partials_finish(&how, parts, n, to, count);
}

/* One piece of a sum over workers that hold several ids each. */
static ls_status reduce_piece(ls_strategy *s, const lsi_workers_sum *sum, size_t i,
                              const ls_comm_options *opts, ls_error *err)
{
    const lsi_comm_piece *piece = &sum->pieces[i];
    const int workers = lsi_workers(s);
    size_t total = 0, *counts = lsi_alloc((size_t)workers, sizeof *counts);
    ls_status st = LS_OK;
    char *all;

    for (int w = 0; w < workers && counts != NULL; w++) {
        counts[w] = partial_bytes(sum, w, piece->count);
        total += counts[w];
    }
    all = counts == NULL ? NULL : lsi_alloc_aligned(LSI_MAX(total, 1), 64);
    if (all == NULL) {
        ls_error why = LS_ERROR_INIT;

        (void)lsi_fail_memory(&why, sum->what, total);
        lsi_comm_break(s->workers, &why);
        lsi_free(counts);
        return lsi_fail_again(err, &why);
    }
    ls_comm_at(sum->site.file, sum->site.line);
    st = (ls_comm_all_gather_uneven)(s->workers, piece->from, counts, LS_U8, opts, all,
                                     err);
    if (st == LS_OK) {
        finish_piece(sum, workers, all, piece->to, piece->count);
    }
    lsi_free(all);
    lsi_free(counts);
    return st;
}

ls_status lsi_workers_reduce(ls_strategy *s, const lsi_workers_sum *sum, ls_error *err)
{
    const ls_comm_options opts = lsi_call_options(s, sum->opts);
    ls_status st = LS_OK;

    LSI_ASSERT(s->workers != NULL);
    if (sum->ids == 1) {
        return lsi_comm_all_reduce_pieces(s->workers, sum->op, sum->pieces, sum->n,
                                          sum->dtype, &opts, sum->site, err);
    }
    for (size_t i = 0; i < sum->n && st == LS_OK; i++) {
        st = reduce_piece(s, sum, i, &opts, err);
    }
    return st;
}
