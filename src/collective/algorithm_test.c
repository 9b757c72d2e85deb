/* The choice of an algorithm: from numbers that the ranks agreed on, and only those. */
#include "collective/backend.h"
#include "ls_test.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static lsi_algorithm choose(size_t bytes, int ranks, int nodes, int cores)
{
    const lsi_comm_agreed agreed = {
        .hosts = 1, .ranks_per_host = ranks, .nodes = nodes, .cores = cores};

    return lsi_algorithm_choose(LSI_CALL_ALL_REDUCE, bytes, ranks, &agreed);
}

LST_TEST(small_sums_are_sent_in_the_call)
{
    LST_CHECK(choose(LSI_INLINE_MOST, 8, 2, 8) == LSI_ALGORITHM_INLINE);
    LST_CHECK(choose(LSI_INLINE_MOST + 8, 8, 1, 8) == LSI_ALGORITHM_DIRECT);
}

LST_TEST(one_node_is_added_directly_by_any_number_of_ranks)
{
    for (int ranks = 1; ranks <= 256; ranks++) {
        for (size_t bytes = 2 * KIB; bytes <= 256 * MIB; bytes *= 8) {
            LST_CHECK(choose(bytes, ranks, 1, 8) == LSI_ALGORITHM_DIRECT);
        }
    }
}

/* One buffer per node crosses instead of nearly all: with few ranks there is no gain. */
LST_TEST(nodes_are_added_first_if_they_have_several_ranks_and_much_to_add)
{
    LST_CHECK(choose(64 * MIB, 2, 2, 8) == LSI_ALGORITHM_DIRECT);
    LST_CHECK(choose(64 * MIB, 4, 2, 8) == LSI_ALGORITHM_DIRECT);
    LST_CHECK(choose(64 * MIB, 8, 2, 8) == LSI_ALGORITHM_HIERARCHICAL);
    LST_CHECK(choose(2 * KIB, 8, 2, 8) == LSI_ALGORITHM_DIRECT);
    LST_CHECK(choose(64 * MIB, 8, 8, 8) == LSI_ALGORITHM_DIRECT); // one rank per node
}

/* The smallest size, in steps of 2, for which nodes are added first. */
static size_t first_hierarchical(int ranks, int cores)
{
    size_t bytes = 2 * KIB;

    while (bytes < (size_t)1024 * MIB &&
           choose(bytes, ranks, 2, cores) != LSI_ALGORITHM_HIERARCHICAL) {
        bytes *= 2;
    }
    return bytes;
}

/* Three phases are three times as many turns on the cores as one. */
LST_TEST(with_more_ranks_than_cores_a_phase_costs_more)
{
    LST_CHECK(first_hierarchical(16, 4) > first_hierarchical(16, 16));
    LST_CHECK(first_hierarchical(16, 16) < (size_t)1024 * MIB);
}

/* The traffic grows with the ranks, the bandwidth of the nodes does not. */
LST_TEST(with_more_ranks_than_the_memory_serves_bytes_cost_more)
{
    LST_CHECK(first_hierarchical(128, 128) < first_hierarchical(16, 16));
}

static lsi_algorithm choose_broadcast(size_t bytes, int ranks, int nodes, int cores)
{
    const lsi_comm_agreed agreed = {
        .hosts = 1, .ranks_per_host = ranks, .nodes = nodes, .cores = cores};

    return lsi_algorithm_choose(LSI_CALL_BROADCAST, bytes, ranks, &agreed);
}

/* Passing a buffer on costs phases; it pays where one node cannot serve all readers. */
LST_TEST(a_broadcast_is_passed_on_where_one_node_cannot_serve_all_readers)
{
    for (int ranks = 2; ranks <= 128; ranks *= 2) {
        LST_CHECK(choose_broadcast(LSI_INLINE_MOST, ranks, 4, ranks) ==
                  LSI_ALGORITHM_INLINE);
        LST_CHECK(choose_broadcast(2 * KIB, ranks, 1, ranks) == LSI_ALGORITHM_DIRECT);
        LST_CHECK(choose_broadcast(64 * MIB, ranks, 1, 8) == LSI_ALGORITHM_DIRECT);
    }
    LST_CHECK(choose_broadcast(64 * MIB, 64, 4, 64) == LSI_ALGORITHM_TREE);
    LST_CHECK(choose_broadcast(64 * MIB, 8, 4, 8) == LSI_ALGORITHM_DIRECT);
    LST_CHECK(choose_broadcast(2 * KIB, 64, 4, 16) == LSI_ALGORITHM_DIRECT);
}

