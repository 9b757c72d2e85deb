/* Sums of gradients: what they cost, and that they hold what recorded additions hold. */
#include "grad/journal.h"
#include "ls_row_check.h"

#include "lockstep/variable.h"

enum { USES = 64, SIDE = 256 };

static size_t held(ls_context *c)
{
    uint64_t allocs = 0;
    size_t bytes = 0;

    lsi_device_pool_stats(c->device, &allocs, &bytes);
    return bytes;
}

static ls_tensor *ramp(ls_context *c, ls_dtype dtype, ls_shape shape, uint64_t seed)
{
    return ls_cast(c, lst_random_f64(c, shape, -1, 1, &seed), dtype);
}

LST_TEST(a_weight_used_many_times_takes_the_memory_of_a_few_gradients)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *w = ZEROS(c, LS_SHAPE(SIDE, SIDE)), *h = ZEROS(c, LS_SHAPE(1, SIDE));
    ls_tape *tape = ls_tape_open(c, NULL);
    size_t before = 0;

    ls_tape_watch(c, tape, w);
    for (int i = 0; i < USES; i++) {
        h = ls_tanh(c, ls_matmul(c, h, w));
    }
    before = held(c);
    LST_CHECK(ls_gradient(c, tape, h, w) != NULL);
    LST_CHECK(held(c) - before < (size_t)8 * SIDE * SIDE * sizeof(float));
    lst_close(c, rt);
}

LST_TEST(the_parts_of_a_split_share_one_gradient)
{
    enum { PART = 4096 };
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = ZEROS(c, LS_SHAPE(USES * PART)), *parts[USES], *g;
    ls_tape *tape = ls_tape_open(c, NULL);
    int64_t sizes[USES];
    size_t before = 0;

    for (int i = 0; i < USES; i++) {
        sizes[i] = PART;
    }
    ls_tape_watch(c, tape, x);
    ls_split(c, x, sizes, USES, 0, parts);
    for (int i = 0; i < USES; i++) {
        parts[i] = ls_mul(c, parts[i], ls_constant_f32(c, (float)i));
    }
    before = held(c);
    g = ls_gradient(c, tape, ls_concat(c, parts, USES, 0), x);
    for (int64_t i = 0; i < USES * PART; i += 1000) {
        LST_CHECK(lst_at(g, i) == (double)(i / PART));
    }
    // The target, its ones, the parts' gradients, the sum: each takes 5/4 of its size.
    // Another block would be a part padded to the whole.
    LST_CHECK(held(c) - before < (size_t)(11 * USES * PART / 2) * sizeof(float));
    lst_close(c, rt);
}

LST_TEST(rows_gathered_many_times_are_joined_once)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *table = ZEROS(c, LS_SHAPE(SIDE, SIDE)), *h = NULL, *g;
    ls_tape *tape = ls_tape_open(c, NULL);
    const ls_tensor *values = NULL, *indices = NULL;
    size_t before = 0;

    ls_tape_watch(c, tape, table);
    for (int32_t i = 0; i < USES; i++) {
        ls_tensor *at = ls_constant(c, LS_I32, LS_SHAPE(1), &i);
        ls_tensor *row = ls_gather(c, table, at, 0);

        h = h == NULL ? row : ls_add(c, h, row);
    }
    before = held(c);
    g = ls_gradient(c, tape, h, table);
    LST_CHECK(ls_tensor_slices(g, &values, &indices));
    LST_CHECK(ls_tensor_count(indices) == USES && ls_tensor_dtype(indices) == LS_I64);
    // Backwards, as the walk meets them; each with a row of ones.
    LST_CHECK(indices != NULL && ((const int64_t *)indices->data)[0] == USES - 1);
    LST_CHECK(lst_at(values, USES * SIDE - 1) == 1);
    LST_CHECK(held(c) - before < (size_t)8 * USES * SIDE * sizeof(float));
    lst_close(c, rt);
}

/* Something of everything: dense sums, views, one gradient for two, rows, slices. */
static ls_tensor *mixture(ls_context *c, ls_tensor *w, ls_tensor *table)
{
    const ls_dtype dtype = ls_tensor_dtype(w);
    ls_tensor *h = ls_add(c, w, w), *at, *row, *y;
    int32_t index[3] = {2, 0, 2};

    for (int64_t i = 0; i < 3; i++) {
        const int64_t begin[] = {i, i}, size[] = {3, 2};

        h = ls_add(c, ls_tanh(c, ls_matmul(c, h, w)), ls_reshape(c, h, LS_SHAPE(6, 6)));
        y = ls_slice(c, w, begin, size);
        h = ls_mul(c, h, ls_sum(c, y, NULL, 0, false));
        index[1] = (int32_t)i;
        at = ls_constant(c, LS_I32, LS_SHAPE(3), index);
        row = ls_sum(c, ls_gather(c, table, at, 0), (const int[]){0}, 1, false);
        h = ls_add(c, h, row);
        if (i == 1) { // dense, between sparse ones
            h = ls_matmul(c, h, table);
        }
    }
    return ls_mul(c, ls_transpose(c, h, NULL), lsi_scalar(c, dtype, 0.5));
}

/* Gradients of the mixture; `recorded`: another tape looks on, so that all is recorded.
 */
