/*
 * map whose function runs on the input's threads. Workers take turns reading the input
 * and call the function in parallel; results wait in a circular queue, in the order of
 * the input. A worker returns when it finds nothing to do, and a new one is submitted
 * when the consumer makes room. The consumer maps an element itself if no worker has
 * begun it, so it makes progress without any worker.
 *
 * The saved state is the input's position and the elements whose results were not
 * consumed yet: after a restore the function is called for them again.
 */
#include "data/map.h"

enum { MOST_CALLS = 64, ROOM = 2 * MOST_CALLS };

enum phase { WAITING, RUNNING, DONE };

struct slot {
    enum phase phase;
    uint64_t number;  // index of its element
    lsi_outcome from; // the element of the input
    lsi_outcome to;   // the result of the function
};

struct parallel_map {
    lsi_unary_iterator unary; // its input is used by the thread that has set `reading`
    const lsi_map_node *node;
    lsi_input_threads *threads;
    lsi_mutex lock; // guards all below
    lsi_cond change;
    struct slot *slots;
    struct slot **queue; // unordered: finished results move to its front
    size_t room, first, count;
    uint64_t number; // of the next element of the input
    size_t limit;    // no element is read while so many are in the queue
    int calls;       // at once, at most, by workers
    int workers;     // submitted, begun or not
    int busy;        // calls and reads going on
    bool reading, ended, hold;
    ls_context **contexts; // contexts not in use
    size_t ncontexts;
};

static struct slot *slot_at(struct parallel_map *m, size_t i)
{
    return m->queue[(m->first + i) % m->room];
}

static void run_worker(void *arg);

/* Submits one more worker, if there is work for it. */
static void submit_worker(struct parallel_map *m)
{
    const bool room = m->count < m->limit && !m->ended && !m->reading;

    if (room && !m->hold && m->workers < m->calls &&
        lsi_input_threads_submit(m->threads, run_worker, m)) {
        m->workers++;
    }
}

/* The first element that waits for its call, after a restore. */
static struct slot *first_waiting(struct parallel_map *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (slot_at(m, i)->phase == WAITING) {
            return slot_at(m, i);
        }
    }
    return NULL;
}

/* Reads the next element into the queue; NULL: the end, or a failure. */
static struct slot *read_input(struct parallel_map *m)
{
    struct slot *s = slot_at(m, m->count);
    ls_error e = LS_ERROR_INIT;
    ls_value *element = NULL;
    ls_status st;

    m->reading = true;
    m->busy++;
    lsi_mutex_unlock(&m->lock);
    st = lsi_iterator_next(m->unary.input, &element, &e);
    lsi_mutex_lock(&m->lock);
    m->busy--;
    m->reading = false;
    if (st == LS_OUT_OF_RANGE) {
        m->ended = true;
        lsi_cond_broadcast(&m->change);
        return NULL;
    }
    s->from = lsi_outcome_of(st, element, &e);
    s->phase = st == LS_OK ? WAITING : DONE;
    if (st == LS_OK) {
        s->number = m->number++;
    }
    m->count++;
    if (st != LS_OK) {
        lsi_cond_broadcast(&m->change);
    }
    return st == LS_OK ? s : NULL;
}

static void call_function(struct parallel_map *m, struct slot *s)
{
    ls_context *c = m->ncontexts > 0 ? m->contexts[--m->ncontexts] : NULL;
    ls_error e = LS_ERROR_INIT;
    ls_value *made = NULL;
    ls_status st;

    s->phase = RUNNING;
    m->busy++;
    lsi_mutex_unlock(&m->lock);
    st = lsi_map_call(&m->unary.base, s->number, &c, s->from.value, &made, &e);
    lsi_mutex_lock(&m->lock);
    m->busy--;
    s->to = lsi_outcome_of(st, made, &e);
    s->phase = DONE;
    if (c != NULL) {
        m->contexts[m->ncontexts++] = c; // never more than calls at once
    }
    lsi_cond_broadcast(&m->change);
}

