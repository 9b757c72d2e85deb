/*
 * shuffle (spec §5.2, bit for bit): each call fills the buffer up to its size, returns an
 * element drawn at random and moves the first element to its place. The node has a
 * generator from which each new iterator draws its pair of seeds, so that every pass has
 * another order.
 */
#include "data/shuffle_buffer.h"

struct shuffle {
    ls_dataset base;
    int64_t buffer; // -2: the whole input
    bool same;      // every pass has the same order
    bool chosen;    // the pair was given, not random
    lsi_mutex lock; // guards the rest
    lsi_seeds pair;
    lsi_draws passes; // draws the pair of each pass
};

struct shuffle_iterator {
    lsi_unary_iterator unary; // the input is kept at the end: it is saved with ours
    lsi_seeds pair;
    lsi_draws draw;
    lsi_shuffle_buffer buffer;
    lsi_shuffle_entry drawn[LSI_SHUFFLE_AT_ONCE]; // too large for the stack
};

static lsi_seeds next_pair(struct shuffle *node)
{
    lsi_seeds pair;

    lsi_mutex_lock(&node->lock);
    pair = node->pair;
    if (!node->same) {
        pair.a = lsi_draws_next(&node->passes);
        pair.b = lsi_draws_next(&node->passes);
    }
    lsi_mutex_unlock(&node->lock);
    return pair;
}

static ls_status next_shuffled(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct shuffle_iterator *s = (struct shuffle_iterator *)it;
    lsi_shuffle_entry drawn;
    const ls_status st = lsi_shuffle_buffer_draw(&s->buffer, &s->draw, &drawn, err);

    return st == LS_OK ? lsi_shuffle_buffer_element(&s->buffer, drawn, out, err) : st;
}

/* Draws `want` elements, strings all at once, and adds them to the rows. */
static ls_status fill_some(struct shuffle_iterator *s, lsi_batch_rows *rows, int64_t want,
                           int64_t *got, ls_error *err)
{
    lsi_shuffle_entry *drawn = s->drawn;
    ls_status st = LS_OK, added = LS_OK;
    size_t n = lsi_shuffle_buffer_draw_strings(&s->buffer, &s->draw, (size_t)want, drawn);

    while (n < (size_t)want && st == LS_OK) {
        st = lsi_shuffle_buffer_draw(&s->buffer, &s->draw, &drawn[n], err);
        n += st == LS_OK;
    }
    if (n > 0) {
        added = lsi_shuffle_buffer_add(&s->buffer, drawn, n, rows, err);
        *got += added == LS_OK ? (int64_t)n : 0;
    }
    return added == LS_OK ? st : added; // of two failures that of adding
}

static ls_status fill_shuffled(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                               int64_t *got, ls_error *err)
{
    ls_status st = LS_OK;

    while (*got < want && st == LS_OK) {
        st = fill_some((struct shuffle_iterator *)it, rows,
                       LSI_MIN(want - *got, LSI_SHUFFLE_AT_ONCE), got, err);
    }
    return st;
}

static void close_shuffle(lsi_iterator *it)
{
    lsi_shuffle_buffer_close(&((struct shuffle_iterator *)it)->buffer);
    lsi_unary_iterator_close(it);
}

/* ---- saving ---- */

static void write_generator(lsi_state_writer *w, lsi_seeds pair, const lsi_draws *g)
{
    lsi_state_write_u64(w, pair.a);
    lsi_state_write_u64(w, pair.b);
    lsi_state_write_u64(w, g->draws);
}

static ls_status read_generator(lsi_state_reader *r, lsi_seeds *pair, lsi_draws *g,
                                ls_error *err)
{
    lsi_seeds seeds = {0, 0};
    uint64_t draws = 0;
    ls_status st = lsi_state_read_u64(r, &seeds.a, err);

    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &seeds.b, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &draws, err);
    }
    if (st == LS_OK) {
        *pair = seeds;
        lsi_draws_init(g, seeds);
        lsi_draws_skip(g, draws);
    }
    return st;
}

