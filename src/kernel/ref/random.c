/*
 * Random numbers, made of Philox's words the way TensorFlow makes them. Element i comes
 * of block position + i / per_block of the stream, so the result depends on seed, stream
 * and position only, never on how many threads filled it. A truncated normal, which asks
 * again for what it refuses, has a stretch of blocks for every group of elements.
 */
#include "base/philox.h"
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

enum { PER_BLOCK = LSI_WORDS_PER_BLOCK, NS_A_BLOCK = 20, NS_A_NORMAL_BLOCK = 100 };

int lsi_random_words_of(ls_dtype dtype)
{
    return dtype == LS_F64 || lsi_dtype_is_int(dtype) ? 2 : 1;
}

/* Fills values[0 .. per block) with what block `block` gives, counted from `at`. */
typedef struct drawing {
    ls_op_call *k;
    const lsi_random_attrs *attrs;
    ls_random_state at; /* where the first block is */
    void (*draw)(const struct drawing *d, uint64_t block, double *values);
    int per_block;
    uint64_t blocks; /* from one group of per_block elements to the next */
    ls_dtype dtype;  /* of the result */
    double a, range; /* the lower bound and the width, or mean and deviation, rounded */
    double below_hi; /* uniform: the largest number of the dtype below the upper bound */
} drawing;

/* The last input: where the numbers begin. */
static ls_random_state state_of(const ls_op_call *k)
{
    const uint64_t *words = k->in[k->nin - 1]->data;

    return (ls_random_state){words[0], words[1], words[2]};
}

/* Block number `i` from where the numbers begin. */
static lsi_words words_at(const ls_random_state *at, uint64_t i)
{
    return lsi_random_words(at->seed, at->stream, at->position + i);
}

