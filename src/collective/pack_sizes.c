/* The sizes of packs: several values that are sent in one message. */
#include "collective/collective.h"

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
