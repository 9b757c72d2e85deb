/* Ends the program if a line does not end: a hanging library must not hang its test. */
#ifndef WATCHDOG_H
#define WATCHDOG_H

/* From now on `seconds` are left to do what the text says. */
void watchdog_start(unsigned seconds, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void watchdog_stop(void);
#endif
