/* The node of flat_map and interleave; interleave_node.c builds it. */
#ifndef LSI_INTERLEAVE_H
#define LSI_INTERLEAVE_H
#include "data/user_function.h"

typedef struct lsi_interleave_node {
    ls_dataset base;
    ls_dataset_fn fn;
    void *user;
    lsi_shared_user *shared; /* retained: what `user` is; NULL: the user's own */
    int64_t cycle, block;    /* as asked for, and ... */
    int64_t slots, visit;    /* ... what became of them */
    int parallel;
    bool flat, unordered;
    char *reader; /* what base.reader points at */
} lsi_interleave_node;

/*
 * The dataset of an element, the caller's to release. *check: its elements have to be
 * compared with the node's spec one by one.
 */
ls_status lsi_interleave_open(const lsi_interleave_node *node, ls_value *element,
                              ls_dataset **out, bool *check, ls_error *err);

ls_status lsi_interleave_iterate(ls_dataset *d, lsi_iterator **out, ls_error *err);
#endif
