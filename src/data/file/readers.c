/*
 * Datasets of many files: an interleave over a dataset of file names, whose function
 * opens one file. So sharding by files can find the names.
 */
#include "data/file/file_node.h"

#include <inttypes.h>

/* How the files of a reader are opened; all its nodes share this. */
struct opener {
    lsi_shared_user shared;
    const char *reader; // the kind of the nodes of one file
    lsi_compression compression;
    size_t piece;
    ls_spec *spec;
    size_t sizes[3];        // of "fixed": record, header, footer
    lsi_csv_layout *layout; // of "csv"
};

static void destroy_opener(lsi_shared_user *self)
{
    struct opener *o = (struct opener *)self;

    ls_spec_release(o->spec);
    lsi_csv_layout_release(o->layout);
    lsi_free(o);
}

/* The dataset of one file. */
static ls_dataset *open_one(ls_value *name, void *user)
{
    const struct opener *o = user;
    ls_error err = LS_ERROR_INIT;
    ls_string path = {NULL, 0};
    const ls_status st = lsi_element_file_name(name, &path, &err);

    if (st != LS_OK) {
        return lsi_dataset_failed(st, err.kind, "%s", err.message);
    }
    if (o->layout != NULL) {
        return lsi_csv_node(path, o->compression, o->piece, o->spec, o->layout);
    }
    if (o->sizes[0] > 0) {
        return lsi_fixed_node(path, o->compression, o->piece, o->spec, o->sizes);
    }
    return strcmp(o->reader, "textline") == 0
               ? lsi_textline_node(path, o->compression, o->piece, o->spec)
               : lsi_tfrecord_node(path, o->compression, o->piece, o->spec);
}

/* An opener; a failure is returned in *st. */
static struct opener *opener_new(const char *reader, const ls_read_options *opts,
                                 ls_status *st, ls_error *err)
{
    struct opener *o = lsi_alloc(1, sizeof *o);

    if (o == NULL) {
        *st = lsi_fail_memory(err, "a reader", sizeof *o);
        return NULL;
    }
    atomic_init(&o->shared.refs, 1);
    o->shared.destroy = destroy_opener;
    o->reader = reader;
    *st = LS_OK;
    if (opts != NULL) {
        o->piece = opts->buffer;
        *st = lsi_compression_of(opts->compression, &o->compression, err);
        if (*st == LS_OK && opts->parallel < LS_AUTOTUNE) {
            *st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                "%d files at once; must be 1 or more, 0 (one after the "
                                "other) or LS_AUTOTUNE",
                                opts->parallel);
        }
    }
    return o;
}

static ls_dataset *failed_reader(ls_dataset *names, struct opener *o, const ls_error *err)
{
    if (o != NULL) {
        destroy_opener(&o->shared);
    }
    if (names == NULL) {
        return NULL;
    }
    if (lsi_dataset_bad(names)) {
        return names; // the names had failed before
    }
    ls_dataset_release(names);
    return lsi_dataset_failed(err->code, err->kind, "%s", err->message);
}

/* Names must be scalar strings; an unknown spec is accepted. */
static ls_status check_names(const ls_dataset *names, ls_error *err)
{
    const ls_spec *s = names->spec;
    char text[200];

    if (lsi_spec_is_unknown(s) || (s->kind == LS_SPEC_TENSOR && s->dtype == LS_STRING &&
                                   (s->ndim == 0 || s->ndim == -1))) {
        return LS_OK;
    }
    (void)ls_spec_text(s, text, sizeof text);
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                         "the names of files are scalar strings, not %s", text);
}

/* The dataset of all files; takes over both. `st`: a failure so far. */
static ls_dataset *compose_reader(ls_dataset *names, struct opener *o, int parallel,
                                  ls_status st, ls_error *err)
{
    ls_interleave_options io = LS_INTERLEAVE_OPTIONS_INIT;
    ls_dataset *d;
    uint64_t note;

    if (st == LS_OK && lsi_dataset_bad(names)) {
        st = LS_INVALID_ARGUMENT; // with the failure of the names
    }
    if (st == LS_OK) {
        st = check_names(names, err);
    }
    if (st == LS_OK && o->spec == NULL) {
        st = ls_spec_tensor(LS_STRING, 0, NULL, &o->spec, err);
    }
    if (st != LS_OK) {
        return failed_reader(names, o, err);
    }
    io.spec = o->spec;
    io.reader = o->reader;
    io.parallel = parallel;
    io.cycle = parallel > 0 ? parallel : 0;
    io.block = 1;
    note = (uint64_t)o->compression;
    for (size_t i = 0; i < LSI_COUNT_OF(o->sizes); i++) {
        note = note * 1000003 + o->sizes[i];
    }
    d = lsi_dataset_interleave_shared(names, open_one, &o->shared, parallel == 0, &io);
    if (!lsi_dataset_bad(d)) {
        lsi_dataset_mix_parameter(d, note); // part of the fingerprint
    }
    return d;
}

