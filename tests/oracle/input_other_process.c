/*
 * oracle --other-process: restoring positions in another process. This process reads a
 * line's pipeline and saves its position after every step; another process builds the
 * pipeline again and continues from each position. Both must get the same results.
 *
 * The two share a folder: `job.json` holds the line and the positions, `E-K-W.state` is
 * worker W's position in epoch E after K steps, and `answer.json` holds the results of
 * the other process.
 */
#include "input_walk.h"
#include "watchdog.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    SECONDS_A_LINE = 120,
    MOST_STEPS = 500,
    MOST_STATES = 24, // per epoch; of more steps an even selection
};

static const char *program; // argv[0]
static size_t positions, thinned;

/* ---- both sides ---- */

/*
 * The steps after which the position is saved: `states` of 0 ... steps, both ends
 * included.
 */
static size_t step_of(size_t k, size_t states, size_t steps)
{
    return states < 2 ? 0 : k * steps / (states - 1);
}

static size_t states_of(size_t steps)
{
    return steps + 1 < MOST_STATES ? steps + 1 : MOST_STATES;
}

static void stem_of(char *stem, size_t size, const char *folder, size_t epoch, size_t k)
{
    (void)snprintf(stem, size, "%s/%zu-%zu", folder, epoch, k);
}

/* The results of the steps, up to the end, too many failures or MOST_STEPS. */
static json_t *walk_on(input_walk *w, size_t most, int64_t failures)
{
    const int64_t allowed = input_option(w->r->kase, "errors", 0);
    json_t *steps = json_array();
    bool over = false;

    while (!over && failures <= allowed && json_array_size(steps) < most) {
        (void)json_array_append_new(steps, input_walk_step(w, &over, &failures));
    }
    return steps;
}

static size_t most_steps(const json_t *kase)
{
    const int64_t steps = input_option(kase, "steps", -1);

    return steps < 0 ? MOST_STEPS : (size_t)steps;
}

/* ---- the other process ---- */

/*
 * Builds the pipeline again, sets it to the position `p` and reads it to its end; also
 * the epoch that follows, if there is one.
 */
static json_t *go_on(const input_run *r, const char *folder, const json_t *p)
{
    ls_error err = LS_ERROR_INIT;
    json_t *answer = NULL;
    char stem[4096];
    input_walk w;

    stem_of(stem, sizeof stem, folder, (size_t)input_option(p, "epoch", 0),
            (size_t)input_option(p, "step", 0));
    if (!input_walk_open(&w, r, &err)) {
        return input_encode_error(&err);
    }
    if (input_walk_start(&w, &err) && input_walk_restore(&w, stem, &err)) {
        answer = json_pack("{s:o}", "rest",
                           walk_on(&w, (size_t)input_option(p, "most", 0),
                                   input_option(p, "failures", 0)));
    }
    if (answer != NULL && !input_flag(p, "last", true)) {
        (void)json_object_set_new(answer, "next",
                                  input_walk_start(&w, &err)
                                      ? walk_on(&w, most_steps(r->kase), 0)
                                      : input_encode_error(&err));
    }
    input_walk_close(&w);
    return answer == NULL ? input_encode_error(&err) : answer;
}

static json_t *answer_job(const json_t *job, const char *folder)
{
    json_t *line = json_object_get(job, "line");
    json_t *todo = json_object_get(job, "positions"), *answers = json_array();
    const oracle_case k = {folder, json_string_value(json_object_get(line, "id")), line,
                           NULL};
    char missing[8] = "";
    const input_run r = {&k, json_object_get(line, "case"),
                         json_string_value(json_object_get(job, "files")), missing,
                         sizeof missing};

    for (size_t i = 0; i < json_array_size(todo); i++) {
        watchdog_start(SECONDS_A_LINE, "%s, in the other process", k.id);
        (void)json_array_append_new(answers, go_on(&r, folder, json_array_get(todo, i)));
    }
    watchdog_stop();
    return answers;
}

