/* The buffer of a shuffle: filled at its end, drawn from at random. */
#ifndef LSI_SHUFFLE_BUFFER_H
#define LSI_SHUFFLE_BUFFER_H
#include "data/data.h"

typedef enum lsi_shuffle_kind {
    LSI_SHUFFLE_ELEMENTS,
    LSI_SHUFFLE_NUMBERS, /* the input is in memory: indices of its elements */
    LSI_SHUFFLE_STRINGS, /* elements are one string each, in slots of a pool */
} lsi_shuffle_kind;

typedef union lsi_shuffle_entry {
    ls_value *element;
    int64_t number;
    ls_string string;
} lsi_shuffle_entry;

typedef struct lsi_shuffle_buffer {
    lsi_string_sink sink; /* first: receives the strings */
    lsi_shuffle_kind kind;
    lsi_iterator *input; /* borrowed */
    int64_t size;        /* negative: the whole input */
    int64_t taken;       /* elements of the input so far, for LSI_SHUFFLE_NUMBERS */
    ls_device *device;
    lsi_buffer *memory;      /* of `held` */
    lsi_shuffle_entry *held; /* draws are from [first, first + live) */
    size_t first, live, room;
    size_t ahead;             /* strings after those, read for later draws */
    bool over;                /* the input has ended */
    ls_error late;            /* the failure after those; code LS_OK: none */
    lsi_batch_rows *arriving; /* passes strings to the sink */
    size_t *places; /* of strings being drawn; nested iterators share the stack */
} lsi_shuffle_buffer;

/* `b` must be zeroed. lsi_shuffle_buffer_close() is needed also after a failure. */
ls_status lsi_shuffle_buffer_open(lsi_shuffle_buffer *b, lsi_iterator *input,
                                  int64_t size, ls_error *err);
void lsi_shuffle_buffer_close(lsi_shuffle_buffer *b);

/* Fills the buffer and draws an entry; the first takes its place. LS_OUT_OF_RANGE: the
 * buffer is empty. */
ls_status lsi_shuffle_buffer_draw(lsi_shuffle_buffer *b, lsi_draws *g,
                                  lsi_shuffle_entry *out, ls_error *err);

/*
 * Draws up to `want` strings (at most LSI_SHUFFLE_AT_ONCE) with the same result as single
 * draws. If it returns fewer, the next draw returns the reason.
 */
enum { LSI_SHUFFLE_AT_ONCE = 128 };
size_t lsi_shuffle_buffer_draw_strings(lsi_shuffle_buffer *b, lsi_draws *g, size_t want,
                                       lsi_shuffle_entry *out);

/* Drawn entries, which are taken over, as an element or as rows. */
ls_status lsi_shuffle_buffer_element(lsi_shuffle_buffer *b, lsi_shuffle_entry drawn,
                                     ls_value **out, ls_error *err);
ls_status lsi_shuffle_buffer_add(lsi_shuffle_buffer *b, const lsi_shuffle_entry *drawn,
                                 size_t n, lsi_batch_rows *rows, ls_error *err);

void lsi_shuffle_buffer_save(const lsi_shuffle_buffer *b, lsi_state_writer *w);
ls_status lsi_shuffle_buffer_restore(lsi_shuffle_buffer *b, lsi_state_reader *r,
                                     ls_error *err);
#endif
