/* Threads, mutexes, conditions, words to wait on, and the cores of a thread. */
#ifdef __linux__
#define _GNU_SOURCE // NOLINT(bugprone-reserved-identifier): futex, affinity, names
#endif
#include "os/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#define NS_PER_S 1000000000
#define PAUSES_A_LOOK 32 // reading the clock costs as much as some pauses: not each time

static void *enter(void *raw)
{
    lsi_thread *thread = raw;

#if defined(__linux__)
    (void)pthread_setname_np(pthread_self(), thread->name);
#elif defined(__APPLE__)
    (void)pthread_setname_np(thread->name);
#endif
    thread->fn(thread->arg);
    return NULL;
}

ls_status lsi_thread_start(lsi_thread *thread, void (*fn)(void *arg), void *arg,
                           ls_error *err, const char *name_fmt, ...)
{
    sigset_t all, before;
    va_list args;
    int rc;

    va_start(args, name_fmt);
    (void)vsnprintf(thread->name, sizeof thread->name, name_fmt, args);
    va_end(args);
    thread->fn = fn;
    thread->arg = arg;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&thread->id, NULL, enter, thread);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        return lsi_fail(err, LS_RESOURCE_EXHAUSTED, -1,
                        "thread %s: the system gives no more threads (error %d); raise "
                        "the limit (ulimit -u) or use fewer",
                        thread->name, rc);
    }
    return LS_OK;
}

void lsi_thread_join(lsi_thread *thread)
{
    const int rc = pthread_join(thread->id, NULL);

    LSI_ASSERT(rc == 0);
}

void lsi_mutex_init(lsi_mutex *mutex)
{
    const int rc = pthread_mutex_init(&mutex->raw, NULL);

    LSI_ASSERT(rc == 0); // without attributes none of our systems refuses
}

void lsi_mutex_destroy(lsi_mutex *mutex)
{
    (void)pthread_mutex_destroy(&mutex->raw);
}

void lsi_mutex_lock(lsi_mutex *mutex)
{
    const int rc = pthread_mutex_lock(&mutex->raw);

    LSI_ASSERT(rc == 0);
}

bool lsi_mutex_try(lsi_mutex *mutex)
{
    return pthread_mutex_trylock(&mutex->raw) == 0;
}

void lsi_mutex_unlock(lsi_mutex *mutex)
{
    const int rc = pthread_mutex_unlock(&mutex->raw);

    LSI_ASSERT(rc == 0);
}

static void init_cond(lsi_cond *cond, int shared)
{
    pthread_condattr_t attr;
    int rc = pthread_condattr_init(&attr);

    LSI_ASSERT(rc == 0);
#ifndef __APPLE__ // there waits take what is left instead
    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    LSI_ASSERT(rc == 0);
#endif
    rc = pthread_condattr_setpshared(&attr, shared);
    LSI_ASSERT(rc == 0);
    rc = pthread_cond_init(&cond->raw, &attr);
    (void)pthread_condattr_destroy(&attr);
    LSI_ASSERT(rc == 0);
}

void lsi_cond_init(lsi_cond *cond)
{
    init_cond(cond, PTHREAD_PROCESS_PRIVATE);
}

#ifndef __linux__
/* What a word in shared memory sleeps with. */
static void init_shared_lock(lsi_mutex *mutex, lsi_cond *cond)
{
    pthread_mutexattr_t attr;
    int rc = pthread_mutexattr_init(&attr);

    LSI_ASSERT(rc == 0);
    rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    LSI_ASSERT(rc == 0);
    rc = pthread_mutex_init(&mutex->raw, &attr);
    (void)pthread_mutexattr_destroy(&attr);
    LSI_ASSERT(rc == 0);
    init_cond(cond, PTHREAD_PROCESS_SHARED);
}
#endif

void lsi_cond_destroy(lsi_cond *cond)
{
    (void)pthread_cond_destroy(&cond->raw);
}

