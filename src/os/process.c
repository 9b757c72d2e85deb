/* Other processes: starting, waiting, killing, reading their output. */
#ifdef __linux__
#define _DEFAULT_SOURCE // NOLINT(bugprone-reserved-identifier): syscall
#endif
#include "os/process.h"

#include "os/error.h"
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

extern char **environ;

#define FIRST_NAP_NS 200000 // between two polls where the end cannot be waited for
#define LONGEST_NAP_NS 20000000

struct lsi_process {
    pid_t pid;
    int out;        // our end of the pipe of its output; -1: none
    int in;         // and of its input; -1: none
    int end_fd;     // readable when the process has ended (Linux); -1: none
    bool group;     // it leads one
    lsi_mutex lock; // guards `ended`: after the wait, another process may get the number
    bool ended;
    lsi_exit how;
};

/* What starting a process needs; released by one function. */
struct attempt {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    bool have_files, have_attributes;
    int pipe[2];  // of its output
    int input[2]; // of its input
    char **environment;
};

/* Our variables without those that `added` names, then `added`. */
static char **merge_environment(const char *const *added)
{
    size_t ours = 0, more = 0, n = 0;
    char **all;

    while (environ != NULL && environ[ours] != NULL) {
        ours++;
    }
    while (added != NULL && added[more] != NULL) {
        more++;
    }
    all = lsi_alloc(ours + more + 1, sizeof *all);
    if (all == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < ours; i++) {
        bool replaced = false;

        for (size_t k = 0; k < more && !replaced; k++) {
            const size_t name = strcspn(added[k], "=");

            replaced =
                strncmp(environ[i], added[k], name) == 0 && environ[i][name] == '=';
        }
        if (!replaced) {
            all[n++] = environ[i];
        }
    }
    for (size_t k = 0; k < more; k++) {
        all[n++] = (char *)(uintptr_t)added[k]; // posix_spawn() does not write to it
    }
    return all;
}

static int make_pipe(int fds[2])
{
    if (pipe(fds) != 0) {
        fds[0] = fds[1] = -1;
        return errno;
    }
    for (int i = 0; i < 2; i++) {
        if (fcntl(fds[i], F_SETFD, FD_CLOEXEC) != 0) {
            return errno;
        }
    }
    return 0;
}

/* Where the new process's input and output go; an errno. */
static int route_files(const lsi_spawn *how, struct attempt *a)
{
    int rc = posix_spawn_file_actions_init(&a->files);

    a->have_files = rc == 0;
    if (rc == 0 && how->input_pipe) {
        rc = make_pipe(a->input);
        if (rc == 0) {
            rc = posix_spawn_file_actions_adddup2(&a->files, a->input[0], 0);
        }
    } else if (rc == 0) {
        rc = posix_spawn_file_actions_addopen(&a->files, 0, "/dev/null", O_RDONLY, 0);
    }
    if (rc == 0 && how->output_pipe) {
        rc = make_pipe(a->pipe);
        if (rc == 0 && fcntl(a->pipe[0], F_SETFL, O_NONBLOCK) != 0) {
            rc = errno;
        }
        if (rc == 0) {
            rc = posix_spawn_file_actions_adddup2(&a->files, a->pipe[1], 1);
        }
    } else if (rc == 0 && how->output_path != NULL) {
        rc = posix_spawn_file_actions_addopen(&a->files, 1, how->output_path,
                                              O_WRONLY | O_CREAT | O_APPEND, 0666);
    }
    if (rc == 0 && !how->output_alone && (how->output_pipe || how->output_path != NULL)) {
        rc = posix_spawn_file_actions_adddup2(&a->files, 1, 2);
    }
    return rc;
}

/* A clean start: no signal blocked or ignored that we block or ignore; an errno. */
static int set_attributes(const lsi_spawn *how, struct attempt *a)
{
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t none, defaults;
    int rc = posix_spawnattr_init(&a->attributes);

    a->have_attributes = rc == 0;
    (void)sigemptyset(&none);
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGPIPE);
    if (how->own_group) {
        flags = (short)(flags | POSIX_SPAWN_SETPGROUP); // 0, the default: its own
    }
    if (rc == 0) {
        rc = posix_spawnattr_setsigmask(&a->attributes, &none);
    }
    if (rc == 0) {
        rc = posix_spawnattr_setsigdefault(&a->attributes, &defaults);
    }
    return rc == 0 ? posix_spawnattr_setflags(&a->attributes, flags) : rc;
}

static void undo(struct attempt *a)
{
    if (a->have_files) {
        (void)posix_spawn_file_actions_destroy(&a->files);
    }
    if (a->have_attributes) {
        (void)posix_spawnattr_destroy(&a->attributes);
    }
    for (int i = 0; i < 2; i++) {
        if (a->pipe[i] >= 0) {
            (void)close(a->pipe[i]);
        }
        if (a->input[i] >= 0) {
            (void)close(a->input[i]);
        }
    }
    lsi_free(a->environment);
}

