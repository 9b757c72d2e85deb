/*
 * lockstep/variable.h - a variable: a tensor with a name that can be assigned to.
 *
 * Reading gives the value of that moment: a later assignment does not change a tensor
 * that was read before (the variable takes new memory if it must). Assignments inside a
 * step go through its context and its sticky failure.
 *
 * Made inside a strategy's scope, a variable is the strategy's: a mirrored one has a copy
 * on each device, kept equal (ON_WRITE) or added up when read (ON_READ). A replica reads
 * and writes its own copy, or all copies by way of the aggregation; outside of replicas
 * it is one value. The rules are docs/variables.md.
 *
 * Threads: one at a time, replicas of its strategy aside; retain and release any.
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

/* When the copies of a variable are brought together. */
typedef enum ls_synchronization {
    LS_SYNC_AUTO = 0, /* becomes ON_WRITE where there are copies */
    LS_SYNC_NONE,
    LS_SYNC_ON_WRITE,
    LS_SYNC_ON_READ
} ls_synchronization;

/* How what replicas write (ON_WRITE) or hold (ON_READ) becomes one value. */
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
    bool not_trainable; /* tapes do not watch it by themselves */
    ls_device *device;  /* NULL: the value's */
    ls_synchronization synchronization;
    ls_aggregation aggregation;
    bool trainable; /* watched although it is ON_READ */
    bool strict;    /* a replica's write without an aggregation is an error */
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

/* "ON_READ", "SUM"; "?" for no such thing. From a name, in capitals: kind value. */
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

/* The distributed variable `v` is a copy of; `v` itself if it is none. Borrowed. */
LS_API ls_variable *ls_variable_container(ls_variable *v);

/* The strategy it was made under; the default one for plain variables. Borrowed. */
LS_API ls_strategy *ls_variable_strategy(const ls_variable *v);

/* A variable of its own with the same copies. */
LS_API LS_MUST_USE ls_status ls_variable_clone(ls_variable *v, ls_variable **out,
                                               ls_error *err);

/*
 * Prints like Python's repr(): "<tf.Variable 'w:0' shape=() dtype=float32, numpy=1.0>",
 * "MirroredVariable:{\n  0: ..."; as ls_value_text().
 */
LS_API size_t ls_variable_text(ls_variable *v, char *buf, size_t size);

/* A leaf that is a variable, which is retained; and back (NULL: it is none). */
LS_API LS_MUST_USE ls_status ls_value_variable(ls_variable *v, ls_value **out,
                                               ls_error *err);
LS_API ls_variable *ls_value_as_variable(const ls_value *v);

/*
 * What a checkpoint keeps of it: one copy (ON_WRITE) or the aggregate (ON_READ); and
 * back, into every copy (of a sum each gets its part). So values go from any strategy to
 * any other.
 */
LS_API LS_MUST_USE ls_status ls_variable_save(ls_variable *v, ls_tensor **out,
                                              ls_error *err);
LS_API LS_MUST_USE ls_status ls_variable_restore(ls_variable *v, const ls_tensor *value,
                                                 ls_error *err);

/* The present value, outside of any step: yours to release. */
LS_API LS_MUST_USE ls_status ls_variable_value(ls_variable *v, ls_tensor **out,
                                               ls_error *err);

/* Replaces the value, outside of any step. Shape and dtype must be the variable's. */
LS_API LS_MUST_USE ls_status ls_variable_set(ls_variable *v, const ls_tensor *value,
                                             ls_error *err);

/* The present value, as a tensor of the step; open tapes watch it. */
LS_API ls_tensor *ls_read(ls_context *c, ls_variable *v);

/* The variable as an operand; see ls_sync_on_read_enter() for where it differs. */
LS_API ls_tensor *ls_variable_as_tensor(ls_context *c, ls_variable *v);

/* Assigns and returns the new value. `value` may be sparse in add and sub. */
LS_API ls_tensor *ls_assign(ls_context *c, ls_variable *v, ls_tensor *value);
LS_API ls_tensor *ls_assign_add(ls_context *c, ls_variable *v, ls_tensor *delta);
LS_API ls_tensor *ls_assign_sub(ls_context *c, ls_variable *v, ls_tensor *delta);

/*
 * The same with any leaf: a literal (which is the same on every replica), a tensor, a
 * distributed value, a variable. `no_read`: returns NULL and does not read the result,
 * which an ON_READ variable without an aggregation refuses.
 */
typedef enum ls_assign_op { LS_ASSIGN = 0, LS_ASSIGN_ADD, LS_ASSIGN_SUB } ls_assign_op;
LS_API ls_tensor *ls_variable_assign(ls_context *c, ls_variable *v, ls_assign_op op,
                                     ls_value *value, bool no_read);

/*
 * Changes the rows `indices` (int32 or int64, any shape) of the first axis by `updates`
 * ([indices..., rest of the shape]) and returns the new value. A row named twice is
 * changed twice, in order; an index outside is LS_INVALID_ARGUMENT and nothing changes.
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
 * The same without the result, which is a view of the variable and would make the next
 * change copy it whole: rows are changed where they lie, unless somebody holds the value
 * (a tensor that was read from it in this step, or retained).
 */
LS_API void ls_variable_scatter_in_place(ls_context *c, ls_variable *v, ls_scatter_op op,
                                         ls_tensor *indices, ls_tensor *updates);

/*
 * The rows `indices` of the first axis: ls_gather() of ls_read() without holding the
 * value for the rest of the step, so that SGD and Adagrad change these rows where they
 * lie. Its gradient is sparse. Indices outside are an error.
 */
LS_API ls_tensor *ls_variable_gather(ls_context *c, ls_variable *v, ls_tensor *indices);

/* As ls_here(), for a call that takes a value. */
LS_API ls_value *ls_here_value(ls_context *c, ls_value *v, const char *file, int line);
#define LS_HERE_VALUE(c, v) ls_here_value((c), (v), __FILE__, __LINE__)

/* Gradients of `target` for `n` variables: grads[i] is NULL if v[i] took no part. */
LS_API void ls_variable_gradients(ls_context *c, ls_tape *tape, ls_tensor *target,
                                  ls_variable *const *v, size_t n, ls_tensor **grads);

/* Watches a variable that is not trainable, or on a tape that ignores variables. */
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
