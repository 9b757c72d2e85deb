/*
 * cache in a file. It is written by one iterator at a time, which holds the lock (a
 * folder NAME.lockfile: creating a folder is atomic). A complete file ends with a mark; a
 * file without it was left by a pass that did not reach its end.
 *
 * Layout: the magic number; for each element its length, two checksums and its bytes as
 * in a saved state; then the end mark, the number of elements and the magic number again.
 * The first checksum is over the element's number and its length, so that an element that
 * is missing or out of order is found; the second is over its bytes.
 */
#include "data/cache.h"
#include "data/file/crc32c.h"
#include "os/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC 0x3265686361634C53u   /* "SLcache2" */
#define MAGIC_1 0x3165686361634C53u /* "SLcache1": without checksums */
#define END_MARK UINT64_MAX

enum { TAIL = 3 * sizeof(uint64_t), HEAD = 2 * sizeof(uint64_t), PIECE = 1 << 16 };

enum mode {
    NEW,     // before the first call
    WRITING, // elements of the input are returned and written
    READING, // elements come from the complete file
    PASSING  // elements come from the input; the file is not used
};

struct cache_file {
    lsi_unary_iterator unary; // the input is NULL while reading
    bool over;                // the input has ended; reading: the file is damaged here
    const lsi_cache_node *node;
    enum mode mode;
    char *lock; // its name; NULL: not made yet
    lsi_file *file;
    uint64_t count;        // elements returned
    uint64_t total;        // reading: number of elements, from the end of the file
    ls_value *late;        // an element that could not be written and was not returned
    lsi_state_writer next; // bytes to be written; NEW: those of a restored state
    uint64_t size;         // reading: where the elements end; writing: bytes in the file
    uint8_t *piece;        // reading: bytes [at, have) of the file lie before `offset`
    size_t at, have, room;
    uint64_t offset;
};

/* ---- names and locks ---- */

/* The lock's name is kept, so that removing the lock needs no memory. */
static ls_status name_lock(struct cache_file *c, ls_error *err)
{
    const size_t room = strlen(c->node->file) + sizeof ".lockfile";

    if (c->lock == NULL) {
        c->lock = lsi_alloc(room, 1);
        if (c->lock == NULL) {
            return lsi_fail_memory(err, "the name of a lock", room);
        }
        (void)snprintf(c->lock, room, "%s.lockfile", c->node->file);
    }
    return LS_OK;
}

static ls_status lock_cache(struct cache_file *c, ls_error *err)
{
    ls_status st = name_lock(c, err);

    if (st == LS_OK) {
        st = lsi_folder_create(c->lock, err);
    }
    if (st == LS_ALREADY_EXISTS) {
        st = lsi_fail(
            err, LS_ALREADY_EXISTS, -1,
            "cache %.150s: another iterator is filling it: %.150s exists; if none "
            "is, remove both",
            c->node->file, c->lock);
    }
    return st;
}

static void unlock_cache(const struct cache_file *c)
{
    if (lsi_file_remove(c->lock, NULL) != LS_OK) {
        lsi_log(LS_LOG_WARNING, "cache %s: its lock could not be removed", c->node->file);
    }
}

/* A file that exists: */
struct found {
    lsi_file *file;
    uint64_t size;  // where its elements end
    uint64_t total; // the number of elements at its end
    bool whole;     // it has the end mark
    bool old;       // it has no checksums
};

/* Opens the file. LS_NOT_FOUND: there is none. */
static ls_status open_file(const struct cache_file *c, struct found *f, ls_error *err)
{
    uint64_t tail[3] = {0}, head = 0;
    ls_status st = lsi_file_open(c->node->file, LSI_FILE_READ, &f->file, err);

    if (st == LS_OK) {
        st = lsi_file_size(f->file, &f->size, err);
    }
    if (st == LS_OK && f->size >= sizeof head + TAIL) {
        st = lsi_file_read_exactly(f->file, 0, &head, sizeof head, err);
        f->size -= TAIL;
        if (st == LS_OK) {
            st = lsi_file_read_exactly(f->file, f->size, tail, TAIL, err);
        }
        f->whole =
            st == LS_OK && head == MAGIC && tail[0] == END_MARK && tail[2] == MAGIC;
        f->old = head == MAGIC_1;
        f->total = tail[1];
    }
    if (st != LS_OK) {
        lsi_file_close(f->file);
        f->file = NULL;
    }
    return st;
}

