/* Time that never runs backwards, and the moment a wait has to end. */
#ifndef LSI_CLOCK_H
#define LSI_CLOCK_H
#include "base/base.h"

/* A moment of lsi_now_ns(); a wait that reaches it gives LS_DEADLINE_EXCEEDED. */
typedef int64_t lsi_deadline;
#define LSI_DEADLINE_NEVER INT64_MAX

int64_t lsi_now_ns(void);
void lsi_sleep_ns(int64_t ns); /* all of it, whatever signals come */

/* `ms` from now; negative or too far away to be counted: never. */
lsi_deadline lsi_deadline_in_ms(int64_t ms);

/* What is left, 0 if it has passed, INT64_MAX if it never comes. */
int64_t lsi_deadline_left_ns(lsi_deadline deadline);
bool lsi_deadline_passed(lsi_deadline deadline);

/*
 * What poll() takes: -1 for never; rounded up, so that a wait does not end a fraction of
 * a millisecond early and spin.
 */
int lsi_deadline_poll_ms(lsi_deadline deadline);
#endif
