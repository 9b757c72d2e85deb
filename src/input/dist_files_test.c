/* Tests of workers that divide files. `TF{...}` of the spec is records() here. */
#include "input_test.h"

#include "lockstep/record.h"

#include <stdlib.h>
#include <unistd.h>

/* A file of the numbers first .. last. */
struct file {
    const char *name;
    int64_t first, last;
};
#define FILES(...) ((const struct file[]){__VA_ARGS__, {NULL, 0, 0}})

static char folder[64];
static const struct file *files; // files of the current test case

static const char *path_of(const char *name, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static void write_files(const struct file *list)
{
    ls_error err = LS_ERROR_INIT;
    char path[128], text[32];

    files = list;
    for (const struct file *f = list; f->name != NULL; f++) {
        ls_record_writer *w = NULL;

        LST_OK(
            ls_record_writer_open(path_of(f->name, path, sizeof path), NULL, &w, &err));
        for (int64_t x = f->first; x <= f->last; x++) {
            const int n = snprintf(text, sizeof text, "%lld", (long long)x);

            LST_OK(ls_record_writer_write(w, text, (size_t)n, &err));
        }
        LST_OK(ls_record_writer_close(w, &err));
        ls_record_writer_release(w);
    }
}

static void remove_files(void)
{
    char path[128];

    for (const struct file *f = files; f != NULL && f->name != NULL; f++) {
        (void)remove(path_of(f->name, path, sizeof path));
    }
    files = NULL;
}

/* The names of the current case's files. */
static size_t list_names(char paths[][128], const char **names)
{
    size_t n = 0;

    for (const struct file *f = files; f->name != NULL; f++, n++) {
        names[n] = path_of(f->name, paths[n], 128);
    }
    return n;
}

static ls_value *decode(ls_context *c, ls_value *x, void *user)
{
    const ls_string *s = ls_tensor_data(ls_value_as_tensor(x));
    char text[32] = "";

    (void)user;
    memcpy(text, s->ptr, LSI_MIN(s->len, sizeof text - 1));
    return ls_value_of(c, ls_constant_i64(c, strtoll(text, NULL, 10)));
}

static ls_dataset *decoded(ls_dataset *d)
{
    return in_map(d, decode, NULL, LS_I64, 0, NULL);
}

/* The files [begin, end) of the current case. */
static ls_dataset *records_of(size_t begin, size_t end)
{
    char paths[16][128];
    const char *names[16];

    (void)list_names(paths, names);
    return decoded(ls_dataset_tfrecord_files(names + begin, end - begin, NULL));
}

static ls_dataset *records(void)
{
    size_t n = 0;

    while (files[n].name != NULL) {
        n++;
    }
    return records_of(0, n);
}

static ls_dataset *names_only(void)
{
    char paths[16][128];
    const char *names[16];
    ls_string strings[16];
    const size_t n = list_names(paths, names);
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    for (size_t i = 0; i < n; i++) {
        strings[i] = (ls_string){names[i], strlen(names[i])};
    }
    LST_OK(ls_tensor_create(NULL, LS_STRING, LS_SHAPE((int64_t)n), strings, &t, &err));
    LST_OK(ls_value_tensor(t, &v, &err));
    ls_dataset *d = ls_dataset_slices(v);
    ls_value_release(v);
    ls_tensor_release(t);
    return d;
}

static ls_dataset *open_one(ls_value *name, void *user)
{
    const ls_string *s = ls_tensor_data(ls_value_as_tensor(name));
    char path[128] = "";

    (void)user;
    memcpy(path, s->ptr, LSI_MIN(s->len, sizeof path - 1));
    return ls_dataset_tfrecord_files((const char *[]){path}, 1, NULL);
}

/* A user's function that declares that it reads files. */
static ls_interleave_options reading(int64_t cycle)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;

    o.cycle = cycle;
    o.reader = "tfrecord";
    LST_OK(ls_spec_tensor(LS_STRING, 0, NULL, &o.spec, &err));
    return o;
}

