/* Operations that move elements or make views: values, gradients, arguments. */
#include "ls_row_check.h"

/* The numbers 0, 1, 2 ... in a shape. */
static ls_tensor *counted(ls_context *c, ls_dtype dtype, ls_shape shape)
{
    ls_tensor *t = ls_constant(c, LS_F64, shape, NULL);

    for (int64_t i = 0; t != NULL && i < t->count; i++) {
        ((double *)t->data)[i] = (double)i;
    }
    return ls_cast(c, t, dtype);
}

static bool is_exactly(ls_context *c, ls_tensor *t, ls_dtype dtype, ls_shape shape,
                       const double *want)
{
    return t != NULL && (ls_dtype)t->dtype == dtype &&
           lst_holds(ls_cast(c, t, LS_F64), shape, want, 0);
}

#define SIZES(...)                                                                       \
    (const int64_t[])                                                                    \
    {                                                                                    \
        __VA_ARGS__                                                                      \
    }
#define PERM(...)                                                                        \
    (const int[])                                                                        \
    {                                                                                    \
        __VA_ARGS__                                                                      \
    }

LST_TEST(shapes_change_without_a_move)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = counted(c, LS_F32, LS_SHAPE(6, 1, 20));
    ls_tensor *r = ls_reshape(c, x, LS_SHAPE(4, -1, 5));
    ls_tensor *s = ls_squeeze(c, x, NULL, 0);
    ls_tensor *a = ls_squeeze(c, x, PERM(-2), 1);
    ls_tensor *e = ls_expand_dims(c, x, -1);
    ls_tensor *t = ls_transpose(c, x, PERM(1, 0, 2));
    const ls_shape rs = LS_SHAPE(4, 6, 5);
    const ls_shape es = LS_SHAPE(6, 1, 20, 1);
    const ls_shape ss = LS_SHAPE(6, 20);
    const ls_shape ts = LS_SHAPE(1, 6, 20);
    ls_shape shape;

    shape = ls_tensor_shape(r);
    LST_CHECK(r->data == x->data && ls_shape_equal(&shape, &rs));
    shape = ls_tensor_shape(s);
    LST_CHECK(s->data == x->data && ls_shape_equal(&shape, &ss));
    shape = ls_tensor_shape(a);
    LST_CHECK(a->data == x->data && ls_shape_equal(&shape, &ss));
    shape = ls_tensor_shape(e);
    LST_CHECK(e->data == x->data && ls_shape_equal(&shape, &es));
    shape = ls_tensor_shape(t);
    LST_CHECK(t->data == x->data && ls_shape_equal(&shape, &ts));
    LST_CHECK(ls_identity(c, x)->data == x->data);
    LST_CHECK(ls_stop_gradient(c, x)->data == x->data);
    LST_CHECK(ls_tile(c, x, SIZES(1, 1, 1))->data == x->data);
    LST_CHECK(ls_pad(c, x, SIZES(0, 0, 0, 0, 0, 0), 1)->data == x->data);
    LST_CHECK(ls_broadcast_to(c, x, LS_SHAPE(1, 6, 1, 20))->data == x->data);
    LST_CHECK(ls_concat(c, &x, 1, 0)->data == x->data);
    LST_CHECK((char *)ls_slice(c, x, SIZES(2, 0, 0), SIZES(3, 1, -1))->data ==
              (char *)x->data + (size_t)40 * 4);
    LST_CHECK((char *)ls_slice(c, x, SIZES(2, 0, 5), SIZES(1, 1, 3))->data ==
              (char *)x->data + (size_t)45 * 4);
    lst_close(c, rt);
}

LST_TEST(empty_and_scalar_tensors_reshape)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    LST_CHECK(lst_holds(ls_reshape(c, ls_constant_f32(c, 3), LS_SHAPE(-1)), LS_SHAPE(1),
                        D(3), 0));
    LST_CHECK(lst_holds(ls_reshape(c, ZEROS(c, LS_SHAPE(0, 4)), LS_SHAPE(-1, 4)),
                        LS_SHAPE(0, 4), NULL, 0));
    LST_CHECK(lst_holds(ls_transpose(c, ZEROS(c, LS_SHAPE(0, 4)), NULL), LS_SHAPE(4, 0),
                        NULL, 0));
    lst_close(c, rt);
}

