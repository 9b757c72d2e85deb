/* What the layers above see: meetings, generations, pieces, packs, rings. */
#include "collective/local.h"

#include "collective/collective.h"
#include "ls_test.h"
#include "os/thread.h"
#include "reduce/reduction.h"

#include <limits.h>

enum { MOST = 9 };

struct rank {
    ls_comm *comm;
    int index, size;
    void *arg;
    lsi_thread thread;
    void (*fn)(struct rank *me);
};

static void enter(void *arg)
{
    struct rank *me = arg;

    me->fn(me);
}

static void run_on(ls_comm *const *comms, int size, void (*fn)(struct rank *me),
                   void *arg)
{
    struct rank ranks[MOST];
    ls_error err = LS_ERROR_INIT;

    for (int r = 0; r < size; r++) {
        ranks[r] = (struct rank){
            .comm = comms[r], .index = r, .size = size, .arg = arg, .fn = fn};
        LST_OK(lsi_thread_start(&ranks[r].thread, enter, &ranks[r], &err, "rank-%d", r));
    }
    for (int r = 0; r < size; r++) {
        lsi_thread_join(&ranks[r].thread);
    }
}

static void run_ranks(int size, void (*fn)(struct rank *me), void *arg)
{
    ls_comm *comms[MOST] = {NULL};
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_comm_local(size, NULL, comms, &err));
    run_on(comms, size, fn, arg);
    for (int r = 0; r < size; r++) {
        ls_comm_release(comms[r]);
    }
}

static const lsi_comm_site nowhere = {NULL, 0};

static void hand_round(struct rank *me)
{
    int mine = me->index * 11;
    void *all[MOST] = {NULL};

    for (int turn = 0; turn < 40; turn++) { // more than a ring of entries holds
        LST_OK(lsi_comm_meet(me->comm, "test", (uint64_t)turn, &mine, all, NULL, nowhere,
                             NULL));
        for (int r = 0; r < me->size; r++) {
            LST_CHECK(*(const int *)all[r] == r * 11);
        }
    }
    LST_OK(lsi_comm_meet(me->comm, "no answer", 0, NULL, NULL, NULL, nowhere, NULL));
}

LST_TEST(everybody_who_meets_is_handed_what_all_gave)
{
    for (int size = 1; size <= MOST; size++) {
        run_ranks(size, hand_round, NULL);
    }
}

static void meet_for_different_things(struct rank *me)
{
    const bool tags = *(const bool *)me->arg, odd = me->index == 1;
    const lsi_comm_site site = {odd ? "b.c" : "a.c", odd ? 2 : 1};
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(lsi_comm_meet(me->comm, tags && odd ? "assign" : "merge",
                            !tags && odd ? 7 : 3, NULL, NULL, NULL, site, &err),
              LS_INTERNAL, err, "a.c:1");
    LST_CHECK(strstr(err.message, "b.c:2") != NULL);
}

LST_TEST(meeting_for_different_things_is_an_error_with_both_lines)
{
    for (int tags = 0; tags < 2; tags++) {
        bool arg = tags == 1;

        run_ranks(3, meet_for_different_things, &arg);
    }
}

/* Rank 1 ends early; the others' calls that it took part in succeed, the next fail. */
static void end_early(struct rank *me)
{
    float small = 1, *large = calloc(50000, sizeof *large);
    ls_error why = LS_ERROR_INIT, err = LS_ERROR_INIT;

    LST_OK(lsi_comm_all_reduce(me->comm, LS_SUM, large, large, 50000, LS_F32, NULL,
                               nowhere, NULL));
    LST_OK(lsi_comm_all_reduce(me->comm, LS_SUM, &small, &small, 1, LS_F32, NULL, nowhere,
                               NULL));
    LST_CHECK(small == (float)me->size);
    if (me->index == 1) {
        (void)lsi_fail_kind(&why, LS_UNKNOWN, LS_KIND_RUNTIME, "replica 1 has ended");
        lsi_comm_break(me->comm, &why);
        LST_CHECK(lsi_comm_broken(me->comm));
    } else {
        const ls_status st = lsi_comm_all_reduce(me->comm, LS_SUM, large, large, 50000,
                                                 LS_F32, NULL, nowhere, &err);

        LST_FAILS(st, LS_UNKNOWN, err, "replica 1 has ended");
        LST_CHECK(err.kind == LS_KIND_RUNTIME && err.rank == 1);
    }
    free(large);
}

