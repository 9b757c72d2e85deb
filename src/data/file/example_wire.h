/*
 * Reading tf.train.Examples: protobuf's wire format, by hand. Nothing is copied and
 * nothing allocated; every length is compared with what is there.
 */
#ifndef LSI_EXAMPLE_WIRE_H
#define LSI_EXAMPLE_WIRE_H
#include "base/base.h"
#include "lockstep/record.h"

/* The list of a feature's values, in the record's own bytes. */
typedef struct lsi_list {
    const uint8_t *p;
    size_t len;
    size_t count; /* of values, or of the place of the first among those of all rows */
    ls_list_kind kind;
} lsi_list;

/* A name that is looked for. */
typedef struct lsi_wanted {
    const char *name;
    size_t len;
    size_t index; /* of its list */
} lsi_wanted;

/*
 * Finds the lists of the wanted features (sorted by bytes), the last of each name; lists
 * of others are left as they are. False: the bytes are no Example.
 */
bool lsi_example_scan(const uint8_t *p, size_t len, const lsi_wanted *wanted, size_t n,
                      lsi_list *lists);

/* The names of the features there are, "a, b, c" or "none", cut to `size` bytes. */
void lsi_example_names(const uint8_t *p, size_t len, char *text, size_t size);

/*
 * Values of a list, at most `room` of them, at `to` (NULL: none); returns how many there
 * are, or -1: the bytes are no such list. Strings lie in the record.
 */
int64_t lsi_list_int64(const lsi_list *list, int64_t *to, size_t room);
int64_t lsi_list_float(const lsi_list *list, float *to, size_t room);
int64_t lsi_list_bytes(const lsi_list *list, ls_string *to, size_t room);

/* Takes the next field off the front of a message: its number, and its bytes if it has a
 * length of its own; otherwise `bytes` is NULL. False: there is none, or it is damaged, and
 * then something is left of the message. */
bool lsi_wire_next(ls_string *message, uint32_t *number, ls_string *bytes);
#endif
