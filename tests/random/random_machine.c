/* Runs one program in one configuration. */
#include "random_machine.h"

#include "os/thread.h"

#include <ctype.h>
#include <stdarg.h>

const char *config_name(config k)
{
    return k == FAST ? "one thread" : k == THREADS ? "three threads" : "the reference";
}

/* ---- runtimes and strategies, which programs share ---- */

typedef enum strategy_kind {
    MIRRORED,
    SEQUENTIAL,
    CENTRAL,
    ONE_DEVICE,
    DEFAULT,
    STRATEGY_KINDS
} strategy_kind;

static struct backing {
    ls_runtime *rt;
    ls_strategy *strategies[STRATEGY_KINDS][MOST_REPLICAS + 1];
} backings[CONFIGS];

/* Creating the test's own objects must succeed. */
static void must(ls_status st, const ls_error *err)
{
    if (st != LS_OK) {
        (void)fprintf(stderr, "cannot be made: %s\n", err->message);
        abort();
    }
}

static ls_runtime *runtime_of(config k)
{
    ls_runtime_options o = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime **rt = &backings[k].rt;

    if (*rt != NULL) {
        return *rt;
    }
    o.logical_cpus = MOST_REPLICAS;
    o.threads = k == THREADS ? 3 : 1;
    o.seeded = true;
    o.seed = 7;
    must(ls_runtime_create(&o, rt, &err), &err);
    for (int i = 0; i < MOST_REPLICAS; i++) {
        ls_device *dev = ls_runtime_device(*rt, i);

        dev->dnnl = false; // our kernels are compared, not oneDNN's
        dev->isa = k == REFERENCE ? LSI_ISA_REF : dev->isa;
    }
    return *rt;
}

static ls_strategy *strategy_of(config k, strategy_kind kind, int replicas)
{
    static const char *const devices[] = {"", "CPU:0", "CPU:0,CPU:1", "CPU:0,CPU:1,CPU:2",
                                          "CPU:0,CPU:1,CPU:2,CPU:3"};
    ls_strategy **s = &backings[k].strategies[kind][replicas];
    ls_strategy_options o = LS_STRATEGY_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;

    if (*s != NULL) {
        return *s;
    }
    o.runtime = runtime_of(k);
    o.sequential = kind == SEQUENTIAL;
    o.spin_us = k == THREADS ? -1 : 0; // waiting by spinning and by sleeping
    if (kind == CENTRAL) {
        must(ls_central_storage_create(devices[replicas], NULL, &o, s, &err), &err);
    } else if (kind == ONE_DEVICE) {
        must(ls_one_device_create("CPU:1", &o, s, &err), &err);
    } else if (kind == DEFAULT) {
        *s = ls_strategy_retain(ls_default_strategy());
    } else {
        must(ls_mirrored_create(devices[replicas], &o, s, &err), &err);
    }
    return *s;
}

void machine_forget_all(void)
{
    for (int k = 0; k < CONFIGS; k++) {
        for (int kind = 0; kind < STRATEGY_KINDS; kind++) {
            for (int n = 0; n <= MOST_REPLICAS; n++) {
                ls_strategy_release(backings[k].strategies[kind][n]);
            }
        }
        ls_runtime_release(backings[k].rt);
        backings[k] = (struct backing){0};
    }
}

/* ---- the present statement, for the watchdog ---- */

static uint64_t progress_seed;
static atomic_int progress_config, progress_at[MOST_REPLICAS + 1];

size_t machine_progress(char *buf, size_t size)
{
    // In a signal handler: no printf.
    size_t n = 0;
    uint64_t numbers[MOST_REPLICAS + 3];

    numbers[0] = progress_seed;
    numbers[1] = (uint64_t)atomic_load(&progress_config);
    for (size_t i = 0; i <= MOST_REPLICAS; i++) {
        numbers[2 + i] = (uint64_t)atomic_load(&progress_at[i]);
    }
    for (size_t i = 0; i < LSI_COUNT_OF(numbers); i++) {
        char digits[24];
        size_t d = sizeof digits;

        do {
            digits[--d] = (char)('0' + numbers[i] % 10);
            numbers[i] /= 10;
        } while (numbers[i] != 0);
        while (d < sizeof digits && n + 2 < size) {
            buf[n++] = digits[d++];
        }
        buf[n++] = ' ';
    }
    return n;
}

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
    entry e = {.kind = STATUS, .statement = at->at, .replica = at->host ? -1 : at->id};

    if (st != LS_OK) {
        check_failure(at, st, err);
        at->m->failures += st != LS_OUT_OF_RANGE;
    }
    if (at->m->loose) {
        return;
    }
    e.code = st;
    e.bytes = st == LS_OK ? 0 : strlen(err->message);
    journal_put(&at->log, e, err->message);
}

