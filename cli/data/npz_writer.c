/* The archive that an npz file is: members are stored as they are, their checksum is put
 * into their header once it is known. */
#include "cli/data/convert.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    LOCAL_SIZE = 30,
    ENTRY_SIZE = 46,
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    LARGE_EXTRA = 20, /* two sizes in a local header */
    CRC_AT = 14,
    NPY_ALIGN = 64,
    VERSION_PLAIN = 20,
    VERSION_LARGE = 45,
    DATE_1980 = 0x21, /* the first day there is: equal arrays make equal files */
};

#define LIMIT32 0xFFFFFFFFU

struct member {
    char *name;
    uint64_t offset, size;
    uint32_t crc;
};

struct convert_zip {
    FILE *out;
    char *path;
    struct member *list;
    size_t n;
    uint64_t at, left;
};

static ls_status write_failed(const convert_zip *z, ls_error *err)
{
    return data_system_error(err, z->path);
}

static unsigned char *put_number(unsigned char *p, uint64_t x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *p++ = (unsigned char)(x >> (8 * i));
    }
    return p;
}

static ls_status put_bytes(convert_zip *z, const void *data, size_t len, ls_error *err)
{
    if (len > 0 && fwrite(data, 1, len, z->out) != len) {
        return write_failed(z, err);
    }
    z->at += len;
    return LS_OK;
}

ls_status convert_zip_open(const char *path, convert_zip **out, ls_error *err)
{
    convert_zip *z = calloc(1, sizeof *z);

    if (z == NULL || (z->path = strdup(path)) == NULL) {
        free(z);
        return data_no_memory(err);
    }
    z->out = fopen(path, "wb");
    if (z->out == NULL) {
        (void)write_failed(z, err);
        convert_zip_release(z);
        return err->code;
    }
    *out = z;
    return LS_OK;
}

void convert_zip_release(convert_zip *z)
{
    if (z == NULL) {
        return;
    }
    if (z->out != NULL) {
        fclose(z->out);
    }
    for (size_t i = 0; i < z->n; i++) {
        free(z->list[i].name);
    }
    free(z->list);
    free(z->path);
    free(z);
}

/* The last member's checksum goes into its header. */
static ls_status end_member(convert_zip *z, ls_error *err)
{
    unsigned char crc[4];
    const struct member *m = z->n > 0 ? &z->list[z->n - 1] : NULL;

    if (m == NULL) {
        return LS_OK;
    }
    if (z->left != 0) {
        return lsi_fail(err, LS_INTERNAL, -1, "array '%s' is %llu bytes short", m->name,
                        (unsigned long long)z->left);
    }
    put_number(crc, m->crc, 4);
    if (fseeko(z->out, (off_t)(m->offset + CRC_AT), SEEK_SET) != 0 ||
        fwrite(crc, 1, 4, z->out) != 4 || fseeko(z->out, 0, SEEK_END) != 0) {
        return write_failed(z, err);
    }
    return LS_OK;
}

