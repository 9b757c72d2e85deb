/* Reads input lines and makes the tensors that they describe: see signature.h. */
#include "signature.h"

#include "ls_test.h"

#include <ctype.h>

static const int64_t SIZES[] = {1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 40};

bool sig_varies(const char *text)
{
    bool inside = false;

    for (; *text != '\0'; text++) {
        inside = *text == '[' || (inside && *text != ']');
        if (inside && isalpha((unsigned char)*text)) {
            return true;
        }
    }
    return false;
}

void sig_draw(const char *text, int draw, uint64_t *random, sig_sizes *sizes)
{
    bool inside = false;
    char first = 0, last = 0;

    for (int i = 0; i < 128; i++) {
        sizes->of[i] = draw == 0 ? 1 : SIZES[lst_random(random) % LSI_COUNT_OF(SIZES)];
    }
    for (; *text != '\0'; text++) {
        inside = *text == '[' || (inside && *text != ']');
        if (inside && islower((unsigned char)*text)) {
            if (first == 0) {
                first = *text;
            }
            last = *text;
        }
    }
    if (draw == 1 && first != 0) {
        sizes->of[(unsigned char)first] = 0;
    } else if (draw == 2 && last != 0) {
        sizes->of[(unsigned char)last] = 0;
    }
}

static const struct {
    const char *name;
    ls_dtype dtype;
} NAMES[] = {
    {"f32", LS_F32},   {"f64", LS_F64},       {"f16", LS_F16}, {"bf16", LS_BF16},
    {"i8", LS_I8},     {"i16", LS_I16},       {"i32", LS_I32}, {"i64", LS_I64},
    {"u8", LS_U8},     {"u16", LS_U16},       {"u32", LS_U32}, {"u64", LS_U64},
    {"bool", LS_BOOL}, {"string", LS_STRING},
};

static bool read_dtype(const char **at, ls_dtype real, ls_dtype *out)
{
    const size_t n = strcspn(*at, "[ ");

    if (n == 1 && **at == 'f') {
        *out = real;
        *at += n;
        return true;
    }
    for (size_t i = 0; i < LSI_COUNT_OF(NAMES); i++) {
        if (strlen(NAMES[i].name) == n && strncmp(*at, NAMES[i].name, n) == 0) {
            *out = NAMES[i].dtype;
            *at += n;
            return true;
        }
    }
    return false;
}

/* A number or a letter's size. */
static bool read_number(const char **at, const sig_sizes *sizes, double *out)
{
    char *end = NULL;

    if (isalpha((unsigned char)**at)) {
        *out = sizes != NULL ? (double)sizes->of[(unsigned char)**at] : 1;
        (*at)++;
        return true;
    }
    *out = strtod(*at, &end);
    if (end == *at) {
        return false;
    }
    *at = end;
    return true;
}

static bool read_shape(const char **at, const sig_sizes *sizes, ls_shape *shape)
{
    double size;

    shape->ndim = 0;
    if (**at != '[') {
        return false;
    }
    (*at)++;
    while (**at != ']') {
        if (shape->ndim == LS_MAX_DIMS || !read_number(at, sizes, &size)) {
            return false;
        }
        shape->dims[shape->ndim++] = (int64_t)size;
        if (**at == ',') {
            (*at)++;
        }
    }
    (*at)++;
    return true;
}

static bool read_range(const char **at, const sig_sizes *sizes, sig_input *in)
{
    in->special = false;
    in->whole = !lsi_dtype_is_float(in->dtype);
    in->lo = in->whole ? 0 : -2;
    in->hi = in->whole && in->dtype != LS_BOOL ? 7 : 2;
    if (**at != '{') {
        return true;
    }
    (*at)++;
    if (**at == '#') {
        in->whole = true;
        (*at)++;
    }
    if (**at == '!') {
        in->special = true;
        (*at)++;
    } else if (!read_number(at, sizes, &in->lo) || *(*at)++ != ',' ||
               !read_number(at, sizes, &in->hi)) {
        return false;
    }
    return *(*at)++ == '}';
}

