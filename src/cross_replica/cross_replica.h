/*
 * Combining values of several devices: where a result goes (destination.c), what is added
 * (components.c), and how (cross_reduce.c and the files of its algorithms).
 */
#ifndef LSI_CROSS_REPLICA_H
#define LSI_CROSS_REPLICA_H
#include "reduce/reduction.h"
#include "replica/replica.h"
#include "variable/variable.h"

/* ---- destinations (destination.c) ---- */

typedef struct lsi_destination {
    size_t n;            /* at least 1 */
    ls_device **devices; /* one per component of the result; may name a device twice */
} lsi_destination;

/*
 * The devices of destination `d`: of a value, a variable or a name, which is looked up in
 * `rt` (NULL: the default runtime). A list, a tuple and other values fail with
 * LS_INVALID_ARGUMENT (kind value). `what` begins the message. Pairs with
 * lsi_destination_clear().
 */
ls_status lsi_destination_of(const char *what, ls_value *d, ls_runtime *rt,
                             lsi_destination *out, ls_error *err);
ls_status lsi_destination_device(ls_device *device, lsi_destination *out, ls_error *err);
void lsi_destination_clear(lsi_destination *d);
bool lsi_destination_same(const lsi_destination *a, const lsi_destination *b);

/* ---- components (components.c) ---- */

/* The tensors of a leaf, one per component, each retained. */
typedef struct lsi_components {
    size_t n;
    ls_tensor **t;
} lsi_components;

/*
 * The components of a distributed leaf or variable; any other leaf is one component.
 * Literals become tensors on `device` (NULL: the default one).
 */
ls_status lsi_components_of(const char *what, ls_value *leaf, ls_device *device,
                            lsi_components *out, ls_error *err);
void lsi_components_clear(lsi_components *p);

/* `t` in the memory of `device`; itself if it is there. The caller releases it. */
ls_status lsi_tensor_on(ls_tensor *t, ls_device *device, ls_tensor **out, ls_error *err);

/* Makes *t dense. */
ls_status lsi_tensor_make_dense(ls_tensor **t, ls_error *err);

/* t / by as in tf.truediv, sparse tensors by their rows. The caller releases it. */
ls_status lsi_tensor_divide(ls_tensor *t, int64_t by, ls_tensor **out, ls_error *err);

/* A literal, a tensor or a variable as one tensor, which the caller releases. */
ls_status lsi_leaf_tensor(const char *what, ls_value *leaf, ls_device *device,
                          ls_tensor **out, ls_error *err);

/* True if `v` is a variable with a copy for each replica of a mirrored strategy. */
bool lsi_variable_is_mirrored(ls_variable *v);

/* ---- cross-device operations (cross_reduce.c) ---- */

/* The cross-device operations of `s`: given at its creation, or chosen by its kind. */
const ls_cross_device *lsi_cross_device_of(const ls_strategy *s);

/*
 * LS_SUM or LS_MEAN of `n` values, all to one destination: outs[i] is that of values[i].
 * `outs` is written only if all succeed. Sparse components beside dense ones are made
 * dense. `s` (NULL: none): the values are those of one of its workers, and the sums go
 * over all of them.
 */
ls_status lsi_cross_reduce(ls_strategy *s, const ls_cross_device *x, ls_reduce op,
                           lsi_components *values, size_t n, const lsi_destination *to,
                           const ls_communication_options *opts, ls_value **outs,
                           ls_error *err);

/*
 * Replaces the components of a value by those of all workers, in the order of ids.
 * `st`, `why`: as in lsi_workers_gather().
 */
ls_status lsi_components_of_workers(ls_strategy *s, const char *what,
                                    const ls_communication_options *opts,
                                    lsi_components *p, ls_status st, const ls_error *why,
                                    ls_error *err);

/* `t` on every device of the destination: Mirrored, or plain if there is only one. */
ls_status lsi_cross_broadcast(ls_tensor *t, const lsi_destination *to, ls_value **out,
                              ls_error *err);

/* The rows of sparse tensors, concatenated, on `device`. The caller releases it. */
ls_status lsi_reduce_rows(const lsi_components *p, ls_device *device, ls_tensor **out,
                          ls_error *err);

/* ---- reductions of strategies (reduce_to.c) ---- */

/* LS_OK for LS_SUM and LS_MEAN; else LS_INVALID_ARGUMENT of `kind`. */
ls_status lsi_require_reduce(const char *what, ls_reduce op, ls_kind kind, ls_error *err);

/* The device of results without a destination: that of the device scope, or the host. */
ls_device *lsi_host_device(const ls_strategy *s);

/* Reduces a value leaf by leaf, by the rules of ls_strategy_reduce_to(). */
ls_status lsi_reduce_value(ls_strategy *s, ls_reduce op, ls_value *value,
                           const lsi_destination *to,
                           const ls_communication_options *opts, ls_value **out,
                           ls_error *err);

/*
 * The failure (st, err) of what this worker does before the step over workers of a call
 * outside of replicas: the other workers wait for it there, so it takes part with the
 * failure. With one worker, and if `st` is LS_OK, it does nothing. Returns the failure.
 */
ls_status lsi_fail_workers(ls_strategy *s, const char *what, ls_status st, ls_error *err);
#endif
