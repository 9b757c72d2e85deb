/*
 * lockstep/replica.h - what a replica function may call: its replica's id, and the
 * operations that all replicas make together.
 *
 * A replica function gets the context of its replica. Its operations run on the replica's
 * device. Calls that replicas make together (sum, gather, merge) block until every
 * replica has made them, in the same order. If one replica makes another call, or returns
 * while others wait, the call fails on all of them and the message names the lines of
 * both.
 *
 * In a context that was opened by ls_context_open() there is one replica, and the
 * functions here work for it: a sum is the value itself.
 *
 * Threads: the context's.
 */
#ifndef LS_REPLICA_H
#define LS_REPLICA_H

#include "lockstep/comm.h"
#include "lockstep/value.h"
#include "lockstep/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The replica of a context; 0 of 1 in a context that no strategy runs. */
LS_API int ls_replica_id(const ls_context *c);    /* in the sync group: 0 .. count-1 */
LS_API int ls_replica_count(const ls_context *c); /* replicas in sync */
LS_API ls_strategy *ls_replica_strategy(const ls_context *c); /* borrowed; never NULL */
LS_API ls_tensor *ls_replica_id_tensor(ls_context *c);        /* an int32 scalar */

/* TensorFlow's CommunicationImplementation. */
typedef enum ls_communication {
    LS_COMMUNICATION_AUTO = 0,
    LS_COMMUNICATION_RING,
    LS_COMMUNICATION_NCCL /* becomes RING on devices without NCCL */
} ls_communication;

/* CommunicationOptions. Start from LS_COMMUNICATION_OPTIONS_INIT. */
typedef struct ls_communication_options {
    size_t struct_size;
    int64_t bytes_per_pack; /* 0: all in one pack */
    double timeout_seconds; /* negative: not given; 0: the communicator's own */
    ls_communication implementation;
    const char *algorithm; /* NULL: choose; else as in ls_comm_options */
} ls_communication_options;

/* clang-format off */
#define LS_COMMUNICATION_OPTIONS_INIT \
    {sizeof(ls_communication_options), 0, -1.0, LS_COMMUNICATION_AUTO, NULL}
/* clang-format on */

/* From "auto", "RING", "Nccl", in any case; others: LS_INVALID_ARGUMENT (kind value). */
LS_API LS_MUST_USE ls_status ls_communication_from_name(const char *name,
                                                        ls_communication *out,
                                                        ls_error *err);
LS_API const char *ls_communication_name(ls_communication implementation);

/* LS_INVALID_ARGUMENT (kind value): bytes_per_pack is negative, or no implementation. */
LS_API LS_MUST_USE ls_status ls_communication_check(const ls_communication_options *opts,
                                                    ls_error *err);

/* Sets the fields of `into` whose value in `other` is not the default. */
LS_API void ls_communication_merge(ls_communication_options *into,
                                   const ls_communication_options *other);

/*
 * Sum or mean over all replicas; every replica gets the same bits. Has a gradient (the
 * same reduction of the upstream gradient). A sparse tensor stays sparse.
 */
LS_API ls_tensor *ls_all_reduce(ls_context *c, ls_reduce op, ls_tensor *t);

/* Concatenates along `axis`, in replica order; the sizes of that axis may differ. */
LS_API ls_tensor *ls_all_gather(ls_context *c, ls_tensor *t, int axis);

/* The same for the leaves of a structure (tensors, variables, literals), packed. */
LS_API ls_value *ls_all_reduce_value(ls_context *c, ls_reduce op, ls_value *v,
                                     const ls_communication_options *opts);
LS_API ls_value *ls_all_gather_value(ls_context *c, ls_value *v, int axis,
                                     const ls_communication_options *opts);

/*
 * When every replica has called it, runs the function that replica 0 passed once, on the
 * thread of replica 0, in cross-replica context, with the arguments of all replicas
 * merged (ls_value_regroup). Every replica gets its part of the result
 * (ls_value_select). Values belong to the contexts.
 */
typedef ls_value *(*ls_merge_fn)(ls_context *cross, ls_strategy *s, ls_value *args,
                                 void *user);
LS_API ls_value *ls_merge_call(ls_context *c, ls_merge_fn fn, ls_value *args, void *user);

/*
 * ReplicaContext.update: calls `fn` once for each component of `v`, on the component's
 * device, with its part of `args`, which are merged and not reduced. Returns the result
 * of this replica.
 */
