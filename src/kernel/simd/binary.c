/*
 * Elementwise operations with NumPy broadcasting. The axes are merged as far as the
 * operands allow; what is left is an inner row, in which each operand is either dense or
 * one element, inside loops that move the rows about. The compiler makes vectors of the
 * inner loops.
 */
#include "kernel/simd/simd.h"

enum { MAX_OPERANDS = 3, PATTERN = 512 };

/* `n` elements of y; operand i advances by step[i], which is 0 or 1. */
typedef void (*row_fn)(void *y, const void *const *in, const int64_t *step, int64_t n);

/* An operation over broadcast operands. Axis 0 is the innermost. */
struct team_work {
    row_fn fn;
    int operands, ndim;
    char *y;
    size_t out_size;
    const char *in[MAX_OPERANDS];
    size_t in_size[MAX_OPERANDS]; /* bytes of an element */
    int64_t size[LS_MAX_DIMS];
    int64_t step[LS_MAX_DIMS][MAX_OPERANDS]; /* elements */
};

static bool merges(const struct team_work *j, const int64_t *step)
{
    const int last = j->ndim - 1;

    if (last < 0) {
        return false;
    }
    for (int i = 0; i < j->operands; i++) {
        if (step[i] != j->step[last][i] * j->size[last]) {
            return false;
        }
    }
    return true;
}

static void add_axis(struct team_work *j, int64_t size, const int64_t *step)
{
    if (size == 1) {
        return;
    }
    if (merges(j, step)) {
        j->size[j->ndim - 1] *= size;
        return;
    }
    j->size[j->ndim] = size;
    memcpy(j->step[j->ndim], step, sizeof(j->step[0]));
    j->ndim++;
}

static void lay_out(struct team_work *j, const ls_op_call *k)
{
    const ls_tensor *out = k->out[0];
    int64_t dense[MAX_OPERANDS] = {1, 1, 1};

    for (int back = 1; back <= out->ndim; back++) {
        int64_t step[MAX_OPERANDS] = {0};

        for (int i = 0; i < j->operands; i++) {
            const ls_tensor *t = k->in[i];
            const int64_t n = back <= t->ndim ? t->dims[t->ndim - back] : 1;

            step[i] = n == 1 ? 0 : dense[i];
            dense[i] *= n;
        }
        add_axis(j, out->dims[out->ndim - back], step);
    }
}

static int64_t row_count(const struct team_work *j)
{
    int64_t rows = 1;

    for (int d = 1; d < j->ndim; d++) {
        rows *= j->size[d];
    }
    return rows;
}

static void run_rows(const struct team_work *j, int64_t begin, int64_t end)
{
    int64_t at[LS_MAX_DIMS] = {0}, rest = begin;
    const void *in[MAX_OPERANDS] = {NULL};

    for (int d = 1; d < j->ndim; d++) {
        at[d] = rest % j->size[d];
        rest /= j->size[d];
    }
    for (int64_t row = begin; row < end; row++) {
        for (int i = 0; i < j->operands; i++) {
            int64_t offset = 0;

            for (int d = 1; d < j->ndim; d++) {
                offset += at[d] * j->step[d][i];
            }
            in[i] = j->in[i] + (size_t)offset * j->in_size[i];
        }
        j->fn(j->y + (size_t)(row * j->size[0]) * j->out_size, in, j->step[0],
              j->size[0]);
        for (int d = 1; d < j->ndim && ++at[d] == j->size[d]; d++) {
            at[d] = 0;
        }
    }
}

/* A share of the one row there is. */
static void run_slice(const struct team_work *j, int64_t begin, int64_t end)
{
    const void *in[MAX_OPERANDS] = {NULL};

    for (int i = 0; i < j->operands; i++) {
        in[i] = j->in[i] + (size_t)(begin * j->step[0][i]) * j->in_size[i];
    }
    j->fn(j->y + (size_t)begin * j->out_size, in, j->step[0], end - begin);
}

