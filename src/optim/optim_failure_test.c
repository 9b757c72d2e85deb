/*
 * Tests of steps that fail: in each stage, on each replica, with one worker and several.
 * Nothing has changed anywhere, all replicas return the same failure, and the next step
 * works.
 */
#include "step_test.h"

#include "os/thread.h"

enum { MOST = 4, STEPS = 2 };

typedef enum mistake {
    NONE,
    WRONG_DTYPE,    // a gradient does not fit its variable
    NO_GRADIENTS,   // at all
    OTHER_VARIABLE, // than the local peers pass
    OTHER_KIND,     // a gradient is missing on one replica only
    NO_TAPE,        // minimize() cannot compute the gradients
    NO_SLOT,        // a slot cannot be made
    NO_MEMORY,      // the n-th allocation in the step fails
    MISTAKES
} mistake;

struct layout {
    int workers, replicas;
};
static const struct layout layouts[] = {{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}};

struct trial {
    step_world world;
    bool minimize;
    int n;           // replicas of all workers
    mistake mistake; // that replica `who` makes in step `at`
    int who, at;
    int64_t nth;             // the allocation that fails
    atomic_bool reached;     // there was such an allocation
    atomic_int come, gone;   // replicas before and behind the call that may fail
    atomic_int left;         // replicas that go on, with memory again
    ls_error seen[MOST];     // by id
    bool whole[MOST];        // neither group was broken
    unsigned char *expected; // what every copy holds at the end
    size_t expected_bytes;
};

/* What a replica function works with. */
struct actor {
    struct trial *trial;
    step_model m;
    bool fails; // in this run
};

/* Waits until the replicas of all workers are here. */
static void meet(atomic_int *count, int n)
{
    (void)atomic_fetch_add(count, 1);
    while (atomic_load(count) < n) {
        lsi_yield();
    }
}

/* A loss whose gradients are constants. */
static ls_tensor *linear_loss(ls_context *c, const step_model *m)
{
    ls_tensor *loss = NULL;

    for (int k = 0; k < STEP_VARS; k++) {
        ls_tensor *part =
            (ls_sum)(c, (ls_mul)(c, (ls_read)(c, m->v[k]), step_gradient(c, m, k)), NULL,
                     0, false);

        loss = k == 0 ? part : (ls_add)(c, loss, part);
    }
    return loss;
}

static void call_step(ls_context *c, const struct actor *a, mistake mine)
{
    const step_model *m = &a->m;
    ls_variable *vars[] = {m->v[0], m->v[1], m->v[2]};
    ls_tensor *g[STEP_VARS];

    for (int k = 0; k < STEP_VARS; k++) {
        (void)(ls_read)(c, m->v[k]); // held until the run ends: written elsewhere
        g[k] = mine == NO_GRADIENTS ? NULL : step_gradient(c, m, k);
    }
    if (mine == WRONG_DTYPE) {
        g[0] = (ls_cast)(c, g[0], m->world->dtype == LS_F64 ? LS_F32 : LS_F64);
    } else if (mine == OTHER_VARIABLE) {
        vars[0] = m->v[2];
        vars[2] = m->v[0];
        g[0] = step_gradient(c, m, 2);
        g[2] = step_gradient(c, m, 0);
    } else if (mine == OTHER_KIND) {
        g[2] = NULL;
    }
    if (a->fails) {
        meet(&a->trial->come, a->trial->n);
    }
    if (mine == NO_MEMORY) {
        (void)lsi_alloc_fail_at(a->trial->nth);
    }
    (ls_optimizer_apply)(c, m->o, g, vars, STEP_VARS);
}

static void call_minimize(ls_context *c, const struct actor *a, mistake mine)
{
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *loss = linear_loss(c, &a->m);

    if (a->fails) {
        meet(&a->trial->come, a->trial->n);
    }
    if (mine == NO_MEMORY) {
        (void)lsi_alloc_fail_at(a->trial->nth);
    }
    (ls_optimizer_minimize)(c, a->m.o, mine == NO_TAPE ? NULL : tape, loss, a->m.v,
                            STEP_VARS);
}

