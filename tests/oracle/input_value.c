/*
 * Converts elements and specs between JSON and the library's values, and reads datasets.
 */
#include "input_machine.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A pipeline with more elements than this and without "steps" counts as endless. */
enum { MOST_EVENTS = 500 };

ls_status input_fail(ls_error *err, ls_status code, const char *fmt, ...)
{
    va_list args;

    *err = (ls_error)LS_ERROR_INIT;
    err->code = code;
    va_start(args, fmt);
    (void)vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    return code;
}

/* ---- from JSON ---- */

/* A number, or a string for those that JSON cannot write. False: it is neither. */
static bool real_of(const json_t *x, double *out)
{
    static const struct {
        const char *text;
        float number;
    } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
    const char *text = json_string_value(x);

    for (size_t i = 0; text != NULL && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].text, text) == 0) {
            *out = (double)words[i].number;
            return true;
        }
    }
    *out = json_number_value(x);
    return json_is_number(x);
}

static bool integer_of(const json_t *x, int64_t least, int64_t most, int64_t *out)
{
    *out = json_is_boolean(x) ? json_is_true(x) : json_integer_value(x);
    return (json_is_integer(x) || json_is_boolean(x)) && *out >= least && *out <= most;
}

static bool store_integer(void *to, ls_dtype dtype, size_t i, const json_t *x)
{
    int64_t n = 0;

    switch (dtype) {
    case LS_I64:
        return integer_of(x, INT64_MIN, INT64_MAX, &((int64_t *)to)[i]);
    case LS_I32:
        if (!integer_of(x, INT32_MIN, INT32_MAX, &n)) {
            return false;
        }
        ((int32_t *)to)[i] = (int32_t)n;
        return true;
    default:
        if (!integer_of(x, 0, dtype == LS_BOOL ? 1 : UINT8_MAX, &n)) {
            return false;
        }
        ((uint8_t *)to)[i] = (uint8_t)n;
        return true;
    }
}

/* False: it is no element of that dtype. */
static bool store_element(void *to, ls_dtype dtype, size_t i, const json_t *x)
{
    double real = 0;

    switch (dtype) {
    case LS_F32:
        if (!real_of(x, &real)) {
            return false;
        }
        ((float *)to)[i] = (float)real;
        return true;
    case LS_F64:
        return real_of(x, &((double *)to)[i]);
    case LS_I64:
    case LS_I32:
    case LS_U8:
    case LS_BOOL:
        return store_integer(to, dtype, i, x);
    case LS_STRING: {
        ls_string *s = &((ls_string *)to)[i];

        s->ptr = input_bytes(x, &s->len);
        return s->ptr != NULL;
    }
    default:
        return false;
    }
}

static void free_elements(void *elements, ls_dtype dtype, size_t n)
{
    for (size_t i = 0; dtype == LS_STRING && elements != NULL && i < n; i++) {
        free((void *)(uintptr_t)((ls_string *)elements)[i].ptr);
    }
    free(elements);
}

ls_status input_decode_tensor(const char *name, const ls_shape *shape, const json_t *data,
                              ls_tensor **out, ls_error *err)
{
    const int64_t count = ls_shape_count(shape);
    const size_t n = json_is_array(data) ? json_array_size(data) : 1;
    ls_dtype dtype = LS_F32;
    void *elements;
    ls_status st = LS_OK;

    if (name == NULL || !ls_dtype_from_name(name, &dtype) || count != (int64_t)n) {
        return input_fail(err, LS_UNKNOWN, "the line holds a tensor that is none");
    }
    elements = calloc(n + 1, ls_dtype_size(dtype));
    for (size_t i = 0; elements != NULL && st == LS_OK && i < n; i++) {
        if (!store_element(elements, dtype, i,
                           json_is_array(data) ? json_array_get(data, i) : data)) {
            st = input_fail(err, LS_UNKNOWN, "element %zu of the line's tensor is no %s",
                            i, name);
        }
    }
    if (elements == NULL) {
        return input_fail(err, LS_UNKNOWN, "out of memory");
    }
    if (st == LS_OK) {
        st = ls_tensor_create(NULL, dtype, *shape, elements, out, err);
    }
    free_elements(elements, dtype, n);
    return st;
}

