/*
 * lockstep/value.h - structures of tensors, and values that differ from replica to
 * replica.
 *
 * A value is a leaf or a structure. Structures are tuples, lists, named tuples and dicts
 * (keys are strings; their order is that of insertion). Leaves are tensors, literals
 * (an int64, a double, a bool, a string: host scalars that are not tensors), none,
 * variables, and distributed values: PerReplica (one component per replica) and Mirrored
 * (the components are equal). Arguments and results of replica functions are values.
 *
 * A value never changes. It is made from values that exist already, which it retains: an
 * argument is borrowed, what arrives through `out` is the caller's to release, what an
 * accessor returns is borrowed and lives as long as its parent. A structure is at most
 * LS_VALUE_MAX_DEPTH deep.
 *
 * Threads: any.
 */
#ifndef LS_VALUE_H
#define LS_VALUE_H

#include "lockstep/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_value ls_value;

typedef enum ls_value_kind {
    LS_VALUE_NONE = 0,
    LS_VALUE_TENSOR,
    LS_VALUE_INT,
    LS_VALUE_FLOAT,
    LS_VALUE_BOOL,
    LS_VALUE_STRING,
    LS_VALUE_TUPLE,
    LS_VALUE_LIST,
    LS_VALUE_NAMED_TUPLE,
    LS_VALUE_DICT,
    LS_VALUE_PER_REPLICA,
    LS_VALUE_MIRRORED,
    LS_VALUE_VARIABLE, /* lockstep/variable.h: ls_value_variable() */
    LS_VALUE_DATASET   /* lockstep/dataset.h: a window */
} ls_value_kind;

enum { LS_VALUE_MAX_DEPTH = 100 };

