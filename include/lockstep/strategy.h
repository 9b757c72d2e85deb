/*
 * lockstep/strategy.h - strategies: they place variables on devices and run functions on
 * replicas.
 *
 * ls_strategy_run() calls a function once per replica, in parallel, with that replica's
 * context and its part of the arguments, and merges the results (ls_value_regroup()).
 * Variables created between ls_scope_enter() and ls_scope_exit() are the strategy's.
 * Reductions and gathers combine the results of replicas.
 *
 *     LS_TRY(ls_mirrored_create("CPU:0,CPU:1", NULL, &strategy, &err));
 *     LS_TRY(ls_strategy_run(strategy, train_step, batch, &model, &losses, &err));
 *     LS_TRY(ls_strategy_reduce(strategy, LS_SUM, losses, LS_NO_AXIS, &loss, &err));
 *
 * Arguments are borrowed. Results come through `out`, which may be NULL, and are the
 * caller's to release.
 *
 * Threads: any; runs of one strategy run one after the other.
 */
#ifndef LS_STRATEGY_H
#define LS_STRATEGY_H

#include "lockstep/cross_device.h"
#include "lockstep/optimizer.h"
#include "lockstep/replica.h"
#include "lockstep/scope.h"

#include <limits.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LS_NO_AXIS INT_MIN

/* Options in one expression: LS_WITH(ls_run_options, .sequential = true). C only. */
#define LS_WITH(type, ...) (&(const type){.struct_size = sizeof(type), __VA_ARGS__})

/* Start from LS_STRATEGY_OPTIONS_INIT; zero means "choose". */
typedef struct ls_strategy_options {
    size_t struct_size;
    ls_runtime *runtime;                           /* NULL: the default one */
    const ls_communication_options *communication; /* copied; NULL: choose */
    ls_cross_device *cross_device;                 /* retained; NULL: choose */
    bool sequential; /* replicas run one after the other, in TensorFlow's order */
    int spin_us;     /* how long waiting replicas spin; 0: choose; negative: not at all */
} ls_strategy_options;

/* clang-format off */
#define LS_STRATEGY_OPTIONS_INIT \
    {sizeof(ls_strategy_options), NULL, NULL, NULL, false, 0}
/* clang-format on */

/* The default strategy: one replica; current where no other strategy is. Borrowed. */
LS_API ls_strategy *ls_default_strategy(void);

/* OneDeviceStrategy: one replica on the device of that name; NULL: the first device. */
LS_API LS_MUST_USE ls_status ls_one_device_create(const char *device,
                                                  const ls_strategy_options *opts,
                                                  ls_strategy **out, ls_error *err);

/*
 * MirroredStrategy: one replica per device, and a copy of every variable on each.
 * `devices`: "CPU:0,CPU:1"; NULL or "": all of the runtime. LS_INVALID_ARGUMENT: a device
 * named twice (kind assert), or localhost mixed with other task groups (kind value);
 * LS_FAILED_PRECONDITION: devices of several tasks.
 */
LS_API LS_MUST_USE ls_status ls_mirrored_create(const char *devices,
                                                const ls_strategy_options *opts,
                                                ls_strategy **out, ls_error *err);

/*
 * CentralStorageStrategy: one replica per compute device, variables on one parameter
 * device. NULL `devices`: CPU:0; NULL `parameter_device`: the only compute device, or
 * CPU:0 if there are several.
 */
LS_API LS_MUST_USE ls_status ls_central_storage_create(const char *devices,
                                                       const char *parameter_device,
                                                       const ls_strategy_options *opts,
                                                       ls_strategy **out, ls_error *err);

/* TPUStrategy, for programs that try it first: LS_UNAVAILABLE without such a device. */
LS_API LS_MUST_USE ls_status ls_tpu_create(const char *address,
                                           const ls_strategy_options *opts,
                                           ls_strategy **out, ls_error *err);

/* Another strategy of the same kind on the same devices. */
LS_API LS_MUST_USE ls_status ls_strategy_copy(ls_strategy *s, ls_strategy **out,
                                              ls_error *err);
LS_API ls_strategy *ls_strategy_retain(ls_strategy *s);
LS_API void ls_strategy_release(ls_strategy *s); /* NULL is allowed */

/* "MirroredStrategy". */
LS_API const char *ls_strategy_name(const ls_strategy *s);

/* Replicas in sync. */
LS_API int ls_strategy_replicas(const ls_strategy *s);

