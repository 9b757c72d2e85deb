/* attention and self_attention: values, gradients, masks, arguments. */
#include "ls_row_check.h"

struct operands {
    ls_tensor *q, *k, *v;
};

static struct operands operands_of(ls_context *c, ls_shape q, ls_shape k)
{
    uint64_t seed = 21;
    struct operands o;

    o.q = lst_random_f64(c, q, -1, 1, &seed);
    o.k = lst_random_f64(c, k, -1, 1, &seed);
    o.v = lst_random_f64(c, k, -1, 1, &seed);
    return o;
}

/* The same with a matrix of scores, as the books write it. */
static ls_tensor *by_the_book(ls_context *c, struct operands o, double scale, bool causal)
{
    ls_tensor *s =
        ls_mul(c, ls_matmul_t(c, o.q, o.k, false, true), lsi_scalar(c, LS_F64, scale));
    const int64_t m = ls_tensor_dim(s, -1);

    for (int64_t i = 0; causal && i < s->count; i++) {
        if (i % m > i / m % m) {
            ((double *)s->data)[i] = -INFINITY;
        }
    }
    return ls_matmul(c, ls_softmax(c, s), o.v);
}

static bool same(const ls_tensor *a, const ls_tensor *b)
{
    return a != NULL && b != NULL && lst_holds(a, ls_tensor_shape(b), b->data, 1e-12);
}

LST_TEST(attention_is_the_softmax_of_scores_times_the_values)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    const struct operands square =
        operands_of(c, LS_SHAPE(2, 3, 4, 5), LS_SHAPE(2, 3, 4, 5));
    const struct operands other = operands_of(c, LS_SHAPE(2, 4, 5), LS_SHAPE(2, 7, 5));
    const struct operands flat = operands_of(c, LS_SHAPE(1, 1), LS_SHAPE(1, 1));

    LST_CHECK(same(ls_attention(c, square.q, square.k, square.v, 0.5, false),
                   by_the_book(c, square, 0.5, false)));
    LST_CHECK(same(ls_attention(c, square.q, square.k, square.v, 0.5, true),
                   by_the_book(c, square, 0.5, true)));
    LST_CHECK(same(ls_attention(c, other.q, other.k, other.v, 0.25, false),
                   by_the_book(c, other, 0.25, false)));
    LST_CHECK(same(ls_attention(c, flat.q, flat.k, flat.v, 0, true), flat.v));
    // Scale 0 is 1/sqrt(d), which the attributes hold as a float.
    LST_CHECK(same(ls_attention(c, other.q, other.k, other.v, 0, false),
                   by_the_book(c, other, (double)(float)(1 / sqrt(5)), false)));
    lst_close(c, rt);
}

/* Part `part` of each row of qkv [b,n,3*width], as [b,heads,n,d]. */
static ls_tensor *part_of(ls_context *c, ls_tensor *qkv, int64_t part, int64_t heads)
{
    static const int perm[] = {0, 2, 1, 3};
    const int64_t b = ls_tensor_dim(qkv, 0), n = ls_tensor_dim(qkv, 1);
    const int64_t width = ls_tensor_dim(qkv, 2) / 3;
    const int64_t begin[] = {0, 0, part * width}, size[] = {b, n, width};
    ls_tensor *x = ls_slice(c, qkv, begin, size);

    return ls_transpose(c, ls_reshape(c, x, LS_SHAPE(b, n, heads, width / heads)), perm);
}

/* Self-attention with every head cut out and put back by hand. */
static ls_tensor *by_hand(ls_context *c, ls_tensor *qkv, int64_t heads, double scale,
                          bool causal)
{
    static const int perm[] = {0, 2, 1, 3};
    const int64_t b = ls_tensor_dim(qkv, 0), n = ls_tensor_dim(qkv, 1);
    ls_tensor *y = ls_attention(c, part_of(c, qkv, 0, heads), part_of(c, qkv, 1, heads),
                                part_of(c, qkv, 2, heads), scale, causal);

    return ls_reshape(c, ls_transpose(c, y, perm),
                      LS_SHAPE(b, n, ls_tensor_dim(qkv, 2) / 3));
}

