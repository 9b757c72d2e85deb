/* Examples as a table, where every feature has one size: CSV, or arrays of an npz. */
#include "cli/data/convert.h"

#include <stdlib.h>
#include <string.h>

enum {
    NAME_MOST = 65535 - 4, /* a zip archive has 16 bits for it, ".npy" included */
    SHOWN = 80,            /* bytes of a name in a message, so that the rest of it fits */
};

struct table {
    convert_job *job;
    data_columns columns;
    ls_example_entry *row; /* of each column; kind LS_LIST_NONE: it is absent */
    void *values;          /* of one feature */
    size_t room;
    FILE *csv;
    convert_zip *zip;
    size_t column; /* the one that is written */
};

static ls_status see_record(ls_string record, void *user, ls_error *err)
{
    struct table *t = user;
    const ls_status st = data_columns_add(&t->columns, record, err);

    return st == LS_OK ? convert_stopped(err) : st;
}

static ls_status check_column(const struct table *t, const data_column *c, bool csv,
                              ls_error *err)
{
    if (c->mixed) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "feature '%.*s' is not of the same kind in every record", SHOWN,
                        c->name);
    }
    if (c->least != c->most) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "feature '%.*s' has %zu to %zu values; a table wants the same "
                        "number in every record",
                        SHOWN, c->name, c->least, c->most);
    }
    if (csv && c->binary) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "feature '%.*s' holds bytes that are no text: write an .npz file "
                        "instead",
                        SHOWN, c->name);
    }
    if (!csv && c->kind == LS_LIST_BYTES && c->shortest != c->longest) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "feature '%.*s' has strings of %zu to %zu bytes, and an array "
                        "wants one size: write a .csv file instead",
                        SHOWN, c->name, c->shortest, c->longest);
    }
    if (!csv && strlen(c->name) > NAME_MOST) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "feature '%.*s...' has a name of %zu bytes, and those of an "
                        ".npz file have at most %d: write a .csv file instead",
                        SHOWN, c->name, strlen(c->name), NAME_MOST);
    }
    if (!csv && c->records < t->columns.records) {
        return lsi_fail(
            err, LS_INVALID_ARGUMENT, -1,
            "feature '%.*s' is absent from %lld of %lld records: write a .csv "
            "file, which may have empty fields",
            SHOWN, c->name, (long long)(t->columns.records - c->records),
            (long long)t->columns.records);
    }
    return LS_OK;
}

/* The first pass: what features there are, and whether they make a table. */
static ls_status open_table(struct table *t, bool csv, ls_error *err)
{
    size_t most = 1;
    ls_status st;

    st = convert_each_record(t->job, see_record, t, err);
    data_columns_sort(&t->columns);
    if (st == LS_OK && t->columns.examples < t->columns.records) {
        st = lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                      "%lld of %lld records are no Examples: only those can be made a "
                      "table of",
                      (long long)(t->columns.records - t->columns.examples),
                      (long long)t->columns.records);
    } else if (st == LS_OK && t->columns.n == 0) {
        st = lsi_fail(err, LS_INVALID_ARGUMENT, -1, "there are no records: no table");
    }
    for (size_t i = 0; st == LS_OK && i < t->columns.n; i++) {
        st = check_column(t, &t->columns.list[i], csv, err);
        most = t->columns.list[i].most > most ? t->columns.list[i].most : most;
    }
    if (st != LS_OK) {
        return st;
    }
    t->room = most;
    t->job->records = t->columns.records;
    t->row = calloc(t->columns.n + 1, sizeof *t->row);
    t->values = calloc(most, sizeof(ls_string));
    return t->row != NULL && t->values != NULL ? LS_OK : data_no_memory(err);
}

static void close_table(struct table *t)
{
    data_columns_free(&t->columns);
    free(t->row);
    free(t->values);
}

/* Points t->row at the features of a record. */
static void split_record(struct table *t, ls_string record)
{
    ls_example_walk walk = LS_EXAMPLE_WALK_INIT(record);
    ls_example_entry e;

    memset(t->row, 0, t->columns.n * sizeof *t->row);
    while (ls_example_walk_next(&walk, &e, NULL) == LS_OK) {
        for (size_t i = 0; i < t->columns.n; i++) {
            const char *name = t->columns.list[i].name;

            if (strlen(name) == e.name.len && memcmp(name, e.name.ptr, e.name.len) == 0) {
                t->row[i] = e;
            }
        }
    }
}

/* The values of a feature in t->values; returns how many. */
static size_t read_values(struct table *t, const ls_example_entry *e)
{
    return ls_example_entry_int64(e, t->values, t->room) +
           ls_example_entry_float(e, t->values, t->room) +
           ls_example_entry_bytes(e, t->values, t->room);
}

/* ---- CSV ---- */

static bool is_plain(ls_string s)
{
    bool plain = s.len > 0;

    for (size_t i = 0; i < s.len; i++) {
        plain = plain && strchr(",\"\r\n", s.ptr[i]) == NULL;
    }
    return plain;
}

static void print_quoted(FILE *out, ls_string s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '"') {
            fputc('"', out);
        }
        fputc(s.ptr[i], out);
    }
}

static void print_string(FILE *out, ls_string s)
{
    if (is_plain(s)) {
        fwrite(s.ptr, 1, s.len, out);
        return;
    }
    fputc('"', out);
    print_quoted(out, s);
    fputc('"', out);
}

/* A name of any length, and its index. */
static void print_name(FILE *out, const char *name, const char *place)
{
    const ls_string s = {name, strlen(name)};

    if (is_plain(s)) {
        fprintf(out, "%s%s", name, place);
        return;
    }
    fputc('"', out);
    print_quoted(out, s);
    fprintf(out, "%s\"", place);
}

