/* Gradients with respect to keys (variables): all reads of a key count together. */
#include "grad/walk.h"

/* Where each of `n` keys is asked for: a table, and the next of the same key. */
struct askers {
    uint32_t *table; /* 1 + the last that asked; 0: free */
    uint32_t *next;  /* 1 + the one that asked before for the same key; 0: none */
    size_t mask;
};

/* The slot of `key` in the table: its own, or a free one. */
static size_t place_of(const struct askers *a, const void *const *keys, const void *key)
{
    size_t at = lsi_key_hash(key) & a->mask;

    while (a->table[at] != 0 && keys[a->table[at] - 1] != key) {
        at = (at + 1) & a->mask;
    }
    return at;
}

static bool list_askers(ls_context *c, lsi_journal *j, const void *const *keys, size_t n,
                        struct askers *a)
{
    size_t room = 4;

    while (room < 2 * n) {
        room *= 2;
    }
    a->mask = room - 1;
    a->table = lsi_journal_alloc(j, (room + n) * sizeof(uint32_t));
    if (a->table == NULL) {
        lsi_journal_no_memory(c);
        return false;
    }
    a->next = a->table + room;
    memset(a->table, 0, room * sizeof(uint32_t));
    for (size_t i = 0; i < n; i++) {
        const size_t at = place_of(a, keys, keys[i]);

        a->next[i] = a->table[at];
        a->table[at] = (uint32_t)(i + 1);
    }
    return true;
}

void lsi_forget_shared_reads(lsi_journal *j)
{
    for (size_t r = 0; r < j->nreads; r++) {
        lsi_node_at(j, j->reads[r].node)->needs = 0;
    }
}

/*
 * Lets the reads of each key that is asked for share a slot, and the others have their
 * own. first[i]: 1 + the place of the slot of keys[i]; 0: it was not read.
 */
static void share_reads(lsi_journal *j, const ls_tape *tape, const struct askers *a,
                        const void *const *keys, uint64_t *first)
{
    lsi_forget_shared_reads(j);
    for (size_t r = 0; r < j->nreads; r++) {
        const uint64_t at = lsi_place(j->reads[r].node, 0);
        uint32_t i = a->table[place_of(a, keys, j->reads[r].key)];

        if (i == 0 || !lsi_walk_meets(j, tape, at, j->count) ||
            lsi_walk_oldest(j, tape, at, j->count) != at) {
            continue; // not asked for, another tape's, or counted where first watched
        }
        if (first[i - 1] == 0) {
            for (; i != 0; i = a->next[i - 1]) {
                first[i - 1] = at + 1;
            }
        } else {
            lsi_node_at(j, j->reads[r].node)->needs = first[i - 1];
        }
    }
}

void lsi_tape_key_gradients(ls_context *c, ls_tape *tape, ls_tensor *target,
                            const void *const *keys, size_t n, ls_tensor **grads,
                            lsi_gradient_final fn, void *user)
{
    lsi_journal *j;
    struct askers a;
    lsi_finals finals = {.fn = fn, .user = user, .n = n, .grads = grads};
    uint64_t *first = NULL;
    size_t end;

    for (size_t i = 0; i < n; i++) {
        grads[i] = NULL;
    }
    if (!lsi_tape_usable(c, tape, "gradient")) {
        return;
    }
    j = lsi_journal_of(c);
    first = lsi_journal_alloc(j, n * sizeof *first);
    if (first == NULL || !list_askers(c, j, keys, n, &a)) {
        lsi_journal_no_memory(c);
        return;
    }
    memset(first, 0, n * sizeof *first);
    finals.first = first;
    share_reads(j, tape, &a, keys, first);
    if (!lsi_walk_journal(c, tape, &target, NULL, 1, fn != NULL ? &finals : NULL, &end) ||
        fn != NULL) {
        return; // with `fn`, each gradient was set before it was reported
    }
    for (size_t i = 0; i < n && !lsi_failed(c); i++) {
        grads[i] = first[i] == 0
                       ? NULL
                       : lsi_sum_value(c, j, lsi_walk_slot(j, tape, first[i] - 1));
    }
}
