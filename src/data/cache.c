/*
 * A cache: the first pass that comes to its end fills it, later ones replay it without
 * touching the input. In memory the contents belong to the node, so that all its
 * iterators share them; they are part of what is saved.
 */
#include "data/cache.h"

#include <string.h>

struct lsi_store {
    atomic_int refs;
    ls_value **items;
    size_t n, room;
    bool torn; // an element is missing: it must not be replayed
};

struct cache {
    lsi_unary unary; // the input is NULL if the store was complete from the start
    bool over;       // the input is; it stays, for its position is part of ours
    lsi_store *store;
    size_t at; // of a complete store
};

/* ---- stores ---- */

static lsi_store *store_new(void)
{
    lsi_store *s = lsi_alloc(1, sizeof *s);

    if (s != NULL) {
        atomic_init(&s->refs, 1);
    }
    return s;
}

static lsi_store *store_retain(lsi_store *s)
{
    if (s != NULL) {
        (void)atomic_fetch_add(&s->refs, 1);
    }
    return s;
}

static void store_release(lsi_store *s)
{
    if (s != NULL && atomic_fetch_sub(&s->refs, 1) == 1) {
        lsi_value_release_all(s->items, s->n);
        lsi_free(s);
    }
}

/* Room for one more: asked for before an element that would be lost is taken. */
static ls_status store_reserve(lsi_store *s, ls_error *err)
{
    if (s->n == s->room) {
        const size_t room = LSI_MAX(64, 2 * s->room);
        ls_value **grown = lsi_realloc(s->items, s->room, room, sizeof(ls_value *));

        if (grown == NULL) {
            return lsi_fail_memory(err, "a cache", room * sizeof(ls_value *));
        }
        s->items = grown;
        s->room = room;
    }
    return LS_OK;
}

static void store_add(lsi_store *s, ls_value *v)
{
    s->items[s->n++] = ls_value_retain(v);
}

/* What the node's later iterators replay; NULL: nothing yet. */
static void publish(lsi_cache_node *node, lsi_store *s, bool replace)
{
    lsi_store *old = NULL;

    lsi_mutex_lock(&node->lock);
    if (replace || node->complete == NULL) {
        old = node->complete;
        node->complete = store_retain(s);
    }
    lsi_mutex_unlock(&node->lock);
    store_release(old);
}

void lsi_cache_warn(const lsi_cache_node *node)
{
    lsi_log(LS_LOG_WARNING,
            "cache %s: the pass that fills it was given up before its end, and what it "
            "held is lost; take() belongs before cache(), not behind",
            node->file != NULL ? node->file : "in memory");
}

/* ---- the iterator in memory ---- */

static ls_status read_on(struct cache *c, ls_value **out, ls_error *err)
{
    lsi_cache_node *node = (lsi_cache_node *)c->unary.base.dataset;
    ls_value *v = NULL;
    ls_status st = store_reserve(c->store, err);

    if (st == LS_OK) {
        st = lsi_iterator_next(c->unary.input, &v, err);
    }
    if (st == LS_OUT_OF_RANGE) {
        if (!c->store->torn) {
            publish(node, c->store, false);
        }
        c->over = true;
        c->at = c->store->n;
    }
    if (st == LS_OK) {
        store_add(c->store, v);
        *out = v;
    }
    return st;
}

static ls_status next(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct cache *c = (struct cache *)it;

    if (c->unary.input != NULL && !c->over) {
        return read_on(c, out, err);
    }
    if (c->at == c->store->n) {
        return LS_OUT_OF_RANGE;
    }
    *out = ls_value_retain(c->store->items[c->at++]);
    return LS_OK;
}

static ls_status save(lsi_iterator *it, lsi_writer *w, ls_error *err)
{
    const struct cache *c = (const struct cache *)it;

    lsi_write_bool(w, c->over);
    lsi_write_bool(w, c->store->torn);
    lsi_write_u64(w, c->at);
    lsi_write_u64(w, c->store->n);
    for (size_t i = 0; i < c->store->n; i++) {
        lsi_write_value(w, c->store->items[i]);
    }
    return lsi_input_save(c->unary.input, w, err);
}

