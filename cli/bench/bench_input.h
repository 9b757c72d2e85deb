/* The files that `lockstep bench input` reads. */
#ifndef CLI_BENCH_INPUT_H
#define CLI_BENCH_INPUT_H

#include "cli/bench/bench.h"

#include <lockstep/distribute.h>
#include <lockstep/example.h>
#include <lockstep/record.h>

enum {
    INPUT_RECORD = 1024,
    INPUT_NUMBERS = 10, /* numeric features of an Example */
    INPUT_FEATURES = INPUT_NUMBERS + 1,
    INPUT_IMAGE = 784,
};

typedef struct input_files {
    char folder[256];
    char plain[300], gzip[300], examples[300];
    int64_t records, gzip_records, example_records;
} input_files;

/* Writes them into a temporary folder. input_files_remove() also after a failure. */
ls_status input_files_make(input_files *f, ls_error *err);
void input_files_remove(input_files *f);

/* Reads them through the library and compares every byte with what was written. */
ls_status input_files_check(const input_files *f, ls_error *err);

/* The row `waiting`: the share of a training step that waits for its batch. */
int bench_waiting(const bench_options *o);

/* The features of the Examples: half int64, half float, and an image. */
void input_features(ls_feature features[INPUT_FEATURES]);
#endif
