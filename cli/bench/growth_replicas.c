/* How a run grows with its replicas, and with what they exchange. */
#include "cli/bench/growth.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { SHARED = 1 << 16, GATHERED = 4096, PACK = 64, LEAVES_REPLICAS = 2, RUNS = 3 };

/* What the replicas of a run share. */
struct job {
    growth_run *r;
    ls_variable *w;
    ls_optimizer *opt;
    ls_tensor *t;
    int64_t packs;
    _Atomic int right; /* replicas that saw the right result */
};

static void run_replicas(growth_run *r, ls_replica_fn fn, ls_value *args, struct job *j)
{
    GROWTH_TRY(r, ls_strategy_run(r->strategy, fn, args, j, NULL, &r->err));
}

/* A few runs; all replicas are to say each time that it is right. */
static void measure_runs(growth_run *r, ls_replica_fn fn, ls_value *args, struct job *j,
                         int replicas)
{
    growth_begin(r);
    for (int i = 0; r->st == LS_OK && i < RUNS; i++) {
        run_replicas(r, fn, args, j);
    }
    growth_end(r);
    growth_check(r, atomic_load(&j->right) == RUNS * replicas,
                 "not every replica has the right result");
}

static void note(struct job *j, bool right)
{
    atomic_fetch_add(&j->right, right);
}

static ls_value *do_nothing(ls_context *c, ls_value *args, void *user)
{
    (void)c;
    (void)args;
    note(user, true);
    return NULL;
}

static void run_empty(growth_run *r)
{
    struct job j = {.r = r};

    growth_replicas(r, (int)r->n);
    measure_runs(r, do_nothing, NULL, &j, (int)r->n);
}

static ls_value *apply(ls_context *c, ls_value *args, void *user)
{
    struct job *j = user;

    (void)args;
    ls_optimizer_apply(c, j->opt, &j->t, &j->w, 1);
    note(j, ls_context_status(c, NULL) == LS_OK);
    return NULL;
}

/* An update that the replicas make together, of 256 KiB. */
static void update(growth_run *r, double clipnorm)
{
    ls_adam_options options = LS_ADAM_OPTIONS_INIT;
    struct job j = {.r = r};
    float *ones = growth_room(r, SHARED, sizeof *ones);
    float first = 0;

    options.shared.clipnorm = clipnorm;
    growth_replicas(r, (int)r->n);
    j.w = growth_variable(r, LS_SHAPE(SHARED));
    for (int i = 0; r->st == LS_OK && i < SHARED; i++) {
        ones[i] = 1;
    }
    GROWTH_TRY(r, ls_tensor_create(ls_runtime_device(r->rt, 0), LS_F32, LS_SHAPE(SHARED),
                                   ones, &j.t, &r->err));
    GROWTH_TRY(r, ls_scope_enter(r->strategy, &r->err));
    if (r->st == LS_OK) {
        r->st = ls_adam_create(&options, &j.opt, &r->err);
        ls_scope_exit(r->strategy);
    }
    measure_runs(r, apply, NULL, &j, (int)r->n);
    if (r->st == LS_OK) {
        ls_tensor *t = NULL;

        r->st = ls_variable_value(j.w, &t, &r->err);
        GROWTH_TRY(r, ls_tensor_read(t, ones, SHARED * sizeof *ones, &r->err));
        first = r->st == LS_OK ? ones[SHARED - 1] : 0;
        ls_tensor_release(t);
    }
    growth_check(r, first < -0.0029F && first > -0.0031F, "the steps went elsewhere");
    ls_tensor_release(j.t);
    ls_optimizer_release(j.opt);
    ls_variable_release(j.w);
    free(ones);
}

static void update_plain(growth_run *r)
{
    update(r, 0);
}

static void update_clipped(growth_run *r)
{
    update(r, 1);
}

static ls_value *gather(ls_context *c, ls_value *args, void *user)
{
    struct job *j = user;
    const float mine = (float)ls_replica_id(c);
    ls_tensor *part = NULL, *all = NULL;
    const float *p = NULL;

    (void)args;
    part = ls_add(c, ls_constant(c, LS_F32, LS_SHAPE(GATHERED), NULL),
                  ls_constant_f32(c, mine));
    all = ls_all_gather(c, part, 0);
    p = all != NULL ? ls_tensor_data(all) : NULL;
    note(j, p != NULL && ls_tensor_count(all) == j->r->n * GATHERED && p[0] == 0 &&
                p[(j->r->n - 1) * GATHERED] == (float)(j->r->n - 1));
    return NULL;
}

/* 16 KiB of each replica, for all of them. */
static void gather_all(growth_run *r)
{
    struct job j = {.r = r};

    growth_replicas(r, (int)r->n);
    measure_runs(r, gather, NULL, &j, (int)r->n);
}