static ls_status save_shuffle(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct shuffle_iterator *s = (struct shuffle_iterator *)it;
    struct shuffle *node = (struct shuffle *)it->dataset;

    lsi_mutex_lock(&node->lock);
    write_generator(w, node->pair, &node->passes);
    lsi_mutex_unlock(&node->lock);
    write_generator(w, s->pair, &s->draw);
    lsi_shuffle_buffer_save(&s->buffer, w);
    return lsi_iterator_save(s->unary.input, w, err);
}

static ls_status restore_shuffle(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct shuffle_iterator *s = (struct shuffle_iterator *)it;
    struct shuffle *node = (struct shuffle *)it->dataset;
    lsi_seeds pair = {0, 0};
    lsi_draws passes;
    ls_status st = read_generator(r, &pair, &passes, err);

    if (st == LS_OK) {
        st = read_generator(r, &s->pair, &s->draw, err);
    }
    if (st == LS_OK) {
        st = lsi_shuffle_buffer_restore(&s->buffer, r, err);
    }
    if (st == LS_OK) {
        st = lsi_iterator_restore(s->unary.input, r, err);
    }
    if (st == LS_OK) { // so that the next pass draws the next pair
        lsi_mutex_lock(&node->lock);
        node->pair = pair;
        node->passes = passes;
        lsi_mutex_unlock(&node->lock);
    }
    return st;
}

static ls_status iterate_shuffle(ls_dataset *d, const lsi_opening *how,
                                 lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_shuffled,
                                         .fill = fill_shuffled,
                                         .save = save_shuffle,
                                         .restore = restore_shuffle,
                                         .close = close_shuffle};
    lsi_iterator *it = NULL;
    ls_status st =
        lsi_unary_iterator_new(&ops, sizeof(struct shuffle_iterator), d, how, &it, err);
    struct shuffle_iterator *s = (struct shuffle_iterator *)it;

    if (st != LS_OK) {
        return st;
    }
    st = lsi_shuffle_buffer_open(&s->buffer, s->unary.input,
                                 ((struct shuffle *)d)->buffer, err);
    if (st != LS_OK) {
        lsi_iterator_close(it);
        return st;
    }
    s->pair = next_pair((struct shuffle *)d);
    lsi_draws_init(&s->draw, s->pair);
    *out = it;
    return LS_OK;
}

/* ---- building ---- */

static void destroy_shuffle(ls_dataset *d)
{
    lsi_mutex_destroy(&((struct shuffle *)d)->lock);
}

static ls_dataset *build_shuffle(ls_dataset *d, int64_t buffer, lsi_seeds pair, bool same,
                                 bool chosen);

static ls_dataset *rebuild_shuffle(const ls_dataset *d, ls_dataset *const *inputs)
{
    const struct shuffle *node = (const struct shuffle *)d;

    return build_shuffle(ls_dataset_retain(inputs[0]), node->buffer, node->pair,
                         node->same, node->chosen);
}

static const lsi_dataset_ops shuffle_ops = {.kind = "shuffle",
                                            .iterate = iterate_shuffle,
                                            .rebuild = rebuild_shuffle,
                                            .destroy = destroy_shuffle};

static ls_dataset *build_shuffle(ls_dataset *d, int64_t buffer, lsi_seeds pair, bool same,
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
        return lsi_dataset_fail(made, LS_INVALID_ARGUMENT, LS_KIND_OP,
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
    lsi_draws_init(&node->passes, pair);
    lsi_dataset_mix_parameter(made, (uint64_t)buffer);
    lsi_dataset_mix_parameter(made, same);
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec), d->cardinality, NULL);
}

ls_dataset *lsi_dataset_shuffle_pair(ls_dataset *d, int64_t buffer, lsi_seeds pair,
                                     bool same_each_time)
{
    return build_shuffle(d, buffer, pair, same_each_time, true);
}

ls_dataset *ls_dataset_shuffle_with(ls_dataset *d, int64_t buffer, const int64_t *seed,
                                    bool same_each_time)
{
    bool drawn = false;
    const lsi_seeds pair = lsi_seeds_drawn(seed, &drawn);

    return build_shuffle(d, buffer, pair, same_each_time, !drawn);
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

    return build_shuffle(ls_dataset_retain(inputs[0]), node->buffer, s, node->same,
                         node->chosen);
}
