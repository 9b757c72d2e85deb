/* Small models: a perceptron, a convolutional net, a transformer, an embedding. */
#include "layout_models.h"

enum {
    FEATURES = 7,
    CLASSES = 5,
    SIDE = 6,
    CHANNELS = 3,
    VOCABULARY = 11,
    WORDS = 6,
    WIDTH = 8,
    TABLE = 40
};

/* ---- batches ---- */

/* Replicas have batches of 3 to 5 rows. */
static int64_t rows_of(int id)
{
    return 3 + id % 3;
}

static int64_t rows_of_all(int replicas)
{
    int64_t rows = 0;

    for (int id = 0; id < replicas; id++) {
        rows += rows_of(id);
    }
    return rows;
}

enum { MOST_NUMBERS = 5 * SIDE * SIDE * CHANNELS };

static uint64_t seed_of(ls_context *c, int64_t step, int what)
{
    return ((uint64_t)step * 64 + (uint64_t)ls_replica_id(c)) * 4 + (uint64_t)what;
}

static ls_tensor *numbers(ls_context *c, int64_t step, int what, ls_shape shape)
{
    uint64_t random = seed_of(c, step, what);
    float x[MOST_NUMBERS];

    for (int64_t i = 0; i < ls_shape_count(&shape) && i < MOST_NUMBERS; i++) {
        x[i] = lst_random_f32(&random, -1, 1);
    }
    return ls_constant(c, LS_F32, shape, x);
}

static ls_tensor *integers(ls_context *c, int64_t step, int what, int below,
                           ls_shape shape)
{
    uint64_t random = seed_of(c, step, what);
    int32_t x[MOST_NUMBERS];

    for (int64_t i = 0; i < ls_shape_count(&shape) && i < MOST_NUMBERS; i++) {
        x[i] = (int32_t)(lst_random(&random) % (uint64_t)below);
    }
    return ls_constant(c, LS_I32, shape, x);
}

static int64_t rows_here(ls_context *c)
{
    return rows_of(ls_replica_id(c));
}

static ls_tensor *labels(ls_context *c, int64_t step)
{
    return integers(c, step, 1, CLASSES, LS_SHAPE(rows_here(c)));
}

/* ---- variables ---- */

/* A new variable of the shape; `mean` is that of its initial values. */
static void add_variable(layout_model *m, ls_dtype dtype, ls_shape shape, float mean,
                         const ls_variable_options *opts)
{
    const int64_t n = ls_shape_count(&shape);
    float *start = calloc((size_t)n + 1, sizeof *start);
    ls_tensor *t = NULL, *cast = NULL;
    ls_context *c = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(start != NULL && m->n < LAYOUT_MOST_VARIABLES);
    for (int64_t i = 0; start != NULL && i < n; i++) {
        start[i] = mean + lst_random_f32(&m->random, -0.3f, 0.3f);
    }
    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    t = ls_constant(c, LS_F32, shape, start);
    cast = ls_cast(c, t, dtype);
    LST_OK(ls_variable_create(cast, opts, &m->v[m->n], &err));
    LST_OK(ls_context_finish(c, &err));
    ls_context_close(c);
    free(start);
    m->n++;
}

static void add_trained(layout_model *m, ls_shape shape, float mean)
{
    add_variable(m, m->kind->dtype, shape, mean, NULL);
    m->trained = m->n;
}

/* A moving average: every replica has its own, and their mean is the value. */
static void add_average(layout_model *m, ls_shape shape, float mean)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;

    opts.synchronization = LS_SYNC_ON_READ;
    opts.aggregation = LS_AGGREGATE_MEAN;
    add_variable(m, LS_F32, shape, mean, &opts);
}

/* Variable `i` for computing with float32. */
static ls_tensor *weight(ls_context *c, const layout_model *m, size_t i)
{
    ls_tensor *t = ls_read(c, m->v[i]);

    return m->kind->dtype == LS_F32 ? t : ls_cast(c, t, LS_F32);
}

/* ---- a perceptron of two layers ---- */

static void create_mlp(layout_model *m)
{
    add_trained(m, LS_SHAPE(FEATURES, 9), 0);
    add_trained(m, LS_SHAPE(9), 0);
    add_trained(m, LS_SHAPE(9, CLASSES), 0);
    add_trained(m, LS_SHAPE(CLASSES), 0);
}

