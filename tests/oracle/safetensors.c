/* Reads and checks a safetensors file. */
#include "safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 28 };

struct safetensors {
    unsigned char *bytes;
    size_t size;
    json_t *header;
    safetensors_entry *entries;
    size_t count;
};

static void say_wrong(char *why, size_t size, const char *path, const char *what)
{
    (void)snprintf(why, size, "%s: %s", path, what);
}

static bool read_all(const char *path, struct safetensors *st, char *why, size_t size)
{
    FILE *f = fopen(path, "rb");
    long length = -1;

    if (f == NULL) {
        say_wrong(why, size, path, "cannot be opened");
        return false;
    }
    if (fseek(f, 0, SEEK_END) == 0) {
        length = ftell(f);
    }
    if (length < 8 || length > MOST_BYTES || fseek(f, 0, SEEK_SET) != 0) {
        say_wrong(why, size, path, "is too short or too long");
    } else {
        st->size = (size_t)length;
        st->bytes = malloc(st->size);
        if (st->bytes == NULL || fread(st->bytes, 1, st->size, f) != st->size) {
            say_wrong(why, size, path, "cannot be read");
            length = -1;
        }
    }
    (void)fclose(f);
    return length >= 8 && st->bytes != NULL;
}

static bool read_shape(const json_t *list, ls_shape *shape)
{
    if (!json_is_array(list) || json_array_size(list) > LS_MAX_DIMS) {
        return false;
    }
    shape->ndim = (int)json_array_size(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *n = json_array_get(list, i);

        if (!json_is_integer(n) || json_integer_value(n) < 0) {
            return false;
        }
        shape->dims[i] = json_integer_value(n);
    }
    return ls_shape_count(shape) >= 0;
}

/* One entry of the header, whose data lie in the `size` bytes at `data`. */
static bool read_entry(const char *name, const json_t *value, const unsigned char *data,
                       size_t size, safetensors_entry *e)
{
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    const json_t *offsets = json_object_get(value, "data_offsets");
    json_int_t begin, end;

    if (dtype == NULL || !read_shape(json_object_get(value, "shape"), &e->shape) ||
        json_array_size(offsets) != 2 || !json_is_integer(json_array_get(offsets, 0)) ||
        !json_is_integer(json_array_get(offsets, 1))) {
        return false;
    }
    if (strcmp(dtype, "F32") == 0) {
        e->dtype = LS_F32;
    } else if (strcmp(dtype, "I32") == 0) {
        e->dtype = LS_I32;
    } else {
        return false;
    }
    begin = json_integer_value(json_array_get(offsets, 0));
    end = json_integer_value(json_array_get(offsets, 1));
    e->count = ls_shape_count(&e->shape);
    if (begin < 0 || end < begin || (uint64_t)end > size || e->count > MOST_BYTES ||
        end - begin != e->count * 4) {
        return false;
    }
    e->name = name;
    e->data = data + begin;
    return true;
}

static bool read_header(const char *path, struct safetensors *st, char *why, size_t size)
{
    uint64_t length = 0;
    json_error_t error;
    const char *name;
    json_t *value;

    for (int i = 7; i >= 0; i--) {
        length = length << 8 | st->bytes[i];
    }
    if (length > st->size - 8) {
        say_wrong(why, size, path, "the header is longer than the file");
        return false;
    }
    st->header = json_loadb((const char *)st->bytes + 8, (size_t)length,
                            JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(st->header)) {
        say_wrong(why, size, path, "the header is no JSON object");
        return false;
    }
    st->entries = calloc(json_object_size(st->header) + 1, sizeof *st->entries);
    if (st->entries == NULL) {
        say_wrong(why, size, path, "out of memory");
        return false;
    }
    json_object_foreach(st->header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            continue;
        }
        if (!read_entry(name, value, st->bytes + 8 + length,
                        st->size - 8 - (size_t)length, &st->entries[st->count])) {
            (void)snprintf(why, size, "%s: the entry %s is not valid", path, name);
            return false;
        }
        st->count++;
    }
    return true;
}

safetensors *safetensors_open(const char *path, char *why, size_t size)
{
    struct safetensors *st = calloc(1, sizeof *st);

    if (st == NULL) {
        say_wrong(why, size, path, "out of memory");
        return NULL;
    }
    if (!read_all(path, st, why, size) || !read_header(path, st, why, size)) {
        safetensors_close(st);
        return NULL;
    }
    return st;
}

void safetensors_close(safetensors *st)
{
    if (st != NULL) {
        json_decref(st->header);
        free(st->entries);
        free(st->bytes);
        free(st);
    }
}

size_t safetensors_count(const safetensors *st)
{
    return st->count;
}

const safetensors_entry *safetensors_at(const safetensors *st, size_t i)
{
    return i < st->count ? &st->entries[i] : NULL;
}

const safetensors_entry *safetensors_find(const safetensors *st, const char *name)
{
    for (size_t i = 0; i < st->count; i++) {
        if (strcmp(st->entries[i].name, name) == 0) {
            return &st->entries[i];
        }
    }
    return NULL;
}
