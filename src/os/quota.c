/* The CPU quota of the container: more threads than that would wait for each other. */
#include "os/file.h"
#include "os/thread.h"

#include <limits.h>

enum { MOST_BYTES = 256 };

static int cores_of(long long quota_us, long long period_us)
{
    if (quota_us <= 0 || period_us <= 0) {
        return INT_MAX;
    }
    const long long cores = quota_us / period_us + (quota_us % period_us != 0);

    return cores < INT_MAX ? (int)cores : INT_MAX;
}

int lsi_cpu_quota_parse(const char *text)
{
    char *end = NULL;
    const long long quota = strtoll(text, &end, 10); // "max" is no number: none

    return end != text ? cores_of(quota, strtoll(end, NULL, 10)) : INT_MAX;
}

#ifdef __linux__
/* The number in a small file; -1: there is none. */
static long long read_number(const char *path)
{
    void *text = NULL;
    size_t len = 0;
    long long n = -1;

    if (lsi_file_read(path, MOST_BYTES, &text, &len, NULL) == LS_OK) {
        n = strtoll(text, NULL, 10);
        lsi_free(text);
    }
    return n;
}

int lsi_cpu_quota(void)
{
    void *text = NULL;
    size_t len = 0;
    int cores;

    if (lsi_file_read("/sys/fs/cgroup/cpu.max", MOST_BYTES, &text, &len, NULL) == LS_OK) {
        cores = lsi_cpu_quota_parse(text);
        lsi_free(text);
        return cores;
    }
    // Systems with the older kind of control groups.
    return cores_of(read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
                    read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
}
#else
int lsi_cpu_quota(void)
{
    return INT_MAX;
}
#endif
