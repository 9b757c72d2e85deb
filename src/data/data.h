/*
 * What a dataset is made of: nodes of a graph that never changes, and iterators over
 * them. A node is one operator with its parameters; auto-sharding and rebatching build
 * new graphs out of old nodes (lsi_dataset_rebuild). An iterator pulls from the iterators
 * of its inputs.
 */
#ifndef LSI_DATA_H
#define LSI_DATA_H
#include "base/philox.h"
#include "data/string_pool.h"
#include "op/op.h"
#include "os/thread.h"
#include "value/value.h"

#include "lockstep/dataset.h"

/* ---- specs (spec.c) ---- */
struct ls_spec {
    atomic_int refs;
    ls_spec_kind kind;
    ls_dtype dtype;
    int ndim;  /* -1: unknown */
    int depth; /* 1: a leaf */
    int64_t dims[LS_MAX_DIMS];
    size_t size;
    char **keys; /* of a dict, sorted */
    ls_spec *child[];
};

/* Of elements nobody knows anything about yet: one leaf of dtype 0 and unknown rank. */
ls_status lsi_spec_unknown(ls_spec **out, ls_error *err);
bool lsi_spec_is_unknown(const ls_spec *s);

/* The spec that a value has. */
ls_status lsi_spec_of(const ls_value *v, ls_spec **out, ls_error *err);

/* dim 0 put in front (n, or -1), and taken away (a scalar is LS_INVALID_ARGUMENT). */
ls_status lsi_spec_batch(const ls_spec *s, int64_t n, ls_spec **out, ls_error *err);
ls_status lsi_spec_unbatch(const ls_spec *s, ls_spec **out, ls_error *err);

/* Every component's dim 0 replaced. */
ls_status lsi_spec_with_rows(const ls_spec *s, int64_t n, ls_spec **out, ls_error *err);

/* Every component's dim 0 divided by n; unknown where it is, or where a rest is left. */
ls_status lsi_spec_divide_rows(const ls_spec *s, int64_t n, ls_spec **out, ls_error *err);

/* What fits both; another structure or dtype is LS_INVALID_ARGUMENT. */
ls_status lsi_spec_common(const ls_spec *a, const ls_spec *b, ls_spec **out,
                          ls_error *err);

/* LS_OK if the value is one of the spec's; names both if not. */
ls_status lsi_spec_check(const ls_spec *s, const ls_value *v, ls_error *err);

/* Leaves in order: how many there are, and the i-th, borrowed. */
size_t lsi_spec_leaves(const ls_spec *s);
const ls_spec *lsi_spec_leaf(const ls_spec *s, size_t i);

/* dim 0 that every leaf is known to have; -1: there is no such number. */
int64_t lsi_spec_rows(const ls_spec *s);

/* A value's leaves along a spec, borrowed: `leaves` has room for lsi_spec_leaves(). */
ls_status lsi_spec_flatten(const ls_spec *s, const ls_value *v, const ls_value **leaves,
                           ls_error *err);

/* The structure of the spec over leaves, which are borrowed. */
ls_status lsi_spec_pack(const ls_spec *s, ls_value *const *leaves, ls_value **out,
                        ls_error *err);

/* Makes another spec of a leaf, the caller's to release. */
typedef ls_status (*lsi_spec_rule)(const ls_spec *leaf, void *user, ls_spec **out,
                                   ls_error *err);

/* The structure of `s` with rule(leaf) in the place of each leaf, in order. */
ls_status lsi_spec_map(const ls_spec *s, lsi_spec_rule rule, void *user, ls_spec **out,
                       ls_error *err);

/* ---- saving (saved_state.c): a position is bytes, little-endian, with lengths ---- */
typedef struct lsi_state_writer {
    uint8_t *bytes;
    size_t size, room;
    bool failed;          /* out of memory */
    bool lenient;         /* what keeps state outside is saved without it */
    const char *obstacle; /* the kind of dataset that cannot be saved; NULL: none */
} lsi_state_writer;
void lsi_state_write_u64(lsi_state_writer *w, uint64_t x);
void lsi_state_write_bytes(lsi_state_writer *w, const void *p, size_t n);
void lsi_state_write_value(lsi_state_writer *w,
                           const ls_value *v); /* an element; tensors and all */
