/*
 * Operations that only move data: broadcast, gathers, all-to-all, send and receive,
 * barrier, split, and batches of calls.
 */
#include "comm_suite.h"

#if defined(__SANITIZE_THREAD__)
enum { MOST = 5003 }; // under a sanitizer: as many calls, fewer elements
#else
enum { MOST = 140001 }; // two tasks and a rest
#endif
static const size_t counts[] = {0, 1, 37, 1000, MOST};

/* A value that identifies its sender and its index. */
static int32_t mark(int rank, size_t i)
{
    return (int32_t)((uint32_t)rank * 1000003u + (uint32_t)i * 7u);
}

static void fill_values(int32_t *buf, int rank, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf[i] = mark(rank, i);
    }
}

static bool is_from(const int32_t *buf, int rank, size_t begin, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (buf[i] != mark(rank, begin + i)) {
            return false;
        }
    }
    return true;
}

static void broadcast_from_each(lst_rank *me)
{
    static const char *const algorithms[] = {NULL, "direct", "tree", "ring"};
    int32_t *buf = malloc(MOST * sizeof *buf);

    for (int root = 0; root < me->size; root++) {
        for (size_t k = 0; k < LSI_COUNT_OF(counts) * LSI_COUNT_OF(algorithms); k++) {
            const size_t count = counts[k / LSI_COUNT_OF(algorithms)];
            ls_comm_options o = LS_COMM_OPTIONS_INIT;

            o.algorithm = algorithms[k % LSI_COUNT_OF(algorithms)];
            fill_values(buf, me->rank, count);
            LST_OK(ls_comm_broadcast(me->comm, root, buf, count, LS_I32, &o, NULL));
            LST_CHECK(is_from(buf, root, 0, count));
        }
    }
    free(buf);
}

static void all_gather(lst_rank *me)
{
    const size_t n = (size_t)me->size;

    for (size_t c = 0; c < LSI_COUNT_OF(counts); c++) {
        const size_t count = counts[c];
        int32_t *from = malloc((count + 1) * sizeof *from);
        int32_t *to = malloc((n * count + 1) * sizeof *to);

        fill_values(from, me->rank, count);
        for (int place = 0; place < 2; place++) { // from its own memory, then in place
            int32_t *own = to + (size_t)me->rank * count;

            memset(to, 0xee, n * count * sizeof *to);
            if (place == 1) {
                fill_values(own, me->rank, count);
            }
            LST_OK(ls_comm_all_gather(me->comm, place == 1 ? own : from, count, LS_I32,
                                      NULL, to, NULL));
            for (int r = 0; r < me->size; r++) {
                LST_CHECK(is_from(to + (size_t)r * count, r, 0, count));
            }
        }
        free(from);
        free(to);
    }
}

static void all_gather_uneven(lst_rank *me)
{
    size_t lengths[LST_MOST_RANKS];

    for (size_t c = 0; c < LSI_COUNT_OF(counts); c++) {
        size_t total = 0, at = 0;
        int32_t *from, *to;

        for (int r = 0; r < me->size; r++) {
            lengths[r] =
                r % 3 == 1 ? 0 : counts[c] / (size_t)(r + 1); // some send nothing
            total += lengths[r];
        }
        from = malloc((lengths[me->rank] + 1) * sizeof *from);
        to = malloc((total + 1) * sizeof *to);
        fill_values(from, me->rank, lengths[me->rank]);
        LST_OK(
            ls_comm_all_gather_uneven(me->comm, from, lengths, LS_I32, NULL, to, NULL));
        for (int r = 0; r < me->size; r++) {
            LST_CHECK(is_from(to + at, r, 0, lengths[r]));
            at += lengths[r];
        }
        free(from);
        free(to);
    }
}

static void all_to_all(lst_rank *me)
{
    const size_t n = (size_t)me->size;

    for (size_t c = 0; c < LSI_COUNT_OF(counts); c++) {
        const size_t count = counts[c];
        int32_t *from = malloc((n * count + 1) * sizeof *from);
        int32_t *to = malloc((n * count + 1) * sizeof *to);

        fill_values(from, me->rank, n * count);
        LST_OK(ls_comm_all_to_all(me->comm, from, count, LS_I32, NULL, to, NULL));
        for (int r = 0; r < me->size; r++) {
            LST_CHECK(
                is_from(to + (size_t)r * count, r, (size_t)me->rank * count, count));
        }
        free(from);
        free(to);
    }
}

