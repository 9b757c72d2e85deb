/* The backend of a group with one rank: every call is a copy, done at once. */
#include "collective/call.h"

struct self {
    ls_comm base;
    lsi_failure failure;
};

static struct self *self_of(ls_comm *comm)
{
    return (struct self *)(void *)comm;
}

static void copy_elements(const lsi_call *call, void *to, const void *from, size_t count)
{
    if (count > 0 && to != from) {
        memmove(to, from, count * lsi_call_size(call));
    }
}

static void run_piece(const lsi_call *call, const lsi_comm_piece *piece)
{
    const lsi_reduction sum = lsi_call_partials_reduction(call, 1);

    if (!lsi_call_has_ids(call)) {
        copy_elements(call, piece->to, piece->from, piece->count);
    } else if (piece->count > 0) {
        lsi_partials_reduce(&sum, &piece->from, 1, call->ids, piece->count, &piece->to, 1,
                            piece->count);
    }
}

static void run_alone(const lsi_call *call)
{
    if (call->kind == LSI_CALL_MEET) {
        if (call->to != NULL) {
            memcpy(call->to, (const void *)&call->from, sizeof call->from);
        }
    } else if (call->piece_count > 0) {
        for (size_t i = 0; i < call->piece_count; i++) {
            run_piece(call, &call->pieces[i]);
        }
    } else {
        copy_elements(call, call->to, call->from,
                      call->count); // the counts' sum, if uneven
    }
}

static ls_status post_self(ls_comm *comm, ls_comm_work *work, ls_error *err)
{
    (void)comm;
    (void)err;
    if (work->calls[0].kind == LSI_CALL_DECLINE) {
        ls_error why = LS_ERROR_INIT;

        lsi_reason_read(work->calls[0].from, work->calls[0].count, 0, &why);
        lsi_work_end(work, &why);
        return LS_OK;
    }
    for (size_t i = 0; i < work->call_count; i++) {
        run_alone(&work->calls[i]);
    }
    lsi_work_end(work, NULL);
    return LS_OK;
}

static bool test_self(ls_comm *comm, ls_comm_work *work)
{
    (void)comm;
    return work->ended;
}

static void wait_self(ls_comm *comm, ls_comm_work *work)
{
    (void)comm;
    LSI_ASSERT(work->ended);
}

static void fail_self(ls_comm *comm, const ls_error *why)
{
    lsi_failure_set(&self_of(comm)->failure, why, 0);
}

static bool broken_self(ls_comm *comm, ls_error *why)
{
    return lsi_failure_get(&self_of(comm)->failure, why);
}

static void leave_self(ls_comm *comm, const ls_error *why)
{
    (void)comm; // no rank waits for this one
    (void)why;
}

static void renew_self(ls_comm *comm)
{
    lsi_comm_forget_batch(comm);
    lsi_failure_forget(&self_of(comm)->failure);
}

static ls_status split_self(ls_comm *comm, int colour, int key, lsi_comm_site site,
                            ls_comm **out, ls_error *err)
{
    (void)comm;
    (void)key;
    (void)site;
    if (colour < 0) {
        *out = NULL;
        return LS_OK;
    }
    return ls_comm_self(out, err);
}

static void destroy_self(ls_comm *comm)
{
    lsi_failure_destroy(&self_of(comm)->failure);
    lsi_free(comm);
}

static const lsi_backend backend = {
    .name = "self",
    .post = post_self,
    .test = test_self,
    .wait = wait_self,
    .fail = fail_self,
    .broken = broken_self,
    .leave = leave_self,
    .renew = renew_self,
    .split = split_self,
    .destroy = destroy_self,
};

ls_status ls_comm_self(ls_comm **out, ls_error *err)
{
    struct self *self;

    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "ls_comm_self: out is NULL");
    }
    self = lsi_alloc(1, sizeof *self);
    if (self == NULL) {
        return lsi_fail_memory(err, "a communicator", sizeof *self);
    }
    atomic_init(&self->base.refs, 1);
    self->base.backend = &backend;
    self->base.size = 1;
    self->base.agreed = lsi_comm_agreed_here(1);
    self->base.timeout_ms = lsi_comm_timeout_setting();
    lsi_failure_init(&self->failure);
    *out = &self->base;
    return LS_OK;
}
