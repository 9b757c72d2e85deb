/*
 * lockstep/strategy.h - strategies: where variables live and where functions run.
 *
 * ls_strategy_run() calls a function once a replica, in parallel, with that replica's
 * context and its share of the arguments, and merges the results (lockstep/value.h:
 * regroup). Inside ls_scope_enter() and ls_scope_exit() variables are made the strategy's
 * way. Reductions and gathers bring what replicas made together.
 *
 *     LS_TRY(ls_mirrored_create("CPU:0,CPU:1", NULL, &strategy, &err));
 *     LS_TRY(ls_strategy_run(strategy, train_step, batch, &model, &losses, &err));
 *     LS_TRY(ls_strategy_reduce(strategy, LS_SUM, losses, LS_NO_AXIS, &loss, &err));
 *
 * Results come through `out`, are the caller's to release, and `out` may be NULL.
 *
 * Threads: runs of one strategy take turns; queries and reductions any.
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
    const ls_communication_options *communication; /* how replicas talk; NULL: choose */
    ls_cross_device *cross_device;                 /* retained; NULL: choose */
    bool sequential; /* replicas run one after the other, in TensorFlow's order */
    int spin_us;     /* how long waiting replicas spin; 0: choose; negative: they sleep */
} ls_strategy_options;

/* clang-format off */
#define LS_STRATEGY_OPTIONS_INIT \
    {sizeof(ls_strategy_options), NULL, NULL, NULL, false, 0}
/* clang-format on */

/* The default strategy: one replica, in whatever context the caller has. Borrowed. */
LS_API ls_strategy *ls_default_strategy(void);

/* One device, given by name; NULL: the first. For trying code before distributing it. */
LS_API LS_MUST_USE ls_status ls_one_device_create(const char *device,
                                                  const ls_strategy_options *opts,
                                                  ls_strategy **out, ls_error *err);

/*
 * A copy of every variable on each device, one replica a device. `devices`:
 * "CPU:0,CPU:1"; NULL or "": all of the runtime. Named twice: LS_INVALID_ARGUMENT (kind
 * assert); localhost mixed with other jobs: kind value; devices of several tasks:
 * LS_FAILED_PRECONDITION.
 */
LS_API LS_MUST_USE ls_status ls_mirrored_create(const char *devices,
                                                const ls_strategy_options *opts,
                                                ls_strategy **out, ls_error *err);

/*
 * One replica a compute device, variables on one parameter device. NULL `devices`: CPU:0;
 * NULL `parameter_device`: the only compute device, else CPU:0.
 */
LS_API LS_MUST_USE ls_status ls_central_storage_create(const char *devices,
                                                       const char *parameter_device,
                                                       const ls_strategy_options *opts,
                                                       ls_strategy **out, ls_error *err);

/* Its API alone: LS_UNAVAILABLE where there is no such device. */
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

/* The devices replicas compute on and variables live on; NULL: there is none at `i`. */
LS_API size_t ls_strategy_worker_devices(const ls_strategy *s);
LS_API ls_device *ls_strategy_worker_device(const ls_strategy *s, size_t i);
LS_API size_t ls_strategy_parameter_devices(const ls_strategy *s);
LS_API ls_device *ls_strategy_parameter_device(const ls_strategy *s, size_t i);

/* What programs ask of a strategy's extended part. */
typedef struct ls_strategy_traits {
    size_t struct_size;
    bool should_checkpoint, should_save_summary; /* is this the task that does */
    bool between_graph, should_init;             /* as compat.v1 tells them */
    bool require_static_shapes;
    bool multi_worker;
} ls_strategy_traits;

/* clang-format off */
#define LS_STRATEGY_TRAITS_INIT \
    {sizeof(ls_strategy_traits), false, false, false, false, false, false}
/* clang-format on */
LS_API void ls_strategy_traits_of(const ls_strategy *s, ls_strategy_traits *out);

/* What replicas run. The result belongs to the context; NULL: none, or a failure. */
typedef ls_value *(*ls_replica_fn)(ls_context *c, ls_value *args, void *user);

/* RunOptions. Start from LS_RUN_OPTIONS_INIT. */
typedef struct ls_run_options {
    size_t struct_size;
    bool sequential; /* one replica after the other, each to its next merge */
    bool static_batch_size, bucketizing_dynamic_shape; /* of TPUs; ignored here */
} ls_run_options;

/* clang-format off */
#define LS_RUN_OPTIONS_INIT {sizeof(ls_run_options), false, false, false}
/* clang-format on */

/*
 * Calls `fn` on every replica and merges what they return. `args` is a structure, a
 * distributed value or NULL; each replica is handed its part. Blocks. Returns the first
 * failure of any replica, with its place and, in err->rank, the replica; variables keep
 * what was written. LS_FAILED_PRECONDITION in a replica function.
 */
