/* Device names, runtimes, settings and the topology of the machine. */
#include "device/device.h"
#include "device/settings.h"
#include "device/topology.h"
#include "os/thread.h"

#include "ls_test.h"

#include <limits.h>

#define LOCAL "/job:localhost/replica:0/task:0/device:"

static const struct {
    const char *name, *dflt, *expect;
} good[] = {
    {"/cpu:0", NULL, LOCAL "CPU:0"},
    {"CPU:0", NULL, LOCAL "CPU:0"},
    {"cpu:3", NULL, LOCAL "CPU:3"},
    {"/CPU:1", NULL, LOCAL "CPU:1"},
    {"/device:CPU:0", NULL, LOCAL "CPU:0"},
    {"device:CPU:2", NULL, LOCAL "CPU:2"},
    {"/device:cpu:1", NULL, LOCAL "CPU:1"},
    {"cpu", NULL, LOCAL "CPU:0"},
    {"/gpu", NULL, LOCAL "GPU:0"},
    {"/gpu:0", NULL, LOCAL "GPU:0"},
    {"TPU:7", NULL, LOCAL "TPU:7"},
    {"/cpu:*", NULL, LOCAL "CPU:0"},
    {"/device:GPU:*", NULL, LOCAL "GPU:0"},
    {"/device:XLA_CPU:0", NULL, LOCAL "XLA_CPU:0"},
    {"", NULL, LOCAL "CPU:0"},
    {"/", NULL, LOCAL "CPU:0"},
    {"//cpu:1", NULL, LOCAL "CPU:1"},
    {"/job:w/task:1", NULL, "/job:w/replica:0/task:1/device:CPU:0"},
    {"/task:1/job:w", NULL, "/job:w/replica:0/task:1/device:CPU:0"},
    {"/job:worker/cpu:0", NULL, "/job:worker/replica:0/task:0/device:CPU:0"},
    {"/job:a/replica:0/task:1/device:GPU:2", NULL,
     "/job:a/replica:0/task:1/device:GPU:2"},
    {"/device:GPU:2/task:1/replica:3/job:a", NULL,
     "/job:a/replica:3/task:1/device:GPU:2"},
    {"/job:a/job:b", NULL, "/job:b/replica:0/task:0/device:CPU:0"},
    {"/job:*/task:2", NULL, "/job:localhost/replica:0/task:2/device:CPU:0"},
    {"/task:2147483647", NULL, "/job:localhost/replica:0/task:2147483647/device:CPU:0"},
    {"/job:worker/task:1", "/gpu:0", "/job:worker/replica:0/task:1/device:GPU:0"},
    {"/gpu:1", "/job:ps/replica:2/task:3/device:CPU:0",
     "/job:ps/replica:2/task:3/device:GPU:1"},
    {"/task:5", LOCAL "CPU:4", "/job:localhost/replica:0/task:5/device:CPU:4"},
};

