/*
 * The struct of a variable. A plain one holds elements; a distributed one holds plain
 * ones, its components. Its kind is a table: how it is read and written, in replicas and
 * outside of them. One file per kind: plain_variable.c, mirrored_variable.c,
 * sync_on_read_variable.c, aggregating_variable.c.
 */
#ifndef LSI_VARIABLE_H
#define LSI_VARIABLE_H
#include "grad/grad.h"
#include "replica/replica.h"

#include "lockstep/variable.h"

/* The value that an assignment writes: a tensor of the step, or any leaf. */
typedef struct lsi_source {
    ls_tensor *tensor; /* NULL: use `value` */
    const ls_value *value;
} lsi_source;

/*
 * The entries are called with arguments that are not NULL, in a step that has not failed
 * unless said otherwise. On failure the context has failed, and NULL is returned.
 */
typedef struct lsi_variable_ops {
    const char *name; /* when printed; NULL: printed as its first component */
    bool per_replica; /* a component per replica; else one that all replicas use */
    bool kept_equal;  /* its components are written together and hold one value */

    /*
     * The component of the calling thread's replica or update function. NULL: the thread
     * is in neither, and *err stays LS_OK; or another strategy is current, and *err is
     * set.
     */
    ls_variable *(*here)(ls_variable *v, const char *what, ls_error *err);

    /* The value in the thread's mode. `operand`: implicitly read, in arithmetic. */
    ls_tensor *(*read)(ls_context *c, ls_variable *v, bool operand);

    /* The value outside of replicas: that of one component, or the aggregate of all. */
    ls_tensor *(*value)(ls_context *c, ls_variable *v);

    /* Rows of the value that read() returns; the value is not kept by the step. */
    ls_tensor *(*gather)(ls_context *c, ls_variable *v, ls_tensor *indices);

    /* Writes outside of replicas; false: the context has failed. */
    bool (*assign)(ls_context *c, ls_variable *v, ls_assign_op op, const lsi_source *s);

    /*
     * Writes inside of the replica of `c`, whose component is `here`. Not called, and may
     * be NULL, if here() returns the variable itself.
     */
    ls_tensor *(*assign_in_replica)(ls_context *c, ls_variable *v, ls_variable *here,
                                    ls_assign_op op, const lsi_source *s);

    /* Changes rows. Returns the new value if `read`. The tensors are dense. */
    ls_tensor *(*scatter)(ls_context *c, ls_variable *v, ls_scatter_op op,
                          ls_tensor *indices, ls_tensor *updates, bool read);

    /* The value for a checkpoint, and restoring it. */
    ls_tensor *(*save)(ls_context *c, ls_variable *v);
    void (*restore)(ls_context *c, ls_variable *v, const lsi_source *s);

    /* Creates a slot: a variable on the devices of `like`, with equal components. */
    ls_status (*create_like)(ls_variable *like, const ls_tensor *value,
                             const ls_variable_options *opts, ls_variable **out,
                             ls_error *err);
} lsi_variable_ops;

extern const lsi_variable_ops lsi_plain_variable;
extern const lsi_variable_ops lsi_mirrored_variable; /* a component per device, equal */
extern const lsi_variable_ops lsi_sync_on_read_variable; /* one per device, not equal */
extern const lsi_variable_ops lsi_aggregating_variable;  /* one for all replicas */

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
    ls_runtime *runtime; /* retained: it owns the device */
    lsi_buffer *buffer;  /* of a plain one; shared with tensors read from it */

    ls_variable **component; /* of a distributed one */
    int components;          /* 0: it is itself the only component */
    ls_variable *container;  /* of a component, borrowed; NULL: it is not one */
    lsi_mutex lock;          /* aggregating: replicas write it one at a time */
};

/* ---- creating (create_variable.c, plain_variable.c) ---- */

/* A variable without elements or components; NULL: failed, see err. */
ls_variable *lsi_variable_new(const lsi_variable_ops *ops, const ls_tensor *value,
                              const ls_variable_options *opts, const char *name,
                              ls_device *device, ls_error *err);

