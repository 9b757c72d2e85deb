/*
 * Elements that are kept in their order, for a cache. A small element, whose value and
 * tensors would take many times the memory of its numbers, stands in a block beside
 * others of its shape: a batch of them. All others are kept as they are.
 *
 * Threads: one fills it; once it is sealed, any number read it.
 */
#ifndef LSI_SHELF_H
#define LSI_SHELF_H
#include "data/data.h"

typedef struct lsi_shelf lsi_shelf;

ls_status lsi_shelf_create(const ls_spec *element, lsi_shelf **out, ls_error *err);
lsi_shelf *lsi_shelf_retain(lsi_shelf *s);
void lsi_shelf_release(lsi_shelf *s); /* NULL is allowed */

/* Puts an element, which is retained or copied, behind the others. */
ls_status lsi_shelf_add(lsi_shelf *s, ls_value *element, ls_error *err);

/* Before elements are read. Others may be added after it. */
ls_status lsi_shelf_seal(lsi_shelf *s, ls_error *err);

size_t lsi_shelf_count(const lsi_shelf *s);

/*
 * Element `i`, the caller's to release, and elements [i, i + n) as rows. `*near` is
 * where the reader has been before: 0 to begin with.
 */
ls_status lsi_shelf_get(const lsi_shelf *s, size_t i, size_t *near, ls_value **out,
                        ls_error *err);
ls_status lsi_shelf_rows(const lsi_shelf *s, size_t i, size_t n, size_t *near,
                         lsi_rows *rows, ls_error *err);
#endif
