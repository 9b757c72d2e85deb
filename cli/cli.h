/* What the subcommands share: options, help and messages about mistakes. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses: success; failure; a mistake in the command line. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

typedef struct cli_command {
    const char *name;
    const char *summary; /* one line */
    int (*run)(int argc, char **argv);
} cli_command;

typedef enum cli_kind {
    CLI_FLAG,    /* bool */
    CLI_TEXT,    /* const char * */
    CLI_COUNT,   /* int, at least 1 */
    CLI_SECONDS, /* double, above 0 */
    CLI_NUMBER,  /* the same */
    CLI_WHOLE,   /* cli_whole */
} cli_kind;

/* A whole number from `least` to `most`; `value` is the default before. */
typedef struct cli_whole {
    int64_t value, least, most;
} cli_whole;

typedef struct cli_option {
    const char *name;  /* "--threads" */
    const char *value; /* "N", for the help; NULL for a flag */
    cli_kind kind;
    void *out;
    const char *help;
} cli_option;

/* A command as its help shows it. */
typedef struct cli_usage {
    const char *command; /* "lockstep bench op" */
    const char *text;    /* what it does, whole lines */
    const cli_option *options;
    size_t count;
    const char *words; /* "FILE": arguments that are no options; NULL: none */
} cli_usage;

/*
 * Fills the options from argv[1..]. True: go on; the words are argv[1], argv[2] ... up to
 * a NULL. False: *status is the exit status, and the help, or what is wrong and the nearest
 * right name, was printed.
 */
bool cli_parse(const cli_usage *usage, int argc, char **argv, int *status);

/* The one of `names` that `word` is nearest to by its letters; NULL: none is near. */
const char *cli_nearest(const char *word, const char *const *names, size_t count);

/* "lockstep: unknown command 'inof'; did you mean 'info'?" on stderr; returns CLI_USAGE.
 */
int cli_unknown(const char *command, const char *what, const char *word,
                const char *const *names, size_t count);

/*
 * Runs the task that argv[1] names. `what` is what tasks are called in messages, "task".
 * Without a name it fails with CLI_USAGE; --help prints the list of them.
 */
int cli_run_task(const char *command, const char *what, const cli_command *tasks,
                 size_t count, int argc, char **argv);

/* "COMMAND: WHAT" and where the help is on stderr; returns CLI_USAGE. */
int cli_misuse(const char *command, const char *what);

/* The name of a file, or another text that may hold any bytes, as a string of JSON: bytes
 * that are no UTF-8 stand there as \xNN. NULL: no memory. */
struct json_t;
struct json_t *cli_json_text(const char *text);

/* Prints `o` as a line and releases it; `flags` are those of json_dumpf(). NULL: there was
 * no memory for it, and a message on stderr says so. */
int cli_print_json(const char *command, struct json_t *o, size_t flags);

int cli_info(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_data(int argc, char **argv);
#endif
