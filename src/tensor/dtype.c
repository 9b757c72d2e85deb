/* Dtypes: names, sizes, classes, and conversion of 16-bit floats. */
#include "tensor/tensor.h"

const char *ls_dtype_name(ls_dtype dtype)
{
    switch (dtype) {
#define CASE(name, text, number, size)                                                   \
    case LS_##name:                                                                      \
        return text;
        LS_DTYPE_MAP(CASE)
#undef CASE
    }
    return "?";
}

size_t ls_dtype_size(ls_dtype dtype)
{
    switch (dtype) {
#define CASE(name, text, number, size)                                                   \
    case LS_##name:                                                                      \
        return size;
        // NOLINTNEXTLINE(bugprone-branch-clone): a case a type; sizes repeat
        LS_DTYPE_MAP(CASE)
#undef CASE
    }
    return 0;
}

bool ls_dtype_from_name(const char *name, ls_dtype *out)
{
    if (name == NULL || out == NULL) {
        return false;
    }
#define TRY(constant, text, number, size)                                                \
    if (strcmp(name, text) == 0) {                                                       \
        *out = LS_##constant;                                                            \
        return true;                                                                     \
    }
    LS_DTYPE_MAP(TRY)
#undef TRY
    return false;
}

bool lsi_dtype_is_float(ls_dtype d)
{
    return d == LS_F32 || d == LS_F64 || d == LS_F16 || d == LS_BF16;
}

bool lsi_dtype_is_int(ls_dtype d)
{
    return ls_dtype_size(d) != 0 && !lsi_dtype_is_float(d) && d != LS_BOOL &&
           d != LS_STRING;
}

bool lsi_dtype_is_number(ls_dtype d)
{
    return lsi_dtype_is_float(d) || lsi_dtype_is_int(d);
}

static uint32_t bits_of(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

float lsi_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 0x1fu, fraction = h & 0x3ffu;

    if (exponent == 0x1f) { // infinity and NaN
        return float_of(sign | 0x7f800000u | (fraction << 13));
    }
    if (exponent == 0) { // zero and subnormal: fraction * 2^-24
        const float f = (float)fraction * 5.9604644775390625e-8f;
        return sign != 0 ? -f : f;
    }
    return float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
}

uint16_t lsi_f32_to_f16(float f)
{
    const uint32_t u = bits_of(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;

    if (a >= 0x7f800000u) { // infinity stays, a NaN stays quiet
        return (uint16_t)(sign | 0x7c00u | (a > 0x7f800000u ? 0x200u : 0u));
    }
    if (a >= 0x477ff000u) { // rounds past the largest
        return (uint16_t)(sign | 0x7c00u);
    }
    if (a < 0x38800000u) { // subnormal: the addition rounds to a multiple of 2^-24
        const uint32_t r = bits_of(float_of(a) + 0.5f);
        return (uint16_t)(sign | (r - 0x3f000000u));
    }
    return (uint16_t)(sign | ((a + 0xfffu + ((a >> 13) & 1u) - 0x38000000u) >> 13));
}

float lsi_bf16_to_f32(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

uint16_t lsi_f32_to_bf16(float f)
{
    const uint32_t u = bits_of(f);

    if ((u & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)((u >> 16) | 0x40u);
    }
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