static void store_drawn(ls_dtype dtype, void *to, int64_t at, const double *values, int n)
{
    switch (dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        for (int i = 0; i < n; i++) {                                                    \
            lsi_put_float(to, LS_##D, at + i, values[i]);                                \
        }                                                                                \
        break;
        LSI_FLOATS(EACH)
#undef EACH
    default:
        break;
    }
}

static void draw_share(void *arg, int part, int parts)
{
    const drawing *d = arg;
    ls_tensor *y = d->k->out[0];
    const int64_t blocks = (y->count + d->per_block - 1) / d->per_block;
    int64_t begin = 0;
    int64_t end = 0;

    lsi_team_share(blocks, 1, part, parts, &begin, &end);
    for (int64_t b = begin; b < end; b++) {
        const int64_t at = b * d->per_block;
        double values[PER_BLOCK] = {0};

        d->draw(d, (uint64_t)b * d->blocks, values);
        store_drawn(d->dtype, y->data, at, values,
                    (int)LSI_MIN((int64_t)d->per_block, y->count - at));
    }
}

static ls_status fill_drawn(ls_op_call *k, drawing *d, uint64_t blocks,
                            int64_t ns_a_block)
{
    const int64_t n = k->out[0]->count;

    d->k = k;
    d->attrs = k->attrs;
    d->at = state_of(k);
    d->dtype = (ls_dtype)k->out[0]->dtype;
    d->per_block = PER_BLOCK / d->attrs->words;
    d->blocks = blocks;
    lsi_team_run(k->team, lsi_parts(k, n / d->per_block * ns_a_block), draw_share, d);
    return LS_OK;
}

/* ---- [0, 1): the lowest bits of a word, as many as the mantissa has, so none is 1 ----
 */

static float unit32(uint32_t word)
{
    return (float)(word & 0x7FFFFF) * 0x1p-23f;
}

static double unit64(uint32_t high, uint32_t low)
{
    return (double)((uint64_t)(high & 0xFFFFF) << 32 | low) * 0x1p-52;
}

/* Number j of a block. */
LSI_INLINE double unit(ls_dtype dtype, const lsi_words *r, int j)
{
    const uint32_t *pair;

    switch (dtype) {
    case LS_F64:
        pair = r->w + (ptrdiff_t)2 * j;
        return unit64(pair[0], pair[1]);
    case LS_F16:
        return (double)(r->w[j] & 0x3FF) * 0x1p-10;
    case LS_BF16:
        return (double)(r->w[j] & 0x7F) * 0x1p-7;
    default:
        return (double)unit32(r->w[j]);
    }
}

/* What ls_cast() makes of `v` in a floating dtype, as a double again. */
LSI_INLINE double rounded(ls_dtype dtype, double v)
{
    uint64_t room; // for an element of any dtype

    lsi_put_float(&room, dtype, 0, v);
    return lsi_get_float(&room, dtype, 0);
}

/* v * scale + shift as the dtype computes it: rounded twice. */
LSI_INLINE double scaled(ls_dtype dtype, double v, double scale, double shift)
{
    return rounded(dtype, rounded(dtype, v * scale) + shift);
}

/* ---- uniform ---- */

LSI_INLINE void uniform_block(const drawing *d, ls_dtype dtype, uint64_t block,
                              double *values)
{
    const lsi_words r = words_at(&d->at, block);

    for (int i = 0; i < (dtype == LS_F64 ? PER_BLOCK / 2 : PER_BLOCK); i++) {
        const double v = scaled(dtype, unit(dtype, &r, i), d->range, d->a);

        values[i] = LSI_MIN(v, d->below_hi);
    }
}

static void draw_uniform(const drawing *d, uint64_t block, double *values)
{
    switch (d->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        uniform_block(d, LS_##D, block, values);                                         \
        break;
        LSI_FLOATS(EACH)
#undef EACH
    default:
        break;
    }
}

/* float32, which most are: without the way through doubles. */
static void uniform_f32_share(void *arg, int part, int parts)
{
    const drawing *d = arg;
    const float lo = (float)d->a;
    const float range = (float)d->range;
    const float most = (float)d->below_hi;
    float *y = d->k->out[0]->data;
    const int64_t n = d->k->out[0]->count;
    int64_t begin = 0;
    int64_t end = 0;

    lsi_team_share(n, PER_BLOCK, part, parts, &begin, &end);
    for (int64_t at = begin; at < end; at += PER_BLOCK) {
        const lsi_words r = words_at(&d->at, (uint64_t)(at / PER_BLOCK));
        const int64_t m = LSI_MIN((int64_t)PER_BLOCK, end - at);

        for (int64_t i = 0; i < m; i++) {
            const float v = unit32(r.w[i]) * range + lo;

            y[at + i] = v < most ? v : most;
        }
    }
}

/* The largest number of `dtype` below `hi`, which is one of its numbers itself. */
static double before(ls_dtype dtype, double hi)
{
    uint16_t bits = 0;

    switch (dtype) {
    case LS_F32:
        return (double)nextafterf((float)hi, -INFINITY);
    case LS_F64:
        return nextafter(hi, -INFINITY);
    default:
        break;
    }
    bits = dtype == LS_F16 ? lsi_f32_to_f16((float)hi) : lsi_f32_to_bf16((float)hi);
    if (hi == 0) {
        bits = 0x8001; // the smallest below zero
    } else {
        bits = (uint16_t)(hi > 0 ? bits - 1 : bits + 1);
    }
    return (double)(dtype == LS_F16 ? lsi_f16_to_f32(bits) : lsi_bf16_to_f32(bits));
}

/* A whole number in [-2^63, 2^64] as 64 bits; 2^64 wraps to 0. */
static uint64_t bits_of(double v)
{
    if (v < 0) {
        return 0U - (uint64_t)-v;
    }
    return v >= 0x1p64 ? 0 : (uint64_t)v;
}

static void uniform_int_share(void *arg, int part, int parts)
{
    const drawing *d = arg;
    const ls_op_call *k = d->k;
    const lsi_random_attrs *attrs = d->attrs;
    const int words = attrs->words;
    const int per_block = PER_BLOCK / words;
    const uint64_t lo = bits_of(attrs->a);
    const uint64_t range = bits_of(attrs->b) - lo; // 0: all of the 2^64
    const int64_t n = k->out[0]->count;
    int64_t begin = 0;
    int64_t end = 0;

    lsi_team_share(n, per_block, part, parts, &begin, &end);
    for (int64_t at = begin; at < end; at += per_block) {
        const lsi_words r = words_at(&d->at, (uint64_t)(at / per_block));
        const int64_t m = LSI_MIN((int64_t)per_block, end - at);

        for (int64_t i = 0; i < m; i++) {
            const uint64_t high = words == 2 ? r.w[2 * i + 1] : 0;
            const uint64_t word = high << 32 | r.w[words * i];
            const uint64_t v = lo + (range == 0 ? word : word % range);

            lsi_put_int(k->out[0]->data, (ls_dtype)k->out[0]->dtype, at + i, (int64_t)v);
        }
    }
}

ls_status lsi_ref_random_uniform(ls_op_call *k)
{
    const lsi_random_attrs *attrs = k->attrs;
    const int64_t n = k->out[0]->count;
    const double lo = rounded(attrs->dtype, attrs->a);
    const double hi = rounded(attrs->dtype, attrs->b);
    drawing d = {0};

    d.k = k;
    d.attrs = attrs;
    d.at = state_of(k);
    if (lsi_dtype_is_int(attrs->dtype)) {
        lsi_team_run(k->team, lsi_parts(k, n * NS_A_BLOCK / 2), uniform_int_share, &d);
        return LS_OK;
    }
    d.a = lo;
    d.range = rounded(attrs->dtype, hi - lo);
    d.below_hi = lo < hi ? before(attrs->dtype, hi) : hi;
    if (attrs->dtype == LS_F32) {
        lsi_team_run(k->team, lsi_parts(k, n / PER_BLOCK * NS_A_BLOCK), uniform_f32_share,
                     &d);
        return LS_OK;
    }
    d.draw = draw_uniform;
    return fill_drawn(k, &d, 1, NS_A_BLOCK);
}

/* ---- normal: Box and Muller make two of two uniform ones; as TensorFlow: not of 0 ----
 */

static void box_muller32(uint32_t x0, uint32_t x1, double *values)
{
    const float two_pi = 6.28318530717958647692F;
    const float u = unit32(x0);
    const float radius = sqrtf(-2.0F * logf(u < 1e-7F ? 1e-7F : u));
    const float angle = two_pi * unit32(x1);

    values[0] = (double)(sinf(angle) * radius);
    values[1] = (double)(cosf(angle) * radius);
}

static void box_muller64(const uint32_t *x, double *values)
{
    const double two_pi = 6.28318530717958647692;
    const double u = unit64(x[0], x[1]);
    const double radius = sqrt(-2.0 * log(u < 1e-7 ? 1e-7 : u));
    const double angle = two_pi * unit64(x[2], x[3]);

    values[0] = sin(angle) * radius;
    values[1] = cos(angle) * radius;
}

static void normals(const drawing *d, uint64_t block, double *values)
{
    const lsi_words r = words_at(&d->at, block);

    if (d->per_block == PER_BLOCK) {
        box_muller32(r.w[0], r.w[1], values);
        box_muller32(r.w[2], r.w[3], values + 2);
    } else {
        box_muller64(r.w, values);
    }
}

/* Standard normal numbers as those of the dtype, with mean and deviation. */
static void scale_normal(const drawing *d, double *values)
{
    switch (d->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        for (int i = 0; i < d->per_block; i++) {                                         \
            values[i] = scaled(LS_##D, rounded(LS_##D, values[i]), d->range, d->a);      \
        }                                                                                \
        break;
        LSI_FLOATS(EACH)
#undef EACH
    default:
        break;
    }
}

static void draw_normal(const drawing *d, uint64_t block, double *values)
{
    normals(d, block, values);
    scale_normal(d, values);
}

static ls_status fill_normal(ls_op_call *k, drawing *d, uint64_t blocks)
{
    const lsi_random_attrs *attrs = k->attrs;

    d->a = rounded(attrs->dtype, attrs->a);
    d->range = rounded(attrs->dtype, attrs->b);
    return fill_drawn(k, d, blocks, NS_A_NORMAL_BLOCK);
}

ls_status lsi_ref_random_normal(ls_op_call *k)
{
    drawing d = {0};

    d.draw = draw_normal;
    return fill_normal(k, &d, 1);
}

/* The group has a stretch of blocks to ask on in; it does not get to its end: of 1024
 * numbers in it 46 are refused. */
static void draw_truncated(const drawing *d, uint64_t block, double *values)
{
    int got = 0;

    for (; got < d->per_block; block++) {
        double fresh[PER_BLOCK] = {0};

        normals(d, block, fresh);
        for (int i = 0; i < d->per_block && got < d->per_block; i++) {
            if (fabs(fresh[i]) < 2.0) {
                values[got++] = fresh[i];
            }
        }
    }
    scale_normal(d, values);
}

ls_status lsi_ref_random_truncated_normal(ls_op_call *k)
{
    const lsi_random_attrs *attrs = k->attrs;
    drawing d = {0};

    d.draw = draw_truncated;
    return fill_normal(
        k, &d, (uint64_t)LSI_TRUNCATED_BLOCKS * PER_BLOCK / (uint64_t)attrs->words);
}

/* ---- dropout ---- */

/* Which elements from `begin` to `end` stay: those whose number is not below the rate. */
static void keep(const ls_random_state *from, double rate, int64_t begin, int64_t end,
                 uint8_t *mask)
{
    const uint32_t threshold = (uint32_t)ceilf((float)rate * 0x1p23F);

    for (int64_t at = begin; at < end; at += PER_BLOCK) {
        const lsi_words r = words_at(from, (uint64_t)(at / PER_BLOCK));
        uint8_t stays[PER_BLOCK];

        for (int i = 0; i < PER_BLOCK; i++) {
            stays[i] = (r.w[i] & 0x7FFFFF) >= threshold;
        }
        if (end - at >= PER_BLOCK) {
            memcpy(mask + at, stays, PER_BLOCK);
        } else {
            memcpy(mask + at, stays, (size_t)(end - at));
        }
    }
}

static void dropout_share(void *arg, int part, int parts)
{
    ls_op_call *k = arg;
    const lsi_random_attrs *attrs = k->attrs;
    const ls_random_state from = state_of(k);
    const double scale = rounded((ls_dtype)k->in[0]->dtype, 1.0 / (1.0 - attrs->a));
    const void *x = k->in[0]->data;
    void *y = k->out[0]->data;
    uint8_t *mask = k->out[1]->data;
    const int64_t n = k->out[0]->count;
    int64_t begin = 0;
    int64_t end = 0;

    lsi_team_share(n, PER_BLOCK, part, parts, &begin, &end);
    keep(&from, attrs->a, begin, end, mask);
    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        for (int64_t i = begin; i < end; i++) {                                          \
            const double v = lsi_get_float(x, LS_##D, i) * scale;                        \
                                                                                         \
            lsi_put_float(y, LS_##D, i, mask[i] != 0 ? v : 0.0); /* drops a NaN, too */  \
        }                                                                                \
        break;
        LSI_FLOATS(EACH)
#undef EACH
    default:
        break;
    }
}

ls_status lsi_ref_dropout(ls_op_call *k)
{
    lsi_team_run(k->team, lsi_parts(k, k->out[0]->count * NS_A_BLOCK / PER_BLOCK),
                 dropout_share, k);
    return LS_OK;
}
