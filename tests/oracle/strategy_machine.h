/*
 * The machine of the suite `strategy`: evaluates the expressions of its cases by calls of
 * the library, one call per operator.
 *
 * Every value is an ls_value. What the library has no leaf for (a function, a strategy, a
 * scope) is a *thing*: it is passed as a string that begins with a zero byte and holds
 * its number, so that the library merges and selects it as any other leaf.
 *
 * An evaluation returns NULL after a failure and only then; the failure is in the scene's
 * context. Values, frames and things live until the case ends. Functions that replicas
 * run evaluate on several threads at once: each call has a frame of its own, and outer
 * frames are only read meanwhile.
 */
#ifndef STRATEGY_MACHINE_H
#define STRATEGY_MACHINE_H
#include "oracle.h"

#include "lockstep/cluster.h"
#include "lockstep/input.h"
#include "lockstep/lockstep.h"
#include "lockstep/metric.h"
#include "lockstep/strategy.h"

#include <pthread.h>

/* Pointers in the order in which they were added. */
typedef struct list {
    void **items;
    size_t n, room;
} list;

bool list_add(list *l, void *item);

/* A name and its value. */
typedef struct binding {
    const char *name;
    ls_value *value;
    struct binding *next;
} binding;

/* The names of one call of a function, or of the case. */
typedef struct frame {
    struct frame *outer;
    binding *first; /* the newest */
} frame;

typedef enum thing_kind {
    THING_FUNCTION,
    THING_STRATEGY,
    THING_SCOPE,
    THING_CREATOR_SCOPE,
    THING_CONTEXT,
    THING_OPTIMIZER,
    THING_METRIC
} thing_kind;

typedef struct thing {
    thing_kind kind;
    json_t *params, *body; /* of a function, and where it was written */
    frame *where;
    ls_strategy *strategy; /* also of a scope; retained */
    ls_optimizer *optimizer;
    ls_metric *metric;
    ls_context *context;
    int replica_id; /* of the context, when it was obtained */
} thing;

/* A tensor of a checkpoint. */
typedef struct saved {
    const char *file, *key;
    ls_tensor *tensor;
} saved;

typedef struct machine {
    pthread_mutex_t lock; /* of `kept`, `things` and `frames`: replicas add at once */
    list kept;            /* ls_value */
    list things;
    list frames;
    list labels;      /* binding: variables and strategies by their names, oldest first */
    list checkpoints; /* saved */
    list entered;     /* thing: scopes that were entered and not left */
    frame *top;
    ls_context *c;
    ls_device *device; /* of the program's threads; NULL: the default runtime's first */
    int worker;
    bool keras3; /* the answers are TensorFlow's: spec/strategy.md §11 item 10 */
} machine;

/* Where an expression is evaluated. */
typedef struct scene {
    machine *m;
    ls_context *c;
    frame *f;
    bool replica; /* inside a function that a strategy runs on its replicas */
} scene;

/*
 * Begins a case: binds S and DEF. Frees what it made if it fails. `device` and `worker`
 * are as in the machine; `strategy` is retained.
 */
bool machine_open(machine *m, ls_strategy *strategy, ls_device *device, int worker,
                  bool keras3, ls_error *err);

/*
 * Exits the scopes that the case left open and frees everything. False: one stays open.
 */
bool machine_close(machine *m);

ls_value *machine_eval(const scene *s, json_t *e);

/* The result of a step of the case in the form of the line. */
json_t *machine_answer(machine *m, json_t *step);

/* Evaluated arguments of an operator. */
enum { MACHINE_MAX_ITEMS = 64 };
typedef struct items {
    size_t n;
    ls_value *v[MACHINE_MAX_ITEMS];
} items;

/* Evaluates the elements of `array` from number `from` on; NULL: none. */
bool machine_eval_all(const scene *s, json_t *array, size_t from, items *out);

/* Calls a function; `kwargs` is a dict or NULL. */
ls_value *machine_call(const scene *s, const thing *fn, const items *args,
                       const ls_value *kwargs);

/* Binds a name in the scene's frame. */
bool machine_bind(const scene *s, const char *name, ls_value *value);

/* The result of a call of the library: its value, which the machine keeps, or NULL. */
ls_value *machine_give(const scene *s, ls_status st, ls_value **out, const ls_error *err);

