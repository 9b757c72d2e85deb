/* Names: removing them, making folders, listing folders. */
#include "os/error.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

ls_status lsi_file_remove(const char *path, ls_error *err)
{
    return remove(path) == 0 ? LS_OK
                             : lsi_fail_errno(err, errno, "cannot remove %s", path);
}

ls_status lsi_folder_create(const char *path, ls_error *err)
{
    return mkdir(path, 0777) == 0
               ? LS_OK
               : lsi_fail_errno(err, errno, "cannot make the folder %s", path);
}

void lsi_names_release(lsi_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        lsi_free(names->names[i]);
    }
    lsi_free(names->names);
    memset(names, 0, sizeof *names);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static ls_status append(lsi_names *list, size_t *room, const char *name, ls_error *err)
{
    if (list->count == *room) {
        const size_t more = *room > 0 ? *room * 2 : 16;
        char **grown = lsi_realloc(list->names, list->count, more, sizeof *grown);

        if (grown == NULL) {
            return lsi_fail_memory(err, "the list of a folder", more * sizeof *grown);
        }
        list->names = grown;
        *room = more;
    }
    list->names[list->count] = lsi_strdup(name);
    if (list->names[list->count] == NULL) {
        return lsi_fail_memory(err, "a name in a folder", strlen(name) + 1);
    }
    list->count++;
    return LS_OK;
}

ls_status lsi_folder_list(const char *path, lsi_names *out, ls_error *err)
{
    DIR *dir = opendir(path);
    lsi_names list = {NULL, 0};
    ls_status st = LS_OK;
    size_t room = 0;

    if (dir == NULL) {
        return lsi_fail_errno(err, errno, "cannot list %s", path);
    }
    while (st == LS_OK) {
        const struct dirent *entry;

        errno = 0;
        entry = readdir(dir); // NOLINT(concurrency-mt-unsafe): the stream is ours alone
        if (entry == NULL) {
            if (errno != 0) {
                st = lsi_fail_errno(err, errno, "cannot list %s", path);
            }
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            st = append(&list, &room, entry->d_name, err);
        }
    }
    (void)closedir(dir);
    if (st != LS_OK) {
        lsi_names_release(&list);
        return st;
    }
    if (list.count > 1) {
        qsort(list.names, list.count, sizeof *list.names, by_bytes);
    }
    *out = list;
    return LS_OK;
}
