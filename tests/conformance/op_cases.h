/*
 * The catalogue: test cases for each operation, as data. op_table_test.c runs them for
 * every row of the operation table and fails for a row that lacks a kind of case.
 */
#ifndef LST_OP_CASES_H
#define LST_OP_CASES_H
#include "op/op.h"
#include "signature.h"

typedef enum op_kind {
    OP_NO_MORE,  /* ends a list of cases */
    OP_SHAPE,    /* `out`: dtypes and shapes of the outputs */
    OP_COMPARE,  /* reference and fast kernels agree; sizes may be drawn at random */
    OP_GRADIENT, /* the tape agrees with central differences */
    OP_BAD       /* fails with `code`; the message begins with the name, has the word */
} op_kind;

typedef struct op_case {
    op_kind kind;
    const char *in;  /* signature.h */
    const char *out; /* OP_SHAPE: as `in`; OP_BAD: the word */
    ls_status code;  /* OP_BAD; LS_OK stands for LS_INVALID_ARGUMENT */
    int64_t p[10];   /* parameters; what they mean is up to `apply` */
    double f[2];
} op_case;

/* clang-format off */
#define SHAPE(i, o) .kind = OP_SHAPE, .in = i, .out = o
#define COMPARE(i) .kind = OP_COMPARE, .in = i
#define GRADIENT(i) .kind = OP_GRADIENT, .in = i
#define BAD(i, word) .kind = OP_BAD, .in = i, .out = word
#define CASES(...) .cases = (const op_case[]){__VA_ARGS__, {.kind = OP_NO_MORE}}
/* clang-format on */

/*
 * How near a fast kernel comes to the reference, in units of eps of the output's dtype.
 *
 * EXACT    the same bits: elements are moved, compared, or computed by one rounding.
 * ELEMENT  16 eps, relative and absolute: a polynomial for exp, log or erf is good to
 *          about 4 eps, and a formula (gelu, softplus) composes up to four of them.
 * SUM      64 eps of the output's largest magnitude: sums of n terms in another order
 *          differ by about sqrt(n) eps of the terms' sizes, and outputs of random terms
 *          grow with sqrt(n) as well; 64 leaves room for cancellation.
 * CANCEL   64 eps of 1 or of the output's largest magnitude: results that are small
 *          differences of terms of about 1, as gradients of norms are for few rows.
 */
typedef enum op_tolerance { EXACT, ELEMENT, SUM, CANCEL } op_tolerance;

typedef struct op_entry op_entry;

/*
 * Runs the operation by its public function or by its row; sets the outputs it returns.
 */
typedef void (*op_apply)(ls_context *c, const op_entry *e, const op_case *k,
                         ls_tensor *const *in, size_t n, ls_tensor **out);

struct op_entry {
    lsi_op_id op;
    op_apply apply;
    op_tolerance tolerance;
    bool no_gradient;   /* the row's gradient is NULL, and that is right */
    int outputs;        /* how many `apply` sets; 0: one */
    int differentiated; /* of these, the first few that have gradients; 0: one */
    const op_case *cases;
};
#define NO_GRADIENT .no_gradient = true

/* Applies the row `e->op` without attributes. */
void op_by_row(ls_context *c, const op_entry *e, const op_case *k, ls_tensor *const *in,
               size_t n, ls_tensor **out);

/* Defines name_(), which applies the public function of an operation on two operands. */
#define OP_APPLY_TWO(name)                                                               \
    static void name##_(ls_context *c, const op_entry *e, const op_case *k,              \
                        ls_tensor *const *in, size_t n, ls_tensor **out)                 \
    {                                                                                    \
        (void)e;                                                                         \
        (void)k;                                                                         \
        out[0] = ls_##name(c, in[0], n > 1 ? in[1] : NULL);                              \
    }

/* The distance from 1 to the next larger number of a floating dtype; 0 for the others. */
double op_epsilon(ls_dtype dtype);

/* The families' lists. */
extern const op_entry op_entries_unary[], op_entries_binary[], op_entries_reduce[],
    op_entries_product[], op_entries_pool[], op_entries_layout[], op_entries_index[],
    op_entries_norm[];
extern const size_t op_count_unary, op_count_binary, op_count_reduce, op_count_product,
    op_count_pool, op_count_layout, op_count_index, op_count_norm;

/* The entry of `op`; NULL: the catalogue does not know it. */
const op_entry *op_find(lsi_op_id op);
#endif
