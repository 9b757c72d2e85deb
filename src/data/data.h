/*
 * What a dataset is made of: nodes of a graph that never changes, and iterators over
 * them. A node is one operator with its parameters; auto-sharding and rebatching build
 * new graphs out of old nodes (lsi_dataset_rebuild). An iterator pulls elements from the
 * iterators of its node's inputs.
 */
#ifndef LSI_DATA_H
#define LSI_DATA_H
#include "data/batch_rows.h"
#include "data/dataset_element.h"
#include "data/saved_state.h"
#include "data/seed.h"
#include "data/spec.h"
#include "op/op.h"
#include "os/thread.h"
#include "value/value.h"

#include "lockstep/dataset.h"

/* ---- the tables of an operator ---- */
typedef struct lsi_iterator lsi_iterator;

typedef struct lsi_iterator_ops {
    /*
     * The next element, the caller's to release. LS_OUT_OF_RANGE: the end, and again on
     * every later call; after another failure the next call goes on. One call at a time.
     */
    ls_status (*next)(lsi_iterator *it, ls_value **out, ls_error *err);

    /*
     * Optional: appends up to `want` elements to `rows` without making a value of each;
     * *got receives how many. The same statuses; elements before a failure are appended.
     */
    ls_status (*fill)(lsi_iterator *it, lsi_batch_rows *rows, int64_t want, int64_t *got,
                      ls_error *err);

    /* Optional: passes over `n` elements; *skipped receives how many there were. */
    ls_status (*skip)(lsi_iterator *it, int64_t n, int64_t *skipped, ls_error *err);

    /* The position after the last element that next() returned; includes the inputs'. */
    ls_status (*save)(lsi_iterator *it, lsi_state_writer *w, ls_error *err);
    ls_status (*restore)(lsi_iterator *it, lsi_state_reader *r, ls_error *err);

    /* Optional: releases what it holds, but not the struct and not `dataset`. */
    void (*close)(lsi_iterator *it);
} lsi_iterator_ops;

/*
 * How an iterator is opened. Its elements are made on `device`, CPU:0 of a runtime, whose
 * threads help it; NULL: on none, by no other thread (to find the spec of a dataset that
 * is not opened anywhere yet).
 */
typedef struct lsi_opening {
    ls_device *device;
    uint64_t lineage; /* see lsi_lineage_below() */
    int depth;        /* of the nodes it is inside of, its own included */
} lsi_opening;

/* The first member of every iterator's struct. */
struct lsi_iterator {
    const lsi_iterator_ops *ops;
    ls_dataset *dataset; /* retained */
    lsi_opening as;
};

typedef struct lsi_dataset_ops {
    const char *kind; /* "batch", "tfrecord": by this name graphs are rewritten */

    ls_status (*iterate)(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                         ls_error *err);

    /* The same operator over other inputs; NULL: it has no inputs that may change. */
    ls_dataset *(*rebuild)(const ls_dataset *d, ls_dataset *const *inputs);

    /* Frees the members after the ls_dataset; NULL: there is nothing to free. */
    void (*destroy)(ls_dataset *d);

    bool stateful; /* it cannot be saved: a source or function of the user */

    /* Optional, both: element i on a device, and `n` elements from i on as rows, of a
     * source in memory whose elements can be read in any order. */
    ls_status (*element)(const ls_dataset *d, int64_t i, ls_device *device,
                         ls_value **out, ls_error *err);
    ls_status (*rows)(const ls_dataset *d, int64_t i, int64_t n, lsi_batch_rows *rows,
                      ls_error *err);
} lsi_dataset_ops;

/* The first member of every node's struct; its parameters follow. */
struct ls_dataset {
    atomic_int refs;
    const lsi_dataset_ops *ops;
    ls_dataset **inputs; /* retained */
    int ninputs;
    int depth;     /* 1: a source; at most LS_DATASET_MAX_DEPTH */
    ls_spec *spec; /* retained; NULL: failed */
    int64_t cardinality;
    ls_data_options options; /* its own, merged with those of the inputs */
    uint64_t print;          /* of its parameters: part of a saved state */
    const char *reader;      /* the kind of file its function opens; NULL: no files */
    bool stateful;           /* as in the table, of this node only */
    bool seeded;             /* `seed` was set on this thread, or comes from an input */
    int64_t seed;
    uint64_t share;          /* differs between the shards that elements come from */
    _Atomic uint64_t passes; /* iterators made so far of the pipeline that ends here */
    ls_status status;        /* what failed while it was built */
    ls_error error;
};

/* ---- building nodes (dataset.c) ---- */

/*
 * A node of `size` bytes (at least sizeof(ls_dataset)) over inputs, whose references it
 * takes over. If an input has failed, or the graph is too deep, the node has failed, too,
 * and has no inputs. NULL: out of memory (and the inputs are released).
 */
