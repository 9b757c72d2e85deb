/*
 * Six replicas compute the same bits however they are divided among workers: 1 worker of
 * 6, 2 of 3, 3 of 2, 6 of 1. After twenty steps all bytes of all variables and slots are
 * compared, of every replica, and every loss on the way.
 */
#include "layout_models.h"
#include "ls_snapshot.h"

enum { REPLICAS = 6, STEPS = 20 };

/* The run of one layout. */
struct training {
    const layout_kind *kind;
    ls_optimizer *(*optimizer)(void); /* NULL: the step is made of single operations */
    lst_snapshot copies[REPLICAS]; /* by id: its copies of variables and slots, losses */
    lst_snapshot values[REPLICAS]; /* by worker: the values of variables, iterations */
};

/* A worker's part of it. */
struct worker {
    struct training *t;
    layout_model m;
    ls_optimizer *o;
    int64_t step;
};

/* ---- training ---- */

/* Without an optimizer: sums the gradients, and subtracts a part of them. */
static void step_by_operations(ls_context *c, const layout_model *m, ls_tape *tape,
                               ls_tensor *loss)
{
    ls_tensor *grads[LAYOUT_MOST_VARIABLES] = {NULL};

    ls_variable_gradients(c, tape, loss, m->v, m->trained, grads);
    for (size_t i = 0; i < m->trained; i++) {
        ls_tensor *sum = ls_all_reduce(c, LS_SUM, grads[i]);
        const bool sparse = sum != NULL && ls_tensor_slices(sum, NULL, NULL);
        ls_tensor *rate =
            ls_cast(c, ls_constant_f32(c, 0.1f), ls_variable_dtype(m->v[i]));

        (void)ls_assign_sub(c, m->v[i], sparse ? sum : ls_mul(c, sum, rate));
    }
}

static ls_value *train_step(ls_context *c, ls_value *args, void *user)
{
    struct worker *w = user;
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *loss = layout_model_loss(c, &w->m, w->step);
    const double x = loss == NULL ? 0 : ls_item(c, loss);

    (void)args;
    lst_snapshot_bytes(&w->t->copies[ls_replica_id(c)], &x, sizeof x);
    if (w->o == NULL) {
        step_by_operations(c, &w->m, tape, loss);
    } else {
        ls_optimizer_minimize(c, w->o, tape, loss, w->m.v, w->m.trained);
    }
    return NULL;
}

/* All copies and slots of the worker's replicas, then what the variables read as. */
static void record_state(const lst_worker *lw, struct worker *w)
{
    const int64_t iterations = w->o == NULL ? STEPS : ls_optimizer_iterations(w->o);
    lst_snapshot *values = &w->t->values[lw->index];

    for (int k = 0; k < lw->replicas; k++) {
        lst_snapshot_copies(&w->t->copies[lw->index * lw->replicas + k], w->m.v, w->m.n,
                            w->o, k);
    }
    for (size_t i = 0; i < w->m.n; i++) {
        lst_snapshot_value(values, w->m.v[i]);
    }
    LST_CHECK(iterations == STEPS);
}

static ls_status train_worker(const lst_worker *lw, void *arg, ls_error *err)
{
    struct worker w = {.t = arg};
    ls_status st = ls_scope_enter(lw->strategy, err);

    if (st != LS_OK) {
        return st;
    }
    // The initial values of other workers than the chief do not count.
    layout_model_create(&w.m, w.t->kind, 1000 + (uint64_t)lw->index);
    w.o = w.t->optimizer == NULL ? NULL : w.t->optimizer();
    ls_scope_exit(lw->strategy);
    for (; w.step < STEPS && st == LS_OK; w.step++) {
        st = ls_strategy_run(lw->strategy, train_step, NULL, &w, NULL, err);
    }
    if (st == LS_OK) {
        record_state(lw, &w);
    }
    ls_optimizer_release(w.o);
    layout_model_release(&w.m);
    return st;
}

static void end_training(struct training *t)
{
    for (int i = 0; i < REPLICAS; i++) {
        lst_snapshot_free(&t->copies[i]);
        lst_snapshot_free(&t->values[i]);
    }
}

