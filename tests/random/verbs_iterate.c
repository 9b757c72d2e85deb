/* Statements that iterate over datasets, and save and restore positions. */
#include "random_machine.h"

/*
 * Called before an iterator is opened. An earlier one that was read ahead may have
 * started further passes over a shuffle, so the order is not determined any more.
 */
static void count_iterator(machine *m)
{
    m->loose = m->loose || (m->reshuffles && m->ahead && m->opened > 0);
    m->opened++;
}

static void run_iterate(place *at, const statement *s)
{
    machine *m = at->m;
    ls_error err = LS_ERROR_INIT;
    ls_iterator *it = NULL;
    ls_dataset *d;
    ls_status st;

    if (m->ndatasets == 0 || m->niterators == MOST_ITERATORS) {
        return;
    }
    d = m->datasets[m->ndatasets - 1 - (uint64_t)number(s, "d") % m->ndatasets];
    count_iterator(m);
    st = ls_dataset_iterate(d, &it, &err);
    ended(at, st, &err);
    if (st == LS_OK) {
        m->iterators[m->niterators].d = ls_dataset_retain(d);
        m->iterators[m->niterators++].it = it;
    }
}

static void run_next(place *at, const statement *s)
{
    machine *m = at->m;

    if (m->niterators == 0) {
        return;
    }
    ls_iterator *it = m->iterators[(uint64_t)number(s, "i") % m->niterators].it;
    for (int64_t n = 0; n <= number(s, "n"); n++) {
        ls_error err = LS_ERROR_INIT;
        ls_value *v = NULL;
        const ls_status st = ls_iterator_next(it, &v, &err);

        ended(at, st, &err);
        if (st == LS_OK) {
            show_value(at, v, 0);
            ls_value_release(v);
        }
    }
}

/* Restores the state of one iterator in another one, mostly of the same dataset. */
static void run_resume(place *at, const statement *s)
{
    machine *m = at->m;
    ls_error err = LS_ERROR_INIT;
    ls_value *state = NULL;
    ls_iterator *other = NULL;
    ls_status st;

    if (m->niterators == 0) {
        return;
    }
    const size_t i = (uint64_t)number(s, "i") % m->niterators;
    st = ls_iterator_save(m->iterators[i].it, &state, &err);
    ended(at, st, &err);
    if (st != LS_OK) {
        return;
    }
    if (number(s, "wild") != 0) { // whichever it belongs to
        const size_t j = (i + 1) % m->niterators;

        ended(at, ls_iterator_restore(m->iterators[j].it, state, &err), &err);
        ls_value_release(state);
        return;
    }
    count_iterator(m);
    st = ls_dataset_iterate(m->iterators[i].d, &other, &err);
    if (st == LS_OK) {
        for (int64_t n = number(s, "before"); n > 0; n--) {
            ls_value *v = NULL;

            if (ls_iterator_next(other, &v, NULL) == LS_OK) {
                ls_value_release(v);
            }
        }
        st = ls_iterator_restore(other, state, &err);
    }
    ended(at, st, &err);
    ls_value_release(state);
    for (int64_t n = 0; st == LS_OK && n <= number(s, "n"); n++) {
        ls_error ea = LS_ERROR_INIT, eb = LS_ERROR_INIT;
        ls_value *a = NULL, *b = NULL;
        const ls_status sa = ls_iterator_next(m->iterators[i].it, &a, &ea);
        const ls_status sb = ls_iterator_next(other, &b, &eb);

        ended(at, sa, &ea);
        if (sa != sb && !m->reshuffles) {
            complain(m,
                     "statement %d: the iterator goes on with %s \"%s\", the restored "
                     "one with %s \"%s\"",
                     at->at + 1, ls_status_name(sa), ea.message, ls_status_name(sb),
                     eb.message);
        }
        if (sa == LS_OK && sb == LS_OK) {
            place left = {.m = m, .host = true, .at = at->at}, right = left;

            show_value(&left, a, 0);
            show_value(&right, b, 0);
            if ((left.log.used != right.log.used && !m->reshuffles) ||
                (left.log.used > 0 &&
                 memcmp(left.log.bytes, right.log.bytes, left.log.used) != 0 &&
                 !m->reshuffles)) {
                complain(m, "statement %d: the restored iterator gives another element",
                         at->at + 1);
            }
            journal_append(&at->log, &left.log);
            journal_free(&left.log);
            journal_free(&right.log);
        }
        ls_value_release(a);
        ls_value_release(b);
    }
    ls_iterator_release(other);
}