/* A descriptor that becomes readable at the end of `pid`; -1: the system has none. */
static int watch(pid_t pid)
{
#if defined(__linux__) && defined(SYS_pidfd_open)
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

ls_status lsi_process_start(const lsi_spawn *how, lsi_process **out, ls_error *err)
{
    struct attempt a = {.pipe = {-1, -1}, .input = {-1, -1}};
    lsi_process *p = NULL;
    ls_status st = LS_OK;
    int rc;

    if (how->argv == NULL || how->argv[0] == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "process: no program is named");
    }
    p = lsi_alloc(1, sizeof *p);
    a.environment = merge_environment(how->environment);
    if (p == NULL || a.environment == NULL) {
        st = lsi_fail_memory(err, "a process", sizeof *p);
        goto out;
    }
    rc = route_files(how, &a);
    if (rc == 0) {
        rc = set_attributes(how, &a);
    }
    if (rc == 0) {
        rc = posix_spawnp(&p->pid, how->argv[0], &a.files, &a.attributes,
                          (char *const *)(uintptr_t)how->argv, a.environment);
    }
    if (rc != 0) {
        st = lsi_fail_errno(err, rc, "cannot start %s", how->argv[0]);
        goto out;
    }
    p->group = how->own_group;
    p->out = a.pipe[0];
    p->in = a.input[1];
    a.pipe[0] = a.input[1] = -1; // they are the process's now
    p->end_fd = watch(p->pid);
    lsi_mutex_init(&p->lock);
    *out = p;
    p = NULL;
out:
    undo(&a);
    lsi_free(p);
    return st;
}

/* Asks the system once; false: it still runs. */
static bool reap(lsi_process *p)
{
    int status = 0;
    pid_t got;

    lsi_mutex_lock(&p->lock);
    if (!p->ended) {
        do {
            got = waitpid(p->pid, &status, WNOHANG);
        } while (got < 0 && errno == EINTR);
        if (got == p->pid) {
            p->ended = true;
            p->how.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
            p->how.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        } else if (got < 0) { // another waiter got its status: how it ended is not known
            p->ended = true;
            p->how.code = -1;
        }
    }
    const bool ended = p->ended;
    lsi_mutex_unlock(&p->lock);
    return ended;
}

ls_status lsi_process_wait(lsi_process *process, lsi_deadline deadline, lsi_exit *out,
                           ls_error *err)
{
    int64_t nap = FIRST_NAP_NS;

    while (!reap(process)) {
        const int64_t left = lsi_deadline_left_ns(deadline);

        if (left == 0) {
            return lsi_fail(err, LS_DEADLINE_EXCEEDED, -1, "process %d still runs",
                            (int)process->pid);
        }
        if (process->end_fd >= 0) {
            struct pollfd p = {.fd = process->end_fd, .events = POLLIN};

            (void)poll(&p, 1, lsi_deadline_poll_ms(deadline)); // a signal: ask again
        } else {
            lsi_sleep_ns(LSI_MIN(nap, left));
            nap = LSI_MIN(nap * 2, LONGEST_NAP_NS);
        }
    }
    *out = process->how;
    return LS_OK;
}

ls_status lsi_process_kill(lsi_process *process, int signal, ls_error *err)
{
    ls_status st = LS_OK;

    lsi_mutex_lock(&process->lock);
    if (!process->ended &&
        kill(process->group ? -process->pid : process->pid, signal) != 0) {
        st = lsi_fail_errno(err, errno, "cannot send signal %d to process %d", signal,
                            (int)process->pid);
    }
    lsi_mutex_unlock(&process->lock);
    return st;
}

void lsi_process_release(lsi_process *process)
{
    lsi_exit how;

    if (process == NULL) {
        return;
    }
    if (!reap(process)) {
        (void)lsi_process_kill(process, SIGKILL, NULL);
        (void)lsi_process_wait(process, LSI_DEADLINE_NEVER, &how, NULL);
    }
    lsi_process_end_input(process);
    if (process->out >= 0) {
        (void)close(process->out);
    }
    if (process->end_fd >= 0) {
        (void)close(process->end_fd);
    }
    lsi_mutex_destroy(&process->lock);
    lsi_free(process);
}

ls_status lsi_process_read(lsi_process *process, void *to, size_t len,
                           lsi_deadline deadline, size_t *got, ls_error *err)
{
    if (process->out < 0) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "process %d was started without a pipe", (int)process->pid);
    }
    for (;;) {
        struct pollfd p = {.fd = process->out, .events = POLLIN};
        const ssize_t n = read(process->out, to, len);

        if (n >= 0) {
            *got = (size_t)n;
            return LS_OK;
        }
        if (errno != EAGAIN && errno != EINTR) {
            return lsi_fail_errno(err, errno, "cannot read what process %d wrote",
                                  (int)process->pid);
        }
        if (errno == EAGAIN && poll(&p, 1, lsi_deadline_poll_ms(deadline)) == 0) {
            return lsi_fail(err, LS_DEADLINE_EXCEEDED, -1, "process %d wrote nothing",
                            (int)process->pid);
        }
    }
}

ls_status lsi_process_write(lsi_process *process, const void *from, size_t len,
                            ls_error *err)
{
    const char *p = from;

    if (process->in < 0) {
        return lsi_fail(err, LS_FAILED_PRECONDITION, -1,
                        "process %d has no pipe for its input, or it was closed",
                        (int)process->pid);
    }
    while (len > 0) {
        const ssize_t n = write(process->in, p, len);

        if (n >= 0) {
            p += n;
            len -= (size_t)n;
        } else if (errno != EINTR) {
            return lsi_fail_errno(err, errno, "cannot write to process %d",
                                  (int)process->pid);
        }
    }
    return LS_OK;
}

void lsi_process_end_input(lsi_process *process)
{
    if (process->in >= 0) {
        (void)close(process->in);
        process->in = -1;
    }
}

int lsi_process_id(const lsi_process *process)
{
    return (int)process->pid;
}
