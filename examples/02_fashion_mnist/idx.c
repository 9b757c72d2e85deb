#include "idx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LABELS_MAGIC = 0x801, IMAGES_MAGIC = 0x803, MAX_COUNT = 10000000 };

struct reader {
    gzFile file;
    char path[1024];
    char *why;
    size_t size;
};

static int fail(const struct reader *r, const char *what)
{
    snprintf(r->why, r->size, "%s: %s", r->path, what);
    return -1;
}

static int open_file(struct reader *r, const char *dir, const char *part,
                     const char *kind)
{
    const int n = snprintf(r->path, sizeof r->path, "%s/%s-%s-ubyte.gz", dir, part, kind);

    if (n < 0 || (size_t)n >= sizeof r->path) {
        return fail(r, "the path is too long");
    }
    r->file = gzopen(r->path, "rb");
    if (r->file == NULL) {
        return fail(r, "cannot be opened; install Fashion-MNIST (Debian: "
                       "dataset-fashion-mnist) or say where it is by --data");
    }
    return 0;
}

/* Exactly `bytes`, or a failure: what is cut short must not be trained on. */
static int read_all(const struct reader *r, void *to, size_t bytes)
{
    unsigned char *p = to;

    while (bytes > 0) {
        const unsigned want = bytes > 1U << 20 ? 1U << 20 : (unsigned)bytes;
        const int got = gzread(r->file, p, want);

        if (got < 0) {
            return fail(r, "is damaged: it does not inflate");
        }
        if (got == 0) {
            return fail(r, "is cut short");
        }
        p += got;
        bytes -= (size_t)got;
    }
    return 0;
}

/* Numbers in IDX files are big-endian. */
static int read_number(const struct reader *r, uint32_t *out)
{
    unsigned char b[4];

    if (read_all(r, b, sizeof b) != 0) {
        return -1;
    }
    *out = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    return 0;
}

/* The opening: what it holds, how many, and the sizes of each. */
static int read_opening(const struct reader *r, uint32_t magic, size_t *count)
{
    uint32_t found = 0, n = 0, side = 0;

    if (read_number(r, &found) != 0 || read_number(r, &n) != 0) {
        return -1;
    }
    if (found != magic) {
        return fail(r, magic == IMAGES_MAGIC ? "is no IDX file of images"
                                             : "is no IDX file of labels");
    }
    if (n == 0 || n > MAX_COUNT) {
        return fail(r, "says that it holds none, or an unbelievable number");
    }
    for (int i = 0; magic == IMAGES_MAGIC && i < 2; i++) {
        if (read_number(r, &side) != 0) {
            return -1;
        }
        if (side != IDX_SIDE) {
            return fail(r, "holds images that are not 28 x 28");
        }
    }
    *count = n;
    return 0;
}

/* All elements, as bytes the caller frees; nothing may follow them. */
static unsigned char *read_bytes(struct reader *r, uint32_t magic, size_t each,
                                 size_t *count)
{
    unsigned char *bytes = NULL, extra;

    if (read_opening(r, magic, count) != 0) {
        return NULL;
    }
    bytes = malloc(*count * each);
    if (bytes == NULL) {
        fail(r, "does not fit into memory");
        return NULL;
    }
    if (read_all(r, bytes, *count * each) != 0) {
        free(bytes);
        return NULL;
    }
    if (gzread(r->file, &extra, 1) != 0) {
        fail(r, "goes on after its last element, or fails its checksum");
        free(bytes);
        return NULL;
    }
    return bytes;
}

static int load_images(struct reader *r, idx_set *out)
{
    unsigned char *bytes = read_bytes(r, IMAGES_MAGIC, IDX_PIXELS, &out->count);
    const size_t n = out->count * IDX_PIXELS;

    if (bytes == NULL) {
        return -1;
    }
    out->pixels = malloc(n * sizeof *out->pixels);
    if (out->pixels == NULL) {
        free(bytes);
        return fail(r, "does not fit into memory");
    }
    for (size_t i = 0; i < n; i++) {
        out->pixels[i] = (float)bytes[i] / 255.0F;
    }
    free(bytes);
    return 0;
}

static int load_labels(struct reader *r, idx_set *out)
{
    size_t count = 0;
    unsigned char *bytes = read_bytes(r, LABELS_MAGIC, 1, &count);
    int bad = 0;

    if (bytes == NULL) {
        return -1;
    }
    out->labels = malloc(count * sizeof *out->labels);
    if (out->labels == NULL) {
        bad = fail(r, "does not fit into memory");
    } else if (count != out->count) {
        bad = fail(r, "does not hold as many labels as there are images");
    }
    for (size_t i = 0; bad == 0 && i < count; i++) {
        out->labels[i] = bytes[i];
        if (bytes[i] >= IDX_CLASSES) {
            bad = fail(r, "holds a label above 9");
        }
    }
    free(bytes);
    return bad;
}

static int load_file(const char *dir, const char *part, const char *kind,
                     int (*load)(struct reader *r, idx_set *out), struct reader *r,
                     idx_set *out)
{
    int bad = open_file(r, dir, part, kind);

    if (bad == 0) {
        bad = load(r, out);
        gzclose_r(r->file);
    }
    return bad;
}

int idx_load(const char *dir, const char *part, idx_set *out, char *why, size_t size)
{
    struct reader r = {NULL, "", NULL, size};

    r.why = why;
    memset(out, 0, sizeof *out);
    if (load_file(dir, part, "images-idx3", load_images, &r, out) != 0 ||
        load_file(dir, part, "labels-idx1", load_labels, &r, out) != 0) {
        idx_release(out);
        return -1;
    }
    return 0;
}

void idx_release(idx_set *set)
{
    free(set->pixels);
    free(set->labels);
    memset(set, 0, sizeof *set);
}