void lsi_state_write_bool(lsi_state_writer *w, bool x);
void lsi_state_write_failure(lsi_state_writer *w, const ls_error *err);
void lsi_state_writer_clear(lsi_state_writer *w); /* frees the bytes */

/* Notes that `d` keeps state outside; false: the save has to fail for it. */
bool lsi_state_write_without(lsi_state_writer *w, const ls_dataset *d);

typedef struct lsi_state_reader {
    const uint8_t *bytes;
    size_t size, at;
} lsi_state_reader;
ls_status lsi_state_read_u64(lsi_state_reader *r, uint64_t *x, ls_error *err);
ls_status lsi_state_read_bytes(lsi_state_reader *r, const void **p, size_t *n,
                               ls_error *err);
ls_status lsi_state_read_value(lsi_state_reader *r, ls_value **v, ls_error *err);
ls_status lsi_state_read_bool(lsi_state_reader *r, bool *x, ls_error *err);
ls_status lsi_state_read_failure(lsi_state_reader *r, ls_error *x, ls_error *err);

/* A number of at most `max`, and an element of the spec; anything else is LS_DATA_LOSS.
 */
ls_status lsi_state_read_count(lsi_state_reader *r, uint64_t max, uint64_t *x,
                               ls_error *err);
ls_status lsi_state_read_element(lsi_state_reader *r, const ls_spec *spec, ls_value **v,
                                 ls_error *err);
ls_status lsi_state_damaged(ls_error *err, const char *what); /* LS_DATA_LOSS */

/* ---- nodes ---- */
typedef struct lsi_iterator lsi_iterator;
typedef struct lsi_batch_rows lsi_batch_rows;

typedef struct lsi_iterator_ops {
    /*
     * The next element, the caller's to release. LS_OUT_OF_RANGE: the end, and again
     * after it; another failure: the next call goes on. Calls come one at a time.
     */
    ls_status (*next)(lsi_iterator *it, ls_value **out, ls_error *err);

    /*
     * Optional: appends up to `want` elements to `rows` (batch.c) without making a value
     * of each; *got receives how many. The same statuses; elements before a failure are
     * appended.
     */
    ls_status (*fill)(lsi_iterator *it, lsi_batch_rows *rows, int64_t want, int64_t *got,
                      ls_error *err);

    /* Optional: passes over `n` elements; *skipped receives how many there were. */
    ls_status (*skip)(lsi_iterator *it, int64_t n, int64_t *skipped, ls_error *err);

    /* The position, after the last element that `next` gave; inputs included. */
    ls_status (*save)(lsi_iterator *it, lsi_state_writer *w, ls_error *err);
    ls_status (*restore)(lsi_iterator *it, lsi_state_reader *r, ls_error *err);

    /* Optional: gives back what it holds, not the struct and not `dataset`. */
    void (*close)(lsi_iterator *it);
} lsi_iterator_ops;

/* Every iterator begins with it. */
struct lsi_iterator {
    const lsi_iterator_ops *ops;
    ls_dataset *dataset; /* retained */
    uint64_t lineage;    /* see lsi_lineage_below() */
};

typedef struct lsi_dataset_ops {
    const char *kind; /* "batch", "tfrecord": what rewriting goes by */

    ls_status (*iterate)(ls_dataset *d, lsi_iterator **out, ls_error *err);

    /* The same operator over other inputs; NULL: it has none, or only its parameters. */
    ls_dataset *(*rebuild)(const ls_dataset *d, ls_dataset *const *inputs);

    /* Frees what stands behind the struct; NULL: nothing. */
    void (*destroy)(ls_dataset *d);

    bool stateful; /* it cannot be saved: a source or function of the user's */

    /* Optional, both: element i, and `n` elements from i on as rows, of a source in
     * memory whose elements can be reached in any order. */
    ls_status (*element)(const ls_dataset *d, int64_t i, ls_value **out, ls_error *err);
    ls_status (*rows)(const ls_dataset *d, int64_t i, int64_t n, lsi_batch_rows *rows,
                      ls_error *err);
} lsi_dataset_ops;