LST_TEST(self_attention_is_attention_over_heads_side_by_side)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    uint64_t seed = 4;

    for (int64_t heads = 1; heads <= 3; heads++) {
        ls_tensor *qkv = lst_random_f64(c, LS_SHAPE(2, 5, 3 * heads * 4), -1, 1, &seed);

        LST_CHECK(same(ls_self_attention(c, qkv, (int)heads, 0.7, false),
                       by_hand(c, qkv, heads, 0.7, false)));
        LST_CHECK(same(ls_self_attention(c, qkv, (int)heads, 0, true),
                       by_hand(c, qkv, heads, 0, true)));
    }
    lst_close(c, rt);
}

LST_TEST(the_logarithm_of_each_sum_is_kept)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *in[3] = {F32(c, LS_SHAPE(2, 1), 1, 2), F32(c, LS_SHAPE(2, 1), 3, 4),
                        F32(c, LS_SHAPE(2, 1), 10, 20)};
    ls_tensor *outs[LSI_MAX_OUTPUTS] = {NULL};
    lsi_attention_attrs at = {1, true, 0};

    ls_op_apply(c, &lsi_op_attention, in, 3, &at, sizeof at, outs);
    LST_CHECK(lst_holds(outs[1], LS_SHAPE(2), D(3, log(exp(6) + exp(8))), 1e-6));
    LST_CHECK(outs[1] != NULL && outs[1]->dtype == LS_F32);
    LST_CHECK(lst_holds(outs[0], LS_SHAPE(2, 1),
                        D(10, (10 * exp(6) + 20 * exp(8)) / (exp(6) + exp(8))), 1e-6));
    for (size_t i = 0; i < 3; i++) {
        in[i] = ls_cast(c, in[i], LS_F16);
    }
    ls_op_apply(c, &lsi_op_attention, in, 3, &at, sizeof at, outs);
    LST_CHECK(outs[1] != NULL && outs[1]->dtype == LS_F32); // never a half
    LST_CHECK(outs[0] != NULL && outs[0]->dtype == LS_F16 && lst_at(outs[0], 0) == 10);
    lst_close(c, rt);
}

LST_TEST(empty_batches_and_no_keys_give_nothing_and_zeros)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    ls_tensor *e = ZEROS(c, LS_SHAPE(0, 2, 3)), *q = F32(c, LS_SHAPE(1, 2), 1, 2);
    ls_tensor *none = ZEROS(c, LS_SHAPE(0, 2)), *thin = ZEROS(c, LS_SHAPE(2, 0));

    LST_CHECK(lst_holds(ls_attention(c, e, e, e, 0, true), LS_SHAPE(0, 2, 3), NULL, 0));
    LST_CHECK(
        lst_holds(ls_attention(c, q, none, none, 0, false), LS_SHAPE(1, 2), D(0, 0), 0));
    LST_CHECK(
        lst_holds(ls_attention(c, thin, thin, thin, 0, false), LS_SHAPE(2, 0), NULL, 0));
    lst_close(c, rt);
}

LST_TEST(gradients_of_attention_agree_with_differences)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    for (int causal = 0; causal < 2; causal++) {
        const struct operands o = operands_of(
            c, LS_SHAPE(2, 3, 2), causal != 0 ? LS_SHAPE(2, 3, 2) : LS_SHAPE(2, 4, 2));
        lst_call call;

        lst_watch(c, o.q, &call);
        (void)ls_attention(c, o.q, o.k, o.v, 0.7, causal != 0);
        lst_check_row(c, &call, 1);
    }
    lst_close(c, rt);
}

/* Rows of one head: more than a kernel takes at a time, and no multiple of a vector. */
enum { ROWS = 300, WIDTH = 11, LATE = 290 };

/* The operands of causal attention and its gradient, and what they give. */
struct causal {
    ls_tensor *in[6]; /* q, k, v, out, lse, g */
    ls_tensor *d[3];  /* of q, k, v */
};

