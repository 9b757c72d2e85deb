/*
 * The journal of a run: every value and status that its program produced; compares two
 * journals.
 */
#include "random_machine.h"

#include <stdarg.h>

static void *grown(void *old, size_t bytes)
{
    void *more = realloc(old, bytes);

    if (more == NULL) {
        abort(); // the test itself is out of memory
    }
    return more;
}

void journal_put(journal *j, entry e, const void *bytes)
{
    if (j->count == j->room) {
        j->room = 2 * j->room + 16;
        j->entries = grown(j->entries, j->room * sizeof *j->entries);
    }
    if (j->used + e.bytes > j->most) {
        j->most = 2 * j->most + e.bytes + 256;
        j->bytes = grown(j->bytes, j->most);
    }
    e.offset = j->used;
    if (e.bytes > 0) {
        memcpy(j->bytes + j->used, bytes, e.bytes);
    }
    j->used += e.bytes;
    j->entries[j->count++] = e;
}

void journal_append(journal *j, const journal *more)
{
    for (size_t i = 0; i < more->count; i++) {
        journal_put(j, more->entries[i], more->bytes + more->entries[i].offset);
    }
}

void journal_free(journal *j)
{
    free(j->entries);
    free(j->bytes);
    *j = (journal){0};
}

/* Element i of an entry's bytes. */
static double element_of(const char *bytes, ls_dtype dtype, size_t i)
{
    float single;
    uint16_t half;
    double wide;

    switch (dtype) {
    case LS_F32:
        memcpy(&single, bytes + 4 * i, 4);
        return (double)single;
    case LS_F64:
        memcpy(&wide, bytes + 8 * i, 8);
        return wide;
    case LS_F16:
    case LS_BF16:
        memcpy(&half, bytes + 2 * i, 2);
        return (double)(dtype == LS_F16 ? lsi_f16_to_f32(half) : lsi_bf16_to_f32(half));
    default:
        return 0;
    }
}

static const char *machine_name(const machine *m)
{
    static const char *const workers[MOST_REPLICAS] = {"worker 0", "worker 1", "worker 2",
                                                       "worker 3"};

    if (m->workers == 0) {
        return config_name(m->k);
    }
    return m->worker < 0 ? "one process" : workers[m->worker];
}

struct difference {
    char *why;
    size_t size;
};

static bool note_difference(const struct difference *d, const char *fmt, ...)
    LS_PRINTF(2, 3);
static bool note_difference(const struct difference *d, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(d->why, d->size, fmt, args);
    va_end(args);
    return false;
}

/* The statement of an entry, for messages: "statement 3 (op mul ...) of replica 1". */
static const char *place_of(const machine *m, const entry *e, char *buf, size_t size)
{
    char line[600] = "the end";

    if (e->statement >= 0 && (size_t)e->statement < m->p->count) {
        (void)statement_text(&m->p->statements[e->statement], line, sizeof line);
    }
    if (e->replica < 0) {
        (void)snprintf(buf, size, "statement %d (%s)", e->statement + 1, line);
    } else {
        (void)snprintf(buf, size, "statement %d (%s) on replica %d", e->statement + 1,
                       line, e->replica);
    }
    return buf;
}