/* NumPy's header, version 1: a Python dict, padded so that the elements are aligned. */
static size_t npy_header(char *buf, size_t size, const char *dtype, const int64_t *dims,
                         int ndim)
{
    int n = snprintf(buf + 10, size - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype);
    size_t len = 10 + (size_t)n, whole;

    for (int i = 0; i < ndim; i++) {
        n = snprintf(buf + len, size - len, "%s%lld%s", i > 0 ? ", " : "",
                     (long long)dims[i], ndim == 1 ? "," : "");
        len += (size_t)n;
    }
    n = snprintf(buf + len, size - len, "), }");
    len += (size_t)n;
    whole = (len + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    memset(buf + len, ' ', whole - len);
    buf[whole - 1] = '\n';
    memcpy(buf, "\x93NUMPY\1", 8); // with the 0 of version 1.0
    put_number((unsigned char *)buf + 8, whole - 10, 2);
    return whole;
}

static ls_status local_header(convert_zip *z, const struct member *m, ls_error *err)
{
    const bool large = m->size >= LIMIT32;
    const size_t name_len = strlen(m->name);
    unsigned char h[LOCAL_SIZE + LARGE_EXTRA];
    unsigned char *p = put_number(h, 0x04034b50U, 4);
    ls_status st;

    p = put_number(p, large ? VERSION_LARGE : VERSION_PLAIN, 2);
    p = put_number(p, 0x0800, 2); // names are UTF-8
    p = put_number(p, 0, 2);      // stored
    p = put_number(p, 0, 2);
    p = put_number(p, DATE_1980, 2);
    p = put_number(p, 0, 4); // the checksum, later
    p = put_number(p, large ? LIMIT32 : m->size, 4);
    p = put_number(p, large ? LIMIT32 : m->size, 4);
    p = put_number(p, name_len, 2);
    p = put_number(p, large ? LARGE_EXTRA : 0, 2);
    st = put_bytes(z, h, LOCAL_SIZE, err);
    if (st == LS_OK) {
        st = put_bytes(z, m->name, name_len, err);
    }
    if (st == LS_OK && large) {
        p = put_number(p, 1, 2);
        p = put_number(p, 16, 2);
        p = put_number(p, m->size, 8);
        put_number(p, m->size, 8);
        st = put_bytes(z, h + LOCAL_SIZE, LARGE_EXTRA, err);
    }
    return st;
}

ls_status convert_zip_begin(convert_zip *z, const char *name, const char *dtype,
                            const int64_t *dims, int ndim, size_t item, ls_error *err)
{
    struct member *list = realloc(z->list, (z->n + 1) * sizeof *list);
    const size_t room = strlen(name) + 5;
    struct member *m = NULL;
    uint64_t size = item;
    char header[512];
    size_t header_len;
    ls_status st = LS_OK;

    if (list == NULL) {
        return data_no_memory(err);
    }
    z->list = list;
    st = end_member(z, err);
    if (st != LS_OK) {
        return st;
    }
    m = &z->list[z->n];
    *m = (struct member){.name = malloc(room), .offset = z->at};
    if (m->name == NULL) {
        return data_no_memory(err);
    }
    z->n++;
    snprintf(m->name, room, "%s.npy", name);
    for (int i = 0; i < ndim; i++) {
        size *= (uint64_t)dims[i];
    }
    header_len = npy_header(header, sizeof header, dtype, dims, ndim);
    m->size = size + header_len;
    z->left = m->size;
    st = local_header(z, m, err);
    return st == LS_OK ? convert_zip_write(z, header, header_len, err) : st;
}

ls_status convert_zip_write(convert_zip *z, const void *data, size_t len, ls_error *err)
{
    struct member *m = &z->list[z->n - 1];

    if (len > z->left) {
        return lsi_fail(err, LS_INTERNAL, -1,
                        "array '%s' is longer than it was said to be", m->name);
    }
    m->crc = (uint32_t)crc32_z(m->crc, data, len);
    z->left -= len;
    return put_bytes(z, data, len, err);
}

/* One entry of the directory. */
static ls_status write_entry(convert_zip *z, const struct member *m, ls_error *err)
{
    const bool large = m->size >= LIMIT32, far = m->offset >= LIMIT32;
    const size_t wide = (large ? 16U : 0U) + (far ? 8U : 0U);
    const size_t name_len = strlen(m->name);
    unsigned char h[ENTRY_SIZE], extra[28];
    unsigned char *p = put_number(h, 0x02014b50U, 4);
    ls_status st;

    p = put_number(p, VERSION_LARGE, 2);
    p = put_number(p, large || far ? VERSION_LARGE : VERSION_PLAIN, 2);
    p = put_number(p, 0x0800, 2);
    p = put_number(p, 0, 4);
    p = put_number(p, DATE_1980, 2);
    p = put_number(p, m->crc, 4);
    p = put_number(p, large ? LIMIT32 : m->size, 4);
    p = put_number(p, large ? LIMIT32 : m->size, 4);
    p = put_number(p, name_len, 2);
    p = put_number(p, wide > 0 ? wide + 4 : 0, 2);
    p = put_number(put_number(p, 0, 8), 0, 2); // no comment, no disk, no attributes
    p = put_number(p, far ? LIMIT32 : m->offset, 4);
    st = put_bytes(z, h, (size_t)(p - h), err);
    if (st == LS_OK) {
        st = put_bytes(z, m->name, name_len, err);
    }
    if (st == LS_OK && wide > 0) {
        p = put_number(put_number(extra, 1, 2), wide, 2);
        if (large) {
            p = put_number(put_number(p, m->size, 8), m->size, 8);
        }
        p = far ? put_number(p, m->offset, 8) : p;
        st = put_bytes(z, extra, (size_t)(p - extra), err);
    }
    return st;
}

static ls_status write_end(convert_zip *z, uint64_t start, ls_error *err)
{
    const uint64_t size = z->at - start, end64 = z->at;
    const bool large = start >= LIMIT32 || size >= LIMIT32 || z->n >= 0xFFFF;
    unsigned char h[END64_SIZE + LOCATOR_SIZE + END_SIZE];
    unsigned char *p = h;

    if (large) {
        p = put_number(p, 0x06064b50U, 4);
        p = put_number(p, END64_SIZE - 12, 8);
        p = put_number(p, VERSION_LARGE, 2);
        p = put_number(p, VERSION_LARGE, 2);
        p = put_number(p, 0, 8);
        p = put_number(p, z->n, 8);
        p = put_number(p, z->n, 8);
        p = put_number(p, size, 8);
        p = put_number(p, start, 8);
        p = put_number(p, 0x07064b50U, 4);
        p = put_number(p, 0, 4);
        p = put_number(p, end64, 8);
        p = put_number(p, 1, 4);
    }
    p = put_number(p, 0x06054b50U, 4);
    p = put_number(p, 0, 4);
    p = put_number(p, z->n >= 0xFFFF ? 0xFFFF : z->n, 2);
    p = put_number(p, z->n >= 0xFFFF ? 0xFFFF : z->n, 2);
    p = put_number(p, large ? LIMIT32 : size, 4);
    p = put_number(p, large ? LIMIT32 : start, 4);
    p = put_number(p, 0, 2);
    return put_bytes(z, h, (size_t)(p - h), err);
}

ls_status convert_zip_close(convert_zip *z, ls_error *err)
{
    ls_status st = end_member(z, err);
    const uint64_t start = z->at;

    for (size_t i = 0; st == LS_OK && i < z->n; i++) {
        st = write_entry(z, &z->list[i], err);
    }
    if (st == LS_OK) {
        st = write_end(z, start, err);
    }
    if (st == LS_OK) {
        FILE *out = z->out;

        z->out = NULL;
        st = fclose(out) == 0 ? LS_OK : write_failed(z, err);
    }
    return st;
}