/* Puts the failure into the scene's context. Returns NULL. */
ls_value *machine_fail(const scene *s, const ls_error *err);

/* Fails: the expression is not valid, or the test ran out of memory. */
ls_value *machine_wrong(const scene *s, const char *fmt, ...) LS_PRINTF(2, 3);

/* None, if the context has not failed; else NULL. */
ls_value *machine_done(const scene *s);
ls_value *machine_of_tensor(const scene *s, ls_tensor *t); /* NULL stays NULL */
ls_value *machine_of_taken(const scene *s, ls_status st, ls_tensor **t,
                           const ls_error *err); /* takes the reference over */
ls_value *machine_of_text(const scene *s, const char *text);
ls_value *machine_of_int(const scene *s, int64_t x);
ls_value *machine_of_bool(const scene *s, bool x);
ls_value *machine_of_variable(const scene *s, ls_variable *v);
ls_value *machine_of_strategy(const scene *s, ls_strategy *strategy); /* borrowed */
ls_value *machine_of_thing(const scene *s, const thing *t);           /* copied */
ls_value *machine_tuple(const scene *s, const items *args);

/* The thing that a value stands for; NULL: it is none. */
thing *machine_thing(machine *m, const ls_value *v);

/* Evaluates to a thing of that kind, a strategy, a variable, a tensor. */
thing *machine_eval_thing(const scene *s, json_t *e, thing_kind kind);
ls_strategy *machine_eval_strategy(const scene *s, json_t *e);
ls_variable *machine_eval_variable(const scene *s, json_t *e);
ls_tensor *machine_eval_tensor(const scene *s, json_t *e);

/* The name a variable or strategy is bound to; NULL: none. */
const char *machine_label(machine *m, const void *object);

/* ---- values and JSON (strategy_value.c) ---- */

/* Rows of slices whose dense shape is not known. */
enum { MACHINE_NO_ROWS = 1 << 20 };

ls_tensor *machine_constant(const scene *s, json_t *tensor);

/* A literal as a tensor of that dtype. */
ls_tensor *machine_literal(const scene *s, const ls_value *v, ls_dtype dtype);
bool machine_is_literal(const ls_value *v);

/* A leaf as an operand. */
ls_tensor *machine_tensor(const scene *s, ls_value *v);
bool machine_shape(const scene *s, json_t *dims, ls_shape *out);

/* As the answer on a line: yours to json_decref(); NULL: it cannot be written. */
json_t *machine_encode(machine *m, const ls_value *v);
json_t *machine_encode_error(const ls_error *err);

/* ---- operators, one table per file, each ended by a NULL name ---- */
typedef struct operation {
    const char *name;
    ls_value *(*run)(const scene *s, json_t *e); /* e: the whole expression */
    size_t least, most;                          /* arguments; most 0: any number */
} operation;

extern const operation machine_control[];
extern const operation machine_tensors[];
extern const operation machine_contexts[];
extern const operation machine_strategies[];
extern const operation machine_replicas[];
extern const operation machine_variables[];
extern const operation machine_training[];
extern const operation machine_cross_device[];
extern const operation machine_cluster[];

/* ---- shared between those files ---- */

/* The strategy of a specification: ["mirrored", 2]; `from`: where it begins. */
ls_status machine_make_strategy(json_t *spec, size_t from, ls_strategy **out,
                                ls_error *err);
ls_status machine_make_cross_device(json_t *spec, ls_cross_device **out, ls_error *err);

/* The reduction of that name. */
bool machine_reduce_op(const scene *s, json_t *name, ls_reduce *out);

/* The destination of a result: {"device": ...} or an expression. */
ls_value *machine_destination(const scene *s, json_t *e);
ls_status machine_options(json_t *o, ls_communication_options *out, ls_error *err);

/* The `user` argument of the library's callbacks. */
typedef struct closure {
    machine *m;
    const thing *fn;
    bool kwargs; /* the arguments are (positional, keywords) */
} closure;

/* The callback of ls_strategy_update() and ls_replica_update(). */
ls_value *machine_update(ls_context *c, ls_variable *component, ls_value *args,
                         void *user);
#endif
