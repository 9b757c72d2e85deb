/* Tensors: creation, views, wrapping, strings, slices, printing. */
#include "ls_test.h"
#include "segment.h"
#include "tensor/tensor.h"

static ls_tensor *make(ls_dtype dtype, ls_shape shape, const void *data)
{
    ls_tensor *t = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_tensor_create(NULL, dtype, shape, data, &t, &err));
    return t;
}

static bool prints(ls_dtype dtype, ls_shape shape, const void *values, const char *want)
{
    char text[4096];
    ls_tensor *t = make(dtype, shape, values);
    const size_t n = ls_tensor_text(t, text, sizeof text);
    const bool same = strcmp(text, want) == 0 && n == strlen(want);

    if (!same) {
        (void)fprintf(stderr, "got  %s\nwant %s\n", text, want);
    }
    ls_tensor_release(t);
    return same;
}

LST_TEST(floats_print_as_numpy_prints_them)
{
    const float a[] = {1, 2.5f, -3}, b[] = {1e-5f, 1}, c[] = {0.1f, 100000, 3},
                d[] = {(float)INFINITY, (float)NAN, -1}, e = 1, f = 1e-5f, g = 0.1f,
                h[] = {1e10f, 1}, z[] = {0, 0}, third[] = {1.0f / 3, 2.0f / 3};

    LST_CHECK(prints(LS_F32, LS_SHAPE(3), a,
                     "tf.Tensor([ 1.   2.5 -3. ], shape=(3,), dtype=float32)"));
    LST_CHECK(prints(LS_F32, LS_SHAPE(2), b,
                     "tf.Tensor([1.e-05 1.e+00], shape=(2,), dtype=float32)"));
    LST_CHECK(prints(LS_F32, LS_SHAPE(3), c,
                     "tf.Tensor([1.e-01 1.e+05 3.e+00], shape=(3,), dtype=float32)"));
    LST_CHECK(prints(LS_F32, LS_SHAPE(3), d,
                     "tf.Tensor([inf nan -1.], shape=(3,), dtype=float32)"));
    LST_CHECK(prints(LS_F32, LS_SCALAR, &e, "tf.Tensor(1.0, shape=(), dtype=float32)"));
    LST_CHECK(prints(LS_F32, LS_SCALAR, &f, "tf.Tensor(1e-05, shape=(), dtype=float32)"));
    LST_CHECK(prints(LS_F32, LS_SCALAR, &g, "tf.Tensor(0.1, shape=(), dtype=float32)"));
    LST_CHECK(prints(LS_F32, LS_SHAPE(2), h,
                     "tf.Tensor([1.e+10 1.e+00], shape=(2,), dtype=float32)"));
    LST_CHECK(
        prints(LS_F32, LS_SHAPE(2), z, "tf.Tensor([0. 0.], shape=(2,), dtype=float32)"));
    LST_CHECK(prints(LS_F32, LS_SHAPE(2), third,
                     "tf.Tensor([0.33333334 0.6666667 ], shape=(2,), dtype=float32)"));
}

LST_TEST(other_dtypes_print_as_numpy_prints_them)
{
    const int32_t a[] = {1, -20, 3, 4, 5, 6};
    const uint8_t b[] = {1, 0};
    const ls_string s[] = {{"hello", 5}, {"a\0'b", 4}};

    LST_CHECK(prints(LS_I32, LS_SHAPE(2, 3), a,
                     "tf.Tensor(\n[[  1 -20   3]\n [  4   5   6]], shape=(2, 3), "
                     "dtype=int32)"));
    LST_CHECK(prints(LS_BOOL, LS_SHAPE(2), b,
                     "tf.Tensor([ True False], shape=(2,), dtype=bool)"));
    LST_CHECK(prints(LS_STRING, LS_SHAPE(1), s,
                     "tf.Tensor([b'hello'], shape=(1,), dtype=string)"));
    LST_CHECK(prints(LS_STRING, LS_SCALAR, &s[1],
                     "tf.Tensor(b\"a\\x00'b\", shape=(), dtype=string)"));
    LST_CHECK(prints(LS_F32, LS_SHAPE(0, 3), NULL,
                     "tf.Tensor([], shape=(0, 3), dtype=float32)"));
    LST_CHECK(prints(LS_I64, LS_SHAPE(2, 2, 1), (const int64_t[]){1, 2, 3, 4},
                     "tf.Tensor(\n[[[1]\n  [2]]\n\n [[3]\n  [4]]], shape=(2, 2, 1), "
                     "dtype=int64)"));
}

