/*
 * Prints the progress of a training: on a terminal one line that is redrawn, otherwise
 * one line per epoch.
 */
#ifndef EXAMPLE_PROGRESS_H
#define EXAMPLE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct progress {
    int epochs;
    size_t samples; /* in an epoch */
    int epoch;      /* from 1 */
    size_t done;    /* samples of this epoch */
    double loss;    /* sum over them */
    size_t right;
    double started, drawn; /* seconds */
    double waited;         /* of this epoch, for batches */
    bool terminal;
} progress;

/* Seconds of a monotonic clock. */
double progress_now(void);

void progress_start(progress *p, int epochs, size_t samples);
void progress_epoch(progress *p, int epoch);

/*
 * Adds `n` samples, whose losses sum up to `loss`; `right` of them were classified
 * correctly.
 */
void progress_add(progress *p, size_t n, double loss, size_t right);
void progress_epoch_end(progress *p);
#endif
