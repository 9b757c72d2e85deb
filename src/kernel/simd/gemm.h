/*
 * The matrix product the other kernels are made of: C = A B (+ C), bias and activation
 * applied while a tile is still in registers.
 *
 * Blocks of A stay in the second-level cache, panels of B (GEMM_NR columns, row after
 * row) in the first. A is copied into strips of GEMM_MR rows where there are columns
 * enough to pay for it, else used where it lies; a panel of B is packed by the first tile
 * that needs it. The sum over k runs in blocks that depend on k alone, so that the bits
 * of a result depend neither on the number of threads nor on how the work was cut.
 */
#ifndef LSI_SIMD_GEMM_H
#define LSI_SIMD_GEMM_H
#include "kernel/simd/simd.h"

/* Rows and columns of the tile kept in registers: two vectors wide. */
#if VW == 16
#define GEMM_NR 32
#define GEMM_MR 12
#elif VW == 8
#define GEMM_NR 16
#define GEMM_MR 6
#elif defined(__aarch64__)
#define GEMM_NR 8
#define GEMM_MR 8
#else
#define GEMM_NR 8
#define GEMM_MR 4
#endif

/* Rows so many elements apart, or a multiple of it, share a set of the cache. */
enum { GEMM_ALIAS = 1024 };

/* Elements that follow each other at a constant distance, from `at` on. */
typedef struct lsi_strided_run {
    int64_t at, n;
} lsi_strided_run;

/*
 * A left matrix that is nowhere stored as one: element (i, p) lies at rows[i] plus the
 * place of p, and p runs through the pieces, `step` apart within each. The patches of an
 * image are such a matrix, and so is their transpose.
 */
typedef struct lsi_walk {
    const int64_t *rows;
    const lsi_strided_run *pieces;
    int64_t step;
} lsi_walk;

/*
 * A matrix as it is stored, element (r, c) at data[r * ld + c]; `transposed`: the product
 * takes it the other way round. With `walk`, places are counted from `data`.
 */
typedef struct lsi_matrix {
    const float *data;
    int64_t ld;
    bool transposed;
    const lsi_walk *walk; /* a only; not transposed */
} lsi_matrix;

typedef struct lsi_gemm {
    int64_t m, n, k; /* all at least 1 */
    lsi_matrix a, b;
    const float *panels; /* b in panels, by gemm_pack(); NULL: packed on the way */
    int64_t depth;       /* rows the panels have, if more than k; 0: k */
    float *c;
    int64_t ldc;
    const float *bias; /* n of them, or NULL */
    ls_activation activation;
    bool accumulate; /* adds to what is in c */
} lsi_gemm;

/* Where a tile of the result goes and what happens to it on the way. */
typedef struct lsi_finish {
    float *c;
    int64_t ldc;
    const float *bias; /* of the tile's first column; NULL: none */
    int64_t cols;
    bool add, relu;
} lsi_finish;

/*
 * What a tile is computed from: row i of the left matrix is a + rows[i], its elements as
 * in lsi_walk; rows of the right one are `bs` apart.
 */
typedef struct lsi_operands {
    const float *a;
    const int64_t *rows;
    const lsi_strided_run *pieces;
    int64_t count, step;
    const float *b;
    int64_t bs;
    float *panel; /* PACK: where the rows of b go */
} lsi_operands;

/*
 * STEP: anything. RUN: steps of 1. STRIP: GEMM_MR rows of the left matrix interleaved,
 * element (i, p) at a[p * GEMM_MR + i], one piece. For these two, b is a panel. PACK: as
 * STEP, and what was read of b is written to the panel on the way.
 */
typedef enum lsi_tile_kind {
    LSI_TILE_STEP,
    LSI_TILE_RUN,
    LSI_TILE_STRIP,
    LSI_TILE_PACK,
    LSI_TILE_KINDS
} lsi_tile_kind;

/* One tile. Columns beyond f->cols are read but not written. */
typedef void (*lsi_tile)(const lsi_operands *o, const lsi_finish *f);

/* By kind, columns (one vector, two) and the number of rows, 1 to GEMM_MR. */
extern const lsi_tile LSI_SIMD(gemm_tiles)[LSI_TILE_KINDS][2][GEMM_MR + 1];

/* Floats of scratch that gemm_block() needs for up to `rows` x `cols` of the result. */
int64_t LSI_SIMD(gemm_scratch)(const lsi_gemm *g, int64_t rows, int64_t cols);

/* Computes rows m0 .. m1-1 and columns n0 .. n1-1; n0 is a multiple of GEMM_NR. */
void LSI_SIMD(gemm_block)(const lsi_gemm *g, int64_t m0, int64_t m1, int64_t n0,
                          int64_t n1, float *scratch);

/* Whether a block of that size copies its part of a before it uses it. */
bool LSI_SIMD(gemm_copies)(const lsi_gemm *g, int64_t rows, int64_t cols);

/* Floats that b takes in panels, and the packing itself: columns n0 .. n1-1. */
int64_t LSI_SIMD(gemm_packed)(int64_t k, int64_t n);
void LSI_SIMD(gemm_pack)(const lsi_matrix *b, int64_t k, int64_t n, int64_t n0,
                         int64_t n1, float *panels);

/*
 * Runs `batch` products on the call's team. at(ctx, i, g) sets the pointers of product i
 * in a copy of `g`; NULL with a batch of 1.
 */
ls_status LSI_SIMD(gemm_run)(ls_op_call *k, const lsi_gemm *g, int64_t batch,
                             void (*at)(const void *ctx, int64_t i, lsi_gemm *g),
                             const void *ctx);

/* Applies an activation to `rows` x `cols` elements whose rows are `ld` apart. */
void LSI_SIMD(activate)(ls_activation f, float *c, int64_t ld, int64_t rows,
                        int64_t cols);
#endif
