/*
 * prefetch: reads ahead on a thread of the input. The producer runs until the buffer is
 * full and then returns its thread; it is submitted again when half of the buffer is
 * consumed. If the buffer is empty and the producer has not begun, the consumer reads by
 * itself, so it only waits for a producer that is running.
 */
#include "data/user_function.h"

enum { CHOSEN = 4, FIRST_ROOM = 8 };

struct prefetch_node {
    ls_dataset base;
    int64_t buffer; // as the caller set it
};

struct prefetch {
    lsi_unary_iterator unary; // its input is used by the thread that has set `reading`
    lsi_input_threads *threads;
    lsi_mutex lock; // guards all below
    lsi_cond change;
    lsi_outcome *queue;
    size_t room, first, count;
    size_t limit;
    bool queued;  // the producer is submitted
    bool reading; // a thread uses the input
    bool waiting; // the consumer waits
    bool ended, hold;
};

static bool grow_queue(struct prefetch *p)
{
    const size_t most = LSI_MAX(p->limit, p->count + 1); // a restored state may hold more
    const size_t room = LSI_MIN(LSI_MAX(FIRST_ROOM, 2 * p->room), most);
    lsi_outcome *queue = lsi_alloc(room, sizeof *queue);

    if (queue == NULL) {
        return false;
    }
    for (size_t i = 0; i < p->count; i++) {
        queue[i] = p->queue[(p->first + i) % p->room];
    }
    lsi_free(p->queue);
    p->queue = queue;
    p->room = room;
    p->first = 0;
    return true;
}

static void put_outcome(struct prefetch *p, lsi_outcome item)
{
    p->queue[(p->first + p->count) % p->room] = item;
    p->count++;
}

/* The input's next element; the lock is released meanwhile. Sets `ended` at the end. */
static ls_status read_input(struct prefetch *p, ls_value **out, ls_error *err)
{
    ls_status st;

    p->reading = true;
    lsi_mutex_unlock(&p->lock);
    st = lsi_iterator_next(p->unary.input, out, err);
    lsi_mutex_lock(&p->lock);
    p->reading = false;
    p->ended = st == LS_OUT_OF_RANGE;
    return st;
}

static bool may_produce(struct prefetch *p)
{
    return !p->hold && !p->ended && p->count < p->limit &&
           (p->count < p->room || grow_queue(p));
}

static void run_producer(void *arg);

static void submit_producer(struct prefetch *p)
{
    if (!p->queued && !p->reading && !p->hold && !p->ended && 2 * p->count <= p->limit) {
        p->queued = lsi_input_threads_submit(p->threads, run_producer, p);
    }
}

static void run_producer(void *arg)
{
    struct prefetch *p = arg;

    lsi_mutex_lock(&p->lock);
    p->queued = false;
    while (!p->reading && !p->queued && may_produce(p)) {
        ls_error e = LS_ERROR_INIT;
        ls_value *element = NULL;
        const ls_status st = read_input(p, &element, &e);

        if (st != LS_OUT_OF_RANGE) {
            put_outcome(p, lsi_outcome_of(st, element, &e));
        }
        if (p->waiting) {
            lsi_cond_broadcast(&p->change);
        }
        if (lsi_input_threads_backlog(
                p->threads)) { // others wait for a thread: queue behind them
            submit_producer(p);
        }
    }
    lsi_cond_broadcast(&p->change);
    lsi_mutex_unlock(&p->lock);
}

/* Waits until no thread reads and no producer is submitted. The lock is held. */
static void stop_producer(struct prefetch *p)
{
    p->hold = true;
    if (p->queued && lsi_input_threads_cancel(p->threads, run_producer, p)) {
        p->queued = false;
    }
    while (p->queued || p->reading) {
        (void)lsi_cond_wait(&p->change, &p->lock, LSI_DEADLINE_NEVER);
    }
    p->hold = false;
}

static ls_status take_outcome(struct prefetch *p, ls_value **out, ls_error *err)
{
    const ls_status st = lsi_outcome_take(&p->queue[p->first], out, err);

    p->first = (p->first + 1) % p->room;
    p->count--;
    return st;
}

static ls_status next_prefetched(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct prefetch *p = (struct prefetch *)it;
    ls_status st = LS_OUT_OF_RANGE;

    lsi_mutex_lock(&p->lock);
    while (p->count == 0 && p->reading) {
        p->waiting = true;
        (void)lsi_cond_wait(&p->change, &p->lock, LSI_DEADLINE_NEVER);
        p->waiting = false;
    }
    if (p->count > 0) {
        st = take_outcome(p, out, err);
    } else if (!p->ended) {
        st = read_input(p, out, err);
    }
    submit_producer(p);
    lsi_mutex_unlock(&p->lock);
    return st;
}

