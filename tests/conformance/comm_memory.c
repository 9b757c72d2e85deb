/* Every allocation of a communicator may fail: an error on all ranks, and no leak. */
#include "comm_suite.h"

#include "os/thread.h"

struct member {
    ls_comm *comm;
    ls_error err;
    ls_status st;
    lsi_thread thread;
};

/* Every call that allocates: works, batches, counts, partial sums, splits. */
static ls_status call_everything(ls_comm *comm, ls_error *err)
{
    ls_comm_options tree = LS_COMM_OPTIONS_INIT;
    const size_t counts[4] = {1, 2, 3, 4};
    ls_comm_work *work = NULL;
    ls_comm *part = NULL;
    uint16_t half[300] = {0};
    float x[10] = {0}, y[10] = {0};
    ls_status st;

    tree.algorithm = "tree";
    st = ls_comm_all_reduce(comm, LS_SUM, half, 300, LS_BF16, &tree, err);
    if (st == LS_OK) {
        st =
            ls_comm_start_all_gather_uneven(comm, x, counts, LS_F32, NULL, y, &work, err);
    }
    if (st == LS_OK) {
        st = ls_comm_wait(work, err);
    }
    if (st == LS_OK) {
        st = ls_comm_group_begin(comm, err);
    }
    for (int i = 0; i < 9 && st == LS_OK; i++) {
        st = ls_comm_all_gather_uneven(comm, x, counts, LS_F32, NULL, y, err);
    }
    if (st == LS_OK) {
        st = ls_comm_group_end(comm, NULL, err);
    }
    if (st == LS_OK) {
        st = ls_comm_split(comm, ls_comm_rank(comm) % 2, 0, &part, err);
    }
    if (st == LS_OK) {
        st = ls_comm_barrier(part, NULL, err);
    }
    ls_comm_release(part);
    return st;
}

static void use_one(void *arg)
{
    struct member *m = arg;

    m->st = call_everything(m->comm, &m->err);
}

enum { FEW = 4 };

/* The factory that make_and_use() takes: an allocation test has no argument. */
static const lst_comm_factory *factory;

static ls_status make_and_use(ls_error *err)
{
    const int size = LSI_MIN(factory->most, FEW);
    struct member ranks[FEW];
    ls_comm *comms[FEW] = {NULL};
    ls_error other = LS_ERROR_INIT;
    ls_status st = factory->make(size, 0, comms, err);

    LST_CHECK((st == LS_OK) == (comms[0] != NULL));
    if (st != LS_OK) {
        return st;
    }
    for (int r = 0; r < size; r++) {
        ranks[r] = (struct member){.comm = comms[r], .err = LS_ERROR_INIT};
        LST_OK(lsi_thread_start(&ranks[r].thread, use_one, &ranks[r], &other, "r-%d", r));
    }
    for (int r = 0; r < size; r++) {
        lsi_thread_join(&ranks[r].thread);
        if (ranks[r].st != LS_OK && st == LS_OK) {
            st = ranks[r].st;
            *err = ranks[r].err;
        }
    }
    for (int r = 0; r < size; r++) {
        ls_comm_release(comms[r]);
    }
    return st;
}

void lst_comm_memory(const lst_comm_factory *f)
{
    factory = f;
    lst_every_allocation(make_and_use);
}