static void gradients(ls_context *c, ls_dtype dtype, bool recorded, ls_tensor **grads)
{
    ls_tensor *w = ramp(c, dtype, LS_SHAPE(6, 6), 3);
    ls_tensor *table = ramp(c, dtype, LS_SHAPE(6, 6), 4), *of[2] = {w, table}, *y;
    ls_tape *outer = recorded ? ls_tape_open(c, NULL) : NULL;
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, w);
    ls_tape_watch(c, tape, table);
    if (recorded) {
        ls_tape_watch(c, outer, w);
        ls_tape_watch(c, outer, table);
    }
    y = mixture(c, w, table);
    ls_gradients(c, tape, &y, NULL, 1, of, 2, grads);
    for (int i = 0; i < 2; i++) {
        grads[i] = grads[i] == NULL ? NULL : lsi_dense(c, grads[i]);
    }
}

LST_TEST(sums_in_place_hold_the_bits_of_recorded_ones)
{
    static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_BF16};

    for (int isa = LSI_ISA_REF; isa <= (int)lsi_isa_best(); isa++) {
        for (size_t d = 0; d < LSI_COUNT_OF(dtypes); d++) {
            ls_runtime *rt;
            ls_context *c = lst_open(&rt);
            ls_tensor *a[2], *b[2];

            c->device->isa = (lsi_isa)isa;
            gradients(c, dtypes[d], false, a);
            gradients(c, dtypes[d], true, b);
            for (int i = 0; i < 2; i++) {
                LST_CHECK(a[i] != NULL && b[i] != NULL &&
                          memcmp(a[i]->data, b[i]->data, ls_tensor_bytes(a[i])) == 0);
            }
            lst_close(c, rt);
        }
    }
}

LST_TEST(an_intermediate_gradient_is_what_it_was_when_it_was_passed_on)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *x = F32(c, LS_SHAPE(2), 1, 2), *y, *z, *of[2], *grads[2];
    ls_tape *tape = ls_tape_open(c, NULL);

    ls_tape_watch(c, tape, x);
    y = ls_mul(c, x, F32(c, LS_SHAPE(2), 3, 4));
    // y's gradient goes on to x as it is, and more is added to x alone.
    z = ls_add(c, ls_add(c, ls_square(c, y), y), ls_mul(c, x, x));
    of[0] = x;
    of[1] = y;
    ls_gradients(c, tape, &z, NULL, 1, of, 2, grads);
    LST_CHECK(lst_holds(grads[1], LS_SHAPE(2), D(7, 17), 1e-6));
    LST_CHECK(lst_holds(grads[0], LS_SHAPE(2), D(3 * 7 + 2, 4 * 17 + 4), 1e-6));
    lst_close(c, rt);
}

LST_TEST(a_variable_asked_for_twice_is_answered_twice)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_variable *v[40] = {NULL}, *asked[41];
    ls_tensor *grads[41], *sum = NULL;
    ls_tape *tape = ls_tape_open(c, NULL);

    for (int i = 0; i < 40; i++) {
        ls_tensor *t = F32(c, LS_SHAPE(1), (float)i);

        LST_OK(ls_variable_create(t, NULL, &v[i], NULL));
        asked[39 - i] = v[i]; // another order than they are read in
        t = ls_square(c, ls_read(c, v[i]));
        sum = sum == NULL ? t : ls_add(c, sum, t);
    }
    asked[40] = v[7];
    ls_variable_gradients(c, tape, sum, asked, 41, grads);
    for (int i = 0; i < 41; i++) {
        LST_CHECK(lst_at(grads[i], 0) == 2 * (i == 40 ? 7 : 39 - i));
    }
    lst_close(c, rt);
    for (int i = 0; i < 40; i++) {
        ls_variable_release(v[i]);
    }
}

LST_TEST(a_gradient_without_memory_fails_and_leaks_nothing)
{
    ls_status st = LS_RESOURCE_EXHAUSTED;
    int failed = 0;

    for (int64_t n = 1; n < 1000 && st == LS_RESOURCE_EXHAUSTED; n++) {
        ls_runtime *rt; // a new one each time: what it holds already is not asked for
        ls_context *c = lst_open(&rt);
        ls_error err = LS_ERROR_INIT;
        ls_tensor *grads[2] = {NULL, NULL};

        (void)lsi_alloc_fail_at(n);
        gradients(c, LS_F64, n % 2 != 0, grads);
        (void)lsi_alloc_fail_at(0);
        st = ls_context_finish(c, &err);
        LST_CHECK(st == LS_OK || st == LS_RESOURCE_EXHAUSTED);
        LST_CHECK(st == LS_OK || err.message[0] != '\0');
        failed += st != LS_OK;
        lst_close(c, rt);
    }
    LST_CHECK(st == LS_OK && failed > 50);
}

LST_MAIN(LST_CASE(a_weight_used_many_times_takes_the_memory_of_a_few_gradients),
         LST_CASE(the_parts_of_a_split_share_one_gradient),
         LST_CASE(rows_gathered_many_times_are_joined_once),
         LST_CASE(sums_in_place_hold_the_bits_of_recorded_ones),
         LST_CASE(an_intermediate_gradient_is_what_it_was_when_it_was_passed_on),
         LST_CASE(a_variable_asked_for_twice_is_answered_twice),
         LST_CASE(a_gradient_without_memory_fails_and_leaks_nothing))