/*
 * A variable with a copy of `value`, whatever scopes are open. `name` and `device`
 * replace those of the options. `shared` (NULL: none) holds these elements already: it is
 * retained, not copied, and the first write of either owner uses a new buffer.
 */
ls_status lsi_variable_plain(const ls_tensor *value, const ls_variable_options *opts,
                             const char *name, ls_device *device, lsi_buffer *shared,
                             ls_variable **out, ls_error *err);

/*
 * One component on each of `n` devices; the first is initialized from `value`, the others
 * from the first. The strategy has checked the arguments.
 */
ls_status lsi_variable_distributed(const lsi_variable_ops *ops, ls_strategy *s,
                                   ls_device *const *devices, int n,
                                   const ls_tensor *value,
                                   const ls_variable_options *opts, ls_variable **out,
                                   ls_error *err);

/*
 * The same; if called inside of a replica, all replicas must call it: replica 0 creates
 * the variable, and all get it.
 */
ls_status lsi_variable_create_on(const lsi_variable_ops *ops, ls_strategy *s,
                                 ls_device *const *devices, int n, const ls_tensor *value,
                                 const ls_variable_options *opts, ls_variable **out,
                                 ls_error *err);

/*
 * The value that a variable begins with on every worker of `s`, of which there are
 * several: that of the chief. All workers must create the same variable; a difference is
 * a failure on all of them. The caller releases *out.
 */
ls_status lsi_chief_value(ls_strategy *s, const ls_variable_options *opts,
                          const ls_tensor *value, ls_tensor **out, ls_error *err);

/* One component on the device of each component of `like`; its strategy is the same. */
ls_status lsi_variable_distributed_like(const lsi_variable_ops *ops,
                                        const ls_variable *like, const ls_tensor *value,
                                        const ls_variable_options *opts,
                                        ls_variable **out, ls_error *err);

/* create_like() of kinds with a component per replica: the slot is mirrored. */
ls_status lsi_variable_mirrored_like(ls_variable *like, const ls_tensor *value,
                                     const ls_variable_options *opts, ls_variable **out,
                                     ls_error *err);

/*
 * Makes one copy of a variable: calls the creators outside of the strategy's scope, and
 * at last `make`, with the arguments that they passed on.
 */
typedef ls_status (*lsi_copy_maker)(void *arg, const ls_tensor *value,
                                    const ls_variable_options *opts, ls_variable **out,
                                    ls_error *err);
ls_status lsi_creator_copy(const ls_tensor *value, const ls_variable_options *opts,
                           lsi_copy_maker make, void *arg, ls_variable **out,
                           ls_error *err);

/* A variable with one copy, for strategies without create_variable(). */
ls_status lsi_create_plain(ls_strategy *s, const ls_tensor *value,
                           const ls_variable_options *opts, ls_variable **out,
                           ls_error *err);

/* Fails if the options' aggregation is not a valid one. */
ls_status lsi_check_aggregation(const ls_variable_options *opts, ls_error *err);

/* The variable of the innermost colocation; NULL: none. */
ls_variable *lsi_variable_colocated(void);

/* The functions by which lower layers retain and release a variable. */
extern const lsi_object_ops lsi_variable_object;

/* ---- reading (read_variable.c, plain_variable.c) ---- */

/* The current value of a plain variable as a tensor of the step, not on any tape. */
ls_tensor *lsi_variable_peek(ls_context *c, ls_variable *v);

/* Records on the tapes that `t`, which may be NULL, was read from `v`; returns it. */
ls_tensor *lsi_variable_note(ls_context *c, ls_variable *v, ls_tensor *t);

/* here() of kinds with a component per replica. */
ls_variable *lsi_variable_own(ls_variable *v, const char *what, ls_error *err);

/* gather() for kinds whose whole value can be read. */
ls_tensor *lsi_variable_gather_rows(ls_context *c, ls_variable *v, ls_tensor *indices);

/* The component on the device of the device scope, else the first. */
ls_variable *lsi_variable_nearest(ls_variable *v);

/* ---- gradients (variable.c) ---- */

