/*
 * Prints tensors the way TensorFlow does, which is the way NumPy does: the shortest
 * digits that read back as the same number, columns aligned, lines of at most 75
 * characters, and only the first and last three of an axis when there are more than 1000
 * elements.
 */
#include "tensor/tensor.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    LINE = 75,
    THRESHOLD = 1000,
    EDGE = 3,
    EDGES = 2 * EDGE,
    FRACTION = 8,
    TEXT = 512
};

struct sink {
    char *buf;
    size_t size, len;
    size_t pending; /* spaces not written yet: a line does not end with them */
    size_t line;    /* where the present line begins */
};

static void put_char(struct sink *s, char ch)
{
    if (s->len + 1 < s->size) {
        s->buf[s->len] = ch;
    }
    s->len++;
    if (ch == '\n') {
        s->line = s->len;
    }
}

static void puts_to(struct sink *s, const char *text)
{
    if (text[0] == '\n') {
        s->pending = 0;
    }
    for (; text[0] != '\0' && s->pending > 0; s->pending--) {
        put_char(s, ' ');
    }
    for (; text[0] != '\0'; text++) {
        put_char(s, text[0]);
    }
}

static void spaces(struct sink *s, size_t n)
{
    s->pending += n;
}

/* From this power of ten on a float is written with an exponent. */
static double cutoff(ls_dtype dtype, bool alone)
{
    switch (dtype) {
    case LS_F64:
        return alone ? 1e16 : 1e8;
    case LS_F32:
        return 1e6;
    default:
        return 1e3;
    }
}

/* How the elements of one tensor are written. */
struct format {
    const ls_tensor *t;
    bool exponent;      /* floats: 1.5e+08 */
    int fraction;       /* floats with exponent: digits after the point */
    size_t left, right; /* floats: widths before and after the point */
    size_t width;       /* the others: of the widest */
    bool repr;          /* as numpy's repr: commas, and room for "array(" in front */
};

static double value_at(const ls_tensor *t, int64_t i)
{
    switch ((ls_dtype)t->dtype) {
    case LS_F32:
        return (double)((const float *)t->data)[i];
    case LS_F16:
        return (double)lsi_f16_to_f32(((const uint16_t *)t->data)[i]);
    case LS_BF16:
        return (double)lsi_bf16_to_f32(((const uint16_t *)t->data)[i]);
    default:
        return ((const double *)t->data)[i];
    }
}

/* True if `text` reads back as `v` in the precision of `dtype`. */
static bool reads_back(const char *text, double v, ls_dtype dtype)
{
    const double r = strtod(text, NULL);

    switch (dtype) {
    case LS_F32:
        return strtof(text, NULL) == (float)v;
    case LS_F16:
        return lsi_f32_to_f16((float)r) == lsi_f32_to_f16((float)v);
    case LS_BF16:
        return lsi_f32_to_bf16((float)r) == lsi_f32_to_bf16((float)v);
    default:
        return r == v;
    }
}

/* The shortest significant digits of |v| > 0, without a point; *exp10: of the first. */
static int shortest(double v, ls_dtype dtype, char digits[32], int *exp10)
{
    char text[48];
    int n = 0;

    for (int p = 0; p < 17; p++) {
        (void)snprintf(text, sizeof text, "%.*e", p, fabs(v));
        if (reads_back(text, fabs(v), dtype)) {
            break;
        }
    }
    for (const char *c = text; *c != 'e' && *c != '\0'; c++) {
        if (isdigit((unsigned char)*c)) {
            digits[n++] = *c;
        }
    }
    *exp10 = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    digits[n] = '\0';
    return n;
}

/*
 * |v| with digits after the point only where needed, at most `most` of them (more are
 * rounded away); "1." has none. Returns the position of the point.
 */
