/* The sizes of packs: several values that are sent in one message. */
#include "collective/collective.h"

#include "lockstep/cross_device.h"

void lsi_pack_split(size_t total, int packs, size_t *sizes)
{
    const size_t n = (size_t)packs, each = total / n;

    for (size_t i = 0; i < n; i++) {
        sizes[i] = i + 1 < n ? each : total - each * (n - 1);
    }
}

size_t lsi_pack_by_bytes(const size_t *bytes, size_t n, size_t limit, size_t *pack)
{
    size_t packs = 0, held = 0;

    for (size_t i = n; i-- > 0;) {
        if (packs == 0 || (limit > 0 && held > limit)) {
            packs++;
            held = 0;
        }
        held += bytes[i];
        pack[i] = packs - 1;
    }
    return packs;
}

/* ---- for programs ---- */

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
