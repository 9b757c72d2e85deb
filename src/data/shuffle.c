/*
 * A buffer that elements leave at random (spec §5.2, bit for bit): filled up to its size,
 * then a drawn one is given, the first takes its place, and the next call fills again.
 * The pair of seeds of a pass comes from the dataset, which all its iterators draw from
 * in turn, so that every pass has another order.
 */
#include "data/data.h"

#include <string.h>

struct shuffle {
    ls_dataset base;
    int64_t buffer; // -2: the whole input
    bool same;      // every pass in the same order
    bool chosen;    // the pair was given, not made up
    lsi_mutex lock; // guards the rest
    lsi_seeds pair;
    lsi_philox passes; // gives a pass its pair
};

union held {
    ls_value *element;
    int64_t number;
};

struct shuffle_iterator {
    lsi_unary unary;
    lsi_seeds pair;
    lsi_philox draw;
    bool numbers;     // the input is in memory: their numbers are held, not the elements
    int64_t taken;    // of the input, by number
    union held *held; // elements [first, first + live)
    size_t first, live, room;
    bool over; // the input; it is kept because its position is part of this one
};

static lsi_seeds next_pair(struct shuffle *node)
{
    lsi_seeds pair;

    lsi_mutex_lock(&node->lock);
    pair = node->pair;
    if (!node->same) {
        pair.a = lsi_philox_next(&node->passes);
        pair.b = lsi_philox_next(&node->passes);
    }
    lsi_mutex_unlock(&node->lock);
    return pair;
}

