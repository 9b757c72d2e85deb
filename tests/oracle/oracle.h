/* What a suite is: a function that runs one line of its file. */
#ifndef ORACLE_H
#define ORACLE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum oracle_verdict {
    ORACLE_PASSED,
    ORACLE_FAILED,
    ORACLE_SKIPPED
} oracle_verdict;

typedef struct oracle_case {
    const char *folder; /* where the file stands: its data stand beside it */
    const char *id;
    json_t *line; /* the whole line */
} oracle_case;

/* The verdict, and in `note` why: what was expected and got, or what is missing. */
typedef oracle_verdict (*oracle_suite)(const oracle_case *k, char *note, size_t size);

oracle_verdict oracle_input(const oracle_case *k, char *note, size_t size);
oracle_verdict oracle_strategy(const oracle_case *k, char *note, size_t size);
oracle_verdict oracle_train(const oracle_case *k, char *note, size_t size);

/* Before the library is used for the first time. */
bool oracle_strategy_prepare(void);
#endif
