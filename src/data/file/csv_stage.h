/* Records of a CSV file, collected before they are appended to a batch (csv_stage.c). */
#ifndef LSI_CSV_STAGE_H
#define LSI_CSV_STAGE_H
#include "data/file/csv_layout.h"

/* A field of a record, as offsets: the bytes may move while more are read. */
typedef struct lsi_csv_span {
    size_t begin, end;
    bool doubled; /* it has doubled quotes */
} lsi_csv_span;

typedef struct lsi_csv_stage lsi_csv_stage;

/* The layout is borrowed. NULL: out of memory. */
lsi_csv_stage *lsi_csv_stage_create(const lsi_csv_layout *layout);
void lsi_csv_stage_release(lsi_csv_stage *s); /* NULL is allowed */

/* How many records are collected, and whether one of `buffer` can be added. */
int64_t lsi_csv_stage_rows(const lsi_csv_stage *s);
bool lsi_csv_stage_fits(const lsi_csv_stage *s, const lsi_buffer *buffer);

/*
 * Adds a record, with a span for each column of the layout, at `bytes` in `buffer`; `c`
 * as for lsi_csv_number(). False: it was not added, because a field is wrong or needs the
 * general way (doubled quotes, a string's default that is not "").
 */
bool lsi_csv_stage_add(lsi_csv_stage *s, const uint8_t *bytes, const lsi_csv_span *spans,
                       lsi_buffer *buffer, locale_t c);

/* Appends all collected records to the rows and adds their number to *got. */
ls_status lsi_csv_stage_append(lsi_csv_stage *s, lsi_batch_rows *rows, int64_t *got,
                               ls_error *err);
#endif
