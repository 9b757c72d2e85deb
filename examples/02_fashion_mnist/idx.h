/* Fashion-MNIST as it comes: gzip'd IDX files, images 28 x 28 of bytes, labels 0 to 9. */
#ifndef EXAMPLE_IDX_H
#define EXAMPLE_IDX_H

#include <stddef.h>
#include <stdint.h>

enum { IDX_SIDE = 28, IDX_PIXELS = IDX_SIDE * IDX_SIDE, IDX_CLASSES = 10 };

typedef struct idx_set {
    size_t count;
    float *pixels;   /* count x IDX_PIXELS, scaled to [0, 1] */
    int32_t *labels; /* count */
} idx_set;

/*
 * Reads `part` ("train" or "t10k") from folder `dir`. Returns 0, or -1 after writing one
 * line into `why`: which file, what is wrong with it, what to do.
 */
int idx_load(const char *dir, const char *part, idx_set *out, char *why, size_t size);
void idx_release(idx_set *set);
#endif
