/* Tests of steps over several workers: the bits are those of one worker. */
#include "step_test.h"

#include "base/hash.h"

enum { STEPS = 3, MOST_REPLICAS = 6 };

struct outcome {
    const step_world *world;
    uint64_t hash[MOST_REPLICAS]; /* by id */
    size_t bytes[MOST_REPLICAS];
};

static ls_value *step(ls_context *c, ls_value *args, void *user)
{
    const step_model *m = user;
    ls_tensor *g[STEP_VARS];

    (void)args;
    for (int k = 0; k < STEP_VARS; k++) {
        g[k] = step_gradient(c, m, k);
    }
    (ls_optimizer_apply)(c, m->o, g, m->v, STEP_VARS);
    return NULL;
}

static ls_status train(const lst_worker *w, void *arg, ls_error *err)
{
    struct outcome *out = arg;
    unsigned char *bytes = malloc(STEP_BYTES);
    step_model m;
    ls_status st = LS_OK;

    if (bytes == NULL) {
        abort();
    }
    open_model(&m, out->world, w);
    for (m.step = 0; m.step < STEPS && st == LS_OK; m.step++) {
        st = ls_strategy_run(w->strategy, step, NULL, &m, NULL, err);
        LST_CHECK(ls_optimizer_iterations(m.o) == m.step + (st == LS_OK));
    }
    for (int k = 0; k < w->replicas; k++) {
        const size_t n = model_bytes(&m, (size_t)k, bytes);

        out->hash[w->index * w->replicas + k] = lsi_hash(LSI_HASH_INIT, bytes, n);
        out->bytes[w->index * w->replicas + k] = n;
    }
    free(bytes);
    close_model(&m);
    return st;
}

/* All ways to divide six replicas among workers. */
static void compare_layouts(const step_world *world)
{
    struct outcome one = {.world = world};

    lst_workers_run(1, MOST_REPLICAS, train, &one);
    LST_CHECK(one.bytes[0] > STEP_LONG * ls_dtype_size(world->dtype));
    for (int workers = 1; workers <= MOST_REPLICAS; workers++) {
        struct outcome other = {.world = world};

        if (MOST_REPLICAS % workers != 0) {
            continue;
        }
        lst_workers_run(workers, MOST_REPLICAS / workers, train, &other);
        for (int id = 0; id < MOST_REPLICAS; id++) {
            LST_CHECK(other.bytes[id] == one.bytes[0]);
            LST_CHECK(other.hash[id] == one.hash[0]);
        }
    }
}

static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};

LST_TEST(however_replicas_are_divided_among_workers_the_bits_are_the_same)
{
    static const ls_optimizer_shared ways[] = {{.clipvalue = 0},
                                               {.clipvalue = 0.5},
                                               {.clipnorm = 3},
                                               {.global_clipnorm = 4},
                                               {.clipnorm = 2, .keras3 = true},
                                               {.weight_decay = 0.01}};

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        for (size_t w = 0; w < LSI_COUNT_OF(ways); w++) {
            const step_world world = {
                .dtype = dtypes[d], .shared = ways[w], .adam = true, .apart = w == 1};

            compare_layouts(&world);
        }
    }
}

/* Few rows are updated row by row, many as a dense gradient. */
LST_TEST(sparse_gradients_are_summed_over_workers_in_the_order_of_ids)
{
    static const ls_optimizer_shared ways[] = {
        {.clipvalue = 0}, {.keras3 = true}, {.clipnorm = 2}};

    for (size_t i = 0; i < 2 * LSI_COUNT_OF(ways); i++) {
        const step_world world = {.dtype = i % 2 == 0 ? LS_F32 : LS_BF16,
                                  .sparse = i < LSI_COUNT_OF(ways) ? 4 : 20,
                                  .shared = ways[i % LSI_COUNT_OF(ways)]};

        compare_layouts(&world);
    }
}

/* ---- a variable that is passed twice, and sparse gradients alone ---- */

static ls_value *step_twice(ls_context *c, ls_value *args, void *user)
{
    const step_model *m = user;
    ls_tensor *g = step_gradient(c, m, 1), *dense = lsi_dense(c, g), *gs[] = {g, dense};
    ls_variable *v[] = {m->v[1], m->v[1]};

    (void)args;
    (ls_optimizer_apply)(c, m->o, gs, v, 2);
    return NULL;
}

static ls_value *step_once(ls_context *c, ls_value *args, void *user)
{
    const step_model *m = user;
    ls_tensor *g = step_gradient(c, m, 1);

    (void)args;
    (ls_optimizer_apply)(c, m->o, &g, &m->v[1], 1);
    return NULL;
}

/* Adagrad: a second update by the same gradient in one step is that of a second step. */
static ls_status train_twice(const lst_worker *w, void *arg, ls_error *err)
{
    const step_world *world = arg;
    unsigned char *bytes = malloc(2 * (size_t)STEP_BYTES);
    step_model a, b;
    ls_status st;

    if (bytes == NULL) {
        abort();
    }
    open_model(&a, world, w);
    open_model(&b, world, w);
    st = ls_strategy_run(w->strategy, step_twice, NULL, &a, NULL, err);
    for (int i = 0; i < 2 && st == LS_OK; i++) {
        st = ls_strategy_run(w->strategy, step_once, NULL, &b, NULL, err);
    }
    LST_CHECK(ls_optimizer_iterations(a.o) == 1 && ls_optimizer_iterations(b.o) == 2);
    for (int k = 0; k < w->replicas; k++) {
        const size_t n = model_bytes(&a, (size_t)k, bytes);

        LST_CHECK(n == model_bytes(&b, (size_t)k, bytes + STEP_BYTES));
        LST_CHECK(memcmp(bytes, bytes + STEP_BYTES, n) == 0);
    }
    free(bytes);
    close_model(&a);
    close_model(&b);
    return st;
}

LST_TEST(a_variable_that_is_passed_twice_is_updated_twice)
{
    for (int i = 0; i < 4; i++) {
        step_world world = {
            .dtype = LS_F32, .sparse = i % 2 == 0 ? 3 : 20, .apart = i >= 2};

        lst_workers_run(1, 1, train_twice, &world);
        lst_workers_run(1, 3, train_twice, &world);
        lst_workers_run(2, 2, train_twice, &world);
    }
}

LST_MAIN(LST_CASE(however_replicas_are_divided_among_workers_the_bits_are_the_same),
         LST_CASE(sparse_gradients_are_summed_over_workers_in_the_order_of_ids),
         LST_CASE(a_variable_that_is_passed_twice_is_updated_twice))