/* A tuple of n tensors of one element. */
static ls_value *make_leaves(growth_run *r)
{
    const float one = 1;
    ls_value **leaves = (ls_value **)growth_room(r, (size_t)r->n, sizeof(void *));
    ls_value *all = NULL;

    for (int64_t i = 0; r->st == LS_OK && i < r->n; i++) {
        ls_tensor *t = NULL;

        GROWTH_TRY(r, ls_tensor_create(ls_runtime_device(r->rt, 0), LS_F32, LS_SHAPE(1),
                                       &one, &t, &r->err));
        GROWTH_TRY(r, ls_value_tensor(t, &leaves[i], &r->err));
        ls_tensor_release(t);
    }
    GROWTH_TRY(r, ls_value_tuple(leaves, (size_t)r->n, &all, &r->err));
    for (int64_t i = 0; leaves != NULL && i < r->n; i++) {
        ls_value_release(leaves[i]);
    }
    free((void *)leaves);
    return all;
}

static void with_leaves(growth_run *r, ls_replica_fn fn, int64_t packs)
{
    struct job j = {.r = r, .packs = packs};
    ls_value *leaves = NULL;

    growth_replicas(r, LEAVES_REPLICAS);
    leaves = make_leaves(r);
    measure_runs(r, fn, leaves, &j, LEAVES_REPLICAS);
    ls_value_release(leaves);
}

static ls_value *read_each(ls_context *c, ls_value *args, void *user)
{
    struct job *j = user;
    bool right = true;

    for (int64_t i = 0; i < j->r->n; i++) {
        const ls_tensor *t = ls_value_at(c, args, (size_t)i);

        right = right && t != NULL && ls_tensor_count(t) == 1;
    }
    note(j, right);
    return NULL;
}

static void read_leaves(growth_run *r)
{
    with_leaves(r, read_each, 0);
}

static ls_value *sum_each(ls_context *c, ls_value *args, void *user)
{
    struct job *j = user;
    ls_communication_options options = LS_COMMUNICATION_OPTIONS_INIT;
    const float *last = NULL;
    ls_value *sums = NULL;

    options.bytes_per_pack = j->packs;
    sums = ls_all_reduce_value(c, LS_SUM, args, &options);
    if (sums != NULL) {
        last =
            ls_tensor_data(ls_value_as_tensor(ls_value_child(sums, (size_t)j->r->n - 1)));
    }
    note(j, last != NULL && *last == LEAVES_REPLICAS);
    return NULL;
}

static void sum_leaves(growth_run *r)
{
    with_leaves(r, sum_each, 0);
}

static void sum_packs(growth_run *r)
{
    with_leaves(r, sum_each, PACK);
}

/* n messages that lie there before the first is taken. */
static void queue_sends(growth_run *r)
{
    ls_comm *comms[2] = {NULL, NULL};
    ls_comm_work **works = (ls_comm_work **)growth_room(r, (size_t)r->n, sizeof(void *));
    int64_t *sent = growth_room(r, (size_t)r->n, sizeof *sent);
    int64_t started = 0;

    GROWTH_TRY(r, ls_comm_local(2, NULL, comms, &r->err));
    growth_begin(r);
    for (; r->st == LS_OK && started < r->n; started++) {
        sent[started] = started;
        r->st = ls_comm_start_send(comms[0], 1, &sent[started], 1, LS_I64, NULL,
                                   &works[started], &r->err);
    }
    for (int64_t i = 0; r->st == LS_OK && i < r->n; i++) {
        int64_t got = -1;

        r->st = ls_comm_recv(comms[1], 0, 1, LS_I64, NULL, &got, &r->err);
        growth_check(r, got == i, "a message came out of its order");
    }
    for (int64_t i = 0; r->st == LS_OK && i < started; i++) {
        r->st = ls_comm_wait(works[i], &r->err);
    }
    growth_end(r);
    ls_comm_release(comms[0]);
    ls_comm_release(comms[1]);
    free((void *)works);
    free(sent);
}

const growth_case growth_of_replicas[] = {
    {"empty run", "replicas", 8, 8, GROWTH_LINEAR_TIME, GROWTH_LINEAR, GROWTH_LINEAR, 0,
     run_empty},
    {"update", "replicas", 8, 8, GROWTH_LINEAR_TIME, GROWTH_LINEAR, GROWTH_LINEAR,
     64 << 10, update_plain},
    {"clipped update", "replicas", 8, 8, GROWTH_LINEAR_TIME, GROWTH_LINEAR, GROWTH_LINEAR,
     64 << 10, update_clipped},
    {"all-gather", "replicas", 4, 4, GROWTH_LINEAR_TIME, GROWTH_LINEAR, GROWTH_LINEAR, 0,
     gather_all},
    {"leaves read", "leaves of a value", 64, 1024, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, read_leaves},
    {"leaves summed", "leaves of a value", 64, 1024, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, sum_leaves},
    {"packs of 64 bytes", "leaves of a value", 64, 512, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, sum_packs},
    {"queued sends", "messages", 128, 1024, GROWTH_LINEAR_TIME, GROWTH_LINEAR,
     GROWTH_LINEAR, 0, queue_sends},
    {0},
};
