/* The parts of `lockstep data convert`. */
#ifndef CLI_DATA_CONVERT_H
#define CLI_DATA_CONVERT_H

#include "cli/data/data_command.h"

#include <lockstep/op.h>

#include <stdio.h>

/* Files that are being written: under another name until all of them are whole. */
typedef struct convert_output {
    char *name, *temporary;
    char *older; /* the file that had the name before; NULL: there is none */
} convert_output;

typedef struct convert_outputs {
    convert_output *list;
    size_t n, renamed;
} convert_outputs;

/* One more file, made empty; returns the name to write to. NULL: `err` says why not. */
const char *convert_output_add(convert_outputs *o, const char *name, ls_error *err);

/* Gives all files their names; after a failure convert_outputs_free() takes them back. */
ls_status convert_outputs_commit(convert_outputs *o, ls_error *err);

/* Frees the names. Without `keep` nothing is left of the new files, and files that had
 * their names before have them again. */
void convert_outputs_free(convert_outputs *o, bool keep);

typedef struct convert_job {
    data_file *from;
    size_t nfrom;
    const char *to;
    int64_t shards;
    const char *compression; /* NULL: none */
    data_file labels;        /* path NULL: none */
    const char *key;         /* NULL: "data" */
    convert_outputs outputs;
    int64_t records;     /* in all files */
    int64_t total, done; /* of all passes */
    double shown;        /* when progress was shown last */
    bool terminal;
} convert_job;

/* Counts one record and shows progress. LS_CANCELLED: ^C was pressed. */
ls_status convert_count(convert_job *job, ls_error *err);

/* LS_CANCELLED, and `err` is filled, if ^C was pressed. */
ls_status convert_stopped(ls_error *err);

/* Elements that become Examples, or records that are some already. */
typedef struct convert_source {
    ls_dataset *dataset; /* NULL: records of TFRecord files */
    int64_t total;
    ls_status (*fill)(struct convert_source *s, ls_value *element, ls_example *e,
                      ls_error *err);
    const char *key;
    bool labelled;
    data_csv csv;
    ls_list_kind *kinds; /* of the columns */
    ls_context *context; /* arrays: numbers are converted in it */
} convert_source;

ls_status convert_source_open(const convert_job *job, convert_source *out, ls_error *err);
void convert_source_close(convert_source *s);

/* Calls fn() for every record of all input files, which are TFRecord. */
ls_status convert_each_record(const convert_job *job, data_record_fn fn, void *user,
                              ls_error *err);

/* Writes TFRecord files; a CSV file; an npz file. */
ls_status convert_to_shards(convert_job *job, ls_error *err);
ls_status convert_to_csv(convert_job *job, ls_error *err);
ls_status convert_to_npz(convert_job *job, ls_error *err);

/* A zip archive of arrays, written in one go; sizes are known beforehand. */
typedef struct convert_zip convert_zip;
ls_status convert_zip_open(const char *path, convert_zip **out, ls_error *err);
ls_status convert_zip_begin(convert_zip *z, const char *name, const char *dtype,
                            const int64_t *dims, int ndim, size_t item, ls_error *err);
ls_status convert_zip_write(convert_zip *z, const void *data, size_t len, ls_error *err);
ls_status convert_zip_close(convert_zip *z, ls_error *err); /* writes the directory */
void convert_zip_release(convert_zip *z);                   /* NULL is allowed */
#endif
