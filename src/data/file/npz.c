/* The arrays of an .npz file: members of a zip archive, each an array with its header. */
#include "data/file/archive.h"
#include "data/file/npy.h"

#include <stdio.h>

enum {
    RATIO_MOST = 1040, // deflate cannot do better than 1032 to 1
};

struct arrays {
    lsi_archive zip;
    uint64_t packed; // of the members so far: they may not overlap
    char **keys;
    ls_value **items;
    size_t n, room;
};

static ls_status find_data(struct arrays *z, const lsi_archive_entry *e, uint64_t *at,
                           ls_error *err)
{
    const ls_status st = lsi_archive_locate(&z->zip, e, at, err);

    if (st != LS_OK) {
        return st;
    }
    z->packed += e->packed;
    return z->packed > z->zip.size
               ? lsi_archive_damaged(&z->zip, e->offset, "its members overlap", err)
               : LS_OK;
}

/* The bytes of a deflated member, the caller's to free. */
static ls_status inflate_member(struct arrays *z, const lsi_archive_entry *e, uint64_t at,
                                uint8_t **out, ls_error *err)
{
    uint8_t *packed = NULL, *data = NULL;
    ls_status st;

    if (e->size / RATIO_MOST > e->packed) {
        return lsi_archive_damaged(&z->zip, e->offset,
                                   "a member promises more than its bytes can hold", err);
    }
    packed = lsi_alloc((size_t)e->packed + 1, 1);
    data = packed != NULL ? lsi_alloc((size_t)e->size + 1, 1) : NULL;
    if (data == NULL) {
        st = lsi_fail_memory(err, "a member of an archive", (size_t)e->size);
        goto out;
    }
    st = lsi_file_read_exactly(z->zip.file, at, packed, (size_t)e->packed, err);
    if (st == LS_OK) {
        st = lsi_inflate_exactly(packed, (size_t)e->packed, data, (size_t)e->size,
                                 z->zip.path, err);
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

static ls_status read_member(struct arrays *z, const lsi_archive_entry *e,
                             const char *name, ls_tensor **out, ls_error *err)
{
    lsi_npy_source src = {
        .path = z->zip.path, .name = name, .size = e->size, .sum = true};
    uint8_t *data = NULL;
    ls_tensor *t = NULL;
    ls_status st = find_data(z, e, &src.begin, err);

    if (st != LS_OK) {
        return st;
    }
    if ((e->flags & 1) != 0 ||
        (e->method != LSI_ARCHIVE_STORED && e->method != LSI_ARCHIVE_DEFLATED)) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s: %s is encrypted or compressed in a way (%d) that NumPy does "
                        "not use",
                        z->zip.path, name, e->method);
    }
    if (e->method == LSI_ARCHIVE_STORED) {
        if (e->size != e->packed) {
            return lsi_archive_damaged(&z->zip, e->offset,
                                       "a stored member has two lengths", err);
        }
        src.file = z->zip.file;
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
        st = lsi_fail(err, LS_DATA_LOSS, -1, "%s: the checksum of %s is wrong",
                      z->zip.path, name);
    }
    lsi_free(data);
    if (st != LS_OK) {
        ls_tensor_release(t);
        return st;
    }
    *out = t;
    return LS_OK;
}

static ls_status grow_archive(struct arrays *z, ls_error *err)
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

static ls_status add_member(struct arrays *z, const lsi_archive_entry *e, ls_error *err)
{
    ls_tensor *t = NULL;
    char *key;
    ls_status st = z->n == z->room ? grow_archive(z, err) : LS_OK;

    if (st != LS_OK) {
        return st;
    }
    key = lsi_archive_key(e);
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
    struct arrays z = {0};
    lsi_archive_entry e = {0};
    size_t at = 0;
    ls_status st = lsi_archive_open(path, &z.zip, err);

    while (st == LS_OK) {
        st = lsi_archive_next(&z.zip, &at, &e, err);
        if (st == LS_OK && e.name_len > 0 && e.name[e.name_len - 1] != '/') {
            st = add_member(&z, &e, err);
        }
    }
    if (st == LS_OUT_OF_RANGE) {
        st = z.n > 0 ? ls_value_dict((const char *const *)z.keys, z.items, z.n, out, err)
                     : lsi_fail(err, LS_INVALID_ARGUMENT, -1, "%s holds no arrays", path);
    }
    for (size_t i = 0; i < z.n; i++) {
        lsi_free(z.keys[i]);
        ls_value_release(z.items[i]);
    }
    lsi_free(z.keys);
    lsi_free(z.items);
    lsi_archive_close(&z.zip);
    return st;
}
