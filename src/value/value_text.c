/* Printing values as Python prints them. */
#include "value/value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text truncated at the end of the buffer; its whole length is counted. */
struct writer {
    char *buf;
    size_t size;
    size_t length;
    bool repr;
};

static void put_text(struct writer *w, const char *fmt, ...) LS_PRINTF(2, 3);
static void put_text(struct writer *w, const char *fmt, ...)
{
    const size_t room = w->length < w->size ? w->size - w->length : 0;
    va_list args;

    va_start(args, fmt);
    const int n = vsnprintf(room > 0 ? w->buf + w->length : NULL, room, fmt, args);
    va_end(args);
    w->length += n > 0 ? (size_t)n : 0;
}

/* One byte; unlike put_text() it takes NUL. */
static void put_byte(struct writer *w, char byte)
{
    if (w->length + 1 < w->size) {
        w->buf[w->length] = byte;
        w->buf[w->length + 1] = '\0';
    }
    w->length++;
}

/* As Python's repr: the fewest digits that read back as the same number. */
static void put_float(struct writer *w, double x)
{
    char text[40];
    int digits = 1;

    if (!isfinite(x)) {
        put_text(w, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    for (; digits < 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*e", digits - 1, x);
        if (strtod(text, NULL) == x) {
            break;
        }
    }
    (void)snprintf(text, sizeof text, "%.*e", digits - 1, x);
    const int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16) {
        (void)snprintf(text, sizeof text, "%.*f", LSI_MAX(digits - 1 - exponent, 1), x);
    }
    for (char *at = text; *at != '\0'; at++) {
        if (strchr("0123456789+-e", *at) == NULL) {
            *at = '.'; // the locale may have its own decimal point
        }
    }
    put_text(w, "%s", text);
}

/* As Python's repr of a string; bytes of UTF-8 stand as they are. */
static void put_quoted(struct writer *w, ls_string s)
{
    const bool single = s.len > 0 && memchr(s.ptr, '\'', s.len) != NULL;
    const bool twice = s.len > 0 && memchr(s.ptr, '"', s.len) != NULL;
    const char quote = single && !twice ? '"' : '\'';

    put_byte(w, quote);
    for (size_t i = 0; i < s.len; i++) {
        const char byte = s.ptr[i];

        if (byte == '\n' || byte == '\r' || byte == '\t') {
            put_text(w, "\\%c", byte == '\n' ? 'n' : byte == '\r' ? 'r' : 't');
        } else if (byte == '\\' || byte == quote) {
            put_text(w, "\\%c", byte);
        } else if ((unsigned char)byte < 0x20 || byte == 0x7f) {
            put_text(w, "\\x%02x", (unsigned)(unsigned char)byte);
        } else {
            put_byte(w, byte);
        }
    }
    put_byte(w, quote);
}

static void put_string(struct writer *w, ls_string s, bool quoted)
{
    if (quoted) {
        put_quoted(w, s);
        return;
    }
    for (size_t i = 0; i < s.len; i++) {
        put_byte(w, s.ptr[i]);
    }
}

static void put_leaf(struct writer *w, const ls_value *v)
{
    const size_t left = w->length < w->size ? w->size - w->length : 0;
    char nowhere[1];
    char *at = left > 0 ? w->buf + w->length : nowhere;
    const size_t room = left > 0 ? left : sizeof nowhere;

    if (lsi_value_is_object(v)) {
        w->length += v->leaf.object.ops->text(v->leaf.object.self, at, room);
    } else if (w->repr) {
        w->length += ls_tensor_repr(v->leaf.tensor, at, room);
    } else {
        w->length += ls_tensor_text(v->leaf.tensor, at, room);
    }
}

static void put_value(struct writer *w, const ls_value *v, bool quoted);

static void put_distributed(struct writer *w, const ls_value *v)
{
    put_text(w, "%s:{\n", ls_value_kind_name(v->kind));
    for (size_t i = 0; i < v->size; i++) {
        put_text(w, "%s  %zu: ", i > 0 ? ",\n" : "", i);
        put_value(w, v->child[i], w->repr);
    }
    put_text(w, "\n}");
}

static void put_structure(struct writer *w, const ls_value *v)
{
    const bool dict = v->kind == LS_VALUE_DICT, list = v->kind == LS_VALUE_LIST;
    const bool repr = w->repr;

    w->repr = true; // of its items, whatever is asked of the whole
    if (v->kind == LS_VALUE_NAMED_TUPLE) {
        put_text(w, "%s", v->keys->type);
    }
    put_text(w, "%s", dict ? "{" : list ? "[" : "(");
    for (size_t i = 0; i < v->size; i++) {
        put_text(w, "%s", i > 0 ? ", " : "");
        if (dict) {
            const ls_string key = {v->keys->name[i], strlen(v->keys->name[i])};

            put_quoted(w, key);
            put_text(w, ": ");
        } else if (v->keys != NULL) {
            put_text(w, "%s=", v->keys->name[i]);
        }
        put_value(w, v->child[i], true);
    }
    w->repr = repr;
    put_text(w, "%s%s", v->kind == LS_VALUE_TUPLE && v->size == 1 ? "," : "",
             dict   ? "}"
             : list ? "]"
                    : ")");
}

static void put_value(struct writer *w, const ls_value *v, bool quoted)
{
    switch (v->kind) {
    case LS_VALUE_NONE:
        put_text(w, "None");
        break;
    case LS_VALUE_TENSOR:
    case LS_VALUE_VARIABLE:
    case LS_VALUE_DATASET:
        put_leaf(w, v);
        break;
    case LS_VALUE_INT:
        put_text(w, "%lld", (long long)v->leaf.integer);
        break;
    case LS_VALUE_FLOAT:
        put_float(w, v->leaf.number);
        break;
    case LS_VALUE_BOOL:
        put_text(w, "%s", v->leaf.truth ? "True" : "False");
        break;
    case LS_VALUE_STRING:
        put_string(w, v->leaf.string, quoted);
        break;
    case LS_VALUE_TUPLE:
    case LS_VALUE_LIST:
    case LS_VALUE_NAMED_TUPLE:
    case LS_VALUE_DICT:
        put_structure(w, v);
        break;
    case LS_VALUE_PER_REPLICA:
    case LS_VALUE_MIRRORED:
        put_distributed(w, v);
        break;
    }
}

static size_t print(const ls_value *v, char *buf, size_t size, bool repr)
{
    struct writer w = {buf, buf == NULL ? 0 : size, 0, repr};

    if (w.size > 0) {
        buf[0] = '\0';
    }
    if (v == NULL) {
        put_text(&w, "None");
    } else {
        put_value(&w, v, repr);
    }
    return w.length;
}

size_t ls_value_text(const ls_value *v, char *buf, size_t size)
{
    return print(v, buf, size, false);
}

size_t ls_value_repr(const ls_value *v, char *buf, size_t size)
{
    return print(v, buf, size, true);
}
