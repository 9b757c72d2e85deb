/* Arrays of .npy, .npz and IDX files: layouts, damage, and when they are read. */
#include "data/file/file_cases.h"
#include "data/file/npy.h"

/* Files written by NumPy 2; "20*58." means 58 times the byte 20. */
static const char f4_2x3[] =
    "934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72"
    "646572273a2046616c73652c20277368617065273a2028322c2033292c207d20*58.0a00*7.3"
    "f0000803f0000c03f0000004000002040";
static const char i4_fortran[] =
    "934e554d5059010076007b276465736372273a20273c6934272c2027666f727472616e5f6f72"
    "646572273a20547275652c20277368617065273a2028322c20332c2034292c207d20*56.0a00"
    "0000000c00000004000000100000000800000014000000010000000d00000005000000110000"
    "000900000015000000020000000e00000006000000120000000a00000016000000030000000f"
    "00000007000000130000000b00000017000000";
static const char i2_big_endian[] =
    "934e554d5059010076007b276465736372273a20273e6932272c2027666f727472616e5f6f72"
    "646572273a2046616c73652c20277368617065273a2028332c292c207d20*60.0a0001fffe01"
    "2c";
static const char f8_big_endian_v2[] =
    "934e554d50590200740000007b276465736372273a20273e6638272c2027666f727472616e5f"
    "6f72646572273a2046616c73652c20277368617065273a2028322c2031292c207d20*56.0a3f"
    "f800*6.bfd000*6.";
static const char bool_v3[] =
    "934e554d50590300740000007b276465736372273a20277c6231272c2027666f727472616e5f"
    "6f72646572273a2046616c73652c20277368617065273a2028332c292c207d20*58.0a010001";
static const char bytes_3[] =
    "934e554d5059010076007b276465736372273a20277c5333272c2027666f727472616e5f6f72"
    "646572273a2046616c73652c20277368617065273a2028332c292c207d20*60.0a6100006263"
    "64000000";
static const char unicode_2[] =
    "934e554d5059010076007b276465736372273a20273c5532272c2027666f727472616e5f6f72"
    "646572273a2046616c73652c20277368617065273a2028322c292c207d20*60.0a68000000e9"
    "000000ac20000000f60100";
static const char objects[] =
    "934e554d5059010076007b276465736372273a20277c4f272c2027666f727472616e5f6f7264"
    "6572273a2046616c73652c20277368617065273a2028322c292c207d20*61.0a8004959000*7"
    ".8c166e756d70792e5f636f72652e6d756c74696172726179948c0c5f7265636f6e737472756"
    "3749493948c056e756d7079948c076e6461727261799493944b0085944301629487945294284"
    "b014b02859468038c0564747970659493948c024f3894898887945294284b038c017c944e4e4"
    "e4affffffff4affffffff4b3f749462895d94284b018c017894657494622e";
static const char structs[] =
    "934e554d5059010076007b276465736372273a205b282761272c20273c693427292c20282762"
    "272c20273c663427295d2c2027666f727472616e5f6f72646572273a2046616c73652c202773"
    "68617065273a2028322c292c207d20*37.0a00*16.";
static const char complexes[] =
    "934e554d5059010076007b276465736372273a20273c6338272c2027666f727472616e5f6f72"
    "646572273a2046616c73652c20277368617065273a2028312c292c207d20*60.0a00*8.";
static const char scalar[] =
    "934e554d5059010076007b276465736372273a20273c6938272c2027666f727472616e5f6f72"
    "646572273a2046616c73652c20277368617065273a2028292c207d20*62.0a0300*7.";
