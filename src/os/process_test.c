/* Starting, reading, killing and waiting for processes. */
#include "os/process.h"

#include "os/file.h"

#include "ls_test.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_MS 60000 // a test that needs it hangs, it is not slow

/* Starts `sh -c script`. */
static lsi_process *start(const char *script, lsi_spawn how)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    ls_error err = LS_ERROR_INIT;
    lsi_process *p = NULL;

    how.argv = argv;
    LST_OK(lsi_process_start(&how, &p, &err));
    return p;
}

LST_TEST(the_exit_code_of_a_process_arrives)
{
    ls_error err = LS_ERROR_INIT;
    lsi_process *p = start("exit 7", (lsi_spawn){0});
    lsi_exit how = {-1, -1};

    for (int i = 0; i < 2; i++) { // and stays
        LST_OK(lsi_process_wait(p, lsi_deadline_in_ms(LONG_MS), &how, &err));
        LST_CHECK(how.code == 7 && how.signal == 0);
    }
    LST_OK(lsi_process_kill(p, SIGKILL, &err)); // too late, and nobody else is hit
    lsi_process_release(p);
}

LST_TEST(a_killed_process_tells_its_signal)
{
    ls_error err = LS_ERROR_INIT;
    lsi_process *p = start("exec sleep 1000", (lsi_spawn){0});
    lsi_exit how = {0, 0};

    LST_CHECK(lsi_process_id(p) > 0);
    LST_OK(lsi_process_kill(p, SIGKILL, &err));
    LST_OK(lsi_process_wait(p, lsi_deadline_in_ms(LONG_MS), &how, &err));
    LST_CHECK(how.code == -1 && how.signal == SIGKILL);
    lsi_process_release(p);
}

LST_TEST(a_process_that_does_not_end_in_time_still_runs)
{
    ls_error err = LS_ERROR_INIT;
    lsi_process *p = start("exec sleep 1000", (lsi_spawn){0});
    lsi_exit how;

    LST_FAILS(lsi_process_wait(p, lsi_deadline_in_ms(5), &how, &err),
              LS_DEADLINE_EXCEEDED, err, "still runs");
    LST_CHECK(kill(lsi_process_id(p), 0) == 0);
    const int pid = lsi_process_id(p);
    lsi_process_release(p); // kills and waits
    LST_CHECK(kill(pid, 0) != 0);
}

/* Everything a process writes, to its end. */
static void read_all(lsi_process *p, char *out, size_t size)
{
    ls_error err = LS_ERROR_INIT;
    size_t used = 0, got = 1;

    while (got > 0 && used < size - 1) {
        got = 0;
        LST_OK(lsi_process_read(p, out + used, size - 1 - used,
                                lsi_deadline_in_ms(LONG_MS), &got, &err));
        used += got;
    }
    out[used] = '\0';
}

LST_TEST(both_outputs_come_through_the_pipe_and_the_environment_is_added_to)
{
    const char *env[] = {"LS_ADDED=new", "LS_KEPT=changed", NULL};
    char out[200];
    lsi_process *p;

    LST_CHECK(setenv("LS_KEPT", "old", 1) == 0 && setenv("LS_OURS", "ours", 1) == 0);
    p = start("echo $LS_ADDED; echo $LS_KEPT $LS_OURS >&2; cat",
              (lsi_spawn){.output_pipe = true, .environment = env});
    read_all(p, out, sizeof out);
    LST_CHECK(strcmp(out, "new\nchanged ours\n") == 0);
    lsi_process_release(p);
}

LST_TEST(what_is_written_to_a_process_is_its_input_and_errors_may_stay_apart)
{
    ls_error err = LS_ERROR_INIT;
    lsi_exit how = {-1, -1};
    char out[200];
    lsi_process *p =
        start("cat; echo apart >&2; exit 3",
              (lsi_spawn){.output_pipe = true, .output_alone = true, .input_pipe = true});

    LST_OK(lsi_process_write(p, "one\n", 4, &err));
    LST_OK(lsi_process_write(p, "two\n", 4, &err));
    lsi_process_end_input(p);
    read_all(p, out, sizeof out);
    LST_CHECK(strcmp(out, "one\ntwo\n") == 0);
    LST_OK(lsi_process_wait(p, lsi_deadline_in_ms(LONG_MS), &how, &err));
    LST_CHECK(how.code == 3);
    LST_FAILS(lsi_process_write(p, "x", 1, &err), LS_FAILED_PRECONDITION, err, "closed");
    lsi_process_release(p);
}

