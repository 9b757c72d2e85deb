/* Steps through a line's pipeline and saves its position: see input_walk.h. */
#include "input_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STATE = 1 << 20 }; // bytes; a longer text is cut off and marked

/* ---- building ---- */

bool input_walk_exists(const json_t *kase)
{
    static const char *const actions[] = {"iterate",      "auto_shard", "distribute",
                                          "spec",         "checkpoint", "save",
                                          "from_function"};
    const char *action = json_string_value(json_object_get(kase, "action"));

    for (size_t i = 0; action != NULL && i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(actions[i], action) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_auto_shard(const json_t *kase)
{
    return strcmp(json_string_value(json_object_get(kase, "action")), "auto_shard") == 0;
}

static bool open_plain(input_walk *w, ls_error *err)
{
    json_t *kase = w->r->kase;

    input_builder_open(&w->b, w->r->folder, ls_default_strategy(), NULL);
    w->d = input_build(&w->b, json_object_get(kase, "pipeline"), kase);
    if (w->d == NULL) {
        *err = w->b.err;
        return false;
    }
    if (is_auto_shard(kase)) {
        w->d = ls_dataset_auto_shard(w->d, input_option(kase, "shards", 1),
                                     input_option(kase, "index", 0), input_policy(kase));
    }
    return ls_dataset_status(w->d, err) == LS_OK;
}

/* An answer that is an error, as an ls_error. */
static void error_of(const json_t *answer, ls_error *err)
{
    const json_t *e = json_object_get(answer, "error");
    const char *code = json_string_value(json_object_get(e, "code"));
    const char *message = json_string_value(json_object_get(e, "message"));
    ls_status st = LS_UNKNOWN;

    for (int i = 0; code != NULL && i <= LS_UNAUTHENTICATED; i++) {
        st = strcmp(ls_status_name((ls_status)i), code) == 0 ? (ls_status)i : st;
    }
    (void)input_fail(err, st, "%s", message == NULL ? "" : message);
}

/* False: a worker has failed. */
static bool all_well(const input_walk *w, ls_error *err)
{
    json_t *answer = input_group_error(&w->g);
    const bool well = answer == NULL;

    if (!well) {
        error_of(answer, err);
    }
    json_decref(answer);
    return well;
}

static bool open_distributed(input_walk *w, ls_error *err)
{
    json_t *answer = NULL;

    if (!input_group_open(&w->g, w->r, json_object_get(w->r->kase, "topology"),
                          &answer)) {
        error_of(answer, err);
        json_decref(answer);
        return false;
    }
    input_group_each(&w->g, input_distribute);
    return all_well(w, err);
}

bool input_walk_open(input_walk *w, const input_run *r, ls_error *err)
{
    bool open;

    memset(w, 0, sizeof *w);
    w->r = r;
    w->distributed = json_object_get(r->kase, "topology") != NULL;
    open = w->distributed ? open_distributed(w, err) : open_plain(w, err);
    if (!open) {
        input_walk_close(w);
    }
    return open;
}

void input_walk_close(input_walk *w)
{
    input_group_close(&w->g);
    ls_iterator_release(w->it);
    ls_dataset_release(w->d);
    input_builder_close(&w->b);
    w->it = NULL;
    w->d = NULL;
}

/* ---- stepping ---- */

static void start_worker(input_worker *w)
{
    ls_error err = LS_ERROR_INIT;

    ls_dist_iterator_release(w->it);
    w->it = NULL;
    if (ls_dist_iterate(w->dist, &w->it, &err) != LS_OK) {
        w->error = input_encode_error(&err);
    }
}

bool input_walk_start(input_walk *w, ls_error *err)
{
    if (w->distributed) {
        input_group_each(&w->g, start_worker);
        return all_well(w, err);
    }
    ls_iterator_release(w->it);
    w->it = NULL;
    return ls_dataset_iterate(w->d, &w->it, err) == LS_OK;
}

/* The result of one call: an element, an error or "end". */
static json_t *next_event(input_next next, void *user)
{
    ls_error err = LS_ERROR_INIT;
    json_t *event = NULL;
    const ls_status st = next(user, &event, &err);

    return st == LS_OK             ? event
           : st == LS_OUT_OF_RANGE ? json_string("end")
                                   : input_encode_error(&err);
}

static void step_worker(input_worker *w)
{
    w->events = next_event(input_next_step, w);
}

/* A hash of the event in 16 digits, and its beginning as text. */
static json_t *digest_event(const json_t *event)
{
    char *text = json_dumps(event, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    uint64_t hash = 0xCBF29CE484222325u; // FNV-1a
    json_t *out;

    for (const char *p = text; p != NULL && *p != '\0'; p++) {
        hash = (hash ^ (unsigned char)*p) * 0x100000001B3u;
    }
    out = json_sprintf("%016llx %.60s", (unsigned long long)hash,
                       text == NULL ? "?" : text);
    free(text);
    return out == NULL ? json_sprintf("%016llx", (unsigned long long)hash) : out;
}

/* Takes the event over. Returns whether it is the end. */
static bool add_event(json_t *step, json_t *event, int64_t *failures)
{
    const char *word = json_string_value(event);
    const bool end = word != NULL && strcmp(word, "end") == 0;

    *failures += json_object_get(event, "error") != NULL;
    (void)json_array_append_new(step, digest_event(event));
    json_decref(event);
    return end;
}

json_t *input_walk_step(input_walk *w, bool *over, int64_t *failures)
{
    json_t *step = json_array();
    int64_t failed = 0;

    *over = true;
    if (!w->distributed) {
        *over = add_event(step, next_event(input_next_plain, w->it), &failed);
    } else {
        input_group_each(&w->g, step_worker);
    }
    for (int i = 0; i < w->g.n; i++) {
        *over = add_event(step, w->g.w[i].events, &failed) && *over;
        w->g.w[i].events = NULL;
    }
    *failures += failed > 0;
    return step;
}

/* ---- positions in files ---- */

static void state_path(char *path, size_t size, const char *stem, int worker)
{
    (void)snprintf(path, size, "%s-%d.state", stem, worker);
}

static bool write_state(const char *stem, int worker, const ls_value *state,
                        ls_error *err)
{
    const ls_tensor *t = ls_value_as_tensor(state);
    char path[4096];
    FILE *f;
    bool written;

    state_path(path, sizeof path, stem, worker);
    f = fopen(path, "wb");
    written = f != NULL && t != NULL &&
              fwrite(ls_tensor_data(t), 1, ls_tensor_bytes(t), f) == ls_tensor_bytes(t);
    written = f != NULL && fclose(f) == 0 && written;
    if (!written) {
        (void)input_fail(err, LS_UNKNOWN, "%s could not be written", path);
    }
    return written;
}

static bool read_state(const char *stem, int worker, ls_value **out, ls_error *err)
{
    unsigned char *bytes = malloc(MOST_STATE);
    ls_tensor *t = NULL;
    char path[4096];
    size_t n = 0;
    FILE *f;
    bool made;

    state_path(path, sizeof path, stem, worker);
    f = fopen(path, "rb");
    if (f == NULL || bytes == NULL) {
        (void)input_fail(err, LS_UNKNOWN, "%s could not be read", path);
    } else {
        n = fread(bytes, 1, MOST_STATE, f);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    made = n > 0 &&
           ls_tensor_create(NULL, LS_U8, LS_SHAPE((int64_t)n), bytes, &t, err) == LS_OK &&
           ls_value_tensor(t, out, err) == LS_OK;
    ls_tensor_release(t);
    free(bytes);
    return made;
}

static void save_worker(input_worker *w)
{
    ls_error err = LS_ERROR_INIT;

    ls_value_release(w->state);
    w->state = NULL;
    if (ls_dist_iterator_save(w->it, &w->state, &err) != LS_OK) {
        w->error = input_encode_error(&err);
    }
}

static bool save_distributed(input_walk *w, const char *stem, ls_error *err)
{
    bool saved;

    input_group_each(&w->g, save_worker);
    saved = all_well(w, err);
    for (int i = 0; saved && i < w->g.n; i++) {
        saved = write_state(stem, i, w->g.w[i].state, err);
    }
    return saved;
}

bool input_walk_save(input_walk *w, const char *stem, ls_error *err)
{
    ls_value *state = NULL;
    bool saved;

    if (w->distributed) {
        return save_distributed(w, stem, err);
    }
    saved =
        ls_iterator_save(w->it, &state, err) == LS_OK && write_state(stem, 0, state, err);
    ls_value_release(state);
    return saved;
}

static void restore_worker(input_worker *w)
{
    ls_error err = LS_ERROR_INIT;

    if (ls_dist_iterator_restore(w->it, w->state, &err) != LS_OK) {
        w->error = input_encode_error(&err);
    }
}

static bool restore_distributed(input_walk *w, const char *stem, ls_error *err)
{
    bool read = true;

    for (int i = 0; read && i < w->g.n; i++) {
        read = read_state(stem, i, &w->g.w[i].state, err);
    }
    if (read) {
        input_group_each(&w->g, restore_worker);
    }
    return read && all_well(w, err);
}

bool input_walk_restore(input_walk *w, const char *stem, ls_error *err)
{
    ls_value *state = NULL;
    bool restored;

    if (w->distributed) {
        return restore_distributed(w, stem, err);
    }
    restored = read_state(stem, 0, &state, err) &&
               ls_iterator_restore(w->it, state, err) == LS_OK;
    ls_value_release(state);
    return restored;
}
