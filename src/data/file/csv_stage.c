/*
 * Collects some tens of CSV records as numbers and strings and then appends each column
 * to the rows at once: no value is made of a record.
 */
#include "data/file/csv_stage.h"

enum {
    MOST_ROWS = 64,
    MOST_CELLS = 1 << 16, // with many columns there is room for fewer rows
};

/* Room for one element of any dtype; a column's elements are packed densely in its
 * cells. */
typedef union cell {
    ls_string string;
    int64_t integer;
    double number;
} cell;

struct lsi_csv_stage {
    const lsi_csv_layout *layout;
    size_t rows, room;
    bool strings;      // a column has the dtype string
    lsi_buffer *owner; // the buffer of all strings; retained, so that they do not move
    cell cells[];      // `room` of each column
};

lsi_csv_stage *lsi_csv_stage_create(const lsi_csv_layout *layout)
{
    const size_t room = LSI_MAX(LSI_MIN(MOST_CELLS / layout->n, (size_t)MOST_ROWS), 1);
    lsi_csv_stage *s = NULL;
    size_t bytes = 0;

    if (lsi_mul_size(layout->n, room * sizeof s->cells[0], &bytes) &&
        bytes < SIZE_MAX - sizeof *s) {
        s = lsi_alloc(1, sizeof *s + bytes);
    }
    if (s != NULL) {
        s->layout = layout;
        s->room = room;
        for (size_t i = 0; i < layout->n; i++) {
            s->strings = s->strings || layout->fields[i].dtype == LS_STRING;
        }
    }
    return s;
}

void lsi_csv_stage_release(lsi_csv_stage *s)
{
    if (s != NULL) {
        lsi_buffer_release(s->owner);
        lsi_free(s);
    }
}

int64_t lsi_csv_stage_rows(const lsi_csv_stage *s)
{
    return (int64_t)s->rows;
}

bool lsi_csv_stage_fits(const lsi_csv_stage *s, const lsi_buffer *buffer)
{
    return s->rows == 0 || (s->rows < s->room && (!s->strings || s->owner == buffer));
}

/* A default of no bytes needs no owner. */
static bool defaults_to_nothing(const lsi_csv_field *f)
{
    ls_string s;

    return f->optional && ls_value_as_string(f->string, &s) && s.len == 0;
}

/* Writes a field to its column; false: as lsi_csv_stage_add(). */
static bool add_field(const lsi_csv_stage *s, size_t i, ls_string text, locale_t c)
{
    const lsi_csv_field *f = &s->layout->fields[i];
    unsigned char *column = (unsigned char *)(void *)&s->cells[i * s->room];
    void *to = column + s->rows * ls_dtype_size(f->dtype);
    const bool absent = lsi_csv_is_absent(s->layout, text);

    if (f->dtype == LS_STRING) {
        *(ls_string *)to = absent ? (ls_string){text.ptr, 0} : text;
        return !absent || defaults_to_nothing(f);
    }
    if (absent) {
        if (f->optional) {
            lsi_csv_default(f, to);
        }
        return f->optional;
    }
    return lsi_csv_number(f->dtype, text.ptr, text.len, c, to);
}

bool lsi_csv_stage_add(lsi_csv_stage *s, const uint8_t *bytes, const lsi_csv_span *spans,
                       lsi_buffer *buffer, locale_t c)
{
    for (size_t i = 0; i < s->layout->n; i++) {
        const ls_string text = {(const char *)bytes + spans[i].begin,
                                spans[i].end - spans[i].begin};

        if (spans[i].doubled || !add_field(s, i, text, c)) {
            return false;
        }
    }
    if (s->rows == 0 && s->strings) {
        s->owner = lsi_buffer_retain(buffer);
    }
    s->rows++;
    return true;
}

ls_status lsi_csv_stage_append(lsi_csv_stage *s, lsi_batch_rows *rows, int64_t *got,
                               ls_error *err)
{
    const ls_shape scalar = {0};
    const int64_t n = (int64_t)s->rows;
    ls_status st = LS_OK;

    for (size_t i = 0; n > 0 && i < s->layout->n && st == LS_OK; i++) {
        st = lsi_batch_rows_add_block(rows, i, s->layout->fields[i].dtype, &scalar,
                                      &s->cells[i * s->room], s->owner, n, err);
    }
    *got += st == LS_OK ? n : 0;
    lsi_buffer_release(s->owner);
    s->owner = NULL;
    s->rows = 0;
    return st;
}
