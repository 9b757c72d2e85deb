/*
 * The threads of the input. They are started when work is submitted, sleep when there is
 * none, and are joined when the last iterator that uses them is closed. An iterator that
 * waits for work that no thread has begun cancels it and does it itself, so a pipeline
 * makes progress with any number of threads, including none.
 */
#include "data/input_threads.h"

#include "base/base.h"
#include "os/thread.h"

#include <limits.h>
#include <string.h>

enum { MOST_THREADS = 16 };

struct work {
    void (*fn)(void *arg);
    void *arg;
};

struct threads {
    lsi_mutex lock; // guards all of it; an iterator's lock may be held when it is taken
    lsi_cond more;
    struct work *queue; // circular
    size_t first, count, room;
    int started, idle;
    bool stop;
    lsi_thread threads[MOST_THREADS];
};

/* The threads of the process: created by the first submit, joined by the last user. */
static struct {
    lsi_mutex lock; // guards the rest; taken before the lock of the threads
    struct threads *threads;
    int users;
    atomic_int waiting; // length of the queue, read without the lock
} input = {LSI_MUTEX_INIT, NULL, 0, 0};

int lsi_input_threads_count(void)
{
    static atomic_int known; // every thread computes the same number

    if (atomic_load(&known) == 0) {
        int n = LSI_MIN(lsi_affinity_unpinned(NULL, 0), lsi_cpu_quota());

        n = LSI_MIN(LSI_MAX(n, 1), MOST_THREADS);
        atomic_store(&known, n);
    }
    return atomic_load(&known);
}

/*
 * A thread inherits the cores of the thread that starts it, which may be pinned, as a
 * replica's is. Threads of the input use all cores of the process.
 */
static void use_all_cores(void)
{
    const int n = lsi_affinity_unpinned(NULL, 0);
    int *cores =
        n > lsi_affinity_get(NULL, 0) ? lsi_alloc((size_t)n, sizeof *cores) : NULL;
    ls_error why = LS_ERROR_INIT;

    if (cores != NULL) {
        const int listed = LSI_MIN(lsi_affinity_unpinned(cores, n), n);

        if (lsi_affinity_set(cores, listed, &why) != LS_OK) {
            lsi_log(LS_LOG_WARNING, "input: a thread stays on the core of a replica: %s",
                    why.message);
        }
        lsi_free(cores);
    }
}

static void serve_queue(void *arg)
{
    struct threads *p = arg;

    use_all_cores();
    lsi_mutex_lock(&p->lock);
    for (;;) {
        struct work w;

        while (p->count == 0 && !p->stop) {
            p->idle++;
            (void)lsi_cond_wait(&p->more, &p->lock, LSI_DEADLINE_NEVER);
            p->idle--;
        }
        if (p->count == 0) {
            break;
        }
        w = p->queue[p->first];
        p->first = (p->first + 1) % p->room;
        p->count--;
        atomic_fetch_sub(&input.waiting, 1);
        lsi_mutex_unlock(&p->lock);
        w.fn(w.arg);
        lsi_mutex_lock(&p->lock);
    }
    lsi_mutex_unlock(&p->lock);
}

static struct threads *create_threads(void)
{
    struct threads *p = lsi_alloc(1, sizeof *p);

    if (p != NULL) {
        lsi_mutex_init(&p->lock);
        lsi_cond_init(&p->more);
    }
    return p;
}

static void join_threads(struct threads *p)
{
    if (p == NULL) {
        return;
    }
    lsi_mutex_lock(&p->lock);
    p->stop = true;
    lsi_cond_broadcast(&p->more);
    lsi_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++) {
        lsi_thread_join(&p->threads[i]);
    }
    lsi_cond_destroy(&p->more);
    lsi_mutex_destroy(&p->lock);
    lsi_free(p->queue);
    lsi_free(p);
}

void lsi_input_threads_use(void)
{
    lsi_mutex_lock(&input.lock);
    input.users++;
    lsi_mutex_unlock(&input.lock);
}

void lsi_input_threads_leave(void)
{
    struct threads *last = NULL;

    lsi_mutex_lock(&input.lock);
    LSI_ASSERT(input.users > 0);
    if (--input.users == 0) {
        last = input.threads;
        input.threads = NULL;
    }
    lsi_mutex_unlock(&input.lock);
    join_threads(last);
}

static bool push_work(struct threads *p, struct work w)
{
    if (p->count == p->room) {
        const size_t room = LSI_MAX(16, 2 * p->room);
        struct work *grown = lsi_alloc(room, sizeof *grown);

        if (grown == NULL) {
            return false;
        }
        for (size_t i = 0; i < p->count; i++) {
            grown[i] = p->queue[(p->first + i) % p->room];
        }
        lsi_free(p->queue);
        p->queue = grown;
        p->first = 0;
        p->room = room;
    }
    p->queue[(p->first + p->count) % p->room] = w;
    p->count++;
    atomic_fetch_add(&input.waiting, 1);
    return true;
}

/* Starts one more thread if there is more work in the queue than idle threads. */
static void start_thread(struct threads *p)
{
    if ((size_t)p->idle >= p->count || p->started >= lsi_input_threads_count()) {
        return;
    }
    if (lsi_thread_start(&p->threads[p->started], serve_queue, p, NULL, "ls-input-%d",
                         p->started) == LS_OK) {
        p->started++;
    }
}

bool lsi_input_threads_submit(void (*fn)(void *arg), void *arg)
{
    struct threads *p = NULL;
    bool taken = false;

    lsi_mutex_lock(&input.lock);
    LSI_ASSERT(input.users > 0);
    if (input.threads == NULL) {
        input.threads = create_threads();
    }
    p = input.threads; // it lives on: the caller is one of its users
    lsi_mutex_unlock(&input.lock);
    if (p == NULL) {
        return false;
    }
    lsi_mutex_lock(&p->lock);
    taken = push_work(p, (struct work){fn, arg});
    if (taken) {
        start_thread(p);
        if (p->started == 0) { // the system cannot start a thread
            p->count--;
            atomic_fetch_sub(&input.waiting, 1);
            taken = false;
        } else {
            lsi_cond_signal(&p->more);
        }
    }
    lsi_mutex_unlock(&p->lock);
    return taken;
}

/* Removes the i-th entry of the queue. */
static void drop_work(struct threads *p, size_t i)
{
    for (; i + 1 < p->count; i++) {
        p->queue[(p->first + i) % p->room] = p->queue[(p->first + i + 1) % p->room];
    }
    p->count--;
    atomic_fetch_sub(&input.waiting, 1);
}

bool lsi_input_threads_cancel(void (*fn)(void *arg), void *arg)
{
    struct threads *p = NULL;
    bool found = false;

    lsi_mutex_lock(&input.lock);
    p = input.threads;
    lsi_mutex_unlock(&input.lock);
    if (p == NULL) {
        return false;
    }
    lsi_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->count && !found; i++) {
        const struct work *w = &p->queue[(p->first + i) % p->room];

        if (w->fn == fn && w->arg == arg) {
            drop_work(p, i);
            found = true;
        }
    }
    lsi_mutex_unlock(&p->lock);
    return found;
}

bool lsi_input_threads_backlog(void)
{
    return atomic_load_explicit(&input.waiting, memory_order_relaxed) > 0;
}
