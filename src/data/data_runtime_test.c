/* Datasets opened in runtimes of the program: devices, threads, contexts, seeds, memory. */
#include "data/file/file_cases.h"

#include "lockstep/example.h"
#include "lockstep/record.h"
#include "lockstep/strategy.h"

#include "segment.h"

enum { PIPELINES = 24 };

static lst_folder at;

static ls_runtime *create_runtime(uint64_t seed)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;

    opts.threads = 1;
    opts.seeded = true;
    opts.seed = seed;
    LST_OK(ls_runtime_create(&opts, &rt, &err));
    return rt;
}

/* ---- pipelines, each with at least one kind of source or transformation ---- */

static ls_value *literals(void)
{
    ls_value *items[3] = {NULL, NULL, NULL}, *v = NULL;

    LST_OK(ls_value_int(7, &items[0], NULL));
    LST_OK(ls_value_float(0.5, &items[1], NULL));
    LST_OK(ls_value_string((ls_string){"word", 4}, &items[2], NULL));
    LST_OK(ls_value_tuple(items, 3, &v, NULL));
    for (int i = 0; i < 3; i++) {
        ls_value_release(items[i]);
    }
    return v;
}

static ls_dataset *of_literals(void)
{
    ls_value *v = literals();
    ls_dataset *d = ls_dataset_tensors(v);

    ls_value_release(v);
    return d;
}

static ls_value *add_one(ls_context *c, ls_value *x, void *user)
{
    (void)user;
    return ls_value_of(c, ls_add(c, ls_value_as_tensor(x),
                                 ls_constant(c, LS_I64, LS_SCALAR, &(int64_t){1})));
}

static bool is_even(const ls_tensor *t)
{
    return *(const int64_t *)ls_tensor_data(t) % 2 == 0;
}

static ls_value *keep_even(ls_context *c, ls_value *x, void *user)
{
    const uint8_t even = is_even(ls_value_as_tensor(x));

    (void)user;
    return ls_value_of(c, ls_constant(c, LS_BOOL, LS_SCALAR, &even));
}

/* 0, or 0 1, or 0 1 2 ... */
static ls_dataset *up_to(ls_value *x, void *user)
{
    (void)user;
    return ls_dataset_range(
        0, *(const int64_t *)ls_tensor_data(ls_value_as_tensor(x)) + 1, 1);
}

static ls_dataset *mapped(int parallel)
{
    ls_map_options o = LS_MAP_OPTIONS_INIT;

    o.parallel = parallel;
    return ls_dataset_map(lst_range(5), add_one, NULL, &o);
}

static ls_dataset *of_file(const char *name, int kind)
{
    const char *path = lst_path(&at, name);
    const ls_csv_column columns[2] = {{LS_STRING, NULL}, {LS_I64, NULL}};
    ls_feature feature = {.name = "x", .dtype = LS_I64, .shape = LS_SHAPE(2)};

    switch (kind) {
    case 0:
        return ls_dataset_text_files(&path, 1, NULL);
    case 1:
        return ls_dataset_csv_files(&path, 1, columns, 2, NULL);
    case 2:
        return ls_dataset_tfrecord(path);
    case 3:
        return ls_dataset_parse_example(
            ls_dataset_batch(ls_dataset_tfrecord_files(&path, 1, NULL), 2), &feature, 1,
            LS_AUTOTUNE);
    case 4:
        return ls_dataset_npy(path);
    default:
        return ls_dataset_idx(path);
    }
}

static ls_dataset *sparse_batches(void)
{
    const char *path = lst_path(&at, "examples");
    ls_feature feature = {.name = "x", .kind = LS_FEATURE_VAR, .dtype = LS_I64};

    return ls_dataset_unbatch(ls_dataset_parse_example(
        ls_dataset_batch(ls_dataset_tfrecord_files(&path, 1, NULL), 2), &feature, 1, 0));
}

/* Numbers from a source of the program, which makes no tensors itself. */
static ls_status next_number(void *state, ls_value **out, ls_error *err)
{
    int64_t *left = state;

    return --*left >= 0 ? ls_value_int(*left, out, err) : LS_OUT_OF_RANGE;
}

static ls_status open_numbers(void *user, void **state, ls_error *err)
{
    static _Thread_local int64_t left;

    (void)user;
    (void)err;
    left = 3;
    *state = &left;
    return LS_OK;
}

