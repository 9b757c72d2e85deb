/* The benchmark networks: their layers, their random data and one training step. */
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

/* One replica's pass through the network; without a strategy there is one. */
typedef struct pass {
    const bench_model *m;
    ls_context *c;
    ls_tensor *x, *y; /* its part of the batch */
    int64_t batch;
    size_t next; /* variable that the forward pass reads next */
    double loss;
} pass;

struct bench_model {
    const bench_spec *spec;
    ls_device *device;
    ls_strategy *strategy; /* NULL: one context on the device */
    pass *passes;
    int replicas;
    ls_context *c;
    ls_optimizer *optimizer;
    ls_variable *variables[MAX_VARIABLES];
    size_t n;
    uint64_t random;
    ls_status status; /* first failure while it is built */
    ls_error error;
    ls_tensor *(*forward)(pass *p); /* one loss per example */
};

/* Glorot's rule for matrices and filters; biases are zero, scales one. */
typedef enum init { GLOROT, ZEROS, ONES } init;

static double draw_uniform(bench_model *m)
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

static void fill_weights(bench_model *m, float *p, int64_t count, const ls_shape *shape,
                         init how)
{
    const double limit = how == GLOROT ? glorot_limit(shape) : 0;

    for (int64_t i = 0; i < count; i++) {
        p[i] = how == GLOROT ? (float)((2 * draw_uniform(m) - 1) * limit)
                             : (how == ONES ? 1.0F : 0.0F);
    }
}

/* Adds a variable; does nothing after a failure. */
static void add_variable(bench_model *m, ls_shape shape, init how)
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
    fill_weights(m, p, count, &shape, how);
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
    add_variable(m, LS_SHAPE(in, out), GLOROT);
    add_variable(m, LS_SHAPE(out), ZEROS);
}

static void add_norm(bench_model *m)
{
    add_variable(m, LS_SHAPE(WIDTH), ONES);
    add_variable(m, LS_SHAPE(WIDTH), ZEROS);
}

/*
 * The batch: numbers in (-1, 1), or integers below `below`; rows are divided among
 * replicas.
 */
static void make_batch(bench_model *m, ls_shape shape, int below, bool labels)
{
    const int64_t count = ls_shape_count(&shape), rows = shape.dims[0] / m->replicas;
    float *floats;
    int32_t *ints;

    if (m->status != LS_OK) {
        return;
    }
    floats = malloc((size_t)count * sizeof *floats);
    if (floats == NULL) {
        m->status = LS_RESOURCE_EXHAUSTED;
        return;
    }
    ints = (int32_t *)(void *)floats;
    for (int64_t i = 0; i < count; i++) {
        if (below > 0) {
            ints[i] = (int32_t)(draw_uniform(m) * below);
        } else {
            floats[i] = (float)(2 * draw_uniform(m) - 1);
        }
    }
    shape.dims[0] = rows;
    for (int r = 0; r < m->replicas && m->status == LS_OK; r++) {
        pass *p = &m->passes[r];
        ls_device *device = m->strategy != NULL
                                ? ls_strategy_worker_device(m->strategy, (size_t)r)
                                : m->device;

        p->m = m;
        p->batch = rows;
        m->status = ls_tensor_create(device, below > 0 ? LS_I32 : LS_F32, shape,
                                     floats + count / m->replicas * r,
                                     labels ? &p->y : &p->x, &m->error);
    }
    free(floats);
}

/* Variables are read in the order in which they were added. */
static ls_tensor *next_weight(pass *p)
{
    return ls_read(p->c, p->m->variables[p->next++]);
}

static ls_tensor *dense(pass *p, ls_tensor *x, ls_activation activation)
{
    ls_tensor *w = next_weight(p), *bias = next_weight(p);

    return ls_dense(p->c, x, w, bias, activation);
}

static ls_tensor *layer_norm(pass *p, ls_tensor *x)
{
    ls_tensor *gamma = next_weight(p), *beta = next_weight(p);

    return ls_layer_norm(p->c, x, gamma, beta, 1e-5);
}

/* relu commutes with the maximum: the pooling applies it in the same pass. */
static ls_tensor *conv_relu_pool(pass *p, ls_tensor *x)
{
    const ls_pool_options pool = {sizeof pool, {2, 2}, {0, 0}, LS_VALID, true};
    ls_tensor *w = next_weight(p), *bias = next_weight(p);

    return ls_max_pool2d(p->c, ls_conv2d(p->c, x, w, bias, NULL), &pool);
}

static ls_tensor *mlp_forward(pass *p)
{
    ls_tensor *h = dense(p, p->x, LS_RELU);

    h = dense(p, h, LS_RELU);
    return ls_sparse_softmax_cross_entropy(p->c, dense(p, h, LS_LINEAR), p->y);
}