static const char npz_stored[] =
    "504b03042d00*7.2100c3c3dad1ff*8.05001400782e6e707901001000a000*7.a000*7.934e"
    "554d5059010076007b276465736372273a20273c6938272c2027666f727472616e5f6f726465"
    "72273a2046616c73652c20277368617065273a2028342c292c207d20*60.0a00*8.0100*7.02"
    "00*7.0300*7.504b03042d00*7.210045aca464ff*8.05001400792e6e707901001000a000*7"
    ".a000*7.934e554d5059010076007b276465736372273a20273c6634272c2027666f72747261"
    "6e5f6f72646572273a2046616c73652c20277368617065273a2028342c2032292c207d20*58."
    "0a00*6.803f0000004000004040000080400000a0400000c0400000e040504b01022d032d00*"
    "7.2100c3c3dad1a0000000a00000000500*11.800100000000782e6e7079504b01022d032d00"
    "*7.210045aca464a0000000a00000000500*11.8001d7000000792e6e7079504b05060000000"
    "00200020066000000ae0100000000";
static const char npz_deflated[] =
    "504b03042d000000080000002100c3c3dad1ff*8.05001400782e6e707901001000a000*7.4f"
    "00*7.9bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f545294981"
    "79f5f94920a12774bcc294e058a17672416a402f91a263a9a3a0ab50a14002e06286084d24c5"
    "09a194a0300504b03042d00000008000000210094b9a407ff*8.05001400792e6e7079010010"
    "00a000*7.4900*7.9bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e96"
    "5f54529498179f5f94920a12774bcc294e058a17672416a402f91a263a0a469a3a0ab50a6403"
    "2e06020000504b01022d032d000000080000002100c3c3dad14f000000a00000000500*11.80"
    "0100000000782e6e7079504b01022d032d00000008000000210094b9a40749000000a0000000"
    "0500*11.800186000000792e6e7079504b0506000000000200020066000000060100000000";
static const char npz_zip64[] =
    "504b03042d00*7.210048ea66ecff*8.05001400782e6e7079010010008300*7.8300*7.934e"
    "554d5059010076007b276465736372273a20277c7531272c2027666f727472616e5f6f726465"
    "72273a2046616c73652c20277368617065273a2028332c292c207d20*60.0a000102504b0102"
    "2d032d00*7.210048ea66ec83000000830000000500*11.800100000000782e6e7079504b050"
    "6000000000100010033000000ba0000000000";
/* An archive with all sizes and offsets in the Zip64 fields. */
static const char npz_large[] =
    "504b03042d00*7.210048ea66ecff*8.05001400782e6e7079010010008300*7.8300*7.934e"
    "554d5059010076007b276465736372273a20277c7531272c2027666f727472616e5f6f726465"
    "72273a2046616c73652c20277368617065273a2028332c292c207d20*60.0a000102504b0102"
    "2d002d00*7.210048ea66ecff*8.05001c00*11.ffffffff782e6e7079010018008300*7.830"
    "0*15.504b06062c00*7.2d002d00*9.0100*7.0100*7.4f00*7.ba00*7.504b0607000000000"
    "90100*6.01000000504b050600000000ff*12.0000";

static ls_dataset *npy(lst_folder *at, const char *hex)
{
    return ls_dataset_npy(lst_hex_file(at, "a.npy", hex));
}

static ls_dataset *npz(lst_folder *at, const char *hex)
{
    return ls_dataset_npz(lst_hex_file(at, "a.npz", hex));
}