LST_TEST(a_process_that_has_ended_takes_no_input)
{
    ls_error err = LS_ERROR_INIT;
    lsi_exit how;
    lsi_process *p = start("exit 0", (lsi_spawn){.input_pipe = true});

    LST_CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    LST_OK(lsi_process_wait(p, lsi_deadline_in_ms(LONG_MS), &how, &err));
    LST_FAILS(lsi_process_write(p, "x", 1, &err), LS_UNAVAILABLE, err, "cannot write");
    LST_CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    lsi_process_release(p);
}

LST_TEST(a_variable_that_is_replaced_is_there_once)
{
    const char *argv[] = {"env", NULL}, *env[] = {"LS_TWICE=new", NULL};
    ls_error err = LS_ERROR_INIT;
    lsi_process *p = NULL;
    char out[32768];
    const char *at;

    LST_CHECK(setenv("LS_TWICE", "old", 1) == 0 && setenv("LS_TWICE_TOO", "1", 1) == 0);
    LST_OK(lsi_process_start(
        &(lsi_spawn){.argv = argv, .environment = env, .output_pipe = true}, &p, &err));
    read_all(p, out, sizeof out);
    lsi_process_release(p);
    at = strstr(out, "LS_TWICE=");
    LST_CHECK(at != NULL && strncmp(at, "LS_TWICE=new\n", 13) == 0);
    LST_CHECK(at != NULL && strstr(at + 1, "LS_TWICE=") == NULL);
    LST_CHECK(strstr(out, "LS_TWICE_TOO=1\n") != NULL); // a longer name is another
}

LST_TEST(a_silent_process_ends_a_read_at_the_deadline)
{
    ls_error err = LS_ERROR_INIT;
    lsi_process *p = start("exec sleep 1000", (lsi_spawn){.output_pipe = true});
    size_t got = 0;
    char c;

    LST_FAILS(lsi_process_read(p, &c, 1, lsi_deadline_in_ms(5), &got, &err),
              LS_DEADLINE_EXCEEDED, err, "wrote nothing");
    lsi_process_release(p);
    p = start("exit 0", (lsi_spawn){0});
    LST_FAILS(lsi_process_read(p, &c, 1, lsi_deadline_in_ms(5), &got, &err),
              LS_FAILED_PRECONDITION, err, "without a pipe");
    lsi_process_release(p);
}

LST_TEST(output_goes_to_the_end_of_a_file)
{
    ls_error err = LS_ERROR_INIT;
    lsi_exit how;
    void *data = NULL;
    size_t len = 0;
    char path[64];

    (void)snprintf(path, sizeof path, "/tmp/ls-process-%ld", (long)getpid());
    for (int i = 0; i < 2; i++) {
        lsi_process *p =
            start("echo out; echo err >&2", (lsi_spawn){.output_path = path});

        LST_OK(lsi_process_wait(p, lsi_deadline_in_ms(LONG_MS), &how, &err));
        lsi_process_release(p);
    }
    LST_OK(lsi_file_read(path, 100, &data, &len, &err));
    LST_CHECK(strcmp(data, "out\nerr\nout\nerr\n") == 0);
    lsi_free(data);
    LST_OK(lsi_file_remove(path, &err));
}

