/*
 * Reductions: every operation, dtype, length and algorithm, compared bit by bit with a
 * plain reference that adds in the tree's order (the ring in its own).
 */
#include "comm_suite.h"

#include "tensor/tensor.h"

/*
 * Lengths: several blocks of additions for every operation and dtype; longer ones, which
 * are cut into several tasks, for few, as the cut depends on bytes alone.
 */
#if defined(__SANITIZE_THREAD__)
enum { LONG = 2003, MOST = 2003 }; // under a sanitizer: as many calls
#else
enum { LONG = 8009, MOST = 270001 };
#endif

static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I8,  LS_I16,
                                  LS_I32, LS_I64, LS_U8,  LS_U16,  LS_U32, LS_U64};
static const char *const algorithms[] = {NULL, "direct", "tree", "hierarchical", "ring"};
static const size_t counts[] = {0, 1, 37, 1000, LONG};

/*
 * More bytes than two tasks: for elements added in their own dtype, and for widened ones.
 */
static const struct {
    ls_reduce op;
    ls_dtype dtype;
    size_t count;
} longest[] = {{LS_SUM, LS_F64, LSI_MIN(MOST, 100003)}, {LS_MEAN, LS_BF16, MOST}};

/* A number of any dtype, for computation. */
typedef union number {
    float f;
    double d;
    uint64_t u;
} number;

static bool is_half(ls_dtype dtype)
{
    return dtype == LS_F16 || dtype == LS_BF16;
}

static bool is_signed(ls_dtype dtype)
{
    return dtype == LS_I8 || dtype == LS_I16 || dtype == LS_I32 || dtype == LS_I64;
}

/* Integers are kept in 64 bits with their sign; the machine is little-endian. */
static uint64_t cut(ls_dtype dtype, uint64_t u)
{
    const unsigned unused = 64 - 8 * (unsigned)ls_dtype_size(dtype);

    return is_signed(dtype) ? (uint64_t)((int64_t)(u << unused) >> unused)
                            : u << unused >> unused;
}

static number load_number(ls_dtype dtype, const void *buf, size_t i)
{
    const size_t size = ls_dtype_size(dtype);
    number x = {.u = 0};

    memcpy(&x, (const char *)buf + i * size, size);
    if (dtype == LS_F16) {
        x.f = lsi_f16_to_f32((uint16_t)x.u);
    } else if (dtype == LS_BF16) {
        x.f = lsi_bf16_to_f32((uint16_t)x.u);
    } else if (dtype != LS_F32 && dtype != LS_F64) {
        x.u = cut(dtype, x.u);
    }
    return x;
}

static void store_number(ls_dtype dtype, void *buf, size_t i, number x)
{
    const size_t size = ls_dtype_size(dtype);

    if (is_half(dtype)) {
        x.u = dtype == LS_F16 ? lsi_f32_to_f16(x.f) : lsi_f32_to_bf16(x.f);
    }
    memcpy((char *)buf + i * size, &x, size);
}

static uint64_t integers(ls_reduce op, bool sign, uint64_t a, uint64_t b)
{
    const bool less = sign ? (int64_t)a < (int64_t)b : a < b;

    switch (op) {
    case LS_MIN:
        return less ? a : b;
    case LS_MAX:
        return less ? b : a;
    case LS_PROD:
        return a * b;
    default:
        return a + b;
    }
}

/* One function per type, the same for float32 and float64. */
#define REALS(name, type)                                                                \
    static type name(ls_reduce op, type a, type b)                                       \
    {                                                                                    \
        switch (op) {                                                                    \
        case LS_MIN:                                                                     \
            return a < b ? a : b;                                                        \
        case LS_MAX:                                                                     \
            return a > b ? a : b;                                                        \
        case LS_PROD:                                                                    \
            return a * b;                                                                \
        default:                                                                         \
            return a + b;                                                                \
        }                                                                                \
    }
/* clang-format off */
REALS(floats, float)
REALS(doubles, double)
/* clang-format on */

static number combine(ls_reduce op, ls_dtype dtype, number a, number b)
{
    if (dtype == LS_F64) {
        return (number){.d = doubles(op, a.d, b.d)};
    }
    if (dtype == LS_F32 || is_half(dtype)) {
        return (number){.f = floats(op, a.f, b.f)};
    }
    return (number){.u = cut(dtype, integers(op, is_signed(dtype), a.u, b.u))};
}