/* Every node begins with it; parameters stand behind (see lsi_dataset_new). */
struct ls_dataset {
    atomic_int refs;
    const lsi_dataset_ops *ops;
    ls_dataset **inputs; /* retained */
    int ninputs;
    int depth;     /* 1: a source; at most LS_DATASET_MAX_DEPTH */
    ls_spec *spec; /* retained; NULL: failed */
    int64_t cardinality;
    ls_data_options options; /* merged, from the inputs down */
    uint64_t print;          /* of its parameters: part of a saved state */
    const char *reader;      /* what its function opens; NULL: no files */
    bool stateful;           /* as in the table, of this one only */
    bool seeded;             /* `seed` is of ls_dataset_set_seed(), or of an input */
    int64_t seed;
    uint64_t share;          /* another number for every shard that elements come from */
    _Atomic uint64_t passes; /* pipelines that were begun with it at their end */
    ls_status status;        /* what went wrong while it was built */
    ls_error error;
};

/*
 * A node of `size` bytes (at least sizeof(ls_dataset)) over inputs, whose references it
 * takes over; a failure of an input is its own, and so is a graph that is too deep: then
 * the node has no inputs. NULL: out of memory (and the inputs are released). Options are
 * merged from the inputs.
 */
ls_dataset *lsi_dataset_new(const lsi_dataset_ops *ops, size_t size,
                            ls_dataset *const *inputs, int ninputs);

/* A node that holds a value: datasets in it count as if they stood below. */
void lsi_dataset_hold(ls_dataset *d, const ls_value *v);

/* What `more` says; what it leaves at its default says nothing. */
void lsi_data_options_merge(ls_data_options *into, const ls_data_options *more);

/* A node that only carries a failure. */
ls_dataset *lsi_dataset_failed(ls_status code, ls_kind kind, const char *fmt, ...)
    LS_PRINTF(3, 4);

/* Marks a node as failed, keeping the first failure; returns it. */
ls_dataset *lsi_dataset_fail(ls_dataset *d, ls_status code, ls_kind kind, const char *fmt,
                             ...) LS_PRINTF(4, 5);
ls_dataset *lsi_dataset_fail_with(ls_dataset *d, const ls_error *err);
bool lsi_dataset_bad(const ls_dataset *d); /* NULL, or failed */

/* Mixes a parameter into the fingerprint. */
void lsi_dataset_mix_parameter(ls_dataset *d, uint64_t parameter);

/* Completes a node: `spec` is taken over; a status that is not LS_OK fails it. */
ls_dataset *lsi_dataset_done(ls_dataset *d, ls_status st, ls_spec *spec,
                             int64_t cardinality, const ls_error *err);

/* What rewriting asks: a reader's kind or NULL; the size of a batch or -1; a shard that
 * waits for its numbers. */
const char *lsi_dataset_reader(const ls_dataset *d);
int64_t lsi_dataset_batch_size(const ls_dataset *d);
bool lsi_dataset_is_hint(const ls_dataset *d);

/* Every batch cut into n pieces (spec §7.4); a shard that demands `shards` inputs. */
ls_dataset *lsi_dataset_legacy_rebatch(ls_dataset *d, int64_t n);
ls_dataset *lsi_dataset_shard_required(ls_dataset *d, int64_t shards, int64_t index);

/* The node over other inputs (borrowed); itself retained if it has none. */
ls_dataset *lsi_dataset_rebuild(const ls_dataset *d, ls_dataset *const *inputs);

/* The whole graph anew: shuffles and caches start from their first state. */
ls_dataset *lsi_dataset_clone(const ls_dataset *d);

/*
 * An iterator's lineage tells it from all others of the pipeline, whatever thread made it
 * and when: random numbers of its function are keyed by it. It begins with the seed and
 * the number of the pass. An iterator hands its own on to its only input, so that a
 * prefetch changes nothing, or, where there are several (inputs, passes of a repeat,
 * datasets of an interleave) and below functions, one made of it and a number.
 */
