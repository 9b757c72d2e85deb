/* The parts of `lockstep data plan`. */
#ifndef CLI_DATA_PLAN_H
#define CLI_DATA_PLAN_H

#include "cli/data/data_command.h"

#include <lockstep/distribute.h>

enum { PLAN_FILE_SHIFT = 32 }; /* a sample is its file << 32 | its place in there */

typedef struct plan_file {
    char *name;
    int64_t records;
} plan_file;

/* What one worker is given. */
typedef struct plan_share {
    struct plan *plan;
    int worker;
    int64_t steps, rows, empty;
    int64_t *of_file; /* rows of each file */
    /* Samples of the first steps: [step * replicas + replica]. */
    int64_t **samples;
    int64_t *count;
} plan_share;

typedef struct plan {
    plan_file *files;
    size_t nfiles;
    int64_t records;
    data_format format;
    int64_t batch;   /* 0: not batched */
    int64_t shuffle; /* 0: not */
    int64_t seed;
    int64_t repeat; /* negative: for ever */
    int workers, replicas;
    ls_auto_shard asked, used;
    char reason[600];
    int64_t shown; /* steps to keep */
    ls_runtime *runtime;
    plan_share *shares; /* one per worker */
    uint8_t *seen;      /* how often each record was given, at most 255 */
    int64_t *first;     /* the first record of each file in `seen` */
} plan;

/* The pipeline of numbers that stands for that of records. NULL: no memory. */
ls_dataset *plan_pipeline(plan *p);

/* Which policy is in force and why. */
ls_status plan_choose(plan *p, ls_error *err);

/* Whether all steps are run and counted: not if there is no end, or too many of them. */
bool plan_is_counted(const plan *p);

/* Distributes the pipeline to the replicas of one worker after the other. */
ls_status plan_deal(plan *p, ls_error *err);
void plan_free(plan *p);

const char *plan_policy_name(ls_auto_shard policy);
bool plan_policy_from_name(const char *name, ls_auto_shard *out);

void plan_print(const plan *p);
int plan_print_json(const plan *p);
#endif
