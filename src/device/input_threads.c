/*
 * The threads of a runtime's input. They are started when work is submitted and sleep
 * when there is none. An iterator that waits for work that no thread has begun cancels it
 * and does it itself, so a pipeline makes progress with any number of threads, including
 * none.
 */
#include "device/input_threads.h"

#include "base/base.h"
#include "os/thread.h"

enum { MOST_THREADS = 16 };

struct work {
    void (*fn)(void *arg);
    void *arg;
};

struct lsi_input_threads {
    int most;            // threads
    atomic_size_t count; // of the queue; changed with the lock, read also without
    lsi_mutex lock; // guards the rest; an iterator's lock may be held when it is taken
    lsi_cond more;
    struct work *queue; // circular
    size_t first, room;
    int started, idle;
    bool stop;
    lsi_thread threads[MOST_THREADS];
};

int lsi_input_threads_count(const lsi_input_threads *t)
{
    return t != NULL ? t->most : 1;
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
    lsi_input_threads *t = arg;

    use_all_cores();
    lsi_mutex_lock(&t->lock);
    for (;;) {
        struct work w;

        while (t->count == 0 && !t->stop) {
            t->idle++;
            (void)lsi_cond_wait(&t->more, &t->lock, LSI_DEADLINE_NEVER);
            t->idle--;
        }
        if (t->count == 0) {
            break;
        }
        w = t->queue[t->first];
        t->first = (t->first + 1) % t->room;
        t->count--;
        lsi_mutex_unlock(&t->lock);
        w.fn(w.arg);
        lsi_mutex_lock(&t->lock);
    }
    lsi_mutex_unlock(&t->lock);
}

lsi_input_threads *lsi_input_threads_create(void)
{
    lsi_input_threads *t = lsi_alloc(1, sizeof *t);

    if (t != NULL) {
        const int cores = LSI_MIN(lsi_affinity_unpinned(NULL, 0), lsi_cpu_quota());

        t->most = LSI_MIN(LSI_MAX(cores, 1), MOST_THREADS);
        atomic_init(&t->count, 0);
        lsi_mutex_init(&t->lock);
        lsi_cond_init(&t->more);
    }
    return t;
}

void lsi_input_threads_release(lsi_input_threads *t)
{
    if (t == NULL) {
        return;
    }
    lsi_mutex_lock(&t->lock);
    t->stop = true;
    lsi_cond_broadcast(&t->more);
    lsi_mutex_unlock(&t->lock);
    for (int i = 0; i < t->started; i++) {
        lsi_thread_join(&t->threads[i]);
    }
    lsi_cond_destroy(&t->more);
    lsi_mutex_destroy(&t->lock);
    lsi_free(t->queue);
    lsi_free(t);
}

static bool push_work(lsi_input_threads *t, struct work w)
{
    if (t->count == t->room) {
        const size_t room = LSI_MAX(16, 2 * t->room);
        struct work *grown = lsi_alloc(room, sizeof *grown);

        if (grown == NULL) {
            return false;
        }
        for (size_t i = 0; i < t->count; i++) {
            grown[i] = t->queue[(t->first + i) % t->room];
        }
        lsi_free(t->queue);
        t->queue = grown;
        t->first = 0;
        t->room = room;
    }
    t->queue[(t->first + t->count) % t->room] = w;
    t->count++;
    return true;
}

/* Starts one more thread if there is more work in the queue than idle threads. */
static void start_thread(lsi_input_threads *t)
{
    if ((size_t)t->idle >= t->count || t->started >= t->most) {
        return;
    }
    if (lsi_thread_start(&t->threads[t->started], serve_queue, t, NULL, "ls-input-%d",
                         t->started) == LS_OK) {
        t->started++;
    }
}

bool lsi_input_threads_submit(lsi_input_threads *t, void (*fn)(void *arg), void *arg)
{
    bool taken = false;

    if (t == NULL) {
        return false;
    }
    lsi_mutex_lock(&t->lock);
    taken = push_work(t, (struct work){fn, arg});
    if (taken) {
        start_thread(t);
        if (t->started == 0) { // the system cannot start a thread
            t->count--;
            taken = false;
        } else {
            lsi_cond_signal(&t->more);
        }
    }
    lsi_mutex_unlock(&t->lock);
    return taken;
}

/* Removes the i-th entry of the queue. */
static void drop_work(lsi_input_threads *t, size_t i)
{
    for (; i + 1 < t->count; i++) {
        t->queue[(t->first + i) % t->room] = t->queue[(t->first + i + 1) % t->room];
    }
    t->count--;
}

bool lsi_input_threads_cancel(lsi_input_threads *t, void (*fn)(void *arg), void *arg)
{
    bool found = false;

    if (t == NULL) {
        return false;
    }
    lsi_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->count && !found; i++) {
        const struct work *w = &t->queue[(t->first + i) % t->room];

        if (w->fn == fn && w->arg == arg) {
            drop_work(t, i);
            found = true;
        }
    }
    lsi_mutex_unlock(&t->lock);
    return found;
}

bool lsi_input_threads_backlog(const lsi_input_threads *t)
{
    return t != NULL && atomic_load_explicit(&t->count, memory_order_relaxed) > 0;
}
