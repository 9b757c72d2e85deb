/*
 * One optimizer: a table of what it does to the elements of one variable, and the slots
 * it keeps. ls_optimizer_apply() is these parts, one after the other; whoever updates
 * several copies of a variable calls them itself:
 *
 *     lsi_optimizer_check()    are these gradients for these variables?
 *     lsi_clip()               the gradients as they shall be summed or applied
 *     lsi_optimizer_slots()    the slots of each variable, made if it is new
 *     lsi_optimizer_prepare()  once a step: numbers that all variables share
 *     lsi_optimizer_update()   once a variable or copy or part of one
 *     lsi_optimizer_advance()  once a step, when all went well
 */
#ifndef LSI_OPTIM_H
#define LSI_OPTIM_H
#include "variable/variable.h"

/* After op/op.h, which turns the noting of sites off. */
#include "kernel/ref/element_access.h"
#include "kernel/update_loops.h"

#include "lockstep/optimizer.h"

enum { LSI_MAX_SLOTS = 3 };

typedef struct lsi_slots {
    ls_variable *of; /* retained */
    ls_variable *slot[LSI_MAX_SLOTS];
} lsi_slots;

/* What prepare() computes for a step; nothing in it changes while the step is taken. */
typedef struct lsi_optimizer_turn {
    int64_t t;     /* 1 in the first step */
    double rate;   /* the learning rate */
    double alpha;  /* the rate with the optimizer's correction for step t */
    float alpha32; /* the same as Keras computes it for float32: powers and all */
} lsi_optimizer_turn;

/* n elements of one variable; slots are written in place. */
typedef struct lsi_step {
    const void *w;
    void *w_out;
    const void *g;
    const void *squares; /* NULL: the squares of g; otherwise what stands for them */
    void *slot[LSI_MAX_SLOTS];
    size_t n;
    ls_dtype dtype;
    const lsi_update_table *update; /* float32, and only without `squares` */
    const ls_optimizer *optimizer;
    const lsi_optimizer_turn *turn;
} lsi_step;

typedef struct lsi_optim_ops {
    const char *slots[LSI_MAX_SLOTS]; /* names; NULL: no more */
    bool squares;                     /* the formula squares the gradient */
    bool rows;                        /* a gradient of 0 changes nothing */

    /* Optional, once a step: fills alpha and alpha32, which are the rate before. */
    void (*prepare)(const ls_optimizer *o, lsi_optimizer_turn *turn);

    /* Elementwise, on any part of the arrays. Any thread. */
    void (*update)(const lsi_step *s);
} lsi_optim_ops;

/*
 * Makes one slot for `of`: its shape and dtype, every element `initial`. lsi_slot_like()
 * gives it as many copies as the variable has, on the same devices.
 */
typedef ls_status (*lsi_slot_make)(void *user, ls_variable *of, const char *name,
                                   double initial, ls_variable **out, ls_error *err);
ls_status lsi_slot_like(void *user, ls_variable *of, const char *name, double initial,
                        ls_variable **out, ls_error *err);

struct ls_optimizer {
    atomic_int refs;
    const char *name;
    const lsi_optim_ops *ops;
    double learning_rate;
    double momentum, beta1, beta2, rho, epsilon;
    bool nesterov;
    ls_optimizer_shared shared;
    _Atomic int64_t iterations;
    double initial; /* what slots begin with */
    lsi_slot_make make_slot;
    void *make_user;
    lsi_slots *slots;
    size_t nslots, slots_room;
    uint32_t *index;    /* by variable: 1 + its place in `slots`, 0: free */
    size_t index_room;  /* a power of two, at least twice nslots */
    atomic_bool warned; /* of variables without a gradient */
};

/*
 * The beginning of every create: `init` is the initializer that the options must come
 * from, `fits` whether their size is right.
 */
ls_status lsi_optimizer_options(const char *name, const char *init, bool fits,
                                ls_optimizer **out, ls_error *err);

/* An optimizer with its rate and what all share, checked; the rest is the caller's. */
ls_status lsi_optimizer_new(const char *name, const lsi_optim_ops *ops,
                            double learning_rate, const ls_optimizer_shared *shared,
                            ls_optimizer **out, ls_error *err);

/* Adam under the name `name`; `init` is what its user starts the options from. */
ls_status lsi_adam_new(const char *name, const char *init, const ls_adam_options *opts,
                       ls_optimizer **out, ls_error *err);

/*
 * Whether grads[i] fits vars[i] for all i, one at least is not NULL, and the variables
 * are floating ones; false: the context has failed, and its error says why. Names those
 * without a gradient in the log, once.
 */
bool lsi_optimizer_check(ls_context *c, ls_optimizer *o, ls_tensor *const *grads,
                         ls_variable *const *vars, size_t n);

/*
 * Replaces each gradient (NULL: left out) by the clipped one, a tensor of the step, if
 * the optimizer clips; otherwise, or if nothing has to change, it stays. By default it is
 * for the sums over all replicas; with shared.keras3 for the gradients of one replica,
 * before the sum. Not recorded by tapes. On failure the context has failed.
 */
void lsi_clip(ls_context *c, const ls_optimizer *o, ls_tensor **grads, size_t n);

/* The parts of it: the square of a gradient's norm, and what a norm is cut down by. */
double lsi_squared_norm(ls_context *c, ls_tensor *g);
double lsi_norm_factor(double norm, double limit);
double lsi_global_factor(double norm, double limit);

