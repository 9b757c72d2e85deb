/* `lockstep data inspect`: what a file holds, and whether it is whole. */
#include "cli/data/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char command[] = "lockstep data inspect";

enum { TEXT_MOST = 72, SHOWN = 3, SHOWN_VALUES = 4, LINE = 512 };

static void free_report(data_report *r)
{
    for (size_t i = 0; i < r->nfirst; i++) {
        free(r->first[i]);
    }
    free((void *)r->first);
    free(r->sizes);
    ls_array_headers_release(r->arrays, r->narrays);
    data_columns_free(&r->columns);
    data_csv_close(&r->csv);
    data_file_close(&r->file);
}

static ls_status note_size(data_report *r, size_t size, ls_error *err)
{
    if (r->nsizes == r->room) {
        const size_t room = r->room > 0 ? 2 * r->room : 1024;
        uint64_t *sizes = realloc(r->sizes, room * sizeof *sizes);

        if (sizes == NULL) {
            return data_no_memory(err);
        }
        r->sizes = sizes;
        r->room = room;
    }
    r->sizes[r->nsizes++] = size;
    r->data_bytes += (int64_t)size;
    r->records++;
    return LS_OK;
}

static ls_status show_text(data_report *r, const char *text, ls_error *err)
{
    if ((int64_t)r->nfirst >= r->shown) {
        return LS_OK;
    }
    if (r->first == NULL) {
        r->first = (char **)calloc((size_t)r->shown, sizeof *r->first);
    }
    if (r->first != NULL) {
        r->first[r->nfirst] = strdup(text);
    }
    if (r->first == NULL || r->first[r->nfirst] == NULL) {
        return data_no_memory(err);
    }
    r->nfirst++;
    return LS_OK;
}

/* ---- one element as a line of text ---- */

struct line {
    char text[LINE];
    size_t len;
};

static void LS_PRINTF(2, 3) append_text(struct line *l, const char *fmt, ...);

static void append_text(struct line *l, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(l->text + l->len, sizeof l->text - l->len, fmt, args);
    va_end(args);
    l->len += n > 0 ? (size_t)n : 0;
    if (l->len >= sizeof l->text) {
        l->len = sizeof l->text - 1;
    }
}

static bool looks_like_text(ls_string s)
{
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];

        if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') {
            return false;
        }
    }
    return s.len <= TEXT_MOST;
}

static void append_bytes(struct line *l, ls_string s)
{
    char text[LINE];

    if (looks_like_text(s)) {
        append_text(l, "\"%s\"", data_printable(s, TEXT_MOST, text, sizeof text));
        return;
    }
    append_text(l, "%zu bytes", s.len);
    for (size_t i = 0; i < s.len && i < 4; i++) {
        append_text(l, " %02x", (unsigned char)s.ptr[i]);
    }
    append_text(l, "%s", s.len > 4 ? " ..." : "");
}

static void append_feature(struct line *l, const ls_example_entry *e)
{
    int64_t ints[SHOWN_VALUES] = {0};
    float floats[SHOWN_VALUES];
    ls_string strings[SHOWN_VALUES];

    (void)ls_example_entry_int64(e, ints, SHOWN_VALUES);
    (void)ls_example_entry_float(e, floats, SHOWN_VALUES);
    (void)ls_example_entry_bytes(e, strings, SHOWN_VALUES);
    append_text(l, "%s%.*s", l->len > 0 ? ", " : "", (int)e->name.len, e->name.ptr);
    for (size_t i = 0; i < e->count && i < SHOWN_VALUES; i++) {
        append_text(l, " ");
        if (e->kind == LS_LIST_INT64) {
            append_text(l, "%lld", (long long)ints[i]);
        } else if (e->kind == LS_LIST_FLOAT) {
            append_text(l, "%g", (double)floats[i]);
        } else {
            append_bytes(l, strings[i]);
        }
    }
    append_text(l, "%s", e->count > SHOWN_VALUES ? " ..." : "");
}

static ls_status show_record(data_report *r, ls_string record, ls_error *err)
{
    ls_example_walk walk = LS_EXAMPLE_WALK_INIT(record);
    struct line l = {.len = 0};
    ls_example_entry e;
    ls_status st;

    while ((st = ls_example_walk_next(&walk, &e, NULL)) == LS_OK) {
        append_feature(&l, &e);
    }
    if (record.len == 0 || st != LS_OUT_OF_RANGE) {
        l.len = 0;
        append_bytes(&l, record);
    }
    return show_text(r, l.text, err);
}

