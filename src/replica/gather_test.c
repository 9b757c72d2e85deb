/* Tests of all_gather: axes, dtypes, sizes, gradients, and wrong arguments. */
#include "replica_test.h"

#include "replica/replica.h"

struct wish {
    ls_dtype dtype;
    int axis;
    int64_t rows; /* rows of replica r: rows + r */
};

static ls_tensor *filled(ls_context *c, ls_dtype dtype, ls_shape shape, double value)
{
    return lsi_fill(c, dtype, &shape, value);
}

static ls_value *gathers(ls_context *c, ls_value *args, void *user)
{
    const struct wish *w = user;
    const int64_t rows = w->rows + ls_replica_id(c);
    ls_tensor *t = filled(c, w->dtype, LS_SHAPE(2, rows), ls_replica_id(c) + 1);

    (void)args;
    return ls_value_of(c, ls_all_gather(c, t, w->axis));
}

LST_TEST(an_axis_that_is_not_there_has_the_class_of_tensorflow)
{
    static const struct {
        ls_dtype dtype;
        int axis;
        const char *class; /* NULL: the axis is valid */
    } rows[] = {{LS_F32, 1, NULL},          {LS_F32, 2, "ValueError"},
                {LS_F32, -1, "ValueError"}, {LS_I64, -1, "ValueError"},
                {LS_I64, 2, "ValueError"},  {LS_I32, -1, NULL},
                {LS_I32, -3, "Invalid"},    {LS_I32, 2, "Invalid"}};
    mirror m = mirror_of(2, false);

    for (size_t i = 0; i < LSI_COUNT_OF(rows); i++) {
        struct wish w = {rows[i].dtype, rows[i].axis, 1};
        ls_value *out = NULL;
        ls_error e = LS_ERROR_INIT;

        LST_CHECK(ls_strategy_run(m.s, gathers, NULL, &w, &out, &e) ==
                  (rows[i].class == NULL ? LS_OK : LS_INVALID_ARGUMENT));
        if (rows[i].class != NULL) {
            LST_CHECK(strstr(ls_error_python(&e), rows[i].class) != NULL);
            LST_CHECK(strstr(e.message, "axis") != NULL);
        } else {
            const ls_tensor *t = ls_value_as_tensor(ls_value_child(out, 1));

            LST_CHECK(ls_tensor_dim(t, 0) == 2 && ls_tensor_dim(t, 1) == 3);
            LST_CHECK(lsi_element(t, 0) == 1 && lsi_element(t, 5) == 2);
        }
        ls_value_release(out);
    }
    mirror_end(&m);
}

static ls_value *gathers_nothing(ls_context *c, ls_value *args, void *user)
{
    const int64_t many = INT64_MAX / 2 + 1;
    ls_tensor *t = filled(c, LS_F32, LS_SHAPE(many, 0), 0);

    (void)args;
    (void)user;
    return ls_value_of(c, ls_all_gather(c, t, 0));
}

LST_TEST(a_length_that_would_wrap_is_refused)
{
    mirror m = mirror_of(2, false);
    ls_error e = LS_ERROR_INIT;

    LST_FAILS(ls_strategy_run(m.s, gathers_nothing, NULL, NULL, NULL, &e),
              LS_INVALID_ARGUMENT, e, "too many elements");
    mirror_end(&m);
}

static ls_value *sums_rows(ls_context *c, ls_value *args, void *user)
{
    const ls_shape shape = LS_SHAPE(4, 1);
    ls_tensor *rows = filled(c, *(const ls_dtype *)user, LS_SHAPE(2, 1), 1);
    ls_tensor *where = filled(c, LS_I32, LS_SHAPE(2), ls_replica_id(c));

    (void)args;
    if (rows == NULL || where == NULL) {
        return NULL;
    }
    return ls_value_of(
        c, ls_all_reduce(c, LS_SUM, lsi_context_sparse(c, &shape, rows, where)));
}

LST_TEST(rows_of_every_number_are_summed_and_others_refused_by_their_dtype)
{
    static const ls_dtype numbers[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I8,  LS_I16,
                                       LS_I32, LS_I64, LS_U8,  LS_U16,  LS_U32, LS_U64};
    mirror m = mirror_of(2, false);
    ls_dtype dtype = LS_BOOL;
    ls_error e = LS_ERROR_INIT;

    for (size_t i = 0; i < LSI_COUNT_OF(numbers); i++) {
        ls_value *out = NULL;

        dtype = numbers[i];
        LST_OK(ls_strategy_run(m.s, sums_rows, NULL, &dtype, &out, &e));
        LST_CHECK(ls_tensor_dtype(ls_value_as_tensor(ls_value_child(out, 1))) == dtype);
        ls_value_release(out);
    }
    dtype = LS_BOOL;
    LST_FAILS(ls_strategy_run(m.s, sums_rows, NULL, &dtype, NULL, &e),
              LS_INVALID_ARGUMENT, e, "bool");
    mirror_end(&m);
}

/* ---- long results ---- */

