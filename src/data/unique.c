/*
 * unique: the first of equal elements. All elements seen are kept, in their order, with
 * an open hash table over them.
 */
#include "base/hash.h"
#include "data/data.h"

#include <string.h>

struct unique {
    lsi_unary_iterator unary;
    ls_value **seen;
    size_t count, room;
    size_t *table; // of `size` places: 1 + the index of an element; 0: free
    size_t size;   // a power of two, more than twice the number of elements
};

static uint64_t hash_of(const ls_tensor *t)
{
    const ls_string *strings = ls_tensor_data(t);
    uint64_t hash = LSI_HASH_INIT;

    if (ls_tensor_dtype(t) != LS_STRING) {
        hash = lsi_hash(hash, ls_tensor_data(t), ls_tensor_bytes(t));
    } else {
        for (int64_t i = 0; i < ls_tensor_count(t); i++) {
            hash = lsi_hash(hash, &strings[i].len, sizeof strings[i].len);
            hash = lsi_hash(hash, strings[i].ptr, strings[i].len);
        }
    }
    return hash ^ (hash >> 32);
}

static bool equal_tensors(const ls_tensor *a, const ls_tensor *b)
{
    const ls_shape left = ls_tensor_shape(a), right = ls_tensor_shape(b);
    const ls_string *s = ls_tensor_data(a), *t = ls_tensor_data(b);
    bool same = ls_tensor_dtype(a) == ls_tensor_dtype(b) && ls_shape_equal(&left, &right);

    if (!same || ls_tensor_dtype(a) != LS_STRING) {
        return same &&
               (ls_tensor_bytes(a) == 0 ||
                memcmp(ls_tensor_data(a), ls_tensor_data(b), ls_tensor_bytes(a)) == 0);
    }
    for (int64_t i = 0; same && i < ls_tensor_count(a); i++) {
        same = s[i].len == t[i].len &&
               (s[i].len == 0 || memcmp(s[i].ptr, t[i].ptr, s[i].len) == 0);
    }
    return same;
}

/* The place of an equal element, or the free place where it belongs. */
static size_t place_of(const struct unique *u, const ls_tensor *t)
{
    size_t i = (size_t)hash_of(t) & (u->size - 1);

    LSI_ASSERT(u->table != NULL);
    while (u->table[i] != 0 &&
           !equal_tensors(ls_value_as_tensor(u->seen[u->table[i] - 1]), t)) {
        i = (i + 1) & (u->size - 1);
    }
    return i;
}

static ls_status make_table_room(struct unique *u, ls_error *err)
{
    size_t room = LSI_MAX(64, 2 * u->room), size = 4 * room;
    ls_value **seen = NULL;
    size_t *table = NULL;

    if (u->count < u->room) {
        return LS_OK;
    }
    table = lsi_alloc(size, sizeof *table);
    seen = table != NULL ? lsi_realloc(u->seen, u->room, room, sizeof(ls_value *)) : NULL;
    if (seen == NULL) {
        lsi_free(table);
        return lsi_fail_memory(err, "the elements seen by unique", size * sizeof *table);
    }
    lsi_free(u->table);
    u->seen = seen;
    u->room = room;
    u->table = table;
    u->size = size;
    for (size_t i = 0; i < u->count; i++) {
        u->table[place_of(u, ls_value_as_tensor(seen[i]))] = i + 1;
    }
    return LS_OK;
}

/* Adds an element, which is retained, if it is new. */
static ls_status note_element(struct unique *u, ls_value *element, bool *fresh,
                              ls_error *err)
{
    ls_status st = make_table_room(u, err);
    size_t place = 0;

    if (st != LS_OK) {
        return st;
    }
    place = place_of(u, ls_value_as_tensor(element));
    *fresh = u->table[place] == 0;
    if (*fresh) {
        u->seen[u->count++] = ls_value_retain(element);
        u->table[place] = u->count;
    }
    return LS_OK;
}