static ls_value *step(ls_context *c, ls_value *args, void *user)
{
    const struct actor *a = user;
    struct trial *t = a->trial;
    const int id = ls_replica_id(c);
    const ls_strategy *s = ls_replica_strategy(c);
    const mistake mine = a->fails && id == t->who ? t->mistake : NONE;

    (void)args;
    if (t->minimize) {
        call_minimize(c, a, mine);
    } else {
        call_step(c, a, mine);
    }
    if (a->fails) { // no replica has ended yet: that would break the local group
        (void)ls_context_status(c, &t->seen[id]);
        t->whole[id] = !lsi_comm_broken(lsi_replica_of(c)->local) &&
                       (s->workers == NULL || !lsi_comm_broken(s->workers));
        meet(&t->gone, t->n);
        if (mine == NO_MEMORY) {
            atomic_store(&t->reached, lsi_alloc_fail_at(0) >= t->nth);
        }
        meet(&t->left, t->n);
    }
    return NULL;
}

static ls_status refuse_slot(void *user, ls_variable *of, const char *name,
                             double initial, ls_variable **out, ls_error *err)
{
    (void)user;
    (void)of;
    (void)initial;
    (void)out;
    return lsi_fail(err, LS_DATA_LOSS, -1, "no slot '%s' here", name);
}

/* ---- what must hold after a failure ---- */

/* The bytes of all copies of the variables, and of the slots if there are any. */
static size_t all_bytes(const step_model *m, unsigned char *out)
{
    size_t at = 0;

    for (int k = 0; k < m->worker->replicas; k++) {
        at += model_bytes(m, (size_t)k, out + at);
    }
    return at;
}

static void check_failure(const struct trial *t, const step_model *m, const ls_error *e)
{
    static const ls_status codes[MISTAKES] = {
        LS_OK,
        LS_INVALID_ARGUMENT,
        LS_INVALID_ARGUMENT,
        LS_INVALID_ARGUMENT,
        LS_INVALID_ARGUMENT,
        LS_FAILED_PRECONDITION,
        LS_DATA_LOSS,
        LS_RESOURCE_EXHAUSTED,
    };
    const int first = t->who / m->worker->replicas * m->worker->replicas;

    LST_CHECK(e->code == codes[t->mistake]);
    for (int id = 0; id < t->n; id++) {
        LST_CHECK(t->seen[id].code == e->code);
        LST_CHECK(strcmp(t->seen[id].message, e->message) == 0);
        LST_CHECK(t->whole[id]);
    }
    if (t->mistake == WRONG_DTYPE || t->mistake == NO_GRADIENTS ||
        t->mistake == NO_TAPE) {
        LST_CHECK(e->rank == t->who);
    } else if (t->mistake != NO_MEMORY) { // found by the first of the local peers
        LST_CHECK(e->rank == first);
    }
}

/* Slots that the failed step has made have their first values still. */
static void check_new_slots(const step_model *m)
{
    for (int k = 0; k < STEP_VARS; k++) {
        ls_variable *slot = ls_optimizer_slot(m->o, m->v[k], "momentum");

        for (int i = 0; slot != NULL && i < m->worker->replicas; i++) {
            const ls_variable *own = ls_variable_component(slot, (size_t)i);

            LST_CHECK(lsi_get_float(own->buffer->data, own->dtype, own->count - 1) == 0);
        }
    }
}

/* A step that fails; returns whether it did. */
static bool fail_step(struct actor *a)
{
    const lst_worker *w = a->m.worker;
    const bool slots = ls_optimizer_slot(a->m.o, a->m.v[0], "momentum") != NULL;
    const size_t room = (size_t)w->replicas * STEP_BYTES;
    unsigned char *before = malloc(2 * room), *after = before + room;
    ls_error e = LS_ERROR_INIT;
    size_t bytes;
    ls_status st;

    if (before == NULL) {
        abort();
    }
    if (a->trial->mistake == NO_SLOT && w->index == a->trial->who / w->replicas) {
        a->m.o->make_slot = refuse_slot;
    }
    bytes = all_bytes(&a->m, before);
    a->fails = true;
    st = ls_strategy_run(w->strategy, step, NULL, a, NULL, &e);
    a->fails = false;
    a->m.o->make_slot = lsi_slot_like;
    if (st != LS_OK) {
        check_failure(a->trial, &a->m, &e);
        LST_CHECK(ls_optimizer_iterations(a->m.o) == a->m.step);
        if (slots) {
            LST_CHECK(all_bytes(&a->m, after) == bytes);
            LST_CHECK(memcmp(before, after, bytes) == 0);
        } else {
            check_new_slots(&a->m);
        }
    }
    free(before);
    return st != LS_OK;
}