/* ---- reading ---- */

/* Makes `n` bytes available at once; *got is less where the elements end. */
static ls_status buffer_bytes(struct cache_file *c, size_t n, size_t *got, ls_error *err)
{
    ls_status st = LS_OK;
    size_t more = 0;

    if (c->have - c->at < n) {
        if (c->at > 0) {
            memmove(c->piece, c->piece + c->at, c->have - c->at);
        }
        c->have -= c->at;
        c->at = 0;
        if (c->room < n) {
            const size_t room = LSI_MAX(n, PIECE);
            uint8_t *grown = lsi_realloc(c->piece, c->room, room, 1);

            if (grown == NULL) {
                return lsi_fail_memory(err, "a piece of a cache", room);
            }
            c->piece = grown;
            c->room = room;
        }
        more = (size_t)LSI_MIN((uint64_t)(c->room - c->have), c->size - c->offset);
        st = lsi_file_read_exactly(c->file, c->offset, c->piece + c->have, more, err);
        if (st == LS_OK) {
            c->offset += more;
            c->have += more;
        }
    }
    *got = LSI_MIN(c->have - c->at, n);
    return st;
}

static ls_status cache_damaged(const struct cache_file *c, const char *what,
                               ls_error *err)
{
    return lsi_fail(err, LS_DATA_LOSS, -1,
                    "cache %s is damaged at byte %" PRIu64 ", element %" PRIu64
                    ": %s; remove the file, and it is written again",
                    c->node->file, c->offset - (c->have - c->at), c->count, what);
}

/* The checksum in front of an element, over its number and its length. */
static uint32_t sum_of_head(uint64_t count, uint64_t length)
{
    const uint64_t head[2] = {count, length};

    return lsi_crc32c_masked(head, sizeof head);
}

/* At the end mark: fails unless it has the number of elements that were read. */
static ls_status at_end(const struct cache_file *c, ls_error *err)
{
    return c->count == c->total
               ? LS_OUT_OF_RANGE
               : cache_damaged(c, "it ends before its last element", err);
}

/*
 * Buffers the next element, whose bytes begin HEAD bytes after c->piece + c->at;
 * LS_OUT_OF_RANGE: the end. The position stays: after a failure the same element is read
 * again.
 */
static ls_status find_record(struct cache_file *c, size_t *n, ls_error *err)
{
    uint64_t length = 0;
    uint32_t sums[2] = {0};
    size_t got = 0;
    ls_status st = buffer_bytes(c, HEAD, &got, err);

    if (st != LS_OK || got == 0) {
        return st != LS_OK ? st : at_end(c, err);
    }
    if (got < HEAD) {
        return cache_damaged(c, "an element is cut off", err);
    }
    memcpy(&length, c->piece + c->at, sizeof length);
    memcpy(sums, c->piece + c->at + sizeof length, sizeof sums);
    if (sums[0] != sum_of_head(c->count, length) || length > c->size) {
        return cache_damaged(c, "the checksum of its number and length is wrong", err);
    }
    st = buffer_bytes(c, HEAD + (size_t)length, &got, err);
    if (st == LS_OK && got < HEAD + length) {
        st = cache_damaged(c, "an element is cut off", err);
    }
    if (st == LS_OK &&
        sums[1] != lsi_crc32c_masked(c->piece + c->at + HEAD, (size_t)length)) {
        st = cache_damaged(c, "the checksum of its bytes is wrong", err);
    }
    *n = (size_t)length;
    return st;
}

static void pass_record(struct cache_file *c, size_t n)
{
    c->at += HEAD + n;
    c->count++;
}

static ls_status read_element(struct cache_file *c, ls_value **out, ls_error *err)
{
    size_t n = 0;
    ls_status st = c->over ? LS_OUT_OF_RANGE : find_record(c, &n, err);

    if (st == LS_OK) {
        lsi_state_reader r = {c->piece + c->at + HEAD, n, 0, c->unary.base.as.device};

        st = lsi_state_read_element(&r, c->node->base.spec, out, err);
        if (st != LS_OK && st != LS_RESOURCE_EXHAUSTED) {
            st = cache_damaged(c, "it does not have the spec of this dataset", err);
        }
        if (st == LS_OK) {
            pass_record(c, n);
        }
    }
    c->over = c->over || st == LS_DATA_LOSS; // nothing after it is read
    return st;
}

