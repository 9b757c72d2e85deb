/* Fuzz target for NumPy's files and IDX: the first byte chooses. */
#include "fuzz.h"

static void read_headers(const char *path)
{
    ls_array_header *headers = NULL;
    ls_error err = LS_ERROR_INIT;
    size_t n = 0;

    if (ls_array_headers(path, &headers, &n, &err) != LS_OK) {
        FUZZ_CHECK(err.message[0] != '\0');
    }
    for (size_t i = 0; i < n; i++) {
        FUZZ_CHECK(headers[i].name != NULL);
    }
    ls_array_headers_release(headers, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path;

    if (size < 1) {
        return 0;
    }
    path = fuzz_file(data + 1, size - 1);
    read_headers(path);
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
