/*
 * The machine that runs a random program: one configuration's runtime and strategies, the
 * objects the program has made so far, and the journal of what it computed.
 *
 * Every value in the journal has a bound on the difference that reference and fast
 * kernels may show: 0 is "the same bits", INFINITY "not compared", because a rounding
 * difference may have grown by any factor on the way. Runs with different numbers of
 * threads are always compared bit by bit.
 */
#ifndef RANDOM_MACHINE_H
#define RANDOM_MACHINE_H
#include "lockstep/lockstep.h"
#include "ls_test.h"
#include "program.h"

enum {
    MOST_REPLICAS = 4,
    MOST_TENSORS = 96,
    MOST_TAPES = 3,
    MOST_VARIABLES = 8,
    MOST_OPTIMIZERS = 4,
    MOST_METRICS = 2,
    MOST_VALUES = 16,
    MOST_DATASETS = 16,
    MOST_ITERATORS = 6
};

/* How a program is run. */
typedef enum config { FAST, THREADS, REFERENCE, CONFIGS } config;
const char *config_name(config k);

typedef enum entry_kind { STATUS, TENSOR, NOTE } entry_kind;

/* One entry of the journal: a value or a status. */
typedef struct entry {
    entry_kind kind;
    int statement;
    int replica; /* -1: the host */
    int part;    /* of the host: 1 + the replica whose part of a value it is; 0: none */
    bool unsettled; /* of a status: which failure comes first is not determined */
    bool layout;    /* depends on how the replicas are divided among workers */
    ls_status code;
    ls_dtype dtype;
    ls_shape shape;
    size_t offset, bytes; /* in the journal's bytes; of a status: the message */
    double error;         /* bound on what reference and fast kernels differ by */
} entry;

typedef struct journal {
    entry *entries;
    size_t count, room;
    char *bytes;
    size_t used, most;
} journal;

void journal_put(journal *j, entry e, const void *bytes);
void journal_append(journal *j, const journal *more);
void journal_free(journal *j);

/* A tensor of a step. */
typedef struct held {
    ls_tensor *t;
    double error;
    bool watched; /* watched by an open tape */
} held;

typedef struct open_tape {
    ls_tape *tape;
    bool persistent, spent;
    double growth; /* bound on what its gradients may differ by; INFINITY: not known */
} open_tape;

typedef struct variable {
    ls_variable *v;
    atomic_int doubt;  /* 0: the same bits everywhere; 1: near; 2: not known */
    atomic_bool apart; /* replicas have written to their own copies */
} variable;

typedef struct optimizer {
    ls_optimizer *o;
    atomic_int doubt;
} optimizer;

typedef struct dataset {
    ls_dataset *d;
} dataset;

typedef struct machine machine;

/* A thread of the program: the host's, or one replica's. */
struct place {
    machine *m;
    ls_context *c;
    int id, count; /* replica and how many */
    bool host;
    int differ; /* constants differ: 0 no, 1 by replica */
    int at;     /* the statement */
    int part;   /* of the host: 1 + the replica whose part is shown; 0: none */
    held tensors[MOST_TENSORS];
    size_t ntensors;
    open_tape tapes[MOST_TAPES];
    size_t ntapes;
    bool left; /* the replica has ended early */
    journal log;
};

struct machine {
    config k;
    const program *p;
    ls_runtime *rt;
    ls_strategy *s;
    int replicas;     /* in the sync group */
    int first, local; /* those of this machine: first .. first + local - 1 */
    int workers;     /* the program runs for comparing so many workers with one process */
    int worker;      /* this machine is that one of them; -1: the process */
    bool odd;        /* one replica may do something else */
    bool central;    /* replicas share the variables */
    bool loose;      /* later results depend on the progress of the replicas */
    bool layout;     /* or on how the replicas are divided among workers */
    bool reshuffles; /* a dataset has another order for each of its iterators */
    bool ahead;      /* a dataset is read ahead, how far depends on timing */
    size_t opened;   /* iterators so far */
    atomic_bool racing; /* replicas wrote to a shared variable in any order */
    place host;
    place replica[MOST_REPLICAS];
    size_t begin, end; /* the statements replicas run */
    size_t runs;       /* so far */
    variable variables[MOST_VARIABLES];
    size_t nvariables;
    optimizer optimizers[MOST_OPTIMIZERS];
    size_t noptimizers;
    ls_metric *metrics[MOST_METRICS];
    size_t nmetrics;
    ls_value *values[MOST_VALUES];
    bool parted[MOST_VALUES]; /* it has a part for each replica */
    size_t nvalues;
    ls_dataset *datasets[MOST_DATASETS];
    size_t ndatasets;
    struct {
        ls_dataset *d; /* what it iterates over */
        ls_iterator *it;
    } iterators[MOST_ITERATORS];
    size_t niterators;
    struct {
        ls_dist_dataset *d;
        ls_dist_iterator *it;
    } distributed[MOST_ITERATORS];
    size_t ndistributed;
    journal log;
    size_t failures;     /* calls that reported one */
    char complaint[600]; /* what was wrong apart from values; "": nothing */
};

