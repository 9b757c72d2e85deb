/*
 * The networks that `lockstep bench step` trains, written as a program would write them:
 * public headers only. Weights and data come from a fixed seed, so that two runs do the
 * same arithmetic.
 */
#ifndef BENCH_MODELS_H
#define BENCH_MODELS_H

#include <lockstep/lockstep.h>

typedef struct bench_spec {
    const char *name;
    const char *what;
    int batch;
    int items;    /* what is counted as a sample, in each example of the batch */
    double flops; /* of a step: forward and backward, multiply and add counted as two */
} bench_spec;

typedef struct bench_model bench_model;

/* All models; *n receives their number. */
const bench_spec *bench_specs(size_t *n);

/* Makes model `name` and one batch of its data on `device`. */
ls_status bench_model_create(ls_device *device, const char *name, bench_model **out,
                             ls_error *err);

/* The same on every replica of a strategy, each with its part of the batch. */
ls_status bench_model_create_on(ls_strategy *strategy, const char *name,
                                bench_model **out, ls_error *err);
void bench_model_release(bench_model *m); /* NULL is allowed */

/* One training step on the batch; `loss` (may be NULL) receives the loss before it. */
ls_status bench_model_step(bench_model *m, double *loss, ls_error *err);

/*
 * One step of `train` on a batch of a distributed dataset: a dict of `image`, bytes of
 * [n, 28, 28], and `label`, int64, for each replica. The model is one of a strategy.
 */
ls_status bench_model_step_on(bench_model *m, ls_value *batch, ls_error *err);

/* The trained variables, borrowed. */
ls_variable *const *bench_model_variables(const bench_model *m, size_t *n);
#endif
