/* `lockstep bench input`: reading, parsing and distributing, each beside the least work possible. */
#include "cli/bench/bench_input.h"

#include "bench/bench_clock.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    CHUNK = 64 << 10,
    BATCH = 128,
    SHUFFLE = 10000,
    EPOCHS = 10,
    SETTLED = 3, /* epochs after which memory should not grow */
};

/* What a row is measured with. */
struct lane {
    const input_files *files;
    ls_dataset *dataset;
    ls_strategy *strategy;
    ls_dist_dataset *dist;
    ls_dist_iterator *it;
    ls_context *context;
    ls_tensor *records;
    unsigned char *in, *out;
    int64_t units; /* of the last call: bytes or records */
};

typedef ls_status (*lane_fn)(void *lane, ls_error *err);

/* ---- what is measured ---- */

static int64_t strings_bytes(const ls_value *v)
{
    const ls_tensor *t = ls_value_as_tensor(v);
    const ls_string *s = t != NULL ? ls_tensor_data(t) : NULL;
    const int64_t n = s != NULL ? ls_tensor_count(t) : 0;
    int64_t bytes = 0;

    for (int64_t i = 0; i < n; i++) {
        bytes += (int64_t)s[i].len;
    }
    return bytes;
}

/* One pass over the lane's dataset. */
static ls_status read_dataset(void *arg, ls_error *err)
{
    struct lane *l = arg;
    ls_iterator *it = NULL;
    ls_status st = ls_dataset_iterate(l->dataset, &it, err);

    l->units = 0;
    while (st == LS_OK) {
        ls_value *v = NULL;

        st = ls_iterator_next(it, &v, err);
        if (st == LS_OK) {
            l->units += strings_bytes(v);
            ls_value_release(v);
        }
    }
    ls_iterator_release(it);
    return st == LS_OUT_OF_RANGE ? LS_OK : st;
}

static ls_status read_distributed(void *arg, ls_error *err)
{
    struct lane *l = arg;
    ls_dist_iterator *it = NULL;
    ls_status st = ls_dist_iterate(l->dist, &it, err);

    l->units = 0;
    while (st == LS_OK) {
        ls_value *v = NULL;

        st = ls_dist_iterator_next(it, &v, err);
        for (size_t r = 0; st == LS_OK && r < ls_value_size(v); r++) {
            l->units += strings_bytes(ls_value_child(v, r));
        }
        ls_value_release(v);
    }
    ls_dist_iterator_release(it);
    return st == LS_OUT_OF_RANGE ? LS_OK : st;
}