/*
 * Runs `p` as `k` says; the machine keeps the journal and the complaint until
 * machine_free().
 */
machine *machine_run(const program *p, config k);
void machine_free(machine *m);

/*
 * The same for a comparison of workers: the program with a mirrored strategy of as many
 * replicas as `workers` have, in one process; and by these workers, threads with a
 * runtime each, into out[0 .. workers-1].
 */
machine *machine_run_alone(const program *p, config k, int workers);
void machine_run_workers(const program *p, config k, int workers, machine **out);

/* Releases the runtimes and strategies that runs share. */
void machine_forget_all(void);

/* The present statements, for a watchdog: "seed 5 threads: host at 3, ...". */
size_t machine_progress(char *buf, size_t size);

/* Prints the failures that a program got. */
void machine_explain(const machine *m, FILE *to);

/*
 * Compares what both machines computed; false: they differ, and the complaint says how.
 */
bool machine_compare(const machine *a, const machine *b, char *why, size_t size);

/*
 * Compares what a worker computed with one process of all replicas (its own part of it),
 * or with another worker: how calls of the host ended.
 */
bool machine_compare_worker(const machine *one, const machine *worker, char *why,
                            size_t size);
bool machine_compare_workers(const machine *a, const machine *b, char *why, size_t size);

/* Of a program that is compared: the kind and number of replicas, and what it does. */
typedef struct setup {
    bool sequential;
    int replicas;
} setup;
setup machine_setup_for_workers(const program *p, int workers);

/* Runs the program on a machine whose runtime and strategy are set. */
void machine_run_on(machine *m);

/* Reports a fault of the library; the first one is kept. */
void complain(machine *m, const char *fmt, ...) LS_PRINTF(2, 3);

/* Adds the status of a call to the journal; a failure must have a message. */
void ended(place *at, ls_status st, const ls_error *err);

/* ---- for the verbs ---- */

/* Adds a tensor of the step to the pool and the journal; NULL: nothing happens. */
void keep(place *at, ls_tensor *t, double error);

/* The same without the pool: a tensor that is the host's. */
void show(place *at, ls_tensor *t, double error);
void show_value(place *at, const ls_value *v, double error);

/* The same for a tuple of what the local replicas have. */
void show_parts(place *at, const ls_value *v, double error);

/* The k-th tensor of the pool, counted modulo; NULL: the pool is empty or k is -1. */
held *tensor_at(place *at, int64_t k);

/* The k-th floating one; a new one if there is none. */
held float_at(place *at, int64_t k, int64_t seed);

/*
 * A tensor of this dtype and shape: the k-th of those in the pool; a new one if k is 0 or
 * there is none; any tensor if k is negative.
 */
held like_at(place *at, int64_t k, ls_dtype dtype, const ls_shape *shape, int64_t seed);
ls_tensor *fresh(place *at, ls_dtype dtype, const ls_shape *shape, int64_t seed);

/* A tensor of the host with values of a seed; NULL after a failure. */
ls_tensor *host_tensor(machine *m, ls_dtype dtype, const ls_shape *shape, int64_t seed);

/*
 * Called before a replica writes to a variable; `met`: the write is aggregated over
 * replicas. False: do not write, the variable is not one of the strategy.
 */
bool may_write(place *at, const ls_variable *v, bool met);

/*
 * Called before a replica changes its own copy alone. Where workers are compared the host
 * leaves such a variable out afterwards: its value is the first copy of each worker. If
 * one replica may do something else, the workers may disagree on which variables these
 * are, so then no later results are compared.
 */
void note_apart(const place *at, variable *v);

/* Whether this replica is the one that does something else. */
bool is_odd(place *at, const statement *s);

/* The k-th variable, counted modulo; NULL: there is none. */
variable *variable_at(place *at, int64_t k);
ls_value *value_at(place *at, int64_t k);

/* Takes the reference over; `parted`: it has a part for each replica. */
void give_value(place *at, ls_value *v, bool parted);

/* Numbers as a program has them: dtypes by index, sizes. */
ls_dtype dtype_of(int64_t k);
ls_shape shape_of(const statement *s);
int64_t size_of(int64_t k);

double largest_of(const ls_tensor *t);

/* Runs the statements from `m->begin` on in a replica (or the host). */
void run_statement(place *at, size_t i);
#endif
