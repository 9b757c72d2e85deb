/* The headers of NumPy's files: what arrays there are, without reading them. */
#include "cli/data/data_command.h"

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
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
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

/* An archive that is being looked at. */
struct archive {
    FILE *in;
    const char *path;
    uint64_t bytes;
    uint64_t at, size; /* of its directory */
    size_t entries;
    ls_error *err;
};

/* Says where an archive is broken, and how; returns false. */
static bool broken(const struct archive *z, uint64_t at, const char *what)
{
    lsi_fail(z->err, LS_DATA_LOSS, -1, "%s is damaged at offset %llu: %s", z->path,
             (unsigned long long)at, what);
    return false;
}

static bool no_memory(const struct archive *z)
{
    data_no_memory(z->err);
    return false;
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

/* The name of a member without the ".npy" at its end. */
static char *array_name(const unsigned char *p, size_t n)
{
    char *name = malloc(n + 1);

    if (name != NULL) {
        memcpy(name, p, n);
        name[n] = '\0';
        if (n > 4 && strcmp(name + n - 4, ".npy") == 0) {
            name[n - 4] = '\0';
        }
    }
    return name;
}

/* One entry of the directory at `p`, of which `n` bytes are left; *used is how long it
 * is. */
static bool read_entry(const struct archive *z, const unsigned char *p, size_t n,
                       unsigned char *scratch, data_array *out, size_t *used)
{
    const uint64_t here = z->at + z->size - n;
    size_t name_len, extra_len;
    uint64_t packed, size, offset;

    if (n < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0) {
        return broken(z, here, "an entry of the directory does not begin there");
    }
    packed = le32(p + 20);
    size = le32(p + 24);
    offset = le32(p + 42);
    name_len = le16(p + 28);
    extra_len = le16(p + 30);
    *used = ENTRY_SIZE + name_len + extra_len + le16(p + 32);
    if (*used > n) {
        return broken(z, here, "an entry is longer than the rest of the directory");
    }
    large_sizes(p + ENTRY_SIZE + name_len, extra_len, &size, &packed, &offset);
    if (offset > z->at || z->at - offset < LOCAL_SIZE) {
        return broken(z, here, "an array is said to lie outside of the archive");
    }
    out->name = array_name(p + ENTRY_SIZE, name_len);
    if (out->name == NULL) {
        return no_memory(z);
    }
    if (!parse_header(scratch, member_head(z->in, offset, le16(p + 10), packed, scratch),
                      out)) {
        snprintf(out->dtype, sizeof out->dtype, "no array");
    }
    return true;
}

/* A large archive has a second end record; the locator at `p`, which lies at `here` in
 * the file, says where. */
static bool find_end64(struct archive *z, const unsigned char *p, uint64_t here)
{
    const uint64_t at = le64(p + 8);
    unsigned char end[END64_SIZE];

    // What it says may be anything: nothing is added to it.
    if (here < END64_SIZE || at > here - END64_SIZE) {
        return broken(z, here,
                      "it points outside of the file for the end of a large "
                      "archive");
    }
    if (fseeko(z->in, (off_t)at, SEEK_SET) != 0 ||
        fread(end, 1, sizeof end, z->in) != sizeof end || memcmp(end, "PK\6\6", 4) != 0) {
        return broken(z, at, "the end record of a large archive is not there");
    }
    z->entries = (size_t)le64(end + 32);
    z->size = le64(end + 40);
    z->at = le64(end + 48);
    return true;
}

/* Where the directory lies, by the record at the end of the archive. */
static bool find_directory(struct archive *z)
{
    const size_t n = z->bytes < TAIL ? (size_t)z->bytes : TAIL;
    const uint64_t begin = z->bytes - n;
    unsigned char *tail = malloc(n > 0 ? n : 1);
    bool found = false, ok = false;
    size_t i = 0;

    if (tail == NULL) {
        return no_memory(z);
    }
    if (n >= END_SIZE && fseeko(z->in, (off_t)begin, SEEK_SET) == 0 &&
        fread(tail, 1, n, z->in) == n) {
        for (i = n - END_SIZE + 1; !found && i-- > 0;) {
            found = memcmp(tail + i, "PK\5\6", 4) == 0;
        }
    }
    if (!found) {
        lsi_fail(z->err, LS_DATA_LOSS, -1,
                 "%s is no whole zip archive: its directory is missing or damaged",
                 z->path);
    } else {
        z->entries = le16(tail + i + 10);
        z->size = le32(tail + i + 12);
        z->at = le32(tail + i + 16);
        ok = i < LOCATOR_SIZE || memcmp(tail + i - LOCATOR_SIZE, "PK\6\7", 4) != 0 ||
             find_end64(z, tail + i - LOCATOR_SIZE, begin + i - LOCATOR_SIZE);
    }
    free(tail);
    if (ok && (z->at > z->bytes || z->size > z->bytes - z->at ||
               z->entries > z->size / ENTRY_SIZE)) {
        ok = broken(z, begin + i,
                    "the directory that is named there does not fit into "
                    "the file");
    }
    return ok;
}

static bool read_directory(struct archive *z, data_array **out, size_t *n)
{
    unsigned char *directory = NULL, *scratch = NULL;
    data_array *arrays = NULL;
    size_t used = 0, k = 0;
    bool ok = find_directory(z);

    if (!ok) {
        return false;
    }
    directory = malloc(z->size > 0 ? (size_t)z->size : 1);
    scratch = malloc(HEADER_MOST);
    arrays = calloc(z->entries > 0 ? z->entries : 1, sizeof *arrays);
    if (directory == NULL || scratch == NULL || arrays == NULL) {
        ok = no_memory(z);
    } else if (fseeko(z->in, (off_t)z->at, SEEK_SET) != 0 ||
               fread(directory, 1, (size_t)z->size, z->in) != z->size) {
        ok = broken(z, z->at, "the directory cannot be read");
    }
    for (; ok && k < z->entries; k++) {
        size_t len = 0;

        ok = read_entry(z, directory + used, (size_t)z->size - used, scratch, &arrays[k],
                        &len);
        used += len;
    }
    free(directory);
    free(scratch);
    if (!ok) {
        data_arrays_free(arrays, arrays != NULL ? z->entries : 0);
        return false;
    }
    *out = arrays;
    *n = z->entries;
    return true;
}

static bool read_npy(const data_file *f, data_array **out, size_t *n, ls_error *err)
{
    data_array *one = calloc(1, sizeof *one);

    if (one == NULL || (one->name = calloc(1, 1)) == NULL) {
        free(one);
        data_no_memory(err);
        return false;
    }
    if (!parse_header(f->head, f->head_len, one)) {
        data_arrays_free(one, 1);
        lsi_fail(err, LS_DATA_LOSS, -1, "%s has no header that NumPy would write",
                 f->path);
        return false;
    }
    *out = one;
    *n = 1;
    return true;
}

bool data_arrays(const data_file *f, data_array **out, size_t *n, ls_error *err)
{
    struct archive z = {.path = f->path, .bytes = (uint64_t)f->bytes, .err = err};
    bool ok;

    if (f->format == DATA_NPY) {
        return read_npy(f, out, n, err);
    }
    z.in = fopen(f->path, "rb");
    if (z.in == NULL) {
        data_system_error(err, f->path);
        return false;
    }
    ok = read_directory(&z, out, n);
    fclose(z.in);
    return ok;
}

void data_arrays_free(data_array *arrays, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(arrays[i].name);
    }
    free(arrays);
}
