/*
 * Gathering the tensors of all workers: first what they are, then their bytes. What other
 * workers say of their tensors is checked before memory is taken for them.
 */
#define LS_NO_PLACES
#include "replica/run.h"

#include <string.h>

enum { ALIGN = 64 };

/* What a worker says of one of its tensors: NUMBERS of int64_t. */
enum {
    DETAIL,
    DTYPE,
    DIMS,      /* how many */
    ROWS,      /* of a sparse one; NOT_SPARSE */
    ROW_DTYPE, /* of the indices of a sparse one */
    FIRST_DIM,
    NUMBERS = FIRST_DIM + LS_MAX_DIMS
};
enum { NOT_SPARSE = -1 };

static void describe_tensor(const ls_tensor *t, uint64_t detail, int64_t *d)
{
    memset(d, 0, NUMBERS * sizeof *d);
    d[DETAIL] = (int64_t)detail;
    d[DTYPE] = t->dtype;
    d[DIMS] = t->ndim;
    d[ROWS] = t->values == NULL ? NOT_SPARSE : t->indices->count;
    d[ROW_DTYPE] = t->values == NULL ? 0 : t->indices->dtype;
    for (int i = 0; i < t->ndim; i++) {
        d[FIRST_DIM + i] = t->dims[i];
    }
}

/* A tensor as its worker described it. `bytes` are those of its elements or rows. */
struct described {
    ls_dtype dtype, row_dtype;
    ls_shape shape;
    bool sparse;
    ls_shape rows;    /* of the values of a sparse one */
    ls_shape indices; /* of its indices */
    size_t bytes, index_bytes;
};

/* False: the numbers describe no tensor. */
static bool read_description(const int64_t *d, struct described *out)
{
    int64_t count;

    if (d[DTYPE] < 0 || d[DTYPE] > UINT8_MAX || ls_dtype_size((ls_dtype)d[DTYPE]) == 0 ||
        d[DTYPE] == LS_STRING || d[DIMS] < 0 || d[DIMS] > LS_MAX_DIMS) {
        return false;
    }
    *out = (struct described){.dtype = (ls_dtype)d[DTYPE], .sparse = d[ROWS] >= 0};
    out->shape.ndim = (int)d[DIMS];
    for (int i = 0; i < out->shape.ndim; i++) {
        out->shape.dims[i] = d[FIRST_DIM + i];
    }
    if (!out->sparse) {
        return lsi_shape_bytes(&out->shape, out->dtype, &count, &out->bytes);
    }
    if (out->shape.ndim == 0 || (d[ROW_DTYPE] != LS_I32 && d[ROW_DTYPE] != LS_I64)) {
        return false;
    }
    out->row_dtype = (ls_dtype)d[ROW_DTYPE];
    out->rows = out->shape;
    out->rows.dims[0] = d[ROWS];
    out->indices = LS_SHAPE(d[ROWS]);
    return lsi_shape_bytes(&out->rows, out->dtype, &count, &out->bytes) &&
           lsi_shape_bytes(&out->indices, out->row_dtype, &count, &out->index_bytes);
}

static bool add_aligned(size_t *total, size_t bytes)
{
    return lsi_add_size(*total, bytes, total) && lsi_add_size(*total, ALIGN - 1, total) &&
           (*total -= *total % ALIGN, true);
}

/* One gathering: `n` tensors of each of `workers` workers. */
struct gathering {
    ls_strategy *s;
    const lsi_workers_call *call;
    size_t n;
    int workers, rank;
    int64_t *numbers; /* this worker's descriptions, then those of all */
    size_t *counts;   /* bytes of each worker */
    lsi_buffer *out, *in;
};

static int64_t *description_of(const struct gathering *g, int worker, size_t i)
{
    return g->numbers + ((size_t)(worker + 1) * g->n + i) * NUMBERS;
}

static ls_status describe_all(struct gathering *g, ls_tensor *const *mine, ls_error *err)
{
    const size_t each = g->n * NUMBERS;

    g->numbers = lsi_alloc(((size_t)g->workers + 1) * each, sizeof *g->numbers);
    g->counts = lsi_alloc((size_t)g->workers, sizeof *g->counts);
    if (g->numbers == NULL || g->counts == NULL) {
        return lsi_fail_memory(err, g->call->what, each * sizeof *g->numbers);
    }
    for (size_t i = 0; i < g->n; i++) {
        if (mine[i]->dtype == LS_STRING) {
            return lsi_fail_kind(err, LS_UNIMPLEMENTED, LS_KIND_RUNTIME,
                                 "%s: strings are not sent to other workers",
                                 g->call->what);
        }
        describe_tensor(mine[i], g->call->detail, g->numbers + i * NUMBERS);
    }
    return LS_OK;
}

/* Sets the bytes of each worker. The outcome is the same on all workers. */
static ls_status measure_all(struct gathering *g, size_t *total, ls_error *err)
{
    LSI_ASSERT(g->counts != NULL); // else the worker has declined
    *total = 0;
    for (int w = 0; w < g->workers; w++) {
        g->counts[w] = 0;
        for (size_t i = 0; i < g->n; i++) {
            struct described t;

            if (description_of(g, w, i)[DETAIL] != (int64_t)g->call->detail) {
                return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                                "%s: worker %d makes this call with another argument "
                                "than worker %d; all workers make the same calls",
                                g->call->what, w, g->rank);
            }
            if (!read_description(description_of(g, w, i), &t) ||
                !add_aligned(&g->counts[w], t.bytes) ||
                !add_aligned(&g->counts[w], t.index_bytes)) {
                return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                                "%s: worker %d sends what is no tensor, or more than "
                                "memory holds",
                                g->call->what, w);
            }
        }
        if (!lsi_add_size(*total, g->counts[w], total)) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                            "%s: the tensors of %d workers are more than memory holds",
                            g->call->what, g->workers);
        }
    }
    return LS_OK;
}

