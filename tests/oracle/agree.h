/* Answers against what a line expects. */
#ifndef ORACLE_AGREE_H
#define ORACLE_AGREE_H

#include <jansson.h>
#include <stdbool.h>

/* What a suite asks of an answer besides. */
typedef struct agree_rule {
    double rtol;
    bool kinds;  /* 1 and 1.0 are two answers */
    bool python; /* an error has the class that it has in Python */
} agree_rule;

bool agree(const agree_rule *r, const json_t *want, const json_t *got);

/* The code, and every word that the message must mention. */
bool agree_errors(const agree_rule *r, const json_t *want, const json_t *got);
#endif
