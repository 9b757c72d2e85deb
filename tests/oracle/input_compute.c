/* The functions of `map`, computed on the host. */
#include "input_map.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers of any dtype ---- */

int64_t input_map_integer(const input_function *f, size_t i)
{
    return json_integer_value(json_array_get(f->op, f->at + i));
}

static int64_t integer_at(const ls_tensor *t, int64_t i)
{
    const void *data = ls_tensor_data(t);

    switch (ls_tensor_dtype(t)) {
    case LS_I64:
        return ((const int64_t *)data)[i];
    case LS_I32:
        return ((const int32_t *)data)[i];
    case LS_U8:
    case LS_BOOL:
        return ((const uint8_t *)data)[i];
    default:
        return 0;
    }
}

static double real_at(const ls_tensor *t, int64_t i)
{
    const void *data = ls_tensor_data(t);

    switch (ls_tensor_dtype(t)) {
    case LS_F32:
        return (double)((const float *)data)[i];
    case LS_F64:
        return ((const double *)data)[i];
    default:
        return (double)integer_at(t, i);
    }
}

static bool is_real(ls_dtype dtype)
{
    return dtype == LS_F32 || dtype == LS_F64;
}

/*
 * Integers wrap around; a sum or product of two float32 is computed in double and
 * rounded.
 */
static void store_number(void *to, ls_dtype dtype, int64_t i, int64_t whole, double real)
{
    switch (dtype) {
    case LS_F32:
        ((float *)to)[i] = (float)real;
        break;
    case LS_F64:
        ((double *)to)[i] = real;
        break;
    case LS_I32:
        ((int32_t *)to)[i] = (int32_t)(uint32_t)(uint64_t)whole;
        break;
    case LS_U8:
        ((uint8_t *)to)[i] = (uint8_t)(uint64_t)whole;
        break;
    default:
        ((int64_t *)to)[i] = whole;
        break;
    }
}

