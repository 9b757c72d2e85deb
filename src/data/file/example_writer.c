/* Building tf.train.Examples and writing them in protobuf's wire format. */
#include "base/hash.h"
#include "data/file/stream.h"

#include "lockstep/record.h"

#include <stdlib.h>

enum { BYTES_LIST = 1, FLOAT_LIST, INT64_LIST, VARINT_MOST = 10 };

struct feature {
    char *name;
    int kind;
    uint8_t *list; // the serialized list
    size_t len;
};

struct ls_example {
    struct feature *features;
    size_t n, room;
    size_t *table;  // by name: 1 + the index of a feature; 0: free
    size_t slots;   // of the table: a power of two, at least twice the features
    uint8_t *bytes; // of the last serialization
    size_t size;
};

static size_t varint_size(uint64_t x)
{
    size_t n = 1;

    while (x >= 0x80) {
        x >>= 7;
        n++;
    }
    return n;
}

static uint8_t *put_varint(uint8_t *p, uint64_t x)
{
    while (x >= 0x80) {
        *p++ = (uint8_t)(x | 0x80);
        x >>= 7;
    }
    *p++ = (uint8_t)x;
    return p;
}

/* Writes the tag and the length of a field. */
static uint8_t *put_start(uint8_t *p, int field, size_t len)
{
    *p++ = (uint8_t)(field << 3 | 2);
    return put_varint(p, len);
}

static size_t field_size(size_t len)
{
    return 1 + varint_size(len) + len;
}

ls_status ls_example_create(ls_example **out, ls_error *err)
{
    ls_example *e;

    if (out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "there is nowhere to put the example: `out` is NULL");
    }
    e = lsi_alloc(1, sizeof *e);
    if (e == NULL) {
        return lsi_fail_memory(err, "an example", sizeof *e);
    }
    *out = e;
    return LS_OK;
}

void ls_example_clear(ls_example *e)
{
    if (e == NULL) {
        return;
    }
    for (size_t i = 0; i < e->n; i++) {
        lsi_free(e->features[i].name);
        lsi_free(e->features[i].list);
    }
    e->n = 0;
    if (e->table != NULL) {
        memset(e->table, 0, e->slots * sizeof *e->table);
    }
    lsi_free(e->bytes);
    e->bytes = NULL;
}

void ls_example_release(ls_example *e)
{
    if (e != NULL) {
        ls_example_clear(e);
        lsi_free(e->features);
        lsi_free(e->table);
        lsi_free(e);
    }
}

static ls_status check_arguments(const ls_example *e, const char *name,
                                 const void *values, size_t n, ls_error *err)
{
    return e != NULL && name != NULL && (values != NULL || n == 0)
               ? LS_OK
               : lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                               "the feature %.100s of an example: an argument is NULL",
                               name != NULL ? name : "without a name");
}

/* The place in the table of a feature of this name, or the free one where it belongs. */
static size_t *find_place(const ls_example *e, const char *name)
{
    const uint64_t hash = lsi_hash(LSI_HASH_INIT, name, strlen(name));
    size_t at = (size_t)(hash ^ hash >> 32) & (e->slots - 1);
    while (e->table[at] != 0 && strcmp(e->features[e->table[at] - 1].name, name) != 0) {
        at = (at + 1) & (e->slots - 1);
    }
    return &e->table[at];
}

/* Rebuilds the table from the features. */
static void index_features(ls_example *e)
{
    memset(e->table, 0, e->slots * sizeof *e->table);
    for (size_t i = 0; i < e->n; i++) {
        *find_place(e, e->features[i].name) = i + 1;
    }
}

static bool grow_table(ls_example *e)
{
    const size_t room = e->room == 0 ? 8 : 2 * e->room;
    size_t *table = lsi_alloc(2 * room, sizeof *table);
    struct feature *grown =
        table != NULL ? lsi_realloc(e->features, e->n, room, sizeof *grown) : NULL;

    if (grown == NULL) {
        lsi_free(table);
        return false;
    }
    lsi_free(e->table);
    e->table = table;
    e->slots = 2 * room;
    e->features = grown;
    e->room = room;
    index_features(e);
    return true;
}

/* The feature of this name, or a new one. NULL: out of memory. */
static struct feature *place_for(ls_example *e, const char *name)
{
    const size_t old = e->slots > 0 ? *find_place(e, name) : 0;
    char *copy;

    if (old > 0) {
        return &e->features[old - 1];
    }
    if (e->n == e->room && !grow_table(e)) {
        return NULL;
    }
    copy = lsi_strdup(name);
    if (copy == NULL) {
        return NULL;
    }
    e->features[e->n] = (struct feature){copy, 0, NULL, 0};
    *find_place(e, name) = ++e->n;
    return &e->features[e->n - 1];
}

