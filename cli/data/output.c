/* Files that appear under their names only when they are whole. */
#include "cli/data/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_WRITE_ALL = 0666 };

/* The umask, which can only be read by setting it. */
static mode_t file_mask(void)
{
    const mode_t mask = umask(0);

    (void)umask(mask);
    return mask;
}

/*
 * Makes a file of a name that cannot be guessed, in the folder of `name`: rename() works
 * only within one file system. NULL: errno says why.
 */
static char *make_beside(const char *name)
{
    const size_t room = strlen(name) + sizeof ".tmp-XXXXXX";
    char *path = malloc(room);
    int fd;

    if (path == NULL) {
        return NULL;
    }
    snprintf(path, room, "%s.tmp-XXXXXX", name);
    fd = mkstemp(path); // fails where something of that name is, a link too
    if (fd < 0 || fchmod(fd, READ_WRITE_ALL & ~file_mask()) != 0) {
        const int why = errno;

        if (fd >= 0) {
            (void)close(fd);
            (void)unlink(path);
        }
        free(path);
        errno = why;
        return NULL;
    }
    (void)close(fd);
    return path;
}

const char *convert_output_add(convert_outputs *o, const char *name, ls_error *err)
{
    convert_output *more = realloc(o->list, (o->n + 1) * sizeof *more);
    convert_output one = {0};

    if (more != NULL) {
        o->list = more;
        one.name = strdup(name);
    }
    if (one.name == NULL) {
        data_no_memory(err);
        return NULL;
    }
    one.temporary = make_beside(name);
    if (one.temporary == NULL) {
        data_system_error(err, name);
        free(one.name);
        return NULL;
    }
    o->list[o->n++] = one;
    return one.temporary;
}

/* Keeps the file that is to be replaced under a second name, if there is one. */
static ls_status keep_older(convert_output *one, ls_error *err)
{
    struct stat info;

    if (lstat(one->name, &info) != 0) {
        return errno == ENOENT ? LS_OK : data_system_error(err, one->name);
    }
    if (S_ISDIR(info.st_mode)) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "%s is a folder: nothing was written", one->name);
    }
    one->older = make_beside(one->name);
    if (one->older == NULL) {
        return data_system_error(err, one->name);
    }
    // A second link where possible, so that the name always has a file.
    if (unlink(one->older) == 0 &&
        (linkat(AT_FDCWD, one->name, AT_FDCWD, one->older, 0) == 0 ||
         rename(one->name, one->older) == 0)) {
        return LS_OK;
    }
    (void)data_system_error(err, one->name);
    free(one->older);
    one->older = NULL;
    return err->code;
}

ls_status convert_outputs_commit(convert_outputs *o, ls_error *err)
{
    for (; o->renamed < o->n; o->renamed++) {
        convert_output *one = &o->list[o->renamed];

        if (keep_older(one, err) != LS_OK) {
            return err->code;
        }
        if (rename(one->temporary, one->name) != 0) {
            return data_system_error(err, one->name);
        }
    }
    return LS_OK;
}

/* Gives the name back to the file that had it before. */
static void undo_output(const convert_output *one, bool renamed)
{
    if (!renamed) {
        (void)unlink(one->temporary);
    }
    if (one->older != NULL) {
        (void)rename(one->older, one->name);
        (void)unlink(one->older); // two names of one file: rename() leaves both
    } else if (renamed) {
        (void)unlink(one->name);
    }
}

void convert_outputs_free(convert_outputs *o, bool keep)
{
    for (size_t i = 0; i < o->n; i++) {
        convert_output *one = &o->list[i];

        if (!keep) {
            undo_output(one, i < o->renamed);
        } else if (one->older != NULL) {
            (void)unlink(one->older);
        }
        free(one->name);
        free(one->temporary);
        free(one->older);
    }
    free(o->list);
    *o = (convert_outputs){0};
}
