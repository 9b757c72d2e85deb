/* The team of a device: its threads, and queues of pieces that they share. */
#include "os/team.h"

#include "os/clock.h"
#include "os/thread.h"

#include <errno.h>

#define SPIN_US_DEFAULT 30 // between two operations of a step; a wake-up costs as much
#define SPIN_US_MOST 10000

/*
 * One of the threads. `turn` is increased twice per run: to an odd number when its part
 * is ready (or the team ends), to an even one by the thread that takes the part. That is
 * the member itself, or the caller, if it is done with its own part and the member has
 * not begun: a member whose core is busy does not hold up the run. `turn` has a cache
 * line of its own so that members do not slow each other down.
 */
struct member {
    _Alignas(64) lsi_word turn;
    lsi_team *team;
    lsi_thread thread;
    int index; // of its part; the caller's is 0
    int core;  // -1: not pinned
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): it keeps cache lines apart
struct lsi_team {
    int size;
    int64_t spin_ns;
    struct member *members; // [1 .. size-1]; [0] is the caller
    bool refused;           // creating a thread failed: do not try again
    int started;            // members that run, the caller among them
    bool stop;

    _Alignas(64) atomic_flag busy; // guards everything below and the three above
    lsi_team_fn fn;
    void *arg;
    int parts;
    _Alignas(64) lsi_word left; // members that have not finished their part
};

static void pin(const struct member *m)
{
    ls_error err = LS_ERROR_INIT;

    if (m->core >= 0 && lsi_affinity_set(&m->core, 1, &err) != LS_OK) {
        lsi_log(LS_LOG_WARNING, "team: member %d is not pinned: %s", m->index,
                err.message);
    }
}

/* True for exactly one of the threads that try, and only if there is a part. */
static bool take_part(struct member *m, unsigned turn)
{
    return turn % 2 == 1 && lsi_word_try(&m->turn, turn, turn + 1);
}

static void run_member(void *arg)
{
    struct member *m = arg;
    lsi_team *team = m->team;
    unsigned turn = 0;

    pin(m);
    for (;;) {
        turn = lsi_word_wait_not(&m->turn, turn, team->spin_ns);
        if (!take_part(m, turn)) {
            continue; // the caller was faster
        }
        turn++;
        if (team->stop) {
            return;
        }
        team->fn(team->arg, m->index, team->parts);
        lsi_word_drop(&team->left);
    }
}

int lsi_team_spin_us(void)
{
    const char *text = lsi_env("LS_SPIN_US");
    char *end = NULL;
    long us;

    if (text == NULL) {
        return SPIN_US_DEFAULT;
    }
    errno = 0;
    us = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || us < 0 || us > SPIN_US_MOST) {
        lsi_log(LS_LOG_WARNING,
                "LS_SPIN_US=%.80s is not a number from 0 to %d: %d is used", text,
                SPIN_US_MOST, SPIN_US_DEFAULT);
        return SPIN_US_DEFAULT;
    }
    return (int)us;
}

ls_status lsi_team_create(int members, const int *cores, lsi_team **out, ls_error *err)
{
    lsi_team *team = NULL;
    size_t bytes;

    if (members < 1) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "a team of %d members: it has at least one", members);
    }
    if (!lsi_mul_size((size_t)members, sizeof *team->members, &bytes)) {
        return lsi_fail_memory(err, "a team", SIZE_MAX);
    }
    team = lsi_alloc_aligned(sizeof *team, 64);
    if (team == NULL) {
        return lsi_fail_memory(err, "a team", sizeof *team);
    }
    memset(team, 0, sizeof *team);
    team->members = lsi_alloc_aligned(bytes, 64);
    if (team->members == NULL) {
        lsi_free(team);
        return lsi_fail_memory(err, "the members of a team", bytes);
    }
    memset(team->members, 0, bytes);
    team->size = members;
    team->started = 1;
    if (members > 1 && members <= lsi_affinity_get(NULL, 0)) {
        team->spin_ns = (int64_t)lsi_team_spin_us() * 1000;
    } // otherwise this spin could hold up the member that it waits for
    atomic_flag_clear(&team->busy);
    lsi_word_init(&team->left, 0);
    for (int i = 0; i < members; i++) {
        team->members[i].team = team;
        team->members[i].index = i;
        team->members[i].core = cores != NULL ? cores[i] : -1;
        lsi_word_init(&team->members[i].turn, 0);
    }
    *out = team;
    return LS_OK;
}

