/* CSV files: fields, quotes, defaults, selected columns, batches, and failures. */
#include "data/file/csv_layout.h"
#include "data/file/file_cases.h"

#define ONE(name) ((const char *const[]){name})

static ls_value *literal_int(int64_t x)
{
    ls_value *v = NULL;

    LST_OK(ls_value_int(x, &v, NULL));
    return v;
}

static ls_value *literal_float(double x)
{
    ls_value *v = NULL;

    LST_OK(ls_value_float(x, &v, NULL));
    return v;
}

static ls_value *literal_string(const char *s)
{
    ls_value *v = NULL;

    LST_OK(ls_value_string((ls_string){s, strlen(s)}, &v, NULL));
    return v;
}

/* The file as a dataset of the columns, whose defaults are released. */
static ls_dataset *csv(const char *path, ls_csv_column *columns, size_t n,
                       const ls_csv_options *o)
{
    ls_dataset *d = ls_dataset_csv_files(ONE(path), 1, columns, n, o);

    for (size_t i = 0; i < n; i++) {
        ls_value_release(columns[i].otherwise);
    }
    return d;
}

static ls_dataset *strings(lst_folder *at, const char *text, size_t n)
{
    static const ls_csv_column columns[4] = {
        {LS_STRING, NULL}, {LS_STRING, NULL}, {LS_STRING, NULL}, {LS_STRING, NULL}};
    const char *path = lst_text_file(at, "s.csv", text);

    return ls_dataset_csv_files(ONE(path), 1, columns, n, NULL);
}

LST_TEST(D94_fields_take_their_defaults_and_a_bad_record_is_one_failure)
{
    lst_folder at;

    lst_enter(&at);
    const char *f =
        lst_text_file(&at, "c.csv", "1,2.5,abc\n,,\"x,\"\"y\"\"\"\n3,4,\n8, 9 ,z\n");
    ls_csv_column columns[3] = {
        {LS_I32, literal_int(7)}, {LS_F32, literal_float(0.5)}, {LS_STRING, NULL}};
    ls_dataset *d = csv(f, columns, 3, NULL);
    LST_CHECK(lst_epoch(d, "(1,2.5,abc) (7,0.5,x,\"y\") !INVALID_ARGUMENT (8,9,z)"));
    LST_CHECK(ls_spec_size(ls_dataset_spec(d)) == 3 &&
              ls_spec_dtype(ls_spec_child(ls_dataset_spec(d), 1)) == LS_F32);
    LST_CHECK(lst_says(ls_dataset_retain(d), 2, LS_INVALID_ARGUMENT,
                       "c.csv: line 3, column 3 (at byte 22): field 2 is required", ""));
    lst_saves(d, 5);
    lst_leave(&at);
}

LST_TEST(records_end_at_any_line_end_and_an_empty_line_is_one_empty_field)
{
    lst_folder at;

    lst_enter(&at);
    LST_CHECK(
        lst_gives(strings(&at, "a,b\r\nc,d\re,f\ng,h", 2), "(a,b) (c,d) (e,f) (g,h)"));
    LST_CHECK(
        lst_gives(strings(&at, "a,b\n\nc,d\n", 2), "(a,b) !INVALID_ARGUMENT (c,d)"));
    LST_CHECK(lst_gives(strings(&at, "", 2), ""));
    LST_CHECK(lst_gives(strings(&at, "a\r", 1), "(a)"));
    LST_CHECK(lst_gives(strings(&at, "\"a\nb\",\"c\r\nd\"\n", 2), "(a\nb,c\r\nd)"));
    lst_leave(&at);
}

LST_TEST(wrong_quotes_spoil_one_record_only)
{
    lst_folder at;

    lst_enter(&at);
    LST_CHECK(lst_gives(strings(&at, "a\"b,c\nd,e\n", 2), "!INVALID_ARGUMENT (d,e)"));
    // The quote before b is a mistake; the field ends at the quote before the comma.
    LST_CHECK(
        lst_gives(strings(&at, "\"a\"b\nx\",c\nd,e\n", 2), "!INVALID_ARGUMENT (d,e)"));
    LST_CHECK(lst_gives(strings(&at, "a,b\n\"c,d\ne,f\n", 2), "(a,b) !INVALID_ARGUMENT"));
    LST_CHECK(lst_says(strings(&at, "\"c,d\ne,f\n", 2), 0, LS_INVALID_ARGUMENT,
                       "ends inside of quotes", "column 1"));
    lst_leave(&at);
}