static const struct {
    const char *name, *word;
} bad[] = {
    {"/cpu:-1", "not a number"},
    {"/cpu:x", "\"x\""},
    {"/cpu:", "number is missing"},
    {"/cpu: 1", "not a number"},
    {"/cpu:0:0", "neither"},
    {"/device:CPU", "takes a type and a number"},
    {"/device:CPU:0:1", "too many colons"},
    {"/device::0", "begins with a letter"},
    {"/device:0CPU:0", "begins with a letter"},
    {"/device:ABCDEFGHIJKLMNOP:0", "at most 15"},
    {"/device:C-U:0", "letters, digits"},
    {"/cpu:0/gpu:0", "second device type"},
    {"/cpu:0/device:CPU:0", "second device type"},
    {"/xyz:0", "\"xyz:0\""},
    {"cp", "\"cp\""},
    {"cpux", "\"cpux\""},
    {"/job:", "job is missing"},
    {"/job:a b", "name of a job"},
    {"/job", "neither"},
    {"/task:one", "not a number"},
    {"/task:2147483648", "too large"},
    {"/task:99999999999999999999999", "too large"},
    {"/replica:", "number is missing"},
    {"/job:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     "longer than 63"},
};

LST_TEST(every_spelling_of_a_device_becomes_its_canonical_name)
{
    for (size_t i = 0; i < LSI_COUNT_OF(good); i++) {
        ls_error err = LS_ERROR_INIT;
        char out[96] = "";

        LST_OK(lsi_device_canonical(good[i].name, good[i].dflt, out, sizeof out, &err));
        LST_CHECK(strcmp(out, good[i].expect) == 0);
    }
}

LST_TEST(a_canonical_name_stays_as_it_is)
{
    for (size_t i = 0; i < LSI_COUNT_OF(good); i++) {
        ls_error err = LS_ERROR_INIT;
        char out[96] = "";

        LST_OK(lsi_device_canonical(good[i].expect, "/gpu:9", out, sizeof out, &err));
        LST_CHECK(strcmp(out, good[i].expect) == 0);
    }
}

LST_TEST(a_wrong_name_is_shown_with_what_is_wrong)
{
    for (size_t i = 0; i < LSI_COUNT_OF(bad); i++) {
        ls_error err = LS_ERROR_INIT;
        char out[96] = "";

        LST_FAILS(lsi_device_canonical(bad[i].name, NULL, out, sizeof out, &err),
                  LS_INVALID_ARGUMENT, err, bad[i].word);
        LST_CHECK(strstr(err.message, bad[i].name) != NULL);
        LST_CHECK(strcmp(ls_error_python(&err), "ValueError") == 0);
    }
}

LST_TEST(a_name_that_does_not_fit_or_is_none_is_an_error)
{
    ls_error err = LS_ERROR_INIT;
    char out[20] = "";

    LST_FAILS(lsi_device_canonical("cpu", NULL, out, sizeof out, &err),
              LS_INVALID_ARGUMENT, err, "19");
    LST_FAILS(lsi_device_canonical(NULL, NULL, out, sizeof out, &err),
              LS_INVALID_ARGUMENT, err, "NULL");
}

static ls_status create_runtime(ls_error *err)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_status st;

    opts.logical_cpus = 3;
    opts.pin = true;
    st = ls_runtime_create(&opts, &rt, err);
    ls_runtime_release(rt);
    return st;
}

LST_TEST(a_runtime_survives_the_failure_of_every_allocation)
{
    lst_every_allocation(create_runtime);
}

LST_TEST(the_default_runtime_is_tried_again_after_a_failure)
{
    (void)lsi_alloc_fail_at(1);
    LST_CHECK(lsi_runtime_default() == NULL);
    (void)lsi_alloc_fail_at(0);
    LST_CHECK(lsi_runtime_default() != NULL);
    LST_CHECK(lsi_runtime_default() == lsi_runtime_default());
    LST_CHECK(ls_runtime_device_count(NULL) == 1);
    LST_CHECK(strcmp(ls_device_name(ls_runtime_device(NULL, 0)), LOCAL "CPU:0") == 0);
}

LST_TEST(logical_cpus_share_the_cores_and_each_has_one_at_least)
{
    const int cores = LSI_MIN(lsi_affinity_get(NULL, 0), lsi_cpu_quota());

    for (int n = 1; n <= cores + 3; n++) {
        ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
        ls_error err = LS_ERROR_INIT;
        ls_runtime *rt = NULL;
        int sum = 0;

        opts.logical_cpus = n;
        LST_OK(ls_runtime_create(&opts, &rt, &err));
        LST_CHECK(ls_runtime_device_count(rt) == n);
        for (int i = 0; i < n; i++) {
            ls_device *dev = ls_runtime_device(rt, i);

            LST_CHECK(dev->cores >= 1 && dev->index == i && dev->runtime == rt);
            LST_CHECK(ls_device_threads(dev) == dev->cores);
            sum += dev->cores;
        }
        LST_CHECK(sum == LSI_MAX(cores, n));
        LST_CHECK(ls_runtime_device(rt, n) == NULL && ls_runtime_device(rt, -1) == NULL);
        ls_runtime_release(rt);
    }
}

struct where {
    atomic_bool begun;
    int count, core;
};

static void note_core(void *arg, int part, int parts)
{
    struct where *w = arg;

    (void)parts;
    if (part == 1) {
        w->count = lsi_affinity_get(&w->core, 1);
        atomic_store(&w->begun, true);
    }
    while (!atomic_load(&w->begun)) { // so that part 1 is the member's, not the caller's
        lsi_yield();
    }
}

