/*
 * lockstep/dataset.h - datasets: sources and transformations of elements, and iterators.
 *
 * A dataset is built by a chain of builders. Each takes over the reference it is given
 * and returns the next dataset; ls_dataset_retain() it first to keep it. A failure (also
 * NULL: out of memory) is kept in the dataset and returned when it is iterated or
 * distributed. An element is a value: a tensor, or a tuple or dict of elements. The order
 * of elements depends on the seeds and the position alone, not on what runs in parallel,
 * and the position of an iterator can be saved.
 *
 *     ls_dataset *d = ls_dataset_tfrecord("train-*.tfrecord");
 *     d = ls_dataset_map(d, parse, NULL, &spec);
 *     d = ls_dataset_batch(ls_dataset_shuffle(d, 10000, 42), 128);
 *
 * A function of the caller's that returns datasets and cannot make one returns
 * ls_dataset_failed(); the reader of its elements gets that failure.
 *
 * Threads: building, one at a time; an iterator, any; functions of the caller run on
 * threads of the library.
 */
#ifndef LS_DATASET_H
#define LS_DATASET_H

#include "lockstep/context.h"
#include "lockstep/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_dataset ls_dataset;
typedef struct ls_iterator ls_iterator;
typedef struct ls_spec ls_spec; /* the dtypes, shapes and structure of elements */

#define LS_INFINITE (-1) /* cardinalities */
#define LS_UNKNOWN_SIZE (-2)
#define LS_AUTOTUNE (-1)   /* parallelism: chosen and adapted while running */
#define LS_SHARD_HINT (-1) /* shard: set when the dataset is distributed */

/*
 * The largest number of transformations in a chain, including those of datasets that are
 * elements, and the largest depth of a spec. A deeper one is LS_INVALID_ARGUMENT: reading
 * an element would need more than a stack of 8 MiB. To read many datasets one after the
 * other, use a flat_map or an interleave over a dataset of their names, not a chain.
 */
enum { LS_DATASET_MAX_DEPTH = 4096 };

/* ---- specs ---- */

typedef enum ls_spec_kind {
    LS_SPEC_TENSOR,
    LS_SPEC_SPARSE,  /* values, indices [n, rank] and a dense shape */
    LS_SPEC_DATASET, /* a window: an element that is itself a dataset */
    LS_SPEC_TUPLE,
    LS_SPEC_DICT
} ls_spec_kind;

/*
 * Specs. dims[i] -1: the size is unknown; ndim -1: the number of axes is unknown. Items
 * are retained, keys are copied.
 */
