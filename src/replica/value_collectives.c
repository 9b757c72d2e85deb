/*
 * Sums and gathers of structures over replicas. Dense leaves of one dtype are reduced
 * together, in packs; sparse leaves one by one.
 */
#include "reduce/reduction.h"
#include "replica/replica.h"

#include <string.h>

/* The leaves of the structure as tensors of the step. */
struct leaves {
    ls_value *list;
    ls_tensor **in, **out;
    size_t n;
};

static bool open_leaves(ls_context *c, ls_value *v, const char *what, struct leaves *l)
{
    ls_error e = LS_ERROR_INIT;

    *l = (struct leaves){NULL, NULL, NULL, 0};
    if (v == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "%s: the value is NULL", what);
        return false;
    }
    if (ls_value_flatten(v, &l->list, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
        return false;
    }
    l->n = ls_value_size(l->list);
    l->in = lsi_alloc(LSI_MAX(2 * l->n, 1), sizeof(ls_tensor *));
    if (l->in == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for %s", what);
        return false;
    }
    l->out = l->in + l->n;
    for (size_t i = 0; i < l->n; i++) {
        l->in[i] = (ls_value_to_tensor)(c, ls_value_child(l->list, i));
    }
    return !lsi_failed(c);
}

/* Builds the structure again, with the results as leaves. */
static ls_value *close_leaves(ls_context *c, ls_value *v, struct leaves *l)
{
    ls_value *list = NULL, *whole = NULL, **items = NULL;
    ls_error e = LS_ERROR_INIT;
    ls_status st = lsi_failed(c) ? LS_ABORTED : LS_OK;

    if (st == LS_OK) {
        items = lsi_alloc(LSI_MAX(l->n, 1), sizeof(ls_value *));
        st = items == NULL ? lsi_fail_memory(&e, "a structure", l->n * sizeof(ls_value *))
                           : LS_OK;
    }
    for (size_t i = 0; i < l->n && st == LS_OK; i++) {
        st = ls_value_tensor(l->out[i], &items[i], &e);
    }
    if (st == LS_OK) {
        st = ls_value_list(items, l->n, &list, &e);
    }
    if (st == LS_OK) {
        st = ls_value_pack(v, list, &whole, &e);
    }
    lsi_value_release_all(items, l->n);
    ls_value_release(list);
    ls_value_release(l->list);
    lsi_free(l->in);
    if (st != LS_OK) {
        (void)lsi_context_error(c, &e);
        return NULL;
    }
    return ls_value_adopt(c, whole);
}

/* ---- sums ---- */

/* True if a leaf is reduced in a pack: it is dense, and its mean has its own dtype. */
static bool is_packed(const ls_tensor *t, ls_reduce op)
{
    return t->values == NULL && (op == LS_SUM || lsi_dtype_is_float((ls_dtype)t->dtype));
}

/* Reduces those of the leaves [first, end) that have the dtype of the first. */
static bool reduce_pack(ls_context *c, ls_reduce op, struct leaves *l, size_t first,
                        size_t end, const ls_communication_options *opts,
                        ls_tensor **scratch)
{
    size_t n = 0;

    for (size_t i = first; i < end; i++) {
        ls_tensor *t = l->in[i];
        const ls_shape shape = ls_tensor_shape(t);

        if (l->out[i] != NULL || !is_packed(t, op) || t->dtype != l->in[first]->dtype) {
            continue;
        }
        l->out[i] = lsi_context_tensor(c, (ls_dtype)t->dtype, &shape);
        if (l->out[i] == NULL) {
            return false;
        }
        scratch[n] = t;
        scratch[l->n + n] = l->out[i];
        n++;
    }
    return lsi_all_reduce_tensors(c, op, scratch, n, opts, scratch + l->n);
}

static int64_t bytes_per_pack(const ls_context *c, const ls_communication_options *opts)
{
    ls_communication_options merged = ls_replica_strategy(c)->communication;

    if (opts != NULL) {
        ls_communication_merge(&merged, opts);
    }
    return merged.bytes_per_pack;
}

/*
 * The bytes of each leaf that is reduced in a pack, 0 for others; false: a dtype cannot
 * be summed.
 */
