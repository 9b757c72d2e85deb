/* Reading the protobuf messages Example, Features, Feature and its lists. */
#include "data/file/example_wire.h"

enum { VARINT = 0, FIXED64 = 1, SIZED = 2, FIXED32 = 5, VARINT_MOST = 10 };

/* A field of a message: its number and its value. */
struct field {
    uint32_t number;
    unsigned type;
    uint64_t x;       // of a varint
    const uint8_t *p; // of the other types
    size_t len;
};

/* The number at `p`; returns where it ends, or NULL. */
static inline const uint8_t *read_varint(const uint8_t *p, const uint8_t *end,
                                         uint64_t *x)
{
    uint64_t sum = 0;

    if (p < end && *p < 0x80) { // the usual case
        *x = *p;
        return p + 1;
    }
    for (unsigned shift = 0; shift < 7 * VARINT_MOST; shift += 7) {
        if (p == end) {
            return NULL;
        }
        sum |= (uint64_t)(*p & 0x7F) << shift; // of the tenth byte only one bit fits
        if (*p++ < 0x80) {
            *x = sum;
            return p;
        }
    }
    return NULL;
}

static const uint8_t *read_any_field(const uint8_t *p, const uint8_t *end,
                                     struct field *f)
{
    uint64_t tag;

    p = read_varint(p, end, &tag);
    if (p == NULL || tag >> 3 == 0 || tag > UINT32_MAX) {
        return NULL;
    }
    f->number = (uint32_t)(tag >> 3);
    f->type = (unsigned)(tag & 7);
    switch (f->type) {
    case VARINT:
        return read_varint(p, end, &f->x);
    case FIXED64:
        f->len = 8;
        break;
    case FIXED32:
        f->len = 4;
        break;
    case SIZED:
        p = read_varint(p, end, &tag);
        if (p == NULL || tag > (size_t)(end - p)) {
            return NULL;
        }
        f->len = (size_t)tag;
        break;
    default: // groups: not part of proto3
        return NULL;
    }
    if (f->len > (size_t)(end - p)) {
        return NULL;
    }
    f->p = p;
    return p + f->len;
}

/* The field at `p`; returns where it ends, or NULL. */
static inline const uint8_t *read_field(const uint8_t *p, const uint8_t *end,
                                        struct field *f)
{
    // The usual case: a field number below 16 and a length below 128.
    if (end - p >= 2 && (p[0] & 0x87) == SIZED && p[0] >= 8 && p[1] < 0x80 &&
        p[1] <= end - p - 2) {
        f->number = p[0] >> 3;
        f->type = SIZED;
        f->len = p[1];
        f->p = p + 2;
        return p + 2 + f->len;
    }
    return read_any_field(p, end, f);
}

/* Reads a Feature: if several lists are set, the last one is used. */
static bool scan_feature(const struct field *value, lsi_feature_list *list)
{
    const uint8_t *p = value->p, *end = p + value->len;
    struct field f;

    *list = (lsi_feature_list){NULL, 0, 0, LS_LIST_NONE};
    while (p < end) {
        p = read_field(p, end, &f);
        if (p == NULL) {
            return false;
        }
        if (f.type == SIZED && f.number >= LS_LIST_BYTES && f.number <= LS_LIST_INT64) {
            *list = (lsi_feature_list){f.p, f.len, 0, (ls_list_kind)f.number};
        }
    }
    return true;
}

static int compare_name(const lsi_wanted_feature *w, const uint8_t *key, size_t len)
{
    const int c = memcmp(w->name, key, LSI_MIN(w->len, len));

    return c != 0 ? c : (w->len > len) - (w->len < len);
}

