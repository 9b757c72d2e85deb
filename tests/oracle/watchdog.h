/* A watchdog: ends the program if a line takes too long. */
#ifndef WATCHDOG_H
#define WATCHDOG_H

/* Starts the alarm: ends the program after `seconds` and prints the text. */
void watchdog_start(unsigned seconds, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void watchdog_stop(void);
#endif
