/* Threads, words, clocks, teams, cores and quotas. */
#include "os/clock.h"
#include "os/file.h"
#include "os/team.h"
#include "os/thread.h"

#include "ls_test.h"

#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROUNDS = 10000, MOST = 4 };

struct parts {
    atomic_int seen[MOST];
    atomic_int wrong;
    int expected;
};

static void mark(void *arg, int part, int parts)
{
    struct parts *p = arg;

    if (part < 0 || part >= parts || parts != p->expected) {
        (void)atomic_fetch_add(&p->wrong, 1);
        return;
    }
    (void)atomic_fetch_add(&p->seen[part], 1);
}

/* Runs `rounds` times with 1, 2, ... parts in turn and checks each part ran once. */
static void run_rounds(lsi_team *team, int rounds)
{
    const int size = lsi_team_size(team);
    int bad = 0;

    for (int round = 0; round < rounds; round++) {
        struct parts p;

        memset(&p, 0, sizeof p);
        p.expected = round % size + 1;
        lsi_team_run(team, p.expected, mark, &p);
        bad += atomic_load(&p.wrong) != 0;
        for (int i = 0; i < MOST; i++) {
            bad += atomic_load(&p.seen[i]) != (i < p.expected);
        }
    }
    LST_CHECK(bad == 0);
}

LST_TEST(a_team_of_any_size_runs_every_part_exactly_once)
{
    for (int size = 1; size <= MOST; size++) {
        ls_error err = LS_ERROR_INIT;
        lsi_team *team = NULL;

        LST_OK(lsi_team_create(size, NULL, &team, &err));
        LST_CHECK(lsi_team_size(team) == size);
        run_rounds(team, ROUNDS);
        lsi_team_release(team);
    }
}

LST_TEST(a_team_that_never_spins_runs_every_part_exactly_once)
{
    ls_error err = LS_ERROR_INIT;
    lsi_team *team = NULL;

    LST_CHECK(setenv("LS_SPIN_US", "0", 1) == 0);
    LST_CHECK(lsi_team_spin_us() == 0);
    LST_OK(lsi_team_create(2, NULL, &team, &err));
    run_rounds(team, ROUNDS);
    lsi_team_release(team);
    LST_CHECK(setenv("LS_SPIN_US", "soon", 1) == 0);
    LST_CHECK(lsi_team_spin_us() > 0); // nonsense is the default
    LST_CHECK(unsetenv("LS_SPIN_US") == 0);
}

static void run_on_thread(void *arg)
{
    run_rounds(arg, ROUNDS / 2);
}

LST_TEST(two_threads_that_share_a_team_both_get_all_their_parts)
{
    ls_error err = LS_ERROR_INIT;
    lsi_team *team = NULL;
    lsi_thread other;

    LST_OK(lsi_team_create(3, NULL, &team, &err));
    LST_OK(lsi_thread_start(&other, run_on_thread, team, &err, "other"));
    run_rounds(team, ROUNDS / 2);
    lsi_thread_join(&other);
    lsi_team_release(team);
}

struct meeting {
    lsi_team *team;
    struct parts inner;
};

static void run_inside(void *arg, int part, int parts)
{
    struct meeting *m = arg;

    (void)parts;
    if (part == 0) { // the team is busy: these run one after the other
        lsi_team_run(m->team, 2, mark, &m->inner);
    }
}

LST_TEST(a_busy_team_lets_the_second_caller_do_its_parts_alone)
{
    ls_error err = LS_ERROR_INIT;
    struct meeting m;

    memset(&m, 0, sizeof m);
    m.inner.expected = 2;
    LST_OK(lsi_team_create(2, NULL, &m.team, &err));
    lsi_team_run(m.team, 2, run_inside, &m);
    LST_CHECK(atomic_load(&m.inner.seen[0]) == 1 && atomic_load(&m.inner.seen[1]) == 1);
    lsi_team_release(m.team);
}

/* Part 0 goes on when part 1 has begun, so that part 1 is its member's. */
struct both {
    atomic_bool begun;
    pthread_t ids[2];
    int cores;
};

static void collect(void *arg, int part, int parts)
{
    struct both *b = arg;

    (void)parts;
    b->ids[part] = pthread_self();
    if (part == 1) {
        b->cores = lsi_affinity_get(NULL, 0);
        atomic_store(&b->begun, true);
    }
    while (!atomic_load(&b->begun)) {
        lsi_yield();
    }
}

LST_TEST(the_caller_does_part_0_and_the_same_thread_the_other)
{
    ls_error err = LS_ERROR_INIT;
    struct both first = {.cores = 0}, second = {.cores = 0};
    lsi_team *team = NULL;

    LST_OK(lsi_team_create(2, NULL, &team, &err));
    lsi_team_run(team, 2, collect, &first);
    lsi_team_run(team, 2, collect, &second);
    LST_CHECK(pthread_equal(first.ids[0], pthread_self()));
    LST_CHECK(!pthread_equal(first.ids[1], pthread_self()));
    LST_CHECK(pthread_equal(first.ids[1], second.ids[1]));
    lsi_team_release(team);
}

