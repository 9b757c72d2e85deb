/* Reductions cut into ranges of ids: the same bits, however the ids are cut. */
#include "reduce/reduction.h"

#include "ls_test.h"
#include "reduce/reduction_loops.h"
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

enum { IDS = 17, COUNT = 5, WIDE = COUNT * 8 };

static const ls_dtype dtypes[] = {LS_F16, LS_BF16, LS_F32, LS_F64, LS_I8,  LS_I16,
                                  LS_I32, LS_I64,  LS_U8,  LS_U16, LS_U32, LS_U64};

/* What the ids give, and the sum of all of them in one step. */
struct sums {
    _Alignas(64) unsigned char given[IDS][WIDE];
    _Alignas(64) unsigned char want[WIDE];
    _Alignas(64) unsigned char room[IDS][WIDE];
    const void *from[IDS];
};

static void put_float(void *data, ls_dtype dtype, int i, double x)
{
    const lsi_reduction_loops *loops = lsi_reduction_loops_best();
    const float single = (float)x;

    switch (dtype) {
    case LS_F64:
        ((double *)data)[i] = x;
        break;
    case LS_F16:
        loops->to_f16((uint16_t *)data + i, &single, 1);
        break;
    case LS_BF16:
        loops->to_bf16((uint16_t *)data + i, &single, 1);
        break;
    default:
        ((float *)data)[i] = single;
        break;
    }
}

/* Numbers whose sum depends on the order of additions, in every float type. */
static void fill_given(struct sums *s, ls_dtype dtype, ls_reduce op, int n)
{
    uint32_t word = 12345;

    for (int id = 0; id < n; id++) {
        for (int i = 0; i < COUNT; i++) {
            word = word * 1664525u + 1013904223u;
            const double x = (double)(word >> 16) / 4096.0 * (id % 3 == 0 ? 64 : 1);

            if (lsi_dtype_is_float(dtype)) {
                put_float(s->given[id], dtype, i, op == LS_PROD ? 0.75 + x / 4096 : x);
            } else {
                const int64_t integer = (int64_t)(word >> 20);

                memcpy(s->given[id] + (size_t)i * ls_dtype_size(dtype), &integer,
                       ls_dtype_size(dtype));
            }
        }
        s->from[id] = s->given[id];
    }
    lsi_reduce_tree(op, s->from, n, s->want, COUNT, dtype);
}

/* Sums the ranges that `cuts` makes (bit i: between ids i and i + 1), then all. */
static bool cut_is_right(struct sums *s, ls_dtype dtype, ls_reduce op, int n,
                         unsigned cuts)
{
    const lsi_reduction sum = lsi_reduction_of(op, dtype, n);
    lsi_partial_sum parts[IDS + LSI_PARTIALS_MOST];
    _Alignas(64) unsigned char got[WIDE];
    int begin = 0, held = 0;

    for (int end = 1; end <= n; end++) {
        if (end < n && (cuts >> (end - 1) & 1) == 0) {
            continue;
        }
        const int more = lsi_partials_of(begin, end, parts + held);
        for (int i = 0; i < more; i++) {
            parts[held + i].data = s->room[parts[held + i].first];
        }
        lsi_partials_add(&sum, s->from + begin, parts + held, more, COUNT);
        held = lsi_partials_merge(&sum, parts, held + more, COUNT);
        begin = end;
    }
    lsi_partials_finish(&sum, parts, held, got, COUNT);
    return memcmp(got, s->want, COUNT * ls_dtype_size(dtype)) == 0;
}

LST_TEST(all_ways_to_cut_the_ids_give_the_same_bits)
{
    struct sums *s = aligned_alloc(64, sizeof *s);

    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        for (int op = LS_SUM; op <= LS_PROD; op++) {
            for (int n = 1; n <= IDS; n++) {
                int wrong = 0;

                fill_given(s, dtypes[d], (ls_reduce)op, n);
                for (unsigned cuts = 0; cuts < 1u << (n - 1); cuts++) {
                    wrong += !cut_is_right(s, dtypes[d], (ls_reduce)op, n, cuts);
                }
                LST_CHECK(wrong == 0);
            }
        }
    }
    free(s);
}

