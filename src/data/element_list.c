/* A list of elements in blocks: appending, and finding an element by its index. */
#include "data/element_list.h"

#include <string.h>

enum {
    SMALL = 1024,          // bytes; for larger elements the overhead of a value is small
    FEWEST = 16,           // the least number of elements of a block
    BLOCK_BYTES = 64 << 10 // the most bytes of a block
};

/* One element, or several as a batch; it begins where the block before it ends. */
struct block {
    ls_value *value;
    size_t end; // one more than the index of its last element
    bool batch;
};

struct lsi_element_list {
    atomic_int refs;
    ls_spec *spec;
    size_t bytes;         // of an element; 0: not small, or not known
    size_t n;             // elements, including those in `open`
    lsi_batch_rows *open; // the block that is being filled; NULL: none
    int64_t open_rows;    // its capacity
    struct block *blocks;
    size_t nblocks, room;
};

/* The bytes of an element, if they are known and few; 0 if not. */
static size_t small_bytes(const ls_spec *s)
{
    size_t sum = 0;

    for (size_t i = 0; i < lsi_spec_leaves(s); i++) {
        const ls_spec *leaf = lsi_spec_leaf(s, i);
        const bool plain = leaf->kind == LS_SPEC_TENSOR && leaf->ndim >= 0 &&
                           leaf->ndim < LS_MAX_DIMS && ls_dtype_size(leaf->dtype) > 0;
        size_t bytes = plain ? ls_dtype_size(leaf->dtype) : 0;

        for (int d = 0; plain && d < leaf->ndim; d++) {
            if (leaf->dims[d] <= 0 || leaf->dims[d] > SMALL) {
                return 0;
            }
            bytes *= (size_t)leaf->dims[d]; // no wrap: it was SMALL at most
            if (bytes > SMALL) {
                return 0;
            }
        }
        sum += bytes;
        if (bytes == 0 || sum > SMALL) {
            return 0;
        }
    }
    return sum;
}

ls_status lsi_element_list_create(const ls_spec *element, lsi_element_list **out,
                                  ls_error *err)
{
    lsi_element_list *s = lsi_alloc(1, sizeof *s);

    if (s == NULL) {
        return lsi_fail_memory(err, "a cache", sizeof *s);
    }
    atomic_init(&s->refs, 1);
    // NOLINTNEXTLINE: the count of references is what changes, not the spec
    s->spec = ls_spec_retain((ls_spec *)element);
    s->bytes = small_bytes(element);
    *out = s;
    return LS_OK;
}

lsi_element_list *lsi_element_list_retain(lsi_element_list *s)
{
    if (s != NULL) {
        (void)atomic_fetch_add(&s->refs, 1);
    }
    return s;
}

void lsi_element_list_release(lsi_element_list *s)
{
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < s->nblocks; i++) {
        ls_value_release(s->blocks[i].value);
    }
    lsi_free(s->blocks);
    lsi_batch_rows_release(s->open);
    ls_spec_release(s->spec);
    lsi_free(s);
}

size_t lsi_element_list_count(const lsi_element_list *s)
{
    return s->n;
}

/* ---- filling ---- */

/* Whether an element has exactly the spec's structure, which a row of a block gets. */
static bool has_structure(const ls_spec *s, const ls_value *v)
{
    const ls_value_kind kind = ls_value_kind_of(v);
    bool like = kind == (s->kind == LS_SPEC_DICT ? LS_VALUE_DICT : LS_VALUE_TUPLE) &&
                ls_value_size(v) == s->size;

    if (s->kind == LS_SPEC_TENSOR) { // of a shape that is known: see small_bytes()
        const ls_tensor *t = ls_value_as_tensor(v);

        return t != NULL && ls_tensor_data(t) != NULL &&
               lsi_spec_check(s, v, NULL) == LS_OK;
    }
    for (size_t i = 0; like && i < s->size; i++) {
        like = (s->kind != LS_SPEC_DICT || strcmp(s->keys[i], ls_value_key(v, i)) == 0) &&
               has_structure(s->child[i], ls_value_child(v, i));
    }
    return like;
}

