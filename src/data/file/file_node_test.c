/* Datasets of lines, fixed-length records and TFRecords; list_files; streams. */
#include "data/file/file_cases.h"
#include "data/file/file_node.h"

#include "lockstep/record.h"

#include <sys/stat.h>
#include <zlib.h>

#define ONE(name) ((const char *const[]){name})
#define TWO(a, b) ((const char *const[]){a, b})

static const char three[] =
    "0500*7.eab2043e666972737455ff23e50600*7.7369d5377365636f6e64d3e0d3ca0500*7.eab2043e"
    "74686972648cfd1075"; // first second third

static ls_dataset *records(const char *name)
{
    return ls_dataset_tfrecord_files(ONE(name), 1, NULL);
}

static ls_dataset *packed(const char *name, const char *how)
{
    const ls_read_options o = {sizeof o, how, 0, 0};

    return ls_dataset_tfrecord_files(ONE(name), 1, &o);
}

LST_TEST(D93_lines_end_at_newlines_and_lose_every_return)
{
    lst_folder at;

    lst_enter(&at);
    const char *t = lst_text_file(&at, "t", "a\r\nb\n\nc\rd");
    LST_CHECK(lst_gives(ls_dataset_text_files(ONE(t), 1, NULL), "a b  cd"));
    t = lst_text_file(&at, "u", "one\n");
    LST_CHECK(lst_gives(ls_dataset_text_files(ONE(t), 1, NULL), "one"));
    t = lst_text_file(&at, "v", "x\n\r\r"); // a last line of \r only is no line
    LST_CHECK(lst_gives(ls_dataset_text_files(ONE(t), 1, NULL), "x"));
    t = lst_text_file(&at, "w", "");
    LST_CHECK(lst_gives(ls_dataset_text_files(ONE(t), 1, NULL), ""));
    lst_leave(&at);
}

LST_TEST(a_line_longer_than_the_buffer_is_one_line)
{
    const ls_read_options small = {sizeof small, NULL, 1, 0};
    const size_t len = 100000;
    char *text = malloc(len + 3);
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    lst_folder at;

    lst_enter(&at);
    memset(text, 'x', len);
    text[len] = text[len + 2] = '\n';
    text[len + 1] = 'y';
    const char *t = lst_file(&at, "t", text, len + 3);
    ls_dataset *d = ls_dataset_text_files(ONE(t), 1, &small);
    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_OK(ls_iterator_next(it, &v, &err));
    const ls_string *s = ls_tensor_data(ls_value_as_tensor(v));
    LST_CHECK(s->len == len && s->ptr[0] == 'x' && s->ptr[len - 1] == 'x');
    ls_value_release(v);
    LST_OK(ls_iterator_next(it, &v, &err));
    s = ls_tensor_data(ls_value_as_tensor(v));
    LST_CHECK(s->len == 1 && *s->ptr == 'y');
    ls_value_release(v);
    ls_iterator_release(it);
    ls_dataset_release(d);
    free(text);
    lst_leave(&at);
}

LST_TEST(D93_records_of_a_fixed_length_lie_between_header_and_footer)
{
    lst_folder at;

    lst_enter(&at);
    const char *f = lst_text_file(&at, "f.bin", "HEADER012345FOOTER");
    LST_CHECK(lst_gives(ls_dataset_fixed_files(ONE(f), 1, 2, 6, 6, NULL), "01 23 45"));
    LST_CHECK(lst_says(ls_dataset_fixed_files(ONE(f), 1, 4, 6, 6, NULL), 0,
                       LS_INVALID_ARGUMENT, "f.bin has 6 bytes", "records of 4"));
    LST_CHECK(lst_says(ls_dataset_fixed_files(ONE(f), 1, 4, 6, 6, NULL), 5,
                       LS_INVALID_ARGUMENT, "f.bin", "4")); // on every call
    LST_CHECK(lst_says(ls_dataset_fixed_files(ONE(f), 1, 4, 12, 12, NULL), 0,
                       LS_INVALID_ARGUMENT, "f.bin has 18 bytes", "12"));
    LST_CHECK(lst_says(ls_dataset_fixed_files(ONE(f), 1, 0, 6, 6, NULL), 0,
                       LS_INVALID_ARGUMENT, "at least one byte", ""));
    LST_CHECK(lst_gives(
        ls_dataset_skip(ls_dataset_fixed_files(ONE(f), 1, 2, 6, 6, NULL), 2), "45"));
    LST_CHECK(lst_gives(
        ls_dataset_skip(ls_dataset_fixed_files(ONE(f), 1, 2, 6, 6, NULL), 9), ""));
    lst_leave(&at);
}

