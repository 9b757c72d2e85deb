/*
 * What the vector kernels are written with. Every file of this folder is compiled once
 * per instruction set; LSI_SIMD(name) appends the set's name to whatever has external
 * linkage. A vector holds VW floats; GCC's vector extensions give the arithmetic, so one
 * source serves SSE2, NEON, AVX2 and AVX-512.
 */
#ifndef LSI_SIMD_H
#define LSI_SIMD_H
#include "kernel/kernel.h"

#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(LSI_ISA_avx512)
#define VW 16
#define LSI_SIMD(name) lsi_##name##_avx512
#elif defined(LSI_ISA_avx2)
#define VW 8
#define LSI_SIMD(name) lsi_##name##_avx2
#else
#define VW 4
#define LSI_SIMD(name) lsi_##name##_baseline
#endif

/*
 * Before a loop of a constant, small number of turns whose arrays are to be registers.
 * Clang unrolls these by itself, and too late for that when it is told to; under a
 * sanitizer GCC warns that it does not.
 */
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LSI_UNROLL
#define LSI_UNROLL_4
#else
#define LSI_UNROLL _Pragma("GCC unroll 16")
#define LSI_UNROLL_4 _Pragma("GCC unroll 4") /* a long loop: four turns at a time */
#endif

/* VW floats, and the VW integers a comparison of them yields (0 or -1 per lane). */
typedef float vf __attribute__((vector_size(VW * 4)));
typedef int32_t vi __attribute__((vector_size(VW * 4)));
typedef uint32_t vu __attribute__((vector_size(VW * 4)));

/* The same at any address; may alias whatever else lies there. */
typedef float vf_mem __attribute__((vector_size(VW * 4), aligned(4), may_alias));
typedef int32_t vi_mem __attribute__((vector_size(VW * 4), aligned(4), may_alias));

LSI_INLINE vf vload(const float *p)
{
    return *(const vf_mem *)p;
}

LSI_INLINE void vstore(float *p, vf v)
{
    *(vf_mem *)p = v;
}

LSI_INLINE vi vload_i(const int32_t *p)
{
    return *(const vi_mem *)p;
}

LSI_INLINE void vstore_i(int32_t *p, vi v)
{
    *(vi_mem *)p = v;
}

LSI_INLINE vf vsplat(float x)
{
    return x - (vf){0};
}

LSI_INLINE vi vsplat_i(int32_t x)
{
    return x - (vi){0};
}

LSI_INLINE vf vzero(void)
{
    return (vf){0};
}

/* The same value in a register: it is not loaded again for each use. */
LSI_INLINE vf vkeep(vf v)
{
#if defined(__x86_64__)
    __asm__("" : "+v"(v));
#elif defined(__aarch64__)
    __asm__("" : "+w"(v));
#endif
    return v;
}

/* The lanes where `mask` is -1 from a, those where it is 0 from b. */
LSI_INLINE vf vselect(vi mask, vf a, vf b)
{
#if VW == 8
    return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
#endif
}

LSI_INLINE vi vselect_i(vi mask, vi a, vi b)
{
    return (a & mask) | (b & ~mask);
}

/* a > b ? a : b, lane by lane: b where either is NaN, as the scalar expression. */
LSI_INLINE vf vmax(vf a, vf b)
{
#if VW == 16
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif VW == 8
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
    return vselect(a > b, a, b);
#endif
}

LSI_INLINE vf vmin(vf a, vf b)
{
    return vselect(a < b, a, b);
}

#if VW == 4
/* vload_n() and vstore_n() below VW: a copy of that many bytes would be a call. */
LSI_INLINE vf load_few(const float *p, int64_t n)
{
    vf v = {0};

    if ((n & 2) != 0) {
        v[0] = p[0];
        v[1] = p[1];
        if ((n & 1) != 0) {
            v[2] = p[2];
        }
    } else if ((n & 1) != 0) {
        v[0] = p[0];
    }
    return v;
}

LSI_INLINE void store_few(float *p, vf v, int64_t n)
{
    float last = v[0];

    if ((n & 2) != 0) {
        p[0] = v[0];
        p[1] = v[1];
        last = v[2];
        p += 2;
    }
    if ((n & 1) != 0) {
        *p = last;
    }
}
#endif

