/*
 * The one dispatch point: every operation, built in or the user's, passes through
 * ls_op_apply(), which checks, makes the outputs, runs the kernel and records.
 */
#include "op/op.h"

#include <stdio.h>

static LSI_COLD void fail_with(ls_context *c, const ls_op *op, ls_error *e, ls_status st)
{
    e->code = st;
    if (e->message[0] == '\0') {
        (void)snprintf(e->message, sizeof e->message,
                       "%s: the operation failed with %s and no message: %s", op->name,
                       ls_status_name(st), ls_status_meaning(st));
    }
    (void)lsi_context_error(c, e);
}

static LSI_COLD ls_status fail_inputs(ls_op_call *k)
{
    if (k->op->max_inputs >= 0 && k->op->min_inputs == k->op->max_inputs) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "takes %d input%s, got %zu",
                          k->op->min_inputs, k->op->min_inputs == 1 ? "" : "s", k->nin);
    }
    if (k->op->max_inputs >= 0) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "takes %d to %d inputs, got %zu",
                          k->op->min_inputs, k->op->max_inputs, k->nin);
    }
    return ls_op_fail(k, LS_INVALID_ARGUMENT, "takes at least %d input%s, got %zu",
                      k->op->min_inputs, k->op->min_inputs == 1 ? "" : "s", k->nin);
}

/*
 * The number of inputs is right and none is NULL; *sparse: some are sparse. Which device
 * an input is on is not checked: all devices share the memory of the process, and a
 * replica reads tensors that were made on other devices. Results are on the context's
 * device.
 */
static inline ls_status check_inputs(ls_op_call *k, bool *sparse)
{
    bool any = false;

    if (k->nin < (size_t)k->op->min_inputs ||
        (k->op->max_inputs >= 0 && k->nin > (size_t)k->op->max_inputs)) {
        return fail_inputs(k);
    }
    if (k->nin > 0 && k->in == NULL) {
        return ls_op_fail(k, LS_INVALID_ARGUMENT, "the list of inputs is NULL");
    }
    for (size_t i = 0; i < k->nin; i++) {
        if (k->in[i] == NULL) {
            return ls_op_fail(k, LS_INVALID_ARGUMENT, "input %zu is NULL", i);
        }
        any |= k->in[i]->values != NULL;
    }
    *sparse = any;
    return LS_OK;
}

static ls_status make_outputs(ls_context *c, ls_op_call *k)
{
    for (int i = 0; i < k->op->outputs; i++) {
        ls_tensor *t = lsi_context_struct(c);
        int64_t count;
        size_t bytes;

        k->out[i] = t;
        if (t == NULL) {
            return lsi_fail_memory(k->err, k->op->name, sizeof *t);
        }
        if (k->spec[i].view) {
            lsi_tensor_init_view(t, k->in[0], k->spec[i].dtype, &k->spec[i].shape,
                                 k->spec[i].offset);
        } else if (!lsi_tensor_init(t, k->device, k->spec[i].dtype, &k->spec[i].shape)) {
            t->count = 0;
            t->ndim = 0;
            if (ls_dtype_size(k->spec[i].dtype) == 0) {
                return ls_op_fail(k, LS_INVALID_ARGUMENT,
                                  "the shape rule has not set output %d", i);
            }
            if (!lsi_shape_bytes(&k->spec[i].shape, k->spec[i].dtype, &count, &bytes)) {
                char text[128];

                return ls_op_fail(
                    k, LS_INVALID_ARGUMENT,
                    "the result would have the shape %s, which is too large",
                    ls_shape_text(&k->spec[i].shape, text, sizeof text));
            }
            return lsi_fail_memory(k->err, k->op->name, bytes);
        }
    }
    return LS_OK;
}

/* True if a kernel has anything to write. */
static inline bool has_work(const ls_op_call *k)
{
    for (int i = 0; i < k->op->outputs; i++) {
        if (!k->spec[i].view && k->out[i]->count > 0) {
            return true;
        }
    }
    return false;
}

static ls_status run_call(ls_context *c, ls_op_call *k)
{
    ls_status st;

    for (int i = 0; i < k->op->outputs; i++) {
        k->spec[i].view = false;
        k->spec[i].dtype = (ls_dtype)0; // detects a rule that forgets an output
        k->spec[i].shape.ndim = 0;
    }
    st = k->op->shape(k);
    if (st == LS_OK) {
        st = make_outputs(c, k);
    }
    if (st == LS_OK && has_work(k)) {
        st = lsi_kernel_run(k);
    }
    return st;
}

static ls_status run_call_dense(ls_context *c, ls_op_call *k, size_t attrs_size);

/* Rows of the library are complete; those of a program are checked. */
static inline bool row_is_usable(const ls_op *op)
{
    return op != NULL &&
           (op->builtin != 0 ||
            (op->struct_size >= sizeof *op && op->name != NULL && op->shape != NULL &&
             op->kernel != NULL && op->outputs >= 1 && op->outputs <= LSI_MAX_OUTPUTS));
}

static LSI_COLD void fail_row(ls_context *c)
{
    (void)ls_context_fail(c, LS_INVALID_ARGUMENT,
                          "the operation's row is not filled in: it needs its size, a "
                          "name, a shape rule, a kernel and 1 to %d outputs",
                          LSI_MAX_OUTPUTS);
}

