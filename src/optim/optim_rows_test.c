/* Tests of sparse gradients of large tables: only the rows they name are accessed. */
#include "optim_test.h"

enum { TABLE = 100, WIDE = 3, NAMED = 8 };

static const int64_t rows[NAMED] = {7, 99, 0, 7, 42, 0, 7, 13}; // some of them repeated

static ls_context *open_context(void)
{
    ls_context *c = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    return c;
}

static ls_tensor *random_of(ls_context *c, ls_dtype dtype, ls_shape shape, uint64_t seed)
{
    ls_tensor *t = (ls_constant)(c, LS_F32, shape, NULL);

    for (int64_t i = 0; t != NULL && i < t->count; i++) {
        ((float *)t->data)[i] = lst_random_f32(&seed, -1, 1);
    }
    return (ls_cast)(c, t, dtype);
}

static ls_tensor *sparse_of(ls_context *c, ls_dtype dtype, uint64_t seed)
{
    const ls_shape table = LS_SHAPE(TABLE, WIDE);

    return lsi_context_sparse(c, &table, random_of(c, dtype, LS_SHAPE(NAMED, WIDE), seed),
                              (ls_constant)(c, LS_I64, LS_SHAPE(NAMED), rows));
}

/* Three steps; `dense`: the gradient is made dense before. */
static ls_variable *train(const recipe *r, ls_dtype dtype, bool dense, ls_variable **slot)
{
    ls_context *c = open_context();
    ls_optimizer *o = make_optimizer(r);
    ls_variable *v = NULL;

    LST_OK(ls_variable_create(random_of(c, dtype, LS_SHAPE(TABLE, WIDE), 5), NULL, &v,
                              NULL));
    for (uint64_t t = 0; t < 3; t++) {
        ls_tensor *g = sparse_of(c, dtype, 11 + t);

        g = dense ? lsi_dense(c, g) : g;
        (ls_optimizer_apply)(c, o, &g, &v, 1);
    }
    LST_OK(ls_context_finish(c, NULL));
    *slot = ls_variable_retain(ls_optimizer_slot(o, v, "accumulator"));
    ls_optimizer_release(o);
    ls_context_close(c);
    return v;
}

static bool same_bits(const ls_variable *a, const ls_variable *b)
{
    return memcmp(a->buffer->data, b->buffer->data,
                  (size_t)a->count * ls_dtype_size(a->dtype)) == 0;
}

LST_TEST(by_rows_gives_the_bits_of_the_dense_gradient)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16};
    static const recipe recipes[] = {
        {"SGD", 0, false, false, false, {.keras3 = false}},
        {"Adagrad", 0, false, false, false, {.keras3 = false}},
        {"SGD", 0, false, false, false, {.weight_decay = 0.1}}, // all rows decay
        {"SGD", 0, false, false, false, {.clipvalue = 0.5}},
        // the momentum moves all rows
        {"SGD", 0.9, false, false, false, {.keras3 = false}},
    };

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        for (size_t r = 0; r < LSI_COUNT_OF(recipes); r++) {
            ls_variable *slot = NULL, *dense_slot = NULL;
            ls_variable *v = train(&recipes[r], dtypes[d], false, &slot);
            ls_variable *dense = train(&recipes[r], dtypes[d], true, &dense_slot);

            LST_CHECK(same_bits(v, dense));
            LST_CHECK(slot == NULL || same_bits(slot, dense_slot));
            ls_variable_release(v);
            ls_variable_release(dense);
            ls_variable_release(slot);
            ls_variable_release(dense_slot);
        }
    }
}

/* With an infinite rate 0 * rate is NaN, so every row that was accessed shows it. */
LST_TEST(rows_without_a_gradient_are_not_visited)
{
    static const char *const kinds[] = {"SGD", "Adagrad"};

    for (size_t k = 0; k < LSI_COUNT_OF(kinds); k++) {
        ls_context *c = open_context();
        ls_optimizer *o = make_optimizer(
            &(const recipe){kinds[k], 0, false, false, false, {.keras3 = k > 0}});
        ls_variable *v = NULL;
        ls_tensor *g = sparse_of(c, LS_F32, 3);

        LST_OK(ls_variable_create(random_of(c, LS_F32, LS_SHAPE(TABLE, WIDE), 5), NULL,
                                  &v, NULL));
        ls_optimizer_set_learning_rate(o, (double)INFINITY);
        (ls_optimizer_apply)(c, o, &g, &v, 1);
        LST_OK(ls_context_finish(c, NULL));
        for (int i = 0; i < TABLE; i++) {
            bool named = false;

            for (int n = 0; n < NAMED; n++) {
                named |= rows[n] == i;
            }
            LST_CHECK(isfinite(at(v, i * WIDE)) == !named);
            LST_CHECK(isfinite(at(v, i * WIDE + WIDE - 1)) == !named);
        }
        ls_variable_release(v);
        ls_optimizer_release(o);
        ls_context_close(c);
    }
}

