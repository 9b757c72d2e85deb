/*
 * Callbacks that throw C++ exceptions. An exception that leaves a callback ends the
 * process on purpose, on any replica and even if the caller would catch it; a callback
 * that catches its exception and reports it is an error like any other, and the library
 * works afterwards.
 */
#include <lockstep/lockstep.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace
{
struct program {
    ls_runtime *rt = nullptr;
    ls_strategy *s = nullptr;
};

int thrower; // the replica that throws

void to_stderr(ls_log_level, const char *line, void *)
{
    std::fprintf(stderr, "%s\n", line);
}

program start(int replicas)
{
    program p;
    ls_runtime_options ro = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;

    ls_log_set(LS_LOG_WARNING, to_stderr, nullptr);
    ro.logical_cpus = replicas;
    if (ls_runtime_create(&ro, &p.rt, nullptr) != LS_OK) {
        return p;
    }
    so.runtime = p.rt;
    if (ls_mirrored_create(nullptr, &so, &p.s, nullptr) != LS_OK) {
        p.s = nullptr;
    }
    return p;
}

ls_value *throws(ls_context *c, ls_value *, void *)
{
    if (ls_replica_id(c) == thrower) {
        throw std::runtime_error("boom");
    }
    return nullptr;
}

ls_value *merge_throws(ls_context *, ls_strategy *, ls_value *, void *)
{
    throw std::runtime_error("boom");
}

ls_value *merges(ls_context *c, ls_value *, void *)
{
    return ls_merge_call(c, merge_throws, nullptr, nullptr);
}

ls_value *reports(ls_context *c, ls_value *, void *)
{
    try {
        if (ls_replica_id(c) == thrower) {
            throw std::runtime_error("boom");
        }
    } catch (const std::exception &x) {
        ls_context_fail(c, LS_ABORTED, "%s", x.what());
    }
    return nullptr;
}

/* Runs a function that throws inside a try block. 0: the process continued. */
int run_caught(int replicas, ls_replica_fn fn)
{
    const program p = start(replicas);

    try {
        return ls_strategy_run(p.s, fn, nullptr, nullptr, nullptr, nullptr) == LS_OK ? 0
                                                                                     : 1;
    } catch (const std::exception &) {
        return 2;
    }
}

int report_and_go_on()
{
    program p = start(2);
    ls_error e = LS_ERROR_INIT;

    for (thrower = 0; thrower < 2; thrower++) {
        if (ls_strategy_run(p.s, reports, nullptr, nullptr, nullptr, &e) != LS_ABORTED ||
            e.rank != thrower || std::strstr(e.message, "boom") == nullptr) {
            return 1;
        }
    }
    thrower = -1;
    const ls_status st = ls_strategy_run(p.s, reports, nullptr, nullptr, nullptr, &e);
    ls_strategy_release(p.s);
    ls_runtime_release(p.rt);
    return st == LS_OK ? 0 : 1;
}

int child(int which)
{
    thrower = which == 1 ? 1 : 0;
    switch (which) {
    case 0:
    case 1:
        return run_caught(2, throws);
    case 2:
        return run_caught(1, throws);
    case 3:
        return run_caught(2, merges);
    default:
        return report_and_go_on();
    }
}

/* Runs a case in a process of its own: its status, and what it wrote to stderr. */
int watch(int which, std::string &text)
{
    int ends[2], status = 0;
    char some[512];

    if (pipe(ends) != 0) {
        return -1;
    }
    const pid_t pid = fork(); // before the library is used at all
    if (pid == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        _exit(child(which));
    }
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], some, sizeof some)) > 0;) {
        text.append(some, static_cast<size_t>(n));
    }
    close(ends[0]);
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}
} // namespace

int main()
{
    static const struct {
        const char *name, *word; // in the log; nullptr: the process goes on
    } cases[] = {
        {"an_exception_in_replica_0_ends_the_process",
         "the function of ls_strategy_run()"},
        {"an_exception_in_replica_1_ends_the_process", ""}, // the C++ runtime says what
        {"an_exception_in_the_only_replica_ends_the_process",
         "the function of ls_strategy_run()"},
        {"an_exception_in_a_merge_function_ends_the_process",
         "the function of ls_merge_call()"},
        {"an_exception_that_is_caught_and_reported_is_an_error_like_others", nullptr}};
    const int n = sizeof cases / sizeof *cases;
    int failed = 0;

    std::printf("1..%d\n", n);
    for (int i = 0; i < n; i++) {
        std::string text;
        const int status = watch(i, text);
        const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
        const bool ok = cases[i].word == nullptr
                            ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                            : aborted && text.find(cases[i].word) != std::string::npos;

        std::printf("%s %d - %s\n", ok ? "ok" : "not ok", i + 1, cases[i].name);
        if (!ok) {
            std::printf("# status %d: %s\n", status, text.c_str());
            failed++;
        }
    }
    return failed == 0 ? 0 : 1;
}
