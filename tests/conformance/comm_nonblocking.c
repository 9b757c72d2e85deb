/* Non-blocking calls: many at a time, waited for in any order; several groups at once. */
#include "comm_suite.h"

#include "collective/backend.h"

enum { MOST_WORKS = 40, MOST_COUNT = 20011 };

struct job {
    ls_comm_work *work;
    int kind;
    int root;
    size_t count;
    int32_t *from, *to;
};

/* Every rank draws the same numbers for the calls, and its own for the order of waits. */
static void start_call(lst_rank *me, struct job *j, uint64_t *shared)
{
    static const size_t counts[] = {0, 1, 3, 250, 4096, MOST_COUNT};
    const size_t n = (size_t)me->size;

    j->kind = (int)(lst_random(shared) % 5);
    j->root = (int)(lst_random(shared) % n);
    j->count = counts[lst_random(shared) % LSI_COUNT_OF(counts)];
    for (size_t i = 0; i < j->count * n; i++) {
        j->from[i] = me->rank + (int32_t)i;
        j->to[i] = j->from[i];
    }
    switch (j->kind) {
    case 0:
        LST_OK(ls_comm_start_all_reduce(me->comm, LS_SUM, j->to, j->count, LS_I32, NULL,
                                        &j->work, NULL));
        break;
    case 1:
        LST_OK(ls_comm_start_broadcast(me->comm, j->root, j->to, j->count, LS_I32, NULL,
                                       &j->work, NULL));
        break;
    case 2:
        LST_OK(ls_comm_start_all_gather(me->comm, j->from, j->count, LS_I32, NULL, j->to,
                                        &j->work, NULL));
        break;
    case 3:
        LST_OK(ls_comm_start_reduce_scatter(me->comm, LS_SUM, j->from, j->count, LS_I32,
                                            NULL, j->to, &j->work, NULL));
        break;
    default:
        LST_OK(ls_comm_start_reduce(me->comm, j->root, LS_SUM, j->to, j->count, LS_I32,
                                    NULL, &j->work, NULL));
        break;
    }
}

/* The i-th element that rank `me` should have now. */
static int32_t wanted(const lst_rank *me, const struct job *j, size_t i)
{
    const int32_t n = me->size, ranks = n * (n - 1) / 2;

    switch (j->kind) {
    case 0:
        return ranks + n * (int32_t)i;
    case 1:
        return j->root + (int32_t)i;
    case 2:
        return (int32_t)(i / j->count) + (int32_t)(i % j->count);
    case 3:
        return ranks + n * ((int32_t)i + me->rank * (int32_t)j->count);
    default:
        return me->rank == j->root ? ranks + n * (int32_t)i : me->rank + (int32_t)i;
    }
}

static void check_result(const lst_rank *me, struct job *j)
{
    const size_t length = j->kind == 2 ? j->count * (size_t)me->size : j->count;
    bool right = true;

    LST_OK(ls_comm_wait(j->work, NULL));
    for (size_t i = 0; i < length; i++) {
        right = right && j->to[i] == wanted(me, j, i);
    }
    LST_CHECK(right);
}

static void many_works(lst_rank *me)
{
    const int turns = *(const int *)me->arg;
    const size_t room = MOST_COUNT * (size_t)me->size;
    struct job *jobs = calloc(MOST_WORKS, sizeof *jobs);
    uint64_t shared = 5, own = 100 + (uint64_t)me->rank;

    for (int i = 0; i < MOST_WORKS; i++) {
        jobs[i].from = malloc(room * sizeof(int32_t));
        jobs[i].to = malloc(room * sizeof(int32_t));
    }
    for (int turn = 0; turn < turns; turn++) {
        const int works = 1 + (int)(lst_random(&shared) % (turn % 20 == 0 ? 40 : 6));
        int order[MOST_WORKS];

        for (int i = 0; i < works; i++) {
            start_call(me, &jobs[i], &shared);
            order[i] = i;
        }
        for (int i = works; i > 0; i--) {
            const int k = (int)(lst_random(&own) % (uint64_t)i);
            const int chosen = order[k];

            order[k] = order[i - 1];
            if (lst_random(&own) % 3 == 0) {
                (void)ls_comm_test(jobs[chosen].work);
            }
            check_result(me, &jobs[chosen]);
        }
    }
    for (int i = 0; i < MOST_WORKS; i++) {
        free(jobs[i].from);
        free(jobs[i].to);
    }
    free(jobs);
}

/*
 * The other ranks may have done all tasks of a call: a late rank finds its work finished.
 */
static void a_late_rank_costs_nothing(lst_rank *me)
{
    enum { COUNT = 1 << 20 };
    float *buf = malloc(COUNT * sizeof *buf);
    ls_comm_work *work = NULL, *token = NULL;
    int32_t none = 0;

    for (int i = 0; i < COUNT; i++) {
        buf[i] = (float)me->rank;
    }
    LST_OK(ls_comm_start_all_reduce(me->comm, LS_SUM, buf, COUNT, LS_F32, NULL, &work,
                                    NULL));
    if (me->rank == 0) {
        // Returns to its work only after the last of the other ranks has its result.
        for (int r = 1; r < me->size; r++) {
            LST_OK(ls_comm_recv(me->comm, r, 1, LS_I32, NULL, &none, NULL));
        }
        LST_CHECK(ls_comm_test(work));
        LST_OK(ls_comm_wait(work, NULL));
    } else {
        LST_OK(ls_comm_wait(work, NULL));
        LST_OK(ls_comm_start_send(me->comm, 0, &none, 1, LS_I32, NULL, &token, NULL));
        LST_OK(ls_comm_wait(token, NULL));
    }
    LST_CHECK(2 * buf[0] == (float)(me->size * (me->size - 1)));
    LST_CHECK(buf[COUNT - 1] == buf[0]);
    free(buf);
}