uint64_t lsi_lineage_below(const lsi_iterator *it, uint64_t number);
ls_status lsi_dataset_iterate_as(ls_dataset *d, uint64_t lineage, lsi_iterator **out,
                                 ls_error *err);

/* An iterator struct of `size` bytes over `d`, zeroed. */
ls_status lsi_iterator_new(const lsi_iterator_ops *ops, size_t size, ls_dataset *d,
                           lsi_iterator **out, ls_error *err);
ls_status lsi_dataset_iterate(ls_dataset *d, lsi_iterator **out, ls_error *err);

/*
 * For operators that make datasets of elements: iterates one inside of others that are
 * `around` deep together. lsi_iterate_depth() tells an iterator that is being made how
 * deep the datasets are that it belongs to.
 */
ls_status lsi_dataset_iterate_inside(ls_dataset *d, int around, uint64_t lineage,
                                     lsi_iterator **out, ls_error *err);
int lsi_iterate_depth(const ls_dataset *d);
void lsi_iterator_close(lsi_iterator *it); /* NULL is allowed */

/* An iterator with one input: the struct, zeroed, and the iterator of input 0. */
typedef struct lsi_unary_iterator {
    lsi_iterator base;
    lsi_iterator *input; /* NULL: not needed any more */
} lsi_unary_iterator;
ls_status lsi_unary_iterator_new(const lsi_iterator_ops *ops, size_t size, ls_dataset *d,
                                 lsi_iterator **out, ls_error *err);

/* The same for those that call functions: the input is another link of the lineage. */
ls_status lsi_function_iterator_new(const lsi_iterator_ops *ops, size_t size,
                                    ls_dataset *d, lsi_iterator **out, ls_error *err);
void lsi_unary_iterator_close(lsi_iterator *it);

/* Closes *it, if any, and iterates `d` anew. */
ls_status lsi_iterator_renew(lsi_iterator **it, ls_dataset *d, ls_error *err);

/* An input that may be over: whether there is one, and its position. */
ls_status lsi_input_iterator_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err);
ls_status lsi_input_iterator_restore(lsi_iterator **it, uint64_t lineage, ls_dataset *d,
                                     lsi_state_reader *r, ls_error *err);
ls_status lsi_iterator_next(lsi_iterator *it, ls_value **out, ls_error *err);
ls_status lsi_iterator_fill(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                            int64_t *got, ls_error *err);
ls_status lsi_iterator_skip(lsi_iterator *it, int64_t n, int64_t *skipped, ls_error *err);

/* Without fill() and skip(): where an iterator has none, or not for all of its time. */
ls_status lsi_iterator_fill_by_next(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                                    int64_t *got, ls_error *err);
ls_status lsi_iterator_skip_by_next(lsi_iterator *it, int64_t n, int64_t *skipped,
                                    ls_error *err);
ls_status lsi_iterator_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err);
ls_status lsi_iterator_restore(lsi_iterator *it, lsi_state_reader *r, ls_error *err);

/* A whole pipeline: with its fingerprint and its policy on state kept outside. */
uint64_t lsi_dataset_fingerprint(const ls_dataset *d);
ls_status lsi_pipeline_iterate(ls_dataset *d, lsi_iterator **out, ls_error *err);
ls_status lsi_pipeline_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err);

/* *it is another iterator afterwards if the state is one of another pass. */
ls_status lsi_pipeline_restore(lsi_iterator **it, lsi_state_reader *r, ls_error *err);

/* ---- rows: a batch being put together (batch_rows.c) ---- */

/* Columns for the leaves of `element`, with room for `capacity` rows to begin with. */
ls_status lsi_batch_rows_create(const ls_spec *element, int64_t capacity,
                                lsi_batch_rows **out, ls_error *err);
void lsi_batch_rows_release(lsi_batch_rows *rows); /* NULL is allowed */
int64_t lsi_batch_rows_count(const lsi_batch_rows *rows);

/*
 * Copies an element's leaves to the next row. Shapes must be those of the first row; if
 * they are not, the rows are spoilt: further ones are only counted, and
 * lsi_batch_rows_take() fails.
 */
ls_status lsi_batch_rows_add(lsi_batch_rows *rows, const ls_value *element,
                             ls_error *err);

