/*
 * Kernels: what computes an operation once its row has checked it.
 *
 * A kernel takes the whole call: inputs, attributes, outputs (allocated, not zeroed), the
 * team to run on. `ref/` holds one for every operation, in plain C: it defines the
 * result. `simd/` is compiled once per instruction set and holds fast ones; `dnnl/` is a
 * module over oneDNN. A fast kernel that does not do a case (dtype, shape, attributes)
 * returns LS_UNIMPLEMENTED before it has written anything, and the next one in the chain
 * runs.
 */
#ifndef LSI_KERNEL_H
#define LSI_KERNEL_H
#include "device/device.h"
#include "lockstep/ext/op.h"
#include "lockstep/variable.h" /* ls_scatter_op */
#include "tensor/tensor.h"

/*
 * A body that is compiled again for every constant (dtype, function) it is called with.
 */
#define LSI_INLINE static inline __attribute__((always_inline, unused))

enum { LSI_MAX_OUTPUTS = 4 };

typedef enum lsi_op_id {
    LSI_OP_NONE = 0,
#define X(name) LSI_OP_##name,
#include "kernel/ops.def"
#undef X
    LSI_OP_COUNT
} lsi_op_id;

struct ls_op_call {
    const ls_op *op;
    size_t nin;
    ls_tensor *const *in; /* dense; borrowed */
    const void *attrs;
    ls_device *device;
    lsi_team *team;
    ls_error *err;
    ls_tensor *out[LSI_MAX_OUTPUTS]; /* set before the kernel runs */
    struct {
        ls_shape shape;
        ls_dtype dtype;
        bool view;     /* shares the memory of input 0 from `offset` on; no kernel runs */
        size_t offset; /* bytes */
    } spec[LSI_MAX_OUTPUTS]; /* set by the shape rule */
};

typedef ls_status (*lsi_kernel)(ls_op_call *k);

/*
 * One entry per operation, NULL where there is none: simd/simd_table.c, a build per set.
 */
extern const lsi_kernel lsi_simd_baseline[LSI_OP_COUNT];
extern const lsi_kernel lsi_simd_avx2[LSI_OP_COUNT];
extern const lsi_kernel lsi_simd_avx512[LSI_OP_COUNT];

/* Runs the best kernel of the call's device: oneDNN where chosen, simd, then the row's
 * own. */
ls_status lsi_kernel_run(ls_op_call *k);

/* Shorthand for kernels. */
static inline const float *lsi_in_f32(const ls_op_call *k, size_t i)
{
    return (const float *)k->in[i]->data;
}
static inline float *lsi_out_f32(ls_op_call *k, int i)
{
    return (float *)k->out[i]->data;
}

/* Parts worth using for `work` units of about a nanosecond: 1 if it is too little. */
int lsi_parts(const ls_op_call *k, int64_t work);

/*
 * Attributes of the operations, as the tape keeps them: plain bytes, no pointers, and
 * nothing that changes from step to step, which is an input. So the attributes of a call
 * are the same bytes in every step, context and process (tests/conformance checks it).
 * They are zeroed before they are set, and those that functions return have no bytes
 * between their fields, which a copy need not keep: hence int where bool would do.
 */
typedef struct lsi_reduce_attrs {
    uint32_t mask; /* bit a: axis a is reduced (of the input's axes) */
    int keepdims;
} lsi_reduce_attrs;
typedef struct lsi_matmul_attrs {
    int ta, tb;
    ls_activation activation; /* dense only */
} lsi_matmul_attrs;
typedef struct lsi_conv_attrs {
    int stride[2], dilation[2];
    ls_padding padding;
    ls_activation activation;
    int pad[2];       /* before, rows and columns; filled in by the public function */
    int64_t image[4]; /* conv2d_input_grad: shape of x; filter_grad: shape of w */
} lsi_conv_attrs;
typedef struct lsi_pool_attrs {
    int size[2], stride[2], pad[2];
    ls_padding padding;
    int relu;
    int64_t image[4]; /* gradients: shape of x */
} lsi_pool_attrs;
typedef struct lsi_attention_attrs {
    float scale; /* never 0 here */
    int causal;
    int heads; /* self_attention: side by side in a row; attention: 0 */
} lsi_attention_attrs;
_Static_assert(sizeof(lsi_conv_attrs) == 8 * sizeof(int) + 4 * sizeof(int64_t) &&
                   sizeof(lsi_pool_attrs) == sizeof(lsi_conv_attrs) &&
                   sizeof(lsi_attention_attrs) == sizeof(float) + 2 * sizeof(int),
               "no bytes between the fields");
typedef struct lsi_scalars_attrs { /* clip lo hi; leaky_relu slope; epsilon; rate */
    double a, b;
} lsi_scalars_attrs;
typedef struct lsi_axis_attrs { /* concat, stack, split, gather, argmax, expand_dims;
                                   gelu: axis = approximate */
    int axis;
} lsi_axis_attrs;
typedef struct lsi_shape_attrs { /* reshape, broadcast_to, tile, scatter, transpose, slice
                                    (begin, shape), pad */
    ls_shape shape;
    int64_t begin[LS_MAX_DIMS]; /* slice: begin; pad: before; transpose: perm; tile:
                                   multiples */
    int64_t end[LS_MAX_DIMS];   /* pad: after; split: sizes */
    double value;               /* pad */
} lsi_shape_attrs;
typedef struct lsi_random_attrs { /* where the numbers begin is the last input */
    ls_shape shape;
    ls_dtype dtype;
    int words;   /* of 32 bits that an element takes: 1 or 2 */
    double a, b; /* lo hi; mean stddev; dropout: rate */
} lsi_random_attrs;

enum {
    LSI_WORDS_PER_BLOCK = 4,
    LSI_TRUNCATED_BLOCKS = 64 /* kept for each number of a truncated normal */
};

/* 32-bit words that a number of `dtype` takes: 1 or 2. */
int lsi_random_words_of(ls_dtype dtype);

/*
 * The last input of random operations: where their numbers begin, uint64 (3,) with seed,
 * stream and position.
 */
enum { LSI_RANDOM_STATE_WORDS = 3 };
typedef struct lsi_rows_attrs { /* change_rows, row_indices */
    ls_scatter_op op;
    int64_t rows; /* row_indices: of the value that is changed */
} lsi_rows_attrs;
typedef enum lsi_condition { LSI_ALL_ZERO, LSI_NONE_NEGATIVE } lsi_condition;
typedef struct lsi_require_attrs {
    lsi_condition condition; /* of every element */
} lsi_require_attrs;
typedef struct lsi_dtype_attrs { /* cast, one_hot */
    ls_dtype dtype;
    int64_t depth; /* one_hot */
} lsi_dtype_attrs;
#endif
