/* The node of a map: map.c makes one call after the other, parallel_map.c several. */
#ifndef LSI_MAP_H
#define LSI_MAP_H
#include "data/user_function.h"

typedef struct lsi_map_node {
    ls_dataset base;
    ls_map_fn fn;
    void *user;
    int parallel; /* calls at once; 0: one, on the thread that calls next() */
    bool unordered;
    char *reader; /* what base.reader points to */
} lsi_map_node;

/* fn(element), checked against the node's spec; `number`: the element's index. */
ls_status lsi_map_call(const lsi_iterator *it, uint64_t number, ls_context **c,
                       ls_value *element, ls_value **out, ls_error *err);

ls_status lsi_parallel_map_iterate(ls_dataset *d, const lsi_opening *how,
                                   lsi_iterator **out, ls_error *err);
#endif
