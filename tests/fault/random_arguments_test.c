/*
 * Random calls of every operation with shapes, dtypes, axes and numbers that mostly do
 * not fit: none crashes, and each that fails says which operation, and where. The seed is
 * fixed; an allocator that refuses more than a few megabytes bounds what a call can ask.
 */
#include "lockstep/lockstep.h"
#include "ls_test.h"

#include <limits.h>

enum { CALLS = 4000, TENSORS = 64, MOST_BYTES = 8 << 20 };

struct fuzz {
    ls_runtime *runtime;
    ls_context *c;
    uint64_t random;
    ls_tensor *tensors[TENSORS];
    int line; /* of the call */
};

static uint64_t below(struct fuzz *f, uint64_t n)
{
    return lst_random(&f->random) % n;
}

static ls_dtype any_dtype(struct fuzz *f)
{
    static const ls_dtype all[] = {LS_F32,    LS_F32,      LS_F32,      LS_F64, LS_F16,
                                   LS_BF16,   LS_I8,       LS_I16,      LS_I32, LS_I64,
                                   LS_U8,     LS_U16,      LS_U32,      LS_U64, LS_BOOL,
                                   LS_STRING, (ls_dtype)0, (ls_dtype)99};

    return all[below(f, LSI_COUNT_OF(all))];
}

static int any_int(struct fuzz *f)
{
    static const int odd[] = {INT_MIN, INT_MAX, 1000, -1000, 255, 65536};

    return below(f, 8) == 0 ? odd[below(f, LSI_COUNT_OF(odd))] : (int)below(f, 9) - 3;
}

static int64_t any_size(struct fuzz *f)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MAX, INT64_C(1) << 31,
                                  100000,    -100000,   INT64_C(1) << 40};

    return below(f, 8) == 0 ? odd[below(f, LSI_COUNT_OF(odd))] : (int64_t)below(f, 8) - 2;
}

static double any_number(struct fuzz *f)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -1, 1e300, 0.5, 0.5, 1};

    return odd[below(f, LSI_COUNT_OF(odd))];
}

static ls_shape any_shape(struct fuzz *f)
{
    ls_shape s = {(int)below(f, 6), {0}};

    if (below(f, 20) == 0) {
        s.ndim = any_int(f);
    }
    for (int i = 0; i < LS_MAX_DIMS; i++) {
        s.dims[i] = any_size(f);
    }
    return s;
}

static ls_tensor *any_tensor(struct fuzz *f)
{
    return below(f, 40) == 0 ? NULL : f->tensors[below(f, TENSORS)];
}

/* Lists of axes and sizes, as long as any tensor has axes. */
static const int *any_axes(struct fuzz *f, int list[LS_MAX_DIMS])
{
    for (int i = 0; i < LS_MAX_DIMS; i++) {
        list[i] = any_int(f);
    }
    return below(f, 4) == 0 ? NULL : list;
}

static const int64_t *any_sizes(struct fuzz *f, int64_t list[2 * LS_MAX_DIMS])
{
    for (int i = 0; i < 2 * LS_MAX_DIMS; i++) {
        list[i] = any_size(f);
    }
    return list;
}

/* One operation: sets the line, then calls it from that line. */
struct thunk {
    const char *name;
    ls_tensor *(*call)(struct fuzz *f);
};

#define T any_tensor(f)
#define CALL(id, expression)                                                             \
    static ls_tensor *call_##id(struct fuzz *f)                                          \
    {                                                                                    \
        f->line = __LINE__;                                                              \
        return (expression);                                                             \
    }
#define UNARY(id) CALL(id, ls_##id(f->c, T))
#define BINARY(id) CALL(id, ls_##id(f->c, T, T))

/* clang-format off */
#define UNARIES(X)                                                                       \
    X(neg) X(abs) X(sign) X(exp) X(log) X(log1p) X(sqrt) X(rsqrt) X(square)              \
    X(reciprocal) X(erf) X(relu) X(elu) X(sigmoid) X(tanh) X(softplus) X(silu)           \
    X(logical_not) X(softmax) X(log_softmax) X(stop_gradient) X(identity)                \
    X(global_avg_pool2d) X(global_max_pool2d)
