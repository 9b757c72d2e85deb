/* What a call costs beside its arithmetic: an addition of one element. */
#include "cli/bench/bench_case.h"

enum { CALLS = 100 };

static ls_status run_eager(void *self, ls_error *err)
{
    bench_case *b = self;

    for (int i = 0; i < CALLS; i++) {
        (void)ls_add(b->c, b->in[0], b->in[1]);
    }
    return ls_context_finish(b->c, err);
}

static ls_status run_recorded(void *self, ls_error *err)
{
    bench_case *b = self;
    ls_tape *tape = ls_tape_open(b->c, NULL);

    ls_tape_watch(b->c, tape, b->in[0]);
    for (int i = 0; i < CALLS; i++) {
        (void)ls_add(b->c, b->in[0], b->in[1]);
    }
    return ls_context_finish(b->c, err);
}

static bool verify_call(bench_case *b, ls_error *err)
{
    const double a = ls_item(b->c, b->in[0]), x = ls_item(b->c, b->in[1]);
    const double sum = ls_item(b->c, ls_add(b->c, b->in[0], b->in[1]));

    return ls_context_finish(b->c, err) == LS_OK && sum == (double)(float)(a + x);
}

/* The tape has the addition: its gradient is one. */
static bool verify_recorded(bench_case *b, ls_error *err)
{
    ls_tape *tape = ls_tape_open(b->c, NULL);
    double grad;

    ls_tape_watch(b->c, tape, b->in[0]);
    grad = ls_item(b->c,
                   ls_gradient(b->c, tape, ls_add(b->c, b->in[0], b->in[1]), b->in[0]));
    return ls_context_finish(b->c, err) == LS_OK && grad == 1;
}

bool bench_call_case(size_t i, ls_context *c, bench_case *out, ls_status *st,
                     ls_error *err)
{
    static const bench_case cases[] = {
        {.name = "add of one element",
         .goal_ns = 150,
         .run = run_eager,
         .verify = verify_call},
        {.name = "add of one element, recorded",
         .goal_ns = 300,
         .run = run_recorded,
         .verify = verify_recorded},
    };

    if (i >= sizeof cases / sizeof *cases) {
        return false;
    }
    *out = cases[i];
    out->c = c;
    out->calls = CALLS;
    out->in[0] = bench_random(c, LS_SCALAR, st, err);
    out->in[1] = bench_random(c, LS_SCALAR, st, err);
    return true;
}
