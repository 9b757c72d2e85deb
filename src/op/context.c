/* Contexts: the tensors of a step, its first failure, and the site of the call. */
#include "op/op.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

ls_status ls_context_open(ls_device *device, const ls_context_options *opts,
                          ls_context **out, ls_error *err)
{
    ls_context_options o = LS_CONTEXT_OPTIONS_INIT;
    ls_context *c;

    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "context: out is NULL");
    }
    if (opts != NULL) {
        if (opts->struct_size < sizeof opts->struct_size) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                            "context: struct_size is %zu; start from "
                            "LS_CONTEXT_OPTIONS_INIT",
                            opts->struct_size);
        }
        memcpy(&o, opts, LSI_MIN(opts->struct_size, sizeof o));
    }
    if (o.stream >= LSI_STREAM_CROSS) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "context: the stream %llu is one of the library's own; those of "
                        "programs are below 2^63",
                        (unsigned long long)o.stream);
    }
    if (device == NULL) {
        ls_runtime *rt = lsi_runtime_default();

        if (rt == NULL) {
            return lsi_fail_memory(err, "the default runtime", sizeof(ls_device));
        }
        device = ls_runtime_device(rt, 0);
    }
    c = lsi_alloc(1, sizeof *c);
    if (c == NULL) {
        return lsi_fail_memory(err, "a context", sizeof *c);
    }
    c->device = device;
    c->runtime = ls_runtime_retain(device->runtime);
    c->own = (ls_random_state){lsi_runtime_seed(c->runtime), o.stream, 0};
    c->random = &c->own;
    lsi_device_enter(device);
    c->error = (ls_error)LS_ERROR_INIT;
    *out = c;
    return LS_OK;
}

/*
 * Releases the step's tensors, the last one first: the pool then hands their memory out
 * in the order in which the next step allocates. Tensors that were retained stay.
 */
static void release_tensors(ls_context *c)
{
    ls_tensor *t = c->tensors;

    c->tensors = NULL;
    c->aliases = NULL;
    c->naliases = 0;
    c->alias_slots = 0;
    while (t != NULL) {
        ls_tensor *next = t->next;

        t->next = NULL;
        t->listed = false;
        t->owner = NULL;
        if (atomic_load(&t->refs) == 1 || atomic_fetch_sub(&t->refs, 1) == 1) {
            lsi_tensor_clear(t);
            if (t->recycled) {
                t->next = c->spare;
                c->spare = t;
            } else {
                lsi_free(t);
            }
        }
        t = next;
    }
}

/* Something that lives until the step ends. */
struct lsi_kept {
    void *object;
    void (*release)(void *object);
};

static void release_kept(ls_context *c)
{
    while (c->nkept > 0) {
        c->nkept--;
        c->kept[c->nkept].release(c->kept[c->nkept].object);
    }
}

bool lsi_context_keep(ls_context *c, void *object, void (*release)(void *object))
{
    if (c->nkept == c->kept_room) {
        const size_t room = c->kept_room == 0 ? 16 : 2 * c->kept_room;
        struct lsi_kept *grown = lsi_realloc(c->kept, c->nkept, room, sizeof *grown);

        if (grown == NULL) {
            release(object);
            (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a value");
            return false;
        }
        c->kept = grown;
        c->kept_room = room;
    }
    c->kept[c->nkept++] = (struct lsi_kept){object, release};
    return true;
}

bool lsi_context_aborted(ls_context *c)
{
    if (c != NULL && atomic_load_explicit(&c->aborted, memory_order_relaxed)) {
        (void)ls_context_fail(c, LS_ABORTED, "aborted from another thread");
    }
    return lsi_failed(c);
}

void lsi_context_end(ls_context *c)
{
    if (c->recorder.reset != NULL) {
        c->recorder.reset(c);
    }
    release_kept(c);
    release_tensors(c);
    lsi_device_step(c->device);
    atomic_store_explicit(&c->last_file, NULL, memory_order_relaxed);
    c->unplaced = false;
    c->error.code = LS_OK;
    c->error.message[0] = '\0';
    c->file = NULL;
    c->line = 0;
}

ls_status ls_context_finish(ls_context *c, ls_error *err)
{
    ls_status st;

    if (c == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "finish: the context is NULL");
    }
    st = c->error.code;
    if (st != LS_OK) {
        (void)lsi_fail_again(err, &c->error);
    }
    lsi_context_end(c);
    return st;
}

