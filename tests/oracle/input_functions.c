/*
 * The functions of `flat_map`, `interleave` and `map` that make a dataset of an element.
 */
#include "input_map.h"

#include <stdlib.h>
#include <string.h>

/* ---- what they make ---- */

static ls_status scalar_spec(ls_dtype dtype, ls_spec **out, ls_error *err)
{
    return ls_spec_tensor(dtype, 0, NULL, out, err);
}

static ls_status columns_spec(const json_t *columns, ls_spec **out, ls_error *err)
{
    const size_t n = json_array_size(columns);
    ls_spec **items = calloc(n + 1, sizeof(ls_spec *));
    ls_status st = items == NULL ? input_fail(err, LS_UNKNOWN, "out of memory") : LS_OK;

    for (size_t i = 0; st == LS_OK && i < n; i++) {
        const char *name =
            json_string_value(json_object_get(json_array_get(columns, i), "dtype"));
        ls_dtype dtype = LS_F32;

        st = name != NULL && ls_dtype_from_name(name, &dtype)
                 ? scalar_spec(dtype, &items[i], err)
                 : input_fail(err, LS_UNKNOWN, "a column has no dtype");
    }
    if (st == LS_OK) {
        st = ls_spec_tuple(items, n, out, err);
    }
    for (size_t i = 0; items != NULL && i < n; i++) {
        ls_spec_release(items[i]);
    }
    free((void *)items);
    return st;
}

/* The leaf with an unknown size in front. */
static ls_status batch_leaf(const ls_spec *s, const void *user, ls_spec **out,
                            ls_error *err)
{
    int64_t dims[LS_MAX_DIMS + 1] = {-1};
    const int ndim = ls_spec_ndim(s);

    (void)user;
    for (int i = 0; i < ndim; i++) {
        dims[i + 1] = ls_spec_dim(s, i);
    }
    if (ls_spec_kind_of(s) == LS_SPEC_SPARSE) {
        return ls_spec_sparse(ls_spec_dtype(s), ndim + 1, dims, out, err);
    }
    return ls_spec_tensor(ls_spec_dtype(s), ndim < 0 ? -1 : ndim + 1, dims, out, err);
}

/* The spec of the elements that the function's datasets have. */
static ls_status inner_spec(const input_function *f, const char *name, const ls_spec *in,
                            ls_spec **out, ls_error *err)
{
    const ls_spec *inside =
        ls_spec_kind_of(in) == LS_SPEC_DATASET ? ls_spec_child(in, 0) : NULL;

    if (strcmp(name, "identity") == 0 || strcmp(name, "batch") == 0) {
        if (inside == NULL) {
            return input_fail(err, LS_INVALID_ARGUMENT, "the element is no dataset");
        }
        if (strcmp(name, "batch") == 0) {
            return input_spec_map(inside, batch_leaf, NULL, out, err);
        }
        *out = ls_spec_retain(
            (ls_spec *)(uintptr_t)
                inside); // another number of elements does not change the spec
        return LS_OK;
    }
    if (strcmp(name, "copies") == 0) {
        *out = ls_spec_retain((ls_spec *)(uintptr_t)in);
        return LS_OK;
    }
    if (strcmp(name, "csv") == 0) {
        return columns_spec(json_array_get(f->op, f->at + 1), out, err);
    }
    if (strcmp(name, "range") == 0 || strcmp(name, "hundreds") == 0) {
        return scalar_spec(LS_I64, out, err);
    }
    return scalar_spec(LS_STRING, out, err);
}

/* The name as the library calls the reader; NULL: the function opens no files. */
static const char *reader_of(const char *name)
{
    static const char *const readers[] = {"tfrecord", "textline", "fixed", "csv"};

    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (strcmp(readers[i], name) == 0) {
            return readers[i];
        }
    }
    return NULL;
}

/* ---- making them ---- */

/* The reader of the files that a scalar or a vector names. */
static ls_dataset *read_named(const input_function *f, const char *reader,
                              const ls_tensor *t)
{
    const size_t n = (size_t)ls_tensor_count(t);
    const ls_string *strings = ls_tensor_data(t);
    char **names = calloc(n + 1, sizeof(char *));
    bool complete = names != NULL;
    ls_dataset *d = NULL;

    for (size_t i = 0; complete && i < n; i++) {
        names[i] = strndup(strings[i].ptr, strings[i].len);
        complete = names[i] != NULL;
    }
    if (complete) {
        d = input_read_files(reader, (const char *const *)names, n,
                             json_array_get(f->op, f->at + 1), f->options);
    }
    for (size_t i = 0; names != NULL && i < n; i++) {
        free(names[i]);
    }
    free((void *)names);
    return d;
}