static void mlp_build(bench_model *m)
{
    m->forward = mlp_forward;
    add_dense(m, 784, 512);
    add_dense(m, 512, 512);
    add_dense(m, 512, 10);
    make_batch(m, LS_SHAPE(m->spec->batch, 784), 0, false);
    make_batch(m, LS_SHAPE(m->spec->batch), 10, true);
}

static ls_tensor *cnn_forward(pass *p)
{
    ls_tensor *h = conv_relu_pool(p, conv_relu_pool(p, p->x));

    h = dense(p, ls_reshape(p->c, h, LS_SHAPE(-1, 1600)), LS_RELU);
    return ls_sparse_softmax_cross_entropy(p->c, dense(p, h, LS_LINEAR), p->y);
}

static void cnn_build_with(bench_model *m, int64_t hidden)
{
    m->forward = cnn_forward;
    add_variable(m, LS_SHAPE(3, 3, 1, 32), GLOROT);
    add_variable(m, LS_SHAPE(32), ZEROS);
    add_variable(m, LS_SHAPE(3, 3, 32, 64), GLOROT);
    add_variable(m, LS_SHAPE(64), ZEROS);
    add_dense(m, 1600, hidden);
    add_dense(m, hidden, 10);
    make_batch(m, LS_SHAPE(m->spec->batch, 28, 28, 1), 0, false);
    make_batch(m, LS_SHAPE(m->spec->batch), 10, true);
}

static void cnn_build(bench_model *m)
{
    cnn_build_with(m, 128);
}

static void train_build(bench_model *m)
{
    cnn_build_with(m, 64);
}

static ls_tensor *attend(pass *p, ls_tensor *x)
{
    return dense(p, ls_self_attention(p->c, dense(p, x, LS_LINEAR), HEADS, 0, true),
                 LS_LINEAR);
}

static ls_tensor *gpt_forward(pass *p)
{
    ls_tensor *embedding = next_weight(p), *position = next_weight(p);
    ls_tensor *x = ls_add(p->c, ls_gather(p->c, embedding, p->x, 0), position);

    for (int b = 0; b < BLOCKS; b++) {
        ls_tensor *h;

        x = ls_add(p->c, x, attend(p, layer_norm(p, x)));
        h = dense(p, layer_norm(p, x), LS_GELU);
        x = ls_add(p->c, x, dense(p, h, LS_LINEAR));
    }
    x = layer_norm(p, x);
    x = ls_dense(p->c, x, next_weight(p), NULL, LS_LINEAR);
    return ls_sparse_softmax_cross_entropy(p->c, x, p->y);
}

static void gpt_build(bench_model *m)
{
    m->forward = gpt_forward;
    add_variable(m, LS_SHAPE(WORDS, WIDTH), GLOROT);
    add_variable(m, LS_SHAPE(TOKENS, WIDTH), ZEROS);
    for (int b = 0; b < BLOCKS; b++) {
        add_norm(m);
        add_dense(m, WIDTH, 3 * WIDTH); // queries, keys, values
        add_dense(m, WIDTH, WIDTH);
        add_norm(m);
        add_dense(m, WIDTH, INNER);
        add_dense(m, INNER, WIDTH);
    }
    add_norm(m);
    add_variable(m, LS_SHAPE(WIDTH, WORDS), GLOROT);
    make_batch(m, LS_SHAPE(m->spec->batch, TOKENS), WORDS, false);
    make_batch(m, LS_SHAPE(m->spec->batch, TOKENS), WORDS, true);
}

static ls_tensor *tiny_forward(pass *p)
{
    return ls_mean_squared_error(p->c, dense(p, p->x, LS_LINEAR), p->y);
}

static void tiny_build(bench_model *m)
{
    m->forward = tiny_forward;
    add_dense(m, 4, 1);
    make_batch(m, LS_SHAPE(m->spec->batch, 4), 0, false);
    make_batch(m, LS_SHAPE(m->spec->batch, 1), 0, true);
}

/* Operations of the make-train network for one example: multiply-adds count as two. */
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

/* Returns the failure that the model keeps. */
static ls_status model_failure(const bench_model *m, ls_error *err)
{
    if (m->status != LS_OK && err != NULL) {
        *err = m->error;
        err->code = m->status;
    }
    return m->status;
}

static const bench_spec *find_spec(const char *name, size_t *at)
{
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        if (strcmp(specs[i].name, name) == 0) {
            *at = i;
            return &specs[i];
        }
    }
    return NULL;
}

static void build_model(bench_model *m, size_t which)
{
    const ls_sgd_options sgd = {.struct_size = sizeof sgd, .learning_rate = 0.001};

    builders[which](m);
    if (m->status == LS_OK) {
        m->status = strcmp(m->spec->name, "train") == 0
                        ? ls_adam_create(NULL, &m->optimizer, &m->error)
                        : ls_sgd_create(&sgd, &m->optimizer, &m->error);
    }
}

