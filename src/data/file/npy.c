/* Arrays in NumPy's .npy format: the header, and the elements as a tensor. */
#include "data/file/npy.h"

#include <inttypes.h>
#include <isa-l.h>
#include <stdio.h>

enum {
    MAGIC = 6,
    HEADER_MOST = 1 << 20, // a header has some hundred bytes; more than this is damage
    TEXT_MOST = 60,        // of a header, in messages
};

/* The contents of the header. */
struct array {
    char kind; // 'f', 'i', 'u', 'b', 'S', 'U'
    size_t size;
    bool swapped;
    bool fortran;
    ls_shape shape;
    ls_dtype dtype;
    ls_array_header text; // the same in NumPy's words; its name is not set
    bool records;         // of fields: they cannot be read
    bool deep;            // more axes than a tensor may have
};

static const char *member_name(const lsi_npy_source *src)
{
    return src->name != NULL ? src->name : "the array";
}

ls_status lsi_npy_read(lsi_npy_source *src, void *to, size_t len, ls_error *err)
{
    if (len > src->size - src->at) {
        return lsi_fail(err, LS_DATA_LOSS, -1,
                        "%s: %s is cut off: %zu bytes should follow byte %" PRIu64
                        ", %" PRIu64 " are there",
                        src->path, member_name(src), len, src->at, src->size - src->at);
    }
    if (src->file != NULL) {
        const ls_status st =
            lsi_file_read_exactly(src->file, src->begin + src->at, to, len, err);

        if (st != LS_OK) {
            return st;
        }
    } else if (len > 0) {
        memcpy(to, src->memory + src->at, len);
    }
    if (src->sum) {
        src->crc = crc32_gzip_refl(src->crc, to, len);
    }
    src->at += len;
    return LS_OK;
}

void lsi_swap_bytes(void *data, size_t count, size_t size)
{
    uint8_t *p = data;

    for (size_t i = 0; i < count; i++, p += size) {
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            const uint8_t x = p[a];

            p[a] = p[b];
            p[b] = x;
        }
    }
}

/* ---- the header: a Python dict as text ---- */

static void skip_blanks(const char **p)
{
    while (**p == ' ' || **p == '\t' || **p == '\n' || **p == '\r') {
        ++*p;
    }
}

static bool eat_char(const char **p, char c)
{
    skip_blanks(p);
    if (**p != c) {
        return false;
    }
    ++*p;
    return true;
}

/* 'text' or "text", without escapes, into `to`. */
static bool read_quoted(const char **p, char *to, size_t room)
{
    char quote;
    size_t n = 0;

    skip_blanks(p);
    quote = **p;
    if (quote != '\'' && quote != '"') {
        return false;
    }
    for (++*p; **p != quote; ++*p) {
        if (**p == '\0' || **p == '\\' || n + 1 >= room) {
            return false;
        }
        to[n++] = **p;
    }
    ++*p;
    to[n] = '\0';
    return true;
}

static bool read_bool(const char **p, bool *out)
{
    skip_blanks(p);
    if (strncmp(*p, "True", 4) == 0) {
        *out = true;
        *p += 4;
        return true;
    }
    *out = false;
    if (strncmp(*p, "False", 5) == 0) {
        *p += 5;
        return true;
    }
    return false;
}

static bool size_of_axis(const char **p, int64_t *out)
{
    int64_t x = 0;

    if (**p < '0' || **p > '9') {
        return false;
    }
    for (; **p >= '0' && **p <= '9'; ++*p) {
        if (x > (INT64_MAX - 9) / 10) {
            return false;
        }
        x = x * 10 + (**p - '0');
    }
    *p += **p == 'L'; // written by Python 2
    *out = x;
    return true;
}

/* Keeps what stands from `begin` on up to `end`, if there is room for it. */
static bool keep_text(const char *begin, const char *end, char *to, size_t room)
{
    const size_t len = (size_t)(end - begin);

    if (len >= room) {
        return false;
    }
    memcpy(to, begin, len);
    to[len] = '\0';
    return true;
}

