/* Zip archives: the directory at the end of the file, and where each member begins. */
#include "data/file/archive.h"

#include <inttypes.h>

enum {
    END_SIZE = 22,
    COMMENT_MOST = 65535,
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
};

ls_status lsi_archive_damaged(const lsi_archive *z, uint64_t offset, const char *what,
                              ls_error *err)
{
    return lsi_fail(err, LS_DATA_LOSS, -1, "%s is damaged at offset %" PRIu64 ": %s",
                    z->path, offset, what);
}

/* What the end of an archive says of its directory. */
struct directory {
    uint64_t entries, size, at;
};

/* The last 64 KiB hold the end record; it may be followed by a comment only. */
static const uint8_t *find_end(const uint8_t *tail, size_t len)
{
    for (size_t i = len - END_SIZE + 1; i-- > 0;) {
        if (memcmp(tail + i, "PK\5\6", 4) == 0 &&
            lsi_le16(tail + i + 20) <= len - i - END_SIZE) {
            return tail + i;
        }
    }
    return NULL;
}

/* Large archives have a second end record, which a locator before the first points to. */
static ls_status read_end64(const lsi_archive *z, const uint8_t *locator, uint64_t here,
                            struct directory *d, ls_error *err)
{
    const uint64_t at = lsi_le64(locator + 8);
    uint8_t end[END64_SIZE];
    ls_status st;

    if (here < END64_SIZE || at > here - END64_SIZE) {
        return lsi_archive_damaged(
            z, here, "it points outside of the file for the end of a large archive", err);
    }
    st = lsi_file_read_exactly(z->file, at, end, sizeof end, err);
    if (st == LS_OK && memcmp(end, "PK\6\6", 4) != 0) {
        st = lsi_archive_damaged(z, at, "the end record of a large archive is not there",
                                 err);
    }
    if (st == LS_OK) {
        d->entries = lsi_le64(end + 32);
        d->size = lsi_le64(end + 40);
        d->at = lsi_le64(end + 48);
    }
    return st;
}

/* By the end record at `end`, which lies at `here` in the file; `before` bytes are there in
 * front of it. */
static ls_status read_end(const lsi_archive *z, const uint8_t *end, size_t before,
                          uint64_t here, struct directory *d, ls_error *err)
{
    d->entries = lsi_le16(end + 10);
    d->size = lsi_le32(end + 12);
    d->at = lsi_le32(end + 16);
    if (before >= LOCATOR_SIZE && memcmp(end - LOCATOR_SIZE, "PK\6\7", 4) == 0) {
        const ls_status st =
            read_end64(z, end - LOCATOR_SIZE, here - LOCATOR_SIZE, d, err);

        if (st != LS_OK) {
            return st;
        }
    } else if (d->size == UINT32_MAX || d->at == UINT32_MAX || d->entries == UINT16_MAX) {
        return lsi_archive_damaged(z, here, "the end of a large archive is missing", err);
    }
    if (d->size > z->size || d->at > z->size - d->size ||
        d->entries > d->size / ENTRY_SIZE) {
        return lsi_archive_damaged(
            z, here, "the directory that is named there does not fit into the file", err);
    }
    return LS_OK;
}

static ls_status find_directory(const lsi_archive *z, struct directory *d, ls_error *err)
{
    // With a locator before it, which is no part of what may be at the end of the file.
    const size_t len =
        (size_t)LSI_MIN(z->size, (uint64_t)LOCATOR_SIZE + END_SIZE + COMMENT_MOST);
    const uint8_t *end = NULL;
    uint8_t *tail = lsi_alloc(len + 1, 1);
    ls_status st;

    if (tail == NULL) {
        return lsi_fail_memory(err, "the end of an archive", len);
    }
    st = lsi_file_read_exactly(z->file, z->size - len, tail, len, err);
    if (st == LS_OK) {
        end = len >= END_SIZE ? find_end(tail, len) : NULL;
        st =
            end != NULL
                ? read_end(z, end, (size_t)(end - tail),
                           z->size - len + (uint64_t)(end - tail), d, err)
                : lsi_fail(err, LS_DATA_LOSS, -1,
                           "%s is no whole zip archive: its directory is missing; it was "
                           "cut off, or it is no .npz",
                           z->path);
    }
    lsi_free(tail);
    return st;
}

