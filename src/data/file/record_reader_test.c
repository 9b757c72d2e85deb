/* Reading records without a dataset: bytes, offsets, ends, damage and lack of memory. */
#include "data/file/file_cases.h"

#include "lockstep/record.h"

static const char *const words[] = {"one", "", "a third one"};

static void write_words(const char *path, const char *compression)
{
    ls_record_writer *w = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_record_writer_open(path, compression, &w, &err));
    for (size_t i = 0; i < LSI_COUNT_OF(words); i++) {
        LST_OK(ls_record_writer_write(w, words[i], strlen(words[i]), &err));
    }
    LST_OK(ls_record_writer_close(w, &err));
    ls_record_writer_release(w);
}

static ls_record_reader *open_reader(const char *path, const char *compression,
                                     bool whole)
{
    ls_record_reader_options o = LS_RECORD_READER_OPTIONS_INIT;
    ls_record_reader *r = NULL;
    ls_error err = LS_ERROR_INIT;

    o.compression = compression;
    o.whole = whole;
    LST_OK(ls_record_reader_open(path, &o, &r, &err));
    return r;
}

static bool next_is(ls_record_reader *r, const char *text, uint64_t offset)
{
    ls_string s = {NULL, 0};
    ls_error err = LS_ERROR_INIT;

    return ls_record_reader_next(r, &s, &err) == LS_OK && s.len == strlen(text) &&
           memcmp(s.ptr, text, s.len) == 0 && ls_record_reader_offset(r) == offset;
}

/* A copy of a file without its last `cut` bytes, or with one byte changed. */
static const char *damaged(lst_folder *at, const char *path, size_t cut, size_t flip)
{
    uint8_t *data = NULL;
    size_t len = 0;
    const char *name;

    LST_OK(lsi_file_read(path, 1 << 20, (void **)&data, &len, NULL));
    if (flip < len) {
        data[flip] ^= 1;
    }
    name = lst_file(at, "damaged", data, len - cut);
    lsi_free(data);
    return name;
}

LST_TEST(records_come_with_their_offsets_however_the_file_is_compressed)
{
    static const char *const how[][2] = {{"", ""},         {"ZLIB", "ZLIB"},
                                         {"GZIP", "GZIP"}, {"", "AUTO"},
                                         {"ZLIB", "AUTO"}, {"GZIP", "AUTO"}};
    lst_folder at;

    lst_enter(&at);
    for (size_t i = 0; i < LSI_COUNT_OF(how); i++) {
        const char *a = lst_path(&at, "a");
        ls_string s = {NULL, 0};
        ls_record_reader *r;

        write_words(a, how[i][0]);
        r = open_reader(a, how[i][1], true);
        LST_CHECK(next_is(r, words[0], 0));
        LST_CHECK(next_is(r, words[1], 19));
        LST_CHECK(next_is(r, words[2], 35));
        for (int k = 0; k < 2; k++) { // the end stays the end
            LST_CHECK(ls_record_reader_next(r, &s, NULL) == LS_OUT_OF_RANGE);
            LST_CHECK(ls_record_reader_skip(r, NULL) == LS_OUT_OF_RANGE);
            LST_CHECK(ls_record_reader_offset(r) == 62);
        }
        ls_record_reader_close(r);
    }
    lst_leave(&at);
}

LST_TEST(skipping_and_reading_may_alternate)
{
    ls_error err = LS_ERROR_INIT;
    ls_record_reader *r;
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_path(&at, "a");
    write_words(a, NULL);
    r = open_reader(a, NULL, false);
    LST_OK(ls_record_reader_skip(r, &err));
    LST_CHECK(ls_record_reader_offset(r) == 0);
    LST_CHECK(next_is(r, words[1], 19));
    LST_OK(ls_record_reader_skip(r, &err));
    LST_CHECK(ls_record_reader_offset(r) == 35);
    LST_CHECK(ls_record_reader_skip(r, &err) == LS_OUT_OF_RANGE);
    ls_record_reader_close(r);
    ls_record_reader_close(NULL);
    lst_leave(&at);
}

