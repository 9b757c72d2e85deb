/*
 * Sparse gradients applied row by row: for optimizers in which a gradient of 0 changes
 * nothing, so the rows that the gradient does not name are not accessed. Repeated rows
 * are added up first, in their order, starting from 0, as in making the gradient dense:
 * the bits are the same.
 */
#include "optim/optim.h"

/* Memory for one step, in one block from the device's pool. */
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

/* Allocates the block, for n positions and rows of `row` bytes; false: out of memory. */
static bool open_work(ls_device *device, size_t n, size_t row, bool squares,
                      struct work *w)
{
    size_t bytes, numbers;

    w->places = 16;
    while (w->places < 2 * n) {
        w->places *= 2;
    }
    if (!lsi_mul_size(w->places + 2 * n, sizeof(int64_t), &numbers) ||
        !lsi_mul_size(row, squares ? 2 : 1, &bytes) ||
        !lsi_add_size(numbers, bytes, &bytes)) {
        return false;
    }
    w->heads = lsi_device_alloc(device, bytes);
    if (w->heads == NULL) {
        return false;
    }
    memset(w->heads, 0, numbers);
    w->next = w->heads + w->places;
    w->last = w->next + n;
    w->g = w->last + n;
    w->squares = squares ? (char *)w->g + row : NULL;
    return true;
}

/* Chains the positions of each row, in their order. */
static void chain_rows(const ls_tensor *indices, struct work *w)
{
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t row = lsi_index_at(indices, i);
        size_t at = (size_t)(((uint64_t)row * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
                    (w->places - 1);

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

ls_status lsi_optimizer_update_rows(const ls_optimizer *o, const lsi_optimizer_turn *turn,
                                    ls_variable *component, ls_variable *const *slots,
                                    const ls_tensor *g, ls_error *err)
{
    const int64_t rows = component->shape.dims[0];
    lsi_step whole = {.dtype = component->dtype, .optimizer = o, .turn = turn};
    struct work work;
    lsi_writes w;
    ls_status st;

    whole.n = rows > 0 ? (size_t)(component->count / rows) : 0;
    if (!open_work(component->device, (size_t)g->indices->count,
                   whole.n * ls_dtype_size(component->dtype),
                   o->shared.keras3 && o->ops->squares, &work)) {
        return lsi_fail_memory(err, component->name, (size_t)g->indices->count);
    }
    st = lsi_writes_open(o, component, slots, 0, 0, &w, err);
    if (st == LS_OK) {
        whole.w = w.component.to;
        whole.w_out = w.component.to;
        whole.update = lsi_update_for(component->device);
        for (size_t k = 0; k < lsi_optimizer_slot_count(o); k++) {
            whole.slot[k] = w.slot[k].to;
        }
        chain_rows(g->indices, &work);
        for (size_t i = 0; i < work.places; i++) {
            if (work.heads[i] != 0) {
                update_row(&whole, g, &work, work.heads[i] - 1);
            }
        }
        lsi_writes_commit(o, component, slots, &w);
    }
    lsi_device_free(component->device, work.heads);
    return st;
}
