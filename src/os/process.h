/*
 * Other processes, and figures on this one.
 *
 * Threads: a process is used by one at a time, but lsi_process_kill() by any.
 */
#ifndef LSI_PROCESS_H
#define LSI_PROCESS_H
#include "base/base.h"
#include "os/clock.h"

typedef struct lsi_process lsi_process;

typedef struct lsi_spawn {
    const char *const *argv;        /* NULL ends it; argv[0] is looked for in PATH */
    const char *const *environment; /* "NAME=value", added to ours; NULL: nothing */
    const char *output_path;        /* standard output and error go to the end of it */
    bool output_pipe;               /* or into a pipe: lsi_process_read() */
    bool output_alone; /* the pipe has standard output only; errors go where ours go */
    bool input_pipe;   /* standard input is a pipe: lsi_process_write() */
    bool own_group;    /* a process group: signals reach what it starts, too */
} lsi_spawn;

/* LS_NOT_FOUND: there is no such program. Without a pipe standard input is /dev/null. */
ls_status lsi_process_start(const lsi_spawn *how, lsi_process **out, ls_error *err);

/* Kills the process if it still runs, and frees it. NULL is allowed. */
void lsi_process_release(lsi_process *process);

/* How it ended: by its own exit code, or by a signal (then `code` is -1). */
typedef struct lsi_exit {
    int code;
    int signal; /* 0: none */
} lsi_exit;

/* LS_DEADLINE_EXCEEDED: it still runs. May be called again after the end. */
ls_status lsi_process_wait(lsi_process *process, lsi_deadline deadline, lsi_exit *out,
                           ls_error *err);

/* Nothing happens if it has been waited for. */
ls_status lsi_process_kill(lsi_process *process, int signal, ls_error *err);

/* What it wrote to its pipe; *got is 0 when all ends of it are closed. */
ls_status lsi_process_read(lsi_process *process, void *to, size_t len,
                           lsi_deadline deadline, size_t *got, ls_error *err);

/* All of it to the standard input of the process; blocks while its pipe is full.
 * LS_UNAVAILABLE: the process has closed its end. The caller ignores SIGPIPE. */
ls_status lsi_process_write(lsi_process *process, const void *from, size_t len,
                            ls_error *err);
void lsi_process_end_input(lsi_process *process); /* closes our end; again: nothing */
int lsi_process_id(const lsi_process *process);

/* The file this process runs, absolute. */
ls_status lsi_self_path(char *out, size_t size, ls_error *err);

typedef struct lsi_usage {
    size_t peak_rss_bytes; /* the most memory that was resident */
    uint64_t minor_faults; /* pages that were given without the disk */
    uint64_t major_faults;
    int64_t user_ns, system_ns;
} lsi_usage;
void lsi_self_usage(lsi_usage *out);
#endif