LST_TEST(what_has_several_lines_begins_on_its_own)
{
    const struct {
        ls_dtype dtype;
        int64_t n;
        const void *data;
        const char *text, *repr;
    } cases[] = {
        // What TensorFlow prints for tensors of [n, 1].
        {LS_F32, 2, (const float[]){1, 2.5F},
         "tf.Tensor(\n[[1. ]\n [2.5]], shape=(2, 1), dtype=float32)",
         "<tf.Tensor: shape=(2, 1), dtype=float32, numpy=\narray([[1. ],\n       [2.5]], "
         "dtype=float32)>"},
        {LS_F64, 1, (const double[]){1.5},
         "tf.Tensor([[1.5]], shape=(1, 1), dtype=float64)",
         "<tf.Tensor: shape=(1, 1), dtype=float64, numpy=array([[1.5]])>"},
        {LS_BOOL, 2, (const uint8_t[]){1, 0},
         "tf.Tensor(\n[[ True]\n [False]], shape=(2, 1), dtype=bool)",
         "<tf.Tensor: shape=(2, 1), dtype=bool, numpy=\narray([[ True],\n       "
         "[False]])>"},
        {LS_STRING, 2, (const ls_string[]){{"a\n", 2}, {"b", 1}},
         "tf.Tensor(\n[[b'a\\n']\n [b'b']], shape=(2, 1), dtype=string)",
         "<tf.Tensor: shape=(2, 1), dtype=string, numpy=\narray([[b'a\\n'],\n       "
         "[b'b']], dtype=object)>"},
    };

    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        ls_tensor *t = make(cases[i].dtype, LS_SHAPE(cases[i].n, 1), cases[i].data);
        char text[256];

        LST_CHECK(ls_tensor_text(t, text, sizeof text) == strlen(cases[i].text));
        LST_CHECK(strcmp(text, cases[i].text) == 0);
        LST_CHECK(ls_tensor_repr(t, text, sizeof text) == strlen(cases[i].repr));
        LST_CHECK(strcmp(text, cases[i].repr) == 0);
        ls_tensor_release(t);
    }
}

LST_TEST(a_sparse_tensor_prints_its_tensors)
{
    ls_tensor *values = make(LS_F32, LS_SHAPE(1, 2), (const float[]){1, 2});
    ls_tensor *rows = make(LS_I32, LS_SHAPE(1), (const int32_t[]){3});
    const ls_shape shape = LS_SHAPE(4, 2);
    ls_tensor *t = lsi_tensor_sparse(&shape, values, rows);
    char text[256];

    (void)ls_tensor_text(t, text, sizeof text);
    LST_CHECK(strcmp(text, "IndexedSlices(indices=tf.Tensor([3], shape=(1,), "
                           "dtype=int32), values=tf.Tensor([[1. 2.]], shape=(1, 2), "
                           "dtype=float32), dense_shape=tf.Tensor([4 2], shape=(2,), "
                           "dtype=int32))") == 0);
    ls_tensor_release(t);
    ls_tensor_release(rows);
    ls_tensor_release(values);
}

LST_TEST(a_long_tensor_shows_its_edges)
{
    int32_t v[1001];

    for (int i = 0; i < 1001; i++) {
        v[i] = i;
    }
    LST_CHECK(prints(LS_I32, LS_SHAPE(1001), v,
                     "tf.Tensor([   0    1    2 ...  998  999 1000], shape=(1001,), "
                     "dtype=int32)"));
}

