/* The journal of a context: its records, its memory, and its reset after a step. */
#include "grad/journal.h"

enum { ARENA_BLOCK = 64 * 1024 };

struct lsi_block {
    struct lsi_block *next;
    size_t used, size;
};

/* Memory that lives until the step ends; NULL: out of memory. */
void *lsi_journal_alloc(lsi_journal *j, size_t bytes)
{
    struct lsi_block *b = j->at;
    char *p;

    bytes = (bytes + 15) & ~(size_t)15;
    while (b == NULL || b->used + bytes > b->size) {
        if (b != NULL && b->next != NULL) {
            b = b->next;
            b->used = 0;
        } else {
            const size_t size = LSI_MAX(bytes, (size_t)ARENA_BLOCK);
            struct lsi_block *fresh = lsi_alloc_aligned(sizeof *fresh + size, 16);

            if (fresh == NULL) {
                return NULL;
            }
            *fresh = (struct lsi_block){NULL, 0, size};
            if (b != NULL) {
                b->next = fresh;
            } else {
                j->blocks = fresh;
            }
            b = fresh;
        }
        j->at = b;
    }
    p = (char *)(b + 1) + b->used;
    b->used += bytes;
    return p;
}
_Static_assert(sizeof(struct lsi_block) % 8 == 0, "what follows a block is aligned");

static struct ls_op_node *new_node(lsi_journal *j)
{
    if (j->count == j->nchunks * LSI_JOURNAL_CHUNK) {
        struct ls_op_node *chunk = lsi_alloc(LSI_JOURNAL_CHUNK, sizeof *chunk);
        struct ls_op_node **chunks;

        if (chunk == NULL) {
            return NULL;
        }
        chunks = lsi_realloc(j->chunks, j->nchunks, j->nchunks + 1, sizeof(void *));
        if (chunks == NULL) {
            lsi_free(chunk);
            return NULL;
        }
        j->chunks = chunks;
        j->chunks[j->nchunks++] = chunk;
    }
    return lsi_node_at(j, j->count);
}

void lsi_journal_no_memory(ls_context *c)
{
    (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED,
                          "out of memory for the gradient tape");
}
/* True if `t` is what output `t->output` of record `t->node` gave, in this journal. */
static bool known(const lsi_journal *j, const ls_tensor *t)
{
    return t->node < j->count && t->output < lsi_node_at(j, t->node)->nout &&
           lsi_node_at(j, t->node)->out[t->output] == t;
}

uint64_t lsi_journal_place(const lsi_journal *j, const ls_tensor *t)
{
    return t->tapes != 0 && known(j, t) ? lsi_place(t->node, t->output) : LSI_NOWHERE;
}

static void record_call(ls_context *c, const ls_op_call *k, size_t attrs_size)
{
    lsi_journal *j = lsi_journal_of(c);
    const uint16_t tapes = lsi_call_tapes(c, k);
    const size_t nout = (size_t)k->op->outputs;
    struct ls_op_node *n;
    ls_tensor **p;

    if (tapes == 0) {
        return;
    }
    n = new_node(j);
    p = n != NULL
            ? lsi_journal_alloc(j, (2 * k->nin + nout) * sizeof(uint64_t) + attrs_size)
            : NULL;
    if (p == NULL) {
        lsi_journal_no_memory(c);
        return;
    }
    n->op = k->op;
    n->file = c->file;
    n->line = c->line;
    n->tapes = tapes;
    n->nin = (uint32_t)k->nin;
    n->nout = (uint16_t)nout;
    n->in = p;
    n->out = p + k->nin;
    n->from = (uint64_t *)(void *)(p + k->nin + nout);
    n->attrs = n->from + k->nin;
    for (size_t i = 0; i < k->nin; i++) {
        n->in[i] = k->in[i];
        n->from[i] = lsi_journal_place(j, k->in[i]);
    }
    for (size_t i = 0; i < nout; i++) {
        ls_tensor *t = k->out[i];

        n->out[i] = t;
        t->tapes = lsi_dtype_is_float((ls_dtype)t->dtype) ? tapes : 0;
        t->node = (uint32_t)j->count;
        t->output = (uint8_t)i;
    }
    if (attrs_size > 0) {
        memcpy(n->attrs, k->attrs, attrs_size);
    }
    j->count++;
}