static ls_status train(const lst_worker *w, void *arg, ls_error *err)
{
    struct trial *t = arg;
    struct actor a = {.trial = t};
    unsigned char *bytes = malloc((size_t)w->replicas * STEP_BYTES);
    ls_status st = LS_OK;

    if (bytes == NULL) {
        abort();
    }
    open_model(&a.m, &t->world, w);
    while (a.m.step < STEPS && st == LS_OK) {
        const bool tries = t->mistake != NONE && a.m.step == t->at;

        if (tries && !fail_step(&a)) { // an allocation that a step can do without
            LST_CHECK(t->mistake == NO_MEMORY);
        } else {
            st = ls_strategy_run(w->strategy, step, NULL, &a, NULL, err);
        }
        a.m.step++;
        LST_CHECK(st != LS_OK || ls_optimizer_iterations(a.m.o) == a.m.step);
    }
    for (int k = 0; k < w->replicas && st == LS_OK; k++) {
        const size_t n = model_bytes(&a.m, (size_t)k, bytes);

        if (t->mistake == NONE && w->index == 0 && k == 0) {
            memcpy(t->expected, bytes, n);
            t->expected_bytes = n;
        } else if (t->mistake != NONE) {
            LST_CHECK(n == t->expected_bytes);
            LST_CHECK(memcmp(bytes, t->expected, n) == 0);
        }
    }
    free(bytes);
    close_model(&a.m);
    return st;
}

/* ---- the trials ---- */

static void run_trial(struct trial *t, struct layout l)
{
    atomic_store(&t->come, 0);
    atomic_store(&t->gone, 0);
    atomic_store(&t->left, 0);
    atomic_store(&t->reached, false);
    for (int id = 0; id < MOST; id++) {
        t->seen[id] = (ls_error)LS_ERROR_INIT;
    }
    t->n = l.workers * l.replicas;
    lst_workers_run(l.workers, l.replicas, train, t);
}

/* Takes the steps without a mistake, to know what every trial must end with. */
static void begin_trials(struct trial *t, struct layout l)
{
    t->expected = malloc(STEP_BYTES);
    if (t->expected == NULL) {
        abort();
    }
    t->expected_bytes = 0;
    t->mistake = NONE;
    run_trial(t, l);
}

static void try_mistakes(struct trial *t, struct layout l)
{
    begin_trials(t, l);
    for (int k = WRONG_DTYPE; k < NO_MEMORY; k++) {
        if ((k == NO_TAPE) != t->minimize ||
            (l.replicas == 1 && (k == OTHER_VARIABLE || k == OTHER_KIND))) {
            continue;
        }
        t->mistake = (mistake)k;
        for (t->who = 0; t->who < t->n; t->who++) {
            for (t->at = 0; t->at < (k == NO_SLOT ? 1 : STEPS); t->at++) {
                run_trial(t, l);
            }
        }
    }
    free(t->expected);
}

static const step_world worlds[] = {
    {.dtype = LS_F32, .adam = true},
    {.dtype = LS_F16, .adam = true, .shared = {.clipnorm = 1}},
    {.dtype = LS_F32, .adam = true, .sparse = 20, .shared = {.global_clipnorm = 1}},
    {.dtype = LS_F64, .adam = true, .apart = true, .sparse = 4},
    {.dtype = LS_BF16, .adam = true, .shared = {.clipnorm = 1, .keras3 = true}},
};

LST_TEST(a_mistake_of_one_replica_changes_nothing_on_any)
{
    for (size_t i = 0; i < LSI_COUNT_OF(worlds); i++) {
        for (size_t k = 0; k < LSI_COUNT_OF(layouts); k++) {
            struct trial t = {.world = worlds[i]};

            try_mistakes(&t, layouts[k]);
        }
    }
}

LST_TEST(a_backward_pass_that_fails_on_one_replica_is_the_failure_of_all)
{
    for (size_t k = 0; k < LSI_COUNT_OF(layouts); k++) {
        struct trial t = {.world = worlds[0], .minimize = true};

        try_mistakes(&t, layouts[k]);
    }
}

