/* The writers of TFRecord files and of Examples: their bytes, flushing, failures. */
#include "data/file/file_cases.h"

#include "lockstep/record.h"

#define ONE(name) ((const char *const[]){name})

static bool is_hex(ls_string s, const char *hex)
{
    uint8_t bytes[512];
    const size_t len = lst_unhex(hex, bytes, sizeof bytes);

    return s.len == len && memcmp(s.ptr, bytes, len) == 0;
}

/* Whether the file has these bytes. */
static bool file_is(const char *path, const char *hex)
{
    void *data = NULL;
    size_t len = 0;
    bool same;

    LST_OK(lsi_file_read(path, 1 << 20, &data, &len, NULL));
    same = is_hex((ls_string){data, len}, hex);
    lsi_free(data);
    return same;
}

static void write_one(const char *path, const void *data, size_t len)
{
    ls_record_writer *w = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_record_writer_open(path, NULL, &w, &err));
    LST_OK(ls_record_writer_write(w, data, len, &err));
    LST_OK(ls_record_writer_close(w, &err));
    ls_record_writer_release(w);
}

LST_TEST(D95_records_are_tensorflows_bytes)
{
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_path(&at, "a");
    write_one(a, NULL, 0);
    LST_CHECK(file_is(a, "00*8.29039807d8ea82a2"));
    write_one(a, "abc", 3);
    LST_CHECK(file_is(a, "0300*7.b099490e6162636e57f121"));
    lst_leave(&at);
}

LST_TEST(D96_D97_examples_are_tensorflows_bytes_with_sorted_keys)
{
    static const int64_t ints[] = {1, 2, 300}, minus = -1;
    static const float floats[] = {0.5f, -2.0f};
    static const ls_string texts[] = {{"hi", 2}, {"", 0}};
    ls_example *e = NULL;
    ls_string s = {NULL, 0};
    ls_error err = LS_ERROR_INIT;
    lst_folder at;

    lst_enter(&at);
    LST_OK(ls_example_create(&e, &err));
    LST_OK(ls_example_serialize(e, &s, &err));
    LST_CHECK(s.len == 0);
    LST_OK(ls_example_add_int64(e, "x", ints, 3, &err));
    LST_OK(ls_example_serialize(e, &s, &err));
    LST_CHECK(is_hex(s, "0a0f0a0d0a017812081a060a040102ac02"));
    const char *a = lst_path(&at, "a");
    write_one(a, s.ptr, s.len);
    LST_CHECK(file_is(a, "1100*7.9d6db52e0a0f0a0d0a017812081a060a040102ac0293fb71ac"));
    ls_example_clear(e);
    LST_OK(ls_example_add_bytes(e, "c", texts, 2, &err));
    LST_OK(ls_example_add_float(e, "b", floats, 1, &err));
    LST_OK(ls_example_add_int64(e, "a", &minus, 1, &err));
    LST_OK(ls_example_add_float(e, "b", floats, 2, &err)); // replaces the first
    LST_OK(ls_example_serialize(e, &s, &err));
    LST_CHECK(is_hex(s, "0a370a130a0161120e1a0c0a0affffffffffffffffff010a110a0162120c120a"
                        "0a080000003f000000c00a0d0a016312080a060a0268690a00"));
    LST_OK(ls_example_add_int64(e, "x", NULL, 0, &err)); // present and empty
    LST_FAILS(ls_example_add_int64(e, "x", NULL, 1, &err), LS_INVALID_ARGUMENT, err, "x");
    LST_FAILS(ls_example_add_float(e, NULL, floats, 1, &err), LS_INVALID_ARGUMENT, err,
              "NULL");
    ls_example_release(e);
    lst_leave(&at);
}

LST_TEST(compressed_records_read_back_equal_also_after_a_flush)
{
    static const char *const how[] = {"", "ZLIB", "GZIP"};
    char data[3000];
    uint64_t seed = 1;
    lst_folder at;

    lst_enter(&at);
    for (size_t i = 0; i < LSI_COUNT_OF(how); i++) {
        const ls_read_options o = {sizeof o, how[i], 0, 0};
        const char *a = lst_path(&at, *how[i] == '\0' ? "plain" : how[i]);
        ls_record_writer *w = NULL;
        ls_error err = LS_ERROR_INIT;
        ls_iterator *it = NULL;
        uint64_t again;

        again = ++seed;
        LST_OK(ls_record_writer_open(a, how[i], &w, &err));
        for (int k = 0; k < 300; k++) {
            for (size_t b = 0; b < sizeof data; b++) {
                data[b] = (char)(lst_random(&seed) % 7);
            }
            LST_OK(
                ls_record_writer_write(w, data, lst_random(&seed) % sizeof data, &err));
            if (k == 100) {
                LST_OK(ls_record_writer_flush(w, &err));
            }
        }
        LST_OK(ls_record_writer_close(w, &err));
        ls_record_writer_release(w);
        ls_dataset *d = ls_dataset_tfrecord_files(ONE(a), 1, &o);
        LST_OK(ls_dataset_iterate(d, &it, &err));
        for (int k = 0; k < 300; k++) {
            ls_value *v = NULL;
            const ls_string *s;

            for (size_t b = 0; b < sizeof data; b++) {
                data[b] = (char)(lst_random(&again) % 7);
            }
            LST_OK(ls_iterator_next(it, &v, &err));
            s = ls_tensor_data(ls_value_as_tensor(v));
            LST_CHECK(s->len == lst_random(&again) % sizeof data &&
                      memcmp(s->ptr, data, s->len) == 0);
            ls_value_release(v);
        }
        ls_iterator_release(it);
        ls_dataset_release(d);
    }
    lst_leave(&at);
}