static ls_dataset *flat_files(ls_dataset *names)
{
    ls_interleave_options o = reading(0);
    ls_dataset *d = ls_dataset_flat_map(names, open_one, NULL, &o);

    ls_spec_release(o.spec);
    return decoded(d);
}

static ls_dataset *batch_4(void)
{
    return ls_dataset_batch(records(), 4);
}

LST_TEST(d6_to_d8_the_policies)
{
    write_files(FILES({"a", 0, 7}));
    IN_CHECK(batch_4, LS_SHARD_DATA, 2, 1, "[0 1] | [4 5] | end", "[2 3] | [6 7] | end");
    IN_CHECK(batch_4, LS_SHARD_OFF, 2, 1, "[0 1] | [2 3] | [4 5] | [6 7] | end",
             "[0 1] | [2 3] | [4 5] | [6 7] | end");
    remove_files();
    write_files(FILES({"a", 0, 3}, {"b", 4, 7}));
    IN_CHECK(batch_4, LS_SHARD_FILE, 2, 1, "[0 1] | [2 3] | end", "[4 5] | [6 7] | end");
    remove_files();
}

LST_TEST(d13_d14_files_are_cut_by_the_sizes)
{
    write_files(FILES({"a", 0, 7}));
    IN_CHECK(batch_4, LS_SHARD_AUTO, 1, 3, "[0 1],[2],[3] | [4 5],[6],[7] | end");
    remove_files();
    write_files(FILES({"a", 0, 9}));
    IN_CHECK(batch_4, LS_SHARD_AUTO, 1, 2, "[0 1],[2 3] | [4 5],[6 7] | [8 9],[] | end");
    remove_files();
}

/* ten files of ten records */
static const struct file ten_files[] = {{"f0", 0, 9},   {"f1", 10, 19}, {"f2", 20, 29},
                                        {"f3", 30, 39}, {"f4", 40, 49}, {"f5", 50, 59},
                                        {"f6", 60, 69}, {"f7", 70, 79}, {"f8", 80, 89},
                                        {"f9", 90, 99}, {NULL, 0, 0}};

static ls_dataset *listed(void)
{
    char pattern[128];
    const char *patterns[] = {path_of("f*", pattern, sizeof pattern)};

    return ls_dataset_batch(flat_files(ls_dataset_list_files(patterns, 1, true, NULL)),
                            5);
}

LST_TEST(d46_every_fifth_file)
{
    write_files(ten_files);
    IN_SHARD(listed, LS_SHARD_AUTO, 5, 3,
             "[30 31 32 33 34] [35 36 37 38 39] [80 81 82 83 84] [85 86 87 88 89] end");
    remove_files();
}

static ls_dataset *interleaved(void)
{
    ls_interleave_options o = reading(3);
    ls_dataset *d = ls_dataset_interleave(names_only(), open_one, NULL, &o);

    ls_spec_release(o.spec);
    return decoded(d);
}

LST_TEST(d47_interleaved_files)
{
    write_files(FILES({"a", 1, 3}, {"b", 4, 6}, {"c", 7, 9}));
    IN_SHARD(interleaved, LS_SHARD_AUTO, 2, 0, "1 7 2 8 3 9 end");
    IN_SHARD(interleaved, LS_SHARD_AUTO, 2, 1, "4 5 6 end");
    remove_files();
}

static ls_dataset *batch_7(void)
{
    return ls_dataset_batch(records(), 7);
}

LST_TEST(d48_each_worker_cuts_its_own_files)
{
    write_files(FILES({"a", 0, 6}, {"b", 10, 16}));
    IN_CHECK(batch_7, LS_SHARD_FILE, 2, 2, "[0 1],[2 3] | [4 5],[6] | end",
             "[10 11],[12] | [13 14],[15 16] | end");
    remove_files();
}

