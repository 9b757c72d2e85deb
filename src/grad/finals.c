/* Which gradients are final while the walk over the journal goes on. */
#include "grad/walk.h"

/* What is known of a record before the walk. */
struct lsi_outlook {
    uint32_t
        first_use; /* of its slot: 1 + the first record that may add to it; 0: none */
    uint32_t due;  /* 1 + a key that is final once the record was passed; 0: none */
    bool leads;    /* the targets depend on it: a gradient may come to it */
};

static struct lsi_outlook *outlook_of(const lsi_finals *f, const ls_tape *tape, size_t i)
{
    return &f->records[i - tape->begin];
}

/* Finds what the targets depend on, and the first such record that uses each slot. */
static void look_ahead(const lsi_journal *j, const ls_tape *tape, lsi_finals *f,
                       size_t end)
{
    for (size_t i = end; i > tape->begin; i--) {
        const struct ls_op_node *n = lsi_node_at(j, i - 1);

        if (!outlook_of(f, tape, i - 1)->leads) {
            continue;
        }
        for (size_t k = 0; k < n->nin; k++) {
            if (lsi_walk_meets(j, tape, n->from[k], end)) {
                const size_t at = (size_t)(lsi_walk_target(j, n->from[k]) >> 8);

                outlook_of(f, tape, at)->leads = true;
                outlook_of(f, tape, at)->first_use = (uint32_t)i;
            }
        }
    }
}

/* Reports the keys of a list, which begins with key - 1, until the step fails. */
static void report(ls_context *c, const ls_tape *tape, const lsi_finals *f, uint32_t key)
{
    lsi_journal *j = lsi_journal_of(c);

    for (; key != 0; key = f->next[key - 1]) {
        const size_t i = key - 1;
        ls_tensor *g = NULL;

        if (f->first[i] != 0) {
            g = lsi_sum_value(c, j, lsi_walk_slot(j, tape, f->first[i] - 1));
        }
        if (lsi_failed(c)) {
            return;
        }
        f->grads[i] = g;
        f->fn(f->user, i);
    }
}

bool lsi_finals_begin(ls_context *c, const ls_tape *tape, lsi_finals *f,
                      ls_tensor *const *targets, size_t ntargets, size_t end)
{
    lsi_journal *j = lsi_journal_of(c);
    const size_t nodes = end - tape->begin;
    uint32_t now = 0;

    f->records = lsi_journal_alloc(j, nodes * sizeof *f->records);
    f->next = lsi_journal_alloc(j, f->n * sizeof *f->next);
    if (f->records == NULL || f->next == NULL) {
        lsi_journal_no_memory(c);
        return false;
    }
    memset(f->records, 0, nodes * sizeof *f->records);
    for (size_t i = 0; i < ntargets; i++) {
        const uint64_t at = lsi_journal_place(j, targets[i]);

        if (lsi_walk_meets(j, tape, at, end)) {
            outlook_of(f, tape, (size_t)(at >> 8))->leads = true;
        }
    }
    look_ahead(j, tape, f, end);
    for (size_t i = f->n; i > 0; i--) { // each list in the order of the keys
        const size_t slot =
            f->first[i - 1] != 0 ? (size_t)((f->first[i - 1] - 1) >> 8) : 0;
        const uint32_t use =
            f->first[i - 1] != 0 ? outlook_of(f, tape, slot)->first_use : 0;
        uint32_t *list = use != 0 ? &outlook_of(f, tape, use - 1)->due : &now;

        f->next[i - 1] = *list;
        *list = (uint32_t)i;
    }
    report(c, tape, f, now);
    return !lsi_failed(c);
}

void lsi_finals_passed(ls_context *c, const ls_tape *tape, lsi_finals *f, size_t record)
{
    report(c, tape, f, outlook_of(f, tape, record)->due);
}
