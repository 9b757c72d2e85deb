/* What `lockstep data inspect` finds out. */
#ifndef CLI_DATA_REPORT_H
#define CLI_DATA_REPORT_H

#include "cli/data/data_command.h"

/* What was found out; all of it is printed as text or as JSON. */
typedef struct data_report {
    data_file file;
    int64_t shown; /* first elements wanted */
    int64_t records, data_bytes;
    int64_t offset; /* TFRecord: of the last record, or of the damaged one */
    uint64_t *sizes;
    size_t nsizes, room;
    data_columns columns; /* TFRecord */
    data_csv csv;
    ls_array_header *arrays;
    size_t narrays;
    ls_shape shape; /* IDX, with the rows */
    ls_dtype dtype;
    char **first;
    size_t nfirst;
    bool damaged;
    int64_t damage_at; /* record */
    ls_error damage;   /* also why arrays have no rows in common: records is -1 then */
} data_report;

/* On stdout; `sizes` are sorted. */
void data_report_print(const data_report *r);
int data_report_print_json(const data_report *r);
#endif
