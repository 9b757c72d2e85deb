/*
 * N replicas with a batch of B each make the same steps as one with a batch of N * B: the
 * weights agree to rounding (1e-5 of their size after ten steps), and two runs agree bit
 * by bit.
 */
#include "replica_test.h"

enum { ROWS = 24, IN = 12, HIDDEN = 17, CLASSES = 5, VARIABLES = 4, STEPS = 10 };

typedef enum optimizer_kind { SGD, MOMENTUM, ADAM, ADAMW, RMSPROP, ADAGRAD, KINDS } kind;

struct model {
    ls_variable *v[VARIABLES];
    ls_optimizer *o;
    float x[ROWS * IN];
    int32_t y[ROWS];
};

static ls_status make_optimizer(kind k, ls_optimizer **out, ls_error *err)
{
    ls_sgd_options sgd = LS_SGD_OPTIONS_INIT;

    switch (k) {
    case MOMENTUM:
        sgd.momentum = 0.9;
        sgd.nesterov = true;
        sgd.shared.global_clipnorm = 0.5; // of the sum: the same for any number
        return ls_sgd_create(&sgd, out, err);
    case ADAM:
        return ls_adam_create(NULL, out, err);
    case ADAMW:
        return ls_adamw_create(NULL, out, err);
    case RMSPROP:
        return ls_rmsprop_create(NULL, out, err);
    case ADAGRAD:
        return ls_adagrad_create(NULL, out, err);
    default:
        return ls_sgd_create(NULL, out, err);
    }
}

static void make_model(struct model *m, kind k)
{
    const ls_shape shapes[VARIABLES] = {LS_SHAPE(IN, HIDDEN), LS_SHAPE(HIDDEN),
                                        LS_SHAPE(HIDDEN, CLASSES), LS_SHAPE(CLASSES)};
    uint64_t random = 7;
    ls_error e = LS_ERROR_INIT;

    for (int i = 0; i < ROWS * IN; i++) {
        m->x[i] = lst_random_f32(&random, -1, 1);
    }
    for (int i = 0; i < ROWS; i++) {
        m->y[i] = (int32_t)(lst_random(&random) % CLASSES);
    }
    for (int i = 0; i < VARIABLES; i++) {
        float start[IN * HIDDEN + HIDDEN * CLASSES];
        ls_tensor *t = NULL;

        for (int64_t j = 0; j < ls_shape_count(&shapes[i]); j++) {
            start[j] = lst_random_f32(&random, -0.3f, 0.3f);
        }
        LST_OK(ls_tensor_create(NULL, LS_F32, shapes[i], start, &t, &e));
        LST_OK(ls_variable_create(t, NULL, &m->v[i], &e));
        ls_tensor_release(t);
    }
    LST_OK(make_optimizer(k, &m->o, &e));
}

static ls_value *train_step(ls_context *c, ls_value *args, void *user)
{
    struct model *m = user;
    const int n = ls_replica_count(c), r = ls_replica_id(c);
    const int begin = ROWS * r / n, end = ROWS * (r + 1) / n;
    ls_tensor *x = ls_constant(c, LS_F32, LS_SHAPE(end - begin, IN), m->x + begin * IN);
    ls_tensor *y = ls_constant(c, LS_I32, LS_SHAPE(end - begin), m->y + begin);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *h = ls_dense(c, x, ls_read(c, m->v[0]), ls_read(c, m->v[1]), LS_TANH);
    ls_tensor *out = ls_dense(c, h, ls_read(c, m->v[2]), ls_read(c, m->v[3]), LS_LINEAR);
    ls_tensor *losses = ls_sparse_softmax_cross_entropy(c, out, y);

    (void)args;
    ls_optimizer_minimize(c, m->o, tape, ls_average_loss(c, losses, NULL, ROWS), m->v,
                          VARIABLES);
    return NULL;
}

/* The weights after some steps on `n` replicas; copies must be equal bit by bit. */
static size_t train_replicas(int n, kind k, float *weights)
{
    mirror mi = mirror_of(n, false);
    struct model m = {{NULL}, NULL, {0}, {0}};
    ls_error e = LS_ERROR_INIT;
    size_t count = 0;

    LST_OK(ls_scope_enter(mi.s, &e));
    make_model(&m, k);
    ls_scope_exit(mi.s);
    for (int i = 0; i < STEPS; i++) {
        LST_OK(ls_strategy_run(mi.s, train_step, NULL, &m, NULL, &e));
    }
    LST_CHECK(ls_optimizer_iterations(m.o) == STEPS);
    for (int i = 0; i < VARIABLES; i++) {
        const ls_shape shape = ls_variable_shape(m.v[i]);
        const size_t bytes = (size_t)ls_shape_count(&shape) * sizeof(float);

        for (size_t r = 0; r < ls_variable_components(m.v[i]); r++) {
            float copy[IN * HIDDEN + HIDDEN * CLASSES];
            ls_tensor *t = NULL;

            LST_OK(ls_variable_value(ls_variable_component(m.v[i], r), &t, &e));
            LST_OK(ls_tensor_read(t, copy, bytes, &e));
            if (r == 0) {
                memcpy(weights + count, copy, bytes);
            }
            LST_CHECK(memcmp(weights + count, copy, bytes) == 0);
            ls_tensor_release(t);
        }
        count += bytes / sizeof(float);
        ls_variable_release(m.v[i]);
    }
    ls_optimizer_release(m.o);
    mirror_end(&mi);
    return count;
}

enum { MOST = IN * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES };

LST_TEST(n_replicas_give_the_weights_of_one_with_the_n_fold_batch)
{
    for (kind k = SGD; k < KINDS; k++) {
        float one[MOST], many[MOST];
        const size_t count = train_replicas(1, k, one);

        for (int n = 2; n <= 5; n++) {
            LST_CHECK(train_replicas(n, k, many) == count);
            for (size_t i = 0; i < count; i++) {
                /*
                 * Adam divides by the root of a tiny square, which magnifies the rounding
                 * error of a zero.
                 */
                LST_CHECK(lst_near((double)many[i], (double)one[i], 1e-5, 2e-5));
            }
        }
    }
}

LST_TEST(two_runs_give_the_same_bits)
{
    for (int n = 2; n <= 5; n++) {
        float first[MOST], again[MOST];
        const size_t count = train_replicas(n, ADAM, first);

        for (int round = 0; round < 5; round++) {
            LST_CHECK(train_replicas(n, ADAM, again) == count);
            LST_CHECK(memcmp(first, again, count * sizeof(float)) == 0);
        }
    }
}

LST_MAIN(LST_CASE(n_replicas_give_the_weights_of_one_with_the_n_fold_batch),
         LST_CASE(two_runs_give_the_same_bits))