int oracle_other_process_run(const char *folder)
{
    char path[4096];
    json_error_t error;
    json_t *job, *answers = NULL;
    bool written = false;

    (void)snprintf(path, sizeof path, "%s/job.json", folder);
    job = json_load_file(path, 0, &error);
    if (job != NULL) {
        answers = answer_job(job, folder);
        (void)snprintf(path, sizeof path, "%s/answer.json", folder);
        written = json_dump_file(answers, path, JSON_COMPACT) == 0;
    } else {
        (void)fprintf(stderr, "%s, line %d: %s\n", path, error.line, error.text);
    }
    json_decref(answers);
    json_decref(job);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- this process ---- */

/* The state of a line's run. */
struct trip {
    const input_run *r;
    char folder[64];
    json_t *epochs; /* the results of each step of each epoch */
    json_t *todo;   /* the positions that were saved */
    char *note;
    size_t size;
};

void oracle_other_process_prepare(const char *self)
{
    program = self;
}

static bool save_position(struct trip *t, input_walk *w, size_t epoch, size_t step,
                          int64_t failures, ls_error *err)
{
    const size_t most = most_steps(t->r->kase);
    const bool last = (int64_t)epoch + 1 == input_option(t->r->kase, "epochs", 1);
    char stem[4096];

    stem_of(stem, sizeof stem, t->folder, epoch, step);
    if (!input_walk_save(w, stem, err)) {
        return false;
    }
    (void)json_array_append_new(
        t->todo, json_pack("{s:I, s:I, s:I, s:I, s:b}", "epoch", (json_int_t)epoch,
                           "step", (json_int_t)step, "most", (json_int_t)(most - step),
                           "failures", (json_int_t)failures, "last", (int)last));
    return true;
}

/*
 * Makes the same steps again with a new pipeline, saving in between; `known` holds their
 * results without saving.
 */
static bool walk_and_save(struct trip *t, input_walk *w, size_t epoch,
                          const json_t *known, ls_error *err)
{
    const size_t n = json_array_size(known), states = states_of(n);
    json_t *steps = json_array();
    int64_t failures = 0;
    bool over = false, saved = true;
    size_t next = 0;

    for (size_t i = 0; saved && i <= n; i++) {
        if (i == step_of(next, states, n)) {
            saved = save_position(t, w, epoch, i, failures, err);
            next++;
        }
        if (saved && i < n) {
            (void)json_array_append_new(steps, input_walk_step(w, &over, &failures));
        }
    }
    thinned += n + 1 > states;
    if (saved && !json_equal(steps, known)) {
        saved = false;
        (void)input_fail(err, LS_INTERNAL,
                         "epoch %zu gives something else if its position is saved",
                         epoch);
    }
    json_decref(steps);
    return saved;
}

/* Reads all epochs twice: without and with saving. False: *err says why. */
static bool walk_here(struct trip *t, ls_error *err)
{
    const size_t epochs = (size_t)input_option(t->r->kase, "epochs", 1);
    input_walk plain, saving;
    bool well = input_walk_open(&plain, t->r, err);

    if (!well || !input_walk_open(&saving, t->r, err)) {
        if (well) {
            input_walk_close(&plain);
        }
        return false;
    }
    for (size_t e = 0; well && e < epochs; e++) {
        json_t *steps;

        well = input_walk_start(&plain, err) && input_walk_start(&saving, err);
        if (well) {
            steps = walk_on(&plain, most_steps(t->r->kase), 0);
            (void)json_array_append_new(t->epochs, steps);
            well = walk_and_save(t, &saving, e, steps, err);
        }
    }
    input_walk_close(&saving);
    input_walk_close(&plain);
    return well;
}

/* Runs this program again on the folder; false: it failed. */
static bool run_worker(const struct trip *t)
{
    char path[4096], option[] = "--restore-from", folder[64];
    char *argv[] = {NULL, option, folder, NULL};
    pid_t pid = 0;
    int status = 0;

    (void)snprintf(path, sizeof path, "%s", program);
    (void)snprintf(folder, sizeof folder, "%s", t->folder);
    argv[0] = path;
    if (posix_spawn(&pid, program, NULL, NULL, argv, environ) != 0) {
        (void)snprintf(t->note, t->size, "%s could not be started", program);
        return false;
    }
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
        WEXITSTATUS(status) != EXIT_SUCCESS) {
        (void)snprintf(t->note, t->size, "the other process failed");
        return false;
    }
    return true;
}

/* The results of this process after a position; the array is the caller's to release. */
static json_t *rest_of(const json_t *steps, size_t from)
{
    const size_t n = json_array_size(steps);
    json_t *rest = json_array();

    for (size_t i = from; i < n; i++) {
        (void)json_array_append(rest, json_array_get(steps, i));
    }
    return rest;
}

static void explain_difference(const struct trip *t, const json_t *p, const char *what,
                               const json_t *want, const json_t *got)
{
    char *w = NULL, *g = NULL;
    size_t i = 0;

    while (i < json_array_size(want) &&
           json_equal(json_array_get(want, i), json_array_get(got, i))) {
        i++;
    }
    w = json_dumps(json_array_get(want, i), JSON_COMPACT);
    g = json_dumps(json_is_array(got) ? json_array_get(got, i) : got, JSON_COMPACT);
    (void)snprintf(t->note, t->size,
                   "epoch %lld saved after %lld steps: step %zu of the %s is %s, the "
                   "other process has %s",
                   (long long)input_option(p, "epoch", 0),
                   (long long)input_option(p, "step", 0), i, what, w == NULL ? "none" : w,
                   g == NULL ? "none" : g);
    free(w);
    free(g);
}

static bool compare_rest(const struct trip *t, const json_t *p, const json_t *answer)
{
    const json_t *got = json_object_get(answer, "rest");
    const json_t *steps = json_array_get(t->epochs, (size_t)input_option(p, "epoch", 0));
    json_t *want = rest_of(steps, (size_t)input_option(p, "step", 0));
    bool same;

    if (json_array_size(want) == 0 && json_array_size(got) > 0) {
        // After the end comes the end again.
        (void)json_array_append(want, json_array_get(steps, json_array_size(steps) - 1));
    }
    same = got != NULL && json_equal(want, got);
    if (!same) {
        explain_difference(t, p, "rest", want, got == NULL ? answer : got);
    }
    json_decref(want);
    return same;
}

