/*
 * Tests of steps on replicas: that pass the same variables, that do not, and that run out
 * of memory.
 */
#include "optim/optim.h"
#include "replica/replica_test.h"

enum { REPLICAS = 2, VARIABLES = 3, SIZE = 100 };

typedef enum mistake {
    NONE,
    OTHER_VARIABLE,
    OTHER_ORDER,
    OTHER_COUNT,
    NO_GRADIENT,
    SPARSE_GRADIENT,
    OTHER_DTYPE,
    OTHER_OPTIMIZER,
    MISTAKES
} mistake;

struct model {
    mirror m;
    ls_variable *v[VARIABLES]; // the last one has another shape
    ls_optimizer *o[2];
    mistake mistake;
    int who; // the replica that makes it
    ls_error seen[REPLICAS];
};

static void make_variables(struct model *m)
{
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_scope_enter(m->m.s, &e));
    for (int i = 0; i < VARIABLES; i++) {
        ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
        const char *const names[] = {"a", "b", "long"};
        const int64_t dims[] = {i < 2 ? SIZE : 1000 * SIZE};
        ls_tensor *t = NULL;

        opts.name = names[i];
        LST_OK(ls_tensor_create(NULL, LS_F32, ls_shape_of(1, dims), NULL, &t, &e));
        LST_OK(ls_variable_create(t, &opts, &m->v[i], &e));
        ls_tensor_release(t);
    }
    ls_scope_exit(m->m.s);
}

static ls_status make_adam(ls_optimizer **out)
{
    ls_adam_options opts = LS_ADAM_OPTIONS_INIT;

    opts.shared.clipnorm = 1; // needs more meetings and more memory
    return ls_adam_create(&opts, out, NULL);
}

static void make_model(struct model *m, bool adam, bool sequential)
{
    *m = (struct model){.m = mirror_of(REPLICAS, sequential),
                        .seen = {LS_ERROR_INIT, LS_ERROR_INIT}};
    make_variables(m);
    for (int i = 0; i < 2; i++) {
        LST_OK(adam ? make_adam(&m->o[i]) : ls_sgd_create(NULL, &m->o[i], NULL));
    }
}

static void end_model(struct model *m)
{
    for (int i = 0; i < VARIABLES; i++) {
        ls_variable_release(m->v[i]);
    }
    ls_optimizer_release(m->o[0]);
    ls_optimizer_release(m->o[1]);
    mirror_end(&m->m);
}

static ls_tensor *ones(ls_context *c, const ls_variable *v)
{
    const ls_shape shape = ls_variable_shape(v);

    return lsi_fill(c, ls_variable_dtype(v), &shape, 1);
}

static ls_tensor *one_row(ls_context *c, const ls_variable *v)
{
    const ls_shape shape = ls_variable_shape(v);

    return lsi_context_sparse(c, &shape, ls_constant(c, LS_F32, LS_SHAPE(1), NULL),
                              ls_constant(c, LS_I64, LS_SHAPE(1), NULL));
}

/* Both replicas pass a and b; one of them makes the mistake. */
static ls_value *step_with_mistake(ls_context *c, ls_value *args, void *user)
{
    struct model *m = user;
    const int r = ls_replica_id(c);
    const mistake mine = r == m->who ? m->mistake : NONE;
    ls_variable *vars[] = {m->v[0], m->v[1]};
    ls_tensor *grads[2];
    size_t n = 2;

    (void)args;
    if (mine == OTHER_VARIABLE) {
        vars[1] = m->v[2];
    } else if (mine == OTHER_ORDER) {
        vars[0] = m->v[1];
        vars[1] = m->v[0];
    } else if (mine == OTHER_COUNT) {
        n = 1;
    }
    grads[0] = ones(c, vars[0]);
    grads[1] = ones(c, vars[1]);
    if (mine == NO_GRADIENT) {
        grads[1] = NULL;
    } else if (mine == SPARSE_GRADIENT) {
        grads[1] = one_row(c, vars[1]);
    } else if (mine == OTHER_DTYPE) {
        grads[1] = ls_cast(c, grads[1], LS_F64);
    }
    ls_optimizer_apply(c, m->o[mine == OTHER_OPTIMIZER], grads, vars, n);
    (void)ls_context_status(c, &m->seen[r]);
    return NULL;
}

