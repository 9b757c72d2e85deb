/* Runs programs in this process, which is a child of the test as it may crash or hang. */
#ifndef RANDOM_CHILD_H
#define RANDOM_CHILD_H
#include "program.h"

/* The exit status of a child when the test has found a fault. Others are crashes. */
enum { EXIT_WRONG = 12, EXIT_HANG = 13 };

/*
 * Runs the programs of `count` seeds from `first` on; ends at the first that fails. With
 * `workers` above 1 a program is run by so many workers and compared with one process.
 */
int work_seeds(uint64_t first, uint64_t count, int workers);

/* Runs the program in a file, several times: a failure may depend on timing. */
int work_file(const char *name, uint64_t times, int workers);
#endif
