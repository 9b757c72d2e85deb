/*
 * Tests random programs, in children of this process:
 *
 *     random_programs [--programs N] [--seed S] [--cases DIR] [--workers W]
 *     random_programs --program FILE [--times N] [--workers W]
 *                                                  runs one, in this process
 *     random_programs --print S                    shows the program of a seed
 *     random_programs --child S N W                runs N seeds, in this process
 *
 * With --workers (2 to 4) each program is run by so many workers, which are threads, and
 * must compute what one process of as many replicas computes.
 *
 * The cases of the folder are programs that failed once; they come first. A seed that
 * fails is printed with the shortest program found that still fails.
 */
#include "random_child.h"
#include "shorten.h"

#include "ls_test.h"
#include "os/file.h"
#include "os/process.h"

#include <glob.h>
#include <unistd.h>

enum { BATCH = 200, SHORTEN_MS = 60000, MOST_FAILURES = 10, REPORT = 20000 };

static char self[4096], workers[8] = "1";

/* The output of a child and its status. */
struct child {
    int code;      /* its own, or 256 + the signal */
    uint64_t last; /* the seed it was running; 0: it had finished */
    uint64_t well,
        values; /* programs without a failure, and the entries of their journals */
    char said[REPORT];
    size_t length;
};

/* Removes lines like "@5", by which the child reports its present seed. */
static void take_line(struct child *c, const char *line, size_t n)
{
    if (n > 1 && line[0] == '@') {
        char *rest = NULL;

        c->last = strtoull(line + 1, &rest, 10);
        if (c->last == 0) {
            c->well = strtoull(rest, &rest, 10);
            c->values = strtoull(rest, NULL, 10);
        }
        return;
    }
    if (c->length + n + 1 < sizeof c->said) {
        memcpy(c->said + c->length, line, n);
        c->length += n;
        c->said[c->length++] = '\n';
        c->said[c->length] = '\0';
    }
}

static void listen_to(lsi_process *process, struct child *c)
{
    char buf[8192];
    size_t have = 0, got = 0;

    do {
        if (lsi_process_read(process, buf + have, sizeof buf - have, LSI_DEADLINE_NEVER,
                             &got, NULL) != LS_OK) {
            break;
        }
        have += got;
        for (char *end; (end = memchr(buf, '\n', have)) != NULL;) {
            take_line(c, buf, (size_t)(end - buf));
            have -= (size_t)(end - buf) + 1;
            memmove(buf, end + 1, have);
        }
        have = have == sizeof buf ? 0 : have; // no line is so long
    } while (got > 0);
    take_line(c, buf, have);
}

/* Runs this program again; sanitizers stop at the first finding there. */
static void run_child(const char *const *argv, struct child *c)
{
    static const char *const environment[] = {
        "ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:"
        "intercept_tls_get_addr=0",
        "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1",
        "TSAN_OPTIONS=allocator_may_return_null=1:halt_on_error=1", NULL};
    const lsi_spawn how = {.argv = argv, .environment = environment, .output_pipe = true};
    lsi_process *process = NULL;
    ls_error err = LS_ERROR_INIT;
    lsi_exit end = {0, 0};

    c->code = -1;
    c->last = c->well = c->values = 0;
    c->length = 0;
    c->said[0] = '\0';
    if (lsi_process_start(&how, &process, &err) != LS_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return;
    }
    listen_to(process, c);
    if (lsi_process_wait(process, LSI_DEADLINE_NEVER, &end, &err) == LS_OK) {
        c->code = end.signal != 0 ? 256 + end.signal : end.code;
    }
    lsi_process_release(process);
}

static void run_seeds(uint64_t first, uint64_t count, struct child *c)
{
    char from[32], n[32];
    const char *const argv[] = {self, "--child", from, n, workers, NULL};

    (void)snprintf(from, sizeof from, "%llu", (unsigned long long)first);
    (void)snprintf(n, sizeof n, "%llu", (unsigned long long)count);
    run_child(argv, c);
}

/* ---- shortening ---- */

struct wanted {
    char name[64];       /* the file a candidate is written to */
    int code;            /* how the failure ends */
    char signature[400]; /* and what a sanitizer calls it */
    struct child *c;
};

/* What a sanitizer found, in one line: another finding is another failure. */
static void signature_of(const struct child *c, char *out, size_t size)
{
    const char *line = strstr(c->said, "SUMMARY: ");

    if (line == NULL) {
        line = strstr(c->said, "runtime error: ");
    }
    (void)snprintf(out, size, "%.*s", line == NULL ? 0 : (int)strcspn(line, "\n"),
                   line == NULL ? "" : line);
}

static bool fails_alike(const program *p, void *user)
{
    const struct wanted *w = user;
    const char *const argv[] = {self, "--program", w->name, "--workers", workers, NULL};
    char signature[400];
    FILE *f = fopen(w->name, "w");

    if (f == NULL) {
        return false;
    }
    program_print(p, f);
    (void)fclose(f);
    run_child(argv, w->c);
    signature_of(w->c, signature, sizeof signature);
    return w->c->code == w->code && strcmp(signature, w->signature) == 0;
}