LST_TEST(pinned_devices_take_the_cores_in_turn)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;
    const int cores = LSI_MIN(lsi_affinity_get(NULL, 0), lsi_cpu_quota());
    int first = -1;

    opts.logical_cpus = cores + 1; // one each, and the last shares with the first
    opts.threads = 2;
    opts.pin = true;
    LST_OK(ls_runtime_create(&opts, &rt, &err));
    for (int i = 0; i <= cores; i++) {
        struct where w = {.core = -1};

        lsi_team_run(ls_runtime_device(rt, i)->team, 2, note_core, &w);
#ifdef __linux__
        LST_CHECK(w.count == 1);
        LST_CHECK(i == 0 || (w.core == first) == (i == cores));
#endif
        first = i == 0 ? w.core : first;
    }
    ls_runtime_release(rt);
}

static atomic_int outstanding;

static void *count_alloc(size_t size, size_t align, void *user)
{
    void *p = NULL;

    (void)user;
    (void)atomic_fetch_add(&outstanding, 1);
    return posix_memalign(&p, align, size) == 0 ? p : NULL;
}

static void count_free(void *ptr, void *user)
{
    (void)user;
    (void)atomic_fetch_sub(&outstanding, 1);
    free(ptr);
}

LST_TEST(a_runtime_gives_back_all_memory_it_took)
{
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;

    LST_OK(ls_allocator_set(count_alloc, count_free, NULL, &err));
    LST_OK(ls_runtime_create(NULL, &rt, &err));
    for (size_t bytes = 1; bytes < 8 << 20; bytes *= 3) {
        ls_device *dev = ls_runtime_device(rt, 0);

        lsi_device_free(dev, lsi_device_alloc(dev, bytes));
    }
    LST_CHECK(atomic_load(&outstanding) > 10); // kept for the next step
    ls_runtime_release(rt);
    LST_CHECK(atomic_load(&outstanding) == 0);
    LST_OK(ls_allocator_set(NULL, NULL, NULL, &err));
}

LST_TEST(options_set_threads_seed_and_instruction_set)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;

    opts.threads = 3;
    opts.seeded = true;
    opts.seed = 42;
    opts.isa = "baseline";
    LST_OK(ls_runtime_create(&opts, &rt, &err));
    LST_CHECK(ls_device_threads(ls_runtime_device(rt, 0)) == 3);
    LST_CHECK(lsi_runtime_seed(rt) == 42);
    LST_CHECK(ls_runtime_device(rt, 0)->isa == LSI_ISA_BASELINE);
    ls_runtime_release(rt);
}

LST_TEST(an_instruction_set_that_is_unknown_or_not_there_is_an_error_with_the_choices)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;

    opts.isa = "sse9";
    LST_FAILS(ls_runtime_create(&opts, &rt, &err), LS_INVALID_ARGUMENT, err, "baseline");
    LST_CHECK(strstr(err.message, "sse9") != NULL && rt == NULL);
    if (lsi_isa_best() < LSI_ISA_AVX512) {
        opts.isa = "avx512";
        LST_FAILS(ls_runtime_create(&opts, &rt, &err), LS_INVALID_ARGUMENT, err,
                  lsi_isa_name(lsi_isa_best()));
    }
    for (int i = LSI_ISA_REF; i <= (int)lsi_isa_best(); i++) {
        opts.isa = lsi_isa_name((lsi_isa)i);
        LST_OK(ls_runtime_create(&opts, &rt, &err));
        LST_CHECK((int)ls_runtime_device(rt, 0)->isa == i);
        ls_runtime_release(rt);
    }
}

LST_TEST(options_out_of_range_are_errors)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;

    opts.logical_cpus = -1;
    LST_FAILS(ls_runtime_create(&opts, &rt, &err), LS_INVALID_ARGUMENT, err, "-1");
    opts.logical_cpus = 0;
    opts.threads = 1000000;
    LST_FAILS(ls_runtime_create(&opts, &rt, &err), LS_INVALID_ARGUMENT, err, "1000000");
    opts.struct_size = 0;
    LST_FAILS(ls_runtime_create(&opts, &rt, &err), LS_INVALID_ARGUMENT, err, "OPTIONS");
    LST_FAILS(ls_runtime_create(NULL, NULL, &err), LS_INVALID_ARGUMENT, err, "out");
    LST_CHECK(rt == NULL);
}