LSI_HOT void ls_op_apply(ls_context *c, const ls_op *op, ls_tensor *const *inputs,
                         size_t n, const void *attrs, size_t attrs_size, ls_tensor **outs)
{
    ls_error e;
    ls_op_call k;
    bool sparse = false;
    ls_status st;

    if (!row_is_usable(op)) {
        fail_row(c);
        return;
    }
    for (int i = 0; i < op->outputs; i++) {
        outs[i] = NULL;
    }
    if (lsi_failed(c) || (atomic_load_explicit(&c->aborted, memory_order_relaxed) &&
                          lsi_context_aborted(c))) {
        return;
    }
    e.struct_size = sizeof e;
    e.kind = LS_KIND_OP;
    e.rank = -1;
    e.line = 0;
    e.file[0] = '\0';
    e.message[0] = '\0';
    k.op = op;
    k.nin = n;
    k.in = inputs;
    k.attrs = attrs;
    k.device = c->device;
    k.team = c->device->team;
    k.err = &e;
    st = check_inputs(&k, &sparse);
    if (st == LS_OK && sparse) {
        st = run_call_dense(c, &k, attrs_size);
    } else if (st == LS_OK) {
        st = run_call(c, &k);
        if (st == LS_OK && c->recording != 0) {
            c->recorder.record(c, &k, attrs_size);
        }
    }
    if (st != LS_OK) {
        fail_with(c, op, &e, st);
        return;
    }
    for (int i = 0; i < op->outputs; i++) {
        outs[i] = k.out[i];
    }
}

/* Some inputs are sparse: the operation sees the dense tensors they stand for. */
static LSI_COLD ls_status run_call_dense(ls_context *c, ls_op_call *k, size_t attrs_size)
{
    ls_tensor **in = lsi_alloc(k->nin, sizeof(ls_tensor *));
    ls_status st = LS_OK;

    if (in == NULL) {
        return lsi_fail_memory(k->err, k->op->name, k->nin * sizeof(ls_tensor *));
    }
    for (size_t i = 0; i < k->nin && st == LS_OK; i++) {
        in[i] = lsi_dense(c, k->in[i]);
        if (in[i] == NULL) {
            st = ls_context_status(c, k->err);
        }
    }
    if (st == LS_OK) {
        k->in = in;
        st = run_call(c, k);
    }
    if (st == LS_OK && c->recording != 0) {
        c->recorder.record(c, k, attrs_size);
    }
    lsi_free(in);
    return st;
}

/* The row gives what `out` is. */
static ls_status check_output(ls_op_call *k, const ls_tensor *out)
{
    const ls_shape shape = lsi_shape(out);

    return k->spec[0].dtype == (ls_dtype)out->dtype &&
                   ls_shape_equal(&k->spec[0].shape, &shape)
               ? LS_OK
               : ls_op_fail(k, LS_INTERNAL, "does not give %s", lsi_text_of(out).s);
}

bool lsi_op_into(ls_context *c, const ls_op *op, ls_tensor *const *inputs, size_t n,
                 const void *attrs, ls_tensor *out)
{
    ls_error e = LS_ERROR_INIT;
    ls_op_call k = {.op = op,
                    .nin = n,
                    .in = inputs,
                    .attrs = attrs,
                    .device = c->device,
                    .team = c->device->team,
                    .err = &e,
                    .out = {out}};
    bool sparse = false;
    ls_status st;

    if (lsi_context_aborted(c)) {
        return false;
    }
    st = check_inputs(&k, &sparse);
    LSI_ASSERT(!sparse && op->outputs == 1);
    if (st == LS_OK) {
        st = op->shape(&k);
    }
    if (st == LS_OK) {
        st = check_output(&k, out);
    }
    if (st == LS_OK && has_work(&k)) {
        st = lsi_kernel_run(&k);
    }
    if (st != LS_OK) {
        fail_with(c, op, &e, st);
    }
    return st == LS_OK;
}

ls_tensor *ls_op_apply1(ls_context *c, const ls_op *op, ls_tensor *const *inputs,
                        size_t n, const void *attrs, size_t attrs_size)
{
    ls_tensor *outs[LSI_MAX_OUTPUTS] = {NULL};

    ls_op_apply(c, op, inputs, n, attrs, attrs_size, outs);
    return outs[0];
}

ls_tensor *lsi_op1(ls_context *c, const ls_op *op, ls_tensor *x, const void *attrs,
                   size_t size)
{
    ls_tensor *outs[LSI_MAX_OUTPUTS] = {NULL};

    ls_op_apply(c, op, &x, 1, attrs, size, outs);
    return outs[0];
}

ls_tensor *lsi_op2(ls_context *c, const ls_op *op, ls_tensor *a, ls_tensor *b,
                   const void *attrs, size_t size)
{
    ls_tensor *in[2] = {a, b}, *outs[LSI_MAX_OUTPUTS] = {NULL};

    ls_op_apply(c, op, in, 2, attrs, size, outs);
    return outs[0];
}

ls_tensor *lsi_op3(ls_context *c, const ls_op *op, ls_tensor *x, ls_tensor *y,
                   ls_tensor *z, const void *attrs, size_t size)
{
    ls_tensor *in[3] = {x, y, z}, *outs[LSI_MAX_OUTPUTS] = {NULL};

    ls_op_apply(c, op, in, 3, attrs, size, outs);
    return outs[0];
}

ls_tensor *ls_op_node_input(const ls_op_node *n, size_t i)
{
    return i < n->nin ? n->in[i] : NULL;
}

ls_tensor *ls_op_node_output(const ls_op_node *n, int i)
{
    return i >= 0 && i < (int)n->nout ? n->out[i] : NULL;
}

const void *ls_op_node_attrs(const ls_op_node *n)
{
    return n->attrs;
}

bool ls_op_needs(const ls_op_node *n, size_t i)
{
    return i < n->nin && (i >= 64 || (n->needs >> i & 1) != 0);
}
