/*
 * Builds the sources of pipelines: file names, readers, memory, and generated elements.
 */
#include "input_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names of files ---- */

typedef struct paths {
    char **items;
    size_t n;
} paths;

static void free_paths(paths *p)
{
    for (size_t i = 0; p->items != NULL && i < p->n; i++) {
        free(p->items[i]);
    }
    free((void *)p->items);
    *p = (paths){NULL, 0};
}

static char *full_name(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);

    if (path != NULL) {
        (void)snprintf(path, size, "%s/%s", folder, name);
    }
    return path;
}

static bool full_names(const input_builder *b, const json_t *names, paths *out)
{
    out->n = json_array_size(names);
    out->items = calloc(out->n + 1, sizeof(char *));
    for (size_t i = 0; out->items != NULL && i < out->n; i++) {
        const char *name = json_string_value(json_array_get(names, i));

        out->items[i] = name == NULL ? NULL : full_name(b->folder, name);
        if (out->items[i] == NULL) {
            free_paths(out);
        }
    }
    return out->items != NULL;
}

static ls_dataset *no_names(input_builder *b)
{
    return input_build_fail(b, LS_UNKNOWN, "a source has no names of files");
}

/* ---- readers ---- */

typedef struct columns {
    ls_csv_column *items;
    size_t n;
} columns;

static void free_columns(columns *c)
{
    for (size_t i = 0; c->items != NULL && i < c->n; i++) {
        ls_value_release(c->items[i].otherwise);
    }
    free(c->items);
    *c = (columns){NULL, 0};
}

static ls_value *column_default(const json_t *x, ls_dtype dtype, ls_error *err)
{
    ls_value *v = NULL;
    ls_status st;

    if (json_is_string(x)) {
        st = ls_value_string((ls_string){json_string_value(x), json_string_length(x)}, &v,
                             err);
    } else if (dtype == LS_F32 || dtype == LS_F64) {
        st = ls_value_float(json_number_value(x), &v, err);
    } else {
        st = ls_value_int(json_integer_value(x), &v, err);
    }
    return st == LS_OK ? v : NULL;
}

static bool read_columns(const json_t *given, columns *out, ls_error *err)
{
    out->n = json_array_size(given);
    out->items = calloc(out->n + 1, sizeof *out->items);
    for (size_t i = 0; out->items != NULL && i < out->n; i++) {
        const json_t *column = json_array_get(given, i);
        const json_t *otherwise = json_object_get(column, "default");
        const char *name = json_string_value(json_object_get(column, "dtype"));
        ls_csv_column *to = &out->items[i];

        if (name == NULL || !ls_dtype_from_name(name, &to->dtype)) {
            free_columns(out);
            return false;
        }
        if (otherwise != NULL) {
            to->otherwise = column_default(otherwise, to->dtype, err);
            if (to->otherwise == NULL) {
                free_columns(out);
                return false;
            }
        }
    }
    return out->items != NULL;
}

enum { MOST_COLUMNS = 64 };

static size_t read_indices(const json_t *array, int *to)
{
    const size_t n = json_array_size(array);

    for (size_t i = 0; i < n && i < MOST_COLUMNS; i++) {
        to[i] = (int)json_integer_value(json_array_get(array, i));
    }
    return n < MOST_COLUMNS ? n : MOST_COLUMNS;
}

static ls_dataset *read_csv(const char *const *names, size_t n, const json_t *given,
                            const json_t *options, const ls_read_options *read)
{
    const char *delimiter = json_string_value(json_object_get(options, "delim"));
    const json_t *select = json_object_get(options, "select");
    const json_t *exclude = json_object_get(options, "exclude");
    ls_csv_options opts = LS_CSV_OPTIONS_INIT;
    int selected[MOST_COLUMNS], excluded[MOST_COLUMNS];
    ls_error err = LS_ERROR_INIT;
    columns c = {NULL, 0};
    ls_dataset *d;

    if (!read_columns(given, &c, &err)) {
        return NULL;
    }
    opts.read = *read;
    opts.header = input_flag(options, "header", false);
    opts.plain_quotes = !input_flag(options, "quotes", true);
    if (delimiter != NULL) {
        opts.delimiter = delimiter[0];
    }
    opts.na = json_string_value(json_object_get(options, "na"));
    opts.nselect = read_indices(select, selected);
    opts.select = select == NULL ? NULL : selected;
    opts.nexclude = read_indices(exclude, excluded);
    opts.exclude = exclude == NULL ? NULL : excluded;
    d = ls_dataset_csv_files(names, n, c.items, c.n, &opts);
    free_columns(&c);
    return d;
}

