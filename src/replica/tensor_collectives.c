/*
 * Sums and gathers over the sync group, with gradients: the replicas compute the result
 * together, and an operation records what it was made of.
 */
#include "replica/replica.h"

#include "lockstep/ext/op.h"
#include "reduce/reduction.h"

#include <string.h>

static bool check_op(ls_context *c, ls_reduce op, const char *what)
{
    ls_error e = LS_ERROR_INIT;

    if (op == LS_SUM || op == LS_MEAN) {
        return true;
    }
    (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                        "%s: replicas are combined by SUM or MEAN, not by %s", what,
                        ls_reduce_name(op));
    (void)lsi_context_error(c, &e);
    return false;
}

/* ---- results as operations ---- */

/*
 * Both rows are views: input 0 is the result, which the replicas have computed, input 1
 * what this replica gave. The gradient leads to the latter.
 */
static ls_status result_shape(ls_op_call *k)
{
    const ls_tensor *result = ls_op_input(k, 0);
    const ls_shape shape = ls_tensor_shape(result);

    k->spec[0].view = true;
    k->spec[0].offset = 0;
    return ls_op_set_output(k, 0, ls_tensor_dtype(result), &shape);
}

static ls_status result_kernel(ls_op_call *k)
{
    return ls_op_fail(k, LS_INTERNAL, "a view has nothing to compute");
}

/* The result as this context's tensor, recorded if a tape is. */
static ls_tensor *record_result(ls_context *c, const ls_op *row, ls_tensor *result,
                                ls_tensor *given, const void *attrs, size_t size)
{
    ls_tensor *in[2] = {result, given};

    return result == NULL || c->recording == 0
               ? result
               : (ls_op_apply1)(c, row, in, 2, attrs, size);
}

/* ---- all_reduce ---- */

struct sum_attrs {
    ls_reduce op;
};

static void sum_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                         ls_tensor **gin)
{
    const struct sum_attrs *a = ls_op_node_attrs(n);

    gin[0] = NULL;
    gin[1] = (ls_all_reduce)(c, a->op, gout[0]);
}

static const ls_op sum_row = {.struct_size = sizeof(ls_op),
                              .name = "all_reduce",
                              .min_inputs = 2,
                              .max_inputs = 2,
                              .outputs = 1,
                              .shape = result_shape,
                              .kernel = result_kernel,
                              .gradient = sum_gradient};

static ls_tensor *sum_dense(ls_context *c, ls_reduce op, ls_tensor *t)
{
    const struct sum_attrs a = {op};
    const ls_shape shape = ls_tensor_shape(t);
    ls_error e = LS_ERROR_INIT;
    ls_tensor *out;

    if (lsi_reduce_check(op, (ls_dtype)t->dtype, &e) != LS_OK) {
        return ls_context_fail(c, e.code, "all_reduce: %s", e.message);
    }
    out = lsi_context_tensor(c, (ls_dtype)t->dtype, &shape);
    if (out == NULL || !lsi_all_reduce_tensors(c, op, &t, 1, NULL, &out)) {
        return NULL;
    }
    return record_result(c, &sum_row, out, t, &a, sizeof a);
}

/* ---- all_gather ---- */

/* From this many bytes of copies on, two more meetings cost less than the copies. */
enum { WORTH_SHARING = 1 << 20 };

struct gather_attrs {
    ls_shape shape; // of the result
    int axis;
    int64_t begin, own; // this replica's range of the axis
};

/* The part of a replica's tensor to gather: all of it, or one part of a sparse one. */
typedef enum part { WHOLE, VALUES, INDICES } part;

static const ls_tensor *part_of(const lsi_gathering *p, int r, part which)
{
    const ls_tensor *t = p->t[r];

    return which == WHOLE ? t : which == VALUES ? t->values : t->indices;
}

