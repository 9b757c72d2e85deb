/* An alarm that ends the program and prints which line did not end. */
#include "watchdog.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Globals for the signal handler, which may only call write() and _exit(). */
static char doing[400];
static volatile sig_atomic_t length;

static void give_up(int signal_number)
{
    static const char hang[] = "\nFAILED, did not end: ";

    (void)signal_number;
    if (write(STDERR_FILENO, hang, sizeof hang - 1) < 0 ||
        write(STDERR_FILENO, doing, (size_t)length) < 0) {
        _exit(EXIT_FAILURE); // stderr is closed: only the status is left
    }
    _exit(EXIT_FAILURE);
}

void watchdog_start(unsigned seconds, const char *fmt, ...)
{
    struct sigaction action = {.sa_handler = give_up};
    va_list args;
    int n;

    (void)alarm(0);
    va_start(args, fmt);
    n = vsnprintf(doing, sizeof doing - 1, fmt, args);
    va_end(args);
    n = n < 0 ? 0 : n > (int)sizeof doing - 2 ? (int)sizeof doing - 2 : n;
    doing[n] = '\n';
    length = n + 1;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGALRM, &action, NULL);
    (void)alarm(seconds);
}

void watchdog_stop(void)
{
    (void)alarm(0);
}
