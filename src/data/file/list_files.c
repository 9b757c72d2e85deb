/* list_files: all files that match patterns, sorted by bytes, optionally shuffled. */
#include "data/data.h"

#include <glob.h>
#include <stdlib.h>

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the files that a pattern matches, which may be none. */
static ls_status add_matches(const char *pattern, bool more, glob_t *found, ls_error *err)
{
    const int flags = GLOB_NOSORT | (more ? GLOB_APPEND : 0);

    // NOLINTNEXTLINE(concurrency-mt-unsafe): only ~ is, which is not asked for
    switch (glob(pattern, flags, NULL, found)) {
    case 0:
    case GLOB_NOMATCH:
        return LS_OK;
    case GLOB_NOSPACE:
        return lsi_fail_memory(err, "a list of files", strlen(pattern));
    default:
        return lsi_fail(err, LS_PERMISSION_DENIED, -1, "cannot read a folder of %s",
                        pattern);
    }
}

static ls_status names_value(char *const *names, size_t n, ls_value **out, ls_error *err)
{
    ls_string *list = lsi_alloc(n, sizeof *list);
    const int64_t dim = (int64_t)n;
    ls_tensor *t = NULL;
    ls_status st;

    if (list == NULL) {
        return lsi_fail_memory(err, "a list of files", n * sizeof *list);
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = (ls_string){names[i], strlen(names[i])};
    }
    st = lsi_tensor_create(NULL, LS_STRING, ls_shape_of(1, &dim), list, &t, err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    lsi_free(list);
    return st;
}

static ls_status find_files(const char *const *patterns, size_t n, ls_value **out,
                            size_t *count, ls_error *err)
{
    glob_t found = {0};
    ls_status st = LS_OK;

    if (n == 0 || patterns == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                             "a list of files needs at least one pattern");
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        st = patterns[i] != NULL
                 ? add_matches(patterns[i], i > 0, &found, err)
                 : lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "pattern %zu of a list of files is NULL", i);
    }
    if (st == LS_OK && found.gl_pathc == 0) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                           "no file matches %.300s%s", patterns[0],
                           n > 1 ? " nor the patterns after it" : "");
    }
    if (st == LS_OK && found.gl_pathv != NULL) {
        qsort(found.gl_pathv, found.gl_pathc, sizeof found.gl_pathv[0], by_bytes);
        *count = found.gl_pathc;
        st = names_value(found.gl_pathv, found.gl_pathc, out, err);
    }
    globfree(&found);
    return st;
}

ls_dataset *ls_dataset_list_files(const char *const *patterns, size_t n, bool ordered,
                                  const int64_t *seed)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *names = NULL;
    ls_dataset *d;
    size_t count = 0;
    const ls_status st = find_files(patterns, n, &names, &count, &err);

    if (st != LS_OK) {
        return lsi_dataset_failed(st, err.kind, "%s", err.message);
    }
    d = ls_dataset_slices(names);
    ls_value_release(names);
    return ordered ? d : ls_dataset_shuffle_with(d, (int64_t)count, seed, false);
}
