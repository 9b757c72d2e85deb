/* The command line: options, words, help, and messages about mistakes. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORD = 32, MAX_OPTIONS = 16, MAX_TASKS = 8 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/*
 * How many typing mistakes lie between `a` and `b`: a character too many, missing, wrong,
 * or two exchanged (the Damerau-Levenshtein distance).
 */
static int edit_distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    int d[3][MAX_WORD + 1]; // the rows i - 2, i - 1 and i, in turn

    if (n > MAX_WORD || m > MAX_WORD) {
        return MAX_WORD;
    }
    for (size_t j = 0; j <= m; j++) {
        d[0][j] = (int)j;
    }
    for (size_t i = 1; i <= n; i++) {
        int *row = d[i % 3];
        const int *up = d[(i + 2) % 3], *upper = d[(i + 1) % 3];

        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = smaller(smaller(row[j - 1], up[j]) + 1,
                             up[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = smaller(row[j], upper[j - 2] + 1);
            }
        }
    }
    return d[n % 3][m];
}

const char *cli_nearest(const char *word, const char *const *names, size_t count)
{
    const char *best = NULL;
    int least_far = (int)(strlen(word) < MAX_WORD ? strlen(word) : MAX_WORD) / 2 + 1;

    for (size_t i = 0; i < count; i++) {
        const int far = edit_distance(word, names[i]);

        if (far < least_far) {
            least_far = far;
            best = names[i];
        }
    }
    return best;
}

int cli_unknown(const char *command, const char *what, const char *word,
                const char *const *names, size_t count)
{
    const char *nearest = cli_nearest(word, names, count);

    fprintf(stderr, "%s: unknown %s '%s'", command, what, word);
    if (nearest != NULL) {
        fprintf(stderr, "; did you mean '%s'?", nearest);
    } else if (count > 0) {
        fprintf(stderr, "; there %s", count == 1 ? "is" : "are");
        for (size_t i = 0; i < count; i++) {
            fprintf(stderr, "%s %s", i > 0 ? "," : "", names[i]);
        }
    }
    fprintf(stderr, "\nTry '%s --help'.\n", command);
    return CLI_USAGE;
}

int cli_misuse(const char *command, const char *what)
{
    fprintf(stderr, "%s: %s\nTry '%s --help'.\n", command, what, command);
    return CLI_USAGE;
}

static void print_help(const cli_usage *usage)
{
    printf("usage: %s%s%s [options]\n\n%s\noptions:\n", usage->command,
           usage->words != NULL ? " " : "", usage->words != NULL ? usage->words : "",
           usage->text);
    for (size_t i = 0; i < usage->count; i++) {
        const cli_option *o = &usage->options[i];
        char left[MAX_WORD];

        snprintf(left, sizeof left, "%s %s", o->name, o->value != NULL ? o->value : "");
        printf("  %-18s %s\n", left, o->help);
    }
    printf("  %-18s %s\n", "--help", "this text");
}

static bool complain_value(const cli_usage *usage, const cli_option *o, const char *value,
                           const char *wanted)
{
    fprintf(stderr, "%s: option '%s' takes %s, not '%s'\nTry '%s --help'.\n",
            usage->command, o->name, wanted, value, usage->command);
    return false;
}

static bool store_whole(const cli_usage *usage, const cli_option *o, const char *value)
{
    cli_whole *out = o->out;
    char *end = NULL;
    const long long n = strtoll(value, &end, 10);
    char wanted[96];

    if (end == value || *end != '\0' || n < out->least || n > out->most) {
        snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld",
                 (long long)out->least, (long long)out->most);
        return complain_value(usage, o, value, wanted);
    }
    out->value = n;
    return true;
}

