/* The iterator of one file, the same for all formats: opening, reading, saving. */
#include "data/file/file_node.h"

#include <inttypes.h>

ls_dataset *lsi_file_node_new(const lsi_file_format *format, size_t size, ls_string path,
                              lsi_compression compression, size_t piece, ls_spec *spec)
{
    ls_dataset *d = lsi_dataset_new(&format->node, size, NULL, 0);
    lsi_file_node *node = (lsi_file_node *)d;

    if (d == NULL) {
        return NULL;
    }
    node->path = lsi_alloc(path.len + 1, 1);
    if (node->path == NULL) {
        ls_dataset_release(d);
        return NULL;
    }
    memcpy(node->path, path.ptr, path.len);
    node->compression = compression;
    node->piece = piece;
    d->cardinality = LS_UNKNOWN_SIZE;
    d->spec = ls_spec_retain(spec);
    if (strlen(node->path) != path.len) {
        return lsi_dataset_fail(d, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                "the name of a file has a NUL in it, after %.200s",
                                node->path);
    }
    return d;
}

void lsi_file_destroy(ls_dataset *d)
{
    lsi_free(((lsi_file_node *)d)->path);
}

/* Opens the file when it is first needed; a missing file fails on every call. */
static ls_status begin_file(lsi_file_reader *r, ls_error *err)
{
    bool again = false;
    ls_status st;

    if (r->stream == NULL) {
        st = lsi_stream_open(r->node->path, r->node->compression, r->node->piece,
                             r->base.as.device, &r->stream, err);
        if (st != LS_OK) {
            return st;
        }
    }
    if (r->begun) {
        return LS_OK;
    }
    st = r->format->begin != NULL ? r->format->begin(r, &again, err) : LS_OK;
    again = again || st == LS_RESOURCE_EXHAUSTED; // the file itself may be good
    r->begun = st == LS_OK || !again;
    if (st != LS_OK && again) {
        lsi_stream_close(r->stream); // the file may have changed by the next call
        r->stream = NULL;
    }
    return st;
}

/* Ends the file after its last record and after damaged bytes. After a failure for lack
 * of memory the next call reads the same record again. */
static void end_after(lsi_file_reader *r, ls_status st)
{
    if (st == LS_OK || st == LS_RESOURCE_EXHAUSTED) {
        return;
    }
    lsi_stream_close(r->stream);
    r->stream = NULL;
    r->over = true;
}

static ls_status begin_reading(lsi_file_reader *r, ls_error *err)
{
    if (r->over) {
        return LS_OUT_OF_RANGE;
    }
    if (r->stream != NULL && r->begun) {
        return LS_OK;
    }
    const ls_status st = begin_file(r, err);
    if (st == LS_DATA_LOSS) {
        end_after(r, st);
    }
    return st;
}

/* The next record of a format of strings, still unread in the stream. */
static ls_status peek_record(lsi_file_reader *r, ls_string *s, size_t *tail,
                             ls_error *err)
{
    ls_status st = begin_reading(r, err);

    if (st != LS_OK) {
        return st;
    }
    *tail = 0;
    st = r->format->record(r, s, tail, err);
    end_after(r, st);
    return st;
}

/* Moves the stream to the end of a record. */
static void pass_record(lsi_stream *s, const ls_string *record, size_t tail)
{
    const uint8_t *end = (const uint8_t *)record->ptr + record->len + tail;

    lsi_stream_pass(s, (size_t)(end - s->bytes));
}

static ls_status string_value(ls_string s, lsi_buffer *owner, ls_device *device,
                              ls_value **out, ls_error *err)
{
    ls_tensor *t = lsi_tensor_string(s, owner, device);
    ls_status st;

    if (t == NULL) {
        return lsi_fail_memory(err, "a record", sizeof *t);
    }
    st = ls_value_tensor(t, out, err);
    ls_tensor_release(t);
    return st;
}

static ls_status next_record(lsi_iterator *it, ls_value **out, ls_error *err)
{
    lsi_file_reader *r = (lsi_file_reader *)it;
    ls_string s;
    size_t tail;
    ls_status st;

    if (r->format->element != NULL) {
        st = begin_reading(r, err);
        if (st != LS_OK) {
            return st;
        }
        st = r->format->element(r, out, err);
        if (st == LS_OUT_OF_RANGE || st == LS_DATA_LOSS) {
            end_after(r, st);
        }
        return st;
    }
    st = peek_record(r, &s, &tail, err);
    if (st == LS_OK) {
        st = string_value(s, r->stream->buffer, it->as.device, out, err);
    }
    if (st == LS_OK) {
        pass_record(r->stream, &s, tail);
    }
    return st;
}

