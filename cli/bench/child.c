/* A program to compare with, which answers each line of its input with one of JSON. */
#include "cli/bench/bench.h"
#include "os/process.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct bench_child {
    lsi_process *process;
    char answer[512]; /* what was read and not used yet */
    size_t have;
};

/* Where the program is: beside this one, or in libexec/lockstep of the same prefix. */
static bool locate_program(const char *program, char *path, size_t size)
{
    static const char *const places[] = {"", "../libexec/lockstep/"};
    char self[4096];
    char *slash = NULL;

    if (lsi_self_path(self, sizeof self, NULL) != LS_OK) {
        return false;
    }
    slash = strrchr(self, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    for (size_t i = 0; i < LSI_COUNT_OF(places); i++) {
        const int len = snprintf(path, size, "%s/%s%s", self, places[i], program);

        if (len > 0 && (size_t)len < size && access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

bench_child *bench_child_start(const char *program, int threads)
{
    char path[4096], setting[64];
    const char *argv[] = {path, "--serve", NULL}, *environment[] = {setting, NULL};
    const lsi_spawn how = {.argv = argv,
                           .environment = environment,
                           .output_pipe = true,
                           .output_alone = true,
                           .input_pipe = true};
    bench_child *child = NULL;

    if (!locate_program(program, path, sizeof path)) {
        return NULL;
    }
    snprintf(setting, sizeof setting, "OMP_NUM_THREADS=%d", threads);
    child = calloc(1, sizeof *child);
    signal(SIGPIPE, SIG_IGN); // writing to a child that has ended fails instead
    if (child != NULL && lsi_process_start(&how, &child->process, NULL) != LS_OK) {
        free(child);
        child = NULL;
    }
    return child;
}

void bench_child_stop(bench_child *child)
{
    lsi_exit how;

    if (child == NULL) {
        return;
    }
    lsi_process_end_input(child->process); // which ends the program
    (void)lsi_process_wait(child->process, LSI_DEADLINE_NEVER, &how, NULL);
    lsi_process_release(child->process);
    free(child);
}

/* The next line of its output, as text without the line's end. */
static bool read_line(bench_child *child, char *line)
{
    for (;;) {
        char *end = memchr(child->answer, '\n', child->have);
        size_t got = 0;

        if (end != NULL) {
            const size_t len = (size_t)(end - child->answer);

            memcpy(line, child->answer, len);
            line[len] = '\0';
            child->have -= len + 1;
            memmove(child->answer, end + 1, child->have);
            return true;
        }
        if (lsi_process_read(child->process, child->answer + child->have,
                             sizeof child->answer - child->have, LSI_DEADLINE_NEVER, &got,
                             NULL) != LS_OK ||
            got == 0) {
            return false; // it has ended, or its line is too long
        }
        child->have += got;
    }
}

double bench_child_ask(bench_child *child, const char *line, const char *field)
{
    char answer[sizeof child->answer];
    json_t *row = NULL;
    double value = NAN;

    if (child == NULL ||
        lsi_process_write(child->process, line, strlen(line), NULL) != LS_OK ||
        lsi_process_write(child->process, "\n", 1, NULL) != LS_OK ||
        !read_line(child, answer)) {
        return NAN;
    }
    lsi_sleep_ns(5000000); // its threads spin for a while before they leave the cores
    row = json_loads(answer, 0, NULL);
    if (row != NULL && json_is_number(json_object_get(row, field))) {
        value = json_number_value(json_object_get(row, field));
    }
    json_decref(row);
    return value;
}
