/* Saved states: after every call, restored into other iterators, damaged. */
#include "data/data_test.h"

static ls_dataset *zip(ls_dataset *a, ls_dataset *b)
{
    return ls_dataset_zip((ls_dataset *[]){a, b}, 2);
}

/* ---- pipelines whose position is saved after every call ---- */

static ls_dataset *range_2_10(void)
{
    return ls_dataset_range(2, 10, 1);
}

static ls_dataset *shuffled(void)
{
    return ls_dataset_batch(ls_dataset_shuffle(lst_range(10), 3, 42), 2);
}

static ls_dataset *epochs(void)
{
    return ls_dataset_repeat(ls_dataset_shuffle(lst_range(5), 5, 3), 3);
}

static ls_dataset *epochs_apart(void)
{
    return ls_dataset_repeat(ls_dataset_batch(ls_dataset_shuffle(lst_range(5), 2, 3), 2),
                             2);
}

static ls_dataset *for_ever(void)
{
    return ls_dataset_repeat(ls_dataset_shuffle(lst_range(4), 4, 9), -1);
}

static ls_dataset *parts(void)
{
    return ls_dataset_shard(ls_dataset_skip(ls_dataset_take(lst_range(30), 25), 3), 3, 1);
}

static ls_dataset *demanding(void)
{
    return lsi_dataset_shard_required(ls_dataset_repeat(lst_range(4), 2), 3, 1);
}

static ls_dataset *joined(void)
{
    ls_dataset *a = ls_dataset_concatenate(lst_range(3), ls_dataset_range(10, 14, 1));

    return ls_dataset_enumerate(zip(ls_dataset_shuffle(a, 4, 1), lst_range(6)), 5);
}

static ls_dataset *twice(void)
{
    ls_dataset *s = ls_dataset_shuffle(lst_range(5), 5, 8);

    return zip(ls_dataset_retain(s), s);
}

static ls_dataset *rows(void)
{
    return ls_dataset_unbatch(
        ls_dataset_shuffle(ls_dataset_batch(lst_range(11), 4), 2, 5));
}

static ls_dataset *recut(void)
{
    const int64_t sizes[] = {3, 0, 1};

    return ls_dataset_rebatch(ls_dataset_batch(lst_range(11), 4), sizes, 3, false);
}

static ls_dataset *pieces(void)
{
    return lsi_dataset_legacy_rebatch(
        ls_dataset_batch(zip(lst_range(7), ls_dataset_range(10, 17, 1)), 3), 2);
}

static ls_dataset *promised(void)
{
    return ls_dataset_assert_cardinality(lst_range(3), 4);
}

static ls_dataset *with_options(void)
{
    ls_data_options opts = LS_DATA_OPTIONS_INIT;

    opts.threads = 1;
    return ls_dataset_with_options(ls_dataset_ignore_errors(lst_range(4)), &opts);
}

static ls_dataset *words(void)
{
    const ls_string s[] = {{"a", 1}, {"", 0}, {"b\0c", 3}, {"dd", 2}};
    ls_tensor *t = NULL;
    ls_value *items[2] = {NULL, LST_INTS(1, 2, 3, 4)}, *dict = NULL;

    LST_OK(ls_tensor_create(NULL, LS_STRING, LS_SHAPE(4), s, &t, NULL));
    LST_OK(ls_value_tensor(t, &items[0], NULL));
    LST_OK(ls_value_dict((const char *[]){"w", "n"}, items, 2, &dict, NULL));
    ls_tensor_release(t);
    ls_value_release(items[0]);
    ls_value_release(items[1]);
    return ls_dataset_shuffle(lst_slices(dict), 3, 2);
}

static ls_dataset *empty(void)
{
    return ls_dataset_batch(ls_dataset_repeat(lst_range(0), -1), 2);
}

/* A shuffle that holds elements, not their indices. */
static ls_dataset *held(void)
{
    return ls_dataset_shuffle(ls_dataset_skip(lst_range(9), 1), 3, 6);
}