LST_TEST(an_empty_tensor_reshapes_as_in_tensorflow)
{
    static const struct {
        ls_shape from, to, result;
    } cases[] = {
        {{1, {0}}, {2, {0, -1}}, {2, {0, 1}}},
        {{1, {0}}, {2, {-1, 0}}, {2, {1, 0}}},
        {{1, {0}}, {1, {-1}}, {1, {0}}},
        {{1, {0}}, {2, {2, -1}}, {2, {2, 0}}},
        {{2, {0, 3}}, {2, {0, -1}}, {2, {0, 3}}},
        {{1, {0}}, {3, {2, 0, -1}}, {3, {2, 0, 0}}},
        {{1, {0}}, {3, {0, 0, -1}}, {3, {0, 0, 1}}},
        {{1, {0}}, {3, {-1, 0, 3}}, {3, {0, 0, 3}}},
        {{1, {0}}, {2, {0, 5}}, {2, {0, 5}}},
    };
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    for (size_t i = 0; i < LSI_COUNT_OF(cases); i++) {
        LST_CHECK(lst_holds(ls_reshape(c, ZEROS(c, cases[i].from), cases[i].to),
                            cases[i].result, NULL, 0));
    }
    LST_CHECK(ls_reshape(c, ZEROS(c, LS_SHAPE(2)), LS_SHAPE(0, -1)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "2 elements, which do not fit the shape (0, -1)");
    lst_close(c, rt);
}

/* Compares every element of a transposed tensor, by index. */
static void check_transpose(ls_context *c, ls_dtype dtype, ls_shape shape,
                            const int *perm)
{
    ls_tensor *x = counted(c, dtype, shape);
    ls_tensor *y = ls_cast(c, ls_transpose(c, x, perm), LS_F64);
    ls_tensor *from = ls_cast(c, x, LS_F64); // small dtypes wrap, alike on both sides
    int64_t wrong = 0;

    LST_CHECK(y != NULL);
    for (int64_t at = 0; y != NULL && at < y->count; at++) {
        int64_t stride[LS_MAX_DIMS];
        int64_t rest = at;
        int64_t place = 0;
        int64_t size = 1;

        for (int i = shape.ndim - 1; i >= 0; i--) {
            stride[i] = size;
            size *= shape.dims[i];
        }
        for (int i = shape.ndim - 1; i >= 0; i--) {
            LST_CHECK(y->dims[i] == shape.dims[perm[i]]);
            place += rest % y->dims[i] * stride[perm[i]];
            rest /= y->dims[i];
        }
        wrong += lst_at(y, at) != lst_at(from, place);
    }
    LST_CHECK(wrong == 0);
}

LST_TEST(transposition_moves_every_element_whatever_its_size_and_the_tiles)
{
    static const ls_dtype dtypes[] = {LS_U8, LS_F16, LS_F32, LS_F64};
    static const int perms[][4] = {{3, 2, 1, 0}, {0, 2, 1, 3}, {0, 3, 1, 2},
                                   {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 0, 1, 2}};
    static const int swap[] = {1, 0};

    for (size_t i = 0; i < LSI_COUNT_OF(dtypes); i++) {
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);

        for (size_t j = 0; j < LSI_COUNT_OF(perms); j++) {
            check_transpose(c, dtypes[i], LS_SHAPE(3, 4, 5, 2), perms[j]);
        }
        check_transpose(c, dtypes[i], LS_SHAPE(33, 65), swap); // past whole tiles
        check_transpose(c, dtypes[i], LS_SHAPE(1, 7), swap);
        lst_close(c, rt);
    }
}

LST_TEST(two_threads_transpose_like_one)
{
    ls_runtime_options opts = LS_RUNTIME_OPTIONS_INIT;
    ls_runtime *rt = NULL;
    ls_context *c = NULL;
    static const int swap[] = {1, 0};

    opts.threads = 2;
    LST_OK(ls_runtime_create(&opts, &rt, NULL));
    LST_OK(ls_context_open(ls_runtime_device(rt, 0), NULL, &c, NULL));
    check_transpose(c, LS_F32, LS_SHAPE(301, 207), swap);
    lst_close(c, rt);
}

LST_TEST(negative_axes_transpose_and_null_reverses)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = counted(c, LS_F32, LS_SHAPE(2, 3));

    LST_CHECK(
        lst_holds(ls_transpose(c, x, NULL), LS_SHAPE(3, 2), D(0, 3, 1, 4, 2, 5), 0));
    LST_CHECK(lst_holds(ls_transpose(c, x, PERM(-1, 0)), LS_SHAPE(3, 2),
                        D(0, 3, 1, 4, 2, 5), 0));
    lst_close(c, rt);
}

