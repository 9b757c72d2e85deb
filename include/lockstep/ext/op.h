/*
 * lockstep/ext/op.h - how a program adds an operation of its own; the library's own
 * operations are described in the same way.
 *
 *     static ls_status cube_shape(ls_op_call *k)
 *     {
 *         ls_shape s = ls_tensor_shape(ls_op_input(k, 0));
 *         return ls_op_set_output(k, 0, ls_tensor_dtype(ls_op_input(k, 0)), &s);
 *     }
 *     static const ls_op cube = {
 *         sizeof cube, "cube", 1, 1, 1, 0, cube_shape, cube_kernel, cube_gradient};
 *     ...
 *     ls_tensor *y = ls_op_apply1(c, &cube, &x, 1, NULL, 0);
 *
 * The row (the ls_op) is the whole description: eager execution and the tape both use it.
 * It must outlive every context it is used in.
 *
 * Threads: the functions of a row are called on the thread of the context that runs the
 * operation, so they may run on several threads at once.
 */
#ifndef LS_EXT_OP_H
#define LS_EXT_OP_H

#include "lockstep/op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_op_call ls_op_call; /* one execution: inputs, attributes, outputs */
typedef struct ls_op_node ls_op_node; /* one execution as a tape recorded it */

/* One operation: its row. */
typedef struct ls_op {
    size_t struct_size; /* sizeof(ls_op) as the program was compiled */
    const char *name;   /* for messages */
    int min_inputs;
    int max_inputs; /* negative: any number */
    int outputs;    /* 1 to 4 */
    int builtin;    /* the library's own number; 0 in yours */

    /*
     * Checks inputs and attributes, and calls ls_op_set_output() for each output. Fails
     * by `return ls_op_fail(k, LS_INVALID_ARGUMENT, "...")`; the message is prefixed with
     * the operation's name.
     */
    ls_status (*shape)(ls_op_call *k);

    /* Fills the outputs. Called only when there is at least one element to fill. */
    ls_status (*kernel)(ls_op_call *k);

    /*
     * Computes gradients by calling operations on `c`. `gout[i]` is the gradient of
     * output i, or NULL if there is none; at least one is not NULL. The function sets
     * gin[i] for each input that has a gradient (they start as NULL: no gradient), and
     * may skip those for which ls_op_needs() returns false. A NULL function: the
     * operation is not differentiable and its inputs get no gradient through it.
     */
    void (*gradient)(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                     ls_tensor **gin);
} ls_op;

/*
 * Runs `op` on `n` inputs with a copy of `attrs_size` bytes at `attrs`, which hold values
 * and no pointers: a tape keeps them. What changes from step to step (a rate, a counter,
 * where random numbers begin) is an input: a scalar or another small tensor.
 * outs[0..outputs-1] receive the results, which belong to the context, or NULL after a
 * failure. A NULL input fails the step unless it has failed before.
 */
LS_API void ls_op_apply(ls_context *c, const ls_op *op, ls_tensor *const *inputs,
                        size_t n, const void *attrs, size_t attrs_size, ls_tensor **outs);

/* The same for an operation of which only the first output is wanted; returns it. */
LS_API ls_tensor *ls_op_apply1(ls_context *c, const ls_op *op, ls_tensor *const *inputs,
                               size_t n, const void *attrs, size_t attrs_size);

/* For shape and kernel functions. What these return is borrowed for the call. */
LS_API size_t ls_op_input_count(const ls_op_call *k);
LS_API const ls_tensor *ls_op_input(const ls_op_call *k, size_t i);
LS_API const void *ls_op_attrs(const ls_op_call *k);
LS_API ls_status ls_op_set_output(ls_op_call *k, int i, ls_dtype dtype,
                                  const ls_shape *shape);
LS_API ls_status ls_op_fail(ls_op_call *k, ls_status code, const char *fmt, ...)
    LS_PRINTF(3, 4);

/* For kernel functions: the memory to fill, row-major. */
LS_API void *ls_op_output(ls_op_call *k, int i);

/*
 * For gradient functions: the inputs, outputs and attributes of the execution, borrowed
 * for the call. ls_op_needs(): whether the gradient for input `i` will be used.
 */
LS_API ls_tensor *ls_op_node_input(const ls_op_node *n, size_t i);
LS_API ls_tensor *ls_op_node_output(const ls_op_node *n, int i);
LS_API const void *ls_op_node_attrs(const ls_op_node *n);
LS_API bool ls_op_needs(const ls_op_node *n, size_t i);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* clang-format off */
#define ls_op_apply(c, ...) LS_PLACED_VOID(c, (ls_op_apply)((c), __VA_ARGS__))
#define ls_op_apply1(c, ...) LS_PLACED(c, (ls_op_apply1)((c), __VA_ARGS__))
/* clang-format on */
#endif
#endif /* LS_EXT_OP_H */