typedef ls_value *(*ls_update_fn)(ls_context *c, ls_variable *component, ls_value *args,
                                  void *user);
LS_API ls_value *ls_replica_update(ls_context *c, ls_variable *v, ls_update_fn fn,
                                   ls_value *args, void *user);

/*
 * sum(losses * weights) / global_batch, so that the sum over replicas is the mean over
 * the global batch. `weights` may be NULL. LS_BATCH_OF_REPLICAS: the size of the first
 * axis times the number of replicas. A global batch of 0 gives 0.
 */
#define LS_BATCH_OF_REPLICAS INT64_MIN
LS_API ls_tensor *ls_average_loss(ls_context *c, ls_tensor *losses, ls_tensor *weights,
                                  int64_t global_batch);

/* The same with the batch as a value: an int literal, or an integer scalar tensor. */
LS_API ls_tensor *ls_average_loss_value(ls_context *c, ls_tensor *losses,
                                        ls_tensor *weights, ls_value *global_batch);

/* sum(loss) / replicas. */
LS_API ls_tensor *ls_scale_regularization_loss(ls_context *c, ls_tensor *loss);

/*
 * Values and tensors of a step: what these return belongs to the context.
 *
 * ls_value_to_tensor() makes a tensor of a leaf: a tensor is itself, a literal becomes
 * int32, float32, bool or string, a variable is read, a distributed value gives this
 * replica's component (a PerReplica outside of a replica is LS_INVALID_ARGUMENT, kind
 * value). ls_value_of_all() makes a tuple; ls_value_adopt() takes over the caller's
 * reference.
 */
LS_API ls_tensor *ls_value_to_tensor(ls_context *c, ls_value *v);
LS_API ls_tensor *ls_value_at(ls_context *c, ls_value *v, size_t i);
LS_API ls_tensor *ls_value_at_key(ls_context *c, ls_value *v, const char *key);
LS_API ls_variable *ls_value_variable_at(ls_context *c, ls_value *v, size_t i);
LS_API ls_value *ls_value_of(ls_context *c, ls_tensor *t);
LS_API ls_value *ls_value_of_all(ls_context *c, ls_tensor *const *ts, size_t n);
LS_API ls_value *ls_value_adopt(ls_context *c, ls_value *v);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* clang-format off */
#define ls_all_reduce(c, op, t) LS_PLACED(c, (ls_all_reduce)((c), (op), LS_HERE_TENSOR(c, t)))
#define ls_all_gather(c, t, axis) LS_PLACED(c, (ls_all_gather)((c), LS_HERE_TENSOR(c, t), (axis)))
#define ls_all_reduce_value(c, op, v, opts) (ls_all_reduce_value)((c), (op), LS_HERE_VALUE(c, v), (opts))
#define ls_all_gather_value(c, v, axis, opts) (ls_all_gather_value)((c), LS_HERE_VALUE(c, v), (axis), (opts))
#define ls_merge_call(c, fn, args, user) (ls_merge_call)((c), (fn), LS_HERE_VALUE(c, args), (user))
#define ls_replica_update(c, v, fn, args, user) (ls_replica_update)((c), (v), (fn), LS_HERE_VALUE(c, args), (user))
#define ls_average_loss(c, ...) LS_PLACED(c, (ls_average_loss)((c), __VA_ARGS__))
#define ls_average_loss_value(c, ...) LS_PLACED(c, (ls_average_loss_value)((c), __VA_ARGS__))
#define ls_scale_regularization_loss(c, ...) LS_PLACED(c, (ls_scale_regularization_loss)((c), __VA_ARGS__))
#define ls_value_to_tensor(c, ...) LS_PLACED(c, (ls_value_to_tensor)((c), __VA_ARGS__))
#define ls_value_at(c, ...) LS_PLACED(c, (ls_value_at)((c), __VA_ARGS__))
#define ls_value_at_key(c, ...) LS_PLACED(c, (ls_value_at_key)((c), __VA_ARGS__))
#define ls_value_variable_at(c, ...) (ls_value_variable_at)(LS_HERE(c), __VA_ARGS__)
#define ls_value_of(c, ...) (ls_value_of)(LS_HERE(c), __VA_ARGS__)
#define ls_value_of_all(c, ...) (ls_value_of_all)(LS_HERE(c), __VA_ARGS__)
/* clang-format on */
#endif
#endif /* LS_REPLICA_H */