LST_TEST(halves_round_to_nearest_even)
{
    static const struct {
        float f;
        uint16_t h;
    } f16[] = {{0, 0},
               {1, 0x3c00},
               {-2, 0xc000},
               {65504, 0x7bff},
               {65519.99f, 0x7bff},
               {65520, 0x7c00},
               {5.9604645e-8f, 1},
               {2.9802322e-8f, 0},
               {8.9406967e-8f, 2},
               {6.1035156e-5f, 0x400},
               {1.00048828125f, 0x3c00},
               {1.00146484375f, 0x3c02}};

    for (size_t i = 0; i < LSI_COUNT_OF(f16); i++) {
        LST_CHECK(lsi_f32_to_f16(f16[i].f) == f16[i].h);
    }
    for (uint32_t h = 0; h < 65536; h++) { // every half survives the round trip
        const float f = lsi_f16_to_f32((uint16_t)h), b = lsi_bf16_to_f32((uint16_t)h);

        LST_CHECK(isnan(f) ? isnan(lsi_f16_to_f32(lsi_f32_to_f16(f)))
                           : lsi_f32_to_f16(f) == h);
        LST_CHECK(isnan(b) ? isnan(lsi_bf16_to_f32(lsi_f32_to_bf16(b)))
                           : lsi_f32_to_bf16(b) == h);
    }
    LST_CHECK(lsi_f32_to_bf16(1.00390625f) == 0x3f80);
    LST_CHECK(lsi_f32_to_bf16(1.01171875f) == 0x3f82);
}

LST_TEST(a_shape_can_be_said_before_the_program_runs)
{
    static const ls_shape shapes[] = {LS_SHAPE_INIT(28, 28),
                                      LS_SHAPE_INIT(1, 2, 3, 4, 5, 6, 7, 8)};
    const ls_shape image = LS_SHAPE(28, 28), most = LS_SHAPE(1, 2, 3, 4, 5, 6, 7, 8);

    LST_CHECK(ls_shape_equal(&shapes[0], &image));
    LST_CHECK(ls_shape_equal(&shapes[1], &most));
}

LST_TEST(impossible_shapes_are_refused)
{
    ls_tensor *t = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(ls_tensor_create(NULL, LS_F32, LS_SHAPE(2, -1), NULL, &t, &err),
              LS_INVALID_ARGUMENT, err, "(2, -1)");
    LST_FAILS(ls_tensor_create(NULL, LS_F32, LS_SHAPE(INT64_MAX, 2), NULL, &t, &err),
              LS_INVALID_ARGUMENT, err, "not possible");
    LST_FAILS(ls_tensor_create(NULL, LS_F64, LS_SHAPE(INT64_MAX / 4), NULL, &t, &err),
              LS_INVALID_ARGUMENT, err, "not possible");
    LST_FAILS(ls_tensor_create(NULL, LS_F32, LS_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), NULL,
                               &t, &err),
              LS_INVALID_ARGUMENT, err, "more than 8");
    LST_FAILS(ls_tensor_create(NULL, (ls_dtype)99, LS_SHAPE(1), NULL, &t, &err),
              LS_INVALID_ARGUMENT, err, "99");
    LST_FAILS(ls_tensor_create(NULL, LS_F32, LS_SHAPE(1LL << 45), NULL, &t, &err),
              LS_RESOURCE_EXHAUSTED, err, "memory");
    LST_CHECK(t == NULL);
}

LST_TEST(a_view_keeps_the_memory_it_looks_at)
{
    float v[64];

    for (int i = 0; i < 64; i++) {
        v[i] = (float)i;
    }
    ls_tensor *t = make(LS_F32, LS_SHAPE(8, 8), v);
    const ls_shape row = LS_SHAPE(8);
    ls_tensor *view = lsi_tensor_view(t, LS_F32, &row, 8 * sizeof(float) * 3);

    ls_tensor_release(t);
    LST_CHECK(((const float *)ls_tensor_data(view))[0] == 24);
    ls_tensor_release(view);
}

static void count(void *user)
{
    (*(int *)user)++;
}

LST_TEST(wrapped_memory_is_given_back_once)
{
    static const float v[100] = {7};
    int done = 0;
    ls_tensor *t = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_tensor_wrap(NULL, LS_F32, LS_SHAPE(100), v, count, &done, &t, &err));
    LST_CHECK(ls_tensor_data(t) == v);
    ls_tensor_retain(t);
    ls_tensor_release(t);
    LST_CHECK(done == 0);
    ls_tensor_release(t);
    LST_CHECK(done == 1);
}

