/*
 * The threads of a runtime's input: shared by all its iterators that read ahead or call
 * functions in parallel. They are started when work is submitted, and joined when the
 * runtime is destroyed. A user must make progress without them: a submitted call that has
 * not begun can be taken back.
 *
 * Threads: any, but for the release.
 */
#ifndef LSI_INPUT_THREADS_H
#define LSI_INPUT_THREADS_H
#include <stdbool.h>

/* NULL where an iterator belongs to no runtime: such threads take no work. */
typedef struct lsi_input_threads lsi_input_threads;

lsi_input_threads *lsi_input_threads_create(void); /* NULL: out of memory */

/* Runs what is queued and joins the threads. NULL is allowed. */
void lsi_input_threads_release(lsi_input_threads *t);

/* Queues fn(arg) for a thread; false: no thread could be started, nothing was queued. */
bool lsi_input_threads_submit(lsi_input_threads *t, void (*fn)(void *arg), void *arg);

/* Removes fn(arg) from the queue; false: it has begun, or is done. */
bool lsi_input_threads_cancel(lsi_input_threads *t, void (*fn)(void *arg), void *arg);

/* At most so many are started; at least 1. */
int lsi_input_threads_count(const lsi_input_threads *t);

/* Calls are waiting in the queue. */
bool lsi_input_threads_backlog(const lsi_input_threads *t);
#endif
