/*
 * Reading .npz files, zip archives of NumPy's arrays. The directory at the end of the
 * file says where each member is; every offset and length in it is compared with the
 * file's size before it is used.
 */
#include "data/file/npy.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    END_SIZE = 22,
    COMMENT_MOST = 65535,
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
    STORED = 0,
    DEFLATED = 8,
    RATIO_MOST = 1040, // deflate compresses by a factor of at most 1032
};

struct archive {
    const char *path;
    lsi_file *file;
    uint64_t size;
    uint8_t *directory;
    size_t directory_size;
    uint64_t packed; // sum over the members so far: they must not overlap
    char **keys;
    ls_value **items;
    size_t n, room;
};

/* A member, as the directory describes it. */
struct entry {
    uint16_t flags, method;
    uint32_t crc;
    uint64_t packed, size, offset;
    const uint8_t *name;
    size_t name_len;
};

static ls_status archive_damaged(const struct archive *z, const char *what, ls_error *err)
{
    return lsi_fail(err, LS_DATA_LOSS, -1, "%s is not a complete zip archive: %s",
                    z->path, what);
}

/* The end record is in the last 64 KiB; only a comment may follow it. */
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

/* Zip64 archives have a second end record; a locator before the first points to it. */
static ls_status find_end64(const struct archive *z, uint64_t end_at, uint64_t *size,
                            uint64_t *offset, ls_error *err)
{
    uint8_t locator[LOCATOR_SIZE], end[END64_SIZE];
    uint64_t at;
    ls_status st;

    if (end_at < LOCATOR_SIZE) {
        return archive_damaged(z, "the end of a large one is missing", err);
    }
    st = lsi_file_read_exactly(z->file, end_at - LOCATOR_SIZE, locator, sizeof locator,
                               err);
    if (st != LS_OK) {
        return st;
    }
    at = lsi_le64(locator + 8);
    if (memcmp(locator, "PK\6\7", 4) != 0 || z->size < END64_SIZE ||
        at > z->size - END64_SIZE) {
        return archive_damaged(z, "the end of a large one is missing", err);
    }
    st = lsi_file_read_exactly(z->file, at, end, sizeof end, err);
    if (st == LS_OK && memcmp(end, "PK\6\6", 4) != 0) {
        st = archive_damaged(z, "the end of a large one is missing", err);
    }
    if (st == LS_OK) {
        *size = lsi_le64(end + 40);
        *offset = lsi_le64(end + 48);
    }
    return st;
}

static ls_status locate_directory(struct archive *z, uint64_t *size, uint64_t *offset,
                                  ls_error *err)
{
    const size_t len = (size_t)LSI_MIN(z->size, (uint64_t)END_SIZE + COMMENT_MOST);
    const uint8_t *end;
    uint8_t *tail;
    ls_status st;

    if (z->size < END_SIZE) {
        return archive_damaged(z, "it is too short", err);
    }
    tail = lsi_alloc(len, 1);
    if (tail == NULL) {
        return lsi_fail_memory(err, "the end of an archive", len);
    }
    st = lsi_file_read_exactly(z->file, z->size - len, tail, len, err);
    if (st == LS_OK) {
        end = find_end(tail, len);
        if (end == NULL) {
            st = archive_damaged(
                z, "its directory is missing; it was cut off, or is not an .npz file",
                err);
        } else {
            *size = lsi_le32(end + 12);
            *offset = lsi_le32(end + 16);
            if (*size == UINT32_MAX || *offset == UINT32_MAX ||
                lsi_le16(end + 10) == UINT16_MAX) {
                st = find_end64(z, z->size - len + (uint64_t)(end - tail), size, offset,
                                err);
            }
        }
    }
    lsi_free(tail);
    return st;
}

