/* Parsing Examples: fixed, sparse and padded features, strings, damage, threads. */
#include "data/file/example_parser.h"
#include "data/file/file_cases.h"

#include "lockstep/record.h"

static const char unpacked[] = "0a0d0a0b0a0178120"
                               "61a0408010802"; // x: 1 2

/* Records from hex, as a vector of strings that the caller releases. */
static ls_value *records_of(const char *const *hex, size_t n)
{
    static uint8_t bytes[16][256];
    ls_string s[16];
    const int64_t dim = (int64_t)n;
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    for (size_t i = 0; i < n; i++) {
        s[i] = (ls_string){(const char *)bytes[i],
                           lst_unhex(hex[i], bytes[i], sizeof bytes[i])};
    }
    LST_OK(ls_tensor_create(NULL, LS_STRING, ls_shape_of(1, &dim), s, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return v;
}

/* On no device, by one thread. */
static const lsi_parse_plan alone = {NULL, NULL, 0};

/* One record parsed, as text; or the failure's code, with the message in *err. */
static lst_text single(const char *hex, const ls_feature *f, size_t n, ls_error *err)
{
    ls_value *v = records_of(&hex, 1), *row = NULL;
    ls_context *c = NULL;
    lst_text t = {{0}, 0};

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    LST_OK(lsi_value_row(v, 0, NULL, &row, NULL));
    const ls_value *out = (ls_parse_single_example)(c, ls_value_as_tensor(row), f, n);
    if (out != NULL) {
        lst_put_value(&t, out);
    }
    if (ls_context_finish(c, err) != LS_OK) {
        lst_put(&t, "!");
        lst_put(&t, ls_status_name(err->code));
    }
    ls_context_close(c);
    ls_value_release(row);
    ls_value_release(v);
    return t;
}

static bool gives(const char *hex, ls_feature f, const char *want)
{
    ls_error err = LS_ERROR_INIT;
    const lst_text t = single(hex, &f, 1, &err);

    return lst_same(&t, want);
}

/* Whether the record is refused with a message that has both words. */
static bool refuses(const char *hex, ls_feature f, const char *a, const char *b)
{
    ls_error err = LS_ERROR_INIT;
    const lst_text t = single(hex, &f, 1, &err);
    const bool good = lst_same(&t, "!INVALID_ARGUMENT") &&
                      strstr(err.message, a) != NULL && strstr(err.message, b) != NULL;

    if (!good) {
        (void)fprintf(stderr, "  said %s\n", err.message);
    }
    return good;
}

static ls_tensor *scalar_i64(int64_t x)
{
    ls_tensor *t = NULL;

    LST_OK(ls_tensor_create(NULL, LS_I64, LS_SCALAR, &x, &t, NULL));
    return t;
}

LST_TEST(D98_fixed_features_are_exact_and_may_be_unpacked)
{
    ls_tensor *nine = scalar_i64(9);
    const ls_shape two = LS_SHAPE(2), three = LS_SHAPE(3);

    LST_CHECK(
        gives(unpacked, (ls_feature){"x", .dtype = LS_I64, .shape = two}, "{x:[1 2]}"));
    LST_CHECK(refuses(unpacked, (ls_feature){"x", .dtype = LS_I64, .shape = three},
                      "feature x has 2", "3 are expected"));
    LST_CHECK(
        refuses(unpacked, (ls_feature){"x", .dtype = LS_I64}, "feature x has 2", "1"));
    LST_CHECK(refuses(unpacked, (ls_feature){"x", .dtype = LS_F32, .shape = two},
                      "x holds int64", "float32"));
    LST_CHECK(
        gives(unpacked, (ls_feature){"y", .dtype = LS_I64, .otherwise = nine}, "{y:9}"));
    LST_CHECK(refuses(unpacked, (ls_feature){"y", .dtype = LS_I64}, "y is absent",
                      "there are: x"));
    LST_CHECK(refuses("", (ls_feature){"y", .dtype = LS_I64}, "y is absent",
                      "there are: none"));
    ls_tensor_release(nine);
}

LST_TEST(D100_an_empty_list_is_not_absent_but_no_kind_is)
{
    ls_tensor *five = scalar_i64(5);
    const ls_feature f = {"x", .dtype = LS_I64, .otherwise = five};

    LST_CHECK(refuses("0a090a070a017812021a00", f, "x has 0", "1"));
    LST_CHECK(gives("0a070a050a01781200", f, "{x:5}"));
    LST_CHECK(gives("", f, "{x:5}"));
    ls_tensor_release(five);
}

static const char *const ft[] = {"0a100a0e0a0266741208120"
                                 "60a0400008040",
                                 "",
                                 "0a180a160a026674121"
                                 "0120e0a0c0000a0400000c0400000e040"};

static ls_dataset *batch_of(const char *const *hex, size_t n, int64_t size)
{
    return ls_dataset_batch(lst_slices(records_of(hex, n)), size);
}

LST_TEST(D99_features_of_any_length_are_sparse_or_padded)
{
    const float pad = -1;
    ls_tensor *minus = NULL;
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SCALAR, &pad, &minus, NULL));
    const ls_feature var = {"ft", LS_FEATURE_VAR, LS_F32, {0}, NULL};
    const ls_feature seq = {"ft", LS_FEATURE_SEQUENCE, LS_F32, {0}, minus};

    for (int parallel = -1; parallel < 3; parallel++) {
        ls_dataset *d = ls_dataset_parse_example(batch_of(ft, 3, 3), &var, 1, parallel);

        LST_CHECK(strcmp(ls_dataset_kind(d), "parse_example") == 0);
        LST_CHECK(ls_dataset_cardinality(d) == 1);
        const ls_spec *s = ls_spec_child(ls_dataset_spec(d), 0);
        LST_CHECK(ls_spec_kind_of(s) == LS_SPEC_SPARSE && ls_spec_ndim(s) == 2);
        LST_CHECK(lst_gives(d, "{ft:(indices:[[0 0] [2 0] [2 1] [2 2]],values:[4 5 6 7],"
                               "dense_shape:[3 3])}"));
        d = ls_dataset_parse_example(batch_of(ft, 3, 3), &seq, 1, parallel);
        LST_CHECK(lst_gives(d, "{ft:[[4 -1 -1] [-1 -1 -1] [5 6 7]]}"));
    }
    LST_CHECK(gives(ft[2], var,
                    "{ft:(indices:[[0] [1] [2]],values:[5 6 7],"
                    "dense_shape:[3])}"));
    LST_CHECK(gives(ft[2], seq, "{ft:[5 6 7]}"));
    LST_CHECK(gives(ft[1], seq, "{ft:[]}"));
    LST_CHECK(gives(ft[1], var, "{ft:(indices:[],values:[],dense_shape:[0])}"));
    const ls_feature pairs = {"ft", LS_FEATURE_SEQUENCE, LS_F32, LS_SHAPE(2), NULL};
    LST_CHECK(refuses(ft[2], pairs, "ft has 3", "multiple of 2"));
    ls_tensor_release(minus);
}