bool lsi_cond_wait(lsi_cond *cond, lsi_mutex *mutex, lsi_deadline deadline)
{
    struct timespec t;
    int rc;

    if (deadline == LSI_DEADLINE_NEVER) {
        rc = pthread_cond_wait(&cond->raw, &mutex->raw);
        LSI_ASSERT(rc == 0);
        return true;
    }
#ifdef __APPLE__
    const int64_t ns = lsi_deadline_left_ns(deadline);

    t.tv_sec = (time_t)(ns / NS_PER_S);
    t.tv_nsec = (long)(ns % NS_PER_S);
    rc = pthread_cond_timedwait_relative_np(&cond->raw, &mutex->raw, &t);
#else
    if (deadline < 0) {
        deadline = 0;
    }
    t.tv_sec = (time_t)(deadline / NS_PER_S);
    t.tv_nsec = (long)(deadline % NS_PER_S);
    rc = pthread_cond_timedwait(&cond->raw, &mutex->raw, &t);
#endif
    LSI_ASSERT(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}

void lsi_cond_signal(lsi_cond *cond)
{
    (void)pthread_cond_signal(&cond->raw);
}

void lsi_cond_broadcast(lsi_cond *cond)
{
    (void)pthread_cond_broadcast(&cond->raw);
}

void lsi_once_run(lsi_once *once, void (*fn)(void))
{
    (void)pthread_once(&once->raw, fn);
}

#ifdef __linux__
_Static_assert(sizeof(lsi_word) == 8, "a word has one layout in all processes");
#endif

void lsi_word_init(lsi_word *word, unsigned value)
{
    atomic_init(&word->value, value);
    atomic_init(&word->sleepers, 0);
#ifndef __linux__
    lsi_mutex_init(&word->mutex);
    lsi_cond_init(&word->cond);
#endif
}

void lsi_word_init_shared(lsi_word *word, unsigned value)
{
    atomic_init(&word->value, value);
    atomic_init(&word->sleepers, LSI_WORD_SHARED);
#ifndef __linux__
    init_shared_lock(&word->mutex, &word->cond);
#endif
}

void lsi_word_destroy(lsi_word *word)
{
#ifndef __linux__
    lsi_mutex_destroy(&word->mutex);
    lsi_cond_destroy(&word->cond);
#else
    (void)word;
#endif
}

unsigned lsi_word_get(lsi_word *word)
{
    return atomic_load_explicit(&word->value, memory_order_acquire);
}

#ifdef __linux__
/* The kernel finds the waiters of a private word faster, in this process only. */
static int reach(unsigned sleepers)
{
    return (sleepers & LSI_WORD_SHARED) != 0 ? 0 : FUTEX_PRIVATE_FLAG;
}
#endif

/*
 * The change of the value and the look at `sleepers` here, the change of `sleepers` and
 * the look at the value in lsi_word_sleep(), are all sequentially consistent: one of the
 * two threads sees the other, so no wake-up is lost.
 */
static void wake(lsi_word *word)
{
    const unsigned sleepers = atomic_load(&word->sleepers);

    if ((sleepers & ~LSI_WORD_SHARED) == 0) {
        return;
    }
#ifdef __linux__
    (void)syscall(SYS_futex, &word->value, FUTEX_WAKE | reach(sleepers), INT32_MAX, NULL,
                  NULL, 0);
#else
    lsi_mutex_lock(&word->mutex); // no thread is between its check and its sleep
    lsi_mutex_unlock(&word->mutex);
    lsi_cond_broadcast(&word->cond);
#endif
}

void lsi_word_set(lsi_word *word, unsigned value)
{
    atomic_store(&word->value, value);
    wake(word);
}

void lsi_word_add(lsi_word *word, unsigned n)
{
    (void)atomic_fetch_add(&word->value, n);
    wake(word);
}

bool lsi_word_try(lsi_word *word, unsigned from, unsigned to)
{
    return atomic_compare_exchange_strong(&word->value, &from, to);
}

void lsi_word_drop(lsi_word *word)
{
    if (atomic_fetch_sub(&word->value, 1) == 1) {
        wake(word);
    }
}

void lsi_word_sleep(lsi_word *word, unsigned seen, lsi_deadline deadline)
{
    const unsigned sleepers = atomic_fetch_add(&word->sleepers, 1);

#ifdef __linux__
    {
        const int64_t ns = lsi_deadline_left_ns(deadline);
        const struct timespec left = {.tv_sec = (time_t)(ns / NS_PER_S),
                                      .tv_nsec = (long)(ns % NS_PER_S)};

        (void)syscall(SYS_futex, &word->value, FUTEX_WAIT | reach(sleepers), seen,
                      deadline == LSI_DEADLINE_NEVER ? NULL : &left, NULL, 0);
    }
#else
    (void)sleepers;
    lsi_mutex_lock(&word->mutex);
    if (atomic_load(&word->value) == seen) {
        (void)lsi_cond_wait(&word->cond, &word->mutex, deadline);
    }
    lsi_mutex_unlock(&word->mutex);
#endif
    (void)atomic_fetch_sub(&word->sleepers, 1);
}

/* Waits for (value == wanted) == equal; returns the value. */
static unsigned wait_for(lsi_word *word, unsigned wanted, bool equal, int64_t spin_ns)
{
    unsigned value = lsi_word_get(word);

    if ((value == wanted) == equal) {
        return value;
    }
    if (spin_ns > 0) {
        const int64_t until = lsi_now_ns() + spin_ns;

        do {
            for (int i = 0; i < PAUSES_A_LOOK; i++) {
                lsi_pause();
                value = lsi_word_get(word);
                if ((value == wanted) == equal) {
                    return value;
                }
            }
        } while (lsi_now_ns() < until);
    }
    while ((value == wanted) != equal) {
        lsi_word_sleep(word, value, LSI_DEADLINE_NEVER);
        value = lsi_word_get(word);
    }
    return value;
}

unsigned lsi_word_wait_not(lsi_word *word, unsigned seen, int64_t spin_ns)
{
    return wait_for(word, seen, false, spin_ns);
}

void lsi_word_wait_zero(lsi_word *word, int64_t spin_ns)
{
    (void)wait_for(word, 0, true, spin_ns);
}

void lsi_yield(void)
{
    (void)sched_yield();
}

/* Where the system does not report which cores: the number that is online. */
static int count_online(int *cores, int room)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int count = online > 0 ? (int)LSI_MIN(online, 65536) : 1;

    for (int i = 0; i < LSI_MIN(count, room); i++) {
        cores[i] = i;
    }
    return count;
}