LST_TEST(arrays_of_numpy_are_read_whatever_their_order_and_version)
{
    lst_folder at;

    lst_enter(&at);
    LST_CHECK(lst_gives(npy(&at, f4_2x3), "[0 0.5 1] [1.5 2 2.5]"));
    LST_CHECK(lst_gives(npy(&at, i4_fortran),
                        "[[0 1 2 3] [4 5 6 7] [8 9 10 11]] "
                        "[[12 13 14 15] [16 17 18 19] [20 21 22 23]]"));
    ls_dataset *d = npy(&at, i2_big_endian);
    LST_CHECK(ls_spec_dtype(ls_dataset_spec(d)) == LS_I16);
    LST_CHECK(ls_dataset_cardinality(d) == 3);
    const int16_t *x = NULL;
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    LST_OK(ls_iterator_next((LST_OK(ls_dataset_iterate(d, &it, NULL)), it), &v, NULL));
    ls_value_release(v);
    LST_OK(ls_iterator_next(it, &v, NULL));
    x = ls_tensor_data(ls_value_as_tensor(v));
    LST_CHECK(*x == -2);
    ls_value_release(v);
    LST_OK(ls_iterator_next(it, &v, NULL));
    x = ls_tensor_data(ls_value_as_tensor(v));
    LST_CHECK(*x == 300);
    ls_value_release(v);
    ls_iterator_release(it);
    ls_dataset_release(d);
    d = npy(&at, f8_big_endian_v2);
    LST_OK(ls_dataset_iterate(d, &it, NULL));
    LST_OK(ls_iterator_next(it, &v, NULL));
    LST_CHECK(*(const double *)ls_tensor_data(ls_value_as_tensor(v)) == 1.5);
    ls_value_release(v);
    ls_iterator_release(it);
    ls_dataset_release(d);
    LST_CHECK(lst_gives(npy(&at, bool_v3), "1 0 1"));
    LST_CHECK(lst_gives(npy(&at, bytes_3), "a bcd "));
    LST_CHECK(lst_gives(npy(&at, unicode_2), "h\xc3\xa9 \xe2\x82\xac\xf0\x9f\x98\x80"));
    lst_leave(&at);
}

LST_TEST(what_is_no_array_of_numbers_or_strings_is_refused)
{
    lst_folder at;

    lst_enter(&at);
    LST_CHECK(lst_says(npy(&at, objects), 0, LS_INVALID_ARGUMENT, "a.npy", "|O"));
    LST_CHECK(lst_says(npy(&at, structs), 0, LS_INVALID_ARGUMENT, "a.npy", "records"));
    LST_CHECK(lst_says(npy(&at, complexes), 0, LS_INVALID_ARGUMENT, "a.npy", "<c8"));
    LST_CHECK(lst_says(npy(&at, scalar), 0, LS_INVALID_ARGUMENT, "", ""));
    LST_CHECK(lst_says(npy(&at, "0102030405060708090a0b0c"), 0, LS_INVALID_ARGUMENT,
                       "a.npy", "begin"));
    LST_CHECK(
        lst_says(ls_dataset_npy(lst_path(&at, "none")), 0, LS_NOT_FOUND, "none", ""));
    LST_CHECK(lst_says(ls_dataset_npy(at.path), 0, LS_FAILED_PRECONDITION, at.path, ""));
    LST_CHECK(
        lst_says(ls_dataset_npz(lst_path(&at, "none")), 0, LS_NOT_FOUND, "none", ""));
    LST_CHECK(lst_says(ls_dataset_npy(NULL), 0, LS_INVALID_ARGUMENT, "NULL", ""));
    lst_leave(&at);
}

LST_TEST(archives_are_dicts_of_arrays_stored_deflated_or_large)
{
    lst_folder at;

    lst_enter(&at);
    LST_CHECK(lst_gives(npz(&at, npz_stored),
                        "{x:0,y:[0 1]} {x:1,y:[2 3]} {x:2,y:[4 5]} {x:3,y:[6 7]}"));
    LST_CHECK(lst_gives(npz(&at, npz_deflated),
                        "{x:0,y:[0 0]} {x:1,y:[0 0]} {x:2,y:[0 0]} {x:3,y:[0 0]}"));
    LST_CHECK(lst_gives(npz(&at, npz_zip64), "{x:0} {x:1} {x:2}"));
    LST_CHECK(lst_gives(npz(&at, npz_large), "{x:0} {x:1} {x:2}"));
    lst_leave(&at);
}