LST_TEST(elements_repeat_by_broadcasting_and_tiling)
{
    static const ls_dtype dtypes[] = {LS_U8, LS_BF16, LS_I32, LS_F64};

    for (size_t i = 0; i < LSI_COUNT_OF(dtypes); i++) {
        const ls_dtype d = dtypes[i];
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        ls_tensor *x = counted(c, d, LS_SHAPE(2, 1));
        ls_tensor *m = counted(c, d, LS_SHAPE(2, 2));

        LST_CHECK(is_exactly(c, ls_broadcast_to(c, x, LS_SHAPE(2, 2, 3)), d,
                             LS_SHAPE(2, 2, 3), D(0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1)));
        LST_CHECK(is_exactly(
            c, ls_tile(c, m, SIZES(2, 3)), d, LS_SHAPE(4, 6),
            D(0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3)));
        LST_CHECK(is_exactly(c, ls_tile(c, m, SIZES(0, 3)), d, LS_SHAPE(0, 6), NULL));
        lst_close(c, rt);
    }
}

LST_TEST(eight_axes_tile)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = counted(c, LS_F32, LS_SHAPE(2, 1, 2, 1, 2, 1, 2, 1));
    ls_tensor *y = ls_tile(c, x, SIZES(2, 2, 2, 2, 2, 2, 2, 2));

    LST_CHECK(y != NULL && y->count == 4096);
    LST_CHECK(lst_at(ls_sum(c, y, NULL, 0, false), 0) == 120 * 256);
    lst_close(c, rt);
}

LST_TEST(pads_slices_and_joins_put_elements_where_they_belong)
{
    static const ls_dtype dtypes[] = {LS_I8, LS_F16, LS_F32, LS_I64};

    for (size_t i = 0; i < LSI_COUNT_OF(dtypes); i++) {
        const ls_dtype d = dtypes[i];
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        ls_tensor *x = counted(c, d, LS_SHAPE(2, 3));
        ls_tensor *y = counted(c, d, LS_SHAPE(2, 1));
        ls_tensor *z = counted(c, d, LS_SHAPE(2, 0));
        ls_tensor *xyz[] = {x, z, y};
        ls_tensor *pair[] = {x, ls_neg(c, x)};

        LST_CHECK(is_exactly(c, ls_pad(c, x, SIZES(1, 0, 0, 2), 9), d, LS_SHAPE(3, 5),
                             D(9, 9, 9, 9, 9, 0, 1, 2, 9, 9, 3, 4, 5, 9, 9)));
        LST_CHECK(is_exactly(c, ls_slice(c, x, SIZES(0, 1), SIZES(-1, 2)), d,
                             LS_SHAPE(2, 2), D(1, 2, 4, 5)));
        LST_CHECK(is_exactly(c, ls_slice(c, x, SIZES(1, 0), SIZES(1, -1)), d,
                             LS_SHAPE(1, 3), D(3, 4, 5)));
        LST_CHECK(is_exactly(c, ls_slice(c, x, SIZES(2, 3), SIZES(0, -1)), d,
                             LS_SHAPE(0, 0), NULL));
        LST_CHECK(is_exactly(c, ls_concat(c, xyz, 3, -1), d, LS_SHAPE(2, 4),
                             D(0, 1, 2, 0, 3, 4, 5, 1)));
        LST_CHECK(is_exactly(c, ls_stack(c, pair, 2, 0), d, LS_SHAPE(2, 2, 3),
                             D(0, 1, 2, 3, 4, 5, 0, -1, -2, -3, -4, -5)));
        LST_CHECK(is_exactly(c, ls_stack(c, pair, 2, -1), d, LS_SHAPE(2, 3, 2),
                             D(0, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5)));
        LST_CHECK(is_exactly(c, ls_pad(c, z, SIZES(0, 0, 1, 1), 3), d, LS_SHAPE(2, 2),
                             D(3, 3, 3, 3)));
        lst_close(c, rt);
    }
}

LST_TEST(a_split_undoes_a_concat)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = counted(c, LS_F32, LS_SHAPE(2, 4));
    ls_tensor *parts[3] = {NULL, NULL, NULL};
    double want[8];

    for (int axis = 0; axis < 2; axis++) {
        ls_split(c, x, axis == 0 ? SIZES(1, 0, 1) : SIZES(1, 0, 3), 3, axis - 2, parts);
        for (int i = 0; i < 8; i++) {
            want[i] = i;
        }
        LST_CHECK(parts[1] != NULL && parts[1]->count == 0);
        LST_CHECK(lst_holds(ls_concat(c, parts, 3, axis), LS_SHAPE(2, 4), want, 0));
    }
    lst_close(c, rt);
}

