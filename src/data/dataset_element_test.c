/* Elements: literals, parts of batches, the memory of strings, sparse leaves. */
#include "data/data_test.h"
#include "data/sparse.h"

LST_TEST(literals_become_tensors_of_tensorflows_dtypes)
{
    ls_value *items[5] = {NULL}, *tuple = NULL;
    ls_dataset *d = NULL;

    LST_OK(ls_value_int(7, &items[0], NULL));
    LST_OK(ls_value_int(INT64_MAX, &items[1], NULL));
    LST_OK(ls_value_float(0.5, &items[2], NULL));
    LST_OK(ls_value_bool(true, &items[3], NULL));
    LST_OK(ls_value_string((ls_string){"abc", 3}, &items[4], NULL));
    LST_OK(ls_value_tuple(items, 5, &tuple, NULL));
    for (int i = 0; i < 5; i++) {
        ls_value_release(items[i]);
    }
    d = ls_dataset_tensors(tuple);
    ls_value_release(tuple);
    LST_CHECK(lst_spec_is(d, "(int32 (), int64 (), float32 (), bool (), string ())"));
    LST_CHECK(lst_gives(ls_dataset_batch(ls_dataset_repeat(d, 2), 2),
                        "([7 7],[9223372036854775807 9223372036854775807],[0.5 0.5],"
                        "[1 1],[abc abc])"));
    LST_OK(ls_value_none(&items[0], NULL));
    LST_CHECK(lst_code(ls_dataset_tensors(items[0])) == LS_INVALID_ARGUMENT);
    ls_value_release(items[0]);
}

static ls_tensor *numbers(int64_t rows, int64_t columns)
{
    ls_tensor *t = NULL;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(rows, columns), NULL, &t, NULL));
    return t;
}

LST_TEST(a_part_of_a_batch_is_a_view_of_it)
{
    ls_tensor *t = numbers(6, 40);
    ls_value *v = NULL, *part = NULL, *row = NULL;
    const char *base = ls_tensor_data(t);

    LST_OK(ls_value_tensor(t, &v, NULL));
    LST_OK(lsi_value_rows(v, 2, 5, NULL, &part, NULL));
    LST_OK(lsi_value_row(v, 3, NULL, &row, NULL));
    LST_CHECK((const char *)ls_tensor_data(ls_value_as_tensor(part)) ==
              base + (size_t)2 * 40 * sizeof(float));
    LST_CHECK((const char *)ls_tensor_data(ls_value_as_tensor(row)) ==
              base + (size_t)3 * 40 * sizeof(float));
    LST_CHECK(ls_tensor_ndim(ls_value_as_tensor(row)) == 1);
    ls_value_release(part);
    ls_value_release(row);
    LST_CHECK(lsi_value_row(v, 6, NULL, &row, NULL) == LS_INVALID_ARGUMENT);
    ls_value_release(v);
    ls_tensor_release(t);
}

/* Counts the releases of a buffer. */
static void ended(void *user)
{
    *(int *)user += 1;
}

LST_TEST(strings_are_not_copied_and_their_memory_lives_as_long_as_the_batch)
{
    static const char text[] = "onetwothree";
    const size_t begin[] = {0, 3, 6}, length[] = {3, 3, 5};
    ls_tensor *memory = NULL;
    ls_spec *spec = NULL;
    lsi_batch_rows *rows = NULL;
    ls_value *batch = NULL, *row = NULL;
    const ls_string *s = NULL;
    int ends = 0;

    LST_OK(ls_spec_tensor(LS_STRING, 0, NULL, &spec, NULL));
    LST_OK(ls_tensor_wrap(NULL, LS_U8, LS_SHAPE(11), text, ended, &ends, &memory, NULL));
    LST_OK(lsi_batch_rows_create(spec, 2, NULL, &rows, NULL)); // and grows
    for (int i = 0; i < 3; i++) {
        const ls_string one = {text + begin[i], length[i]};

        LST_OK(lsi_batch_rows_add_string(rows, one, memory->buffer, NULL));
    }
    LST_CHECK(lsi_batch_rows_count(rows) == 3);
    LST_OK(lsi_batch_rows_take(rows, &batch, NULL));
    ls_tensor_release(memory);
    LST_CHECK(ends == 0 && lsi_batch_rows_count(rows) == 0);
    s = ls_tensor_data(ls_value_as_tensor(batch));
    LST_CHECK(s[1].ptr == text + 3 && s[2].len == 5);
    LST_OK(lsi_value_row(batch, 2, NULL, &row, NULL));
    ls_value_release(batch);
    LST_CHECK(ends == 0); // a row keeps it as well
    ls_value_release(row);
    LST_CHECK(ends == 1);
    lsi_batch_rows_release(rows);
    ls_spec_release(spec);
}

