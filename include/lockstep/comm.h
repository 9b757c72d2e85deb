/*
 * lockstep/comm.h - a communicator: sums, gathers and broadcasts among ranks, on plain
 * pointers, without tensors or strategies.
 *
 * Every rank calls the same operations in the same order, with the same counts and types.
 * If they differ, the call fails on every rank and the message names the source lines of
 * two calls that differ. After any failure but LS_INVALID_ARGUMENT the communicator is
 * broken: the contents of the buffers are undefined, every later call returns the first
 * failure again, and only ls_comm_release() is left to call.
 *
 * Sums are added in one binary tree over the ranks, whichever algorithm moves the bytes:
 * every rank gets the same bits, from run to run and for every algorithm that is chosen
 * automatically.
 *
 *     LS_TRY(ls_comm_all_reduce(comm, LS_MEAN, grads, n, LS_F32, NULL, &err));
 *
 * Threads: each handle is used by one thread at a time, except for ls_comm_abort(),
 * ls_comm_retain() and ls_comm_release(). The ranks of a group may be threads of one
 * process, each with a handle of its own.
 */
#ifndef LS_COMM_H
#define LS_COMM_H

#include "lockstep/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_comm ls_comm;
typedef struct ls_comm_work ls_comm_work; /* a call that was started, until its wait */

/* Strategies take LS_SUM and LS_MEAN only, as TensorFlow's ReduceOp has no other. */
typedef enum ls_reduce {
    LS_SUM = 0,
    LS_MEAN, /* the sum divided by the number of ranks; integers truncate */
    LS_MIN,
    LS_MAX,
    LS_PROD
} ls_reduce;

/* "SUM", "Mean", "max": any case. LS_INVALID_ARGUMENT (kind value): no such operation. */
LS_API LS_MUST_USE ls_status ls_reduce_from_name(const char *name, ls_reduce *out,
                                                 ls_error *err);
LS_API const char *ls_reduce_name(ls_reduce op); /* "SUM"; "?" for no operation */

/* How to run one operation. Start from LS_COMM_OPTIONS_INIT; zero means "choose". */
typedef struct ls_comm_options {
    size_t struct_size;
    int64_t timeout_ms;    /* 0: the communicator's own; negative: none (late ranks are
                              still named in the log) */
    const char *algorithm; /* NULL: choose; "direct", "tree", "hierarchical", "ring" */
    int subdivisions;      /* of a ring; 0: choose */
} ls_comm_options;

/* clang-format off */
#define LS_COMM_OPTIONS_INIT {sizeof(ls_comm_options), 0, NULL, 0}
/* clang-format on */

/* Creates a communicator of one rank: every operation is a copy. */
LS_API LS_MUST_USE ls_status ls_comm_self(ls_comm **out, ls_error *err);

/* Options of a group of threads. Start from LS_COMM_LOCAL_OPTIONS_INIT. */
typedef struct ls_comm_local_options {
    size_t struct_size;
    int64_t timeout_ms; /* of every operation; 0: LS_COMM_TIMEOUT_MS, else 10 minutes;
                           negative: none */
    int spin_us;        /* how long to spin before parking; 0: LS_SPIN_US, else choose;
                           negative: park at once */
} ls_comm_local_options;

/* clang-format off */
#define LS_COMM_LOCAL_OPTIONS_INIT {sizeof(ls_comm_local_options), 0, 0}
/* clang-format on */

/*
 * Creates a group of `ranks` threads of this process: out[0 .. ranks-1] receive one
 * handle per rank, to be used by one thread each and to be released one by one.
 */
LS_API LS_MUST_USE ls_status ls_comm_local(int ranks, const ls_comm_local_options *opts,
                                           ls_comm **out, ls_error *err);

LS_API int ls_comm_rank(const ls_comm *comm);
LS_API int ls_comm_size(const ls_comm *comm);
LS_API const char *ls_comm_backend(const ls_comm *comm); /* "self", "local" */

/*
 * A handle is counted. Its last release ends its rank: other ranks that wait for it fail.
 * Retain returns `comm`; NULL is allowed. Any thread may call both, but the last release
 * comes after every call on the handle has returned.
 */
LS_API ls_comm *ls_comm_retain(ls_comm *comm);
LS_API void ls_comm_release(ls_comm *comm);

/*
 * Makes the calls in progress and all later calls on every rank return LS_ABORTED. Any
 * thread; never blocks.
 */
LS_API void ls_comm_abort(ls_comm *comm);

/*
 * Blocking operations. Counts are elements, not bytes. `opts` NULL: the defaults. A
 * buffer may be NULL if its count is 0. Reductions take float16, bfloat16, float32,
 * float64 and the integers; moving bytes takes every dtype but string.
 *
 * Return LS_OK; LS_INVALID_ARGUMENT (nothing was sent); LS_INTERNAL or
 * LS_INVALID_ARGUMENT if the ranks' calls differ (the message names both lines);
 * LS_DEADLINE_EXCEEDED (the message names the late ranks); LS_UNAVAILABLE (a rank is
 * gone); LS_ABORTED.
 */

