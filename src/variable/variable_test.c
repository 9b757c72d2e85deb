/* Tests of plain variables: reading, assigning, rows, literals, failing allocations. */
#include "lockstep/op.h"
#include "lockstep/variable.h"
#include "ls_test.h"
#include "variable/variable.h"

struct fixture {
    ls_context *c;
    ls_variable *v;
};

static struct fixture setup(size_t n, const float *values)
{
    struct fixture f = {NULL, NULL};
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    const int64_t dims[] = {(int64_t)n};
    ls_tensor *t = NULL;

    LST_OK(ls_context_open(NULL, NULL, &f.c, &err));
    LST_OK(ls_tensor_create(NULL, LS_F32, ls_shape_of(1, dims), values, &t, &err));
    opts.name = "w";
    LST_OK(ls_variable_create(t, &opts, &f.v, &err));
    ls_tensor_release(t);
    return f;
}

static void teardown(struct fixture f)
{
    ls_variable_release(f.v);
    ls_context_close(f.c);
}

static float at(const ls_tensor *t, int i)
{
    return t != NULL ? ((const float *)ls_tensor_data(t))[i] : (float)NAN;
}

LST_TEST(a_tensor_that_was_read_keeps_its_value)
{
    struct fixture f = setup(3, (const float[]){1, 2, 3});
    ls_error err = LS_ERROR_INIT;
    ls_tensor *before = ls_read(f.c, f.v);
    ls_tensor *after = ls_assign_add(
        f.c, f.v, ls_constant(f.c, LS_F32, LS_SHAPE(3), (float[]){1, 1, 1}));

    LST_CHECK(at(before, 0) == 1 && at(after, 0) == 2);
    LST_CHECK(at(ls_read(f.c, f.v), 2) == 4);
    LST_OK(ls_context_finish(f.c, &err));
    LST_CHECK(at(ls_read(f.c, f.v), 2) == 4);
    (void)ls_assign_sub(f.c, f.v, ls_read(f.c, f.v));
    LST_CHECK(at(ls_read(f.c, f.v), 2) == 0);
    teardown(f);
}

LST_TEST(assigning_another_shape_or_dtype_is_refused_and_changes_nothing)
{
    struct fixture f = setup(3, (const float[]){1, 2, 3});
    ls_error err = LS_ERROR_INIT;

    (void)ls_assign(f.c, f.v, ls_constant(f.c, LS_F32, LS_SHAPE(2), NULL));
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err, "'w'");
    LST_CHECK(err.line > 0 && err.kind == LS_KIND_VALUE);
    (void)ls_assign_add(f.c, f.v, ls_constant(f.c, LS_I32, LS_SHAPE(3), NULL));
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err, "int32 (3,)");
    (void)ls_assign(f.c, f.v, NULL);
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err, "NULL");
    (void)ls_read(f.c, NULL);
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err, "NULL");
    LST_CHECK(at(ls_read(f.c, f.v), 1) == 2);
    teardown(f);
}

LST_TEST(a_value_assigned_from_a_wrapped_tensor_is_copied)
{
    struct fixture f = setup(32, NULL);
    ls_error err = LS_ERROR_INIT;
    float mine[32] = {5};
    ls_tensor *t = NULL;

    LST_OK(ls_tensor_wrap(NULL, LS_F32, LS_SHAPE(32), mine, NULL, NULL, &t, &err));
    (void)ls_assign(f.c, f.v, t);
    mine[0] = 6;
    LST_CHECK(at(ls_read(f.c, f.v), 0) == 5);
    ls_tensor_release(t);
    teardown(f);
}

LST_TEST(two_variables_may_share_memory_and_still_part)
{
    struct fixture f = setup(32, (const float[32]){1}), g = setup(32, NULL);
    ls_error err = LS_ERROR_INIT;

    (void)ls_assign(f.c, g.v, ls_read(f.c, f.v));
    LST_OK(ls_context_finish(f.c, &err));
    (void)ls_variable_scatter(f.c, f.v, LS_SCATTER_ADD,
                              ls_constant(f.c, LS_I32, LS_SHAPE(1), (int32_t[]){0}),
                              ls_constant(f.c, LS_F32, LS_SHAPE(1), (float[]){10}));
    LST_CHECK(at(ls_read(f.c, f.v), 0) == 11 && at(ls_read(f.c, g.v), 0) == 1);
    LST_OK(ls_context_finish(f.c, &err));
    teardown(f);
    teardown(g);
}

