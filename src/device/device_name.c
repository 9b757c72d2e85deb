/*
 * Parses device names as tf.DeviceSpec.from_string() and device_util.canonicalize() do.
 */
#include "device/device.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>

enum { MOST_FIELDS = 3 };

/* The parts of a name; -1 or "" where one is missing. */
struct spec {
    char job[64];
    char type[16];
    int replica, task, index;
};

/* A piece of the name, not terminated. */
struct piece {
    const char *s;
    size_t len;
};

static bool piece_is(struct piece p, const char *word)
{
    return p.len == strlen(word) && memcmp(p.s, word, p.len) == 0;
}

static ls_status fail_name(ls_error *err, const char *name, struct piece p,
                           const char *what)
{
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                         "device \"%.160s\": \"%.*s\": %s; write it like \"CPU:0\" or "
                         "\"/job:worker/replica:0/task:1/device:CPU:0\"",
                         name, (int)LSI_MIN(p.len, 64), p.s, what);
}

/* Digits only; "*" leaves *out as it is. */
static ls_status take_number(const char *name, struct piece p, int *out, ls_error *err)
{
    int64_t n = 0;

    if (piece_is(p, "*")) {
        return LS_OK;
    }
    if (p.len == 0) {
        return fail_name(err, name, p, "a number is missing");
    }
    for (size_t i = 0; i < p.len; i++) {
        if (!isdigit((unsigned char)p.s[i])) {
            return fail_name(err, name, p, "not a number");
        }
        n = n * 10 + (p.s[i] - '0');
        if (n > INT_MAX) {
            return fail_name(err, name, p, "the number is too large");
        }
    }
    *out = (int)n;
    return LS_OK;
}

static ls_status take_job(const char *name, struct piece p, struct spec *spec,
                          ls_error *err)
{
    if (piece_is(p, "*")) {
        return LS_OK;
    }
    if (p.len == 0) {
        return fail_name(err, name, p, "the name of the job is missing");
    }
    if (p.len >= sizeof spec->job) {
        return fail_name(err, name, p,
                         "the name of the job is longer than 63 characters");
    }
    for (size_t i = 0; i < p.len; i++) {
        const unsigned char c = (unsigned char)p.s[i];

        if (!isalnum(c) && c != '_' && c != '-' && c != '.') {
            return fail_name(err, name, p,
                             "the name of a job has letters, digits, '_', '-' and '.'");
        }
    }
    memcpy(spec->job, p.s, p.len);
    spec->job[p.len] = '\0';
    return LS_OK;
}

/* The type, in upper case. */
static ls_status take_type(const char *name, struct piece p, struct spec *spec,
                           ls_error *err)
{
    if (spec->type[0] != '\0') {
        return fail_name(err, name, p, "a second device type");
    }
    if (p.len == 0 || p.len >= sizeof spec->type || !isalpha((unsigned char)p.s[0])) {
        return fail_name(
            err, name, p,
            "a device type begins with a letter and has at most 15 characters");
    }
    for (size_t i = 0; i < p.len; i++) {
        const unsigned char c = (unsigned char)p.s[i];

        if (!isalnum(c) && c != '_') {
            return fail_name(err, name, p, "a device type has letters, digits and '_'");
        }
        spec->type[i] = (char)toupper(c);
    }
    spec->type[p.len] = '\0';
    return LS_OK;
}

/* Types that may be written without "device:". */
static bool is_short_type(struct piece p)
{
    static const char *const types[] = {"CPU", "GPU", "TPU"};

    for (size_t t = 0; t < LSI_COUNT_OF(types); t++) {
        size_t i = 0;

        while (i < p.len && toupper((unsigned char)p.s[i]) == types[t][i]) {
            i++; // ends at the terminator of the type at the latest
        }
        if (i == p.len && types[t][i] == '\0') {
            return true;
        }
    }
    return false;
}

/* One part between two slashes, cut at its colons. */
static ls_status take_part(const char *name, struct piece whole, const struct piece *f,
                           size_t n, struct spec *spec, ls_error *err)
{
    ls_status st;

    if (n == 2 && piece_is(f[0], "job")) {
        return take_job(name, f[1], spec, err);
    }
    if (n == 2 && piece_is(f[0], "replica")) {
        return take_number(name, f[1], &spec->replica, err);
    }
    if (n == 2 && piece_is(f[0], "task")) {
        return take_number(name, f[1], &spec->task, err);
    }
    if (n <= 2 && is_short_type(f[0])) {
        st = take_type(name, f[0], spec, err);
        return st == LS_OK && n == 2 ? take_number(name, f[1], &spec->index, err) : st;
    }
    if (n == 3 && piece_is(f[0], "device")) {
        st = take_type(name, f[1], spec, err);
        return st == LS_OK ? take_number(name, f[2], &spec->index, err) : st;
    }
    if (piece_is(f[0], "device")) {
        return fail_name(err, name, whole, "\"device\" takes a type and a number");
    }
    return fail_name(err, name, whole, "neither job, replica, task nor a device");
}

