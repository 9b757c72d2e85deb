/*
 * The state of a distributed iterator: the position of every feed after the last step
 * returned, with the elements prefetched. It is a tensor of bytes that ends with a
 * checksum.
 */
#include "base/hash.h"
#include "input/input.h"

static const uint64_t magic = UINT64_C(0x3154534944534c02); // includes the version

static ls_status write_all(ls_dist_iterator *it, lsi_state_writer *w, ls_error *err)
{
    const ls_dist_dataset *dd = it->dataset;
    const uint64_t head[] = {magic,
                             (uint64_t)dd->workers,
                             (uint64_t)dd->worker,
                             (uint64_t)dd->local,
                             (uint64_t)dd->npipelines,
                             (uint64_t)it->steps,
                             it->over ? 1 : 0,
                             (uint64_t)it->have};
    ls_status st = LS_OK;

    for (size_t i = 0; i < LSI_COUNT_OF(head); i++) {
        lsi_state_write_u64(w, head[i]);
    }
    for (int r = 0; r < it->have; r++) { // of a step that failed and will be continued
        lsi_state_write_bool(w, it->parts[r] != NULL);
        if (it->parts[r] != NULL) {
            lsi_state_write_value(w, it->parts[r]);
        }
    }
    for (int i = 0; i < dd->npipelines && st == LS_OK; i++) {
        st = lsi_feed_save(it->feeds[i], w, err);
    }
    if (st == LS_OK) {
        lsi_state_write_u64(w, lsi_hash(LSI_HASH_INIT, w->bytes, w->size));
    }
    if (st == LS_OK && w->failed) {
        st = lsi_fail_memory(err, "the position of an iterator", w->size);
    }
    return st;
}

static ls_status as_value(const lsi_state_writer *w, ls_device *device, ls_value **out,
                          ls_error *err)
{
    ls_tensor *t = NULL;
    ls_status st =
        ls_tensor_create(device, LS_U8, LS_SHAPE((int64_t)w->size), w->bytes, &t, err);

    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

ls_status ls_dist_iterator_save(ls_dist_iterator *it, ls_value **out, ls_error *err)
{
    lsi_state_writer w = {0};
    ls_status st = lsi_dist_iterator_ready(it, "save", err);

    if (st == LS_OK && (out == NULL || it->dataset->callable != NULL)) {
        st = out == NULL ? lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                         "save: out is NULL")
                         : lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                                    "save: the position of a callable cannot be saved");
    }
    if (st == LS_OK) {
        st = write_all(it, &w, err);
    }
    if (st == LS_OK) {
        st = as_value(&w, lsi_input_device(it->dataset->strategy->runtime), out, err);
    }
    lsi_state_writer_clear(&w);
    return st;
}

/* Checks that the state belongs to this worker of a job of this size. */
static ls_status check_head(const ls_dist_dataset *dd, const uint64_t *head,
                            ls_error *err)
{
    if (head[0] != magic) {
        return lsi_fail(err, LS_DATA_LOSS, -1,
                        "restore: this is not the position of a distributed iterator");
    }
    if (head[1] != (uint64_t)dd->workers || head[3] != (uint64_t)dd->local ||
        head[4] != (uint64_t)dd->npipelines) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "restore: saved by %llu workers with %llu replicas each, this "
                        "job has %d with %d; restore with the same numbers",
                        (unsigned long long)head[1], (unsigned long long)head[3],
                        dd->workers, dd->local);
    }
    if (head[2] != (uint64_t)dd->worker) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "restore: the position is that of worker %llu, this is worker "
                        "%d",
                        (unsigned long long)head[2], dd->worker);
    }
    if (head[5] > INT64_MAX || head[6] > 1 || head[7] > (uint64_t)dd->local) {
        return lsi_state_damaged(err, "a number is out of range");
    }
    return LS_OK;
}

static ls_status read_part(ls_dist_iterator *it, int r, lsi_state_reader *reader,
                           ls_error *err)
{
    const ls_dist_dataset *dd = it->dataset;
    ls_value *v = NULL;
    bool present = false;
    ls_status st = lsi_state_read_bool(reader, &present, err);

    if (st == LS_OK && present) {
        st = lsi_state_read_value(reader, &v, err);
    }
    if (st == LS_OK && present) {
        st = lsi_value_place(v, dd->on_host ? NULL : dd->strategy->devices[r],
                             &it->parts[r], err);
    }
    ls_value_release(v);
    it->have += st == LS_OK ? 1 : 0;
    return st;
}

static ls_status read_all(ls_dist_iterator *it, lsi_state_reader *r, ls_error *err)
{
    const ls_dist_dataset *dd = it->dataset;
    uint64_t head[8] = {0};
    ls_status st = LS_OK;

    for (size_t i = 0; i < LSI_COUNT_OF(head) && st == LS_OK; i++) {
        st = lsi_state_read_u64(r, &head[i], err);
    }
    if (st == LS_OK) {
        st = check_head(dd, head, err);
    }
    if (st != LS_OK) {
        return st;
    }
    lsi_dist_iterator_drop(it);
    r->device = lsi_input_device(dd->strategy->runtime);
    for (int i = 0; i < (int)head[7] && st == LS_OK; i++) {
        st = read_part(it, i, r, err);
    }
    for (int i = 0; i < dd->npipelines && st == LS_OK; i++) {
        st = lsi_feed_restore(it->feeds[i], r, err);
    }
    if (st == LS_OK) {
        it->steps = (int64_t)head[5];
        it->over = head[6] != 0;
    }
    return st;
}

/* Opens a state after checking its checksum. */
static ls_status open_state(const ls_value *state, lsi_state_reader *r, ls_error *err)
{
    const ls_tensor *t = state != NULL ? ls_value_as_tensor(state) : NULL;
    lsi_state_reader tail;
    uint64_t sum = 0;
    ls_status st;

    if (t == NULL || ls_tensor_dtype(t) != LS_U8 || ls_tensor_ndim(t) != 1 ||
        ls_tensor_data(t) == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "restore: a position is a tensor of bytes, as "
                             "ls_dist_iterator_save() returns it");
    }
    if (ls_tensor_bytes(t) < sizeof sum) {
        return lsi_state_damaged(err, "it is too short");
    }
    *r = (lsi_state_reader){ls_tensor_data(t), ls_tensor_bytes(t) - sizeof sum, 0, NULL};
    tail = (lsi_state_reader){r->bytes + r->size, sizeof sum, 0, NULL};
    st = lsi_state_read_u64(&tail, &sum, err);
    if (st == LS_OK && sum != lsi_hash(LSI_HASH_INIT, r->bytes, r->size)) {
        st = lsi_state_damaged(err, "its sum is wrong");
    }
    return st;
}

ls_status ls_dist_iterator_restore(ls_dist_iterator *it, ls_value *state, ls_error *err)
{
    lsi_state_reader r = {NULL, 0, 0, NULL};
    ls_status st = lsi_dist_iterator_ready(it, "restore", err);

    if (st == LS_OK && it->dataset->callable != NULL) {
        st = lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                      "restore: the position of a callable cannot be restored");
    }
    if (st == LS_OK) {
        st = open_state(state, &r, err);
    }
    return st == LS_OK ? read_all(it, &r, err) : st;
}
