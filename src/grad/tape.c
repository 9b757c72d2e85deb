/* Tapes: opening, watching, stopping; and reads of variables. */
#include "grad/journal.h"

static ls_tape *open_tape(ls_context *c, const ls_tape_options *opts)
{
    lsi_journal *j;

    if (lsi_failed(c)) {
        return NULL;
    }
    if (opts != NULL && opts->struct_size < sizeof *opts) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                              "tape: start the options from LS_TAPE_OPTIONS_INIT");
        return NULL;
    }
    j = lsi_journal_open(c);
    if (j == NULL) {
        return NULL;
    }
    for (int i = 0; i < LSI_MAX_TAPES; i++) {
        ls_tape *t = &j->tapes[i];

        if (!t->open) {
            *t = (ls_tape){.open = true,
                           .persistent = opts != NULL && opts->persistent,
                           .watches_variables = opts == NULL || !opts->ignore_variables,
                           .recording = true,
                           .bit = (uint16_t)(1u << i),
                           .begin = j->count};
            c->recording |= t->bit;
            return t;
        }
    }
    (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED,
                          "tape: %d tapes are open in this step already; close some with "
                          "ls_tape_close()",
                          LSI_MAX_TAPES);
    return NULL;
}

ls_tape *(ls_tape_open)(ls_context *c, const ls_tape_options *opts)
{
    ls_tape *tape = open_tape(c, opts);

    if (c != NULL) { // its macro noted the site before the call: clear it
        c->file = NULL;
        c->line = 0;
    }
    return tape;
}

bool lsi_tape_usable(ls_context *c, const ls_tape *tape, const char *what)
{
    if (lsi_failed(c)) {
        return false;
    }
    if (tape == NULL || !tape->open) {
        (void)ls_context_fail(c, LS_FAILED_PRECONDITION, "%s: the tape is %s", what,
                              tape == NULL ? "NULL" : "closed");
        return false;
    }
    return true;
}

void(ls_tape_watch)(ls_context *c, ls_tape *tape, ls_tensor *t)
{
    if (!lsi_tape_usable(c, tape, "watch")) {
        return;
    }
    if (t == NULL) {
        (void)ls_context_fail(c, LS_INVALID_ARGUMENT, "watch: the tensor is NULL");
        return;
    }
    if (!lsi_dtype_is_float((ls_dtype)t->dtype)) {
        lsi_log(LS_LOG_WARNING, "watch: %s has no gradient; only floating dtypes do",
                lsi_text_of(t).s);
        return;
    }
    if (tape->recording) {
        (void)lsi_journal_watch(c, t, tape->bit);
    }
}

void ls_tape_stop(ls_context *c, ls_tape *tape)
{
    if (lsi_tape_usable(c, tape, "tape stop")) {
        tape->recording = false;
        c->recording &= (uint16_t)~tape->bit;
    }
}

void ls_tape_resume(ls_context *c, ls_tape *tape)
{
    if (lsi_tape_usable(c, tape, "tape resume") && (tape->persistent || !tape->used)) {
        tape->recording = true;
        c->recording |= tape->bit;
    }
}

void ls_tape_reset(ls_context *c, ls_tape *tape)
{
    if (lsi_tape_usable(c, tape, "tape reset")) {
        tape->begin = lsi_journal_of(c)->count;
        tape->used = false;
        tape->recording = true;
        c->recording |= tape->bit;
    }
}

void ls_tape_close(ls_context *c, ls_tape *tape)
{
    if (c == NULL || tape == NULL || !tape->open) {
        return;
    }
    tape->open = false;
    tape->recording = false;
    c->recording &= (uint16_t)~tape->bit;
}

/* ---- variables ---- */

/* The entry of `key`, or the free one where it belongs; the table has one. */
static lsi_watched_key *watched_at(lsi_watched_key *table, size_t room, const void *key)
{
    size_t at = lsi_key_hash(key) & (room - 1);

    while (table[at].key != NULL && table[at].key != key) {
        at = (at + 1) & (room - 1);
    }
    return &table[at];
}

/* Room for one key more, the table at most half full. */
static bool grow_watched(lsi_journal *j)
{
    const size_t room = j->watched_room == 0 ? 16 : 2 * j->watched_room;
    lsi_watched_key *grown;

    if (2 * (j->nwatched + 1) <= j->watched_room) {
        return true;
    }
    grown = lsi_alloc(room, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    for (size_t i = 0; i < j->watched_room; i++) {
        if (j->watched[i].key != NULL) {
            *watched_at(grown, room, j->watched[i].key) = j->watched[i];
        }
    }
    lsi_free(j->watched);
    j->watched = grown;
    j->watched_room = room;
    return true;
}

void lsi_tape_watch_key(ls_context *c, ls_tape *tape, const void *key)
{
    lsi_watched_key *w;
    lsi_journal *j;

    if (!lsi_tape_usable(c, tape, "watch")) {
        return;
    }
    j = lsi_journal_of(c);
    if (!grow_watched(j)) {
        lsi_journal_no_memory(c);
        return;
    }
    w = watched_at(j->watched, j->watched_room, key);
    if (w->key == NULL) {
        *w = (lsi_watched_key){key, 0};
        j->nwatched++;
    }
    w->tapes |= tape->bit;
}

/* The tapes that watch a read of `key`. */
static uint16_t tapes_for(const ls_context *c, const lsi_journal *j, const void *key,
                          bool trainable)
{
    uint16_t tapes = 0;

    for (int i = 0; i < LSI_MAX_TAPES && trainable; i++) {
        if (j->tapes[i].open && j->tapes[i].watches_variables) {
            tapes |= j->tapes[i].bit;
        }
    }
    if (j->nwatched > 0) {
        tapes |= watched_at(j->watched, j->watched_room, key)->tapes;
    }
    return tapes & c->recording;
}

void lsi_tape_note_read(ls_context *c, const void *key, bool trainable, ls_tensor *t)
{
    lsi_journal *j = lsi_journal_of(c);
    const size_t before = c->recording != 0 ? j->count : 0;
    uint16_t tapes;

    if (c->recording == 0 || t == NULL || !lsi_dtype_is_float((ls_dtype)t->dtype)) {
        return;
    }
    tapes = tapes_for(c, j, key, trainable);
    if (tapes == 0 || !lsi_journal_watch(c, t, tapes) || j->count == before) {
        return; // the last: read before, and known to these tapes
    }
    if (j->nreads == j->reads_room) {
        const size_t room = j->reads_room == 0 ? 64 : 2 * j->reads_room;
        void *grown = lsi_realloc(j->reads, j->nreads, room, sizeof *j->reads);

        if (grown == NULL) {
            lsi_journal_no_memory(c);
            return;
        }
        j->reads = grown;
        j->reads_room = room;
    }
    j->reads[j->nreads++] = (lsi_tape_read){key, t->node};
}
