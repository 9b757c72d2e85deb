/* What `lockstep bench growth` runs: one dimension each, of any size. */
#ifndef CLI_GROWTH_H
#define CLI_GROWTH_H

#include "cli/bench/bench.h"

#include <stdint.h>

/*
 * One run of a case. The first failure sticks in `st` and `err`, and what follows is left
 * out; the driver releases what growth_runtime() and growth_folder() made.
 */
typedef struct growth_run {
    int64_t n;
    ls_status st;
    ls_error err;
    ls_runtime *rt;
    ls_context *c;
    ls_strategy *strategy;
    char folder[256]; /* "": none was made */
    bool measuring;
    double start, seconds;
    int64_t base, asked_before;
    int64_t held;  /* bytes, at most and above what was held when it began */
    int64_t asked; /* bytes, of all allocations together */
} growth_run;

typedef struct growth_case {
    const char *name;
    const char *doubled; /* "bytes of a line" */
    int64_t small, full; /* the first size, which is doubled four times */
    /* The largest exponents: of seconds, bytes held, bytes asked for. 0: not judged. */
    double time, held, asked;
    int64_t each; /* the most bytes held for one more of it; 0: not judged */
    void (*run)(growth_run *r);
} growth_case;

extern const growth_case growth_of_tapes[];    /* the last has no name */
extern const growth_case growth_of_updates[];  /* variables and optimizers */
extern const growth_case growth_of_replicas[]; /* and what they exchange */
extern const growth_case growth_of_input[];

/* Exponents that are linear, and that do not grow: with room for what is added to a fixed
 * part, and for the clock. */
#define GROWTH_LINEAR 1.15
#define GROWTH_FLAT 0.15
#define GROWTH_LINEAR_TIME 1.35
#define GROWTH_FLAT_TIME 0.35

/* Unless something has failed. */
#define GROWTH_TRY(r, call)                                                              \
    do {                                                                                 \
        if ((r)->st == LS_OK) {                                                          \
            (r)->st = (call);                                                            \
        }                                                                                \
    } while (0)

/* What is measured lies between these. */
void growth_begin(growth_run *r);
void growth_end(growth_run *r);

/* The result is right, or the run has failed. */
void growth_check(growth_run *r, bool right, const char *what);

/* Zeroed; NULL after a failure, and that is one. The caller's to free(). */
void *growth_room(growth_run *r, size_t count, size_t size);

/* r->rt with `devices` CPUs of one thread, and r->c on the first. */
void growth_runtime(growth_run *r, int devices);

/* The same, and r->strategy: one replica on each. */
void growth_replicas(growth_run *r, int replicas);

/* Takes the failure of a context over and ends the step of r->c. */
void growth_finish(growth_run *r);

/* A variable of zeros; made in the scope of r->strategy if there is one. */
ls_variable *growth_variable(growth_run *r, ls_shape shape);

/* A folder of its own, removed with the files "0", "1" ... "n" in it. */
void growth_folder(growth_run *r);

/* The one file in it, opened to be written; NULL after a failure. */
FILE *growth_file(growth_run *r, int64_t index, char *path, size_t size);
#endif
