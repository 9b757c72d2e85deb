/*
 * Agreement of workers that distribute a dataset: a failure of one fails all, all decide
 * alike whether they synchronize steps, and all use the random seeds of worker 0.
 */
#include "input/input.h"

/* What a worker sends, as numbers. */
enum { FACT_STATUS, FACT_SPEC, FACT_FINITE, FACT_DREW, FACT_SEED_A, FACT_SEED_B, FACTS };

static void fill_facts(const ls_dist_dataset *dd, ls_status st, int64_t *facts)
{
    lsi_seeds drawn = {0, 0};

    facts[FACT_STATUS] = st;
    if (st == LS_OK) {
        facts[FACT_SPEC] = (int64_t)lsi_spec_print(dd->spec);
        facts[FACT_FINITE] = dd->cardinality != LS_INFINITE ? 1 : 0;
        facts[FACT_DREW] = lsi_graph_drawn_seeds(dd->pipelines[0], &drawn) ? 1 : 0;
        facts[FACT_SEED_A] = (int64_t)drawn.a;
        facts[FACT_SEED_B] = (int64_t)drawn.b;
    }
}

/* Checks that all workers succeeded, with elements of the same spec. */
static ls_status compare_facts(const ls_dist_dataset *dd, const int64_t *all,
                               bool *finite, ls_error *err)
{
    for (int w = 0; w < dd->workers; w++) {
        const int64_t *facts = all + (size_t)w * FACTS;

        if (facts[FACT_STATUS] != LS_OK) {
            return lsi_fail(err, (ls_status)facts[FACT_STATUS], w,
                            "distribute: worker %d could not distribute its dataset "
                            "(%s); its own error says why",
                            w, ls_status_name((ls_status)facts[FACT_STATUS]));
        }
        *finite = *finite || facts[FACT_FINITE] != 0;
    }
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

ls_status lsi_dist_agree(ls_dist_dataset *dd, ls_status st, bool shared, ls_error *err)
{
    int64_t mine[FACTS] = {0};
    int64_t *all;
    ls_error why = LS_ERROR_INIT;
    ls_status met;
    bool finite = false;

    if (dd->workers == 1) {
        return st;
    }
    fill_facts(dd, st, mine);
    all = lsi_alloc((size_t)dd->workers, sizeof mine);
    if (all == NULL) { // the others get the error from the communicator
        met = lsi_fail_memory(&why, "distribute", (size_t)dd->workers * sizeof mine);
        lsi_comm_break(dd->strategy->workers, &why);
    } else {
        met = lsi_comm_share(dd->strategy->workers, "ls_strategy_distribute", mine, FACTS,
                             all, dd->place, &why);
    }
    if (met == LS_OK && st == LS_OK) {
        met = compare_facts(dd, all, &finite, &why);
    }
    if (met == LS_OK && st == LS_OK && finite && !dd->partial) {
        met = synchronize_steps(dd, &why);
    }
    if (met == LS_OK && st == LS_OK && shared && all[FACT_DREW] != 0) {
        const lsi_seeds first = {(uint64_t)all[FACT_SEED_A], (uint64_t)all[FACT_SEED_B]};

        met = lsi_graph_share_seeds(&dd->pipelines[0], first, &why);
    }
    lsi_free(all);
    return st != LS_OK ? st : met == LS_OK ? LS_OK : lsi_fail_again(err, &why);
}
