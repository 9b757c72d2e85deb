/*
 * The shape of trees over ranks: the levels of a reduction, and the broadcast tree of the
 * specification, in which every rank but the source has a parent.
 */
#include "collective/call.h"

int lsi_tree_levels(int ranks)
{
    int levels = 0;

    while (((int64_t)1 << levels) < ranks) {
        levels++;
    }
    return levels;
}

int lsi_tree_parent(int size, int source, int r)
{
    (void)size;
    if (r == source) {
        return -1;
    }
    if (source == 0) {
        return (r - 1) / 2;
    }
    return r < 2 ? source : r / 2 - 1;
}

int lsi_tree_children(int size, int source, int r, int *children, int room)
{
    const int first = source == 0 ? 2 * r + 1 : 2 * (r + 1);
    int candidates[4], n = 0, found = 0;

    if (r == source && source != 0) {
        candidates[n++] = 0;
        if (size > 2 && source != 1) {
            candidates[n++] = 1;
        }
    }
    candidates[n++] = first;
    candidates[n++] = first + 1;
    for (int i = 0; i < n; i++) {
        if (candidates[i] < size && candidates[i] != source) {
            if (found < room) {
                children[found] = candidates[i];
            }
            found++;
        }
    }
    return found;
}

int lsi_tree_depth_of(int size, int source, int r)
{
    int depth = 0;

    for (int p = r; p != source; p = lsi_tree_parent(size, source, p)) {
        depth++;
    }
    return depth;
}

int lsi_tree_depth(int size, int source)
{
    int depth = 0;

    for (int r = 0; r < size; r++) {
        depth = LSI_MAX(depth, lsi_tree_depth_of(size, source, r));
    }
    return depth;
}
