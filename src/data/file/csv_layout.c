/* The layout of CSV records: its checks, defaults, and the conversion of fields. */
#include "data/file/csv_layout.h"

#include <inttypes.h>
#include <math.h>

static ls_status fail_column(ls_error *err, ls_kind kind, const char *what, size_t column)
{
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, kind, "CSV column %zu: %s", column,
                         what);
}

/* Takes over a default; it must be a literal of the column's kind. */
static ls_status set_default(lsi_csv_field *f, const ls_csv_column *column, size_t i,
                             ls_error *err)
{
    ls_string s;

    f->dtype = column->dtype;
    if (f->dtype != LS_I32 && f->dtype != LS_I64 && f->dtype != LS_F32 &&
        f->dtype != LS_F64 && f->dtype != LS_STRING) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "CSV column %zu is %s: it can be int32, int64, float32, "
                             "float64 or string",
                             i, ls_dtype_name(f->dtype));
    }
    if (column->otherwise == NULL) {
        return LS_OK;
    }
    f->optional = true;
    if (f->dtype == LS_STRING) {
        if (!ls_value_as_string(column->otherwise, &s)) {
            return fail_column(err, LS_KIND_TYPE, "the default of a string is a string",
                               i);
        }
        f->string = ls_value_retain(column->otherwise);
        return LS_OK;
    }
    if (ls_value_as_int(column->otherwise, &f->integer)) {
        f->number = (double)f->integer;
        if (f->dtype == LS_I32 && (f->integer < INT32_MIN || f->integer > INT32_MAX)) {
            return fail_column(err, LS_KIND_VALUE, "the default does not fit in int32",
                               i);
        }
        return LS_OK;
    }
    if ((f->dtype == LS_F32 || f->dtype == LS_F64) &&
        ls_value_as_float(column->otherwise, &f->number)) {
        return LS_OK;
    }
    return fail_column(err, LS_KIND_TYPE,
                       "the default is of another kind than the column", i);
}

/* Checks and copies the list of columns to select or to exclude. */
static ls_status set_listed(lsi_csv_layout *l, const ls_csv_options *o, ls_error *err)
{
    const int *list = o->nselect > 0 ? o->select : o->exclude;
    const size_t n = o->nselect > 0 ? o->nselect : o->nexclude;

    if (o->nselect > 0 && o->nexclude > 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "CSV: columns are selected or excluded, not both");
    }
    if (o->nselect > 0 && o->nselect != l->n) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "CSV: %zu columns are selected and %zu are described",
                             o->nselect, l->n);
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i] < 0 || (i > 0 && list[i] <= list[i - 1])) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                 "CSV: the columns listed are 0 or more and strictly "
                                 "increasing; %d at place %zu is not",
                                 list[i], i);
        }
    }
    l->some = o->nselect > 0;
    l->nlisted = n;
    if (n > 0) {
        l->listed = lsi_alloc(n, sizeof *l->listed);
        if (l->listed == NULL) {
            return lsi_fail_memory(err, "CSV columns", n * sizeof *l->listed);
        }
        memcpy(l->listed, list, n * sizeof *list);
    }
    return LS_OK;
}

ls_status lsi_csv_layout_create(const ls_csv_column *columns, size_t n,
                                const ls_csv_options *opts, lsi_csv_layout **out,
                                ls_error *err)
{
    static const ls_csv_options none = LS_CSV_OPTIONS_INIT;
    const ls_csv_options *o = opts != NULL ? opts : &none;
    lsi_csv_layout *l;
    ls_status st = LS_OK;

    if (n == 0 || columns == NULL || n > INT32_MAX) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "CSV: describe at least one column");
    }
    l = lsi_alloc(1, sizeof *l + n * sizeof l->fields[0]);
    if (l == NULL) {
        return lsi_fail_memory(err, "CSV columns", n * sizeof l->fields[0]);
    }
    atomic_init(&l->refs, 1);
    l->n = n;
    l->header = o->header;
    l->quotes = !o->plain_quotes;
    l->delimiter = ',';
    if (o->delimiter != 0) {
        l->delimiter = o->delimiter;
    }
    l->na = lsi_strdup(o->na != NULL ? o->na : "");
    if (l->na == NULL) {
        st = lsi_fail_memory(err, "CSV options", 1);
        goto out;
    }
    l->na_len = strlen(l->na);
    if (l->delimiter == '\n' || l->delimiter == '\r' ||
        (l->quotes && l->delimiter == '"')) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                           "CSV: fields cannot be delimited by quotes or line ends");
        goto out;
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        st = set_default(&l->fields[i], &columns[i], i, err);
    }
    if (st == LS_OK) {
        st = set_listed(l, o, err);
    }
out:
    if (st != LS_OK) {
        lsi_csv_layout_release(l);
        return st;
    }
    *out = l;
    return LS_OK;
}

lsi_csv_layout *lsi_csv_layout_retain(lsi_csv_layout *layout)
{
    atomic_fetch_add(&layout->refs, 1);
    return layout;
}

