/*
 * The public iterator: a lock makes calls of several threads take turns, and once the end
 * was reached, every call returns it. A saved state is a tensor of bytes: magic, version,
 * whether it is at the end, the pipeline's fingerprint and position, and a checksum.
 */
#include "base/hash.h"
#include "data/data.h"

#include <string.h>

#define MAGIC 0x7265746974614c53u /* "SLatiter" */
#define VERSION 2

struct ls_iterator {
    lsi_mutex lock;      // guards the rest
    ls_runtime *runtime; // retained
    ls_dataset *dataset;
    lsi_iterator *it;
    bool ended;
};

ls_status ls_dataset_iterate(ls_dataset *d, ls_iterator **out, ls_error *err)
{
    return ls_dataset_iterate_in(d, NULL, out, err);
}

ls_status ls_dataset_iterate_in(ls_dataset *d, ls_runtime *rt, ls_iterator **out,
                                ls_error *err)
{
    ls_iterator *made = NULL;
    ls_status st;

    if (out == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "iterate: there is nowhere to put the iterator: `out` is "
                             "NULL");
    }
    st = ls_dataset_status(d, err);
    if (st != LS_OK) {
        return st;
    }
    made = lsi_alloc(1, sizeof *made);
    if (made == NULL) {
        return lsi_fail_memory(err, "an iterator", sizeof *made);
    }
    st = lsi_pipeline_iterate(d, rt, &made->it, err);
    if (st != LS_OK) {
        lsi_free(made);
        return st;
    }
    lsi_mutex_init(&made->lock);
    made->runtime = ls_runtime_retain(made->it->as.device->runtime);
    made->dataset = ls_dataset_retain(d);
    *out = made;
    return LS_OK;
}

void ls_iterator_release(ls_iterator *it)
{
    if (it != NULL) {
        lsi_iterator_close(it->it);
        ls_dataset_release(it->dataset);
        ls_runtime_release(it->runtime); // last: it joins the threads
        lsi_mutex_destroy(&it->lock);
        lsi_free(it);
    }
}

static ls_status fail_null(ls_error *err, const char *what)
{
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE, "iterator: %s is NULL",
                         what);
}

static ls_status at_end(ls_error *err)
{
    return lsi_fail(err, LS_OUT_OF_RANGE, -1, "end of the dataset");
}

ls_status ls_iterator_next(ls_iterator *it, ls_value **out, ls_error *err)
{
    ls_status st = LS_OUT_OF_RANGE;

    if (it == NULL || out == NULL) {
        return fail_null(err, it == NULL ? "the iterator" : "`out`");
    }
    lsi_mutex_lock(&it->lock);
    if (!it->ended) {
        st = lsi_iterator_next(it->it, out, err);
        it->ended = st == LS_OUT_OF_RANGE;
    }
    if (it->ended) {
        st = at_end(err);
    }
    lsi_mutex_unlock(&it->lock);
    return st;
}

ls_status ls_iterator_save(ls_iterator *it, ls_value **out, ls_error *err)
{
    lsi_state_writer w = {0};
    ls_tensor *t = NULL;
    ls_status st;

    if (it == NULL || out == NULL) {
        return fail_null(err, it == NULL ? "the iterator" : "`out`");
    }
    lsi_state_write_u64(&w, MAGIC);
    lsi_state_write_u64(&w, VERSION);
    lsi_mutex_lock(&it->lock);
    lsi_state_write_bool(&w, it->ended);
    st = lsi_pipeline_save(it->it, &w, err);
    lsi_mutex_unlock(&it->lock);
    if (st == LS_OK) {
        lsi_state_write_u64(&w, lsi_hash(LSI_HASH_INIT, w.bytes, w.size));
        st = w.failed ? lsi_fail_memory(err, "the position of an iterator", w.room * 2)
                      : LS_OK;
    }
    if (st == LS_OK) {
        st = lsi_tensor_create(it->it->as.device, LS_U8, LS_SHAPE((int64_t)w.size),
                               w.bytes, &t, err);
    }
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    lsi_state_writer_clear(&w);
    return st;
}

static ls_status check_frame(lsi_state_reader *r, bool *ended, ls_error *err)
{
    uint64_t magic = 0, version = 0, have = 0;
    ls_status st = lsi_state_read_u64(r, &magic, err);

    if (st == LS_OK && magic != MAGIC) {
        return lsi_state_damaged(err, "it does not begin like a saved state");
    }
    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &version, err);
    }
    if (st == LS_OK && version != VERSION) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "the state has version %llu, this library reads %d",
                        (unsigned long long)version, VERSION);
    }
    if (st == LS_OK && r->size < r->at + 2 * sizeof have) {
        return lsi_state_damaged(err, "it ends too early");
    }
    if (st == LS_OK) {
        r->size -= sizeof have;
        memcpy(&have, r->bytes + r->size, sizeof have);
        st = have == lsi_hash(LSI_HASH_INIT, r->bytes, r->size)
                 ? lsi_state_read_bool(r, ended, err)
                 : lsi_state_damaged(err, "its checksum is wrong");
    }
    return st;
}

/* Restores into a new iterator, so that a failure leaves the old one as it was. */
static ls_status restore_iterator(ls_iterator *it, lsi_state_reader *r, ls_error *err)
{
    lsi_iterator *fresh = NULL;
    bool ended = false;
    ls_status st = check_frame(r, &ended, err);

    if (st == LS_OK) {
        st = lsi_dataset_iterate(it->dataset, &it->it->as, &fresh, err);
    }
    if (st == LS_OK) {
        st = lsi_pipeline_restore(&fresh, r, err);
    }
    if (st == LS_OK && r->at != r->size) {
        st = lsi_state_damaged(err, "there are bytes after its end");
    }
    if (st != LS_OK) {
        lsi_iterator_close(fresh);
        return st;
    }
    lsi_iterator_close(it->it);
    it->it = fresh;
    it->ended = ended;
    return LS_OK;
}

ls_status ls_iterator_restore(ls_iterator *it, ls_value *state, ls_error *err)
{
    const ls_tensor *t = ls_value_as_tensor(state);
    ls_status st;

    if (it == NULL) {
        return fail_null(err, "the iterator");
    }
    if (t == NULL || ls_tensor_dtype(t) != LS_U8 || ls_tensor_data(t) == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "restore: the state is a %s, not the bytes that "
                             "ls_iterator_save() returned",
                             ls_value_kind_name(ls_value_kind_of(state)));
    }
    lsi_state_reader r = {ls_tensor_data(t), ls_tensor_bytes(t), 0, NULL};
    lsi_mutex_lock(&it->lock);
    st = restore_iterator(it, &r, err);
    lsi_mutex_unlock(&it->lock);
    return st;
}