struct slab {
    int64_t rows; /* replica r has rows + r rows of 1000 numbers */
    int axis;
    atomic_int bad;
    const void *data[3]; /* the address of each replica's result */
};

/* Element (i, j) of replica r's part is r + 1, its gradient 2 for two replicas, ... */
static ls_value *gathers_long(ls_context *c, ls_value *args, void *user)
{
    struct slab *k = user;
    const int r = ls_replica_id(c), n = ls_replica_count(c);
    const int64_t own = k->rows + r;
    const ls_shape shape = k->axis == 0 ? LS_SHAPE(own, 1000) : LS_SHAPE(1000, own);
    ls_tensor *t = lsi_fill(c, LS_F32, &shape, r + 1);
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *grad = NULL;

    (void)args;
    ls_tape_watch(c, tape, t);
    ls_tensor *whole = ls_all_gather(c, t, k->axis);
    grad = ls_gradient(c, tape, ls_sum(c, whole, NULL, 0, false), t);
    if (ls_context_status(c, NULL) != LS_OK || whole == NULL || grad == NULL) {
        return NULL;
    }
    k->data[r] = ls_tensor_data(whole);
    k->bad += ls_tensor_device(whole) != ls_tensor_device(t);
    int64_t at = 0;
    for (int q = 0; q < n; q++) {
        const int64_t theirs = k->rows + q;
        const int64_t total = k->rows * n + n * (n - 1) / 2;

        for (int64_t x = 0; x < theirs; x++) {
            const int64_t first = k->axis == 0 ? (at + x) * 1000 : at + x;
            const int64_t last =
                k->axis == 0 ? (at + x) * 1000 + 999 : 999 * total + at + x;

            k->bad += lsi_element(whole, first) != q + 1;
            k->bad += lsi_element(whole, last) != q + 1;
        }
        at += theirs;
    }
    k->bad += lsi_element(grad, 0) != n || lsi_element(grad, grad->count - 1) != n;
    return ls_value_of(c, whole);
}

LST_TEST(a_long_result_is_one_memory_for_all_replicas_and_has_a_gradient)
{
    for (int n = 2; n <= 3; n++) {
        mirror m = mirror_of(n, n == 3);

        for (int axis = 0; axis < 2; axis++) {
            for (int64_t rows = 1; rows <= 200; rows += 199) { // a short and a long one
                struct slab k = {.rows = rows, .axis = axis};
                ls_value *out = NULL;
                ls_error e = LS_ERROR_INIT;

                LST_OK(ls_strategy_run(m.s, gathers_long, NULL, &k, &out, &e));
                LST_CHECK(atomic_load(&k.bad) == 0);
                LST_CHECK((k.data[0] == k.data[1]) == (rows == 200));
                LST_CHECK(ls_value_kind_of(out) == LS_VALUE_PER_REPLICA);
                ls_value_release(out);
            }
        }
        mirror_end(&m);
    }
}

/* ---- packs ---- */

/* Leaf i: i + 1 numbers of one of three dtypes, each i * (replica + 1). */
static ls_value *sums_many(ls_context *c, ls_value *args, void *user)
{
    enum { LEAVES = 50 };
    static const ls_dtype dtypes[] = {LS_F32, LS_I64, LS_F16};
    const int64_t *bytes = user;
    ls_communication_options o = LS_COMMUNICATION_OPTIONS_INIT;
    ls_tensor *leaves[LEAVES];

    (void)args;
    for (int i = 0; i < LEAVES; i++) {
        leaves[i] = filled(c, dtypes[i % 3], LS_SHAPE(i + 1), i * (ls_replica_id(c) + 1));
    }
    o.bytes_per_pack = *bytes;
    ls_value *sums =
        ls_all_reduce_value(c, LS_SUM, ls_value_of_all(c, leaves, LEAVES), &o);
    for (int i = 0; i < LEAVES && sums != NULL; i++) {
        const ls_tensor *t = ls_value_as_tensor(ls_value_child(sums, (size_t)i));

        LST_CHECK(ls_tensor_dtype(t) == dtypes[i % 3] && t->count == i + 1);
        LST_CHECK(lsi_element(t, 0) == 3 * i && lsi_element(t, i) == 3 * i);
    }
    return NULL;
}

LST_TEST(packs_of_any_size_give_every_leaf_its_sum)
{
    static int64_t sizes[] = {0, 1, 7, 64, 1000, INT64_MAX};
    mirror m = mirror_of(2, false);
    ls_error e = LS_ERROR_INIT;

    for (size_t i = 0; i < LSI_COUNT_OF(sizes); i++) {
        LST_OK(ls_strategy_run(m.s, sums_many, NULL, &sizes[i], NULL, &e));
    }
    mirror_end(&m);
}

LST_MAIN(LST_CASE(an_axis_that_is_not_there_has_the_class_of_tensorflow),
         LST_CASE(a_length_that_would_wrap_is_refused),
         LST_CASE(rows_of_every_number_are_summed_and_others_refused_by_their_dtype),
         LST_CASE(a_long_result_is_one_memory_for_all_replicas_and_has_a_gradient),
         LST_CASE(packs_of_any_size_give_every_leaf_its_sum))