static ls_dataset *numbered(void)
{
    const ls_source source = {
        .struct_size = sizeof source, .open = open_numbers, .next = next_number};
    ls_spec *spec = NULL;
    ls_dataset *d;

    LST_OK(ls_spec_tensor(LS_I32, 0, NULL, &spec, NULL));
    d = ls_dataset_source(&source, spec);
    ls_spec_release(spec);
    return d;
}

static ls_dataset *pipeline(int which)
{
    const int64_t sizes[] = {3, 0, 2};

    switch (which) {
    case 0:
        return lst_range(3);
    case 1:
        return of_literals();
    case 2:
        return ls_dataset_batch(lst_range(7), 3);
    case 3:
        return ls_dataset_unbatch(ls_dataset_batch(lst_range(40), 20));
    case 4:
        return ls_dataset_rebatch(ls_dataset_batch(lst_range(10), 4), sizes, 3, false);
    case 5:
        return mapped(0);
    case 6:
        return mapped(3);
    case 7:
        return ls_dataset_filter(lst_range(6), keep_even, NULL);
    case 8:
        return ls_dataset_flat_map(lst_range(4), up_to, NULL, NULL);
    case 9:
        return ls_dataset_shuffle(lst_range(9), 4, 5);
    case 10:
        return ls_dataset_prefetch(ls_dataset_cache(lst_range(6), NULL), 2);
    case 11:
        return ls_dataset_cache(lst_range(6), lst_path(&at, "cache"));
    case 12:
        return ls_dataset_padded_batch(ls_dataset_batch(lst_range(5), 2), 2, NULL, NULL,
                                       0, false);
    case 13:
        return of_file("text", 0);
    case 14:
        return ls_dataset_shuffle(of_file("text", 0), 2, 5);
    case 15:
        return ls_dataset_batch(of_file("text", 0), 2);
    case 16:
        return of_file("csv", 1);
    case 17:
        return ls_dataset_batch(of_file("csv", 1), 2);
    case 18:
        return of_file("examples", 2);
    case 19:
        return of_file("examples", 3);
    case 20:
        return sparse_batches();
    case 21:
        return of_file("rows.npy", 4);
    case 22:
        return of_file("rows.idx", 5);
    default:
        return numbered();
    }
}

/* Records of tf.train.Example with x: 1 2; the same numbers as NumPy and as IDX. */
static void write_files(void)
{
    static const char header[] = "{'descr': '<i4', 'fortran_order': False, "
                                 "'shape': (2, 20), }";
    const uint8_t example[] = {0x0a, 0x0d, 0x0a, 0x0b, 0x0a, 0x01, 'x', 0x12,
                               0x06, 0x1a, 0x04, 0x08, 0x01, 0x08, 0x02};
    uint8_t npy[128 + 160] = {0},
                      idx[12 + 160] = {0, 0, 0x0c, 2, 0, 0, 0, 2, 0, 0, 0, 20};
    ls_record_writer *w = NULL;

    LST_OK(ls_record_writer_open(lst_path(&at, "examples"), NULL, &w, NULL));
    for (int i = 0; i < 40; i++) { // enough for more than one thread
        LST_OK(ls_record_writer_write(w, example, sizeof example, NULL));
    }
    LST_OK(ls_record_writer_close(w, NULL));
    ls_record_writer_release(w);
    (void)lst_file(&at, "text", "one\ntwo\nthree\n", 14);
    (void)lst_file(&at, "csv", "one,1\ntwo,2\n\"th\"\"ree\",3\n", 24);
    memset(npy, ' ', 128);
    memcpy(npy, "\x93NUMPY\1\0\x76\0", 10);
    memcpy(npy + 10, header, sizeof header - 1);
    npy[127] = '\n';
    npy[128] = 5;
    idx[15] = 5;
    (void)lst_file(&at, "rows.npy", npy, sizeof npy);
    (void)lst_file(&at, "rows.idx", idx, sizeof idx);
}

/* ---- what is checked of every element ---- */

/* True if all tensors of an element are on the device, and their memory where it says. */
static bool is_on(const ls_value *v, const ls_device *device)
{
    const ls_tensor *t = ls_value_as_tensor(v);
    lsi_memory_location where;
    bool on = t == NULL || ls_tensor_device(t) == device;

    if (t != NULL && device->inline_bytes == 0 && t->dtype != LS_STRING && t->count > 0) {
        on = on && lsi_tensor_locate(t, &where);
    }
    for (size_t i = 0; i < ls_value_size(v); i++) {
        on = on && is_on(ls_value_child(v, i), device);
    }
    return on;
}

