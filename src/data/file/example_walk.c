/* The features of a serialized Example of which nothing is known beforehand. */
#include "data/file/example_wire.h"

/* A Feature: the list that was set last counts. */
static bool read_kind(ls_string feature, ls_example_entry *out)
{
    ls_string list;
    uint32_t number;

    while (lsi_wire_next(&feature, &number, &list)) {
        if (number >= LS_LIST_BYTES && number <= LS_LIST_INT64) {
            if (list.ptr == NULL) {
                return false;
            }
            out->kind = (ls_list_kind)number;
            out->list = list;
        }
    }
    return feature.len == 0;
}

static lsi_feature_list list_of(const ls_example_entry *e)
{
    return (lsi_feature_list){(const uint8_t *)e->list.ptr, e->list.len, 0, e->kind};
}

static bool count_values(ls_example_entry *e)
{
    const lsi_feature_list list = list_of(e);
    const int64_t n = e->kind == LS_LIST_INT64   ? lsi_feature_list_int64(&list, NULL, 0)
                      : e->kind == LS_LIST_FLOAT ? lsi_feature_list_float(&list, NULL, 0)
                      : e->kind == LS_LIST_BYTES ? lsi_feature_list_bytes(&list, NULL, 0)
                                                 : 0;

    e->count = n > 0 ? (size_t)n : 0;
    return n >= 0;
}

/* An entry of the map: its key is field 1, its value field 2. */
static bool read_entry(ls_string entry, ls_example_entry *out)
{
    ls_string bytes;
    uint32_t number;

    *out = (ls_example_entry){.name = {"", 0}, .list = {"", 0}};
    while (lsi_wire_next(&entry, &number, &bytes)) {
        if (number == 1 && bytes.ptr != NULL) {
            out->name = bytes;
        } else if (number == 2 && (bytes.ptr == NULL || !read_kind(bytes, out))) {
            return false;
        }
    }
    return entry.len == 0 && count_values(out);
}

ls_status ls_example_walk_next(ls_example_walk *w, ls_example_entry *out, ls_error *err)
{
    ls_string entry;
    uint32_t number = 1;
    bool good = true;

    while (good && w->features.len == 0) {
        if (w->example.len == 0) {
            return LS_OUT_OF_RANGE;
        }
        good = lsi_wire_next(&w->example, &number, &w->features) && number == 1 &&
               w->features.ptr != NULL;
    }
    if (!good || !lsi_wire_next(&w->features, &number, &entry) || number != 1 ||
        entry.ptr == NULL || !read_entry(entry, out)) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "these bytes are no serialized tf.train.Example");
    }
    return LS_OK;
}

/* How many of `n` values were copied. */
static size_t copied(int64_t n, size_t room)
{
    return n > 0 ? LSI_MIN((size_t)n, room) : 0;
}

size_t ls_example_entry_int64(const ls_example_entry *e, int64_t *to, size_t room)
{
    const lsi_feature_list list = list_of(e);

    return e->kind == LS_LIST_INT64
               ? copied(lsi_feature_list_int64(&list, to, room), room)
               : 0;
}

size_t ls_example_entry_float(const ls_example_entry *e, float *to, size_t room)
{
    const lsi_feature_list list = list_of(e);

    return e->kind == LS_LIST_FLOAT
               ? copied(lsi_feature_list_float(&list, to, room), room)
               : 0;
}

size_t ls_example_entry_bytes(const ls_example_entry *e, ls_string *to, size_t room)
{
    const lsi_feature_list list = list_of(e);

    return e->kind == LS_LIST_BYTES
               ? copied(lsi_feature_list_bytes(&list, to, room), room)
               : 0;
}