ls_dataset *input_read_files(const char *reader, const char *const *names, size_t n,
                             const json_t *argument, const json_t *options)
{
    ls_read_options opts = LS_READ_OPTIONS_INIT;

    opts.compression = json_string_value(json_object_get(options, "compression"));
    opts.parallel = (int)input_option(options, "parallel", 0);
    if (strcmp(reader, "tfrecord") == 0) {
        return ls_dataset_tfrecord_files(names, n, &opts);
    }
    if (strcmp(reader, "textline") == 0) {
        return ls_dataset_text_files(names, n, &opts);
    }
    if (strcmp(reader, "fixed") == 0) {
        return ls_dataset_fixed_files(names, n, (size_t)json_integer_value(argument),
                                      (size_t)input_option(options, "header", 0),
                                      (size_t)input_option(options, "footer", 0), &opts);
    }
    return read_csv(names, n, argument, options, &opts);
}

static ls_dataset *source_reader(input_builder *b, json_t *op, json_t *options)
{
    paths p = {NULL, 0};
    ls_dataset *d;

    if (!full_names(b, json_array_get(op, 1), &p)) {
        return no_names(b);
    }
    d = input_read_files(json_string_value(json_array_get(op, 0)),
                         (const char *const *)p.items, p.n, json_array_get(op, 2),
                         options);
    free_paths(&p);
    return d;
}

static ls_dataset *source_list_files(input_builder *b, json_t *op, json_t *options)
{
    int64_t room = 0;
    paths p = {NULL, 0};
    ls_dataset *d;

    if (!full_names(b, json_array_get(op, 1), &p)) {
        return no_names(b);
    }
    d = ls_dataset_list_files((const char *const *)p.items, p.n,
                              !input_flag(options, "shuffle", true),
                              input_seed(options, "seed", &room));
    free_paths(&p);
    return d;
}

static ls_dataset *source_npy(input_builder *b, json_t *op, json_t *options)
{
    const char *kind = json_string_value(json_array_get(op, 0));
    const char *name = json_string_value(json_array_get(op, 1));
    char *path = name == NULL ? NULL : full_name(b->folder, name);
    ls_dataset *d;

    (void)options;
    if (path == NULL) {
        return no_names(b);
    }
    d = strcmp(kind, "npz") == 0 ? ls_dataset_npz(path) : ls_dataset_npy(path);
    free(path);
    return d;
}

/* ---- memory ---- */

static ls_dataset *source_range(input_builder *b, json_t *op, json_t *options)
{
    const size_t n = json_array_size(op) - 1;
    const int64_t first = json_integer_value(json_array_get(op, 1));

    (void)b;
    (void)options;
    if (n == 1) {
        return ls_dataset_range(0, first, 1);
    }
    return ls_dataset_range(first, json_integer_value(json_array_get(op, 2)),
                            n == 2 ? 1 : json_integer_value(json_array_get(op, 3)));
}

static ls_dataset *source_memory(input_builder *b, json_t *op, json_t *options)
{
    const char *kind = json_string_value(json_array_get(op, 0));
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL;
    ls_dataset *d;

    (void)options;
    if (input_decode(json_array_get(op, 1), &v, &err) != LS_OK) {
        return input_build_fail(b, err.code, "%s", err.message);
    }
    d = strcmp(kind, "slices") == 0    ? ls_dataset_slices(v)
        : strcmp(kind, "tensors") == 0 ? ls_dataset_tensors(v)
                                       : ls_strategy_numpy_dataset(b->strategy, v);
    ls_value_release(v);
    return d;
}

/* from_tensor_slices of the full names. */
static ls_dataset *source_files(input_builder *b, json_t *op, json_t *options)
{
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_string *strings;
    ls_dataset *d = NULL;
    paths p = {NULL, 0};

    (void)options;
    if (!full_names(b, json_array_get(op, 1), &p)) {
        return no_names(b);
    }
    strings = calloc(p.n + 1, sizeof *strings);
    for (size_t i = 0; strings != NULL && i < p.n; i++) {
        strings[i] = (ls_string){p.items[i], strlen(p.items[i])};
    }
    if (strings != NULL &&
        ls_tensor_create(NULL, LS_STRING, LS_SHAPE((int64_t)p.n), strings, &t, &err) ==
            LS_OK &&
        ls_value_tensor(t, &v, &err) == LS_OK) {
        d = ls_dataset_slices(v);
    }
    ls_value_release(v);
    ls_tensor_release(t);
    free(strings);
    free_paths(&p);
    return d == NULL ? input_build_fail(b, LS_UNKNOWN, "%s", err.message) : d;
}

