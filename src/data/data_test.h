/* Helpers of dataset tests: elements as text, pipelines read to their end, saving. */
#ifndef LSI_DATA_TEST_H
#define LSI_DATA_TEST_H
#include "data/data.h"
#include "ls_test.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

typedef struct lst_text {
    char s[4096];
    size_t n;
} lst_text;

static inline void lst_put(lst_text *t, const char *s)
{
    const size_t n = strlen(s);

    if (t->n + n < sizeof t->s) {
        memcpy(t->s + t->n, s, n + 1);
        t->n += n;
    }
}

static inline void lst_put_scalar(lst_text *t, ls_dtype dtype, const void *p)
{
    char number[64];

    switch (dtype) {
    case LS_I64:
        (void)snprintf(number, sizeof number, "%" PRId64, *(const int64_t *)p);
        break;
    case LS_I32:
        (void)snprintf(number, sizeof number, "%" PRId32, *(const int32_t *)p);
        break;
    case LS_F32:
        (void)snprintf(number, sizeof number, "%g", (double)*(const float *)p);
        break;
    case LS_STRING: {
        const ls_string *s = p;

        (void)snprintf(number, sizeof number, "%.*s", (int)s->len, s->ptr);
        break;
    }
    default:
        (void)snprintf(number, sizeof number, "%u", *(const unsigned char *)p);
        break;
    }
    lst_put(t, number);
}

static inline const char *lst_put_axis(lst_text *t, const ls_tensor *x, int axis,
                                       const char *p)
{
    if (axis == ls_tensor_ndim(x)) {
        lst_put_scalar(t, ls_tensor_dtype(x), p);
        return p + ls_dtype_size(ls_tensor_dtype(x));
    }
    lst_put(t, "[");
    for (int64_t i = 0; i < ls_tensor_dim(x, axis); i++) {
        lst_put(t, i > 0 ? " " : "");
        p = lst_put_axis(t, x, axis + 1, p);
    }
    lst_put(t, "]");
    return p;
}

static inline void lst_put_events(lst_text *t, ls_dataset *d, int most);

/* "5", "[0 1]", "(1,[2 3])", "{a:1,b:2}", "<0 1>" for a dataset. */
static inline void lst_put_value(lst_text *t, const ls_value *v)
{
    const ls_tensor *x = ls_value_as_tensor(v);
    ls_dataset *d = ls_value_as_dataset(v);

    if (x != NULL) {
        (void)lst_put_axis(t, x, 0, ls_tensor_data(x));
        return;
    }
    if (d != NULL) {
        lst_put(t, "<");
        lst_put_events(t, d, 100);
        lst_put(t, ">");
        return;
    }
    lst_put(t, ls_value_kind_of(v) == LS_VALUE_DICT ? "{" : "(");
    for (size_t i = 0; i < ls_value_size(v); i++) {
        lst_put(t, i > 0 ? "," : "");
        if (ls_value_key(v, i) != NULL) {
            lst_put(t, ls_value_key(v, i));
            lst_put(t, ":");
        }
        lst_put_value(t, ls_value_child(v, i));
    }
    lst_put(t, ls_value_kind_of(v) == LS_VALUE_DICT ? "}" : ")");
}

/* One call: its element, "!CODE", or nothing and false at the end. */
static inline bool lst_put_next(lst_text *t, ls_iterator *it)
{
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    const ls_status st = ls_iterator_next(it, &v, &err);

    if (st == LS_OUT_OF_RANGE) {
        return false;
    }
    lst_put(t, t->n > 0 && t->s[t->n - 1] != '<' ? " " : "");
    if (st == LS_OK) {
        lst_put_value(t, v);
        ls_value_release(v);
    } else {
        lst_put(t, "!");
        lst_put(t, ls_status_name(st));
    }
    return true;
}

static inline void lst_put_rest(lst_text *t, ls_iterator *it, int most)
{
    int n = 0;

    while (n < most && lst_put_next(t, it)) {
        n++;
    }
    if (n == most) {
        lst_put(t, " ...");
    }
}

/* The elements of a pass, up to `most` calls (then "..."); "!CODE" if it fails. */
static inline void lst_put_events(lst_text *t, ls_dataset *d, int most)
{
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    const ls_status st = ls_dataset_iterate(d, &it, &err);

    if (st != LS_OK) {
        lst_put(t, "!");
        lst_put(t, ls_status_name(st));
        return;
    }
    lst_put_rest(t, it, most);
    ls_iterator_release(it);
}

static inline bool lst_same(const lst_text *have, const char *want)
{
    if (strcmp(have->s, want) != 0) {
        (void)fprintf(stderr, "  gave   %s\n  wanted %s\n", have->s, want);
        return false;
    }
    return true;
}

/* One epoch of a dataset that stays the caller's. */
static inline bool lst_epoch(ls_dataset *d, const char *want)
{
    lst_text t = {{0}, 0};

    lst_put_events(&t, d, 60);
    return lst_same(&t, want);
}

/* The same of a dataset that is released. */
static inline bool lst_gives(ls_dataset *d, const char *want)
{
    const bool same = lst_epoch(d, want);

    ls_dataset_release(d);
    return same;
}