static void every_dtype(lst_rank *me)
{
    static const ls_dtype moved[] = {LS_BOOL, LS_U8, LS_F16, LS_F64, LS_U64};

    for (size_t d = 0; d < LSI_COUNT_OF(moved); d++) {
        const size_t bytes = 777 * ls_dtype_size(moved[d]);
        unsigned char *buf = malloc(bytes);
        bool same = true;

        for (size_t i = 0; i < bytes; i++) {
            buf[i] = me->rank == 0 ? (unsigned char)i : 0;
        }
        LST_OK(ls_comm_broadcast(me->comm, 0, buf, 777, moved[d], NULL, NULL));
        for (size_t i = 0; i < bytes; i++) {
            same = same && buf[i] == (unsigned char)i;
        }
        LST_CHECK(same);
        free(buf);
    }
}

/* Every pair in both directions: the k-th send matches the k-th receive. */
static void send_to_each(lst_rank *me)
{
    enum { EACH = 3, LENGTH = 5000 };
    const size_t n = (size_t)me->size, all = (size_t)EACH * LENGTH;
    int32_t *out = malloc(all * sizeof *out);
    int32_t *in = malloc(n * all * sizeof *in);
    ls_comm_work *works[2 * EACH * LST_MOST_RANKS];
    size_t posted = 0;

    fill_values(out, me->rank, all);
    for (size_t k = 0; k < EACH; k++) {
        for (int r = 0; r < me->size; r++) {
            if (r == me->rank) {
                continue;
            }
            LST_OK(ls_comm_start_send(me->comm, r, out + k * LENGTH, LENGTH, LS_I32, NULL,
                                      &works[posted++], NULL));
            LST_OK(ls_comm_start_recv(me->comm, r, LENGTH, LS_I32, NULL,
                                      in + ((size_t)r * EACH + k) * LENGTH,
                                      &works[posted++], NULL));
        }
    }
    while (posted > 0) {
        LST_OK(ls_comm_wait(works[--posted], NULL));
    }
    for (int r = 0; r < me->size; r++) {
        LST_CHECK(r == me->rank || is_from(in + (size_t)r * all, r, 0, all));
    }
    free(out);
    free(in);
}

/* Blocking sends round a circle: rank 0 sends first, the others receive first. */
static void send_in_circle(lst_rank *me)
{
    const int next = (me->rank + 1) % me->size;
    const int before = (me->rank + me->size - 1) % me->size;
    int32_t value = me->rank == 0 ? 1000 : 0;

    if (me->size == 1) {
        return;
    }
    if (me->rank == 0) {
        LST_OK(ls_comm_send(me->comm, next, &value, 1, LS_I32, NULL, NULL));
        LST_OK(ls_comm_recv(me->comm, before, 1, LS_I32, NULL, &value, NULL));
        LST_CHECK(value == 1000 + me->size - 1);
    } else {
        LST_OK(ls_comm_recv(me->comm, before, 1, LS_I32, NULL, &value, NULL));
        value++;
        LST_OK(ls_comm_send(me->comm, next, &value, 1, LS_I32, NULL, NULL));
    }
}

/*
 * Splits into even and odd ranks, in reverse order, some in no group; then splits again.
 */