static ls_status restore_store(struct cache *c, lsi_reader *r, ls_error *err)
{
    lsi_store *store = store_new();
    uint64_t at = 0, n = 0;
    ls_status st = LS_OK;

    if (store == NULL) {
        return lsi_fail_memory(err, "a cache", sizeof *store);
    }
    st = lsi_read_bool(r, &store->torn, err);
    if (st == LS_OK) {
        st = lsi_read_u64(r, &at, err);
    }
    if (st == LS_OK) {
        st = lsi_read_count(r, (r->size - r->at) / sizeof n, &n, err);
    }
    for (uint64_t i = 0; i < n && st == LS_OK; i++) {
        ls_value *v = NULL;

        st = store_reserve(store, err);
        if (st == LS_OK) {
            st = lsi_read_element(r, c->unary.base.dataset->spec, &v, err);
        }
        if (st == LS_OK) {
            store_add(store, v);
        }
        ls_value_release(v);
    }
    if (st == LS_OK && at > n) {
        st = lsi_state_damaged(err, "a position behind the end of a cache");
    }
    if (st != LS_OK) {
        store_release(store);
        return st;
    }
    store_release(c->store);
    c->store = store;
    c->at = (size_t)at;
    return LS_OK;
}

static ls_status restore(lsi_iterator *it, lsi_reader *r, ls_error *err)
{
    struct cache *c = (struct cache *)it;
    ls_status st = lsi_read_bool(r, &c->over, err);

    if (st == LS_OK) {
        st = restore_store(c, r, err);
    }
    if (st == LS_OK) {
        st = lsi_input_restore(&c->unary.input, it->lineage, it->dataset->inputs[0], r,
                               err);
    }
    if (st == LS_OK) {
        const bool whole = (c->unary.input == NULL || c->over) && !c->store->torn;

        publish((lsi_cache_node *)it->dataset, whole ? c->store : NULL, true);
    }
    return st;
}

static void close_cache(lsi_iterator *it)
{
    struct cache *c = (struct cache *)it;

    if (c->unary.input != NULL && !c->over && c->store != NULL && c->store->n > 0) {
        lsi_cache_warn((const lsi_cache_node *)it->dataset);
    }
    store_release(c->store);
    lsi_unary_close(it);
}

static ls_status iterate_memory(ls_dataset *d, lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {
        .next = next, .save = save, .restore = restore, .close = close_cache};
    lsi_cache_node *node = (lsi_cache_node *)d;
    lsi_iterator *it = NULL;
    struct cache *c = NULL;
    ls_status st = lsi_iterator_new(&ops, sizeof *c, d, &it, err);

    if (st != LS_OK) {
        return st;
    }
    c = (struct cache *)it;
    lsi_mutex_lock(&node->lock);
    c->store = store_retain(node->complete);
    lsi_mutex_unlock(&node->lock);
    if (c->store == NULL) { // else the input is left alone: a shuffle in it would draw
        c->store = store_new();
        st = c->store != NULL ? lsi_dataset_iterate(d->inputs[0], &c->unary.input, err)
                              : lsi_fail_memory(err, "a cache", sizeof *c->store);
    }
    if (st == LS_OK) {
        *out = it;
    } else {
        lsi_iterator_close(it);
    }
    return st;
}

/* ---- the node ---- */

static ls_status iterate(ls_dataset *d, lsi_iterator **out, ls_error *err)
{
    return ((lsi_cache_node *)d)->file != NULL ? lsi_cache_file_iterate(d, out, err)
                                               : iterate_memory(d, out, err);
}

static void destroy(ls_dataset *d)
{
    lsi_cache_node *node = (lsi_cache_node *)d;

    store_release(node->complete);
    lsi_mutex_destroy(&node->lock);
    lsi_free(node->file);
}

static ls_dataset *rebuild(const ls_dataset *d, ls_dataset *const *inputs)
{
    return ls_dataset_cache(ls_dataset_retain(inputs[0]),
                            ((const lsi_cache_node *)d)->file);
}

ls_dataset *ls_dataset_cache(ls_dataset *d, const char *file)
{
    static const lsi_dataset_ops ops = {
        .kind = "cache", .iterate = iterate, .rebuild = rebuild, .destroy = destroy};
    ls_dataset *made = lsi_dataset_new(&ops, sizeof(lsi_cache_node), &d, 1);
    lsi_cache_node *node = (lsi_cache_node *)made;

    if (made == NULL) {
        return NULL;
    }
    lsi_mutex_init(&node->lock);
    if (lsi_dataset_bad(made)) {
        return made;
    }
    if (file != NULL && file[0] != '\0') {
        node->file = lsi_strdup(file);
        if (node->file == NULL) {
            return lsi_dataset_fail(made, LS_RESOURCE_EXHAUSTED, LS_KIND_OP,
                                    "cache: no memory for the name of its file");
        }
    }
    lsi_dataset_note(made, node->file != NULL);
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec), d->cardinality, NULL);
}

const char *lsi_dataset_cache_file(const ls_dataset *d)
{
    return !lsi_dataset_bad(d) && strcmp(d->ops->kind, "cache") == 0
               ? ((const lsi_cache_node *)d)->file
               : NULL;
}