/* The devices of replicas and of variables, borrowed; NULL: there is none at `i`. */
LS_API size_t ls_strategy_worker_devices(const ls_strategy *s);
LS_API ls_device *ls_strategy_worker_device(const ls_strategy *s, size_t i);
LS_API size_t ls_strategy_parameter_devices(const ls_strategy *s);
LS_API ls_device *ls_strategy_parameter_device(const ls_strategy *s, size_t i);

/* Properties of TensorFlow's strategy.extended. Start from LS_STRATEGY_TRAITS_INIT. */
typedef struct ls_strategy_traits {
    size_t struct_size;
    bool should_checkpoint, should_save_summary; /* whether this task does it */
    bool between_graph, should_init;             /* as in compat.v1 */
    bool require_static_shapes;
    bool multi_worker;
} ls_strategy_traits;

/* clang-format off */
#define LS_STRATEGY_TRAITS_INIT \
    {sizeof(ls_strategy_traits), false, false, false, false, false, false}
/* clang-format on */
LS_API void ls_strategy_traits_of(const ls_strategy *s, ls_strategy_traits *out);

/*
 * A replica function; it runs on the replica's thread. `args` and the result belong to
 * the context; a NULL result is none, or a failure.
 */
typedef ls_value *(*ls_replica_fn)(ls_context *c, ls_value *args, void *user);

/* RunOptions. Start from LS_RUN_OPTIONS_INIT. */
typedef struct ls_run_options {
    size_t struct_size;
    bool sequential; /* one replica at a time, each up to its next merge */
    bool static_batch_size, bucketizing_dynamic_shape; /* of TPUs; ignored here */
} ls_run_options;

/* clang-format off */
#define LS_RUN_OPTIONS_INIT {sizeof(ls_run_options), false, false, false}
/* clang-format on */

/*
 * Calls `fn` on every replica and merges the results. `args` is a structure, a
 * distributed value or NULL; each replica gets its part. Blocks until all replicas have
 * returned. Returns the first failure of any replica, with its site and, in err->rank,
 * the replica. Variables keep what was assigned before; the step of an optimizer is taken
 * on all replicas or on none. LS_FAILED_PRECONDITION: called in a replica function.
 */