/* Reads from the file, which is taken over, instead of the input. */
static void begin_reading(struct cache_file *c, const struct found *f)
{
    lsi_iterator_close(c->unary.input);
    c->unary.input = NULL;
    c->mode = READING;
    c->file = f->file;
    c->size = f->size;
    c->total = f->total;
    c->offset = sizeof(uint64_t);
    c->at = 0;
    c->have = 0;
    c->count = 0;
}

/* ---- writing ---- */

static ls_status flush_piece(struct cache_file *c, ls_error *err)
{
    ls_status st = LS_OK;

    if (c->next.failed) {
        st = lsi_fail_memory(err, "a piece of a cache", c->next.room);
    } else if (c->next.obstacle != NULL) {
        st = lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                      "cache %s: elements that are datasets ('%s') cannot be kept in a "
                      "file",
                      c->node->file, c->next.obstacle);
    } else if (c->next.size > 0) {
        st = lsi_file_write(c->file, c->next.bytes, c->next.size, err);
        c->size += c->next.size;
    }
    c->next.size = 0;
    return st;
}

/* Removes the file; elements come from the input from here on. */
static void abandon_file(struct cache_file *c)
{
    lsi_file_close(c->file);
    c->file = NULL;
    (void)lsi_file_remove(c->node->file, NULL); // we hold the lock, so it is ours
    unlock_cache(c);
    c->mode = PASSING;
}

/* On the first call: finds out whether there is a file to read or one to write. */
static ls_status begin_cache_file(struct cache_file *c, ls_error *err)
{
    const bool resumed = c->next.size > 0;
    struct found found = {0};
    ls_status st = LS_OK;

    if (!resumed) { // allocated before the file is created
        lsi_state_write_u64(&c->next, MAGIC);
    }
    if (c->next.failed) {
        c->next.failed = false;
        return lsi_fail_memory(err, "a piece of a cache", sizeof(uint64_t));
    }
    st = lock_cache(c, err);
    if (st != LS_OK) {
        c->next.size = resumed ? c->next.size : 0;
        return st;
    }
    st = open_file(c, &found, err);
    if (st == LS_NOT_FOUND) {
        st = lsi_file_open(c->node->file, LSI_FILE_CREATE, &c->file, err);
        if (st == LS_OK) {
            c->mode = WRITING;
            c->size = 0;
            return LS_OK;
        }
    } else if (st == LS_OK && found.whole && !resumed) {
        begin_reading(c, &found);
        found.file = NULL;
    } else if (st == LS_OK && found.whole) {
        c->mode = PASSING; // another iterator has completed it meanwhile
        c->next.size = 0;
    } else if (st == LS_OK) {
        st = lsi_fail(err, LS_ALREADY_EXISTS, -1,
                      "cache %s: the file exists, but it is %s; remove it, or choose "
                      "another name",
                      c->node->file,
                      found.old ? "of an earlier version, without checksums"
                                : "not a complete cache");
    }
    c->next.size = resumed ? c->next.size : 0;
    lsi_file_close(found.file);
    unlock_cache(c);
    return st;
}

/* Out of memory: nothing was written, and the call can be repeated. If the file cannot be
 * written, it is abandoned. */
static ls_status write_element(struct cache_file *c, const ls_value *v, ls_error *err)
{
    const size_t at = c->next.size;

    lsi_state_write_u64(&c->next, 0);
    lsi_state_write_u64(&c->next, 0);
    lsi_state_write_value(&c->next, v);
    if (c->next.failed) {
        c->next.failed = false;
        c->next.size = at;
        return lsi_fail_memory(err, "a piece of a cache", 2 * c->next.room);
    }
    const uint64_t length = c->next.size - at - HEAD;
    const uint32_t sums[2] = {
        sum_of_head(c->count, length),
        lsi_crc32c_masked(c->next.bytes + at + HEAD, (size_t)length)};
    memcpy(c->next.bytes + at, &length, sizeof length);
    memcpy(c->next.bytes + at + sizeof length, sums, sizeof sums);
    const ls_status st =
        c->next.size >= PIECE || c->next.obstacle != NULL ? flush_piece(c, err) : LS_OK;
    if (st != LS_OK) {
        abandon_file(c);
    }
    return st;
}

