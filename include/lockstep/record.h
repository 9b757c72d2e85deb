/*
 * lockstep/record.h - writing and reading TFRecord files, and the tf.train.Examples in them.
 *
 *     LS_TRY(ls_record_writer_open("train.tfrecord", "GZIP", &w, &err));
 *     LS_TRY(ls_example_add_int64(e, "label", &label, 1, &err));
 *     LS_TRY(ls_example_add_bytes(e, "image", &pixels, 1, &err));
 *     LS_TRY(ls_record_writer_write_example(w, e, &err));
 *     LS_TRY(ls_record_writer_close(w, &err));
 *
 * Training reads files by ls_dataset_tfrecord() (dataset.h) and Examples by
 * ls_dataset_parse_example() (example.h). The reader and the walk of this header are for
 * programs that read files whose features they do not know:
 *
 *     LS_TRY(ls_record_reader_open("train.tfrecord", &opts, &r, &err));
 *     while ((st = ls_record_reader_next(r, &record, &err)) == LS_OK) {
 *         ls_example_walk walk = LS_EXAMPLE_WALK_INIT(record);
 *
 *         while ((st = ls_example_walk_next(&walk, &entry, &err)) == LS_OK) {
 *             printf("%.*s: %zu values\n", (int)entry.name.len, entry.name.ptr, entry.count);
 *         }
 *     }
 *
 * Threads: one at a time.
 */
#ifndef LS_RECORD_H
#define LS_RECORD_H

#include "lockstep/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_record_writer ls_record_writer;
typedef struct ls_example ls_example;

/* Creates the file, or empties it. `compression`: NULL or "": none; "ZLIB"; "GZIP". */
LS_API LS_MUST_USE ls_status ls_record_writer_open(const char *path,
                                                   const char *compression,
                                                   ls_record_writer **out, ls_error *err);

/*
 * Writes one record; `data` may be NULL if `len` is 0. Returns LS_FAILED_PRECONDITION if
 * the writer is closed. After any other failure the file is incomplete, and every later
 * call fails again.
 */
LS_API LS_MUST_USE ls_status ls_record_writer_write(ls_record_writer *w, const void *data,
                                                    size_t len, ls_error *err);
LS_API LS_MUST_USE ls_status ls_record_writer_write_example(ls_record_writer *w,
                                                            ls_example *e, ls_error *err);

/* Writes everything so far to the file, so that other programs can read it. */
LS_API LS_MUST_USE ls_status ls_record_writer_flush(ls_record_writer *w, ls_error *err);

/* Ends the file. Closing again does nothing. */
LS_API LS_MUST_USE ls_status ls_record_writer_close(ls_record_writer *w, ls_error *err);

/*
 * Frees the writer. One that was not closed is closed, and a failure of that is not
 * reported. NULL is allowed.
 */
LS_API void ls_record_writer_release(ls_record_writer *w);

/* An example without features. */
LS_API LS_MUST_USE ls_status ls_example_create(ls_example **out, ls_error *err);
LS_API void ls_example_release(ls_example *e); /* NULL is allowed */
LS_API void ls_example_clear(ls_example *e);   /* without features again */

/* Adds a feature of `n` values, which are copied; a feature of that name is replaced. */
LS_API LS_MUST_USE ls_status ls_example_add_int64(ls_example *e, const char *name,
                                                  const int64_t *values, size_t n,
                                                  ls_error *err);
LS_API LS_MUST_USE ls_status ls_example_add_float(ls_example *e, const char *name,
                                                  const float *values, size_t n,
                                                  ls_error *err);
LS_API LS_MUST_USE ls_status ls_example_add_bytes(ls_example *e, const char *name,
                                                  const ls_string *values, size_t n,
                                                  ls_error *err);

/*
 * The example as bytes: features in the order of their names, so that equal examples are
 * equal bytes. They live until the example changes or is released.
 */
LS_API LS_MUST_USE ls_status ls_example_serialize(ls_example *e, ls_string *out,
                                                  ls_error *err);

/* ---- reading ---- */

