/*
 * Tests of variables with several components: every dtype, every aggregation, and
 * replicas that pass different arguments.
 */
#include "replica/replica_test.h"
#include "variable/variable.h"

enum { REPLICAS = 2, ELEMENTS = 300 }; // more than a tensor stores inline

/* A tensor of `ELEMENTS` times x, created outside of any step. */
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

/* True if all elements of copy `k` are `x`. */
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

/* The expected numbers in the copies after assign_own(). */
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

/* Reads outside of replicas, when all copies hold 1. */
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

struct same {
    ls_variable *v;
    ls_tensor *t;
};

/* Every replica assigns one tensor, the same for all. */
static ls_value *assign_same(ls_context *c, ls_value *args, void *user)
{
    const struct same *s = user;

    (void)args;
    (void)ls_assign(c, s->v, s->t);
    return NULL;
}

LST_TEST(one_value_of_all_replicas_has_a_sum_only_if_it_is_zero)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_BF16, LS_I32, LS_U8, LS_BOOL};
    mirror m = mirror_of(REPLICAS, false);
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;

    opts.name = "v";
    opts.aggregation = LS_AGGREGATE_SUM;
    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        ls_tensor *one = filled(dtypes[d], 1), *zero = filled(dtypes[d], 0), *t = NULL;
        struct same s = {NULL, zero};
        ls_error e = LS_ERROR_INIT;

        LST_OK(make_in(&m, one, &opts, &s.v, &e));
        LST_OK(ls_strategy_run(m.s, assign_same, NULL, &s, NULL, &e));
        LST_OK(ls_variable_value(s.v, &t, &e));
        LST_CHECK(lsi_element(t, 0) == 0 && lsi_element(t, ELEMENTS - 1) == 0);
        s.t = one;
        LST_FAILS(ls_strategy_run(m.s, assign_same, NULL, &s, NULL, &e),
                  LS_INVALID_ARGUMENT, e, "assign: 'v' sums the values of replicas");
        LST_CHECK(e.kind == LS_KIND_VALUE);
        ls_tensor_release(t);
        ls_tensor_release(one);
        ls_tensor_release(zero);
        ls_variable_release(s.v);
    }
    mirror_end(&m);
}

/* ---- strings ---- */

static ls_tensor *texts(const char *a, const char *b)
{
    const ls_string both[] = {{a, strlen(a)}, {b, strlen(b)}};
    ls_tensor *t = NULL;

    LST_OK(ls_tensor_create(NULL, LS_STRING, LS_SHAPE(2), both, &t, NULL));
    return t;
}

static bool holds_text(const ls_variable *v, const char *first)
{
    ls_tensor *t = NULL;
    const ls_string *s;
    bool same;

    LST_OK(ls_variable_value((ls_variable *)(uintptr_t)v, &t, NULL));
    s = ls_tensor_data(t);
    same = s[0].len == strlen(first) && memcmp(s[0].ptr, first, s[0].len) == 0;
    ls_tensor_release(t);
    return same;
}

/* Replica r assigns "r0" or "r1", and releases its tensor at once. */
static ls_value *assign_text(ls_context *c, ls_value *args, void *user)
{
    ls_tensor *t = ls_replica_id(c) == 0 ? texts("r0", "") : texts("r1", "");

    (void)args;
    (void)ls_assign(c, user, t);
    ls_tensor_release(t);
    return NULL;
}

LST_TEST(strings_are_kept_in_variables_that_own_them)
{
    ls_variable *v = NULL, *copy = NULL;
    ls_tensor *t = texts("one", "two"), *held = NULL;
    ls_context *c = NULL;
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_context_open(NULL, NULL, &c, NULL));
    LST_OK(ls_variable_create(t, NULL, &v, &e));
    ls_tensor_release(t);
    LST_CHECK(holds_text(v, "one"));
    LST_OK(ls_variable_value(v, &held, NULL));
    LST_OK(ls_variable_clone(v, &copy, &e));
    t = texts("longer than before", "");
    (void)ls_assign(c, v, t);
    ls_tensor_release(t);
    LST_OK(ls_context_finish(c, &e));
    LST_CHECK(holds_text(v, "longer than before") && holds_text(copy, "one"));
    LST_CHECK(((const ls_string *)ls_tensor_data(held))[0].len == 3);
    LST_CHECK(ls_assign_add(c, v, held) == NULL);
    LST_FAILS(ls_context_finish(c, &e), LS_INVALID_ARGUMENT, e, "string");
    (void)ls_variable_scatter(c, v, LS_SCATTER_UPDATE,
                              ls_constant(c, LS_I32, LS_SHAPE(1), NULL), held);
    LST_FAILS(ls_context_finish(c, &e), LS_UNIMPLEMENTED, e, "string");
    LST_CHECK(holds_text(v, "longer than before"));
    ls_tensor_release(held);
    ls_variable_release(v);
    ls_variable_release(copy);
    ls_context_close(c);
}