/* Finds a name among the wanted; tries the one after the last hit first. */
static const lsi_wanted_feature *look_up(const lsi_wanted_feature *wanted, size_t n,
                                         size_t *guess, const struct field *key)
{
    size_t low = 0, high = n;

    if (*guess < n && wanted[*guess].len == key->len &&
        memcmp(wanted[*guess].name, key->p, key->len) == 0) {
        return &wanted[(*guess)++];
    }
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int c = compare_name(&wanted[mid], key->p, key->len);

        if (c == 0) {
            *guess = mid + 1;
            return &wanted[mid];
        }
        if (c < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return NULL;
}

/* Reads an entry of the map; its Feature is checked even if it is not wanted. */
static bool scan_entry(const struct field *entry, const lsi_wanted_feature *wanted,
                       size_t n, size_t *guess, lsi_feature_list *lists)
{
    static const uint8_t nothing[1];
    const uint8_t *p = entry->p, *end = p + entry->len;
    struct field f, key = {0}, value = {0};
    const lsi_wanted_feature *w;
    lsi_feature_list list;

    key.p = value.p = nothing;
    while (p < end) {
        p = read_field(p, end, &f);
        if (p == NULL) {
            return false;
        }
        if (f.type == SIZED && f.number == 1) {
            key = f;
        } else if (f.type == SIZED && f.number == 2) {
            value = f;
        }
    }
    w = look_up(wanted, n, guess, &key);
    if (w == NULL) {
        return true;
    }
    if (!scan_feature(&value, &list)) {
        return false;
    }
    lists[w->index] = list;
    return true;
}

static bool scan_features(const struct field *features, const lsi_wanted_feature *wanted,
                          size_t n, lsi_feature_list *lists)
{
    const uint8_t *p = features->p, *end = p + features->len;
    size_t guess = 0;
    struct field f;

    while (p < end) {
        p = read_field(p, end, &f);
        if (p == NULL || (f.type == SIZED && f.number == 1 &&
                          !scan_entry(&f, wanted, n, &guess, lists))) {
            return false;
        }
    }
    return true;
}

bool lsi_example_scan(const uint8_t *p, size_t len, const lsi_wanted_feature *wanted,
                      size_t n, lsi_feature_list *lists)
{
    const uint8_t *end = p + len;
    struct field f;

    while (p < end) {
        p = read_field(p, end, &f);
        if (p == NULL ||
            (f.type == SIZED && f.number == 1 && !scan_features(&f, wanted, n, lists))) {
            return false;
        }
    }
    return true;
}

/* Appends `len` bytes, unprintable ones as '?'; "..." if they do not fit. */
static void append_text(char *text, size_t size, size_t *at, const void *bytes,
                        size_t len)
{
    const uint8_t *p = bytes;

    if (*at + len + sizeof "..." > size) {
        memcpy(text + LSI_MIN(*at, size - sizeof "..."), "...", sizeof "...");
        *at = size;
        return;
    }
    for (size_t i = 0; i < len; i++) {
        const uint8_t shown = p[i] >= 0x20 && p[i] != 0x7F ? p[i] : '?';

        memcpy(text + (*at)++, &shown, 1);
    }
    text[*at] = '\0';
}

/* The names of a map's entries. */
static void append_names(const struct field *features, char *text, size_t size,
                         size_t *at)
{
    const uint8_t *p = features->p, *end = p + features->len;
    struct field entry, key;

    while (p < end && (p = read_field(p, end, &entry)) != NULL && *at < size) {
        if (entry.type == SIZED && entry.number == 1 &&
            read_field(entry.p, entry.p + entry.len, &key) != NULL && key.type == SIZED &&
            key.number == 1) {
            append_text(text, size, at, ", ", *at > 0 ? 2 : 0);
            append_text(text, size, at, key.p, *at < size ? key.len : 0);
        }
    }
}

void lsi_example_names(const uint8_t *p, size_t len, char *text, size_t size)
{
    const uint8_t *end = p + len;
    size_t at = 0;
    struct field f;

    text[0] = '\0';
    while (len > 0 && p < end && (p = read_field(p, end, &f)) != NULL && at < size) {
        if (f.type == SIZED && f.number == 1) {
            append_names(&f, text, size, &at);
        }
    }
    if (at == 0) {
        append_text(text, size, &at, "none", 4);
    }
}

int64_t lsi_feature_list_int64(const lsi_feature_list *list, int64_t *to, size_t room)
{
    const uint8_t *p = list->p, *end = p + list->len;
    size_t n = 0;

    while (p < end) {
        struct field f;

        p = read_field(p, end, &f);
        if (p == NULL) {
            return -1;
        }
        if (f.number != 1) {
            continue;
        }
        if (f.type == VARINT) {
            if (n < room) {
                to[n] = (int64_t)f.x;
            }
            n++;
        } else if (f.type == SIZED) { // packed
            const uint8_t *q = f.p;

            while (q < p) {
                uint64_t x;

                q = read_varint(q, p, &x);
                if (q == NULL) {
                    return -1;
                }
                if (n < room) {
                    to[n] = (int64_t)x;
                }
                n++;
            }
        } else {
            return -1;
        }
    }
    return (int64_t)n;
}

/* Little-endian floats, as many as fit; returns how many there are. */
static size_t copy_floats(const struct field *f, float *to, size_t room)
{
    const size_t n = f->len / 4, here = LSI_MIN(n, room);

    for (size_t i = 0; i < here; i++) { // compiles to a copy
        const uint8_t *q = f->p + 4 * i;
        const uint32_t bits = (uint32_t)q[0] | (uint32_t)q[1] << 8 |
                              (uint32_t)q[2] << 16 | (uint32_t)q[3] << 24;

        memcpy(&to[i], &bits, sizeof bits);
    }
    return n;
}

int64_t lsi_feature_list_float(const lsi_feature_list *list, float *to, size_t room)
{
    const uint8_t *p = list->p, *end = p + list->len;
    size_t n = 0;

    while (p < end) {
        struct field f;

        p = read_field(p, end, &f);
        if (p == NULL) {
            return -1;
        }
        if (f.number != 1) {
            continue;
        }
        if ((f.type != FIXED32 && f.type != SIZED) || f.len % 4 != 0) {
            return -1;
        }
        n += copy_floats(&f, n < room ? to + n : NULL, n < room ? room - n : 0);
    }
    return (int64_t)n;
}

int64_t lsi_feature_list_bytes(const lsi_feature_list *list, ls_string *to, size_t room)
{
    const uint8_t *p = list->p, *end = p + list->len;
    size_t n = 0;

    while (p < end) {
        struct field f;

        p = read_field(p, end, &f);
        if (p == NULL) {
            return -1;
        }
        if (f.number != 1) {
            continue;
        }
        if (f.type != SIZED) {
            return -1;
        }
        if (n < room) {
            to[n] = (ls_string){(const char *)f.p, f.len};
        }
        n++;
    }
    return (int64_t)n;
}

bool lsi_wire_next(ls_string *message, uint32_t *number, ls_string *bytes)
{
    const uint8_t *p = (const uint8_t *)message->ptr, *end;
    struct field f;

    if (message->len == 0) {
        return false;
    }
    end = p + message->len;
    p = read_field(p, end, &f);
    if (p == NULL) {
        return false;
    }
    *number = f.number;
    *bytes = (ls_string){NULL, 0};
    if (f.type == SIZED) {
        *bytes = (ls_string){(const char *)f.p, f.len};
    }
    *message = (ls_string){(const char *)p, (size_t)(end - p)};
    return true;
}