LST_TEST(a_pinned_member_has_one_core_and_the_caller_keeps_all)
{
    ls_error err = LS_ERROR_INIT;
    const int mine = lsi_affinity_get(NULL, 0);
    struct both b = {.cores = 0};
    lsi_team *team = NULL;
    int cores[2] = {0, 0};

    LST_CHECK(mine >= 1);
    (void)lsi_affinity_get(cores, 1);
    cores[1] = cores[0];
    LST_OK(lsi_team_create(2, cores, &team, &err));
    lsi_team_run(team, 2, collect, &b);
#ifdef __linux__
    LST_CHECK(b.cores == 1);
#endif
    LST_CHECK(lsi_affinity_get(NULL, 0) == mine);
    lsi_team_release(team);
}

struct late {
    atomic_bool held, over; // the member is inside a part; it may leave
    struct parts parts;
};

static void hold_member(void *arg, int part, int parts)
{
    struct late *l = arg;

    if (part == 1 && !atomic_load(&l->over)) {
        atomic_store(&l->held, true);
        while (!atomic_load(&l->over)) {
            lsi_yield();
        }
    }
    if (part == 0) {
        while (!atomic_load(&l->held)) {
            lsi_yield();
        }
        // Member 1 has begun; whether member 2 has is anybody's guess.
        atomic_store(&l->over, true);
    }
    mark(&l->parts, part, parts);
}

