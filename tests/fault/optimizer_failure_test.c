/*
 * An optimizer's step that fails on one replica: with each allocation that this replica
 * makes in it failing in turn. Nothing has changed afterwards on any replica of any
 * worker, all workers return the same error, and the next step computes what a training
 * without failures does.
 */
#include "layout_models.h"
#include "ls_snapshot.h"

#include "device/device.h"
#include "device/pool.h"
#include "op/op.h"

enum { MOST_REPLICAS = 4, MOST_ALLOCATIONS = 2000 };

/* ---- an allocator that fails on one thread ---- */

static _Thread_local int64_t left; // allocations of this thread until one fails; 0: none
static _Thread_local bool has_fired;

static void *alloc_or_fail(size_t size, size_t align, void *user)
{
    void *ptr = NULL;

    (void)user;
    if (left > 0 && --left == 0) {
        has_fired = true;
        return NULL;
    }
    return posix_memalign(&ptr, align < 16 ? 16 : align, size) == 0 ? ptr : NULL;
}

static void free_it(void *ptr, void *user)
{
    (void)user;
    free(ptr);
}

/* ---- memory of a device that has none in store ---- */

/*
 * A step that repeats itself takes its memory from the device's pool. These blocks are
 * what the pool had, up to a size, so that the step has to ask for memory again.
 */
struct hoard {
    void *blocks[2000];
    size_t n;
};

enum { LARGEST_BLOCK = 16384 };

static void hoard_blocks(struct hoard *h, lsi_pool *pool)
{
    for (size_t bytes = 1; bytes <= LARGEST_BLOCK && h->n < LSI_COUNT_OF(h->blocks);
         bytes = lsi_pool_rounded(bytes) + 1) {
        lsi_pool_stats before = {0}, after = {0};

        do { // until there is no free block of this size
            lsi_pool_stats_get(pool, &before);
            h->blocks[h->n] = lsi_pool_alloc(pool, bytes, NULL);
            LST_CHECK(h->blocks[h->n] != NULL);
            h->n++;
            lsi_pool_stats_get(pool, &after);
        } while (after.system_allocs == before.system_allocs &&
                 h->n < LSI_COUNT_OF(h->blocks));
    }
    LST_CHECK(h->n < LSI_COUNT_OF(h->blocks));
}

static void end_hoard(struct hoard *h, lsi_pool *pool)
{
    while (h->n > 0) {
        (void)lsi_pool_free(pool, h->blocks[--h->n]);
    }
}

/* ---- a training ---- */

/* What all workers share. */
struct training {
    const layout_kind *kind;
    bool warm;     /* steps fail after others have ended well, else the first one fails */
    int bad;       /* the id of the replica on which allocations fail; -1: none */
    int64_t nth;   /* not warm: the allocation that fails */
    int64_t steps; /* that ended well: how many to make; of a warm training the result */
    int64_t failures;                   /* the result: steps that failed */
    atomic_bool fired;                  /* an allocation of the present step has failed */
    atomic_bool ever;                   /* of any step */
    ls_error errors[MOST_REPLICAS];     /* of the present step, by worker */
    lst_snapshot copies[MOST_REPLICAS]; /* at the end, by the id of the replica */
};

/* A worker's part of it. */
struct worker {
    const lst_worker *lw;
    struct training *t;
    layout_model m;
    ls_optimizer *o;
    int64_t step;
    int64_t nth; /* the allocation that fails in this step; 0: none */
};

static ls_value *train_step(ls_context *c, ls_value *args, void *user)
{
    const struct worker *w = user;
    const bool bad = ls_replica_id(c) == w->t->bad;
    ls_tape *tape = ls_tape_open(c, NULL);
    ls_tensor *loss = layout_model_loss(c, &w->m, w->step);

    struct hoard h = {.n = 0};

    (void)args;
    if (bad) {
        hoard_blocks(&h, c->device->pool);
        has_fired = false;
        left = w->nth;
    }
    ls_optimizer_minimize(c, w->o, tape, loss, w->m.v, w->m.trained);
    if (bad) {
        left = 0;
        end_hoard(&h, c->device->pool);
        atomic_store(&w->t->fired, has_fired);
        atomic_store(&w->t->ever, atomic_load(&w->t->ever) || has_fired);
    }
    return NULL;
}

