/* Prints the progress of a training: see progress.h. */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 30 };

double progress_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_start(progress *p, int epochs, size_t samples)
{
    memset(p, 0, sizeof *p);
    p->epochs = epochs;
    p->samples = samples;
    p->terminal = isatty(STDOUT_FILENO) != 0;
}

void progress_epoch(progress *p, int epoch)
{
    p->epoch = epoch;
    p->done = p->right = 0;
    p->loss = p->waited = 0;
    p->started = p->drawn = progress_now();
}

static void draw_line(const progress *p, double time)
{
    const double done = p->done > 0 ? (double)p->done : 1;
    const double passed = time - p->started + 1e-9;
    const int filled = (int)(BAR * p->done / p->samples);
    char bar[BAR + 1];

    if (p->terminal) {
        memset(bar, '.', BAR);
        memset(bar, '=', (size_t)filled);
        bar[BAR] = '\0';
        printf("\repoch %d/%d [%s] %3d %%", p->epoch, p->epochs, bar,
               (int)(100 * p->done / p->samples));
    } else {
        printf("epoch %d/%d", p->epoch, p->epochs);
    }
    printf("  loss %.4f  accuracy %.4f  %6.0f samples/s  input %.1f %%", p->loss / done,
           (double)p->right / done, (double)p->done / passed, 100 * p->waited / passed);
    fflush(stdout);
}

void progress_add(progress *p, size_t n, double loss, size_t right)
{
    double time;

    p->done += n;
    p->loss += loss;
    p->right += right;
    if (!p->terminal) {
        return;
    }
    time = progress_now();
    if (time - p->drawn > 0.1) {
        draw_line(p, time);
        p->drawn = time;
    }
}

void progress_epoch_end(progress *p)
{
    draw_line(p, progress_now());
    printf("\n");
    fflush(stdout);
}