static void sum_once(struct rank *me)
{
    float small = 1;

    LST_OK(lsi_comm_all_reduce(me->comm, LS_SUM, &small, &small, 1, LS_F32, NULL, nowhere,
                               NULL));
    LST_CHECK(small == (float)me->size);
}

LST_TEST(a_group_that_was_broken_is_whole_in_the_next_generation)
{
    for (int size = 2; size <= 5; size++) {
        ls_comm *comms[MOST] = {NULL};

        LST_OK(ls_comm_local(size, NULL, comms, NULL));
        for (int turn = 0; turn < 30; turn++) {
            run_on(comms, size, end_early, NULL);
            LST_CHECK(lsi_comm_broken(comms[0]));
            lsi_comm_renew(comms[0]);
            LST_CHECK(!lsi_comm_broken(comms[0]));
            run_on(comms, size, sum_once, NULL);
        }
        for (int r = 0; r < size; r++) {
            ls_comm_release(comms[r]);
        }
    }
}

static void sum_and_leave(struct rank *me)
{
    static ls_error why = {sizeof why, LS_UNKNOWN, LS_KIND_OP, -1, 0, "", "left"};

    for (int i = 0; i < 20; i++) { // more than a ring of entries holds
        sum_once(me);
    }
    lsi_comm_leave(me->comm, &why);
}

LST_TEST(a_generation_that_went_well_only_counts)
{
    ls_comm *comms[3] = {NULL};
    lsi_local_group *g;
    lsi_slot *before = malloc(3 * sizeof *before);

    LST_OK(ls_comm_local(3, NULL, comms, NULL));
    g = lsi_local_of(comms[0])->group;
    for (unsigned turn = 1; turn <= 5; turn++) {
        const uint32_t next = lsi_local_of(comms[0])->next;

        run_on(comms, 3, sum_and_leave, NULL);
        memcpy((void *)before, (void *)g->slots, 3 * sizeof *before);
        lsi_comm_renew(comms[turn % 3]);
        LST_CHECK(memcmp((void *)before, (void *)g->slots, 3 * sizeof *before) == 0);
        LST_CHECK(g->generation == turn && !lsi_comm_broken(comms[0]));
        for (int r = 0; r < 3; r++) {
            LST_CHECK(lsi_local_of(comms[r])->next == next + 20);
        }
    }
    free((void *)before);
    for (int r = 0; r < 3; r++) {
        ls_comm_release(comms[r]);
    }
}

/* A group that is never reset counts past the largest sequence number. */
LST_TEST(calls_are_counted_past_the_largest_number)
{
    ls_comm *comms[3] = {NULL};
    lsi_local_group *g;

    LST_OK(ls_comm_local(3, NULL, comms, NULL));
    g = lsi_local_of(comms[0])->group;
    g->generation = UINT_MAX - 2;
    for (int r = 0; r < 3; r++) {
        lsi_local_of(comms[r])->next = lsi_local_of(comms[r])->room = UINT32_MAX - 25;
        atomic_store(&g->slots[r].finished, UINT32_MAX - 25);
    }
    for (int turn = 0; turn < 5; turn++) {
        run_on(comms, 3, sum_and_leave, NULL);
        LST_CHECK(!lsi_comm_broken(comms[0]));
        lsi_comm_renew(comms[0]);
    }
    LST_CHECK(lsi_local_of(comms[0])->next == 100 - 26);
    for (int r = 0; r < 3; r++) {
        ls_comm_release(comms[r]);
    }
}

/* Only the first failure counts, whoever comes second. */
LST_TEST(the_first_failure_is_the_groups)
{
    ls_comm *comms[2] = {NULL};
    ls_error first = LS_ERROR_INIT, second = LS_ERROR_INIT, err = LS_ERROR_INIT;
    float x = 0;

    (void)lsi_fail(&first, LS_DATA_LOSS, 0, "the first");
    (void)lsi_fail(&second, LS_INTERNAL, 0, "the second");
    LST_OK(ls_comm_local(2, NULL, comms, NULL));
    lsi_comm_break(comms[1], &first);
    lsi_comm_break(comms[0], &second);
    for (int r = 0; r < 2; r++) {
        LST_FAILS(ls_comm_all_reduce(comms[r], LS_SUM, &x, 1, LS_F32, NULL, &err),
                  LS_DATA_LOSS, err, "the first");
        ls_comm_release(comms[r]);
    }
}

