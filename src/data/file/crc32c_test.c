/* CRC-32C against a computation bit by bit, for single records and for groups. */
#include "data/file/crc32c.h"
#include "ls_test.h"

/* Computed bit by bit from the polynomial. */
static uint32_t plainly(const char *p, size_t n)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned char)p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
        }
    }
    return ~crc;
}

static uint32_t masked(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

static void fill(char *p, size_t n)
{
    uint64_t state = 5;

    for (size_t i = 0; i < n; i++) {
        p[i] = (char)lst_random(&state);
    }
}

LST_TEST(checksums_are_castagnolis)
{
    LST_CHECK(lsi_crc32c("123456789", 9) == 0xE3069283u);
    LST_CHECK(lsi_crc32c("abc", 3) == 0x364b3fb7u && lsi_crc32c("", 0) == 0);
    LST_CHECK(lsi_crc32c_masked("abc", 3) == masked(0x364b3fb7u));
}

LST_TEST(every_length_at_every_address_has_its_sum)
{
    char bytes[700];

    fill(bytes, sizeof bytes);
    for (size_t at = 0; at < 9; at++) {
        for (size_t n = 0; n < sizeof bytes - 9; n += n < 140 ? 1 : 37) {
            LST_CHECK(lsi_crc32c(bytes + at, n) == plainly(bytes + at, n));
        }
    }
}

LST_TEST(records_side_by_side_have_their_own_sums)
{
    static const size_t lengths[] = {0, 1, 63, 64, 65, 127, 128, 200, 640, 1024, 1031};
    enum { MOST = 17 }; /* all combinations of group sizes */
    char bytes[1100];
    uint64_t state = 11;

    fill(bytes, sizeof bytes);
    for (int round = 0; round < 400; round++) {
        const size_t n = (size_t)round % (MOST + 1);
        ls_string records[MOST];
        uint32_t sums[MOST];

        for (size_t i = 0; i < n; i++) {
            const size_t len = lengths[lst_random(&state) % LSI_COUNT_OF(lengths)];

            records[i] = (ls_string){bytes + lst_random(&state) % 69, len};
        }
        lsi_crc32c_records(records, n, sums);
        for (size_t i = 0; i < n; i++) {
            LST_CHECK(sums[i] == masked(plainly(records[i].ptr, records[i].len)));
        }
    }
}

LST_MAIN(LST_CASE(checksums_are_castagnolis),
         LST_CASE(every_length_at_every_address_has_its_sum),
         LST_CASE(records_side_by_side_have_their_own_sums))
