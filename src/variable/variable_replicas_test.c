/* Variables with copies: every dtype, every aggregation, and replicas that disagree. */
#include "replica/replica_test.h"
#include "variable/variable.h"

enum { REPLICAS = 2, ELEMENTS = 300 }; // more than a tensor carries inside itself

/* A tensor of `ELEMENTS` times x, made outside of any step. */
static ls_tensor *filled(ls_dtype dtype, double x)
{
    ls_context *c = NULL;
    ls_shape shape = LS_SHAPE(ELEMENTS);
    ls_tensor *t;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    t = ls_tensor_retain(lsi_fill(c, dtype, &shape, x));
    ls_context_close(c);
    return t;
}

static ls_status make_in(const mirror *m, const ls_tensor *start,
                         const ls_variable_options *opts, ls_variable **out,
                         ls_error *err)
{
    ls_status st;

    LST_OK(ls_scope_enter(m->s, err));
    st = ls_variable_create(start, opts, out, err);
    ls_scope_exit(m->s);
    return st;
}

/* All elements of copy `k` are `x`. */
static bool copy_is(const ls_variable *v, size_t k, double x)
{
    ls_tensor *t = NULL;
    bool same = ls_variable_value(ls_variable_component(v, k), &t, NULL) == LS_OK;

    for (int64_t i = 0; same && i < t->count; i++) {
        same = lsi_element(t, i) == x;
    }
    ls_tensor_release(t);
    return same;
}

/* ---- dtypes ---- */

/* Replica r assigns r + 1: true, for bools, on both. */
static ls_value *assign_own(ls_context *c, ls_value *args, void *user)
{
    ls_variable *v = user;
    const ls_shape shape = ls_variable_shape(v);

    (void)args;
    (void)ls_assign(c, v,
                    lsi_fill(c, ls_variable_dtype(v), &shape, 1 + ls_replica_id(c)));
    return NULL;
}

/* What the copies of a number hold after assign_own(). */
static void check_assigned(const ls_variable *v)
{
    const bool kept_apart = ls_variable_synchronization(v) == LS_SYNC_ON_READ;
    const bool is_bool = ls_variable_dtype(v) == LS_BOOL;
    const double own[] = {1, is_bool ? 1 : 2};

    for (size_t k = 0; k < REPLICAS; k++) {
        double want = own[k];

        if (!kept_apart && ls_variable_aggregation(v) == LS_AGGREGATE_SUM) {
            want = 3;
        } else if (!kept_apart && ls_variable_aggregation(v) == LS_AGGREGATE_MEAN) {
            want = 1.5;
        } else if (!kept_apart &&
                   ls_variable_aggregation(v) == LS_AGGREGATE_ONLY_FIRST_REPLICA) {
            want = 1;
        }
        LST_CHECK(copy_is(v, k, want));
    }
}

/* The read outside of replicas, of copies that all hold 1. */
static void check_read(ls_variable *v, bool sums)
{
    ls_error e = LS_ERROR_INIT;
    ls_tensor *t = NULL;

    if (ls_variable_synchronization(v) == LS_SYNC_ON_READ &&
        ls_variable_aggregation(v) == LS_AGGREGATE_NONE) {
        LST_FAILS(ls_variable_value(v, &t, &e), LS_INVALID_ARGUMENT, e, "aggregation");
    } else if (sums && !lsi_dtype_is_number(ls_variable_dtype(v))) {
        LST_FAILS(ls_variable_value(v, &t, &e), LS_INVALID_ARGUMENT, e,
                  ls_dtype_name(ls_variable_dtype(v)));
        LST_FAILS(ls_variable_save(v, &t, &e), LS_INVALID_ARGUMENT, e, "'v'");
        LST_CHECK(e.kind == LS_KIND_OP);
    } else {
        LST_OK(ls_variable_value(v, &t, &e));
        LST_CHECK(
            t != NULL &&
            lsi_element(t, ELEMENTS - 1) ==
                (sums && ls_variable_aggregation(v) == LS_AGGREGATE_SUM ? REPLICAS : 1));
        ls_tensor_release(t);
    }
}