/* Every prefix of a good file fails with the right code. */
static void cut_everywhere(lst_folder *at, const char *hex,
                           ls_dataset *(*open)(const char *))
{
    uint8_t bytes[1024];
    const size_t len = lst_unhex(hex, bytes, sizeof bytes);

    for (size_t cut = 0; cut < len; cut++) {
        ls_dataset *d = open(lst_file(at, "cut", bytes, cut));
        ls_error err = LS_ERROR_INIT;
        const ls_status st = ls_dataset_status(d, &err);

        LST_CHECK(st == LS_DATA_LOSS && strstr(err.message, "cut") != NULL);
        ls_dataset_release(d);
    }
}

LST_TEST(cut_files_are_data_loss)
{
    lst_folder at;

    lst_enter(&at);
    cut_everywhere(&at, f4_2x3, ls_dataset_npy);
    cut_everywhere(&at, i4_fortran, ls_dataset_npy);
    cut_everywhere(&at, bytes_3, ls_dataset_npy);
    cut_everywhere(&at, npz_stored, ls_dataset_npz);
    cut_everywhere(&at, npz_deflated, ls_dataset_npz);
    cut_everywhere(&at, npz_large, ls_dataset_npz);
    lst_leave(&at);
}

LST_TEST(a_flipped_bit_in_an_archive_is_never_taken_for_data)
{
    uint8_t bytes[1024];
    const size_t len = lst_unhex(npz_deflated, bytes, sizeof bytes);
    lst_folder at;
    int same = 0;

    lst_enter(&at);
    for (size_t i = 0; i < len * 8; i++) {
        lst_text t = {{0}, 0};
        ls_dataset *d;

        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        d = ls_dataset_npz(lst_file(&at, "flip", bytes, len));
        lst_put_events(&t, d, 10);
        // Either a failure, or only names and dates differ.
        LST_CHECK(t.s[0] == '!' || strstr(t.s, ":3") != NULL);
        same += t.s[0] != '!';
        ls_dataset_release(d);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    LST_CHECK(same > 0);
    lst_leave(&at);
}

/* A header of version 1 with this text. */
static const char *with_header(lst_folder *at, const char *text)
{
    static uint8_t bytes[512];
    const size_t len = strlen(text);

    memcpy(bytes, "\x93NUMPY\1\0", 8);
    bytes[8] = (uint8_t)len;
    bytes[9] = 0;
    memcpy(bytes + 10, text, len);
    return lst_file(at, "h.npy", bytes, 10 + len + 8);
}

LST_TEST(headers_that_lie_cost_no_memory)
{
    static const char *const lies[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }\n",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (4294967296, 4294967296), }\n",
        "{'descr': '<U99999', 'fortran_order': False, 'shape': (99999,), }\n",
    };
    static const char *const bad[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }\n",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }\n",
        "{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000,), }\n",
        "{'descr': '<f4', 'shape': (1,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }\n",
        "{'descr",
        "",
    };
    lst_folder at;

    lst_enter(&at);
    for (size_t i = 0; i < LSI_COUNT_OF(lies); i++) {
        LST_CHECK(lst_says(ls_dataset_npy(with_header(&at, lies[i])), 0, LS_DATA_LOSS,
                           "promises", "h.npy"));
    }
    for (size_t i = 0; i < LSI_COUNT_OF(bad); i++) {
        LST_CHECK(lst_says(ls_dataset_npy(with_header(&at, bad[i])), 0,
                           LS_INVALID_ARGUMENT, "h.npy", ""));
    }
    lst_leave(&at);
}

LST_TEST(an_idx_file_is_read_when_it_is_iterated_and_kept_as_long_as_its_dataset)
{
    static const char *const three = "0000080100000003010203";
    ls_dataset *d = NULL;
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    lst_folder at;

    lst_enter(&at);
    d = ls_dataset_idx(lst_hex_file(&at, "i", three));
    LST_CHECK(ls_dataset_cardinality(d) == 3 && lst_spec_is(d, "uint8 ()"));
    (void)lst_hex_file(&at, "i", "00000801000000020102");
    LST_FAILS(ls_dataset_iterate(d, &it, &err), LS_FAILED_PRECONDITION, err, "another");
    (void)lst_hex_file(&at, "i", three);
    LST_CHECK(lst_epoch(d, "1 2 3"));
    LST_OK(lsi_file_remove(lst_path(&at, "i"), NULL));
    LST_CHECK(lst_epoch(d, "1 2 3"));
    ls_dataset_release(d);
    lst_leave(&at);
}

