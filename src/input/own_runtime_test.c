/*
 * A program that uses runtimes of its own only: the default one is never created. The
 * environment has a setting that is not valid: creating the default runtime, which nobody
 * could be told about a failure of, logs a warning about it.
 */
#include "input_test.h"

#include <unistd.h>

enum { REPLICAS = 2, WORKERS = 2 };

static atomic_int warnings;

static void count_warning(ls_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    atomic_fetch_add(&warnings, strstr(line, "LS_PIN") != NULL);
}

/* What one worker trains with; all of it in its own runtime. */
struct model {
    ls_runtime *rt;
    ls_strategy *s;
    ls_variable *w;
    ls_optimizer *o;
};

static void create_model(struct model *m)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;
    const float zero[3] = {0};
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;

    LST_CHECK(unsetenv("LS_PIN") == 0); // a runtime of one's own is told, and refused
    opts.logical_cpus = REPLICAS;
    opts.threads = 1;
    LST_OK(ls_runtime_create(&opts, &m->rt, &err));
    LST_CHECK(setenv("LS_PIN", "perhaps", 1) == 0);
    so.runtime = m->rt;
    LST_OK(ls_mirrored_create(NULL, &so, &m->s, &err));
    LST_OK(ls_tensor_create(ls_runtime_device(m->rt, 0), LS_F32, LS_SHAPE(3), zero, &t,
                            &err));
    LST_OK(ls_scope_enter(m->s, &err));
    LST_OK(ls_variable_create(t, NULL, &m->w, &err));
    ls_scope_exit(m->s);
    ls_tensor_release(t);
    LST_OK(ls_sgd_create(NULL, &m->o, &err));
}

static void release_model(struct model *m)
{
    ls_optimizer_release(m->o);
    ls_variable_release(m->w);
    ls_strategy_release(m->s);
    ls_runtime_release(m->rt);
}

static ls_value *row_of(ls_context *c, ls_value *x, void *user)
{
    ls_tensor *number = ls_cast(c, ls_value_as_tensor(x), LS_F32);
    ls_tensor *three[] = {number, ls_mul(c, number, number),
                          ls_random_uniform(c, LS_F32, LS_SCALAR, 0, 1)};

    (void)user;
    return ls_value_of(c, ls_stack(c, three, 3, 0));
}

static ls_dataset *numbers_up_to(ls_value *x, void *user)
{
    (void)user;
    return ls_dataset_range(
        0, *(const int64_t *)ls_tensor_data(ls_value_as_tensor(x)) + 1, 1);
}

/* A dataset with literals, files' names, functions, threads and a cache. */
static ls_dataset *create_dataset(void)
{
    ls_map_options map = LS_MAP_OPTIONS_INIT;
    ls_value *items[9], *list = NULL;
    ls_dataset *d;

    for (int i = 0; i < 9; i++) {
        LST_OK(ls_value_int(i, &items[i], NULL));
    }
    LST_OK(ls_value_list(items, 9, &list, NULL));
    for (int i = 0; i < 9; i++) {
        ls_value_release(items[i]);
    }
    d = ls_dataset_concatenate(ls_dataset_slices(list), ls_dataset_slices(list));
    ls_value_release(list);
    map.parallel = 2;
    d = ls_dataset_map(ls_dataset_cache(d, NULL), row_of, NULL, &map);
    return ls_dataset_prefetch(ls_dataset_batch(ls_dataset_shuffle(d, 5, 3), 6), 2);
}

static ls_value *step(ls_context *c, ls_value *batch, void *user)
{
    struct model *m = user;
    ls_tensor *x = ls_value_as_tensor(batch);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *wrong = ls_sub(c, ls_mul(c, x, ls_read(c, m->w)), ls_constant_f32(c, 1));
    ls_tensor *loss = ls_mean(c, ls_mul(c, wrong, wrong), NULL, 0, false);

    LST_CHECK(ls_tensor_device(x) == ls_context_device(c) || ls_tensor_count(x) == 0);
    ls_optimizer_minimize(c, m->o, tape, loss, &m->w, 1);
    return ls_value_of(c, loss);
}