LST_TEST(scatter_changes_the_named_rows_in_order)
{
    static const float want[][3] = {{9, 2, 7},        {3, 2, 12}, {-1, 2, -6}, {2, 2, 60},
                                    {0.5f, 2, 0.15f}, {1, 2, 3},  {2, 2, 5}};
    ls_error err = LS_ERROR_INIT;

    for (int op = LS_SCATTER_UPDATE; op <= LS_SCATTER_MAX; op++) {
        struct fixture f = setup(3, (const float[]){1, 2, 3});
        static const float updates[][3] = {{4, 9, 7}, {4, 2, 5}, {4, 2, 5}, {4, 2, 5},
                                           {4, 2, 5}, {4, 2, 5}, {4, 2, 5}};
        ls_tensor *i = ls_constant(f.c, LS_I64, LS_SHAPE(3), (int64_t[]){2, 0, 2});
        ls_tensor *u = ls_constant(f.c, LS_F32, LS_SHAPE(3), updates[op]);
        ls_tensor *t = ls_variable_scatter(f.c, f.v, (ls_scatter_op)op, i, u);

        for (int k = 0; k < 3; k++) {
            LST_CHECK(lst_near((double)at(t, k), (double)want[op][k], 1e-6, 0));
        }
        LST_OK(ls_context_finish(f.c, &err));
        teardown(f);
    }
}

LST_TEST(a_scatter_outside_changes_nothing)
{
    struct fixture f = setup(3, (const float[]){1, 2, 3});
    ls_error err = LS_ERROR_INIT;
    ls_tensor *i = ls_constant(f.c, LS_I32, LS_SHAPE(2), (int32_t[]){0, 3});
    ls_tensor *u = ls_constant(f.c, LS_F32, LS_SHAPE(2), (float[]){8, 8});

    (void)ls_variable_scatter(f.c, f.v, LS_SCATTER_UPDATE, i, u);
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err, "index 3 at 1");
    (void)ls_read(f.c, f.v); // not in place: the value is in use
    i = ls_constant(f.c, LS_I32, LS_SHAPE(2), (int32_t[]){0, -1});
    u = ls_constant(f.c, LS_F32, LS_SHAPE(2), (float[]){8, 8});
    (void)ls_variable_scatter(f.c, f.v, LS_SCATTER_UPDATE, i, u);
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err,
              "scatter: index -1 at 1 is outside [0, 3)");
    i = ls_constant(f.c, LS_I32, LS_SHAPE(1), (int32_t[]){0});
    u = ls_constant(f.c, LS_F32, LS_SHAPE(2), (float[]){8, 8});
    (void)ls_variable_scatter(f.c, f.v, LS_SCATTER_UPDATE, i, u);
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err, "updates");
    LST_CHECK(at(ls_read(f.c, f.v), 0) == 1);
    teardown(f);
}

LST_TEST(gradients_of_two_reads_add_up)
{
    struct fixture f = setup(1, (const float[]){3});
    ls_error err = LS_ERROR_INIT;
    ls_tape *tape = ls_tape_open(f.c, NULL);
    ls_tensor *y = ls_mul(f.c, ls_read(f.c, f.v), ls_read(f.c, f.v));
    ls_tensor *g = NULL;

    ls_variable_gradients(f.c, tape, y, &f.v, 1, &g);
    LST_CHECK(at(g, 0) == 6);
    LST_OK(ls_context_finish(f.c, &err));
    teardown(f);
}

struct told {
    ls_tensor *grads[3];
    size_t order[3];
    size_t count;
};

static void note_final(void *user, size_t i)
{
    struct told *t = user;

    LST_CHECK((t->grads[i] != NULL) == (i != 2));
    t->order[t->count++] = i;
}

