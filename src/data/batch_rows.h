/* A batch that is put together row by row: a column for each leaf of the elements. */
#ifndef LSI_BATCH_ROWS_H
#define LSI_BATCH_ROWS_H
#include "data/spec.h"
#include "data/string_pool.h"

typedef struct lsi_batch_rows lsi_batch_rows;

/* Columns for the leaves of `element`, with room for `capacity` rows to begin with; the
 * batch will be on `device`. */
ls_status lsi_batch_rows_create(const ls_spec *element, int64_t capacity,
                                ls_device *device, lsi_batch_rows **out, ls_error *err);
void lsi_batch_rows_release(lsi_batch_rows *rows); /* NULL is allowed */
int64_t lsi_batch_rows_count(const lsi_batch_rows *rows);
void lsi_batch_rows_clear(lsi_batch_rows *rows); /* drops all rows */

/*
 * Copies an element's leaves to the next row. Their shapes must be those of the first
 * row. If they are not, the rows are spoilt: later ones are only counted, and
 * lsi_batch_rows_take() fails.
 */
ls_status lsi_batch_rows_add(lsi_batch_rows *rows, const ls_value *element,
                             ls_error *err);

/* Rows [begin, end) of a batch. */
ls_status lsi_batch_rows_add_rows(lsi_batch_rows *rows, const ls_value *batch,
                                  int64_t begin, int64_t end, ls_error *err);

/*
 * For sources: `n` rows of `shape` for one leaf, at `data`. The same rows must be added
 * for the other leaves before any others. `owner` (NULL: none) keeps the bytes of
 * strings.
 */
ls_status lsi_batch_rows_add_block(lsi_batch_rows *rows, size_t leaf, ls_dtype dtype,
                                   const ls_shape *shape, const void *data,
                                   lsi_buffer *owner, int64_t n, ls_error *err);

/* For readers: one string that lies in the memory of `owner`, which is retained. */
ls_status lsi_batch_rows_add_string(lsi_batch_rows *rows, ls_string s, lsi_buffer *owner,
                                    ls_error *err);

/* The batch as a value. Afterwards, also after a failure, there are no rows. */
ls_status lsi_batch_rows_take(lsi_batch_rows *rows, ls_value **out, ls_error *err);

/*
 * Rows that do not become a batch: elements are one scalar string each, and add()
 * receives them as they arrive, in slots of `pool` that belong to it from then on, also
 * if it fails.
 */
typedef struct lsi_string_sink {
    ls_status (*add)(struct lsi_string_sink *self, const ls_string *strings, size_t n,
                     ls_error *err);
    lsi_string_pool *pool;
} lsi_string_sink;
ls_status lsi_batch_rows_create_sink(const ls_spec *element, lsi_string_sink *sink,
                                     lsi_batch_rows **out, ls_error *err);

/* For readers: the pool of the sink, NULL if there is none; and strings that lie in slots
 * of that pool already. */
lsi_string_pool *lsi_batch_rows_pool(const lsi_batch_rows *rows);
ls_status lsi_batch_rows_add_pooled(lsi_batch_rows *rows, const ls_string *strings,
                                    size_t n, ls_error *err);

/* LS_OK, or the failure that spoilt the rows. Afterwards there are no rows. */
ls_status lsi_batch_rows_finish(lsi_batch_rows *rows, ls_error *err);
#endif