/* Trains for an epoch; the position is saved and restored on the way. */
static void train(struct model *m, ls_dataset *d)
{
    ls_dist_dataset *dd = NULL;
    ls_dist_iterator *it = NULL;
    ls_value *batch = NULL, *losses = NULL, *sum = NULL, *state = NULL;
    ls_error err = LS_ERROR_INIT;
    int steps = 0;

    LST_OK(ls_strategy_distribute(m->s, d, NULL, &dd, &err));
    LST_OK(ls_dist_iterate(dd, &it, &err));
    while (ls_dist_iterator_next(it, &batch, &err) == LS_OK) {
        LST_OK(ls_strategy_run(m->s, step, batch, m, &losses, &err));
        LST_OK(ls_strategy_reduce(m->s, LS_SUM, losses, LS_NO_AXIS, &sum, &err));
        LST_CHECK(ls_tensor_device(ls_value_as_tensor(sum))->runtime == m->rt);
        ls_value_release(sum);
        ls_value_release(losses);
        ls_value_release(batch);
        if (steps++ == 1) {
            LST_OK(ls_dist_iterator_save(it, &state, &err));
            LST_CHECK(ls_tensor_device(ls_value_as_tensor(state))->runtime == m->rt);
            LST_OK(ls_dist_iterator_restore(it, state, &err));
            ls_value_release(state);
        }
    }
    LST_CHECK(err.code == LS_OUT_OF_RANGE && steps == 3);
    ls_dist_iterator_release(it);
    ls_dist_dataset_release(dd);
}

/* A dataset whose names of files are tensors before it is opened. */
static ls_dataset *create_lines(char *path)
{
    const int fd = mkstemp(path);
    const char *const name = path;

    LST_CHECK(fd >= 0 && write(fd, "1\n2\n", 4) == 4 && close(fd) == 0);
    return ls_dataset_concatenate(
        ls_dataset_text_files(&name, 1, NULL),
        ls_dataset_text_from(ls_dataset_list_files(&name, 1, true, NULL), NULL));
}

/* All elements, and where they are. */
static void read_in(ls_dataset *d, ls_runtime *rt, int expected)
{
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL;
    int n = 0;

    LST_OK(ls_dataset_iterate_in(d, rt, &it, &err));
    while (ls_iterator_next(it, &v, &err) == LS_OK) {
        LST_CHECK(ls_tensor_device(ls_value_as_tensor(v)) == ls_runtime_device(rt, 0));
        ls_value_release(v);
        n++;
    }
    LST_CHECK(n == expected);
    ls_iterator_release(it);
    ls_dataset_release(d);
}

struct work {
    lsi_thread thread;
    struct model m;
    ls_dataset *d;
};

static void run_worker(void *arg)
{
    struct work *w = arg;

    train(&w->m, w->d);
}

LST_TEST(programs_with_runtimes_of_their_own_never_create_the_default_one)
{
    struct work works[WORKERS];
    ls_error err = LS_ERROR_INIT;
    ls_interleave_options io = LS_INTERLEAVE_OPTIONS_INIT;
    char path[] = "/tmp/ls-lines-XXXXXX";
    ls_dataset *d, *nested, *lines;

    ls_log_set(LS_LOG_WARNING, count_warning, NULL);
    LST_CHECK(setenv("LS_PIN", "perhaps", 1) == 0);
    d = create_dataset(); // described before there is any runtime
    nested = ls_dataset_interleave(ls_dataset_range(0, 5, 1), numbers_up_to, NULL, &io);
    lines = create_lines(path);
    for (int i = 0; i < WORKERS; i++) {
        works[i] = (struct work){.d = d};
        create_model(&works[i].m);
        LST_OK(lsi_thread_start(&works[i].thread, run_worker, &works[i], &err, "w%d", i));
    }
    for (int i = 0; i < WORKERS; i++) {
        lsi_thread_join(&works[i].thread);
    }
    read_in(nested, works[0].m.rt, 15);
    read_in(lines, works[1].m.rt, 4);
    LST_CHECK(unlink(path) == 0);
    for (int i = 0; i < WORKERS; i++) {
        release_model(&works[i].m);
    }
    ls_dataset_release(d);
    LST_CHECK(atomic_load(&warnings) == 0);
    LST_CHECK(ls_runtime_device_count(NULL) == 1); // now it is created, and noticed
    LST_CHECK(atomic_load(&warnings) == 1);
    ls_log_set(LS_LOG_WARNING, NULL, NULL);
    LST_CHECK(unsetenv("LS_PIN") == 0);
}

LST_MAIN(LST_CASE(programs_with_runtimes_of_their_own_never_create_the_default_one))
