/* Fuzz target for NumPy's files and IDX: the first byte chooses. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path;

    if (size < 1) {
        return 0;
    }
    path = fuzz_file(data + 1, size - 1);
    switch (data[0] % 3) {
    case 0:
        fuzz_read(ls_dataset_npy(path), 2);
        break;
    case 1:
        fuzz_read(ls_dataset_npz(path), 2);
        break;
    default:
        fuzz_read(ls_dataset_idx(path), 2);
    }
    return 0;
}
