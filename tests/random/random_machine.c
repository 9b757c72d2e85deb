/* Runs one program in one configuration. */
#include "random_machine.h"

#include "os/thread.h"

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

static _Atomic uint64_t progress_seed;
static atomic_int progress_config, progress_at[MOST_REPLICAS + 1];

size_t machine_progress(char *buf, size_t size)
{
    // In a signal handler: no printf.
    size_t n = 0;
    uint64_t numbers[MOST_REPLICAS + 3];

    numbers[0] = atomic_load(&progress_seed);
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

/* The program's own setup: the kind of its strategy and the number of its replicas. */
static strategy_kind kind_of(const program *p, int *replicas)
{
    static const unsigned char kinds[] = {MIRRORED, MIRRORED,   MIRRORED, SEQUENTIAL,
                                          CENTRAL,  ONE_DEVICE, DEFAULT};
    strategy_kind kind = MIRRORED;

    *replicas = 1;
    for (size_t i = 0; i < p->count; i++) {
        const statement *s = &p->statements[i];

        if (strcmp(s->verb->name, "setup") == 0) {
            *replicas = 1 + (int)((uint64_t)number(s, "replicas") % MOST_REPLICAS);
            kind = kinds[(uint64_t)number(s, "kind") % LSI_COUNT_OF(kinds)];
        }
    }
    return kind;
}

setup machine_setup_for_workers(const program *p, int workers)
{
    setup u = {false, 1};

    u.sequential = kind_of(p, &u.replicas) == SEQUENTIAL;
    u.replicas = workers * (1 + u.replicas % (MOST_REPLICAS / workers));
    return u;
}

static void choose_strategy(machine *m)
{
    strategy_kind kind = kind_of(m->p, &m->replicas);

    if (m->workers > 0) {
        const setup u = machine_setup_for_workers(m->p, m->workers);

        kind = u.sequential ? SEQUENTIAL : MIRRORED;
        m->replicas = u.replicas;
    }
    if (kind == ONE_DEVICE || kind == DEFAULT) {
        m->replicas = 1;
    }
    m->local = m->replicas;
    m->central = kind == CENTRAL && m->replicas > 1;
    m->rt = runtime_of(m->k);
    m->s = strategy_of(m->k, kind, m->replicas);
}

static void begin_program(machine *m)
{
    ls_error err = LS_ERROR_INIT;

    for (size_t i = 0; i < m->p->count; i++) {
        const statement *s = &m->p->statements[i];

        m->odd = m->odd || number(s, "odd") != 0 || number(s, "differ") == 2 ||
                 (strcmp(s->verb->name, "run") == 0 && number(s, "from") != 0);
    }
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

void machine_run_on(machine *m)
{
    const program *p = m->p;

    atomic_store(&progress_seed, p->seed);
    atomic_store(&progress_config, (int)m->k);
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
}

machine *machine_run_alone(const program *p, config k, int workers)
{
    machine *m = calloc(1, sizeof *m);

    if (m == NULL) {
        abort();
    }
    m->k = k;
    m->p = p;
    m->workers = workers;
    m->worker = -1;
    choose_strategy(m);
    machine_run_on(m);
    return m;
}

machine *machine_run(const program *p, config k)
{
    return machine_run_alone(p, k, 0);
}

void machine_free(machine *m)
{
    journal_free(&m->log);
    free(m);
}
