/* Records of one file, one after the other: the formats of datasets without a dataset. */
#include "data/file/file_node.h"
#include "lockstep/record.h"

#include <inttypes.h>

enum { HEADER = 12 }; // of a TFRecord: the length and its checksum

struct ls_record_reader {
    ls_dataset *file; /* its node, which knows path and format */
    lsi_file_reader in;
    bool lines, whole;
    uint64_t offset; /* of the record of the last call */
    ls_status over;  /* LS_OK: not yet; else what every further call returns */
    ls_error why;
};

bool ls_record_begins(const void *head, size_t len)
{
    const uint8_t *p = head;

    return len >= HEADER && lsi_le32(p + 8) == lsi_crc32c_masked(p, 8);
}

static ls_status compression_of(const char *name, lsi_compression *out, ls_error *err)
{
    if (name != NULL && strcmp(name, "AUTO") == 0) {
        *out = LSI_COMPRESSION_DETECT;
        return LS_OK;
    }
    return lsi_compression_of(name, out, err);
}

ls_status ls_record_reader_open(const char *path, const ls_record_reader_options *opts,
                                ls_record_reader **out, ls_error *err)
{
    ls_record_reader_options o = LS_RECORD_READER_OPTIONS_INIT;
    lsi_compression compression = LSI_COMPRESSION_NONE;
    ls_record_reader *r = NULL;
    ls_string name;
    ls_status st;

    if (path == NULL || out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "record reader: %s is NULL",
                        path == NULL ? "the path" : "out");
    }
    if (opts != NULL) {
        memcpy(&o, opts, LSI_MIN(opts->struct_size, sizeof o));
    }
    st = compression_of(o.compression, &compression, err);
    if (st != LS_OK) {
        return st;
    }
    name = (ls_string){path, strlen(path)};
    r = lsi_alloc(1, sizeof *r);
    if (r != NULL) {
        r->file = o.lines ? lsi_textline_node(name, compression, o.buffer, NULL)
                          : lsi_tfrecord_node(name, compression, o.buffer, NULL);
    }
    if (r == NULL || r->file == NULL) {
        lsi_free(r);
        return lsi_fail_memory(err, "a record reader", sizeof *r);
    }
    r->in.node = (const lsi_file_node *)r->file;
    r->in.format = (const lsi_file_format *)r->file->ops; // `node` is first
    r->why = (ls_error)LS_ERROR_INIT;
    r->lines = o.lines;
    r->whole = o.whole;
    st = lsi_stream_open(path, compression, o.buffer, NULL, &r->in.stream, err);
    if (st != LS_OK) {
        ls_record_reader_close(r);
        return st;
    }
    *out = r;
    return LS_OK;
}

void ls_record_reader_close(ls_record_reader *r)
{
    if (r != NULL) {
        lsi_stream_close(r->in.stream);
        ls_dataset_release(r->file);
        lsi_free(r);
    }
}

uint64_t ls_record_reader_offset(const ls_record_reader *r)
{
    return r->offset;
}

/* Whether the file really ends here, or what is left shows that it was cut off. */
static ls_status check_end(ls_record_reader *r)
{
    const lsi_stream *s = r->in.stream;
    const char *compression = lsi_stream_cut_off(s);

    if (compression != NULL) {
        return lsi_fail(&r->why, LS_DATA_LOSS, -1,
                        "%s: the %s stream stops before its end, after byte %" PRIu64
                        " of the contents: the file was cut off",
                        r->in.node->path, compression, s->offset + s->have);
    }
    if (!r->lines && s->have > 0) {
        return lsi_fail(
            &r->why, LS_DATA_LOSS, -1,
            "%s: the %zu bytes at byte %" PRIu64
            " behind the last record are no whole header of another: the file "
            "was cut off",
            r->in.node->path, s->have, s->offset);
    }
    return LS_OUT_OF_RANGE;
}

/* What a call returns that gave no record. Out of memory says nothing about the file: the
 * next call tries the same record again. */
static ls_status end_reading(ls_record_reader *r, ls_status st, ls_error *err)
{
    if (st == LS_OUT_OF_RANGE && r->over == LS_OK && r->whole) {
        st = check_end(r);
    }
    if (st != LS_RESOURCE_EXHAUSTED) {
        r->over = st;
    }
    return st == LS_OUT_OF_RANGE ? st : lsi_fail_again(err, &r->why);
}

ls_status ls_record_reader_next(ls_record_reader *r, ls_string *out, ls_error *err)
{
    lsi_stream *s = r->in.stream;
    ls_string record = {NULL, 0};
    size_t tail = 0;
    ls_status st = r->over;

    if (st == LS_OK) {
        r->offset = s->offset;
        st = r->in.format->record(&r->in, &record, &tail, &r->why);
    }
    if (st != LS_OK) {
        return end_reading(r, st, err);
    }
    lsi_stream_pass(s,
                    (size_t)((const uint8_t *)record.ptr - s->bytes) + record.len + tail);
    *out = record;
    return LS_OK;
}

ls_status ls_record_reader_skip(ls_record_reader *r, ls_error *err)
{
    ls_string record;
    ls_status st;

    if (r->over != LS_OK || r->in.format->pass == NULL) {
        return ls_record_reader_next(r, &record, err);
    }
    r->offset = r->in.stream->offset;
    st = r->in.format->pass(&r->in, &r->why);
    return st == LS_OK ? st : end_reading(r, st, err);
}
