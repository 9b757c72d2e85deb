#include "bench/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_VARIABLES = 80,
    WIDTH = 256, /* of the transformer */
    INNER = 4 * WIDTH,
    HEADS = 4,
    BLOCKS = 4,
    TOKENS = 128,
    WORDS = 512
};

struct bench_model {
    const bench_spec *spec;
    ls_device *device;
    ls_context *c;
    ls_optimizer *optimizer;
    ls_tensor *x, *y;
    ls_variable *variables[MAX_VARIABLES];
    size_t n;
    size_t next; /* variable that the forward pass reads next */
    uint64_t random;
    ls_status status; /* first failure while it is built */
    ls_error error;
    ls_tensor *(*forward)(bench_model *m); /* one loss an example */
};

/* Glorot's rule for matrices and filters; biases are zero, scales one. */
typedef enum init { GLOROT, ZEROS, ONES } init;

static double uniform(bench_model *m)
{
    uint64_t z = m->random += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double glorot_limit(const ls_shape *s)
{
    double field = 1;

    for (int i = 0; i + 2 < s->ndim; i++) {
        field *= (double)s->dims[i];
    }
    return sqrt(6.0 / (field * (double)(s->dims[s->ndim - 2] + s->dims[s->ndim - 1])));
}

static void fill(bench_model *m, float *p, int64_t count, const ls_shape *shape, init how)
{
    const double limit = how == GLOROT ? glorot_limit(shape) : 0;

    for (int64_t i = 0; i < count; i++) {
        p[i] = how == GLOROT ? (float)((2 * uniform(m) - 1) * limit)
                             : (how == ONES ? 1.0F : 0.0F);
    }
}

/* Adds a variable; after a failure it does nothing. */
static void add(bench_model *m, ls_shape shape, init how)
{
    const int64_t count = ls_shape_count(&shape);
    ls_tensor *value = NULL;
    float *p;

    if (m->status != LS_OK) {
        return;
    }
    p = m->n < MAX_VARIABLES ? malloc((size_t)count * sizeof *p) : NULL;
    if (p == NULL) {
        m->status = LS_RESOURCE_EXHAUSTED;
        return;
    }
    fill(m, p, count, &shape, how);
    m->status = ls_tensor_create(m->device, LS_F32, shape, p, &value, &m->error);
    if (m->status == LS_OK) {
        m->status = ls_variable_create(value, NULL, &m->variables[m->n], &m->error);
    }
    if (m->status == LS_OK) {
        m->n++;
    }
    ls_tensor_release(value);
    free(p);
}

static void add_dense(bench_model *m, int64_t in, int64_t out)
{
    add(m, LS_SHAPE(in, out), GLOROT);
    add(m, LS_SHAPE(out), ZEROS);
}

static void add_norm(bench_model *m)
{
    add(m, LS_SHAPE(WIDTH), ONES);
    add(m, LS_SHAPE(WIDTH), ZEROS);
}

/* The batch: numbers in (-1, 1), or whole ones below `below`. */
static ls_tensor *data(bench_model *m, ls_shape shape, int below)
{
    const int64_t count = ls_shape_count(&shape);
    ls_tensor *t = NULL;
    float *floats;
    int32_t *ints;

    if (m->status != LS_OK) {
        return NULL;
    }
    floats = malloc((size_t)count * sizeof *floats);
    if (floats == NULL) {
        m->status = LS_RESOURCE_EXHAUSTED;
        return NULL;
    }
    ints = (int32_t *)(void *)floats;
    for (int64_t i = 0; i < count; i++) {
        if (below > 0) {
            ints[i] = (int32_t)(uniform(m) * below);
        } else {
            floats[i] = (float)(2 * uniform(m) - 1);
        }
    }
    m->status = ls_tensor_create(m->device, below > 0 ? LS_I32 : LS_F32, shape, floats,
                                 &t, &m->error);
    free(floats);
    return t;
}

/* Variables are read in the order in which they were added. */
static ls_tensor *next(bench_model *m)
{
    return ls_read(m->c, m->variables[m->next++]);
}

static ls_tensor *dense(bench_model *m, ls_tensor *x, ls_activation activation)
{
    ls_tensor *w = next(m), *bias = next(m);

    return ls_dense(m->c, x, w, bias, activation);
}

static ls_tensor *norm(bench_model *m, ls_tensor *x)
{
    ls_tensor *gamma = next(m), *beta = next(m);

    return ls_layer_norm(m->c, x, gamma, beta, 1e-5);
}

/* relu commutes with the maximum: the pooling takes it over and both cost one pass. */
static ls_tensor *conv_relu_pool(bench_model *m, ls_tensor *x)
{
    const ls_pool_options pool = {sizeof pool, {2, 2}, {0, 0}, LS_VALID, true};
    ls_tensor *w = next(m), *bias = next(m);

    return ls_max_pool2d(m->c, ls_conv2d(m->c, x, w, bias, NULL), &pool);
}

static ls_tensor *mlp_forward(bench_model *m)
{
    ls_tensor *h = dense(m, m->x, LS_RELU);

    h = dense(m, h, LS_RELU);
    return ls_sparse_softmax_cross_entropy(m->c, dense(m, h, LS_LINEAR), m->y);
}

static void mlp_build(bench_model *m)
{
    m->forward = mlp_forward;
    add_dense(m, 784, 512);
    add_dense(m, 512, 512);
    add_dense(m, 512, 10);
    m->x = data(m, LS_SHAPE(m->spec->batch, 784), 0);
    m->y = data(m, LS_SHAPE(m->spec->batch), 10);
}

static ls_tensor *cnn_forward(bench_model *m)
{
    ls_tensor *h = conv_relu_pool(m, conv_relu_pool(m, m->x));

    h = dense(m, ls_reshape(m->c, h, LS_SHAPE(-1, 1600)), LS_RELU);
    return ls_sparse_softmax_cross_entropy(m->c, dense(m, h, LS_LINEAR), m->y);
}

static void cnn_build_with(bench_model *m, int64_t hidden)
{
    m->forward = cnn_forward;
    add(m, LS_SHAPE(3, 3, 1, 32), GLOROT);
    add(m, LS_SHAPE(32), ZEROS);
    add(m, LS_SHAPE(3, 3, 32, 64), GLOROT);
    add(m, LS_SHAPE(64), ZEROS);
    add_dense(m, 1600, hidden);
    add_dense(m, hidden, 10);
    m->x = data(m, LS_SHAPE(m->spec->batch, 28, 28, 1), 0);
    m->y = data(m, LS_SHAPE(m->spec->batch), 10);
}

static void cnn_build(bench_model *m)
{
    cnn_build_with(m, 128);
}

static void train_build(bench_model *m)
{
    cnn_build_with(m, 64);
}

/* [batch, tokens, width] to [batch, heads, tokens, width / heads]. */
static ls_tensor *heads(bench_model *m, ls_tensor *x)
{
    static const int perm[] = {0, 2, 1, 3};

    x = ls_reshape(m->c, x, LS_SHAPE(m->spec->batch, TOKENS, HEADS, WIDTH / HEADS));
    return ls_transpose(m->c, x, perm);
}

static ls_tensor *attend(bench_model *m, ls_tensor *x)
{
    static const int perm[] = {0, 2, 1, 3};
    ls_tensor *q = heads(m, dense(m, x, LS_LINEAR));
    ls_tensor *k = heads(m, dense(m, x, LS_LINEAR));
    ls_tensor *v = heads(m, dense(m, x, LS_LINEAR));
    ls_tensor *a = ls_attention(m->c, q, k, v, 0, true);

    a = ls_reshape(m->c, ls_transpose(m->c, a, perm),
                   LS_SHAPE(m->spec->batch, TOKENS, WIDTH));
    return dense(m, a, LS_LINEAR);
}

static ls_tensor *gpt_forward(bench_model *m)
{
    ls_tensor *embedding = next(m), *position = next(m);
    ls_tensor *x = ls_add(m->c, ls_gather(m->c, embedding, m->x, 0), position);

    for (int b = 0; b < BLOCKS; b++) {
        ls_tensor *h;

        x = ls_add(m->c, x, attend(m, norm(m, x)));
        h = dense(m, norm(m, x), LS_GELU);
        x = ls_add(m->c, x, dense(m, h, LS_LINEAR));
    }
    x = norm(m, x);
    x = ls_dense(m->c, x, next(m), NULL, LS_LINEAR);
    return ls_sparse_softmax_cross_entropy(m->c, x, m->y);
}

static void gpt_build(bench_model *m)
{
    m->forward = gpt_forward;
    add(m, LS_SHAPE(WORDS, WIDTH), GLOROT);
    add(m, LS_SHAPE(TOKENS, WIDTH), ZEROS);
    for (int b = 0; b < BLOCKS; b++) {
        add_norm(m);
        for (int i = 0; i < 4; i++) { // query, key, value, output
            add_dense(m, WIDTH, WIDTH);
        }
        add_norm(m);
        add_dense(m, WIDTH, INNER);
        add_dense(m, INNER, WIDTH);
    }
    add_norm(m);
    add(m, LS_SHAPE(WIDTH, WORDS), GLOROT);
    m->x = data(m, LS_SHAPE(m->spec->batch, TOKENS), WORDS);
    m->y = data(m, LS_SHAPE(m->spec->batch, TOKENS), WORDS);
}

static ls_tensor *tiny_forward(bench_model *m)
{
    return ls_mean_squared_error(m->c, dense(m, m->x, LS_LINEAR), m->y);
}

static void tiny_build(bench_model *m)
{
    m->forward = tiny_forward;
    add_dense(m, 4, 1);
    m->x = data(m, LS_SHAPE(m->spec->batch, 4), 0);
    m->y = data(m, LS_SHAPE(m->spec->batch, 1), 0);
}

/* Multiply-adds of the make-train network in one example, twice over. */
#define TRAIN_FLOPS                                                                      \
    (2.0 *                                                                               \
     (26 * 26 * 32 * 9 * 2.0 + 11 * 11 * 64 * 288 * 3.0 + 1600 * 64 * 3.0 + 640 * 3.0))

static const bench_spec specs[] = {
    {"mlp", "784-512-512-10, SGD", 128, 1, 0.4108e9},
    {"cnn", "conv 32, pool, conv 64, pool, dense 128, dense 10, SGD", 128, 1, 1.971e9},
    {"gpt", "4 blocks of 256, 4 heads, 128 tokens, SGD", 8, TOKENS, 21.74e9},
    {"tiny", "linear 4 to 1, SGD", 2, 1, 0},
    {"train", "the network of `make train`, Adam", 64, 1, 64 * TRAIN_FLOPS},
};

static void (*const builders[])(bench_model *) = {mlp_build, cnn_build, gpt_build,
                                                  tiny_build, train_build};

const bench_spec *bench_specs(size_t *n)
{
    *n = sizeof specs / sizeof *specs;
    return specs;
}

/* Hands the failure kept in the model to the caller. */
static ls_status failed(const bench_model *m, ls_error *err)
{
    if (m->status != LS_OK && err != NULL) {
        *err = m->error;
        err->code = m->status;
    }
    return m->status;
}

ls_status bench_model_create(ls_device *device, const char *name, bench_model **out,
                             ls_error *err)
{
    const ls_sgd_options sgd = {.struct_size = sizeof sgd, .learning_rate = 0.001};
    bench_model *m = NULL;
    ls_status st;
    size_t i = 0;

    while (i < sizeof specs / sizeof *specs && strcmp(specs[i].name, name) != 0) {
        i++;
    }
    if (i == sizeof specs / sizeof *specs) {
        return LS_NOT_FOUND;
    }
    m = calloc(1, sizeof *m);
    if (m == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    m->error = (ls_error)LS_ERROR_INIT;
    m->spec = &specs[i];
    m->device = device;
    m->random = 42;
    builders[i](m);
    if (m->status == LS_OK) {
        m->status = strcmp(name, "train") == 0
                        ? ls_adam_create(NULL, &m->optimizer, &m->error)
                        : ls_sgd_create(&sgd, &m->optimizer, &m->error);
    }
    if (m->status == LS_OK) {
        m->status = ls_context_open(device, &m->c, &m->error);
    }
    st = failed(m, err);
    if (st != LS_OK) {
        bench_model_release(m);
        return st;
    }
    *out = m;
    return LS_OK;
}

void bench_model_release(bench_model *m)
{
    if (m == NULL) {
        return;
    }
    ls_context_close(m->c);
    ls_optimizer_release(m->optimizer);
    for (size_t i = 0; i < m->n; i++) {
        ls_variable_release(m->variables[i]);
    }
    ls_tensor_release(m->x);
    ls_tensor_release(m->y);
    free(m);
}

ls_status bench_model_step(bench_model *m, double *loss, ls_error *err)
{
    ls_context *c = m->c;
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *mean;

    m->next = 0;
    mean = ls_mean(c, m->forward(m), NULL, 0, false);
    ls_optimizer_minimize(c, m->optimizer, tape, mean, m->variables, m->n);
    if (loss != NULL) {
        *loss = ls_item(c, mean);
    }
    return ls_context_finish(c, err);
}

ls_variable *const *bench_model_variables(const bench_model *m, size_t *n)
{
    *n = m->n;
    return m->variables;
}
