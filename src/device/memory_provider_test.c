/* Devices whose memory is a segment that a neighbour maps, too. */
#include "device/device.h"
#include "device/pool.h"

#include "ls_test.h"
#include "segment.h"

#if LST_HAS_SEGMENTS
LST_TEST(all_memory_of_a_device_is_its_providers_and_is_returned_at_the_end)
{
    lst_segment *s = lst_segment_create(false);
    ls_runtime *rt = lst_segment_runtime(s, 2);
    uint64_t allocs = 0;

    LST_CHECK(lst_segment_devices(s) == 2 && lst_segment_given(s) == 0);
    for (size_t bytes = 0; bytes < 8 << 20; bytes = bytes * 3 + 1) {
        ls_device *dev = ls_runtime_device(rt, (int)(bytes % 2));
        char *p = lsi_device_alloc(dev, bytes);
        lsi_memory_location at = {0, 0};

        LST_CHECK(p != NULL && (uintptr_t)p % LSI_POOL_ALIGN == 0);
        LST_CHECK(lsi_device_locate(dev, p, bytes, &at) && at.segment == LST_SEGMENT_ID);
        memset(p, 0x5a, bytes);
        for (size_t i = 0; i < bytes; i += 1000) { // what a neighbour reads there
            const char *seen = lst_segment_seen(s, at.offset);

            LST_CHECK(seen != p && seen[i] == 0x5a);
        }
        lsi_device_free(dev, p);
    }
    for (int i = 0; i < 2; i++) {
        uint64_t n = 0;

        lsi_device_pool_stats(ls_runtime_device(rt, i), &n, NULL);
        allocs += n;
    }
    LST_CHECK(allocs > 8 && lst_segment_given(s) == (int64_t)allocs);
    LST_CHECK(lst_segment_in_use(s) > 0); // kept for the next step
    ls_runtime_release(rt);
    LST_CHECK(lst_segment_in_use(s) == 0 && lst_segment_devices(s) == 0);
    lst_segment_release(s);
}

LST_TEST(memory_of_the_process_alone_has_no_location)
{
    lst_segment *s = lst_segment_create(false);
    ls_runtime *rt = lst_segment_runtime(s, 1);
    ls_device *dev = ls_runtime_device(rt, 0), *usual;
    ls_runtime *other = NULL;
    ls_error err = LS_ERROR_INIT;
    lsi_memory_location at;
    void *p;

    LST_OK(ls_runtime_create(NULL, &other, &err));
    usual = ls_runtime_device(other, 0);
    p = lsi_device_alloc(usual, 100);
    LST_CHECK(!lsi_device_locate(usual, p, 100, &at));
    LST_CHECK(!lsi_device_locate(dev, p, 100, &at));
    LST_CHECK(usual->inline_bytes == LSI_INLINE_BYTES);
    lsi_device_free(usual, p);
    p = lsi_device_alloc(dev, 100);
    LST_CHECK(!lsi_device_locate(dev, p, (size_t)1 << 40, &at)); // beyond its end
    lsi_device_free(dev, p);
    ls_runtime_release(other);
    ls_runtime_release(rt);
    lst_segment_release(s);
}

LST_TEST(a_provider_that_refuses_gets_free_blocks_back_and_is_asked_again)
{
    lst_segment *s = lst_segment_create(false);
    ls_runtime *rt = lst_segment_runtime(s, 1);
    ls_device *dev = ls_runtime_device(rt, 0);
    size_t held = 0;
    void *p = lsi_device_alloc(dev, 4 << 20);

    lsi_device_free(dev, p);
    lst_segment_fail_at(s, 1);
    p = lsi_device_alloc(dev, 16 << 20);
    LST_CHECK(p != NULL && lst_segment_in_use(s) == 1);
    lst_segment_fail_at(s, 1);
    LST_CHECK(lsi_device_alloc(dev, 32 << 20) == NULL); // nothing is free
    lst_segment_fail_at(s, 1);
    LST_CHECK(lsi_device_alloc(dev, 100) == NULL);
    lsi_device_pool_stats(dev, NULL, &held);
    LST_CHECK(held == lsi_pool_rounded(16 << 20) + 64);
    lsi_device_free(dev, p);
    ls_runtime_release(rt);
    lst_segment_release(s);
}

/* The provider of device 1 does not come about. */
static ls_status refuse_second(void *user, int device, lsi_memory_provider *out,
                               ls_error *err)
{
    if (device == 1) {
        return lsi_fail(err, LS_UNAVAILABLE, -1, "no segment for device %d", device);
    }
    return lst_segment_provider(user, device, out, err);
}

LST_TEST(without_a_provider_there_is_no_runtime_and_the_others_are_destroyed)
{
    lst_segment *s = lst_segment_create(false);
    const lsi_runtime_setup setup = {.memory_of = refuse_second, .user = s};
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;

    opts.logical_cpus = 3;
    LST_FAILS(lsi_runtime_create_with(&opts, &setup, &rt, &err), LS_UNAVAILABLE, err,
              "no segment for device 1");
    LST_CHECK(rt == NULL && lst_segment_devices(s) == 0);
    lst_segment_release(s);
}

static lst_segment *shared;

static ls_status create_runtime(ls_error *err)
{
    const lsi_runtime_setup setup = {.memory_of = lst_segment_provider, .user = shared};
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_status st;

    opts.logical_cpus = 2;
    st = lsi_runtime_create_with(&opts, &setup, &rt, err);
    ls_runtime_release(rt);
    LST_CHECK(lst_segment_devices(shared) == 0);
    return st;
}

LST_TEST(providers_are_destroyed_whichever_allocation_of_a_runtime_fails)
{
    shared = lst_segment_create(true);
    lst_every_allocation(create_runtime);
    lst_segment_release(shared);
}

LST_MAIN(LST_CASE(all_memory_of_a_device_is_its_providers_and_is_returned_at_the_end),
         LST_CASE(memory_of_the_process_alone_has_no_location),
         LST_CASE(a_provider_that_refuses_gets_free_blocks_back_and_is_asked_again),
         LST_CASE(without_a_provider_there_is_no_runtime_and_the_others_are_destroyed),
         LST_CASE(providers_are_destroyed_whichever_allocation_of_a_runtime_fails))
#else
int main(void)
{
    return EXIT_SUCCESS;
}
#endif
