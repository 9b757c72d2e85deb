/*
 * A feed distributes the elements of one pipeline to replicas in turn. One thread
 * prefetches elements into a queue. A reader (lsi_feed_take()) takes the first element of
 * the queue; if the queue is empty and the thread is not reading the pipeline, the reader
 * reads the next element itself. So a reader waits for the thread only while the thread
 * is reading the element that the reader needs.
 *
 * Prefetching saves at most the time to make an element, and at most the time between two
 * calls of the reader. Where either is less than the cost of waking a thread (cheap_ns),
 * the thread sleeps.
 *
 * `pulling` is a lock on the pipeline. Elements stay in order because only its holder
 * reads the pipeline, and because a reader takes it only when the queue is empty. The end
 * or a failure, which stops prefetching, is stored in `tail` and returned after the
 * elements in the queue.
 */
#include "input/input.h"

struct lsi_feed {
    lsi_feed_options opts; /* dataset and devices are owned by the distributed dataset */
    lsi_iterator *it;      /* used by the holder of `pulling` */
    uint64_t dealt;        /* elements made so far; used by the holder of `pulling` */
    int64_t cost_ns;       /* moving average of the time to make one; used by the same */

    lsi_mutex lock;       /* guards the fields below */
    int64_t last_call_ns; /* when the last call of the reader ended; -1: none yet */
    int64_t between_ns;   /* moving average of the time between calls; -1: not known */
    lsi_cond more;        /* an element was queued, or `pulling` was released */
    lsi_cond room;        /* the thread may have work */
    ls_value **queue;
    size_t first, count, capacity; /* of the queue; capacity may exceed `ahead` */
    ls_error tail;                 /* the end or a failure after the queue; LS_OK: none */
    bool pulling;
    bool woken; /* the thread has been signalled already */
    bool waiting;
    bool stop;
    bool broken; /* a restore failed halfway: `tail` is returned until one succeeds */
    bool started;
    lsi_thread thread;
};

/* The next element of the pipeline or of the callable, on the device of its replica. */
static ls_status make_element(lsi_feed *f, ls_value **out, ls_error *err)
{
    const lsi_feed_options *o = &f->opts;
    ls_value *v = NULL;
    ls_status st = o->callable != NULL ? o->callable(o->user, &v, err)
                                       : lsi_iterator_next(f->it, &v, err);

    if (st == LS_OK && v == NULL) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                           "input: the callable returned no value");
    }
    if (st != LS_OK) {
        return st;
    }
    st = lsi_value_move(v, o->devices != NULL ? o->devices[f->dealt % o->ndevices] : NULL,
                        out, err);
    f->dealt += st == LS_OK ? 1 : 0;
    return st;
}

/* A moving average over about 8 steps, each of one element per replica. */
static int64_t moving_average(const lsi_feed *f, int64_t mean, int64_t x)
{
    const int64_t span = 8 * (int64_t)LSI_MAX(f->opts.ndevices, 1);

    return mean + (x - mean) / span;
}

/* The time; 0 without prefetching, where it is not used. */
static int64_t time_now(const lsi_feed *f)
{
    return f->opts.ahead > 0 ? f->opts.now_ns() : 0;
}

/*
 * Makes an element and updates the average time it takes. *at: in, the time before; out,
 * the time after. For the holder of `pulling` only.
 */
static ls_status pull_element(lsi_feed *f, int64_t *at, ls_value **out, ls_error *err)
{
    const bool first = f->dealt == 0;
    const int64_t begin = *at;
    const ls_status st = make_element(f, out, err);

    *at = time_now(f);
    f->cost_ns = first ? *at - begin : moving_average(f, f->cost_ns, *at - begin);
    return st;
}

/* Updates the average time between calls of the reader; the lock is held. */
static void note_call(lsi_feed *f, int64_t at)
{
    if (f->last_call_ns >= 0) {
        const int64_t gap = at - f->last_call_ns;

        f->between_ns = f->between_ns < 0 ? gap : moving_average(f, f->between_ns, gap);
    }
}

static void note_tail(lsi_feed *f, ls_status st, const ls_error *err)
{
    f->tail = *err;
    f->tail.code = st;
}

static bool may_read_ahead(const lsi_feed *f)
{
    return !f->pulling && f->count < f->opts.ahead && f->tail.code == LS_OK &&
           f->cost_ns >= f->opts.cheap_ns &&
           (f->opts.cheap_ns == 0 || f->between_ns >= f->opts.cheap_ns);
}

