/*
 * flat_map and interleave: a function makes a dataset of each element. `slots` of these
 * datasets are open at once and are visited in turn; a visit takes up to `visit`
 * elements. A dataset that ends leaves its slot empty until the cursor comes back to it;
 * then the slot is filled with the next dataset. One slot is flat_map. In parallel, each
 * slot reads ahead; the order is the same.
 */
#include "data/interleave.h"

enum { LEAST_AHEAD = 8, MOST_AHEAD = 64 };

struct slot {
    ls_value *element; // the element that the dataset was made of
    uint64_t number;   // of that element
    lsi_iterator *it;  // NULL: empty
    bool check;
};

struct interleave {
    lsi_unary_iterator unary;
    bool over;      // the input has ended; kept, because its position is saved with ours
    ls_value *late; // an element whose dataset there was no memory for: tried again
    const lsi_interleave_node *node;
    struct slot *slots;
    uint64_t next; // number of the next element of the input
    size_t room;   // slots allocated so far
    size_t live;   // slots that are not empty
    size_t at;     // the cursor
    int64_t taken; // elements of this visit
};

static void advance_cursor(struct interleave *il)
{
    il->at = (int64_t)il->at + 1 < il->node->slots ? il->at + 1 : 0;
    il->taken = 0;
}

static void empty_slot(struct interleave *il, struct slot *s)
{
    if (s->it != NULL) {
        il->live--;
    }
    lsi_iterator_close(s->it);
    ls_value_release(s->element);
    *s = (struct slot){0};
}

/* Makes room for slot `at`; slots are allocated as needed. */
static ls_status reserve_slot(struct interleave *il, size_t at, ls_error *err)
{
    size_t room = LSI_MAX(4, 2 * il->room);
    struct slot *grown = NULL;

    if (at < il->room) {
        return LS_OK;
    }
    room = LSI_MIN(LSI_MAX(room, at + 1), (size_t)il->node->slots);
    grown = lsi_realloc(il->slots, il->room, room, sizeof *grown);
    if (grown == NULL) {
        return lsi_fail_memory(err, "the inputs of an interleave", room * sizeof *grown);
    }
    il->slots = grown;
    il->room = room;
    return LS_OK;
}

/* Fills an empty slot with the dataset of an element, which is taken over on success. */
static ls_status open_slot(struct interleave *il, struct slot *s, ls_value *element,
                           uint64_t number, ls_error *err)
{
    const int64_t visit = LSI_MIN(il->node->visit, (int64_t)MOST_AHEAD);
    const int64_t ahead = LSI_MIN(LSI_MAX(LEAST_AHEAD, 2 * visit), MOST_AHEAD);
    ls_dataset *d = NULL;
    bool check = false;
    ls_status st = lsi_interleave_open(il->node, element, &d, &check, err);

    if (st == LS_OK && il->node->parallel != 0) {
        d = ls_dataset_prefetch(d, ahead);
    }
    if (st == LS_OK) {
        st = lsi_iterator_open_made(&il->unary.base, d,
                                    lsi_lineage_below(&il->unary.base, number + 1),
                                    &s->it, err); // number 0 is the input's
    }
    ls_dataset_release(d);
    if (st != LS_OK) {
        return st;
    }
    s->element = element;
    s->number = number;
    s->check = check;
    il->live++;
    return LS_OK;
}

static ls_status refill_slot(struct interleave *il, struct slot *s, ls_error *err)
{
    ls_value *element = il->late;
    ls_status st =
        element != NULL ? LS_OK : lsi_iterator_next(il->unary.input, &element, err);

    il->late = NULL;
    if (st == LS_OUT_OF_RANGE) {
        il->over = true;
        return LS_OK; // the slot stays empty
    }
    if (st == LS_OK) {
        st = open_slot(il, s, element, il->next, err);
    }
    // A file that there was no memory for is tried again; an element for which a function
    // of the user failed is not.
    if (st == LS_RESOURCE_EXHAUSTED && il->node->shared != NULL) {
        il->late = element;
        return st;
    }
    il->next += element != NULL;
    if (st != LS_OK) {
        ls_value_release(element);
    }
    return st;
}