static void split_twice(lst_rank *me)
{
    const int colour = me->size > 4 && me->rank == 4 ? -1 : me->rank % 2;
    ls_comm *half = NULL, *again = NULL;
    int members = 0, above = 0;
    int32_t sum = me->rank, want = 0;

    for (int r = 0; r < me->size; r++) {
        const int theirs = me->size > 4 && r == 4 ? -1 : r % 2;

        if (theirs == colour) {
            members++;
            above += r > me->rank ? 1 : 0;
            want += r;
        }
    }
    LST_OK(ls_comm_split(me->comm, colour, -me->rank, &half, NULL));
    LST_CHECK((half == NULL) == (colour < 0));
    if (half != NULL) {
        LST_CHECK(ls_comm_size(half) == members && ls_comm_rank(half) == above);
        LST_OK(ls_comm_all_reduce(half, LS_SUM, &sum, 1, LS_I32, NULL, NULL));
        LST_CHECK(sum == want);
        LST_OK(ls_comm_split(half, 0, 0, &again, NULL));
        LST_CHECK(ls_comm_rank(again) == above);
        ls_comm_release(half); // a group outlives the one it was split from
        LST_OK(ls_comm_all_reduce(again, LS_SUM, &sum, 1, LS_I32, NULL, NULL));
        LST_CHECK(sum == want * members);
        ls_comm_release(again);
    }
    LST_OK(ls_comm_barrier(me->comm, NULL, NULL)); // and the other way round
}

/* Calls of every kind and size in one batch. */
static void batch_of_calls(lst_rank *me)
{
    const size_t n = (size_t)me->size;

    for (size_t c = 0; c < LSI_COUNT_OF(counts); c++) {
        const size_t count = counts[c];
        const int next = (me->rank + 1) % me->size;
        const int before = (me->rank + me->size - 1) % me->size;
        int32_t *a = malloc((count + 1) * sizeof *a),
                *b = malloc((count + 1) * sizeof *b);
        int32_t *all = malloc((n * count + 1) * sizeof *all);
        int32_t *own = malloc((count + 1) * sizeof *own);
        int32_t letter = me->rank, got = -1, one = 1;
        size_t lengths[LST_MOST_RANKS];

        fill_values(a, me->rank, count);
        fill_values(b, me->rank, count);
        fill_values(own, me->rank, count);
        for (int r = 0; r < me->size; r++) {
            lengths[r] = count;
        }
        LST_OK(ls_comm_group_begin(me->comm, NULL));
        LST_OK(ls_comm_all_reduce(me->comm, LS_MAX, a, count, LS_I32, NULL, NULL));
        LST_OK(ls_comm_broadcast(me->comm, me->size - 1, b, count, LS_I32, NULL, NULL));
        LST_OK(ls_comm_all_reduce(me->comm, LS_SUM, &one, 1, LS_I32, NULL, NULL));
        LST_OK(
            ls_comm_all_gather_uneven(me->comm, own, lengths, LS_I32, NULL, all, NULL));
        memset(lengths, 0xff, sizeof lengths); // the counts are the caller's again
        if (me->size > 1) {
            LST_OK(ls_comm_send(me->comm, next, &letter, 1, LS_I32, NULL, NULL));
            LST_OK(ls_comm_recv(me->comm, before, 1, LS_I32, NULL, &got, NULL));
        }
        LST_CHECK(one == 1 && got == -1); // nothing has run yet
        LST_OK(ls_comm_group_end(me->comm, NULL, NULL));
        LST_CHECK(one == me->size);
        LST_CHECK(me->size == 1 || got == before);
        LST_CHECK(is_from(a, me->size - 1, 0, count));
        LST_CHECK(is_from(b, me->size - 1, 0, count));
        for (int r = 0; r < me->size; r++) {
            LST_CHECK(is_from(all + (size_t)r * count, r, 0, count));
        }
        free(a);
        free(b);
        free(own);
        free(all);
    }
    LST_OK(ls_comm_group_begin(me->comm, NULL));
    LST_OK(ls_comm_group_end(me->comm, NULL, NULL)); // of nothing
}

void lst_comm_data_movement(const lst_comm_factory *f)
{
    lst_run_sizes(f, broadcast_from_each, NULL);
    lst_run_sizes(f, all_gather, NULL);
    lst_run_sizes(f, all_gather_uneven, NULL);
    lst_run_sizes(f, all_to_all, NULL);
    lst_run_sizes(f, every_dtype, NULL);
    lst_run_sizes(f, send_to_each, NULL);
    lst_run_sizes(f, send_in_circle, NULL);
    lst_run_sizes(f, split_twice, NULL);
    lst_run_sizes(f, batch_of_calls, NULL);
}
