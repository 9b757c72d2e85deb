/*
 * The buffer of a shuffle. Elements that are one string each, such as records of files,
 * are held as strings in slots of a pool (string_pool.h) and are read many at a time: a
 * draw moves sixteen bytes and allocates nothing. No more are read at once than the
 * pending draws need, so that the input's position is the same as with one read per draw.
 */
#include "data/shuffle_buffer.h"

#include <string.h>

enum { AT_ONCE = 1024 }; // strings read by one call

/* Makes room for `n` more entries at the end. */
static bool make_entry_room(lsi_shuffle_buffer *b, size_t n)
{
    const size_t used = b->live + b->ahead;

    if (b->first + used + n <= b->room) {
        return true;
    }
    if (b->first > b->room / 2 && used + n <= b->room) { // there is room in front
        memmove(b->held, b->held + b->first, used * sizeof *b->held);
        b->first = 0;
        return true;
    }
    const size_t room = LSI_MAX(64, 2 * LSI_MAX(b->room, n));
    lsi_buffer *grown = lsi_buffer_new(b->device, room * sizeof *b->held);
    if (grown == NULL) {
        return false;
    }
    if (used > 0) {
        memcpy(grown->data, b->held + b->first, used * sizeof *b->held);
    }
    lsi_buffer_release(b->memory);
    b->memory = grown;
    b->held = grown->data;
    b->first = 0;
    b->room = room;
    return true;
}

static ls_status no_room(const lsi_shuffle_buffer *b, ls_error *err)
{
    return lsi_fail_memory(err, "the buffer of a shuffle", b->room * 2 * sizeof *b->held);
}

/* ---- strings ---- */

static ls_status receive_strings(lsi_string_sink *self, const ls_string *strings,
                                 size_t n, ls_error *err)
{
    lsi_shuffle_buffer *b = (lsi_shuffle_buffer *)self;

    if (!make_entry_room(b, n)) {
        lsi_string_pool_free_strings(b->sink.pool, strings, n);
        return no_room(b, err);
    }
    for (size_t i = 0; i < n; i++) {
        b->held[b->first + b->live + b->ahead++].string = strings[i];
    }
    return LS_OK;
}

/* Reads `n` strings; the end and a failure are kept in `over` and `late`. */
static void read_strings(lsi_shuffle_buffer *b, int64_t n)
{
    int64_t got = 0;
    const ls_status st = lsi_iterator_fill(b->input, b->arriving, n, &got, &b->late);

    b->late.code = LS_OK; // at the end, fill() may have set it
    if (lsi_batch_rows_finish(b->arriving, &b->late) == LS_OK) {
        b->over = st == LS_OUT_OF_RANGE;
        b->late.code = b->over ? LS_OK : st;
    }
    lsi_string_pool_fence();
}

/* Reads what the next `draws` draws need. */
static void read_for_draws(lsi_shuffle_buffer *b, int64_t draws)
{
    while (!b->over && b->late.code == LS_OK) {
        const int64_t have = (int64_t)(b->live + b->ahead);
        // size may be INT64_MAX: subtract before adding
        const int64_t need = b->size < 0                ? AT_ONCE
                             : b->size - have > AT_ONCE ? AT_ONCE
                                                        : b->size - have + draws - 1;

        if (need <= 0) {
            break;
        }
        read_strings(b, LSI_MIN(need, AT_ONCE));
    }
}

/* ---- filling and drawing ---- */

/* One more element of the input, or its number. */
static ls_status read_element(lsi_shuffle_buffer *b, lsi_shuffle_entry *to, ls_error *err)
{
    int64_t skipped = 0;
    ls_status st;

    if (b->kind == LSI_SHUFFLE_ELEMENTS) {
        return lsi_iterator_next(b->input, &to->element, err);
    }
    if (b->taken == b->input->dataset->cardinality) {
        return LS_OUT_OF_RANGE;
    }
    st = lsi_iterator_skip(b->input, 1, &skipped, err);
    if (st == LS_OK) {
        to->number = b->taken++;
    }
    return st;
}