/* Moves to a slot that is not empty. LS_OUT_OF_RANGE: all are, and the input ended. */
static ls_status find_slot(struct interleave *il, struct slot **out, ls_error *err)
{
    while (!il->over || il->live > 0) {
        ls_status st = LS_OK;

        if (il->over && il->at >= il->room) {
            il->at = 0; // later slots were never filled
            il->taken = 0;
        }
        st = reserve_slot(il, il->at, err);
        if (st == LS_OK && il->slots[il->at].it == NULL && !il->over) {
            st = refill_slot(il, &il->slots[il->at], err);
        }
        if (st != LS_OK) {
            return st;
        }
        if (il->slots[il->at].it != NULL) {
            *out = &il->slots[il->at];
            return LS_OK;
        }
        if (il->over) {
            advance_cursor(il);
        }
    }
    return LS_OUT_OF_RANGE;
}

/* How many more elements this visit may take. */
static int64_t left_of_visit(const struct interleave *il)
{
    return il->node->slots == 1 ? INT64_MAX : il->node->visit - il->taken;
}

/* Counts the `n` elements of a visit; the end of a dataset empties the slot. False: it
 * failed in another way. */
static bool note_visit(struct interleave *il, struct slot *s, int64_t n, ls_status st)
{
    if (st == LS_OUT_OF_RANGE) {
        empty_slot(il, s);
        advance_cursor(il);
        return true;
    }
    if (n >= left_of_visit(il)) {
        advance_cursor(il);
    } else if (il->node->slots > 1) {
        il->taken += n;
    }
    return st == LS_OK;
}

static ls_status next_interleaved(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct interleave *il = (struct interleave *)it;

    for (;;) {
        struct slot *s = NULL;
        ls_value *element = NULL;
        bool check = false;
        ls_status st = find_slot(il, &s, err);

        if (st != LS_OK) {
            return st;
        }
        check = s->check;
        st = lsi_iterator_next(s->it, &element, err);
        if (!note_visit(il, s, st == LS_OK, st)) {
            return st;
        }
        if (st != LS_OK) {
            continue;
        }
        if (check) {
            st = lsi_spec_check(it->dataset->spec, element, err);
        }
        if (st == LS_OK) {
            *out = element;
        } else {
            ls_value_release(element);
        }
        return st;
    }
}

/* Adds one row through next(), because its spec has to be checked. */
static ls_status fill_one(lsi_iterator *it, lsi_batch_rows *rows, int64_t *got,
                          ls_error *err)
{
    ls_value *element = NULL;
    ls_status st = next_interleaved(it, &element, err);

    if (st == LS_OK) {
        st = lsi_batch_rows_add(rows, element, err);
        ls_value_release(element);
        *got += st == LS_OK;
    }
    return st;
}

static ls_status fill_interleaved(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                                  int64_t *got, ls_error *err)
{
    struct interleave *il = (struct interleave *)it;
    const bool unknown = lsi_spec_is_unknown(it->dataset->spec);

    *got = 0;
    while (*got < want) {
        struct slot *s = NULL;
        int64_t part = 0;
        ls_status st = find_slot(il, &s, err);

        if (st != LS_OK) {
            return st;
        }
        if (s->check || unknown) {
            st = fill_one(it, rows, got, err);
            if (st != LS_OK) {
                return st;
            }
            continue;
        }
        st = lsi_iterator_fill(s->it, rows, LSI_MIN(want - *got, left_of_visit(il)),
                               &part, err);
        *got += part;
        if (!note_visit(il, s, part, st)) {
            return st;
        }
    }
    return LS_OK;
}