LST_TEST(lines_are_records_too)
{
    ls_record_reader_options o = LS_RECORD_READER_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_record_reader *r = NULL;
    lst_folder at;

    lst_enter(&at);
    o.lines = o.whole = true;
    LST_OK(ls_record_reader_open(lst_text_file(&at, "a", "x y\r\n\nlast"), &o, &r, &err));
    LST_CHECK(next_is(r, "x y", 0));
    LST_CHECK(next_is(r, "", 5));
    LST_OK(ls_record_reader_skip(r, &err));
    LST_CHECK(ls_record_reader_skip(r, &err) == LS_OUT_OF_RANGE);
    ls_record_reader_close(r);
    lst_leave(&at);
}

LST_TEST(damage_is_named_with_its_offset_and_stays)
{
    ls_string s = {NULL, 0};
    ls_error err = LS_ERROR_INIT;
    ls_record_reader *r;
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_path(&at, "a");
    write_words(a, NULL);
    r = open_reader(damaged(&at, a, 0, 48), NULL, false); // in the third record's data
    LST_CHECK(next_is(r, words[0], 0) && next_is(r, words[1], 19));
    LST_CHECK(ls_record_reader_next(r, &s, NULL) == LS_DATA_LOSS);
    for (int k = 0; k < 2; k++) {
        LST_FAILS(ls_record_reader_next(r, &s, &err), LS_DATA_LOSS, err, "byte 35");
        LST_CHECK(strstr(err.message, "damaged") != NULL);
        LST_FAILS(ls_record_reader_skip(r, &err), LS_DATA_LOSS, err, "byte 35");
        LST_CHECK(ls_record_reader_offset(r) == 35);
    }
    ls_record_reader_close(r);
    r = open_reader(damaged(&at, a, 0, 20), NULL, false); // in the second one's length
    LST_OK(ls_record_reader_skip(r, &err));
    LST_FAILS(ls_record_reader_skip(r, &err), LS_DATA_LOSS, err, "byte 19");
    ls_record_reader_close(r);
    r = open_reader(damaged(&at, a, 1, SIZE_MAX), NULL, false);
    LST_CHECK(next_is(r, words[0], 0) && next_is(r, words[1], 19));
    LST_FAILS(ls_record_reader_next(r, &s, &err), LS_DATA_LOSS, err, "cut off");
    ls_record_reader_close(r);
    lst_leave(&at);
}

LST_TEST(a_file_cut_off_between_records_ends_or_is_damaged_as_asked_for)
{
    static const char *const how[] = {"", "ZLIB", "GZIP"};
    ls_error err = LS_ERROR_INIT;
    ls_string s = {NULL, 0};
    lst_folder at;

    lst_enter(&at);
    for (size_t i = 0; i < LSI_COUNT_OF(how); i++) {
        // Plain: five bytes of a header are left. Compressed: all but the checksum is.
        const size_t cut = *how[i] == '\0' ? 27 - 5 : 2;
        const char *a = lst_path(&at, "a"), *b;

        write_words(a, how[i]);
        b = damaged(&at, a, cut, SIZE_MAX);
        for (int whole = 0; whole < 2; whole++) {
            ls_record_reader *r = open_reader(b, how[i], whole == 1);
            ls_status st;

            do {
                st = ls_record_reader_next(r, &s, &err);
            } while (st == LS_OK);
            LST_CHECK(st == (whole == 1 ? LS_DATA_LOSS : LS_OUT_OF_RANGE));
            if (whole == 1) {
                LST_FAILS(ls_record_reader_next(r, &s, &err), LS_DATA_LOSS, err,
                          "cut off");
                LST_CHECK(strstr(err.message, *how[i] == '\0' ? "byte 35" : how[i]) !=
                          NULL);
            }
            ls_record_reader_close(r);
        }
    }
    lst_leave(&at);
}

