/* Runs programs in this process: what may crash or hang is done in a child. */
#ifndef RANDOM_WORKER_H
#define RANDOM_WORKER_H
#include "program.h"

/* How a child ends when the test itself has found something. Others are crashes. */
enum { EXIT_WRONG = 12, EXIT_HANG = 13 };

/* Runs the programs of `count` seeds from `first` on; ends at the first that fails. */
int work_seeds(uint64_t first, uint64_t count);

/* Runs the program in a file, several times: a failure may depend on timing. */
int work_file(const char *name, uint64_t times);
#endif
