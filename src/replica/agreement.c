/*
 * Agreements: a step is taken on all local peers or on none, also if an abort or a
 * deadline comes in the middle of it.
 *
 * The peers meet for the last time; a meeting that ends well on one replica may fail on
 * another. So replica 0 alone decides, on a word that all follow: when its own meeting
 * ended well it moves the word from undecided to DECIDING, then to GO or NO. A replica
 * whose meeting failed tries to move it from undecided to BROKEN; if it comes too late,
 * it follows replica 0. A word that replica 0 is deciding is never abandoned.
 */
#include "replica/run.h"

#include <string.h>

/* The word is STATES times the number of the agreement in its run, plus one of these. */
enum { DECIDING, GO, NO, BROKEN, STATES };

/* What the replica of `c` keeps aside; NULL: it is in no run. */
static ls_error *aside_of(const ls_context *c)
{
    const lsi_replica *r = lsi_replica_of(c);

    return r == NULL || r->run == NULL ? NULL : &r->run->level->aside[r->index];
}

void lsi_aside_clear(ls_context *c)
{
    ls_error *aside = aside_of(c);

    if (aside != NULL) {
        aside->code = LS_OK;
    }
}

bool lsi_aside_keep(ls_context *c)
{
    const lsi_replica *r = lsi_replica_of(c);
    ls_error *aside = aside_of(c);

    if (aside == NULL || (lsi_failed(c) && lsi_comm_broken(r->local))) {
        return lsi_failed(c);
    }
    if (lsi_failed(c)) {
        if (aside->code == LS_OK) {
            *aside = c->error;
            aside->rank = aside->rank < 0 ? r->id : aside->rank;
        }
        c->error.code = LS_OK;
        c->error.message[0] = '\0';
        c->unplaced = false;
    }
    return aside->code != LS_OK;
}

/* The failure of the lowest of the `n` peers; NULL: none has one. */
static const ls_error *lowest_failure(const lsi_level *level, int n)
{
    for (int k = 0; k < n; k++) {
        if (level->aside[k].code != LS_OK) {
            return &level->aside[k];
        }
    }
    return NULL;
}

/* Moves the word from undecided to `state`; false: another replica moved it before. */
static bool claim_verdict(lsi_word *word, unsigned base, unsigned state)
{
    unsigned seen = lsi_word_get(word);

    while ((int)(seen - base) < 0) {
        if (lsi_word_try(word, seen, base + state)) {
            lsi_word_add(word, 0); // wakes
            return true;
        }
        seen = lsi_word_get(word);
    }
    return false;
}

/*
 * Waits until it is decided. A later agreement may have begun, but not one after GO: no
 * replica passes the barrier there without this one.
 */
static unsigned wait_for_verdict(struct lsi_run *run, unsigned base)
{
    lsi_word *word = &run->level->verdict;
    unsigned seen = lsi_word_get(word);

    while ((int)(seen - base) <= DECIDING) {
        seen = lsi_word_wait_not(word, seen, run->crew->spin_ns);
    }
    return seen - base < STATES ? seen - base : NO;
}

/* LS_ERROR_INIT, but for most of the message, which is long. */
static void clear_error(ls_error *e)
{
    static const ls_error init = LS_ERROR_INIT;

    memcpy(e, &init, offsetof(ls_error, message) + 1);
}

/* Replica 0: its meeting has ended well (`met`), or failed. */
static unsigned reach_verdict(struct lsi_run *run, unsigned base, bool met,
                              lsi_decide_fn decide, void *arg)
{
    lsi_level *level = run->level;
    const ls_error *failed;
    unsigned state;

    if (!met || !claim_verdict(&level->verdict, base, DECIDING)) {
        (void)claim_verdict(&level->verdict, base, BROKEN);
        return BROKEN;
    }
    failed = lowest_failure(level, run->n);
    clear_error(&level->why);
    state = decide(arg, failed, &level->why) == LS_OK ? GO : NO;
    LSI_ASSERT(failed == NULL || state == NO);
    lsi_word_set(&level->verdict, base + state);
    return state;
}

static bool agree_alone(ls_context *c, lsi_decide_fn decide, void *arg)
{
    const ls_error *aside = aside_of(c);
    ls_error e;

    if (lsi_context_aborted(c)) {
        return false;
    }
    clear_error(&e);
    if (decide(arg, aside != NULL && aside->code != LS_OK ? aside : NULL, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
    }
    return !lsi_failed(c);
}

/* Not all have met: the context fails with the reason, unless it has. */
static LSI_COLD void fail_broken(ls_context *c)
{
    ls_error e = LS_ERROR_INIT;

    if (lsi_comm_failure(lsi_replica_of(c)->local, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
    }
}

bool lsi_agree(ls_context *c, const char *what, lsi_decide_fn decide, void *arg)
{
    lsi_replica *r = lsi_replica_of(c);
    unsigned base, state;
    bool met;

    if (lsi_local_peers(c) == 1) {
        return agree_alone(c, decide, arg);
    }
    base = ++r->agreements * STATES;
    met = !lsi_context_aborted(c) &&
          lsi_run_meet(c, what, (uint64_t)r->agreements << 32, NULL, NULL);
    if (r->index == 0) {
        lsi_turn_wait(r->run, 0);
        state = reach_verdict(r->run, base, met, decide, arg);
    } else {
        if (!met) {
            (void)claim_verdict(&r->run->level->verdict, base, BROKEN);
        }
        state = wait_for_verdict(r->run, base);
        lsi_turn_wait(r->run, r->index);
    }
    if (state == NO) {
        (void)lsi_context_error(c, &r->run->level->why);
    } else if (state == BROKEN) {
        fail_broken(c);
    }
    return state == GO;
}

void lsi_barrier(ls_context *c)
{
    const lsi_replica *r = lsi_replica_of(c);
    lsi_level *level;
    unsigned seen;

    if (lsi_local_peers(c) == 1) {
        return;
    }
    level = r->run->level;
    lsi_turn_pass(r->run, r->index);
    seen = lsi_word_get(&level->passed);
    if (atomic_fetch_add(&level->arrived, 1) + 1 == r->run->n) {
        atomic_store(&level->arrived, 0);
        lsi_word_add(&level->passed, 1);
    } else {
        (void)lsi_word_wait_not(&level->passed, seen, r->run->crew->spin_ns);
    }
    lsi_turn_wait(r->run, r->index);
}