/* Copies one tensor to `at`; returns where the next one begins. */
static char *put_bytes(char *at, const void *from, size_t bytes)
{
    if (bytes > 0) {
        memcpy(at, from, bytes);
    }
    return at + (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void put_tensors(const struct gathering *g, ls_tensor *const *mine)
{
    char *at = g->out->data;

    for (size_t i = 0; i < g->n; i++) {
        const ls_tensor *t = mine[i]->values != NULL ? mine[i]->values : mine[i];

        at = put_bytes(at, t->data, ls_tensor_bytes(t));
        if (mine[i]->values != NULL) {
            at = put_bytes(at, mine[i]->indices->data, ls_tensor_bytes(mine[i]->indices));
        }
    }
}

/* A tensor over the bytes that will be received at *offset; moves it on. */
static ls_tensor *view_of(ls_tensor *whole, ls_dtype dtype, const ls_shape *shape,
                          size_t bytes, size_t *offset)
{
    ls_tensor *t = lsi_tensor_view(whole, dtype, shape, *offset);

    (void)add_aligned(offset, bytes);
    return t;
}

static ls_tensor *view_described(ls_tensor *whole, const struct described *t,
                                 size_t *offset)
{
    ls_tensor *values, *indices, *sparse = NULL;

    if (!t->sparse) {
        return view_of(whole, t->dtype, &t->shape, t->bytes, offset);
    }
    values = view_of(whole, t->dtype, &t->rows, t->bytes, offset);
    indices = view_of(whole, t->row_dtype, &t->indices, t->index_bytes, offset);
    if (values != NULL && indices != NULL) {
        sparse = lsi_tensor_sparse(&t->shape, values, indices);
    }
    ls_tensor_release(values);
    ls_tensor_release(indices);
    return sparse;
}

/* Makes the tensors of all workers, before the bytes of the others have come. */
static ls_status make_tensors(const struct gathering *g, ls_tensor *const *mine,
                              size_t total, ls_tensor **all, ls_error *err)
{
    const ls_shape shape = LS_SHAPE((int64_t)total);
    ls_tensor *whole = lsi_tensor_over(g->in, LS_U8, &shape);
    size_t offset = 0;
    bool made = whole != NULL;

    for (int w = 0; w < g->workers && made; w++) {
        size_t at = offset;

        for (size_t i = 0; i < g->n && made; i++) {
            ls_tensor **t = &all[(size_t)w * g->n + i];
            struct described d;

            (void)read_description(description_of(g, w, i), &d);
            *t =
                w == g->rank ? ls_tensor_retain(mine[i]) : view_described(whole, &d, &at);
            made = *t != NULL;
        }
        offset += g->counts[w];
    }
    ls_tensor_release(whole);
    return made ? LS_OK : lsi_fail_memory(err, g->call->what, sizeof(ls_tensor));
}

/* Takes all memory that is needed, so that nothing fails when the bytes have come. */
static ls_status prepare_bytes(struct gathering *g, ls_tensor *const *mine, size_t total,
                               ls_device *device, ls_tensor **all, ls_error *err)
{
    LSI_ASSERT(g->counts != NULL);
    g->out = lsi_buffer_new(device, LSI_MAX(g->counts[g->rank], 1));
    g->in = lsi_buffer_new(device, LSI_MAX(total, 1));
    if (g->out == NULL || g->in == NULL) {
        return lsi_fail_memory(err, g->call->what, total);
    }
    put_tensors(g, mine);
    return make_tensors(g, mine, total, all, err);
}

static ls_status exchange_bytes(const struct gathering *g, ls_error *err)
{
    const ls_comm_options opts = lsi_call_options(g->s, g->call->opts);

    ls_comm_at(g->call->site.file, g->call->site.line);
    return lsi_workers_note(g->s, ls_comm_all_gather_uneven(g->s->workers, g->out->data,
                                                            g->counts, LS_U8, &opts,
                                                            g->in->data, err));
}

ls_status lsi_workers_gather(ls_strategy *s, const lsi_workers_call *call,
                             ls_tensor *const *mine, size_t n, ls_device *device,
                             ls_tensor **all, ls_status st, const ls_error *why,
                             ls_error *err)
{
    struct gathering g = {.s = s,
                          .call = call,
                          .n = n,
                          .workers = lsi_workers(s),
                          .rank = ls_comm_rank(s->workers)};
    ls_error own = LS_ERROR_INIT;
    size_t total = 0;

    memset((void *)all, 0, (size_t)g.workers * n * sizeof(ls_tensor *));
    if (st == LS_OK) {
        st = describe_all(&g, mine, &own);
        why = &own;
    }
    st = lsi_workers_share(s, call, g.numbers, n * NUMBERS,
                           g.numbers == NULL ? NULL : description_of(&g, 0, 0), st, why,
                           err);
    if (st == LS_OK) {
        st = measure_all(&g, &total, err);
    }
    if (st == LS_OK) {
        st = prepare_bytes(&g, mine, total, device, all, &own);
        st = st == LS_OK ? exchange_bytes(&g, err)
                         : lsi_workers_decline(s, call, &own, err);
    }
    for (size_t i = 0; st != LS_OK && i < (size_t)g.workers * n; i++) {
        ls_tensor_release(all[i]);
        all[i] = NULL;
    }
    lsi_buffer_release(g.out);
    lsi_buffer_release(g.in);
    lsi_free(g.numbers);
    lsi_free(g.counts);
    return st;
}