static ls_status read_directory(struct archive *z, ls_error *err)
{
    uint64_t size = 0, offset = 0;
    ls_status st = locate_directory(z, &size, &offset, err);

    if (st != LS_OK) {
        return st;
    }
    if (size > z->size || offset > z->size - size) {
        return archive_damaged(z, "its directory lies outside of it", err);
    }
    z->directory = lsi_alloc((size_t)size + 1, 1);
    if (z->directory == NULL) {
        return lsi_fail_memory(err, "the directory of an archive", (size_t)size);
    }
    z->directory_size = (size_t)size;
    return lsi_file_read_exactly(z->file, offset, z->directory, z->directory_size, err);
}

/* Reads sizes that do not fit in 32 bits from an extra field. */
static bool widen_sizes(struct entry *e, const uint8_t *extra, size_t len)
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

/* The entry at *at of the directory; moves on. */
static bool next_entry(const struct archive *z, size_t *at, struct entry *e)
{
    const uint8_t *p = z->directory + *at;
    size_t left = z->directory_size - *at, extra, comment;

    if (left < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0) {
        return false;
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
        return false;
    }
    *at += ENTRY_SIZE + e->name_len + extra + comment;
    return widen_sizes(e, e->name + e->name_len, extra);
}

/* Where the member's bytes begin, after its local header. */
static ls_status find_data(struct archive *z, const struct entry *e, uint64_t *at,
                           ls_error *err)
{
    uint8_t local[LOCAL_SIZE];
    ls_status st;

    if (z->size < LOCAL_SIZE || e->offset > z->size - LOCAL_SIZE) {
        return archive_damaged(z, "a member lies outside of it", err);
    }
    st = lsi_file_read_exactly(z->file, e->offset, local, sizeof local, err);
    if (st != LS_OK) {
        return st;
    }
    *at = e->offset + LOCAL_SIZE + lsi_le16(local + 26) + lsi_le16(local + 28);
    if (memcmp(local, "PK\3\4", 4) != 0 || *at > z->size || e->packed > z->size - *at) {
        return archive_damaged(z, "a member is cut off or not where the directory says",
                               err);
    }
    z->packed += e->packed;
    if (z->packed > z->size) {
        return archive_damaged(z, "its members overlap", err);
    }
    return LS_OK;
}

/* The bytes of a deflated member, the caller's to free. */
static ls_status inflate_member(struct archive *z, const struct entry *e, uint64_t at,
                                uint8_t **out, ls_error *err)
{
    uint8_t *packed = NULL, *data = NULL;
    ls_status st;

    if (e->size / RATIO_MOST > e->packed) {
        return archive_damaged(z, "a member promises more than its bytes can hold", err);
    }
    packed = lsi_alloc((size_t)e->packed + 1, 1);
    data = packed != NULL ? lsi_alloc((size_t)e->size + 1, 1) : NULL;
    if (data == NULL) {
        st = lsi_fail_memory(err, "a member of an archive", (size_t)e->size);
        goto out;
    }
    st = lsi_file_read_exactly(z->file, at, packed, (size_t)e->packed, err);
    if (st == LS_OK) {
        st = lsi_inflate_exactly(packed, (size_t)e->packed, data, (size_t)e->size,
                                 z->path, err);
    }
out:
    lsi_free(packed);
    if (st != LS_OK) {
        lsi_free(data);
        return st;
    }
    *out = data;
    return LS_OK;
}

/* Reads the bytes after the array in its member: the checksum covers them, too. */
static ls_status read_rest(lsi_npy_source *src, ls_error *err)
{
    uint8_t rest[4096];
    ls_status st = LS_OK;

    while (st == LS_OK && src->at < src->size) {
        const size_t n = (size_t)LSI_MIN(src->size - src->at, (uint64_t)sizeof rest);

        st = lsi_npy_read(src, rest, n, err);
    }
    return st;
}