LST_TEST(strings_lie_in_the_records_and_outlive_them)
{
    // a: hi hi, then word hi hi "" (of two entries the last is used)
    static const char *const hex[] = {
        "0a210a0f0a0161120a0a080a0268690a0268690a0e0a06756e7573656412041a020801",
        "0a340a190a016112140a120a04776f72640a0268690a0268690a0268690a170a016112120a100a04"
        "77"
        "6f72640a0268690a0268690a00"};
    const ls_feature seq = {"a", LS_FEATURE_SEQUENCE, LS_STRING, LS_SHAPE(2), NULL};
    const ls_feature fix = {"a", .dtype = LS_STRING, .shape = LS_SHAPE(2)};
    const ls_feature var = {"a", LS_FEATURE_VAR, LS_STRING, {0}, NULL};

    LST_CHECK(lst_gives(ls_dataset_parse_example(batch_of(hex, 2, 2), &seq, 1, 0),
                        "{a:[[[hi hi] [ ]] [[word hi] [hi ]]]}"));
    LST_CHECK(gives(hex[0], fix, "{a:[hi hi]}"));
    LST_CHECK(lst_gives(ls_dataset_parse_example(batch_of(hex, 2, 2), &var, 1, 0),
                        "{a:(indices:[[0 0] [0 1] [1 0] [1 1] [1 2] [1 3]],values:[hi hi "
                        "word hi hi ],dense_shape:[2 4])}"));
    LST_CHECK(refuses(hex[1], fix, "a has 4", "2"));
}

static void note(void *user)
{
    ++*(int *)user;
}

LST_TEST(records_live_as_long_as_the_strings_that_lie_in_them)
{
    uint8_t bytes[64];
    const ls_string s = {(const char *)bytes,
                         lst_unhex("0a0b0a090a016112040a020a00", bytes, sizeof bytes)};
    const ls_feature f = {"a", .dtype = LS_STRING};
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    lsi_example_parser p;
    int gone = 0;

    LST_OK(lsi_example_parser_init(&p, &f, 1, NULL));
    LST_OK(ls_tensor_wrap(NULL, LS_STRING, LS_SCALAR, &s, note, &gone, &t, NULL));
    LST_OK(lsi_example_parser_run(&p, t, false, &alone, &v, NULL));
    ls_tensor_release(t);
    LST_CHECK(gone == 0);
    ls_value_release(v);
    LST_CHECK(gone == 1);
    lsi_example_parser_clear(&p);
}

