/*
 * The suite `strategy`: strategies, contexts, values and variables. A line of several
 * workers is run by as many threads of this process.
 */
#include "answers_agree.h"
#include "ls_workers.h"
#include "strategy_machine.h"
#include "watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECONDS_A_STEP = 60,
    SECONDS_A_CASE = 120, // of several workers
    MS_A_CALL = 10000,    // a worker that waits for one that does not come
};

/*
 * The suite's machine has eight devices; they are in the default runtime, so that calls
 * without a runtime find them.
 */
bool oracle_strategy_prepare(void)
{
    return setenv("LS_DEVICES", "8", 1) == 0 && setenv("LS_THREADS", "1", 1) == 0;
}

static void describe_result(int worker, size_t number, const json_t *want,
                            const json_t *got, char *note, size_t size)
{
    char *w = json_dumps(want, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    char *g =
        got == NULL ? NULL : json_dumps(got, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    char who[32] = "";

    if (worker >= 0) {
        (void)snprintf(who, sizeof who, "worker %d, ", worker);
    }
    (void)snprintf(note, size, "%sstep %zu: expected %.700s, got %.700s", who, number,
                   w == NULL ? "?" : w, g == NULL ? "what cannot be written" : g);
    free(w);
    free(g);
}

static agree_rule rule_of(const oracle_case *k)
{
    const json_t *tolerance = json_object_get(k->line, "rtol");

    return (agree_rule){json_is_number(tolerance) ? json_number_value(tolerance) : 1e-6,
                        true, true};
}

static bool run_steps(machine *m, const oracle_case *k, char *note, size_t size)
{
    json_t *steps = json_object_get(json_object_get(k->line, "case"), "steps");
    json_t *answers = json_object_get(json_object_get(k->line, "expect"), "steps");
    const agree_rule rule = rule_of(k);

    if (json_array_size(steps) != json_array_size(answers)) {
        (void)snprintf(note, size, "%zu steps have %zu answers", json_array_size(steps),
                       json_array_size(answers));
        return false;
    }
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *want = json_array_get(answers, i);

        watchdog_start(SECONDS_A_STEP, "%s, step %zu", k->id, i);
        json_t *got = machine_answer(m, json_array_get(steps, i));
        const bool agreed = agree(&rule, want, got);

        if (!agreed) {
            describe_result(-1, i, want, got, note, size);
        }
        json_decref(got);
        if (!agreed) {
            return false;
        }
    }
    return true;
}

/* The argument of a case's thread. */
struct trial {
    const oracle_case *k;
    json_t *strategy;
    char *note;
    size_t size;
    oracle_verdict verdict;
};

/* TensorFlow gave the answers of the line. */
static bool is_theirs(const oracle_case *k)
{
    const char *from = json_string_value(json_object_get(k->line, "from"));

    return from != NULL && strncmp(from, "tensorflow", 10) == 0;
}

static void *try_case(void *arg)
{
    struct trial *t = arg;
    const bool theirs = is_theirs(t->k);
    ls_error err = LS_ERROR_INIT;
    ls_strategy *made = NULL;
    machine m;
    bool passed;

    t->verdict = ORACLE_FAILED;
    watchdog_start(SECONDS_A_STEP, "%s, the strategy", t->k->id);
    passed = machine_make_strategy(t->strategy, 0, &made, &err) == LS_OK &&
             machine_open(&m, made, NULL, 0, theirs, &err);
    ls_strategy_release(made);
    if (!passed) {
        (void)snprintf(t->note, t->size, "no strategy: %s", err.message);
        return NULL;
    }
    passed = run_steps(&m, t->k, t->note, t->size);
    watchdog_start(SECONDS_A_STEP, "%s, the end", t->k->id);
    if (!machine_close(&m) && passed) {
        (void)snprintf(t->note, t->size, "a scope stays open after the case");
        passed = false;
    }
    t->verdict = passed ? ORACLE_PASSED : ORACLE_FAILED;
    return NULL;
}

/* ---- several workers: a thread, a runtime, a strategy and a machine each ---- */

/* The key of a step's answer. */
struct step_name {
    char text[24];
};

static struct step_name name_of_step(size_t number)
{
    struct step_name name;

    (void)snprintf(name.text, sizeof name.text, "%zu", number);
    return name;
}

/* What one worker did. */
struct share {
    const oracle_case *k;
    json_t *answers; /* one per step; a step whose value cannot be written is missing */
    bool left;       /* no scope stayed open */
};

/*
 * Evaluates all steps, also after one with a wrong answer: the other workers wait for the
 * collective calls in them.
 */
static ls_status answer_steps(const lst_worker *w, void *arg, ls_error *err)
{
    struct share *mine = (struct share *)arg + w->index;
    json_t *steps = json_object_get(json_object_get(mine->k->line, "case"), "steps");
    machine m;

    if (!machine_open(&m, w->strategy, ls_runtime_device(w->runtime, 0), w->index,
                      is_theirs(mine->k), err)) {
        return err->code == LS_OK ? LS_INTERNAL : err->code;
    }
    for (size_t i = 0; i < json_array_size(steps); i++) {
        json_t *got = machine_answer(&m, json_array_get(steps, i));

        (void)json_object_set_new(mine->answers, name_of_step(i).text, got);
    }
    mine->left = machine_close(&m);
    return LS_OK;
}

/* The first step with a wrong answer; false: there is one. */
static bool compare_answers(const oracle_case *k, const struct share *shares, int workers,
                            char *note, size_t size)
{
    const json_t *expect = json_object_get(json_object_get(k->line, "expect"), "workers");
    json_t *steps = json_object_get(json_object_get(k->line, "case"), "steps");
    const agree_rule rule = rule_of(k);

    for (size_t i = 0; i < json_array_size(steps); i++) {
        for (int w = 0; w < workers; w++) {
            const json_t *want = json_array_get(json_array_get(expect, (size_t)w), i);
            const json_t *got = json_object_get(shares[w].answers, name_of_step(i).text);

            if (!agree(&rule, want, got)) {
                describe_result(w, i, want, got, note, size);
                return false;
            }
        }
    }
    for (int w = 0; w < workers; w++) {
        if (!shares[w].left) {
            (void)snprintf(note, size, "worker %d: a scope stays open after the case", w);
            return false;
        }
    }
    return true;
}

static oracle_verdict try_workers(const oracle_case *k, const json_t *strategy,
                                  char *note, size_t size)
{
    const int workers = (int)json_integer_value(json_array_get(strategy, 1));
    const json_t *devices = json_array_get(strategy, 2);
    const lst_workers how = {
        .workers = workers,
        .replicas = devices == NULL ? 1 : (int)json_integer_value(devices),
        .timeout_ms = MS_A_CALL,
        .stay =
            true}; // a worker whose expressions are done must not look like a lost one
    struct share shares[LST_MOST_WORKERS] = {{0}};
    ls_error err = LS_ERROR_INIT;
    bool passed;

    *k->workers = workers;
    for (int w = 0; w < workers && w < LST_MOST_WORKERS; w++) {
        shares[w] = (struct share){k, json_object(), false};
    }
    watchdog_start(SECONDS_A_CASE, "%s", k->id);
    passed = lst_workers_try(&how, answer_steps, shares, NULL, &err) == LS_OK;
    watchdog_stop();
    if (passed) {
        passed = compare_answers(k, shares, workers, note, size);
    } else {
        (void)snprintf(note, size, "no strategy: %s", err.message);
    }
    for (int w = 0; w < workers && w < LST_MOST_WORKERS; w++) {
        json_decref(shares[w].answers);
    }
    return passed ? ORACLE_PASSED : ORACLE_FAILED;
}

/* Each case runs on a thread of its own, which starts in default mode. */
oracle_verdict oracle_strategy(const oracle_case *k, char *note, size_t size)
{
    json_t *strategy = json_object_get(json_object_get(k->line, "case"), "strategy");
    const char *kind = json_string_value(json_array_get(strategy, 0));
    struct trial t = {k, strategy, note, size, ORACLE_FAILED};
    pthread_t thread;

    if (kind != NULL && strcmp(kind, "multi_worker") == 0) {
        return try_workers(k, strategy, note, size);
    }
    if (pthread_create(&thread, NULL, try_case, &t) != 0) {
        (void)snprintf(note, size, "no thread could be started");
        return ORACLE_FAILED;
    }
    (void)pthread_join(thread, NULL);
    watchdog_stop();
    return t.verdict;
}