static ls_dataset *held_words(void)
{
    return ls_dataset_shuffle(ls_dataset_skip(words(), 1), 2, 6);
}

static ls_dataset *(*const pipelines[])(void) = {
    held_words, held,   range_2_10, shuffled,     epochs, epochs_apart,
    for_ever,   parts,  demanding,  joined,       twice,  rows,
    recut,      pieces, promised,   with_options, words,  empty};

LST_TEST(D102_D103_a_position_can_be_saved_after_every_call_and_restored_elsewhere)
{
    for (size_t i = 0; i < LSI_COUNT_OF(pipelines); i++) {
        LST_SAVES(pipelines[i]);
    }
}

/* The state after `calls` calls. */
static ls_value *saved(ls_dataset *d, int calls)
{
    ls_iterator *it = NULL;
    ls_value *state = NULL;
    lst_text t = {{0}, 0};

    LST_OK(ls_dataset_iterate(d, &it, NULL));
    for (int i = 0; i < calls; i++) {
        (void)lst_put_next(&t, it);
    }
    LST_OK(ls_iterator_save(it, &state, NULL));
    ls_iterator_release(it);
    return state;
}

/* Whether a new iterator of `d` returns this after restoring the state. */
static bool resumes(ls_dataset *d, ls_value *state, const char *want)
{
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;
    lst_text t = {{0}, 0};

    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_OK(ls_iterator_restore(it, state, &err));
    lst_put_rest(&t, it, 60);
    ls_iterator_release(it);
    return lst_same(&t, want);
}

LST_TEST(D102_a_range_goes_on_and_a_saved_end_is_the_end)
{
    ls_dataset *a = range_2_10(), *b = range_2_10();
    ls_value *state = saved(a, 3);

    LST_CHECK(resumes(b, state, "5 6 7 8 9"));
    LST_CHECK(resumes(b, state, "5 6 7 8 9")); // any number of times
    ls_value_release(state);
    state = saved(a, 9);
    LST_CHECK(resumes(b, state, ""));
    ls_value_release(state);
    ls_dataset_release(a);
    ls_dataset_release(b);
}

LST_TEST(D103_a_shuffle_goes_on_and_so_does_the_next_epoch)
{
    ls_dataset *a = shuffled(), *b = shuffled();
    ls_value *state = saved(a, 2);

    LST_CHECK(resumes(b, state, "[1 5] [8 6] [7 9]"));
    LST_CHECK(lst_epoch(b, "[0 1] [4 2] [5 7] [8 3] [9 6]"));
    ls_value_release(state);
    ls_dataset_release(a);
    ls_dataset_release(b);
}

LST_TEST(a_shuffle_nobody_gave_a_seed_takes_over_the_saved_one)
{
    ls_dataset *a = ls_dataset_shuffle_with(lst_range(20), 20, NULL, false);
    ls_dataset *b = ls_dataset_shuffle_with(lst_range(20), 20, NULL, false);
    ls_value *state = NULL;
    ls_iterator *it = NULL;
    lst_text rest = {{0}, 0}, next = {{0}, 0};

    LST_OK(ls_dataset_iterate(a, &it, NULL));
    LST_OK(ls_iterator_save(it, &state, NULL));
    lst_put_rest(&rest, it, 60);
    ls_iterator_release(it);
    lst_put_events(&next, a, 60);
    LST_CHECK(resumes(b, state, rest.s));
    LST_CHECK(lst_epoch(b, next.s));
    ls_value_release(state);
    ls_dataset_release(a);
    ls_dataset_release(b);
}

