/*
 * Words in memory that processes share: this program starts itself again with a role, a
 * file descriptor of the memory and a number of rounds.
 */
#ifdef __linux__
#define _GNU_SOURCE // NOLINT(bugprone-reserved-identifier): memfd_create
#endif
#include "os/process.h"
#include "os/thread.h"

#include "ls_test.h"

#ifdef __linux__
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 2000, LONG_MS = 60000 }; // a test that needs a minute hangs

/* In the memory; words of two processes in turn. */
struct shared {
    lsi_word ours, theirs;
};

/* Sleeps until the word is `value`; false: no wake-up arrived within a minute. */
static bool sleep_until(lsi_word *word, unsigned value)
{
    const lsi_deadline deadline = lsi_deadline_in_ms(LONG_MS);
    unsigned seen = lsi_word_get(word);

    while (seen != value && !lsi_deadline_passed(deadline)) {
        lsi_word_sleep(word, seen, deadline);
        seen = lsi_word_get(word);
    }
    return seen == value && !lsi_deadline_passed(deadline);
}

/* Waits until a thread sleeps there, or is about to. */
static bool wait_for_sleeper(lsi_word *word, unsigned count)
{
    const lsi_deadline deadline = lsi_deadline_in_ms(LONG_MS);

    while ((atomic_load(&word->sleepers) & ~LSI_WORD_SHARED) < count) {
        if (lsi_deadline_passed(deadline)) {
            return false;
        }
        lsi_yield();
    }
    return true;
}

static struct shared *map_memory(int fd)
{
    void *at =
        mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return at != MAP_FAILED ? at : NULL;
}

