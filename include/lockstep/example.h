/*
 * lockstep/example.h - tensors out of serialized tf.train.Examples.
 *
 * A feature says what is expected under a name. The result of parsing is a dict by those
 * names: a dense tensor for a fixed feature or a sequence, for a var feature the named
 * tuple SparseTensor(indices, values, dense_shape). A record that does not fit is
 * LS_INVALID_ARGUMENT, and the message names the feature.
 *
 *     const ls_feature features[] = {
 *         {.name = "image", .dtype = LS_U8, .shape = LS_SHAPE(28, 28)},
 *         {.name = "label", .dtype = LS_I64},
 *     };
 *     d = ls_dataset_parse_example(ls_dataset_batch(d, 128), features, 2, 0);
 *
 * Threads: any, as far as the context allows.
 */
#ifndef LS_EXAMPLE_H
#define LS_EXAMPLE_H

#include "lockstep/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ls_feature_kind {
    LS_FEATURE_FIXED = 0, /* exactly as many values as `shape` has elements */
    LS_FEATURE_VAR,       /* any number of values; sparse */
    LS_FEATURE_SEQUENCE   /* any number of rows of `shape`; padded to the longest */
} ls_feature_kind;

typedef struct ls_feature {
    const char *name;
    ls_feature_kind kind;
    ls_dtype dtype; /* LS_I64, LS_F32, LS_STRING; fixed also LS_U8: one string's bytes */
    ls_shape shape; /* all zero: a scalar */
    ls_tensor *otherwise; /* when it is absent; fixed: as many elements as the shape,
                             NULL: it is required; sequence: the scalar to pad with,
                             NULL: zero or "" */
} ls_feature;

/* What parsing gives: of batches of `rows` records (-1: unknown), or of single ones. */
LS_API LS_MUST_USE ls_status ls_example_spec(const ls_feature *features, size_t n,
                                             bool batched, int64_t rows, ls_spec **out,
                                             ls_error *err);

/* For map functions: one record, a scalar string; many, a vector of strings. The value
 * belongs to the context; NULL after a failure. */
LS_API ls_value *ls_parse_single_example(ls_context *c, ls_tensor *record,
                                         const ls_feature *features, size_t n);
LS_API ls_value *ls_parse_example(ls_context *c, ls_tensor *records,
                                  const ls_feature *features, size_t n);

/* One required fixed feature of a record. */
LS_API ls_tensor *ls_example_feature(ls_context *c, ls_tensor *record, const char *name,
                                     ls_dtype dtype, ls_shape shape);

/* Batches of records parsed, by `parallel` threads (0: one; LS_AUTOTUNE: choose). The
 * features are copied. */
LS_API ls_dataset *ls_dataset_parse_example(ls_dataset *d, const ls_feature *features,
                                            size_t n, int parallel);

#ifdef __cplusplus
}
#endif

#ifndef LS_NO_PLACES
/* clang-format off */
#define ls_parse_single_example(c, ...) (ls_parse_single_example)(LS_HERE(c), __VA_ARGS__)
#define ls_parse_example(c, ...) (ls_parse_example)(LS_HERE(c), __VA_ARGS__)
#define ls_example_feature(c, ...) LS_PLACED(c, (ls_example_feature)((c), __VA_ARGS__))
/* clang-format on */
#endif
#endif /* LS_EXAMPLE_H */
