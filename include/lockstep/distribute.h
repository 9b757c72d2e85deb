/*
 * lockstep/distribute.h - datasets distributed over the replicas of a strategy.
 *
 * ls_strategy_distribute() takes a dataset of global batches: every batch is cut into one
 * part per replica, and with several workers every worker reads its own files or its own
 * share. ls_dist_iterator_next() returns one PerReplica value per step, with a component
 * per local replica (a structure of them for structured elements; plain values if there
 * is one replica in sync). When some replicas have no more data, they get empty batches
 * until all have none, so that all replicas make the same number of steps.
 *
 *     LS_TRY(ls_strategy_distribute(strategy, d, NULL, &dist, &err));
 *     LS_TRY(ls_dist_iterate(dist, &it, &err));
 *     while ((st = ls_dist_iterator_next(it, &batch, &err)) == LS_OK) { ... }
 *
 * With a strategy of several workers, all workers make these calls in the same order, and
 * each call waits for all of them:
 *
 *     ls_strategy_distribute(), ls_strategy_make_dataset_iterator(),
 *     ls_strategy_distribute_from_function(), and ls_strategy_make_input_fn_iterator()
 *     with a function of datasets: the workers compare the specs of their elements; in the
 *     first two, random operators without a seed get those of worker 0.
 *
 *     ls_dist_iterator_next() and its other forms, until they have returned the end: the
 *     workers count the parts of the step. They do not wait if the datasets of all workers
 *     are infinite, nor with the iterators of compat.v1.
 *
 * If such a call fails on one worker, it fails on all of them with the error of that
 * worker, whose number is err->rank. All may go on: the next call repeats the step that
 * failed, with the parts that the workers have. Workers that are missing after
 * 2 s are named in the log (ls_log_set), and the call fails when the timeout of the
 * workers' communicator has passed. Workers that are threads of one process need a thread
 * each. The other functions below do not wait.
 *
 * Threads: one at a time.
 */
#ifndef LS_DISTRIBUTE_H
#define LS_DISTRIBUTE_H

#include "lockstep/dataset.h"
#include "lockstep/input.h"
#include "lockstep/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_dist_dataset ls_dist_dataset;
typedef struct ls_dist_iterator ls_dist_iterator;

/* InputReplicationMode. */
typedef enum ls_replication { LS_PER_WORKER = 0, LS_PER_REPLICA_INPUT } ls_replication;

/* InputOptions. Start from LS_DISTRIBUTE_OPTIONS_INIT. */
typedef struct ls_distribute_options {
    size_t struct_size;
    ls_replication replication;
    bool keep_on_host;      /* experimental_fetch_to_device = false */
    bool place_on_device;   /* experimental_place_dataset_on_device */
    int per_replica_buffer; /* batches read ahead per replica; 0: 1; negative: none */
} ls_distribute_options;

/* clang-format off */
#define LS_DISTRIBUTE_OPTIONS_INIT \
    {sizeof(ls_distribute_options), LS_PER_WORKER, false, false, 0}
/* clang-format on */

/* Distributes a dataset of global batches: one part per replica; `d` is retained. It is
 * read in the runtime of the strategy. */
LS_API LS_MUST_USE ls_status ls_strategy_distribute(ls_strategy *s, ls_dataset *d,
                                                    const ls_distribute_options *opts,
                                                    ls_dist_dataset **out, ls_error *err);

/*
 * One dataset per worker, made by `fn` there and used as it is. A function that cannot
 * make one returns ls_dataset_failed(), and this call fails with its code and message;
 * NULL counts as out of memory.
 */
typedef ls_dataset *(*ls_input_fn)(const ls_input_context *ic, void *user);
LS_API LS_MUST_USE ls_status ls_strategy_distribute_from_function(
    ls_strategy *s, ls_input_fn fn, void *user, const ls_distribute_options *opts,
    ls_dist_dataset **out, ls_error *err);

/*
 * Arrays as a dataset of their rows (make_numpy_dataset): a list of tensors is stacked.
 * `arrays` is borrowed.
 */
LS_API ls_dataset *ls_strategy_numpy_dataset(ls_strategy *s, ls_value *arrays);

LS_API ls_dist_dataset *ls_dist_dataset_retain(ls_dist_dataset *d);
LS_API void ls_dist_dataset_release(ls_dist_dataset *d); /* NULL is allowed */

/* The number of steps, LS_INFINITE or LS_UNKNOWN_SIZE. */
LS_API int64_t ls_dist_cardinality(const ls_dist_dataset *d);

/* The spec of one replica's value, borrowed; *wrapped: whether values are PerReplica. */
LS_API ls_spec *ls_dist_spec(const ls_dist_dataset *d, bool *wrapped);

/* Shards every worker's pipeline again: part `index` of `shards`. */
LS_API LS_MUST_USE ls_status ls_dist_auto_shard(ls_dist_dataset *d, int shards, int index,
                                                ls_error *err);

