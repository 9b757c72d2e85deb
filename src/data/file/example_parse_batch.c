/*
 * Parsing a batch of tf.train.Examples into tensors, in up to two passes over the
 * records: the first finds and counts the values, the second writes those of variable
 * length. Several threads share the rows of a pass.
 */
#include "data/file/example_parser.h"

#include "data/sparse.h"

#include <inttypes.h>
#include <stdio.h>

enum { ROWS_WORTH_A_THREAD = 16 };

/* The result of one feature. */
struct column {
    ls_tensor *t;       // the dense tensor, or the values of a sparse one
    ls_tensor *indices; // of a sparse one
    size_t total;       // values of all rows
    size_t longest;     // of one row
};

/* A batch being parsed; threads take parts of its rows. */
struct batch;
typedef void part_fn(struct batch *b, size_t begin, size_t end, ls_error *err);
struct batch {
    const lsi_example_parser *p;
    const lsi_parse_plan *at; // valid until the last part is finished
    ls_tensor *tensor;        // the records
    const ls_string *records;
    size_t rows;
    bool batched;
    lsi_feature_list *lists; // rows * features
    struct column *columns;
    part_fn *work;

    // Threads take the next part each; the last reference frees the struct.
    atomic_int refs;
    atomic_size_t taken; // parts
    size_t parts;
    lsi_word left;    // parts that are not finished
    lsi_mutex lock;   // guards the two below
    size_t failed_at; // the first part that failed
    ls_error error;
};

static const char *const list_names[] = {"absent", "string", "float32", "int64"};

static ls_list_kind kind_of(ls_dtype dtype)
{
    return dtype == LS_I64 ? LS_LIST_INT64
                           : (dtype == LS_F32 ? LS_LIST_FLOAT : LS_LIST_BYTES);
}

/* ---- failures ---- */

static ls_status fail_feature(const struct batch *b, size_t row, const ls_feature *f,
                              const char *what, ls_error *err)
{
    if (b->batched) {
        return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "record %zu: feature %.100s %s",
                        row, f->name, what);
    }
    return lsi_fail(err, LS_INVALID_ARGUMENT, -1, "feature %.100s %s", f->name, what);
}

static ls_status fail_absent(const struct batch *b, size_t row, const ls_feature *f,
                             ls_error *err)
{
    const ls_string *record = &b->records[row];
    char names[240], text[300];

    lsi_example_names((const uint8_t *)record->ptr, record->len, names, sizeof names);
    (void)snprintf(text, sizeof text, "is absent and has no default; there are: %s",
                   names);
    return fail_feature(b, row, f, text, err);
}

static ls_status wrong_kind(const struct batch *b, size_t row, const ls_feature *f,
                            const lsi_feature_list *list, ls_error *err)
{
    char text[80];

    (void)snprintf(text, sizeof text, "holds %s values, %s are expected",
                   list_names[list->kind], ls_dtype_name(f->dtype));
    return fail_feature(b, row, f, text, err);
}

static ls_status wrong_count(const struct batch *b, size_t row, const ls_feature *f,
                             int64_t there, int64_t wanted, ls_error *err)
{
    char text[120];

    if (there < 0) {
        return fail_feature(b, row, f, "is not a list of values: its bytes are damaged",
                            err);
    }
    (void)snprintf(text, sizeof text,
                   f->kind == LS_FEATURE_SEQUENCE
                       ? "has %" PRId64 " values, not a multiple of %" PRId64
                       : "has %" PRId64 " values, %" PRId64 " are expected",
                   there, wanted);
    return fail_feature(b, row, f, text, err);
}

/* ---- values ---- */

/* Writes at most `room` values from element `at` of the column on; returns how many there
 * are, or -1. */
static int64_t decode_values(const lsi_feature_list *list, ls_dtype dtype,
                             const ls_tensor *t, size_t at, size_t room)
{
    void *to = t != NULL ? (char *)t->data + at * ls_dtype_size(dtype) : NULL;

    switch (dtype) {
    case LS_I64:
        return lsi_feature_list_int64(list, to, room);
    case LS_F32:
        return lsi_feature_list_float(list, to, room);
    default:
        return lsi_feature_list_bytes(list, to, room);
    }
}

