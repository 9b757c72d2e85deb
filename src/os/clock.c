/* The monotonic clock, sleeping, and deadlines. */
#include "os/clock.h"

#include <errno.h>
#include <limits.h>

#define NS_PER_S 1000000000
#define NS_PER_MS 1000000

int64_t lsi_now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t); // cannot fail: the clock is in POSIX
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

void lsi_sleep_ns(int64_t ns)
{
    if (ns > 0) {
        struct timespec left = {.tv_sec = (time_t)(ns / NS_PER_S),
                                .tv_nsec = (long)(ns % NS_PER_S)};

        while (nanosleep(&left, &left) != 0 && errno == EINTR) {
            // a signal handler ran: sleep what is left
        }
    }
}

lsi_deadline lsi_deadline_in_ms(int64_t ms)
{
    int64_t ns;

    if (ms < 0 || __builtin_mul_overflow(ms, (int64_t)NS_PER_MS, &ns) ||
        __builtin_add_overflow(ns, lsi_now_ns(), &ns)) {
        return LSI_DEADLINE_NEVER;
    }
    return ns;
}

int64_t lsi_deadline_left_ns(lsi_deadline deadline)
{
    int64_t now;

    if (deadline == LSI_DEADLINE_NEVER) {
        return INT64_MAX;
    }
    now = lsi_now_ns();
    return deadline > now ? deadline - now : 0;
}

bool lsi_deadline_passed(lsi_deadline deadline)
{
    return lsi_deadline_left_ns(deadline) == 0;
}

int lsi_deadline_poll_ms(lsi_deadline deadline)
{
    const int64_t ns = lsi_deadline_left_ns(deadline);
    int64_t ms;

    if (ns == INT64_MAX) {
        return -1;
    }
    ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);
    return ms < INT_MAX ? (int)ms : INT_MAX;
}
