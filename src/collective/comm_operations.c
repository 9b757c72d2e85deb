/* The public operations: each checks its arguments and hands over a call. */
#define LS_NO_PLACES
#include "collective/backend.h"

#include <limits.h>

/* LS_OK if `count` elements times `times` lie at `buf`; nothing overflows. */
static ls_status check_buffer(const lsi_call *call, const void *buf, size_t count,
                              int times, const char *name, ls_error *err)
{
    size_t bytes;

    if (!lsi_mul_size(count, (size_t)times, &bytes) ||
        !lsi_mul_size(bytes, lsi_call_size(call), &bytes) || bytes > PTRDIFF_MAX) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s: %zu elements of %s, %d times, are more than memory holds",
                        lsi_call_name(call->kind), count, ls_dtype_name(call->dtype),
                        times);
    }
    if (bytes > 0 && buf == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s: %zu elements at `%s`, which is NULL",
                        lsi_call_name(call->kind), count, name);
    }
    return LS_OK;
}

static ls_status check_comm(const ls_comm *comm, lsi_call *call, ls_error *err)
{
    call->size = ls_dtype_size(call->dtype);
    if (comm == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s: there is no communicator (it is NULL)",
                        lsi_call_name(call->kind));
    }
    if (lsi_call_reduces(call)) {
        return lsi_reduce_check(call->op, call->dtype, err);
    }
    if (lsi_call_size(call) == 0 || call->dtype == LS_STRING) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_TYPE,
                             "%s of %s: it moves every dtype but string",
                             lsi_call_name(call->kind), ls_dtype_name(call->dtype));
    }
    return LS_OK;
}

static ls_status check_peer(const ls_comm *comm, const lsi_call *call, const char *name,
                            ls_error *err)
{
    if (call->peer < 0 || call->peer >= comm->size) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s: `%s` is %d: ranks of this group are 0 to %d",
                        lsi_call_name(call->kind), name, call->peer, comm->size - 1);
    }
    return LS_OK;
}

/* `from` and `to` hold from_times and to_times the count of the call. */
static ls_status check_buffers(const lsi_call *call, int from_times, int to_times,
                               ls_error *err)
{
    const ls_status st =
        check_buffer(call, call->from, call->count, from_times, "from", err);

    return st == LS_OK ? check_buffer(call, call->to, call->count, to_times, "to", err)
                       : st;
}

/* A call with `out` NULL blocks; otherwise it is started and *out is its work. */

/* Calls on one buffer; all but all_reduce have a root. */
static ls_status in_place(ls_comm *comm, lsi_call *call, const ls_comm_options *opts,
                          ls_comm_work **out, ls_error *err)
{
    ls_status st = check_comm(comm, call, err);

    if (st == LS_OK && call->kind != LSI_CALL_ALL_REDUCE) {
        st = check_peer(comm, call, "root", err);
    }
    if (st == LS_OK) {
        st = check_buffer(call, call->to, call->count, 1, "buf", err);
    }
    return st == LS_OK ? lsi_comm_call(comm, call, opts, out, err) : st;
}

static ls_status all_reduce(ls_comm *comm, ls_reduce op, void *buf, size_t count,
                            ls_dtype dtype, const ls_comm_options *opts,
                            ls_comm_work **out, ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_ALL_REDUCE,
                     .op = op,
                     .dtype = dtype,
                     .peer = -1,
                     .count = count,
                     .from = buf,
                     .to = buf,
                     .site = lsi_comm_take_site()};

    return in_place(comm, &call, opts, out, err);
}

static ls_status reduce(ls_comm *comm, int root, ls_reduce op, void *buf, size_t count,
                        ls_dtype dtype, const ls_comm_options *opts, ls_comm_work **out,
                        ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_REDUCE,
                     .op = op,
                     .dtype = dtype,
                     .peer = root,
                     .count = count,
                     .from = buf,
                     .to = buf,
                     .site = lsi_comm_take_site()};

    return in_place(comm, &call, opts, out, err);
}