/* Leaves. The tensor is retained, the string's bytes are copied. */
LS_API LS_MUST_USE ls_status ls_value_none(ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_value_tensor(ls_tensor *t, ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_value_int(int64_t x, ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_value_float(double x, ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_value_bool(bool x, ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_value_string(ls_string s, ls_value **out, ls_error *err);

/* Structures of `n` items; `items` may be NULL if `n` is 0. */
LS_API LS_MUST_USE ls_status ls_value_tuple(ls_value *const *items, size_t n,
                                            ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_value_list(ls_value *const *items, size_t n,
                                           ls_value **out, ls_error *err);

/* A named tuple: fields[i] names items[i]. Type and names are copied; no name twice. */
LS_API LS_MUST_USE ls_status ls_value_named_tuple(const char *type,
                                                  const char *const *fields,
                                                  ls_value *const *items, size_t n,
                                                  ls_value **out, ls_error *err);

/* A dict: items[i] is under keys[i]. Keys are copied; no key twice. */
LS_API LS_MUST_USE ls_status ls_value_dict(const char *const *keys,
                                           ls_value *const *items, size_t n,
                                           ls_value **out, ls_error *err);

/* Distributed values of `n` components, at least one, each a leaf, in replica order. */
LS_API LS_MUST_USE ls_status ls_value_per_replica(ls_value *const *components, size_t n,
                                                  ls_value **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_value_mirrored(ls_value *const *components, size_t n,
                                               ls_value **out, ls_error *err);

LS_API ls_value *ls_value_retain(ls_value *v); /* returns `v`; NULL is allowed */
LS_API void ls_value_release(ls_value *v);     /* NULL is allowed */

LS_API ls_value_kind ls_value_kind_of(const ls_value *v); /* NULL: LS_VALUE_NONE */

/* "tuple", "PerReplica"; "?" for a number that is no kind. */
LS_API const char *ls_value_kind_name(ls_value_kind kind);

/* True for everything but tuples, lists, named tuples and dicts. */
LS_API bool ls_value_is_leaf(const ls_value *v);

/* Number of items of a structure or of components of a distributed value, else 0. */
LS_API size_t ls_value_size(const ls_value *v);

/* The i-th item or component, borrowed; NULL: there is none. */
LS_API ls_value *ls_value_child(const ls_value *v, size_t i);

/* The i-th key of a dict or field of a named tuple; NULL: there is none. */
LS_API const char *ls_value_key(const ls_value *v, size_t i);

/* The item at `key` of a dict or named tuple, borrowed; NULL: there is none. */
LS_API ls_value *ls_value_find(const ls_value *v, const char *key);

/* The name of a named tuple's type; NULL for other kinds. */
LS_API const char *ls_value_type_name(const ls_value *v);

/* What a leaf holds, borrowed: NULL or false if it holds something else. */
LS_API ls_tensor *ls_value_as_tensor(const ls_value *v);
LS_API bool ls_value_as_int(const ls_value *v, int64_t *out);
LS_API bool ls_value_as_float(const ls_value *v, double *out);
LS_API bool ls_value_as_bool(const ls_value *v, bool *out);
LS_API bool ls_value_as_string(const ls_value *v, ls_string *out);

/*
 * The number that a leaf holds: an int, a float, a bool, or a tensor of one element such
 * as a loss from ls_strategy_reduce(). LS_INVALID_ARGUMENT: anything else.
 */
LS_API LS_MUST_USE ls_status ls_value_item(const ls_value *v, double *out, ls_error *err);

/*
 * True if both are the same object in the sense of ls_value_regroup(): the same tensor,
 * literals of one kind with equal bits, both none, or the same structure or distributed
 * value.
 */
LS_API bool ls_value_same(const ls_value *a, const ls_value *b);

/*
 * The leaves as a list, in TensorFlow's order: items in turn, dicts by sorted keys. A
 * distributed value is one leaf.
 */
LS_API LS_MUST_USE ls_status ls_value_flatten(ls_value *v, ls_value **out, ls_error *err);

/*
 * The structure of `like` with its leaves replaced by the items of `leaves` (a list or
 * tuple), in the order of ls_value_flatten(). LS_INVALID_ARGUMENT: the counts differ.
 */
LS_API LS_MUST_USE ls_status ls_value_pack(ls_value *like, ls_value *leaves,
                                           ls_value **out, ls_error *err);

/* Makes a new value of a leaf, which is borrowed; the library takes over *out. */
typedef ls_status (*ls_value_fn)(ls_value *leaf, void *user, ls_value **out,
                                 ls_error *err);

/*
 * The structure of `v` with each leaf replaced by fn(leaf), called in the order of
 * ls_value_flatten(), on this thread. The first failure of `fn` is returned.
 */
LS_API LS_MUST_USE ls_status ls_value_map(ls_value *v, ls_value_fn fn, void *user,
                                          ls_value **out, ls_error *err);

/* Start from LS_REGROUP_OPTIONS_INIT. */
typedef struct ls_regroup_options {
    size_t struct_size;
    ls_value_kind wrap; /* LS_VALUE_PER_REPLICA (also for 0) or LS_VALUE_MIRRORED */
    bool always_wrap;   /* also leaves that are the same object on every replica */
} ls_regroup_options;

/* clang-format off */
#define LS_REGROUP_OPTIONS_INIT {sizeof(ls_regroup_options), LS_VALUE_PER_REPLICA, false}
/* clang-format on */

/*
 * Merges the values of `n` replicas, in replica order, into one structure of distributed
 * leaves. A leaf that is the same object on every replica stays what it is; the copies
 * of one distributed variable become that variable. Structures must agree in kind, size
 * and keys: LS_INVALID_ARGUMENT with LS_KIND_ASSERT, and the message names the replica
 * and the path within the structure.
 */
LS_API LS_MUST_USE ls_status ls_value_regroup(ls_value *const *values, size_t n,
                                              const ls_regroup_options *opts,
                                              ls_value **out, ls_error *err);

/* The reverse: the structure with component `replica` of each distributed leaf. */
LS_API LS_MUST_USE ls_status ls_value_select(ls_value *v, size_t replica, ls_value **out,
                                             ls_error *err);

/*
 * The same, for structures whose distributed leaves are all Mirrored; a PerReplica leaf
 * is LS_INVALID_ARGUMENT with LS_KIND_TYPE.
 */
LS_API LS_MUST_USE ls_status ls_value_select_mirrored(ls_value *v, size_t replica,
                                                      ls_value **out, ls_error *err);

/*
 * The parts of `replicas` local replicas as a tuple: the components of a distributed
 * value, one selected structure per replica, or any other leaf alone.
 */
LS_API LS_MUST_USE ls_status ls_value_local_results(ls_value *v, size_t replicas,
                                                    ls_value **out, ls_error *err);

/*
 * Prints like Python's str(): "PerReplica:{\n  0: tf.Tensor(...),\n  1: ...\n}",
 * "(1, 'a')". Tensors print as ls_tensor_text() does. Writes at most `size` bytes with
 * the closing NUL and returns the length the whole text has.
 */
LS_API size_t ls_value_text(const ls_value *v, char *buf, size_t size);

/* The same like Python's repr(): "<tf.Tensor: shape=(), dtype=int32, numpy=1>". */
LS_API size_t ls_value_repr(const ls_value *v, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif /* LS_VALUE_H */
