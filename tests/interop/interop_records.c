/*
 * The library's side of tensorflow_records.py: prints what the library reads, and writes
 * files from text.
 *
 *   interop_records dump FILE COMPRESSION      a line of hex for each record
 *   interop_records write FILE COMPRESSION     records from lines of hex on stdin
 *   interop_records make FILE                  Examples: "i name 1 2", "f name 0x1p-1",
 *                                              "b name 6869 -", and a line "." after each
 *   interop_records parse FILE BATCH           batches parsed as in features() below
 */
#include "data/data.h"
#include "ls_test.h"

#include "lockstep/example.h"
#include "lockstep/record.h"

#include <inttypes.h>

enum { LINE = 1 << 20, VALUES = 4096 };

#define TRY(call)                                                                        \
    do {                                                                                 \
        if ((call) != LS_OK) {                                                           \
            (void)fprintf(stderr, "%s: %s\n", #call, err->message);                      \
            return 1;                                                                    \
        }                                                                                \
    } while (0)

static void print_hex(ls_string s)
{
    for (size_t i = 0; i < s.len; i++) {
        (void)printf("%02x", (unsigned char)s.ptr[i]);
    }
}

/* In place: hex becomes bytes. */
static size_t from_hex(char *s)
{
    size_t n = 0;

    for (; s[2 * n] != '\0' && s[2 * n] != '\n'; n++) {
        const char pair[3] = {s[2 * n], s[2 * n + 1], '\0'};

        s[n] = (char)strtoul(pair, NULL, 16);
    }
    return n;
}

static int dump_records(const char *file, const char *compression, ls_error *err)
{
    ls_read_options o = LS_READ_OPTIONS_INIT;
    ls_dataset *d;
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_status st;

    o.compression = compression;
    d = ls_dataset_tfrecord_files(&file, 1, &o);
    TRY(ls_dataset_iterate(d, &it, err));
    while ((st = ls_iterator_next(it, &v, err)) == LS_OK) {
        print_hex(*(const ls_string *)ls_tensor_data(ls_value_as_tensor(v)));
        (void)printf("\n");
        ls_value_release(v);
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
    if (st != LS_OUT_OF_RANGE) {
        (void)fprintf(stderr, "%s\n", err->message);
    }
    return st == LS_OUT_OF_RANGE ? 0 : 1;
}

static int write_records(const char *file, const char *compression, ls_error *err)
{
    static char line[LINE];
    ls_record_writer *w = NULL;

    TRY(ls_record_writer_open(file, compression, &w, err));
    while (fgets(line, sizeof line, stdin) != NULL) {
        const size_t n = from_hex(line);

        TRY(ls_record_writer_write(w, line, n, err));
    }
    TRY(ls_record_writer_close(w, err));
    ls_record_writer_release(w);
    return 0;
}

/* Adds the feature that a line describes. */
static ls_status add_feature(ls_example *e, char *line, ls_error *err)
{
    static int64_t ints[VALUES];
    static float floats[VALUES];
    static ls_string texts[VALUES];
    char *rest = NULL;
    const char *kind = strtok_r(line, " \n", &rest), *name = strtok_r(NULL, " \n", &rest);
    size_t n = 0;

    for (char *word; n < VALUES && (word = strtok_r(NULL, " \n", &rest)) != NULL; n++) {
        ints[n] = strtoll(word, NULL, 10);
        floats[n] = strtof(word, NULL);
        texts[n].ptr = word;
        if (*kind == 'b') {
            texts[n].len = *word == '-' ? 0 : from_hex(word);
        }
    }
    switch (*kind) {
    case 'i':
        return ls_example_add_int64(e, name, ints, n, err);
    case 'f':
        return ls_example_add_float(e, name, floats, n, err);
    default:
        return ls_example_add_bytes(e, name, texts, n, err);
    }
}

/* Reads features from stdin; a "." ends an Example. */
static ls_status make_all(ls_record_writer *w, ls_example *e, ls_error *err)
{
    static char line[LINE];
    ls_status st = LS_OK;

    while (st == LS_OK && fgets(line, sizeof line, stdin) != NULL) {
        if (line[0] == '.') {
            st = ls_record_writer_write_example(w, e, err);
            ls_example_clear(e);
        } else {
            st = add_feature(e, line, err);
        }
    }
    return st;
}

static int make_examples(const char *file, ls_error *err)
{
    ls_record_writer *w = NULL;
    ls_example *e = NULL;

    TRY(ls_record_writer_open(file, NULL, &w, err));
    TRY(ls_example_create(&e, err));
    TRY(make_all(w, e, err));
    TRY(ls_record_writer_close(w, err));
    ls_record_writer_release(w);
    ls_example_release(e);
    return 0;
}

/* "[2, 3] 1 2 3 4 5 6"; floats by their bits, strings in hex. */
static void print_tensor(const char *name, const ls_tensor *t)
{
    (void)printf("%s [", name);
    for (int i = 0; i < ls_tensor_ndim(t); i++) {
        (void)printf(i > 0 ? ", %" PRId64 : "%" PRId64, ls_tensor_dim(t, i));
    }
    (void)printf("]");
    for (int64_t i = 0; i < ls_tensor_count(t); i++) {
        const char *p = (const char *)ls_tensor_data(t) +
                        (size_t)i * ls_dtype_size(ls_tensor_dtype(t));
        uint32_t bits;

        (void)printf(" ");
        switch (ls_tensor_dtype(t)) {
        case LS_I64:
            (void)printf("%" PRId64, *(const int64_t *)(const void *)p);
            break;
        case LS_F32:
            memcpy(&bits, p, sizeof bits);
            (void)printf("%08" PRIx32, bits);
            break;
        default:
            (void)printf("x");
            print_hex(*(const ls_string *)(const void *)p);
        }
    }
    (void)printf("\n");
}

static void print_value(const char *name, const ls_value *v)
{
    char path[200];

    if (ls_value_as_tensor(v) != NULL) {
        print_tensor(name, ls_value_as_tensor(v));
        return;
    }
    for (size_t i = 0; i < ls_value_size(v); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", name, ls_value_key(v, i));
        print_value(path, ls_value_child(v, i));
    }
}

static int parse_batches(const char *file, int64_t batch, ls_error *err)
{
    static const int64_t ints[2] = {7, 8};
    static const float minus = -1;
    ls_tensor *otherwise = NULL, *pad = NULL;
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_dataset *d;
    ls_status st;

    TRY(ls_tensor_create(NULL, LS_I64, LS_SHAPE(2), ints, &otherwise, err));
    TRY(ls_tensor_create(NULL, LS_F32, LS_SCALAR, &minus, &pad, err));
    {
        const ls_feature features[] = {
            {"fixed_i", LS_FEATURE_FIXED, LS_I64, LS_SHAPE(2), otherwise},
            {"fixed_f", LS_FEATURE_FIXED, LS_F32, LS_SHAPE(2, 2), NULL},
            {"fixed_b", LS_FEATURE_FIXED, LS_STRING, {0}, NULL},
            {"var_i", LS_FEATURE_VAR, LS_I64, {0}, NULL},
            {"var_f", LS_FEATURE_VAR, LS_F32, {0}, NULL},
            {"var_b", LS_FEATURE_VAR, LS_STRING, {0}, NULL},
            {"seq_i", LS_FEATURE_SEQUENCE, LS_I64, LS_SHAPE(2), NULL},
            {"seq_f", LS_FEATURE_SEQUENCE, LS_F32, {0}, pad},
            {"seq_b", LS_FEATURE_SEQUENCE, LS_STRING, {0}, NULL},
        };

        d = ls_dataset_batch(ls_dataset_tfrecord_files(&file, 1, NULL), batch);
        d = ls_dataset_parse_example(d, features, LSI_COUNT_OF(features), 2);
    }
    ls_tensor_release(otherwise);
    ls_tensor_release(pad);
    TRY(ls_dataset_iterate(d, &it, err));
    while ((st = ls_iterator_next(it, &v, err)) != LS_OUT_OF_RANGE) {
        if (st != LS_OK) {
            (void)printf("failed %s\n", ls_status_name(st));
            continue;
        }
        print_value("", v);
        ls_value_release(v);
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
    return 0;
}

int main(int argc, char **argv)
{
    ls_error error = LS_ERROR_INIT, *err = &error;

    if (argc == 4 && strcmp(argv[1], "dump") == 0) {
        return dump_records(argv[2], argv[3], err);
    }
    if (argc == 4 && strcmp(argv[1], "write") == 0) {
        return write_records(argv[2], argv[3], err);
    }
    if (argc == 3 && strcmp(argv[1], "make") == 0) {
        return make_examples(argv[2], err);
    }
    if (argc == 4 && strcmp(argv[1], "parse") == 0) {
        return parse_batches(argv[2], strtoll(argv[3], NULL, 10), err);
    }
    (void)fprintf(stderr, "dump, write, make or parse: see the top of this file\n");
    return 2;
}
