/*
 * Writing and reading saved states. The bytes that are read may be damaged: every length
 * is compared with the number of bytes left before anything is allocated, and a state
 * that is not consistent fails with LS_DATA_LOSS.
 */
#include "data/data.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "elements are saved in the byte order of memory");

enum { DEEPEST = LS_VALUE_MAX_DEPTH };

ls_status lsi_state_damaged(ls_error *err, const char *what)
{
    (void)lsi_fail(err, LS_DATA_LOSS, -1,
                   "the saved state of an iterator is damaged: %s; save it again, or "
                   "start from the beginning",
                   what);
    return LS_DATA_LOSS;
}

/* ---- writing ---- */

static uint8_t *reserve_bytes(lsi_state_writer *w, size_t n)
{
    size_t need = 0;

    if (w->failed || !lsi_add_size(w->size, n, &need)) {
        w->failed = true;
        return NULL;
    }
    if (need > w->room) {
        const size_t room = LSI_MAX(need, LSI_MAX(w->room * 2, 256));
        uint8_t *grown = lsi_realloc(w->bytes, w->size, room, 1);

        if (grown == NULL) {
            w->failed = true;
            return NULL;
        }
        w->bytes = grown;
        w->room = room;
    }
    uint8_t *at = w->bytes + w->size;
    w->size = need;
    return at;
}

static void put_bytes(lsi_state_writer *w, const void *p, size_t n)
{
    uint8_t *at = reserve_bytes(w, n);

    if (at != NULL && n > 0) {
        memcpy(at, p, n);
    }
}

void lsi_state_write_u64(lsi_state_writer *w, uint64_t x)
{
    put_bytes(w, &x, sizeof x);
}

void lsi_state_write_bool(lsi_state_writer *w, bool x)
{
    lsi_state_write_u64(w, x ? 1 : 0);
}

void lsi_state_write_bytes(lsi_state_writer *w, const void *p, size_t n)
{
    lsi_state_write_u64(w, n);
    put_bytes(w, p, n);
}

void lsi_state_write_failure(lsi_state_writer *w, const ls_error *err)
{
    lsi_state_write_u64(w, (uint64_t)err->code);
    lsi_state_write_u64(w, (uint64_t)err->kind);
    lsi_state_write_bytes(w, err->message, strlen(err->message));
}

void lsi_state_writer_clear(lsi_state_writer *w)
{
    lsi_free(w->bytes);
    *w = (lsi_state_writer){.lenient = w->lenient};
}

bool lsi_state_write_without(lsi_state_writer *w, const ls_dataset *d)
{
    if (!w->lenient && w->obstacle == NULL) {
        w->obstacle = ls_dataset_kind(d);
    }
    return w->lenient;
}

static void write_tensor(lsi_state_writer *w, const ls_tensor *t)
{
    const ls_shape shape = ls_tensor_shape(t);
    const size_t bytes = ls_tensor_bytes(t);
    const ls_string *strings = ls_tensor_data(t);
    uint8_t *at = NULL;

    lsi_state_write_u64(w, (uint64_t)ls_tensor_dtype(t));
    lsi_state_write_u64(w, (uint64_t)shape.ndim);
    for (int i = 0; i < shape.ndim; i++) {
        lsi_state_write_u64(w, (uint64_t)shape.dims[i]);
    }
    if (ls_tensor_dtype(t) == LS_STRING) {
        for (int64_t i = 0; i < ls_tensor_count(t); i++) {
            lsi_state_write_bytes(w, strings[i].ptr, strings[i].len);
        }
    } else if ((at = reserve_bytes(w, bytes)) != NULL) {
        if (ls_tensor_read(t, at, bytes, NULL) != LS_OK) {
            w->failed = true;
        }
    }
}

static void write_dataset(lsi_state_writer *w, const ls_dataset *d)
{
    size_t n = 0;
    ls_value *const *elements = lsi_dataset_elements(d, &n);

    if (elements == NULL) {
        if (w->obstacle == NULL) {
            w->obstacle = ls_dataset_kind(d);
        }
        return;
    }
    lsi_state_write_u64(w, n);
    for (size_t i = 0; i < n; i++) {
        lsi_state_write_value(w, elements[i]);
    }
}