static bool store_value(const cli_usage *usage, const cli_option *o, const char *value)
{
    char *end = NULL;

    if (o->kind == CLI_WHOLE) {
        return store_whole(usage, o, value);
    }
    if (o->kind == CLI_TEXT) {
        *(const char **)o->out = value;
    } else if (o->kind == CLI_COUNT) {
        const long n = strtol(value, &end, 10);

        if (end == value || *end != '\0' || n < 1 || n > 4096) {
            return complain_value(usage, o, value, "a whole number from 1 to 4096");
        }
        *(int *)o->out = (int)n;
    } else {
        const double s = strtod(value, &end);

        if (end == value || *end != '\0' || !(s > 0 && s <= 3600)) {
            return complain_value(usage, o, value,
                                  o->kind == CLI_SECONDS
                                      ? "seconds, above 0 and at most 3600"
                                      : "a number above 0");
        }
        *(double *)o->out = s;
    }
    return true;
}

/* The option that `arg` names, with or without "=value". */
static const cli_option *find_option(const cli_usage *usage, const char *arg)
{
    const size_t len = strcspn(arg, "=");

    for (size_t i = 0; i < usage->count; i++) {
        if (strlen(usage->options[i].name) == len &&
            strncmp(usage->options[i].name, arg, len) == 0) {
            return &usage->options[i];
        }
    }
    return NULL;
}

static int unknown_option(const cli_usage *usage, const char *arg)
{
    const char *names[MAX_OPTIONS] = {"--help"};
    size_t n = 1;

    for (size_t i = 0; i < usage->count && n < MAX_OPTIONS; i++) {
        names[n++] = usage->options[i].name;
    }
    return cli_unknown(usage->command, arg[0] == '-' ? "option" : "argument", arg, names,
                       n);
}

/* Takes the option at argv[*at] and its value, if it has one. */
static bool take_option(const cli_usage *usage, int argc, char **argv, int *at)
{
    const char *arg = argv[*at], *value = strchr(arg, '=');
    const cli_option *o = find_option(usage, arg);

    if (o == NULL) {
        unknown_option(usage, arg);
        return false;
    }
    if (o->kind == CLI_FLAG) {
        if (value != NULL) {
            return complain_value(usage, o, value + 1, "no value");
        }
        *(bool *)o->out = true;
        return true;
    }
    if (value != NULL) {
        return store_value(usage, o, value + 1);
    }
    if (*at + 1 >= argc) {
        fprintf(stderr, "%s: option '%s' wants a value: %s %s\nTry '%s --help'.\n",
                usage->command, o->name, o->name, o->value, usage->command);
        return false;
    }
    return store_value(usage, o, argv[++*at]);
}

bool cli_parse(const cli_usage *usage, int argc, char **argv, int *status)
{
    int words = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(usage);
            *status = CLI_OK;
            return false;
        }
    }
    for (int i = 1; i < argc; i++) {
        if (usage->words != NULL && (argv[i][0] != '-' || argv[i][1] == '\0')) {
            argv[++words] = argv[i];
        } else if (!take_option(usage, argc, argv, &i)) {
            *status = CLI_USAGE;
            return false;
        }
    }
    if (usage->words != NULL) {
        argv[words + 1] = NULL;
    }
    return true;
}

static void print_tasks(const char *command, const cli_command *tasks, size_t count)
{
    printf("usage: %s ", command);
    for (size_t i = 0; i < count; i++) {
        printf("%s%s", i > 0 ? "|" : "", tasks[i].name);
    }
    printf(" [options]\n\n");
    for (size_t i = 0; i < count; i++) {
        printf("  %-18s %s\n", tasks[i].name, tasks[i].summary);
    }
    printf("\n'%s %s --help' and so on say more.\n", command, tasks[0].name);
}

int cli_run_task(const char *command, const char *what, const cli_command *tasks,
                 size_t count, int argc, char **argv)
{
    const char *names[MAX_TASKS];

    if (argc < 2) {
        fprintf(stderr, "%s:", command);
        for (size_t i = 0; i < count; i++) {
            fprintf(stderr, "%s %s",
                    i == 0          ? ""
                    : i + 1 < count ? ","
                                    : " or",
                    tasks[i].name);
        }
        fprintf(stderr, "?\nTry '%s --help'.\n", command);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_tasks(command, tasks, count);
        return CLI_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(argv[1], tasks[i].name) == 0) {
            return tasks[i].run(argc - 1, argv + 1);
        }
        names[i] = tasks[i].name;
    }
    return cli_unknown(command, what, argv[1], names, count);
}