#define BINARIES(X)                                                                      \
    X(add) X(sub) X(mul) X(div) X(floordiv) X(mod) X(pow) X(maximum) X(minimum) X(equal) \
    X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal) X(logical_and)        \
    X(logical_or) X(matmul) X(sparse_softmax_cross_entropy) X(softmax_cross_entropy)     \
    X(sigmoid_cross_entropy) X(mean_squared_error)

UNARIES(UNARY)
BINARIES(BINARY)
/* clang-format on */

/* Each on one line: a call that fails must name its line. */
#define D any_dtype(f)
#define I any_int(f)
#define N any_number(f)
#define S any_shape(f)
#define FLIP (below(f, 2) == 0)
#define AXES any_axes(f, (int[LS_MAX_DIMS]){0})
#define SIZES any_sizes(f, (int64_t[2 * LS_MAX_DIMS]){0})
#define LIST                                                                             \
    (ls_tensor *[])                                                                      \
    {                                                                                    \
        T, T, T                                                                          \
    }
CALL(leaky_relu, ls_leaky_relu(f->c, T, (float)N))
CALL(gelu, ls_gelu(f->c, T, FLIP))
CALL(clip, ls_clip(f->c, T, N, N))
CALL(cast, ls_cast(f->c, T, D))
CALL(where, ls_where(f->c, T, T, T))
CALL(matmul_t, ls_matmul_t(f->c, T, T, FLIP, FLIP))
CALL(dense, ls_dense(f->c, T, T, T, (ls_activation)(below(f, 9) - 1)))
CALL(attention, ls_attention(f->c, T, T, T, N, FLIP))
CALL(self_attention, ls_self_attention(f->c, T, (int)I, N, FLIP))
CALL(argmax, ls_argmax(f->c, T, I))
CALL(argmin, ls_argmin(f->c, T, I))
CALL(reshape, ls_reshape(f->c, T, S))
CALL(broadcast_to, ls_broadcast_to(f->c, T, S))
CALL(transpose, ls_transpose(f->c, T, AXES))
CALL(squeeze, ls_squeeze(f->c, T, AXES, below(f, 3)))
CALL(expand_dims, ls_expand_dims(f->c, T, I))
CALL(tile, ls_tile(f->c, T, SIZES))
CALL(pad, ls_pad(f->c, T, SIZES, N))
CALL(slice, ls_slice(f->c, T, SIZES, SIZES))
CALL(concat, ls_concat(f->c, LIST, below(f, 4), I))
CALL(stack, ls_stack(f->c, LIST, below(f, 4), I))
CALL(gather, ls_gather(f->c, T, T, I))
CALL(scatter, ls_scatter(f->c, T, T, S))
CALL(one_hot, ls_one_hot(f->c, T, any_size(f), D))
CALL(layer_norm, ls_layer_norm(f->c, T, T, T, N))
CALL(batch_norm, ls_batch_norm(f->c, T, T, T, N, NULL, NULL))
CALL(batch_norm_inference, ls_batch_norm_inference(f->c, T, T, T, T, T, N))
CALL(dropout, ls_dropout(f->c, T, N))
CALL(random_uniform, ls_random_uniform(f->c, D, S, N, N))
CALL(random_normal, ls_random_normal(f->c, D, S, N, N))
CALL(random_truncated_normal, ls_random_truncated_normal(f->c, D, S, N, N))

#define REDUCE(id) CALL(id, ls_##id(f->c, T, AXES, below(f, 4), FLIP))
/* clang-format off */
#define REDUCTIONS(X) X(sum) X(mean) X(prod) X(max) X(min) X(any) X(all) X(logsumexp)
REDUCTIONS(REDUCE)
/* clang-format on */

static ls_conv_options any_conv(struct fuzz *f)
{
    ls_conv_options o = LS_CONV_OPTIONS_INIT;

    for (int a = 0; a < 2 && below(f, 2) == 0; a++) {
        o.stride[a] = any_int(f);
        o.dilation[a] = any_int(f);
    }
    o.padding = (ls_padding)below(f, 3);
    o.activation = (ls_activation)(below(f, 9) - 1);
    return o;
}

