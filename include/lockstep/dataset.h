/*
 * lockstep/dataset.h - where batches come from.
 *
 * A dataset is put together by builders. Each takes over the reference it is given and
 * returns the next dataset; keep one with ls_dataset_retain() first. A failure (also
 * NULL: out of memory) waits inside the dataset until it is iterated or distributed. An
 * element is a value: a tensor, or a tuple or dict of elements. The order of elements is
 * a function of the seeds and the position, whatever runs in parallel, and an iterator's
 * position can be saved.
 *
 *     ls_dataset *d = ls_dataset_tfrecord("train-*.tfrecord");
 *     d = ls_dataset_map(d, parse, NULL, &spec);
 *     d = ls_dataset_batch(ls_dataset_shuffle(d, 10000, 42), 128);
 *
 * A function of yours that makes datasets and cannot make one returns
 * ls_dataset_failed(), and whoever asks for its elements is told why.
 *
 * Threads: building, one at a time; an iterator, any; functions of the user run on
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
typedef struct ls_spec ls_spec; /* what elements look like */

#define LS_INFINITE (-1) /* cardinalities */
#define LS_UNKNOWN_SIZE (-2)
#define LS_AUTOTUNE (-1)   /* parallelism: choose and adapt */
#define LS_SHARD_HINT (-1) /* shard: filled in when the dataset is distributed */

/*
 * How many operators may stand above each other, datasets that are made of elements
 * included, and how deep a spec may be nested. A deeper one is LS_INVALID_ARGUMENT:
 * asking it for an element would need more than a stack of 8 MiB. Many datasets one after
 * the other are a flat_map or an interleave over a dataset of their names, not a chain.
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

/* A tensor of `ndim` axes; dims -1 is unknown, ndim -1: the rank is. */
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
LS_API size_t ls_spec_text(const ls_spec *s, char *buf, size_t size);

/* ---- sources ---- */

LS_API ls_dataset *ls_dataset_range(int64_t begin, int64_t end, int64_t step);

/* One element; and one element a row of the first axis of every tensor. Retained. */
LS_API ls_dataset *ls_dataset_tensors(ls_value *element);
LS_API ls_dataset *ls_dataset_slices(ls_value *tensors);

/*
 * A dataset that is nothing but a failure, told wherever it is used: what an
 * ls_dataset_fn or ls_input_fn returns that cannot make one. The second takes over what a
 * call has reported: its code, kind, place and message. LS_OK becomes LS_UNKNOWN, and
 * LS_OUT_OF_RANGE LS_INVALID_ARGUMENT: a function cannot end a dataset.
 */
LS_API ls_dataset *ls_dataset_failed(ls_status code, const char *fmt, ...)
    LS_PRINTF(2, 3);
LS_API ls_dataset *ls_dataset_failed_with(const ls_error *err);

/* Files by glob patterns, sorted; shuffled anew each time unless `ordered`. */
LS_API ls_dataset *ls_dataset_list_files(const char *const *patterns, size_t n,
                                         bool ordered, const int64_t *seed);

/* How files are read. Start from LS_READ_OPTIONS_INIT. */
typedef struct ls_read_options {
    size_t struct_size;
    const char *compression; /* NULL or "": none; "ZLIB", "GZIP" */
    size_t buffer;           /* bytes read at once; 0: choose */
    int parallel;            /* files read at once, in turn; 0: one after the other */
} ls_read_options;

/* clang-format off */
#define LS_READ_OPTIONS_INIT {sizeof(ls_read_options), NULL, 0, 0}
/* clang-format on */

/*
 * TFRecord files by a pattern; by names; by a dataset of names. Elements are strings. By
 * a pattern, compressed files are recognised; otherwise the options tell.
 */
LS_API ls_dataset *ls_dataset_tfrecord(const char *pattern);
LS_API ls_dataset *ls_dataset_tfrecord_files(const char *const *names, size_t n,
                                             const ls_read_options *opts);
