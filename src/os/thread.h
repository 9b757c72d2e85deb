/*
 * Threads and what they wait on. Storage is the caller's and nothing here allocates, so
 * only the system can refuse.
 */
#ifndef LSI_THREAD_H
#define LSI_THREAD_H
#include "base/base.h"
#include "os/clock.h"

#include <pthread.h>

typedef struct lsi_thread {
    pthread_t id;
    void (*fn)(void *arg);
    void *arg;
    char name[16]; /* what top and gdb show */
} lsi_thread;

/*
 * Runs fn(arg) on a new thread; all signals are blocked there, so that handlers run on
 * the program's own threads. `thread` stays where it is until lsi_thread_join().
 * LS_RESOURCE_EXHAUSTED: the system has no thread to give.
 */
ls_status lsi_thread_start(lsi_thread *thread, void (*fn)(void *arg), void *arg,
                           ls_error *err, const char *name_fmt, ...) LS_PRINTF(5, 6);
void lsi_thread_join(lsi_thread *thread);

typedef struct lsi_mutex {
    pthread_mutex_t raw;
} lsi_mutex;
#define LSI_MUTEX_INIT                                                                   \
    {                                                                                    \
        PTHREAD_MUTEX_INITIALIZER                                                        \
    }
void lsi_mutex_init(lsi_mutex *mutex);
void lsi_mutex_destroy(lsi_mutex *mutex);
void lsi_mutex_lock(lsi_mutex *mutex);
bool lsi_mutex_try(lsi_mutex *mutex);
void lsi_mutex_unlock(lsi_mutex *mutex);

typedef struct lsi_cond {
    pthread_cond_t raw;
} lsi_cond;
void lsi_cond_init(lsi_cond *cond);
void lsi_cond_destroy(lsi_cond *cond);

/* Returns false when the deadline has passed. May wake without a reason: check again. */
bool lsi_cond_wait(lsi_cond *cond, lsi_mutex *mutex, lsi_deadline deadline);
void lsi_cond_signal(lsi_cond *cond);
void lsi_cond_broadcast(lsi_cond *cond);

typedef struct lsi_once {
    pthread_once_t raw;
} lsi_once;
#define LSI_ONCE_INIT                                                                    \
    {                                                                                    \
        PTHREAD_ONCE_INIT                                                                \
    }
void lsi_once_run(lsi_once *once, void (*fn)(void));

/*
 * A number that threads wait on: a futex on Linux, a condition variable elsewhere. A
 * waiting thread spins for `spin_ns` first; a change costs a system call only if a thread
 * sleeps. Changes release, waits acquire.
 *
 * A word made by lsi_word_init_shared() may lie in memory that several processes map,
 * at any address of each: threads of all of them wait on it and wake each other. One
 * process initialises it. A process that is killed while it sleeps there only costs the
 * others a system call per change.
 */
typedef struct lsi_word {
    atomic_uint value;
    atomic_uint sleepers; /* their number; LSI_WORD_SHARED is set if processes share it */
#ifndef __linux__
    lsi_mutex mutex; /* guards going to sleep */
    lsi_cond cond;
#endif
} lsi_word;
#define LSI_WORD_SHARED 0x80000000u
void lsi_word_init(lsi_word *word, unsigned value);
void lsi_word_init_shared(lsi_word *word, unsigned value);
void lsi_word_destroy(lsi_word *word);
unsigned lsi_word_get(lsi_word *word);
void lsi_word_set(lsi_word *word, unsigned value); /* not by two threads at once */
void lsi_word_add(lsi_word *word, unsigned n);     /* wraps around */

/* Changes `from` to `to`; false if the value is another. Wakes no thread. */
bool lsi_word_try(lsi_word *word, unsigned from, unsigned to);

/* Takes one off; only the change to zero wakes, so wait with lsi_word_wait_zero(). */
void lsi_word_drop(lsi_word *word);

/* Returns the value as soon as it is not `seen`. */
unsigned lsi_word_wait_not(lsi_word *word, unsigned seen, int64_t spin_ns);
void lsi_word_wait_zero(lsi_word *word, int64_t spin_ns);

/* Sleeps while the value is `seen`, at most until `deadline`; may return early. */
void lsi_word_sleep(lsi_word *word, unsigned seen, lsi_deadline deadline);

/* Tells the core that this is a spin loop. */
static inline void lsi_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
void lsi_yield(void);

/*
 * The cores this thread may run on, in ascending order: writes at most `room` numbers
 * and returns how many there are, at least 1. Where the system cannot say which, the
 * numbers are 0, 1, ...
 */
int lsi_affinity_get(int *cores, int room);

/*
 * The same of the process: what threads had before lsi_affinity_set() pinned the first of
 * them. For threads that are started by a pinned one and should not stay where it is.
 */
int lsi_affinity_unpinned(int *cores, int room);

/*
 * How many cores' worth of time the container grants, rounded up; INT_MAX: all there is.
 * The second takes the text of a cgroup's cpu.max, "200000 100000" or "max 100000".
 */
int lsi_cpu_quota(void);
int lsi_cpu_quota_parse(const char *text);

/* Keeps this thread on `cores`. LS_UNIMPLEMENTED where the system has no such call. */
ls_status lsi_affinity_set(const int *cores, int count, ls_error *err);
#endif
