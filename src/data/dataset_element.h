/* Elements as values: rows of a batch, and what sources and functions of users return. */
#ifndef LSI_DATASET_ELEMENT_H
#define LSI_DATASET_ELEMENT_H
#include "value/value.h"

/* Row i of a batch as an element; rows [begin, end) as a batch. Both on `device`; NULL:
 * where the batch is, or on none. */
ls_status lsi_value_row(const ls_value *batch, int64_t i, ls_device *device,
                        ls_value **out, ls_error *err);
ls_status lsi_value_rows(const ls_value *batch, int64_t begin, int64_t end,
                         ls_device *device, ls_value **out, ls_error *err);

/* The structure of `v` with fn(leaf) in the place of each leaf; a sparse value is a leaf. */
typedef ls_status (*lsi_leaf_fn)(const ls_value *leaf, const void *user, ls_value **out,
                                 ls_error *err);
ls_status lsi_element_map(const ls_value *v, lsi_leaf_fn fn, const void *user,
                          ls_value **out, ls_error *err);

/* The size of axis 0 of all leaves; -1 and an error if it differs or one is a scalar. */
int64_t lsi_value_row_count(const ls_value *batch, ls_error *err);

/* A tensor's rows [begin, end), and row i, as tensors over its memory, on `device`. */
ls_tensor *lsi_tensor_rows(ls_tensor *t, int64_t begin, int64_t end, ls_device *device);
ls_tensor *lsi_tensor_row(ls_tensor *t, int64_t i, ls_device *device);

/* A scalar string tensor over memory that `owner` keeps; NULL: out of memory. */
ls_tensor *lsi_tensor_string(ls_string s, lsi_buffer *owner, ls_device *device);

/* The name of a file: the string of an element that is one scalar string. */
ls_status lsi_element_file_name(const ls_value *v, ls_string *out, ls_error *err);

/*
 * An element on `device` (NULL: tensors stay where they are) of what a source or function
 * of the user returned: literals become tensors; lists become tuples, or one tensor if
 * `stack` is set. Distributed values are refused.
 */
ls_status lsi_element_of(ls_value *v, bool stack, ls_device *device, ls_value **out,
                         ls_error *err);
#endif
