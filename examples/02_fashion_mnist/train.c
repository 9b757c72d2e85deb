/*
 * Trains the convolutional network of TensorFlow's custom-training tutorial on
 * Fashion-MNIST, mirrored over all cores:
 *
 *     Conv 32 3x3 relu, max pool 2, Conv 64 3x3 relu, max pool 2, Dense 64 relu, Dense 10
 *
 * Adam 0.001, batches of 64 a replica. After five epochs about nine of ten test images
 * are named right. `train --help` lists the options.
 */
#include "idx.h"
#include "progress.h"

#include <lockstep/lockstep.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LS_TRY(call)                                                                     \
    do {                                                                                 \
        if ((st = (call)) != LS_OK) {                                                    \
            goto out;                                                                    \
        }                                                                                \
    } while (0)

enum { VARIABLES = 8, FLAT = 5 * 5 * 64, TEST_BATCH = 500 };

struct options {
    const char *data;
    long epochs, batch, seed, replicas, threads;
};

/* Filters and matrices stand at even places, each with its bias after it. */
struct model {
    ls_variable *variables[VARIABLES];
    ls_optimizer *adam;
};

struct batch;

/* What replicas work on: samples order[0 .. count-1] of a set; NULL: as they stand. */
struct work {
    struct model *model;
    const idx_set *set;
    const uint32_t *order;
    size_t first, count;
    struct batch *batches; // one a replica
};

/* One replica's part of it on its way to the device, in memory that is used again. */
struct batch {
    float *pixels;
    int32_t *labels;
    size_t count;
};

