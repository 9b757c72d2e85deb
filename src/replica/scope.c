/*
 * The scopes of a thread: strategy, name, device, creator and colocation scopes on one
 * stack, which is thread-specific data; and the sync_on_read flag.
 */
#include "replica/scope.h"

#include <stdio.h>
#include <string.h>

typedef enum scope_kind {
    SCOPE_STRATEGY,
    SCOPE_DEFAULT, /* the default strategy's: changes no mode */
    SCOPE_NAME,
    SCOPE_DEVICE,
    SCOPE_CREATOR,
    SCOPE_COLOCATE
} scope_kind;

static const char *const kind_names[] = {"strategy", "default strategy", "name",
                                         "device",   "creator",          "colocation"};

struct lsi_scope {
    struct lsi_scope *outer;
    scope_kind kind;
    ls_strategy *strategy; /* retained */
    lsi_mode mode;         /* of a strategy's scope only */
    int entered;
    bool set; /* opened by ls_set_strategy() */
    char *name;
    ls_device *device;
    lsi_object object; /* retained; self is NULL: no object */
    ls_creator_fn creator;
    void *user;
};

/* Thread-specific data; freed when the thread ends. */
struct lsi_thread_state {
    struct lsi_scope *scopes; /* the innermost */
    ls_context *context;
    bool sync_on_read;
};

static lsi_once key_once = LSI_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

static void close_scope(struct lsi_scope *s)
{
    ls_strategy_release(s->strategy);
    if (s->object.self != NULL) {
        s->object.ops->release(s->object.self);
    }
    lsi_free(s->name);
    lsi_free(s);
}

static void end_thread(void *arg)
{
    struct lsi_thread_state *state = arg;

    while (state->scopes != NULL) {
        struct lsi_scope *s = state->scopes;

        state->scopes = s->outer;
        close_scope(s);
    }
    ls_context_close(state->context);
    lsi_free(state);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, end_thread) == 0;
}

/* NULL: the thread has no state yet or, with `make`, there is no memory for one. */
static struct lsi_thread_state *state_of(bool make)
{
    struct lsi_thread_state *state;

    lsi_once_run(&key_once, make_key);
    if (!key_made) {
        return NULL;
    }
    state = pthread_getspecific(key);
    if (state == NULL && make) {
        state = lsi_alloc(1, sizeof *state);
        if (state != NULL && pthread_setspecific(key, state) != 0) {
            lsi_free(state);
            state = NULL;
        }
    }
    return state;
}

static struct lsi_scope *innermost(void)
{
    const struct lsi_thread_state *state = state_of(false);

    return state == NULL ? NULL : state->scopes;
}

struct lsi_scope *lsi_scopes_mark(void)
{
    return innermost();
}

void lsi_scopes_unwind(struct lsi_scope *mark)
{
    struct lsi_thread_state *state = state_of(false);

    while (state != NULL && state->scopes != NULL && state->scopes != mark) {
        struct lsi_scope *s = state->scopes;

        lsi_log(LS_LOG_WARNING, "a %s scope was still open when its function ended",
                kind_names[s->kind]);
        state->scopes = s->outer;
        if (s->kind == SCOPE_STRATEGY) {
            lsi_mode_pop(&s->mode);
        }
        close_scope(s);
    }
}

ls_context *lsi_thread_context(void)
{
    struct lsi_thread_state *state = state_of(true);

    if (state != NULL && state->context == NULL) {
        if (ls_context_open(NULL, NULL, &state->context, NULL) != LS_OK) {
            return NULL;
        }
    }
    return state == NULL ? NULL : state->context;
}

/* Opens a scope; the caller fills in its fields. NULL: out of memory. */
static struct lsi_scope *open_scope(scope_kind kind, ls_error *err)
{
    struct lsi_thread_state *state = state_of(true);
    struct lsi_scope *s = state == NULL ? NULL : lsi_alloc(1, sizeof *s);

    if (s == NULL) {
        (void)lsi_fail_memory(err, "a scope", sizeof *s);
        return NULL;
    }
    s->kind = kind;
    s->outer = state->scopes;
    state->scopes = s;
    return s;
}

static void drop_innermost(void)
{
    struct lsi_thread_state *state = state_of(false);
    struct lsi_scope *s = state->scopes;

    state->scopes = s->outer;
    close_scope(s);
}

/*
 * Closes the innermost scope, which must be of `kind` and opened by the function that is
 * running.
 */
static ls_status close_innermost(scope_kind kind, ls_error *err)
{
    const lsi_mode *now = lsi_mode_now();
    const struct lsi_scope *s = innermost();

    if (s == NULL || s->kind != kind || (now != NULL && s == now->scopes)) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "scope: there is no %s scope to close here%s%s%s",
                             kind_names[kind], s != NULL ? "; the innermost is a " : "",
                             s != NULL ? kind_names[s->kind] : "",
                             s != NULL ? " scope" : "");
    }
    drop_innermost();
    return LS_OK;
}

