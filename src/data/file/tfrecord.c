/*
 * The format of TFRecord files. A record is the length of its data (8 bytes), a checksum
 * of the length (4), the data, and a checksum of the data (4). Both checksums are checked
 * for every record that is returned.
 */
#include "data/file/file_node.h"

#include <inttypes.h>

enum { HEADER = 12, FOOTER = 4 };

/* Checks the header, which is in the buffer, and returns the length of the data. */
static ls_status check_header(const lsi_file_reader *r, uint64_t *len, ls_error *err)
{
    const lsi_stream *s = r->stream;

    if (lsi_le32(s->bytes + 8) != lsi_crc32c_masked(s->bytes, 8)) {
        return lsi_fail(err, LS_DATA_LOSS, -1,
                        "%s: the record at byte %" PRIu64 " is damaged: the checksum of "
                        "its length is wrong%s",
                        r->node->path, s->offset,
                        s->offset == 0
                            ? "; perhaps the file is not a TFRecord file, or it "
                              "is compressed"
                            : "");
    }
    *len = lsi_le64(s->bytes);
    return LS_OK;
}

static ls_status cut_off(const lsi_file_reader *r, uint64_t offset, uint64_t len,
                         uint64_t there, ls_error *err)
{
    return lsi_fail(err, LS_DATA_LOSS, -1,
                    "%s: the record at byte %" PRIu64 " is cut off: %" PRIu64
                    " bytes and a checksum should follow its header, %" PRIu64
                    " bytes are there",
                    r->node->path, offset, len, there);
}

static ls_status read_header(lsi_file_reader *r, uint64_t *len, ls_error *err)
{
    const ls_status st = lsi_stream_want(r->stream, HEADER, err);

    if (st != LS_OK) {
        return st;
    }
    if (r->stream->have < HEADER) {
        return LS_OUT_OF_RANGE; // also after a part of a header, as in TensorFlow
    }
    return check_header(r, len, err);
}

static ls_status tfrecord_record(lsi_file_reader *r, ls_string *out, size_t *tail,
                                 ls_error *err)
{
    lsi_stream *s = r->stream;
    uint64_t len = 0;
    ls_status st = read_header(r, &len, err);

    if (st != LS_OK) {
        return st;
    }
    if (len > SIZE_MAX - HEADER - FOOTER) {
        return cut_off(r, s->offset, len, s->have - HEADER, err);
    }
    st = lsi_stream_want(s, (size_t)len + HEADER + FOOTER, err);
    if (st != LS_OK) {
        return st;
    }
    if (s->have < (size_t)len + HEADER + FOOTER) {
        return cut_off(r, s->offset, len, s->have - HEADER, err);
    }
    out->ptr = (const char *)s->bytes + HEADER;
    out->len = (size_t)len;
    if (lsi_le32(s->bytes + HEADER + len) != lsi_crc32c_masked(out->ptr, out->len)) {
        return lsi_fail(err, LS_DATA_LOSS, -1,
                        "%s: the record at byte %" PRIu64 " is damaged: the checksum of "
                        "its %" PRIu64 " bytes of data at byte %" PRIu64 " is wrong",
                        r->node->path, s->offset, len, s->offset + HEADER);
    }
    *tail = FOOTER;
    return LS_OK;
}

/* How many of `n` records have the right checksum, up to the first that has not. */
static size_t count_good(const ls_string *records, size_t n)
{
    uint32_t sums[LSI_FILE_RECORDS_AT_ONCE];
    size_t i = 0;

    lsi_crc32c_records(records, n, sums);
    while (i < n &&
           lsi_le32((const uint8_t *)records[i].ptr + records[i].len) == sums[i]) {
        i++;
    }
    return i;
}

/* The same, and copies those records to the pool: in small groups, while they are in the
 * first-level cache, and so that the CPU overlaps the copies with the next checksums. */
static size_t keep_good(ls_string *records, size_t n, lsi_string_pool *pool)
{
    char *slots[LSI_FILE_RECORDS_AT_ONCE];
    size_t i = 0, part = 0, ok = 0;

    if (!lsi_string_pool_alloc(pool, records, n, slots)) {
        return 0; // the caller then reads by tfrecord_record(), which fails
    }
    while (i < n && ok == part) {
        part = LSI_MIN(n - i, (size_t)LSI_CRC_GROUP);
        ok = count_good(records + i, part);
        for (size_t k = i; k < i + ok; k++) {
            lsi_string_pool_copy(pool, slots[k], &records[k]);
        }
        i += ok;
    }
    lsi_string_pool_free(pool, slots + i, n - i);
    return i;
}

static size_t tfrecord_records(lsi_file_reader *r, size_t most, lsi_string_pool *pool,
                               ls_string *out)
{
    lsi_stream *s = r->stream;
    const uint8_t *at = s->bytes;
    size_t n = 0, left = s->have;

    while (n < most && left >= HEADER + FOOTER &&
           lsi_le32(at + 8) == lsi_crc32c_masked(at, 8)) {
        const uint64_t len = lsi_le64(at);

        if (len > left - HEADER - FOOTER) {
            break;
        }
        out[n++] = (ls_string){(const char *)at + HEADER, (size_t)len};
        at += HEADER + len + FOOTER;
        left -= HEADER + (size_t)len + FOOTER;
    }
    n = pool != NULL ? keep_good(out, n, pool) : count_good(out, n);
    for (size_t i = 0; i < n; i++) {
        lsi_stream_pass(s, HEADER + out[i].len + FOOTER);
    }
    return n;
}

static ls_status pass_tfrecord(lsi_file_reader *r, ls_error *err)
{
    const uint64_t offset = r->stream->offset;
    uint64_t len = 0, passed = 0;
    ls_status st = read_header(r, &len, err);

    if (st != LS_OK) {
        return st;
    }
    if (len > UINT64_MAX - HEADER - FOOTER) {
        return cut_off(r, offset, len, r->stream->have - HEADER, err);
    }
    st = lsi_stream_skip(r->stream, len + HEADER + FOOTER, &passed, err);
    if (st == LS_OK && passed < len + HEADER + FOOTER) {
        st = cut_off(r, offset, len, passed - HEADER, err);
    }
    return st;
}

static const lsi_file_format format = {
    .node = {.kind = "tfrecord",
             .iterate = lsi_file_iterate,
             .destroy = lsi_file_destroy},
    .record = tfrecord_record,
    .records = tfrecord_records,
    .pass = pass_tfrecord,
};

ls_dataset *lsi_tfrecord_node(ls_string path, lsi_compression compression, size_t piece,
                              ls_spec *spec)
{
    return lsi_file_node_new(&format, sizeof(lsi_file_node), path, compression, piece,
                             spec);
}