/* A vector of int64 as a value. */
static inline ls_value *lst_ints(size_t n, const int64_t *x)
{
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_OK(ls_tensor_create(NULL, LS_I64, ls_shape_of(1, (const int64_t[]){(int64_t)n}),
                            x, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return v;
}
#define LST_INTS(...)                                                                    \
    lst_ints(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                   \
             (const int64_t[]){__VA_ARGS__})

/* A tuple of two values, which are released. */
static inline ls_value *lst_pair(ls_value *a, ls_value *b)
{
    ls_value *v = NULL;

    LST_OK(ls_value_tuple((ls_value *[]){a, b}, 2, &v, NULL));
    ls_value_release(a);
    ls_value_release(b);
    return v;
}

static inline ls_dataset *lst_slices(ls_value *v)
{
    ls_dataset *d = ls_dataset_slices(v);

    ls_value_release(v);
    return d;
}

static inline ls_dataset *lst_range(int64_t n)
{
    return ls_dataset_range(0, n, 1);
}

/* The code a dataset has failed with; it is released. */
static inline ls_status lst_code(ls_dataset *d)
{
    ls_error err = LS_ERROR_INIT;
    const ls_status st = ls_dataset_status(d, &err);

    LST_CHECK(st == LS_OK || err.message[0] != '\0');
    ls_dataset_release(d);
    return st;
}

/* The text of a dataset's spec; it stays the caller's. */
static inline bool lst_spec_is(const ls_dataset *d, const char *want)
{
    lst_text t = {{0}, 0};

    t.n = ls_spec_text(ls_dataset_spec(d), t.s, sizeof t.s);
    return lst_same(&t, want);
}

/* A zip of two datasets. */
static inline ls_dataset *lst_zip(ls_dataset *a, ls_dataset *b)
{
    return ls_dataset_zip((ls_dataset *[]){a, b}, 2);
}

/* 0 1 2 3 4, without an end. */
static inline ls_dataset *lst_endless(void)
{
    return ls_dataset_repeat(lst_range(5), -1);
}

/* Batches of 2, 2, 3, 2 and 2 elements. */
static inline ls_dataset *lst_uneven_batches(void)
{
    return ls_dataset_concatenate(
        ls_dataset_batch(lst_range(4), 2),
        ls_dataset_concatenate(ls_dataset_batch(lst_range(3), 3),
                               ls_dataset_batch(lst_range(4), 2)));
}

/* Whether a dataset failed while it was built, with this exception of TensorFlow's. */
static inline bool lst_raises(ls_dataset *d, const char *python)
{
    ls_error err = LS_ERROR_INIT;
    const bool same = ls_dataset_status(d, &err) == LS_INVALID_ARGUMENT &&
                      strcmp(ls_error_python(&err), python) == 0;

    if (!same) {
        (void)fprintf(stderr, "  gave   %s: %s\n", ls_error_python(&err), err.message);
    }
    ls_dataset_release(d);
    return same;
}

/* Reads `most` elements of a dataset, which is released, or all of them: INT_MAX. */
static inline ls_status lst_read(ls_dataset *d, int most, ls_error *err)
{
    ls_iterator *it = NULL;
    ls_status st = ls_dataset_iterate(d, &it, err);

    for (int i = 0; i < most && st == LS_OK; i++) {
        ls_value *v = NULL;

        st = ls_iterator_next(it, &v, err);
        ls_value_release(v);
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
    return st == LS_OUT_OF_RANGE && most == INT_MAX ? LS_OK : st;
}

/*
 * For every k: after k calls the position is saved and restored into an iterator of a
 * second dataset, built in the same way. The k elements and the rest are together those
 * of a pass without saving; the first iterator is not affected; and the next epoch of the
 * second dataset is the next epoch of the first.
 */
static inline void lst_saves_everywhere(ls_dataset *(*build)(void), lst_place at)
{
    lst_text whole = {{0}, 0}, second = {{0}, 0};
    ls_dataset *plain = build();
    int calls = 0;

    lst_put_events(&whole, plain, 60);
    lst_put_events(&second, plain, 60);
    ls_dataset_release(plain);
    for (bool more = true; more && calls < 60; calls++) {
        lst_text resumed = {{0}, 0}, same = {{0}, 0}, next = {{0}, 0};
        ls_dataset *a = build(), *b = build();
        ls_iterator *one = NULL, *two = NULL;
        ls_value *state = NULL;
        ls_error err = LS_ERROR_INIT;

        lst_ok(ls_dataset_iterate(a, &one, &err), at, "iterate");
        lst_ok(ls_dataset_iterate(b, &two, &err), at, "iterate");
        for (int k = 0; k < calls && more; k++) {
            more = lst_put_next(&resumed, one);
        }
        same = resumed;
        (void)lst_put_next(&next, two); // a position that restoring replaces
        next = (lst_text){{0}, 0};
        lst_ok(ls_iterator_save(one, &state, &err), at,
               err.message[0] != '\0' ? err.message : "save");
        lst_ok(ls_iterator_restore(two, state, &err), at,
               err.message[0] != '\0' ? err.message : "restore");
        lst_put_rest(&resumed, two, 60 - calls);
        lst_put_rest(&same, one, 60 - calls);
        if (calls < 60) {
            lst_check(lst_same(&resumed, whole.s), at, "the rest after restoring");
            lst_check(lst_same(&same, whole.s), at, "the rest after saving");
        }
        if (strstr(whole.s, "...") == NULL) {
            lst_put_events(&next, b, 60);
            lst_check(lst_same(&next, second.s), at, "the next epoch");
        }
        ls_value_release(state);
        ls_iterator_release(one);
        ls_iterator_release(two);
        ls_dataset_release(a);
        ls_dataset_release(b);
    }
}
#define LST_SAVES(build) lst_saves_everywhere(build, LST_HERE)
#endif