static void write_items(lsi_state_writer *w, const ls_value *v)
{
    const char *type = ls_value_type_name(v);

    if (type != NULL) {
        lsi_state_write_bytes(w, type, strlen(type));
    }
    lsi_state_write_u64(w, ls_value_size(v));
    for (size_t i = 0; i < ls_value_size(v); i++) {
        const char *key = ls_value_key(v, i);

        if (key != NULL) {
            lsi_state_write_bytes(w, key, strlen(key));
        }
        lsi_state_write_value(w, ls_value_child(v, i));
    }
}

void lsi_state_write_value(lsi_state_writer *w, const ls_value *v)
{
    const ls_value_kind kind = ls_value_kind_of(v);

    lsi_state_write_u64(w, (uint64_t)kind);
    switch (kind) {
    case LS_VALUE_TENSOR:
        write_tensor(w, ls_value_as_tensor(v));
        break;
    case LS_VALUE_TUPLE:
    case LS_VALUE_LIST:
    case LS_VALUE_NAMED_TUPLE:
    case LS_VALUE_DICT:
        write_items(w, v);
        break;
    case LS_VALUE_DATASET:
        write_dataset(w, ls_value_as_dataset(v));
        break;
    default: // elements hold nothing else; see lsi_element_of()
        break;
    }
}

/* ---- reading ---- */

ls_status lsi_state_read_u64(lsi_state_reader *r, uint64_t *x, ls_error *err)
{
    if (r->size - r->at < sizeof *x) {
        return lsi_state_damaged(err, "it ends too early");
    }
    memcpy(x, r->bytes + r->at, sizeof *x);
    r->at += sizeof *x;
    return LS_OK;
}

ls_status lsi_state_read_count(lsi_state_reader *r, uint64_t max, uint64_t *x,
                               ls_error *err)
{
    uint64_t n = 0;
    const ls_status st = lsi_state_read_u64(r, &n, err);

    if (st == LS_OK && n > max) {
        return lsi_state_damaged(err, "a number is larger than it can be");
    }
    if (st == LS_OK) {
        *x = n;
    }
    return st;
}

ls_status lsi_state_read_bool(lsi_state_reader *r, bool *x, ls_error *err)
{
    uint64_t n = 0;
    const ls_status st = lsi_state_read_count(r, 1, &n, err);

    *x = n == 1;
    return st;
}

ls_status lsi_state_read_bytes(lsi_state_reader *r, const void **p, size_t *n,
                               ls_error *err)
{
    uint64_t length = 0;
    const ls_status st = lsi_state_read_u64(r, &length, err);

    if (st != LS_OK) {
        return st;
    }
    if (length > r->size - r->at) {
        return lsi_state_damaged(err, "a length is larger than what is left");
    }
    *p = r->bytes + r->at;
    *n = (size_t)length;
    r->at += (size_t)length;
    return LS_OK;
}

