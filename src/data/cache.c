/*
 * cache: the first pass that reaches its end fills it, later passes replay it without
 * reading the input. In memory the elements belong to the node, so that all its iterators
 * share them; they are part of the saved state.
 */
#include "data/cache.h"

#include <string.h>

struct cache {
    lsi_unary_iterator unary; // the input is NULL if the list was complete from the start
    bool over;       // the input has ended; kept, because its position is saved with ours
    bool incomplete; // there was no memory for an element: the list must not be replayed
    lsi_element_list *list; // private until it is complete
    size_t at;              // the next element to replay
    size_t near;            // hint for lsi_element_list_get()
};

/* Sets the list that later iterators of the node replay; NULL: none. */
static void publish_list(lsi_cache_node *node, lsi_element_list *s, bool replace)
{
    lsi_element_list *old = NULL;

    lsi_mutex_lock(&node->lock);
    if (replace || node->complete == NULL) {
        old = node->complete;
        node->complete = lsi_element_list_retain(s);
    }
    lsi_mutex_unlock(&node->lock);
    lsi_element_list_release(old);
}

void lsi_cache_warn(const lsi_cache_node *node)
{
    lsi_log(LS_LOG_WARNING,
            "cache %s: the pass that fills it stopped before its end, and its contents "
            "held is lost; take() belongs before cache(), not after it",
            node->file != NULL ? node->file : "in memory");
}

/* ---- the iterator in memory ---- */

/* The pass goes on, but the list is dropped. */
static void give_up_cache(struct cache *c, const ls_error *why)
{
    lsi_log(LS_LOG_WARNING, "cache in memory: %s; later passes read the input again",
            why->message);
    lsi_element_list_release(c->list);
    c->list = NULL;
    c->incomplete = true;
}

static void keep_element(struct cache *c, ls_value *v)
{
    ls_error err = LS_ERROR_INIT;

    if (!c->incomplete && lsi_element_list_add(c->list, v, &err) != LS_OK) {
        give_up_cache(c, &err);
    }
}

static void complete_cache(struct cache *c)
{
    ls_error err = LS_ERROR_INIT;

    if (!c->incomplete && lsi_element_list_seal(c->list, &err) != LS_OK) {
        give_up_cache(c, &err);
    }
    if (!c->incomplete) {
        publish_list((lsi_cache_node *)c->unary.base.dataset, c->list, false);
        c->at = lsi_element_list_count(c->list);
    }
    c->over = true;
}

static ls_status read_and_keep(struct cache *c, ls_value **out, ls_error *err)
{
    const ls_status st = lsi_iterator_next(c->unary.input, out, err);

    if (st == LS_OUT_OF_RANGE) {
        complete_cache(c);
    } else if (st == LS_OK) {
        keep_element(c, *out);
    }
    return st;
}

static bool replays_list(const struct cache *c)
{
    return c->unary.input == NULL || c->over;
}

/* The number of elements left to replay. */
static size_t count_left(const struct cache *c)
{
    return c->incomplete ? 0 : lsi_element_list_count(c->list) - c->at;
}

static ls_status next_cached(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct cache *c = (struct cache *)it;
    ls_status st;

    if (!replays_list(c)) {
        return read_and_keep(c, out, err);
    }
    if (count_left(c) == 0) {
        return LS_OUT_OF_RANGE;
    }
    st = lsi_element_list_get(c->list, c->at, &c->near, it->as.device, out, err);
    c->at += st == LS_OK;
    return st;
}

static ls_status fill_from_cache(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                                 int64_t *got, ls_error *err)
{
    struct cache *c = (struct cache *)it;
    ls_status st;

    if (!replays_list(c)) {
        return lsi_iterator_fill_by_next(it, rows, want, got, err);
    }
    const size_t n = LSI_MIN((size_t)want, count_left(c));
    st = n > 0 ? lsi_element_list_rows(c->list, c->at, n, &c->near, rows, err) : LS_OK;
    if (st == LS_OK) {
        c->at += n;
        *got = (int64_t)n;
    }
    return st == LS_OK && n < (size_t)want ? LS_OUT_OF_RANGE : st;
}

static ls_status skip_cached(lsi_iterator *it, int64_t n, int64_t *skipped, ls_error *err)
{
    struct cache *c = (struct cache *)it;

    if (!replays_list(c)) {
        return lsi_iterator_skip_by_next(it, n, skipped, err);
    }
    *skipped = (int64_t)LSI_MIN((size_t)n, count_left(c));
    c->at += (size_t)*skipped;
    return *skipped < n ? LS_OUT_OF_RANGE : LS_OK;
}

static ls_status save_elements(struct cache *c, lsi_state_writer *w, ls_error *err)
{
    const size_t n = c->incomplete ? 0 : lsi_element_list_count(c->list);
    size_t near = 0;
    ls_status st = LS_OK;

    lsi_state_write_u64(w, n);
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        ls_value *v = NULL;

        st = lsi_element_list_get(c->list, i, &near, NULL, &v, err);
        if (st == LS_OK) {
            lsi_state_write_value(w, v);
        }
        ls_value_release(v);
    }
    return st;
}

