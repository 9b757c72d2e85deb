/*
 * Reads a safetensors file: 8 bytes of length, a JSON header of that length (name ->
 * dtype, shape, data_offsets), then the bytes. Every number in the file is checked before
 * it is used.
 */
#ifndef ORACLE_SAFETENSORS_H
#define ORACLE_SAFETENSORS_H
#include <lockstep/tensor.h>

typedef struct safetensors safetensors;

typedef struct safetensors_entry {
    const char *name;
    ls_dtype dtype; /* LS_F32 or LS_I32: what the files of the oracle hold */
    ls_shape shape;
    int64_t count;
    const void *data; /* not aligned: copy it out */
} safetensors_entry;

/* NULL: `why` says what is wrong with the file. */
safetensors *safetensors_open(const char *path, char *why, size_t size);
void safetensors_close(safetensors *st); /* NULL is allowed */

size_t safetensors_count(const safetensors *st);
const safetensors_entry *safetensors_at(const safetensors *st, size_t i);

/* NULL: no tensor has that name. */
const safetensors_entry *safetensors_find(const safetensors *st, const char *name);
#endif
