/*
 * Trains the convolutional network of TensorFlow's custom-training tutorial on
 * Fashion-MNIST, mirrored over all cores:
 *
 *     Conv 32 3x3 relu, max pool 2, Conv 64 3x3 relu, max pool 2, Dense 64 relu, Dense 10
 *
 * Adam 0.001, batches of 64 per replica, read from TFRecord shards (or the IDX files) by
 * a pipeline that is distributed over the replicas. After five epochs about nine of ten
 * test images are classified correctly. `train --help` lists the options.
 */
#include "progress.h"

#include <glob.h>
#include <lockstep/distribute.h>
#include <lockstep/example.h>
#include <lockstep/lockstep.h>
#include <lockstep/try.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLES = 8, FLAT = 5 * 5 * 64, SIDE = 28, CLASSES = 10, TEST_BATCH = 500 };
enum { TRAIN_IMAGES = 60000, SHUFFLE = TRAIN_IMAGES };

struct options {
    const char *data;
    long epochs, batch, seed, replicas, threads;
};

/* Filters and matrices have even indices, each is followed by its bias. */
struct model {
    ls_variable *variables[VARIABLES];
    ls_optimizer *adam;
};

/* Small, fast, and the same on every machine (splitmix64). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/*
 * As Keras initialises: Glorot's uniform rule for filters and matrices, zeros for biases.
 */
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
        {"conv1/kernel", LS_SHAPE(3, 3, 1, 32)},  {"conv1/bias", LS_SHAPE(32)},
        {"conv2/kernel", LS_SHAPE(3, 3, 32, 64)}, {"conv2/bias", LS_SHAPE(64)},
        {"dense1/kernel", LS_SHAPE(FLAT, 64)},    {"dense1/bias", LS_SHAPE(64)},
        {"dense2/kernel", LS_SHAPE(64, CLASSES)}, {"dense2/bias", LS_SHAPE(CLASSES)},
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
 * largest, so the pooling applies the relu in the same pass.
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

/* Pixels are read as bytes; the network takes numbers in [0, 1]. */
static ls_tensor *scaled_pixels(ls_context *c, ls_tensor *bytes)
{
    ls_tensor *x = ls_mul(c, ls_cast(c, bytes, LS_F32), ls_constant_f32(c, 1.0F / 255));

    return ls_reshape(
        c, x, LS_SHAPE(bytes != NULL ? ls_tensor_dim(bytes, 0) : 0, SIDE, SIDE, 1));
}

/* The number of rows whose largest logit is at the label. */
static ls_tensor *count_right(ls_context *c, ls_tensor *logits, ls_tensor *labels)
{
    ls_tensor *right = ls_equal(c, ls_argmax(c, logits, 1), labels);

    return ls_sum(c, ls_cast(c, right, LS_F32), NULL, 0, false);
}

/*
 * A replica's result: its part of the loss, how many images were classified correctly,
 * and how many there were.
 */
static ls_value *report_step(ls_context *c, ls_tensor *loss, ls_tensor *right,
                             ls_tensor *labels)
{
    ls_tensor *count =
        ls_constant_f32(c, labels != NULL ? (float)ls_tensor_count(labels) : 0);
    ls_tensor *parts[] = {loss, right, count};

    return ls_value_of(c, ls_stack(c, parts, 3, 0));
}

/* Runs on every replica with its part of the batch. */
static ls_value *train_step(ls_context *c, ls_value *batch, void *user)
{
    struct model *m = user;
    ls_tensor *x = scaled_pixels(c, ls_value_at_key(c, batch, "image"));
    ls_tensor *y = ls_value_at_key(c, batch, "label");
    ls_tensor *mine = ls_constant_f32(c, y != NULL ? (float)ls_tensor_count(y) : 0);
    ls_tensor *all = ls_all_reduce(c, LS_SUM, mine); // the last batch may be small
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *logits = forward(c, m, x);
    ls_tensor *losses = ls_sparse_softmax_cross_entropy(c, logits, y);
    ls_tensor *sum = ls_sum(c, losses, NULL, 0, false);

    ls_optimizer_minimize(c, m->adam, tape, ls_div(c, sum, all), m->variables, VARIABLES);
    return report_step(c, sum, count_right(c, logits, y), y);
}

static ls_value *test_step(ls_context *c, ls_value *batch, void *user)
{
    const struct model *m = user;
    ls_tensor *x = scaled_pixels(c, ls_value_at_key(c, batch, "image"));
    ls_tensor *y = ls_value_at_key(c, batch, "label");

    return report_step(c, ls_constant_f32(c, 0), count_right(c, forward(c, m, x), y), y);
}