/* Moves strings from `ahead` into the buffer; true: it is as full as it should be. */
static bool admit_strings(lsi_shuffle_buffer *b)
{
    const size_t free = b->size < 0 ? b->ahead : (size_t)b->size - b->live;
    const size_t n = LSI_MIN(free, b->ahead);

    b->live += n;
    b->ahead -= n;
    return b->over || (b->size >= 0 && n == free);
}

/* Returns the failure that was read instead of a string, once. */
static ls_status take_late_failure(lsi_shuffle_buffer *b, ls_error *err)
{
    const ls_status st = lsi_fail_again(err, &b->late);

    b->late = (ls_error)LS_ERROR_INIT;
    return st;
}

static ls_status fill_up(lsi_shuffle_buffer *b, ls_error *err)
{
    ls_status st = LS_OK;

    if (b->kind == LSI_SHUFFLE_STRINGS) {
        read_for_draws(b, 1);
        return admit_strings(b) ? LS_OK : take_late_failure(b, err);
    }
    while (!b->over && st == LS_OK && (b->size < 0 || b->live < (uint64_t)b->size)) {
        if (!make_entry_room(b, 1)) {
            return no_room(b, err);
        }
        st = read_element(b, &b->held[b->first + b->live], err);
        b->live += st == LS_OK;
        if (st == LS_OUT_OF_RANGE) {
            b->over = true;
            st = LS_OK;
        }
    }
    return st;
}

/* Draws an index; the caller swaps this entry with the first and removes the first. */
static size_t draw_place(lsi_shuffle_buffer *b, lsi_draws *g)
{
    const uint32_t x = lsi_draws_next(g);
    const size_t place = b->live <= UINT32_MAX ? x % (uint32_t)b->live : x;

    b->live--;
    return b->first++ + place;
}

ls_status lsi_shuffle_buffer_draw(lsi_shuffle_buffer *b, lsi_draws *g,
                                  lsi_shuffle_entry *out, ls_error *err)
{
    const ls_status st = fill_up(b, err);

    if (st != LS_OK || b->live == 0) {
        return st != LS_OK ? st : LS_OUT_OF_RANGE;
    }
    const size_t place = draw_place(b, g), first = b->first - 1;
    *out = b->held[place];
    b->held[place] = b->held[first];
    return LS_OK;
}

size_t lsi_shuffle_buffer_draw_strings(lsi_shuffle_buffer *b, lsi_draws *g, size_t want,
                                       lsi_shuffle_entry *out)
{
    size_t *places = b->places, n = 0, first;

    if (b->kind != LSI_SHUFFLE_STRINGS) {
        return 0;
    }
    read_for_draws(b, (int64_t)want);
    first = b->first;
    // All entries are prefetched first, so that the second loop does not wait for memory.
    for (; n < want && admit_strings(b) && b->live > 0; n++) {
        places[n] = draw_place(b, g);
        __builtin_prefetch(&b->held[places[n]], 1);
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = b->held[places[i]];
        b->held[places[i]] = b->held[first + i];
    }
    return n;
}

/* ---- what was drawn ---- */

/* Makes an owner for strings that leave the buffer. */
static ls_status give_owner(lsi_shuffle_buffer *b, const ls_string *strings, size_t n,
                            lsi_buffer **owner, ls_error *err)
{
    *owner = lsi_string_pool_owner(b->sink.pool, strings, n);
    if (*owner == NULL) {
        lsi_string_pool_free_strings(b->sink.pool, strings, n);
        return lsi_fail_memory(err, "strings", n * sizeof *strings);
    }
    return LS_OK;
}

static ls_status string_element(lsi_shuffle_buffer *b, ls_string s, ls_value **out,
                                ls_error *err)
{
    lsi_buffer *owner = NULL;
    ls_tensor *t = NULL;
    ls_status st = give_owner(b, &s, 1, &owner, err);

    if (st == LS_OK) {
        t = lsi_tensor_string(s, owner, b->device);
        st = t != NULL ? ls_value_tensor(t, out, err)
                       : lsi_fail_memory(err, "a string", sizeof *t);
    }
    ls_tensor_release(t);
    lsi_buffer_release(owner);
    return st;
}

