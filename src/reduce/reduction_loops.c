/* The element loops of reductions; compiled once per instruction set. */
#include "reduce/reduction_loops.h"

#include "tensor/tensor.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(LSI_ISA_avx512)
#define TABLE lsi_reduction_loops_avx512
#elif defined(LSI_ISA_avx2)
#define TABLE lsi_reduction_loops_avx2
#else
#define TABLE lsi_reduction_loops_baseline
#endif

/* `to` may be a source at the same element, never at another one. */
#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH _Pragma("GCC ivdep")
#endif

#define PAIR(name, type, expr)                                                           \
    static void name(void *to, const void *x, const void *y, size_t count)               \
    {                                                                                    \
        type *t = to;                                                                    \
        const type *a = x, *b = y;                                                       \
                                                                                         \
        EACH for (size_t i = 0; i < count; i++)                                          \
        {                                                                                \
            const type p = a[i], q = b[i];                                               \
                                                                                         \
            t[i] = (type)(expr);                                                         \
        }                                                                                \
    }

/* Integers divide toward zero; `by` may be more than the type holds. */
#define DIVIDE(name, type, wide)                                                         \
    static void name(void *buf, int by, size_t count)                                    \
    {                                                                                    \
        type *t = buf;                                                                   \
        const wide d = (wide)by;                                                         \
                                                                                         \
        EACH for (size_t i = 0; i < count; i++)                                          \
        {                                                                                \
            t[i] = (type)((wide)t[i] / d);                                               \
        }                                                                                \
    }