static ls_status fill_values(lsi_file_reader *r, lsi_batch_rows *rows, int64_t want,
                             int64_t *got, ls_error *err)
{
    while (*got < want) {
        ls_value *v = NULL;
        ls_status st = next_record(&r->base, &v, err);

        if (st == LS_OK) {
            st = lsi_batch_rows_add(rows, v, err);
            ls_value_release(v);
        }
        if (st != LS_OK) {
            return st;
        }
        ++*got;
    }
    return LS_OK;
}

/* Strings of one buffer, which are appended to the rows together: that is faster. */
struct group {
    ls_string strings[LSI_FILE_RECORDS_AT_ONCE];
    size_t n;
    lsi_buffer *owner; // retained, so that its bytes do not move
};

static ls_status append_group(struct group *g, lsi_batch_rows *rows, int64_t *got,
                              ls_error *err)
{
    const ls_shape scalar = {0};
    ls_status st = LS_OK;

    if (g->n > 0) {
        st = lsi_batch_rows_add_block(rows, 0, LS_STRING, &scalar, g->strings, g->owner,
                                      (int64_t)g->n, err);
    }
    if (st == LS_OK) {
        *got += (int64_t)g->n;
    }
    lsi_buffer_release(g->owner);
    g->owner = NULL;
    g->n = 0;
    return st;
}

static ls_status fill_strings(lsi_file_reader *r, lsi_batch_rows *rows, int64_t want,
                              int64_t *got, ls_error *err)
{
    struct group g;
    ls_status st = LS_OK, full = LS_OK;

    g.n = 0;
    g.owner = NULL;
    while (st == LS_OK && full == LS_OK && *got + (int64_t)g.n < want) {
        ls_string s;
        size_t tail;

        st = peek_record(r, &s, &tail, err);
        if (st != LS_OK) {
            break;
        }
        if (g.n == LSI_COUNT_OF(g.strings) || g.owner != r->stream->buffer) {
            full = append_group(&g, rows, got, err);
            g.owner = lsi_buffer_retain(r->stream->buffer);
        }
        if (full == LS_OK) {
            g.strings[g.n++] = s;
            pass_record(r->stream, &s, tail);
        }
    }
    if (full == LS_OK) {
        ls_error why = LS_ERROR_INIT;

        full = append_group(&g, rows, got, &why); // the failure of the file wins
        if (full != LS_OK && st == LS_OK) {
            return lsi_fail_again(err, &why);
        }
    }
    lsi_buffer_release(g.owner);
    return st != LS_OK ? st : full;
}

/* Adds one record by record(): at the end of a buffer, and to get the failure. */
static ls_status fill_record(lsi_file_reader *r, lsi_batch_rows *rows, int64_t *got,
                             ls_error *err)
{
    ls_string s;
    size_t tail;
    ls_status st = peek_record(r, &s, &tail, err);

    if (st == LS_OK) {
        st = lsi_batch_rows_add_string(rows, s, r->stream->buffer, err);
    }
    if (st == LS_OK) {
        pass_record(r->stream, &s, tail);
        ++*got;
    }
    return st;
}

static ls_status fill_records(lsi_file_reader *r, lsi_batch_rows *rows, int64_t want,
                              int64_t *got, ls_error *err)
{
    const ls_shape scalar = {0};
    lsi_string_pool *pool = lsi_batch_rows_pool(rows);
    ls_status st = LS_OK;

    while (st == LS_OK && *got < want) {
        const size_t most =
            (size_t)LSI_MIN(want - *got, (int64_t)LSI_FILE_RECORDS_AT_ONCE);
        ls_string strings[LSI_FILE_RECORDS_AT_ONCE];
        size_t n = 0;

        st = begin_reading(r, err);
        if (st != LS_OK) {
            return st;
        }
        n = r->format->records(r, most, pool, strings);
        if (n == 0) {
            st = fill_record(r, rows, got, err);
        } else {
            st = pool != NULL
                     ? lsi_batch_rows_add_pooled(rows, strings, n, err)
                     : lsi_batch_rows_add_block(rows, 0, LS_STRING, &scalar, strings,
                                                r->stream->buffer, (int64_t)n, err);
            *got += st == LS_OK ? (int64_t)n : 0;
        }
    }
    return st;
}

