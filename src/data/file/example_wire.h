/*
 * Reading tf.train.Examples from protobuf's wire format. Nothing is copied or allocated;
 * every length is compared with the number of bytes left.
 */
#ifndef LSI_EXAMPLE_WIRE_H
#define LSI_EXAMPLE_WIRE_H
#include "base/base.h"
#include "lockstep/record.h"

/* The list of a feature's values, in the record's own bytes. */
typedef struct lsi_feature_list {
    const uint8_t *p;
    size_t len;
    size_t count; /* of values; later an offset among those of all rows */
    ls_list_kind kind;
} lsi_feature_list;

/* A feature to look for. */
typedef struct lsi_wanted_feature {
    const char *name;
    size_t len;
    size_t index; /* of its list */
} lsi_wanted_feature;

/*
 * Finds the lists of the wanted features, which are sorted by name; of equal names in the
 * record the last is used. Lists of absent features are not written to. False: the bytes
 * are not an Example.
 */
bool lsi_example_scan(const uint8_t *p, size_t len, const lsi_wanted_feature *wanted,
                      size_t n, lsi_feature_list *lists);

/* The names of the record's features, "a, b, c" or "none", cut to `size` bytes. */
void lsi_example_names(const uint8_t *p, size_t len, char *text, size_t size);

/*
 * Writes the values of a list, at most `room`, to `to` (NULL: none); returns how many
 * there are, or -1 if the bytes are not such a list. Strings point into the record.
 */
int64_t lsi_feature_list_int64(const lsi_feature_list *list, int64_t *to, size_t room);
int64_t lsi_feature_list_float(const lsi_feature_list *list, float *to, size_t room);
int64_t lsi_feature_list_bytes(const lsi_feature_list *list, ls_string *to, size_t room);

/* Takes the next field off the front of a message: its number, and its bytes if it has a
 * length of its own; otherwise `bytes` is NULL. False: there is none, or it is damaged, and
 * then something is left of the message. */
bool lsi_wire_next(ls_string *message, uint32_t *number, ls_string *bytes);
#endif
