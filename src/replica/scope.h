/* The scopes that a thread has open, in the order they were opened. */
#ifndef LSI_SCOPE_H
#define LSI_SCOPE_H
#include "replica/replica.h"

/* Everything opened since lsi_scopes_mark() is closed. */
struct lsi_scope *lsi_scopes_mark(void);
void lsi_scopes_unwind(struct lsi_scope *mark);

/* The thread's own context, for default mode; NULL: out of memory. */
ls_context *lsi_thread_context(void);
#endif