/* An epoch in a runtime as text; every element must be on its first device. */
static lst_text epoch_in(ls_dataset *d, ls_runtime *rt)
{
    lst_text t = {{0}, 0};
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_dataset_iterate_in(d, rt, &it, &err));
    while (ls_iterator_next(it, &v, &err) == LS_OK) {
        LST_CHECK(is_on(v, ls_runtime_device(rt, 0)));
        lst_put_value(&t, v);
        lst_put(&t, " ");
        ls_value_release(v);
    }
    LST_CHECK(err.code == LS_OUT_OF_RANGE);
    ls_iterator_release(it);
    return t;
}

LST_TEST(elements_of_every_kind_are_on_the_device_of_the_runtime)
{
    ls_runtime *rt = create_runtime(0);

    lst_enter(&at);
    write_files();
    for (int i = 0; i < PIPELINES; i++) {
        ls_dataset *d = pipeline(i), *same = pipeline(i);
        const lst_text here = epoch_in(d, rt), there = epoch_in(same, NULL);

        LST_CHECK(here.n > 0 && strcmp(here.s, there.s) == 0);
        ls_dataset_release(d);
        ls_dataset_release(same);
    }
    lst_leave(&at);
    ls_runtime_release(rt);
}

/* ---- two runtimes at once ---- */

enum { READERS = 2, ELEMENTS = 60 };

/* Shared by all calls: which thread worked for which runtime. */
struct crowd {
    lsi_mutex lock;
    lsi_cond change;
    ls_runtime *of[64]; // runtime of a thread of the input, by its number
    pthread_t threads[64];
    int n, wrong;
    int inside[READERS]; // calls that have begun, per runtime
    int met;             // how often a reader began or ended
    ls_runtime *runtimes[READERS];
};

/* One reader of the dataset. */
struct reader {
    ls_runtime *rt;
    ls_dataset *d;
    struct crowd *crowd;
    lsi_thread thread;
    lst_text text;
};

/* Notes the thread; waits until another thread maps for the same runtime. */
static ls_value *note_thread(ls_context *c, ls_value *x, void *user)
{
    struct crowd *crowd = user;
    ls_runtime *rt = ls_context_device(c)->runtime;
    int known = 0, which = rt == crowd->runtimes[1];

    lsi_mutex_lock(&crowd->lock);
    crowd->wrong += rt != crowd->runtimes[which];
    while (known < crowd->n && !pthread_equal(crowd->threads[known], pthread_self())) {
        known++;
    }
    if (known == crowd->n && known < 64) {
        crowd->threads[crowd->n] = pthread_self();
        crowd->of[crowd->n++] = rt;
    }
    crowd->wrong += crowd->of[known] != rt; // a thread works for one runtime
    crowd->inside[which]++;
    lsi_cond_broadcast(&crowd->change);
    while (crowd->inside[which] < 2) { // the reader's own thread is one of them
        (void)lsi_cond_wait(&crowd->change, &crowd->lock, LSI_DEADLINE_NEVER);
    }
    lsi_mutex_unlock(&crowd->lock);
    return x;
}

/* Waits until all readers are here: no thread ends while another is noted. */
static void meet_readers(struct crowd *crowd, int met)
{
    lsi_mutex_lock(&crowd->lock);
    crowd->met++;
    lsi_cond_broadcast(&crowd->change);
    while (crowd->met < met) {
        (void)lsi_cond_wait(&crowd->change, &crowd->lock, LSI_DEADLINE_NEVER);
    }
    lsi_mutex_unlock(&crowd->lock);
}

static void read_epoch(void *arg)
{
    struct reader *r = arg;

    meet_readers(r->crowd, READERS);
    r->text = epoch_in(r->d, r->rt);
    meet_readers(r->crowd, 2 * READERS);
}

