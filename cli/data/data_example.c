/* Examples without knowing their features: the wire format, walked. */
#include "cli/data/data_command.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5, VARINT_MOST = 10 };

const char *data_kind_name(data_kind kind)
{
    static const char *const names[] = {"nothing", "bytes", "float", "int64"};

    return names[kind];
}

/* What is left of a message; `bad` sticks. */
struct cursor {
    const unsigned char *p, *end;
    bool bad;
};

static struct cursor cursor_of(ls_string s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;

    return (struct cursor){p, s.len > 0 ? p + s.len : p, false};
}

static uint64_t take_varint(struct cursor *c)
{
    uint64_t x = 0;

    for (int i = 0; i < VARINT_MOST && c->p < c->end; i++) {
        const unsigned char byte = *c->p++;

        x |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            return x;
        }
    }
    c->bad = true;
    return 0;
}

static ls_string take(struct cursor *c, uint64_t len)
{
    const ls_string s = {(const char *)c->p, (size_t)len};

    if (c->bad || len > (uint64_t)(c->end - c->p)) {
        c->bad = true;
        return (ls_string){"", 0};
    }
    c->p += len;
    return s;
}

/* The next field's number and kind, and its contents if it has a length. */
static bool next_field(struct cursor *c, uint64_t *number, int *wire, ls_string *bytes)
{
    uint64_t tag;

    if (c->bad || c->p >= c->end) {
        return false;
    }
    tag = take_varint(c);
    *number = tag >> 3;
    *wire = (int)(tag & 7);
    *bytes = (ls_string){"", 0};
    switch (*wire) {
    case VARINT: {
        const unsigned char *start = c->p;

        (void)take_varint(c);
        *bytes = (ls_string){(const char *)start, (size_t)(c->p - start)};
        break;
    }
    case FIXED64:
        *bytes = take(c, 8);
        break;
    case FIXED32:
        *bytes = take(c, 4);
        break;
    case BYTES: {
        const uint64_t len = take_varint(c);

        *bytes = take(c, len);
        break;
    }
    default:
        c->bad = true;
    }
    c->bad = c->bad || *number == 0;
    return !c->bad;
}

/* Feature { oneof bytes_list = 1 | float_list = 2 | int64_list = 3 }: the last counts. */
static bool read_feature(ls_string bytes, data_feature *f)
{
    struct cursor c = cursor_of(bytes);
    uint64_t number = 0;
    ls_string inner;
    int wire = 0;

    while (next_field(&c, &number, &wire, &inner)) {
        if (number >= 1 && number <= 3) {
            if (wire != BYTES) {
                return false;
            }
            f->kind = (data_kind)number;
            f->list = inner;
        }
    }
    return !c.bad;
}

/* An entry of the map: key = 1, value = 2. */
static bool read_entry(ls_string bytes, data_feature_fn fn, void *user)
{
    struct cursor c = cursor_of(bytes);
    data_feature f = {.name = {"", 0}, .list = {"", 0}};
    uint64_t number = 0;
    ls_string inner;
    int wire = 0;

    while (next_field(&c, &number, &wire, &inner)) {
        if (number == 1 && wire == BYTES) {
            f.name = inner;
        } else if (number == 2 && (wire != BYTES || !read_feature(inner, &f))) {
            return false;
        }
    }
    return !c.bad && fn(&f, user);
}

bool data_example_walk(ls_string record, data_feature_fn fn, void *user)
{
    struct cursor c = cursor_of(record);
    uint64_t number = 0;
    ls_string features, entry;
    int wire = 0;

    while (next_field(&c, &number, &wire, &features)) {
        struct cursor in = cursor_of(features);

        if (number != 1 || wire != BYTES) {
            return false; // an Example has nothing else
        }
        while (next_field(&in, &number, &wire, &entry)) {
            if (number != 1 || wire != BYTES || !read_entry(entry, fn, user)) {
                return false;
            }
        }
        if (in.bad) {
            return false;
        }
    }
    return !c.bad;
}

