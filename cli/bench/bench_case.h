/* One operation that `lockstep bench op` measures. */
#ifndef CLI_BENCH_CASE_H
#define CLI_BENCH_CASE_H

#include "cli/bench/bench.h"

typedef struct bench_case {
    const char *name;
    ls_context *c;
    double flops;     /* of a call; 0: it is not counted in those */
    int calls;        /* operations in one run(), for those too short to time alone */
    double goal_ns;   /* the most one call should take; 0: none */
    char dnnl[64];    /* what to ask dnnl_gemm, without the seconds; "": nothing */
    ls_tensor *in[4]; /* the operands, retained */
    int64_t m, n, k;  /* of a product */
    ls_status (*run)(void *self, ls_error *err);
    /* Compares with a plain computation; false: they differ. */
    bool (*verify)(struct bench_case *self, ls_error *err);
} bench_case;

/* Case `i` of its family on the device of `c`: true if there is one, and then either
 * it is filled in or *st says why not. */
bool bench_matmul_case(size_t i, ls_context *c, bench_case *out, ls_status *st,
                       ls_error *err);
bool bench_image_case(size_t i, ls_context *c, bench_case *out, ls_status *st,
                      ls_error *err);
bool bench_call_case(size_t i, ls_context *c, bench_case *out, ls_status *st,
                     ls_error *err);
void bench_case_release(bench_case *self);

/* A tensor of random numbers in (-1, 1), always the same; NULL after a failure. */
ls_tensor *bench_random(ls_context *c, ls_shape shape, ls_status *st, ls_error *err);
#endif
