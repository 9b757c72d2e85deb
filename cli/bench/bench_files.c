/* Files for `lockstep bench input`, written and read back before anything is timed. */
#include "cli/bench/bench_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 32768, GZIP_RECORDS = 8192, EXAMPLES = 2048 };

static const char *const names[INPUT_NUMBERS] = {"n0", "n1", "n2", "n3", "n4",
                                                 "n5", "n6", "n7", "n8", "n9"};

static ls_status fail(ls_error *err, ls_status code, const char *what, const char *path)
{
    err->code = code;
    snprintf(err->message, sizeof err->message, "%s: %s", path, what);
    return code;
}

/* Bytes that compress to about half, different in every record. */
static void fill_record(int64_t index, unsigned char *out, size_t n)
{
    uint32_t state = 2463534242U + (uint32_t)index * 2654435761U;

    for (size_t i = 0; i < n; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        out[i] = (unsigned char)(state >> 8 & 15U);
    }
}

static ls_status write_records(const char *path, const char *compression, int64_t n,
                               ls_error *err)
{
    unsigned char record[INPUT_RECORD];
    ls_record_writer *w = NULL;
    ls_status st = ls_record_writer_open(path, compression, &w, err);

    for (int64_t i = 0; st == LS_OK && i < n; i++) {
        fill_record(i, record, sizeof record);
        st = ls_record_writer_write(w, record, sizeof record, err);
    }
    if (st == LS_OK) {
        st = ls_record_writer_close(w, err);
    }
    ls_record_writer_release(w);
    return st;
}

static ls_status fill_example(ls_example *e, int64_t index, ls_error *err)
{
    unsigned char image[INPUT_IMAGE];
    const ls_string bytes = {(const char *)image, sizeof image};
    ls_status st = LS_OK;

    ls_example_clear(e);
    for (int i = 0; st == LS_OK && i < INPUT_NUMBERS; i++) {
        const int64_t whole = index * INPUT_NUMBERS + i;
        const float number = (float)whole;

        st = i % 2 == 0 ? ls_example_add_int64(e, names[i], &whole, 1, err)
                        : ls_example_add_float(e, names[i], &number, 1, err);
    }
    fill_record(index, image, sizeof image);
    return st == LS_OK ? ls_example_add_bytes(e, "image", &bytes, 1, err) : st;
}

static ls_status write_examples(const char *path, ls_error *err)
{
    ls_record_writer *w = NULL;
    ls_example *e = NULL;
    ls_status st = ls_record_writer_open(path, NULL, &w, err);

    if (st == LS_OK) {
        st = ls_example_create(&e, err);
    }
    for (int64_t i = 0; st == LS_OK && i < EXAMPLES; i++) {
        st = fill_example(e, i, err);
        if (st == LS_OK) {
            st = ls_record_writer_write_example(w, e, err);
        }
    }
    if (st == LS_OK) {
        st = ls_record_writer_close(w, err);
    }
    ls_record_writer_release(w);
    ls_example_release(e);
    return st;
}

ls_status input_files_make(input_files *f, ls_error *err)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment
    const char *where = getenv("TMPDIR");
    ls_status st;

    memset(f, 0, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "%s/lockstep-bench-XXXXXX",
             where != NULL && where[0] != '\0' && strlen(where) < 200 ? where : "/tmp");
    if (mkdtemp(f->folder) == NULL) {
        st = fail(err, LS_UNKNOWN, "no folder can be made; TMPDIR says where", f->folder);
        f->folder[0] = '\0';
        return st;
    }
    snprintf(f->plain, sizeof f->plain, "%s/plain.tfrecord", f->folder);
    snprintf(f->gzip, sizeof f->gzip, "%s/gzip.tfrecord", f->folder);
    snprintf(f->examples, sizeof f->examples, "%s/examples.tfrecord", f->folder);
    f->records = RECORDS;
    f->gzip_records = GZIP_RECORDS;
    f->example_records = EXAMPLES;
    st = write_records(f->plain, NULL, RECORDS, err);
    if (st == LS_OK) {
        st = write_records(f->gzip, "GZIP", GZIP_RECORDS, err);
    }
    return st == LS_OK ? write_examples(f->examples, err) : st;
}