static ls_status decode_leaf(json_t *x, ls_value **out, ls_error *err)
{
    const json_t *dims = json_object_get(x, "shape");
    int64_t sizes[LS_MAX_DIMS] = {0};
    const size_t n = json_array_size(dims);
    ls_tensor *t = NULL;
    ls_shape shape;
    ls_status st;

    for (size_t i = 0; i < n && i < LS_MAX_DIMS; i++) {
        sizes[i] = json_integer_value(json_array_get(dims, i));
    }
    shape = ls_shape_of(n, sizes);
    st = input_decode_tensor(json_string_value(json_object_get(x, "dtype")), &shape,
                             json_object_get(x, "data"), &t, err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static ls_status decode_items(json_t *array, bool list, ls_value **out, ls_error *err)
{
    const size_t n = json_array_size(array);
    ls_value **items = calloc(n + 1, sizeof(ls_value *));
    ls_status st = items == NULL ? input_fail(err, LS_UNKNOWN, "out of memory") : LS_OK;

    for (size_t i = 0; st == LS_OK && i < n; i++) {
        st = input_decode(json_array_get(array, i), &items[i], err);
    }
    if (st == LS_OK) {
        st =
            list ? ls_value_list(items, n, out, err) : ls_value_tuple(items, n, out, err);
    }
    for (size_t i = 0; items != NULL && i < n; i++) {
        ls_value_release(items[i]);
    }
    free((void *)items);
    return st;
}

static ls_status decode_dict(json_t *object, ls_value **out, ls_error *err)
{
    const size_t n = json_object_size(object);
    ls_value **items = calloc(n + 1, sizeof(ls_value *));
    const char **keys = calloc(n + 1, sizeof(char *));
    ls_status st = LS_OK;
    const char *key;
    json_t *value;
    size_t at = 0;

    if (items == NULL || keys == NULL) {
        st = input_fail(err, LS_UNKNOWN, "out of memory");
        goto out;
    }
    json_object_foreach(object, key, value)
    {
        keys[at] = key;
        if (st == LS_OK) {
            st = input_decode(value, &items[at++], err);
        }
    }
    if (st == LS_OK) {
        st = ls_value_dict(keys, items, n, out, err);
    }
out:
    for (size_t i = 0; items != NULL && i < n; i++) {
        ls_value_release(items[i]);
    }
    free((void *)items);
    free((void *)keys);
    return st;
}

ls_status input_decode(json_t *x, ls_value **out, ls_error *err)
{
    if (json_is_array(x)) {
        return decode_items(x, false, out, err);
    }
    if (json_object_get(x, "dtype") != NULL) {
        return decode_leaf(x, out, err);
    }
    if (json_is_array(json_object_get(x, "list"))) {
        return decode_items(json_object_get(x, "list"), true, out, err);
    }
    return decode_dict(x, out, err);
}

/* ---- to JSON ---- */

static json_t *encode_real(double x)
{
    return isnan(x)   ? json_string("nan")
           : isinf(x) ? json_string(x > 0 ? "inf" : "-inf")
                      : json_real(x);
}

static json_t *encode_element(const void *data, ls_dtype dtype, size_t i)
{
    switch (dtype) {
    case LS_F32:
        return encode_real((double)((const float *)data)[i]);
    case LS_F64:
        return encode_real(((const double *)data)[i]);
    case LS_I64:
        return json_integer(((const int64_t *)data)[i]);
    case LS_I32:
        return json_integer(((const int32_t *)data)[i]);
    case LS_U8:
        return json_integer(((const uint8_t *)data)[i]);
    case LS_BOOL:
        return json_boolean(((const uint8_t *)data)[i]);
    case LS_STRING:
        return input_encode_bytes(((const ls_string *)data)[i].ptr,
                                  ((const ls_string *)data)[i].len);
    default:
        return NULL;
    }
}

static json_t *encode_tensor(const ls_tensor *t)
{
    const ls_dtype dtype = ls_tensor_dtype(t);
    const void *data = ls_tensor_data(t);
    json_t *elements = json_array(), *shape = json_array();

    for (int64_t i = 0; i < ls_tensor_count(t); i++) {
        (void)json_array_append_new(elements, encode_element(data, dtype, (size_t)i));
    }
    for (int i = 0; i < ls_tensor_ndim(t); i++) {
        (void)json_array_append_new(shape, json_integer(ls_tensor_dim(t, i)));
    }
    return json_pack("{s:s, s:o, s:o}", "dtype", ls_dtype_name(dtype), "shape", shape,
                     "data", elements);
}

/* A window, to its end. */
static ls_status encode_dataset(ls_dataset *d, json_t **out, ls_error *err)
{
    const input_limits all = {-1, 0, 0};
    ls_iterator *it = NULL;
    const ls_status st = ls_dataset_iterate(d, &it, err);

    if (st == LS_OK) {
        *out = json_pack("{s:o}", "dataset", input_drain(input_next_plain, it, &all));
    }
    ls_iterator_release(it);
    return st;
}

static ls_status encode_array(const ls_value *v, json_t **out, ls_error *err)
{
    json_t *array = json_array();

    for (size_t i = 0; i < ls_value_size(v); i++) {
        json_t *item = NULL;
        const ls_status st = input_encode(ls_value_child(v, i), &item, err);

        if (st != LS_OK) {
            json_decref(array);
            return st;
        }
        (void)json_array_append_new(array, item);
    }
    *out = array;
    return LS_OK;
}

static ls_status encode_object(const ls_value *v, json_t **out, ls_error *err)
{
    json_t *object = json_object();

    for (size_t i = 0; i < ls_value_size(v); i++) {
        json_t *item = NULL;
        const ls_status st = input_encode(ls_value_child(v, i), &item, err);

        if (st != LS_OK) {
            json_decref(object);
            return st;
        }
        (void)json_object_set_new(object, ls_value_key(v, i), item);
    }
    *out = object;
    return LS_OK;
}

static bool is_sparse(const ls_value *v)
{
    return ls_value_kind_of(v) == LS_VALUE_NAMED_TUPLE &&
           ls_value_find(v, "dense_shape") != NULL;
}

ls_status input_encode(const ls_value *v, json_t **out, ls_error *err)
{
    json_t *parts = NULL;
    ls_status st = LS_OK;

    switch (ls_value_kind_of(v)) {
    case LS_VALUE_TENSOR:
        *out = encode_tensor(ls_value_as_tensor(v));
        return LS_OK;
    case LS_VALUE_DATASET:
        return encode_dataset(ls_value_as_dataset(v), out, err);
    case LS_VALUE_TUPLE:
    case LS_VALUE_LIST:
        return encode_array(v, out, err);
    case LS_VALUE_DICT:
        return encode_object(v, out, err);
    case LS_VALUE_NAMED_TUPLE:
        st = encode_object(v, &parts, err);
        *out = is_sparse(v) && st == LS_OK ? json_pack("{s:o}", "sparse", parts) : parts;
        return st;
    default:
        return input_fail(err, LS_UNKNOWN, "an element holds a %s",
                          ls_value_kind_name(ls_value_kind_of(v)));
    }
}

static json_t *encode_spec_leaf(const ls_spec *s)
{
    json_t *shape = ls_spec_ndim(s) < 0 ? json_null() : json_array();

    for (int i = 0; i < ls_spec_ndim(s); i++) {
        (void)json_array_append_new(shape, json_integer(ls_spec_dim(s, i)));
    }
    return json_pack("{s:s, s:o}", "dtype", ls_dtype_name(ls_spec_dtype(s)), "shape",
                     shape);
}

json_t *input_encode_spec(const ls_spec *s)
{
    json_t *out;

    switch (ls_spec_kind_of(s)) {
    case LS_SPEC_TUPLE:
        out = json_array();
        for (size_t i = 0; i < ls_spec_size(s); i++) {
            (void)json_array_append_new(out, input_encode_spec(ls_spec_child(s, i)));
        }
        return out;
    case LS_SPEC_DICT:
        out = json_object();
        for (size_t i = 0; i < ls_spec_size(s); i++) {
            (void)json_object_set_new(out, ls_spec_key(s, i),
                                      input_encode_spec(ls_spec_child(s, i)));
        }
        return out;
    case LS_SPEC_DATASET:
        return json_pack("{s:o}", "dataset", input_encode_spec(ls_spec_child(s, 0)));
    case LS_SPEC_SPARSE:
        return json_pack("{s:o}", "sparse", encode_spec_leaf(s));
    default:
        return encode_spec_leaf(s);
    }
}

json_t *input_encode_error(const ls_error *err)
{
    // A message may hold bytes of a file that are not UTF-8.
    json_t *message = json_string(err->message);

    return json_pack("{s:{s:s, s:s, s:o}}", "error", "code", ls_status_name(err->code),
                     "python", ls_error_python(err), "message",
                     message == NULL ? json_string("?") : message);
}

/* ---- draining ---- */

input_limits input_limits_of(const json_t *kase)
{
    return (input_limits){input_option(kase, "steps", -1),
                          input_option(kase, "errors", 0),
                          input_option(kase, "past_end", 0)};
}

json_t *input_drain(input_next next, void *user, const input_limits *limits)
{
    const size_t most = limits->steps < 0 ? MOST_EVENTS : (size_t)limits->steps;
    int64_t errors = limits->errors, past_end = limits->past_end;
    json_t *events = json_array();

    while (events != NULL && json_array_size(events) < most) {
        ls_error err = LS_ERROR_INIT;
        json_t *event = NULL;
        const ls_status st = next(user, &event, &err);

        if (st == LS_OUT_OF_RANGE) {
            (void)json_array_append_new(events, json_string("end"));
            if (past_end-- == 0) {
                return events;
            }
        } else if (st != LS_OK) {
            (void)json_array_append_new(events, input_encode_error(&err));
            if (errors-- == 0) {
                return events;
            }
        } else {
            (void)json_array_append_new(events, event);
        }
    }
    if (events != NULL) {
        (void)json_array_append_new(events, json_string("more"));
    }
    return events;
}

ls_status input_next_plain(void *iterator, json_t **event, ls_error *err)
{
    ls_value *v = NULL;
    ls_status st = ls_iterator_next(iterator, &v, err);

    if (st == LS_OK) {
        st = input_encode(v, event, err);
        // The end of an inner dataset is not the end of the outer one.
        st = st == LS_OUT_OF_RANGE ? LS_UNKNOWN : st;
    }
    ls_value_release(v);
    return st;
}
