/* What a shuffle holds: a buffer that is filled at its end and drawn from at random. */
#ifndef LSI_SHUFFLE_H
#define LSI_SHUFFLE_H
#include "data/data.h"

typedef enum lsi_held_kind {
    LSI_HELD_ELEMENTS,
    LSI_HELD_NUMBERS, /* the input lies in memory: of its elements the numbers */
    LSI_HELD_STRINGS, /* elements are one string each: slots of a store */
} lsi_held_kind;

typedef union lsi_held {
    ls_value *element;
    int64_t number;
    ls_string string;
} lsi_held;

typedef struct lsi_held_buffer {
    lsi_sink sink; /* first: where strings arrive */
    lsi_held_kind kind;
    lsi_iterator *input; /* borrowed */
    int64_t size;        /* negative: the whole input */
    int64_t taken;       /* of the input, by number */
    ls_device *device;
    lsi_buffer *memory; /* of `held` */
    lsi_held *held;     /* those to draw from are [first, first + live) */
    size_t first, live, room;
    size_t ahead;       /* strings behind those, which later draws will need */
    bool over;          /* the input */
    ls_error late;      /* what came behind `ahead`; code LS_OK: nothing */
    lsi_rows *arriving; /* lead strings to the sink */
    size_t *places;     /* of strings being drawn; not on the stack, which is for many */
} lsi_held_buffer;

/* `b` is zeroed. lsi_held_close() also after a failure. */
ls_status lsi_held_open(lsi_held_buffer *b, lsi_iterator *input, int64_t size,
                        ls_error *err);
void lsi_held_close(lsi_held_buffer *b);

/* Fills it up and draws one: the first takes its place. LS_OUT_OF_RANGE: it is empty. */
ls_status lsi_held_draw(lsi_held_buffer *b, lsi_draws *g, lsi_held *out, ls_error *err);

/*
 * Draws up to `want` (at most LSI_HELD_AT_ONCE), as if one after the other, if it holds
 * strings. Fewer: the next draw tells why.
 */
enum { LSI_HELD_AT_ONCE = 128 };
size_t lsi_held_draw_strings(lsi_held_buffer *b, lsi_draws *g, size_t want,
                             lsi_held *out);

/* What was drawn, which is taken over, as an element or as rows. */
ls_status lsi_held_element(lsi_held_buffer *b, lsi_held drawn, ls_value **out,
                           ls_error *err);
ls_status lsi_held_add(lsi_held_buffer *b, const lsi_held *drawn, size_t n,
                       lsi_rows *rows, ls_error *err);

void lsi_held_save(const lsi_held_buffer *b, lsi_writer *w);
ls_status lsi_held_restore(lsi_held_buffer *b, lsi_reader *r, ls_error *err);
#endif
