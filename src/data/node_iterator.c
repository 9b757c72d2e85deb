/* Iterators over nodes: making them, calling the entries of their tables, saving. */
#include "data/data.h"

#include <string.h>

/* A step of SplitMix64: neighbouring numbers give unrelated results, and the order of the
 * steps matters. */
static uint64_t link_lineage(uint64_t lineage, uint64_t number)
{
    uint64_t x = lineage + 0x9E3779B97F4A7C15u + number * 0xD1B54A32D192ED03u;

    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint64_t lsi_lineage_below(const lsi_iterator *it, uint64_t number)
{
    return link_lineage(link_lineage(it->as.lineage, number), it->dataset->share);
}

ls_status lsi_iterator_new(const lsi_iterator_ops *ops, size_t size, ls_dataset *d,
                           const lsi_opening *how, lsi_iterator **out, ls_error *err)
{
    lsi_iterator *it = lsi_alloc(1, size);

    if (it == NULL) {
        return lsi_fail_memory(err, "an iterator", size);
    }
    it->ops = ops;
    it->dataset = ls_dataset_retain(d);
    it->as = *how;
    *out = it;
    return LS_OK;
}

ls_status lsi_dataset_iterate(ls_dataset *d, const lsi_opening *how, lsi_iterator **out,
                              ls_error *err)
{
    const ls_status st = ls_dataset_status(d, err);

    return st == LS_OK ? d->ops->iterate(d, how, out, err) : st;
}

lsi_input_threads *lsi_iterator_threads(const lsi_iterator *it)
{
    return it->as.device != NULL ? lsi_runtime_input_threads(it->as.device->runtime)
                                 : NULL;
}

ls_status lsi_iterator_open_input(const lsi_iterator *it, ls_dataset *d, uint64_t lineage,
                                  lsi_iterator **out, ls_error *err)
{
    const lsi_opening how = {it->as.device, lineage, it->as.depth};

    return lsi_dataset_iterate(d, &how, out, err);
}

ls_status lsi_iterator_open_made(const lsi_iterator *it, ls_dataset *d, uint64_t lineage,
                                 lsi_iterator **out, ls_error *err)
{
    const int around = it->as.depth;
    lsi_opening how = {it->as.device, lineage, around};
    const ls_status st = ls_dataset_status(d, err);

    if (st != LS_OK) {
        return st;
    }
    if (d->depth > LS_DATASET_MAX_DEPTH - around) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "a function made a dataset of depth %d inside of others of depth "
                        "%d: together that is more than %d",
                        d->depth, around, LS_DATASET_MAX_DEPTH);
    }
    how.depth += d->depth;
    return lsi_dataset_iterate(d, &how, out, err);
}

void lsi_iterator_close(lsi_iterator *it)
{
    if (it == NULL) {
        return;
    }
    if (it->ops->close != NULL) {
        it->ops->close(it);
    }
    ls_dataset_release(it->dataset);
    lsi_free(it);
}

static ls_status new_over_input(const lsi_iterator_ops *ops, size_t size, ls_dataset *d,
                                const lsi_opening *how, bool below, lsi_iterator **out,
                                ls_error *err)
{
    lsi_iterator *it = NULL;
    ls_status st = lsi_iterator_new(ops, size, d, how, &it, err);

    if (st == LS_OK) {
        st = lsi_iterator_open_input(it, d->inputs[0],
                                     below ? lsi_lineage_below(it, 0) : how->lineage,
                                     &((lsi_unary_iterator *)it)->input, err);
    }
    if (st == LS_OK) {
        *out = it;
    } else if (it != NULL) {
        ls_dataset_release(it->dataset);
        lsi_free(it); // without close(), which expects a complete iterator
    }
    return st;
}

ls_status lsi_unary_iterator_new(const lsi_iterator_ops *ops, size_t size, ls_dataset *d,
                                 const lsi_opening *how, lsi_iterator **out,
                                 ls_error *err)
{
    return new_over_input(ops, size, d, how, false, out, err);
}

