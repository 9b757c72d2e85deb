/* Sparse leaves of elements: a named tuple of indices, values and a dense shape. */
#ifndef LSI_SPARSE_H
#define LSI_SPARSE_H
#include "value/value.h"

/* The named tuple "SparseTensor", and whether a value is one. */
ls_status lsi_sparse_value(ls_tensor *indices, ls_tensor *values, ls_tensor *dense_shape,
                           ls_value **out, ls_error *err);
bool lsi_value_is_sparse(const ls_value *v);

/* `n` sparse values of one rank stacked along a new axis 0 of size n. */
ls_status lsi_sparse_stack(ls_value *const *values, size_t n, ls_device *device,
                           ls_value **out, ls_error *err);

/* Rows [begin, end) of axis 0; `drop`: of a single row, without that axis. */
ls_status lsi_sparse_rows(const ls_value *v, int64_t begin, int64_t end, bool drop,
                          ls_device *device, ls_value **out, ls_error *err);

/* The size of axis 0; -1: it has no axis. */
int64_t lsi_sparse_row_count(const ls_value *v);
#endif
