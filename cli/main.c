/* The command `lockstep`: runs the command that its first argument names. */
#include "cli/cli.h"

#include <errno.h>
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <string.h>

static const cli_command commands[] = {
    {"info", "show version, devices, modules and settings", cli_info},
    {"bench", "measure operations, training steps, collectives and input", cli_bench},
    {"data", "look at, convert and plan files of samples", cli_data},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *to)
{
    fprintf(to, "usage: lockstep COMMAND [options]\n"
                "\n"
                "Distributed training in C: what the library is, and how fast.\n"
                "\n"
                "commands:\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        fprintf(to, "  %-18s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(to, "\n"
                "options:\n"
                "  --version          print the version\n"
                "  --help             this text; 'lockstep COMMAND --help' says more\n");
}

static const cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static int unknown_command(const char *word)
{
    const char *names[COMMANDS + 2] = {"--help", "--version"};

    for (size_t i = 0; i < COMMANDS; i++) {
        names[i + 2] = commands[i].name;
    }
    if (word[0] == '-') {
        return cli_unknown("lockstep", "option", word, names, 2);
    }
    return cli_unknown("lockstep", "command", word, names + 2, COMMANDS);
}

/* `lockstep help bench` is `lockstep bench --help`. */
static int print_help_of(int argc, char **argv)
{
    static char flag[] = "--help";
    const cli_command *command = argc > 2 ? find_command(argv[2]) : NULL;
    char *args[] = {argv[0], flag, NULL};

    if (argc > 2 && command == NULL) {
        return unknown_command(argv[2]);
    }
    if (command != NULL) {
        return command->run(2, args);
    }
    print_help(stdout);
    return CLI_OK;
}

static int run_command(int argc, char **argv)
{
    const cli_command *command = NULL;

    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("lockstep %s\n", ls_version());
        return CLI_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        return print_help_of(argc, argv);
    }
    command = find_command(argv[1]);
    return command != NULL ? command->run(argc - 1, argv + 1) : unknown_command(argv[1]);
}

/* Fails if not all of the output was written, whichever command printed it. */
static int end_output(int status)
{
    char why[128] = "not all of it was taken";
    const bool bad = ferror(stdout) != 0; // errno of the failed write is lost by now

    if (fclose(stdout) == 0 && !bad) {
        return status;
    }
    if (!bad && strerror_r(errno, why, sizeof why) != 0) {
        snprintf(why, sizeof why, "error %d of the system", errno);
    }
    fprintf(stderr, "lockstep: the output could not be written: %s\n", why);
    return status == CLI_OK ? CLI_FAILED : status;
}

int main(int argc, char **argv)
{
    return end_output(run_command(argc, argv));
}
