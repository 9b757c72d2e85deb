/* Tests of the role of a task in a cluster. */
#include "lockstep/cluster.h"
#include "ls_test.h"

static const ls_job with_chief[] = {{"chief", 1}, {"worker", 3}};
static const ls_job workers[] = {{"worker", 3}};

static ls_cluster_role role_of(const ls_job *jobs, size_t n, const char *type, int index)
{
    ls_cluster_role role = LS_CLUSTER_ROLE_INIT;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_cluster_role_of(jobs, n, type, index, &role, &err));
    return role;
}

/* The call fails with a ValueError whose message contains `word`. */
static void refuses(const ls_job *jobs, size_t n, const char *type, int index,
                    const char *word)
{
    ls_cluster_role role = LS_CLUSTER_ROLE_INIT;
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(ls_cluster_role_of(jobs, n, type, index, &role, &err), LS_INVALID_ARGUMENT,
              err, word);
    LST_CHECK(err.kind == LS_KIND_VALUE);
    LST_CHECK(role.workers == 0); // a failed call does not change *out
}

LST_TEST(s107_the_chief_comes_before_the_workers)
{
    ls_cluster_role role = role_of(with_chief, 2, "worker", 1);

    LST_CHECK(role.workers == 4 && role.id_in_cluster == 2 && !role.is_chief);
    LST_CHECK(strcmp(role.leader, "/job:chief/replica:0/task:0") == 0);
    role = role_of(with_chief, 2, "worker", 0);
    LST_CHECK(role.id_in_cluster == 1 && !role.is_chief);
    role = role_of(with_chief, 2, "chief", 0);
    LST_CHECK(role.workers == 4 && role.id_in_cluster == 0 && role.is_chief);
    LST_CHECK(strcmp(role.leader, "/job:chief/replica:0/task:0") == 0);
}

LST_TEST(s107_without_a_chief_worker_0_is_it)
{
    ls_cluster_role role = role_of(workers, 1, "worker", 0);

    LST_CHECK(role.workers == 3 && role.id_in_cluster == 0 && role.is_chief);
    LST_CHECK(strcmp(role.leader, "/job:worker/replica:0/task:0") == 0);
    role = role_of(workers, 1, "worker", 1);
    LST_CHECK(role.workers == 3 && role.id_in_cluster == 1 && !role.is_chief);
}

LST_TEST(an_evaluator_is_alone_and_has_no_leader)
{
    static const ls_job jobs[] = {{"worker", 3}, {"evaluator", 1}, {"ps", 2}};
    ls_cluster_role role = role_of(jobs, 3, "evaluator", 0);

    LST_CHECK(role.workers == 1 && role.id_in_cluster == 0 && role.is_chief);
    LST_CHECK(role.leader[0] == '\0');
    // the evaluator may be missing in the cluster
    role = role_of(workers, 1, "evaluator", 0);
    LST_CHECK(role.workers == 1 && role.is_chief);
    role = role_of(jobs, 3, "worker", 2); // neither the evaluator nor ps tasks train
    LST_CHECK(role.workers == 3 && role.id_in_cluster == 2);
}

LST_TEST(no_cluster_is_a_cluster_of_one)
{
    static const ls_job none[] = {{"worker", 0}};
    ls_cluster_role role = role_of(NULL, 0, NULL, -1);

    LST_CHECK(role.workers == 1 && role.id_in_cluster == 0 && role.is_chief);
    LST_CHECK(role.leader[0] == '\0');
    role = role_of(none, 1, NULL, -1);
    LST_CHECK(role.workers == 1);
}

LST_TEST(s108_a_question_with_a_part_missing_or_wrong_is_refused)
{
    static const ls_job foo[] = {{"foo", 1}};
    static const ls_job chiefs[] = {{"chief", 2}, {"worker", 1}};
    static const ls_job evaluators[] = {{"evaluator", 2}, {"worker", 1}};
    static const ls_job twice[] = {{"worker", 1}, {"worker", 2}};
    static const ls_job negative[] = {{"worker", -1}};
    static const ls_job unnamed[] = {{NULL, 1}};
    static const ls_job servers[] = {{"worker", 1}, {"ps", 1}};

    refuses(workers, 1, NULL, -1, "type is missing");
    refuses(workers, 1, "worker", -1, "index is missing");
    refuses(workers, 1, "worker", 3, "no task 3 of job worker, which has 3");
    refuses(workers, 1, "chief", 0, "no job \"chief\"");
    refuses(workers, 1, "foo", 0, "no job \"foo\"");
    refuses(foo, 1, "foo", 0, "\"foo\"");
    refuses(chiefs, 2, "worker", 0, "chief has 2");
    refuses(evaluators, 2, "worker", 0, "evaluator has 2");
    refuses(twice, 2, "worker", 0, "twice");
    refuses(negative, 1, "worker", 0, "negative");
    refuses(unnamed, 1, "worker", 0, "NULL");
    refuses(servers, 2, "ps", 0, "ps task");
    refuses(NULL, 2, "worker", 0, "NULL");
}

LST_TEST(an_older_struct_gets_the_fields_it_has)
{
    ls_cluster_role role = LS_CLUSTER_ROLE_INIT;

    role.struct_size = offsetof(ls_cluster_role, is_chief);
    LST_OK(ls_cluster_role_of(workers, 1, "worker", 0, &role, NULL));
    LST_CHECK(role.workers == 3 && !role.is_chief && role.leader[0] == '\0');
    LST_CHECK(role.struct_size == offsetof(ls_cluster_role, is_chief));
    role.struct_size = 0;
    LST_CHECK(ls_cluster_role_of(workers, 1, "worker", 0, &role, NULL) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(ls_cluster_role_of(workers, 1, "worker", 0, NULL, NULL) ==
              LS_INVALID_ARGUMENT);
}

LST_MAIN(LST_CASE(s107_the_chief_comes_before_the_workers),
         LST_CASE(s107_without_a_chief_worker_0_is_it),
         LST_CASE(an_evaluator_is_alone_and_has_no_leader),
         LST_CASE(no_cluster_is_a_cluster_of_one),
         LST_CASE(s108_a_question_with_a_part_missing_or_wrong_is_refused),
         LST_CASE(an_older_struct_gets_the_fields_it_has))
