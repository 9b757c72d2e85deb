/* How values are grouped into packs: the arithmetic, for programs. */
#include "cross_replica/cross_replica.h"

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
