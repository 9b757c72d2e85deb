/*
 * Conversion between any two numeric dtypes and bool. Elements go through a block of the
 * widest type of their kind, so that the pairs need no code each: double holds every
 * float, int64 and uint64 every integer.
 */
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

enum { BLOCK = 256 };

/* What the block holds. */
typedef enum kind { REAL, SIGNED, UNSIGNED } kind;

typedef union block {
    double real[BLOCK];
    int64_t whole[BLOCK];
    uint64_t natural[BLOCK];
} block;

static kind kind_of(ls_dtype dtype)
{
    if (lsi_dtype_is_float(dtype)) {
        return REAL;
    }
    switch (dtype) {
    case LS_I8:
    case LS_I16:
    case LS_I32:
    case LS_I64:
        return SIGNED;
    default:
        return UNSIGNED; // bool too, as 0 and 1
    }
}

static void load_real(ls_dtype dtype, const void *from, int64_t at, int n, double *to)
{
    switch (dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        for (int i = 0; i < n; i++) {                                                    \
            to[i] = lsi_get_float(from, LS_##D, at + i);                                 \
        }                                                                                \
        break;
        LSI_FLOATS(EACH)
#undef EACH
    default:
        break;
    }
}

/* Sign-extends or zero-extends; either way the same 64 bits serve `whole`, `natural`. */
static void load_int(ls_dtype dtype, const void *from, int64_t at, int n, uint64_t *to)
{
    switch (dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        for (int i = 0; i < n; i++) {                                                    \
            to[i] = (uint64_t)lsi_get_int(from, LS_##D, at + i);                         \
        }                                                                                \
        break;
        LSI_INTS(EACH)
#undef EACH
    default: // bool
        for (int i = 0; i < n; i++) {
            to[i] = ((const uint8_t *)from)[at + i] != 0;
        }
        break;
    }
}

/* Toward zero, held at the ends of int64 (uint64): C leaves what is outside undefined. */
static int64_t to_signed(double v)
{
    if (isnan(v)) {
        return 0;
    }
    if (v >= 9223372036854775808.0) {
        return INT64_MAX;
    }
    return v < -9223372036854775808.0 ? INT64_MIN : (int64_t)v;
}

static uint64_t to_unsigned(double v)
{
    if (isnan(v) || v <= 0) {
        return 0;
    }
    return v >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)v;
}

static int64_t hold_signed(double v, int bits)
{
    const int64_t top = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
    const int64_t whole = to_signed(v);

    return LSI_MAX(LSI_MIN(whole, top), -top - 1);
}

static uint64_t hold_unsigned(double v, int bits)
{
    const uint64_t top = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    const uint64_t natural = to_unsigned(v);

    return LSI_MIN(natural, top);
}

#define EACH(D, T, is_signed)                                                            \
    static void real_to_##D(const double *from, int n, T *to)                            \
    {                                                                                    \
        for (int i = 0; i < n; i++) {                                                    \
            to[i] = (is_signed) ? (T)hold_signed(from[i], 8 * (int)sizeof(T))            \
                                : (T)hold_unsigned(from[i], 8 * (int)sizeof(T));         \
        }                                                                                \
    }
LSI_INTS(EACH)
#undef EACH

static void real_to_int(ls_dtype dtype, const double *from, int n, void *to, int64_t at)
{
    switch (dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        real_to_##D(from, n, (T *)to + at);                                              \
        break;
        LSI_INTS(EACH)
#undef EACH
    default: // bool; NaN is not 0
        for (int i = 0; i < n; i++) {
            ((uint8_t *)to)[at + i] = from[i] != 0;
        }
        break;
    }
}

static void real_to_real(ls_dtype dtype, const double *from, int n, void *to, int64_t at)
{
    switch (dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        for (int i = 0; i < n; i++) {                                                    \
            lsi_put_float(to, LS_##D, at + i, from[i]);                                  \
        }                                                                                \
        break;
        LSI_FLOATS(EACH)
#undef EACH
    default:
        break;
    }
}

/* Integers wrap around, as in C. */
static void int_to_int(ls_dtype dtype, const uint64_t *from, int n, void *to, int64_t at)
{
    switch (dtype) {
#define EACH(D, T, is_signed)                                                            \
    case LS_##D:                                                                         \
        for (int i = 0; i < n; i++) {                                                    \
            lsi_put_int(to, LS_##D, at + i, (int64_t)from[i]);                           \
        }                                                                                \
        break;
        LSI_INTS(EACH)
#undef EACH
    default: // bool
        for (int i = 0; i < n; i++) {
            ((uint8_t *)to)[at + i] = from[i] != 0;
        }
        break;
    }
}

/* Rounded once: an int64 does not fit a double, so float32 must not take that detour. */
static void int_to_real(ls_dtype dtype, const block *from, kind held, int n, void *to,
                        int64_t at)
{
    const bool natural = held == UNSIGNED;

    if (dtype == LS_F64) {
        for (int i = 0; i < n; i++) {
            ((double *)to)[at + i] =
                natural ? (double)from->natural[i] : (double)from->whole[i];
        }
        return;
    }
    for (int i = 0; i < n; i++) {
        const float v = natural ? (float)from->natural[i] : (float)from->whole[i];

        if (dtype == LS_F32) {
            ((float *)to)[at + i] = v;
        } else {
            ((uint16_t *)to)[at + i] =
                dtype == LS_F16 ? lsi_f32_to_f16(v) : lsi_f32_to_bf16(v);
        }
    }
}

static void convert(ls_dtype from, const void *x, ls_dtype to, void *y, int64_t begin,
                    int64_t end)
{
    const kind held = kind_of(from);
    const bool real = lsi_dtype_is_float(to);
    block b = {{0}};

    for (int64_t at = begin; at < end; at += BLOCK) {
        const int n = (int)LSI_MIN(end - at, (int64_t)BLOCK);

        if (held == REAL) {
            load_real(from, x, at, n, b.real);
            if (real) {
                real_to_real(to, b.real, n, y, at);
            } else {
                real_to_int(to, b.real, n, y, at);
            }
        } else {
            load_int(from, x, at, n, b.natural);
            if (real) {
                int_to_real(to, &b, held, n, y, at);
            } else {
                int_to_int(to, b.natural, n, y, at);
            }
        }
    }
}

static void cast_share(void *arg, int part, int parts)
{
    const ls_op_call *k = arg;
    int64_t begin = 0;
    int64_t end = 0;

    lsi_team_share(k->out[0]->count, BLOCK, part, parts, &begin, &end);
    convert((ls_dtype)k->in[0]->dtype, k->in[0]->data, (ls_dtype)k->out[0]->dtype,
            k->out[0]->data, begin, end);
}

ls_status lsi_ref_cast(ls_op_call *k)
{
    lsi_team_run(k->team, lsi_parts(k, k->out[0]->count), cast_share, k);
    return LS_OK;
}

void lsi_ref_fill(ls_dtype dtype, void *to, int64_t n, double value)
{
    double same[BLOCK];
    const bool real = lsi_dtype_is_float(dtype);

    for (int i = 0; i < BLOCK; i++) {
        same[i] = value;
    }
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int m = (int)LSI_MIN(n - at, (int64_t)BLOCK);

        if (real) {
            real_to_real(dtype, same, m, to, at);
        } else {
            real_to_int(dtype, same, m, to, at);
        }
    }
}