/* The first element, read without an allocation. */
static float first_of(const ls_variable *v, size_t copy)
{
    return ((const float *)ls_variable_component(v, copy)->buffer->data)[0];
}

static void check_mistakes(bool adam)
{
    static const char *const words[MISTAKES] = {
        "", "'long'", "'b'", "1 to", "no gradient", "sparse", "float64", "another"};
    struct model m;

    make_model(&m, adam, false);
    for (int k = OTHER_VARIABLE; k < MISTAKES; k++) {
        for (m.who = 0; m.who < REPLICAS; m.who++) {
            ls_error e = LS_ERROR_INIT;

            if (k == OTHER_COUNT && m.who == 0) {
                continue; // the message has "2 to" then
            }
            m.mistake = (mistake)k;
            LST_FAILS(ls_strategy_run(m.m.s, step_with_mistake, NULL, &m, NULL, &e),
                      LS_INVALID_ARGUMENT, e, words[k]);
            LST_CHECK(m.seen[0].code == LS_INVALID_ARGUMENT);
            LST_CHECK(m.seen[1].code == LS_INVALID_ARGUMENT);
            LST_CHECK(strstr(m.seen[1 - m.who].message, words[k]) != NULL);
            LST_CHECK(first_of(m.v[0], 0) == 0 && first_of(m.v[0], 1) == 0);
            LST_CHECK(ls_optimizer_iterations(m.o[0]) == 0);
        }
    }
    m.mistake = NONE;
    LST_OK(ls_strategy_run(m.m.s, step_with_mistake, NULL, &m, NULL, NULL));
    LST_CHECK(first_of(m.v[0], 0) < 0 && first_of(m.v[0], 0) == first_of(m.v[0], 1));
    LST_CHECK(ls_optimizer_iterations(m.o[0]) == 1);
    end_model(&m);
}

LST_TEST(replicas_that_pass_different_arguments_all_fail_with_the_difference)
{
    check_mistakes(false);
    check_mistakes(true);
}

static struct model *starved;

static ls_status step_again(ls_error *err)
{
    const int64_t before = ls_optimizer_iterations(starved->o[0]);
    const float was = first_of(starved->v[0], 0);
    const ls_status st =
        ls_strategy_run(starved->m.s, step_with_mistake, NULL, starved, NULL, err);
    const bool counted = ls_optimizer_iterations(starved->o[0]) > before;

    LST_CHECK(counted == (first_of(starved->v[0], 0) != was));
    LST_CHECK(first_of(starved->v[0], 0) == first_of(starved->v[0], 1));
    return st;
}

LST_TEST(a_step_on_replicas_counts_if_and_only_if_it_was_taken)
{
    struct model m;

    make_model(&m, true, true);
    // creates threads and slots
    LST_OK(ls_strategy_run(m.m.s, step_with_mistake, NULL, &m, NULL, NULL));
    starved = &m;
    lst_every_allocation(step_again);
    end_model(&m);
}

/* ---- shared buffers and separate copies ---- */

enum { MOST = 70, LENGTH = 5000, STEPS = 2 };

struct job {
    ls_variable *v[2];
    ls_optimizer *o;
    ls_dtype dtype;
};

/* Different gradients on every replica, the second one small. */
static ls_value *random_step(ls_context *c, ls_value *args, void *user)
{
    const struct job *j = user;
    uint64_t seed = 17 + (uint64_t)ls_replica_id(c);
    ls_tensor *g[2];

    (void)args;
    for (int k = 0; k < 2; k++) {
        g[k] = ls_constant(c, LS_F32, LS_SHAPE(LENGTH), NULL);
        for (int i = 0; g[k] != NULL && i < LENGTH; i++) {
            ((float *)g[k]->data)[i] = lst_random_f32(&seed, -1, 1) / (float)(1 + 99 * k);
        }
        g[k] = ls_cast(c, g[k], j->dtype);
    }
    ls_optimizer_apply(c, j->o, g, j->v, 2);
    return NULL;
}

