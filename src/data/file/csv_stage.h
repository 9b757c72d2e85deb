/* Records of a CSV file on their way into a batch (file_csv_stage.c). */
#ifndef LSI_CSV_STAGE_H
#define LSI_CSV_STAGE_H
#include "data/file/csv_layout.h"

/* A field of a record, by offsets: the bytes move while more of them are read. */
typedef struct lsi_csv_span {
    size_t begin, end;
    bool doubled; /* it has doubled quotes */
} lsi_csv_span;

typedef struct lsi_csv_stage lsi_csv_stage;

/* The layout is borrowed. NULL: out of memory. */
lsi_csv_stage *lsi_csv_stage_create(const lsi_csv_layout *layout);
void lsi_csv_stage_release(lsi_csv_stage *s); /* NULL is allowed */

/* How many records wait, and whether one of `buffer` could, too. */
int64_t lsi_csv_stage_rows(const lsi_csv_stage *s);
bool lsi_csv_stage_fits(const lsi_csv_stage *s, const lsi_buffer *buffer);

/*
 * One record more, with a span for each column of the layout at `bytes` in `buffer`; `c`
 * as of lsi_csv_number(). False: it is not added, because a field is wrong, or is one of
 * the few that need more than this (doubled quotes, a string's default that is not "").
 */
bool lsi_csv_stage_add(lsi_csv_stage *s, const uint8_t *bytes, const lsi_csv_span *spans,
                       lsi_buffer *buffer, locale_t c);

/* All that wait become rows; *got counts them. */
ls_status lsi_csv_stage_hand_over(lsi_csv_stage *s, lsi_batch_rows *rows, int64_t *got,
                                  ls_error *err);
#endif
