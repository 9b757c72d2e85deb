/*
 * One sum is a chain: the CPU's instruction takes eight bytes and three cycles, and could
 * begin another one every cycle. ISA-L cuts a long record in three and puts the sums
 * together again. Here four records are summed side by side, which needs no putting
 * together: three by that instruction, and the fourth by carry-less products, which
 * another part of the CPU makes meanwhile.
 */
#include "data/crc32c.h"

#include <isa-l.h>
#include <string.h>

enum {
    LINE = 64,   // bytes of a cache line
    SHORT = 128, // below that one chain is done before three would be put together
};

static uint32_t mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

/* The sum so far, not inverted, with `len` bytes more. */
static uint32_t extend_long(uint32_t crc, const void *data, size_t len)
{
    const unsigned char *p = data;

    while (len > 0) {
        const int part = (int)LSI_MIN(len, (size_t)1 << 30);

        crc = crc32_iscsi((unsigned char *)(uintptr_t)p, part, crc); // only reads
        p += part;
        len -= (size_t)part;
    }
    return crc;
}

#if defined(__x86_64__)
#include <immintrin.h>
#define WITH_CRC __attribute__((target("sse4.2,pclmul")))
#define INLINE static inline __attribute__((always_inline))

static bool has_crc(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

INLINE uint64_t word(const char *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof x);
    return x;
}

WITH_CRC INLINE uint32_t extend_short(uint32_t crc, const void *data, size_t len)
{
    const char *p = data;
    uint64_t sum = crc;

    for (; len >= sizeof(uint64_t); p += sizeof(uint64_t), len -= sizeof(uint64_t)) {
        sum = _mm_crc32_u64(sum, word(p));
    }
    crc = (uint32_t)sum;
    for (; len > 0; p++, len--) {
        crc = _mm_crc32_u8(crc, (unsigned char)*p);
    }
    return crc;
}

WITH_CRC static uint32_t extend_by_one(uint32_t crc, const void *data, size_t len)
{
    return extend_short(crc, data, len);
}

static uint32_t extend(uint32_t crc, const void *data, size_t len)
{
    return len < SHORT && has_crc() ? extend_by_one(crc, data, len)
                                    : extend_long(crc, data, len);
}

INLINE __m128i load(const char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* What `x` means for the sum some bytes further on, which `far` says; with `next`. */
WITH_CRC INLINE __m128i fold(__m128i x, __m128i far, __m128i next)
{
    const __m128i low = _mm_clmulepi64_si128(x, far, 0x00);
    const __m128i high = _mm_clmulepi64_si128(x, far, 0x11);

    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* The sum that four parts of a line stand for. */
WITH_CRC INLINE uint32_t join(const __m128i part[4])
{
    const __m128i far = _mm_setr_epi32((int)0xf20c0dfe, 0, 0x493c7d27, 0); // 16 bytes
    __m128i x = part[0];

    for (int i = 1; i < 4; i++) {
        x = fold(x, far, part[i]);
    }
    const uint64_t sum = _mm_crc32_u64(0, (uint64_t)_mm_extract_epi64(x, 0));
    return (uint32_t)_mm_crc32_u64(sum, (uint64_t)_mm_extract_epi64(x, 1));
}

/* The first `bytes` of each lane, whole lines and at least one. */
WITH_CRC static void sum_lanes(const ls_string *records, size_t bytes, uint32_t *sums)
{
    const __m128i far = _mm_setr_epi32(0x740eef02, 0, (int)0x9e4addf8, 0); // a line
    const char *a = records[0].ptr, *b = records[1].ptr, *c = records[2].ptr,
               *d = records[3].ptr;
    uint64_t x = UINT32_MAX, y = UINT32_MAX, z = UINT32_MAX;
    __m128i w[4] = {load(d), load(d + 16), load(d + 32), load(d + 48)};

    w[0] = _mm_xor_si128(w[0], _mm_cvtsi32_si128(-1));
    for (size_t at = 0; at < bytes; at += LINE) {
        for (size_t i = at; i < at + LINE; i += sizeof(uint64_t)) {
            x = _mm_crc32_u64(x, word(a + i));
            y = _mm_crc32_u64(y, word(b + i));
            z = _mm_crc32_u64(z, word(c + i));
        }
        for (size_t i = 0; at > 0 && i < 4; i++) {
            w[i] = fold(w[i], far, load(d + at + 16 * i));
        }
    }
    sums[0] = (uint32_t)x;
    sums[1] = (uint32_t)y;
    sums[2] = (uint32_t)z;
    sums[3] = join(w);
}

/* LSI_CRC_LANES records: as far as all of them go side by side, then each to its end. */
WITH_CRC static void sum_side_by_side(const ls_string *records, uint32_t *sums)
{
    const size_t least = LSI_MIN(LSI_MIN(records[0].len, records[1].len),
                                 LSI_MIN(records[2].len, records[3].len));
    const size_t common = least / LINE * LINE;

    if (common > 0) {
        sum_lanes(records, common, sums);
    }
    for (int lane = 0; lane < LSI_CRC_LANES; lane++) {
        const uint32_t crc = common > 0 ? sums[lane] : UINT32_MAX;
        const char *rest = records[lane].ptr + common;
        const size_t len = records[lane].len - common;

        sums[lane] = mask(
            ~(len < SHORT ? extend_short(crc, rest, len) : extend_long(crc, rest, len)));
    }
}

/* As many as there are whole groups of; returns how many those were. */
static size_t sum_groups(const ls_string *records, size_t n, uint32_t *sums)
{
    size_t i = 0;

    for (; has_crc() && n - i >= LSI_CRC_LANES; i += LSI_CRC_LANES) {
        sum_side_by_side(records + i, sums + i);
    }
    return i;
}

#else
static uint32_t extend(uint32_t crc, const void *data, size_t len)
{
    return extend_long(crc, data, len);
}

static size_t sum_groups(const ls_string *records, size_t n, uint32_t *sums)
{
    (void)records;
    (void)n;
    (void)sums;
    return 0;
}
#endif

uint32_t lsi_crc32c(const void *data, size_t len)
{
    return ~extend(UINT32_MAX, data, len);
}

uint32_t lsi_crc32c_masked(const void *data, size_t len)
{
    return mask(lsi_crc32c(data, len));
}

void lsi_crc32c_records(const ls_string *records, size_t n, uint32_t *sums)
{
    for (size_t i = sum_groups(records, n, sums); i < n; i++) {
        sums[i] = lsi_crc32c_masked(records[i].ptr, records[i].len);
    }
}