LST_TEST(gradients_of_variables_are_told_of_when_they_are_final)
{
    struct fixture f = setup(1, (const float[]){3}), g = setup(1, (const float[]){2});
    ls_variable *v[] = {f.v, g.v, NULL};
    struct told told = {{NULL}, {0}, 0};
    ls_error err = LS_ERROR_INIT;
    ls_tape *tape = ls_tape_open(f.c, NULL);
    ls_tensor *y = ls_square(f.c, ls_read(f.c, f.v));

    y = ls_mul(f.c, y, ls_read(f.c, g.v));
    LST_OK(ls_variable_create(ls_constant_f32(f.c, 1), NULL, &v[2], &err));
    lsi_variable_gradients_with(f.c, tape, y, v, 3, told.grads, note_final, &told);
    LST_CHECK(told.count == 3);
    LST_CHECK(told.order[0] == 2 && told.order[1] == 1 && told.order[2] == 0);
    LST_CHECK(at(told.grads[0], 0) == 12 && at(told.grads[1], 0) == 9);
    lsi_variable_gradients_with(f.c, tape, y, NULL, 3, told.grads, note_final, &told);
    LST_CHECK(told.count == 3);
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err, "variables");
    ls_variable_release(v[2]);
    teardown(g);
    teardown(f);
}

LST_TEST(scattered_integers_wrap_around)
{
    static const int32_t want[] = {INT32_MIN, INT32_MIN, INT32_MAX, 0, INT32_MIN};
    static const int32_t with[] = {INT32_MIN, 0, 1, 2, -1};
    ls_context *c = NULL;
    ls_tensor *start = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_context_open(NULL, NULL, &c, &err));
    LST_OK(ls_tensor_create(NULL, LS_I32, LS_SHAPE(1), (const int32_t[]){INT32_MIN},
                            &start, &err));
    for (int op = LS_SCATTER_UPDATE; op <= LS_SCATTER_DIV; op++) {
        ls_variable *v = NULL;
        ls_tensor *t;

        LST_OK(ls_variable_create(start, NULL, &v, &err));
        t = ls_variable_scatter(c, v, (ls_scatter_op)op,
                                ls_constant(c, LS_I64, LS_SHAPE(1), (int64_t[]){0}),
                                ls_constant(c, LS_I32, LS_SHAPE(1), &with[op]));
        LST_CHECK(t != NULL && *(const int32_t *)ls_tensor_data(t) == want[op]);
        ls_variable_release(v);
    }
    LST_OK(ls_context_finish(c, &err));
    ls_tensor_release(start);
    ls_context_close(c);
}

LST_TEST(rows_change_in_place_unless_the_value_is_held)
{
    struct fixture f = setup(300, NULL);
    ls_tensor *i = ls_constant(f.c, LS_I32, LS_SHAPE(1), (int32_t[]){7});
    ls_tensor *u = ls_constant(f.c, LS_F32, LS_SHAPE(1), (float[]){1});
    ls_tensor *held = NULL;
    const void *memory, *now;

    memory = f.v->buffer->data;
    for (int k = 0; k < 5; k++) {
        ls_variable_scatter_in_place(f.c, f.v, LS_SCATTER_ADD, i, u);
        now = f.v->buffer->data;
        LST_CHECK(now == memory);
    }
    LST_OK(ls_variable_value(f.v, &held, NULL));
    ls_variable_scatter_in_place(f.c, f.v, LS_SCATTER_ADD, i, u);
    now = f.v->buffer->data;
    LST_CHECK(now != memory && at(held, 7) == 5 && at(ls_read(f.c, f.v), 7) == 6);
    LST_OK(ls_context_finish(f.c, NULL));
    ls_tensor_release(held);
    teardown(f);
}

/* ---- literals: as in TensorFlow, except where a number does not fit ---- */

enum { TAKEN = -1, SCALAR = 0, TWO = 2 };

