/*
 * Six replicas as 1 x 6, 2 x 3, 3 x 2 and 6 x 1 workers and replicas: what they compute
 * together is the same to the bit, and a failure is the same on all workers.
 */
#include "ls_workers.h"

#include "replica/replica.h"
#include "variable/variable.h"

enum { SYNC = 6, MOST = 48, ROOM = 1 << 12 };

static const int shapes[][2] = {{1, 6}, {2, 3}, {3, 2}, {6, 1}};

/* The results of one replica or of one worker, one after the other. */
typedef struct record {
    unsigned char bytes[ROOM];
    size_t size, n;
    size_t ends[MOST];
} record;

static void note_tensor(record *r, const ls_tensor *t)
{
    const ls_tensor *e = t != NULL && t->values != NULL ? t->values : t;

    LST_CHECK(t != NULL && r->n < MOST);
    if (t == NULL || r->n >= MOST) {
        return;
    }
    for (int part = 0; part < (t->values != NULL ? 2 : 1); part++) {
        const size_t bytes = ls_tensor_bytes(e);

        LST_CHECK(r->size + bytes + 1 <= ROOM);
        if (r->size + bytes + 1 <= ROOM) {
            r->bytes[r->size++] = e->dtype;
            memcpy(r->bytes + r->size, e->data, bytes);
            r->size += bytes;
        }
        e = t->indices;
    }
    r->ends[r->n++] = r->size;
}

static void note_value(record *r, ls_value *v)
{
    ls_tensor *t = ls_value_as_tensor(v);

    note_tensor(r, t);
    ls_value_release(v);
}

/* `rows` rows of two elements that depend on the id, of any floating dtype. */
static ls_tensor *data_of(ls_context *c, int id, int64_t rows, ls_dtype dtype)
{
    float x[64];
    uint64_t state = (uint64_t)id + 1;

    for (int64_t i = 0; i < 2 * rows; i++) {
        x[i] = lst_random_f32(&state, -3, 3);
    }
    return (ls_cast)(c, (ls_constant)(c, LS_F32, LS_SHAPE(rows, 2), x), dtype);
}

static ls_tensor *slices_of(ls_context *c, int id)
{
    const int64_t at[3] = {id % 3, 4, (int64_t)id};
    const ls_shape shape = LS_SHAPE(8, 2);
    const int64_t n = 1 + id % 3;

    return lsi_context_sparse(c, &shape, data_of(c, id + 50, n, LS_F32),
                              (ls_constant)(c, LS_I64, LS_SHAPE(n), at));
}

/* ---- in replicas ---- */

typedef struct model {
    ls_variable *mean, *sum, *rows, *read;
    record *records; /* by id */
} model;

static ls_variable *variable_of(const char *name, ls_synchronization sync,
                                ls_aggregation aggregation, int chief)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    ls_error e = LS_ERROR_INIT;
    ls_tensor *start = NULL;
    ls_variable *v = NULL;
    float x[16];

    for (int i = 0; i < 16; i++) {
        x[i] = (float)(i + 100 * chief); // what the chief begins with counts
    }
    opts.name = name;
    opts.synchronization = sync;
    opts.aggregation = aggregation;
    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(8, 2), x, &start, &e));
    LST_OK(ls_variable_create(start, &opts, &v, &e));
    ls_tensor_release(start);
    return v;
}

static void use_tensors(ls_context *c, int id, record *r)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_F16, LS_BF16, LS_I32, LS_I8};

    for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
        note_tensor(r, (ls_all_reduce)(c, LS_SUM, data_of(c, id, 5, dtypes[d])));
        note_tensor(r, (ls_all_reduce)(c, LS_MEAN, data_of(c, id, 5, dtypes[d])));
    }
    note_tensor(r, (ls_all_gather)(c, data_of(c, id, id % 3, LS_F32), 0));
    note_tensor(r, (ls_all_gather)(c, data_of(c, id, 2, LS_I32), -1));
    note_tensor(r, (ls_all_reduce)(c, LS_SUM, slices_of(c, id)));
    note_tensor(r, (ls_all_reduce)(c, LS_MEAN, slices_of(c, id)));
}

static void use_tapes(ls_context *c, int id, record *r)
{
    ls_tape *tape = (ls_tape_open)(c, NULL);
    ls_tensor *x = data_of(c, id, 3, LS_F32), *g = NULL;

    (ls_tape_watch)(c, tape, x);
    g = (ls_all_gather)(c, (ls_square)(c, x), 0);
    g = (ls_add)(c, (ls_sum)(c, (ls_mul)(c, g, g), NULL, 0, false),
                 (ls_sum)(c, (ls_all_reduce)(c, LS_MEAN, x), NULL, 0, false));
    note_tensor(r, (ls_gradient)(c, tape, g, x));
}

static void use_variables(ls_context *c, model *m, int id, record *r)
{
    note_tensor(r, (ls_assign_add)(c, m->mean, data_of(c, id, 8, LS_F32)));
    note_tensor(r, (ls_assign)(c, m->sum, data_of(c, id + 7, 8, LS_F32)));
    (void)(ls_assign_add)(c, m->read, data_of(c, id + 9, 8, LS_F32));
    note_tensor(r, (ls_variable_scatter)(c, m->rows, LS_SCATTER_ADD,
                                         slices_of(c, id)->indices,
                                         slices_of(c, id)->values));
}

