/*
 * The position of an iterator as bytes: numbers little-endian in eight bytes, lengths
 * before what they count. Every operator writes its own fields and reads them back in the
 * same order.
 */
#ifndef LSI_SAVED_STATE_H
#define LSI_SAVED_STATE_H
#include "data/spec.h"

typedef struct lsi_state_writer {
    uint8_t *bytes;
    size_t size, room;
    bool failed;          /* out of memory */
    bool lenient;         /* state that the library does not know is left out */
    const char *obstacle; /* the kind of the dataset that cannot be saved; NULL: none */
} lsi_state_writer;
void lsi_state_write_u64(lsi_state_writer *w, uint64_t x);
void lsi_state_write_bool(lsi_state_writer *w, bool x);
void lsi_state_write_bytes(lsi_state_writer *w, const void *p, size_t n);
void lsi_state_write_value(lsi_state_writer *w, const ls_value *v); /* a whole element */
void lsi_state_write_failure(lsi_state_writer *w, const ls_error *err);
void lsi_state_writer_clear(lsi_state_writer *w); /* frees the bytes */

/* `d` has state that the library does not know. True: it is left out; false: the save
 * fails because of `d`. */
bool lsi_state_write_without(lsi_state_writer *w, const ls_dataset *d);

typedef struct lsi_state_reader {
    const uint8_t *bytes;
    size_t size, at;
    ls_device *device; /* of the elements that are read; NULL: none */
} lsi_state_reader;
ls_status lsi_state_read_u64(lsi_state_reader *r, uint64_t *x, ls_error *err);
ls_status lsi_state_read_bool(lsi_state_reader *r, bool *x, ls_error *err);
ls_status lsi_state_read_bytes(lsi_state_reader *r, const void **p, size_t *n,
                               ls_error *err);
ls_status lsi_state_read_value(lsi_state_reader *r, ls_value **v, ls_error *err);
ls_status lsi_state_read_failure(lsi_state_reader *r, ls_error *x, ls_error *err);

/* A number of at most `max`, and an element of the spec; LS_DATA_LOSS if it is not. */
ls_status lsi_state_read_count(lsi_state_reader *r, uint64_t max, uint64_t *x,
                               ls_error *err);
ls_status lsi_state_read_element(lsi_state_reader *r, const ls_spec *spec, ls_value **v,
                                 ls_error *err);

/* Fails with LS_DATA_LOSS; `what` says what is wrong with the bytes. */
ls_status lsi_state_damaged(ls_error *err, const char *what);
#endif
