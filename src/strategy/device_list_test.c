/* Devices of strategies by their names, in runtimes of several tasks. */
#include "strategy/device_list.h"

#include "lockstep/strategy.h"
#include "ls_test.h"

/* A runtime of three devices that is this task. */
static ls_runtime *create_task(const char *job, int task)
{
    const lsi_runtime_setup setup = {.job = job, .task = task};
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;

    opts.logical_cpus = 3;
    LST_OK(lsi_runtime_create_with(&opts, &setup, &rt, &err));
    return rt;
}

static void check_list(ls_runtime *rt, const char *names, const int *expected, int count)
{
    ls_error err = LS_ERROR_INIT;
    ls_device **list = NULL;
    int n = 0;

    LST_OK(lsi_devices_parse(rt, names, 0, &list, &n, &err));
    LST_CHECK(n == count);
    for (int i = 0; i < n && i < count; i++) {
        LST_CHECK(list[i] == ls_runtime_device(rt, expected[i]));
    }
    lsi_free(list);
}

#define ONES(...)                                                                        \
    (const int[]){__VA_ARGS__}, (int)LSI_COUNT_OF(((const int[]){__VA_ARGS__}))

LST_TEST(names_without_a_task_are_of_the_task_of_the_runtime)
{
    ls_runtime *local = create_task(NULL, 0), *worker = create_task("worker", 1);

    check_list(local, "CPU:0, CPU:2", ONES(0, 2));
    check_list(local, "cpu:1,/job:localhost/cpu:0", ONES(1, 0));
    check_list(local, NULL, ONES(0, 1, 2));
    check_list(worker, "CPU:2", ONES(2));
    check_list(worker, "CPU:0,/job:worker/task:1/cpu:1,/task:1/cpu:2", ONES(0, 1, 2));
    check_list(worker, "", ONES(0, 1, 2));
    ls_runtime_release(local);
    ls_runtime_release(worker);
}

LST_TEST(devices_of_other_tasks_are_refused_each_with_its_reason)
{
    static const struct {
        const char *names;
        ls_status code;
        const char *python, *word;
    } wrong[] = {
        {"CPU:0,/job:localhost/cpu:1", LS_INVALID_ARGUMENT, "ValueError",
         "/job:worker/replica:0/task:1/device:CPU:0 and "
         "/job:localhost/replica:0/task:1/device:CPU:1: localhost cannot be mixed"},
        {"CPU:0,/task:2/cpu:0", LS_FAILED_PRECONDITION, "RuntimeError",
         "different tasks"},
        {"CPU:0,/job:ps/cpu:0", LS_FAILED_PRECONDITION, "RuntimeError",
         "different tasks"},
        {"/job:worker/task:2/cpu:0", LS_NOT_FOUND, "NotFoundError",
         "of /job:worker/replica:0/task:1"},
        {"CPU:1,/job:worker/cpu:1", LS_INVALID_ARGUMENT, "AssertionError", "twice"},
    };
    ls_runtime *rt = create_task("worker", 1);
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;

    opts.runtime = rt;
    for (size_t i = 0; i < LSI_COUNT_OF(wrong); i++) {
        ls_error err = LS_ERROR_INIT;
        ls_strategy *s = NULL;

        LST_FAILS(ls_mirrored_create(wrong[i].names, &opts, &s, &err), wrong[i].code, err,
                  wrong[i].word);
        LST_CHECK(strcmp(ls_error_python(&err), wrong[i].python) == 0);
        LST_CHECK(s == NULL);
    }
    ls_runtime_release(rt);
}

LST_TEST(a_strategy_of_a_task_names_its_devices_after_it)
{
    static const char expected[] = "/job:chief/replica:0/task:0/device:CPU:2";
    ls_strategy_options opts = LS_STRATEGY_OPTIONS_INIT;
    ls_runtime *rt = create_task("chief", 0);
    ls_error err = LS_ERROR_INIT;
    ls_strategy *s = NULL;

    opts.runtime = rt;
    LST_OK(ls_mirrored_create("CPU:1,CPU:2", &opts, &s, &err));
    LST_CHECK(strcmp(ls_device_name(ls_strategy_worker_device(s, 1)), expected) == 0);
    ls_strategy_release(s);
    LST_OK(ls_central_storage_create("CPU:0,CPU:1", expected, &opts, &s, &err));
    LST_CHECK(ls_strategy_parameter_device(s, 0) == ls_runtime_device(rt, 2));
    ls_strategy_release(s);
    LST_OK(ls_one_device_create("/job:chief/cpu:2", &opts, &s, &err));
    LST_CHECK(strcmp(ls_device_name(ls_strategy_worker_device(s, 0)), expected) == 0);
    ls_strategy_release(s);
    ls_runtime_release(rt);
}

LST_MAIN(LST_CASE(names_without_a_task_are_of_the_task_of_the_runtime),
         LST_CASE(devices_of_other_tasks_are_refused_each_with_its_reason),
         LST_CASE(a_strategy_of_a_task_names_its_devices_after_it))
