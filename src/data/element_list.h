/*
 * Elements that are kept in their order, for a cache. A small element, whose value and
 * tensors would take many times the memory of its numbers, stands in a block beside
 * others of its shape: a batch of them. All others are kept as they are.
 *
 * Threads: one fills it; once it is sealed, any number read it.
 */
#ifndef LSI_ELEMENT_LIST_H
#define LSI_ELEMENT_LIST_H
#include "data/data.h"

typedef struct lsi_element_list lsi_element_list;

ls_status lsi_element_list_create(const ls_spec *element, lsi_element_list **out,
                                  ls_error *err);
lsi_element_list *lsi_element_list_retain(lsi_element_list *s);
void lsi_element_list_release(lsi_element_list *s); /* NULL is allowed */

/* Puts an element, which is retained or copied, behind the others. */
ls_status lsi_element_list_add(lsi_element_list *s, ls_value *element, ls_error *err);

/* Before elements are read. Others may be added after it. */
ls_status lsi_element_list_seal(lsi_element_list *s, ls_error *err);

size_t lsi_element_list_count(const lsi_element_list *s);

/*
 * Element `i`, the caller's to release, and elements [i, i + n) as rows. `*near` is
 * where the reader has been before: 0 to begin with.
 */
ls_status lsi_element_list_get(const lsi_element_list *s, size_t i, size_t *near,
                               ls_value **out, ls_error *err);
ls_status lsi_element_list_rows(const lsi_element_list *s, size_t i, size_t n,
                                size_t *near, lsi_batch_rows *rows, ls_error *err);
#endif