LST_TEST(two_runtimes_read_one_dataset_at_once_each_with_its_own_threads)
{
    struct crowd crowd = {.n = 0};
    struct reader readers[READERS];
    ls_map_options o = LS_MAP_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_dataset *d;

    o.parallel = 3;
    lsi_mutex_init(&crowd.lock);
    lsi_cond_init(&crowd.change);
    d = ls_dataset_map(lst_range(ELEMENTS), note_thread, &crowd, &o);
    d = ls_dataset_prefetch(ls_dataset_batch(d, 4), 2);
    for (int i = 0; i < READERS; i++) {
        crowd.runtimes[i] = create_runtime((uint64_t)i);
        readers[i] = (struct reader){.rt = crowd.runtimes[i], .d = d, .crowd = &crowd};
    }
    for (int i = 0; i < READERS; i++) {
        LST_OK(lsi_thread_start(&readers[i].thread, read_epoch, &readers[i], &err, "r"));
    }
    for (int i = 0; i < READERS; i++) {
        lsi_thread_join(&readers[i].thread);
    }
    LST_CHECK(strcmp(readers[0].text.s, readers[1].text.s) == 0);
    LST_CHECK(strncmp(readers[0].text.s, "[0 1 2 3] [4 5 6 7] ", 20) == 0);
    LST_CHECK(crowd.wrong == 0 && crowd.n >= 2 * READERS);
    for (int i = 0; i < READERS; i++) {
        ls_runtime_release(crowd.runtimes[i]); // joins its threads
    }
    ls_dataset_release(d);
    lsi_cond_destroy(&crowd.change);
    lsi_mutex_destroy(&crowd.lock);
}

/* ---- seeds, positions, lifetimes ---- */

static ls_value *draw(ls_context *c, ls_value *x, void *user)
{
    (void)x;
    (void)user;
    return ls_value_of(c, ls_random_uniform(c, LS_F32, LS_SCALAR, 0, 1));
}

LST_TEST(random_functions_draw_by_the_seed_of_the_runtime)
{
    ls_runtime *rt[] = {create_runtime(1), create_runtime(1), create_runtime(2)};
    lst_text t[3];

    for (int i = 0; i < 3; i++) {
        ls_dataset *d = ls_dataset_map(lst_range(4), draw, NULL, NULL);

        t[i] = epoch_in(d, rt[i]);
        ls_dataset_release(d);
        ls_runtime_release(rt[i]);
    }
    LST_CHECK(strcmp(t[0].s, t[1].s) == 0 && strcmp(t[0].s, t[2].s) != 0);
}

LST_TEST(a_position_saved_in_one_runtime_continues_in_another)
{
    ls_runtime *rt[] = {create_runtime(0), create_runtime(0)};
    ls_error err = LS_ERROR_INIT;

    lst_enter(&at);
    write_files();
    for (int i = 0; i < PIPELINES - 1; i++) { // all but the source, which has no position
        ls_dataset *d[] = {pipeline(i), pipeline(i)};
        ls_iterator *it[] = {NULL, NULL};
        lst_text rest[2] = {{{0}, 0}, {{0}, 0}};
        ls_value *v = NULL, *state = NULL;

        for (int k = 0; k < 2; k++) {
            LST_OK(ls_dataset_iterate_in(d[k], rt[k], &it[k], &err));
        }
        LST_OK(ls_iterator_next(it[0], &v, &err));
        ls_value_release(v);
        LST_OK(ls_iterator_save(it[0], &state, &err));
        LST_CHECK(is_on(state, ls_runtime_device(rt[0], 0)));
        LST_OK(ls_iterator_restore(it[1], state, &err));
        ls_value_release(state);
        for (int k = 0; k < 2; k++) {
            while (ls_iterator_next(it[k], &v, &err) == LS_OK) {
                LST_CHECK(is_on(v, ls_runtime_device(rt[k], 0)));
                lst_put_value(&rest[k], v);
                ls_value_release(v);
            }
            ls_iterator_release(it[k]);
            ls_dataset_release(d[k]);
        }
        LST_CHECK(strcmp(rest[0].s, rest[1].s) == 0);
        (void)lsi_file_remove(lst_path(&at, "cache"), NULL);
    }
    lst_leave(&at);
    ls_runtime_release(rt[0]);
    ls_runtime_release(rt[1]);
}

LST_TEST(an_iterator_keeps_its_runtime_and_may_be_released_last)
{
    ls_runtime *rt = create_runtime(0);
    ls_dataset *d = ls_dataset_prefetch(mapped(2), 2);
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_dataset_iterate_in(d, rt, &it, &err));
    LST_OK(ls_iterator_next(it, &v, &err));
    ls_value_release(v);
    ls_runtime_release(rt);
    ls_dataset_release(d);
    LST_OK(ls_iterator_next(it, &v, &err));
    LST_CHECK(*(const int64_t *)ls_tensor_data(ls_value_as_tensor(v)) == 2);
    ls_value_release(v);
    ls_iterator_release(it); // the runtime and its threads end here
}

