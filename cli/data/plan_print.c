/* A plan as a person reads it, and as JSON. */
#include "cli/data/input_plan.h"

#include <jansson.h>
#include <stdio.h>

enum { RUNS_MOST = 12 };

/* How many samples from `i` on follow one another in their file. */
static int64_t run_length(const int64_t *samples, int64_t n, int64_t i)
{
    int64_t len = 1;

    while (i + len < n && samples[i + len] == samples[i] + len) {
        len++;
    }
    return len;
}

static void print_samples(const int64_t *samples, int64_t n)
{
    int runs = 0;

    if (n == 0) {
        printf(" nothing");
    }
    for (int64_t i = 0; i < n; runs++) {
        const int64_t len = run_length(samples, n, i);
        const long long file = (long long)(samples[i] >> PLAN_FILE_SHIFT);
        const long long first = (long long)(samples[i] - (file << PLAN_FILE_SHIFT));

        if (runs == RUNS_MOST) {
            printf(" ... (%lld in all)", (long long)n);
            return;
        }
        if (len == 1) {
            printf(" f%lld[%lld]", file, first);
        } else {
            printf(" f%lld[%lld..%lld]", file, first, first + len - 1);
        }
        i += len;
    }
}

static bool reads_all(const plan *p)
{
    return p->workers == 1 || p->used == LS_SHARD_DATA || p->used == LS_SHARD_OFF;
}

static void print_worker(const plan *p, const plan_share *s)
{
    printf("  worker %-4d ", s->worker);
    if (reads_all(p)) {
        printf("reads all files");
    } else if (s->rows == 0) {
        printf("reads nothing");
    } else {
        printf("reads");
        for (size_t i = 0; i < p->nfiles; i++) {
            if (s->of_file[i] > 0) {
                printf(" f%zu", i);
            }
        }
    }
    printf(" and gets %lld record%s", (long long)s->rows, s->rows == 1 ? "" : "s");
    if (s->empty > 0) {
        printf("; %lld of its %lld parts %s empty", (long long)s->empty,
               (long long)s->steps * p->replicas, s->empty == 1 ? "is" : "are");
    }
    printf("\n");
}

static void print_steps(const plan *p)
{
    const int64_t steps = p->shares[0].steps < p->shown ? p->shares[0].steps : p->shown;

    if (steps > 0) {
        printf("\nstep   worker replica  samples\n");
    }
    for (int64_t step = 0; step < steps; step++) {
        for (int w = 0; w < p->workers; w++) {
            for (int r = 0; r < p->replicas; r++) {
                const int64_t slot = step * p->replicas + r;

                if (w == 0 && r == 0) {
                    printf("%-6lld", (long long)step);
                } else {
                    printf("      ");
                }
                printf(" %-6d %-7d ", w, r);
                print_samples(p->shares[w].samples[slot], p->shares[w].count[slot]);
                printf("\n");
            }
        }
    }
    if (p->shares[0].steps > steps) {
        printf("...\n");
    }
}

/* How many records are given `times` times, less often, and more often. */
static void count_seen(const plan *p, int64_t times, int64_t *less, int64_t *more)
{
    *less = *more = 0;
    for (int64_t i = 0; i < p->records; i++) {
        const int n = p->seen[i];

        *less += n < times;
        *more += n > times;
    }
}

static void print_end(const plan *p)
{
    const int64_t times = p->repeat < UINT8_MAX ? p->repeat : UINT8_MAX;
    int64_t less = 0, more = 0;

    if (p->repeat < 0) {
        printf("\nwithout end: repeated for ever\n");
        return;
    }
    if (!plan_is_counted(p)) {
        printf(
            "\n%lld records repeated %lld times are too many to go through: only these "
            "steps were\n",
            (long long)p->records, (long long)p->repeat);
        return;
    }
    count_seen(p, times, &less, &more);
    printf("\n%lld step%s in all; ", (long long)p->shares[0].steps,
           p->shares[0].steps == 1 ? "" : "s");
    if (less == 0 && more == 0) {
        printf("every record is given %s\n",
               p->repeat == 1 ? "once" : "as often as it is repeated");
    } else if (less == 0) {
        printf("%lld of %lld records are given more than once\n", (long long)more,
               (long long)p->records);
    } else {
        printf("%lld of %lld records are given to no worker\n", (long long)less,
               (long long)p->records);
    }
}