LST_TEST(strings_are_mirrored_and_cannot_be_summed)
{
    mirror m = mirror_of(REPLICAS, false);

    for (int a = LS_AGGREGATE_NONE; a <= LS_AGGREGATE_ONLY_FIRST_REPLICA; a++) {
        for (int on_read = 0; on_read < 2; on_read++) {
            ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
            const bool first = a == LS_AGGREGATE_ONLY_FIRST_REPLICA && !on_read;
            ls_tensor *t = texts("both", "");
            ls_variable *v = NULL;
            ls_error e = LS_ERROR_INIT;

            opts.aggregation = (ls_aggregation)a;
            opts.synchronization = on_read ? LS_SYNC_ON_READ : LS_SYNC_AUTO;
            if (a == LS_AGGREGATE_MEAN) {
                LST_FAILS(make_in(&m, t, &opts, &v, &e), LS_INVALID_ARGUMENT, e,
                          "string");
                ls_tensor_release(t);
                continue;
            }
            LST_OK(make_in(&m, t, &opts, &v, &e));
            if (a == LS_AGGREGATE_SUM && on_read) {
                ls_tensor *none = NULL;

                LST_FAILS(ls_variable_value(v, &none, &e), LS_INVALID_ARGUMENT, e,
                          "string");
            } else if (a != LS_AGGREGATE_NONE || !on_read) {
                LST_CHECK(holds_text(v, "both"));
            }
            if (a == LS_AGGREGATE_SUM && !on_read) {
                LST_FAILS(ls_strategy_run(m.s, assign_text, NULL, v, NULL, &e),
                          LS_INVALID_ARGUMENT, e, "string");
                LST_CHECK(holds_text(ls_variable_component(v, 1), "both"));
            } else {
                LST_OK(ls_strategy_run(m.s, assign_text, NULL, v, NULL, &e));
                LST_CHECK(holds_text(ls_variable_component(v, 0), "r0"));
                LST_CHECK(holds_text(ls_variable_component(v, 1), first ? "r0" : "r1"));
            }
            ls_variable_release(v);
            ls_tensor_release(t);
        }
    }
    mirror_end(&m);
}

/* ---- rows ---- */

/* One scatter, with the arguments of replica 0 and of replica 1. */
struct scatter {
    ls_variable *v[REPLICAS];
    ls_scatter_op op[REPLICAS];
    ls_shape indices[REPLICAS];
    ls_shape updates[REPLICAS];
    ls_dtype dtype[REPLICAS]; // dtype of the indices
    int64_t rows[REPLICAS][4];
    bool own_context;
    ls_error seen[REPLICAS];
};

static ls_value *scatter_own(ls_context *c, ls_value *args, void *user)
{
    struct scatter *s = user;
    const int r = ls_replica_id(c);
    const ls_shape *shape = &s->indices[r];
    ls_context *with = c;
    ls_tensor *indices;

    (void)args;
    if (s->own_context) {
        LST_OK(ls_context_open(NULL, NULL, &with, NULL));
    }
    indices = ls_cast(with, ls_constant(with, LS_I64, *shape, s->rows[r]), s->dtype[r]);
    (void)ls_variable_scatter(with, s->v[r], s->op[r], indices,
                              lsi_fill(with, LS_F32, &s->updates[r], 1 + r));
    (void)ls_context_status(c, &s->seen[r]);
    if (s->own_context) {
        ls_context_close(with);
    }
    return NULL;
}

/* Two rows of a (4, 3) variable on each replica. */
static struct scatter two_rows(ls_variable *v)
{
    return (struct scatter){{v, v},
                            {LS_SCATTER_ADD, LS_SCATTER_ADD},
                            {LS_SHAPE(2), LS_SHAPE(2)},
                            {LS_SHAPE(2, 3), LS_SHAPE(2, 3)},
                            {LS_I64, LS_I64},
                            {{0, 1}, {1, 3}},
                            false,
                            {LS_ERROR_INIT, LS_ERROR_INIT}};
}

static ls_variable *table(const mirror *m, ls_shape shape, ls_aggregation aggregation)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    ls_tensor *zero = NULL;
    ls_variable *v = NULL;

    opts.name = "table";
    opts.aggregation = aggregation;
    LST_OK(ls_tensor_create(NULL, LS_F32, shape, NULL, &zero, NULL));
    LST_OK(make_in(m, zero, &opts, &v, NULL));
    ls_tensor_release(zero);
    return v;
}