static void leave_a_work(struct rank *me)
{
    ls_comm_work **work = &((ls_comm_work **)me->arg)[me->index];
    static float shared[MOST][4000];

    if (me->index == 0) {
        LST_OK(ls_comm_start_all_reduce(me->comm, LS_SUM, shared[me->index], 4000, LS_F32,
                                        NULL, work, NULL));
    }
}

LST_TEST(a_work_that_a_new_generation_overtakes_ends_with_an_error)
{
    ls_comm *comms[3] = {NULL};
    ls_comm_work *works[3] = {NULL};
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_comm_local(3, NULL, comms, NULL));
    run_on(comms, 3, leave_a_work, (void *)works);
    lsi_comm_renew(comms[1]);
    LST_FAILS(ls_comm_wait(works[0], &err), LS_ABORTED, err, "renewed");
    run_on(comms, 3, sum_once, NULL);
    for (int r = 0; r < 3; r++) {
        ls_comm_release(comms[r]);
    }
}

/* From one buffer to another, in pieces of every length, by every algorithm. */
static void reduce_pieces(struct rank *me)
{
    static const char *const algorithms[] = {NULL, "direct", "tree", "hierarchical",
                                             "ring"};
    static const size_t lengths[] = {1, 0, 5, 3000, 0, 77, 40001, 2, 0};
    enum { PIECES = sizeof lengths / sizeof *lengths };
    const size_t used = *(const size_t *)me->arg;
    lsi_comm_piece pieces[PIECES];
    double *from[PIECES], *to[PIECES];

    for (size_t p = 0; p < PIECES; p++) {
        from[p] = malloc((lengths[p] + 1) * sizeof(double));
        to[p] = malloc((lengths[p] + 1) * sizeof(double));
        for (size_t i = 0; i < lengths[p]; i++) {
            from[p][i] = me->index + (double)i;
        }
        pieces[p] = (lsi_comm_piece){from[p], to[p], lengths[p]};
    }
    for (size_t a = 0; a < LSI_COUNT_OF(algorithms); a++) {
        ls_comm_options o = LS_COMM_OPTIONS_INIT;
        bool right = true;

        o.algorithm = algorithms[a];
        LST_OK(lsi_comm_all_reduce_pieces(
            me->comm,
            &(lsi_comm_reduction){
                .op = LS_MEAN, .dtype = LS_F64, .pieces = pieces, .n = used},
            &o, nowhere, NULL));
        for (size_t p = 0; p < used; p++) {
            for (size_t i = 0; i < lengths[p]; i++) {
                right = right && to[p][i] == (me->size - 1) / 2.0 + (double)i;
                right = right && from[p][i] == me->index + (double)i;
                to[p][i] = -1;
            }
        }
        LST_CHECK(right);
    }
    for (size_t p = 0; p < PIECES; p++) {
        free(from[p]);
        free(to[p]);
    }
}

LST_TEST(pieces_are_reduced_as_one)
{
    static const size_t used[] = {0, 1, 3, 9};

    for (size_t u = 0; u < LSI_COUNT_OF(used); u++) {
        for (int size = 1; size <= 8; size *= 2) {
            size_t arg = used[u];

            run_ranks(size, reduce_pieces, &arg);
        }
    }
}

static void pieces_that_differ(struct rank *me)
{
    float x[10] = {0};
    const bool odd = me->index == 1;
    const lsi_comm_piece pieces[2] = {{x, x, odd ? 4 : 6}, {x + 6, x + 6, odd ? 6 : 4}};
    ls_error err = LS_ERROR_INIT;

    const lsi_comm_reduction sum = {
        .op = LS_SUM, .dtype = LS_F32, .pieces = pieces, .n = odd ? 1 : 2};

    LST_FAILS(lsi_comm_all_reduce_pieces(me->comm, &sum, NULL, nowhere, &err),
              LS_INVALID_ARGUMENT, err, "shape mismatch");
}

LST_TEST(other_pieces_on_another_rank_are_a_mismatch)
{
    run_ranks(2, pieces_that_differ, NULL);
}