/* ---- the data ---- */

/* Gives the images and labels of the IDX files the names that Examples have. */
static ls_value *name_parts(ls_context *c, ls_value *pair, void *user)
{
    const char *const names[] = {"image", "label"};
    ls_value *items[2] = {ls_value_child(pair, 0), NULL}, *label = NULL, *dict = NULL;
    ls_error err = LS_ERROR_INIT;

    (void)user;
    label = ls_value_of(c, ls_cast(c, ls_value_at(c, pair, 1), LS_I64));
    items[1] = label;
    if (label == NULL || ls_value_dict(names, items, 2, &dict, &err) != LS_OK) {
        return NULL;
    }
    return ls_value_adopt(c, dict);
}

/* The part "train" or "t10k" as single examples {image, label}, from IDX files. */
static ls_dataset *from_idx(const char *folder, const char *part)
{
    ls_dataset *both[2];
    char images[4096], labels[4096];

    (void)snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", folder, part);
    (void)snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", folder, part);
    both[0] = ls_dataset_idx(images);
    both[1] = ls_dataset_idx(labels);
    return ls_dataset_map(ls_dataset_zip(both, 2), name_parts, NULL, NULL);
}

static bool has_shards(const char *pattern)
{
    glob_t found;
    const bool any = glob(pattern, 0, NULL, &found) == 0;

    globfree(&found);
    return any;
}

/*
 * Batches of a part, shuffled in every pass if `seed` is given. Of TFRecord shards the
 * records are shuffled first, and whole batches are parsed.
 */
static ls_dataset *batches_of(const char *folder, const char *part, long size,
                              const int64_t *seed)
{
    const ls_feature features[] = {
        {.name = "image", .dtype = LS_U8, .shape = LS_SHAPE(SIDE, SIDE)},
        {.name = "label", .dtype = LS_I64},
    };
    char pattern[4096];
    ls_dataset *d;
    bool shards;

    (void)snprintf(pattern, sizeof pattern, "%s/%s*.tfrecord", folder, part);
    shards = has_shards(pattern);
    d = shards ? ls_dataset_tfrecord(pattern) : from_idx(folder, part);
    if (seed != NULL) {
        d = ls_dataset_shuffle(d, SHUFFLE, *seed);
    }
    d = ls_dataset_batch(d, size);
    return shards ? ls_dataset_parse_example(d, features, 2, LS_AUTOTUNE) : d;
}

/* The next batch; adds the time spent waiting for it. */
static ls_status next_batch(ls_dist_iterator *it, progress *shown, ls_value **batch,
                            ls_error *err)
{
    const double begin = progress_now();
    const ls_status st = ls_dist_iterator_next(it, batch, err);

    if (shown != NULL) {
        shown->waited += progress_now() - begin;
    }
    return st;
}

/* One pass over a distributed dataset; adds up what the replicas report. */
static ls_status run_pass(ls_strategy *strategy, ls_dist_dataset *data, ls_replica_fn fn,
                          struct model *m, progress *shown, double totals[3],
                          ls_error *err)
{
    ls_dist_iterator *it = NULL;
    ls_value *batch = NULL, *each = NULL, *sum = NULL;
    ls_status st;

    LS_TRY(ls_dist_iterate(data, &it, err));
    while ((st = next_batch(it, shown, &batch, err)) == LS_OK) {
        float step[3];

        LS_TRY(ls_strategy_run(strategy, fn, batch, m, &each, err));
        LS_TRY(ls_strategy_reduce(strategy, LS_SUM, each, LS_NO_AXIS, &sum, err));
        LS_TRY(ls_tensor_read(ls_value_as_tensor(sum), step, sizeof step, err));
        for (int i = 0; i < 3; i++) {
            totals[i] += (double)step[i];
        }
        if (shown != NULL) {
            progress_add(shown, (size_t)step[2], (double)step[0], (size_t)step[1]);
        }
        ls_value_release(batch);
        ls_value_release(each);
        ls_value_release(sum);
        batch = each = sum = NULL;
    }
    if (st == LS_OUT_OF_RANGE) {
        st = LS_OK; // the end of the data
    }
out:
    ls_value_release(batch);
    ls_value_release(each);
    ls_value_release(sum);
    ls_dist_iterator_release(it);
    return st;
}

/* Distributes the batches: one part per replica. */
static ls_status distribute(ls_strategy *strategy, ls_dataset *d, ls_dist_dataset **out,
                            ls_error *err)
{
    const ls_status st = ls_strategy_distribute(strategy, d, NULL, out, err);

    ls_dataset_release(d);
    return st;
}

