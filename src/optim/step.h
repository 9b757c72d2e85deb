/*
 * One step of an optimizer on one replica: what the stages of step.c pass on to each
 * other. With one replica the stages between replicas are empty, with one worker those
 * between workers.
 *
 * Until the replicas agree, anything may fail and nothing has changed. All memory is
 * taken by then, so that after it nothing can fail.
 */
#ifndef LSI_OPTIM_STEP_H
#define LSI_OPTIM_STEP_H
#include "optim/optim.h"

/*
 * What one replica shows to its local peers. It lives until the run ends: they may read
 * it after this replica has failed.
 */
typedef struct lsi_offer {
    const ls_optimizer *optimizer;
    uint64_t hash; /* of the variables and of the kinds of the gradients */
    size_t n;
    ls_variable **vars;
    ls_tensor **grads; /* with several peers retained, while `held` */
    ls_tensor **sums;  /* private: a sparse gradient of all replicas, or grads[i] */
    struct lsi_step_plan *plan; /* of local replica 0 */
    bool held;
} lsi_offer;

/* One variable of a step. */
typedef struct lsi_item {
    const lsi_slots *slots; /* NULL: no gradient: the variable stays as it is */
    bool common;            /* the copies share their memory: each peer updates a share */
    bool rows;              /* only rows that the sparse gradient names are updated */
    bool again;             /* the variable has come before */
    int copies;             /* entries of `writes`: 1 if common */
    lsi_writes *writes;     /* NULL: not open; `one`, if that is enough */
    lsi_writes one;
    lsi_buffer *sum;     /* NULL: the gradients are added while they are applied */
    lsi_buffer *squares; /* those of repeated rows, with keras3; NULL: of the sum */
    lsi_buffer *partial; /* of local peers, for the sum over workers; NULL: none */
    double norm;         /* the square of the norm of the sum */
} lsi_item;

/* What local replica 0 prepares for its peers and itself. */
typedef struct lsi_step_plan {
    lsi_optimizer_turn turn;
    const ls_optimizer *optimizer;
    size_t n;
    ls_variable *const *vars;
    lsi_item *items;
    size_t *first;          /* by slots: 1 + the first item of the variable, 0: none */
    lsi_comm_piece *pieces; /* with several workers: room for n */
    int64_t *states;        /* with several workers: room for a number of each */
    bool taken;             /* all that was open is committed */
    bool norms;             /* norms are needed */
    bool sums;              /* some item has a sum */
    bool whole;             /* a sum is needed whole, not just a replica's share of it */
    bool lone;              /* some variable has fewer copies than there are peers */
} lsi_step_plan;

/* This replica's part in a step. */
typedef struct lsi_part {
    ls_context *c;
    ls_optimizer *o;
    ls_strategy *strategy; /* of the run; NULL: in none */
    int index, peers;      /* among the local peers */
    int workers;
    size_t n;
    ls_variable *const *vars;
    lsi_offer *mine; /* NULL: there was no memory for it */
    lsi_meeting m;
    bool going;  /* no failure is known that stops all peers */
    bool sparse; /* some gradient is sparse, on all replicas */
    bool told;   /* all workers know already that the step has failed */
    lsi_step_plan *plan;
    const void **from; /* room for a pointer per peer, then that of the team's members */
    void *scratch;     /* for a norm, or for the rows of a sparse gradient */
    void *blocks[3];   /* freed at the end: with one peer */
    uint16_t recording;
} lsi_part;

/* ---- the stages, in their order; those of `n` gradients begin with `first` ---- */

/* The sum of sparse gradients over all replicas: their rows in the order of ids. */
void lsi_step_sum_sparse(lsi_part *p, size_t first, size_t n);

/* All memory of what follows (step_memory.c). */
void lsi_step_take_memory(lsi_part *p);

/* With several workers: the partial sums of dense gradients of the local peers. */
void lsi_step_add_partials(lsi_part *p, size_t first, size_t n);

/* lsi_decide_fn of the step: with several workers the sum of dense gradients over them. */
ls_status lsi_step_decide(void *part, const ls_error *failed, ls_error *err);

/* What is left of the sums that are needed whole, or as dense tensors. Cannot fail. */
void lsi_step_finish_sums(lsi_part *p, size_t first, size_t n);

/* Norms of sums, if the optimizer clips by norm. Cannot fail. */
void lsi_step_measure(lsi_part *p);

/* ---- what they share ---- */

static inline const lsi_offer *lsi_offer_of(const lsi_part *p, int peer)
{
    return lsi_meeting_peer(&p->m, peer);
}

/* The local peers measure the norms in turn: whether the next one is this replica's. */
static inline bool lsi_step_measures(const lsi_part *p, int *turn)
{
    return (*turn)++ % p->peers == p->index;
}

/* Memory like lsi_meeting_room(); with one peer it is freed by the end of the step. */
void *lsi_step_room(lsi_part *p, size_t bytes);

/*
 * The share of this replica in the elements of variable i: whole rows if it is updated by
 * rows, otherwise it ends where vectors do, so that the bits do not depend on the shares.
 */
void lsi_step_share(const lsi_part *p, size_t i, int64_t *begin, int64_t *end);

/* Releases what the plan holds; if the step was not taken, discards what was opened. */
void lsi_step_plan_clear(lsi_step_plan *plan);

/* How many copies a variable has; and copy k. */
static inline int lsi_copies_of(const ls_variable *v)
{
    return v->components == 0 ? 1 : v->components;
}

static inline bool lsi_is_sparse(const ls_tensor *g)
{
    return g != NULL && g->values != NULL;
}

/* The limit for sums; with keras3 each replica has clipped its own gradients. */
static inline double lsi_limit_of(const ls_optimizer *o, double asked)
{
    return o->shared.keras3 ? 0 : asked;
}
#endif
