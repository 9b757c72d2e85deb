/* Specs: their text, their limits, and what two of them have in common. */
#include "data/data_test.h"

static ls_spec *tensor_spec(ls_dtype dtype, int ndim, const int64_t *dims)
{
    ls_spec *s = NULL;

    LST_OK(ls_spec_tensor(dtype, ndim, dims, &s, NULL));
    return s;
}

static bool reads(ls_spec *s, const char *want)
{
    lst_text t = {{0}, 0};

    t.n = ls_spec_text(s, t.s, sizeof t.s);
    LST_CHECK(t.n == strlen(want));
    ls_spec_release(s);
    return lst_same(&t, want);
}

LST_TEST(a_spec_prints_what_it_knows)
{
    const int64_t dims[] = {-1, 3};
    ls_spec *items[] = {tensor_spec(LS_F32, 2, dims), tensor_spec(LS_STRING, -1, NULL)};
    ls_spec *s = NULL, *sparse = NULL, *window = NULL;
    char small[8];

    LST_OK(ls_spec_dict((const char *[]){"z", "b"}, items, 2, &s, NULL));
    LST_CHECK(strcmp(ls_spec_key(s, 0), "b") == 0);
    LST_CHECK(ls_spec_child(s, 1) == items[0] && ls_spec_child(s, 2) == NULL);
    LST_CHECK(ls_spec_text(s, small, sizeof small) == 47);
    LST_CHECK(strcmp(small, "{'b': s") == 0);
    LST_CHECK(reads(s, "{'b': string <unknown>, 'z': float32 (None, 3)}"));
    LST_OK(ls_spec_sparse(LS_I64, 1, dims, &sparse, NULL));
    LST_OK(ls_spec_dataset(items[0], &window, NULL));
    ls_spec *both[] = {sparse, window};
    LST_OK(ls_spec_tuple(both, 2, &s, NULL));
    LST_CHECK(reads(s, "(sparse int64 (None,), dataset of float32 (None, 3))"));
    for (int i = 0; i < 2; i++) {
        ls_spec_release(items[i]);
        ls_spec_release(both[i]);
    }
}

LST_TEST(a_spec_that_cannot_be_is_refused)
{
    const int64_t bad[] = {-2};
    ls_spec *s = NULL, *item = tensor_spec(LS_I32, 0, NULL);
    ls_spec *twice[] = {item, item}, *hole[] = {item, NULL};
    ls_error err = LS_ERROR_INIT;

    LST_FAILS(ls_spec_tensor((ls_dtype)77, 0, NULL, &s, &err), LS_INVALID_ARGUMENT, err,
              "77");
    LST_FAILS(ls_spec_tensor(LS_I32, 9, bad, &s, &err), LS_INVALID_ARGUMENT, err, "9");
    LST_FAILS(ls_spec_tensor(LS_I32, 1, bad, &s, &err), LS_INVALID_ARGUMENT, err, "-2");
    LST_FAILS(ls_spec_tensor(LS_I32, 1, NULL, &s, &err), LS_INVALID_ARGUMENT, err,
              "dims");
    LST_FAILS(ls_spec_dict((const char *[]){"a", "a"}, twice, 2, &s, &err),
              LS_INVALID_ARGUMENT, err, "'a' occurs twice");
    LST_FAILS(ls_spec_tuple(hole, 2, &s, &err), LS_INVALID_ARGUMENT, err, "item 1");
    LST_FAILS(ls_spec_tuple(twice, 2, NULL, &err), LS_INVALID_ARGUMENT, err, "out");
    ls_spec_release(item);
}

LST_TEST(what_two_specs_have_in_common)
{
    const int64_t a[] = {2, 3}, b[] = {2, 4}, c[] = {2};
    ls_spec *x = tensor_spec(LS_F32, 2, a), *y = tensor_spec(LS_F32, 2, b);
    ls_spec *z = tensor_spec(LS_F32, 1, c), *i = tensor_spec(LS_I32, 2, a), *s = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(lsi_spec_common(x, y, &s, &err));
    LST_CHECK(reads(s, "float32 (2, None)"));
    LST_OK(lsi_spec_common(x, z, &s, &err));
    LST_CHECK(reads(s, "float32 <unknown>"));
    LST_FAILS(lsi_spec_common(x, i, &s, &err), LS_INVALID_ARGUMENT, err, "int32 (2, 3)");
    LST_CHECK(ls_spec_equal(x, x) && !ls_spec_equal(x, y) && !ls_spec_equal(x, i));
    LST_CHECK(lsi_spec_rows(x) == 2);
    ls_spec_release(x);
    ls_spec_release(y);
    ls_spec_release(z);
    ls_spec_release(i);
}

LST_MAIN(LST_CASE(a_spec_prints_what_it_knows),
         LST_CASE(a_spec_that_cannot_be_is_refused),
         LST_CASE(what_two_specs_have_in_common))
