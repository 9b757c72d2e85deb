/*
 * The bytes of strings that are held for long, by a shuffle. A record lies in the buffer
 * that its file was read into, some 250 of them in one: holding a few of each would keep
 * all of every buffer. Here each string has a slot of its own, of at most a quarter more
 * than it needs, and a slot is used again as soon as it is free.
 *
 * Threads: any.
 */
#ifndef LSI_STORE_H
#define LSI_STORE_H
#include "tensor/tensor.h"

typedef struct lsi_store lsi_store;

ls_status lsi_store_create(lsi_store **out, ls_error *err);
void lsi_store_release(lsi_store *s); /* NULL is allowed; what is lent keeps it */

/* Slots for `n` strings. False: out of memory, and none was taken. */
bool lsi_store_take(lsi_store *s, const ls_string *strings, size_t n, char **slots);
void lsi_store_give(lsi_store *s, char *const *slots, size_t n);

/* Copies a string to its slot, which it points to then. After some of them, and before
 * other threads may see them, comes lsi_store_settle(). */
void lsi_store_copy(const lsi_store *s, char *slot, ls_string *string);
void lsi_store_settle(void);

/* Strings in slots are given up. */
void lsi_store_drop(lsi_store *s, const ls_string *strings, size_t n);

/* A buffer that owns `n` strings of it: its release drops them. NULL: out of memory. */
lsi_buffer *lsi_store_lend(lsi_store *s, const ls_string *strings, size_t n);

/* Bytes that it has from the device, in slots that are used or free. */
size_t lsi_store_bytes(const lsi_store *s);
#endif