static void report(uint64_t seed, const struct child *first)
{
    static program p;
    static struct child c;
    struct wanted w = {"/tmp/random-XXXXXX", first->code, "", &c};
    const int fd = mkstemp(w.name);

    signature_of(first, w.signature, sizeof w.signature);

    program_generate(seed, &p);
    printf("not ok - seed %llu ends with %d\n%s", (unsigned long long)seed, first->code,
           first->said);
    (void)fflush(stdout);
    if (fd < 0) {
        return;
    }
    (void)close(fd);
    if (fails_alike(&p, &w)) {
        program_shorten(&p, fails_alike, &w, lsi_deadline_in_ms(SHORTEN_MS));
        (void)fails_alike(&p, &w);
        printf("# the shortest program that still fails (seed %llu):\n",
               (unsigned long long)seed);
        program_print(&p, stdout);
        printf("# it ends with:\n%s", c.said);
    } else {
        printf("# alone it ends with %d: what ran before it matters\n", c.code);
        program_print(&p, stdout);
    }
    (void)fflush(stdout);
    (void)remove(w.name);
}

/* A child that failed after its last program: finds the program that leaked. */
static uint64_t find_leak(uint64_t first, uint64_t count, struct child *c)
{
    while (count > 1) {
        run_seeds(first, count / 2, c);
        if (c->code != 0) {
            count /= 2;
        } else {
            first += count / 2;
            count -= count / 2;
        }
    }
    run_seeds(first, 1, c);
    return first;
}

static int run_all(uint64_t first, uint64_t count)
{
    static struct child c;
    int failures = 0;
    uint64_t seed = first, well = 0, values = 0;

    while (seed - first < count && failures < MOST_FAILURES) {
        const uint64_t n = LSI_MIN((uint64_t)BATCH, count - (seed - first));
        uint64_t next = seed + n;

        run_seeds(seed, n, &c);
        well += c.well;
        values += c.values;
        if (c.code != 0) {
            uint64_t bad = c.last;

            failures++;
            if (bad == 0) {
                bad = find_leak(seed, n, &c);
            }
            report(bad, &c);
            next = bad + 1;
        }
        seed = next;
    }
    printf(
        "%s - %llu random programs from seed %llu on; %llu end without a failure, %llu "
        "values\n",
        failures == 0 ? "ok" : "not ok", (unsigned long long)(seed - first),
        (unsigned long long)first, (unsigned long long)well, (unsigned long long)values);
    return failures;
}

static int run_cases(const char *dir)
{
    static struct child c;
    char pattern[4096];
    glob_t found;
    int failures = 0;

    (void)snprintf(pattern, sizeof pattern, "%s/*.txt", dir);
    if (glob(pattern, 0, NULL, &found) != 0) {
        printf("ok - no cases in %s\n", dir);
        return 0;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *const argv[] = {self,        "--program", found.gl_pathv[i],
                                    "--workers", workers,     NULL};

        run_child(argv, &c);
        printf("%s - %s\n%s", c.code == 0 ? "ok" : "not ok", found.gl_pathv[i], c.said);
        failures += c.code != 0;
    }
    (void)fflush(stdout);
    globfree(&found);
    return failures;
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return argv[i + 1];
        }
    }
    return otherwise;
}

/* Whether every argument is an option with its value; prints a wrong one. */
static bool understood(int argc, char **argv)
{
    static const char *const names[] = {"--programs", "--seed",  "--cases",  "--print",
                                        "--program",  "--times", "--workers"};

    for (int i = 1; i < argc; i += 2) {
        bool known = false;

        for (size_t k = 0; k < LSI_COUNT_OF(names); k++) {
            known = known || strcmp(argv[i], names[k]) == 0;
        }
        if (!known || i + 1 == argc) {
            (void)fprintf(
                stderr,
                "usage: random_programs [--programs N] [--seed FIRST] [--cases FOLDER]\n"
                "                       [--workers N]\n"
                "       random_programs --print SEED\n"
                "       random_programs --program FILE [--times N] [--workers N]\n");
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    const char *file = option(argc, argv, "--program", NULL);
    const char *print = option(argc, argv, "--print", NULL);
    const char *cases = option(argc, argv, "--cases", NULL);
    const uint64_t programs = strtoull(option(argc, argv, "--programs", "500"), NULL, 10);
    const uint64_t seed = strtoull(option(argc, argv, "--seed", "1"), NULL, 10);
    ls_error err = LS_ERROR_INIT;
    int failures = 0;

    if (argc == 5 && strcmp(argv[1], "--child") == 0) {
        return work_seeds(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
                          (int)strtol(argv[4], NULL, 10));
    }
    if (!understood(argc, argv)) {
        return 2;
    }
    (void)snprintf(workers, sizeof workers, "%s", option(argc, argv, "--workers", "1"));
    if (strlen(workers) != 1 || workers[0] < '1' || workers[0] > '4') {
        (void)fprintf(stderr, "--workers is 1 to 4\n");
        return 2;
    }
    if (file != NULL) {
        return work_file(file, strtoull(option(argc, argv, "--times", "1"), NULL, 10),
                         workers[0] - '0');
    }
    if (print != NULL) {
        static program p;

        program_generate(strtoull(print, NULL, 10), &p);
        program_print(&p, stdout);
        return 0;
    }
    if (lsi_self_path(self, sizeof self, &err) != LS_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return EXIT_FAILURE;
    }
    if (cases != NULL) {
        failures += run_cases(cases);
    }
    failures += run_all(seed, programs);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