static bool measure_packed(ls_context *c, ls_reduce op, const struct leaves *l,
                           size_t *bytes)
{
    ls_error e = LS_ERROR_INIT;

    for (size_t i = 0; i < l->n; i++) {
        const ls_dtype d = (ls_dtype)l->in[i]->dtype;

        bytes[i] =
            is_packed(l->in[i], op) ? (size_t)l->in[i]->count * ls_dtype_size(d) : 0;
        if (lsi_reduce_check(op, d, &e) != LS_OK) {
            (void)lsi_context_error(c, &e);
            return false;
        }
    }
    return true;
}

/*
 * Reduces the leaves of packs, pack by pack, then the other leaves one by one. Packs are
 * formed from the end of the list to its beginning.
 */
static void reduce_in_order(ls_context *c, ls_reduce op, struct leaves *l,
                            const size_t *pack, ls_tensor **scratch,
                            const ls_communication_options *opts)
{
    for (size_t end = l->n, begin; end > 0 && !lsi_failed(c); end = begin) {
        begin = end - 1;
        while (begin > 0 && pack[begin - 1] == pack[end - 1]) {
            begin--;
        }
        for (size_t i = begin; i < end && !lsi_failed(c); i++) {
            if (l->out[i] == NULL && is_packed(l->in[i], op)) {
                (void)reduce_pack(c, op, l, i, end, opts, scratch);
            }
        }
    }
    for (size_t i = 0; i < l->n && !lsi_failed(c); i++) {
        if (!is_packed(l->in[i], op)) {
            l->out[i] = (ls_all_reduce)(c, op, l->in[i]);
        }
    }
}

static void reduce_packed(ls_context *c, ls_reduce op, struct leaves *l,
                          const ls_communication_options *opts)
{
    const size_t n = LSI_MAX(l->n, 1);
    size_t *bytes = lsi_alloc(2 * n, sizeof *bytes);
    ls_tensor **scratch = lsi_alloc(2 * n, sizeof(ls_tensor *));

    if (bytes == NULL || scratch == NULL) {
        (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for all_reduce");
    } else if (measure_packed(c, op, l, bytes)) {
        size_t *pack = bytes + n;
        const size_t limit = (size_t)bytes_per_pack(c, opts);

        (void)lsi_pack_by_bytes(bytes, l->n, limit, pack);
        reduce_in_order(c, op, l, pack, scratch, opts);
    }
    lsi_free(bytes);
    lsi_free(scratch);
}

ls_value *(ls_all_reduce_value)(ls_context *c, ls_reduce op, ls_value *v,
                                const ls_communication_options *opts)
{
    ls_error e = LS_ERROR_INIT;
    struct leaves l;

    if (!lsi_require_replica(c, "all_reduce") || lsi_context_aborted(c)) {
        return NULL;
    }
    if ((op != LS_SUM && op != LS_MEAN) ||
        (opts != NULL && ls_communication_check(opts, &e) != LS_OK)) {
        if (e.code == LS_OK) {
            (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                "all_reduce: replicas are combined by SUM or MEAN, not "
                                "by %s",
                                ls_reduce_name(op));
        }
        (void)lsi_context_error(c, &e);
        return NULL;
    }
    if (open_leaves(c, v, "all_reduce", &l)) {
        if (c->recording != 0 || lsi_sync_replicas(c) == 1) { // each with its gradient
            for (size_t i = 0; i < l.n && !lsi_failed(c); i++) {
                l.out[i] = (ls_all_reduce)(c, op, l.in[i]);
            }
        } else {
            reduce_packed(c, op, &l, opts);
        }
    }
    return close_leaves(c, v, &l);
}

/* ---- gathers ---- */

ls_value *(ls_all_gather_value)(ls_context *c, ls_value *v, int axis,
                                const ls_communication_options *opts)
{
    ls_error e = LS_ERROR_INIT;
    struct leaves l;

    if (!lsi_require_replica(c, "all_gather") || lsi_context_aborted(c)) {
        return NULL;
    }
    if (opts != NULL && ls_communication_check(opts, &e) != LS_OK) {
        (void)lsi_context_error(c, &e);
        return NULL;
    }
    if (open_leaves(c, v, "all_gather", &l)) {
        for (size_t i = 0; i < l.n && !lsi_failed(c); i++) {
            l.out[i] = (ls_all_gather)(c, l.in[i], axis);
        }
    }
    return close_leaves(c, v, &l);
}