void plan_print(const plan *p)
{
    printf("%zu %s file%s with %lld records, ", p->nfiles, data_format_name(p->format),
           p->nfiles == 1 ? "" : "s", (long long)p->records);
    if (p->shuffle > 0) {
        printf("shuffled (%lld, seed %lld), ", (long long)p->shuffle, (long long)p->seed);
    }
    printf("batches of %lld over %d worker%s with %d replica%s%s\n", (long long)p->batch,
           p->workers, p->workers == 1 ? "" : "s", p->replicas,
           p->replicas == 1 ? "" : "s", p->workers == 1 ? "" : " each");
    printf("policy %s, %s\n\nfiles\n", plan_policy_name(p->used), p->reason);
    for (size_t i = 0; i < p->nfiles; i++) {
        printf("  f%-5zu %s, %lld record%s\n", i, p->files[i].name,
               (long long)p->files[i].records, p->files[i].records == 1 ? "" : "s");
    }
    printf("\nworkers\n");
    for (int w = 0; w < p->workers; w++) {
        print_worker(p, &p->shares[w]);
    }
    print_steps(p);
    print_end(p);
}

/* [[file, first, last], ...] */
static json_t *samples_json(const int64_t *samples, int64_t n)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < n;) {
        const int64_t len = run_length(samples, n, i);
        const int64_t file = samples[i] >> PLAN_FILE_SHIFT;
        const int64_t first = samples[i] - (file << PLAN_FILE_SHIFT);

        json_array_append_new(list,
                              json_pack("[I, I, I]", (json_int_t)file, (json_int_t)first,
                                        (json_int_t)(first + len - 1)));
        i += len;
    }
    return list;
}

static json_t *steps_json(const plan *p)
{
    const int64_t steps = p->shares[0].steps < p->shown ? p->shares[0].steps : p->shown;
    json_t *list = json_array();

    for (int64_t step = 0; step < steps; step++) {
        json_t *parts = json_array();

        for (int w = 0; w < p->workers; w++) {
            for (int r = 0; r < p->replicas; r++) {
                const int64_t slot = step * p->replicas + r;

                json_array_append_new(
                    parts, json_pack("{si, si, so}", "worker", w, "replica", r, "samples",
                                     samples_json(p->shares[w].samples[slot],
                                                  p->shares[w].count[slot])));
            }
        }
        json_array_append_new(list, parts);
    }
    return list;
}

static json_t *workers_json(const plan *p)
{
    json_t *list = json_array();

    for (int w = 0; w < p->workers; w++) {
        const plan_share *s = &p->shares[w];
        json_t *files = json_array();

        for (size_t i = 0; i < p->nfiles; i++) {
            if (reads_all(p) || s->of_file[i] > 0) {
                json_array_append_new(files, json_integer((json_int_t)i));
            }
        }
        json_array_append_new(list, json_pack("{si, so, sI, sI}", "worker", w, "reads",
                                              files, "records", (json_int_t)s->rows,
                                              "empty_parts", (json_int_t)s->empty));
    }
    return list;
}

int plan_print_json(const plan *p)
{
    json_t *files = json_array();
    json_t *o = NULL;
    int64_t less = 0, more = 0;

    for (size_t i = 0; i < p->nfiles; i++) {
        json_array_append_new(files, json_pack("{so, sI}", "name",
                                               cli_json_text(p->files[i].name), "records",
                                               (json_int_t)p->files[i].records));
    }
    o = json_pack("{so, sI, sI, si, si, ss, ss, ss, so, so}", "files", files, "records",
                  (json_int_t)p->records, "batch", (json_int_t)p->batch, "workers",
                  p->workers, "replicas", p->replicas, "asked",
                  plan_policy_name(p->asked), "policy", plan_policy_name(p->used),
                  "reason", p->reason, "shares", workers_json(p), "steps", steps_json(p));
    if (o != NULL && plan_is_counted(p)) {
        count_seen(p, p->repeat < UINT8_MAX ? p->repeat : UINT8_MAX, &less, &more);
        json_object_set_new(o, "steps_in_all", json_integer(p->shares[0].steps));
        json_object_set_new(o, "records_missed", json_integer(less));
        json_object_set_new(o, "records_given_too_often", json_integer(more));
    }
    return cli_print_json("lockstep data plan", o, 0);
}
