/* The path and the memory figures of this process. */
#ifdef __linux__
#define _DEFAULT_SOURCE // NOLINT(bugprone-reserved-identifier): struct rusage
#endif
#include "os/error.h"
#include "os/process.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

ls_status lsi_self_path(char *out, size_t size, ls_error *err)
{
#ifdef __APPLE__
    uint32_t room = (uint32_t)LSI_MIN(size, UINT32_MAX);

    if (_NSGetExecutablePath(out, &room) != 0) {
        return lsi_fail_errno(err, ENAMETOOLONG, "the path of this program");
    }
    return LS_OK;
#else
    const ssize_t n = readlink("/proc/self/exe", out, size);

    if (n < 0) {
        return lsi_fail_errno(err, errno, "cannot read /proc/self/exe");
    }
    if ((size_t)n >= size) { // readlink() truncates silently
        return lsi_fail_errno(err, ENAMETOOLONG, "the path of this program");
    }
    out[n] = '\0';
    return LS_OK;
#endif
}

static int64_t to_ns(struct timeval t)
{
    return (int64_t)t.tv_sec * 1000000000 + (int64_t)t.tv_usec * 1000;
}

/*
 * getrusage() on Linux also counts what the process was before it became this program,
 * its parent's memory after a spawn among it; the kernel's own status file does not.
 */
static size_t peak_rss(const struct rusage *usage)
{
#ifdef __linux__
    size_t kib = (size_t)usage->ru_maxrss;
    FILE *f = fopen("/proc/self/status", "re");
    char line[128];

    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtoul(line + 6, NULL, 10);
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib * 1024;
#else
    return (size_t)usage->ru_maxrss;
#endif
}

void lsi_self_usage(lsi_usage *out)
{
    struct rusage usage;

    memset(&usage, 0, sizeof usage);
    (void)getrusage(RUSAGE_SELF, &usage); // cannot fail with these arguments
    out->peak_rss_bytes = peak_rss(&usage);
    out->minor_faults = (uint64_t)usage.ru_minflt;
    out->major_faults = (uint64_t)usage.ru_majflt;
    out->user_ns = to_ns(usage.ru_utime);
    out->system_ns = to_ns(usage.ru_stime);
}
