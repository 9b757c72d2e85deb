/*
 * lockstep/optimizer.h - optimizers: they update variables by their gradients, with the
 * formulas of Keras.
 *
 * An optimizer owns its slots (moments), one set per variable, made by
 * ls_optimizer_build() or when a step first updates the variable; ls_optimizer_slot()
 * returns them. One step clips the gradients,
 * then decays the weights, then updates them, in this order as in Keras.
 *
 * In replica functions of a strategy every replica makes the same call with its own
 * gradients: they are summed over the replicas, never averaged, and the step is taken and
 * counted once. If one replica passes another optimizer, other variables or another
 * order, or a gradient is missing or sparse on some replicas only, the call fails on all
 * of them with LS_INVALID_ARGUMENT. In the strategy's cross-replica context a step fails.
 *
 * Threads: one at a time, except the replicas of a strategy; retain and release any.
 */
#ifndef LS_OPTIMIZER_H
#define LS_OPTIMIZER_H

#include "lockstep/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_optimizer ls_optimizer;

/*
 * Options that every optimizer has beside those of its formula; a zero field does
 * nothing. At most one of the three kinds of clipping may be set; g is the gradient of a
 * variable:
 *
 *     clipvalue         each element to [-clipvalue, clipvalue]
 *     clipnorm          g * clipnorm / max(|g|, clipnorm)
 *     global_clipnorm   the same with the norm of all gradients together
 *
 * The gradients are first summed over the replicas, then clipped, and rows that occur
 * several times in a sparse gradient are added up before that: this is what one device
 * with the global batch computes. Keras 3 clips the gradients of each replica before the
 * sum, and squares each of the repeated rows separately; `keras3` selects its results.
 */
typedef struct ls_optimizer_shared {
    double weight_decay; /* w -= w * weight_decay * learning_rate, if w has a gradient */
    double clipvalue;
    double clipnorm;
    double global_clipnorm;
    bool keras3;
} ls_optimizer_shared;

/* Options start from their ..._INIT, which holds the defaults of Keras. */
typedef struct ls_sgd_options {
    size_t struct_size;
    double learning_rate;
    double momentum; /* 0: none */
    bool nesterov;
    ls_optimizer_shared shared;
} ls_sgd_options;

typedef struct ls_adam_options {
    size_t struct_size;
    double learning_rate;
    double beta1, beta2;
    double epsilon;
    bool amsgrad;
    ls_optimizer_shared shared;
} ls_adam_options;

/* Adam with decoupled weight decay: shared.weight_decay is not part of the gradient. */
typedef struct ls_adamw_options {
    size_t struct_size;
    double learning_rate;
    double beta1, beta2;
    double epsilon;
    bool amsgrad;
    ls_optimizer_shared shared;
} ls_adamw_options;

typedef struct ls_rmsprop_options {
    size_t struct_size;
    double learning_rate;
    double rho;      /* the share of the old mean square that a step keeps */
    double momentum; /* 0: none */
    double epsilon;
    bool centered; /* divide by the estimated deviation instead of the root mean square */
    ls_optimizer_shared shared;
} ls_rmsprop_options;

typedef struct ls_adagrad_options {
    size_t struct_size;
    double learning_rate;
    double initial_accumulator_value;
    double epsilon;
    ls_optimizer_shared shared;
} ls_adagrad_options;

/* clang-format off */
#define LS_OPTIMIZER_SHARED_INIT {0.0, 0.0, 0.0, 0.0, false}
#define LS_SGD_OPTIONS_INIT \
    {sizeof(ls_sgd_options), 0.01, 0.0, false, LS_OPTIMIZER_SHARED_INIT}
#define LS_ADAM_OPTIONS_INIT \
    {sizeof(ls_adam_options), 0.001, 0.9, 0.999, 1e-7, false, LS_OPTIMIZER_SHARED_INIT}
#define LS_ADAMW_OPTIONS_INIT \
    {sizeof(ls_adamw_options), 0.001, 0.9, 0.999, 1e-7, false, {0.004, 0.0, 0.0, 0.0, false}}
#define LS_RMSPROP_OPTIONS_INIT \
    {sizeof(ls_rmsprop_options), 0.001, 0.9, 0.0, 1e-7, false, LS_OPTIMIZER_SHARED_INIT}