LST_TEST(too_few_and_too_many_fields_are_told_with_their_counts)
{
    lst_folder at;

    lst_enter(&at);
    LST_CHECK(lst_says(strings(&at, "a\n", 2), 0, LS_INVALID_ARGUMENT, "1 fields", "2"));
    LST_CHECK(
        lst_says(strings(&at, "a,b,c\n", 2), 0, LS_INVALID_ARGUMENT, "3 fields", "2"));
    LST_CHECK(lst_gives(strings(&at, "a,b,c\nd,e\n", 2), "!INVALID_ARGUMENT (d,e)"));
    lst_leave(&at);
}

LST_TEST(numbers_are_checked_and_large_floats_are_infinite)
{
    static const struct {
        const char *text, *want;
        ls_dtype dtype;
    } cases[] = {
        {"2147483647\n-2147483648\n2147483648\n",
         "(2147483647) (-2147483648) "
         "!INVALID_ARGUMENT",
         LS_I32},
        {"9223372036854775807\n-9223372036854775808\n9223372036854775808\n",
         "(9223372036854775807) (-9223372036854775808) !INVALID_ARGUMENT", LS_I64},
        {"\t 12 \n1.5\n \n+3\n-\n0x10\n",
         "(12) !INVALID_ARGUMENT !INVALID_ARGUMENT (3) "
         "!INVALID_ARGUMENT !INVALID_ARGUMENT",
         LS_I64},
        {"1e39\n-1e40\n1e-50\n.5\n-2.\n1,5\nnan\nx\n.\n",
         "(inf) (-inf) (0) (0.5) (-2) "
         "!INVALID_ARGUMENT (nan) !INVALID_ARGUMENT !INVALID_ARGUMENT",
         LS_F32},
        {"0.1\n123456.78\n16777217\n0.30000001192092896\n",
         "(0.1) (123457) (1.67772e+07) "
         "(0.3)",
         LS_F32},
    };
    lst_folder at;

    lst_enter(&at);
    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        const char *f = lst_text_file(&at, "n.csv", cases[i].text);
        ls_csv_column column = {cases[i].dtype, NULL};

        LST_CHECK(lst_gives(csv(f, &column, 1, NULL), cases[i].want));
    }
    lst_leave(&at);
}

LST_TEST(short_numbers_are_rounded_as_the_system_rounds_them)
{
    const locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    uint64_t seed = 1;

    for (int i = 0; i < 20000; i++) {
        char text[64];
        float f = 0, want_f;
        double d = 0, want_d;
        const int places = (int)(lst_random(&seed) % 13);
        const unsigned long long whole =
            lst_random(&seed) >> (14 + lst_random(&seed) % 48);

        const int n =
            snprintf(text, sizeof text, "%s%llu.%0*llu", i % 3 == 0 ? "-" : "", whole,
                     places, (unsigned long long)(lst_random(&seed) % 1000));
        LST_CHECK(lsi_csv_number(LS_F32, text, (size_t)n, c, &f));
        LST_CHECK(lsi_csv_number(LS_F64, text, (size_t)n, c, &d));
        want_f = strtof(text, NULL);
        want_d = strtod(text, NULL);
        LST_CHECK(f == want_f && signbit(f) == signbit(want_f));
        LST_CHECK(d == want_d && signbit(d) == signbit(want_d));
    }
    freelocale(c);
}

LST_TEST(columns_are_selected_or_excluded)
{
    static const int second[] = {1, 3}, backwards[] = {3, 1};
    ls_csv_options o = LS_CSV_OPTIONS_INIT;
    ls_csv_column columns[2] = {{LS_STRING, NULL}, {LS_STRING, NULL}};
    lst_folder at;

    lst_enter(&at);
    const char *f = lst_text_file(&at, "c.csv", "a,b,c,d\n1,2,3,4\n5,6\n");
    o.select = second;
    o.nselect = 2;
    LST_CHECK(lst_gives(csv(f, columns, 2, &o), "(b,d) (2,4) !INVALID_ARGUMENT"));
    o.nexclude = 2;
    o.exclude = second;
    LST_CHECK(lst_says(csv(f, columns, 2, &o), 0, LS_INVALID_ARGUMENT, "not both", ""));
    o.nselect = 0;
    LST_CHECK(lst_gives(csv(f, columns, 2, &o), "(a,c) (1,3) !INVALID_ARGUMENT"));
    o.exclude = backwards;
    LST_CHECK(
        lst_says(csv(f, columns, 2, &o), 0, LS_INVALID_ARGUMENT, "increasing", "1"));
    o.nexclude = 0;
    o.select = second;
    o.nselect = 1;
    LST_CHECK(lst_says(csv(f, columns, 2, &o), 0, LS_INVALID_ARGUMENT, "1 columns", "2"));
    lst_leave(&at);
}

