/* Walking over Examples of which nothing is known. */
#include "data/file/file_cases.h"

#include "lockstep/record.h"

static ls_string unhex(const char *hex)
{
    static uint8_t bytes[512];

    return (ls_string){(const char *)bytes, lst_unhex(hex, bytes, sizeof bytes)};
}

static bool is(ls_string s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.ptr, text, s.len) == 0;
}

/* How many features there are, or -1: the bytes are no Example. */
static int count(ls_string record)
{
    ls_example_walk w = LS_EXAMPLE_WALK_INIT(record);
    ls_error err = LS_ERROR_INIT;
    ls_example_entry e;
    ls_status st;
    int n = 0;

    while ((st = ls_example_walk_next(&w, &e, &err)) == LS_OK) {
        n++;
    }
    LST_CHECK(st == LS_OUT_OF_RANGE ||
              (st == LS_INVALID_ARGUMENT && err.message[0] != '\0'));
    return st == LS_OUT_OF_RANGE ? n : -1;
}

LST_TEST(what_was_written_is_walked_in_its_order)
{
    static const int64_t ints[] = {1, -2, 300};
    static const float floats[] = {0.5F, -2.0F};
    static const ls_string texts[] = {{"hi", 2}, {"", 0}};
    ls_error err = LS_ERROR_INIT;
    ls_example *e = NULL;
    ls_example_entry f;
    ls_string s, strings[3];
    int64_t whole[3] = {0, 0, 7};
    float numbers[2];

    LST_OK(ls_example_create(&e, &err));
    LST_OK(ls_example_add_int64(e, "i", ints, 3, &err));
    LST_OK(ls_example_add_float(e, "f", floats, 2, &err));
    LST_OK(ls_example_add_bytes(e, "b", texts, 2, &err));
    LST_OK(ls_example_add_int64(e, "none", NULL, 0, &err));
    LST_OK(ls_example_serialize(e, &s, &err));
    {
        ls_example_walk w = LS_EXAMPLE_WALK_INIT(s);

        LST_OK(ls_example_walk_next(&w, &f, &err));
        LST_CHECK(is(f.name, "b") && f.kind == LS_LIST_BYTES && f.count == 2);
        LST_CHECK(ls_example_entry_bytes(&f, strings, 3) == 2);
        LST_CHECK(is(strings[0], "hi") && strings[1].len == 0);
        LST_CHECK(ls_example_entry_int64(&f, whole, 3) == 0); // another kind
        LST_OK(ls_example_walk_next(&w, &f, &err));
        LST_CHECK(is(f.name, "f") && f.kind == LS_LIST_FLOAT && f.count == 2);
        LST_CHECK(ls_example_entry_float(&f, numbers, 2) == 2);
        LST_CHECK(numbers[0] == 0.5F && numbers[1] == -2.0F);
        LST_CHECK(ls_example_entry_bytes(&f, strings, 3) == 0);
        LST_OK(ls_example_walk_next(&w, &f, &err));
        LST_CHECK(is(f.name, "i") && f.kind == LS_LIST_INT64 && f.count == 3);
        LST_CHECK(ls_example_entry_int64(&f, whole, 2) ==
                  2); // no more than there is room
        LST_CHECK(whole[0] == 1 && whole[1] == -2 && whole[2] == 7);
        LST_CHECK(ls_example_entry_float(&f, numbers, 2) == 0);
        LST_OK(ls_example_walk_next(&w, &f, &err));
        LST_CHECK(is(f.name, "none") && f.kind == LS_LIST_INT64 && f.count == 0);
        LST_CHECK(ls_example_walk_next(&w, &f, &err) == LS_OUT_OF_RANGE);
        LST_CHECK(ls_example_walk_next(&w, &f, &err) == LS_OUT_OF_RANGE);
    }
    for (size_t n = 1; n < s.len; n++) { // cut off anywhere
        LST_CHECK(count((ls_string){s.ptr, n}) == -1);
    }
    LST_CHECK(count((ls_string){NULL, 0}) == 0);
    ls_example_release(e);
}

LST_TEST(bytes_that_are_no_example_are_refused)
{
    LST_CHECK(count(unhex("0a0d0a0b0a017812061a0408010802")) == 1); // not packed
    LST_CHECK(count(unhex("0a070a050a01781200")) == 1);             // no list
    LST_CHECK(count(unhex("0a050a030a0178")) == 1);                 // nor a value
    LST_CHECK(count(unhex("0a000a050a030a0178")) == 1);             // two maps, one empty
    LST_CHECK(count(unhex("08010a050a030a0178")) == -1);     // a number before the map
    LST_CHECK(count(unhex("12050a030a0178")) == -1);         // another field
    LST_CHECK(count(unhex("0a0212000a")) == -1);             // another field in the map
    LST_CHECK(count(unhex("0a070a050a01781001")) == -1);     // a value that is a number
    LST_CHECK(count(unhex("0a090a070a017812021801")) == -1); // a list that is one
    LST_CHECK(count(unhex("0a0c0a0a0a017812051a030a0180")) == -1); // a number cut off
    LST_CHECK(count(unhex("68656c6c6f")) == -1);                   // text
}

LST_MAIN(LST_CASE(what_was_written_is_walked_in_its_order),
         LST_CASE(bytes_that_are_no_example_are_refused))
