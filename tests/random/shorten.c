/* Deletes statements and numbers of a failing program while it still fails. */
#include "shorten.h"

#include "ls_test.h"

struct shortening {
    fails_fn fails;
    void *user;
    lsi_deadline deadline;
    program *best, *trial;
};

/* Replaces the best program by the candidate if that still fails. */
static bool try_candidate(struct shortening *s)
{
    if (lsi_deadline_passed(s->deadline) || !s->fails(s->trial, s->user)) {
        return false;
    }
    *s->best = *s->trial;
    return true;
}

/* Deletes parts of `size` statements; true if some could be. */
static bool delete_parts(struct shortening *s, size_t size)
{
    bool any = false;

    for (size_t end = s->best->count; end > 0; end -= LSI_MIN(end, size)) {
        const size_t begin = end > size ? end - size : 0;
        program *t = s->trial;

        *t = *s->best;
        memmove(&t->statements[begin], &t->statements[end],
                (t->count - end) * sizeof t->statements[0]);
        t->count -= end - begin;
        if (try_candidate(s)) {
            any = true;
        }
        end = LSI_MIN(end, s->best->count);
        if (end == 0) {
            break;
        }
    }
    return any;
}

/* Sets numbers to 0, which are not written. */
static bool zero_numbers(struct shortening *s)
{
    bool any = false;

    for (size_t i = 0; i < s->best->count; i++) {
        for (size_t n = 0; n < MOST_NUMBERS; n++) {
            if (s->best->statements[i].n[n] == 0) {
                continue;
            }
            *s->trial = *s->best;
            s->trial->statements[i].n[n] = 0;
            any = try_candidate(s) || any;
        }
    }
    return any;
}

void program_shorten(program *p, fails_fn fails, void *user, lsi_deadline deadline)
{
    program *trial = malloc(sizeof *trial);
    struct shortening s = {fails, user, deadline, p, trial};

    if (trial == NULL) {
        return;
    }
    for (size_t size = p->count / 2; size >= 1; size /= 2) {
        while (delete_parts(&s, size) && size == 1) {
        }
    }
    (void)zero_numbers(&s);
    while (delete_parts(&s, 1)) {
    }
    free(trial);
}