void lsi_team_release(lsi_team *team)
{
    if (team == NULL) {
        return;
    }
    team->stop = true;
    for (int i = 1; i < team->started; i++) {
        lsi_word_add(&team->members[i].turn, 1);
    }
    for (int i = 1; i < team->started; i++) {
        lsi_thread_join(&team->members[i].thread);
    }
    for (int i = 0; i < team->size; i++) {
        lsi_word_destroy(&team->members[i].turn);
    }
    lsi_word_destroy(&team->left);
    lsi_free(team->members);
    lsi_free(team);
}

int lsi_team_size(const lsi_team *team)
{
    return team->size;
}

/* Starts members until `wanted` run or the system fails; returns how many run. */
static int start_members(lsi_team *team, int wanted)
{
    while (team->started < wanted && !team->refused) {
        struct member *m = &team->members[team->started];
        ls_error err = LS_ERROR_INIT;

        if (lsi_thread_start(&m->thread, run_member, m, &err, "ls-team-%d", m->index) !=
            LS_OK) {
            team->refused = true;
            lsi_log(LS_LOG_WARNING,
                    "team: %d of %d members run, the caller does the work of the "
                    "others: %s",
                    team->started, team->size, err.message);
        } else {
            team->started++;
        }
    }
    return LSI_MIN(team->started, wanted);
}

static void run_alone(int begin, int parts, lsi_team_fn fn, void *arg)
{
    for (int part = begin; part < parts; part++) {
        fn(arg, part, parts);
    }
}

LSI_HOT void lsi_team_run(lsi_team *team, int parts, lsi_team_fn fn, void *arg)
{
    int running;

    LSI_ASSERT(parts <= team->size);
    if (parts <= 1 || atomic_flag_test_and_set(&team->busy)) {
        run_alone(0, parts, fn, arg); // one part, or another thread uses the team
        return;
    }
    running = start_members(team, parts);
    team->fn = fn;
    team->arg = arg;
    team->parts = parts;
    lsi_word_set(&team->left, (unsigned)running - 1);
    for (int i = 1; i < running; i++) {
        lsi_word_add(&team->members[i].turn, 1);
    }
    fn(arg, 0, parts);
    run_alone(running, parts, fn, arg);
    for (int i = running - 1; i > 0; i--) { // the last was called last
        struct member *m = &team->members[i];

        if (take_part(m, lsi_word_get(&m->turn))) {
            fn(arg, i, parts);
            lsi_word_drop(&team->left);
        }
    }
    lsi_word_wait_zero(&team->left, team->spin_ns);
    atomic_flag_clear(&team->busy);
}

void lsi_team_share(int64_t n, int64_t grain, int part, int parts, int64_t *begin,
                    int64_t *end)
{
    if (parts == 1) { // most often: saves the divisions
        *begin = 0;
        *end = n;
        return;
    }
    const int64_t g = grain > 0 ? grain : 1;
    const int64_t units = n / g + (n % g != 0);
    const int64_t each = units / parts, more = units % parts; // the first `more` get one
    const int64_t first = each * part + LSI_MIN(part, more);
    const int64_t after = first + each + (part < more ? 1 : 0);

    // The last unit may be cut; comparing units keeps the products from overflowing.
    *begin = first < units ? first * g : n;
    *end = after < units ? after * g : n;
}

void lsi_queue_init(lsi_queue *q, int64_t count, int parts)
{
    q->count = count;
    q->shares = LSI_MIN(parts, LSI_QUEUE_SHARES);
    for (int i = 0; i < q->shares; i++) {
        int64_t begin = 0;

        lsi_team_share(count, 1, i, q->shares, &begin, &q->share[i].end);
        atomic_init(&q->share[i].next, begin);
    }
}

int64_t lsi_queue_take(lsi_queue *q, int part)
{
    for (int i = 0; i < q->shares; i++) {
        struct lsi_share *s = &q->share[(part + i) % q->shares];

        if (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end) {
            const int64_t piece =
                atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);

            if (piece < s->end) {
                return piece;
            }
        }
    }
    return -1;
}
