/* CSV files of which nothing is known beforehand: every column is read as text. */
#include "cli/data/data_command.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `s` as text with a NUL behind it; false: it is empty or has no room. */
static bool copy_text(ls_string s, char *text, size_t size)
{
    if (s.len == 0 || s.len >= size) {
        return false;
    }
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    return true;
}

bool data_is_int(ls_string s, int64_t *out)
{
    char text[32];
    char *end = NULL;

    if (!copy_text(s, text, sizeof text)) {
        return false;
    }
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end == text + s.len;
}

bool data_is_number(ls_string s, float *out)
{
    char text[64];
    char *end = NULL;

    if (!copy_text(s, text, sizeof text)) {
        return false;
    }
    *out = strtof(text, &end);
    // Words that C takes for numbers ("nan", "infinity", "0x1p3") are text here.
    return end == text + s.len && strspn(text, " +-.0123456789eE") == s.len;
}

/* The end of the first record, without its line end. */
static size_t first_record(const unsigned char *p, size_t n)
{
    bool quoted = false;

    for (size_t i = 0; i < n; i++) {
        quoted = quoted != (p[i] == '"');
        if (!quoted && (p[i] == '\n' || p[i] == '\r')) {
            return i;
        }
    }
    return n;
}

/* Copies the field at *at without its quotes and steps behind its comma. */
static char *take_field(const unsigned char *p, size_t n, size_t *at)
{
    char *field = malloc(*at < n ? n - *at + 1 : 1);
    char *fits = NULL;
    bool quoted = false;
    size_t len = 0;

    if (field == NULL) {
        return NULL;
    }
    for (; *at < n && (quoted || p[*at] != ','); (*at)++) {
        if (p[*at] == '"') {
            if (quoted && *at + 1 < n && p[*at + 1] == '"') {
                field[len++] = '"';
                (*at)++;
            } else {
                quoted = !quoted;
            }
        } else {
            field[len++] = (char)p[*at];
        }
    }
    (*at)++;
    field[len] = '\0';
    // Many columns would hold a whole line each.
    fits = realloc(field, len + 1);
    return fits != NULL ? fits : field;
}

static size_t count_fields(const unsigned char *p, size_t n)
{
    bool quoted = false;
    size_t fields = 1;

    for (size_t i = 0; i < n; i++) {
        quoted = quoted != (p[i] == '"');
        fields += !quoted && p[i] == ',';
    }
    return fields;
}

/* Without a header columns are called by their place. */
static bool name_by_place(data_csv *c)
{
    for (size_t i = 0; i < c->n; i++) {
        char name[32];

        snprintf(name, sizeof name, "column_%zu", i);
        free(c->names[i]);
        c->names[i] = strdup(name);
        if (c->names[i] == NULL) {
            return false;
        }
    }
    return true;
}

bool data_csv_open(const data_file *f, data_csv *out, ls_error *err)
{
    const size_t skip =
        f->head_len >= 3 && memcmp(f->head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    const unsigned char *p = f->head + skip;
    const size_t n = first_record(p, f->head_len - skip);
    size_t at = 0;
    bool ok = true;

    *out = (data_csv){0}; // no columns, until there are names for them
    if (f->head_len == 0) {
        lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                 "%s is empty: a CSV file begins with the names of its columns", f->path);
        return false;
    }
    out->n = count_fields(p, n);
    out->header = true;
    out->names = (char **)calloc(out->n, sizeof *out->names);
    ok = out->names != NULL;
    for (size_t i = 0; ok && i < out->n; i++) {
        float number = 0;

        out->names[i] = take_field(p, n, &at);
        ok = out->names[i] != NULL;
        if (ok &&
            data_is_number((ls_string){out->names[i], strlen(out->names[i])}, &number)) {
            out->header = false;
        }
    }
    if (ok && !out->header) {
        ok = name_by_place(out);
    }
    if (!ok) {
        data_no_memory(err);
        data_csv_close(out);
    }
    return ok;
}

void data_csv_close(data_csv *c)
{
    for (size_t i = 0; c->names != NULL && i < c->n; i++) {
        free(c->names[i]);
    }
    free((void *)c->names);
    *c = (data_csv){0};
}

ls_dataset *data_csv_dataset(const data_file *f, const data_csv *c)
{
    ls_csv_column *columns = calloc(c->n, sizeof *columns);
    ls_csv_options opts = LS_CSV_OPTIONS_INIT;
    const ls_string nothing = {"", 0};
    ls_value *otherwise = NULL;
    ls_dataset *d = NULL;

    opts.header = c->header;
    opts.read.compression = f->compression;
    if (columns != NULL && ls_value_string(nothing, &otherwise, NULL) == LS_OK) {
        for (size_t i = 0; i < c->n; i++) {
            columns[i] = (ls_csv_column){LS_STRING, otherwise};
        }
        d = ls_dataset_csv_files(&f->path, 1, columns, c->n, &opts);
    }
    ls_value_release(otherwise);
    free(columns);
    return d;
}

ls_string data_csv_field(const data_csv *c, const ls_value *element, size_t i)
{
    const bool bare = c->n == 1 && ls_value_is_leaf(element);

    return data_string(bare ? element : ls_value_child(element, i));
}