LST_TEST(a_state_of_another_pipeline_is_refused_and_the_position_stays)
{
    ls_dataset *a = ls_dataset_batch(lst_range(8), 2);
    ls_dataset *others[] = {
        ls_dataset_batch(lst_range(8), 3), ls_dataset_batch_exact(lst_range(8), 2),
        ls_dataset_batch(lst_range(9), 2),
        ls_dataset_batch(ls_dataset_take(lst_range(8), 8), 2), lst_range(8)};
    ls_value *state = saved(a, 1);

    for (size_t i = 0; i < LSI_COUNT_OF(others); i++) {
        ls_iterator *it = NULL;
        ls_error err = LS_ERROR_INIT;
        lst_text before = {{0}, 0}, after = {{0}, 0};

        lst_put_events(&before, others[i], 60);
        LST_OK(ls_dataset_iterate(others[i], &it, &err));
        (void)lst_put_next(&after, it);
        LST_FAILS(ls_iterator_restore(it, state, &err), LS_FAILED_PRECONDITION, err,
                  "another pipeline");
        lst_put_rest(&after, it, 60);
        LST_CHECK(lst_same(&after, before.s));
        ls_iterator_release(it);
        ls_dataset_release(others[i]);
    }
    ls_value_release(state);
    ls_dataset_release(a);
}

static ls_status one_next(void *state, ls_value **out, ls_error *err)
{
    (void)state;
    (void)err;
    return ls_value_int(1, out, err);
}

LST_TEST(D107_state_outside_fails_the_save_unless_the_options_let_it_out)
{
    const ls_source source = {sizeof source, NULL, one_next, NULL, NULL};
    ls_data_options opts = LS_DATA_OPTIONS_INIT;
    ls_dataset *d = ls_dataset_batch(ls_dataset_source(&source, NULL), 2);
    ls_iterator *it = NULL;
    ls_value *state = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_FAILS(ls_iterator_save(it, &state, &err), LS_FAILED_PRECONDITION, err, "source");
    ls_iterator_release(it);
    for (int policy = LS_STATE_WARN; policy <= LS_STATE_IGNORE; policy++) {
        opts.external_state = (ls_external_state)policy;
        ls_dataset *lenient = ls_dataset_with_options(ls_dataset_retain(d), &opts);

        LST_OK(ls_dataset_iterate(lenient, &it, &err));
        LST_OK(ls_iterator_save(it, &state, &err));
        LST_OK(ls_iterator_restore(it, state, &err));
        ls_value_release(state);
        ls_iterator_release(it);
        ls_dataset_release(lenient);
    }
    ls_dataset_release(d);
}

/* ---- damage ---- */

static ls_value *bytes(const uint8_t *p, size_t n)
{
    ls_tensor *t = NULL;
    ls_value *v = NULL;

    LST_OK(ls_tensor_create(NULL, LS_U8, LS_SHAPE((int64_t)n), p, &t, NULL));
    LST_OK(ls_value_tensor(t, &v, NULL));
    ls_tensor_release(t);
    return v;
}

LST_TEST(a_damaged_state_is_told_from_a_whole_one)
{
    ls_dataset *d = words();
    ls_value *state = saved(d, 2);
    const ls_tensor *t = ls_value_as_tensor(state);
    const size_t n = ls_tensor_bytes(t);
    uint8_t *copy = lsi_alloc(n, 1);
    ls_iterator *it = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_dataset_iterate(d, &it, &err));
    for (size_t i = 0; i < n; i++) {
        for (int how = 0; how < 2; how++) { // shortened, or with a bit flipped
            memcpy(copy, ls_tensor_data(t), n);
            copy[i] ^= how == 1 ? 0x10 : 0;
            ls_value *bad = bytes(copy, how == 0 ? i : n);
            const ls_status st = ls_iterator_restore(it, bad, &err);

            LST_CHECK(st == LS_DATA_LOSS || st == LS_FAILED_PRECONDITION);
            ls_value_release(bad);
        }
    }
    LST_OK(ls_iterator_restore(it, state, &err));
    ls_value_release(state);
    LST_OK(ls_value_int(3, &state, &err));
    LST_FAILS(ls_iterator_restore(it, state, &err), LS_INVALID_ARGUMENT, err, "int");
    ls_value_release(state);
    ls_iterator_release(it);
    lsi_free(copy);
    ls_dataset_release(d);
}

