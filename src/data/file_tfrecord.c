/*
 * TFRecord: length (8 bytes), its checksum (4), the data, their checksum (4), again and
 * again. Both checksums of every record that is delivered are checked.
 */
#include "data/file_reader.h"

#include <inttypes.h>

enum { HEADER = 12, FOOTER = 4 };

/* The header is there; tells the length of the data. */
static ls_status check_header(const lsi_file_reader *r, uint64_t *len, ls_error *err)
{
    const lsi_stream *s = r->stream;

    if (lsi_le32(s->bytes + 8) != lsi_crc32c_masked(s->bytes, 8)) {
        return lsi_fail(err, LS_DATA_LOSS, -1,
                        "%s: the record at byte %" PRIu64 " is damaged: the checksum of "
                        "its length is wrong%s",
                        r->node->path, s->offset,
                        s->offset == 0 ? "; perhaps the file is no TFRecord file, or it "
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

static ls_status header(lsi_file_reader *r, uint64_t *len, ls_error *err)
{
    const ls_status st = lsi_stream_want(r->stream, HEADER, err);

    if (st != LS_OK) {
        return st;
    }
    if (r->stream->have < HEADER) {
        return LS_OUT_OF_RANGE; // also with a part of a header, as TensorFlow does
    }
    return check_header(r, len, err);
}

static ls_status record(lsi_file_reader *r, ls_string *out, size_t *tail, ls_error *err)
{
    lsi_stream *s = r->stream;
    uint64_t len = 0;
    ls_status st = header(r, &len, err);

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

static ls_status pass(lsi_file_reader *r, ls_error *err)
{
    const uint64_t offset = r->stream->offset;
    uint64_t len = 0, passed = 0;
    ls_status st = header(r, &len, err);

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
    .record = record,
    .pass = pass,
};

ls_dataset *lsi_tfrecord_node(ls_string path, lsi_compression compression, size_t piece,
                              ls_spec *spec)
{
    return lsi_file_node_new(&format, sizeof(lsi_file_node), path, compression, piece,
                             spec);
}
