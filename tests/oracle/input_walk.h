/*
 * A walk through a line's pipeline, one step at a time, whose position can be put into
 * files and taken from them again, by this process or another one.
 */
#ifndef INPUT_WALK_H
#define INPUT_WALK_H
#include "input_machine.h"

/* One iterator; or, if the line has a topology, one a worker, all in step. */
typedef struct input_walk {
    const input_run *r;
    bool distributed;
    input_builder b; /* of a pipeline that is not distributed */
    ls_dataset *d;
    ls_iterator *it;
    input_group g;
} input_walk;

/* Is the line one whose pipeline gives an iterator? */
bool input_walk_exists(const json_t *kase);

/* Builds the pipeline. False: *err says why not; closed either way. */
bool input_walk_open(input_walk *w, const input_run *r, ls_error *err);
void input_walk_close(input_walk *w);

/* The first element of the dataset next; a second call: those of its next epoch. */
bool input_walk_start(input_walk *w, ls_error *err);

/*
 * What the next call gives: an array of digests, one a worker. *over is set at the end of
 * all of them, *failures counted up if one failed.
 */
json_t *input_walk_step(input_walk *w, bool *over, int64_t *failures);

/* The position to and from files whose names begin with `stem`. */
bool input_walk_save(input_walk *w, const char *stem, ls_error *err);
bool input_walk_restore(input_walk *w, const char *stem, ls_error *err);
#endif