/* Operand `bad` (-1: none) has one element that is `with`, in row `row`. */
static struct causal run_causal(ls_context *c, bool self, int bad, int64_t row,
                                float with)
{
    const int64_t wide = self ? 3 * WIDTH : WIDTH;
    const lsi_attention_attrs at = {0.3F, true, self ? 1 : 0};
    ls_tensor *in[6], *out[LSI_MAX_OUTPUTS] = {NULL};
    struct causal r = {{NULL}, {NULL}};
    const size_t n = self ? 1 : 3;
    uint64_t seed = 8;

    for (size_t i = 0; i < n; i++) {
        in[i] = ls_cast(c, lst_random_f64(c, LS_SHAPE(ROWS, wide), -1, 1, &seed), LS_F32);
    }
    r.in[5] = ls_cast(c, lst_random_f64(c, LS_SHAPE(ROWS, WIDTH), -1, 1, &seed), LS_F32);
    if (bad == 5) {
        ((float *)r.in[5]->data)[row * WIDTH + 3] = with;
    } else if (bad >= 0) {
        ((float *)in[self ? 0 : bad]->data)[row * wide + (self ? bad * WIDTH : 0) + 3] =
            with;
    }
    ls_op_apply(c, self ? &lsi_op_self_attention : &lsi_op_attention, in, n, &at,
                sizeof at, out);
    r.in[3] = in[n] = out[0];
    r.in[4] = in[n + 1] = out[1];
    in[n + 2] = r.in[5];
    ls_op_apply(c, self ? &lsi_op_self_attention_grad : &lsi_op_attention_grad, in, n + 3,
                &at, sizeof at, r.d);
    for (size_t i = 0; self && r.d[0] != NULL && i < 3; i++) {
        // One tensor holds all three side by side.
        r.d[2 - i] = ls_slice(c, r.d[0], ((int64_t[]){0, (int64_t)(2 - i) * WIDTH}),
                              ((int64_t[]){ROWS, WIDTH}));
    }
    return r;
}

/* Rows first .. end-1 hold the same bits. */
static bool same_rows(const ls_tensor *a, const ls_tensor *b, int64_t first, int64_t end)
{
    return a != NULL && b != NULL &&
           memcmp((const float *)a->data + first * WIDTH,
                  (const float *)b->data + first * WIDTH,
                  (size_t)((end - first) * WIDTH) * sizeof(float)) == 0;
}

static bool are_finite(const ls_tensor *t, int64_t row)
{
    for (int64_t i = row * WIDTH; t != NULL && i < (row + 1) * WIDTH; i++) {
        if (!isfinite(((const float *)t->data)[i])) {
            return false;
        }
    }
    return true;
}

/* Queries, keys, values and gradients of hidden rows are not finite. */
static void check_hidden(ls_context *c, bool self, float with)
{
    const struct causal plain = run_causal(c, self, -1, 0, 0);

    for (int bad = 0; bad < 3; bad++) {
        const struct causal r = run_causal(c, self, bad, LATE, with);

        LST_CHECK(same_rows(r.in[3], plain.in[3], 0, LATE));
        LST_CHECK(same_rows(r.d[0], plain.d[0], 0, LATE));
        LST_CHECK(!are_finite(r.d[0], LATE)); // who sees it is not spared
    }
    LST_CHECK(!are_finite(run_causal(c, self, 2, LATE, with).in[3], ROWS - 1));
    for (int bad = 0; bad <= 5; bad += 5) { // of early rows: keys after them
        const struct causal r = run_causal(c, self, bad, 5, with);

        LST_CHECK(same_rows(r.d[1], plain.d[1], 6, ROWS));
        LST_CHECK(same_rows(r.d[2], plain.d[2], 6, ROWS));
        LST_CHECK(!are_finite(r.d[1], 5) && !are_finite(r.d[bad == 0 ? 1 : 2], 0));
    }
}

LST_TEST(a_causal_row_depends_on_no_later_one_whatever_it_holds)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);

    for (int isa = LSI_ISA_REF; isa <= (int)lsi_isa_best(); isa++) {
        ls_runtime_device(rt, 0)->isa = (lsi_isa)isa;
        for (int self = 0; self < 2; self++) {
            check_hidden(c, self != 0, NAN);
            check_hidden(c, self != 0, INFINITY);
            check_hidden(c, self != 0, -INFINITY);
            LST_CHECK(ls_context_finish(c, NULL) == LS_OK);
        }
    }
    lst_close(c, rt);
}