/* Small, fast, and the same on every machine (splitmix64). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* As Keras begins: Glorot's uniform rule for filters and matrices, zeros for biases. */
static ls_status make_variable(const char *name, ls_shape shape, uint64_t *random,
                               ls_variable **out, ls_error *err)
{
    const int64_t count = ls_shape_count(&shape);
    ls_variable_options options = LS_VARIABLE_OPTIONS_INIT;
    ls_tensor *value = NULL;
    float *p = calloc((size_t)count, sizeof *p);
    double field = 1, limit;
    ls_status st;

    if (p == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    if (shape.ndim >= 2) {
        for (int i = 0; i < shape.ndim - 2; i++) {
            field *= (double)shape.dims[i];
        }
        limit = sqrt(6 / (field * (double)(shape.dims[shape.ndim - 2] +
                                           shape.dims[shape.ndim - 1])));
        for (int64_t i = 0; i < count; i++) {
            const double unit = (double)(next_random(random) >> 11) * 0x1p-53;

            p[i] = (float)((2 * unit - 1) * limit);
        }
    }
    options.name = name;
    LS_TRY(ls_tensor_create(NULL, LS_F32, shape, p, &value, err));
    LS_TRY(ls_variable_create(value, &options, out, err));
out:
    ls_tensor_release(value);
    free(p);
    return st;
}

/* In the strategy's scope every variable has a copy on each device. */
static ls_status make_model(uint64_t *random, struct model *m, ls_error *err)
{
    const struct {
        const char *name;
        ls_shape shape;
    } parts[VARIABLES] = {
        {"conv1/kernel", LS_SHAPE(3, 3, 1, 32)},
        {"conv1/bias", LS_SHAPE(32)},
        {"conv2/kernel", LS_SHAPE(3, 3, 32, 64)},
        {"conv2/bias", LS_SHAPE(64)},
        {"dense1/kernel", LS_SHAPE(FLAT, 64)},
        {"dense1/bias", LS_SHAPE(64)},
        {"dense2/kernel", LS_SHAPE(64, IDX_CLASSES)},
        {"dense2/bias", LS_SHAPE(IDX_CLASSES)},
    };

    for (int i = 0; i < VARIABLES; i++) {
        const ls_status st =
            make_variable(parts[i].name, parts[i].shape, random, &m->variables[i], err);

        if (st != LS_OK) {
            return st;
        }
    }
    return ls_adam_create(NULL, &m->adam, err); // Keras' defaults: 0.001
}

static void release_model(struct model *m)
{
    for (int i = 0; i < VARIABLES; i++) {
        ls_variable_release(m->variables[i]);
    }
    ls_optimizer_release(m->adam);
}

/*
 * Logits for images x [n, 28, 28, 1]. The largest of four relus is the relu of the
 * largest: the pooling takes it over, and both cost one pass.
 */
static ls_tensor *forward(ls_context *c, const struct model *m, ls_tensor *x)
{
    ls_pool_options pool = LS_POOL_OPTIONS_INIT;
    ls_tensor *v[VARIABLES], *h = x;

    pool.relu = true;
    for (int i = 0; i < VARIABLES; i++) {
        v[i] = ls_read(c, m->variables[i]);
    }
    h = ls_conv2d(c, h, v[0], v[1], NULL);
    h = ls_max_pool2d(c, h, &pool);
    h = ls_conv2d(c, h, v[2], v[3], NULL);
    h = ls_max_pool2d(c, h, &pool);
    h = ls_reshape(c, h, LS_SHAPE(-1, FLAT));
    h = ls_dense(c, h, v[4], v[5], LS_RELU);
    return ls_dense(c, h, v[6], v[7], LS_LINEAR);
}

static ls_tensor *images_of(ls_context *c, const struct batch *b)
{
    return ls_constant(c, LS_F32, LS_SHAPE((int64_t)b->count, IDX_SIDE, IDX_SIDE, 1),
                       b->pixels);
}

/* How many rows of the logits have their largest number at the label. */
static size_t count_right(ls_context *c, ls_tensor *logits, const struct batch *b)
{
    const ls_tensor *best = ls_argmax(c, logits, 1);
    const int64_t *guess = best != NULL ? ls_tensor_data(best) : NULL;
    size_t right = 0;

    for (size_t i = 0; guess != NULL && i < b->count; i++) {
        right += guess[i] == b->labels[i] ? 1 : 0;
    }
    return right;
}

/* This replica's share of the work. */
static void gather(const struct work *w, int replica, int replicas, struct batch *b)
{
    const size_t begin = w->count * (size_t)replica / (size_t)replicas;
    const size_t end = w->count * ((size_t)replica + 1) / (size_t)replicas;

    for (size_t i = begin; i < end; i++) {
        const size_t at = w->first + i;
        const size_t sample = w->order != NULL ? w->order[at] : at;

        memcpy(b->pixels + (i - begin) * IDX_PIXELS, w->set->pixels + sample * IDX_PIXELS,
               IDX_PIXELS * sizeof *b->pixels);
        b->labels[i - begin] = w->set->labels[sample];
    }
    b->count = end - begin;
}

/* What a replica tells: its part of the loss, and how many it named right. */
static ls_value *report(ls_context *c, double loss, size_t right)
{
    const float numbers[] = {(float)loss, (float)right};

    return ls_value_of(c, ls_constant(c, LS_F32, LS_SHAPE(2), numbers));
}

/* Runs on every replica with its part of the batch. */
static ls_value *train_step(ls_context *c, ls_value *args, void *user)
{
    struct work *w = user;
    struct model *m = w->model;
    struct batch *b = &w->batches[ls_replica_id(c)];

    (void)args;
    gather(w, ls_replica_id(c), ls_replica_count(c), b);
    ls_tensor *x = images_of(c, b);
    ls_tensor *y = ls_constant(c, LS_I32, LS_SHAPE((int64_t)b->count), b->labels);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *logits = forward(c, m, x);
    ls_tensor *losses = ls_sparse_softmax_cross_entropy(c, logits, y);
    ls_tensor *loss = ls_average_loss(c, losses, NULL, (int64_t)w->count);

    ls_optimizer_minimize(c, m->adam, tape, loss, m->variables, VARIABLES); // sums, steps
    return report(c, ls_item(c, loss) * (double)w->count, count_right(c, logits, b));
}

static ls_value *test_step(ls_context *c, ls_value *args, void *user)
{
    struct work *w = user;
    struct batch *b = &w->batches[ls_replica_id(c)];

    (void)args;
    gather(w, ls_replica_id(c), ls_replica_count(c), b);
    return report(c, 0, count_right(c, forward(c, w->model, images_of(c, b)), b));
}

/* One step on all replicas; their reports added up. */
static ls_status step(ls_strategy *strategy, ls_replica_fn fn, struct work *w,
                      double *loss, size_t *right, ls_error *err)
{
    ls_value *each = NULL, *sum = NULL;
    float numbers[2] = {0, 0};
    ls_status st;

    LS_TRY(ls_strategy_run(strategy, fn, NULL, w, &each, err));
    LS_TRY(ls_strategy_reduce(strategy, LS_SUM, each, LS_NO_AXIS, &sum, err));
    LS_TRY(ls_tensor_read(ls_value_as_tensor(sum), numbers, sizeof numbers, err));
    *loss = (double)numbers[0];
    *right = (size_t)numbers[1];
out:
    ls_value_release(each);
    ls_value_release(sum);
    return st;
}

static void shuffle(uint32_t *order, size_t n, uint64_t *random)
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)(next_random(random) % i);
        const uint32_t t = order[i - 1];

        order[i - 1] = order[j];
        order[j] = t;
    }
}