static ls_tensor *mlp_loss(ls_context *c, const layout_model *m, int64_t step)
{
    ls_tensor *x = numbers(c, step, 0, LS_SHAPE(rows_here(c), FEATURES));
    ls_tensor *h = ls_dense(c, x, weight(c, m, 0), weight(c, m, 1), LS_TANH);
    ls_tensor *out = ls_dense(c, h, weight(c, m, 2), weight(c, m, 3), LS_LINEAR);

    return ls_sparse_softmax_cross_entropy(c, out, labels(c, step));
}

/* ---- a convolution, batch norm, dropout, and a layer centered over all replicas ---- */

enum { FILTERS = 4, FLAT = SIDE / 2 * (SIDE / 2) * FILTERS };

static void create_cnn(layout_model *m)
{
    add_trained(m, LS_SHAPE(3, 3, CHANNELS, FILTERS), 0);
    add_trained(m, LS_SHAPE(FILTERS), 1);
    add_trained(m, LS_SHAPE(FILTERS), 0);
    add_trained(m, LS_SHAPE(FLAT, CLASSES), 0);
    add_trained(m, LS_SHAPE(CLASSES), 0);
    add_average(m, LS_SHAPE(FILTERS), 0);
    add_average(m, LS_SHAPE(FILTERS), 1);
}

static void move_average(ls_context *c, ls_variable *v, ls_tensor *moment, ls_tensor *x)
{
    (void)ls_assign(c, v, ls_moving_average(c, ls_read(c, v), moment, x, 0.9));
}

/* The gradient passes through the sum over all replicas. */
static ls_tensor *center_over_replicas(ls_context *c, ls_tensor *x)
{
    ls_tensor *mean = ls_mean(c, x, (const int[]){0}, 1, false);

    return ls_sub(c, x, ls_all_reduce(c, LS_MEAN, mean));
}

static ls_tensor *cnn_loss(ls_context *c, const layout_model *m, int64_t step)
{
    ls_conv_options conv = LS_CONV_OPTIONS_INIT;
    ls_pool_options pool = LS_POOL_OPTIONS_INIT;
    ls_tensor *mean = NULL, *variance = NULL, *h, *x;

    conv.padding = LS_SAME;
    pool.size[0] = pool.size[1] = 2;
    x = numbers(c, step, 0, LS_SHAPE(rows_here(c), SIDE, SIDE, CHANNELS));
    x = ls_conv2d(c, x, weight(c, m, 0), NULL, &conv);
    h = ls_batch_norm(c, x, weight(c, m, 1), weight(c, m, 2), 1e-3, &mean, &variance);
    move_average(c, m->v[5], mean, x);
    move_average(c, m->v[6], variance, x);
    h = ls_dropout(c, ls_max_pool2d(c, ls_relu(c, h), &pool), 0.3);
    h = center_over_replicas(c, ls_reshape(c, h, LS_SHAPE(-1, FLAT)));
    h = ls_dense(c, h, weight(c, m, 3), weight(c, m, 4), LS_LINEAR);
    return ls_sparse_softmax_cross_entropy(c, h, labels(c, step));
}

/* ---- a transformer of one block ---- */

enum {
    TOKENS,
    POSITIONS,
    NORM,
    QKV = NORM + 2,
    PROJECTION = QKV + 2,
    NORM2 = PROJECTION + 2,
    UP = NORM2 + 2,
    DOWN = UP + 2,
    LOGITS = DOWN + 2
};

static void add_dense(layout_model *m, int64_t in, int64_t out)
{
    add_trained(m, LS_SHAPE(in, out), 0);
    add_trained(m, LS_SHAPE(out), 0);
}

static void add_norm(layout_model *m)
{
    add_trained(m, LS_SHAPE(WIDTH), 1);
    add_trained(m, LS_SHAPE(WIDTH), 0);
}

static void create_gpt(layout_model *m)
{
    add_trained(m, LS_SHAPE(VOCABULARY, WIDTH), 0);
    add_trained(m, LS_SHAPE(WORDS, WIDTH), 0);
    add_norm(m);
    add_dense(m, WIDTH, 3 * WIDTH);
    add_dense(m, WIDTH, WIDTH);
    add_norm(m);
    add_dense(m, WIDTH, 2 * WIDTH);
    add_dense(m, 2 * WIDTH, WIDTH);
    add_trained(m, LS_SHAPE(WIDTH, VOCABULARY), 0);
}

