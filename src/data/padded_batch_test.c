/* padded_batch: shapes, paddings, strings, saving, and failing allocations. */
#include "data/data_test.h"

/* n, n times: elements of unequal length. */
static ls_dataset *grow(ls_value *x, void *user)
{
    const int64_t n = *(const int64_t *)ls_tensor_data(ls_value_as_tensor(x));

    (void)user;
    return ls_dataset_batch(ls_dataset_repeat(ls_dataset_tensors(x), n), n);
}

/* [1] [2 2] [3 3 3] [4 4 4 4], known to be vectors. */
static ls_dataset *vectors(int64_t n)
{
    ls_interleave_options o = LS_INTERLEAVE_OPTIONS_INIT;
    ls_dataset *d = NULL;

    LST_OK(ls_spec_tensor(LS_I64, 1, (const int64_t[]){-1}, &o.spec, NULL));
    d = ls_dataset_flat_map(ls_dataset_range(1, n + 1, 1), grow, NULL, &o);
    ls_spec_release(o.spec);
    return d;
}

static ls_spec *shape_of(int ndim, int64_t a, int64_t b)
{
    ls_spec *s = NULL;

    LST_OK(ls_spec_tensor(LS_I64, ndim, (const int64_t[]){a, b}, &s, NULL));
    return s;
}

static ls_tensor *scalar(ls_dtype dtype, const void *x)
{
    ls_tensor *t = NULL;

    LST_OK(ls_tensor_create(NULL, dtype, LS_SCALAR, x, &t, NULL));
    return t;
}

/* One component, padded to `dim` with `pad`. */
static ls_dataset *padded(ls_dataset *d, int64_t size, int64_t dim, int64_t pad)
{
    ls_spec *shape = shape_of(1, dim, 0);
    ls_tensor *with = scalar(LS_I64, &pad);

    d = ls_dataset_padded_batch(d, size, &shape, &with, 1, false);
    ls_spec_release(shape);
    ls_tensor_release(with);
    return d;
}

LST_TEST(D90_elements_are_padded_to_the_longest_or_to_a_size)
{
    LST_CHECK(lst_gives(ls_dataset_padded_batch(vectors(4), 2, NULL, NULL, 0, false),
                        "[[1 0] [2 2]] [[3 3 3 0] [4 4 4 4]]"));
    LST_CHECK(lst_gives(padded(vectors(4), 2, 5, -1), "[[1 -1 -1 -1 -1] [2 2 -1 -1 -1]] "
                                                      "[[3 3 3 -1 -1] [4 4 4 4 -1]]"));
    LST_CHECK(lst_gives(padded(vectors(4), 2, 3, 0), "[[1 0 0] [2 2 0]] !DATA_LOSS"));
    LST_CHECK(lst_gives(padded(vectors(6), 2, 4, 0), // later elements do not change it
                        "[[1 0 0 0] [2 2 0 0]] [[3 3 3 0] [4 4 4 4]] !DATA_LOSS"));
}

LST_TEST(the_last_padded_batch_may_be_short_or_left_out)
{
    LST_CHECK(lst_gives(ls_dataset_padded_batch(vectors(3), 2, NULL, NULL, 0, false),
                        "[[1 0] [2 2]] [[3 3 3]]"));
    LST_CHECK(lst_gives(ls_dataset_padded_batch(vectors(3), 2, NULL, NULL, 0, true),
                        "[[1 0] [2 2]]"));
    LST_CHECK(
        lst_gives(ls_dataset_padded_batch(vectors(0), 2, NULL, NULL, 0, false), ""));
}

LST_TEST(matrices_go_into_the_corner)
{
    ls_dataset *d = NULL;
    ls_spec *shape = shape_of(2, 2, 3);
    int64_t nine = 9;
    ls_tensor *pad = scalar(LS_I64, &nine);

    d = ls_dataset_padded_batch(padded(vectors(2), 2, 2, 7), 1, &shape, &pad, 1, true);
    LST_CHECK(lst_spec_is(d, "int64 (1, 2, 3)"));
    LST_CHECK(lst_gives(d, "[[[1 7 9] [2 2 9]]]"));
    ls_spec_release(shape);
    ls_tensor_release(pad);
}

