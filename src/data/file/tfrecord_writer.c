/* The writer of TFRecord files, plain or compressed with zlib. */
#include "data/file/stream.h"

#include "lockstep/record.h"

#include <inttypes.h>
#include <zlib.h>

enum {
    HEADER = 12,
    FOOTER = 4,
    ROOM = 256 << 10, // bytes collected before a write
    WINDOW = 15,
    GZIP_FORMAT = 16, // added to the window bits, it selects gzip
    MEMORY = 8,       // zlib's default
};

struct ls_record_writer {
    lsi_file *file;
    bool closed;
    bool packing; // `z` is in use: deflateEnd() is needed
    z_stream z;
    ls_status status; // the first failure
    ls_error error;
    size_t have; // bytes in `out`
    uint8_t out[ROOM];
};

/* Keeps the first failure: bytes may be missing in the file. */
static ls_status spoil_writer(ls_record_writer *w, ls_status st, ls_error *err)
{
    if (st != LS_OK && w->status == LS_OK) {
        w->status = st;
        if (err != NULL) {
            w->error = *err;
        } else {
            (void)lsi_fail(&w->error, st, -1, "an earlier write failed");
        }
    }
    return st;
}

static ls_status empty_out(ls_record_writer *w, ls_error *err)
{
    const ls_status st =
        w->have > 0 ? lsi_file_write(w->file, w->out, w->have, err) : LS_OK;

    w->have = 0;
    return spoil_writer(w, st, err);
}

static ls_status put_plain(ls_record_writer *w, const uint8_t *data, size_t len,
                           ls_error *err)
{
    if (len > ROOM - w->have) {
        const ls_status st = empty_out(w, err);

        if (st != LS_OK) {
            return st;
        }
        if (len >= ROOM) {
            return spoil_writer(w, lsi_file_write(w->file, data, len, err), err);
        }
    }
    if (len > 0 && data != NULL) {
        memcpy(w->out + w->have, data, len);
        w->have += len;
    }
    return LS_OK;
}

/* Compresses zlib's input, writing `out` each time it is full. */
static ls_status compress_input(ls_record_writer *w, int flush, ls_error *err)
{
    for (;;) {
        ls_status st;
        int code;

        w->z.next_out = w->out + w->have;
        w->z.avail_out = (uInt)(ROOM - w->have);
        code = deflate(&w->z, flush);
        w->have = ROOM - w->z.avail_out;
        if (code == Z_STREAM_ERROR) {
            return spoil_writer(w, lsi_fail(err, LS_INTERNAL, -1, "zlib lost its state"),
                                err);
        }
        if (w->z.avail_out > 0) {
            return LS_OK;
        }
        st = empty_out(w, err);
        if (st != LS_OK) {
            return st;
        }
    }
}

static ls_status write_bytes(ls_record_writer *w, const void *data, size_t len,
                             ls_error *err)
{
    const uint8_t *p = data;

    if (!w->packing) {
        return put_plain(w, p, len, err);
    }
    while (len > 0) {
        const size_t part = LSI_MIN(len, (size_t)1 << 30);
        ls_status st;

        w->z.next_in = (Bytef *)(uintptr_t)p; // only read
        w->z.avail_in = (uInt)part;
        st = compress_input(w, Z_NO_FLUSH, err);
        if (st != LS_OK) {
            return st;
        }
        p += part;
        len -= part;
    }
    return LS_OK;
}

ls_status ls_record_writer_open(const char *path, const char *compression,
                                ls_record_writer **out, ls_error *err)
{
    lsi_compression how = LSI_COMPRESSION_NONE;
    ls_record_writer *w;
    ls_status st;

    if (path == NULL || out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "record writer: `path` or `out` is NULL");
    }
    st = lsi_compression_of(compression, &how, err);
    if (st != LS_OK) {
        return st;
    }
    w = lsi_alloc(1, sizeof *w);
    if (w == NULL) {
        return lsi_fail_memory(err, "a record writer", sizeof *w);
    }
    w->error = (ls_error)LS_ERROR_INIT;
    if (how != LSI_COMPRESSION_NONE) {
        const int bits = how == LSI_COMPRESSION_GZIP ? WINDOW + GZIP_FORMAT : WINDOW;

        w->packing = deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, MEMORY,
                                  Z_DEFAULT_STRATEGY) == Z_OK;
        st = w->packing ? LS_OK : lsi_fail_memory(err, "a compressor", sizeof w->z);
    }
    if (st == LS_OK) {
        st = lsi_file_open(path, LSI_FILE_WRITE, &w->file, err);
    }
    if (st != LS_OK) {
        w->closed = true;
        ls_record_writer_release(w);
        return st;
    }
    *out = w;
    return LS_OK;
}

/* Fails if the writer is NULL, closed, or has failed before. */
static ls_status check_writer(const ls_record_writer *w, ls_error *err)
{
    if (w == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "the record writer is NULL");
    }
    if (w->closed) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1, "the record writer is closed");
    }
    return w->status != LS_OK ? lsi_fail_again(err, &w->error) : LS_OK;
}

ls_status ls_record_writer_write(ls_record_writer *w, const void *data, size_t len,
                                 ls_error *err)
{
    uint8_t header[HEADER], footer[FOOTER];
    ls_status st = check_writer(w, err);

    if (st == LS_OK && data == NULL && len > 0) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "the data of a record is NULL");
    }
    if (st != LS_OK) {
        return st;
    }
    lsi_put_le64(header, len);
    lsi_put_le32(header + 8, lsi_crc32c_masked(header, 8));
    lsi_put_le32(footer, lsi_crc32c_masked(data, len));
    st = write_bytes(w, header, sizeof header, err);
    if (st == LS_OK) {
        st = write_bytes(w, data, len, err);
    }
    return st == LS_OK ? write_bytes(w, footer, sizeof footer, err) : st;
}

ls_status ls_record_writer_write_example(ls_record_writer *w, ls_example *e,
                                         ls_error *err)
{
    ls_string s = {NULL, 0};
    const ls_status st = ls_example_serialize(e, &s, err);

    return st == LS_OK ? ls_record_writer_write(w, s.ptr, s.len, err) : st;
}

ls_status ls_record_writer_flush(ls_record_writer *w, ls_error *err)
{
    ls_status st = check_writer(w, err);

    if (st == LS_OK && w->packing) {
        st = compress_input(w, Z_SYNC_FLUSH, err);
    }
    return st == LS_OK ? empty_out(w, err) : st;
}

ls_status ls_record_writer_close(ls_record_writer *w, ls_error *err)
{
    ls_status st;

    if (w == NULL || w->closed) {
        return LS_OK;
    }
    st = check_writer(w, err);
    if (st == LS_OK && w->packing) {
        st = compress_input(w, Z_FINISH, err);
    }
    if (st == LS_OK) {
        st = empty_out(w, err);
    }
    lsi_file_close(w->file);
    w->file = NULL;
    w->closed = true;
    return st;
}

void ls_record_writer_release(ls_record_writer *w)
{
    if (w == NULL) {
        return;
    }
    (void)!ls_record_writer_close(w, NULL); // close it before to get the status
    if (w->packing) {
        (void)deflateEnd(&w->z);
    }
    lsi_file_close(w->file);
    lsi_free(w);
}