void ls_context_close(ls_context *c)
{
    if (c == NULL) {
        return;
    }
    lsi_context_end(c);
    if (c->recorder.destroy != NULL) {
        c->recorder.destroy(c);
    }
    while (c->spare != NULL) {
        ls_tensor *next = c->spare->next;

        lsi_free(c->spare);
        c->spare = next;
    }
    lsi_free(c->kept);
    lsi_free(c->alias_table);
    lsi_device_leave(c->device);
    ls_runtime_release(c->runtime);
    lsi_free(c);
}

ls_status ls_context_status(const ls_context *c, ls_error *err)
{
    if (c == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "the context is NULL");
    }
    return c->error.code == LS_OK ? LS_OK : lsi_fail_again(err, &c->error);
}

ls_tensor *lsi_context_error(ls_context *c, const ls_error *err)
{
    if (c != NULL && c->error.code == LS_OK) {
        c->error = *err;
        if (c->error.file[0] == '\0') {
            lsi_error_set_site(&c->error, c->file, c->line);
        }
        c->unplaced = c->error.file[0] == '\0';
    }
    return NULL;
}

ls_tensor *ls_context_fail(ls_context *c, ls_status code, const char *fmt, ...)
{
    ls_error e = LS_ERROR_INIT;
    va_list args;

    if (c == NULL || c->error.code != LS_OK) {
        return NULL;
    }
    e.code = code != LS_OK ? code : LS_UNKNOWN;
    va_start(args, fmt);
    (void)vsnprintf(e.message, sizeof e.message, fmt, args);
    va_end(args);
    return lsi_context_error(c, &e);
}

ls_tensor *ls_context_fail_with(ls_context *c, const ls_error *err)
{
    if (err == NULL || err->code == LS_OK) {
        return ls_context_fail(c, LS_UNKNOWN, "a failure without an error");
    }
    return lsi_context_error(c, err);
}

ls_tensor *ls_here(ls_context *c, ls_tensor *t, const char *file, int line)
{
    (void)ls_context_at(c, file, line);
    return t;
}

void ls_context_random_state(const ls_context *c, ls_random_state *out)
{
    if (out != NULL) {
        *out = c != NULL ? *c->random : (ls_random_state){0};
    }
}

ls_status ls_context_set_random_state(ls_context *c, const ls_random_state *state,
                                      ls_error *err)
{
    if (c == NULL || state == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "set random state: the %s is NULL",
                        c == NULL ? "context" : "state");
    }
    *c->random = *state;
    return LS_OK;
}

ls_device *ls_context_device(const ls_context *c)
{
    return c != NULL ? c->device : NULL;
}

ls_context *ls_context_at(ls_context *c, const char *file, int line)
{
    if (c != NULL) {
        c->file = file;
        c->line = line;
    }
    return c;
}

ls_tensor *ls_placed(ls_context *c, ls_tensor *result, const char *file, int line)
{
    if (c == NULL) {
        return result;
    }
    if (c->unplaced) { // the call that just ended has failed
        c->unplaced = false;
        lsi_error_set_site(&c->error, file, line);
    }
    if (c->recording != 0) {
        c->recorder.set_site(c, file, line);
    }
    if (c->replica != NULL) { // another replica may wait for this one
        atomic_store_explicit(&c->last_file, file, memory_order_relaxed);
        atomic_store_explicit(&c->last_line, line, memory_order_relaxed);
    }
    c->file = NULL;
    c->line = 0;
    return result;
}

double ls_placed_item(ls_context *c, double result, const char *file, int line)
{
    (void)ls_placed(c, NULL, file, line);
    return result;
}

ls_tensor *lsi_context_struct(ls_context *c)
{
    ls_tensor *t = c->spare;

    if (t != NULL) {
        c->spare = t->next;
    } else {
        t = lsi_alloc_aligned(sizeof *t, _Alignof(ls_tensor));
        if (t == NULL) {
            return NULL;
        }
    }
    atomic_store_explicit(&t->refs, 1,
                          memory_order_relaxed); // not shared yet
    t->buffer = NULL;
    t->values = NULL;
    t->indices = NULL;
    t->tapes = 0;
    t->origin = NULL;
    t->owner = c;
    t->listed = true;
    t->recycled = true;
    t->mark = 0;
    t->next = c->tensors;
    c->tensors = t;
    return t;
}