/* The first column of every copy. */
static void check_rows(const ls_variable *v, const double *want)
{
    for (size_t k = 0; k < REPLICAS; k++) {
        ls_tensor *t = NULL;

        LST_OK(ls_variable_value(ls_variable_component(v, k), &t, NULL));
        for (int64_t i = 0; i < 4; i++) {
            LST_CHECK(lsi_element(t, 3 * i) == want[i]);
            LST_CHECK(lsi_element(t, 3 * i + 2) == want[i]);
        }
        ls_tensor_release(t);
    }
}

static void scatters(const mirror *m, ls_variable *v, struct scatter s,
                     const double *want)
{
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_strategy_run(m->s, scatter_own, NULL, &s, NULL, &e));
    check_rows(v, want);
    for (size_t k = 0; k < REPLICAS; k++) { // resets it to zero
        ls_tensor *zero = NULL;

        LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(4, 3), NULL, &zero, NULL));
        LST_OK(ls_variable_set(ls_variable_component(v, k), zero, NULL));
        ls_tensor_release(zero);
    }
}

LST_TEST(rows_of_all_replicas_change_every_copy_whatever_the_shape_of_the_indices)
{
    mirror m = mirror_of(REPLICAS, false);
    ls_variable *sum = table(&m, LS_SHAPE(4, 3), LS_AGGREGATE_SUM);
    ls_variable *mean = table(&m, LS_SHAPE(4, 3), LS_AGGREGATE_MEAN);
    ls_variable *first = table(&m, LS_SHAPE(4, 3), LS_AGGREGATE_ONLY_FIRST_REPLICA);
    struct scatter s = two_rows(sum);

    scatters(&m, sum, s, (const double[]){1, 3, 0, 2});
    scatters(&m, mean, two_rows(mean), (const double[]){.5, 1.5, 0, 1});
    scatters(&m, first, two_rows(first), (const double[]){1, 1, 0, 0});
    s.own_context = true;
    scatters(&m, sum, s, (const double[]){1, 3, 0, 2});
    s = two_rows(sum);
    s.indices[0] = s.indices[1] = LS_SCALAR; // one row
    s.updates[0] = s.updates[1] = LS_SHAPE(3);
    scatters(&m, sum, s, (const double[]){1, 2, 0, 0});
    s = two_rows(sum);
    s.indices[1] = LS_SHAPE(2, 2); // indices of different shapes
    s.updates[1] = LS_SHAPE(2, 2, 3);
    s.dtype[1] = LS_I32;
    s.rows[1][2] = s.rows[1][3] = 3;
    scatters(&m, sum, s, (const double[]){1, 3, 0, 6});
    s = two_rows(sum);
    s.indices[0] = LS_SHAPE(0); // no rows on replica 0
    s.updates[0] = LS_SHAPE(0, 3);
    scatters(&m, sum, s, (const double[]){0, 2, 0, 2});
    ls_variable_release(sum);
    ls_variable_release(mean);
    ls_variable_release(first);
    mirror_end(&m);
}

/* Both replicas fail, and nothing has changed. */
static void refused(const mirror *m, ls_variable *v, struct scatter s, const char *word)
{
    static const double zero[4] = {0};
    ls_error e = LS_ERROR_INIT;

    LST_FAILS(ls_strategy_run(m->s, scatter_own, NULL, &s, NULL, &e), LS_INVALID_ARGUMENT,
              e, word);
    for (int r = 0; r < REPLICAS; r++) {
        LST_CHECK(s.seen[r].code == LS_INVALID_ARGUMENT);
        LST_CHECK(strstr(s.seen[r].message, word) != NULL);
    }
    if (v != NULL) {
        check_rows(v, zero);
    }
}

LST_TEST(rows_that_do_not_fit_on_one_replica_are_refused_on_all)
{
    static const ls_aggregation aggregations[] = {LS_AGGREGATE_SUM, LS_AGGREGATE_MEAN,
                                                  LS_AGGREGATE_ONLY_FIRST_REPLICA};
    mirror m = mirror_of(REPLICAS, false);

    for (size_t a = 0; a < LSI_COUNT_OF(aggregations); a++) {
        ls_variable *v = table(&m, LS_SHAPE(4, 3), aggregations[a]);
        ls_variable *other = table(&m, LS_SHAPE(4, 3), aggregations[a]);
        ls_variable *scalar = table(&m, LS_SCALAR, aggregations[a]);
        struct scatter s;

        for (int r = 0; r < REPLICAS; r++) {
            s = two_rows(v);
            s.updates[r] = LS_SHAPE(2, 30000);
            refused(&m, v, s, "30000");
            s = two_rows(v);
            s.rows[r][1] = 4;
            refused(&m, v, s, "index 4 at 1");
        }
        s = two_rows(scalar);
        s.updates[0] = s.updates[1] = LS_SCALAR;
        refused(&m, NULL, s, "'table'");
        s = two_rows(v);
        s.v[1] = other;
        refused(&m, v, s, "same calls");
        s = two_rows(v);
        s.op[1] = LS_SCATTER_SUB;
        refused(&m, v, s, "same calls");
        ls_variable_release(v);
        ls_variable_release(other);
        ls_variable_release(scalar);
    }
    mirror_end(&m);
}