static ls_status broadcast(ls_comm *comm, int root, void *buf, size_t count,
                           ls_dtype dtype, const ls_comm_options *opts,
                           ls_comm_work **out, ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_BROADCAST,
                     .dtype = dtype,
                     .peer = root,
                     .count = count,
                     .from = buf,
                     .to = buf,
                     .site = lsi_comm_take_site()};

    return in_place(comm, &call, opts, out, err);
}

static ls_status all_gather(ls_comm *comm, const void *from, size_t count,
                            const size_t *counts, ls_dtype dtype,
                            const ls_comm_options *opts, void *to, ls_comm_work **out,
                            ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_ALL_GATHER,
                     .dtype = dtype,
                     .peer = -1,
                     .count = count,
                     .counts = counts,
                     .from = from,
                     .to = to,
                     .site = lsi_comm_take_site()};
    ls_status st = check_comm(comm, &call, err);
    size_t mine = count, total = count;
    int times = 1;

    if (st == LS_OK && counts == NULL) {
        times = comm->size;
    } else if (st == LS_OK) {
        mine = counts[comm->rank];
        total = 0;
        for (int r = 0; r < comm->size; r++) {
            if (!lsi_add_size(total, counts[r], &total)) {
                total = SIZE_MAX; // refused below
                break;
            }
        }
        call.count = total;
    }
    if (st == LS_OK) {
        st = check_buffer(&call, from, mine, 1, "from", err);
    }
    if (st == LS_OK) {
        st = check_buffer(&call, to, total, times, "to", err);
    }
    return st == LS_OK ? lsi_comm_call(comm, &call, opts, out, err) : st;
}

static ls_status all_gather_uneven(ls_comm *comm, const void *from, const size_t *counts,
                                   ls_dtype dtype, const ls_comm_options *opts, void *to,
                                   ls_comm_work **out, ls_error *err)
{
    if (counts == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "all_gather_uneven: there are no counts (it is NULL)");
    }
    return all_gather(comm, from, 0, counts, dtype, opts, to, out, err);
}

static ls_status reduce_scatter(ls_comm *comm, ls_reduce op, const void *from,
                                size_t count, ls_dtype dtype, const ls_comm_options *opts,
                                void *to, ls_comm_work **out, ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_REDUCE_SCATTER,
                     .op = op,
                     .dtype = dtype,
                     .peer = -1,
                     .count = count,
                     .from = from,
                     .to = to,
                     .site = lsi_comm_take_site()};
    ls_status st = check_comm(comm, &call, err);

    if (st == LS_OK) {
        st = check_buffers(&call, comm->size, 1, err);
    }
    return st == LS_OK ? lsi_comm_call(comm, &call, opts, out, err) : st;
}

static ls_status all_to_all(ls_comm *comm, const void *from, size_t count, ls_dtype dtype,
                            const ls_comm_options *opts, void *to, ls_comm_work **out,
                            ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_ALL_TO_ALL,
                     .dtype = dtype,
                     .peer = -1,
                     .count = count,
                     .from = from,
                     .to = to,
                     .site = lsi_comm_take_site()};
    ls_status st = check_comm(comm, &call, err);

    if (st == LS_OK) {
        st = check_buffers(&call, comm->size, comm->size, err);
    }
    if (st == LS_OK && count > 0 && from == to && comm->size > 1) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "all_to_all: `from` and `to` must not be the same memory");
    }
    return st == LS_OK ? lsi_comm_call(comm, &call, opts, out, err) : st;
}

static ls_status barrier(ls_comm *comm, const ls_comm_options *opts, ls_comm_work **out,
                         ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_BARRIER,
                     .dtype = LS_U8,
                     .peer = -1,
                     .site = lsi_comm_take_site()};
    const ls_status st = check_comm(comm, &call, err);

    return st == LS_OK ? lsi_comm_call(comm, &call, opts, out, err) : st;
}

static ls_status point_to_point(ls_comm *comm, lsi_call *call,
                                const ls_comm_options *opts, ls_comm_work **out,
                                ls_error *err)
{
    ls_status st = check_comm(comm, call, err);

    if (st == LS_OK) {
        st = check_peer(comm, call, call->kind == LSI_CALL_SEND ? "to_rank" : "from_rank",
                        err);
    }
    if (st == LS_OK && call->peer == comm->rank) {
        st = lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                      "%s: rank %d is this rank: a rank cannot send to itself",
                      lsi_call_name(call->kind), call->peer);
    }
    if (st == LS_OK) {
        st = check_buffer(call, call->kind == LSI_CALL_SEND ? call->from : call->to,
                          call->count, 1, "buf", err);
    }
    return st == LS_OK ? lsi_comm_call(comm, call, opts, out, err) : st;
}

