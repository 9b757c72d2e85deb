/* Arithmetic on two operands, with broadcasting. */
#include "kernel/ref/broadcast_rows.h"
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

/* Integers come widened to 64 bits; unsigned ones as the same bits. */
typedef double (*float_fn)(double a, double b);
typedef int64_t (*int_fn)(int64_t a, int64_t b, bool is_signed);

LSI_INLINE ls_status map_as(ls_op_call *k, ls_dtype dtype, float_fn f, int_fn fi)
{
    lsi_broadcast_rows r = lsi_broadcast_rows_of(k);
    const void *a = k->in[0]->data;
    const void *b = k->in[1]->data;
    void *y = k->out[0]->data;
    int64_t at = 0;

    do {
        int64_t ia = r.at[0];
        int64_t ib = r.at[1];

        for (int64_t i = 0; i < r.n; i++, ia += r.step[0], ib += r.step[1]) {
            if (lsi_is_float(dtype)) {
                lsi_put_float(
                    y, dtype, at + i,
                    f(lsi_get_float(a, dtype, ia), lsi_get_float(b, dtype, ib)));
            } else {
                lsi_put_int(y, dtype, at + i,
                            fi(lsi_get_int(a, dtype, ia), lsi_get_int(b, dtype, ib),
                               lsi_is_signed(dtype)));
            }
        }
        at += r.n;
    } while (lsi_next_row(&r));
    return LS_OK;
}

LSI_INLINE ls_status map_float(ls_op_call *k, float_fn f)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        return map_as(k, LS_##D, f, NULL);
        LSI_FLOATS(EACH)
#undef EACH
    default:
        return lsi_ref_refuse(k);
    }
}

LSI_INLINE ls_status map_pairs(ls_op_call *k, float_fn f, int_fn fi)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        return map_as(k, LS_##D, NULL, fi);
        LSI_INTS(EACH)
#undef EACH
    default:
        return map_float(k, f);
    }
}

static inline double add_float(double a, double b)
{
    return a + b;
}

static inline int64_t add_int(int64_t a, int64_t b, bool is_signed)
{
    (void)is_signed;
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

ls_status lsi_ref_add(ls_op_call *k)
{
    return map_pairs(k, add_float, add_int);
}

static inline double sub_float(double a, double b)
{
    return a - b;
}

static inline int64_t sub_int(int64_t a, int64_t b, bool is_signed)
{
    (void)is_signed;
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

ls_status lsi_ref_sub(ls_op_call *k)
{
    return map_pairs(k, sub_float, sub_int);
}

static inline double mul_float(double a, double b)
{
    return a * b;
}

static inline int64_t mul_int(int64_t a, int64_t b, bool is_signed)
{
    (void)is_signed;
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

ls_status lsi_ref_mul(ls_op_call *k)
{
    return map_pairs(k, mul_float, mul_int);
}

static inline double div_float(double a, double b)
{
    return a / b;
}

/* Integers divide as floats: of 8 and 16 bits as float32, else as float64. */
#define EACH(D, T, is_signed)                                                            \
    static void div_##D(ls_op_call *k)                                                   \
    {                                                                                    \
        if (sizeof(T) <= 2) {                                                            \
            LSI_EACH_ELEMENT(k, T, float, (float)((double)*pa / (double)*pb));           \
        } else {                                                                         \
            LSI_EACH_ELEMENT(k, T, double, (double)*pa / (double)*pb);                   \
        }                                                                                \
    }
LSI_INTS(EACH)
#undef EACH

static ls_status div_int(ls_op_call *k)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        div_##D(k);                                                                      \
        return LS_OK;
        LSI_INTS(EACH)
#undef EACH
    default:
        return lsi_ref_refuse(k);
    }
}

ls_status lsi_ref_div(ls_op_call *k)
{
    return lsi_dtype_is_float((ls_dtype)k->in[0]->dtype) ? map_float(k, div_float)
                                                         : div_int(k);
}

static ls_status check_divisor(ls_op_call *k)
{
    const ls_tensor *b = k->in[1];
    const ls_dtype dtype = (ls_dtype)b->dtype;

    if (!lsi_dtype_is_int(dtype)) {
        return LS_OK;
    }
    for (int64_t i = 0; i < b->count; i++) {
        if (lsi_get_int(b->data, dtype, i) == 0) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "element %lld of the divisor is 0; integers cannot be "
                              "divided by zero",
                              (long long)i);
        }
    }
    return LS_OK;
}