/* ---- strategies ---- */

static struct lsi_scope *find_strategy(const ls_strategy *s)
{
    const scope_kind kind = s->ops->is_default ? SCOPE_DEFAULT : SCOPE_STRATEGY;

    for (struct lsi_scope *at = innermost(); at != NULL; at = at->outer) {
        if (at->kind == kind && at->strategy == s) {
            return at;
        }
    }
    return NULL;
}

static ls_status enter_default(ls_strategy *s, ls_error *err)
{
    struct lsi_scope *opened;

    if (ls_has_strategy()) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "scope: the default strategy must not nest inside %s",
                             ls_current_strategy()->ops->name);
    }
    opened = open_scope(SCOPE_DEFAULT, err);
    if (opened == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    opened->strategy = ls_strategy_retain(s);
    opened->entered = 1;
    return LS_OK;
}

static ls_status enter_strategy(ls_strategy *s, bool set, ls_error *err)
{
    struct lsi_scope *opened = NULL;
    lsi_mode probe;
    bool pushed = false;
    ls_status st;

    if (s->ops->is_default) {
        return enter_default(s, err);
    }
    st = lsi_scope_visit(s, &probe, &pushed, err);
    if (st != LS_OK) {
        return st;
    }
    if (!pushed) { // it is current already: count the entry, if a scope of it is open
        opened = find_strategy(s);
        if (opened != NULL) {
            opened->entered++;
            return LS_OK;
        }
    } else {
        lsi_scope_leave(&probe, true);
    }
    opened = open_scope(SCOPE_STRATEGY, err);
    if (opened == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    opened->strategy = ls_strategy_retain(s);
    opened->entered = 1;
    opened->set = set;
    opened->mode = (lsi_mode){.strategy = s, .cross = true};
    lsi_mode_push(&opened->mode);
    return LS_OK;
}

ls_status ls_scope_enter(ls_strategy *s, ls_error *err)
{
    if (s == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "scope: the strategy is NULL");
    }
    return enter_strategy(s, false, err);
}

ls_status ls_scope_try_exit(ls_strategy *s, ls_error *err)
{
    struct lsi_scope *opened = s == NULL ? NULL : find_strategy(s);
    const lsi_mode *now = lsi_mode_now();

    if (opened == NULL || (opened->set && opened->entered == 1)) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "scope: %s was not entered on this thread",
                             s == NULL ? "NULL" : s->ops->name);
    }
    if (opened->entered > 1) {
        opened->entered--;
        return LS_OK;
    }
    if (opened != innermost()) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "scope: a %s scope opened inside that of %s is still open; "
                             "close it first",
                             kind_names[innermost()->kind], s->ops->name);
    }
    if (opened->kind == SCOPE_STRATEGY) {
        if (now != &opened->mode) {
            return lsi_fail_kind(
                err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                "scope: %s was entered outside of this function and must "
                "be left there",
                s->ops->name);
        }
        lsi_mode_pop(&opened->mode);
    }
    drop_innermost();
    return LS_OK;
}

void ls_scope_exit(ls_strategy *s)
{
    ls_error err = LS_ERROR_INIT;

    if (ls_scope_try_exit(s, &err) != LS_OK) {
        lsi_log(LS_LOG_ERROR, "%s", err.message);
    }
}

ls_status ls_set_strategy(ls_strategy *s, ls_error *err)
{
    struct lsi_scope *opened = innermost();

    if (opened != NULL && opened->kind == SCOPE_STRATEGY && opened->set &&
        lsi_mode_now() == &opened->mode) {
        lsi_mode_pop(&opened->mode);
        drop_innermost();
    }
    if (ls_has_strategy()) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "set_strategy: the scope of %s is open; leave it first",
                             ls_current_strategy()->ops->name);
    }
    return s == NULL || s->ops->is_default ? LS_OK : enter_strategy(s, true, err);
}

bool lsi_scope_mixed(void)
{
    for (const struct lsi_scope *at = innermost(); at != NULL; at = at->outer) {
        if (at->kind == SCOPE_DEFAULT) {
            return ls_has_strategy();
        }
    }
    return false;
}

/* ---- names, devices, creators, colocation ---- */

ls_status ls_name_scope_enter(const char *name, ls_error *err)
{
    struct lsi_scope *opened;

    if (name == NULL || name[0] == '\0') {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "name_scope: the name is empty");
    }
    opened = open_scope(SCOPE_NAME, err);
    if (opened == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    opened->name = lsi_strdup(name);
    if (opened->name == NULL) {
        drop_innermost();
        return lsi_fail_memory(err, "a name", strlen(name));
    }
    return LS_OK;
}

ls_status ls_name_scope_exit(ls_error *err)
{
    return close_innermost(SCOPE_NAME, err);
}