ls_tensor *lsi_context_own(ls_context *c, ls_tensor *t)
{
    if (t == NULL) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tensor");
    }
    t->listed = true;
    t->owner = c;
    t->next = c->tensors;
    c->tensors = t;
    return t;
}

/* ---- aliases of tensors from outside ---- */

enum { FEW_ALIASES = 16 }; // up to so many are searched one by one; more have a table

/* The slot of the alias of `t`, or the empty one where it belongs. */
static ls_tensor **alias_slot(const ls_context *c, const ls_tensor *t)
{
    const size_t mask = c->alias_slots - 1;
    size_t i = (size_t)(((uint64_t)(uintptr_t)t * 0x9E3779B97F4A7C15u) >> 32) & mask;

    while (c->alias_table[i] != NULL && c->alias_table[i]->origin != t) {
        i = (i + 1) & mask;
    }
    return &c->alias_table[i];
}

/*
 * Puts all aliases of the step into a table with room for more; the largest table is kept
 * for later steps. Without memory there is no table, and the list is searched.
 */
static void build_alias_table(ls_context *c)
{
    size_t slots = (size_t)4 * FEW_ALIASES;

    while (slots < 3 * c->naliases) {
        slots *= 2;
    }
    if (slots > c->alias_room) {
        lsi_free(c->alias_table);
        c->alias_table = lsi_alloc(slots, sizeof(ls_tensor *));
        c->alias_room = c->alias_table != NULL ? slots : 0;
    } else {
        memset(c->alias_table, 0, slots * sizeof(ls_tensor *));
    }
    c->alias_slots = c->alias_table != NULL ? slots : 0;
    for (ls_tensor *a = c->alias_slots > 0 ? c->aliases : NULL; a != NULL; a = a->alias) {
        *alias_slot(c, a->origin) = a;
    }
}

static ls_tensor *find_alias(const ls_context *c, const ls_tensor *t)
{
    ls_tensor *alias = c->aliases;

    if (c->alias_slots > 0) {
        return *alias_slot(c, t);
    }
    while (alias != NULL && alias->origin != t) {
        alias = alias->alias;
    }
    return alias;
}

static void note_alias(ls_context *c, ls_tensor *alias)
{
    alias->alias = c->aliases;
    c->aliases = alias;
    c->naliases++;
    if (c->alias_slots > 0) {
        *alias_slot(c, alias->origin) = alias;
    }
    if (c->naliases > LSI_MAX((size_t)FEW_ALIASES, c->alias_slots / 2)) {
        build_alias_table(c);
    }
}

ls_tensor *lsi_context_alias(ls_context *c, ls_tensor *t)
{
    ls_tensor *alias;

    if (lsi_failed(c) || t == NULL || t->owner == c || c->replica == NULL) {
        return lsi_failed(c) ? NULL : t;
    }
    t = lsi_tensor_origin(t);
    alias = find_alias(c, t);
    if (alias != NULL) {
        return alias;
    }
    alias = lsi_context_struct(c);
    if (alias == NULL) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tensor");
    }
    lsi_tensor_init_alias(alias, t);
    note_alias(c, alias);
    return alias;
}

ls_tensor *ls_adopt(ls_context *c, ls_tensor *t)
{
    if (t == NULL) {
        return NULL;
    }
    if (lsi_failed(c)) {
        ls_tensor_release(t);
        return NULL;
    }
    if (t->listed) { // a step's own tensor that was retained: one reference is enough
        ls_tensor_release(t);
        return t;
    }
    return lsi_context_own(c, t);
}

ls_tensor *lsi_context_sparse(ls_context *c, const ls_shape *shape, ls_tensor *values,
                              ls_tensor *indices)
{
    ls_tensor *t = lsi_failed(c) ? NULL : lsi_context_struct(c);

    if (t == NULL) {
        return ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tensor");
    }
    lsi_tensor_init_sparse(t, shape, values, indices);
    return t;
}

double(ls_item)(ls_context *c, const ls_tensor *t)
{
    if (lsi_failed(c)) {
        return (double)NAN;
    }
    if (t == NULL || t->count != 1 || t->dtype == LS_STRING || t->data == NULL) {
        lsi_text text = t != NULL ? lsi_text_of(t) : (lsi_text){"NULL"};

        (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                              "item: needs a tensor with one number, got %s; reduce it, "
                              "or read it whole with ls_tensor_read()",
                              text.s);
        return (double)NAN;
    }
    return lsi_element(t, 0);
}