LST_TEST(the_environment_is_used_where_no_option_says_otherwise)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    const ls_setting *all = NULL;
    ls_runtime *rt = NULL;

    LST_CHECK(setenv("LS_DEVICES", "2", 1) == 0 && setenv("LS_SEED", "7", 1) == 0 &&
              setenv("LS_THREADS", "1", 1) == 0);
    opts.threads = 2;
    LST_OK(ls_runtime_create(&opts, &rt, &err));
    LST_CHECK(ls_runtime_device_count(rt) == 2 && lsi_runtime_seed(rt) == 7);
    LST_CHECK(ls_device_threads(ls_runtime_device(rt, 1)) == 2);
    LST_CHECK(ls_settings(rt, &all) == LSI_SETTING_COUNT);
    LST_CHECK(strcmp(all[LSI_SETTING_DEVICES].name, "LS_DEVICES") == 0);
    LST_CHECK(strcmp(all[LSI_SETTING_DEVICES].value, "2") == 0);
    LST_CHECK(strcmp(all[LSI_SETTING_DEVICES].origin, "environment") == 0);
    LST_CHECK(strcmp(all[LSI_SETTING_THREADS].origin, "option") == 0);
    LST_CHECK(strcmp(all[LSI_SETTING_PIN].origin, "default") == 0);
    ls_runtime_release(rt);
    LST_CHECK(unsetenv("LS_DEVICES") == 0 && unsetenv("LS_SEED") == 0 &&
              unsetenv("LS_THREADS") == 0);
}

LST_TEST(a_wrong_environment_is_an_error_for_a_runtime_and_a_warning_for_the_default)
{
    static const char *const wrong[][2] = {
        {"LS_DEVICES", "0"},  {"LS_DEVICES", "two"},
        {"LS_DEVICES", "+2"}, {"LS_DEVICES", "2 "},
        {"LS_THREADS", "-1"}, {"LS_ISA", "mmx"},
        {"LS_SEED", "1.5"},   {"LS_PIN", "perhaps"},
        {"LS_DNNL", "2"},     {"LS_SEED", "99999999999999999999"},
    };

    for (size_t i = 0; i < LSI_COUNT_OF(wrong); i++) {
        ls_error err = LS_ERROR_INIT;
        ls_runtime *rt = NULL;
        lsi_settings s;

        LST_CHECK(setenv(wrong[i][0], wrong[i][1], 1) == 0);
        LST_FAILS(ls_runtime_create(NULL, &rt, &err), LS_INVALID_ARGUMENT, err,
                  wrong[i][0]);
        LST_CHECK(strstr(err.message, wrong[i][1]) != NULL);
        LST_OK(lsi_settings_resolve(NULL, true, &s, &err));
        LST_CHECK(s.devices == 1 && s.seed == 0 && !s.pin && s.isa == lsi_isa_best());
        LST_CHECK(unsetenv(wrong[i][0]) == 0);
    }
}

LST_TEST(a_device_is_found_by_any_spelling_and_a_missing_one_names_those_there)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_device *dev = NULL;
    ls_runtime *rt = NULL;

    opts.logical_cpus = 2;
    LST_OK(ls_runtime_create(&opts, &rt, &err));
    LST_OK(ls_runtime_find_device(rt, "/cpu:1", &dev, &err));
    LST_CHECK(dev == ls_runtime_device(rt, 1));
    LST_OK(ls_runtime_find_device(rt, LOCAL "CPU:0", &dev, &err));
    LST_CHECK(dev == ls_runtime_device(rt, 0));
    LST_FAILS(ls_runtime_find_device(rt, "CPU:2", &dev, &err), LS_NOT_FOUND, err,
              "CPU:0, CPU:1");
    LST_CHECK(strstr(err.message, LOCAL "CPU:2") != NULL);
    LST_CHECK(strstr(err.message, "LS_DEVICES") != NULL);
    // No setting makes a GPU, or a device of another process.
    LST_FAILS(ls_runtime_find_device(rt, "/gpu:0", &dev, &err), LS_NOT_FOUND, err,
              "GPU:0: this build supports CPU devices only, not GPU; there are CPU:0, "
              "CPU:1");
    LST_CHECK(strstr(err.message, "LS_DEVICES") == NULL);
    LST_FAILS(ls_runtime_find_device(rt, "/job:worker/cpu:0", &dev, &err), LS_NOT_FOUND,
              err,
              "devices of its own process only, here CPU:0, CPU:1 of /job:localhost");
    LST_CHECK(strstr(err.message, "LS_DEVICES") == NULL);
    LST_FAILS(ls_runtime_find_device(rt, "/cpu:a", &dev, &err), LS_INVALID_ARGUMENT, err,
              "/cpu:a");
    LST_CHECK(dev == ls_runtime_device(rt, 0)); // untouched by failures
    ls_runtime_release(rt);
}

