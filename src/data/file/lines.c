/* The format of text lines, which end with \n; every \r is removed, wherever it is. */
#include "data/file/file_node.h"

/* Removes every \r in place: these bytes are not shared yet. */
static size_t drop_returns(char *line, size_t len)
{
    char *to = len > 0 ? memchr(line, '\r', len) : NULL;

    if (to == NULL) {
        return len;
    }
    for (const char *from = to; from < line + len; from++) {
        *to = *from;
        to += *from != '\r';
    }
    return (size_t)(to - line);
}

static ls_status line_record(lsi_file_reader *r, ls_string *out, size_t *tail,
                             ls_error *err)
{
    lsi_stream *s = r->stream;
    const uint8_t *end = NULL;
    size_t seen = 0, len;

    for (;;) {
        ls_status st;

        if (s->have > seen) {
            end = memchr(s->bytes + seen, '\n', s->have - seen);
            seen = s->have;
        }
        if (end != NULL || s->ended) {
            break;
        }
        st = lsi_stream_want(s, s->have + 1, err);
        if (st != LS_OK) {
            return st;
        }
    }
    len = end != NULL ? (size_t)(end - s->bytes) : s->have;
    out->ptr = (const char *)s->bytes;
    out->len = drop_returns((char *)s->bytes, len);
    *tail = len - out->len + (end != NULL);
    if (end == NULL && out->len == 0) {
        return LS_OUT_OF_RANGE; // also if only \r were left
    }
    return LS_OK;
}

static const lsi_file_format format = {
    .node = {.kind = "textline",
             .iterate = lsi_file_iterate,
             .destroy = lsi_file_destroy},
    .record = line_record,
};

ls_dataset *lsi_textline_node(ls_string path, lsi_compression compression, size_t piece,
                              ls_spec *spec)
{
    return lsi_file_node_new(&format, sizeof(lsi_file_node), path, compression, piece,
                             spec);
}