/* One step on rows that were gathered; `held`: the test holds the value meanwhile. */
static void step_on_rows(bool held)
{
    ls_context *c = open_context();
    ls_optimizer *o =
        make_optimizer(&(const recipe){"SGD", 0, false, false, false, {.keras3 = false}});
    ls_variable *v = NULL;
    ls_tensor *before = NULL, *g = NULL, *q, *indices;
    ls_tape *tape;
    const lsi_buffer *memory;

    LST_OK(ls_variable_create(random_of(c, LS_F32, LS_SHAPE(TABLE, WIDE), 5), NULL, &v,
                              NULL));
    LST_OK(ls_context_finish(c, NULL));
    memory = v->buffer;
    if (held) {
        LST_OK(ls_variable_value(v, &before, NULL));
    }
    tape = ls_tape_open(c, NULL);
    indices = (ls_constant)(c, LS_I64, LS_SHAPE(NAMED), rows);
    q = (ls_variable_gather)(c, v, indices);
    LST_CHECK(q != NULL && lsi_element(q, WIDE) == at(v, 99 * WIDE));
    (ls_variable_gradients)(c, tape, (ls_sum)(c, (ls_square)(c, q), NULL, 0, false), &v,
                            1, &g);
    LST_CHECK(g != NULL && g->values != NULL);
    (ls_optimizer_apply)(c, o, &g, &v, 1);
    LST_OK(ls_context_finish(c, NULL));
    LST_CHECK((v->buffer == memory) == !held);
    if (held) { // and still has its elements
        LST_CHECK(lst_near(at(v, 42 * WIDE),
                           lsi_element(before, (int64_t)42 * WIDE) * (1 - 2 * LST_RATE),
                           1e-6, 0));
        LST_CHECK(at(v, 50 * WIDE) == lsi_element(before, (int64_t)50 * WIDE));
    }
    ls_tensor_release(before);
    ls_variable_release(v);
    ls_optimizer_release(o);
    ls_context_close(c);
}

LST_TEST(gathered_rows_are_updated_in_place_unless_the_value_is_held)
{
    step_on_rows(false);
    step_on_rows(true);
}

static ls_status sparse_step(const recipe *r, ls_error *err)
{
    ls_context *c = NULL;
    ls_optimizer *o = NULL;
    ls_variable *v = NULL;
    ls_tensor *g;
    ls_adagrad_options opts = LS_ADAGRAD_OPTIONS_INIT;
    ls_status st = ls_context_open(NULL, NULL, &c, err);

    opts.shared = r->shared;
    if (st == LS_OK) {
        st = ls_adagrad_create(&opts, &o, err);
    }
    if (st == LS_OK) {
        ls_tensor *start = random_of(c, LS_F32, LS_SHAPE(TABLE, WIDE), 5);

        st = start == NULL ? ls_context_status(c, err)
                           : ls_variable_create(start, NULL, &v, err);
    }
    if (st == LS_OK) {
        g = sparse_of(c, LS_F32, 11);
        if (g != NULL) {
            (ls_optimizer_apply)(c, o, &g, &v, 1);
        }
        st = ls_context_status(c, err);
    }
    ls_variable_release(v);
    ls_optimizer_release(o);
    ls_context_close(c);
    return st;
}

static ls_status starve(ls_error *err)
{
    return sparse_step(&(const recipe){.shared = {.keras3 = true}}, err);
}

LST_TEST(a_step_by_rows_survives_every_failing_allocation)
{
    lst_every_allocation(starve);
}

LST_MAIN(LST_CASE(by_rows_gives_the_bits_of_the_dense_gradient),
         LST_CASE(rows_without_a_gradient_are_not_visited),
         LST_CASE(gathered_rows_are_updated_in_place_unless_the_value_is_held),
         LST_CASE(a_step_by_rows_survives_every_failing_allocation))
