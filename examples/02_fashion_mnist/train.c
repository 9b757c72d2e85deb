/*
 * Trains the convolutional network of TensorFlow's custom-training tutorial on
 * Fashion-MNIST, on one device:
 *
 *     Conv 32 3x3 relu, max pool 2, Conv 64 3x3 relu, max pool 2, Dense 64 relu, Dense 10
 *
 * Adam 0.001, batches of 64. After five epochs about nine of ten test images are named
 * right. `train --help` lists the options.
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
    const char *device;
    long epochs, batch, seed, threads;
};

/* Filters and matrices stand at even places, each with its bias after it. */
struct model {
    ls_variable *variables[VARIABLES];
    ls_optimizer *adam;
};

/* One batch on its way to the device, in memory that is used again. */
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
static ls_status make_variable(ls_device *device, const char *name, ls_shape shape,
                               uint64_t *random, ls_variable **out, ls_error *err)
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
    LS_TRY(ls_tensor_create(device, LS_F32, shape, p, &value, err));
    LS_TRY(ls_variable_create(value, &options, out, err));
out:
    ls_tensor_release(value);
    free(p);
    return st;
}

static ls_status make_model(ls_device *device, uint64_t *random, struct model *m,
                            ls_error *err)
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
        const ls_status st = make_variable(device, parts[i].name, parts[i].shape, random,
                                           &m->variables[i], err);

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

static ls_status train_step(ls_context *c, struct model *m, const struct batch *b,
                            double *loss, size_t *right, ls_error *err)
{
    ls_tensor *x = images_of(c, b);
    ls_tensor *y = ls_constant(c, LS_I32, LS_SHAPE((int64_t)b->count), b->labels);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *logits = forward(c, m, x);
    ls_tensor *losses = ls_sparse_softmax_cross_entropy(c, logits, y);
    ls_tensor *mean = ls_mean(c, losses, NULL, 0, false);

    ls_optimizer_minimize(c, m->adam, tape, mean, m->variables, VARIABLES);
    *loss = ls_item(c, mean) * (double)b->count;
    *right = count_right(c, logits, b);
    return ls_context_finish(c, err); // the first failure of the step, with its line
}

/* Collects the samples order[0..count-1] of `set`. */
static void gather(const idx_set *set, const uint32_t *order, size_t count,
                   struct batch *b)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(b->pixels + i * IDX_PIXELS, set->pixels + (size_t)order[i] * IDX_PIXELS,
               IDX_PIXELS * sizeof *b->pixels);
        b->labels[i] = set->labels[order[i]];
    }
    b->count = count;
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

static ls_status train(ls_context *c, struct model *m, const idx_set *set,
                       const struct options *o, uint64_t *random, ls_error *err)
{
    const size_t size = (size_t)o->batch;
    uint32_t *order = malloc(set->count * sizeof *order);
    struct batch b = {malloc(size * IDX_PIXELS * sizeof *b.pixels),
                      malloc(size * sizeof *b.labels), 0};
    ls_status st = LS_OK;
    progress shown;

    if (order == NULL || b.pixels == NULL || b.labels == NULL) {
        st = LS_RESOURCE_EXHAUSTED;
        goto out;
    }
    for (size_t i = 0; i < set->count; i++) {
        order[i] = (uint32_t)i;
    }
    progress_start(&shown, (int)o->epochs, set->count);
    for (int epoch = 1; epoch <= o->epochs; epoch++) {
        shuffle(order, set->count, random);
        progress_epoch(&shown, epoch);
        for (size_t at = 0; at < set->count; at += size) {
            const size_t left = set->count - at;
            double loss = 0;
            size_t right = 0;

            gather(set, order + at, left < size ? left : size, &b);
            LS_TRY(train_step(c, m, &b, &loss, &right, err));
            progress_add(&shown, b.count, loss, right);
        }
        progress_epoch_end(&shown);
    }
out:
    free(order);
    free(b.pixels);
    free(b.labels);
    return st;
}

/* The share of `set` that is named right. */
static ls_status test(ls_context *c, const struct model *m, const idx_set *set,
                      double *accuracy, ls_error *err)
{
    size_t right = 0;

    for (size_t at = 0; at < set->count; at += TEST_BATCH) {
        const size_t left = set->count - at;
        const struct batch b = {set->pixels + at * IDX_PIXELS, set->labels + at,
                                left < TEST_BATCH ? left : TEST_BATCH};
        ls_status st;

        right += count_right(c, forward(c, m, images_of(c, &b)), &b);
        st = ls_context_finish(c, err);
        if (st != LS_OK) {
            return st;
        }
    }
    *accuracy = (double)right / (double)set->count;
    return LS_OK;
}

static ls_status run(const struct options *o, const idx_set *train_set,
                     const idx_set *test_set, ls_error *err)
{
    ls_runtime_options options = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_device *device = NULL;
    ls_context *c = NULL;
    struct model m;
    uint64_t random = (uint64_t)o->seed;
    double accuracy = 0;
    ls_status st;

    memset(&m, 0, sizeof m);
    options.threads = (int)o->threads;
    LS_TRY(ls_runtime_create(&options, &rt, err));
    LS_TRY(ls_runtime_find_device(rt, o->device, &device, err));
    LS_TRY(ls_context_open(device, &c, err));
    LS_TRY(make_model(device, &random, &m, err));
    printf("%zu images, batches of %ld, %s, %d thread%s\n", train_set->count, o->batch,
           ls_device_name(device), ls_device_threads(device),
           ls_device_threads(device) == 1 ? "" : "s");
    LS_TRY(train(c, &m, train_set, o, &random, err));
    LS_TRY(test(c, &m, test_set, &accuracy, err));
    printf("test accuracy %.4f\n", accuracy);
out:
    ls_context_close(c);
    release_model(&m);
    ls_runtime_release(rt);
    return st;
}

static const char help[] =
    "usage: train [options]\n"
    "\n"
    "  --data DIR     folder of the four IDX files (/usr/share/datasets/fashion-mnist)\n"
    "  --epochs N     how often all images are seen (5)\n"
    "  --batch N      images of one step (64)\n"
    "  --seed S       of the first weights and of the order (0)\n"
    "  --threads N    threads of the device (0: all cores)\n"
    "  --device NAME  device to train on (CPU:0)\n"
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
        {"--device", &o->device, NULL, 0, 0},
        {"--epochs", NULL, &o->epochs, 1, 100000},
        {"--batch", NULL, &o->batch, 1, 65536},
        {"--seed", NULL, &o->seed, 0, 2147483647},
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
    struct options o = {"/usr/share/datasets/fashion-mnist", "CPU:0", 5, 64, 0, 0};
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