/* All that a step may change. Slots that the first step makes are no change. */
static void record_worker(const struct worker *w, lst_snapshot *r)
{
    const int64_t iterations = ls_optimizer_iterations(w->o);

    for (int k = 0; k < w->lw->replicas; k++) {
        lst_snapshot_copies(r, w->m.v, w->m.n, w->t->warm ? w->o : NULL, k);
    }
    lst_snapshot_bytes(r, &iterations, sizeof iterations);
}

/* All workers got the same error. */
static bool same_errors(const struct training *t, int workers)
{
    bool same = true;

    for (int i = 0; i < workers; i++) {
        same = same && t->errors[i].code == LS_RESOURCE_EXHAUSTED &&
               t->errors[i].rank == t->errors[0].rank &&
               strcmp(t->errors[i].message, t->errors[0].message) == 0;
    }
    return same;
}

/* Tries the present step. *well: it has been made. Fails if the group is not whole. */
static ls_status try_step(struct worker *w, bool *well, bool *fired, ls_error *err)
{
    const lst_worker *lw = w->lw;
    struct training *t = w->t;
    lst_snapshot before = {0}, after = {0};
    ls_error why = LS_ERROR_INIT;
    ls_status st;

    record_worker(w, &before);
    *well = ls_strategy_run(lw->strategy, train_step, NULL, w, NULL, &why) == LS_OK;
    record_worker(w, &after);
    t->errors[lw->index] = why;
    st = ls_comm_barrier(lw->comm, NULL, err); // all have ended the step
    *fired = atomic_load(&t->fired);
    if (!*well && st == LS_OK) {
        LST_CHECK(*fired);
        LST_CHECK(lst_snapshot_same(&before, &after));
        LST_CHECK(same_errors(t, lw->workers));
        if (lw->index == 0) {
            t->failures++;
        }
    }
    lst_snapshot_free(&before);
    lst_snapshot_free(&after);
    w->step += *well;
    return st != LS_OK ? st : ls_comm_barrier(lw->comm, NULL, err);
}

/* The first step fails, is repeated, and others follow. */
static ls_status train_cold(struct worker *w, ls_error *err)
{
    bool well = false, fired = false;
    ls_status st = LS_OK;

    w->nth = w->t->nth;
    for (int tries = 0; w->step < w->t->steps && st == LS_OK; tries++) {
        st = try_step(w, &well, &fired, err);
        LST_CHECK(well || tries == 0 || st != LS_OK);
        if (!well && tries > 0) {
            break;
        }
        w->nth = 0;
    }
    return st;
}

/* Two steps, then steps of which each allocation fails in turn. */
static ls_status train_warm(struct worker *w, ls_error *err)
{
    bool well = false, fired = false;
    ls_status st = LS_OK;

    while (w->step < 2 && st == LS_OK) {
        st = try_step(w, &well, &fired, err);
    }
    w->nth = 1;
    do {
        st = st == LS_OK ? try_step(w, &well, &fired, err) : st;
        w->nth++;
    } while (st == LS_OK && fired && w->nth < MOST_ALLOCATIONS);
    LST_CHECK(w->nth < MOST_ALLOCATIONS);
    w->nth = 0;
    st = st == LS_OK ? try_step(w, &well, &fired, err) : st;
    LST_CHECK(well);
    if (w->lw->index == 0) {
        w->t->steps = w->step;
    }
    return st;
}

static ls_optimizer *make_optimizer(void)
{
    ls_adam_options opts = LS_ADAM_OPTIONS_INIT;
    ls_optimizer *o = NULL;

    opts.learning_rate = 0.01;
    opts.shared.global_clipnorm = 0.4;
    LST_OK(ls_adam_create(&opts, &o, NULL));
    return o;
}