void lsi_csv_layout_release(lsi_csv_layout *layout)
{
    if (layout == NULL || atomic_fetch_sub(&layout->refs, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < layout->n; i++) {
        ls_value_release(layout->fields[i].string);
    }
    lsi_free(layout->na);
    lsi_free(layout->listed);
    lsi_free(layout);
}

ls_status lsi_csv_layout_spec(const lsi_csv_layout *layout, ls_spec **out, ls_error *err)
{
    ls_spec **items = lsi_alloc(layout->n, sizeof(ls_spec *));
    ls_status st = LS_OK;

    if (items == NULL) {
        return lsi_fail_memory(err, "CSV columns", layout->n * sizeof(ls_spec *));
    }
    for (size_t i = 0; i < layout->n && st == LS_OK; i++) {
        st = ls_spec_tensor(layout->fields[i].dtype, 0, NULL, &items[i], err);
    }
    if (st == LS_OK) {
        st = ls_spec_tuple(items, layout->n, out, err);
    }
    for (size_t i = 0; i < layout->n; i++) {
        ls_spec_release(items[i]);
    }
    lsi_free(items);
    return st;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool to_integer(const char *s, size_t len, int64_t lowest, int64_t highest,
                       int64_t *out)
{
    const bool minus = len > 0 && *s == '-';
    int64_t x = 0;
    size_t i = len > 0 && (*s == '-' || *s == '+') ? 1 : 0;

    if (i == len) {
        return false;
    }
    for (; i < len; i++) {
        const int digit = s[i] - '0';

        // Accumulated as a negative number: INT64_MIN has no positive counterpart.
        if (digit < 0 || digit > 9 || x < INT64_MIN / 10 || x * 10 < INT64_MIN + digit) {
            return false;
        }
        x = x * 10 - digit;
    }
    if (!minus && x == INT64_MIN) {
        return false;
    }
    x = minus ? x : -x;
    *out = x;
    return x >= lowest && x <= highest;
}

/* Digits with at most one point, few enough to be exact: *m * 10^-*places. */
static bool short_decimal(const char *s, size_t len, int64_t *m, int *places)
{
    bool point = false;

    *m = 0;
    *places = 0;
    if (len == 0 || len > 15) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '.' && !point && len > 1) {
            point = true;
        } else if (s[i] >= '0' && s[i] <= '9') {
            *m = *m * 10 + (s[i] - '0');
            *places += point;
        } else {
            return false;
        }
    }
    return true;
}

static bool to_float(ls_dtype dtype, const char *s, size_t len, locale_t c, void *to)
{
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const size_t sign = len > 0 && (*s == '-' || *s == '+') ? 1 : 0;
    char text[512]; // a double never needs more than some 350 characters
    char *end = text;
    int64_t m;
    int places;

    // Both numbers are exact, so their quotient is rounded once, as strtod() does it.
    if (short_decimal(s + sign, len - sign, &m, &places)) {
        if (dtype == LS_F64) {
            const double x = (double)m / power[places];

            *(double *)to = *s == '-' ? -x : x;
            return true;
        }
        if (m < 1 << 24 && places <= 10) {
            const float x = (float)m / (float)power[places];

            *(float *)to = *s == '-' ? -x : x;
            return true;
        }
    }
    if (len == 0 || len >= sizeof text || memchr(s, '\0', len) != NULL || is_blank(*s)) {
        return false;
    }
    memcpy(text, s, len);
    text[len] = '\0';
    {
        const locale_t mine = uselocale(c);

        if (dtype == LS_F64) {
            *(double *)to = strtod(text, &end);
        } else {
            *(float *)to = strtof(text, &end);
        }
        (void)uselocale(mine);
    }
    return end == text + len;
}

bool lsi_csv_number(ls_dtype dtype, const char *text, size_t len, locale_t c, void *to)
{
    int64_t x;

    while (len > 0 && is_blank(*text)) {
        text++;
        len--;
    }
    while (len > 0 && is_blank(text[len - 1])) {
        len--;
    }
    switch (dtype) {
    case LS_I32:
        if (!to_integer(text, len, INT32_MIN, INT32_MAX, &x)) {
            return false;
        }
        *(int32_t *)to = (int32_t)x;
        return true;
    case LS_I64:
        if (!to_integer(text, len, INT64_MIN, INT64_MAX, &x)) {
            return false;
        }
        *(int64_t *)to = x;
        return true;
    default:
        return to_float(dtype, text, len, c, to);
    }
}

bool lsi_csv_is_absent(const lsi_csv_layout *layout, ls_string text)
{
    return text.len == 0 ||
           (text.len == layout->na_len && memcmp(text.ptr, layout->na, text.len) == 0);
}

void lsi_csv_default(const lsi_csv_field *f, void *to)
{
    switch (f->dtype) {
    case LS_I32:
        *(int32_t *)to = (int32_t)f->integer;
        break;
    case LS_I64:
        *(int64_t *)to = f->integer;
        break;
    case LS_F32:
        *(float *)to = (float)f->number;
        break;
    default:
        *(double *)to = f->number;
    }
}