/* Reads a few elements from the current position. */
static void poke(lsi_iterator *it)
{
    for (int i = 0; i < 8; i++) {
        ls_value *v = NULL;

        if (lsi_iterator_next(it, &v, NULL) == LS_OK) {
            ls_value_release(v);
        }
    }
}

LST_TEST(a_hostile_state_fails_or_gives_a_position_but_breaks_nothing)
{
    static const uint8_t turns[] = {0x01, 0x80, 0xff};

    for (size_t p = 0; p < LSI_COUNT_OF(pipelines); p++) {
        ls_dataset *d = pipelines[p]();
        lsi_iterator *it = NULL;
        lsi_state_writer w = {0};

        LST_OK(lsi_pipeline_iterate(d, NULL, &it, NULL));
        for (int i = 0; i < 2; i++) {
            ls_value *v = NULL;

            if (lsi_iterator_next(it, &v, NULL) == LS_OK) {
                ls_value_release(v);
            }
        }
        LST_OK(lsi_iterator_save(it, &w, NULL));
        for (size_t i = 0; i < w.size * LSI_COUNT_OF(turns); i++) {
            const size_t at = i / LSI_COUNT_OF(turns);
            lsi_state_reader r = {w.bytes, w.size, 0, it->as.device};
            const uint8_t turn = turns[i % LSI_COUNT_OF(turns)];

            w.bytes[at] ^= turn;
            const ls_status st = lsi_iterator_restore(it, &r, NULL);
            w.bytes[at] ^= turn;
            LST_CHECK(st == LS_OK || st == LS_DATA_LOSS || st == LS_FAILED_PRECONDITION ||
                      st == LS_RESOURCE_EXHAUSTED);
            poke(it);
        }
        lsi_iterator_close(it);
        lsi_state_writer_clear(&w);
        ls_dataset_release(d);
    }
}

/* ---- memory ---- */

static ls_status whole_life(ls_error *err)
{
    ls_dataset *(*const chosen[])(void) = {held, shuffled, joined, rows, recut, pieces};
    ls_status st = LS_OK;

    for (size_t i = 0; i < LSI_COUNT_OF(chosen) && st == LS_OK; i++) {
        ls_dataset *d = chosen[i]();
        ls_iterator *it = NULL;
        ls_value *v = NULL, *state = NULL;

        st = ls_dataset_iterate(d, &it, err);
        for (int k = 0; k < 3 && st == LS_OK; k++) {
            st = ls_iterator_next(it, &v, err);
            ls_value_release(v);
            v = NULL;
        }
        if (st == LS_OK) {
            st = ls_iterator_save(it, &state, err);
        }
        if (st == LS_OK) {
            st = ls_iterator_restore(it, state, err);
        }
        if (st == LS_OK) {
            st = ls_iterator_next(it, &v, err);
            ls_value_release(v);
        }
        ls_value_release(state);
        ls_iterator_release(it);
        ls_dataset_release(d);
    }
    return st;
}

LST_TEST(every_allocation_may_fail)
{
    lst_every_allocation(whole_life);
}

LST_MAIN(
    LST_CASE(D102_D103_a_position_can_be_saved_after_every_call_and_restored_elsewhere),
    LST_CASE(D102_a_range_goes_on_and_a_saved_end_is_the_end),
    LST_CASE(D103_a_shuffle_goes_on_and_so_does_the_next_epoch),
    LST_CASE(a_shuffle_nobody_gave_a_seed_takes_over_the_saved_one),
    LST_CASE(a_state_of_another_pipeline_is_refused_and_the_position_stays),
    LST_CASE(D107_state_outside_fails_the_save_unless_the_options_let_it_out),
    LST_CASE(a_damaged_state_is_told_from_a_whole_one),
    LST_CASE(a_hostile_state_fails_or_gives_a_position_but_breaks_nothing),
    LST_CASE(every_allocation_may_fail))