/* S111: two groups over the same ranks, each used by its own threads at the same time. */
struct pair {
    const lst_comm_factory *f;
    lsi_thread thread;
    int turns;
};

static void many_sums(lst_rank *me)
{
    const int turns = *(const int *)me->arg;

    for (int i = 0; i < turns; i++) {
        double x[600];

        for (int k = 0; k < 600; k++) {
            x[k] = me->rank + i + k;
        }
        LST_OK(ls_comm_all_reduce(me->comm, LS_SUM, x, 600, LS_F64, NULL, NULL));
        LST_CHECK(x[1] == me->size * (me->size - 1) / 2.0 + me->size * (i + 1.0));
        LST_CHECK(x[599] == me->size * (me->size - 1) / 2.0 + me->size * (i + 599.0));
    }
}

static void run_pair(void *arg)
{
    struct pair *p = arg;

    lst_run_ranks(p->f, 2, 0, many_sums, &p->turns);
}

static void groups_at_once(const lst_comm_factory *f)
{
    struct pair pairs[3];
    ls_error err = LS_ERROR_INIT;

    for (int i = 0; i < 3; i++) {
        pairs[i] = (struct pair){.f = f, .turns = 100};
        LST_OK(
            lsi_thread_start(&pairs[i].thread, run_pair, &pairs[i], &err, "pair-%d", i));
    }
    for (int i = 0; i < 3; i++) {
        lsi_thread_join(&pairs[i].thread);
    }
}

/* A group and one that was split from it, used in turn. */
static void group_and_part(lst_rank *me)
{
    ls_comm *part = NULL;

    LST_OK(ls_comm_split(me->comm, 0, 0, &part, NULL));
    for (int i = 0; i < 50; i++) {
        ls_comm_work *a = NULL, *b = NULL;
        int64_t x = me->rank, y = 1;

        LST_OK(ls_comm_start_all_reduce(me->comm, LS_SUM, &x, 1, LS_I64, NULL, &a, NULL));
        LST_OK(ls_comm_start_all_reduce(part, LS_SUM, &y, 1, LS_I64, NULL, &b, NULL));
        LST_OK(ls_comm_wait(b, NULL));
        LST_OK(ls_comm_wait(a, NULL));
        LST_CHECK(x == me->size * (me->size - 1) / 2 && y == me->size);
    }
    ls_comm_release(part);
}

/* Started works end by progress alone, without a test or a wait of any of them. */
static void progress_only(lst_rank *me)
{
    const int next = (me->rank + 1) % me->size,
              last = (me->rank + me->size - 1) % me->size;
    int32_t *x = malloc(MOST_COUNT * sizeof *x), got = -1;
    ls_comm_work *works[3] = {NULL};

    for (int i = 0; i < MOST_COUNT; i++) {
        x[i] = me->rank;
    }
    LST_OK(ls_comm_start_all_reduce(me->comm, LS_MAX, x, MOST_COUNT, LS_I32, NULL,
                                    &works[0], NULL));
    if (me->size > 1) {
        LST_OK(ls_comm_start_send(me->comm, next, &me->rank, 1, LS_I32, NULL, &works[1],
                                  NULL));
        LST_OK(
            ls_comm_start_recv(me->comm, last, 1, LS_I32, NULL, &got, &works[2], NULL));
    }
    for (int i = 0; i < 3 && works[i] != NULL; i++) {
        while (!works[i]->ended) {
            lsi_comm_progress(me->comm);
            lsi_yield();
        }
    }
    for (int i = 0; i < 3 && works[i] != NULL; i++) {
        LST_OK(ls_comm_wait(works[i], NULL));
    }
    LST_CHECK(x[0] == me->size - 1 && x[MOST_COUNT - 1] == me->size - 1);
    LST_CHECK(me->size == 1 || got == last);
    free(x);
}

void lst_comm_nonblocking(const lst_comm_factory *f)
{
    int turns = 200;

    lst_run_sizes(f, progress_only, NULL);
    if (f->most > 1) {
        lst_run_ranks(f, 2, 0, many_works, &turns);
        lst_run_ranks(f, 3, 0, many_works, &turns);
        turns = 40;
        lst_run_ranks(f, 7, 0, many_works, &turns);
        lst_run_ranks(f, 2, 0, a_late_rank_costs_nothing, NULL);
        lst_run_ranks(f, 5, 0, a_late_rank_costs_nothing, NULL);
        groups_at_once(f);
    } else {
        lst_run_ranks(f, 1, 0, many_works, &turns);
    }
    lst_run_sizes(f, group_and_part, NULL);
}