static ls_status train_epochs(ls_strategy *strategy, struct model *m,
                              const struct options *o, ls_dist_dataset *data,
                              ls_error *err)
{
    progress shown;
    ls_status st = LS_OK;

    progress_start(&shown, (int)o->epochs, TRAIN_IMAGES);
    for (int epoch = 1; epoch <= o->epochs; epoch++) {
        double totals[3] = {0, 0, 0};

        progress_epoch(&shown, epoch);
        LS_TRY(run_pass(strategy, data, train_step, m, &shown, totals, err));
        progress_epoch_end(&shown);
    }
out:
    return st;
}

/* The share of the test images that are classified correctly. */
static ls_status test_accuracy(ls_strategy *strategy, struct model *m,
                               ls_dist_dataset *data, double *accuracy, ls_error *err)
{
    double totals[3] = {0, 0, 0};
    const ls_status st = run_pass(strategy, data, test_step, m, NULL, totals, err);

    *accuracy = totals[1] / totals[2];
    return st;
}

/* A strategy with a replica on each of `replicas` logical devices (0: one per core). */
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

static ls_status run_training(const struct options *o, ls_error *err)
{
    ls_runtime *rt = NULL;
    ls_strategy *strategy = NULL;
    ls_dist_dataset *train_set = NULL, *test_set = NULL;
    struct model m;
    uint64_t random = (uint64_t)o->seed;
    const int64_t seed = o->seed;
    double accuracy = 0;
    int n = 0, threads = 0;
    ls_status st;

    memset(&m, 0, sizeof m);
    LS_TRY(make_strategy(o, &rt, &strategy, err));
    n = ls_strategy_replicas(strategy);
    threads = ls_device_threads(ls_strategy_worker_device(strategy, 0));
    LS_TRY(distribute(strategy, batches_of(o->data, "train", o->batch * n, &seed),
                      &train_set, err));
    LS_TRY(distribute(strategy, batches_of(o->data, "t10k", TEST_BATCH, NULL), &test_set,
                      err));
    LS_TRY(ls_scope_enter(strategy, err));
    st = make_model(&random, &m, err);
    ls_scope_exit(strategy);
    LS_TRY(st);
    printf("%s, %d replica%s, batches of %ld each, %d thread%s\n", o->data, n,
           n == 1 ? "" : "s", o->batch, threads, threads == 1 ? "" : "s");
    LS_TRY(train_epochs(strategy, &m, o, train_set, err));
    LS_TRY(test_accuracy(strategy, &m, test_set, &accuracy, err));
    printf("test accuracy %.4f\n", accuracy);
out:
    ls_dist_dataset_release(train_set);
    ls_dist_dataset_release(test_set);
    release_model(&m);
    ls_strategy_release(strategy);
    ls_runtime_release(rt);
    return st;
}

static const char help[] =
    "usage: train [options]\n"
    "\n"
    "  --data DIR     folder of train*.tfrecord and t10k*.tfrecord, as `lockstep data\n"
    "                 convert` makes them, or of the four IDX files\n"
    "                 (/usr/share/datasets/fashion-mnist)\n"
    "  --epochs N     how often all images are seen (5)\n"
    "  --batch N      images of one replica's step (64)\n"
    "  --seed S       of the first weights and of the order (0)\n"
    "  --replicas N   replicas, each on a device of its own (0: one a core)\n"
    "  --threads N    threads of each device (0: its share of the cores)\n"
    "  --help         this text\n";

/* A whole number from `least` to `most`; prints a message and returns -1 otherwise. */
static long parse_number(const char *name, const char *text, long least, long most)
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

/* Returns 0: continue; 1: the help was printed; 2: the command line is wrong. */
static int parse_options(int argc, char **argv, struct options *o)
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
                parse_number(known[k].name, argv[i], known[k].least, known[k].most);
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
    ls_error err = LS_ERROR_INIT;
    int status = parse_options(argc, argv, &o);
    ls_status st = LS_OK;

    if (status != 0) {
        return status == 1 ? 0 : status;
    }
    st = run_training(&o, &err);
    if (st != LS_OK) {
        fprintf(stderr, "train: %s: %s", ls_status_name(st),
                err.message[0] != '\0' ? err.message : ls_status_meaning(st));
        if (err.file[0] != '\0') {
            fprintf(stderr, " (%s:%d)", err.file, err.line);
        }
        fprintf(stderr, "\n");
    }
    return st == LS_OK ? 0 : 1;
}