/* ---- a source of the user's ---- */

struct cursor {
    const json_t *values;
    size_t at;
};

static ls_status open_cursor(void *user, void **state, ls_error *err)
{
    const input_function *f = user;
    struct cursor *cursor = malloc(sizeof *cursor);

    if (cursor == NULL) {
        return input_fail(err, LS_RESOURCE_EXHAUSTED, "no memory");
    }
    *cursor = (struct cursor){json_array_get(f->op, 1), 0};
    *state = cursor;
    return LS_OK;
}

static ls_status next_of_cursor(void *state, ls_value **out, ls_error *err)
{
    struct cursor *cursor = state;
    ls_tensor *t = NULL;
    ls_status st;
    int64_t x;

    if (cursor->at == json_array_size(cursor->values)) {
        return input_fail(err, LS_OUT_OF_RANGE, "no more values");
    }
    x = json_integer_value(json_array_get(cursor->values, cursor->at++));
    st = ls_tensor_create(NULL, LS_I64, LS_SCALAR, &x, &t, err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static ls_dataset *source_generator(input_builder *b, json_t *op, json_t *options)
{
    input_function *f = input_function_new(b, op, 0, options);
    const ls_source source = {sizeof source, open_cursor, next_of_cursor, free, f};
    ls_error err = LS_ERROR_INIT;

    if (f == NULL || ls_spec_tensor(LS_I64, 0, NULL, &f->spec, &err) != LS_OK) {
        return input_build_fail(b, LS_UNKNOWN, "out of memory");
    }
    return ls_dataset_source(&source, f->spec);
}

/* ---- several pipelines ---- */

static void release_all(ls_dataset **ds, size_t n)
{
    for (size_t i = 0; ds != NULL && i < n; i++) {
        ls_dataset_release(ds[i]);
    }
    free((void *)ds);
}

/* NULL: one failed, and the others are released. */
static ls_dataset **build_all(input_builder *b, json_t *pipelines)
{
    const size_t n = json_array_size(pipelines);
    ls_dataset **ds = calloc(n + 1, sizeof(ls_dataset *));

    for (size_t i = 0; ds != NULL && i < n; i++) {
        ds[i] = input_build_plain(b, json_array_get(pipelines, i));
        if (ds[i] == NULL) {
            release_all(ds, n);
            return NULL;
        }
    }
    return ds;
}

static ls_dataset *source_zip(input_builder *b, json_t *op, json_t *options)
{
    json_t *pipelines = json_array_get(op, 1);
    ls_dataset **ds = build_all(b, pipelines);
    ls_dataset *d = ds == NULL ? NULL : ls_dataset_zip(ds, json_array_size(pipelines));

    (void)options;
    free((void *)ds);
    return d;
}

static ls_dataset *source_choose(input_builder *b, json_t *op, json_t *options)
{
    json_t *pipelines = json_array_get(op, 1);
    const size_t n = json_array_size(pipelines);
    ls_dataset **ds = build_all(b, pipelines);
    ls_dataset *choices = ds == NULL ? NULL : input_build_plain(b, json_array_get(op, 2));
    ls_dataset *d;

    if (choices == NULL) {
        release_all(ds, n);
        return NULL;
    }
    d = ls_dataset_choose(ds, n, choices, input_flag(options, "stop_on_empty", true));
    free((void *)ds);
    return d;
}

static const struct {
    const char *name;
    input_source make;
} SOURCES[] = {
    {"range", source_range},
    {"slices", source_memory},
    {"tensors", source_memory},
    {"numpy", source_memory},
    {"files", source_files},
    {"list_files", source_list_files},
    {"tfrecord", source_reader},
    {"textline", source_reader},
    {"fixed", source_reader},
    {"csv", source_reader},
    {"npy", source_npy},
    {"npz", source_npy},
    {"zip", source_zip},
    {"choose", source_choose},
    {"generator", source_generator},
};

input_source input_find_source(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof SOURCES / sizeof SOURCES[0]; i++) {
        if (strcmp(SOURCES[i].name, name) == 0) {
            return SOURCES[i].make;
        }
    }
    return NULL;
}