static void read_ahead(void *arg)
{
    lsi_feed *f = arg;

    lsi_mutex_lock(&f->lock);
    while (!f->stop) {
        ls_error err = LS_ERROR_INIT;
        ls_value *v = NULL;
        int64_t at = 0;
        ls_status st;

        if (!may_read_ahead(f)) {
            f->woken = false;
            (void)lsi_cond_wait(&f->room, &f->lock, LSI_DEADLINE_NEVER);
            continue;
        }
        f->pulling = true;
        lsi_mutex_unlock(&f->lock);
        at = time_now(f);
        st = pull_element(f, &at, &v, &err);
        lsi_mutex_lock(&f->lock);
        f->pulling = false;
        if (st == LS_OK) {
            f->queue[(f->first + f->count++) % f->capacity] = v;
        } else {
            note_tail(f, st, &err);
        }
        if (f->waiting) {
            lsi_cond_broadcast(&f->more);
        }
    }
    lsi_mutex_unlock(&f->lock);
}

/* Starts the thread. If that fails, elements are made when the reader asks for them. */
static void start_reading(lsi_feed *f)
{
    f->woken = true;
    f->started = lsi_thread_start(&f->thread, read_ahead, f, NULL, "ls-feed") == LS_OK;
    if (!f->started) {
        f->opts.ahead = 0;
    }
}

/* Wakes the thread once the queue is half empty, not per element; the lock is held. */
static void wake_thread(lsi_feed *f)
{
    if (f->woken || f->count > f->opts.ahead / 2 || !may_read_ahead(f)) {
        return;
    }
    if (!f->started) {
        start_reading(f);
    } else {
        f->woken = true;
        lsi_cond_signal(&f->room);
    }
}

/* Waits for `pulling` and takes it; the lock is held. */
static void take_pulling(lsi_feed *f)
{
    while (f->pulling) {
        f->waiting = true;
        (void)lsi_cond_wait(&f->more, &f->lock, LSI_DEADLINE_NEVER);
        f->waiting = false;
    }
    f->pulling = true;
}

static void release_pulling(lsi_feed *f)
{
    f->pulling = false;
    wake_thread(f);
}

ls_status lsi_feed_open(const lsi_feed_options *opts, lsi_feed **out, ls_error *err)
{
    lsi_feed *f = lsi_alloc(1, sizeof *f);
    ls_status st = LS_OK;

    if (f == NULL) {
        return lsi_fail_memory(err, "an iterator", sizeof *f);
    }
    f->opts = *opts;
    f->opts.now_ns = opts->now_ns != NULL ? opts->now_ns : lsi_now_ns;
    f->last_call_ns = f->between_ns = -1;
    f->tail = (ls_error)LS_ERROR_INIT;
    f->opts.ahead = opts->callable != NULL ? 0 : opts->ahead;
    f->capacity = f->opts.ahead;
    lsi_mutex_init(&f->lock);
    lsi_cond_init(&f->more);
    lsi_cond_init(&f->room);
    if (f->capacity > 0) {
        f->queue = lsi_alloc(f->capacity, sizeof(ls_value *));
        if (f->queue == NULL) {
            st = lsi_fail_memory(err, "an iterator", f->capacity * sizeof(ls_value *));
        }
    }
    if (st == LS_OK && opts->callable == NULL) {
        st = lsi_pipeline_iterate(opts->dataset, opts->runtime, &f->it, err);
    }
    if (st != LS_OK) {
        lsi_feed_close(f);
        return st;
    }
    *out = f;
    return LS_OK;
}

/* Releases the elements in the queue. */
static void drop_queue(lsi_feed *f)
{
    for (; f->count > 0; f->count--) {
        ls_value_release(f->queue[f->first]);
        f->first = (f->first + 1) % f->capacity;
    }
}

void lsi_feed_close(lsi_feed *f)
{
    if (f == NULL) {
        return;
    }
    if (f->started) {
        lsi_mutex_lock(&f->lock);
        f->stop = true;
        lsi_cond_signal(&f->room);
        lsi_mutex_unlock(&f->lock);
        lsi_thread_join(&f->thread);
    }
    drop_queue(f);
    lsi_iterator_close(f->it);
    lsi_cond_destroy(&f->room);
    lsi_cond_destroy(&f->more);
    lsi_mutex_destroy(&f->lock);
    lsi_free(f->queue);
    lsi_free(f);
}

/*
 * Takes the first element of the queue or, if it is empty, the stored end or failure;
 * false: there is neither. The lock is held.
 */
static bool take_ready(lsi_feed *f, ls_value **out, ls_status *st, ls_error *err)
{
    if (f->count > 0) {
        *out = f->queue[f->first];
        f->first = (f->first + 1) % f->capacity;
        f->count--;
        *st = LS_OK;
        wake_thread(f);
        return true;
    }
    if (f->tail.code == LS_OK) {
        return false;
    }
    *st = lsi_fail_again(err, &f->tail);
    if (*st != LS_OUT_OF_RANGE && !f->broken) { // after a failure the next call reads on
        f->tail = (ls_error)LS_ERROR_INIT;
        wake_thread(f);
    }
    return true;
}

