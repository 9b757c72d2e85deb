/* The node of flat_map and interleave; interleave_node.c builds it. */
#ifndef LSI_INTERLEAVE_H
#define LSI_INTERLEAVE_H
#include "data/user_function.h"

typedef struct lsi_interleave_node {
    ls_dataset base;
    ls_dataset_fn fn;
    void *user;
    lsi_shared_user
        *shared;          /* retained; what `user` points to; NULL: it is the caller's */
    int64_t cycle, block; /* as the caller set them */
    int64_t slots, visit; /* as they are used: defaults filled in */
    int parallel;
    bool flat, unordered;
    char *reader; /* what base.reader points to */
} lsi_interleave_node;

/*
 * The dataset that the function makes of an element, the caller's to release. *check:
 * each of its elements has to be checked against the node's spec.
 */
ls_status lsi_interleave_open(const lsi_interleave_node *node, ls_value *element,
                              ls_dataset **out, bool *check, ls_error *err);

ls_status lsi_interleave_iterate(ls_dataset *d, const lsi_opening *how,
                                 lsi_iterator **out, ls_error *err);
#endif
