/*
 * Strided copies: what transpose, broadcast, tile, slice, pad, concat and stack use. Axes
 * that follow each other in both layouts become one; then rows are copied whole where
 * both sides are contiguous, and in square tiles where the source is contiguous along
 * another axis than the destination, so that neither side misses the cache.
 */
#include "kernel/ref/copy.h"

enum { TILE = 32 };

void lsi_copy_axis(lsi_copy *copy, int64_t dim, int64_t in, int64_t out)
{
    LSI_ASSERT(copy->ndim < LSI_COPY_DIMS);
    copy->dims[copy->ndim] = dim;
    copy->in[copy->ndim] = in;
    copy->out[copy->ndim] = out;
    copy->ndim++;
}

void lsi_strides(const ls_tensor *t, int64_t *strides)
{
    int64_t stride = 1;

    for (int i = t->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= t->dims[i];
    }
}

/* Drops axes of size 1 and joins axes that follow each other on both sides. */
static void simplify(lsi_copy *copy)
{
    const lsi_copy old = *copy;

    copy->ndim = 0;
    for (int i = 0; i < old.ndim; i++) {
        const int last = copy->ndim - 1;

        if (old.dims[i] == 1) {
            continue;
        }
        if (last >= 0 && copy->in[last] == old.in[i] * old.dims[i] &&
            copy->out[last] == old.out[i] * old.dims[i]) {
            copy->dims[last] *= old.dims[i];
            copy->in[last] = old.in[i];
            copy->out[last] = old.out[i];
        } else {
            lsi_copy_axis(copy, old.dims[i], old.in[i], old.out[i]);
        }
    }
    if (copy->ndim == 0) {
        lsi_copy_axis(copy, 1, 1, 1);
    }
}

#define COPY_ROW(T)                                                                      \
    do {                                                                                 \
        const T *x = (const T *)copy->from + from;                                       \
        T *y = (T *)copy->to + to;                                                       \
        for (int64_t i = 0; i < n; i++) {                                                \
            y[i * out] = x[i * in];                                                      \
        }                                                                                \
    } while (0)

/* One row along the last axis. */
static void copy_row(const lsi_copy *copy, int64_t from, int64_t to)
{
    const int last = copy->ndim - 1;
    const int64_t n = copy->dims[last];
    const int64_t in = copy->in[last];
    const int64_t out = copy->out[last];

    if (in == 1 && out == 1) {
        memcpy((char *)copy->to + (size_t)to * copy->size,
               (const char *)copy->from + (size_t)from * copy->size,
               (size_t)n * copy->size);
        return;
    }
    switch (copy->size) {
    case 1:
        COPY_ROW(uint8_t);
        break;
    case 2:
        COPY_ROW(uint16_t);
        break;
    case 4:
        COPY_ROW(uint32_t);
        break;
    default:
        COPY_ROW(uint64_t);
        break;
    }
}

/* `rows` neighbours in the source, `row_out` apart in the destination, in tiles. */
#define EACH(T)                                                                          \
    static void tiles_##T(const lsi_copy *copy, int64_t rows, int64_t row_out,           \
                          const T *from, T *to)                                          \
    {                                                                                    \
        const int last = copy->ndim - 1;                                                 \
        const int64_t n = copy->dims[last];                                              \
        const int64_t in = copy->in[last];                                               \
        const int64_t out = copy->out[last];                                             \
        for (int64_t col = 0; col < n; col += TILE) {                                    \
            const int64_t cols = LSI_MIN((int64_t)TILE, n - col);                        \
            for (int64_t r = 0; r < rows; r++) {                                         \
                const T *x = from + r + col * in;                                        \
                T *y = to + r * row_out + col * out;                                     \
                for (int64_t i = 0; i < cols; i++) {                                     \
                    y[i * out] = x[i * in];                                              \
                }                                                                        \
            }                                                                            \
        }                                                                                \
    }
EACH(uint8_t)
EACH(uint16_t)
EACH(uint32_t)
EACH(uint64_t)
#undef EACH

static void copy_tiles(const lsi_copy *copy, int64_t rows, int64_t row_out, int64_t from,
                       int64_t to)
{
    switch (copy->size) {
    case 1:
        tiles_uint8_t(copy, rows, row_out, (const uint8_t *)copy->from + from,
                      (uint8_t *)copy->to + to);
        break;
    case 2:
        tiles_uint16_t(copy, rows, row_out, (const uint16_t *)copy->from + from,
                       (uint16_t *)copy->to + to);
        break;
    case 4:
        tiles_uint32_t(copy, rows, row_out, (const uint32_t *)copy->from + from,
                       (uint32_t *)copy->to + to);
        break;
    default:
        tiles_uint64_t(copy, rows, row_out, (const uint64_t *)copy->from + from,
                       (uint64_t *)copy->to + to);
        break;
    }
}

/* The axis along which the source is contiguous, if that is not the last; -1: none. */
static int tiled_axis(const lsi_copy *copy)
{
    const int last = copy->ndim - 1;

    if (copy->in[last] == 0 || copy->in[last] == 1) {
        return -1;
    }
    for (int i = 0; i < last; i++) {
        if (copy->in[i] == 1) {
            return i;
        }
    }
    return -1;
}

typedef struct shared_copy {
    const lsi_copy *copy;
    int tiled;
    int64_t items; /* rows, or bands of TILE rows */
} shared_copy;

/* How often the outer axis `axis` counts. */
static int64_t steps_of(const shared_copy *s, int axis)
{
    const int64_t dim = s->copy->dims[axis];

    return axis == s->tiled ? (dim + TILE - 1) / TILE : dim;
}

/* Item number `item`: its place on both sides; returns the row the band starts at. */
static int64_t locate(const shared_copy *s, int64_t item, int64_t *from, int64_t *to)
{
    int64_t band = 0;

    *from = 0;
    *to = 0;
    for (int axis = s->copy->ndim - 2; axis >= 0; axis--) {
        const int64_t steps = steps_of(s, axis);
        int64_t index = item % steps;

        item /= steps;
        if (axis == s->tiled) {
            index *= TILE;
            band = index;
        }
        *from += index * s->copy->in[axis];
        *to += index * s->copy->out[axis];
    }
    return band;
}

static void copy_share(void *arg, int part, int parts)
{
    const shared_copy *s = arg;
    int64_t begin = 0;
    int64_t end = 0;

    lsi_team_share(s->items, 1, part, parts, &begin, &end);
    for (int64_t item = begin; item < end; item++) {
        int64_t from = 0;
        int64_t to = 0;
        const int64_t band = locate(s, item, &from, &to);

        if (s->tiled < 0) {
            copy_row(s->copy, from, to);
        } else {
            copy_tiles(s->copy, LSI_MIN((int64_t)TILE, s->copy->dims[s->tiled] - band),
                       s->copy->out[s->tiled], from, to);
        }
    }
}

void lsi_copy_run(const ls_op_call *k, lsi_copy *copy)
{
    shared_copy s = {copy, -1, 1};
    int64_t count = 1;

    for (int i = 0; i < copy->ndim; i++) {
        count *= copy->dims[i];
    }
    if (count == 0) {
        return;
    }
    simplify(copy);
    s.tiled = tiled_axis(copy);
    for (int i = 0; i < copy->ndim - 1; i++) {
        s.items *= steps_of(&s, i);
    }
    lsi_team_run(k->team, lsi_parts(k, count), copy_share, &s);
}
