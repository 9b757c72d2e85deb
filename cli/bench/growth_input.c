/* How input grows: with the length of a line, the files, the datasets of a pipeline. */
#include "cli/bench/growth.h"

#include <lockstep/example.h>
#include <lockstep/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 2, NAME = 24, TAKEN = 2048 };

/* Goes through `d`, which it takes over; the elements have to be as many. */
static void go_through(growth_run *r, ls_dataset *d, int64_t elements)
{
    ls_iterator *it = NULL;
    int64_t count = 0;

    growth_check(r, d != NULL, "out of memory");
    GROWTH_TRY(r, ls_dataset_iterate(d, &it, &r->err));
    while (r->st == LS_OK) {
        ls_value *v = NULL;

        r->st = ls_iterator_next(it, &v, &r->err);
        count += r->st == LS_OK;
        ls_value_release(v);
    }
    if (r->st == LS_OUT_OF_RANGE) {
        r->st = LS_OK;
    }
    growth_check(r, count == elements, "there are more elements, or fewer");
    ls_iterator_release(it);
    ls_dataset_release(d);
}

/* A file of lines of n bytes, with what goes behind them. */
static void write_lines(growth_run *r, const char *end, char *path, size_t size)
{
    FILE *f = NULL;
    char *line = growth_room(r, (size_t)r->n, 1);

    growth_folder(r);
    f = growth_file(r, 0, path, size);
    if (f == NULL) {
        free(line);
        return;
    }
    memset(line, 'a', (size_t)r->n);
    for (int i = 0; i < LINES; i++) {
        fwrite(line, 1, (size_t)r->n, f);
        fputs(end, f);
    }
    growth_check(r, fclose(f) == 0, "a file cannot be written");
    free(line);
}

/* The first string of each element has n bytes. */
static void check_first(growth_run *r, ls_dataset *d)
{
    ls_iterator *it = NULL;
    ls_value *v = NULL;

    GROWTH_TRY(r, ls_dataset_iterate(d, &it, &r->err));
    GROWTH_TRY(r, ls_iterator_next(it, &v, &r->err));
    if (r->st == LS_OK) {
        const ls_value *leaf = ls_value_is_leaf(v) ? v : ls_value_child(v, 0);
        const ls_tensor *t = ls_value_as_tensor(leaf);
        const ls_string *data = t != NULL ? ls_tensor_data(t) : NULL;

        growth_check(r,
                     data != NULL && data->len == (size_t)r->n &&
                         data->ptr[data->len - 1] == 'a',
                     "a line is not as long as it was");
    }
    ls_value_release(v);
    ls_iterator_release(it);
}

static void read_text(growth_run *r)
{
    char path[300] = "";
    const char *const name = path;
    ls_dataset *d = NULL;

    write_lines(r, "\n", path, sizeof path);
    growth_begin(r);
    d = r->st == LS_OK ? ls_dataset_text_files(&name, 1, NULL) : NULL;
    check_first(r, d);
    go_through(r, d, LINES);
    growth_end(r);
}

static void read_csv(growth_run *r)
{
    const ls_csv_column columns[2] = {{LS_STRING, NULL}, {LS_I32, NULL}};
    char path[300] = "";
    const char *const name = path;
    ls_dataset *d = NULL;

    write_lines(r, ",1\n", path, sizeof path);
    growth_begin(r);
    d = r->st == LS_OK ? ls_dataset_csv_files(&name, 1, columns, 2, NULL) : NULL;
    check_first(r, d);
    go_through(r, d, LINES);
    growth_end(r);
}

/* An Example of n features: made, written down and parsed. */
static void parse_features(growth_run *r)
{
    ls_feature *features = growth_room(r, (size_t)r->n, sizeof *features);
    char *names = growth_room(r, (size_t)r->n, NAME);
    ls_example *e = NULL;
    ls_string bytes = {NULL, 0};
    ls_value *parsed = NULL;

    growth_runtime(r, 1);
    GROWTH_TRY(r, ls_example_create(&e, &r->err));
    growth_begin(r);
    for (int64_t i = 0; r->st == LS_OK && i < r->n; i++) {
        char *name = names + i * NAME;

        // Not in their order: 7919 is prime, so that each comes once.
        snprintf(name, NAME, "f%lld", (long long)(i * 7919 % r->n));
        features[i] = (ls_feature){.name = name, .dtype = LS_I64};
        r->st = ls_example_add_int64(e, name, &i, 1, &r->err);
    }
    GROWTH_TRY(r, ls_example_serialize(e, &bytes, &r->err));
    if (r->st == LS_OK) {
        parsed =
            ls_parse_single_example(r->c, ls_constant(r->c, LS_STRING, LS_SCALAR, &bytes),
                                    features, (size_t)r->n);
        growth_check(r, parsed != NULL && ls_value_size(parsed) == (size_t)r->n,
                     "features are missing");
    }
    growth_end(r);
    if (r->st == LS_OK) {
        const ls_tensor *t = ls_value_at_key(r->c, parsed, names + (r->n - 1) * NAME);
        const int64_t *last = t != NULL ? ls_tensor_data(t) : NULL;

        growth_check(r, last != NULL && *last == r->n - 1, "a feature is another's");
    }
    growth_finish(r);
    ls_example_release(e);
    free(features);
    free(names);
}