/* Makes an iterator at the beginning. */
LS_API LS_MUST_USE ls_status ls_dist_iterate(ls_dist_dataset *d, ls_dist_iterator **out,
                                             ls_error *err);

/*
 * The value of the next step, the caller's to release. Blocks. LS_OUT_OF_RANGE: the end.
 * Must not be called in a replica function.
 */
LS_API LS_MUST_USE ls_status ls_dist_iterator_next(ls_dist_iterator *it, ls_value **out,
                                                   ls_error *err);

/* get_next_as_optional: *has says whether there is a value; the end is no failure. */
LS_API LS_MUST_USE ls_status ls_dist_iterator_next_optional(ls_dist_iterator *it,
                                                            bool *has, ls_value **out,
                                                            ls_error *err);

/* The same as an object, as TensorFlow has it. */
typedef struct ls_optional ls_optional;
LS_API LS_MUST_USE ls_status ls_dist_iterator_next_as_optional(ls_dist_iterator *it,
                                                               ls_optional **out,
                                                               ls_error *err);
LS_API bool ls_optional_has_value(const ls_optional *o);

/* The value, the caller's to release. LS_INVALID_ARGUMENT: there is none. */
LS_API LS_MUST_USE ls_status ls_optional_value(const ls_optional *o, ls_value **out,
                                               ls_error *err);
LS_API void ls_optional_release(ls_optional *o); /* NULL is allowed */

/* Save the position after the last step returned, and restore it: ls_iterator_save(). */
LS_API LS_MUST_USE ls_status ls_dist_iterator_save(ls_dist_iterator *it, ls_value **out,
                                                   ls_error *err);
LS_API LS_MUST_USE ls_status ls_dist_iterator_restore(ls_dist_iterator *it,
                                                      ls_value *state, ls_error *err);
LS_API void ls_dist_iterator_release(ls_dist_iterator *it); /* NULL is allowed */

/* compat.v1's iterators: initialize them before use; initializing again rewinds. */
LS_API LS_MUST_USE ls_status ls_strategy_make_dataset_iterator(ls_strategy *s,
                                                               ls_dataset *d,
                                                               ls_dist_iterator **out,
                                                               ls_error *err);
typedef ls_status (*ls_input_callable)(void *state, ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_strategy_make_input_fn_iterator(
    ls_strategy *s, ls_input_fn fn, ls_input_callable callable, void *user,
    ls_replication mode, ls_dist_iterator **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_dist_iterator_initialize(ls_dist_iterator *it,
                                                         ls_error *err);

/*
 * The pipeline of one worker: `d`, whose reference is taken over, sharded as part `index`
 * of `shards`.
 */
LS_API ls_dataset *ls_dataset_auto_shard(ls_dataset *d, int64_t shards, int64_t index,
                                         ls_auto_shard policy);

/* AutoShardDataset's attributes. Start from LS_AUTO_SHARD_OPTIONS_INIT. */
typedef struct ls_auto_shard_options {
    size_t struct_size;
    int64_t shards, index; /* the number of workers, and which this is; 0 shards: one */
    ls_auto_shard policy;
    int64_t replicas; /* num_replicas, of all workers: with the policy DATA, an
                         ls_dataset_rebatch() at the end cuts every batch into so many
                         parts; 0: 1 */
} ls_auto_shard_options;

/* clang-format off */
#define LS_AUTO_SHARD_OPTIONS_INIT \
    {sizeof(ls_auto_shard_options), 0, 0, LS_SHARD_AUTO, 0}
/* clang-format on */

/* The same with all options; `opts` NULL: the defaults. */
LS_API ls_dataset *ls_dataset_auto_shard_with(ls_dataset *d,
                                              const ls_auto_shard_options *opts);

/*
 * The sizes of the parts of each global batch that the replicas of a worker get; `sizes`
 * has room for workers * replicas.
 */
LS_API LS_MUST_USE ls_status ls_batch_sizes(int64_t global_batch, int workers,
                                            int replicas, int worker, int64_t *sizes,
                                            ls_error *err);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* These record the site of the call: a failure among workers names the lines of both. */
/* clang-format off */
#define ls_strategy_distribute(...) LS_COMM_PLACED((ls_strategy_distribute)(__VA_ARGS__))
#define ls_strategy_distribute_from_function(...) LS_COMM_PLACED((ls_strategy_distribute_from_function)(__VA_ARGS__))
#define ls_dist_iterator_next(...) LS_COMM_PLACED((ls_dist_iterator_next)(__VA_ARGS__))
#define ls_dist_iterator_next_optional(...) LS_COMM_PLACED((ls_dist_iterator_next_optional)(__VA_ARGS__))
/* clang-format on */
#endif
#endif /* LS_DISTRIBUTE_H */