static bool shape_of(const char **p, struct array *a)
{
    ls_shape *shape = &a->shape;
    const char *begin;

    shape->ndim = 0;
    skip_blanks(p);
    begin = *p;
    if (!eat_char(p, '(')) {
        return false;
    }
    while (!eat_char(p, ')')) { // which passes over blanks, too
        int64_t axis;

        if (!size_of_axis(p, &axis)) {
            return false;
        }
        if (shape->ndim == LS_MAX_DIMS) {
            a->deep = true;
        } else {
            shape->dims[shape->ndim++] = axis;
        }
        if (!eat_char(p, ',') && **p != ')') {
            return false;
        }
    }
    return keep_text(begin, *p, a->text.shape, sizeof a->text.shape);
}

/* The type of the elements: its name, or the list of the fields that records have. */
static bool descr_of(const char **p, struct array *a)
{
    int depth = 0;

    if (read_quoted(p, a->text.dtype, sizeof a->text.dtype)) {
        return true;
    }
    a->records = true;
    (void)snprintf(a->text.dtype, sizeof a->text.dtype, "a record");
    do {
        depth += (**p == '[' || **p == '(') - (**p == ']' || **p == ')');
    } while (*(*p)++ != '\0' && depth > 0);
    return depth == 0 && (*p)[-1] != '\0';
}

/* "<f4": byte order, kind, size. */
static bool type_of(const char *descr, struct array *a)
{
    static const struct {
        size_t size;
        ls_dtype dtype;
        char kind;
    } types[] = {{2, LS_F16, 'f'}, {4, LS_F32, 'f'}, {8, LS_F64, 'f'}, {1, LS_I8, 'i'},
                 {2, LS_I16, 'i'}, {4, LS_I32, 'i'}, {8, LS_I64, 'i'}, {1, LS_U8, 'u'},
                 {2, LS_U16, 'u'}, {4, LS_U32, 'u'}, {8, LS_U64, 'u'}, {1, LS_BOOL, 'b'}};
    const uint16_t one = 1;
    const bool little = *(const uint8_t *)&one == 1;
    const char *p = descr;
    int64_t size;

    a->swapped = (*p == '>' && little) || (*p == '<' && !little);
    if (strchr("<>=|", *p) != NULL && *p != '\0') {
        p++;
    }
    a->kind = *p;
    if (*p == '\0') {
        return false;
    }
    p++;
    if (!size_of_axis(&p, &size) || *p != '\0' || size < 1 || size > 1 << 28) {
        return false;
    }
    a->size = (size_t)size;
    if (a->kind == 'S' || a->kind == 'U') {
        a->size *= a->kind == 'U' ? 4 : 1;
        a->dtype = LS_STRING;
        return true;
    }
    for (size_t i = 0; i < LSI_COUNT_OF(types); i++) {
        if (types[i].kind == a->kind && types[i].size == a->size) {
            a->dtype = types[i].dtype;
            return true;
        }
    }
    return false;
}

static ls_status no_header(const lsi_npy_source *src, const char *what, const char *text,
                           ls_error *err)
{
    return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "%s: %s: %s: %.*s", src->path,
                    member_name(src), what, (int)TEXT_MOST, text);
}

/* With `described` also arrays that cannot be read are good. */
static ls_status parse_header(const lsi_npy_source *src, const char *text, bool described,
                              struct array *a, ls_error *err)
{
    const char *p = text;
    char key[32];
    unsigned seen = 0;
    bool good = eat_char(&p, '{');

    while (good && !eat_char(&p, '}')) {
        good = read_quoted(&p, key, sizeof key) && eat_char(&p, ':');
        if (good && strcmp(key, "descr") == 0) {
            good = descr_of(&p, a);
            seen |= 1;
        } else if (good && strcmp(key, "fortran_order") == 0) {
            good = read_bool(&p, &a->fortran);
            a->text.fortran_order = a->fortran;
            seen |= 2;
        } else if (good && strcmp(key, "shape") == 0) {
            good = shape_of(&p, a);
            seen |= 4;
        } else {
            good = false;
        }
        good = good && (eat_char(&p, ',') || *p == '}');
    }
    if (good && a->records && !described) {
        return no_header(src,
                         "arrays of records cannot be read, only of numbers and strings",
                         text, err);
    }
    if (!good || seen != 7 || (a->deep && !described)) {
        return no_header(src, "its header is not NumPy's", text, err);
    }
    if (!described && !type_of(a->text.dtype, a)) {
        return no_header(src,
                         "the type of its elements cannot be read (objects never "
                         "are; complex numbers and dates are not supported)",
                         a->text.dtype, err);
    }
    return LS_OK;
}

