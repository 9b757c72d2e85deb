/* Reading NumPy's arrays: one in an .npy file, several in a zip archive, .npz. */
#ifndef LSI_NPY_H
#define LSI_NPY_H
#include "data/data.h"
#include "data/file/stream.h"

/* A sequence of bytes: a part of a file, or memory. */
typedef struct lsi_npy_source {
    const char *path; /* for messages */
    const char *name; /* of the member; NULL: the file is the array */
    lsi_file *file;   /* NULL: the bytes are in `memory` */
    const uint8_t *memory;
    uint64_t begin; /* of the part */
    uint64_t size;
    uint64_t at;  /* read so far */
    uint32_t crc; /* CRC-32 of what was read, if `sum` is set */
    bool sum;
} lsi_npy_source;

/* Reads the next `len` bytes. LS_DATA_LOSS: there are fewer. */
ls_status lsi_npy_read(lsi_npy_source *src, void *to, size_t len, ls_error *err);

/* The array of an .npy file, converted to native byte order and row-major order. */
ls_status lsi_npy_tensor(lsi_npy_source *src, ls_tensor **out, ls_error *err);

/* The spec of that array, from its header. */
ls_status lsi_npy_spec(lsi_npy_source *src, ls_spec **out, ls_error *err);

/* What its header says, in NumPy's words, also of arrays that cannot be read; the name stays
 * as it is. */
ls_status lsi_npy_describe(lsi_npy_source *src, ls_array_header *out, ls_error *err);

/* The arrays of an archive, as a dict. */
ls_status lsi_npz_read(const char *path, ls_value **out, ls_error *err);

/* Reverses the bytes of each of `count` elements of `size` bytes. */
void lsi_swap_bytes(void *data, size_t count, size_t size);
#endif
