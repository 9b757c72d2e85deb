/*
 * Inputs of an operation as a line of text:
 *
 *     "f[n,K] f[K,3]{0.5,2} i32[2]{0,K} bool[] null"
 *
 * A dtype and the sizes of its axes. "f" is the floating dtype under test. A small letter
 * is a size drawn at random, which may be 0; a capital one is at least 1; the same letter
 * is the same size everywhere in the line. {lo,hi} is the range of the values (a letter:
 * its size), {#lo,hi} makes them whole numbers, so that there are ties; "{!}" takes
 * special values: infinities, NaN, zeros of both signs, the smallest and the largest
 * numbers. "null" is no tensor.
 */
#ifndef LST_SIGNATURE_H
#define LST_SIGNATURE_H
#include "tensor/tensor.h"

enum { SIG_MOST = 8 };

typedef struct sig_input {
    bool null, special, whole;
    ls_dtype dtype;
    ls_shape shape;
    double lo, hi;
} sig_input;

/* Sizes of the letters: 'a'..'z' and 'A'..'Z'. */
typedef struct sig_sizes {
    int64_t of[128];
} sig_sizes;

/* Draw number `draw` of sizes for `text`: 0 has only ones, 1 and 2 have an empty axis. */
void sig_draw(const char *text, int draw, uint64_t *random, sig_sizes *sizes);

/* True if the line has letters: several draws make sense. */
bool sig_varies(const char *text);

/* Reads the line; returns the number of inputs, or -1: it cannot be read. */
int sig_parse(const char *text, const sig_sizes *sizes, ls_dtype real,
              sig_input in[SIG_MOST]);

/* Makes a tensor with random values. NULL: memory. */
ls_tensor *sig_tensor(ls_device *dev, const sig_input *in, uint64_t *random);

/* A tensor of the same values on another device. NULL: memory. */
ls_tensor *sig_copy(ls_device *dev, const ls_tensor *t);
#endif