LST_TEST(an_npy_file_is_read_when_it_is_iterated_and_kept_as_long_as_its_dataset)
{
    ls_dataset *d = NULL;
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    lst_folder at;

    lst_enter(&at);
    d = npy(&at, bytes_3);
    LST_CHECK(ls_dataset_cardinality(d) == 3 && lst_spec_is(d, "string ()"));
    (void)lst_hex_file(&at, "a.npy", unicode_2);
    LST_FAILS(ls_dataset_iterate(d, &it, &err), LS_FAILED_PRECONDITION, err, "another");
    (void)lst_hex_file(&at, "a.npy", bytes_3);
    LST_CHECK(lst_epoch(d, "a bcd "));
    LST_OK(lsi_file_remove(lst_path(&at, "a.npy"), NULL));
    LST_CHECK(lst_epoch(d, "a bcd "));
    ls_dataset_release(d);
    lst_leave(&at);
}

LST_TEST(idx_files_are_rows_and_may_be_gzipped)
{
    static const char gzipped[] = // of the first file below
        "1f8b08000000000002036360e0606260600061664626661656360048943ee512000000";
    lst_folder at;

    lst_enter(&at);
    LST_CHECK(lst_gives(ls_dataset_idx(lst_hex_file(&at, "i",
                                                    "0000080200000002000000030"
                                                    "10203040506")),
                        "[1 2 3] [4 5 6]"));
    LST_CHECK(lst_gives(ls_dataset_idx(lst_hex_file(&at, "i",
                                                    "00000c0100000002ffffffff"
                                                    "00000100")),
                        "-1 256"));
    LST_CHECK(lst_says(ls_dataset_idx(lst_hex_file(&at, "i",
                                                   "0000080200000002000000030102"
                                                   "030405")),
                       0, LS_DATA_LOSS, "cut off", "i"));
    LST_CHECK(lst_says(ls_dataset_idx(lst_hex_file(&at, "i", "000008020000")), 0,
                       LS_DATA_LOSS, "header", "i"));
    LST_CHECK(lst_says(ls_dataset_idx(lst_hex_file(&at, "i",
                                                   "00000803ffffffffffffffffffff"
                                                   "ffff")),
                       0, LS_DATA_LOSS, "cut off", "i"));
    LST_CHECK(lst_says(ls_dataset_idx(lst_hex_file(&at, "i", "00010801")), 0,
                       LS_INVALID_ARGUMENT, "IDX", "i"));
    LST_CHECK(lst_says(ls_dataset_idx(lst_hex_file(&at, "i", "")), 0, LS_INVALID_ARGUMENT,
                       "IDX", "i"));
    LST_CHECK(
        lst_gives(ls_dataset_idx(lst_hex_file(&at, "i", gzipped)), "[1 2 3] [4 5 6]"));
    lst_leave(&at);
}

LST_MAIN(
    LST_CASE(arrays_of_numpy_are_read_whatever_their_order_and_version),
    LST_CASE(what_is_no_array_of_numbers_or_strings_is_refused),
    LST_CASE(archives_are_dicts_of_arrays_stored_deflated_or_large),
    LST_CASE(cut_files_are_data_loss),
    LST_CASE(a_flipped_bit_in_an_archive_is_never_taken_for_data),
    LST_CASE(headers_that_lie_cost_no_memory),
    LST_CASE(an_idx_file_is_read_when_it_is_iterated_and_kept_as_long_as_its_dataset),
    LST_CASE(an_npy_file_is_read_when_it_is_iterated_and_kept_as_long_as_its_dataset),
    LST_CASE(idx_files_are_rows_and_may_be_gzipped))