/* ---- replicas that pass different arguments, and the memory they show ---- */

struct writes {
    ls_variable *v[REPLICAS];
    ls_value *literal;
    ls_error seen[REPLICAS];
};

static ls_value *assign_other(ls_context *c, ls_value *args, void *user)
{
    struct writes *w = user;
    const int r = ls_replica_id(c);

    (void)args;
    (void)ls_assign(c, w->v[r], ls_constant_f32(c, 1));
    (void)ls_context_status(c, &w->seen[r]);
    return NULL;
}

LST_TEST(replicas_that_assign_to_different_variables_fail)
{
    mirror m = mirror_of(REPLICAS, false);

    for (int a = LS_AGGREGATE_SUM; a <= LS_AGGREGATE_ONLY_FIRST_REPLICA; a++) {
        struct writes w = {{table(&m, LS_SCALAR, (ls_aggregation)a),
                            table(&m, LS_SCALAR, (ls_aggregation)a)},
                           NULL,
                           {LS_ERROR_INIT, LS_ERROR_INIT}};
        ls_error e = LS_ERROR_INIT;

        LST_FAILS(ls_strategy_run(m.s, assign_other, NULL, &w, NULL, &e),
                  LS_INVALID_ARGUMENT, e, "replica 0 writes 'table'");
        for (int r = 0; r < REPLICAS; r++) {
            LST_CHECK(w.seen[r].code == LS_INVALID_ARGUMENT);
            LST_CHECK(copy_is(w.v[r], 0, 0) && copy_is(w.v[r], 1, 0));
            ls_variable_release(w.v[r]);
        }
    }
    mirror_end(&m);
}

/* Overwrites the stack that the call before used. */
__attribute__((noinline)) static void scribble(void)
{
    volatile unsigned char stack[8192];

    for (size_t i = 0; i < sizeof stack; i++) {
        stack[i] = 0x41;
    }
}

static ls_value *assign_literal(ls_context *c, ls_value *args, void *user)
{
    struct writes *w = user;

    (void)args;
    (void)ls_variable_assign(c, w->v[0], LS_ASSIGN, w->literal, false);
    scribble();
    (void)ls_context_status(c, &w->seen[ls_replica_id(c)]);
    return NULL;
}

LST_TEST(memory_that_a_failed_replica_showed_can_still_be_read)
{
    mirror m = mirror_of(REPLICAS, true); // replica 0 has returned when replica 1 reads
    struct writes w = {{table(&m, LS_SCALAR, LS_AGGREGATE_SUM), NULL},
                       NULL,
                       {LS_ERROR_INIT, LS_ERROR_INIT}};
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_value_float(1, &w.literal, NULL));
    LST_FAILS(ls_strategy_run(m.s, assign_literal, NULL, &w, NULL, &e),
              LS_INVALID_ARGUMENT, e, "write the same value");
    for (int r = 0; r < REPLICAS; r++) { // each replica finds the difference
        LST_CHECK(strstr(w.seen[r].message, "write the same value") != NULL);
        LST_CHECK(w.seen[r].rank < 0);
    }
    ls_value_release(w.literal);
    ls_variable_release(w.v[0]);
    mirror_end(&m);
}

LST_MAIN(
    LST_CASE(every_dtype_is_read_and_written_by_every_aggregation_or_refused_by_name),
    LST_CASE(rows_of_every_dtype_are_added_without_touching_their_neighbours),
    LST_CASE(one_value_of_all_replicas_has_a_sum_only_if_it_is_zero),
    LST_CASE(strings_are_kept_in_variables_that_own_them),
    LST_CASE(strings_are_mirrored_and_cannot_be_summed),
    LST_CASE(rows_of_all_replicas_change_every_copy_whatever_the_shape_of_the_indices),
    LST_CASE(rows_that_do_not_fit_on_one_replica_are_refused_on_all),
    LST_CASE(replicas_that_assign_to_different_variables_fail),
    LST_CASE(memory_that_a_failed_replica_showed_can_still_be_read))
