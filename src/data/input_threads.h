/*
 * The threads of the input: one set per process, shared by all iterators that read ahead
 * or call functions in parallel. They run while they have users, and a user must make
 * progress without them: a submitted call that has not begun can be taken back.
 */
#ifndef LSI_INPUT_THREADS_H
#define LSI_INPUT_THREADS_H
#include <stdbool.h>

/* A user calls both, in pairs; the last lsi_input_threads_leave() joins the threads. */
void lsi_input_threads_use(void);
void lsi_input_threads_leave(void);

/* Queues fn(arg) for a thread; false: no thread could be started, nothing was queued. */
bool lsi_input_threads_submit(void (*fn)(void *arg), void *arg);

/* Removes fn(arg) from the queue; false: it has begun, or is done. */
bool lsi_input_threads_cancel(void (*fn)(void *arg), void *arg);

int lsi_input_threads_count(void);    /* at most so many are started; at least 1 */
bool lsi_input_threads_backlog(void); /* calls are waiting in the queue */
#endif
