/* Parses and writes Examples: in map functions and by an operator. */
#include "input_map.h"

#include "lockstep/example.h"
#include "lockstep/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- features ---- */

typedef struct features {
    ls_feature *items;
    size_t n;
} features;

static void free_features(void *extra)
{
    features *all = extra;

    for (size_t i = 0; all != NULL && i < all->n; i++) {
        ls_tensor_release(all->items[i].otherwise);
    }
    if (all != NULL) {
        free(all->items);
    }
    free(all);
}

static ls_status read_feature(const char *name, const json_t *x, ls_feature *to,
                              ls_error *err)
{
    const char *kind = json_string_value(json_object_get(x, "kind"));
    const char *dtype = json_string_value(json_object_get(x, "dtype"));
    const json_t *dims = json_object_get(x, "shape");
    const json_t *otherwise = json_object_get(x, "default");
    int64_t sizes[LS_MAX_DIMS] = {0};
    const ls_shape scalar = LS_SCALAR;

    if (kind == NULL || dtype == NULL || !ls_dtype_from_name(dtype, &to->dtype)) {
        return input_fail(err, LS_UNKNOWN, "the feature %s is none", name);
    }
    for (size_t i = 0; i < json_array_size(dims) && i < LS_MAX_DIMS; i++) {
        sizes[i] = json_integer_value(json_array_get(dims, i));
    }
    to->name = name;
    to->kind = strcmp(kind, "var") == 0        ? LS_FEATURE_VAR
               : strcmp(kind, "sequence") == 0 ? LS_FEATURE_SEQUENCE
                                               : LS_FEATURE_FIXED;
    to->shape = ls_shape_of(json_array_size(dims), sizes);
    if (otherwise == NULL || json_is_null(otherwise)) {
        return LS_OK;
    }
    return input_decode_tensor(dtype,
                               to->kind == LS_FEATURE_SEQUENCE ? &scalar : &to->shape,
                               otherwise, &to->otherwise, err);
}

/* Objects are features; a number beside them is an option of the operator. */
static features *read_features(const json_t *object, ls_error *err)
{
    features *all = calloc(1, sizeof *all);
    ls_status st = LS_OK;
    const char *name;
    json_t *x;

    if (all != NULL) {
        all->items = calloc(json_object_size(object) + 1, sizeof *all->items);
    }
    if (all == NULL || all->items == NULL) {
        free_features(all);
        (void)input_fail(err, LS_UNKNOWN, "out of memory");
        return NULL;
    }
    // Reading a key does not change the object, whatever the iterator's type says.
    json_object_foreach((json_t *)(uintptr_t)object, name, x)
    {
        if (json_is_object(x) && st == LS_OK) {
            st = read_feature(name, x, &all->items[all->n++], err);
        }
    }
    if (st != LS_OK) {
        free_features(all);
        return NULL;
    }
    return all;
}

/* ---- maps ---- */

/* The table asks for the spec first; the function gets its features then. */
static ls_status spec_of_features(const input_function *f, bool batched, int64_t rows,
                                  ls_spec **out, ls_error *err)
{
    input_function *own = (input_function *)(uintptr_t)f; // of the builder that asks
    features *all = read_features(f->options, err);

    if (all == NULL) {
        return err->code;
    }
    own->extra = all;
    own->free_extra = free_features;
    return ls_example_spec(all->items, all->n, batched, rows, out, err);
}

ls_status input_parse_spec(const input_function *f, const ls_spec *in, ls_spec **out,
                           ls_error *err)
{
    return spec_of_features(f, true, ls_spec_ndim(in) == 1 ? ls_spec_dim(in, 0) : -1, out,
                            err);
}

ls_status input_parse_single_spec(const input_function *f, const ls_spec *in,
                                  ls_spec **out, ls_error *err)
{
    (void)in;
    return spec_of_features(f, false, -1, out, err);
}

ls_value *input_map_parse(ls_context *c, ls_value *element, void *user)
{
    const input_function *f = user;
    const features *all = f->extra;

    return ls_parse_example(c, ls_value_as_tensor(input_argument(element)), all->items,
                            all->n);
}