static ls_status read_header(lsi_npy_source *src, bool described, struct array *a,
                             ls_error *err)
{
    uint8_t start[MAGIC + 6] = {0};
    uint32_t len;
    char *text;
    ls_status st = lsi_npy_read(src, start, MAGIC + 4, err);

    if (st != LS_OK) {
        return st;
    }
    if (memcmp(start, "\x93NUMPY", MAGIC) != 0) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s: %s does not begin like a NumPy array", src->path,
                        member_name(src));
    }
    if (start[6] < 1 || start[6] > 3) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s: %s is of version %d.%d; 1.0, 2.0 and 3.0 can be read",
                        src->path, member_name(src), start[6], start[7]);
    }
    len = lsi_le16(start + 8);
    if (start[6] > 1) {
        st = lsi_npy_read(src, start + 10, 2, err);
        if (st != LS_OK) {
            return st;
        }
        len = lsi_le32(start + 8);
    }
    if (len > HEADER_MOST) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s: %s has a header of %" PRIu32 " bytes: it is damaged",
                        src->path, member_name(src), len);
    }
    text = lsi_alloc((size_t)len + 1, 1);
    if (text == NULL) {
        return lsi_fail_memory(err, "an array's header", len);
    }
    st = lsi_npy_read(src, text, len, err);
    if (st == LS_OK) {
        st = parse_header(src, text, described, a, err);
    }
    lsi_free(text);
    return st;
}

ls_status lsi_npy_describe(lsi_npy_source *src, ls_array_header *out, ls_error *err)
{
    struct array a = {0};
    const ls_status st = read_header(src, true, &a, err);

    if (st == LS_OK) {
        char *name = out->name;

        *out = a.text;
        out->name = name;
    }
    return st;
}

/* ---- the elements ---- */

/* Column-major elements at `from` into row-major ones at `to`. */
static void transpose_array(const ls_shape *shape, size_t size, const uint8_t *from,
                            uint8_t *to)
{
    int64_t at[LS_MAX_DIMS] = {0};
    size_t step[LS_MAX_DIMS] = {0}, offset = 0;
    const int64_t count = ls_shape_count(shape);
    size_t stride = size;

    for (int i = 0; i < shape->ndim; i++) {
        step[i] = stride;
        stride *= (size_t)shape->dims[i];
    }
    for (int64_t n = 0; n < count; n++, to += size) {
        memcpy(to, from + offset, size);
        for (int i = shape->ndim - 1; i >= 0; i--) {
            offset += step[i];
            if (++at[i] < shape->dims[i]) {
                break;
            }
            offset -= step[i] * (size_t)shape->dims[i];
            at[i] = 0;
        }
    }
}

/* A code point as UTF-8; an invalid one becomes U+FFFD. */
static size_t put_utf8(char *to, uint32_t c)
{
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) {
        c = 0xFFFD;
    }
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xE0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xF0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* One string of `size` bytes without the NULs at its end; UCS-4 becomes UTF-8 in place,
 * which is never longer. */
static ls_string string_of(uint8_t *p, const struct array *a)
{
    size_t len = a->size, n = 0;

    if (a->kind == 'S') {
        while (len > 0 && p[len - 1] == 0) {
            len--;
        }
        return (ls_string){(const char *)p, len};
    }
    if (a->swapped) {
        lsi_swap_bytes(p, len / 4, 4);
    }
    while (len > 0 && memcmp(p + len - 4, "\0\0\0\0", 4) == 0) {
        len -= 4;
    }
    for (size_t i = 0; i < len; i += 4) {
        uint32_t c;

        memcpy(&c, p + i, 4);
        n += put_utf8((char *)p + n, c);
    }
    return (ls_string){(const char *)p, n};
}

