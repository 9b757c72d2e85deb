/* The devices of a strategy, by their names. */
#include "strategy/device_list.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 256 };

/* The length of the job and task in a canonical name: "/job:worker/replica:0/task:1". */
static size_t task_length(const char *canonical)
{
    const char *device = strstr(canonical, "/device:");

    return device == NULL ? strlen(canonical) : (size_t)(device - canonical);
}

static bool is_local(const char *canonical)
{
    return strncmp(canonical, "/job:localhost/", strlen("/job:localhost/")) == 0;
}

/* Copies the next name of the list without spaces around it; NULL: no more names. */
static const char *next_name(const char *list, char *name)
{
    size_t n;

    while (*list == ' ' || *list == ',') {
        list++;
    }
    if (*list == '\0') {
        return NULL;
    }
    n = strcspn(list, ",");
    (void)snprintf(name, NAME, "%.*s", (int)LSI_MIN(n, (size_t)NAME - 1), list);
    for (size_t end = strlen(name); end > 0 && name[end - 1] == ' '; end--) {
        name[end - 1] = '\0';
    }
    return list + n;
}

/*
 * Checks that all names are of one task, or of localhost; `first` is the canonical name
 * of the first.
 */
static ls_status check_task(const char *first, const char *canonical, ls_error *err)
{
    if (is_local(first) != is_local(canonical)) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "devices: %s and %s: localhost cannot be mixed with other "
                             "jobs",
                             first, canonical);
    }
    if (task_length(first) != task_length(canonical) ||
        strncmp(first, canonical, task_length(first)) != 0) {
        return lsi_fail_kind(err, LS_FAILED_PRECONDITION, LS_KIND_RUNTIME,
                             "devices: %s and %s are of different tasks; a strategy of "
                             "several workers runs a process on each",
                             first, canonical);
    }
    return LS_OK;
}

static ls_status check_twice(ls_device *const *devices, int n, ls_error *err)
{
    for (int i = 0; i + 1 < n; i++) {
        if (devices[i] == devices[n - 1]) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_ASSERT,
                                 "devices: %s is named twice", devices[i]->name);
        }
    }
    return LS_OK;
}

static ls_status parse_names(ls_runtime *rt, const char *names, ls_device **devices,
                             int *n, ls_error *err)
{
    char name[NAME], first[NAME] = "", canonical[NAME];
    ls_status st = LS_OK;

    /* Parses all names before it finds devices: a mixture of tasks is reported first. */
    for (const char *at = names; st == LS_OK && (at = next_name(at, name)) != NULL;) {
        st = lsi_device_canonical(name, lsi_runtime_task(rt), canonical, sizeof canonical,
                                  err);
        if (st == LS_OK && first[0] == '\0') {
            memcpy(first, canonical, sizeof first);
        } else if (st == LS_OK) {
            st = check_task(first, canonical, err);
        }
    }
    for (const char *at = names; st == LS_OK && (at = next_name(at, name)) != NULL;) {
        st = ls_runtime_find_device(rt, name, &devices[*n], err);
        if (st == LS_OK) {
            (*n)++;
            st = check_twice(devices, *n, err);
        }
    }
    return st;
}

ls_status lsi_devices_parse(ls_runtime *rt, const char *names, int count,
                            ls_device ***out, int *n, ls_error *err)
{
    char name[NAME];
    size_t room = 0;
    ls_device **devices;
    ls_status st = LS_OK;

    if (rt == NULL) {
        rt = lsi_runtime_default();
        if (rt == NULL) {
            return lsi_fail_memory(err, "the default runtime", sizeof(ls_device));
        }
    }
    for (const char *at = names == NULL ? "" : names;
         (at = next_name(at, name)) != NULL;) {
        room++;
    }
    if (count == 0) {
        count = ls_runtime_device_count(rt);
    }
    devices = lsi_alloc(LSI_MAX(room, (size_t)count), sizeof(ls_device *));
    if (devices == NULL) {
        return lsi_fail_memory(err, "the devices of a strategy", sizeof(ls_device *));
    }
    *n = 0;
    if (room > 0) {
        st = parse_names(rt, names, devices, n, err);
    } else {
        for (*n = 0; *n < count; (*n)++) {
            devices[*n] = ls_runtime_device(rt, *n);
        }
    }
    if (st != LS_OK) {
        lsi_free(devices);
        return st;
    }
    *out = devices;
    return LS_OK;
}
