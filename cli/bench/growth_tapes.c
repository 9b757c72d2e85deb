/* How a step grows with what is on its tape. */
#include "cli/bench/growth.h"

#include <stdlib.h>

enum { WIDE = 128, ROWS = 8, LOOKED_UP = 512, PARTED = 1 << 18, STEP_MOST = 4096 };

/* The first `used` of the `n` elements of a gradient, which may be sparse, are `x`, and
 * the others 0. */
static void check_gradient(growth_run *r, const ls_tensor *t, int64_t n, int64_t used,
                           float x)
{
    float *p = growth_room(r, (size_t)n, sizeof *p);
    bool right = true;

    GROWTH_TRY(r, ls_context_status(r->c, &r->err));
    growth_check(r, t != NULL, "there is no gradient");
    GROWTH_TRY(r, ls_tensor_read(t, p, (size_t)n * sizeof *p, &r->err));
    for (int64_t i = 0; r->st == LS_OK && i < n; i++) {
        right = right && p[i] == (i < used ? x : 0);
    }
    growth_check(r, right, "a gradient is not what it should be");
    free(p);
}

/* x + 1 */
static ls_tensor *add_one(growth_run *r, ls_tensor *x)
{
    return ls_add(r->c, x, ls_constant_f32(r->c, 1));
}

/* One weight used n times, as a recurrent network does: h = h W + 1. */
static void use_weight(growth_run *r)
{
    ls_variable *w = NULL;
    ls_tape *tape = NULL;
    ls_tensor *h = NULL, *g = NULL;

    growth_runtime(r, 1);
    w = growth_variable(r, LS_SHAPE(WIDE, WIDE));
    if (r->st == LS_OK) {
        growth_begin(r);
        tape = ls_tape_open(r->c, NULL);
        h = ls_constant(r->c, LS_F32, LS_SHAPE(1, WIDE), NULL);
        for (int64_t i = 0; i < r->n; i++) {
            h = add_one(r, ls_matmul(r->c, h, ls_read(r->c, w)));
        }
        ls_variable_gradients(r->c, tape, ls_sum(r->c, h, NULL, 0, false), &w, 1, &g);
        growth_end(r);
        // W is zero: every h but the first is 1, and only the last use goes to the sum.
        check_gradient(r, g, (int64_t)WIDE * WIDE, (int64_t)WIDE * WIDE, 1);
    }
    growth_finish(r);
    ls_variable_release(w);
}

/* One table looked up n times, eight rows each. */
static void look_up(growth_run *r)
{
    const int64_t rows[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7};
    ls_variable *w = NULL;
    ls_tape *tape = NULL;
    ls_tensor *h = NULL, *at = NULL, *g = NULL;

    growth_runtime(r, 1);
    w = growth_variable(r, LS_SHAPE(LOOKED_UP, WIDE));
    if (r->st == LS_OK) {
        growth_begin(r);
        tape = ls_tape_open(r->c, NULL);
        at = ls_constant(r->c, LS_I64, LS_SHAPE(ROWS), rows);
        h = ls_constant(r->c, LS_F32, LS_SHAPE(ROWS, WIDE), NULL);
        for (int64_t i = 0; i < r->n; i++) {
            h = ls_add(r->c, h, ls_gather(r->c, ls_read(r->c, w), at, 0));
        }
        ls_variable_gradients(r->c, tape, ls_sum(r->c, h, NULL, 0, false), &w, 1, &g);
        growth_end(r);
        check_gradient(r, g, (int64_t)LOOKED_UP * WIDE, (int64_t)ROWS * WIDE,
                       (float)r->n);
    }
    growth_finish(r);
    ls_variable_release(w);
}

