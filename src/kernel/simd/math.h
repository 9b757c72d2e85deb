/*
 * Elementary functions on vectors: within 4 units in the last place of the true value,
 * with libm's answers for infinities, NaN, zeros and denormals. Polynomials are minimax
 * fits on the reduced range; nothing here branches on a value or reads a table.
 */
#ifndef LSI_SIMD_MATH_H
#define LSI_SIMD_MATH_H
#include "kernel/simd/simd.h"

#include <math.h>

/* The first `n` (1 .. VW - 1) floats at p, zeros in the other lanes: the rest of a row.
 */
LSI_INLINE vf vtail(const float *p, int64_t n)
{
#if VW == 16
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1U << n) - 1U), p);
#elif VW == 8
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};

    return (vf)_mm256_maskload_ps(p, (__m256i)(lane < vsplat_i((int32_t)n)));
#else
    return load_few(p, n);
#endif
}

/*
 * Writes the first `n` (1 .. VW - 1) lanes and nothing else. Not by AVX2's masked store,
 * which some processors take a dozen cycles for.
 */
LSI_INLINE void vtail_store(float *p, vf v, int64_t n)
{
#if VW == 16
    _mm512_mask_storeu_ps(p, (__mmask16)((1U << n) - 1U), (__m512)v);
#elif VW == 8
    __m128 q = _mm256_castps256_ps128((__m256)v);

    if ((n & 4) != 0) {
        _mm_storeu_ps(p, q);
        q = _mm256_extractf128_ps((__m256)v, 1);
        p += 4;
    }
    if ((n & 2) != 0) {
        _mm_storel_pi((__m64 *)p, q);
        q = _mm_movehl_ps(q, q);
        p += 2;
    }
    if ((n & 1) != 0) {
        _mm_store_ss(p, q);
    }
#else
    store_few(p, v, n);
#endif
}

/* The first `n` lanes of `v`, and `other` in the rest. */
LSI_INLINE vf vfirst(vf v, int64_t n, float other)
{
    vi lane = {0};

    for (int i = 0; i < VW; i++) {
        lane[i] = i;
    }
    return vselect(lane < vsplat_i((int32_t)n), v, vsplat(other));
}

LSI_INLINE vf vsqrt(vf x)
{
#if VW == 16
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif VW == 8
    return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
    return (vf)_mm_sqrt_ps((__m128)x);
#else
    for (int i = 0; i < VW; i++) {
        x[i] = sqrtf(x[i]);
    }
    return x;
#endif
}

LSI_INLINE vf vabs(vf x)
{
    return (vf)((vi)x & vsplat_i(INT32_MAX));
}

/* The magnitude of `x` (not negative) with the sign of `like`. */
LSI_INLINE vf vsigned(vf x, vf like)
{
    return (vf)((vi)x | ((vi)like & vsplat_i(INT32_MIN)));
}

/* The lanes that hold NaN. */
LSI_INLINE vi vnan(vf x)
{
    return x != x; // NOLINT(misc-redundant-expression)
}

/* The larger and the smaller; a NaN wins. */
LSI_INLINE vf vmax_nan(vf a, vf b)
{
    return vselect((a > b) | vnan(a), a, b);
}

LSI_INLINE vf vmin_nan(vf a, vf b)
{
    return vselect((a < b) | vnan(a), a, b);
}

/* 2^n for -126 <= n <= 127. */
LSI_INLINE vf vpow2(vi n)
{
    return (vf)(((vu)n + 127U) << 23);
}

/*
 * x = n ln 2 + r with |r| <= ln 2 / 2: returns r. Adding 1.5 * 2^23 rounds to an integer
 * and leaves it in the low bits; ln 2 is subtracted in two parts, of which the first has
 * so few bits that its product with n is exact.
 */
LSI_INLINE vf vexp_reduce(vf x, vi *n)
{
    const vf magic = vsplat(12582912.0F);
    const vf shifted = x * 1.44269504F + magic;
    const vf whole = shifted - magic;

    *n = (vi)((vu)shifted - (vu)magic);
    return (x - whole * 0.693359375F) + whole * 2.12194440e-4F;
}