ls_status lsi_shuffle_buffer_element(lsi_shuffle_buffer *b, lsi_shuffle_entry drawn,
                                     ls_value **out, ls_error *err)
{
    const ls_dataset *input = b->input->dataset;

    if (b->kind == LSI_SHUFFLE_STRINGS) {
        return string_element(b, drawn.string, out, err);
    }
    if (b->kind == LSI_SHUFFLE_NUMBERS) {
        return input->ops->element(input, drawn.number, b->device, out, err);
    }
    *out = drawn.element;
    return LS_OK;
}

/* Elements of an input in memory are copied from there into the batch. */
static ls_status add_one(lsi_shuffle_buffer *b, lsi_shuffle_entry drawn,
                         lsi_batch_rows *rows, ls_error *err)
{
    const ls_dataset *input = b->input->dataset;
    ls_status st;

    if (b->kind == LSI_SHUFFLE_NUMBERS) {
        return input->ops->rows(input, drawn.number, 1, rows, err);
    }
    st = lsi_batch_rows_add(rows, drawn.element, err);
    ls_value_release(drawn.element);
    return st;
}

ls_status lsi_shuffle_buffer_add(lsi_shuffle_buffer *b, const lsi_shuffle_entry *drawn,
                                 size_t n, lsi_batch_rows *rows, ls_error *err)
{
    const ls_shape scalar = {0};
    lsi_buffer *owner = NULL;
    ls_status st = LS_OK;

    if (b->kind != LSI_SHUFFLE_STRINGS) {
        for (size_t i = 0; i < n && st == LS_OK; i++) {
            st = add_one(b, drawn[i], rows, err);
        }
        return st;
    }
    st = give_owner(b, &drawn->string, n, &owner, err);
    if (st == LS_OK) {
        st = lsi_batch_rows_add_block(rows, 0, LS_STRING, &scalar, drawn, owner,
                                      (int64_t)n, err);
    }
    lsi_buffer_release(owner);
    return st;
}
_Static_assert(sizeof(lsi_shuffle_entry) == sizeof(ls_string),
               "drawn strings are strings");

/* ---- opening and closing ---- */

static bool holds_strings(const ls_spec *s)
{
    return s->kind == LS_SPEC_TENSOR && s->dtype == LS_STRING && s->ndim == 0;
}

ls_status lsi_shuffle_buffer_open(lsi_shuffle_buffer *b, lsi_iterator *input,
                                  int64_t size, ls_error *err)
{
    const ls_dataset *d = input->dataset;
    ls_status st = LS_OK;

    b->input = input;
    b->size = size;
    b->late = (ls_error)LS_ERROR_INIT;
    b->device = input->as.device;
    if (d->ops->element != NULL) {
        b->kind = LSI_SHUFFLE_NUMBERS;
    } else if (holds_strings(d->spec)) {
        b->kind = LSI_SHUFFLE_STRINGS;
        b->sink.add = receive_strings;
        b->places = lsi_alloc(LSI_SHUFFLE_AT_ONCE, sizeof *b->places);
        st = b->places != NULL ? lsi_string_pool_create(b->device, &b->sink.pool, err)
                               : no_room(b, err);
        if (st == LS_OK) {
            st = lsi_batch_rows_create_sink(d->spec, &b->sink, &b->arriving, err);
        }
    }
    return st;
}

static void drop_entries(lsi_shuffle_buffer *b)
{
    for (size_t i = 0; i < b->live + b->ahead; i++) {
        const lsi_shuffle_entry *h = &b->held[b->first + i];

        if (b->kind == LSI_SHUFFLE_ELEMENTS) {
            ls_value_release(h->element);
        } else if (b->kind == LSI_SHUFFLE_STRINGS) {
            lsi_string_pool_free_strings(b->sink.pool, &h->string, 1);
        }
    }
    b->first = 0;
    b->live = 0;
    b->ahead = 0;
    b->late = (ls_error)LS_ERROR_INIT;
}

