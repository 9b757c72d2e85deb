/* Helpers of file tests: a temporary folder, files from hex, failing calls, saving. */
#ifndef LST_FILE_CASES_H
#define LST_FILE_CASES_H
#include "data/data_test.h"
#include "os/file.h"

#include <ctype.h>
#include <unistd.h>

typedef struct lst_folder {
    char path[64];
    char names[4][160];
    int turn;
} lst_folder;

static inline void lst_enter(lst_folder *at)
{
    at->turn = 0;
    (void)snprintf(at->path, sizeof at->path, "/tmp/ls-data-XXXXXX");
    LST_CHECK(mkdtemp(at->path) != NULL);
}

static inline void lst_leave(const lst_folder *at)
{
    lsi_names left = {NULL, 0};

    LST_OK(lsi_folder_list(at->path, &left, NULL));
    for (size_t i = 0; i < left.count; i++) {
        char path[400];

        (void)snprintf(path, sizeof path, "%s/%s", at->path, left.names[i]);
        LST_OK(lsi_file_remove(path, NULL));
    }
    lsi_names_release(&left);
    LST_OK(lsi_file_remove(at->path, NULL));
}

/* The path of a file in the folder; valid until the fourth call after it. */
static inline const char *lst_path(lst_folder *at, const char *name)
{
    char *path = at->names[at->turn++ % 4];
    const size_t len = strlen(at->path), more = strlen(name);

    LST_CHECK(len + more + 2 <= sizeof at->names[0]);
    memcpy(path, at->path, len);
    path[len] = '/';
    memcpy(path + len + 1, name, more + 1);
    return path;
}

static inline const char *lst_file(lst_folder *at, const char *name, const void *data,
                                   size_t len)
{
    const char *path = lst_path(at, name);

    LST_OK(lsi_file_write_atomic(path, data, len, NULL));
    return path;
}

static inline const char *lst_text_file(lst_folder *at, const char *name, const char *s)
{
    return lst_file(at, name, s, strlen(s));
}

static inline unsigned lst_nibble(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Bytes from hex; "20*58." means 58 times the byte 20. Returns how many. */
static inline size_t lst_unhex(const char *hex, uint8_t *to, size_t room)
{
    size_t n = 0;

    while (*hex != '\0') {
        const uint8_t byte = (uint8_t)(lst_nibble(hex[0]) << 4 | lst_nibble(hex[1]));
        size_t times = 1;

        hex += 2;
        if (*hex == '*') {
            char *end;

            times = strtoul(hex + 1, &end, 10);
            hex = end + 1;
        }
        for (; times > 0 && n < room; times--) {
            to[n++] = byte;
        }
    }
    return n;
}

static inline const char *lst_hex_file(lst_folder *at, const char *name, const char *hex)
{
    static uint8_t bytes[8192];

    return lst_file(at, name, bytes, lst_unhex(hex, bytes, sizeof bytes));
}

/* Call number `call` (from 0) fails with `code`, and the message has all the words. */
static inline bool lst_says(ls_dataset *d, int call, ls_status code, const char *a,
                            const char *b)
{
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    ls_status st = ls_dataset_iterate(d, &it, &err);
    bool good;

    for (int i = 0; i <= call && it != NULL; i++) {
        ls_value *v = NULL;

        st = ls_iterator_next(it, &v, &err);
        ls_value_release(v);
    }
    good = st == code && strstr(err.message, a) != NULL && strstr(err.message, b) != NULL;
    if (!good) {
        (void)fprintf(stderr, "  gave %s: %s\n", ls_status_name(st), err.message);
    }
    ls_iterator_release(it);
    ls_dataset_release(d);
    return good;
}

/*
 * For every k: after k calls, a new iterator with the saved state restored returns the
 * same elements as the first one. The dataset is released.
 */
static inline void lst_saves(ls_dataset *d, int calls)
{
    for (int k = 0; k <= calls; k++) {
        lst_text plain = {{0}, 0}, again = {{0}, 0};
        ls_iterator *a = NULL, *b = NULL;
        ls_value *state = NULL, *v = NULL;
        ls_error err = LS_ERROR_INIT;

        LST_OK(ls_dataset_iterate(d, &a, &err));
        LST_OK(ls_dataset_iterate(d, &b, &err));
        for (int i = 0; i < k; i++) {
            v = NULL;
            (void)!ls_iterator_next(a, &v, &err);
            ls_value_release(v);
        }
        v = NULL;
        (void)!ls_iterator_next(b, &v, &err); // a position that restoring replaces
        ls_value_release(v);
        LST_OK(ls_iterator_save(a, &state, &err));
        LST_OK(ls_iterator_restore(b, state, &err));
        lst_put_rest(&plain, a, 60);
        lst_put_rest(&again, b, 60);
        LST_CHECK(lst_same(&again, plain.s));
        ls_value_release(state);
        ls_iterator_release(a);
        ls_iterator_release(b);
    }
    ls_dataset_release(d);
}
#endif