LS_API LS_MUST_USE ls_status ls_strategy_run(ls_strategy *s, ls_replica_fn fn,
                                             ls_value *args, void *user, ls_value **out,
                                             ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_run_with(ls_strategy *s, ls_replica_fn fn,
                                                  ls_value *args, void *user,
                                                  const ls_run_options *opts,
                                                  ls_value **out, ls_error *err);

/*
 * Where the random operations of a replica stand between steps: they go on from run to
 * run, also in runs inside of merge functions. A replica's stream is its id in the sync
 * group, so replicas draw different numbers, and one replica those of a context that
 * ls_context_open() gave with the same seed. Merge functions draw from a stream of their
 * own: LS_CROSS_REPLICA. Update functions draw the same numbers for every copy of the
 * variable, so copies stay equal. Waits for a run in progress;
 * LS_FAILED_PRECONDITION in a replica function, which asks its context.
 */
#define LS_CROSS_REPLICA (-1)
LS_API LS_MUST_USE ls_status ls_strategy_random_state(ls_strategy *s, int replica,
                                                      ls_random_state *out,
                                                      ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_set_random_state(ls_strategy *s, int replica,
                                                          const ls_random_state *state,
                                                          ls_error *err);

/*
 * Makes a run in progress fail: every replica's next call of this library returns
 * LS_ABORTED. Any thread, never blocks.
 */
LS_API void ls_strategy_abort(ls_strategy *s);

/*
 * Combines a per-replica value into one on the host. LS_NO_AXIS keeps the components'
 * shape; with an axis each component is reduced over it too, and LS_MEAN is the mean of
 * all elements, however they fall on replicas. LS_MEAN of float16 and bfloat16 is added
 * in float32 and narrowed once.
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

/* A tuple of what each local replica sees of `value`. */
LS_API LS_MUST_USE ls_status ls_strategy_local_results(ls_strategy *s, ls_value *value,
                                                       ls_value **out, ls_error *err);

/* A value made by one call a replica, in order. `out` of `fn` is the library's then. */
typedef struct ls_value_context {
    int replica_id; /* in the sync group */
    int replicas;
    ls_device *device; /* of the replica; values may live anywhere */
} ls_value_context;
typedef ls_status (*ls_value_maker)(const ls_value_context *vc, void *user,
                                    ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_values(ls_strategy *s, ls_value_maker fn,
                                                void *user, ls_value **out,
                                                ls_error *err);

/* LS_SUM or LS_MEAN across replicas, put where `destination` says (cross_device.h). */
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
 * Calls fn(component, its part of args) for each copy of `v`, on its device. `group`:
 * the results merged as Mirrored; else each leaf is a tuple of the local results. A
 * PerReplica argument for a variable that is kept equal is LS_INVALID_ARGUMENT (type).
 */
LS_API LS_MUST_USE ls_status ls_strategy_update(ls_strategy *s, ls_variable *v,
                                                ls_update_fn fn, ls_value *args,
                                                void *user, bool group, ls_value **out,
                                                ls_error *err);

/* The same without a variable: once a device of `colocate_with` (NULL: all). */
LS_API LS_MUST_USE ls_status ls_strategy_update_non_slot(ls_strategy *s,
                                                         ls_value *colocate_with,
                                                         ls_replica_fn fn, ls_value *args,
                                                         void *user, bool group,
                                                         ls_value **out, ls_error *err);

/* What update_non_slot() goes by: a tuple of device names, or a variable. */
LS_API LS_MUST_USE ls_status ls_strategy_non_slot_devices(ls_strategy *s,
                                                          ls_variable *const *vars,
                                                          size_t n, ls_value **out,
                                                          ls_error *err);

/* The distributed variable a component belongs to; any other value is itself. */
LS_API LS_MUST_USE ls_status ls_strategy_value_container(ls_strategy *s, ls_value *value,
                                                         ls_value **out, ls_error *err);
LS_API bool ls_strategy_created(const ls_strategy *s, const ls_variable *v);

/* The value of a variable: aggregated (ON_READ) or of one copy. */
LS_API LS_MUST_USE ls_status ls_strategy_read_variable(ls_strategy *s, ls_variable *v,
                                                       ls_tensor **out, ls_error *err);

/*
 * compat.v1: takes an element from `next` (LS_OUT_OF_RANGE: the end) for every one of
 * `iterations` and runs `fn` on it. What the last run returned comes through `out`.
 * `next` NULL: there is no iterator, and `fn` gets no arguments (NULL).
 */
typedef ls_status (*ls_next_fn)(void *user, ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_run_steps(ls_strategy *s, ls_replica_fn fn,
                                                   void *user, ls_next_fn next,
                                                   void *next_user, int64_t iterations,
                                                   ls_value *initial, ls_value **out,
                                                   ls_error *err);

/* compat.v1's update_config_proto, as settings: what a session would be told. */
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
