/* Optimizers by the names and arguments that Keras has for them. */
#ifndef ORACLE_TRAIN_OPTIMIZER_H
#define ORACLE_TRAIN_OPTIMIZER_H
#include <jansson.h>
#include <lockstep/lockstep.h>

/*
 * Arguments that a line does not give have Keras' defaults. `keras3`: as Keras 3
 * computes.
 */
typedef ls_status (*train_optimizer_maker)(const json_t *given, bool keras3,
                                           ls_optimizer **out, ls_error *err);

/* NULL: no optimizer is called `kind`, which may be NULL. */
train_optimizer_maker train_optimizer_named(const char *kind);
#endif