#if LST_HAS_SEGMENTS
LST_TEST(without_elements_and_functions_an_iterator_keeps_its_runtime)
{
    lst_segment *s = lst_segment_create(false);
    ls_runtime *rt = lst_segment_runtime(s, 1);
    ls_dataset *d = ls_dataset_prefetch(lst_range(9), 2);
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_dataset_iterate_in(d, rt, &it, &err));
    ls_runtime_release(rt);
    LST_CHECK(lst_segment_devices(s) == 1);
    ls_iterator_release(it);
    LST_CHECK(lst_segment_devices(s) == 0);
    ls_dataset_release(d);
    lst_segment_release(s);
}
#endif

static ls_runtime *shared_runtime;

static ls_status open_and_read(ls_error *err)
{
    ls_dataset *d = ls_dataset_prefetch(ls_dataset_batch(lst_range(4), 2), 1);
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_status st = d != NULL ? LS_OK : lsi_fail_memory(err, "a dataset", 1);

    if (st == LS_OK) {
        st = ls_dataset_iterate_in(d, shared_runtime, &it, err);
    }
    if (st == LS_OK) {
        st = ls_iterator_next(it, &v, err);
    }
    ls_value_release(v);
    ls_iterator_release(it);
    ls_dataset_release(d);
    return st;
}

LST_TEST(opening_in_a_runtime_survives_the_failure_of_every_allocation)
{
    shared_runtime = create_runtime(0);
    lst_every_allocation(open_and_read);
    ls_runtime_release(shared_runtime);
}

/* ---- devices that neighbours map ---- */

#if LST_HAS_SEGMENTS
LST_TEST(elements_lie_in_the_memory_of_a_device_that_neighbours_map)
{
    lst_segment *s = lst_segment_create(true);
    ls_runtime *rt = lst_segment_runtime(s, 1);

    lst_enter(&at);
    write_files();
    for (int i = 0; i < PIPELINES; i++) {
        ls_dataset *d = pipeline(i);

        LST_CHECK(epoch_in(d, rt).n > 0); // is_on() looks for each of them
        ls_dataset_release(d);
    }
    lst_leave(&at);
    ls_runtime_release(rt);
    LST_CHECK(lst_segment_in_use(s) == 0 && lst_segment_devices(s) == 0);
    lst_segment_release(s);
}

LST_TEST(a_dataset_that_was_read_keeps_no_runtime_alive)
{
    lst_segment *s = lst_segment_create(true);
    ls_runtime *rt = lst_segment_runtime(s, 1), *other = create_runtime(0);
    ls_dataset *cached = ls_dataset_cache(lst_range(40), NULL), *array;
    lst_text first, second;

    lst_enter(&at);
    write_files();
    array = of_file("rows.npy", 4);
    first = epoch_in(cached, rt);
    (void)epoch_in(array, rt);
    ls_runtime_release(rt);
    LST_CHECK(lst_segment_devices(s) == 0);
    second = epoch_in(cached, other); // from the cache, on the other device
    LST_CHECK(strcmp(first.s, second.s) == 0);
    LST_CHECK(epoch_in(array, other).n > 0);
    ls_dataset_release(cached);
    ls_dataset_release(array);
    lst_leave(&at);
    ls_runtime_release(other);
    lst_segment_release(s);
}
#define SEGMENT_CASES                                                                    \
    LST_CASE(elements_lie_in_the_memory_of_a_device_that_neighbours_map),                \
        LST_CASE(a_dataset_that_was_read_keeps_no_runtime_alive),                        \
        LST_CASE(without_elements_and_functions_an_iterator_keeps_its_runtime),
#else
#define SEGMENT_CASES
#endif

LST_MAIN(SEGMENT_CASES LST_CASE(elements_of_every_kind_are_on_the_device_of_the_runtime),
         LST_CASE(two_runtimes_read_one_dataset_at_once_each_with_its_own_threads),
         LST_CASE(random_functions_draw_by_the_seed_of_the_runtime),
         LST_CASE(a_position_saved_in_one_runtime_continues_in_another),
         LST_CASE(an_iterator_keeps_its_runtime_and_may_be_released_last),
         LST_CASE(opening_in_a_runtime_survives_the_failure_of_every_allocation))