static void write_text(const char *name, const char *text)
{
    char path[128];
    FILE *f = fopen(path_of(name, path, sizeof path), "w");

    LST_CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void remove_text(const char *name)
{
    char path[128];

    (void)remove(path_of(name, path, sizeof path));
}

static ls_dataset *with_lines(void)
{
    char paths[2][128];
    const char *names[] = {path_of("x.txt", paths[0], sizeof paths[0]),
                           path_of("y.txt", paths[1], sizeof paths[1])};
    ls_dataset *two[] = {records(), ls_dataset_text_files(names, 2, NULL)};

    return ls_dataset_zip(two, 2);
}

static ls_dataset *joined(void)
{
    return ls_dataset_concatenate(records_of(0, 2), records_of(2, 4));
}

LST_TEST(d49_d50_every_input_of_a_zip_or_concatenation_is_sharded)
{
    write_files(FILES({"a", 0, 2}, {"b", 10, 12}));
    write_text("x.txt", "a\nb\nc\n");
    write_text("y.txt", "d\ne\nf\n");
    IN_SHARD(with_lines, LS_SHARD_AUTO, 2, 1, "(10,d) (11,e) (12,f) end");
    remove_text("x.txt");
    remove_text("y.txt");
    remove_files();
    write_files(FILES({"a", 0, 2}, {"b", 10, 12}, {"c", 20, 21}, {"d", 30, 31}));
    IN_SHARD(joined, LS_SHARD_AUTO, 2, 0, "0 1 2 20 21 end");
    remove_files();
}

static ls_dataset *batch_2(void)
{
    return ls_dataset_batch(records(), 2);
}

static void tell_error(in_worker *me)
{
    ls_dist_dataset *dd = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d = batch_2();
    ls_dist_iterator *it = NULL;

    LST_OK(ls_strategy_distribute(me->s, d, &me->opts, &dd, &err));
    LST_CHECK(ls_dist_spec(dd, NULL) != NULL);
    const ls_status st = ls_dist_iterate(dd, &it, &err);
    in_put(&me->text, "%s %s", ls_status_name(st), err.message);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
    ls_dataset_release(d);
}

/* File names whose number is unknown before they have been read. */
static ls_value *always(ls_context *c, ls_value *x, void *user)
{
    const bool yes = true;

    (void)x;
    (void)user;
    return ls_value_of(c, ls_constant(c, LS_BOOL, LS_SCALAR, &yes));
}

static ls_dataset *counted_late(void)
{
    return ls_dataset_batch(flat_files(ls_dataset_filter(names_only(), always, NULL)), 2);
}

LST_TEST(d52_d53_too_few_files_fail_on_every_worker)
{
    static in_worker ws[IN_WORKERS];

    write_files(FILES({"a", 0, 3}));
    in_run(2, 1, tell_error, NULL, ws);
    for (int w = 0; w < 2; w++) {
        LST_CHECK(strncmp(ws[w].text.text, "INVALID_ARGUMENT", 16) == 0);
        LST_CHECK(strstr(ws[w].text.text, "1 files for 2 workers") != NULL);
    }
    IN_CHECK(counted_late, LS_SHARD_AUTO, 2, 1, "INVALID_ARGUMENT", "INVALID_ARGUMENT");
    remove_files();
    write_files(ten_files);
    IN_SHARD(listed, LS_SHARD_AUTO, 500, 499, "INVALID_ARGUMENT");
    remove_files();
}

LST_TEST(three_workers_read_one_file_each_and_keep_step)
{
    write_files(FILES({"a", 0, 2}, {"b", 10, 13}, {"c", 20, 20}));
    IN_CHECK(batch_4, LS_SHARD_FILE, 3, 1, "[0 1] | [2] | [] | end",
             "[10] | [11] | [12 13] | end", "[20] | [] | [] | end");
    remove_files();
}

LST_TEST(d54_d55_workers_whose_files_are_read_keep_step)
{
    write_files(FILES({"a", 0, 2}, {"b", 10, 16}));
    IN_CHECK(batch_4, LS_SHARD_AUTO, 2, 1, "[0 1] | [2] | [] | [] | end",
             "[10 11] | [12 13] | [14 15] | [16] | end");
    remove_files();
    write_files(FILES({"a", 0, 2}, {"b", 10, 11}, {"c", 20, 23}, {"d", 30, 30}));
    IN_CHECK(batch_4, LS_SHARD_FILE, 2, 2,
             "[0],[1] | [2],[20] | [21],[22] | [23],[] | end",
             "[10],[11] | [30],[] | [],[] | [],[] | end");
    remove_files();
}

static ls_dataset *unspecified(void)
{
    char paths[16][128];
    const char *names[16];
    const size_t n = list_names(paths, names);

    return ls_dataset_batch(
        ls_dataset_map(ls_dataset_tfrecord_files(names, n, NULL), decode, NULL, NULL), 2);
}

LST_TEST(a_worker_without_data_or_spec_reads_the_dataset_itself)
{
    write_files(FILES({"a", 0, 2}, {"b", 0, -1}));
    IN_CHECK(unspecified, LS_SHARD_FILE, 2, 1, "[0] | [1] | [2] | end",
             "[] | [] | [] | end");
    remove_files();
}

static ls_dataset *repeated(void)
{
    return ls_dataset_batch(ls_dataset_repeat(records(), 2), 2);
}

static ls_dataset *names_repeated(void)
{
    return flat_files(ls_dataset_repeat(names_only(), 2));
}

static ls_dataset *taken(void)
{
    return ls_dataset_batch(ls_dataset_take(records(), 3), 2);
}

LST_TEST(d56_to_d58_operators_behind_the_reader_are_for_each_worker)
{
    write_files(FILES({"a", 0, 1}, {"b", 2, 3}));
    IN_CHECK(repeated, LS_SHARD_AUTO, 2, 1, "[0] | [1] | [0] | [1] | end",
             "[2] | [3] | [2] | [3] | end");
    remove_files();
    write_files(FILES({"a", 0, 1}, {"b", 10, 11}, {"c", 20, 21}));
    IN_SHARD(names_repeated, LS_SHARD_AUTO, 2, 0, "0 1 20 21 10 11 end");
    IN_SHARD(names_repeated, LS_SHARD_AUTO, 2, 1, "10 11 0 1 20 21 end");
    remove_files();
    write_files(FILES({"a", 0, 3}, {"b", 10, 13}));
    IN_CHECK(taken, LS_SHARD_AUTO, 2, 1, "[0] | [1] | [2] | end",
             "[10] | [11] | [12] | end");
    remove_files();
}

static ls_dataset *shuffled_list(void)
{
    const int64_t seed = 7;
    char pattern[128];
    const char *patterns[] = {path_of("s*", pattern, sizeof pattern)};

    return flat_files(ls_dataset_list_files(patterns, 1, false, &seed));
}

LST_TEST(d59_files_are_shuffled_behind_the_shard)
{
    write_files(FILES({"s0", 0, 1}, {"s1", 10, 11}, {"s2", 20, 21}, {"s3", 30, 31}));
    for (int64_t w = 0; w < 2; w++) {
        static in_text t;
        ls_dataset *d = ls_dataset_auto_shard(shuffled_list(), 2, w, LS_SHARD_AUTO);
        const char *one = w == 0 ? "0 1 20 21 end" : "10 11 30 31 end";
        const char *two = w == 0 ? "20 21 0 1 end" : "30 31 10 11 end";

        t.size = 0;
        in_drain_plain(&t, d);
        LST_CHECK(strcmp(t.text, one) == 0 || strcmp(t.text, two) == 0);
        // The reader's input is the shuffle, and the shuffle's is the shard.
        LST_CHECK(strcmp(ls_dataset_kind(d->inputs[0]->inputs[0]), "shuffle") == 0);
        LST_CHECK(strcmp(ls_dataset_kind(d->inputs[0]->inputs[0]->inputs[0]), "shard") ==
                  0);
        ls_dataset_release(d);
    }
    remove_files();
}

/* The names in the order of two shuffles, one after the other. */
static ls_dataset *shuffled_twice(void)
{
    return flat_files(ls_dataset_shuffle(ls_dataset_shuffle(names_only(), 10, 1), 10, 2));
}

LST_TEST(of_several_shuffles_the_one_next_to_the_names_is_kept)
{
    static in_text have, want, other;

    write_files(ten_files);
    ls_dataset *d = ls_dataset_auto_shard(shuffled_twice(), 2, 1, LS_SHARD_FILE);
    ls_dataset *same =
        flat_files(ls_dataset_shuffle(ls_dataset_shard(names_only(), 2, 1), 10, 1));
    ls_dataset *others =
        flat_files(ls_dataset_shuffle(ls_dataset_shard(names_only(), 2, 1), 10, 2));
    in_drain_plain(&have, d);
    in_drain_plain(&want, same);
    in_drain_plain(&other, others);
    in_same(have.text, want.text, LST_HERE);
    LST_CHECK(strcmp(have.text, other.text) != 0);
    ls_dataset_release(d);
    ls_dataset_release(same);
    ls_dataset_release(others);
    remove_files();
}

static ls_dataset *enumerated(void)
{
    return ls_dataset_enumerate(records(), 0);
}

static ls_dataset *unique(void)
{
    return ls_dataset_unique(records());
}

LST_TEST(d60_d61_a_range_or_an_unknown_operator_makes_files_impossible)
{
    write_files(FILES({"a", 0, 2}, {"b", 10, 12}));
    IN_SHARD(enumerated, LS_SHARD_AUTO, 2, 1, "(1,1) (3,10) (5,12) end");
    remove_files();
    write_files(ten_files);
    IN_SHARD(unique, LS_SHARD_AUTO, 5, 0,
             "0 5 10 15 20 25 30 35 40 45 50 55 60 65 70 75 80 85 90 95 end");
    remove_files();
}

static ls_value *only(ls_context *c, ls_value *x, void *user)
{
    (void)c;
    (void)user;
    return ls_value_is_leaf(x) ? x : ls_value_child(x, 0);
}

static ls_dataset *rows_of_csv(void)
{
    const ls_csv_column column = {LS_I64, NULL};
    char path[128];
    const char *names[] = {path_of("r.csv", path, sizeof path)};
    ls_dataset *d = ls_dataset_csv_files(names, 1, &column, 1, NULL);

    return ls_dataset_batch(in_map(d, only, NULL, LS_I64, 0, NULL), 2);
}

LST_TEST(d62_csv_is_no_reader_that_sharding_knows)
{
    write_text("r.csv", "0\n1\n2\n3\n4\n5\n");
    IN_CHECK(rows_of_csv, LS_SHARD_AUTO, 2, 1, "[0] | [2] | [4] | end",
             "[1] | [3] | [5] | end");
    remove_text("r.csv");
}

static ls_dataset *asserted(void)
{
    return ls_dataset_assert_cardinality(ls_dataset_batch(records(), 5), 42);
}

static ls_dataset *exact_4(void)
{
    return ls_dataset_batch_exact(records(), 4);
}

LST_TEST(d63_d64_counts_and_remainders_are_of_one_worker)
{
    write_files(ten_files);
    IN_SHARD(asserted, LS_SHARD_AUTO, 5, 0,
             "[0 1 2 3 4] [5 6 7 8 9] [50 51 52 53 54] [55 56 57 58 59] end");
    remove_files();
    write_files(FILES({"a", 0, 4}, {"b", 10, 14}));
    IN_CHECK(exact_4, LS_SHARD_AUTO, 2, 1, "[0 1] | [2 3] | end",
             "[10 11] | [12 13] | end");
    remove_files();
}

static ls_dataset *reader_and_range(void)
{
    ls_dataset *two[] = {records(), in_range(6)};

    return ls_dataset_zip(two, 2);
}

LST_TEST(a_failed_attempt_by_files_leaves_no_trace)
{
    write_files(FILES({"a", 0, 2}, {"b", 10, 12}));
    IN_SHARD(reader_and_range, LS_SHARD_AUTO, 2, 0, "(0,0) (2,2) (11,4) end");
    remove_files();
}

static ls_dataset *pair(ls_value *element, void *user)
{
    (void)user;
    return ls_dataset_repeat(ls_dataset_tensors(element), 2);
}

/* A function operator behind the reader of a list: every worker reads all files. */
static ls_dataset *function_behind(void)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_spec_tensor(LS_I64, 0, NULL, &o.spec, &err));
    ls_dataset *d = ls_dataset_flat_map(records(), pair, NULL, &o);
    ls_spec_release(o.spec);
    return d;
}