/* ---- the kinds of files ---- */

static ls_status see_record(ls_string record, void *user, ls_error *err)
{
    data_report *r = user;
    ls_status st = note_size(r, record.len, err);

    if (st == LS_OK) {
        st = data_columns_add(&r->columns, record, err);
    }
    if (st == LS_OK && (int64_t)r->nfirst < r->shown) {
        st = show_record(r, record, err);
    }
    return st;
}

static ls_status see_line(ls_string line, void *user, ls_error *err)
{
    data_report *r = user;
    char text[LINE];
    ls_status st = note_size(r, line.len, err);

    return st == LS_OK
               ? show_text(r, data_printable(line, TEXT_MOST, text, sizeof text), err)
               : st;
}

static ls_status see_fields(ls_value *element, void *user, ls_error *err)
{
    data_report *r = user;
    struct line l = {.len = 0};
    const size_t n = r->csv.n;
    size_t size = n - 1;
    char text[LINE];

    for (size_t i = 0; i < n; i++) {
        const ls_string s = data_csv_field(&r->csv, element, i);

        size += s.len;
        if ((int64_t)r->nfirst < r->shown) {
            append_text(&l, "%s%s %s", i > 0 ? ", " : "", r->csv.names[i],
                        data_printable(s, TEXT_MOST / 2, text, sizeof text));
        }
    }
    if (note_size(r, size, err) != LS_OK) {
        return err->code;
    }
    return show_text(r, l.text, err);
}

/* The elements of a tensor on one line: what TensorFlow prints, without its frame. */
static void append_tensor(struct line *l, const ls_value *leaf)
{
    static const char begin[] = "tf.Tensor(", end[] = ", shape=(";
    char full[4 * LINE];
    char *p = full;
    size_t n = 0;

    (void)ls_value_text(leaf, full, sizeof full);
    if (strncmp(full, begin, sizeof begin - 1) == 0) {
        char *last = strstr(full, end);

        p += sizeof begin - 1;
        if (last != NULL) {
            *last = '\0';
        }
    }
    for (char *q = p; *q != '\0'; q++) {
        const bool blank = *q == ' ' || *q == '\n';

        if (!blank || (n > 0 && p[n - 1] != ' ')) {
            p[n] = *q;
            if (blank) {
                p[n] = ' ';
            }
            n++;
        }
    }
    p[n] = '\0';
    append_text(l, "%.*s%s", TEXT_MOST, p, n > TEXT_MOST ? " ..." : "");
}

/* The first rows of an array; LS_OUT_OF_RANGE once there are enough. */
static ls_status see_row(ls_value *element, void *user, ls_error *err)
{
    data_report *r = user;
    struct line l = {.len = 0};

    if ((int64_t)r->nfirst >= r->shown) {
        return LS_OUT_OF_RANGE;
    }
    if (ls_value_is_leaf(element)) {
        append_tensor(&l, element);
    }
    for (size_t i = 0; !ls_value_is_leaf(element) && i < ls_value_size(element); i++) {
        append_text(&l, "%s%s ", i > 0 ? ", " : "", ls_value_key(element, i));
        append_tensor(&l, ls_value_child(element, i));
    }
    return show_text(r, l.text, err);
}

/* What is wrong with the file, if `st` says that something is. */
static void note_damage(data_report *r, ls_status st, const ls_error *err)
{
    if (st != LS_OK && st != LS_OUT_OF_RANGE && !r->damaged) {
        r->damaged = true;
        r->damage = *err;
        r->damage_at = r->file.format == DATA_TFRECORD ? r->offset : r->records;
    }
}

static void read_records(data_report *r, data_record_fn fn)
{
    ls_error err = LS_ERROR_INIT;

    note_damage(r, data_file_each(&r->file, true, fn, r, &r->offset, &err), &err);
}

/* Datasets end where a compressed stream does, also where that was cut off. */
static void read_elements(data_report *r, ls_dataset *d, data_element_fn fn)
{
    ls_error err = LS_ERROR_INIT;
    int64_t lines;

    note_damage(r, data_each(d, fn, r, &err), &err);
    if (!r->damaged && r->file.compression != NULL) {
        note_damage(r, data_file_count(&r->file, true, &lines, &err), &err);
    }
}

