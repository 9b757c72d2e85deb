/*
 * Random numbers. Element i comes of block position + i / per_block of the stream, so the
 * result depends on seed and position only, never on how many threads filled it.
 */
#include "kernel/ref/element.h"
#include "kernel/ref/philox.h"
#include "kernel/ref/ref.h"

enum { PER_BLOCK = 4, NS_A_BLOCK = 20, NS_A_NORMAL_BLOCK = 150 };

int lsi_random_per_block(ls_dtype dtype)
{
    return dtype == LS_F64 || lsi_dtype_is_int(dtype) ? PER_BLOCK / 2 : PER_BLOCK;
}

/* Fills values[0 .. per block) with what block `position` gives. */
typedef struct drawing {
    ls_op_call *k;
    const lsi_random_attrs *attrs;
    void (*draw)(const struct drawing *d, uint64_t position, double *values);
    int per_block;
    double lo; /* uniform: the bounds as the dtype has them */
    double hi;
    double below_hi; /* the largest number of the dtype below `hi` */
} drawing;

static void store(ls_dtype dtype, void *to, int64_t at, const double *values, int n)
{
    switch (dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        for (int i = 0; i < n; i++) {                                                    \
            lsi_put(to, LS_##D, at + i, values[i]);                                      \
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

        d->draw(d, d->attrs->position + (uint64_t)b, values);
        store((ls_dtype)y->dtype, y->data, at, values,
              (int)LSI_MIN((int64_t)d->per_block, y->count - at));
    }
}

static ls_status fill(ls_op_call *k, drawing *d, int64_t ns_a_block)
{
    const int64_t n = k->out[0]->count;

    d->k = k;
    d->attrs = k->attrs;
    d->per_block = lsi_random_per_block((ls_dtype)k->out[0]->dtype);
    lsi_team_run(k->team, lsi_parts(k, n / d->per_block * ns_a_block), draw_share, d);
    return LS_OK;
}

/* [0, 1) with `bits` random bits: as many as the dtype's mantissa, so none rounds to 1.
 */
static double unit32(uint32_t word, int bits)
{
    return ldexp((double)(word >> (32 - bits)), -bits);
}

static double unit64(uint32_t high, uint32_t low)
{
    return (double)(((uint64_t)high << 32 | low) >> 12) * 0x1p-52;
}

static int mantissa_bits(ls_dtype dtype)
{
    switch (dtype) {
    case LS_F16:
        return 10;
    case LS_BF16:
        return 7;
    default:
        return 23;
    }
}

static void draw_uniform(const drawing *d, uint64_t position, double *values)
{
    const lsi_words r = lsi_random_words(d->attrs->seed, position, 0);
    const int bits = mantissa_bits(d->attrs->dtype);

    for (int64_t i = 0; i < d->per_block; i++) {
        const double u = d->per_block == PER_BLOCK ? unit32(r.w[i], bits)
                                                   : unit64(r.w[2 * i], r.w[2 * i + 1]);
        const double v = d->lo + u * (d->hi - d->lo);

        values[i] = LSI_MIN(v, d->below_hi);
    }
}

/* What ls_cast() makes of `v` in a floating dtype, as a double again. */
static double rounded(ls_dtype dtype, double v)
{
    uint64_t room; // for an element of any dtype

    lsi_put(&room, dtype, 0, v);
    return lsi_get(&room, dtype, 0);
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
    const ls_op_call *k = arg;
    const lsi_random_attrs *attrs = k->attrs;
    const uint64_t lo = bits_of(attrs->a);
    const uint64_t range = bits_of(attrs->b) - lo; // 0: all of the 2^64
    const int64_t n = k->out[0]->count;
    int64_t begin = 0;
    int64_t end = 0;

    lsi_team_share(n, PER_BLOCK / 2, part, parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const lsi_words r =
            lsi_random_words(attrs->seed, attrs->position + (uint64_t)i / 2, 0);
        const uint64_t word = (uint64_t)r.w[i % 2 * 2] << 32 | r.w[i % 2 * 2 + 1];
        const uint64_t v = lo + (range == 0 ? word : word % range);

        lsi_put_int(k->out[0]->data, (ls_dtype)k->out[0]->dtype, i, (int64_t)v);
    }
}

ls_status lsi_ref_random_uniform(ls_op_call *k)
{
    const lsi_random_attrs *attrs = k->attrs;
    drawing d = {0};

    if (lsi_dtype_is_int(attrs->dtype)) {
        lsi_team_run(k->team, lsi_parts(k, k->out[0]->count * NS_A_BLOCK),
                     uniform_int_share, k);
        return LS_OK;
    }
    d.draw = draw_uniform;
    d.lo = rounded(attrs->dtype, attrs->a);
    d.hi = rounded(attrs->dtype, attrs->b);
    d.below_hi = d.lo < d.hi ? before(attrs->dtype, d.hi) : d.hi;
    return fill(k, &d, NS_A_BLOCK);
}

/* Box and Muller: two uniform numbers give two independent normal ones. */
static void box_muller(double u, double v, double *values)
{
    const double two_pi = 6.28318530717958647692;
    const double radius = sqrt(-2.0 * log(u < 1e-7 ? 1e-7 : u)); // as TensorFlow: not 0

    values[0] = radius * sin(two_pi * v);
    values[1] = radius * cos(two_pi * v);
}

static void normals(const drawing *d, uint64_t position, uint32_t attempt, double *values)
{
    const lsi_words r = lsi_random_words(d->attrs->seed, position, attempt);

    if (d->per_block == PER_BLOCK) {
        box_muller(unit32(r.w[0], 23), unit32(r.w[1], 23), values);
        box_muller(unit32(r.w[2], 23), unit32(r.w[3], 23), values + 2);
    } else {
        box_muller(unit64(r.w[0], r.w[1]), unit64(r.w[2], r.w[3]), values);
    }
}

static void draw_normal(const drawing *d, uint64_t position, double *values)
{
    normals(d, position, 0, values);
    for (int i = 0; i < d->per_block; i++) {
        values[i] = d->attrs->a + d->attrs->b * values[i];
    }
}

ls_status lsi_ref_random_normal(ls_op_call *k)
{
    drawing d = {0};

    d.draw = draw_normal;
    return fill(k, &d, NS_A_NORMAL_BLOCK);
}

/* A block that has not got its numbers asks again in its own place, not in its
 * neighbour's: places stay where they are whatever is refused. */
static void draw_truncated(const drawing *d, uint64_t position, double *values)
{
    int got = 0;

    for (uint32_t attempt = 0; got < d->per_block; attempt++) {
        double fresh[PER_BLOCK] = {0};

        normals(d, position, attempt, fresh);
        for (int i = 0; i < d->per_block && got < d->per_block; i++) {
            if (fabs(fresh[i]) < 2.0) {
                values[got++] = d->attrs->a + d->attrs->b * fresh[i];
            }
        }
    }
}

ls_status lsi_ref_random_truncated_normal(ls_op_call *k)
{
    drawing d = {0};

    d.draw = draw_truncated;
    return fill(k, &d, NS_A_NORMAL_BLOCK);
}

/* Which of the n <= 4 elements of block `b` stay. */
static void keep_block(const lsi_random_attrs *attrs, int64_t b, int n, uint8_t *mask)
{
    const uint32_t threshold = (uint32_t)(attrs->a * 0x1p32);
    const lsi_words r = lsi_random_words(attrs->seed, attrs->position + (uint64_t)b, 0);

    for (int i = 0; i < n; i++) {
        mask[i] = r.w[i] >= threshold;
    }
}

static void dropout_share(void *arg, int part, int parts)
{
    ls_op_call *k = arg;
    const lsi_random_attrs *attrs = k->attrs;
    const double scale = rounded((ls_dtype)k->in[0]->dtype, 1.0 / (1.0 - attrs->a));
    const void *x = k->in[0]->data;
    void *y = k->out[0]->data;
    uint8_t *mask = k->out[1]->data;
    const int64_t n = k->out[0]->count;
    int64_t begin = 0;
    int64_t end = 0;

    lsi_team_share(n, PER_BLOCK, part, parts, &begin, &end);
    for (int64_t at = begin; at < end; at += PER_BLOCK) {
        keep_block(attrs, at / PER_BLOCK, (int)LSI_MIN((int64_t)PER_BLOCK, end - at),
                   mask + at);
    }
    switch (k->in[0]->dtype) {
#define EACH(D, T)                                                                       \
    case LS_##D:                                                                         \
        for (int64_t i = begin; i < end; i++) {                                          \
            lsi_put(y, LS_##D, i, mask[i] != 0 ? lsi_get(x, LS_##D, i) * scale : 0.0);   \
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
