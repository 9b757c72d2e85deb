/* Reads the files of a folder once, as libFuzzer does with -runs=0. */
#include "fuzz.h"

#include "ls_test.h"

int main(int argc, char **argv)
{
    const char *folder = argv[argc - 1];
    lsi_names names = {NULL, 0};
    ls_error err = LS_ERROR_INIT;

    if (lsi_folder_list(folder, &names, &err) != LS_OK || names.count == 0) {
        (void)fprintf(stderr, "no seeds in %s: %s\n", folder, err.message);
        return 1;
    }
    for (size_t i = 0; i < names.count; i++) {
        char path[1024];
        void *data = NULL;
        size_t len = 0;

        (void)snprintf(path, sizeof path, "%s/%s", folder, names.names[i]);
        LST_OK(lsi_file_read(path, 1 << 24, &data, &len, &err));
        (void)LLVMFuzzerTestOneInput(data, len);
        lsi_free(data);
    }
    lsi_names_release(&names);
    return atomic_load(&lst_failures) == 0 ? 0 : 1;
}