/* A NaN on either side stays one. */
#define FLOATS(tag, type)                                                                \
    PAIR(sum_##tag, type, p + q)                                                         \
    PAIR(min_##tag, type, p < q || p != p ? p : q)                                       \
    PAIR(max_##tag, type, p > q || p != p ? p : q)                                       \
    PAIR(prod_##tag, type, p *q)                                                         \
    DIVIDE(divide_##tag, type, type)

/* Sums and products wrap around: computed in an unsigned type not promoted to int. */
#define INTEGERS(tag, type, unsigned_type, wide)                                         \
    PAIR(sum_##tag, type, (unsigned_type)p + (unsigned_type)q)                           \
    PAIR(min_##tag, type, p < q ? p : q)                                                 \
    PAIR(max_##tag, type, p > q ? p : q)                                                 \
    PAIR(prod_##tag, type, (unsigned_type)p *(unsigned_type)q)                           \
    DIVIDE(divide_##tag, type, wide)

/* clang-format off */
FLOATS(f32, float)
FLOATS(f64, double)
INTEGERS(i8, int8_t, uint32_t, int32_t)
INTEGERS(i16, int16_t, uint32_t, int32_t)
INTEGERS(i32, int32_t, uint32_t, int64_t)
INTEGERS(i64, int64_t, uint64_t, int64_t)
INTEGERS(u8, uint8_t, uint32_t, uint32_t)
INTEGERS(u16, uint16_t, uint32_t, uint32_t)
INTEGERS(u32, uint32_t, uint32_t, uint32_t)
INTEGERS(u64, uint64_t, uint64_t, uint64_t)
/* clang-format on */

/* The tree over n sources, written out. */
#define TREE_2 (s0[i] + s1[i])
#define TREE_3 (TREE_2 + s2[i])
#define TREE_4 (TREE_2 + (s2[i] + s3[i]))
#define TREE_5 (TREE_4 + s4[i])
#define TREE_6 (TREE_4 + (s4[i] + s5[i]))
#define TREE_7 (TREE_4 + ((s4[i] + s5[i]) + s6[i]))
#define TREE_8 (TREE_4 + ((s4[i] + s5[i]) + (s6[i] + s7[i])))

#define SUM_LOOP(type, value)                                                            \
    EACH for (size_t i = 0; i < count; i++)                                              \
    {                                                                                    \
        const type v = (value);                                                          \
                                                                                         \
        t[i] = v;                                                                        \
        u[i] = v;                                                                        \
    }

#define SUM_ONE_LOOP(type, value)                                                        \
    EACH for (size_t i = 0; i < count; i++)                                              \
    {                                                                                    \
        const type v = (value);                                                          \
                                                                                         \
        t[i] = v;                                                                        \
    }

/* A loop of its own without the division: dividing by 1 would cost as much. */
#define SUM_CASE(type, n)                                                                \
    case n:                                                                              \
        if (by != 1 && too != NULL) {                                                    \
            SUM_LOOP(type, TREE_##n / d)                                                 \
        } else if (by != 1) {                                                            \
            SUM_ONE_LOOP(type, TREE_##n / d)                                             \
        } else if (too != NULL) {                                                        \
            SUM_LOOP(type, TREE_##n)                                                     \
        } else {                                                                         \
            SUM_ONE_LOOP(type, TREE_##n)                                                 \
        }                                                                                \
        break;

#define SUMS(name, type)                                                                 \
    static void name(const void *const *from, int n, int by, void *to, void *too,        \
                     size_t count)                                                       \
    {                                                                                    \
        type *t = to, *u = too;                                                          \
        const type *s0 = from[0], *s1 = from[1], *s2 = from[n > 2 ? 2 : 0];              \
        const type *s3 = from[n > 3 ? 3 : 0], *s4 = from[n > 4 ? 4 : 0];                 \
        const type *s5 = from[n > 5 ? 5 : 0], *s6 = from[n > 6 ? 6 : 0];                 \
        const type *s7 = from[n > 7 ? 7 : 0];                                            \
        const type d = (type)by;                                                         \
                                                                                         \
        switch (n) {                                                                     \
            SUM_CASE(type, 2)                                                            \
            SUM_CASE(type, 3)                                                            \
            SUM_CASE(type, 4)                                                            \
            SUM_CASE(type, 5)                                                            \
            SUM_CASE(type, 6)                                                            \
            SUM_CASE(type, 7)                                                            \
            SUM_CASE(type, 8)                                                            \
        default:                                                                         \
            LSI_ASSERT(n >= 2 && n <= LSI_ADD_MOST);                                     \
        }                                                                                \
    }

// NOLINTBEGIN(readability-function-cognitive-complexity): one loop per number of sources
/* clang-format off */
SUMS(sums_f32, float)
SUMS(sums_f64, double)
/* clang-format on */
// NOLINTEND(readability-function-cognitive-complexity)

static void from_bf16(float *restrict to, const uint16_t *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t u = (uint32_t)from[i] << 16;

        memcpy(&to[i], &u, sizeof u);
    }
}

static void to_bf16(uint16_t *restrict to, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float x = from[i];
        uint32_t u;

        memcpy(&u, &x, sizeof u);
        u = x != x ? u | 0x400000U : u + 0x7fffU + (u >> 16 & 1U);
        to[i] = (uint16_t)(u >> 16);
    }
}

static void from_f16(float *restrict to, const uint16_t *restrict from, size_t count)
{
    size_t i = 0;

#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(from + i));

        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(h));
    }
#elif defined(__aarch64__)
    for (; i + 4 <= count; i += 4) {
        vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));
    }
#endif
    for (; i < count; i++) {
        to[i] = lsi_f16_to_f32(from[i]);
    }
}

static void to_f16(uint16_t *restrict to, const float *restrict from, size_t count)
{
    size_t i = 0;

#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        const __m128i h =
            _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);

        _mm_storeu_si128((__m128i *)(void *)(to + i), h);
    }
#elif defined(__aarch64__)
    for (; i + 4 <= count; i += 4) {
        vst1_u16(to + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from + i))));
    }
#endif
    for (; i < count; i++) {
        to[i] = lsi_f32_to_f16(from[i]);
    }
}

#define ROW(op)                                                                          \
    {                                                                                    \
        op##_f32, op##_f64, op##_i8, op##_i16, op##_i32, op##_i64, op##_u8, op##_u16,    \
            op##_u32, op##_u64                                                           \
    }

extern const lsi_reduction_loops TABLE;
const lsi_reduction_loops TABLE = {
    .pair = {ROW(sum), ROW(min), ROW(max), ROW(prod)},
    .divide = ROW(divide),
    .sum = {[LSI_ADD_F32] = sums_f32, [LSI_ADD_F64] = sums_f64},
    .from_f16 = from_f16,
    .from_bf16 = from_bf16,
    .to_f16 = to_f16,
    .to_bf16 = to_bf16,
};