static ls_status skip_interleaved(lsi_iterator *it, int64_t n, int64_t *skipped,
                                  ls_error *err)
{
    struct interleave *il = (struct interleave *)it;

    *skipped = 0;
    while (*skipped < n) {
        struct slot *s = NULL;
        int64_t part = 0;
        ls_status st = find_slot(il, &s, err);

        if (st != LS_OK) {
            return st;
        }
        st = lsi_iterator_skip(s->it, LSI_MIN(n - *skipped, left_of_visit(il)), &part,
                               err);
        *skipped += part;
        if (!note_visit(il, s, part, st)) {
            return st;
        }
    }
    return LS_OK;
}

static ls_status save_interleave(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct interleave *il = (struct interleave *)it;
    ls_status st = LS_OK;

    if (il->late != NULL) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "there was no memory to open a file; "
                        "read the next element before the position is saved");
    }
    st = lsi_iterator_save(il->unary.input, w, err);
    lsi_state_write_bool(w, il->over);
    lsi_state_write_u64(w, il->next);
    lsi_state_write_u64(w, il->at);
    lsi_state_write_u64(w, (uint64_t)il->taken);
    lsi_state_write_u64(w, il->live);
    for (size_t i = 0; i < il->room && st == LS_OK; i++) {
        if (il->slots[i].it != NULL) {
            lsi_state_write_u64(w, i);
            lsi_state_write_u64(w, il->slots[i].number);
            lsi_state_write_value(w, il->slots[i].element);
            st = lsi_iterator_save(il->slots[i].it, w, err);
        }
    }
    return st;
}

/* Restores a slot: the function makes its dataset again. */
static ls_status restore_slot(struct interleave *il, lsi_state_reader *r, ls_error *err)
{
    const ls_spec *spec = il->node->base.inputs[0]->spec;
    ls_value *element = NULL;
    uint64_t at = 0, number = 0;
    ls_status st = lsi_state_read_count(r, (uint64_t)il->node->slots - 1, &at, err);

    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &number, err);
    }
    if (st == LS_OK) {
        st = reserve_slot(il, (size_t)at, err);
    }
    if (st == LS_OK && il->slots[at].it != NULL) {
        st = lsi_state_damaged(err, "a slot occurs twice");
    }
    if (st == LS_OK) {
        st = lsi_state_read_element(r, spec, &element, err);
    }
    if (st == LS_OK) {
        st = open_slot(il, &il->slots[at], element, number, err);
        if (st != LS_OK) {
            ls_value_release(element);
        }
    }
    return st == LS_OK ? lsi_iterator_restore(il->slots[at].it, r, err) : st;
}

static void empty_slots(struct interleave *il)
{
    for (size_t i = 0; i < il->room; i++) {
        empty_slot(il, &il->slots[i]);
    }
    ls_value_release(il->late);
    il->late = NULL;
}

static ls_status restore_interleave(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct interleave *il = (struct interleave *)it;
    uint64_t at = 0, taken = 0, live = 0;
    ls_status st = lsi_iterator_restore(il->unary.input, r, err);

    empty_slots(il);
    if (st == LS_OK) {
        st = lsi_state_read_bool(r, &il->over, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &il->next, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_count(r, (uint64_t)il->node->slots - 1, &at, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_count(r, (uint64_t)il->node->visit - 1, &taken, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &live, err);
    }
    while (st == LS_OK && il->live < live) {
        st = restore_slot(il, r, err);
    }
    if (st == LS_OK) {
        il->at = (size_t)at;
        il->taken = (int64_t)taken;
    }
    return st;
}

static void close_interleave(lsi_iterator *it)
{
    struct interleave *il = (struct interleave *)it;

    empty_slots(il);
    lsi_free(il->slots);
    lsi_unary_iterator_close(it);
}

ls_status lsi_interleave_iterate(ls_dataset *d, const lsi_opening *how,
                                 lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {next_interleaved,   fill_interleaved,
                                         skip_interleaved,   save_interleave,
                                         restore_interleave, close_interleave};
    const ls_status st =
        lsi_function_iterator_new(&ops, sizeof(struct interleave), d, how, out, err);

    if (st == LS_OK) {
        ((struct interleave *)*out)->node = (const lsi_interleave_node *)d;
    }
    return st;
}