void lsi_shuffle_buffer_close(lsi_shuffle_buffer *b)
{
    drop_entries(b);
    lsi_buffer_release(b->memory);
    lsi_batch_rows_release(b->arriving);
    lsi_string_pool_release(b->sink.pool);
    lsi_free(b->places);
}

/* ---- saving; strings are saved as elements ---- */

static void write_string(lsi_state_writer *w, ls_string s)
{
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_status st = lsi_tensor_create(NULL, LS_STRING, LS_SCALAR, &s, &t, NULL);

    if (st == LS_OK) {
        st = ls_value_tensor(t, &v, NULL);
    }
    if (st == LS_OK) {
        lsi_state_write_value(w, v);
    } else {
        w->failed = true;
    }
    ls_value_release(v);
    ls_tensor_release(t);
}

void lsi_shuffle_buffer_save(const lsi_shuffle_buffer *b, lsi_state_writer *w)
{
    lsi_state_write_u64(w, b->live);
    for (size_t i = 0; i < b->live; i++) {
        const lsi_shuffle_entry *h = &b->held[b->first + i];

        if (b->kind == LSI_SHUFFLE_NUMBERS) {
            lsi_state_write_u64(w, (uint64_t)h->number);
        } else if (b->kind == LSI_SHUFFLE_STRINGS) {
            write_string(w, h->string);
        } else {
            lsi_state_write_value(w, h->element);
        }
    }
    lsi_state_write_u64(w, (uint64_t)b->taken);
    lsi_state_write_bool(w, b->over);
}

/* A number is an index into the input, and is checked before it is used. */
static ls_status read_one(lsi_shuffle_buffer *b, lsi_state_reader *r, ls_error *err)
{
    const ls_dataset *d = b->input->dataset;
    lsi_shuffle_entry *to = &b->held[b->first + b->live];
    ls_value *v = NULL;
    uint64_t number = 0;
    ls_status st;

    if (b->kind == LSI_SHUFFLE_NUMBERS) {
        st = lsi_state_read_count(r, (uint64_t)d->cardinality - 1, &number, err);
        to->number = (int64_t)number;
        b->live += st == LS_OK;
        return st;
    }
    st = lsi_state_read_element(r, d->spec, &v, err);
    if (st == LS_OK && b->kind == LSI_SHUFFLE_ELEMENTS) {
        to->element = v;
        b->live++;
        return LS_OK;
    }
    if (st == LS_OK) {
        st = lsi_batch_rows_add(b->arriving, v, err);
    }
    if (st == LS_OK) {
        st = lsi_batch_rows_finish(b->arriving, err);
    }
    ls_value_release(v);
    b->live += b->ahead;
    b->ahead = 0;
    return st;
}

static ls_status read_all(lsi_shuffle_buffer *b, lsi_state_reader *r, ls_error *err)
{
    uint64_t n = 0, most = (r->size - r->at) / sizeof n;
    ls_status st = LS_OK;

    if (b->size >= 0) {
        most = LSI_MIN(most, (uint64_t)b->size);
    }
    if (b->kind == LSI_SHUFFLE_NUMBERS) {
        most = LSI_MIN(most, (uint64_t)b->input->dataset->cardinality);
    }
    st = lsi_state_read_count(r, most, &n, err);
    for (uint64_t i = 0; i < n && st == LS_OK; i++) {
        st = make_entry_room(b, 1) ? read_one(b, r, err) : no_room(b, err);
    }
    return st;
}

ls_status lsi_shuffle_buffer_restore(lsi_shuffle_buffer *b, lsi_state_reader *r,
                                     ls_error *err)
{
    uint64_t taken = 0;
    ls_status st;

    drop_entries(b);
    st = read_all(b, r, err);
    if (st == LS_OK) {
        st = lsi_state_read_count(r, (uint64_t)INT64_MAX, &taken, err);
        b->taken = (int64_t)taken;
    }
    if (st == LS_OK && b->kind == LSI_SHUFFLE_NUMBERS &&
        b->taken > b->input->dataset->cardinality) {
        st = lsi_state_damaged(err, "more elements were shuffled than there are");
    }
    return st == LS_OK ? lsi_state_read_bool(r, &b->over, err) : st;
}
