/* Converts JSON to values, and values to answers. */
#include "strategy_machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON into tensors ---- */

bool machine_shape(const scene *s, json_t *dims, ls_shape *out)
{
    int64_t sizes[LS_MAX_DIMS];
    const size_t n = json_array_size(dims);

    if (!json_is_array(dims) || n > LS_MAX_DIMS) {
        (void)machine_wrong(s, "no shape of at most %d sizes", LS_MAX_DIMS);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        sizes[i] = json_integer_value(json_array_get(dims, i));
    }
    *out = ls_shape_of(n, sizes);
    return true;
}

/* A number of a tensor; a string for those that JSON cannot write. */
static double element(const json_t *x)
{
    const char *text = json_string_value(x);

    if (text != NULL) {
        return strcmp(text, "nan") == 0 ? (double)NAN
               : text[0] == '-'         ? -(double)INFINITY
                                        : (double)INFINITY;
    }
    return json_is_boolean(x) ? (double)json_is_true(x) : json_number_value(x);
}

/* Elements are read as double or int64 and cast to their dtype. */
static bool is_floating(ls_dtype dtype)
{
    return dtype == LS_F16 || dtype == LS_BF16 || dtype == LS_F32 || dtype == LS_F64;
}

static ls_tensor *numbers(const scene *s, json_t *data, ls_dtype dtype,
                          const ls_shape *shape)
{
    const size_t n = json_array_size(data);
    const bool floating = is_floating(dtype);
    double *reals = malloc((n + 1) * sizeof *reals);
    int64_t *integers = malloc((n + 1) * sizeof *integers);
    ls_tensor *t = NULL;

    if (reals == NULL || integers == NULL) {
        (void)machine_wrong(s, "out of memory");
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(data, i);

        reals[i] = element(x);
        integers[i] = json_is_boolean(x) ? json_is_true(x) : json_integer_value(x);
    }
    t = floating ? ls_constant(s->c, LS_F64, *shape, reals)
                 : ls_constant(s->c, LS_I64, *shape, integers);
    if (dtype != LS_F64 && dtype != LS_I64) {
        t = ls_cast(s->c, t, dtype);
    }
out:
    free(reals);
    free(integers);
    return t;
}

