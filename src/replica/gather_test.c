/* all_gather: axes, dtypes, sizes, and what it answers where it cannot. */
#include "replica_test.h"

#include "replica/replica.h"

struct wish {
    ls_dtype dtype;
    int axis;
    int64_t rows; /* of replica r: rows + r */
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
        const char *class; /* NULL: it is there */
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

LST_MAIN(LST_CASE(an_axis_that_is_not_there_has_the_class_of_tensorflow),
         LST_CASE(a_length_that_would_wrap_is_refused),
         LST_CASE(rows_of_every_number_are_summed_and_others_refused_by_their_dtype))