/* The first step, with each of its allocations failing in turn, on any replica. */
static void starve(struct trial *t, struct layout l)
{
    begin_trials(t, l);
    t->mistake = NO_MEMORY;
    t->nth = 0;
    do {
        t->nth++;
        t->who = (int)t->nth % t->n; // whose call begins to count
        run_trial(t, l);
    } while (atomic_load(&t->reached));
    LST_CHECK(t->nth > 10);
    free(t->expected);
}

LST_TEST(no_allocation_that_fails_changes_anything)
{
    for (size_t i = 0; i < LSI_COUNT_OF(worlds); i++) {
        for (size_t k = 0; k < LSI_COUNT_OF(layouts); k++) {
            struct trial t = {.world = worlds[i]};

            starve(&t, layouts[k]);
        }
    }
}

/* ---- a replica that has failed before the step ---- */

struct early {
    step_world world;
    int who;
};

struct early_actor {
    const struct early *early;
    step_model m;
    bool fails;
};

static ls_value *fail_before_step(ls_context *c, ls_value *args, void *user)
{
    const struct early_actor *a = user;
    ls_tensor *g[STEP_VARS];

    (void)args;
    for (int k = 0; k < STEP_VARS; k++) {
        g[k] = step_gradient(c, &a->m, k);
    }
    if (a->fails && ls_replica_id(c) == a->early->who) {
        (void)ls_context_fail(c, LS_NOT_FOUND, "lost before the step");
    }
    (ls_optimizer_apply)(c, a->m.o, g, a->m.v, STEP_VARS);
    return NULL;
}

static ls_status fail_early(const lst_worker *w, void *arg, ls_error *err)
{
    const size_t room = (size_t)w->replicas * STEP_BYTES;
    unsigned char *before = malloc(2 * room), *after = before + room;
    struct early_actor a = {.early = arg, .fails = true};
    ls_error e = LS_ERROR_INIT;
    ls_status st;
    size_t bytes;

    if (before == NULL) {
        abort();
    }
    open_model(&a.m, &a.early->world, w);
    LST_OK(ls_optimizer_build(a.m.o, a.m.v, STEP_VARS, NULL));
    bytes = all_bytes(&a.m, before);
    LST_FAILS(ls_strategy_run(w->strategy, fail_before_step, NULL, &a, NULL, &e),
              LS_NOT_FOUND, e, "lost before the step");
    LST_CHECK(e.rank == a.early->who);
    LST_CHECK(all_bytes(&a.m, after) == bytes && memcmp(before, after, bytes) == 0);
    LST_CHECK(ls_optimizer_iterations(a.m.o) == 0);
    a.fails = false;
    st = ls_strategy_run(w->strategy, fail_before_step, NULL, &a, NULL, &e);
    if (w->workers == 1) {
        LST_CHECK(st == LS_OK && ls_optimizer_iterations(a.m.o) == 1);
    } else { // the failure came outside of the step: the group is broken for good
        LST_CHECK(st == LS_NOT_FOUND && ls_optimizer_iterations(a.m.o) == 0);
    }
    (void)err;
    free(before);
    close_model(&a.m);
    return LS_OK;
}

LST_TEST(a_replica_that_failed_before_the_step_changes_nothing_on_the_others)
{
    for (size_t k = 0; k < LSI_COUNT_OF(layouts); k++) {
        const int n = layouts[k].workers * layouts[k].replicas;
        struct early e = {.world = worlds[0]};

        for (e.who = 0; e.who < n; e.who++) {
            lst_workers_run(layouts[k].workers, layouts[k].replicas, fail_early, &e);
        }
    }
}

/* ---- aborts ---- */

struct aborter {
    ls_strategy *s;
    atomic_int at; // how long it waits, from 1 on; 0: no run has begun
    atomic_bool stop;
};

static void abort_at_times(void *arg)
{
    struct aborter *a = arg;

    while (!atomic_load(&a->stop)) {
        const int at = atomic_exchange(&a->at, 0);

        if (at == 0) {
            lsi_yield();
            continue;
        }
        for (int i = 1; i < at; i++) {
            lsi_pause();
        }
        ls_strategy_abort(a->s);
    }
}

