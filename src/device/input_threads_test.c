/* The threads of the input: their work, and the cores they may use. */
#include "device/input_threads.h"
#include "ls_test.h"
#include "os/thread.h"

/* Filled in by a thread of the input. */
struct look {
    lsi_word done;
    int cores;
};

static void look_around(void *arg)
{
    struct look *l = arg;

    l->cores = lsi_affinity_get(NULL, 0);
    lsi_word_drop(&l->done);
}

/* The number of cores of an input thread that the calling thread starts. */
static int cores_of_a_thread(int most)
{
    lsi_input_threads *t = lsi_input_threads_create();
    struct look l = {.cores = 0};

    LST_CHECK(lsi_input_threads_count(t) == most);
    lsi_word_init(&l.done, 1);
    const bool started = lsi_input_threads_submit(t, look_around, &l);

    LST_CHECK(started);
    if (started) {
        lsi_word_wait_zero(&l.done, 0);
    }
    lsi_input_threads_release(t); // joins it
    lsi_word_destroy(&l.done);
    return l.cores;
}

LST_TEST(threads_started_by_a_pinned_one_have_all_cores_of_the_process)
{
    const int all = lsi_affinity_get(NULL, 0);
    const int most = LSI_MIN(LSI_MIN(all, lsi_cpu_quota()), 16);
    int *cores = lsi_alloc((size_t)all, sizeof *cores);
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(cores != NULL && lsi_affinity_get(cores, all) == all);
    LST_CHECK(lsi_affinity_unpinned(NULL, 0) == all);
#ifdef __linux__
    LST_OK(lsi_affinity_set(cores, 1, &err));
    LST_CHECK(lsi_affinity_get(NULL, 0) == 1);
    LST_CHECK(lsi_affinity_unpinned(NULL, 0) == all);
    LST_CHECK(cores_of_a_thread(most) == all);
    LST_CHECK(lsi_affinity_get(NULL, 0) == 1); // the calling thread stays pinned
    LST_OK(lsi_affinity_set(cores, all, &err));
#endif
    LST_CHECK(cores_of_a_thread(most) == all);
    lsi_free(cores);
}

static void tick(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

LST_TEST(work_runs_once_or_is_taken_back)
{
    lsi_input_threads *t = lsi_input_threads_create();
    atomic_int runs = 0, others = 0;
    int given = 0, back = 0;

    for (int i = 0; i < 1000; i++) {
        given += lsi_input_threads_submit(t, tick, &runs);
        LST_CHECK(lsi_input_threads_submit(t, tick, &others));
        if (i % 3 == 0) {
            back += lsi_input_threads_cancel(t, tick, &runs);
        }
    }
    LST_CHECK(given == 1000);
    lsi_input_threads_release(t); // queued calls run before the threads are joined
    LST_CHECK(atomic_load(&runs) + back == given && atomic_load(&others) == 1000);
}

LST_TEST(without_a_runtime_no_work_is_taken)
{
    atomic_int runs = 0;

    LST_CHECK(!lsi_input_threads_submit(NULL, tick, &runs));
    LST_CHECK(!lsi_input_threads_cancel(NULL, tick, &runs));
    LST_CHECK(!lsi_input_threads_backlog(NULL) && lsi_input_threads_count(NULL) == 1);
    lsi_input_threads_release(NULL);
}

LST_TEST(threads_that_were_never_needed_do_not_exist)
{
    lsi_input_threads *t = lsi_input_threads_create();

    LST_CHECK(t != NULL && !lsi_input_threads_backlog(t));
    LST_CHECK(!lsi_input_threads_cancel(t, tick, NULL));
    lsi_input_threads_release(t);
}

LST_MAIN(LST_CASE(threads_started_by_a_pinned_one_have_all_cores_of_the_process),
         LST_CASE(work_runs_once_or_is_taken_back),
         LST_CASE(without_a_runtime_no_work_is_taken),
         LST_CASE(threads_that_were_never_needed_do_not_exist))
