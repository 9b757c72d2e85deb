/*
 * One optimizer: a table of what it does to the elements of one variable, and the slots
 * it keeps. ls_optimizer_apply() and ls_optimizer_minimize() are one function,
 * lsi_optimizer_step() in step.c, which calls the parts below in their order.
 */
#ifndef LSI_OPTIM_H
#define LSI_OPTIM_H
#include "variable/variable.h"

/* After op/op.h, which turns off recording of sites. */
#include "kernel/ref/element_access.h"
#include "kernel/update_loops.h"

#include "lockstep/optimizer.h"

enum { LSI_MAX_SLOTS = 3 };

typedef struct lsi_slots {
    ls_variable *of; /* retained */
    ls_variable *slot[LSI_MAX_SLOTS];
} lsi_slots;

/* Computed by prepare() for a step; constant while the step is applied. */
typedef struct lsi_optimizer_turn {
    int64_t t;     /* 1 in the first step */
    double rate;   /* the learning rate */
    double alpha;  /* the rate with the optimizer's correction for step t */
    float alpha32; /* the same, computed in float32 as Keras does */
} lsi_optimizer_turn;

/* n elements of one variable; slots are written in place. */
typedef struct lsi_step {
    const void *w;
    void *w_out;
    const void *g;
    const void *squares; /* NULL: the squares of g; else used as its squares */
    void *slot[LSI_MAX_SLOTS];
    size_t n;
    ls_dtype dtype;
    const lsi_update_table *update; /* float32 loops, used without `squares` only */
    const ls_optimizer *optimizer;
    const lsi_optimizer_turn *turn;
} lsi_step;

typedef struct lsi_optim_ops {
    const char *slots[LSI_MAX_SLOTS]; /* names; NULL: no more */
    bool squares;                     /* the formula squares the gradient */
    bool rows;                        /* a gradient of 0 changes nothing */

    /* Optional, once per step: sets alpha and alpha32, which were set to the rate. */
    void (*prepare)(const ls_optimizer *o, lsi_optimizer_turn *turn);

    /* Updates n elements, one by one. Any thread. */
    void (*update)(const lsi_step *s);
} lsi_optim_ops;

/*
 * Creates one slot for `of`, with its shape and dtype, every element `initial`.
 * lsi_slot_like() creates as many copies as the variable has, on the same devices.
 */
typedef ls_status (*lsi_slot_make)(void *user, ls_variable *of, const char *name,
                                   double initial, ls_variable **out, ls_error *err);
ls_status lsi_slot_like(void *user, ls_variable *of, const char *name, double initial,
                        ls_variable **out, ls_error *err);

struct ls_optimizer {
    atomic_int refs;
    const char *name;
    const lsi_optim_ops *ops;
    size_t slot_count; /* per variable */
    double learning_rate;
    double momentum, beta1, beta2, rho, epsilon;
    bool nesterov;
    ls_optimizer_shared shared;
    _Atomic int64_t iterations;
    double initial; /* the initial value of slots */
    lsi_slot_make make_slot;
    void *make_user;
    lsi_slots *slots;
    size_t nslots, slots_room;
    uint32_t *index;    /* hash table by variable: 1 + index in `slots`, 0: free */
    size_t index_room;  /* a power of two, at least twice nslots */
    atomic_bool warned; /* logged: variables without a gradient */
};

/*
 * Checks that every constructor begins with: `init` names the initializer that the
 * options must start from, `fits` tells whether their size is right.
 */
ls_status lsi_optimizer_options(const char *name, const char *init, bool fits,
                                ls_optimizer **out, ls_error *err);

/*
 * An optimizer with its learning rate and shared options, checked; the caller sets the
 * other fields.
 */
ls_status lsi_optimizer_new(const char *name, const lsi_optim_ops *ops,
                            double learning_rate, const ls_optimizer_shared *shared,
                            ls_optimizer **out, ls_error *err);

/* Adam under the name `name`; `init` names the initializer of the options. */
ls_status lsi_adam_new(const char *name, const char *init, const ls_adam_options *opts,
                       ls_optimizer **out, ls_error *err);

/*
 * True if grads[i] fits vars[i] for all i, at least one gradient is not NULL, and the
 * variables are of floating dtypes; false: the context has failed with the reason. Logs
 * the variables without a gradient, once.
 */
bool lsi_optimizer_check(ls_context *c, ls_optimizer *o, ls_tensor *const *grads,
                         ls_variable *const *vars, size_t n);

/*
 * Replaces each gradient (NULL: skipped) by the clipped one, a tensor of the step, if the
 * gradient exceeds the limit: with shared.keras3, where each replica clips its own
 * gradients before the sum. Not recorded by tapes. On failure the context has failed.
 */
void lsi_clip(ls_context *c, const ls_optimizer *o, ls_tensor **grads, size_t n);

/* The factors by which a gradient is multiplied. */
double lsi_norm_factor(double norm, double limit);
double lsi_global_factor(double norm, double limit);

/*
 * The square of the norm of `count` elements, computed by the kernels that the operations
 * `square` and `sum` use; 16-bit types are summed in float32, to avoid overflow. Cannot
 * fail: `room` has lsi_norm_bytes().
 */
size_t lsi_norm_bytes(ls_dtype dtype, int64_t count);
double lsi_norm_squared(ls_device *device, ls_dtype dtype, const void *elements,
                        int64_t count, void *room);

