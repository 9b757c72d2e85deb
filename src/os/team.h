/*
 * A team: the threads of one device, the caller among them. Work is cut into as many
 * parts as there are members, so a device never uses more cores than it owns. Members
 * spin for some microseconds after their part, then park. A part whose member has not
 * begun when the caller is done with its own is done by the caller.
 */
#ifndef LSI_TEAM_H
#define LSI_TEAM_H
#include "base/base.h"

typedef struct lsi_team lsi_team;

/* One member's share: part 0 .. parts-1. Must not call lsi_team_run() on the same team.
 */
typedef void (*lsi_team_fn)(void *arg, int part, int parts);

/*
 * `cores`: numbers of the cores to stay on, one per member, or NULL: not pinned. The
 * caller of lsi_team_run() is member 0 and is never pinned by the team. Threads start
 * at the first run that needs them.
 */
ls_status lsi_team_create(int members, const int *cores, lsi_team **out, ls_error *err);
void lsi_team_release(lsi_team *team); /* joins; NULL is allowed */
int lsi_team_size(const lsi_team *team);

/*
 * Runs fn(arg, part, parts) for every part and returns when all are done. `parts` is
 * at most the team's size; with 1 it is a plain call. One caller at a time: a second
 * thread that comes meanwhile runs its parts alone, one after the other, with the same
 * result.
 */
void lsi_team_run(lsi_team *team, int parts, lsi_team_fn fn, void *arg);

/*
 * Pieces of a run, for members to take one after the other. Each has its own share of
 * them and takes those first: the same pieces in every run of the same shape, so that
 * what it wrote last time is still in its cache. Then it takes pieces that others have
 * not begun: a member that loses its core does not hold up the run. The result of a piece
 * must not depend on the member that computes it.
 */
enum { LSI_QUEUE_SHARES = 32 };

typedef struct lsi_queue {
    int64_t count;
    int shares;
    struct lsi_share {
        _Alignas(64) _Atomic int64_t next; /* a cache line each */
        int64_t end;
    } share[LSI_QUEUE_SHARES];
} lsi_queue;

/* `count` pieces for `parts` members; more members than shares begin in the same ones. */
void lsi_queue_init(lsi_queue *q, int64_t count, int parts);

/* The number of the next piece for member `part`; -1: there is none left. */
int64_t lsi_queue_take(lsi_queue *q, int part);

/* How long members spin before they park: LS_SPIN_US, else the default. */
int lsi_team_spin_us(void);

/* begin and end of share `part` of `n` items, multiples of `grain` but for the last. */
void lsi_team_share(int64_t n, int64_t grain, int part, int parts, int64_t *begin,
                    int64_t *end);
#endif