static ls_status check_exponent(ls_op_call *k)
{
    const ls_tensor *b = k->in[1];
    const ls_dtype dtype = (ls_dtype)b->dtype;

    for (int64_t i = 0; i < b->count && lsi_is_signed(dtype); i++) {
        if (lsi_get_int(b->data, dtype, i) < 0) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "element %lld of the exponent is %lld; integers need 0 or "
                              "more: use ls_cast() to a floating dtype",
                              (long long)i, (long long)lsi_get_int(b->data, dtype, i));
        }
    }
    return LS_OK;
}

/* As TensorFlow, the quotient is rounded to the dtype before it is floored. */
static inline double floordiv_double(double a, double b)
{
    return floor(a / b);
}

static inline double floordiv_single(double a, double b)
{
    return floor((double)(float)(a / b));
}

static inline int64_t floordiv_int(int64_t a, int64_t b, bool is_signed)
{
    if (!is_signed) {
        return (int64_t)((uint64_t)a / (uint64_t)b);
    }
    if (b == -1) {
        return (int64_t)(0U - (uint64_t)a); // the lowest number has no opposite
    }
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

ls_status lsi_ref_floordiv(ls_op_call *k)
{
    const ls_status st = check_divisor(k);

    if (st != LS_OK) {
        return st;
    }
    if (k->in[0]->dtype == LS_F64) {
        return map_float(k, floordiv_double);
    }
    return map_pairs(k, floordiv_single, floordiv_int);
}

static inline double mod_float(double a, double b)
{
    const double rest = fmod(a, b);

    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline int64_t mod_int(int64_t a, int64_t b, bool is_signed)
{
    int64_t rest = 0;

    if (!is_signed) {
        return (int64_t)((uint64_t)a % (uint64_t)b);
    }
    if (b == -1) {
        return 0;
    }
    rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

ls_status lsi_ref_mod(ls_op_call *k)
{
    const ls_status st = check_divisor(k);

    return st != LS_OK ? st : map_pairs(k, mod_float, mod_int);
}

/* Wraps around, as repeated multiplication does. */
static inline int64_t pow_int(int64_t a, int64_t b, bool is_signed)
{
    uint64_t result = 1;
    uint64_t base = (uint64_t)a;

    (void)is_signed;
    for (uint64_t left = (uint64_t)b; left != 0; left >>= 1) {
        if ((left & 1) != 0) {
            result *= base;
        }
        base *= base;
    }
    return (int64_t)result;
}

ls_status lsi_ref_pow(ls_op_call *k)
{
    const ls_status st = check_exponent(k);

    return st != LS_OK ? st : map_pairs(k, pow, pow_int);
}

static inline double maximum_float(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static inline int64_t maximum_int(int64_t a, int64_t b, bool is_signed)
{
    return lsi_less_int(a, b, is_signed) ? b : a;
}

ls_status lsi_ref_maximum(ls_op_call *k)
{
    return map_pairs(k, maximum_float, maximum_int);
}

static inline double minimum_float(double a, double b)
{
    return a < b || isnan(a) ? a : b;
}

static inline int64_t minimum_int(int64_t a, int64_t b, bool is_signed)
{
    return lsi_less_int(b, a, is_signed) ? b : a;
}

ls_status lsi_ref_minimum(ls_op_call *k)
{
    return map_pairs(k, minimum_float, minimum_int);
}