static void run_part(void *arg, int part, int parts)
{
    const struct team_work *j = arg;
    int64_t begin = 0, end = 0;

    if (j->ndim == 1) {
        lsi_team_share(j->size[0], 64, part, parts, &begin, &end);
        run_slice(j, begin, end);
    } else {
        lsi_team_share(row_count(j), 1, part, parts, &begin, &end);
        run_rows(j, begin, end);
    }
}

static void run_on_team(const ls_op_call *k, struct team_work *j)
{
    const int parts = lsi_parts(k, k->out[0]->count / 4);

    if (j->ndim == 0) { // every axis has size 1
        j->size[0] = 1;
        j->ndim = 1;
    }
    lsi_spread(k, parts, run_part, j);
}

/* `pattern` holds `times` copies of the n floats at `once`, made by doubling. */
static void repeat(float *pattern, const char *once, int64_t n, int64_t times)
{
    memcpy(pattern, once, (size_t)n * sizeof(float));
    for (int64_t done = 1; done < times; done *= 2) {
        const int64_t more = LSI_MIN(done, times - done);

        memcpy(pattern + done * n, pattern, (size_t)(more * n) * sizeof(float));
    }
}

/*
 * [rows, n] with [n] for a small n: rows so short do not fill vectors, so the short
 * operand is written out several times and several rows are taken as one. False: not
 * such a case.
 */
static bool run_pattern(const ls_op_call *k, struct team_work *j)
{
    const int64_t n = j->size[0], rows = j->size[1];
    const int64_t times = LSI_MIN(PATTERN / n, rows / 4);
    const int small = j->step[1][0] == 0 ? 0 : 1, large = 1 - small;
    float pattern[PATTERN];

    if (n > 64 || times < 2 || j->step[0][0] != 1 || j->step[0][1] != 1 ||
        j->step[1][small] != 0 || j->step[1][large] != n) {
        return false;
    }
    repeat(pattern, j->in[small], n, times);
    j->in[small] = (const char *)pattern;
    j->size[0] = n * times;
    j->size[1] = rows / times;
    j->step[1][large] = n * times;
    run_on_team(k, j);
    if (rows % times != 0) {
        const size_t done = (size_t)(rows / times * times * n);

        j->in[large] += done * sizeof(float);
        j->y += done * j->out_size;
        j->ndim = 1;
        j->size[0] = rows % times * n;
        run_on_team(k, j);
    }
    return true;
}

static ls_status run_binary(const ls_op_call *k, row_fn fn, size_t out_size)
{
    const ls_tensor *a = k->in[0], *b = k->in[1];
    const int64_t n = k->out[0]->count;
    struct team_work j = {.fn = fn,
                          .operands = 2,
                          .y = k->out[0]->data,
                          .out_size = out_size,
                          .in = {a->data, b->data},
                          .in_size = {sizeof(float), sizeof(float)}};

    if ((a->count == n || a->count == 1) && (b->count == n || b->count == 1)) {
        j.ndim = 1;
        j.size[0] = n;
        j.step[0][0] = a->count == n;
        j.step[0][1] = b->count == n;
        run_on_team(k, &j);
        return LS_OK;
    }
    lay_out(&j, k);
    if (j.ndim != 2 || !run_pattern(k, &j)) {
        run_on_team(k, &j);
    }
    return LS_OK;
}

/*
 * An operation on float32: its value for one pair, its inner loops, its kernel. One
 * element is worth no machinery at all.
 */