LST_TEST(strings_are_viewed_and_not_copied)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_string text[] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}};
    ls_tensor *x = ls_constant(c, LS_STRING, LS_SHAPE(6), text);
    ls_tensor *y =
        ls_slice(c, ls_reshape(c, x, LS_SHAPE(2, 3)), SIZES(1, 0), SIZES(1, -1));
    const ls_string *s = y->data;

    LST_CHECK(s[0].len == 1 && s[0].ptr[0] == 'd' && s[2].ptr[0] == 'f');
    LST_CHECK(ls_tile(c, x, SIZES(2)) == NULL);
    LST_STEP_FAILS(c, LS_UNIMPLEMENTED,
                   "tile: strings cannot be copied about: string (6,)");
    x = ls_constant(c, LS_STRING, LS_SHAPE(6), text);
    LST_CHECK(ls_concat(c, (ls_tensor *[]){x, x}, 2, 0) == NULL);
    LST_STEP_FAILS(c, LS_UNIMPLEMENTED, "concat: strings");
    lst_close(c, rt);
}

LST_TEST(mistakes_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const ls_shape s = LS_SHAPE(2, 3);
    ls_shape wide = LS_SHAPE(1, 1, 1, 1, 1, 1, 1, 1);
    ls_tensor *outs[2] = {NULL, NULL};

    LST_CHECK(ls_reshape(c, ZEROS(c, s), LS_SHAPE(4)) == NULL);
    LST_STEP_FAILS(
        c, LS_INVALID_ARGUMENT,
        "reshape: float32 (2, 3) has 6 elements, which do not fit the shape (4,)");
    LST_CHECK(ls_reshape(c, ZEROS(c, s), LS_SHAPE(-1, -1)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "(-1, -1)");
    LST_CHECK(ls_reshape(c, ZEROS(c, s), (ls_shape){9, {1}}) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "9 axes");
    LST_CHECK(ls_transpose(c, ZEROS(c, s), PERM(0, 0)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "transpose: (0, 0) is no permutation");
    LST_CHECK(ls_squeeze(c, ZEROS(c, s), PERM(0), 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "squeeze: axis 0 of float32 (2, 3) has the size 2");
    LST_CHECK(ls_squeeze(c, ZEROS(c, s), PERM(2), 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "squeeze: there is no axis 2");
    LST_CHECK(ls_expand_dims(c, ZEROS(c, s), 3) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "must lie between -3 and 2");
    LST_CHECK(ls_expand_dims(c, ZEROS(c, wide), 0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "all the 8 axes");
    LST_CHECK(ls_broadcast_to(c, ZEROS(c, s), LS_SHAPE(3)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "float32 (2, 3) does not broadcast to (3,)");
    LST_CHECK(ls_broadcast_to(c, ZEROS(c, s), LS_SHAPE(2, -3)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "broadcast_to");
    LST_CHECK(ls_tile(c, ZEROS(c, s), SIZES(1, -1)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "tile: axis 1 of float32 (2, 3)");
    LST_CHECK(ls_tile(c, ZEROS(c, s), SIZES(INT64_MAX, 1)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "tile");
    LST_CHECK(ls_pad(c, ZEROS(c, s), SIZES(0, 0, -1, 0), 0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "pad: axis 1");
    LST_CHECK(ls_pad(c, ZEROS(c, s), SIZES(INT64_MAX, 0, 0, 0), 0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "pad: axis 0");
    LST_CHECK(ls_slice(c, ZEROS(c, s), SIZES(0, 2), SIZES(1, 2)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "slice: axis 1 of float32 (2, 3)");
    LST_CHECK(ls_slice(c, ZEROS(c, s), SIZES(-1, 0), SIZES(1, 1)) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "slice: axis 0");
    ls_split(c, ZEROS(c, s), SIZES(1, 1), 2, 1, outs);
    LST_CHECK(outs[0] == NULL && outs[1] == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "split: the 2 sizes must be 0 or more and add up");
    ls_split(c, ZEROS(c, s), SIZES(1, 1), 2, 2, outs);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "split: there is no axis 2");
    lst_close(c, rt);
}

LST_TEST(mistakes_of_joins_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *two[2];

    two[0] = ZEROS(c, LS_SHAPE(2, 3));
    two[1] = ZEROS(c, LS_SHAPE(3, 3));
    LST_CHECK(ls_concat(c, two, 2, 1) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT,
                   "concat: operand 0 is float32 (2, 3), operand 1 is float32 (3, 3)");
    two[0] = ZEROS(c, LS_SHAPE(2, 3));
    two[1] = ZEROS(c, LS_SHAPE(3, 3));
    LST_CHECK(ls_stack(c, two, 2, 0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "stack: operand 0");
    two[0] = ls_constant_f32(c, 1);
    two[1] = ls_constant_f32(c, 2);
    LST_CHECK(ls_concat(c, two, 2, 0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "see ls_stack() for scalars");
    two[0] = ZEROS(c, LS_SHAPE(2));
    two[1] = ls_constant(c, LS_I32, LS_SHAPE(2), NULL);
    LST_CHECK(ls_concat(c, two, 2, 0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "operand 1 is int32 (2,)");
    LST_CHECK(ls_stack(c, (ls_tensor *[]){ZEROS(c, LS_SHAPE(2))}, 1, 2) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "between -2 and 1");
    LST_CHECK(ls_concat(c, NULL, 0, 0) == NULL);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "concat: takes at least 1");
    lst_close(c, rt);
}

static ls_tensor *reshape(ls_context *c, ls_tensor *x)
{
    return ls_reshape(c, x, LS_SHAPE(6, 4));
}

static ls_tensor *transpose(ls_context *c, ls_tensor *x)
{
    return ls_transpose(c, x, PERM(2, 0, 1));
}

static ls_tensor *broadcast(ls_context *c, ls_tensor *x)
{
    return ls_broadcast_to(c, ls_slice(c, x, SIZES(0, 0, 0), SIZES(2, 1, 4)),
                           LS_SHAPE(3, 2, 5, 4));
}

static ls_tensor *broadcast_whole(ls_context *c, ls_tensor *x)
{
    return ls_broadcast_to(c, x, LS_SHAPE(2, 2, 3, 4));
}

static ls_tensor *tile(ls_context *c, ls_tensor *x)
{
    return ls_tile(c, x, SIZES(3, 1, 2));
}

static ls_tensor *pad(ls_context *c, ls_tensor *x)
{
    return ls_pad(c, x, SIZES(1, 2, 0, 0, 0, 3), 5);
}

static ls_tensor *slice(ls_context *c, ls_tensor *x)
{
    return ls_slice(c, x, SIZES(1, 0, 1), SIZES(-1, 2, 2));
}

static ls_tensor *squeeze(ls_context *c, ls_tensor *x)
{
    return ls_squeeze(c, ls_reshape(c, x, LS_SHAPE(2, 1, 12)), NULL, 0);
}

static ls_tensor *expand_dims(ls_context *c, ls_tensor *x)
{
    return ls_expand_dims(c, x, 1);
}

static ls_tensor *concat(ls_context *c, ls_tensor *x)
{
    return ls_concat(c, (ls_tensor *[]){x, lsi_ones_like(c, x), x}, 3, 1);
}

static ls_tensor *stack(ls_context *c, ls_tensor *x)
{
    return ls_stack(c, (ls_tensor *[]){lsi_ones_like(c, x), x, x}, 3, 1);
}

LST_TEST(gradients_agree_with_differences)
{
    // The last operation of each is the one that is noted and checked.
    static ls_tensor *(*const doors[])(ls_context * c, ls_tensor * x) = {
        reshape, transpose, broadcast, broadcast_whole, tile,        pad,
        slice,   squeeze,   concat,    stack,           expand_dims, ls_identity};

    for (size_t i = 0; i < LSI_COUNT_OF(doors); i++) {
        ls_runtime *rt;
        ls_context *c = lst_open(&rt);
        uint64_t seed = 21;
        ls_tensor *x = lst_random_f64(c, LS_SHAPE(2, 3, 4), -1, 1, &seed);
        lst_call call;

        lst_watch(c, x, &call);
        (void)doors[i](c, x);
        lst_check_row(c, &call, 1);
        lst_close(c, rt);
    }
}

LST_TEST(stop_gradient_records_nothing)
{
    LST_CHECK(lsi_op_stop_gradient.gradient == NULL);
}

LST_MAIN(LST_CASE(shapes_change_without_a_move),
         LST_CASE(empty_and_scalar_tensors_reshape),
         LST_CASE(an_empty_tensor_reshapes_as_in_tensorflow),
         LST_CASE(transposition_moves_every_element_whatever_its_size_and_the_tiles),
         LST_CASE(two_threads_transpose_like_one),
         LST_CASE(negative_axes_transpose_and_null_reverses),
         LST_CASE(elements_repeat_by_broadcasting_and_tiling), LST_CASE(eight_axes_tile),
         LST_CASE(pads_slices_and_joins_put_elements_where_they_belong),
         LST_CASE(a_split_undoes_a_concat), LST_CASE(strings_are_viewed_and_not_copied),
         LST_CASE(mistakes_are_named), LST_CASE(mistakes_of_joins_are_named),
         LST_CASE(gradients_agree_with_differences),
         LST_CASE(stop_gradient_records_nothing))
