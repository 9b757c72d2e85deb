/* Comparisons, logic and choice, with broadcasting. */
#include "kernel/ref/broadcast_rows.h"
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

/* Integers come widened to 64 bits; unsigned ones as the same bits. */
typedef bool (*float_test)(double a, double b);
typedef bool (*int_test)(int64_t a, int64_t b, bool is_signed);

LSI_INLINE ls_status test_as(ls_op_call *k, ls_dtype dtype, float_test f, int_test fi)
{
    lsi_broadcast_rows r = lsi_broadcast_rows_of(k);
    const void *a = k->in[0]->data;
    const void *b = k->in[1]->data;
    uint8_t *y = k->out[0]->data;

    do {
        int64_t ia = r.at[0];
        int64_t ib = r.at[1];

        for (int64_t i = 0; i < r.n; i++, ia += r.step[0], ib += r.step[1]) {
            y[i] = lsi_is_float(dtype)
                       ? f(lsi_get_float(a, dtype, ia), lsi_get_float(b, dtype, ib))
                       : fi(lsi_get_int(a, dtype, ia), lsi_get_int(b, dtype, ib),
                            lsi_is_signed(dtype));
        }
        y += r.n;
    } while (lsi_next_row(&r));
    return LS_OK;
}

LSI_INLINE ls_status test_pairs(ls_op_call *k, float_test f, int_test fi)
{
    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        return test_as(k, LS_##D, f, NULL);
        LSI_FLOATS(EACH)
#undef EACH
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        return test_as(k, LS_##D, NULL, fi);
        LSI_INTS(EACH)
#undef EACH
    case LS_BOOL:
        return test_as(k, LS_BOOL, NULL, fi);
    default:
        return lsi_ref_refuse(k);
    }
}

static inline bool same_text(const ls_string *a, const ls_string *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->ptr, b->ptr, a->len) == 0);
}

static ls_status test_string(ls_op_call *k, bool wanted)
{
    LSI_EACH_ELEMENT(k, ls_string, uint8_t, same_text(pa, pb) == wanted);
    return LS_OK;
}

static inline bool equal_float(double a, double b)
{
    return a == b;
}

static inline bool equal_int(int64_t a, int64_t b, bool is_signed)
{
    (void)is_signed;
    return a == b;
}

ls_status lsi_ref_equal(ls_op_call *k)
{
    return k->in[0]->dtype == LS_STRING ? test_string(k, true)
                                        : test_pairs(k, equal_float, equal_int);
}

static inline bool not_equal_float(double a, double b)
{
    return a != b;
}

static inline bool not_equal_int(int64_t a, int64_t b, bool is_signed)
{
    (void)is_signed;
    return a != b;
}

ls_status lsi_ref_not_equal(ls_op_call *k)
{
    return k->in[0]->dtype == LS_STRING ? test_string(k, false)
                                        : test_pairs(k, not_equal_float, not_equal_int);
}

static inline bool less_float(double a, double b)
{
    return a < b;
}

ls_status lsi_ref_less(ls_op_call *k)
{
    return test_pairs(k, less_float, lsi_less_int);
}

static inline bool less_equal_float(double a, double b)
{
    return a <= b;
}

static inline bool less_equal_int(int64_t a, int64_t b, bool is_signed)
{
    return !lsi_less_int(b, a, is_signed);
}

ls_status lsi_ref_less_equal(ls_op_call *k)
{
    return test_pairs(k, less_equal_float, less_equal_int);
}

static inline bool greater_float(double a, double b)
{
    return a > b;
}

static inline bool greater_int(int64_t a, int64_t b, bool is_signed)
{
    return lsi_less_int(b, a, is_signed);
}

ls_status lsi_ref_greater(ls_op_call *k)
{
    return test_pairs(k, greater_float, greater_int);
}

static inline bool greater_equal_float(double a, double b)
{
    return a >= b;
}

static inline bool greater_equal_int(int64_t a, int64_t b, bool is_signed)
{
    return !lsi_less_int(a, b, is_signed);
}

ls_status lsi_ref_greater_equal(ls_op_call *k)
{
    return test_pairs(k, greater_equal_float, greater_equal_int);
}

ls_status lsi_ref_logical_and(ls_op_call *k)
{
    LSI_EACH_ELEMENT(k, uint8_t, uint8_t, *pa != 0 && *pb != 0);
    return LS_OK;
}

ls_status lsi_ref_logical_or(ls_op_call *k)
{
    LSI_EACH_ELEMENT(k, uint8_t, uint8_t, *pa != 0 || *pb != 0);
    return LS_OK;
}

/* Chooses by the bits of an element: only their number matters. */
#define EACH(T)                                                                          \
    static void choose_##T(ls_op_call *k)                                                \
    {                                                                                    \
        lsi_broadcast_rows r = lsi_broadcast_rows_of(k);                                 \
        const uint8_t *cond = k->in[0]->data;                                            \
        const T *a = k->in[1]->data;                                                     \
        const T *b = k->in[2]->data;                                                     \
        T *y = k->out[0]->data;                                                          \
        do {                                                                             \
            for (int64_t i = 0; i < r.n; i++) {                                          \
                y[i] = cond[r.at[0] + i * r.step[0]] != 0 ? a[r.at[1] + i * r.step[1]]   \
                                                          : b[r.at[2] + i * r.step[2]];  \
            }                                                                            \
            y += r.n;                                                                    \
        } while (lsi_next_row(&r));                                                      \
    }
EACH(uint8_t)
EACH(uint16_t)
EACH(uint32_t)
EACH(uint64_t)
#undef EACH

ls_status lsi_ref_where(ls_op_call *k)
{
    switch (ls_dtype_size((ls_dtype)k->out[0]->dtype)) {
    case 1:
        choose_uint8_t(k);
        return LS_OK;
    case 2:
        choose_uint16_t(k);
        return LS_OK;
    case 4:
        choose_uint32_t(k);
        return LS_OK;
    case 8:
        choose_uint64_t(k);
        return LS_OK;
    default:
        return ls_op_fail(k, LS_UNIMPLEMENTED, "no kernel for %s",
                          ls_dtype_name((ls_dtype)k->out[0]->dtype));
    }
}