ls_status lsi_feed_take(lsi_feed *f, ls_value **out, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    int64_t at = time_now(f);
    ls_status st = LS_OK;

    lsi_mutex_lock(&f->lock);
    note_call(f, at);
    while (!take_ready(f, out, &st, err)) {
        if (f->pulling) {
            f->waiting = true;
            (void)lsi_cond_wait(&f->more, &f->lock, LSI_DEADLINE_NEVER);
            f->waiting = false;
            at = time_now(f);
            continue;
        }
        f->pulling = true;
        lsi_mutex_unlock(&f->lock);
        st = pull_element(f, &at, out, &why);
        lsi_mutex_lock(&f->lock);
        if (st == LS_OUT_OF_RANGE) {
            note_tail(f, st, &why);
        }
        release_pulling(f);
        if (st != LS_OK) {
            why.code = st; // user code may return a status without an error
            st = lsi_fail_again(err, &why);
        }
        break;
    }
    f->last_call_ns = at;
    lsi_mutex_unlock(&f->lock);
    return st;
}

ls_status lsi_feed_save(lsi_feed *f, lsi_state_writer *w, ls_error *err)
{
    ls_status st;

    if (f->it == NULL) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "input: the position of a callable cannot be saved");
    }
    lsi_mutex_lock(&f->lock);
    take_pulling(f); // from here on nothing changes; the queue is part of the state
    lsi_state_write_u64(w, f->dealt);
    lsi_state_write_u64(w, f->count);
    for (size_t i = 0; i < f->count; i++) {
        lsi_state_write_value(w, f->queue[(f->first + i) % f->capacity]);
    }
    lsi_state_write_failure(w, &f->tail);
    lsi_mutex_unlock(&f->lock);
    st = lsi_pipeline_save(f->it, w, err);
    lsi_mutex_lock(&f->lock);
    release_pulling(f);
    lsi_mutex_unlock(&f->lock);
    return st;
}

/* Reads the saved queue; ours grows if it was larger. */
static ls_status read_ready(lsi_feed *f, lsi_state_reader *r, ls_error *err)
{
    uint64_t n = 0;
    // each element takes at least one byte
    ls_status st = lsi_state_read_count(r, r->size, &n, err);

    if (st == LS_OK && n > f->capacity) {
        ls_value **queue = lsi_realloc(f->queue, f->capacity, n, sizeof(ls_value *));

        if (queue == NULL) {
            return lsi_fail_memory(err, "an iterator", n * sizeof(ls_value *));
        }
        f->queue = queue;
        f->capacity = n;
    }
    for (uint64_t i = 0; i < n && st == LS_OK; i++) {
        ls_value *v = NULL;
        ls_device *device = f->opts.devices == NULL
                                ? NULL
                                : f->opts.devices[(f->dealt - n + i) % f->opts.ndevices];

        st = lsi_state_read_value(r, &v, err);
        if (st == LS_OK) {
            st = lsi_value_place(v, device, &f->queue[f->count], err);
            ls_value_release(v);
        }
        f->count += st == LS_OK ? 1 : 0;
    }
    return st;
}

/* For the holder of `pulling` only: the thread does not touch the feed meanwhile. */
static ls_status read_position(lsi_feed *f, lsi_state_reader *r, ls_error *err)
{
    ls_status st = lsi_state_read_u64(r, &f->dealt, err);

    r->device = f->it->as.device;
    drop_queue(f);
    f->first = 0;
    if (st == LS_OK) {
        st = read_ready(f, r, err);
    }
    if (st == LS_OK) {
        f->tail = (ls_error)LS_ERROR_INIT;
        st = lsi_state_read_failure(r, &f->tail, err);
    }
    return st == LS_OK ? lsi_pipeline_restore(&f->it, r, err) : st;
}

ls_status lsi_feed_restore(lsi_feed *f, lsi_state_reader *r, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    ls_status st;

    if (f->it == NULL) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "input: the position of a callable cannot be restored");
    }
    lsi_mutex_lock(&f->lock);
    take_pulling(f);
    lsi_mutex_unlock(&f->lock);
    st = read_position(f, r, &why);
    lsi_mutex_lock(&f->lock);
    f->broken = st != LS_OK;
    if (f->broken) { // partly restored: no data until a restore succeeds
        drop_queue(f);
        note_tail(f, st == LS_OUT_OF_RANGE ? LS_DATA_LOSS : st, &why);
        st = lsi_fail_again(err, &f->tail);
    }
    release_pulling(f);
    lsi_mutex_unlock(&f->lock);
    return st;
}
