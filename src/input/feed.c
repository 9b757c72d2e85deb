/*
 * A feed deals the elements of one pipeline to replicas in turn. One thread reads ahead;
 * who asks takes what is there, and if nothing is there and the thread is not at it,
 * makes the next element himself: a hand-over between threads is never on the way to data
 * that is ready or that nobody is making. What reading ahead can save is the making of an
 * element, and no more than the time that who takes is away between two. Where one of
 * them is less than waking a thread, it is not worth it: the thread sleeps.
 *
 * `pulling` is the right to ask the pipeline. Elements come in order because only its
 * holder asks, and because who takes asks only when nothing lies ready. What ends the
 * elements at this place, the end or a failure, comes after those that lie ready.
 */
#include "input/input.h"

struct lsi_feed {
    lsi_feed_options opts; /* dataset and devices: kept by the distributed dataset */
    lsi_iterator *it;      /* used by the holder of `pulling` */
    uint64_t dealt;        /* elements made so far; likewise */
    int64_t cost_ns;       /* of making one, the last ones counting most; likewise */

    lsi_mutex lock;  /* guards what follows */
    int64_t left_ns; /* when the last take ended; -1: there was none */
    int64_t away_ns; /* between two takes, the last ones counting most; -1: not known */
    lsi_cond more;   /* something was made, or `pulling` was given back */
    lsi_cond room;   /* the thread has something to do */
    ls_value **ring;
    size_t first, count, capacity; /* of the ring, which may hold more than `ahead` */
    ls_error tail;                 /* after what lies ready; code LS_OK: nothing yet */
    bool pulling;
    bool woken; /* the thread was told already */
    bool waiting;
    bool stop;
    bool broken; /* a restore failed half way: `tail` stays */
    bool started;
    lsi_thread thread;
};

/* The next element, wherever it comes from. */
static ls_status make_element(lsi_feed *f, ls_value **out, ls_error *err)
{
    const lsi_feed_options *o = &f->opts;
    ls_value *v = NULL;
    ls_status st = o->callable != NULL ? o->callable(o->user, &v, err)
                                       : lsi_iterator_next(f->it, &v, err);

    if (st == LS_OK && v == NULL) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                           "input: the callable gave no value");
    }
    if (st != LS_OK) {
        return st;
    }
    st = lsi_value_move(v, o->devices != NULL ? o->devices[f->dealt % o->ndevices] : NULL,
                        out, err);
    f->dealt += st == LS_OK ? 1 : 0;
    return st;
}

/* A mean that follows what it is of: over some steps, whatever parts they have. */
static int64_t follow(const lsi_feed *f, int64_t mean, int64_t x)
{
    const int64_t span = 8 * (int64_t)LSI_MAX(f->opts.ndevices, 1);

    return mean + (x - mean) / span;
}

/* The time, where it matters. */
static int64_t now(const lsi_feed *f)
{
    return f->opts.ahead > 0 ? f->opts.now_ns() : 0;
}

/* The same, and what it costs: *at is when it begins, then when it ended. Only for the
 * holder of `pulling`. */
static ls_status pull(lsi_feed *f, int64_t *at, ls_value **out, ls_error *err)
{
    const bool first = f->dealt == 0;
    const int64_t begin = *at;
    const ls_status st = make_element(f, out, err);

    *at = now(f);
    f->cost_ns = first ? *at - begin : follow(f, f->cost_ns, *at - begin);
    return st;
}

/* Notes how long who takes was away; the lock is held. */
static void arrive(lsi_feed *f, int64_t at)
{
    if (f->left_ns >= 0) {
        const int64_t away = at - f->left_ns;

        f->away_ns = f->away_ns < 0 ? away : follow(f, f->away_ns, away);
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
           (f->opts.cheap_ns == 0 || f->away_ns >= f->opts.cheap_ns);
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
        at = now(f);
        st = pull(f, &at, &v, &err);
        lsi_mutex_lock(&f->lock);
        f->pulling = false;
        if (st == LS_OK) {
            f->ring[(f->first + f->count++) % f->capacity] = v;
        } else {
            note_tail(f, st, &err);
        }
        if (f->waiting) {
            lsi_cond_broadcast(&f->more);
        }
    }
    lsi_mutex_unlock(&f->lock);
}

/* Without a thread the elements are made when they are asked for. */
static void start_reading(lsi_feed *f)
{
    f->woken = true;
    f->started = lsi_thread_start(&f->thread, read_ahead, f, NULL, "ls-feed") == LS_OK;
    if (!f->started) {
        f->opts.ahead = 0;
    }
}

/* Wakes the thread when half of what it may hold is gone, not for every element. */
static void wake(lsi_feed *f)
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

/* Waits for the right to ask the pipeline; the lock is held. */
static void seize(lsi_feed *f)
{
    while (f->pulling) {
        f->waiting = true;
        (void)lsi_cond_wait(&f->more, &f->lock, LSI_DEADLINE_NEVER);
        f->waiting = false;
    }
    f->pulling = true;
}

static void give_back(lsi_feed *f)
{
    f->pulling = false;
    wake(f);
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
    f->left_ns = f->away_ns = -1;
    f->tail = (ls_error)LS_ERROR_INIT;
    f->opts.ahead = opts->callable != NULL ? 0 : opts->ahead;
    f->capacity = f->opts.ahead;
    lsi_mutex_init(&f->lock);
    lsi_cond_init(&f->more);
    lsi_cond_init(&f->room);
    if (f->capacity > 0) {
        f->ring = lsi_alloc(f->capacity, sizeof(ls_value *));
        if (f->ring == NULL) {
            st = lsi_fail_memory(err, "an iterator", f->capacity * sizeof(ls_value *));
        }
    }
    if (st == LS_OK && opts->callable == NULL) {
        st = lsi_pipeline_iterate(opts->dataset, &f->it, err);
    }
    if (st != LS_OK) {
        lsi_feed_close(f);
        return st;
    }
    *out = f;
    return LS_OK;
}

