/*
 * A cache in a file. It is written by one iterator at a time, which holds the lock (a
 * folder NAME.lockfile: making one is atomic); the last bytes of a complete file say so.
 * A file without them is what somebody left behind who came to no end.
 *
 * Layout: the magic number; for each element its length and its bytes as in a saved
 * position; then the mark of the end, the number of elements and the magic number again.
 */
#include "data/cache.h"
#include "os/file.h"

#include <stdio.h>
#include <string.h>

#define MAGIC 0x3165686361634C53u /* "SLcache1" */
#define END_MARK UINT64_MAX

enum { TAIL = 3 * sizeof(uint64_t), PIECE = 1 << 16 };

enum mode {
    NEW,     // nothing was asked for yet
    WRITING, // the file is ours and goes along
    READING, // the file is complete
    PASSING  // the file is left alone; elements come from the input
};

struct cache_file {
    lsi_unary unary; // the input is NULL while reading
    bool over;       // the input is
    const lsi_cache_node *node;
    enum mode mode;
    lsi_file *file;
    uint64_t count;  // elements given
    lsi_writer next; // what is not yet in the file; NEW: of a restored position
    uint64_t size;   // reading: where the elements end; writing: bytes in the file
    uint8_t *piece;  // reading: bytes [at, have) of the file lie before `offset`
    size_t at, have, room;
    uint64_t offset;
};

/* ---- names and locks ---- */

static ls_status lock_name(const struct cache_file *c, char **out, ls_error *err)
{
    const size_t room = strlen(c->node->file) + sizeof ".lockfile";

    *out = lsi_alloc(room, 1);
    if (*out == NULL) {
        return lsi_fail_memory(err, "the name of a lock", room);
    }
    (void)snprintf(*out, room, "%s.lockfile", c->node->file);
    return LS_OK;
}

static ls_status lock(const struct cache_file *c, ls_error *err)
{
    char *name = NULL;
    ls_status st = lock_name(c, &name, err);

    if (st == LS_OK) {
        st = lsi_folder_create(name, err);
    }
    if (st == LS_ALREADY_EXISTS) {
        st = lsi_fail(err, LS_ALREADY_EXISTS, -1,
                      "cache %.150s: somebody is filling it, %.150s is there; if nobody "
                      "is any more, remove both",
                      c->node->file, name);
    }
    lsi_free(name);
    return st;
}

static void unlock(const struct cache_file *c)
{
    char *name = NULL;

    if (lock_name(c, &name, NULL) != LS_OK || lsi_file_remove(name, NULL) != LS_OK) {
        lsi_log(LS_LOG_WARNING, "cache %s: its lock could not be removed", c->node->file);
    }
    lsi_free(name);
}

/* Opens the file; LS_NOT_FOUND: there is none; *whole: it has its end. */
static ls_status open_file(const struct cache_file *c, lsi_file **out, uint64_t *size,
                           bool *whole, ls_error *err)
{
    uint64_t tail[3] = {0}, head = 0;
    lsi_file *file = NULL;
    ls_status st = lsi_file_open(c->node->file, LSI_FILE_READ, &file, err);

    *whole = false;
    if (st == LS_OK) {
        st = lsi_file_size(file, size, err);
    }
    if (st == LS_OK && *size >= sizeof head + TAIL) {
        st = lsi_file_read_exactly(file, 0, &head, sizeof head, err);
        *size -= TAIL;
        if (st == LS_OK) {
            st = lsi_file_read_exactly(file, *size, tail, TAIL, err);
        }
        *whole = st == LS_OK && head == MAGIC && tail[0] == END_MARK && tail[2] == MAGIC;
    }
    if (st == LS_OK) {
        *out = file;
    } else {
        lsi_file_close(file);
    }
    return st;
}

/* ---- reading ---- */

/* Makes `n` bytes available at once; *got is less where the elements end. */
static ls_status ensure(struct cache_file *c, size_t n, size_t *got, ls_error *err)
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

static ls_status damaged(const struct cache_file *c, ls_error *err)
{
    return lsi_fail(err, LS_DATA_LOSS, -1,
                    "cache %s is damaged at element %llu; remove it, and it is made anew",
                    c->node->file, (unsigned long long)c->count);
}

/* The bytes of the next element, at c->piece + c->at; LS_OUT_OF_RANGE: the end. */
static ls_status find_record(struct cache_file *c, size_t *n, ls_error *err)
{
    uint64_t length = 0;
    size_t got = 0;
    ls_status st = ensure(c, sizeof length, &got, err);

    if (st != LS_OK || got == 0) {
        return st != LS_OK ? st : LS_OUT_OF_RANGE;
    }
    if (got == sizeof length) {
        memcpy(&length, c->piece + c->at, sizeof length);
    }
    if (got < sizeof length || length > c->size) {
        return damaged(c, err);
    }
    c->at += sizeof length;
    st = ensure(c, (size_t)length, &got, err);
    if (st == LS_OK && got < length) {
        st = damaged(c, err);
    }
    *n = (size_t)length;
    return st;
}

