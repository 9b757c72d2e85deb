/*
 * Reads a line's pipeline one step at a time; its position can be saved to files and
 * restored by this process or another one.
 */
#ifndef INPUT_WALK_H
#define INPUT_WALK_H
#include "input_machine.h"

/* One iterator; or, if the line has a topology, one per worker, all in step. */
typedef struct input_walk {
    const input_run *r;
    bool distributed;
    input_builder b; /* of a pipeline that is not distributed */
    ls_dataset *d;
    ls_iterator *it;
    input_group g;
} input_walk;

/* Whether the line's action iterates over its pipeline. */
bool input_walk_exists(const json_t *kase);

/* Builds the pipeline. False: *err says why not; closed either way. */
bool input_walk_open(input_walk *w, const input_run *r, ls_error *err);
void input_walk_close(input_walk *w);

/* Starts an epoch: the next step is the first of the dataset. */
bool input_walk_start(input_walk *w, ls_error *err);

/*
 * The result of the next call: an array of digests, one per worker. *over is set when all
 * are at their end, *failures is incremented if one failed.
 */
json_t *input_walk_step(input_walk *w, bool *over, int64_t *failures);

/* The position to and from files whose names begin with `stem`. */
bool input_walk_save(input_walk *w, const char *stem, ls_error *err);
bool input_walk_restore(input_walk *w, const char *stem, ls_error *err);
#endif