static number divide(ls_dtype dtype, number a, int by)
{
    if (dtype == LS_F64) {
        return (number){.d = a.d / by};
    }
    if (dtype == LS_F32 || is_half(dtype)) {
        return (number){.f = a.f / (float)by};
    }
    return is_signed(dtype) ? (number){.u = (uint64_t)((int64_t)a.u / by)}
                            : (number){.u = a.u / (uint64_t)by};
}

/* The tree as documented: level l adds rank r + 2^l into r. */
static number tree_sum(ls_reduce op, ls_dtype dtype, void *const *from, int n, size_t i)
{
    number part[LST_MOST_RANKS];

    for (int r = 0; r < n; r++) {
        part[r] = load_number(dtype, from[r], i);
    }
    for (int reach = 1; reach < n; reach *= 2) {
        for (int r = 0; r + reach < n; r += 2 * reach) {
            part[r] = combine(op, dtype, part[r], part[r + reach]);
        }
    }
    return op == LS_MEAN ? divide(dtype, part[0], n) : part[0];
}

/* The ring of one subdivision: chunk c is added by rank c, c+1, ..., rounded each time.
 */
static number ring_sum(ls_reduce op, ls_dtype dtype, void *const *from, int n, size_t i,
                       size_t total)
{
    const size_t even = total / (size_t)n + (total % (size_t)n != 0);
    const size_t grain = 64 / ls_dtype_size(dtype);
    const size_t chunk = (even + grain - 1) / grain * grain;
    const int first = (int)(i / chunk);
    number sum = load_number(dtype, from[first], i);

    for (int k = 1; k < n; k++) {
        unsigned char rounded[8];

        sum = combine(op, dtype, load_number(dtype, from[(first + k) % n], i), sum);
        if (op == LS_MEAN && k + 1 == n) {
            sum = divide(dtype, sum, n);
        }
        store_number(dtype, rounded, 0, sum);
        sum = load_number(dtype, rounded, 0);
    }
    return sum;
}

/* Numbers of very different size, so that another order of additions gives other bits. */
static void fill_numbers(ls_dtype dtype, void *buf, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        const float x = lst_random_f32(&seed, -2.0f, 2.0f);
        const float scale = i % 3 == 0 ? 1.0f : i % 3 == 1 ? 300.0f : 0.001f;
        number v = {.u = 0};

        if (dtype == LS_F64) {
            v.d = (double)x * (double)scale * 1.1;
        } else if (dtype == LS_F32 || is_half(dtype)) {
            v.f = x * scale;
        } else {
            v.u = lst_random(&seed);
        }
        store_number(dtype, buf, i, v);
    }
}

/* What all ranks of a run share. */
struct table {
    void *from[LST_MOST_RANKS];
    void *want[2]; // the tree's bits, the ring's bits
};

static void make_reference(const lst_rank *me, ls_reduce op, ls_dtype dtype, size_t total)
{
    struct table *t = me->arg;

    // Each rank computes a part of the reference, which is the slowest part of the test.
    for (size_t i = (size_t)me->rank; i < total; i += (size_t)me->size) {
        store_number(dtype, t->want[0], i, tree_sum(op, dtype, t->from, me->size, i));
        store_number(dtype, t->want[1], i,
                     ring_sum(op, dtype, t->from, me->size, i, total));
    }
    LST_OK(ls_comm_barrier(me->comm, NULL, NULL));
}

static ls_comm_options with_algorithm(const char *algorithm)
{
    ls_comm_options o = LS_COMM_OPTIONS_INIT;

    o.algorithm = algorithm;
    o.subdivisions = 1;
    return o;
}

static bool is_ring(const char *algorithm, int size)
{
    return algorithm != NULL && strcmp(algorithm, "ring") == 0 && size > 1;
}

static void all_reduce(const lst_rank *me, ls_reduce op, ls_dtype dtype, size_t count,
                       const char *algorithm, void *buf)
{
    const struct table *t = me->arg;
    const size_t bytes = count * ls_dtype_size(dtype);
    const ls_comm_options o = with_algorithm(algorithm);
    ls_error err = LS_ERROR_INIT;

    for (int run = 0; run < 2; run++) { // the same bits again
        if (bytes > 0) {
            memcpy(buf, t->from[me->rank], bytes);
        }
        LST_OK(ls_comm_all_reduce(me->comm, op, buf, count, dtype, &o, &err));
        LST_CHECK(bytes == 0 ||
                  memcmp(buf, t->want[is_ring(algorithm, me->size)], bytes) == 0);
    }
}