static void read_idx(data_report *r, ls_dataset *d)
{
    const unsigned char *p = r->file.head;
    static const struct {
        unsigned char code;
        ls_dtype dtype;
    } types[] = {{0x08, LS_U8},  {0x09, LS_I8},  {0x0B, LS_I16},
                 {0x0C, LS_I32}, {0x0D, LS_F32}, {0x0E, LS_F64}};

    if (r->file.head_len >= 4 && p[3] <= LS_MAX_DIMS &&
        r->file.head_len >= 4 + 4 * (size_t)p[3]) {
        r->shape.ndim = p[3];
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            r->dtype = types[i].code == p[2] ? types[i].dtype : r->dtype;
        }
        for (int i = 0; i < r->shape.ndim; i++) {
            const unsigned char *q = p + 4 + 4 * (size_t)i;

            r->shape.dims[i] =
                (int64_t)q[0] << 24 | (int64_t)q[1] << 16 | (int64_t)q[2] << 8 | q[3];
        }
        r->records = r->shape.dims[0];
    }
    read_elements(r, d, see_row);
}

static void read_arrays(data_report *r, ls_dataset *d)
{
    ls_status st;

    st = ls_array_headers(r->file.path, &r->arrays, &r->narrays, &r->damage);
    if (st != LS_OK) {
        r->damaged = true;
        return;
    }
    st = d != NULL ? ls_dataset_status(d, &r->damage) : LS_OK;
    if (st != LS_OK && st != LS_DATA_LOSS) {
        r->records = -1; // arrays of different lengths have no common rows
        return;
    }
    r->records = d != NULL && st == LS_OK ? ls_dataset_cardinality(d) : 0;
    read_elements(r, d, see_row);
}

static void read_file(data_report *r)
{
    ls_dataset *d = NULL;

    switch (r->file.format) {
    case DATA_TFRECORD:
        read_records(r, see_record);
        data_columns_sort(&r->columns);
        break;
    case DATA_CSV:
        if (data_csv_open(&r->file, &r->csv, &r->damage)) {
            d = data_csv_dataset(&r->file, &r->csv);
            read_elements(r, d, see_fields);
        } else {
            r->damaged = true;
        }
        break;
    case DATA_NPY:
    case DATA_NPZ:
        d = data_file_rows(&r->file);
        read_arrays(r, d);
        break;
    case DATA_IDX:
        d = data_file_rows(&r->file);
        read_idx(r, d);
        break;
    default:
        read_records(r, see_line);
    }
    ls_dataset_release(d);
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static const char text[] =
    "Says what kind of file FILE is by its bytes (TFRecord, text, CSV, npy, npz, IDX;\n"
    "plain, GZIP or ZLIB), reads all of it and tells how many records there are and how\n"
    "large they are; of Examples also their features, of arrays dtype and shape. Every\n"
    "checksum of a TFRecord file is checked. A damaged file gives exit status 1, and "
    "the\n"
    "place of the first damage is named. Names and records are any bytes: in JSON those\n"
    "that are no UTF-8 stand as \\xNN.\n";

static int inspect_file(const char *path, int64_t shown, bool json)
{
    data_report r = {.shown = shown, .damage = LS_ERROR_INIT};
    ls_error err = LS_ERROR_INIT;
    int status = CLI_OK;

    if (!data_file_open(path, &r.file, &err)) {
        return data_failed(command, path, &err);
    }
    if (r.file.format == DATA_UNKNOWN) {
        fprintf(stderr,
                "%s: %s is none of TFRecord, text, CSV, npy, npz and IDX by its bytes or "
                "its name\n",
                command, path);
        status = CLI_FAILED;
    } else {
        read_file(&r);
        if (r.nsizes > 1) {
            qsort(r.sizes, r.nsizes, sizeof *r.sizes, by_size);
        }
        if (json) {
            status = data_report_print_json(&r);
        } else {
            data_report_print(&r);
        }
    }
    if (r.damaged) {
        fflush(stdout);
        status = data_failed(command, path, &r.damage);
    }
    free_report(&r);
    return status;
}

int data_inspect(int argc, char **argv)
{
    cli_whole records = {SHOWN, 0, 1000000};
    bool json = false;
    const cli_option options[] = {
        {"--json", NULL, CLI_FLAG, &json, "print one JSON object"},
        {"--records", "N", CLI_WHOLE, &records,
         "how many of the first records to show (default: 3)"},
    };
    const cli_usage usage = {command, text, options, LSI_COUNT_OF(options), "FILE"};
    int status = CLI_OK;

    if (!cli_parse(&usage, argc, argv, &status)) {
        return status;
    }
    if (argv[1] == NULL || argv[2] != NULL) {
        return cli_misuse(command,
                          argv[1] == NULL ? "which file?" : "one file at a time");
    }
    return inspect_file(argv[1], records.value, json);
}