static bool is_comparable(ls_dtype dtype)
{
    return dtype == LS_I32 || dtype == LS_I64 || dtype == LS_STRING;
}

static ls_status check_element(const ls_value *element, ls_error *err)
{
    const ls_tensor *t = ls_value_as_tensor(element);

    return t != NULL && is_comparable(ls_tensor_dtype(t))
               ? LS_OK
               : lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                               "unique: an element is one tensor of int32, int64 or "
                               "string, this is %s",
                               t != NULL ? ls_dtype_name(ls_tensor_dtype(t))
                                         : ls_value_kind_name(ls_value_kind_of(element)));
}

static ls_status next_unique(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct unique *u = (struct unique *)it;

    for (;;) {
        ls_value *element = NULL;
        bool fresh = false;
        ls_status st = make_table_room(u, err); // first: no element is lost if it fails

        if (st == LS_OK) {
            st = lsi_iterator_next(u->unary.input, &element, err);
        }

        if (st != LS_OK) {
            return st;
        }
        st = check_element(element, err);
        if (st == LS_OK) {
            st = note_element(u, element, &fresh, err);
        }
        if (fresh) {
            *out = element;
            return LS_OK;
        }
        ls_value_release(element);
        if (st != LS_OK) {
            return st;
        }
    }
}

static ls_status save_unique(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    const struct unique *u = (const struct unique *)it;

    lsi_state_write_u64(w, u->count);
    for (size_t i = 0; i < u->count; i++) {
        lsi_state_write_value(w, u->seen[i]);
    }
    return lsi_iterator_save(u->unary.input, w, err);
}

static void forget_seen(struct unique *u)
{
    lsi_value_release_all(u->seen, u->count);
    lsi_free(u->table);
    u->seen = NULL;
    u->table = NULL;
    u->count = 0;
    u->room = 0;
    u->size = 0;
}

static ls_status restore_unique(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct unique *u = (struct unique *)it;
    uint64_t n = 0;
    ls_status st = lsi_state_read_count(r, (r->size - r->at) / sizeof n, &n, err);

    forget_seen(u);
    for (uint64_t i = 0; i < n && st == LS_OK; i++) {
        ls_value *element = NULL;
        bool fresh = false;

        st = lsi_state_read_element(r, it->dataset->spec, &element, err);
        if (st == LS_OK && check_element(element, NULL) != LS_OK) {
            st = lsi_state_damaged(err, "an element that unique cannot have seen");
        }
        if (st == LS_OK) {
            st = note_element(u, element, &fresh, err);
        }
        ls_value_release(element);
    }
    return st == LS_OK ? lsi_iterator_restore(u->unary.input, r, err) : st;
}

static void close_unique(lsi_iterator *it)
{
    forget_seen((struct unique *)it);
    lsi_unary_iterator_close(it);
}

static ls_status iterate_unique(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                                ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_unique,
                                         .save = save_unique,
                                         .restore = restore_unique,
                                         .close = close_unique};

    return lsi_unary_iterator_new(&ops, sizeof(struct unique), d, how, out, err);
}

static ls_dataset *rebuild_unique(const ls_dataset *d, ls_dataset *const *inputs)
{
    (void)d;
    return ls_dataset_unique(ls_dataset_retain(inputs[0]));
}

ls_dataset *ls_dataset_unique(ls_dataset *d)
{
    static const lsi_dataset_ops ops = {
        .kind = "unique", .iterate = iterate_unique, .rebuild = rebuild_unique};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(ls_dataset), &d, 1);

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (!lsi_spec_is_unknown(d->spec) &&
        (d->spec->kind != LS_SPEC_TENSOR || !is_comparable(d->spec->dtype))) {
        char text[200];

        (void)ls_spec_text(d->spec, text, sizeof text);
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                                "unique: elements are one tensor of int32, int64 or "
                                "string, not %s",
                                text);
    }
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec), LS_UNKNOWN_SIZE, NULL);
}
