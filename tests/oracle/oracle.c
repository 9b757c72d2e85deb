/*
 * oracle FILE.jsonl...
 *
 * Runs each line of each file against the library and compares with the answer on the
 * line, which TensorFlow gave. The suite is chosen by the file's stem. Exit status 0: no
 * line failed.
 */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *stem;
    oracle_suite run;
} SUITES[] = {
    {"train", oracle_train},
};

struct tally {
    size_t count[3]; /* by verdict */
};

static oracle_suite suite_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    const size_t n = strcspn(base, ".");

    for (size_t i = 0; i < sizeof SUITES / sizeof SUITES[0]; i++) {
        if (strlen(SUITES[i].stem) == n && strncmp(SUITES[i].stem, base, n) == 0) {
            return SUITES[i].run;
        }
    }
    return NULL;
}

static void run_line(oracle_suite suite, const char *folder, const char *text,
                     size_t number, struct tally *t)
{
    static const char *const words[] = {"ok", "FAILED", "skipped"};
    char note[600] = "";
    json_error_t error;
    json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    const char *id = json_string_value(json_object_get(line, "id"));
    oracle_verdict v = ORACLE_FAILED;

    if (id == NULL) {
        (void)fprintf(stderr, "line %zu is no case: %s\n", number, error.text);
    } else {
        const oracle_case k = {folder, id, line};

        v = suite(&k, note, sizeof note);
        if (note[0] != '\0') {
            printf("%s %s: %s\n", words[v], id, note);
        }
    }
    t->count[v]++;
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
    const oracle_suite suite = suite_of(path);
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
        if (text[0] != '\0') {
            run_line(suite, folder, text, number, t);
        }
        free(text);
    }
    (void)fclose(f);
    return true;
}

int main(int argc, char **argv)
{
    struct tally t = {{0, 0, 0}};
    bool all = argc > 1;

    if (argc < 2) {
        (void)fprintf(stderr, "usage: oracle FILE.jsonl...\n");
        return EXIT_FAILURE;
    }
    for (int i = 1; i < argc; i++) {
        all = run_file(argv[i], &t) && all;
    }
    printf("%zu passed, %zu failed, %zu skipped\n", t.count[ORACLE_PASSED],
           t.count[ORACLE_FAILED], t.count[ORACLE_SKIPPED]);
    // A file without a single case that ran is no success.
    return all && t.count[ORACLE_FAILED] == 0 && t.count[ORACLE_PASSED] > 0
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}