static ls_tensor *strings(const scene *s, json_t *data, const ls_shape *shape)
{
    const size_t n = json_array_size(data);
    ls_string *elements = calloc(n + 1, sizeof *elements);
    ls_tensor *t = NULL;

    if (elements == NULL) {
        (void)machine_wrong(s, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(data, i);

        if (!json_is_string(x)) {
            (void)machine_wrong(s, "strings that are not UTF-8 are not read");
            goto out;
        }
        elements[i] = (ls_string){json_string_value(x), json_string_length(x)};
    }
    t = ls_constant(s->c, LS_STRING, *shape, elements);
out:
    free(elements);
    return t;
}

ls_tensor *machine_constant(const scene *s, json_t *tensor)
{
    const char *name = json_string_value(json_object_get(tensor, "dtype"));
    json_t *data = json_object_get(tensor, "data");
    ls_dtype dtype = LS_F32;
    ls_shape shape = LS_SCALAR;

    if (name == NULL || !ls_dtype_from_name(name, &dtype)) {
        (void)machine_wrong(s, "no dtype is called %s", name == NULL ? "so" : name);
        return NULL;
    }
    if (!machine_shape(s, json_object_get(tensor, "shape"), &shape)) {
        return NULL;
    }
    if (ls_shape_count(&shape) != (int64_t)json_array_size(data)) {
        (void)machine_wrong(s, "a tensor's data do not fill its shape");
        return NULL;
    }
    return dtype == LS_STRING ? strings(s, data, &shape)
                              : numbers(s, data, dtype, &shape);
}

bool machine_is_literal(const ls_value *v)
{
    const ls_value_kind kind = ls_value_kind_of(v);

    return kind == LS_VALUE_INT || kind == LS_VALUE_FLOAT || kind == LS_VALUE_BOOL;
}

ls_tensor *machine_literal(const scene *s, const ls_value *v, ls_dtype dtype)
{
    int64_t integer = 0;
    double real = 0;
    bool truth = false;

    if (ls_value_as_int(v, &integer)) {
        return ls_cast(s->c, ls_constant_i64(s->c, integer), dtype);
    }
    if (ls_value_as_bool(v, &truth) && dtype == LS_BOOL) {
        return ls_constant(s->c, LS_BOOL, LS_SCALAR, &truth);
    }
    if (ls_value_as_float(v, &real) && is_floating(dtype)) {
        return ls_cast(s->c, ls_constant(s->c, LS_F64, LS_SCALAR, &real), dtype);
    }
    (void)machine_wrong(s, "this literal is no %s", ls_dtype_name(dtype));
    return NULL;
}

ls_tensor *machine_tensor(const scene *s, ls_value *v)
{
    ls_variable *variable = ls_value_as_variable(v);

    return variable != NULL ? ls_variable_as_tensor(s->c, variable)
                            : ls_value_to_tensor(s->c, v);
}

/* ---- values into answers ---- */

static json_t *encode_real(double x)
{
    if (isnan(x)) {
        return json_string("nan");
    }
    return isinf(x) ? json_string(x > 0 ? "inf" : "-inf") : json_real(x);
}

/* Element `i` of dense bytes. */
static json_t *encode_element(ls_dtype dtype, const void *bytes, size_t i)
{
    switch (dtype) {
    case LS_F32:
        return encode_real((double)((const float *)bytes)[i]);
    case LS_F64:
        return encode_real(((const double *)bytes)[i]);
    case LS_I8:
        return json_integer(((const int8_t *)bytes)[i]);
    case LS_U8:
        return json_integer(((const uint8_t *)bytes)[i]);
    case LS_I16:
        return json_integer(((const int16_t *)bytes)[i]);
    case LS_U16:
        return json_integer(((const uint16_t *)bytes)[i]);
    case LS_I32:
        return json_integer(((const int32_t *)bytes)[i]);
    case LS_U32:
        return json_integer(((const uint32_t *)bytes)[i]);
    case LS_I64:
        return json_integer(((const int64_t *)bytes)[i]);
    case LS_BOOL:
        return json_boolean(((const bool *)bytes)[i]);
    case LS_STRING: {
        const ls_string *x = (const ls_string *)bytes + i;

        return json_stringn(x->ptr, x->len);
    }
    default:
        return NULL;
    }
}

static json_t *encode_data(const ls_tensor *t)
{
    const size_t size = ls_tensor_bytes(t);
    void *bytes = malloc(size + 1);
    json_t *data = json_array();

    if (bytes == NULL || data == NULL || ls_tensor_read(t, bytes, size, NULL) != LS_OK) {
        goto fail;
    }
    for (size_t i = 0; i < (size_t)ls_tensor_count(t); i++) {
        if (json_array_append_new(data, encode_element(ls_tensor_dtype(t), bytes, i)) !=
            0) {
            goto fail;
        }
    }
    free(bytes);
    return data;
fail:
    free(bytes);
    json_decref(data);
    return NULL;
}

static json_t *encode_shape(const ls_shape *shape)
{
    json_t *sizes = json_array();

    for (int i = 0; sizes != NULL && i < shape->ndim; i++) {
        if (json_array_append_new(sizes, json_integer(shape->dims[i])) != 0) {
            json_decref(sizes);
            return NULL;
        }
    }
    return sizes;
}

static json_t *encode_dense(const ls_tensor *t)
{
    const ls_shape shape = ls_tensor_shape(t);

    // "o" takes the reference over, also of NULL, which makes the whole NULL.
    return json_pack("{s:s, s:o, s:o}", "dtype", ls_dtype_name(ls_tensor_dtype(t)),
                     "shape", encode_shape(&shape), "data", encode_data(t));
}

static json_t *encode_tensor(const ls_tensor *t)
{
    const ls_tensor *values = NULL, *indices = NULL;
    const ls_shape shape = ls_tensor_shape(t);

    if (!ls_tensor_slices(t, &values, &indices)) {
        return encode_dense(t);
    }
    return json_pack("{s:{s:o, s:o, s:o}}", "slices", "values", encode_dense(values),
                     "indices", encode_dense(indices), "dense_shape",
                     shape.dims[0] == MACHINE_NO_ROWS ? json_null()
                                                      : encode_shape(&shape));
}

static json_t *encode_variable(machine *m, const ls_variable *v)
{
    const char *name = machine_label(m, v);

    for (size_t i = 0; name == NULL && i < m->labels.n; i++) {
        const binding *b = m->labels.items[i];
        const ls_variable *whole = ls_value_as_variable(b->value);

        for (size_t k = 0; whole != NULL && k < ls_variable_components(whole); k++) {
            if (ls_variable_component(whole, k) == v) {
                return json_pack("{s:[s,i]}", "component", b->name, (int)k);
            }
        }
    }
    return json_pack("{s:s?}", "var", name);
}

static json_t *encode_text(machine *m, const ls_value *v)
{
    const thing *t = machine_thing(m, v);
    ls_string text = {NULL, 0};

    if (t != NULL && t->kind == THING_STRATEGY) {
        return json_pack("{s:s?}", "strategy", machine_label(m, t->strategy));
    }
    if (t != NULL) {
        return t->kind == THING_CONTEXT
                   ? json_pack("{s:i}", "replica_context", t->replica_id)
                   : NULL;
    }
    (void)ls_value_as_string(v, &text);
    return json_pack("{s:o}", "text", json_stringn(text.ptr, text.len));
}

static json_t *encode_list(machine *m, const ls_value *v, const char *name)
{
    json_t *array = json_array();

    for (size_t i = 0; array != NULL && i < ls_value_size(v); i++) {
        if (json_array_append_new(array, machine_encode(m, ls_value_child(v, i))) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return json_pack("{s:o}", name, array);
}

static json_t *encode_dict(machine *m, const ls_value *v)
{
    json_t *object = json_object();

    for (size_t i = 0; object != NULL && i < ls_value_size(v); i++) {
        if (json_object_set_new(object, ls_value_key(v, i),
                                machine_encode(m, ls_value_child(v, i))) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return json_pack("{s:o}", "dict", object);
}

static json_t *encode_literal(const ls_value *v)
{
    int64_t integer = 0;
    double real = 0;
    bool truth = false;

    if (ls_value_as_int(v, &integer)) {
        return json_integer(integer);
    }
    if (ls_value_as_float(v, &real)) {
        return encode_real(real);
    }
    return ls_value_as_bool(v, &truth) ? json_boolean(truth) : json_null();
}

json_t *machine_encode(machine *m, const ls_value *v)
{
    const ls_variable *variable = ls_value_as_variable(v);

    if (variable != NULL) {
        return encode_variable(m, variable);
    }
    switch (ls_value_kind_of(v)) {
    case LS_VALUE_TENSOR:
        return encode_tensor(ls_value_as_tensor(v));
    case LS_VALUE_STRING:
        return encode_text(m, v);
    case LS_VALUE_TUPLE:
    case LS_VALUE_NAMED_TUPLE:
        return encode_list(m, v, "tuple");
    case LS_VALUE_LIST:
        return encode_list(m, v, "list");
    case LS_VALUE_PER_REPLICA:
        return encode_list(m, v, "PerReplica");
    case LS_VALUE_MIRRORED:
        return encode_list(m, v, "Mirrored");
    case LS_VALUE_DICT:
        return encode_dict(m, v);
    default:
        return encode_literal(v);
    }
}

json_t *machine_encode_error(const ls_error *err)
{
    // A message may hold bytes of a user's text that are not UTF-8.
    json_t *message = json_string(err->message);

    return json_pack("{s:{s:s, s:s, s:o}}", "error", "code", ls_status_name(err->code),
                     "python", ls_error_python(err), "message",
                     message == NULL ? json_string("?") : message);
}
