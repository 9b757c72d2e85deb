/*
 * A random program: a list of statements, each a line of text.
 *
 *     setup replicas=2
 *     var dtype=1 rank=1 d0=3 sync=3 agg=1 seed=7
 *     run args=1 differ=1
 *     op mul seed=12 u0=3 "f[n,m] f[m]"
 *     assign v=0 how=1 t=2
 *     end ret=1
 *
 * A number that is 0 is not written. Numbers that name a value (a tensor, a variable, a
 * dataset) count modulo what exists at that point, so a program from which a statement
 * was deleted is still a program.
 */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H
#include "op_cases.h"

#include <stdio.h>

enum { MOST_NUMBERS = 12, MOST_STATEMENTS = 96, MOST_SIGNATURE = 120 };

typedef struct place place;         /* random_machine.h */
typedef struct statement statement; /* below */

/* Where a statement is valid; in other positions it is skipped. */
enum {
    IN_HOST = 1, /* outside of every step */
    IN_STEP = 2, /* in a step: of a replica, or of the host's own context */
    BLOCK = 4    /* begins or ends the part that replicas run */
};

/* The main subject of a program. */
typedef enum theme { COMPUTE, TRAIN, DATA, MIXED, THEMES } theme;

/*
 * A kind of statement. `numbers` names what it takes, "v t how:3": a name with ":n" is
 * drawn from 0 .. n-1, the others as generate.c says for the name.
 */
typedef struct verb {
    const char *name;
    const char *numbers;
    void (*run)(place *at, const statement *s);
    int where;
    unsigned char weight[THEMES];
} verb;

struct statement {
    const verb *verb;
    int64_t n[MOST_NUMBERS]; /* in the order of verb->numbers */
    lsi_op_id op;            /* of the verb "op": which one, */
    char in[MOST_SIGNATURE]; /* its inputs (signature.h), */
    op_case how;             /* and its parameters in the catalogue */
};

typedef struct program {
    uint64_t seed; /* 0: read from a file */
    size_t count;
    statement statements[MOST_STATEMENTS];
} program;

/* The families of verbs. */
extern const verb verbs_op[], verbs_tape[], verbs_variable[], verbs_optimizer[],
    verbs_replica[], verbs_host[], verbs_data[], verbs_iterate[];
extern const size_t count_op, count_tape, count_variable, count_optimizer, count_replica,
    count_host, count_data, count_iterate;

/* Calls `visit` for every verb, in one order. */
void each_verb(void (*visit)(const verb *v, void *user), void *user);
const verb *verb_find(const char *name, size_t length); /* NULL: none */

/* How many numbers the verb has; the name of the i-th, and its bound (0: none). */
size_t verb_numbers(const verb *v);
size_t verb_number(const verb *v, size_t i, const char **name, int64_t *below);

/* The number called `name`; 0 if the verb has none. */
int64_t number(const statement *s, const char *name);

/* Sets it; false: the verb has none. */
bool set_number(statement *s, const char *name, int64_t x);

/* Writes a statement without a newline; returns the length. */
size_t statement_text(const statement *s, char *buf, size_t size);
void program_print(const program *p, FILE *to);

/* Reads what program_print() wrote; lines that begin with '#' are remarks. */
bool program_read(FILE *from, const char *name, program *out);

/* The program of a seed (generate.c). */
void program_generate(uint64_t seed, program *out);
#endif
