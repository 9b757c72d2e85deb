/* Advice to the system about memory. */
#ifndef LSI_MEMORY_H
#define LSI_MEMORY_H
#include "base/base.h"

/* Asks for large pages where whole ones fit; the system may ignore it. */
void lsi_memory_want_huge_pages(void *ptr, size_t bytes);

/*
 * The contents are not needed any more: whole pages among them take no memory until they
 * are written to again. For what is about to be freed: an allocator may keep it mapped.
 */
void lsi_memory_forget(void *ptr, size_t bytes);
#endif
