/*
 * A crew: the threads that run the replicas of a strategy, and the levels, which hold the
 * contexts and the communicator of runs at each nesting depth.
 */
#include "replica/run.h"

#include <string.h>

static void serve_runs(void *arg);

/*
 * The argument of a replica thread: the crew, the replica it runs, the last value of `go`
 * it saw.
 */
struct member {
    struct lsi_crew *crew;
    int k;
    unsigned seen;
};

static void level_free(lsi_level *level, int n)
{
    if (level == NULL) {
        return;
    }
    for (int k = 0; k < n; k++) {
        if (level->context != NULL) {
            ls_context_close(level->context[k]);
        }
        if (level->comm != NULL) {
            ls_comm_release(level->comm[k]);
        }
        if (level->visible != NULL) {
            lsi_visible_state_clear(&level->visible[k]);
        }
    }
    ls_context_close(level->cross);
    lsi_created_forget(&level->run);
    lsi_free(level->run.created);
    lsi_free(level->run.shown);
    lsi_free(level->run.results);
    lsi_free(level->run.errors);
    lsi_free(level->run.finished);
    lsi_mutex_destroy(&level->run.created_lock);
    lsi_cond_destroy(&level->run.created_more);
    lsi_word_destroy(&level->run.left);
    lsi_word_destroy(&level->run.events);
    lsi_word_destroy(&level->run.turn);
    lsi_word_destroy(&level->verdict);
    lsi_word_destroy(&level->passed);
    lsi_free(level->aside);
    lsi_free(level->comm);
    lsi_free(level->context);
    lsi_free(level->replica);
    lsi_free(level->visible);
    lsi_free(level->ended);
    lsi_free(level);
}

/* The error of replicas that wait for replica `k` after it has ended. */
static void describe_end(ls_error *why, int k)
{
    *why = (ls_error)LS_ERROR_INIT;
    (void)lsi_fail_kind(why, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                        "replica %d has ended while others wait for it: replicas made "
                        "a different number of merge_call or collective calls",
                        k);
}

static ls_status fill_level(struct lsi_crew *crew, lsi_level *level, ls_error *err)
{
    const size_t n = (size_t)crew->n;
    struct lsi_run *run = &level->run;
    ls_comm_local_options opts = LS_COMM_LOCAL_OPTIONS_INIT;
    ls_status st = LS_OK;

    run->strategy = crew->strategy;
    run->crew = crew;
    run->level = level;
    run->n = crew->n;
    level->comm = lsi_alloc(n, sizeof(ls_comm *));
    level->context = lsi_alloc(n, sizeof(ls_context *));
    level->replica = lsi_alloc(n, sizeof(lsi_replica));
    level->visible = lsi_alloc_aligned(n * sizeof(lsi_visible_state), 64);
    level->ended = lsi_alloc(n, sizeof(ls_error));
    run->results = lsi_alloc(n, sizeof(ls_value *));
    run->shown = lsi_alloc(n, sizeof(void *));
    run->errors = lsi_alloc(n, sizeof(ls_error));
    level->aside = lsi_alloc(n, sizeof(ls_error));
    run->finished = lsi_alloc(n, sizeof(atomic_bool));
    if (level->visible != NULL) {
        memset(level->visible, 0, n * sizeof(lsi_visible_state));
    }
    if (level->comm == NULL || level->context == NULL || level->replica == NULL ||
        level->visible == NULL || level->ended == NULL || run->shown == NULL ||
        run->results == NULL || run->errors == NULL || level->aside == NULL ||
        run->finished == NULL) {
        return lsi_fail_memory(err, "the replicas of a strategy", n * sizeof(ls_error));
    }
    for (size_t k = 0; k < n; k++) {
        atomic_init(&level->visible[k].depth, 0);
        atomic_init(&level->visible[k].merge, LSI_MERGE_OUT);
        describe_end(&level->ended[k], crew->strategy->first + (int)k);
        if (!lsi_visible_state_fill(&level->visible[k], crew->n)) {
            return lsi_fail_memory(err, "the meetings of replicas", n * sizeof(void *));
        }
    }
    opts.spin_us = crew->strategy->spin_us;
    st = ls_comm_local(crew->n, &opts, level->comm, err);
    for (int k = 0; k < crew->n && st == LS_OK; k++) {
        st = ls_context_open(crew->strategy->devices[k], NULL, &level->context[k], err);
        if (st == LS_OK) {
            level->replica[k] = (lsi_replica){.strategy = crew->strategy,
                                              .index = k,
                                              .id = crew->strategy->first + k,
                                              .local = level->comm[k]};
            level->context[k]->replica = &level->replica[k];
            level->context[k]->random = &crew->random[k];
        }
    }
    if (st == LS_OK) {
        st = ls_context_open(crew->strategy->devices[0], NULL, &level->cross, err);
    }
    if (st == LS_OK) {
        level->cross->random = &crew->random[crew->n];
    }
    return st;
}