static ls_status train(ls_strategy *strategy, struct work *w, const struct options *o,
                       uint64_t *random, ls_error *err)
{
    const size_t size = (size_t)(o->batch * ls_strategy_replicas(strategy));
    uint32_t *order = malloc(w->set->count * sizeof *order);
    ls_status st = LS_OK;
    progress shown;

    if (order == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < w->set->count; i++) {
        order[i] = (uint32_t)i;
    }
    w->order = order;
    progress_start(&shown, (int)o->epochs, w->set->count);
    for (int epoch = 1; epoch <= o->epochs; epoch++) {
        shuffle(order, w->set->count, random);
        progress_epoch(&shown, epoch);
        for (w->first = 0; w->first < w->set->count; w->first += size) {
            const size_t left = w->set->count - w->first;
            double loss = 0;
            size_t right = 0;

            w->count = left < size ? left : size;
            LS_TRY(step(strategy, train_step, w, &loss, &right, err));
            progress_add(&shown, w->count, loss, right);
        }
        progress_epoch_end(&shown);
    }
out:
    free(order);
    w->order = NULL;
    return st;
}

/* The share of the set that is named right. */
static ls_status test(ls_strategy *strategy, struct work *w, size_t size,
                      double *accuracy, ls_error *err)
{
    size_t right = 0;
    ls_status st = LS_OK;

    for (w->first = 0; w->first < w->set->count && st == LS_OK; w->first += size) {
        const size_t left = w->set->count - w->first;
        double loss = 0;
        size_t some = 0;

        w->count = left < size ? left : size;
        st = step(strategy, test_step, w, &loss, &some, err);
        right += some;
    }
    *accuracy = (double)right / (double)w->set->count;
    return st;
}

static void release_batches(struct batch *batches, int n)
{
    for (int i = 0; batches != NULL && i < n; i++) {
        free(batches[i].pixels);
        free(batches[i].labels);
    }
    free(batches);
}

/* Memory for the part of each replica; NULL: there is none. */
static struct batch *make_batches(int n, size_t rows)
{
    struct batch *batches = calloc((size_t)n, sizeof *batches);

    for (int i = 0; batches != NULL && i < n; i++) {
        batches[i].pixels = malloc(rows * IDX_PIXELS * sizeof *batches[i].pixels);
        batches[i].labels = malloc(rows * sizeof *batches[i].labels);
        if (batches[i].pixels == NULL || batches[i].labels == NULL) {
            release_batches(batches, n);
            return NULL;
        }
    }
    return batches;
}

/* A strategy with a replica on each of `replicas` logical devices (0: one a core). */
static ls_status make_strategy(const struct options *o, ls_runtime **rt,
                               ls_strategy **strategy, ls_error *err)
{
    ls_runtime_options devices = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options options = LS_STRATEGY_OPTIONS_INIT;
    const long cores = ls_device_threads(ls_runtime_device(NULL, 0));
    ls_status st;

    devices.logical_cpus = (int)(o->replicas > 0 ? o->replicas : cores);
    devices.threads = (int)o->threads;
    LS_TRY(ls_runtime_create(&devices, rt, err));
    options.runtime = *rt;
    LS_TRY(ls_mirrored_create(NULL, &options, strategy, err)); // NULL: all of them
out:
    return st;
}