ls_status lsi_function_iterator_new(const lsi_iterator_ops *ops, size_t size,
                                    ls_dataset *d, const lsi_opening *how,
                                    lsi_iterator **out, ls_error *err)
{
    return new_over_input(ops, size, d, how, true, out, err);
}

void lsi_unary_iterator_close(lsi_iterator *it)
{
    lsi_iterator_close(((lsi_unary_iterator *)it)->input);
}

ls_status lsi_iterator_next(lsi_iterator *it, ls_value **out, ls_error *err)
{
    return it->ops->next(it, out, err);
}

ls_status lsi_unary_iterator_skip(lsi_iterator *it, int64_t n, int64_t *skipped,
                                  ls_error *err)
{
    return lsi_iterator_skip(((lsi_unary_iterator *)it)->input, n, skipped, err);
}

ls_status lsi_iterator_fill_by_next(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                                    int64_t *got, ls_error *err)
{
    ls_status st = LS_OK;

    *got = 0;
    while (*got < want && st == LS_OK) {
        ls_value *element = NULL;

        st = it->ops->next(it, &element, err);
        if (st == LS_OK) {
            st = lsi_batch_rows_add(rows, element, err);
            ls_value_release(element);
            *got += st == LS_OK;
        }
    }
    return st;
}

ls_status lsi_iterator_skip_by_next(lsi_iterator *it, int64_t n, int64_t *skipped,
                                    ls_error *err)
{
    ls_status st = LS_OK;

    *skipped = 0;
    while (*skipped < n && st == LS_OK) {
        ls_value *element = NULL;

        st = it->ops->next(it, &element, err);
        if (st == LS_OK) {
            ls_value_release(element);
            *skipped += 1;
        }
    }
    return st;
}

ls_status lsi_iterator_fill(lsi_iterator *it, lsi_batch_rows *rows, int64_t want,
                            int64_t *got, ls_error *err)
{
    *got = 0;
    return it->ops->fill != NULL ? it->ops->fill(it, rows, want, got, err)
                                 : lsi_iterator_fill_by_next(it, rows, want, got, err);
}

ls_status lsi_iterator_skip(lsi_iterator *it, int64_t n, int64_t *skipped, ls_error *err)
{
    *skipped = 0;
    return it->ops->skip != NULL ? it->ops->skip(it, n, skipped, err)
                                 : lsi_iterator_skip_by_next(it, n, skipped, err);
}

/* ---- saving ---- */

ls_status lsi_iterator_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    const ls_status st = it->ops->save(it, w, err);

    if (st != LS_OK) {
        return st;
    }
    if (w->failed) {
        return lsi_fail_memory(err, "the position of an iterator", w->room * 2);
    }
    if (w->obstacle != NULL) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "the position cannot be saved: '%s' keeps state that the library "
                        "does not know; set the option external_state to leave it out",
                        w->obstacle);
    }
    return LS_OK;
}

ls_status lsi_iterator_restore(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    return it->ops->restore(it, r, err);
}

ls_status lsi_unary_iterator_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    return lsi_iterator_save(((lsi_unary_iterator *)it)->input, w, err);
}

ls_status lsi_unary_iterator_restore(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    return lsi_iterator_restore(((lsi_unary_iterator *)it)->input, r, err);
}

ls_status lsi_input_iterator_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    lsi_state_write_bool(w, it != NULL);
    return it != NULL ? lsi_iterator_save(it, w, err) : LS_OK;
}

ls_status lsi_input_iterator_restore(const lsi_iterator *it, lsi_iterator **input,
                                     uint64_t lineage, ls_dataset *d, lsi_state_reader *r,
                                     ls_error *err)
{
    bool there = false;
    ls_status st = lsi_state_read_bool(r, &there, err);

    if (st == LS_OK && !there) {
        lsi_iterator_close(*input);
        *input = NULL;
    } else if (st == LS_OK) {
        if (*input == NULL) {
            st = lsi_iterator_open_input(it, d, lineage, input, err);
        }
        if (st == LS_OK) {
            st = lsi_iterator_restore(*input, r, err);
        }
    }
    return st;
}