int sig_parse(const char *text, const sig_sizes *sizes, ls_dtype real,
              sig_input in[SIG_MOST])
{
    int n = 0;

    for (;;) {
        text += strspn(text, " ");
        if (*text == '\0') {
            return n;
        }
        if (n == SIG_MOST) {
            return -1;
        }
        in[n] = (sig_input){0};
        if (strncmp(text, "null", 4) == 0) {
            in[n++].null = true;
            text += 4;
            continue;
        }
        if (!read_dtype(&text, real, &in[n].dtype) ||
            !read_shape(&text, sizes, &in[n].shape) ||
            !read_range(&text, sizes, &in[n])) {
            return -1;
        }
        n++;
    }
}

static double value_of(const sig_input *in, int64_t i, uint64_t *random)
{
    static const double special[] = {NAN,    INFINITY, -INFINITY, 0.0,   -0.0,  1e-45,
                                     -1e-45, 3.4e38,   -3.4e38,   1e-38, 88.0,  -88.0,
                                     104.0,  -104.0,   0.5,       -0.5,  1.0,   -1.0,
                                     1e-5,   -1e-5,    1e4,       -1e4,  3e-39, 2.5};
    const double part = (double)(lst_random(random) >> 11) / 9007199254740992.0;

    if (in->special) {
        return special[(size_t)i % LSI_COUNT_OF(special)];
    }
    if (in->whole) {
        return floor(in->lo + (in->hi - in->lo) * part);
    }
    return in->lo + (in->hi - in->lo) * part;
}

static void store_element(void *to, ls_dtype dtype, int64_t i, double v)
{
    switch (dtype) {
    case LS_F32:
        ((float *)to)[i] = (float)v;
        break;
    case LS_F64:
        ((double *)to)[i] = v;
        break;
    case LS_F16:
        ((uint16_t *)to)[i] = lsi_f32_to_f16((float)v);
        break;
    case LS_BF16:
        ((uint16_t *)to)[i] = lsi_f32_to_bf16((float)v);
        break;
    case LS_I64:
        ((int64_t *)to)[i] = (int64_t)v;
        break;
    case LS_U64:
        ((uint64_t *)to)[i] = (uint64_t)v;
        break;
    case LS_I32:
        ((int32_t *)to)[i] = (int32_t)v;
        break;
    case LS_U32:
        ((uint32_t *)to)[i] = (uint32_t)v;
        break;
    case LS_I16:
        ((int16_t *)to)[i] = (int16_t)v;
        break;
    case LS_U16:
        ((uint16_t *)to)[i] = (uint16_t)v;
        break;
    case LS_I8:
        ((int8_t *)to)[i] = (int8_t)v;
        break;
    case LS_STRING:
        ((ls_string *)to)[i] = (ls_string){"text", 4};
        break;
    default:
        ((uint8_t *)to)[i] = (uint8_t)v;
        break;
    }
}

ls_tensor *sig_tensor(ls_device *dev, const sig_input *in, uint64_t *random)
{
    const int64_t count = ls_shape_count(&in->shape);
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;
    void *data = lsi_alloc((size_t)count + 1, ls_dtype_size(in->dtype));

    for (int64_t i = 0; data != NULL && i < count; i++) {
        store_element(data, in->dtype, i, value_of(in, i, random));
    }
    LST_CHECK(data != NULL);
    if (data != NULL) {
        LST_OK(ls_tensor_create(dev, in->dtype, in->shape, data, &t, &err));
    }
    lsi_free(data);
    return t;
}

ls_tensor *sig_copy(ls_device *dev, const ls_tensor *t)
{
    ls_error err = LS_ERROR_INIT;
    ls_tensor *copy = NULL;

    if (t != NULL) {
        LST_OK(ls_tensor_create(dev, (ls_dtype)t->dtype, ls_tensor_shape(t), t->data,
                                &copy, &err));
    }
    return copy;
}