static const struct literal_case {
    ls_dtype dtype;
    int elements; // SCALAR: a shape without axes
    ls_assign_op op;
    char kind; // kind of the literal: int, float, bool or string
    double value;
    int error; // TAKEN, or the kind of the error
    double want;
} literal_cases[] = {
    {LS_I32, SCALAR, LS_ASSIGN, 'f', 3.5, LS_KIND_TYPE, 0},
    {LS_I32, SCALAR, LS_ASSIGN, 'f', 3, LS_KIND_TYPE, 0},
    {LS_I32, SCALAR, LS_ASSIGN_ADD, 'f', 0.9, LS_KIND_TYPE, 0},
    {LS_I64, SCALAR, LS_ASSIGN_SUB, 'f', 1, LS_KIND_TYPE, 0},
    {LS_BOOL, SCALAR, LS_ASSIGN, 'i', 1, LS_KIND_TYPE, 0},
    {LS_BOOL, SCALAR, LS_ASSIGN, 'f', 1, LS_KIND_TYPE, 0},
    {LS_BOOL, SCALAR, LS_ASSIGN_ADD, 'b', 1, LS_KIND_OP, 0},
    {LS_F32, SCALAR, LS_ASSIGN, 's', 0, LS_KIND_TYPE, 0},
    {LS_STRING, SCALAR, LS_ASSIGN, 'b', 1, LS_KIND_TYPE, 0},
    {LS_F32, TWO, LS_ASSIGN, 'f', 1, LS_KIND_VALUE, 0},
    {LS_F32, TWO, LS_ASSIGN_ADD, 'f', 1, LS_KIND_OP, 0},
    {LS_F32, TWO, LS_ASSIGN_SUB, 'i', 1, LS_KIND_OP, 0},
    {LS_F32, 1, LS_ASSIGN, 'f', 1, LS_KIND_VALUE, 0},
    {LS_I32, SCALAR, LS_ASSIGN, 'i', 1099511627776.0, LS_KIND_VALUE, 0}, // 2^40
    {LS_I32, SCALAR, LS_ASSIGN_ADD, 'i', 1099511627776.0, LS_KIND_VALUE, 0},
    {LS_I8, SCALAR, LS_ASSIGN, 'i', 300, LS_KIND_VALUE, 0},
    {LS_U8, SCALAR, LS_ASSIGN, 'i', -1, LS_KIND_VALUE, 0},
    {LS_U64, SCALAR, LS_ASSIGN, 'i', -1, LS_KIND_VALUE, 0},
    {LS_I8, SCALAR, LS_ASSIGN, 'i', -128, TAKEN, -128},
    {LS_U16, SCALAR, LS_ASSIGN, 'i', 65535, TAKEN, 65535},
    {LS_I32, SCALAR, LS_ASSIGN, 'b', 1, TAKEN, 1},
    {LS_I32, SCALAR, LS_ASSIGN_ADD, 'b', 1, TAKEN, 2},
    {LS_F32, SCALAR, LS_ASSIGN_ADD, 'b', 1, TAKEN, 2},
    {LS_F32, SCALAR, LS_ASSIGN, 'i', 16777217, TAKEN, 16777216},
    {LS_F16, SCALAR, LS_ASSIGN, 'f', 1e6, TAKEN, INFINITY},
    {LS_F32, SCALAR, LS_ASSIGN, 'f', 1e300, TAKEN, INFINITY},
    {LS_BF16, SCALAR, LS_ASSIGN, 'i', 3, TAKEN, 3},
    {LS_BOOL, SCALAR, LS_ASSIGN, 'b', 1, TAKEN, 1},
};

static ls_value *literal(char kind, double value)
{
    ls_value *v = NULL;

    switch (kind) {
    case 'i':
        LST_OK(ls_value_int((int64_t)value, &v, NULL));
        break;
    case 'f':
        LST_OK(ls_value_float(value, &v, NULL));
        break;
    case 'b':
        LST_OK(ls_value_bool(value != 0, &v, NULL));
        break;
    default:
        LST_OK(ls_value_string((ls_string){"x", 1}, &v, NULL));
    }
    return v;
}

/* All elements 1, for dtypes that have it. */
static ls_variable *of_ones(ls_dtype dtype, int elements)
{
    const int64_t dims[] = {elements};
    ls_tensor *t = NULL, *one = NULL;
    ls_context *c = NULL;
    ls_variable *v = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    LST_OK(
        ls_tensor_create(NULL, dtype, ls_shape_of(elements > 0, dims), NULL, &t, NULL));
    if (dtype != LS_STRING && dtype != LS_BOOL) {
        one = ls_cast(c, ls_constant_i64(c, 1), dtype);
        one = ls_add(c, t, one);
    }
    LST_OK(ls_variable_create(one != NULL ? one : t, NULL, &v, NULL));
    ls_tensor_release(t);
    ls_context_close(c);
    return v;
}