static ls_status level_create(struct lsi_crew *crew, lsi_level **out, ls_error *err)
{
    lsi_level *level = lsi_alloc(1, sizeof *level);
    ls_status st;

    if (level == NULL) {
        return lsi_fail_memory(err, "the replicas of a strategy", sizeof *level);
    }
    lsi_word_init(&level->run.left, 0);
    lsi_word_init(&level->run.events, 0);
    lsi_word_init(&level->run.turn, 0);
    lsi_word_init(&level->verdict, 0);
    lsi_word_init(&level->passed, 0);
    lsi_mutex_init(&level->run.created_lock);
    lsi_cond_init(&level->run.created_more);
    st = fill_level(crew, level, err);
    if (st != LS_OK) {
        level_free(level, crew->n);
        return st;
    }
    *out = level;
    return LS_OK;
}

/*
 * How long a waiting replica spins, in ns. With more replicas than cores, spinning would
 * keep the core from the replica that is waited for: there it sleeps at once, unless the
 * program sets spin_us.
 */
static int64_t spin_of(const ls_strategy *s)
{
    const int cores = LSI_MIN(lsi_affinity_get(NULL, 0), lsi_cpu_quota());

    if (s->spin_us == 0) {
        return s->local > cores ? 0 : (int64_t)lsi_team_spin_us() * 1000;
    }
    return s->spin_us < 0 ? 0 : (int64_t)s->spin_us * 1000;
}

ls_status lsi_crew_create(ls_strategy *s, struct lsi_crew **out, ls_error *err)
{
    struct lsi_crew *crew = lsi_alloc(1, sizeof *crew);

    if (crew == NULL) {
        return lsi_fail_memory(err, "a strategy", sizeof *crew);
    }
    crew->threads = lsi_alloc((size_t)s->local, sizeof *crew->threads);
    crew->random = lsi_alloc((size_t)s->local + 1, sizeof *crew->random);
    if (crew->threads == NULL || crew->random == NULL) {
        lsi_free(crew->threads);
        lsi_free(crew->random);
        lsi_free(crew);
        return lsi_fail_memory(err, "the threads of a strategy", sizeof *crew);
    }
    crew->strategy = s;
    crew->n = s->local;
    for (int k = 0; k <= crew->n; k++) { // a replica's stream is its id in the sync group
        crew->random[k] = (ls_random_state){
            lsi_runtime_seed(s->runtime),
            k < crew->n ? (uint64_t)(s->first + k) : LSI_STREAM_CROSS, 0};
    }
    crew->spin_ns = spin_of(s);
    lsi_mutex_init(&crew->running);
    lsi_mutex_init(&crew->aborting);
    lsi_word_init(&crew->go, 0);
    *out = crew;
    return LS_OK;
}

void lsi_crew_release(struct lsi_crew *crew)
{
    if (crew == NULL) {
        return;
    }
    atomic_store(&crew->stop, true);
    lsi_word_add(&crew->go, 1);
    for (int i = 0; i < crew->started; i++) {
        lsi_thread_join(&crew->threads[i]);
    }
    for (int i = 0; i < LSI_MAX_LEVELS; i++) {
        level_free(crew->levels[i], crew->n);
    }
    lsi_word_destroy(&crew->go);
    lsi_mutex_destroy(&crew->running);
    lsi_mutex_destroy(&crew->aborting);
    lsi_free(crew->threads);
    lsi_free(crew->random);
    lsi_free(crew);
}

/* Starts the threads that are missing: thread i runs replica i + 1. */
static ls_status start_threads(struct lsi_crew *crew, ls_error *err)
{
    while (crew->started < crew->n - 1) {
        struct member *m = lsi_alloc(1, sizeof *m);
        ls_status st;

        if (m == NULL) {
            return lsi_fail_memory(err, "a replica's thread", sizeof *m);
        }
        *m = (struct member){crew, crew->started + 1, lsi_word_get(&crew->go)};
        st = lsi_thread_start(&crew->threads[crew->started], serve_runs, m, err,
                              "ls-replica-%d", m->k);
        if (st != LS_OK) {
            lsi_free(m);
            return st;
        }
        crew->started++;
    }
    return LS_OK;
}

ls_status lsi_crew_ready(struct lsi_crew *crew, int depth, lsi_level **out, ls_error *err)
{
    lsi_level *level = NULL;
    ls_status st = LS_OK;

    if (depth >= LSI_MAX_LEVELS) {
        return lsi_fail_kind(
            err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
            "run: %d runs inside of each other; merge functions may nest "
            "%d deep",
            depth + 1, LSI_MAX_LEVELS);
    }
    level = atomic_load(&crew->levels[depth]);
    if (level == NULL) {
        st = level_create(crew, &level, err);
        if (st == LS_OK) {
            atomic_store(&crew->levels[depth], level);
        }
    }
    if (st == LS_OK) {
        st = start_threads(crew, err);
    }
    if (st == LS_OK) {
        *out = level;
    }
    return st;
}

static void serve_runs(void *arg)
{
    struct member m = *(struct member *)arg;
    struct lsi_crew *crew = m.crew;

    lsi_free(arg);
    lsi_device_settle(crew->strategy->devices[m.k]);
    for (;;) {
        m.seen = lsi_word_wait_not(&crew->go, m.seen, crew->spin_ns);
        if (atomic_load(&crew->stop)) {
            return;
        }
        lsi_run_replica(crew->run, m.k);
    }
}