LST_TEST(headers_delimiters_and_absent_values_are_options)
{
    ls_csv_options o = LS_CSV_OPTIONS_INIT;
    ls_csv_column columns[2] = {{LS_STRING, literal_string("?")}, {LS_STRING, NULL}};
    lst_folder at;

    lst_enter(&at);
    o.header = true;
    o.delimiter = ';';
    o.na = "NA";
    const char *f = lst_text_file(&at, "c.csv", "one header\na;b\nNA;c\n\"NA\";\"d\"\n");
    ls_dataset *d = csv(f, columns, 2, &o);
    lst_saves(ls_dataset_retain(d), 4);
    LST_CHECK(lst_gives(d, "(a,b) (?,c) (?,d)"));
    columns[0].otherwise = NULL;
    f = lst_text_file(&at, "e.csv", "");
    LST_CHECK(lst_gives(csv(f, columns, 2, &o), "!INVALID_ARGUMENT"));
    f = lst_text_file(&at, "q.csv", "a\"b\nc;d\n");
    d = csv(f, columns, 2, &o);
    lst_saves(ls_dataset_retain(d), 3);
    LST_CHECK(lst_gives(d, "!INVALID_ARGUMENT (c,d)"));
    o.header = false;
    o.plain_quotes = true;
    f = lst_text_file(&at, "p.csv", "\"a;b\"\n");
    LST_CHECK(lst_gives(csv(f, columns, 2, &o), "(\"a,b\")"));
    lst_leave(&at);
}

/* All elements of a dataset as text; it is released. */
static lst_text all_of(ls_dataset *d)
{
    lst_text text = {{0}, 0};
    ls_iterator *it = NULL;

    LST_OK(ls_dataset_iterate(d, &it, NULL));
    lst_put_rest(&text, it, 400);
    ls_iterator_release(it);
    ls_dataset_release(d);
    return text;
}

/* Batches are filled without making elements: the result is the same. */
LST_TEST(rows_of_batches_are_the_elements_one_by_one)
{
    static const char *const texts[] = {
        "",
        "1,a,2.5\n2,b,3\n3,c,4.25\n",
        "1,a,2.5\n,,\n3,NA,NA\nNA,c,1e3\n4,,",
        "1,\"a,b\",2\n2,\"x\"\"y\",3\n3,\"\",4\r\n4,z,5\r6,q,7",
        "1,a,2\nx,b,3\n3,c\n4,d,5,6\n5,e\"f,6\n6,\"g\"h\",7\n7,i,8\n\n8,\"j,9\n",
    };
    lst_folder at;

    lst_enter(&at);
    for (size_t i = 0; i < LSI_COUNT_OF(texts); i++) {
        const char *f = lst_text_file(&at, "b.csv", texts[i]);
        ls_csv_options o = LS_CSV_OPTIONS_INIT;

        o.na = "NA";
        for (size_t buffer = 1; buffer <= 64; buffer *= 4) {
            const char *name = buffer > 4 ? "none" : "";
            ls_csv_column columns[3] = {{LS_I64, literal_int(7)},
                                        {LS_STRING, literal_string(name)},
                                        {LS_F32, literal_float(0.5)}};
            o.read.buffer = buffer;
            ls_dataset *d = csv(f, columns, 3, &o);
            const lst_text want = all_of(ls_dataset_retain(d));

            const lst_text got =
                all_of(ls_dataset_unbatch(ls_dataset_batch(ls_dataset_retain(d), 1)));
            LST_CHECK(lst_same(&got, want.s));
            lst_saves(ls_dataset_batch(d, 2), 5);
        }
    }
    lst_leave(&at);
}

static char *many_records(size_t n, size_t *len)
{
    char *text = lsi_alloc(n, 64);

    *len = 0;
    for (size_t i = 0; text != NULL && i < n; i++) {
        *len += (size_t)snprintf(text + *len, 64, "%zu,name%zu,%zu.5\n", i, i * 7, i);
    }
    return text;
}