static ls_status read_element(struct cache_file *c, ls_value **out, ls_error *err)
{
    size_t n = 0;
    ls_status st = find_record(c, &n, err);

    if (st == LS_OK) {
        lsi_reader r = {c->piece + c->at, n, 0};

        if (lsi_read_element(&r, c->node->base.spec, out, NULL) != LS_OK) {
            st = damaged(c, err);
        }
        c->at += n;
        c->count++;
    }
    return st;
}

static void begin_reading(struct cache_file *c, lsi_file *file, uint64_t size)
{
    lsi_iterator_close(c->unary.input);
    c->unary.input = NULL;
    c->mode = READING;
    c->file = file;
    c->size = size;
    c->offset = sizeof(uint64_t);
    c->at = 0;
    c->have = 0;
    c->count = 0;
}

/* ---- writing ---- */

static ls_status flush(struct cache_file *c, ls_error *err)
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

/* Gives the file up; elements come from the input alone from here on. */
static void abandon(struct cache_file *c)
{
    lsi_file_close(c->file);
    c->file = NULL;
    (void)lsi_file_remove(c->node->file, NULL); // the lock tells that it was ours
    unlock(c);
    c->mode = PASSING;
}

/* The first call: is there a file to read, or one to be written? */
static ls_status begin(struct cache_file *c, ls_error *err)
{
    const bool resumed = c->next.size > 0;
    lsi_file *file = NULL;
    uint64_t size = 0;
    bool whole = false;
    ls_status st = lock(c, err);

    if (st != LS_OK) {
        return st;
    }
    st = open_file(c, &file, &size, &whole, err);
    if (st == LS_NOT_FOUND) {
        st = lsi_file_open(c->node->file, LSI_FILE_WRITE, &c->file, err);
        if (st == LS_OK) {
            c->mode = WRITING;
            c->size = 0;
            if (!resumed) {
                lsi_write_u64(&c->next, MAGIC);
            }
            return LS_OK;
        }
    } else if (st == LS_OK && whole && !resumed) {
        begin_reading(c, file, size);
        file = NULL;
    } else if (st == LS_OK && whole) {
        c->mode = PASSING; // somebody else has finished it meanwhile
        c->next.size = 0;
    } else if (st == LS_OK) {
        st = lsi_fail(err, LS_ALREADY_EXISTS, -1,
                      "cache %s: the file is there, but it is no complete cache; remove "
                      "it, or choose another name",
                      c->node->file);
    }
    lsi_file_close(file);
    unlock(c);
    return st;
}

static ls_status write_element(struct cache_file *c, const ls_value *v, ls_error *err)
{
    const size_t at = c->next.size;
    uint64_t length = 0;

    lsi_write_u64(&c->next, 0);
    lsi_write_value(&c->next, v);
    if (!c->next.failed) {
        length = c->next.size - at - sizeof length;
        memcpy(c->next.bytes + at, &length, sizeof length);
    }
    return c->next.size >= PIECE || c->next.failed || c->next.obstacle != NULL
               ? flush(c, err)
               : LS_OK;
}

/* The pass came to its end: the file gets its own and the lock goes. */
static ls_status finish(struct cache_file *c, ls_error *err)
{
    ls_status st = LS_OK;

    lsi_write_u64(&c->next, END_MARK);
    lsi_write_u64(&c->next, c->count);
    lsi_write_u64(&c->next, MAGIC);
    st = flush(c, err);
    if (st == LS_OK) {
        st = lsi_file_sync(c->file, err);
    }
    if (st != LS_OK) {
        abandon(c);
        return st;
    }
    lsi_file_close(c->file);
    c->file = NULL;
    unlock(c);
    c->mode = PASSING;
    return LS_OUT_OF_RANGE;
}

/* ---- the iterator ---- */

static ls_status copy_element(struct cache_file *c, ls_value **out, ls_error *err)
{
    ls_value *v = NULL;
    ls_status st = c->over ? LS_OUT_OF_RANGE : lsi_iterator_next(c->unary.input, &v, err);

    if (st == LS_OUT_OF_RANGE) {
        c->over = true;
        return c->mode == WRITING ? finish(c, err) : LS_OUT_OF_RANGE;
    }
    if (st == LS_OK && c->mode == WRITING) {
        st = write_element(c, v, err);
        if (st != LS_OK) {
            abandon(c);
        }
    }
    if (st == LS_OK) {
        c->count++;
        *out = v;
    } else {
        ls_value_release(v);
    }
    return st;
}

static ls_status next(lsi_iterator *it, ls_value **out, ls_error *err)
{
    struct cache_file *c = (struct cache_file *)it;
    ls_status st = c->mode == NEW ? begin(c, err) : LS_OK;

    if (st != LS_OK) {
        return st;
    }
    return c->mode == READING ? read_element(c, out, err) : copy_element(c, out, err);
}