/* Concatenates the rows of all replicas along `axis` into `to`. */
static void concatenate(const lsi_gathering *p, part which, int axis, void *to)
{
    const ls_tensor *first = part_of(p, 0, which);
    size_t inner = ls_dtype_size((ls_dtype)first->dtype), outer = 1;
    char *at = to;

    for (int a = 0; a < first->ndim; a++) {
        if (a < axis) {
            outer *= (size_t)first->dims[a];
        } else if (a > axis) {
            inner *= (size_t)first->dims[a];
        }
    }
    for (size_t o = 0; o < outer; o++) {
        for (int r = 0; r < p->n; r++) {
            const ls_tensor *t = part_of(p, r, which);
            const size_t bytes = (size_t)t->dims[axis] * inner;

            if (bytes > 0) {
                memcpy(at, (const char *)t->data + o * bytes, bytes);
                at += bytes;
            }
        }
    }
}

static void gather_gradient(ls_context *c, const ls_op_node *n, ls_tensor *const *gout,
                            ls_tensor **gin)
{
    const struct gather_attrs *a = ls_op_node_attrs(n);
    int64_t begin[LS_MAX_DIMS] = {0}, size[LS_MAX_DIMS];

    for (int i = 0; i < a->shape.ndim; i++) {
        size[i] = a->shape.dims[i];
    }
    begin[a->axis] = a->begin;
    size[a->axis] = a->own;
    gin[0] = NULL;
    gin[1] = (ls_slice)(c, (ls_all_reduce)(c, LS_SUM, gout[0]), begin, size);
}

static const ls_op gather_row = {.struct_size = sizeof(ls_op),
                                 .name = "all_gather",
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .outputs = 1,
                                 .shape = result_shape,
                                 .kernel = result_kernel,
                                 .gradient = gather_gradient};

static ls_tensor *fail_mismatch(ls_context *c, const lsi_gathering *p, int r)
{
    lsi_text first = lsi_text_of(p->t[0]), other = lsi_text_of(p->t[r]);

    return ls_context_fail(c, LS_INVALID_ARGUMENT,
                           "all_gather: replica 0 passes %s, replica %d %s: they may "
                           "differ along the axis only",
                           first.s, r, other.s);
}

/*
 * Checks that the tensors match, computes the result's shape and this replica's range;
 * false: the step has failed.
 */
static bool parts_fit(ls_context *c, const lsi_gathering *p, struct gather_attrs *a)
{
    const ls_tensor *first = p->t[0];
    int64_t total = 0;

    for (int r = 0; r < p->n; r++) {
        const ls_tensor *t = p->t[r];
        bool same = t->ndim == first->ndim && t->dtype == first->dtype;

        for (int i = 0; same && i < t->ndim; i++) {
            same = i == a->axis || t->dims[i] == first->dims[i];
        }
        if (!same) {
            (void)fail_mismatch(c, p, r);
            return false;
        }
        if (r == lsi_replica_of(c)->id) {
            a->begin = total;
            a->own = t->dims[a->axis];
        }
        // Rows may be empty, so memory does not limit their number.
        if (total > INT64_MAX - t->dims[a->axis]) {
            (void)ls_context_fail(
                c, LS_INVALID_ARGUMENT,
                "all_gather: %d replicas with %s have too many elements "
                "along axis %d",
                p->n, lsi_text_of(t).s, a->axis);
            return false;
        }
        total += t->dims[a->axis];
    }
    a->shape = ls_tensor_shape(first);
    a->shape.dims[a->axis] = total;
    return true;
}

/*
 * As in TensorFlow: its reduction to one device accepts negative axes, its collectives do
 * not; int32 always uses the former.
 */
static bool check_gather(ls_context *c, const ls_tensor *t, int *axis)
{
    const bool from_end =
        t->dtype == LS_I32 || ls_replica_strategy(c)->ops->combines_on_one_device;
    const int given = *axis;
    ls_error e = LS_ERROR_INIT;

    *axis += from_end && given < 0 ? t->ndim : 0;
    if (t->values != NULL) {
        (void)lsi_fail_kind(&e, LS_UNIMPLEMENTED, LS_KIND_RUNTIME,
                            "all_gather: sparse tensors cannot be gathered");
    } else if (t->ndim == 0) {
        (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                            "all_gather: a scalar has no axis to gather along");
    } else if (given < 0 && !from_end) {
        (void)lsi_fail_kind(&e, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                            "all_gather: the axis %d is negative; count from the front",
                            given);
    } else if (*axis < 0 || *axis >= t->ndim) {
        (void)lsi_fail_kind(
            &e, LS_INVALID_ARGUMENT, from_end ? LS_KIND_OP : LS_KIND_VALUE,
            "all_gather: there is no axis %d in %s", given, lsi_text_of(t).s);
    } else if (t->dtype == LS_STRING) {
        (void)lsi_fail_kind(&e, LS_UNIMPLEMENTED, LS_KIND_RUNTIME,
                            "all_gather: strings cannot be gathered");
    } else {
        return true;
    }
    (void)lsi_context_error(c, &e);
    return false;
}