/*
 * The gradient as lsi_optimizer_update() takes it: dense, repeated rows added up. What
 * stands for its squares goes to *squares: NULL, unless shared.keras3 asks for each of
 * the repeated rows squared on its own. NULL: the context has failed.
 */
const ls_tensor *lsi_gradient_dense(ls_context *c, const ls_optimizer *o, ls_tensor *g,
                                    const ls_tensor **squares);

/* How many slots the optimizer has for a variable: at most LSI_MAX_SLOTS. */
size_t lsi_optimizer_slot_count(const ls_optimizer *o);

/* The slots of `v`; NULL: none yet. `cursor` (NULL allowed) as below. */
const lsi_slots *lsi_optimizer_find(const ls_optimizer *o, const ls_variable *v,
                                    size_t *cursor);

/*
 * The same, made by o->make_slot if there are none; on failure none are. `cursor` starts
 * at 0 and moves behind what was found: a step that asks in the order of the last one
 * finds each at once. The result is valid until slots are made for another variable.
 */
ls_status lsi_optimizer_slots(ls_optimizer *o, ls_variable *v, size_t *cursor,
                              const lsi_slots **out, ls_error *err);

/* The numbers of the step that comes next. Changes nothing. */
void lsi_optimizer_prepare(const ls_optimizer *o, lsi_optimizer_turn *turn);

/* Counts the step as taken: exactly once, however many copies were updated. */
void lsi_optimizer_advance(ls_optimizer *o);

/*
 * Decays and updates the elements [begin, end) of `component`, a plain variable, and of
 * its `slots`, plain variables too, as many as lsi_optimizer_slot_count(); the others
 * keep their values. `g` and `squares` come from lsi_gradient_dense() and are as long as
 * the variable. Uses the team of the component's device. Several threads may be at it at
 * once as long as component and slots are theirs alone. On failure (memory, which a
 * variable takes whose value is still held by somebody) nothing has changed.
 */
ls_status lsi_optimizer_update(const ls_optimizer *o, const lsi_optimizer_turn *turn,
                               ls_variable *component, ls_variable *const *slots,
                               const ls_tensor *g, const ls_tensor *squares,
                               int64_t begin, int64_t end, ls_error *err);

/* Whether the gradient is one for lsi_optimizer_update_rows(). */
bool lsi_optimizer_by_rows(const ls_optimizer *o, const ls_tensor *g);

/* The same for the rows that a sparse gradient names: no other is looked at. */
ls_status lsi_optimizer_update_rows(const ls_optimizer *o, const lsi_optimizer_turn *turn,
                                    ls_variable *component, ls_variable *const *slots,
                                    const ls_tensor *g, ls_error *err);

/* One variable and its slots, open for writing. */
typedef struct lsi_writes {
    lsi_write component;
    lsi_write slot[LSI_MAX_SLOTS];
} lsi_writes;

/*
 * New memory, if there must be any, gets what it shall keep: all of the slots, and the
 * elements of the component that are not in [begin, end). After a failure nothing is
 * open; LS_OK must be followed by lsi_writes_commit().
 */
ls_status lsi_writes_open(const ls_optimizer *o, ls_variable *component,
                          ls_variable *const *slots, int64_t begin, int64_t end,
                          lsi_writes *w, ls_error *err);
void lsi_writes_commit(const ls_optimizer *o, ls_variable *component,
                       ls_variable *const *slots, const lsi_writes *w);

/* A gradient in the making: `n` arrays added in the order of the tree, then clipped. */
typedef struct lsi_sources {
    const void *const *from;
    const void **room; /* for n pointers */
    int n;
    double limit;  /* 0: none; else each element of the sum to [-limit, limit] */
    double factor; /* 1: none; else each element is multiplied by it */
} lsi_sources;

/*
 * Elements [begin, end) of `whole`, whose gradient is made block by block, in the cache.
 * whole->g is not used.
 */
void lsi_optimizer_update_share(const lsi_step *whole, const lsi_sources *from,
                                int64_t begin, int64_t end);

/* The slots of vars[i] whose gradient is not NULL, made if there are none. */
ls_status lsi_optimizer_make_slots(ls_optimizer *o, ls_tensor *const *grads,
                                   ls_variable *const *vars, size_t n, ls_error *err);

/*
 * Updates copy `component` of the variables (negative: every copy) by gradients that are
 * final.
 */
ls_status lsi_optimizer_update_copies(ls_context *c, const ls_optimizer *o,
                                      const lsi_optimizer_turn *turn,
                                      ls_tensor *const *grads, ls_variable *const *vars,
                                      size_t n, int component, ls_error *err);

/*
 * The whole of apply in a replica that has peers: sums the gradients over the replicas,
 * then every replica updates its own copies. `grads` becomes the sums.
 */
void lsi_optimizer_apply_replicated(ls_context *c, ls_optimizer *o, ls_tensor **grads,
                                    ls_variable *const *vars, size_t n);

/* The square of gradient i, or what stands for it. */
double lsi_square_at(const lsi_step *s, size_t i);

/* The larger one; a NaN wins. */
double lsi_larger(double a, double b);

/* x is a number of [low, high]: infinities and NaN are not. */
bool lsi_within(double x, double low, double high);

/* Whether the vector loops can be used for the step. */
static inline bool lsi_vectors(const lsi_step *s)
{
    return s->dtype == LS_F32 && s->squares == NULL;
}
#endif