LST_TEST(strings_are_padded_with_empty_ones)
{
    static const ls_string s[] = {{"a", 1}, {"bc", 2}};
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_spec *shape = NULL;
    ls_dataset *d = NULL;

    LST_OK(ls_tensor_create(NULL, LS_STRING, LS_SHAPE(2), s, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    LST_OK(ls_spec_tensor(LS_STRING, 1, (const int64_t[]){3}, &shape, NULL));
    d = ls_dataset_padded_batch(ls_dataset_tensors(v), 1, &shape, NULL, 1, false);
    LST_CHECK(lst_gives(d, "[[a bc ]]"));
    ls_spec_release(shape);
    ls_value_release(v);
    ls_tensor_release(t);
}

LST_TEST(components_are_padded_each_by_its_own)
{
    ls_spec *shapes[2] = {shape_of(0, 0, 0), shape_of(1, -1, 0)};
    ls_dataset *d = ls_dataset_padded_batch(ls_dataset_enumerate(vectors(2), 5), 2,
                                            shapes, NULL, 2, false);

    LST_CHECK(lst_gives(d, "([5 6],[[1 0] [2 2]])"));
    ls_spec_release(shapes[0]);
    ls_spec_release(shapes[1]);
}

LST_TEST(shapes_and_paddings_that_do_not_go_together_are_refused)
{
    ls_spec *shapes[2] = {shape_of(2, 4, 4), shape_of(1, 3, 0)};
    const float one = 1;
    ls_tensor *pad = scalar(LS_F32, &one);

    LST_CHECK(lst_code(ls_dataset_padded_batch(vectors(2), 0, NULL, NULL, 0, false)) ==
              LS_INVALID_ARGUMENT);
    LST_CHECK(lst_code(ls_dataset_padded_batch(vectors(2), 2, shapes, NULL, 1, false)) ==
              LS_INVALID_ARGUMENT); // another rank
    LST_CHECK(lst_code(ls_dataset_padded_batch(vectors(2), 2, shapes, NULL, 2, false)) ==
              LS_INVALID_ARGUMENT); // one component only
    LST_CHECK(lst_code(ls_dataset_padded_batch(vectors(2), 2, NULL, &pad, 1, false)) ==
              LS_INVALID_ARGUMENT); // another dtype
    LST_CHECK(lst_code(ls_dataset_padded_batch(ls_dataset_batch_exact(lst_range(8), 4), 2,
                                               &shapes[1], NULL, 1, false)) ==
              LS_INVALID_ARGUMENT); // known to be larger
    ls_spec_release(shapes[0]);
    ls_spec_release(shapes[1]);
    ls_tensor_release(pad);
}

LST_TEST(a_padded_batch_knows_its_size_and_shape)
{
    ls_dataset *d = ls_dataset_padded_batch(ls_dataset_batch_exact(lst_range(8), 4), 3,
                                            NULL, NULL, 0, false);

    LST_CHECK(lsi_dataset_batch_size(d) == 3);
    LST_CHECK(ls_dataset_cardinality(d) == 1);
    LST_CHECK(ls_spec_dim(ls_dataset_spec(d), 0) == -1);
    LST_CHECK(ls_spec_dim(ls_dataset_spec(d), 1) == 4); // a known size stays known
    ls_dataset_release(d);
}

static ls_dataset *saved(void)
{
    return padded(vectors(7), 2, -1, 3);
}

LST_TEST(padded_batches_continue_where_they_were_saved)
{
    LST_SAVES(saved);
}

static ls_status walk(ls_error *err)
{
    return lst_read(ls_dataset_padded_batch(ls_dataset_batch(lst_range(3), 2), 2, NULL,
                                            NULL, 0, false),
                    1, err);
}

LST_TEST(no_allocation_that_fails_in_a_padded_batch_leaks)
{
    lst_every_allocation(walk);
}

LST_MAIN(LST_CASE(D90_elements_are_padded_to_the_longest_or_to_a_size),
         LST_CASE(the_last_padded_batch_may_be_short_or_left_out),
         LST_CASE(matrices_go_into_the_corner),
         LST_CASE(strings_are_padded_with_empty_ones),
         LST_CASE(components_are_padded_each_by_its_own),
         LST_CASE(shapes_and_paddings_that_do_not_go_together_are_refused),
         LST_CASE(a_padded_batch_knows_its_size_and_shape),
         LST_CASE(padded_batches_continue_where_they_were_saved),
         LST_CASE(no_allocation_that_fails_in_a_padded_batch_leaks))