/*
 * Calls the function for `waiting`, or, if that is NULL, for the next element of the
 * input. The lock is held before and after; false: there was nothing to do.
 */
static bool map_one(struct parallel_map *m, struct slot *waiting)
{
    if (waiting == NULL) {
        if (m->reading || m->ended || m->count >= m->limit) {
            return false;
        }
        waiting = read_input(m);
    }
    if (waiting != NULL) {
        submit_worker(m); // another worker can read the next element meanwhile
        call_function(m, waiting);
    }
    return true;
}

static void run_worker(void *arg)
{
    struct parallel_map *m = arg;

    lsi_mutex_lock(&m->lock);
    while (!m->hold && map_one(m, first_waiting(m))) {
    }
    m->workers--;
    lsi_cond_broadcast(&m->change);
    lsi_mutex_unlock(&m->lock);
}

/* Waits until no call is running and no worker is left. The lock is held. */
static void stop_workers(struct parallel_map *m)
{
    m->hold = true;
    while (m->workers > 0 && lsi_input_threads_cancel(m->threads, run_worker, m)) {
        m->workers--;
    }
    while (m->workers > 0 || m->busy > 0) {
        (void)lsi_cond_wait(&m->change, &m->lock, LSI_DEADLINE_NEVER);
    }
    m->hold = false;
}

/* Moves a finished result to the front: the first of the queue, or, unordered, any. */
static bool bring_done_forward(struct parallel_map *m)
{
    for (size_t i = 0; i < m->count; i++) {
        struct slot *s = slot_at(m, i);

        if (s->phase == DONE) {
            for (size_t k = i; k > 0; k--) { // the others keep their order
                m->queue[(m->first + k) % m->room] = slot_at(m, k - 1);
            }
            m->queue[m->first] = s;
            return true;
        }
        if (!m->node->unordered) {
            return false;
        }
    }
    return false;
}

static ls_status take_result(struct parallel_map *m, ls_value **out, ls_error *err)
{
    struct slot *s = slot_at(m, 0);
    const ls_status st =
        lsi_outcome_take(s->from.status != LS_OK ? &s->from : &s->to, out, err);

    lsi_outcome_clear(&s->from);
    m->first = (m->first + 1) % m->room;
    m->count--;
    if (2 * m->count <= m->limit) { // not for each element: submitting costs time
        submit_worker(m);
    }
    return st;
}

/* Makes the call that the consumer waits for; false: a worker has begun it. */
static bool help_workers(struct parallel_map *m)
{
    if (m->count > 0) {
        struct slot *s = m->node->unordered ? first_waiting(m) : slot_at(m, 0);

        return s != NULL && s->phase == WAITING && map_one(m, s);
    }
    return map_one(m, NULL);
}

static ls_status next_mapped(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct parallel_map *m = (struct parallel_map *)it;
    ls_status st = LS_OUT_OF_RANGE;

    lsi_mutex_lock(&m->lock);
    for (;;) {
        if (bring_done_forward(m)) {
            st = take_result(m, out, err);
            break;
        }
        if (m->ended && m->count == 0) {
            break;
        }
        if (!help_workers(m)) {
            (void)lsi_cond_wait(&m->change, &m->lock, LSI_DEADLINE_NEVER);
        }
    }
    lsi_mutex_unlock(&m->lock);
    return st;
}

static ls_status save_parallel_map(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct parallel_map *m = (struct parallel_map *)it;
    ls_status st;

    lsi_mutex_lock(&m->lock);
    stop_workers(m);
    lsi_state_write_bool(w, m->ended);
    lsi_state_write_u64(w, m->number);
    lsi_state_write_u64(w, m->count);
    for (size_t i = 0; i < m->count; i++) {
        lsi_state_write_u64(w, slot_at(m, i)->number);
        lsi_outcome_write(w, &slot_at(m, i)->from);
    }
    st = lsi_iterator_save(m->unary.input, w, err);
    lsi_mutex_unlock(&m->lock);
    return st;
}

