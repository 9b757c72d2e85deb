/*
 * oracle [--only ID]... [--every N] [--verbose] [--other-process] FILE.jsonl...
 *
 * The oracle test: runs each line of each file against the library and compares the
 * result with the answer on the line, which TensorFlow gave. The suite is chosen by the
 * file's stem. Exit status 0: no line failed.
 *
 *     --only ID         runs the line of that id alone; may be given more than once
 *     --every N         runs every N-th line of a file, to save time
 *     --verbose         also names the lines that passed
 *     --other-process   does not use the answers: saves the position of each line's
 *                       pipeline after every step, continues from it in another process
 *                       (oracle --restore-from FOLDER) and compares the results
 */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct suite {
    const char *stem;
    oracle_suite run;
    bool (*prepare)(void); /* NULL: nothing to prepare */
};

static const struct suite SUITES[] = {
    {"input", oracle_input, NULL},
    {"strategy", oracle_strategy, oracle_strategy_prepare},
    {"train", oracle_train, NULL},
};

/* Lines that are not run, and what each needs that the library does not have yet. */
static const struct {
    const char *id, *why;
} SKIPPED[] = {
    {"D11a", "parameter servers: a dataset of each worker, and scheduled functions"},
    {"D11b", "parameter servers: a dataset of each worker, and scheduled functions"},
    {"D108a", "a data service in processes of its own"},
    {"D108b", "a data service in processes of its own"},
    {"T05.fit1", "the training loop fit()"},
    {"T05.fit2", "the training loop fit()"},
    {"T16.fit1", "the training loop fit()"},
    {"T16.fit2", "the training loop fit()"},
    {"T16.fit4", "the training loop fit()"},
};

/* Why the line is not run; NULL: it is. */
static const char *why_skipped(const char *id)
{
    for (size_t i = 0; i < sizeof SKIPPED / sizeof SKIPPED[0]; i++) {
        if (strcmp(SKIPPED[i].id, id) == 0) {
            return SKIPPED[i].why;
        }
    }
    return NULL;
}

/* The options of the command line, and the results. */
struct tally {
    bool verbose, other_process;
    size_t every;     /* run every N-th line of a file */
    char **arguments; /* of the command line: NULL at its end */
    bool some;        /* the ids that follow an --only */
    size_t count[3];  /* by verdict */
    size_t shared[3]; /* of those, lines that several workers ran */
};

static bool is_wanted(const struct tally *t, const char *id)
{
    for (size_t i = 1; t->some && t->arguments[i] != NULL; i++) {
        if (strcmp(t->arguments[i - 1], "--only") == 0 &&
            strcmp(t->arguments[i], id) == 0) {
            return true;
        }
    }
    return !t->some;
}

static const struct suite *suite_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    const size_t n = strcspn(base, ".");

    for (size_t i = 0; i < sizeof SUITES / sizeof SUITES[0]; i++) {
        if (strlen(SUITES[i].stem) == n && strncmp(SUITES[i].stem, base, n) == 0) {
            return &SUITES[i];
        }
    }
    return NULL;
}

static void run_line(oracle_suite suite, const char *folder, const char *text,
                     size_t number, struct tally *t)
{
    static const char *const words[] = {"ok", "FAILED", "skipped"};
    char note[1600] = "";
    json_error_t error;
    json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    const char *id = json_string_value(json_object_get(line, "id"));
    oracle_verdict v = ORACLE_FAILED;

    if (id == NULL) {
        (void)fprintf(stderr, "line %zu is no case: %s\n", number, error.text);
        t->count[v]++;
    } else if (is_wanted(t, id)) {
        int workers = 1;
        const oracle_case k = {folder, id, line, &workers};

        const char *why = why_skipped(id);

        if (why != NULL) {
            v = ORACLE_SKIPPED;
            (void)snprintf(note, sizeof note, "needs %s", why);
        } else {
            v = suite(&k, note, sizeof note);
        }
        if (note[0] != '\0' || t->verbose) {
            printf("%s %s: %s\n", words[v], id, note);
        }
        t->count[v]++;
        t->shared[v] += workers > 1 ? 1 : 0;
    }
    json_decref(line);
}

