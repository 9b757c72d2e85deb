/*
 * The row `waiting` of `lockstep bench input`: which share of a training step is spent
 * waiting for its batch. The network and the pipeline are those of `make train`, on two
 * replicas; the images are made up, of the same number and size.
 */
#include "cli/bench/bench_input.h"

#include "bench/bench_clock.h"
#include "bench/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    IMAGES = 60000,
    SHARDS = 4,
    SIDE = 28,
    CLASSES = 10,
    REPLICAS = 2,
    BATCH = 64 * REPLICAS,
    SEED = 0,
};

struct feed {
    char folder[256];
    ls_strategy *strategy;
    bench_model *model;
    ls_dist_dataset *data;
    ls_dist_iterator *it;
    double waited; /* seconds, of this window */
    long steps;
};

/* ---- files ---- */

static void shard_path(const struct feed *f, int shard, char *path, size_t size)
{
    snprintf(path, size, "%s/train-%d.tfrecord", f->folder, shard);
}

static ls_status write_image(ls_record_writer *w, ls_example *e, int64_t index,
                             ls_error *err)
{
    unsigned char pixels[SIDE * SIDE];
    const ls_string image = {(const char *)pixels, sizeof pixels};
    const int64_t label = index % CLASSES, side = SIDE;
    uint32_t state = 2463534242U + (uint32_t)index * 2654435761U;
    ls_status st;

    for (size_t i = 0; i < sizeof pixels; i++) {
        state = state * 1664525U + 1013904223U;
        pixels[i] = (unsigned char)(state >> 24);
    }
    ls_example_clear(e);
    st = ls_example_add_bytes(e, "image", &image, 1, err);
    if (st == LS_OK) {
        st = ls_example_add_int64(e, "height", &side, 1, err);
    }
    if (st == LS_OK) {
        st = ls_example_add_int64(e, "width", &side, 1, err);
    }
    if (st == LS_OK) {
        st = ls_example_add_int64(e, "label", &label, 1, err);
    }
    return st == LS_OK ? ls_record_writer_write_example(w, e, err) : st;
}

static ls_status write_shard(const struct feed *f, int shard, ls_error *err)
{
    ls_record_writer *w = NULL;
    ls_example *e = NULL;
    char path[300];
    ls_status st;

    shard_path(f, shard, path, sizeof path);
    st = ls_record_writer_open(path, NULL, &w, err);
    if (st == LS_OK) {
        st = ls_example_create(&e, err);
    }
    for (int64_t i = 0; st == LS_OK && i < IMAGES / SHARDS; i++) {
        st = write_image(w, e, (int64_t)shard * (IMAGES / SHARDS) + i, err);
    }
    if (st == LS_OK) {
        st = ls_record_writer_close(w, err);
    }
    ls_record_writer_release(w);
    ls_example_release(e);
    return st;
}

static ls_status write_shards(struct feed *f, ls_error *err)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment
    const char *where = getenv("TMPDIR");
    ls_status st = LS_OK;

    snprintf(f->folder, sizeof f->folder, "%s/lockstep-bench-XXXXXX",
             where != NULL && where[0] != '\0' && strlen(where) < 200 ? where : "/tmp");
    if (mkdtemp(f->folder) == NULL) {
        err->code = LS_UNKNOWN;
        snprintf(err->message, sizeof err->message,
                 "%s: no folder can be made; TMPDIR says where", f->folder);
        f->folder[0] = '\0';
        return LS_UNKNOWN;
    }
    for (int i = 0; i < SHARDS && st == LS_OK; i++) {
        st = write_shard(f, i, err);
    }
    return st;
}

static void remove_shards(const struct feed *f)
{
    if (f->folder[0] == '\0') {
        return;
    }
    for (int i = 0; i < SHARDS; i++) {
        char path[300];

        shard_path(f, i, path, sizeof path);
        (void)unlink(path);
    }
    (void)rmdir(f->folder);
}

/* ---- the loop ---- */

static ls_status open_strategy(struct feed *f, ls_error *err)
{
    ls_runtime_options devices = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options how = LS_STRATEGY_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_status st;

    devices.logical_cpus = REPLICAS;
    st = ls_runtime_create(&devices, &rt, err);
    if (st == LS_OK) {
        how.runtime = rt;
        st = ls_mirrored_create(NULL, &how, &f->strategy, err);
    }
    ls_runtime_release(rt); // the strategy keeps it
    return st;
}