LST_TEST(N4_a_compressed_file_shows_a_wrong_length_at_its_end_only)
{
    const ls_read_options gzip = {sizeof gzip, "GZIP", 0, 0};
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_hex_file(
        &at, "a.bin", "1f8b0800000000000003f3484c4c4a4a760300659a618607000000");
    const char *b =
        lst_hex_file(&at, "b.bin", "1f8b0800000000000003f3a8a87003007d815f5d04000000");
    LST_CHECK(lst_gives(ls_dataset_fixed_files(TWO(a, b), 2, 2, 1, 1, &gzip),
                        "aa bb !DATA_LOSS xx"));
    LST_CHECK(lst_says(ls_dataset_fixed_files(ONE(a), 1, 2, 1, 1, &gzip), 2, LS_DATA_LOSS,
                       "a.bin has 5 bytes", "records of 2"));
    lst_leave(&at);
}

LST_TEST(D101_what_is_cut_or_flipped_is_data_loss_and_the_next_file_follows)
{
    uint8_t bytes[100];
    const size_t len = lst_unhex(three, bytes, sizeof bytes);
    lst_folder at;

    lst_enter(&at);
    const char *b = lst_file(&at, "b", bytes, len);
    LST_CHECK(lst_gives(records(b), "first second third"));
    const char *a = lst_file(&at, "a", bytes, len - 3);
    LST_CHECK(lst_gives(records(a), "first second !DATA_LOSS"));
    LST_CHECK(lst_says(records(a), 2, LS_DATA_LOSS, "byte 43", "cut off"));
    bytes[33] ^= 1;
    a = lst_file(&at, "a", bytes, len);
    LST_CHECK(lst_gives(ls_dataset_tfrecord_files(TWO(a, b), 2, NULL),
                        "first !DATA_LOSS first second third"));
    LST_CHECK(lst_says(records(a), 1, LS_DATA_LOSS, "byte 33", "checksum"));
    bytes[21] ^= 1; // of the length
    a = lst_file(&at, "a", bytes, len);
    LST_CHECK(lst_says(records(a), 1, LS_DATA_LOSS, "byte 21", "length"));
    a = lst_text_file(&at, "a", "this is no TFRecord file");
    LST_CHECK(lst_says(records(a), 0, LS_DATA_LOSS, "not a TFRecord", "byte 0"));
    lst_leave(&at);
}

LST_TEST(D101_compressed_files_read_like_the_plain_one)
{
    lst_folder at;

    lst_enter(&at);
    const char *g = lst_hex_file(
        &at, "g",
        "1f8b080000000000000363658080579b58ecd2328b8a4b42ff2b3f65830a16675e352f4e4dcecf4b"
        "b9fce0f2295624a525199945293d7f054a01ed9b6aff40000000");
    const char *z = lst_hex_file(
        &at, "z",
        "789c63658080579b58ecd2328b8a4b42ff2b3f65830a16675e352f4e4dcecf4bb9fce0f2295624a5"
        "25199945293d7f054a0140ec142e");
    LST_CHECK(lst_gives(packed(g, "GZIP"), "first second third"));
    LST_CHECK(lst_gives(packed(z, "ZLIB"), "first second third"));
    LST_CHECK(lst_gives(packed(z, "GZIP"), "!DATA_LOSS"));
    LST_CHECK(lst_says(packed(z, "LZ4"), 0, LS_INVALID_ARGUMENT, "LZ4", "GZIP"));
    lst_saves(packed(g, "GZIP"), 4);
    LST_CHECK(lst_gives(ls_dataset_tfrecord(g), "first second third"));
    LST_CHECK(lst_gives(ls_dataset_tfrecord(z), "first second third"));
    lst_saves(ls_dataset_tfrecord(z), 4);
    lst_leave(&at);
}

