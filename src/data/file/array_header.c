/* What arrays a file of NumPy's has, by their headers. */
#include "data/file/archive.h"
#include "data/file/npy.h"

#include <isa-l.h>
#include <stdio.h>

enum { HEAD = 1 << 16 }; // of a compressed member: a header is some hundred bytes

struct list {
    ls_array_header *headers;
    size_t n, room;
};

static ls_array_header *add_header(struct list *l, char *name)
{
    if (name != NULL && l->n == l->room) {
        const size_t room = l->room == 0 ? 8 : 2 * l->room;
        ls_array_header *more = lsi_realloc(l->headers, l->room, room, sizeof *more);

        if (more != NULL) {
            l->headers = more;
            l->room = room;
        }
    }
    if (name == NULL || l->n == l->room) {
        lsi_free(name);
        return NULL;
    }
    l->headers[l->n].name = name;
    return &l->headers[l->n++];
}

/* The beginning of a compressed member; returns how many bytes there are. */
static ls_status inflate_head(const lsi_archive *z, const lsi_archive_entry *e,
                              uint64_t at, uint8_t *to, size_t *len, ls_error *err)
{
    const size_t packed = (size_t)LSI_MIN(e->packed, (uint64_t)HEAD);
    struct inflate_state *state = lsi_alloc(1, sizeof *state);
    uint8_t *in = lsi_alloc(packed + 1, 1);
    ls_status st;

    if (state == NULL || in == NULL) {
        st = lsi_fail_memory(err, "a decompressor", sizeof *state + packed);
        goto out;
    }
    st = lsi_file_read_exactly(z->file, at, in, packed, err);
    if (st == LS_OK) {
        isal_inflate_init(state);
        state->next_in = in;
        state->avail_in = (uint32_t)packed;
        state->next_out = to;
        state->avail_out = HEAD;
        (void)isal_inflate(state); // what is damaged is no header
        *len = HEAD - state->avail_out;
    }
out:
    lsi_free(state);
    lsi_free(in);
    return st;
}

static ls_status describe_member(const lsi_archive *z, const lsi_archive_entry *e,
                                 uint8_t *head, ls_array_header *out, ls_error *err)
{
    lsi_npy_source src = {.path = z->path, .name = out->name, .size = e->size};
    ls_status st = lsi_archive_locate(z, e, &src.begin, err);

    if (st == LS_OK && e->method == LSI_ARCHIVE_DEFLATED) {
        size_t len = 0;

        st = inflate_head(z, e, src.begin, head, &len, err);
        src.memory = head;
        src.size = len;
    } else {
        src.file = z->file;
        src.size = LSI_MIN(e->size, e->packed);
    }
    if (st == LS_OK) {
        st = lsi_npy_describe(&src, out, err);
    }
    if (st != LS_OK && st != LS_RESOURCE_EXHAUSTED) {
        (void)snprintf(out->dtype, sizeof out->dtype, "no array");
        st = LS_OK;
    }
    return st;
}

static ls_status describe_archive(const char *path, struct list *l, ls_error *err)
{
    lsi_archive z = {0};
    lsi_archive_entry e = {0};
    uint8_t *head = lsi_alloc(HEAD, 1);
    size_t at = 0;
    ls_status st = head != NULL ? lsi_archive_open(path, &z, err)
                                : lsi_fail_memory(err, "an array's header", HEAD);

    while (st == LS_OK) {
        st = lsi_archive_next(&z, &at, &e, err);
        if (st == LS_OK) {
            ls_array_header *a = add_header(l, lsi_archive_key(&e));

            st = a != NULL ? describe_member(&z, &e, head, a, err)
                           : lsi_fail_memory(err, "the arrays of an archive", e.name_len);
        }
    }
    lsi_archive_close(&z);
    lsi_free(head);
    return st == LS_OUT_OF_RANGE ? LS_OK : st;
}

static ls_status describe_array(lsi_file *file, const char *path, struct list *l,
                                ls_error *err)
{
    lsi_npy_source src = {.path = path, .file = file};
    ls_status st = lsi_file_size(file, &src.size, err);

    if (st == LS_OK) {
        ls_array_header *a = add_header(l, lsi_strdup(""));

        st = a != NULL ? lsi_npy_describe(&src, a, err)
                       : lsi_fail_memory(err, "an array's header", sizeof *a);
    }
    return st;
}

ls_status ls_array_headers(const char *name, ls_array_header **out, size_t *n,
                           ls_error *err)
{
    struct list l = {0};
    lsi_file *file = NULL;
    uint8_t magic[2] = {0};
    size_t got = 0;
    ls_status st;

    if (name == NULL || out == NULL || n == NULL) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "array headers: %s is NULL",
                        name == NULL ? "the name" : "an output");
    }
    st = lsi_file_open(name, LSI_FILE_READ, &file, err);
    if (st == LS_OK) {
        st = lsi_file_read_at(file, 0, magic, sizeof magic, &got, err);
    }
    if (st == LS_OK) {
        st = memcmp(magic, "PK", 2) == 0 ? describe_archive(name, &l, err)
                                         : describe_array(file, name, &l, err);
    }
    lsi_file_close(file);
    if (st != LS_OK) {
        ls_array_headers_release(l.headers, l.n);
        return st;
    }
    *out = l.headers;
    *n = l.n;
    return LS_OK;
}

void ls_array_headers_release(ls_array_header *headers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lsi_free(headers[i].name);
    }
    lsi_free(headers);
}