static ls_status create_model(ls_device *device, ls_strategy *strategy, const char *name,
                              bench_model **out, ls_error *err)
{
    size_t which = 0;
    const bench_spec *spec = find_spec(name, &which);
    const int replicas = strategy != NULL ? ls_strategy_replicas(strategy) : 1;
    bench_model *m;
    ls_status st;

    if (spec == NULL || spec->batch % replicas != 0) {
        return spec == NULL ? LS_NOT_FOUND : LS_INVALID_ARGUMENT;
    }
    m = calloc(1, sizeof *m);
    if (m == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    m->error = (ls_error)LS_ERROR_INIT;
    m->spec = spec;
    m->device = device;
    m->strategy = ls_strategy_retain(strategy);
    m->replicas = replicas;
    m->random = 42;
    m->passes = calloc((size_t)replicas, sizeof *m->passes);
    m->status = m->passes == NULL ? LS_RESOURCE_EXHAUSTED : LS_OK;
    if (m->status == LS_OK && strategy != NULL) {
        m->status = ls_scope_enter(strategy, &m->error);
        if (m->status == LS_OK) {
            build_model(m, which);
            ls_scope_exit(strategy);
        }
    } else if (m->status == LS_OK) {
        build_model(m, which);
        if (m->status == LS_OK) {
            m->status = ls_context_open(device, NULL, &m->c, &m->error);
        }
    }
    st = model_failure(m, err);
    if (st != LS_OK) {
        bench_model_release(m);
        return st;
    }
    *out = m;
    return LS_OK;
}

ls_status bench_model_create(ls_device *device, const char *name, bench_model **out,
                             ls_error *err)
{
    return create_model(device, NULL, name, out, err);
}

ls_status bench_model_create_on(ls_strategy *strategy, const char *name,
                                bench_model **out, ls_error *err)
{
    return create_model(ls_strategy_worker_device(strategy, 0), strategy, name, out, err);
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
    for (int r = 0; m->passes != NULL && r < m->replicas; r++) {
        ls_tensor_release(m->passes[r].x);
        ls_tensor_release(m->passes[r].y);
    }
    free(m->passes);
    ls_strategy_release(m->strategy);
    free(m);
}

/* Forward, backward, update; a replica's loss is its part of the mean over all. */
static void train_step(bench_model *m, pass *p, ls_context *c, bool want_loss)
{
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *mean;

    p->c = c;
    p->next = 0;
    mean = ls_mean(c, m->forward(p), NULL, 0, false);
    if (m->replicas > 1) {
        mean = ls_mul(c, mean, ls_constant_f32(c, 1.0F / (float)m->replicas));
    }
    ls_optimizer_minimize(c, m->optimizer, tape, mean, m->variables, m->n);
    p->loss = want_loss ? ls_item(c, mean) : 0;
}

struct ask {
    bench_model *m;
    bool want_loss;
};

static ls_value *replica_step(ls_context *c, ls_value *args, void *user)
{
    const struct ask *a = user;

    (void)args;
    train_step(a->m, &a->m->passes[ls_replica_id(c)], c, a->want_loss);
    return NULL;
}

ls_status bench_model_step(bench_model *m, double *loss, ls_error *err)
{
    struct ask a = {m, loss != NULL};
    ls_status st;

    if (m->strategy != NULL) {
        st = ls_strategy_run(m->strategy, replica_step, NULL, &a, NULL, err);
    } else {
        train_step(m, m->passes, m->c, loss != NULL);
        st = ls_context_finish(m->c, err);
    }
    if (loss != NULL) {
        *loss = 0;
        for (int r = 0; r < m->replicas; r++) {
            *loss += m->passes[r].loss;
        }
    }
    return st;
}

/* The images as the network takes them: numbers from 0 to 1. */
static ls_value *fed_step(ls_context *c, ls_value *batch, void *user)
{
    bench_model *m = user;
    ls_tensor *bytes = ls_value_at_key(c, batch, "image");
    ls_tensor *x = ls_mul(c, ls_cast(c, bytes, LS_F32), ls_constant_f32(c, 1.0F / 255));
    pass p = {.m = m};

    p.x = ls_reshape(c, x, LS_SHAPE(-1, 28, 28, 1));
    p.y = ls_value_at_key(c, batch, "label");
    train_step(m, &p, c, false);
    return NULL;
}

ls_status bench_model_step_on(bench_model *m, ls_value *batch, ls_error *err)
{
    return ls_strategy_run(m->strategy, fed_step, batch, m, NULL, err);
}

ls_variable *const *bench_model_variables(const bench_model *m, size_t *n)
{
    *n = m->n;
    return m->variables;
}