struct race {
    struct aborter aborter;
    step_model m;
    int delay;
};

static ls_value *step_while_aborted(ls_context *c, ls_value *args, void *user)
{
    struct race *r = user;
    ls_tensor *g[STEP_VARS];

    (void)args;
    for (int k = 0; k < STEP_VARS; k++) {
        const ls_shape shape = step_shape(k);

        g[k] = lsi_fill(c, LS_F32, &shape, 1);
    }
    if (ls_replica_id(c) == 0) {
        atomic_store(&r->aborter.at, 1 + r->delay);
    }
    (ls_optimizer_apply)(c, r->m.o, g, r->m.v, STEP_VARS);
    return NULL;
}

/* Every step takes `replicas` off each element, on all copies or on none. */
static void check_steps(const step_model *m, const float *first)
{
    const int64_t steps = ls_optimizer_iterations(m->o);

    for (int k = 0; k < STEP_VARS; k++) {
        const ls_variable *one = ls_variable_component(m->v[k], 0);
        const double want = (double)first[k] - (double)(steps * m->worker->replicas);

        LST_CHECK(lst_near((double)*(const float *)one->buffer->data, want, 0, 1e-2));
        for (int i = 1; i < m->worker->replicas; i++) {
            const ls_variable *own = ls_variable_component(m->v[k], (size_t)i);

            LST_CHECK(memcmp(own->buffer->data, one->buffer->data,
                             (size_t)own->count * sizeof(float)) == 0);
        }
    }
}

static ls_status race_aborts(const lst_worker *w, void *arg, ls_error *err)
{
    enum { ROUNDS = 300 };
    ls_sgd_options sgd = LS_SGD_OPTIONS_INIT;
    struct race r = {.aborter = {.s = w->strategy}};
    float first[STEP_VARS];
    uint64_t random = 5;
    lsi_thread thread;
    int64_t taken = 0;

    (void)err;
    open_model(&r.m, arg, w);
    ls_optimizer_release(r.m.o);
    sgd.learning_rate = 1;
    sgd.shared = r.m.world->shared;
    LST_OK(ls_sgd_create(&sgd, &r.m.o, NULL));
    for (int k = 0; k < STEP_VARS; k++) {
        first[k] = *(const float *)ls_variable_component(r.m.v[k], 0)->buffer->data;
    }
    LST_OK(lsi_thread_start(&thread, abort_at_times, &r.aborter, NULL, "aborter"));
    for (int i = 0; i < ROUNDS; i++) {
        ls_status st;

        r.delay = (int)(lst_random(&random) % 2000);
        st = ls_strategy_run(w->strategy, step_while_aborted, NULL, &r, NULL, NULL);
        LST_CHECK(st == LS_OK || st == LS_ABORTED);
        LST_CHECK(ls_optimizer_iterations(r.m.o) == taken ||
                  ls_optimizer_iterations(r.m.o) == taken + 1);
        LST_CHECK(st != LS_OK || ls_optimizer_iterations(r.m.o) == taken + 1);
        taken = ls_optimizer_iterations(r.m.o);
        check_steps(&r.m, first);
    }
    atomic_store(&r.aborter.stop, true);
    lsi_thread_join(&thread);
    close_model(&r.m);
    return LS_OK;
}

LST_TEST(an_abort_at_any_time_leaves_a_step_taken_by_all_or_by_none)
{
    step_world some[] = {{.dtype = LS_F32},
                         {.dtype = LS_F32, .apart = true},
                         {.dtype = LS_F32, .shared = {.clipnorm = 1e6}}};

    for (size_t i = 0; i < LSI_COUNT_OF(some); i++) {
        lst_workers_run(1, 2, race_aborts, &some[i]);
        lst_workers_run(1, 3, race_aborts, &some[i]);
    }
}

LST_MAIN(LST_CASE(a_mistake_of_one_replica_changes_nothing_on_any),
         LST_CASE(a_backward_pass_that_fails_on_one_replica_is_the_failure_of_all),
         LST_CASE(no_allocation_that_fails_changes_anything),
         LST_CASE(a_replica_that_failed_before_the_step_changes_nothing_on_the_others),
         LST_CASE(an_abort_at_any_time_leaves_a_step_taken_by_all_or_by_none))