/* The first `n` (0 .. VW) floats at p, zeros in the other lanes; reads no more. */
LSI_INLINE vf vload_n(const float *p, int64_t n)
{
    if (n >= VW) {
        return vload(p);
    }
#if VW == 16
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1U << n) - 1U), p);
#elif VW == 8
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};

    return (vf)_mm256_maskload_ps(p, (__m256i)(lane < vsplat_i((int32_t)n)));
#else
    return load_few(p, n);
#endif
}

/* Writes the first `n` (0 .. VW) lanes and nothing else. */
LSI_INLINE void vstore_n(float *p, vf v, int64_t n)
{
    if (n >= VW) {
        vstore(p, v);
        return;
    }
#if VW == 16
    _mm512_mask_storeu_ps(p, (__mmask16)((1U << n) - 1U), (__m512)v);
#elif VW == 8
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};

    _mm256_maskstore_ps(p, (__m256i)(lane < vsplat_i((int32_t)n)), (__m256)v);
#else
    store_few(p, v, n);
#endif
}

/* Sum and largest of the lanes, always paired in the same order: halves onto halves. */
LSI_INLINE float vsum(vf v)
{
    float t[VW];

    vstore(t, v);
    for (int half = VW / 2; half >= 1; half /= 2) {
        for (int i = 0; i < half; i++) {
            t[i] += t[i + half];
        }
    }
    return t[0];
}

LSI_INLINE float vmaximum(vf v)
{
    float t[VW];

    vstore(t, v);
    for (int half = VW / 2; half >= 1; half /= 2) {
        for (int i = 0; i < half; i++) {
            t[i] = t[i] > t[i + half] ? t[i] : t[i + half];
        }
    }
    return t[0];
}

/* True if every tensor of the call that counts here is float32. */
LSI_INLINE bool lsi_all_f32(const ls_op_call *k)
{
    for (size_t i = 0; i < k->nin; i++) {
        if (k->in[i]->dtype != LS_F32) {
            return false;
        }
    }
    return k->out[0]->dtype == LS_F32;
}

/* Products, convolutions, pooling, attention: gemm.c, matmul.c, conv.c, depthwise.c,
 * max_pool.c, avg_pool.c, attention.c. */
ls_status LSI_SIMD(matmul)(ls_op_call *k);
ls_status LSI_SIMD(dense)(ls_op_call *k);
ls_status LSI_SIMD(conv2d)(ls_op_call *k);
ls_status LSI_SIMD(conv2d_input_grad)(ls_op_call *k);
ls_status LSI_SIMD(conv2d_filter_grad)(ls_op_call *k);
ls_status LSI_SIMD(depthwise_conv2d)(ls_op_call *k);
ls_status LSI_SIMD(depthwise_conv2d_input_grad)(ls_op_call *k);
ls_status LSI_SIMD(depthwise_conv2d_filter_grad)(ls_op_call *k);
ls_status LSI_SIMD(max_pool2d)(ls_op_call *k);
ls_status LSI_SIMD(max_pool2d_grad)(ls_op_call *k);
ls_status LSI_SIMD(avg_pool2d)(ls_op_call *k);
ls_status LSI_SIMD(avg_pool2d_grad)(ls_op_call *k);
ls_status LSI_SIMD(attention)(ls_op_call *k);
ls_status LSI_SIMD(attention_grad)(ls_op_call *k);

/* Runs the parts of fn: on the team if there are several, else as a plain call. */
LSI_INLINE void lsi_spread(const ls_op_call *k, int parts, lsi_team_fn fn, void *arg)
{
    if (parts == 1) {
        fn(arg, 0, 1);
    } else {
        lsi_team_run(k->team, parts, fn, arg);
    }
}

