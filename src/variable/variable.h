/*
 * What a variable is made of. A plain one holds elements; a distributed one holds plain
 * ones, its components. Its kind is a table: how it is read and written, in replicas and
 * outside of them. A file per kind: plain_variable.c, mirrored_variable.c,
 * sync_on_read_variable.c, aggregating_variable.c.
 */
#ifndef LSI_VARIABLE_H
#define LSI_VARIABLE_H
#include "grad/grad.h"
#include "replica/replica.h"

#include "lockstep/variable.h"

/* What an assignment writes: a tensor of the step, or any leaf. */
typedef struct lsi_source {
    ls_tensor *tensor; /* NULL: `value` */
    const ls_value *value;
} lsi_source;

/*
 * The entries are called with arguments that are not NULL, in a step that has not failed
 * unless said otherwise. What fails, fails the context; NULL is returned then.
 */
typedef struct lsi_variable_ops {
    const char *name; /* as it prints; NULL: it prints as its first component */
    bool per_replica; /* a component per replica; else one that all replicas use */
    bool kept_equal;  /* its components are written together and hold one value */

    /*
     * The component that the calling thread's replica, or its update function, works on;
     * NULL: the thread is in neither, and *err stays LS_OK; or another strategy is
     * current, and *err says so.
     */
    ls_variable *(*here)(ls_variable *v, const char *what, ls_error *err);

    /* The value in the thread's mode. `operand`: used in arithmetic, not asked by name. */
    ls_tensor *(*read)(ls_context *c, ls_variable *v, bool operand);

    /* The value outside of replicas: of one component, or the aggregate of all. */
    ls_tensor *(*value)(ls_context *c, ls_variable *v);

    /* Rows of the value that read() gives, without holding the value itself. */
    ls_tensor *(*gather)(ls_context *c, ls_variable *v, ls_tensor *indices);

    /* Writes outside of replicas; false: the context has failed. */
    bool (*assign)(ls_context *c, ls_variable *v, ls_assign_op op, const lsi_source *s);

    /* Writes inside of the replica of `c`, whose component is `here`; not called, and
     * may be NULL, where here() is the variable itself. */
    ls_tensor *(*assign_in_replica)(ls_context *c, ls_variable *v, ls_variable *here,
                                    ls_assign_op op, const lsi_source *s);

    /* Changes rows. Returns the new value if `read`. The tensors are dense. */
    ls_tensor *(*scatter)(ls_context *c, ls_variable *v, ls_scatter_op op,
                          ls_tensor *indices, ls_tensor *updates, bool read);

    /* What a checkpoint holds of the variable, and writing that back. */
    ls_tensor *(*save)(ls_context *c, ls_variable *v);
    void (*restore)(ls_context *c, ls_variable *v, const lsi_source *s);

    /* Creates a variable placed like `like` whose components are kept equal: a slot. */
    ls_status (*create_like)(ls_variable *like, const ls_tensor *value,
                             const ls_variable_options *opts, ls_variable **out,
                             ls_error *err);
} lsi_variable_ops;

extern const lsi_variable_ops lsi_plain_variable;
extern const lsi_variable_ops lsi_mirrored_variable; /* a component per device, equal */
extern const lsi_variable_ops
    lsi_sync_on_read_variable;                          /* one per device, each its own */
extern const lsi_variable_ops lsi_aggregating_variable; /* one for all replicas */

struct ls_variable {
    atomic_int refs;
    const lsi_variable_ops *ops;
    char *name;
    ls_dtype dtype;
    ls_shape shape;
    int64_t count;
    bool trainable;
    bool strict;
    ls_synchronization synchronization;
    ls_aggregation aggregation;
    ls_strategy *strategy; /* retained; NULL: the default one */
    ls_device *device;
    ls_runtime *runtime; /* retained: the memory belongs to its device */
    lsi_buffer *buffer;  /* of a plain one; shared with tensors that were read from it */