/* The bytes of a feature's only string, as uint8. */
static int64_t decode_u8(const lsi_feature_list *list, uint8_t *to, size_t room,
                         bool *one)
{
    ls_string s;
    const int64_t n = lsi_feature_list_bytes(list, &s, 1);

    *one = n == 1;
    if (n != 1) {
        return n;
    }
    if (s.len == room && room > 0) {
        memcpy(to, s.ptr, room);
    }
    return (int64_t)s.len;
}

static ls_status put_fixed(const struct batch *b, size_t row, size_t i, ls_error *err)
{
    const ls_feature *f = &b->p->features[i];
    const lsi_feature_list *list = &b->lists[row * b->p->n + i];
    ls_tensor *t = b->columns[i].t;
    const size_t count = (size_t)b->p->counts[i], size = ls_dtype_size(f->dtype);
    bool one = true;
    int64_t n;

    if (list->kind == LS_LIST_NONE) {
        if (f->otherwise == NULL) {
            return fail_absent(b, row, f, err);
        }
        memcpy((char *)t->data + row * count * size, f->otherwise->data, count * size);
        return LS_OK;
    }
    if (list->kind != kind_of(f->dtype)) {
        return wrong_kind(b, row, f, list, err);
    }
    if (f->dtype == LS_U8) {
        n = decode_u8(list, (uint8_t *)t->data + row * count, count, &one);
        if (!one && n >= 0) {
            return fail_feature(
                b, row, f, "is not one string, whose bytes would be the elements", err);
        }
    } else {
        n = decode_values(list, f->dtype, t, row * count, count);
    }
    return n == (int64_t)count ? LS_OK : wrong_count(b, row, f, n, (int64_t)count, err);
}

/* Counts the values of a feature of variable length; fails if they cannot be read. */
static ls_status count_values(const struct batch *b, size_t row, size_t i, ls_error *err)
{
    const ls_feature *f = &b->p->features[i];
    lsi_feature_list *list = &b->lists[row * b->p->n + i];
    const int64_t step = f->kind == LS_FEATURE_SEQUENCE ? b->p->counts[i] : 1;
    int64_t n;

    if (list->kind == LS_LIST_NONE) {
        list->count = 0;
        return LS_OK;
    }
    if (list->kind != kind_of(f->dtype)) {
        return wrong_kind(b, row, f, list, err);
    }
    n = decode_values(list, f->dtype, NULL, 0, 0);
    if (n < 0 || (step > 0 ? n % step != 0 : n > 0)) {
        return wrong_count(b, row, f, n, step, err);
    }
    list->count = (size_t)n;
    return LS_OK;
}

/* First pass: finds the lists, writes features of fixed size, counts the others. */
static void scan_rows(struct batch *b, size_t begin, size_t end, ls_error *err)
{
    const size_t n = b->p->n;

    for (size_t row = begin; row < end; row++) {
        const ls_string *s = &b->records[row];
        lsi_feature_list *lists = b->lists + row * n;
        ls_status st = LS_OK;

        if (s->len > 0 &&
            !lsi_example_scan((const uint8_t *)s->ptr, s->len, b->p->wanted, n, lists)) {
            (void)lsi_fail(err, LS_INVALID_ARGUMENT, -1,
                           "record %zu of %zu bytes is not a tf.train.Example", row,
                           s->len);
            return;
        }
        for (size_t i = 0; i < n && st == LS_OK; i++) {
            st = b->p->features[i].kind == LS_FEATURE_FIXED
                     ? put_fixed(b, row, i, err)
                     : count_values(b, row, i, err);
        }
        if (st != LS_OK) {
            return;
        }
    }
}

/* Writes the padding after the values of a row. */
static void pad_row(const ls_feature *f, ls_tensor *t, size_t begin, size_t end)
{
    const size_t size = ls_dtype_size(f->dtype);
    char *to = (char *)t->data;
    const ls_string nothing = {"", 0};

    for (size_t i = begin; i < end; i++) {
        if (f->otherwise != NULL) {
            memcpy(to + i * size, f->otherwise->data, size);
        } else if (f->dtype == LS_STRING) {
            memcpy(to + i * size, &nothing, size);
        } else {
            memset(to + i * size, 0, size);
        }
    }
}