LST_TEST(a_sparse_tensor_reads_dense)
{
    ls_tensor *values = make(LS_F32, LS_SHAPE(3, 2), (const float[]){1, 2, 3, 4, 5, 6});
    ls_tensor *indices = make(LS_I32, LS_SHAPE(3), (const int32_t[]){3, 0, 3});
    const ls_shape shape = LS_SHAPE(4, 2);
    ls_tensor *t = lsi_tensor_sparse(&shape, values, indices);
    float dense[8];
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_tensor_read(t, dense, sizeof dense, &err));
    LST_CHECK(dense[0] == 3 && dense[1] == 4 && dense[2] == 0 && dense[6] == 6 &&
              dense[7] == 8);
    LST_CHECK(ls_tensor_data(t) == NULL && ls_tensor_slices(t, NULL, NULL));
    LST_FAILS(ls_tensor_read(t, dense, 4, &err), LS_INVALID_ARGUMENT, err, "32 bytes");
    ls_tensor_release(t);
    ls_tensor_release(values);
    ls_tensor_release(indices);
}

static ls_status create(ls_error *err)
{
    ls_tensor *t = NULL;
    const ls_string s[] = {{"abc", 3}};
    ls_status st = ls_tensor_create(NULL, LS_F32, LS_SHAPE(100), NULL, &t, err);

    ls_tensor_release(t);
    t = NULL;
    if (st == LS_OK) {
        st = ls_tensor_create(NULL, LS_STRING, LS_SHAPE(1), s, &t, err);
    }
    ls_tensor_release(t);
    t = NULL;
    if (st == LS_OK) {
        st = ls_tensor_wrap(NULL, LS_STRING, LS_SHAPE(1), s, NULL, NULL, &t, err);
    }
    ls_tensor_release(t);
    return st;
}

LST_TEST(creating_survives_every_failing_allocation)
{
    lst_every_allocation(create);
}

LST_TEST(a_small_tensor_lies_in_its_struct_on_a_usual_device)
{
    const float numbers[16] = {0};
    ls_tensor *scalar = make(LS_F32, LS_SCALAR, numbers);
    ls_tensor *full = make(LS_F32, LS_SHAPE(16), numbers);
    ls_tensor *more = make(LS_F32, LS_SHAPE(17), NULL);
    lsi_memory_location at;

    LST_CHECK(scalar->buffer == NULL && scalar->data == (void *)scalar->small);
    LST_CHECK(full->buffer == NULL && full->data == (void *)full->small);
    LST_CHECK(more->buffer != NULL);
    LST_CHECK(!lsi_tensor_locate(scalar, &at) && !lsi_tensor_locate(more, &at));
    ls_tensor_release(scalar);
    ls_tensor_release(full);
    ls_tensor_release(more);
}

#if LST_HAS_SEGMENTS
/* True if a neighbour reads these elements there. */
static bool is_seen(const lst_segment *s, const ls_tensor *t, const void *expected)
{
    lsi_memory_location at;

    return lsi_tensor_locate(t, &at) && at.segment == LST_SEGMENT_ID &&
           memcmp(lst_segment_seen(s, at.offset), expected, ls_tensor_bytes(t)) == 0;
}

