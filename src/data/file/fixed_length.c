/*
 * The format of records of a fixed length between a header and a footer. The size of an
 * uncompressed file is checked before its first record, that of a compressed one at its
 * end.
 */
#include "data/file/file_node.h"

#include <inttypes.h>

struct fixed_node {
    lsi_file_node file;
    uint64_t record, header, footer;
};

static const struct fixed_node *node_of(const lsi_file_reader *r)
{
    return (const struct fixed_node *)r->node;
}

static ls_status wrong_size(const lsi_file_reader *r, uint64_t size, ls_status code,
                            ls_error *err)
{
    const struct fixed_node *n = node_of(r);

    if (size < n->header + n->footer) {
        return lsi_fail(err, code, -1,
                        "%s has %" PRIu64 " bytes, fewer than its header of %" PRIu64
                        " and its footer of %" PRIu64,
                        r->node->path, size, n->header, n->footer);
    }
    return lsi_fail(err, code, -1,
                    "%s has %" PRIu64 " bytes between a header of %" PRIu64
                    " and a footer of %" PRIu64 ": not a multiple of records of %" PRIu64,
                    r->node->path, size - n->header - n->footer, n->header, n->footer,
                    n->record);
}

static ls_status begin_fixed(lsi_file_reader *r, bool *again, ls_error *err)
{
    const struct fixed_node *n = node_of(r);
    const uint64_t ends = n->header + n->footer;
    uint64_t passed = 0;
    ls_status st;

    if (r->stream->inflater == NULL &&
        (r->stream->size < ends || (r->stream->size - ends) % n->record != 0)) {
        *again = true;
        return wrong_size(r, r->stream->size, LS_INVALID_ARGUMENT, err);
    }
    st = lsi_stream_skip(r->stream, n->header, &passed, err);
    if (st == LS_OK && passed < n->header) {
        st = wrong_size(r, passed, LS_DATA_LOSS, err);
    }
    return st;
}

static ls_status fixed_record(lsi_file_reader *r, ls_string *out, size_t *tail,
                              ls_error *err)
{
    const struct fixed_node *n = node_of(r);
    lsi_stream *s = r->stream;
    const ls_status st = lsi_stream_want(s, (size_t)(n->record + n->footer), err);

    *tail = 0;
    if (st != LS_OK) {
        return st;
    }
    if (s->have >= n->record + n->footer) {
        out->ptr = (const char *)s->bytes;
        out->len = (size_t)n->record;
        return LS_OK;
    }
    return s->have == n->footer ? LS_OUT_OF_RANGE
                                : wrong_size(r, s->offset + s->have, LS_DATA_LOSS, err);
}

static ls_status pass_fixed(lsi_file_reader *r, ls_error *err)
{
    const struct fixed_node *n = node_of(r);
    lsi_stream *s = r->stream;
    uint64_t passed = 0;
    ls_string out = {NULL, 0};
    size_t tail = 0;

    if (s->inflater != NULL || s->offset + n->record + n->footer > s->size) {
        const ls_status st = fixed_record(r, &out, &tail, err);

        if (st == LS_OK) {
            lsi_stream_pass(s, out.len);
        }
        return st;
    }
    return lsi_stream_skip(s, n->record, &passed, err);
}

static const lsi_file_format format = {
    .node = {.kind = "fixed", .iterate = lsi_file_iterate, .destroy = lsi_file_destroy},
    .begin = begin_fixed,
    .record = fixed_record,
    .pass = pass_fixed,
};

ls_dataset *lsi_fixed_node(ls_string path, lsi_compression compression, size_t piece,
                           ls_spec *spec, const size_t sizes[3])
{
    ls_dataset *d = lsi_file_node_new(&format, sizeof(struct fixed_node), path,
                                      compression, piece, spec);
    struct fixed_node *n = (struct fixed_node *)d;

    if (d != NULL) {
        n->record = sizes[0];
        n->header = sizes[1];
        n->footer = sizes[2];
        if (n->record == 0 || n->record > INT64_MAX / 4 || n->header > INT64_MAX / 4 ||
            n->footer > INT64_MAX / 4) {
            return lsi_dataset_fail(d, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                    "records of %" PRIu64 " bytes, a header of %" PRIu64
                                    " and a footer of %" PRIu64
                                    " are invalid: a record has at least one byte",
                                    n->record, n->header, n->footer);
        }
    }
    return d;
}
