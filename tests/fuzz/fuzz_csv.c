/*
 * Fuzz target for CSV files: the first byte chooses the options, the second when the
 * position is saved. Rows of batches must be equal to the elements one by one.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int listed[] = {0, 2, 3};
    ls_csv_options o = LS_CSV_OPTIONS_INIT;
    ls_csv_column columns[3] = {{LS_I32, NULL}, {LS_F32, NULL}, {LS_STRING, NULL}};
    const char *names[2];
    ls_dataset *d;

    if (size < 2) {
        return 0;
    }
    o.header = (data[0] & 1) != 0;
    o.plain_quotes = (data[0] & 2) != 0;
    o.na = "NA";
    o.read.buffer = 1;
    if ((data[0] & 4) != 0) {
        o.select = listed;
        o.nselect = 3;
    } else if ((data[0] & 8) != 0) {
        o.exclude = listed;
        o.nexclude = 2;
    }
    if ((data[0] & 16) != 0) {
        columns[0].dtype = LS_I64;
        columns[1].dtype = LS_F64;
    }
    if ((data[0] & 32) != 0) {
        FUZZ_CHECK(ls_value_int(5, &columns[0].otherwise, NULL) == LS_OK);
        FUZZ_CHECK(ls_value_float(0.5, &columns[1].otherwise, NULL) == LS_OK);
    }
    names[0] = names[1] = fuzz_file(data + 2, size - 2);
    d = ls_dataset_csv_files(names, 2, columns, 3, &o);
    FUZZ_CHECK(fuzz_all(ls_dataset_retain(d)) ==
               fuzz_all(ls_dataset_unbatch(ls_dataset_batch(ls_dataset_retain(d), 1))));
    fuzz_read(ls_dataset_batch(ls_dataset_retain(d), 3), data[1] % 16);
    fuzz_read(d, data[1] % 16);
    ls_value_release(columns[0].otherwise);
    ls_value_release(columns[1].otherwise);
    return 0;
}
