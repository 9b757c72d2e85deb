/* A program that is asked a line at a time: the other side of a comparison. */
#include "cli/bench/bench.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct bench_child {
    pid_t pid;
    FILE *to, *from;
};

/* Where the program is: beside this one, or in libexec/lockstep of the same prefix. */
static bool locate(const char *program, char *path, size_t size)
{
    static const char *const places[] = {"", "../libexec/lockstep/"};
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = NULL;

    if (n <= 0) {
        return false;
    }
    self[n] = '\0';
    slash = strrchr(self, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int len = snprintf(path, size, "%s/%s%s", self, places[i], program);

        if (len > 0 && (size_t)len < size && access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* The environment with OMP_NUM_THREADS set to `setting`; the strings are borrowed. */
static char **environment(char *setting)
{
    size_t n = 0, kept = 0;
    char **env = NULL;

    while (environ[n] != NULL) {
        n++;
    }
    env = calloc(n + 2, sizeof *env);
    if (env == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        if (strncmp(environ[i], "OMP_NUM_THREADS=", 16) != 0) {
            env[kept++] = environ[i];
        }
    }
    env[kept] = setting;
    return env;
}

/* Starts `path` with its ends of the pipes; returns false if it cannot be started. */
static bool spawn(const char *path, int threads, const int in[2], const int out[2],
                  pid_t *pid)
{
    static char serve[] = "--serve";
    char setting[64], name[4096];
    char *argv[] = {name, serve, NULL};
    posix_spawn_file_actions_t actions;
    char **env = NULL;
    int rc;

    snprintf(setting, sizeof setting, "OMP_NUM_THREADS=%d", threads);
    snprintf(name, sizeof name, "%s", path);
    env = environment(setting);
    if (env == NULL || posix_spawn_file_actions_init(&actions) != 0) {
        free(env);
        return false;
    }
    rc = posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO) ||
         posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO) ||
         posix_spawn_file_actions_addclose(&actions, in[1]) ||
         posix_spawn_file_actions_addclose(&actions, out[0]) ||
         posix_spawn(pid, path, &actions, NULL, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    free(env);
    return rc == 0;
}

static void close_pipe(const int p[2])
{
    close(p[0]);
    close(p[1]);
}

bench_child *bench_child_start(const char *program, int threads)
{
    bench_child *child = NULL;
    char path[4096];
    int in[2], out[2];

    if (!locate(program, path, sizeof path)) {
        return NULL;
    }
    child = calloc(1, sizeof *child);
    if (child == NULL || pipe(in) != 0) {
        free(child);
        return NULL;
    }
    if (pipe(out) != 0) {
        close_pipe(in);
        free(child);
        return NULL;
    }
    signal(SIGPIPE, SIG_IGN); // a child that died is an answer that does not come
    if (!spawn(path, threads, in, out, &child->pid)) {
        close_pipe(in);
        close_pipe(out);
        free(child);
        return NULL;
    }
    close(in[0]);
    close(out[1]);
    child->to = fdopen(in[1], "w");
    child->from = fdopen(out[0], "r");
    return child;
}

void bench_child_stop(bench_child *child)
{
    if (child == NULL) {
        return;
    }
    if (child->to != NULL) {
        fclose(child->to); // the end of its input ends it
    }
    if (child->from != NULL) {
        fclose(child->from);
    }
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    free(child);
}

double bench_child_ask(bench_child *child, const char *line, const char *field)
{
    const struct timespec rest = {0, 5000000};
    char answer[512];
    json_t *row = NULL;
    double value = NAN;

    if (child == NULL || child->to == NULL || child->from == NULL) {
        return NAN;
    }
    if (fprintf(child->to, "%s\n", line) < 0 || fflush(child->to) != 0 ||
        fgets(answer, sizeof answer, child->from) == NULL) {
        return NAN;
    }
    nanosleep(&rest, NULL); // its threads spin for a while before they leave the cores
    row = json_loads(answer, 0, NULL);
    if (row != NULL && json_is_number(json_object_get(row, field))) {
        value = json_number_value(json_object_get(row, field));
    }
    json_decref(row);
    return value;
}