LST_TEST(N5_a_part_of_a_header_is_the_end_and_a_header_alone_is_data_loss)
{
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_hex_file(&at, "a", "0500*6.");
    LST_CHECK(lst_gives(records(a), ""));
    a = lst_hex_file(&at, "a", "0500*7.eab2043e");
    LST_CHECK(lst_says(records(a), 0, LS_DATA_LOSS, "byte 0", "cut off"));
    a = lst_hex_file(&at, "a", "0500*7.eab2043e666972737455ff23e50600*7.7369d5");
    LST_CHECK(lst_gives(records(a), "first"));
    a = lst_hex_file(&at, "a", "0500*7.eab2043e666972737455ff23e50600*7.7369d537");
    LST_CHECK(lst_says(records(a), 1, LS_DATA_LOSS, "byte 21", "cut off"));
    a = lst_hex_file(&at, "a", "");
    LST_CHECK(lst_gives(records(a), ""));
    lst_leave(&at);
}

LST_TEST(N6_an_empty_member_ends_a_gzip_file)
{
    const ls_read_options gzip = {sizeof gzip, "GZIP", 0, 0};
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_hex_file(
        &at, "a",
        "1f8b0800000000000003636680800d333df9f2f352191d42390095543363130000001f8b08000000"
        "00000003030000000000000000001f8b0800000000000003636680800d333df94acaf33b279ce404"
        "003789146713000000");
    const char *b = lst_hex_file(
        &at, "b",
        "1f8b08000000000000036361800027d72096bcd48a1246ce5fc5005c868cbd14000000");
    LST_CHECK(lst_gives(ls_dataset_tfrecord_files(TWO(a, b), 2, &gzip), "one next"));
    lst_leave(&at);
}

/* Appends a gzip member with `text` to the file. */
static void add_member(const char *path, const char *text)
{
    gzFile f = gzopen(path, "ab");

    LST_CHECK(f != NULL && gzwrite(f, text, (unsigned)strlen(text)) == (int)strlen(text));
    LST_CHECK(gzclose(f) == Z_OK);
}

LST_TEST(members_follow_each_other_and_what_stops_is_read_as_far_as_it_goes)
{
    const ls_read_options gzip = {sizeof gzip, "GZIP", 0, 0};
    lst_folder at;
    void *data = NULL;
    size_t len = 0;

    lst_enter(&at);
    const char *a = lst_path(&at, "a");
    add_member(a, "one\ntwo\n");
    add_member(a, "three\nfour\n");
    LST_CHECK(lst_gives(ls_dataset_text_files(ONE(a), 1, &gzip), "one two three four"));
    LST_OK(lsi_file_read(a, 1 << 20, &data, &len, NULL));
    for (size_t cut = 0; cut < len; cut++) { // no failure, and no more than there was
        const char *b = lst_file(&at, "b", data, cut);
        ls_dataset *d = ls_dataset_text_files(ONE(b), 1, &gzip);
        lst_text t = {{0}, 0};

        lst_put_events(&t, d, 10);
        LST_CHECK(strncmp(t.s, "one two three four", t.n) == 0);
        ls_dataset_release(d);
    }
    ((uint8_t *)data)[len - 5] ^= 1; // the last member's checksum
    const char *c = lst_file(&at, "c", data, len);
    LST_CHECK(lst_gives(ls_dataset_text_files(ONE(c), 1, &gzip), "one two three four "
                                                                 "!DATA_LOSS"));
    lsi_free(data);
    lst_leave(&at);
}

LST_TEST(N10_a_missing_file_is_told_when_it_is_reached_and_again)
{
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_hex_file(&at, "a", three);
    const char *m = lst_path(&at, "missing");
    ls_dataset *d = ls_dataset_tfrecord_files(TWO(a, m), 2, NULL);
    lst_text t = {{0}, 0};
    LST_CHECK(lst_says(ls_dataset_retain(d), 3, LS_NOT_FOUND, "missing", ""));
    LST_CHECK(lst_says(ls_dataset_retain(d), 6, LS_NOT_FOUND, "missing", ""));
    lst_put_events(&t, d, 5);
    LST_CHECK(lst_same(&t, "first second third !NOT_FOUND !NOT_FOUND ..."));
    ls_dataset_release(d);
    LST_CHECK(lst_says(records(at.path), 0, LS_FAILED_PRECONDITION, at.path, ""));
    lst_leave(&at);
}

