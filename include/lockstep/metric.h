/*
 * lockstep/metric.h - metrics: numbers accumulated over steps and replicas.
 *
 * The state of a metric is ON_READ variables with the aggregation SUM: replicas add to
 * their own copies without communicating, and a result that is read in cross-replica
 * context (outside of replicas, or in a merge function) covers all of them. Create
 * metrics inside the strategy's scope.
 *
 * Threads: as for variables.
 */
#ifndef LS_METRIC_H
#define LS_METRIC_H

#include "lockstep/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_metric ls_metric;

/* The weighted mean of all values added. `name` is copied; NULL: "mean". */
LS_API LS_MUST_USE ls_status ls_metric_mean_create(const char *name, ls_metric **out,
                                                   ls_error *err);
LS_API ls_metric *ls_metric_retain(ls_metric *m);
LS_API void ls_metric_release(ls_metric *m); /* NULL is allowed */
LS_API const char *ls_metric_name(const ls_metric *m);

/*
 * Adds the rows of `values` (its first axis; a row counts as the mean of its elements),
 * each with its weight. `weights` is NULL (all 1), one per row, one per element, or a
 * scalar: the weight of the mean of all rows, which then counts as one value, as in
 * Keras. Values without elements add nothing.
 */
LS_API void ls_metric_add(ls_context *c, ls_metric *m, ls_tensor *values,
                          ls_tensor *weights);

/* The result, a float32 scalar; 0 if nothing was added. */
LS_API ls_tensor *ls_metric_result(ls_context *c, ls_metric *m);

/* Sets the state to zero, on all replicas. */
LS_API LS_MUST_USE ls_status ls_metric_reset(ls_metric *m, ls_error *err);

/* Its variables, borrowed: 0 is the total, 1 the count; NULL: there is none at `i`. */
LS_API ls_variable *ls_metric_variable(const ls_metric *m, size_t i);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* clang-format off */
#define ls_metric_add(c, ...) LS_PLACED_VOID(c, (ls_metric_add)((c), __VA_ARGS__))
#define ls_metric_result(c, ...) LS_PLACED(c, (ls_metric_result)((c), __VA_ARGS__))
/* clang-format on */
#endif
#endif /* LS_METRIC_H */