LST_TEST(parts_are_done_once_whoever_is_late)
{
    ls_error err = LS_ERROR_INIT;
    lsi_team *team = NULL;

    LST_OK(lsi_team_create(3, NULL, &team, &err));
    for (int i = 0; i < 200; i++) {
        struct late l;

        memset(&l, 0, sizeof l);
        l.parts.expected = 3;
        lsi_team_run(team, 3, hold_member, &l);
        for (int k = 0; k < 3; k++) {
            LST_CHECK(atomic_load(&l.parts.seen[k]) == 1);
        }
    }
    lsi_team_release(team);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHADOWED 1 // sanitizers need more address space than the limit below leaves
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHADOWED 1
#endif
#endif

static void add_part(void *arg, int part, int parts)
{
    (void)parts;
    (void)atomic_fetch_add((atomic_int *)arg, part);
}

static void count_warning(ls_log_level level, const char *line, void *user)
{
    *(int *)user += level == LS_LOG_WARNING && strstr(line, "members run") != NULL;
}

LST_TEST(parts_of_threads_that_cannot_be_started_are_done_by_the_caller)
{
#if defined(__linux__) && !defined(SHADOWED)
    enum { SIZE = 200 };
    ls_error err = LS_ERROR_INIT;
    struct rlimit before, tight, kept;
    lsi_team *team = NULL;
    void *text = NULL;
    int warnings = 0;
    size_t len = 0;

    LST_OK(lsi_file_read("/proc/self/statm", 1000, &text, &len, &err));
    LST_OK(lsi_team_create(SIZE, NULL, &team, &err));
    LST_CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    tight = before; // room for some stacks of 8 MiB, not for 199
    tight.rlim_cur = strtoul(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) + (60 << 20);
    ls_log_set(LS_LOG_WARNING, count_warning, &warnings);
    LST_CHECK(setrlimit(RLIMIT_AS, &tight) == 0);
    LST_CHECK(getrlimit(RLIMIT_AS, &kept) == 0); // an emulator may leave it as it was
    for (int round = 0; round < 3; round++) {
        atomic_int sum = 0;

        lsi_team_run(team, SIZE, add_part, &sum);
        LST_CHECK(atomic_load(&sum) == SIZE * (SIZE - 1) / 2);
    }
    LST_CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    ls_log_set(LS_LOG_WARNING, NULL, NULL);
    LST_CHECK(warnings == (kept.rlim_cur == tight.rlim_cur)); // said once
    lsi_team_release(team);
    lsi_free(text);
#else
    (void)count_warning;
    (void)add_part;
#endif
}

static ls_status create_team(ls_error *err)
{
    lsi_team *team = NULL;
    const ls_status st = lsi_team_create(3, NULL, &team, err);

    lsi_team_release(team);
    return st;
}

enum { MANY_PIECES = 70 };

/* Members one after the other, each as long as it gets anything. */
static void take_all(int64_t count, int parts)
{
    int taken[MANY_PIECES] = {0}, bad = 0;
    lsi_queue q;

    lsi_queue_init(&q, count, parts);
    for (int part = 0; part < parts; part++) {
        int64_t begin = 0, end = 0, first = lsi_queue_take(&q, part);

        lsi_team_share(count, 1, part, parts, &begin, &end);
        bad += parts <= LSI_QUEUE_SHARES && begin < end && first != begin;
        if (first >= 0) {
            taken[first]++;
        }
    }
    for (int part = parts - 1; part >= 0; part--) {
        for (int64_t i = lsi_queue_take(&q, part); i >= 0; i = lsi_queue_take(&q, part)) {
            taken[i]++;
        }
    }
    for (int64_t i = 0; i < count; i++) {
        bad += taken[i] != 1;
    }
    LST_CHECK(bad == 0);
}

LST_TEST(pieces_are_taken_once_and_those_of_the_own_share_first)
{
    for (int parts = 1; parts <= LSI_QUEUE_SHARES + 3; parts++) {
        take_all(0, parts);
        take_all(1, parts);
        take_all(parts, parts);
        take_all(MANY_PIECES, parts);
    }
}

struct taking {
    lsi_queue queue;
    atomic_int taken[MANY_PIECES];
};

static void take_part_of(void *arg, int part, int parts)
{
    struct taking *t = arg;

    (void)parts;
    for (int64_t i = lsi_queue_take(&t->queue, part); i >= 0;
         i = lsi_queue_take(&t->queue, part)) {
        (void)atomic_fetch_add(&t->taken[i], 1);
    }
}

LST_TEST(pieces_that_members_take_at_once_are_taken_once)
{
    ls_error err = LS_ERROR_INIT;
    lsi_team *team = NULL;
    int bad = 0;

    LST_OK(lsi_team_create(MOST, NULL, &team, &err));
    for (int round = 0; round < ROUNDS / 10; round++) {
        struct taking t = {.taken = {0}};

        lsi_queue_init(&t.queue, MANY_PIECES, MOST);
        lsi_team_run(team, MOST, take_part_of, &t);
        for (int i = 0; i < MANY_PIECES; i++) {
            bad += atomic_load(&t.taken[i]) != 1;
        }
    }
    LST_CHECK(bad == 0);
    lsi_team_release(team);
}

LST_TEST(a_team_survives_the_failure_of_every_allocation)
{
    lst_every_allocation(create_team);
}

LST_TEST(a_team_without_members_is_refused)
{
    ls_error err = LS_ERROR_INIT;
    lsi_team *team = NULL;

    LST_FAILS(lsi_team_create(0, NULL, &team, &err), LS_INVALID_ARGUMENT, err, "0");
    LST_CHECK(team == NULL);
}

LST_TEST(shares_cover_everything_once_at_multiples_of_the_grain)
{
    static const int64_t counts[] = {0, 1, 7, 8, 63, 64, 65, 1000, 4099, INT64_MAX};
    static const int64_t grains[] = {1, 3, 8, 64, 4096};

    for (size_t c = 0; c < LSI_COUNT_OF(counts); c++) {
        for (size_t g = 0; g < LSI_COUNT_OF(grains); g++) {
            for (int parts = 1; parts <= 9; parts++) {
                int64_t at = 0, most = 0, least = INT64_MAX;

                for (int part = 0; part < parts; part++) {
                    int64_t begin = -1, end = -1;

                    lsi_team_share(counts[c], grains[g], part, parts, &begin, &end);
                    LST_CHECK(begin == at && end >= begin);
                    LST_CHECK(begin % grains[g] == 0 || begin == counts[c]);
                    at = end;
                    most = LSI_MAX(most, end - begin);
                    least = LSI_MIN(least, end - begin);
                }
                LST_CHECK(at == counts[c]);
                LST_CHECK(most - least < 2 * grains[g]); // nobody does much more
            }
        }
    }
}

struct waiting {
    lsi_word word;
    lsi_mutex mutex;
    lsi_cond cond;
    bool said;
    bool got;
};

static void wait_for_word(void *arg)
{
    struct waiting *w = arg;

    lsi_mutex_lock(&w->mutex);
    while (!w->said) {
        (void)lsi_cond_wait(&w->cond, &w->mutex, LSI_DEADLINE_NEVER);
    }
    w->got = true;
    lsi_mutex_unlock(&w->mutex);
    (void)lsi_word_wait_not(&w->word, 7, 0);
}

LST_TEST(whoever_waits_is_woken_by_a_condition_and_by_a_word)
{
    ls_error err = LS_ERROR_INIT;
    struct waiting w = {.said = false};
    lsi_thread thread;

    lsi_word_init(&w.word, 7);
    lsi_mutex_init(&w.mutex);
    lsi_cond_init(&w.cond);
    LST_OK(lsi_thread_start(&thread, wait_for_word, &w, &err, "waits"));
    LST_CHECK(strcmp(thread.name, "waits") == 0);
    lsi_mutex_lock(&w.mutex);
    w.said = true;
    lsi_cond_broadcast(&w.cond);
    lsi_mutex_unlock(&w.mutex);
    lsi_word_set(&w.word, 8);
    lsi_thread_join(&thread);
    LST_CHECK(w.got);
    lsi_word_destroy(&w.word);
    lsi_cond_destroy(&w.cond);
    lsi_mutex_destroy(&w.mutex);
}

LST_TEST(a_condition_that_nobody_signals_ends_at_its_deadline)
{
    lsi_mutex mutex;
    lsi_cond cond;
    const int64_t begin = lsi_now_ns();
    const lsi_deadline deadline = lsi_deadline_in_ms(20);

    lsi_mutex_init(&mutex);
    lsi_cond_init(&cond);
    lsi_mutex_lock(&mutex);
    while (lsi_cond_wait(&cond, &mutex, deadline)) {
        // woken for nothing
    }
    lsi_mutex_unlock(&mutex);
    LST_CHECK(lsi_now_ns() - begin >= 20000000);
    LST_CHECK(lsi_deadline_passed(deadline));
    lsi_cond_destroy(&cond);
    lsi_mutex_destroy(&mutex);
}

LST_TEST(deadlines_count_down_and_never_comes_never)
{
    const lsi_deadline soon = lsi_deadline_in_ms(100000);

    LST_CHECK(lsi_deadline_in_ms(-1) == LSI_DEADLINE_NEVER);
    LST_CHECK(lsi_deadline_in_ms(INT64_MAX) == LSI_DEADLINE_NEVER);
    LST_CHECK(lsi_deadline_left_ns(LSI_DEADLINE_NEVER) == INT64_MAX);
    LST_CHECK(lsi_deadline_poll_ms(LSI_DEADLINE_NEVER) == -1);
    LST_CHECK(!lsi_deadline_passed(LSI_DEADLINE_NEVER));
    LST_CHECK(lsi_deadline_passed(lsi_deadline_in_ms(0)));
    LST_CHECK(lsi_deadline_poll_ms(0) == 0);
    LST_CHECK(lsi_deadline_left_ns(soon) <= INT64_C(100000) * 1000000);
    LST_CHECK(lsi_deadline_left_ns(soon) > 0 && lsi_deadline_poll_ms(soon) <= 100000);
}

LST_TEST(the_quota_of_a_container_is_rounded_up_to_cores)
{
    LST_CHECK(lsi_cpu_quota_parse("200000 100000\n") == 2);
    LST_CHECK(lsi_cpu_quota_parse("150000 100000\n") == 2);
    LST_CHECK(lsi_cpu_quota_parse("1000 100000") == 1);
    LST_CHECK(lsi_cpu_quota_parse("max 100000\n") == INT_MAX);
    LST_CHECK(lsi_cpu_quota_parse("-1 100000") == INT_MAX);
    LST_CHECK(lsi_cpu_quota_parse("5 0") == INT_MAX);
    LST_CHECK(lsi_cpu_quota_parse("") == INT_MAX);
    LST_CHECK(lsi_cpu_quota() >= 1);
}

LST_TEST(a_sleep_is_not_shorter_than_asked_for)
{
    const int64_t begin = lsi_now_ns();

    lsi_sleep_ns(2000000);
    lsi_sleep_ns(-5);
    LST_CHECK(lsi_now_ns() - begin >= 2000000);
}

LST_MAIN(LST_CASE(a_team_of_any_size_runs_every_part_exactly_once),
         LST_CASE(a_team_that_never_spins_runs_every_part_exactly_once),
         LST_CASE(two_threads_that_share_a_team_both_get_all_their_parts),
         LST_CASE(a_busy_team_lets_the_second_caller_do_its_parts_alone),
         LST_CASE(the_caller_does_part_0_and_the_same_thread_the_other),
         LST_CASE(parts_are_done_once_whoever_is_late),
         LST_CASE(a_pinned_member_has_one_core_and_the_caller_keeps_all),
         LST_CASE(parts_of_threads_that_cannot_be_started_are_done_by_the_caller),
         LST_CASE(pieces_are_taken_once_and_those_of_the_own_share_first),
         LST_CASE(pieces_that_members_take_at_once_are_taken_once),
         LST_CASE(a_team_survives_the_failure_of_every_allocation),
         LST_CASE(a_team_without_members_is_refused),
         LST_CASE(shares_cover_everything_once_at_multiples_of_the_grain),
         LST_CASE(whoever_waits_is_woken_by_a_condition_and_by_a_word),
         LST_CASE(a_condition_that_nobody_signals_ends_at_its_deadline),
         LST_CASE(deadlines_count_down_and_never_comes_never),
         LST_CASE(the_quota_of_a_container_is_rounded_up_to_cores),
         LST_CASE(a_sleep_is_not_shorter_than_asked_for))
