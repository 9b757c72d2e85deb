/* The suites of the oracle: each is a function that runs one line of its file. */
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
    const char *folder; /* the folder of the file and of its data */
    const char *id;
    json_t *line; /* the whole line */
    int *workers; /* a suite that runs a line by several workers stores how many here */
} oracle_case;

/* The verdict, and in `note` why: what was expected and got, or what is missing. */
typedef oracle_verdict (*oracle_suite)(const oracle_case *k, char *note, size_t size);

oracle_verdict oracle_input(const oracle_case *k, char *note, size_t size);
oracle_verdict oracle_strategy(const oracle_case *k, char *note, size_t size);
oracle_verdict oracle_train(const oracle_case *k, char *note, size_t size);

/*
 * The suite `input` with --other-process: every position of a line's pipeline is saved by
 * this process and restored by another one, which is this program with --restore-from.
 */
oracle_verdict oracle_input_other_process(const oracle_case *k, char *note, size_t size);
void oracle_other_process_prepare(const char *program);
int oracle_other_process_run(const char *folder);
void oracle_other_process_report(void);

/* Must be called before any other call of the library. */
bool oracle_strategy_prepare(void);
#endif