/* ---- distributed ---- */

static void run_distribute(place *at, const statement *s)
{
    machine *m = at->m;
    ls_distribute_options o = LS_DISTRIBUTE_OPTIONS_INIT;
    ls_error err = LS_ERROR_INIT;
    ls_dist_dataset *d = NULL;
    ls_dist_iterator *it = NULL;
    ls_status st;

    if (m->ndatasets == 0 || m->ndistributed == MOST_ITERATORS) {
        return;
    }
    o.keep_on_host = number(s, "host") == 1;
    o.per_replica_buffer = (int)number(s, "buffer") - 1;
    ls_dataset *from = ls_dataset_retain(
        m->datasets[m->ndatasets - 1 - (uint64_t)number(s, "d") % m->ndatasets]);
    const ls_spec *spec = ls_dataset_spec(from);
    if (number(s, "wild") == 0 && spec != NULL &&
        (ls_spec_kind_of(spec) != LS_SPEC_TENSOR || ls_spec_ndim(spec) == 0)) {
        from = ls_dataset_batch(from, 4);
    }
    count_iterator(m);
    m->ahead = true;
    m->layout = true;
    st = ls_strategy_distribute(m->s, from, &o, &d, &err);
    ls_dataset_release(from);
    if (st == LS_OK) {
        st = ls_dist_iterate(d, &it, &err);
    }
    ended(at, st, &err);
    if (st == LS_OK) {
        m->distributed[m->ndistributed].d = d;
        m->distributed[m->ndistributed++].it = it;
    } else {
        ls_dist_dataset_release(d);
    }
}

static void run_distributed_next(place *at, const statement *s)
{
    machine *m = at->m;

    if (m->ndistributed == 0) {
        return;
    }
    ls_dist_iterator *it = m->distributed[(uint64_t)number(s, "i") % m->ndistributed].it;
    for (int64_t n = 0; n <= number(s, "n"); n++) {
        ls_error err = LS_ERROR_INIT;
        ls_value *v = NULL;
        const ls_status st = ls_dist_iterator_next(it, &v, &err);

        ended(at, st, &err);
        if (st == LS_OK) {
            show_value(at, v, 0);
            give_value(at, v, true);
        }
    }
}

static void run_distributed_resume(place *at, const statement *s)
{
    machine *m = at->m;
    ls_error err = LS_ERROR_INIT;
    ls_value *state = NULL;
    ls_status st;

    if (m->ndistributed == 0) {
        return;
    }
    const size_t i = (uint64_t)number(s, "i") % m->ndistributed;
    st = ls_dist_iterator_save(m->distributed[i].it, &state, &err);
    ended(at, st, &err);
    if (st != LS_OK) {
        return;
    }
    for (int64_t n = number(s, "n"); n > 0; n--) {
        ls_value *v = NULL;
        ls_error e = LS_ERROR_INIT;

        if (ls_dist_iterator_next(m->distributed[i].it, &v, &e) == LS_OK) {
            ls_value_release(v);
        }
    }
    ended(at, ls_dist_iterator_restore(m->distributed[i].it, state, &err), &err);
    ls_value_release(state);
}

const verb verbs_iterate[] = {
    {"iterate", "d", run_iterate, IN_HOST, {0, 0, 16, 3}},
    {"next", "i n:5", run_next, IN_HOST, {0, 0, 18, 3}},
    {"resume", "i n:5 before:3 wild", run_resume, IN_HOST, {0, 0, 10, 2}},
    {"distribute", "d host:2 buffer:3 wild", run_distribute, IN_HOST, {0, 0, 6, 4}},
    {"dist_next", "i n:4", run_distributed_next, IN_HOST, {0, 0, 7, 3}},
    {"dist_resume", "i n:4", run_distributed_resume, IN_HOST, {0, 0, 4, 2}},
};
const size_t count_iterate = LSI_COUNT_OF(verbs_iterate);