/* n rows of one tensor, each taken alone. */
static void take_slices(growth_run *r)
{
    const int64_t size[2] = {1, 4};
    ls_tape *tape = NULL;
    ls_tensor *x = NULL, *y = NULL, *g = NULL;

    growth_runtime(r, 1);
    if (r->st == LS_OK) {
        growth_begin(r);
        tape = ls_tape_open(r->c, NULL);
        x = ls_constant(r->c, LS_F32, LS_SHAPE(r->n, 4), NULL);
        ls_tape_watch(r->c, tape, x);
        for (int64_t i = 0; i < r->n; i++) {
            const int64_t begin[2] = {i, 0};
            ls_tensor *row = ls_slice(r->c, x, begin, size);

            y = i == 0 ? row : ls_add(r->c, y, row);
        }
        g = ls_gradient(r->c, tape, y, x);
        growth_end(r);
        check_gradient(r, g, r->n * 4, r->n * 4, 1);
    }
    growth_finish(r);
}

/* A tensor of 1 MiB cut into n parts that come together again. */
static void split_up(growth_run *r)
{
    int64_t *sizes = growth_room(r, (size_t)r->n, sizeof *sizes);
    ls_tensor **parts = (ls_tensor **)growth_room(r, (size_t)r->n, sizeof(void *));
    ls_tape *tape = NULL;
    ls_tensor *x = NULL, *g = NULL;

    growth_runtime(r, 1);
    if (r->st == LS_OK) {
        for (int64_t i = 0; i < r->n; i++) {
            sizes[i] = PARTED / r->n;
        }
        growth_begin(r);
        tape = ls_tape_open(r->c, NULL);
        x = ls_constant(r->c, LS_F32, LS_SHAPE(PARTED), NULL);
        ls_tape_watch(r->c, tape, x);
        ls_split(r->c, x, sizes, (size_t)r->n, 0, parts);
        for (int64_t i = 0; i < r->n; i++) {
            parts[i] = ls_neg(r->c, parts[i]);
        }
        g = ls_gradient(r->c, tape, ls_concat(r->c, parts, (size_t)r->n, 0), x);
        growth_end(r);
        check_gradient(r, g, PARTED, PARTED, -1);
    }
    growth_finish(r);
    free(sizes);
    free((void *)parts);
}

/* n steps whose batches have sizes as they come; the first is the largest. */
static void vary_batches(growth_run *r)
{
    uint32_t state = 2463534242U;
    ls_variable *w = NULL;

    growth_runtime(r, 1);
    w = growth_variable(r, LS_SHAPE(WIDE, WIDE));
    growth_begin(r);
    for (int64_t i = 0; r->st == LS_OK && i < r->n; i++) {
        const int64_t batch = i == 0 ? STEP_MOST : 1 + (int64_t)(state % STEP_MOST);
        ls_tape *tape = ls_tape_open(r->c, NULL);
        ls_tensor *h = ls_constant(r->c, LS_F32, LS_SHAPE(batch, WIDE), NULL), *g = NULL;

        state = state * 1664525U + 1013904223U;
        state ^= state >> 13;
        for (int k = 0; k < 2; k++) {
            h = add_one(r, ls_matmul(r->c, h, ls_read(r->c, w)));
        }
        for (int k = 0; k < 4; k++) {
            h = add_one(r, h);
        }
        ls_variable_gradients(r->c, tape, ls_sum(r->c, h, NULL, 0, false), &w, 1, &g);
        check_gradient(r, g, (int64_t)WIDE * WIDE, (int64_t)WIDE * WIDE, (float)batch);
        growth_finish(r);
    }
    growth_end(r);
    ls_variable_release(w);
}

const growth_case growth_of_tapes[] = {
    {"dense uses", "uses of a weight", 32, 128, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 16 << 10, use_weight},
    {"lookups", "lookups of a table", 16, 64, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, look_up},
    {"slices", "rows sliced alone", 64, 256, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, take_slices},
    {"split", "parts of 1 MiB", 8, 16, GROWTH_FLAT_TIME, GROWTH_FLAT, GROWTH_FLAT, 0,
     split_up},
    {"varying batches", "steps", 8, 8, GROWTH_LINEAR_TIME, GROWTH_FLAT, 0, 0,
     vary_batches},
    {0},
};
