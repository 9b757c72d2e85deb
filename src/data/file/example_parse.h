/* A batch of Examples into tensors: every value is written where it stays. */
#ifndef LSI_EXAMPLE_PARSE_H
#define LSI_EXAMPLE_PARSE_H
#include "data/data.h"
#include "data/file/example_wire.h"

#include "lockstep/example.h"

typedef struct lsi_parser {
    const ls_feature *features; /* borrowed */
    size_t n;
    lsi_wanted *wanted; /* sorted by name */
    int64_t *counts;    /* elements of each shape */
    bool flat;          /* every feature is fixed */
} lsi_parser;

/* Checks the features. On failure nothing is held. */
ls_status lsi_parser_init(lsi_parser *p, const ls_feature *features, size_t n,
                          ls_error *err);
void lsi_parser_clear(lsi_parser *p);

ls_status lsi_parser_spec(const lsi_parser *p, bool batched, int64_t rows, ls_spec **out,
                          ls_error *err);

/*
 * Parses a vector of records, or one (`batched` false). Strings of the result lie in
 * `records`, which they retain. Up to `parallel` threads; for more than one the caller
 * uses the input's (lsi_input_use).
 */
ls_status lsi_parser_run(const lsi_parser *p, ls_tensor *records, bool batched,
                         int parallel, ls_value **out, ls_error *err);
#endif