static ls_status train_worker(const lst_worker *lw, void *arg, ls_error *err)
{
    struct worker w = {.lw = lw, .t = arg};
    ls_status st = ls_scope_enter(lw->strategy, err);

    if (st != LS_OK) {
        return st;
    }
    layout_model_create(&w.m, w.t->kind, 7);
    w.o = make_optimizer();
    ls_scope_exit(lw->strategy);
    st = w.t->warm ? train_warm(&w, err) : train_cold(&w, err);
    for (int k = 0; k < lw->replicas && st == LS_OK; k++) {
        lst_snapshot_copies(&w.t->copies[lw->index * lw->replicas + k], w.m.v, w.m.n, w.o,
                            k);
    }
    ls_optimizer_release(w.o);
    layout_model_release(&w.m);
    return st;
}

static void end_training(struct training *t)
{
    for (int i = 0; i < MOST_REPLICAS; i++) {
        lst_snapshot_free(&t->copies[i]);
    }
}

/* As many steps as `t` made, and none of them fails: the same bits. */
static void check_bits(const struct training *t, int workers, int replicas)
{
    struct training without = {.kind = t->kind, .bad = -1, .steps = t->steps};

    lst_workers_run(workers, replicas, train_worker, &without);
    for (int id = 0; id < workers * replicas; id++) {
        LST_CHECK(lst_snapshot_same(&t->copies[id], &without.copies[id]));
    }
    end_training(&without);
}

/* ---- every allocation, on every replica ---- */

/* Each allocation of a first step fails in a training of its own. */
static int64_t fail_first_steps(const layout_kind *kind, int workers, int replicas,
                                int bad)
{
    int64_t failures = 0;
    bool fired = true;

    for (int64_t n = 1; fired && n < MOST_ALLOCATIONS; n++) {
        struct training t = {.kind = kind, .bad = bad, .nth = n, .steps = 3};

        lst_workers_run(workers, replicas, train_worker, &t);
        check_bits(&t, workers, replicas);
        fired = atomic_load(&t.ever);
        failures += t.failures;
        end_training(&t);
    }
    return failures;
}

static int64_t fail_later_steps(const layout_kind *kind, int workers, int replicas,
                                int bad)
{
    struct training t = {.kind = kind, .bad = bad, .warm = true};

    lst_workers_run(workers, replicas, train_worker, &t);
    check_bits(&t, workers, replicas);
    end_training(&t);
    return t.failures;
}

typedef int64_t (*failing)(const layout_kind *kind, int workers, int replicas, int bad);

static void fail_on_each_replica(failing fail)
{
    static const char *const kinds[] = {"mlp", "mlp of float16", "embedding"};
    static const int layouts[][2] = {{1, 2}, {2, 1}, {2, 2}};

    for (size_t k = 0; k < layout_kind_count; k++) {
        const layout_kind *kind = &layout_kinds[k];
        bool chosen = false;

        for (size_t i = 0; i < LSI_COUNT_OF(kinds); i++) {
            chosen = chosen || strcmp(kind->name, kinds[i]) == 0;
        }
        for (size_t i = 0; chosen && i < LSI_COUNT_OF(layouts); i++) {
            const int workers = layouts[i][0], replicas = layouts[i][1];

            for (int bad = 0; bad < workers * replicas; bad++) {
                LST_CHECK(fail(kind, workers, replicas, bad) > 0);
            }
        }
    }
}

LST_TEST(a_first_step_that_fails_changes_nothing_and_the_next_works)
{
    fail_on_each_replica(fail_first_steps);
}

LST_TEST(a_later_step_that_fails_changes_nothing_and_the_next_works)
{
    fail_on_each_replica(fail_later_steps);
}

int main(int argc, char **argv)
{
    static const lst_case cases[] = {
        LST_CASE(a_first_step_that_fails_changes_nothing_and_the_next_works),
        LST_CASE(a_later_step_that_fails_changes_nothing_and_the_next_works)};

    if (ls_allocator_set(alloc_or_fail, free_it, NULL, NULL) != LS_OK) {
        return EXIT_FAILURE;
    }
    return lst_main(argc, argv, cases, LSI_COUNT_OF(cases));
}