/* The names as a dataset. */
static ls_dataset *names_of(const char *const *names, size_t n)
{
    ls_error err = LS_ERROR_INIT;
    ls_string *list;
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_dataset *d = NULL;
    const int64_t dim = (int64_t)n;
    ls_status st;

    for (size_t i = 0; i < n; i++) {
        if (names == NULL || names[i] == NULL) {
            return lsi_dataset_failed(LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                      "name %zu of the files to read is NULL", i);
        }
    }
    list = lsi_alloc(n + 1, sizeof *list);
    if (list == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = (ls_string){names[i], strlen(names[i])};
    }
    st = lsi_tensor_create(NULL, LS_STRING, ls_shape_of(1, &dim), list, &t, &err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, &v, &err);
    }
    d = st == LS_OK ? ls_dataset_slices(v)
                    : lsi_dataset_failed(st, err.kind, "%s", err.message);
    ls_value_release(v);
    ls_tensor_release(t);
    lsi_free(list);
    return d;
}

static ls_dataset *read_strings(const char *reader, ls_dataset *names,
                                const ls_read_options *opts)
{
    ls_error err = LS_ERROR_INIT;
    ls_status st = LS_OK;
    struct opener *o = opener_new(reader, opts, &st, &err);

    return compose_reader(names, o, opts != NULL ? opts->parallel : 0, st, &err);
}

ls_dataset *ls_dataset_tfrecord(const char *pattern)
{
    ls_error err = LS_ERROR_INIT;
    ls_status st = LS_OK;
    struct opener *o = opener_new("tfrecord", NULL, &st, &err);

    if (o != NULL) {
        o->compression = LSI_COMPRESSION_DETECT;
    }
    return compose_reader(ls_dataset_list_files(&pattern, 1, true, NULL), o, 0, st, &err);
}

ls_dataset *ls_dataset_tfrecord_files(const char *const *names, size_t n,
                                      const ls_read_options *opts)
{
    return read_strings("tfrecord", names_of(names, n), opts);
}

ls_dataset *ls_dataset_tfrecord_from(ls_dataset *names, const ls_read_options *opts)
{
    return read_strings("tfrecord", names, opts);
}

ls_dataset *ls_dataset_text_files(const char *const *names, size_t n,
                                  const ls_read_options *opts)
{
    return read_strings("textline", names_of(names, n), opts);
}

ls_dataset *ls_dataset_text_from(ls_dataset *names, const ls_read_options *opts)
{
    return read_strings("textline", names, opts);
}

ls_dataset *ls_dataset_fixed_files(const char *const *names, size_t n,
                                   size_t record_bytes, size_t header_bytes,
                                   size_t footer_bytes, const ls_read_options *opts)
{
    return ls_dataset_fixed_from(names_of(names, n), record_bytes, header_bytes,
                                 footer_bytes, opts);
}

ls_dataset *ls_dataset_fixed_from(ls_dataset *names, size_t record_bytes,
                                  size_t header_bytes, size_t footer_bytes,
                                  const ls_read_options *opts)
{
    const size_t most = SIZE_MAX / 8;
    ls_error err = LS_ERROR_INIT;
    ls_status st = LS_OK;
    struct opener *o = opener_new("fixed", opts, &st, &err);

    if (st == LS_OK && (record_bytes == 0 || record_bytes > most || header_bytes > most ||
                        footer_bytes > most)) {
        st = lsi_fail_kind(
            &err, LS_INVALID_ARGUMENT, LS_KIND_OP,
            "records of %zu bytes after a header of %zu and before a footer "
            "of %zu are invalid: a record has at least one byte",
            record_bytes, header_bytes, footer_bytes);
    }
    if (st == LS_OK) {
        o->sizes[0] = record_bytes;
        o->sizes[1] = header_bytes;
        o->sizes[2] = footer_bytes;
    }
    return compose_reader(names, o, opts != NULL ? opts->parallel : 0, st, &err);
}

ls_dataset *ls_dataset_csv_files(const char *const *names, size_t n,
                                 const ls_csv_column *columns, size_t ncolumns,
                                 const ls_csv_options *opts)
{
    return ls_dataset_csv_from(names_of(names, n), columns, ncolumns, opts);
}

ls_dataset *ls_dataset_csv_from(ls_dataset *names, const ls_csv_column *columns,
                                size_t ncolumns, const ls_csv_options *opts)
{
    const ls_read_options *read = opts != NULL ? &opts->read : NULL;
    ls_error err = LS_ERROR_INIT;
    ls_status st = LS_OK;
    struct opener *o = opener_new("csv", read, &st, &err);

    if (st == LS_OK) {
        st = lsi_csv_layout_create(columns, ncolumns, opts, &o->layout, &err);
    }
    if (st == LS_OK) {
        st = lsi_csv_layout_spec(o->layout, &o->spec, &err);
    }
    return compose_reader(names, o, read != NULL ? read->parallel : 0, st, &err);
}
