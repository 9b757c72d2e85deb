/*
 * Agreement of workers that distribute a dataset: a failure of one fails all, all decide
 * alike whether they synchronize steps, and all use the random seeds of worker 0.
 */
#include "input/input.h"

/* What a worker sends, as numbers. */
enum { FACT_SPEC, FACT_FINITE, FACT_DREW, FACT_SEED_A, FACT_SEED_B, FACTS };

static void fill_facts(const ls_dist_dataset *dd, int64_t *facts)
{
    lsi_seeds drawn = {0, 0};

    facts[FACT_SPEC] = (int64_t)lsi_spec_print(dd->spec);
    facts[FACT_FINITE] = dd->cardinality != LS_INFINITE ? 1 : 0;
    facts[FACT_DREW] = lsi_graph_drawn_seeds(dd->pipelines[0], &drawn) ? 1 : 0;
    facts[FACT_SEED_A] = (int64_t)drawn.a;
    facts[FACT_SEED_B] = (int64_t)drawn.b;
}

/* Checks that all workers have elements of the same spec; the outcome is that of all. */
static ls_status compare_specs(const ls_dist_dataset *dd, const int64_t *all,
                               ls_error *err)
{
    for (int w = 1; w < dd->workers; w++) {
        if (all[(size_t)w * FACTS + FACT_SPEC] != all[FACT_SPEC]) {
            return lsi_fail_kind(err, LS_INVALID_ARGUMENT, LS_KIND_VALUE,
                                 "distribute: the elements of worker %d have another "
                                 "spec than those of worker 0; all must have one",
                                 w);
        }
    }
    return LS_OK;
}

/* The dataset of another worker ends: this one must synchronize steps, too. */
static ls_status synchronize_steps(ls_dist_dataset *dd, ls_error *err)
{
    ls_spec *open = NULL;
    const ls_status st = lsi_spec_open_rows(dd->spec, &open, err);

    if (st == LS_OK) {
        ls_spec_release(dd->spec);
        dd->spec = open;
        dd->partial = true;
    }
    return st;
}

/* Adapts the pipeline to those of the others. */
static ls_status follow_facts(ls_dist_dataset *dd, const int64_t *all, bool shared,
                              ls_error *err)
{
    bool finite = false;
    ls_status st = LS_OK;

    for (int w = 0; w < dd->workers; w++) {
        finite = finite || all[(size_t)w * FACTS + FACT_FINITE] != 0;
    }
    if (finite && !dd->partial) {
        st = synchronize_steps(dd, err);
    }
    if (st == LS_OK && shared && all[FACT_DREW] != 0) {
        const lsi_seeds first = {(uint64_t)all[FACT_SEED_A], (uint64_t)all[FACT_SEED_B]};

        st = lsi_graph_share_seeds(&dd->pipelines[0], first, err);
    }
    return st;
}

ls_status lsi_dist_agree(ls_strategy *s, ls_dist_dataset *dd, bool shared,
                         lsi_comm_site site, ls_status st, ls_error *why, ls_error *err)
{
    const lsi_workers_call call = {.what = "ls_strategy_distribute", .site = site};
    int64_t mine[FACTS] = {0}, done = 1;
    int64_t *all = NULL;

    why->code = st; // a function of the program may return a status without an error
    if (lsi_workers(s) == 1) {
        return st == LS_OK ? LS_OK : lsi_fail_again(err, why);
    }
    if (st == LS_OK) {
        fill_facts(dd, mine);
        all = lsi_alloc((size_t)dd->workers, sizeof mine);
        if (all == NULL) {
            st = lsi_fail_memory(why, "distribute", (size_t)dd->workers * sizeof mine);
        }
    }
    if (st != LS_OK) {
        return lsi_workers_decline(s, &call, why, err);
    }
    st = lsi_workers_share(s, &call, mine, FACTS, all, st, why, err);
    if (st == LS_OK) {
        st = compare_specs(dd, all, err);
    }
    if (st == LS_OK) { // nothing but memory fails here, and if it does, on all workers
        st = follow_facts(dd, all, shared, why);
        why->code = st;
        st = lsi_workers_share(s, &call, &done, 1, all, st, why, err);
    }
    lsi_free(all);
    return st;
}
