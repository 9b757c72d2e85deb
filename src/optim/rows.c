/*
 * A sparse gradient, row by row: for optimizers that a gradient of 0 leaves as they are,
 * so that the rows it does not name need no visit. Repeated rows are added in their order
 * first, from 0 on, as making the gradient dense would: the bits are the same.
 */
#include "optim/optim.h"

/* Which positions of the gradient belong to which row, in their order. */
struct chains {
    int64_t *heads; /* a hash table of rows: 1 + the first position, 0: free */
    int64_t *next;  /* of each position: 1 + the next one of its row, 0: the last */
    int64_t *last;  /* of each first position: the last one of its row so far */
    size_t room;    /* of the table: a power of two */
};

bool lsi_optimizer_by_rows(const ls_optimizer *o, const ls_tensor *g)
{
    return g->values != NULL && o->ops->rows && o->shared.weight_decay == 0 &&
           (lsi_optimizer_slot_count(o) == 0 || o->epsilon > 0) && // never 0 / 0
           g->indices->count <= g->dims[0] / 2; // else all of it is as fast
}

static void free_chains(struct chains *c)
{
    lsi_free(c->heads);
    lsi_free(c->next);
    lsi_free(c->last);
}

static bool make_chains(const ls_tensor *indices, struct chains *c)
{
    const size_t n = (size_t)indices->count;

    c->room = 16;
    while (c->room < 2 * n) {
        c->room *= 2;
    }
    c->heads = lsi_alloc(c->room, sizeof(int64_t));
    c->next = lsi_alloc(LSI_MAX(n, 1), sizeof(int64_t));
    c->last = lsi_alloc(LSI_MAX(n, 1), sizeof(int64_t));
    if (c->heads == NULL || c->next == NULL || c->last == NULL) {
        return false;
    }
    for (int64_t i = 0; i < indices->count; i++) {
        const int64_t row = lsi_index_at(indices, i);
        size_t at = (size_t)(((uint64_t)row * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
                    (c->room - 1);

        while (c->heads[at] != 0 && lsi_index_at(indices, c->heads[at] - 1) != row) {
            at = (at + 1) & (c->room - 1);
        }
        if (c->heads[at] == 0) {
            c->heads[at] = i + 1;
        } else {
            c->next[c->last[c->heads[at] - 1]] = i + 1;
        }
        c->last[c->heads[at] - 1] = i;
    }
    return true;
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
        double x = lsi_get(dtype, from, i);

        if (squares) {
            uint64_t rounded = 0;

            lsi_put(dtype, &rounded, 0, x * x);
            x = lsi_get(dtype, &rounded, 0);
        }
        lsi_put(dtype, to, i, lsi_get(dtype, to, i) + x);
    }
}

/* Room for a summed row and its squares. */
struct sums {
    void *g, *squares; /* NULL: those of g */
};

static void update_row(const lsi_step *whole, const ls_tensor *g, const struct chains *c,
                       int64_t first, const struct sums *sums)
{
    const size_t bytes = whole->n * ls_dtype_size(whole->dtype);
    const size_t offset = (size_t)lsi_index_at(g->indices, first) * bytes;
    lsi_step s = *whole;

    memset(sums->g, 0, bytes);
    if (sums->squares != NULL) {
        memset(sums->squares, 0, bytes);
    }
    for (int64_t i = first + 1; i != 0; i = c->next[i - 1]) {
        const void *row = (const char *)g->values->data + (size_t)(i - 1) * bytes;

        add_row(s.dtype, sums->g, row, s.n, false);
        if (sums->squares != NULL) {
            add_row(s.dtype, sums->squares, row, s.n, true);
        }
    }
    s.g = sums->g;
    s.squares = sums->squares;
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
    const size_t size = ls_dtype_size(component->dtype);
    const size_t width = component->shape.dims[0] > 0
                             ? (size_t)(component->count / component->shape.dims[0])
                             : 0;
    struct chains c = {NULL, NULL, NULL, 0};
    struct sums sums = {lsi_alloc(LSI_MAX(width, 1), size), NULL};
    lsi_step whole = {.dtype = component->dtype, .optimizer = o, .turn = turn};
    lsi_writes w;
    ls_status st = LS_OK;

    if (o->shared.keras3 && o->ops->squares) {
        sums.squares = lsi_alloc(LSI_MAX(width, 1), size);
    }
    if (sums.g == NULL || (o->shared.keras3 && o->ops->squares && sums.squares == NULL) ||
        !make_chains(g->indices, &c)) {
        st = lsi_fail_memory(err, component->name, (size_t)g->indices->count);
    }
    if (st == LS_OK) {
        st = lsi_writes_open(o, component, slots, 0, 0, &w, err);
    }
    if (st == LS_OK) {
        whole.n = width;
        whole.w = w.component.to;
        whole.w_out = w.component.to;
        whole.update = lsi_update_for(component->device);
        for (size_t k = 0; k < lsi_optimizer_slot_count(o); k++) {
            whole.slot[k] = w.slot[k].to;
        }
        for (size_t i = 0; i < c.room; i++) {
            if (c.heads[i] != 0) {
                update_row(&whole, g, &c, c.heads[i] - 1, &sums);
            }
        }
        lsi_writes_commit(o, component, slots, &w);
    }
    free_chains(&c);
    lsi_free(sums.g);
    lsi_free(sums.squares);
    return st;
}