/* A runtime of two devices that is this task. */
static ls_status create_task(const char *job, int task, ls_runtime **out, ls_error *err)
{
    const lsi_runtime_setup setup = {.job = job, .task = task};
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;

    opts.logical_cpus = 2;
    return lsi_runtime_create_with(&opts, &setup, out, err);
}

LST_TEST(the_devices_of_a_task_have_its_name_and_are_found_by_what_is_left_of_it)
{
    static const char name[] = "/job:worker/replica:0/task:1/device:CPU:1";
    static const char *const same[] = {"CPU:1", "/task:1/cpu:1", "/job:worker/cpu:1",
                                       "/job:worker/task:1/device:CPU:1", name};
    static const char *const others[] = {"/job:worker/task:2/cpu:1",
                                         "/job:worker/task:11/cpu:1",
                                         "/job:localhost/cpu:1", "/job:ps/cpu:0"};
    ls_error err = LS_ERROR_INIT;
    ls_device *dev = NULL;
    ls_runtime *rt = NULL;

    LST_OK(create_task("worker", 1, &rt, &err));
    LST_CHECK(strcmp(lsi_runtime_task(rt), "/job:worker/replica:0/task:1") == 0);
    LST_CHECK(strcmp(ls_device_name(ls_runtime_device(rt, 1)), name) == 0);
    for (size_t i = 0; i < LSI_COUNT_OF(same); i++) {
        dev = NULL;
        LST_OK(ls_runtime_find_device(rt, same[i], &dev, &err));
        LST_CHECK(dev == ls_runtime_device(rt, 1));
    }
    for (size_t i = 0; i < LSI_COUNT_OF(others); i++) {
        LST_FAILS(ls_runtime_find_device(rt, others[i], &dev, &err), LS_NOT_FOUND, err,
                  "its own process only, here CPU:0, CPU:1 of "
                  "/job:worker/replica:0/task:1");
    }
    LST_FAILS(ls_runtime_find_device(rt, "CPU:2", &dev, &err), LS_NOT_FOUND, err,
              "this runtime has CPU:0, CPU:1 of /job:worker/replica:0/task:1; set");
    ls_runtime_release(rt);
}

LST_TEST(a_task_that_cannot_be_named_is_refused)
{
    char longest[64] = "", longer[65] = "", small[20];
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;

    LST_FAILS(create_task("a/task:3", 0, &rt, &err), LS_INVALID_ARGUMENT, err, "letters");
    LST_FAILS(create_task("", 0, &rt, &err), LS_INVALID_ARGUMENT, err, "missing");
    LST_FAILS(create_task("*", 0, &rt, &err), LS_INVALID_ARGUMENT, err, "a job");
    LST_FAILS(create_task("worker", -1, &rt, &err), LS_INVALID_ARGUMENT, err, "task -1");
    memset(longest, 'j', sizeof longest - 1);
    memset(longer, 'j', sizeof longer - 1);
    LST_FAILS(create_task(longer, 0, &rt, &err), LS_INVALID_ARGUMENT, err, "63");
    LST_FAILS(lsi_task_name("worker", 12, small, sizeof small, &err), LS_INVALID_ARGUMENT,
              err, "29 characters, 19");
    LST_CHECK(rt == NULL);
    LST_OK(create_task(longest, INT_MAX, &rt, &err)); // its devices have whole names
    LST_CHECK(strstr(ls_device_name(ls_runtime_device(rt, 1)),
                     "/task:2147483647/device:CPU:1") != NULL);
    ls_runtime_release(rt);
}

LST_TEST(memory_in_use_keeps_its_runtime_alive)
{
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;
    ls_device *dev;
    char *p;

    LST_OK(ls_runtime_create(NULL, &rt, &err));
    dev = ls_runtime_device(rt, 0);
    p = lsi_device_alloc(dev, 100);
    ls_runtime_release(rt);
    lsi_device_copy(dev, p, "still there", 12);
    LST_CHECK(strcmp(p, "still there") == 0);
    lsi_device_free(dev, NULL);
    lsi_device_free(dev, p); // the runtime ends here; a leak would be seen
}