LST_TEST(a_flushed_file_can_be_read_while_it_is_written)
{
    ls_record_writer *w = NULL;
    ls_error err = LS_ERROR_INIT;
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_path(&at, "a");
    const ls_read_options gzip = {sizeof gzip, "GZIP", 0, 0};
    LST_OK(ls_record_writer_open(a, "GZIP", &w, &err));
    LST_OK(ls_record_writer_write(w, "one", 3, &err));
    LST_OK(ls_record_writer_flush(w, &err));
    LST_OK(ls_record_writer_write(w, "two", 3, &err));
    LST_CHECK(lst_gives(ls_dataset_tfrecord_files(ONE(a), 1, &gzip), "one"));
    ls_record_writer_release(w); // also closes it
    LST_CHECK(lst_gives(ls_dataset_tfrecord_files(ONE(a), 1, &gzip), "one two"));
    lst_leave(&at);
}

LST_TEST(a_closed_writer_refuses_and_a_failed_one_stays_failed)
{
    ls_record_writer *w = NULL;
    ls_error err = LS_ERROR_INIT;
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_path(&at, "a");
    LST_OK(ls_record_writer_open(a, NULL, &w, &err));
    LST_FAILS(ls_record_writer_write(w, NULL, 1, &err), LS_INVALID_ARGUMENT, err, "NULL");
    LST_OK(ls_record_writer_close(w, &err));
    LST_OK(ls_record_writer_close(w, &err));
    LST_FAILS(ls_record_writer_write(w, "x", 1, &err), LS_FAILED_PRECONDITION, err,
              "closed");
    LST_FAILS(ls_record_writer_flush(w, &err), LS_FAILED_PRECONDITION, err, "closed");
    ls_record_writer_release(w);
    LST_FAILS(ls_record_writer_open(at.path, NULL, &w, &err), LS_FAILED_PRECONDITION, err,
              at.path);
    LST_FAILS(ls_record_writer_open(a, "BZ2", &w, &err), LS_INVALID_ARGUMENT, err, "BZ2");
#ifdef __linux__
    LST_OK(ls_record_writer_open("/dev/full", NULL, &w, &err));
    LST_OK(ls_record_writer_write(w, "x", 1, &err)); // not written yet
    LST_FAILS(ls_record_writer_flush(w, &err), LS_RESOURCE_EXHAUSTED, err, "/dev/full");
    LST_FAILS(ls_record_writer_write(w, "x", 1, &err), LS_RESOURCE_EXHAUSTED, err,
              "/dev/full");
    LST_FAILS(ls_record_writer_close(w, &err), LS_RESOURCE_EXHAUSTED, err, "/dev/full");
    ls_record_writer_release(w);
#endif
    lst_leave(&at);
}

/* Features f0 to f999 with their numbers as values, added upwards or downwards. */
static ls_example *many(bool backwards)
{
    ls_example *e = NULL;

    LST_OK(ls_example_create(&e, NULL));
    for (int64_t i = 0; i < 1000; i++) {
        const int64_t x = backwards ? 999 - i : i;
        char name[16];

        (void)snprintf(name, sizeof name, "f%d", (int)x);
        LST_OK(ls_example_add_int64(e, name, &x, 1, NULL));
    }
    return e;
}

LST_TEST(a_feature_of_many_is_replaced_also_after_they_were_serialized)
{
    ls_example *a = many(false), *b = many(true);
    ls_string left, right;

    LST_OK(ls_example_serialize(a, &left, NULL));
    for (int64_t i = 0; i < 1000; i++) { // the features are sorted now
        const int64_t wrong = -1;
        char name[16];

        (void)snprintf(name, sizeof name, "f%d", (int)i);
        LST_OK(ls_example_add_int64(a, name, &wrong, 1, NULL));
        LST_OK(ls_example_add_int64(a, name, &i, 1, NULL));
    }
    LST_OK(ls_example_serialize(a, &left, NULL));
    LST_OK(ls_example_serialize(b, &right, NULL));
    LST_CHECK(left.len == right.len && memcmp(left.ptr, right.ptr, left.len) == 0);
    ls_example_clear(a);
    LST_OK(ls_example_serialize(a, &left, NULL));
    LST_CHECK(left.len == 0);
    ls_example_release(a);
    ls_example_release(b);
}

LST_MAIN(LST_CASE(a_feature_of_many_is_replaced_also_after_they_were_serialized),
         LST_CASE(D95_records_are_tensorflows_bytes),
         LST_CASE(D96_D97_examples_are_tensorflows_bytes_with_sorted_keys),
         LST_CASE(compressed_records_read_back_equal_also_after_a_flush),
         LST_CASE(a_flushed_file_can_be_read_while_it_is_written),
         LST_CASE(a_closed_writer_refuses_and_a_failed_one_stays_failed))