LST_TEST(bytes_behind_a_compressed_stream_do_not_cut_it_off)
{
    ls_error err = LS_ERROR_INIT;
    ls_record_reader *r;
    lsi_file *file = NULL;
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_path(&at, "a");
    write_words(a, "GZIP");
    LST_OK(lsi_file_open(a, LSI_FILE_APPEND, &file, &err));
    LST_OK(lsi_file_write(file, "alien", 5, &err));
    lsi_file_close(file);
    r = open_reader(a, "GZIP", true);
    LST_CHECK(next_is(r, words[0], 0) && next_is(r, words[1], 19));
    LST_OK(ls_record_reader_skip(r, &err));
    LST_CHECK(ls_record_reader_skip(r, &err) == LS_OUT_OF_RANGE);
    ls_record_reader_close(r);
    lst_leave(&at);
}

LST_TEST(what_cannot_be_opened_is_told)
{
    ls_record_reader_options o = LS_RECORD_READER_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_record_reader *r = NULL;
    lst_folder at;

    lst_enter(&at);
    LST_FAILS(ls_record_reader_open(lst_path(&at, "no"), NULL, &r, &err), LS_NOT_FOUND,
              err, "no");
    LST_FAILS(ls_record_reader_open(at.path, NULL, &r, &err), LS_FAILED_PRECONDITION, err,
              at.path);
    LST_FAILS(ls_record_reader_open(NULL, NULL, &r, &err), LS_INVALID_ARGUMENT, err,
              "NULL");
    LST_FAILS(ls_record_reader_open("x", NULL, NULL, &err), LS_INVALID_ARGUMENT, err,
              "NULL");
    o.compression = "LZ4";
    LST_FAILS(ls_record_reader_open("x", &o, &r, &err), LS_INVALID_ARGUMENT, err, "LZ4");
    LST_CHECK(r == NULL);
    lst_leave(&at);
}

LST_TEST(the_first_bytes_tell_a_file_of_records)
{
    uint8_t head[12];

    LST_CHECK(lst_unhex("0300*7.b099490e", head, sizeof head) == 12);
    LST_CHECK(ls_record_begins(head, 12) && !ls_record_begins(head, 11));
    head[0]++;
    LST_CHECK(!ls_record_begins(head, 12));
}

static const char *read_path;

static ls_status read_all(ls_error *err)
{
    ls_record_reader_options o = LS_RECORD_READER_OPTIONS_INIT;
    ls_record_reader *r = NULL;
    ls_string s;
    ls_status st;

    o.compression = "AUTO";
    st = ls_record_reader_open(read_path, &o, &r, err);
    LST_CHECK((st == LS_OK) == (r != NULL)); // a failure touches no output
    while (st == LS_OK) {
        st = ls_record_reader_next(r, &s, err);
    }
    if (st == LS_RESOURCE_EXHAUSTED && r != NULL) {
        LST_OK(ls_record_reader_next(r, &s, NULL)); // says nothing about the file
    }
    ls_record_reader_close(r);
    return st == LS_OUT_OF_RANGE ? LS_OK : st;
}

LST_TEST(every_allocation_of_a_reader_may_fail)
{
    lst_folder at;

    lst_enter(&at);
    read_path = lst_path(&at, "a");
    write_words(read_path, "GZIP");
    lst_every_allocation(read_all);
    lst_leave(&at);
}

LST_MAIN(LST_CASE(records_come_with_their_offsets_however_the_file_is_compressed),
         LST_CASE(skipping_and_reading_may_alternate), LST_CASE(lines_are_records_too),
         LST_CASE(damage_is_named_with_its_offset_and_stays),
         LST_CASE(a_file_cut_off_between_records_ends_or_is_damaged_as_asked_for),
         LST_CASE(bytes_behind_a_compressed_stream_do_not_cut_it_off),
         LST_CASE(what_cannot_be_opened_is_told),
         LST_CASE(the_first_bytes_tell_a_file_of_records),
         LST_CASE(every_allocation_of_a_reader_may_fail))
