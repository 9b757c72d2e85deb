/*
 * What verbs use: the tensors, variables and values of the program, and how results and
 * failures get into the journal.
 */
#include "random_machine.h"

#include <ctype.h>
#include <stdarg.h>

/* ---- reporting failures ---- */

void complain(machine *m, const char *fmt, ...)
{
    va_list args;

    if (m->complaint[0] != '\0') {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(m->complaint, sizeof m->complaint, fmt, args);
    va_end(args);
}

static void check_failure(place *at, ls_status st, const ls_error *err)
{
    machine *m = at->m;

    if (err->message[0] == '\0' || err->code != st) {
        complain(m, "statement %d fails with %s, the error has %s \"%s\"", at->at + 1,
                 ls_status_name(st), ls_status_name(err->code), err->message);
    }
    // Replicas that make different calls fail with this code, as in TensorFlow.
    if (st == LS_INTERNAL && !m->odd) {
        complain(m, "statement %d: INTERNAL: %s", at->at + 1, err->message);
    }
    for (const char *c = err->message; *c != '\0'; c++) {
        if (iscntrl((unsigned char)*c) && *c != '\n') {
            complain(m, "statement %d: the message \"%s\" cannot be printed", at->at + 1,
                     err->message);
            return;
        }
    }
}

void ended(place *at, ls_status st, const ls_error *err)
{
    entry e = {.kind = STATUS,
               .statement = at->at,
               .replica = at->host ? -1 : at->id,
               .part = at->part};

    if (st != LS_OK) {
        check_failure(at, st, err);
        at->m->failures += st != LS_OUT_OF_RANGE;
    }
    if (at->m->loose) {
        return;
    }
    e.layout = at->m->layout;
    e.code = st;
    e.bytes = st == LS_OK ? 0 : strlen(err->message);
    journal_put(&at->log, e, err->message);
    // A failed call may have broken the group of the workers, and nothing in one process.
    at->m->loose =
        at->m->loose || (at->m->workers > 0 && st != LS_OK && st != LS_OUT_OF_RANGE);
}

/* ---- showing values ---- */

double largest_of(const ls_tensor *t)
{
    double most = 0;

    if (op_epsilon(ls_tensor_dtype(t)) == 0 || t->data == NULL) {
        return 1;
    }
    for (int64_t i = 0; i < t->count; i++) {
        const double v = fabs(lsi_element(t, i));

        if (!isfinite(v)) {
            return INFINITY;
        }
        most = v > most ? v : most;
    }
    return most;
}

/* Where workers are compared, values that depend on their number are left out. */
static bool is_of_layout(const machine *m)
{
    return m->workers > 0 && m->layout;
}

static void show_strings(place *at, const ls_tensor *t, entry e)
{
    const ls_string *s = t->data;

    for (int64_t i = 0; i < t->count; i++) {
        e.bytes = s[i].len;
        journal_put(&at->log, e, s[i].ptr);
    }
}

/* A bool is 0 or 1: another byte was computed as if it were of another dtype. */
static void check_bools(place *at, const entry *e, const unsigned char *bytes)
{
    for (size_t i = 0; e->dtype == LS_BOOL && i < e->bytes; i++) {
        if (bytes[i] > 1) {
            complain(at->m, "statement %d: a bool is %d", at->at + 1, bytes[i]);
            return;
        }
    }
}

void show(place *at, ls_tensor *t, double error)
{
    entry e = {.kind = TENSOR,
               .statement = at->at,
               .replica = at->host ? -1 : at->id,
               .part = at->part,
               .error = error};
    ls_error err = LS_ERROR_INIT;
    void *bytes;
    ls_status st;

    if (t == NULL || at->m->loose || is_of_layout(at->m)) {
        return;
    }
    e.dtype = ls_tensor_dtype(t);
    e.shape = ls_tensor_shape(t);
    if (e.dtype == LS_STRING) {
        show_strings(at, t, e);
        return;
    }
    e.bytes = ls_tensor_bytes(t);
    bytes = malloc(e.bytes + 1);
    if (bytes == NULL) {
        abort();
    }
    st = ls_tensor_read(t, bytes, e.bytes, &err);
    if (st != LS_OK) {
        complain(at->m, "statement %d: a result cannot be read: %s", at->at + 1,
                 err.message);
    } else {
        journal_put(&at->log, e, bytes);
        check_bools(at, &e, bytes);
    }
    free(bytes);
}

/*
 * The children of a value. With one local replica a worker has no value of parts but the
 * part itself, so where workers are compared the parts are shown alone.
 */
static void show_children(place *at, const ls_value *v, bool parts, double error)
{
    const size_t n = ls_value_size(v);

    parts = parts && at->m->workers > 0 && (int)n == at->m->local && at->part == 0;
    for (size_t i = 0; i < n; i++) {
        at->part = parts ? at->m->first + (int)i + 1 : at->part;
        show_value(at, ls_value_child(v, i), error);
        at->part = parts ? 0 : at->part;
    }
}

void show_parts(place *at, const ls_value *v, double error)
{
    if (at->m->workers > 0) {
        show_children(at, v, true, error);
    } else {
        show_value(at, v, error);
    }
}

void show_value(place *at, const ls_value *v, double error)
{
    const ls_value_kind kind = ls_value_kind_of(v);
    const bool parts = kind == LS_VALUE_PER_REPLICA || kind == LS_VALUE_MIRRORED;
    entry e = {.kind = NOTE,
               .statement = at->at,
               .replica = at->host ? -1 : at->id,
               .part = at->part};
    double number;
    int64_t whole;

    if (at->m->loose || is_of_layout(at->m)) {
        return;
    }
    if (kind == LS_VALUE_TENSOR) {
        show(at, ls_value_as_tensor(v), error);
        return;
    }
    e.code = (ls_status)kind;
    e.bytes = 0;
    if (ls_value_as_int(v, &whole)) {
        e.bytes = sizeof whole;
        journal_put(&at->log, e, &whole);
    } else if (ls_value_as_float(v, &number)) {
        e.bytes = sizeof number;
        journal_put(&at->log, e, &number);
    } else if (!parts || at->m->workers == 0) {
        journal_put(&at->log, e, "");
    }
    show_children(at, v, parts, error);
}

void keep(place *at, ls_tensor *t, double error)
{
    if (t == NULL) {
        return;
    }
    show(at, t, error);
    if (at->ntensors < MOST_TENSORS && !ls_tensor_slices(t, NULL, NULL)) {
        at->tensors[at->ntensors++] = (held){t, error, false};
    }
}

/* ---- the pools ---- */

held *tensor_at(place *at, int64_t k)
{
    return at->ntensors == 0 || k < 0 ? NULL : &at->tensors[(uint64_t)k % at->ntensors];
}

static sig_input input_of(ls_dtype dtype, const ls_shape *shape)
{
    sig_input in = {.dtype = dtype, .shape = *shape};

    in.whole = op_epsilon(dtype) == 0;
    in.lo = in.whole ? 0 : -2;
    in.hi = dtype == LS_BOOL ? 2 : in.whole ? 7 : 2;
    return in;
}

ls_tensor *host_tensor(machine *m, ls_dtype dtype, const ls_shape *shape, int64_t seed)
{
    const sig_input in = input_of(dtype, shape);
    uint64_t random = (uint64_t)seed * 77 + 1;

    return sig_tensor(ls_runtime_device(m->rt, 0), &in, &random);
}

ls_tensor *fresh(place *at, ls_dtype dtype, const ls_shape *shape, int64_t seed)
{
    const sig_input in = input_of(dtype, shape);
    uint64_t random = (uint64_t)seed * 77 + 1 + (uint64_t)(at->differ * at->id) * 1000003;

    return ls_adopt(at->c, sig_tensor(at->c->device, &in, &random));
}

held like_at(place *at, int64_t k, ls_dtype dtype, const ls_shape *shape, int64_t seed)
{
    size_t found = 0;

    if (k < 0 && at->ntensors > 0) {
        return at->tensors[(uint64_t) - (k + 1) % at->ntensors];
    }
    for (int pass = 0; k > 0 && pass < 2; pass++) {
        size_t nth = found == 0 ? 0 : (size_t)k % found;

        found = 0;
        for (size_t i = 0; i < at->ntensors; i++) {
            const ls_shape s = ls_tensor_shape(at->tensors[i].t);

            if (ls_tensor_dtype(at->tensors[i].t) != dtype ||
                !ls_shape_equal(&s, shape)) {
                continue;
            }
            if (pass == 1 && nth-- == 0) {
                return at->tensors[i];
            }
            found++;
        }
        if (found == 0) {
            break;
        }
    }
    return (held){fresh(at, dtype, shape, seed), 0, false};
}

held float_at(place *at, int64_t k, int64_t seed)
{
    const ls_shape shape = LS_SHAPE(2, 3);

    for (size_t i = 0; k >= 0 && i < at->ntensors; i++) {
        const held *h = tensor_at(at, k + (int64_t)i);

        if (op_epsilon(ls_tensor_dtype(h->t)) != 0) {
            return *h;
        }
    }
    return (held){fresh(at, LS_F32, &shape, seed), 0, false};
}

bool is_odd(place *at, const statement *s)
{
    const int64_t odd = number(s, "odd");

    return odd > 0 && at->count > 1 && at->id == (int)(odd % at->count);
}

bool may_write(place *at, const ls_variable *v, bool met)
{
    if (at->host || at->count == 1) {
        return true;
    }
    if (!ls_strategy_created(at->m->s, v)) {
        return false;
    }
    for (size_t i = 0; i < at->m->nvariables; i++) {
        if (at->m->variables[i].v == v &&
            ls_variable_aggregation(v) == LS_AGGREGATE_NONE) {
            note_apart(at, &at->m->variables[i]);
        }
    }
    if (at->m->central && (!met || ls_variable_aggregation(v) == LS_AGGREGATE_NONE)) {
        atomic_store(&at->m->racing, true);
    }
    return true;
}

void note_apart(const place *at, variable *v)
{
    if (at->m->workers > 0 && ls_variable_synchronization(v->v) != LS_SYNC_ON_READ) {
        atomic_store(&v->apart, true);
    }
}

variable *variable_at(place *at, int64_t k)
{
    machine *m = at->m;

    for (size_t i = 0; i < m->nvariables; i++) {
        variable *v = &m->variables[((uint64_t)k + i) % m->nvariables];

        if (!at->host || m->odd || !atomic_load(&v->apart)) {
            return v;
        }
    }
    return NULL;
}

ls_value *value_at(place *at, int64_t k)
{
    machine *m = at->m;

    if (m->workers > 0) { // what calls do with other values depends on the strategy
        for (size_t i = 0; i < m->nvalues; i++) {
            const size_t j = ((uint64_t)k + i) % m->nvalues;

            if (m->parted[j]) {
                return m->values[j];
            }
        }
        return NULL;
    }
    // Mostly one that has a part for each replica.
    for (size_t i = 0; i < m->nvalues && k >= 0; i++) {
        ls_value *v = m->values[((uint64_t)k + i) % m->nvalues];

        if (ls_value_kind_of(v) == LS_VALUE_PER_REPLICA) {
            return v;
        }
    }
    return m->nvalues == 0 ? NULL : m->values[(uint64_t)k % m->nvalues];
}

void give_value(place *at, ls_value *v, bool parted)
{
    machine *m = at->m;

    if (v != NULL && m->nvalues < MOST_VALUES) {
        m->parted[m->nvalues] = parted;
        m->values[m->nvalues++] = v;
    } else {
        ls_value_release(v);
    }
}

ls_dtype dtype_of(int64_t k)
{
    static const ls_dtype all[] = {LS_F32, LS_F64,  LS_F16, LS_BF16,  LS_I32,
                                   LS_I64, LS_BOOL, LS_U8,  LS_I8,    LS_I16,
                                   LS_U16, LS_U32,  LS_U64, LS_STRING};

    return all[(uint64_t)k % LSI_COUNT_OF(all)];
}

ls_shape shape_of(const statement *s)
{
    ls_shape shape = {(int)number(s, "rank"), {0}};

    shape.dims[0] = number(s, "d0");
    shape.dims[1] = number(s, "d1");
    shape.dims[2] = number(s, "d2");
    return shape;
}