LST_TEST(the_statistics_of_a_device_are_those_of_its_pool)
{
    ls_error err = LS_ERROR_INIT;
    uint64_t allocs = 99;
    ls_runtime *rt = NULL;
    size_t held = 99;
    void *p;

    LST_OK(ls_runtime_create(NULL, &rt, &err));
    lsi_device_pool_stats(ls_runtime_device(rt, 0), &allocs, &held);
    LST_CHECK(allocs == 0 && held == 0);
    p = lsi_device_alloc(ls_runtime_device(rt, 0), 1 << 20);
    lsi_device_pool_stats(ls_runtime_device(rt, 0), &allocs, &held);
    LST_CHECK(allocs == 1 && held >= 1 << 20);
    lsi_device_free(ls_runtime_device(rt, 0), p);
    ls_runtime_release(rt);
}

LST_TEST(instruction_sets_have_names_that_lead_back)
{
    lsi_isa isa = LSI_ISA_COUNT;

    for (int i = LSI_ISA_REF; i < LSI_ISA_COUNT; i++) {
        LST_CHECK(lsi_isa_from_name(lsi_isa_name((lsi_isa)i), &isa) && (int)isa == i);
    }
    LST_CHECK(!lsi_isa_from_name("AVX2", &isa) && !lsi_isa_from_name("", &isa));
    LST_CHECK(strcmp(lsi_isa_name(LSI_ISA_COUNT), "?") == 0);
    LST_CHECK(lsi_isa_best() >= LSI_ISA_BASELINE && lsi_isa_best() < LSI_ISA_COUNT);
}

LST_TEST(the_machine_is_described_and_all_its_processors_are_in_the_order)
{
    struct lsi_topology topo;
    ls_error err = LS_ERROR_INIT;
    int order[64], mine[64], count = 0;
    const int have = lsi_affinity_get(mine, 64);

    LST_OK(lsi_topology_describe(&topo, &err));
    LST_CHECK(topo.cores >= 1 && topo.threads_per_core >= 1 && topo.numa_nodes >= 1);
    LST_OK(lsi_topology_order(order, 64, &count, &err));
    LST_CHECK(count == LSI_MIN(have, 64));
    for (int i = 0; i < count && have <= 64; i++) {
        int found = 0;

        for (int k = 0; k < have; k++) {
            found += order[i] == mine[k];
        }
        LST_CHECK(found == 1);
    }
}

LST_TEST(the_version_has_three_numbers)
{
    int a = -1, b = -1, c = -1;

    // NOLINTNEXTLINE(cert-err34-c): a version of ours, checked by the count
    LST_CHECK(sscanf(ls_version(), "%d.%d.%d", &a, &b, &c) == 3);
}

LST_MAIN(
    LST_CASE(every_spelling_of_a_device_becomes_its_canonical_name),
    LST_CASE(a_canonical_name_stays_as_it_is),
    LST_CASE(a_wrong_name_is_shown_with_what_is_wrong),
    LST_CASE(a_name_that_does_not_fit_or_is_none_is_an_error),
    LST_CASE(a_runtime_survives_the_failure_of_every_allocation),
    LST_CASE(the_default_runtime_is_tried_again_after_a_failure),
    LST_CASE(logical_cpus_share_the_cores_and_each_has_one_at_least),
    LST_CASE(pinned_devices_take_the_cores_in_turn),
    LST_CASE(a_runtime_gives_back_all_memory_it_took),
    LST_CASE(options_set_threads_seed_and_instruction_set),
    LST_CASE(
        an_instruction_set_that_is_unknown_or_not_there_is_an_error_with_the_choices),
    LST_CASE(options_out_of_range_are_errors),
    LST_CASE(the_environment_is_used_where_no_option_says_otherwise),
    LST_CASE(a_wrong_environment_is_an_error_for_a_runtime_and_a_warning_for_the_default),
    LST_CASE(a_device_is_found_by_any_spelling_and_a_missing_one_names_those_there),
    LST_CASE(the_devices_of_a_task_have_its_name_and_are_found_by_what_is_left_of_it),
    LST_CASE(a_task_that_cannot_be_named_is_refused),
    LST_CASE(memory_in_use_keeps_its_runtime_alive),
    LST_CASE(the_statistics_of_a_device_are_those_of_its_pool),
    LST_CASE(instruction_sets_have_names_that_lead_back),
    LST_CASE(the_machine_is_described_and_all_its_processors_are_in_the_order),
    LST_CASE(the_version_has_three_numbers))