/*
 * For sources: `n` rows of `shape` for one leaf, at `data`, all rows of which are added
 * before others. `owner` (NULL: nobody) keeps the bytes of strings.
 */
ls_status lsi_batch_rows_add_block(lsi_batch_rows *rows, size_t leaf, ls_dtype dtype,
                                   const ls_shape *shape, const void *data,
                                   lsi_buffer *owner, int64_t n, ls_error *err);
void lsi_batch_rows_clear(lsi_batch_rows *rows); /* forgets what was added */

/* Rows [begin, end) of a batch, whose leaves have as many. */
ls_status lsi_batch_rows_add_rows(lsi_batch_rows *rows, const ls_value *batch,
                                  int64_t begin, int64_t end, ls_error *err);

/* For readers: one string that lies in `owner`'s memory, which is retained. */
ls_status lsi_batch_rows_add_string(lsi_batch_rows *rows, ls_string s, lsi_buffer *owner,
                                    ls_error *err);

/*
 * Rows that become no batch: elements are one scalar string each, and `add` gets them as
 * they come, in slots of `pool` that are its own from then on, also after a failure.
 */
typedef struct lsi_string_sink {
    ls_status (*add)(struct lsi_string_sink *self, const ls_string *strings, size_t n,
                     ls_error *err);
    lsi_string_pool *pool;
} lsi_string_sink;
ls_status lsi_batch_rows_create_sink(const ls_spec *element, lsi_string_sink *sink,
                                     lsi_batch_rows **out, ls_error *err);

/* For readers: the pool that strings are to be copied to, or NULL; and strings that lie
 * in its slots already. */
lsi_string_pool *lsi_batch_rows_pool(const lsi_batch_rows *rows);
ls_status lsi_batch_rows_add_pooled(lsi_batch_rows *rows, const ls_string *strings,
                                    size_t n, ls_error *err);

/* Why a row could not be added, if so; the rows are empty again. */
ls_status lsi_batch_rows_finish(lsi_batch_rows *rows, ls_error *err);

/* The batch as a value, and the rows are empty again. */
ls_status lsi_batch_rows_take(lsi_batch_rows *rows, ls_value **out, ls_error *err);

/* Row i of a batched element as an element; rows [begin, end) as a batch. */
ls_status lsi_value_row(const ls_value *batch, int64_t i, ls_value **out, ls_error *err);
ls_status lsi_value_rows(const ls_value *batch, int64_t begin, int64_t end,
                         ls_value **out, ls_error *err);

/* dim 0 that all leaves share; -1 and an error if they do not, or one is a scalar. */
int64_t lsi_value_row_count(const ls_value *batch, ls_error *err);

/* A tensor's rows [begin, end), and row i, as tensors over its memory. */
ls_tensor *lsi_tensor_rows(ls_tensor *t, int64_t begin, int64_t end);
ls_tensor *lsi_tensor_row(ls_tensor *t, int64_t i);

/* A sparse leaf: a named tuple "SparseTensor"; and whether a value is one. */
ls_status lsi_sparse_value(ls_tensor *indices, ls_tensor *values, ls_tensor *dense_shape,
                           ls_value **out, ls_error *err);
bool lsi_value_is_sparse(const ls_value *v);

/* What a function or a source of the user's gave, as an element: literals become tensors,
 * lists tuples; `stack`: lists become one tensor. Distributed values are refused. */
ls_status lsi_element_of(ls_value *v, bool stack, ls_value **out, ls_error *err);

/* A batch of no rows: unknown sizes are 0, an unknown rank is one axis. */
ls_status lsi_spec_no_rows(const ls_spec *batch, ls_value **out, ls_error *err);

/* A scalar string tensor over memory that `owner` keeps; NULL: out of memory. */
ls_tensor *lsi_tensor_string(ls_string s, lsi_buffer *owner);

/* ---- function nodes whose user pointer the library owns ---- */

/* What nodes share; the last one to go calls destroy(). */
typedef struct lsi_shared_user {
    atomic_int refs;
    void (*destroy)(struct lsi_shared_user *self);
} lsi_shared_user;