ls_status lsi_state_read_failure(lsi_state_reader *r, ls_error *x, ls_error *err)
{
    uint64_t code = 0, kind = 0;
    const void *text = NULL;
    size_t n = 0;
    ls_status st = lsi_state_read_count(r, LS_UNAUTHENTICATED, &code, err);

    if (st == LS_OK) {
        st = lsi_state_read_count(r, LS_KIND_RUNTIME, &kind, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_bytes(r, &text, &n, err);
    }
    if (st == LS_OK) {
        *x = (ls_error)LS_ERROR_INIT;
        x->code = (ls_status)code;
        x->kind = (ls_kind)kind;
        n = LSI_MIN(n, sizeof x->message - 1);
        memcpy(x->message, text, n);
        x->message[n] = '\0';
    }
    return st;
}

/* A name, as a NUL-terminated string that the caller frees. */
static ls_status read_name(lsi_state_reader *r, char **out, ls_error *err)
{
    const void *text = NULL;
    size_t n = 0;
    const ls_status st = lsi_state_read_bytes(r, &text, &n, err);

    if (st != LS_OK) {
        return st;
    }
    *out = lsi_alloc(n + 1, 1);
    if (*out == NULL) {
        return lsi_fail_memory(err, "a name", n);
    }
    memcpy(*out, text, n);
    return LS_OK;
}

static ls_status read_strings(lsi_state_reader *r, const ls_shape *shape, ls_tensor **out,
                              ls_error *err)
{
    const size_t n = (size_t)ls_shape_count(shape);
    ls_string *strings = NULL;
    ls_status st = LS_OK;

    if (n > (r->size - r->at) / sizeof(uint64_t)) {
        return lsi_state_damaged(err, "strings are missing");
    }
    strings = lsi_alloc(LSI_MAX(n, 1), sizeof *strings);
    if (strings == NULL) {
        return lsi_fail_memory(err, "strings of a saved state", n * sizeof *strings);
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        const void *text = NULL;

        st = lsi_state_read_bytes(r, &text, &strings[i].len, err);
        strings[i].ptr = text;
    }
    if (st == LS_OK) {
        st = lsi_tensor_create(r->device, LS_STRING, *shape, strings, out, err);
    }
    lsi_free(strings);
    return st;
}

static ls_status read_shape(lsi_state_reader *r, ls_dtype *dtype, ls_shape *shape,
                            size_t *bytes, ls_error *err)
{
    uint64_t number = 0, ndim = 0;
    int64_t count = 0;
    ls_status st = lsi_state_read_count(r, UINT8_MAX, &number, err);

    if (st == LS_OK) {
        st = lsi_state_read_count(r, LS_MAX_DIMS, &ndim, err);
    }
    *shape = (ls_shape){.ndim = (int)ndim};
    for (uint64_t i = 0; i < ndim && st == LS_OK; i++) {
        uint64_t dim = 0;

        st = lsi_state_read_count(r, INT64_MAX, &dim, err);
        shape->dims[i] = (int64_t)dim;
    }
    if (st != LS_OK) {
        return st;
    }
    *dtype = (ls_dtype)number;
    if (ls_dtype_size(*dtype) == 0 || !lsi_shape_bytes(shape, *dtype, &count, bytes)) {
        return lsi_state_damaged(err, "a tensor has an invalid dtype or shape");
    }
    return LS_OK;
}

static ls_status read_tensor(lsi_state_reader *r, ls_value **v, ls_error *err)
{
    ls_dtype dtype = LS_F32;
    ls_shape shape = {0};
    ls_tensor *t = NULL;
    size_t bytes = 0;
    ls_status st = read_shape(r, &dtype, &shape, &bytes, err);

    if (st != LS_OK) {
        return st;
    }
    if (dtype == LS_STRING) {
        st = read_strings(r, &shape, &t, err);
    } else if (bytes > r->size - r->at) {
        st = lsi_state_damaged(err, "a tensor has more bytes than are left");
    } else {
        st = lsi_tensor_create(r->device, dtype, shape, r->bytes + r->at, &t, err);
        r->at += bytes;
    }
    if (st == LS_OK) {
        st = ls_value_tensor(t, v, err);
    }
    ls_tensor_release(t);
    return st;
}

static ls_status read_at(lsi_state_reader *r, int depth, ls_value **v, ls_error *err);

/* Items of a structure, or elements of a window: each takes at least eight bytes. */
static ls_status read_many(lsi_state_reader *r, int depth, bool named, ls_value ***items,
                           char ***keys, size_t *n, ls_error *err)
{
    uint64_t count = 0;
    ls_status st = lsi_state_read_count(r, (r->size - r->at) / sizeof count, &count, err);

    if (st != LS_OK) {
        return st;
    }
    *n = (size_t)count;
    *items = lsi_alloc(LSI_MAX(*n, 1), sizeof(ls_value *));
    *keys = lsi_alloc(LSI_MAX(*n, 1), sizeof(char *));
    if (*items == NULL || *keys == NULL) {
        return lsi_fail_memory(err, "a saved element", *n * sizeof(ls_value *));
    }
    for (size_t i = 0; i < *n && st == LS_OK; i++) {
        if (named) {
            st = read_name(r, &(*keys)[i], err);
        }
        if (st == LS_OK) {
            st = read_at(r, depth + 1, &(*items)[i], err);
        }
    }
    return st;
}

static ls_status keep_window(ls_value *const *items, size_t n, ls_value **v,
                             ls_error *err)
{
    ls_spec *spec = NULL;
    ls_dataset *d = NULL;
    ls_status st =
        n > 0 ? lsi_spec_of(items[0], &spec, err) : lsi_spec_unknown(&spec, err);

    if (st == LS_OK) {
        d = lsi_dataset_of_elements(items, n, spec);
        st = d != NULL ? ls_value_dataset(d, v, err)
                       : lsi_fail_memory(err, "a window", n * sizeof(ls_value *));
    }
    ls_dataset_release(d);
    ls_spec_release(spec);
    return st;
}

static ls_status read_items(lsi_state_reader *r, int depth, ls_value_kind kind,
                            ls_value **v, ls_error *err)
{
    ls_value **items = NULL;
    char **keys = NULL, *type = NULL;
    size_t n = 0;
    const bool named = kind == LS_VALUE_DICT || kind == LS_VALUE_NAMED_TUPLE;
    ls_status st = LS_OK;

    if (kind == LS_VALUE_NAMED_TUPLE) {
        st = read_name(r, &type, err);
    }
    if (st == LS_OK) {
        st = read_many(r, depth, named, &items, &keys, &n, err);
    }
    if (st == LS_OK) {
        const char *const *names = (const char *const *)keys;

        if (kind == LS_VALUE_DATASET) {
            st = keep_window(items, n, v, err);
        } else if (kind == LS_VALUE_DICT) {
            st = ls_value_dict(names, items, n, v, err);
        } else if (named) {
            st = ls_value_named_tuple(type, names, items, n, v, err);
        } else {
            st = lsi_value_over(kind, items, n, v, err);
        }
        if (st == LS_INVALID_ARGUMENT) {
            st = lsi_state_damaged(err, "a structure is invalid");
        }
    }
    for (size_t i = 0; keys != NULL && i < n; i++) {
        lsi_free(keys[i]);
    }
    lsi_free(keys);
    lsi_free(type);
    lsi_value_release_all(items, n);
    return st;
}

static ls_status read_at(lsi_state_reader *r, int depth, ls_value **v, ls_error *err)
{
    uint64_t kind = 0;
    const ls_status st = lsi_state_read_u64(r, &kind, err);

    if (st != LS_OK) {
        return st;
    }
    if (depth >= DEEPEST) {
        return lsi_state_damaged(err, "an element is nested too deep");
    }
    switch (kind) {
    case LS_VALUE_TENSOR:
        return read_tensor(r, v, err);
    case LS_VALUE_TUPLE:
    case LS_VALUE_LIST:
    case LS_VALUE_NAMED_TUPLE:
    case LS_VALUE_DICT:
    case LS_VALUE_DATASET:
        return read_items(r, depth, (ls_value_kind)kind, v, err);
    default:
        return lsi_state_damaged(err, "an element has an unknown kind");
    }
}

ls_status lsi_state_read_value(lsi_state_reader *r, ls_value **v, ls_error *err)
{
    return read_at(r, 0, v, err);
}

ls_status lsi_state_read_element(lsi_state_reader *r, const ls_spec *spec, ls_value **v,
                                 ls_error *err)
{
    ls_value *read = NULL;
    ls_status st = read_at(r, 0, &read, err);

    if (st != LS_OK) {
        return st;
    }
    if (lsi_spec_check(spec, read, NULL) != LS_OK) {
        ls_value_release(read);
        return lsi_state_damaged(err,
                                 "an element does not have the spec of this dataset");
    }
    *v = read;
    return LS_OK;
}