static ls_status save_cache(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct cache *c = (struct cache *)it;
    ls_error why = LS_ERROR_INIT;
    ls_status st;

    if (!replays_list(c) && !c->incomplete &&
        lsi_element_list_seal(c->list, &why) != LS_OK) {
        give_up_cache(c, &why);
    }
    lsi_state_write_bool(w, c->over);
    lsi_state_write_bool(w, c->incomplete);
    lsi_state_write_u64(w, c->at);
    st = save_elements(c, w, err);
    return st == LS_OK ? lsi_input_iterator_save(c->unary.input, w, err) : st;
}

static ls_status restore_elements(lsi_element_list *s, const ls_spec *spec,
                                  lsi_state_reader *r, ls_error *err)
{
    uint64_t n = 0;
    ls_status st = lsi_state_read_count(r, (r->size - r->at) / sizeof n, &n, err);

    for (uint64_t i = 0; i < n && st == LS_OK; i++) {
        ls_value *v = NULL;

        st = lsi_state_read_element(r, spec, &v, err);
        if (st == LS_OK) {
            st = lsi_element_list_add(s, v, err);
        }
        ls_value_release(v);
    }
    return st == LS_OK ? lsi_element_list_seal(s, err) : st;
}

static ls_status restore_list(struct cache *c, lsi_state_reader *r, ls_error *err)
{
    const ls_spec *spec = c->unary.base.dataset->spec;
    lsi_element_list *list = NULL;
    uint64_t at = 0;
    ls_status st = lsi_state_read_bool(r, &c->incomplete, err);

    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &at, err);
    }
    if (st == LS_OK) {
        st = lsi_element_list_create(spec, &list, err);
    }
    if (st == LS_OK) {
        st = restore_elements(list, spec, r, err);
    }
    if (st == LS_OK && at > lsi_element_list_count(list)) {
        st = lsi_state_damaged(err, "a position after the end of a cache");
    }
    if (st != LS_OK) {
        lsi_element_list_release(list);
        return st;
    }
    lsi_element_list_release(c->list);
    c->list = list;
    c->at = c->incomplete ? 0 : (size_t)at;
    c->near = 0;
    return LS_OK;
}

static ls_status restore_cache(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct cache *c = (struct cache *)it;
    ls_status st = lsi_state_read_bool(r, &c->over, err);

    if (st == LS_OK) {
        st = restore_list(c, r, err);
    }
    if (st == LS_OK) {
        st = lsi_input_iterator_restore(it, &c->unary.input, it->as.lineage,
                                        it->dataset->inputs[0], r, err);
    }
    if (st == LS_OK) {
        const bool whole = replays_list(c) && !c->incomplete;

        publish_list((lsi_cache_node *)it->dataset, whole ? c->list : NULL, true);
    }
    return st;
}

static void close_cache(lsi_iterator *it)
{
    struct cache *c = (struct cache *)it;

    if (!replays_list(c) && c->list != NULL && lsi_element_list_count(c->list) > 0) {
        lsi_cache_warn((const lsi_cache_node *)it->dataset);
    }
    lsi_element_list_release(c->list);
    lsi_unary_iterator_close(it);
}

static ls_status iterate_memory(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                                ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_cached,
                                         .fill = fill_from_cache,
                                         .skip = skip_cached,
                                         .save = save_cache,
                                         .restore = restore_cache,
                                         .close = close_cache};
    lsi_cache_node *node = (lsi_cache_node *)d;
    lsi_iterator *it = NULL;
    struct cache *c = NULL;
    ls_status st = lsi_iterator_new(&ops, sizeof *c, d, how, &it, err);

    if (st != LS_OK) {
        return st;
    }
    c = (struct cache *)it;
    lsi_mutex_lock(&node->lock);
    c->list = lsi_element_list_retain(node->complete);
    lsi_mutex_unlock(&node->lock);
    if (c->list == NULL) { // else shuffles of the input must not draw
        st = lsi_element_list_create(d->spec, &c->list, err);
        if (st == LS_OK) {
            st = lsi_dataset_iterate(d->inputs[0], how, &c->unary.input, err);
        }
    }
    if (st == LS_OK) {
        *out = it;
    } else {
        lsi_iterator_close(it);
    }
    return st;
}

/* ---- the node ---- */

static ls_status iterate_cache(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                               ls_error *err)
{
    return ((lsi_cache_node *)d)->file != NULL ? lsi_cache_file_iterate(d, how, out, err)
                                               : iterate_memory(d, how, out, err);
}

static void destroy_cache(ls_dataset *d)
{
    lsi_cache_node *node = (lsi_cache_node *)d;

    lsi_element_list_release(node->complete);
    lsi_mutex_destroy(&node->lock);
    lsi_free(node->file);
}

static ls_dataset *rebuild_cache(const ls_dataset *d, ls_dataset *const *inputs)
{
    return ls_dataset_cache(ls_dataset_retain(inputs[0]),
                            ((const lsi_cache_node *)d)->file);
}

ls_dataset *ls_dataset_cache(ls_dataset *d, const char *file)
{
    static const lsi_dataset_ops ops = {.kind = "cache",
                                        .iterate = iterate_cache,
                                        .rebuild = rebuild_cache,
                                        .destroy = destroy_cache};
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
    lsi_dataset_mix_parameter(made, node->file != NULL);
    return lsi_dataset_done(made, LS_OK, ls_spec_retain(d->spec), d->cardinality, NULL);
}

const char *lsi_dataset_cache_file(const ls_dataset *d)
{
    return !lsi_dataset_bad(d) && strcmp(d->ops->kind, "cache") == 0
               ? ((const lsi_cache_node *)d)->file
               : NULL;
}
