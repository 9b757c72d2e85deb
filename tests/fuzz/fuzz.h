/* What the fuzz targets share: the input as a file, and datasets read to their end. */
#ifndef LS_FUZZ_H
#define LS_FUZZ_H
#include "data/data.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A condition that must hold for every input; ends the run if it does not. */
#define FUZZ_CHECK(cond)                                                                 \
    do {                                                                                 \
        if (!(cond)) {                                                                   \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);             \
            abort();                                                                     \
        }                                                                                \
    } while (0)

static char fuzz_path[64];

static inline void fuzz_clean(void)
{
    (void)remove(fuzz_path);
}

/* Writes the bytes to this process's own file. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    lsi_file *file = NULL;

    if (fuzz_path[0] == '\0') {
        (void)snprintf(fuzz_path, sizeof fuzz_path, "/tmp/ls-fuzz-%ld", (long)getpid());
        FUZZ_CHECK(atexit(fuzz_clean) == 0);
    }
    FUZZ_CHECK(lsi_file_open(fuzz_path, LSI_FILE_WRITE, &file, NULL) == LS_OK);
    FUZZ_CHECK(lsi_file_write(file, data, size, NULL) == LS_OK);
    lsi_file_close(file);
    return fuzz_path;
}

/* Reads all bytes of a tensor, so that a sanitizer finds bad ones. */
static inline uint64_t fuzz_sum(const ls_tensor *t)
{
    const uint8_t *p = ls_tensor_data(t);
    uint64_t sum = 0;

    if (ls_tensor_dtype(t) == LS_STRING) {
        for (int64_t i = 0; i < ls_tensor_count(t); i++) {
            const ls_string *s = (const ls_string *)(const void *)p + i;

            for (size_t k = 0; k < s->len; k++) {
                sum = sum * 31 + (uint8_t)s->ptr[k];
            }
        }
        return sum;
    }
    for (size_t i = 0; i < ls_tensor_bytes(t); i++) {
        sum = sum * 31 + p[i];
    }
    return sum;
}

static inline uint64_t fuzz_sum_value(const ls_value *v)
{
    uint64_t sum = ls_value_as_tensor(v) != NULL ? fuzz_sum(ls_value_as_tensor(v)) : 0;

    for (size_t i = 0; i < ls_value_size(v); i++) {
        sum = sum * 37 + fuzz_sum_value(ls_value_child(v, i));
    }
    return sum;
}

enum { FUZZ_CALLS = 200 }; // some failures come back for ever

/* The result of one call as a hash; *over is set at the end. */
static inline uint64_t fuzz_next(ls_iterator *it, bool *over)
{
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;
    const ls_status st = ls_iterator_next(it, &v, &err);
    const uint64_t sum = st == LS_OK ? fuzz_sum_value(v) : 0;

    FUZZ_CHECK(st == LS_OK || st == LS_OUT_OF_RANGE || err.message[0] != '\0');
    FUZZ_CHECK(st == LS_OK || st == LS_OUT_OF_RANGE || st == LS_DATA_LOSS ||
               st == LS_INVALID_ARGUMENT);
    ls_value_release(v);
    *over = st == LS_OUT_OF_RANGE;
    return sum * 41 + (uint64_t)st;
}

/* All results of the dataset, which is released, as a hash. */
static inline uint64_t fuzz_all(ls_dataset *d)
{
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    bool over = false;
    uint64_t all = 0;

    if (ls_dataset_iterate(d, &it, &err) != LS_OK) {
        FUZZ_CHECK(err.message[0] != '\0');
        over = true;
    }
    for (int n = 0; !over && n < FUZZ_CALLS; n++) {
        all = all * 43 + fuzz_next(it, &over);
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
    return all;
}

/*
 * Reads the dataset, which is released, to its end, and again with the position saved
 * after `at` calls and restored: both must give the same.
 */
static inline void fuzz_read(ls_dataset *d, int at)
{
    ls_iterator *it = NULL, *second = NULL;
    ls_value *state = NULL;
    ls_error err = LS_ERROR_INIT;
    bool over = false;
    uint64_t whole = 0, parts = 0;
    int n = 0;

    if (ls_dataset_iterate(d, &it, &err) != LS_OK) {
        FUZZ_CHECK(err.message[0] != '\0');
        ls_dataset_release(d);
        return;
    }
    for (n = 0; !over && n < FUZZ_CALLS; n++) {
        whole = whole * 43 + fuzz_next(it, &over);
    }
    ls_iterator_release(it);
    FUZZ_CHECK(ls_dataset_iterate(d, &it, &err) == LS_OK);
    over = false;
    for (n = 0; !over && n < FUZZ_CALLS; n++) {
        if (n == at) {
            FUZZ_CHECK(ls_iterator_save(it, &state, &err) == LS_OK);
            FUZZ_CHECK(ls_dataset_iterate(d, &second, &err) == LS_OK);
            FUZZ_CHECK(ls_iterator_restore(second, state, &err) == LS_OK);
            ls_iterator_release(it);
            it = second;
            ls_value_release(state);
        }
        parts = parts * 43 + fuzz_next(it, &over);
    }
    FUZZ_CHECK(whole == parts);
    ls_iterator_release(it);
    ls_dataset_release(d);
}
#endif