    ls_variable **component; /* of a distributed one */
    int components;          /* 0: it is its own only component */
    ls_variable *container;  /* of a component, borrowed; NULL: it is none */
    lsi_mutex lock;          /* aggregating: replicas write it in turn */
};

/* ---- creating (create_variable.c, plain_variable.c) ---- */

/* A variable without elements or components; NULL: err says why. */
ls_variable *lsi_variable_new(const lsi_variable_ops *ops, const ls_tensor *value,
                              const ls_variable_options *opts, const char *name,
                              ls_device *device, ls_error *err);

/*
 * A variable with a copy of `value`, whatever scope is open. `name` and `device` win.
 * `shared` (NULL: none) holds these elements already: it is retained in place of a copy,
 * and the first write of either holder takes new memory.
 */
ls_status lsi_variable_plain(const ls_tensor *value, const ls_variable_options *opts,
                             const char *name, ls_device *device, lsi_buffer *shared,
                             ls_variable **out, ls_error *err);

/*
 * One component on each of `n` devices, the first from `value`, the others from it. The
 * checks of the strategy have passed.
 */
ls_status lsi_variable_distributed(const lsi_variable_ops *ops, ls_strategy *s,
                                   ls_device *const *devices, int n,
                                   const ls_tensor *value,
                                   const ls_variable_options *opts, ls_variable **out,
                                   ls_error *err);

/*
 * The same, to be called by all replicas if it is called inside of a replica: replica 0
 * creates the variable, all get that one.
 */
ls_status lsi_variable_create_on(const lsi_variable_ops *ops, ls_strategy *s,
                                 ls_device *const *devices, int n, const ls_tensor *value,
                                 const ls_variable_options *opts, ls_variable **out,
                                 ls_error *err);

/* One component on the device of each component of `like`; its strategy is the same. */
ls_status lsi_variable_distributed_like(const lsi_variable_ops *ops,
                                        const ls_variable *like, const ls_tensor *value,
                                        const ls_variable_options *opts,
                                        ls_variable **out, ls_error *err);

/*
 * Makes one copy of a variable: through the creators outside of the strategy's scope, and
 * at their end by `make`, with what they passed on.
 */
typedef ls_status (*lsi_copy_maker)(void *arg, const ls_tensor *value,
                                    const ls_variable_options *opts, ls_variable **out,
                                    ls_error *err);
ls_status lsi_creator_copy(const ls_tensor *value, const ls_variable_options *opts,
                           lsi_copy_maker make, void *arg, ls_variable **out,
                           ls_error *err);

/* A variable with one copy: what a strategy without a create_variable() creates. */
ls_status lsi_create_plain(ls_strategy *s, const ls_tensor *value,
                           const ls_variable_options *opts, ls_variable **out,
                           ls_error *err);

/* LS_OK, or that the options' aggregation is none. */
ls_status lsi_check_aggregation(const ls_variable_options *opts, ls_error *err);

/* The variable of the innermost colocation; NULL: none. */
ls_variable *lsi_variable_colocated(void);

/* A variable as an object that lower layers retain and release. */
extern const lsi_object_ops lsi_variable_object;

/* ---- reading (read.c) ---- */

/* The present value of a plain variable as a tensor of the step, on no tape. */
ls_tensor *lsi_variable_peek(ls_context *c, ls_variable *v);

/* Notes on the tapes that `t`, which may be NULL, was read from `v`; returns it. */
ls_tensor *lsi_variable_note(ls_context *c, ls_variable *v, ls_tensor *t);

/* here() of kinds with a component per replica. */
ls_variable *lsi_variable_own(ls_variable *v, const char *what, ls_error *err);

/* gather() for kinds whose whole value can be read. */
ls_tensor *lsi_variable_gather_rows(ls_context *c, ls_variable *v, ls_tensor *indices);

/* The component on the device of the device scope, else the first. */
ls_variable *lsi_variable_nearest(ls_variable *v);

/* ---- writing (assign.c, assign_replicas.c) ---- */