static size_t positional(double v, ls_dtype dtype, int most, char *out, size_t size)
{
    char digits[32];
    int exp10 = 0;
    int n = v == 0 ? 0 : shortest(v, dtype, digits, &exp10);
    size_t at = 0;

    if (n - 1 - exp10 > most) { // more than allowed: round the exact value
        (void)snprintf(out, size, "%.*f", most, fabs(v));
        at = strlen(out);
        while (at > 0 && out[at - 1] == '0') {
            out[--at] = '\0';
        }
        return (size_t)(strchr(out, '.') - out);
    }
    if (exp10 < 0 || n == 0) {
        out[at++] = '0';
    }
    for (int i = 0; i <= exp10 && n > 0 && at + 2 < size; i++) {
        out[at++] = (char)(i < n ? digits[i] : '0');
    }
    const size_t point = at;
    out[at++] = '.';
    for (int i = -1; i > exp10 && n > 0 && at + 2 < size; i--) {
        out[at++] = '0';
    }
    for (int i = exp10 < 0 ? 0 : exp10 + 1; i < n && at + 2 < size; i++) {
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return point;
}

/* 1.5e-05 with `fraction` digits, or as many as needed (negative); the point is kept. */
static void scientific(double v, ls_dtype dtype, int fraction, char *out, size_t size)
{
    char digits[32];
    int exp10 = 0;
    int n = 1;

    if (fraction < 0 && v != 0) {
        n = shortest(v, dtype, digits, &exp10);
    }
    if (fraction < 0) {
        fraction = LSI_MIN(n - 1, FRACTION);
    }
    (void)snprintf(out, size, "%.*e", fraction, fabs(v));
    if (fraction == 0) { // "1e-05" becomes "1.e-05"
        memmove(out + 2, out + 1, strlen(out + 1) + 1);
        out[1] = '.';
    }
}

static bool is_float(const ls_tensor *t)
{
    return lsi_dtype_is_float((ls_dtype)t->dtype);
}

/* One byte of a string as Python's repr writes it between quotes. */
static void put_byte(struct sink *s, unsigned char ch, bool single)
{
    char text[8];

    if (ch == '\\' || (ch == '\'' && !single)) {
        (void)snprintf(text, sizeof text, "\\%c", ch);
    } else if (ch == '\n' || ch == '\t' || ch == '\r') {
        (void)snprintf(text, sizeof text, "\\%c",
                       ch == '\n' ? 'n' : (ch == '\t' ? 't' : 'r'));
    } else if (ch < 32 || ch > 126) {
        (void)snprintf(text, sizeof text, "\\x%02x", ch);
    } else {
        (void)snprintf(text, sizeof text, "%c", ch);
    }
    puts_to(s, text);
}

static void put_string(struct sink *s, ls_string e)
{
    const bool single = e.len > 0 && memchr(e.ptr, '\'', e.len) != NULL &&
                        memchr(e.ptr, '"', e.len) == NULL;

    puts_to(s, single ? "b\"" : "b'");
    for (size_t k = 0; k < e.len; k++) {
        put_byte(s, (unsigned char)e.ptr[k], single);
    }
    puts_to(s, single ? "\"" : "'");
}

/* Integers, bools and strings; returns the length the text has. */
static size_t put_plain(const ls_tensor *t, int64_t i, struct sink *s)
{
    char text[32];
    const size_t before = s->len;

    switch ((ls_dtype)t->dtype) {
    case LS_BOOL:
        puts_to(s, ((const uint8_t *)t->data)[i] != 0 ? "True" : "False");
        return s->len - before;
    case LS_STRING:
        put_string(s, ((const ls_string *)t->data)[i]);
        return s->len - before;
    case LS_U64:
        (void)snprintf(text, sizeof text, "%llu",
                       (unsigned long long)((const uint64_t *)t->data)[i]);
        break;
    case LS_U32:
        (void)snprintf(text, sizeof text, "%u", ((const uint32_t *)t->data)[i]);
        break;
    case LS_U16:
        (void)snprintf(text, sizeof text, "%u", ((const uint16_t *)t->data)[i]);
        break;
    case LS_U8:
        (void)snprintf(text, sizeof text, "%u", ((const uint8_t *)t->data)[i]);
        break;
    case LS_I8:
        (void)snprintf(text, sizeof text, "%d", ((const int8_t *)t->data)[i]);
        break;
    case LS_I16:
        (void)snprintf(text, sizeof text, "%d", ((const int16_t *)t->data)[i]);
        break;
    case LS_I32:
        (void)snprintf(text, sizeof text, "%d", ((const int32_t *)t->data)[i]);
        break;
    default:
        (void)snprintf(text, sizeof text, "%lld",
                       (long long)((const int64_t *)t->data)[i]);
        break;
    }
    puts_to(s, text);
    return s->len - before;
}

/* Elements that are shown: all, or the edges of each axis. */
static bool is_shown(const ls_tensor *t, int64_t index)
{
    if (t->count <= THRESHOLD) {
        return true;
    }
    for (int a = t->ndim - 1; a >= 0; a--) {
        const int64_t k = index % t->dims[a];

        if (t->dims[a] > EDGES && k >= EDGE && k < t->dims[a] - EDGE) {
            return false;
        }
        index /= t->dims[a];
    }
    return true;
}

static void choose_exponent(struct format *f)
{
    double most = 0, least = HUGE_VAL;

    for (int64_t i = 0; i < f->t->count; i++) {
        const double a = fabs(value_at(f->t, i));

        if (is_shown(f->t, i) && isfinite(a) && a != 0) {
            most = fmax(most, a);
            least = fmin(least, a);
        }
    }
    f->exponent = most >= cutoff((ls_dtype)f->t->dtype, false) ||
                  (most > 0 && (least < 1e-4 || most / least > 1000));
}

static void measure_float(struct format *f, int64_t i)
{
    char text[TEXT];
    const double v = value_at(f->t, i);
    const ls_dtype d = (ls_dtype)f->t->dtype;
    const size_t sign = signbit(v) && !isnan(v) ? 1 : 0;

    if (!isfinite(v)) {
        f->width = LSI_MAX(f->width, 3 + sign);
    } else if (f->exponent) {
        scientific(v, d, -1, text, sizeof text);
        f->fraction = LSI_MAX(f->fraction, (int)(strchr(text, 'e') - text) - 2);
        f->left = LSI_MAX(f->left, 1 + sign);
        f->right = LSI_MAX(f->right, strlen(strchr(text, 'e')));
    } else {
        const size_t point = positional(v, d, FRACTION, text, sizeof text);

        f->left = LSI_MAX(f->left, point + sign);
        f->right = LSI_MAX(f->right, strlen(text) - point - 1);
    }
}

/* The parts are known: what the whole takes, and room for "nan" and "-inf". */
static void settle_width(struct format *f)
{
    const size_t whole = f->exponent ? f->left + 1 + (size_t)f->fraction + f->right
                                     : f->left + 1 + f->right;

    if (f->left == 0) { // nothing finite
        f->left = f->width > 0 ? f->width - 1 : 0;
    } else if (f->width > whole) {
        f->left += f->width - whole;
        f->width = 0;
    }
    f->width = LSI_MAX(f->width, f->left > 0 && whole > f->width ? whole : f->width);
}

static struct format measure(const ls_tensor *t)
{
    struct format f = {.t = t};
    struct sink nowhere = {NULL, 0, 0, 0, 0};

    if (is_float(t)) {
        choose_exponent(&f);
    }
    for (int64_t i = 0; i < t->count; i++) {
        if (!is_shown(t, i)) {
            continue;
        }
        if (is_float(t)) {
            measure_float(&f, i);
        } else {
            f.width =
                LSI_MAX(f.width, t->dtype == LS_BOOL ? 5 : put_plain(t, i, &nowhere));
        }
    }
    if (is_float(t)) {
        settle_width(&f);
    }
    return f;
}

static void element(const struct format *f, int64_t i, struct sink *s)
{
    char text[TEXT];
    struct sink one = {NULL, 0, 0, 0, 0};

    if (!is_float(f->t)) {
        const size_t n = put_plain(f->t, i, &one);

        spaces(s, f->t->dtype == LS_STRING ? 0 : f->width - n);
        (void)put_plain(f->t, i, s);
        return;
    }
    const double v = value_at(f->t, i);
    const char *sign = signbit(v) && !isnan(v) ? "-" : "";
    size_t point;

    if (!isfinite(v)) {
        (void)snprintf(text, sizeof text, "%s%s", sign, isnan(v) ? "nan" : "inf");
        spaces(s, f->width > strlen(text) ? f->width - strlen(text) : 0);
        puts_to(s, text);
        return;
    }
    if (f->exponent) {
        scientific(v, (ls_dtype)f->t->dtype, f->fraction, text, sizeof text);
        spaces(s, f->left - 1 - strlen(sign));
        puts_to(s, sign);
        puts_to(s, text);
        return;
    }
    point = positional(v, (ls_dtype)f->t->dtype, FRACTION, text, sizeof text);
    spaces(s, f->left - point - strlen(sign));
    puts_to(s, sign);
    puts_to(s, text);
    spaces(s, f->right - (strlen(text) - point - 1));
}

/* A float by itself, as Python prints it: 1.0, 1e-05, 0.1. */
static void scalar_float(const ls_tensor *t, struct sink *s)
{
    const double v = value_at(t, 0), a = fabs(v);
    char text[TEXT];

    if (signbit(v) && !isnan(v)) {
        puts_to(s, "-");
    }
    if (!isfinite(v)) {
        puts_to(s, isnan(v) ? "nan" : "inf");
        return;
    }
    if (a != 0 && (a >= cutoff((ls_dtype)t->dtype, true) || a < 1e-4)) {
        char digits[32];
        int exp10 = 0;
        const int n = shortest(v, (ls_dtype)t->dtype, digits, &exp10);

        (void)snprintf(text, sizeof text, "%c%s%se%c%02d", digits[0], n > 1 ? "." : "",
                       digits + 1, exp10 < 0 ? '-' : '+', abs(exp10));
        puts_to(s, text);
        return;
    }
    (void)positional(v, (ls_dtype)t->dtype, TEXT / 2, text, sizeof text);
    puts_to(s, text);
    if (text[strlen(text) - 1] == '.') {
        puts_to(s, "0");
    }
}

/* Writes one axis, `depth` brackets deep; *column is where the line stands. */
static void axis(const struct format *f, int depth, int64_t offset, int64_t stride,
                 struct sink *s, size_t *column);

/* Strings are as wide as they are, everything else as wide as the widest. */
static size_t width_of(const struct format *f, int64_t i)
{
    struct sink nowhere = {NULL, 0, 0, 0, 0};

    return f->t->dtype == LS_STRING ? put_plain(f->t, i, &nowhere) : f->width;
}

/* Columns in front of the whole: "array(". */
static size_t base_of(const struct format *f)
{
    return f->repr ? strlen("array(") : 0;
}

static void row(const struct format *f, int depth, int64_t offset, struct sink *s,
                size_t *column)
{
    const ls_tensor *t = f->t;
    const int64_t n = t->dims[depth];
    const size_t indent = (size_t)depth + 1 + base_of(f);
    const size_t line = f->repr ? LINE - 1 : LINE; // the closing parenthesis
    const bool cut = t->count > THRESHOLD && n > EDGES;

    *column = indent;
    for (int64_t i = 0; i < n; i++) {
        const bool dots = cut && i == EDGE;
        const size_t width = dots ? 3 : width_of(f, offset + i);

        if (i > 0) {
            if (f->repr) {
                puts_to(s, ",");
                (*column)++;
            }
            if (*column + 1 + width > line - 1 - (size_t)depth) {
                puts_to(s, "\n");
                spaces(s, indent);
                *column = indent;
            } else {
                spaces(s, 1);
                (*column)++;
            }
        }
        *column += width;
        if (dots) {
            puts_to(s, "...");
            i = n - EDGE - 1;
        } else {
            element(f, offset + i, s);
        }
    }
}

static void axis(const struct format *f, int depth, int64_t offset, int64_t stride,
                 struct sink *s, size_t *column)
{
    const ls_tensor *t = f->t;
    const int64_t n = t->dims[depth];
    const bool cut = t->count > THRESHOLD && n > EDGES;

    puts_to(s, "[");
    if (depth == t->ndim - 1) {
        row(f, depth, offset, s, column);
    } else {
        const int64_t inner = stride / t->dims[depth + 1];

        for (int64_t i = 0; i < n; i++) {
            if (i > 0) {
                puts_to(s, f->repr ? "," : "");
                for (int k = 0; k < t->ndim - 1 - depth; k++) {
                    puts_to(s, "\n");
                }
                spaces(s, (size_t)depth + 1 + base_of(f));
            }
            if (cut && i == EDGE) {
                puts_to(s, "...");
                i = n - EDGE - 1;
                continue;
            }
            axis(f, depth + 1, offset + i * stride, inner, s, column);
        }
    }
    puts_to(s, "]");
}

static void data(const ls_tensor *t, struct sink *s, bool repr)
{
    if (t->ndim == 0) {
        if (is_float(t)) {
            scalar_float(t, s);
        } else {
            (void)put_plain(t, 0, s);
        }
        return;
    }
    if (t->count == 0) {
        puts_to(s, "[]");
        return;
    }
    struct format f = measure(t);
    size_t column = 0;

    f.repr = repr;
    axis(&f, 0, 0, t->count / t->dims[0], s, &column);
}

/* The data as numpy's repr has it: 1.0, array([1., 2.], dtype=float32). */
static void array(const ls_tensor *t, struct sink *s)
{
    const ls_dtype d = (ls_dtype)t->dtype;
    const bool usual = d == LS_F64 || d == LS_I64 || d == LS_BOOL;
    const size_t start = s->len; // lines are counted from "array(" on
    char text[192], shape[128];

    if (t->ndim == 0) {
        data(t, s, true);
        return;
    }
    s->line = start;
    puts_to(s, "array(");
    data(t, s, true);
    text[0] = '\0';
    if (t->count == 0 && t->ndim > 1) {
        const ls_shape sh = ls_tensor_shape(t);

        (void)snprintf(text, sizeof text, ", shape=%s",
                       ls_shape_text(&sh, shape, sizeof shape));
    }
    puts_to(s, text);
    if (!usual || t->count == 0) {
        (void)snprintf(text, sizeof text, "dtype=%s)",
                       d == LS_STRING ? "object" : ls_dtype_name(d));
        puts_to(s, ",");
        if (s->len - s->line + 1 + strlen(text) > LINE) {
            puts_to(s, "\n");
            spaces(s, strlen("array("));
        } else {
            spaces(s, 1);
        }
        puts_to(s, text);
        return;
    }
    puts_to(s, ")");
}

/* The data by `write`; what has several lines begins on a new one. */
static void own_lines(const ls_tensor *t, struct sink *s,
                      void (*write)(const ls_tensor *t, struct sink *s))
{
    struct sink nowhere = {NULL, 0, 0, 0, 0};

    write(t, &nowhere);
    puts_to(s, nowhere.line > 0 ? "\n" : "");
    write(t, s);
}

static void plain_data(const ls_tensor *t, struct sink *s)
{
    data(t, s, false);
}

static void describe(const ls_tensor *t, struct sink *s)
{
    const ls_shape sh = ls_tensor_shape(t);
    char shape[128];

    puts_to(s, "shape=");
    puts_to(s, ls_shape_text(&sh, shape, sizeof shape));
    puts_to(s, ", dtype=");
    puts_to(s, ls_dtype_name((ls_dtype)t->dtype));
}

static void tensor_str(const ls_tensor *t, struct sink *s)
{
    puts_to(s, "tf.Tensor(");
    own_lines(t, s, plain_data);
    puts_to(s, ", ");
    describe(t, s);
    puts_to(s, ")");
}

/* Rows of a tensor: both tensors it has, and the shape of the whole as a third. */
static void slices_str(const ls_tensor *t, struct sink *s)
{
    char text[160];

    puts_to(s, "IndexedSlices(indices=");
    tensor_str(t->indices, s);
    puts_to(s, ", values=");
    tensor_str(t->values, s);
    puts_to(s, ", dense_shape=tf.Tensor([");
    for (int i = 0; i < t->ndim; i++) {
        (void)snprintf(text, sizeof text, "%s%lld", i > 0 ? " " : "",
                       (long long)t->dims[i]);
        puts_to(s, text);
    }
    (void)snprintf(text, sizeof text, "], shape=(%d,), dtype=int32))", t->ndim);
    puts_to(s, text);
}

static size_t finish(struct sink *s)
{
    if (s->size > 0) {
        s->buf[LSI_MIN(s->len, s->size - 1)] = '\0';
    }
    return s->len;
}

size_t ls_tensor_text(const ls_tensor *t, char *buf, size_t size)
{
    struct sink s = {.size = size};

    s.buf = buf;
    if (t == NULL) {
        puts_to(&s, "None");
    } else if (t->values != NULL) {
        slices_str(t, &s);
    } else {
        tensor_str(t, &s);
    }
    return finish(&s);
}

size_t lsi_tensor_array_text(const ls_tensor *t, char *buf, size_t size)
{
    struct sink s = {.size = size};

    s.buf = buf;
    own_lines(t, &s, array);
    return finish(&s);
}

size_t ls_tensor_repr(const ls_tensor *t, char *buf, size_t size)
{
    struct sink s = {.size = size};

    s.buf = buf;
    if (t == NULL) {
        puts_to(&s, "None");
    } else if (t->values != NULL) {
        slices_str(t, &s);
    } else {
        puts_to(&s, "<tf.Tensor: ");
        describe(t, &s);
        puts_to(&s, ", numpy=");
        own_lines(t, &s, array);
        puts_to(&s, ">");
    }
    return finish(&s);
}