LST_TEST(S98_packs_are_cut_in_reverse_list_order)
{
    static const size_t bytes[] = {4, 800, 32, 128};
    size_t pack[4];

    // In the order of grouping 128, 32, 800, 4: the first three exceed 200.
    LST_CHECK(lsi_pack_by_bytes(bytes, 4, 200, pack) == 2);
    LST_CHECK(pack[3] == 0 && pack[2] == 0 && pack[1] == 0 && pack[0] == 1);
    LST_CHECK(lsi_pack_by_bytes(bytes, 4, 0, pack) == 1);
    LST_CHECK(pack[0] == 0 && pack[3] == 0);
    LST_CHECK(lsi_pack_by_bytes(bytes, 0, 200, pack) == 0);
}

LST_TEST(S99_the_last_pack_takes_the_rest)
{
    size_t sizes[4];

    lsi_pack_split(10, 3, sizes);
    LST_CHECK(sizes[0] == 3 && sizes[1] == 3 && sizes[2] == 4);
    lsi_pack_split(2, 4, sizes);
    LST_CHECK(sizes[0] == 0 && sizes[2] == 0 && sizes[3] == 2);
}

LST_TEST(S102_the_ring_turns_inside_each_task)
{
    static const int minus_4[] = {3, 2, 1, 0, 7, 6, 5, 4};
    static const int plus_4[] = {4, 5, 6, 7, 0, 1, 2, 3};
    static const int minus_3[] = {4, 3, 2, 1, 0, 7, 6, 5};
    int a[24], b[24], c[24];

    lsi_ring_permutation(3, 8, -4, a);
    lsi_ring_permutation(3, 8, 4, b);
    lsi_ring_permutation(3, 8, -3, c);
    for (int i = 0; i < 24; i++) {
        LST_CHECK(a[i] == minus_4[i % 8] + i / 8 * 8);
        LST_CHECK(b[i] == plus_4[i % 8] + i / 8 * 8);
        LST_CHECK(c[i] == minus_3[i % 8] + i / 8 * 8);
    }
}

LST_TEST(S103_a_long_ring_is_subdivided)
{
    const size_t mib = (size_t)1 << 20;
    int offsets[4];

    LST_CHECK(lsi_ring_subdivisions(100 * mib, 4, 1, 0) == 2);
    LST_CHECK(lsi_ring_subdivisions(100 * mib, 4, 1, 4) == 4);
    LST_CHECK(lsi_ring_subdivisions(100 * mib, 4, 1, -1) == 1);
    LST_CHECK(lsi_ring_subdivisions(16 * mib, 4, 1, 0) == 1);
    LST_CHECK(lsi_ring_subdivisions(144 * mib, 24, 8, 0) == 2);
    lsi_ring_offsets(2, 8, offsets);
    LST_CHECK(offsets[0] == 0 && offsets[1] == -4);
}

/* The children of r are `want`, ended by -1, and r is their parent. */
static void check_children(int size, int source, int r, const int *want)
{
    int got[4];
    const int n = lsi_tree_children(size, source, r, got, 4);
    int wanted = 0;

    for (; want[wanted] >= 0; wanted++) {
        LST_CHECK(wanted < n && got[wanted] == want[wanted]);
        LST_CHECK(lsi_tree_parent(size, source, want[wanted]) == r);
    }
    LST_CHECK(n == wanted);
}

LST_TEST(S104_the_broadcast_tree_is_the_specified_one)
{
    check_children(8, 0, 0, (const int[]){1, 2, -1});
    check_children(8, 0, 1, (const int[]){3, 4, -1});
    check_children(8, 0, 2, (const int[]){5, 6, -1});
    check_children(8, 0, 3, (const int[]){7, -1});
    check_children(8, 0, 4, (const int[]){-1});
    check_children(8, 7, 7, (const int[]){0, 1, -1});
    check_children(8, 7, 0, (const int[]){2, 3, -1});
    check_children(8, 7, 1, (const int[]){4, 5, -1});
    check_children(8, 7, 2, (const int[]){6, -1});
    check_children(4, 2, 2, (const int[]){0, 1, -1});
    check_children(4, 2, 0, (const int[]){3, -1});
    check_children(3, 1, 1, (const int[]){0, -1});
    check_children(3, 1, 0, (const int[]){2, -1});
    LST_CHECK(lsi_tree_parent(8, 0, 0) == -1 && lsi_tree_parent(8, 7, 7) == -1);
}

LST_TEST(every_rank_has_one_way_to_the_source)
{
    for (int size = 1; size <= 20; size++) {
        for (int source = 0; source < size; source++) {
            int reached = 0;

            for (int r = 0; r < size; r++) {
                int children[4];

                reached += lsi_tree_children(size, source, r, children, 4);
            }
            LST_CHECK(reached == size - 1);
        }
    }
}

