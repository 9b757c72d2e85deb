/*
 * A worker waits for another one that does not come: because its run has failed, because
 * it has ended, because it aborts. Whatever the first one calls, it fails at once with a
 * message, and so does the next call.
 */
#include "ls_workers.h"

enum { REPLICAS = 2, MS_A_CALL = 60000 };

/* What worker 0 has and calls. */
struct objects {
    ls_variable *mean, *sum; /* written with MEAN; read with SUM */
    ls_optimizer *o;
};

typedef ls_status (*call)(const lst_worker *w, struct objects *x, ls_error *err);

/* ---- calls in replicas ---- */

static ls_tensor *two_rows(ls_context *c)
{
    return ls_constant(c, LS_F32, LS_SHAPE(2), (const float[]){1, 2});
}

static ls_value *reduce_in_replica(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    (void)user;
    return ls_value_of(c, ls_all_reduce(c, LS_SUM, two_rows(c)));
}

static ls_value *gather_in_replica(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    (void)user;
    return ls_value_of(c, ls_all_gather(c, two_rows(c), 0));
}

static ls_value *assign_in_replica(ls_context *c, ls_value *args, void *user)
{
    struct objects *x = user;

    (void)args;
    return ls_value_of(c, ls_assign_add(c, x->mean, two_rows(c)));
}

static ls_value *step_in_replica(ls_context *c, ls_value *args, void *user)
{
    struct objects *x = user;
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *loss = ls_sum(c, ls_square(c, ls_read(c, x->mean)), NULL, 0, false);

    (void)args;
    ls_optimizer_minimize(c, x->o, tape, loss, &x->mean, 1);
    return NULL;
}

static ls_status run_reduce(const lst_worker *w, struct objects *x, ls_error *err)
{
    return ls_strategy_run(w->strategy, reduce_in_replica, NULL, x, NULL, err);
}

static ls_status run_gather(const lst_worker *w, struct objects *x, ls_error *err)
{
    return ls_strategy_run(w->strategy, gather_in_replica, NULL, x, NULL, err);
}

static ls_status run_assign(const lst_worker *w, struct objects *x, ls_error *err)
{
    return ls_strategy_run(w->strategy, assign_in_replica, NULL, x, NULL, err);
}

static ls_status run_step(const lst_worker *w, struct objects *x, ls_error *err)
{
    return ls_strategy_run(w->strategy, step_in_replica, NULL, x, NULL, err);
}

/* ---- calls outside of replicas ---- */

static ls_status make_row(const ls_value_context *vc, void *user, ls_value **out,
                          ls_error *err)
{
    const float row[] = {1, 2};
    ls_tensor *t = NULL;
    ls_status st = ls_tensor_create(vc->device, LS_F32, LS_SHAPE(2), row, &t, err);

    (void)user;
    st = st == LS_OK ? ls_value_tensor(t, out, err) : st;
    ls_tensor_release(t);
    return st;
}

static ls_status combine(const lst_worker *w, bool gather, ls_error *err)
{
    ls_value *v = NULL, *out = NULL;
    ls_status st = ls_strategy_values(w->strategy, make_row, NULL, &v, err);

    if (st == LS_OK) {
        st = gather ? ls_strategy_gather(w->strategy, v, 0, &out, err)
                    : ls_strategy_reduce(w->strategy, LS_MEAN, v, LS_NO_AXIS, &out, err);
    }
    ls_value_release(v);
    ls_value_release(out);
    return st;
}

static ls_status reduce(const lst_worker *w, struct objects *x, ls_error *err)
{
    (void)x;
    return combine(w, false, err);
}

static ls_status gather(const lst_worker *w, struct objects *x, ls_error *err)
{
    (void)x;
    return combine(w, true, err);
}

static ls_status read_sum(const lst_worker *w, struct objects *x, ls_error *err)
{
    ls_tensor *t = NULL;
    const ls_status st = ls_variable_value(x->sum, &t, err);

    (void)w;
    ls_tensor_release(t);
    return st;
}

static ls_status create(const lst_worker *w, ls_synchronization sync, ls_variable **out,
                        ls_error *err)
{
    ls_variable_options opts = LS_VARIABLE_OPTIONS_INIT;
    const float start[] = {3, 4};
    ls_tensor *t = NULL;
    ls_status st = ls_scope_enter(w->strategy, err);

    if (st != LS_OK) {
        return st;
    }
    opts.synchronization = sync;
    opts.aggregation = sync == LS_SYNC_ON_READ ? LS_AGGREGATE_SUM : LS_AGGREGATE_MEAN;
    st = ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), start, &t, err);
    st = st == LS_OK ? ls_variable_create(t, &opts, out, err) : st;
    ls_scope_exit(w->strategy);
    ls_tensor_release(t);
    return st;
}