LST_TEST(bytes_become_elements_of_uint8)
{
    static const uint8_t pixels[] = {1, 2, 3, 4, 5, 255};
    const ls_string s = {(const char *)pixels, sizeof pixels}, twice[2] = {s, s};
    ls_example *e = NULL;
    ls_string bytes = {NULL, 0};
    ls_tensor *t = NULL;
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;
    const int64_t label = 7;

    LST_OK(ls_example_create(&e, &err));
    LST_OK(ls_example_add_bytes(e, "image", &s, 1, &err));
    LST_OK(ls_example_add_bytes(e, "two", twice, 2, &err));
    LST_OK(ls_example_add_int64(e, "label", &label, 1, &err));
    LST_OK(ls_example_serialize(e, &bytes, &err));
    LST_OK(ls_tensor_create(NULL, LS_STRING, LS_SCALAR, &bytes, &t, &err));
    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    const ls_tensor *image = (ls_example_feature)(c, t, "image", LS_U8, LS_SHAPE(2, 3));
    LST_CHECK(image != NULL && ls_tensor_ndim(image) == 2 &&
              memcmp(ls_tensor_data(image), pixels, sizeof pixels) == 0);
    const ls_tensor *number = (ls_example_feature)(c, t, "label", LS_I64, LS_SCALAR);
    LST_CHECK(number != NULL && *(const int64_t *)ls_tensor_data(number) == 7);
    LST_OK(ls_context_finish(c, &err));
    LST_CHECK((ls_example_feature)(c, t, "image", LS_U8, LS_SHAPE(7)) == NULL);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "image has 6");
    LST_CHECK((ls_example_feature)(c, t, "two", LS_U8, LS_SHAPE(6)) == NULL);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "two is not one");
    LST_CHECK((ls_example_feature)(c, t, "label", LS_U8, LS_SHAPE(6)) == NULL);
    LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "label holds int64");
    ls_context_close(c);
    ls_tensor_release(t);
    ls_example_release(e);
}

LST_TEST(every_cut_and_every_flipped_bit_is_refused_or_read_within_its_bytes)
{
    uint8_t bytes[256];
    const size_t len =
        lst_unhex("0a370a130a0161120e1a0c0a0affffffffffffffffff010a110a01621"
                  "20c120a0a080000003f000000c00a0d0a016312080a060a0268690a00",
                  bytes, sizeof bytes);
    const ls_feature all[] = {{"a", LS_FEATURE_VAR, LS_I64, {0}, NULL},
                              {"b", LS_FEATURE_VAR, LS_F32, {0}, NULL},
                              {"c", LS_FEATURE_VAR, LS_STRING, {0}, NULL}};
    lsi_example_parser p;
    int good = 0, bad = 0;

    LST_OK(lsi_example_parser_init(&p, all, 3, NULL));
    for (size_t i = 0; i < len * 9; i++) {
        const size_t n = i < len * 8 ? len : i - len * 8;
        uint8_t *copy = malloc(n > 0 ? n : 1); // a sanitizer finds reads beyond it
        const ls_string s = {(const char *)copy, n};
        ls_tensor *t = NULL;
        ls_value *v = NULL;
        ls_error err = LS_ERROR_INIT;

        memcpy(copy, bytes, n);
        if (i < len * 8) {
            copy[i / 8] ^= (uint8_t)(1 << i % 8);
        }
        LST_OK(ls_tensor_wrap(NULL, LS_STRING, LS_SCALAR, &s, NULL, NULL, &t, NULL));
        if (lsi_example_parser_run(&p, t, false, &alone, &v, &err) == LS_OK) {
            good++;
            LST_CHECK(n == len || n == 0); // a cut is always found
        } else {
            bad++;
            LST_CHECK(err.code == LS_INVALID_ARGUMENT);
        }
        ls_value_release(v);
        ls_tensor_release(t);
        free(copy);
    }
    LST_CHECK(good > 0 && bad > 100);
    LST_CHECK(
        refuses("0a0b0a090a0162120412020d00", all[1], "b is not a list", "damaged"));
    lsi_example_parser_clear(&p);
}