extern const char *const lsi_assign_names[]; /* by ls_assign_op */

/* True if `t` has the variable's dtype and shape; else the context has failed. */
bool lsi_variable_takes(ls_context *c, const ls_variable *v, ls_assign_op op,
                        const ls_tensor *t);

/* Writes `t` into a plain variable; returns its new value. */
ls_tensor *lsi_variable_put(ls_context *c, ls_variable *v, ls_assign_op op, ls_tensor *t);

/* The source as one tensor for `v`; `index` chooses of a distributed value. */
ls_tensor *lsi_source_tensor(ls_context *c, const ls_variable *v, ls_assign_op op,
                             const lsi_source *s, size_t index);
bool lsi_source_is_per_replica(const lsi_source *s);

/* Every component gets the value, or its own component of a distributed one. */
bool lsi_assign_all(ls_context *c, ls_variable *v, ls_assign_op op, const lsi_source *s);

/* "<operation>: '<variable>' <why>": fails the context; returns NULL. */
ls_tensor *lsi_assign_refused(ls_context *c, ls_status code, ls_kind kind, const char *op,
                              const ls_variable *v, const char *why);

/* The same: several replicas write a variable whose aggregation is NONE. */
ls_tensor *lsi_assign_no_aggregation(ls_context *c, const ls_variable *v,
                                     ls_assign_op op);

/* What all replicas write, combined by the aggregation; the same bits on all of them. */
ls_tensor *lsi_assign_aggregate(ls_context *c, ls_variable *v, ls_assign_op op,
                                const lsi_source *s);

/*
 * A literal as a scalar of the variable's dtype; NULL: it is none, and the step has
 * failed with TensorFlow's TypeError, or ValueError for an integer that the dtype cannot
 * hold.
 */
ls_tensor *lsi_literal_like(ls_context *c, const ls_variable *v, const char *what,
                            const ls_value *literal);

static inline bool lsi_value_is_literal(const ls_value *v)
{
    return v != NULL && (v->kind == LS_VALUE_INT || v->kind == LS_VALUE_FLOAT ||
                         v->kind == LS_VALUE_BOOL || v->kind == LS_VALUE_STRING);
}

/* True inside of a replica of the variable's strategy. */
static inline bool lsi_in_replica_of(const ls_variable *v)
{
    const lsi_mode *now = lsi_mode_now();

    return now != NULL && !now->cross && now->strategy == v->strategy;
}

/*
 * Opens a plain variable for writing: `from` holds the present elements, `to` receives
 * the new ones, all of them. They are the same memory if nobody else refers to it. LS_OK
 * must be followed by lsi_variable_commit().
 */
typedef struct lsi_write {
    const void *from;
    void *to;
    lsi_buffer *fresh; /* NULL: in place */
} lsi_write;
ls_status lsi_variable_write(ls_variable *v, lsi_write *w, ls_error *err);
void lsi_variable_commit(ls_variable *v, const lsi_write *w);

/* ---- rows (scatter.c, scatter_replicas.c) ---- */

/* Fails the context unless the rows can be changed this way. */
void lsi_scatter_check(ls_context *c, const ls_variable *v, ls_scatter_op op,
                       const ls_tensor *indices, const ls_tensor *updates);

/*
 * Changes rows of a plain variable; returns its new value if it is to be `read`: a view
 * of it, which keeps the next scatter from changing it in place.
 */
ls_tensor *lsi_scatter_plain(ls_context *c, ls_variable *v, ls_scatter_op op,
                             ls_tensor *indices, ls_tensor *updates, bool read);

/* "scatter: '<variable>' <why>": fails the context; returns NULL. */
ls_tensor *lsi_scatter_refused(ls_context *c, const ls_variable *v, const char *why);

/* The rows that all replicas write, one after the other, or replica 0's alone. */
bool lsi_scatter_gather_rows(ls_context *c, const ls_variable *v, ls_scatter_op op,
                             ls_tensor **indices, ls_tensor **updates);
#endif