/* What is in the file of an unfinished pass: a restored one has to write it again. */
static ls_status save_contents(struct cache_file *c, lsi_writer *w, ls_error *err)
{
    lsi_file *file = NULL;
    uint8_t *bytes = NULL;
    ls_status st = flush(c, err);

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
        lsi_write_bytes(w, bytes, (size_t)c->size);
    }
    lsi_free(bytes);
    lsi_file_close(file);
    return st;
}

static ls_status save(lsi_iterator *it, lsi_writer *w, ls_error *err)
{
    struct cache_file *c = (struct cache_file *)it;
    ls_status st = LS_OK;

    lsi_write_u64(w, c->mode == WRITING ? NEW : c->mode);
    lsi_write_u64(w, c->count);
    lsi_write_bool(w, c->over);
    if (c->mode == WRITING) {
        st = save_contents(c, w, err);
    } else {
        lsi_write_bytes(w, c->next.bytes, c->mode == NEW ? c->next.size : 0);
    }
    return st == LS_OK ? lsi_input_save(c->unary.input, w, err) : st;
}

/* Lets go of the file, and of what was written if that is not the whole. */
static void let_go(struct cache_file *c)
{
    if (c->mode == WRITING) {
        lsi_cache_warn(c->node);
        abandon(c);
    }
    lsi_file_close(c->file);
    c->file = NULL;
    lsi_writer_clear(&c->next);
}

/* Goes to element `count` of a complete file. */
static ls_status seek(struct cache_file *c, uint64_t count, ls_error *err)
{
    lsi_file *file = NULL;
    uint64_t size = 0;
    bool whole = false;
    ls_status st = open_file(c, &file, &size, &whole, err);

    if (st == LS_OK && !whole) {
        lsi_file_close(file);
        return lsi_fail(err, LS_DATA_LOSS, -1,
                        "cache %s is not the complete one that the position was saved "
                        "from",
                        c->node->file);
    }
    if (st == LS_OK) {
        begin_reading(c, file, size);
    }
    while (st == LS_OK && c->count < count) {
        size_t n = 0;

        st = find_record(c, &n, err);
        c->at += st == LS_OK ? n : 0;
        c->count += st == LS_OK;
        if (st == LS_OUT_OF_RANGE) {
            st = damaged(c, err);
        }
    }
    return st;
}

static ls_status restore(lsi_iterator *it, lsi_reader *r, ls_error *err)
{
    struct cache_file *c = (struct cache_file *)it;
    uint64_t mode = 0, count = 0;
    const void *bytes = NULL;
    size_t n = 0;
    ls_status st = lsi_read_count(r, PASSING, &mode, err);

    if (st == LS_OK) {
        st = lsi_read_u64(r, &count, err);
    }
    if (st == LS_OK) {
        st = lsi_read_bool(r, &c->over, err);
    }
    if (st == LS_OK) {
        st = lsi_read_bytes(r, &bytes, &n, err);
    }
    if (st == LS_OK) {
        st = lsi_input_restore(&c->unary.input, it->dataset->inputs[0], r, err);
    }
    if (st == LS_OK && mode != READING && c->unary.input == NULL) {
        st = lsi_state_damaged(err, "a cache that has no input");
    }
    if (st != LS_OK) {
        return st;
    }
    let_go(c);
    c->mode = (enum mode)mode;
    c->count = count;
    if (mode == READING) {
        return seek(c, count, err);
    }
    if (n > 0) { // as they are; the length that would go before is not wanted
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

static void close_cache(lsi_iterator *it)
{
    struct cache_file *c = (struct cache_file *)it;

    let_go(c);
    lsi_free(c->piece);
    lsi_unary_close(it);
}

ls_status lsi_cache_file_iterate(ls_dataset *d, lsi_iterator **out, ls_error *err)
{
    static const lsi_iterator_ops ops = {
        .next = next, .save = save, .restore = restore, .close = close_cache};
    lsi_iterator *it = NULL;
    struct cache_file *c = NULL;
    lsi_file *file = NULL;
    uint64_t size = 0;
    bool whole = false;
    ls_status st = lsi_iterator_new(&ops, sizeof *c, d, &it, err);

    if (st != LS_OK) {
        return st;
    }
    c = (struct cache_file *)it;
    c->node = (const lsi_cache_node *)d;
    if (open_file(c, &file, &size, &whole, NULL) == LS_OK && whole) {
        begin_reading(c, file, size); // the input is left alone
    } else {
        lsi_file_close(file);
        st = lsi_dataset_iterate(d->inputs[0], &c->unary.input, err);
    }
    if (st == LS_OK) {
        *out = it;
    } else {
        lsi_iterator_close(it);
    }
    return st;
}
