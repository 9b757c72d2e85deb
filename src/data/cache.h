/* The node of a cache: cache.c keeps elements in memory, cache_file.c in a file. */
#ifndef LSI_CACHE_H
#define LSI_CACHE_H
#include "data/element_list.h"

typedef struct lsi_cache_node {
    ls_dataset base;
    char *file;                 /* NULL: in memory */
    lsi_mutex lock;             /* guards the list */
    lsi_element_list *complete; /* the elements of a whole pass; NULL: none yet */
} lsi_cache_node;

ls_status lsi_cache_file_iterate(ls_dataset *d, const lsi_opening *how,
                                 lsi_iterator **out, ls_error *err);

/* Logs that a pass stopped before its end, so that the cache stays empty. */
void lsi_cache_warn(const lsi_cache_node *node);
#endif