static bool compare_next(const struct trip *t, const json_t *p, const json_t *answer)
{
    const json_t *got = json_object_get(answer, "next");
    const json_t *want =
        json_array_get(t->epochs, (size_t)input_option(p, "epoch", 0) + 1);
    const bool same = want == NULL || (got != NULL && json_equal(want, got));

    if (!same) {
        explain_difference(t, p, "next epoch", want, got == NULL ? answer : got);
    }
    return same;
}

/* Runs the other process and compares its results. */
static bool compare_other_process(struct trip *t)
{
    char path[4096];
    json_t *job = json_pack("{s:O, s:s, s:O}", "line", t->r->k->line, "files",
                            t->r->folder, "positions", t->todo);
    json_t *answers = NULL;
    bool same;

    (void)snprintf(path, sizeof path, "%s/job.json", t->folder);
    same = json_dump_file(job, path, JSON_COMPACT) == 0 && run_worker(t);
    json_decref(job);
    if (same) {
        (void)snprintf(path, sizeof path, "%s/answer.json", t->folder);
        answers = json_load_file(path, 0, NULL);
        same = json_array_size(answers) == json_array_size(t->todo);
        if (!same) {
            (void)snprintf(t->note, t->size, "the other process left out positions");
        }
    }
    for (size_t i = 0; same && i < json_array_size(answers); i++) {
        const json_t *p = json_array_get(t->todo, i);
        const json_t *answer = json_array_get(answers, i);

        same = compare_rest(t, p, answer) && compare_next(t, p, answer);
    }
    positions += same ? json_array_size(answers) : 0;
    json_decref(answers);
    return same;
}

static void remove_folder(const struct trip *t)
{
    static const char *const names[] = {"job.json", "answer.json"};
    char path[4096];

    for (size_t i = 0; i < json_array_size(t->todo); i++) {
        const json_t *p = json_array_get(t->todo, i);

        for (int w = 0; w < INPUT_MOST_WORKERS; w++) {
            (void)snprintf(path, sizeof path, "%s/%lld-%lld-%d.state", t->folder,
                           (long long)input_option(p, "epoch", 0),
                           (long long)input_option(p, "step", 0), w);
            (void)unlink(path);
        }
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", t->folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(t->folder);
}

/*
 * A pipeline with state that cannot be saved must report that; all others can be saved.
 */
static oracle_verdict judge_failure(const struct trip *t, const ls_error *err)
{
    const bool built = json_array_size(t->epochs) > 0;
    const bool said =
        err->message[0] != '\0' && (!built || err->code == LS_FAILED_PRECONDITION);

    (void)snprintf(t->note, t->size, "%s: %s: %s",
                   built ? "cannot be saved" : "has no iterator",
                   ls_status_name(err->code), err->message);
    return said ? ORACLE_SKIPPED : ORACLE_FAILED;
}

static oracle_verdict run_line(const input_run *r, char *note, size_t size)
{
    struct trip t = {.r = r,
                     .folder = "/tmp/oracle-trip-XXXXXX",
                     .epochs = json_array(),
                     .todo = json_array(),
                     .note = note,
                     .size = size};
    ls_error err = LS_ERROR_INIT;
    oracle_verdict v = ORACLE_FAILED;

    if (mkdtemp(t.folder) == NULL) {
        (void)snprintf(note, size, "no folder could be made: %s", t.folder);
    } else {
        v = !walk_here(&t, &err)        ? judge_failure(&t, &err)
            : compare_other_process(&t) ? ORACLE_PASSED
                                        : ORACLE_FAILED;
        remove_folder(&t);
    }
    json_decref(t.epochs);
    json_decref(t.todo);
    return v;
}

static bool is_unordered(const json_t *line)
{
    const json_t *tags = json_object_get(line, "tags");

    for (size_t i = 0; i < json_array_size(tags); i++) {
        if (strcmp(json_string_value(json_array_get(tags, i)), "unordered") == 0) {
            return true;
        }
    }
    return false;
}

oracle_verdict oracle_input_other_process(const oracle_case *k, char *note, size_t size)
{
    json_t *kase = json_object_get(k->line, "case");
    char folder[4096], missing[8] = "";
    const input_run r = {k, kase, folder, missing, sizeof missing};
    oracle_verdict v = ORACLE_SKIPPED;

    if (!input_walk_exists(kase) || is_unordered(k->line)) {
        (void)snprintf(note, size, "%s",
                       is_unordered(k->line) ? "no two runs have the same order"
                                             : "its action has no iterator");
        return v;
    }
    watchdog_start(SECONDS_A_LINE, "%s", k->id);
    if (!input_files_open(json_object_get(kase, "files"), folder, sizeof folder, note,
                          size)) {
        return ORACLE_FAILED;
    }
    v = run_line(&r, note, size);
    input_files_close(json_object_get(kase, "files"), folder);
    watchdog_stop();
    return v;
}

void oracle_other_process_report(void)
{
    printf("%zu positions restored in another process; %zu epochs are longer than %d "
           "positions and were thinned\n",
           positions, thinned, MOST_STATES);
}