/* Outside these bounds the result is 0 or infinite; 2^n comes in two factors so that
 * denormal results and the last binade are reached without overflow on the way. */
LSI_INLINE vf vexp(vf x)
{
    vi n;
    const vf low = vselect(x < -104.0F, vsplat(-104.0F), x);
    const vf r = vexp_reduce(vselect(low > 89.0F, vsplat(89.0F), low), &n);
    vf p = r * 0.00138145976F + 0.00836871192F;

    p = p * r + 0.041668389F;
    p = p * r + 0.166665211F;
    p = p * r + 0.49999994F;
    p = (p * (r * r) + r) + 1.0F;
    return (p * vpow2(n >> 1)) * vpow2(n - (n >> 1));
}

/* exp(x) where x <= 0 or NaN and a result below 2^-126 may become 0: softmax. */
LSI_INLINE vf vexp_negative(vf x)
{
    vi n;
    const vf low = vselect(x < -87.0F, vsplat(-87.0F), x);
    const vf r = vexp_reduce(low, &n);
    vf p = r * 0.00138145976F + 0.00836871192F;

    p = p * r + 0.041668389F;
    p = p * r + 0.166665211F;
    p = p * r + 0.49999994F;
    p = (p * (r * r) + r) + 1.0F;
    return (vf)((vi)(p * vpow2(n)) & ~(x < -87.0F));
}

/* exp(x) - 1 for x <= 88, without cancellation near 0. */
LSI_INLINE vf vexpm1(vf x)
{
    vi n;
    const vf r = vexp_reduce(vselect(x < -87.0F, vsplat(-87.0F), x), &n);
    const vf scale = vpow2(n);
    vf p = r * 0.000199118396F + 0.00139410619F;

    p = p * r + 0.00833327696F;
    p = p * r + 0.041666355F;
    p = p * r + 0.166666672F;
    p = p * r + 0.5F;
    p = p * (r * r) + r;
    return scale * p + (scale - 1.0F);
}

/* m 2^e with m in [sqrt(1/2), sqrt 2); denormals are scaled up first. */
LSI_INLINE vf vlog(vf x)
{
    const vi tiny = x < 1.17549435e-38F;
    const vf scaled = vselect(tiny, x * 8388608.0F, x);
    const vu offset = (vu)scaled - 0x3F3504F3U;
    const vi whole = ((vi)offset >> 23) - (tiny & vsplat_i(23));
    const vf e = __builtin_convertvector(whole, vf);
    const vf f = (vf)((offset & 0x007FFFFFU) + 0x3F3504F3U) - 1.0F;
    vf p = f * 0.0674645454F - 0.116756231F;

    p = p * f + 0.118882321F;
    p = p * f - 0.124055974F;
    p = p * f + 0.142195433F;
    p = p * f - 0.166679949F;
    p = p * f + 0.200021192F;
    p = p * f - 0.250000089F;
    p = p * f + 0.333333135F;
    p = p * (f * f * f) - e * 2.12194440e-4F;
    p = (p - 0.5F * (f * f) + f) + e * 0.693359375F;
    p = vselect(x == INFINITY, x, p);
    p = vselect(x == 0.0F, vsplat(-INFINITY), p);
    return vselect((x < 0.0F) | vnan(x), vsplat(NAN), p);
}

/* log(u) of the rounded u = 1 + x, plus what the rounding lost. */
LSI_INLINE vf vlog1p(vf x)
{
    const vf u = x + 1.0F;
    const vf y = vlog(u);
    const vf lost = (x - (u - 1.0F)) / u;
    const vi exact = (u == INFINITY) | (u <= 0.0F);

    return vselect(x == 0.0F, x, y + (vf)((vi)lost & ~exact));
}

/* log(1 + x) for 0 <= x <= 1 or NaN, in the terms log1p is written with. */
LSI_INLINE vf vlog1p_unit(vf x)
{
    const vf u = x + 1.0F;
    const vi up = u > 1.41421356F;
    const vf f = vselect(up, 0.5F * x - 0.5F, x);
    vf p = f * 0.0674645454F - 0.116756231F;

    p = p * f + 0.118882321F;
    p = p * f - 0.124055974F;
    p = p * f + 0.142195433F;
    p = p * f - 0.166679949F;
    p = p * f + 0.200021192F;
    p = p * f - 0.250000089F;
    p = p * f + 0.333333135F;
    p = p * (f * f * f);
    p = (p - 0.5F * (f * f)) + f;
    return p + (vf)((vi)vsplat(0.693147181F) & up);
}

