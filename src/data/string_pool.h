/*
 * The bytes of strings that are held for long, by a shuffle. A record lies in the buffer
 * that its file was read into, some 250 of them in one: holding a few of each would keep
 * all of every buffer. Here each string has a slot of its own, of at most a quarter more
 * than it needs, and a slot is used again as soon as it is free.
 *
 * Threads: any.
 */
#ifndef LSI_STRING_POOL_H
#define LSI_STRING_POOL_H
#include "tensor/tensor.h"

typedef struct lsi_string_pool lsi_string_pool;

ls_status lsi_string_pool_create(lsi_string_pool **out, ls_error *err);
void lsi_string_pool_release(
    lsi_string_pool *s); /* NULL is allowed; what is lent keeps it */

/* Slots for `n` strings. False: out of memory, and none was taken. */
bool lsi_string_pool_alloc(lsi_string_pool *s, const ls_string *strings, size_t n,
                           char **slots);
void lsi_string_pool_free(lsi_string_pool *s, char *const *slots, size_t n);

/* Copies a string to its slot, which it points to then. After some of them, and before
 * other threads may see them, comes lsi_string_pool_fence(). */
void lsi_string_pool_copy(const lsi_string_pool *s, char *slot, ls_string *string);
void lsi_string_pool_fence(void);

/* Strings in slots are given up. */
void lsi_string_pool_free_strings(lsi_string_pool *s, const ls_string *strings, size_t n);

/* A buffer that owns `n` strings of it: its release drops them. NULL: out of memory. */
lsi_buffer *lsi_string_pool_owner(lsi_string_pool *s, const ls_string *strings, size_t n);

/* Bytes that it has from the device, in slots that are used or free. */
size_t lsi_string_pool_bytes(const lsi_string_pool *s);
#endif
