/* A list of elements: order, structure, blocks, and failing allocations. */
#include "data/element_list.h"

#include "data/data_test.h"

enum { MANY = 10000 };

static ls_value *number(int64_t x)
{
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_OK(ls_tensor_create(NULL, LS_I64, LS_SCALAR, &x, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return v;
}

/* (x, [x + 0.5, x]) */
static ls_value *pair(int64_t x)
{
    const float floats[2] = {(float)x + 0.5F, (float)x};
    ls_value *items[2] = {number(x), NULL};
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_OK(ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), floats, &t, NULL));
    LST_OK(ls_value_tensor(t, &items[1], NULL));
    LST_OK(ls_value_tuple(items, 2, &v, NULL));
    ls_tensor_release(t);
    ls_value_release(items[0]);
    ls_value_release(items[1]);
    return v;
}

static lsi_element_list *list_of(ls_value *like)
{
    ls_spec *spec = NULL;
    lsi_element_list *s = NULL;

    LST_OK(lsi_spec_of(like, &spec, NULL));
    LST_OK(lsi_element_list_create(spec, &s, NULL));
    ls_spec_release(spec);
    return s;
}

/* Adds and releases `v`. */
static void put(lsi_element_list *s, ls_value *v)
{
    LST_OK(lsi_element_list_add(s, v, NULL));
    ls_value_release(v);
}

static lsi_element_list *pairs(int64_t n)
{
    ls_value *first = pair(0);
    lsi_element_list *s = list_of(first);

    ls_value_release(first);
    for (int64_t i = 0; i < n; i++) {
        put(s, pair(i));
    }
    LST_OK(lsi_element_list_seal(s, NULL));
    return s;
}

static bool is_pair(const lsi_element_list *s, size_t i, size_t *near)
{
    ls_value *v = NULL, *want = pair((int64_t)i);
    lst_text have = {{0}, 0}, text = {{0}, 0};

    LST_OK(lsi_element_list_get(s, i, near, NULL, &v, NULL));
    lst_put_value(&have, v);
    lst_put_value(&text, want);
    ls_value_release(v);
    ls_value_release(want);
    return strcmp(have.s, text.s) == 0;
}

LST_TEST(small_elements_come_back_in_any_order)
{
    lsi_element_list *s = pairs(MANY);
    uint64_t random = 1;
    size_t near = 0;

    LST_CHECK(lsi_element_list_count(s) == MANY);
    for (size_t i = 0; i < MANY; i++) {
        LST_CHECK(is_pair(s, i, &near));
    }
    for (int i = 0; i < 1000; i++) {
        LST_CHECK(is_pair(s, lst_random(&random) % MANY, &near));
    }
    lsi_element_list_release(s);
}

LST_TEST(a_list_that_was_sealed_goes_on)
{
    ls_value *first = number(0);
    lsi_element_list *s = list_of(first);
    lst_text t = {{0}, 0};
    size_t near = 0;

    ls_value_release(first);
    for (int64_t i = 0; i < 50; i++) {
        put(s, number(i));
        if (i % 7 == 0) {
            LST_OK(lsi_element_list_seal(s, NULL));
            LST_OK(lsi_element_list_seal(s, NULL)); // has no effect a second time
        }
    }
    LST_OK(lsi_element_list_seal(s, NULL));
    for (size_t i = 43; i < 50; i++) {
        ls_value *v = NULL;

        LST_OK(lsi_element_list_get(s, i, &near, NULL, &v, NULL));
        lst_put(&t, i > 43 ? " " : "");
        lst_put_value(&t, v);
        ls_value_release(v);
    }
    LST_CHECK(lst_same(&t, "43 44 45 46 47 48 49"));
    lsi_element_list_release(s);
}

