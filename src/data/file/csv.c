/*
 * The reader of CSV files (RFC 4180). A record is first scanned to its end, then its
 * fields are converted, so that a bad record does not affect the next one.
 */
#include "data/file/csv_stage.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { END = -1 };

struct csv_node {
    lsi_file_node file;
    lsi_csv_layout *layout; // retained
};

struct csv_reader {
    lsi_file_reader base;
    const lsi_csv_layout *layout;
    lsi_csv_span *spans;
    ls_value **values;
    locale_t c;
    lsi_csv_stage *stage;            // NULL: fill() was not called yet
    lsi_iterator_ops ops;            // those of all readers, with a fill_csv() of its own
    const lsi_iterator_ops *general; // those of all readers

    // The record being scanned.
    size_t at;        // the next byte
    size_t columns;   // fields seen
    size_t taken;     // fields that belong to the element
    size_t listed;    // index in the layout's list of columns
    bool ended;       // the end of the record was found
    ls_status io;     // reading failed
    ls_status status; // of the first mistake in the record
    ls_error *err;    // its message
};

static lsi_stream *stream_of(const struct csv_reader *r)
{
    return r->base.stream;
}

/* Byte i of the record, or END. */
static int byte_at(struct csv_reader *r, size_t i)
{
    lsi_stream *s = stream_of(r);

    if (i >= s->have) {
        const ls_status st = lsi_stream_want(s, i + 1, r->err);

        if (st != LS_OK) {
            r->io = st;
            return END;
        }
        if (i >= s->have) {
            return END;
        }
    }
    return s->bytes[i];
}

/* The line that byte `offset` is on, counted from 1; 0: the file cannot be read again. */
static uint64_t line_at(const lsi_file_node *node, uint64_t offset)
{
    lsi_stream *s = NULL;
    uint64_t line = 1;
    uint8_t before = 0;

    if (lsi_stream_open(node->path, node->compression, node->piece, NULL, &s, NULL) !=
        LS_OK) {
        return 0;
    }
    while (offset > 0 && lsi_stream_want(s, 1, NULL) == LS_OK && s->have > 0) {
        const size_t n = (size_t)LSI_MIN(offset, (uint64_t)s->have);

        for (size_t i = 0; i < n; i++) {
            line += s->bytes[i] == '\r' || (s->bytes[i] == '\n' && before != '\r');
            before = s->bytes[i];
        }
        lsi_stream_pass(s, n);
        offset -= n;
    }
    lsi_stream_close(s);
    return offset == 0 ? line : 0;
}

/*
 * Fails for the current record; the message has file, line, column (counted from 1; 0:
 * the whole record) and byte. Lines are counted only here: reading does not need them,
 * and a restored position does not have them.
 */
static ls_status refuse_record(const struct csv_reader *r, size_t column, ls_error *err,
                               const char *fmt, ...) LS_PRINTF(4, 5) LSI_COLD;
static ls_status refuse_record(const struct csv_reader *r, size_t column, ls_error *err,
                               const char *fmt, ...)
{
    const lsi_file_node *node = r->base.node;
    const uint64_t offset = stream_of(r)->offset, line = line_at(node, offset);
    char what[200], where[80];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (line == 0) {
        (void)snprintf(where, sizeof where, "column %zu of the record", column);
    } else if (column == 0) {
        (void)snprintf(where, sizeof where, "line %" PRIu64, line);
    } else {
        (void)snprintf(where, sizeof where, "line %" PRIu64 ", column %zu", line, column);
    }
    return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "%s: %s (at byte %" PRIu64 "): %s",
                    node->path, where, offset, what);
}

static void note_mistake(struct csv_reader *r, const char *what)
{
    if (r->status == LS_OK && r->io == LS_OK) {
        r->status = refuse_record(r, r->columns + 1, r->err, "%s", what);
    }
}

/* Passes over the delimiter or line end after a field; a line end ends the record. */
static void end_field(struct csv_reader *r, int c)
{
    r->ended = c != (unsigned char)r->layout->delimiter;
    r->at += c != END;
    if (c == '\r' && byte_at(r, r->at) == '\n') {
        r->at++;
    }
}

