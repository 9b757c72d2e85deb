/* What a file is, by its bytes; its name decides only where they leave it open. */
#include "cli/data/data_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { HEAD = 1 << 16, RECORD_HEADER = 12, FIELDS_MOST = 4096 };

const char *data_format_name(data_format format)
{
    static const char *const names[] = {"empty", "TFRecord", "text", "CSV",
                                        "npy",   "npz",      "IDX",  "unknown"};

    return names[format];
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

/* CRC-32C as TFRecord stores it; slow, for the eight bytes of a length. */
static uint32_t masked_crc(const unsigned char *p, size_t n)
{
    uint32_t crc = 0xFFFFFFFFU;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (0x82F63B78U & (0U - (crc & 1U)));
        }
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

static bool is_tfrecord(const unsigned char *p, size_t n)
{
    uint32_t stored;

    if (n < RECORD_HEADER) {
        return false;
    }
    stored = (uint32_t)p[8] | (uint32_t)p[9] << 8 | (uint32_t)p[10] << 16 |
             (uint32_t)p[11] << 24;
    return stored == masked_crc(p, 8);
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
            return false; // strchr() finds the end of its string
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
    if (is_tfrecord(p, n)) {
        return DATA_TFRECORD;
    }
    if (is_idx(p, n)) {
        return DATA_IDX;
    }
    if (is_text(p, n)) {
        return ends_with(path, ".csv") || is_csv(p, n) ? DATA_CSV : DATA_TEXT;
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

static void look(data_file *f)
{
    const char *compression = compression_of(f->head, f->head_len);
    unsigned char *out = NULL;
    size_t len = 0;

    if (compression == NULL || is_tfrecord(f->head, f->head_len)) {
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
        f->compression = compression; // its magic is no accident: a damaged one
    }
}

/* The stream that begins with z's next byte, or as much of it as comes. */
static int inflate_stream(FILE *in, z_stream *z, unsigned char *raw, unsigned char *out)
{
    int rc = Z_OK;

    while (rc == Z_OK) {
        if (z->avail_in == 0) {
            z->next_in = raw;
            z->avail_in = (uInt)fread(raw, 1, HEAD, in);
            if (z->avail_in == 0) {
                return Z_BUF_ERROR;
            }
        }
        z->next_out = out;
        z->avail_out = HEAD;
        rc = inflate(z, Z_NO_FLUSH);
    }
    return rc;
}

bool data_file_ends(const data_file *f)
{
    unsigned char *raw = malloc(HEAD), *out = malloc(HEAD);
    FILE *in = fopen(f->path, "rb");
    z_stream z = {0};
    int rc = Z_BUF_ERROR;

    if (raw != NULL && out != NULL && in != NULL && inflateInit2(&z, 15 + 32) == Z_OK) {
        rc = inflate_stream(in, &z, raw, out);
        // gzip files may be several streams, one behind the other; what is none ends it.
        while (rc == Z_STREAM_END && f->compression[0] == 'G' &&
               (z.avail_in > 0 || ungetc(fgetc(in), in) != EOF)) {
            rc =
                inflateReset(&z) == Z_OK ? inflate_stream(in, &z, raw, out) : Z_BUF_ERROR;
        }
        inflateEnd(&z);
    }
    if (in != NULL) {
        fclose(in);
    }
    free(raw);
    free(out);
    return rc != Z_BUF_ERROR;
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
        data_error(err, LS_INVALID_ARGUMENT, "%s is not a file%s", path,
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
    look(out);
    return true;
}

void data_file_close(data_file *f)
{
    free(f->head);
    f->head = NULL;
}

ls_dataset *data_file_dataset(const data_file *f)
{
    ls_read_options read = LS_READ_OPTIONS_INIT;

    read.compression = f->compression;
    switch (f->format) {
    case DATA_TFRECORD:
        return ls_dataset_tfrecord_files(&f->path, 1, &read);
    case DATA_NPY:
        return ls_dataset_npy(f->path);
    case DATA_NPZ:
        return ls_dataset_npz(f->path);
    case DATA_IDX:
        return ls_dataset_idx(f->path);
    default:
        return ls_dataset_text_files(&f->path, 1, &read);
    }
}