static ls_tensor *dense(ls_context *c, const layout_model *m, ls_tensor *x, size_t i,
                        ls_activation activation)
{
    return ls_dense(c, x, weight(c, m, i), weight(c, m, i + 1), activation);
}

static ls_tensor *norm(ls_context *c, const layout_model *m, ls_tensor *x, size_t i)
{
    return ls_layer_norm(c, x, weight(c, m, i), weight(c, m, i + 1), 1e-5);
}

static ls_tensor *gpt_loss(ls_context *c, const layout_model *m, int64_t step)
{
    const int64_t rows = rows_here(c);
    ls_tensor *x = integers(c, step, 0, VOCABULARY, LS_SHAPE(rows, WORDS));
    ls_tensor *y = integers(c, step, 1, VOCABULARY, LS_SHAPE(rows, WORDS));
    ls_tensor *h, *a;

    h = ls_add(c, ls_gather(c, weight(c, m, TOKENS), x, 0), weight(c, m, POSITIONS));
    a = dense(c, m, norm(c, m, h, NORM), QKV, LS_LINEAR);
    a = ls_self_attention(c, a, 2, 0, true);
    h = ls_add(c, h, ls_dropout(c, dense(c, m, a, PROJECTION, LS_LINEAR), 0.1));
    a = dense(c, m, norm(c, m, h, NORM2), UP, LS_GELU_TANH);
    h = ls_add(c, h, dense(c, m, a, DOWN, LS_LINEAR));
    h = ls_dense(c, h, weight(c, m, LOGITS), NULL, LS_LINEAR);
    return ls_mean(c, ls_sparse_softmax_cross_entropy(c, h, y), (const int[]){1}, 1,
                   false);
}

/* ---- an embedding, whose gradient is sparse ---- */

static void create_embedding(layout_model *m)
{
    add_trained(m, LS_SHAPE(TABLE, WIDTH), 0);
    add_trained(m, LS_SHAPE(WIDTH, CLASSES), 0);
}

/* Words repeat within a batch and between replicas; most rows are in no batch. */
static ls_tensor *embedding_loss(ls_context *c, const layout_model *m, int64_t step)
{
    ls_tensor *x = integers(c, step, 0, TABLE / 4, LS_SHAPE(rows_here(c), WORDS));
    ls_tensor *rows = ls_variable_gather(c, m->v[0], x);
    ls_tensor *h;

    rows = m->kind->dtype == LS_F32 ? rows : ls_cast(c, rows, LS_F32);
    h = ls_mean(c, rows, (const int[]){1}, 1, false);
    h = ls_dense(c, h, weight(c, m, 1), NULL, LS_LINEAR);
    return ls_sparse_softmax_cross_entropy(c, h, labels(c, step));
}

/* ---- all of them ---- */

const layout_kind layout_kinds[] = {
    {"mlp", LS_F32, create_mlp, mlp_loss},
    {"mlp of float16", LS_F16, create_mlp, mlp_loss},
    {"cnn", LS_F32, create_cnn, cnn_loss},
    {"gpt", LS_F32, create_gpt, gpt_loss},
    {"gpt of bfloat16", LS_BF16, create_gpt, gpt_loss},
    {"embedding", LS_F32, create_embedding, embedding_loss},
    {"embedding of bfloat16", LS_BF16, create_embedding, embedding_loss},
};
const size_t layout_kind_count = LSI_COUNT_OF(layout_kinds);

void layout_model_create(layout_model *m, const layout_kind *kind, uint64_t seed)
{
    *m = (layout_model){.kind = kind, .random = seed};
    kind->create(m);
}

void layout_model_release(layout_model *m)
{
    for (size_t i = 0; i < m->n; i++) {
        ls_variable_release(m->v[i]);
    }
    m->n = 0;
}

ls_tensor *layout_model_loss(ls_context *c, const layout_model *m, int64_t step)
{
    return ls_average_loss(c, m->kind->loss(c, m, step), NULL,
                           rows_of_all(ls_replica_count(c)));
}
