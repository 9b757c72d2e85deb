/* Runs random programs in every configuration and compares what they computed. */
#include "random_child.h"

#include "random_machine.h"

#include <signal.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* The time limit of a single program, as in shortening. */
enum { SECONDS = 120, SECONDS_ALONE = 20, MOST_BYTES = 64 << 20, FILLED = 4096 };

/* If a program does not end: prints its present statements and ends the process. */
static void give_up(int signal_number)
{
    static const char hang[] =
        "\ndid not end: seed, configuration, statements of replicas 0 to 3 and host: ";
    char where[200];
    const size_t n = machine_progress(where, sizeof where - 1);

    (void)signal_number;
    where[n] = '\n';
    if (write(STDERR_FILENO, hang, sizeof hang - 1) < 0 ||
        write(STDERR_FILENO, where, n + 1) < 0) {
        _exit(EXIT_HANG); // stderr is closed: only the status is left
    }
    _exit(EXIT_HANG);
}

/* An allocator that refuses huge sizes and fills memory with a pattern. */
static void *limited_alloc(size_t size, size_t align, void *user)
{
    void *ptr = NULL;

    (void)user;
    if (size > MOST_BYTES || posix_memalign(&ptr, align < 16 ? 16 : align, size) != 0) {
        return NULL;
    }
    if (!SANITIZED) {
        memset(ptr, 0xa5, LSI_MIN(size, (size_t)FILLED));
    }
    return ptr;
}

static void limited_free(void *ptr, void *user)
{
    (void)user;
    free(ptr);
}

static void say_nothing(ls_log_level level, const char *line, void *user)
{
    (void)level;
    (void)line;
    (void)user;
}

static void prepare_process(void)
{
    struct sigaction action = {.sa_handler = give_up};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGALRM, &action, NULL);
    ls_log_set(LS_LOG_ERROR, say_nothing, NULL);
    LST_OK(ls_allocator_set(limited_alloc, limited_free, NULL, NULL));
}

/* Counts of the results of programs, to notice programs that only fail early. */
struct tally {
    uint64_t well;   /* programs without any failure */
    uint64_t values; /* in their journals */
};

/* Runs the program in every configuration; false: `why` says what is wrong. */
static bool run_program(const program *p, unsigned seconds, struct tally *t, char *why,
                        size_t size)
{
    machine *m[CONFIGS] = {NULL};
    bool fine = true;

    (void)alarm(seconds);
    for (int k = 0; k < CONFIGS && fine; k++) {
        m[k] = machine_run(p, (config)k);
        if (m[k]->complaint[0] != '\0') {
            (void)snprintf(why, size, "%s: %s", config_name((config)k), m[k]->complaint);
            fine = false;
        }
    }
    fine = fine && machine_compare(m[FAST], m[THREADS], why, size) &&
           machine_compare(m[FAST], m[REFERENCE], why, size);
    t->well += m[FAST]->failures == 0;
    t->values += m[FAST]->log.count;
    for (int k = 0; k < CONFIGS; k++) {
        if (m[k] != NULL) {
            machine_free(m[k]);
        }
    }
    (void)alarm(0);
    return fine;
}

/* The same for workers: with what one process of all replicas computes. */
static bool run_on_workers(const program *p, unsigned seconds, int workers,
                           struct tally *t, char *why, size_t size)
{
    const config k = p->seed % 2 == 0 ? FAST : THREADS; // both give the same bits
    machine *one, *each[MOST_REPLICAS] = {NULL};
    bool fine = true;

    (void)alarm(seconds);
    one = machine_run_alone(p, FAST, workers);
    machine_run_workers(p, k, workers, each);
    for (int w = -1; w < workers && fine; w++) {
        const machine *m = w < 0 ? one : each[w];

        if (m->complaint[0] != '\0') {
            (void)snprintf(why, size, "worker %d (-1: one process): %s", w, m->complaint);
            fine = false;
        }
    }
    for (int w = 0; w < workers && fine; w++) {
        fine = machine_compare_worker(one, each[w], why, size) &&
               machine_compare_workers(each[0], each[w], why, size);
    }
    t->well += one->failures == 0;
    for (int w = 0; w < workers; w++) {
        t->values += each[w]->log.count;
        machine_free(each[w]);
    }
    machine_free(one);
    (void)alarm(0);
    return fine;
}

/* Runs the program in every way that is compared; false: `why` says what is wrong. */
static bool run_and_compare(const program *p, unsigned seconds, int workers,
                            struct tally *t, char *why, size_t size)
{
    return workers > 1 ? run_on_workers(p, seconds, workers, t, why, size)
                       : run_program(p, seconds, t, why, size);
}

int work_seeds(uint64_t first, uint64_t count, int workers)
{
    static program p;
    struct tally t = {0, 0};
    char why[2000];

    prepare_process();
    for (uint64_t seed = first; seed - first < count; seed++) {
        printf("@%llu\n", (unsigned long long)seed);
        (void)fflush(stdout);
        program_generate(seed, &p);
        if (!run_and_compare(&p, SECONDS, workers, &t, why, sizeof why)) {
            printf("%s\n", why);
            (void)fflush(stdout);
            return EXIT_WRONG;
        }
    }
    machine_forget_all();
    printf("@0 %llu %llu\n", (unsigned long long)t.well, (unsigned long long)t.values);
    (void)fflush(stdout); // before a leak checker ends the process
    return atomic_load(&lst_failures) == 0 ? 0 : EXIT_WRONG;
}

static bool run_and_explain(const program *p, int workers, struct tally *t, char *why,
                            size_t size)
{
    machine *m;

    (void)alarm(SECONDS_ALONE);
    m = machine_run_alone(p, FAST, workers > 1 ? workers : 0);
    machine_explain(m, stdout);
    machine_free(m);
    return run_and_compare(p, SECONDS_ALONE, workers, t, why, size);
}

int work_file(const char *name, uint64_t times, int workers)
{
    static program p;
    struct tally t = {0, 0};
    char why[2000];
    FILE *f = fopen(name, "r");

    if (f == NULL || !program_read(f, name, &p)) {
        (void)fprintf(stderr, "%s cannot be read\n", name);
        if (f != NULL) {
            (void)fclose(f);
        }
        return 2;
    }
    (void)fclose(f);
    prepare_process();
    for (uint64_t i = 0; i < times; i++) {
        if (i == 0 ? !run_and_explain(&p, workers, &t, why, sizeof why)
                   : !run_and_compare(&p, SECONDS_ALONE, workers, &t, why, sizeof why)) {
            printf("%s\n", why);
            return EXIT_WRONG;
        }
    }
    machine_forget_all();
    return atomic_load(&lst_failures) == 0 ? 0 : EXIT_WRONG;
}
