/*
 * The training shown to a person: on a terminal one line that is drawn again and again,
 * elsewhere a line an epoch.
 */
#ifndef EXAMPLE_PROGRESS_H
#define EXAMPLE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct progress {
    int epochs;
    size_t samples; /* in an epoch */
    int epoch;      /* 1 up */
    size_t done;    /* samples of this epoch */
    double loss;    /* sum over them */
    size_t right;
    double started, drawn; /* seconds */
    double waited;         /* of this epoch, for batches */
    bool terminal;
} progress;

/* Seconds of a clock that never runs backwards. */
double progress_now(void);

void progress_start(progress *p, int epochs, size_t samples);
void progress_epoch(progress *p, int epoch);

/* `n` more samples whose losses add up to `loss`, `right` of them classified. */
void progress_add(progress *p, size_t n, double loss, size_t right);
void progress_epoch_end(progress *p);
#endif