LSI_INLINE vf vsigmoid(vf x)
{
    const vf z = vexp((vf)((vi)x | vsplat_i(INT32_MIN)));
    const vf s = 1.0F / (1.0F + z);

    return vselect(x < 0.0F, z * s, s);
}

LSI_INLINE vf vtanh(vf x)
{
    const vf a = vabs(x);
    const vf t = vexpm1(-2.0F * vselect(a > 10.0F, vsplat(10.0F), a));

    return vsigned(vabs(t / (t + 2.0F)), x);
}

/* Near 0 an odd polynomial; further out 1 - exp(q), which keeps the digits of 1 - erf. */
LSI_INLINE vf verf(vf x)
{
    const vf a = vabs(x);
    const vf t = vselect(a > 4.0F, vsplat(4.0F), a);
    const vf s = x * x;
    vf small = s * -0.000596424041F + 0.00498800119F;
    vf far = t * -1.12324487e-05F + 0.000322814798F;

    small = small * s - 0.0267631225F;
    small = small * s + 0.112817213F;
    small = small * s - 0.376124859F;
    small = small * s + 0.128379151F;
    small = small * x + x;
    far = far * t - 0.00364250154F;
    far = far * t + 0.0237621479F;
    far = far * t - 0.106236972F;
    far = far * t - 0.635151267F;
    far = far * t - 0.128648505F;
    far = 1.0F - vexp_negative(far * t - t);
    return vselect(a > 0.9277F, vsigned(far, x), small);
}

/*
 * The normal distribution up to x, and exp(-x^2 / 2), its density times sqrt(2 pi). The
 * tail is exp(-t^2) times a slow function of t = |x| / sqrt 2, so that no digits cancel
 * for negative x.
 */
LSI_INLINE vf vnormal(vf x, vf *bell)
{
    const vf a = vabs(x);
    const vf t = 0.707106781F * vselect(a > 15.0F, vsplat(15.0F), a);
    const vf v = (t - 2.0F) / (t + 2.0F);
    vf p = v * -0.000399490673F - 0.00122805173F;

    p = p * v + 0.0013133497F;
    p = p * v + 0.00863014814F;
    p = p * v - 0.0080601573F;
    p = p * v - 0.0542039014F;
    p = p * v + 0.164055422F;
    p = p * v - 0.166031465F;
    p = p * v - 0.0927639827F;
    p = p * v + 1.27697837F;
    *bell = vexp(-0.5F * (x * x));
    p = 0.5F * *bell * p / (1.0F + 2.0F * t);
    return vselect(x < 0.0F, p, 1.0F - p);
}

/* x/2 (1 + erf(x / sqrt 2)) and the tanh formula; (1 + tanh u) / 2 is sigmoid(2 u). */
LSI_INLINE vf vgelu(vf x)
{
    vf bell;

    return x * vnormal(x, &bell);
}

LSI_INLINE vf vgelu_tanh(vf x)
{
    return x * vsigmoid(1.59576912F * (x + 0.044715F * (x * x * x)));
}

/* How a reduction joins two values into one. */
enum lsi_join { LSI_JOIN_SUM, LSI_JOIN_PROD, LSI_JOIN_MAX, LSI_JOIN_MIN };

/* What changes nothing when joined. */
LSI_INLINE float join_start(enum lsi_join how)
{
    switch (how) {
    case LSI_JOIN_PROD:
        return 1.0F;
    case LSI_JOIN_MAX:
        return -INFINITY;
    case LSI_JOIN_MIN:
        return INFINITY;
    default:
        return 0.0F;
    }
}

LSI_INLINE vf vjoin(enum lsi_join how, vf a, vf b)
{
    switch (how) {
    case LSI_JOIN_PROD:
        return a * b;
    case LSI_JOIN_MAX:
        return vmax_nan(a, b);
    case LSI_JOIN_MIN:
        return vmin_nan(a, b);
    default:
        return a + b;
    }
}

