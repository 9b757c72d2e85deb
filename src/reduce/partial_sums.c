/*
 * The tree of additions, cut into ranges of ids: what each holder of a range hands on,
 * how neighbours are merged, and the root.
 */
#include "reduce/reduction.h"

/* The largest subtree that begins at `begin` and ends at or before `end`. */
static int largest_subtree(int begin, int end)
{
    int ids = 1;

    while (ids <= (end - begin) / 2 && begin % (2 * ids) == 0) {
        ids *= 2;
    }
    return ids;
}

int lsi_partials_of(int begin, int end, lsi_partial_sum *parts)
{
    int n = 0;

    while (begin < end) {
        const int ids = largest_subtree(begin, end);

        LSI_ASSERT(n < LSI_PARTIALS_MOST);
        parts[n++] = (lsi_partial_sum){begin, ids, NULL};
        begin += ids;
    }
    return n;
}

int lsi_partials_count(int begin, int end)
{
    lsi_partial_sum parts[LSI_PARTIALS_MOST];

    return lsi_partials_of(begin, end, parts);
}

void lsi_partials_add(const lsi_reduction *sum, const void *const *from,
                      const lsi_partial_sum *parts, int n, size_t count)
{
    const lsi_reduction whole = {sum->op, sum->dtype, 1};

    for (int i = 0; i < n; i++) {
        lsi_reduction_run(&whole, from + (parts[i].first - parts[0].first), NULL,
                          parts[i].ids, &parts[i].data, true, 1, count);
    }
}

/* True if the two are the halves of one subtree. */
static bool are_halves(const lsi_partial_sum *left, const lsi_partial_sum *right)
{
    return left->ids == right->ids && left->first % (2 * left->ids) == 0;
}

int lsi_partials_merge(const lsi_reduction *sum, lsi_partial_sum *parts, int n,
                       size_t count)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        LSI_ASSERT(i == 0 ||
                   parts[i].first == parts[kept - 1].first + parts[kept - 1].ids);
        parts[kept++] = parts[i];
        while (kept > 1 && are_halves(&parts[kept - 2], &parts[kept - 1])) {
            lsi_reduction_join(sum, parts[kept - 2].data, parts[kept - 1].data, count);
            parts[kept - 2].ids *= 2;
            kept--;
        }
    }
    return kept;
}

void lsi_partials_finish(const lsi_reduction *sum, lsi_partial_sum *parts, int n,
                         void *to, size_t count)
{
    const bool wide = true;
    const void *root = parts[0].data;

    LSI_ASSERT(n > 0 && parts[0].first == 0);
    // A missing right half is passed through: what is left is joined from the right.
    for (int i = n - 1; i > 0; i--) {
        lsi_reduction_join(sum, parts[i - 1].data, parts[i].data, count);
    }
    lsi_reduction_run(sum, &root, &wide, 1, &to, false, 1, count);
}
