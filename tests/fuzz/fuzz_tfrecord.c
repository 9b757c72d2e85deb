/*
 * Fuzz target for files of records, lines and fixed lengths. The first byte chooses the
 * format, the second when the position is saved; `repair` corrects the checksums, so that
 * the code behind them is reached.
 */
#include "data/file/stream.h"
#include "fuzz.h"
#include "lockstep/record.h"

enum { RECORDS, REPAIRED, LINES, FIXED };

static void repair(uint8_t *p, size_t len)
{
    while (len >= 16) {
        uint64_t n = lsi_le64(p);

        lsi_put_le32(p + 8, lsi_crc32c_masked(p, 8));
        if (n > len - 16) {
            return; // a wrong length stays
        }
        lsi_put_le32(p + 12 + n, lsi_crc32c_masked(p + 12, (size_t)n));
        p += 16 + n;
        len -= 16 + (size_t)n;
    }
}

static ls_dataset *open_as(int format, const char *const *names, const ls_read_options *o)
{
    switch (format) {
    case LINES:
        return ls_dataset_text_files(names, 2, o);
    case FIXED:
        return ls_dataset_fixed_files(names, 2, 3, 1, 2, o);
    default:
        return ls_dataset_tfrecord_files(names, 2, o);
    }
}

/* The same bytes by a reader without a dataset, which skips every record or every other. */
static void read_plainly(const char *name, const ls_read_options *read, bool lines,
                         int step)
{
    ls_record_reader_options o = LS_RECORD_READER_OPTIONS_INIT;
    ls_record_reader *r = NULL;
    ls_error err = LS_ERROR_INIT;
    uint64_t sum = 0;
    ls_status st;

    o.compression = read->compression;
    o.buffer = read->buffer;
    o.lines = lines;
    o.whole = step % 2 == 1;
    FUZZ_CHECK(ls_record_reader_open(name, &o, &r, &err) == LS_OK);
    do {
        ls_string s = {NULL, 0};

        st = step > 0 ? ls_record_reader_skip(r, &err) : LS_OK;
        st = st == LS_OK && step < 2 ? ls_record_reader_next(r, &s, &err) : st;
        for (size_t i = 0; st == LS_OK && i < s.len; i++) {
            sum = sum * 31 + (uint8_t)s.ptr[i];
        }
    } while (st == LS_OK);
    FUZZ_CHECK(st == LS_OUT_OF_RANGE || (st == LS_DATA_LOSS && err.message[0] != '\0'));
    (void)sum;
    ls_record_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const compressions[] = {"", "ZLIB", "GZIP"};
    ls_read_options o = LS_READ_OPTIONS_INIT;
    const char *names[2];
    ls_dataset *d;
    int format;

    if (size < 2) {
        return 0;
    }
    o.compression = compressions[data[0] % 3];
    o.buffer = 1; // as small as it gets
    format = data[0] / 3 % 4;
    if (format == REPAIRED) {
        uint8_t *copy = malloc(size);

        FUZZ_CHECK(copy != NULL);
        memcpy(copy, data, size);
        repair(copy + 2, size - 2);
        names[0] = names[1] = fuzz_file(copy + 2, size - 2);
        o.compression = "";
        free(copy);
    } else {
        names[0] = names[1] = fuzz_file(data + 2, size - 2);
    }
    for (int step = 0; format != FIXED && step < 3; step++) {
        read_plainly(names[0], &o, format == LINES, step);
    }
    d = open_as(format, names, &o);
    fuzz_read(ls_dataset_retain(d), data[1] % 16);
    fuzz_read(ls_dataset_batch(ls_dataset_retain(d), 3), data[1] % 16);
    fuzz_read(ls_dataset_skip(d, data[1] % 5), data[1] % 16);
    return 0;
}