#define BINARY(name, out_type, out_dtype, expr)                                          \
    LSI_INLINE out_type name##_of(float a, float b)                                      \
    {                                                                                    \
        return (out_type)(expr);                                                         \
    }                                                                                    \
    static void name##_row(void *out, const void *const *in, const int64_t *step,        \
                           int64_t n)                                                    \
    {                                                                                    \
        out_type *restrict y = out;                                                      \
        const float *restrict a = in[0], *restrict b = in[1];                            \
                                                                                         \
        if (step[0] == 0) {                                                              \
            const float one = a[0];                                                      \
                                                                                         \
            for (int64_t i = 0; i < n; i++) {                                            \
                y[i] = name##_of(one, b[i]);                                             \
            }                                                                            \
        } else if (step[1] == 0) {                                                       \
            const float one = b[0];                                                      \
                                                                                         \
            for (int64_t i = 0; i < n; i++) {                                            \
                y[i] = name##_of(a[i], one);                                             \
            }                                                                            \
        } else {                                                                         \
            for (int64_t i = 0; i < n; i++) {                                            \
                y[i] = name##_of(a[i], b[i]);                                            \
            }                                                                            \
        }                                                                                \
    }                                                                                    \
    ls_status LSI_SIMD(name)(ls_op_call * k)                                             \
    {                                                                                    \
        if (k->in[0]->dtype != LS_F32 || k->in[1]->dtype != LS_F32 ||                    \
            k->out[0]->dtype != (out_dtype)) {                                           \
            return LS_UNIMPLEMENTED;                                                     \
        }                                                                                \
        if (k->out[0]->count == 1) {                                                     \
            *(out_type *)k->out[0]->data =                                               \
                name##_of(lsi_in_f32(k, 0)[0], lsi_in_f32(k, 1)[0]);                     \
            return LS_OK;                                                                \
        }                                                                                \
        return run_binary(k, name##_row, sizeof(out_type));                              \
    }

/* clang-format off */
BINARY(add, float, LS_F32, a + b)
BINARY(sub, float, LS_F32, a - b)
BINARY(mul, float, LS_F32, a * b)
BINARY(div, float, LS_F32, a / b)
BINARY(maximum, float, LS_F32, ((a > b) | (a != a)) ? a : b)
BINARY(minimum, float, LS_F32, ((a < b) | (a != a)) ? a : b)
BINARY(equal, uint8_t, LS_BOOL, a == b)
BINARY(not_equal, uint8_t, LS_BOOL, a != b)
BINARY(less, uint8_t, LS_BOOL, a < b)
BINARY(less_equal, uint8_t, LS_BOOL, a <= b)
BINARY(greater, uint8_t, LS_BOOL, a > b)
BINARY(greater_equal, uint8_t, LS_BOOL, a >= b)
/* clang-format on */

static void where_row(void *out, const void *const *in, const int64_t *step, int64_t n)
{
    float *restrict y = out;
    const uint8_t *restrict c = in[0];
    const float *restrict a = in[1], *restrict b = in[2];

    if (step[0] == 1 && step[1] == 1 && step[2] == 1) {
        for (int64_t i = 0; i < n; i++) {
            const float yes = a[i], no = b[i];

            y[i] = c[i] != 0 ? yes : no;
        }
    } else if (step[0] == 1 && step[1] == 1) {
        const float no = b[0];

        for (int64_t i = 0; i < n; i++) {
            const float yes = a[i];

            y[i] = c[i] != 0 ? yes : no;
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            y[i] = c[i * step[0]] != 0 ? a[i * step[1]] : b[i * step[2]];
        }
    }
}

ls_status LSI_SIMD(where)(ls_op_call *k)
{
    const ls_tensor *c = k->in[0], *a = k->in[1], *b = k->in[2];
    struct team_work j = {.fn = where_row,
                          .operands = 3,
                          .y = k->out[0]->data,
                          .out_size = sizeof(float),
                          .in = {c->data, a->data, b->data},
                          .in_size = {1, sizeof(float), sizeof(float)}};

    if (c->dtype != LS_BOOL || a->dtype != LS_F32 || b->dtype != LS_F32) {
        return LS_UNIMPLEMENTED;
    }
    lay_out(&j, k);
    run_on_team(k, &j);
    return LS_OK;
}
