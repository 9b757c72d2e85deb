/* What a shuffle holds: a buffer that is filled at its end and drawn from at random. */
#ifndef LSI_SHUFFLE_BUFFER_H
#define LSI_SHUFFLE_BUFFER_H
#include "data/data.h"

typedef enum lsi_shuffle_kind {
    LSI_SHUFFLE_ELEMENTS,
    LSI_SHUFFLE_NUMBERS, /* the input lies in memory: of its elements the numbers */
    LSI_SHUFFLE_STRINGS, /* elements are one string each: slots of a pool */
} lsi_shuffle_kind;

typedef union lsi_shuffle_entry {
    ls_value *element;
    int64_t number;
    ls_string string;
} lsi_shuffle_entry;

typedef struct lsi_shuffle_buffer {
    lsi_string_sink sink; /* first: where strings arrive */
    lsi_shuffle_kind kind;
    lsi_iterator *input; /* borrowed */
    int64_t size;        /* negative: the whole input */
    int64_t taken;       /* of the input, by number */
    ls_device *device;
    lsi_buffer *memory;      /* of `held` */
    lsi_shuffle_entry *held; /* those to draw from are [first, first + live) */
    size_t first, live, room;
    size_t ahead;             /* strings behind those, which later draws will need */
    bool over;                /* the input */
    ls_error late;            /* what came behind `ahead`; code LS_OK: nothing */
    lsi_batch_rows *arriving; /* lead strings to the sink */
    size_t *places; /* of strings being drawn; not on the stack, which is for many */
} lsi_shuffle_buffer;

/* `b` is zeroed. lsi_shuffle_buffer_close() also after a failure. */
ls_status lsi_shuffle_buffer_open(lsi_shuffle_buffer *b, lsi_iterator *input,
                                  int64_t size, ls_error *err);
void lsi_shuffle_buffer_close(lsi_shuffle_buffer *b);

/* Fills it up and draws one: the first takes its place. LS_OUT_OF_RANGE: it is empty. */
ls_status lsi_shuffle_buffer_draw(lsi_shuffle_buffer *b, lsi_draws *g,
                                  lsi_shuffle_entry *out, ls_error *err);

/*
 * Draws up to `want` (at most LSI_SHUFFLE_AT_ONCE), as if one after the other, if it holds
 * strings. Fewer: the next draw tells why.
 */
enum { LSI_SHUFFLE_AT_ONCE = 128 };
size_t lsi_shuffle_buffer_draw_strings(lsi_shuffle_buffer *b, lsi_draws *g, size_t want,
                                       lsi_shuffle_entry *out);

/* What was drawn, which is taken over, as an element or as rows. */
ls_status lsi_shuffle_buffer_element(lsi_shuffle_buffer *b, lsi_shuffle_entry drawn,
                                     ls_value **out, ls_error *err);
ls_status lsi_shuffle_buffer_add(lsi_shuffle_buffer *b, const lsi_shuffle_entry *drawn,
                                 size_t n, lsi_batch_rows *rows, ls_error *err);

void lsi_shuffle_buffer_save(const lsi_shuffle_buffer *b, lsi_state_writer *w);
ls_status lsi_shuffle_buffer_restore(lsi_shuffle_buffer *b, lsi_state_reader *r,
                                     ls_error *err);
#endif
