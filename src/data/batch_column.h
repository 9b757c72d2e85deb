/* A column of a batch that is being put together: the rows of one leaf (batch_rows.c). */
#ifndef LSI_BATCH_COLUMN_H
#define LSI_BATCH_COLUMN_H
#include "data/spec.h"

/* Where a batch is put together, and for how many rows. */
typedef struct lsi_batch_plan {
    ls_device *device; /* NULL: none */
    int64_t capacity;  /* rows to expect */
} lsi_batch_plan;

typedef struct lsi_batch_column {
    bool open; /* dtype and shape are set, from the first row */
    ls_dtype dtype;
    ls_shape shape; /* of a row */
    size_t row_bytes;
    int64_t count, room;
    ls_tensor *tensor;  /* of numbers */
    ls_string *strings; /* of strings, with the owners of their bytes */
    lsi_buffer **owners;
    size_t nowners, owner_room;
    ls_value **sparse; /* rows of a sparse leaf, retained */
} lsi_batch_column;

void lsi_batch_column_clear(lsi_batch_column *c);

/*
 * `n` rows of `shape`, which must be that of the first row; `owner` (NULL: none) keeps
 * the bytes of strings. `leaf` is for the message.
 */
ls_status lsi_batch_column_append(lsi_batch_column *c, size_t leaf, ls_dtype dtype,
                                  const ls_shape *shape, const void *data,
                                  lsi_buffer *owner, int64_t n,
                                  const lsi_batch_plan *plan, ls_error *err);
ls_status lsi_batch_column_append_sparse(lsi_batch_column *c, const ls_value *v,
                                         ls_error *err);

/* The rows as one leaf; the caller calls lsi_batch_column_clear() afterwards. */
ls_status lsi_batch_column_take(lsi_batch_column *c, const lsi_batch_plan *plan,
                                ls_value **out, ls_error *err);
#endif
