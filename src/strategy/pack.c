/*
 * Packs: many small values as few long ones. Devices of one process share their memory,
 * so nothing is copied together: a pack is a list of segments of the values it holds, and
 * the plan says in which order they are reduced.
 */
#include "strategy/combine.h"

void lsi_plan_clear(lsi_pack_plan *plan)
{
    lsi_free(plan->segments);
    *plan = (lsi_pack_plan){0, NULL};
}

static ls_status reserve(size_t room, lsi_pack_plan *out, ls_error *err)
{
    lsi_segment *segments = lsi_alloc(LSI_MAX(room, 1), sizeof *segments);

    if (segments == NULL) {
        return lsi_fail_memory(err, "a plan of packs", room * sizeof *segments);
    }
    *out = (lsi_pack_plan){0, segments};
    return LS_OK;
}

/* True if no value before `i` has its dtype. */
static bool first_of_dtype(const ls_dtype *dtypes, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (dtypes[k] == dtypes[i]) {
            return false;
        }
    }
    return true;
}

/* Appends the packs of one dtype, which begin as number `pack`: sizes[k] elements each.
 */
static void cut(const size_t *counts, const ls_dtype *dtypes, size_t n, ls_dtype dtype,
                const size_t *sizes, size_t pack, lsi_pack_plan *plan)
{
    size_t left = *sizes;

    for (size_t v = 0; v < n; v++) {
        size_t offset = 0;

        while (dtypes[v] == dtype && offset < counts[v]) {
            while (left == 0) { // fewer elements than packs make empty ones
                left = *++sizes;
                pack++;
            }
            const size_t count = LSI_MIN(left, counts[v] - offset);

            plan->segments[plan->n++] = (lsi_segment){v, offset, count, pack};
            offset += count;
            left -= count;
        }
    }
}

ls_status lsi_plan_split(const size_t *counts, const ls_dtype *dtypes, size_t n,
                         int num_packs, lsi_pack_plan *out, ls_error *err)
{
    const size_t packs = (size_t)num_packs;
    size_t kinds = 0, room;
    size_t *sizes = NULL;
    size_t pack = 0;

    for (size_t v = 0; v < n; v++) {
        kinds += first_of_dtype(dtypes, v);
    }
    // Each boundary between packs of a dtype makes one segment more.
    if (!lsi_mul_size(kinds, packs, &room) || !lsi_add_size(room, n, &room)) {
        return lsi_fail_memory(err, "a plan of packs", SIZE_MAX);
    }
    ls_status st = reserve(room, out, err);
    if (st != LS_OK) {
        return st;
    }
    if (num_packs == 0) {
        for (size_t v = 0; v < n; v++) {
            out->segments[out->n++] = (lsi_segment){v, 0, counts[v], v};
        }
        return LS_OK;
    }
    sizes = lsi_alloc(packs, sizeof *sizes);
    if (sizes == NULL) {
        lsi_plan_clear(out);
        return lsi_fail_memory(err, "the sizes of packs", packs * sizeof *sizes);
    }
    for (size_t v = 0; v < n; v++) {
        size_t total = 0;

        if (!first_of_dtype(dtypes, v)) {
            continue;
        }
        for (size_t k = v; k < n; k++) {
            total += dtypes[k] == dtypes[v] ? counts[k] : 0;
        }
        lsi_pack_split(total, num_packs, sizes);
        cut(counts, dtypes, n, dtypes[v], sizes, pack, out);
        pack += packs;
    }
    lsi_free(sizes);
    return LS_OK;
}

ls_status lsi_plan_group(const size_t *counts, const ls_dtype *dtypes, size_t n,
                         int64_t bytes_per_pack, lsi_pack_plan *out, ls_error *err)
{
    size_t *bytes = lsi_alloc(LSI_MAX(n, 1), 2 * sizeof *bytes);
    ls_status st = LS_OK;

    if (bytes == NULL) {
        return lsi_fail_memory(err, "a plan of packs", 2 * n * sizeof *bytes);
    }
    size_t *group = bytes + n;
    for (size_t v = 0; v < n; v++) {
        bytes[v] = counts[v] * ls_dtype_size(dtypes[v]);
    }
    (void)lsi_pack_by_bytes(bytes, n, (size_t)bytes_per_pack, group);
    st = reserve(n, out, err);
    for (size_t v = n; st == LS_OK && v-- > 0;) {
        out->segments[out->n++] = (lsi_segment){v, 0, counts[v], group[v]};
    }
    lsi_free(bytes);
    return st;
}

ls_status ls_pack_sizes(size_t total, int num_packs, size_t *sizes, ls_error *err)
{
    if (num_packs < 0 || (num_packs > 0 && sizes == NULL)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "packs: num_packs is %d%s; 0 means that nothing is packed",
                             num_packs, sizes == NULL ? " and sizes is NULL" : "");
    }
    if (num_packs > 0) {
        lsi_pack_split(total, num_packs, sizes);
    }
    return LS_OK;
}

ls_status ls_group_by_size(const size_t *bytes, size_t n, int64_t bytes_per_pack,
                           size_t *group, size_t *packs, ls_error *err)
{
    if (bytes_per_pack < 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "packs: bytes_per_pack is %lld; 0 means one pack",
                             (long long)bytes_per_pack);
    }
    if (n > 0 && (bytes == NULL || group == NULL)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "packs: %zu sizes, but bytes or group is NULL", n);
    }
    const size_t made =
        n == 0 ? 0 : lsi_pack_by_bytes(bytes, n, (size_t)bytes_per_pack, group);
    if (packs != NULL) {
        *packs = made;
    }
    return LS_OK;
}