LST_TEST(a_choice_is_explained)
{
    char why[200];

    LST_CHECK(strcmp(ls_comm_choice(2, 4, why, sizeof why), "direct") == 0);
    LST_CHECK(strstr(why, "in the call itself") != NULL);
    LST_CHECK(strcmp(ls_comm_choice(2, (size_t)1 << 26, why, sizeof why), "direct") == 0);
    LST_CHECK(strstr(why, "67108864 bytes over 2 ranks") != NULL);
    LST_CHECK(ls_comm_choice(8, 100, NULL, 0) != NULL);
    LST_CHECK(ls_comm_choice(8, 100, why, 5) != NULL && strlen(why) < 5);
}

LST_TEST(reductions_have_names)
{
    ls_reduce op = LS_PROD;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_reduce_from_name("Mean", &op, &err));
    LST_CHECK(op == LS_MEAN && strcmp(ls_reduce_name(LS_MAX), "MAX") == 0);
    LST_FAILS(ls_reduce_from_name("median", &op, &err), LS_INVALID_ARGUMENT, err,
              "median");
    LST_CHECK(err.kind == LS_KIND_VALUE &&
              strcmp(ls_reduce_name((ls_reduce)9), "?") == 0);
    LST_FAILS(ls_reduce_from_name(NULL, &op, &err), LS_INVALID_ARGUMENT, err, "null");
}

LST_TEST(a_nan_on_any_rank_is_in_the_result)
{
    for (int n = 2; n <= 9; n++) {
        for (int who = 0; who < n; who++) {
            for (int op = LS_SUM; op <= LS_PROD; op++) {
                float values[MOST], out = 0;
                const void *from[MOST];

                for (int r = 0; r < n; r++) {
                    values[r] = r == who ? NAN : (float)r;
                    from[r] = &values[r];
                }
                lsi_reduce_tree((ls_reduce)op, from, n, &out, 1, LS_F32);
                LST_CHECK(isnan(out));
            }
        }
    }
}

LST_TEST(a_tree_of_many_ranks_is_a_tree)
{
    enum { RANKS = 1000, COUNT = 3000 };
    int32_t *values = malloc(COUNT * sizeof *values), *out = calloc(COUNT, sizeof *out);
    const void **from = (const void **)malloc(RANKS * sizeof *from);
    bool right = true;

    for (int i = 0; i < COUNT; i++) {
        values[i] = i;
    }
    for (int r = 0; r < RANKS; r++) {
        from[r] = values;
    }
    lsi_reduce_tree(LS_SUM, from, RANKS, out, COUNT, LS_I32);
    for (int i = 0; i < COUNT; i++) {
        right = right && out[i] == i * RANKS;
    }
    LST_CHECK(right);
    free(values);
    free(out);
    free((void *)from);
}

/* ---- sends and receives ---- */

LST_TEST(sends_of_many_ranks_are_matched_by_rank_in_order)
{
    enum { RANKS = 70, EACH = 50 }; // more ranks than an inbox has queues
    static int32_t sent[RANKS][EACH], got[RANKS][EACH];
    static ls_comm_work *work[2][RANKS][EACH];
    ls_comm *comm[RANKS];
    ls_error e = LS_ERROR_INIT;
    bool right = true;

    LST_OK(ls_comm_local(RANKS, NULL, comm, &e));
    for (int i = 0; i < EACH; i++) {
        for (int r = 1; r < RANKS; r++) { // to rank 0, half before and half after
            sent[r][i] = r * 1000 + i;
            if (r % 2 == 0) {
                LST_OK(ls_comm_start_recv(comm[0], r, 1, LS_I32, NULL, &got[r][i],
                                          &work[1][r][i], &e));
            }
            LST_OK(ls_comm_start_send(comm[r], 0, &sent[r][i], 1, LS_I32, NULL,
                                      &work[0][r][i], &e));
        }
    }
    for (int r = RANKS - 1; r > 0; r -= 2) {
        for (int i = 0; i < EACH; i++) {
            LST_OK(ls_comm_start_recv(comm[0], r, 1, LS_I32, NULL, &got[r][i],
                                      &work[1][r][i], &e));
        }
    }
    for (int r = 1; r < RANKS; r++) {
        for (int i = 0; i < EACH; i++) {
            LST_OK(ls_comm_wait(work[0][r][i], &e));
            LST_OK(ls_comm_wait(work[1][r][i], &e));
            right = right && got[r][i] == sent[r][i];
        }
    }
    LST_CHECK(right);
    for (int r = 0; r < RANKS; r++) {
        ls_comm_release(comm[r]);
    }
}