LST_TEST(a_batch_of_slices_keeps_the_strings_of_the_tensor_they_came_from)
{
    static const ls_string text[] = {{"a", 1}, {"b", 1}, {"c", 1}};
    ls_tensor *t = NULL;
    ls_value *v = NULL;
    ls_dataset *d = NULL;
    ls_iterator *it = NULL;
    int ends = 0;

    LST_OK(ls_tensor_wrap(NULL, LS_STRING, LS_SHAPE(3), text, ended, &ends, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    d = ls_dataset_batch(lst_slices(v), 2);
    ls_tensor_release(t);
    LST_OK(ls_dataset_iterate(d, &it, NULL));
    LST_OK(ls_iterator_next(it, &v, NULL));
    ls_iterator_release(it);
    ls_dataset_release(d);
    LST_CHECK(ends == 0);
    ls_value_release(v);
    LST_CHECK(ends == 1);
}

LST_TEST(a_string_of_a_reader_keeps_the_block_it_lies_in)
{
    static const char text[] = "onetwo";
    ls_tensor *memory = NULL, *t = NULL;
    int ends = 0;

    LST_OK(ls_tensor_wrap(NULL, LS_U8, LS_SHAPE(6), text, ended, &ends, &memory, NULL));
    t = lsi_tensor_string((ls_string){text + 3, 3}, memory->buffer, NULL);
    ls_tensor_release(memory);
    LST_CHECK(ends == 0 && ((const ls_string *)ls_tensor_data(t))->ptr == text + 3);
    ls_tensor_release(t);
    LST_CHECK(ends == 1);
}

static ls_value *sparse(int64_t n, const int64_t *at, const int64_t *x, int64_t size)
{
    ls_tensor *indices = NULL, *values = NULL, *shape = NULL;
    ls_value *v = NULL;

    LST_OK(ls_tensor_create(NULL, LS_I64, LS_SHAPE(n, 1), at, &indices, NULL));
    LST_OK(ls_tensor_create(NULL, LS_I64, LS_SHAPE(n), x, &values, NULL));
    LST_OK(ls_tensor_create(NULL, LS_I64, LS_SHAPE(1), &size, &shape, NULL));
    LST_OK(lsi_sparse_value(indices, values, shape, &v, NULL));
    ls_tensor_release(indices);
    ls_tensor_release(values);
    ls_tensor_release(shape);
    return v;
}

LST_TEST(sparse_elements_are_stacked_and_taken_apart_again)
{
    const int64_t at[] = {0, 2}, x[] = {5, 6}, one[] = {1}, y[] = {7};
    ls_value *a = sparse(2, at, x, 3), *b = sparse(1, one, y, 4);
    ls_dataset *d = ls_dataset_tensors(a), *e = ls_dataset_tensors(b);

    ls_value_release(a);
    ls_value_release(b);
    d = ls_dataset_batch(ls_dataset_concatenate(d, e), 2);
    LST_CHECK(lst_spec_is(d, "sparse int64 (None, None)"));
    LST_CHECK(lst_epoch(d, "(indices:[[0 0] [0 2] [1 1]],values:[5 6 7],"
                           "dense_shape:[2 4])"));
    LST_CHECK(lst_epoch(d, "(indices:[[0 0] [0 2] [1 1]],values:[5 6 7],"
                           "dense_shape:[2 4])"));
    LST_CHECK(lst_gives(ls_dataset_unbatch(d),
                        "(indices:[[0] [2]],values:[5 6],dense_shape:[4]) "
                        "(indices:[[1]],values:[7],dense_shape:[4])"));
}

LST_MAIN(LST_CASE(literals_become_tensors_of_tensorflows_dtypes),
         LST_CASE(a_part_of_a_batch_is_a_view_of_it),
         LST_CASE(strings_are_not_copied_and_their_memory_lives_as_long_as_the_batch),
         LST_CASE(a_batch_of_slices_keeps_the_strings_of_the_tensor_they_came_from),
         LST_CASE(a_string_of_a_reader_keeps_the_block_it_lies_in),
         LST_CASE(sparse_elements_are_stacked_and_taken_apart_again))