static ls_status fill_from_file(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                                int64_t *got, ls_error *err)
{
    lsi_file_reader *r = (lsi_file_reader *)it;

    *got = 0;
    if (r->format->element != NULL) {
        return fill_values(r, rows, want, got, err);
    }
    return r->format->records != NULL ? fill_records(r, rows, want, got, err)
                                      : fill_strings(r, rows, want, got, err);
}

/* Passes over a record, by the format's pass() if it has one. */
static ls_status pass_one_record(lsi_file_reader *r, ls_error *err)
{
    ls_status st;

    if (r->format->pass != NULL) {
        st = begin_reading(r, err);
        if (st == LS_OK) {
            st = r->format->pass(r, err);
            end_after(r, st);
        }
        return st;
    }
    if (r->format->element != NULL) {
        ls_value *v = NULL;

        st = next_record(&r->base, &v, err);
        ls_value_release(v);
        return st;
    }
    {
        ls_string s;
        size_t tail;

        st = peek_record(r, &s, &tail, err);
        if (st == LS_OK) {
            pass_record(r->stream, &s, tail);
        }
        return st;
    }
}

static ls_status skip_records(lsi_iterator *it, int64_t n, int64_t *skipped,
                              ls_error *err)
{
    *skipped = 0;
    while (*skipped < n) {
        const ls_status st = pass_one_record((lsi_file_reader *)it, err);

        if (st != LS_OK) {
            return st;
        }
        ++*skipped;
    }
    return LS_OK;
}

/* The position is the offset in the decompressed file, if that was begun. */
static ls_status save_reader(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    const lsi_file_reader *r = (const lsi_file_reader *)it;

    (void)err;
    lsi_state_write_u64(w, r->over ? 2 : r->begun);
    lsi_state_write_u64(w, r->stream != NULL ? r->stream->offset : 0);
    return LS_OK;
}

/* Opens the file at an offset; a compressed one is decompressed up to there. */
static ls_status resume_reading(lsi_file_reader *r, uint64_t offset, ls_error *err)
{
    uint64_t passed = 0;
    ls_status st = lsi_stream_open(r->node->path, r->node->compression, r->node->piece,
                                   r->base.as.device, &r->stream, err);

    if (st != LS_OK) {
        return st;
    }
    r->begun = true;
    st = lsi_stream_skip(r->stream, offset, &passed, err);
    if (st == LS_OK && passed < offset) {
        st = lsi_fail(err, LS_DATA_LOSS, -1,
                      "%s ends at byte %" PRIu64 ", before the saved position %" PRIu64
                      ": it is another file than it was when the position was saved",
                      r->node->path, passed, offset);
    }
    return st;
}

static ls_status restore_reader(lsi_iterator *it, lsi_state_reader *in, ls_error *err)
{
    lsi_file_reader *r = (lsi_file_reader *)it;
    uint64_t phase = 0, offset = 0;
    ls_status st = lsi_state_read_u64(in, &phase, err);

    if (st == LS_OK) {
        st = lsi_state_read_u64(in, &offset, err);
    }
    if (st == LS_OK && phase > 2) {
        st = lsi_fail(err, LS_DATA_LOSS, -1, "a saved position in %s is damaged",
                      r->node->path);
    }
    if (st != LS_OK) {
        return st;
    }
    lsi_stream_close(r->stream);
    r->stream = NULL;
    r->begun = false;
    r->over = phase == 2;
    return phase == 1 ? resume_reading(r, offset, err) : LS_OK;
}

static void close_reader(lsi_iterator *it)
{
    lsi_file_reader *r = (lsi_file_reader *)it;

    lsi_stream_close(r->stream);
    if (r->format != NULL && r->format->end != NULL) {
        r->format->end(r);
    }
}

ls_status lsi_file_iterate(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                           ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_record,
                                         .fill = fill_from_file,
                                         .skip = skip_records,
                                         .save = save_reader,
                                         .restore = restore_reader,
                                         .close = close_reader};
    const lsi_file_format *format = (const lsi_file_format *)d->ops; // `node` is first
    const size_t size =
        format->reader_size > 0 ? format->reader_size : sizeof(lsi_file_reader);
    const ls_status st = lsi_iterator_new(&ops, size, d, how, out, err);

    if (st == LS_OK) {
        lsi_file_reader *r = (lsi_file_reader *)*out;

        r->format = format;
        r->node = (const lsi_file_node *)d;
    }
    return st;
}