LS_API ls_dataset *ls_dataset_tfrecord_from(ls_dataset *names,
                                            const ls_read_options *opts);

/* Lines of text without their ends; records of a fixed length. */
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

/* CSV: a column is int32, int64, float32, float64 or string; NULL default: required. */
typedef struct ls_csv_column {
    ls_dtype dtype;
    ls_value *otherwise; /* int, float or string literal; borrowed */
} ls_csv_column;

/* Start from LS_CSV_OPTIONS_INIT. */
typedef struct ls_csv_options {
    size_t struct_size;
    ls_read_options read;
    bool header;
    bool plain_quotes; /* quotes are ordinary characters */
    char delimiter;    /* 0: ',' */
    const char *na;    /* also means "absent"; NULL: "" */
    const int *select; /* columns to take, or to leave out, strictly increasing */
    size_t nselect;
    const int *exclude;
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
 * Rows of an array: NumPy's file, and MNIST's IDX, also gzip'd. The header is read now,
 * the rest when the dataset is first iterated, and it is kept until the dataset is
 * released: a file that cannot be read to its end may be told only then.
 */
LS_API ls_dataset *ls_dataset_npy(const char *name);
LS_API ls_dataset *ls_dataset_idx(const char *name);

/* Rows of the dict of arrays that NumPy's archive is; it is read now, as a whole. */
LS_API ls_dataset *ls_dataset_npz(const char *name);

/* An array in a file of NumPy's, as its header describes it. */
typedef struct ls_array_header {
    char *name; /* in an .npz file, without ".npy"; "" in an .npy file */
    char
        dtype[64]; /* "<f4"; "a record" for one of several fields; "no array" for a member
                       of an .npz file that is none */
    char shape[160]; /* "(2, 3)" */
    bool fortran_order;
} ls_array_header;

/* The headers of all arrays of an .npy or .npz file, also of those that no dataset can read;
 * the elements are not read. Release them with ls_array_headers_release(). */
LS_API LS_MUST_USE ls_status ls_array_headers(const char *name, ls_array_header **out,
                                              size_t *n, ls_error *err);
LS_API void ls_array_headers_release(ls_array_header *headers, size_t n);

/* A source of the user's: one state an iterator; LS_OUT_OF_RANGE from `next`: the end. */
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
 * Makes another element of one; both belong to the context. NULL after a failure. Random
 * operations draw by the seed, the pass, the place of the function in the pipeline and
 * the number of the element: the same for every element whatever runs in parallel or
 * ahead and wherever the iterator was restored, others in the next pass (an iterator made
 * anew, or a repeat behind the function).
 */
typedef ls_value *(*ls_map_fn)(ls_context *c, ls_value *element, void *user);

/* A map with what it is known to do. Start from LS_MAP_OPTIONS_INIT. */
typedef struct ls_map_options {
    size_t struct_size;
    ls_spec *spec;      /* of what comes out; NULL: found out by the first element */
    int parallel;       /* calls at once; 0: one; LS_AUTOTUNE */
    bool unordered;     /* elements may overtake each other */
    bool stateful;      /* the function keeps something between calls */
    const char *reader; /* as of ls_interleave_options, if it makes datasets of files */
} ls_map_options;

/* clang-format off */
#define LS_MAP_OPTIONS_INIT {sizeof(ls_map_options), NULL, 0, false, false, NULL}
/* clang-format on */
LS_API ls_dataset *ls_dataset_map(ls_dataset *d, ls_map_fn fn, void *user,
                                  const ls_map_options *opts);

/* Keeps elements for which the function gives a true scalar. */
LS_API ls_dataset *ls_dataset_filter(ls_dataset *d, ls_map_fn predicate, void *user);

/* A dataset of an element, yours to make; its reference goes to the library. Where there
 * is none, ls_dataset_failed() says why; NULL: out of memory. */
typedef ls_dataset *(*ls_dataset_fn)(ls_value *element, void *user);

/* Start from LS_INTERLEAVE_OPTIONS_INIT. */
typedef struct ls_interleave_options {
    size_t struct_size;
    ls_spec *spec; /* of inner elements; NULL: asked of the function once */
    int64_t cycle; /* inputs visited in turn; 0: choose */
    int64_t block; /* elements a visit; 0: 1 */
    int parallel;  /* 0: none; LS_AUTOTUNE */
    bool unordered;
    const char *reader; /* what the function opens: "tfrecord", "textline", "fixed";
                           NULL: no files. Sharding by files goes by it. */
} ls_interleave_options;

/* clang-format off */
#define LS_INTERLEAVE_OPTIONS_INIT \
    {sizeof(ls_interleave_options), NULL, 0, 0, 0, false, NULL}
/* clang-format on */
LS_API ls_dataset *ls_dataset_flat_map(ls_dataset *d, ls_dataset_fn fn, void *user,
                                       const ls_interleave_options *opts);
LS_API ls_dataset *ls_dataset_interleave(ls_dataset *d, ls_dataset_fn fn, void *user,
                                         const ls_interleave_options *opts);

LS_API ls_dataset *ls_dataset_batch(ls_dataset *d,
                                    int64_t size); /* the last may be small */
LS_API ls_dataset *ls_dataset_batch_exact(ls_dataset *d, int64_t size);

/* `shapes`: one tensor spec a component, NULL: the longest of each batch; `padding`: one
 * scalar a component, NULL: zeros. */
LS_API ls_dataset *ls_dataset_padded_batch(ls_dataset *d, int64_t size,
                                           ls_spec *const *shapes,
                                           ls_tensor *const *padding, size_t n,
                                           bool drop_remainder);
LS_API ls_dataset *ls_dataset_unbatch(ls_dataset *d);
LS_API ls_dataset *ls_dataset_rebatch(ls_dataset *d, const int64_t *sizes, size_t n,
                                      bool drop_remainder);
LS_API ls_dataset *ls_dataset_window(ls_dataset *d, int64_t size, int64_t shift,
                                     int64_t stride, bool drop_remainder);

/*
 * `buffer` -2: the whole input. Unless `same_each_time`, every pass over it has an order
 * of its own, the next of those that the seed gives: as in TensorFlow all iterators of
 * the dataset draw from one row of orders. One that reads ahead (prefetch, parallel) and
 * is left before its end may have begun a further pass, so which order the next iterator
 * gets depends on how far it was. Read such an iterator to its end, or restore one.
 */
LS_API ls_dataset *ls_dataset_shuffle(ls_dataset *d, int64_t buffer, int64_t seed);
LS_API ls_dataset *ls_dataset_shuffle_with(ls_dataset *d, int64_t buffer,
                                           const int64_t *seed, bool same_each_time);
LS_API ls_dataset *ls_dataset_repeat(ls_dataset *d,
                                     int64_t count);              /* negative: for ever */
LS_API ls_dataset *ls_dataset_take(ls_dataset *d, int64_t count); /* -1: all */
LS_API ls_dataset *ls_dataset_skip(ls_dataset *d, int64_t count); /* -1: all */
LS_API ls_dataset *ls_dataset_shard(ls_dataset *d, int64_t shards, int64_t index);
LS_API ls_dataset *ls_dataset_prefetch(ls_dataset *d, int64_t buffer); /* LS_AUTOTUNE */
LS_API ls_dataset *ls_dataset_cache(ls_dataset *d, const char *file);  /* NULL: memory */
LS_API ls_dataset *ls_dataset_zip(ls_dataset **ds, size_t n); /* takes all of them over */

/* The same as a dict: element i of every dataset under its key; a zip of both kinds can
 * be part of another one. Keys are copied; each stands there once. */
LS_API ls_dataset *ls_dataset_zip_dict(const char *const *keys, ls_dataset **ds,
                                       size_t n);
LS_API ls_dataset *ls_dataset_concatenate(ls_dataset *d, ls_dataset *next);
LS_API ls_dataset *ls_dataset_enumerate(ls_dataset *d, int64_t start);
LS_API ls_dataset *ls_dataset_unique(ls_dataset *d);
LS_API ls_dataset *ls_dataset_choose(ls_dataset **ds, size_t n, ls_dataset *choices,
                                     bool stop_on_empty);
LS_API ls_dataset *ls_dataset_sample(ls_dataset **ds, size_t n, const double *weights,
                                     const int64_t *seed, bool stop_on_empty);
LS_API ls_dataset *ls_dataset_assert_cardinality(ls_dataset *d, int64_t cardinality);
LS_API ls_dataset *ls_dataset_ignore_errors(ls_dataset *d);

/* Options that travel with the dataset. Start from LS_DATA_OPTIONS_INIT. */
typedef enum ls_auto_shard {
    LS_SHARD_AUTO = 0,
    LS_SHARD_OFF = -1,
    LS_SHARD_FILE = 1,
    LS_SHARD_DATA = 2,
    LS_SHARD_BY_HINT = 3
} ls_auto_shard;

typedef enum ls_external_state {
    LS_STATE_WARN = 0,
    LS_STATE_IGNORE,
    LS_STATE_FAIL
} ls_external_state;

typedef struct ls_data_options {
    size_t struct_size;
    ls_auto_shard auto_shard;
    ls_external_state external_state;
    bool unordered; /* elements may overtake each other where calls are parallel */
    int threads;    /* of the pipeline's own; 0: choose */
} ls_data_options;

/* clang-format off */
#define LS_DATA_OPTIONS_INIT \
    {sizeof(ls_data_options), LS_SHARD_AUTO, LS_STATE_FAIL, false, 0}
/* clang-format on */
LS_API ls_dataset *ls_dataset_with_options(ls_dataset *d, const ls_data_options *opts);

/* ---- asking ---- */

LS_API ls_dataset *ls_dataset_retain(ls_dataset *d);
LS_API void ls_dataset_release(ls_dataset *d); /* NULL is allowed */
LS_API LS_MUST_USE ls_status ls_dataset_status(const ls_dataset *d, ls_error *err);
LS_API int64_t ls_dataset_cardinality(const ls_dataset *d);
LS_API ls_spec *ls_dataset_spec(const ls_dataset *d); /* borrowed; NULL: it has failed */
LS_API const char *ls_dataset_kind(const ls_dataset *d); /* "batch" */

/*
 * The global seed of datasets built from here on by this thread; NULL: none. Random
 * operations in the functions of a pipeline go by the seed of its last dataset; where
 * none was set, by the runtime's.
 */
LS_API void ls_dataset_set_seed(const int64_t *seed);

/* ---- iterating ---- */

LS_API LS_MUST_USE ls_status ls_dataset_iterate(ls_dataset *d, ls_iterator **out,
                                                ls_error *err);

/* LS_OUT_OF_RANGE: the end, and again after it. After another failure the next call
 * goes on with the next element. */
LS_API LS_MUST_USE ls_status ls_iterator_next(ls_iterator *it, ls_value **out,
                                              ls_error *err);

/* The position as a value that can be kept, and an iterator of an equal dataset put to
 * it. LS_FAILED_PRECONDITION: the pipeline is another one, or keeps state outside. */
LS_API LS_MUST_USE ls_status ls_iterator_save(ls_iterator *it, ls_value **out,
                                              ls_error *err);
LS_API LS_MUST_USE ls_status ls_iterator_restore(ls_iterator *it, ls_value *state,
                                                 ls_error *err);
LS_API void ls_iterator_release(ls_iterator *it); /* NULL is allowed */

/* An element that is itself a dataset (a window): NULL if `v` is none. Borrowed. */
LS_API ls_dataset *ls_value_as_dataset(const ls_value *v);

/* A dataset as an element, retained: what a map function gives that opens files. */
LS_API LS_MUST_USE ls_status ls_value_dataset(ls_dataset *d, ls_value **out,
                                              ls_error *err);

#ifdef __cplusplus
}
#endif
#endif /* LS_DATASET_H */