LST_TEST(many_threads_tell_the_first_wrong_record_and_give_the_same_batch)
{
    enum { ROWS = 200 };
    ls_string rows[ROWS];
    uint8_t good[64], wrong[64];
    const size_t n = lst_unhex(unpacked, good, sizeof good);
    const size_t m = lst_unhex("0a090a070a017812021a00", wrong, sizeof wrong);
    const int64_t dim = ROWS;
    const ls_feature f[2] = {{"x", .dtype = LS_I64, .shape = LS_SHAPE(2)},
                             {"z", LS_FEATURE_VAR, LS_I64, {0}, NULL}};
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    lsi_example_parser p;
    lsi_parse_plan at = {ls_runtime_device(NULL, 0), NULL, 4};

    at.threads = lsi_runtime_input_threads(at.device->runtime);
    for (int i = 0; i < ROWS; i++) {
        rows[i] = (ls_string){(const char *)good, n};
    }
    LST_OK(lsi_example_parser_init(&p, f, 2, &err));
    LST_OK(ls_tensor_create(NULL, LS_STRING, ls_shape_of(1, &dim), rows, &t, &err));
    LST_OK(lsi_example_parser_run(&p, t, true, &at, &v, &err));
    const int64_t *x = ls_tensor_data(ls_value_as_tensor(ls_value_find(v, "x")));
    for (size_t i = 0; i < ROWS; i++) {
        LST_CHECK(x[2 * i] == 1 && x[2 * i + 1] == 2);
    }
    ls_value_release(v);
    ls_tensor_release(t);
    rows[55] = rows[77] = rows[199] = (ls_string){(const char *)wrong, m};
    LST_OK(ls_tensor_create(NULL, LS_STRING, ls_shape_of(1, &dim), rows, &t, &err));
    for (at.parallel = 0; at.parallel < 9; at.parallel++) {
        LST_FAILS(lsi_example_parser_run(&p, t, true, &at, &v, &err), LS_INVALID_ARGUMENT,
                  err, "record 55");
    }
    ls_tensor_release(t);
    lsi_example_parser_clear(&p);
}

LST_TEST(features_and_inputs_are_checked_when_the_dataset_is_built)
{
    const ls_feature f = {"x", .dtype = LS_I64};
    const ls_feature wrong[] = {
        {NULL, .dtype = LS_I64},
        {"x", .dtype = LS_I32},
        {"x", LS_FEATURE_VAR, LS_U8, {0}, NULL},
        {"x", .dtype = LS_I64, .shape = LS_SHAPE(-1)},
        {"x", LS_FEATURE_SEQUENCE, LS_I64, LS_SHAPE(1, 1, 1, 1, 1, 1, 1), NULL},
    };
    const ls_feature twice[] = {f, f};
    ls_spec *s = NULL;

    for (size_t i = 0; i < LSI_COUNT_OF(wrong); i++) {
        LST_CHECK(lst_says(ls_dataset_parse_example(batch_of(ft, 3, 3), &wrong[i], 1, 0),
                           0, LS_INVALID_ARGUMENT, "feature", ""));
    }
    LST_CHECK(lst_says(ls_dataset_parse_example(batch_of(ft, 3, 3), twice, 2, 0), 0,
                       LS_INVALID_ARGUMENT, "x", "twice"));
    LST_CHECK(lst_says(ls_dataset_parse_example(batch_of(ft, 3, 3), NULL, 0, 0), 0,
                       LS_INVALID_ARGUMENT, "at least one", ""));
    LST_CHECK(lst_says(ls_dataset_parse_example(lst_range(3), &f, 1, 0), 0,
                       LS_INVALID_ARGUMENT, "batches", "int64"));
    LST_CHECK(lst_says(ls_dataset_parse_example(batch_of(ft, 3, 3), &f, 1, -2), 0,
                       LS_INVALID_ARGUMENT, "-2", ""));
    LST_OK(ls_example_spec(&f, 1, true, 4, &s, NULL));
    LST_CHECK(ls_spec_ndim(ls_spec_child(s, 0)) == 1 &&
              ls_spec_dim(ls_spec_child(s, 0), 0) == 4);
    ls_spec_release(s);
    const ls_feature one = {"x", .dtype = LS_I64, .shape = LS_SHAPE(2)};
    const char *const two[] = {unpacked, unpacked, unpacked};
    ls_dataset *d = ls_dataset_parse_example(batch_of(two, 3, 1), &one, 1, 0);
    lst_saves(ls_dataset_retain(d), 4);
    LST_CHECK(lst_gives(d, "{x:[[1 2]]} {x:[[1 2]]} {x:[[1 2]]}"));
}

LST_MAIN(LST_CASE(D98_fixed_features_are_exact_and_may_be_unpacked),
         LST_CASE(D100_an_empty_list_is_not_absent_but_no_kind_is),
         LST_CASE(D99_features_of_any_length_are_sparse_or_padded),
         LST_CASE(strings_lie_in_the_records_and_outlive_them),
         LST_CASE(records_live_as_long_as_the_strings_that_lie_in_them),
         LST_CASE(bytes_become_elements_of_uint8),
         LST_CASE(every_cut_and_every_flipped_bit_is_refused_or_read_within_its_bytes),
         LST_CASE(many_threads_tell_the_first_wrong_record_and_give_the_same_batch),
         LST_CASE(features_and_inputs_are_checked_when_the_dataset_is_built))
