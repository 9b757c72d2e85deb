/*
 * lockstep/variable.h - a variable: a tensor with a name that can be assigned to.
 *
 * Reading gives the value of that moment: a later assignment does not change a tensor
 * that was read before (the variable takes new memory if it must). Assignments inside a
 * step go through its context and its sticky failure.
 *
 * Threads: one at a time; retain and release any.
 */
#ifndef LS_VARIABLE_H
#define LS_VARIABLE_H

#include "lockstep/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_variable ls_variable;

/* Start from LS_VARIABLE_OPTIONS_INIT. */
typedef struct ls_variable_options {
    size_t struct_size;
    const char *name;   /* NULL: "Variable" */
    bool not_trainable; /* tapes do not watch it by themselves */
    ls_device *device;  /* NULL: the value's */
} ls_variable_options;

/* clang-format off */
#define LS_VARIABLE_OPTIONS_INIT {sizeof(ls_variable_options), NULL, false, NULL}
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

/* The present value, outside of any step: yours to release. */
LS_API LS_MUST_USE ls_status ls_variable_value(ls_variable *v, ls_tensor **out,
                                               ls_error *err);

/* Replaces the value, outside of any step. Shape and dtype must be the variable's. */
LS_API LS_MUST_USE ls_status ls_variable_set(ls_variable *v, const ls_tensor *value,
                                             ls_error *err);

/* The present value, as a tensor of the step; open tapes watch it. */
LS_API ls_tensor *ls_read(ls_context *c, ls_variable *v);

/* Assigns and returns the new value. `value` may be sparse in add and sub. */
LS_API ls_tensor *ls_assign(ls_context *c, ls_variable *v, ls_tensor *value);
LS_API ls_tensor *ls_assign_add(ls_context *c, ls_variable *v, ls_tensor *delta);
LS_API ls_tensor *ls_assign_sub(ls_context *c, ls_variable *v, ls_tensor *delta);

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
#define ls_assign(c, ...) LS_PLACED(c, (ls_assign)((c), __VA_ARGS__))
#define ls_assign_add(c, ...) LS_PLACED(c, (ls_assign_add)((c), __VA_ARGS__))
#define ls_assign_sub(c, ...) LS_PLACED(c, (ls_assign_sub)((c), __VA_ARGS__))
#define ls_variable_scatter(c, ...) LS_PLACED(c, (ls_variable_scatter)((c), __VA_ARGS__))
#define ls_variable_gradients(c, ...) LS_PLACED_VOID(c, (ls_variable_gradients)((c), __VA_ARGS__))
/* clang-format on */
#endif
#endif /* LS_VARIABLE_H */
