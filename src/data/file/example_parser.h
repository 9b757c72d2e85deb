/* Parsing tf.train.Examples into tensors; values are written to their final place. */
#ifndef LSI_EXAMPLE_PARSER_H
#define LSI_EXAMPLE_PARSER_H
#include "data/data.h"
#include "data/file/example_wire.h"

#include "lockstep/example.h"

typedef struct lsi_example_parser {
    const ls_feature *features; /* borrowed */
    size_t n;
    lsi_wanted_feature *wanted; /* sorted by name */
    int64_t *counts;            /* elements of each shape */
    bool flat;                  /* every feature has a fixed size */
} lsi_example_parser;

/* Checks the features. On failure nothing is held. */
ls_status lsi_example_parser_init(lsi_example_parser *p, const ls_feature *features,
                                  size_t n, ls_error *err);
void lsi_example_parser_clear(lsi_example_parser *p);

ls_status lsi_example_parser_spec(const lsi_example_parser *p, bool batched, int64_t rows,
                                  ls_spec **out, ls_error *err);

/* Where a batch is parsed: the device of the result, and who helps. */
typedef struct lsi_parse_plan {
    ls_device *device;
    lsi_input_threads *threads; /* NULL: none */
    int parallel;               /* at most so many work on a batch, with the caller */
} lsi_parse_plan;

/*
 * Parses a vector of records, or one (`batched` false). Strings of the result point into
 * `records`, which is retained.
 */
ls_status lsi_example_parser_run(const lsi_example_parser *p, ls_tensor *records,
                                 bool batched, const lsi_parse_plan *at, ls_value **out,
                                 ls_error *err);
#endif
