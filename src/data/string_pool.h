/*
 * A pool of memory for strings that are held for long, by a shuffle. A record lies in the
 * buffer that its file was read into, with some 250 others: holding one of them would
 * keep the whole buffer. Here each string has a slot of its own, at most a quarter larger
 * than it needs, and a free slot is used again.
 *
 * Threads: any.
 */
#ifndef LSI_STRING_POOL_H
#define LSI_STRING_POOL_H
#include "tensor/tensor.h"

typedef struct lsi_string_pool lsi_string_pool;

/* Its memory is that of `device`. */
ls_status lsi_string_pool_create(ls_device *device, lsi_string_pool **out, ls_error *err);
void lsi_string_pool_release(lsi_string_pool *s); /* NULL is allowed */

/* Allocates slots for `n` strings. False: out of memory, and none is allocated. */
bool lsi_string_pool_alloc(lsi_string_pool *s, const ls_string *strings, size_t n,
                           char **slots);
void lsi_string_pool_free(lsi_string_pool *s, char *const *slots, size_t n);

/* Copies a string to its slot and lets it point there. Before another thread may read
 * copied strings, lsi_string_pool_fence() must be called. */
void lsi_string_pool_copy(const lsi_string_pool *s, char *slot, ls_string *string);
void lsi_string_pool_fence(void);

/* Frees the slots that these strings lie in. */
void lsi_string_pool_free_strings(lsi_string_pool *s, const ls_string *strings, size_t n);

/* A buffer that owns `n` strings of the pool: its release frees them. NULL: out of
 * memory. */
lsi_buffer *lsi_string_pool_owner(lsi_string_pool *s, const ls_string *strings, size_t n);

/* Bytes allocated from the device, in used and free slots. */
size_t lsi_string_pool_bytes(const lsi_string_pool *s);
#endif