/* A header that promises `len` bytes, with the right checksum. */
static const char *promise(lst_folder *at, uint64_t len, size_t there)
{
    static uint8_t bytes[64];

    lsi_put_le64(bytes, len);
    lsi_put_le32(bytes + 8, lsi_crc32c_masked(bytes, 8));
    return lst_file(at, "p", bytes, 12 + there);
}

LST_TEST(a_length_that_lies_costs_no_memory)
{
    static const uint64_t lies[] = {
        UINT64_MAX, UINT64_MAX - 15, INT64_MAX, (uint64_t)1 << 40, 49, 46};
    lst_folder at;

    lst_enter(&at);
    for (size_t i = 0; i < LSI_COUNT_OF(lies); i++) {
        const char *p = promise(&at, lies[i], 49);

        LST_CHECK(lst_says(records(p), 0, LS_DATA_LOSS, "byte 0", "cut off"));
        LST_CHECK(lst_says(ls_dataset_skip(records(p), 1), 0, LS_DATA_LOSS, "byte 0",
                           "cut off"));
    }
    lst_leave(&at);
}

LST_TEST(skipping_reads_headers_only)
{
    uint8_t bytes[100];
    const size_t len = lst_unhex(three, bytes, sizeof bytes);
    lst_folder at;

    lst_enter(&at);
    bytes[33] ^= 1; // the data of the second: not looked at when it is passed over
    const char *a = lst_file(&at, "a", bytes, len);
    LST_CHECK(lst_gives(ls_dataset_skip(records(a), 2), "third"));
    LST_CHECK(lst_gives(ls_dataset_skip(records(a), 1), "!DATA_LOSS"));
    LST_CHECK(lst_gives(ls_dataset_skip(records(a), 7), ""));
    lst_leave(&at);
}

LST_TEST(a_position_in_files_can_be_saved_and_restored)
{
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_hex_file(&at, "a", three);
    const char *t = lst_text_file(&at, "t", "a\r\nb\n\nc\rd");
    const char *f = lst_text_file(&at, "f", "HEADER012345FOOTER");
    lst_saves(ls_dataset_tfrecord_files(TWO(a, a), 2, NULL), 8);
    const char *cut = lst_text_file(&at, "cut", "this is no record");
    lst_saves(ls_dataset_tfrecord_files(TWO(cut, a), 2, NULL), 5);
    lst_saves(ls_dataset_text_files(TWO(t, t), 2, NULL), 9);
    lst_saves(ls_dataset_fixed_files(TWO(f, f), 2, 2, 6, 6, NULL), 7);
    lst_leave(&at);
}

LST_TEST(a_saved_position_needs_its_file)
{
    ls_iterator *it = NULL, *other = NULL;
    ls_value *v = NULL, *state = NULL;
    ls_error err = LS_ERROR_INIT;
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_hex_file(&at, "a", three);
    ls_dataset *d = records(a);
    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_OK(ls_iterator_next(it, &v, &err));
    LST_OK(ls_iterator_save(it, &state, &err));
    LST_OK(lsi_file_write_atomic(a, "short", 5, &err));
    LST_OK(ls_dataset_iterate(d, &other, &err));
    LST_FAILS(ls_iterator_restore(other, state, &err), LS_DATA_LOSS, err, "position 21");
    LST_OK(lsi_file_remove(a, &err));
    LST_FAILS(ls_iterator_restore(other, state, &err), LS_NOT_FOUND, err, a);
    ls_value_release(v);
    ls_value_release(state);
    ls_iterator_release(it);
    ls_iterator_release(other);
    ls_dataset_release(d);
    lst_leave(&at);
}