static ls_status save_prefetch(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct prefetch *p = (struct prefetch *)it;
    ls_status st;

    lsi_mutex_lock(&p->lock);
    stop_producer(p);
    lsi_state_write_bool(w, p->ended);
    lsi_state_write_u64(w, p->count);
    for (size_t i = 0; i < p->count; i++) {
        lsi_outcome_write(w, &p->queue[(p->first + i) % p->room]);
    }
    st = lsi_iterator_save(p->unary.input, w, err);
    lsi_mutex_unlock(&p->lock);
    return st;
}

static void empty_queue(struct prefetch *p)
{
    for (; p->count > 0; p->count--, p->first = (p->first + 1) % p->room) {
        lsi_outcome_clear(&p->queue[p->first]);
    }
}

static ls_status restore_outcomes(struct prefetch *p, lsi_state_reader *r, ls_error *err)
{
    const ls_spec *spec = p->unary.base.dataset->spec;
    uint64_t n = 0;
    ls_status st = lsi_state_read_bool(r, &p->ended, err);

    if (st == LS_OK) {
        st = lsi_state_read_count(r, (r->size - r->at) / sizeof n, &n, err);
    }
    while (st == LS_OK && p->count < n) {
        lsi_outcome item = {0};

        st = lsi_outcome_read(r, spec, &item, err);
        if (st == LS_OK && p->count == p->room && !grow_queue(p)) {
            lsi_outcome_clear(&item);
            return lsi_fail_memory(err, "a buffer", 2 * p->room * sizeof item);
        }
        if (st == LS_OK) {
            put_outcome(p, item);
        }
    }
    return st;
}

static ls_status restore_prefetch(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct prefetch *p = (struct prefetch *)it;
    ls_status st;

    lsi_mutex_lock(&p->lock);
    stop_producer(p);
    empty_queue(p);
    st = restore_outcomes(p, r, err);
    if (st == LS_OK) {
        st = lsi_iterator_restore(p->unary.input, r, err);
    }
    lsi_mutex_unlock(&p->lock);
    return st;
}

static void close_prefetch(lsi_iterator *it)
{
    struct prefetch *p = (struct prefetch *)it;

    lsi_mutex_lock(&p->lock);
    stop_producer(p);
    lsi_mutex_unlock(&p->lock);
    empty_queue(p);
    lsi_free(p->queue);
    lsi_cond_destroy(&p->change);
    lsi_mutex_destroy(&p->lock);
    lsi_unary_iterator_close(it);
}

static ls_status iterate_prefetch(ls_dataset *d, const lsi_opening *how,
                                  lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_prefetched,
                                         .save = save_prefetch,
                                         .restore = restore_prefetch,
                                         .close = close_prefetch};
    const int64_t buffer = ((const struct prefetch_node *)d)->buffer;
    lsi_iterator *it = NULL;
    ls_status st = LS_OK;

    if (buffer == 0) {
        return lsi_dataset_iterate(d->inputs[0], how, out, err);
    }
    st = lsi_unary_iterator_new(&ops, sizeof(struct prefetch), d, how, &it, err);
    if (st == LS_OK) {
        struct prefetch *p = (struct prefetch *)it;

        p->limit = buffer == LS_AUTOTUNE ? CHOSEN : (size_t)buffer;
        lsi_mutex_init(&p->lock);
        lsi_cond_init(&p->change);
        p->threads = lsi_iterator_threads(it);
        *out = it;
    }
    return st;
}

static ls_dataset *rebuild_prefetch(const ls_dataset *d, ls_dataset *const *inputs)
{
    return ls_dataset_prefetch(ls_dataset_retain(inputs[0]),
                               ((const struct prefetch_node *)d)->buffer);
}

ls_dataset *ls_dataset_prefetch(ls_dataset *d, int64_t buffer)
{
    static const lsi_dataset_ops ops = {
        .kind = "prefetch", .iterate = iterate_prefetch, .rebuild = rebuild_prefetch};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(struct prefetch_node), &d, 1);

    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (buffer < LS_AUTOTUNE) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_OP,
                                "prefetch: a buffer of %lld elements; 0 reads nothing "
                                "ahead, LS_AUTOTUNE lets the library choose",
                                (long long)buffer);
    }
    ((struct prefetch_node *)made)->buffer = buffer;
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec), d->cardinality, NULL);
}