/* Values that lie one after the other, or one in a field of its own. */
static bool read_packed(data_kind kind, ls_string bytes, void *out, size_t room,
                        size_t *count)
{
    struct cursor c = cursor_of(bytes);

    while (c.p < c.end && !c.bad) {
        if (kind == DATA_INT64) {
            const uint64_t x = take_varint(&c);

            if (*count < room) {
                ((int64_t *)out)[*count] = (int64_t)x;
            }
        } else {
            const ls_string s = take(&c, 4);

            if (*count < room && s.len == 4) {
                const unsigned char *p = (const unsigned char *)s.ptr;
                const uint32_t x = (uint32_t)p[0] | (uint32_t)p[1] << 8 |
                                   (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;

                memcpy((float *)out + *count, &x, sizeof x);
            }
        }
        *count += !c.bad;
    }
    return !c.bad;
}

bool data_feature_read(const data_feature *f, void *out, size_t room, size_t *count)
{
    const int single = f->kind == DATA_INT64 ? VARINT : FIXED32;
    struct cursor c = cursor_of(f->list);
    uint64_t number = 0;
    ls_string s;
    int wire = 0;

    *count = 0;
    while (next_field(&c, &number, &wire, &s)) {
        if (number != 1) {
            continue;
        }
        if (f->kind == DATA_BYTES) {
            if (wire != BYTES) {
                return false;
            }
            if (*count < room) {
                ((ls_string *)out)[*count] = s;
            }
            (*count)++;
        } else if ((wire != BYTES && wire != single) ||
                   !read_packed(f->kind, s, out, room, count)) {
            return false;
        }
    }
    return !c.bad;
}

/* ---- what many records have in common ---- */

static data_column *find_column(data_columns *c, ls_string name)
{
    data_column *column = NULL;

    for (size_t i = 0; i < c->n; i++) {
        if (strlen(c->list[i].name) == name.len &&
            memcmp(c->list[i].name, name.ptr, name.len) == 0) {
            return &c->list[i];
        }
    }
    if (c->n == c->room) {
        const size_t room = c->room > 0 ? 2 * c->room : 16;
        data_column *list = realloc(c->list, room * sizeof *list);

        if (list == NULL) {
            return NULL;
        }
        c->list = list;
        c->room = room;
    }
    column = &c->list[c->n];
    *column = (data_column){.name = malloc(name.len + 1),
                            .last = -1,
                            .least = SIZE_MAX,
                            .shortest = SIZE_MAX};
    if (column->name == NULL) {
        return NULL;
    }
    memcpy(column->name, name.ptr, name.len);
    column->name[name.len] = '\0';
    c->n++;
    return column;
}

static void note_strings(data_column *column, const data_feature *f)
{
    struct cursor c = cursor_of(f->list);
    uint64_t number = 0;
    ls_string s;
    int wire = 0;

    while (next_field(&c, &number, &wire, &s)) {
        column->shortest = s.len < column->shortest ? s.len : column->shortest;
        column->longest = s.len > column->longest ? s.len : column->longest;
        column->binary = column->binary || memchr(s.ptr, 0, s.len) != NULL;
    }
}

static bool note_feature(const data_feature *f, void *user)
{
    data_columns *c = user;
    data_column *column = NULL;
    size_t count = 0;

    if (memchr(f->name.ptr, 0, f->name.len) != NULL ||
        !data_feature_read(f, NULL, 0, &count)) {
        return false;
    }
    if (f->kind == DATA_NOTHING) {
        return true; // the same as an absent one
    }
    column = find_column(c, f->name);
    if (column == NULL) {
        c->no_memory = true;
        return false;
    }
    column->mixed = column->mixed || (column->records > 0 && column->kind != f->kind);
    column->kind = f->kind;
    column->records += column->last != c->records;
    column->last = c->records;
    column->least = count < column->least ? count : column->least;
    column->most = count > column->most ? count : column->most;
    if (f->kind == DATA_BYTES) {
        note_strings(column, f);
    }
    return true;
}

void data_columns_add(data_columns *c, ls_string record)
{
    c->examples += record.len > 0 && data_example_walk(record, note_feature, c);
    c->records++;
}

static int by_column_name(const void *a, const void *b)
{
    return strcmp(((const data_column *)a)->name, ((const data_column *)b)->name);
}

void data_columns_sort(data_columns *c)
{
    if (c->n > 1) {
        qsort(c->list, c->n, sizeof *c->list, by_column_name);
    }
}

void data_columns_free(data_columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->list[i].name);
    }
    free(c->list);
    *c = (data_columns){0};
}
