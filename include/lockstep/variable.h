/*
 * lockstep/variable.h - a variable: a tensor with a name that can be assigned to.
 *
 * Reading returns the present value: a later assignment does not change a tensor that was
 * read before (the variable gets new memory if that tensor is still in use). Assignments
 * inside a step take its context and report their failures there.
 *
 * A variable created inside a strategy's scope is the strategy's: a mirrored one has a
 * copy on each device, kept equal (ON_WRITE) or aggregated when read (ON_READ). A replica
 * reads and writes its own copy, or writes all copies through the aggregation; outside of
 * replicas the variable is one value. The rules are in docs/variables.md.
 *
 * Threads: one at a time, except the replicas of its strategy; retain and release any.
 */
#ifndef LS_VARIABLE_H
#define LS_VARIABLE_H

#include "lockstep/tape.h"
#include "lockstep/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_variable ls_variable;
typedef struct ls_strategy ls_strategy; /* lockstep/strategy.h */

/* When the copies of a variable are aggregated. */
typedef enum ls_synchronization {
    LS_SYNC_AUTO = 0, /* becomes ON_WRITE if there are copies */
    LS_SYNC_NONE,
    LS_SYNC_ON_WRITE,
    LS_SYNC_ON_READ
} ls_synchronization;

/* How the values that replicas write (ON_WRITE) or hold (ON_READ) become one value. */
typedef enum ls_aggregation {
    LS_AGGREGATE_NONE = 0,
    LS_AGGREGATE_SUM,
    LS_AGGREGATE_MEAN,
    LS_AGGREGATE_ONLY_FIRST_REPLICA
} ls_aggregation;

/* Start from LS_VARIABLE_OPTIONS_INIT. */
typedef struct ls_variable_options {
    size_t struct_size;
    const char *name;   /* NULL: "Variable" */
    bool not_trainable; /* tapes do not watch it when it is read */
    ls_device *device;  /* NULL: the value's */
    ls_synchronization synchronization;
    ls_aggregation aggregation;
    bool trainable; /* watched although it is ON_READ */
    bool strict;    /* writing in a replica without an aggregation is an error */
} ls_variable_options;

/* clang-format off */
#define LS_VARIABLE_OPTIONS_INIT \
    {sizeof(ls_variable_options), NULL, false, NULL, LS_SYNC_AUTO, LS_AGGREGATE_NONE, false, false}
/* clang-format on */

/* Makes a variable with a copy of `value`, which is borrowed. */
LS_API LS_MUST_USE ls_status ls_variable_create(const ls_tensor *value,
                                                const ls_variable_options *opts,
                                                ls_variable **out, ls_error *err);
LS_API ls_variable *ls_variable_retain(ls_variable *v);
LS_API void ls_variable_release(ls_variable *v); /* NULL is allowed */

LS_API const char *ls_variable_name(const ls_variable *v);
LS_API ls_dtype ls_variable_dtype(const ls_variable *v);
LS_API ls_shape ls_variable_shape(const ls_variable *v);
LS_API bool ls_variable_trainable(const ls_variable *v);
LS_API ls_synchronization ls_variable_synchronization(const ls_variable *v);
LS_API ls_aggregation ls_variable_aggregation(const ls_variable *v);
LS_API ls_device *ls_variable_device(const ls_variable *v); /* of its first copy */

/*
 * Names: "ON_READ", "SUM"; "?" for a number that is none. And from a name, in capitals;
 * others: LS_INVALID_ARGUMENT (kind value).
 */
LS_API const char *ls_synchronization_name(ls_synchronization s);
LS_API const char *ls_aggregation_name(ls_aggregation a);
LS_API LS_MUST_USE ls_status ls_synchronization_from_name(const char *name,
                                                          ls_synchronization *out,
                                                          ls_error *err);
LS_API LS_MUST_USE ls_status ls_aggregation_from_name(const char *name,
                                                      ls_aggregation *out, ls_error *err);

/* Its copies, each a plain variable, borrowed: a plain variable has one, itself. */
LS_API size_t ls_variable_components(const ls_variable *v);
LS_API ls_variable *ls_variable_component(const ls_variable *v, size_t i);

/* The distributed variable that `v` is a copy of, or `v` itself. Borrowed. */
LS_API ls_variable *ls_variable_container(ls_variable *v);

/* The strategy it was created in; the default one for plain variables. Borrowed. */
LS_API ls_strategy *ls_variable_strategy(const ls_variable *v);

/* A new variable of the same kind, devices and values. */
LS_API LS_MUST_USE ls_status ls_variable_clone(ls_variable *v, ls_variable **out,
                                               ls_error *err);

/*
 * Prints like Python's repr(): "<tf.Variable 'w:0' shape=() dtype=float32, numpy=1.0>",
 * "MirroredVariable:{\n  0: ..."; as ls_value_text().
 */
LS_API size_t ls_variable_text(ls_variable *v, char *buf, size_t size);

/* A value that holds a variable, which is retained; and its variable (NULL: none). */
LS_API LS_MUST_USE ls_status ls_value_variable(ls_variable *v, ls_value **out,
                                               ls_error *err);
LS_API ls_variable *ls_value_as_variable(const ls_value *v);

/*
 * What a checkpoint saves: one copy (ON_WRITE) or the aggregate (ON_READ); and how it is
 * restored, into every copy (each copy of a SUM gets its share). The result does not
 * depend on the strategy that saved it.
 */
LS_API LS_MUST_USE ls_status ls_variable_save(ls_variable *v, ls_tensor **out,
                                              ls_error *err);
LS_API LS_MUST_USE ls_status ls_variable_restore(ls_variable *v, const ls_tensor *value,
                                                 ls_error *err);