static ls_pool_options any_pool(struct fuzz *f)
{
    ls_pool_options o = LS_POOL_OPTIONS_INIT;

    for (int a = 0; a < 2 && below(f, 2) == 0; a++) {
        o.size[a] = any_int(f);
        o.stride[a] = any_int(f);
    }
    o.padding = (ls_padding)below(f, 3);
    o.relu = below(f, 2) == 0;
    return o;
}

#define CONV                                                                             \
    (ls_conv_options[])                                                                  \
    {                                                                                    \
        any_conv(f)                                                                      \
    }
#define POOL                                                                             \
    (ls_pool_options[])                                                                  \
    {                                                                                    \
        any_pool(f)                                                                      \
    }
#define MAYBE (FLIP ? NULL : T)
CALL(conv2d, ls_conv2d(f->c, T, T, MAYBE, CONV))
CALL(depthwise_conv2d, ls_depthwise_conv2d(f->c, T, T, MAYBE, CONV))
CALL(max_pool2d, ls_max_pool2d(f->c, T, POOL))
CALL(avg_pool2d, ls_avg_pool2d(f->c, T, POOL))

static ls_tensor *call_split(struct fuzz *f)
{
    ls_tensor *outs[3] = {NULL};
    int64_t sizes[2 * LS_MAX_DIMS];

    (void)any_sizes(f, sizes);
    f->line = __LINE__ + 1;
    ls_split(f->c, T, sizes, below(f, 4), any_int(f), outs);
    return outs[0];
}

/* clang-format off */
#define ROW(id) {#id, call_##id},
static const struct thunk THUNKS[] = {
    UNARIES(ROW) BINARIES(ROW) REDUCTIONS(ROW)
    ROW(leaky_relu) ROW(gelu) ROW(clip) ROW(cast) ROW(where) {"matmul", call_matmul_t},
    ROW(dense) ROW(attention) ROW(self_attention) ROW(argmax) ROW(argmin) ROW(reshape) ROW(broadcast_to)
    ROW(transpose) ROW(squeeze) ROW(expand_dims) ROW(tile) ROW(pad) ROW(slice) ROW(concat)
    ROW(stack) ROW(gather) ROW(scatter) ROW(one_hot) ROW(layer_norm) ROW(batch_norm)
    ROW(batch_norm_inference) ROW(dropout) ROW(random_uniform) ROW(random_normal)
    ROW(random_truncated_normal) ROW(conv2d) ROW(depthwise_conv2d) ROW(max_pool2d)
    ROW(avg_pool2d) ROW(split)
};
/* clang-format on */

/* A tensor of random dtype, shape and small values, some of them images and matrices. */
static ls_tensor *make_tensor(struct fuzz *f, ls_device *dev)
{
    static const ls_shape usual[] = {
        {0, {0}},
        {1, {3}},
        {2, {2, 3}},
        {2, {3, 3}},
        {3, {2, 3, 3}},
        {4, {1, 4, 4, 3}},
        {4, {3, 3, 3, 2}},
        {4, {2, 5, 3, 3}},
        {2, {0, 3}},
        {4, {0, 4, 4, 3}},
        {1, {1}},
        {2, {1, 3}},
        {8, {1, 1, 2, 1, 1, 1, 1, 3}},
        {5, {1, 2, 1, 2, 3}},
    };
    const ls_shape shape = usual[below(f, LSI_COUNT_OF(usual))];
    unsigned char bytes[4096] = {0};
    ls_error err = LS_ERROR_INIT;
    ls_dtype dtype = any_dtype(f);
    ls_tensor *t = NULL;

    while (ls_dtype_size(dtype) == 0) {
        dtype = any_dtype(f);
    }
    for (size_t i = 0; dtype != LS_STRING && i < sizeof bytes; i++) {
        bytes[i] = dtype == LS_BOOL                     ? (unsigned char)below(f, 2)
                   : dtype == LS_F32 || dtype == LS_F64 ? (unsigned char)below(f, 256)
                   : i % ls_dtype_size(dtype) == 0      ? (unsigned char)below(f, 4)
                                                        : 0;
    }
    LST_OK(ls_tensor_create(dev, dtype, shape, bytes, &t, &err));
    return t;
}