static ls_status tensor_of_strings(uint8_t *data, const struct array *a, size_t count,
                                   ls_tensor **out, ls_error *err)
{
    ls_string *list = lsi_alloc(count + 1, sizeof *list);
    ls_status st;

    if (list == NULL) {
        return lsi_fail_memory(err, "an array of strings", count * sizeof *list);
    }
    for (size_t i = 0; i < count; i++) {
        list[i] = string_of(data + i * a->size, a);
    }
    st = lsi_tensor_create(NULL, LS_STRING, a->shape, list, out, err);
    lsi_free(list);
    return st;
}

/* Reads strings, and arrays that are stored in column-major order. */
static ls_status read_rearranged(lsi_npy_source *src, const struct array *a, size_t count,
                                 ls_tensor *t, ls_tensor **out, ls_error *err)
{
    const size_t bytes = count * a->size;
    uint8_t *raw = lsi_alloc_aligned(bytes + 1, 64);
    uint8_t *sorted = NULL;
    ls_status st;

    if (raw == NULL) {
        return lsi_fail_memory(err, "an array", bytes);
    }
    st = lsi_npy_read(src, raw, bytes, err);
    if (st == LS_OK && a->fortran) {
        sorted = t != NULL ? t->data : lsi_alloc_aligned(bytes + 1, 64);
        if (sorted == NULL) {
            st = lsi_fail_memory(err, "an array", bytes);
        } else {
            transpose_array(&a->shape, a->size, raw, sorted);
        }
    }
    if (st == LS_OK && a->dtype == LS_STRING) {
        st = tensor_of_strings(a->fortran ? sorted : raw, a, count, out, err);
    }
    if (t == NULL) {
        lsi_free(sorted);
    }
    lsi_free(raw);
    return st;
}

/* Reads the header; fails if fewer bytes follow it than the array needs. */
static ls_status read_array(lsi_npy_source *src, struct array *a, size_t *bytes,
                            ls_error *err)
{
    const ls_status st = read_header(src, false, a, err);
    const int64_t count = st == LS_OK ? ls_shape_count(&a->shape) : 0;
    char text[128];

    if (st != LS_OK) {
        return st;
    }
    if (count >= 0 && lsi_mul_size((size_t)count, a->size, bytes) &&
        *bytes <= src->size - src->at) {
        return LS_OK;
    }
    return lsi_fail(err, LS_DATA_LOSS, -1,
                    "%s: %s is cut off: its header promises %s elements of %zu bytes, "
                    "%" PRIu64 " bytes are there",
                    src->path, member_name(src),
                    ls_shape_text(&a->shape, text, sizeof text), a->size,
                    src->size - src->at);
}

ls_status lsi_npy_spec(lsi_npy_source *src, ls_spec **out, ls_error *err)
{
    struct array a = {0};
    size_t bytes;
    const ls_status st = read_array(src, &a, &bytes, err);

    return st == LS_OK ? ls_spec_tensor(a.dtype, a.shape.ndim, a.shape.dims, out, err)
                       : st;
}

ls_status lsi_npy_tensor(lsi_npy_source *src, ls_tensor **out, ls_error *err)
{
    struct array a = {0};
    size_t bytes = 0;
    ls_status st = read_array(src, &a, &bytes, err);
    ls_tensor *t;
    int64_t count;

    if (st != LS_OK) {
        return st;
    }
    count = ls_shape_count(&a.shape);
    if (a.dtype == LS_STRING) {
        return read_rearranged(src, &a, (size_t)count, NULL, out, err);
    }
    t = lsi_tensor_new(NULL, a.dtype, &a.shape);
    if (t == NULL) {
        return lsi_fail_memory(err, "an array", bytes);
    }
    if (a.fortran && a.shape.ndim > 1) {
        st = read_rearranged(src, &a, (size_t)count, t, out, err);
    } else {
        st = lsi_npy_read(src, t->data, bytes, err);
    }
    if (st != LS_OK) {
        ls_tensor_release(t);
        return st;
    }
    if (a.swapped) {
        lsi_swap_bytes(t->data, (size_t)count, a.size);
    }
    if (a.dtype == LS_BOOL) {
        for (int64_t i = 0; i < count; i++) {
            uint8_t *b = (uint8_t *)t->data + i;

            *b = *b != 0; // any other number than 0 becomes 1
        }
    }
    *out = t;
    return LS_OK;
}
