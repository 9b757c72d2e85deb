/* Sources written by the user, and what operators do after a source failed. */
#include "data/data_test.h"

struct script {
    const char *events; // digits are elements, '!' a failure, 's' a wrong element
    int open;
};

struct reading {
    struct script *script;
    const char *at;
};

static ls_status open_script(void *user, void **state, ls_error *err)
{
    struct script *script = user;
    struct reading *r = lsi_alloc(1, sizeof *r);

    if (r == NULL) {
        return lsi_fail_memory(err, "a script", sizeof *r);
    }
    *r = (struct reading){script, script->events};
    script->open++;
    *state = r;
    return LS_OK;
}

static ls_status next_of_script(void *state, ls_value **out, ls_error *err)
{
    struct reading *r = state;
    const char c = *r->at;
    ls_tensor *t = NULL;
    ls_status st;

    if (c == '\0') {
        return LS_OUT_OF_RANGE;
    }
    r->at++;
    if (c == '!') {
        return lsi_fail(err, LS_DATA_LOSS, -1, "the script says so");
    }
    const int64_t x = c - '0';
    st = c == 's' ? ls_tensor_create(NULL, LS_F32, LS_SHAPE(2), NULL, &t, err)
                  : ls_tensor_create(NULL, LS_I64, LS_SCALAR, &x, &t, err);
    if (st == LS_OK) {
        st = ls_value_tensor(t, out, err);
    }
    ls_tensor_release(t);
    return st;
}

static void close_script(void *state)
{
    ((struct reading *)state)->script->open--;
    lsi_free(state);
}

static ls_dataset *play(struct script *script)
{
    const ls_source source = {sizeof source, open_script, next_of_script, close_script,
                              script};
    ls_spec *spec = NULL;
    ls_dataset *d = NULL;

    LST_OK(ls_spec_tensor(LS_I64, 0, NULL, &spec, NULL));
    d = ls_dataset_source(&source, spec);
    ls_spec_release(spec);
    return d;
}

LST_TEST(a_source_of_the_users_is_checked_against_its_spec)
{
    struct script script = {"1s2", 0};
    ls_dataset *d = play(&script);
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_CHECK(lst_epoch(d, "1 !INVALID_ARGUMENT 2"));
    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_OK(ls_iterator_next(it, &v, &err));
    ls_value_release(v);
    LST_FAILS(ls_iterator_next(it, &v, &err), LS_INVALID_ARGUMENT, err,
              "int64 () was declared, this one is float32 (2,)");
    ls_iterator_release(it);
    LST_CHECK(script.open == 0);
    LST_CHECK(lst_code(ls_dataset_source(NULL, NULL)) == LS_INVALID_ARGUMENT);
    ls_dataset_release(d);
}

LST_TEST(after_a_failure_every_operator_goes_on_with_the_next_element)
{
    struct script script = {"12!345", 0};

    LST_CHECK(lst_gives(ls_dataset_take(play(&script), 4), "1 2 !DATA_LOSS 3 4"));
    LST_CHECK(lst_gives(ls_dataset_skip(play(&script), 3), "!DATA_LOSS"));
    LST_CHECK(lst_gives(ls_dataset_shard(ls_dataset_batch(lst_uneven_batches(), 2), 3, 1),
                        "!INVALID_ARGUMENT [[2 3]]")); // a batch passed over may fail
    LST_CHECK(lst_gives(ls_dataset_repeat(play(&script), 2),
                        "1 2 !DATA_LOSS 3 4 5 1 2 !DATA_LOSS 3 4 5"));
    // the elements read for the failed batch are lost, as in TensorFlow
    LST_CHECK(lst_gives(ls_dataset_batch(play(&script), 3), "!DATA_LOSS [3 4 5]"));
    LST_CHECK(lst_gives(lst_zip(lst_range(9), play(&script)),
                        "(0,1) (1,2) !DATA_LOSS (3,3) (4,4) (5,5)"));
    LST_CHECK(lst_gives(ls_dataset_ignore_errors(play(&script)), "1 2 3 4 5"));
    LST_CHECK(lst_gives(ls_dataset_shuffle(play(&script), 2, 1), "1 !DATA_LOSS 3 4 5 2"));
    LST_CHECK(lst_gives(ls_dataset_concatenate(play(&script), lst_range(2)),
                        "1 2 !DATA_LOSS 3 4 5 0 1"));
    LST_CHECK(script.open == 0);
}

/* Each pass has one digit less. */
static ls_status open_rest(void *user, void **state, ls_error *err)
{
    struct script *script = user;
    const ls_status st = open_script(user, state, err);

    if (st == LS_OK) {
        script->events += *script->events != '\0';
    }
    return st;
}

LST_TEST(an_endless_repeat_ends_with_the_first_pass_that_gives_nothing)
{
    struct script script = {"12", 0};
    const ls_source source = {sizeof source, open_rest, next_of_script, close_script,
                              &script};

    LST_CHECK(
        lst_gives(ls_dataset_repeat(ls_dataset_source(&source, NULL), -1), "1 2 2"));
    LST_CHECK(script.open == 0);
}

static ls_status always_fails(void *state, ls_value **out, ls_error *err)
{
    (void)state;
    (void)out;
    return lsi_fail(err, LS_NOT_FOUND, -1, "again and again");
}

LST_TEST(a_failure_that_comes_back_for_ever_is_not_ignored)
{
    const ls_source source = {sizeof source, NULL, always_fails, NULL, NULL};
    ls_dataset *d = ls_dataset_ignore_errors(ls_dataset_source(&source, NULL));
    ls_iterator *it = NULL;
    ls_value *v = NULL;
    ls_error err = LS_ERROR_INIT;

    LST_OK(ls_dataset_iterate(d, &it, &err));
    LST_FAILS(ls_iterator_next(it, &v, &err), LS_NOT_FOUND, err, "again");
    ls_iterator_release(it);
    ls_dataset_release(d);
}

LST_MAIN(LST_CASE(a_source_of_the_users_is_checked_against_its_spec),
         LST_CASE(after_a_failure_every_operator_goes_on_with_the_next_element),
         LST_CASE(an_endless_repeat_ends_with_the_first_pass_that_gives_nothing),
         LST_CASE(a_failure_that_comes_back_for_ever_is_not_ignored))
