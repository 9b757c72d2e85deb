/* A group of one: every operation is a copy, done when it is called. */
#include "collective/call.h"

struct self {
    ls_comm base;
    lsi_failure failure;
};

static struct self *self_of(ls_comm *comm)
{
    return (struct self *)(void *)comm;
}

static void copy(const lsi_call *call, void *to, const void *from, size_t count)
{
    if (count > 0 && to != from) {
        memmove(to, from, count * lsi_call_size(call));
    }
}

static void run(const lsi_call *call)
{
    if (call->kind == LSI_CALL_MEET) {
        if (call->to != NULL) {
            memcpy(call->to, (const void *)&call->from, sizeof call->from);
        }
    } else if (call->piece_count > 0) {
        for (size_t i = 0; i < call->piece_count; i++) {
            copy(call, call->pieces[i].to, call->pieces[i].from, call->pieces[i].count);
        }
    } else {
        copy(call, call->to, call->from, call->count); // the counts' sum, if uneven
    }
}

static ls_status post(ls_comm *comm, ls_comm_work *work, ls_error *err)
{
    (void)comm;
    (void)err;
    for (size_t i = 0; i < work->call_count; i++) {
        run(&work->calls[i]);
    }
    lsi_work_end(work, NULL);
    return LS_OK;
}

static bool test(ls_comm *comm, ls_comm_work *work)
{
    (void)comm;
    return work->ended;
}

static void wait(ls_comm *comm, ls_comm_work *work)
{
    (void)comm;
    LSI_ASSERT(work->ended);
}

static void fail(ls_comm *comm, const ls_error *why)
{
    lsi_failure_set(&self_of(comm)->failure, why, 0);
}

static bool broken(ls_comm *comm, ls_error *why)
{
    return lsi_failure_get(&self_of(comm)->failure, why);
}

static ls_status split(ls_comm *comm, int colour, int key, lsi_comm_site site,
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

static void destroy(ls_comm *comm)
{
    lsi_failure_destroy(&self_of(comm)->failure);
    lsi_free(comm);
}

static const lsi_backend backend = {
    .name = "self",
    .post = post,
    .test = test,
    .wait = wait,
    .fail = fail,
    .broken = broken,
    .split = split,
    .destroy = destroy,
};

ls_status ls_comm_self(ls_comm **out, ls_error *err)
{
    struct self *self;

    if (out == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "ls_comm_self: there is no room for the handle (out is NULL)");
    }
    self = lsi_alloc(1, sizeof *self);
    if (self == NULL) {
        return lsi_fail_memory(err, "a communicator", sizeof *self);
    }
    self->base.backend = &backend;
    self->base.size = 1;
    self->base.timeout_ms = lsi_comm_timeout_setting();
    lsi_failure_init(&self->failure);
    *out = &self->base;
    return LS_OK;
}