/* The other process: answers each change of `ours` by the same number in `theirs`. */
static int answer(int fd, unsigned rounds)
{
    struct shared *s = map_memory(fd);

    for (unsigned i = 1; s != NULL && i <= rounds; i++) {
        if (!sleep_until(&s->ours, i)) {
            return EXIT_FAILURE;
        }
        lsi_word_set(&s->theirs, i);
    }
    return s != NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Memory that a process started later inherits by its descriptor. */
static struct shared *create_memory(int *fd)
{
    struct shared *s = NULL;

    *fd = memfd_create("words", 0);
    LST_CHECK(*fd >= 0 && ftruncate(*fd, sizeof *s) == 0);
    s = map_memory(*fd);
    LST_CHECK(s != NULL);
    if (s != NULL) {
        lsi_word_init_shared(&s->ours, 0);
        lsi_word_init_shared(&s->theirs, 0);
    }
    return s;
}

static lsi_process *start_other(int fd, unsigned rounds)
{
    char self[1024], number[16], count[16];
    const char *argv[] = {self, "--answer", number, count, NULL};
    ls_error err = LS_ERROR_INIT;
    lsi_process *p = NULL;

    LST_OK(lsi_self_path(self, sizeof self, &err));
    (void)snprintf(number, sizeof number, "%d", fd);
    (void)snprintf(count, sizeof count, "%u", rounds);
    LST_OK(lsi_process_start(&(lsi_spawn){.argv = argv}, &p, &err));
    return p;
}

static void check_end(lsi_process *p)
{
    ls_error err = LS_ERROR_INIT;
    lsi_exit how = {-1, -1};

    LST_OK(lsi_process_wait(p, lsi_deadline_in_ms(2 * LONG_MS), &how, &err));
    LST_CHECK(how.code == EXIT_SUCCESS && how.signal == 0);
}

static void release_memory(struct shared *s, int fd)
{
    lsi_word_destroy(&s->ours);
    lsi_word_destroy(&s->theirs);
    (void)munmap(s, sizeof *s);
    (void)close(fd);
}

LST_TEST(two_processes_wake_each_other)
{
    int fd = -1;
    struct shared *s = create_memory(&fd);
    lsi_process *other = s != NULL ? start_other(fd, ROUNDS) : NULL;
    bool well = other != NULL;

    for (unsigned i = 1; i <= ROUNDS && well; i++) {
        well = wait_for_sleeper(&s->ours, 1); // so that it has to be woken
        lsi_word_set(&s->ours, i);
        well = well && sleep_until(&s->theirs, i);
    }
    LST_CHECK(well);
    if (other != NULL) {
        check_end(other);
        LST_CHECK(atomic_load(&s->ours.sleepers) == LSI_WORD_SHARED);
        LST_CHECK(atomic_load(&s->theirs.sleepers) == LSI_WORD_SHARED);
        lsi_process_release(other);
        release_memory(s, fd);
    }
}

LST_TEST(a_process_killed_while_it_sleeps_leaves_the_word_usable)
{
    int fd = -1;
    struct shared *s = create_memory(&fd);
    lsi_process *dead = s != NULL ? start_other(fd, 1) : NULL;
    ls_error err = LS_ERROR_INIT;
    lsi_process *other;

    if (dead == NULL) {
        return;
    }
    LST_CHECK(wait_for_sleeper(&s->ours, 1));
    LST_OK(lsi_process_kill(dead, SIGKILL, &err));
    lsi_process_release(dead); // waits for its end
    LST_CHECK(atomic_load(&s->ours.sleepers) == (LSI_WORD_SHARED | 1)); // stays counted
    other = start_other(fd, 3);
    for (unsigned i = 1; i <= 3; i++) {
        LST_CHECK(wait_for_sleeper(&s->ours, 2));
        lsi_word_set(&s->ours, i);
        LST_CHECK(sleep_until(&s->theirs, i));
    }
    check_end(other);
    lsi_process_release(other);
    release_memory(s, fd);
}

struct two_places {
    struct shared *other; // the same memory at another address
    bool woken;
};

static void sleep_there(void *arg)
{
    struct two_places *t = arg;

    t->woken = sleep_until(&t->other->ours, 1);
}

LST_TEST(a_word_is_one_at_every_address_it_is_mapped_at)
{
    int fd = -1;
    struct shared *s = create_memory(&fd);
    struct two_places t = {.other = map_memory(fd), .woken = false};
    ls_error err = LS_ERROR_INIT;
    lsi_thread thread;

    LST_CHECK(t.other != NULL && t.other != s);
    LST_OK(lsi_thread_start(&thread, sleep_there, &t, &err, "sleeps"));
    LST_CHECK(wait_for_sleeper(&s->ours, 1));
    lsi_word_add(&s->ours, 1);
    lsi_thread_join(&thread);
    LST_CHECK(t.woken);
    (void)munmap(t.other, sizeof *t.other);
    release_memory(s, fd);
}

LST_TEST(a_private_word_has_no_flag_and_both_kinds_count_alike)
{
    lsi_word own, shared;

    lsi_word_init(&own, 5);
    lsi_word_init_shared(&shared, 5);
    LST_CHECK(atomic_load(&own.sleepers) == 0);
    LST_CHECK(atomic_load(&shared.sleepers) == LSI_WORD_SHARED);
    lsi_word_drop(&own);
    lsi_word_drop(&shared);
    LST_CHECK(lsi_word_get(&own) == 4 && lsi_word_get(&shared) == 4);
    LST_CHECK(!lsi_word_try(&shared, 5, 6) && lsi_word_try(&shared, 4, 6));
    LST_CHECK(lsi_word_wait_not(&shared, 4, 0) == 6);
    lsi_word_destroy(&own);
    lsi_word_destroy(&shared);
}

int main(int argc, char **argv)
{
    static const lst_case cases[] = {
        LST_CASE(two_processes_wake_each_other),
        LST_CASE(a_process_killed_while_it_sleeps_leaves_the_word_usable),
        LST_CASE(a_word_is_one_at_every_address_it_is_mapped_at),
        LST_CASE(a_private_word_has_no_flag_and_both_kinds_count_alike),
    };

    if (argc == 4 && strcmp(argv[1], "--answer") == 0) {
        return answer((int)strtol(argv[2], NULL, 10),
                      (unsigned)strtoul(argv[3], NULL, 10));
    }
    return lst_main(argc, argv, cases, LSI_COUNT_OF(cases));
}
#else
int main(void)
{
    return EXIT_SUCCESS; // no memory of two processes without memfd_create()
}
#endif