/* The present value, outside of any step: the caller's to release. */
LS_API LS_MUST_USE ls_status ls_variable_value(ls_variable *v, ls_tensor **out,
                                               ls_error *err);

/* Replaces the value, outside of any step. Shape and dtype must be the variable's. */
LS_API LS_MUST_USE ls_status ls_variable_set(ls_variable *v, const ls_tensor *value,
                                             ls_error *err);

/* The present value as a tensor of the step; open tapes watch it if it is trainable. */
LS_API ls_tensor *ls_read(ls_context *c, ls_variable *v);

/* The same, except inside ls_sync_on_read_enter(). */
LS_API ls_tensor *ls_variable_as_tensor(ls_context *c, ls_variable *v);

/* Assigns and returns the new value. `value` may be sparse in add and sub. */
LS_API ls_tensor *ls_assign(ls_context *c, ls_variable *v, ls_tensor *value);
LS_API ls_tensor *ls_assign_add(ls_context *c, ls_variable *v, ls_tensor *delta);
LS_API ls_tensor *ls_assign_sub(ls_context *c, ls_variable *v, ls_tensor *delta);

/*
 * The same with any leaf: a literal (which is the same on every replica), a tensor, a
 * distributed value, a variable. `no_read`: returns NULL and does not read the new value,
 * as reading an ON_READ variable without an aggregation is an error.
 */
typedef enum ls_assign_op { LS_ASSIGN = 0, LS_ASSIGN_ADD, LS_ASSIGN_SUB } ls_assign_op;
LS_API ls_tensor *ls_variable_assign(ls_context *c, ls_variable *v, ls_assign_op op,
                                     ls_value *value, bool no_read);

/*
 * Changes the rows `indices` (int32 or int64, any shape) of the first axis by `updates`
 * ([indices..., rest of the shape]) and returns the new value. A row named twice is
 * changed twice, in order. An index out of range is LS_INVALID_ARGUMENT and nothing
 * changes.
 */
typedef enum ls_scatter {
    LS_SCATTER_UPDATE,
    LS_SCATTER_ADD,
    LS_SCATTER_SUB,
    LS_SCATTER_MUL,
    LS_SCATTER_DIV,
    LS_SCATTER_MIN,
    LS_SCATTER_MAX
} ls_scatter_op;
LS_API ls_tensor *ls_variable_scatter(ls_context *c, ls_variable *v, ls_scatter_op op,
                                      ls_tensor *indices, ls_tensor *updates);

/*
 * The same without returning the new value, which is a view of the variable and makes the
 * next change copy the whole variable. Rows are changed in place, unless a tensor that
 * was read from the variable in this step, or retained, still uses its memory.
 */
LS_API void ls_variable_scatter_in_place(ls_context *c, ls_variable *v, ls_scatter_op op,
                                         ls_tensor *indices, ls_tensor *updates);

/*
 * The rows `indices` of the first axis: as ls_gather() of ls_read(), but the variable's
 * memory is not in use for the rest of the step, so that SGD and Adagrad change these
 * rows in place. The gradient is sparse. An index out of range is an error.
 */
LS_API ls_tensor *ls_variable_gather(ls_context *c, ls_variable *v, ls_tensor *indices);

/* As ls_here() of lockstep/context.h, for a call that takes a value. */
LS_API ls_value *ls_here_value(ls_context *c, ls_value *v, const char *file, int line);
#define LS_HERE_VALUE(c, v) ls_here_value((c), (v), __FILE__, __LINE__)

/* Gradients of `target` for `n` variables; grads[i] is NULL if v[i] took no part. */
LS_API void ls_variable_gradients(ls_context *c, ls_tape *tape, ls_tensor *target,
                                  ls_variable *const *v, size_t n, ls_tensor **grads);

/* Watches a variable that is not trainable, or with a tape that ignores variables. */
LS_API void ls_tape_watch_variable(ls_context *c, ls_tape *tape, ls_variable *v);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* clang-format off */
#define ls_read(c, ...) LS_PLACED(c, (ls_read)((c), __VA_ARGS__))
#define ls_assign(c, v, t) LS_PLACED(c, (ls_assign)((c), (v), LS_HERE_TENSOR(c, t)))
#define ls_assign_add(c, v, t) LS_PLACED(c, (ls_assign_add)((c), (v), LS_HERE_TENSOR(c, t)))
#define ls_assign_sub(c, v, t) LS_PLACED(c, (ls_assign_sub)((c), (v), LS_HERE_TENSOR(c, t)))
#define ls_variable_as_tensor(c, ...) LS_PLACED(c, (ls_variable_as_tensor)((c), __VA_ARGS__))
#define ls_variable_assign(c, v, op, value, no_read) \
    LS_PLACED(c, (ls_variable_assign)((c), (v), (op), LS_HERE_VALUE(c, value), (no_read)))
#define ls_variable_scatter(c, v, op, indices, updates) \
    LS_PLACED(c, (ls_variable_scatter)((c), (v), (op), (indices), LS_HERE_TENSOR(c, updates)))
#define ls_variable_scatter_in_place(c, v, op, indices, updates) \
    LS_PLACED_VOID(c, (ls_variable_scatter_in_place)((c), (v), (op), (indices), LS_HERE_TENSOR(c, updates)))
#define ls_variable_gather(c, ...) LS_PLACED(c, (ls_variable_gather)((c), __VA_ARGS__))
#define ls_variable_gradients(c, ...) LS_PLACED_VOID(c, (ls_variable_gradients)((c), __VA_ARGS__))
/* clang-format on */
#endif
#endif /* LS_VARIABLE_H */
