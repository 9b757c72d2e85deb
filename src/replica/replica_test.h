/* Helpers for tests of replicas: a runtime of logical devices with a strategy on them. */
#ifndef REPLICA_TEST_H
#define REPLICA_TEST_H
#define LS_NO_PLACES
#include "ls_test.h"

#include "lockstep/lockstep.h"

typedef struct mirror {
    ls_runtime *rt;
    ls_strategy *s;
} mirror;

static inline mirror mirror_of(int n, bool sequential)
{
    ls_runtime_options ro = LS_RUNTIME_OPTIONS_INIT;
    ls_strategy_options so = LS_STRATEGY_OPTIONS_INIT;
    ls_error e = LS_ERROR_INIT;
    mirror m = {NULL, NULL};

    ro.logical_cpus = n;
    ro.threads = 1;
    LST_OK(ls_runtime_create(&ro, &m.rt, &e));
    so.runtime = m.rt;
    so.sequential = sequential;
    LST_OK(ls_mirrored_create(NULL, &so, &m.s, &e));
    return m;
}

static inline void mirror_end(mirror *m)
{
    ls_strategy_release(m->s);
    ls_runtime_release(m->rt);
}

/* Component i of a value that has components, else the value itself, as a number. */
static inline double number_at(const ls_value *v, size_t i)
{
    const ls_value *part = ls_value_size(v) > 0 ? ls_value_child(v, i) : v;
    ls_tensor *t = ls_value_as_tensor(part);
    double x = NAN;
    ls_context *c = NULL;

    if (t != NULL && ls_context_open(NULL, NULL, &c, NULL) == LS_OK) {
        x = ls_item(c, t);
        ls_context_close(c);
    }
    return x;
}
#endif