LS_API LS_MUST_USE ls_status ls_spec_tensor(ls_dtype dtype, int ndim, const int64_t *dims,
                                            ls_spec **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_spec_sparse(ls_dtype dtype, int ndim, const int64_t *dims,
                                            ls_spec **out, ls_error *err);
LS_API LS_MUST_USE ls_status ls_spec_dataset(ls_spec *element, ls_spec **out,
                                             ls_error *err);
LS_API LS_MUST_USE ls_status ls_spec_tuple(ls_spec *const *items, size_t n, ls_spec **out,
                                           ls_error *err);
LS_API LS_MUST_USE ls_status ls_spec_dict(const char *const *keys, ls_spec *const *items,
                                          size_t n, ls_spec **out, ls_error *err);
LS_API ls_spec *ls_spec_retain(ls_spec *s);
LS_API void ls_spec_release(ls_spec *s); /* NULL is allowed */
LS_API ls_spec_kind ls_spec_kind_of(const ls_spec *s);
LS_API ls_dtype ls_spec_dtype(const ls_spec *s);            /* of a tensor */
LS_API int ls_spec_ndim(const ls_spec *s);                  /* -1: unknown */
LS_API int64_t ls_spec_dim(const ls_spec *s, int axis);     /* -1: unknown */
LS_API size_t ls_spec_size(const ls_spec *s);               /* of a tuple or dict */
LS_API ls_spec *ls_spec_child(const ls_spec *s, size_t i);  /* borrowed; NULL: none */
LS_API const char *ls_spec_key(const ls_spec *s, size_t i); /* in sorted order */
LS_API bool ls_spec_equal(const ls_spec *a, const ls_spec *b);

/* Writes at most `size` bytes with the closing NUL; returns the whole text's length. */
LS_API size_t ls_spec_text(const ls_spec *s, char *buf, size_t size);

/* ---- sources ---- */

/* int64 scalars from `begin` (inclusive) to `end` (exclusive); `step` must not be 0. */
LS_API ls_dataset *ls_dataset_range(int64_t begin, int64_t end, int64_t step);

/* One element; or one element per row of the first axis of the tensors. Retained. */
LS_API ls_dataset *ls_dataset_tensors(ls_value *element);
LS_API ls_dataset *ls_dataset_slices(ls_value *tensors);

/*
 * A dataset that holds a failure, which is returned wherever it is used: for an
 * ls_dataset_fn or ls_input_fn that cannot make one. The second function copies what a
 * call has reported: its code, kind, site and message. LS_OK becomes LS_UNKNOWN, and
 * LS_OUT_OF_RANGE becomes LS_INVALID_ARGUMENT, as it would end the dataset.
 */
LS_API ls_dataset *ls_dataset_failed(ls_status code, const char *fmt, ...)
    LS_PRINTF(2, 3);
LS_API ls_dataset *ls_dataset_failed_with(const ls_error *err);

/* The names of files that match glob patterns; shuffled in each pass unless `ordered`. */
LS_API ls_dataset *ls_dataset_list_files(const char *const *patterns, size_t n,
                                         bool ordered, const int64_t *seed);

/* How files are read. Start from LS_READ_OPTIONS_INIT. */
typedef struct ls_read_options {
    size_t struct_size;
    const char *compression; /* NULL or "": none; "ZLIB", "GZIP" */
    size_t buffer;           /* bytes read at once; 0: choose */
    int parallel;            /* files read at the same time; 0: one after the other */
} ls_read_options;

/* clang-format off */
#define LS_READ_OPTIONS_INIT {sizeof(ls_read_options), NULL, 0, 0}
/* clang-format on */

/*
 * The records of TFRecord files given by a pattern, by names, or by a dataset of names.
 * Elements are strings. With a pattern, compression is detected; else `opts` says it.
 */
LS_API ls_dataset *ls_dataset_tfrecord(const char *pattern);
LS_API ls_dataset *ls_dataset_tfrecord_files(const char *const *names, size_t n,
                                             const ls_read_options *opts);
LS_API ls_dataset *ls_dataset_tfrecord_from(ls_dataset *names,
                                            const ls_read_options *opts);

/* Lines of text without their line ends; and records of a fixed length. */
LS_API ls_dataset *ls_dataset_text_files(const char *const *names, size_t n,
                                         const ls_read_options *opts);
LS_API ls_dataset *ls_dataset_text_from(ls_dataset *names, const ls_read_options *opts);
LS_API ls_dataset *ls_dataset_fixed_files(const char *const *names, size_t n,
                                          size_t record_bytes, size_t header_bytes,
                                          size_t footer_bytes,
                                          const ls_read_options *opts);
LS_API ls_dataset *ls_dataset_fixed_from(ls_dataset *names, size_t record_bytes,
                                         size_t header_bytes, size_t footer_bytes,
                                         const ls_read_options *opts);

/* A column of a CSV file. */
typedef struct ls_csv_column {
    ls_dtype dtype;      /* int32, int64, float32, float64 or string */
    ls_value *otherwise; /* for an empty field: an int, float or string literal, borrowed;
                            NULL: the field is required */
} ls_csv_column;

/* Start from LS_CSV_OPTIONS_INIT. */
typedef struct ls_csv_options {
    size_t struct_size;
    ls_read_options read;
    bool header;       /* the first line of each file is skipped */
    bool plain_quotes; /* quotes are ordinary characters */
    char delimiter;    /* 0: ',' */
    const char *na;    /* a field with this text counts as empty; NULL: "" */
    const int *select; /* the columns to read, strictly increasing; NULL: all */
    size_t nselect;
    const int *exclude; /* the columns to leave out, likewise */
    size_t nexclude;
} ls_csv_options;

/* clang-format off */
#define LS_CSV_OPTIONS_INIT \
    {sizeof(ls_csv_options), LS_READ_OPTIONS_INIT, false, false, 0, NULL, NULL, 0, NULL, 0}
/* clang-format on */
LS_API ls_dataset *ls_dataset_csv_files(const char *const *names, size_t n,
                                        const ls_csv_column *columns, size_t ncolumns,
                                        const ls_csv_options *opts);
LS_API ls_dataset *ls_dataset_csv_from(ls_dataset *names, const ls_csv_column *columns,
                                       size_t ncolumns, const ls_csv_options *opts);

/*
 * Rows of an array in a file of NumPy's format, or of MNIST's IDX format, also
 * compressed by gzip. The header is read by this call, the rest when the dataset is first
 * iterated (an unreadable file may fail only then), and it is kept in memory until the
 * dataset is released.
 */
LS_API ls_dataset *ls_dataset_npy(const char *name);
LS_API ls_dataset *ls_dataset_idx(const char *name);

/* Rows of the arrays of an npz archive, as a dict by their names; read by this call. */
LS_API ls_dataset *ls_dataset_npz(const char *name);

/* An array in a NumPy file, as its header describes it. */
typedef struct ls_array_header {
    char *name; /* in an .npz file, without ".npy"; "" in an .npy file */

    /* "<f4"; "a record" for one of several fields; "no array" for a member of an .npz
     * file that is not an array. */
    char dtype[64];
    char shape[160]; /* "(2, 3)" */
    bool fortran_order;
} ls_array_header;

/*
 * The headers of all arrays of an .npy or .npz file, also of those that no dataset can
 * read; the elements are not read. Release them with ls_array_headers_release().
 */
LS_API LS_MUST_USE ls_status ls_array_headers(const char *name, ls_array_header **out,
                                              size_t *n, ls_error *err);
LS_API void ls_array_headers_release(ls_array_header *headers, size_t n);

/*
 * A source written by the caller, which is copied: `open` makes a state per iterator,
 * `next` returns elements until LS_OUT_OF_RANGE (the end), `close` frees the state.
 */
typedef struct ls_source {
    size_t struct_size;
    ls_status (*open)(void *user, void **state, ls_error *err);
    ls_status (*next)(void *state, ls_value **out, ls_error *err);
    void (*close)(void *state);
    void *user;
} ls_source;
LS_API ls_dataset *ls_dataset_source(const ls_source *source, ls_spec *spec);

/* ---- transformations ---- */

/*
 * Returns a new element for `element`; both belong to the context. NULL after a failure.
 * The numbers of random operations depend on the seed, the pass, the position of the
 * function in the pipeline and the number of the element: not on what runs in parallel or
 * ahead, and not on where an iterator was restored. The next pass (a new iterator, or a
 * repeat behind the function) draws other numbers.
 */
typedef ls_value *(*ls_map_fn)(ls_context *c, ls_value *element, void *user);

/* Start from LS_MAP_OPTIONS_INIT. */
typedef struct ls_map_options {
    size_t struct_size;
    ls_spec *spec;      /* of the results; NULL: taken from the first result */
    int parallel;       /* calls at the same time; 0: one; LS_AUTOTUNE */
    bool unordered;     /* results may come in another order */
    bool stateful;      /* the function keeps state between calls */
    const char *reader; /* see ls_interleave_options; for functions that open files */
} ls_map_options;

/* clang-format off */
#define LS_MAP_OPTIONS_INIT {sizeof(ls_map_options), NULL, 0, false, false, NULL}
/* clang-format on */
LS_API ls_dataset *ls_dataset_map(ls_dataset *d, ls_map_fn fn, void *user,
                                  const ls_map_options *opts);

/* Keeps the elements for which `predicate` returns a bool scalar that is true. */
LS_API ls_dataset *ls_dataset_filter(ls_dataset *d, ls_map_fn predicate, void *user);

/*
 * Returns a new dataset for `element`; the library takes over its reference. A function
 * that cannot make one returns ls_dataset_failed(); NULL counts as out of memory.
 */
typedef ls_dataset *(*ls_dataset_fn)(ls_value *element, void *user);

/* Start from LS_INTERLEAVE_OPTIONS_INIT. */
typedef struct ls_interleave_options {
    size_t struct_size;
    ls_spec *spec; /* of the inner elements; NULL: taken from one call of the function */
    int64_t cycle; /* how many inner datasets are read in turn; 0: choose */
    int64_t block; /* elements read from one before the next; 0: 1 */
    int parallel;  /* 0: none; LS_AUTOTUNE */
    bool unordered;
    const char *reader; /* the files that the function opens: "tfrecord", "textline",
                           "fixed"; NULL: none. Sharding by files depends on it. */
} ls_interleave_options;

/* clang-format off */
#define LS_INTERLEAVE_OPTIONS_INIT \
    {sizeof(ls_interleave_options), NULL, 0, 0, 0, false, NULL}
/* clang-format on */
LS_API ls_dataset *ls_dataset_flat_map(ls_dataset *d, ls_dataset_fn fn, void *user,
                                       const ls_interleave_options *opts);
LS_API ls_dataset *ls_dataset_interleave(ls_dataset *d, ls_dataset_fn fn, void *user,
                                         const ls_interleave_options *opts);

/* Batches of `size` elements; the last one may be smaller, or is left out (exact). */
LS_API ls_dataset *ls_dataset_batch(ls_dataset *d, int64_t size);
LS_API ls_dataset *ls_dataset_batch_exact(ls_dataset *d, int64_t size);

/*
 * Batches whose elements are padded to one shape. `shapes`: one tensor spec per
 * component, NULL: the largest of each batch; `padding`: one scalar per component, NULL:
 * zeros.
 */
LS_API ls_dataset *ls_dataset_padded_batch(ls_dataset *d, int64_t size,
                                           ls_spec *const *shapes,
                                           ls_tensor *const *padding, size_t n,
                                           bool drop_remainder);

/* One element per row of each batch. */
LS_API ls_dataset *ls_dataset_unbatch(ls_dataset *d);

/* The rows of all batches in batches of sizes[0] ... sizes[n-1], then sizes[0] again ... */
LS_API ls_dataset *ls_dataset_rebatch(ls_dataset *d, const int64_t *sizes, size_t n,
                                      bool drop_remainder);

/* Elements that are datasets of `size` elements each, as tf.data.Dataset.window(). */
LS_API ls_dataset *ls_dataset_window(ls_dataset *d, int64_t size, int64_t shift,
                                     int64_t stride, bool drop_remainder);

/*
 * Shuffles within a buffer of `buffer` elements; -2: the whole input. Unless
 * `same_each_time`, every pass has another order: as in TensorFlow, the seed gives a
 * sequence of orders, and every pass of any iterator of the dataset takes the next one.
 * An iterator that reads ahead (prefetch, parallel) and is released before its end may
 * have started a further pass, so the order that the next iterator gets depends on how
 * far it had read. Read such an iterator to its end, or restore one.
 */
LS_API ls_dataset *ls_dataset_shuffle(ls_dataset *d, int64_t buffer, int64_t seed);
LS_API ls_dataset *ls_dataset_shuffle_with(ls_dataset *d, int64_t buffer,
                                           const int64_t *seed, bool same_each_time);

/* `count` negative: endlessly. */
LS_API ls_dataset *ls_dataset_repeat(ls_dataset *d, int64_t count);
LS_API ls_dataset *ls_dataset_take(ls_dataset *d, int64_t count); /* -1: all */
LS_API ls_dataset *ls_dataset_skip(ls_dataset *d, int64_t count); /* -1: all */
LS_API ls_dataset *ls_dataset_shard(ls_dataset *d, int64_t shards, int64_t index);
LS_API ls_dataset *ls_dataset_prefetch(ls_dataset *d, int64_t buffer); /* LS_AUTOTUNE */
LS_API ls_dataset *ls_dataset_cache(ls_dataset *d, const char *file);  /* NULL: memory */

/* Tuples of one element of each dataset; takes over all `n` references. */
LS_API ls_dataset *ls_dataset_zip(ls_dataset **ds, size_t n);

/*
 * The same with dicts: the element of ds[i] is under keys[i]. Both kinds of zip can be
 * nested. Keys are copied; no key may occur twice.
 */
LS_API ls_dataset *ls_dataset_zip_dict(const char *const *keys, ls_dataset **ds,
                                       size_t n);
LS_API ls_dataset *ls_dataset_concatenate(ls_dataset *d, ls_dataset *next);
LS_API ls_dataset *ls_dataset_enumerate(ls_dataset *d, int64_t start);
LS_API ls_dataset *ls_dataset_unique(ls_dataset *d);

/*
 * Elements of several datasets: `choices` holds int64 scalars, the index of the dataset
 * that gives the next element; or the index is drawn at random by `weights` (NULL: all
 * equal). `stop_on_empty`: the end of one dataset ends the result. All are taken over.
 */
LS_API ls_dataset *ls_dataset_choose(ls_dataset **ds, size_t n, ls_dataset *choices,
                                     bool stop_on_empty);
LS_API ls_dataset *ls_dataset_sample(ls_dataset **ds, size_t n, const double *weights,
                                     const int64_t *seed, bool stop_on_empty);
LS_API ls_dataset *ls_dataset_assert_cardinality(ls_dataset *d, int64_t cardinality);
LS_API ls_dataset *ls_dataset_ignore_errors(ls_dataset *d);

/* How ls_strategy_distribute() divides a dataset among workers: AutoShardPolicy. */
typedef enum ls_auto_shard {
    LS_SHARD_AUTO = 0,
    LS_SHARD_OFF = -1,
    LS_SHARD_FILE = 1,
    LS_SHARD_DATA = 2,
    LS_SHARD_BY_HINT = 3
} ls_auto_shard;

/* What ls_iterator_save() does if a function of the pipeline keeps state. */
typedef enum ls_external_state {
    LS_STATE_WARN = 0,
    LS_STATE_IGNORE,
    LS_STATE_FAIL
} ls_external_state;

/* Options of a whole pipeline. Start from LS_DATA_OPTIONS_INIT. */
typedef struct ls_data_options {
    size_t struct_size;
    ls_auto_shard auto_shard;
    ls_external_state external_state;
    bool unordered; /* parallel calls may return elements in another order */
    int threads;    /* of the pipeline; 0: choose */
} ls_data_options;

/* clang-format off */
#define LS_DATA_OPTIONS_INIT \
    {sizeof(ls_data_options), LS_SHARD_AUTO, LS_STATE_FAIL, false, 0}
/* clang-format on */
LS_API ls_dataset *ls_dataset_with_options(ls_dataset *d, const ls_data_options *opts);

/* ---- properties ---- */

LS_API ls_dataset *ls_dataset_retain(ls_dataset *d);
LS_API void ls_dataset_release(ls_dataset *d); /* NULL is allowed */

/* The failure that the dataset holds, or LS_OK. */
LS_API LS_MUST_USE ls_status ls_dataset_status(const ls_dataset *d, ls_error *err);

/* The number of elements, LS_INFINITE or LS_UNKNOWN_SIZE. */
LS_API int64_t ls_dataset_cardinality(const ls_dataset *d);
LS_API ls_spec *ls_dataset_spec(const ls_dataset *d); /* borrowed; NULL: it has failed */
LS_API const char *ls_dataset_kind(const ls_dataset *d); /* "batch" */

/*
 * Sets the global seed of the datasets that this thread builds from now on; NULL: none.
 * Random operations in the functions of a pipeline use the seed of its last dataset, or
 * the runtime's if none was set.
 */
LS_API void ls_dataset_set_seed(const int64_t *seed);

/* ---- iterators ---- */

/* Makes an iterator at the beginning; `d` is retained. */
LS_API LS_MUST_USE ls_status ls_dataset_iterate(ls_dataset *d, ls_iterator **out,
                                                ls_error *err);

/*
 * The same in a runtime (NULL: the default one), which is retained: elements are on its
 * CPU:0, functions run in contexts there, its threads read ahead, its seed is used. A
 * dataset is only a description: several runtimes may iterate it at the same time.
 */
LS_API LS_MUST_USE ls_status ls_dataset_iterate_in(ls_dataset *d, ls_runtime *rt,
                                                   ls_iterator **out, ls_error *err);

/*
 * The next element, the caller's to release. Blocks until it is ready. LS_OUT_OF_RANGE:
 * the end, also in every later call. After another failure the next call returns the
 * element after the one that failed.
 */
LS_API LS_MUST_USE ls_status ls_iterator_next(ls_iterator *it, ls_value **out,
                                              ls_error *err);

/*
 * Save the position as a value, and set an iterator of an equal dataset to it.
 * LS_FAILED_PRECONDITION: the pipeline is another one, or has state that is not saved.
 */
LS_API LS_MUST_USE ls_status ls_iterator_save(ls_iterator *it, ls_value **out,
                                              ls_error *err);
LS_API LS_MUST_USE ls_status ls_iterator_restore(ls_iterator *it, ls_value *state,
                                                 ls_error *err);
LS_API void ls_iterator_release(ls_iterator *it); /* NULL is allowed */

/* An element that is itself a dataset (a window): NULL if `v` is none. Borrowed. */
LS_API ls_dataset *ls_value_as_dataset(const ls_value *v);

/* A dataset as a value, for a map function that returns datasets; `d` is retained. */
LS_API LS_MUST_USE ls_status ls_value_dataset(ls_dataset *d, ls_value **out,
                                              ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_DATASET_H */
