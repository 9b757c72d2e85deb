/*
 * Sparse gradients applied row by row: for optimizers in which a gradient of 0 changes
 * nothing, so the rows that the gradient does not name are not accessed. Repeated rows
 * are added up first, in their order, starting from 0, as in making the gradient dense:
 * the bits are the same.
 */
#include "optim/optim.h"

#include <string.h>

/* What is worked with, in one block. */
struct work {
    int64_t *heads; /* hash table of rows: 1 + the first position, 0: free */
    int64_t *next;  /* by position: 1 + the next position of the same row, 0: none */
    int64_t *last;  /* by first position: the last position of that row so far */
    void *g;        /* the sum of one row */
    void *squares;  /* NULL: use those of g */
    size_t places;  /* size of the table: a power of two */
};

bool lsi_optimizer_by_rows(const ls_optimizer *o, const ls_tensor *g)
{
    return g->values != NULL && o->ops->rows && o->shared.weight_decay == 0 &&
           (lsi_optimizer_slot_count(o) == 0 || o->epsilon > 0) && // never 0 / 0
           g->indices->count <= g->dims[0] / 2; // else the dense update is as fast
}

static size_t places_for(size_t positions)
{
    size_t places = 16;

    while (places < 2 * positions) {
        places *= 2;
    }
    return places;
}

/* Bytes of a row of the variable. */
static size_t row_bytes(const ls_tensor *g)
{
    const int64_t rows = g->indices->count;

    return rows > 0
               ? (size_t)(g->values->count / rows) * ls_dtype_size((ls_dtype)g->dtype)
               : 0;
}

size_t lsi_optimizer_rows_bytes(const ls_optimizer *o, const ls_tensor *g)
{
    const size_t n = (size_t)g->indices->count;
    const size_t sums = o->shared.keras3 && o->ops->squares ? 2 : 1;

    // The gradient itself is in memory, so this is far from an overflow.
    return (places_for(n) + 2 * n) * sizeof(int64_t) + sums * row_bytes(g);
}

static struct work open_work(const ls_optimizer *o, const ls_tensor *g, void *room)
{
    const size_t n = (size_t)g->indices->count;
    struct work w = {.heads = room, .places = places_for(n)};

    memset(w.heads, 0, (w.places + 2 * n) * sizeof(int64_t));
    w.next = w.heads + w.places;
    w.last = w.next + n;
    w.g = w.last + n;
    w.squares = o->shared.keras3 && o->ops->squares ? (char *)w.g + row_bytes(g) : NULL;
    return w;
}

/* Chains the positions of each row of [begin, end), in their order. */
static void chain_rows(const ls_tensor *indices, int64_t begin, int64_t end,
                       struct work *w)
{
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t row = lsi_index_at(indices, i);
        size_t at = (size_t)(((uint64_t)row * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
                    (w->places - 1);

        if (row < begin || row >= end) {
            continue;
        }
        while (w->heads[at] != 0 && lsi_index_at(indices, w->heads[at] - 1) != row) {
            at = (at + 1) & (w->places - 1);
        }
        if (w->heads[at] == 0) {
            w->heads[at] = i + 1;
        } else {
            w->next[w->last[w->heads[at] - 1]] = i + 1;
        }
        w->last[w->heads[at] - 1] = i;
    }
}

/* to += from, or += the squares of `from`, each rounded before it is added. */
static void add_row(ls_dtype dtype, void *to, const void *from, size_t n, bool squares)
{
    if (dtype == LS_F32) {
        const float *x = from;
        float *sum = to;

        for (size_t i = 0; i < n; i++) {
            sum[i] += squares ? x[i] * x[i] : x[i];
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double x = lsi_get_float(from, dtype, (int64_t)i);

        if (squares) {
            uint64_t rounded = 0;

            lsi_put_float(&rounded, dtype, 0, x * x);
            x = lsi_get_float(&rounded, dtype, 0);
        }
        lsi_put_float(to, dtype, (int64_t)i, lsi_get_float(to, dtype, (int64_t)i) + x);
    }
}

static void update_row(const lsi_step *whole, const ls_tensor *g, const struct work *w,
                       int64_t first)
{
    const size_t bytes = whole->n * ls_dtype_size(whole->dtype);
    const size_t offset = (size_t)lsi_index_at(g->indices, first) * bytes;
    lsi_step s = *whole;

    memset(w->g, 0, bytes);
    if (w->squares != NULL) {
        memset(w->squares, 0, bytes);
    }
    for (int64_t i = first + 1; i != 0; i = w->next[i - 1]) {
        const void *row = (const char *)g->values->data + (size_t)(i - 1) * bytes;

        add_row(s.dtype, w->g, row, s.n, false);
        if (w->squares != NULL) {
            add_row(s.dtype, w->squares, row, s.n, true);
        }
    }
    s.g = w->g;
    s.squares = w->squares;
    s.w = (const char *)s.w + offset;
    s.w_out = (char *)s.w_out + offset;
    for (int k = 0; k < LSI_MAX_SLOTS; k++) {
        s.slot[k] = s.slot[k] != NULL ? (char *)s.slot[k] + offset : NULL;
    }
    s.optimizer->ops->update(&s);
}

void lsi_optimizer_update_rows(const lsi_step *whole, const ls_tensor *g, void *room,
                               int64_t begin, int64_t end)
{
    const int64_t width =
        g->indices->count > 0 ? g->values->count / g->indices->count : 0;
    struct work work;
    lsi_step row = *whole;

    if (begin == end || width == 0) {
        return;
    }
    row.n = (size_t)width;
    work = open_work(whole->optimizer, g, room);
    chain_rows(g->indices, begin / width, end / width, &work);
    for (size_t i = 0; i < work.places; i++) {
        if (work.heads[i] != 0) {
            update_row(&row, g, &work, work.heads[i] - 1);
        }
    }
}

void lsi_optimizer_spread_rows(const ls_tensor *g, void *to, int64_t begin, int64_t end,
                               bool squares)
{
    const ls_dtype dtype = (ls_dtype)g->dtype;
    const int64_t n = g->indices->count, width = n > 0 ? g->values->count / n : 0;
    const size_t size = ls_dtype_size(dtype);

    memset((char *)to + (size_t)begin * size, 0, (size_t)(end - begin) * size);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = lsi_index_at(g->indices, i) * width;
        const int64_t from = LSI_MAX(at, begin), last = LSI_MIN(at + width, end);

        if (from < last) {
            add_row(dtype, (char *)to + (size_t)from * size,
                    (const char *)g->values->data +
                        (size_t)(i * width + from - at) * size,
                    (size_t)(last - from), squares);
        }
    }
}
