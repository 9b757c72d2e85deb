/* Datasets of IDX, .npy and .npz files: the rows of their arrays are the elements. */
#include "data/file/npy.h"

#include <inttypes.h>

/* The rows of `arrays`, or a failed dataset. */
static ls_dataset *rows_of(ls_status st, ls_value *arrays, const ls_error *err)
{
    ls_dataset *d;

    if (st != LS_OK) {
        return lsi_dataset_failed(st, err->kind, "%s", err->message);
    }
    d = ls_dataset_slices(arrays);
    ls_value_release(arrays);
    return d;
}

static ls_status check_name(const char *name, ls_error *err)
{
    return name != NULL ? LS_OK
                        : lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                        "the name of a file of arrays is NULL");
}

static ls_status open_npy(const char *name, lsi_npy_source *src, ls_error *err)
{
    const ls_status st = lsi_file_open(name, LSI_FILE_READ, &src->file, err);

    src->path = name;
    return st == LS_OK ? lsi_file_size(src->file, &src->size, err) : st;
}

/* Takes over the reference to `t`. */
static ls_status as_value(ls_tensor *t, ls_value **out, ls_error *err)
{
    const ls_status st = ls_value_tensor(t, out, err);

    ls_tensor_release(t);
    return st;
}

static ls_status read_npy(const char *name, ls_value **out, ls_error *err)
{
    lsi_npy_source src = {0};
    ls_tensor *t = NULL;
    ls_status st = open_npy(name, &src, err);

    if (st == LS_OK) {
        st = lsi_npy_tensor(&src, &t, err);
    }
    if (st == LS_OK) {
        st = as_value(t, out, err);
    }
    lsi_file_close(src.file);
    return st;
}

/* The rows of an array whose header was read, or a failed dataset. */
static ls_dataset *rows_later(const char *name, lsi_load_fn load, ls_status st,
                              ls_spec *whole, const ls_error *err)
{
    ls_dataset *d = st == LS_OK ? lsi_dataset_slices_later(name, load, whole)
                                : lsi_dataset_failed(st, err->kind, "%s", err->message);

    ls_spec_release(whole);
    return d;
}

ls_dataset *ls_dataset_npy(const char *name)
{
    ls_error err = LS_ERROR_INIT;
    lsi_npy_source src = {0};
    ls_spec *whole = NULL;
    ls_status st = check_name(name, &err);

    if (st == LS_OK) {
        st = open_npy(name, &src, &err);
    }
    if (st == LS_OK) {
        st = lsi_npy_spec(&src, &whole, &err);
    }
    lsi_file_close(src.file);
    return rows_later(name, read_npy, st, whole, &err);
}

ls_dataset *ls_dataset_npz(const char *name)
{
    ls_error err = LS_ERROR_INIT;
    ls_value *v = NULL;
    ls_status st = check_name(name, &err);

    if (st == LS_OK) {
        st = lsi_npz_read(name, &v, &err);
    }
    return rows_of(st, v, &err);
}

/* ---- IDX: two zeros, a type, a number of axes; sizes and elements big-endian ---- */

static bool idx_type(uint8_t code, ls_dtype *out)
{
    static const struct {
        uint8_t code;
        ls_dtype dtype;
    } types[] = {{0x08, LS_U8},  {0x09, LS_I8},  {0x0B, LS_I16},
                 {0x0C, LS_I32}, {0x0D, LS_F32}, {0x0E, LS_F64}};

    for (size_t i = 0; i < LSI_COUNT_OF(types); i++) {
        if (types[i].code == code) {
            *out = types[i].dtype;
            return true;
        }
    }
    return false;
}

/* Reads the header of an IDX file. */
static ls_status idx_header(lsi_stream *s, ls_dtype *dtype, ls_shape *shape,
                            ls_error *err)
{
    const char *path = lsi_file_path(s->file);
    size_t len;
    ls_status st = lsi_stream_want(s, 4, err);

    if (st != LS_OK) {
        return st;
    }
    if (s->have < 4 || s->bytes[0] != 0 || s->bytes[1] != 0 ||
        !idx_type(s->bytes[2], dtype) || s->bytes[3] < 1 || s->bytes[3] > LS_MAX_DIMS) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                        "%s does not begin like an IDX file: two zeros, the type of the "
                        "elements, the number of axes",
                        path);
    }
    shape->ndim = s->bytes[3];
    len = 4 + 4 * (size_t)shape->ndim;
    st = lsi_stream_want(s, len, err);
    if (st == LS_OK && s->have < len) {
        st = lsi_fail(err, LS_DATA_LOSS, -1, "%s is cut off in its header", path);
    }
    for (int i = 0; st == LS_OK && i < shape->ndim; i++) {
        const uint8_t *p = s->bytes + 4 + 4 * (size_t)i;

        shape->dims[i] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    }
    if (st == LS_OK) {
        lsi_stream_pass(s, len);
    }
    return st;
}