/* The root gets the sum, the buffers of the others do not change. */
static void reduce_to_root(const lst_rank *me, ls_reduce op, ls_dtype dtype, size_t count,
                           const char *algorithm, void *buf)
{
    const struct table *t = me->arg;
    const size_t bytes = count * ls_dtype_size(dtype);
    const ls_comm_options o = with_algorithm(algorithm);
    const int root = (int)((count + (size_t)op) % (size_t)me->size);
    const void *want =
        me->rank == root ? t->want[is_ring(algorithm, me->size)] : t->from[me->rank];
    ls_error err = LS_ERROR_INIT;

    if (bytes > 0) {
        memcpy(buf, t->from[me->rank], bytes);
    }
    LST_OK(ls_comm_reduce(me->comm, root, op, buf, count, dtype, &o, &err));
    LST_CHECK(bytes == 0 || memcmp(buf, want, bytes) == 0);
}

/* Each rank gets `count` elements of a sum of size * count. */
static void reduce_scatter(const lst_rank *me, ls_reduce op, ls_dtype dtype, size_t count,
                           const char *algorithm, void *buf)
{
    const struct table *t = me->arg;
    const size_t bytes = count * ls_dtype_size(dtype);
    const ls_comm_options o = with_algorithm(algorithm);
    const char *want = t->want[is_ring(algorithm, me->size)];
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_comm_reduce_scatter(me->comm, op, t->from[me->rank], count, dtype, &o, buf,
                                  &err));
    LST_CHECK(bytes == 0 || memcmp(buf, want + (size_t)me->rank * bytes, bytes) == 0);
}

static void every_algorithm(const lst_rank *me, ls_reduce op, ls_dtype dtype,
                            size_t count, void *buf)
{
    const size_t each = count / (size_t)me->size;

    make_reference(me, op, dtype, count);
    for (size_t a = 0; a < LSI_COUNT_OF(algorithms); a++) {
        all_reduce(me, op, dtype, count, algorithms[a], buf);
        reduce_to_root(me, op, dtype, count, algorithms[a], buf);
    }
    LST_OK(ls_comm_barrier(me->comm, NULL, NULL)); // the reference is computed again
    make_reference(me, op, dtype, each * (size_t)me->size);
    for (size_t a = 0; a < LSI_COUNT_OF(algorithms); a++) {
        reduce_scatter(me, op, dtype, each, algorithms[a], buf);
    }
    LST_OK(ls_comm_barrier(me->comm, NULL, NULL));
}

/* Fills this rank's input. */
static void refill_input(const lst_rank *me, ls_dtype dtype, size_t count)
{
    struct table *t = me->arg;

    fill_numbers(dtype, t->from[me->rank], count, 77 + (uint64_t)me->rank);
    LST_OK(ls_comm_barrier(me->comm, NULL, NULL));
}

static void reduce_everything(lst_rank *me)
{
    void *buf = malloc(MOST * sizeof(uint64_t));

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        refill_input(me, dtypes[d], LONG);
        for (int op = LS_SUM; op <= LS_PROD; op++) {
            for (size_t c = 0; c < LSI_COUNT_OF(counts); c++) {
                every_algorithm(me, (ls_reduce)op, dtypes[d], counts[c], buf);
            }
        }
    }
    for (size_t i = 0; i < LSI_COUNT_OF(longest); i++) {
        refill_input(me, longest[i].dtype, longest[i].count);
        every_algorithm(me, longest[i].op, longest[i].dtype, longest[i].count, buf);
    }
    free(buf);
}

void lst_comm_reductions(const lst_comm_factory *f)
{
    struct table t = {.want = {NULL, NULL}};

    for (int r = 0; r < LST_MOST_RANKS; r++) {
        t.from[r] = malloc(MOST * sizeof(uint64_t));
    }
    for (int i = 0; i < 2; i++) {
        t.want[i] = malloc(MOST * sizeof(uint64_t));
    }
    lst_run_sizes(f, reduce_everything, &t);
    for (int r = 0; r < LST_MOST_RANKS; r++) {
        free(t.from[r]);
    }
    free(t.want[0]);
    free(t.want[1]);
}