/* Lets go of what lies ready. */
static void drop(lsi_feed *f)
{
    for (; f->count > 0; f->count--) {
        ls_value_release(f->ring[f->first]);
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
    drop(f);
    lsi_iterator_close(f->it);
    lsi_cond_destroy(&f->room);
    lsi_cond_destroy(&f->more);
    lsi_mutex_destroy(&f->lock);
    lsi_free(f->ring);
    lsi_free(f);
}

/* What lies ready, or what comes after it; false: nothing does. The lock is held. */
static bool take_ready(lsi_feed *f, ls_value **out, ls_status *st, ls_error *err)
{
    if (f->count > 0) {
        *out = f->ring[f->first];
        f->first = (f->first + 1) % f->capacity;
        f->count--;
        *st = LS_OK;
        wake(f);
        return true;
    }
    if (f->tail.code == LS_OK) {
        return false;
    }
    *st = lsi_fail_again(err, &f->tail);
    if (*st != LS_OUT_OF_RANGE && !f->broken) { // the next call goes on behind a failure
        f->tail = (ls_error)LS_ERROR_INIT;
        wake(f);
    }
    return true;
}

ls_status lsi_feed_take(lsi_feed *f, ls_value **out, ls_error *err)
{
    ls_error why = LS_ERROR_INIT;
    int64_t at = now(f);
    ls_status st = LS_OK;

    lsi_mutex_lock(&f->lock);
    arrive(f, at);
    while (!take_ready(f, out, &st, err)) {
        if (f->pulling) {
            f->waiting = true;
            (void)lsi_cond_wait(&f->more, &f->lock, LSI_DEADLINE_NEVER);
            f->waiting = false;
            at = now(f);
            continue;
        }
        f->pulling = true;
        lsi_mutex_unlock(&f->lock);
        st = pull(f, &at, out, &why);
        lsi_mutex_lock(&f->lock);
        if (st == LS_OUT_OF_RANGE) {
            note_tail(f, st, &why);
        }
        give_back(f);
        if (st != LS_OK) {
            why.code = st; // what the user's own code returned may say no more
            st = lsi_fail_again(err, &why);
        }
        break;
    }
    f->left_ns = at;
    lsi_mutex_unlock(&f->lock);
    return st;
}

ls_status lsi_feed_save(lsi_feed *f, lsi_state_writer *w, ls_error *err)
{
    ls_status st;

    if (f->it == NULL) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "input: what a callable gives next cannot be saved");
    }
    lsi_mutex_lock(&f->lock);
    seize(f); // nothing moves now: what lies ready is part of the position
    lsi_state_write_u64(w, f->dealt);
    lsi_state_write_u64(w, f->count);
    for (size_t i = 0; i < f->count; i++) {
        lsi_state_write_value(w, f->ring[(f->first + i) % f->capacity]);
    }
    lsi_state_write_failure(w, &f->tail);
    lsi_mutex_unlock(&f->lock);
    st = lsi_pipeline_save(f->it, w, err);
    lsi_mutex_lock(&f->lock);
    give_back(f);
    lsi_mutex_unlock(&f->lock);
    return st;
}

/* The elements that lay ready; the ring grows if theirs was larger. */
static ls_status read_ready(lsi_feed *f, lsi_state_reader *r, ls_error *err)
{
    uint64_t n = 0;
    ls_status st =
        lsi_state_read_count(r, r->size, &n, err); // each takes a byte at least

    if (st == LS_OK && n > f->capacity) {
        ls_value **ring = lsi_realloc(f->ring, f->capacity, n, sizeof(ls_value *));

        if (ring == NULL) {
            return lsi_fail_memory(err, "an iterator", n * sizeof(ls_value *));
        }
        f->ring = ring;
        f->capacity = n;
    }
    for (uint64_t i = 0; i < n && st == LS_OK; i++) {
        ls_value *v = NULL;
        ls_device *device = f->opts.devices == NULL
                                ? NULL
                                : f->opts.devices[(f->dealt - n + i) % f->opts.ndevices];

        st = lsi_state_read_value(r, &v, err);
        if (st == LS_OK) {
            st = lsi_value_place(v, device, &f->ring[f->count], err);
            ls_value_release(v);
        }
        f->count += st == LS_OK ? 1 : 0;
    }
    return st;
}

/* Only for the holder of `pulling`: the thread touches nothing meanwhile. */
static ls_status read_position(lsi_feed *f, lsi_state_reader *r, ls_error *err)
{
    ls_status st = lsi_state_read_u64(r, &f->dealt, err);

    drop(f);
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
                        "input: what a callable gives next cannot be restored");
    }
    lsi_mutex_lock(&f->lock);
    seize(f);
    lsi_mutex_unlock(&f->lock);
    st = read_position(f, r, &why);
    lsi_mutex_lock(&f->lock);
    f->broken = st != LS_OK;
    if (f->broken) { // neither here nor there: no data until a restore succeeds
        drop(f);
        note_tail(f, st == LS_OUT_OF_RANGE ? LS_DATA_LOSS : st, &why);
        st = lsi_fail_again(err, &f->tail);
    }
    give_back(f);
    lsi_mutex_unlock(&f->lock);
    return st;
}