LST_TEST(every_element_lies_in_the_memory_of_a_device_that_neighbours_map)
{
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    const int64_t rows[1] = {1};
    const ls_string word = {"word", 4};
    const ls_shape pair = LS_SHAPE(2);
    lst_segment *s = lst_segment_create(true);
    ls_runtime *rt = lst_segment_runtime(s, 1);
    ls_device *dev = ls_runtime_device(rt, 0);
    ls_tensor *scalar = NULL, *six = NULL, *part, *index = NULL, *sparse = NULL,
              *text = NULL, *wrapped = NULL, *none = NULL;
    ls_error err = LS_ERROR_INIT;
    lsi_memory_location at;

    LST_OK(ls_tensor_create(dev, LS_F32, LS_SCALAR, &numbers[4], &scalar, &err));
    LST_OK(ls_tensor_create(dev, LS_F32, LS_SHAPE(1, 6), numbers, &six, &err));
    LST_CHECK(is_seen(s, scalar, &numbers[4]) && is_seen(s, six, numbers));
    part = lsi_tensor_view(six, LS_F32, &pair, 3 * sizeof(float));
    LST_CHECK(is_seen(s, part, &numbers[3]));
    // What has no elements of its own there, or pointers.
    LST_OK(ls_tensor_create(dev, LS_I64, LS_SHAPE(1), rows, &index, &err));
    LST_OK(ls_tensor_create_slices(six, index, LS_SHAPE(3, 6), &sparse, &err));
    LST_OK(ls_tensor_create(dev, LS_STRING, LS_SCALAR, &word, &text, &err));
    LST_OK(ls_tensor_wrap(dev, LS_F32, LS_SHAPE(6), numbers, NULL, NULL, &wrapped, &err));
    LST_OK(ls_tensor_create(dev, LS_F32, LS_SHAPE(0), NULL, &none, &err));
    LST_CHECK(!lsi_tensor_locate(sparse, &at) && !lsi_tensor_locate(text, &at));
    LST_CHECK(!lsi_tensor_locate(wrapped, &at) && !lsi_tensor_locate(none, &at));
    lst_segment_fail_at(s, 1);
    LST_FAILS(ls_tensor_create(dev, LS_F64, LS_SHAPE(1000), NULL, &none, &err),
              LS_RESOURCE_EXHAUSTED, err, "8000");
    ls_runtime_release(rt);
    ls_tensor_release(part);
    ls_tensor_release(six);
    ls_tensor_release(index);
    ls_tensor_release(sparse);
    ls_tensor_release(text);
    ls_tensor_release(wrapped);
    ls_tensor_release(none);
    LST_CHECK(lst_segment_in_use(s) > 0);
    ls_tensor_release(scalar); // the last: the device ends here
    LST_CHECK(lst_segment_in_use(s) == 0 && lst_segment_devices(s) == 0);
    lst_segment_release(s);
}

LST_TEST(a_segment_that_need_not_hold_small_tensors_holds_the_others)
{
    lst_segment *s = lst_segment_create(false);
    ls_runtime *rt = lst_segment_runtime(s, 1);
    ls_device *dev = ls_runtime_device(rt, 0);
    ls_tensor *scalar = NULL, *large = NULL;
    ls_error err = LS_ERROR_INIT;
    lsi_memory_location at;

    LST_OK(ls_tensor_create(dev, LS_F32, LS_SCALAR, NULL, &scalar, &err));
    LST_OK(ls_tensor_create(dev, LS_F32, LS_SHAPE(17), NULL, &large, &err));
    LST_CHECK(scalar->buffer == NULL && !lsi_tensor_locate(scalar, &at));
    LST_CHECK(lsi_tensor_locate(large, &at));
    ls_tensor_release(scalar);
    ls_tensor_release(large);
    ls_runtime_release(rt);
    lst_segment_release(s);
}
#define SEGMENT_CASES                                                                    \
    LST_CASE(every_element_lies_in_the_memory_of_a_device_that_neighbours_map),          \
        LST_CASE(a_segment_that_need_not_hold_small_tensors_holds_the_others),
#else
#define SEGMENT_CASES
#endif

LST_MAIN(SEGMENT_CASES LST_CASE(a_small_tensor_lies_in_its_struct_on_a_usual_device),
         LST_CASE(floats_print_as_numpy_prints_them),
         LST_CASE(other_dtypes_print_as_numpy_prints_them),
         LST_CASE(what_has_several_lines_begins_on_its_own),
         LST_CASE(a_sparse_tensor_prints_its_tensors),
         LST_CASE(a_long_tensor_shows_its_edges), LST_CASE(halves_round_to_nearest_even),
         LST_CASE(a_shape_can_be_said_before_the_program_runs),
         LST_CASE(impossible_shapes_are_refused),
         LST_CASE(a_view_keeps_the_memory_it_looks_at),
         LST_CASE(wrapped_memory_is_given_back_once),
         LST_CASE(a_sparse_tensor_reads_dense),
         LST_CASE(creating_survives_every_failing_allocation))