LSI_INLINE float join(enum lsi_join how, float a, float b)
{
    switch (how) {
    case LSI_JOIN_PROD:
        return a * b;
    case LSI_JOIN_MAX:
        return a > b || isnan(a) ? a : b;
    case LSI_JOIN_MIN:
        return a < b || isnan(a) ? a : b;
    default:
        return a + b;
    }
}

#if defined(__SSE2__)
LSI_INLINE __m128 join4(enum lsi_join how, __m128 a, __m128 b)
{
    const __m128 nan = _mm_cmpunord_ps(a, a);

    switch (how) {
    case LSI_JOIN_PROD:
        return _mm_mul_ps(a, b);
    case LSI_JOIN_MAX:
        return _mm_or_ps(_mm_andnot_ps(nan, _mm_max_ps(a, b)), _mm_and_ps(nan, a));
    case LSI_JOIN_MIN:
        return _mm_or_ps(_mm_andnot_ps(nan, _mm_min_ps(a, b)), _mm_and_ps(nan, a));
    default:
        return _mm_add_ps(a, b);
    }
}
#endif

/* The lanes joined into one, always in the same order: halves onto halves. */
LSI_INLINE float vfold(enum lsi_join how, vf v)
{
#if defined(__SSE2__)
    __m128 q[VW / 4];

    memcpy(q, &v, sizeof q);
    for (int half = VW / 8; half >= 1; half /= 2) {
        for (int i = 0; i < half; i++) {
            q[i] = join4(how, q[i], q[i + half]);
        }
    }
    q[0] = join4(how, q[0], _mm_movehl_ps(q[0], q[0]));
    q[0] = join4(how, q[0], _mm_shuffle_ps(q[0], q[0], 1));
    return _mm_cvtss_f32(q[0]);
#else
    float t[VW];

    vstore(t, v);
    for (int half = VW / 2; half >= 1; half /= 2) {
        for (int i = 0; i < half; i++) {
            t[i] = join(how, t[i], t[i + half]);
        }
    }
    return t[0];
#endif
}

/*
 * A sum of many vectors in three levels of 64, so that its error grows with the cube root
 * of their number and not with the number.
 */
struct long_sum {
    vf low, middle, high;
    int64_t n;
};

LSI_INLINE void long_add(struct long_sum *s, vf v)
{
    s->low += v;
    if ((++s->n & 63) == 0) {
        s->middle += s->low;
        s->low = vzero();
        if ((s->n & 4095) == 0) {
            s->high += s->middle;
            s->middle = vzero();
        }
    }
}

LSI_INLINE float long_total(const struct long_sum *s)
{
    return vfold(LSI_JOIN_SUM, s->high + (s->middle + s->low));
}

/* `n` floats in a row joined: lanes first, 4 vectors at a time, 1024 elements a turn. */
LSI_INLINE float join_row(enum lsi_join how, const float *x, int64_t n)
{
    const int64_t w = VW;
    vf total = vsplat(join_start(how));
    int64_t i = 0;

    while (i + 4 * w <= n) {
        const int64_t end = LSI_MIN(n, i + 1024);
        vf a = vload(x + i), b = vload(x + i + w);
        vf c = vload(x + i + 2 * w), d = vload(x + i + 3 * w);

        for (i += 4 * w; i + 4 * w <= end; i += 4 * w) {
            a = vjoin(how, a, vload(x + i));
            b = vjoin(how, b, vload(x + i + w));
            c = vjoin(how, c, vload(x + i + 2 * w));
            d = vjoin(how, d, vload(x + i + 3 * w));
        }
        total = vjoin(how, total, vjoin(how, vjoin(how, a, b), vjoin(how, c, d)));
    }
    for (; i + w <= n; i += w) {
        total = vjoin(how, total, vload(x + i));
    }
    if (i < n) {
        total = vjoin(how, total, vfirst(vtail(x + i, n - i), n - i, join_start(how)));
    }
    return vfold(how, total);
}
#endif