/* Elementwise with one operand: unary.c, cast.c. */
ls_status LSI_SIMD(neg)(ls_op_call *k);
ls_status LSI_SIMD(abs)(ls_op_call *k);
ls_status LSI_SIMD(sign)(ls_op_call *k);
ls_status LSI_SIMD(exp)(ls_op_call *k);
ls_status LSI_SIMD(log)(ls_op_call *k);
ls_status LSI_SIMD(log1p)(ls_op_call *k);
ls_status LSI_SIMD(sqrt)(ls_op_call *k);
ls_status LSI_SIMD(rsqrt)(ls_op_call *k);
ls_status LSI_SIMD(square)(ls_op_call *k);
ls_status LSI_SIMD(reciprocal)(ls_op_call *k);
ls_status LSI_SIMD(erf)(ls_op_call *k);
ls_status LSI_SIMD(relu)(ls_op_call *k);
ls_status LSI_SIMD(leaky_relu)(ls_op_call *k);
ls_status LSI_SIMD(elu)(ls_op_call *k);
ls_status LSI_SIMD(sigmoid)(ls_op_call *k);
ls_status LSI_SIMD(tanh)(ls_op_call *k);
ls_status LSI_SIMD(softplus)(ls_op_call *k);
ls_status LSI_SIMD(gelu)(ls_op_call *k);
ls_status LSI_SIMD(silu)(ls_op_call *k);
ls_status LSI_SIMD(clip)(ls_op_call *k);
ls_status LSI_SIMD(relu_grad)(ls_op_call *k);
ls_status LSI_SIMD(leaky_relu_grad)(ls_op_call *k);
ls_status LSI_SIMD(elu_grad)(ls_op_call *k);
ls_status LSI_SIMD(sigmoid_grad)(ls_op_call *k);
ls_status LSI_SIMD(tanh_grad)(ls_op_call *k);
ls_status LSI_SIMD(gelu_grad)(ls_op_call *k);
ls_status LSI_SIMD(silu_grad)(ls_op_call *k);
ls_status LSI_SIMD(cast)(ls_op_call *k);

/* Elementwise with broadcasting: binary.c. */
ls_status LSI_SIMD(add)(ls_op_call *k);
ls_status LSI_SIMD(sub)(ls_op_call *k);
ls_status LSI_SIMD(mul)(ls_op_call *k);
ls_status LSI_SIMD(div)(ls_op_call *k);
ls_status LSI_SIMD(maximum)(ls_op_call *k);
ls_status LSI_SIMD(minimum)(ls_op_call *k);
ls_status LSI_SIMD(equal)(ls_op_call *k);
ls_status LSI_SIMD(not_equal)(ls_op_call *k);
ls_status LSI_SIMD(less)(ls_op_call *k);
ls_status LSI_SIMD(less_equal)(ls_op_call *k);
ls_status LSI_SIMD(greater)(ls_op_call *k);
ls_status LSI_SIMD(greater_equal)(ls_op_call *k);
ls_status LSI_SIMD(where)(ls_op_call *k);

/* Reductions: reduce.c. */
ls_status LSI_SIMD(sum)(ls_op_call *k);
ls_status LSI_SIMD(mean)(ls_op_call *k);
ls_status LSI_SIMD(prod)(ls_op_call *k);
ls_status LSI_SIMD(max)(ls_op_call *k);
ls_status LSI_SIMD(min)(ls_op_call *k);
ls_status LSI_SIMD(logsumexp)(ls_op_call *k);

/* Softmax and the losses on it: softmax.c. */
ls_status LSI_SIMD(softmax)(ls_op_call *k);
ls_status LSI_SIMD(log_softmax)(ls_op_call *k);
ls_status LSI_SIMD(softmax_grad)(ls_op_call *k);
ls_status LSI_SIMD(log_softmax_grad)(ls_op_call *k);
ls_status LSI_SIMD(sparse_softmax_cross_entropy)(ls_op_call *k);
ls_status LSI_SIMD(softmax_cross_entropy)(ls_op_call *k);
ls_status LSI_SIMD(softmax_cross_entropy_grad)(ls_op_call *k);

/* Normalisation: norm.c. */
ls_status LSI_SIMD(layer_norm)(ls_op_call *k);
ls_status LSI_SIMD(layer_norm_grad)(ls_op_call *k);
ls_status LSI_SIMD(batch_norm)(ls_op_call *k);
ls_status LSI_SIMD(batch_norm_grad)(ls_op_call *k);
ls_status LSI_SIMD(batch_norm_inference)(ls_op_call *k);
#endif
