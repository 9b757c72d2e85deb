/* Arithmetic on two operands, with broadcasting. */
#include "kernel/ref/ref.h"
#include "kernel/ref/rows.h"
#include "kernel/ref/types.h"

#include <math.h>

/* Integers come widened to 64 bits; unsigned ones as the same bits. */
typedef double (*float_fn)(double a, double b);
typedef int64_t (*int_fn)(int64_t a, int64_t b, bool is_signed);

static ls_status refuse(ls_op_call *k)
{
    return ls_op_fail(k, LS_UNIMPLEMENTED, "no kernel for %s",
                      ls_dtype_name((ls_dtype)k->in[0]->dtype));
}

#define EACH(D, T)                                                                       \
    LSI_TEMPLATE void map_##D(ls_op_call *k, float_fn f)                                 \
    {                                                                                    \
        LSI_EACH_ELEMENT(k, T, T, LSI_PUT_##D(f(LSI_GET_##D(*pa), LSI_GET_##D(*pb))));   \
    }
LSI_FLOATS(EACH)
#undef EACH

LSI_TEMPLATE ls_status map_float(ls_op_call *k, float_fn f)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        map_##D(k, f);                                                                   \
        return LS_OK;
        LSI_FLOATS(EACH)
#undef EACH
    default:
        return refuse(k);
    }
}

#define EACH(D, T, is_signed)                                                            \
    LSI_TEMPLATE void map_##D(ls_op_call *k, int_fn f)                                   \
    {                                                                                    \
        LSI_EACH_ELEMENT(k, T, T, (T)f((int64_t)*pa, (int64_t)*pb, is_signed));          \
    }
LSI_INTS(EACH)
#undef EACH

LSI_TEMPLATE ls_status map_int(ls_op_call *k, int_fn f)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        map_##D(k, f);                                                                   \
        return LS_OK;
        LSI_INTS(EACH)
#undef EACH
    default:
        return refuse(k);
    }
}

LSI_TEMPLATE ls_status map(ls_op_call *k, float_fn f, int_fn fi)
{
    return lsi_dtype_is_float((ls_dtype)k->in[0]->dtype) ? map_float(k, f)
                                                         : map_int(k, fi);
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
    return map(k, add_float, add_int);
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
    return map(k, sub_float, sub_int);
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
    return map(k, mul_float, mul_int);
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
        return refuse(k);
    }
}

ls_status lsi_ref_div(ls_op_call *k)
{
    return lsi_dtype_is_float((ls_dtype)k->in[0]->dtype) ? map_float(k, div_float)
                                                         : div_int(k);
}

/* Element i of any integer dtype, widened; of floats 1, which every check lets pass. */
static int64_t integer_at(const ls_tensor *t, int64_t i)
{
    switch (t->dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        return (int64_t)((const T *)t->data)[i];
        LSI_INTS(EACH)
#undef EACH
    default:
        return 1;
    }
}

static ls_status check_divisor(ls_op_call *k)
{
    const ls_tensor *b = k->in[1];

    for (int64_t i = 0; i < b->count; i++) {
        if (integer_at(b, i) == 0) {
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

    for (int64_t i = 0; i < b->count && b->dtype != LS_U64; i++) {
        if (integer_at(b, i) < 0) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT,
                              "element %lld of the exponent is %lld; integers need 0 or "
                              "more: use ls_cast() to a floating dtype",
                              (long long)i, (long long)integer_at(b, i));
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
    return map(k, floordiv_single, floordiv_int);
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

    return st != LS_OK ? st : map(k, mod_float, mod_int);
}

static inline double pow_float(double a, double b)
{
    return pow(a, b);
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

    return st != LS_OK ? st : map(k, pow_float, pow_int);
}

static inline bool less_int(int64_t a, int64_t b, bool is_signed)
{
    return is_signed ? a < b : (uint64_t)a < (uint64_t)b;
}

static inline double maximum_float(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static inline int64_t maximum_int(int64_t a, int64_t b, bool is_signed)
{
    return less_int(a, b, is_signed) ? b : a;
}

ls_status lsi_ref_maximum(ls_op_call *k)
{
    return map(k, maximum_float, maximum_int);
}

static inline double minimum_float(double a, double b)
{
    return a < b || isnan(a) ? a : b;
}

static inline int64_t minimum_int(int64_t a, int64_t b, bool is_signed)
{
    return less_int(b, a, is_signed) ? b : a;
}

ls_status lsi_ref_minimum(ls_op_call *k)
{
    return map(k, minimum_float, minimum_int);
}