LST_TEST(a_choice_never_changes_the_order_of_additions)
{
    static const lsi_call_kind kinds[] = {LSI_CALL_ALL_REDUCE, LSI_CALL_REDUCE,
                                          LSI_CALL_REDUCE_SCATTER};

    for (size_t k = 0; k < LSI_COUNT_OF(kinds); k++) {
        for (int ranks = 1; ranks <= 128; ranks = ranks * 3 / 2 + 1) {
            for (int nodes = 1; nodes <= LSI_MIN(ranks, 8); nodes++) {
                const lsi_comm_agreed agreed = {1, ranks, nodes, 1 + ranks / 3};

                for (size_t bytes = KIB; bytes <= 256 * MIB; bytes *= 4) {
                    LST_CHECK(lsi_algorithm_choose(kinds[k], bytes, ranks, &agreed) !=
                              LSI_ALGORITHM_RING);
                }
            }
        }
    }
}

LST_TEST(a_call_is_prepared_from_what_the_communicator_agreed_on)
{
    static const ls_comm_options init = LS_COMM_OPTIONS_INIT;
    ls_comm comm = {.size = 16, .agreed = {1, 16, 1, 16}};
    lsi_call call = {.kind = LSI_CALL_ALL_REDUCE,
                     .dtype = LS_F32,
                     .size = sizeof(float),
                     .count = 16 * MIB,
                     .peer = -1};

    LST_OK(lsi_call_prepare(&call, comm.size, &comm.agreed, &init, NULL));
    LST_CHECK(call.algorithm == LSI_ALGORITHM_DIRECT);
    comm.agreed.nodes = 2;
    LST_OK(lsi_call_prepare(&call, comm.size, &comm.agreed, &init, NULL));
    LST_CHECK(call.algorithm == LSI_ALGORITHM_HIERARCHICAL);
}

LST_TEST(a_part_of_a_group_inherits_what_the_group_agreed_on)
{
    const lsi_comm_agreed whole = {1, 16, 4, 12};
    const lsi_comm_agreed part = lsi_comm_agreed_part(&whole, 3);
    ls_comm *alone = NULL, *threads[3] = {NULL};

    LST_CHECK(part.hosts == 1 && part.ranks_per_host == 3 && part.nodes == 3 &&
              part.cores == 12);
    LST_OK(ls_comm_self(&alone, NULL));
    LST_CHECK(alone->agreed.hosts == 1 && alone->agreed.nodes == 1);
    LST_OK(ls_comm_local(3, NULL, threads, NULL));
    for (int r = 0; r < 3; r++) {
        LST_CHECK(threads[r]->agreed.ranks_per_host == 3);
        LST_CHECK(threads[r]->agreed.nodes >= 1 && threads[r]->agreed.cores >= 1);
        LST_CHECK(memcmp(&threads[r]->agreed, &threads[0]->agreed,
                         sizeof threads[r]->agreed) == 0);
    }
    for (int r = 0; r < 3; r++) {
        ls_comm_release(threads[r]);
    }
    ls_comm_release(alone);
}

LST_MAIN(LST_CASE(small_sums_are_sent_in_the_call),
         LST_CASE(one_node_is_added_directly_by_any_number_of_ranks),
         LST_CASE(nodes_are_added_first_if_they_have_several_ranks_and_much_to_add),
         LST_CASE(with_more_ranks_than_cores_a_phase_costs_more),
         LST_CASE(with_more_ranks_than_the_memory_serves_bytes_cost_more),
         LST_CASE(a_broadcast_is_passed_on_where_one_node_cannot_serve_all_readers),
         LST_CASE(a_choice_never_changes_the_order_of_additions),
         LST_CASE(a_call_is_prepared_from_what_the_communicator_agreed_on),
         LST_CASE(a_part_of_a_group_inherits_what_the_group_agreed_on))