ls_status lsi_archive_open(const char *path, lsi_archive *out, ls_error *err)
{
    lsi_archive z = {.path = path};
    struct directory d = {0};
    ls_status st = lsi_file_open(path, LSI_FILE_READ, &z.file, err);

    if (st == LS_OK) {
        st = lsi_file_size(z.file, &z.size, err);
    }
    if (st == LS_OK) {
        st = find_directory(&z, &d, err);
    }
    if (st == LS_OK) {
        z.directory_at = d.at;
        z.directory_size = (size_t)d.size;
        z.directory = lsi_alloc(z.directory_size + 1, 1);
        st = z.directory != NULL
                 ? lsi_file_read_exactly(z.file, d.at, z.directory, z.directory_size, err)
                 : lsi_fail_memory(err, "the directory of an archive", z.directory_size);
    }
    if (st != LS_OK) {
        lsi_archive_close(&z);
        return st;
    }
    *out = z;
    return LS_OK;
}

void lsi_archive_close(lsi_archive *z)
{
    lsi_free(z->directory);
    lsi_file_close(z->file);
    *z = (lsi_archive){0};
}

/* Sizes that do not fit in 32 bits stand in an extra field. */
static bool widen(lsi_archive_entry *e, const uint8_t *extra, size_t len)
{
    uint64_t *fields[] = {&e->size, &e->packed, &e->offset};

    while (len >= 4) {
        const size_t n = lsi_le16(extra + 2);
        size_t at = 4;

        if (n > len - 4) {
            return false;
        }
        for (size_t i = 0; lsi_le16(extra) == 1 && i < LSI_COUNT_OF(fields); i++) {
            if (*fields[i] != UINT32_MAX) {
                continue;
            }
            if (at + 8 > n + 4) {
                return false;
            }
            *fields[i] = lsi_le64(extra + at);
            at += 8;
        }
        extra += n + 4;
        len -= n + 4;
    }
    return true;
}

ls_status lsi_archive_next(const lsi_archive *z, size_t *at, lsi_archive_entry *e,
                           ls_error *err)
{
    const uint64_t here = z->directory_at + *at;
    const uint8_t *p = z->directory + *at;
    size_t left = z->directory_size - *at, extra, comment;

    if (left == 0) {
        return LS_OUT_OF_RANGE;
    }
    if (left < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0) {
        return lsi_archive_damaged(z, here,
                                   "an entry of the directory does not begin there", err);
    }
    e->flags = lsi_le16(p + 8);
    e->method = lsi_le16(p + 10);
    e->crc = lsi_le32(p + 16);
    e->packed = lsi_le32(p + 20);
    e->size = lsi_le32(p + 24);
    e->offset = lsi_le32(p + 42);
    e->name_len = lsi_le16(p + 28);
    e->name = p + ENTRY_SIZE;
    extra = lsi_le16(p + 30);
    comment = lsi_le16(p + 32);
    left -= ENTRY_SIZE;
    if (e->name_len + extra + comment > left) {
        return lsi_archive_damaged(
            z, here, "an entry is longer than the rest of the directory", err);
    }
    *at += ENTRY_SIZE + e->name_len + extra + comment;
    if (!widen(e, e->name + e->name_len, extra)) {
        return lsi_archive_damaged(z, here, "the sizes of an entry are missing", err);
    }
    if (e->offset > z->directory_at || z->directory_at - e->offset < LOCAL_SIZE) {
        return lsi_archive_damaged(z, here,
                                   "a member is said to lie outside of the archive", err);
    }
    return LS_OK;
}

ls_status lsi_archive_locate(const lsi_archive *z, const lsi_archive_entry *e,
                             uint64_t *at, ls_error *err)
{
    uint8_t local[LOCAL_SIZE];
    const ls_status st =
        lsi_file_read_exactly(z->file, e->offset, local, sizeof local, err);

    if (st != LS_OK) {
        return st;
    }
    *at = e->offset + LOCAL_SIZE + lsi_le16(local + 26) + lsi_le16(local + 28);
    if (memcmp(local, "PK\3\4", 4) != 0 || *at > z->size || e->packed > z->size - *at) {
        return lsi_archive_damaged(
            z, e->offset, "a member is cut off or not where the directory says", err);
    }
    return LS_OK;
}

char *lsi_archive_key(const lsi_archive_entry *e)
{
    size_t len = e->name_len;
    char *key;

    if (len >= 4 && memcmp(e->name + len - 4, ".npy", 4) == 0) {
        len -= 4;
    }
    key = lsi_alloc(len + 1, 1);
    if (key != NULL) {
        memcpy(key, e->name, len);
    }
    return key;
}
