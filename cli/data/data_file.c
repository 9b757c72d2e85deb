/* Recognising the format of a file by its bytes, or by its name where they do not tell;
 * reading its records. */
#include "cli/data/data_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { HEAD = 1 << 16, PAGE = 4096, FIELDS_MOST = 4096 };

const char *data_format_name(data_format format)
{
    static const char *const names[] = {"empty", "TFRecord", "text", "CSV",
                                        "npy",   "npz",      "IDX",  "unknown"};

    return names[format];
}

static bool is_idx(const unsigned char *p, size_t n)
{
    static const char types[] = "\x08\x09\x0b\x0c\x0d\x0e";

    return n >= 4 && p[0] == 0 && p[1] == 0 && p[2] != 0 && strchr(types, p[2]) != NULL &&
           p[3] >= 1 && p[3] <= LS_MAX_DIMS && n >= 4 + 4 * (size_t)p[3];
}

static bool is_text(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] < 0x20 && strchr("\t\n\r\f", p[i]) == NULL) {
            return false;
        }
        if (p[i] == 0) {
            return false; // strchr() also finds the NUL of its string
        }
    }
    return true;
}

/* Text whose first lines have the same number of fields, and more than one. */
static bool is_csv(const unsigned char *p, size_t n)
{
    int fields = 1, first = 0, lines = 0;
    bool quoted = false, any = false;

    for (size_t i = 0; i < n && lines < 10; i++) {
        if (p[i] == '"') {
            quoted = !quoted;
        }
        any = any || (p[i] != '\n' && p[i] != '\r');
        if (quoted) {
            continue;
        }
        fields += p[i] == ',' && fields < FIELDS_MOST;
        if (p[i] == '\n' && any) {
            first = lines == 0 ? fields : first;
            if (fields != first) {
                return false;
            }
            lines++;
            fields = 1;
            any = false;
        }
    }
    return lines > 0 ? first > 1 && (!any || lines >= 2 || fields == first) : fields > 1;
}

static data_format by_name(const char *path, data_format otherwise)
{
    static const struct {
        const char *part;
        data_format format;
    } names[] = {
        {".tfrecord", DATA_TFRECORD}, {".csv", DATA_CSV},  {".npy", DATA_NPY},
        {".npz", DATA_NPZ},           {".txt", DATA_TEXT}, {"-ubyte", DATA_IDX},
    };
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strstr(name, names[i].part) != NULL) {
            return names[i].format;
        }
    }
    return otherwise;
}

static data_format by_bytes(const char *path, const unsigned char *p, size_t n)
{
    if (n == 0) {
        return by_name(path, DATA_EMPTY);
    }
    if (n >= 6 && memcmp(p, "\x93NUMPY", 6) == 0) {
        return DATA_NPY;
    }
    if (n >= 4 && (memcmp(p, "PK\3\4", 4) == 0 || memcmp(p, "PK\5\6", 4) == 0)) {
        return DATA_NPZ;
    }
    if (ls_record_begins(p, n)) {
        return DATA_TFRECORD;
    }
    if (is_idx(p, n)) {
        return DATA_IDX;
    }
    if (is_text(p, n)) {
        return data_ends_with(path, ".csv") || is_csv(p, n) ? DATA_CSV : DATA_TEXT;
    }
    return by_name(path, DATA_UNKNOWN); // damaged at its beginning
}

/* The beginning of a compressed file; false: these bytes do not decompress. */
static bool inflate_head(const unsigned char *raw, size_t raw_len, unsigned char *out,
                         size_t *len)
{
    z_stream z = {0};
    int rc;

    if (inflateInit2(&z, 15 + 32) != Z_OK) {
        return false;
    }
    z.next_in = (unsigned char *)(uintptr_t)raw; // zlib does not write to it
    z.avail_in = (uInt)raw_len;
    z.next_out = out;
    z.avail_out = HEAD;
    rc = inflate(&z, Z_SYNC_FLUSH);
    *len = HEAD - z.avail_out;
    inflateEnd(&z);
    return rc == Z_OK || rc == Z_STREAM_END || (rc == Z_BUF_ERROR && *len > 0);
}

