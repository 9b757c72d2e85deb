/* The headers of NumPy's files: what arrays there are, without reading them. */
#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    HEADER_MOST = 1 << 16,
    END_SIZE = 22,
    TAIL = 65536 + END_SIZE,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    DEFLATED = 8,
};

static uint32_t le16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t le32(const unsigned char *p)
{
    return le16(p) | le16(p + 2) << 16;
}

static uint64_t le64(const unsigned char *p)
{
    return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32;
}

/* What stands behind 'key': in the text of a Python dict, up to one of `ends`. */
static bool find_value(const char *text, const char *key, const char *ends, char *out,
                       size_t size)
{
    const char *p = strstr(text, key);
    size_t n;

    p = p != NULL ? strchr(p + strlen(key), ':') : NULL;
    if (p == NULL) {
        return false;
    }
    p += 1 + strspn(p + 1, " ");
    n = strcspn(p, ends);
    n += p[n] == ')' || p[n] == ']';
    if (n == 0 || n >= size) {
        return false;
    }
    memcpy(out, p, n);
    out[n] = '\0';
    return true;
}

static bool parse_header(const unsigned char *p, size_t n, data_array *out)
{
    const size_t at = n > 6 && p[6] >= 2 ? 12 : 10;
    char order[16] = "";
    char *text = NULL;
    size_t len;
    bool ok;

    if (n < at || memcmp(p, "\x93NUMPY", 6) != 0) {
        return false;
    }
    len = at == 10 ? le16(p + 8) : le32(p + 8);
    len = len < n - at ? len : n - at;
    text = malloc(len + 1);
    if (text == NULL) {
        return false;
    }
    memcpy(text, p + at, len);
    text[len] = '\0';
    ok = find_value(text, "'shape'", ")", out->shape, sizeof out->shape) &&
         find_value(text, "'fortran_order'", ",}", order, sizeof order);
    if (ok && strstr(text, "'descr': [") != NULL) {
        snprintf(out->dtype, sizeof out->dtype, "a record");
    } else {
        ok = ok && find_value(text, "'descr'", ",}", out->dtype, sizeof out->dtype);
    }
    out->fortran = ok && order[0] == 'T';
    if (ok && out->dtype[0] == '\'') {
        const size_t quoted = strlen(out->dtype);

        memmove(out->dtype, out->dtype + 1, quoted);
        out->dtype[quoted > 2 ? quoted - 2 : 0] = '\0';
    }
    free(text);
    return ok;
}

/* The first bytes of a member of an archive, decompressed. */
static size_t member_head(FILE *in, uint64_t offset, uint32_t method, uint64_t packed,
                          unsigned char *out)
{
    unsigned char local[LOCAL_SIZE];
    unsigned char *raw = NULL;
    size_t n = packed < HEADER_MOST ? (size_t)packed : HEADER_MOST;
    size_t len = 0;

    if (offset > (uint64_t)1 << 62 || fseeko(in, (off_t)offset, SEEK_SET) != 0 ||
        fread(local, 1, LOCAL_SIZE, in) != LOCAL_SIZE ||
        fseeko(in, (off_t)le16(local + 26) + (off_t)le16(local + 28), SEEK_CUR) != 0) {
        return 0;
    }
    if (method != DEFLATED) {
        return fread(out, 1, n, in);
    }
    raw = malloc(n > 0 ? n : 1);
    if (raw != NULL) {
        z_stream z = {0};

        n = fread(raw, 1, n, in);
        if (inflateInit2(&z, -15) == Z_OK) {
            z.next_in = raw;
            z.avail_in = (uInt)n;
            z.next_out = out;
            z.avail_out = HEADER_MOST;
            (void)inflate(&z, Z_SYNC_FLUSH);
            len = HEADER_MOST - z.avail_out;
            inflateEnd(&z);
        }
        free(raw);
    }
    return len;
}

/* Sizes beyond 32 bits stand in an extra field, those that are needed in this order. */
static void large_sizes(const unsigned char *extra, size_t n, uint64_t *size,
                        uint64_t *packed, uint64_t *offset)
{
    uint64_t *const wide[] = {size, packed, offset};

    for (size_t at = 0; at + 4 <= n;) {
        const size_t len = le16(extra + at + 2);
        size_t field = at + 4;

        for (size_t i = 0; le16(extra + at) == 1 && i < 3; i++) {
            if (*wide[i] == 0xFFFFFFFFU && field + 8 <= n && field + 8 <= at + 4 + len) {
                *wide[i] = le64(extra + field);
                field += 8;
            }
        }
        at += 4 + len;
    }
}