static bool compare_tensors(const machine *a, const machine *b, const entry *x,
                            const entry *y, const struct difference *d)
{
    const char *p = a->log.bytes + x->offset, *q = b->log.bytes + y->offset;
    const bool same_kernels = (a->k == REFERENCE) == (b->k == REFERENCE);
    const double bound = same_kernels ? 0 : LSI_MAX(x->error, y->error);
    char where[800];

    if (x->dtype != y->dtype || !ls_shape_equal(&x->shape, &y->shape) ||
        x->bytes != y->bytes) {
        char s[128], t[128];

        return note_difference(
            d, "%s: %s %s is %s, %s %s is %s", place_of(a, x, where, sizeof where),
            machine_name(a), ls_dtype_name(x->dtype),
            ls_shape_text(&x->shape, s, sizeof s), machine_name(b),
            ls_dtype_name(y->dtype), ls_shape_text(&y->shape, t, sizeof t));
    }
    if (x->bytes == 0 || memcmp(p, q, x->bytes) == 0 || bound == INFINITY) {
        return true;
    }
    if (same_kernels || op_epsilon(x->dtype) == 0) {
        return note_difference(d, "%s: %s and %s give other bits for %s",
                               place_of(a, x, where, sizeof where), machine_name(a),
                               machine_name(b), ls_dtype_name(x->dtype));
    }
    for (size_t i = 0; i < x->bytes / ls_dtype_size(x->dtype); i++) {
        const double v = element_of(p, x->dtype, i), w = element_of(q, y->dtype, i);

        if (!lst_near(v, w, 0, bound)) {
            return note_difference(d,
                                   "%s: element %zu of %s is %.9g with %s, %.9g with %s; "
                                   "the bound is %.3g",
                                   place_of(a, x, where, sizeof where), i,
                                   ls_dtype_name(x->dtype), v, machine_name(a), w,
                                   machine_name(b), bound);
        }
    }
    return true;
}

static bool compare_entries(const machine *a, const machine *b, size_t i,
                            const struct difference *d)
{
    const entry *x = &a->log.entries[i], *y = &b->log.entries[i];
    char where[800], other[800];

    if (x->kind != y->kind || x->statement != y->statement || x->replica != y->replica) {
        return note_difference(d, "%s shows something at %s, %s at %s", machine_name(a),
                               place_of(a, x, where, sizeof where), machine_name(b),
                               place_of(b, y, other, sizeof other));
    }
    if (x->kind == TENSOR) {
        return compare_tensors(a, b, x, y, d);
    }
    if (x->unsettled && y->unsettled) {
        return true;
    }
    if (x->code != y->code || x->bytes != y->bytes ||
        (x->bytes > 0 &&
         memcmp(a->log.bytes + x->offset, b->log.bytes + y->offset, x->bytes) != 0)) {
        return note_difference(
            d, "%s: %s gives %s \"%.*s\", %s gives %s \"%.*s\"",
            place_of(a, x, where, sizeof where), machine_name(a), ls_status_name(x->code),
            (int)x->bytes, a->log.bytes + x->offset, machine_name(b),
            ls_status_name(y->code), (int)y->bytes, b->log.bytes + y->offset);
    }
    return true;
}

/* ---- workers ---- */

/* An entry of `one` that the worker has, too: of the host, or of its own replicas. */
static bool is_of_worker(const entry *e, const machine *worker)
{
    const int id = e->replica >= 0 ? e->replica : e->part - 1;

    return id < 0 || (id >= worker->first && id < worker->first + worker->local);
}

