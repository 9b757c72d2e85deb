/*
 * Fuzz target for serialized Examples: the bytes as one record, and cut in two as a
 * batch.
 */
#include "data/file/example_parser.h"
#include "fuzz.h"
#include "lockstep/record.h"

static void parse(const lsi_example_parser *p, const ls_string *records, int64_t n)
{
    const bool batched = n > 0;
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_status st;

    FUZZ_CHECK(ls_tensor_wrap(NULL, LS_STRING, batched ? ls_shape_of(1, &n) : LS_SCALAR,
                              records, NULL, NULL, &t, &err) == LS_OK);
    st =
        lsi_example_parser_run(p, t, batched, &(lsi_parse_plan){NULL, NULL, 0}, &v, &err);
    FUZZ_CHECK(st == LS_OK || st == LS_INVALID_ARGUMENT);
    if (st == LS_OK) {
        (void)fuzz_sum_value(v);
    } else {
        FUZZ_CHECK(err.message[0] != '\0');
    }
    ls_value_release(v);
    ls_tensor_release(t);
}

/* The features without knowing them: what is counted is also there. */
static void walk(ls_string record)
{
    ls_example_walk w = LS_EXAMPLE_WALK_INIT(record);
    ls_error err = LS_ERROR_INIT;
    ls_example_entry e;
    ls_status st;

    while ((st = ls_example_walk_next(&w, &e, &err)) == LS_OK) {
        void *values = calloc(e.count + 1, sizeof(ls_string));

        FUZZ_CHECK(values != NULL);
        FUZZ_CHECK((e.kind == LS_LIST_NONE && e.count == 0) ||
                   ls_example_entry_int64(&e, values, e.count) +
                           ls_example_entry_float(&e, values, e.count) +
                           ls_example_entry_bytes(&e, values, e.count) ==
                       e.count);
        free(values);
    }
    FUZZ_CHECK(st == LS_OUT_OF_RANGE ||
               (st == LS_INVALID_ARGUMENT && err.message[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t nine[2] = {9, 9};
    static const ls_string text = {"text", 4};
    ls_tensor *numbers = NULL, *word = NULL;
    ls_string records[3];
    lsi_example_parser p;

    if (size < 1) {
        return 0;
    }
    FUZZ_CHECK(ls_tensor_create(NULL, LS_I64, LS_SHAPE(2), nine, &numbers, NULL) ==
               LS_OK);
    FUZZ_CHECK(ls_tensor_create(NULL, LS_STRING, LS_SCALAR, &text, &word, NULL) == LS_OK);
    {
        const ls_feature features[] = {
            {"a", LS_FEATURE_FIXED, LS_I64, LS_SHAPE(2), numbers},
            {"b", LS_FEATURE_VAR, LS_F32, {0}, NULL},
            {"c", LS_FEATURE_SEQUENCE, LS_STRING, {0}, word},
            {"d", LS_FEATURE_VAR, LS_STRING, {0}, NULL},
            {"e", LS_FEATURE_SEQUENCE, LS_I64, LS_SHAPE(2), NULL},
            {"f", LS_FEATURE_VAR, LS_I64, {0}, NULL},
            {"g", LS_FEATURE_SEQUENCE, LS_F32, LS_SHAPE(0), NULL},
        };
        const size_t cut = data[0] % size;

        FUZZ_CHECK(lsi_example_parser_init(&p, features, LSI_COUNT_OF(features), NULL) ==
                   LS_OK);
        records[0] = (ls_string){(const char *)data + 1, size - 1};
        parse(&p, records, 0);
        walk(records[0]);
        records[0].len = cut;
        records[1] = (ls_string){(const char *)data + 1 + cut, size - 1 - cut};
        records[2] = (ls_string){NULL, 0};
        parse(&p, records, 3);
        lsi_example_parser_clear(&p);
    }
    ls_tensor_release(numbers);
    ls_tensor_release(word);
    return 0;
}