/*
 * flat_map (`flat`) or interleave whose function gets `user` as its pointer. The node
 * takes over the caller's reference, and rebuilding adds one. (interleave.c)
 */
ls_dataset *lsi_dataset_interleave_shared(ls_dataset *d, ls_dataset_fn fn,
                                          lsi_shared_user *user, bool flat,
                                          const ls_interleave_options *opts);

/* ---- names ---- */

/* The string of an element that is one scalar string. */
ls_status lsi_element_file_name(const ls_value *v, ls_string *out, ls_error *err);

/*
 * Rows of a tensor that load(path) reads when the dataset is first iterated; it is kept
 * until the dataset is released. `whole` is its spec, borrowed. (source_memory.c)
 */
typedef ls_status (*lsi_load_fn)(const char *path, ls_value **out, ls_error *err);
ls_dataset *lsi_dataset_slices_later(const char *path, lsi_load_fn load,
                                     const ls_spec *whole);

/* Elements kept in memory as a dataset: a window. NULL: out of memory. The elements are
 * retained; `spec` is borrowed. lsi_dataset_elements() gives them back, or NULL. */
ls_dataset *lsi_dataset_of_elements(ls_value *const *elements, size_t n, ls_spec *spec);
ls_value *const *lsi_dataset_elements(const ls_dataset *d, size_t *n);

/* The file of a `cache` node; NULL: in memory, or no such node. (cache.c) */
const char *lsi_dataset_cache_file(const ls_dataset *d);

/* ---- random (seed.c): TensorFlow's pairs and generator, spec §5.2 ---- */
typedef struct lsi_seeds {
    uint64_t a, b;
} lsi_seeds;
lsi_seeds lsi_seeds_of(const int64_t *op_seed); /* with the thread's global seed */
lsi_seeds lsi_seeds_drawn(const int64_t *op_seed, bool *drawn); /* nobody gave one */

/* What ls_dataset_set_seed() said on this thread: functions of the user that build
 * datasets on other threads are to see it. lsi_global_seed_swap() returns the old one. */
typedef struct lsi_global_seed {
    bool set;
    int64_t seed;
    uint64_t ops; /* built without a seed of their own since */
} lsi_global_seed;
lsi_global_seed lsi_global_seed_get(void);
lsi_global_seed lsi_global_seed_swap(lsi_global_seed s);

/* Random numbers drawn one after the other, as TensorFlow's kernels draw them. */
typedef struct lsi_draws {
    uint64_t key;
    lsi_words counter, block;
    int used;       /* of the block */
    uint64_t draws; /* so far: the state that is saved */
} lsi_draws;
void lsi_draws_init(lsi_draws *g, lsi_seeds s);
uint32_t lsi_draws_next(lsi_draws *g);
void lsi_draws_skip(lsi_draws *g, uint64_t n);

/* A shuffle with a pair given (spec §5.2). */
ls_dataset *lsi_dataset_shuffle_pair(ls_dataset *d, int64_t buffer, lsi_seeds pair,
                                     bool same_each_time);

/* A shuffle whose pair nobody gave, and the same shuffle over other inputs (borrowed)
 * with another pair, so that all workers shuffle alike. */
bool lsi_dataset_drew_seeds(const ls_dataset *d, lsi_seeds *out);
ls_dataset *lsi_dataset_with_seeds(const ls_dataset *d, ls_dataset *const *inputs,
                                   lsi_seeds s);

/* ---- threads of the input (pool.c) ---- */

/*
 * The threads live while somebody uses them: between lsi_input_threads_use() and
 * lsi_input_threads_leave(), which joins them after the last one left.
 */
void lsi_input_threads_use(void);
void lsi_input_threads_leave(void);

/* Runs fn(arg) on one of the input's threads; false: there is none (run it yourself). */
bool lsi_input_threads_submit(void (*fn)(void *arg), void *arg);
int lsi_input_threads_count(void); /* how many there are to be; at least 1 */

/* Takes fn(arg) back, if it has not begun. */
bool lsi_input_threads_cancel(void (*fn)(void *arg), void *arg);
bool lsi_input_threads_backlog(void); /* work is waiting for a thread */
#endif
