/* The columns of CSV records: their dtypes, defaults and selection (csv_layout.c). */
#ifndef LSI_CSV_LAYOUT_H
#define LSI_CSV_LAYOUT_H
#include "data/file/file_node.h"

#include <locale.h>

/* A column; without a default, fields must not be empty. */
typedef struct lsi_csv_field {
    ls_dtype dtype;
    bool optional;
    int64_t integer;
    double number;
    ls_value *string; /* retained; of a string column's default */
} lsi_csv_field;

struct lsi_csv_layout {
    atomic_int refs;
    bool header, quotes;
    char delimiter;
    char *na;
    size_t na_len;
    bool some; /* only the listed columns are read; else all but those */
    int *listed;
    size_t nlisted;
    size_t n;
    lsi_csv_field fields[];
};

/*
 * Writes a field's text as an element of its dtype to `to`. False: not a number, or an
 * integer that is too large. `c` is the C locale: the program's may use decimal commas.
 */
bool lsi_csv_number(ls_dtype dtype, const char *text, size_t len, locale_t c, void *to);

/* Whether the field is empty or marked as missing: the column's default is used. */
bool lsi_csv_is_absent(const lsi_csv_layout *layout, ls_string text);

/* The default of a column of numbers, as an element of its dtype. */
void lsi_csv_default(const lsi_csv_field *f, void *to);
#endif