/*
 * ls_variable_gradients() that reports each gradient as soon as it is final, while the
 * backward pass goes on: fn(user, i), see lsi_tape_key_gradients(). Which order that is
 * depends on the program only, so replicas that run the same step report alike.
 */
void lsi_variable_gradients_with(ls_context *c, ls_tape *tape, ls_tensor *target,
                                 ls_variable *const *v, size_t n, ls_tensor **grads,
                                 lsi_gradient_final fn, void *user);

/* ---- writing (assign.c, assign_replicas.c) ---- */

extern const char *const lsi_assign_names[]; /* indexed by ls_assign_op */

/* True if `t` has the variable's dtype and shape; else the context has failed. */
bool lsi_variable_takes(ls_context *c, const ls_variable *v, ls_assign_op op,
                        const ls_tensor *t);

/* Writes `t` into a plain variable; returns its new value. */
ls_tensor *lsi_variable_put(ls_context *c, ls_variable *v, ls_assign_op op, ls_tensor *t);

/* The source as one tensor for `v`; `index` selects the component if distributed. */
ls_tensor *lsi_source_tensor(ls_context *c, const ls_variable *v, ls_assign_op op,
                             const lsi_source *s, size_t index);
bool lsi_source_is_per_replica(const lsi_source *s);

/* Assigns the value, or its own component of a distributed value, to every component. */
bool lsi_assign_all(ls_context *c, ls_variable *v, ls_assign_op op, const lsi_source *s);

/* restore() of kinds whose components all get the value that was saved. */
void lsi_restore_all(ls_context *c, ls_variable *v, const lsi_source *s);

/* Fails the context with "<operation>: '<variable>' <why>"; returns NULL. */
ls_tensor *lsi_assign_refused(ls_context *c, ls_status code, ls_kind kind, const char *op,
                              const ls_variable *v, const char *why);

/* The same for a variable whose aggregation is NONE, written by several replicas. */
ls_tensor *lsi_assign_no_aggregation(ls_context *c, const ls_variable *v,
                                     ls_assign_op op);

/* The values of all replicas combined by the aggregation; equal bits on all replicas. */
ls_tensor *lsi_assign_aggregate(ls_context *c, ls_variable *v, ls_assign_op op,
                                const lsi_source *s);

/*
 * A literal as a scalar of the variable's dtype; NULL: the step has failed with
 * TensorFlow's TypeError, or ValueError for an integer that the dtype cannot hold.
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
 * Opens a plain variable for writing: `from` holds the current elements, all of `to` must
 * be set to the new ones. They are the same memory if there are no other references to
 * it. LS_OK must be followed by lsi_variable_commit().
 */
typedef struct lsi_write {
    const void *from;
    void *to;
    lsi_buffer *fresh; /* NULL: in place */
} lsi_write;
ls_status lsi_variable_write(ls_variable *v, lsi_write *w, ls_error *err);

/* The same for one of `holders` copies that share their memory and are written at once. */
ls_status lsi_variable_write_shared(ls_variable *v, int holders, lsi_write *w,
                                    ls_error *err);
void lsi_variable_commit(ls_variable *v, const lsi_write *w);

/* ---- rows (scatter.c, scatter_replicas.c) ---- */

/* The indices as int64 if the variable, indices and updates fit; NULL: failed. */
ls_tensor *lsi_scatter_indices(ls_context *c, const ls_variable *v, ls_scatter_op op,
                               ls_tensor *indices, ls_tensor *updates);

/*
 * Changes rows of a plain variable; returns its new value if `read`: a view, because of
 * which the next scatter cannot change the variable in place.
 */
ls_tensor *lsi_scatter_plain(ls_context *c, ls_variable *v, ls_scatter_op op,
                             ls_tensor *indices, ls_tensor *updates, bool read);

/* Fails the context with "scatter: '<variable>' <why>"; returns NULL. */
ls_tensor *lsi_scatter_refused(ls_context *c, const ls_variable *v, const char *why);

/* Replaces indices and updates by those of all replicas, concatenated, or replica 0's. */
bool lsi_scatter_gather_rows(ls_context *c, const ls_variable *v, ls_scatter_op op,
                             ls_tensor **indices, ls_tensor **updates);
#endif