static ls_status parse_name(const char *name, struct spec *spec, ls_error *err)
{
    const char *s = name;

    memset(spec, 0, sizeof *spec);
    spec->replica = spec->task = spec->index = -1;
    for (;;) {
        const struct piece whole = {s, strcspn(s, "/")};
        const char *const end = s + whole.len;
        struct piece fields[MOST_FIELDS];
        size_t n = 0;

        while (whole.len > 0) {
            const size_t len = LSI_MIN(strcspn(s, ":"), (size_t)(end - s));

            if (n == MOST_FIELDS) {
                return fail_name(err, name, whole, "too many colons");
            }
            fields[n++] = (struct piece){s, len};
            s += len;
            if (s == end) {
                break;
            }
            s++; // the colon; at the end of the part an empty field follows
        }
        if (n > 0) { // an empty part is skipped
            const ls_status st = take_part(name, whole, fields, n, spec, err);

            if (st != LS_OK) {
                return st;
            }
        }
        if (*end == '\0') {
            return LS_OK;
        }
        s = end + 1;
    }
}

/* Fills the missing parts of `over` from `under`. */
static void fill_missing(struct spec *over, const struct spec *under)
{
    if (over->job[0] == '\0') {
        memcpy(over->job, under->job, sizeof over->job);
    }
    if (over->type[0] == '\0') {
        memcpy(over->type, under->type, sizeof over->type);
    }
    over->replica = over->replica >= 0 ? over->replica : under->replica;
    over->task = over->task >= 0 ? over->task : under->task;
    over->index = over->index >= 0 ? over->index : under->index;
}

ls_status ls_device_canonicalize(const char *name, const char *defaults, char *buf,
                                 size_t size, ls_error *err)
{
    if (buf == NULL || size == 0) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "canonicalize: buf is NULL or its size is 0");
    }
    return lsi_device_canonical(name, defaults, buf, size, err);
}

ls_status lsi_device_canonical(const char *name, const char *dflt, char *out, size_t size,
                               ls_error *err)
{
    static const struct spec first = {"localhost", "CPU", 0, 0, 0};
    struct spec spec, under;
    ls_status st;
    int len;

    if (name == NULL) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "the name of the device is NULL; write it like \"CPU:0\"");
    }
    st = parse_name(name, &spec, err);
    if (st == LS_OK && dflt != NULL) {
        st = parse_name(dflt, &under, err);
        if (st == LS_OK) {
            fill_missing(&spec, &under);
        }
    }
    if (st != LS_OK) {
        return st;
    }
    fill_missing(&spec, &first);
    len = snprintf(out, size, "/job:%s/replica:%d/task:%d/device:%s:%d", spec.job,
                   spec.replica, spec.task, spec.type, spec.index);
    if (len < 0 || (size_t)len >= size) {
        return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                             "device \"%.160s\": its full name has %d characters, %zu "
                             "are allowed; use a shorter name for the job",
                             name, len, size > 0 ? size - 1 : 0);
    }
    return LS_OK;
}

ls_status lsi_task_name(const char *job, int task, char *out, size_t size, ls_error *err)
{
    const struct piece p = {job, strlen(job)};
    struct spec spec = {.job = ""};
    ls_status st = take_job(job, p, &spec, err);
    int len;

    if (st == LS_OK && (task < 0 || spec.job[0] == '\0')) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "task %d of job \"%.64s\": a task has a job and a number "
                           "from 0 on",
                           task, job);
    }
    if (st != LS_OK) {
        return st;
    }
    len = snprintf(out, size, "/job:%s/replica:0/task:%d", spec.job, task);
    if (len < 0 || (size_t)len >= size) {
        st = lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                           "task %d of job \"%.64s\": its full name has %d characters, "
                           "%zu are allowed; use a shorter name for the job",
                           task, job, len, size > 0 ? size - 1 : 0);
    }
    return st;
}
