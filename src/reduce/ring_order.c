/*
 * The order of additions of the ring: how often a chunk is subdivided, and in which order
 * each subdivision visits the ranks. Transfers are the collective's.
 */
#include "reduce/reduction.h"

#define CHUNK_BYTES ((size_t)4 << 20)

int lsi_ring_subdivisions(size_t bytes, int ranks, int per_task, int max_per_device)
{
    const int each = max_per_device == 0 ? 2 : max_per_device;
    int s = 1;

    if (max_per_device < 0) {
        return 1;
    }
    while (s < each * per_task && bytes / ((size_t)ranks * (size_t)s) > CHUNK_BYTES) {
        s++;
    }
    return s;
}

void lsi_ring_offsets(int subdivisions, int per_task, int *offsets)
{
    const int stride = LSI_MAX(1, per_task / subdivisions);

    for (int k = 0; k < subdivisions; k++) {
        offsets[k] = k % 2 == 0 ? k * stride : -k * stride;
    }
}

int lsi_ring_position(int per_task, int offset, int i)
{
    const int task = i / per_task, local = i % per_task;
    const int turned = (local + (offset < 0 ? -offset : offset)) % per_task;

    return task * per_task + (offset < 0 ? per_task - 1 - turned : turned);
}

void lsi_ring_permutation(int tasks, int per_task, int offset, int *order)
{
    for (int i = 0; i < tasks * per_task; i++) {
        order[i] = lsi_ring_position(per_task, offset, i);
    }
}
