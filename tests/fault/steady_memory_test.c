/* After a warm-up a step allocates no memory from the system: every buffer is reused. */
#include "device/device.h"
#include "ls_test.h"
#include "small_model.h"

static void take_steps(small_model *m, int n)
{
    ls_error err = LS_ERROR_INIT;
    double loss = 0;

    for (int i = 0; i < n; i++) {
        LST_OK(small_model_step(m, &loss, &err));
    }
}

static void check_steady(int threads)
{
    small_model m;
    ls_error err = LS_ERROR_INIT;
    uint64_t before = 0, after = 0;
    size_t held = 0, still = 0;

    LST_OK(small_model_create(&m, threads, &err));
    take_steps(&m, 5);
    lsi_device_pool_stats(ls_runtime_device(m.runtime, 0), &before, &held);
    LST_CHECK(before > 0);              // the counter counts
    (void)lsi_alloc_fail_at(INT64_MAX); // counts allocations, fails none
    take_steps(&m, 100);
    LST_CHECK(lsi_alloc_fail_at(0) == 0);
    lsi_device_pool_stats(ls_runtime_device(m.runtime, 0), &after, &still);
    LST_CHECK(after == before);
    LST_CHECK(still == held);
    small_model_release(&m);
}

LST_TEST(a_hundred_steps_of_an_mlp_allocate_nothing_on_one_thread)
{
    check_steady(1);
}

LST_TEST(a_hundred_steps_of_an_mlp_allocate_nothing_on_two_threads)
{
    check_steady(2);
}

LST_TEST(the_counter_sees_an_allocation)
{
    (void)lsi_alloc_fail_at(INT64_MAX);
    lsi_free(lsi_alloc(1, 1));
    LST_CHECK(lsi_alloc_fail_at(0) == 1);
}

LST_MAIN(LST_CASE(the_counter_sees_an_allocation),
         LST_CASE(a_hundred_steps_of_an_mlp_allocate_nothing_on_one_thread),
         LST_CASE(a_hundred_steps_of_an_mlp_allocate_nothing_on_two_threads))