/* Writes the names of `s` and of outer scopes, outermost first; returns the length. */
static size_t write_names(const struct lsi_scope *s, char *out)
{
    size_t at;

    if (s == NULL) {
        return 0;
    }
    at = write_names(s->outer, out);
    if (s->kind == SCOPE_NAME) {
        const size_t n = strlen(s->name);

        if (out != NULL) {
            memcpy(out + at, s->name, n);
            out[at + n] = '/';
        }
        at += n + 1;
    }
    return at;
}

char *lsi_scoped_name(const char *name)
{
    const size_t front = write_names(innermost(), NULL), room = strlen(name) + 1;
    char *whole = lsi_alloc(front + room, 1);

    if (whole != NULL) {
        (void)write_names(innermost(), whole);
        (void)snprintf(whole + front, room, "%s", name);
    }
    return whole;
}

ls_status ls_device_scope_enter(ls_device *device, ls_error *err)
{
    struct lsi_scope *opened;

    if (device == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "device_scope: the device is NULL");
    }
    opened = open_scope(SCOPE_DEVICE, err);
    if (opened == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    opened->device = device;
    return LS_OK;
}

ls_status ls_device_scope_exit(ls_error *err)
{
    return close_innermost(SCOPE_DEVICE, err);
}

ls_device *lsi_scope_device(void)
{
    for (const struct lsi_scope *at = innermost(); at != NULL; at = at->outer) {
        if (at->kind == SCOPE_DEVICE) {
            return at->device;
        }
    }
    return NULL;
}

ls_status ls_creator_scope_enter(ls_creator_fn fn, void *user, ls_error *err)
{
    struct lsi_scope *opened;

    if (fn == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "creator_scope: the function is NULL");
    }
    opened = open_scope(SCOPE_CREATOR, err);
    if (opened == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    opened->creator = fn;
    opened->user = user;
    return LS_OK;
}

ls_status ls_creator_scope_exit(ls_error *err)
{
    return close_innermost(SCOPE_CREATOR, err);
}

static struct lsi_scope *next_creator(struct lsi_scope *at)
{
    while (at != NULL && at->kind != SCOPE_CREATOR) {
        at = at->outer;
    }
    return at;
}

struct lsi_scope *lsi_scope_creator_outside(void)
{
    const lsi_mode *begun = lsi_mode_now();

    if (!ls_has_strategy()) {
        return NULL;
    }
    while (begun->outer != NULL && begun->outer->strategy == begun->strategy) {
        begun = begun->outer;
    }
    // the creators that were open when the strategy's scope was entered
    return next_creator(begun->scopes);
}

/* `at`, or NULL if it is the first creator outside of the strategy. */
static struct lsi_scope *inside_only(struct lsi_scope *at)
{
    return at == lsi_scope_creator_outside() ? NULL : at;
}

struct lsi_scope *lsi_scope_creator(void)
{
    return inside_only(next_creator(innermost()));
}

struct lsi_scope *lsi_creator_outer(const struct lsi_scope *s)
{
    return inside_only(next_creator(s->outer));
}

ls_creator_fn lsi_creator_fn(const struct lsi_scope *s, void **user)
{
    *user = s->user;
    return s->creator;
}

ls_status lsi_scope_open_object(void *object, const lsi_object_ops *ops, ls_error *err)
{
    struct lsi_scope *opened = open_scope(SCOPE_COLOCATE, err);

    if (opened == NULL) {
        return LS_RESOURCE_EXHAUSTED;
    }
    opened->object = (lsi_object){ops->retain(object), ops};
    return LS_OK;
}

ls_status lsi_scope_close_object(ls_error *err)
{
    return close_innermost(SCOPE_COLOCATE, err);
}

void *lsi_scope_object(void)
{
    for (const struct lsi_scope *at = innermost(); at != NULL; at = at->outer) {
        if (at->kind == SCOPE_COLOCATE) {
            return at->object.self;
        }
    }
    return NULL;
}

/* ---- the sync_on_read flag ---- */

static ls_status set_sync(bool on, ls_error *err)
{
    struct lsi_thread_state *state = state_of(true);

    if (state == NULL) {
        return lsi_fail_memory(err, "a scope", sizeof *state);
    }
    if (state->sync_on_read == on) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             on ? "sync_on_read: it is entered already; it does not nest"
                                : "sync_on_read: it is not entered");
    }
    state->sync_on_read = on;
    return LS_OK;
}

ls_status ls_sync_on_read_enter(ls_error *err)
{
    return set_sync(true, err);
}

ls_status ls_sync_on_read_exit(ls_error *err)
{
    return set_sync(false, err);
}

bool lsi_sync_on_read(void)
{
    const struct lsi_thread_state *state = state_of(false);

    return state != NULL && state->sync_on_read;
}
