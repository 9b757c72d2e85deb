/*
 * lockstep/optimizer.h - gradients into variable updates, with Keras' formulas.
 *
 * An optimizer keeps its slots (moments) itself, one set a variable, made when it first
 * sees the variable, named and reached by ls_optimizer_slot().
 *
 * Threads: one at a time; retain and release any.
 */
#ifndef LS_OPTIMIZER_H
#define LS_OPTIMIZER_H

#include "lockstep/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_optimizer ls_optimizer;

/* Start from the ..._INIT; the numbers there are Keras' defaults. */
typedef struct ls_sgd_options {
    size_t struct_size;
    double learning_rate;
    double momentum; /* 0: none */
    bool nesterov;
} ls_sgd_options;

typedef struct ls_adam_options {
    size_t struct_size;
    double learning_rate;
    double beta1, beta2;
    double epsilon;
    bool amsgrad;
} ls_adam_options;

/* clang-format off */
#define LS_SGD_OPTIONS_INIT {sizeof(ls_sgd_options), 0.01, 0.0, false}
#define LS_ADAM_OPTIONS_INIT {sizeof(ls_adam_options), 0.001, 0.9, 0.999, 1e-7, false}
/* clang-format on */

/* NULL options: Keras' defaults. */
LS_API LS_MUST_USE ls_status ls_sgd_create(const ls_sgd_options *opts, ls_optimizer **out,
                                           ls_error *err);
LS_API LS_MUST_USE ls_status ls_adam_create(const ls_adam_options *opts,
                                            ls_optimizer **out, ls_error *err);
LS_API ls_optimizer *ls_optimizer_retain(ls_optimizer *o);
LS_API void ls_optimizer_release(ls_optimizer *o); /* NULL is allowed */

/*
 * Updates vars[i] by grads[i]; a NULL gradient leaves its variable alone (all NULL is an
 * error, as in Keras). A sparse gradient counts as the dense one with zeros elsewhere.
 */
LS_API void ls_optimizer_apply(ls_context *c, ls_optimizer *o, ls_tensor *const *grads,
                               ls_variable *const *vars, size_t n);

/* Gradients of `loss` by `tape`, then ls_optimizer_apply(). */
LS_API void ls_optimizer_minimize(ls_context *c, ls_optimizer *o, ls_tape *tape,
                                  ls_tensor *loss, ls_variable *const *vars, size_t n);

LS_API double ls_optimizer_learning_rate(const ls_optimizer *o);
LS_API void ls_optimizer_set_learning_rate(ls_optimizer *o, double rate);
LS_API int64_t ls_optimizer_iterations(const ls_optimizer *o);

/* "SGD", "Adam". */
LS_API const char *ls_optimizer_name(const ls_optimizer *o);

/* The slot `name` ("momentum", "velocity") of a variable, borrowed; NULL: none yet. */
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