/* Room for one more behind the last. */
static bool make_room(struct shuffle_iterator *s)
{
    if (s->first + s->live < s->room) {
        return true;
    }
    if (s->first > s->room / 2) { // the front is free: move up
        memmove(s->held, s->held + s->first, s->live * sizeof *s->held);
        s->first = 0;
        return true;
    }
    const size_t room = LSI_MAX(64, 2 * s->room);
    union held *grown = lsi_alloc(room, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    if (s->live > 0) {
        memcpy(grown, s->held + s->first, s->live * sizeof *s->held);
    }
    lsi_free(s->held);
    s->held = grown;
    s->first = 0;
    s->room = room;
    return true;
}

/* One more element of the input, or its number. */
static ls_status pull(struct shuffle_iterator *s, union held *to, ls_error *err)
{
    int64_t skipped = 0;
    ls_status st;

    if (!s->numbers) {
        return lsi_iterator_next(s->unary.input, &to->element, err);
    }
    if (s->taken == s->unary.base.dataset->cardinality) {
        return LS_OUT_OF_RANGE;
    }
    st = lsi_iterator_skip(s->unary.input, 1, &skipped, err);
    if (st == LS_OK) {
        to->number = s->taken++;
    }
    return st;
}

static ls_status fill_buffer(struct shuffle_iterator *s, ls_error *err)
{
    const struct shuffle *node = (const struct shuffle *)s->unary.base.dataset;
    ls_status st = LS_OK;

    while (!s->over && st == LS_OK &&
           (node->buffer < 0 || s->live < (uint64_t)node->buffer)) {
        if (!make_room(s)) {
            return lsi_fail_memory(err, "the buffer of a shuffle",
                                   s->room * 2 * sizeof *s->held);
        }
        st = pull(s, &s->held[s->first + s->live], err);
        s->live += st == LS_OK;
        if (st == LS_OUT_OF_RANGE) {
            s->over = true;
            st = LS_OK;
        }
    }
    return st;
}

/* Draws one out of the buffer, which is filled first. */
static ls_status draw(struct shuffle_iterator *s, union held *out, ls_error *err)
{
    const ls_status st = fill_buffer(s, err);

    if (st != LS_OK || s->live == 0) {
        return st != LS_OK ? st : LS_OUT_OF_RANGE;
    }
    union held *drawn = &s->held[s->first + lsi_philox_next(&s->draw) % s->live];
    *out = *drawn;
    *drawn = s->held[s->first];
    s->first++;
    s->live--;
    return LS_OK;
}

static ls_status next(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct shuffle_iterator *s = (struct shuffle_iterator *)it;
    const ls_dataset *input = it->dataset->inputs[0];
    union held drawn = {.number = 0};
    const ls_status st = draw(s, &drawn, err);

    if (st != LS_OK) {
        return st;
    }
    if (s->numbers) {
        return input->ops->element(input, drawn.number, out, err);
    }
    *out = drawn.element;
    return LS_OK;
}

/* Straight from the input's memory into the batch, where it lies in memory. */
static ls_status fill(lsi_iterator *it, lsi_rows *rows, int64_t want, int64_t *got,
                      ls_error *err)
{
    struct shuffle_iterator *s = (struct shuffle_iterator *)it;
    const ls_dataset *input = it->dataset->inputs[0];
    ls_status st = LS_OK;

    while (*got < want && st == LS_OK) {
        union held drawn = {.number = 0};

        st = draw(s, &drawn, err);
        if (st == LS_OK && s->numbers) {
            st = input->ops->rows(input, drawn.number, 1, rows, err);
        } else if (st == LS_OK) {
            st = lsi_rows_add(rows, drawn.element, err);
            ls_value_release(drawn.element);
        }
        *got += st == LS_OK;
    }
    return st;
}

static void drop(struct shuffle_iterator *s)
{
    for (size_t i = 0; !s->numbers && i < s->live; i++) {
        ls_value_release(s->held[s->first + i].element);
    }
    s->first = 0;
    s->live = 0;
}

static void close_shuffle(lsi_iterator *it)
{
    struct shuffle_iterator *s = (struct shuffle_iterator *)it;

    drop(s);
    lsi_free(s->held);
    lsi_unary_close(it);
}

/* ---- saving ---- */

static void write_generator(lsi_writer *w, lsi_seeds pair, const lsi_philox *g)
{
    lsi_write_u64(w, pair.a);
    lsi_write_u64(w, pair.b);
    lsi_write_u64(w, g->draws);
}

static ls_status read_generator(lsi_reader *r, lsi_seeds *pair, lsi_philox *g,
                                ls_error *err)
{
    lsi_seeds seeds = {0, 0};
    uint64_t draws = 0;
    ls_status st = lsi_read_u64(r, &seeds.a, err);

    if (st == LS_OK) {
        st = lsi_read_u64(r, &seeds.b, err);
    }
    if (st == LS_OK) {
        st = lsi_read_u64(r, &draws, err);
    }
    if (st == LS_OK) {
        *pair = seeds;
        lsi_philox_init(g, seeds);
        lsi_philox_skip(g, draws);
    }
    return st;
}

static ls_status save(lsi_iterator *it, lsi_writer *w, ls_error *err)
{
    struct shuffle_iterator *s = (struct shuffle_iterator *)it;
    struct shuffle *node = (struct shuffle *)it->dataset;

    lsi_mutex_lock(&node->lock);
    write_generator(w, node->pair, &node->passes);
    lsi_mutex_unlock(&node->lock);
    write_generator(w, s->pair, &s->draw);
    lsi_write_u64(w, s->live);
    for (size_t i = 0; i < s->live; i++) {
        if (s->numbers) {
            lsi_write_u64(w, (uint64_t)s->held[s->first + i].number);
        } else {
            lsi_write_value(w, s->held[s->first + i].element);
        }
    }
    lsi_write_u64(w, (uint64_t)s->taken);
    lsi_write_bool(w, s->over);
    return lsi_iterator_save(s->unary.input, w, err);
}

/* A number is one of the input's: it can be asked for whatever it says. */
static ls_status read_one(struct shuffle_iterator *s, lsi_reader *r, union held *to,
                          ls_error *err)
{
    const ls_dataset *d = s->unary.base.dataset;
    uint64_t number = 0;
    ls_status st;

    if (!s->numbers) {
        return lsi_read_element(r, d->spec, &to->element, err);
    }
    st = lsi_read_count(r, (uint64_t)d->cardinality - 1, &number, err);
    to->number = (int64_t)number;
    return st;
}

static ls_status read_held(struct shuffle_iterator *s, lsi_reader *r, ls_error *err)
{
    const struct shuffle *node = (const struct shuffle *)s->unary.base.dataset;
    uint64_t n = 0, most = (r->size - r->at) / sizeof n;
    ls_status st = LS_OK;

    if (node->buffer >= 0) {
        most = LSI_MIN(most, (uint64_t)node->buffer);
    }
    if (s->numbers) {
        most = LSI_MIN(most, (uint64_t)node->base.cardinality);
    }
    st = lsi_read_count(r, most, &n, err);
    for (uint64_t i = 0; i < n && st == LS_OK; i++) {
        if (!make_room(s)) {
            return lsi_fail_memory(err, "the buffer of a shuffle",
                                   (size_t)n * sizeof *s->held);
        }
        st = read_one(s, r, &s->held[s->first + s->live], err);
        s->live += st == LS_OK;
    }
    return st;
}

static ls_status restore(lsi_iterator *it, lsi_reader *r, ls_error *err)
{
    struct shuffle_iterator *s = (struct shuffle_iterator *)it;
    struct shuffle *node = (struct shuffle *)it->dataset;
    lsi_seeds pair = {0, 0};
    lsi_philox passes;
    uint64_t taken = 0;
    ls_status st = read_generator(r, &pair, &passes, err);

    if (st == LS_OK) {
        st = read_generator(r, &s->pair, &s->draw, err);
    }
    if (st == LS_OK) {
        drop(s);
        st = read_held(s, r, err);
    }
    if (st == LS_OK) {
        st = lsi_read_count(r, (uint64_t)INT64_MAX, &taken, err);
        s->taken = (int64_t)taken;
    }
    if (st == LS_OK && s->numbers && s->taken > it->dataset->cardinality) {
        st = lsi_state_damaged(err, "more was shuffled than there is");
    }
    if (st == LS_OK) {
        st = lsi_read_bool(r, &s->over, err);
    }
    if (st == LS_OK) {
        st = lsi_iterator_restore(s->unary.input, r, err);
    }
    if (st == LS_OK) { // the next pass of the dataset goes on from there, too
        lsi_mutex_lock(&node->lock);
        node->pair = pair;
        node->passes = passes;
        lsi_mutex_unlock(&node->lock);
    }
    return st;
}

static ls_status iterate(ls_dataset *d, lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next,
                                         .fill = fill,
                                         .save = save,
                                         .restore = restore,
                                         .close = close_shuffle};
    const ls_status st =
        lsi_unary_new(&ops, sizeof(struct shuffle_iterator), d, out, err);

    if (st == LS_OK) {
        struct shuffle_iterator *s = (struct shuffle_iterator *)*out;

        s->numbers = d->inputs[0]->ops->element != NULL;
        s->pair = next_pair((struct shuffle *)d);
        lsi_philox_init(&s->draw, s->pair);
    }
    return st;
}

