/* Files that appear under their names only when they are whole. */
#include "data_convert.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool grow(char ***list, size_t n)
{
    char **more = (char **)realloc((void *)*list, (n + 1) * sizeof *more);

    if (more == NULL) {
        return false;
    }
    *list = more;
    return true;
}

const char *convert_output_add(convert_outputs *o, const char *name)
{
    const size_t room = strlen(name) + 32;
    char *final = NULL, *temporary = NULL;

    if (!grow(&o->names, o->n) || !grow(&o->temporary, o->n)) {
        return NULL;
    }
    final = strdup(name);
    temporary = malloc(room);
    if (final == NULL || temporary == NULL) {
        free(final);
        free(temporary);
        return NULL;
    }
    // In the same folder: a name can only be changed within one file system.
    snprintf(temporary, room, "%s.tmp-%ld", name, (long)getpid());
    o->names[o->n] = final;
    o->temporary[o->n] = temporary;
    o->n++;
    return temporary;
}

ls_status convert_outputs_commit(convert_outputs *o, ls_error *err)
{
    for (; o->renamed < o->n; o->renamed++) {
        if (rename(o->temporary[o->renamed], o->names[o->renamed]) != 0) {
            return data_system_error(err, o->names[o->renamed]);
        }
    }
    return LS_OK;
}

void convert_outputs_free(convert_outputs *o, bool keep)
{
    for (size_t i = 0; i < o->n; i++) {
        if (!keep) {
            (void)unlink(i < o->renamed ? o->names[i] : o->temporary[i]);
        }
        free(o->names[i]);
        free(o->temporary[i]);
    }
    free((void *)o->names);
    free((void *)o->temporary);
    *o = (convert_outputs){0};
}