ls_dataset *lsi_dataset_new(const lsi_dataset_ops *ops, size_t size,
                            ls_dataset *const *inputs, int ninputs);

/* For a node that holds a value: datasets inside of it count for the depth. */
void lsi_dataset_hold(ls_dataset *d, const ls_value *v);

/* Completes a node: `spec` is taken over; a status that is not LS_OK fails it. */
ls_dataset *lsi_dataset_done(ls_dataset *d, ls_status st, ls_spec *spec,
                             int64_t cardinality, const ls_error *err);

/* Mixes a parameter into the node's part of the fingerprint. */
void lsi_dataset_mix_parameter(ls_dataset *d, uint64_t parameter);

/* A node that only carries a failure. */
ls_dataset *lsi_dataset_failed(ls_status code, ls_kind kind, const char *fmt, ...)
    LS_PRINTF(3, 4);

/* Marks a node as failed, unless it has failed before; returns it. */
ls_dataset *lsi_dataset_fail(ls_dataset *d, ls_status code, ls_kind kind, const char *fmt,
                             ...) LS_PRINTF(4, 5);
ls_dataset *lsi_dataset_fail_with(ls_dataset *d, const ls_error *err);
bool lsi_dataset_bad(const ls_dataset *d); /* NULL, or failed */

/* Copies those fields of `more` that are not at their default. (data_options.c) */
void lsi_data_options_merge(ls_data_options *into, const ls_data_options *more);

/* ---- rewriting graphs ---- */

/* The node over other inputs (borrowed); itself, retained, if it has none. */
ls_dataset *lsi_dataset_rebuild(const ls_dataset *d, ls_dataset *const *inputs);

/* A copy of the whole graph: shuffles and caches start from their first state. */
ls_dataset *lsi_dataset_clone(const ls_dataset *d);

/* A hash of the kinds and parameters of the whole graph. */
uint64_t lsi_dataset_fingerprint(const ls_dataset *d);

/* The kind of file that a node reads, or NULL; the size of a batch node, or -1; whether a
 * node is a shard whose numbers are set later; the file of a `cache` node, or NULL. */
const char *lsi_dataset_reader(const ls_dataset *d);
int64_t lsi_dataset_batch_size(const ls_dataset *d);
bool lsi_dataset_is_hint(const ls_dataset *d);
const char *lsi_dataset_cache_file(const ls_dataset *d);

/* Every batch cut into n pieces (spec §7.4); a shard that fails if its input has fewer
 * than `shards` elements. */
ls_dataset *lsi_dataset_legacy_rebatch(ls_dataset *d, int64_t n);
ls_dataset *lsi_dataset_shard_required(ls_dataset *d, int64_t shards, int64_t index);

/* A shuffle with this pair of seeds (spec §5.2). */
ls_dataset *lsi_dataset_shuffle_pair(ls_dataset *d, int64_t buffer, lsi_seeds pair,
                                     bool same_each_time);

/* Whether `d` is a shuffle whose pair is random, and the same shuffle over other inputs
 * (borrowed) with another pair: all workers are given the same one. */
bool lsi_dataset_drew_seeds(const ls_dataset *d, lsi_seeds *out);
ls_dataset *lsi_dataset_with_seeds(const ls_dataset *d, ls_dataset *const *inputs,
                                   lsi_seeds s);

/* ---- special nodes ---- */

/* What several nodes share as the pointer of their function; the last release calls
 * destroy(). */
typedef struct lsi_shared_user {
    atomic_int refs;
    void (*destroy)(struct lsi_shared_user *self);
} lsi_shared_user;

/*
 * flat_map (`flat`) or interleave whose function gets `user` as its pointer. The node
 * takes over the caller's reference, and rebuilding adds one. (interleave_node.c)
 */
ls_dataset *lsi_dataset_interleave_shared(ls_dataset *d, ls_dataset_fn fn,
                                          lsi_shared_user *user, bool flat,
                                          const ls_interleave_options *opts);

/*
 * Rows of a tensor that load(path) reads when the dataset is first iterated; the tensor
 * is kept until the dataset is released. `whole` is its spec, borrowed. (source_memory.c)
 */
typedef ls_status (*lsi_load_fn)(const char *path, ls_value **out, ls_error *err);
ls_dataset *lsi_dataset_slices_later(const char *path, lsi_load_fn load,
                                     const ls_spec *whole);

/* A dataset of these elements, for a window; they are retained, `spec` is borrowed. NULL:
 * out of memory. lsi_dataset_elements() returns them, borrowed; NULL: another kind. */
ls_dataset *lsi_dataset_of_elements(ls_value *const *elements, size_t n, ls_spec *spec);
ls_value *const *lsi_dataset_elements(const ls_dataset *d, size_t *n);