static bool ends_field(const struct csv_reader *r, int c)
{
    return c == END || c == (unsigned char)r->layout->delimiter || c == '\n' || c == '\r';
}

static lsi_csv_span scan_plain(struct csv_reader *r)
{
    lsi_csv_span f = {r->at, r->at, false};
    int c;

    while (!ends_field(r, c = byte_at(r, r->at))) {
        if (c == '"' && r->layout->quotes) {
            note_mistake(r, "a quote inside of a field that does not begin with one");
        }
        r->at++;
    }
    f.end = r->at;
    end_field(r, c);
    return f;
}

static lsi_csv_span scan_quoted(struct csv_reader *r)
{
    lsi_csv_span f = {r->at + 1, r->at + 1, false};

    for (r->at++;; r->at++) {
        int c = byte_at(r, r->at);

        if (c == END) {
            note_mistake(r, "the file ends inside of quotes");
            f.end = r->at;
            r->ended = true;
            return f;
        }
        if (c != '"') {
            continue;
        }
        c = byte_at(r, r->at + 1);
        if (c == '"') {
            f.doubled = true;
            r->at++;
        } else if (ends_field(r, c)) {
            f.end = r->at;
            r->at++;
            end_field(r, c);
            return f;
        } else {
            note_mistake(r, "a quote inside of quotes that is not doubled");
        }
    }
}

/* Whether field `columns` is part of the element. */
static bool is_taken(struct csv_reader *r)
{
    const lsi_csv_layout *l = r->layout;
    const bool hit = r->listed < l->nlisted && (size_t)l->listed[r->listed] == r->columns;

    r->listed += hit;
    return hit == l->some;
}

/* Scans one record; LS_OUT_OF_RANGE: there is none. Mistakes are kept in r->status. */
static ls_status scan_record(struct csv_reader *r, ls_error *err)
{
    r->at = r->columns = r->taken = r->listed = 0;
    r->ended = false;
    r->io = r->status = LS_OK;
    r->err = err;
    if (byte_at(r, 0) == END) {
        return r->io != LS_OK ? r->io : LS_OUT_OF_RANGE;
    }
    while (!r->ended) {
        const bool quoted = r->layout->quotes && byte_at(r, r->at) == '"';
        const lsi_csv_span f = quoted ? scan_quoted(r) : scan_plain(r);

        if (is_taken(r)) {
            if (r->taken < r->layout->n && r->spans != NULL) {
                r->spans[r->taken] = f;
            }
            r->taken++;
        }
        r->columns++;
    }
    return r->io;
}

static size_t undouble_quotes(char *s, size_t len)
{
    size_t to = 0;

    for (size_t i = 0; i < len; i++, to++) {
        s[to] = s[i];
        i += s[i] == '"' && i + 1 < len && s[i + 1] == '"';
    }
    return to;
}

/* The column of the file, counted from 1, of field i of the element. */
static size_t column_of(const struct csv_reader *r, size_t i)
{
    const lsi_csv_layout *l = r->layout;
    size_t column = i;

    if (l->some) {
        return (size_t)l->listed[i] + 1;
    }
    for (size_t k = 0; k < l->nlisted && (size_t)l->listed[k] <= column; k++) {
        column++; // not part of the element
    }
    return column + 1;
}

static ls_status wrong_field(const struct csv_reader *r, size_t i, const char *what,
                             ls_string text, ls_error *err)
{
    return refuse_record(r, column_of(r, i), err, "%s %s: %.*s", what,
                         ls_dtype_name(r->layout->fields[i].dtype),
                         (int)LSI_MIN(text.len, (size_t)60), text.ptr);
}

static ls_tensor *default_tensor(const lsi_csv_field *f, ls_device *dev)
{
    const ls_shape scalar = {0, {0}};
    ls_tensor *t = NULL;
    ls_string s;

    if (f->dtype == LS_STRING) {
        if (!ls_value_as_string(f->string, &s) ||
            lsi_tensor_create(dev, LS_STRING, scalar, &s, &t, NULL) != LS_OK) {
            return NULL;
        }
        return t;
    }
    t = lsi_tensor_new(dev, f->dtype, &scalar);
    if (t != NULL) {
        lsi_csv_default(f, t->data);
    }
    return t;
}