ls_value *input_map_parse_single(ls_context *c, ls_value *element, void *user)
{
    const input_function *f = user;
    const features *all = f->extra;

    return ls_parse_single_example(c, ls_value_as_tensor(input_argument(element)),
                                   all->items, all->n);
}

ls_dataset *input_parse_example(input_builder *b, ls_dataset *d, json_t *op,
                                json_t *options)
{
    ls_error err = LS_ERROR_INIT;
    features *all = read_features(json_array_get(op, 1), &err);

    (void)options;
    if (all == NULL) {
        ls_dataset_release(d);
        return input_build_fail(b, err.code, "%s", err.message);
    }
    d = ls_dataset_parse_example(d, all->items, all->n, 0);
    free_features(all);
    return d;
}

/* ---- bytes ---- */

static json_t *hex(const unsigned char *bytes, size_t n)
{
    char *text = malloc(2 * n + 1);
    json_t *answer;

    if (text == NULL) {
        return NULL;
    }
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    answer = json_pack("{s:s}", "hex", text);
    free(text);
    return answer;
}

static json_t *hex_of_file(const char *path)
{
    unsigned char bytes[4096];
    FILE *f = fopen(path, "rb");
    size_t n;

    if (f == NULL) {
        return NULL;
    }
    n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    return hex(bytes, n);
}

json_t *input_act_tfrecord_bytes(const input_run *r)
{
    char path[4200];
    ls_record_writer *w = NULL;
    ls_error err = LS_ERROR_INIT;
    json_t *answer;
    size_t n = 0;
    char *bytes = input_bytes(json_object_get(r->kase, "record"), &n);
    ls_status st;

    (void)snprintf(path, sizeof path, "%s/record", r->folder);
    st = bytes == NULL ? input_fail(&err, LS_UNKNOWN, "the line has no record")
                       : ls_record_writer_open(path, NULL, &w, &err);
    if (st == LS_OK) {
        st = ls_record_writer_write(w, bytes, n, &err);
    }
    if (st == LS_OK) {
        st = ls_record_writer_close(w, &err);
    }
    ls_record_writer_release(w);
    answer = st == LS_OK ? hex_of_file(path) : input_encode_error(&err);
    free(bytes);
    (void)unlink(path);
    return answer;
}

/* One feature of the line: a kind and its values. */
static ls_status add_feature(ls_example *e, const char *name, const json_t *x,
                             ls_error *err)
{
    const char *kind = json_string_value(json_array_get(x, 0));
    const json_t *values = json_array_get(x, 1);
    const int64_t count = (int64_t)json_array_size(values);
    const ls_shape shape = LS_SHAPE(count);
    const char *dtype = strcmp(kind, "bytes") == 0   ? "string"
                        : strcmp(kind, "float") == 0 ? "float32"
                                                     : "int64";
    ls_tensor *t = NULL;
    ls_status st = input_decode_tensor(dtype, &shape, values, &t, err);

    if (st == LS_OK) {
        const void *data = ls_tensor_data(t);
        const size_t n = (size_t)count;

        st = strcmp(kind, "bytes") == 0   ? ls_example_add_bytes(e, name, data, n, err)
             : strcmp(kind, "float") == 0 ? ls_example_add_float(e, name, data, n, err)
                                          : ls_example_add_int64(e, name, data, n, err);
    }
    ls_tensor_release(t);
    return st;
}

json_t *input_act_example_bytes(const input_run *r)
{
    json_t *given = json_object_get(r->kase, "features");
    ls_error err = LS_ERROR_INIT;
    ls_string bytes = {NULL, 0};
    ls_example *e = NULL;
    json_t *answer, *x;
    const char *name;
    ls_status st = ls_example_create(&e, &err);

    json_object_foreach(given, name, x)
    {
        if (st == LS_OK) {
            st = add_feature(e, name, x, &err);
        }
    }
    if (st == LS_OK) {
        st = ls_example_serialize(e, &bytes, &err);
    }
    answer = st == LS_OK ? hex((const unsigned char *)bytes.ptr, bytes.len)
                         : input_encode_error(&err);
    ls_example_release(e);
    return answer;
}