/* ---- layouts ---- */

static bool same_training(const struct training *one, const struct training *other,
                          int workers)
{
    bool same = true;

    for (int id = 0; id < REPLICAS; id++) {
        same = same && lst_snapshot_same(&one->copies[id], &other->copies[id]);
    }
    for (int w = 0; w < workers; w++) {
        same = same && lst_snapshot_same(&one->values[0], &other->values[w]);
    }
    return same;
}

static void compare_layouts(const layout_kind *kind, ls_optimizer *(*optimizer)(void))
{
    struct training one = {.kind = kind, .optimizer = optimizer};

    lst_workers_run(1, REPLICAS, train_worker, &one);
    for (int workers = 2; workers <= REPLICAS; workers++) {
        struct training other = {.kind = kind, .optimizer = optimizer};

        if (REPLICAS % workers != 0) {
            continue;
        }
        lst_workers_run(workers, REPLICAS / workers, train_worker, &other);
        const bool same = same_training(&one, &other, workers);

        LST_CHECK(same);
        if (!same) {
            (void)fprintf(stderr,
                          "%s, %d workers of %d replicas: other bits than 1 of %d\n",
                          kind->name, workers, REPLICAS / workers, REPLICAS);
        }
        end_training(&other);
    }
    end_training(&one);
}

static void compare_all_kinds(ls_optimizer *(*optimizer)(void))
{
    for (size_t i = 0; i < layout_kind_count; i++) {
        compare_layouts(&layout_kinds[i], optimizer);
    }
}

/* ---- optimizers ---- */

static ls_optimizer *plain_sgd(void)
{
    ls_optimizer *o = NULL;

    LST_OK(ls_sgd_create(NULL, &o, NULL));
    return o;
}

static ls_optimizer *sgd_with_momentum(void)
{
    ls_sgd_options opts = LS_SGD_OPTIONS_INIT;
    ls_optimizer *o = NULL;

    opts.learning_rate = 0.05;
    opts.momentum = 0.9;
    LST_OK(ls_sgd_create(&opts, &o, NULL));
    return o;
}

static ls_optimizer *adam_with_global_clipnorm(void)
{
    ls_adam_options opts = LS_ADAM_OPTIONS_INIT;
    ls_optimizer *o = NULL;

    opts.learning_rate = 0.01;
    opts.shared.global_clipnorm = 0.4;
    LST_OK(ls_adam_create(&opts, &o, NULL));
    return o;
}

static ls_optimizer *adam_with_clipnorm(void)
{
    ls_adam_options opts = LS_ADAM_OPTIONS_INIT;
    ls_optimizer *o = NULL;

    opts.learning_rate = 0.01;
    opts.shared.clipnorm = 0.1;
    LST_OK(ls_adam_create(&opts, &o, NULL));
    return o;
}

LST_TEST(single_operations_compute_the_same_bits_in_every_layout)
{
    compare_all_kinds(NULL);
}

LST_TEST(sgd_computes_the_same_bits_in_every_layout)
{
    compare_all_kinds(plain_sgd);
}

LST_TEST(sgd_with_momentum_computes_the_same_bits_in_every_layout)
{
    compare_all_kinds(sgd_with_momentum);
}

LST_TEST(adam_with_global_clipnorm_computes_the_same_bits_in_every_layout)
{
    compare_all_kinds(adam_with_global_clipnorm);
}

LST_TEST(adam_with_clipnorm_computes_the_same_bits_in_every_layout)
{
    compare_all_kinds(adam_with_clipnorm);
}

LST_MAIN(LST_CASE(single_operations_compute_the_same_bits_in_every_layout),
         LST_CASE(sgd_computes_the_same_bits_in_every_layout),
         LST_CASE(sgd_with_momentum_computes_the_same_bits_in_every_layout),
         LST_CASE(adam_with_global_clipnorm_computes_the_same_bits_in_every_layout),
         LST_CASE(adam_with_clipnorm_computes_the_same_bits_in_every_layout))