/* ---- used by the verbs ---- */

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
               .error = error};
    ls_error err = LS_ERROR_INIT;
    void *bytes;
    ls_status st;

    if (t == NULL || at->m->loose) {
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

void show_value(place *at, const ls_value *v, double error)
{
    const ls_value_kind kind = ls_value_kind_of(v);
    entry e = {.kind = NOTE, .statement = at->at, .replica = at->host ? -1 : at->id};
    double number;
    int64_t whole;

    if (at->m->loose) {
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
    } else {
        journal_put(&at->log, e, "");
    }
    for (size_t i = 0; i < ls_value_size(v); i++) {
        show_value(at, ls_value_child(v, i), error);
    }
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
    if (at->m->central && (!met || ls_variable_aggregation(v) == LS_AGGREGATE_NONE)) {
        atomic_store(&at->m->racing, true);
    }
    return true;
}

variable *variable_at(place *at, int64_t k)
{
    machine *m = at->m;

    return m->nvariables == 0 ? NULL : &m->variables[(uint64_t)k % m->nvariables];
}

ls_value *value_at(place *at, int64_t k)
{
    machine *m = at->m;

    // Mostly one that has a part for each replica.
    for (size_t i = 0; i < m->nvalues && k >= 0; i++) {
        ls_value *v = m->values[((uint64_t)k + i) % m->nvalues];

        if (ls_value_kind_of(v) == LS_VALUE_PER_REPLICA) {
            return v;
        }
    }
    return m->nvalues == 0 ? NULL : m->values[(uint64_t)k % m->nvalues];
}

void give_value(place *at, ls_value *v)
{
    machine *m = at->m;

    if (v != NULL && m->nvalues < MOST_VALUES) {
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

/* ---- running ---- */

void run_statement(place *at, size_t i)
{
    const statement *s = &at->m->p->statements[i];

    if ((s->verb->where & (at->host ? IN_HOST | IN_STEP | BLOCK : IN_STEP)) == 0 ||
        at->left) {
        return;
    }
    at->at = (int)i;
    atomic_store(&progress_at[at->host ? MOST_REPLICAS : at->id], (int)i + 1);
    // A statement that the odd replica skips: the others may wait for it in vain.
    if (number(s, "odd") < 0 && at->count > 1 &&
        at->id == (int)(-number(s, "odd") % at->count)) {
        return;
    }
    s->verb->run(at, s);
}

static void begin_program(machine *m)
{
    static const unsigned char kinds[] = {MIRRORED, MIRRORED,   MIRRORED, SEQUENTIAL,
                                          CENTRAL,  ONE_DEVICE, DEFAULT};
    strategy_kind kind = MIRRORED;
    ls_error err = LS_ERROR_INIT;

    m->replicas = 1;
    for (size_t i = 0; i < m->p->count; i++) {
        const statement *s = &m->p->statements[i];

        if (strcmp(s->verb->name, "setup") == 0) {
            m->replicas = 1 + (int)((uint64_t)number(s, "replicas") % MOST_REPLICAS);
            kind = kinds[(uint64_t)number(s, "kind") % LSI_COUNT_OF(kinds)];
        }
        m->odd = m->odd || number(s, "odd") != 0 || number(s, "differ") == 2 ||
                 (strcmp(s->verb->name, "run") == 0 && number(s, "from") != 0);
    }
    if (kind == ONE_DEVICE || kind == DEFAULT) {
        m->replicas = 1;
    }
    m->central = kind == CENTRAL && m->replicas > 1;
    m->rt = runtime_of(m->k);
    m->s = strategy_of(m->k, kind, m->replicas);
    m->host = (place){.m = m, .host = true, .count = 1};
    must(ls_context_open(ls_runtime_device(m->rt, 0), NULL, &m->host.c, &err), &err);
}

static void end_program(machine *m)
{
    ls_error err = LS_ERROR_INIT;

    m->host.at = (int)m->p->count;
    ended(&m->host, ls_context_finish(m->host.c, &err), &err);
    if (ls_has_strategy() || ls_in_cross_replica_context()) {
        complain(m, "a strategy is still current when the program has ended");
    }
    ls_context_close(m->host.c);
    for (size_t i = 0; i < m->nvariables; i++) {
        ls_variable_release(m->variables[i].v);
    }
    for (size_t i = 0; i < m->noptimizers; i++) {
        ls_optimizer_release(m->optimizers[i].o);
    }
    for (size_t i = 0; i < m->nmetrics; i++) {
        ls_metric_release(m->metrics[i]);
    }
    for (size_t i = 0; i < m->nvalues; i++) {
        ls_value_release(m->values[i]);
    }
    for (size_t i = 0; i < m->niterators; i++) {
        ls_iterator_release(m->iterators[i].it);
        ls_dataset_release(m->iterators[i].d);
    }
    for (size_t i = 0; i < m->ndistributed; i++) {
        ls_dist_iterator_release(m->distributed[i].it);
        ls_dist_dataset_release(m->distributed[i].d);
    }
    for (size_t i = 0; i < m->ndatasets; i++) {
        ls_dataset_release(m->datasets[i]);
    }
    journal_append(&m->log, &m->host.log);
    journal_free(&m->host.log);
}

/* The statement that ends the block which begins at `from`. */
static size_t end_of_block(const program *p, size_t from)
{
    size_t i = from + 1;

    while (i < p->count && strcmp(p->statements[i].verb->name, "end") != 0 &&
           strcmp(p->statements[i].verb->name, "run") != 0) {
        i++;
    }
    return i;
}

machine *machine_run(const program *p, config k)
{
    machine *m = calloc(1, sizeof *m);

    if (m == NULL) {
        abort();
    }
    m->k = k;
    m->p = p;
    progress_seed = p->seed;
    atomic_store(&progress_config, (int)k);
    begin_program(m);
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->statements[i].verb->name, "run") == 0) {
            m->begin = i + 1;
            m->end = end_of_block(p, i);
            run_statement(&m->host, i);
            i = m->end - 1;
        } else {
            run_statement(&m->host, i);
        }
    }
    end_program(m);
    return m;
}

void machine_free(machine *m)
{
    journal_free(&m->log);
    free(m);
}
