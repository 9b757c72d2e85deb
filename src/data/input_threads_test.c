/* The threads of the input: the cores they may use, whichever thread starts them. */
#include "data/input_threads.h"
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
static int cores_of_a_thread(void)
{
    struct look l = {.cores = 0};

    lsi_word_init(&l.done, 1);
    lsi_input_threads_use();
    const bool started = lsi_input_threads_submit(look_around, &l);

    LST_CHECK(started);
    if (started) {
        lsi_word_wait_zero(&l.done, 0);
    }
    lsi_input_threads_leave(); // joins it
    lsi_word_destroy(&l.done);
    return l.cores;
}

LST_TEST(threads_started_by_a_pinned_one_have_all_cores_of_the_process)
{
    const int all = lsi_affinity_get(NULL, 0);
    int *cores = lsi_alloc((size_t)all, sizeof *cores);
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(cores != NULL && lsi_affinity_get(cores, all) == all);
    LST_CHECK(lsi_affinity_unpinned(NULL, 0) == all);
#ifdef __linux__
    LST_OK(lsi_affinity_set(cores, 1, &err));
    LST_CHECK(lsi_affinity_get(NULL, 0) == 1);
    LST_CHECK(lsi_affinity_unpinned(NULL, 0) == all);
    LST_CHECK(cores_of_a_thread() == all);
    LST_CHECK(lsi_affinity_get(NULL, 0) == 1); // the calling thread stays pinned
    LST_CHECK(lsi_input_threads_count() == LSI_MIN(LSI_MIN(all, lsi_cpu_quota()), 16));
    LST_OK(lsi_affinity_set(cores, all, &err));
#endif
    LST_CHECK(cores_of_a_thread() == all);
    lsi_free(cores);
}

LST_MAIN(LST_CASE(threads_started_by_a_pinned_one_have_all_cores_of_the_process))