#define LS_ADAGRAD_OPTIONS_INIT \
    {sizeof(ls_adagrad_options), 0.001, 0.1, 1e-7, LS_OPTIMIZER_SHARED_INIT}
/* clang-format on */

/*
 * Create an optimizer; `opts` is borrowed, NULL: the defaults of Keras.
 * LS_INVALID_ARGUMENT: a number out of range, or several kinds of clipping.
 */
LS_API LS_MUST_USE ls_status ls_sgd_create(const ls_sgd_options *opts, ls_optimizer **out,
                                           ls_error *err);
LS_API LS_MUST_USE ls_status ls_adam_create(const ls_adam_options *opts,
                                            ls_optimizer **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_adamw_create(const ls_adamw_options *opts,
                                             ls_optimizer **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_rmsprop_create(const ls_rmsprop_options *opts,
                                               ls_optimizer **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_adagrad_create(const ls_adagrad_options *opts,
                                               ls_optimizer **out, ls_error *err);
LS_API ls_optimizer *ls_optimizer_retain(ls_optimizer *o);
LS_API void ls_optimizer_release(ls_optimizer *o); /* NULL is allowed */

/*
 * Makes the slots of those variables that have none, as the first step does that updates
 * them: a program calls it to have them before, for example to restore them. They are
 * named as in Keras, "adam/dense_kernel_momentum", and begin with the same number on all
 * workers. LS_INVALID_ARGUMENT: a variable is not of a floating dtype;
 * LS_FAILED_PRECONDITION: called in a replica function of a strategy. On failure nothing
 * has changed.
 */
LS_API LS_MUST_USE ls_status ls_optimizer_build(ls_optimizer *o, ls_variable *const *vars,
                                                size_t n, ls_error *err);

/*
 * One step: updates vars[i] by grads[i], i from 0 to n-1. A variable with a NULL gradient keeps its
 * value, and the first time such variables are named in the log (all NULL is an error, as
 * in Keras). A sparse gradient has the effect of the dense one with zeros elsewhere;
 * where zeros change nothing (SGD without momentum, Adagrad, neither with weight decay)
 * only its rows are updated: see ls_variable_gather(). In a replica function the call
 * blocks until all replicas have made it.
 *
 * A step that fails changes nothing: no variable and no slot on any replica of any
 * worker, and it is not counted. All replicas of all workers return the same failure,
 * that of the lowest; they stay in step, and the next step works. (A worker that dies or
 * comes too late, an abort, and calls that do not match break the group of the workers,
 * as everywhere.) Slots that the step has made stay, with their first values.
 */
LS_API void ls_optimizer_apply(ls_context *c, ls_optimizer *o, ls_tensor *const *grads,
                               ls_variable *const *vars, size_t n);

/*
 * Computes the gradients of `loss` by `tape` and applies them as ls_optimizer_apply()
 * does. A failure in the computation is one of the step.
 */
LS_API void ls_optimizer_minimize(ls_context *c, ls_optimizer *o, ls_tape *tape,
                                  ls_tensor *loss, ls_variable *const *vars, size_t n);

LS_API double ls_optimizer_learning_rate(const ls_optimizer *o);
LS_API void ls_optimizer_set_learning_rate(ls_optimizer *o, double rate);

/* The number of steps taken so far. */
LS_API int64_t ls_optimizer_iterations(const ls_optimizer *o);

/* "SGD", "Adam", "AdamW", "RMSprop", "Adagrad". */
LS_API const char *ls_optimizer_name(const ls_optimizer *o);

/*
 * A slot of a variable by Keras' name for it, borrowed; NULL: there is none (yet).
 *
 *     SGD          momentum
 *     Adam, AdamW  momentum, velocity, velocity_hat (amsgrad)
 *     RMSprop      velocity, momentum, average_gradient (centered)
 *     Adagrad      accumulator
 */
LS_API ls_variable *ls_optimizer_slot(const ls_optimizer *o, const ls_variable *v,
                                      const char *name);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* clang-format off */
#define ls_optimizer_apply(c, ...) LS_PLACED_VOID(c, (ls_optimizer_apply)((c), __VA_ARGS__))
#define ls_optimizer_minimize(c, ...) LS_PLACED_VOID(c, (ls_optimizer_minimize)((c), __VA_ARGS__))
/* clang-format on */
#endif
#endif /* LS_OPTIMIZER_H */