/* A feature of several values takes as many columns: name[0], name[1]. */
static void print_names(const struct table *t)
{
    bool first = true;

    for (size_t i = 0; i < t->columns.n; i++) {
        const data_column *c = &t->columns.list[i];

        for (size_t k = 0; k < c->most; k++) {
            char place[32] = "";

            if (c->most != 1) {
                snprintf(place, sizeof place, "[%zu]", k);
            }
            fputs(first ? "" : ",", t->csv);
            print_name(t->csv, c->name, place);
            first = false;
        }
    }
    fputc('\n', t->csv);
}

static void print_value(const struct table *t, ls_list_kind kind, size_t k)
{
    if (kind == LS_LIST_INT64) {
        fprintf(t->csv, "%lld", (long long)((const int64_t *)t->values)[k]);
    } else if (kind == LS_LIST_FLOAT) {
        fprintf(t->csv, "%.9g", (double)((const float *)t->values)[k]);
    } else {
        print_string(t->csv, ((const ls_string *)t->values)[k]);
    }
}

static ls_status print_row(ls_string record, void *user, ls_error *err)
{
    struct table *t = user;
    bool first = true;

    split_record(t, record);
    for (size_t i = 0; i < t->columns.n; i++) {
        const ls_example_entry *f = &t->row[i];
        const size_t count = read_values(t, f);

        for (size_t k = 0; k < t->columns.list[i].most; k++) {
            fputs(first ? "" : ",", t->csv);
            first = false;
            if (k < count) {
                print_value(t, f->kind, k);
            }
        }
    }
    if (fputc('\n', t->csv) == EOF) {
        return data_system_error(err, t->job->to);
    }
    return convert_count(t->job, err);
}

ls_status convert_to_csv(convert_job *job, ls_error *err)
{
    struct table t = {.job = job};
    const char *path = NULL;
    ls_status st = open_table(&t, true, err);

    if (st == LS_OK) {
        job->total = t.columns.records;
        path = convert_output_add(&job->outputs, job->to, err);
        t.csv = path != NULL ? fopen(path, "wb") : NULL;
        if (t.csv == NULL) {
            st = path != NULL ? data_system_error(err, job->to) : err->code;
        }
    }
    if (st == LS_OK) {
        print_names(&t);
        st = convert_each_record(job, print_row, &t, err);
    }
    if (t.csv != NULL) {
        const bool bad = ferror(t.csv) != 0;

        if ((fclose(t.csv) != 0 || bad) && st == LS_OK) {
            st = data_system_error(err, job->to);
        }
    }
    close_table(&t);
    return st;
}

/* ---- npz ---- */

static void put_le(unsigned char *p, uint64_t x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = (unsigned char)(x >> (8 * i));
    }
}

static ls_status write_values(struct table *t, const ls_example_entry *f, size_t count,
                              ls_error *err)
{
    ls_status st = LS_OK;

    for (size_t k = 0; st == LS_OK && k < count; k++) {
        unsigned char bytes[8];

        if (f->kind == LS_LIST_BYTES) {
            const ls_string s = ((const ls_string *)t->values)[k];

            st = convert_zip_write(t->zip, s.ptr, s.len, err);
        } else if (f->kind == LS_LIST_INT64) {
            put_le(bytes, (uint64_t)((const int64_t *)t->values)[k], 8);
            st = convert_zip_write(t->zip, bytes, 8, err);
        } else {
            uint32_t bits;

            memcpy(&bits, (const float *)t->values + k, sizeof bits);
            put_le(bytes, bits, 4);
            st = convert_zip_write(t->zip, bytes, 4, err);
        }
    }
    return st;
}

static ls_status write_row(ls_string record, void *user, ls_error *err)
{
    struct table *t = user;
    const ls_example_entry *f = &t->row[t->column];
    ls_status st;

    split_record(t, record);
    st = write_values(t, f, read_values(t, f), err);
    return st == LS_OK ? convert_count(t->job, err) : st;
}

/* Arrays lie one after the other in the archive: one pass over the records for each. */
static ls_status write_column(struct table *t, ls_error *err)
{
    static const char *const dtypes[] = {"", "|u1", "<f4", "<i8"};
    static const size_t items[] = {1, 1, 4, 8};
    const data_column *c = &t->columns.list[t->column];
    int64_t dims[3] = {t->columns.records};
    int ndim = 1;
    ls_status st;

    if (c->most != 1) {
        dims[ndim++] = (int64_t)c->most;
    }
    if (c->kind == LS_LIST_BYTES) {
        dims[ndim++] = c->most > 0 ? (int64_t)c->longest : 0;
    }
    st = convert_zip_begin(t->zip, c->name, dtypes[c->kind], dims, ndim, items[c->kind],
                           err);
    return st == LS_OK ? convert_each_record(t->job, write_row, t, err) : st;
}

ls_status convert_to_npz(convert_job *job, ls_error *err)
{
    struct table t = {.job = job};
    const char *path = NULL;
    ls_status st = open_table(&t, false, err);

    if (st == LS_OK) {
        job->total = t.columns.records * (int64_t)t.columns.n;
        path = convert_output_add(&job->outputs, job->to, err);
        st = path != NULL ? convert_zip_open(path, &t.zip, err) : err->code;
    }
    for (; st == LS_OK && t.column < t.columns.n; t.column++) {
        st = write_column(&t, err);
    }
    if (st == LS_OK) {
        st = convert_zip_close(t.zip, err);
    }
    convert_zip_release(t.zip);
    close_table(&t);
    return st;
}