/* The number of slots per variable: at most LSI_MAX_SLOTS. */
static inline size_t lsi_optimizer_slot_count(const ls_optimizer *o)
{
    return o->slot_count;
}

/*
 * The slots of `v`; NULL: none yet. `cursor` (NULL allowed) starts at 0 and moves behind
 * the slots found: a step in the order of the last one finds each at once. The result is
 * valid until slots are created for another variable.
 */
const lsi_slots *lsi_optimizer_find(const ls_optimizer *o, const ls_variable *v,
                                    size_t *cursor);

/*
 * Creates, by o->make_slot, the slots of those vars[i] that have none and whose gradient
 * is not NULL (`grads` NULL: of all). On failure creates none.
 */
ls_status lsi_optimizer_build(ls_optimizer *o, ls_tensor *const *grads,
                              ls_variable *const *vars, size_t n, ls_error *err);

/* True if there is none to create. */
bool lsi_optimizer_built(const ls_optimizer *o, ls_tensor *const *grads,
                         ls_variable *const *vars, size_t n);
void lsi_optimizer_free_slots(ls_optimizer *o);

/* Computes the numbers of the next step. Changes nothing in the optimizer. */
void lsi_optimizer_prepare(const ls_optimizer *o, lsi_optimizer_turn *turn);

/* Counts a step: called once per step, whatever the number of copies. */
void lsi_optimizer_advance(ls_optimizer *o);

/* How to compute a gradient: `n` arrays summed in the order of the tree, then clipped. */
typedef struct lsi_sources {
    const void *const *from;
    int n;
    double limit;  /* 0: none; else elements are clamped to [-limit, limit] */
    double factor; /* 1: none; else each element is multiplied by it */
} lsi_sources;

/*
 * Decays and updates the elements [begin, end) of `whole`, computing the gradient block
 * by block, in the cache. whole->g is not used; whole->squares only with one source that
 * is not clipped. `room`: from->n pointers for each member of the team.
 */
void lsi_optimizer_update_share(const lsi_step *whole, const lsi_sources *from,
                                int64_t begin, int64_t end, lsi_team *team,
                                const void **room);

/* True if the gradient is one for lsi_optimizer_update_rows(). */
bool lsi_optimizer_by_rows(const ls_optimizer *o, const ls_tensor *g);

/*
 * Updates the rows that a sparse gradient names, as far as they are in [begin, end), a
 * range of elements; other rows are not accessed. Cannot fail: `room` has
 * lsi_optimizer_rows_bytes().
 */
size_t lsi_optimizer_rows_bytes(const ls_optimizer *o, const ls_tensor *g);
void lsi_optimizer_update_rows(const lsi_step *whole, const ls_tensor *g, void *room,
                               int64_t begin, int64_t end);

/*
 * Sets elements [begin, end) at `to` to those of the dense tensor that a sparse one
 * stands for: repeated rows added up; `squares`: of the squares of each.
 */
void lsi_optimizer_spread_rows(const ls_tensor *g, void *to, int64_t begin, int64_t end,
                               bool squares);

/* One copy of a variable and of its slots, open for writing; or all that share memory. */
typedef struct lsi_writes {
    lsi_write component;
    lsi_write slot[LSI_MAX_SLOTS];
} lsi_writes;

enum { LSI_ALL_COPIES = -1 };

/*
 * Opens copy `copy`; LSI_ALL_COPIES: all, which share one buffer. Only takes memory: new
 * buffers are not filled. After a failure nothing is open. LS_OK must be followed by
 * lsi_writes_commit() for each copy, or lsi_writes_discard(), which changes nothing.
 */
ls_status lsi_writes_open(const ls_optimizer *o, const ls_variable *v,
                          const lsi_slots *slots, int copy, lsi_writes *w, ls_error *err);
void lsi_writes_commit(const ls_optimizer *o, const ls_variable *v,
                       const lsi_slots *slots, int copy, const lsi_writes *w);
void lsi_writes_discard(const ls_optimizer *o, const ls_variable *v, int copy,
                        lsi_writes *w);

/* Writes once more to what `first` has opened: neither committed nor discarded. */
void lsi_writes_again(const lsi_writes *first, lsi_writes *w);

/*
 * Copies elements [begin, end) to the new buffers of slots and, if `component`, of the
 * variable: what the update goes on from.
 */
void lsi_writes_keep(const ls_optimizer *o, const lsi_writes *w, size_t size,
                     bool component, int64_t begin, int64_t end);

/* Where a step gets its gradients: they are given, or computed by a tape. */
typedef struct lsi_gradients {
    bool given;
    ls_tensor *const *grads;
    ls_tape *tape;
    ls_tensor *loss;
} lsi_gradients;

/* The step: see step.c. In replicas all local peers and all workers call it. */
void lsi_optimizer_step(ls_context *c, ls_optimizer *o, const lsi_gradients *from,
                        ls_variable *const *vars, size_t n);

/* The square of gradient i, or the element of `squares` if there are any. */
double lsi_square_at(const lsi_step *s, size_t i);

/* The larger one; NaN if one of them is. */
double lsi_larger(double a, double b);

/* True if low <= x <= high; false for infinities and NaN. */
bool lsi_within(double x, double low, double high);

/* True if the vector loops can be used for the step. */
static inline bool lsi_vectors(const lsi_step *s)
{
    return s->dtype == LS_F32 && s->squares == NULL;
}
#endif
