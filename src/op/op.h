/*
 * The context that operations run in, and what their rows are written with. The file of a
 * family holds its rows: public function (ls_relu), shape rule, kernel, gradient.
 */
#ifndef LSI_OP_H
#define LSI_OP_H
#define LS_NO_PLACES /* gradients keep the site of their operation */
#include "kernel/kernel.h"
#include "lockstep/op.h"

#define X(name) extern const ls_op lsi_op_##name;
#include "kernel/ops.def"
#undef X

/* The rows, by number; [0] is NULL. */
extern const ls_op *const lsi_op_table[LSI_OP_COUNT];

/* A row of the table: LSI_ROW(relu, 1, 1, 1, same_shape, lsi_ref_relu, relu_gradient) */
#define LSI_ROW(op, min, max, outs, shape_, kernel_, gradient_)                          \
    const ls_op lsi_op_##op = {sizeof(ls_op), #op,    min,     max,      outs,           \
                               LSI_OP_##op,   shape_, kernel_, gradient_}

struct ls_op_node {
    const ls_op *op;
    const char *file;
    int line;
    uint16_t tapes; /* which tapes recorded it */
    uint16_t nout;
    uint32_t nin;
    ls_tensor **in; /* nin inputs, then nout outputs, their records, the attributes */
    ls_tensor **out;
    uint64_t *from; /* which record and output gave each input; src/grad/tape.c */
    void *attrs;
    uint64_t
        needs; /* bit i: input i leads to something watched (inputs past 63: always) */
};

/* The functions of src/grad that a context calls; see src/grad/journal.c. */
typedef struct lsi_recorder {
    /* While a tape records: an operation ran, on dense inputs. */
    void (*record)(ls_context *c, const ls_op_call *k, size_t attrs_size);
    void (*set_site)(ls_context *c, const char *file, int line); /* of the last records */
    void (*reset)(ls_context *c); /* the step ended: clear all tapes */
    void (*destroy)(ls_context *c);
    void *self;
} lsi_recorder;

/* Streams from here on are used by the library; those below by replicas and programs. */
#define LSI_STREAM_CROSS (UINT64_C(1) << 63)     /* of merge functions */
#define LSI_STREAM_UPDATE (LSI_STREAM_CROSS + 1) /* of update functions */

struct ls_context {
    ls_device *device;
    ls_runtime *runtime;     /* retained */
    ls_random_state *random; /* in use: `own`, or one that outlives it */
    ls_random_state own;
    uint16_t recording; /* a bit for each tape that is recording now */
    const char *file;
    int line;
    ls_tensor *tensors;      /* of this step */
    ls_tensor *spare;        /* structs to be reused */
    ls_tensor *aliases;      /* aliases of tensors from outside */
    ls_tensor **alias_table; /* the same by their origin, if they are many */
    size_t naliases;
    size_t alias_slots; /* of the table that this step uses, a power of two; 0: none */
    size_t alias_room;  /* slots allocated */
    lsi_recorder recorder;
    void *replica;         /* src/replica: the replica it belongs to; NULL: none */
    struct lsi_kept *kept; /* what else lives until the step ends */
    size_t nkept, kept_room;
    _Atomic(const char *) last_file; /* its last site, for messages of waiting threads */
    atomic_int last_line;
    atomic_bool aborted; /* set by another thread: the step must fail */
    bool unplaced;       /* the error has no site yet: see ls_placed() */
    ls_error error;      /* code LS_OK: none yet */
};

/* The tapes that must record the call: they record now and watch one of its inputs. */
static inline uint16_t lsi_call_tapes(const ls_context *c, const ls_op_call *k)
{
    uint16_t tapes = 0;

    for (size_t i = 0; i < k->nin; i++) {
        tapes |= k->in[i]->tapes;
    }
    return k->op->gradient != NULL ? tapes & c->recording : 0;
}

/* Apply a row to one, two or three inputs; return its first output. */
ls_tensor *lsi_op1(ls_context *c, const ls_op *op, ls_tensor *x, const void *attrs,
                   size_t size);
ls_tensor *lsi_op2(ls_context *c, const ls_op *op, ls_tensor *a, ls_tensor *b,
                   const void *attrs, size_t size);
ls_tensor *lsi_op3(ls_context *c, const ls_op *op, ls_tensor *x, ls_tensor *y,
                   ls_tensor *z, const void *attrs, size_t size);

/*
 * Runs a row with one output, on dense inputs, into the memory of `out`, whose dtype and
 * shape must be what the row gives. It may be the memory of an input if the row says so
 * (change_rows). Tapes do not see it: for writes to variables. False: the step has
 * failed.
 */
bool lsi_op_into(ls_context *c, const ls_op *op, ls_tensor *const *inputs, size_t n,
                 const void *attrs, ls_tensor *out);

/* True if the step has failed; checked by functions that compute before they apply. */
static inline bool lsi_failed(const ls_context *c)
{
    return c == NULL || c->error.code != LS_OK;
}

/* A fresh struct on the context's list, with only refs set. NULL: out of memory. */
ls_tensor *lsi_context_struct(ls_context *c);

/*
 * `object` lives until the step ends: then release(object) is called, last kept first.
 * False: out of memory, the step has failed and the object was released.
 */
bool lsi_context_keep(ls_context *c, void *object, void (*release)(void *object));

/* Ends the step: ls_context_finish() without returning its failure. */
void lsi_context_end(ls_context *c);