/* The next line of any length, without its end; NULL: no more. Free it. */
static char *next_line(FILE *f)
{
    size_t room = 4096, used = 0;
    char *text = malloc(room);

    while (text != NULL && fgets(text + used, (int)(room - used), f) != NULL) {
        used += strlen(text + used);
        if (used > 0 && text[used - 1] == '\n') {
            text[used - 1] = '\0';
            return text;
        }
        if (room - used < 2) {
            char *grown = realloc(text, room *= 2);

            if (grown == NULL) {
                break;
            }
            text = grown;
        }
    }
    if (used == 0) {
        free(text);
        return NULL;
    }
    return text;
}

static bool run_file(const char *path, struct tally *t)
{
    const struct suite *suite = suite_of(path);
    const char *slash = strrchr(path, '/');
    const int length = slash == NULL ? 1 : (int)(slash - path);
    FILE *f = fopen(path, "r");
    char folder[4096];
    char *text;

    if (suite == NULL || f == NULL) {
        (void)fprintf(stderr, "%s: %s\n", path,
                      f == NULL ? "cannot be opened" : "no suite has that name");
        if (f != NULL) {
            (void)fclose(f);
        }
        return false;
    }
    (void)snprintf(folder, sizeof folder, "%.*s", length, slash == NULL ? "." : path);
    for (size_t number = 1; (text = next_line(f)) != NULL; number++) {
        if (text[0] != '\0' && number % t->every == 0) {
            run_line(t->other_process ? oracle_input_other_process : suite->run, folder,
                     text, number, t);
        }
        free(text);
    }
    (void)fclose(f);
    return true;
}

static void print_tally(const struct tally *t)
{
    printf("%zu passed, %zu failed", t->count[ORACLE_PASSED], t->count[ORACLE_FAILED]);
    if (t->count[ORACLE_SKIPPED] > 0) {
        printf(", %zu skipped", t->count[ORACLE_SKIPPED]);
    }
    printf("\n");
    if (t->shared[ORACLE_PASSED] + t->shared[ORACLE_FAILED] > 0) {
        printf("of these, by several workers: %zu passed, %zu failed\n",
               t->shared[ORACLE_PASSED], t->shared[ORACLE_FAILED]);
    }
}

/* Reads the options. Returns the number of files; -1: an unknown option. */
static int read_options(int argc, char **argv, char **files, struct tally *t)
{
    int n = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            t->verbose = true;
        } else if (strcmp(argv[i], "--other-process") == 0) {
            t->other_process = true;
        } else if (strcmp(argv[i], "--every") == 0 && i + 1 < argc) {
            t->every = strtoul(argv[++i], NULL, 10);
            if (t->every == 0) {
                return -1;
            }
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            t->some = true;
            i++;
        } else if (argv[i][0] == '-') {
            return -1;
        } else {
            files[n++] = argv[i];
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    struct tally t = {.arguments = argv, .every = 1};
    char **files = calloc((size_t)argc + 1, sizeof *files);
    const int n = files == NULL ? -1 : read_options(argc, argv, files, &t);
    bool all = true;

    (void)setvbuf(stdout, NULL, _IOLBF,
                  0); // if a line hangs the results before it are printed
    if (argc == 3 && strcmp(argv[1], "--restore-from") == 0) {
        free(files);
        return oracle_other_process_run(argv[2]);
    }
    if (n <= 0) {
        (void)fprintf(stderr, "usage: oracle [--only ID]... [--verbose] "
                              "[--every N] [--other-process] FILE.jsonl...\n");
        free(files);
        return EXIT_FAILURE;
    }
    oracle_other_process_prepare(argv[0]);
    for (int i = 0; i < n; i++) {
        const struct suite *suite = suite_of(files[i]);

        all = (suite == NULL || suite->prepare == NULL || suite->prepare()) && all;
    }
    for (int i = 0; i < n; i++) {
        all = run_file(files[i], &t) && all;
    }
    if (t.other_process) {
        oracle_other_process_report();
    }
    print_tally(&t);
    free(files);
    // A run without a single executed case is a failure.
    return all && t.count[ORACLE_FAILED] == 0 && t.count[ORACLE_PASSED] > 0
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}
