/*
 * A list of elements in memory, for a cache. Small elements, whose value and tensor
 * structs would take many times the memory of their numbers, are stored together as rows
 * of a batch, which is on no device; all others are retained as they are.
 *
 * Threads: one at a time while it is filled; once it is sealed, any number may read.
 */
#ifndef LSI_ELEMENT_LIST_H
#define LSI_ELEMENT_LIST_H
#include "data/data.h"

typedef struct lsi_element_list lsi_element_list;

ls_status lsi_element_list_create(const ls_spec *element, lsi_element_list **out,
                                  ls_error *err);
lsi_element_list *lsi_element_list_retain(lsi_element_list *s);
void lsi_element_list_release(lsi_element_list *s); /* NULL is allowed */

/* Appends an element, which is retained or copied. */
ls_status lsi_element_list_add(lsi_element_list *s, ls_value *element, ls_error *err);

/* Must be called before elements are read. More may be added afterwards. */
ls_status lsi_element_list_seal(lsi_element_list *s, ls_error *err);

size_t lsi_element_list_count(const lsi_element_list *s);

/*
 * Element `i` on `device`, the caller's to release, and elements [i, i + n) as rows.
 * `*near` is the reader's last block, which makes the next search short: 0 to begin with.
 */
ls_status lsi_element_list_get(const lsi_element_list *s, size_t i, size_t *near,
                               ls_device *device, ls_value **out, ls_error *err);
ls_status lsi_element_list_rows(const lsi_element_list *s, size_t i, size_t n,
                                size_t *near, lsi_batch_rows *rows, ls_error *err);
#endif