/* The least work possible: the file's bytes, by read() alone. */
static ls_status read_bytes(void *arg, ls_error *err)
{
    struct lane *l = arg;
    const int fd = open(l->files->plain, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;

    l->units = 0;
    while (fd >= 0 && (n = read(fd, l->in, CHUNK)) > 0) {
        l->units += n;
    }
    if (fd >= 0) {
        close(fd);
    }
    if (fd < 0 || n < 0) {
        err->code = LS_UNKNOWN;
        snprintf(err->message, sizeof err->message, "%s cannot be read", l->files->plain);
        return LS_UNKNOWN;
    }
    return LS_OK;
}

static ls_status read_inflated(void *arg, ls_error *err)
{
    struct lane *l = arg;
    const int fd = open(l->files->gzip, O_RDONLY | O_CLOEXEC);
    z_stream z = {0};
    int rc = inflateInit2(&z, 15 + 16);

    l->units = 0;
    while (fd >= 0 && rc == Z_OK) {
        if (z.avail_in == 0) {
            const ssize_t n = read(fd, l->in, CHUNK);

            if (n <= 0) {
                break;
            }
            z.next_in = l->in;
            z.avail_in = (uInt)n;
        }
        z.next_out = l->out;
        z.avail_out = CHUNK;
        rc = inflate(&z, Z_NO_FLUSH);
        l->units += CHUNK - (int64_t)z.avail_out;
    }
    inflateEnd(&z);
    if (fd >= 0) {
        close(fd);
    }
    if (rc != Z_STREAM_END) {
        err->code = LS_DATA_LOSS;
        snprintf(err->message, sizeof err->message, "zlib does not read %s",
                 l->files->gzip);
        return LS_DATA_LOSS;
    }
    return LS_OK;
}

/* One batch of Examples, in memory already. */
static ls_status parse_batch(void *arg, ls_error *err)
{
    struct lane *l = arg;
    ls_feature features[INPUT_FEATURES];

    input_features(features);
    l->units = BATCH;
    (void)ls_parse_example(l->context, l->records, features, INPUT_FEATURES);
    return ls_context_finish(l->context, err);
}

static ls_status next_step(void *arg, ls_error *err)
{
    struct lane *l = arg;
    ls_value *v = NULL;
    const ls_status st = ls_dist_iterator_next(l->it, &v, err);

    ls_value_release(v);
    l->units = 1;
    return st;
}

/* ---- rows ---- */

typedef struct input_row {
    const char *name, *unit, *beside; /* beside NULL: nothing */
    lane_fn ours, theirs;
    double scale; /* units per second are divided by it; 0: microseconds of a call */
} input_row;

static const input_row rows[] = {
    {"tfrecord", "MB/s", "read() of 64 KiB", read_dataset, read_bytes, 1e6},
    {"gzip", "MB/s", "zlib's inflate", read_dataset, read_inflated, 1e6},
    {"example", "records/s", NULL, parse_batch, NULL, 1},
    {"shuffle", "MB/s", "without shuffle", read_dataset, read_dataset, 1e6},
    {"distribute", "MB/s", "not distributed", read_distributed, read_dataset, 1e6},
    {"next", "us", NULL, next_step, NULL, 0},
};
enum { ROWS = sizeof rows / sizeof *rows };

typedef struct input_result {
    const input_row *row;
    bench_stats value, beside, ratio;
} input_result;

static double figure(const input_row *row, const struct lane *l, double each)
{
    return row->scale > 0 ? (double)l->units / each / row->scale : each * 1e6;
}

static int measure_row(const bench_options *o, const input_row *row, struct lane *ours,
                       struct lane *theirs, input_result *r)
{
    const double seconds = o->seconds > 0 ? o->seconds : 0.1;
    double value[BENCH_WINDOWS], beside[BENCH_WINDOWS], ratio[BENCH_WINDOWS];
    ls_error err = LS_ERROR_INIT;

    for (int w = 0; w < BENCH_WINDOWS; w++) {
        double each = 0;
        long calls = 0;

        beside[w] = ratio[w] = NAN;
        if (row->theirs != NULL) {
            if (bench_window(o, row->theirs, theirs, seconds, &each, &calls, &err) !=
                LS_OK) {
                return bench_failed(row->name, &err);
            }
            beside[w] = figure(row, theirs, each);
        }
        if (bench_window(o, row->ours, ours, seconds, &each, &calls, &err) != LS_OK) {
            return bench_failed(row->name, &err);
        }
        value[w] = figure(row, ours, each);
        ratio[w] = value[w] / beside[w];
    }
    *r = (input_result){row, bench_stats_of(value, BENCH_WINDOWS),
                        bench_stats_of(beside, BENCH_WINDOWS),
                        bench_stats_of(ratio, BENCH_WINDOWS)};
    return CLI_OK;
}

static int print_row(const bench_options *o, const input_result *r)
{
    char ratio[16] = "-", beside[16] = "-";

    if (o->json) {
        json_t *row =
            json_pack("{ss, ss, ss, so}", "bench", "input", "name", r->row->name, "unit",
                      r->row->unit, "value", bench_stats_json(r->value));

        if (row != NULL && r->row->beside != NULL) {
            json_object_set_new(row, "beside", json_string(r->row->beside));
            json_object_set_new(row, "beside_value", bench_stats_json(r->beside));
            json_object_set_new(row, "ratio", bench_stats_json(r->ratio));
        }
        return bench_print_json(row);
    }
    if (r->row->beside != NULL) {
        snprintf(beside, sizeof beside, "%.1f", r->beside.p50);
        snprintf(ratio, sizeof ratio, "%.2f x", r->ratio.p50);
    }
    printf("%-12s %-10s %11.1f %11.1f %11.1f %11s %8s  %s\n", r->row->name, r->row->unit,
           r->value.p50, r->value.min, r->value.max, beside, ratio,
           r->row->beside != NULL ? r->row->beside : "");
    fflush(stdout);
    return CLI_OK;
}

/* ---- lanes ---- */

static ls_dataset *plain_batches(const input_files *f, bool gzip, bool shuffle)
{
    ls_read_options read = LS_READ_OPTIONS_INIT;
    const char *name = gzip ? f->gzip : f->plain;
    ls_dataset *d;

    read.compression = gzip ? "GZIP" : NULL;
    d = ls_dataset_tfrecord_files(&name, 1, &read);
    if (shuffle) {
        d = ls_dataset_shuffle(d, SHUFFLE, 42);
    }
    return ls_dataset_batch(d, BATCH);
}

static void close_lane(struct lane *l)
{
    ls_dist_iterator_release(l->it);
    ls_dist_dataset_release(l->dist);
    ls_dataset_release(l->dataset);
    ls_strategy_release(l->strategy);
    ls_tensor_release(l->records);
    ls_context_close(l->context);
    free(l->in);
    free(l->out);
}

static ls_status two_replicas(struct lane *l, ls_error *err)
{
    ls_strategy_options how = LS_STRATEGY_OPTIONS_INIT;
    ls_runtime_options options = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_status st;

    options.logical_cpus = 2;
    options.threads = 1;
    st = ls_runtime_create(&options, &rt, err);
    if (st != LS_OK) {
        return st;
    }
    how.runtime = rt;
    st = ls_mirrored_create(NULL, &how, &l->strategy, err);
    ls_runtime_release(rt); // the strategy keeps it
    if (st == LS_OK) {
        st = ls_strategy_distribute(l->strategy, l->dataset, NULL, &l->dist, err);
    }
    return st;
}

/* A batch of Examples for the parser alone. */
static ls_status take_examples(struct lane *l, ls_error *err)
{
    ls_dataset *d = ls_dataset_batch(
        ls_dataset_tfrecord_files((const char *const[]){l->files->examples}, 1, NULL),
        BATCH);
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_status st = d != NULL ? ls_dataset_iterate(d, &it, err) : LS_RESOURCE_EXHAUSTED;

    if (st == LS_OK) {
        st = ls_iterator_next(it, &v, err);
    }
    if (st == LS_OK) {
        l->records = ls_tensor_retain(ls_value_as_tensor(v));
        st = ls_context_open(NULL, NULL, &l->context, err);
    }
    ls_value_release(v);
    ls_iterator_release(it);
    ls_dataset_release(d);
    return st;
}

static ls_status open_lane(const input_row *row, const input_files *files, bool ours,
                           struct lane *l, ls_error *err)
{
    ls_status st = LS_OK;

    *l = (struct lane){.files = files, .in = malloc(CHUNK), .out = malloc(CHUNK)};
    if (l->in == NULL || l->out == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    if (row->ours == parse_batch) {
        return take_examples(l, err);
    }
    if (row->ours == next_step) {
        l->dataset =
            ls_dataset_repeat(ls_dataset_batch(ls_dataset_range(0, 2, 1), 2), -1);
    } else {
        l->dataset = plain_batches(files, strcmp(row->name, "gzip") == 0,
                                   ours && strcmp(row->name, "shuffle") == 0);
    }
    if (l->dataset == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    st = ls_dataset_status(l->dataset, err);
    if (st == LS_OK && ours &&
        (row->ours == read_distributed || row->ours == next_step)) {
        st = two_replicas(l, err);
        if (st == LS_OK && row->ours == next_step) {
            st = ls_dist_iterate(l->dist, &l->it, err);
        }
    }
    return st;
}

/* Both sides of a row have seen all bytes once before they are timed. */
static ls_status check_lanes(const input_row *row, const input_files *files,
                             struct lane *ours, struct lane *theirs, ls_error *err)
{
    const int64_t payload =
        (strcmp(row->name, "gzip") == 0 ? files->gzip_records : files->records) *
        INPUT_RECORD;
    ls_status st = row->ours(ours, err);

    if (st == LS_OK && row->theirs != NULL) {
        st = row->theirs(theirs, err);
    }
    if (st == LS_OK && row->scale > 1 && ours->units != payload) {
        err->code = LS_INTERNAL;
        snprintf(err->message, sizeof err->message, "%lld bytes came, %lld were written",
                 (long long)ours->units, (long long)payload);
        return LS_INTERNAL;
    }
    return st;
}

static int run_row(const bench_options *o, const input_row *row, const input_files *files)
{
    struct lane ours = {0}, theirs = {0};
    ls_error err = LS_ERROR_INIT;
    input_result r = {.row = row};
    ls_status st = open_lane(row, files, true, &ours, &err);
    int status;

    if (st == LS_OK && row->theirs != NULL) {
        st = open_lane(row, files, false, &theirs, &err);
    }
    if (st == LS_OK) {
        st = check_lanes(row, files, &ours, &theirs, &err);
    }
    if (st != LS_OK) {
        err.code = st;
        status = bench_failed(row->name, &err);
    } else {
        status = measure_row(o, row, &ours, &theirs, &r);
    }
    if (status == CLI_OK) {
        status = print_row(o, &r);
    }
    close_lane(&ours);
    close_lane(&theirs);
    return status;
}

/* ---- memory ---- */

/* Kilobytes that the process has in memory; -1: unknown. */
static int64_t resident(void)
{
    FILE *in = fopen("/proc/self/statm", "r");
    long long pages = -1;

    if (in == NULL) {
        return -1;
    }
    if (fscanf(in, "%*s %lld", &pages) != 1) {
        pages = -1;
    }
    fclose(in);
    return pages < 0 ? -1 : pages * (int64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static int run_memory(const bench_options *o, const input_files *files)
{
    struct lane l = {.files = files, .dataset = plain_batches(files, false, true)};
    ls_error err = LS_ERROR_INIT;
    int64_t settled = 0, grown = 0;
    ls_status st = l.dataset != NULL ? LS_OK : LS_RESOURCE_EXHAUSTED;

    for (int epoch = 1; st == LS_OK && epoch <= EPOCHS; epoch++) {
        st = read_dataset(&l, &err);
        settled = epoch == SETTLED ? resident() : settled;
    }
    grown = resident() - settled;
    close_lane(&l);
    if (st != LS_OK) {
        err.code = st;
        return bench_failed("memory", &err);
    }
    if (o->json) {
        return bench_print_json(json_pack("{ss, ss, ss, sI, sI, si}", "bench", "input",
                                          "name", "memory", "unit", "KiB", "resident",
                                          (json_int_t)settled, "growth",
                                          (json_int_t)grown, "epochs", EPOCHS));
    }
    printf("%-12s %lld KiB in use after %d epochs, %+lld KiB after %d\n", "memory",
           (long long)settled, SETTLED, (long long)grown, EPOCHS);
    return CLI_OK;
}

/* ---- the command ---- */

static bool any_wanted(const bench_options *o)
{
    bool any = bench_wanted(o, "memory") || bench_wanted(o, "waiting");

    for (size_t i = 0; i < ROWS; i++) {
        any = any || bench_wanted(o, rows[i].name);
    }
    return any;
}

static int run_rows(const bench_options *o, const input_files *files)
{
    int status = CLI_OK;

    if (!o->json) {
        printf(
            "\ninput: records of 1 KiB in batches of %d\n%-12s %-10s %11s %11s %11s %11s "
            "%8s\n",
            BATCH, "what", "unit", "p50", "min", "max", "beside", "ratio");
    }
    for (size_t i = 0; status == CLI_OK && i < ROWS; i++) {
        if (bench_wanted(o, rows[i].name)) {
            status = run_row(o, &rows[i], files);
        }
    }
    if (status == CLI_OK && bench_wanted(o, "memory")) {
        status = run_memory(o, files);
    }
    if (status == CLI_OK && bench_wanted(o, "waiting")) {
        status = bench_waiting(o);
    }
    return status;
}

int bench_input(const bench_options *o)
{
    ls_error err = LS_ERROR_INIT;
    input_files files;
    int status;

    if (!any_wanted(o)) {
        fprintf(stderr,
                "lockstep bench input: nothing has '%s' in its name; there are tfrecord, "
                "gzip, example, shuffle, distribute, next, memory and waiting\n",
                o->filter);
        return CLI_USAGE;
    }
    if (input_files_make(&files, &err) != LS_OK ||
        input_files_check(&files, &err) != LS_OK) {
        status = bench_failed("files", &err);
    } else {
        status = run_rows(o, &files);
    }
    input_files_remove(&files);
    return status;
}