LST_TEST(a_literal_is_taken_or_refused_as_tensorflow_does)
{
    ls_context *c = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    for (size_t i = 0; i < LSI_COUNT_OF(literal_cases); i++) {
        const struct literal_case *k = &literal_cases[i];
        ls_variable *v = of_ones(k->dtype, k->elements);
        ls_value *x = literal(k->kind, k->value);
        ls_error err = LS_ERROR_INIT;
        ls_tensor *t = ls_variable_assign(c, v, k->op, x, false);

        if (k->error == TAKEN) {
            LST_CHECK(t != NULL && ls_tensor_dtype(t) == k->dtype);
            LST_CHECK(k->dtype == LS_BOOL || ls_item(c, t) == k->want);
            LST_OK(ls_context_finish(c, NULL));
        } else {
            LST_FAILS(ls_context_finish(c, &err), LS_INVALID_ARGUMENT, err, "");
            LST_CHECK(t == NULL && (int)err.kind == k->error);
        }
        ls_value_release(x);
        ls_variable_release(v);
    }
    ls_context_close(c);
}

LST_TEST(a_literal_integer_keeps_all_of_its_digits)
{
    static const int64_t big = INT64_MAX - 1;
    ls_variable *v[] = {of_ones(LS_I64, SCALAR), of_ones(LS_U64, SCALAR)};
    ls_context *c = NULL;
    ls_value *x = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    LST_OK(ls_value_int(big, &x, NULL));
    for (int i = 0; i < 2; i++) {
        const ls_tensor *t = ls_variable_assign(c, v[i], LS_ASSIGN, x, false);

        LST_CHECK(t != NULL && memcmp(ls_tensor_data(t), &big, sizeof big) == 0);
        ls_variable_release(v[i]);
    }
    LST_OK(ls_context_finish(c, NULL));
    ls_value_release(x);
    ls_context_close(c);
}

LST_TEST(adding_another_shape_is_an_error_of_the_operation)
{
    struct fixture f = setup(3, (const float[]){1, 2, 3});
    ls_error err = LS_ERROR_INIT;

    (void)ls_assign_add(f.c, f.v, ls_constant(f.c, LS_F32, LS_SHAPE(2), NULL));
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err, "assign_add");
    LST_CHECK(err.kind == LS_KIND_OP);
    (void)ls_assign_sub(f.c, f.v, ls_constant(f.c, LS_F32, LS_SHAPE(1), NULL));
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err, "(1,)");
    LST_CHECK(err.kind == LS_KIND_OP);
    (void)ls_assign_add(f.c, f.v, ls_constant(f.c, LS_I32, LS_SHAPE(3), NULL));
    LST_FAILS(ls_context_finish(f.c, &err), LS_INVALID_ARGUMENT, err, "int32");
    LST_CHECK(err.kind == LS_KIND_VALUE);
    teardown(f);
}

static ls_status create_plain(ls_error *err)
{
    ls_variable *v = NULL;
    ls_tensor *t = NULL;
    ls_status st = ls_tensor_create(NULL, LS_F32, LS_SHAPE(100), NULL, &t, err);

    if (st == LS_OK) {
        st = ls_variable_create(t, NULL, &v, err);
    }
    ls_tensor_release(t);
    ls_variable_release(v);
    return st;
}

LST_TEST(creating_survives_every_failing_allocation)
{
    lst_every_allocation(create_plain);
}

LST_MAIN(LST_CASE(a_tensor_that_was_read_keeps_its_value),
         LST_CASE(assigning_another_shape_or_dtype_is_refused_and_changes_nothing),
         LST_CASE(a_value_assigned_from_a_wrapped_tensor_is_copied),
         LST_CASE(two_variables_may_share_memory_and_still_part),
         LST_CASE(scatter_changes_the_named_rows_in_order),
         LST_CASE(a_scatter_outside_changes_nothing),
         LST_CASE(scattered_integers_wrap_around),
         LST_CASE(gradients_of_two_reads_add_up),
         LST_CASE(gradients_of_variables_are_told_of_when_they_are_final),
         LST_CASE(rows_change_in_place_unless_the_value_is_held),
         LST_CASE(a_literal_is_taken_or_refused_as_tensorflow_does),
         LST_CASE(a_literal_integer_keeps_all_of_its_digits),
         LST_CASE(adding_another_shape_is_an_error_of_the_operation),
         LST_CASE(creating_survives_every_failing_allocation))