/* Field i as a scalar. */
static ls_status convert_field(struct csv_reader *r, size_t i, ls_device *dev,
                               ls_tensor **out, ls_error *err)
{
    const lsi_csv_field *f = &r->layout->fields[i];
    const lsi_csv_span *span = &r->spans[i];
    const ls_shape scalar = {0, {0}};
    char *text = (char *)stream_of(r)->bytes + span->begin;
    ls_string s = {text, span->end - span->begin};

    if (span->doubled) {
        s.len = undouble_quotes(text, s.len);
    }
    if (lsi_csv_is_absent(r->layout, s)) {
        if (!f->optional) {
            return refuse_record(
                r, column_of(r, i), err,
                "field %zu is required, but it is empty; give its column a "
                "default if it may be",
                i);
        }
        *out = default_tensor(f, dev);
    } else if (f->dtype == LS_STRING) {
        *out = lsi_tensor_string(s, stream_of(r)->buffer, dev);
    } else {
        *out = lsi_tensor_new(dev, f->dtype, &scalar);
        if (*out != NULL && !lsi_csv_number(f->dtype, s.ptr, s.len, r->c, (*out)->data)) {
            ls_tensor_release(*out);
            *out = NULL;
            return wrong_field(r, i, "is no", s, err);
        }
    }
    return *out != NULL ? LS_OK : lsi_fail_memory(err, "a CSV field", sizeof **out);
}

/* The element of the scanned record. */
static ls_status build_element(struct csv_reader *r, ls_value **out, ls_error *err)
{
    const size_t n = r->layout->n;
    ls_status st = LS_OK;
    size_t made = 0;

    /* A wrong field is reported before a wrong number of fields. */
    while (made < LSI_MIN(n, r->taken) && st == LS_OK) {
        ls_tensor *t = NULL;

        st = convert_field(r, made, r->base.base.as.device, &t, err);
        if (st == LS_OK) {
            st = ls_value_tensor(t, &r->values[made], err);
            ls_tensor_release(t);
        }
        made += st == LS_OK;
    }
    if (st == LS_OK && r->taken != n) {
        st = refuse_record(r, 0, err, "the record has %zu fields, %zu are needed",
                           r->taken, n);
    }
    if (st == LS_OK) {
        st = ls_value_tuple(r->values, n, out, err);
    }
    for (size_t i = 0; i < made; i++) {
        ls_value_release(r->values[i]);
    }
    return st;
}

static ls_status prepare_reader(struct csv_reader *r, ls_error *err)
{
    const size_t n = ((const struct csv_node *)r->base.node)->layout->n;

    r->layout = ((const struct csv_node *)r->base.node)->layout;
    if (r->c == (locale_t)0) {
        r->c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    }
    if (r->spans == NULL) {
        r->spans = lsi_alloc(n, sizeof *r->spans);
    }
    if (r->values == NULL) {
        r->values = lsi_alloc(n, sizeof(ls_value *));
    }
    return r->c != (locale_t)0 && r->spans != NULL && r->values != NULL
               ? LS_OK
               : lsi_fail_memory(err, "a CSV record", n * sizeof *r->spans);
}

static ls_status next_element(lsi_file_reader *base, ls_value **out, ls_error *err)
{
    struct csv_reader *r = (struct csv_reader *)base;
    ls_status st = prepare_reader(r, err);

    if (st != LS_OK) {
        return st;
    }
    st = scan_record(r, err);
    if (st != LS_OK) {
        return st;
    }
    st = r->status != LS_OK ? r->status : build_element(r, out, err);
    if (st != LS_RESOURCE_EXHAUSTED) {
        lsi_stream_pass(stream_of(r), r->at); // also a bad record
    }
    return st;
}

/* ---- rows ---- */

/* One record by next(), which opens the file, reports failures and handles the end. */
static ls_status add_next(struct csv_reader *r, lsi_batch_rows *rows, int64_t *got,
                          ls_error *err)
{
    ls_value *v = NULL;
    ls_status st = lsi_csv_stage_append(r->stage, rows, got, err);

    if (st == LS_OK) {
        st = r->general->next(&r->base.base, &v, err);
    }
    if (st == LS_OK) {
        st = lsi_batch_rows_add(rows, v, err);
        ls_value_release(v);
        *got += st == LS_OK;
    }
    return st;
}

