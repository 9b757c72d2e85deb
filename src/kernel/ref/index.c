/* gather, scatter and one_hot: rows selected by their index. */
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

/* Every index lies in 0 .. size-1. */
static ls_status check_indices(ls_op_call *k, const ls_tensor *indices, int64_t size)
{
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t v = lsi_index_at(indices, i);

        if (v < 0 || v >= size) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "index %lld at position %lld is not in [0, %lld)",
                              (long long)v, (long long)i, (long long)size);
        }
    }
    return LS_OK;
}

typedef struct gathering {
    const ls_tensor *x;
    const ls_tensor *indices;
    char *to;
    int64_t outer;
    int64_t size; /* of the axis */
    size_t inner; /* bytes */
} gathering;

static void gather_share(void *arg, int part, int parts)
{
    const gathering *work = arg;
    const int64_t n = work->indices->count;
    int64_t begin = 0;
    int64_t end = 0;

    lsi_team_share(work->outer * n, 1, part, parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / n * work->size + lsi_index_at(work->indices, i % n);

        memcpy(work->to + (size_t)i * work->inner,
               (const char *)work->x->data + (size_t)row * work->inner, work->inner);
    }
}

ls_status lsi_ref_gather(ls_op_call *k)
{
    const int axis = ((const lsi_axis_attrs *)k->attrs)->axis;
    const ls_tensor *x = k->in[0];
    gathering work = {x, k->in[1],      k->out[0]->data,
                      1, x->dims[axis], ls_dtype_size((ls_dtype)x->dtype)};
    const ls_status st = check_indices(k, k->in[1], work.size);

    if (st != LS_OK) {
        return st;
    }
    for (int i = 0; i < x->ndim; i++) {
        work.outer *= i < axis ? x->dims[i] : 1;
        work.inner *= i > axis ? (size_t)x->dims[i] : 1;
    }
    lsi_team_run(k->team, lsi_parts(k, k->out[0]->count), gather_share, &work);
    return LS_OK;
}

typedef struct scattering {
    const ls_tensor *indices;
    const ls_tensor *updates;
    ls_tensor *to;
    int64_t width; /* elements of a row */
} scattering;

/* Adds n elements of `from` to those of `to`. */
LSI_INLINE void add_row_as(ls_dtype dtype, void *to, int64_t to_at, const void *from,
                           int64_t from_at, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t y = to_at + i;
        const int64_t x = from_at + i;

        if (lsi_is_float(dtype)) {
            lsi_put_float(to, dtype, y,
                          lsi_get_float(to, dtype, y) + lsi_get_float(from, dtype, x));
        } else {
            lsi_put_int(to, dtype, y,
                        (int64_t)((uint64_t)lsi_get_int(to, dtype, y) +
                                  (uint64_t)lsi_get_int(from, dtype, x)));
        }
    }
}

static void add_row(ls_dtype dtype, void *to, int64_t to_at, const void *from,
                    int64_t from_at, int64_t n)
{
    switch (dtype) {
#define EACH(D, ...)                                                                     \
    case LS_##D:                                                                         \
        add_row_as(LS_##D, to, to_at, from, from_at, n);                                 \
        break;
        LSI_FLOATS(EACH)
        LSI_INTS(EACH)
#undef EACH
    default:
        break;
    }
}

/*
 * A member owns a range of the output's rows and searches all indices for them, so
 * that rows with the same index are added in their order whatever the number of members.
 */
static void scatter_share(void *arg, int part, int parts)
{
    const scattering *work = arg;
    const ls_dtype dtype = (ls_dtype)work->to->dtype;
    const size_t bytes = (size_t)work->width * ls_dtype_size(dtype);
    int64_t begin = 0;
    int64_t end = 0;

    lsi_team_share(work->to->dims[0], 1, part, parts, &begin, &end);
    memset((char *)work->to->data + (size_t)begin * bytes, 0,
           (size_t)(end - begin) * bytes);
    for (int64_t i = 0; i < work->indices->count; i++) {
        const int64_t row = lsi_index_at(work->indices, i);

        if (row >= begin && row < end) {
            add_row(dtype, work->to->data, row * work->width, work->updates->data,
                    i * work->width, work->width);
        }
    }
}

ls_status lsi_ref_scatter(ls_op_call *k)
{
    ls_tensor *y = k->out[0];
    scattering work = {k->in[0], k->in[1], y, y->count / y->dims[0]};
    const ls_status st = check_indices(k, k->in[0], y->dims[0]);

    if (st == LS_OK) {
        lsi_team_run(k->team, lsi_parts(k, y->count + k->in[1]->count), scatter_share,
                     &work);
    }
    return st;
}

ls_status lsi_ref_one_hot(ls_op_call *k)
{
    const ls_tensor *indices = k->in[0];
    const ls_dtype dtype = (ls_dtype)k->out[0]->dtype;
    const size_t size = ls_dtype_size(dtype);
    const int64_t depth = k->out[0]->dims[k->out[0]->ndim - 1];
    char *y = k->out[0]->data;
    _Alignas(8) char one[8]; // elements of any dtype fit

    lsi_ref_fill(dtype, one, 1, 1);
    memset(y, 0, (size_t)k->out[0]->count * size);
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t hot = lsi_index_at(indices, i);

        if (hot >= 0 && hot < depth) {
            memcpy(y + (size_t)(i * depth + hot) * size, one, size);
        }
    }
    return LS_OK;
}