static void check_variable(const mirror *m, ls_dtype dtype, ls_synchronization sync,
                           ls_aggregation aggregation)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    const bool mean = aggregation == LS_AGGREGATE_MEAN;
    const bool sums =
        sync == LS_SYNC_ON_READ && (mean || aggregation == LS_AGGREGATE_SUM);
    ls_error e = LS_ERROR_INIT;
    ls_tensor *one = filled(dtype, 1);
    ls_variable *v = NULL;

    opts.name = "v";
    opts.synchronization = sync;
    opts.aggregation = aggregation;
    if (mean && !lsi_dtype_is_float(dtype)) {
        LST_FAILS(make_in(m, one, &opts, &v, &e), LS_INVALID_ARGUMENT, e,
                  ls_dtype_name(dtype));
        ls_tensor_release(one);
        return;
    }
    LST_OK(make_in(m, one, &opts, &v, &e));
    check_read(v, sums);
    if (sums && dtype == LS_BOOL) {
        LST_FAILS(ls_variable_set(v, one, &e), LS_INVALID_ARGUMENT, e, "'v'");
        LST_CHECK(e.kind == LS_KIND_TYPE);
    } else {
        LST_OK(ls_variable_set(v, one, &e));
    }
    if (aggregation == LS_AGGREGATE_SUM && !sums && dtype == LS_BOOL) {
        LST_FAILS(ls_strategy_run(m->s, assign_own, NULL, v, NULL, &e),
                  LS_INVALID_ARGUMENT, e, "bool");
    } else {
        LST_OK(ls_strategy_run(m->s, assign_own, NULL, v, NULL, &e));
        check_assigned(v);
    }
    ls_variable_release(v);
    ls_tensor_release(one);
}

LST_TEST(every_dtype_is_read_and_written_by_every_aggregation_or_refused_by_name)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I8,
                                      LS_I16, LS_I32, LS_I64, LS_U8,   LS_U16,
                                      LS_U32, LS_U64, LS_BOOL};
    mirror m = mirror_of(REPLICAS, false);

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        for (int a = LS_AGGREGATE_NONE; a <= LS_AGGREGATE_ONLY_FIRST_REPLICA; a++) {
            check_variable(&m, dtypes[d], LS_SYNC_AUTO, (ls_aggregation)a);
            check_variable(&m, dtypes[d], LS_SYNC_ON_READ, (ls_aggregation)a);
        }
    }
    mirror_end(&m);
}

LST_TEST(rows_of_every_dtype_are_added_without_touching_their_neighbours)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I8,
                                      LS_I16, LS_I32, LS_I64, LS_U8,   LS_U16,
                                      LS_U32, LS_U64, LS_BOOL};
    ls_context *c = NULL;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        const bool is_bool = dtypes[d] == LS_BOOL;
        ls_tensor *zero = filled(dtypes[d], 0), *t = NULL;
        ls_variable *v = NULL;
        const ls_shape two = LS_SHAPE(2);

        LST_OK(ls_variable_create(zero, NULL, &v, NULL));
        LST_OK(ls_tensor_create_slices(
            lsi_fill(c, dtypes[d], &two, 1),
            ls_constant(c, LS_I32, LS_SHAPE(2), (int32_t[]){ELEMENTS - 1, ELEMENTS - 1}),
            LS_SHAPE(ELEMENTS), &t, NULL));
        t = ls_assign(c, v, ls_adopt(c, t));
        LST_CHECK(t != NULL && lsi_element(t, ELEMENTS - 1) == (is_bool ? 1 : 2));
        LST_CHECK(t != NULL && lsi_element(t, ELEMENTS - 2) == 0);
        LST_CHECK(t != NULL && lsi_element(t, (ELEMENTS - 1) / 2) == 0);
        LST_OK(ls_context_finish(c, NULL));
        ls_variable_release(v);
        ls_tensor_release(zero);
    }
    ls_context_close(c);
}

LST_MAIN(
    LST_CASE(every_dtype_is_read_and_written_by_every_aggregation_or_refused_by_name),
    LST_CASE(rows_of_every_dtype_are_added_without_touching_their_neighbours))