typedef struct ls_record_reader ls_record_reader;

/* Start from LS_RECORD_READER_OPTIONS_INIT. */
typedef struct ls_record_reader_options {
    size_t struct_size;
    const char *compression; /* NULL or "": none; "ZLIB"; "GZIP"; "AUTO": detected */
    size_t buffer;           /* bytes read at once; 0: choose */
    bool lines;              /* records are lines of text without their ends */

    /* A compressed file that stops between two records is LS_DATA_LOSS; otherwise it ends
     * there. */
    bool whole;
} ls_record_reader_options;

/* clang-format off */
#define LS_RECORD_READER_OPTIONS_INIT \
    {sizeof(ls_record_reader_options), NULL, 0, false, false}
/* clang-format on */

/* Opens the file. `opts`: NULL for the defaults. */
LS_API LS_MUST_USE ls_status ls_record_reader_open(const char *path,
                                                   const ls_record_reader_options *opts,
                                                   ls_record_reader **out, ls_error *err);

/*
 * The next record: bytes that stay until the next call with this reader. Both checksums
 * of a TFRecord are checked.
 *
 * Returns LS_OK; LS_OUT_OF_RANGE at the end; LS_DATA_LOSS, and the message names the file
 * and the byte where it is damaged. After both every later call returns the same.
 */
LS_API LS_MUST_USE ls_status ls_record_reader_next(ls_record_reader *r, ls_string *out,
                                                   ls_error *err);

/*
 * Skips a record: of a TFRecord only the length and its checksum are checked, and the data
 * are not read if the file is not compressed. Returns the same as ls_record_reader_next().
 */
LS_API LS_MUST_USE ls_status ls_record_reader_skip(ls_record_reader *r, ls_error *err);

/* The offset, in the decompressed file, of the record of the last call, failed or not. */
LS_API uint64_t ls_record_reader_offset(const ls_record_reader *r);
LS_API void ls_record_reader_close(ls_record_reader *r); /* NULL is allowed */

/*
 * Whether a file that begins with these bytes is a TFRecord file: the checksum of the first
 * record's length is right. At least 12 bytes are needed.
 */
LS_API bool ls_record_begins(const void *head, size_t len);

/* ---- Examples whose features are not known ---- */

typedef enum ls_list_kind {
    LS_LIST_NONE = 0, /* the feature has no list: it counts as absent */
    LS_LIST_BYTES,
    LS_LIST_FLOAT,
    LS_LIST_INT64
} ls_list_kind;

/* A feature of a serialized Example; its strings point into the Example's bytes. */
typedef struct ls_example_entry {
    ls_string name; /* any bytes; no NUL follows them */
    ls_list_kind kind;
    size_t count;   /* of values */
    ls_string list; /* the values as they are encoded */
} ls_example_entry;

/*
 * A walk over the features of a serialized Example, which is borrowed. Nothing is
 * allocated; the fields are private.
 */
typedef struct ls_example_walk {
    ls_string example, features; /* what is left of both */
} ls_example_walk;

/* clang-format off */
#define LS_EXAMPLE_WALK_INIT(serialized) {(serialized), {NULL, 0}}
/* clang-format on */

/*
 * The next feature. Returns LS_OUT_OF_RANGE if there are no more, LS_INVALID_ARGUMENT if
 * the bytes are not an Example; a field that no Example has counts as that, because
 * otherwise nearly any bytes would be one.
 */
LS_API LS_MUST_USE ls_status ls_example_walk_next(ls_example_walk *w,
                                                  ls_example_entry *out, ls_error *err);

/* Copies the first values, at most `room`; returns how many. 0 for another kind of list. */
LS_API size_t ls_example_entry_int64(const ls_example_entry *e, int64_t *to, size_t room);
LS_API size_t ls_example_entry_float(const ls_example_entry *e, float *to, size_t room);
LS_API size_t ls_example_entry_bytes(const ls_example_entry *e, ls_string *to,
                                     size_t room);

#ifdef __cplusplus
}
#endif
#endif /* LS_RECORD_H */