static ls_status send(ls_comm *comm, int to_rank, const void *buf, size_t count,
                      ls_dtype dtype, const ls_comm_options *opts, ls_comm_work **out,
                      ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_SEND,
                     .dtype = dtype,
                     .peer = to_rank,
                     .count = count,
                     .from = buf,
                     .site = lsi_comm_take_site()};

    return point_to_point(comm, &call, opts, out, err);
}

static ls_status recv(ls_comm *comm, int from_rank, size_t count, ls_dtype dtype,
                      const ls_comm_options *opts, void *buf, ls_comm_work **out,
                      ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_RECV,
                     .dtype = dtype,
                     .peer = from_rank,
                     .count = count,
                     .to = buf,
                     .site = lsi_comm_take_site()};

    return point_to_point(comm, &call, opts, out, err);
}

static ls_status check_out(ls_comm_work *const *out, ls_error *err)
{
    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "a call is started: out is NULL");
    }
    return LS_OK;
}

/* Both forms of every operation: ls_comm_x() blocks, ls_comm_start_x() does not. */
#define LIST(...) __VA_ARGS__
#define BOTH_FORMS(name, params, args)                                                   \
    ls_status ls_comm_##name(ls_comm *comm, params, ls_error *err)                       \
    {                                                                                    \
        return name(comm, args, NULL, err);                                              \
    }                                                                                    \
    ls_status ls_comm_start_##name(ls_comm *comm, params, ls_comm_work **out,            \
                                   ls_error *err)                                        \
    {                                                                                    \
        const ls_status st = check_out(out, err);                                        \
                                                                                         \
        return st == LS_OK ? name(comm, args, out, err) : st;                            \
    }

/* clang-format off */
BOTH_FORMS(all_reduce,
      LIST(ls_reduce op, void *buf, size_t count, ls_dtype dtype, const ls_comm_options *opts),
      LIST(op, buf, count, dtype, opts))
BOTH_FORMS(reduce,
      LIST(int root, ls_reduce op, void *buf, size_t count, ls_dtype dtype, const ls_comm_options *opts),
      LIST(root, op, buf, count, dtype, opts))
BOTH_FORMS(broadcast,
      LIST(int root, void *buf, size_t count, ls_dtype dtype, const ls_comm_options *opts),
      LIST(root, buf, count, dtype, opts))
BOTH_FORMS(all_gather_uneven,
      LIST(const void *from, const size_t *counts, ls_dtype dtype, const ls_comm_options *opts, void *to),
      LIST(from, counts, dtype, opts, to))
BOTH_FORMS(reduce_scatter,
      LIST(ls_reduce op, const void *from, size_t count, ls_dtype dtype, const ls_comm_options *opts, void *to),
      LIST(op, from, count, dtype, opts, to))
BOTH_FORMS(all_to_all,
      LIST(const void *from, size_t count, ls_dtype dtype, const ls_comm_options *opts, void *to),
      LIST(from, count, dtype, opts, to))
BOTH_FORMS(barrier, LIST(const ls_comm_options *opts), LIST(opts))
BOTH_FORMS(send,
      LIST(int to_rank, const void *buf, size_t count, ls_dtype dtype, const ls_comm_options *opts),
      LIST(to_rank, buf, count, dtype, opts))
BOTH_FORMS(recv,
      LIST(int from_rank, size_t count, ls_dtype dtype, const ls_comm_options *opts, void *buf),
      LIST(from_rank, count, dtype, opts, buf))
/* clang-format on */

ls_status ls_comm_all_gather(ls_comm *comm, const void *from, size_t count,
                             ls_dtype dtype, const ls_comm_options *opts, void *to,
                             ls_error *err)
{
    return all_gather(comm, from, count, NULL, dtype, opts, to, NULL, err);
}