/* Strings are not sent to other workers. */
static bool is_refused_string(const machine *m, const entry *e)
{
    static const char words[] = "strings are not sent";
    const char *text = m->log.bytes + e->offset;

    for (size_t i = 0; e->code == LS_UNIMPLEMENTED && i + sizeof words - 1 <= e->bytes;
         i++) {
        if (memcmp(text + i, words, sizeof words - 1) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * The same entry, but for messages: they name devices and ranks. `done`: what follows is
 * not comparable. Replicas that make different calls may fail with other codes.
 */
static bool compare_worker_entries(const machine *one, const entry *x,
                                   const machine *worker, const entry *y, bool *done,
                                   const struct difference *d)
{
    char where[800], other[800];

    *done = x->layout || y->layout || x->unsettled || is_refused_string(worker, y) ||
            (one->odd && x->kind == STATUS && y->kind == STATUS && x->code != LS_OK &&
             y->code != LS_OK);
    if (*done) {
        return true;
    }
    if (x->kind != y->kind || x->statement != y->statement || x->replica != y->replica) {
        return note_difference(d, "%s shows something at %s, %s at %s", machine_name(one),
                               place_of(one, x, where, sizeof where),
                               machine_name(worker),
                               place_of(worker, y, other, sizeof other));
    }
    if (x->kind == TENSOR) {
        return compare_tensors(one, worker, x, y, d);
    }
    if (x->code != y->code || y->unsettled) {
        return note_difference(d, "%s: %s gives %s \"%.*s\", %s gives %s \"%.*s\"",
                               place_of(one, x, where, sizeof where), machine_name(one),
                               ls_status_name(x->code), (int)x->bytes,
                               one->log.bytes + x->offset, machine_name(worker),
                               ls_status_name(y->code), (int)y->bytes,
                               worker->log.bytes + y->offset);
    }
    return true;
}

bool machine_compare_worker(const machine *one, const machine *worker, char *why,
                            size_t size)
{
    const struct difference d = {why, size};
    size_t j = 0;
    bool done = false;

    for (size_t i = 0; i < one->log.count && !done; i++) {
        const entry *x = &one->log.entries[i];

        if (!is_of_worker(x, worker)) {
            continue;
        }
        if (x->unsettled || x->layout) {
            return true;
        }
        if (j == worker->log.count) {
            char where[800];

            return note_difference(&d, "only %s shows %s", machine_name(one),
                                   place_of(one, x, where, sizeof where));
        }
        if (!compare_worker_entries(one, x, worker, &worker->log.entries[j++], &done,
                                    &d)) {
            return false;
        }
    }
    if (!done && j < worker->log.count) {
        char where[800];

        return note_difference(
            &d, "only %s shows %s", machine_name(worker),
            place_of(worker, &worker->log.entries[j], where, sizeof where));
    }
    return true;
}

/* The next status of a call of the host, from entry `i` on. */
static const entry *next_call(const machine *m, size_t *i)
{
    for (; *i < m->log.count; ++*i) {
        const entry *e = &m->log.entries[*i];

        if (e->kind == STATUS && e->replica < 0 && e->part == 0) {
            ++*i;
            return e;
        }
    }
    return NULL;
}

bool machine_compare_workers(const machine *a, const machine *b, char *why, size_t size)
{
    const struct difference d = {why, size};
    char where[800];
    size_t i = 0, j = 0;

    while (!a->odd) { // else the workers may make different calls
        const entry *x = next_call(a, &i), *y = next_call(b, &j);

        // A run that fails on one worker need not fail on another.
        if (x == NULL || y == NULL || x->unsettled || y->unsettled) {
            return true;
        }
        if (x->statement != y->statement || x->code != y->code) {
            return note_difference(&d, "%s: %s gives %s, %s gives %s at statement %d",
                                   place_of(a, x, where, sizeof where), machine_name(a),
                                   ls_status_name(x->code), machine_name(b),
                                   ls_status_name(y->code), y->statement + 1);
        }
    }
    return true;
}

bool machine_compare(const machine *a, const machine *b, char *why, size_t size)
{
    const struct difference d = {why, size};
    const size_t both = LSI_MIN(a->log.count, b->log.count);
    char where[800];

    for (size_t i = 0; i < both; i++) {
        if (!compare_entries(a, b, i, &d)) {
            return false;
        }
    }
    if (a->log.count != b->log.count) {
        const machine *more = a->log.count > both ? a : b;

        return note_difference(
            &d, "only %s shows %s", machine_name(more),
            place_of(more, &more->log.entries[both], where, sizeof where));
    }
    return true;
}

void machine_explain(const machine *m, FILE *to)
{
    char where[800];

    for (size_t i = 0; i < m->log.count; i++) {
        const entry *e = &m->log.entries[i];

        if (e->kind == STATUS && e->code != LS_OK) {
            (void)fprintf(to, "%s: %s \"%.*s\"\n", place_of(m, e, where, sizeof where),
                          ls_status_name(e->code), (int)e->bytes,
                          m->log.bytes + e->offset);
        }
    }
}
