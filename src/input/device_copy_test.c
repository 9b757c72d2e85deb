/* Values moved to the device of a replica: by views, or copied where that is not enough. */
#include "input/input.h"

#include "ls_test.h"
#include "segment.h"

enum { SMALL = 2, LARGE = 100 };

/* A tuple of a small tensor, a large one and a string on the device. */
static ls_value *create_tuple(ls_device *device)
{
    const ls_shape shapes[] = {LS_SHAPE(SMALL), LS_SHAPE(LARGE), LS_SCALAR};
    const ls_dtype dtypes[] = {LS_F32, LS_F32, LS_STRING};
    const ls_string word = {"word", 4};
    const float numbers[LARGE] = {7, 8, 9};
    const void *const data[] = {numbers, numbers, &word};
    ls_value *items[3] = {NULL, NULL, NULL}, *out = NULL;
    ls_error err = LS_ERROR_INIT;

    for (int i = 0; i < 3; i++) {
        ls_tensor *t = NULL;

        LST_OK(ls_tensor_create(device, dtypes[i], shapes[i], data[i], &t, &err));
        LST_OK(ls_value_tensor(t, &items[i], &err));
        ls_tensor_release(t);
    }
    LST_OK(ls_value_tuple(items, 3, &out, &err));
    for (int i = 0; i < 3; i++) {
        ls_value_release(items[i]);
    }
    return out;
}

static const ls_tensor *item_of(const ls_value *v, size_t i)
{
    return ls_value_as_tensor(ls_value_child(v, i));
}

static void check_contents(const ls_value *v, ls_device *device)
{
    const ls_string *word = ls_tensor_data(item_of(v, 2));

    for (size_t i = 0; i < 3; i++) {
        LST_CHECK(ls_tensor_device(item_of(v, i)) == device);
    }
    for (size_t i = 0; i < 2; i++) {
        const float *numbers = ls_tensor_data(item_of(v, i));

        LST_CHECK(numbers[0] == 7 && numbers[1] == 8);
    }
    LST_CHECK(word->len == 4 && memcmp(word->ptr, "word", 4) == 0);
}

static ls_runtime *create_two(void)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_runtime *rt = NULL;

    opts.logical_cpus = 2;
    LST_OK(ls_runtime_create(&opts, &rt, &err));
    return rt;
}

LST_TEST(between_usual_devices_large_tensors_are_views_and_those_of_nobody_else_stay)
{
    ls_runtime *rt = create_two();
    ls_device *from = ls_runtime_device(rt, 0), *to = ls_runtime_device(rt, 1);
    ls_value *v = create_tuple(from), *placed = NULL, *moved = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(lsi_value_place(v, to, &placed, &err));
    check_contents(placed, to);
    check_contents(v, from);
    for (size_t i = 1; i < 3; i++) {
        LST_CHECK(ls_tensor_data(item_of(placed, i)) == ls_tensor_data(item_of(v, i)));
    }
    ls_value_release(placed);
    LST_OK(lsi_value_move(v, to, &moved, &err));
    LST_CHECK(moved == v); // in place
    check_contents(moved, to);
    ls_value_release(moved);
    ls_runtime_release(rt);
}

#if LST_HAS_SEGMENTS
static bool is_seen(const ls_value *v, size_t i)
{
    lsi_memory_location at;

    return lsi_tensor_locate(item_of(v, i), &at) && at.segment == LST_SEGMENT_ID;
}

LST_TEST(what_comes_from_elsewhere_is_copied_to_a_device_that_neighbours_map)
{
    lst_segment *s = lst_segment_create(true);
    ls_runtime *rt = lst_segment_runtime(s, 2), *usual = create_two();
    ls_device *from = ls_runtime_device(usual, 0), *to = ls_runtime_device(rt, 0);
    ls_value *v = create_tuple(from), *placed = NULL, *moved = NULL, *again = NULL,
             *refused = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(lsi_value_place(v, to, &placed, &err));
    check_contents(placed, to);
    check_contents(v, from);
    LST_CHECK(is_seen(placed, 0) && is_seen(placed, 1));
    LST_OK(lsi_value_move(v, to, &moved, &err));
    check_contents(moved, to);
    LST_CHECK(is_seen(moved, 0) && is_seen(moved, 1));
    // Within the segment views are enough.
    LST_OK(lsi_value_place(moved, ls_runtime_device(rt, 1), &again, &err));
    check_contents(again, ls_runtime_device(rt, 1));
    for (size_t i = 0; i < 3; i++) {
        LST_CHECK(ls_tensor_data(item_of(again, i)) == ls_tensor_data(item_of(moved, i)));
    }
    v = create_tuple(from);
    lst_segment_fail_at(s, 1);
    LST_FAILS(lsi_value_place(v, ls_runtime_device(rt, 1), &refused, &err),
              LS_RESOURCE_EXHAUSTED, err, "another device");
    LST_CHECK(refused == NULL);
    ls_value_release(v);
    ls_value_release(placed);
    ls_value_release(moved);
    ls_value_release(again);
    ls_runtime_release(usual);
    ls_runtime_release(rt);
    LST_CHECK(lst_segment_in_use(s) == 0);
    lst_segment_release(s);
}
#define SEGMENT_CASES                                                                    \
    LST_CASE(what_comes_from_elsewhere_is_copied_to_a_device_that_neighbours_map),
#else
#define SEGMENT_CASES
#endif

LST_MAIN(SEGMENT_CASES LST_CASE(
    between_usual_devices_large_tensors_are_views_and_those_of_nobody_else_stay))
