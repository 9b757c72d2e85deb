/*
 * Compares the result of a case with what its line expects, by the rules of the suite
 * `input`.
 */
#include "answers_agree.h"
#include "input_machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct judge {
    agree_rule rule;
    bool workers; /* events are one list per worker */
    bool unordered, empty_tail, end_or_error;
    char *note;
    size_t size;
} judge;

static bool note_difference(const judge *j, const json_t *want, const json_t *got,
                            const char *fmt, ...) LS_PRINTF(4, 5);

static bool note_difference(const judge *j, const json_t *want, const json_t *got,
                            const char *fmt, ...)
{
    char *w = json_dumps(want, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    char *g =
        got == NULL ? NULL : json_dumps(got, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    char where[120];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(where, sizeof where, fmt, args);
    va_end(args);
    (void)snprintf(j->note, j->size, "%s: expected %.650s, got %.650s", where,
                   w == NULL ? "?" : w, g == NULL ? "nothing" : g);
    free(w);
    free(g);
    return false;
}

static bool is_word(const json_t *event, const char *word)
{
    const char *text = json_string_value(event);

    return text != NULL && strcmp(text, word) == 0;
}

static bool is_error(const json_t *event)
{
    return json_object_get(event, "error") != NULL;
}

/* If another worker failed TensorFlow waits endlessly; we only promise no data. */
static bool event_agrees(const judge *j, const json_t *want, const json_t *got)
{
    return is_word(want, "peer") ? is_word(got, "end") || is_error(got)
                                 : agree(&j->rule, want, got);
}

/* Both lists hold the same events, in any order; the last ones agree. */
static bool same_events(const judge *j, const json_t *want, const json_t *got)
{
    const size_t n = json_array_size(want);
    bool *used = calloc(n + 1, sizeof *used);
    bool same = used != NULL && json_array_size(got) == n && n > 0 &&
                event_agrees(j, json_array_get(want, n - 1), json_array_get(got, n - 1));

    for (size_t i = 0; same && i + 1 < n; i++) {
        size_t k = 0;

        while (k + 1 < n && (used[k] || !event_agrees(j, json_array_get(want, i),
                                                      json_array_get(got, k)))) {
            k++;
        }
        same = k + 1 < n;
        used[k] = true;
    }
    free(used);
    return same;
}

static bool list_agrees(const judge *j, const json_t *want, const json_t *got,
                        const char *where, size_t worker)
{
    const size_t n = json_array_size(want), m = json_array_size(got);

    if (j->unordered) {
        return same_events(j, want, got) ||
               note_difference(j, want, got, "%s, in any order", where);
    }
    for (size_t i = 0; i < n || i < m; i++) {
        const json_t *w = json_array_get(want, i), *g = json_array_get(got, i);

        if (w == NULL || g == NULL || !event_agrees(j, w, g)) {
            return note_difference(j, w == NULL ? json_null() : w, g,
                                   "%s, worker %zu, event %zu", where, worker, i);
        }
    }
    return true;
}

/* Whether all batches of the step are without rows. */
static bool is_empty(const json_t *x)
{
    const json_t *shape = json_object_get(x, "shape");
    const char *key;
    json_t *value;

    if (json_is_array(x)) {
        bool all = true;

        for (size_t i = 0; i < json_array_size(x); i++) {
            all = all && is_empty(json_array_get(x, i));
        }
        return all;
    }
    if (shape != NULL) {
        return json_array_size(shape) > 0 &&
               json_integer_value(json_array_get(shape, 0)) == 0;
    }
    if (!json_is_object(x) || is_error(x) || json_object_get(x, "sparse") != NULL) {
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)x, key, value)
    {
        if (!is_empty(value)) {
            return false;
        }
    }
    return true;
}

/* Removes the empty steps before the end, if every worker has one. */
static json_t *without_tail(const json_t *workers)
{
    json_t *out = json_deep_copy(workers);
    bool more = json_array_size(out) > 0;

    while (more) {
        for (size_t w = 0; w < json_array_size(out); w++) {
            const json_t *events = json_array_get(out, w);
            const size_t n = json_array_size(events);

            more = more && n > 1 && is_word(json_array_get(events, n - 1), "end") &&
                   is_empty(json_array_get(events, n - 2));
        }
        for (size_t w = 0; more && w < json_array_size(out); w++) {
            json_t *events = json_array_get(out, w);

            (void)json_array_remove(events, json_array_size(events) - 2);
        }
    }
    return out;
}

static bool is_invalid_argument(const json_t *event)
{
    return is_word(json_object_get(json_object_get(event, "error"), "code"),
                   "INVALID_ARGUMENT");
}

/* Whether every worker failed at once because there are too few files. */
static bool failed_early(const json_t *workers)
{
    const size_t n = json_array_size(workers);

    for (size_t w = 0; w < n; w++) {
        if (!is_invalid_argument(json_array_get(json_array_get(workers, w), 0))) {
            return false;
        }
    }
    return n > 0;
}

static bool workers_agree(const judge *j, const json_t *want, const json_t *got,
                          const char *where)
{
    const size_t n = json_array_size(want);
    bool agree = json_array_size(got) == n;
    json_t *w, *g;

    if (j->end_or_error && failed_early(got)) {
        return true;
    }
    if (!agree) {
        return note_difference(j, want, got, "%s", where);
    }
    w = j->empty_tail ? without_tail(want) : json_deep_copy(want);
    g = j->empty_tail ? without_tail(got) : json_deep_copy(got);
    for (size_t i = 0; agree && i < n; i++) {
        agree = list_agrees(j, json_array_get(w, i), json_array_get(g, i), where, i);
    }
    json_decref(w);
    json_decref(g);
    return agree;
}

/* One epoch's events of a worker; without workers there is one list. */
static bool epoch_agrees(const judge *j, const json_t *want, const json_t *got,
                         const char *where)
{
    json_t *w, *g;
    bool agree;

    if (j->workers) {
        return workers_agree(j, want, got, where);
    }
    w = json_pack("[O]", want);
    g = json_pack("[O]", got);
    agree = w != NULL && g != NULL && workers_agree(j, w, g, where);
    json_decref(w);
    json_decref(g);
    return agree;
}

static bool epochs_agree(const judge *j, const json_t *want, const json_t *got)
{
    const size_t n = json_array_size(want);

    for (size_t i = 0; i < n; i++) {
        char where[40];

        (void)snprintf(where, sizeof where, "epoch %zu", i);
        if (!epoch_agrees(j, json_array_get(want, i), json_array_get(got, i), where)) {
            return false;
        }
    }
    return json_array_size(got) == n || note_difference(j, want, got, "epochs");
}

/* ---- errors before the first element ---- */

/*
 * Whether one worker begins with a failure that agrees with `error`, and every other one
 * with any failure, or without data. `ours`: the epoch is our result and the error is the
 * line's; otherwise the reverse, and nothing may follow.
 */
static bool begins_with(const judge *j, const json_t *epoch, const json_t *error,
                        bool ours)
{
    const size_t n = j->workers ? json_array_size(epoch) : 1;
    bool found = false;

    for (size_t w = 0; w < n; w++) {
        const json_t *events = j->workers ? json_array_get(epoch, w) : epoch;
        const json_t *first = json_array_get(events, 0);
        const json_t *other = json_object_get(first, "error");

        if (other != NULL) {
            found = found || (ours ? agree_errors(&j->rule, error, other)
                                   : agree_errors(&j->rule, other, error));
        } else if (!is_word(first, ours ? "end" : "peer")) {
            return false;
        }
        if (!ours && json_array_size(events) != 1) {
            return false;
        }
    }
    return found;
}

/* TensorFlow failed before there was an iterator, we with its first element. */
static bool failed_later(const judge *j, const json_t *error, const json_t *got)
{
    return begins_with(j, json_array_get(json_object_get(got, "epochs"), 0), error, true);
}

/* The reverse. */
static bool failed_sooner(const judge *j, const json_t *want, const json_t *error)
{
    const json_t *epochs = json_object_get(want, "epochs");
    const size_t n = json_array_size(epochs);

    for (size_t i = 0; i < n; i++) {
        if (!begins_with(j, json_array_get(epochs, i), error, false)) {
            return false;
        }
    }
    return n > 0;
}

/* ---- answers ---- */

static bool has_tag(const json_t *line, const char *tag)
{
    const json_t *tags = json_object_get(line, "tags");

    for (size_t i = 0; i < json_array_size(tags); i++) {
        if (is_word(json_array_get(tags, i), tag)) {
            return true;
        }
    }
    return false;
}

static bool part_agrees(const judge *j, const char *key, const json_t *want,
                        const json_t *got)
{
    if (strcmp(key, "epochs") == 0) {
        return epochs_agree(j, want, got);
    }
    if (strcmp(key, "before") == 0 || strcmp(key, "after") == 0 ||
        strcmp(key, "next_epoch") == 0) {
        return epoch_agrees(j, want, got, key);
    }
    return agree(&j->rule, want, got) || note_difference(j, want, got, "%s", key);
}

bool input_agrees(const json_t *line, const json_t *got, char *note, size_t size)
{
    const json_t *want = json_object_get(line, "expect");
    const json_t *kase = json_object_get(line, "case");
    const json_t *tolerance = json_object_get(line, "rtol");
    const json_t *theirs = json_object_get(want, "error");
    const json_t *ours = json_object_get(got, "error");
    judge j = {.rule.rtol =
                   json_is_number(tolerance) ? json_number_value(tolerance) : 1e-6,
               .workers = json_object_get(kase, "topology") != NULL,
               .unordered = has_tag(line, "unordered"),
               .empty_tail = has_tag(line, "empty_tail"),
               .end_or_error = has_tag(line, "end_or_error"),
               .size = size};
    const char *key;
    json_t *value;

    j.note = note;
    if (theirs != NULL) {
        return (ours != NULL ? agree_errors(&j.rule, theirs, ours)
                             : failed_later(&j, theirs, got)) ||
               note_difference(&j, want, got, "the answer");
    }
    if (ours != NULL) {
        return (j.end_or_error && is_invalid_argument(got)) ||
               failed_sooner(&j, want, ours) ||
               note_difference(&j, want, got, "the answer");
    }
    json_object_foreach((json_t *)(uintptr_t)want, key, value)
    {
        if (!part_agrees(&j, key, value, json_object_get(got, key))) {
            return false;
        }
    }
    return json_object_size(want) > 0;
}