/* Writes the values and the indices of a sparse row. */
static void put_sparse(const struct batch *b, size_t row, size_t i)
{
    const lsi_feature_list *list = &b->lists[row * b->p->n + i];
    const struct column *c = &b->columns[i];
    const size_t rank = b->batched ? 2 : 1;
    const size_t end = row + 1 < b->rows ? (list + b->p->n)->count : c->total;
    int64_t *at = (int64_t *)c->indices->data + list->count * rank;

    if (list->kind == LS_LIST_NONE) {
        return;
    }
    (void)decode_values(list, b->p->features[i].dtype, c->t, list->count,
                        end - list->count);
    for (size_t k = 0; k < end - list->count; k++) {
        if (b->batched) {
            *at++ = (int64_t)row;
        }
        *at++ = (int64_t)k;
    }
}

/* Second pass: writes features of variable length, whose memory is now allocated. */
static void fill_rows(struct batch *b, size_t begin, size_t end, ls_error *err)
{
    (void)err;
    for (size_t row = begin; row < end; row++) {
        for (size_t i = 0; i < b->p->n; i++) {
            const ls_feature *f = &b->p->features[i];
            const lsi_feature_list *list = &b->lists[row * b->p->n + i];
            const struct column *c = &b->columns[i];
            const size_t first = row * c->longest;

            if (f->kind == LS_FEATURE_VAR) {
                put_sparse(b, row, i);
            } else if (f->kind == LS_FEATURE_SEQUENCE) {
                if (list->kind != LS_LIST_NONE) {
                    (void)decode_values(list, f->dtype, c->t, first, list->count);
                }
                pad_row(f, c->t, first + list->count, first + c->longest);
            }
        }
    }
}

/* ---- sharing the rows ---- */

static void drop_batch(struct batch *b)
{
    if (atomic_fetch_sub(&b->refs, 1) == 1) {
        lsi_mutex_destroy(&b->lock);
        lsi_word_destroy(&b->left);
        lsi_free(b);
    }
}

/* Works on parts until all are taken. */
static void take_parts(struct batch *b)
{
    size_t part;

    while ((part = atomic_fetch_add(&b->taken, 1)) < b->parts) {
        ls_error err = LS_ERROR_INIT;

        b->work(b, b->rows * part / b->parts, b->rows * (part + 1) / b->parts, &err);
        if (err.code != LS_OK) {
            lsi_mutex_lock(&b->lock);
            if (part < b->failed_at) {
                b->failed_at = part; // the first wrong row is reported
                b->error = err;
            }
            lsi_mutex_unlock(&b->lock);
        }
        lsi_word_drop(&b->left);
    }
}

static void run_helper(void *arg)
{
    take_parts(arg);
    drop_batch(arg);
}

/*
 * Runs a pass over all rows. Calls are submitted to the input's threads; one that begins
 * too late finds no part left. The caller works, too, and then waits only for parts that
 * a thread has taken.
 */
static ls_status run_parts(struct batch *b, part_fn *work, ls_error *err)
{
    const size_t parts = b->parts;

    b->work = work;
    b->failed_at = SIZE_MAX;
    if (parts > 1) {
        lsi_word_set(&b->left, (unsigned)parts);
        atomic_store(&b->taken, 0);
        for (size_t i = 1; i < parts; i++) {
            atomic_fetch_add(&b->refs, 1);
            if (!lsi_input_threads_submit(b->at->threads, run_helper, b)) {
                drop_batch(b);
                break;
            }
        }
        take_parts(b);
        lsi_word_wait_zero(&b->left, 0);
    } else {
        work(b, 0, b->rows, &b->error);
        b->failed_at = b->error.code != LS_OK ? 0 : SIZE_MAX;
    }
    return b->failed_at != SIZE_MAX ? lsi_fail_again(err, &b->error) : LS_OK;
}

/* ---- tensors ---- */

/* Keeps what the strings of a result point into: the records, and the defaults. */
struct holder {
    ls_tensor *records, *otherwise;
    ls_string strings[];
};

static void release_holder(void *arg)
{
    struct holder *h = arg;

    ls_tensor_release(h->records);
    ls_tensor_release(h->otherwise);
    lsi_free(h);
}