static ls_value *step(ls_context *c, ls_value *args, void *user)
{
    model *m = user;
    const int id = ls_replica_id(c);
    record *r = &m->records[id];

    (void)args;
    LST_CHECK(ls_replica_count(c) == SYNC);
    use_tensors(c, id, r);
    use_tapes(c, id, r);
    use_variables(c, m, id, r);
    return ls_value_of(c, data_of(c, id, 1 + id % 2, LS_F32));
}

/* ---- outside of replicas ---- */

static void use_strategy(const lst_worker *w, ls_value *rows, record *r)
{
    const int axes[] = {0};
    ls_value *out = NULL;
    ls_error e = LS_ERROR_INIT;

    LST_OK(ls_strategy_gather(w->strategy, rows, 0, &out, &e));
    note_value(r, out);
    for (int op = LS_SUM; op <= LS_MEAN; op++) {
        out = NULL;
        LST_OK(
            ls_strategy_reduce_axes(w->strategy, (ls_reduce)op, rows, axes, 1, &out, &e));
        note_value(r, out);
    }
}

typedef struct all_records {
    record replica[SYNC], worker[SYNC];
} all_records;

static ls_status work(const lst_worker *w, void *arg, ls_error *err)
{
    all_records *all = arg;
    model m = {.records = all->replica};
    record *r = &all->worker[w->index];
    ls_value *rows = NULL;
    ls_tensor *t = NULL;
    ls_status st = ls_scope_enter(w->strategy, err);

    LST_OK(st);
    m.mean = variable_of("mean", LS_SYNC_AUTO, LS_AGGREGATE_MEAN, w->index);
    m.sum = variable_of("sum", LS_SYNC_AUTO, LS_AGGREGATE_SUM, w->index);
    m.rows = variable_of("rows", LS_SYNC_AUTO, LS_AGGREGATE_SUM, w->index);
    m.read = variable_of("read", LS_SYNC_ON_READ, LS_AGGREGATE_MEAN, w->index);
    for (int i = 0; i < 2; i++) {
        st = ls_strategy_run(w->strategy, step, NULL, &m, &rows, err);
        LST_OK(st);
        if (st == LS_OK) {
            use_strategy(w, rows, r);
        }
        ls_value_release(rows);
        rows = NULL;
    }
    LST_OK(ls_variable_value(m.read, &t, err));
    note_tensor(r, t);
    ls_tensor_release(t);
    ls_scope_exit(w->strategy);
    ls_variable_release(m.mean);
    ls_variable_release(m.sum);
    ls_variable_release(m.rows);
    ls_variable_release(m.read);
    return st;
}

static void compare(const record *a, const record *b, const char *whose, int i)
{
    const bool same =
        a->n == b->n && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;

    LST_CHECK(same);
    for (size_t k = 0; k < a->n && !same; k++) {
        const size_t begin = k > 0 ? a->ends[k - 1] : 0;

        if (a->ends[k] != b->ends[k] ||
            memcmp(a->bytes + begin, b->bytes + begin, a->ends[k] - begin) != 0) {
            (void)fprintf(stderr, "%s %d differs in result %zu\n", whose, i, k);
            return;
        }
    }
}

LST_TEST(how_replicas_are_spread_over_workers_changes_no_bit)
{
    all_records *first = calloc(1, sizeof *first), *other = calloc(1, sizeof *other);

    for (size_t s = 0; s < LSI_COUNT_OF(shapes) && first != NULL && other != NULL; s++) {
        memset(other, 0, sizeof *other);
        lst_workers_run(shapes[s][0], shapes[s][1], work, s == 0 ? first : other);
        for (int id = 0; id < SYNC && s > 0; id++) {
            compare(&first->replica[id], &other->replica[id], "replica", id);
        }
        for (int w = 0; w < shapes[s][0] && s > 0; w++) {
            compare(&first->worker[0], &other->worker[w], "worker", w);
        }
    }
    free(first);
    free(other);
}

/* ---- failures ---- */

/* One sum over all replicas; replica `bad` of the sync group (-1: none) fails before. */
static ls_value *sums_unless_bad(ls_context *c, ls_value *args, void *user)
{
    const int *bad = user;

    (void)args;
    if (ls_replica_id(c) == *bad) {
        return (ls_value *)(void *)ls_context_fail(c, LS_DATA_LOSS, "replica %d is bad",
                                                   *bad);
    }
    return ls_value_of(c, (ls_all_reduce)(c, LS_SUM, (ls_constant_f32)(c, 1)));
}