void input_files_remove(input_files *f)
{
    if (f->folder[0] == '\0') {
        return;
    }
    (void)unlink(f->plain);
    (void)unlink(f->gzip);
    (void)unlink(f->examples);
    (void)rmdir(f->folder);
}

/* ---- reading back ---- */

void input_features(ls_feature features[INPUT_FEATURES])
{
    for (int i = 0; i < INPUT_NUMBERS; i++) {
        features[i] =
            (ls_feature){.name = names[i], .dtype = i % 2 == 0 ? LS_I64 : LS_F32};
    }
    features[INPUT_NUMBERS] =
        (ls_feature){.name = "image",
                     .dtype = LS_U8,
                     .shape = ls_shape_of(1, &(int64_t){INPUT_IMAGE})};
}

static bool same_record(const ls_value *v, int64_t index)
{
    const ls_tensor *t = ls_value_as_tensor(v);
    const ls_string *s = t != NULL ? ls_tensor_data(t) : NULL;
    unsigned char record[INPUT_RECORD];

    fill_record(index, record, sizeof record);
    return s != NULL && ls_tensor_count(t) == 1 && s->len == sizeof record &&
           memcmp(s->ptr, record, sizeof record) == 0;
}

/* The numbers and the image of one row of a batch that was parsed. */
static bool same_example(const ls_value *batch, int64_t row, int64_t index)
{
    const ls_tensor *image = ls_value_as_tensor(ls_value_find(batch, "image"));
    unsigned char pixels[INPUT_IMAGE];
    bool same = image != NULL && ls_tensor_data(image) != NULL;

    for (int i = 0; same && i < INPUT_NUMBERS; i++) {
        const ls_tensor *t = ls_value_as_tensor(ls_value_find(batch, names[i]));
        const void *data = t != NULL ? ls_tensor_data(t) : NULL;
        const int64_t want = index * INPUT_NUMBERS + i;

        same = data != NULL && (i % 2 == 0 ? ((const int64_t *)data)[row] == want
                                           : ((const float *)data)[row] == (float)want);
    }
    fill_record(index, pixels, sizeof pixels);
    return same &&
           memcmp((const unsigned char *)ls_tensor_data(image) + row * INPUT_IMAGE,
                  pixels, sizeof pixels) == 0;
}

static ls_status check_file(ls_dataset *d, const char *path, int64_t records, bool parsed,
                            ls_error *err)
{
    ls_iterator *it = NULL;
    int64_t seen = 0;
    ls_status st = d != NULL ? ls_dataset_iterate(d, &it, err) : LS_RESOURCE_EXHAUSTED;

    while (st == LS_OK) {
        ls_value *v = NULL;
        int64_t rows = 1;

        st = ls_iterator_next(it, &v, err);
        if (st == LS_OK && parsed) {
            const ls_tensor *first = ls_value_as_tensor(ls_value_find(v, names[0]));

            rows = first != NULL ? ls_tensor_dim(first, 0) : 0;
        }
        for (int64_t row = 0; st == LS_OK && row < rows; row++, seen++) {
            if (!(parsed ? same_example(v, row, seen) : same_record(v, seen))) {
                st =
                    fail(err, LS_INTERNAL, "what was read is not what was written", path);
            }
        }
        ls_value_release(v);
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
    if (st == LS_OUT_OF_RANGE) {
        st =
            seen == records ? LS_OK : fail(err, LS_INTERNAL, "records are missing", path);
    }
    return st;
}

ls_status input_files_check(const input_files *f, ls_error *err)
{
    const char *const plain[] = {f->plain}, *const gzip[] = {f->gzip},
                      *const examples[] = {f->examples};
    ls_read_options read = LS_READ_OPTIONS_INIT;
    ls_feature features[INPUT_FEATURES];
    ls_status st = check_file(ls_dataset_tfrecord_files(plain, 1, NULL), f->plain,
                              f->records, false, err);

    read.compression = "GZIP";
    if (st == LS_OK) {
        st = check_file(ls_dataset_tfrecord_files(gzip, 1, &read), f->gzip,
                        f->gzip_records, false, err);
    }
    if (st == LS_OK) {
        input_features(features);
        st = check_file(
            ls_dataset_parse_example(
                ls_dataset_batch(ls_dataset_tfrecord_files(examples, 1, NULL), 100),
                features, INPUT_FEATURES, 0),
            f->examples, f->example_records, true, err);
    }
    return st;
}