/* ---- iterators (node_iterator.c) ---- */

/* An iterator struct of `size` bytes over `d`, zeroed. */
ls_status lsi_iterator_new(const lsi_iterator_ops *ops, size_t size, ls_dataset *d,
                           const lsi_opening *how, lsi_iterator **out, ls_error *err);
ls_status lsi_dataset_iterate(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                              ls_error *err);
void lsi_iterator_close(lsi_iterator *it); /* NULL is allowed */

/* The threads that may help an iterator; NULL: none. */
lsi_input_threads *lsi_iterator_threads(const lsi_iterator *it);

/*
 * An iterator's lineage is a number that no other iterator of the pipeline has, whichever
 * thread made it and when: random operations of its function are keyed by it. That of the
 * last iterator is made of the seed and the number of the pass. An iterator hands its own
 * on to its only input, so that adding a prefetch changes no random number; where there
 * are several iterators below (inputs, passes of a repeat, datasets of an interleave),
 * and below functions, each has one made of it and a number.
 */
uint64_t lsi_lineage_below(const lsi_iterator *it, uint64_t number);

/* Iterates `d`, an input of the dataset of `it`, where `it` is opened. */
ls_status lsi_iterator_open_input(const lsi_iterator *it, ls_dataset *d, uint64_t lineage,
                                  lsi_iterator **out, ls_error *err);

/* The same for a dataset that was made of an element: it is inside of the others. */
ls_status lsi_iterator_open_made(const lsi_iterator *it, ls_dataset *d, uint64_t lineage,
                                 lsi_iterator **out, ls_error *err);

/* An iterator with one input: the struct, zeroed, and the iterator of input 0. */
typedef struct lsi_unary_iterator {
    lsi_iterator base;
    lsi_iterator *input; /* NULL: not needed any more */
} lsi_unary_iterator;
ls_status lsi_unary_iterator_new(const lsi_iterator_ops *ops, size_t size, ls_dataset *d,
                                 const lsi_opening *how, lsi_iterator **out,
                                 ls_error *err);

/* The same for operators that call functions: the input gets a lineage of its own. */
ls_status lsi_function_iterator_new(const lsi_iterator_ops *ops, size_t size,
                                    ls_dataset *d, const lsi_opening *how,
                                    lsi_iterator **out, ls_error *err);

/* Entries for the table of an iterator that adds nothing to its input's. */
ls_status lsi_unary_iterator_skip(lsi_iterator *it, int64_t n, int64_t *skipped,
                                  ls_error *err);
ls_status lsi_unary_iterator_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err);
ls_status lsi_unary_iterator_restore(lsi_iterator *it, lsi_state_reader *r,
                                     ls_error *err);
void lsi_unary_iterator_close(lsi_iterator *it);

/* These call the entry of the table, or do without where it is NULL. */
ls_status lsi_iterator_next(lsi_iterator *it, ls_value **out, ls_error *err);
ls_status lsi_iterator_fill(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                            int64_t *got, ls_error *err);
ls_status lsi_iterator_skip(lsi_iterator *it, int64_t n, int64_t *skipped, ls_error *err);
ls_status lsi_iterator_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err);
ls_status lsi_iterator_restore(lsi_iterator *it, lsi_state_reader *r, ls_error *err);

/* fill and skip by next() alone, for an iterator that cannot always use its own. */
ls_status lsi_iterator_fill_by_next(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                                    int64_t *got, ls_error *err);
ls_status lsi_iterator_skip_by_next(lsi_iterator *it, int64_t n, int64_t *skipped,
                                    ls_error *err);

/* The position of an input whose iterator may be NULL: whether it is, then its state.
 * *input is one of `it` over `d`. */
ls_status lsi_input_iterator_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err);
ls_status lsi_input_iterator_restore(const lsi_iterator *it, lsi_iterator **input,
                                     uint64_t lineage, ls_dataset *d, lsi_state_reader *r,
                                     ls_error *err);

/* ---- the last iterator of a pipeline (node_iterator.c) ---- */

/* Where a runtime (NULL: the default one) makes elements: its CPU:0. NULL: no memory. */
ls_device *lsi_input_device(ls_runtime *rt);

/* Starts the next pass in a runtime (NULL: the default one), whose seed it has unless `d`
 * has one. The caller keeps the runtime alive. */
ls_status lsi_pipeline_iterate(ls_dataset *d, ls_runtime *rt, lsi_iterator **out,
                               ls_error *err);

/* The state begins with the fingerprint; the option external_state says what becomes of
 * state that the library does not know. If the state is one of another pass, *it is
 * replaced by an iterator of that pass. */
ls_status lsi_pipeline_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err);
ls_status lsi_pipeline_restore(lsi_iterator **it, lsi_state_reader *r, ls_error *err);
#endif
