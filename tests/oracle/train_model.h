/* A model of the suite `train`: layers as train.md describes them, weights by name. */
#ifndef ORACLE_TRAIN_MODEL_H
#define ORACLE_TRAIN_MODEL_H
#include "safetensors.h"

#include <jansson.h>
#include <lockstep/lockstep.h>

enum { MODEL_MOST = 64 };

typedef struct train_weight {
    char name[96]; /* "L/w" */
    ls_variable *variable;
} train_weight;

typedef struct train_model {
    const json_t *layers;
    const safetensors *data;
    train_weight weights[MODEL_MOST];
    ls_variable *trainable[MODEL_MOST];
    const train_weight *trained[MODEL_MOST]; /* the weight of trainable[i] */
    size_t count, trainables;
} train_model;

/* Makes the variables from `init/...`. */
ls_status train_model_create(train_model *m, const json_t *layers,
                             const safetensors *data, ls_error *err);
void train_model_release(train_model *m);

/* The output of all layers. Training: batch norm uses and moves its averages. */
ls_tensor *train_model_forward(ls_context *c, const train_model *m, ls_tensor *x,
                               bool training);

/* The sum of the L2 penalties; NULL: the model has none. */
ls_tensor *train_model_penalty(ls_context *c, const train_model *m);
#endif