static ls_status fails_in_a_run(const lst_worker *w, void *arg, ls_error *err)
{
    int bad = -1;

    (void)arg;
    LST_OK(ls_strategy_run(w->strategy, sums_unless_bad, NULL, &bad, NULL, err));
    bad = w->workers * w->replicas - 1;
    LST_FAILS(ls_strategy_run(w->strategy, sums_unless_bad, NULL, &bad, NULL, err),
              LS_DATA_LOSS, *err, "is bad");
    LST_CHECK(err->rank == bad);
    bad = -1; // the group of the workers is broken, for good
    LST_FAILS(ls_strategy_run(w->strategy, sums_unless_bad, NULL, &bad, NULL, err),
              LS_DATA_LOSS, *err, "is bad");
    return LS_OK;
}

LST_TEST(a_run_that_fails_on_one_worker_fails_on_all_and_breaks_their_group)
{
    lst_workers_run(2, 1, fails_in_a_run, NULL);
    lst_workers_run(2, 2, fails_in_a_run, NULL);
    lst_workers_run(3, 2, fails_in_a_run, NULL);
}

static ls_value *returns_row(ls_context *c, ls_value *args, void *user)
{
    const float row[2] = {1, 2};

    (void)args;
    (void)user;
    return ls_value_of(c, (ls_constant)(c, LS_F32, LS_SHAPE(2), row));
}

static ls_status fails_outside(const lst_worker *w, void *arg, ls_error *err)
{
    ls_value *rows = NULL, *out = NULL;
    const int last = w->workers - 1;

    (void)arg;
    LST_OK(ls_strategy_run(w->strategy, returns_row, NULL, NULL, &rows, err));
    LST_FAILS(ls_strategy_reduce(w->strategy, LS_SUM, rows, w->index == last ? 7 : 0,
                                 &out, err),
              LS_INVALID_ARGUMENT, *err, "no axis 7");
    LST_OK(ls_strategy_reduce(w->strategy, LS_SUM, rows, 0, &out, err));
    LST_CHECK(lsi_element(ls_value_as_tensor(out), 0) == 3.0 * w->workers * w->replicas);
    ls_value_release(out);
    ls_value_release(rows);
    return LS_OK;
}

LST_TEST(a_call_outside_of_replicas_that_fails_on_one_worker_fails_on_all)
{
    lst_workers_run(2, 1, fails_outside, NULL);
    lst_workers_run(3, 2, fails_outside, NULL);
}

static ls_status create(const char *name, ls_shape shape, ls_variable **out,
                        ls_error *err)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    ls_tensor *start = NULL;
    ls_status st = ls_tensor_create(NULL, LS_F32, shape, NULL, &start, err);

    opts.name = name;
    if (st == LS_OK) {
        st = ls_variable_create(start, &opts, out, err);
    }
    ls_tensor_release(start);
    return st;
}

static ls_status creates_others(const lst_worker *w, void *arg, ls_error *err)
{
    const bool odd = w->index == 1;
    ls_variable *v = NULL;

    (void)arg;
    LST_OK(ls_scope_enter(w->strategy, err));
    LST_FAILS(create("w", odd ? LS_SHAPE(2) : LS_SHAPE(3), &v, err), LS_INVALID_ARGUMENT,
              *err, "worker 1 creates a variable of another shape");
    LST_FAILS(create(odd ? "a" : "b", LS_SHAPE(2), &v, err), LS_INVALID_ARGUMENT, *err,
              "another name");
    LST_OK(create("w", LS_SHAPE(2), &v, err));
    ls_variable_release(v);
    ls_scope_exit(w->strategy);
    return LS_OK;
}

LST_TEST(workers_that_create_different_variables_all_fail)
{
    lst_workers_run(2, 1, creates_others, NULL);
    lst_workers_run(3, 2, creates_others, NULL);
}

/* Each replica gives rows of another width: the gathering fails alike on all workers. */
static ls_value *gathers_widths(ls_context *c, ls_value *args, void *user)
{
    const int64_t width = *(const bool *)user ? 1 + ls_replica_id(c) : 2;
    const ls_shape shape = LS_SHAPE(1, width);

    (void)args;
    return ls_value_of(c, (ls_all_gather)(c, lsi_fill(c, LS_F32, &shape, 1), 0));
}

static ls_status gathers_unlike(const lst_worker *w, void *arg, ls_error *err)
{
    bool unlike = true;

    (void)arg;
    LST_FAILS(ls_strategy_run(w->strategy, gathers_widths, NULL, &unlike, NULL, err),
              LS_INVALID_ARGUMENT, *err, "may differ along the axis only");
    return LS_OK;
}

LST_TEST(tensors_of_other_workers_are_checked_as_those_of_local_peers)
{
    lst_workers_run(1, 4, gathers_unlike, NULL);
    lst_workers_run(2, 2, gathers_unlike, NULL);
    lst_workers_run(4, 1, gathers_unlike, NULL);
}

LST_MAIN(LST_CASE(how_replicas_are_spread_over_workers_changes_no_bit),
         LST_CASE(a_run_that_fails_on_one_worker_fails_on_all_and_breaks_their_group),
         LST_CASE(a_call_outside_of_replicas_that_fails_on_one_worker_fails_on_all),
         LST_CASE(workers_that_create_different_variables_all_fail),
         LST_CASE(tensors_of_other_workers_are_checked_as_those_of_local_peers))
