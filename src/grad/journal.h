/*
 * The journal: the records of a context's tapes. A record holds which tapes recorded it
 * (a bit each), a tensor which record made it. Watching a tensor adds a record without an
 * operation, so that every tensor with a gradient has a record, and gradients are an
 * array over the journal, which is walked backwards. The journal and its memory are
 * reset, not freed, when the step ends: a step that repeats itself allocates nothing.
 */
#ifndef LSI_JOURNAL_H
#define LSI_JOURNAL_H
#include "grad/gradient_sums.h"

enum { LSI_MAX_TAPES = 16 };

struct ls_tape {
    bool open;
    bool persistent, watches_variables, recording, used;
    uint16_t bit;
    size_t begin; /* the first record that may belong to it */
};

typedef struct lsi_watched_key {
    const void *key;
    uint16_t tapes;
} lsi_watched_key;

/* A variable's value as it was read; the tapes that saw it are in its record. */
typedef struct lsi_tape_read {
    const void *key;
    uint32_t node;
} lsi_tape_read;

struct lsi_block;

typedef struct lsi_journal {
    struct ls_op_node **chunks;
    size_t nchunks, count;
    size_t placed;            /* records before this one have their site */
    struct lsi_block *blocks; /* all; `at` is the one in use */
    struct lsi_block *at;
    lsi_tape_read *reads;
    size_t nreads, reads_room;
    lsi_watched_key *watched; /* a table by key; NULL: free */
    size_t nwatched, watched_room;
    lsi_sum *grads; /* by record, while a gradient is computed: output 0 .. n */
    size_t grads_room;
    ls_tape tapes[LSI_MAX_TAPES];
} lsi_journal;

/* For tables whose sizes are powers of two: the low bits of a pointer are alike. */
static inline size_t lsi_key_hash(const void *key)
{
    return (size_t)(((uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15U) >> 32);
}

/* A record's output as one number. */
#define LSI_NOWHERE UINT64_MAX

static inline uint64_t lsi_place(uint32_t node, uint8_t output)
{
    return (uint64_t)node << 8 | output;
}

static inline lsi_journal *lsi_journal_of(ls_context *c)
{
    return c->recorder.self;
}

enum { LSI_JOURNAL_CHUNK = 256 };

static inline struct ls_op_node *lsi_node_at(const lsi_journal *j, size_t i)
{
    return &j->chunks[i / LSI_JOURNAL_CHUNK][i % LSI_JOURNAL_CHUNK];
}

/* The context's journal, made at first use; NULL: out of memory, and the step fails. */
lsi_journal *lsi_journal_open(ls_context *c);

/* Memory that lives until the step ends; NULL: out of memory. */
void *lsi_journal_alloc(lsi_journal *j, size_t bytes);

/* The record and output that gave `t` in this step; LSI_NOWHERE: not recorded. */
uint64_t lsi_journal_place(const lsi_journal *j, const ls_tensor *t);

/*
 * Gives `t` a record of its own for `tapes`. If another record made it, the new one has
 * it as its input, so that gradients of the tapes that recorded that one go on to it.
 * False: out of memory, and the step has failed.
 */
bool lsi_journal_watch(ls_context *c, ls_tensor *t, uint16_t tapes);

/* Fails the step: out of memory. */
void lsi_journal_no_memory(ls_context *c) LSI_COLD;

/* The step is in order and the tape is usable; else the step has failed now. */
bool lsi_tape_usable(ls_context *c, const ls_tape *tape, const char *what);
#endif
