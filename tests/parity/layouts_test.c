/*
 * Six replicas compute the same bits however they are divided among workers: 1 worker of
 * 6, 2 of 3, 3 of 2, 6 of 1. After twenty steps all bytes of all variables and slots are
 * compared, of every replica, and every loss on the way.
 */
#include "layout_models.h"

enum { REPLICAS = 6, STEPS = 20 };

/* What a replica has at the end, byte by byte; each value with its length before it. */
struct record {
    unsigned char *bytes;
    size_t used, room;
};

/* The run of one layout. */
struct training {
    const layout_kind *kind;
    ls_optimizer *(*optimizer)(void); /* NULL: the step is made of single operations */
    struct record copies[REPLICAS]; /* by id: its copies of variables and slots, losses */
    struct record values[REPLICAS]; /* by worker: the values of variables, iterations */
};

/* A worker's part of it. */
struct worker {
    struct training *t;
    layout_model m;
    ls_optimizer *o;
    int64_t step;
};

/* ---- records ---- */

static void append(struct record *r, const void *bytes, size_t n)
{
    if (r->used + n > r->room) {
        const size_t room = 2 * (r->used + n);
        unsigned char *grown = realloc(r->bytes, room);

        if (grown == NULL) {
            LST_CHECK(grown != NULL);
            return;
        }
        r->bytes = grown;
        r->room = room;
    }
    memcpy(r->bytes + r->used, bytes, n);
    r->used += n;
}

static void append_value(struct record *r, ls_variable *v)
{
    ls_error err = LS_ERROR_INIT;
    ls_tensor *t = NULL;
    size_t n;
    void *bytes;

    LST_OK(ls_variable_value(v, &t, &err));
    n = (size_t)ls_tensor_count(t) * ls_dtype_size(ls_tensor_dtype(t));
    bytes = calloc(n + 1, 1);
    LST_OK(ls_tensor_read(t, bytes, n, &err));
    append(r, &n, sizeof n);
    append(r, bytes, n);
    free(bytes);
    ls_tensor_release(t);
}

/* The copy that local replica `k` uses. */
static void append_copy(struct record *r, ls_variable *v, int k)
{
    const size_t n = ls_variable_components(v);

    append_value(r, ls_variable_component(v, n == 1 ? 0 : (size_t)k));
}

/* The same number of bytes with the same contents. */
static bool same_record(const struct record *a, const struct record *b)
{
    return a->used > 0 && a->used == b->used && memcmp(a->bytes, b->bytes, a->used) == 0;
}

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
    append(&w->t->copies[ls_replica_id(c)], &x, sizeof x);
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
    static const char *const slots[] = {"momentum", "velocity", "accumulator"};
    const int64_t iterations = w->o == NULL ? STEPS : ls_optimizer_iterations(w->o);
    struct record *values = &w->t->values[lw->index];

    for (int k = 0; k < lw->replicas; k++) {
        struct record *r = &w->t->copies[lw->index * lw->replicas + k];

        for (size_t i = 0; i < w->m.n; i++) {
            append_copy(r, w->m.v[i], k);
            for (size_t s = 0; s < LSI_COUNT_OF(slots); s++) {
                ls_variable *slot =
                    w->o == NULL ? NULL : ls_optimizer_slot(w->o, w->m.v[i], slots[s]);

                if (slot != NULL) {
                    append(r, slots[s], strlen(slots[s]));
                    append_copy(r, slot, k);
                }
            }
        }
    }
    for (size_t i = 0; i < w->m.n; i++) {
        append_value(values, w->m.v[i]);
    }
    append(values, &iterations, sizeof iterations);
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
        free(t->copies[i].bytes);
        free(t->values[i].bytes);
    }
}

/* ---- layouts ---- */

static bool same_training(const struct training *one, const struct training *other,
                          int workers)
{
    bool same = true;

    for (int id = 0; id < REPLICAS; id++) {
        same = same && same_record(&one->copies[id], &other->copies[id]);
    }
    for (int w = 0; w < workers; w++) {
        same = same && same_record(&one->values[0], &other->values[w]);
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
        if (!same_training(&one, &other, workers)) {
            (void)fprintf(stderr,
                          "%s, %d workers of %d replicas: other bits than 1 of %d\n",
                          kind->name, workers, REPLICAS / workers, REPLICAS);
            LST_CHECK(!"the same bits");
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