static ls_status run(const struct options *o, const idx_set *train_set,
                     const idx_set *test_set, ls_error *err)
{
    ls_runtime *rt = NULL;
    ls_strategy *strategy = NULL;
    struct model m;
    struct work w = {&m, train_set, NULL, 0, 0, NULL};
    uint64_t random = (uint64_t)o->seed;
    const size_t rows = o->batch > TEST_BATCH ? (size_t)o->batch : TEST_BATCH;
    double accuracy = 0;
    int n = 0;
    ls_status st;

    memset(&m, 0, sizeof m);
    LS_TRY(make_strategy(o, &rt, &strategy, err));
    n = ls_strategy_replicas(strategy);
    LS_TRY(ls_scope_enter(strategy, err));
    st = make_model(&random, &m, err);
    ls_scope_exit(strategy);
    LS_TRY(st);
    w.batches = make_batches(n, rows);
    LS_TRY(w.batches == NULL ? LS_RESOURCE_EXHAUSTED : LS_OK);
    printf("%zu images, %d replica%s, batches of %ld each, %d thread%s\n",
           train_set->count, n, n == 1 ? "" : "s", o->batch,
           ls_device_threads(ls_strategy_worker_device(strategy, 0)),
           ls_device_threads(ls_strategy_worker_device(strategy, 0)) == 1 ? "" : "s");
    LS_TRY(train(strategy, &w, o, &random, err));
    w.set = test_set;
    LS_TRY(test(strategy, &w, TEST_BATCH, &accuracy, err));
    printf("test accuracy %.4f\n", accuracy);
out:
    release_batches(w.batches, n);
    release_model(&m);
    ls_strategy_release(strategy);
    ls_runtime_release(rt);
    return st;
}

static const char help[] =
    "usage: train [options]\n"
    "\n"
    "  --data DIR     folder of the four IDX files (/usr/share/datasets/fashion-mnist)\n"
    "  --epochs N     how often all images are seen (5)\n"
    "  --batch N      images of one replica's step (64)\n"
    "  --seed S       of the first weights and of the order (0)\n"
    "  --replicas N   replicas, each on a device of its own (0: one a core)\n"
    "  --threads N    threads of each device (0: its share of the cores)\n"
    "  --help         this text\n";

/* A whole number from `least` to `most`; -1 after a complaint. */
static long number(const char *name, const char *text, long least, long most)
{
    char *end = NULL;
    const long n = strtol(text, &end, 10);

    if (end == text || *end != '\0' || n < least || n > most) {
        fprintf(stderr, "train: %s takes a number from %ld to %ld, not '%s'\n", name,
                least, most, text);
        return -1;
    }
    return n;
}

/* Returns 0: go on; 1: the help was asked for; 2: the command line makes no sense. */
static int parse(int argc, char **argv, struct options *o)
{
    const struct {
        const char *name;
        const char **text;
        long *number, least, most;
    } known[] = {
        {"--data", &o->data, NULL, 0, 0},
        {"--epochs", NULL, &o->epochs, 1, 100000},
        {"--batch", NULL, &o->batch, 1, 65536},
        {"--seed", NULL, &o->seed, 0, 2147483647},
        {"--replicas", NULL, &o->replicas, 0, 256},
        {"--threads", NULL, &o->threads, 0, 4096},
    };
    const size_t count = sizeof known / sizeof *known;

    for (int i = 1; i < argc; i++) {
        size_t k = 0;

        if (strcmp(argv[i], "--help") == 0) {
            printf("%s", help);
            return 1;
        }
        while (k < count && strcmp(argv[i], known[k].name) != 0) {
            k++;
        }
        if (k == count || i + 1 == argc) {
            fprintf(stderr, "train: %s '%s'\n%s",
                    k == count ? "unknown option" : "no value after", argv[i], help);
            return 2;
        }
        i++;
        if (known[k].text != NULL) {
            *known[k].text = argv[i];
        } else {
            *known[k].number =
                number(known[k].name, argv[i], known[k].least, known[k].most);
            if (*known[k].number < 0) {
                return 2;
            }
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {"/usr/share/datasets/fashion-mnist", 5, 64, 0, 0, 0};
    idx_set train_set = {0, NULL, NULL}, test_set = {0, NULL, NULL};
    ls_error err = LS_ERROR_INIT;
    char why[1280] = "";
    int status = parse(argc, argv, &o);
    ls_status st = LS_OK;

    if (status != 0) {
        return status == 1 ? 0 : status;
    }
    if (idx_load(o.data, "train", &train_set, why, sizeof why) != 0 ||
        idx_load(o.data, "t10k", &test_set, why, sizeof why) != 0) {
        fprintf(stderr, "train: %s\n", why);
        idx_release(&train_set);
        return 1;
    }
    st = run(&o, &train_set, &test_set, &err);
    if (st != LS_OK) {
        fprintf(stderr, "train: %s: %s", ls_status_name(st),
                err.message[0] != '\0' ? err.message : ls_status_meaning(st));
        if (err.file != NULL) {
            fprintf(stderr, " (%s:%d)", err.file, err.line);
        }
        fprintf(stderr, "\n");
    }
    idx_release(&train_set);
    idx_release(&test_set);
    return st == LS_OK ? 0 : 1;
}