LST_TEST(rows_of_several_blocks_are_one_batch)
{
    lsi_element_list *s = pairs(300);
    lsi_batch_rows *rows = NULL;
    ls_value *first = pair(0), *batch = NULL;
    ls_spec *spec = NULL;
    size_t near = 0;

    LST_OK(lsi_spec_of(first, &spec, NULL));
    LST_OK(lsi_batch_rows_create(spec, 250, NULL, &rows, NULL));
    LST_OK(lsi_element_list_rows(s, 30, 250, &near, rows, NULL));
    LST_OK(lsi_batch_rows_take(rows, &batch, NULL));
    const ls_tensor *numbers = ls_value_as_tensor(ls_value_child(batch, 0));
    LST_CHECK(ls_tensor_dim(numbers, 0) == 250);
    for (int64_t i = 0; i < 250; i++) {
        LST_CHECK(((const int64_t *)ls_tensor_data(numbers))[i] == 30 + i);
    }
    ls_value_release(batch);
    ls_value_release(first);
    ls_spec_release(spec);
    lsi_batch_rows_release(rows);
    lsi_element_list_release(s);
}

/* A spec does not tell lists from tuples, nor the order of a dict's keys. */
LST_TEST(elements_keep_the_structure_they_had)
{
    const char *const keys[2] = {"b", "a"};
    ls_value *items[2] = {number(1), number(2)};
    ls_value *all[4] = {NULL};
    size_t near = 0;
    lsi_element_list *s = NULL;

    LST_OK(ls_value_tuple(items, 2, &all[0], NULL));
    LST_OK(ls_value_list(items, 2, &all[1], NULL));
    LST_OK(ls_value_named_tuple("Point", keys, items, 2, &all[2], NULL));
    LST_OK(ls_value_tuple(items, 2, &all[3], NULL));
    s = list_of(all[0]);
    for (int i = 0; i < 4; i++) {
        LST_OK(lsi_element_list_add(s, all[i], NULL));
    }
    LST_OK(lsi_element_list_seal(s, NULL));
    for (size_t i = 0; i < 4; i++) {
        ls_value *v = NULL;

        LST_OK(lsi_element_list_get(s, i, &near, NULL, &v, NULL));
        LST_CHECK(ls_value_kind_of(v) == ls_value_kind_of(all[i]));
        LST_CHECK(ls_value_size(v) == 2);
        LST_CHECK((ls_value_key(v, 0) == NULL) == (ls_value_key(all[i], 0) == NULL));
        ls_value_release(v);
        ls_value_release(all[i]);
    }
    lsi_element_list_release(s);
    LST_OK(ls_value_dict(keys, items, 2, &all[0], NULL));
    s = list_of(all[0]);
    put(s, all[0]);
    LST_OK(lsi_element_list_seal(s, NULL));
    LST_OK(lsi_element_list_get(s, 0, &near, NULL, &all[1], NULL));
    LST_CHECK(strcmp(ls_value_key(all[1], 0), "b") == 0);
    ls_value_release(all[1]);
    lsi_element_list_release(s);
    ls_value_release(items[0]);
    ls_value_release(items[1]);
}

static ls_status fill(ls_error *err)
{
    ls_dataset *d = lst_range(0);
    lsi_element_list *s = NULL;
    ls_status st = ls_dataset_status(d, err);

    if (st == LS_OK) {
        st = lsi_element_list_create(d->spec, &s, err);
    }
    for (int64_t i = 0; i < 40 && st == LS_OK; i++) {
        ls_tensor *t = NULL;
        ls_value *v = NULL;

        st = ls_tensor_create(NULL, LS_I64, LS_SCALAR, &i, &t, err);
        if (st == LS_OK) {
            st = ls_value_tensor(t, &v, err);
        }
        if (st == LS_OK) {
            st = lsi_element_list_add(s, v, err);
        }
        ls_value_release(v);
        ls_tensor_release(t);
    }
    if (st == LS_OK) {
        st = lsi_element_list_seal(s, err);
    }
    if (st == LS_OK) {
        LST_CHECK(lsi_element_list_count(s) == 40);
    }
    lsi_element_list_release(s);
    ls_dataset_release(d);
    return st;
}

LST_TEST(a_list_without_memory_says_so)
{
    lst_every_allocation(fill);
}

LST_MAIN(LST_CASE(small_elements_come_back_in_any_order),
         LST_CASE(a_list_that_was_sealed_goes_on),
         LST_CASE(rows_of_several_blocks_are_one_batch),
         LST_CASE(elements_keep_the_structure_they_had),
         LST_CASE(a_list_without_memory_says_so))