/* One entry of the directory at `p`; returns how long it is, 0: it is broken. */
static size_t read_entry(FILE *in, const unsigned char *p, size_t n,
                         unsigned char *scratch, data_array *out)
{
    size_t name_len, extra_len, whole;
    uint64_t packed, size, offset;

    if (n < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0) {
        return 0;
    }
    packed = le32(p + 20);
    size = le32(p + 24);
    offset = le32(p + 42);
    name_len = le16(p + 28);
    extra_len = le16(p + 30);
    whole = ENTRY_SIZE + name_len + extra_len + le16(p + 32);
    if (whole > n || name_len >= sizeof out->name) {
        return 0;
    }
    large_sizes(p + ENTRY_SIZE + name_len, extra_len, &size, &packed, &offset);
    memcpy(out->name, p + ENTRY_SIZE, name_len);
    out->name[name_len] = '\0';
    if (name_len > 4 && strcmp(out->name + name_len - 4, ".npy") == 0) {
        out->name[name_len - 4] = '\0';
    }
    if (!parse_header(scratch, member_head(in, offset, le16(p + 10), packed, scratch),
                      out)) {
        snprintf(out->dtype, sizeof out->dtype, "no array");
    }
    return whole;
}

/* Where the directory lies, by the record at the end of the archive. */
static bool find_directory(FILE *in, int64_t bytes, uint64_t *at, uint64_t *size,
                           size_t *entries)
{
    const size_t n = bytes < TAIL ? (size_t)bytes : TAIL;
    unsigned char *tail = malloc(n > 0 ? n : 1);
    bool found = false;

    if (tail != NULL && n >= END_SIZE &&
        fseeko(in, (off_t)bytes - (off_t)n, SEEK_SET) == 0 &&
        fread(tail, 1, n, in) == n) {
        for (size_t i = n - END_SIZE + 1; i-- > 0 && !found;) {
            found = memcmp(tail + i, "PK\5\6", 4) == 0;
            if (found) {
                *entries = le16(tail + i + 10);
                *size = le32(tail + i + 12);
                *at = le32(tail + i + 16);
            }
            if (found && i >= 20 && memcmp(tail + i - 20, "PK\6\7", 4) == 0) {
                const uint64_t end64 = le64(tail + i - 12);
                const uint64_t begin = (uint64_t)bytes - n;

                if (end64 >= begin && end64 + 56 <= (uint64_t)bytes) {
                    const unsigned char *p = tail + (end64 - begin);

                    *entries = (size_t)le64(p + 32);
                    *size = le64(p + 40);
                    *at = le64(p + 48);
                }
            }
        }
    }
    free(tail);
    return found && *at <= (uint64_t)bytes && *size <= (uint64_t)bytes - *at &&
           *entries <= *size / ENTRY_SIZE;
}

static bool read_directory(FILE *in, int64_t bytes, data_array **out, size_t *n)
{
    uint64_t at = 0, size = 0;
    size_t entries = 0, used = 0, k = 0;
    unsigned char *directory = NULL, *scratch = NULL;
    data_array *arrays = NULL;

    if (!find_directory(in, bytes, &at, &size, &entries)) {
        return false;
    }
    directory = malloc(size > 0 ? (size_t)size : 1);
    scratch = malloc(HEADER_MOST);
    arrays = calloc(entries > 0 ? entries : 1, sizeof *arrays);
    if (directory != NULL && scratch != NULL && arrays != NULL &&
        fseeko(in, (off_t)at, SEEK_SET) == 0 &&
        fread(directory, 1, (size_t)size, in) == size) {
        while (k < entries) {
            const size_t len = read_entry(in, directory + used, (size_t)size - used,
                                          scratch, &arrays[k]);

            if (len == 0) {
                break;
            }
            used += len;
            k++;
        }
    }
    free(directory);
    free(scratch);
    if (arrays == NULL || k < entries) {
        free(arrays);
        return false;
    }
    *out = arrays;
    *n = entries;
    return true;
}

bool data_arrays(const data_file *f, data_array **out, size_t *n, ls_error *err)
{
    FILE *in = NULL;
    bool ok;

    if (f->format == DATA_NPY) {
        data_array *one = calloc(1, sizeof *one);

        if (one == NULL || !parse_header(f->head, f->head_len, one)) {
            free(one);
            data_error(err, LS_DATA_LOSS, "%s has no header that NumPy would write",
                       f->path);
            return false;
        }
        *out = one;
        *n = 1;
        return true;
    }
    in = fopen(f->path, "rb");
    ok = in != NULL && read_directory(in, f->bytes, out, n);
    if (in != NULL) {
        fclose(in);
    }
    if (!ok) {
        data_error(err, LS_DATA_LOSS,
                   "%s is no whole zip archive: its directory is missing or damaged",
                   f->path);
    }
    return ok;
}