static void empty_queue(struct parallel_map *m)
{
    for (; m->count > 0; m->count--, m->first = (m->first + 1) % m->room) {
        struct slot *s = slot_at(m, 0);

        lsi_outcome_clear(&s->from);
        lsi_outcome_clear(&s->to);
    }
}

static ls_status restore_slots(struct parallel_map *m, lsi_state_reader *r, ls_error *err)
{
    const ls_spec *spec = m->node->base.inputs[0]->spec;
    uint64_t n = 0;
    ls_status st = lsi_state_read_bool(r, &m->ended, err);

    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &m->number, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_count(r, ROOM, &n, err);
    }
    while (st == LS_OK && m->count < n) {
        struct slot *s = slot_at(m, m->count);

        st = lsi_state_read_u64(r, &s->number, err);
        if (st == LS_OK) {
            st = lsi_outcome_read(r, spec, &s->from, err);
        }
        if (st == LS_OK) {
            s->phase = s->from.status == LS_OK ? WAITING : DONE;
            m->count++;
        }
    }
    return st;
}

static ls_status restore_parallel_map(lsi_iterator *it, lsi_state_reader *r,
                                      ls_error *err)
{
    struct parallel_map *m = (struct parallel_map *)it;
    ls_status st;

    lsi_mutex_lock(&m->lock);
    stop_workers(m);
    empty_queue(m);
    st = restore_slots(m, r, err);
    if (st == LS_OK) {
        st = lsi_iterator_restore(m->unary.input, r, err);
    }
    lsi_mutex_unlock(&m->lock);
    return st;
}

static void close_parallel_map(lsi_iterator *it)
{
    struct parallel_map *m = (struct parallel_map *)it;

    lsi_mutex_lock(&m->lock);
    stop_workers(m);
    lsi_mutex_unlock(&m->lock);
    empty_queue(m);
    for (size_t i = 0; i < m->ncontexts; i++) {
        ls_context_close(m->contexts[i]);
    }
    lsi_free(m->contexts);
    lsi_free(m->queue);
    lsi_free(m->slots);
    lsi_cond_destroy(&m->change);
    lsi_mutex_destroy(&m->lock);
    lsi_unary_iterator_close(it);
}

ls_status lsi_parallel_map_iterate(ls_dataset *d, const lsi_opening *how,
                                   lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_mapped,
                                         .save = save_parallel_map,
                                         .restore = restore_parallel_map,
                                         .close = close_parallel_map};
    const lsi_map_node *node = (const lsi_map_node *)d;
    struct parallel_map *m = NULL;
    lsi_iterator *it = NULL;
    const ls_status st = lsi_function_iterator_new(&ops, sizeof *m, d, how, &it, err);

    if (st != LS_OK) {
        return st;
    }
    m = (struct parallel_map *)it;
    m->node = node;
    m->threads = lsi_iterator_threads(it);
    m->calls = node->parallel == LS_AUTOTUNE ? lsi_input_threads_count(m->threads)
                                             : node->parallel;
    m->calls = LSI_MIN(m->calls, MOST_CALLS);
    if (d->options.threads > 0) {
        m->calls = LSI_MIN(m->calls, d->options.threads);
    }
    m->limit = 2 * (size_t)m->calls;
    m->room = ROOM; // enough for a state saved with more threads
    lsi_mutex_init(&m->lock);
    lsi_cond_init(&m->change);
    m->slots = lsi_alloc(m->room, sizeof *m->slots);
    m->queue = lsi_alloc(m->room, sizeof(struct slot *));
    m->contexts = lsi_alloc(m->room, sizeof(ls_context *));
    if (m->slots == NULL || m->queue == NULL || m->contexts == NULL) {
        lsi_iterator_close(it);
        return lsi_fail_memory(err, "the calls of a map", ROOM * sizeof *m->slots);
    }
    for (size_t i = 0; i < m->room; i++) {
        m->queue[i] = &m->slots[i];
    }
    *out = it;
    return LS_OK;
}