LST_TEST(a_failed_allocation_fails_the_step_and_leaks_nothing)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    int failed = 0;

    for (int64_t n = 1; n < 100; n++) {
        const struct operands o = operands_of(c, LS_SHAPE(2, 3, 2), LS_SHAPE(2, 3, 2));
        const lsi_attention_attrs at = {1, false, 0};
        ls_tensor *in[6] = {o.q, o.k, o.v, NULL, NULL, o.q};
        ls_tensor *outs[LSI_MAX_OUTPUTS] = {NULL};
        ls_error err = LS_ERROR_INIT;
        ls_status st;

        (void)lsi_alloc_fail_at(n);
        ls_op_apply(c, &lsi_op_attention, in, 3, &at, sizeof at, outs);
        in[3] = outs[0];
        in[4] = outs[1];
        ls_op_apply(c, &lsi_op_attention_grad, in, 6, &at, sizeof at, outs);
        (void)lsi_alloc_fail_at(0);
        st = ls_context_finish(c, &err);
        if (st == LS_OK) {
            break;
        }
        LST_CHECK(st == LS_RESOURCE_EXHAUSTED);
        failed++;
    }
    LST_CHECK(failed >= 2); // the scratch of each kernel at least
    lst_close(c, rt);
}

LST_TEST(wrong_operands_are_named)
{
    ls_runtime *rt;
    ls_context *c = lst_open(&rt);
    lsi_attention_attrs at = {1, false, 0};
    ls_tensor *in[6];

#define Q(...) ZEROS(c, LS_SHAPE(__VA_ARGS__))
    (void)ls_attention(c, Q(2, 3), Q(4, 5), Q(4, 5), 0, false);
    LST_STEP_FAILS(
        c, LS_INVALID_ARGUMENT,
        "attention: queries float32 (2, 3), keys float32 (4, 5), values float32 "
        "(4, 5)");
    (void)ls_attention(c, Q(2, 3), Q(4, 3), Q(5, 3), 0, false);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "values float32 (5, 3)");
    (void)ls_attention(c, Q(3), Q(3), Q(3), 0, false);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "they must be [..., n, d]");
    (void)ls_attention(c, Q(2, 2, 3), Q(3, 2, 3), Q(3, 2, 3), 0, false);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "equal before the last two axes");
    (void)ls_attention(c, Q(2, 3), Q(4, 3), Q(4, 3), 0, true);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "a key for each query, not 4 for 2");
    (void)ls_attention(c, Q(2, 3), (ls_constant)(c, LS_F64, LS_SHAPE(2, 3), NULL),
                       Q(2, 3), 0, false);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "the dtypes differ");
    (void)ls_attention(c, (ls_constant)(c, LS_I32, LS_SHAPE(2, 3), NULL),
                       (ls_constant)(c, LS_I32, LS_SHAPE(2, 3), NULL),
                       (ls_constant)(c, LS_I32, LS_SHAPE(2, 3), NULL), 0, false);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "needs a floating dtype");
    for (size_t i = 0; i < 6; i++) {
        in[i] = Q(2, 3);
    }
    (void)ls_op_apply1(c, &lsi_op_attention_grad, in, 6, &at, sizeof at);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "sums float32 (2, 3), gradient");
    (void)ls_self_attention(c, Q(2, 10), 2, 0, false);
    LST_STEP_FAILS(
        c, LS_INVALID_ARGUMENT,
        "self_attention: float32 (2, 10) with 2 heads: it must be [..., n, 3 * "
        "2 * d]");
    (void)ls_self_attention(c, Q(2, 12), 0, 0, false);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "0 heads: there must be at least one");
    (void)ls_self_attention(c, NULL, 2, 0, false);
    LST_STEP_FAILS(c, LS_INVALID_ARGUMENT, "input 0 is NULL");
    lst_close(c, rt);
}

LST_MAIN(LST_CASE(attention_is_the_softmax_of_scores_times_the_values),
         LST_CASE(self_attention_is_attention_over_heads_side_by_side),
         LST_CASE(the_logarithm_of_each_sum_is_kept),
         LST_CASE(empty_batches_and_no_keys_give_nothing_and_zeros),
         LST_CASE(gradients_of_attention_agree_with_differences),
         LST_CASE(a_causal_row_depends_on_no_later_one_whatever_it_holds),
         LST_CASE(a_failed_allocation_fails_the_step_and_leaks_nothing),
         LST_CASE(wrong_operands_are_named))