static ls_tensor *new_strings(const struct batch *b, const ls_feature *f,
                              const ls_shape *shape)
{
    struct holder *h;
    ls_tensor *t = NULL;
    int64_t count;
    size_t bytes;

    if (!lsi_shape_bytes(shape, LS_STRING, &count, &bytes) ||
        bytes > SIZE_MAX - sizeof *h) {
        return NULL;
    }
    h = lsi_alloc(1, sizeof *h + bytes);
    if (h == NULL || lsi_tensor_wrap(b->at->device, LS_STRING, *shape, h->strings,
                                     release_holder, h, &t, NULL) != LS_OK) {
        lsi_free(h);
        return NULL;
    }
    h->records = ls_tensor_retain(b->tensor);
    h->otherwise = ls_tensor_retain(f->otherwise);
    return t;
}

static ls_tensor *new_tensor(const struct batch *b, const ls_feature *f,
                             const ls_shape *shape)
{
    return f->dtype == LS_STRING ? new_strings(b, f, shape)
                                 : lsi_tensor_new(b->at->device, f->dtype, shape);
}

/* [rows,] [longest,] and the feature's own shape. */
static ls_shape dense_shape(const struct batch *b, const ls_feature *f, int64_t longest)
{
    ls_shape s = {0};

    if (b->batched) {
        s.dims[s.ndim++] = (int64_t)b->rows;
    }
    if (f->kind == LS_FEATURE_SEQUENCE) {
        s.dims[s.ndim++] = longest;
    }
    for (int i = 0; i < f->shape.ndim; i++) {
        s.dims[s.ndim++] = f->shape.dims[i];
    }
    return s;
}

static ls_status no_memory(const ls_feature *f, ls_error *err)
{
    return lsi_fail(err, LS_RESOURCE_EXHAUSTED, -1,
                    "out of memory for a batch of feature %.100s", f->name);
}

static ls_status make_fixed(struct batch *b, ls_error *err)
{
    for (size_t i = 0; i < b->p->n; i++) {
        const ls_feature *f = &b->p->features[i];
        const ls_shape s = dense_shape(b, f, 0);

        if (f->kind == LS_FEATURE_FIXED) {
            b->columns[i].t = new_tensor(b, f, &s);
            if (b->columns[i].t == NULL) {
                return no_memory(f, err);
            }
        }
    }
    return LS_OK;
}

/* Turns the counts into offsets and allocates the values. */
static ls_status make_counted(struct batch *b, size_t i, ls_error *err)
{
    const ls_feature *f = &b->p->features[i];
    const bool sparse = f->kind == LS_FEATURE_VAR;
    struct column *c = &b->columns[i];
    ls_shape shape;

    for (size_t row = 0; row < b->rows; row++) {
        lsi_feature_list *list = &b->lists[row * b->p->n + i];
        const size_t count = list->count;

        c->longest = LSI_MAX(c->longest, count);
        if (sparse) {
            list->count = c->total;
        }
        c->total += count;
    }
    if (sparse) {
        const int64_t dims[2] = {(int64_t)c->total, b->batched ? 2 : 1};
        const ls_shape two = ls_shape_of(2, dims);

        shape = ls_shape_of(1, dims);
        c->indices = lsi_tensor_new(b->at->device, LS_I64, &two);
    } else {
        const int64_t count = b->p->counts[i];

        shape = dense_shape(b, f, count > 0 ? (int64_t)c->longest / count : 0);
    }
    c->t = new_tensor(b, f, &shape);
    return c->t != NULL && (!sparse || c->indices != NULL) ? LS_OK : no_memory(f, err);
}

static ls_status sparse_value(const struct batch *b, const struct column *c,
                              ls_value **out, ls_error *err)
{
    const int64_t dims[2] = {(int64_t)b->rows, (int64_t)c->longest};
    const int64_t rank = b->batched ? 2 : 1;
    ls_tensor *dense = NULL;
    ls_status st = lsi_tensor_create(b->at->device, LS_I64, ls_shape_of(1, &rank),
                                     dims + (b->batched ? 0 : 1), &dense, err);

    if (st == LS_OK) {
        st = lsi_sparse_value(c->indices, c->t, dense, out, err);
    }
    ls_tensor_release(dense);
    return st;
}