/* Gives every copy memory of its own, with the same elements. */
static void separate_copies(const ls_variable *v)
{
    for (size_t k = 0; k < ls_variable_components(v); k++) {
        ls_variable *own = ls_variable_component(v, k);
        ls_tensor *t = NULL, *copy = NULL;

        LST_OK(ls_variable_value(own, &t, NULL));
        LST_OK(ls_tensor_create(NULL, ls_tensor_dtype(t), ls_tensor_shape(t),
                                ls_tensor_data(t), &copy, NULL));
        LST_OK(ls_variable_set(own, copy, NULL));
        ls_tensor_release(t);
        ls_tensor_release(copy);
    }
}

static bool is_one_memory(const ls_variable *v)
{
    for (size_t k = 1; k < ls_variable_components(v); k++) {
        if (ls_variable_component(v, k)->buffer != ls_variable_component(v, 0)->buffer) {
            return false;
        }
    }
    return true;
}

/* Takes some steps and copies the elements of the last copies to `out`. */
static void take_steps(const mirror *m, ls_dtype dtype, const ls_optimizer_shared *shared,
                       bool apart, unsigned char *out)
{
    ls_adam_options opts = LS_ADAM_OPTIONS_INIT;
    const size_t bytes = LENGTH * ls_dtype_size(dtype);
    struct job j = {.dtype = dtype};

    opts.shared = *shared;
    LST_OK(ls_adam_create(&opts, &j.o, NULL));
    LST_OK(ls_scope_enter(m->s, NULL));
    for (int k = 0; k < 2; k++) {
        ls_tensor *t = NULL;

        LST_OK(ls_tensor_create(NULL, dtype, LS_SHAPE(LENGTH), NULL, &t, NULL));
        LST_OK(ls_variable_create(t, NULL, &j.v[k], NULL));
        ls_tensor_release(t);
    }
    ls_scope_exit(m->s);
    for (int t = 0; t < STEPS; t++) {
        if (apart) {
            separate_copies(j.v[0]);
            separate_copies(j.v[1]);
        }
        LST_OK(ls_strategy_run(m->s, random_step, NULL, &j, NULL, NULL));
    }
    for (int k = 0; k < 2; k++) {
        const size_t last = ls_variable_components(j.v[k]) - 1;

        LST_CHECK(is_one_memory(j.v[k]) == !apart);
        memcpy(out + (size_t)k * bytes, ls_variable_component(j.v[k], last)->buffer->data,
               bytes);
        ls_variable_release(j.v[k]);
    }
    ls_optimizer_release(j.o);
}

static void compare_paths(int replicas, ls_dtype dtype, const ls_optimizer_shared *shared)
{
    static unsigned char one[2 * LENGTH * 8], other[2 * LENGTH * 8];
    mirror m = mirror_of(replicas, false);

    memset(one, 1, sizeof one);
    memset(other, 2, sizeof other);
    take_steps(&m, dtype, shared, false, one);
    take_steps(&m, dtype, shared, true, other);
    LST_CHECK(memcmp(one, other, (size_t)2 * LENGTH * ls_dtype_size(dtype)) == 0);
    mirror_end(&m);
}

LST_TEST(updating_together_gives_the_bits_of_updating_apart_however_it_is_clipped)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    static const ls_optimizer_shared ways[] = {
        {0, 0, 0, 0, false},    {0, 0.5, 0, 0, false},   {0, 0, 3, 0, false},
        {0, 0, 1e6, 0, false},  {0, 0, 0, 4, false},     {0, 0, 0, 1e6, false},
        {0.01, 0, 1, 0, false}, {0.01, 0.5, 0, 0, true}, {0, 0, 0, 2, true},
    };

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        for (size_t w = 0; w < LSI_COUNT_OF(ways); w++) {
            compare_paths(2, dtypes[d], &ways[w]);
        }
    }
    compare_paths(3, LS_F32, &ways[2]);
    compare_paths(3, LS_F32, &ways[4]);
}

LST_TEST(there_is_no_number_of_replicas_too_large_to_update_together)
{
    static const ls_optimizer_shared none = LS_OPTIMIZER_SHARED_INIT;

    compare_paths(MOST, LS_F32, &none);
}

LST_MAIN(
    LST_CASE(replicas_that_pass_different_arguments_all_fail_with_the_difference),
    LST_CASE(a_step_on_replicas_counts_if_and_only_if_it_was_taken),
    LST_CASE(updating_together_gives_the_bits_of_updating_apart_however_it_is_clipped),
    LST_CASE(there_is_no_number_of_replicas_too_large_to_update_together))