ls_status ls_comm_start_all_gather(ls_comm *comm, const void *from, size_t count,
                                   ls_dtype dtype, const ls_comm_options *opts, void *to,
                                   ls_comm_work **out, ls_error *err)
{
    const ls_status st = check_out(out, err);

    return st == LS_OK ? all_gather(comm, from, count, NULL, dtype, opts, to, out, err)
                       : st;
}

/* For the layers above: separate buffers, several pieces, numbers of all ranks. */

ls_status lsi_comm_all_reduce(ls_comm *comm, ls_reduce op, const void *from, void *to,
                              size_t count, ls_dtype dtype, const ls_comm_options *opts,
                              lsi_comm_site site, ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_ALL_REDUCE,
                     .op = op,
                     .dtype = dtype,
                     .peer = -1,
                     .count = count,
                     .from = from,
                     .to = to,
                     .site = site};
    ls_status st = check_comm(comm, &call, err);

    if (st == LS_OK) {
        st = check_buffers(&call, 1, 1, err);
    }
    return st == LS_OK ? lsi_comm_call(comm, &call, opts, NULL, err) : st;
}

/* Checks the ids behind each rank; sets how many partial sums a rank gives. */
static ls_status check_ids(const ls_comm *comm, lsi_call *call, ls_error *err)
{
    if (call->ids < 0 || call->ids > INT_MAX / comm->size) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s: %d ids behind each of %d ranks; together they must be 1 to "
                        "%d",
                        lsi_call_title(call), call->ids, comm->size, INT_MAX);
    }
    call->partials = 1;
    if (lsi_call_has_ids(call)) {
        call->partials = lsi_call_partials_most(call, comm->size);
    }
    return LS_OK;
}

ls_status lsi_comm_all_reduce_pieces(ls_comm *comm, const lsi_comm_reduction *reduction,
                                     const ls_comm_options *opts, lsi_comm_site site,
                                     ls_error *err)
{
    const lsi_comm_piece *pieces = reduction->pieces;
    lsi_call call = {.kind = LSI_CALL_ALL_REDUCE,
                     .op = reduction->op,
                     .dtype = reduction->dtype,
                     .peer = -1,
                     .pieces = pieces,
                     .piece_count = reduction->n,
                     .ids = reduction->ids == 0 ? 1 : reduction->ids,
                     .tag = reduction->tag,
                     .detail = reduction->detail,
                     .site = site};
    ls_status st = check_comm(comm, &call, err);

    if (st == LS_OK) {
        st = check_ids(comm, &call, err);
    }
    for (size_t i = 0; i < reduction->n && st == LS_OK; i++) {
        if (!lsi_add_size(call.count, pieces[i].count, &call.count)) {
            call.count = SIZE_MAX;
        }
        // Partial sums are at most twice as wide as the dtype.
        st = check_buffer(&call, pieces[i].from, pieces[i].count, 2 * call.partials,
                          "from", err);
        if (st == LS_OK) {
            st = check_buffer(&call, pieces[i].to, pieces[i].count, 1, "to", err);
        }
    }
    if (st == LS_OK) { // the total; each piece was checked above
        st = check_buffer(&call, &call, call.count, 2 * call.partials, "pieces", err);
    }
    return st == LS_OK ? lsi_comm_call(comm, &call, opts, NULL, err) : st;
}

ls_status lsi_comm_share(ls_comm *comm, const char *tag, const int64_t *mine,
                         size_t count, void *all, lsi_comm_site site, ls_error *err)
{
    lsi_call call = {.kind = LSI_CALL_ALL_GATHER,
                     .dtype = LS_I64,
                     .peer = -1,
                     .count = count,
                     .from = mine,
                     .to = all,
                     .tag = tag,
                     .site = site};
    ls_error why = LS_ERROR_INIT;
    ls_status st;

    if (all == NULL && comm != NULL) {
        (void)lsi_fail_memory(&why, tag, (size_t)comm->size * count * sizeof *mine);
        return lsi_comm_decline(comm, &why, site, err);
    }
    st = check_comm(comm, &call, err);
    return st == LS_OK ? lsi_comm_call(comm, &call, NULL, NULL, err) : st;
}
