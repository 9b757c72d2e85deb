/* Runs a function on every rank of a group, each rank on a thread of its own. */
#include "comm_suite.h"

#include "os/thread.h"

struct member {
    lst_rank rank;
    lst_rank_fn fn;
    lsi_thread thread;
};

static void run_rank(void *arg)
{
    struct member *m = arg;

    m->fn(&m->rank);
}

void lst_run_group(const lst_comm_factory *f, ls_comm *const *comms, int size,
                   lst_rank_fn fn, void *arg, bool *released)
{
    struct member members[LST_MOST_RANKS];
    ls_error err = LS_ERROR_INIT;

    for (int r = 0; r < size; r++) {
        LST_CHECK(ls_comm_rank(comms[r]) == r && ls_comm_size(comms[r]) == size);
        LST_CHECK(strcmp(ls_comm_backend(comms[r]), f->name) == 0);
        members[r] = (struct member){
            .rank = {.factory = f, .comm = comms[r], .rank = r, .size = size, .arg = arg},
            .fn = fn};
    }
    for (int r = 0; r < size; r++) {
        LST_OK(lsi_thread_start(&members[r].thread, run_rank, &members[r], &err,
                                "rank-%d", r));
    }
    for (int r = 0; r < size; r++) {
        lsi_thread_join(&members[r].thread);
    }
    for (int r = 0; r < size && released != NULL; r++) {
        released[r] = members[r].rank.released;
    }
}

void lst_run_ranks(const lst_comm_factory *f, int size, int64_t timeout_ms,
                   lst_rank_fn fn, void *arg)
{
    ls_comm *comms[LST_MOST_RANKS] = {NULL};
    bool released[LST_MOST_RANKS] = {false};
    ls_error err = LS_ERROR_INIT;

    LST_OK(f->make(size, timeout_ms, comms, &err));
    lst_run_group(f, comms, size, fn, arg, released);
    for (int r = 0; r < size; r++) {
        if (!released[r]) {
            ls_comm_release(comms[r]);
        }
    }
}

void lst_run_sizes(const lst_comm_factory *f, lst_rank_fn fn, void *arg)
{
    for (int size = 1; size <= f->most; size++) {
        lst_run_ranks(f, size, 0, fn, arg);
    }
}