LST_TEST(batches_of_records_keep_their_bytes_after_the_iterator_is_gone)
{
    ls_record_writer *w = NULL;
    ls_iterator *it = NULL;
    ls_value *batches[20] = {NULL};
    ls_error err = LS_ERROR_INIT;
    const ls_read_options small = {sizeof small, NULL, 4096, 0};
    char data[900];
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_path(&at, "a");
    LST_OK(ls_record_writer_open(a, NULL, &w, &err));
    for (int i = 0; i < 100; i++) {
        memset(data, 'a' + i % 26, sizeof data);
        LST_OK(ls_record_writer_write(w, data, sizeof data - (size_t)i, &err));
    }
    LST_OK(ls_record_writer_close(w, &err));
    ls_record_writer_release(w);
    ls_dataset *d = ls_dataset_batch(ls_dataset_tfrecord_files(ONE(a), 1, &small), 5);
    LST_OK(ls_dataset_iterate(d, &it, &err));
    for (int i = 0; i < 20; i++) {
        LST_OK(ls_iterator_next(it, &batches[i], &err));
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
    for (size_t i = 0; i < 100; i++) {
        const ls_string *s = ls_tensor_data(ls_value_as_tensor(batches[i / 5]));

        s += i % 5; // four fit in a buffer
        LST_CHECK(s->len == sizeof data - i && s->ptr[0] == (char)('a' + i % 26) &&
                  s->ptr[s->len - 1] == s->ptr[0]);
    }
    for (int i = 0; i < 20; i++) {
        ls_value_release(batches[i]);
    }
    lst_leave(&at);
}

LST_TEST(files_are_listed_sorted_and_a_pattern_without_a_match_fails)
{
    char pattern[2][100];
    const char *patterns[2] = {pattern[0], pattern[1]};
    lst_folder at;
    const int64_t seed = 7;
    lst_text t = {{0}, 0};

    lst_enter(&at);
    (void)lst_text_file(&at, "b.txt", "3\n4\n");
    (void)lst_text_file(&at, "a.txt", "1\n2\n");
    (void)lst_text_file(&at, "c.dat", "5\n");
    (void)snprintf(pattern[0], sizeof pattern[0], "%s/*.dat", at.path);
    (void)snprintf(pattern[1], sizeof pattern[1], "%s/*.txt", at.path);
    ls_dataset *d = ls_dataset_list_files(patterns, 2, true, NULL);
    LST_CHECK(ls_dataset_cardinality(d) == 3);
    LST_CHECK(lst_gives(ls_dataset_text_from(d, NULL), "1 2 3 4 5"));
    d = ls_dataset_list_files(patterns, 2, false, &seed);
    LST_CHECK(ls_dataset_cardinality(d) == 3 &&
              strcmp(ls_dataset_kind(d), "shuffle") == 0);
    d = ls_dataset_text_from(d, NULL);
    lst_put_events(&t, d, 10);
    LST_CHECK(t.n == 9 && strstr(t.s, "1 2") != NULL && strstr(t.s, "3 4") != NULL);
    ls_dataset_release(d);
    (void)snprintf(pattern[0], sizeof pattern[0], "%s/*.none", at.path);
    LST_CHECK(lst_says(ls_dataset_list_files(patterns, 1, true, NULL), 0,
                       LS_INVALID_ARGUMENT, "*.none", "no file"));
    LST_CHECK(
        lst_says(ls_dataset_tfrecord(pattern[0]), 0, LS_INVALID_ARGUMENT, "*.none", ""));
    lst_leave(&at);
}

LST_TEST(readers_are_function_nodes_over_names)
{
    ls_read_options two = LS_READ_OPTIONS_INIT;
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_text_file(&at, "a", "1\n2\n3\n");
    const char *b = lst_text_file(&at, "b", "4\n");
    ls_dataset *d = ls_dataset_text_files(TWO(a, b), 2, NULL);
    LST_CHECK(strcmp(ls_dataset_kind(d), "flat_map") == 0);
    LST_CHECK(d->ninputs == 1 && ls_dataset_cardinality(d->inputs[0]) == 2);
    LST_CHECK(ls_dataset_cardinality(d) == LS_UNKNOWN_SIZE);
    LST_CHECK(strcmp(lsi_dataset_reader(d), "textline") == 0);
    LST_CHECK(ls_spec_dtype(ls_dataset_spec(d)) == LS_STRING &&
              ls_spec_ndim(ls_dataset_spec(d)) == 0);
    LST_CHECK(lst_gives(d, "1 2 3 4"));
    two.parallel = 2;
    LST_CHECK(lst_gives(ls_dataset_text_files(TWO(a, b), 2, &two), "1 4 2 3"));
    two.parallel = -2;
    LST_CHECK(lst_says(ls_dataset_text_files(TWO(a, b), 2, &two), 0, LS_INVALID_ARGUMENT,
                       "-2", ""));
    LST_CHECK(lst_says(ls_dataset_text_from(lst_range(3), NULL), 0, LS_INVALID_ARGUMENT,
                       "names", "int64"));
    LST_CHECK(lst_says(ls_dataset_text_files(TWO(a, NULL), 2, NULL), 0,
                       LS_INVALID_ARGUMENT, "NULL", "1"));
    LST_CHECK(lst_gives(ls_dataset_text_files(NULL, 0, NULL), ""));
    lst_leave(&at);
}

static const char *alloc_path;

static ls_status read_all(ls_error *err)
{
    ls_dataset *d = ls_dataset_tfrecord_files(ONE(alloc_path), 1, NULL);

    d = ls_dataset_batch(d, 2);
    return d != NULL ? lst_read(d, INT_MAX, err)
                     : lsi_fail_memory(err, "a dataset", 1); // as iterating NULL fails
}

LST_TEST(every_allocation_of_a_reader_may_fail)
{
    lst_folder at;

    lst_enter(&at);
    alloc_path = lst_hex_file(&at, "a", three);
    lst_every_allocation(read_all);
    lst_leave(&at);
}

LST_TEST(a_long_line_is_read_in_steps_that_double)
{
    enum { LENGTH = 4 << 20 };
    char *line = lsi_alloc(LENGTH, 1);
    lst_folder at;
    lsi_stream *s = NULL;
    int steps = 0;

    memset(line, 'x', LENGTH);
    lst_enter(&at);
    LST_OK(lsi_stream_open(lst_file(&at, "long", line, LENGTH), LSI_COMPRESSION_NONE, 0,
                           NULL, &s, NULL));
    for (; !s->ended; steps++) { // as a search for the end of a line does
        LST_OK(lsi_stream_want(s, s->have + 1, NULL));
    }
    LST_CHECK(s->have == LENGTH && memcmp(s->bytes, line, LENGTH) == 0);
    LST_CHECK(steps < 20); // page by page there would be a thousand
    lsi_stream_close(s);
    lsi_free(line);
    lst_leave(&at);
}

LST_TEST(a_small_file_has_a_small_buffer)
{
    const size_t sizes[] = {1, 42, 4095, 4096, 4097, 9000};
    char bytes[9000];
    lst_folder at;

    memset(bytes, 'x', sizeof bytes);
    lst_enter(&at);
    for (size_t i = 0; i < LSI_COUNT_OF(sizes); i++) {
        const char *path = lst_file(&at, "small", bytes, sizes[i]);
        lsi_stream *s = NULL;

        LST_OK(lsi_stream_open(path, LSI_COMPRESSION_NONE, 0, NULL, &s, NULL));
        LST_OK(lsi_stream_want(s, SIZE_MAX, NULL));
        LST_CHECK(s->have == sizes[i] && s->ended);
        LST_CHECK(s->buffer->bytes <= sizes[i] + 4096);
        lsi_stream_close(s);
    }
    lst_leave(&at);
}

LST_MAIN(LST_CASE(a_long_line_is_read_in_steps_that_double),
         LST_CASE(a_small_file_has_a_small_buffer),
         LST_CASE(D93_lines_end_at_newlines_and_lose_every_return),
         LST_CASE(a_line_longer_than_the_buffer_is_one_line),
         LST_CASE(D93_records_of_a_fixed_length_lie_between_header_and_footer),
         LST_CASE(N4_a_compressed_file_shows_a_wrong_length_at_its_end_only),
         LST_CASE(D101_what_is_cut_or_flipped_is_data_loss_and_the_next_file_follows),
         LST_CASE(D101_compressed_files_read_like_the_plain_one),
         LST_CASE(N5_a_part_of_a_header_is_the_end_and_a_header_alone_is_data_loss),
         LST_CASE(N6_an_empty_member_ends_a_gzip_file),
         LST_CASE(members_follow_each_other_and_what_stops_is_read_as_far_as_it_goes),
         LST_CASE(N10_a_missing_file_is_told_when_it_is_reached_and_again),
         LST_CASE(a_length_that_lies_costs_no_memory),
         LST_CASE(skipping_reads_headers_only),
         LST_CASE(a_position_in_files_can_be_saved_and_restored),
         LST_CASE(a_saved_position_needs_its_file),
         LST_CASE(batches_of_records_keep_their_bytes_after_the_iterator_is_gone),
         LST_CASE(files_are_listed_sorted_and_a_pattern_without_a_match_fails),
         LST_CASE(readers_are_function_nodes_over_names),
         LST_CASE(every_allocation_of_a_reader_may_fail))
