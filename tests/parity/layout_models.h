/*
 * The models that the tests of several workers train: small ones, with everything in them
 * that goes over replicas. A replica's batch depends on the step and its id in the sync
 * group only.
 */
#ifndef LAYOUT_MODELS_H
#define LAYOUT_MODELS_H
#include "ls_workers.h"

enum { LAYOUT_MOST_VARIABLES = 24, LAYOUT_MOST_TRAINED = 16 };

typedef struct layout_model layout_model;

/* One kind of model. Both functions are called for models of that kind. */
typedef struct layout_kind {
    const char *name;
    ls_dtype dtype; /* of the trained variables */
    void (*create)(layout_model *m);
    ls_tensor *(*loss)(ls_context *c, const layout_model *m, int64_t step); /* per row */
} layout_kind;

extern const layout_kind layout_kinds[];
extern const size_t layout_kind_count;

/* A model of one worker. */
struct layout_model {
    const layout_kind *kind;
    uint64_t random; /* of the initial values */
    size_t n;        /* variables: first the trained ones, then the others */
    size_t trained;
    ls_variable *v[LAYOUT_MOST_VARIABLES];
};

/*
 * Creates the variables in the current scope. Their initial values depend on `seed`; those
 * of the chief count.
 */
void layout_model_create(layout_model *m, const layout_kind *kind, uint64_t seed);
void layout_model_release(layout_model *m);

/*
 * The loss of the replica of `c` in step number `step`: its share of the mean over the
 * rows of all replicas.
 */
ls_tensor *layout_model_loss(ls_context *c, const layout_model *m, int64_t step);
#endif