LST_TEST(a_group_is_killed_with_what_its_leader_started)
{
    ls_error err = LS_ERROR_INIT;
    lsi_process *p = start("sleep 1000 & echo started; wait",
                           (lsi_spawn){.output_pipe = true, .own_group = true});
    size_t got = 0;
    char out[64];

    LST_OK(lsi_process_read(p, out, sizeof out, lsi_deadline_in_ms(LONG_MS), &got, &err));
    LST_CHECK(got == 8 && memcmp(out, "started\n", 8) == 0);
    LST_OK(lsi_process_kill(p, SIGKILL, &err));
    read_all(p, out, sizeof out); // ends only when the sleeper's end is closed, too
    LST_CHECK(out[0] == '\0');
    lsi_process_release(p);
}

/*
 * Whether the system tells at once that there is no such program. Under an emulator whose
 * vfork() is a fork() only the child's status does.
 */
static bool spawn_tells(void)
{
    char path[] = "/nowhere/program";
    char *argv[] = {path, NULL};
    int status = 0;
    pid_t pid = 0;

    if (posix_spawn(&pid, path, NULL, NULL, argv, NULL) != 0) {
        return true;
    }
    LST_CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 127);
    return false;
}

LST_TEST(a_program_that_is_not_there_is_named)
{
    const char *argv[] = {"/nowhere/program", NULL}, *none[] = {NULL};
    ls_error err = LS_ERROR_INIT;
    lsi_process *p = NULL;

    if (spawn_tells()) {
        LST_FAILS(lsi_process_start(&(lsi_spawn){.argv = argv}, &p, &err), LS_NOT_FOUND,
                  err, "/nowhere/program");
    }
    LST_FAILS(lsi_process_start(&(lsi_spawn){.argv = none}, &p, &err),
              LS_INVALID_ARGUMENT, err, "no program");
    LST_CHECK(p == NULL);
}

static ls_status start_true(ls_error *err)
{
    const char *argv[] = {"true", NULL};
    lsi_process *p = NULL;
    const ls_status st =
        lsi_process_start(&(lsi_spawn){.argv = argv, .output_pipe = true}, &p, err);

    lsi_process_release(p);
    return st;
}

LST_TEST(starting_survives_the_failure_of_every_allocation)
{
    lst_every_allocation(start_true);
}

LST_TEST(a_process_knows_its_file_and_its_memory)
{
    enum { BYTES = 64 << 20 };
    ls_error err = LS_ERROR_INIT;
    lsi_usage before, after;
    char path[1024];
    char *block;

    LST_OK(lsi_self_path(path, sizeof path, &err));
    LST_CHECK(path[0] == '/' && strstr(path, "process_test") != NULL);
    LST_FAILS(lsi_self_path(path, 4, &err), LS_INVALID_ARGUMENT, err, "path");
    lsi_self_usage(&before);
    block = lsi_alloc(1, BYTES); // zeroed, so touched
    LST_CHECK(block != NULL);
    lsi_self_usage(&after);
    lsi_free(block);
    LST_CHECK(before.peak_rss_bytes > 0);
    LST_CHECK(after.peak_rss_bytes >= before.peak_rss_bytes + BYTES / 2);
    LST_CHECK(after.minor_faults > before.minor_faults);
    LST_CHECK(after.user_ns + after.system_ns >= before.user_ns + before.system_ns);
}

LST_MAIN(LST_CASE(the_exit_code_of_a_process_arrives),
         LST_CASE(a_killed_process_tells_its_signal),
         LST_CASE(a_process_that_does_not_end_in_time_still_runs),
         LST_CASE(both_outputs_come_through_the_pipe_and_the_environment_is_added_to),
         LST_CASE(what_is_written_to_a_process_is_its_input_and_errors_may_stay_apart),
         LST_CASE(a_process_that_has_ended_takes_no_input),
         LST_CASE(a_variable_that_is_replaced_is_there_once),
         LST_CASE(a_silent_process_ends_a_read_at_the_deadline),
         LST_CASE(output_goes_to_the_end_of_a_file),
         LST_CASE(a_group_is_killed_with_what_its_leader_started),
         LST_CASE(a_program_that_is_not_there_is_named),
         LST_CASE(starting_survives_the_failure_of_every_allocation),
         LST_CASE(a_process_knows_its_file_and_its_memory))
