/* Compares an answer with the one that a line expects. */
#ifndef ORACLE_ANSWERS_AGREE_H
#define ORACLE_ANSWERS_AGREE_H

#include <jansson.h>
#include <stdbool.h>

/* The rules by which a suite compares. */
typedef struct agree_rule {
    double rtol;
    bool kinds;  /* 1 and 1.0 are different answers */
    bool python; /* an error has the class that it has in Python */
} agree_rule;

bool agree(const agree_rule *r, const json_t *want, const json_t *got);

/* Compares errors: the code, and every word that the message must contain. */
bool agree_errors(const agree_rule *r, const json_t *want, const json_t *got);
#endif
