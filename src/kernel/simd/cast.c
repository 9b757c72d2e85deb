/* Conversions between float32 and the dtypes that data and half precision come in. */
#include "kernel/simd/math.h"

typedef void (*convert_fn)(void *to, const void *from, int64_t n);

#define CONVERT(name, to_type, from_type, expr)                                          \
    static void name(void *to, const void *from, int64_t n)                              \
    {                                                                                    \
        to_type *restrict y = to;                                                        \
        const from_type *restrict x = from;                                              \
                                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                \
            y[i] = (to_type)(expr);                                                      \
        }                                                                                \
    }

/* Toward zero, held at the ends; NaN is 0, as in the reference. */
LSI_INLINE int32_t to_i32(float x)
{
    const float held = x < -2147483648.0F ? -2147483648.0F : x;

    if (held >= 2147483648.0F) {
        return INT32_MAX;
    }
    return x != x ? 0 : (int32_t)held;
}

LSI_INLINE uint8_t to_u8(float x)
{
    const float low = x > 0.0F ? x : 0.0F;

    return (uint8_t)(int32_t)(low < 255.0F ? low : 255.0F);
}

LSI_INLINE uint16_t to_bf16(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return (uint16_t)((x != x ? u | 0x400000U : u + 0x7fffU + (u >> 16 & 1U)) >> 16);
}

LSI_INLINE float from_bf16(uint16_t h)
{
    const uint32_t u = (uint32_t)h << 16;
    float x;

    memcpy(&x, &u, sizeof x);
    return x;
}

/* clang-format off */
CONVERT(u8_to_f32, float, uint8_t, x[i])
CONVERT(bool_to_f32, float, uint8_t, x[i] != 0)
CONVERT(i32_to_f32, float, int32_t, x[i])
CONVERT(f64_to_f32, float, double, x[i])
CONVERT(bf16_to_f32, float, uint16_t, from_bf16(x[i]))
CONVERT(f32_to_u8, uint8_t, float, to_u8(x[i]))
CONVERT(f32_to_bool, uint8_t, float, x[i] != 0.0F)
CONVERT(f32_to_i32, int32_t, float, to_i32(x[i]))
CONVERT(f32_to_f64, double, float, x[i])
CONVERT(f32_to_bf16, uint16_t, float, to_bf16(x[i]))
/* clang-format on */

#if defined(__F16C__)
static void f16_to_f32(void *to, const void *from, int64_t n)
{
    const uint16_t *x = from;
    float *y = to;
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(y + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    }
    for (; i < n; i++) {
        y[i] = lsi_f16_to_f32(x[i]);
    }
}

static void f32_to_f16(void *to, const void *from, int64_t n)
{
    const float *x = from;
    uint16_t *y = to;
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i),
                                                             _MM_FROUND_TO_NEAREST_INT));
    }
    for (; i < n; i++) {
        y[i] = lsi_f32_to_f16(x[i]);
    }
}
#elif defined(__aarch64__)
static void f16_to_f32(void *to, const void *from, int64_t n)
{
    const uint16_t *x = from;
    float *y = to;
    int64_t i = 0;

    for (; i + 4 <= n; i += 4) {
        vst1q_f32(y + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x + i))));
    }
    for (; i < n; i++) {
        y[i] = lsi_f16_to_f32(x[i]);
    }
}

static void f32_to_f16(void *to, const void *from, int64_t n)
{
    const float *x = from;
    uint16_t *y = to;
    int64_t i = 0;

    for (; i + 4 <= n; i += 4) {
        vst1_u16(y + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
    }
    for (; i < n; i++) {
        y[i] = lsi_f32_to_f16(x[i]);
    }
}
#else
CONVERT(f16_to_f32, float, uint16_t, lsi_f16_to_f32(x[i]))
CONVERT(f32_to_f16, uint16_t, float, lsi_f32_to_f16(x[i]))
#endif

static convert_fn find_convert(ls_dtype from, ls_dtype to)
{
    static const struct {
        ls_dtype other;
        convert_fn in, out;
    } pairs[] = {
        {LS_U8, u8_to_f32, f32_to_u8},       {LS_BOOL, bool_to_f32, f32_to_bool},
        {LS_I32, i32_to_f32, f32_to_i32},    {LS_F64, f64_to_f32, f32_to_f64},
        {LS_BF16, bf16_to_f32, f32_to_bf16}, {LS_F16, f16_to_f32, f32_to_f16},
    };

    for (size_t i = 0; i < LSI_COUNT_OF(pairs); i++) {
        if (from == pairs[i].other && to == LS_F32) {
            return pairs[i].in;
        }
        if (to == pairs[i].other && from == LS_F32) {
            return pairs[i].out;
        }
    }
    return NULL;
}

struct team_work {
    convert_fn fn;
    char *to;
    const char *from;
    size_t to_size, from_size;
    int64_t n;
};

static void run_part(void *arg, int part, int parts)
{
    const struct team_work *j = arg;
    int64_t begin = 0, end = 0;

    lsi_team_share(j->n, 64, part, parts, &begin, &end);
    j->fn(j->to + (size_t)begin * j->to_size, j->from + (size_t)begin * j->from_size,
          end - begin);
}

ls_status LSI_SIMD(cast)(ls_op_call *k)
{
    const ls_dtype from = (ls_dtype)k->in[0]->dtype, to = (ls_dtype)k->out[0]->dtype;
    struct team_work j = {.fn = find_convert(from, to),
                          .to = k->out[0]->data,
                          .from = k->in[0]->data,
                          .to_size = ls_dtype_size(to),
                          .from_size = ls_dtype_size(from),
                          .n = k->out[0]->count};

    if (j.fn == NULL) {
        return LS_UNIMPLEMENTED;
    }
    lsi_spread(k, lsi_parts(k, j.n / 4), run_part, &j);
    return LS_OK;
}