static ls_dataset *make_dataset(ls_value *element, void *user)
{
    const input_function *f = user;
    const char *name = json_string_value(json_array_get(f->op, f->at));
    ls_value *x = input_argument(element);
    const ls_tensor *t = ls_value_as_tensor(x);

    if (strcmp(name, "identity") == 0) {
        return ls_dataset_retain(ls_value_as_dataset(x));
    }
    if (strcmp(name, "batch") == 0) {
        return ls_dataset_batch(ls_dataset_retain(ls_value_as_dataset(x)),
                                input_map_integer(f, 1));
    }
    if (t == NULL) {
        return NULL;
    }
    if (reader_of(name) != NULL) {
        return read_named(f, name, t);
    }
    if (strcmp(name, "copies") == 0) {
        return ls_dataset_repeat(ls_dataset_tensors(x), input_map_item(t));
    }
    if (strcmp(name, "hundreds") == 0) {
        const int64_t n = input_map_item(t);

        return ls_dataset_range(100 * n, 100 * n + n, 1);
    }
    return ls_dataset_range(0, input_map_item(t), 1);
}

/* ---- operators ---- */

static bool is_known(const char *name)
{
    static const char *const others[] = {"range", "copies", "hundreds", "identity",
                                         "batch"};

    for (size_t i = 0; name != NULL && i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(others[i], name) == 0) {
            return true;
        }
    }
    return name != NULL && reader_of(name) != NULL;
}

/* The options of both operators and their function; NULL: the builder keeps the error. */
static input_function *describe_function(input_builder *b, const ls_dataset *d,
                                         json_t *op, json_t *options,
                                         ls_interleave_options *opts)
{
    const char *name = json_string_value(json_array_get(op, 1));
    const ls_spec *in = input_argument_spec(ls_dataset_spec(d));
    input_function *f = input_function_new(b, op, 1, options);
    ls_error err = LS_ERROR_INIT;

    if (f == NULL || !is_known(name)) {
        (void)input_build_fail(b, LS_UNKNOWN, "the dataset function %s is not known",
                               name == NULL ? "?" : name);
        return NULL;
    }
    if (in != NULL && inner_spec(f, name, in, &f->spec, &err) != LS_OK) {
        (void)input_build_fail(b, err.code, "%s", err.message);
        return NULL;
    }
    opts->spec = f->spec;
    opts->reader = reader_of(name);
    return f;
}

ls_dataset *input_flat_map(input_builder *b, ls_dataset *d, json_t *op, json_t *options)
{
    ls_interleave_options opts = LS_INTERLEAVE_OPTIONS_INIT;
    input_function *f = describe_function(b, d, op, options, &opts);

    if (f == NULL) {
        ls_dataset_release(d);
        return NULL;
    }
    return ls_dataset_flat_map(d, make_dataset, f, &opts);
}

/*
 * Converts a count: the library's 0 is TensorFlow's AUTOTUNE, and both reject
 * TensorFlow's 0.
 */
static int64_t count_of(int64_t n)
{
    return n == -1 ? 0 : n == 0 ? -2 : n;
}

ls_dataset *input_interleave(input_builder *b, ls_dataset *d, json_t *op, json_t *options)
{
    ls_interleave_options opts = LS_INTERLEAVE_OPTIONS_INIT;
    input_function *f = describe_function(b, d, op, options, &opts);

    if (f == NULL) {
        ls_dataset_release(d);
        return NULL;
    }
    opts.cycle = count_of(input_option(options, "cycle", -1));
    opts.block = count_of(input_option(options, "block", 1));
    opts.parallel = (int)input_option(options, "calls", 0);
    return ls_dataset_interleave(d, make_dataset, f, &opts);
}

/* ---- a dataset as an element ---- */

ls_status input_dataset_spec(const input_function *f, const ls_spec *in, ls_spec **out,
                             ls_error *err)
{
    const char *name = json_string_value(json_array_get(f->op, f->at));
    ls_spec *inside = NULL;
    ls_status st = inner_spec(f, name, in, &inside, err);

    if (st == LS_OK) {
        st = ls_spec_dataset(inside, out, err);
    }
    ls_spec_release(inside);
    return st;
}

ls_value *input_map_dataset(ls_context *c, ls_value *element, void *user)
{
    ls_dataset *d = make_dataset(element, user);
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    const ls_status st = ls_value_dataset(d, &out, &err);

    ls_dataset_release(d);
    if (st != LS_OK) {
        (void)ls_context_fail_with(c, &err);
        return NULL;
    }
    return ls_value_adopt(c, out);
}