LS_API LS_MUST_USE ls_status ls_strategy_run(ls_strategy *s, ls_replica_fn fn,
                                             ls_value *args, void *user, ls_value **out,
                                             ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_run_with(ls_strategy *s, ls_replica_fn fn,
                                                  ls_value *args, void *user,
                                                  const ls_run_options *opts,
                                                  ls_value **out, ls_error *err);

/*
 * The state of a replica's random operations between runs: each run continues where the
 * last one ended, also runs inside of merge functions. A replica's stream is its id in
 * the sync group, so replicas draw different numbers, and replica 0 draws those of a
 * context that ls_context_open() opened with the same seed. Merge functions draw from a
 * stream of their own, LS_CROSS_REPLICA. Update functions draw the same numbers for every
 * copy of the variable, so copies stay equal. Both calls wait for a run in progress;
 * LS_FAILED_PRECONDITION: called in a replica function (use ls_context_random_state()).
 */
#define LS_CROSS_REPLICA (-1)
LS_API LS_MUST_USE ls_status ls_strategy_random_state(ls_strategy *s, int replica,
                                                      ls_random_state *out,
                                                      ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_set_random_state(ls_strategy *s, int replica,
                                                          const ls_random_state *state,
                                                          ls_error *err);

/*
 * Makes a run in progress fail: the next call of this library on every replica fails with
 * LS_ABORTED. Any thread; never blocks.
 */
LS_API void ls_strategy_abort(ls_strategy *s);

/*
 * Reduces a per-replica value to one value on the host. With LS_NO_AXIS the result has
 * the components' shape; with an axis each component is also reduced over that axis, and
 * LS_MEAN is the mean of all elements, however they are divided among replicas. LS_MEAN
 * of float16 and bfloat16 is added in float32 and rounded once.
 */
LS_API LS_MUST_USE ls_status ls_strategy_reduce(ls_strategy *s, ls_reduce op,
                                                ls_value *value, int axis, ls_value **out,
                                                ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_reduce_axes(ls_strategy *s, ls_reduce op,
                                                     ls_value *value, const int *axes,
                                                     size_t naxes, ls_value **out,
                                                     ls_error *err);

/* Concatenates the components along `axis`; sparse ones become dense first. */
LS_API LS_MUST_USE ls_status ls_strategy_gather(ls_strategy *s, ls_value *value, int axis,
                                                ls_value **out, ls_error *err);

/* A tuple with each local replica's part of `value`. */
LS_API LS_MUST_USE ls_status ls_strategy_local_results(ls_strategy *s, ls_value *value,
                                                       ls_value **out, ls_error *err);

/* ValueContext: the argument of a function that makes one replica's value. */
typedef struct ls_value_context {
    int replica_id; /* in the sync group */
    int replicas;
    ls_device *device; /* of the replica; the value may be on another one */
} ls_value_context;

/*
 * Makes a PerReplica value (a plain one for the default strategy and one device) by one
 * call of `fn` per local replica, in replica order, on this thread. The library takes over what
 * `fn` returns through `out`.
 */
typedef ls_status (*ls_value_maker)(const ls_value_context *vc, void *user,
                                    ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_values(ls_strategy *s, ls_value_maker fn,
                                                void *user, ls_value **out,
                                                ls_error *err);

/* LS_SUM or LS_MEAN over replicas, placed as `destination` says (cross_device.h). */
LS_API LS_MUST_USE ls_status ls_strategy_reduce_to(ls_strategy *s, ls_reduce op,
                                                   ls_value *value, ls_value *destination,
                                                   const ls_communication_options *opts,
                                                   ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_batch_reduce_to(
    ls_strategy *s, ls_reduce op, ls_value *const *values, ls_value *const *destinations,
    size_t n, const ls_communication_options *opts, ls_value **outs, ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_broadcast_to(ls_strategy *s, ls_value *value,
                                                      ls_value *destination,
                                                      ls_value **out, ls_error *err);

/*
 * Calls `fn` for each copy of `v`, on the copy's device, with its part of `args`. With
 * `group` the results are merged as Mirrored; otherwise each leaf is a tuple of the local
 * results. LS_INVALID_ARGUMENT (kind type): a PerReplica argument for a variable whose
 * copies are kept equal.
 */
LS_API LS_MUST_USE ls_status ls_strategy_update(ls_strategy *s, ls_variable *v,
                                                ls_update_fn fn, ls_value *args,
                                                void *user, bool group, ls_value **out,
                                                ls_error *err);

/* The same without a variable: once per device of `colocate_with` (NULL: all). */
LS_API LS_MUST_USE ls_status ls_strategy_update_non_slot(ls_strategy *s,
                                                         ls_value *colocate_with,
                                                         ls_replica_fn fn, ls_value *args,
                                                         void *user, bool group,
                                                         ls_value **out, ls_error *err);

/* What to pass as `colocate_with`: a tuple of device names, or a variable. */
LS_API LS_MUST_USE ls_status ls_strategy_non_slot_devices(ls_strategy *s,
                                                          ls_variable *const *vars,
                                                          size_t n, ls_value **out,
                                                          ls_error *err);

/* The distributed variable that a component belongs to; any other value is returned. */
LS_API LS_MUST_USE ls_status ls_strategy_value_container(ls_strategy *s, ls_value *value,
                                                         ls_value **out, ls_error *err);

/* Whether `v` was created in the scope of `s`. */
LS_API bool ls_strategy_created(const ls_strategy *s, const ls_variable *v);

/* The value of a variable: the aggregate (ON_READ) or one copy. */
LS_API LS_MUST_USE ls_status ls_strategy_read_variable(ls_strategy *s, ls_variable *v,
                                                       ls_tensor **out, ls_error *err);

/*
 * compat.v1: for each of `iterations`, takes an element from `next` (LS_OUT_OF_RANGE: the
 * end) and runs `fn` on it. `out` receives the result of the last run. `next` NULL: `fn`
 * gets no arguments (NULL).
 */
typedef ls_status (*ls_next_fn)(void *user, ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_run_steps(ls_strategy *s, ls_replica_fn fn,
                                                   void *user, ls_next_fn next,
                                                   void *next_user, int64_t iterations,
                                                   ls_value *initial, ls_value **out,
                                                   ls_error *err);

/* The settings that compat.v1's update_config_proto makes. */
typedef struct ls_session_config {
    size_t struct_size;
    bool isolate_session_state;
    const char *collective_leader; /* "" or NULL: none */
    int device_filters;            /* how many */
} ls_session_config;

/* clang-format off */
#define LS_SESSION_CONFIG_INIT {sizeof(ls_session_config), false, NULL, 0}
/* clang-format on */
LS_API LS_MUST_USE ls_status ls_strategy_update_config(const ls_strategy *s,
                                                       ls_session_config *config,
                                                       ls_error *err);

/* TensorFlow's older names of the same functions. */
#define ls_strategy_experimental_run_v2 ls_strategy_run
#define ls_strategy_call_for_each_replica ls_strategy_run
#define ls_strategy_unwrap ls_strategy_local_results
#define ls_strategy_experimental_local_results ls_strategy_local_results

#ifdef __cplusplus
}
#endif
#endif /* LS_STRATEGY_H */
