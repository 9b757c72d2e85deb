/*
 * lockstep/record.h - writing TFRecord files, and the tf.train.Examples in them.
 *
 *     LS_TRY(ls_record_writer_open("train.tfrecord", "GZIP", &w, &err));
 *     LS_TRY(ls_example_add_int64(e, "label", &label, 1, &err));
 *     LS_TRY(ls_example_add_bytes(e, "image", &pixels, 1, &err));
 *     LS_TRY(ls_record_writer_write_example(w, e, &err));
 *     LS_TRY(ls_record_writer_close(w, &err));
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

/* Makes the file, or empties it. `compression`: NULL or "": none; "ZLIB"; "GZIP". */
LS_API LS_MUST_USE ls_status ls_record_writer_open(const char *path,
                                                   const char *compression,
                                                   ls_record_writer **out, ls_error *err);

/* One record; `data` may be NULL if `len` is 0. LS_FAILED_PRECONDITION: it is closed.
 * After another failure the file is not to be trusted: every later call fails again. */
LS_API LS_MUST_USE ls_status ls_record_writer_write(ls_record_writer *w, const void *data,
                                                    size_t len, ls_error *err);
LS_API LS_MUST_USE ls_status ls_record_writer_write_example(ls_record_writer *w,
                                                            ls_example *e, ls_error *err);

/* Hands everything written so far to the system, so that others can read it. */
LS_API LS_MUST_USE ls_status ls_record_writer_flush(ls_record_writer *w, ls_error *err);

/* Ends the file. Closing again does nothing. */
LS_API LS_MUST_USE ls_status ls_record_writer_close(ls_record_writer *w, ls_error *err);

/* Frees the writer; one that was not closed is, and nobody hears whether that worked.
 * NULL is allowed. */
LS_API void ls_record_writer_release(ls_record_writer *w);

/* An example without features. */
LS_API LS_MUST_USE ls_status ls_example_create(ls_example **out, ls_error *err);
LS_API void ls_example_release(ls_example *e); /* NULL is allowed */
LS_API void ls_example_clear(ls_example *e);   /* without features again */

/* A feature of `n` values, which are copied; one of that name is replaced. */
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

#ifdef __cplusplus
}
#endif
#endif /* LS_RECORD_H */
