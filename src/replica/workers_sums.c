/* Sums over workers from the values of their ids: this worker's partial sums first. */
#include "reduce/reduction.h"
#include "replica/replica.h"

enum { ALIGN = 64 };

int lsi_workers_partials(const ls_strategy *s, int ids)
{
    const int rank = s->workers == NULL ? 0 : ls_comm_rank(s->workers);
    lsi_partial_sum parts[LSI_PARTIALS_MOST];

    return lsi_partials_of(rank * ids, (rank + 1) * ids, parts);
}

/* Bytes of the partial sums of all values; false: more than memory holds. */
static bool measure_partials(const lsi_workers_sum *sum, int parts,
                             const lsi_workers_value *values, size_t n, size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes;

        if (!lsi_mul_size(values[i].count, (size_t)parts * lsi_wide_size(sum->dtype),
                          &bytes) ||
            !lsi_add_size(bytes, ALIGN - 1, &bytes) ||
            !lsi_add_size(*out, bytes / ALIGN * ALIGN, out)) {
            return false;
        }
    }
    return true;
}

/* Makes the partial sums of all values at `data`; sets the pieces. */
static void make_partials(const ls_strategy *s, const lsi_workers_sum *sum,
                          const lsi_workers_value *values, size_t n, char *data,
                          lsi_comm_piece *pieces)
{
    const int first = ls_comm_rank(s->workers) * sum->ids;
    const lsi_reduction how =
        lsi_reduction_of(sum->op, sum->dtype, sum->ids * lsi_workers(s));
    lsi_partial_sum parts[LSI_PARTIALS_MOST];
    const int k = lsi_partials_of(first, first + sum->ids, parts);

    for (size_t i = 0; i < n; i++) {
        const size_t step = values[i].count * lsi_wide_size(sum->dtype);

        for (int p = 0; p < k; p++) {
            parts[p].data = data + (size_t)p * step;
        }
        if (values[i].count > 0) {
            lsi_partials_add(&how, values[i].from, parts, k, values[i].count);
        }
        pieces[i] = (lsi_comm_piece){data, values[i].to, values[i].count};
        data += ((size_t)k * step + ALIGN - 1) / ALIGN * ALIGN;
    }
}

ls_status lsi_workers_sum_values(ls_strategy *s, const lsi_workers_sum *sum,
                                 const lsi_workers_value *values, size_t n,
                                 ls_device *device, ls_status st, const ls_error *why,
                                 ls_error *err)
{
    const int parts = lsi_workers_partials(s, sum->ids);
    lsi_comm_piece *pieces = NULL;
    lsi_workers_sum whole = *sum;
    ls_error own = LS_ERROR_INIT;
    char *data = NULL;
    size_t bytes = 0;

    if (st == LS_OK) {
        pieces = lsi_alloc(LSI_MAX(n, 1), sizeof *pieces);
        if (pieces != NULL && measure_partials(sum, parts, values, n, &bytes)) {
            data = lsi_device_alloc(device, LSI_MAX(bytes, 1));
        }
        why = &own;
        st = data == NULL ? lsi_fail_memory(&own, sum->call.what, bytes) : LS_OK;
    }
    if (st == LS_OK && sum->ids == 1) {
        for (size_t i = 0; i < n; i++) {
            pieces[i] =
                (lsi_comm_piece){values[i].from[0], values[i].to, values[i].count};
        }
    } else if (st == LS_OK) {
        make_partials(s, sum, values, n, data, pieces);
    }
    whole.pieces = pieces;
    whole.n = n;
    st = lsi_workers_reduce(s, &whole, st, why, err);
    lsi_device_free(device, data);
    lsi_free(pieces);
    return st;
}