#ifdef __linux__
#define MOST_CORES 8192 // what Linux can be built for

typedef union core_mask {
    cpu_set_t set;
    unsigned char bytes[MOST_CORES / 8];
} core_mask;

/* The mask of the thread that was pinned first, as it was until then. */
static struct {
    lsi_mutex lock; // guards the rest
    bool known;
    core_mask mask;
} before = {LSI_MUTEX_INIT, false, {.bytes = {0}}};

static int list_cores(const core_mask *mask, int *cores, int room)
{
    int count = 0;

    for (size_t i = 0; i < MOST_CORES; i++) {
        if (CPU_ISSET_S(i, sizeof *mask, &mask->set)) {
            if (count < room) {
                cores[count] = (int)i;
            }
            count++;
        }
    }
    return count;
}

int lsi_affinity_get(int *cores, int room)
{
    core_mask mask = {.bytes = {0}};

    if (sched_getaffinity(0, sizeof mask, &mask.set) != 0) {
        return count_online(cores, room);
    }
    return list_cores(&mask, cores, room);
}

static void note_before(void)
{
    lsi_mutex_lock(&before.lock);
    if (!before.known) {
        before.known = sched_getaffinity(0, sizeof before.mask, &before.mask.set) == 0;
    }
    lsi_mutex_unlock(&before.lock);
}

int lsi_affinity_unpinned(int *cores, int room)
{
    int count = 0;

    lsi_mutex_lock(&before.lock);
    if (before.known) {
        count = list_cores(&before.mask, cores, room);
    }
    lsi_mutex_unlock(&before.lock);
    return count > 0 ? count : lsi_affinity_get(cores, room);
}

ls_status lsi_affinity_set(const int *cores, int count, ls_error *err)
{
    core_mask mask = {.bytes = {0}};

    note_before();
    for (int i = 0; i < count; i++) {
        if (cores[i] < 0 || cores[i] >= MOST_CORES) {
            return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "there is no core %d",
                            cores[i]);
        }
        CPU_SET_S((size_t)cores[i], sizeof mask, &mask.set);
    }
    if (sched_setaffinity(0, sizeof mask, &mask.set) != 0) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "cannot stay on %d cores, the first of them %d (error %d): "
                        "they are not this process's",
                        count, count > 0 ? cores[0] : -1, errno);
    }
    return LS_OK;
}
#else
int lsi_affinity_get(int *cores, int room)
{
    return count_online(cores, room);
}

int lsi_affinity_unpinned(int *cores, int room)
{
    return count_online(cores, room);
}

ls_status lsi_affinity_set(const int *cores, int count, ls_error *err)
{
    (void)cores;
    return lsi_fail(err, LS_UNIMPLEMENTED, -1,
                    "this system does not let a thread choose its %d cores", count);
}
#endif
