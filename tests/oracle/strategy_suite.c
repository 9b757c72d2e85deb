/* The suite `strategy`: strategies, contexts, values and variables of one process. */
#include "answers_agree.h"
#include "strategy_machine.h"
#include "watchdog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECONDS_A_STEP = 60 };

/*
 * The suite's machine has eight devices; they are in the default runtime, so that calls
 * without a runtime find them.
 */
bool oracle_strategy_prepare(void)
{
    return setenv("LS_DEVICES", "8", 1) == 0 && setenv("LS_THREADS", "1", 1) == 0;
}

/* The result of a step in the form of the line. */
static json_t *answer_step(machine *m, json_t *step)
{
    const scene s = {m, m->c, m->top, false};
    const char *op = json_string_value(json_array_get(step, 0));
    ls_error err = LS_ERROR_INIT;
    const ls_value *v = machine_eval(&s, step);

    if (ls_context_finish(m->c, &err) != LS_OK) {
        return machine_encode_error(&err);
    }
    return op != NULL && strcmp(op, "let") == 0 ? json_null() : machine_encode(m, v);
}

static void describe_result(size_t number, const json_t *want, const json_t *got,
                            char *note, size_t size)
{
    char *w = json_dumps(want, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    char *g =
        got == NULL ? NULL : json_dumps(got, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));

    (void)snprintf(note, size, "step %zu: expected %.700s, got %.700s", number,
                   w == NULL ? "?" : w, g == NULL ? "what cannot be written" : g);
    free(w);
    free(g);
}

static bool run_steps(machine *m, const oracle_case *k, char *note, size_t size)
{
    json_t *steps = json_object_get(json_object_get(k->line, "case"), "steps");
    json_t *answers = json_object_get(json_object_get(k->line, "expect"), "steps");
    const json_t *tolerance = json_object_get(k->line, "rtol");
    const agree_rule rule = {
        json_is_number(tolerance) ? json_number_value(tolerance) : 1e-6, true, true};

    if (json_array_size(steps) != json_array_size(answers)) {
        (void)snprintf(note, size, "%zu steps have %zu answers", json_array_size(steps),
                       json_array_size(answers));
        return false;
    }
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *want = json_array_get(answers, i);

        watchdog_start(SECONDS_A_STEP, "%s, step %zu", k->id, i);
        json_t *got = answer_step(m, json_array_get(steps, i));
        const bool agreed = agree(&rule, want, got);

        if (!agreed) {
            describe_result(i, want, got, note, size);
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

static void *try_case(void *arg)
{
    struct trial *t = arg;
    const char *from = json_string_value(json_object_get(t->k->line, "from"));
    const bool theirs = from != NULL && strncmp(from, "tensorflow", 10) == 0;
    ls_error err = LS_ERROR_INIT;
    machine m;
    bool passed;

    t->verdict = ORACLE_FAILED;
    watchdog_start(SECONDS_A_STEP, "%s, the strategy", t->k->id);
    if (!machine_open(&m, t->strategy, theirs, &err)) {
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

/* Each case runs on a thread of its own, which starts in default mode. */
oracle_verdict oracle_strategy(const oracle_case *k, char *note, size_t size)
{
    json_t *strategy = json_object_get(json_object_get(k->line, "case"), "strategy");
    const char *kind = json_string_value(json_array_get(strategy, 0));
    struct trial t = {k, strategy, note, size, ORACLE_FAILED};
    pthread_t thread;

    if (kind != NULL && strcmp(kind, "multi_worker") == 0) {
        (void)snprintf(note, size, "needs %lld real processes",
                       (long long)json_integer_value(json_array_get(strategy, 1)));
        return ORACLE_SKIPPED;
    }
    if (pthread_create(&thread, NULL, try_case, &t) != 0) {
        (void)snprintf(note, size, "no thread could be started");
        return ORACLE_FAILED;
    }
    (void)pthread_join(thread, NULL);
    watchdog_stop();
    return t.verdict;
}
