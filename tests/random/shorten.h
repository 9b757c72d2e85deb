/* Shortens a program that fails to one that still fails. */
#ifndef RANDOM_SHORTEN_H
#define RANDOM_SHORTEN_H
#include "os/clock.h"
#include "program.h"

/* Whether the program fails; runs it in a child, as it may crash. */
typedef bool (*fails_fn)(const program *p, void *user);

/* Deletes statements and zeroes numbers for as long as the program fails, until the
 * deadline. */
void program_shorten(program *p, fails_fn fails, void *user, lsi_deadline deadline);
#endif
