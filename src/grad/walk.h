/*
 * The walk back over a tape's records: gradient.c walks, key_gradients.c asks it for the
 * gradients of variables, finals.c tells which of them are final while it goes on.
 */
#ifndef LSI_WALK_H
#define LSI_WALK_H
#include "grad/journal.h"

/*
 * Records of one step have up to LSI_MAX_OUTPUTS outputs; the gradient of output o of
 * record i, counted from the tape's first, is at grads[(i - begin) * LSI_MAX_OUTPUTS +
 * o].
 */
static inline lsi_sum *lsi_walk_slot(const lsi_journal *j, const ls_tape *tape,
                                     uint64_t at)
{
    return &j->grads[((size_t)(at >> 8) - tape->begin) * LSI_MAX_OUTPUTS + (at & 255)];
}

/*
 * The place whose slot a gradient that flows to `at` is added to. All reads of a variable
 * that is asked for share the slot of the first, which their records name in `needs`: a
 * weight that is read a thousand times has one sum, not a thousand that wait for the end.
 */
static inline uint64_t lsi_walk_target(const lsi_journal *j, uint64_t at)
{
    const struct ls_op_node *n = lsi_node_at(j, (size_t)(at >> 8));

    return n->op == NULL && n->needs != 0 ? n->needs - 1 : at;
}

/* True if the record has a slot: this tape recorded or watches it. */
static inline bool lsi_walk_meets(const lsi_journal *j, const ls_tape *tape, uint64_t at,
                                  size_t end)
{
    const size_t node = (size_t)(at >> 8);

    return at != LSI_NOWHERE && node >= tape->begin && node < end &&
           (lsi_node_at(j, node)->tapes & tape->bit) != 0;
}

/*
 * The record behind a watching record, if it is this tape's: gradients are passed to it.
 */
uint64_t lsi_walk_oldest(const lsi_journal *j, const ls_tape *tape, uint64_t at,
                         size_t end);

/*
 * Which of the keys that were asked for have a final gradient. The slot of a key takes no
 * more additions once the walk has passed the first record, of those that the targets
 * depend on, that uses the key: a weight is final when its first use is reached, not when
 * the walk comes to where it was read.
 */
typedef struct lsi_finals {
    lsi_gradient_final fn;
    void *user;
    const uint64_t *first; /* of each key: 1 + the place of its slot; 0: not read */
    size_t n;
    ls_tensor **grads;
    struct lsi_outlook *records; /* of the walk, from the tape's first */
    uint32_t *next;              /* of each key: 1 + the next that is final with it */
} lsi_finals;

/* Called with the targets' gradients in place; reports the keys that are final already.
 * False: the step has failed. */
bool lsi_finals_begin(ls_context *c, const ls_tape *tape, lsi_finals *f,
                      ls_tensor *const *targets, size_t ntargets, size_t end);

/* The walk has passed `record`: reports the keys whose first use it was. */
void lsi_finals_passed(ls_context *c, const ls_tape *tape, lsi_finals *f, size_t record);

/*
 * Walks back from the targets; afterwards the slots hold the gradients of the records
 * before *end. `finals` may be NULL. False: the step has failed.
 */
bool lsi_walk_journal(ls_context *c, ls_tape *tape, ls_tensor *const *targets,
                      ls_tensor *const *given, size_t ntargets, lsi_finals *finals,
                      size_t *end);

/* Reads share no slots in the next walk, unless they are made to again. */
void lsi_forget_shared_reads(lsi_journal *j);
#endif
