/* One optimizer: a table of what it does to one variable, and the slots it keeps. */
#ifndef LSI_OPTIM_H
#define LSI_OPTIM_H
#include "kernel/update.h"
#include "variable/variable.h"

#include "lockstep/optimizer.h"

enum { LSI_MAX_SLOTS = 3 };

typedef struct lsi_slots {
    ls_variable *of; /* retained */
    ls_variable *slot[LSI_MAX_SLOTS];
} lsi_slots;

/* n elements of one variable; slots are written in place. */
typedef struct lsi_step {
    const void *w;
    void *w_out;
    const void *g;
    void *slot[LSI_MAX_SLOTS];
    size_t n;
    ls_dtype dtype;
    const lsi_update_table *update; /* float32 */
    const ls_optimizer *optimizer;
    float alpha; /* what prepare() computed for this step */
} lsi_step;

typedef struct lsi_optim_ops {
    const char *name;
    const char *slots[LSI_MAX_SLOTS]; /* names; NULL: no more */

    /* Once a step: numbers that all variables share. `t` is 1 in the first step. */
    float (*prepare)(const ls_optimizer *o, int64_t t);

    /* Elementwise, on any part of the arrays. */
    void (*update)(const lsi_step *s);
} lsi_optim_ops;

struct ls_optimizer {
    atomic_int refs;
    const lsi_optim_ops *ops;
    double learning_rate;
    double momentum, beta1, beta2, epsilon;
    bool nesterov, amsgrad;
    int64_t iterations;
    lsi_slots *slots;
    size_t nslots, slots_room;
    ls_tensor *
        *grads; /* of one minimize(); kept, so that a steady step allocates nothing */
    size_t grads_room;
};

ls_status lsi_optimizer_new(const lsi_optim_ops *ops, double learning_rate,
                            ls_optimizer **out, ls_error *err);

/* A floating element as a double, and back; for dtypes without a vector loop. */
double lsi_get(ls_dtype dtype, const void *p, size_t i);
void lsi_put(ls_dtype dtype, void *p, size_t i, double value);
#endif