/* At the end of the pass: writes the end mark and removes the lock. */
static ls_status finish_file(struct cache_file *c, ls_error *err)
{
    const size_t at = c->next.size;
    ls_status st = LS_OK;

    lsi_state_write_u64(&c->next, END_MARK);
    lsi_state_write_u64(&c->next, c->count);
    lsi_state_write_u64(&c->next, MAGIC);
    if (c->next.failed) { // the next call tries again
        c->next.failed = false;
        c->next.size = at;
        return lsi_fail_memory(err, "the end of a cache", TAIL);
    }
    st = flush_piece(c, err);
    if (st == LS_OK) {
        st = lsi_file_sync(c->file, err);
    }
    if (st != LS_OK) {
        abandon_file(c);
        return st;
    }
    lsi_file_close(c->file);
    c->file = NULL;
    unlock_cache(c);
    c->mode = PASSING;
    return LS_OUT_OF_RANGE;
}

/* ---- the iterator ---- */

static ls_status copy_element(struct cache_file *c, ls_value **out, ls_error *err)
{
    ls_value *v = c->late;
    ls_status st = v != NULL ? LS_OK
                   : c->over ? LS_OUT_OF_RANGE
                             : lsi_iterator_next(c->unary.input, &v, err);

    c->late = NULL;
    if (st == LS_OUT_OF_RANGE) {
        c->over = true;
        return c->mode == WRITING ? finish_file(c, err) : LS_OUT_OF_RANGE;
    }
    if (st == LS_OK && c->mode == WRITING) {
        st = write_element(c, v, err);
    }
    if (st == LS_OK) {
        c->count++;
        *out = v;
    } else {
        c->late = v; // returned by the next call, even if the file is lost
    }
    return st;
}

static ls_status next_from_file(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct cache_file *c = (struct cache_file *)it;
    ls_status st = c->mode == NEW ? begin_cache_file(c, err) : LS_OK;

    if (st != LS_OK) {
        return st;
    }
    return c->mode == READING ? read_element(c, out, err) : copy_element(c, out, err);
}

/* Saves what an unfinished pass has written: a restored one writes it again. */
static ls_status save_contents(struct cache_file *c, lsi_state_writer *w, ls_error *err)
{
    lsi_file *file = NULL;
    uint8_t *bytes = NULL;
    ls_status st = flush_piece(c, err);

    if (st == LS_OK) {
        st = lsi_file_open(c->node->file, LSI_FILE_READ, &file, err);
    }
    if (st == LS_OK) {
        bytes = lsi_alloc((size_t)c->size, 1);
        st = bytes != NULL
                 ? lsi_file_read_exactly(file, 0, bytes, (size_t)c->size, err)
                 : lsi_fail_memory(err, "the contents of a cache", (size_t)c->size);
    }
    if (st == LS_OK) {
        lsi_state_write_bytes(w, bytes, (size_t)c->size);
    }
    lsi_free(bytes);
    lsi_file_close(file);
    return st;
}

static ls_status save_cache_file(lsi_iterator *it, lsi_state_writer *w, ls_error *err)
{
    struct cache_file *c = (struct cache_file *)it;
    ls_status st = LS_OK;

    if (c->late != NULL) {
        return lsi_fail(
            err, LS_FAILED_PRECONDITION, -1,
            "cache %s: an element could not be written and was not returned yet; "
            "read it before the position is saved",
            c->node->file);
    }
    lsi_state_write_u64(w, c->mode == WRITING ? NEW : c->mode);
    lsi_state_write_u64(w, c->count);
    lsi_state_write_bool(w, c->over);
    if (c->mode == WRITING) {
        st = save_contents(c, w, err);
    } else {
        lsi_state_write_bytes(w, c->next.bytes, c->mode == NEW ? c->next.size : 0);
    }
    return st == LS_OK ? lsi_input_iterator_save(c->unary.input, w, err) : st;
}

/* Closes the file, removes it if it is not complete, and drops what is not written. */
static void reset_cache_file(struct cache_file *c)
{
    if (c->mode == WRITING) {
        lsi_cache_warn(c->node);
        abandon_file(c);
    }
    lsi_file_close(c->file);
    c->file = NULL;
    ls_value_release(c->late);
    c->late = NULL;
    lsi_state_writer_clear(&c->next);
}

