/*
 * For tests of steps on several replicas and workers: variables on every worker, and
 * gradients that depend on the replica's id in the sync group alone.
 */
#ifndef STEP_TEST_H
#define STEP_TEST_H
#define LS_NO_PLACES
#include "ls_workers.h"

#include "kernel/ref/element_access.h"
#include "optim/optim.h"

enum { STEP_VARS = 3, STEP_LONG = 5003, STEP_ROWS = 60, STEP_WIDE = 3 };

typedef struct step_world {
    ls_dtype dtype;
    int sparse;                 /* rows that a replica's gradient names; 0: it is dense */
    ls_optimizer_shared shared; /* of Adagrad, or of Adam */
    bool adam, apart;           /* apart: every copy has memory of its own */
} step_world;

/* What one worker has. */
typedef struct step_model {
    const step_world *world;
    const lst_worker *worker;
    ls_variable *v[STEP_VARS];
    ls_optimizer *o;
    int step;
} step_model;

static inline ls_tensor *random_tensor(ls_context *c, ls_dtype dtype, ls_shape shape,
                                       uint64_t seed)
{
    ls_tensor *t = (ls_constant)(c, LS_F32, shape, NULL);

    for (int64_t i = 0; t != NULL && i < t->count; i++) {
        ((float *)t->data)[i] = lst_random_f32(&seed, -1, 1);
    }
    return (ls_cast)(c, t, dtype);
}

static inline ls_shape step_shape(int k)
{
    return k == 0   ? LS_SHAPE(STEP_LONG)
           : k == 1 ? LS_SHAPE(STEP_ROWS, STEP_WIDE)
                    : LS_SHAPE(1);
}

/* The gradient of variable k on the replica of `c` in this step. */
static inline ls_tensor *step_gradient(ls_context *c, const step_model *m, int k)
{
    const ls_shape shape = step_shape(k);
    const int n = m->world->sparse;
    uint64_t seed =
        1000 * (uint64_t)ls_replica_id(c) + 10 * (uint64_t)m->step + (uint64_t)k + 1;
    ls_tensor *rows;

    if (k != 1 || n == 0) {
        return random_tensor(c, m->world->dtype, shape, seed);
    }
    rows = (ls_constant)(c, LS_I64, LS_SHAPE(n), NULL);
    for (int i = 0; rows != NULL && i < n; i++) {
        ((int64_t *)rows->data)[i] = (int64_t)(lst_random(&seed) % STEP_ROWS);
    }
    return lsi_context_sparse(
        c, &shape, random_tensor(c, m->world->dtype, LS_SHAPE(n, STEP_WIDE), seed), rows);
}

static inline void make_optimizer_of(step_model *m)
{
    ls_adam_options adam = LS_ADAM_OPTIONS_INIT;
    ls_adagrad_options adagrad = LS_ADAGRAD_OPTIONS_INIT;

    adam.shared = adagrad.shared = m->world->shared;
    LST_OK(m->world->adam ? ls_adam_create(&adam, &m->o, NULL)
                          : ls_adagrad_create(&adagrad, &m->o, NULL));
}

/* Gives every copy memory of its own, with the same elements. */
static inline void separate_copies(const ls_variable *v)
{
    for (size_t k = 0; k < ls_variable_components(v); k++) {
        ls_variable *own = ls_variable_component(v, k);
        ls_tensor *t = NULL, *copy = NULL;

        LST_OK(ls_variable_value(own, &t, NULL));
        LST_OK(ls_tensor_create(ls_variable_device(own), ls_tensor_dtype(t),
                                ls_tensor_shape(t), ls_tensor_data(t), &copy, NULL));
        LST_OK(ls_variable_set(own, copy, NULL));
        ls_tensor_release(t);
        ls_tensor_release(copy);
    }
}

static inline void open_model(step_model *m, const step_world *world, const lst_worker *w)
{
    ls_context *c = NULL;

    *m = (step_model){.world = world, .worker = w};
    LST_OK(ls_context_open(ls_runtime_device(w->runtime, 0), NULL, &c, NULL));
    LST_OK(ls_scope_enter(w->strategy, NULL));
    for (int k = 0; k < STEP_VARS; k++) {
        LST_OK(ls_variable_create(
            random_tensor(c, world->dtype, step_shape(k), 77 + (uint64_t)k), NULL,
            &m->v[k], NULL));
        if (world->apart) {
            separate_copies(m->v[k]);
        }
    }
    ls_scope_exit(w->strategy);
    ls_context_close(c);
    make_optimizer_of(m);
}

static inline void close_model(step_model *m)
{
    for (int k = 0; k < STEP_VARS; k++) {
        ls_variable_release(m->v[k]);
    }
    ls_optimizer_release(m->o);
}

/* The bytes of copy `copy` of all variables and slots; returns how many. */
enum { STEP_BYTES = 8 * 4 * (STEP_LONG + STEP_ROWS * STEP_WIDE + 1) };
static inline size_t model_bytes(const step_model *m, size_t copy, unsigned char *out)
{
    static const char *const slots[] = {"momentum", "velocity", "accumulator"};
    size_t at = 0;

    for (int k = 0; k < STEP_VARS; k++) {
        for (size_t s = 0; s <= LSI_COUNT_OF(slots); s++) {
            const ls_variable *v =
                s == 0 ? m->v[k] : ls_optimizer_slot(m->o, m->v[k], slots[s - 1]);
            const ls_variable *own = ls_variable_component(v, copy);

            if (own != NULL) {
                const size_t bytes = (size_t)own->count * ls_dtype_size(own->dtype);

                memcpy(out + at, own->buffer->data, bytes);
                at += bytes;
            }
        }
    }
    LST_CHECK(at <= STEP_BYTES);
    return at;
}
#endif