/* Fails the step if another thread aborted it; returns whether it has failed. */
bool lsi_context_aborted(ls_context *c);

/*
 * `t` as a tensor of this step: itself if this context made it, else a tensor of its own
 * over the same elements, so that two contexts never write into one struct. A value made
 * of it is the original again (lsi_tensor_origin). NULL: the step has failed.
 */
ls_tensor *lsi_context_alias(ls_context *c, ls_tensor *t);

/* Fails the step at its site, unless it has failed already. Returns NULL. */
ls_tensor *lsi_context_error(ls_context *c, const ls_error *err);

/* A sparse tensor of the step; NULL: the step has failed. */
ls_tensor *lsi_context_sparse(ls_context *c, const ls_shape *shape, ls_tensor *values,
                              ls_tensor *indices);

/* Hands `t` (may be NULL: out of memory, fails the step) to the context's list. */
ls_tensor *lsi_context_own(ls_context *c, ls_tensor *t);

/* The dense tensor a sparse one stands for; `t` itself if it is dense. */
ls_tensor *lsi_dense(ls_context *c, ls_tensor *t);

/* a + b, either of which may be NULL: a gradient that several paths contribute to. */
ls_tensor *lsi_add_present(ls_context *c, ls_tensor *a, ls_tensor *b);

/* g summed down to the shape of `like`: the gradient of broadcasting. */
ls_tensor *lsi_sum_to(ls_context *c, ls_tensor *g, ls_tensor *like);

/*
 * sum += part, in place, for float32 and float64 tensors of one shape; `part` added to
 * the elements of `sum` from `begin` on. False: not possible for these two, and nothing
 * was done.
 */
bool lsi_add_into(ls_context *c, ls_tensor *sum, const ls_tensor *part);
bool lsi_add_slice_into(ls_context *c, ls_tensor *sum, const ls_tensor *part,
                        const int64_t *begin);

/*
 * Writes to `out` what `value` becomes when its rows `indices` are changed: the two may
 * be the same memory. False: the step has failed, for instance by an index out of range;
 * then nothing was written.
 */
bool lsi_change_rows(ls_context *c, ls_scatter_op op, ls_tensor *value,
                     ls_tensor *indices, ls_tensor *updates, ls_tensor *out);

/*
 * The indices as int64, which are checked as lsi_change_rows() does for a value of `rows`
 * rows. NULL: the step has failed.
 */
ls_tensor *lsi_row_indices(ls_context *c, ls_scatter_op op, ls_tensor *indices,
                           ls_tensor *updates, int64_t rows);

/*
 * `t`, whose elements must satisfy the condition: otherwise the step fails with
 * `otherwise`, which has no site. An operation decides, so that the library need not read
 * the elements to go on.
 */
ls_tensor *lsi_require(ls_context *c, ls_tensor *t, lsi_condition condition,
                       const ls_error *otherwise);

/* Scalar and filled constants of a dtype. */
ls_tensor *lsi_scalar(ls_context *c, ls_dtype dtype, double value);
ls_tensor *lsi_fill(ls_context *c, ls_dtype dtype, const ls_shape *shape, double value);
ls_tensor *lsi_zeros_like(ls_context *c, const ls_tensor *t);
ls_tensor *lsi_ones_like(ls_context *c, const ls_tensor *t);

/*
 * Attributes with `axis` counted from the front, as zeroed bytes; `x` may be NULL. An
 * axis out of range is left as it is: the shape rule fails.
 */
lsi_axis_attrs lsi_axis_attrs_of(const ls_tensor *x, int axis);

/* Shape rules shared by families. */
ls_status lsi_shape_same(ls_op_call *k);        /* output 0 like input 0 */
ls_status lsi_shape_same_float(ls_op_call *k);  /* the same, floating dtypes only */
ls_status lsi_shape_same_number(ls_op_call *k); /* the same, no bool, no string */

/* Indices are int32 or int64; updates have their shape, then that of a row of `shape`. */
ls_status lsi_check_index_dtype(ls_op_call *k, const ls_tensor *indices);
bool lsi_updates_fit(const ls_tensor *indices, const ls_tensor *updates,
                     const ls_shape *shape);

/* NumPy's rule; false: the shapes do not broadcast. */
bool lsi_broadcast(const ls_shape *a, const ls_shape *b, ls_shape *out);

/* The shape of a tensor, for rules. */
static inline ls_shape lsi_shape(const ls_tensor *t)
{
    return ls_tensor_shape(t);
}

/* Two or three shapes in one message: "(2, 3)". Buffers of this size suffice. */
typedef struct lsi_text {
    char s[128];
} lsi_text;
lsi_text lsi_text_of(const ls_tensor *t); /* "float32 (2, 3)" */

/*
 * Activations of dense and convolutions (matmul.c). Those whose gradient follows from
 * the result alone are fused into the row; the others are an operation after it.
 */
bool lsi_activation_fused(ls_activation activation);
ls_tensor *lsi_activate(ls_context *c, ls_activation activation, ls_tensor *x);
ls_tensor *lsi_activation_grad(ls_context *c, ls_activation activation, ls_tensor *g,
                               ls_tensor *y);

/* How many windows fit, and the padding before the first (conv.c). */
typedef struct lsi_window {
    int64_t count; /* negative: none fits */
    int pad;
} lsi_window;

/* TensorFlow's rule for `size` elements, a window over `extent` >= 1, stride >= 1. */
lsi_window lsi_windows(int64_t size, int64_t extent, int stride, ls_padding padding);
#endif
