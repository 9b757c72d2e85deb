/*
 * The bytes of a file from its beginning to its end, decompressed. They are read into
 * large refcounted buffers; records are strings in these buffers, not copies.
 *
 * Threads: one at a time; the buffers, any.
 */
#ifndef LSI_STREAM_H
#define LSI_STREAM_H
#include "data/file/crc32c.h"
#include "os/file.h"
#include "tensor/tensor.h"

typedef enum lsi_compression {
    LSI_COMPRESSION_NONE,
    LSI_COMPRESSION_ZLIB,
    LSI_COMPRESSION_GZIP,
    LSI_COMPRESSION_DETECT /* for TFRecord files: by their first bytes */
} lsi_compression;

/* "" or NULL, "ZLIB", "GZIP"; anything else is LS_INVALID_ARGUMENT. */
ls_status lsi_compression_of(const char *name, lsi_compression *out, ls_error *err);

typedef struct lsi_stream {
    lsi_file *file;
    lsi_buffer *buffer; /* holds the bytes below; must be retained to keep them */
    uint8_t *bytes;     /* unread, contiguous */
    size_t have;
    uint64_t offset;               /* of bytes[0], in the decompressed file */
    bool ended;                    /* there are no bytes after those */
    size_t piece;                  /* bytes to read at once */
    uint64_t read_at;              /* offset of the next read, in the file */
    uint64_t size;                 /* of the file when it was opened, compressed or not */
    struct lsi_inflater *inflater; /* NULL: not compressed */
    ls_device *device;             /* of the buffers; NULL: memory of the process */
} lsi_stream;

/* `piece` 0: the default; `device`: of the buffers, or NULL. A folder fails with LS_FAILED_PRECONDITION. */
ls_status lsi_stream_open(const char *path, lsi_compression compression, size_t piece,
                          ls_device *device, lsi_stream **out, ls_error *err);
void lsi_stream_close(lsi_stream *s); /* NULL is allowed */

/* Reads until s->have is at least `want` or the stream has ended. */
ls_status lsi_stream_more(lsi_stream *s, size_t want, ls_error *err);

static inline ls_status lsi_stream_want(lsi_stream *s, size_t want, ls_error *err)
{
    return s->have >= want || s->ended ? LS_OK : lsi_stream_more(s, want, err);
}

/* Passes over `n` bytes of s->have. */
static inline void lsi_stream_pass(lsi_stream *s, size_t n)
{
    s->bytes += n;
    s->have -= n;
    s->offset += n;
}

/* Passes over `n` bytes; *passed is less if the stream ends before. */
ls_status lsi_stream_skip(lsi_stream *s, uint64_t n, uint64_t *passed, ls_error *err);

/* The compression of a file that stopped before the end of its compressed stream, "GZIP" or
 * "ZLIB"; NULL: it was not cut off. */
const char *lsi_stream_cut_off(const lsi_stream *s);

/* Decompresses a raw deflate stream in memory, which must give exactly `len` bytes. */
ls_status lsi_inflate_exactly(const uint8_t *in, size_t in_len, void *to, size_t len,
                              const char *path, ls_error *err);

/* Little-endian numbers at any address. */
static inline uint16_t lsi_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t lsi_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static inline uint64_t lsi_le64(const uint8_t *p)
{
    return (uint64_t)lsi_le32(p) | (uint64_t)lsi_le32(p + 4) << 32;
}

static inline void lsi_put_le32(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(x >> (8 * i));
    }
}

static inline void lsi_put_le64(uint8_t *p, uint64_t x)
{
    lsi_put_le32(p, (uint32_t)x);
    lsi_put_le32(p + 4, (uint32_t)(x >> 32));
}
#endif