/*
 * Gives `t` a record of its own for `tapes`. If another record made it, the new one has
 * it as its input, so that gradients of the tapes that recorded that one go on to it.
 */
/* Which open tapes have record `i`: a bit may be an earlier tape's, or from before a
 * reset. */
static uint16_t tapes_with(const lsi_journal *j, size_t i)
{
    uint16_t tapes = lsi_node_at(j, i)->tapes;

    for (int t = 0; t < LSI_MAX_TAPES; t++) {
        if (!j->tapes[t].open || j->tapes[t].begin > i) {
            tapes &= (uint16_t) ~(1u << t);
        }
    }
    return tapes;
}

bool lsi_journal_watch(ls_context *c, ls_tensor *t, uint16_t tapes)
{
    lsi_journal *j = lsi_journal_of(c);
    struct ls_op_node *n;
    ls_tensor **p;
    const uint64_t before = lsi_journal_place(j, t);
    const uint16_t old = before != LSI_NOWHERE ? tapes_with(j, t->node) : 0;

    if ((old & tapes) == tapes) {
        return true;
    }
    n = new_node(j);
    p = n != NULL ? lsi_journal_alloc(j, 2 * sizeof(uint64_t)) : NULL;
    if (p == NULL) {
        lsi_journal_no_memory(c);
        return false;
    }
    *n = (struct ls_op_node){.file = c->file, .line = c->line, .tapes = tapes, .nout = 1};
    n->out = p;
    n->in = p;
    n->from = (uint64_t *)(void *)(p + 1);
    p[0] = t;
    if (old != 0) {
        n->nin = 1;
        n->from[0] = before;
        n->tapes = (uint16_t)(tapes | old);
    }
    t->node = (uint32_t)j->count++;
    t->output = 0;
    t->tapes = n->tapes;
    return true;
}

static void forget(lsi_journal *j)
{
    j->count = 0;
    j->placed = 0;
    j->nreads = 0;
    if (j->nwatched > 0) {
        memset(j->watched, 0, j->watched_room * sizeof *j->watched);
        j->nwatched = 0;
    }
    j->at = j->blocks;
    if (j->at != NULL) {
        j->at->used = 0;
    }
}

static void set_site(ls_context *c, const char *file, int line)
{
    lsi_journal *j = lsi_journal_of(c);

    for (; j->placed < j->count; j->placed++) {
        struct ls_op_node *n = lsi_node_at(j, j->placed);

        if (n->file == NULL) {
            n->file = file;
            n->line = line;
        }
    }
}

static void reset_journal(ls_context *c)
{
    lsi_journal *j = lsi_journal_of(c);

    for (int i = 0; i < LSI_MAX_TAPES; i++) {
        j->tapes[i].open = false;
    }
    c->recording = 0;
    forget(j);
}

static void destroy_journal(ls_context *c)
{
    lsi_journal *j = lsi_journal_of(c);

    for (size_t i = 0; i < j->nchunks; i++) {
        lsi_free(j->chunks[i]);
    }
    while (j->blocks != NULL) {
        struct lsi_block *next = j->blocks->next;

        lsi_free(j->blocks);
        j->blocks = next;
    }
    lsi_free(j->chunks);
    lsi_free(j->reads);
    lsi_free(j->watched);
    lsi_free(j->grads);
    lsi_free(j);
    c->recorder = (lsi_recorder){0};
}
lsi_journal *lsi_journal_open(ls_context *c)
{
    if (c->recorder.self == NULL) {
        lsi_journal *j = lsi_alloc(1, sizeof *j);

        if (j == NULL) {
            lsi_journal_no_memory(c);
            return NULL;
        }
        c->recorder =
            (lsi_recorder){record_call, set_site, reset_journal, destroy_journal, j};
    }
    return lsi_journal_of(c);
}