static ls_status create_another(const lst_worker *w, struct objects *x, ls_error *err)
{
    ls_variable *v = NULL;
    const ls_status st = create(w, LS_SYNC_AUTO, &v, err);

    (void)x;
    ls_variable_release(v);
    return st;
}

static const struct {
    const char *name;
    call call;
} CALLS[] = {
    {"all_reduce", run_reduce}, {"all_gather", run_gather}, {"assign", run_assign},
    {"reduce", reduce},         {"gather", gather},         {"read", read_sum},
    {"create", create_another}, {"step", run_step},
};

/* ---- what worker 1 does instead ---- */

typedef enum fate { RUN_FAILS, ENDS, ABORTS, FATES } fate;

static ls_value *fail_in_replica(ls_context *c, ls_value *args, void *user)
{
    (void)args;
    (void)user;
    if (ls_replica_id(c) == REPLICAS) { // the first of worker 1
        return ls_value_of(c, ls_context_fail(c, LS_DATA_LOSS, "no more of it"));
    }
    return NULL;
}

struct scene {
    fate fate;
    call call;
};

static ls_status lose(const lst_worker *w, fate how)
{
    ls_error err = LS_ERROR_INIT;

    if (how == RUN_FAILS) {
        LST_FAILS(ls_strategy_run(w->strategy, fail_in_replica, NULL, NULL, NULL, &err),
                  LS_DATA_LOSS, err, "no more of it");
    } else if (how == ABORTS) {
        ls_comm_abort(w->comm);
    }
    return LS_OK;
}

static void call_in_vain(const lst_worker *w, const struct scene *scene,
                         struct objects *x)
{
    static const ls_status codes[] = {LS_DATA_LOSS, LS_UNAVAILABLE, LS_ABORTED};
    ls_error first = LS_ERROR_INIT, second = LS_ERROR_INIT;
    const ls_status st = scene->call(w, x, &first);

    LST_FAILS(st, codes[scene->fate], first, "");
    LST_CHECK(first.message[0] != '\0');
    LST_CHECK(scene->call(w, x, &second) == st); // the group is broken for good
}

static ls_status play(const lst_worker *w, void *arg, ls_error *err)
{
    const struct scene *scene = arg;
    struct objects x = {NULL, NULL, NULL};
    ls_status st = create(w, LS_SYNC_ON_WRITE, &x.mean, err);

    st = st == LS_OK ? create(w, LS_SYNC_ON_READ, &x.sum, err) : st;
    st = st == LS_OK ? ls_sgd_create(NULL, &x.o, err) : st;
    if (st == LS_OK && w->index == 0) {
        call_in_vain(w, scene, &x);
    } else if (st == LS_OK) {
        st = lose(w, scene->fate);
    }
    ls_optimizer_release(x.o);
    ls_variable_release(x.sum);
    ls_variable_release(x.mean);
    return st;
}

static void lose_worker(fate worse)
{
    for (size_t i = 0; i < LSI_COUNT_OF(CALLS); i++) {
        const lst_workers how = {.workers = 2,
                                 .replicas = REPLICAS,
                                 .timeout_ms = MS_A_CALL,
                                 .stay = worse != ENDS};
        struct scene scene = {worse, CALLS[i].call};
        ls_error err = LS_ERROR_INIT;
        const int before = atomic_load(&lst_failures);

        LST_OK(lst_workers_try(&how, play, &scene, NULL, &err));
        if (atomic_load(&lst_failures) != before) {
            (void)fprintf(stderr, "the call: %s\n", CALLS[i].name);
        }
    }
}

LST_TEST(a_worker_whose_run_fails_is_not_waited_for)
{
    lose_worker(RUN_FAILS);
}

LST_TEST(a_worker_that_ends_is_not_waited_for)
{
    lose_worker(ENDS);
}

LST_TEST(a_worker_that_aborts_is_not_waited_for)
{
    lose_worker(ABORTS);
}

LST_MAIN(LST_CASE(a_worker_whose_run_fails_is_not_waited_for),
         LST_CASE(a_worker_that_ends_is_not_waited_for),
         LST_CASE(a_worker_that_aborts_is_not_waited_for))
