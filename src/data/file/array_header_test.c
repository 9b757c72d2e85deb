/* What arrays a file has, by their headers. */
#include "data/file/file_cases.h"

#define HEAD "934e554d505901007600"

/* {'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), } and no elements */
static const char fortran[] =
    HEAD "7b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a20547275652c"
         "20277368617065273a2028322c2033292c207d20*59.0a";
/* [('a', '<i4'), ('b', '<f4')], (2,) */
static const char structs[] = HEAD
    "7b276465736372273a205b282761272c20273c693427292c20282762272c20273c663427295d2c20"
    "27666f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028322c292c207d"
    "20*37.0a";
/* '<c8', (1, 1, 1, 1, 1, 1, 1, 1, 1) */
static const char deep[] = HEAD
    "7b276465736372273a20273c6338272c2027666f727472616e5f6f72646572273a2046616c73652c"
    "20277368617065273a2028312c20312c20312c20312c20312c20312c20312c20312c2031292c207d"
    "20*37.0a";
/* The first, deflated. */
static const char deflated[] =
    "9bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f9492"
    "0a120f292a4d050a17672416a402b91a463a0ac69a3a0ab50ae4032e00";
static uint8_t archive[2048];

static bool describes(const char *path, size_t i, const char *name, const char *dtype,
                      const char *shape, bool in_fortran_order)
{
    ls_array_header *a = NULL;
    ls_error err = LS_ERROR_INIT;
    size_t n = 0;
    bool good = ls_array_headers(path, &a, &n, &err) == LS_OK && i < n &&
                strcmp(a[i].name, name) == 0 && strcmp(a[i].dtype, dtype) == 0 &&
                strcmp(a[i].shape, shape) == 0 && a[i].fortran_order == in_fortran_order;

    if (!good) {
        (void)fprintf(stderr, "  %zu arrays: %s %s %s, %s\n", n, i < n ? a[i].name : "",
                      i < n ? a[i].dtype : "", i < n ? a[i].shape : "", err.message);
    }
    ls_array_headers_release(a, n);
    return good;
}

LST_TEST(an_array_is_described_whether_it_can_be_read_or_not)
{
    lst_folder at;

    lst_enter(&at);
    LST_CHECK(describes(lst_hex_file(&at, "f", fortran), 0, "", "<f4", "(2, 3)", true));
    LST_CHECK(
        describes(lst_hex_file(&at, "s", structs), 0, "", "a record", "(2,)", false));
    LST_CHECK(describes(lst_hex_file(&at, "d", deep), 0, "", "<c8",
                        "(1, 1, 1, 1, 1, 1, 1, 1, 1)", false));
    lst_leave(&at);
}

/* A member: local header, name, bytes. Returns its length. */
static size_t put_member(uint8_t *to, const char *name, const void *data, size_t len)
{
    memset(to, 0, 30);
    memcpy(to, "PK\3\4", 4);
    to[26] = (uint8_t)strlen(name);
    memcpy(to + 30, name, strlen(name));
    memcpy(to + 30 + strlen(name), data, len);
    return 30 + strlen(name) + len;
}

static size_t put_entry(uint8_t *to, const char *name, int method, size_t len,
                        size_t offset)
{
    memset(to, 0, 46);
    memcpy(to, "PK\1\2", 4);
    to[10] = (uint8_t)method;
    to[20] = (uint8_t)len;
    to[24] = method == 0 ? (uint8_t)len : 128;
    to[28] = (uint8_t)strlen(name);
    to[42] = (uint8_t)offset;
    to[43] = (uint8_t)(offset >> 8);
    memcpy(to + 46, name, strlen(name));
    return 46 + strlen(name);
}

/* An array that is stored, one that is deflated, and what is no array. */
static size_t make_archive(void)
{
    uint8_t npy[256], packed[256];
    const size_t len = lst_unhex(fortran, npy, sizeof npy);
    const size_t packed_len = lst_unhex(deflated, packed, sizeof packed);
    const size_t second = put_member(archive, "x.npy", npy, len);
    const size_t third =
        second + put_member(archive + second, "y.npy", packed, packed_len);
    const size_t at = third + put_member(archive + third, "notes", "text", 4);
    size_t n = at + put_entry(archive + at, "x.npy", 0, len, 0);

    n += put_entry(archive + n, "y.npy", 8, packed_len, second);
    n += put_entry(archive + n, "notes", 0, 4, third);
    memset(archive + n, 0, 22);
    memcpy(archive + n, "PK\5\6", 4);
    archive[n + 10] = 3;
    archive[n + 12] = (uint8_t)(n - at);
    archive[n + 16] = (uint8_t)at;
    archive[n + 17] = (uint8_t)(at >> 8);
    return n + 22;
}

LST_TEST(the_members_of_an_archive_are_described)
{
    const size_t len = make_archive();
    lst_folder at;

    lst_enter(&at);
    const char *a = lst_file(&at, "a.npz", archive, len);
    LST_CHECK(describes(a, 0, "x", "<f4", "(2, 3)", true));
    LST_CHECK(describes(a, 1, "y", "<f4", "(2, 3)", true));
    LST_CHECK(describes(a, 2, "notes", "no array", "", false));
    lst_leave(&at);
}

LST_TEST(damaged_archives_and_other_files_are_refused)
{
    const size_t len = make_archive();
    ls_array_header *a = NULL;
    ls_error err = LS_ERROR_INIT;
    size_t n = 7;
    lst_folder at;

    lst_enter(&at);
    for (size_t cut = 2; cut < len; cut++) {
        LST_FAILS(ls_array_headers(lst_file(&at, "cut", archive, cut), &a, &n, &err),
                  LS_DATA_LOSS, err, "cut");
    }
    LST_FAILS(ls_array_headers(lst_text_file(&at, "t", "no header at all"), &a, &n, &err),
              LS_INVALID_ARGUMENT, err, "NumPy");
    LST_FAILS(ls_array_headers(lst_path(&at, "none"), &a, &n, &err), LS_NOT_FOUND, err,
              "none");
    LST_FAILS(ls_array_headers(NULL, &a, &n, &err), LS_INVALID_ARGUMENT, err, "NULL");
    LST_CHECK(a == NULL && n == 7); // a failure touches no output
    ls_array_headers_release(NULL, 0);
    lst_leave(&at);
}

static const char *described;

static ls_status describe(ls_error *err)
{
    ls_array_header *a = NULL;
    size_t n = 0;
    const ls_status st = ls_array_headers(described, &a, &n, err);

    ls_array_headers_release(a, n);
    return st;
}

LST_TEST(every_allocation_may_fail)
{
    const size_t len = make_archive();
    lst_folder at;

    lst_enter(&at);
    described = lst_file(&at, "a.npz", archive, len);
    lst_every_allocation(describe);
    described = lst_hex_file(&at, "f", fortran);
    lst_every_allocation(describe);
    lst_leave(&at);
}

LST_MAIN(LST_CASE(an_array_is_described_whether_it_can_be_read_or_not),
         LST_CASE(the_members_of_an_archive_are_described),
         LST_CASE(damaged_archives_and_other_files_are_refused),
         LST_CASE(every_allocation_may_fail))