/* Copies this replica's rows to their position in the result at `to`. */
static void put_part(const ls_tensor *t, const struct gather_attrs *a, void *to)
{
    size_t inner = ls_dtype_size((ls_dtype)t->dtype), outer = 1;

    for (int i = 0; i < t->ndim; i++) {
        outer *= i < a->axis ? (size_t)t->dims[i] : 1;
        inner *= i > a->axis ? (size_t)t->dims[i] : 1;
    }
    const size_t bytes = (size_t)a->own * inner;
    const size_t row = (size_t)a->shape.dims[a->axis] * inner;
    for (size_t o = 0; o < outer && bytes > 0; o++) {
        memcpy((char *)to + o * row + (size_t)a->begin * inner,
               (const char *)t->data + o * bytes, bytes);
    }
}

/* True if the result is so long that a copy per replica costs more than two meetings. */
static bool is_long(const ls_tensor *t, const struct gather_attrs *a, int n)
{
    int64_t count;
    size_t bytes;

    return lsi_shape_bytes(&a->shape, (ls_dtype)t->dtype, &count, &bytes) &&
           bytes > LSI_INLINE_BYTES && bytes >= (size_t)WORTH_SHARING / (size_t)n;
}

/* Replica 0 allocates the result, each replica writes its part, all get a view of it. */
static ls_tensor *gather_shared(ls_context *c, const struct gather_attrs *a, ls_tensor *t)
{
    const ls_dtype dtype = (ls_dtype)t->dtype;
    ls_tensor *whole = NULL, *out = NULL;
    lsi_meeting m;

    if (lsi_replica_of(c)->index == 0) {
        whole = lsi_context_tensor(c, dtype, &a->shape);
    }
    if (lsi_meeting_open(c, "all_gather's result", 0, whole, LSI_UNTIL_CLOSE, &m)) {
        const ls_tensor *shared = lsi_meeting_peer(&m, 0);

        put_part(t, a, shared->data);
        out = lsi_context_struct(c);
        if (out == NULL) {
            (void)ls_context_fail(c, LS_RESOURCE_EXHAUSTED, "out of memory for a tensor");
        } else {
            lsi_tensor_init_view(out, shared, dtype, &a->shape, 0);
            out->device = c->device;
        }
    }
    lsi_meeting_close(&m); // from here on all parts are written
    return lsi_failed(c) ? NULL : out;
}

/* Each replica concatenates the tensors of all into a result of its own. */
static ls_tensor *gather_own(ls_context *c, const lsi_gathering *p,
                             const struct gather_attrs *a)
{
    ls_tensor *out = lsi_context_tensor(c, (ls_dtype)p->t[0]->dtype, &a->shape);

    if (out != NULL && out->count > 0) {
        concatenate(p, WHOLE, a->axis, out->data);
    }
    return out;
}

ls_tensor *(ls_all_gather)(ls_context *c, ls_tensor *t, int axis)
{
    lsi_gathering p;
    struct gather_attrs a = {.axis = 0};
    ls_tensor *out = NULL;

    if (!lsi_require_replica(c, "all_gather") || lsi_context_aborted(c)) {
        return NULL;
    }
    if (t == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "all_gather: the tensor is NULL");
    }
    if (lsi_sync_replicas(c) == 1 && t->values == NULL) {
        return t;
    }
    if (!check_gather(c, t, &axis)) {
        return NULL;
    }
    a.axis = axis;
    if (lsi_gathering_open(c, "all_gather", (uint64_t)axis, t, &p) &&
        parts_fit(c, &p, &a)) {
        // The peers of one worker may fill one result together.
        out = p.n == lsi_local_peers(c) && is_long(t, &a, p.n) ? gather_shared(c, &a, t)
                                                               : gather_own(c, &p, &a);
    }
    lsi_gathering_close(&p);
    return lsi_failed(c) ? NULL : record_result(c, &gather_row, out, t, &a, sizeof a);
}

