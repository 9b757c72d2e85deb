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

/*
 * The suite `input` otherwise: every position of a line's pipeline is saved here and
 * restored by another process, which is this program run again as a worker.
 */
oracle_verdict oracle_input_elsewhere(const oracle_case *k, char *note, size_t size);
void oracle_elsewhere_prepare(const char *program);
int oracle_elsewhere_worker(const char *folder);
void oracle_elsewhere_report(void);

/* Before the library is used for the first time. */
bool oracle_strategy_prepare(void);
#endif