/* Reduces `count` elements at `buf` over all ranks, in place. */
LS_API LS_MUST_USE ls_status ls_comm_all_reduce(ls_comm *comm, ls_reduce op, void *buf,
                                                size_t count, ls_dtype dtype,
                                                const ls_comm_options *opts,
                                                ls_error *err);

/* The same, but only `root` gets the result; the buffers of the others do not change. */
LS_API LS_MUST_USE ls_status ls_comm_reduce(ls_comm *comm, int root, ls_reduce op,
                                            void *buf, size_t count, ls_dtype dtype,
                                            const ls_comm_options *opts, ls_error *err);

/* Copies `count` elements at `buf` of rank `root` to `buf` of every other rank. */
LS_API LS_MUST_USE ls_status ls_comm_broadcast(ls_comm *comm, int root, void *buf,
                                               size_t count, ls_dtype dtype,
                                               const ls_comm_options *opts,
                                               ls_error *err);

/* Gathers `count` elements from each rank; `to` receives size * count, in rank order. */
LS_API LS_MUST_USE ls_status ls_comm_all_gather(ls_comm *comm, const void *from,
                                                size_t count, ls_dtype dtype,
                                                const ls_comm_options *opts, void *to,
                                                ls_error *err);

/* Rank r sends counts[r] elements; `counts` has an entry per rank, equal on all ranks. */
LS_API LS_MUST_USE ls_status ls_comm_all_gather_uneven(ls_comm *comm, const void *from,
                                                       const size_t *counts,
                                                       ls_dtype dtype,
                                                       const ls_comm_options *opts,
                                                       void *to, ls_error *err);

/* Reduces size * count elements at `from`; rank r gets the r-th block of `count`. */
LS_API LS_MUST_USE ls_status ls_comm_reduce_scatter(ls_comm *comm, ls_reduce op,
                                                    const void *from, size_t count,
                                                    ls_dtype dtype,
                                                    const ls_comm_options *opts, void *to,
                                                    ls_error *err);

/* The r-th block of `count` elements of `from` goes to rank r; `to` is in rank order. */
LS_API LS_MUST_USE ls_status ls_comm_all_to_all(ls_comm *comm, const void *from,
                                                size_t count, ls_dtype dtype,
                                                const ls_comm_options *opts, void *to,
                                                ls_error *err);

/* Returns when every rank has called it. */
LS_API LS_MUST_USE ls_status ls_comm_barrier(ls_comm *comm, const ls_comm_options *opts,
                                             ls_error *err);