/* ---- sparse sums: rows and indices are concatenated ---- */

static ls_tensor *join_parts(ls_context *c, const lsi_gathering *p, part which)
{
    ls_shape shape = ls_tensor_shape(part_of(p, 0, which));
    ls_tensor *out;

    shape.dims[0] = 0;
    for (int r = 0; r < p->n; r++) {
        shape.dims[0] += part_of(p, r, which)->dims[0];
    }
    out = lsi_context_tensor(c, (ls_dtype)part_of(p, 0, which)->dtype, &shape);
    if (out != NULL) {
        concatenate(p, which, 0, out->data);
    }
    return out;
}

static bool same_kind(const lsi_gathering *p, int r)
{
    const ls_tensor *a = p->t[0], *b = p->t[r];
    bool same = b->values != NULL && a->ndim == b->ndim && a->dtype == b->dtype &&
                a->indices->dtype == b->indices->dtype;

    for (int i = 0; same && i < a->ndim; i++) {
        same = a->dims[i] == b->dims[i];
    }
    return same;
}

static ls_tensor *sum_sparse(ls_context *c, ls_reduce op, ls_tensor *t)
{
    lsi_gathering p;
    ls_tensor *values = NULL, *indices = NULL, *out = NULL;
    ls_error e = LS_ERROR_INIT;

    if (lsi_reduce_check(op, (ls_dtype)t->dtype, &e) != LS_OK) {
        return lsi_context_error(c, &e);
    }
    if (lsi_gathering_open(c, "all_reduce of slices", (uint64_t)op, t, &p)) {
        for (int r = 1; r < p.n && !lsi_failed(c); r++) {
            if (!same_kind(&p, r)) {
                lsi_text first = lsi_text_of(p.t[0]), other = lsi_text_of(p.t[r]);

                (void)ls_context_fail(
                    c, LS_INVALID_ARGUMENT,
                    "all_reduce: replica 0 passes rows of %s, replica %d "
                    "%s",
                    first.s, r, other.s);
            }
        }
        values = lsi_failed(c) ? NULL : join_parts(c, &p, VALUES);
        indices = values == NULL ? NULL : join_parts(c, &p, INDICES);
    }
    lsi_gathering_close(&p);
    if (op == LS_MEAN && values != NULL && !lsi_dtype_is_float((ls_dtype)t->dtype)) {
        values = (ls_div)(c, values, lsi_scalar(c, (ls_dtype)t->dtype, p.n));
    } else if (op == LS_MEAN && values != NULL) {
        lsi_reduction_divide((ls_dtype)values->dtype, p.n, values->data,
                             (size_t)values->count);
    }
    if (values != NULL && indices != NULL && !lsi_failed(c)) {
        const ls_shape shape = ls_tensor_shape(t);

        out = lsi_context_sparse(c, &shape, values, indices);
    }
    return out;
}

ls_tensor *(ls_all_reduce)(ls_context *c, ls_reduce op, ls_tensor *t)
{
    if (!lsi_require_replica(c, "all_reduce") || lsi_context_aborted(c) ||
        !check_op(c, op, "all_reduce")) {
        return NULL;
    }
    if (t == NULL) {
        return ls_context_fail(c, LS_INVALID_ARGUMENT, "all_reduce: the tensor is NULL");
    }
    if (lsi_sync_replicas(c) == 1) {
        return t;
    }
    if (t->values != NULL) {
        return sum_sparse(c, op, t);
    }
    // Integers: the sum, divided as ls_div() divides, which gives a floating dtype.
    if (op == LS_MEAN && !lsi_dtype_is_float((ls_dtype)t->dtype)) {
        ls_tensor *sum = (ls_all_reduce)(c, LS_SUM, t);

        return (ls_div)(c, sum, lsi_scalar(c, (ls_dtype)t->dtype, lsi_sync_replicas(c)));
    }
    return sum_dense(c, op, t);
}
