/* Sparse leaves of elements: a named tuple of indices, values and a dense shape. */
#ifndef LSI_DATA_SPARSE_H
#define LSI_DATA_SPARSE_H
#include "data/data.h"

/* `n` sparse values of one rank, one above the other: a new first axis of size n. */
ls_status lsi_sparse_stack(ls_value *const *values, size_t n, ls_value **out,
                           ls_error *err);

/* Rows [begin, end) of axis 0; `drop`: of a single row, without that axis. */
ls_status lsi_sparse_rows(const ls_value *v, int64_t begin, int64_t end, bool drop,
                          ls_value **out, ls_error *err);

/* Size of axis 0; -1: it has no axis. */
int64_t lsi_sparse_row_count(const ls_value *v);
#endif