static ls_dataset *open_named(ls_value *element, void *user)
{
    const ls_tensor *t = ls_value_as_tensor(element);
    const int64_t *index = t != NULL ? ls_tensor_data(t) : NULL;
    const growth_run *r = user;
    char path[300];
    const char *const name = path;

    snprintf(path, sizeof path, "%s/%lld", r->folder,
             (long long)(index != NULL ? *index : 0));
    return ls_dataset_text_files(&name, 1, NULL);
}

/* n files of a few bytes that are read in turn. */
static void open_readers(growth_run *r)
{
    ls_interleave_options options = LS_INTERLEAVE_OPTIONS_INIT;
    char path[300];

    growth_folder(r);
    for (int64_t i = 0; r->st == LS_OK && i < r->n; i++) {
        FILE *f = growth_file(r, i, path, sizeof path);

        if (f != NULL) {
            fputs("first\nsecond\n", f);
            growth_check(r, fclose(f) == 0, "a file cannot be written");
        }
    }
    options.cycle = r->n;
    growth_begin(r);
    if (r->st == LS_OK) {
        go_through(
            r,
            ls_dataset_interleave(ls_dataset_range(0, r->n, 1), open_named, r, &options),
            2 * r->n);
    }
    growth_end(r);
}

/* Elements from one of n datasets, by chance. */
static void sample(growth_run *r)
{
    ls_dataset **all = (ls_dataset **)growth_room(r, (size_t)r->n, sizeof(void *));
    const int64_t seed = 1;

    for (int64_t i = 0; r->st == LS_OK && i < r->n; i++) {
        all[i] = ls_dataset_repeat(ls_dataset_range(i, i + 1, 1), -1);
    }
    growth_begin(r);
    if (r->st == LS_OK) {
        go_through(r,
                   ls_dataset_take(
                       ls_dataset_sample(all, (size_t)r->n, NULL, &seed, false), TAKEN),
                   TAKEN);
    }
    growth_end(r);
    free((void *)all);
}

/* n datasets, each behind the others, of eight elements. */
static void concatenate(growth_run *r)
{
    ls_dataset *d = NULL;

    growth_begin(r);
    d = ls_dataset_range(0, 8, 1);
    for (int64_t i = 1; i < r->n; i++) {
        d = ls_dataset_concatenate(d, ls_dataset_range(0, 8, 1));
    }
    go_through(r, d, 8 * r->n);
    growth_end(r);
}

/* A pipeline of n datasets, one made of the other. */
static void repeat_chain(growth_run *r)
{
    ls_dataset *d = NULL;

    growth_begin(r);
    d = ls_dataset_range(0, 2, 1);
    for (int64_t i = 0; i < r->n; i++) {
        d = ls_dataset_repeat(d, 1);
    }
    go_through(r, d, 2);
    growth_end(r);
}

/* n numbers that are kept. */
static void cache(growth_run *r)
{
    growth_begin(r);
    go_through(r, ls_dataset_cache(ls_dataset_range(0, r->n, 1), NULL), r->n);
    growth_end(r);
}

const growth_case growth_of_input[] = {
    {"text", "bytes of a line", 1 << 18, 1 << 20, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, read_text},
    {"csv", "bytes of a field", 1 << 18, 1 << 20, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, read_csv},
    {"example", "features", 128, 1024, GROWTH_LINEAR_TIME, GROWTH_LINEAR, GROWTH_LINEAR,
     0, parse_features},
    {"readers", "files open at once", 16, 32, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 16 << 10, open_readers},
    {"sample", "datasets to choose from", 32, 64, GROWTH_FLAT_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, sample},
    {"concatenate", "datasets in a row", 16, 32, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, concatenate},
    {"repeat", "datasets of a pipeline", 16, 48, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, repeat_chain},
    {"cache", "elements", 1024, 1 << 14, GROWTH_LINEAR_TIME, GROWTH_LINEAR, GROWTH_LINEAR,
     32, cache}, // in blocks of many; eight bytes are the number
    {0},
};
