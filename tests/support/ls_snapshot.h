/* Snapshots of a training: bytes of variables and slots, to be compared as they are. */
#ifndef LS_SNAPSHOT_H
#define LS_SNAPSHOT_H
#include "ls_test.h"

#include "lockstep/lockstep.h"

/* Zeroed: empty. Ends with lst_snapshot_free(). */
typedef struct lst_snapshot {
    unsigned char *bytes;
    size_t used, room;
} lst_snapshot;

void lst_snapshot_bytes(lst_snapshot *r, const void *bytes, size_t n);
void lst_snapshot_free(lst_snapshot *r); /* and makes it empty */

/* The value of a variable with its size before it: one copy, or the aggregate. */
void lst_snapshot_value(lst_snapshot *r, ls_variable *v);

/*
 * The copies that local replica `k` has of the variables, and of the slots that the
 * optimizer (NULL: none) has of them, with their names.
 */
void lst_snapshot_copies(lst_snapshot *r, ls_variable *const *v, size_t n,
                         const ls_optimizer *o, int k);

/* The same bytes, and some. */
bool lst_snapshot_same(const lst_snapshot *a, const lst_snapshot *b);
#endif