LST_TEST(a_handle_lives_until_its_last_release)
{
    ls_comm *comm[2], *alone = NULL;
    ls_error e = LS_ERROR_INIT;
    ls_comm_work *work = NULL;
    int32_t x = 1;

    LST_CHECK(ls_comm_retain(NULL) == NULL);
    LST_OK(ls_comm_self(&alone, &e));
    LST_CHECK(ls_comm_retain(alone) == alone);
    ls_comm_release(alone);
    LST_OK(ls_comm_all_reduce(alone, LS_SUM, &x, 1, LS_I32, NULL, &e));
    ls_comm_release(alone);

    LST_OK(ls_comm_local(2, NULL, comm, &e));
    LST_CHECK(ls_comm_retain(comm[1]) == comm[1]);
    ls_comm_release(comm[1]); // the rank is still there
    LST_OK(ls_comm_start_all_reduce(comm[1], LS_SUM, &x, 1, LS_I32, NULL, &work, &e));
    LST_OK(ls_comm_all_reduce(comm[0], LS_SUM, &(int32_t){2}, 1, LS_I32, NULL, &e));
    LST_OK(ls_comm_wait(work, &e));
    LST_CHECK(x == 3);
    ls_comm_release(comm[1]); // now it is gone
    LST_FAILS(ls_comm_barrier(comm[0], NULL, &e), LS_UNAVAILABLE, e, "rank 1 is gone");
    ls_comm_release(comm[0]);
}

/* ---- groups that differ ---- */

/* The counts are the caller's, and gone as soon as the call has returned. */
static void gathers_in_a_group(struct rank *me)
{
    size_t *counts = calloc(2, sizeof *counts);
    int32_t mine[4] = {0}, all[8] = {0};
    ls_error e = LS_ERROR_INIT;

    counts[0] = 1;
    counts[1] = me->index == 0 ? 2 : 3;
    LST_OK(ls_comm_group_begin(me->comm, &e));
    LST_OK(ls_comm_all_gather_uneven(me->comm, mine, counts, LS_I32, NULL, all, &e));
    LST_OK(ls_comm_barrier(me->comm, NULL, &e));
    LST_FAILS(ls_comm_group_end(me->comm, NULL, &e), LS_INVALID_ARGUMENT, e,
              "shape mismatch");
    free(counts);
}

LST_TEST(groups_that_differ_in_their_counts_are_told_so_whoever_leaves_first)
{
    for (int i = 0; i < 200; i++) {
        run_ranks(2, gathers_in_a_group, NULL);
    }
}

LST_MAIN(LST_CASE(everybody_who_meets_is_handed_what_all_gave),
         LST_CASE(meeting_for_different_things_is_an_error_with_both_lines),
         LST_CASE(a_group_that_was_broken_is_whole_in_the_next_generation),
         LST_CASE(a_generation_that_went_well_only_counts),
         LST_CASE(calls_are_counted_past_the_largest_number),
         LST_CASE(the_first_failure_is_the_groups),
         LST_CASE(a_work_that_a_new_generation_overtakes_ends_with_an_error),
         LST_CASE(pieces_are_reduced_as_one),
         LST_CASE(other_pieces_on_another_rank_are_a_mismatch),
         LST_CASE(S98_packs_are_cut_in_reverse_list_order),
         LST_CASE(S99_the_last_pack_takes_the_rest),
         LST_CASE(S102_the_ring_turns_inside_each_task),
         LST_CASE(S103_a_long_ring_is_subdivided),
         LST_CASE(S104_the_broadcast_tree_is_the_specified_one),
         LST_CASE(every_rank_has_one_way_to_the_source), LST_CASE(a_choice_is_explained),
         LST_CASE(reductions_have_names), LST_CASE(a_nan_on_any_rank_is_in_the_result),
         LST_CASE(a_tree_of_many_ranks_is_a_tree),
         LST_CASE(sends_of_many_ranks_are_matched_by_rank_in_order),
         LST_CASE(a_handle_lives_until_its_last_release),
         LST_CASE(groups_that_differ_in_their_counts_are_told_so_whoever_leaves_first))