static void check_failure(const struct fuzz *f, const struct thunk *t, ls_status st,
                          const ls_error *e)
{
    const size_t n = strlen(t->name);
    const bool named = strncmp(e->message, t->name, n) == 0 && e->message[n] == ':';
    // An allocation that fails is reported with the same site.
    const bool memory = st == LS_RESOURCE_EXHAUSTED;

    if ((!named && !memory) || !lst_same_file(e->file, __FILE__) || e->line != f->line ||
        st == LS_INTERNAL) {
        atomic_fetch_add(&lst_failures, 1);
        (void)fprintf(stderr, "%s: %s \"%s\" at %s:%d, called at line %d\n", t->name,
                      ls_status_name(st), e->message, e->file, e->line, f->line);
    }
}

static void *limited_alloc(size_t size, size_t align, void *user)
{
    void *ptr = NULL;

    (void)user;
    if (size > MOST_BYTES) {
        return NULL;
    }
    return posix_memalign(&ptr, align < 16 ? 16 : align, size) == 0 ? ptr : NULL;
}

static void limited_free(void *ptr, void *user)
{
    (void)user;
    free(ptr);
}

static void open_fuzz(struct fuzz *f, uint64_t seed, int threads)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;

    *f = (struct fuzz){.random = seed};
    LST_OK(ls_allocator_set(limited_alloc, limited_free, NULL, &err));
    opts.threads = threads;
    LST_OK(ls_runtime_create(&opts, &f->runtime, &err));
    LST_OK(ls_context_open(ls_runtime_device(f->runtime, 0), NULL, &f->c, &err));
    for (size_t i = 0; i < TENSORS; i++) {
        f->tensors[i] = make_tensor(f, ls_runtime_device(f->runtime, 0));
    }
}

static void close_fuzz(struct fuzz *f)
{
    ls_error err = LS_ERROR_INIT;

    for (size_t i = 0; i < TENSORS; i++) {
        ls_tensor_release(f->tensors[i]);
    }
    ls_context_close(f->c);
    ls_runtime_release(f->runtime);
    LST_OK(ls_allocator_set(NULL, NULL, NULL, &err));
}

LST_TEST(random_calls_never_crash_and_failures_name_operation_and_place)
{
    struct fuzz f;
    size_t failures = 0;

    open_fuzz(&f, 2024, 2);
    for (size_t i = 0; i < CALLS; i++) {
        const struct thunk *t = &THUNKS[i % LSI_COUNT_OF(THUNKS)];
        ls_error e = LS_ERROR_INIT;
        ls_status st;

        (void)t->call(&f);
        st = ls_context_finish(f.c, &e);
        if (st != LS_OK) {
            failures++;
            check_failure(&f, t, st, &e);
        }
    }
    LST_CHECK(failures > CALLS / 4 && failures < CALLS); // it meets both outcomes
    close_fuzz(&f);
}

/* The results are differentiated: gradients get the same unusual shapes and values. */
LST_TEST(gradients_of_random_calls_never_crash)
{
    struct fuzz f;
    size_t found = 0;

    open_fuzz(&f, 77, 1);
    for (size_t i = 0; i < CALLS; i++) {
        const struct thunk *t = &THUNKS[i % LSI_COUNT_OF(THUNKS)];
        ls_tape *tape = ls_tape_open(f.c, NULL);
        ls_tensor *grads[TENSORS] = {NULL}, *y;
        ls_error e = LS_ERROR_INIT;

        for (size_t j = 0; j < TENSORS; j++) {
            ls_tape_watch(f.c, tape, f.tensors[j]);
        }
        y = t->call(&f);
        if (y != NULL) {
            ls_gradients(f.c, tape, &y, NULL, 1, f.tensors, TENSORS, grads);
        }
        for (size_t j = 0; j < TENSORS; j++) {
            found += grads[j] != NULL;
        }
        if (ls_context_finish(f.c, &e) != LS_OK && y != NULL &&
            e.code != LS_RESOURCE_EXHAUSTED) {
            atomic_fetch_add(&lst_failures, 1); // what could be computed has a gradient
            (void)fprintf(stderr, "gradient of %s: %s\n", t->name, e.message);
        }
    }
    LST_CHECK(found > 100); // it meets gradients
    close_fuzz(&f);
}

LST_MAIN(LST_CASE(random_calls_never_crash_and_failures_name_operation_and_place),
         LST_CASE(gradients_of_random_calls_never_crash))
