/* Matrix products. */
#include "kernel/ref/element_access.h"
#include "kernel/ref/ref.h"

/* One matrix of a batch: where element (row, col) lies. */
struct matrix {
    int64_t row, col; /* steps */
};

static struct matrix matrix_of(const ls_tensor *t, bool transposed)
{
    const int64_t width = t->dims[t->ndim - 1];

    return transposed ? (struct matrix){1, width} : (struct matrix){width, 1};
}

/* Which matrix of `t` takes part in matrix `batch` of the result: a size 1 repeats. */
static int64_t batch_offset(const ls_tensor *t, const ls_tensor *y, int64_t batch)
{
    int64_t offset = 0;
    int64_t step = t->dims[t->ndim - 1] * t->dims[t->ndim - 2];

    for (int a = y->ndim - 3; a >= 0; a--) {
        const int64_t at = batch % y->dims[a];
        const int b = a - y->ndim + t->ndim;

        batch /= y->dims[a];
        if (b >= 0) {
            offset += t->dims[b] == 1 ? 0 : at * step;
            step *= t->dims[b];
        }
    }
    return offset;
}

struct product {
    struct matrix a, b;
    int64_t m, n, k;
};

/* The scalar kinds: floats sum in double, integers wrap around as TensorFlow's do. */
#define DOT_INT(name, type, unsigned_type)                                               \
    static void name(const struct product *p, const void *a, const void *b, void *y,     \
                     int64_t a0, int64_t b0, int64_t y0)                                 \
    {                                                                                    \
        const type *pa = (const type *)a + a0;                                           \
        const type *pb = (const type *)b + b0;                                           \
        type *py = (type *)y + y0;                                                       \
                                                                                         \
        for (int64_t e = 0; e < p->m * p->n; e++) {                                      \
            const type *row = pa + e / p->n * p->a.row;                                  \
            const type *col = pb + e % p->n * p->b.col;                                  \
            unsigned_type sum = 0;                                                       \
                                                                                         \
            for (int64_t i = 0; i < p->k; i++) {                                         \
                sum +=                                                                   \
                    (unsigned_type)row[i * p->a.col] * (unsigned_type)col[i * p->b.row]; \
            }                                                                            \
            py[e] = (type)sum;                                                           \
        }                                                                                \
    }

DOT_INT(multiply_i32, int32_t, uint32_t)
DOT_INT(multiply_i64, int64_t, uint64_t)

LSI_INLINE void multiply_float(const struct product *p, const void *a, const void *b,
                               void *y, int64_t a0, int64_t b0, int64_t y0, ls_dtype d)
{
    for (int64_t e = 0; e < p->m * p->n; e++) {
        const int64_t row = a0 + e / p->n * p->a.row;
        const int64_t col = b0 + e % p->n * p->b.col;
        double sum = 0;

        for (int64_t i = 0; i < p->k; i++) {
            sum += lsi_get_float(a, d, row + i * p->a.col) *
                   lsi_get_float(b, d, col + i * p->b.row);
        }
        lsi_put_float(y, d, y0 + e, sum);
    }
}

#define DOT_FLOAT(name, dtype)                                                           \
    static void name(const struct product *p, const void *a, const void *b, void *y,     \
                     int64_t a0, int64_t b0, int64_t y0)                                 \
    {                                                                                    \
        multiply_float(p, a, b, y, a0, b0, y0, dtype);                                   \
    }

DOT_FLOAT(multiply_f32, LS_F32)
DOT_FLOAT(multiply_f64, LS_F64)
DOT_FLOAT(multiply_f16, LS_F16)
DOT_FLOAT(multiply_bf16, LS_BF16)

typedef void (*multiply_fn)(const struct product *p, const void *a, const void *b,
                            void *y, int64_t a0, int64_t b0, int64_t y0);

static multiply_fn multiply_for(ls_dtype dtype)
{
    switch (dtype) {
    case LS_F64:
        return multiply_f64;
    case LS_F16:
        return multiply_f16;
    case LS_BF16:
        return multiply_bf16;
    case LS_I32:
        return multiply_i32;
    case LS_I64:
        return multiply_i64;
    default:
        return multiply_f32;
    }
}

ls_status lsi_ref_matmul(ls_op_call *k)
{
    const lsi_matmul_attrs *at = k->attrs;
    const ls_tensor *a = k->in[0], *b = k->in[1];
    ls_tensor *y = k->out[0];
    const multiply_fn multiply = multiply_for((ls_dtype)a->dtype);
    const struct product p = {
        matrix_of(a, at->ta),
        matrix_of(b, at->tb),
        y->dims[y->ndim - 2],
        y->dims[y->ndim - 1],
        a->dims[a->ndim - (at->ta ? 2 : 1)],
    };

    for (int64_t at_y = 0, batch = 0; at_y < y->count; at_y += p.m * p.n, batch++) {
        multiply(&p, a->data, b->data, y->data, batch_offset(a, y, batch),
                 batch_offset(b, y, batch), at_y);
    }
    return LS_OK;
}

LSI_INLINE ls_status dense(ls_op_call *k, ls_dtype d)
{
    const lsi_matmul_attrs *at = k->attrs;
    const void *x = k->in[0]->data, *w = k->in[1]->data;
    const void *bias = k->nin > 2 ? k->in[2]->data : NULL;
    const int64_t inner = k->in[1]->dims[0], n = k->in[1]->dims[1];

    for (int64_t e = 0; e < k->out[0]->count; e++) {
        const int64_t row = e / n * inner, col = e % n;
        double sum = 0;

        for (int64_t i = 0; i < inner; i++) {
            sum += lsi_get_float(x, d, row + i) * lsi_get_float(w, d, i * n + col);
        }
        if (bias != NULL) {
            sum += lsi_get_float(bias, d, col);
        }
        lsi_put_float(k->out[0]->data, d, e, lsi_ref_activation(at->activation, sum));
    }
    return LS_OK;
}

ls_status lsi_ref_dense(ls_op_call *k)
{
    return LSI_EACH_FLOAT(dense, k);
}