/* One rank to another: b's k-th receive from a gets what a's k-th send to b sends. */
LS_API LS_MUST_USE ls_status ls_comm_send(ls_comm *comm, int to_rank, const void *buf,
                                          size_t count, ls_dtype dtype,
                                          const ls_comm_options *opts, ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_recv(ls_comm *comm, int from_rank, size_t count,
                                          ls_dtype dtype, const ls_comm_options *opts,
                                          void *buf, ls_error *err);

/*
 * The same operations without blocking. The caller must not touch the buffers until
 * ls_comm_wait(), which also frees the work. Works may be waited for in any order; every
 * started work must be waited for.
 */
LS_API LS_MUST_USE ls_status ls_comm_start_all_reduce(ls_comm *comm, ls_reduce op,
                                                      void *buf, size_t count,
                                                      ls_dtype dtype,
                                                      const ls_comm_options *opts,
                                                      ls_comm_work **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_start_reduce(ls_comm *comm, int root, ls_reduce op,
                                                  void *buf, size_t count, ls_dtype dtype,
                                                  const ls_comm_options *opts,
                                                  ls_comm_work **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_start_broadcast(ls_comm *comm, int root, void *buf,
                                                     size_t count, ls_dtype dtype,
                                                     const ls_comm_options *opts,
                                                     ls_comm_work **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_start_all_gather(ls_comm *comm, const void *from,
                                                      size_t count, ls_dtype dtype,
                                                      const ls_comm_options *opts,
                                                      void *to, ls_comm_work **out,
                                                      ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_start_all_gather_uneven(
    ls_comm *comm, const void *from, const size_t *counts, ls_dtype dtype,
    const ls_comm_options *opts, void *to, ls_comm_work **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_start_reduce_scatter(
    ls_comm *comm, ls_reduce op, const void *from, size_t count, ls_dtype dtype,
    const ls_comm_options *opts, void *to, ls_comm_work **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_start_all_to_all(ls_comm *comm, const void *from,
                                                      size_t count, ls_dtype dtype,
                                                      const ls_comm_options *opts,
                                                      void *to, ls_comm_work **out,
                                                      ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_start_barrier(ls_comm *comm,
                                                   const ls_comm_options *opts,
                                                   ls_comm_work **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_start_send(ls_comm *comm, int to_rank,
                                                const void *buf, size_t count,
                                                ls_dtype dtype,
                                                const ls_comm_options *opts,
                                                ls_comm_work **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_start_recv(ls_comm *comm, int from_rank,
                                                size_t count, ls_dtype dtype,
                                                const ls_comm_options *opts, void *buf,
                                                ls_comm_work **out, ls_error *err);

/* True if ls_comm_wait() would not block. Makes progress on the work; does not wait. */
LS_API bool ls_comm_test(ls_comm_work *work);

/* Blocks until the work is done, frees it and returns its result. */
LS_API LS_MUST_USE ls_status ls_comm_wait(ls_comm_work *work, ls_error *err);

/*
 * A batch of calls that run as one: between begin and end, blocking calls are only noted
 * and return LS_OK; end runs them together and returns the first failure. No call of a
 * batch may read what another one of it writes.
 */
LS_API LS_MUST_USE ls_status ls_comm_group_begin(ls_comm *comm, ls_error *err);
LS_API LS_MUST_USE ls_status ls_comm_group_end(ls_comm *comm, const ls_comm_options *opts,
                                               ls_error *err);

/*
 * Ranks that pass the same colour form a new group, ordered by key, then by rank. With a
 * negative colour the rank is in no new group and `*out` becomes NULL. Every rank must
 * call it; blocks.
 */
LS_API LS_MUST_USE ls_status ls_comm_split(ls_comm *comm, int colour, int key,
                                           ls_comm **out, ls_error *err);

/*
 * Returns the name of the algorithm that a reduction of `bytes` over `ranks` threads
 * uses; writes a sentence on the reason to `why`, at most `size` bytes with the NUL.
 */
LS_API const char *ls_comm_choice(int ranks, size_t bytes, char *why, size_t size);

/* Sets the site (file and line) of this thread's next call; the macros below do it. */
LS_API void ls_comm_at(const char *file, int line);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* clang-format off */
#define LS_COMM_PLACED(call) (ls_comm_at(__FILE__, __LINE__), (call))
#define ls_comm_all_reduce(...) LS_COMM_PLACED((ls_comm_all_reduce)(__VA_ARGS__))
#define ls_comm_reduce(...) LS_COMM_PLACED((ls_comm_reduce)(__VA_ARGS__))
#define ls_comm_broadcast(...) LS_COMM_PLACED((ls_comm_broadcast)(__VA_ARGS__))
#define ls_comm_all_gather(...) LS_COMM_PLACED((ls_comm_all_gather)(__VA_ARGS__))
#define ls_comm_all_gather_uneven(...) LS_COMM_PLACED((ls_comm_all_gather_uneven)(__VA_ARGS__))
#define ls_comm_reduce_scatter(...) LS_COMM_PLACED((ls_comm_reduce_scatter)(__VA_ARGS__))
#define ls_comm_all_to_all(...) LS_COMM_PLACED((ls_comm_all_to_all)(__VA_ARGS__))
#define ls_comm_barrier(...) LS_COMM_PLACED((ls_comm_barrier)(__VA_ARGS__))
#define ls_comm_send(...) LS_COMM_PLACED((ls_comm_send)(__VA_ARGS__))
#define ls_comm_recv(...) LS_COMM_PLACED((ls_comm_recv)(__VA_ARGS__))
#define ls_comm_start_all_reduce(...) LS_COMM_PLACED((ls_comm_start_all_reduce)(__VA_ARGS__))
#define ls_comm_start_reduce(...) LS_COMM_PLACED((ls_comm_start_reduce)(__VA_ARGS__))
#define ls_comm_start_broadcast(...) LS_COMM_PLACED((ls_comm_start_broadcast)(__VA_ARGS__))
#define ls_comm_start_all_gather(...) LS_COMM_PLACED((ls_comm_start_all_gather)(__VA_ARGS__))
#define ls_comm_start_all_gather_uneven(...) LS_COMM_PLACED((ls_comm_start_all_gather_uneven)(__VA_ARGS__))
#define ls_comm_start_reduce_scatter(...) LS_COMM_PLACED((ls_comm_start_reduce_scatter)(__VA_ARGS__))
#define ls_comm_start_all_to_all(...) LS_COMM_PLACED((ls_comm_start_all_to_all)(__VA_ARGS__))
#define ls_comm_start_barrier(...) LS_COMM_PLACED((ls_comm_start_barrier)(__VA_ARGS__))
#define ls_comm_start_send(...) LS_COMM_PLACED((ls_comm_start_send)(__VA_ARGS__))
#define ls_comm_start_recv(...) LS_COMM_PLACED((ls_comm_start_recv)(__VA_ARGS__))
#define ls_comm_group_end(...) LS_COMM_PLACED((ls_comm_group_end)(__VA_ARGS__))
#define ls_comm_split(...) LS_COMM_PLACED((ls_comm_split)(__VA_ARGS__))
/* clang-format on */
#endif
#endif /* LS_COMM_H */