/* Scans the next record; false: it could not, or the number of fields is wrong. */
static bool scan_row(struct csv_reader *r, ls_error *err)
{
    return stream_of(r) != NULL && r->base.begun && prepare_reader(r, err) == LS_OK &&
           scan_record(r, err) == LS_OK && r->status == LS_OK && r->taken == r->layout->n;
}

/*
 * Adds one record through the stage if nothing is wrong with it, else by add_next() from
 * the same position.
 */
static ls_status add_record(struct csv_reader *r, lsi_batch_rows *rows, int64_t *got,
                            ls_error *err)
{
    lsi_stream *s = stream_of(r);
    ls_status st = LS_OK;

    if (!scan_row(r, err)) {
        return add_next(r, rows, got, err);
    }
    if (!lsi_csv_stage_fits(r->stage, s->buffer)) {
        st = lsi_csv_stage_append(r->stage, rows, got, err);
    }
    if (st != LS_OK) {
        return st;
    }
    if (!lsi_csv_stage_add(r->stage, s->bytes, r->spans, s->buffer, r->c)) {
        return add_next(r, rows, got, err);
    }
    lsi_stream_pass(s, r->at);
    return LS_OK;
}

/* The stage is empty before and after the call, so it is no part of a saved state. */
static ls_status fill_csv(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                          int64_t *got, ls_error *err)
{
    struct csv_reader *r = (struct csv_reader *)it;
    ls_status st = LS_OK;

    *got = 0;
    if (r->stage == NULL) {
        r->stage = lsi_csv_stage_create(((const struct csv_node *)r->base.node)->layout);
    }
    if (r->stage == NULL) {
        return lsi_fail_memory(err, "CSV records", sizeof *r);
    }
    while (st == LS_OK && *got + lsi_csv_stage_rows(r->stage) < want) {
        st = add_record(r, rows, got, err);
    }
    if (st == LS_OK) {
        st = lsi_csv_stage_append(r->stage, rows, got, err);
    }
    return st;
}

static ls_status iterate_csv(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                             ls_error *err)
{
    const ls_status st = lsi_file_iterate(d, how, out, err);

    if (st == LS_OK) {
        struct csv_reader *r = (struct csv_reader *)*out;

        r->general = r->base.base.ops;
        r->ops = *r->general;
        r->ops.fill = fill_csv;
        r->base.base.ops = &r->ops;
    }
    return st;
}

/* ---- the format ---- */

static ls_status begin_csv(lsi_file_reader *base, bool *again, ls_error *err)
{
    struct csv_reader *r = (struct csv_reader *)base;
    ls_status st;

    *again = false;
    r->layout = ((const struct csv_node *)base->node)->layout;
    if (!r->layout->header) {
        return LS_OK;
    }
    st = scan_record(r, err);
    if (st == LS_OUT_OF_RANGE) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s is empty: it has no header to pass over", base->node->path);
    }
    if (st == LS_OK) {
        lsi_stream_pass(stream_of(r), r->at);
        st = r->status;
    }
    return st;
}

static void end_csv(lsi_file_reader *base)
{
    struct csv_reader *r = (struct csv_reader *)base;

    lsi_free(r->spans);
    lsi_free(r->values);
    lsi_csv_stage_release(r->stage);
    if (r->c != (locale_t)0) {
        freelocale(r->c);
    }
}

static void destroy_csv(ls_dataset *d)
{
    lsi_csv_layout_release(((struct csv_node *)d)->layout);
    lsi_file_destroy(d);
}

static const lsi_file_format format = {
    .node = {.kind = "csv", .iterate = iterate_csv, .destroy = destroy_csv},
    .begin = begin_csv,
    .element = next_element,
    .reader_size = sizeof(struct csv_reader),
    .end = end_csv,
};

ls_dataset *lsi_csv_node(ls_string path, lsi_compression compression, size_t piece,
                         ls_spec *spec, lsi_csv_layout *layout)
{
    ls_dataset *d = lsi_file_node_new(&format, sizeof(struct csv_node), path, compression,
                                      piece, spec);

    if (d != NULL) {
        ((struct csv_node *)d)->layout = lsi_csv_layout_retain(layout);
    }
    return d;
}