/* Goes to element `count` of a complete file. */
static ls_status seek_element(struct cache_file *c, uint64_t count, ls_error *err)
{
    struct found found = {0};
    ls_status st = open_file(c, &found, err);

    if (st == LS_OK && !found.whole) {
        lsi_file_close(found.file);
        return lsi_fail(err, LS_DATA_LOSS, -1,
                        "cache %s is not the complete file that the position was saved "
                        "from",
                        c->node->file);
    }
    if (st == LS_OK) {
        begin_reading(c, &found);
    }
    while (st == LS_OK && c->count < count) {
        size_t n = 0;

        st = find_record(c, &n, err);
        if (st == LS_OK) {
            pass_record(c, n);
        }
        if (st == LS_OUT_OF_RANGE) {
            st = cache_damaged(c, "it ends before the saved position", err);
        }
    }
    return st;
}

static bool begins_as_cache(const void *bytes, size_t n)
{
    uint64_t head = 0;

    if (n >= sizeof head) {
        memcpy(&head, bytes, sizeof head);
    }
    return head == MAGIC;
}

static ls_status restore_cache_file(lsi_iterator *it, lsi_state_reader *r, ls_error *err)
{
    struct cache_file *c = (struct cache_file *)it;
    uint64_t mode = 0, count = 0;
    const void *bytes = NULL;
    size_t n = 0;
    ls_status st = lsi_state_read_count(r, PASSING, &mode, err);

    if (st == LS_OK) {
        st = lsi_state_read_u64(r, &count, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_bool(r, &c->over, err);
    }
    if (st == LS_OK) {
        st = lsi_state_read_bytes(r, &bytes, &n, err);
    }
    if (st == LS_OK) {
        st = lsi_input_iterator_restore(it, &c->unary.input, it->as.lineage,
                                        it->dataset->inputs[0], r, err);
    }
    if (st == LS_OK && mode != READING && c->unary.input == NULL) {
        st = lsi_state_damaged(err, "a cache without an input");
    }
    if (st == LS_OK && n > 0 && !begins_as_cache(bytes, n)) {
        st = lsi_state_damaged(err, "the contents of a cache are of another version");
    }
    if (st != LS_OK) {
        return st;
    }
    reset_cache_file(c);
    c->mode = (enum mode)mode;
    c->count = count;
    if (mode == READING) {
        return seek_element(c, count, err);
    }
    if (n > 0) { // without the length that lsi_state_write_bytes() writes
        c->next.bytes = lsi_alloc(n, 1);
        if (c->next.bytes == NULL) {
            return lsi_fail_memory(err, "the contents of a cache", n);
        }
        memcpy(c->next.bytes, bytes, n);
        c->next.size = n;
        c->next.room = n;
    }
    return LS_OK;
}

static void close_cache_file(lsi_iterator *it)
{
    struct cache_file *c = (struct cache_file *)it;

    reset_cache_file(c);
    lsi_free(c->piece);
    lsi_free(c->lock);
    lsi_unary_iterator_close(it);
}

ls_status lsi_cache_file_iterate(ls_dataset *d, const lsi_opening *how,
                                 lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {.next = next_from_file,
                                         .save = save_cache_file,
                                         .restore = restore_cache_file,
                                         .close = close_cache_file};
    lsi_iterator *it = NULL;
    struct cache_file *c = NULL;
    struct found found = {0};
    ls_status st = lsi_iterator_new(&ops, sizeof *c, d, how, &it, err);

    if (st != LS_OK) {
        return st;
    }
    c = (struct cache_file *)it;
    c->node = (const lsi_cache_node *)d;
    st = open_file(c, &found, err);
    if (st == LS_OK && found.whole) {
        begin_reading(c, &found);             // without an iterator of the input
    } else if (st != LS_RESOURCE_EXHAUSTED) { // else the first call fails
        lsi_file_close(found.file);
        st = lsi_dataset_iterate(d->inputs[0], how, &c->unary.input, err);
    }
    if (st == LS_OK) {
        *out = it;
    } else {
        lsi_iterator_close(it);
    }
    return st;
}
