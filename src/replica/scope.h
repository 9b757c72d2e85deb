/* The scopes that a thread has open (scope.c). */
#ifndef LSI_SCOPE_H
#define LSI_SCOPE_H
#include "replica/replica.h"

/* lsi_scopes_unwind() closes, with a warning, scopes opened since lsi_scopes_mark(). */
struct lsi_scope *lsi_scopes_mark(void);
void lsi_scopes_unwind(struct lsi_scope *mark);

/* The thread's own context, for default mode; NULL: out of memory. */
ls_context *lsi_thread_context(void);
#endif