/* ---- building ---- */

static void destroy(ls_dataset *d)
{
    lsi_mutex_destroy(&((struct shuffle *)d)->lock);
}

static ls_dataset *build(ls_dataset *d, int64_t buffer, lsi_seeds pair, bool same,
                         bool chosen);

static ls_dataset *rebuild(const ls_dataset *d, ls_dataset *const *inputs)
{
    const struct shuffle *node = (const struct shuffle *)d;

    return build(ls_dataset_retain(inputs[0]), node->buffer, node->pair, node->same,
                 node->chosen);
}

static const lsi_dataset_ops shuffle_ops = {
    .kind = "shuffle", .iterate = iterate, .rebuild = rebuild, .destroy = destroy};

static ls_dataset *build(ls_dataset *d, int64_t buffer, lsi_seeds pair, bool same,
                         bool chosen)
{
    ls_dataset *made = lsi_dataset_new(&shuffle_ops, sizeof(struct shuffle), &d, 1);
    struct shuffle *node = (struct shuffle *)made;

    if (made == NULL) {
        return NULL;
    }
    lsi_mutex_init(&node->lock);
    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (buffer != LS_UNKNOWN_SIZE && buffer <= 0) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "shuffle: a buffer of %lld elements; it holds at least "
                                "one, or -2 for the whole input",
                                (long long)buffer);
    }
    if (buffer == LS_UNKNOWN_SIZE && d->cardinality == LS_INFINITE) {
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "shuffle: the input never ends and does not fit into a "
                                "buffer as a whole; give the buffer a size");
    }
    node->buffer = buffer;
    node->same = same;
    node->chosen = chosen;
    node->pair = pair;
    lsi_philox_init(&node->passes, pair);
    lsi_dataset_note(made, (uint64_t)buffer);
    lsi_dataset_note(made, same);
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec), d->cardinality, NULL);
}

ls_dataset *lsi_dataset_shuffle_pair(ls_dataset *d, int64_t buffer, lsi_seeds pair,
                                     bool same_each_time)
{
    return build(d, buffer, pair, same_each_time, true);
}

ls_dataset *ls_dataset_shuffle_with(ls_dataset *d, int64_t buffer, const int64_t *seed,
                                    bool same_each_time)
{
    bool drawn = false;
    const lsi_seeds pair = lsi_seeds_drawn(seed, &drawn);

    return build(d, buffer, pair, same_each_time, !drawn);
}

ls_dataset *ls_dataset_shuffle(ls_dataset *d, int64_t buffer, int64_t seed)
{
    return ls_dataset_shuffle_with(d, buffer, &seed, false);
}

bool lsi_dataset_drew_seeds(const ls_dataset *d, lsi_seeds *out)
{
    const struct shuffle *node = (const struct shuffle *)d;

    if (lsi_dataset_bad(d) || d->ops != &shuffle_ops || node->chosen) {
        return false;
    }
    *out = node->pair;
    return true;
}

ls_dataset *lsi_dataset_with_seeds(const ls_dataset *d, ls_dataset *const *inputs,
                                   lsi_seeds s)
{
    const struct shuffle *node = (const struct shuffle *)d;

    return build(ls_dataset_retain(inputs[0]), node->buffer, s, node->same, node->chosen);
}