static ls_status make_value(const struct batch *b, ls_value **out, ls_error *err)
{
    const size_t n = b->p->n;
    ls_value **items = lsi_alloc(n, sizeof(ls_value *));
    const char **keys = lsi_alloc(n, sizeof *keys);
    ls_status st = LS_OK;

    if (items == NULL || keys == NULL) {
        st = lsi_fail_memory(err, "a parsed batch", n * sizeof *keys);
        goto out;
    }
    for (size_t i = 0; i < n && st == LS_OK; i++) {
        const struct column *c = &b->columns[i];

        keys[i] = b->p->features[i].name;
        st = c->indices != NULL ? sparse_value(b, c, &items[i], err)
                                : ls_value_tensor(c->t, &items[i], err);
    }
    if (st == LS_OK) {
        st = ls_value_dict(keys, items, n, out, err);
    }
    for (size_t i = 0; i < n; i++) {
        ls_value_release(items[i]);
    }
out:
    lsi_free(items);
    lsi_free(keys);
    return st;
}

/* ---- the whole ---- */

static ls_status check_records(const ls_tensor *t, bool batched, ls_error *err)
{
    char text[128];
    const ls_shape shape = ls_tensor_shape(t);

    if (ls_tensor_dtype(t) == LS_STRING && shape.ndim == (batched ? 1 : 0) &&
        ls_tensor_data(t) != NULL) {
        return LS_OK;
    }
    return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_OP,
                         "examples are parsed from %s, not from %s %s",
                         batched ? "a vector of strings" : "one string",
                         ls_dtype_name(ls_tensor_dtype(t)),
                         ls_shape_text(&shape, text, sizeof text));
}

static ls_status parse_batch(struct batch *b, ls_value **out, ls_error *err)
{
    ls_status st = make_fixed(b, err);

    if (st == LS_OK) {
        st = run_parts(b, scan_rows, err);
    }
    for (size_t i = 0; i < b->p->n && st == LS_OK; i++) {
        if (b->p->features[i].kind != LS_FEATURE_FIXED) {
            st = make_counted(b, i, err);
        }
    }
    if (st == LS_OK && !b->p->flat) {
        st = run_parts(b, fill_rows, err);
    }
    return st == LS_OK ? make_value(b, out, err) : st;
}

ls_status lsi_example_parser_run(const lsi_example_parser *p, ls_tensor *records,
                                 bool batched, const lsi_parse_plan *at, ls_value **out,
                                 ls_error *err)
{
    struct batch *b;
    size_t cells;
    ls_status st = check_records(records, batched, err);

    if (st != LS_OK) {
        return st;
    }
    b = lsi_alloc(1, sizeof *b);
    if (b == NULL) {
        return lsi_fail_memory(err, "a batch of examples", sizeof *b);
    }
    b->p = p;
    b->at = at;
    b->tensor = records;
    b->records = ls_tensor_data(records);
    b->rows = (size_t)ls_tensor_count(records);
    b->batched = batched;
    b->error = (ls_error)LS_ERROR_INIT;
    b->parts = LSI_MIN((size_t)LSI_MAX(at->parallel, 1), b->rows / ROWS_WORTH_A_THREAD);
    atomic_init(&b->refs, 1);
    atomic_init(&b->taken, 0);
    lsi_word_init(&b->left, 0);
    lsi_mutex_init(&b->lock);
    if (lsi_mul_size(b->rows, p->n, &cells)) {
        b->lists = lsi_alloc(cells + 1, sizeof *b->lists);
    }
    b->columns = lsi_alloc(p->n, sizeof *b->columns);
    st = b->lists != NULL && b->columns != NULL
             ? parse_batch(b, out, err)
             : lsi_fail_memory(err, "a batch of examples", b->rows * sizeof *b->lists);
    for (size_t i = 0; b->columns != NULL && i < p->n; i++) {
        ls_tensor_release(b->columns[i].t);
        ls_tensor_release(b->columns[i].indices);
    }
    lsi_free(b->columns); // not used any more: all parts are finished
    lsi_free(b->lists);
    drop_batch(b);
    return st;
}
