/* `lockstep data`: inspects, converts and plans the reading of files of samples. */
#include "cli/data/data_command.h"
#include "os/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cli_data(int argc, char **argv)
{
    static const cli_command tasks[] = {
        {"inspect", "what a file holds, and whether it is whole", data_inspect},
        {"convert", "CSV, NumPy and IDX files to TFRecord, and back", data_convert},
        {"plan", "who reads which file and which sample, before anything runs",
         data_plan},
    };

    return cli_run_task("lockstep data", "task", tasks, LSI_COUNT_OF(tasks), argc, argv);
}

int data_failed(const char *command, const char *what, const ls_error *err)
{
    const char *why =
        err->message[0] != '\0' ? err->message : ls_status_meaning(err->code);

    // The library names the file itself where it can.
    if (what == NULL || strstr(why, what) != NULL) {
        fprintf(stderr, "%s: %s\n", command, why);
    } else {
        fprintf(stderr, "%s: %s: %s\n", command, what, why);
    }
    return CLI_FAILED;
}

ls_status data_no_memory(ls_error *err)
{
    return lsi_fail(err, LS_RESOURCE_EXHAUSTED, -1, "out of memory");
}

ls_status data_system_error(ls_error *err, const char *path)
{
    return lsi_fail_errno(err, errno, "%s", path);
}

ls_status data_each(ls_dataset *d, data_element_fn fn, void *user, ls_error *err)
{
    ls_iterator *it = NULL;
    ls_status st = d != NULL ? ls_dataset_iterate(d, &it, err) : data_no_memory(err);

    while (st == LS_OK) {
        ls_value *element = NULL;

        st = ls_iterator_next(it, &element, err);
        if (st == LS_OK) {
            st = fn(element, user, err);
            ls_value_release(element);
        } else if (st == LS_OUT_OF_RANGE) {
            ls_iterator_release(it);
            return LS_OK;
        }
    }
    ls_iterator_release(it);
    return st;
}

ls_string data_string(const ls_value *element)
{
    const ls_tensor *t = ls_value_as_tensor(element);
    const ls_string none = {"", 0};
    const ls_string *s;

    if (t == NULL || ls_tensor_dtype(t) != LS_STRING || ls_tensor_count(t) != 1) {
        return none;
    }
    s = ls_tensor_data(t);
    return s != NULL ? *s : none;
}

bool data_ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);

    return n > m && strcmp(s + n - m, end) == 0;
}

const char *data_printable(ls_string s, size_t most, char *buf, size_t size)
{
    size_t n = 0, i = 0;

    for (; i < s.len && i < most && n + 8 < size; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];

        if (c < 0x20 || c == 0x7f) {
            n += (size_t)snprintf(buf + n, size - n, "\\x%02x", c);
        } else {
            buf[n++] = (char)c;
        }
    }
    while (i < s.len && n > 0 && ((unsigned char)s.ptr[i] & 0xc0) == 0x80) {
        // The first bytes of a character that was cut are dropped, too.
        i--;
        n--;
    }
    snprintf(buf + n, size - n, "%s", i < s.len ? "..." : "");
    return buf;
}