static const char *compression_of(const unsigned char *p, size_t n)
{
    if (n >= 18 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8) {
        return "GZIP";
    }
    if (n >= 8 && (p[0] & 0x8f) == 8 && (p[0] * 256 + p[1]) % 31 == 0) {
        return "ZLIB";
    }
    return NULL;
}

static void recognise_format(data_file *f)
{
    const char *compression = compression_of(f->head, f->head_len);
    unsigned char *out = NULL;
    size_t len = 0;

    if (compression == NULL || ls_record_begins(f->head, f->head_len)) {
        f->format = by_bytes(f->path, f->head, f->head_len);
        return;
    }
    out = malloc(HEAD);
    if (out != NULL && inflate_head(f->head, f->head_len, out, &len)) {
        free(f->head);
        f->head = out;
        f->head_len = len;
        f->compression = compression;
        f->format = by_bytes(f->path, out, len);
        return;
    }
    free(out);
    f->format = by_bytes(f->path, f->head, f->head_len);
    if (compression[0] == 'G') {
        f->compression = compression; // it has the magic number: a damaged file
    }
}

static ls_status open_reader(const data_file *f, bool whole, size_t buffer,
                             ls_record_reader **out, ls_error *err)
{
    ls_record_reader_options opts = LS_RECORD_READER_OPTIONS_INIT;

    opts.compression = f->compression;
    opts.lines = f->format != DATA_TFRECORD;
    opts.whole = whole;
    opts.buffer = buffer;
    return ls_record_reader_open(f->path, &opts, out, err);
}

ls_status data_file_each(const data_file *f, bool whole, data_record_fn fn, void *user,
                         int64_t *offset, ls_error *err)
{
    ls_record_reader *r = NULL;
    ls_string record = {"", 0};
    ls_status st = open_reader(f, whole, 0, &r, err);

    while (st == LS_OK) {
        st = ls_record_reader_next(r, &record, err);
        *offset = (int64_t)ls_record_reader_offset(r);
        if (st == LS_OK) {
            st = fn(record, user, err);
        } else if (st == LS_OUT_OF_RANGE) {
            ls_record_reader_close(r);
            return LS_OK;
        }
    }
    ls_record_reader_close(r);
    return st;
}

ls_status data_file_count(const data_file *f, bool whole, int64_t *out, ls_error *err)
{
    // Of a plain TFRecord file only the headers are read: no more than a page for each.
    const bool headers = f->format == DATA_TFRECORD && f->compression == NULL;
    ls_record_reader *r = NULL;
    ls_string record;
    ls_status st = open_reader(f, whole, headers ? PAGE : 0, &r, err);

    *out = 0;
    while (st == LS_OK) {
        st = headers ? ls_record_reader_skip(r, err)
                     : ls_record_reader_next(r, &record, err);
        *out += st == LS_OK;
    }
    ls_record_reader_close(r);
    return st == LS_OUT_OF_RANGE ? LS_OK : st;
}

bool data_file_open(const char *path, data_file *out, ls_error *err)
{
    struct stat info;
    FILE *in = NULL;

    *out = (data_file){.path = path};
    if (stat(path, &info) != 0) {
        data_system_error(err, path);
        return false;
    }
    if (!S_ISREG(info.st_mode)) {
        lsi_fail(err, LS_INVALID_ARGUMENT, -1, "%s is not a file%s", path,
                 S_ISDIR(info.st_mode) ? " but a folder; name the files in it" : "");
        return false;
    }
    out->bytes = (int64_t)info.st_size;
    out->head = malloc(HEAD);
    in = fopen(path, "rb");
    if (in == NULL || out->head == NULL) {
        data_system_error(err, path);
        if (in != NULL) {
            fclose(in);
        }
        data_file_close(out);
        return false;
    }
    out->head_len = fread(out->head, 1, HEAD, in);
    if (ferror(in)) {
        data_system_error(err, path);
    }
    fclose(in);
    if (err->code != LS_OK) {
        data_file_close(out);
        return false;
    }
    recognise_format(out);
    return true;
}

void data_file_close(data_file *f)
{
    free(f->head);
    f->head = NULL;
}

ls_dataset *data_file_rows(const data_file *f)
{
    return f->format == DATA_NPY   ? ls_dataset_npy(f->path)
           : f->format == DATA_NPZ ? ls_dataset_npz(f->path)
                                   : ls_dataset_idx(f->path);
}
