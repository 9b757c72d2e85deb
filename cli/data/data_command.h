/* What the subcommands of `lockstep data` share: files, their kinds, Examples. */
#ifndef CLI_DATA_COMMAND_H
#define CLI_DATA_COMMAND_H

#include "base/base.h"
#include "cli/cli.h"

#include <lockstep/dataset.h>
#include <lockstep/record.h>
#include <stdint.h>

int data_inspect(int argc, char **argv);
int data_convert(int argc, char **argv);
int data_plan(int argc, char **argv);

/* "COMMAND: WHAT: why" on stderr; returns CLI_FAILED. */
int data_failed(const char *command, const char *what, const ls_error *err);

/* Calls fn() for every element. LS_OK at the end; the first failure otherwise. The
 * dataset is borrowed. */
typedef ls_status (*data_element_fn)(ls_value *element, void *user, ls_error *err);
ls_status data_each(ls_dataset *d, data_element_fn fn, void *user, ls_error *err);

ls_status data_no_memory(ls_error *err);

/* What the system says of `path`, by errno. */
ls_status data_system_error(ls_error *err, const char *path);

/* The string of an element that is one; empty if it is none. */
ls_string data_string(const ls_value *element);

bool data_ends_with(const char *s, const char *end); /* and has more before it */

/* `s` with its end cut off at `most` bytes and what is not printable as \x.., into buf.
 */
const char *data_printable(ls_string s, size_t most, char *buf, size_t size);

/* ---- files (data_file.c) ---- */

typedef enum data_format {
    DATA_EMPTY, /* no bytes, and no known ending of its name */
    DATA_TFRECORD,
    DATA_TEXT,
    DATA_CSV,
    DATA_NPY,
    DATA_NPZ,
    DATA_IDX,
    DATA_UNKNOWN
} data_format;

typedef struct data_file {
    const char *path;
    data_format format;
    const char *compression; /* NULL, "GZIP" or "ZLIB" */
    int64_t bytes;           /* as they lie on the disk */
    unsigned char *head;     /* the first bytes, decompressed */
    size_t head_len;
} data_file;

/* Recognises its format. False: it cannot be read, and `err` says why. */
bool data_file_open(const char *path, data_file *out, ls_error *err);
void data_file_close(data_file *f);

/*
 * Calls fn() for every record of a TFRecord file, or every line of another; the first
 * failure ends it, also that of a damaged file. With `whole` a file that was cut off between
 * two records is damaged, too. *offset: where the last record began, or where the damaged
 * one does.
 */
typedef ls_status (*data_record_fn)(ls_string record, void *user, ls_error *err);
ls_status data_file_each(const data_file *f, bool whole, data_record_fn fn, void *user,
                         int64_t *offset, ls_error *err);

/* Counts them; in a TFRecord file that is not compressed by the headers alone. */
ls_status data_file_count(const data_file *f, bool whole, int64_t *out, ls_error *err);

/* "TFRecord", "CSV" */
const char *data_format_name(data_format format);

/* The rows of a file of arrays. NULL: no memory. */
ls_dataset *data_file_rows(const data_file *f);

/* ---- CSV (data_csv.c) ---- */

/* The columns of a CSV file. The first record names them unless a number is in it. */
typedef struct data_csv {
    char **names;
    size_t n;
    bool header;
} data_csv;

bool data_csv_open(const data_file *f, data_csv *out, ls_error *err);
void data_csv_close(data_csv *c);

/* Elements are tuples of strings; a field that is absent is "". NULL: no memory. */
ls_dataset *data_csv_dataset(const data_file *f, const data_csv *c);

/* Field `i` of such an element; one column alone is no tuple. */
ls_string data_csv_field(const data_csv *c, const ls_value *element, size_t i);

/* Whether the whole of `s` is an int64; a number. */
bool data_is_int(ls_string s, int64_t *out);
bool data_is_number(ls_string s, float *out);

/* ---- Examples (columns.c) ---- */

const char *data_kind_name(ls_list_kind kind); /* "bytes" */

/* What is known of a feature after many records. */
typedef struct data_column {
    char *name;
    ls_list_kind kind;
    bool mixed; /* not the same kind everywhere */
    int64_t records;
    int64_t last; /* the record that had it last */
    size_t least, most;
    size_t shortest, longest; /* strings, in bytes */
    bool binary;              /* bytes that are no text */
} data_column;

typedef struct data_columns {
    data_column *list; /* by name, once data_columns_sort() was called */
    size_t n, room;
    int64_t records, examples; /* all of them; those that are Examples */
    ls_string *strings;        /* of one feature */
    size_t string_room;
} data_columns;

/* One more record. LS_RESOURCE_EXHAUSTED is the only failure. */
ls_status data_columns_add(data_columns *c, ls_string record, ls_error *err);
void data_columns_sort(data_columns *c);
void data_columns_free(data_columns *c);
#endif