/* Room for one more block. */
static ls_status reserve_block(lsi_element_list *s, ls_error *err)
{
    if (s->nblocks == s->room) {
        const size_t room = LSI_MAX(64, 2 * s->room);
        struct block *grown = lsi_realloc(s->blocks, s->nblocks, room, sizeof *grown);

        if (grown == NULL) {
            return lsi_fail_memory(err, "a cache", room * sizeof *grown);
        }
        s->blocks = grown;
        s->room = room;
    }
    return LS_OK;
}

ls_status lsi_element_list_seal(lsi_element_list *s, ls_error *err)
{
    ls_value *batch = NULL;
    ls_status st = LS_OK;

    if (s->open == NULL) {
        return LS_OK;
    }
    st = reserve_block(s, err);
    if (st == LS_OK) {
        st = lsi_batch_rows_take(s->open, &batch, err);
        if (st == LS_OK) {
            s->blocks[s->nblocks++] = (struct block){batch, s->n, true};
        } else { // its elements are lost
            s->n = s->nblocks > 0 ? s->blocks[s->nblocks - 1].end : 0;
        }
        lsi_batch_rows_release(s->open);
        s->open = NULL;
    }
    return st;
}

/* The first blocks are small, for a cache of a few elements. */
static ls_status open_block(lsi_element_list *s, ls_error *err)
{
    const size_t most = LSI_MAX(BLOCK_BYTES / s->bytes, FEWEST);

    s->open_rows = (int64_t)LSI_MIN(LSI_MAX(s->n, FEWEST), most);
    return lsi_batch_rows_create(s->spec, s->open_rows, NULL, &s->open, err);
}

static ls_status add_row(lsi_element_list *s, const ls_value *element, ls_error *err)
{
    ls_status st = s->open == NULL ? open_block(s, err) : LS_OK;

    if (st == LS_OK) {
        st = lsi_batch_rows_add(s->open, element, err);
    }
    if (st == LS_OK) {
        s->n++;
        if (lsi_batch_rows_count(s->open) == s->open_rows) {
            st = lsi_element_list_seal(s, err);
        }
    }
    return st;
}

ls_status lsi_element_list_add(lsi_element_list *s, ls_value *element, ls_error *err)
{
    ls_status st;

    if (s->bytes > 0 && has_structure(s->spec, element)) {
        return add_row(s, element, err);
    }
    st = lsi_element_list_seal(s, err);
    if (st == LS_OK) {
        st = reserve_block(s, err);
    }
    if (st == LS_OK) {
        s->n++;
        s->blocks[s->nblocks++] = (struct block){ls_value_retain(element), s->n, false};
    }
    return st;
}

/* ---- reading ---- */

/* The block of element `i`: the one at *near, the next one, or any. */
static const struct block *find_block(const lsi_element_list *s, size_t i, size_t *near,
                                      size_t *row)
{
    size_t at = LSI_MIN(*near, s->nblocks - 1);

    if (s->blocks[at].end <= i && at + 1 < s->nblocks) {
        at++;
    }
    if (s->blocks[at].end <= i || (at > 0 && s->blocks[at - 1].end > i)) {
        size_t low = 0, high = s->nblocks - 1;

        while (low < high) {
            const size_t middle = low + (high - low) / 2;

            if (s->blocks[middle].end <= i) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        at = low;
    }
    *near = at;
    *row = i - (at > 0 ? s->blocks[at - 1].end : 0);
    return &s->blocks[at];
}

ls_status lsi_element_list_get(const lsi_element_list *s, size_t i, size_t *near,
                               ls_device *device, ls_value **out, ls_error *err)
{
    size_t row = 0;
    const struct block *b = find_block(s, i, near, &row);

    if (b->batch) {
        return lsi_value_row(b->value, (int64_t)row, device, out, err);
    }
    return lsi_value_place(b->value, device, out, err);
}

ls_status lsi_element_list_rows(const lsi_element_list *s, size_t i, size_t n,
                                size_t *near, lsi_batch_rows *rows, ls_error *err)
{
    ls_status st = LS_OK;

    for (size_t done = 0, some; done < n && st == LS_OK; done += some) {
        size_t row = 0;
        const struct block *b = find_block(s, i + done, near, &row);

        some = LSI_MIN(n - done, b->end - (i + done));
        st = b->batch ? lsi_batch_rows_add_rows(rows, b->value, (int64_t)row,
                                                (int64_t)(row + some), err)
                      : lsi_batch_rows_add(rows, b->value, err);
    }
    return st;
}