/* Equal ranges of `ids` ids: merged at once, from partial sums that do not change. */
static bool at_once_is_right(struct sums *s, ls_dtype dtype, ls_reduce op, int n, int ids)
{
    const lsi_reduction sum = lsi_reduction_of(op, dtype, n);
    const size_t bytes = COUNT * ls_dtype_size(dtype);
    static _Alignas(64) unsigned char held[IDS][IDS * WIDE], copy[IDS][IDS * WIDE];
    unsigned char got[2][WIDE];
    const void *from[IDS];
    void *to[2] = {got[0], got[1]};

    memset(held, 0, sizeof held);
    for (int h = 0; h < n / ids; h++) {
        lsi_partial_sum parts[LSI_PARTIALS_MOST];
        const int m = lsi_partials_of(h * ids, (h + 1) * ids, parts);

        for (int i = 0; i < m; i++) {
            parts[i].data = held[h] + (size_t)i * COUNT * lsi_wide_size(dtype);
        }
        lsi_partials_add(&sum, s->from + (size_t)h * (size_t)ids, parts, m, COUNT);
        from[h] = held[h];
    }
    memcpy(copy, held, sizeof held);
    lsi_partials_reduce(&sum, from, n / ids, ids, COUNT, to, 2, COUNT);
    return memcmp(got[0], s->want, bytes) == 0 && memcmp(got[1], s->want, bytes) == 0 &&
           memcmp(copy, held, sizeof held) == 0;
}

LST_TEST(ranges_of_equal_length_are_merged_at_once_to_the_same_bits)
{
    struct sums *s = aligned_alloc(64, sizeof *s);

    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        for (int op = LS_SUM; op <= LS_PROD; op++) {
            for (int n = 1; n <= IDS; n++) {
                fill_given(s, dtypes[d], (ls_reduce)op, n);
                for (int ids = 1; ids <= n; ids++) {
                    LST_CHECK(n % ids != 0 ||
                              at_once_is_right(s, dtypes[d], (ls_reduce)op, n, ids));
                }
            }
        }
    }
    free(s);
}

LST_TEST(a_range_is_handed_on_as_its_complete_subtrees)
{
    lsi_partial_sum p[LSI_PARTIALS_MOST];

    LST_CHECK(lsi_partials_of(3, 3, p) == 0);
    for (int ids = 1; ids <= 64; ids *= 2) {
        LST_CHECK(lsi_partials_of(3 * ids, 4 * ids, p) == 1);
        LST_CHECK(p[0].first == 3 * ids && p[0].ids == ids);
    }
    LST_CHECK(lsi_partials_of(1, 6, p) == 3);
    LST_CHECK(p[0].first == 1 && p[0].ids == 1 && p[1].first == 2 && p[1].ids == 2 &&
              p[2].first == 4 && p[2].ids == 2);
    LST_CHECK(lsi_partials_of(1, 0x7fffffff, p) <= LSI_PARTIALS_MOST);
    for (int begin = 0; begin < 40; begin++) {
        for (int end = begin + 1; end < 80; end++) {
            const int n = lsi_partials_of(begin, end, p);
            int at = begin, levels = 0;

            while ((1 << levels) < end - begin) {
                levels++;
            }
            LST_CHECK(n <= (levels > 0 ? 2 * levels : 1));
            for (int i = 0; i < n; i++) {
                LST_CHECK(p[i].first == at && at % p[i].ids == 0);
                at += p[i].ids;
            }
            LST_CHECK(at == end);
        }
    }
}

LST_MAIN(LST_CASE(all_ways_to_cut_the_ids_give_the_same_bits),
         LST_CASE(ranges_of_equal_length_are_merged_at_once_to_the_same_bits),
         LST_CASE(a_range_is_handed_on_as_its_complete_subtrees))