static int64_t add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t multiply(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* The remainder has the sign of the divisor. */
static int64_t modulo(int64_t a, int64_t b)
{
    const int64_t rest = a % b;

    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double real_modulo(double a, double b)
{
    const double rest = fmod(a, b);

    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* ---- values ---- */

static ls_value *refuse_value(ls_context *c, const ls_error *err)
{
    (void)ls_context_fail_with(c, err);
    return NULL;
}

/* A tensor of the elements at `data`, which are freed. */
static ls_value *value_of(ls_context *c, ls_dtype dtype, ls_shape shape, void *data)
{
    ls_tensor *t = data == NULL ? ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "no memory")
                                : ls_constant(c, dtype, shape, data);

    free(data);
    return t == NULL ? NULL : ls_value_of(c, t);
}

/* Memory for the elements of a tensor; never 0 bytes. */
static void *room_for(ls_dtype dtype, int64_t n)
{
    return calloc((size_t)n + 1, ls_dtype_size(dtype));
}

int64_t input_map_item(const ls_tensor *t)
{
    return is_real(ls_tensor_dtype(t)) ? (int64_t)real_at(t, 0) : integer_at(t, 0);
}

ls_value *input_map_truth(ls_context *c, bool x)
{
    const uint8_t truth = x;

    return ls_value_of(c, ls_constant(c, LS_BOOL, LS_SCALAR, &truth));
}

/* ---- one component ---- */

enum arithmetic { ADD, MULTIPLY, MODULO };

static ls_value *compute_tensor(ls_context *c, const ls_tensor *x, const ls_tensor *y,
                                enum arithmetic what, int64_t k)
{
    const ls_dtype dtype = ls_tensor_dtype(x);
    const int64_t n = ls_tensor_count(x);
    void *out = room_for(dtype, n);

    for (int64_t i = 0; out != NULL && i < n; i++) {
        const int64_t a = integer_at(x, i), b = y == NULL ? k : integer_at(y, i);
        const double p = real_at(x, i), q = y == NULL ? (double)k : real_at(y, i);

        if (what == MODULO) {
            store_number(out, dtype, i, is_real(dtype) ? 0 : modulo(a, b),
                         real_modulo(p, q));
        } else if (what == MULTIPLY) {
            store_number(out, dtype, i, multiply(a, b), p * q);
        } else {
            store_number(out, dtype, i, add(a, b), p + q);
        }
    }
    return value_of(c, dtype, ls_tensor_shape(x), out);
}

static ls_value *to_float32(ls_context *c, const ls_tensor *x)
{
    const int64_t n = ls_tensor_count(x);
    float *out = room_for(LS_F32, n);

    for (int64_t i = 0; out != NULL && i < n; i++) {
        // Directly from the integer: by way of double it would be rounded twice.
        out[i] =
            is_real(ls_tensor_dtype(x)) ? (float)real_at(x, i) : (float)integer_at(x, i);
    }
    return value_of(c, LS_F32, ls_tensor_shape(x), out);
}

enum { DIGITS = 24 };

static ls_value *to_string(ls_context *c, const ls_tensor *x)
{
    const int64_t n = ls_tensor_count(x);
    ls_string *out = room_for(LS_STRING, n);
    char *text = malloc((size_t)(n + 1) * DIGITS);
    ls_value *v;

    for (int64_t i = 0; out != NULL && text != NULL && i < n; i++) {
        char *to = text + i * DIGITS;

        out[i].len = (size_t)snprintf(to, DIGITS, "%" PRId64, integer_at(x, i));
        out[i].ptr = to;
    }
    if (text == NULL) {
        free(out);
        out = NULL;
    }
    v = value_of(c, LS_STRING, ls_tensor_shape(x), out);
    free(text);
    return v;
}

/* As tf.strings.to_number: blanks around the number, nothing else. */
static bool parse_integer(ls_string s, int64_t *out)
{
    char text[64], *end = text;

    if (s.len == 0 || s.len >= sizeof text) {
        return false;
    }
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (errno != 0 || end == text) {
        return false;
    }
    while (isspace((unsigned char)*end)) {
        end++;
    }
    return end == text + s.len;
}

static ls_value *decode_int(ls_context *c, const ls_tensor *x)
{
    const int64_t n = ls_tensor_count(x);
    const ls_string *strings = ls_tensor_data(x);
    int64_t *out = room_for(LS_I64, n);

    for (int64_t i = 0; out != NULL && i < n; i++) {
        if (!parse_integer(strings[i], &out[i])) {
            free(out);
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "%.*s is no integer",
                                  (int)strings[i].len, strings[i].ptr);
            return NULL;
        }
    }
    return value_of(c, LS_I64, ls_tensor_shape(x), out);
}

static ls_value *compute_named(ls_context *c, const ls_tensor *x, const input_function *f)
{
    const char *name = json_string_value(json_array_get(f->op, f->at));
    const int64_t k = input_map_integer(f, 1);

    if (strcmp(name, "add") == 0) {
        return compute_tensor(c, x, NULL, ADD, k);
    }
    if (strcmp(name, "mul") == 0) {
        return compute_tensor(c, x, NULL, MULTIPLY, k);
    }
    if (strcmp(name, "mod") == 0) {
        return compute_tensor(c, x, NULL, MODULO, k);
    }
    if (strcmp(name, "square") == 0) {
        return compute_tensor(c, x, x, MULTIPLY, 0);
    }
    if (strcmp(name, "mul_ctx") == 0) {
        return compute_tensor(c, x, NULL, MULTIPLY, f->pipeline_id + 1);
    }
    if (strcmp(name, "to_float32") == 0) {
        return to_float32(c, x);
    }
    return strcmp(name, "to_string") == 0 ? to_string(c, x) : decode_int(c, x);
}

/* ---- functions ---- */

/* The `user` argument of the function of ls_value_map(). */
struct call {
    ls_context *c;
    const input_function *f;
};

static ls_status compute_leaf(ls_value *leaf, void *user, ls_value **out, ls_error *err)
{
    const struct call *call = user;
    const ls_tensor *x = ls_value_as_tensor(leaf);

    if (x == NULL) {
        return input_fail(err, LS_INVALID_ARGUMENT, "a component is no tensor");
    }
    *out = ls_value_retain(compute_named(call->c, x, call->f));
    return *out == NULL ? ls_context_status(call->c, err) : LS_OK;
}

ls_value *input_map_each(ls_context *c, ls_value *element, void *user)
{
    struct call call = {c, user};
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;

    if (ls_value_map(input_argument(element), compute_leaf, &call, &out, &err) != LS_OK) {
        return refuse_value(c, &err);
    }
    return ls_value_adopt(c, out);
}

ls_value *input_map_identity(ls_context *c, ls_value *element, void *user)
{
    (void)user;
    return ls_value_adopt(c, ls_value_retain(input_argument(element)));
}

/* (x, other) or {a: x, b: other}. */
static ls_value *join_values(ls_context *c, ls_value *x, ls_value *other, bool dict)
{
    static const char *const keys[] = {"a", "b"};
    ls_value *const both[] = {x, other};
    ls_error err = LS_ERROR_INIT;
    ls_value *out = NULL;
    const ls_status st = other == NULL ? ls_context_status(c, &err)
                         : dict        ? ls_value_dict(keys, both, 2, &out, &err)
                                       : ls_value_tuple(both, 2, &out, &err);

    return st == LS_OK ? ls_value_adopt(c, out) : refuse_value(c, &err);
}

ls_value *input_map_pair(ls_context *c, ls_value *element, void *user)
{
    ls_value *x = input_argument(element);

    (void)user;
    return join_values(c, x, compute_tensor(c, ls_value_as_tensor(x), NULL, MULTIPLY, 2),
                       false);
}

ls_value *input_map_dict(ls_context *c, ls_value *element, void *user)
{
    ls_value *x = input_argument(element);
    const ls_tensor *t = ls_value_as_tensor(x);

    (void)user;
    return join_values(c, x, compute_tensor(c, t, t, MULTIPLY, 0), true);
}

ls_value *input_map_expand(ls_context *c, ls_value *element, void *user)
{
    const ls_tensor *x = ls_value_as_tensor(input_argument(element));
    const ls_dtype dtype = ls_tensor_dtype(x);
    const int64_t k = input_map_integer(user, 1), n = ls_tensor_count(x);
    ls_shape shape = ls_tensor_shape(x);
    void *out = room_for(dtype, n * k);

    shape.dims[shape.ndim++] = k;
    for (int64_t i = 0; out != NULL && i < n * k; i++) {
        store_number(out, dtype, i, add(integer_at(x, i / k), i % k),
                     real_at(x, i / k) + (double)(i % k));
    }
    return value_of(c, dtype, shape, out);
}

ls_value *input_map_fill(ls_context *c, ls_value *element, void *user)
{
    const ls_tensor *x = ls_value_as_tensor(input_argument(element));
    const int64_t value = input_map_item(x);
    const int64_t n = modulo(value, input_map_integer(user, 1));
    void *out = room_for(ls_tensor_dtype(x), n);

    for (int64_t i = 0; out != NULL && i < n; i++) {
        store_number(out, ls_tensor_dtype(x), i, value, (double)value);
    }
    return value_of(c, ls_tensor_dtype(x), LS_SHAPE(n), out);
}

ls_value *input_map_fail_on(ls_context *c, ls_value *element, void *user)
{
    const ls_tensor *x = ls_value_as_tensor(input_argument(element));
    const int64_t k = input_map_integer(user, 1);

    for (int64_t i = 0; i < ls_tensor_count(x); i++) {
        if (real_at(x, i) == (double)k) {
            (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "%" PRId64 " is refused", k);
            return NULL;
        }
    }
    return input_map_identity(c, element, user);
}

/* In the order of keys, not of insertion; a sparse tensor is one leaf. */
static ls_value *first_leaf(ls_value *v)
{
    while (ls_value_kind_of(v) == LS_VALUE_TUPLE ||
           ls_value_kind_of(v) == LS_VALUE_DICT) {
        size_t at = 0;

        for (size_t i = 1; ls_value_key(v, at) != NULL && i < ls_value_size(v); i++) {
            at = strcmp(ls_value_key(v, i), ls_value_key(v, at)) < 0 ? i : at;
        }
        v = ls_value_child(v, at);
    }
    return v;
}

ls_value *input_map_first(ls_context *c, ls_value *element, void *user)
{
    (void)user;
    return ls_value_adopt(c, ls_value_retain(first_leaf(input_argument(element))));
}

ls_value *input_map_sum(ls_context *c, ls_value *element, void *user)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *leaves = NULL, *sum;

    (void)user;
    if (ls_value_flatten(input_argument(element), &leaves, &err) != LS_OK) {
        return refuse_value(c, &err);
    }
    sum = ls_value_adopt(c, ls_value_retain(ls_value_child(leaves, 0)));
    for (size_t i = 1; sum != NULL && i < ls_value_size(leaves); i++) {
        sum = compute_tensor(c, ls_value_as_tensor(sum),
                             ls_value_as_tensor(ls_value_child(leaves, i)), ADD, 0);
    }
    ls_value_release(leaves);
    return sum;
}