/* More records than the stage holds, and strings of several buffers. */
LST_TEST(long_batches_hold_every_record_once)
{
    enum { RECORDS = 1000 };
    const ls_csv_column columns[3] = {{LS_I64, NULL}, {LS_STRING, NULL}, {LS_F64, NULL}};
    ls_csv_options o = LS_CSV_OPTIONS_INIT;
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    lst_folder at;
    size_t len = 0;
    char *text = many_records(RECORDS, &len);

    lst_enter(&at);
    o.read.buffer = 300;
    const char *f = lst_file(&at, "m.csv", text, len);
    ls_dataset *d = ls_dataset_batch(ls_dataset_csv_files(ONE(f), 1, columns, 3, &o),
                                     2 * (int64_t)RECORDS);
    LST_OK(ls_dataset_iterate(d, &it, NULL));
    LST_OK(ls_iterator_next(it, &v, NULL));
    const int64_t *ids = ls_tensor_data(ls_value_as_tensor(ls_value_child(v, 0)));
    const ls_string *names = ls_tensor_data(ls_value_as_tensor(ls_value_child(v, 1)));
    const double *halves = ls_tensor_data(ls_value_as_tensor(ls_value_child(v, 2)));
    LST_CHECK(ls_tensor_dim(ls_value_as_tensor(ls_value_child(v, 1)), 0) == RECORDS);
    for (int64_t i = 0; i < RECORDS; i++) {
        char name[32];
        const int n = snprintf(name, sizeof name, "name%lld", (long long)i * 7);

        LST_CHECK(ids[i] == i && halves[i] == (double)i + 0.5);
        LST_CHECK(names[i].len == (size_t)n &&
                  memcmp(names[i].ptr, name, names[i].len) == 0);
    }
    ls_value_release(v);
    ls_iterator_release(it);
    ls_dataset_release(d);
    lsi_free(text);
    lst_leave(&at);
}

/* The first batch with the n-th allocation failing; false: there are fewer. */
static bool read_without(const char *path, int64_t n)
{
    const ls_csv_column columns[3] = {{LS_I64, NULL}, {LS_STRING, NULL}, {LS_F64, NULL}};
    ls_dataset *d =
        ls_dataset_batch(ls_dataset_csv_files(ONE(path), 1, columns, 3, NULL), 4);
    ls_error err = LS_ERROR_INIT;
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_status st;
    int64_t counted;

    LST_OK(ls_dataset_iterate(d, &it, &err));
    (void)lsi_alloc_fail_at(n);
    st = ls_iterator_next(it, &v, &err);
    counted = lsi_alloc_fail_at(0);
    LST_CHECK(st == LS_OK || st == LS_RESOURCE_EXHAUSTED);
    LST_CHECK(st == LS_OK || counted >= n);
    ls_value_release(v);
    ls_iterator_release(it);
    ls_dataset_release(d);
    return counted >= n;
}

LST_TEST(a_batch_that_gets_no_memory_says_so)
{
    lst_folder at;
    int64_t n = 1;

    lst_enter(&at);
    const char *f = lst_text_file(&at, "f.csv", "1,a,2\n2,b,3\n3,\"c\"\"d\",4\n");
    while (read_without(f, n)) {
        n++;
    }
    LST_CHECK(n > 10);
    lst_leave(&at);
}

LST_TEST(defaults_must_be_of_the_columns_kind)
{
    ls_csv_column wrong[] = {{LS_I32, literal_string("x")},
                             {LS_STRING, literal_int(1)},
                             {LS_I32, literal_int((int64_t)1 << 40)},
                             {LS_I64, literal_float(1)},
                             {LS_U8, NULL}};
    lst_folder at;

    lst_enter(&at);
    for (size_t i = 0; i < LSI_COUNT_OF(wrong); i++) {
        LST_CHECK(lst_says(csv("x", &wrong[i], 1, NULL), 0, LS_INVALID_ARGUMENT,
                           "column 0", ""));
    }
    LST_CHECK(lst_says(ls_dataset_csv_files(NULL, 0, NULL, 0, NULL), 0,
                       LS_INVALID_ARGUMENT, "at least one column", ""));
    lst_leave(&at);
}

LST_MAIN(LST_CASE(D94_fields_take_their_defaults_and_a_bad_record_is_one_failure),
         LST_CASE(records_end_at_any_line_end_and_an_empty_line_is_one_empty_field),
         LST_CASE(wrong_quotes_spoil_one_record_only),
         LST_CASE(too_few_and_too_many_fields_are_told_with_their_counts),
         LST_CASE(numbers_are_checked_and_large_floats_are_infinite),
         LST_CASE(short_numbers_are_rounded_as_the_system_rounds_them),
         LST_CASE(columns_are_selected_or_excluded),
         LST_CASE(headers_delimiters_and_absent_values_are_options),
         LST_CASE(rows_of_batches_are_the_elements_one_by_one),
         LST_CASE(long_batches_hold_every_record_once),
         LST_CASE(a_batch_that_gets_no_memory_says_so),
         LST_CASE(defaults_must_be_of_the_columns_kind))