/* Takes over `list`, which may be NULL: out of memory. */
static ls_status keep_feature(ls_example *e, const char *name, int kind, uint8_t *list,
                              size_t len, ls_error *err)
{
    struct feature *f = list != NULL ? place_for(e, name) : NULL;

    if (f == NULL) {
        lsi_free(list);
        return lsi_fail_memory(err, "a feature of an example", len);
    }
    lsi_free(f->list);
    f->kind = kind;
    f->list = list;
    f->len = len;
    lsi_free(e->bytes);
    e->bytes = NULL;
    return LS_OK;
}

ls_status ls_example_add_int64(ls_example *e, const char *name, const int64_t *values,
                               size_t n, ls_error *err)
{
    uint8_t *list, *p;
    size_t packed = 0;
    const ls_status st = check_arguments(e, name, values, n, err);

    if (st != LS_OK) {
        return st;
    }
    for (size_t i = 0; i < n; i++) {
        packed += varint_size((uint64_t)values[i]);
    }
    list = lsi_alloc(packed + 1 + VARINT_MOST, 1);
    p = list;
    if (list != NULL && n > 0) {
        p = put_start(p, 1, packed);
        for (size_t i = 0; i < n; i++) {
            p = put_varint(p, (uint64_t)values[i]);
        }
    }
    return keep_feature(e, name, INT64_LIST, list, (size_t)(p - list), err);
}

ls_status ls_example_add_float(ls_example *e, const char *name, const float *values,
                               size_t n, ls_error *err)
{
    uint8_t *list = NULL, *p;
    size_t packed;
    const ls_status st = check_arguments(e, name, values, n, err);

    if (st != LS_OK) {
        return st;
    }
    if (lsi_mul_size(n, sizeof *values, &packed) && packed < SIZE_MAX / 2) {
        list = lsi_alloc(packed + 1 + VARINT_MOST, 1);
    }
    p = list;
    if (list != NULL && n > 0) {
        p = put_start(p, 1, packed);
        for (size_t i = 0; i < n; i++, p += 4) {
            uint32_t bits;

            memcpy(&bits, &values[i], sizeof bits);
            lsi_put_le32(p, bits);
        }
    }
    return keep_feature(e, name, FLOAT_LIST, list, (size_t)(p - list), err);
}

ls_status ls_example_add_bytes(ls_example *e, const char *name, const ls_string *values,
                               size_t n, ls_error *err)
{
    uint8_t *list, *p;
    size_t len = 0;
    const ls_status st = check_arguments(e, name, values, n, err);

    if (st != LS_OK) {
        return st;
    }
    for (size_t i = 0; i < n; i++) {
        if (!lsi_add_size(len, field_size(values[i].len), &len)) {
            return lsi_fail_memory(err, "a feature of an example", SIZE_MAX);
        }
    }
    list = lsi_alloc(len + 1, 1);
    p = list;
    for (size_t i = 0; list != NULL && i < n; i++) {
        p = put_start(p, 1, values[i].len);
        if (values[i].len > 0) {
            memcpy(p, values[i].ptr, values[i].len);
            p += values[i].len;
        }
    }
    return keep_feature(e, name, BYTES_LIST, list, len, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct feature *)a)->name, ((const struct feature *)b)->name);
}

/* The size of the map's entry around a list, with its Feature. */
static size_t entry_size(const struct feature *f)
{
    return field_size(strlen(f->name)) + field_size(field_size(f->len));
}

static uint8_t *put_feature(uint8_t *p, const struct feature *f)
{
    const size_t name = strlen(f->name);

    p = put_start(p, 1, entry_size(f));
    p = put_start(p, 1, name);
    memcpy(p, f->name, name);
    p = put_start(p + name, 2, field_size(f->len));
    p = put_start(p, f->kind, f->len);
    memcpy(p, f->list, f->len);
    return p + f->len;
}

ls_status ls_example_serialize(ls_example *e, ls_string *out, ls_error *err)
{
    if (e == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "serialize: an argument is NULL");
    }
    if (e->bytes == NULL) {
        size_t inner = 0;
        uint8_t *p;

        for (size_t i = 0; i < e->n; i++) {
            inner += field_size(entry_size(&e->features[i]));
        }
        e->size = e->n > 0 ? field_size(inner) : 0;
        e->bytes = lsi_alloc(e->size + 1, 1);
        if (e->bytes == NULL) {
            return lsi_fail_memory(err, "an example", e->size);
        }
        if (e->n > 0) {
            qsort(e->features, e->n, sizeof *e->features, by_name);
            index_features(e);
            p = put_start(e->bytes, 1, inner);
            for (size_t i = 0; i < e->n; i++) {
                p = put_feature(p, &e->features[i]);
            }
        }
    }
    *out = (ls_string){(const char *)e->bytes, e->size};
    return LS_OK;
}