/* The first node with state that the library does not know; NULL: none. */
static const ls_dataset *find_stateful(const ls_dataset *d)
{
    const ls_dataset *found = d->stateful ? d : NULL;

    for (int i = 0; found == NULL && i < d->ninputs; i++) {
        found = find_stateful(d->inputs[i]);
    }
    return found;
}

ls_device *lsi_input_device(ls_runtime *rt)
{
    if (rt == NULL) {
        rt = lsi_runtime_default();
    }
    return rt != NULL ? ls_runtime_device(rt, 0) : NULL;
}

ls_status lsi_pipeline_iterate(ls_dataset *d, ls_runtime *rt, lsi_iterator **out,
                               ls_error *err)
{
    ls_device *device = lsi_input_device(rt);
    lsi_opening how = {device, 0, d->depth};
    uint64_t seed = (uint64_t)d->seed;

    if (device == NULL) {
        return lsi_fail_memory(err, "the default runtime", sizeof *device);
    }
    if (!d->seeded) {
        seed = lsi_runtime_seed(device->runtime);
    }
    how.lineage =
        link_lineage(link_lineage(0, seed),
                     atomic_fetch_add_explicit(&d->passes, 1, memory_order_relaxed));
    return lsi_dataset_iterate(d, &how, out, err);
}

ls_status lsi_pipeline_save(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    const ls_dataset *outside = find_stateful(it->dataset);
    const ls_external_state policy = it->dataset->options.external_state;

    w->lenient = policy != LS_STATE_FAIL;
    if (outside != NULL && policy == LS_STATE_WARN) {
        lsi_log(LS_LOG_WARNING,
                "the position is saved without the state of '%s', which the library "
                "does not know",
                ls_dataset_kind(outside));
    }
    if (outside != NULL) {
        (void)lsi_state_write_without(w, outside);
    }
    lsi_state_write_u64(w, lsi_dataset_fingerprint(it->dataset));
    lsi_state_write_u64(w, it->as.lineage);
    lsi_state_write_u64(w,
                        atomic_load_explicit(&it->dataset->passes, memory_order_relaxed));
    return lsi_iterator_save(it, w, err);
}

/* Replaces *it, if its lineage is another one. */
static ls_status remake_iterator(lsi_iterator **it, uint64_t lineage, ls_error *err)
{
    lsi_iterator *made = NULL;
    ls_status st = LS_OK;

    if ((*it)->as.lineage != lineage) {
        st = lsi_iterator_open_input(*it, (*it)->dataset, lineage, &made, err);
    }
    if (made != NULL) {
        lsi_iterator_close(*it);
        *it = made;
    }
    return st;
}

ls_status lsi_pipeline_restore(lsi_iterator **it, lsi_state_reader *r, ls_error *err)
{
    uint64_t print = 0, lineage = 0, passes = 0;
    ls_dataset *d = (*it)->dataset;
    ls_status st = lsi_state_read_u64(r, &print, err);

    r->device = (*it)->as.device;
    if (st != LS_OK) {
        return st;
    }
    if (print != lsi_dataset_fingerprint(d)) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "the state was saved from another pipeline: its operators or "
                        "their parameters differ from those of this '%s'; build the "
                        "dataset as it was built then",
                        ls_dataset_kind(d));
    }
    st = lsi_state_read_u64(r, &lineage, err);
    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &passes, err);
    }
    if (st == LS_OK) {
        st = remake_iterator(it, lineage, err);
    }
    if (st == LS_OK) {
        st = lsi_iterator_restore(*it, r, err);
    }
    if (st == LS_OK) { // so that the next pass has the next number
        atomic_store_explicit(&d->passes, passes, memory_order_relaxed);
    }
    return st;
}