/* Compressed with gzip or not, by its first bytes. */
static ls_status idx_compression(const char *name, lsi_compression *out, ls_error *err)
{
    lsi_stream *s = NULL;
    ls_status st = lsi_stream_open(name, LSI_COMPRESSION_NONE, 4096, NULL, &s, err);

    if (st == LS_OK) {
        st = lsi_stream_want(s, 2, err);
    }
    if (st == LS_OK) {
        *out = s->have >= 2 && s->bytes[0] == 0x1F && s->bytes[1] == 0x8B
                   ? LSI_COMPRESSION_GZIP
                   : LSI_COMPRESSION_NONE;
    }
    lsi_stream_close(s);
    return st;
}

/* The array of an IDX file, and its stream after the header. */
struct idx {
    lsi_stream *stream;
    ls_dtype dtype;
    ls_shape shape;
    int64_t count;
    size_t bytes;
};

static ls_status cut_off(const struct idx *x, const char *name, uint64_t there,
                         ls_error *err)
{
    char text[128];

    return lsi_fail(err, LS_DATA_LOSS, -1,
                    "%s is cut off: its header promises %s elements of %s, %" PRIu64
                    " bytes are there",
                    name, ls_shape_text(&x->shape, text, sizeof text),
                    ls_dtype_name(x->dtype), there);
}

/* Opens it; fails if the file is too small for the array its header describes. */
static ls_status open_idx(const char *name, struct idx *x, ls_error *err)
{
    lsi_compression compression = LSI_COMPRESSION_NONE;
    ls_status st = idx_compression(name, &compression, err);

    if (st == LS_OK) {
        st = lsi_stream_open(name, compression, 0, NULL, &x->stream, err);
    }
    if (st == LS_OK) {
        st = idx_header(x->stream, &x->dtype, &x->shape, err);
    }
    if (st == LS_OK) {
        const lsi_stream *s = x->stream;
        const bool counted = lsi_shape_bytes(&x->shape, x->dtype, &x->count, &x->bytes);
        const uint64_t left =
            s->inflater == NULL ? s->size - LSI_MIN(s->offset, s->size) : s->size;

        // gzip compresses by a factor of at most 1032
        if (!counted || x->bytes / (s->inflater == NULL ? 1 : 1040) > left) {
            st = cut_off(x, name, left, err);
        }
    }
    return st;
}

static void free_array(void *data)
{
    lsi_free(data);
}

/* Reads the elements piece by piece into one block of memory. */
static ls_status fill_array(const struct idx *x, const char *name, char *to,
                            ls_error *err)
{
    lsi_stream *s = x->stream;
    size_t at = 0;

    while (at < x->bytes) {
        const ls_status st = lsi_stream_want(s, 1, err);
        const size_t n = LSI_MIN(s->have, x->bytes - at);

        if (st != LS_OK) {
            return st;
        }
        if (n == 0) {
            return cut_off(x, name, at, err);
        }
        memcpy(to + at, s->bytes, n);
        lsi_stream_pass(s, n);
        at += n;
    }
    return LS_OK;
}

static ls_status read_idx(const char *name, ls_value **out, ls_error *err)
{
    const uint16_t one = 1;
    struct idx x = {.dtype = LS_U8};
    ls_tensor *t = NULL;
    char *data = NULL;
    ls_status st = open_idx(name, &x, err);

    if (st == LS_OK) {
        data = lsi_alloc_aligned(x.bytes + 1, 64);
        st = data != NULL ? fill_array(&x, name, data, err)
                          : lsi_fail_memory(err, "an array", x.bytes);
    }
    if (st == LS_OK) {
        if (*(const uint8_t *)&one == 1) {
            lsi_swap_bytes(data, (size_t)x.count, ls_dtype_size(x.dtype));
        }
        st = lsi_tensor_wrap(NULL, x.dtype, x.shape, data, free_array, data, &t, err);
    }
    if (st == LS_OK) {
        data = NULL; // belongs to the tensor now
        st = as_value(t, out, err);
    }
    lsi_free(data);
    lsi_stream_close(x.stream);
    return st;
}

ls_dataset *ls_dataset_idx(const char *name)
{
    ls_error err = LS_ERROR_INIT;
    struct idx x = {.dtype = LS_U8};
    ls_spec *whole = NULL;
    ls_status st = check_name(name, &err);

    if (st == LS_OK) {
        st = open_idx(name, &x, &err);
    }
    if (st == LS_OK) {
        st = ls_spec_tensor(x.dtype, x.shape.ndim, x.shape.dims, &whole, &err);
    }
    lsi_stream_close(x.stream);
    return rows_later(name, read_idx, st, whole, &err);
}