LST_TEST(a_function_behind_a_reader_of_a_list_shards_the_records)
{
    write_files(FILES({"a", 0, 2}));
    IN_SHARD(function_behind, LS_SHARD_FILE, 2, 0, "0 0 2 2 end");
    IN_SHARD(function_behind, LS_SHARD_AUTO, 2, 1, "1 1 end");
    remove_files();
}

static ls_dataset *cached(void)
{
    char path[128];

    return ls_dataset_batch(
        ls_dataset_cache(records(), path_of("cache", path, sizeof path)), 2);
}

LST_TEST(cache_files_of_workers_do_not_meet)
{
    write_files(FILES({"a", 0, 1}, {"b", 10, 11}));
    const in_case c = {cached, LS_SHARD_AUTO, 0};
    static in_worker ws[IN_WORKERS];
    char path[128];

    in_run(2, 1, in_distribute, &c, ws);
    in_same(ws[0].text.text, "[0] | [1] | end", LST_HERE);
    in_same(ws[1].text.text, "[10] | [11] | end", LST_HERE);
    LST_CHECK(remove(path_of("cache-0-of-2", path, sizeof path)) == 0);
    LST_CHECK(remove(path_of("cache-1-of-2", path, sizeof path)) == 0);
    remove_files();
}

static const lst_case cases[] = {
    LST_CASE(d6_to_d8_the_policies),
    LST_CASE(d13_d14_files_are_cut_by_the_sizes),
    LST_CASE(d46_every_fifth_file),
    LST_CASE(d47_interleaved_files),
    LST_CASE(d48_each_worker_cuts_its_own_files),
    LST_CASE(d49_d50_every_input_of_a_zip_or_concatenation_is_sharded),
    LST_CASE(d52_d53_too_few_files_fail_on_every_worker),
    LST_CASE(three_workers_read_one_file_each_and_keep_step),
    LST_CASE(d54_d55_workers_whose_files_are_read_keep_step),
    LST_CASE(a_worker_without_data_or_spec_reads_the_dataset_itself),
    LST_CASE(d56_to_d58_operators_behind_the_reader_are_for_each_worker),
    LST_CASE(d59_files_are_shuffled_behind_the_shard),
    LST_CASE(of_several_shuffles_the_one_next_to_the_names_is_kept),
    LST_CASE(d60_d61_a_range_or_an_unknown_operator_makes_files_impossible),
    LST_CASE(d62_csv_is_no_reader_that_sharding_knows),
    LST_CASE(d63_d64_counts_and_remainders_are_of_one_worker),
    LST_CASE(a_failed_attempt_by_files_leaves_no_trace),
    LST_CASE(a_function_behind_a_reader_of_a_list_shards_the_records),
    LST_CASE(cache_files_of_workers_do_not_meet)};

int main(int argc, char **argv)
{
    (void)snprintf(folder, sizeof folder, "/tmp/ls-dist-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    const int failed = lst_main(argc, argv, cases, LSI_COUNT_OF(cases));
    (void)rmdir(folder);
    return failed;
}