/* As examples/02_fashion_mnist builds it. */
static ls_status open_data(struct feed *f, ls_error *err)
{
    const ls_feature features[] = {
        {.name = "image", .dtype = LS_U8, .shape = LS_SHAPE(SIDE, SIDE)},
        {.name = "label", .dtype = LS_I64},
    };
    char pattern[300];
    ls_dataset *d;
    ls_status st;

    snprintf(pattern, sizeof pattern, "%s/train*.tfrecord", f->folder);
    d = ls_dataset_shuffle(ls_dataset_tfrecord(pattern), IMAGES, SEED);
    d = ls_dataset_parse_example(ls_dataset_batch(d, BATCH), features, 2, LS_AUTOTUNE);
    st = ls_strategy_distribute(f->strategy, d, NULL, &f->data, err);
    ls_dataset_release(d);
    return st;
}

/* The next batch, if need be of the next epoch. */
static ls_status next_batch(struct feed *f, ls_value **batch, ls_error *err)
{
    ls_status st =
        f->it != NULL ? ls_dist_iterator_next(f->it, batch, err) : LS_OUT_OF_RANGE;

    if (st == LS_OUT_OF_RANGE) {
        ls_dist_iterator_release(f->it);
        f->it = NULL;
        st = ls_dist_iterate(f->data, &f->it, err);
        if (st == LS_OK) {
            st = ls_dist_iterator_next(f->it, batch, err);
        }
    }
    return st;
}

static ls_status take_step(struct feed *f, ls_error *err)
{
    const double begin = bench_now();
    ls_value *batch = NULL;
    ls_status st = next_batch(f, &batch, err);

    f->waited += bench_now() - begin;
    f->steps++;
    if (st == LS_OK) {
        st = bench_model_step_on(f->model, batch, err);
    }
    ls_value_release(batch);
    return st;
}

/* Steps for about `seconds`: the share of them that was waited, and what one took. */
static ls_status run_window(struct feed *f, double seconds, double *share, double *ms,
                            ls_error *err)
{
    const double begin = bench_now();
    double passed = 0;
    ls_status st = LS_OK;

    f->waited = 0;
    f->steps = 0;
    do {
        st = take_step(f, err);
        passed = bench_now() - begin;
    } while (st == LS_OK && passed < seconds);
    *share = 100 * f->waited / passed;
    *ms = 1e3 * passed / (double)f->steps;
    return st;
}

static ls_status measure_waiting(const bench_options *o, struct feed *f,
                                 bench_stats *share, bench_stats *ms, ls_error *err)
{
    const double seconds = o->seconds > 0 ? o->seconds : 0.4;
    double shares[BENCH_WINDOWS], steps[BENCH_WINDOWS];
    ls_status st = run_window(f, seconds, &shares[0], &steps[0], err); // to warm up

    for (int w = 0; w < BENCH_WINDOWS && st == LS_OK; w++) {
        st = run_window(f, seconds, &shares[w], &steps[w], err);
    }
    *share = bench_stats_of(shares, BENCH_WINDOWS);
    *ms = bench_stats_of(steps, BENCH_WINDOWS);
    return st;
}

/* ---- the row ---- */

static int print_waiting(const bench_options *o, bench_stats share, bench_stats ms)
{
    if (o->json) {
        return bench_print_json(
            json_pack("{ss, ss, ss, so, so, si, si}", "bench", "input", "name", "waiting",
                      "unit", "%", "value", bench_stats_json(share), "step_ms",
                      bench_stats_json(ms), "replicas", REPLICAS, "batch", BATCH));
    }
    printf("%-12s %-10s %11.2f %11.2f %11.2f %11s %8s  of steps of %.1f ms, as `make "
           "train`\n",
           "waiting", "%", share.p50, share.min, share.max, "-", "-", ms.p50);
    fflush(stdout);
    return CLI_OK;
}

static void close_feed(struct feed *f)
{
    ls_dist_iterator_release(f->it);
    ls_dist_dataset_release(f->data);
    bench_model_release(f->model);
    ls_strategy_release(f->strategy);
    remove_shards(f);
}

int bench_waiting(const bench_options *o)
{
    struct feed f = {.steps = 0};
    ls_error err = LS_ERROR_INIT;
    bench_stats share, ms;
    ls_status st = write_shards(&f, &err);

    if (st == LS_OK) {
        st = open_strategy(&f, &err);
    }
    if (st == LS_OK) {
        st = bench_model_create_on(f.strategy, "train", &f.model, &err);
    }
    if (st == LS_OK) {
        st = open_data(&f, &err);
    }
    if (st == LS_OK) {
        st = measure_waiting(o, &f, &share, &ms, &err);
    }
    close_feed(&f);
    if (st != LS_OK) {
        err.code = st;
        return bench_failed("waiting", &err);
    }
    return print_waiting(o, share, ms);
}