static ls_status read_member(struct archive *z, const struct entry *e, const char *name,
                             ls_tensor **out, ls_error *err)
{
    lsi_npy_source src = {.path = z->path, .name = name, .size = e->size, .sum = true};
    uint8_t *data = NULL;
    ls_tensor *t = NULL;
    ls_status st = find_data(z, e, &src.begin, err);

    if (st != LS_OK) {
        return st;
    }
    if ((e->flags & 1) != 0 || (e->method != STORED && e->method != DEFLATED)) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s: %s is encrypted or compressed in a way (%d) that NumPy does "
                        "not use",
                        z->path, name, e->method);
    }
    if (e->method == STORED) {
        if (e->size != e->packed) {
            return archive_damaged(z, "a stored member has two lengths", err);
        }
        src.file = z->file;
    } else {
        st = inflate_member(z, e, src.begin, &data, err);
        src.memory = data;
    }
    if (st == LS_OK) {
        st = lsi_npy_tensor(&src, &t, err);
    }
    if (st == LS_OK) {
        st = read_rest(&src, err);
    }
    if (st == LS_OK && src.crc != e->crc) {
        st = lsi_fail(err, LS_DATA_LOSS, -1, "%s: the checksum of %s is wrong", z->path,
                      name);
    }
    lsi_free(data);
    if (st != LS_OK) {
        ls_tensor_release(t);
        return st;
    }
    *out = t;
    return LS_OK;
}

/* The name without ".npy", the caller's to free. NULL: out of memory. */
static char *key_of(const struct entry *e)
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

static ls_status grow_archive(struct archive *z, ls_error *err)
{
    const size_t room = z->room == 0 ? 8 : 2 * z->room;
    char **keys = lsi_realloc(z->keys, z->room, room, sizeof *keys);
    ls_value **items;

    if (keys == NULL) {
        return lsi_fail_memory(err, "the arrays of an archive", room * sizeof *keys);
    }
    z->keys = keys;
    items = lsi_realloc(z->items, z->room, room, sizeof(ls_value *));
    if (items == NULL) {
        return lsi_fail_memory(err, "the arrays of an archive",
                               room * sizeof(ls_value *));
    }
    z->items = items;
    z->room = room;
    return LS_OK;
}

static ls_status add_member(struct archive *z, const struct entry *e, ls_error *err)
{
    ls_tensor *t = NULL;
    char *key;
    ls_status st = z->n == z->room ? grow_archive(z, err) : LS_OK;

    if (st != LS_OK) {
        return st;
    }
    key = key_of(e);
    if (key == NULL) {
        return lsi_fail_memory(err, "the name of an array", e->name_len);
    }
    st = read_member(z, e, key, &t, err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, &z->items[z->n], err);
        ls_tensor_release(t);
    }
    if (st != LS_OK) {
        lsi_free(key);
        return st;
    }
    z->keys[z->n++] = key;
    return LS_OK;
}

ls_status lsi_npz_read(const char *path, ls_value **out, ls_error *err)
{
    struct archive z = {.path = path};
    struct entry e = {0};
    size_t at = 0;
    ls_status st = lsi_file_open(path, LSI_FILE_READ, &z.file, err);

    if (st == LS_OK) {
        st = lsi_file_size(z.file, &z.size, err);
    }
    if (st == LS_OK) {
        st = read_directory(&z, err);
    }
    while (st == LS_OK && at < z.directory_size) {
        if (!next_entry(&z, &at, &e)) {
            st = archive_damaged(&z, "its directory is damaged", err);
        } else if (e.name_len > 0 && e.name[e.name_len - 1] != '/') {
            st = add_member(&z, &e, err);
        }
    }
    if (st == LS_OK && z.n == 0) {
        st = lsi_fail(err, LS_INVALID_ARGUMENT, -1, "%s holds no arrays", path);
    }
    if (st == LS_OK) {
        st = ls_value_dict((const char *const *)z.keys, z.items, z.n, out, err);
    }
    for (size_t i = 0; i < z.n; i++) {
        lsi_free(z.keys[i]);
        ls_value_release(z.items[i]);
    }
    lsi_free(z.keys);
    lsi_free(z.items);
    lsi_free(z.directory);
    lsi_file_close(z.file);
    return st;
}
