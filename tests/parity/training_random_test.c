/*
 * Training with many users of random numbers (dropout on every replica, a parallel map
 * with noise, batches read ahead) ends with the same weights in every run, and also when
 * it is saved in the middle and restored.
 */
#include "replica_test.h"

enum { ROWS = 48, IN = 6, BATCH = 12, STEPS = 10, RUNS = 20 };

struct model {
    ls_variable *w;
    ls_optimizer *o;
};

static ls_value *add_noise(ls_context *c, ls_value *element, void *user)
{
    ls_tensor *x = ls_value_as_tensor(element);

    (void)user;
    return ls_value_of(c,
                       ls_add(c, x, ls_random_normal(c, LS_F32, LS_SHAPE(IN), 0, 0.1)));
}

/* A step that moves the output towards zero, with dropout. */
static ls_value *train_step(ls_context *c, ls_value *args, void *user)
{
    struct model *m = user;
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *x = ls_dropout(c, ls_value_at(c, args, 0), 0.4);
    ls_tensor *y = ls_matmul(c, x, ls_read(c, m->w));
    ls_tensor *loss = ls_average_loss(c, ls_sum(c, ls_mul(c, y, y), (int[]){1}, 1, false),
                                      NULL, LS_BATCH_OF_REPLICAS);

    ls_optimizer_minimize(c, m->o, tape, loss, &m->w, 1);
    return NULL;
}

static ls_dataset *noisy_rows(void)
{
    ls_map_options opts = LS_MAP_OPTIONS_INIT;
    float x[ROWS * IN];
    uint64_t random = 3;
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_dataset *d = NULL;

    for (int i = 0; i < ROWS * IN; i++) {
        x[i] = lst_random_f32(&random, -1, 1);
    }
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(ROWS, IN), x, &t, &err));
    LST_OK(ls_value_tensor(t, &v, &err));
    opts.parallel = 3;
    d = ls_dataset_map(ls_dataset_shuffle(ls_dataset_slices(v), ROWS, 5), add_noise, NULL,
                       &opts);
    ls_value_release(v);
    ls_tensor_release(t);
    return ls_dataset_prefetch(ls_dataset_repeat(ls_dataset_batch(d, BATCH), -1), 2);
}

/* The saved state of a training. */
struct saved {
    float w[IN * IN];
    ls_value *input;
    ls_random_state random[4];
};

struct training {
    mirror m;
    struct model model;
    ls_dist_dataset *data;
    ls_dist_iterator *it;
};

static void training_begin(struct training *t, int n)
{
    float start[IN * IN];
    uint64_t random = 11;
    ls_error err = LS_ERROR_INIT;
    ls_tensor *w = NULL;
    ls_dataset *d = noisy_rows();

    *t = (struct training){.m = mirror_of(n, false)};
    for (int i = 0; i < IN * IN; i++) {
        start[i] = lst_random_f32(&random, -1, 1);
    }
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(IN, IN), start, &w, &err));
    LST_OK(ls_scope_enter(t->m.s, &err));
    LST_OK(ls_variable_create(w, NULL, &t->model.w, &err));
    LST_OK(ls_sgd_create(NULL, &t->model.o, &err));
    ls_scope_exit(t->m.s);
    ls_tensor_release(w);
    LST_OK(ls_strategy_distribute(t->m.s, d, NULL, &t->data, &err));
    LST_OK(ls_dist_iterate(t->data, &t->it, &err));
    ls_dataset_release(d);
}

static void training_steps(struct training *t, int steps)
{
    ls_error err = LS_ERROR_INIT;

    for (int i = 0; i < steps; i++) {
        ls_value *batch = NULL, *args = NULL;

        LST_OK(ls_dist_iterator_next(t->it, &batch, &err));
        LST_OK(ls_value_tuple(&batch, 1, &args, &err));
        LST_OK(ls_strategy_run(t->m.s, train_step, args, &t->model, NULL, &err));
        ls_value_release(args);
        ls_value_release(batch);
    }
}

static void training_weights(struct training *t, float *out)
{
    ls_error err = LS_ERROR_INIT;
    ls_tensor *w = NULL;

    LST_OK(ls_variable_value(t->model.w, &w, &err));
    LST_OK(ls_tensor_read(w, out, IN * IN * sizeof *out, &err));
    ls_tensor_release(w);
}

static void training_end(struct training *t)
{
    ls_dist_iterator_release(t->it);
    ls_dist_dataset_release(t->data);
    ls_optimizer_release(t->model.o);
    ls_variable_release(t->model.w);
    mirror_end(&t->m);
}

LST_TEST(twenty_trainings_with_dropout_and_noise_end_with_the_same_weights)
{
    for (int n = 1; n <= 4; n++) {
        float first[IN * IN], got[IN * IN];

        for (int run = 0; run < RUNS; run++) {
            struct training t;

            training_begin(&t, n);
            training_steps(&t, STEPS);
            training_weights(&t, run == 0 ? first : got);
            training_end(&t);
            LST_CHECK(run == 0 || memcmp(first, got, sizeof first) == 0);
        }
    }
}

static void training_save(struct training *t, int n, struct saved *out)
{
    ls_error err = LS_ERROR_INIT;

    training_weights(t, out->w);
    LST_OK(ls_dist_iterator_save(t->it, &out->input, &err));
    for (int r = 0; r < n; r++) {
        LST_OK(ls_strategy_random_state(t->m.s, r, &out->random[r], &err));
    }
}

static void training_restore(struct training *t, int n, const struct saved *from)
{
    ls_error err = LS_ERROR_INIT;
    ls_tensor *w = NULL;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(IN, IN), from->w, &w, &err));
    LST_OK(ls_variable_restore(t->model.w, w, &err));
    ls_tensor_release(w);
    LST_OK(ls_dist_iterator_restore(t->it, from->input, &err));
    for (int r = 0; r < n; r++) {
        LST_OK(ls_strategy_set_random_state(t->m.s, r, &from->random[r], &err));
    }
}

LST_TEST(a_training_saved_in_its_middle_goes_on_to_the_same_weights)
{
    for (int n = 1; n <= 3; n++) {
        float want[IN * IN], got[IN * IN];
        struct saved kept = {.input = NULL};
        struct training t, later;

        training_begin(&t, n);
        training_steps(&t, STEPS / 2);
        training_save(&t, n, &kept);
        training_steps(&t, STEPS);
        training_weights(&t, want);
        training_begin(&later, n);
        training_restore(&later, n, &kept);
        training_steps(&later, STEPS);
        training_weights(&later, got);
        LST_CHECK(memcmp(want, got, sizeof want) == 0);
        ls_value_release(kept.input);
        training_end(&t);
        training_end(&later);
    }
}

LST_MAIN(LST_CASE(twenty_trainings_with_dropout_and_noise_end_with_the_same_weights),
         LST_CASE(a_training_saved_in_its_middle_goes_on_to_the_same_weights))
